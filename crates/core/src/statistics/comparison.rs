//! The one function that judges how two arms compare when they were measured in turns, and the noise
//! floor that follows from an arm compared with its twin.
//!
//! The method and its reasons stand in the parent module. Arms that were not measured in turns are
//! compared in `unpaired`; words for the outcome come from [`verdict`](crate::verdict).

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::describe::median;
use super::interval::{
    Interval, MeanEstimate, chance_beyond, exp_bounded, is_confidence, t_interval,
};
use super::variance::components;

/// The times that are taken for times, in nanoseconds per operation: from a femtosecond to some thirty
/// thousand years. Anything else is a fault of the worker (no operations, a clock that went back).
const BELIEVABLE_NS: RangeInclusive<f64> = 1e-6..=1e21;

/// What two arms did in one round, slice by slice.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct PairedRound {
    /// For each turn: (nanoseconds per operation of the reference, of the arm). The two slices of a
    /// pair are from the same turn, so that the machine was in the same mood for both.
    pub slices: Vec<(f64, f64)>,
}

/// How many times as fast as the reference an arm is: **reference time / arm time**, so that above 1
/// the arm is faster. Everything here follows this one direction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RatioEstimate {
    /// Whether the two were measured in turns ([`compare`]) or apart ([`unpaired`](fn@super::unpaired)).
    pub paired: bool,
    /// The estimate. Paired: exp of the mean over rounds of the median log ratio of a round's slices.
    /// Unpaired: geometric mean of the reference's round values over that of the arm's.
    pub ratio: f64,
    /// Its interval (paired: Student's, over rounds; unpaired: Welch's). `None` for a single round on
    /// either side, from which nothing can be said about other rounds.
    pub interval: Option<Interval>,
    /// The confidence of `interval`, between 0 and 1.
    pub confidence: f64,
    /// Rounds that had slices; unpaired: on the side that had fewer.
    pub rounds: usize,
    /// Pairs of slices in all rounds; 0 if unpaired.
    pub slices: usize,
    /// Sum of the reference's nanoseconds per operation over the arm's, all slices weighing the same:
    /// the ratio of plain means, which stalls and outliers move. Far from `ratio`, it says that one
    /// arm has the longer tail. Unpaired: the ratio of the plain means of the round values.
    pub ratio_of_totals: f64,
    /// For each round that had slices, in order: the median over its slices of ln(reference / arm).
    /// Empty if unpaired.
    pub round_values: Vec<f64>,
    /// How much rounds differ beyond what their slices explain: variance of ln(reference / arm), not
    /// below 0. `None` with fewer than two rounds, with no round of two slices, and if unpaired.
    pub variance_between_rounds: Option<f64>,
    /// How much slices of one round differ: variance of ln(reference / arm), robust as the median is
    /// (a few stalled slices do not move it). `None` as above.
    pub variance_within_rounds: Option<f64>,
    /// Standard error of ln(ratio). `None` where there is no interval.
    #[serde(default)]
    pub standard_error: Option<f64>,
    /// Degrees of freedom of the interval's t. `None` where there is no interval.
    #[serde(default)]
    pub degrees_of_freedom: Option<f64>,
}

impl RatioEstimate {
    /// The smallest error rate at which the interval still keeps a distance from its centre: two-sided
    /// P(|T| > distance / standard error). The distance is one of natural logarithms. What is nearer
    /// than the centre (0 or less) is kept at no rate: 1. Without an interval: `None`.
    pub fn error_rate_at(&self, distance: f64) -> Option<f64> {
        let (standard_error, freedom) = (self.standard_error?, self.degrees_of_freedom?);
        if distance <= 0.0 {
            return Some(1.0);
        }
        chance_beyond(distance / standard_error, freedom)
    }
}

