//! What the size of the blobs changes: arms that are the same but for their dataset are points of one curve,
//! each against the baseline at its own size. Where the curves cross 1, the answer changes. Arms that differ
//! in the page size too make a heat map.

use std::collections::{BTreeMap, BTreeSet};

use sqlitmus_core::analysis::Analysis;
use sqlitmus_core::case::Case;
use sqlitmus_core::measurements::{Cost, Measurements};
use sqlitmus_core::run::Run;
use sqlitmus_core::units::format_ratio;

use crate::figures::{bare_ratio, judged_plainly};
use crate::summary::label;
use crate::svg::{Axis, Cell, HeatMap, HeatPanel, LineChart, Point, Scale, Series, bytes, ratio};

use super::{arms, is_strong, typical_bytes};

/// A curve of fewer sizes is none.
const LEAST_SIZES: usize = 3;

/// The setting that makes the rows of a heat map.
const PAGE_SIZE: &str = "page_size";

/// An arm against the baseline of its group.
struct Found<'a> {
    name: &'a str,
    label: String,
    case: &'a Case,
    bytes: f64,
    reference: String,
    ratio: f64,
    interval: Option<(f64, f64)>,
    words: String,
}

/// Ratios by blob size, one curve for arms that differ in nothing else.
pub(crate) fn curves(run: &Run, analysis: &Analysis, id: &str) -> Option<LineChart> {
    let found = found(run, analysis);
    let reference = most_common_reference(&found)?;
    let mut families: BTreeMap<String, Vec<&Found<'_>>> = BTreeMap::new();
    for arm in found.iter().filter(|arm| arm.reference == reference) {
        families
            .entry(family(arm.case, None))
            .or_default()
            .push(arm);
    }
    let mut series: Vec<Series> = families
        .into_values()
        .filter(|arms| sizes(arms).len() >= LEAST_SIZES)
        .map(|mut arms| {
            arms.sort_by(|one, other| one.bytes.total_cmp(&other.bytes));
            arms.dedup_by(|one, other| one.bytes == other.bytes);
            let points = arms.iter().map(|arm| Point {
                x: arm.bytes,
                y: arm.ratio,
                interval: arm.interval,
            });
            Series {
                label: arms[0].label.clone(),
                strong: is_strong(run, arms[0].name),
                published: false,
                points: points.collect(),
            }
        })
        .collect();
    series.sort_by(|one, other| one.label.cmp(&other.label));
    (!series.is_empty()).then(|| LineChart {
        id: id.to_owned(),
        title: "By size of the blobs".to_owned(),
        x: Axis::new("bytes of a blob", Scale::Logarithmic, bytes),
        y: Axis::new("times as fast as the baseline", Scale::Logarithmic, ratio),
        marked: Vec::new(),
        reference: Some((1.0, "as fast as the baseline".to_owned())),
        series,
    })
}

