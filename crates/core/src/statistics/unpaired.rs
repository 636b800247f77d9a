//! Arms that were measured apart: in different groups of a run, or in different runs.
//!
//! For claims such as "reads are so many times as fast as writes". Without pairs the drift of the
//! machine stays in the ratio; two arms that took turns belong into [`compare`](super::compare).

use super::comparison::{ComparisonError, RatioEstimate, is_believable};
use super::describe::{mean, sample_variance};
use super::interval::{MeanEstimate, around, exp_bounded, is_confidence};

/// Compares two arms by their round values, in nanoseconds per operation (one figure for each round,
/// such as the median of its slices).
///
/// With u and v the natural logarithms of the round values, n and m of them, and s the sample standard
/// deviation of each:
/// - ratio = exp(mean u - mean v);
/// - a = s_u^2 / n, b = s_v^2 / m; interval: exp(mean u - mean v +- t(1 - alpha/2, f) * sqrt(a + b));
/// - f = (a + b)^2 / (a^2 / (n - 1) + b^2 / (m - 1)).
///
/// Sources: B. L. Welch, "The generalization of Student's problem when several different population
/// variances are involved", Biometrika 34, 1947; F. E. Satterthwaite, "An approximate distribution of
/// estimates of variance components", Biometrics Bulletin 2(6), 1946. Reads and writes do not scatter
/// alike, so their variances are not pooled.
///
/// # Errors
/// [`NoSlices`](ComparisonError::NoSlices) if one side is empty, [`BadRound`](ComparisonError::BadRound)
/// for the first value that is no time (the reference's are looked at first),
/// [`BadConfidence`](ComparisonError::BadConfidence).
pub fn unpaired(
    reference_ns: &[f64],
    arm_ns: &[f64],
    confidence: f64,
) -> Result<RatioEstimate, ComparisonError> {
    if !is_confidence(confidence) {
        return Err(ComparisonError::BadConfidence { confidence });
    }
    let reference = logarithms(reference_ns)?;
    let arm = logarithms(arm_ns)?;
    let (Some(reference_mean), Some(arm_mean)) = (mean(&reference), mean(&arm)) else {
        return Err(ComparisonError::NoSlices);
    };
    let difference = reference_mean - arm_mean;
    let found = with_freedom(&reference, &arm, confidence);
    let plain_mean_ns = |values_ns: &[f64]| values_ns.iter().sum::<f64>() / values_ns.len() as f64;
    Ok(RatioEstimate {
        paired: false,
        ratio: exp_bounded(difference),
        interval: found.map(|(estimate, _)| estimate.interval.exp()),
        confidence,
        standard_error: found.map(|(estimate, _)| estimate.standard_error),
        degrees_of_freedom: found.map(|(_, freedom)| freedom),
        rounds: reference.len().min(arm.len()),
        slices: 0,
        ratio_of_totals: plain_mean_ns(reference_ns) / plain_mean_ns(arm_ns),
        round_values: Vec::new(),
        variance_between_rounds: None,
        variance_within_rounds: None,
    })
}

/// Mean of `one` minus mean of `other` with Welch's interval, for values of any kind (logarithms
/// mostly); formula and sources stand at [`unpaired`].
///
/// `None` for fewer than two values on a side, for one that is not finite, and for a confidence that
/// is not between 0 and 1.
pub fn difference_of_means(one: &[f64], other: &[f64], confidence: f64) -> Option<MeanEstimate> {
    with_freedom(one, other, confidence).map(|(found, _)| found)
}

/// As [`difference_of_means`], with the degrees of freedom.
fn with_freedom(one: &[f64], other: &[f64], confidence: f64) -> Option<(MeanEstimate, f64)> {
    let variances = (sample_variance(one)?, sample_variance(other)?);
    let (standard_error, freedom) = welch(variances, (one.len(), other.len()));
    let difference = mean(one)? - mean(other)?;
    let found = around(difference, standard_error, freedom, confidence)?;
    Some((found, freedom))
}

/// The standard error of a difference of means and its degrees of freedom.
fn welch(variances: (f64, f64), counts: (usize, usize)) -> (f64, f64) {
    let of_reference = variances.0 / counts.0 as f64;
    let of_arm = variances.1 / counts.1 as f64;
    let total = of_reference + of_arm;
    let (reference_freedom, arm_freedom) = ((counts.0 - 1) as f64, (counts.1 - 1) as f64);
    if total == 0.0 {
        return (0.0, reference_freedom + arm_freedom);
    }
    // Welch's formula divided through by (a + b)^2: squares of tiny variances would vanish.
    let share = of_reference / total;
    let freedom = 1.0 / (share.powi(2) / reference_freedom + (1.0 - share).powi(2) / arm_freedom);
    (total.sqrt(), freedom)
}

