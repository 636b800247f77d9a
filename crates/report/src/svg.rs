//! Charts as SVG: the components that the page and `--format svg` are made of, and that any suite
//! can feed. Each takes cleaned texts and plain numbers, knows places and shapes, and leaves to its
//! caller what they mean.
//!
//! A component is a [`Chart`]. It draws itself in a [`Frame`], wide or narrow, and gives its numbers as
//! [`Data`], from which the page makes a table and a CSV file. What every one of them keeps:
//!
//! - a number that is none (NaN, infinite, or zero on a logarithmic scale) is left out or stands at the
//!   border, and is never written;
//! - colours are classes of `svg/style.css`, so that a page can be light and dark, and nothing is told
//!   by colour alone;
//! - each mark that stands for figures has the class `mark` and a `title`: browsers show it where the pointer
//!   rests, and the page's script reads it for those who use the keyboard. What all marks of a group say alike
//!   (the name of their arm) is said once, by the `title` of a group of class `named` around them.
//!
//! | component | for |
//! |---|---|
//! | [`Bars`] | cost of arms, and their ratios with intervals and published figures |
//! | [`LineChart`] | curves with a band of their interval: crossover, threads, latencies |
//! | [`HeatMap`] | ratios by two settings, a published table beside ours |
//! | [`Scatter`] | two costs at once, and which arms nothing beats in both |
//! | [`Stacks`] | parts of a whole: where the time goes |
//! | [`Rounds`] | values round by round: drift and outliers |

mod axis;
mod bars;
mod heat_map;
mod lines;
mod rounds;
mod scatter;
mod stacks;

pub use axis::{Axis, Scale, bytes, percentile, plain, ratio};
pub use bars::{Bar, Bars, BarsBody, BarsRow, Mark, RatioScale, Shape};
pub use heat_map::{Cell, HeatMap, HeatPanel};
pub use lines::{CrossingMark, LineChart, Point, Series};
pub use rounds::{RoundMark, Rounds, RoundsRow};
pub use scatter::{Further, Scatter, ScatterPoint};
pub use stacks::{Stack, Stacks};

use maud::{Markup, PreEscaped, html as markup};

use crate::text::{clean, fit, width};

/// Colours and letters of charts; ours, and therefore not escaped.
pub(crate) const STYLE: &str = include_str!("svg/style.css");

/// Colours of series; further ones begin again, with another dash.
pub const SERIES_COLORS: usize = 8;

/// The two arrangements of a chart. A page holds both and shows the one that fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frame {
    /// For a screen on a desk, and for paper.
    Wide,
    /// For a telephone.
    Narrow,
}

impl Frame {
    /// Units from left to right.
    #[must_use]
    pub fn width(self) -> f64 {
        match self {
            Self::Wide => 1000.0,
            Self::Narrow => 360.0,
        }
    }

    fn class(self) -> &'static str {
        match self {
            Self::Wide => "wide",
            Self::Narrow => "narrow",
        }
    }

    fn is_narrow(self) -> bool {
        self == Self::Narrow
    }
}

/// What a chart has drawn.
pub struct Drawing {
    /// Units from top to bottom.
    pub height: f64,
    /// SVG elements.
    pub content: Markup,
}

/// The numbers behind a chart.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Data {
    /// Headings with units.
    pub columns: Vec<String>,
    /// Rows of as many cells; what is not there is empty.
    pub rows: Vec<Vec<String>>,
}

/// A picture that can be drawn.
pub trait Chart {
    /// Identity in its page: letters, digits and hyphens.
    fn id(&self) -> &str;
    /// What it shows.
    fn title(&self) -> &str;
    /// The same in words, figures included, for those who do not see it.
    fn description(&self) -> String;
    /// Draws it.
    fn draw(&self, frame: Frame) -> Drawing;
    /// Its numbers.
    fn data(&self) -> Data;
    /// Rows, if it is made of rows: a page draws very long charts once, and lets them be moved
    /// sideways on a telephone.
    fn rows(&self) -> usize {
        0
    }
}

/// Charts of more rows are drawn once.
const MOST_ROWS_TWICE: usize = 120;

