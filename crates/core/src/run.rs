//! Runs: one execution of a suite on one machine, with every trial and every sample. This is what
//! a run file keeps and what a report is made of; both live elsewhere.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::case::CacheState;
use crate::latencies::Latencies;
use crate::plan::Plan;

/// A cold slice reads at least this share of its content from a device, in percent. Not all:
/// opening a store reads a little of it ahead.
const COLD_READ_PERCENT: u128 = 99;

/// Of the time of a warm slice, the device may have been reading for at most one part in so many: a third
/// of the smallest difference that verdicts call worth having unless another is asked for.
const WARM_READ_PARTS: u64 = 100;

/// The kernel tells how long a device was reading in whole milliseconds: it may have been up to one longer.
const DEVICE_TIME_RESOLUTION_NS: u64 = 1_000_000;

/// One execution of a suite.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// What stands at the head of the run.
    pub head: RunHead,
    /// What was to be measured.
    pub plan: Plan,
    /// The machine, as pairs of name and value.
    pub environment: Vec<(String, String)>,
    /// Every trial, in the order they ended.
    pub trials: Vec<Trial>,
    /// Space taken by each store right after it was filled, by name of the arm.
    pub footprints: BTreeMap<String, Footprint>,
}

/// What identifies a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunHead {
    /// Identity, unique in practice: time, suite and process number.
    pub id: String,
    /// Version of sqlitmus that measured.
    pub sqlitmus_version: String,
    /// When it began, RFC 3339, UTC.
    pub started_utc: String,
    /// When it ended, likewise; `None` while it is being measured or if it was killed.
    pub finished_utc: Option<String>,
    /// How far it came.
    pub state: RunState,
    /// The command line, for repeating it.
    pub command_line: String,
    /// Directory the stores were in.
    pub place: String,
}

/// How far a run came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunState {
    /// Being measured, or killed while it was.
    Started,
    /// Stopped by the user.
    Interrupted,
    /// All rounds ended.
    Complete,
}

/// One case run once, in a process of its own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// Name of the arm.
    pub arm: String,
    /// Round, from 0.
    pub round: u32,
    /// Which of the round's sets of live arms it was measured in, from 0; there is one set unless
    /// the stores do not fit into memory together. Slices are paired within a set.
    pub set: u32,
    /// How it ended.
    pub outcome: Outcome,
    /// What the live engine said is in force.
    pub read_back: BTreeMap<String, String>,
    /// What the timed slices used, by name with unit, such as `user_cpu_ns`; summed over the
    /// trial; of levels ([`is_level`]) the largest.
    pub resources: BTreeMap<String, u64>,
    /// System calls of operations that were not timed; `None` if they were not counted.
    pub system_calls: Option<SystemCalls>,
    /// Latencies of the timed operations.
    pub latencies: Latencies,
    /// The timed slices, in order.
    pub samples: Vec<Sample>,
}

/// System calls that some operations made, by name. Counting them takes time, so these operations
/// come after the timed ones.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SystemCalls {
    /// Operations done while they were counted.
    pub operations: u64,
    /// Number of calls by name; only those that occurred.
    pub calls: BTreeMap<String, u64>,
}

/// Whether a resource is a level, of which a trial keeps the largest, and not a quantity that its
/// slices add up to: its name begins with `peak_`.
#[must_use]
pub fn is_level(resource: &str) -> bool {
    resource.starts_with("peak_")
}

/// How a trial ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "outcome", content = "reason")]
pub enum Outcome {
    /// As planned: it counts.
    Valid,
    /// Measured, but not in the state it is labelled with; kept, not counted.
    Invalid(String),
    /// Crashed, hung, lied or refused.
    Failed(String),
    /// Something the machine lacks.
    Skipped(String),
    /// Not a trial but what verification found after the last round: the store does not hold what
    /// was written, so none of the arm's trials counts.
    Refuted(String),
}

/// What one slice returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    /// Turn in the round, from 0. Slices of the same turn are compared.
    pub turn: u32,
    /// Place in the order of its turn, from 0.
    pub place: u32,
    /// Operations done.
    pub operations: u64,
    /// Bytes of content read or written.
    pub content_bytes: u64,
    /// Time from the start to the last acknowledgement, in nanoseconds.
    pub elapsed_ns: u64,
    /// Time that settling took afterwards, in nanoseconds; `None` for reading slices.
    pub settle_ns: Option<u64>,
    /// Bytes that the timed operations had to read from a device; `None` if the kernel does not
    /// tell.
    pub device_read_bytes: Option<u64>,
    /// Page faults of the timed operations that waited for a device; `None` likewise.
    pub major_faults: Option<u64>,
    /// Times the worker was taken off its core in the timed operations; `None` likewise, and in runs of
    /// earlier versions.
    #[serde(default)]
    pub involuntary_context_switches: Option<u64>,
    /// Time that the hypervisor gave to others during the timed operations, on all cores of the
    /// machine, in nanoseconds; `None` likewise.
    #[serde(default)]
    pub machine_steal_ns: Option<u64>,
    /// Time that the device below the store was reading during the timed operations, for whomever, in
    /// nanoseconds of whole milliseconds, waits for several reads at once added up; `None` if they read
    /// nothing from it, if they are of a kind whose device is not asked, if the kernel does not tell, and in
    /// runs of earlier versions.
    #[serde(default)]
    pub device_read_ns: Option<u64>,
}

