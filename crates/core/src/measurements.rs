//! Measurements: all samples of a run by arm, and what can be asked of them: values of rounds,
//! ratios of two arms, noise floors, and why an arm has no figures. What follows from the answers is
//! for [`crate::analysis`], [`crate::claims`] and [`crate::conclusion`] to say.

use std::collections::BTreeMap;

use crate::case::CacheState;
use crate::plan::Group;
use crate::run::{Outcome, Run, Sample, Trial};
use crate::statistics::{
    DEFAULT_CONFIDENCE, PairedRound, RatioEstimate, compare, median, noise_floor, unpaired,
};

/// Which part of a sample's time counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cost {
    /// To the last acknowledgement.
    Acknowledged,
    /// Including settling: checkpoint and writing back.
    Settled,
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

/// The samples of a run, ordered so that arms can be compared.
pub struct Measurements<'a> {
    run: &'a Run,
    /// Trials by arm.
    trials: BTreeMap<&'a str, Vec<&'a Trial>>,
}

impl<'a> Measurements<'a> {
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

    pub(crate) fn valid(&self, arm: &str) -> impl Iterator<Item = &'a Trial> {
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
    pub(crate) fn counted(&self, trial: &'a Trial) -> impl Iterator<Item = &'a Sample> {
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
        let mut counted = self.valid(arm).flat_map(|trial| self.counted(trial));
        if counted.next().is_some() {
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
        let rounds = self.numbered_round_values(arm, cost).into_iter();
        rounds.map(|(_, value)| value).collect()
    }

    /// The same with the number of each round, from 0.
    pub(crate) fn numbered_round_values(&self, arm: &str, cost: Cost) -> Vec<(u32, f64)> {
        let mut rounds: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
        for trial in self.valid(arm) {
            let values = self.counted(trial).map(|sample| cost.of(sample));
            rounds.entry(trial.round).or_default().extend(values);
        }
        rounds
            .into_iter()
            .filter_map(|(round, values)| Some((round, median(&values)?)))
            .collect()
    }

    /// For each round in which both were measured in turns, by its number: the median over its slices of
    /// ln(cost of `reference` / cost of `arm`).
    #[must_use]
    pub fn round_logarithms(&self, reference: &str, arm: &str, cost: Cost) -> BTreeMap<u32, f64> {
        let rounds = self.paired_rounds(reference, arm, cost);
        let (numbers, rounds): (Vec<u32>, Vec<PairedRound>) = rounds.into_iter().unzip();
        let found = compare(&rounds, DEFAULT_CONFIDENCE);
        let values = found.map_or(Vec::new(), |found| found.round_values);
        numbers.into_iter().zip(values).collect()
    }

    /// Cost of `reference` divided by cost of `arm`: paired by turn where both were measured in
    /// turns, else from the values of their rounds.
    #[must_use]
    pub fn ratio(&self, reference: &str, arm: &str, cost: Cost) -> Option<RatioEstimate> {
        // Groups take no turns with one another: their rounds have nothing in common.
        let group_of = |name: &str| self.run.plan.arm(name).map(|(group, _)| &group.name);
        let paired = if group_of(reference) == group_of(arm) {
            self.paired_rounds(reference, arm, cost)
                .into_values()
                .collect()
        } else {
            Vec::new()
        };
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

    /// By the number of the round; those without slices are left out.
    fn paired_rounds(&self, reference: &str, arm: &str, cost: Cost) -> BTreeMap<u32, PairedRound> {
        let mut arms: BTreeMap<(u32, u32), &Trial> = BTreeMap::new();
        for trial in self.valid(arm) {
            arms.insert((trial.round, trial.set), trial);
        }
        let mut rounds: BTreeMap<u32, Vec<(f64, f64)>> = BTreeMap::new();
        for reference in self.valid(reference) {
            if let Some(arm) = arms.get(&(reference.round, reference.set)) {
                let slices = rounds.entry(reference.round).or_default();
                slices.extend(self.pairs(reference, arm, cost));
            }
        }
        rounds
            .into_iter()
            .filter(|(_, slices)| !slices.is_empty())
            .map(|(round, slices)| (round, PairedRound { slices }))
            .collect()
    }

    /// Costs of slices that had the same turn of the same set. Where the slices that count have no
    /// turn in common, the medians of both trials are the pair: less of the drift cancels out, but
    /// the round is not lost.
    fn pairs(&self, reference: &'a Trial, arm: &'a Trial, cost: Cost) -> Vec<(f64, f64)> {
        let by_turn = |trial: &'a Trial| -> BTreeMap<u32, f64> {
            self.counted(trial)
                .map(|sample| (sample.turn, cost.of(sample)))
                .collect()
        };
        let (reference, arm) = (by_turn(reference), by_turn(arm));
        let paired: Vec<(f64, f64)> = reference
            .iter()
            .filter_map(|(turn, reference)| Some((*reference, *arm.get(turn)?)))
            .collect();
        if !paired.is_empty() {
            return paired;
        }
        let middle =
            |costs: &BTreeMap<u32, f64>| median(&costs.values().copied().collect::<Vec<_>>());
        middle(&reference).zip(middle(&arm)).into_iter().collect()
    }

    /// The relative half width of the widest interval of a group's arms against their baseline, the
    /// twin's among them, and for writers of both costs: what a stopping rule looks at. `None` as long
    /// as one of them has no interval. Arms without figures are passed over.
    #[must_use]
    pub fn widest_half_width(&self, group: &Group) -> Option<f64> {
        let mut widest: f64 = 0.0;
        for arm in group.arms.iter().filter(|arm| arm.name != group.baseline) {
            if self.status(&arm.name) != ArmStatus::Measured {
                continue;
            }
            let costs: &[Cost] = if arm.case.workload.writes() {
                &[Cost::Acknowledged, Cost::Settled]
            } else {
                &[Cost::Acknowledged]
            };
            for cost in costs {
                let estimate = self.ratio(&group.baseline, &arm.name, *cost)?;
                widest = widest.max(estimate.interval?.relative_half_width());
            }
        }
        Some(widest)
    }

    /// Space that `reference` takes divided by the space that `arm` takes, in allocated bytes.
    #[must_use]
    pub fn space_ratio(&self, reference: &str, arm: &str) -> Option<f64> {
        let footprints = &self.run.footprints;
        let reference = footprints.get(reference)?.allocated_bytes;
        let arm = footprints.get(arm)?.allocated_bytes;
        (arm > 0).then(|| reference as f64 / arm as f64)
    }

    /// All trials of an arm, whether they count or not.
    pub(crate) fn trials(&self, arm: &str) -> impl Iterator<Item = &'a Trial> {
        self.trials
            .get(arm)
            .cloned()
            .unwrap_or_default()
            .into_iter()
    }

    /// Noise floor of the group an arm is in, as a share; see
    /// [`crate::analysis::GroupAnalysis::noise_floor`].
    #[must_use]
    pub fn noise_floor_of(&self, arm: &str, cost: Cost) -> Option<f64> {
        let (group, _) = self.run.plan.arm(arm)?;
        self.noise_floor(group, cost)
    }

    pub(crate) fn noise_floor(&self, group: &Group, cost: Cost) -> Option<f64> {
        let twin = self.ratio(&group.baseline, &group.twin(), cost)?;
        noise_floor(&twin)
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
