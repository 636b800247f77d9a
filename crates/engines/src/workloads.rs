//! Workloads: what is done with a store, in three steps. `prepare` makes everything that must not
//! be made while the clock runs; `measure` is the lead-in and the slices; `verify` reads back what
//! was stored. One file a workload.
//!
//! What runs, in which order and for how long comes from outside, and so does the judgement: a
//! workload returns where in the key order it was and what it consumed.

mod blobs;
mod import;
mod job_queue;
mod load;
mod overwrite;
mod pacing;
mod point_query;
mod read;
mod team;
mod traffic;
mod transaction;
mod update;

use std::path::Path;
use std::time::Duration;

use hdrhistogram::Histogram;
use sqlitmus_core::case::{Case, Workload};
use sqlitmus_core::keys::{KeyWalk, Span};
use sqlitmus_core::latencies::Latencies;

use crate::engine::{EngineError, ReadBack};
use crate::rows::{Counters, RowSession, RowStore, UserTotals};

pub use blobs::{BlobLeadIn, BlobPreparation, BlobStretch, RunningBlobs, Slowing, prepare_blobs};

/// Latencies are recorded up to this; longer ones count as this.
const LONGEST_LATENCY_NS: u64 = 60_000_000_000;

/// Digits kept of a latency: two, which is within 1%, keep the histogram at some 30 kB, so that
/// recording does not push the engine's data out of the processor's cache.
const LATENCY_DIGITS: u8 = 2;

/// What a workload is prepared from.
#[derive(Debug, Clone, Copy)]
pub struct Preparation<'a> {
    /// What is measured.
    pub case: &'a Case,
    /// Where the store is.
    pub store: &'a Path,
    /// Where in the common key order the first thread starts, as a share of the whole.
    pub key_offset: f64,
    /// Seed of the common key order.
    pub order_seed: u64,
    /// Length of a slice that ends by time.
    pub slice: Duration,
    /// Length of the untimed operations before it.
    pub slice_lead_in: Duration,
}

/// Takes the process's resources at the ends of what is timed.
pub trait Meter {
    /// The clock is about to start.
    fn begin(&mut self);
    /// The clock has stopped.
    fn end(&mut self);
}

/// What a slice came to.
#[derive(Debug, Clone, Default)]
pub struct Stretch {
    /// The untimed operations before it, of each thread.
    pub lead_in: Vec<Span>,
    /// The timed operations, of each thread; readers stand before writers.
    pub timed: Vec<Span>,
    /// Time from the start of the first thread to the end of the last, in nanoseconds.
    pub elapsed_ns: u64,
    /// Latencies: of queries, of whole transactions, or of jobs' lives.
    pub latencies: Latencies,
    /// What else was counted while the clock ran, by name with unit. Names that begin with
    /// `peak_` are levels, all others sums.
    pub counters: Counters,
}

/// A workload that has been prepared.
pub trait Running {
    /// What the live engine says is in force.
    ///
    /// # Errors
    /// It does not answer, or says something else than was asked for.
    fn read_back(&mut self) -> Result<ReadBack, EngineError>;

    /// The untimed operations at the beginning of a trial, of each thread.
    ///
    /// # Errors
    /// The first thing that went wrong.
    fn lead_in(&mut self, generation: u64) -> Result<Vec<Span>, EngineError>;

    /// One slice.
    ///
    /// # Errors
    /// The first thing that went wrong in any thread.
    fn slice(&mut self, generation: u64, meter: &mut dyn Meter) -> Result<Stretch, EngineError>;

    /// Does what the slice's commits have left for later.
    ///
    /// # Errors
    /// The engine refused.
    fn settle(&mut self) -> Result<(), EngineError>;

    /// What is stored under these keys, as one number each, and after them the workload's own
    /// totals: see [`row_totals`] for rows; for jobs the number of records left.
    ///
    /// # Errors
    /// The store cannot be read.
    fn verify(&mut self, keys: &[u64]) -> Result<Vec<u64>, EngineError>;
}

/// Prepares a workload that may have several threads; those on blobs have one, and [`prepare_blobs`].
///
/// # Errors
/// The store cannot be opened, or the engine or its settings do not fit the workload.
pub fn prepare(preparation: &Preparation<'_>) -> Result<Box<dyn Running>, EngineError> {
    Ok(match preparation.case.workload {
        Workload::PointQuery { .. } => Box::new(point_query::PointQuery::prepare(preparation)?),
        Workload::Import { .. } => Box::new(import::Import::prepare(preparation)?),
        Workload::Update { .. } => Box::new(update::Update::prepare(preparation)?),
        Workload::Traffic { .. } => Box::new(traffic::Traffic::prepare(preparation)?),
        Workload::Load { .. } => Box::new(load::Load::prepare(preparation)?),
        Workload::JobQueue { .. } => Box::new(job_queue::JobQueue::prepare(preparation)?),
        Workload::Read { .. } | Workload::Overwrite { .. } => {
            return Err(unfit("blobs are for `prepare_blobs`"));
        }
        // Walking is no engine's business.
        Workload::Index { .. } => return Err(unfit("trees are recorded elsewhere")),
        // So are copies, clean-ups and removals of whole stores.
        Workload::Lifecycle { .. } => return Err(unfit("lives of stores are lived elsewhere")),
    })
}

/// The totals of a table as they stand behind the keys of [`Running::verify`]: rows, the sum of
/// `c1`, the sum over all content.
#[must_use]
pub fn row_totals(totals: &UserTotals) -> [u64; 3] {
    [totals.rows, totals.c1_sum.cast_unsigned(), totals.consumed]
}

impl Preparation<'_> {
    /// The store with rows at a path; the case's own unless another is named.
    fn row_store(&self, path: &Path) -> Result<Box<dyn RowStore>, EngineError> {
        let case = self.case;
        let engine = crate::find(&case.engine).map_err(|error| unfit(&error.to_string()))?;
        let Some(rows) = engine.rows() else {
            return Err(unfit(&format!("engine `{}` has no rows", case.engine)));
        };
        rows.open(path, &case.settings)
    }

    /// A walk over the keys 1 to `range` in the common order.
    fn walk(&self, range: u64) -> KeyWalk {
        let keys = self.case.workload.order();
        KeyWalk::new(keys.keys(range as u32, self.order_seed), self.key_offset)
    }

    /// The setting `transaction` as the number of writes in one; `all` is all of a batch.
    fn transaction_rows(&self, batch: u64) -> usize {
        let rows = match self.case.settings.get("transaction") {
            Some("one") => 1,
            Some(number) => number.parse().unwrap_or(batch),
            None => batch,
        };
        rows.clamp(1, batch.max(1)) as usize
    }
}

/// The keys' rows as numbers, and the totals.
fn verify_rows(session: &mut dyn RowSession, keys: &[u64]) -> Result<Vec<u64>, EngineError> {
    let mut numbers = Vec::with_capacity(keys.len() + 3);
    for id in keys {
        numbers.push(session.query(*id)?.unwrap_or(0));
    }
    numbers.extend(row_totals(&session.totals()?));
    Ok(numbers)
}

fn unfit(reason: &str) -> EngineError {
    EngineError::Unavailable(reason.to_owned())
}

fn new_histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LONGEST_LATENCY_NS, LATENCY_DIGITS)
        .expect("constant bounds are valid")
}

/// A histogram as counts by latency.
fn counts(histogram: &Histogram<u64>) -> Latencies {
    let buckets = histogram.iter_recorded();
    Latencies(
        buckets
            .map(|bucket| (bucket.value_iterated_to(), bucket.count_at_value()))
            .collect(),
    )
}
