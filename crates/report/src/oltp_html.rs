//! The rates of groups about rows and jobs, as sections of the page.

use maud::{Markup, html as markup};
use sqlitmus_core::analysis::Analysis;
use sqlitmus_core::run::Run;
use sqlitmus_core::units::format_count;

use crate::html::page::Figures;
use crate::oltp::{Rate, RateTable, is_shown, microseconds, per_second, seconds, survives, tables};
use crate::svg::LineChart;
use crate::views::by_threads;

/// A section for each group.
pub(crate) fn sections(figures: Figures, run: &Run, analysis: &Analysis) -> Markup {
    let groups = run.plan.groups.iter().zip(&analysis.groups);
    let groups = groups.filter(|(group, _)| is_shown(group)).enumerate();
    let curves = groups.map(|(index, (group, measured))| {
        let id = format!("threads-{}", index + 1);
        by_threads::view(run, group, measured, &id)
    });
    markup! {
        @for (table, curves) in tables(run, analysis).iter().zip(curves) {
            (section(figures, table, curves.as_ref()))
        }
    }
}

fn section(figures: Figures, table: &RateTable, curves: Option<&LineChart>) -> Markup {
    let headings = [
        "count",
        "seconds",
        "per second",
        "CPU",
        "CPU us each",
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
            @if let Some(curves) = curves {
                (figures.with_data(curves, &markup! { "All threads together. Higher is better." }))
            }
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
                                        @for cell in cells(rate, survives(row.durability)) {
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
        rate.cpu_us().unwrap_or_else(dash),
        p50,
        p99,
        p999,
        longest,
        rate.busy.map_or_else(dash, format_count),
        seconds(rate.settle_ns),
        survives.to_owned(),
    ]
}
