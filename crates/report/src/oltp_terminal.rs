//! The rates of groups about rows and jobs, as text for a terminal.

use sqlitmus_core::analysis::Analysis;
use sqlitmus_core::run::Run;
use sqlitmus_core::units::format_count;

use crate::columns::{Columns, ColumnsRow};
use crate::oltp::{Rate, RateTable, microseconds, per_second, seconds, tables};
use crate::text::{fit, wrap};

/// The tables, as paragraphs of lines, none wider than `columns`.
pub(crate) fn paragraphs(run: &Run, analysis: &Analysis, columns: usize) -> Vec<Vec<String>> {
    tables(run, analysis)
        .iter()
        .map(|table| paragraph(table, columns))
        .collect()
}

fn paragraph(table: &RateTable, columns: usize) -> Vec<String> {
    let mut headings = vec!["count", "seconds", "per second"];
    // Where the terminal is narrow, some are left out; the page has them all.
    for (heading, needed) in [
        ("CPU", if table.settles { 115 } else { 0 }),
        ("CPU us", if table.settles { 0 } else { 115 }),
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
    if table.settles && columns >= 110 {
        headings.push("settling");
    }
    if table.settles {
        headings.push("survives");
    }
    let rows = table.rows.iter().map(|row| ColumnsRow {
        label: row.label.clone(),
        cells: match &row.figures {
            Ok(rate) => Ok(headings
                .iter()
                .map(|heading| cell(heading, rate, &row.survives))
                .collect()),
            Err(reason) => Err(reason.clone()),
        },
        beneath: String::new(),
    });
    let laid_out = Columns {
        rows: rows.collect(),
        headings: headings
            .iter()
            .map(|heading| (*heading).to_owned())
            .collect(),
    };
    let mut lines = vec![fit(
        &format!("{}, {}", table.title, table.subtitle),
        columns,
    )];
    lines.extend(laid_out.lines(columns));
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
