//! Two costs at once, less being better in both: which arms nothing beats (the Pareto front) are joined by
//! a line, all others are beaten by one of them in both. A third cost is the area of a point, and a tier its
//! shape; then what nothing beats in all of these is ringed, and there is no line to be drawn.

use maud::{Markup, html as markup};

use sqlitmus_core::units::format_ratio;

use crate::text::fit;

use super::axis::Axis;
use super::{Chart, Data, Drawing, Frame, datum, dot, letters, number, text, units};

/// Arms by two costs.
pub struct Scatter {
    /// Identity in the page.
    pub id: String,
    /// Heading.
    pub title: String,
    /// From left to right: less is better.
    pub x: Axis,
    /// From bottom to top: less is better.
    pub y: Axis,
    /// What area and shape stand for, if they stand for anything.
    pub further: Option<Further>,
    /// The arms.
    pub points: Vec<ScatterPoint>,
}

/// A third cost and a tier.
#[derive(Debug, Clone, PartialEq)]
pub struct Further {
    /// What the area of a point is: less is better.
    pub area: String,
    /// What the tiers are called, the lowest first, which is drawn as circles; all others are squares.
    pub tiers: Vec<String>,
}

/// An arm.
#[derive(Debug, Clone, PartialEq)]
pub struct ScatterPoint {
    /// What it is called.
    pub label: String,
    /// Whether it is what the report is about.
    pub strong: bool,
    /// First cost.
    pub x: f64,
    /// Second cost.
    pub y: f64,
    /// Third cost, 1 being that of what is compared with, if it is known; drawn if there is a
    /// [`Further`].
    pub area: Option<f64>,
    /// Index of its tier: a higher one is better.
    pub tier: usize,
}

impl ScatterPoint {
    /// Whether it is worse in nothing and better in something; never where the third cost of only one of the two
    /// is known.
    fn beats(&self, other: &Self) -> bool {
        let areas = match (self.area, other.area) {
            (Some(own), Some(others)) => (own, others),
            (None, None) => (1.0, 1.0),
            _ => return false,
        };
        let costs = [
            (self.x, other.x),
            (self.y, other.y),
            areas,
            (-(self.tier as f64), -(other.tier as f64)),
        ];
        costs.iter().all(|(own, others)| own <= others)
            && costs.iter().any(|(own, others)| own < others)
    }

    /// Of a circle, in units.
    fn radius(&self) -> f64 {
        self.area.map_or(RADIUS, |area| {
            (RADIUS_OF_ONE * area.max(0.0).sqrt()).clamp(LEAST_RADIUS, MOST_RADIUS)
        })
    }
}

/// Of a point whose area says nothing, in units; of one whose area is 1; and the least and the most.
const RADIUS: f64 = 5.0;
const RADIUS_OF_ONE: f64 = 7.0;
const LEAST_RADIUS: f64 = 3.0;
const MOST_RADIUS: f64 = 16.0;

/// From a point to its ring.
const RING: f64 = 3.5;

struct Plot {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

impl Scatter {
    fn drawable(&self) -> Vec<&ScatterPoint> {
        let points = self.points.iter();
        points
            .filter(|point| self.x.accepts(point.x) && self.y.accepts(point.y))
            .collect()
    }

    fn axes(&self) -> (Axis, Axis) {
        let (mut x, mut y) = (self.x.clone(), self.y.clone());
        for point in self.drawable() {
            x.include(point.x);
            y.include(point.y);
        }
        // Room around the outermost points.
        let widen = |axis: &mut Axis| {
            let (low, high) = axis.ends();
            match axis.scale {
                super::Scale::Logarithmic => {
                    axis.include(low / 1.15);
                    axis.include(high * 1.15);
                }
                _ => {
                    let room = (high - low) * 0.08;
                    axis.include(low - room);
                    axis.include(high + room);
                }
            }
        };
        widen(&mut x);
        widen(&mut y);
        (x, y)
    }

    fn words(&self, point: &ScatterPoint) -> String {
        let mut words = format!(
            "{}: {} {}, {} {}",
            point.label,
            self.x.heading,
            (self.x.format)(point.x),
            self.y.heading,
            (self.y.format)(point.y)
        );
        if let Some(further) = &self.further {
            if let Some(area) = point.area {
                words.push_str(&format!(", {} {}", further.area, format_ratio(area)));
            }
            if let Some(tier) = further.tiers.get(point.tier) {
                words.push_str(&format!(", {tier}"));
            }
        }
        words
    }

