//! Sections of the page that are tables first: how several readers scale, what they wait under load, and the life of stores.

use maud::{Markup, html as markup};
use sqlitmus_core::analysis::Analysis;
use sqlitmus_core::run::Run;

use crate::html::page::Figures;
use crate::views::{latency_curves, readers};
use crate::{lifecycle, load, scaling};

/// A section for each table.
pub(crate) fn sections(figures: Figures, run: &Run, analysis: &Analysis) -> Markup {
    let loads = run
        .plan
        .groups
        .iter()
        .zip(&analysis.groups)
        .filter(|(group, _)| load::is_shown(group));
    markup! {
        @for (index, (table, (group, measured))) in load::tables(run, analysis).iter().zip(loads).enumerate() {
            @let id = format!("load-{}", index + 1);
            section aria-labelledby={ "heading-" (id) } {
                h2 id={ "heading-" (id) } { (table.title) }
                @if let Some(view) = latency_curves::of_group(run, group, measured, &id) {
                    (figures.with_data(&view, &markup! { "Reads, every percentile. Lower is better; a curve that rises early is a store that lets many wait." }))
                }
                (table.markup())
            }
        }
        @for (index, found) in scaling::of(run).iter().enumerate() {
            @let id = format!("scaling-{}", index + 1);
            section aria-labelledby={ "heading-" (id) } {
                h2 id={ "heading-" (id) } { "Readers at once: " (found.title) }
                @if let Some(view) = readers::view(found, &id) {
                    (figures.with_data(&view, &markup! { "The dashed curve is the ideal: as many times as fast as there are readers, up to the number of processors. Bands are 95% intervals." }))
                }
                (found.table().markup())
            }
        }
        @for table in lifecycle::tables(run) {
            section {
                h2 { (table.title) }
                (table.markup())
            }
        }
    }
}
