//! Bars of what arms cost, and beside them their ratios on logarithmic scales, each with its interval, the
//! noise floor and the published figure. Every row is a group that is moved into its place, so that the
//! page's script can hide rows and close the gaps.

use maud::{Markup, html as markup};

use sqlitmus_core::statistics::Interval;

use crate::text::{fit, width, wrap};

use super::axis::{self, Axis, Scale};
use super::{Chart, Data, Drawing, Frame, SERIES_COLORS, letters, number, text};

/// Rows of bars, and columns of ratios.
pub struct Bars {
    /// Identity in the page.
    pub id: String,
    /// Heading.
    pub title: String,
    /// Heading of the bars.
    pub bars: String,
    /// Scales of ratios.
    pub scales: Vec<RatioScale>,
    /// Rows from top to bottom.
    pub rows: Vec<BarsRow>,
    /// Its numbers; the caller knows more of them than the picture shows.
    pub data: Data,
}

/// A scale of ratios.
pub struct RatioScale {
    /// Heading.
    pub heading: String,
    /// Share around 1 in which nothing can be told apart.
    pub noise_floor: Option<f64>,
}

/// A row: an arm, or a heading over several.
pub struct BarsRow {
    /// What it is called.
    pub label: String,
    /// Whether it is what the report is about.
    pub strong: bool,
    /// Exact figures, shown while the pointer rests on the row; without its name, which stands in it.
    pub hover: String,
    /// Names and values that the page's script chooses rows by.
    pub tags: Vec<(&'static str, String)>,
    /// Its figures, or why there are none.
    pub body: BarsBody,
}

/// What stands beside a label.
pub enum BarsBody {
    /// Nothing: it is a heading.
    Heading,
    /// A bar and its ratios.
    Figures {
        /// The bar.
        bar: Bar,
        /// One list for each scale; empty for the arm that is compared with.
        marks: Vec<Vec<Mark>>,
    },
    /// Why there are no figures.
    Trouble {
        /// In words.
        text: String,
        /// Failed, not merely skipped.
        failed: bool,
    },
}

/// A bar.
#[derive(Debug, Clone, Default)]
pub struct Bar {
    /// Length as a share of the longest bar, 0 to 1.
    pub solid: f64,
    /// What is added lightly.
    pub light: f64,
    /// The figure behind it.
    pub figure: String,
    /// Colour of a series; `None` for the colour of what the report is about, or of the rest.
    pub series: Option<usize>,
}

/// A ratio on a scale.
pub struct Mark {
    /// Where.
    pub ratio: f64,
    /// Its interval.
    pub interval: Option<Interval>,
    /// What it stands for.
    pub shape: Shape,
    /// Class of its verdict: `good`, `bad`, `none` or `unsure`.
    pub class: &'static str,
    /// What stands at the end of the scale; may be empty.
    pub text: String,
}

/// What a mark stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Our ratio: a dot.
    Ours,
    /// Our ratio including settling: a small dot beneath.
    Settled,
    /// A published ratio: a diamond.
    Published,
    /// The arm that is compared with: its text alone.
    Itself,
}

/// Places of a picture's parts.
struct Places {
    label: f64,
    bars: (f64, f64),
    scales: (f64, f64),
    top: f64,
    row: f64,
    /// Middle of the label, the bar and the ratios, from the top of the row.
    label_y: f64,
    bar_y: f64,
    ratio_y: f64,
    grid: f64,
    /// Units at the end of a scale that its figure takes.
    figure: f64,
    /// More ticks than this run into one another.
    ticks: usize,
    frame: Frame,
}

const BAR_HEIGHT: f64 = 15.0;

/// Units of a letter of a label, about, and of a bold one; fonts differ.
const LETTER: f64 = 7.0;
const BOLD_LETTER: f64 = 7.9;

/// Size of the letters of long labels, of that of others (`.tight` in the style).
const TIGHT: f64 = 11.0 / 13.0;

/// Units behind the longest bar for its figure.
const BAR_FIGURE: f64 = 62.0;

/// Units of the labels' column beside bars: charts of a page begin alike, but for those with longer labels.
const LABELS: std::ops::RangeInclusive<f64> = 262.0..=330.0;

