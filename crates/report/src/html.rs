//! The page to pass on: one HTML file that needs nothing else, no network, in light and dark, on a telephone
//! and on paper. First the question, its answer, the chart that proves it, the machine, and what a sceptic
//! asks; below, everything the answer rests on.
//!
//! All of it can be read without the script, which adds sorting, choosing, exact values at the pointer, saving
//! and links. Escaping is done by `maud`, for every text; this module and those below it write structure.

mod advice;
pub(crate) mod bars;
pub mod page;
mod provenance;
mod rates;
mod sceptic;
pub(crate) mod side_by_side;
mod survival;
mod tables;

use maud::{Markup, html as markup};

use sqlitmus_core::analysis::{Analysis, ChartAnalysis};
use sqlitmus_core::run::{Run, RunState};
use sqlitmus_core::suite::ChartKind;

use crate::grid::Grid;
use crate::proved::Proved;
use crate::summary::{Summary, named};
use crate::svg::Chart;
use crate::text::clean;
use crate::views::{blob_sizes, latency_curves, round_values, time_parts, trade_off};
use page::{Figures, Page};

/// Sentences of the conclusion that stand above the first chart; the others follow it.
const SENTENCES_FIRST: usize = 1;

/// Renders a run as one self-contained HTML page.
///
/// `analysis` is what [`sqlitmus_core::analysis::analyse`] made of `run`. Texts of the run are
/// cleaned of control characters and of marks that change the reading direction, and escaped.
#[must_use]
pub fn html(run: &Run, analysis: &Analysis) -> String {
    let summary = Summary::of(run, analysis);
    let sentences = analysis.conclusion.iter().map(|sentence| clean(sentence));
    let sentences: Vec<String> = sentences.filter(|sentence| !sentence.is_empty()).collect();
    let figures = Figures::for_rows(analysis.charts.iter().map(|chart| chart.rows.len()).sum());
    let mut charts = analysis.charts.iter().enumerate();
    let first = charts.next();
    let is_grid = Grid::of(run, analysis).is_some();
    Page {
        title: summary.question.clone(),
        version: clean(&run.head.sqlitmus_version),
        header: header(run, &summary, &sentences),
        main: markup! {
            (advice::section(figures, run))
            // What a suite explains, and what a grid shows at once, are its answer.
            (crate::explanation_html::section(figures, run, analysis))
            @if is_grid { (sizes(figures, run, analysis)) }
            @if let Some((index, chart)) = first { (section(figures, run, analysis, chart, index)) }
            @else { (rates(figures, run, analysis)) }
            @if sentences.len() > SENTENCES_FIRST {
                section aria-labelledby="heading-short" {
                    h2 id="heading-short" { "In short" }
                    ul.answer { @for sentence in &sentences { li { (sentence) } } }
                }
            }
            (sceptic::section(run, analysis, &summary))
            @for (index, chart) in charts { (section(figures, run, analysis, chart, index)) }
            @if first.is_some() { (rates(figures, run, analysis)) }
            (provenance::libraries(run))
            @if !is_grid { (sizes(figures, run, analysis)) }
            @for view in crate::views::of_run(run, analysis) { (view_section(figures, &view)) }
            (tables::claims(analysis))
            (tables::cases(run, analysis, figures.is_large()))
            (Proved::of(run).section(analysis))
            (crate::resources_html::section(run, analysis, figures.is_large()))
            (tables::left_out(run, analysis))
            (provenance::how_to_read(run, analysis, &summary))
            (provenance::environment(run))
            (provenance::read_back(run, analysis))
            (provenance::reproduce(run))
        },
        footer: markup! {
            p { "Made by sqlitmus " (clean(&run.head.sqlitmus_version)) " from run "
                code { (named(&run.head.id, "without an identity")) } "." }
        },
    }
    .render()
}

/// The first screen: question, warnings, the answer in a sentence, machine and conditions.
fn header(run: &Run, summary: &Summary, sentences: &[String]) -> Markup {
    markup! {
        p.kicker {
            "sqlitmus, suite " (named(&run.plan.suite, "without a name"))
            ", " (clean(&run.head.started_utc).get(..10).unwrap_or("date unknown"))
            @if run.head.state != RunState::Complete { ", not complete" }
        }
        h1 { (summary.question) }
        @for warning in &summary.warnings {
            p.warning role="note" { (warning) }
        }
        @for sentence in sentences.iter().take(SENTENCES_FIRST) { p.lead { (sentence) } }
        ul.facts aria-label="Machine" {
            @for piece in &summary.machine { li { (piece) } }
        }
        ul.facts aria-label="Conditions" {
            @for piece in &summary.conditions { li { (piece) } }
        }
    }
}

/// What is shown as operations a second, and as latencies under load.
fn rates(figures: Figures, run: &Run, analysis: &Analysis) -> Markup {
    markup! {
        (crate::readers_html::sections(figures, run, analysis))
        (crate::oltp_html::sections(figures, run, analysis))
    }
}