/// Why two arms cannot be compared. A slice that cannot be true is not left out quietly: something is
/// wrong with its whole trial. Trials known to be invalid are for the caller to keep out.
#[derive(Debug, Clone, Copy, PartialEq, Error)]
pub enum ComparisonError {
    /// No round has a slice.
    #[error("there is nothing to compare: no slice was measured on both sides")]
    NoSlices,
    /// A slice is no positive time, or one beyond belief (below 10^-6 or above 10^21 ns).
    #[error(
        "slice {} of round {}: {reference_ns} and {arm_ns} ns per operation cannot both be times",
        .slice + 1, .round + 1
    )]
    BadSlice {
        /// Index of the round, from 0.
        round: usize,
        /// Index of the slice in its round, from 0.
        slice: usize,
        /// The reference's nanoseconds per operation.
        reference_ns: f64,
        /// The arm's nanoseconds per operation.
        arm_ns: f64,
    },
    /// The value of a round is no positive time, or one beyond belief.
    #[error("round {}: {ns} ns per operation is not a time", .round + 1)]
    BadRound {
        /// Index of the round, from 0.
        round: usize,
        /// The nanoseconds per operation that were given.
        ns: f64,
    },
    /// The confidence is not between 0 and 1.
    #[error("a confidence lies between 0 and 1, which {confidence} does not")]
    BadConfidence {
        /// The confidence that was given.
        confidence: f64,
    },
}

/// Compares an arm with the reference: how many times as fast is it, and how sure are we?
///
/// The method stands in the module's documentation: per round the median of ln(reference / arm) over
/// its slices, then the mean over rounds with a t-interval of the given confidence (0.95 for 95%).
/// Rounds without slices (their trial failed) are passed over; the others weigh the same, however many
/// slices they have. The order of rounds, and of slices in a round, does not matter.
///
/// # Errors
/// [`NoSlices`](ComparisonError::NoSlices), [`BadSlice`](ComparisonError::BadSlice) for the first one,
/// [`BadConfidence`](ComparisonError::BadConfidence).
pub fn compare(rounds: &[PairedRound], confidence: f64) -> Result<RatioEstimate, ComparisonError> {
    if !is_confidence(confidence) {
        return Err(ComparisonError::BadConfidence { confidence });
    }
    let log_ratios = slice_log_ratios(rounds)?;
    let round_values: Vec<f64> = log_ratios
        .iter()
        .filter_map(|round| median(round))
        .collect();
    if round_values.is_empty() {
        return Err(ComparisonError::NoSlices);
    }
    let centre = round_values.iter().sum::<f64>() / round_values.len() as f64;
    let components = components(&log_ratios);
    let found: Option<MeanEstimate> = t_interval(&round_values, confidence);
    let pairs = || rounds.iter().flat_map(|round| &round.slices);
    let reference_total_ns: f64 = pairs().map(|(reference_ns, _)| reference_ns).sum();
    let arm_total_ns: f64 = pairs().map(|(_, arm_ns)| arm_ns).sum();

    Ok(RatioEstimate {
        paired: true,
        ratio: exp_bounded(centre),
        interval: found.map(|found| found.interval.exp()),
        confidence,
        standard_error: found.map(|found| found.standard_error),
        degrees_of_freedom: found.map(|_| (round_values.len() - 1) as f64),
        rounds: round_values.len(),
        slices: pairs().count(),
        ratio_of_totals: reference_total_ns / arm_total_ns,
        round_values,
        variance_between_rounds: components.map(|found| found.between_rounds),
        variance_within_rounds: components.map(|found| found.within_rounds),
    })
}

/// What the machine makes of two arms that do exactly the same: e^m - 1, where m is the larger of
/// |ln low| and |ln high| of the interval of baseline / twin. 0.02 means that identical arms cannot be
/// told from arms that differ by a factor of 1.02, in either direction.
///
/// The farther end, not the estimate: a twin that was measured badly has not shown that the machine is
/// quiet. `None` when the twin has no interval (a single round): then the floor is not known.
pub fn noise_floor(twin: &RatioEstimate) -> Option<f64> {
    twin.interval.map(|interval| {
        let farther_end = interval.low.ln().abs().max(interval.high.ln().abs());
        exp_bounded(farther_end) - 1.0
    })
}

pub(super) fn is_believable(ns: f64) -> bool {
    BELIEVABLE_NS.contains(&ns)
}

