//! The seam for rows: what engines that speak SQL can do beside storing blobs. The tables and
//! their content are [`sqlitmus_core::rows`]' business, what is done with them the workloads'.
//!
//! Transactions are the caller's: outside `begin` and `commit` every statement is one by itself.

use std::collections::BTreeMap;
use std::path::Path;

use sqlitmus_core::rows::{Rows, User};
use sqlitmus_core::settings::Settings;

use crate::engine::{EngineError, ReadBack};

/// An engine with the tables `user` and `orders`.
pub trait RowEngine: Sync {
    /// Creates a store with empty tables at a path that does not exist.
    ///
    /// # Errors
    /// The path exists, or the environment refused.
    fn create(&self, path: &Path, settings: &Settings) -> Result<Box<dyn RowStore>, EngineError>;

    /// Opens the store at a path.
    ///
    /// # Errors
    /// There is none, it has other tables, or settings cannot be put in force.
    fn open(&self, path: &Path, settings: &Settings) -> Result<Box<dyn RowStore>, EngineError>;
}

/// One engine with settings, opened on one place with rows.
pub trait RowStore: Send + Sync {
    /// Stores all rows into empty tables, quickly. `progress` is told the number of rows stored so
    /// far, now and then; what it returns says whether to go on.
    ///
    /// # Errors
    /// The first thing that went wrong, or [`std::io::ErrorKind::Interrupted`] if it was not to go
    /// on; the store is then good for nothing.
    fn load(&self, rows: &Rows, progress: &mut dyn FnMut(u64) -> bool) -> Result<(), EngineError>;

    /// A new handle for one thread.
    ///
    /// # Errors
    /// The store cannot be opened, or a setting cannot be put in force.
    fn session(&self) -> Result<Box<dyn RowSession>, EngineError>;
}

/// One thread's handle on a store with rows. An error for which [`EngineError::is_busy`] holds
/// says that somebody else has a lock: roll back and try again.
pub trait RowSession: Send {
    /// `select * from user where id = ?`: reads every column of the row found, and returns
    /// [`sqlitmus_core::rows::consume_user`] of it; `None` if there is no such row.
    ///
    /// # Errors
    /// The store cannot be read.
    fn query(&mut self, id: u64) -> Result<Option<u64>, EngineError>;

    /// Inserts rows into `user`, which gives them the ids that follow.
    ///
    /// # Errors
    /// None of them was inserted, or in a transaction some.
    fn insert(&mut self, users: &[User<'_>]) -> Result<(), EngineError>;

    /// `update user set c1=c1+1 where id=?`; says whether there is such a row.
    ///
    /// # Errors
    /// It was not changed.
    fn update(&mut self, id: u64) -> Result<bool, EngineError>;

    /// Begins a transaction that will write.
    ///
    /// # Errors
    /// Another writer is at work, or the environment refused.
    fn begin(&mut self) -> Result<(), EngineError>;

    /// Ends it: when it returns, its writes survive what [`crate::Engine::durability`] says.
    ///
    /// # Errors
    /// What was written may be lost; the transaction may still be open.
    fn commit(&mut self) -> Result<(), EngineError>;

    /// Undoes what was not committed, if a transaction is open.
    ///
    /// # Errors
    /// The environment refused.
    fn rollback(&mut self) -> Result<(), EngineError>;

    /// Makes `user` as empty as it was when it was created, and its file as small.
    ///
    /// # Errors
    /// Somebody else uses the store, or the environment refused.
    fn clear(&mut self) -> Result<(), EngineError>;

    /// Counts and adds up everything in `user`.
    ///
    /// # Errors
    /// The store cannot be read.
    fn totals(&mut self) -> Result<UserTotals, EngineError>;

    /// Does the work that commits have left for later, such as a checkpoint.
    ///
    /// # Errors
    /// The engine refused.
    fn settle(&mut self) -> Result<(), EngineError>;

    /// What is really in force, asked of the live engine.
    ///
    /// # Errors
    /// The engine does not answer.
    fn read_back(&mut self) -> Result<ReadBack, EngineError>;

    /// What the engine has counted since this was last asked, by name with unit. The default has
    /// counted nothing.
    fn take_counters(&mut self) -> Counters {
        Counters::new()
    }
}

/// Numbers by name with unit. Names that begin with `peak_` are levels, all others sums.
pub type Counters = BTreeMap<String, u64>;

/// Everything in `user`, added up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UserTotals {
    /// Number of rows.
    pub rows: u64,
    /// Sum of `c1`.
    pub c1_sum: i64,
    /// Sum of [`sqlitmus_core::rows::consume_user`] over all rows, wrapping.
    pub consumed: u64,
}
