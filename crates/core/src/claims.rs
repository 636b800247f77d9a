//! Claims: published sentences, judged by the intervals of a run. A claim holds only if the whole
//! interval of its ratio is where the sentence puts it.

use crate::analysis::{ArmStatus, Cost, Figures};
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
pub fn judge_claims(claims: &[Claim], figures: &Figures<'_>) -> Vec<ClaimResult> {
    claims.iter().map(|claim| judge(claim, figures)).collect()
}

fn judge(claim: &Claim, figures: &Figures<'_>) -> ClaimResult {
    let measured = match claim.of {
        ClaimQuantity::Space => space_ratio(claim, figures).map(|ratio| (ratio, None)),
        ClaimQuantity::Time => figures
            .ratio(&claim.numerator, &claim.denominator, Cost::Acknowledged)
            .map(|estimate| (estimate.ratio, estimate.interval)),
    };
    let Some((ratio, interval)) = measured else {
        let reason = missing(claim, figures);
        return ClaimResult {
            claim: claim.clone(),
            ratio: None,
            interval: None,
            judgement: Judgement::NotMeasured(reason),
        };
    };
    let bounds = match (&interval, claim.of) {
        (Some(interval), _) => Some((interval.low, interval.high)),
        (None, ClaimQuantity::Space) => Some((ratio, ratio)),
        // One round says nothing about its own uncertainty.
        (None, ClaimQuantity::Time) => None,
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

fn space_ratio(claim: &Claim, figures: &Figures<'_>) -> Option<f64> {
    let footprints = &figures.run().footprints;
    let numerator = footprints.get(&claim.numerator)?;
    let denominator = footprints.get(&claim.denominator)?;
    (denominator.allocated_bytes > 0)
        .then(|| numerator.allocated_bytes as f64 / denominator.allocated_bytes as f64)
}

fn missing(claim: &Claim, figures: &Figures<'_>) -> String {
    for arm in [&claim.numerator, &claim.denominator] {
        match figures.status(arm) {
            ArmStatus::Measured => {}
            ArmStatus::Failed(reason) => {
                return format!("\"{}\" failed: {reason}", figures.label(arm));
            }
            ArmStatus::Skipped(reason) => {
                return format!("\"{}\" was skipped: {reason}", figures.label(arm));
            }
            ArmStatus::NotReached => {
                let label = figures.label(arm);
                return format!("the run ended before \"{label}\" was measured");
            }
        }
    }
    "too few rounds".to_owned()
}
