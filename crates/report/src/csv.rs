//! Every sample as comma-separated values, one row a sample (RFC 4180, with a line of headings): tidy data for
//! a spreadsheet or a statistics program. Trials without samples (failed, skipped) have a row with their reason
//! and no figures. Columns are only ever added at the end; `schema/CSV.md` says what each is.

use sqlitmus_core::run::{Outcome, Run, Sample, Trial};

use crate::proved::Proved;
use crate::svg::csv_cell;

const COLUMNS: [&str; 35] = [
    "run_id",
    "started_utc",
    "suite",
    "scale",
    "group",
    "baseline",
    "arm",
    "label",
    "engine",
    "case_id",
    "workload",
    "durability",
    "cache_state",
    "round",
    "set",
    "outcome",
    "reason",
    "counts",
    "turn",
    "place",
    "operations",
    "content_bytes",
    "elapsed_ns",
    "settle_ns",
    "operation_ns",
    "device_read_bytes",
    "major_faults",
    "machine_steal_ns",
    "involuntary_context_switches",
    "device_read_ns",
    "durability_claim",
    "process_kills",
    "process_kills_broken",
    "power_losses",
    "power_losses_broken",
];

/// The samples of runs, one after the other. Rounds, sets, turns and places count from 0; `counts` is 1 for
/// samples that figures are made of.
#[must_use]
pub fn csv(runs: &[&Run]) -> String {
    let mut text = COLUMNS.join(",");
    text.push_str("\r\n");
    for run in runs {
        let proved = Proved::of(run);
        for trial in &run.trials {
            let before = trial_cells(run, trial);
            let arm = run.plan.arm(&trial.arm);
            let after = arm.map_or_else(Default::default, |(_, arm)| proved.csv_cells(arm));
            let mut row = |sample: Option<&Sample>| {
                let cells = [&sample_cells(run, trial, sample)[..], &after[..]].concat();
                push_row(&mut text, &before, &cells);
            };
            if trial.samples.is_empty() {
                row(None);
            }
            trial.samples.iter().for_each(|sample| row(Some(sample)));
        }
    }
    text
}

fn push_row(text: &mut String, before: &str, cells: &[String]) {
    text.push_str(before);
    text.push(',');
    text.push_str(&cells.join(","));
    text.push_str("\r\n");
}

/// What all samples of a trial have in common.
fn trial_cells(run: &Run, trial: &Trial) -> String {
    let planned = run.plan.arm(&trial.arm);
    let of_group = |of: fn(&sqlitmus_core::plan::Group) -> String| {
        planned.map_or_else(String::new, |(group, _)| of(group))
    };
    let of_arm = |of: &dyn Fn(&sqlitmus_core::plan::Arm) -> String| {
        planned.map_or_else(String::new, |(_, arm)| of(arm))
    };
    let (outcome, reason) = match &trial.outcome {
        Outcome::Valid => ("valid", ""),
        Outcome::Invalid(reason) => ("invalid", reason.as_str()),
        Outcome::Failed(reason) => ("failed", reason.as_str()),
        Outcome::Skipped(reason) => ("skipped", reason.as_str()),
        Outcome::Refuted(reason) => ("refuted", reason.as_str()),
    };
    let cells = [
        run.head.id.clone(),
        run.head.started_utc.clone(),
        run.plan.suite.clone(),
        run.plan.scale.clone(),
        of_group(|group| group.name.clone()),
        of_group(|group| group.baseline.clone()),
        trial.arm.clone(),
        of_arm(&|arm| arm.label.clone()),
        of_arm(&|arm| arm.case.engine.clone()),
        of_arm(&|arm| arm.case.id()),
        of_arm(&|arm| arm.case.workload.verb().to_owned()),
        of_arm(&|arm| arm.case.durability.to_string()),
        of_arm(&|arm| arm.case.cache.to_string()),
        trial.round.to_string(),
        trial.set.to_string(),
        outcome.to_owned(),
        reason.to_owned(),
    ];
    cells.map(|cell| csv_cell(&cell)).join(",")
}

fn sample_cells(run: &Run, trial: &Trial, sample: Option<&Sample>) -> [String; 13] {
    let Some(sample) = sample else {
        return ["0", "", "", "", "", "", "", "", "", "", "", "", ""].map(str::to_owned);
    };
    let refuted = run
        .trials
        .iter()
        .any(|other| other.arm == trial.arm && matches!(other.outcome, Outcome::Refuted(_)));
    let cache = run.plan.arm(&trial.arm).map(|(_, arm)| arm.case.cache);
    let counts = trial.outcome == Outcome::Valid
        && !refuted
        && cache.is_none_or(|cache| sample.is_in(cache));
    let known = |value: Option<u64>| value.map_or_else(String::new, |value| value.to_string());
    let operation_ns = Some(sample.operation_ns());
    [
        u8::from(counts).to_string(),
        sample.turn.to_string(),
        sample.place.to_string(),
        sample.operations.to_string(),
        sample.content_bytes.to_string(),
        sample.elapsed_ns.to_string(),
        known(sample.settle_ns),
        crate::svg::datum(operation_ns),
        known(sample.device_read_bytes),
        known(sample.major_faults),
        known(sample.machine_steal_ns),
        known(sample.involuntary_context_switches),
        known(sample.device_read_ns),
    ]
}
