//! Analysis: what follows from the samples of a run. For every arm its cost and latencies, for
//! every chart its ratios with intervals and verdicts, for every claim a judgement. Reports only
//! put into words and pictures what stands here.

use std::collections::BTreeMap;

use crate::case::CacheState;
use crate::claims::{ClaimResult, judge_claims};
use crate::conclusion::conclude;
use crate::latencies::Latencies;
use crate::plan::{Arm, Group};
use crate::run::{Footprint, Outcome, Run, Sample, Trial};
use crate::statistics::{
    DEFAULT_CONFIDENCE, PairedRound, RatioEstimate, compare, median, noise_floor, unpaired,
};
use crate::suite::{Chart, ChartKind};
use crate::verdict::{DEFAULT_THRESHOLD, Verdict, judge};

/// Which part of a sample's time counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cost {
    /// To the last acknowledgement.
    Acknowledged,
    /// Including settling: checkpoint and writing back.
    Settled,
}

/// Everything that follows from a run.
#[derive(Debug, Clone)]
pub struct Analysis {
    /// By group, in the order of the plan.
    pub groups: Vec<GroupAnalysis>,
    /// By chart, in the order of the plan.
    pub charts: Vec<ChartAnalysis>,
    /// By claim, in the order of the plan.
    pub claims: Vec<ClaimResult>,
    /// Sentences that follow from the intervals.
    pub conclusion: Vec<String>,
}

/// A group: its noise floor and its arms.
#[derive(Debug, Clone)]
pub struct GroupAnalysis {
    /// Name of the group.
    pub name: String,
    /// Farther end of the interval of baseline against its repetition, as a share (0.02 is 2%);
    /// `None` if it could not be measured.
    pub noise_floor: Option<f64>,
    /// Rounds in which at least one arm was measured.
    pub rounds: u32,
    /// Arms, in the order of the plan, the twin last.
    pub arms: Vec<ArmAnalysis>,
}

/// One arm.
#[derive(Debug, Clone)]
pub struct ArmAnalysis {
    /// Name.
    pub name: String,
    /// What the report calls it.
    pub label: String,
    /// Whether there are figures.
    pub status: ArmStatus,
    /// Nanoseconds of one operation: median over the rounds of the median over the slices.
    pub operation_ns: Option<f64>,
    /// The same including settling; `None` for reading arms.
    pub settled_operation_ns: Option<f64>,
    /// Content bytes in a second of acknowledged operations.
    pub bytes_per_second: Option<f64>,
    /// Latencies of all valid trials together.
    pub latencies: Latencies,
    /// Value of each round: nanoseconds of one operation, median over its slices.
    pub round_values_ns: Vec<f64>,
    /// Trials that were kept but do not count, with their reason.
    pub left_out: Vec<String>,
    /// Slices of trials that do count which were not in the cache state they are labelled with:
    /// kept, not counted.
    pub slices_left_out: u32,
}

/// Whether an arm has figures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ArmStatus {
    /// It has.
    Measured,
    /// Every trial failed or was invalid; the last reason.
    Failed(String),
    /// The machine lacks what it needs.
    Skipped(String),
    /// The run ended before its turn came.
    NotReached,
}

/// A chart with its rows.
#[derive(Debug, Clone)]
pub struct ChartAnalysis {
    /// As the suite has it.
    pub chart: Chart,
    /// Noise floor of the group its arms are in.
    pub noise_floor: Option<f64>,
    /// One row an arm, in the chart's order.
    pub rows: Vec<ChartRow>,
}

/// A row of a chart.
#[derive(Debug, Clone)]
pub struct ChartRow {
    /// The arm.
    pub arm: ArmAnalysis,
    /// Comparison with each arm of [`Chart::versus`], in its order: reference time / arm time,
    /// above 1 the arm is faster.
    pub versus: Vec<Option<Compared>>,
    /// The same to completion of what commits leave for later; empty for reading arms.
    pub versus_settled: Vec<Option<Compared>>,
    /// Space, for charts of space.
    pub footprint: Option<Footprint>,
}

/// Two arms as a ratio.
#[derive(Debug, Clone)]
pub struct Compared {
    /// Reference time / arm time with its interval.
    pub estimate: RatioEstimate,
    /// What follows from it.
    pub verdict: Verdict,
}

/// Analyses a run; nothing is measured, nothing is rounded.
#[must_use]
pub fn analyse(run: &Run) -> Analysis {
    let figures = Figures::new(run);
    let groups: Vec<GroupAnalysis> = run
        .plan
        .groups
        .iter()
        .map(|group| figures.group(group))
        .collect();
    let charts = run
        .plan
        .charts
        .iter()
        .map(|chart| figures.chart(chart, &groups))
        .collect();
    Analysis {
        claims: judge_claims(&run.plan.claims, &figures),
        conclusion: conclude(&run.plan.conclusion, &figures),
        groups,
        charts,
    }
}

/// The samples of a run, ordered so that arms can be compared.
pub struct Figures<'a> {
    run: &'a Run,
    /// Trials by arm.
    trials: BTreeMap<&'a str, Vec<&'a Trial>>,
}

