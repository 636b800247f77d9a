//! Intervals, and the t-interval of a mean.
//!
//! What the values are (logarithms, times, ratios) is left to the callers.

use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, StudentsT};

use super::describe::{all_finite, finite, mean, sample_variance};

/// The numbers from `low` to `high`, both included.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The lower end, in the unit of what was estimated.
    pub low: f64,
    /// The upper end, not below `low`.
    pub high: f64,
}

impl Interval {
    /// Whether `value` lies inside or on an end.
    #[cfg(test)]
    pub(super) fn contains(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }

    /// Whether every number of this interval is in `outer` too.
    pub fn lies_within(&self, outer: &Interval) -> bool {
        outer.low <= self.low && self.high <= outer.high
    }

    /// For an interval of ratios: half the width on the logarithmic scale, as a fraction;
    /// sqrt(high / low) - 1. It is 0.02 for "+-2%", and what a stopping rule looks at: unlike the
    /// ratio's own position it says nothing about which arm wins.
    pub fn relative_half_width(&self) -> f64 {
        exp_bounded((self.high.ln() - self.low.ln()) / 2.0) - 1.0
    }

    /// From the interval of a logarithm to that of the ratio.
    pub(crate) fn exp(&self) -> Interval {
        Interval {
            low: exp_bounded(self.low),
            high: exp_bounded(self.high),
        }
    }
}

/// The mean of a few values and how well it is known.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct MeanEstimate {
    /// The arithmetic mean, in the unit of the values.
    pub mean: f64,
    /// s / sqrt(n), in the unit of the values.
    pub standard_error: f64,
    /// mean +- t * standard_error.
    pub interval: Interval,
}

/// The mean of `values` with its t-interval: mean +- t(1 - alpha/2, n - 1) * s / sqrt(n), where
/// confidence = 1 - alpha (Student, "The probable error of a mean", Biometrika 6(1), 1908).
///
/// `None` for fewer than two values, for one that is not finite, for a result that would not be, and
/// for a confidence that is not between 0 and 1.
pub fn t_interval(values: &[f64], confidence: f64) -> Option<MeanEstimate> {
    if values.len() < 2 || !all_finite(values) {
        return None;
    }
    let standard_error = (sample_variance(values)? / values.len() as f64).sqrt();
    around(
        mean(values)?,
        standard_error,
        (values.len() - 1) as f64,
        confidence,
    )
}

/// A mean with a known standard error and degrees of freedom; `None` for what is not finite.
pub(super) fn around(
    mean: f64,
    standard_error: f64,
    degrees_of_freedom: f64,
    confidence: f64,
) -> Option<MeanEstimate> {
    let reach = finite(student_t(confidence, degrees_of_freedom)? * standard_error)?;
    Some(MeanEstimate {
        mean: finite(mean)?,
        standard_error,
        interval: Interval {
            low: finite(mean - reach)?,
            high: finite(mean + reach)?,
        },
    })
}

/// The two-sided quantile of Student's distribution: t so that |T| <= t has the probability
/// `confidence`.
pub(super) fn student_t(confidence: f64, degrees_of_freedom: f64) -> Option<f64> {
    if !is_confidence(confidence) {
        return None;
    }
    let distribution = StudentsT::new(0.0, 1.0, degrees_of_freedom).ok()?;
    finite(distribution.inverse_cdf(f64::midpoint(1.0, confidence)))
}

/// P(|T| > t) for Student's distribution, t not below 0; 0 for an infinite t (no scatter at all).
pub(super) fn chance_beyond(t: f64, degrees_of_freedom: f64) -> Option<f64> {
    if t == f64::INFINITY {
        return Some(0.0);
    }
    let t = finite(t)?;
    let distribution = StudentsT::new(0.0, 1.0, degrees_of_freedom).ok()?;
    // The lower tail: 1 - cdf would lose what is small.
    finite(2.0 * distribution.cdf(-t))
}

pub(super) fn is_confidence(confidence: f64) -> bool {
    0.0 < confidence && confidence < 1.0
}

