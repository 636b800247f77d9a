//! The terminal report: one screen that reads like an answer. Question, conditions and machine;
//! every chart of the suite with its figures; the published sentences with a verdict; and last,
//! where the eye is when a command has ended, the conclusion.
//!
//! Where to read on (the run file, other formats) is for the caller to append.

pub(crate) mod ink;
mod sentences;
mod side_by_side;
mod space_chart;
mod table;
mod time_chart;

pub use side_by_side::terminal_side_by_side;

use sqlitmus_core::analysis::{Analysis, ChartAnalysis};
use sqlitmus_core::run::Run;
use sqlitmus_core::suite::ChartKind;
use sqlitmus_core::verdict::Verdict;

use crate::builds;
use crate::explanation_terminal;
use crate::figures::legend_of;
use crate::grid::Grid;
use crate::lifecycle;
use crate::load;
use crate::oltp_terminal;
use crate::proved::Proved;
use crate::resources;
use crate::scaling;
use crate::spending;
use crate::summary::Summary;
use crate::text::{self, wrap};
pub(crate) use ink::{Ink, Tone};

/// Fewer columns than this are treated as this many: there is no room for a figure and its name.
pub(crate) const LEAST_COLUMNS: usize = 40;

/// Running text is not set wider than this: long lines are hard to follow.
const MOST_TEXT_COLUMNS: usize = 110;

/// What the terminal can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// Columns of the terminal. The layout is made for 80 and more; no line is wider.
    pub columns: usize,
    /// Whether to colour verdicts and to set headings in bold.
    pub color: bool,
}

/// Renders a run for a terminal: lines, each ended by a line feed, none wider than the terminal.
///
/// `analysis` is what [`sqlitmus_core::analysis::analyse`] made of `run`. Texts of the run are
/// cleaned of everything that a terminal would act on.
#[must_use]
pub fn terminal(run: &Run, analysis: &Analysis, look: &Look) -> String {
    let page = Page {
        run,
        analysis,
        columns: look.columns.max(LEAST_COLUMNS),
        ink: Ink { color: look.color },
        lines: Vec::new(),
    };
    page.render()
}

/// A report in the making.
struct Page<'a> {
    run: &'a Run,
    analysis: &'a Analysis,
    columns: usize,
    ink: Ink,
    lines: Vec<String>,
}

