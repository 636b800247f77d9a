//! The report for programs: what [`sqlitmus_core::analysis`] found, and what it was found on, as
//! one JSON object. `"format": 1` stands first; within a format fields are only ever added.
//!
//! ```text
//! format        number   1
//! run           object   id, sqlitmus_version, started_utc, finished_utc (or null),
//!                        state (started, interrupted, complete), command_line, place
//! question      text     what the suite asks
//! conclusion    texts    sentences that follow from the intervals
//! warnings      texts    what to know before believing a figure
//! plan          object   suite, scale, seed (text: it may exceed what a double holds exactly),
//!                        threshold (a share: what verdicts are given against),
//!                        stopping: precision, budget_ns, rounds (null where not asked for);
//!                        groups: name, baseline (an arm's name), rounds_planned,
//!                        rounds_measured, slices, slice_ns, noise_floor,
//!                        judged_together (comparisons),
//!                        scatter (or null): deviation_within_rounds, deviation_between_rounds
//!                        (of the logarithm of a ratio), best_slices, rounds_for_one_percent
//! arms          objects  name, label, group, case_id, status (measured, failed, skipped,
//!                        not-reached), reason; operation_ns, settled_operation_ns (null for
//!                        reading arms), content_bytes_per_second, round_values_ns;
//!                        latencies: operations, p50_ns, p90_ns, p99_ns, p999_ns, max_ns;
//!                        left_out (reasons of trials that do not count), slices_left_out (of
//!                        trials that do count: not in the stated cache state);
//!                        outliers: slices, outliers, not_in_cache_state, stolen, preempted,
//!                        unexplained (counts);
//!                        footprint (or null): content_bytes, apparent_bytes,
//!                        allocated_bytes, files, directories;
//!                        resources (or null): operations (timed), content_bytes; per_operation
//!                        and system_calls (of one operation), levels (the largest of all
//!                        trials): name, value; system_calls is null if they were not counted;
//!                        case: workload, dataset, engine, settings, durability, cache, and
//!                        scanner where there is one (asks, reads, remembers);
//!                        read_back: what the live engine said is in force;
//!                        proved (null for reading arms): claim (kept, broken, claimed-only,
//!                        nothing-claimed); and of the durability experiment, null if it was not
//!                        asked: observed (a tier), process_killed, power_gone (cuts, broken,
//!                        broken_share_at_most), power_kind, configuration, filesystem, run
//! charts        objects  title, answers, shows (time, space), noise_floor; rows: arm,
//!                        comparisons, published (ratio, machine)
//! claims        objects  sentence, of (time, space), numerator, denominator, at_least, at_most,
//!                        ratio, interval, judgement (holds, does-not-hold, not-sure,
//!                        not-measured), reason
//! rates         objects  of groups about rows, jobs and trees: group, unit (what is counted); rows: arm,
//!                        counted (`queries` or `updates` of an arm that does both, else empty),
//!                        reason (null, or why there are no figures), count, seconds,
//!                        per_second (count / seconds), settle_seconds, cpu_percent, busy
//!                        (null where not counted); published: operations, seconds, per_second,
//!                        threads, cpu_percent, machine
//! explanations  objects  arm (a name), reason (why there are no parts, or null), rounds; whole,
//!                        parts (each with its name) and rest (null if the parts add up by
//!                        construction): ns, interval, share (of the whole); suspected
//! shares        objects  sentence, ratio, interval, reason
//! environment   objects  name, value
//! advice        object   of advice runs alone: what `sqlitmus advise --json` prints, without code
//! ```
//!
//! A comparison is an object of `versus` (an arm's name), `cost` (`acknowledged`, `settled` or
//! `space`), `ratio` (reference / arm: above 1 the arm is faster, or smaller), `interval` (`low`,
//! `high`; null with fewer than two rounds, and for space, which is counted), `confidence`,
//! `ratio_of_totals`, `rounds`, `variance_within_rounds`, `variance_between_rounds` (of the logarithm of
//! the ratio; null where they are not known), `verdict` (faster, slower, no-difference-worth-having,
//! not-sure-yet; null for space).
//!
//! `schema/report-1.schema.json` says the same as a JSON Schema (draft 2020-12), of several runs too.
//!
//! Numbers are rounded to seven significant digits; the run file keeps everything. What is not
//! there is null: NaN does not occur. Texts are those of the run, unshortened; characters that a
//! terminal acts on or that change the reading direction are written as `\u` escapes.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use sqlitmus_core::advice::recommend;
use sqlitmus_core::analysis::{Analysis, ArmAnalysis, ChartAnalysis, ChartRow, Compared};
use sqlitmus_core::case::Case;
use sqlitmus_core::claims::{ClaimResult, Judgement};
use sqlitmus_core::explanation::{Amount, Explained, ShareResult};
use sqlitmus_core::measurements::{ArmStatus, Measurements};
use sqlitmus_core::plan::{Arm, Group};
use sqlitmus_core::resource_use::ResourceUse;
use sqlitmus_core::run::Run;
use sqlitmus_core::spending::Spending;
use sqlitmus_core::statistics::Interval;
use sqlitmus_core::suite::ChartKind;

