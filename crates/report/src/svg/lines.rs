//! Curves: a crossover by size, throughput by threads, latencies by percentile. Each may have a band
//! (its interval); a published curve is dashed and has hollow points.

use maud::{Markup, html as markup};

use crate::text::fit;

use super::axis::Axis;
use super::{
    Chart, Data, Drawing, Frame, SERIES_COLORS, datum, dot, fit_name, letters, name_units, number,
    text, units,
};

/// More crossings than this have no figures beside them, only when they are pointed at.
const MOST_NAMED_CROSSINGS: usize = 3;

/// Curves over two axes.
pub struct LineChart {
    /// Identity in the page.
    pub id: String,
    /// Heading.
    pub title: String,
    /// From left to right.
    pub x: Axis,
    /// From bottom to top.
    pub y: Axis,
    /// A number of the `y` axis with a line across, such as ratio 1; and what it means.
    pub reference: Option<(f64, String)>,
    /// Numbers of the `x` axis at which curves have a point to hover over; empty for all.
    pub marked: Vec<f64>,
    /// Where curves cross the reference.
    pub crossings: Vec<CrossingMark>,
    /// The curves.
    pub series: Vec<Series>,
}

/// Where a curve crosses the reference of its chart.
#[derive(Debug, Clone, PartialEq)]
pub struct CrossingMark {
    /// Place of the curve among the series.
    pub series: usize,
    /// Place on the `x` axis.
    pub x: f64,
    /// Its interval: low and high.
    pub interval: (f64, f64),
}

/// A curve.
pub struct Series {
    /// What it is called.
    pub label: String,
    /// What the report is about: drawn stronger.
    pub strong: bool,
    /// Not measured by this run, but published or computed, as its label says: dashed.
    pub published: bool,
    /// From left to right.
    pub points: Vec<Point>,
}

/// A point of a curve.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// Place on the `x` axis.
    pub x: f64,
    /// Place on the `y` axis.
    pub y: f64,
    /// Interval of `y`: low and high.
    pub interval: Option<(f64, f64)>,
}

/// Places of the plot in its frame.
struct Plot {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

const LINE: f64 = 16.0;

/// Curves beyond these have no points, and no names of their own beside them.
const MOST_SERIES_WITH_POINTS: usize = 24;

impl LineChart {
    /// The axes with every point on them.
    fn stretched(&self) -> (Axis, Axis) {
        let (mut x, mut y) = (self.x.clone(), self.y.clone());
        for point in self.series.iter().flat_map(|series| &series.points) {
            if x.accepts(point.x) && y.accepts(point.y) {
                x.include(point.x);
                y.include(point.y);
                // Intervals that are absurdly wide are cut off at the border.
                if let Some((low, high)) = point.interval.filter(|(low, high)| *high < *low * 8.0) {
                    y.include(low);
                    y.include(high);
                }
            }
        }
        if let Some((reference, _)) = &self.reference {
            y.include(*reference);
        }
        (x, y)
    }

    fn frame(&self, frame: Frame) -> Plot {
        let legend = if frame.is_narrow() {
            LINE * self.series.len().min(MOST_SERIES_WITH_POINTS) as f64 + 8.0
        } else {
            0.0
        };
        let longest = self
            .series
            .iter()
            .map(|series| name_units(&series.label, series.strong));
        let labels = longest.fold(60.0, f64::max).min(350.0) + 29.0;
        let ticks = self
            .stretched()
            .1
            .ticks(if frame.is_narrow() { 5 } else { 7 });
        let widest = ticks.into_iter().map(|tick| (self.y.format)(tick));
        let widest = widest.map(|tick| units(&tick)).fold(0.0, f64::max);
        Plot {
            left: (widest + 12.0).clamp(52.0, 140.0),
            right: frame.width() - if frame.is_narrow() { 10.0 } else { labels },
            top: 22.0 + legend,
            bottom: legend + if frame.is_narrow() { 250.0 } else { 330.0 },
        }
    }

