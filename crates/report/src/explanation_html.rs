//! Where the time goes, as a section of the page: one stacked bar an explained arm, the answers
//! about shares, and a table of the parts.

use maud::{Markup, html as markup};
use sqlitmus_core::analysis::Analysis;
use sqlitmus_core::run::Run;

use crate::explanation::{PartKind, PartTable, answers, tables};
use crate::html::page::Figures;
use crate::views::explained_parts;

/// The section; nothing if the suite explains nothing.
pub(crate) fn section(figures: Figures, run: &Run, analysis: &Analysis) -> Markup {
    let tables = tables(analysis);
    let answers = answers(analysis);
    if tables.is_empty() && answers.is_empty() {
        return markup! {};
    }
    let views = explained_parts::views(run, analysis, "explained");
    markup! {
        section aria-labelledby="heading-explained" {
            h2 id="heading-explained" { "Where the time goes, part by part" }
            p.conditions { "Each part was measured by itself, by arms that do only so much of the work, in the same rounds as the whole." }
            @for answer in &answers { p { (answer) } }
            @for view in &views {
                @if views.len() > 1 { h3 { (view.title) } }
                (figures.with_data(view, &markup! { "What is left of the whole is not explained. Parts below zero have no length." }))
            }
            div.parts {
                @for (index, table) in tables.iter().enumerate() { (of_arm(table, index)) }
            }
        }
    }
}

fn of_arm(table: &PartTable, index: usize) -> Markup {
    markup! {
        details.part id={ "explained-arm-" (index + 1) } {
        summary { (table.label) }
        @if !table.rows.is_empty() {
            div.scroll role="region" tabindex="0" aria-label={ "Parts of " (table.label) } {
                table.plain.figures {
                    thead { tr {
                        th scope="col" { "Part" }
                        th scope="col" { "µs, " (table.rounds) }
                        th scope="col" { "± half of the 95% interval" }
                        th scope="col" { "of the whole" }
                    } }
                    tbody { @for row in &table.rows { tr {
                        th scope="row" {
                            @if row.kind == PartKind::Part { (row.name) } @else { strong { (row.name) } }
                        }
                        td { (row.time) }
                        td { (row.reach) }
                        td { (row.share) }
                    } } }
                }
            }
        }
        @for note in &table.notes { p.note { (note) } }
        }
    }
}
