//! What the size of the blobs changes: arms that are the same but for their dataset are points of one curve,
//! each against the baseline at its own size. Where the curves cross 1, the answer changes. Arms that differ
//! in the page size too make a heat map, whose figures are [`crate::grid`]'s.

use std::collections::{BTreeMap, BTreeSet};

use sqlitmus_core::analysis::Analysis;
use sqlitmus_core::case::Case;
use sqlitmus_core::crossover::{Crossover, Curve, SizePoint};
use sqlitmus_core::measurements::{Cost, Measurements};
use sqlitmus_core::run::Run;

use crate::figures::{bare_ratio, judged_plainly};
use crate::grid::{Grid, GridCell};
use crate::summary::label;
use crate::svg::{
    Axis, Cell, CrossingMark, HeatMap, HeatPanel, LineChart, Point, Scale, Series, bytes, ratio,
};

use super::{arms, is_strong, typical_bytes};

/// A curve of fewer sizes is none.
pub(crate) const LEAST_SIZES: usize = 3;

/// The setting that makes the rows of a heat map.
pub(crate) const PAGE_SIZE: &str = "page_size";

/// An arm against the baseline of its group.
pub(crate) struct Found<'a> {
    pub(crate) name: &'a str,
    label: String,
    pub(crate) case: &'a Case,
    pub(crate) bytes: f64,
    reference: String,
    pub(crate) ratio: f64,
    pub(crate) interval: Option<(f64, f64)>,
    pub(crate) words: String,
}

/// Ratios by blob size, one curve for arms that differ in nothing else.
pub(crate) fn curves(run: &Run, analysis: &Analysis, id: &str) -> Option<LineChart> {
    let found = found(run, analysis);
    let reference = most_common_reference(&found)?;
    // In the plan's order.
    let mut families: Vec<(String, Vec<&Found<'_>>)> = Vec::new();
    for arm in found.iter().filter(|arm| arm.reference == reference) {
        let own = family(arm.case, None);
        match families.iter_mut().find(|(known, _)| *known == own) {
            Some((_, arms)) => arms.push(arm),
            None => families.push((own, vec![arm])),
        }
    }
    let measurements = Measurements::new(run);
    let series: Vec<(Series, Option<Crossover>)> = families
        .into_iter()
        .filter(|(_, arms)| sizes(arms).len() >= LEAST_SIZES)
        .map(|(_, mut arms)| {
            arms.sort_by(|one, other| one.bytes.total_cmp(&other.bytes));
            arms.dedup_by(|one, other| one.bytes == other.bytes);
            let points = arms.iter().map(|arm| Point {
                x: arm.bytes,
                y: arm.ratio,
                interval: arm.interval,
            });
            let series = Series {
                label: arms[0].label.clone(),
                strong: is_strong(run, arms[0].name),
                published: false,
                points: points.collect(),
            };
            let sizes = arms
                .iter()
                .filter_map(|arm| size_point(run, &measurements, arm));
            let curve = Curve::new(&sizes.collect::<Vec<_>>());
            (series, curve.map(|curve| curve.crossover()))
        })
        .collect();
    let crossovers = series.iter().enumerate();
    let crossings = crossovers
        .filter_map(|(place, (_, crossover))| Some((place, crossover.as_ref()?)))
        .flat_map(|(place, crossover)| marks(place, crossover))
        .collect();
    let series: Vec<Series> = series.into_iter().map(|(series, _)| series).collect();
    (!series.is_empty()).then(|| LineChart {
        id: id.to_owned(),
        title: "By size of the blobs".to_owned(),
        x: Axis::new("bytes of a blob", Scale::Logarithmic, bytes),
        y: Axis::new("times as fast as the baseline", Scale::Logarithmic, ratio),
        marked: Vec::new(),
        crossings,
        reference: Some((1.0, "as fast as the baseline".to_owned())),
        series,
    })
}

/// The crossings of a curve that is at a place among the series.
pub(crate) fn marks(
    series: usize,
    crossover: &Crossover,
) -> impl Iterator<Item = CrossingMark> + '_ {
    let crossings = crossover.crossings.iter();
    crossings.map(move |crossing| CrossingMark {
        series,
        x: crossing.bytes,
        interval: (crossing.interval.low, crossing.interval.high),
    })
}

