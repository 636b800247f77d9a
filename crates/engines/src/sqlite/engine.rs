//! The `sqlite` engine: blobs in the tables of one database file, with every setting explicit.
//! With the default settings reads are done as SQLite's `kvtest` does them.
//!
//! # Read transactions
//! `read_transaction = held` begins a read transaction at the first read and keeps it, as
//! `kvtest` does: no read pays for locking. It ends when a session of the same store commits, so
//! that every read sees what was committed before it; commits of other processes are seen only
//! then, too. With a rollback journal a held read transaction keeps other sessions from
//! committing until it ends. `each` gives every read a transaction of its own: SQLite takes and
//! returns its locks and looks whether the database has changed, every time.
//!
//! # Batches
//! `transaction = all` makes a batch one transaction; `one` leaves every write to commit itself;
//! a number commits after so many writes. With a write-ahead log, commits leave pages behind that
//! a checkpoint copies into the database: `settle` does that, and with `checkpoint = included`
//! `commit` too, and SQLite itself whenever the log has grown to 1000 pages.
//!
//! Reading and writing is [`super::session`]'s business, settings are [`super::settings`]'s.

use std::fs::{self, OpenOptions};
use std::io::ErrorKind::{AlreadyExists, NotADirectory, NotFound};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use sqlitmus_core::case::Durability;
use sqlitmus_core::settings::{SettingSpecification, Settings, SettingsError};

use super::connection::Connection;
use super::error::SqliteError;
use super::force::{self, at};
use super::layout::Layout;
use super::rows::SqliteRows;
use super::session::SqliteSession;
use super::settings::{ENGINE, Plan, Prepare, SETTINGS};
use super::table::Table;
use crate::engine::{Capabilities, Content, Engine, EngineError, Session, Store};
use crate::rows::RowEngine;

/// Blobs between two reports of progress.
const PROGRESS_BLOBS: u64 = 256;

/// Blobs in a table of an SQLite database.
#[derive(Debug, Clone, Copy)]
pub struct Sqlite;

impl Engine for Sqlite {
    fn name(&self) -> &'static str {
        ENGINE
    }

    fn about(&self) -> &'static str {
        "blobs in a table of an SQLite database"
    }

    fn settings(&self) -> &'static [SettingSpecification] {
        SETTINGS
    }

    fn check(&self, settings: &Settings) -> Result<(), SettingsError> {
        Plan::from(settings).map(|_| ())
    }

    fn capabilities(&self, _settings: &Settings) -> Capabilities {
        Capabilities {
            keeps_content: true,
            persistent: true,
            writes: true,
        }
    }

    fn durability(&self, settings: &Settings) -> Durability {
        Plan::from(settings).map_or(Durability::None, |plan| plan.durability())
    }

    fn durability_settings(&self) -> Vec<&'static str> {
        vec!["library", "journal_mode", "synchronous", "residence"]
    }

    fn set_up_process(&self, settings: &Settings) -> Result<(), EngineError> {
        force::set_up(&Plan::from(settings)?)
    }

    fn rows(&self) -> Option<&dyn RowEngine> {
        Some(&SqliteRows)
    }

    fn create(&self, path: &Path, settings: &Settings) -> Result<Box<dyn Store>, EngineError> {
        let plan = Plan::from(settings)?;
        plan.check_for_blobs()?;
        let schema = match plan.layout {
            // Where who opens it finds how long its chunks are.
            Layout::Chunked => format!(
                "{}; PRAGMA user_version={}",
                plan.layout.schema(),
                plan.chunk_bytes
            ),
            layout => layout.schema().to_owned(),
        };
        create_file(path, &plan, &schema)?;
        Ok(Box::new(SqliteStore::new(path, plan)))
    }

    fn open(&self, path: &Path, settings: &Settings) -> Result<Box<dyn Store>, EngineError> {
        let plan = Plan::from(settings)?;
        plan.check_for_blobs()?;
        require_file(path)?;
        // Whether it is a store, and takes the settings, is found out now and not in a trial.
        let connection = force::open(path, &plan)?;
        connection.close().map_err(at(path))?;
        Ok(Box::new(SqliteStore::new(path, plan)))
    }

    fn companions(&self, path: &Path) -> Vec<PathBuf> {
        force::companions(path)
    }
}