    fn grid(&self, plot: &Plot, x: &Axis, y: &Axis, frame: Frame) -> Markup {
        let (across, up) = if frame.is_narrow() { (4, 5) } else { (10, 7) };
        markup! {
            (text(0.0, plot.top - 10.0, "start", "small", &fit(&self.y.heading, letters(plot.right))))
            @for tick in y.ticks(up) {
                @if let Some(place) = y.place(tick) {
                    @let at = plot.y(place);
                    line.grid x1=(number(plot.left)) x2=(number(plot.right)) y1=(number(at)) y2=(number(at)) {}
                    (text(plot.left - 6.0, at + 4.0, "end", "small figure", &(self.y.format)(tick)))
                }
            }
            @for tick in x.ticks(across) {
                @if let Some(place) = x.place(tick) {
                    @let at = plot.x(place);
                    line.grid x1=(number(at)) x2=(number(at)) y1=(number(plot.top)) y2=(number(plot.bottom)) {}
                    (text(at, plot.bottom + 16.0, "middle", "small figure", &(self.x.format)(tick)))
                }
            }
            (text((plot.left + plot.right) / 2.0, plot.bottom + 34.0, "middle", "small",
                &fit(&self.x.heading, letters(plot.right - plot.left))))
            @if let Some((reference, _)) = &self.reference {
                @if let Some(place) = y.place(*reference) {
                    @let at = number(plot.y(place));
                    line.one x1=(number(plot.left)) x2=(number(plot.right)) y1=(at) y2=(at) {}
                }
            }
        }
    }

    /// What the line across means, above curves.
    fn reference(&self, plot: &Plot, y: &Axis) -> Markup {
        markup! {
            @if let Some((reference, words)) = &self.reference {
                @if let Some(place) = y.place(*reference) {
                    @let at = plot.y(place);
                    (text(plot.left + 4.0, at - 4.0, "start", "small over", &fit(words, letters(plot.right - plot.left))))
                }
            }
        }
    }

    fn curve(&self, index: usize, series: &Series, plot: &Plot, x: &Axis, y: &Axis) -> Markup {
        let placed: Vec<(f64, f64, &Point)> = series
            .points
            .iter()
            .filter_map(|point| Some((plot.x(x.place(point.x)?), plot.y(y.place(point.y)?), point)))
            .collect();
        let line: Vec<String> = placed
            .iter()
            .map(|(across, up, _)| format!("{},{}", number(*across), number(*up)))
            .collect();
        let class = self.class(index);
        // Among very many curves points would be a fog.
        let few = self.series.len() <= MOST_SERIES_WITH_POINTS;
        let ends = placed.len().saturating_sub(1);
        let shown = placed.iter().enumerate().filter(|(place, (_, _, point))| {
            let round = self.marked.is_empty() || self.marked.contains(&point.x);
            placed.len() == 1 || (few && (round || *place == ends))
        });
        markup! {
            g class={ (class) " named" } {
                title { (series.label) }
                (band(&placed, plot, y))
                @if line.len() > 1 { polyline points=(line.join(" ")) {} }
                @for (_, (across, up, point)) in shown {
                    (dot(&self.words(point), *across, *up, if series.strong { "3.4" } else { "2.6" }))
                }
            }
        }
    }

    /// Crossings lie on the reference, each with its interval as a line and a thread to the axis below.
    fn marks(&self, plot: &Plot, x: &Axis, y: &Axis) -> Markup {
        let reference = self.reference.as_ref();
        let Some(height) = reference.and_then(|(reference, _)| y.place(*reference)) else {
            return markup! {};
        };
        let up = plot.y(height);
        // Names of many would run into one another.
        let is_named = self.crossings.len() <= MOST_NAMED_CROSSINGS;
        let format = self.x.format;
        let placed = self.crossings.iter().filter_map(|mark| {
            let across = plot.x(x.place(mark.x)?);
            let ends = (x.place(mark.interval.0)?, x.place(mark.interval.1)?);
            Some((mark, across, (plot.x(ends.0), plot.x(ends.1))))
        });
        markup! {
            @for (mark, across, (low, high)) in placed {
                @let words = format!("crosses at {} ({} to {})", format(mark.x), format(mark.interval.0), format(mark.interval.1));
                line.one stroke-dasharray="2 3" x1=(number(across)) x2=(number(across)) y1=(number(up)) y2=(number(plot.bottom)) {}
                g class={ (self.class(mark.series)) " crossing" } {
                    line x1=(number(low)) x2=(number(high)) y1=(number(up)) y2=(number(up)) {}
                    (dot(&words, across, up, "4.6"))
                }
                @if is_named {
                    (text(across + 6.0, plot.bottom - 8.0, "start", "small figure", &format(mark.x)))
                }
            }
        }
    }

