//! Plain tables for a terminal: a label, and figures right-aligned beneath their headings. Labels that are too
//! long go on in the next line: what tells two arms apart often stands at their end. Charts with bars have
//! a layout of their own (`terminal/table.rs`).

use crate::text::{fit, left, right, width, wrap};

/// Labels get at least this.
const SHORTEST_LABEL: usize = 12;

/// A table. All texts are cleaned.
#[derive(Debug, Default)]
pub(crate) struct Columns {
    /// Of the figures.
    pub(crate) headings: Vec<String>,
    /// From top to bottom.
    pub(crate) rows: Vec<ColumnsRow>,
}

/// A label, and what stands beside it.
#[derive(Debug)]
pub(crate) struct ColumnsRow {
    /// What the row is about.
    pub(crate) label: String,
    /// A cell for each heading, or the reason why there are none.
    pub(crate) cells: Result<Vec<String>, String>,
    /// A line of its own beneath; empty for none.
    pub(crate) beneath: String,
}

impl Columns {
    /// Without the last columns, as many as labels have no room beside.
    pub(crate) fn that_fit(mut self, columns: usize) -> Self {
        let labels = self.rows.iter().map(|row| width(&row.label)).max();
        let labels = labels.unwrap_or(0).min(columns / 2).max(SHORTEST_LABEL);
        let mut room = columns.saturating_sub(labels);
        let fitting = self.widths().into_iter().take_while(|width| {
            let fits = width + 2 <= room;
            room = room.saturating_sub(width + 2);
            fits
        });
        let kept = fitting.count();
        self.headings.truncate(kept);
        for cells in self
            .rows
            .iter_mut()
            .filter_map(|row| row.cells.as_mut().ok())
        {
            cells.truncate(kept);
        }
        self
    }

    /// The lines, headings first, none wider than `columns`.
    pub(crate) fn lines(&self, columns: usize) -> Vec<String> {
        let widths = self.widths();
        let room = columns.saturating_sub(widths.iter().map(|width| width + 2).sum());
        let labels = self.rows.iter().map(|row| width(&row.label)).max();
        let labels = labels.unwrap_or(0).min(room).max(SHORTEST_LABEL);
        let line = |label: &str, cells: &[String]| {
            let mut line = left(label, labels);
            for (cell, width) in cells.iter().zip(&widths) {
                line.push_str("  ");
                line.push_str(&right(cell, *width));
            }
            fit(line.trim_end(), columns)
        };
        let mut lines = vec![line("", &self.headings)];
        for row in &self.rows {
            let (first, others) = in_lines(&row.label, labels);
            lines.push(match &row.cells {
                Ok(cells) => line(&first, cells),
                Err(reason) => fit(&format!("{}  {reason}", left(&first, labels)), columns),
            });
            lines.extend(others.iter().map(|text| fit(&format!("  {text}"), columns)));
            if !row.beneath.is_empty() {
                lines.push(fit(&format!("    {}", row.beneath), columns));
            }
        }
        lines
    }

    fn widths(&self) -> Vec<usize> {
        let headings = self.headings.iter().enumerate();
        let cells = || self.rows.iter().filter_map(|row| row.cells.as_ref().ok());
        headings
            .map(|(column, heading)| {
                let widest = cells().filter_map(|cells| Some(width(cells.get(column)?)));
                widest.max().unwrap_or(0).max(width(heading))
            })
            .collect()
    }
}

/// A label's first line, and those that follow, which are indented by two.
fn in_lines(label: &str, columns: usize) -> (String, Vec<String>) {
    if width(label) <= columns {
        return (label.to_owned(), Vec::new());
    }
    let mut lines = wrap(label, columns.saturating_sub(2)).into_iter();
    (lines.next().unwrap_or_default(), lines.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_stand_beneath_their_headings_and_lines_fit() {
        let row = |label: &str, cells: Result<Vec<String>, String>, beneath: &str| ColumnsRow {
            label: label.to_owned(),
            cells,
            beneath: beneath.to_owned(),
        };
        let table = Columns {
            headings: vec!["calls".to_owned(), "bytes".to_owned()],
            rows: vec![
                row(
                    "SQLite",
                    Ok(vec!["4".to_owned(), "10,000".to_owned()]),
                    "pread64 3, read 1",
                ),
                row("files", Err("failed: gone".to_owned()), ""),
            ],
        };
        assert_eq!(
            table.lines(40),
            [
                "              calls   bytes",
                "SQLite            4  10,000",
                "    pread64 3, read 1",
                "files         failed: gone",
            ]
        );
        let long = Columns {
            headings: vec!["calls".to_owned()],
            rows: vec![row(
                "files replaced, 4 threads",
                Ok(vec!["4".to_owned()]),
                "",
            )],
        };
        assert_eq!(
            long.lines(24),
            [
                "                   calls",
                "files replaced,        4",
                "  4 threads",
            ]
        );
        for columns in 1..40 {
            let lines = table.lines(columns);
            assert!(lines.iter().all(|line| width(line) <= columns), "{lines:?}");
        }
    }
}
