//! Heat maps: ratios by two settings, each cell with its figure; a published table of the same shape
//! may stand beside ours. Colours go from orange (below 1) over none to blue (above 1); the figure in the
//! cell says the same.

use maud::{Markup, html as markup};

use crate::text::fit;

use super::{Chart, Data, Drawing, Frame, datum, letters, mark, number, text, units};

/// Ratios by two settings.
pub struct HeatMap {
    /// Identity in the page.
    pub id: String,
    /// Heading.
    pub title: String,
    /// What the rows are.
    pub rows_heading: String,
    /// What the columns are.
    pub columns_heading: String,
    /// Rows from top to bottom.
    pub rows: Vec<String>,
    /// Columns from left to right.
    pub columns: Vec<String>,
    /// Tables of this shape, ours first.
    pub panels: Vec<HeatPanel>,
}

/// A table of a heat map.
pub struct HeatPanel {
    /// Whose it is: `this machine`, `published, 2011`.
    pub title: String,
    /// Cells by row, then column; what is missing is `None`.
    pub cells: Vec<Vec<Option<Cell>>>,
}

/// A cell of a heat map.
#[derive(Debug, Clone, PartialEq)]
pub struct Cell {
    /// The ratio, which the colour follows.
    pub ratio: f64,
    /// What stands in the cell.
    pub text: String,
    /// The same with its interval, shown while the pointer rests on it.
    pub hover: String,
}

const ROW: f64 = 30.0;

/// Ratios from which on a cell has the next colour, as their logarithms to base 2.
const STEPS: [f64; 4] = [0.043, 0.32, 0.8, 1.6];

impl HeatMap {
    fn label_width(&self) -> f64 {
        let longest = self.rows.iter().map(|label| units(label));
        longest.fold(40.0, f64::max).min(110.0) + 8.0
    }

    fn panel(&self, panel: &HeatPanel, left: f64, top: f64, whole: f64) -> Markup {
        let labels = self.label_width();
        let step = (whole - labels) / self.columns.len().max(1) as f64;
        let room = letters(step);
        markup! {
            (text(left, top, "start", "bold", &fit(&panel.title, letters(whole))))
            (text(left, top + 20.0, "start", "small",
                &fit(&format!("{} by {}", self.rows_heading, self.columns_heading), letters(whole))))
            @for (index, column) in self.columns.iter().enumerate() {
                (text(left + labels + step * (index as f64 + 0.5), top + 40.0, "middle", "small figure",
                    &fit(column, room)))
            }
            @for (line, row) in self.rows.iter().enumerate() {
                @let y = top + 48.0 + ROW * line as f64;
                (text(left + labels - 8.0, y + ROW / 2.0 + 4.5, "end", "small figure",
                    &fit(row, letters(labels - 8.0))))
                @for column in 0..self.columns.len() {
                    @let cell = panel.cells.get(line).and_then(|cells| cells.get(column)).and_then(Option::as_ref);
                    (self.cell(cell, (line, column), (left + labels + step * column as f64, y, step)))
                }
            }
        }
    }

    fn cell(&self, cell: Option<&Cell>, at: (usize, usize), place: (f64, f64, f64)) -> Markup {
        let (x, y, step) = place;
        let name = |names: &[String], index: usize| names.get(index).cloned().unwrap_or_default();
        let where_ = format!("{}, {}", name(&self.rows, at.0), name(&self.columns, at.1));
        let (class, words, shown) = match cell {
            Some(cell) => (
                heat(cell.ratio),
                format!("{where_}: {}", cell.hover),
                fit(&cell.text, letters(step + 6.0)),
            ),
            None => ("h-none", format!("{where_}: not measured"), String::new()),
        };
        mark(
            &words,
            &markup! {
                rect class=(class) x=(number(x + 1.0)) y=(number(y + 1.0)) rx="2"
                    width=(number(step - 2.0)) height=(number(ROW - 2.0)) {}
                @if !shown.is_empty() {
                    (text(x + step / 2.0, y + ROW / 2.0 + 4.5, "middle", &format!("figure on-{class}"), &shown))
                }
            },
        )
    }
}

