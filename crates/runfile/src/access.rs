//! Opening a run file's database: for appending with the modes that keep it whole, or for reading
//! without changing or creating anything. What stands in it is [`crate::contents`]'s business.
//!
//! Why a rollback journal (`journal_mode = DELETE`) and not a write-ahead log. One program
//! writes, once a round; the rest of the time the run is one self-contained file, which can be
//! copied, mailed and read from a read-only disk while the next round is measured. A write-ahead
//! log would hold the newest rounds in a second file for most of the run, and its readers create
//! files. The one weak moment is a commit: a process killed in it leaves a journal that the next
//! writer rolls back. A reader may not write, so it rolls back a private copy instead.
//!
//! Why `synchronous = FULL`: after a loss of power the file is whole and lacks at most the round
//! that was being recorded. `NORMAL` saves one flush a round and with a rollback journal can
//! damage the file; a flush of some milliseconds between rounds disturbs no measurement.

use std::env;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, MAIN_DB, OpenFlags};
use tempfile::TempDir;

use crate::contents::{Contents, has_column};
use crate::error::RunFileError;
use crate::header::Header;
use crate::schema::ADDED_SAMPLE_COLUMNS;
use crate::schema::{FileKind, MEASUREMENT};

/// Reading a run takes a second or two at the most; a writer waits for many readers.
const WRITER_PATIENCE: Duration = Duration::from_secs(60);
/// Writing a round takes well under a second.
const READER_PATIENCE: Duration = Duration::from_secs(10);

/// A database opened for reading.
pub(crate) struct ReadAccess {
    /// Declared before the copy, so that it is closed before the copy is removed.
    connection: Connection,
    path: PathBuf,
    /// Where the copy is, if the file itself could not be read without changing it.
    _copy: Option<TempDir>,
}

impl ReadAccess {
    /// Opens the run file at a path; creates and changes nothing there.
    pub(crate) fn open(path: &Path) -> Result<Self, RunFileError> {
        Self::open_kind(path, &MEASUREMENT)
    }

    /// As [`ReadAccess::open`], of any kind.
    pub(crate) fn open_kind(path: &Path, kind: &FileKind) -> Result<Self, RunFileError> {
        let header = Header::read(path, kind)?;
        if !header.write_ahead_log {
            let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
            connection
                .busy_timeout(READER_PATIENCE)
                .map_err(|source| RunFileError::from_database(path, source))?;
            match check_whole(path, &connection, kind) {
                Err(error) if needs_recovery(&error) => {}
                checked => {
                    return checked.map(|()| Self {
                        connection,
                        path: path.to_owned(),
                        _copy: None,
                    });
                }
            }
        }
        let (connection, copy) = recovered_copy(path, kind)?;
        Ok(Self {
            connection,
            path: path.to_owned(),
            _copy: Some(copy),
        })
    }

    /// Its database.
    pub(crate) fn connection(&self) -> &Connection {
        &self.connection
    }

    /// What stands in it.
    pub(crate) fn contents(&self) -> Contents<'_> {
        Contents {
            connection: &self.connection,
            path: &self.path,
        }
    }
}

/// Opens an existing run file for appending; rolls back what a killed process left half written.
pub(crate) fn open_for_append(path: &Path) -> Result<Connection, RunFileError> {
    let connection = open_kind_for_append(path, &MEASUREMENT)?;
    add_columns(&connection).map_err(|source| RunFileError::from_database(path, source))?;
    Ok(connection)
}

/// As [`open_for_append`], of any kind.
pub(crate) fn open_kind_for_append(
    path: &Path,
    kind: &FileKind,
) -> Result<Connection, RunFileError> {
    Header::read(path, kind)?;
    let connection = open_writable(path)?;
    check_whole(path, &connection, kind)?;
    Ok(connection)
}

/// Brings a file of an earlier version up to what is written now.
fn add_columns(connection: &Connection) -> rusqlite::Result<()> {
    for column in ADDED_SAMPLE_COLUMNS {
        if !has_column(connection, "sample", column)? {
            let sql =
                format!("ALTER TABLE sample ADD COLUMN {column} INTEGER CHECK ({column} >= 0)");
            connection.execute_batch(&sql)?;
        }
    }
    Ok(())
}