impl Page<'_> {
    fn render(mut self) -> String {
        let summary = Summary::of(self.run, self.analysis);
        self.head(&summary);
        let grid = Grid::of(self.run, self.analysis);
        let columns = self.columns;
        for paragraph in grid.iter().flat_map(|grid| grid.paragraphs(columns)) {
            self.blank();
            self.lines.extend(paragraph);
        }
        let is_in_grid =
            |chart: &&ChartAnalysis| grid.as_ref().is_some_and(|grid| grid.covers(chart));
        // What the grid says already the page has in full.
        for chart in self
            .analysis
            .charts
            .iter()
            .filter(|chart| !is_in_grid(chart))
        {
            self.blank();
            let table = match chart.chart.shows {
                ChartKind::Time => time_chart::table(self.run, self.analysis, chart, self.columns),
                ChartKind::Space => space_chart::table(self.run, chart, self.columns),
            };
            self.lines.extend(table.render(self.columns, self.ink));
        }
        for paragraph in resources::cold_paragraphs(self.run, self.analysis, self.columns) {
            self.blank();
            self.lines.extend(paragraph);
        }
        for paragraph in explanation_terminal::paragraphs(self.analysis, self.columns) {
            self.blank();
            self.lines.extend(paragraph);
        }
        for paragraph in oltp_terminal::paragraphs(self.run, self.analysis, self.columns) {
            self.blank();
            self.lines.extend(paragraph);
        }
        let of_readers = scaling::of(self.run);
        let of_readers = of_readers.iter().map(scaling::Scaling::table);
        for table in load::tables(self.run, self.analysis)
            .into_iter()
            .chain(of_readers)
            .chain(lifecycle::tables(self.run))
        {
            self.blank();
            self.lines.extend(table.lines(self.columns));
        }
        if let Some(paragraph) = builds::paragraph(self.run, self.columns.min(MOST_TEXT_COLUMNS)) {
            self.blank();
            self.lines.extend(paragraph);
        }
        self.legend();
        self.certainty();
        self.proved();
        self.claims();
        self.conclusion(&summary);
        let mut report = self.lines.join("\n");
        report.push('\n');
        report
    }

    fn blank(&mut self) {
        if self.lines.last().is_some_and(|line| !line.is_empty()) {
            self.lines.push(String::new());
        }
    }

    fn text(&mut self, text: &str, tone: Tone) {
        let columns = self.columns.min(MOST_TEXT_COLUMNS);
        for line in wrap(text, columns) {
            let line = self.ink.paint(&line, tone);
            self.lines.push(line);
        }
    }

    fn head(&mut self, summary: &Summary) {
        self.text(&summary.question, Tone::Heading);
        for warning in &summary.warnings {
            self.text(warning, Tone::Unsure);
        }
        for pieces in [&summary.conditions, &summary.machine] {
            for line in sentences::pieces(pieces, self.columns) {
                self.lines.push(line);
            }
        }
    }

    fn legend(&mut self) {
        let charts = &self.analysis.charts;
        let mut pieces: Vec<String> = Vec::new();
        if charts
            .iter()
            .any(|chart| chart.chart.shows == ChartKind::Time)
        {
            pieces.push("us: microseconds per blob".to_owned());
        }
        let compares = |chart: &ChartAnalysis| !chart.chart.versus.is_empty();
        if charts.iter().any(compares) {
            pieces.push("vs: times as fast as (or as small as)".to_owned());
        }
        let rows = charts.iter().flat_map(|chart| &chart.rows);
        let compared: Vec<_> = rows.flat_map(|row| row.versus.iter().flatten()).collect();
        if compared
            .iter()
            .any(|compared| compared.estimate.interval.is_some())
        {
            pieces.push("± half of the 95% interval".to_owned());
        }
        let settles = |chart: &ChartAnalysis| {
            chart
                .rows
                .iter()
                .any(|row| row.arm.settled_operation_ns.is_some())
        };
        if charts.iter().any(settles) {
            pieces.push("█ until acknowledged ░ settling".to_owned());
        }
        let rounds = |chart: &ChartAnalysis| {
            chart
                .rows
                .iter()
                .any(|row| row.arm.round_values_ns.len() > 1)
        };
        if charts.iter().any(rounds) && self.lines.iter().any(|line| line.contains(" rounds ")) {
            pieces.push("rounds: one by one, ▁ 20% below their median, █ 20% above".to_owned());
        }
        for verdict in [Verdict::NotSureYet, Verdict::NoDifferenceWorthHaving] {
            if compared.iter().any(|compared| compared.verdict == verdict) {
                pieces.extend(legend_of(verdict).map(str::to_owned));
            }
        }
        let mut unpublished: Vec<String> = charts
            .iter()
            .filter(|chart| chart.chart.published.is_empty())
            .map(|chart| text::clean(&chart.chart.answers))
            .filter(|answers| !answers.is_empty())
            .collect();
        unpublished.dedup();
        if !unpublished.is_empty() {
            pieces.push(format!("no published figures: {}", unpublished.join(", ")));
        }
        if pieces.is_empty() {
            return;
        }
        self.blank();
        for line in sentences::pieces(&pieces, self.columns) {
            let line = self.ink.paint(&line, Tone::Faint);
            self.lines.push(line);
        }
    }

    /// What the intervals follow from.
    fn certainty(&mut self) {
        let lines = spending::scatter(self.analysis)
            .into_iter()
            .chain(spending::outliers(self.analysis));
        for line in lines {
            self.text(&line, Tone::Faint);
        }
    }

    /// What commits survive, by what was claimed and by what was proved.
    fn proved(&mut self) {
        let lines = Proved::of(self.run).lines();
        if lines.len() > 1 {
            self.blank();
            self.text("What commits survive", Tone::Heading);
        }
        for line in lines {
            let tone = if line.is_broken {
                Tone::Bad
            } else {
                Tone::Faint
            };
            self.text(&line.text, tone);
        }
    }

    fn claims(&mut self) {
        if self.analysis.claims.is_empty() {
            return;
        }
        self.blank();
        self.text("What was published, judged by this run", Tone::Heading);
        let lines = sentences::claims(&self.analysis.claims, self.columns, self.ink);
        self.lines.extend(lines);
    }

    fn conclusion(&mut self, summary: &Summary) {
        self.blank();
        let sentences: Vec<String> = self
            .analysis
            .conclusion
            .iter()
            .map(|sentence| text::clean(sentence))
            .collect();
        if !sentences.is_empty() {
            self.text(&format!("In short. {}", sentences.join(" ")), Tone::Plain);
        }
        if let Some(harness) = &summary.harness {
            self.text(harness, Tone::Faint);
        }
        while self.lines.last().is_some_and(String::is_empty) {
            self.lines.pop();
        }
    }
}
