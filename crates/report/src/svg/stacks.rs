//! Parts of a whole, such as where the time of an operation goes: one bar an arm, one colour and pattern
//! a part. What the parts do not explain is for the caller to give as a part of its own.

use maud::{Markup, html as markup};

use crate::text::fit;

use super::axis::{Axis, Scale};
use super::{
    Chart, Data, Drawing, Frame, SERIES_COLORS, datum, fit_name, letters, name_units, number, text,
    units,
};

/// Longer names of parts are cut in the legend.
const MOST_PART_LETTERS: usize = 60;

/// Bars made of parts.
pub struct Stacks {
    /// Identity in the page.
    pub id: String,
    /// Heading.
    pub title: String,
    /// What the length of a bar is, with its unit.
    pub heading: String,
    /// How a number is written.
    pub format: fn(f64) -> String,
    /// What the parts are called, in the order they are stacked.
    pub parts: Vec<String>,
    /// The part that stands for what is not explained, if one does: drawn in grey.
    pub rest: Option<usize>,
    /// Every bar has the same length, and its parts are shares of it: for wholes that differ so much that the parts
    /// of the small ones would not be seen.
    pub as_shares: bool,
    /// Rows from top to bottom.
    pub rows: Vec<Stack>,
}

/// A bar.
pub struct Stack {
    /// What it is called.
    pub label: String,
    /// Whether it is what the report is about.
    pub strong: bool,
    /// Sizes of the parts; what is not known or below zero has no length.
    pub sizes: Vec<f64>,
}

fn length(size: f64) -> f64 {
    if size.is_finite() {
        size.clamp(0.0, 1e14)
    } else {
        0.0
    }
}

impl Stack {
    fn whole(&self) -> f64 {
        self.sizes.iter().copied().map(length).sum()
    }
}

impl Stacks {
    fn legend(&self, frame: Frame) -> (Markup, f64) {
        let (mut x, mut y) = (0.0, 12.0);
        let mut places = Vec::new();
        for part in &self.parts {
            let wide = units(part) + 34.0;
            if x > 0.0 && x + wide > frame.width() {
                (x, y) = (0.0, y + 18.0);
            }
            places.push((x, y));
            x += wide;
        }
        let content = markup! {
            @for (index, ((x, y), part)) in places.iter().zip(&self.parts).enumerate() {
                rect class=(self.class(index)) x=(number(*x)) y=(number(y - 10.0)) width="12" height="12" rx="2" {}
                (text(x + 17.0, *y, "start", "small", &fit(part, letters(frame.width() - 17.0).min(MOST_PART_LETTERS))))
            }
        };
        (content, y + 12.0)
    }

    /// Colour of a part: those beyond the last colour have the first ones once more, lighter.
    fn class(&self, part: usize) -> String {
        if self.rest == Some(part) {
            return "rest".to_owned();
        }
        let again = if part >= SERIES_COLORS { " again" } else { "" };
        format!("p{}{again}", part % SERIES_COLORS)
    }

    fn bar(&self, row: &Stack, axis: &Axis, at: (f64, f64, f64)) -> Markup {
        let (left, right, y) = at;
        let mut own = Axis::new("", Scale::Linear, self.format);
        own.include(0.0);
        own.include(row.whole());
        let axis = if self.as_shares { &own } else { axis };
        let mut sum = 0.0;
        let mut parts = Vec::new();
        for (index, size) in row.sizes.iter().copied().map(length).enumerate() {
            let from = axis.place(sum).unwrap_or(0.0);
            sum += size;
            let to = axis.place(sum).unwrap_or(from);
            let wide = (to - from) * (right - left);
            if wide > 0.0 {
                parts.push((index, left + from * (right - left), wide, size));
            }
        }
        let whole = row.whole();
        markup! {
            g.named {
                title { (row.label) }
                @for (index, x, wide, size) in &parts {
                    @let part = self.parts.get(*index).map_or("", String::as_str);
                    @let share = (100.0 * size / whole).round();
                    rect class={ "mark " (self.class(*index)) } x=(number(*x)) y=(number(y))
                        width=(number((wide - 1.0).max(0.6))) height="16" {
                        title { (part) ": " ((self.format)(*size)) " (" (share) "%)" }
                    }
                }
            }
            (text(left + axis.place(whole).unwrap_or(0.0) * (right - left) + 6.0, y + 12.5, "start", "figure",
                &(self.format)(whole)))
        }
    }
}

impl Chart for Stacks {
    fn id(&self) -> &str {
        &self.id
    }

    fn title(&self) -> &str {
        &self.title
    }

    fn description(&self) -> String {
        let rows = self.rows.iter().map(|row| {
            let parts = self.parts.iter().zip(&row.sizes);
            let parts =
                parts.map(|(part, size)| format!("{part} {}", (self.format)(length(*size))));
            format!("{}: {}.", row.label, parts.collect::<Vec<_>>().join(", "))
        });
        rows.collect::<Vec<_>>().join(" ")
    }

    fn draw(&self, frame: Frame) -> Drawing {
        let narrow = frame.is_narrow();
        let (legend, legend_height) = self.legend(frame);
        let longest = self
            .rows
            .iter()
            .map(|row| name_units(&row.label, row.strong));
        let labels = if narrow {
            0.0
        } else {
            longest.fold(60.0, f64::max).min(330.0) + 12.0
        };
        let step = if narrow { 42.0 } else { 26.0 };
        let mut axis = Axis::new(&self.heading, Scale::Linear, self.format);
        axis.include(0.0);
        for row in &self.rows {
            axis.include(row.whole());
        }
        let (left, right) = (labels, frame.width() - 70.0);
        let top = legend_height + 18.0;
        Drawing {
            height: top + step * self.rows.len() as f64 + 4.0,
            content: markup! {
                (legend)
                (text(left, legend_height + 8.0, "start", "small", &fit(&self.heading, letters(right - left))))
                @for (index, row) in self.rows.iter().enumerate() {
                    @let y = top + step * index as f64;
                    @let (label_y, bar_y) = if narrow { (y + 12.0, y + 18.0) } else { (y + 17.0, y + 5.0) };
                    (text(0.0, label_y, "start", if row.strong { "bold" } else { "" },
                        &fit_name(&row.label, row.strong, if narrow { frame.width() } else { labels - 12.0 })))
                    (self.bar(row, &axis, (left, right, bar_y)))
                }
            },
        }
    }

    fn rows(&self) -> usize {
        self.rows.len()
    }

    fn data(&self) -> Data {
        let columns = std::iter::once("arm".to_owned()).chain(self.parts.iter().cloned());
        let rows = self.rows.iter().map(|row| {
            let sizes = row.sizes.iter().map(|size| datum(Some(*size)));
            std::iter::once(row.label.clone()).chain(sizes).collect()
        });
        Data {
            columns: columns.collect(),
            rows: rows.collect(),
        }
    }
}
