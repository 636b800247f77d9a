//! The database of an index: its schema (explained in SCHEMA.md), making it, opening it, and refusing
//! what is not one.

use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, params};
use sqlitmus_core::tree_scan::display_path;

use super::Recorded;
use super::folder_block::Name;
use crate::error::TreeError;
use crate::walk::Tree;

/// "sqti" in ASCII: marks the database as an index of a tree.
pub const APPLICATION_ID: i32 = 0x7371_7469;
/// Version of the schema, in `user_version`.
pub const FORMAT_VERSION: i64 = 1;

/// The schema.
pub const STATEMENTS: &str = "\
CREATE TABLE tree (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  path ANY NOT NULL,
  is_complete INTEGER NOT NULL,
  written_utc TEXT NOT NULL
) STRICT;
CREATE TABLE folder (
  id INTEGER PRIMARY KEY,
  parent_id INTEGER,
  name ANY NOT NULL,
  state TEXT NOT NULL,
  digest BLOB NOT NULL,
  UNIQUE (parent_id, name)
) STRICT;
CREATE TABLE entry (
  folder_id INTEGER NOT NULL,
  name ANY NOT NULL,
  kind TEXT NOT NULL,
  size_bytes INTEGER,
  mtime_ns INTEGER,
  inode INTEGER,
  PRIMARY KEY (folder_id, name)
) STRICT, WITHOUT ROWID;
CREATE VIEW folder_path (folder_id, path) AS
  WITH RECURSIVE below (id, path) AS (
    SELECT folder.id, tree.path FROM folder, tree WHERE folder.parent_id IS NULL
    UNION ALL
    SELECT folder.id, iif(below.path = '/', '', below.path) || '/' || folder.name
    FROM below JOIN folder ON folder.parent_id = below.id
  )
  SELECT id, path FROM below;
CREATE VIEW file_index (folder, filename) AS
  SELECT folder_path.path, entry.name FROM entry JOIN folder_path USING (folder_id);
";

/// How long to wait for another program's lock.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// Room for all pages of a transaction: a page that has to leave the cache before its time is written
/// twice and costs a sync of the journal.
const CACHE_KIB: i64 = 64 << 10;

/// An index, open for writing.
#[derive(Debug)]
pub struct IndexDatabase {
    connection: Connection,
    path: PathBuf,
}

impl IndexDatabase {
    /// Opens the index of a tree, or makes it if there is nothing, or an empty file.
    ///
    /// It has a rollback journal and `synchronous = FULL`: rows are new most of the time, and what is
    /// new needs no journal, while a write-ahead log would write it twice.
    ///
    /// # Errors
    /// What is there is not an index of this tree (it is not changed then), or SQLite fails.
    pub fn open(path: &Path, tree: &Tree) -> Result<Self, TreeError> {
        let is_new = is_new(path)?;
        let failed = |source| TreeError::database(path, Recorded::default(), source);
        let connection = open_writable(path).map_err(failed)?;
        connection
            .pragma_update(None, "cache_size", -CACHE_KIB)
            .map_err(failed)?;
        if is_new {
            create(&connection, tree).map_err(failed)?;
        }
        let database = Self {
            connection,
            path: path.to_owned(),
        };
        database.check_tree(tree)?;
        Ok(database)
    }

    fn check_tree(&self, tree: &Tree) -> Result<(), TreeError> {
        let failed = |source| TreeError::database(&self.path, Recorded::default(), source);
        let sql = "SELECT path FROM tree";
        let read = self
            .connection
            .query_row(sql, [], |row| Ok(row.get_ref(0)?.as_bytes()?.to_vec()));
        let indexed = read.map_err(failed)?;
        if indexed != tree.path().as_os_str().as_bytes() {
            let indexed = Path::new(std::ffi::OsStr::from_bytes(&indexed));
            return Err(TreeError::OtherTree {
                path: self.path.clone(),
                indexed: display_path(indexed),
                asked: display_path(tree.path()),
            });
        }
        Ok(())
    }

    /// The connection, for other settings (journal, syncing) and for questions.
    #[must_use]
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Path as it was given.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Opens for writing, with what both ways of recording have in common.
pub(super) fn open_writable(path: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open_with_flags(
        path,
        OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    // A mode is answered with the mode that is in force now.
    connection.query_row("PRAGMA journal_mode = DELETE", [], |_| Ok(()))?;
    Ok(connection)
}

fn create(connection: &Connection, tree: &Tree) -> rusqlite::Result<()> {
    let transaction = connection.unchecked_transaction()?;
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", FORMAT_VERSION)?;
    transaction.execute_batch(STATEMENTS)?;
    let sql = "INSERT INTO tree VALUES (1, ?1, 0, strftime('%Y-%m-%dT%H:%M:%SZ', 'now'))";
    let path = Name::new(tree.path().as_os_str().as_bytes());
    transaction.execute(sql, params![path])?;
    transaction.commit()
}

/// Whether there is nothing yet that would be written over. Looks at the bytes of the file alone, so
/// that what is not ours stays untouched: SQLite itself would repair it after a crash.
fn is_new(path: &Path) -> Result<bool, TreeError> {
    let Some(header) = read_header(path)? else {
        return Ok(true);
    };
    let number = |at: usize| i32::from_be_bytes([0, 1, 2, 3].map(|byte| header[at + byte]));
    // Places from SQLite's file format: 60 is user_version, 68 application_id.
    let (format, application) = (i64::from(number(60)), number(68));
    if application != APPLICATION_ID {
        let names = table_names(path);
        if application == 0 && names.as_deref() == Some("") {
            return Ok(true);
        }
        let found = match names {
            Some(names) if !names.is_empty() => format!("it has the tables {names}"),
            _ => format!("its application_id is {application:#010x}"),
        };
        return Err(TreeError::OtherSchema {
            path: path.to_owned(),
            found,
        });
    }
    if format != FORMAT_VERSION {
        return Err(TreeError::OtherFormat {
            path: path.to_owned(),
            found: format,
            known: FORMAT_VERSION,
        });
    }
    Ok(false)
}

/// The first 100 bytes of a database; `None` if there is no file or an empty one.
fn read_header(path: &Path) -> Result<Option<[u8; 100]>, TreeError> {
    let owned = || path.to_owned();
    let mut header = [0; 100];
    match std::fs::metadata(path) {
        Ok(metadata) if !metadata.is_file() => return Err(TreeError::NotAFile { path: owned() }),
        Ok(metadata) if metadata.len() == 0 => return Ok(None),
        Ok(_) => {}
        // If it is not that nothing is there, opening it says what is wrong.
        Err(_) => return Ok(None),
    }
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut header));
    match read {
        Ok(()) if header.starts_with(b"SQLite format 3\0") => Ok(Some(header)),
        // Whoever may not read it will be told by SQLite.
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => Ok(None),
        _ => Err(TreeError::NotADatabase { path: owned() }),
    }
}

/// Names of the tables of a database, for a message; `None` if it cannot be read.
pub(super) fn table_names(path: &Path) -> Option<String> {
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).ok()?;
    let sql = "SELECT coalesce(group_concat(name, ', '), '') FROM \
               (SELECT name FROM sqlite_schema WHERE type IN ('table', 'view') LIMIT 5)";
    connection.query_row(sql, [], |row| row.get(0)).ok()
}
