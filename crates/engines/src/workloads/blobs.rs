//! What reading and overwriting blobs have in common: one session and one walk over the keys, in one thread.
//! Unlike workloads on rows they may begin with a cold cache, and what they ask of the system is counted in operations
//! that are not timed; so they have a trait of their own beside [`super::Running`].

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use sqlitmus_core::case::{Case, Workload};
use sqlitmus_core::dataset::{consume, digest};
use sqlitmus_core::keys::{KeyWalk, Span};
use sqlitmus_core::latencies::Latencies;
use sqlitmus_core::run::is_level;

use super::overwrite::Overwrite;
use super::read::Read;
use super::{Meter, unfit};
use crate::engine::{EngineError, Session};
use crate::rows::Counters;

/// Adds time to operations on purpose, so that a harness can be tested with differences that are
/// known. Nearly always it adds none.
pub trait Slowing {
    /// Timed operations begin now.
    fn begin(&mut self, now: Instant);
    /// Waits, now and then, for operations that have ended now; returns the end of the wait.
    fn after(&mut self, now: Instant) -> Instant;
    /// Waits for all operations that have not been waited for; returns the end of the wait.
    fn wait(&mut self, now: Instant) -> Instant;
}

/// What a workload on blobs is prepared from.
pub struct BlobPreparation<'a, S> {
    /// What is measured.
    pub case: &'a Case,
    /// The opened store.
    pub session: Box<dyn Session>,
    /// Where in the common key order it starts, as a share of the whole.
    pub key_offset: f64,
    /// Seed of the common key order.
    pub order_seed: u64,
    /// Length of a slice that ends by time.
    pub slice: Duration,
    /// Length of the untimed reading before it; zero for none.
    pub slice_lead_in: Duration,
    /// A reading slice ends after so many operations, if its time is not over before.
    pub slice_operations_max: u64,
    /// Time added on purpose.
    pub slowing: S,
}

/// What the lead-in of a trial came to.
#[derive(Debug, Clone, Copy)]
pub struct BlobLeadIn {
    /// The pass over all keys.
    pub read: Span,
    /// The batch that a writing workload wrote.
    pub written: Option<Span>,
}

/// What a slice came to.
#[derive(Debug, Clone)]
pub struct BlobStretch {
    /// The untimed operations before it.
    pub lead_in: Span,
    /// The timed operations.
    pub timed: Span,
    /// Time of the timed operations, in nanoseconds.
    pub elapsed_ns: u64,
    /// Latencies of the timed operations.
    pub latencies: Latencies,
    /// What the engine counted while the clock ran, by name with unit.
    pub counters: Counters,
}

/// A workload on blobs that has been prepared.
pub trait RunningBlobs {
    /// The untimed operations at the beginning of a trial: one pass over all keys and, if it writes, a
    /// batch, whose settling is left to [`RunningBlobs::settle`].
    ///
    /// # Errors
    /// The engine refused.
    fn lead_in(&mut self, generation: u64) -> Result<BlobLeadIn, EngineError>;

    /// One slice.
    ///
    /// # Errors
    /// The engine refused.
    fn slice(&mut self, generation: u64, meter: &mut dyn Meter)
    -> Result<BlobStretch, EngineError>;

    /// Makes what [`RunningBlobs::untimed`] will write.
    fn stage(&mut self, generation: u64);

    /// Does what a slice does without taking the time: `reads` reads, or the batch that was staged.
    ///
    /// # Errors
    /// The engine refused.
    fn untimed(&mut self, reads: u64) -> Result<Span, EngineError>;

    /// Does what the slice's commits have left for later.
    ///
    /// # Errors
    /// The engine refused.
    fn settle(&mut self) -> Result<(), EngineError>;

    /// The digest of what is stored under each of these keys.
    ///
    /// # Errors
    /// One of them cannot be read.
    fn verify(&mut self, keys: &[u64]) -> Result<Vec<u64>, EngineError>;
}

/// Prepares a workload on blobs.
///
/// # Errors
/// The workload is not about blobs, or has several threads.
pub fn prepare_blobs<S: Slowing + 'static>(
    preparation: BlobPreparation<'_, S>,
) -> Result<Box<dyn RunningBlobs>, EngineError> {
    match preparation.case.workload {
        Workload::Read { .. } => Ok(Box::new(Read::prepare(preparation))),
        Workload::Overwrite { operations, .. } => {
            Ok(Box::new(Overwrite::prepare(preparation, operations)))
        }
        _ => Err(unfit("this workload is not read or overwrite")),
    }
}

/// The walk of a case's keys in the common order.
pub(super) fn walk<S>(preparation: &BlobPreparation<'_, S>) -> KeyWalk {
    let case = preparation.case;
    let count = case.dataset.count as u32;
    let keys = case.workload.order().keys(count, preparation.order_seed);
    KeyWalk::new(keys, preparation.key_offset)
}

/// Reads on in the walk while `more` says so, given the number of operations done.
pub(super) fn read_untimed(
    session: &mut dyn Session,
    walk: &mut KeyWalk,
    more: impl Fn(u64) -> bool,
) -> Result<Span, EngineError> {
    let mut span = Span {
        position: walk.position(),
        operations: 0,
        consumed: 0,
    };
    while more(span.operations) {
        let key = walk.next_key();
        session.read(key, &mut |bytes| {
            span.consumed = span.consumed.wrapping_add(consume(bytes));
        })?;
        span.operations += 1;
    }
    Ok(span)
}

/// The digests of what a session has under these keys.
pub(super) fn digests(session: &mut dyn Session, keys: &[u64]) -> Result<Vec<u64>, EngineError> {
    let mut digests = Vec::with_capacity(keys.len());
    for key in keys {
        session.read(*key, &mut |bytes| digests.push(digest(bytes)))?;
    }
    Ok(digests)
}

/// What the engine has counted since `before`; of levels what they are now.
pub(super) fn counted_since(
    session: &mut dyn Session,
    before: &BTreeMap<&'static str, u64>,
) -> Counters {
    let now = session.counters().into_iter();
    now.map(|(name, value)| {
        let earlier = match is_level(name) {
            true => 0,
            false => before.get(name).copied().unwrap_or(0),
        };
        (name.to_owned(), value.saturating_sub(earlier))
    })
    .collect()
}
