//! Values round by round, one line an arm, each as its distance from the arm's own median: drift shows as
//! a slope common to all, an outlier as a point of its own. What does not count is there, and hollow.

use maud::{Markup, html as markup};

use super::{Chart, Data, Drawing, Frame, datum, dot, fit_name, name_units, number, text};

/// Values of arms round by round.
pub struct Rounds {
    /// Identity in the page.
    pub id: String,
    /// Heading.
    pub title: String,
    /// What the values are, with their unit.
    pub unit: String,
    /// How a value is written.
    pub format: fn(f64) -> String,
    /// The arms.
    pub rows: Vec<RoundsRow>,
}

/// An arm.
pub struct RoundsRow {
    /// What it is called.
    pub label: String,
    /// Whether it is what the report is about.
    pub strong: bool,
    /// What its values are held against: the median of those that count.
    pub middle: Option<f64>,
    /// Its rounds, ascending.
    pub marks: Vec<RoundMark>,
}

/// A round of an arm.
#[derive(Debug, Clone, PartialEq)]
pub struct RoundMark {
    /// Round, from 0.
    pub round: u32,
    /// Its value; `None` if the trial has nothing to show.
    pub value: Option<f64>,
    /// Why it does not count; `None` if it does.
    pub left_out: Option<String>,
}

const STEP: f64 = 30.0;

/// Rounds beyond these have no points of their own.
const MOST_MARKS: usize = 24;

impl Rounds {
    /// Share of the median up to which the lines reach, up and down: 5, 10, 20 or 50%.
    fn reach(&self) -> f64 {
        let far = self.rows.iter().flat_map(|row| {
            let middle = row.middle;
            row.marks
                .iter()
                .filter_map(move |mark| distance(mark.value?, middle?))
        });
        let mut all: Vec<f64> = far.map(f64::abs).collect();
        all.sort_by(f64::total_cmp);
        // Nineteen of twenty decide; the others stand at the border.
        let typical = all
            .get(all.len() * 19 / 20)
            .or(all.last())
            .copied()
            .unwrap_or(0.0);
        let reaches = [0.05, 0.1, 0.2];
        reaches
            .into_iter()
            .find(|reach| typical <= *reach)
            .unwrap_or(0.5)
    }

    fn row(&self, row: &RoundsRow, place: (f64, f64, f64), last: u32, reach: f64) -> Markup {
        let (left, right, middle_y) = place;
        let across = |round: u32| {
            if last == 0 {
                0.5
            } else {
                f64::from(round.min(last)) / f64::from(last)
            }
        };
        let up = |value: f64| -> Option<f64> {
            let share = distance(value, row.middle?)? / reach;
            Some(-share.clamp(-1.0, 1.0))
        };
        // In long runs only what does not count has a mark of its own; the line says the rest.
        let few = row.marks.len() <= MOST_MARKS;
        let counted = row
            .marks
            .iter()
            .filter(|found| found.left_out.is_none() && found.value.is_some())
            .count();
        markup! {
            g class=(if row.strong { "named rounds strong" } else { "named rounds" })
                transform={ "translate(" (number(left)) " " (number(middle_y)) ")" } {
                title { (row.label) }
                path.grid d={ "M0 0H" (number(right - left)) } {}
                (line(row, &across, &up, (right - left, STEP * 0.42), last))
                @for found in &row.marks {
                    @if few || found.left_out.is_some() || counted < 2 {
                        @let x = across(found.round) * (right - left);
                        (self.mark(found, x, found.value.and_then(up).unwrap_or(0.0) * STEP * 0.42))
                    }
                }
            }
        }
    }

    fn mark(&self, found: &RoundMark, x: f64, y: f64) -> Markup {
        let round = u64::from(found.round) + 1;
        let value = found
            .value
            .map_or_else(|| "no value".to_owned(), self.format);
        match &found.left_out {
            None => dot(&format!("round {round}: {value}"), x, y, "2.6"),
            Some(reason) => markup! {
                path.mark.cross d={ "M" (number(x - 4.0)) " " (number(y - 4.0)) "l8 8m0 -8l-8 8" } {
                    title { "round " (round) ": " (value) ", left out: " (reason) }
                }
            },
        }
    }
}

