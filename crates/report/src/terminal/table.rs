//! The layout of one chart: labels and bars on the left, figures in columns on the right, headings
//! over them. Knows widths, not meanings; which columns there are is for the charts to decide.

use crate::text::{left, right, width, wrap};

use super::ink::{Ink, Line, Tone};

/// The shortest full bar that is still worth drawing, in columns: 48 steps.
const LEAST_BAR_COLUMNS: usize = 6;

/// Labels are cut to so many columns before figures are left out.
const SHORT_LABEL_COLUMNS: usize = 24;

/// Longer bars tell no more.
const MOST_BAR_COLUMNS: usize = 48;

/// Blocks of one to seven eighths of a column.
const EIGHTHS: [char; 7] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉'];

/// A chart, ready to be laid out. All texts are cleaned.
#[derive(Debug, Default)]
pub(super) struct Table {
    /// Heading.
    pub(super) title: String,
    /// What the chart's figures rest on; beneath the title.
    pub(super) subtitle: String,
    /// Columns of figures.
    pub(super) columns: Vec<Column>,
    /// Rows, from top to bottom.
    pub(super) rows: Vec<Row>,
    /// Lines beneath, as wide as the table.
    pub(super) notes: Vec<String>,
}

/// A column of figures.
#[derive(Debug)]
pub(super) struct Column {
    /// One or two lines.
    pub(super) heading: Vec<String>,
    /// Empty columns before it.
    pub(super) gap: usize,
}

/// A row: an arm.
#[derive(Debug)]
pub(super) struct Row {
    /// What the arm is called.
    pub(super) label: String,
    /// Its figures, or why there are none.
    pub(super) body: Body,
}

/// What stands to the right of a label.
#[derive(Debug)]
pub(super) enum Body {
    /// A bar, and a cell for each column.
    Figures {
        /// Filled part of the bar as a share of the longest, 0 to 1.
        solid: f64,
        /// What follows it lightly filled, likewise.
        light: f64,
        /// Cells.
        cells: Vec<Cell>,
    },
    /// Why there are no figures.
    Reason {
        /// In words.
        text: String,
        /// Failed or skipped.
        tone: Tone,
    },
}

/// A figure: digits that stand on the right of their part of the column, and what follows them on
/// the left of its own, so that `1.68 ±4%` and `12.3 ±12%` are aligned.
#[derive(Debug, Default)]
pub(super) struct Cell {
    /// The digits.
    pub(super) head: String,
    /// What follows.
    pub(super) tail: String,
    /// The verdict, if the figure has one.
    pub(super) tone: Tone,
}

impl Cell {
    /// A figure without a verdict.
    pub(super) fn plain(head: String) -> Self {
        Self {
            head,
            ..Self::default()
        }
    }
}

/// Widths of a column.
struct Widths {
    head: usize,
    whole: usize,
}

impl Table {
    /// Whether there is room for the figures, a useful bar and every label in full.
    pub(super) fn fits(&self, columns: usize) -> bool {
        self.label_columns(columns) + 1 + LEAST_BAR_COLUMNS + self.figures_width() <= columns
    }

    /// Whether there is room if labels are cut short.
    pub(super) fn fits_cut_short(&self, columns: usize) -> bool {
        let labels = self.label_columns(columns).min(SHORT_LABEL_COLUMNS);
        labels + 1 + LEAST_BAR_COLUMNS + self.figures_width() <= columns
    }

    /// Width of the longest label, but no more than two fifths of the terminal.
    fn label_columns(&self, columns: usize) -> usize {
        let longest = self.rows.iter().map(|row| width(&row.label)).max();
        longest.unwrap_or(0).min(columns * 2 / 5)
    }

    /// The lines, none wider than `columns`.
    pub(super) fn render(&self, columns: usize, ink: Ink) -> Vec<String> {
        let widths = self.widths();
        let room = columns.saturating_sub(self.figures_width());
        let labels = self
            .label_columns(columns)
            .min(room.saturating_sub(1 + LEAST_BAR_COLUMNS).max(6));
        let bars = room.saturating_sub(labels + 1).min(MOST_BAR_COLUMNS);
        let mut lines = self.headings(columns, labels + 1 + bars, &widths);
        for row in &self.rows {
            let mut line = Line::of(&left(&row.label, labels), Tone::Plain);
            line.push(" ", Tone::Plain);
            match &row.body {
                Body::Reason { text, tone } => line.push(text, *tone),
                Body::Figures {
                    solid,
                    light,
                    cells,
                } => {
                    line.push(&left(&bar(*solid, *light, bars), bars), Tone::Plain);
                    self.push_figures(&mut line, cells, &widths);
                }
            }
            lines.push(line);
        }
        for note in &self.notes {
            for text in wrap(note, columns.saturating_sub(2)) {
                lines.push(Line::of(&format!("  {text}"), Tone::Faint));
            }
        }
        lines.iter().map(|line| line.render(columns, ink)).collect()
    }