/// What an arm says of its size, for the crossover.
pub(crate) fn size_point(
    run: &Run,
    measurements: &Measurements<'_>,
    arm: &Found<'_>,
) -> Option<SizePoint> {
    let (group, _) = run.plan.arm(arm.name)?;
    let cost = Cost::Acknowledged;
    SizePoint::of(measurements, &group.baseline, arm.name, arm.bytes, cost)
}

/// Ratios by blob size and page size, with the published ones beside them.
pub(crate) fn heat_map(grid: &Grid, id: &str) -> HeatMap {
    let mut panels = vec![panel(grid, "This machine", |cell| {
        let noise = if cell.is_noise {
            ", inside the noise"
        } else {
            ""
        };
        Some(Cell {
            ratio: cell.ratio,
            text: cell.text(),
            hover: format!("{}{noise}", cell.words),
        })
    })];
    if grid.has(|cell| cell.published.is_some()) {
        panels.push(panel(grid, "Published", |cell| {
            let published = bare_ratio(cell.published?);
            Some(Cell {
                ratio: cell.published?,
                hover: format!("published {published}"),
                text: published,
            })
        }));
    }
    with_panels(grid, id, "By size of blobs and pages", panels)
}

/// Bytes on disk for a byte of content, computed and measured. The colour is that of its inverse: what
/// takes more is orange.
pub(crate) fn packing(grid: &Grid, id: &str) -> Option<HeatMap> {
    let of = |title: &str, share: fn(&GridCell) -> Option<f64>| {
        panel(grid, title, |cell| {
            let share = share(cell)?;
            Some(Cell {
                ratio: 1.0 / share,
                text: format!("{share:.2}"),
                hover: format!("{share:.3} bytes on disk for a byte of content"),
            })
        })
    };
    let computed: fn(&GridCell) -> Option<f64> = |cell| cell.packing_computed;
    let measured: fn(&GridCell) -> Option<f64> = |cell| cell.packing_measured;
    let panels: Vec<HeatPanel> = [
        ("Computed from the file format", computed),
        ("Measured, as allocated", measured),
    ]
    .into_iter()
    .filter(|(_, share)| grid.has(|cell| share(cell).is_some()))
    .map(|(title, share)| of(title, share))
    .collect();
    let title = "Bytes on disk for a byte of content";
    (!panels.is_empty()).then(|| with_panels(grid, id, title, panels))
}

fn panel(grid: &Grid, title: &str, cell: impl Fn(&GridCell) -> Option<Cell>) -> HeatPanel {
    let of_row = |row: &Vec<Option<GridCell>>| -> Vec<Option<Cell>> {
        let cells = row.iter();
        cells.map(|found| cell(found.as_ref()?)).collect()
    };
    HeatPanel {
        title: title.to_owned(),
        cells: grid.cells.iter().map(of_row).collect(),
    }
}

fn with_panels(grid: &Grid, id: &str, title: &str, panels: Vec<HeatPanel>) -> HeatMap {
    HeatMap {
        id: id.to_owned(),
        title: title.to_owned(),
        rows_heading: "page size".to_owned(),
        columns_heading: "blob size".to_owned(),
        rows: grid.rows.iter().map(u64::to_string).collect(),
        columns: grid
            .columns
            .iter()
            .map(|size| bytes(*size as f64))
            .collect(),
        panels,
    }
}

/// Every measured arm that has a ratio to the baseline of its group.
pub(crate) fn found<'a>(run: &'a Run, analysis: &'a Analysis) -> Vec<Found<'a>> {
    let sizes = run.plan.groups.iter().flat_map(|group| &group.arms);
    let sizes: BTreeSet<u64> = sizes
        .map(|arm| typical_bytes(&arm.case.dataset.size) as u64)
        .collect();
    // An advice is about the sizes that somebody's files have, and says itself what they change.
    if sizes.len() < LEAST_SIZES || run.plan.advice.is_some() {
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
pub(crate) fn family(case: &Case, without: Option<&str>) -> String {
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

pub(crate) fn sizes(arms: &[&Found<'_>]) -> BTreeSet<u64> {
    arms.iter().map(|arm| arm.bytes as u64).collect()
}

pub(crate) fn page_size(case: &Case) -> Option<u64> {
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
