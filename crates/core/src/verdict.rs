//! The four words that a comparison can end in, and the rule that chooses one.
//!
//! Estimates and the noise floor come from [`statistics`](crate::statistics); when to stop measuring,
//! and what a user is told, is left to others. Judge once, when measuring is over: a verdict that is
//! looked at after every round until it pleases is wrong far more often than its interval says.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::statistics::{Interval, RatioEstimate};

/// The smallest difference that is worth having unless something else is asked for: 3%.
pub const DEFAULT_THRESHOLD: f64 = 0.03;

/// What can be said of an arm, seen from the reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The arm takes less time than the reference, by more than noise and threshold.
    Faster,
    /// The arm takes more time than the reference, by more than noise and threshold.
    Slower,
    /// If there is a difference it is below the threshold.
    NoDifferenceWorthHaving,
    /// What was measured does not decide it; more rounds may, or a quieter machine.
    NotSureYet,
}

impl fmt::Display for Verdict {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Verdict::Faster => "faster",
            Verdict::Slower => "slower",
            Verdict::NoDifferenceWorthHaving => "no difference worth having",
            Verdict::NotSureYet => "not sure yet",
        })
    }
}

/// The verdict on a comparison, paired or not; see [`judge_interval`].
pub fn judge(estimate: &RatioEstimate, noise_floor: Option<f64>, threshold: f64) -> Verdict {
    judge_interval(estimate.interval, noise_floor, threshold)
}