    fn words(&self, point: &Point) -> String {
        let interval = point.interval.map_or(String::new(), |(low, high)| {
            format!(" ({} to {})", (self.y.format)(low), (self.y.format)(high))
        });
        format!(
            "{}: {}{interval}",
            (self.x.format)(point.x),
            (self.y.format)(point.y)
        )
    }

    /// Names at the ends of their curves, moved apart where they would run into one another.
    fn names(&self, plot: &Plot, x: &Axis, y: &Axis, frame: Frame) -> Markup {
        let mut ends: Vec<(usize, f64)> = self
            .series
            .iter()
            .enumerate()
            .take(MOST_SERIES_WITH_POINTS)
            .filter_map(|(index, series)| {
                let mut points = series.points.iter().rev();
                let last = points.find(|point| x.accepts(point.x) && y.accepts(point.y))?;
                Some((index, plot.y(y.place(last.y)?)))
            })
            .collect();
        ends.sort_by(|one, other| one.1.total_cmp(&other.1));
        let lines: Vec<(usize, f64)> = if frame.is_narrow() {
            let mut shown: Vec<usize> = ends.iter().map(|(index, _)| *index).collect();
            shown.sort_unstable();
            shown
                .into_iter()
                .enumerate()
                .map(|(line, index)| (index, LINE * line as f64 + 8.0))
                .collect()
        } else {
            apart(&ends, plot.top, plot.bottom)
        };
        let left = if frame.is_narrow() {
            0.0
        } else {
            plot.right + 8.0
        };
        let room = frame.width() - left - 18.0;
        markup! {
            @for (index, at) in lines {
                @if let Some(series) = self.series.get(index) {
                    g class=(self.class(index)) {
                        line x1=(number(left)) x2=(number(left + 12.0)) y1=(number(at)) y2=(number(at)) {}
                        (text(left + 17.0, at + 4.0, "start", if series.strong { "bold" } else { "" },
                            &fit_name(&series.label, series.strong, room)))
                    }
                }
            }
        }
    }
}

/// Moves labels apart: each as near to its place as there is room, in the same order.
fn apart(ends: &[(usize, f64)], top: f64, bottom: f64) -> Vec<(usize, f64)> {
    let step = ((bottom - top) / ends.len().max(1) as f64).min(LINE);
    let mut placed: Vec<(usize, f64)> = ends.to_vec();
    for index in 1..placed.len() {
        placed[index].1 = placed[index].1.max(placed[index - 1].1 + step);
    }
    let mut limit = bottom;
    for end in placed.iter_mut().rev() {
        end.1 = end.1.min(limit);
        limit = end.1 - step;
    }
    placed
}

impl LineChart {
    /// The classes of a curve. What the report is about has the first colours.
    fn class(&self, index: usize) -> String {
        let Some(series) = self.series.get(index) else {
            return String::new();
        };
        let alike = |other: &&Series| other.strong == series.strong;
        let before = self.series.iter().take(index).filter(alike).count();
        let strong = self.series.iter().filter(|series| series.strong).count();
        let color = if series.strong {
            before
        } else {
            strong + before
        };
        format!(
            "series s{}{}{}{}",
            color % SERIES_COLORS,
            if series.strong { " strong" } else { "" },
            if series.published { " dashed" } else { "" },
            if color >= SERIES_COLORS { " again" } else { "" },
        )
    }
}

fn band(placed: &[(f64, f64, &Point)], plot: &Plot, y: &Axis) -> Markup {
    let edge = |end: fn((f64, f64)) -> f64| {
        placed.iter().filter_map(move |(across, _, point)| {
            let place = y.place(end(point.interval?))?;
            Some(format!("{},{}", number(*across), number(plot.y(place))))
        })
    };
    let mut outline: Vec<String> = edge(|ends| ends.0).collect();
    let upper: Vec<String> = edge(|ends| ends.1).collect();
    if outline.len() < 2 || upper.len() != outline.len() {
        return markup! {};
    }
    outline.extend(upper.into_iter().rev());
    markup! { polygon points=(outline.join(" ")) {} }
}

impl Plot {
    fn x(&self, share: f64) -> f64 {
        self.left + share * (self.right - self.left)
    }

