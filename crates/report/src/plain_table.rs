//! A table of figures with a title and sentences beneath, in any format. What stands in it is the
//! business of those who make it: [`crate::scaling`], [`crate::load`].

use maud::{Markup, html as markup};

use crate::text::{fit, left, right, width, wrap};

/// Labels are not cut shorter than this.
const SHORTEST_LABEL: usize = 12;

/// A table.
pub(crate) struct PlainTable {
    /// Heading.
    pub(crate) title: String,
    /// Of the columns, that of the labels left out.
    pub(crate) headings: Vec<&'static str>,
    /// A label and its cells; a row of one cell is a reason why there are no figures.
    pub(crate) rows: Vec<(String, Vec<String>)>,
    /// Sentences beneath.
    pub(crate) notes: Vec<String>,
}

impl PlainTable {
    /// As lines for a terminal, none wider than `columns`: columns that do not fit are left out from
    /// the right.
    pub(crate) fn lines(&self, columns: usize) -> Vec<String> {
        let figures = || self.rows.iter().filter(|(_, cells)| cells.len() > 1);
        let widths: Vec<usize> = self
            .headings
            .iter()
            .enumerate()
            .map(|(column, heading)| {
                let cells = figures().filter_map(|(_, cells)| cells.get(column));
                let widest = cells.map(|cell| width(cell)).max();
                widest.unwrap_or(0).max(width(heading))
            })
            .collect();
        let labels = self.rows.iter().map(|(label, _)| width(label)).max();
        let labels = labels.unwrap_or(0).min(columns / 2).max(SHORTEST_LABEL);
        let line = |label: &str, cells: &mut dyn Iterator<Item = &str>| {
            let mut line = left(&fit(label, labels), labels);
            for (cell, cell_width) in cells.zip(&widths) {
                if width(&line) + 2 + cell_width > columns {
                    break;
                }
                line.push_str("  ");
                line.push_str(&right(cell, *cell_width));
            }
            line.trim_end().to_owned()
        };
        let mut lines = vec![fit(&self.title, columns)];
        lines.push(line("", &mut self.headings.iter().copied()));
        for (label, cells) in &self.rows {
            lines.push(match cells.as_slice() {
                [reason] => fit(&format!("{}  {reason}", left(label, labels)), columns),
                _ => line(label, &mut cells.iter().map(String::as_str)),
            });
        }
        for note in &self.notes {
            for text in wrap(note, columns.saturating_sub(2)) {
                lines.push(format!("  {text}"));
            }
        }
        lines
    }

    /// As a part of the page.
    pub(crate) fn markup(&self) -> Markup {
        markup! {
            div.wide {
                table {
                    thead { tr {
                        th scope="col" { "Arm" }
                        @for heading in &self.headings { th scope="col" { (heading) } }
                    } }
                    tbody { @for (label, cells) in &self.rows { tr {
                        th scope="row" { (label) }
                        @match cells.as_slice() {
                            [reason] => { td colspan=(self.headings.len()) { (reason) } }
                            cells => { @for cell in cells { td { (cell) } } }
                        }
                    } } }
                }
            }
            @for note in &self.notes { p { (note) } }
        }
    }

    /// Headings and rows, labels included.
    pub(crate) fn cells(&self) -> (Vec<String>, Vec<Vec<String>>) {
        let headings = std::iter::once("Arm").chain(self.headings.iter().copied());
        let rows = self.rows.iter().map(|(label, cells)| {
            std::iter::once(label.clone())
                .chain(cells.iter().cloned())
                .collect()
        });
        (headings.map(str::to_owned).collect(), rows.collect())
    }
}
