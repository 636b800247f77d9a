//! Recording a directory tree in SQLite, in two ways. The naive one is what the published test does:
//! one thread, one INSERT and one commit for each entry ([`naive`]). The best one ([`record`]) walks
//! with several threads, writes in batches with prepared statements, and, where the tree is recorded
//! already, writes only what has changed.
//!
//! What the database looks like is in SCHEMA.md beside this crate. Progress bars and summaries are the
//! command line's.

pub mod database;
mod difference;
mod folder_block;
mod gatherer;
mod known_folders;
pub mod naive;
mod own_files;
mod recorder;
mod stopwatch;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::atomic::AtomicI64;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use sqlitmus_core::tree_scan::Oddities;
use sqlitmus_core::units::format_count;

use crate::error::TreeError;
use crate::walk::{EntryCounts, Tree, WalkOptions, WalkProgress, walk};
pub use database::IndexDatabase;
use folder_block::FolderBlock;
use gatherer::Gatherer;
use recorder::Recorder;

/// Blocks that walkers may be ahead of the recorder: enough to keep both busy, and a bound on memory.
const BLOCKS_AHEAD: usize = 16;

/// How to record a tree.
#[derive(Debug, Clone, Copy)]
pub struct IndexOptions {
    /// How to walk it; the naive way has one thread whatever stands here.
    pub walk: WalkOptions,
    /// Rows that are written between two commits, about. The naive way commits each.
    pub rows_per_transaction: u64,
    /// How often progress is told.
    pub report_every: Duration,
    /// Stop after this time; what is recorded by then stays.
    pub time_limit: Option<Duration>,
}

impl Default for IndexOptions {
    fn default() -> Self {
        Self {
            walk: WalkOptions::default(),
            rows_per_transaction: 100_000,
            report_every: Duration::from_secs(1),
            time_limit: None,
        }
    }
}

/// How far it is, in the words of the published test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct IndexProgress {
    /// Rows written in a second, since the last report.
    pub rows_per_second: f64,
    /// Rows of entries written so far.
    pub rows: u64,
    /// Entries that the walk has seen so far.
    pub seen: u64,
    /// Time in SQLite so far, in nanoseconds.
    pub sql_ns: u64,
    /// Time that the walking threads have spent so far, added up, in nanoseconds.
    pub walk_ns: u64,
}

/// What is safely in a database although the recording failed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Recorded {
    /// Rows of entries that were written and committed this time.
    pub entries: u64,
    /// Folders whose entries they are.
    pub folders: u64,
}

impl fmt::Display for Recorded {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "it came as far as {} entries in {} folders, which are committed",
            format_count(self.entries),
            format_count(self.folders)
        )
    }
}

/// Rows that were written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RowWrites {
    /// Entries that were not there before.
    pub entries_added: u64,
    /// Entries that were there otherwise.
    pub entries_changed: u64,
    /// Entries that are there no more.
    pub entries_removed: u64,
    /// Folders that were not there before.
    pub folders_added: u64,
    /// Folders whose state or digest changed.
    pub folders_changed: u64,
    /// Folders that are there no more.
    pub folders_removed: u64,
    /// Of the one row about the tree.
    pub tree: u64,
}

impl RowWrites {
    /// Those of entries.
    #[must_use]
    pub fn entries(&self) -> u64 {
        self.entries_added + self.entries_changed + self.entries_removed
    }

    /// Those of folders.
    #[must_use]
    pub fn folders(&self) -> u64 {
        self.folders_added + self.folders_changed + self.folders_removed
    }

    /// All.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.entries() + self.folders() + self.tree
    }
}

/// What became of a recording. All figures are measured; rates follow from them.
#[derive(Debug)]
pub struct Indexed {
    /// Entries that the walk has seen, by kind.
    pub counts: EntryCounts,
    /// What was odd.
    pub oddities: Oddities,
    /// Rows written.
    pub writes: RowWrites,
    /// Transactions committed.
    pub commits: u64,
    /// Threads that walked.
    pub threads: usize,
    /// From the start to the end, in nanoseconds.
    pub elapsed_ns: u64,
    /// Time in SQLite, from the clock on the wall: reading what is known, writing, committing.
    pub sql_ns: u64,
    /// Processor time of that, on the one thread that does it.
    pub sql_cpu_ns: u64,
    /// Time that the walking threads spent, without waiting, added up.
    pub walk_ns: u64,
    /// Whether it was stopped before its end. What is recorded is true, and not all.
    pub stopped: bool,
}

