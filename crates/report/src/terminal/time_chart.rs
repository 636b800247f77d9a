//! Charts of time: which columns of figures an arm has, and which of them are left out first where
//! the terminal is narrow.

use sqlitmus_core::analysis::{Analysis, ChartAnalysis, ChartRow, Compared};
use sqlitmus_core::run::Run;
use sqlitmus_core::units::format_ratio;

use crate::figures::{
    DASH, bare_ratio, mark, megabytes_per_second, microseconds, plus_minus, quantile,
};
use crate::summary::{
    chart_conditions, label, label_of, left_out_of, named, plural, published_of, trouble,
};
use crate::text::{clean, fit, wrap};

use super::ink::Tone;
use super::sentences::tone;
use super::table::{Body, Cell, Column, Row, Table};

/// Widths that the heading of a column of ratios is wrapped to, the first that gives two lines.
const HEADING_COLUMNS: std::ops::RangeInclusive<usize> = 8..=16;

/// Longer reasons are cut; they stand in full in the other formats.
pub(super) const MOST_REASON_COLUMNS: usize = 96;

/// How much there is room for, from everything down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Detail {
    /// Figures of the arm itself and its ratio, no more.
    Least,
    /// And the 99th percentile.
    Tail,
    /// And the rounds as a line.
    Rounds,
    /// And the median.
    Median,
    /// And the rate.
    Rate,
    /// And published ratios in a column; machines stand beneath.
    Published,
    /// And the machines in the column.
    Machines,
    /// And ratios including settling.
    Settled,
}

impl Detail {
    const FROM_MOST: [Self; 8] = [
        Self::Settled,
        Self::Machines,
        Self::Published,
        Self::Rate,
        Self::Median,
        Self::Rounds,
        Self::Tail,
        Self::Least,
    ];
}

/// Lays out a chart of time with as much detail as fits.
pub(super) fn table(
    run: &Run,
    analysis: &Analysis,
    chart: &ChartAnalysis,
    columns: usize,
) -> Table {
    let content = Content {
        run,
        analysis,
        chart,
    };
    let mut chosen = Table::default();
    for detail in Detail::FROM_MOST {
        chosen = content.table(detail);
        // Rates and publications give way to labels; percentiles do not.
        let fits = if detail > Detail::Median {
            chosen.fits(columns)
        } else {
            chosen.fits_cut_short(columns)
        };
        if fits {
            break;
        }
    }
    chosen
}

/// The heading of a chart, with what of the published article it answers.
pub(super) fn title(chart: &ChartAnalysis) -> String {
    let title = named(&chart.chart.title, "(without a title)");
    match clean(&chart.chart.answers) {
        answers if answers.is_empty() || answers.eq_ignore_ascii_case(&title) => title,
        answers => format!("{title} ({answers})"),
    }
}

/// The heading of a column of ratios, in two lines.
pub(super) fn versus_heading(label: &str) -> Vec<String> {
    let heading = format!("vs {}", named(label, "(without a name)"));
    let mut lines = Vec::new();
    for columns in HEADING_COLUMNS {
        lines = wrap(&heading, columns);
        if lines.len() <= 2 {
            return lines;
        }
    }
    if let Some(second) = lines.get_mut(1) {
        second.push('…');
    }
    lines.truncate(2);
    lines
}

struct Content<'a> {
    run: &'a Run,
    analysis: &'a Analysis,
    chart: &'a ChartAnalysis,
}

