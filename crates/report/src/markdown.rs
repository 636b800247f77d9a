//! The report as GitHub's Markdown, for READMEs and pull requests: question, answer, a table a chart, the
//! published sentences, and the machine. Texts of the run are escaped, so that they neither break a table nor
//! become links, mentions or markup.

use sqlitmus_core::analysis::{Analysis, ChartAnalysis, ChartRow};
use sqlitmus_core::run::Run;
use sqlitmus_core::suite::ChartKind;
use sqlitmus_core::units::{format_bytes, format_count, format_ratio};

use crate::builds;
use crate::explanation;
use crate::figures::{DASH, bare_ratio, judged, microseconds, plus_minus, quantile};
use crate::grid::Grid;
use crate::lifecycle;
use crate::load;
use crate::oltp::{self, RateRow, tables};
use crate::proved::{NOTHING_PROVED, Proved};
use crate::resources::{calls_by_name, counters, method, of_all};
use crate::scaling;
use crate::side_by_side::{Analysed, SideBySide, ratio};
use crate::space::times_as_small;
use crate::summary::{Summary, chart_conditions, judgement, label, named, published_of, trouble};
use crate::text::clean;

/// Renders a run as Markdown.
#[must_use]
pub fn markdown(run: &Run, analysis: &Analysis) -> String {
    let summary = Summary::of(run, analysis);
    let mut page = Page::default();
    page.line(&format!("## {}", escape(&summary.question)));
    for warning in &summary.warnings {
        page.line(&format!("> **Note:** {}", escape(warning)));
    }
    let conclusion: Vec<String> = analysis
        .conclusion
        .iter()
        .map(|sentence| escape(sentence))
        .collect();
    page.line(&conclusion.join(" "));
    let pieces = |pieces: &[String]| {
        pieces
            .iter()
            .map(|piece| escape(piece))
            .collect::<Vec<_>>()
            .join(" · ")
    };
    page.line(&format!(
        "{}  \n{}",
        pieces(&summary.machine),
        pieces(&summary.conditions)
    ));
    if let Some(grid) = Grid::of(run, analysis) {
        let headings: Vec<String> = std::iter::once("page size".to_owned())
            .chain(grid.headings())
            .collect();
        for (title, cells) in grid.tables() {
            page.line(&format!("### {}", escape(&title)));
            let rows = grid.rows.iter().zip(cells).map(|(row, cells)| {
                let label = std::iter::once(row.to_string());
                label.chain(cells).collect()
            });
            page.table(&headings, rows.collect());
        }
        let answers = grid.answers();
        let answers = answers.iter().map(|answer| format!("- {}", escape(answer)));
        page.line(&answers.collect::<Vec<_>>().join("\n"));
    }
    for chart in &analysis.charts {
        page.line(&format!(
            "### {}",
            escape(&named(&chart.chart.title, "Chart without a title"))
        ));
        if chart.chart.shows == ChartKind::Time {
            page.line(&pieces(&chart_conditions(run, analysis, &chart.chart)));
        }
        page.table(
            &headings(chart),
            chart
                .rows
                .iter()
                .map(|row| cells(run, chart, row))
                .collect(),
        );
    }
    let proved = Proved::of(run).lines();
    if proved.len() > 1 {
        page.line("### What commits survive");
    }
    let items = proved.iter().map(|line| {
        let text = escape(&line.text);
        if line.is_broken {
            format!("- **{text}**")
        } else {
            format!("- {text}")
        }
    });
    page.line(&items.collect::<Vec<_>>().join("\n"));
    for table in tables(run, analysis) {
        page.line(&format!("### {}", escape(&table.title)));
        page.line(&escape(&table.subtitle));
        page.table(
            &[
                "Arm",
                "count",
                "seconds",
                "per second",
                "CPU",
                "p99 µs",
                "survives",
            ]
            .map(str::to_owned),
            table.rows.iter().map(rate_cells).collect(),
        );
        let notes: Vec<String> = table.notes.iter().map(|note| escape(note)).collect();
        page.line(&notes.join("  \n"));
    }
    for table in explanation::tables(analysis) {
        page.line(&format!(
            "### Where the time goes: {}",
            escape(&table.label)
        ));
        let rows = table.rows.iter().map(|row| {
            [&row.name, &row.time, &row.reach, &row.share]
                .map(Clone::clone)
                .to_vec()
        });
        if !table.rows.is_empty() {
            let headings = ["Part", "µs", "± half of the 95% interval", "of the whole"];
            page.table(&headings.map(str::to_owned), rows.collect());
        }
        for note in &table.notes {
            page.line(&escape(note));
        }
    }
    for answer in explanation::answers(analysis) {
        page.line(&escape(&answer));
    }
    let of_readers = scaling::of(run);
    let of_readers = of_readers.iter().map(scaling::Scaling::table);
    let all = load::tables(run, analysis).into_iter();
    for table in all.chain(of_readers).chain(lifecycle::tables(run)) {
        page.line(&format!("### {}", escape(&table.title)));
        let (headings, rows) = table.cells();
        page.table(&headings, rows);
        for note in &table.notes {
            page.line(&escape(note));
        }
    }
    if !analysis.claims.is_empty() {
        page.line("### What was published, judged by this run");
        let rows = analysis.claims.iter().map(|claim| {
            let (verdict, reason) = judgement(&claim.judgement);
            let verdict = reason.map_or_else(
                || verdict.to_owned(),
                |reason| format!("{verdict}: {reason}"),
            );
            let measured = claim.ratio.map_or_else(
                || DASH.to_owned(),
                |ratio| match claim.interval {
                    Some(_) => format!("{} {}", format_ratio(ratio), plus_minus(claim.interval)),
                    None => format_ratio(ratio),
                },
            );
            vec![
                named(&claim.claim.sentence, "A claim without a sentence"),
                verdict,
                measured,
            ]
        });
        page.table(
            &["Sentence", "Verdict", "Measured"].map(str::to_owned),
            rows.collect(),
        );
    }
    let builds = builds::builds(run);
    if !builds.is_empty() {
        page.line(&format!("### {}", builds::TITLE));
        let first = builds::first(&builds);
        let rows = builds.iter().map(|build| {
            let (version, options) = match &build.said {
                Ok(said) => (said.version.clone(), said.words(first)),
                Err(reason) => (DASH.to_owned(), format!("not asked: {reason}")),
            };
            vec![build.library.clone(), version, options]
        });
        page.table(
            &["Library", "Version", "Compile options"].map(str::to_owned),
            rows.collect(),
        );
    }
    resources(&mut page, run, analysis);
    page.line(&format!(
        "Times are microseconds per blob; \"vs\" is how many times as fast (or as small); ± is half of the 95% \
         interval. `=`: no difference worth having, `~`: not sure. Command: {}",
        code(&named(&run.head.command_line, "not known"))
    ));
    page.text
}

