//! A section for each chart: its picture, and the same figures as a table.

use maud::{Markup, html as markup};

use sqlitmus_core::analysis::{Analysis, ChartAnalysis, ChartRow, Compared};
use sqlitmus_core::run::{Footprint, Run};
use sqlitmus_core::suite::{ChartKind, Versus};
use sqlitmus_core::units::{format_bytes, format_count, format_ratio};
use sqlitmus_core::verdict::Verdict;

use crate::figures::{
    DASH, bare_ratio, class_of, judged, legend_of, mark, megabytes_per_second, microseconds,
    percent, quantile, range,
};
use crate::space::{overhead, times_as_small};
use crate::summary::{chart_conditions, label, named, published_of, trouble};
use crate::text::{clean, fit};

use crate::svg::{Bar, Bars, BarsBody, BarsRow, Data, Mark, RatioScale, Shape, datum};

use super::page::Figures;

/// Longer headings of columns are cut.
const MOST_HEADING_LETTERS: usize = 42;

/// The picture of a chart as the suite has it, with its numbers; `id` is its identity in the page.
pub(crate) fn picture(run: &Run, chart: &ChartAnalysis, id: &str) -> Bars {
    let content = Content { run, chart };
    Bars {
        id: id.to_owned(),
        title: title(chart),
        bars: content.bars_heading().to_owned(),
        scales: content.scales(),
        rows: chart
            .rows
            .iter()
            .map(|row| content.picture_row(row))
            .collect(),
        data: content.data(),
    }
}

/// What a chart is called.
pub(crate) fn title(chart: &ChartAnalysis) -> String {
    named(&chart.chart.title, "Chart without a title")
}

/// The figure of a chart with its legend.
pub(super) fn figure(figures: Figures, run: &Run, chart: &ChartAnalysis, id: &str) -> Markup {
    let content = Content { run, chart };
    let legend = content.legend();
    let picture = picture(run, chart, id);
    figures.figure(&picture, &legend, &format!("{id}-data"))
}

/// The figures of a chart as a table.
pub(super) fn table(run: &Run, chart: &ChartAnalysis, id: &str) -> Markup {
    let content = Content { run, chart };
    let title = title(chart);
    markup! {
        div.scroll role="region" tabindex="0" aria-label={ (title) ", figures" } {
            @match chart.chart.shows {
                ChartKind::Time => (content.time_table(&title, id)),
                ChartKind::Space => (content.space_table(&title, id)),
            }
        }
    }
}

/// What stands beneath the heading of a chart.
pub(super) fn conditions(run: &Run, analysis: &Analysis, chart: &ChartAnalysis) -> String {
    let answers = clean(&chart.chart.answers);
    let conditions = match chart.chart.shows {
        ChartKind::Time => chart_conditions(run, analysis, &chart.chart).join(", "),
        ChartKind::Space => {
            "blocks allocated to files and directories, right after the stores were filled"
                .to_owned()
        }
    };
    if answers.is_empty() || answers.eq_ignore_ascii_case(&title(chart)) {
        conditions
    } else {
        format!("Answers to {answers} of what was published. {conditions}")
    }
}

struct Content<'a> {
    run: &'a Run,
    chart: &'a ChartAnalysis,
}

