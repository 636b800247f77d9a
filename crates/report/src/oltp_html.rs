//! The rates of groups about rows and jobs, as sections of the page: how they grow with threads, all of them on one
//! scale, and the table of all figures.

use maud::{Markup, html as markup};
use sqlitmus_core::analysis::Analysis;
use sqlitmus_core::run::Run;
use sqlitmus_core::units::format_count;

use crate::figures::DASH;
use crate::html::bars::trouble_class;
use crate::html::page::Figures;
use crate::oltp::{Rate, RateTable, microseconds, per_second, seconds, tables_of};
use crate::svg::datum;
use crate::views::throughput;

const HEADINGS: [&str; 9] = [
    "count",
    "seconds",
    "per second",
    "CPU",
    "CPU µs each",
    "p50 µs",
    "p99 µs",
    "p99.9 µs",
    "longest µs",
];

/// A section for each group.
pub(crate) fn sections(figures: Figures, run: &Run, analysis: &Analysis) -> Markup {
    markup! {
        @for (index, (group, measured, table)) in tables_of(run, analysis).enumerate() {
            @let id = format!("rates-{}", index + 1);
            section aria-labelledby={ "heading-" (id) } {
                h2 id={ "heading-" (id) } { (table.heading) }
                p.conditions { (table.subtitle) }
                @if let Some(lines) = throughput::by_threads(run, group, measured, &format!("{id}-threads")) {
                    h3 { (lines.title) }
                    (figures.with_data(&lines, &markup! {
                        "Bands reach from the slowest round to the fastest; dashed is what was published, and what "
                        "it would be if threads cost nothing."
                    }))
                }
                @if let Some(bars) = throughput::rates(run, &table, &id) {
                    (figures.with_data(&bars, &markup! {}))
                }
                (rates(&table, &id))
                @for note in &table.notes { p.note { (note) } }
            }
        }
    }
}

fn rates(table: &RateTable, id: &str) -> Markup {
    let settles = table.settles;
    // A column that says nothing of any arm is left out.
    let all: Vec<_> = table
        .rows
        .iter()
        .filter_map(|row| row.figures.as_ref().ok())
        .map(cells)
        .collect();
    let says = |column: usize| all.iter().any(|cells| cells[column].0 != DASH);
    let said: Vec<usize> = (0..HEADINGS.len()).filter(|column| says(*column)).collect();
    let locks = table.rows.iter().any(|row| {
        let rate = row.figures.as_ref();
        rate.is_ok_and(|rate| rate.busy.is_some())
    });
    markup! {
        div.scroll role="region" tabindex="0" aria-label={ (table.title) ", all figures" } {
            table.numbers.dense.sortable id={ (id) "-table" } {
                thead { tr {
                    th scope="col" class="text" { "Arm" }
                    @for column in &said { th scope="col" { (HEADINGS[*column]) } }
                    @if locks { th scope="col" { "busy" } }
                    @if settles {
                        th scope="col" { "settling" }
                        th scope="col" class="text" { "survives" }
                    }
                } }
                tbody {
                    @for row in &table.rows {
                        tr {
                            th scope="row" { (row.label) }
                            @match &row.figures {
                                Ok(rate) => {
                                    @let cells = cells(rate);
                                    @for (cell, exact) in said.iter().map(|column| &cells[*column]) {
                                        td data-v=[exact.as_ref()] { (cell) }
                                    }
                                    @if locks {
                                        td { (rate.busy.map_or_else(|| DASH.to_owned(), format_count)) }
                                    }
                                    @if settles {
                                        td { (seconds(rate.settle_ns)) }
                                        td.text { (row.survives) }
                                    }
                                }
                                Err(reason) => {
                                    td class={ "text " (trouble_class(reason)) } colspan=(said.len() + usize::from(locks) + 2 * usize::from(settles)) { (reason) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Figures, and those that are rounded exactly.
fn cells(rate: &Rate) -> [(String, Option<String>); 9] {
    let dash = || DASH.to_owned();
    let [p50, p99, p999, longest] = rate.latency_ns.unwrap_or_default().map(microseconds);
    let plain = |text: String| (text, None);
    [
        (format_count(rate.count), Some(rate.count.to_string())),
        plain(seconds(rate.elapsed_ns)),
        (per_second(rate), Some(datum(Some(rate.per_second())))),
        plain(
            rate.cpu_percent()
                .map_or_else(dash, |percent| format!("{percent:.0}%")),
        ),
        plain(rate.cpu_us().unwrap_or_else(dash)),
        plain(p50),
        plain(p99),
        plain(p999),
        plain(longest),
    ]
}
