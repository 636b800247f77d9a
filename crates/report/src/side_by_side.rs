//! Several runs side by side: which of their charts, cases and sentences are the same, on which machines a
//! sentence holds, and what differs between the machines. Words and matches; layout is the formats' business.
//!
//! Cases are matched by their identity, which is the same on every machine and in every version, never by
//! their name: two runs of another scale share names, and measure other things.

pub(crate) mod rates;
pub(crate) mod survival;

use sqlitmus_core::analysis::{Analysis, ChartAnalysis, ChartRow};
use sqlitmus_core::claims::{ClaimResult, Judgement};
use sqlitmus_core::environment::{fact, is_about_machine};
use sqlitmus_core::run::{Run, RunState};
use sqlitmus_core::suite::ChartKind;

use crate::machine;
use crate::summary::{dataset_words, label, named, plural};
use crate::text::clean;

/// A run with what follows from it.
#[derive(Clone, Copy)]
pub struct Analysed<'a> {
    /// The run.
    pub run: &'a Run,
    /// What [`sqlitmus_core::analysis::analyse`] made of it.
    pub analysis: &'a Analysis,
}

/// Several runs, matched. All texts are cleaned.
pub(crate) struct SideBySide<'a> {
    pub(crate) runs: Vec<Analysed<'a>>,
    /// The machine, if all runs are from the same.
    pub(crate) machine: Option<String>,
    /// What each run is called: its machine if there are several, and what tells it from the others.
    pub(crate) names: Vec<String>,
    /// Where each run was measured, if the machine was the same.
    pub(crate) places: Vec<PlaceFacts>,
    /// What they ask, if it is the same.
    pub(crate) question: String,
    /// What a reader must know before comparing: whole sentences.
    pub(crate) warnings: Vec<String>,
    pub(crate) charts: Vec<Chart<'a>>,
    pub(crate) rates: Vec<rates::RateGroup>,
    /// What commits survive.
    pub(crate) survival: survival::Survival,
    pub(crate) claims: Vec<Claim<'a>>,
    pub(crate) differences: Vec<Difference>,
}

/// What a run says of the place it was measured in.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PlaceFacts {
    pub(crate) filesystem: String,
    pub(crate) mount_options: String,
    pub(crate) device: String,
}

/// A chart that at least one run has.
pub(crate) struct Chart<'a> {
    pub(crate) title: String,
    pub(crate) shows: ChartKind,
    /// What the ratios are against.
    pub(crate) versus: String,
    /// The chart of each run.
    pub(crate) of_runs: Vec<Option<&'a ChartAnalysis>>,
    pub(crate) rows: Vec<Row<'a>>,
}

/// A case that at least one run has.
pub(crate) struct Row<'a> {
    pub(crate) label: String,
    pub(crate) engine: String,
    pub(crate) workload: &'static str,
    /// The row of each run.
    pub(crate) of_runs: Vec<Option<&'a ChartRow>>,
}

/// A sentence with what each run says of it.
pub(crate) struct Claim<'a> {
    pub(crate) sentence: String,
    pub(crate) of_runs: Vec<Option<&'a ClaimResult>>,
}

/// A fact that is not the same on all machines.
pub(crate) struct Difference {
    pub(crate) name: String,
    /// Of each run; `None` if it does not say.
    pub(crate) values: Vec<Option<String>>,
}