impl Content<'_> {
    fn settles(&self) -> bool {
        self.chart
            .rows
            .iter()
            .any(|row| row.arm.settled_operation_ns.is_some())
    }

    fn shows_space(&self) -> bool {
        self.chart.chart.shows == ChartKind::Space
    }

    fn bars_heading(&self) -> &'static str {
        match self.chart.chart.shows {
            ChartKind::Time => "µs per blob (shorter is better)",
            ChartKind::Space => "space on disk (shorter is better)",
        }
    }

    fn scales(&self) -> Vec<RatioScale> {
        let noise_floor = self.chart.noise_floor.filter(|_| !self.shows_space());
        let versus = self.chart.chart.versus.iter();
        versus
            .map(|versus| RatioScale {
                heading: heading(versus),
                noise_floor: noise_floor.filter(|floor| floor.is_finite() && *floor > 0.0),
            })
            .collect()
    }

    /// The figures of a row in words: `5.6 us, 1.68 ±2% vs files (faster)`.
    fn hover(&self, row: &ChartRow) -> String {
        let mut words = Vec::new();
        if self.shows_space() {
            match row.footprint {
                None => words.push("not counted".to_owned()),
                Some(footprint) => words.push(format_bytes(footprint.allocated_bytes)),
            }
        } else if let Some(trouble) = trouble(&row.arm.status) {
            words.push(trouble);
        } else {
            words.push(format!("{} µs", microseconds(row.arm.operation_ns)));
            if row.arm.settled_operation_ns.is_some() {
                let settled = microseconds(row.arm.settled_operation_ns);
                words.push(format!("{settled} µs including settling"));
            }
        }
        for (index, versus) in self.chart.chart.versus.iter().enumerate() {
            let against = named(&versus.label, "an arm without a name");
            if let Some(Some(compared)) = row.versus.get(index) {
                let ratio = judged(&compared.estimate, compared.verdict);
                words.push(format!("{ratio} vs {against} ({})", compared.verdict));
            }
        }
        for (ratio, machine) in published_of(&self.chart.chart, &row.arm.name) {
            let on = if machine.is_empty() { "" } else { " on " };
            words.push(format!("published {}{on}{machine}", bare_ratio(ratio)));
        }
        words.join(", ")
    }

    fn picture_row(&self, row: &ChartRow) -> BarsRow {
        let planned = self.run.plan.arm(&row.arm.name);
        BarsRow {
            label: label(&row.arm),
            strong: planned.is_some_and(|(_, arm)| arm.case.engine == "sqlite"),
            hover: self.hover(row),
            tags: Vec::new(),
            body: if self.shows_space() {
                self.space_body(row)
            } else {
                self.time_body(row)
            },
        }
    }

    fn time_body(&self, row: &ChartRow) -> BarsBody {
        if let Some(text) = trouble(&row.arm.status) {
            let failed = text.starts_with("failed");
            return BarsBody::Trouble { text, failed };
        }
        let arms = self.chart.rows.iter().map(|row| &row.arm);
        let times = arms
            .flat_map(|arm| [arm.operation_ns, arm.settled_operation_ns])
            .flatten();
        let longest_ns = times.filter(|ns| ns.is_finite()).fold(1e-9, f64::max);
        let solid = row.arm.operation_ns.unwrap_or(0.0) / longest_ns;
        let settled = row
            .arm
            .settled_operation_ns
            .map_or(0.0, |ns| ns / longest_ns);
        let versus = self.chart.chart.versus.iter().enumerate();
        BarsBody::Figures {
            bar: Bar {
                solid,
                light: (settled - solid).max(0.0),
                figure: microseconds(row.arm.operation_ns),
                series: None,
            },
            marks: versus
                .map(|(index, versus)| self.time_marks(row, index, versus))
                .collect(),
        }
    }

    fn time_marks(&self, row: &ChartRow, index: usize, versus: &Versus) -> Vec<Mark> {
        if versus.arm == row.arm.name {
            return vec![itself()];
        }
        let of = |compared: Option<&Option<Compared>>, shape: Shape| {
            let compared = compared?.as_ref()?;
            Some(Mark {
                ratio: compared.estimate.ratio,
                interval: compared.estimate.interval,
                class: class_of(compared.verdict),
                text: match shape {
                    Shape::Ours => judged(&compared.estimate, compared.verdict),
                    _ => String::new(),
                },
                shape,
            })
        };
        let settled = of(row.versus_settled.get(index), Shape::Settled);
        let ours = of(row.versus.get(index), Shape::Ours);
        self.published_marks(row, index)
            .into_iter()
            .chain(settled)
            .chain(ours)
            .collect()
    }

    /// Published ratios are against files as the article read them: the first scale's.
    fn published_marks(&self, row: &ChartRow, index: usize) -> Vec<Mark> {
        let figures = published_of(&self.chart.chart, &row.arm.name).into_iter();
        let figures = figures.filter(|(ratio, _)| index == 0 && ratio.is_finite() && *ratio > 0.0);
        figures
            .map(|(ratio, _)| Mark {
                ratio,
                interval: None,
                shape: Shape::Published,
                class: "",
                text: String::new(),
            })
            .collect()
    }

    fn space_body(&self, row: &ChartRow) -> BarsBody {
        let Some(footprint) = row.footprint else {
            let text = trouble(&row.arm.status).unwrap_or_else(|| "not counted".to_owned());
            return BarsBody::Trouble {
                text,
                failed: false,
            };
        };
        let footprints = self.chart.rows.iter().filter_map(|row| row.footprint);
        let largest = footprints
            .map(|footprint| footprint.allocated_bytes)
            .max()
            .unwrap_or(1);
        let versus = self.chart.chart.versus.iter().enumerate();
        let marks = versus.map(|(index, versus)| {
            if versus.arm == row.arm.name {
                return vec![itself()];
            }
            let ours = times_as_small(self.run, &versus.arm, &row.arm.name).map(|ratio| Mark {
                ratio,
                interval: None,
                shape: Shape::Ours,
                class: "none",
                text: format_ratio(ratio),
            });
            self.published_marks(row, index)
                .into_iter()
                .chain(ours)
                .collect()
        });
        BarsBody::Figures {
            bar: Bar {
                solid: footprint.allocated_bytes as f64 / largest.max(1) as f64,
                light: 0.0,
                figure: format_bytes(footprint.allocated_bytes),
                series: None,
            },
            marks: marks.collect(),
        }
    }

    fn legend(&self) -> Markup {
        let rows = || self.chart.rows.iter();
        let compared: Vec<&Compared> = rows().flat_map(|row| row.versus.iter().flatten()).collect();
        let intervals = compared
            .iter()
            .any(|compared| compared.estimate.interval.is_some());
        let published = !self.chart.chart.published.is_empty();
        let band = self
            .scales()
            .iter()
            .any(|scale| scale.noise_floor.is_some());
        let interval = markup! {
            rect.interval.good x="2" width="14" y="0" height="12" {}
            circle.good cx="9" cy="6" r="3.5" {}
        };
        let settled = markup! { circle.good cx="9" cy="6" r="2.2" {} };
        let settling = markup! { rect.bar-light width="18" height="12" {} };
        let noise = markup! { rect.band width="18" height="12" {} };
        let diamond = markup! { path.published d="M9 0.5 L14.5 6 L9 11.5 L3.5 6 Z" {} };
        let pieces = [
            (intervals, interval, "ratio with its 95% interval"),
            (
                self.settles(),
                settling,
                "settling: what a commit leaves for later",
            ),
            (self.settles(), settled, "ratio including it"),
            (band, noise, "noise floor: no verdict inside"),
            (published, diamond, "published"),
        ];
        markup! {
            @if !self.chart.chart.versus.is_empty() {
                span.legend {
                    "vs: times as " @if self.shows_space() { "small" } @else { "fast" } " as"
                }
            }
            @for (shown, swatch, words) in pieces {
                @if shown {
                    span.legend {
                        svg.chart width="18" height="12" aria-hidden="true" { (swatch) }
                        (words)
                    }
                }
            }
            @for verdict in [Verdict::NotSureYet, Verdict::NoDifferenceWorthHaving] {
                @if compared.iter().any(|compared| compared.verdict == verdict) {
                    span.legend { (legend_of(verdict).unwrap_or_default()) }
                }
            }
        }
    }

    /// What the picture shows, in units of its columns.
    fn data(&self) -> Data {
        let versus = || self.chart.chart.versus.iter();
        let mut columns: Vec<String> = if self.shows_space() {
            ["arm", "allocated_bytes", "apparent_bytes", "content_bytes"]
                .map(str::to_owned)
                .into()
        } else {
            [
                "arm",
                "operation_ns",
                "settled_operation_ns",
                "latency_ns_p50",
                "latency_ns_p99",
            ]
            .map(str::to_owned)
            .into()
        };
        for versus in versus() {
            let name = clean(&versus.arm);
            columns.push(format!("times_as_good_as_{name}"));
            columns.push(format!("times_as_good_as_{name}_low"));
            columns.push(format!("times_as_good_as_{name}_high"));
        }
        let rows = self.chart.rows.iter().map(|row| {
            let mut cells = vec![label(&row.arm)];
            let latency = |share| datum(row.arm.latencies.quantile_ns(share).map(|ns| ns as f64));
            if self.shows_space() {
                let bytes = |of: fn(&Footprint) -> u64| {
                    datum(row.footprint.as_ref().map(|found| of(found) as f64))
                };
                cells.extend([
                    bytes(|found| found.allocated_bytes),
                    bytes(|found| found.apparent_bytes),
                    bytes(|found| found.content_bytes),
                ]);
            } else {
                cells.extend([
                    datum(row.arm.operation_ns),
                    datum(row.arm.settled_operation_ns),
                    latency(0.5),
                    latency(0.99),
                ]);
            }
            for (index, versus) in versus().enumerate() {
                let compared = row.versus.get(index).and_then(Option::as_ref);
                let ratio = if self.shows_space() {
                    times_as_small(self.run, &versus.arm, &row.arm.name)
                } else if versus.arm == row.arm.name {
                    Some(1.0)
                } else {
                    compared.map(|compared| compared.estimate.ratio)
                };
                let ends = compared.and_then(|compared| compared.estimate.interval);
                cells.extend([
                    datum(ratio),
                    datum(ends.map(|ends| ends.low)),
                    datum(ends.map(|ends| ends.high)),
                ]);
            }
            cells
        });
        Data {
            rows: rows.collect(),
            columns,
        }
    }

    fn time_table(&self, title: &str, id: &str) -> Markup {
        let settles = self.settles();
        let versus = &self.chart.chart.versus;
        let columns = 5 + usize::from(settles) + versus.len();
        markup! {
            table.numbers.sortable id={ (id) "-data" } {
                caption { (title) ", in figures" }
                thead { tr {
                    th scope="col" class="text" { "Arm" }
                    th scope="col" { "µs per blob" }
                    @if settles { th scope="col" { "µs incl. settling" } }
                    th scope="col" { "MB/s" }
                    th scope="col" { "p50 µs" }
                    th scope="col" { "p99 µs" }
                    @for versus in versus { th scope="col" { (heading(versus)) } }
                    th scope="col" { "Published" }
                } }
                tbody {
                    @for row in &self.chart.rows {
                        tr {
                            th scope="row" { (label(&row.arm)) }
                            @if let Some(text) = trouble(&row.arm.status) {
                                td class={ "text " (trouble_class(&text)) } colspan=(columns) { (text) }
                            } @else {
                                td data-v=(datum(row.arm.operation_ns)) { (microseconds(row.arm.operation_ns)) }
                                @if settles { td data-v=(datum(row.arm.settled_operation_ns)) { (microseconds(row.arm.settled_operation_ns)) } }
                                td { (megabytes_per_second(row.arm.bytes_per_second)) }
                                td { (quantile(&row.arm.latencies, 0.5)) }
                                td { (quantile(&row.arm.latencies, 0.99)) }
                                @for (index, versus) in versus.iter().enumerate() {
                                    (ratio_cell(row, index, versus.arm == row.arm.name))
                                }
                                td { (self.published_cell(row)) }
                            }
                        }
                    }
                }
            }
        }
    }

    fn space_table(&self, title: &str, id: &str) -> Markup {
        let versus = &self.chart.chart.versus;
        markup! {
            table.numbers.sortable id={ (id) "-data" } {
                caption { (title) ", in figures" }
                thead { tr {
                    th scope="col" class="text" { "Arm" }
                    th scope="col" { "On disk" }
                    th scope="col" { "Sum of file sizes" }
                    th scope="col" { "Content" }
                    th scope="col" { "More than content" }
                    th scope="col" { "Files" }
                    th scope="col" { "Directories" }
                    @for versus in versus { th scope="col" { (heading(versus)) } }
                    th scope="col" { "Published" }
                } }
                tbody {
                    @for row in &self.chart.rows {
                        tr {
                            th scope="row" { (label(&row.arm)) }
                            @if let Some(footprint) = &row.footprint {
                                td data-v=(footprint.allocated_bytes) { (format_bytes(footprint.allocated_bytes)) }
                                td data-v=(footprint.apparent_bytes) { (format_bytes(footprint.apparent_bytes)) }
                                td data-v=(footprint.content_bytes) { (format_bytes(footprint.content_bytes)) }
                                td { (overhead(footprint).map_or_else(|| DASH.to_owned(), percent)) }
                                td { (format_count(footprint.files)) }
                                td { (format_count(footprint.directories)) }
                                @for versus in versus {
                                    td { (times_as_small(self.run, &versus.arm, &row.arm.name)
                                        .map_or_else(|| DASH.to_owned(), format_ratio)) }
                                }
                                td { (self.published_cell(row)) }
                            } @else {
                                td.text colspan=(7 + versus.len()) {
                                    (trouble(&row.arm.status).unwrap_or_else(|| "not counted".to_owned()))
                                }
                            }
                        }
                    }
                }
            }
        }
    }

    fn published_cell(&self, row: &ChartRow) -> Markup {
        let figures = published_of(&self.chart.chart, &row.arm.name);
        markup! {
            @if figures.is_empty() { (DASH) }
            @for (ratio, machine) in &figures {
                div { (bare_ratio(*ratio)) " " span.none { (machine) } }
            }
        }
    }
}

