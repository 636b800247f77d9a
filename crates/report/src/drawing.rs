//! `--format svg`: the charts of a run, one below the other, as one file.

use sqlitmus_core::analysis::Analysis;
use sqlitmus_core::run::Run;
use sqlitmus_core::suite::ChartKind;

use crate::grid::Grid;
use crate::html::bars;
use crate::html::side_by_side::picture;
use crate::side_by_side::{Analysed, SideBySide};
use crate::svg::{Chart, stacked_file};
use crate::views::{
    blob_sizes, explained_parts, latency_curves, readers, round_values, throughput, time_parts,
    trade_off,
};

/// Every chart of the suite, and of the first chart of time what lies behind it.
#[must_use]
pub fn svg(run: &Run, analysis: &Analysis) -> String {
    let mut charts: Vec<Box<dyn Chart>> = Vec::new();
    for (index, chart) in analysis.charts.iter().enumerate() {
        charts.push(Box::new(bars::picture(
            run,
            chart,
            &format!("chart-{}", index + 1),
        )));
    }
    let boxed = |chart| -> Box<dyn Chart> { Box::new(chart) };
    let explained = explained_parts::views(run, analysis, "explained");
    charts.extend(
        explained
            .into_iter()
            .map(|chart| Box::new(chart) as Box<dyn Chart>),
    );
    for (index, scaling) in crate::scaling::of(run).iter().enumerate() {
        charts.extend(readers::view(scaling, &format!("scaling-{}", index + 1)).map(boxed));
    }
    for (index, (group, measured)) in run.plan.groups.iter().zip(&analysis.groups).enumerate() {
        if crate::load::is_shown(group) {
            let id = format!("load-{}", index + 1);
            charts.extend(latency_curves::of_group(run, group, measured, &id).map(boxed));
        }
    }
    charts.extend(blob_sizes::curves(run, analysis, "sizes").map(boxed));
    if let Some(grid) = Grid::of(run, analysis) {
        charts.push(Box::new(blob_sizes::heat_map(&grid, "pages")));
        let packing = blob_sizes::packing(&grid, "packing");
        charts.extend(packing.map(|chart| Box::new(chart) as Box<dyn Chart>));
    }
    for view in crate::views::of_run(run, analysis) {
        charts.extend(view.charts.into_iter().map(|(chart, _)| chart));
    }
    charts.extend(throughput::all(run, analysis));
    let timed = analysis
        .charts
        .iter()
        .find(|chart| chart.chart.shows == ChartKind::Time);
    if let Some(chart) = timed {
        let mut add = |chart: Option<Box<dyn Chart>>| charts.extend(chart);
        add(latency_curves::view(run, chart, "latencies").map(boxed));
        add(round_values::view(run, chart, "rounds").map(|chart| Box::new(chart) as Box<dyn Chart>));
        add(time_parts::view(run, chart, "parts").map(|chart| Box::new(chart) as Box<dyn Chart>));
        add(trade_off::view(run, chart, "space").map(|chart| Box::new(chart) as Box<dyn Chart>));
    }
    let references: Vec<&dyn Chart> = charts.iter().map(AsRef::as_ref).collect();
    stacked_file(&references)
}

/// The grouped charts of several runs.
#[must_use]
pub fn svg_side_by_side(runs: &[Analysed<'_>]) -> String {
    let all = SideBySide::of(runs);
    let charts: Vec<_> = all
        .charts
        .iter()
        .enumerate()
        .map(|(index, chart)| picture(&all, chart, &format!("chart-{}", index + 1)))
        .collect();
    let references: Vec<&dyn Chart> = charts.iter().map(|chart| chart as &dyn Chart).collect();
    stacked_file(&references)
}