impl<'a> SideBySide<'a> {
    pub(crate) fn of(runs: &[Analysed<'a>]) -> Self {
        let questions: Vec<String> = runs
            .iter()
            .map(|one| clean(&one.run.plan.question))
            .collect();
        let alike = questions.windows(2).all(|pair| pair[0] == pair[1]);
        let question = questions
            .first()
            .filter(|question| alike && !question.is_empty());
        Self {
            machine: is_one_machine(runs).then(|| machine::pieces(runs[0].run)[0].clone()),
            names: names(runs),
            places: if is_one_machine(runs) {
                places(runs)
            } else {
                Vec::new()
            },
            question: question.map_or_else(|| "Runs side by side".to_owned(), Clone::clone),
            warnings: warnings(runs),
            charts: charts(runs),
            rates: rates::groups(runs),
            survival: survival::Survival::of(runs),
            claims: claims(runs),
            differences: differences(runs),
            runs: runs.to_vec(),
        }
    }

    /// How far the runs agree on what was published, in a sentence.
    pub(crate) fn agreement(&self) -> Option<String> {
        let mut everywhere = 0;
        let mut nowhere = 0;
        for claim in &self.claims {
            let holds = |result: &Option<&ClaimResult>| {
                result.is_some_and(|result| result.judgement == Judgement::Holds)
            };
            let fails = |result: &Option<&ClaimResult>| {
                result.is_some_and(|result| result.judgement == Judgement::DoesNotHold)
            };
            everywhere += usize::from(claim.of_runs.iter().all(holds));
            nowhere += usize::from(claim.of_runs.iter().all(fails));
        }
        let runs = plural(self.runs.len() as u64, "run", "runs");
        Some(match (self.claims.len(), everywhere, nowhere) {
            (0, _, _) => return None,
            (1, 1, _) => format!("The published sentence holds in all of {runs}."),
            (1, _, 1) => format!("The published sentence holds in none of {runs}."),
            (1, _, _) => format!("On the published sentence {runs} differ, or are not sure."),
            (all, _, _) => format!(
                "Of {all} published sentences {everywhere} hold in all of {runs}, {nowhere} in none, and on {} they \
                 differ or are not sure.",
                all - everywhere - nowhere
            ),
        })
    }
}

/// Whether all runs are from one machine, and from different places on it.
fn is_one_machine(runs: &[Analysed<'_>]) -> bool {
    let pieces: Vec<Vec<String>> = runs.iter().map(|one| machine::pieces(one.run)).collect();
    let same = |piece: usize| {
        let mut pairs = pieces.windows(2);
        pairs.all(|pair| pair[0].get(piece) == pair[1].get(piece))
    };
    pieces.len() > 1 && pieces[0].len() > 1 && same(0) && !same(1)
}

fn places(runs: &[Analysed<'_>]) -> Vec<PlaceFacts> {
    let said = |run: &Run, name: &str| {
        let found = run.environment.iter().find(|(found, _)| found == name);
        found.map_or_else(|| "not said".to_owned(), |(_, value)| named(value, "none"))
    };
    let places: Vec<PlaceFacts> = runs
        .iter()
        .map(|one| PlaceFacts {
            filesystem: said(one.run, fact::FILESYSTEM),
            mount_options: said(one.run, fact::MOUNT_OPTIONS).replace(',', ", "),
            device: said(one.run, fact::DISK_KIND),
        })
        .collect();
    places
}

/// Names that tell the runs apart: the machine, the place where two share it, and the time where two share both.
fn names(runs: &[Analysed<'_>]) -> Vec<String> {
    let mut pieces: Vec<Vec<String>> = runs.iter().map(|one| machine::pieces(one.run)).collect();
    if is_one_machine(runs) {
        for pieces in &mut pieces {
            pieces.remove(0);
        }
        leave_out_common_device(&mut pieces);
    }
    let name = |index: usize, parts: usize| -> String {
        let own: Vec<&str> = pieces[index]
            .iter()
            .take(parts)
            .map(String::as_str)
            .collect();
        own.join(", ")
    };
    (0..runs.len())
        .map(|index| {
            let unique = |parts: usize| {
                let mut others = (0..runs.len()).filter(|other| *other != index);
                others.all(|other| name(other, parts) != name(index, parts))
            };
            match (1..=3).find(|parts| unique(*parts)) {
                Some(parts) => name(index, parts),
                None => {
                    // To the minute: `2026-11-20 21:39`.
                    let started = clean(&runs[index].run.head.started_utc).replace('T', " ");
                    let started: String = started.chars().take(16).collect();
                    let alike = (0..runs.len()).all(|other| name(other, 1) == name(index, 1));
                    let machine = if alike {
                        String::new()
                    } else {
                        name(index, 1) + ", "
                    };
                    format!("{machine}run {} of {started}", index + 1)
                }
            }
        })
        .collect()
}

/// Of places such as `ext4 on a loop device on a virtual disk`, which come first in each list: what all of them
/// are on is said in the table of places, if the rest tells them apart.
fn leave_out_common_device(pieces: &mut [Vec<String>]) {
    let places = || pieces.iter().filter_map(|pieces| pieces.first());
    let devices: Vec<&str> = places()
        .filter_map(|place| Some(place.split_once(" on ")?.1))
        .collect();
    let names: Vec<String> = places()
        .map(|place| place.split(" on ").next().unwrap_or(place).to_owned())
        .collect();
    let alike = devices.windows(2).all(|pair| pair[0] == pair[1]);
    let mut others = names.iter().enumerate();
    let differ = others.all(|(at, name)| !names[..at].contains(name));
    if alike && differ && names.len() == pieces.len() {
        for (pieces, name) in pieces.iter_mut().zip(names) {
            pieces[0] = name;
        }
    }
}

fn warnings(runs: &[Analysed<'_>]) -> Vec<String> {
    let differ = |of: fn(&Run) -> String| {
        let all: Vec<String> = runs.iter().map(|one| of(one.run)).collect();
        all.windows(2).any(|pair| pair[0] != pair[1])
    };
    let mut warnings = Vec::new();
    if differ(|run| run.plan.suite.clone()) {
        warnings.push("These are runs of different suites: only the cases that they share stand side by side.".to_owned());
    } else if differ(|run| run.plan.scale.clone()) {
        warnings.push(
            "These runs are of different scales: their cases are not the same, and stand apart."
                .to_owned(),
        );
    }
    if differ(|run| run.head.sqlitmus_version.clone()) {
        warnings.push("These runs were measured by different versions of sqlitmus.".to_owned());
    }
    let incomplete = runs
        .iter()
        .filter(|one| one.run.head.state != RunState::Complete)
        .count();
    if incomplete > 0 {
        let verb = if incomplete == 1 { "is" } else { "are" };
        warnings.push(format!(
            "{} {verb} not complete.",
            plural(incomplete as u64, "run", "runs")
        ));
    }
    warnings
}

fn charts<'a>(runs: &[Analysed<'a>]) -> Vec<Chart<'a>> {
    let mut charts: Vec<Chart<'a>> = Vec::new();
    for (index, one) in runs.iter().enumerate() {
        for chart in &one.analysis.charts {
            let title = named(&chart.chart.title, "Chart without a title");
            let known = charts
                .iter()
                .position(|known| known.title == title && known.shows == chart.chart.shows);
            let at = known.unwrap_or_else(|| {
                let versus = chart.chart.versus.first();
                charts.push(Chart {
                    title,
                    shows: chart.chart.shows,
                    versus: versus.map_or(String::new(), |versus| {
                        named(&versus.label, "an arm without a name")
                    }),
                    of_runs: vec![None; runs.len()],
                    rows: Vec::new(),
                });
                charts.len() - 1
            });
            if let Some(matched) = charts
                .get_mut(at)
                .filter(|matched| matched.of_runs[index].is_none())
            {
                matched.of_runs[index] = Some(chart);
            }
        }
    }
    for chart in &mut charts {
        chart.rows = rows(runs, &chart.of_runs);
    }
    charts
}

fn rows<'a>(runs: &[Analysed<'a>], charts: &[Option<&'a ChartAnalysis>]) -> Vec<Row<'a>> {
    let mut rows: Vec<(String, String, Row<'a>)> = Vec::new();
    for (index, (one, chart)) in runs.iter().zip(charts).enumerate() {
        for row in chart.iter().flat_map(|chart| &chart.rows) {
            let planned = one.run.plan.arm(&row.arm.name).map(|(_, arm)| arm);
            let id = planned.map_or_else(String::new, |arm| arm.case.id());
            // Two arms of a run may be the same case: the name tells which is which.
            let at = rows
                .iter()
                .position(|(known, name, _)| *known == id && *name == row.arm.name);
            let at = at.unwrap_or_else(|| {
                rows.push((
                    id,
                    row.arm.name.clone(),
                    Row {
                        label: label(&row.arm),
                        engine: planned.map_or_else(String::new, |arm| clean(&arm.case.engine)),
                        workload: planned.map_or("", |arm| arm.case.workload.verb()),
                        of_runs: vec![None; runs.len()],
                    },
                ));
                rows.len() - 1
            });
            rows[at].2.of_runs[index] = Some(row);
        }
    }
    // Arms of one name that are not the same case say what they were measured on.
    let names: Vec<String> = rows.iter().map(|(_, name, _)| name.clone()).collect();
    for (_, name, row) in &mut rows {
        if names.iter().filter(|other| *other == name).count() > 1 {
            let of = row.of_runs.iter().position(Option::is_some);
            let planned = of.and_then(|index| runs[index].run.plan.arm(name));
            if let Some((_, arm)) = planned {
                row.label = format!("{} ({})", row.label, dataset_words(&arm.case.dataset));
            }
        }
    }
    rows.into_iter().map(|(_, _, row)| row).collect()
}

fn claims<'a>(runs: &[Analysed<'a>]) -> Vec<Claim<'a>> {
    let mut claims: Vec<Claim<'a>> = Vec::new();
    for (index, one) in runs.iter().enumerate() {
        for result in &one.analysis.claims {
            let sentence = named(&result.claim.sentence, "A claim without a sentence");
            let at = claims.iter().position(|known| known.sentence == sentence);
            let at = at.unwrap_or_else(|| {
                claims.push(Claim {
                    sentence,
                    of_runs: vec![None; runs.len()],
                });
                claims.len() - 1
            });
            claims[at].of_runs[index] = Some(result);
        }
    }
    claims
}

