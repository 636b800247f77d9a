//! Two costs at once, less being better in both: which arms nothing beats (the Pareto front) are joined by
//! a line, all others are beaten by one of them in both.

use maud::{Markup, html as markup};

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
    /// The arms.
    pub points: Vec<ScatterPoint>,
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
}

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
        format!(
            "{}: {} {}, {} {}",
            point.label,
            self.x.heading,
            (self.x.format)(point.x),
            self.y.heading,
            (self.y.format)(point.y)
        )
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
            let places = [
                (x + 10.0, *y),
                (x - 10.0 - wide, *y),
                (x - wide / 2.0, y - 14.0),
                (x - wide / 2.0, y + 15.0),
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

/// The points that no other beats in both costs, from left to right.
fn front<'a>(points: &[&'a ScatterPoint]) -> Vec<&'a ScatterPoint> {
    let mut sorted = points.to_vec();
    sorted.sort_by(|one, other| one.x.total_cmp(&other.x).then(one.y.total_cmp(&other.y)));
    let mut best = f64::INFINITY;
    sorted.retain(|point| {
        let unbeaten = point.y < best;
        best = best.min(point.y);
        unbeaten
    });
    sorted
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
            @if unbeaten.len() > 1 { polyline.front points=(unbeaten.join(" ")) {} }
            @for (across, up, point) in &placed {
                @let ringed = unbeaten_points.iter().any(|unbeaten| std::ptr::eq(*unbeaten, *point));
                @if ringed { circle.front cx=(number(*across)) cy=(number(*up)) r="8.5" {} }
                g class=(if point.strong { "dot strong" } else { "dot" }) {
                    (dot(&self.words(point), *across, *up, "5"))
                }
            }
            (self.labels(&placed, &plot))
        };
        Drawing {
            height: plot.bottom + 42.0,
            content,
        }
    }

    fn data(&self) -> Data {
        let columns = ["arm", &self.x.heading, &self.y.heading];
        let rows = self.points.iter();
        Data {
            columns: columns.map(str::to_owned).into(),
            rows: rows
                .map(|point| {
                    vec![
                        point.label.clone(),
                        datum(Some(point.x)),
                        datum(Some(point.y)),
                    ]
                })
                .collect(),
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
}