/// The class of a ratio's colour: `h-0` is none, up to `h-4` and `l-4`.
fn heat(ratio: f64) -> &'static str {
    const ABOVE: [&str; 5] = ["h-0", "h-1", "h-2", "h-3", "h-4"];
    const BELOW: [&str; 5] = ["h-0", "l-1", "l-2", "l-3", "l-4"];
    if ratio.is_nan() || ratio < 0.0 {
        return "h-none";
    }
    let logarithm = ratio.log2();
    let step = STEPS
        .iter()
        .filter(|step| logarithm.abs() >= **step)
        .count();
    if logarithm > 0.0 {
        ABOVE[step]
    } else {
        BELOW[step]
    }
}

impl Chart for HeatMap {
    fn id(&self) -> &str {
        &self.id
    }

    fn title(&self) -> &str {
        &self.title
    }

    fn description(&self) -> String {
        let rows = self.panels.iter().flat_map(|panel| {
            panel.cells.iter().zip(&self.rows).map(move |(cells, row)| {
                let cells = cells
                    .iter()
                    .zip(&self.columns)
                    .filter_map(|(cell, column)| {
                        Some(format!("{column}: {}", cell.as_ref()?.text))
                    });
                format!(
                    "{}, {row}: {}.",
                    panel.title,
                    cells.collect::<Vec<_>>().join(", ")
                )
            })
        });
        rows.collect::<Vec<_>>().join(" ")
    }

    fn draw(&self, frame: Frame) -> Drawing {
        const GAP: f64 = 28.0;
        let height = 56.0 + ROW * self.rows.len() as f64;
        let side_by_side = !frame.is_narrow() && self.panels.len() > 1;
        let whole = if side_by_side {
            let panels = self.panels.len() as f64;
            (frame.width() - GAP * (panels - 1.0)) / panels
        } else {
            // Wider cells would say no more.
            let widest = self.label_width() + 90.0 * self.columns.len() as f64;
            frame.width().min(widest.max(300.0))
        };
        let place = |index: usize| {
            let step = index as f64;
            if side_by_side {
                ((whole + GAP) * step, 14.0)
            } else {
                (0.0, 14.0 + (height + 20.0) * step)
            }
        };
        let lines = if side_by_side {
            1
        } else {
            self.panels.len().max(1)
        };
        Drawing {
            height: lines as f64 * (height + 20.0),
            content: markup! {
                @for (index, panel) in self.panels.iter().enumerate() {
                    @let (left, top) = place(index);
                    (self.panel(panel, left, top, whole))
                }
            },
        }
    }

    fn data(&self) -> Data {
        let columns = ["table", &self.rows_heading, &self.columns_heading, "ratio"];
        let mut rows = Vec::new();
        for panel in &self.panels {
            for (cells, row) in panel.cells.iter().zip(&self.rows) {
                for (cell, column) in cells.iter().zip(&self.columns) {
                    let ratio = cell.as_ref().map(|cell| cell.ratio);
                    rows.push(vec![
                        panel.title.clone(),
                        row.clone(),
                        column.clone(),
                        datum(ratio),
                    ]);
                }
            }
        }
        Data {
            columns: columns.map(str::to_owned).into(),
            rows,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opposite_ratios_have_opposite_colours() {
        for (ratio, above, below) in [
            (1.02, "h-0", "h-0"),
            (1.2, "h-1", "l-1"),
            (2.0, "h-3", "l-3"),
            (9.0, "h-4", "l-4"),
        ] {
            assert_eq!((heat(ratio), heat(1.0 / ratio)), (above, below), "{ratio}");
        }
        assert_eq!(heat(f64::NAN), "h-none");
        assert_eq!(heat(f64::INFINITY), "h-4");
        assert_eq!(heat(0.0), "l-4");
    }
}
