//! Costs of two runs judged: speeds of rounds, their difference with its interval, and the verdict that
//! it allows among all others. The rules and their reasons stand in the parent module.

use crate::case::Case;
use crate::measurements::{ArmStatus, Cost, Measurements};
use crate::plan::Group;
use crate::run::Outcome;
use crate::statistics::{Interval, difference_of_means, simultaneous, t_interval, unpaired};
use crate::verdict::{Verdict, judge_interval};

use super::matching::Pair;
use super::{
    ArmCost, Change, ComparedCase, ComparedGroup, NotJudged, Options, Quantity, Regression,
};

/// Values of rounds in A and in B: logarithms of speeds, larger is faster.
struct Speeds {
    a: Vec<f64>,
    b: Vec<f64>,
    noise_floor: Option<f64>,
}

impl Speeds {
    fn interval(&self, confidence: f64) -> Option<Interval> {
        let found = difference_of_means(&self.b, &self.a, confidence)?;
        Some(found.interval.exp())
    }

    fn verdict(&self, confidence: f64, threshold: f64) -> Verdict {
        judge_interval(self.interval(confidence), self.noise_floor, threshold)
    }

    /// The change, given the confidence that Holm's procedure leaves for it.
    fn change(&self, options: &Options, confidence_among_all: f64) -> Change {
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let interval = self.interval(options.confidence);
        let among_all = self.verdict(confidence_among_all, options.threshold);
        let verdict = match (
            among_all,
            self.verdict(options.confidence, options.threshold),
        ) {
            (apart @ (Verdict::Faster | Verdict::Slower), _) => apart,
            (_, Verdict::NoDifferenceWorthHaving) => Verdict::NoDifferenceWorthHaving,
            _ => Verdict::NotSureYet,
        };
        let is_quiet = self
            .noise_floor
            .is_some_and(|floor| floor <= options.threshold);
        let is_no_slower =
            interval.is_some_and(|interval| interval.low >= 1.0 / (1.0 + options.threshold));
        let regression = match verdict {
            Verdict::Slower => Regression::Found,
            Verdict::Faster | Verdict::NoDifferenceWorthHaving => Regression::Excluded,
            Verdict::NotSureYet if is_quiet && is_no_slower => Regression::Excluded,
            Verdict::NotSureYet => Regression::Open,
        };
        Change {
            // Rounds of a year against rounds of a nanosecond: still a number.
            ratio: (mean(&self.b) - mean(&self.a)).clamp(-700.0, 700.0).exp(),
            interval,
            interval_among_all: self.interval(confidence_among_all),
            confidence_among_all,
            noise_floor: self.noise_floor,
            verdict,
            regression,
        }
    }
}

/// The measurements of both runs.
pub(super) struct Both<'a> {
    pub(super) a: Measurements<'a>,
    pub(super) b: Measurements<'a>,
    pub(super) options: &'a Options,
}

