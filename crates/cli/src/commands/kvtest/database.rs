//! Databases that a verb is given: whether the file is one, and opening it so that a verb which
//! only reads changes nothing. What is asked of the database is left to the verbs.
//!
//! kvtest opens every database for reading and writing. A reader of ours opens it read-only, with
//! one exception: SQLite can read a database in WAL mode only if there is, or it may make, a log
//! beside it. Where there is none yet the database is opened for writing with `query_only` on;
//! the empty log goes away on closing, and the database's own file is never written. Where there
//! is one with something in it, read-only again: otherwise closing would copy it into the file.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use rusqlite::ffi;
use sqlitmus_engines::sqlite::{Connection, Library, LibraryChoice, OpenMode, SqliteError};

use super::failures;
use crate::failure::Failure;
use crate::machine::path_suffix::with_suffix;

/// First bytes of every SQLite database ("Database File Format", section 1.3).
const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// Where the header says whether a log is needed for reading.
const READ_VERSION_OFFSET: usize = 19;

/// What stands there in WAL mode.
const READ_VERSION_WAL: u8 = 2;

/// A database file with a way of opening it.
#[derive(Debug, Clone)]
pub(super) struct Database {
    path: PathBuf,
    /// SQLite needs a log beside it, even for reading.
    is_wal: bool,
    access: Access,
}

/// How a database is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access {
    ReadOnly,
    /// For writing, as far as SQLite is concerned, but without the right to change anything.
    QueryOnly,
    ReadWrite,
}

impl Database {
    /// A database that must stay as it is.
    ///
    /// # Errors
    /// There is none at the path.
    pub(super) fn for_reading(path: &Path) -> Result<Self, Failure> {
        let is_wal = is_wal(path)?;
        let access = if is_wal && !has_log(path) {
            Access::QueryOnly
        } else {
            Access::ReadOnly
        };
        Ok(Self {
            path: path.to_owned(),
            is_wal,
            access,
        })
    }

    /// A database that may be changed.
    ///
    /// # Errors
    /// There is none at the path.
    pub(super) fn for_writing(path: &Path) -> Result<Self, Failure> {
        Ok(Self {
            path: path.to_owned(),
            is_wal: is_wal(path)?,
            access: Access::ReadWrite,
        })
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens it.
    ///
    /// # Errors
    /// The system or SQLite refuses.
    pub(super) fn open(&self) -> Result<Connection, Failure> {
        let mode = match self.access {
            Access::ReadOnly => OpenMode::ReadOnly,
            Access::QueryOnly | Access::ReadWrite => OpenMode::ReadWrite,
        };
        let failed = |error| failures::sqlite(&self.path, &error);
        let mut connection = Connection::open(library()?, &self.path, mode).map_err(failed)?;
        if self.access == Access::QueryOnly {
            connection.set_pragma("query_only", 1).map_err(failed)?;
        }
        Ok(connection)
    }

    /// Opens it and makes sure that there is a table `kv(k, v)`. This also rolls back, or
    /// recovers, what a crash left, if the database may be changed.
    ///
    /// # Errors
    /// It is no database, a damaged one, or one without that table.
    pub(super) fn open_checked(&self) -> Result<Connection, Failure> {
        let mut connection = self.open()?;
        let shown = self.path.display();
        let columns = connection
            .query_text("SELECT group_concat(lower(name)) FROM pragma_table_info('kv')")
            .map_err(|error| self.unreadable(&error))?;
        if columns.as_deref() != Some("k,v") {
            return Err(Failure::bad_input(
                format!("{shown} is an SQLite database, but has no table kv(k, v)"),
                "make one that has: sqlitmus kvtest init test.db --count 1000 --size 10000",
            ));
        }
        Ok(connection)
    }

    /// The failure that the first look into the database met.
    fn unreadable(&self, error: &SqliteError) -> Failure {
        let shown = self.path.display();
        if self.is_wal && error.code == ffi::SQLITE_CANTOPEN {
            return Failure::bad_input(
                format!("{shown} is in WAL mode, and its directory is not to be written to"),
                format!("copy it to a directory where SQLite can make its log: cp {shown} /tmp"),
            );
        }
        failures::sqlite(&self.path, error)
    }

    /// What `PRAGMA integrity_check` finds, line by line; the one line `ok` if nothing is wrong.
    ///
    /// # Errors
    /// The check itself cannot be run.
    pub(super) fn check_integrity(
        &self,
        connection: &mut Connection,
        most_lines: u32,
    ) -> Result<Vec<String>, Failure> {
        let failed = |error| failures::sqlite(&self.path, &error);
        let check = connection
            .prepare(&format!("PRAGMA integrity_check({most_lines})"))
            .map_err(failed)?;
        let mut statement = connection.statement(check);
        let mut lines = Vec::new();
        while let Some(mut row) = statement.step().map_err(failed)? {
            lines.push(row.text(0).map_err(failed)?.to_owned());
        }
        Ok(lines)
    }

    /// The failure that follows from such lines, if one does.
    pub(super) fn damage(&self, lines: &[String]) -> Option<Failure> {
        if lines == ["ok"] {
            return None;
        }
        let shown = self.path.display();
        Some(Failure {
            code: crate::failure::ExitCode::No,
            message: format!(
                "{shown} is damaged: the integrity check found {}",
                lines.len()
            ),
            hint: format!("save what can be read: sqlite3 {shown} .recover"),
        })
    }
}

/// The SQLite that all verbs use: ours.
///
/// # Errors
/// It cannot set itself up.
pub(super) fn library() -> Result<&'static Library, Failure> {
    Library::load(&LibraryChoice::Bundled)
        .map_err(|error| Failure::environment(error.to_string(), ""))
}

/// Whether a write-ahead log with something in it lies beside the database.
fn has_log(path: &Path) -> bool {
    with_suffix(path, "-wal")
        .metadata()
        .is_ok_and(|metadata| metadata.len() > 0)
}

/// Whether a database is in WAL mode, by its header. Done before SQLite opens the file: closing it
/// here would drop the locks of a connection of this process.
///
/// # Errors
/// There is no database at the path.
fn is_wal(path: &Path) -> Result<bool, Failure> {
    let shown = path.display();
    let doing = || format!("cannot open {shown}");
    let hint = || format!("make a database: sqlitmus kvtest init {shown}");
    let unreadable = |error| failures::file(doing(), &error, format!("see: ls -ld {shown}"));
    let metadata = path.metadata().map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => failures::file(doing(), &error, hint()),
        _ => unreadable(error),
    })?;
    if metadata.is_dir() {
        return Err(Failure::bad_input(
            format!("{shown} is a directory, not a database"),
            "a directory of blobs can be read: sqlitmus kvtest run DIRECTORY",
        ));
    }
    if !metadata.is_file() {
        return Err(Failure::bad_input(
            format!("{shown} is neither a file nor a directory"),
            hint(),
        ));
    }
    let mut header = [0; READ_VERSION_OFFSET + 1];
    let mut file = File::open(path).map_err(unreadable)?;
    match file.read_exact(&mut header) {
        Ok(()) if header.starts_with(MAGIC) => Ok(header[READ_VERSION_OFFSET] == READ_VERSION_WAL),
        Err(error) if error.kind() != std::io::ErrorKind::UnexpectedEof => Err(unreadable(error)),
        _ => Err(Failure::bad_input(
            format!("{shown} is not an SQLite database"),
            "make one under another name: sqlitmus kvtest init test.db",
        )),
    }
}