/// Facts that differ, with when, by what and how the runs were made.
fn differences(runs: &[Analysed<'_>]) -> Vec<Difference> {
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in runs.iter().flat_map(|one| &one.run.environment) {
        if is_about_machine(name) && !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    let of_environment = names.into_iter().map(|name| Difference {
        name: clean(name),
        values: runs
            .iter()
            .map(|one| {
                let (_, value) = one
                    .run
                    .environment
                    .iter()
                    .find(|(found, _)| found == name)?;
                Some(clean(value))
            })
            .collect(),
    });
    let of_head = |name: &str, of: fn(&Run) -> String| Difference {
        name: name.to_owned(),
        values: runs.iter().map(|one| Some(clean(&of(one.run)))).collect(),
    };
    let heads = [
        of_head("started (UTC)", |run| run.head.started_utc.clone()),
        of_head("sqlitmus", |run| run.head.sqlitmus_version.clone()),
        of_head("suite", |run| run.plan.suite.clone()),
        of_head("scale", |run| run.plan.scale.clone()),
        of_head("seed", |run| run.plan.seed.to_string()),
        of_head("SQLite", |run| {
            machine::sqlite_versions(run)
                .into_iter()
                .collect::<Vec<_>>()
                .join(", ")
        }),
    ];
    let all = heads.into_iter().chain(of_environment);
    all.filter(|fact| fact.values.windows(2).any(|pair| pair[0] != pair[1]))
        .collect()
}

/// How many times as good as the chart's first reference a row is, with its interval.
pub(crate) fn ratio(one: &Analysed<'_>, chart: &ChartAnalysis, row: &ChartRow) -> Option<Ratio> {
    let versus = chart.chart.versus.first()?;
    if versus.arm == row.arm.name {
        return Some(Ratio {
            ratio: 1.0,
            interval: None,
            class: "none",
            text: "1".to_owned(),
        });
    }
    if chart.chart.shows == ChartKind::Space {
        let ratio = crate::space::times_as_small(one.run, &versus.arm, &row.arm.name)?;
        return Some(Ratio {
            ratio,
            interval: None,
            class: "none",
            text: sqlitmus_core::units::format_ratio(ratio),
        });
    }
    let compared = row.versus.first()?.as_ref()?;
    Some(Ratio {
        ratio: compared.estimate.ratio,
        interval: compared.estimate.interval,
        class: crate::figures::class_of(compared.verdict),
        text: crate::figures::judged(&compared.estimate, compared.verdict),
    })
}

/// A ratio as it is shown.
pub(crate) struct Ratio {
    pub(crate) ratio: f64,
    pub(crate) interval: Option<sqlitmus_core::statistics::Interval>,
    pub(crate) class: &'static str,
    pub(crate) text: String,
}