/// Creates a database with a schema and the plan's settings in a file that does not exist.
pub(crate) fn create_file(path: &Path, plan: &Plan, schema: &str) -> Result<(), EngineError> {
    // Before anything is created: a library that is not there leaves nothing behind.
    force::library(plan)?;
    // SQLite would take a journal that lies there for the new database's own, and delete it.
    let foreign = force::companions(path)
        .into_iter()
        .find(|companion| companion.symlink_metadata().is_ok());
    if let Some(companion) = foreign {
        return Err(EngineError::Exists(companion));
    }
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(path)
        .map_err(|error| match error.kind() {
            AlreadyExists => EngineError::Exists(path.to_owned()),
            _ => EngineError::io("create", path)(error),
        })?;
    create_tables(path, plan, schema).inspect_err(|_| {
        // Ours, made a moment ago. The first failure is the one to report.
        for leftover in std::iter::once(path.to_owned()).chain(force::companions(path)) {
            let _ = fs::remove_file(leftover);
        }
    })
}

/// Refuses what is no file.
pub(super) fn require_file(path: &Path) -> Result<(), EngineError> {
    match path.metadata() {
        Ok(metadata) if metadata.is_file() => Ok(()),
        Err(error) if !matches!(error.kind(), NotFound | NotADirectory) => {
            Err(EngineError::io("open", path)(error))
        }
        _ => Err(EngineError::NoStore(path.to_owned())),
    }
}

/// Makes the tables in an empty file and puts the settings in force, so that those which stand in
/// the database (page size, WAL mode) do.
fn create_tables(path: &Path, plan: &Plan, schema: &str) -> Result<(), EngineError> {
    let mut connection = force::connect(path, plan)?;
    connection
        .set_pragma("page_size", plan.page_bytes)
        .and_then(|()| connection.execute(schema))
        .map_err(at(path))?;
    force::put_in_force(&mut connection, path, plan)?;
    connection.close().map_err(at(path))
}

/// A connection for loading: without a journal, without waiting for the device and without giving
/// way to anybody, whatever the settings.
pub(crate) fn connect_for_loading(path: &Path, plan: &Plan) -> Result<Connection, EngineError> {
    let mut connection = force::connect(path, plan)?;
    let loading = [
        ("locking_mode", "exclusive"),
        ("journal_mode", "off"),
        ("synchronous", "off"),
    ];
    for (name, value) in loading {
        connection.set_pragma(name, value).map_err(at(path))?;
    }
    let mode = connection.pragma_text("journal_mode").map_err(at(path))?;
    if mode.as_deref() != Some("off") {
        // Only somebody else's open connection keeps SQLite from leaving WAL mode.
        return Err(at(path)(SqliteError::misuse(
            "load",
            "the database is in use",
        )));
    }
    Ok(connection)
}

struct SqliteStore {
    path: PathBuf,
    plan: Plan,
    /// Commits made by all sessions of this store.
    commits: Arc<AtomicU64>,
}

impl SqliteStore {
    fn new(path: &Path, plan: Plan) -> Self {
        Self {
            path: path.to_owned(),
            plan,
            commits: Arc::new(AtomicU64::new(0)),
        }
    }

    /// Inserts all blobs in one transaction, in the order of their keys: each page is written
    /// once, and nothing twice.
    fn insert_all(
        &self,
        connection: &mut Connection,
        content: &dyn Content,
        progress: &mut dyn FnMut(u64),
    ) -> Result<(), EngineError> {
        let failed = || at(&self.path);
        connection.execute("BEGIN EXCLUSIVE").map_err(failed())?;
        let mut table = Table::new(connection, &self.plan, Prepare::Once).map_err(failed())?;
        let mut blob = Vec::new();
        for key in 1..=content.count() {
            content
                .fill(key, &mut blob)
                .map_err(EngineError::io("make the content of", &self.path))?;
            table.insert(connection, key, &blob).map_err(failed())?;
            if key % PROGRESS_BLOBS == 0 || key == content.count() {
                progress(key);
            }
        }
        connection.execute("COMMIT").map_err(failed())
    }
}

impl Store for SqliteStore {
    /// Loads as [`connect_for_loading`] says; the settings are put in force again afterwards.
    fn load(
        &self,
        content: &dyn Content,
        progress: &mut dyn FnMut(u64),
    ) -> Result<(), EngineError> {
        let mut connection = connect_for_loading(&self.path, &self.plan)?;
        self.insert_all(&mut connection, content, progress)?;
        connection.close().map_err(at(&self.path))?;
        let connection = force::open(&self.path, &self.plan)?;
        connection.close().map_err(at(&self.path))
    }

    fn session(&self) -> Result<Box<dyn Session>, EngineError> {
        let commits = Arc::clone(&self.commits);
        let session = SqliteSession::open(&self.path, self.plan.clone(), commits)?;
        Ok(Box::new(session))
    }
}
