//! The truth table as a page that needs nothing else.

use maud::{Markup, html as markup};
use sqlitmus_core::durability::{DurabilityRun, Table};

use super::words::{Cells, HEADINGS, HOW_TO_READ, Standing, filesystem_line, sentences};
use crate::html::page::Page;
use crate::text::clean;

/// Columns that hold words.
const TEXT: [usize; 5] = [0, 1, 2, 5, 7];

/// Renders the table as one self-contained HTML page.
#[must_use]
pub fn html(run: &DurabilityRun, table: &Table<'_>) -> String {
    Page {
        title: "What do commits survive?".to_owned(),
        version: clean(&run.head.sqlitmus_version),
        header: markup! {
            p.kicker {
                "sqlitmus durability, "
                (clean(&run.head.started_utc).get(..10).unwrap_or("date unknown"))
            }
            h1 { "What do commits survive?" }
            div.answer { @for sentence in sentences(run, table) { p { (sentence) } } }
        },
        main: markup! {
            @for filesystem in &run.plan.filesystems { (section(run, table, filesystem)) }
            section { h2 { "How to read it" } @for sentence in HOW_TO_READ { p { (sentence) } } }
            (environment(run))
        },
        footer: markup! {
            p { "Made by sqlitmus " (clean(&run.head.sqlitmus_version)) " from run "
                code { (clean(&run.head.id)) } "." }
        },
    }
    .render()
}

fn section(run: &DurabilityRun, table: &Table<'_>, filesystem: &str) -> Markup {
    markup! {
        section {
            h2 { (clean(filesystem)) }
            p.conditions { (filesystem_line(run, filesystem)) }
            div.scroll role="region" tabindex="0" aria-label={ "Durability on " (clean(filesystem)) } {
                table.numbers {
                    thead { tr {
                        @for (index, heading) in HEADINGS.iter().enumerate() {
                            @if TEXT.contains(&index) { th scope="col" class="text" { (heading) } }
                            @else { th scope="col" { (heading) } }
                        }
                    } }
                    tbody {
                        @for row in table.rows.iter().filter(|row| row.filesystem == filesystem) {
                            (line(&Cells::of(row)))
                        }
                    }
                }
            }
        }
    }
}

fn line(cells: &Cells) -> Markup {
    let class = match cells.standing {
        Standing::Good => "good",
        Standing::Bad => "bad",
        Standing::Unsure => "unsure",
    };
    markup! {
        tr {
            th scope="row" {
                (cells.configuration)
                @for note in &cells.notes { small { (note) } }
            }
            @for (index, cell) in cells.all().into_iter().enumerate().skip(1) {
                @if index == 2 { td.text { span class={ "verdict " (class) } { (cell) } } }
                @else if TEXT.contains(&index) { td.text { (cell) } }
                @else { td { (cell) } }
            }
        }
    }
}

fn environment(run: &DurabilityRun) -> Markup {
    markup! {
        section {
            details {
                summary { "The machine" }
                dl { @for (name, value) in &run.environment { dt { (clean(name)) } dd { (clean(value)) } } }
            }
        }
    }
}