/// What an operation uses, folded away: it explains the figures above, and is wide.
fn resources(page: &mut Page, run: &Run, analysis: &Analysis) {
    let arms = of_all(run, analysis);
    let counters = counters(&arms);
    let used = || arms.iter().filter_map(|arm| arm.used.as_ref().ok());
    let counts_calls = used().any(|used| !used.system_calls.is_empty());
    if counters.is_empty() && !counts_calls {
        return;
    }
    page.line("<details><summary>What an operation uses</summary>");
    if let Some(method) = method(run).filter(|_| counts_calls) {
        page.line(&escape(&format!(
            "System calls, of operations that were not timed: {method}."
        )));
    }
    let mut headings = vec!["Arm".to_owned()];
    headings.extend(counters.iter().map(|counter| counter.heading.to_owned()));
    if counts_calls {
        headings.push("system calls".to_owned());
    }
    let rows = arms.iter().filter_map(|arm| {
        let used = arm.used.as_ref().ok()?;
        let mut cells = vec![arm.label.clone()];
        cells.extend(counters.iter().map(|counter| counter.text(used)));
        if counts_calls {
            cells.push(calls_by_name(used));
        }
        Some(cells)
    });
    page.table(&headings, rows.collect());
    page.line("</details>");
}

/// Renders several runs side by side as Markdown.
#[must_use]
pub fn markdown_side_by_side(runs: &[Analysed<'_>]) -> String {
    let all = SideBySide::of(runs);
    let mut page = Page::default();
    page.line(&format!("## {}", escape(&all.question)));
    for warning in &all.warnings {
        page.line(&format!("> **Note:** {}", escape(warning)));
    }
    page.line(&all.machine.as_deref().map(escape).unwrap_or_default());
    page.line(&all.agreement().unwrap_or_default());
    let headings = |first: &str| -> Vec<String> {
        std::iter::once(first.to_owned())
            .chain(all.names.iter().cloned())
            .collect()
    };
    if !all.claims.is_empty() {
        let rows = all.claims.iter().map(|claim| {
            let cells = claim.of_runs.iter().map(|result| match result {
                None => DASH.to_owned(),
                Some(result) => {
                    let ratio = result
                        .ratio
                        .map_or(String::new(), |ratio| format!(" ({})", format_ratio(ratio)));
                    format!("{}{ratio}", judgement(&result.judgement).0)
                }
            });
            std::iter::once(claim.sentence.clone())
                .chain(cells)
                .collect()
        });
        page.line("### Where each published sentence holds");
        page.table(&headings("Sentence"), rows.collect());
    }
    for chart in &all.charts {
        page.line(&format!("### {}", escape(&chart.title)));
        if !chart.versus.is_empty() {
            let word = if chart.shows == ChartKind::Space {
                "small"
            } else {
                "fast"
            };
            page.line(&escape(&format!(
                "Times as {word} as {} of the same machine.",
                chart.versus
            )));
        }
        let rows = chart.rows.iter().map(|row| {
            let cells = (0..all.runs.len()).map(|run| {
                let found = chart.of_runs[run].zip(row.of_runs[run]);
                match found {
                    None => DASH.to_owned(),
                    Some((own, found)) => ratio(&all.runs[run], own, found).map_or_else(
                        || trouble(&found.arm.status).unwrap_or_else(|| DASH.to_owned()),
                        |ratio| ratio.text,
                    ),
                }
            });
            std::iter::once(row.label.clone()).chain(cells).collect()
        });
        page.table(&headings("Case"), rows.collect());
    }
    for group in &all.rates {
        page.line(&format!("### {}", escape(&group.title)));
        page.line(&format!(
            "Count, seconds, and {} a second.",
            escape(oltp::first_word(&group.unit))
        ));
        let rows = group.rows.iter().map(|row| {
            let cells = row.of_runs.iter().map(|found| match found {
                None => DASH.to_owned(),
                Some(Ok(rate)) => format!(
                    "{} in {} = {}/s",
                    format_count(rate.count),
                    oltp::seconds(rate.elapsed_ns),
                    oltp::per_second(rate)
                ),
                Some(Err(reason)) => reason.clone(),
            });
            std::iter::once(row.label.clone()).chain(cells).collect()
        });
        page.table(&headings("Arm"), rows.collect());
        let published: Vec<String> = group.published.iter().map(|line| escape(line)).collect();
        page.line(&published.join("  \n"));
    }
    if !all.survival.rows.is_empty() {
        page.line("### What commits survive");
        if all.survival.is_proved() {
            let rows = all.survival.rows.iter().map(|row| {
                let cells = row.of_runs.iter().map(|tier| {
                    tier.as_ref()
                        .map_or_else(|| DASH.to_owned(), |tier| tier.text.clone())
                });
                std::iter::once(row.label.clone()).chain(cells).collect()
            });
            page.table(&headings("Case"), rows.collect());
        } else {
            page.line(NOTHING_PROVED);
        }
    }
    if !all.places.is_empty() {
        page.line("### The places");
        let rows = all.names.iter().zip(&all.places).map(|(name, place)| {
            vec![
                name.clone(),
                place.filesystem.clone(),
                place.device.clone(),
                place.mount_options.clone(),
            ]
        });
        page.table(
            &["Place", "filesystem", "device", "mount options"].map(str::to_owned),
            rows.collect(),
        );
    }
    let between = if all.machine.is_some() {
        "places"
    } else {
        "machines"
    };
    page.line(&format!("### What differs between the {between}"));
    let rows = all.differences.iter().map(|fact| {
        let values = fact
            .values
            .iter()
            .map(|value| value.clone().unwrap_or_else(|| "not said".to_owned()));
        std::iter::once(fact.name.clone()).chain(values).collect()
    });
    page.table(&headings("Fact"), rows.collect());
    page.text
}

/// A line of rates, each of which follows from the two figures before it.
fn rate_cells(row: &RateRow) -> Vec<String> {
    let rate = match &row.figures {
        Ok(rate) => rate,
        Err(reason) => return vec![row.label.clone(), reason.clone()],
    };
    let percent = rate.cpu_percent().map(|percent| format!("{percent:.0}%"));
    let latency = rate.latency_ns.map(|[_, p99, ..]| oltp::microseconds(p99));
    vec![
        row.label.clone(),
        format_count(rate.count),
        oltp::seconds(rate.elapsed_ns),
        oltp::per_second(rate),
        percent.unwrap_or_else(|| DASH.to_owned()),
        latency.unwrap_or_else(|| DASH.to_owned()),
        row.survives.clone(),
    ]
}

fn headings(chart: &ChartAnalysis) -> Vec<String> {
    let versus = chart.chart.versus.iter();
    let versus =
        versus.map(|versus| format!("vs {}", named(&versus.label, "an arm without a name")));
    let first = match chart.chart.shows {
        ChartKind::Time => ["Arm", "µs", "p50", "p99"].map(str::to_owned).to_vec(),
        ChartKind::Space => ["Arm", "on disk"].map(str::to_owned).to_vec(),
    };
    let published = (!chart.chart.published.is_empty()).then(|| "published".to_owned());
    first.into_iter().chain(versus).chain(published).collect()
}

fn cells(run: &Run, chart: &ChartAnalysis, row: &ChartRow) -> Vec<String> {
    let mut cells = vec![label(&row.arm)];
    let timed = chart.chart.shows == ChartKind::Time;
    match (trouble(&row.arm.status), row.footprint) {
        (Some(trouble), _) if timed => {
            cells.push(trouble);
            return cells;
        }
        _ if timed => {
            cells.push(microseconds(row.arm.operation_ns));
            cells.extend([0.5, 0.99].map(|share| quantile(&row.arm.latencies, share)));
        }
        (_, Some(footprint)) => cells.push(format_bytes(footprint.allocated_bytes)),
        (trouble, None) => cells.push(trouble.unwrap_or_else(|| "not counted".to_owned())),
    }
    for (index, versus) in chart.chart.versus.iter().enumerate() {
        let compared = row.versus.get(index).and_then(Option::as_ref);
        cells.push(match compared {
            _ if versus.arm == row.arm.name => "1".to_owned(),
            Some(compared) => judged(&compared.estimate, compared.verdict),
            None if timed => DASH.to_owned(),
            None => times_as_small(run, &versus.arm, &row.arm.name)
                .map_or_else(|| DASH.to_owned(), format_ratio),
        });
    }
    let published = published_of(&chart.chart, &row.arm.name).into_iter();
    let published = published.map(|(ratio, machine)| format!("{} {machine}", bare_ratio(ratio)));
    if !chart.chart.published.is_empty() {
        cells.push(published.collect::<Vec<_>>().join(", "));
    }
    cells
}

#[derive(Default)]
pub(crate) struct Page {
    text: String,
}

impl Page {
    /// What it has come to.
    pub(crate) fn text(self) -> String {
        self.text
    }

    /// A paragraph; nothing if it is empty. What it says is Markdown.
    pub(crate) fn line(&mut self, markdown: &str) {
        if markdown.trim().is_empty() {
            return;
        }
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(markdown.trim_end());
        self.text.push('\n');
    }

    /// A table; the first column is text, the others figures. Rows may be shorter than the headings.
    pub(crate) fn table(&mut self, headings: &[String], rows: Vec<Vec<String>>) {
        let row = |cells: &[String]| {
            let filled =
                (0..headings.len()).map(|index| cells.get(index).map_or("", String::as_str));
            let cells: Vec<String> = filled.map(escape).collect();
            format!("| {} |", cells.join(" | "))
        };
        let rule: Vec<&str> = (0..headings.len())
            .map(|index| if index == 0 { "---" } else { "---:" })
            .collect();
        let mut lines = vec![row(headings), format!("| {} |", rule.join(" | "))];
        lines.extend(rows.iter().map(|cells| row(cells)));
        self.line(&lines.join("\n"));
    }
}

/// A text in which nothing is markup: characters that GitHub's Markdown acts on are escaped, those that make
/// links, mentions and references of other pages too.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::new();
    for letter in clean(text).chars() {
        match letter {
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' | '!' => {
                escaped.push('\\');
                escaped.push(letter);
            }
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '@' => escaped.push_str("&#64;"),
            '#' => escaped.push_str("&#35;"),
            _ => escaped.push(letter),
        }
    }
    // Addresses become links by themselves.
    escaped
        .replace("://", "&#58;//")
        .replace("www.", "www&#46;")
}

/// A text between backticks, more of them than it has itself.
fn code(text: &str) -> String {
    let text = clean(text);
    let longest = text
        .split(|letter| letter != '`')
        .map(str::len)
        .max()
        .unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    format!("{fence} {text} {fence}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_text_is_markup() {
        assert_eq!(
            escape("a|b <b> [x](http://y) @who #1 www.z `c` *d*"),
            "a\\|b &lt;b&gt; \\[x\\](http&#58;//y) &#64;who &#35;1 www&#46;z \\`c\\` \\*d\\*"
        );
        assert_eq!(code("a `b` ``c"), "``` a `b` ``c ```");
    }
}