impl Sample {
    /// Nanoseconds of one operation, to acknowledgement.
    #[must_use]
    pub fn operation_ns(&self) -> f64 {
        self.elapsed_ns as f64 / self.operations as f64
    }

    /// Whether the slice was in the cache state that its case is labelled with, as far as the
    /// kernel tells. A slice that was not is kept, and does not count.
    ///
    /// Warm: nothing came from a device, or what came is known to have taken less than a hundredth of the
    /// time: the device is charged with all that it read meanwhile, for whomever, and with a millisecond
    /// beside. Cold: at least 99% of the content's bytes came from a device; what is read ahead and not used
    /// makes it more than the content.
    #[must_use]
    pub fn is_in(&self, cache: CacheState) -> bool {
        match cache {
            CacheState::Warm => {
                let is_short = |ns: u64| ns.saturating_mul(WARM_READ_PARTS) <= self.elapsed_ns;
                // A fault may wait for another device: that of the program.
                self.major_faults.unwrap_or(0) == 0
                    && (self.device_read_bytes.unwrap_or(0) == 0
                        || self.device_time_ns().is_some_and(is_short))
            }
            // Whatever was read from the device is what little memory costs.
            CacheState::Limited(_) => true,
            CacheState::DataCold | CacheState::FullyCold => {
                self.device_read_bytes.is_none_or(|read| {
                    u128::from(read) * 100 >= u128::from(self.content_bytes) * COLD_READ_PERCENT
                })
            }
        }
    }

    /// The share of its time that reading from a device took at the most, of a warm slice that counts though
    /// it read something; `None` of all others.
    #[must_use]
    pub fn tolerated_share(&self) -> Option<f64> {
        let read = self.device_read_bytes.unwrap_or(0) > 0 && self.is_in(CacheState::Warm);
        let time_ns = self.device_time_ns().filter(|_| read)?;
        Some(time_ns as f64 / self.elapsed_ns as f64)
    }

    /// The longest that the device can have been reading.
    fn device_time_ns(&self) -> Option<u64> {
        let told = self.device_read_ns?;
        Some(told.saturating_add(DEVICE_TIME_RESOLUTION_NS))
    }

    /// Nanoseconds of one operation including settling.
    #[must_use]
    pub fn settled_operation_ns(&self) -> f64 {
        self.elapsed_ns.saturating_add(self.settle_ns.unwrap_or(0)) as f64 / self.operations as f64
    }
}

/// Space that a store takes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Footprint {
    /// Bytes of the content stored.
    pub content_bytes: u64,
    /// Sum of the files' sizes.
    pub apparent_bytes: u64,
    /// Sum of the blocks allocated to files and directories, in bytes.
    pub allocated_bytes: u64,
    /// Number of files.
    pub files: u64,
    /// Number of directories.
    pub directories: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(device_read_bytes: Option<u64>, major_faults: Option<u64>) -> Sample {
        Sample {
            turn: 0,
            place: 0,
            operations: 10,
            content_bytes: 100_000,
            elapsed_ns: 1,
            settle_ns: None,
            device_read_bytes,
            major_faults,
            involuntary_context_switches: None,
            machine_steal_ns: None,
            device_read_ns: None,
        }
    }

    #[test]
    fn a_warm_slice_reads_nothing_from_a_device() {
        assert!(sample(Some(0), Some(0)).is_in(CacheState::Warm));
        assert!(!sample(Some(4096), Some(0)).is_in(CacheState::Warm));
        assert!(!sample(Some(0), Some(1)).is_in(CacheState::Warm));
        assert!(sample(None, None).is_in(CacheState::Warm));
    }

    #[test]
    fn a_long_warm_slice_may_have_read_for_a_hundredth_of_its_time() {
        let second = |device_read_ns: Option<u64>, major_faults: u64| Sample {
            elapsed_ns: 1_000_000_000,
            device_read_ns,
            ..sample(Some(4096), Some(major_faults))
        };
        assert!(second(Some(0), 0).is_in(CacheState::Warm));
        assert!(second(Some(9_000_000), 0).is_in(CacheState::Warm));
        assert!(!second(Some(10_000_000), 0).is_in(CacheState::Warm));
        assert_eq!(second(Some(9_000_000), 0).tolerated_share(), Some(0.01));
        assert_eq!(second(Some(10_000_000), 0).tolerated_share(), None);
        // How long it took has to be known, and to be all that was waited for.
        assert!(!second(None, 0).is_in(CacheState::Warm));
        assert!(!second(Some(0), 1).is_in(CacheState::Warm));
        // In a short one a millisecond is too much, and the kernel tells no better.
        let short = Sample {
            elapsed_ns: 99_000_000,
            ..second(Some(0), 0)
        };
        assert!(!short.is_in(CacheState::Warm));
        assert_eq!(sample(Some(0), Some(0)).tolerated_share(), None);
        let damaged = second(Some(u64::MAX), 0);
        assert!(!damaged.is_in(CacheState::Warm));
    }

    #[test]
    fn a_cold_slice_reads_nearly_all_of_its_content_from_a_device() {
        for cold in [CacheState::DataCold, CacheState::FullyCold] {
            assert!(sample(Some(99_000), Some(3)).is_in(cold));
            assert!(sample(Some(300_000), None).is_in(cold));
            assert!(!sample(Some(98_999), Some(3)).is_in(cold));
            assert!(!sample(Some(0), Some(0)).is_in(cold));
            assert!(sample(None, None).is_in(cold));
        }
    }
}
