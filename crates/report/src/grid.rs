//! Ratios by size of blobs and pages as a grid, for every format: ours with their intervals, those
//! inside the noise floor marked; the published ones; what a byte of content takes on disk, computed
//! and measured; and for each page size the size of blobs at which the answer turns.

use std::collections::{BTreeMap, BTreeSet};

use sqlitmus_core::analysis::{Analysis, ChartAnalysis};
use sqlitmus_core::case::Case;
use sqlitmus_core::crossover::{Crossover, Curve, SizePoint};
use sqlitmus_core::dataset::SizeDistribution;
use sqlitmus_core::measurements::{Cost, Measurements};
use sqlitmus_core::packing;
use sqlitmus_core::run::Run;
use sqlitmus_core::units::{format_bytes, format_ratio};

use crate::figures::bare_ratio;
use crate::text::{fit, right, wrap};
use crate::views::blob_sizes::{
    Found, LEAST_SIZES, PAGE_SIZE, family, found, page_size, size_point, sizes,
};

/// The grid of a run.
pub(crate) struct Grid {
    /// Page sizes, ascending: a row each.
    pub(crate) rows: Vec<u64>,
    /// Sizes of blobs, ascending: a column each.
    pub(crate) columns: Vec<u64>,
    /// Cells by row, then column.
    pub(crate) cells: Vec<Vec<Option<GridCell>>>,
    /// For each row where the answer turns.
    pub(crate) crossovers: Vec<Option<Crossover>>,
    /// Names of the arms that are cells, and of their baselines.
    arms: BTreeSet<String>,
}

/// One cell.
pub(crate) struct GridCell {
    /// Time of the baseline divided by time of the arm.
    pub(crate) ratio: f64,
    /// The same with its interval.
    pub(crate) words: String,
    /// It is no farther from 1 than identical arms are, or its interval includes 1.
    pub(crate) is_noise: bool,
    /// What somebody published for it.
    pub(crate) published: Option<f64>,
    /// Bytes on disk for a byte of content, by the file format.
    pub(crate) packing_computed: Option<f64>,
    /// The same, as allocated on this disk.
    pub(crate) packing_measured: Option<f64>,
}

impl GridCell {
    /// The ratio, marked if it is not to be taken for a difference.
    pub(crate) fn text(&self) -> String {
        let mark = if self.is_noise { "~" } else { "" };
        format!("{mark}{}", format_ratio(self.ratio))
    }

    /// Computed and measured, as far as they are known.
    pub(crate) fn packing(&self) -> Option<String> {
        let text = |share: f64| format!("{share:.2}");
        match (self.packing_computed, self.packing_measured) {
            (Some(computed), Some(measured)) => {
                Some(format!("{}/{}", text(computed), text(measured)))
            }
            (Some(computed), None) => Some(format!("{}/-", text(computed))),
            (None, Some(measured)) => Some(format!("-/{}", text(measured))),
            (None, None) => None,
        }
    }
}

impl Grid {
    /// The grid of a run that has arms which differ in both sizes; of several the largest.
    pub(crate) fn of(run: &Run, analysis: &Analysis) -> Option<Self> {
        let found = found(run, analysis);
        let mut families: BTreeMap<String, Vec<&Found<'_>>> = BTreeMap::new();
        for arm in found.iter().filter(|arm| page_size(arm.case).is_some()) {
            let family = family(arm.case, Some(PAGE_SIZE));
            families.entry(family).or_default().push(arm);
        }
        let pages = |arms: &[&Found<'_>]| -> BTreeSet<u64> {
            arms.iter().filter_map(|arm| page_size(arm.case)).collect()
        };
        let arms = families
            .into_values()
            .filter(|arms| pages(arms).len() > 1 && sizes(arms).len() >= LEAST_SIZES)
            .max_by_key(Vec::len)?;
        let rows: Vec<u64> = pages(&arms).into_iter().collect();
        let columns: Vec<u64> = sizes(&arms).into_iter().collect();
        let measurements = Measurements::new(run);
        let at = |row: u64, column: u64| {
            let mut arms = arms.iter();
            arms.find(|arm| page_size(arm.case) == Some(row) && arm.bytes as u64 == column)
        };
        let of_row = |row: &u64| -> Vec<Option<GridCell>> {
            let columns = columns.iter();
            columns
                .map(|column| at(*row, *column).map(|arm| cell(run, &measurements, arm)))
                .collect()
        };
        let crossover = |row: &u64| {
            let points: Vec<SizePoint> = columns
                .iter()
                .filter_map(|column| size_point(run, &measurements, at(*row, *column)?))
                .collect();
            Curve::new(&points).map(|curve| curve.crossover())
        };
        let baselines = arms
            .iter()
            .filter_map(|arm| Some(run.plan.arm(arm.name)?.0.baseline.clone()));
        Some(Self {
            cells: rows.iter().map(of_row).collect(),
            crossovers: rows.iter().map(crossover).collect(),
            arms: arms
                .iter()
                .map(|arm| arm.name.to_owned())
                .chain(baselines)
                .collect(),
            rows,
            columns,
        })
    }

