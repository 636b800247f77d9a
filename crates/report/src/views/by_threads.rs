//! Operations a second by number of threads: one curve for arms that differ in nothing else.

use std::collections::BTreeMap;

use sqlitmus_core::analysis::GroupAnalysis;
use sqlitmus_core::measurements::ArmStatus;
use sqlitmus_core::plan::{Arm, Group};
use sqlitmus_core::run::Run;
use sqlitmus_core::units::format_count;

use crate::oltp::rate;
use crate::summary::named;
use crate::svg::{Axis, LineChart, Point, Scale, Series, plain};

/// The curves of a group; `None` without arms that have several numbers of threads.
pub(crate) fn view(
    run: &Run,
    group: &Group,
    measured: &GroupAnalysis,
    id: &str,
) -> Option<LineChart> {
    let mut order = Vec::new();
    let mut families: BTreeMap<&str, Vec<(u32, f64, &Arm)>> = BTreeMap::new();
    for (arm, analysed) in group.arms.iter().zip(&measured.arms) {
        let Some((family, threads)) = family(arm) else {
            continue;
        };
        let per_second = rate(run, arm, analysed).per_second();
        if analysed.status != ArmStatus::Measured || !per_second.is_finite() {
            continue;
        }
        if !families.contains_key(family) {
            order.push(family);
        }
        let points = families.entry(family).or_default();
        points.push((threads, per_second, arm));
    }
    families.retain(|_, points| points.len() > 1);
    let series: Vec<Series> = order
        .into_iter()
        .filter_map(|name| families.get(name))
        .map(|points| {
            let mut points = points.clone();
            points.sort_by_key(|(threads, ..)| *threads);
            let (.., arm) = points[0];
            Series {
                label: curve_label(arm),
                strong: points.iter().any(|(.., arm)| arm.name == group.baseline),
                published: false,
                points: points
                    .iter()
                    .map(|(threads, per_second, _)| Point {
                        x: f64::from(*threads),
                        y: *per_second,
                        interval: None,
                    })
                    .collect(),
            }
        })
        .collect();
    (!series.is_empty()).then(|| LineChart {
        id: id.to_owned(),
        title: "Operations a second by number of threads".to_owned(),
        x: Axis::new("threads", Scale::Logarithmic, plain),
        y: Axis::new("operations a second", Scale::Linear, whole),
        reference: None,
        marked: Vec::new(),
        series,
    })
}

/// The name that arms share which differ in the number of threads, and that number. A plan calls them
/// `NAME-THREADS`.
fn family(arm: &Arm) -> Option<(&str, u32)> {
    if arm.is_twin() {
        return None;
    }
    let (family, threads) = arm.name.rsplit_once('-')?;
    Some((family, threads.parse().ok()?))
}

/// The label without its number of threads.
fn curve_label(arm: &Arm) -> String {
    let label = arm
        .label
        .rsplit_once(", ")
        .map_or(&*arm.label, |(label, _)| label);
    named(label, &named(&arm.name, "(without a name)"))
}

fn whole(value: f64) -> String {
    format_count(value.max(0.0).round() as u64)
}
