//! What a process that touches a store is asked to do, and what it answers: one JSON object on
//! standard input; on standard output one JSON object, except from a writer, which acknowledges
//! commits in eight bytes each for as long as it lives.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use sqlitmus_core::durability::Batches;
use sqlitmus_core::settings::Settings;

/// The word that makes this program such a process; the number of the asking process follows it.
pub const STORE_ARGUMENT: &str = "__durability-store";

/// What is to be done with one store.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Job {
    /// The engine.
    pub engine: String,
    /// Its settings.
    pub settings: Settings,
    /// The store.
    pub path: PathBuf,
    /// What is written.
    pub batches: Batches,
    /// What to do.
    pub task: Task,
}

/// Tasks.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum Task {
    /// Make the store with the filling in it, and say what the live engine says is in force: a
    /// [`Filled`].
    Fill,
    /// Write one batch after the other until killed. Each is acknowledged with its number, eight
    /// bytes, least significant first; a 0 says that the store is open.
    Write {
        /// Mean pause between two commits, nanoseconds; exponentially distributed.
        pause_ns: u64,
        /// Settle after every so many commits.
        settle_every: u64,
        /// Acknowledge each batch so many batches before it is written: a lie.
        lag: u64,
    },
    /// Open the store, as after a crash, and look at all of it: a
    /// [`sqlitmus_core::durability::StoreFinding`].
    Check,
}

/// Answer to [`Task::Fill`].
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Filled {
    /// It is there; what the live engine says.
    Done(BTreeMap<String, String>),
    /// It is not, for this reason.
    Failed(String),
    /// The machine lacks something.
    Unavailable(String),
}
