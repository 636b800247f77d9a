//! Conclusions: sentences of a suite whose figures follow from the intervals of a run. Where a
//! sentence needs `{fast:ARM|REFERENCE}`, what stands there in the end depends on the verdict, so
//! that the sentence stays true whatever was measured:
//!
//! - `{fast:ARM|REFERENCE}`: "1.7 times as fast as", "about as fast as", "only 0.8 times as fast
//!   as", or "not clearly faster or slower than";
//! - `{space:ARM|REFERENCE}`: "17% less disk than", "3% more disk than", "as much disk as";
//! - `{factor:ARM|REFERENCE}`: "1.9 (1.8 to 2.0)", the time of the arm divided by that of the
//!   reference, with its interval.
//!
//! A sentence whose arms were not measured is left out, and a line says so.

use crate::analysis::{ArmStatus, Cost, Figures};
use crate::plan::Plan;
use crate::units::format_ratio;
use crate::verdict::{DEFAULT_THRESHOLD, Verdict, judge};

/// Checks that the sentences of a plan can be filled in.
///
/// # Errors
/// Names the placeholder that cannot.
pub fn check(plan: &Plan) -> Result<(), String> {
    for sentence in &plan.conclusion {
        fill(sentence, &mut |kind, arm, reference| {
            if !["fast", "space", "factor"].contains(&kind) {
                return Err(format!("conclusion: there is no placeholder `{kind}`"));
            }
            for name in [arm, reference] {
                if plan.arm(name).is_none() {
                    return Err(format!("conclusion: there is no arm `{name}`"));
                }
            }
            Ok(String::new())
        })?;
    }
    Ok(())
}

/// Fills in the sentences with the figures of a run.
#[must_use]
pub fn conclude(sentences: &[String], figures: &Figures<'_>) -> Vec<String> {
    let mut conclusion = Vec::new();
    let mut missing: Vec<String> = Vec::new();
    for sentence in sentences {
        let filled = fill(sentence, &mut |kind, arm, reference| {
            phrase(kind, arm, reference, figures)
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

/// Replaces every `{kind:arm|reference}` by what `with` makes of it.
fn fill(
    sentence: &str,
    with: &mut dyn FnMut(&str, &str, &str) -> Result<String, String>,
) -> Result<String, String> {
    let mut filled = String::new();
    let mut rest = sentence;
    while let Some((before, after)) = rest.split_once('{') {
        filled.push_str(before);
        let bad = || format!("conclusion: `{{{after}` is no placeholder");
        let (inside, after) = after.split_once('}').ok_or_else(bad)?;
        let (kind, names) = inside.split_once(':').ok_or_else(bad)?;
        let (arm, reference) = names.split_once('|').ok_or_else(bad)?;
        filled.push_str(&with(kind, arm, reference)?);
        rest = after;
    }
    filled.push_str(rest);
    Ok(filled)
}

fn phrase(kind: &str, arm: &str, reference: &str, figures: &Figures<'_>) -> Result<String, String> {
    if kind == "space" {
        return space(arm, reference, figures)
            .ok_or_else(|| format!("the space of {arm} or {reference} is not known"));
    }
    for name in [arm, reference] {
        match figures.status(name) {
            ArmStatus::Measured => {}
            ArmStatus::Failed(reason) | ArmStatus::Skipped(reason) => {
                let label = figures.label(name);
                return Err(format!("\"{label}\" was not measured ({reason})"));
            }
            ArmStatus::NotReached => {
                return Err(format!("\"{}\" was not reached", figures.label(name)));
            }
        }
    }
    let estimate = figures
        .ratio(reference, arm, Cost::Acknowledged)
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
    let noise_floor = figures.noise_floor_of(arm, Cost::Acknowledged);
    Ok(match judge(&estimate, noise_floor, DEFAULT_THRESHOLD) {
        Verdict::Faster => format!("{ratio} times as fast as"),
        Verdict::Slower => format!("only {ratio} times as fast as"),
        Verdict::NoDifferenceWorthHaving => "about as fast as".to_owned(),
        Verdict::NotSureYet => "not clearly faster or slower than".to_owned(),
    })
}

fn space(arm: &str, reference: &str, figures: &Figures<'_>) -> Option<String> {
    let footprints = &figures.run().footprints;
    let arm = footprints.get(arm)?.allocated_bytes as f64;
    let reference = footprints.get(reference)?.allocated_bytes as f64;
    let percent = ((arm / reference - 1.0) * 100.0).round();
    if !percent.is_finite() {
        return None;
    }
    Some(match percent as i64 {
        0 => "as much disk as".to_owned(),
        less if less < 0 => format!("{}% less disk than", -less),
        more => format!("{more}% more disk than"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_found_and_bad_ones_are_named() {
        let mut seen = Vec::new();
        let filled = fill(
            "a {fast:b|c} d {factor:e|f}.",
            &mut |kind, arm, reference| {
                seen.push(format!("{kind} {arm} {reference}"));
                Ok("X".to_owned())
            },
        );
        assert_eq!(filled.as_deref(), Ok("a X d X."));
        assert_eq!(seen, ["fast b c", "factor e f"]);
        assert!(fill("{fast b}", &mut |_, _, _| Ok(String::new())).is_err());
        assert!(fill("{fast:b|c", &mut |_, _, _| Ok(String::new())).is_err());
    }
}
