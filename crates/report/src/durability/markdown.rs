//! The truth table for a document.

use std::fmt::Write;

use sqlitmus_core::durability::{DurabilityRun, Table};

use super::words::{Cells, HEADINGS, HOW_TO_READ, filesystem_line, sentences};

/// Renders the table as GitHub's Markdown. Texts of the run are escaped.
#[must_use]
pub fn markdown(run: &DurabilityRun, table: &Table<'_>) -> String {
    let mut text = String::from("## What do commits survive?\n\n");
    for sentence in sentences(run, table) {
        text.push_str(&escaped(&sentence));
        text.push_str("\n\n");
    }
    for filesystem in &run.plan.filesystems {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "### {}\n", escaped(&filesystem_line(run, filesystem)));
        let _ = writeln!(text, "| {} | remarks |", HEADINGS.join(" | "));
        text.push_str("|---|---|---|---:|---:|---|---:|---|---|\n");
        for row in table.rows.iter().filter(|row| row.filesystem == filesystem) {
            let cells = Cells::of(row);
            let all: Vec<String> = cells.all().into_iter().map(escaped).collect();
            let notes: Vec<String> = cells.notes.iter().map(|note| escaped(note)).collect();
            let _ = writeln!(text, "| {} | {} |", all.join(" | "), notes.join("; "));
        }
        text.push('\n');
    }
    for sentence in HOW_TO_READ {
        let _ = writeln!(text, "- {}", escaped(sentence));
    }
    text
}

/// Text that Markdown takes for text.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        if matches!(
            letter,
            '|' | '*' | '_' | '`' | '<' | '>' | '[' | ']' | '\\' | '#'
        ) {
            escaped.push('\\');
        }
        escaped.push(letter);
    }
    escaped
}
