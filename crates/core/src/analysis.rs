//! Analysis: what follows from the samples of a run. For every arm its cost and latencies, for
//! every chart its ratios with intervals and verdicts, for every claim a judgement. Reports only
//! put into words and pictures what stands here.

use crate::claims::{ClaimResult, judge_claims};
use crate::conclusion::conclude;
use crate::explanation::{Explained, ShareResult, explain, shares};
use crate::judgement::Judgements;
use crate::latencies::Latencies;
use crate::measurements::{ArmStatus, Cost, Measurements};
use crate::outliers::{Outliers, outliers};
use crate::plan::{Arm, Group};
use crate::run::{Footprint, Outcome, Run, Sample};
use crate::spending::Spending;
use crate::statistics::{RatioEstimate, median};
use crate::suite::{Chart, ChartKind};
use crate::verdict::Verdict;

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
    /// Where the time of some arms goes, in the order of the plan.
    pub explanations: Vec<Explained>,
    /// Answers about shares, in the order of the plan.
    pub shares: Vec<ShareResult>,
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
    /// Comparisons of its arms that were judged together.
    pub comparisons: usize,
    /// How its comparisons scatter, and what more slices or rounds would buy; `None` if it is not known.
    pub spending: Option<Spending>,
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
    /// Numbers of those rounds, from 0, in the same order.
    pub rounds: Vec<u32>,
    /// Trials that were kept but do not count, with their reason.
    pub left_out: Vec<String>,
    /// Slices of trials that do count which were not in the cache state they are labelled with:
    /// kept, not counted.
    pub slices_left_out: u32,
    /// Slices of trials that do count which are far from the others, and what the kernel says of them.
    pub outliers: Outliers,
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
    let measurements = Measurements::new(run);
    let judgements = Judgements::of(&measurements);
    let groups: Vec<GroupAnalysis> = run
        .plan
        .groups
        .iter()
        .map(|group| measurements.group(group, &judgements))
        .collect();
    let charts = run
        .plan
        .charts
        .iter()
        .map(|chart| measurements.chart(chart, &groups, &judgements))
        .collect();
    Analysis {
        claims: judge_claims(&run.plan.claims, &measurements),
        conclusion: conclude(&run.plan.conclusion, &measurements, &judgements),
        explanations: explain(&run.plan.explanations, &measurements),
        shares: shares(&run.plan.shares, &measurements),
        groups,
        charts,
    }
}

impl Measurements<'_> {
    fn group(&self, group: &Group, judgements: &Judgements) -> GroupAnalysis {
        let rounds: std::collections::BTreeSet<u32> = group
            .arms
            .iter()
            .flat_map(|arm| self.valid(&arm.name).map(|trial| trial.round))
            .collect();
        GroupAnalysis {
            name: group.name.clone(),
            noise_floor: self.noise_floor(group, Cost::Acknowledged),
            rounds: rounds.len() as u32,
            comparisons: judgements.family_size(&group.name),
            spending: Spending::of(self, group, rounds.len() as u32),
            arms: group.arms.iter().map(|arm| self.arm(arm)).collect(),
        }
    }

    fn arm(&self, arm: &Arm) -> ArmAnalysis {
        let (rounds, round_values_ns): (Vec<u32>, Vec<f64>) = self
            .numbered_round_values(&arm.name, Cost::Acknowledged)
            .into_iter()
            .unzip();
        let settles = arm.case.workload.writes();
        let settled = self.round_values(&arm.name, Cost::Settled);
        let samples = || self.valid(&arm.name).flat_map(|trial| self.counted(trial));
        let all_slices: usize = self.valid(&arm.name).map(|trial| trial.samples.len()).sum();
        // As floats: sums of a damaged run file's numbers must not overflow.
        let bytes: f64 = samples().map(|sample| sample.content_bytes as f64).sum();
        let elapsed_ns: f64 = samples().map(|sample| sample.elapsed_ns as f64).sum();
        let left_out = self.trials(&arm.name);
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
            outliers: self.outliers(arm),
            round_values_ns,
            rounds,
        }
    }

    fn outliers(&self, arm: &Arm) -> Outliers {
        let trials = self.valid(&arm.name);
        let samples: Vec<&[Sample]> = trials.map(|trial| trial.samples.as_slice()).collect();
        outliers(&samples, arm.case.cache)
    }

    fn chart(
        &self,
        chart: &Chart,
        groups: &[GroupAnalysis],
        judgements: &Judgements,
    ) -> ChartAnalysis {
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
            Some(self.row(chart, arm, judgements))
        });
        ChartAnalysis {
            rows: rows.collect(),
            chart: chart.clone(),
            noise_floor,
        }
    }

    fn row(&self, chart: &Chart, arm: &ArmAnalysis, judgements: &Judgements) -> ChartRow {
        let versus = |cost: Cost| -> Vec<Option<Compared>> {
            let references = chart.versus.iter();
            references
                .map(|versus| {
                    let found = judgements.compared(&versus.arm, &arm.name, cost)?;
                    Some(Compared {
                        estimate: found.0.clone(),
                        verdict: found.1,
                    })
                })
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
            footprint: self.run().footprints.get(&arm.name).copied(),
            arm: arm.clone(),
        }
    }
}