impl Places {
    fn of(frame: Frame, scales: usize, longest_label: f64) -> Self {
        let label = longest_label.clamp(*LABELS.start(), *LABELS.end());
        match frame {
            Frame::Wide => Self {
                label,
                bars: (label + 8.0, if scales == 0 { 1000.0 } else { 530.0 }),
                scales: (548.0, 1000.0),
                top: if scales == 0 { 22.0 } else { 46.0 },
                row: 26.0,
                label_y: 13.0,
                bar_y: 13.0,
                ratio_y: 13.0,
                grid: 26.0,
                figure: 96.0,
                ticks: 4,
                frame,
            },
            Frame::Narrow => Self {
                label: 360.0,
                bars: (0.0, 360.0),
                scales: (0.0, 360.0),
                top: if scales == 0 { 20.0 } else { 58.0 },
                row: if scales == 0 { 42.0 } else { 62.0 },
                label_y: 10.0,
                bar_y: 27.0,
                ratio_y: 46.0,
                grid: 18.0,
                figure: 80.0,
                ticks: 3,
                frame,
            },
        }
    }

    /// Left end and width of a scale.
    fn scale(&self, index: usize, scales: usize) -> (f64, f64) {
        const GAP: f64 = 14.0;
        let step = (self.scales.1 - self.scales.0 + GAP) / scales.max(1) as f64;
        (self.scales.0 + step * index as f64, step - GAP)
    }

    /// Units of a scale that are its plot.
    fn plot(&self, width: f64) -> f64 {
        (width - self.figure).max(20.0)
    }

    fn height(&self, row: &BarsRow) -> f64 {
        match row.body {
            BarsBody::Heading => 30.0,
            _ => self.row,
        }
    }
}

impl BarsRow {
    fn letter(&self) -> f64 {
        if self.strong { BOLD_LETTER } else { LETTER }
    }

    /// Units that the label takes on one line, about.
    fn units(&self) -> f64 {
        width(&self.label) as f64 * self.letter()
    }

    /// The label; in smaller letters where it is long, and beside bars in two lines.
    fn name(&self, places: &Places) -> Markup {
        let middle = places.label_y + 4.5;
        if self.body.is_heading() {
            return text(
                0.0,
                20.0,
                "start",
                "",
                &fit(&self.label, letters(places.label)),
            );
        }
        let a_letter = self.letter();
        if self.units() <= places.label {
            return text(0.0, middle, "start", "", &self.label);
        }
        let most = (places.label / (a_letter * TIGHT)) as usize;
        let lines = wrap(&self.label, most);
        if places.frame.is_narrow() || lines.len() == 1 {
            return text(0.0, middle, "start", "tight", &fit(&self.label, most));
        }
        markup! {
            text.tight {
                tspan x="0" y=(number(middle - 6.0)) { (lines[0]) " " }
                tspan x="0" y=(number(middle + 6.0)) { (fit(&lines[1..].join(" "), most)) }
            }
        }
    }
}

impl Bars {
    fn headings(&self, places: &Places, axes: &[Axis]) -> Markup {
        let heading_y = if places.frame.is_narrow() { 30.0 } else { 12.0 };
        let most = letters(places.bars.1 - places.bars.0);
        markup! {
            (text(places.bars.0, 12.0, "start", "small", &fit(&self.bars, most)))
            @for (index, (scale, axis)) in self.scales.iter().zip(axes).enumerate() {
                @let (left, width) = places.scale(index, axes.len());
                (text(left, heading_y, "start", "small", &fit(&scale.heading, letters(width))))
                @for tick in axis.ticks(places.ticks) {
                    @let at = left + axis.place(tick).unwrap_or(0.0) * places.plot(width);
                    (text(at, places.top - 8.0, "middle", "small figure", &axis::ratio(tick)))
                }
            }
        }
    }

    fn grid_id(&self, places: &Places) -> String {
        format!("{}-{}-grid", self.id, places.frame.class())
    }

    /// What is behind the ratios of every row, drawn once and used by each.
    fn grids(&self, places: &Places, axes: &[Axis]) -> Markup {
        markup! {
            @if !axes.is_empty() {
                defs { g id=(self.grid_id(places)) {
                    @for (index, (scale, axis)) in self.scales.iter().zip(axes).enumerate() {
                        @let (left, width) = places.scale(index, axes.len());
                        (grid(scale, axis, places, (left, places.plot(width))))
                    }
                } }
            }
        }
    }