    fn y(&self, share: f64) -> f64 {
        self.bottom - share * (self.bottom - self.top)
    }
}

impl Chart for LineChart {
    fn id(&self) -> &str {
        &self.id
    }

    fn title(&self) -> &str {
        &self.title
    }

    fn description(&self) -> String {
        let ends = self.series.iter().filter_map(|series| {
            let (first, last) = (series.points.first()?, series.points.last()?);
            Some(format!(
                "{}: {} at {}, {} at {}.",
                series.label,
                (self.y.format)(first.y),
                (self.x.format)(first.x),
                (self.y.format)(last.y),
                (self.x.format)(last.x)
            ))
        });
        let crossings = self.crossings.iter().filter_map(|mark| {
            let series = self.series.get(mark.series)?;
            let format = self.x.format;
            let (low, high) = mark.interval;
            Some(format!(
                "{} crosses at {} ({} to {}).",
                series.label,
                format(mark.x),
                format(low),
                format(high)
            ))
        });
        ends.chain(crossings).collect::<Vec<_>>().join(" ")
    }

    fn draw(&self, frame: Frame) -> Drawing {
        let (x, y) = self.stretched();
        let plot = self.frame(frame);
        let series = self.series.iter().enumerate();
        // What the report is about lies on top.
        let mut order: Vec<(usize, &Series)> = series.collect();
        order.sort_by_key(|(_, series)| series.strong);
        Drawing {
            height: plot.bottom + 42.0,
            content: markup! {
                (self.grid(&plot, &x, &y, frame))
                @for (index, series) in order { (self.curve(index, series, &plot, &x, &y)) }
                (self.reference(&plot, &y))
                (self.marks(&plot, &x, &y))
                (self.names(&plot, &x, &y, frame))
            },
        }
    }

    fn rows(&self) -> usize {
        self.series.len()
    }

    fn data(&self) -> Data {
        let points = || self.series.iter().flat_map(|series| &series.points);
        if points().all(|point| point.interval.is_none()) {
            return self.by_place();
        }
        let columns = ["series", &self.x.heading, &self.y.heading, "low", "high"];
        let rows = self.series.iter().flat_map(|series| {
            series.points.iter().map(|point| {
                vec![
                    series.label.clone(),
                    datum(Some(point.x)),
                    datum(Some(point.y)),
                    datum(point.interval.map(|ends| ends.0)),
                    datum(point.interval.map(|ends| ends.1)),
                ]
            })
        });
        Data {
            columns: columns.map(str::to_owned).into(),
            rows: rows.collect(),
        }
    }
}

impl LineChart {
    /// A row a curve, a column for every place on the `x` axis.
    fn by_place(&self) -> Data {
        let points = self.series.iter().flat_map(|series| &series.points);
        let mut places: Vec<f64> = points
            .map(|point| point.x)
            .filter(|x| x.is_finite())
            .collect();
        places.sort_by(f64::total_cmp);
        places.dedup();
        let headings = places.iter().map(|x| (self.x.format)(*x));
        let rows = self.series.iter().map(|series| {
            let at = |x: &f64| {
                let point = series.points.iter().find(|point| point.x == *x);
                datum(point.map(|point| point.y))
            };
            std::iter::once(series.label.clone())
                .chain(places.iter().map(at))
                .collect()
        });
        Data {
            columns: std::iter::once(self.y.heading.clone())
                .chain(headings)
                .collect(),
            rows: rows.collect(),
        }
    }
}