    fn widths(&self) -> Vec<Widths> {
        let columns = self.columns.iter().enumerate();
        columns
            .map(|(index, column)| {
                let cells = || {
                    self.rows.iter().filter_map(move |row| match &row.body {
                        Body::Figures { cells, .. } => cells.get(index),
                        Body::Reason { .. } => None,
                    })
                };
                let head = cells().map(|cell| width(&cell.head)).max().unwrap_or(0);
                let tail = cells().map(|cell| width(&cell.tail)).max().unwrap_or(0);
                let heading = column
                    .heading
                    .iter()
                    .map(|line| width(line))
                    .max()
                    .unwrap_or(0);
                let whole = heading.max(head + tail);
                // A column of plain figures ends where its heading ends.
                let head = if tail == 0 { whole } else { head };
                Widths { head, whole }
            })
            .collect()
    }

    fn figures_width(&self) -> usize {
        let gaps: usize = self.columns.iter().map(|column| column.gap).sum();
        self.widths()
            .iter()
            .map(|widths| widths.whole)
            .sum::<usize>()
            + gaps
    }

    fn push_figures(&self, line: &mut Line, cells: &[Cell], widths: &[Widths]) {
        for ((column, widths), cell) in self.columns.iter().zip(widths).zip(cells) {
            line.push(&" ".repeat(column.gap), Tone::Plain);
            let text = right(&cell.head, widths.head) + &cell.tail;
            line.push(&left(&text, widths.whole), cell.tone);
        }
    }

    /// Title and headings share their lines where there is room; if not, the title has its own.
    fn headings(&self, columns: usize, left_width: usize, widths: &[Widths]) -> Vec<Line> {
        let [upper, lower] = [1, 0].map(|from_below| self.heading_line(from_below, widths));
        let has_room = |text: &str, figures: &str| {
            let figures = figures.trim_end();
            let free = figures.len() - figures.trim_start().len();
            figures.is_empty() || width(text) + 2 <= left_width + free
        };
        let beside = |mut line: Line, figures: &str| {
            line.pad_to(left_width);
            // Where the text reaches under the headings, these begin with as many spaces.
            let taken = line.width() - left_width;
            line.push(figures.get(taken..).unwrap_or(""), Tone::Plain);
            line
        };
        let title = Line::of(&self.title, Tone::Heading);
        if has_room(&self.title, &upper) && has_room(&self.subtitle, &lower) {
            let subtitle = Line::of(&self.subtitle, Tone::Plain);
            return vec![beside(title, &upper), beside(subtitle, &lower)];
        }
        let mut first = title.clone();
        if !self.subtitle.is_empty() {
            first.push(&format!(", {}", self.subtitle), Tone::Plain);
        }
        let (first, rest) = if first.width() <= columns {
            (first, Vec::new())
        } else {
            (title, wrap(&self.subtitle, left_width.saturating_sub(1)))
        };
        let line = |index: usize| {
            rest.get(index)
                .map_or_else(Line::default, |text| Line::of(text, Tone::Plain))
        };
        let mut lines = vec![first, beside(line(0), &upper), beside(line(1), &lower)];
        lines.retain(|line| !line.is_blank());
        lines
    }

    /// One line of the headings of all columns, counted from the lowest.
    fn heading_line(&self, from_below: usize, widths: &[Widths]) -> String {
        let mut line = String::new();
        for (column, widths) in self.columns.iter().zip(widths) {
            line.push_str(&" ".repeat(column.gap));
            let text = column
                .heading
                .iter()
                .rev()
                .nth(from_below)
                .map_or("", String::as_str);
            line.push_str(&if widths.head == widths.whole {
                right(text, widths.whole)
            } else {
                left(text, widths.whole)
            });
        }
        line
    }
}

/// A bar of blocks, at most `columns` long. What is not nothing is at least a sliver.
fn bar(solid: f64, light: f64, columns: usize) -> String {
    let share = |share: f64| {
        if share.is_finite() {
            share.clamp(0.0, 1.0)
        } else {
            0.0
        }
    };
    let eighths = share(solid) * columns as f64 * 8.0;
    let eighths = if solid > 0.0 {
        (eighths.round() as usize).max(1)
    } else {
        0
    };
    let mut bar = "█".repeat(eighths / 8);
    if let Some(block) = (eighths % 8)
        .checked_sub(1)
        .and_then(|index| EIGHTHS.get(index))
    {
        bar.push(*block);
    }
    let end = (share(share(solid) + share(light)) * columns as f64).round() as usize;
    let drawn = width(&bar);
    bar + &"░".repeat(end.saturating_sub(drawn))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_as_long_as_their_share() {
        assert_eq!(bar(1.0, 0.0, 4), "████");
        assert_eq!(bar(0.5, 0.0, 4), "██");
        assert_eq!(bar(0.5, 0.5, 4), "██░░");
        assert_eq!(bar(0.53125, 0.0, 4), "██▏");
        assert_eq!(bar(1e-9, 0.0, 4), "▏");
        assert_eq!(bar(0.0, 0.0, 4), "");
        assert_eq!(bar(f64::NAN, f64::INFINITY, 4), "");
        assert_eq!(bar(7.0, 7.0, 4), "████");
    }
}