impl<'a> Both<'a> {
    pub(super) fn cases(&self, pairs: &[Pair<'a>]) -> Vec<ComparedCase> {
        let rows: Vec<(&Pair<'a>, Cost)> = pairs
            .iter()
            .flat_map(|pair| {
                let settles = pair.a.case.workload.writes();
                let costs = [Some(Cost::Acknowledged), settles.then_some(Cost::Settled)];
                costs.into_iter().flatten().map(move |cost| (pair, cost))
            })
            .collect();
        let speeds: Vec<Result<Speeds, NotJudged>> = rows
            .iter()
            .map(|(pair, cost)| self.speeds(pair, *cost))
            .collect();
        let judged: Vec<&Speeds> = speeds.iter().flatten().collect();
        let threshold = self.options.threshold;
        let levels = simultaneous(judged.len(), self.options.confidence, |index, level| {
            let verdict = judged[index].verdict(level, threshold);
            matches!(verdict, Verdict::Faster | Verdict::Slower)
        });
        let mut levels = levels.into_iter();
        let changes = speeds.iter().map(|speeds| match speeds {
            // There is a level for every one that is judged.
            Ok(speeds) => Ok(speeds.change(self.options, levels.next().unwrap_or(1.0))),
            Err(reason) => Err(reason.clone()),
        });
        rows.iter()
            .zip(changes)
            .map(|((pair, cost), change)| self.case(pair, *cost, change))
            .collect()
    }

    fn case(&self, pair: &Pair<'a>, cost: Cost, change: Result<Change, NotJudged>) -> ComparedCase {
        let left_out = |measurements: &Measurements<'_>, arm: &str| {
            let trials = measurements.trials(arm);
            trials
                .filter(|trial| trial.outcome != Outcome::Valid)
                .count()
        };
        let confidence = self.options.confidence;
        ComparedCase {
            case_id: pair.b.case.id(),
            name_a: pair.a.name.clone(),
            name: pair.b.name.clone(),
            label: pair.b.label.clone(),
            group: pair.group_b.name.clone(),
            cost,
            a: arm_cost(&self.a.round_values(&pair.a.name, cost), confidence),
            b: arm_cost(&self.b.round_values(&pair.b.name, cost), confidence),
            trials_left_out: (
                left_out(&self.a, &pair.a.name),
                left_out(&self.b, &pair.b.name),
            ),
            change,
        }
    }

    fn speeds(&self, pair: &Pair<'a>, cost: Cost) -> Result<Speeds, NotJudged> {
        let is_baseline =
            pair.group_a.baseline == pair.a.name && pair.group_b.baseline == pair.b.name;
        let (a, b) = (self.a.status(&pair.a.name), self.b.status(&pair.b.name));
        if a != ArmStatus::Measured || b != ArmStatus::Measured {
            return Err(NotJudged::NoFigures { a, b });
        }
        let (a, b) = match self.options.of {
            Quantity::Time => (
                self.a.round_values(&pair.a.name, cost),
                self.b.round_values(&pair.b.name, cost),
            ),
            Quantity::Ratio if is_baseline => return Err(NotJudged::IsBaseline),
            Quantity::Ratio => {
                let baselines = (baseline(pair.group_a), baseline(pair.group_b));
                if baselines.0.map(Case::id) != baselines.1.map(Case::id) {
                    return Err(NotJudged::OtherBaseline {
                        a: pair.group_a.baseline.clone(),
                        b: pair.group_b.baseline.clone(),
                    });
                }
                let ratios = |measurements: &Measurements<'_>, group: &Group, arm: &str| {
                    let found = measurements.ratio(&group.baseline, arm, cost);
                    found.map_or_else(Vec::new, |estimate| estimate.round_values)
                };
                (
                    ratios(&self.a, pair.group_a, &pair.a.name),
                    ratios(&self.b, pair.group_b, &pair.b.name),
                )
            }
        };
        let (a, b) = match self.options.of {
            Quantity::Ratio if a.is_empty() || b.is_empty() => return Err(NotJudged::NoRatio),
            Quantity::Ratio => (a, b),
            Quantity::Time => {
                unpaired(&a, &b, self.options.confidence).map_err(|_| NotJudged::BadSamples)?;
                let speeds = |times: Vec<f64>| times.into_iter().map(|ns| -ns.ln()).collect();
                (speeds(a), speeds(b))
            }
        };
        let floors = (
            self.a.noise_floor_of(&pair.a.name, cost),
            self.b.noise_floor_of(&pair.b.name, cost),
        );
        Ok(Speeds {
            a,
            b,
            noise_floor: floors.0.zip(floors.1).map(|(a, b)| a.max(b)),
        })
    }

    pub(super) fn groups(&self) -> Vec<ComparedGroup> {
        let of_b = &self.b.run().plan.groups;
        let groups = self.a.run().plan.groups.iter().filter_map(|group| {
            let other = of_b.iter().find(|other| other.name == group.name)?;
            Some(self.group(group, other))
        });
        groups.collect()
    }

    fn group(&self, of_a: &Group, of_b: &Group) -> ComparedGroup {
        let cost = Cost::Acknowledged;
        let a = self.a.round_values(&of_a.baseline, cost);
        let b = self.b.round_values(&of_b.baseline, cost);
        let same = baseline(of_a).map(Case::id) == baseline(of_b).map(Case::id);
        let change = unpaired(&a, &b, self.options.confidence).ok();
        let label = self.b.run().plan.arm(&of_b.baseline);
        ComparedGroup {
            name: of_b.name.clone(),
            baseline: label.map_or(&of_b.baseline, |(_, arm)| &arm.label).clone(),
            planned: (of_a.rounds, of_b.rounds),
            measured: (a.len(), b.len()),
            noise_floors: (
                self.a.noise_floor(of_a, cost),
                self.b.noise_floor(of_b, cost),
            ),
            baseline_change: change
                .filter(|_| same)
                .map(|estimate| (estimate.ratio, estimate.interval)),
        }
    }
}

fn baseline(group: &Group) -> Option<&Case> {
    let mut arms = group.arms.iter();
    let found = arms.find(|arm| arm.name == group.baseline)?;
    Some(&found.case)
}

/// Geometric mean of the values of rounds, with Student's interval on their logarithms.
fn arm_cost(rounds_ns: &[f64], confidence: f64) -> Option<ArmCost> {
    let logarithms: Vec<f64> = rounds_ns.iter().map(|ns| ns.ln()).collect();
    let mean = logarithms.iter().sum::<f64>() / logarithms.len() as f64;
    mean.is_finite().then(|| ArmCost {
        operation_ns: mean.exp(),
        interval: t_interval(&logarithms, confidence).map(|found| found.interval.exp()),
        rounds: rounds_ns.len(),
    })
}
