//! The mean of values that hang together: rounds that follow one another on the same stores, or in the
//! same minute, are more alike than rounds on other stores, or later. An interval that takes them for
//! independent is too narrow. Means of batches of consecutive rounds are less dependent: their scatter has
//! in it what differs from one batch to the next (R. W. Conway, "Some Tactical Problems in Digital
//! Simulation", Management Science 10(1), 1963; B. Schmeiser, "Batch Size Effects in the Analysis of
//! Simulation Output", Operations Research 30(3), 1982).

use std::collections::BTreeMap;

use super::describe::mean;
use super::interval::{MeanEstimate, around, t_interval};

/// With fewer batches their scatter says nothing.
pub const FEWEST_BATCHES: usize = 3;

/// The mean of values, each with the number of its batch, and the wider of two intervals: Student's over the
/// values, and Student's over the means of the batches, around the same mean. Batches weigh the same in their
/// scatter; where they differ much in length it is an approximation. With fewer than three batches there is
/// only the first.
///
/// `None` where [`t_interval`] gives none.
pub fn batched_t_interval(values: &[(u32, f64)], confidence: f64) -> Option<MeanEstimate> {
    let bare: Vec<f64> = values.iter().map(|(_, value)| *value).collect();
    let single = t_interval(&bare, confidence)?;
    let mut batches: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for (batch, value) in values {
        batches.entry(*batch).or_default().push(*value);
    }
    if batches.len() < FEWEST_BATCHES {
        return Some(single);
    }
    let means: Option<Vec<f64>> = batches.values().map(|batch| mean(batch)).collect();
    let over_batches = t_interval(&means?, confidence)?;
    let freedom = (batches.len() - 1) as f64;
    let batched = around(
        single.mean,
        over_batches.standard_error,
        freedom,
        confidence,
    )?;
    let reach = |one: &MeanEstimate| one.interval.high - one.interval.low;
    let is_wider = reach(&batched) > reach(&single);
    Some(if is_wider { batched } else { single })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values in batches of so many.
    fn batched(values: &[f64], batch: u32) -> Vec<(u32, f64)> {
        let numbered = (0u32..).zip(values);
        numbered.map(|(at, value)| (at / batch, *value)).collect()
    }

    #[test]
    fn what_differs_between_batches_widens_the_interval() {
        let apart = [1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 3.0, 3.0, 3.0];
        let found = batched_t_interval(&batched(&apart, 3), 0.95).expect("an interval");
        let single = t_interval(&apart, 0.95).expect("an interval");
        // Three means with s = 1: t(0.975, 2) / sqrt(3) = 4.3027 / 1.7321.
        assert!((found.mean - 2.0).abs() < 1e-12);
        assert!(
            (found.interval.high - 2.0 - 2.4842).abs() < 1e-3,
            "{found:?}"
        );
        assert!(single.interval.high < found.interval.high);
    }

    #[test]
    fn batches_that_are_alike_do_not_narrow_it() {
        let alike = [1.0, 2.0, 1.0, 2.0, 1.0, 2.0, 1.0, 2.0];
        assert_eq!(
            batched_t_interval(&batched(&alike, 2), 0.95),
            t_interval(&alike, 0.95)
        );
    }

    #[test]
    fn few_batches_are_none() {
        let values = [1.0, 5.0, 1.0, 5.0, 9.0];
        for batch in [3, 4, 9] {
            let found = batched_t_interval(&batched(&values, batch), 0.95);
            assert_eq!(found, t_interval(&values, 0.95));
        }
        assert_eq!(batched_t_interval(&[(0, 1.0)], 0.95), None);
    }

    #[test]
    fn batches_may_differ_in_length() {
        let values = [(1, 0.0), (1, 0.0), (2, 1.0), (4, 2.0), (4, 2.0), (4, 2.0)];
        let found = batched_t_interval(&values, 0.95).expect("an interval");
        assert!((found.standard_error - 1.0 / 3f64.sqrt()).abs() < 1e-12);
        assert!((found.mean - 7.0 / 6.0).abs() < 1e-12);
    }

    /// Rounds of one filling share a displacement: the interval of single rounds misses the truth far more
    /// often than it says, that of batches hardly.
    #[test]
    fn it_covers_the_truth_where_rounds_hang_together() {
        let mut state = 7u64;
        let mut normal = move || {
            let sum: f64 = (0..12)
                .map(|_| {
                    state = state
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(1);
                    (state >> 11) as f64 / (1u64 << 53) as f64
                })
                .sum();
            sum - 6.0
        };
        let (mut single, mut wide) = (0, 0);
        let runs = 2_000;
        for _ in 0..runs {
            let mut values = Vec::new();
            for _ in 0..4 {
                let shared = normal();
                values.extend((0..4).map(|_| shared + 0.5 * normal()));
            }
            let holds = |found: Option<MeanEstimate>| {
                let interval = found.expect("an interval").interval;
                u32::from(interval.low <= 0.0 && 0.0 <= interval.high)
            };
            single += holds(t_interval(&values, 0.95));
            wide += holds(batched_t_interval(&batched(&values, 4), 0.95));
        }
        assert!(single * 100 < runs * 85, "{single}");
        assert!(wide * 100 >= runs * 94, "{wide}");
    }
}
