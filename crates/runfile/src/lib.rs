//! The run file: one execution of a suite in one SQLite database, with every sample, never only
//! summaries. [`schema`] documents the tables; any SQLite tool reads them.
//!
//! A [`RunFile`] is created when a run starts and takes one transaction for every round, so that
//! a run killed at any moment keeps what it has. [`read`] gives back the whole run and never
//! changes or creates a file. A run of the durability experiment is a file of another kind, a
//! [`DurabilityFile`]; [`kind`] tells the two apart. What runs, what the figures mean and what files are called is left
//! to others: the command line, `sqlitmus_core` and the reports.

mod access;
mod contents;
mod creation;
mod durability_file;
mod error;
mod header;
mod latency_blob;
mod listing;
mod round_record;
mod run_file;
pub mod schema;

use std::path::Path;

use sqlitmus_core::run::Run;

pub use contents::{RecordedRound, SUPERSEDED};
pub use durability_file::{DurabilityFile, Kind, kind, read_durability};
pub use error::RunFileError;
pub use latency_blob::{decode_latencies, encode_latencies};
pub use listing::{ListedRun, Listing, head, heads};
pub use run_file::RunFile;

/// Reads a whole run, finished or not. Trials of a round that was interrupted are included; if
/// the round was measured again later, those that were valid are `Outcome::Invalid` with the
/// reason [`SUPERSEDED`], so that only the last attempt counts.
///
/// Changes and creates nothing beside the file. If a process was killed while it recorded a
/// round, the file is copied to the system's temporary directory and rolled back there. The
/// process that has the file open as a [`RunFile`] asks [`RunFile::run`] instead.
///
/// # Errors
/// Not a run file, truncated, damaged, of a newer format, or refused by the system.
pub fn read(path: &Path) -> Result<Run, RunFileError> {
    access::ReadAccess::open(path)?.contents().run()
}

/// Reads all recorded rounds, in the order of recording, complete or not.
///
/// # Errors
/// As [`read`].
pub fn rounds(path: &Path) -> Result<Vec<RecordedRound>, RunFileError> {
    access::ReadAccess::open(path)?.contents().rounds()
}
