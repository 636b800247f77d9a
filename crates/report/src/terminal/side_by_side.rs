//! Several runs on a terminal: a column a run, as many side by side as there is room for.

use sqlitmus_core::claims::Judgement;
use sqlitmus_core::durability::Standing;
use sqlitmus_core::suite::ChartKind;
use sqlitmus_core::units::{format_count, format_ratio};

use crate::figures::DASH;
use crate::oltp::{Rate, first_word, per_second, seconds};
use crate::proved::NOTHING_PROVED;
use crate::side_by_side::rates::RateOfRuns;
use crate::side_by_side::{Analysed, SideBySide, ratio};
use crate::summary::judgement;
use crate::text::{left, right, width, wrap};

use super::ink::{Ink, Line, Tone};
use super::sentences::tone;
use super::{LEAST_COLUMNS, Look, MOST_TEXT_COLUMNS};

/// Columns of a run: ` does not hold 0.50`.
const RUN_COLUMNS: usize = 13;

/// Before what belongs to the line above.
const INDENT: &str = "    ";

/// Labels are not cut shorter than this to make room for a run more.
const LEAST_LABEL_COLUMNS: usize = 26;

/// Renders several runs side by side for a terminal: lines, each ended by a line feed, none wider than it.
#[must_use]
pub fn terminal_side_by_side(runs: &[Analysed<'_>], look: &Look) -> String {
    let all = SideBySide::of(runs);
    let columns = look.columns.max(LEAST_COLUMNS);
    let mut page = Page {
        all: &all,
        columns,
        ink: Ink { color: look.color },
        lines: Vec::new(),
    };
    page.text(&all.question, Tone::Heading);
    for warning in &all.warnings {
        page.text(warning, Tone::Unsure);
    }
    if let Some(machine) = &all.machine {
        page.text(machine, Tone::Plain);
    }
    for (index, name) in all.names.iter().enumerate() {
        page.text(&format!("[{}] {name}", index + 1), Tone::Plain);
        if let Some(place) = all.places.get(index) {
            let words = format!(
                "{}, {} ({})",
                place.filesystem, place.device, place.mount_options
            );
            page.indented(&words);
        }
    }
    let at_once = ((columns - LEAST_LABEL_COLUMNS.min(columns)) / RUN_COLUMNS).max(1);
    let indices: Vec<usize> = (0..all.runs.len()).collect();
    for block in indices.chunks(at_once) {
        page.charts(block);
        page.rates(block);
        page.claims(block);
        page.survival(block);
    }
    page.differences();
    if let Some(agreement) = all.agreement() {
        page.lines.push(String::new());
        page.text(&format!("In short. {agreement}"), Tone::Plain);
    }
    let mut report = page.lines.join("\n");
    report.push('\n');
    report
}

struct Page<'a> {
    all: &'a SideBySide<'a>,
    columns: usize,
    ink: Ink,
    lines: Vec<String>,
}

