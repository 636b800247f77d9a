//! How much of the scatter lies between rounds and how much between the slices of a round, seen as
//! the estimate sees it: through medians.
//!
//! What to spend time on in view of it (more slices, or more rounds) is for
//! [`effort`](super::effort) to say.

use super::describe::{finite, median, sample_variance};

/// 1 / (sqrt(2) * 0.674490): the standard deviation of normal values by the median of the distances
/// between two of them. 0.674490 is the third quartile of the standard normal distribution.
const DEVIATION_BY_MEDIAN_DISTANCE: f64 = 1.048_358;

/// Halvings that bring a distance to the last digits of a double.
const HALVINGS: u32 = 80;

/// The two components of variance, in squared natural logarithms of a ratio.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Components {
    /// Variance of the rounds' true values, not below zero.
    pub(super) between_rounds: f64,
    /// Variance of slices around their round's value.
    pub(super) within_rounds: f64,
}

/// The variance of the median of `count` values over the variance of one: pi / 2 / (m + pi / 2 - 1)
/// with m = `count` if that is odd, else `count` + 1.
///
/// For normal values it tends to pi / 2 / m (M. G. Kendall and A. Stuart, "The Advanced Theory of
/// Statistics" 1, section 10.10); the term beside m makes it exact for one value and right to 3% for
/// all others. That the middle of an even number is as good as that of one value more is shown by
/// J. L. Hodges and E. L. Lehmann, "On medians and quasi medians", JASA 62, 1967. Heavy tails make the
/// median better than this.
pub(super) fn median_variance_share(count: usize) -> f64 {
    use std::f64::consts::FRAC_PI_2;
    let odd = if count.is_multiple_of(2) {
        count + 1
    } else {
        count
    };
    FRAC_PI_2 / (odd as f64 + FRAC_PI_2 - 1.0)
}

/// The components of groups that may differ in size. With y_i the median of group i and n_i its size:
///
/// - within = (1.048358 * median of |x_ij - x_ik| over all pairs of all groups)^2;
/// - between = max(0, sample variance of y_i - mean of within * v(n_i)), v as in
///   [`median_variance_share`].
///
/// The estimate is made of medians, so its components are too: by plain analysis of variance three
/// stalls in a thousand slices make up most of `within`, which then hides `between` altogether, though
/// they hardly move a median. The median distance of two values is the spread of P. J. Bickel and E. L.
/// Lehmann, "Descriptive statistics for nonparametric models IV: spread", 1979 (86% as efficient as the
/// standard deviation where noise is normal; more than a quarter of the slices may be wild). It needs
/// no centre, so that even rounds of two slices tell something. The smaller component can come out
/// below zero by chance; it is then given as zero, which makes its expectation a little too large.
///
/// `None` with fewer than two groups, or when no group has two values.
pub(super) fn components(groups: &[Vec<f64>]) -> Option<Components> {
    let mut groups: Vec<Vec<f64>> = groups
        .iter()
        .filter(|group| !group.is_empty())
        .cloned()
        .collect();
    if groups.len() < 2 {
        return None;
    }
    for group in &mut groups {
        group.sort_unstable_by(f64::total_cmp);
    }
    let within_rounds = finite((DEVIATION_BY_MEDIAN_DISTANCE * median_distance(&groups)?).powi(2))?;
    let values: Vec<f64> = groups.iter().filter_map(|group| median(group)).collect();
    let explained: f64 = groups
        .iter()
        .map(|group| within_rounds * median_variance_share(group.len()))
        .sum::<f64>()
        / groups.len() as f64;
    Some(Components {
        between_rounds: finite(sample_variance(&values)? - explained)?.max(0.0),
        within_rounds,
    })
}

/// The median (the lower one) of the distances of all pairs within sorted groups; `None` if there are
/// no pairs. Found by halving the range that it can lie in, since pairs grow with the square of the
/// slices.
fn median_distance(sorted_groups: &[Vec<f64>]) -> Option<f64> {
    let pairs: usize = sorted_groups
        .iter()
        .map(|group| group.len() * (group.len() - 1) / 2)
        .sum();
    let wanted = pairs.div_ceil(2);
    let widest = sorted_groups
        .iter()
        .filter_map(|group| Some(group.last()? - group.first()?))
        .fold(0.0, f64::max);
    if pairs == 0 {
        return None;
    }
    if pairs_within(sorted_groups, 0.0) >= wanted {
        return Some(0.0);
    }
    let (mut below, mut reaches) = (0.0, finite(widest)?);
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(below, reaches);
        if pairs_within(sorted_groups, middle) >= wanted {
            reaches = middle;
        } else {
            below = middle;
        }
    }
    Some(reaches)
}

