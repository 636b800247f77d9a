//! The four words that a comparison can end in, and the rule that chooses one: for a comparison by
//! itself, and for many that are judged at once.
//!
//! Estimates and the noise floor come from [`statistics`](crate::statistics); when to stop measuring
//! is for [`stopping`](crate::stopping) to say, and what a user is told, for others. Judge once, when
//! measuring is over: a verdict that is looked at after every round until it pleases is wrong far more
//! often than its interval says.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::statistics::{DEFAULT_CONFIDENCE, FEWEST_ROUNDS, Interval, RatioEstimate, holm};

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

/// A comparison that is to be judged.
#[derive(Debug, Clone, Copy)]
pub struct Judged<'a> {
    /// Reference time / arm time with its interval, paired or not.
    pub estimate: &'a RatioEstimate,
    /// The noise floor that holds for it, as a share; `None` if it is not known.
    pub noise_floor: Option<f64>,
}

/// The verdict on one comparison by itself: [`judge_together`] with a family of one.
pub fn judge(estimate: &RatioEstimate, noise_floor: Option<f64>, threshold: f64) -> Verdict {
    let judged = Judged {
        estimate,
        noise_floor,
    };
    let verdicts = judge_together(&[judged], threshold);
    verdicts.first().copied().unwrap_or(Verdict::NotSureYet)
}

