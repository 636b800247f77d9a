//! The part of a page that an advice run has before all others: the answer, what was tried as a table and
//! as a chart of reading against writing, what would change it, and what to paste.

use maud::{Markup, html as markup};

use sqlitmus_core::advice::candidate::TODAY;
use sqlitmus_core::advice::{AdviceRecord, Part, Recommendation, Stage, Standing, recommend};
use sqlitmus_core::case::Durability;
use sqlitmus_core::run::Run;
use sqlitmus_core::statistics::Interval;
use sqlitmus_core::units::format_ratio;

use super::page::Figures;
use crate::advice::further::{self, Section};
use crate::advice::sentences;
use crate::advice::snippet::{Language, Setup, without_code};
use crate::svg::{Axis, Further, Scale, Scatter, ScatterPoint, plain};
use crate::text::clean;

/// With fewer there is nothing to choose from.
const LEAST_POINTS: usize = 3;

/// The section; empty for runs that are no advice.
pub(super) fn section(figures: Figures, run: &Run) -> Markup {
    let (Some(record), Some(found)) = (run.plan.advice.as_deref(), recommend(run)) else {
        return markup! {};
    };
    markup! {
        section aria-labelledby="heading-advice" {
            h2 id="heading-advice" { "The answer" }
            p.lead { (sentences::answer(record, &found)) }
            ul.answer {
                @for sentence in sentences::about(run, record, &found) { li { (sentence) } }
                @for sentence in sentences::beside(record, &found) { li { (sentence) } }
            }
            (tried(&found))
            @if let Some(chart) = trade_off(record, &found) {
                (figures.with_data(&chart, &markup! {
                    "Left, low and small is better, a square survives more than a circle, and nothing beats a ringed one in all of these. "
                    "Those that were not confirmed were measured for a few rounds only."
                }))
            }
            h3 { "What would change the answer" }
            ul.answer { @for sentence in sentences::sensitivity(record, &found) { li { (sentence) } } }
            @for part in further::sections(record, &found) { (further_section(figures, &part)) }
            (paste(run, record, &found))
        }
    }
}

/// A part of a thorough run.
fn further_section(figures: Figures, section: &Section) -> Markup {
    let (headings, rows) = section.cells();
    markup! {
        h3 { (section.heading) }
        @for sentence in &section.sentences { p { (sentence) } }
        @if let Some(chart) = &section.chart {
            (figures.with_data(chart, &markup! {
                "Above 1 the database is faster. The ring on the line is where the strong curve crosses it, the bar \
                 beside it the 95% interval."
            }))
        }
        div.scroll role="region" tabindex="0" aria-label=(section.heading) {
            table.plain {
                caption { (section.table.title) }
                thead { tr { @for heading in &headings { th scope="col" { (heading) } } } }
                tbody { @for row in &rows { tr {
                    @for (column, cell) in row.iter().enumerate() {
                        @if column == 0 { th scope="row" { (cell) } }
                        @else if row.len() == 2 && headings.len() > 2 { td colspan=(headings.len() - 1) { (cell) } }
                        @else { td { (cell) } }
                    }
                } } }
            }
        }
    }
}

