//! How much of the scatter lies between rounds and how much between the slices of a round.
//!
//! What to spend time on in view of it (more slices, or more rounds) is left to the callers.

use super::describe::{finite, mean, squares_around};

/// The two components of variance, in squared natural logarithms of a ratio.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Components {
    /// Variance of the rounds' true values, not below zero.
    pub(super) between_rounds: f64,
    /// Variance of slices around their round's mean.
    pub(super) within_rounds: f64,
}

/// One-way random-effects analysis of variance of groups that may differ in size.
///
/// With k groups of n_i values, N in all:
/// MSB = sum of n_i (mean_i - grand mean)^2 / (k - 1), MSW = sum of (x_ij - mean_i)^2 / (N - k),
/// n_0 = (N - sum of n_i^2 / N) / (k - 1);
/// within = MSW, between = max(0, (MSB - MSW) / n_0).
///
/// Source: S. R. Searle, G. Casella and C. E. McCulloch, "Variance Components", Wiley 1992, section 3.6
/// (unbalanced data). The estimate of the smaller component can come out below zero by chance; it is
/// then given as zero, which makes its expectation a little too large.
///
/// Both are plain, not robust: a stalled slice counts in full. `None` with fewer than two groups, or
/// when no group has two values (then the two cannot be told apart).
pub(super) fn components(groups: &[Vec<f64>]) -> Option<Components> {
    let groups: Vec<&Vec<f64>> = groups.iter().filter(|group| !group.is_empty()).collect();
    let total: usize = groups.iter().map(|group| group.len()).sum();
    if groups.len() < 2 || total <= groups.len() {
        return None;
    }
    let all: Vec<f64> = groups
        .iter()
        .flat_map(|group| group.iter().copied())
        .collect();
    let grand_mean = mean(&all)?;

    let (mut between_squares, mut within_squares, mut squared_sizes) = (0.0, 0.0, 0.0);
    for group in &groups {
        let size = group.len() as f64;
        let group_mean = mean(group)?;
        between_squares += size * (group_mean - grand_mean).powi(2);
        within_squares += squares_around(group, group_mean);
        squared_sizes += size * size;
    }
    let freedom_between = (groups.len() - 1) as f64;
    let mean_square_between = between_squares / freedom_between;
    let mean_square_within = within_squares / (total - groups.len()) as f64;
    let typical_size = (total as f64 - squared_sizes / total as f64) / freedom_between;
    Some(Components {
        between_rounds: finite((mean_square_between - mean_square_within) / typical_size)?.max(0.0),
        within_rounds: finite(mean_square_within)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn worked_balanced_values() {
        // Means 2, 4, 9; grand mean 5; MSB = 3 * (9 + 1 + 16) / 2 = 39; MSW = 6 / 6 = 1;
        // between = (39 - 1) / 3.
        let groups = [
            vec![1.0, 2.0, 3.0],
            vec![3.0, 4.0, 5.0],
            vec![8.0, 9.0, 10.0],
        ];
        let found = components(&groups).expect("components");
        assert!((found.within_rounds - 1.0).abs() < 1e-12);
        assert!((found.between_rounds - 38.0 / 3.0).abs() < 1e-12);
    }

    #[test]
    fn worked_unbalanced_values() {
        // Groups (1, 3), (4, 6, 8, 10): means 2 and 7, grand mean 32/6 = 16/3.
        // MSB = 2 * (10/3)^2 + 4 * (5/3)^2 = 300/9; MSW = (2 + 20) / 4 = 5.5;
        // n_0 = 6 - 20/6 = 8/3; between = (100/3 - 5.5) / (8/3) = 10.4375.
        let groups = [vec![1.0, 3.0], vec![4.0, 6.0, 8.0, 10.0]];
        let found = components(&groups).expect("components");
        assert!((found.within_rounds - 5.5).abs() < 1e-12);
        assert!((found.between_rounds - 10.4375).abs() < 1e-12);
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