/// Opens any existing file for writing, with the modes that the head of this file explains.
pub(crate) fn open_writable(path: &Path) -> Result<Connection, RunFileError> {
    let failed = |source| RunFileError::from_database(path, source);
    let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    // SQLite opens a file that may not be written for reading, and would complain a round later.
    if connection.is_readonly(MAIN_DB).map_err(failed)? {
        return Err(RunFileError::File {
            path: path.to_owned(),
            source: io::ErrorKind::PermissionDenied.into(),
        });
    }
    let set = || {
        connection.busy_timeout(WRITER_PATIENCE)?;
        let mode: String =
            connection.query_row("PRAGMA journal_mode = DELETE", [], |row| row.get(0))?;
        connection.execute_batch("PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON")?;
        Ok(mode)
    };
    let mode = set().map_err(failed)?;
    if mode == "delete" {
        Ok(connection)
    } else {
        // Leaving write-ahead-log mode needs the file for oneself.
        Err(RunFileError::Busy {
            path: path.to_owned(),
        })
    }
}

fn connect(path: &Path, access: OpenFlags) -> Result<Connection, RunFileError> {
    // An absolute path cannot be mistaken for a name with a meaning of its own, as `:memory:`.
    let absolute =
        fs::canonicalize(path).map_err(|source| RunFileError::from_file(path, source))?;
    // One thread uses the connection, so SQLite need not lock it.
    Connection::open_with_flags(absolute, access | OpenFlags::SQLITE_OPEN_NO_MUTEX)
        .map_err(|source| RunFileError::from_database(path, source))
}

/// Checks that the file is all there: its length and its tables.
fn check_whole(path: &Path, connection: &Connection, kind: &FileKind) -> Result<(), RunFileError> {
    let failed = |source| RunFileError::from_database(path, source);
    // As long as the transaction lasts nobody writes, so the length and the header agree.
    let transaction = connection.unchecked_transaction().map_err(failed)?;
    let tables = table_names(&transaction).map_err(failed)?;
    let number = |pragma: &str| transaction.query_row(pragma, [], |row| row.get::<_, u32>(0));
    let pages = number("PRAGMA page_count").map_err(failed)?;
    let page_bytes = number("PRAGMA page_size").map_err(failed)?;
    let expected_bytes = u64::from(pages) * u64::from(page_bytes);
    let found_bytes = fs::metadata(path)
        .map_err(|source| RunFileError::from_file(path, source))?
        .len();
    // SQLite itself would take a last page that is cut short as filled up with zeros, and figures
    // would change unnoticed.
    if found_bytes < expected_bytes {
        return Err(RunFileError::Truncated {
            path: path.to_owned(),
            expected_bytes,
            found_bytes,
        });
    }
    match kind
        .tables
        .iter()
        .find(|table| !tables.iter().any(|name| name == *table))
    {
        None => Ok(()),
        Some(table) => Err(RunFileError::MissingTable {
            path: path.to_owned(),
            table,
        }),
    }
}

fn table_names(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    connection
        .prepare("SELECT name FROM sqlite_schema WHERE type = 'table'")?
        .query_map([], |row| row.get(0))?
        .collect()
}

/// Whether reading failed only because a journal has to be rolled back first.
fn needs_recovery(error: &RunFileError) -> bool {
    matches!(
        error,
        RunFileError::Database { source, .. }
            if source.sqlite_error_code() == Some(ErrorCode::ReadOnly)
    )
}

/// Copies the database with its journal and lets SQLite recover the copy.
fn recovered_copy(path: &Path, kind: &FileKind) -> Result<(Connection, TempDir), RunFileError> {
    let original =
        fs::canonicalize(path).map_err(|source| RunFileError::from_file(path, source))?;
    let refused = |source| RunFileError::File {
        path: env::temp_dir(),
        source,
    };
    let directory = TempDir::with_prefix("sqlitmus-run-").map_err(refused)?;
    let copy = directory.path().join("copy");
    // The journal first: if its owner comes back in between and rolls back, the journal's pages
    // are the ones that the database then has.
    for suffix in ["-journal", "-wal"] {
        match copy_file(&beside(&original, suffix), &beside(&copy, suffix)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            copied => copied.map_err(refused)?,
        }
    }
    copy_file(&original, &copy).map_err(refused)?;
    let in_copy = |source| RunFileError::from_database(path, source);
    // Takes over what a write-ahead log holds, too.
    let connection = open_writable(&copy)?;
    check_whole(&copy, &connection, kind)?;
    let verdict: String = connection
        .query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))
        .map_err(in_copy)?;
    if verdict != "ok" {
        return Err(RunFileError::damaged(path, verdict));
    }
    Ok((connection, directory))
}

/// Copies the bytes but not the permissions: the copy of a read-only file is to be written.
fn copy_file(from: &Path, to: &Path) -> io::Result<()> {
    let mut source = File::open(from)?;
    io::copy(&mut source, &mut File::create_new(to)?)?;
    Ok(())
}

/// The path of a file that SQLite keeps beside a database.
pub(crate) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}
