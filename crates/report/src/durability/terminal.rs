//! The truth table for people who wait for it.

use sqlitmus_core::durability::{DurabilityRun, Table};

use super::words::{Cells, DASH, HEADINGS, HOW_TO_READ, Standing, filesystem_line, sentences};
use crate::terminal::{Ink, Look, Tone};
use crate::text::{fit, left, right, width, wrap};

/// Columns whose content stands on the right.
const NUMBERS: [usize; 3] = [3, 4, 6];

/// Columns that become remarks where the terminal is too narrow, the first to go first.
const LESS_IMPORTANT: [usize; 4] = [7, 5, 3, 6];

/// Renders the table as text, no line wider than the terminal: what does not fit beside the names
/// stands below them.
#[must_use]
pub fn terminal(run: &DurabilityRun, table: &Table<'_>, look: &Look) -> String {
    let ink = Ink { color: look.color };
    let mut text = String::new();
    let mut line = |content: &str, tone: Tone| {
        text.push_str(ink.paint(content, tone).trim_end());
        text.push('\n');
    };
    line(
        &fit("What do commits survive?", look.columns),
        Tone::Heading,
    );
    for sentence in sentences(run, table) {
        let is_loud = sentence.starts_with(|letter: char| letter.is_ascii_uppercase())
            && sentence.contains("NOT ");
        for part in wrap(&sentence, look.columns) {
            line(&part, if is_loud { Tone::Bad } else { Tone::Plain });
        }
    }
    let rows: Vec<(&str, Cells)> = table
        .rows
        .iter()
        .map(|row| (row.filesystem, Cells::of(row)))
        .collect();
    let layout = Layout::new(&rows, look.columns);
    for filesystem in &run.plan.filesystems {
        line("", Tone::Plain);
        for part in wrap(&filesystem_line(run, filesystem), look.columns) {
            line(&part, Tone::Heading);
        }
        line(&layout.line(HEADINGS, look.columns), Tone::Faint);
        for (_, cells) in rows.iter().filter(|(name, _)| name == filesystem) {
            let tone = match cells.standing {
                Standing::Good => Tone::Plain,
                Standing::Bad => Tone::Bad,
                Standing::Unsure => Tone::Unsure,
            };
            line(&layout.line(cells.all(), look.columns), tone);
            for note in layout.remarks(cells).iter().chain(&cells.notes) {
                for part in wrap(note, look.columns.saturating_sub(4)) {
                    line(&fit(&format!("    {part}"), look.columns), tone);
                }
            }
        }
    }
    line("", Tone::Plain);
    for sentence in HOW_TO_READ {
        for part in wrap(sentence, look.columns) {
            line(&part, Tone::Faint);
        }
    }
    text
}

/// Which columns there are, and how wide.
struct Layout {
    /// 0 for a column that has become a remark.
    widths: [usize; 8],
}

impl Layout {
    /// Each column as wide as its widest cell, as many as fit.
    fn new(rows: &[(&str, Cells)], columns: usize) -> Self {
        let mut widths = HEADINGS.map(width);
        for (_, cells) in rows {
            for (known, cell) in widths.iter_mut().zip(cells.all()) {
                *known = (*known).max(width(cell));
            }
        }
        let taken = |widths: &[usize; 8]| {
            let shown = widths.iter().filter(|width| **width > 0);
            shown.map(|width| width + 2).sum::<usize>()
        };
        for column in LESS_IMPORTANT {
            // Two spaces stand behind the last column, where nobody sees them.
            if taken(&widths) > columns + 2 {
                widths[column] = 0;
            }
        }
        Self { widths }
    }

    fn line(&self, cells: [&str; 8], columns: usize) -> String {
        let mut line = String::new();
        for (index, (cell, width)) in cells.into_iter().zip(self.widths).enumerate() {
            if width == 0 {
                continue;
            }
            line.push_str(&if NUMBERS.contains(&index) {
                right(cell, width)
            } else {
                left(cell, width)
            });
            line.push_str("  ");
        }
        fit(line.trim_end(), columns)
    }

    /// What the columns would have said that are not there.
    fn remarks(&self, cells: &Cells) -> Vec<String> {
        let all = cells.all();
        let hidden = (0..all.len()).filter(|index| self.widths[*index] == 0 && all[*index] != DASH);
        hidden
            .map(|index| format!("{}: {}", HEADINGS[index], all[index]))
            .collect()
    }
}