/// Ratios by blob size and page size, with the published ones beside them.
pub(crate) fn heat_map(run: &Run, analysis: &Analysis, id: &str) -> Option<HeatMap> {
    let found = found(run, analysis);
    let mut families: BTreeMap<String, Vec<&Found<'_>>> = BTreeMap::new();
    for arm in found.iter().filter(|arm| page_size(arm.case).is_some()) {
        families
            .entry(family(arm.case, Some(PAGE_SIZE)))
            .or_default()
            .push(arm);
    }
    let pages = |arms: &[&Found<'_>]| -> BTreeSet<u64> {
        arms.iter().filter_map(|arm| page_size(arm.case)).collect()
    };
    let arms = families
        .into_values()
        .filter(|arms| pages(arms).len() > 1 && sizes(arms).len() >= LEAST_SIZES)
        .max_by_key(Vec::len)?;
    let (rows, columns): (Vec<u64>, Vec<u64>) = (
        pages(&arms).into_iter().collect(),
        sizes(&arms).into_iter().collect(),
    );
    let at = |row: u64, column: u64| {
        let mut arms = arms.iter();
        arms.find(|arm| page_size(arm.case) == Some(row) && arm.bytes as u64 == column)
    };
    let table = |cell: &dyn Fn(&Found<'_>) -> Option<Cell>| -> Vec<Vec<Option<Cell>>> {
        let row = |row: &u64| {
            let cells = columns.iter();
            cells
                .map(|column| at(*row, *column).and_then(|arm| cell(arm)))
                .collect()
        };
        rows.iter().map(row).collect()
    };
    let ours = table(&|arm| {
        Some(Cell {
            ratio: arm.ratio,
            text: format_ratio(arm.ratio),
            hover: arm.words.clone(),
        })
    });
    let published = table(&|arm| {
        let mut charts = run.plan.charts.iter().flat_map(|chart| &chart.published);
        let published = charts.find(|published| published.arm == arm.name)?;
        Some(Cell {
            ratio: published.ratio,
            text: bare_ratio(published.ratio),
            hover: format!("published {}", bare_ratio(published.ratio)),
        })
    });
    let mut panels = vec![HeatPanel {
        title: "This machine".to_owned(),
        cells: ours,
    }];
    if published.iter().flatten().any(Option::is_some) {
        panels.push(HeatPanel {
            title: "Published".to_owned(),
            cells: published,
        });
    }
    Some(HeatMap {
        id: id.to_owned(),
        title: "By size of blobs and pages".to_owned(),
        rows_heading: "page size".to_owned(),
        columns_heading: "blob size".to_owned(),
        rows: rows.iter().map(u64::to_string).collect(),
        columns: columns.iter().map(|size| bytes(*size as f64)).collect(),
        panels,
    })
}

/// Every measured arm that has a ratio to the baseline of its group.
fn found<'a>(run: &'a Run, analysis: &'a Analysis) -> Vec<Found<'a>> {
    let sizes = run.plan.groups.iter().flat_map(|group| &group.arms);
    let sizes: BTreeSet<u64> = sizes
        .map(|arm| typical_bytes(&arm.case.dataset.size) as u64)
        .collect();
    if sizes.len() < LEAST_SIZES {
        return Vec::new();
    }
    let measurements = Measurements::new(run);
    arms(run, analysis)
        .filter_map(|arm| {
            let (group, planned) = run.plan.arm(&arm.name)?;
            let (_, baseline) = run.plan.arm(&group.baseline)?;
            let estimate = (group.baseline != arm.name)
                .then(|| measurements.ratio(&group.baseline, &arm.name, Cost::Acknowledged))??;
            (estimate.ratio.is_finite() && estimate.ratio > 0.0).then(|| Found {
                name: &planned.name,
                label: label(arm),
                case: &planned.case,
                bytes: typical_bytes(&planned.case.dataset.size),
                reference: family(&baseline.case, None),
                ratio: estimate.ratio,
                interval: estimate.interval.map(|ends| (ends.low, ends.high)),
                words: judged_plainly(&estimate),
            })
        })
        .collect()
}

/// What is left of a case without its dataset and, if asked, without a setting.
fn family(case: &Case, without: Option<&str>) -> String {
    let chosen = case
        .chosen
        .iter()
        .filter(|(name, _)| Some(*name) != without);
    let chosen: Vec<String> = chosen
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    format!(
        "{} {} {} {} {}",
        case.workload.verb(),
        case.engine,
        chosen.join(","),
        case.durability,
        case.cache
    )
}

fn sizes(arms: &[&Found<'_>]) -> BTreeSet<u64> {
    arms.iter().map(|arm| arm.bytes as u64).collect()
}

fn page_size(case: &Case) -> Option<u64> {
    case.settings.get(PAGE_SIZE)?.parse().ok()
}

fn most_common_reference(found: &[Found<'_>]) -> Option<String> {
    let mut references: BTreeMap<&str, BTreeSet<u64>> = BTreeMap::new();
    for arm in found {
        references
            .entry(&arm.reference)
            .or_default()
            .insert(arm.bytes as u64);
    }
    let most = references
        .into_iter()
        .max_by_key(|(_, sizes)| sizes.len())?;
    Some(most.0.to_owned())
}