/// A chart in both arrangements, of which the page shows one; in the wide one alone if it is very long.
#[must_use]
pub fn in_page(chart: &dyn Chart) -> Markup {
    if chart.rows() > MOST_ROWS_TWICE {
        return in_page_once(chart);
    }
    markup! { (framed(chart, Frame::Wide, "wide")) (framed(chart, Frame::Narrow, "narrow")) }
}

/// A chart in the wide arrangement alone, for pages of very many charts: narrow screens move it sideways.
#[must_use]
pub fn in_page_once(chart: &dyn Chart) -> Markup {
    framed(chart, Frame::Wide, "only")
}

fn framed(chart: &dyn Chart, frame: Frame, class: &str) -> Markup {
    let drawing = chart.draw(frame);
    let id = format!("{}-{class}", chart.id());
    markup! {
        svg class={ "chart " (class) } role="img" viewBox={ "0 0 " (number(frame.width())) " " (number(drawing.height)) }
            aria-labelledby={ (id) "-title" } {
            title id={ (id) "-title" } { (chart.title()) }
            (drawing.content)
        }
    }
}

/// A chart as an SVG file of its own, with its style, in the wide arrangement.
#[must_use]
pub fn standalone(chart: &dyn Chart) -> String {
    stacked_file(&[chart])
}

/// Several charts, one below the other, as one SVG file.
#[must_use]
pub fn stacked_file(charts: &[&dyn Chart]) -> String {
    const MARGIN: f64 = 24.0;
    const HEADING: f64 = 34.0;
    let mut top = MARGIN;
    let mut parts = Vec::new();
    for chart in charts {
        let drawing = chart.draw(Frame::Wide);
        let height = drawing.height;
        parts.push(markup! {
            g transform={ "translate(" (number(MARGIN)) " " (number(top)) ")" } {
                text.heading y="14" { (fit(chart.title(), 90)) }
                desc { (chart.description()) }
                g transform={ "translate(0 " (number(HEADING)) ")" } { (drawing.content) }
            }
        });
        top += HEADING + height + MARGIN;
    }
    let whole = Frame::Wide.width() + 2.0 * MARGIN;
    let file = markup! {
        svg xmlns="http://www.w3.org/2000/svg" class="chart file" width=(number(whole)) height=(number(top))
            viewBox={ "0 0 " (number(whole)) " " (number(top)) } {
            style { (PreEscaped(STYLE)) }
            rect.paper width="100%" height="100%" {}
            @for part in parts { (part) }
        }
    };
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    text.push_str(&short(&file.into_string()));
    text.push('\n');
    text
}

/// Empty shapes without their closing tags, as XML and the SVG parts of HTML allow.
pub(crate) fn short(markup: &str) -> String {
    let mut text = String::with_capacity(markup.len());
    // Each piece is what stands between two `<`: a tag, and the text behind it.
    let mut pieces = markup.split('<').peekable();
    text.push_str(pieces.next().unwrap_or_default());
    while let Some(piece) = pieces.next() {
        text.push('<');
        let name: &str = piece.split([' ', '>']).next().unwrap_or_default();
        let closing = pieces.peek().and_then(|next| {
            next.strip_prefix('/')?
                .strip_prefix(name)?
                .strip_prefix('>')
        });
        match (SHAPES.contains(&name), piece.strip_suffix('>'), closing) {
            (true, Some(tag), Some(behind)) => {
                text.push_str(tag);
                text.push_str("/>");
                text.push_str(behind);
                pieces.next();
            }
            _ => text.push_str(piece),
        }
    }
    text
}

/// Elements that may be empty.
const SHAPES: [&str; 7] = [
    "rect", "circle", "line", "path", "use", "polyline", "polygon",
];

/// A group with its figures in words: see the module's documentation.
fn mark(words: &str, content: &Markup) -> Markup {
    markup! { g.mark { title { (words) } (content) } }
}

/// A point with its figures in words.
fn dot(words: &str, x: f64, y: f64, radius: &str) -> Markup {
    markup! { circle.mark cx=(number(x)) cy=(number(y)) r=(radius) { title { (words) } } }
}