impl<'a> Figures<'a> {
    /// Orders the trials of a run.
    #[must_use]
    pub fn new(run: &'a Run) -> Self {
        let mut trials: BTreeMap<&str, Vec<&Trial>> = BTreeMap::new();
        for trial in &run.trials {
            trials.entry(&trial.arm).or_default().push(trial);
        }
        Self { run, trials }
    }

    /// The run.
    #[must_use]
    pub fn run(&self) -> &'a Run {
        self.run
    }

    /// What the report calls an arm.
    #[must_use]
    pub fn label(&self, arm: &'a str) -> &'a str {
        let found = self.run.plan.arm(arm);
        found.map_or(arm, |(_, found)| found.label.as_str())
    }

    fn valid(&self, arm: &str) -> impl Iterator<Item = &'a Trial> {
        let trials = self.trials.get(arm).cloned().unwrap_or_default();
        let refuted = self.refutation(arm).is_some();
        trials.into_iter().filter(move |trial| {
            !refuted && trial.outcome == Outcome::Valid && !trial.samples.is_empty()
        })
    }

    /// What verification found wrong with everything an arm has stored.
    fn refutation(&self, arm: &str) -> Option<&'a str> {
        let mut trials = self.trials.get(arm)?.iter();
        trials.find_map(|trial| match &trial.outcome {
            Outcome::Refuted(reason) => Some(reason.as_str()),
            _ => None,
        })
    }

    /// The slices of a trial that were in the cache state that the arm is labelled with.
    fn counted(&self, trial: &'a Trial) -> impl Iterator<Item = &'a Sample> {
        let arm = self.run.plan.arm(&trial.arm);
        let cache = arm.map_or(CacheState::Warm, |(_, arm)| arm.case.cache);
        trial
            .samples
            .iter()
            .filter(move |sample| sample.is_in(cache))
    }

    /// Whether an arm has figures, and why not.
    #[must_use]
    pub fn status(&self, arm: &str) -> ArmStatus {
        if let Some(reason) = self.refutation(arm) {
            return ArmStatus::Failed(reason.to_owned());
        }
        if self.valid(arm).next().is_some() {
            return ArmStatus::Measured;
        }
        let last = self.trials.get(arm).and_then(|trials| trials.last());
        match last.map(|trial| &trial.outcome) {
            None => ArmStatus::NotReached,
            Some(Outcome::Skipped(reason)) => ArmStatus::Skipped(reason.clone()),
            Some(Outcome::Failed(reason) | Outcome::Invalid(reason) | Outcome::Refuted(reason)) => {
                ArmStatus::Failed(reason.clone())
            }
            Some(Outcome::Valid) => ArmStatus::Failed("no slices".to_owned()),
        }
    }

    /// Nanoseconds of one operation in each round, median over the round's slices.
    #[must_use]
    pub fn round_values(&self, arm: &str, cost: Cost) -> Vec<f64> {
        let mut rounds: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
        for trial in self.valid(arm) {
            let values = self.counted(trial).map(|sample| cost.of(sample));
            rounds.entry(trial.round).or_default().extend(values);
        }
        rounds
            .into_values()
            .filter_map(|values| median(&values))
            .collect()
    }

    /// Cost of `reference` divided by cost of `arm`: paired by turn where both were measured in
    /// turns, else from the values of their rounds.
    #[must_use]
    pub fn ratio(&self, reference: &str, arm: &str, cost: Cost) -> Option<RatioEstimate> {
        let paired = self.paired_rounds(reference, arm, cost);
        if paired.is_empty() {
            let reference = self.round_values(reference, cost);
            return unpaired(
                &reference,
                &self.round_values(arm, cost),
                DEFAULT_CONFIDENCE,
            )
            .ok();
        }
        compare(&paired, DEFAULT_CONFIDENCE).ok()
    }

    fn paired_rounds(&self, reference: &str, arm: &str, cost: Cost) -> Vec<PairedRound> {
        let mut arms: BTreeMap<(u32, u32), &Trial> = BTreeMap::new();
        for trial in self.valid(arm) {
            arms.insert((trial.round, trial.set), trial);
        }
        let mut rounds: BTreeMap<u32, Vec<(f64, f64)>> = BTreeMap::new();
        // In the order of the rounds: pairs of slices that had the same turn of the same set.
        for reference in self.valid(reference) {
            let Some(arm) = arms.get(&(reference.round, reference.set)) else {
                continue;
            };
            let of_arm: BTreeMap<u32, f64> = self
                .counted(arm)
                .map(|sample| (sample.turn, cost.of(sample)))
                .collect();
            let slices = rounds.entry(reference.round).or_default();
            for sample in self.counted(reference) {
                if let Some(arm) = of_arm.get(&sample.turn) {
                    slices.push((cost.of(sample), *arm));
                }
            }
        }
        rounds
            .into_values()
            .filter(|slices| !slices.is_empty())
            .map(|slices| PairedRound { slices })
            .collect()
    }

    /// Noise floor of the group an arm is in, as a share; see [`GroupAnalysis::noise_floor`].
    #[must_use]
    pub fn noise_floor_of(&self, arm: &str, cost: Cost) -> Option<f64> {
        let (group, _) = self.run.plan.arm(arm)?;
        self.noise_floor(group, cost)
    }

    fn noise_floor(&self, group: &Group, cost: Cost) -> Option<f64> {
        let twin = self.ratio(&group.baseline, &group.twin(), cost)?;
        noise_floor(&twin)
    }

    fn group(&self, group: &Group) -> GroupAnalysis {
        let rounds: std::collections::BTreeSet<u32> = group
            .arms
            .iter()
            .flat_map(|arm| self.valid(&arm.name).map(|trial| trial.round))
            .collect();
        GroupAnalysis {
            name: group.name.clone(),
            noise_floor: self.noise_floor(group, Cost::Acknowledged),
            rounds: rounds.len() as u32,
            arms: group.arms.iter().map(|arm| self.arm(arm)).collect(),
        }
    }

    fn arm(&self, arm: &Arm) -> ArmAnalysis {
        let round_values_ns = self.round_values(&arm.name, Cost::Acknowledged);
        let settles = arm.case.workload.writes();
        let settled = self.round_values(&arm.name, Cost::Settled);
        let samples = || self.valid(&arm.name).flat_map(|trial| self.counted(trial));
        let all_slices: usize = self.valid(&arm.name).map(|trial| trial.samples.len()).sum();
        // As floats: sums of a damaged run file's numbers must not overflow.
        let bytes: f64 = samples().map(|sample| sample.content_bytes as f64).sum();
        let elapsed_ns: f64 = samples().map(|sample| sample.elapsed_ns as f64).sum();
        let left_out = self.trials.get(arm.name.as_str()).into_iter().flatten();
        ArmAnalysis {
            name: arm.name.clone(),
            label: arm.label.clone(),
            status: self.status(&arm.name),
            operation_ns: median(&round_values_ns),
            settled_operation_ns: settles.then(|| median(&settled)).flatten(),
            bytes_per_second: (elapsed_ns > 0.0).then(|| bytes * 1e9 / elapsed_ns),
            latencies: Latencies::merged(self.valid(&arm.name).map(|trial| &trial.latencies)),
            left_out: left_out
                .filter_map(|trial| match &trial.outcome {
                    Outcome::Valid => None,
                    Outcome::Invalid(reason)
                    | Outcome::Failed(reason)
                    | Outcome::Skipped(reason)
                    | Outcome::Refuted(reason) => {
                        Some(format!("round {}: {reason}", u64::from(trial.round) + 1))
                    }
                })
                .collect(),
            slices_left_out: (all_slices - samples().count()) as u32,
            round_values_ns,
        }
    }

    fn chart(&self, chart: &Chart, groups: &[GroupAnalysis]) -> ChartAnalysis {
        let group_of = |name: &str| {
            groups
                .iter()
                .find(|group| group.arms.iter().any(|arm| arm.name == name))
        };
        let noise_floor = chart
            .arms
            .first()
            .and_then(|name| group_of(name))
            .and_then(|group| group.noise_floor);
        let rows = chart.arms.iter().filter_map(|name| {
            let group = group_of(name)?;
            let arm = group.arms.iter().find(|arm| arm.name == *name)?;
            Some(self.row(chart, arm))
        });
        ChartAnalysis {
            rows: rows.collect(),
            chart: chart.clone(),
            noise_floor,
        }
    }

    fn row(&self, chart: &Chart, arm: &ArmAnalysis) -> ChartRow {
        let versus = |cost: Cost| -> Vec<Option<Compared>> {
            let references = chart.versus.iter();
            references
                .map(|versus| self.compared(&versus.arm, &arm.name, cost))
                .collect()
        };
        let timed = chart.shows == ChartKind::Time;
        let settles = arm.settled_operation_ns.is_some();
        let only_if = |wanted: bool, cost: Cost| {
            if wanted { versus(cost) } else { Vec::new() }
        };
        ChartRow {
            versus: only_if(timed, Cost::Acknowledged),
            versus_settled: only_if(timed && settles, Cost::Settled),
            footprint: self.run.footprints.get(&arm.name).copied(),
            arm: arm.clone(),
        }
    }

    /// Two arms with their verdict, by the noise floor of the arm's own group; an arm is not
    /// compared with itself.
    fn compared(&self, reference: &str, arm: &str, cost: Cost) -> Option<Compared> {
        if reference == arm {
            return None;
        }
        let estimate = self.ratio(reference, arm, cost)?;
        let verdict = judge(&estimate, self.noise_floor_of(arm, cost), DEFAULT_THRESHOLD);
        Some(Compared { estimate, verdict })
    }
}

impl Cost {
    fn of(self, sample: &Sample) -> f64 {
        match self {
            Self::Acknowledged => sample.operation_ns(),
            Self::Settled => sample.settled_operation_ns(),
        }
    }
}
