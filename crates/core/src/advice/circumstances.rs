//! Under which circumstances the files are read and written: with how much memory, and by how many at once. A
//! stage is planned without them, and then put under them here, so that all stages that compare speeds are
//! measured alike. How stores grow old is measured without them.

use serde::{Deserialize, Serialize};

use super::candidate::EngineSettings;
use super::stage::reference;
use crate::arrivals::Arrivals;
use crate::case::{CacheState, Readers, Workload};
use crate::plan::{Group, Plan, Turns};
use crate::units::parse_bytes;

/// A slice of several threads, or with little memory, is longer than others: neither is even from one
/// millisecond to the next.
const SLICE_NS: u64 = 100_000_000;

/// Slices of a trial then, at the most.
const SLICES: u32 = 4;

/// The engine that keeps a copy of everything in its own memory: with little of that it cannot be, and beside
/// several threads there is none.
const COPY_IN_MEMORY: &str = "memory";

/// Circumstances of reading and writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Circumstances {
    /// Memory of whoever reads or writes, with what the kernel caches for him, in bytes; `None` for what the
    /// machine has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Threads that read at the same time.
    #[serde(default = "one")]
    pub readers: u32,
    /// Threads that write at the same time.
    #[serde(default = "one")]
    pub writers: u32,
}

fn one() -> u32 {
    1
}

impl Default for Circumstances {
    fn default() -> Self {
        Self {
            memory_bytes: None,
            readers: 1,
            writers: 1,
        }
    }
}

impl Circumstances {
    /// Whether there is nothing to say about them.
    #[must_use]
    pub fn are_usual(&self) -> bool {
        *self == Self::default()
    }

    /// Whether there is the memory for the page caches that these settings make, one for each thread, and as much
    /// again for all else: a process that needs more than it may have is ended.
    #[must_use]
    pub fn has_room_for(&self, with: &EngineSettings) -> bool {
        let cache = with.get("cache").and_then(|cache| parse_bytes(cache).ok());
        let threads = u64::from(self.readers.max(self.writers));
        let caches_bytes = cache.unwrap_or(0).saturating_mul(threads);
        self.memory_bytes
            .is_none_or(|memory| caches_bytes <= memory / 2)
    }

    /// Puts all groups of a plan about blobs under these circumstances.
    pub fn apply(&self, plan: &mut Plan) {
        for group in &mut plan.groups {
            self.apply_to(group);
        }
        let arms: Vec<String> = plan.arms().map(|(_, arm)| arm.name.clone()).collect();
        for chart in &mut plan.charts {
            chart.arms.retain(|name| arms.contains(name));
        }
    }

    fn apply_to(&self, group: &mut Group) {
        let mut changes = false;
        let batched = format!(".{}", reference::BATCHED);
        for arm in &mut group.arms {
            if let (Some(bytes), CacheState::Warm) = (self.memory_bytes, arm.case.cache) {
                arm.case.cache = CacheState::Limited(bytes);
                changes = true;
            }
            let (readers, writers) = match arm.case.workload {
                // A cold cache is cold for one reader after the other.
                Workload::Read { .. } if self.readers > 1 && !arm.case.cache.is_cold() => {
                    (self.readers, 0)
                }
                // Each writer has blobs of his own.
                Workload::Overwrite { .. } if self.writers > 1 => {
                    let most = u32::try_from(arm.case.dataset.count).unwrap_or(u32::MAX);
                    (0, self.writers.min(most))
                }
                _ => continue,
            };
            arm.case.workload = Workload::Load {
                order: arm.case.workload.order(),
                readers,
                writers,
                arrivals: Arrivals::Closed,
                readers_are: Readers::Threads,
            };
            changes = true;
        }
        if !changes {
            return;
        }
        // Of several writers each commits every write; a batch would be no batch.
        let is_one_by_one = self.writers > 1;
        group.arms.retain(|arm| {
            arm.case.engine != COPY_IN_MEMORY && !(is_one_by_one && arm.name.ends_with(&batched))
        });
        group.turns = Turns::Alone;
        group.slice_ns = group.slice_ns.max(SLICE_NS);
        group.slices = group.slices.min(SLICES);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caches_have_to_fit_into_half_of_the_memory() {
        let cached = |cache| EngineSettings::new("sqlite", &[&[("cache", cache)]]);
        let mut limited = Circumstances {
            memory_bytes: Some(128 << 20),
            ..Circumstances::default()
        };
        assert!(limited.has_room_for(&cached("64MiB")));
        assert!(!limited.has_room_for(&cached("128MiB")));
        limited.readers = 2;
        assert!(!limited.has_room_for(&cached("64MiB")));
        assert!(Circumstances::default().has_room_for(&cached("1GiB")));
    }
}
