//! The live view: the arms of the group that is being measured, with their ratio to the baseline as it stands and
//! its interval, narrowing as rounds arrive. Estimates only: a verdict is given once, when measuring is over.

use sqlitmus_core::measurements::{Cost, Measurements};
use sqlitmus_core::plan::{Group, Plan};
use sqlitmus_core::run::{Run, RunHead, RunState, Trial};
use sqlitmus_core::statistics::{Interval, RatioEstimate};
use sqlitmus_core::units::format_ratio;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Columns of an interval's picture.
const PICTURE_COLUMNS: usize = 25;

/// Columns of the figures: ` 12.3 +-12%  `.
const FIGURE_COLUMNS: usize = 16;

/// What has been measured so far.
pub struct LiveView {
    /// The run as it would be if it ended now; without latencies, which are not shown.
    run: Run,
    /// Ratios of the current group's arms, by name.
    ratios: Vec<(String, RatioEstimate)>,
}

impl LiveView {
    /// Nothing measured yet.
    #[must_use]
    pub fn new(plan: &Plan) -> Self {
        let head = RunHead {
            id: String::new(),
            sqlitmus_version: String::new(),
            started_utc: String::new(),
            finished_utc: None,
            state: RunState::Started,
            command_line: String::new(),
            place: String::new(),
        };
        Self {
            run: Run {
                head,
                plan: plan.clone(),
                environment: Vec::new(),
                trials: Vec::new(),
                footprints: Default::default(),
            },
            ratios: Vec::new(),
        }
    }

    /// A group begins: its arms are shown from now on.
    pub fn begin(&mut self, group: &Group) {
        let names: Vec<&String> = group.arms.iter().map(|arm| &arm.name).collect();
        // Groups are not compared with one another here.
        self.run.trials.retain(|trial| names.contains(&&trial.arm));
        self.estimate(group);
    }

    /// A round has ended.
    pub fn add(&mut self, group: &Group, trials: &[Trial]) {
        self.run.trials.extend(trials.iter().map(|trial| Trial {
            latencies: Default::default(),
            system_calls: Default::default(),
            resources: Default::default(),
            read_back: Default::default(),
            ..trial.clone()
        }));
        self.estimate(group);
    }

    fn estimate(&mut self, group: &Group) {
        let measurements = Measurements::new(&self.run);
        let arms = group.arms.iter().filter(|arm| arm.name != group.baseline);
        let ratios = arms.filter_map(|arm| {
            let ratio = measurements.ratio(&group.baseline, &arm.name, Cost::Acknowledged)?;
            Some((arm.name.clone(), ratio))
        });
        self.ratios = ratios.collect();
    }

    /// The arms, one a line, none wider than the terminal; `measuring` is the label of the arm whose turn it is.
    #[must_use]
    pub fn lines(
        &self,
        group: &Group,
        measuring: &str,
        columns: usize,
        rows: usize,
    ) -> Vec<String> {
        let arms: Vec<_> = group.arms.iter().filter(|arm| !arm.is_twin()).collect();
        let picture = if columns >= 70 { PICTURE_COLUMNS } else { 0 };
        let room = columns.saturating_sub(3 + FIGURE_COLUMNS + picture).max(8);
        let longest = arms
            .iter()
            .map(|arm| shown(&arm.label).width())
            .max()
            .unwrap_or(0);
        let reach = self.reach();
        let baseline = group.arms.iter().find(|arm| arm.name == group.baseline);
        let title = format!(
            "   times as fast as {}",
            baseline.map_or(String::new(), |arm| shown(&arm.label))
        );
        let mut lines = vec![cut(&title, columns)];
        let most = rows.saturating_sub(4).max(1);
        for arm in arms.iter().take(most) {
            let label = cut(&shown(&arm.label), longest.min(room));
            let spaces = longest.min(room) - label.width();
            let now = if arm.label == measuring { '>' } else { ' ' };
            let found = self.ratios.iter().find(|(name, _)| *name == arm.name);
            let figures = match found {
                _ if arm.name == group.baseline => format!("{:>6}", "1"),
                None => format!("{:>6}", "-"),
                Some((_, ratio)) => format!(
                    "{:>6} {:<7}",
                    format_ratio(ratio.ratio),
                    plus_minus(ratio.interval)
                ),
            };
            let interval = found.and_then(|(_, ratio)| {
                let ends = ratio.interval?;
                (picture > 0).then(|| drawn(ratio.ratio, ends, reach))
            });
            let line = format!(
                "{now} {label}{} {figures}  {}",
                " ".repeat(spaces),
                interval.unwrap_or_default()
            );
            lines.push(cut(line.trim_end(), columns));
        }
        if arms.len() > most {
            lines.push(format!("  and {} more", arms.len() - most));
        }
        lines
    }

    /// The ratios that the pictures reach from and to.
    fn reach(&self) -> (f64, f64) {
        let ends = self
            .ratios
            .iter()
            .map(|(_, ratio)| ratio.ratio)
            .filter(|ratio| ratio.is_finite() && *ratio > 0.0);
        ends.fold((0.5, 2.0), |(low, high), ratio| {
            (
                low.min((ratio / 1.2).max(1e-3)),
                high.max((ratio * 1.2).min(1e3)),
            )
        })
    }
}

