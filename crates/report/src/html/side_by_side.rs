//! The page of several runs: for every chart the machines beside one another, in times relative to each
//! machine's own reference; on which machines each published sentence holds; and what differs between them.

use maud::{Markup, html as markup};

use sqlitmus_core::claims::{ClaimResult, Judgement};
use sqlitmus_core::environment::is_about_machine;
use sqlitmus_core::measurements::ArmStatus;
use sqlitmus_core::suite::ChartKind;
use sqlitmus_core::units::{format_bytes, format_ratio};

use crate::figures::{DASH, microseconds, plus_minus};
use crate::side_by_side::{Analysed, Chart, Row, SideBySide, ratio};
use crate::summary::{judgement, named, published_of, trouble};
use crate::svg::{
    Bar, Bars, BarsBody, BarsRow, Data, Mark, RatioScale, SERIES_COLORS, Shape, datum,
};
use crate::text::clean;

use super::page::{Figures, Page};
use super::{rates, survival};

/// Renders several runs side by side as one self-contained HTML page.
#[must_use]
pub fn html_side_by_side(runs: &[Analysed<'_>]) -> String {
    let all = SideBySide::of(runs);
    let newest = runs
        .iter()
        .map(|one| clean(&one.run.head.sqlitmus_version))
        .max();
    Page {
        title: all.question.clone(),
        version: newest.unwrap_or_default(),
        header: header(&all),
        main: markup! {
            (choices(&all))
            (rates::sections(&all))
            @for (index, chart) in all.charts.iter().enumerate().take(1) { (section(&all, chart, index)) }
            (claims(&all))
            @for (index, chart) in all.charts.iter().enumerate().skip(1) { (section(&all, chart, index)) }
            (survival::section(&all))
            (places(&all))
            (differences(&all))
            (conclusions(&all))
            (cases(&all))
            (runs_section(&all))
        },
        footer: markup! {
            p { "Made by sqlitmus from " (runs.len()) " runs." }
        },
    }
    .render()
}

/// A value that a tag may have: letters, digits and hyphens.
fn slug(text: &str) -> String {
    let letters = text.chars().map(|letter| {
        if letter.is_ascii_alphanumeric() {
            letter
        } else {
            '-'
        }
    });
    letters.collect()
}

/// The colour of a run.
pub(super) fn swatch(index: usize) -> Markup {
    markup! {
        svg.chart width="11" height="11" aria-hidden="true" {
            rect class={ "p" (index % SERIES_COLORS) } width="11" height="11" rx="2" {}
        }
    }
}

fn header(all: &SideBySide<'_>) -> Markup {
    markup! {
        p.kicker { "sqlitmus, " (all.runs.len()) " runs side by side" }
        h1 { (all.question) }
        @for warning in &all.warnings { p.warning role="note" { (warning) } }
        @if let Some(agreement) = all.agreement() { p.lead { (agreement) } }
        @if let Some(machine) = &all.machine { p { (machine) } }
        ul.facts aria-label="Runs" {
            @for (index, name) in all.names.iter().enumerate() { li { (swatch(index)) " " (name) } }
        }
    }
}

/// What to show; the script makes it work, and without it there is nothing to choose.
fn choices(all: &SideBySide<'_>) -> Markup {
    let mut engines: Vec<String> = Vec::new();
    let mut workloads: Vec<String> = Vec::new();
    for row in all.charts.iter().flat_map(|chart| &chart.rows) {
        for (list, value) in [
            (&mut engines, row.engine.clone()),
            (&mut workloads, row.workload.to_owned()),
        ] {
            if !value.is_empty() && !list.contains(&value) {
                list.push(value);
            }
        }
    }
    let group = |heading: &str, name: &str, values: &[(String, Markup)]| {
        markup! {
            // Of one there is nothing to choose.
            @if values.len() > 1 {
                fieldset {
                    legend { (heading) }
                    @for (value, words) in values {
                        label { input type="checkbox" name=(name) value=(value) checked; " " (words) }
                    }
                }
            }
        }
    };
    let machines: Vec<(String, Markup)> = all
        .names
        .iter()
        .enumerate()
        .map(|(index, name)| {
            (
                (index + 1).to_string(),
                markup! { (swatch(index)) " " (name) },
            )
        })
        .collect();
    let plain = |values: &[String]| -> Vec<(String, Markup)> {
        values
            .iter()
            .map(|value| (slug(value), markup! { (value) }))
            .collect()
    };
    markup! {
        div.choose id="choices" hidden role="group" aria-label="What to show" {
            (group(if all.machine.is_some() { "Places" } else { "Machines" }, "run", &machines))
            (group("Engines", "engine", &plain(&engines)))
            (group("Workloads", "workload", &plain(&workloads)))
        }
    }
}

fn section(all: &SideBySide<'_>, chart: &Chart<'_>, index: usize) -> Markup {
    let id = format!("chart-{}", index + 1);
    let heading = format!("heading-{}", index + 1);
    let picture = picture(all, chart, &id);
    let words = match (chart.shows, chart.versus.is_empty()) {
        (ChartKind::Space, false) => format!(
            "Space relative to {} of the same machine: shorter is better.",
            chart.versus
        ),
        (ChartKind::Space, true) => "Space: shorter is better.".to_owned(),
        (ChartKind::Time, false) => format!(
            "Times relative to {} of the same machine: shorter is better.",
            chart.versus
        ),
        (ChartKind::Time, true) => "Times: shorter is better.".to_owned(),
    };
    let table = format!("{id}-data");
    let rows = all
        .charts
        .iter()
        .map(|chart| chart.rows.len() * all.runs.len())
        .sum();
    let data = &picture.data;
    markup! {
        section aria-labelledby=(heading) {
            h2 id=(heading) { (chart.title) }
            p.conditions { (words) }
            (Figures::for_rows(rows).figure(&picture, &legend(), &table))
            details.data {
                summary { "Numbers of this chart" }
                div.scroll role="region" tabindex="0" aria-label={ "Numbers of " (chart.title) } {
                    table.plain.sortable id=(table) {
                        thead { tr { @for column in &data.columns { th scope="col" { (column) } } } }
                        tbody { @for row in &data.rows { tr { @for cell in row { td { (cell) } } } } }
                    }
                }
            }
        }
    }
}

fn legend() -> Markup {
    markup! {
        span.legend {
            svg.chart width="18" height="12" aria-hidden="true" {
                rect.interval.good x="2" width="14" y="0" height="12" {}
                circle.good cx="9" cy="6" r="3.5" {}
            }
            "times as good, with its 95% interval"
        }
        span.legend {
            svg.chart width="18" height="12" aria-hidden="true" { path.published d="M9 0.5 L14.5 6 L9 11.5 L3.5 6 Z" {} }
            "published"
        }
    }
}

/// The bars of a chart: every case a heading, every run a bar beneath it.
pub(crate) fn picture(all: &SideBySide<'_>, chart: &Chart<'_>, id: &str) -> Bars {
    let relative = !chart.versus.is_empty();
    let sizes: Vec<f64> = chart
        .rows
        .iter()
        .flat_map(|row| (0..all.runs.len()).filter_map(|run| size(all, chart, row, run)))
        .collect();
    let longest = sizes.into_iter().fold(1e-9, f64::max);
    let mut rows = Vec::new();
    for row in &chart.rows {
        let tags = || {
            vec![
                ("engine", slug(&row.engine)),
                ("workload", slug(row.workload)),
            ]
        };
        rows.push(BarsRow {
            label: row.label.clone(),
            strong: row.engine == "sqlite",
            hover: String::new(),
            tags: tags(),
            body: BarsBody::Heading,
        });
        for run in 0..all.runs.len() {
            let mut tags = tags();
            tags.push(("run", (run + 1).to_string()));
            let body = body(all, chart, row, run, longest);
            rows.push(BarsRow {
                label: all.names[run].clone(),
                strong: false,
                hover: format!("{}: {}", row.label, words(all, chart, row, run)),
                tags,
                body,
            });
        }
    }
    Bars {
        id: id.to_owned(),
        title: chart.title.clone(),
        bars: match (chart.shows, relative) {
            (ChartKind::Space, true) => "relative space (shorter is better)".to_owned(),
            (ChartKind::Space, false) => "space on disk (shorter is better)".to_owned(),
            (ChartKind::Time, true) => "relative time (shorter is better)".to_owned(),
            (ChartKind::Time, false) => "µs per blob (shorter is better)".to_owned(),
        },
        scales: relative
            .then(|| RatioScale {
                heading: format!(
                    "times as {} as {}",
                    if chart.shows == ChartKind::Space {
                        "small"
                    } else {
                        "fast"
                    },
                    chart.versus
                ),
                noise_floor: None,
            })
            .into_iter()
            .collect(),
        rows,
        data: data(all, chart),
    }
}

/// Length of a bar: relative to the run's own reference, or in nanoseconds or bytes where there is none.
fn size(all: &SideBySide<'_>, chart: &Chart<'_>, row: &Row<'_>, run: usize) -> Option<f64> {
    let found = row.of_runs[run]?;
    let size = if chart.versus.is_empty() {
        absolute(chart, row, run)
    } else {
        let ratio = ratio(&all.runs[run], chart.of_runs[run]?, found)?;
        (ratio.ratio > 0.0).then(|| 1.0 / ratio.ratio)
    };
    size.filter(|size| size.is_finite() && *size >= 0.0)
}

fn absolute(chart: &Chart<'_>, row: &Row<'_>, run: usize) -> Option<f64> {
    let found = row.of_runs[run]?;
    match chart.shows {
        ChartKind::Time => found.arm.operation_ns,
        ChartKind::Space => found
            .footprint
            .map(|footprint| footprint.allocated_bytes as f64),
    }
}

fn absolute_words(chart: &Chart<'_>, row: &Row<'_>, run: usize) -> String {
    let value = absolute(chart, row, run);
    match chart.shows {
        ChartKind::Time => format!("{} µs", microseconds(value)),
        ChartKind::Space => {
            value.map_or_else(|| DASH.to_owned(), |bytes| format_bytes(bytes as u64))
        }
    }
}

/// Why a run has no figures for a row.
fn missing(chart: &Chart<'_>, row: &Row<'_>, run: usize) -> Option<String> {
    let Some(found) = row.of_runs[run] else {
        return Some("not in this run".to_owned());
    };
    match chart.shows {
        ChartKind::Space if found.footprint.is_none() => Some("not counted".to_owned()),
        ChartKind::Space => None,
        ChartKind::Time => trouble(&found.arm.status),
    }
}

fn body(
    all: &SideBySide<'_>,
    chart: &Chart<'_>,
    row: &Row<'_>,
    run: usize,
    longest: f64,
) -> BarsBody {
    if let Some(text) = missing(chart, row, run) {
        let status = row.of_runs[run].map(|found| &found.arm.status);
        return BarsBody::Trouble {
            text,
            failed: matches!(status, Some(ArmStatus::Failed(_))),
        };
    }
    let size = size(all, chart, row, run);
    let figure = match size {
        Some(size) if !chart.versus.is_empty() => format_ratio(size),
        _ => absolute_words(chart, row, run),
    };
    BarsBody::Figures {
        bar: Bar {
            solid: size.unwrap_or(0.0) / longest,
            light: 0.0,
            figure,
            series: Some(run),
        },
        marks: if chart.versus.is_empty() {
            Vec::new()
        } else {
            vec![marks(all, chart, row, run)]
        },
    }
}

fn marks(all: &SideBySide<'_>, chart: &Chart<'_>, row: &Row<'_>, run: usize) -> Vec<Mark> {
    let (Some(own), Some(found)) = (chart.of_runs[run], row.of_runs[run]) else {
        return Vec::new();
    };
    let published = published_of(&own.chart, &found.arm.name).into_iter();
    let published = published
        .filter(|(ratio, _)| ratio.is_finite() && *ratio > 0.0)
        .map(|(ratio, _)| Mark {
            ratio,
            interval: None,
            shape: Shape::Published,
            class: "",
            text: String::new(),
        });
    let itself = own
        .chart
        .versus
        .first()
        .is_some_and(|versus| versus.arm == found.arm.name);
    let ours = ratio(&all.runs[run], own, found).map(|ratio| Mark {
        ratio: ratio.ratio,
        interval: ratio.interval,
        shape: if itself { Shape::Itself } else { Shape::Ours },
        class: ratio.class,
        text: ratio.text,
    });
    published.chain(ours).collect()
}

fn words(all: &SideBySide<'_>, chart: &Chart<'_>, row: &Row<'_>, run: usize) -> String {
    if let Some(missing) = missing(chart, row, run) {
        return missing;
    }
    let own = absolute_words(chart, row, run);
    let compared = chart.of_runs[run]
        .zip(row.of_runs[run])
        .and_then(|(own, found)| ratio(&all.runs[run], own, found));
    match compared {
        Some(ratio) => format!("{own}, {} vs {}", ratio.text, chart.versus),
        None => own,
    }
}

fn data(all: &SideBySide<'_>, chart: &Chart<'_>) -> Data {
    let unit = match chart.shows {
        ChartKind::Time => "operation_ns",
        ChartKind::Space => "allocated_bytes",
    };
    let mut rows = Vec::new();
    for row in &chart.rows {
        for (run, name) in all.names.iter().enumerate() {
            let compared = chart.of_runs[run]
                .zip(row.of_runs[run])
                .and_then(|(own, found)| ratio(&all.runs[run], own, found));
            let ends = compared.as_ref().and_then(|ratio| ratio.interval);
            rows.push(vec![
                row.label.clone(),
                name.clone(),
                datum(absolute(chart, row, run)),
                datum(size(all, chart, row, run).filter(|_| !chart.versus.is_empty())),
                datum(compared.map(|ratio| ratio.ratio)),
                datum(ends.map(|ends| ends.low)),
                datum(ends.map(|ends| ends.high)),
            ]);
        }
    }
    let columns = [
        "case",
        "machine",
        unit,
        "relative",
        "times_as_good",
        "low",
        "high",
    ];
    Data {
        columns: columns.map(str::to_owned).into(),
        rows,
    }
}

/// On which machines each published sentence holds.
fn claims(all: &SideBySide<'_>) -> Markup {
    if all.claims.is_empty() {
        return markup! {};
    }
    let cell = |result: &Option<&ClaimResult>| {
        let Some(result) = result else {
            return markup! { span.none { "not in this run" } };
        };
        let (verdict, reason) = judgement(&result.judgement);
        let class = match result.judgement {
            Judgement::Holds => "good",
            Judgement::DoesNotHold => "bad",
            Judgement::NotSure => "unsure",
            Judgement::NotMeasured(_) => "none",
        };
        markup! {
            span class={ "verdict " (class) } { (verdict) }
            small {
                @if let Some(ratio) = result.ratio {
                    (format_ratio(ratio)) @if result.interval.is_some() { " " (plus_minus(result.interval)) }
                }
                @if let Some(reason) = reason { (reason) }
            }
        }
    };
    markup! {
        section aria-labelledby="heading-claims" {
            h2 id="heading-claims" { "Where each published sentence holds" }
            p.conditions { "A sentence holds only if the whole 95% interval is where it puts the ratio." }
            div.scroll role="region" tabindex="0" aria-label="Published sentences by machine" {
                table id="claims" {
                    thead { tr {
                        th scope="col" class="text" { "Sentence" }
                        @for (index, name) in all.names.iter().enumerate() {
                            th scope="col" class="text" data-tags={ "run=" (index + 1) } { (swatch(index)) " " (name) }
                        }
                    } }
                    tbody { @for claim in &all.claims { tr {
                        th scope="row" { (claim.sentence) }
                        @for (index, result) in claim.of_runs.iter().enumerate() {
                            td.text data-tags={ "run=" (index + 1) } { (cell(result)) }
                        }
                    } } }
                }
            }
        }
    }
}

/// Where each run was measured, if all are from one machine.
fn places(all: &SideBySide<'_>) -> Markup {
    if all.places.is_empty() {
        return markup! {};
    }
    markup! {
        section aria-labelledby="heading-places" {
            h2 id="heading-places" { "The places" }
            div.scroll role="region" tabindex="0" aria-label="The places" {
                table id="places" {
                    thead { tr {
                        th scope="col" class="text" { "Place" }
                        th scope="col" class="text" { "Filesystem" }
                        th scope="col" class="text" { "Device" }
                        th scope="col" class="text" { "Mount options" }
                    } }
                    tbody { @for (index, (name, place)) in all.names.iter().zip(&all.places).enumerate() { tr {
                        th scope="row" { (swatch(index)) " " (name) }
                        td.text { (place.filesystem) }
                        td.text { (place.device) }
                        td.text { (place.mount_options) }
                    } } }
                }
            }
        }
    }
}

/// What may explain why machines differ.
fn differences(all: &SideBySide<'_>) -> Markup {
    markup! {
        section aria-labelledby="heading-differences" {
            h2 id="heading-differences" { "What differs between the " @if all.machine.is_some() { "places" } @else { "machines" } }
            p.conditions { "Facts that all runs share are left out." }
            div.scroll role="region" tabindex="0" aria-label="Differences between the machines" {
                table id="differences" {
                    thead { tr {
                        th scope="col" class="text" { "Fact" }
                        @for (index, name) in all.names.iter().enumerate() {
                            th scope="col" class="text" data-tags={ "run=" (index + 1) } { (swatch(index)) " " (name) }
                        }
                    } }
                    tbody { @for fact in &all.differences { tr {
                        th scope="row" { (fact.name) }
                        @for (index, value) in fact.values.iter().enumerate() {
                            td.text data-tags={ "run=" (index + 1) } { (value.as_deref().map_or("not said", |value| if value.is_empty() { "empty" } else { value })) }
                        }
                    } } }
                }
            }
        }
    }
}

fn conclusions(all: &SideBySide<'_>) -> Markup {
    if all
        .runs
        .iter()
        .all(|one| one.analysis.conclusion.is_empty())
    {
        return markup! {};
    }
    markup! {
        section aria-labelledby="heading-short" {
            h2 id="heading-short" { "Each " @if all.machine.is_some() { "place" } @else { "machine" } " in short" }
            @for (index, (name, one)) in all.names.iter().zip(&all.runs).enumerate() {
                div data-tags={ "run=" (index + 1) } {
                    h3 { (swatch(index)) " " (name) }
                    @for sentence in &one.analysis.conclusion { p { (clean(sentence)) } }
                }
            }
        }
    }
}

/// Every case with its time on every machine.
fn cases(all: &SideBySide<'_>) -> Markup {
    if !all
        .charts
        .iter()
        .any(|chart| chart.shows == ChartKind::Time)
    {
        return markup! {};
    }
    markup! {
        section aria-labelledby="heading-cases" {
            h2 id="heading-cases" { "All cases" }
            p.conditions { "Microseconds per blob on each machine." }
            div.scroll role="region" tabindex="0" aria-label="All cases" {
                table.numbers.sortable.filterable id="cases" {
                    thead { tr {
                        th scope="col" class="text" { "Case" }
                        th scope="col" class="text" { "Chart" }
                        th scope="col" class="text" { "Engine" }
                        @for (index, name) in all.names.iter().enumerate() {
                            th scope="col" data-tags={ "run=" (index + 1) } { (name) }
                        }
                    } }
                    tbody {
                        @for chart in all.charts.iter().filter(|chart| chart.shows == ChartKind::Time) {
                            @for row in &chart.rows {
                                tr {
                                    th scope="row" { (row.label) }
                                    td.text { (chart.title) }
                                    td.text { (row.engine) }
                                    @for run in 0..all.runs.len() {
                                        td data-tags={ "run=" (run + 1) } data-v=(datum(absolute(chart, row, run))) {
                                            @if let Some(why) = missing(chart, row, run) {
                                                span.none title=(why) { (DASH) }
                                            } @else { (microseconds(absolute(chart, row, run))) }
                                        }
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The runs themselves.
fn runs_section(all: &SideBySide<'_>) -> Markup {
    markup! {
        section aria-labelledby="heading-runs" {
            h2 id="heading-runs" { "The runs" }
            @for (name, one) in all.names.iter().zip(&all.runs) {
                details {
                    summary { (name) }
                    dl {
                        dt { "run" } dd { (named(&one.run.head.id, "without an identity")) }
                        dt { "command" } dd { code { (named(&one.run.head.command_line, "unknown")) } }
                        @for (name, value) in one.run.environment.iter().filter(|(name, _)| is_about_machine(name)) { dt { (clean(name)) } dd { (named(value, "empty")) } }
                    }
                }
            }
        }
    }
}