    /// What area and shape are.
    fn legend(&self) -> Vec<String> {
        let Some(further) = &self.further else {
            return Vec::new();
        };
        let mut lines = vec![format!("area: {}", further.area)];
        if let [circles, squares] = further.tiers.as_slice() {
            lines.push(format!("circles: {circles}; squares: {squares}"));
        }
        lines
    }

    /// Labels beside their points, where there is none in the way; where there is no room the
    /// pointer tells.
    fn labels(&self, placed: &[(f64, f64, &ScatterPoint)], plot: &Plot) -> Markup {
        let mut taken: Vec<(f64, f64, f64)> =
            placed.iter().map(|(x, y, _)| (x - 6.0, *y, 12.0)).collect();
        let mut labels = Vec::new();
        let mut order: Vec<&(f64, f64, &ScatterPoint)> = placed.iter().collect();
        order.sort_by_key(|(_, _, point)| !point.strong);
        for (x, y, point) in order {
            let words = fit(&point.label, letters((plot.right - plot.left) * 0.45));
            let wide = units(&words);
            let beside = point.radius() + 5.0;
            let places = [
                (x + beside, *y),
                (x - beside - wide, *y),
                (x - wide / 2.0, y - beside - 4.0),
                (x - wide / 2.0, y + beside + 5.0),
            ];
            let free = places.into_iter().find(|(left, at)| {
                let inside = *left >= plot.left && left + wide <= plot.right + 6.0;
                inside
                    && *at > plot.top
                    && *at < plot.bottom
                    && taken.iter().all(|(other, line, long)| {
                        (line - at).abs() > 12.0 || other + long < *left || left + wide < *other
                    })
            });
            if let Some((left, at)) = free {
                taken.push((left, at, wide));
                let class = if point.strong { "bold" } else { "" };
                labels.push(text(left, at + 4.5, "start", class, &words));
            }
        }
        markup! { @for label in labels { (label) } }
    }
}

/// The points that no other beats, from left to right.
fn front<'a>(points: &[&'a ScatterPoint]) -> Vec<&'a ScatterPoint> {
    let unbeaten = |point: &&&ScatterPoint| !points.iter().any(|other| other.beats(point));
    let mut front: Vec<&ScatterPoint> = points.iter().filter(unbeaten).copied().collect();
    front.sort_by(|one, other| one.x.total_cmp(&other.x).then(one.y.total_cmp(&other.y)));
    front
}

impl Chart for Scatter {
    fn id(&self) -> &str {
        &self.id
    }

    fn title(&self) -> &str {
        &self.title
    }

    fn description(&self) -> String {
        let words = self.drawable().into_iter().map(|point| self.words(point));
        words.collect::<Vec<_>>().join(". ")
    }

    fn draw(&self, frame: Frame) -> Drawing {
        let (x, y) = self.axes();
        let plot = Plot {
            left: 52.0,
            right: frame.width() - 10.0,
            top: 24.0,
            bottom: if frame.is_narrow() { 300.0 } else { 360.0 },
        };
        let place = |point: &ScatterPoint| {
            let across = plot.left + x.place(point.x)? * (plot.right - plot.left);
            let up = plot.bottom - y.place(point.y)? * (plot.bottom - plot.top);
            Some((across, up))
        };
        let points = self.drawable();
        let placed: Vec<(f64, f64, &ScatterPoint)> = points
            .iter()
            .filter_map(|point| place(point).map(|(across, up)| (across, up, *point)))
            .collect();
        let unbeaten: Vec<String> = front(&points)
            .into_iter()
            .filter_map(place)
            .map(|(across, up)| format!("{},{}", number(across), number(up)))
            .collect();
        let unbeaten_points = front(&points);
        let most = if frame.is_narrow() { 5 } else { 9 };
        let legend = self.legend();
        let draws_line = unbeaten.len() > 1 && self.further.is_none();
        let content = markup! {
            (text(0.0, 12.0, "start", "small", &fit(&self.y.heading, letters(frame.width()))))
            @for tick in y.ticks(7) {
                @let at = plot.bottom - y.place(tick).unwrap_or(0.0) * (plot.bottom - plot.top);
                line.grid x1=(number(plot.left)) x2=(number(plot.right)) y1=(number(at)) y2=(number(at)) {}
                (text(plot.left - 6.0, at + 4.0, "end", "small figure", &(self.y.format)(tick)))
            }
            @for tick in x.ticks(most) {
                @let at = plot.left + x.place(tick).unwrap_or(0.0) * (plot.right - plot.left);
                line.grid x1=(number(at)) x2=(number(at)) y1=(number(plot.top)) y2=(number(plot.bottom)) {}
                (text(at, plot.bottom + 16.0, "middle", "small figure", &(self.x.format)(tick)))
            }
            (text((plot.left + plot.right) / 2.0, plot.bottom + 34.0, "middle", "small",
                &fit(&self.x.heading, letters(plot.right - plot.left))))
            @if draws_line { polyline.front points=(unbeaten.join(" ")) {} }
            @for (across, up, point) in &placed {
                @let ringed = unbeaten_points.iter().any(|unbeaten| std::ptr::eq(*unbeaten, *point));
                @if ringed {
                    circle.front cx=(number(*across)) cy=(number(*up)) r=(number(point.radius() + RING)) {}
                }
                g class=(if point.strong { "dot strong" } else { "dot" }) {
                    @let words = self.words(point);
                    @if point.tier == 0 { (dot(&words, *across, *up, &number(point.radius()))) }
                    @else { (square(&words, *across, *up, point.radius())) }
                }
            }
            (self.labels(&placed, &plot))
            @for (line, words) in legend.iter().enumerate() {
                (text(0.0, plot.bottom + 54.0 + 16.0 * line as f64, "start", "small",
                    &fit(words, letters(frame.width()))))
            }
        };
        Drawing {
            height: plot.bottom + 42.0 + 16.0 * legend.len() as f64,
            content,
        }
    }

