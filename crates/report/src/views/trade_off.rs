//! Time and space at once: which arms nothing beats in both.

use sqlitmus_core::analysis::ChartAnalysis;
use sqlitmus_core::run::Run;

use crate::summary::label;
use crate::svg::{Axis, Scale, Scatter, ScatterPoint, plain};

use super::{is_strong, measured};

/// With fewer arms there is nothing to choose from.
const LEAST_ARMS: usize = 3;

/// The arms of a chart of time whose space is known.
pub(crate) fn view(run: &Run, chart: &ChartAnalysis, id: &str) -> Option<Scatter> {
    let points: Vec<ScatterPoint> = measured(chart)
        .filter_map(|arm| {
            let footprint = run.footprints.get(&arm.name)?;
            let content = (footprint.content_bytes > 0).then_some(footprint.content_bytes)?;
            let ns = arm.operation_ns.filter(|ns| ns.is_finite() && *ns > 0.0)?;
            (footprint.allocated_bytes > 0).then(|| ScatterPoint {
                label: label(arm),
                strong: is_strong(run, &arm.name),
                x: footprint.allocated_bytes as f64 / content as f64,
                y: ns / 1e3,
                area: None,
                tier: 0,
            })
        })
        .collect();
    (points.len() >= LEAST_ARMS).then(|| Scatter {
        id: id.to_owned(),
        title: "Time and space at once".to_owned(),
        x: Axis::new("bytes on disk per byte of content", Scale::Linear, plain),
        y: Axis::new("microseconds per blob", Scale::Logarithmic, plain),
        further: None,
        points,
    })
}
