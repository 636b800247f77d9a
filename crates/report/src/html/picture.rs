//! The picture of a chart: bars of what an arm costs, and beside them its ratios on logarithmic
//! scales, each with its interval, the noise floor and the published figure. Plain SVG whose widths
//! are percentages, so that letters keep their size on every screen; narrow screens get an
//! arrangement of their own.
//!
//! Knows places and shapes; what a row says is for `charts` to decide.

use maud::{Markup, html as markup};

use sqlitmus_core::statistics::Interval;

use crate::text::fit;

/// A picture: rows of bars, and columns of ratios.
pub(super) struct Picture {
    /// For the ids of its title and description; unique in the page.
    pub(super) id: String,
    /// What it shows.
    pub(super) title: String,
    /// The same in words, figures included.
    pub(super) description: String,
    /// Heading of the bars.
    pub(super) bars: String,
    /// Scales of ratios.
    pub(super) scales: Vec<Scale>,
    /// Rows, from top to bottom.
    pub(super) rows: Vec<PictureRow>,
}

/// A scale of ratios.
pub(super) struct Scale {
    /// Heading.
    pub(super) heading: String,
    /// Share around 1 in which nothing can be told apart.
    pub(super) noise_floor: Option<f64>,
}

/// A row: an arm.
pub(super) struct PictureRow {
    /// What it is called.
    pub(super) label: String,
    /// Whether it is what the report is about.
    pub(super) strong: bool,
    /// Exact figures, shown while the pointer rests on the row.
    pub(super) hover: String,
    /// Its figures, or why there are none.
    pub(super) body: PictureBody,
}

/// What stands beside a label.
pub(super) enum PictureBody {
    /// A bar and its ratios.
    Figures {
        /// Length as a share of the longest bar, 0 to 1.
        solid: f64,
        /// What is added lightly.
        light: f64,
        /// The figure behind the bar.
        figure: String,
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

/// A ratio on a scale.
pub(super) struct Mark {
    /// Where.
    pub(super) ratio: f64,
    /// Its interval.
    pub(super) interval: Option<Interval>,
    /// What it stands for.
    pub(super) shape: Shape,
    /// Class of its verdict.
    pub(super) class: &'static str,
    /// What stands at the end of the scale; may be empty.
    pub(super) text: String,
}

/// What a mark stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// Our ratio: a dot.
    Ours,
    /// Our ratio including settling: a small dot beneath.
    Settled,
    /// A published ratio: a diamond.
    Published,
    /// The arm that is compared with: its text alone.
    Itself,
}

/// Places of a picture's parts: percentages of its width, and units from the top.
struct Arrangement {
    class: &'static str,
    label_letters: usize,
    label_width: f64,
    heading_letters: usize,
    reason_letters: usize,
    bars_left: f64,
    bars_width: f64,
    scales_left: f64,
    scales_width: f64,
    top: f64,
    row_height: f64,
    /// Middle of the label, the bar and the ratios, from the top of the row.
    label_y: f64,
    bar_y: f64,
    ratio_y: f64,
    /// Height of a scale's lines around the ratios.
    grid_height: f64,
    /// Percentage of a scale's width that is the plot; the figure stands in the rest.
    plot: f64,
    /// More ticks than this run into one another.
    most_ticks: usize,
}

const WIDE: Arrangement = Arrangement {
    class: "wide",
    label_letters: 42,
    label_width: 26.5,
    heading_letters: 42,
    reason_letters: 110,
    bars_left: 27.0,
    bars_width: 25.0,
    scales_left: 54.0,
    scales_width: 46.0,
    top: 46.0,
    row_height: 27.0,
    label_y: 13.5,
    bar_y: 13.5,
    ratio_y: 13.5,
    grid_height: 27.0,
    plot: 64.0,
    most_ticks: 4,
};

const NARROW: Arrangement = Arrangement {
    class: "narrow",
    label_letters: 44,
    label_width: 100.0,
    heading_letters: 25,
    reason_letters: 46,
    bars_left: 0.0,
    bars_width: 100.0,
    scales_left: 0.0,
    scales_width: 100.0,
    top: 64.0,
    row_height: 66.0,
    label_y: 12.0,
    bar_y: 30.0,
    ratio_y: 49.0,
    grid_height: 18.0,
    plot: 50.0,
    most_ticks: 3,
};

/// Share of the bars' width that the longest bar takes; its figure stands behind it.
const LONGEST: f64 = 76.0;

const BAR_HEIGHT: f64 = 14.0;

impl Picture {
    /// The picture in both arrangements, of which the page shows one.
    pub(super) fn render(&self) -> Markup {
        markup! { (self.arranged(&WIDE)) (self.arranged(&NARROW)) }
    }

    fn arranged(&self, places: &Arrangement) -> Markup {
        let height = places.top + places.row_height * self.rows.len() as f64 + 4.0;
        let id = format!("{}-{}", self.id, places.class);
        let domains: Vec<Domain> = (0..self.scales.len())
            .map(|index| self.domain(index, places.plot))
            .collect();
        markup! {
            svg class=(places.class) role="img" width="100%" height=(number(height))
                aria-labelledby={ (id) "-title " (id) "-text" } {
                title id={ (id) "-title" } { (self.title) }
                desc id={ (id) "-text" } { (self.description) }
                (self.headings(places, &domains))
                @for (index, row) in self.rows.iter().enumerate() {
                    (self.row(row, places, &domains, places.top + places.row_height * index as f64))
                }
            }
        }
    }