use crate::oltp::{RateRow, RateTable, tables};
use crate::proved::Proved;
use crate::side_by_side::Analysed;
use crate::space::times_as_small;
use crate::summary::{Summary, published_of};
use crate::text::is_harmless;

/// Version of the format, first in the object.
pub const FORMAT: u32 = 1;

/// Renders a run as one JSON object, ended by a line feed; the module's documentation lists the
/// fields.
///
/// `analysis` is what [`sqlitmus_core::analysis::analyse`] made of `run`.
#[must_use]
pub fn json(run: &Run, analysis: &Analysis) -> String {
    write(&object(run, analysis))
}

/// Renders several runs as one JSON object: `format`, and `runs`, an array of what [`json()`] gives of each.
#[must_use]
pub fn json_of_several(runs: &[Analysed<'_>]) -> String {
    let runs = runs.iter().map(|one| object(one.run, one.analysis));
    write(&json!({"format": FORMAT, "runs": runs.collect::<Vec<_>>()}))
}

fn object(run: &Run, analysis: &Analysis) -> Value {
    let measurements = Measurements::new(run);
    let groups = run.plan.groups.iter().zip(&analysis.groups);
    let proved = Proved::of(run);
    let arms = groups.clone().flat_map(|(group, measured)| {
        let (measurements, proved) = (&measurements, &proved);
        let arms = measured.arms.iter();
        arms.map(move |measured| arm(run, measurements, proved, group, measured))
    });
    let environment = run.environment.iter();
    let mut object = json!({
        "format": FORMAT,
        "run": run.head,
        "question": run.plan.question,
        "conclusion": analysis.conclusion,
        "warnings": Summary::of(run, analysis).warnings,
        "plan": {
            "suite": run.plan.suite,
            "scale": run.plan.scale,
            "seed": run.plan.seed.to_string(),
            "threshold": rounded(Some(run.plan.threshold)),
            "stopping": {
                "precision": rounded(run.plan.stopping.precision),
                "budget_ns": run.plan.stopping.budget_ns,
                "rounds": run.plan.stopping.rounds,
            },
            "groups": groups.clone().map(|(group, measured)| json!({
                "name": group.name,
                "baseline": group.baseline,
                "rounds_planned": group.rounds,
                "rounds_measured": measured.rounds,
                "slices": group.slices,
                "slice_ns": group.slice_ns,
                "noise_floor": rounded(measured.noise_floor),
                "judged_together": measured.comparisons,
                "scatter": measured.spending.map(scatter),
            })).collect::<Vec<_>>(),
        },
        "arms": arms.collect::<Vec<_>>(),
        "charts": analysis.charts.iter().map(|found| chart(run, found)).collect::<Vec<_>>(),
        "claims": analysis.claims.iter().map(claim).collect::<Vec<_>>(),
        "rates": tables(run, analysis).iter().map(|table| rates(run, table)).collect::<Vec<_>>(),
        "explanations": analysis.explanations.iter().map(explained).collect::<Vec<_>>(),
        "shares": analysis.shares.iter().map(share).collect::<Vec<_>>(),
        "environment": environment
            .map(|(name, value)| json!({"name": name, "value": value}))
            .collect::<Vec<_>>(),
    });
    if let Some(found) = recommend(run) {
        object["advice"] = crate::advice::object_of(run, &found, &[]);
    }
    object
}

fn arm(
    run: &Run,
    measurements: &Measurements<'_>,
    proved: &Proved<'_>,
    group: &Group,
    arm: &ArmAnalysis,
) -> Value {
    let planned = group.arms.iter().find(|planned| planned.name == arm.name);
    let (status, reason) = match &arm.status {
        ArmStatus::Measured => ("measured", None),
        ArmStatus::Failed(reason) => ("failed", Some(reason)),
        ArmStatus::Skipped(reason) => ("skipped", Some(reason)),
        ArmStatus::NotReached => ("not-reached", None),
    };
    let rounds = arm.round_values_ns.iter().map(|ns| rounded(Some(*ns)));
    let quantile = |share: f64| arm.latencies.quantile_ns(share);
    let read_back = run
        .trials
        .iter()
        .rev()
        .find(|trial| trial.arm == arm.name && !trial.read_back.is_empty());
    json!({
        "name": arm.name,
        "label": arm.label,
        "group": group.name,
        "case_id": planned.map(|planned| planned.case.id()),
        "status": status,
        "reason": reason,
        "operation_ns": rounded(arm.operation_ns),
        "settled_operation_ns": rounded(arm.settled_operation_ns),
        "content_bytes_per_second": rounded(arm.bytes_per_second),
        "round_values_ns": rounds.collect::<Vec<_>>(),
        "latencies": {
            "operations": arm.latencies.count(),
            "p50_ns": quantile(0.5),
            "p90_ns": quantile(0.9),
            "p99_ns": quantile(0.99),
            "p999_ns": quantile(0.999),
            "max_ns": quantile(1.0),
        },
        "left_out": arm.left_out,
        "slices_left_out": arm.slices_left_out,
        "outliers": {
            "slices": arm.outliers.slices,
            "outliers": arm.outliers.outliers,
            "not_in_cache_state": arm.outliers.not_in_cache_state,
            "stolen": arm.outliers.stolen,
            "preempted": arm.outliers.preempted,
            "unexplained": arm.outliers.unexplained,
        },
        "footprint": run.footprints.get(&arm.name),
        "resources": ResourceUse::of(measurements, &arm.name).map(|used| resources(&used)),
        "case": planned.map(|planned| case(&planned.case)),
        "proved": planned.map(|planned| proved.json(planned)),
        "read_back": read_back.map(|trial| &trial.read_back),
    })
}

fn resources(used: &ResourceUse) -> Value {
    let shares = |values: &BTreeMap<String, f64>| -> Vec<Value> {
        let values = values.iter();
        values
            .map(|(name, value)| json!({"name": name, "value": rounded(Some(*value))}))
            .collect()
    };
    let levels = used.levels.iter();
    json!({
        "operations": used.operations,
        "content_bytes": used.content_bytes,
        "per_operation": shares(&used.per_operation),
        "levels": levels
            .map(|(name, value)| json!({"name": name, "value": value}))
            .collect::<Vec<_>>(),
        "system_calls": (!used.system_calls.is_empty()).then(|| shares(&used.system_calls)),
    })
}

fn scatter(spending: Spending) -> Value {
    json!({
        "deviation_within_rounds": rounded(Some(spending.scatter.within_rounds)),
        "deviation_between_rounds": rounded(Some(spending.scatter.between_rounds)),
        "best_slices": spending.best_slices,
        "rounds_for_one_percent": spending.rounds_advised,
    })
}

/// The case without the dataset's seed, which follows from the plan's and may exceed a double.
fn case(case: &Case) -> Value {
    let mut value = json!({
        "workload": case.workload,
        "dataset": {
            "count": case.dataset.count,
            "size": case.dataset.size,
            "compressibility": case.dataset.compressibility,
        },
        "engine": case.engine,
        "settings": case.settings,
        "durability": case.durability,
        "cache": case.cache,
    });
    if !case.scanner.is_none() {
        value["scanner"] = json!(case.scanner);
    }
    value
}

fn chart(run: &Run, found: &ChartAnalysis) -> Value {
    let row = |row: &ChartRow| {
        let published = published_of(&found.chart, &row.arm.name).into_iter();
        json!({
            "arm": row.arm.name,
            "comparisons": comparisons(run, found, row),
            "published": published
                .map(|(ratio, machine)| json!({"ratio": rounded(Some(ratio)), "machine": machine}))
                .collect::<Vec<_>>(),
        })
    };
    json!({
        "title": found.chart.title,
        "answers": found.chart.answers,
        "shows": found.chart.shows,
        "noise_floor": rounded(found.noise_floor),
        "rows": found.rows.iter().map(row).collect::<Vec<_>>(),
    })
}

fn comparisons(run: &Run, found: &ChartAnalysis, row: &ChartRow) -> Vec<Value> {
    let versus = &found.chart.versus;
    if found.chart.shows == ChartKind::Space {
        let ratios = versus.iter().filter(|versus| versus.arm != row.arm.name);
        return ratios
            .map(|versus| {
                json!({
                    "versus": versus.arm,
                    "cost": "space",
                    "ratio": rounded(times_as_small(run, &versus.arm, &row.arm.name)),
                    "interval": null,
                    "verdict": null,
                })
            })
            .collect();
    }
    let of = |cost: &'static str, found: &'_ [Option<Compared>]| -> Vec<Value> {
        let pairs = versus.iter().zip(found);
        pairs
            .filter_map(|(versus, compared)| {
                let compared = compared.as_ref()?;
                let estimate = &compared.estimate;
                Some(json!({
                    "versus": versus.arm,
                    "cost": cost,
                    "ratio": rounded(Some(estimate.ratio)),
                    "interval": ends(estimate.interval),
                    "confidence": estimate.confidence,
                    "ratio_of_totals": rounded(Some(estimate.ratio_of_totals)),
                    "rounds": estimate.rounds,
                    "variance_within_rounds": rounded(estimate.variance_within_rounds),
                    "variance_between_rounds": rounded(estimate.variance_between_rounds),
                    "verdict": compared.verdict,
                }))
            })
            .collect()
    };
    let mut all = of("acknowledged", &row.versus);
    all.extend(of("settled", &row.versus_settled));
    all
}

fn rates(run: &Run, table: &RateTable) -> Value {
    json!({
        "group": table.title,
        "unit": table.unit,
        "rows": table.rows.iter().map(|row| rate(run, row)).collect::<Vec<_>>(),
    })
}

fn rate(run: &Run, row: &RateRow) -> Value {
    let found = row.figures.as_ref();
    let seconds = |ns: u64| rounded(Some(ns as f64 / 1e9));
    let planned = run.plan.arm(&row.arm).map(|(_, arm)| arm);
    let published = planned
        .into_iter()
        .flat_map(Arm::published_rates)
        .map(|published| {
            json!({
                "operations": published.operations,
                "seconds": rounded(Some(published.elapsed_ms as f64 / 1e3)),
                "per_second": rounded(Some(published.per_second())),
                "threads": published.threads,
                "cpu_percent": published.cpu_percent,
                "machine": published.machine,
            })
        });
    json!({
        "arm": row.arm,
        "counted": row.counted,
        "reason": found.err(),
        "count": found.ok().map(|rate| rate.count),
        "seconds": found.ok().and_then(|rate| seconds(rate.elapsed_ns)),
        "per_second": found.ok().and_then(|rate| rounded(Some(rate.per_second()))),
        "settle_seconds": found.ok().and_then(|rate| seconds(rate.settle_ns)),
        "cpu_percent": found.ok().and_then(|rate| rounded(rate.cpu_percent())),
        "busy": found.ok().and_then(|rate| rate.busy),
        "published": published.collect::<Vec<_>>(),
    })
}

fn claim(result: &ClaimResult) -> Value {
    let claim = &result.claim;
    let (judgement, reason) = match &result.judgement {
        Judgement::Holds => ("holds", None),
        Judgement::DoesNotHold => ("does-not-hold", None),
        Judgement::NotSure => ("not-sure", None),
        Judgement::NotMeasured(reason) => ("not-measured", Some(reason)),
    };
    json!({
        "sentence": claim.sentence,
        "of": claim.of,
        "numerator": claim.numerator,
        "denominator": claim.denominator,
        "at_least": rounded(claim.at_least),
        "at_most": rounded(claim.at_most),
        "ratio": rounded(result.ratio),
        "interval": ends(result.interval),
        "judgement": judgement,
        "reason": reason,
    })
}

fn explained(explained: &Explained) -> Value {
    let parts = explained.result.as_ref().ok();
    let of_parts = parts.map_or(&[][..], |parts| &parts.parts);
    json!({
        "arm": explained.arm,
        "reason": explained.result.as_ref().err(),
        "rounds": parts.map(|parts| parts.rounds),
        "whole": parts.map(|parts| amount(None, &parts.whole)),
        "parts": of_parts
            .iter()
            .map(|(name, part)| amount(Some(name), part))
            .collect::<Vec<_>>(),
        "rest": parts.and_then(|parts| parts.rest).map(|rest| amount(None, &rest)),
        "suspected": parts.and_then(|parts| parts.suspected.as_ref()),
    })
}

fn amount(name: Option<&String>, amount: &Amount) -> Value {
    let mut value = json!({
        "ns": rounded(Some(amount.ns)),
        "interval": ends(amount.interval),
        "share": rounded(Some(amount.share)),
    });
    if let Some(name) = name {
        value["name"] = json!(name);
    }
    value
}

fn share(share: &ShareResult) -> Value {
    let found = share.result.as_ref().ok();
    json!({
        "sentence": share.sentence,
        "ratio": rounded(found.map(|found| found.ratio)),
        "interval": ends(found.and_then(|found| found.interval)),
        "reason": share.result.as_ref().err(),
    })
}

pub(crate) fn ends(interval: Option<Interval>) -> Value {
    interval.map_or(
        Value::Null,
        |ends| json!({"low": rounded(Some(ends.low)), "high": rounded(Some(ends.high))}),
    )
}

/// Seven significant digits: more than any measurement here has, and the same on every platform,
/// whose logarithms differ in the sixteenth. `None` for what is not a number.
pub(crate) fn rounded(value: Option<f64>) -> Option<f64> {
    let value = value.filter(|value| value.is_finite())?;
    format!("{value:.6e}").parse().ok()
}

/// The object as indented text in which nothing acts on a terminal: what might is escaped, which
/// changes no value.
pub(crate) fn write(report: &Value) -> String {
    let mut text = String::new();
    for letter in format!("{report:#}").chars() {
        // Raw line breaks are those of the indentation: in texts they are escaped already.
        if letter == '\n' || is_harmless(letter) {
            text.push(letter);
        } else {
            for unit in letter.encode_utf16(&mut [0; 2]) {
                text.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_acts_on_a_terminal_is_escaped_and_survives() {
        let report = json!({"text": "a\u{1b}[2J\n\u{9b}31m\u{202e}\u{e0041}ü\u{200b}"});
        let text = write(&report);
        assert!(
            text.contains(r"\u009b31m\u202e\udb40\udc41ü\u200b"),
            "{text}"
        );
        assert_eq!(serde_json::from_str::<Value>(&text).ok(), Some(report));
    }

    #[test]
    fn numbers_are_rounded_or_null() {
        assert_eq!(rounded(Some(9_412.345_678_9)), Some(9_412.346));
        assert_eq!(rounded(Some(f64::NAN)), None);
        assert_eq!(rounded(Some(f64::NEG_INFINITY)), None);
        assert_eq!(rounded(Some(1e-300)), Some(1e-300));
    }
}