    fn row(&self, row: &BarsRow, places: &Places, axes: &[Axis], top: f64) -> Markup {
        let height = places.height(row);
        let tags = row
            .tags
            .iter()
            .map(|(name, value)| format!("{name}={value}"));
        let tags: Vec<String> = tags.collect();
        let class = match (&row.body, row.strong) {
            (BarsBody::Heading, _) => "row heading",
            // Where all rows are what the report is about, heavy letters would tell nothing.
            (_, true) if self.is_all_strong() => "row mark strong plain",
            (_, true) => "row mark strong",
            (_, false) => "row mark",
        };
        let name = row.name(places);
        let is_cut = name.0.contains('…');
        markup! {
            g class=(class) transform={ "translate(0 " (number(top)) ")" } data-height=(number(height))
                data-tags=[(!tags.is_empty()).then(|| tags.join(" "))] data-name=[is_cut.then_some(&row.label)] {
                @if row.body.has_figures() { title { (row.hover) } }
                rect.hover width=(number(places.scales.1)) height=(number(height)) {}
                (name)
                @match &row.body {
                    BarsBody::Heading => {}
                    BarsBody::Trouble { text: words, failed } => {
                        (text(places.bars.0, places.bar_y + 4.5, "start",
                            if *failed { "trouble" } else { "skipped" },
                            &fit(words, letters(places.scales.1 - places.bars.0))))
                    }
                    BarsBody::Figures { bar, marks } => {
                        (bar.draw(places))
                        @if !axes.is_empty() { use href={ "#" (self.grid_id(places)) } {} }
                        @for (index, (marks, axis)) in marks.iter().zip(axes).enumerate() {
                            @let (left, width) = places.scale(index, axes.len());
                            @let plot = (left, places.plot(width));
                            @for mark in marks { (mark.draw(axis, places, plot, left + width)) }
                        }
                    }
                }
            }
        }
    }

    fn is_all_strong(&self) -> bool {
        let mut rows = self.rows.iter().filter(|row| !row.body.is_heading());
        rows.all(|row| row.strong)
    }

    fn axis(&self, scale: usize) -> Axis {
        let mut axis = Axis::new("", Scale::Logarithmic, axis::ratio);
        axis.include(0.85);
        axis.include(1.18);
        let marks = self.rows.iter().flat_map(|row| match &row.body {
            BarsBody::Figures { marks, .. } => marks.get(scale).map(Vec::as_slice).unwrap_or(&[]),
            _ => &[],
        });
        for mark in marks {
            if mark.ratio.is_finite() && mark.ratio > 0.0 {
                // Beyond a factor of a million a picture says nothing that the figure does not.
                axis.include(mark.ratio.clamp(1e-6, 1e6));
            }
            // Intervals of two rounds can be absurdly wide; they are cut off at the border.
            if let Some(ends) = mark.interval.filter(|ends| ends.high < ends.low * 4.0) {
                axis.include(ends.low);
                axis.include(ends.high);
            }
        }
        // Room for a dot at the ends.
        let (low, high) = axis.ends();
        let room = (high / low).powf(0.04);
        axis.include(low / room);
        axis.include(high * room);
        axis
    }
}

impl BarsBody {
    fn has_figures(&self) -> bool {
        !self.is_heading()
    }

    fn is_heading(&self) -> bool {
        matches!(self, Self::Heading)
    }
}

/// Lines and noise floor behind the ratios of a row. Their classes stand alone in the style: what is used
/// elsewhere is matched without its ancestors.
fn grid(scale: &RatioScale, axis: &Axis, places: &Places, plot: (f64, f64)) -> Markup {
    let (top, bottom) = (
        places.ratio_y - places.grid / 2.0,
        places.ratio_y + places.grid / 2.0,
    );
    let at = |ratio: f64| plot.0 + axis.place(ratio).unwrap_or(0.0) * plot.1;
    let ticks = axis.ticks(places.ticks);
    let vertical =
        |ratio: f64| format!("M{} {}V{}", number(at(ratio)), number(top), number(bottom));
    let lines: Vec<String> = ticks
        .iter()
        .filter(|tick| **tick != 1.0)
        .map(|tick| vertical(*tick))
        .collect();
    markup! {
        @if let Some(floor) = scale.noise_floor.filter(|floor| floor.is_finite() && *floor > 0.0) {
            @let (low, high) = (at(1.0 / (1.0 + floor)), at(1.0 + floor));
            rect.c-band x=(number(low)) width=(number((high - low).max(1.0))) y=(number(top)) height=(number(places.grid)) {}
        }
        @if !lines.is_empty() { path.c-grid d=(lines.concat()) {} }
        path.c-one d=(vertical(1.0)) {}
    }
}

