//! Conclusions: sentences of a suite whose figures follow from the intervals of a run. Where a
//! sentence needs `{fast:ARM|REFERENCE}`, what stands there in the end depends on the verdict, so
//! that the sentence stays true whatever was measured:
//!
//! - `{fast:ARM|REFERENCE}`: "1.7 times as fast as", "about as fast as", "only 0.8 times as fast
//!   as", or "not clearly faster or slower than";
//! - `{fast-settled:ARM|REFERENCE}`: the same, counting what commits leave for later;
//! - `{space:ARM|REFERENCE}`: "17% less disk than", "3% more disk than", "as much disk as";
//! - `{factor:ARM|REFERENCE}`: "1.9 (1.8 to 2.0)", the time of the arm divided by that of the
//!   reference, with its interval.
//!
//! A sentence whose arms were not measured is left out, and a line says so.

use crate::judgement::Judgements;
use crate::measurements::{ArmStatus, Cost, Measurements};
use crate::placeholders::fill;
use crate::units::format_ratio;
use crate::verdict::Verdict;

/// Fills in the sentences with the figures of a run.
#[must_use]
pub fn conclude(
    sentences: &[String],
    measurements: &Measurements<'_>,
    judgements: &Judgements,
) -> Vec<String> {
    let mut conclusion = Vec::new();
    let mut missing: Vec<String> = Vec::new();
    for sentence in sentences {
        let filled = fill(sentence, &mut |kind, arm, reference| {
            phrase(kind, arm, reference, measurements, judgements)
        });
        match filled {
            Ok(sentence) => conclusion.push(sentence),
            Err(reason) if missing.contains(&reason) => {}
            Err(reason) => missing.push(reason),
        }
    }
    for reason in missing {
        conclusion.push(format!("Something is left unsaid here: {reason}."));
    }
    conclusion
}

fn phrase(
    kind: &str,
    arm: &str,
    reference: &str,
    measurements: &Measurements<'_>,
    judgements: &Judgements,
) -> Result<String, String> {
    if kind == "space" {
        return space(arm, reference, measurements)
            .ok_or_else(|| format!("the space of {arm} or {reference} is not known"));
    }
    for name in [arm, reference] {
        match measurements.status(name) {
            ArmStatus::Measured => {}
            ArmStatus::Failed(reason) | ArmStatus::Skipped(reason) => {
                let label = measurements.label(name);
                return Err(format!("\"{label}\" was not measured ({reason})"));
            }
            ArmStatus::NotReached => {
                return Err(format!("\"{}\" was not reached", measurements.label(name)));
            }
        }
    }
    let cost = match kind {
        "fast-settled" => Cost::Settled,
        _ => Cost::Acknowledged,
    };
    let estimate = measurements
        .ratio(reference, arm, cost)
        .ok_or_else(|| format!("{arm} and {reference} cannot be compared"))?;
    if kind == "factor" {
        let interval = estimate
            .interval
            .ok_or_else(|| format!("one round is not enough to judge {arm}"))?;
        return Ok(format!(
            "{} ({} to {})",
            format_ratio(1.0 / estimate.ratio),
            format_ratio(1.0 / interval.high),
            format_ratio(1.0 / interval.low)
        ));
    }
    let ratio = format_ratio(estimate.ratio);
    let judged = judgements.compared(reference, arm, cost);
    Ok(
        match judged.map_or(Verdict::NotSureYet, |(_, verdict)| *verdict) {
            Verdict::Faster => format!("{ratio} times as fast as"),
            Verdict::Slower => format!("only {ratio} times as fast as"),
            Verdict::NoDifferenceWorthHaving => "about as fast as".to_owned(),
            Verdict::NotSureYet => "not clearly faster or slower than".to_owned(),
        },
    )
}

fn space(arm: &str, reference: &str, measurements: &Measurements<'_>) -> Option<String> {
    let ratio = measurements.space_ratio(arm, reference)?;
    let percent = ((ratio - 1.0) * 100.0).round() as i64;
    Some(match percent {
        0 => "as much disk as".to_owned(),
        less if less < 0 => format!("{}% less disk than", -less),
        more => format!("{more}% more disk than"),
    })
}