/// Pairs of one group that are no farther apart than `distance`.
fn pairs_within(sorted_groups: &[Vec<f64>], distance: f64) -> usize {
    let of_group = |group: &Vec<f64>| {
        let mut first = 0;
        let mut count = 0;
        for (last, value) in group.iter().enumerate() {
            while value - group[first] > distance {
                first += 1;
            }
            count += last - first;
        }
        count
    };
    sorted_groups.iter().map(of_group).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn worked_values() {
        // Distances 1, 1, 2; 1, 1, 2; 1, 3, 4: sorted 1 1 1 1 1 2 2 3 4, the fifth is 1.
        // Medians 2, 4, 9: variance 13. v(3) = 1.570796 / 3.570796 = 0.439901.
        let groups = [
            vec![3.0, 1.0, 2.0],
            vec![3.0, 4.0, 5.0],
            vec![9.0, 8.0, 12.0],
        ];
        let found = components(&groups).expect("components");
        let within = 1.048_358f64.powi(2);
        assert!((found.within_rounds - within).abs() < 1e-9, "{found:?}");
        assert!((found.between_rounds - (13.0 - within * 0.439_901)).abs() < 1e-5);
    }

    #[test]
    fn groups_may_differ_in_size() {
        // Distances 2; 3, 6, 3; none: 2 3 3 6, the second is 3. Medians 2, 7, 5: variance 19/3.
        // v(2) = v(3), v(1) = 1: their mean 0.626600.
        let groups = [vec![1.0, 3.0], vec![4.0, 7.0, 10.0], vec![5.0]];
        let found = components(&groups).expect("components");
        let within = (3.0 * 1.048_358f64).powi(2);
        assert!((found.within_rounds - within).abs() < 1e-9, "{found:?}");
        let between = 19.0 / 3.0 - within * 0.626_600;
        assert!((found.between_rounds - between).abs() < 1e-4, "{found:?}");
    }

    #[test]
    fn medians_scatter_as_the_share_says() {
        // Exact variances of the median of normal samples: H. L. Harter and N. Balakrishnan, "CRC
        // Handbook of Tables for the Use of Order Statistics in Estimation", 1996.
        for (count, exact) in [(1, 1.0), (2, 0.5), (3, 0.4487), (5, 0.2868), (7, 0.2104)] {
            let found = median_variance_share(count);
            assert!((found / exact - 1.0).abs() < 0.13, "{count}: {found}");
            if count % 2 == 1 {
                assert!((found / exact - 1.0).abs() < 0.03, "{count}: {found}");
            }
        }
    }

    #[test]
    fn stalls_do_not_hide_how_rounds_differ() {
        let round = |centre: f64| -> Vec<f64> {
            (0..20)
                .map(|slice| match slice {
                    7 => centre + 3.0,
                    _ => centre + 0.001 * f64::from(slice % 5),
                })
                .collect()
        };
        let found = components(&[round(0.0), round(0.1), round(0.2)]).expect("components");
        assert!((found.between_rounds - 0.01).abs() < 1e-4, "{found:?}");
        assert!(found.within_rounds < 1e-4, "{found:?}");
    }

    #[test]
    fn rounds_more_alike_than_chance_are_clipped_at_zero() {
        let groups = [vec![-1.0, 1.0], vec![-2.0, 2.0]];
        assert_eq!(
            components(&groups).map(|found| found.between_rounds),
            Some(0.0)
        );
    }

    #[test]
    fn what_cannot_be_told_apart_is_not_guessed() {
        assert_eq!(components(&[]), None);
        assert_eq!(components(&[vec![1.0, 2.0]]), None);
        assert_eq!(components(&[vec![1.0], vec![2.0], vec![]]), None);
        assert!(components(&[vec![1.0], vec![2.0, 3.0], vec![]]).is_some());
    }

    proptest! {
        #[test]
        fn the_median_distance_is_that_of_all_pairs_one_by_one(
            groups in proptest::collection::vec(proptest::collection::vec(-1.0..1.0f64, 1..9), 1..5),
        ) {
            let mut sorted = groups;
            for group in &mut sorted {
                group.sort_unstable_by(f64::total_cmp);
            }
            let mut distances: Vec<f64> = sorted
                .iter()
                .flat_map(|group| (0..group.len()).flat_map(|one| (0..one).map(move |other| (one, other))
                    .map(|(one, other)| group[one] - group[other])))
                .collect();
            distances.sort_unstable_by(f64::total_cmp);
            let plain = distances.len().div_ceil(2).checked_sub(1).map(|middle| distances[middle]);
            match (median_distance(&sorted), plain) {
                (Some(found), Some(plain)) => prop_assert!((found - plain).abs() < 1e-12),
                (found, plain) => prop_assert!(found.is_none() && plain.is_none()),
            }
        }

        #[test]
        fn never_below_zero_and_blind_to_a_shift(
            groups in proptest::collection::vec(proptest::collection::vec(-1.0..1.0f64, 0..6), 0..6),
            shift in -10.0..10.0f64,
        ) {
            let shifted: Vec<Vec<f64>> = groups
                .iter()
                .map(|group| group.iter().map(|value| value + shift).collect())
                .collect();
            match (components(&groups), components(&shifted)) {
                (Some(one), Some(other)) => {
                    prop_assert!(one.between_rounds >= 0.0 && one.within_rounds >= 0.0);
                    prop_assert!((one.between_rounds - other.between_rounds).abs() < 1e-9);
                    prop_assert!((one.within_rounds - other.within_rounds).abs() < 1e-9);
                }
                (one, other) => prop_assert!(one.is_none() && other.is_none()),
            }
        }
    }
}
