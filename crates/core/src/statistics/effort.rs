//! What more slices or more rounds would buy, from the two components of variance.
//!
//! How long a slice and a round take is for callers to know; when to stop is for
//! [`stopping`](crate::stopping) to say.

use super::comparison::RatioEstimate;
use super::interval::{exp_bounded, student_t};
use super::variance::median_variance_share;

/// A round of fewer slices than this has no median to speak of.
const FEWEST_SLICES: u32 = 3;

/// More slices or rounds than this are never advised.
const MOST: u32 = 10_000;

/// How a comparison scatters: what its interval's width follows from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scatter {
    /// Standard deviation of ln(reference / arm) between the true values of rounds: what a fresh
    /// process makes of it. About a share: 0.01 is 1%.
    pub between_rounds: f64,
    /// Standard deviation of ln(reference / arm) between slices of a round; likewise.
    pub within_rounds: f64,
}

impl Scatter {
    /// The scatter of a comparison; `None` where its components are not known.
    pub fn of(estimate: &RatioEstimate) -> Option<Self> {
        Some(Self {
            between_rounds: estimate.variance_between_rounds?.sqrt(),
            within_rounds: estimate.variance_within_rounds?.sqrt(),
        })
    }

    /// The relative half width that the interval of a comparison of so many rounds and slices can be
    /// expected to have: t(R - 1) * sqrt((between^2 + within^2 * v(n)) / R), v(n) being what the median
    /// of n slices leaves of their variance (pi / 2 / n for many). `None` for fewer than two rounds.
    pub fn half_width(&self, rounds: u32, slices: u32, confidence: f64) -> Option<f64> {
        let t = student_t(confidence, f64::from(rounds.checked_sub(1)?))?;
        let share = median_variance_share(slices.max(1) as usize);
        let of_round = self.between_rounds.powi(2) + self.within_rounds.powi(2) * share;
        Some(exp_bounded(t * (of_round / f64::from(rounds)).sqrt()) - 1.0)
    }

    /// The fewest rounds of so many slices, from `at_least` on, that can be expected to give an
    /// interval of this relative half width. `None` if ten thousand do not.
    pub fn rounds_for(
        &self,
        half_width: f64,
        slices: u32,
        confidence: f64,
        at_least: u32,
    ) -> Option<u32> {
        let is_enough = |rounds: u32| {
            self.half_width(rounds, slices, confidence)
                .is_some_and(|found| found <= half_width)
        };
        let (mut too_few, mut enough) = (at_least.max(2) - 1, MOST);
        if !is_enough(enough) {
            return None;
        }
        // The width falls with the rounds, so the first that is enough is found by halving.
        while enough - too_few > 1 {
            let middle = u32::midpoint(too_few, enough);
            if is_enough(middle) {
                enough = middle;
            } else {
                too_few = middle;
            }
        }
        Some(enough)
    }

    /// The slices in a round that give the narrowest interval in a given time, where a round costs
    /// `round_ns` before its first slice (processes, lead-ins) and each turn of slices `turn_ns`.
    ///
    /// In the time T there are R = T / (round_ns + n * turn_ns) rounds, and the variance is about
    /// (between^2 + (pi / 2) * within^2 / n) / R, which is smallest at
    /// n = sqrt((pi / 2) * within^2 / between^2 * round_ns / turn_ns). At least three: the median of
    /// fewer holds out against no stall. This is the optimal allocation of two-stage sampling (W. G.
    /// Cochran, "Sampling Techniques", 3rd edition, Wiley 1977, section 10.6; for benchmarks T.
    /// Kalibera and R. Jones, ISMM 2013), with the median's variance in place of the mean's.
    pub fn best_slices(&self, round_ns: f64, turn_ns: f64) -> u32 {
        use std::f64::consts::FRAC_PI_2;
        let variances = (self.within_rounds / self.between_rounds).powi(2);
        let best = (FRAC_PI_2 * variances * round_ns / turn_ns).sqrt();
        // Rounds that do not differ at all: as many slices as one likes (0 / 0 is no advice either).
        let best = if best.is_nan() { 0.0 } else { best };
        (best.round().min(f64::from(MOST)) as u32).max(FEWEST_SLICES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCATTER: Scatter = Scatter {
        between_rounds: 0.008,
        within_rounds: 0.014,
    };

    #[test]
    fn worked_width() {
        // v(31) = 1.570796 / 31.570796 = 0.0497547; 0.008^2 + 0.014^2 * v = 7.37519e-5;
        // t(0.975, 19) = 2.093024; reach 2.093024 * sqrt(7.37519e-5 / 20) = 0.00401926.
        let found = SCATTER.half_width(20, 31, 0.95).expect("a width");
        assert!(
            (found - (0.004_019_26f64.exp() - 1.0)).abs() < 1e-7,
            "{found}"
        );
        assert_eq!(SCATTER.half_width(1, 31, 0.95), None);
        assert_eq!(SCATTER.half_width(0, 31, 0.95), None);
    }

    #[test]
    fn rounds_for_a_width_are_the_fewest() {
        let rounds = SCATTER.rounds_for(0.005, 30, 0.95, 8).expect("possible");
        let width = |rounds: u32| SCATTER.half_width(rounds, 30, 0.95).expect("a width");
        assert!(width(rounds) <= 0.005 && width(rounds - 1) > 0.005);
        assert_eq!(SCATTER.rounds_for(0.5, 30, 0.95, 8), Some(8));
        assert_eq!(SCATTER.rounds_for(0.5, 30, 0.95, 0), Some(2));
        assert_eq!(SCATTER.rounds_for(1e-9, 30, 0.95, 8), None);
    }

    #[test]
    fn slices_are_worth_it_where_rounds_are_dear_or_slices_noisy() {
        // sqrt(1.570796 * 3.0625 * 4) = 4.39.
        assert_eq!(SCATTER.best_slices(80e6, 20e6), 4);
        assert_eq!(SCATTER.best_slices(8000e6, 20e6), 44);
        let alike = Scatter {
            between_rounds: 0.0,
            ..SCATTER
        };
        assert_eq!(alike.best_slices(80e6, 20e6), 10_000);
        let still = Scatter {
            between_rounds: 0.0,
            within_rounds: 0.0,
        };
        assert_eq!(still.best_slices(80e6, 20e6), 3);
        assert_eq!(SCATTER.best_slices(0.0, 20e6), 3);
    }

    #[test]
    fn the_best_number_of_slices_gives_the_narrowest_interval_in_the_time() {
        let (round_ns, turn_ns, time_ns) = (500e6, 20e6, 3600e9);
        let width = |slices: u32| {
            let rounds = time_ns / (round_ns + f64::from(slices) * turn_ns);
            SCATTER
                .half_width(rounds as u32, slices, 0.95)
                .expect("a width")
        };
        let best = SCATTER.best_slices(round_ns, turn_ns);
        let narrowest = (3..200).map(width).fold(f64::INFINITY, f64::min);
        assert!(width(best) < narrowest * 1.02, "{best}");
        assert!(width(best) < width(3) && width(best) < width(100));
    }
}