impl Bar {
    fn draw(&self, places: &Places) -> Markup {
        let share = |share: f64| {
            if share.is_finite() {
                share.clamp(0.0, 1.0)
            } else {
                0.0
            }
        };
        let room = places.bars.1 - places.bars.0 - BAR_FIGURE;
        let solid = share(self.solid) * room;
        let whole = share(share(self.solid) + share(self.light)) * room;
        let y = number(places.bar_y - BAR_HEIGHT / 2.0);
        let x = number(places.bars.0);
        let series = self
            .series
            .map(|series| format!(" p{}", series % SERIES_COLORS));
        let series = series.unwrap_or_default();
        markup! {
            @if whole > solid {
                rect class="bar-light" x=(x) y=(y) width=(number(whole)) height=(number(BAR_HEIGHT)) {}
            }
            rect class={ "bar" (series) } x=(x) y=(y) width=(number(solid.max(1.0))) height=(number(BAR_HEIGHT)) {}
            (text(places.bars.0 + whole.max(solid) + 6.0, places.bar_y + 4.5, "start", "figure", &self.figure))
        }
    }
}

impl Mark {
    fn draw(&self, axis: &Axis, places: &Places, plot: (f64, f64), end: f64) -> Markup {
        let at = |ratio: f64| axis.place(ratio).map(|place| plot.0 + place * plot.1);
        let middle = places.ratio_y;
        let (interval_y, interval_height, dot_y, radius) = match self.shape {
            Shape::Settled => (middle + 8.0, 5.0, middle + 8.0, "2.2"),
            _ => (middle, 12.0, middle, "3.6"),
        };
        let ends = self
            .interval
            .and_then(|ends| Some((at(ends.low)?, at(ends.high)?)));
        let place = at(self.ratio);
        markup! {
            @match (self.shape, place) {
                (Shape::Itself, _) | (_, None) => {}
                (Shape::Published, Some(x)) => {
                    path.published d={ "M" (number(x)) " " (number(middle - 6.5)) "l6.5 6.5l-6.5 6.5l-6.5 -6.5Z" } {}
                }
                (_, Some(x)) => {
                    @if let Some((low, high)) = ends {
                        rect class={ "interval " (self.class) } x=(number(low)) width=(number(high - low))
                            y=(number(interval_y - interval_height / 2.0)) height=(number(interval_height)) {}
                    }
                    circle class=(self.class) cx=(number(x)) cy=(number(dot_y)) r=(radius) {}
                }
            }
            @if !self.text.is_empty() {
                (text(end, middle + 4.5, "end", &format!("figure {}", self.class), &self.text))
            }
        }
    }
}

impl Chart for Bars {
    fn id(&self) -> &str {
        &self.id
    }

    fn title(&self) -> &str {
        &self.title
    }

    fn description(&self) -> String {
        let rows = self.rows.iter().filter(|row| row.body.has_figures());
        rows.map(|row| row.hover.as_str())
            .collect::<Vec<_>>()
            .join(" ")
    }

    fn draw(&self, frame: Frame) -> Drawing {
        let rows = self.rows.iter().filter(|row| !row.body.is_heading());
        let longest = rows.map(BarsRow::units).fold(0.0, f64::max);
        let places = Places::of(frame, self.scales.len(), longest);
        let axes: Vec<Axis> = (0..self.scales.len())
            .map(|scale| self.axis(scale))
            .collect();
        let mut top = places.top;
        let mut rows = Vec::new();
        for row in &self.rows {
            rows.push(self.row(row, &places, &axes, top));
            top += places.height(row);
        }
        Drawing {
            height: top + 4.0,
            content: markup! {
                (self.grids(&places, &axes))
                (self.headings(&places, &axes))
                @for row in rows { (row) }
            },
        }
    }

    fn data(&self) -> Data {
        self.data.clone()
    }

    fn rows(&self) -> usize {
        self.rows.len()
    }
}