/// e^x, held between 10^-304 and 10^304: an interval over two rounds can be absurdly wide, and is
/// still to be compared and stored as numbers.
pub(super) fn exp_bounded(logarithm: f64) -> f64 {
    logarithm.clamp(-700.0, 700.0).exp()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn quantiles_are_those_of_the_printed_tables() {
        // Two-sided points of Student's t: NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.2
        // (three decimals there; here from R's qt, which agrees).
        for (confidence, freedom, t) in [
            (0.95, 1.0, 12.706_205),
            (0.95, 2.0, 4.302_653),
            (0.95, 7.0, 2.364_624),
            (0.95, 8.0, 2.306_004),
            (0.95, 30.0, 2.042_272),
            (0.95, 100.0, 1.983_972),
            (0.95, 1_000.0, 1.962_339),
            (0.90, 7.0, 1.894_579),
            (0.99, 7.0, 3.499_483),
            (0.999, 7.0, 5.407_883),
            (0.999, 30.0, 3.645_959),
        ] {
            let found = student_t(confidence, freedom).expect("a quantile");
            assert!(
                (found - t).abs() < 2e-6,
                "{confidence} {freedom}: {found} {t}"
            );
        }
        // Beyond any number of rounds that will ever be run, accuracy wanes.
        let normal = student_t(0.95, 1e6).expect("a quantile");
        assert!((normal - 1.959_966).abs() < 2e-4, "{normal}");
    }

    #[test]
    fn chances_are_the_inverse_of_the_quantiles() {
        for (t, freedom, chance) in [
            (2.364_624, 7.0, 0.05),
            (3.499_483, 7.0, 0.01),
            (5.407_883, 7.0, 0.001),
            (12.706_205, 1.0, 0.05),
            (0.0, 7.0, 1.0),
        ] {
            let found = chance_beyond(t, freedom).expect("a chance");
            assert!((found - chance).abs() < 1e-6, "{t} {freedom}: {found}");
        }
        assert_eq!(chance_beyond(f64::INFINITY, 7.0), Some(0.0));
        assert_eq!(chance_beyond(f64::NAN, 7.0), None);
    }

    #[test]
    fn worked_t_interval() {
        // 2, 4, 4, 4, 5, 5, 7, 9: mean 5, variance 32/7, standard error sqrt(4/7) = 0.755929,
        // t(0.975, 7) = 2.364624, reach 1.787488.
        let estimate =
            t_interval(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0], 0.95).expect("an interval");
        assert_eq!(estimate.mean, 5.0);
        assert!((estimate.standard_error - 0.755_929).abs() < 1e-6);
        assert!((estimate.interval.low - 3.212_512).abs() < 1e-5);
        assert!((estimate.interval.high - 6.787_488).abs() < 1e-5);
    }

    #[test]
    fn without_two_good_values_there_is_no_interval() {
        assert_eq!(t_interval(&[], 0.95), None);
        assert_eq!(t_interval(&[1.0], 0.95), None);
        assert_eq!(t_interval(&[1.0, f64::NAN], 0.95), None);
        for confidence in [0.0, 1.0, -1.0, 2.0, f64::NAN] {
            assert_eq!(t_interval(&[1.0, 2.0], confidence), None);
        }
        let equal = t_interval(&[3.0, 3.0, 3.0], 0.95).expect("an interval");
        assert_eq!((equal.interval.low, equal.interval.high), (3.0, 3.0));
    }

    #[test]
    fn intervals_contain() {
        let interval = Interval {
            low: 1.0,
            high: 2.0,
        };
        let above = Interval {
            low: 2.0,
            high: 3.0,
        };
        let within = Interval {
            low: 2.5,
            high: 3.0,
        };
        assert!(interval.contains(1.0) && interval.contains(2.0) && !interval.contains(2.1));
        assert!(!interval.contains(f64::NAN));
        assert!(within.lies_within(&above) && !above.lies_within(&within));
        assert!((interval.relative_half_width() - (2.0f64.sqrt() - 1.0)).abs() < 1e-12);
    }

    proptest! {
        #[test]
        fn any_bits_give_finite_ends_or_none(bits: Vec<u64>, confidence: f64) {
            let values: Vec<f64> = bits.into_iter().map(f64::from_bits).collect();
            if let Some(estimate) = t_interval(&values, confidence) {
                prop_assert!(estimate.interval.low.is_finite() && estimate.interval.high.is_finite());
                prop_assert!(estimate.interval.contains(estimate.mean));
            }
        }

        #[test]
        fn every_quantile_is_finite(confidence in 1e-9..0.999_999_9f64, freedom in 1.0..1e7f64) {
            let t = student_t(confidence, freedom);
            prop_assert!(t.is_some_and(|t| t >= 0.0), "{t:?}");
        }
    }
}