fn logarithms(values_ns: &[f64]) -> Result<Vec<f64>, ComparisonError> {
    values_ns
        .iter()
        .enumerate()
        .map(|(round, &ns)| {
            if is_believable(ns) {
                Ok(ns.ln())
            } else {
                Err(ComparisonError::BadRound { round, ns })
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn worked_values() {
        // Logarithms u = 1, 2, 3, 4 and v = 0, 0.5, 1: means 2.5 and 0.5, variances 5/3 and 1/4,
        // a = 5/12, b = 1/12, standard error sqrt(1/2) = 0.707107,
        // f = 0.25 / ((25/144) / 3 + (1/144) / 2) = 36 / (25/3 + 1/2) = 216/53 = 4.075472.
        let exp = |values: &[f64]| values.iter().map(|value| value.exp()).collect::<Vec<f64>>();
        let found = unpaired(&exp(&[1.0, 2.0, 3.0, 4.0]), &exp(&[0.0, 0.5, 1.0]), 0.95);
        let found = found.expect("an estimate");
        assert!((found.ratio.ln() - 2.0).abs() < 1e-12);
        let (standard_error, freedom) = welch((5.0 / 3.0, 0.25), (4, 3));
        assert!((standard_error - 0.5f64.sqrt()).abs() < 1e-12);
        assert!((freedom - 216.0 / 53.0).abs() < 1e-9);
        // Between t(0.975, 4) = 2.776 and t(0.975, 5) = 2.571, nearer to the first.
        let interval = found.interval.expect("an interval");
        let t = (interval.high.ln() - 2.0) / 0.5f64.sqrt();
        assert!((2.74..2.776).contains(&t), "{t}");
        assert!((interval.low.ln() + interval.high.ln() - 4.0).abs() < 1e-9);
    }

    #[test]
    fn without_two_rounds_on_both_sides_there_is_no_interval() {
        let found = unpaired(&[10.0], &[5.0, 5.5], 0.95).expect("an estimate");
        assert_eq!(
            (found.interval, found.rounds, found.paired),
            (None, 1, false)
        );
        assert!((found.ratio_of_totals - 10.0 / 5.25).abs() < 1e-12);
    }

    #[test]
    fn rounds_without_scatter_give_a_point() {
        let found = unpaired(&[10.0, 10.0], &[5.0, 5.0, 5.0], 0.95).expect("an estimate");
        let interval = found.interval.expect("an interval");
        assert!((found.ratio - 2.0).abs() < 1e-12 && interval.high - interval.low < 1e-12);
    }

    #[test]
    fn what_cannot_be_true_is_refused() {
        assert_eq!(unpaired(&[], &[1.0], 0.95), Err(ComparisonError::NoSlices));
        assert_eq!(unpaired(&[1.0], &[], 0.95), Err(ComparisonError::NoSlices));
        assert_eq!(
            unpaired(&[1.0, 0.0], &[1.0], 0.95),
            Err(ComparisonError::BadRound { round: 1, ns: 0.0 })
        );
        assert!(unpaired(&[1.0], &[f64::NAN], 0.95).is_err());
        assert!(matches!(
            unpaired(&[1.0], &[1.0], 1.0),
            Err(ComparisonError::BadConfidence { .. })
        ));
    }

    proptest! {
        #[test]
        fn changing_places_and_units_behaves(
            one in proptest::collection::vec(1.0..1e9f64, 1..9),
            other in proptest::collection::vec(1.0..1e9f64, 1..9),
            scale in 1e-3..1e3f64,
        ) {
            let scaled = |values: &[f64]| values.iter().map(|value| value * scale).collect::<Vec<f64>>();
            let found = unpaired(&one, &other, 0.95).expect("an estimate");
            let mirrored = unpaired(&scaled(&other), &scaled(&one), 0.95).expect("an estimate");
            prop_assert!((found.ratio.ln() + mirrored.ratio.ln()).abs() < 1e-9);
            if let (Some(interval), Some(mirror)) = (found.interval, mirrored.interval) {
                prop_assert!((interval.low.ln() + mirror.high.ln()).abs() < 1e-6);
                prop_assert!(interval.contains(found.ratio));
            }
        }
    }
}
