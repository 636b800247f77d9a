//! Arrivals: when operations are due that do not wait for one another. A closed loop begins an
//! operation when the one before it has ended, so that a slow store is asked less often; users of
//! a server do not do it that favour. How threads keep to the moments is the workload's business.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::{Deserialize, Serialize};

/// When the operations of a workload begin.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Arrivals {
    /// Each thread begins the next operation when its last one has ended.
    #[default]
    Closed,
    /// At moments that do not depend on how long operations take.
    Open {
        /// How the moments are spread.
        pattern: Pattern,
        /// How many there are.
        rate: Rate,
    },
}

/// How moments are spread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pattern {
    /// At equal distances.
    Fixed,
    /// At random, independent of one another: as many users together arrive.
    Poisson,
}

/// How many operations are due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Rate {
    /// A share, in percent, of what the same threads did in a closed loop right before: reads and
    /// writes each of their own.
    CapacityPercent(u32),
    /// In a second: so many reads, and so many writes.
    PerSecond {
        /// Reads in a second.
        reads: u32,
        /// Writes in a second.
        writes: u32,
    },
}

impl Arrivals {
    /// How much is due, in words: `50% of capacity`; `None` in a closed loop. That moments are random goes without
    /// saying.
    #[must_use]
    pub fn words(self) -> Option<String> {
        let Self::Open { pattern, rate } = self else {
            return None;
        };
        let rate = match rate {
            Rate::CapacityPercent(percent) => format!("{percent}% of capacity"),
            Rate::PerSecond { .. } => "given rate".to_owned(),
        };
        Some(match pattern {
            Pattern::Poisson => rate,
            Pattern::Fixed => format!("{rate}, at equal distances"),
        })
    }

    /// Whether operations are due whatever became of those before.
    #[must_use]
    pub fn is_open(self) -> bool {
        self != Self::Closed
    }
}

/// Moments at which operations are due in a stretch of this length, in nanoseconds, in order.
#[must_use]
pub fn due_moments(pattern: Pattern, per_second: f64, length_ns: u64, seed: u64) -> Vec<u64> {
    let gap_ns = 1e9 / per_second;
    let mut stream = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut moments = Vec::new();
    let mut at = 0.0;
    while gap_ns.is_finite() {
        at += match pattern {
            Pattern::Fixed => gap_ns,
            Pattern::Poisson => {
                // A uniform number in (0, 1]: its logarithm is finite.
                let uniform = ((stream.next_u64() >> 11) as f64 + 1.0) / (1u64 << 53) as f64;
                -uniform.ln() * gap_ns
            }
        };
        if at >= length_ns as f64 {
            break;
        }
        moments.push(at as u64);
    }
    moments
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn arrivals_have_the_rate_they_were_to_have() {
        for pattern in [Pattern::Fixed, Pattern::Poisson] {
            let moments = due_moments(pattern, 5_000.0, 20_000 * MS, 7);
            assert!(moments.is_sorted());
            // Poisson: 100,000 with a standard deviation of 316.
            assert!(moments.len().abs_diff(100_000) < 1_600, "{}", moments.len());
            assert_eq!(moments, due_moments(pattern, 5_000.0, 20_000 * MS, 7));
        }
        assert!(due_moments(Pattern::Fixed, 0.0, 1_000, 1).is_empty());
    }
}
