//! What an operation uses beside time, as text for a terminal: for arms with a cold cache what the
//! device had to do, which is why they take as long as they do.

use sqlitmus_core::measurements::Measurements;
use sqlitmus_core::plan::Group;
use sqlitmus_core::resource_use::ResourceUse;
use sqlitmus_core::run::Run;
use sqlitmus_core::units::format_bytes;

use crate::text::{fit, left, right, width};

/// Labels are not cut shorter than this.
const SHORTEST_LABEL: usize = 12;

const HEADINGS: [&str; 4] = ["requests", "bytes", "of content", "system calls"];

/// Of every cold group, as paragraphs of lines, none wider than `columns`.
pub(crate) fn paragraphs(run: &Run, columns: usize) -> Vec<Vec<String>> {
    let measurements = Measurements::new(run);
    run.plan
        .groups
        .iter()
        .filter(|group| group.arms.iter().any(|arm| arm.case.cache.is_cold()))
        .filter_map(|group| paragraph(&measurements, group, columns))
        .collect()
}

fn paragraph(
    measurements: &Measurements<'_>,
    group: &Group,
    columns: usize,
) -> Option<Vec<String>> {
    let rows: Vec<(&str, ResourceUse)> = group
        .arms
        .iter()
        .filter(|arm| !arm.is_twin())
        .filter_map(|arm| {
            Some((
                arm.label.as_str(),
                ResourceUse::of(measurements, &arm.name)?,
            ))
        })
        .collect();
    let cache = group.arms.first()?.case.cache;
    let verb = group.arms.first()?.case.workload.verb();
    if rows.is_empty() {
        return None;
    }
    let cells: Vec<[String; 4]> = rows.iter().map(|(_, used)| cells(used)).collect();
    let widths: Vec<usize> = HEADINGS
        .iter()
        .enumerate()
        .map(|(column, heading)| {
            let widest = cells.iter().map(|cells| width(&cells[column])).max();
            widest.unwrap_or(0).max(width(heading))
        })
        .collect();
    let room = columns.saturating_sub(widths.iter().map(|width| width + 2).sum());
    let labels = rows.iter().map(|(label, _)| width(label)).max();
    let labels = labels.unwrap_or(0).min(room).max(SHORTEST_LABEL);
    let line = |label: &str, cells: &[String]| {
        let mut line = left(label, labels);
        for (cell, width) in cells.iter().zip(&widths) {
            line.push_str("  ");
            line.push_str(&right(cell, *width));
        }
        fit(line.trim_end(), columns)
    };
    let title = format!("What the device had to do for one {verb}, {cache}");
    let mut lines = vec![fit(&title, columns)];
    lines.push(line("", &HEADINGS.map(str::to_owned)));
    for ((label, _), cells) in rows.iter().zip(&cells) {
        lines.push(line(label, cells));
    }
    Some(lines)
}

/// Requests and bytes from the device, these as a multiple of the content, and system calls.
fn cells(used: &ResourceUse) -> [String; 4] {
    let number = |value: Option<f64>, digits: usize| {
        value.map_or_else(|| "-".to_owned(), |value| format!("{value:.digits$}"))
    };
    let per_operation = |name: &str| used.per_operation.get(name).copied();
    let bytes = per_operation("device_read_bytes");
    [
        number(per_operation("device_read_requests"), 2),
        bytes.map_or_else(
            || "-".to_owned(),
            |bytes| format_bytes(bytes.round() as u64),
        ),
        used.device_bytes_per_content_byte()
            .map_or_else(|| "-".to_owned(), |factor| format!("{factor:.2}x")),
        number(used.system_calls_per_operation(), 1),
    ]
}
