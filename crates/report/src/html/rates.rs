//! Rates of several runs on the page: for every arm a bar for each run, each arm to a scale of its own, since
//! arms differ by orders of magnitude; and the table with count, seconds and rate.

use maud::{Markup, html as markup};

use sqlitmus_core::units::format_count;

use crate::figures::DASH;
use crate::oltp::{Rate, first_word, heading as heading_of, per_second, seconds};
use crate::side_by_side::SideBySide;
use crate::side_by_side::rates::{RateGroup, RateOfRuns};
use crate::svg::{Bar, Bars, BarsBody, BarsRow, Data, datum};

use super::page::Figures;

/// A section for each group.
pub(super) fn sections(all: &SideBySide<'_>) -> Markup {
    markup! {
        @for (index, group) in all.rates.iter().enumerate() { (section(all, group, index)) }
    }
}

fn section(all: &SideBySide<'_>, group: &RateGroup, index: usize) -> Markup {
    let id = format!("rates-{}", index + 1);
    let heading = format!("heading-{id}");
    let table = format!("{id}-data");
    let picture = picture(all, group, &id);
    let figures = Figures::for_rows(group.rows.len() * all.runs.len());
    markup! {
        section aria-labelledby=(heading) {
            h2 id=(heading) { (heading_of(&group.unit, &group.title)) }
            p.conditions { (first_word(&group.unit)) " a second: longer is better. Each arm has a scale of its own." }
            (figures.figure(&picture, &markup! {}, &table))
            div.scroll role="region" tabindex="0" aria-label={ "Rates of " (group.title) } {
                table.plain.figures id=(table) {
                    thead { tr {
                        th scope="col" { "Arm" }
                        th scope="col" { "survives" }
                        @for (run, name) in all.names.iter().enumerate() {
                            th scope="col" data-tags={ "run=" (run + 1) } { (name) }
                        }
                    } }
                    tbody { @for row in &group.rows { tr {
                        th scope="row" { (row.label) }
                        td { (row.survives) }
                        @for (run, found) in row.of_runs.iter().enumerate() {
                            td data-tags={ "run=" (run + 1) } { (cell(found.as_ref())) }
                        }
                    } } }
                }
            }
            @for sentence in &group.published { p.note { (sentence) } }
        }
    }
}

fn cell(found: Option<&Result<Rate, String>>) -> Markup {
    markup! {
        @match found {
            None => (DASH),
            Some(Err(reason)) => (reason),
            Some(Ok(rate)) => {
                (per_second(rate)) "/s" br;
                small { (format_count(rate.count)) " in " (seconds(rate.elapsed_ns)) }
            }
        }
    }
}

/// The bars: every arm a heading, every run a bar beneath it.
pub(crate) fn picture(all: &SideBySide<'_>, group: &RateGroup, id: &str) -> Bars {
    let mut rows = Vec::new();
    for row in &group.rows {
        rows.push(BarsRow {
            label: row.label.clone(),
            strong: false,
            hover: String::new(),
            tags: Vec::new(),
            body: BarsBody::Heading,
        });
        for (run, name) in all.names.iter().enumerate() {
            rows.push(BarsRow {
                label: name.clone(),
                strong: false,
                hover: words(row, run),
                tags: vec![("run", (run + 1).to_string())],
                body: body(row, run),
            });
        }
    }
    Bars {
        id: id.to_owned(),
        title: group.title.clone(),
        bars: format!("{} a second (longer is better)", first_word(&group.unit)),
        scales: Vec::new(),
        rows,
        data: data(all, group),
    }
}

fn body(row: &RateOfRuns, run: usize) -> BarsBody {
    match &row.of_runs[run] {
        None => BarsBody::Trouble {
            text: "not in this run".to_owned(),
            failed: false,
        },
        Some(Err(reason)) => BarsBody::Trouble {
            text: reason.clone(),
            failed: true,
        },
        Some(Ok(rate)) => {
            let share = rate.per_second() / row.largest().max(f64::MIN_POSITIVE);
            BarsBody::Figures {
                bar: Bar {
                    solid: if share.is_finite() { share } else { 0.0 },
                    light: 0.0,
                    figure: per_second(rate),
                    series: Some(run),
                },
                marks: Vec::new(),
            }
        }
    }
}

fn words(row: &RateOfRuns, run: usize) -> String {
    match row.rate(run) {
        None => row.label.clone(),
        Some(rate) => format!(
            "{}: {} in {} = {}/s",
            row.label,
            format_count(rate.count),
            seconds(rate.elapsed_ns),
            per_second(rate)
        ),
    }
}

fn data(all: &SideBySide<'_>, group: &RateGroup) -> Data {
    let mut rows = Vec::new();
    for row in &group.rows {
        for (run, name) in all.names.iter().enumerate() {
            let rate = row.rate(run);
            rows.push(vec![
                row.label.clone(),
                name.clone(),
                rate.map_or_else(String::new, |rate| rate.count.to_string()),
                rate.map_or_else(String::new, |rate| rate.elapsed_ns.to_string()),
                datum(rate.map(Rate::per_second)),
            ]);
        }
    }
    let columns = ["arm", "run", "count", "elapsed_ns", "per_second"];
    Data {
        columns: columns.map(str::to_owned).into(),
        rows,
    }
}