/// The class of what stands in the place of figures.
pub(crate) fn trouble_class(text: &str) -> &'static str {
    if text.starts_with("failed") {
        "bad"
    } else {
        "none"
    }
}

/// The heading of a column of ratios; a word that never ends does not widen the table.
fn heading(versus: &Versus) -> String {
    fit(
        &format!("vs {}", named(&versus.label, "an arm without a name")),
        MOST_HEADING_LETTERS,
    )
}

fn itself() -> Mark {
    Mark {
        ratio: 1.0,
        interval: None,
        shape: Shape::Itself,
        class: "none",
        text: "1".to_owned(),
    }
}

fn ratio_cell(row: &ChartRow, index: usize, itself: bool) -> Markup {
    if itself {
        return markup! { td data-v="1" { "1" } };
    }
    let settled = row.versus_settled.get(index).and_then(Option::as_ref);
    let compared = row.versus.get(index).and_then(Option::as_ref);
    let estimate = compared.map(|compared| &compared.estimate);
    let ends = estimate.and_then(|estimate| estimate.interval);
    markup! {
        td data-v=(datum(estimate.map(|estimate| estimate.ratio)))
            data-low=[ends.map(|ends| datum(Some(ends.low)))] data-high=[ends.map(|ends| datum(Some(ends.high)))] {
            @if let Some(compared) = compared {
                (mark(compared.verdict)) (format_ratio(compared.estimate.ratio))
                small { (range(compared.estimate.interval)) " " (verdict(compared.verdict)) }
            } @else {
                (DASH)
            }
            @if let Some(compared) = settled {
                small {
                    "settled " (mark(compared.verdict)) (format_ratio(compared.estimate.ratio)) ", "
                    (range(compared.estimate.interval)) " " (verdict(compared.verdict))
                }
            }
        }
    }
}

/// A verdict in a narrow column.
fn verdict(verdict: Verdict) -> Markup {
    let words = match verdict {
        Verdict::Faster => "faster",
        Verdict::Slower => "slower",
        Verdict::NoDifferenceWorthHaving => "no difference",
        Verdict::NotSureYet => "not sure",
    };
    markup! { span class=(class_of(verdict)) { (words) } }
}
