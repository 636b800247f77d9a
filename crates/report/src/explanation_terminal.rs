//! Where the time goes, as text for a terminal: a table with bars for each explained arm, and the
//! answers about shares.

use sqlitmus_core::analysis::Analysis;
use sqlitmus_core::run::Run;

use crate::Look;
use crate::explanation::{PartKind, PartTable, answers, tables};
use crate::summary::Summary;
use crate::text::{fit, left, right, width, wrap};

/// Names are not cut shorter than this.
const SHORTEST_NAME: usize = 16;

/// Columns that a bar of the whole takes, at the most.
const LONGEST_BAR: usize = 40;

/// The tables and the answers, as paragraphs of lines, none wider than `columns`.
pub(crate) fn paragraphs(analysis: &Analysis, columns: usize) -> Vec<Vec<String>> {
    let mut paragraphs: Vec<Vec<String>> = tables(analysis)
        .iter()
        .map(|table| paragraph(table, columns))
        .collect();
    let answers: Vec<String> = answers(analysis)
        .iter()
        .flat_map(|answer| wrap(answer, columns))
        .collect();
    if !answers.is_empty() {
        paragraphs.push(answers);
    }
    paragraphs
}

/// Renders where the time goes, and nothing else of a run, for a terminal: lines, each ended by a
/// line feed, none wider than the terminal. Empty if the suite explains nothing.
#[must_use]
pub fn explanation(run: &Run, analysis: &Analysis, look: &Look) -> String {
    let summary = Summary::of(run, analysis);
    let mut lines = wrap(&summary.question, look.columns);
    for warning in &summary.warnings {
        lines.extend(wrap(warning, look.columns));
    }
    for paragraph in paragraphs(analysis, look.columns) {
        lines.push(String::new());
        lines.extend(paragraph);
    }
    lines.push(String::new());
    lines.join("\n")
}

fn paragraph(table: &PartTable, columns: usize) -> Vec<String> {
    let mut lines = vec![fit(
        &format!("Where the time goes: {}", table.label),
        columns,
    )];
    if !table.rows.is_empty() {
        lines.push(fit(
            &format!(
                "microseconds per operation ± half of the 95% interval, {}",
                table.rounds
            ),
            columns,
        ));
    }
    let widest = |cell: fn(&crate::explanation::PartRow) -> &String| {
        let widths = table.rows.iter().map(|row| width(cell(row)));
        widths.max().unwrap_or(0)
    };
    let (time, reach, share) = (
        widest(|row| &row.time),
        widest(|row| &row.reach),
        widest(|row| &row.share),
    );
    let figures = time + reach + share + 8;
    let names = widest(|row| &row.name)
        .min(columns.saturating_sub(figures + 2))
        .max(SHORTEST_NAME);
    let room = columns.saturating_sub(figures + names + 4).min(LONGEST_BAR);
    for row in &table.rows {
        let bar = match row.kind {
            PartKind::Part => "█",
            PartKind::Rest => "░",
            PartKind::Whole => "",
        };
        let cells = (row.fraction.clamp(0.0, 1.0) * room as f64).round() as usize;
        let line = format!(
            "  {}  {}  {}  {}  {}",
            left(&fit(&row.name, names), names),
            right(&row.time, time),
            left(&row.reach, reach),
            right(&row.share, share),
            bar.repeat(cells)
        );
        lines.push(fit(line.trim_end(), columns));
    }
    for note in &table.notes {
        for text in wrap(note, columns.saturating_sub(4)) {
            lines.push(format!("  {text}"));
        }
    }
    lines
}
