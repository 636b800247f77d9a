//! The ratio of two means that were measured together, with Fieller's interval: for shares, whose
//! denominator is itself a difference and may not be known well.
//!
//! E. C. Fieller, "Some problems in interval estimation", Journal of the Royal Statistical Society
//! B 16(2), 1954. Unlike an interval from the spread of the single ratios it stays right where a
//! denominator comes close to zero in some round: it then has no ends, and none are given.

use super::describe::{all_finite, finite, mean};
use super::interval::{Interval, student_t};

/// A ratio of two means.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RatioOfMeans {
    /// Mean of the numerators divided by the mean of the denominators.
    pub ratio: f64,
    /// Where it lies; `None` if the denominator cannot be told from zero.
    pub interval: Option<Interval>,
}

/// The ratio of the means of pairs (numerator, denominator), one pair a round.
///
/// `None` for fewer than two pairs, for values that are not finite, for a denominator of zero, and
/// for a confidence that is not between 0 and 1.
#[must_use]
pub fn ratio_of_means(pairs: &[(f64, f64)], confidence: f64) -> Option<RatioOfMeans> {
    let (numerators, denominators): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
    if pairs.len() < 2 || !all_finite(&numerators) || !all_finite(&denominators) {
        return None;
    }
    let count = pairs.len() as f64;
    let (above, below) = (mean(&numerators)?, mean(&denominators)?);
    let ratio = finite(above / below)?;
    // Variances and covariance of the means.
    let scatter = |left: &[f64], left_mean: f64, right: &[f64], right_mean: f64| {
        let products = left.iter().zip(right);
        let products = products.map(|(left, right)| (left - left_mean) * (right - right_mean));
        products.sum::<f64>() / (count - 1.0) / count
    };
    let above_variance = scatter(&numerators, above, &numerators, above);
    let below_variance = scatter(&denominators, below, &denominators, below);
    let covariance = scatter(&numerators, above, &denominators, below);
    let t = student_t(confidence, count - 1.0)?;
    Some(RatioOfMeans {
        ratio,
        interval: ends(
            (above, below),
            (above_variance, below_variance, covariance),
            t,
        ),
    })
}

/// The two ratios r for which `above - r * below` lies t standard errors from zero.
fn ends(
    (above, below): (f64, f64),
    (above_variance, below_variance, covariance): (f64, f64, f64),
    t: f64,
) -> Option<Interval> {
    let square = t * t;
    let a = below * below - square * below_variance;
    if a <= 0.0 {
        return None;
    }
    let b = above * below - square * covariance;
    let c = above * above - square * above_variance;
    let reach = (b * b - a * c).max(0.0).sqrt();
    Some(Interval {
        low: finite((b - reach) / a)?,
        high: finite((b + reach) / a)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_worked_interval() {
        // Numerators 2, 3, 4: mean 3, variance of the mean 1/3. Denominators 10, 10, 10: no
        // scatter, so the interval is the t-interval divided by 10: t(0.975, 2) = 4.302653.
        let found = ratio_of_means(&[(2.0, 10.0), (3.0, 10.0), (4.0, 10.0)], 0.95);
        let found = found.expect("a ratio");
        let interval = found.interval.expect("an interval");
        let reach = 4.302_653 * (1.0f64 / 3.0).sqrt() / 10.0;
        assert!((found.ratio - 0.3).abs() < 1e-12);
        assert!((interval.low - (0.3 - reach)).abs() < 1e-6, "{interval:?}");
        assert!((interval.high - (0.3 + reach)).abs() < 1e-6, "{interval:?}");
    }

    #[test]
    fn what_scatters_together_drops_out() {
        let pairs: Vec<(f64, f64)> = (1..=8)
            .map(|round| (3.0 * f64::from(round), 10.0 * f64::from(round)))
            .collect();
        let found = ratio_of_means(&pairs, 0.95).expect("a ratio");
        let interval = found.interval.expect("an interval");
        assert!((interval.low - 0.3).abs() < 1e-6 && (interval.high - 0.3).abs() < 1e-6);
    }

    #[test]
    fn a_denominator_that_may_be_zero_gives_no_ends() {
        let found = ratio_of_means(&[(1.0, 5.0), (1.0, -4.0), (1.0, 2.0)], 0.95);
        assert_eq!(found.expect("a ratio").interval, None);
        assert_eq!(ratio_of_means(&[(1.0, 0.0), (1.0, 0.0)], 0.95), None);
        assert_eq!(ratio_of_means(&[(1.0, 2.0)], 0.95), None);
        assert_eq!(ratio_of_means(&[(1.0, 2.0), (f64::NAN, 2.0)], 0.95), None);
    }

    proptest! {
        #[test]
        fn the_ratio_lies_within_its_interval(
            pairs in proptest::collection::vec((-100.0..100.0f64, 50.0..60.0f64), 3..20),
        ) {
            let found = ratio_of_means(&pairs, 0.95).expect("a ratio");
            if let Some(interval) = found.interval {
                prop_assert!(interval.low <= found.ratio + 1e-9 && found.ratio <= interval.high + 1e-9);
            }
        }
    }
}
