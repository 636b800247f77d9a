//! The value of every round of every arm of a chart, those that do not count too.

use sqlitmus_core::analysis::{ArmAnalysis, ChartAnalysis};
use sqlitmus_core::run::{Outcome, Run};
use sqlitmus_core::statistics::median;
use sqlitmus_core::units::format_microseconds;

use crate::summary::{label, named};
use crate::svg::{RoundMark, Rounds, RoundsRow};

use super::is_strong;

/// The rounds of a chart's arms.
pub(crate) fn view(run: &Run, chart: &ChartAnalysis, id: &str) -> Option<Rounds> {
    let rows: Vec<RoundsRow> = chart
        .rows
        .iter()
        .map(|row| RoundsRow {
            label: label(&row.arm),
            strong: is_strong(run, &row.arm.name),
            middle: row
                .arm
                .operation_ns
                .filter(|ns| ns.is_finite() && *ns > 0.0),
            marks: marks(run, &row.arm),
        })
        .filter(|row| !row.marks.is_empty())
        .collect();
    (!rows.is_empty()).then(|| Rounds {
        id: id.to_owned(),
        title: "Round by round".to_owned(),
        unit: "ns".to_owned(),
        format: format_microseconds,
        rows,
    })
}

/// The rounds of an arm: those that count as analysed, of the others the median of their slices.
pub(crate) fn marks(run: &Run, arm: &ArmAnalysis) -> Vec<RoundMark> {
    let counted = arm.rounds.iter().zip(&arm.round_values_ns);
    let mut marks: Vec<RoundMark> = counted
        .map(|(round, value)| RoundMark {
            round: *round,
            value: value.is_finite().then_some(*value),
            left_out: None,
        })
        .collect();
    for trial in run.trials.iter().filter(|trial| trial.arm == arm.name) {
        let (Outcome::Invalid(reason)
        | Outcome::Failed(reason)
        | Outcome::Skipped(reason)
        | Outcome::Refuted(reason)) = &trial.outcome
        else {
            continue;
        };
        let values: Vec<f64> = trial
            .samples
            .iter()
            .map(sqlitmus_core::run::Sample::operation_ns)
            .collect();
        marks.push(RoundMark {
            round: trial.round,
            value: median(&values).filter(|value| value.is_finite()),
            left_out: Some(named(reason, "no reason given")),
        });
    }
    marks.sort_by_key(|mark| mark.round);
    marks
}
