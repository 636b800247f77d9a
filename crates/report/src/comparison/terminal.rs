//! The comparison for a terminal: conditions, a table a group, what was not compared, and last the
//! answer.

use sqlitmus_core::run_comparison::{Answer, Effect, Regression, RunComparison};
use sqlitmus_core::verdict::Verdict;

use crate::Look;
use crate::terminal::ink::{Ink, Line, Tone};
use crate::text::{left, right, width, wrap};

use super::{
    Row, Table, advice, answer_words, difference_words, method_words, not_judged, side_words,
    tables, unmatched_words, warnings,
};

/// Fewer columns than this are treated as this many.
const LEAST_COLUMNS: usize = 60;

/// Running text is not set wider than this.
const MOST_TEXT_COLUMNS: usize = 110;

/// Renders a comparison for a terminal: lines, none wider than the terminal (of 60 columns or more).
#[must_use]
pub fn terminal(comparison: &RunComparison, look: &Look) -> String {
    let mut page = Page {
        columns: look.columns.max(LEAST_COLUMNS),
        ink: Ink { color: look.color },
        lines: Vec::new(),
    };
    page.text("Has anything become slower from A to B?", Tone::Heading);
    page.text(&side_words("A", &comparison.a), Tone::Plain);
    page.text(&side_words("B", &comparison.b), Tone::Plain);
    page.text(&method_words(comparison), Tone::Plain);
    for warning in warnings(comparison) {
        page.text(&warning, Tone::Unsure);
    }
    let differences: Vec<(String, Tone)> = comparison
        .differences
        .iter()
        .map(|difference| {
            let tone = match difference.effect {
                Effect::Forbids => Tone::Bad,
                Effect::Expected | Effect::Told => Tone::Plain,
            };
            (difference_words(difference), tone)
        })
        .collect();
    page.list("Conditions that differ", &differences);
    for table in tables(comparison) {
        page.table(&table);
    }
    let plain = |words: Vec<String>, tone: Tone| -> Vec<(String, Tone)> {
        words.into_iter().map(|words| (words, tone)).collect()
    };
    page.list("Not compared", &plain(not_judged(comparison), Tone::Unsure));
    let only_a = unmatched_words(&comparison.only_a);
    page.list("In A alone", &plain(only_a, Tone::Unsure));
    let only_b = unmatched_words(&comparison.only_b);
    page.list("In B alone", &plain(only_b, Tone::Plain));
    page.blank();
    page.text(
        "us: microseconds per operation | B vs A: times as fast, ± half of its own 95% interval | \
         faster and slower hold among all comparisons, beyond noise floor and threshold",
        Tone::Faint,
    );
    page.blank();
    let answer = match comparison.answer() {
        Answer::NoRegression => Tone::Good,
        Answer::Regression => Tone::Bad,
        Answer::NotSure => Tone::Unsure,
    };
    page.text(&answer_words(comparison), answer);
    if let Some(advice) = advice(comparison) {
        page.text(&advice, Tone::Plain);
    }
    page.lines.join("\n") + "\n"
}

struct Page {
    columns: usize,
    ink: Ink,
    lines: Vec<String>,
}

impl Page {
    fn blank(&mut self) {
        self.lines.push(String::new());
    }

    fn text(&mut self, text: &str, tone: Tone) {
        for line in wrap(text, self.columns.min(MOST_TEXT_COLUMNS)) {
            self.lines.push(self.ink.paint(&line, tone));
        }
    }

    fn list(&mut self, heading: &str, items: &[(String, Tone)]) {
        if items.is_empty() {
            return;
        }
        self.blank();
        self.text(heading, Tone::Heading);
        for (item, tone) in items {
            let columns = self.columns.min(MOST_TEXT_COLUMNS) - 2;
            for (index, line) in wrap(item, columns - 2).iter().enumerate() {
                let indent = if index == 0 { "  " } else { "    " };
                self.lines
                    .push(self.ink.paint(&format!("{indent}{line}"), *tone));
            }
        }
    }

    fn table(&mut self, table: &Table<'_>) {
        self.blank();
        self.text(&format!("Group {}", table.group), Tone::Heading);
        for note in &table.notes {
            self.text(note, Tone::Faint);
        }
        if table.rows.is_empty() {
            self.text("nothing to judge", Tone::Unsure);
            return;
        }
        let widest = |heading: &str, part: for<'r, 's> fn(&'r Row<'s>) -> &'r str| {
            let widths = table.rows.iter().map(|row| width(part(row)));
            widths.max().unwrap_or(0).max(width(heading))
        };
        let a = widest("A us", |row| &row.a);
        let b = widest("B us", |row| &row.b);
        let change = widest("B vs A", |row| &row.change);
        let verdict = widest("", |row| &row.verdict);
        let figures = a + b + change + 2 * 4;
        // Labels give way first, then verdicts, whose beginnings say most.
        let room = self.columns.saturating_sub(figures + verdict).max(14);
        let labels = widest("", |row| &row.label).min(room);
        let mut line = |label: &str, cells: [&str; 4], tone: Tone| {
            let mut line = Line::of(&left(label, labels), Tone::Plain);
            for (cell, columns) in [(cells[0], a), (cells[1], b), (cells[2], change)] {
                line.push("  ", Tone::Plain);
                line.push(&right(cell, columns), Tone::Plain);
            }
            line.push("  ", Tone::Plain);
            line.push(cells[3], tone);
            self.lines.push(line.render(self.columns, self.ink));
        };
        line("", ["A us", "B us", "B vs A", ""], Tone::Plain);
        for row in &table.rows {
            let tone = match (row.judged.verdict, row.judged.regression) {
                (Verdict::Faster, _) => Tone::Good,
                (Verdict::Slower, _) => Tone::Bad,
                (_, Regression::Open) => Tone::Unsure,
                _ => Tone::Faint,
            };
            line(
                &row.label,
                [&row.a, &row.b, &row.change, &row.verdict],
                tone,
            );
        }
    }
}
