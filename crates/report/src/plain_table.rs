//! A table of figures with a title and sentences beneath, in any format. What stands in it is the
//! business of those who make it: [`crate::scaling`], [`crate::load`].

use maud::{Markup, html as markup};

use crate::columns::{Columns, ColumnsRow};
use crate::html::bars::trouble_class;
use crate::text::{fit, wrap};

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
        let rows = self.rows.iter().map(|(label, cells)| ColumnsRow {
            label: label.clone(),
            cells: match cells.as_slice() {
                [reason] => Err(reason.clone()),
                cells => Ok(cells.to_vec()),
            },
            beneath: String::new(),
        });
        let table = Columns {
            headings: self
                .headings
                .iter()
                .map(|heading| (*heading).to_owned())
                .collect(),
            rows: rows.collect(),
        };
        let mut lines = vec![fit(&self.title, columns)];
        lines.extend(table.that_fit(columns).lines(columns));
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
            div.scroll role="region" tabindex="0" aria-label=(self.title) {
                table.numbers {
                    thead { tr {
                        th scope="col" class="text" { "Arm" }
                        @for heading in &self.headings { th scope="col" { (heading) } }
                    } }
                    tbody { @for (label, cells) in &self.rows { tr {
                        th scope="row" { (label) }
                        @match cells.as_slice() {
                            [reason] => {
                                td class={ "text " (trouble_class(reason)) } colspan=(self.headings.len()) { (reason) }
                            }
                            cells => { @for cell in cells { td { (cell) } } }
                        }
                    } } }
                }
            }
            @for note in &self.notes { p.note { (note) } }
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
