//! Claims: published sentences, judged by the intervals of a run. A claim holds only if the whole
//! interval of its ratio, widened by the noise floor, is where the sentence puts it. The sentences of a
//! suite are judged together, as comparisons are: see [`judge_together`](crate::verdict::judge_together).

use crate::measurements::{ArmStatus, Cost, Measurements};
use crate::statistics::{DEFAULT_CONFIDENCE, FEWEST_ROUNDS, Interval, RatioEstimate, holm};
use crate::suite::{Claim, ClaimQuantity};

/// A claim and what became of it.
#[derive(Debug, Clone)]
pub struct ClaimResult {
    /// The claim.
    pub claim: Claim,
    /// The ratio that was measured, if it was.
    pub ratio: Option<f64>,
    /// Its interval; sizes on disk have none, they are counted.
    pub interval: Option<Interval>,
    /// Whether the sentence holds.
    pub judgement: Judgement,
}

/// Whether a sentence holds on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Judgement {
    /// The whole interval is where the sentence puts it.
    Holds,
    /// The whole interval is elsewhere.
    DoesNotHold,
    /// The interval reaches across the border.
    NotSure,
    /// There is no figure, for this reason.
    NotMeasured(String),
}

/// Judges claims by the figures of a run.
#[must_use]
pub fn judge_claims(claims: &[Claim], measurements: &Measurements<'_>) -> Vec<ClaimResult> {
    let (mut results, rates): (Vec<ClaimResult>, Vec<Option<f64>>) = claims
        .iter()
        .map(|claim| match claim.of {
            ClaimQuantity::Space => (of_space(claim, measurements), None),
            ClaimQuantity::Time => of_time(claim, measurements),
        })
        .unzip();
    let stands = holm(&rates, 1.0 - DEFAULT_CONFIDENCE);
    for ((result, rate), stands) in results.iter_mut().zip(rates).zip(stands) {
        if rate.is_some() && !stands {
            result.judgement = Judgement::NotSure;
        }
    }
    results
}

/// Space is counted: it has no interval, and leaves nothing unsure.
fn of_space(claim: &Claim, measurements: &Measurements<'_>) -> ClaimResult {
    let ratio = measurements.space_ratio(&claim.numerator, &claim.denominator);
    let judgement = match ratio {
        None => Judgement::NotMeasured(missing(claim, measurements)),
        Some(ratio) if lies_beyond(claim, ratio.ln()) >= 0.0 => Judgement::Holds,
        Some(_) => Judgement::DoesNotHold,
    };
    ClaimResult {
        claim: claim.clone(),
        ratio,
        interval: None,
        judgement,
    }
}

/// The judgement that a ratio of times tends to, with the smallest error rate at which its interval
/// gives it; `None` where nothing is to be judged.
fn of_time(claim: &Claim, measurements: &Measurements<'_>) -> (ClaimResult, Option<f64>) {
    let estimate = measurements.ratio(&claim.numerator, &claim.denominator, Cost::Acknowledged);
    let leaning = estimate
        .as_ref()
        .and_then(|estimate| lean(claim, estimate, measurements));
    let judgement = match (&estimate, &leaning) {
        (None, _) => Judgement::NotMeasured(missing(claim, measurements)),
        (Some(_), None) => Judgement::NotSure,
        (Some(_), Some((judgement, _))) => judgement.clone(),
    };
    let result = ClaimResult {
        claim: claim.clone(),
        ratio: estimate.as_ref().map(|estimate| estimate.ratio),
        interval: estimate.and_then(|estimate| estimate.interval),
        judgement,
    };
    (result, leaning.map(|(_, error_rate)| error_rate))
}

/// `None` where nothing can be judged: few rounds say little about their own uncertainty, nor does a
/// group without its twin.
fn lean(
    claim: &Claim,
    estimate: &RatioEstimate,
    measurements: &Measurements<'_>,
) -> Option<(Judgement, f64)> {
    if estimate.rounds < FEWEST_ROUNDS as usize {
        return None;
    }
    let inside = lies_beyond(claim, estimate.ratio.ln());
    let judgement = if inside >= 0.0 {
        Judgement::Holds
    } else {
        Judgement::DoesNotHold
    };
    let margin = noise_floor(claim, measurements)?.ln_1p();
    let error_rate = estimate.error_rate_at(inside.abs() - margin)?;
    Some((judgement, error_rate))
}

/// How far inside its claim's borders the logarithm of a ratio lies; below 0 outside of them.
fn lies_beyond(claim: &Claim, logarithm: f64) -> f64 {
    let above = claim
        .at_least
        .map_or(f64::INFINITY, |least| logarithm - least.max(0.0).ln());
    let below = claim
        .at_most
        .map_or(f64::INFINITY, |most| most.max(0.0).ln() - logarithm);
    above.min(below)
}

/// The larger of the noise floors of the groups that the two arms are in.
fn noise_floor(claim: &Claim, measurements: &Measurements<'_>) -> Option<f64> {
    let of = |arm: &str| measurements.noise_floor_of(arm, Cost::Acknowledged);
    Some(of(&claim.numerator)?.max(of(&claim.denominator)?))
}

fn missing(claim: &Claim, measurements: &Measurements<'_>) -> String {
    for arm in [&claim.numerator, &claim.denominator] {
        match measurements.status(arm) {
            ArmStatus::Measured => {}
            ArmStatus::Failed(reason) => {
                return format!("\"{}\" failed: {reason}", measurements.label(arm));
            }
            ArmStatus::Skipped(reason) => {
                return format!("\"{}\" was skipped: {reason}", measurements.label(arm));
            }
            ArmStatus::NotReached => {
                let label = measurements.label(arm);
                return format!("the run ended before \"{label}\" was measured");
            }
        }
    }
    match claim.of {
        ClaimQuantity::Space => "the space that they take is not known".to_owned(),
        ClaimQuantity::Time => "too few rounds".to_owned(),
    }
}
