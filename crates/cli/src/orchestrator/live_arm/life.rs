//! What a worker says of the life of a store, held against what follows from the dataset: how many objects were
//! replaced, and what reading all of them back adds up to.

use sqlitmus_core::case::Workload;
use sqlitmus_core::dataset::consume;
use sqlitmus_core::lifecycle::replacements;
use sqlitmus_core::storage_age::History;

use super::{LiveArm, Stop, lied};
use crate::protocol::Span;

impl LiveArm<'_> {
    /// Whether a slice is the life of a store.
    pub(super) fn is_life(&self) -> bool {
        matches!(self.arm.case.workload, Workload::Lifecycle { .. })
    }

    /// Checks what a life has read back at its oldest age; returns the bytes that its replacements have
    /// written. Before the first life nothing is done.
    pub(super) fn follow_life(&self, spans: &[Span]) -> Result<u64, Stop> {
        let Workload::Lifecycle { ages, .. } = &self.arm.case.workload else {
            return Err(lied("this is no life"));
        };
        let span = match spans {
            [] => return Ok(0),
            [span] => span,
            _ => return Err(lied("the worker has another number of threads")),
        };
        let oldest = replacements(ages);
        let dataset = &self.arm.case.dataset;
        let history = History::of(dataset);
        let (mut buffer, mut consumed) = (Vec::new(), 0u64);
        for key in 1..=dataset.count {
            history.fill(key, oldest, &mut buffer);
            consumed = consumed.wrapping_add(consume(&buffer));
        }
        if span.consumed != consumed {
            return Err(lied(
                "wrong content: what was read back is not what was written last",
            ));
        }
        Ok(dataset.total_bytes() * oldest)
    }
}

/// The store that was emptied holds nothing.
pub(super) fn check_emptied(numbers: &[u64]) -> Result<(), Stop> {
    match numbers {
        [0] => Ok(()),
        [left] => Err(lied(format!("verification: {left} blobs are left"))),
        _ => Err(lied("the worker did not count the blobs that are left")),
    }
}