impl Content<'_> {
    fn table(&self, detail: Detail) -> Table {
        let arms = self.chart.rows.iter().map(|row| &row.arm);
        let longest_ns = arms
            .flat_map(|arm| [arm.operation_ns, arm.settled_operation_ns])
            .flatten()
            .filter(|ns| ns.is_finite())
            .fold(0.0, f64::max);
        Table {
            title: title(self.chart),
            subtitle: chart_conditions(self.run, self.analysis, &self.chart.chart).join(", "),
            columns: self.columns(detail),
            rows: self
                .chart
                .rows
                .iter()
                .map(|row| self.row(row, detail, longest_ns))
                .collect(),
            notes: self.notes(detail),
        }
    }

    fn settles(&self) -> bool {
        self.chart
            .rows
            .iter()
            .any(|row| row.arm.settled_operation_ns.is_some())
    }

    /// Whether any arm has rounds to compare with one another.
    fn has_rounds(&self) -> bool {
        let mut rows = self.chart.rows.iter();
        rows.any(|row| row.arm.round_values_ns.len() > 1)
    }

    /// Whether there is any published figure; the legend names the charts without.
    fn is_published(&self) -> bool {
        !self.chart.chart.published.is_empty()
    }

    fn columns(&self, detail: Detail) -> Vec<Column> {
        let column = |heading: &[&str], gap| Column {
            heading: heading.iter().map(|&line| line.to_owned()).collect(),
            gap,
        };
        let mut columns = vec![column(&["us"], 1)];
        if self.settles() {
            columns.push(column(&["us incl.", "settling"], 1));
        }
        if detail >= Detail::Rate {
            columns.push(column(&["MB/s"], 1));
        }
        match detail {
            Detail::Least => {}
            Detail::Tail | Detail::Rounds => columns.push(column(&["p99"], 1)),
            _ => columns.push(column(&["p50/p99"], 1)),
        }
        if detail >= Detail::Rounds && self.has_rounds() {
            columns.push(column(&["rounds"], 1));
        }
        for versus in &self.chart.chart.versus {
            columns.push(Column {
                heading: versus_heading(&versus.label),
                gap: 2,
            });
            if detail >= Detail::Settled && self.settles() {
                columns.push(column(&["incl.", "settling"], 1));
            }
        }
        if detail >= Detail::Published && self.is_published() {
            columns.push(column(&["published"], 2));
        }
        columns
    }

    fn row(&self, row: &ChartRow, detail: Detail, longest_ns: f64) -> Row {
        let body = match trouble(&row.arm.status) {
            Some(text) => Body::Reason {
                tone: if text.starts_with("failed") {
                    Tone::Bad
                } else {
                    Tone::Faint
                },
                text,
            },
            None => {
                let share = |ns: Option<f64>| ns.map_or(0.0, |ns| ns / longest_ns.max(1e-9));
                let solid = share(row.arm.operation_ns);
                Body::Figures {
                    solid,
                    light: (share(row.arm.settled_operation_ns) - solid).max(0.0),
                    cells: self.cells(row, detail),
                }
            }
        };
        Row {
            label: label(&row.arm),
            body,
        }
    }

    fn cells(&self, row: &ChartRow, detail: Detail) -> Vec<Cell> {
        let mut cells = vec![Cell::plain(microseconds(row.arm.operation_ns))];
        if self.settles() {
            cells.push(Cell::plain(microseconds(row.arm.settled_operation_ns)));
        }
        if detail >= Detail::Rate {
            cells.push(Cell::plain(megabytes_per_second(row.arm.bytes_per_second)));
        }
        let [median, tail] = [0.5, 0.99].map(|share| quantile(&row.arm.latencies, share));
        match detail {
            Detail::Least => {}
            Detail::Tail | Detail::Rounds => cells.push(Cell::plain(tail)),
            _ => cells.push(Cell {
                head: format!("{median}/"),
                tail,
                tone: Tone::Plain,
            }),
        }
        if detail >= Detail::Rounds && self.has_rounds() {
            cells.push(Cell {
                head: String::new(),
                tail: rounds_line(&row.arm.round_values_ns, row.arm.operation_ns),
                tone: Tone::Plain,
            });
        }
        for (index, versus) in self.chart.chart.versus.iter().enumerate() {
            let itself = versus.arm == row.arm.name;
            cells.push(ratio(row.versus.get(index), itself));
            if detail >= Detail::Settled && self.settles() {
                cells.push(ratio(row.versus_settled.get(index), itself));
            }
        }
        if detail >= Detail::Published && self.is_published() {
            cells.push(self.published(row, detail));
        }
        cells
    }

    fn published(&self, row: &ChartRow, detail: Detail) -> Cell {
        let figures = published_of(&self.chart.chart, &row.arm.name);
        let words: Vec<String> = figures
            .into_iter()
            .map(|(ratio, machine)| {
                if detail >= Detail::Machines && !machine.is_empty() {
                    format!("{} {machine}", bare_ratio(ratio))
                } else {
                    bare_ratio(ratio)
                }
            })
            .collect();
        let text = if words.is_empty() {
            DASH.to_owned()
        } else {
            words.join(", ")
        };
        Cell {
            head: String::new(),
            tail: text,
            tone: Tone::Plain,
        }
    }

    fn notes(&self, detail: Detail) -> Vec<String> {
        let published = self.published_note().filter(|_| detail < Detail::Machines);
        published.into_iter().chain(self.left_out_note()).collect()
    }

    /// How much does not count, and the first reason; all reasons are in the other formats.
    fn left_out_note(&self) -> Option<String> {
        let counted = || {
            let rows = self.chart.rows.iter();
            rows.filter(|row| trouble(&row.arm.status).is_none())
        };
        let trials: usize = counted().map(|row| row.arm.left_out.len()).sum();
        let slices: u64 = counted()
            .map(|row| u64::from(row.arm.slices_left_out))
            .sum();
        let trials = (trials > 0).then(|| plural(trials as u64, "trial", "trials"));
        let slices = (slices > 0)
            .then(|| plural(slices, "slice", "slices") + " not in the stated cache state");
        let what: Vec<String> = trials.into_iter().chain(slices).collect();
        let first = counted().find_map(|row| {
            let found = left_out_of(self.run, &row.arm.name).into_iter().next()?;
            Some(format!(
                " ({}, {}: {})",
                label(&row.arm),
                found.rounds,
                found.reason
            ))
        });
        let note = format!(
            "left out: {}{}",
            what.join(" and "),
            first.unwrap_or_default()
        );
        (!what.is_empty()).then(|| fit(&note, MOST_REASON_COLUMNS))
    }

    /// Published ratios with their machines, where the column has no room for them.
    fn published_note(&self) -> Option<String> {
        let of_arms: Vec<String> = self
            .chart
            .rows
            .iter()
            .filter_map(|row| {
                let figures = published_of(&self.chart.chart, &row.arm.name);
                let words: Vec<String> = figures
                    .into_iter()
                    .map(|(ratio, machine)| {
                        let on = if machine.is_empty() { "" } else { " on " };
                        format!("{}{on}{machine}", bare_ratio(ratio))
                    })
                    .collect();
                let label = label_of(self.run, &row.arm.name);
                (!words.is_empty()).then(|| format!("{label}: {}", words.join(", ")))
            })
            .collect();
        (!of_arms.is_empty()).then(|| format!("published: {}", of_arms.join("; ")))
    }
}