/// An interval on a logarithmic scale with a bar at 1: `  |   [-o-]   `.
fn drawn(ratio: f64, ends: Interval, reach: (f64, f64)) -> String {
    let place = |value: f64| {
        let share = (value.ln() - reach.0.ln()) / (reach.1.ln() - reach.0.ln());
        let share = if share.is_finite() {
            share.clamp(0.0, 1.0)
        } else {
            0.0
        };
        (share * (PICTURE_COLUMNS - 1) as f64).round() as usize
    };
    let (low, middle, high) = (place(ends.low), place(ratio), place(ends.high));
    let one = place(1.0);
    let letters = (0..PICTURE_COLUMNS).map(|column| match column {
        _ if column == middle => 'o',
        _ if column == low => '[',
        _ if column == high => ']',
        _ if column > low && column < high => '-',
        _ if column == one => '|',
        _ => ' ',
    });
    letters.collect::<String>().trim_end().to_owned()
}

/// Half of an interval as a share of the ratio.
fn plus_minus(interval: Option<Interval>) -> String {
    match interval.map(|ends| ends.relative_half_width()) {
        Some(half) if half.is_finite() && half <= 0.99 => {
            format!("±{:.*}%", usize::from(half < 0.0095), half * 100.0)
        }
        Some(_) => "±>99%".to_owned(),
        None => "±?".to_owned(),
    }
}

/// A label without what a terminal would act on.
fn shown(label: &str) -> String {
    label
        .chars()
        .filter(|letter| !letter.is_control())
        .collect()
}

fn cut(text: &str, columns: usize) -> String {
    let mut taken = 0;
    let fitting = text.chars().take_while(|letter| {
        taken += letter.width().unwrap_or(0);
        taken <= columns
    });
    fitting.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::BuiltInEngines;
    use crate::suites;
    use sqlitmus_core::run::{Outcome, Sample};

    fn plan() -> Plan {
        let suite = suites::find(suites::CANONICAL).expect("the canonical suite");
        Plan::resolve(&suite, "smoke", 1, &BuiltInEngines).expect("resolved")
    }

    fn round(group: &Group, round: u32) -> Vec<Trial> {
        let arms = group.arms.iter().enumerate();
        arms.map(|(index, arm)| Trial {
            arm: arm.name.clone(),
            round,
            set: 0,
            outcome: Outcome::Valid,
            read_back: Default::default(),
            resources: Default::default(),
            latencies: Default::default(),
            system_calls: Default::default(),
            samples: vec![Sample {
                turn: 0,
                place: 0,
                operations: 10,
                content_bytes: 0,
                elapsed_ns: 10_000 + 1000 * index as u64 + u64::from(round % 3) * 7 * index as u64,
                settle_ns: None,
                device_read_bytes: Some(0),
                major_faults: Some(0),
                machine_steal_ns: None,
                device_read_ns: None,
                involuntary_context_switches: None,
            }],
        })
        .collect()
    }

    #[test]
    fn ratios_appear_and_their_intervals_narrow() {
        let plan = plan();
        let group = &plan.groups[0];
        let mut view = LiveView::new(&plan);
        view.begin(group);
        assert!(view.ratios.is_empty());
        let mut widths = Vec::new();
        for number in 0..8 {
            view.add(group, &round(group, number));
            let last = &view.ratios.last().expect("a ratio").1;
            widths.extend(last.interval.map(|ends| ends.relative_half_width()));
        }
        assert_eq!(widths.len(), 7, "one round has no interval");
        assert!(widths[6] < widths[1], "{widths:?}");
        let label = group.arms[1].label.clone();
        let lines = view.lines(group, &label, 80, 40);
        assert!(
            lines
                .iter()
                .any(|line| line.starts_with('>') && line.contains(&label)),
            "{lines:?}"
        );
        assert!(
            lines
                .iter()
                .any(|line| line.contains("0.9") && line.contains('±')),
            "{lines:?}"
        );
    }

    #[test]
    fn no_line_is_wider_than_the_terminal_and_not_more_than_it_has() {
        let mut plan = plan();
        plan.groups[0].arms[1].label = "データベース\u{1b}[31m\n".repeat(9);
        let group = &plan.groups[0];
        let mut view = LiveView::new(&plan);
        view.add(group, &round(group, 0));
        view.add(group, &round(group, 1));
        for columns in [20, 40, 69, 80, 200] {
            for rows in [5, 10, 50] {
                let lines = view.lines(group, "", columns, rows);
                assert!(lines.len() <= rows, "{rows}: {lines:?}");
                for line in lines {
                    assert!(line.width() <= columns, "{columns}: {line:?}");
                    assert!(!line.chars().any(char::is_control), "{line:?}");
                }
            }
        }
    }

    #[test]
    fn odd_ratios_are_drawn_inside_their_picture() {
        for ratio in [0.0, f64::NAN, f64::INFINITY, 1e-30, 1e30, 1.0] {
            let ends = Interval {
                low: ratio,
                high: ratio,
            };
            assert!(drawn(ratio, ends, (0.5, 2.0)).len() <= PICTURE_COLUMNS);
        }
    }
}
