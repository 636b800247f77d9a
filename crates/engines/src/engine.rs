//! The seam every engine fits into: [`Engine`] opens a [`Store`], a store hands out
//! [`Session`]s, one a thread. Optional abilities are separate traits that a session offers or
//! does not offer; none is a silent no-op.
//!
//! What is measured, how often and in which order is left to the caller. To add an engine, write
//! one file that implements these traits, add its line to `ENGINES` in `lib.rs`, and let the
//! conformance suite pass.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use sqlitmus_core::case::Durability;
use sqlitmus_core::dataset::Dataset;
use sqlitmus_core::settings::{SettingSpecification, Settings, SettingsError};

use crate::own_files::FileList;
use crate::rows::RowEngine;
use crate::sqlite::SqliteError;

/// Code that can store things.
pub trait Engine: Sync {
    /// Name used in suites.
    fn name(&self) -> &'static str;

    /// One line for `sqlitmus list`.
    fn about(&self) -> &'static str;

    /// The settings it knows, all of them.
    fn settings(&self) -> &'static [SettingSpecification];

    /// Checks that resolved settings make sense together. The default accepts all.
    ///
    /// # Errors
    /// Says which settings contradict each other.
    fn check(&self, _settings: &Settings) -> Result<(), SettingsError> {
        Ok(())
    }

    /// What a store with these settings can do.
    fn capabilities(&self, settings: &Settings) -> Capabilities;

    /// What a committed write survives with these settings, as the engine's documentation
    /// promises it.
    fn durability(&self, settings: &Settings) -> Durability;

    /// Names of the settings that decide what a committed write survives: two stores that differ in
    /// others only are alike in that. The default names all, which is always true.
    fn durability_settings(&self) -> Vec<&'static str> {
        let all = self.settings().iter();
        all.map(|specification| specification.name).collect()
    }

    /// Creates an empty store at a path that does not exist.
    ///
    /// # Errors
    /// The path exists, or the environment refused.
    fn create(&self, path: &Path, settings: &Settings) -> Result<Box<dyn Store>, EngineError>;

    /// Opens the store at a path.
    ///
    /// # Errors
    /// There is none, it is damaged, or settings cannot be put in force.
    fn open(&self, path: &Path, settings: &Settings) -> Result<Box<dyn Store>, EngineError>;

    /// Sets up what holds for the whole process and cannot be changed later. A worker calls it
    /// first of all; who fills or verifies stores need not. The default has nothing to set up.
    ///
    /// # Errors
    /// It is too late: the engine is in use.
    fn set_up_process(&self, _settings: &Settings) -> Result<(), EngineError> {
        Ok(())
    }

    /// Rows beside blobs, if it speaks SQL.
    fn rows(&self) -> Option<&dyn RowEngine> {
        None
    }

    /// Further paths that belong to the store at `path` and may or may not exist at a given
    /// moment, such as a journal.
    fn companions(&self, _path: &Path) -> Vec<PathBuf> {
        Vec::new()
    }

    /// Files that the store at `path` reads and that belong to somebody else. They are part of what it
    /// takes on disk and in the page cache, and never of what is written or removed.
    ///
    /// # Errors
    /// The store does not say which they are.
    fn foreign_files(&self, _path: &Path) -> Result<Vec<PathBuf>, EngineError> {
        Ok(Vec::new())
    }
}

/// What an engine can do with given settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// It gives back what was stored. Without it (`null`) nothing can be verified.
    pub keeps_content: bool,
    /// What was stored is there after the process has ended.
    pub persistent: bool,
    /// Sessions offer [`Writer`].
    pub writes: bool,
}

/// One engine with settings, opened on one place.
pub trait Store: Send + Sync {
    /// Stores all of `content`, quickly and with bounded memory, into an empty store. Ends when
    /// the data has been handed to the operating system. `progress` is told the number of blobs
    /// stored so far, now and then.
    ///
    /// # Errors
    /// The first thing that went wrong; the store is then good for nothing.
    fn load(&self, content: &dyn Content, progress: &mut dyn FnMut(u64))
    -> Result<(), EngineError>;

    /// A new handle for one thread.
    ///
    /// # Errors
    /// The store cannot be opened, or a setting cannot be put in force.
    fn session(&self) -> Result<Box<dyn Session>, EngineError>;
}

/// One thread's handle on a store.
pub trait Session: Send {
    /// Hands the blob stored under `key` to `consume`, once.
    ///
    /// # Errors
    /// [`EngineError::Missing`] if there is none; `consume` was then not called.
    fn read(&mut self, key: u64, consume: &mut dyn FnMut(&[u8])) -> Result<(), EngineError>;

    /// All keys, in ascending order.
    ///
    /// # Errors
    /// The store cannot be read.
    fn keys(&mut self, visit: &mut dyn FnMut(u64)) -> Result<(), EngineError>;

    /// Writing, if the engine can.
    fn writer(&mut self) -> Option<&mut dyn Writer>;