/// The verdict that the interval of a ratio allows.
///
/// The ratio says how many times as fast as the reference the arm is (reference time / arm time). Noise
/// floor and threshold are fractions: 0.03 stands for the factors from 1 / 1.03 to 1.03, alike in both
/// directions, so that the verdict on swapped arms is the opposite one.
///
/// - **faster**: the whole interval is above 1 + max(noise floor, threshold);
/// - **slower**: the whole interval is below 1 / (1 + max(noise floor, threshold));
/// - **no difference worth having**: the whole interval, ends included, is within the threshold, *and*
///   so is the noise floor;
/// - **not sure yet**: everything else; also without an interval, or when the noise floor is not known.
///
/// Faster and slower are claims of a difference larger than a margin, not merely other than zero. No
/// difference worth having is an equivalence test by inclusion of the interval (D. J. Schuirmann, "A
/// comparison of the two one-sided tests procedure and the power approach for assessing the equivalence
/// of average bioavailability", Journal of Pharmacokinetics and Biopharmaceutics 15(6), 1987); with a
/// 95% interval it is wrong at most 2.5 times in 100, stricter than the usual 5. It is never concluded
/// from the lack of a visible difference.
///
/// The noise floor does not widen the margin of that claim. If identical arms can differ by 5% here, an
/// interval inside 5% has not shown that the difference is below a threshold of 3%; nor has a narrower
/// one, as it may be off by as much as the twin was. A floor above the threshold therefore leaves only
/// faster, slower, and not sure yet. At threshold 0 no difference is too small to have.
///
/// A threshold or noise floor that is negative or not finite gives "not sure yet".
pub fn judge_interval(
    interval: Option<Interval>,
    noise_floor: Option<f64>,
    threshold: f64,
) -> Verdict {
    let (Some(interval), Some(noise_floor)) = (interval, noise_floor) else {
        return Verdict::NotSureYet;
    };
    let is_fraction = |value: f64| value.is_finite() && value >= 0.0;
    if !is_fraction(noise_floor) || !is_fraction(threshold) {
        return Verdict::NotSureYet;
    }
    let margin = 1.0 + noise_floor.max(threshold);
    let alike = Interval {
        low: 1.0 / (1.0 + threshold),
        high: 1.0 + threshold,
    };
    if interval.low > margin {
        Verdict::Faster
    } else if interval.high < 1.0 / margin {
        Verdict::Slower
    } else if noise_floor <= threshold && interval.lies_within(&alike) {
        Verdict::NoDifferenceWorthHaving
    } else {
        Verdict::NotSureYet
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn verdict(low: f64, high: f64, noise_floor: f64, threshold: f64) -> Verdict {
        judge_interval(Some(Interval { low, high }), Some(noise_floor), threshold)
    }

    #[test]
    fn each_verdict_has_its_place() {
        assert_eq!(verdict(1.04, 1.10, 0.02, 0.03), Verdict::Faster);
        assert_eq!(verdict(0.90, 0.96, 0.02, 0.03), Verdict::Slower);
        assert_eq!(
            verdict(0.98, 1.02, 0.02, 0.03),
            Verdict::NoDifferenceWorthHaving
        );
        assert_eq!(verdict(1.02, 1.10, 0.02, 0.03), Verdict::NotSureYet);
        assert_eq!(verdict(0.90, 1.10, 0.02, 0.03), Verdict::NotSureYet);
    }

    #[test]
    fn nothing_is_claimed_inside_the_noise_floor() {
        assert_eq!(verdict(1.04, 1.06, 0.08, 0.03), Verdict::NotSureYet);
        assert_eq!(verdict(0.94, 0.96, 0.08, 0.03), Verdict::NotSureYet);
        assert_eq!(verdict(0.99, 1.01, 0.08, 0.03), Verdict::NotSureYet);
        assert_eq!(verdict(1.09, 1.12, 0.08, 0.03), Verdict::Faster);
        assert_eq!(verdict(1.0301, 1.10, 0.0, 0.03), Verdict::Faster);
        assert_eq!(verdict(1.03, 1.10, 0.0, 0.03), Verdict::NotSureYet);
    }

    #[test]
    fn at_threshold_zero_no_difference_is_too_small() {
        assert_eq!(verdict(1.0001, 1.0002, 0.0, 0.0), Verdict::Faster);
        assert_eq!(verdict(0.9999, 1.0001, 0.001, 0.0), Verdict::NotSureYet);
    }

    #[test]
    fn what_is_not_known_gives_no_verdict() {
        let interval = Some(Interval {
            low: 2.0,
            high: 3.0,
        });
        assert_eq!(judge_interval(None, Some(0.01), 0.03), Verdict::NotSureYet);
        assert_eq!(judge_interval(interval, None, 0.03), Verdict::NotSureYet);
        for broken in [f64::NAN, -0.01, f64::INFINITY] {
            assert_eq!(
                judge_interval(interval, Some(broken), 0.03),
                Verdict::NotSureYet
            );
            assert_eq!(
                judge_interval(interval, Some(0.01), broken),
                Verdict::NotSureYet
            );
        }
    }

    #[test]
    fn words_are_those_of_the_documentation() {
        let all = [
            (Verdict::Faster, "faster"),
            (Verdict::Slower, "slower"),
            (
                Verdict::NoDifferenceWorthHaving,
                "no difference worth having",
            ),
            (Verdict::NotSureYet, "not sure yet"),
        ];
        for (verdict, words) in all {
            assert_eq!(verdict.to_string(), words);
            let stored = serde_json::to_string(&verdict).expect("written");
            assert_eq!(stored, format!("\"{}\"", words.replace(' ', "-")));
            assert_eq!(
                serde_json::from_str::<Verdict>(&stored).expect("read"),
                verdict
            );
        }
        assert_eq!(format!("{:>8}", Verdict::Faster), "  faster");
    }

    proptest! {
        #[test]
        fn swapped_arms_get_the_opposite_verdict(
            low in 0.5..2.0f64,
            factor in 1.0..1.2f64,
            noise_floor in 0.0..0.1f64,
            threshold in 0.0..0.1f64,
        ) {
            let high = low * factor;
            let opposite = match verdict(low, high, noise_floor, threshold) {
                Verdict::Faster => Verdict::Slower,
                Verdict::Slower => Verdict::Faster,
                same => same,
            };
            prop_assert_eq!(verdict(1.0 / high, 1.0 / low, noise_floor, threshold), opposite);
        }

        #[test]
        fn more_noise_never_decides_anything(
            low in 0.5..2.0f64,
            factor in 1.0..1.2f64,
            noise_floor in 0.0..0.1f64,
            more in 0.0..0.1f64,
            threshold in 0.0..0.1f64,
        ) {
            let high = low * factor;
            let noisier = verdict(low, high, noise_floor + more, threshold);
            let quieter = verdict(low, high, noise_floor, threshold);
            prop_assert!(noisier == Verdict::NotSureYet || noisier == quieter);
        }
    }
}
