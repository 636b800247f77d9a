//! The comparison for programs, as one JSON object. `"format": 1` stands first; within a format fields
//! are only ever added.
//!
//! ```text
//! format        number   1
//! answer        text     no-regression, regression, not-sure: exit codes 0, 1 and 3
//! of            text     ratio (to the baseline of the same run) or time
//! threshold     number   smallest difference worth having, as a share
//! confidence    number   of intervals
//! a, b          objects  the runs: id, sqlitmus_version, started_utc, finished_utc (or null), state,
//!                        command_line, place, suite, scale
//! warnings      texts    what to know before believing a verdict
//! conditions    objects  that differ: name, a, b (texts, null if not known), effect (forbids,
//!                        expected, told), why, arms (names, of what live engines say)
//! groups        objects  name, baseline (what it is called), rounds_planned, rounds_measured,
//!                        noise_floor (each an object of a and b), baseline_change (ratio, interval;
//!                        or null)
//! comparisons   objects  one a cost of a case that is in both: case_id, name_a, name_b, label, group,
//!                        cost (acknowledged, settled); a and b (operation_ns, interval, rounds; or
//!                        null), trials_left_out (a, b); change (or null): ratio (above 1, B is
//!                        faster), interval, interval_among_all, confidence_among_all, noise_floor,
//!                        verdict (faster, slower, no-difference-worth-having, not-sure-yet),
//!                        regression (found, excluded, open); not_judged: why there is no change
//!                        (baseline, no-figures, other-baseline, no-ratio, bad-samples; or null)
//!                        and reason in words
//! only_in_a, only_in_b   objects: name, label, group, case_id, why (absent, other-case, ambiguous),
//!                        parts (part, here, there)
//! ```
//!
//! Numbers are rounded to seven significant digits; what is not there is null.

use serde_json::{Value, json};

use sqlitmus_core::measurements::Cost;
use sqlitmus_core::run_comparison::{
    ArmCost, Change, ComparedCase, ComparedGroup, Difference, Effect, NotJudged, Quantity,
    Regression, RunComparison, Side, Unmatched, WhyUnmatched,
};
use sqlitmus_core::statistics::Interval;

use crate::json::{ends, rounded, write};

use super::{answer_word, no_figures, warnings};

/// Version of the format, first in the object.
pub const FORMAT: u32 = 1;

/// Renders a comparison as one JSON object, ended by a line feed; the module's documentation lists the
/// fields.
#[must_use]
pub fn json(comparison: &RunComparison) -> String {
    let of = match comparison.options.of {
        Quantity::Time => "time",
        Quantity::Ratio => "ratio",
    };
    write(&json!({
        "format": FORMAT,
        "answer": answer_word(comparison.answer()),
        "of": of,
        "threshold": rounded(Some(comparison.options.threshold)),
        "confidence": rounded(Some(comparison.options.confidence)),
        "a": side(&comparison.a),
        "b": side(&comparison.b),
        "warnings": warnings(comparison),
        "conditions": comparison.differences.iter().map(condition).collect::<Vec<_>>(),
        "groups": comparison.groups.iter().map(group).collect::<Vec<_>>(),
        "comparisons": comparison.cases.iter().map(case).collect::<Vec<_>>(),
        "only_in_a": comparison.only_a.iter().map(unmatched).collect::<Vec<_>>(),
        "only_in_b": comparison.only_b.iter().map(unmatched).collect::<Vec<_>>(),
    }))
}

fn side(side: &Side) -> Value {
    let mut value = json!(side.head);
    value["suite"] = json!(side.suite);
    value["scale"] = json!(side.scale);
    value
}

fn condition(difference: &Difference) -> Value {
    json!({
        "name": difference.name,
        "a": difference.a,
        "b": difference.b,
        "effect": match difference.effect {
            Effect::Forbids => "forbids",
            Effect::Expected => "expected",
            Effect::Told => "told",
        },
        "why": difference.why,
        "arms": difference.arms,
    })
}

fn group(group: &ComparedGroup) -> Value {
    let change = group.baseline_change.map(
        |(ratio, interval): (f64, Option<Interval>)| {
            json!({"ratio": rounded(Some(ratio)), "interval": ends(interval)})
        },
    );
    json!({
        "name": group.name,
        "baseline": group.baseline,
        "rounds_planned": {"a": group.planned.0, "b": group.planned.1},
        "rounds_measured": {"a": group.measured.0, "b": group.measured.1},
        "noise_floor": {
            "a": rounded(group.noise_floors.0),
            "b": rounded(group.noise_floors.1),
        },
        "baseline_change": change,
    })
}

fn case(case: &ComparedCase) -> Value {
    let (change, not_judged) = match &case.change {
        Ok(found) => (change(found), Value::Null),
        Err(why) => (Value::Null, not_judged(why)),
    };
    json!({
        "case_id": case.case_id,
        "name_a": case.name_a,
        "name_b": case.name,
        "label": case.label,
        "group": case.group,
        "cost": match case.cost {
            Cost::Acknowledged => "acknowledged",
            Cost::Settled => "settled",
        },
        "a": case.a.as_ref().map(cost),
        "b": case.b.as_ref().map(cost),
        "trials_left_out": {"a": case.trials_left_out.0, "b": case.trials_left_out.1},
        "change": change,
        "not_judged": not_judged,
    })
}

fn cost(cost: &ArmCost) -> Value {
    json!({
        "operation_ns": rounded(Some(cost.operation_ns)),
        "interval": ends(cost.interval),
        "rounds": cost.rounds,
    })
}

fn change(change: &Change) -> Value {
    json!({
        "ratio": rounded(Some(change.ratio)),
        "interval": ends(change.interval),
        "interval_among_all": ends(change.interval_among_all),
        "confidence_among_all": rounded(Some(change.confidence_among_all)),
        "noise_floor": rounded(change.noise_floor),
        "verdict": change.verdict,
        "regression": match change.regression {
            Regression::Found => "found",
            Regression::Excluded => "excluded",
            Regression::Open => "open",
        },
    })
}

fn not_judged(why: &NotJudged) -> Value {
    let (word, reason) = match why {
        NotJudged::IsBaseline => ("baseline", "the others are divided by it".to_owned()),
        NotJudged::NoFigures { a, b } => ("no-figures", no_figures(a, b)),
        NotJudged::OtherBaseline { a, b } => (
            "other-baseline",
            format!("the baseline is {a} in A and {b} in B"),
        ),
        NotJudged::NoRatio => (
            "no-ratio",
            "the baseline has no figures beside it".to_owned(),
        ),
        NotJudged::BadSamples => ("bad-samples", "its samples cannot be times".to_owned()),
    };
    json!({"why": word, "reason": reason})
}

fn unmatched(case: &Unmatched) -> Value {
    let (why, parts) = match &case.why {
        WhyUnmatched::Absent => ("absent", Vec::new()),
        WhyUnmatched::Ambiguous => ("ambiguous", Vec::new()),
        WhyUnmatched::OtherCase(parts) => (
            "other-case",
            parts
                .iter()
                .map(|part| json!({"part": part.part, "here": part.here, "there": part.there}))
                .collect(),
        ),
    };
    json!({
        "name": case.name,
        "label": case.label,
        "group": case.group,
        "case_id": case.case_id,
        "why": why,
        "parts": parts,
    })
}
