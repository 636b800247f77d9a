//! The truth table as a page that needs nothing else.

use maud::{DOCTYPE, Markup, PreEscaped, html as markup};
use sqlitmus_core::durability::{DurabilityRun, Table};

use super::words::{Cells, HEADINGS, HOW_TO_READ, Standing, filesystem_line, sentences};
use crate::html::{STYLE, in_lines};
use crate::text::clean;

/// Columns that hold words.
const TEXT: [usize; 5] = [0, 1, 2, 5, 7];

/// Renders the table as one self-contained HTML page.
#[must_use]
pub fn html(run: &DurabilityRun, table: &Table<'_>) -> String {
    let page = markup! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                // A page that is passed on asks nobody for anything.
                meta http-equiv="Content-Security-Policy"
                    content="default-src 'none'; style-src 'unsafe-inline'; img-src data:";
                meta name="generator" content={ "sqlitmus " (clean(&run.head.sqlitmus_version)) };
                link rel="icon" href="data:,";
                title { "What do commits survive? - sqlitmus" }
                style { (PreEscaped(STYLE)) }
            }
            body {
                header {
                    p.kicker {
                        "sqlitmus durability, "
                        (clean(&run.head.started_utc).get(..10).unwrap_or("date unknown"))
                    }
                    h1 { "What do commits survive?" }
                    div.answer { @for sentence in sentences(run, table) { p { (sentence) } } }
                }
                main {
                    @for filesystem in &run.plan.filesystems { (section(run, table, filesystem)) }
                    section { h2 { "How to read it" } @for sentence in HOW_TO_READ { p { (sentence) } } }
                    (environment(run))
                }
                footer {
                    p { "Made by sqlitmus " (clean(&run.head.sqlitmus_version)) " from run "
                        code { (clean(&run.head.id)) } "." }
                }
            }
        }
    };
    in_lines(&page.into_string())
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
