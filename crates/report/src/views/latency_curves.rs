//! Latencies of single operations by percentile, one curve an arm.

use sqlitmus_core::analysis::{ArmAnalysis, ChartAnalysis, GroupAnalysis};
use sqlitmus_core::measurements::ArmStatus;
use sqlitmus_core::plan::Group;
use sqlitmus_core::run::Run;

use crate::summary::label;
use crate::svg::{Axis, LineChart, Point, Scale, Series, plain};

use super::{is_strong, measured};

/// Percentiles that a curve goes through.
const SHARES: [f64; 14] = [
    0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999, 0.9995, 0.9999, 0.99999,
];

/// The curves of a chart's arms.
pub(crate) fn view(run: &Run, chart: &ChartAnalysis, id: &str) -> Option<LineChart> {
    curves(run, measured(chart).map(|arm| (label(arm), arm)), id)
}

/// The curves of a group's arms, twins excepted.
pub(crate) fn of_group(
    run: &Run,
    group: &Group,
    measured: &GroupAnalysis,
    id: &str,
) -> Option<LineChart> {
    let arms = group.arms.iter().zip(&measured.arms);
    let arms = arms.filter(|(arm, found)| !arm.is_twin() && found.status == ArmStatus::Measured);
    let arms: Vec<(String, &ArmAnalysis)> = arms
        .map(|(arm, found)| (crate::load::curve_label(group, arm, found), found))
        .collect();
    curves(run, arms.into_iter(), id)
}

fn curves<'a>(
    run: &Run,
    arms: impl Iterator<Item = (String, &'a ArmAnalysis)>,
    id: &str,
) -> Option<LineChart> {
    let series: Vec<Series> = arms
        .filter(|(_, arm)| arm.latencies.count() > 1)
        .map(|(label, arm)| {
            let count = arm.latencies.count() as f64;
            // Beyond what so many operations can tell there is only the largest.
            let told = SHARES.iter().filter(|share| (1.0 - **share) * count >= 1.0);
            let points = told.chain([&1.0]).filter_map(|share| {
                Some(Point {
                    x: *share,
                    y: arm.latencies.quantile_ns(*share)? as f64 / 1e3,
                    interval: None,
                })
            });
            Series {
                label,
                strong: is_strong(run, &arm.name),
                published: false,
                points: points.collect(),
            }
        })
        .collect();
    (!series.is_empty()).then(|| LineChart {
        id: id.to_owned(),
        title: "Latencies by percentile".to_owned(),
        x: Axis::new(
            "percentile of single operations",
            Scale::Nines,
            crate::svg::percentile,
        ),
        y: Axis::new("microseconds", Scale::Logarithmic, plain),
        reference: None,
        marked: vec![0.5, 0.9, 0.99, 0.999],
        crossings: Vec::new(),
        series,
    })
}