impl Page<'_> {
    fn text(&mut self, text: &str, tone: Tone) {
        for line in wrap(text, self.columns.min(MOST_TEXT_COLUMNS)) {
            self.lines.push(self.ink.paint(&line, tone));
        }
    }

    /// What belongs to the line before it.
    fn indented(&mut self, text: &str) {
        let room = self
            .columns
            .min(MOST_TEXT_COLUMNS)
            .saturating_sub(INDENT.len());
        for line in wrap(text, room) {
            let line = format!("{INDENT}{line}");
            self.lines.push(self.ink.paint(&line, Tone::Faint));
        }
    }

    /// A line of a label and a cell for each run.
    fn row(
        &mut self,
        label: &str,
        label_columns: usize,
        cells: &[(String, Tone)],
        label_tone: Tone,
    ) {
        let mut line = Line::of(&left(label, label_columns), label_tone);
        for (text, tone) in cells {
            line.push(&right(text, RUN_COLUMNS), *tone);
        }
        self.lines.push(line.render(self.columns, self.ink));
    }

    fn heading(&mut self, title: &str, label_columns: usize, block: &[usize]) {
        self.lines.push(String::new());
        let numbers: Vec<(String, Tone)> = block
            .iter()
            .map(|run| (format!("[{}]", run + 1), Tone::Plain))
            .collect();
        self.row(title, label_columns, &numbers, Tone::Heading);
    }

    fn label_columns(&self, block: &[usize]) -> usize {
        self.columns - block.len() * RUN_COLUMNS.min(self.columns / 2)
    }

    fn charts(&mut self, block: &[usize]) {
        let all = self.all;
        for chart in &all.charts {
            let longest = chart
                .rows
                .iter()
                .map(|row| width(&row.label))
                .max()
                .unwrap_or(0);
            let title = if chart.versus.is_empty() {
                chart.title.clone()
            } else {
                let word = if chart.shows == ChartKind::Space {
                    "as small as"
                } else {
                    "vs"
                };
                format!("{}, {word} {}", chart.title, chart.versus)
            };
            let label_columns = self
                .label_columns(block)
                .min(longest.max(width(&title)) + 1);
            self.heading(&title, label_columns, block);
            for row in &chart.rows {
                let cells: Vec<(String, Tone)> = block
                    .iter()
                    .map(|run| {
                        let Some((own, found)) = chart.of_runs[*run].zip(row.of_runs[*run]) else {
                            return (DASH.to_owned(), Tone::Faint);
                        };
                        let verdict = found
                            .versus
                            .first()
                            .and_then(Option::as_ref)
                            .map(|compared| compared.verdict);
                        match ratio(&all.runs[*run], own, found) {
                            Some(ratio) => (ratio.text, verdict.map_or(Tone::Plain, tone)),
                            None if found.arm.operation_ns.is_some() => {
                                (DASH.to_owned(), Tone::Faint)
                            }
                            None => ("no figure".to_owned(), Tone::Bad),
                        }
                    })
                    .collect();
                self.row(&row.label, label_columns, &cells, Tone::Plain);
            }
        }
    }

    /// Operations a second, and below them the count and the seconds that they follow from.
    fn rates(&mut self, block: &[usize]) {
        let all = self.all;
        for group in &all.rates {
            let longest = group.rows.iter().map(|row| width(&row.label)).max();
            let title = format!("{}: {} a second", group.title, first_word(&group.unit));
            let wanted = longest.unwrap_or(0).max(width(&title)) + 1;
            let label_columns = self.label_columns(block).min(wanted);
            self.heading(&title, label_columns, block);
            for row in &group.rows {
                let cells: Vec<(String, Tone)> = block
                    .iter()
                    .map(|run| match &row.of_runs[*run] {
                        None => (DASH.to_owned(), Tone::Faint),
                        Some(Ok(rate)) => (per_second(rate), Tone::Plain),
                        Some(Err(_)) => ("no figure".to_owned(), Tone::Bad),
                    })
                    .collect();
                self.row(&row.label, label_columns, &cells, Tone::Plain);
                self.followed_from(row, label_columns, block);
            }
            let is_last = block.contains(&(all.runs.len() - 1));
            for sentence in group.published.iter().filter(|_| is_last) {
                self.indented(sentence);
            }
        }
    }

    fn followed_from(&mut self, row: &RateOfRuns, label_columns: usize, block: &[usize]) {
        let mut line = |word: &str, figure: &dyn Fn(&Rate) -> String| {
            let cell = |run: &usize| row.rate(*run).map_or_else(String::new, figure);
            let cells: Vec<(String, Tone)> =
                block.iter().map(|run| (cell(run), Tone::Faint)).collect();
            let word = format!("{INDENT}{word}");
            self.row(&word, label_columns, &cells, Tone::Faint);
        };
        line("count", &|rate| format_count(rate.count));
        line("in", &|rate| seconds(rate.elapsed_ns));
    }

    fn claims(&mut self, block: &[usize]) {
        let all = self.all;
        if all.claims.is_empty() {
            return;
        }
        let label_columns = self.label_columns(block);
        self.heading("Where each published sentence holds", label_columns, block);
        for claim in &all.claims {
            let cells: Vec<(String, Tone)> = block
                .iter()
                .map(|run| match claim.of_runs[*run] {
                    None => (DASH.to_owned(), Tone::Faint),
                    Some(result) => {
                        let ratio = result
                            .ratio
                            .map_or(String::new(), |ratio| format!(" {}", format_ratio(ratio)));
                        match result.judgement {
                            Judgement::Holds => (format!("yes{ratio}"), Tone::Good),
                            Judgement::DoesNotHold => (format!("no{ratio}"), Tone::Bad),
                            Judgement::NotSure => (format!("?{ratio}"), Tone::Unsure),
                            Judgement::NotMeasured(_) => {
                                (judgement(&result.judgement).0.to_owned(), Tone::Faint)
                            }
                        }
                    }
                })
                .collect();
            let mut lines = wrap(&claim.sentence, label_columns.saturating_sub(1)).into_iter();
            self.row(
                &lines.next().unwrap_or_default(),
                label_columns,
                &cells,
                Tone::Plain,
            );
            for line in lines {
                self.row(&line, label_columns, &[], Tone::Plain);
            }
        }
    }

    /// What commits survive: kept in how many cuts of how many, or only claimed.
    fn survival(&mut self, block: &[usize]) {
        let all = self.all;
        if all.survival.rows.is_empty() {
            return;
        }
        if !all.survival.is_proved() {
            if block.contains(&0) {
                self.lines.push(String::new());
                self.text(NOTHING_PROVED, Tone::Faint);
            }
            return;
        }
        let longest = all.survival.rows.iter().map(|row| width(&row.label)).max();
        let title = "What commits survive";
        let wanted = longest.unwrap_or(0).max(width(title)) + 1;
        let label_columns = self.label_columns(block).min(wanted);
        self.heading(title, label_columns, block);
        for row in &all.survival.rows {
            let cells: Vec<(String, Tone)> = block
                .iter()
                .map(|run| match &row.of_runs[*run] {
                    None => (DASH.to_owned(), Tone::Faint),
                    Some(tier) => match tier.standing {
                        Standing::Broken(..) => ("NOT KEPT".to_owned(), Tone::Bad),
                        Standing::Kept(_) => (tier.short.clone(), Tone::Good),
                        _ => (tier.short.clone(), Tone::Faint),
                    },
                })
                .collect();
            self.row(&row.label, label_columns, &cells, Tone::Plain);
        }
        self.indented("power 20/20: it is claimed to survive a loss of power, and did in 20 of 20; without figures it is claimed only.");
    }

    fn differences(&mut self) {
        self.lines.push(String::new());
        let between = match self.all.machine {
            Some(_) => "What differs between the places",
            None => "What differs between the machines",
        };
        self.text(between, Tone::Heading);
        for fact in &self.all.differences {
            let values = fact.values.iter().enumerate().map(|(index, value)| {
                format!("[{}] {}", index + 1, value.as_deref().unwrap_or("not said"))
            });
            let values: Vec<String> = values.collect();
            self.text(
                &format!("{}: {}", fact.name, values.join("  ")),
                Tone::Plain,
            );
        }
    }
}
