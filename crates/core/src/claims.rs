//! Claims: published sentences, judged by the intervals of a run. A claim holds only if the whole
//! interval of its ratio, widened by the noise floor, is where the sentence puts it.

use crate::measurements::{ArmStatus, Cost, Measurements};
use crate::statistics::Interval;
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
    claims
        .iter()
        .map(|claim| judge(claim, measurements))
        .collect()
}

fn judge(claim: &Claim, measurements: &Measurements<'_>) -> ClaimResult {
    let measured = match claim.of {
        ClaimQuantity::Space => measurements
            .space_ratio(&claim.numerator, &claim.denominator)
            .map(|ratio| (ratio, None)),
        ClaimQuantity::Time => measurements
            .ratio(&claim.numerator, &claim.denominator, Cost::Acknowledged)
            .map(|estimate| (estimate.ratio, estimate.interval)),
    };
    let Some((ratio, interval)) = measured else {
        let reason = missing(claim, measurements);
        return ClaimResult {
            claim: claim.clone(),
            ratio: None,
            interval: None,
            judgement: Judgement::NotMeasured(reason),
        };
    };
    let bounds = match claim.of {
        ClaimQuantity::Space => Some((ratio, ratio)),
        // One round says nothing about its own uncertainty, nor does a group without its twin.
        ClaimQuantity::Time => {
            interval
                .zip(noise_floor(claim, measurements))
                .map(|(interval, noise_floor)| {
                    let margin = 1.0 + noise_floor;
                    (interval.low / margin, interval.high * margin)
                })
        }
    };
    let judgement = bounds.map_or(Judgement::NotSure, |(low, high)| {
        let least = claim.at_least.unwrap_or(f64::NEG_INFINITY);
        let most = claim.at_most.unwrap_or(f64::INFINITY);
        if low >= least && high <= most {
            Judgement::Holds
        } else if high < least || low > most {
            Judgement::DoesNotHold
        } else {
            Judgement::NotSure
        }
    });
    ClaimResult {
        claim: claim.clone(),
        ratio: Some(ratio),
        interval,
        judgement,
    }
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