/// The verdicts on a family of comparisons that a reader sees together.
///
/// A ratio says how many times as fast as the reference an arm is (reference time / arm time). Noise
/// floor and threshold are shares: 0.03 stands for the factors from 1 / 1.03 to 1.03, alike in both
/// directions, so that the verdict on swapped arms is the opposite one.
///
/// - **faster**: the whole interval is above 1 + threshold, and the ratio itself is above 1 + noise
///   floor;
/// - **slower**: the whole interval is below 1 / (1 + threshold), and the ratio below 1 / (1 + floor);
/// - **no difference worth having**: the whole interval is within the threshold, *and* the noise floor
///   is no larger than it;
/// - **not sure yet**: everything else; also with fewer than [`FEWEST_ROUNDS`] rounds, without an
///   interval, or when the noise floor is not known, negative or not finite.
///
/// Faster and slower are claims of a difference larger than the threshold, not merely other than zero.
/// No difference worth having is an equivalence test by inclusion of the interval (D. J. Schuirmann, "A
/// comparison of the two one-sided tests procedure and the power approach for assessing the equivalence
/// of average bioavailability", Journal of Pharmacokinetics and Biopharmaceutics 15(6), 1987); with a
/// 95% interval it is wrong at most 2.5 times in 100, stricter than the usual 5. It is never concluded
/// from the lack of a visible difference.
///
/// # The noise floor
///
/// It is the farther end of the twin's interval, so it holds the twin's own uncertainty already. To ask
/// that the whole interval of the arm be beyond it too would count uncertainty twice: by simulation
/// (`statistics/simulation.rs`) such a rule misses at least three in ten of the slowdowns of twice the half
/// width that the rule as it stands finds, which already calls identical arms different less often than
/// one in fifty times.
/// A floor above the threshold leaves only faster, slower, and not sure yet: where identical arms may
/// differ by 5%, no interval shows that a difference is below 3%.
///
/// # Many at once
///
/// Of a hundred comparisons of identical arms by 95% intervals five would be called different. The
/// verdicts of a family are therefore given by Holm's procedure: each comparison has an error rate, the
/// smallest at which its interval still gives its verdict; in order of their error rates, the first of k
/// comparisons must have one of at most 0.05 / k, the next of 0.05 / (k - 1) and so on, and with the
/// first that has not, the verdicts end (S. Holm, "A simple sequentially rejective multiple test
/// procedure", Scandinavian Journal of Statistics 6(2), 1979). So the chance that any verdict of the
/// family is wrong is at most 5%, however the comparisons depend on one another (they share their
/// reference); and arms that are far apart do not cost those that are close their verdict, as they would
/// by Bonferroni's rule. For families of one this is the plain interval. Intervals that are shown are
/// those of one comparison.
pub fn judge_together(family: &[Judged<'_>], threshold: f64) -> Vec<Verdict> {
    let leanings: Vec<Option<Leaning>> = family
        .iter()
        .map(|judged| Leaning::of(judged, threshold))
        .collect();
    let rates: Vec<Option<f64>> = leanings
        .iter()
        .map(|leaning| Some(leaning.as_ref()?.error_rate))
        .collect();
    let stands = holm(&rates, 1.0 - DEFAULT_CONFIDENCE);
    leanings
        .into_iter()
        .zip(stands)
        .map(|(leaning, stands)| match leaning {
            Some(leaning) if stands => leaning.verdict,
            _ => Verdict::NotSureYet,
        })
        .collect()
}

/// The verdict that a comparison tends to, and how often it would be wrong.
struct Leaning {
    verdict: Verdict,
    /// Smallest error rate at which the interval gives the verdict; 1 if it never does.
    error_rate: f64,
}

impl Leaning {
    /// `None` where nothing can be judged.
    fn of(judged: &Judged<'_>, threshold: f64) -> Option<Self> {
        let Judged {
            estimate,
            noise_floor,
        } = judged;
        if estimate.rounds < FEWEST_ROUNDS as usize {
            return None;
        }
        let (verdict, distance) = lean(estimate.ratio.ln(), (*noise_floor)?, threshold)?;
        let error_rate = estimate.error_rate_at(distance);
        Some(Self {
            verdict,
            error_rate: error_rate?,
        })
    }
}

/// The verdict that the logarithm of a ratio tends to, and how far it is from the border of that
/// verdict: an interval that reaches less far supports it. Below 0 if the noise floor forbids it.
/// `None` for a floor or threshold that is no share.
fn lean(logarithm: f64, noise_floor: f64, threshold: f64) -> Option<(Verdict, f64)> {
    let is_share = |value: f64| value.is_finite() && value >= 0.0;
    if !is_share(noise_floor) || !is_share(threshold) {
        return None;
    }
    let (beyond, border) = (logarithm.abs(), threshold.ln_1p());
    let (verdict, distance, is_possible) = if beyond <= border {
        let verdict = Verdict::NoDifferenceWorthHaving;
        (verdict, border - beyond, noise_floor <= threshold)
    } else {
        let verdict = if logarithm > 0.0 {
            Verdict::Faster
        } else {
            Verdict::Slower
        };
        (verdict, beyond - border, beyond > noise_floor.ln_1p())
    };
    Some((verdict, if is_possible { distance } else { -1.0 }))
}

/// The verdict that an interval of a ratio allows, whatever its confidence and however many rounds it
/// is from: the rule of [`judge_together`] for those who correct by themselves. The ratio is the
/// interval's middle on the logarithmic scale.
pub fn judge_interval(
    interval: Option<Interval>,
    noise_floor: Option<f64>,
    threshold: f64,
) -> Verdict {
    let (Some(interval), Some(noise_floor)) = (interval, noise_floor) else {
        return Verdict::NotSureYet;
    };
    let (low, high) = (interval.low.ln(), interval.high.ln());
    match lean(f64::midpoint(low, high), noise_floor, threshold) {
        Some((verdict, distance)) if (high - low) / 2.0 < distance => verdict,
        _ => Verdict::NotSureYet,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// An estimate with this 95% interval from eight rounds.
    fn estimate(low: f64, high: f64) -> RatioEstimate {
        const T: f64 = 2.364_624_251_592_785;
        let (low_ln, high_ln) = (low.ln(), high.ln());
        RatioEstimate {
            paired: true,
            ratio: f64::midpoint(low_ln, high_ln).exp(),
            interval: Some(Interval { low, high }),
            confidence: 0.95,
            rounds: 8,
            slices: 8,
            ratio_of_totals: 1.0,
            round_values: Vec::new(),
            variance_between_rounds: None,
            variance_within_rounds: None,
            standard_error: Some((high_ln - low_ln) / 2.0 / T),
            degrees_of_freedom: Some(7.0),
        }
    }

    fn verdict(low: f64, high: f64, noise_floor: f64, threshold: f64) -> Verdict {
        let found = judge(&estimate(low, high), Some(noise_floor), threshold);
        let of_interval =
            judge_interval(Some(Interval { low, high }), Some(noise_floor), threshold);
        assert_eq!(found, of_interval, "{low} {high} {noise_floor} {threshold}");
        found
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
        // The ratio must be beyond the floor, the whole interval beyond the threshold.
        assert_eq!(verdict(1.06, 1.09, 0.08, 0.03), Verdict::NotSureYet);
        assert_eq!(verdict(1.06, 1.12, 0.08, 0.03), Verdict::Faster);
        assert_eq!(verdict(1.0301, 1.10, 0.0, 0.03), Verdict::Faster);
        assert_eq!(verdict(1.0299, 1.10, 0.0, 0.03), Verdict::NotSureYet);
    }

    #[test]
    fn at_threshold_zero_no_difference_is_too_small() {
        assert_eq!(verdict(1.0001, 1.0002, 0.0, 0.0), Verdict::Faster);
        assert_eq!(verdict(0.9999, 1.0001, 0.001, 0.0), Verdict::NotSureYet);
    }

    #[test]
    fn what_is_not_known_gives_no_verdict() {
        let sure = estimate(2.0, 3.0);
        assert_eq!(judge(&sure, Some(0.01), 0.03), Verdict::Faster);
        assert_eq!(judge(&sure, None, 0.03), Verdict::NotSureYet);
        assert_eq!(judge_interval(None, Some(0.01), 0.03), Verdict::NotSureYet);
        assert_eq!(
            judge_interval(sure.interval, None, 0.03),
            Verdict::NotSureYet
        );
        let without = RatioEstimate {
            interval: None,
            standard_error: None,
            ..estimate(2.0, 3.0)
        };
        assert_eq!(judge(&without, Some(0.01), 0.03), Verdict::NotSureYet);
        let few = RatioEstimate {
            rounds: 7,
            ..estimate(2.0, 3.0)
        };
        assert_eq!(judge(&few, Some(0.01), 0.03), Verdict::NotSureYet);
        for broken in [f64::NAN, -0.01, f64::INFINITY] {
            assert_eq!(judge(&sure, Some(broken), 0.03), Verdict::NotSureYet);
            assert_eq!(judge(&sure, Some(0.01), broken), Verdict::NotSureYet);
        }
    }

    #[test]
    fn holm_goes_on_while_the_next_is_sure_enough() {
        // 0.01 <= 0.05 / 4, 0.0125 <= 0.05 / 3, 0.03 > 0.05 / 2: neither it nor what follows stands.
        let rates = [Some(0.03), Some(0.01), None, Some(0.04), Some(0.0125)];
        assert_eq!(holm(&rates, 0.05), [false, true, false, false, true]);
        assert_eq!(holm(&[Some(0.05)], 0.05), [true]);
        assert_eq!(holm(&[Some(0.05), Some(0.05)], 0.05), [false, false]);
        assert_eq!(holm(&[Some(0.02), Some(0.05)], 0.05), [true, true]);
        assert!(holm(&[], 0.05).is_empty());
    }

    #[test]
    fn in_company_a_verdict_needs_more() {
        // Barely sure by itself: 95% and a little.
        let barely = estimate(1.031, 1.10);
        let far = estimate(2.0, 2.1);
        let judged = |estimate| Judged {
            estimate,
            noise_floor: Some(0.01),
        };
        assert_eq!(judge_together(&[judged(&barely)], 0.03), [Verdict::Faster]);
        assert_eq!(
            judge_together(&[judged(&barely), judged(&barely)], 0.03),
            [Verdict::NotSureYet; 2]
        );
        // What is far apart takes nothing away from the last one.
        assert_eq!(
            judge_together(&[judged(&far), judged(&barely), judged(&far)], 0.03),
            [Verdict::Faster; 3]
        );
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