impl Indexed {
    /// Rows of entries and folders written in a second of time in SQLite.
    #[must_use]
    pub fn rows_per_sql_second(&self) -> f64 {
        per_second(self.writes.entries() + self.writes.folders(), self.sql_ns)
    }
}

/// So many in so many nanoseconds, as a rate a second; 0 in no time.
fn per_second(count: u64, ns: u64) -> f64 {
    if ns == 0 {
        return 0.0;
    }
    count as f64 * 1e9 / ns as f64
}

/// Records a tree, or brings its record up to date. `observe` is told how far it is.
///
/// Every folder is recorded whole, in one transaction with its digest; a tree that has not changed
/// since causes no write at all. `should_stop` ends it early, and what was done by then is committed.
///
/// # Errors
/// SQLite failed. What was committed before is told and stays.
pub fn record(
    tree: &Tree,
    database: &mut IndexDatabase,
    options: &IndexOptions,
    should_stop: &(dyn Fn() -> bool + Sync),
    observe: &mut dyn FnMut(&IndexProgress),
) -> Result<Indexed, TreeError> {
    let started = Instant::now();
    let should_stop = with_limit(should_stop, started, options.time_limit);
    let own_files = own_files::OwnFiles::of(database.path());
    let path = database.path().to_owned();
    let failed = |recorded, source| TreeError::database(&path, recorded, source);
    let mut recorder = Recorder::new(database.connection(), options.rows_per_transaction);
    let known = recorder
        .known_folders()
        .map_err(|source| failed(Recorded::default(), source))?;
    let next_id = AtomicI64::new(known.largest_id() + 1);
    let threads = options.walk.threads.get();
    let (sender, receiver) = sync_channel(BLOCKS_AHEAD);
    let progress = WalkProgress::new(threads);
    let gatherers = (0..threads)
        .map(|_| Gatherer::new(&known, &next_id, &own_files, sender.clone(), &progress))
        .collect();
    drop(sender);
    let (written, walked) = walk(
        tree,
        &options.walk,
        gatherers,
        &should_stop,
        &progress,
        || {
            let pace = Pace::new(started, options.report_every);
            let written = write_all(&mut recorder, receiver, &progress, pace, observe);
            // Walkers have nobody to send to any more if it failed.
            written.inspect_err(|_| progress.stop())
        },
    );
    let finished = written.and_then(|()| recorder.finish(!walked.stopped));
    if let Err(source) = finished {
        return Err(failed(recorder.give_up(), source));
    }
    Ok(Indexed {
        counts: walked.counts,
        oddities: walked.oddities,
        writes: recorder.writes(),
        commits: recorder.commits(),
        threads,
        elapsed_ns: nanoseconds(started),
        sql_ns: recorder.sql_ns(),
        sql_cpu_ns: recorder.sql_cpu_ns(),
        walk_ns: walked.walk_ns,
        stopped: walked.stopped,
    })
}

/// Writes blocks as they come, and tells about it in between.
fn write_all(
    recorder: &mut Recorder<'_>,
    receiver: Receiver<FolderBlock>,
    progress: &WalkProgress,
    mut pace: Pace,
    observe: &mut dyn FnMut(&IndexProgress),
) -> rusqlite::Result<()> {
    loop {
        match receiver.recv_timeout(pace.left()) {
            Ok(block) => recorder.write(&block)?,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
        if pace.left().is_zero() {
            let rows = recorder.writes().entries();
            observe(&pace.report(
                rows,
                progress.entries(),
                recorder.sql_ns(),
                progress.walk_ns(),
            ));
        }
    }
}

/// When the next report is due, and what it says of the time since the last.
struct Pace {
    every: Duration,
    last: Instant,
    rows: u64,
}

impl Pace {
    fn new(started: Instant, every: Duration) -> Self {
        Self {
            every,
            last: started,
            rows: 0,
        }
    }

    fn left(&self) -> Duration {
        self.every.saturating_sub(self.last.elapsed())
    }

    fn report(&mut self, rows: u64, seen: u64, sql_ns: u64, walk_ns: u64) -> IndexProgress {
        let since_ns = nanoseconds(self.last);
        let progress = IndexProgress {
            rows_per_second: per_second(rows - self.rows, since_ns),
            rows,
            seen,
            sql_ns,
            walk_ns,
        };
        self.last = Instant::now();
        self.rows = rows;
        progress
    }
}

/// The same question with a limit of time.
fn with_limit<'a>(
    should_stop: &'a (dyn Fn() -> bool + Sync),
    started: Instant,
    limit: Option<Duration>,
) -> impl Fn() -> bool + Sync + 'a {
    move || should_stop() || limit.is_some_and(|limit| started.elapsed() >= limit)
}

fn nanoseconds(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX)
}
