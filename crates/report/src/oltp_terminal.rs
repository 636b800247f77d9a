//! The rates of groups about rows and jobs, as text for a terminal.

use sqlitmus_core::analysis::Analysis;
use sqlitmus_core::run::Run;
use sqlitmus_core::units::format_count;

use crate::oltp::{Rate, RateTable, microseconds, per_second, seconds, survives, tables};
use crate::text::{fit, left, right, width, wrap};

/// Labels are not cut shorter than this.
const SHORTEST_LABEL: usize = 12;

/// The tables, as paragraphs of lines, none wider than `columns`.
pub(crate) fn paragraphs(run: &Run, analysis: &Analysis, columns: usize) -> Vec<Vec<String>> {
    tables(run, analysis)
        .iter()
        .map(|table| paragraph(table, columns))
        .collect()
}

fn paragraph(table: &RateTable, columns: usize) -> Vec<String> {
    let mut headings = vec!["count", "seconds", "per second", "CPU"];
    // Where the terminal is narrow, some are left out; the page has them all.
    for (heading, needed) in [
        ("CPU us", if table.settles { 0 } else { 100 }),
        ("p50 us", 110),
        ("p99 us", 0),
        ("p99.9", 120),
        ("longest", 130),
    ] {
        if columns >= needed {
            headings.push(heading);
        }
    }
    let has_busy = |rate: &Rate| rate.busy.is_some();
    let measured = || {
        table
            .rows
            .iter()
            .filter_map(|row| row.figures.as_ref().ok())
    };
    if measured().any(has_busy) {
        headings.push("busy");
    }
    if table.settles && columns >= 100 {
        headings.push("settling");
    }
    if table.settles {
        headings.push("survives");
    }
    let cells: Vec<Vec<String>> = table
        .rows
        .iter()
        .map(|row| match &row.figures {
            Ok(rate) => headings
                .iter()
                .map(|heading| cell(heading, rate, survives(row.durability)))
                .collect(),
            Err(reason) => vec![reason.clone()],
        })
        .collect();
    let widths: Vec<usize> = headings
        .iter()
        .enumerate()
        .map(|(column, heading)| {
            let figures = cells.iter().filter(|cells| cells.len() > 1);
            let widest = figures.map(|cells| width(&cells[column])).max();
            widest.unwrap_or(0).max(width(heading))
        })
        .collect();
    let labels = table.rows.iter().map(|row| width(&row.label)).max();
    let room = columns.saturating_sub(widths.iter().map(|width| width + 2).sum());
    let labels = labels.unwrap_or(0).min(room).max(SHORTEST_LABEL);
    let line = |label: &str, cells: &[String]| {
        let mut line = left(label, labels);
        for (cell, width) in cells.iter().zip(&widths) {
            line.push_str("  ");
            line.push_str(&right(cell, *width));
        }
        fit(line.trim_end(), columns)
    };
    let mut lines = vec![fit(
        &format!("{}, {}", table.title, table.subtitle),
        columns,
    )];
    let headings: Vec<String> = headings
        .iter()
        .map(|heading| (*heading).to_owned())
        .collect();
    lines.push(line("", &headings));
    for (row, cells) in table.rows.iter().zip(&cells) {
        lines.push(match &row.figures {
            Ok(_) => line(&row.label, cells),
            Err(reason) => fit(&format!("{}  {reason}", left(&row.label, labels)), columns),
        });
    }
    for note in &table.notes {
        let wrapped = wrap(note, columns.saturating_sub(4));
        for (number, text) in wrapped.iter().enumerate() {
            let margin = if number == 0 { "  " } else { "    " };
            lines.push(format!("{margin}{text}"));
        }
    }
    lines
}

fn cell(heading: &str, rate: &Rate, survives: &str) -> String {
    let latency = |index: usize| {
        let latencies = rate.latency_ns.unwrap_or_default();
        microseconds(latencies[index])
    };
    match heading {
        "count" => format_count(rate.count),
        "seconds" => seconds(rate.elapsed_ns),
        "per second" => per_second(rate),
        "CPU" => rate
            .cpu_percent()
            .map_or_else(|| "-".to_owned(), |percent| format!("{percent:.0}%")),
        "CPU us" => rate.cpu_us().unwrap_or_else(|| "-".to_owned()),
        "p50 us" => latency(0),
        "p99 us" => latency(1),
        "p99.9" => latency(2),
        "longest" => latency(3),
        "busy" => rate.busy.map_or_else(|| "-".to_owned(), format_count),
        "settling" => seconds(rate.settle_ns),
        _ => survives.to_owned(),
    }
}
