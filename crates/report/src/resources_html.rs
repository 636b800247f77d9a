//! What an operation uses beside time, as a table of the page.

use maud::{Markup, html as markup};
use sqlitmus_core::analysis::Analysis;
use sqlitmus_core::run::Run;

use crate::figures::DASH;
use crate::resources::{calls_by_name, counters, method, of_all, times};
use crate::svg::datum;

/// The section; empty if nothing was counted, or if the page is large already.
pub(crate) fn section(run: &Run, analysis: &Analysis, is_large: bool) -> Markup {
    let arms = of_all(run, analysis);
    let counters = counters(&arms);
    let calls = || arms.iter().filter_map(|arm| arm.used.as_ref().ok());
    let counts_calls = calls().any(|used| !used.system_calls.is_empty());
    if is_large || (counters.is_empty() && !counts_calls) {
        return markup! {};
    }
    markup! {
        section aria-labelledby="heading-resources" {
            h2 id="heading-resources" { "What an operation uses" }
            p.conditions {
                "As the kernel and SQLite count it around the timed slices, for one operation; peaks are the largest of all rounds. "
                @if let Some(method) = method(run) {
                    "System calls, of operations that were not timed: " (method) "."
                }
            }
            div.scroll role="region" tabindex="0" aria-label="What an operation uses" {
                table.numbers.sortable.filterable id="resources" {
                    thead { tr {
                        th scope="col" class="text" { "Case" }
                        th scope="col" class="text" { "Group" }
                        @for counter in &counters { th scope="col" { (counter.heading) } }
                        @if counts_calls {
                            th scope="col" { "System calls" }
                            th scope="col" class="text" { "by name" }
                        }
                    } }
                    tbody { @for arm in &arms { tr {
                        th scope="row" { (arm.label) }
                        td.text { (arm.group) }
                        @match &arm.used {
                            Err(reason) => {
                                td.text.none colspan=(counters.len() + 2 * usize::from(counts_calls)) { (reason) }
                            }
                            Ok(used) => {
                                @for counter in &counters {
                                    td data-v=(datum(counter.value(used))) { (counter.text(used)) }
                                }
                                @if counts_calls {
                                    @let calls = used.system_calls_per_operation();
                                    td data-v=(datum(calls)) { (calls.map_or_else(|| DASH.to_owned(), times)) }
                                    td.text { (calls_by_name(used)) }
                                }
                            }
                        }
                    } } }
                }
            }
        }
    }
}