    fn data(&self) -> Data {
        let further = self.further.as_ref();
        let columns = ["arm", &self.x.heading, &self.y.heading];
        let more = further.map(|further| [further.area.clone(), "survives".to_owned()]);
        let row = |point: &ScatterPoint| {
            let mut row = vec![
                point.label.clone(),
                datum(Some(point.x)),
                datum(Some(point.y)),
            ];
            if let Some(further) = further {
                row.push(datum(point.area));
                row.push(further.tiers.get(point.tier).cloned().unwrap_or_default());
            }
            row
        };
        Data {
            columns: columns
                .map(str::to_owned)
                .into_iter()
                .chain(more.into_iter().flatten())
                .collect(),
            rows: self.points.iter().map(row).collect(),
        }
    }
}

/// A point of a higher tier, as large as a circle of that radius.
fn square(words: &str, x: f64, y: f64, radius: f64) -> Markup {
    let side = radius * std::f64::consts::PI.sqrt();
    markup! {
        rect.mark x=(number(x - side / 2.0)) y=(number(y - side / 2.0)) width=(number(side)) height=(number(side)) {
            title { (words) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_front_is_what_nothing_beats_in_both() {
        let point = |x: f64, y: f64| ScatterPoint {
            label: String::new(),
            strong: false,
            x,
            y,
            area: None,
            tier: 0,
        };
        let points = [
            point(3.0, 1.0),
            point(1.0, 3.0),
            point(2.0, 4.0),
            point(2.0, 2.0),
            point(3.0, 1.5),
        ];
        let references: Vec<&ScatterPoint> = points.iter().collect();
        let found: Vec<(f64, f64)> = front(&references)
            .iter()
            .map(|point| (point.x, point.y))
            .collect();
        assert_eq!(found, [(1.0, 3.0), (2.0, 2.0), (3.0, 1.0)]);
    }

    #[test]
    fn less_space_and_a_higher_tier_keep_a_point_from_being_beaten() {
        let point = |x: f64, area: f64, tier: usize| ScatterPoint {
            label: String::new(),
            strong: false,
            x,
            y: 1.0,
            area: Some(area),
            tier,
        };
        let points = [
            point(1.0, 1.0, 0),
            point(2.0, 1.0, 0),
            point(2.0, 0.5, 0),
            point(3.0, 1.0, 1),
            point(4.0, 1.0, 1),
        ];
        let references: Vec<&ScatterPoint> = points.iter().collect();
        let found: Vec<(f64, usize)> = front(&references)
            .iter()
            .map(|point| (point.x, point.tier))
            .collect();
        assert_eq!(found, [(1.0, 0), (2.0, 0), (3.0, 1)]);
        let unknown = ScatterPoint {
            area: None,
            ..point(9.0, 1.0, 0)
        };
        assert!(!points[0].beats(&unknown) && !unknown.beats(&points[0]));
    }
}
