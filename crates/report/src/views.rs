//! Views: which of the charts of [`mod@crate::svg`] a run has something to say for, and what goes into them. The
//! page and `--format svg` show the same ones. A view that has too little to show is `None`.

pub(crate) mod blob_sizes;
pub(crate) mod by_threads;
pub(crate) mod latency_curves;
pub(crate) mod round_values;
pub(crate) mod time_parts;
pub(crate) mod trade_off;

use sqlitmus_core::analysis::{Analysis, ArmAnalysis, ChartAnalysis};
use sqlitmus_core::dataset::SizeDistribution;
use sqlitmus_core::measurements::ArmStatus;
use sqlitmus_core::run::Run;

/// Whether an arm is what the reports of this program are about.
pub(crate) fn is_strong(run: &Run, arm: &str) -> bool {
    let planned = run.plan.arm(arm);
    planned.is_some_and(|(_, arm)| arm.case.engine == "sqlite")
}

/// The arms of a chart that have figures.
fn measured(chart: &ChartAnalysis) -> impl Iterator<Item = &ArmAnalysis> {
    let arms = chart.rows.iter().map(|row| &row.arm);
    arms.filter(|arm| arm.status == ArmStatus::Measured)
}

/// All arms with figures, each once, twins excepted.
fn arms<'a>(run: &'a Run, analysis: &'a Analysis) -> impl Iterator<Item = &'a ArmAnalysis> {
    let arms = analysis.groups.iter().flat_map(|group| &group.arms);
    arms.filter(|arm| arm.status == ArmStatus::Measured)
        .filter(|arm| {
            let planned = run.plan.arm(&arm.name);
            planned.is_some_and(|(_, planned)| !planned.is_twin())
        })
}

/// Bytes of a blob in the middle of its distribution.
fn typical_bytes(size: &SizeDistribution) -> f64 {
    match size {
        SizeDistribution::Fixed(bytes) => f64::from(*bytes),
        SizeDistribution::Uniform(low, high) => (f64::from(*low) + f64::from(*high)) / 2.0,
        SizeDistribution::LogNormal { median, .. } => f64::from(*median),
        SizeDistribution::Histogram(classes) => {
            let weights: f64 = classes.iter().map(|(_, weight)| *weight as f64).sum();
            let bytes = classes
                .iter()
                .map(|(bytes, weight)| f64::from(*bytes) * *weight as f64);
            bytes.sum::<f64>() / weights.max(1.0)
        }
    }
}