    /// Whether a chart shows nothing but what is in the grid too.
    pub(crate) fn covers(&self, chart: &ChartAnalysis) -> bool {
        let arms = &chart.chart.arms;
        !arms.is_empty() && arms.iter().all(|arm| self.arms.contains(arm))
    }

    /// Whether any cell has something.
    pub(crate) fn has(&self, what: impl Fn(&GridCell) -> bool) -> bool {
        self.cells.iter().flatten().flatten().any(what)
    }

    /// The answer for each page size.
    pub(crate) fn answers(&self) -> Vec<String> {
        let rows = self.rows.iter().zip(&self.crossovers);
        rows.filter_map(|(row, crossover)| {
            Some(format!(
                "Pages of {row}: {}.",
                crossover.as_ref()?.in_words()
            ))
        })
        .collect()
    }

    /// Headings of the columns.
    pub(crate) fn headings(&self) -> Vec<String> {
        let columns = self.columns.iter();
        columns.map(|bytes| format_bytes(*bytes)).collect()
    }

    /// The tables with their titles, each with a text for every cell.
    pub(crate) fn tables(&self) -> Vec<(String, Vec<Vec<String>>)> {
        let table = |text: &dyn Fn(&GridCell) -> Option<String>| -> Vec<Vec<String>> {
            let of_row = |row: &Vec<Option<GridCell>>| -> Vec<String> {
                row.iter()
                    .map(|cell| cell.as_ref().and_then(text).unwrap_or_default())
                    .collect()
            };
            self.cells.iter().map(of_row).collect()
        };
        let mut tables = vec![(
            "Times as fast as the baseline, by size of pages and blobs (~ inside the noise)"
                .to_owned(),
            table(&|cell| Some(cell.text())),
        )];
        if self.has(|cell| cell.published.is_some()) {
            tables.push((
                "The same as published".to_owned(),
                table(&|cell| cell.published.map(bare_ratio)),
            ));
        }
        if self.has(|cell| cell.packing().is_some()) {
            tables.push((
                "Bytes on disk for a byte of content, computed/measured".to_owned(),
                table(&GridCell::packing),
            ));
        }
        tables
    }

    /// The tables and answers for a terminal, none wider than `columns`.
    pub(crate) fn paragraphs(&self, columns: usize) -> Vec<Vec<String>> {
        const LABEL: usize = 6;
        let tables = self.tables();
        let texts = tables.iter().flat_map(|(_, rows)| rows).flatten();
        let headings = self.headings();
        let longest = texts.chain(&headings).map(|text| text.chars().count());
        let width = longest.max().unwrap_or(0) + 2;
        let line = |label: &str, cells: &[String]| {
            let cells: String = cells.iter().map(|cell| right(cell, width)).collect();
            fit(&format!("{}{cells}", right(label, LABEL)), columns)
        };
        let mut paragraphs: Vec<Vec<String>> = tables
            .iter()
            .map(|(title, rows)| {
                let mut lines = vec![fit(title, columns), line("page", &headings)];
                let rows = self.rows.iter().zip(rows);
                lines.extend(rows.map(|(row, cells)| line(&row.to_string(), cells)));
                lines
            })
            .collect();
        let answers = self.answers();
        let answers = answers.iter().flat_map(|answer| wrap(answer, columns));
        paragraphs.push(answers.collect());
        paragraphs
    }
}

fn cell(run: &Run, measurements: &Measurements<'_>, arm: &Found<'_>) -> GridCell {
    let floor = measurements
        .noise_floor_of(arm.name, Cost::Acknowledged)
        .unwrap_or(0.0);
    let includes_one = arm
        .interval
        .is_none_or(|(low, high)| low <= 1.0 && 1.0 <= high);
    let mut published = run.plan.charts.iter().flat_map(|chart| &chart.published);
    GridCell {
        ratio: arm.ratio,
        words: arm.words.clone(),
        is_noise: includes_one || arm.ratio.ln().abs() <= floor.ln_1p(),
        published: published
            .find(|published| published.arm == arm.name)
            .map(|published| published.ratio),
        packing_computed: computed(arm.case),
        packing_measured: run.footprints.get(arm.name).and_then(|footprint| {
            let content = footprint.content_bytes;
            (content > 0).then(|| footprint.allocated_bytes as f64 / content as f64)
        }),
    }
}

/// Of the table that the file format's figures are worked out for.
fn computed(case: &Case) -> Option<f64> {
    let SizeDistribution::Fixed(bytes) = case.dataset.size else {
        return None;
    };
    let is_known = case.engine == "sqlite" && case.settings.get("layout") == Some("rowid");
    let page_bytes = page_size(case).filter(|_| is_known)?;
    Some(packing::overhead(
        page_bytes,
        bytes.into(),
        case.dataset.count,
    ))
}