/// Text at a place. `anchor` is `start`, `middle` or `end`.
fn text(x: f64, y: f64, anchor: &str, class: &str, words: &str) -> Markup {
    markup! {
        text x=(number(x)) y=(number(y)) class=[(!class.is_empty()).then_some(class)]
            text-anchor=[(anchor != "start").then_some(anchor)] { (words) }
    }
}

/// Units of a letter of a name, about, heavy or not; fonts differ.
fn letter(bold: bool) -> f64 {
    if bold { 8.1 } else { 7.4 }
}

/// Units that a name takes, about.
fn name_units(name: &str, bold: bool) -> f64 {
    width(name) as f64 * letter(bold)
}

/// As much of a name as so many units have room for.
fn fit_name(name: &str, bold: bool, units: f64) -> String {
    fit(name, (units / letter(bold)).max(1.0) as usize)
}

/// Letters of a line that is so many units wide, at 13 units a line.
fn letters(units: f64) -> usize {
    (units / 6.9).max(1.0) as usize
}

/// Units that a text takes, about.
fn units(words: &str) -> f64 {
    width(words) as f64 * 7.4
}

/// A coordinate: a tenth of a unit is finer than any screen.
fn number(value: f64) -> String {
    let value = if value.is_finite() {
        value.clamp(-1e6, 1e6)
    } else {
        0.0
    };
    let rounded = format!("{value:.1}");
    let short = rounded.strip_suffix(".0").unwrap_or(&rounded);
    if short == "-0" {
        "0".to_owned()
    } else {
        short.to_owned()
    }
}

/// A number for a data file: seven significant digits, empty if there is none.
#[must_use]
pub fn datum(value: Option<f64>) -> String {
    match value.filter(|value| value.is_finite()) {
        None => String::new(),
        Some(value) => {
            let rounded: f64 = format!("{value:.6e}").parse().unwrap_or(value);
            rounded.to_string()
        }
    }
}

impl Data {
    /// Lines of comma-separated values (RFC 4180) with a line of headings.
    #[must_use]
    pub fn csv(&self) -> String {
        let mut text = String::new();
        for row in std::iter::once(&self.columns).chain(&self.rows) {
            let cells: Vec<String> = row.iter().map(|cell| csv_cell(cell)).collect();
            text.push_str(&cells.join(","));
            text.push_str("\r\n");
        }
        text
    }
}

/// A cell of a CSV file. Quoted where it must be; a text that a spreadsheet would take for a formula
/// is preceded by an apostrophe, as these themselves do it.
pub(crate) fn csv_cell(text: &str) -> String {
    let cleaned = clean(text);
    let is_number = cleaned.parse::<f64>().is_ok_and(f64::is_finite);
    let acts = cleaned.starts_with(['=', '+', '-', '@']) && !is_number;
    let safe = if acts { format!("'{cleaned}") } else { cleaned };
    if safe.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", safe.replace('"', "\"\""))
    } else {
        safe
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coordinates_are_short_and_always_numbers() {
        for (value, shown) in [
            (1.0, "1"),
            (1.25, "1.2"),
            (-0.01, "0"),
            (f64::NAN, "0"),
            (f64::INFINITY, "0"),
            (1e300, "1000000"),
        ] {
            assert_eq!(number(value), shown);
        }
        assert_eq!(datum(Some(1_234.567_89)), "1234.568");
        assert_eq!(datum(Some(f64::NAN)), "");
    }

    #[test]
    fn only_empty_shapes_are_shortened() {
        assert_eq!(
            short("<g><rect x=\"1\"></rect>a<circle><title>t</title></circle></g><td></td>"),
            "<g><rect x=\"1\"/>a<circle><title>t</title></circle></g><td></td>"
        );
    }

    #[test]
    fn cells_stay_in_their_column_and_are_no_formulas() {
        assert_eq!(csv_cell("a, \"b\""), "\"a, \"\"b\"\"\"");
        assert_eq!(csv_cell("=HYPERLINK(1)"), "'=HYPERLINK(1)");
        assert_eq!(csv_cell("-1.5"), "-1.5");
        assert_eq!(csv_cell("-x"), "'-x");
        assert_eq!(csv_cell("two\nlines"), "two lines");
    }
}