/// ln(reference / arm) of every slice, round by round. The difference of two logarithms and not the
/// logarithm of the fraction: it changes sign exactly when the arms change places.
fn slice_log_ratios(rounds: &[PairedRound]) -> Result<Vec<Vec<f64>>, ComparisonError> {
    rounds
        .iter()
        .enumerate()
        .map(|(round, paired)| {
            paired
                .slices
                .iter()
                .enumerate()
                .map(|(slice, &(reference_ns, arm_ns))| {
                    if is_believable(reference_ns) && is_believable(arm_ns) {
                        Ok(reference_ns.ln() - arm_ns.ln())
                    } else {
                        Err(ComparisonError::BadSlice {
                            round,
                            slice,
                            reference_ns,
                            arm_ns,
                        })
                    }
                })
                .collect()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn close(one: f64, other: f64) -> bool {
        (one - other).abs() <= 1e-9 * one.abs().max(other.abs()).max(1.0)
    }

    fn rounds(slices: &[&[(f64, f64)]]) -> Vec<PairedRound> {
        slices
            .iter()
            .map(|slices| PairedRound {
                slices: slices.to_vec(),
            })
            .collect()
    }

    #[test]
    fn worked_values() {
        // Round 1: ratios 2, 2, 200 (a stall of the reference), median ln 2. Round 2: ratios 8, 8.
        // Mean (ln 2 + ln 8) / 2 = ln 4. Round values differ from it by ln 2, s = sqrt(2) * ln 2,
        // s / sqrt(2) = ln 2, t(0.975, 1) = 12.706205: ends 4 * 2^-+12.706205.
        let data = rounds(&[
            &[(20.0, 10.0), (24.0, 12.0), (2000.0, 10.0)],
            &[(80.0, 10.0), (88.0, 11.0)],
        ]);
        let estimate = compare(&data, 0.95).expect("an estimate");
        assert!(close(estimate.ratio, 4.0));
        let interval = estimate.interval.expect("an interval");
        assert!((interval.high / (4.0 * 12.706_205f64.exp2()) - 1.0).abs() < 1e-5);
        assert!((interval.low / (4.0 * (-12.706_205f64).exp2()) - 1.0).abs() < 1e-5);
        assert_eq!((estimate.rounds, estimate.slices), (2, 5));
        assert!(close(estimate.ratio_of_totals, 2212.0 / 53.0));
        assert!(close(estimate.round_values[0], 2.0f64.ln()));
        assert!(close(estimate.round_values[1], 8.0f64.ln()));
    }

    #[test]
    fn worked_interval_of_eight_rounds() {
        // Round values 0.5 + 0.01 * (-3, -1, -1, -1, 0, 0, 2, 4): mean 0.5, s = 0.01 * sqrt(32/7);
        // reach = 2.364624 * 0.01 * sqrt(4/7) = 0.01787488.
        let data: Vec<PairedRound> = [-3.0, -1.0, -1.0, -1.0, 0.0, 0.0, 2.0, 4.0]
            .iter()
            .map(|step| PairedRound {
                slices: vec![(5000.0 * (0.5f64 + 0.01 * step).exp(), 5000.0)],
            })
            .collect();
        let estimate = compare(&data, 0.95).expect("an estimate");
        let interval = estimate.interval.expect("an interval");
        assert!(close(estimate.ratio, 0.5f64.exp()));
        assert!((interval.low.ln() - 0.482_125_12).abs() < 1e-7);
        assert!((interval.high.ln() - 0.517_874_88).abs() < 1e-7);
        assert!((interval.relative_half_width() - (0.017_874_88f64.exp() - 1.0)).abs() < 1e-7);
        assert_eq!(estimate.variance_between_rounds, None, "one slice a round");
    }

    #[test]
    fn one_round_gives_an_estimate_without_an_interval() {
        let estimate = compare(&rounds(&[&[(3.0, 2.0)], &[]]), 0.95).expect("an estimate");
        assert!(close(estimate.ratio, 1.5));
        assert_eq!(estimate.interval, None);
        assert_eq!(estimate.rounds, 1, "a round without slices does not count");
        assert_eq!(noise_floor(&estimate), None);
    }

    #[test]
    fn what_cannot_be_true_is_refused_with_its_place() {
        assert_eq!(compare(&[], 0.95), Err(ComparisonError::NoSlices));
        assert_eq!(
            compare(&rounds(&[&[], &[]]), 0.95),
            Err(ComparisonError::NoSlices)
        );
        for bad in [0.0, -1.0, f64::INFINITY, 1e-300, 1e300] {
            let data = rounds(&[&[(1.0, 1.0)], &[(1.0, 1.0), (bad, 1.0)]]);
            assert_eq!(
                compare(&data, 0.95),
                Err(ComparisonError::BadSlice {
                    round: 1,
                    slice: 1,
                    reference_ns: bad,
                    arm_ns: 1.0
                })
            );
        }
        let error = compare(&rounds(&[&[(1.0, f64::NAN)]]), 0.95).expect_err("not a time");
        assert_eq!(
            error.to_string(),
            "slice 1 of round 1: 1 and NaN ns per operation cannot both be times"
        );
        for confidence in [0.0, 1.0, 95.0, f64::NAN] {
            let answer = compare(&rounds(&[&[(1.0, 1.0)]]), confidence);
            assert!(matches!(answer, Err(ComparisonError::BadConfidence { .. })));
        }
    }

    #[test]
    fn noise_floor_is_the_farther_end_whichever_side_it_is_on() {
        let twin = |low, high| RatioEstimate {
            interval: Some(Interval { low, high }),
            ..compare(&rounds(&[&[(1.0, 1.0)]]), 0.95).expect("an estimate")
        };
        let floor = |low, high| noise_floor(&twin(low, high)).expect("a floor");
        assert!(close(floor(0.99, 1.03), 0.03));
        assert!(close(floor(1.0 / 1.03, 1.01), 0.03));
        assert!(close(floor(1.01, 1.02), 0.02));
        assert!(close(floor(1.0, 1.0), 0.0));
    }

    #[test]
    fn an_estimate_survives_storage() {
        let estimate = compare(&rounds(&[&[(3.0, 2.0), (3.1, 2.2)], &[(2.9, 2.0)]]), 0.95);
        let estimate = estimate.expect("an estimate");
        let text = serde_json::to_string(&estimate).expect("written");
        let read: RatioEstimate = serde_json::from_str(&text).expect("read");
        // Numbers of seventeen digits may differ in the last one.
        assert!(same(&read, &estimate));
        assert_eq!(
            (read.rounds, read.slices),
            (estimate.rounds, estimate.slices)
        );
        assert_eq!(read.round_values.len(), estimate.round_values.len());
        let error = |estimate: &RatioEstimate| estimate.standard_error.expect("known");
        assert!(close(error(&read), error(&estimate)));
        assert_eq!(read.degrees_of_freedom, estimate.degrees_of_freedom);
    }

    fn any_rounds() -> impl Strategy<Value = Vec<PairedRound>> {
        let slices = proptest::collection::vec((1.0..1e6f64, 1.0..1e6f64), 1..8);
        proptest::collection::vec(slices.prop_map(|slices| PairedRound { slices }), 1..8)
    }

    fn changed(data: &[PairedRound], change: impl Fn((f64, f64)) -> (f64, f64)) -> RatioEstimate {
        let data: Vec<PairedRound> = data
            .iter()
            .map(|round| PairedRound {
                slices: round.slices.iter().map(|&pair| change(pair)).collect(),
            })
            .collect();
        compare(&data, 0.95).expect("an estimate")
    }

    fn same(one: &RatioEstimate, other: &RatioEstimate) -> bool {
        let ends = |estimate: &RatioEstimate| {
            let interval = estimate.interval;
            interval.map_or((0.0, 0.0), |found| (found.low.ln(), found.high.ln()))
        };
        let components = |estimate: &RatioEstimate| {
            let between = estimate.variance_between_rounds.unwrap_or(-1.0);
            (between, estimate.variance_within_rounds.unwrap_or(-1.0))
        };
        let both =
            |one: (f64, f64), other: (f64, f64)| close(one.0, other.0) && close(one.1, other.1);
        close(one.ratio.ln(), other.ratio.ln())
            && both(ends(one), ends(other))
            && both(components(one), components(other))
            && close(one.ratio_of_totals.ln(), other.ratio_of_totals.ln())
    }

    proptest! {
        #[test]
        fn changing_places_turns_the_ratio_over(data in any_rounds()) {
            let one = changed(&data, |pair| pair);
            let other = changed(&data, |(reference, arm)| (arm, reference));
            prop_assert!(close(one.ratio.ln(), -other.ratio.ln()));
            prop_assert!(close(one.ratio_of_totals, 1.0 / other.ratio_of_totals));
            if let (Some(one), Some(other)) = (one.interval, other.interval) {
                prop_assert!(close(one.low.ln(), -other.high.ln()));
                prop_assert!(close(one.high.ln(), -other.low.ln()));
            }
            let (floor, mirrored) = (noise_floor(&one), noise_floor(&other));
            prop_assert!(close(floor.unwrap_or(0.0).ln_1p(), mirrored.unwrap_or(0.0).ln_1p()));
        }

        #[test]
        fn the_unit_of_time_does_not_matter(data in any_rounds(), scale in 1e-3..1e3f64) {
            let one = changed(&data, |pair| pair);
            let other = changed(&data, |(reference, arm)| (reference * scale, arm * scale));
            prop_assert!(same(&one, &other));
        }

        #[test]
        fn order_does_not_matter(data in any_rounds()) {
            let mut shuffled = data.clone();
            shuffled.reverse();
            for round in &mut shuffled {
                let middle = round.slices.len() / 2;
                round.slices.rotate_left(middle);
            }
            let one = changed(&data, |pair| pair);
            prop_assert!(same(&one, &changed(&shuffled, |pair| pair)));
        }

        #[test]
        fn a_known_ratio_is_found_and_lies_in_its_interval(data in any_rounds(), ratio in 0.01..100.0f64) {
            let exact = changed(&data, |(_, arm)| (arm * ratio, arm));
            prop_assert!(close(exact.ratio, ratio));
            prop_assert!(close(exact.ratio_of_totals, ratio));
            let found = changed(&data, |pair| pair);
            prop_assert!(found.interval.is_none_or(|interval| interval.contains(found.ratio)));
        }

        #[test]
        fn any_bits_give_finite_figures_or_an_error(
            bits in proptest::collection::vec(proptest::collection::vec(any::<(u64, u64)>(), 0..3), 0..3),
            confidence: f64,
        ) {
            let data: Vec<PairedRound> = bits
                .into_iter()
                .map(|round| PairedRound {
                    slices: round
                        .into_iter()
                        .map(|(one, other)| (f64::from_bits(one), f64::from_bits(other)))
                        .collect(),
                })
                .collect();
            if let Ok(found) = compare(&data, confidence) {
                prop_assert!(found.ratio.is_finite() && found.ratio_of_totals.is_finite());
            }
        }

        #[test]
        fn the_widest_believable_times_give_finite_figures(
            exponents in proptest::collection::vec((-6.0..21.0f64, -6.0..21.0f64), 1..12),
        ) {
            let data: Vec<PairedRound> = exponents
                .chunks(2)
                .map(|chunk| PairedRound {
                    slices: chunk.iter().map(|(one, other)| (10f64.powf(*one), 10f64.powf(*other))).collect(),
                })
                .collect();
            let found = changed(&data, |pair| pair);
            let interval = found.interval.unwrap_or(Interval { low: 1.0, high: 1.0 });
            let floor = noise_floor(&found).unwrap_or(0.0);
            let figures = [found.ratio, found.ratio_of_totals, interval.low, interval.high, floor];
            prop_assert!(figures.iter().all(|figure| figure.is_finite()));
            prop_assert!(interval.low > 0.0);
        }
    }
}
