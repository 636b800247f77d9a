//! Stopping: whether a group goes on with another round, from the number of rounds and the width of
//! its intervals alone. Which arm wins is not looked at, so that stopping favours none; judging comes
//! once, afterwards ([`crate::verdict`]).
//!
//! How much time is left is for the caller to know, who has a clock.

use serde::{Deserialize, Serialize};

use crate::statistics::FEWEST_ROUNDS;

/// Where only a precision is asked for, a group ends after so many rounds even if it is not reached.
pub const MOST_ROUNDS: u32 = 200;

/// How long to measure, as it was asked for.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Stopping {
    /// Stop when the intervals of all arms of a group are at most this much on either side, as a
    /// share: 0.02 is 2%.
    #[serde(default)]
    pub precision: Option<f64>,
    /// Time for everything, in nanoseconds.
    #[serde(default)]
    pub budget_ns: Option<u64>,
    /// Rounds of every group: as many without the other two, at most so many with one of them.
    #[serde(default)]
    pub rounds: Option<u32>,
}

/// When a group has enough rounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StoppingRule {
    /// Rounds that it is to have, however narrow the intervals are.
    pub at_least: u32,
    /// Rounds that it has at the most.
    pub at_most: u32,
    /// Relative half width that all intervals are to have.
    pub precision: Option<f64>,
}

impl Stopping {
    /// Whether the number of rounds is settled before anything is measured.
    #[must_use]
    pub fn is_fixed(&self) -> bool {
        self.precision.is_none() && self.budget_ns.is_none()
    }

    /// The rule for a group of which the suite plans so many rounds.
    #[must_use]
    pub fn rule(&self, planned: u32) -> StoppingRule {
        if self.is_fixed() {
            let rounds = self.rounds.unwrap_or(planned);
            return StoppingRule {
                at_least: rounds,
                at_most: rounds,
                precision: None,
            };
        }
        let most = if self.budget_ns.is_some() {
            u32::MAX
        } else {
            MOST_ROUNDS
        };
        let at_most = self.rounds.unwrap_or(most);
        StoppingRule {
            at_least: FEWEST_ROUNDS.min(at_most),
            at_most,
            precision: self.precision,
        }
    }
}

impl StoppingRule {
    /// Whether to go on after so many rounds, `half_width` being the relative half width of the widest
    /// interval of the group's comparisons (`None` if one has no interval yet).
    ///
    /// Widths are looked at after the first `at_least` rounds and then whenever their number has grown
    /// by an eighth: an interval that is looked at after every round is caught when it happens to be
    /// narrow. How often it then still holds the truth is simulated in `statistics/simulation.rs` (F. J. Anscombe, "Large-sample theory of sequential estimation", 1952, and Y. S. Chow and H.
    /// Robbins, "On the asymptotic theory of fixed-width sequential confidence intervals for the mean",
    /// Annals of Mathematical Statistics 36, 1965, show that it does in the limit).
    #[must_use]
    pub fn goes_on(&self, rounds: u32, half_width: Option<f64>) -> bool {
        if rounds < self.at_least {
            return true;
        }
        if rounds >= self.at_most {
            return false;
        }
        match (self.precision, half_width) {
            (Some(precision), Some(half_width)) if self.looks_after(rounds) => {
                half_width > precision
            }
            _ => true,
        }
    }

    /// Whether the widths are looked at after so many rounds.
    #[must_use]
    pub fn looks_after(&self, rounds: u32) -> bool {
        let mut look = self.at_least.max(1);
        while look < rounds {
            look += (look / 8).max(1);
        }
        look == rounds
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: StoppingRule = StoppingRule {
        at_least: 8,
        at_most: 100,
        precision: Some(0.02),
    };

    #[test]
    fn without_a_wish_the_suite_decides() {
        let rule = Stopping::default().rule(12);
        assert!(rule.goes_on(11, Some(0.001)) && !rule.goes_on(12, Some(0.5)));
        let fixed = Stopping {
            rounds: Some(3),
            ..Stopping::default()
        };
        assert!(fixed.rule(12).goes_on(2, None) && !fixed.rule(12).goes_on(3, None));
    }

    #[test]
    fn a_width_is_reached_or_the_rounds_end() {
        assert!(RULE.goes_on(7, Some(0.001)), "at least eight");
        assert!(!RULE.goes_on(8, Some(0.02)));
        assert!(RULE.goes_on(8, Some(0.021)));
        assert!(RULE.goes_on(8, None));
        assert!(!RULE.goes_on(100, Some(0.5)));
    }

    #[test]
    fn widths_are_looked_at_now_and_then() {
        let looks: Vec<u32> = (1..40).filter(|rounds| RULE.looks_after(*rounds)).collect();
        assert_eq!(looks[..10], [8, 9, 10, 11, 12, 13, 14, 15, 16, 18]);
        assert_eq!(looks[10..], [20, 22, 24, 27, 30, 33, 37]);
    }

    #[test]
    fn a_budget_knows_no_last_round_and_a_precision_does() {
        let budget = Stopping {
            budget_ns: Some(1),
            ..Stopping::default()
        };
        assert!(budget.rule(6).goes_on(1_000_000, None));
        let precision = Stopping {
            precision: Some(0.01),
            ..Stopping::default()
        };
        assert!(!precision.rule(6).goes_on(MOST_ROUNDS, None));
        assert!(precision.rule(6).goes_on(7, Some(0.0)));
        let capped = Stopping {
            rounds: Some(5),
            ..precision
        };
        assert!(!capped.rule(6).goes_on(5, None));
    }
}