    fn headings(&self, places: &Arrangement, domains: &[Domain]) -> Markup {
        let heading_y = if places.bars_width > 99.0 { 32.0 } else { 12.0 };
        markup! {
            text.small x=(percent(places.bars_left)) y="12" { (self.bars) }
            @for (index, (scale, domain)) in self.scales.iter().zip(domains).enumerate() {
                svg x=(percent(places.scale_left(index, domains.len())))
                    width=(percent(places.scale_width(domains.len())))
                    height=(number(places.top)) {
                    text.small x="0" y=(number(heading_y)) {
                        (fit(&scale.heading, places.heading_letters))
                    }
                    @for tick in domain.ticks(places.most_ticks) {
                        text.small.figure x=(percent(domain.place(tick))) y=(number(places.top - 6.0))
                            text-anchor="middle" { (number(tick)) }
                    }
                }
            }
        }
    }

    /// Lines and noise floor behind the ratios of a row.
    fn grid(&self, scale: &Scale, domain: &Domain, places: &Arrangement) -> Markup {
        let (top, bottom) = (
            places.ratio_y - places.grid_height / 2.0,
            places.ratio_y + places.grid_height / 2.0,
        );
        markup! {
            @if let Some(floor) = scale.noise_floor {
                @let (low, high) = (domain.place(1.0 / (1.0 + floor)), domain.place(1.0 + floor));
                rect.band x=(percent(low)) width=(percent(high - low)) y=(number(top))
                    height=(number(places.grid_height)) {}
            }
            @for tick in domain.ticks(places.most_ticks) {
                line class=(if tick == 1.0 { "one" } else { "grid" })
                    x1=(percent(domain.place(tick))) x2=(percent(domain.place(tick)))
                    y1=(number(top)) y2=(number(bottom)) {}
            }
        }
    }

    fn row(&self, row: &PictureRow, places: &Arrangement, domains: &[Domain], top: f64) -> Markup {
        let class = if row.strong { "strong" } else { "" };
        markup! {
            g class=(class) {
                title { (row.hover) }
                rect.hover x="0" y=(number(top)) width="100%" height=(number(places.row_height)) {}
                svg y=(number(top)) width=(percent(places.label_width))
                    height=(number(places.row_height)) {
                    text y=(number(places.label_y + 4.5)) class=[row.strong.then_some("bold")] {
                        (fit(&row.label, places.label_letters))
                    }
                }
                @match &row.body {
                    PictureBody::Trouble { text, failed } => {
                        text class=(if *failed { "trouble" } else { "skipped" })
                            x=(percent(places.bars_left)) y=(number(top + places.bar_y + 4.5)) {
                            (fit(text, places.reason_letters))
                        }
                    }
                    PictureBody::Figures { solid, light, figure, marks } => {
                        (bar(*solid, *light, figure, places, top))
                        @let scales = marks.iter().zip(&self.scales).zip(domains);
                        @for (index, ((marks, scale), domain)) in scales.enumerate() {
                            svg x=(percent(places.scale_left(index, domains.len())))
                                width=(percent(places.scale_width(domains.len())))
                                y=(number(top)) height=(number(places.row_height)) {
                                (self.grid(scale, domain, places))
                                @for mark in marks { (mark.render(domain, places.ratio_y)) }
                            }
                        }
                    }
                }
            }
        }
    }

    fn domain(&self, scale: usize, plot: f64) -> Domain {
        let marks = self.rows.iter().flat_map(|row| match &row.body {
            PictureBody::Figures { marks, .. } => {
                marks.get(scale).map(Vec::as_slice).unwrap_or(&[])
            }
            PictureBody::Trouble { .. } => &[],
        });
        let mut domain = Domain {
            low: 0.8,
            high: 1.25,
            plot,
        };
        for mark in marks {
            domain.include(mark.ratio);
            // Intervals of two rounds can be absurdly wide; they are cut off at the border.
            if let Some(ends) = mark.interval.filter(|ends| ends.high < ends.low * 4.0) {
                domain.include(ends.low);
                domain.include(ends.high);
            }
        }
        domain
    }
}

impl Arrangement {
    fn scale_width(&self, scales: usize) -> f64 {
        self.scales_width / scales.max(1) as f64 - 2.0
    }

