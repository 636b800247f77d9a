//! Charts of space: what the stores take on disk.

use sqlitmus_core::analysis::{ChartAnalysis, ChartRow};
use sqlitmus_core::run::{Footprint, Run};
use sqlitmus_core::units::{format_bytes, format_count, format_ratio};

use crate::figures::{DASH, bare_ratio, percent};
use crate::space::{overhead, times_as_small};
use crate::summary::{label, published_of, trouble};

use super::ink::Tone;
use super::table::{Body, Cell, Column, Row, Table};
use super::time_chart::{title, versus_heading};

/// Lays out a chart of space; counts of files are left out first where the terminal is narrow.
pub(super) fn table(run: &Run, chart: &ChartAnalysis, columns: usize) -> Table {
    let mut chosen = Table::default();
    for (files, machines) in [(true, true), (true, false), (false, false)] {
        chosen = with(run, chart, files, machines);
        if chosen.fits(columns) {
            break;
        }
    }
    chosen
}

fn with(run: &Run, chart: &ChartAnalysis, files: bool, machines: bool) -> Table {
    let column = |heading: &[&str], gap| Column {
        heading: heading.iter().map(|&line| line.to_owned()).collect(),
        gap,
    };
    let mut columns = vec![
        column(&["on disk"], 2),
        column(&["sum of", "files"], 2),
        column(&["more than", "content"], 2),
    ];
    if files {
        columns.push(column(&["files"], 2));
    }
    for versus in &chart.chart.versus {
        columns.push(Column {
            heading: versus_heading(&versus.label),
            gap: 2,
        });
    }
    if !chart.chart.published.is_empty() {
        columns.push(column(&["published"], 2));
    }
    let footprints = chart.rows.iter().filter_map(|row| row.footprint);
    let largest = footprints
        .map(|footprint| footprint.allocated_bytes)
        .max()
        .unwrap_or(0);
    let row = |row: &ChartRow| Row {
        label: label(&row.arm),
        body: match row.footprint {
            None => Body::Reason {
                text: trouble(&row.arm.status).unwrap_or_else(|| "not counted".to_owned()),
                tone: Tone::Faint,
            },
            Some(footprint) => Body::Figures {
                solid: footprint.allocated_bytes as f64 / largest.max(1) as f64,
                light: 0.0,
                cells: cells(run, chart, row, &footprint, files, machines),
            },
        },
    };
    Table {
        title: title(chart),
        subtitle: "blocks allocated to files and directories".to_owned(),
        columns,
        rows: chart.rows.iter().map(row).collect(),
        notes: Vec::new(),
    }
}

fn cells(
    run: &Run,
    chart: &ChartAnalysis,
    row: &ChartRow,
    footprint: &Footprint,
    files: bool,
    machines: bool,
) -> Vec<Cell> {
    let more = overhead(footprint).map_or_else(|| DASH.to_owned(), percent);
    let mut cells = vec![
        Cell::plain(format_bytes(footprint.allocated_bytes)),
        Cell::plain(format_bytes(footprint.apparent_bytes)),
        Cell::plain(more),
    ];
    if files {
        cells.push(Cell::plain(format_count(footprint.files)));
    }
    for versus in &chart.chart.versus {
        let ratio = times_as_small(run, &versus.arm, &row.arm.name);
        cells.push(Cell::plain(if versus.arm == row.arm.name {
            "1".to_owned()
        } else {
            ratio.map_or_else(|| DASH.to_owned(), format_ratio)
        }));
    }
    if !chart.chart.published.is_empty() {
        let figures = published_of(&chart.chart, &row.arm.name);
        let words: Vec<String> = figures
            .into_iter()
            .map(|(ratio, machine)| {
                let machine = if machines { machine } else { String::new() };
                format!("{} {machine}", bare_ratio(ratio))
                    .trim_end()
                    .to_owned()
            })
            .collect();
        let tail = if words.is_empty() {
            DASH.to_owned()
        } else {
            words.join(", ")
        };
        cells.push(Cell {
            head: String::new(),
            tail,
            tone: Tone::Plain,
        });
    }
    cells
}
