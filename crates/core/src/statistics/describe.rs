//! Location and spread of a handful of numbers.
//!
//! All functions answer `None` when there is nothing to answer with: too few values, or one that is
//! not finite. What to do about that is left to the callers.

/// Middle value, or the mean of the two middle ones.
pub fn median(values: &[f64]) -> Option<f64> {
    quantile(values, 0.5)
}

/// The value below which `probability` (0 to 1) of the values lie, linearly interpolated between
/// order statistics: with h = (n - 1) * probability, and x counted from zero in rising order,
/// x(floor h) + (h - floor h) * (x(floor h + 1) - x(floor h)).
///
/// This is type 7 of R. J. Hyndman and Y. Fan, "Sample quantiles in statistical packages", The American
/// Statistician 50(4), 1996; the default of R and NumPy, so that figures can be checked there.
pub fn quantile(values: &[f64], probability: f64) -> Option<f64> {
    if values.is_empty() || !all_finite(values) || !(0.0..=1.0).contains(&probability) {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let position = (sorted.len() - 1) as f64 * probability;
    let below = position.floor();
    let lower = *sorted.get(below as usize)?;
    let upper = *sorted.get(position.ceil() as usize)?;
    let share = position - below;
    // A weighted mean, not lower + share * (upper - lower): the difference of two huge values can
    // overflow, and at share 1/2 this form gives the mirror image for mirrored values.
    finite(lower * (1.0 - share) + upper * share)
}

/// Arithmetic mean: (1/n) * sum of x_i.
pub fn mean(values: &[f64]) -> Option<f64> {
    if values.is_empty() {
        return None;
    }
    finite(values.iter().sum::<f64>() / values.len() as f64)
}

/// Sample variance with n - 1 in the denominator: sum of (x_i - mean)^2 / (n - 1), in two passes for
/// accuracy. Needs two values.
pub fn sample_variance(values: &[f64]) -> Option<f64> {
    if values.len() < 2 {
        return None;
    }
    finite(squares_around(values, mean(values)?) / (values.len() - 1) as f64)
}

/// Sum of (x_i - centre)^2.
pub(super) fn squares_around(values: &[f64], centre: f64) -> f64 {
    values.iter().map(|value| (value - centre).powi(2)).sum()
}

pub(super) fn all_finite(values: &[f64]) -> bool {
    values.iter().all(|value| value.is_finite())
}

/// `None` for what overflowed or never was a number.
pub(super) fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn worked_values() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(&[7.0]), Some(7.0));
        // R: quantile(c(1, 2, 4, 8), c(0, 0.25, 0.9, 1)) is 1, 1.75, 6.8, 8.
        let values = [8.0, 1.0, 4.0, 2.0];
        assert_eq!(quantile(&values, 0.0), Some(1.0));
        assert_eq!(quantile(&values, 0.25), Some(1.75));
        assert!((quantile(&values, 0.9).expect("a value") - 6.8).abs() < 1e-12);
        assert_eq!(quantile(&values, 1.0), Some(8.0));
        // 2, 4, 4, 4, 5, 5, 7, 9: mean 5, squares 32, variance 32/7.
        let values = [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0];
        assert_eq!(mean(&values), Some(5.0));
        assert!((sample_variance(&values).expect("a value") - 32.0 / 7.0).abs() < 1e-12);
    }

    #[test]
    fn nothing_gives_nothing() {
        assert_eq!(median(&[]), None);
        assert_eq!(mean(&[]), None);
        assert_eq!(sample_variance(&[1.0]), None);
        assert_eq!(quantile(&[1.0], 1.5), None);
        assert_eq!(quantile(&[1.0], f64::NAN), None);
        for broken in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(median(&[1.0, broken]), None);
            assert_eq!(mean(&[1.0, broken]), None);
            assert_eq!(sample_variance(&[1.0, broken]), None);
        }
    }

    proptest! {
        #[test]
        fn any_bits_give_a_finite_value_or_none(bits: Vec<u64>, probability: f64) {
            let values: Vec<f64> = bits.into_iter().map(f64::from_bits).collect();
            let middle = (mean(&values), median(&values));
            let others = (sample_variance(&values), quantile(&values, probability));
            for answer in [middle.0, middle.1, others.0, others.1] {
                prop_assert!(answer.is_none_or(f64::is_finite));
            }
        }

        #[test]
        fn quantiles_rise_and_stay_inside(
            values in proptest::collection::vec(-1e6..1e6f64, 1..40),
            one in 0.0..=1.0f64,
            other in 0.0..=1.0f64,
        ) {
            let low = quantile(&values, one.min(other)).expect("a value");
            let high = quantile(&values, one.max(other)).expect("a value");
            prop_assert!(low <= high + 1e-6);
            prop_assert!(values.iter().any(|value| *value <= low + 1e-6));
            prop_assert!(values.iter().any(|value| *value >= high - 1e-6));
        }
    }
}