/// The section of a chart; `index` counts the charts of the page from 0.
fn section(
    figures: Figures,
    run: &Run,
    analysis: &Analysis,
    chart: &ChartAnalysis,
    index: usize,
) -> Markup {
    let id = format!("chart-{}", index + 1);
    let part = |name: &str| format!("{id}-{name}");
    let timed = chart.chart.shows == ChartKind::Time;
    let latencies = latency_curves::view(run, chart, &part("latencies")).filter(|_| timed);
    let rounds = round_values::view(run, chart, &part("rounds")).filter(|_| timed);
    // Very large pages leave out what takes most room and says least.
    let parts =
        time_parts::view(run, chart, &part("parts")).filter(|_| timed && !figures.is_large());
    let trade_off = trade_off::view(run, chart, &part("space")).filter(|_| timed);
    let heading = format!("heading-{}", index + 1);
    markup! {
        section aria-labelledby=(heading) {
            h2 id=(heading) { (bars::title(chart)) }
            p.conditions { (bars::conditions(run, analysis, chart)) }
            (bars::figure(figures, run, chart, &id))
            div.parts {
            (folded(&part("figures"), "All figures", &bars::table(run, chart, &id)))
            @if let Some(view) = &latencies {
                (folded_chart(figures, view, "How long single operations take: every percentile, not only the mean. Lower is better."))
            }
            @if let Some(view) = &rounds {
                (folded_rounds(figures, view))
            }
            @if let Some(view) = &parts {
                (folded_chart(figures, view, "As the kernel accounts processor time; what is neither is waiting, or not explained."))
            }
            @if let Some(view) = &trade_off {
                (folded_chart(figures, view, "Left and low is better. Nothing beats a ringed arm in both."))
            }
            }
        }
    }
}

/// Charts that belong together.
fn view_section(figures: Figures, view: &crate::views::View) -> Markup {
    let heading = format!("heading-{}", view.id);
    markup! {
        section aria-labelledby=(heading) {
            h2 id=(heading) { (view.heading) }
            @if !view.about.is_empty() { p.conditions { (view.about) } }
            @for (chart, legend) in &view.charts {
                @if view.charts.len() > 1 { h3 { (chart.title()) } }
                (figures.with_data(chart.as_ref(), &markup! { (legend) }))
            }
        }
    }
}

fn folded(id: &str, summary: &str, content: &Markup) -> Markup {
    markup! { details.part id=(id) { summary { (summary) } (content) } }
}

fn folded_chart(figures: Figures, chart: &dyn Chart, legend: &str) -> Markup {
    let legend = markup! { (legend) };
    let id = format!("{}-part", chart.id());
    folded(&id, chart.title(), &figures.with_data(chart, &legend))
}

/// The rounds of arms; their numbers are a line an arm, which long runs need.
fn folded_rounds(figures: Figures, view: &crate::svg::Rounds) -> Markup {
    let legend = markup! {
        span.legend { "Each arm's rounds in order, as the distance from its own median. A slope that all share is drift." }
        span.legend {
            svg.chart width="12" height="12" aria-hidden="true" { path.cross d="M2 2l8 8m0 -8l-8 8" {} }
            "left out"
        }
    };
    let id = view.id();
    let content = markup! {
        (figures.figure(view, &legend, &format!("{id}-data")))
        details.data {
            summary { "Numbers of this chart" }
            div.scroll role="region" tabindex="0" aria-label={ "Numbers of " (view.title()) } {
                table.plain id={ (id) "-data" } {
                    thead { tr { th scope="col" { "Arm" } th.text scope="col" { "µs per blob, round by round; ( ) left out" } } }
                    tbody { @for row in &view.rows { tr {
                        th scope="row" { (row.label) }
                        td.text {
                            @for mark in &row.marks {
                                @let value = mark.value.map_or_else(|| "-".to_owned(), view.format);
                                @if mark.left_out.is_some() { "(" (value) ") " } @else { (value) " " }
                            }
                        }
                    } } }
                }
            }
        }
    };
    folded(&format!("{id}-part"), view.title(), &content)
}

/// What the size of the blobs changes, if the run has arms that differ in it.
fn sizes(figures: Figures, run: &Run, analysis: &Analysis) -> Markup {
    let curves = blob_sizes::curves(run, analysis, "sizes");
    let grid = Grid::of(run, analysis);
    let heat_map = grid
        .as_ref()
        .map(|grid| blob_sizes::heat_map(grid, "pages"));
    let packing = grid
        .as_ref()
        .and_then(|grid| blob_sizes::packing(grid, "packing"));
    let answers = grid.as_ref().map(Grid::answers).unwrap_or_default();
    if curves.is_none() && heat_map.is_none() {
        return markup! {};
    }
    markup! {
        section aria-labelledby="heading-sizes" {
            h2 id="heading-sizes" { "By size of the blobs" }
            @if let Some(view) = &curves {
                p.conditions { "Above the line an arm is faster than the baseline at that size; where its curve crosses the line, the answer changes." }
                (figures.with_data(view, &markup! { "Bands are 95% intervals." }))
            }
            @if let Some(view) = &heat_map {
                p.conditions { "Times as fast as the baseline: blue is faster, orange slower, ~ inside the noise." }
                (figures.with_data(view, &markup! {}))
            }
            @if !answers.is_empty() {
                ul { @for answer in &answers { li { (answer) } } }
            }
            @if let Some(view) = &packing {
                p.conditions { "What a byte of content takes on disk: orange takes more." }
                (figures.with_data(view, &markup! {}))
            }
        }
    }
}