    fn scale_left(&self, index: usize, scales: usize) -> f64 {
        self.scales_left + self.scales_width / scales.max(1) as f64 * index as f64
    }
}

fn bar(solid: f64, light: f64, figure: &str, places: &Arrangement, top: f64) -> Markup {
    let share = |share: f64| {
        if share.is_finite() {
            share.clamp(0.0, 1.0)
        } else {
            0.0
        }
    };
    let (solid, light) = (share(solid) * LONGEST, share(light) * LONGEST);
    markup! {
        svg x=(percent(places.bars_left)) width=(percent(places.bars_width))
            y=(number(top)) height=(number(places.row_height)) {
            @let y = number(places.bar_y - BAR_HEIGHT / 2.0);
            @if light > 0.0 {
                rect.bar-light x="0" y=(y) width=(percent(solid + light))
                    height=(number(BAR_HEIGHT)) {}
            }
            rect.bar x="0" y=(y) width=(percent(solid.max(0.3))) height=(number(BAR_HEIGHT)) {}
            text.figure x=(percent(solid + light)) dx="6" y=(number(places.bar_y + 4.5)) {
                (figure)
            }
        }
    }
}

impl Mark {
    fn render(&self, domain: &Domain, middle: f64) -> Markup {
        let place = percent(domain.place(self.ratio));
        let interval = |middle: f64, height: f64| {
            let ends = self
                .interval
                .map(|ends| (domain.place(ends.low), domain.place(ends.high)));
            markup! {
                @if let Some((low, high)) = ends {
                    rect class={ "interval " (self.class) } x=(percent(low)) width=(percent(high - low))
                        y=(number(middle - height / 2.0)) height=(number(height)) {}
                }
            }
        };
        markup! {
            @match self.shape {
                Shape::Ours => {
                    (interval(middle, 13.0))
                    circle class=(self.class) cx=(place) cy=(number(middle)) r="3.5"
                        stroke-width="1.5" {}
                }
                Shape::Settled => g.settled {
                    (interval(middle + 8.0, 5.0))
                    circle class=(self.class) cx=(place) cy=(number(middle + 8.0)) r="2.2" {}
                }
                Shape::Published => svg x=(place) y=(number(middle)) overflow="visible" {
                    path.published d="M0 -6.5 L6.5 0 L0 6.5 L-6.5 0 Z" {}
                }
                Shape::Itself => {}
            }
            @if !self.text.is_empty() {
                text x="100%" y=(number(middle + 4.5)) text-anchor="end"
                    class={ "figure " (self.class) } { (self.text) }
            }
        }
    }
}

/// The ratios that a scale reaches from and to, and how much room it has.
struct Domain {
    low: f64,
    high: f64,
    /// Percentage of the scale's width that is the plot.
    plot: f64,
}

impl Domain {
    fn include(&mut self, ratio: f64) {
        if ratio.is_finite() && ratio > 0.0 {
            // Beyond a factor of a million a picture says nothing that the figure does not.
            let ratio = ratio.clamp(1e-6, 1e6);
            self.low = self.low.min(ratio);
            self.high = self.high.max(ratio);
        }
    }

    /// Percent of the scale's width; what is outside stands at the border.
    fn place(&self, ratio: f64) -> f64 {
        const MARGIN: f64 = 4.0;
        let share = (ratio.max(1e-9).ln() - self.low.ln()) / (self.high.ln() - self.low.ln());
        let share = if share.is_finite() {
            share.clamp(0.0, 1.0)
        } else {
            1.0
        };
        MARGIN + share * (self.plot - 2.0 * MARGIN)
    }

    /// Round numbers inside, few enough to be read side by side.
    fn ticks(&self, most: usize) -> Vec<f64> {
        let inside = |ticks: &[f64]| -> Vec<f64> {
            let decades = (-6..=6).map(|power| 10f64.powi(power));
            let all = decades.flat_map(|decade| ticks.iter().map(move |tick| tick * decade));
            all.filter(|tick| (self.low..=self.high).contains(tick))
                .collect()
        };
        for steps in [[1.0, 2.0, 5.0].as_slice(), &[1.0, 3.0], &[1.0]] {
            let ticks = inside(steps);
            if ticks.len() <= most {
                return ticks;
            }
        }
        vec![1.0]
    }
}

/// A coordinate with one decimal at the most.
fn number(value: f64) -> String {
    let rounded = format!("{value:.6}");
    rounded
        .trim_end_matches('0')
        .trim_end_matches('.')
        .to_owned()
}

fn percent(value: f64) -> String {
    let value = if value.is_finite() { value } else { 0.0 };
    format!("{value:.2}%")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_hold_every_ratio() {
        let mut domain = Domain {
            low: 0.8,
            high: 1.25,
            plot: 60.0,
        };
        for ratio in [0.02, 33.0, f64::NAN, f64::INFINITY, 0.0, -1.0] {
            domain.include(ratio);
        }
        assert_eq!((domain.low, domain.high), (0.02, 33.0));
        assert!(domain.place(0.02) < domain.place(1.0) && domain.place(1.0) < domain.place(33.0));
        for ratio in [0.0, f64::NAN, f64::INFINITY, 1e300, 1e-300] {
            assert!((0.0..=100.0).contains(&domain.place(ratio)), "{ratio}");
        }
        assert_eq!(domain.ticks(4), [0.1, 1.0, 10.0]);
        assert_eq!(
            Domain {
                low: 0.8,
                high: 6.2,
                plot: 60.0
            }
            .ticks(4),
            [1.0, 2.0, 5.0]
        );
    }
}
