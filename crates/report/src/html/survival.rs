//! What commits survive, case by case and run by run, as a section of the page of several runs.

use maud::{Markup, html as markup};

use crate::proved::{NOTHING_PROVED, shown};
use crate::side_by_side::SideBySide;

use super::side_by_side::swatch;

/// The section; empty if no run has a case that claims something.
pub(super) fn section(all: &SideBySide<'_>) -> Markup {
    if all.survival.rows.is_empty() {
        return markup! {};
    }
    markup! {
        section aria-labelledby="heading-survival" {
            h2 id="heading-survival" { "What commits survive" }
            @if !all.survival.is_proved() {
                p.conditions { (NOTHING_PROVED) }
            } @else {
                p.conditions { "What each case claims, and in how many cuts of the durability experiment it kept that, on the filesystem of each run." }
                div.scroll role="region" tabindex="0" aria-label="What commits survive" {
                    table id="survival" {
                        thead { tr {
                            th scope="col" class="text" { "Case" }
                            @for (index, name) in all.names.iter().enumerate() {
                                th scope="col" class="text" data-tags={ "run=" (index + 1) } { (swatch(index)) " " (name) }
                            }
                        } }
                        tbody { @for row in &all.survival.rows { tr {
                            th scope="row" { (row.label) }
                            @for (index, tier) in row.of_runs.iter().enumerate() {
                                td.text data-tags={ "run=" (index + 1) } {
                                    @if let Some(tier) = tier { (shown(tier)) } @else { span.none { "not in this run" } }
                                }
                            }
                        } } }
                    }
                }
            }
        }
    }
}
