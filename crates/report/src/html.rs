//! The page to pass on: one HTML file that needs nothing else, neither a network nor scripts, in
//! light and dark, on a phone and on paper. First the question, its answer, the machine and the
//! chart that proves it; below, everything the answer rests on.
//!
//! Escaping is done by `maud`, for every text; this module and those below it write structure.

mod charts;
mod picture;
mod provenance;
mod tables;

use maud::{DOCTYPE, Markup, PreEscaped, html as markup};

use sqlitmus_core::analysis::Analysis;
use sqlitmus_core::run::{Run, RunState};

use crate::summary::{Summary, named};
use crate::text::clean;

/// The page's look; ours, and therefore not escaped.
pub(crate) const STYLE: &str = include_str!("html/style.css");

/// Renders a run as one self-contained HTML page.
///
/// `analysis` is what [`sqlitmus_core::analysis::analyse`] made of `run`. Texts of the run are
/// cleaned of control characters and of marks that change the reading direction, and escaped.
#[must_use]
pub fn html(run: &Run, analysis: &Analysis) -> String {
    let summary = Summary::of(run, analysis);
    let page = markup! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                // A page that is passed on asks nobody for anything.
                meta http-equiv="Content-Security-Policy"
                    content="default-src 'none'; style-src 'unsafe-inline'; img-src data:";
                meta name="generator" content={ "sqlitmus " (clean(&run.head.sqlitmus_version)) };
                link rel="icon" href="data:,";
                title { (summary.question) " - sqlitmus" }
                style { (PreEscaped(STYLE)) }
            }
            body {
                (header(run, analysis, &summary))
                main {
                    @for (index, chart) in analysis.charts.iter().enumerate() {
                        (charts::section(run, analysis, chart, index))
                    }
                    (crate::oltp_html::sections(run, analysis))
                    (tables::claims(analysis))
                    (tables::arms(run, analysis))
                    (tables::left_out(run, analysis))
                    (provenance::how_to_read(run, analysis, &summary))
                    (provenance::environment(run))
                    (provenance::read_back(run, analysis))
                    (provenance::reproduce(run))
                }
                footer {
                    p { "Made by sqlitmus " (clean(&run.head.sqlitmus_version)) " from run "
                        code { (named(&run.head.id, "without an identity")) } "." }
                }
            }
        }
    };
    in_lines(&page.into_string())
}

/// Line breaks between the parts of a page, where they change nothing, so that two pages can be
/// compared line by line.
pub(crate) fn in_lines(page: &str) -> String {
    let mut lines = page.to_owned();
    for tag in [
        "<body", "<h2", "<figure", "<g ", "<table", "<tr", "<dt", "<details", "<footer",
    ] {
        lines = lines.replace(tag, &format!("\n{tag}"));
    }
    lines.push('\n');
    lines
}

/// The first screen: question, warnings, answer, conditions and machine.
fn header(run: &Run, analysis: &Analysis, summary: &Summary) -> Markup {
    let sentences = analysis.conclusion.iter().map(|sentence| clean(sentence));
    let sentences: Vec<String> = sentences.filter(|sentence| !sentence.is_empty()).collect();
    markup! {
        header {
            p.kicker {
                "sqlitmus, suite " (named(&run.plan.suite, "without a name"))
                ", " (clean(&run.head.started_utc).get(..10).unwrap_or("date unknown"))
                @if run.head.state != RunState::Complete { ", not complete" }
            }
            h1 { (summary.question) }
            @for warning in &summary.warnings {
                p.warning role="note" { (warning) }
            }
            @if !sentences.is_empty() {
                div.answer {
                    @for sentence in &sentences { p { (sentence) } }
                }
            }
            ul.facts aria-label="Machine" {
                @for piece in &summary.machine { li { (piece) } }
            }
            ul.facts aria-label="Conditions" {
                @for piece in &summary.conditions { li { (piece) } }
            }
        }
    }
}
