//! An advice page as GitHub's Markdown: the answer, what was tried, what would change it, and what a
//! thorough run adds. What to paste is left to the page and the terminal.

use sqlitmus_core::advice::{Part, Recommendation, Stage, Standing};
use sqlitmus_core::run::Run;
use sqlitmus_core::statistics::Interval;
use sqlitmus_core::units::format_ratio;

use super::{further, sentences};
use crate::markdown::{Page, escape};
use crate::text::clean;

/// The page; empty for runs that are no advice.
#[must_use]
pub fn markdown(run: &Run, recommendation: &Recommendation) -> String {
    let Some(record) = run.plan.advice.as_deref() else {
        return String::new();
    };
    let mut page = Page::default();
    page.line(&format!("## {}", escape(&sentences::question(record))));
    let answer = sentences::answer(record, recommendation);
    page.line(&format!("**{}**", escape(&answer)));
    page.line(&items(&sentences::beside(record, recommendation)));
    page.line(&items(&sentences::about(run, record, recommendation)));
    page.line("### What was tried: times as fast as your files (95% interval)");
    let headings = ["Store", "the mixture", "reading", "writing", "space", ""];
    let rows = recommendation.standings.iter().map(row).collect();
    page.table(&headings.map(str::to_owned), rows);
    let changes = sentences::sensitivity(record, recommendation);
    if !changes.is_empty() {
        page.line("### What would change the answer");
        page.line(&items(&changes));
    }
    for section in further::sections(record, recommendation) {
        page.line(&format!("### {}", escape(section.heading)));
        page.line(&items(&section.sentences));
        let (headings, rows) = section.cells();
        page.table(&headings, rows);
    }
    page.text()
}

fn items(sentences: &[String]) -> String {
    let items = sentences
        .iter()
        .map(|sentence| format!("- {}", escape(sentence)));
    items.collect::<Vec<_>>().join("\n")
}

fn row(standing: &Standing) -> Vec<String> {
    let Some(found) = standing.composed else {
        let reason = standing.reason.as_deref().unwrap_or("not measured");
        return vec![clean(&standing.label), clean(reason)];
    };
    // Intervals of the few rounds of a selection say nothing but that they were few.
    let is_confirmed = standing.stage == Stage::Confirm;
    let words = |ratio, interval: Option<Interval>| {
        sentences::ratio_words(ratio, interval.filter(|_| is_confirmed))
    };
    let part =
        |part: Option<Part>| part.map_or("-".to_owned(), |part| words(part.ratio, part.interval));
    vec![
        clean(&standing.label),
        words(found.ratio, found.interval),
        part(found.read),
        part(found.write),
        standing
            .space
            .map_or("-".to_owned(), |space| format_ratio(1.0 / space)),
        if is_confirmed { "confirmed" } else { "tried" }.to_owned(),
    ]
}
