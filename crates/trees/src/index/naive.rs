//! The published way of recording a tree: one thread walks, and every entry is an INSERT of its own,
//! with its statement prepared anew and a commit of its own. It is here to be compared with, and slow
//! on purpose. Source: the file-index insert test on different disks, a Go program with database/sql.

use std::cell::Cell;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use rusqlite::{Connection, params};

use super::database::{open_writable, table_names};
use super::folder_block::Name;
use super::own_files::OwnFiles;
use super::stopwatch::Stopwatch;
use super::{
    IndexOptions, IndexProgress, Indexed, Pace, Recorded, RowWrites, nanoseconds, with_limit,
};
use crate::entry::Entry;
use crate::error::TreeError;
use crate::walk::{Folder, FolderStamp, FolderState, Tree, Visitor, walk_here};

/// The table, as published.
pub const STATEMENTS: &str = "CREATE TABLE file_index (folder TEXT, filename TEXT)";

const INSERT: &str = "INSERT INTO file_index (folder, filename) VALUES (?1, ?2)";

/// A database with that table and nothing in it.
#[derive(Debug)]
pub struct NaiveDatabase {
    connection: Connection,
    path: PathBuf,
}

impl NaiveDatabase {
    /// Makes the database, with SQLite's default settings: rollback journal, `synchronous = FULL`.
    ///
    /// # Errors
    /// There is something already, or SQLite fails.
    pub fn create(path: &Path) -> Result<Self, TreeError> {
        let owned = || path.to_owned();
        match std::fs::metadata(path) {
            Ok(metadata) if !metadata.is_file() => {
                return Err(TreeError::NotAFile { path: owned() });
            }
            Ok(metadata) if metadata.len() > 0 => {
                return Err(match table_names(path) {
                    None => TreeError::NotADatabase { path: owned() },
                    Some(_) => TreeError::NotEmpty { path: owned() },
                });
            }
            _ => {}
        }
        let failed = |source| TreeError::database(path, Recorded::default(), source);
        let connection = open_writable(path).map_err(failed)?;
        connection.execute_batch(STATEMENTS).map_err(failed)?;
        Ok(Self {
            connection,
            path: owned(),
        })
    }

    /// The connection, for other settings (journal, syncing) and for questions.
    #[must_use]
    pub fn connection(&self) -> &Connection {
        &self.connection
    }
}

/// Records a tree in the published way. `observe` is told how far it is.
///
/// # Errors
/// SQLite failed. What was committed before is told and stays.
pub fn record(
    tree: &Tree,
    database: &mut NaiveDatabase,
    options: &IndexOptions,
    should_stop: &(dyn Fn() -> bool + Sync),
    observe: &mut dyn FnMut(&IndexProgress),
) -> Result<Indexed, TreeError> {
    let started = Instant::now();
    let is_over = AtomicBool::new(false);
    let should_stop = with_limit(should_stop, started, options.time_limit);
    let should_stop = || is_over.load(Ordering::Relaxed) || should_stop();
    let own_files = OwnFiles::of(&database.path);
    let inserter = Inserter {
        connection: &database.connection,
        tree: tree.path().as_os_str().as_bytes(),
        own_files: &own_files,
        folder: Vec::new(),
        holds_database: false,
        stopwatch: Stopwatch::default(),
        started,
        pace: Pace::new(started, options.report_every),
        recorded: Recorded::default(),
        failure: Cell::new(None),
        is_over: &is_over,
        should_stop: &should_stop,
        observe,
    };
    let mut walked = walk_here(tree, &options.walk, inserter, &should_stop);
    let Some(inserter) = walked.visitors.pop() else {
        unreachable!("a walk returns its visitors");
    };
    if let Some(source) = inserter.failure.take() {
        return Err(TreeError::database(
            &database.path,
            inserter.recorded,
            source,
        ));
    }
    let elapsed_ns = nanoseconds(started);
    let sql_ns = inserter.stopwatch.wall_ns();
    Ok(Indexed {
        counts: walked.counts,
        oddities: walked.oddities,
        writes: RowWrites {
            entries_added: inserter.recorded.entries,
            ..RowWrites::default()
        },
        commits: inserter.recorded.entries,
        threads: 1,
        elapsed_ns,
        sql_ns,
        sql_cpu_ns: inserter.stopwatch.cpu_ns(),
        walk_ns: elapsed_ns.saturating_sub(sql_ns),
        stopped: walked.stopped || is_over.load(Ordering::Relaxed),
    })
}

struct Inserter<'a> {
    connection: &'a Connection,
    tree: &'a [u8],
    own_files: &'a OwnFiles,
    /// Full path of the current folder.
    folder: Vec<u8>,
    holds_database: bool,
    stopwatch: Stopwatch,
    started: Instant,
    pace: Pace,
    recorded: Recorded,
    failure: Cell<Option<rusqlite::Error>>,
    is_over: &'a AtomicBool,
    should_stop: &'a dyn Fn() -> bool,
    observe: &'a mut dyn FnMut(&IndexProgress),
}

impl Inserter<'_> {
    fn report(&mut self) {
        let sql_ns = self.stopwatch.wall_ns();
        let walk_ns = nanoseconds(self.started).saturating_sub(sql_ns);
        let rows = self.recorded.entries;
        let progress = self.pace.report(rows, rows, sql_ns, walk_ns);
        (self.observe)(&progress);
    }
}

impl Visitor for Inserter<'_> {
    type Mark = ();

    fn enter(&mut self, folder: &Folder<'_>, _: Option<()>) {
        self.folder.clear();
        self.folder.extend_from_slice(self.tree);
        if !folder.path.is_empty() {
            if self.tree != b"/" {
                self.folder.push(b'/');
            }
            self.folder.extend_from_slice(folder.path);
        }
        self.holds_database = self.own_files.are_in(folder);
    }

    fn entry(&mut self, _: &Folder<'_>, entry: &Entry<'_>) {
        if self.is_over.load(Ordering::Relaxed)
            || (self.holds_database && self.own_files.are_called(entry.name))
        {
            return;
        }
        let (connection, folder) = (self.connection, Name::new(&self.folder));
        let name = Name {
            bytes: entry.name,
            is_text: entry.text.is_some(),
        };
        let inserted = self
            .stopwatch
            .time(|| connection.execute(INSERT, params![folder, name]));
        match inserted {
            Ok(_) => self.recorded.entries += 1,
            Err(error) => {
                self.failure.set(Some(error));
                self.is_over.store(true, Ordering::Relaxed);
            }
        }
        if self.pace.left().is_zero() {
            self.report();
        }
        // A folder can be large and a commit slow: not only between folders.
        if (self.should_stop)() {
            self.is_over.store(true, Ordering::Relaxed);
        }
    }

    fn leave(&mut self, _: &Folder<'_>, _: FolderState, _: Option<FolderStamp>) {
        self.recorded.folders += 1;
    }
}