    /// What the engine itself has counted since the session was opened, by name with unit. Names
    /// contain the engine's; those that begin with `peak_` are levels, the others sums. Empty for
    /// an engine that counts nothing.
    fn counters(&mut self) -> BTreeMap<&'static str, u64> {
        BTreeMap::new()
    }

    /// What is really in force, asked of the live engine rather than remembered: every setting
    /// that affects durability or cache, the library's version and options.
    ///
    /// # Errors
    /// The engine does not answer.
    fn read_back(&mut self) -> Result<ReadBack, EngineError>;
}

/// Names and values as the live engine reports them.
pub type ReadBack = BTreeMap<String, String>;

/// Writing to a store. Writes come in batches; what a batch is to the engine (one transaction,
/// several, or nothing at all) is one of its settings.
pub trait Writer {
    /// Starts a batch.
    ///
    /// # Errors
    /// The engine refused, for instance because another writer is at work.
    fn begin(&mut self) -> Result<(), EngineError>;

    /// Stores a blob under a key, whether or not there was one. Only between `begin` and
    /// `commit`.
    ///
    /// # Errors
    /// It was not stored.
    fn put(&mut self, key: u64, value: &[u8]) -> Result<(), EngineError>;

    /// Stores a blob under a key that has none, for whoever knows that. The default is `put`.
    ///
    /// # Errors
    /// It was not stored, perhaps because there was one.
    fn insert(&mut self, key: u64, value: &[u8]) -> Result<(), EngineError> {
        self.put(key, value)
    }

    /// Removes a blob; says whether there was one. Only between `begin` and `commit`.
    ///
    /// # Errors
    /// The engine refused.
    fn delete(&mut self, key: u64) -> Result<bool, EngineError>;

    /// Ends the batch: when it returns, its writes survive what [`Engine::durability`] says.
    ///
    /// # Errors
    /// The batch may be lost, wholly or in part.
    fn commit(&mut self) -> Result<(), EngineError>;

    /// Does the work that commits have left for later, such as a checkpoint.
    ///
    /// # Errors
    /// The engine refused.
    fn settle(&mut self) -> Result<(), EngineError>;
}

/// Where the blobs of a load come from; keys are 1 to [`Content::count`].
pub trait Content: Sync {
    /// Number of blobs.
    fn count(&self) -> u64;

    /// Replaces the contents of `buffer` with the blob of a key.
    ///
    /// # Errors
    /// The source cannot be read.
    fn fill(&self, key: u64, buffer: &mut Vec<u8>) -> io::Result<()>;

    /// The files that the blobs are the content of, if they come from files.
    fn files(&self) -> Option<&FileList> {
        None
    }
}

impl Content for Dataset {
    fn count(&self) -> u64 {
        self.count
    }

    fn fill(&self, key: u64, buffer: &mut Vec<u8>) -> io::Result<()> {
        Self::fill(self, key, 0, buffer);
        Ok(())
    }
}

/// What can go wrong in an engine.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// No blob under that key.
    #[error("there is no blob {key} in {}", path.display())]
    Missing {
        /// Key asked for.
        key: u64,
        /// The store.
        path: PathBuf,
    },
    /// The store to create is there already.
    #[error("{} exists already", .0.display())]
    Exists(PathBuf),
    /// There is no store at that path.
    #[error("there is no store at {}", .0.display())]
    NoStore(PathBuf),
    /// A file operation failed.
    #[error("cannot {doing} {}", path.display())]
    Io {
        /// The operation, as a verb: "open", "read".
        doing: &'static str,
        /// What it was done to.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// SQLite refused.
    #[error("{}: SQLite refused", path.display())]
    Sqlite {
        /// The database.
        path: PathBuf,
        /// SQLite's reason.
        source: SqliteError,
    },
    /// The store's own structure contradicts itself.
    #[error("{} is damaged: {reason}", path.display())]
    Damaged {
        /// The store.
        path: PathBuf,
        /// What was found.
        reason: String,
    },
    /// A setting could not be put in force: the live engine reports another value.
    #[error("setting `{name}`: asked for {asked}, but the engine reports {got}")]
    NotInForce {
        /// Setting's name.
        name: &'static str,
        /// Value wanted.
        asked: String,
        /// Value read back.
        got: String,
    },
    /// The settings are wrong.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// Something the machine lacks (a library, a kernel call): the arm is skipped, not failed.
    #[error("not available here: {0}")]
    Unavailable(String),
}

impl EngineError {
    /// Whether another connection held a lock that was needed: trying again may succeed.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        matches!(self, Self::Sqlite { source, .. } if source.is_busy())
    }

    /// Whether the machine gave out rather than the store: disk full, I/O error, no memory.
    #[must_use]
    pub fn is_environment(&self) -> bool {
        match self {
            Self::Io { source, .. } => {
                // The standard library has no kind for an I/O error of the device.
                source.raw_os_error() == Some(libc::EIO)
                    || matches!(
                        source.kind(),
                        io::ErrorKind::StorageFull
                            | io::ErrorKind::QuotaExceeded
                            | io::ErrorKind::ReadOnlyFilesystem
                            | io::ErrorKind::OutOfMemory
                    )
            }
            Self::Sqlite { source, .. } => source.is_environment(),
            _ => false,
        }
    }

    /// An [`EngineError::Io`], for `map_err`. The path is copied only if there is an error.
    pub fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io {
            doing,
            path: path.to_owned(),
            source,
        }
    }
}
