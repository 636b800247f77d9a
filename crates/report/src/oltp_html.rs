//! The rates of groups about rows and jobs, as sections of the page.

use maud::{Markup, html as markup};
use sqlitmus_core::analysis::Analysis;
use sqlitmus_core::run::Run;
use sqlitmus_core::units::format_count;

use crate::oltp::{Rate, RateTable, microseconds, per_second, seconds, tables};

/// A section for each group.
pub(crate) fn sections(run: &Run, analysis: &Analysis) -> Markup {
    markup! {
        @for table in tables(run, analysis) {
            (section(&table))
        }
    }
}

fn section(table: &RateTable) -> Markup {
    let headings = [
        "count",
        "seconds",
        "per second",
        "CPU",
        "p50 us",
        "p99 us",
        "p99.9 us",
        "longest us",
        "busy",
        "settling",
        "survives",
    ];
    markup! {
        section {
            h2 { (table.title) }
            p { (table.subtitle) }
            div.wide {
                table {
                    thead { tr {
                        th scope="col" { "Arm" }
                        @for heading in headings { th scope="col" { (heading) } }
                    } }
                    tbody {
                        @for row in &table.rows {
                            tr {
                                th scope="row" { (row.label) }
                                @match &row.figures {
                                    Ok(rate) => {
                                        @for cell in cells(rate, &row.survives) {
                                            td { (cell) }
                                        }
                                    }
                                    Err(reason) => {
                                        td colspan=(headings.len()) { (reason) }
                                    }
                                }
                            }
                        }
                    }
                }
            }
            @for note in &table.notes { p { (note) } }
        }
    }
}

fn cells(rate: &Rate, survives: &str) -> Vec<String> {
    let dash = || "-".to_owned();
    let [p50, p99, p999, longest] = rate.latency_ns.unwrap_or_default().map(microseconds);
    vec![
        format_count(rate.count),
        seconds(rate.elapsed_ns),
        per_second(rate),
        rate.cpu_percent()
            .map_or_else(dash, |percent| format!("{percent:.0}%")),
        p50,
        p99,
        p999,
        longest,
        rate.busy.map_or_else(dash, format_count),
        seconds(rate.settle_ns),
        survives.to_owned(),
    ]
}
