//! Latencies of single operations, as counts by value: what a histogram of a trial leaves when
//! it is written down. Recording is the worker's business.

use serde::{Deserialize, Serialize};

/// Counts of operations by latency, ascending: pairs of nanoseconds and count.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Latencies(pub Vec<(u64, u64)>);

impl Latencies {
    /// Number of operations.
    #[must_use]
    pub fn count(&self) -> u64 {
        // Saturating here and below: a damaged run file must not stop a report.
        self.0
            .iter()
            .fold(0, |sum, (_, count)| sum.saturating_add(*count))
    }

    /// All operations of several trials together.
    #[must_use]
    pub fn merged<'a>(trials: impl IntoIterator<Item = &'a Self>) -> Self {
        let mut counts = std::collections::BTreeMap::new();
        for (latency_ns, count) in trials.into_iter().flat_map(|trial| &trial.0) {
            let sum: &mut u64 = counts.entry(*latency_ns).or_default();
            *sum = sum.saturating_add(*count);
        }
        Self(counts.into_iter().collect())
    }

    /// The latency in nanoseconds that the given share of operations did not exceed; `None`
    /// without operations.
    #[must_use]
    pub fn quantile_ns(&self, share: f64) -> Option<u64> {
        let wanted = (share.clamp(0.0, 1.0) * self.count() as f64)
            .ceil()
            .max(1.0) as u64;
        let mut seen = 0;
        for (latency_ns, count) in &self.0 {
            seen = u64::saturating_add(seen, *count);
            if seen >= wanted {
                return Some(*latency_ns);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_merged_trials() {
        let first = Latencies(vec![(10, 50), (20, 40)]);
        let second = Latencies(vec![(20, 9), (1000, 1)]);
        let both = Latencies::merged([&first, &second]);
        assert_eq!(both.count(), 100);
        assert_eq!(both.quantile_ns(0.5), Some(10));
        assert_eq!(both.quantile_ns(0.51), Some(20));
        assert_eq!(both.quantile_ns(0.99), Some(20));
        assert_eq!(both.quantile_ns(1.0), Some(1000));
        assert_eq!(Latencies::default().quantile_ns(0.5), None);
    }
}