/// The line through the rounds that count. In long runs it has whole steps of its own, a hundredth of its
/// reach each: five letters a round.
fn line(
    row: &RoundsRow,
    across: &dyn Fn(u32) -> f64,
    up: &dyn Fn(f64) -> Option<f64>,
    size: (f64, f64),
    last: u32,
) -> Markup {
    const STEPS_UP: f64 = 50.0;
    let steps = f64::from(last.max(1));
    let counted = row.marks.iter().filter(|found| found.left_out.is_none());
    let places: Vec<(i64, i64)> = counted
        .filter_map(|found| {
            let x = (across(found.round) * steps).round() as i64;
            Some((x, (up(found.value?)? * STEPS_UP).round() as i64))
        })
        .collect();
    let Some(first) = places.first().filter(|_| places.len() > 1) else {
        return markup! {};
    };
    let mut path = format!("M{} {}l", first.0, first.1);
    for (before, after) in places.iter().zip(places.iter().skip(1)) {
        let (x, y) = (after.0 - before.0, after.1 - before.1);
        let space = if path.ends_with('l') { "" } else { " " };
        // A sign separates as well as a space does.
        let between = if y < 0 { "" } else { " " };
        path.push_str(&format!("{space}{x}{between}{y}"));
    }
    let scale = format!("scale({:.6} {:.4})", size.0 / steps, size.1 / STEPS_UP);
    markup! { path.line transform=(scale) d=(path) {} }
}

fn distance(value: f64, middle: f64) -> Option<f64> {
    let share = value / middle - 1.0;
    share.is_finite().then_some(share)
}

impl Chart for Rounds {
    fn id(&self) -> &str {
        &self.id
    }

    fn title(&self) -> &str {
        &self.title
    }

    fn description(&self) -> String {
        let rows = self.rows.iter().map(|row| {
            let values = row.marks.iter().filter_map(|mark| {
                let value = (self.format)(mark.value?);
                Some(if mark.left_out.is_some() {
                    format!("({value})")
                } else {
                    value
                })
            });
            format!("{}: {}.", row.label, values.collect::<Vec<_>>().join(", "))
        });
        rows.collect::<Vec<_>>().join(" ")
    }

    fn draw(&self, frame: Frame) -> Drawing {
        let narrow = frame.is_narrow();
        let longest = self
            .rows
            .iter()
            .map(|row| name_units(&row.label, row.strong));
        let labels = if narrow {
            0.0
        } else {
            longest.fold(60.0, f64::max).min(330.0) + 16.0
        };
        let step = if narrow { STEP + 18.0 } else { STEP };
        let marks = self.rows.iter().flat_map(|row| &row.marks);
        let last = marks.map(|mark| mark.round).max().unwrap_or(0);
        let reach = self.reach();
        let (left, right, top) = (labels + 8.0, frame.width() - 78.0, 28.0);
        let percent = (reach * 100.0).round();
        Drawing {
            height: top + step * self.rows.len() as f64 + 6.0,
            content: markup! {
                (text(left, 12.0, "start", "small", "round 1"))
                @if last > 0 { (text(right, 12.0, "end", "small", &(u64::from(last) + 1).to_string())) }
                (text(right + 8.0, 12.0, "start", "small", &format!("±{percent}%")))
                @for (index, row) in self.rows.iter().enumerate() {
                    @let y = top + step * index as f64;
                    @let label_y = if narrow { y + 10.0 } else { y + STEP / 2.0 + 4.5 };
                    (text(0.0, label_y, "start", if row.strong { "bold" } else { "" },
                        &fit_name(&row.label, row.strong, if narrow { frame.width() } else { labels - 8.0 })))
                    @let middle = if narrow { y + 18.0 + STEP / 2.0 } else { y + STEP / 2.0 };
                    (self.row(row, (left, right, middle), last, reach))
                    @if let Some(value) = row.middle {
                        (text(right + 8.0, middle + 4.5, "start", "figure", &(self.format)(value)))
                    }
                }
            },
        }
    }

    fn rows(&self) -> usize {
        self.rows.len()
    }

    fn data(&self) -> Data {
        let columns = ["arm", "round", &self.unit, "left out"];
        let rows = self.rows.iter().flat_map(|row| {
            row.marks.iter().map(|mark| {
                vec![
                    row.label.clone(),
                    (u64::from(mark.round) + 1).to_string(),
                    datum(mark.value),
                    mark.left_out.clone().unwrap_or_default(),
                ]
            })
        });
        Data {
            columns: columns.map(str::to_owned).into(),
            rows: rows.collect(),
        }
    }
}
