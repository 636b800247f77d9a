//! Views: which of the charts of [`mod@crate::svg`] a run has something to say for, and what goes into them. The
//! page and `--format svg` show the same ones. A view that has too little to show is `None`.
//!
//! # How to add one
//!
//! 1. A file here, with a function from [`Run`] and [`Analysis`] to [`View`]s: find out by the plan (workload, engine,
//!    settings; not by the suite's name) whether there is something to show, and fill components of
//!    [`mod@crate::svg`] with it. Texts of the run are cleaned ([`crate::text::clean`], [`crate::summary::label`]);
//!    numbers that are none may be handed over, components leave them out.
//! 2. A line in [`of_run`]. The page makes a section of each view, with its numbers and what saves them; `--format
//!    svg` draws its charts.
//! 3. A test in `tests/charts.rs` that the figures of a run are in it. That nothing breaks out of it is tested in
//!    `tests/robustness.rs` for all views, if the hostile run there has something for it to show.
//!
//! What the terminal says of the same is a module beside [`crate::resources`], called from `terminal.rs`.

pub(crate) mod blob_sizes;
pub(crate) mod device_reads;
pub(crate) mod explained_parts;
pub(crate) mod latency_curves;
pub(crate) mod lifecycle;
pub(crate) mod readers;
pub(crate) mod round_values;
pub(crate) mod throughput;
pub(crate) mod time_parts;
pub(crate) mod trade_off;

use sqlitmus_core::analysis::{Analysis, ArmAnalysis, ChartAnalysis};
use sqlitmus_core::dataset::SizeDistribution;
use sqlitmus_core::measurements::ArmStatus;
use sqlitmus_core::run::Run;

use crate::svg::Chart;

/// Charts that belong together: a section of the page.
pub(crate) struct View {
    /// Identity in the page: letters, digits and hyphens, no other view's.
    pub(crate) id: String,
    /// Heading; cleaned.
    pub(crate) heading: String,
    /// How to read it: a sentence or two; may be empty. Cleaned.
    pub(crate) about: String,
    /// Each with a legend, which may be empty.
    pub(crate) charts: Vec<(Box<dyn Chart>, &'static str)>,
}

/// The views of a run that stand in sections of their own, below the charts of its suite.
pub(crate) fn of_run(run: &Run, analysis: &Analysis) -> Vec<View> {
    let mut views = Vec::new();
    views.extend(device_reads::views(run, analysis));
    views.extend(lifecycle::views(run));
    views.retain(|view| !view.charts.is_empty());
    views
}

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
        SizeDistribution::Files(files) => {
            let mut sorted = files.bytes.clone();
            sorted.sort_unstable();
            sorted.get(sorted.len() / 2).copied().map_or(0.0, f64::from)
        }
    }
}