/// The rounds of an arm as a line of blocks, from 20% below its median to 20% above: flat is steady. Of very
/// many rounds each block shows the one among several that is farthest off.
fn rounds_line(values_ns: &[f64], middle_ns: Option<f64>) -> String {
    const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    const REACH: f64 = 0.2;
    const MOST_BLOCKS: usize = 12;
    let Some(middle_ns) = middle_ns.filter(|ns| ns.is_finite() && *ns > 0.0) else {
        return DASH.to_owned();
    };
    let distances: Vec<f64> = values_ns
        .iter()
        .map(|ns| ns / middle_ns - 1.0)
        .filter(|distance| !distance.is_nan())
        .collect();
    let together = distances.len().div_ceil(MOST_BLOCKS).max(1);
    let farthest = distances.chunks(together).map(|distances| {
        let far = distances.iter().copied();
        far.max_by(|one, other| one.abs().total_cmp(&other.abs()))
            .unwrap_or(0.0)
    });
    let block = |distance: f64| {
        let share = ((distance / REACH).clamp(-1.0, 1.0) + 1.0) / 2.0;
        // The median is the lower of the two blocks in the middle, and a few percent around it are too.
        BLOCKS[((share * 7.0 - 0.3).round().max(0.0) as usize).min(7)]
    };
    farthest.map(block).collect()
}

/// A ratio with its mark and interval; an arm compared with itself is 1.
fn ratio(compared: Option<&Option<Compared>>, itself: bool) -> Cell {
    match compared {
        _ if itself => Cell::plain("1".to_owned()),
        Some(Some(compared)) => Cell {
            head: format!(
                "{}{}",
                mark(compared.verdict),
                format_ratio(compared.estimate.ratio)
            ),
            tail: format!(" {}", plus_minus(compared.estimate.interval)),
            tone: tone(compared.verdict),
        },
        _ => Cell::plain(DASH.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steady_rounds_are_a_flat_line_and_outliers_stand_out() {
        assert_eq!(rounds_line(&[100.0, 101.0, 99.0], Some(100.0)), "▄▄▄");
        assert_eq!(rounds_line(&[80.0, 100.0, 500.0], Some(100.0)), "▁▄█");
        assert_eq!(rounds_line(&[90.0, 105.0, 110.0], Some(100.0)), "▂▅▆");
        assert_eq!(
            rounds_line(&[100.0, f64::INFINITY, f64::NAN], Some(100.0)),
            "▄█"
        );
        assert_eq!(rounds_line(&[1.0], Some(0.0)), "-");
        assert_eq!(rounds_line(&[1.0], None), "-");
        let mut many = vec![100.0; 100];
        many[50] = 300.0;
        let line = rounds_line(&many, Some(100.0));
        assert!(
            line.chars().count() <= 12 && line.matches('█').count() == 1,
            "{line}"
        );
    }
}
