//! Outliers: slices far from the others of their arm, and what the kernel counted while they ran. They
//! are told of and explained, never dropped: what does not count is for
//! [`measurements`](crate::measurements) to say, and it is the cache state alone that decides.

use crate::case::CacheState;
use crate::run::Sample;
use crate::statistics::{median, quantile};

/// How many times the distance between the quartiles a slice must be beyond them: "far out" in J. W.
/// Tukey, "Exploratory Data Analysis", Addison-Wesley 1977, chapter 2. Of normal values two in a million
/// are.
const FAR_OUT: f64 = 3.0;

/// Fewer slices than this have no quartiles to speak of.
const FEWEST_SLICES: usize = 8;

/// The outliers of an arm. A slice may have several explanations.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Outliers {
    /// Slices that were looked at: all of trials that count.
    pub slices: u64,
    /// Those far from the others.
    pub outliers: u64,
    /// Of these: not in the cache state that the arm is labelled with, since the operations read from a
    /// device or waited for a page. Such slices do not count.
    pub not_in_cache_state: u64,
    /// Of these: the hypervisor gave time to others meanwhile.
    pub stolen: u64,
    /// Of these: the worker was taken off its core.
    pub preempted: u64,
    /// Of these: none of it, as far as the kernel tells.
    pub unexplained: u64,
}

/// Finds the outliers of an arm, given the slices of its trials that count.
///
/// The logarithm of each slice's time is taken relative to the median of its trial, so that drift from
/// round to round makes no outliers; it is one if it lies three times the distance between the quartiles
/// of all slices beyond a quartile, on either side.
#[must_use]
pub fn outliers(trials: &[&[Sample]], cache: CacheState) -> Outliers {
    let mut distances: Vec<(f64, &Sample)> = Vec::new();
    for samples in trials {
        let logarithms: Vec<f64> = samples
            .iter()
            .map(|sample| sample.operation_ns().ln())
            .collect();
        // A trial with a time that cannot be one is not compared at all.
        if let Some(middle) = median(&logarithms) {
            let relative = logarithms.iter().map(|logarithm| logarithm - middle);
            distances.extend(relative.zip(samples.iter()));
        }
    }
    let mut found = Outliers {
        slices: distances.len() as u64,
        ..Outliers::default()
    };
    let values: Vec<f64> = distances.iter().map(|(distance, _)| *distance).collect();
    let quartiles = quantile(&values, 0.25).zip(quantile(&values, 0.75));
    let Some((low, high)) = quartiles.filter(|_| values.len() >= FEWEST_SLICES) else {
        return found;
    };
    let reach = FAR_OUT * (high - low);
    for (distance, sample) in distances {
        if distance < low - reach || distance > high + reach {
            found.note(sample, cache);
        }
    }
    found
}

impl Outliers {
    fn note(&mut self, sample: &Sample, cache: CacheState) {
        let not_in_cache_state = !sample.is_in(cache);
        let stolen = sample.machine_steal_ns.unwrap_or(0) > 0;
        let preempted = sample.involuntary_context_switches.unwrap_or(0) > 0;
        self.outliers += 1;
        self.not_in_cache_state += u64::from(not_in_cache_state);
        self.stolen += u64::from(stolen);
        self.preempted += u64::from(preempted);
        self.unexplained += u64::from(!not_in_cache_state && !stolen && !preempted);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slice(operation_ns: u64) -> Sample {
        Sample {
            turn: 0,
            place: 0,
            operations: 1,
            content_bytes: 1,
            elapsed_ns: operation_ns,
            settle_ns: None,
            device_read_bytes: Some(0),
            major_faults: Some(0),
            involuntary_context_switches: Some(0),
            machine_steal_ns: Some(0),
            device_read_ns: None,
        }
    }

    fn slices(times_ns: &[u64]) -> Vec<Sample> {
        times_ns.iter().map(|ns| slice(*ns)).collect()
    }

    #[test]
    fn far_slices_are_counted_with_their_explanations() {
        let mut first = slices(&[100, 101, 99, 102, 98, 300, 100]);
        first[5].device_read_bytes = Some(4096);
        first[5].involuntary_context_switches = Some(1);
        // Twice as slow all along: drift, not outliers; 60 is far on the fast side.
        let mut second = slices(&[200, 202, 198, 204, 196, 120, 400, 500]);
        second[6].machine_steal_ns = Some(10_000_000);
        second[7].involuntary_context_switches = None;
        let found = outliers(&[&first, &second], CacheState::Warm);
        let expected = Outliers {
            slices: 15,
            outliers: 4,
            not_in_cache_state: 1,
            stolen: 1,
            preempted: 1,
            unexplained: 2,
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn few_slices_or_broken_times_have_no_outliers() {
        let few = slices(&[100, 100, 900]);
        assert_eq!(outliers(&[&few], CacheState::Warm).outliers, 0);
        assert_eq!(outliers(&[], CacheState::Warm), Outliers::default());
        let mut broken = slices(&[1, 1, 1, 1, 1, 1, 1, 1, 9]);
        broken[0].operations = 0;
        assert_eq!(outliers(&[&broken], CacheState::Warm), Outliers::default());
    }

    #[test]
    fn slices_without_scatter_but_one_have_one() {
        let alike = slices(&[100, 100, 100, 100, 100, 100, 100, 100, 101]);
        assert_eq!(outliers(&[&alike], CacheState::Warm).outliers, 1);
    }
}