fn tried(found: &Recommendation) -> Markup {
    let row = |standing: &Standing| {
        // Intervals of the few rounds of a selection say nothing but that they were few.
        let is_confirmed = standing.stage == Stage::Confirm;
        let words = |ratio, interval: Option<Interval>| {
            sentences::ratio_words(ratio, interval.filter(|_| is_confirmed))
        };
        let part = |part: Option<Part>| match part {
            Some(part) => words(part.ratio, part.interval),
            None => "-".to_owned(),
        };
        let composed = standing.composed;
        let whole = composed.map(|found| words(found.ratio, found.interval));
        let reason = standing.reason.as_deref().unwrap_or("not measured");
        markup! {
            tr {
                th scope="row" { (clean(&standing.label)) }
                td { (whole.unwrap_or_else(|| clean(reason))) }
                td { (part(composed.and_then(|found| found.read))) }
                td { (part(composed.and_then(|found| found.write))) }
                td { (standing.space.map_or_else(|| "-".to_owned(), |space| format_ratio(1.0 / space))) }
                td.text { @if standing.stage == Stage::Confirm { "confirmed" } @else { "tried" } }
            }
        }
    };
    markup! {
        div.scroll role="region" tabindex="0" aria-label="What was tried" {
            table.plain {
                caption { "Times as fast as your files (95% interval)" }
                thead { tr {
                    th scope="col" { "Store" } th scope="col" { "the mixture" } th scope="col" { "reading" }
                    th scope="col" { "writing" } th scope="col" { "space" } th.text scope="col" { "" }
                } }
                tbody { @for standing in &found.standings { (row(standing)) } }
            }
        }
    }
}

/// Reading, writing, space and what is survived: all that was tried as it was asked for, and the files and the
/// best database at the other durability.
fn trade_off(record: &AdviceRecord, found: &Recommendation) -> Option<Scatter> {
    let point = |standing: &Standing| {
        let composed = standing.composed?;
        Some(ScatterPoint {
            label: clean(&standing.label),
            strong: standing.stage == Stage::Confirm,
            x: composed.read?.operation_ns / 1e3,
            y: composed.write?.operation_ns / 1e3,
            area: standing.space.map(|space| 1.0 / space),
            tier: 0,
        })
    };
    let mut points: Vec<ScatterPoint> = found.standings.iter().filter_map(point).collect();
    if points.len() < LEAST_POINTS {
        return None;
    }
    let asked = record.wish.durability;
    let mut tiers = vec![asked];
    if let Some((other, part, _)) = &found.sensitivity.durability {
        tiers.push(*other);
        tiers.sort_unstable();
        let at_other = |standing: &Standing, ns: f64| {
            let own = point(standing)?;
            Some(ScatterPoint {
                label: format!("{}, at {other}", own.label),
                y: ns / 1e3,
                ..own
            })
        };
        let today = found.standings.iter().find(|one| one.name == TODAY);
        let today = today.and_then(|one| at_other(one, part.reference_ns));
        let database = found.database.as_ref();
        let database = database.and_then(|one| at_other(one, part.operation_ns));
        let tier_of = |durability| usize::from(tiers.first() != Some(&durability));
        points.iter_mut().for_each(|one| one.tier = tier_of(asked));
        let others = today.into_iter().chain(database);
        points.extend(others.map(|one| ScatterPoint {
            tier: tier_of(*other),
            ..one
        }));
    }
    Some(Scatter {
        id: "advice-trade-off".to_owned(),
        title: "Reading, writing, space and durability at once".to_owned(),
        x: Axis::new("microseconds to read one", Scale::Logarithmic, plain),
        y: Axis::new("microseconds to write one", Scale::Logarithmic, plain),
        further: Some(Further {
            area: "space on disk, of that of your files".to_owned(),
            tiers: tiers
                .into_iter()
                .map(|tier| tier_words(tier).to_owned())
                .collect(),
        }),
        points,
    })
}

fn tier_words(durability: Durability) -> &'static str {
    match durability {
        Durability::None => "writes survive nothing",
        Durability::ProcessCrash => "writes survive a crash of the process",
        Durability::PowerLoss => "writes survive loss of power",
    }
}

fn paste(run: &Run, record: &AdviceRecord, found: &Recommendation) -> Markup {
    let Some(setup) = Setup::of(record, found) else {
        let reason = without_code(record, found);
        return markup! { @if let Some(reason) = reason { h3 { "What to paste" } p { (reason) } } };
    };
    markup! {
        h3 { "What to paste" }
        p { (sentences::paste(run, record, found)) }
        @for language in Language::ALL {
            details.part id={ "paste-" (language.word()) } {
                summary { (language.word()) }
                pre { code { (setup.code(language)) } }
            }
        }
    }
}
