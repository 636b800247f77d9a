//! A reader of an archive: one connection, for one thread at a time. It lists entries; their content
//! is read by a [`Lookup`], by name, or by row with a [`Catalogue`].

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, OptionalExtension, params};

use crate::entry::{COLUMNS, Entry, Kind, RowFault, from_row};
use crate::error::ArchiveError;
use crate::lookup::Lookup;

/// Columns that the table `sqlar` has: <https://sqlite.org/sqlar.html>.
const NEEDED_COLUMNS: [&str; 5] = ["name", "mode", "mtime", "sz", "data"];

/// One connection to an archive. It can be sent to another thread, and is used by one at a time.
#[derive(Debug)]
pub struct Reader {
    pub(crate) connection: Connection,
    pub(crate) path: PathBuf,
}

impl Reader {
    pub(crate) fn new(
        connection: Connection,
        path: PathBuf,
        hold: bool,
    ) -> Result<Self, ArchiveError> {
        let reader = Self { connection, path };
        reader.check_table()?;
        if hold {
            // The transaction begins with its first read.
            reader
                .connection
                .execute_batch("BEGIN; SELECT 1 FROM sqlar LIMIT 1")
                .map_err(reader.failed())?;
        }
        Ok(reader)
    }

    /// Path of the archive.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What reads content.
    ///
    /// # Errors
    /// SQLite refuses.
    pub fn lookup(&self) -> Result<Lookup<'_>, ArchiveError> {
        Lookup::new(self)
    }

    /// The entry of a name, without its content; `None` if there is none.
    ///
    /// # Errors
    /// What stands in its row cannot be, or the archive cannot be read.
    pub fn entry(&self, name: &str) -> Result<Option<Entry>, ArchiveError> {
        let sql = format!("SELECT {COLUMNS} FROM sqlar WHERE name = ?1");
        let mut statement = self
            .connection
            .prepare_cached(&sql)
            .map_err(self.failed())?;
        let mut rows = statement.query([name]).map_err(self.failed())?;
        match rows.next().map_err(self.failed())? {
            None => Ok(None),
            Some(row) => from_row(row).map(Some).map_err(self.fault()),
        }
    }

    /// Hands every entry to `each`, in the order in which they were packed; of a row that is no
    /// entry, the reason.
    ///
    /// # Errors
    /// The first that `each` returns, or the archive cannot be read.
    pub fn for_each_entry(
        &self,
        mut each: impl FnMut(Result<Entry, ArchiveError>) -> Result<(), ArchiveError>,
    ) -> Result<(), ArchiveError> {
        let sql = format!("SELECT {COLUMNS} FROM sqlar ORDER BY rowid");
        let mut statement = self
            .connection
            .prepare_cached(&sql)
            .map_err(self.failed())?;
        let mut rows = statement.query([]).map_err(self.failed())?;
        while let Some(row) = rows.next().map_err(self.failed())? {
            match from_row(row) {
                Ok(entry) => each(Ok(entry))?,
                Err(RowFault::Bad(reason)) => each(Err(reason))?,
                Err(RowFault::Sqlite(source)) => return Err(self.failed()(source)),
            }
        }
        Ok(())
    }

    /// All entries, in the order in which they were packed.
    ///
    /// # Errors
    /// A row is no entry, or the archive cannot be read.
    pub fn entries(&self) -> Result<Vec<Entry>, ArchiveError> {
        let mut entries = Vec::new();
        self.for_each_entry(|entry| {
            entries.push(entry?);
            Ok(())
        })?;
        Ok(entries)
    }

    /// The first name behind `name` in the order of bytes, and not behind `last`; `None` if there is none.
    ///
    /// # Errors
    /// The archive cannot be read.
    pub fn name_after(&self, name: &str, last: &str) -> Result<Option<String>, ArchiveError> {
        let sql = "SELECT name FROM sqlar WHERE name > ?1 AND name <= ?2 ORDER BY name LIMIT 1";
        let mut statement = self.connection.prepare_cached(sql).map_err(self.failed())?;
        let mut after = name.as_bytes().to_vec();
        loop {
            let bytes: Option<Vec<u8>> = statement
                .query_row(params![text(&after), last], |row| {
                    Ok(row.get_ref(0)?.as_bytes()?.to_vec())
                })
                .optional()
                .map_err(self.failed())?;
            match bytes.map(String::from_utf8) {
                None => return Ok(None),
                Some(Ok(name)) => return Ok(Some(name)),
                // A name that is not UTF-8 is no entry's.
                Some(Err(error)) => after = error.into_bytes(),
            }
        }
    }

    /// Reads where every file is, so that a [`Lookup`] finds it without asking SQLite's index: about a
    /// third faster, for some 100 bytes of memory an entry.
    ///
    /// # Errors
    /// A row is no entry, or the archive cannot be read.
    pub fn catalogue(&self) -> Result<Catalogue, ArchiveError> {
        let mut rows = HashMap::new();
        self.for_each_entry(|entry| {
            let entry = entry?;
            if entry.kind == Kind::File {
                let place = Place::of(&entry);
                rows.insert(entry.name.into_boxed_str(), place);
            }
            Ok(())
        })?;
        Ok(Catalogue { rows })
    }

    /// What SQLite's own check of the whole file finds; empty if it is sound.
    ///
    /// # Errors
    /// The check cannot be made.
    pub fn integrity_faults(&self) -> Result<Vec<String>, ArchiveError> {
        let check = || {
            self.connection
                .prepare("PRAGMA integrity_check(100)")?
                .query_map([], |row| row.get::<_, String>(0))?
                .collect::<rusqlite::Result<Vec<_>>>()
        };
        match check() {
            Ok(lines) if lines == ["ok"] => Ok(Vec::new()),
            Ok(lines) => Ok(lines),
            Err(source) => match self.failed()(source) {
                // So badly damaged that the check itself gives up.
                ArchiveError::Damaged { reason, .. } => Ok(vec![reason]),
                error => Err(error),
            },
        }
    }

    /// Whether there is a table `sqlar` as the format wants it. A view, a virtual table or a table
    /// without rows could run anything, or cannot be read in parts.
    fn check_table(&self) -> Result<(), ArchiveError> {
        let wrong = |reason: String| ArchiveError::NotAnArchive {
            path: self.path.clone(),
            reason,
        };
        let kind: Option<(String, bool)> = self
            .connection
            .query_row(
                "SELECT type, wr FROM pragma_table_list('sqlar') WHERE schema = 'main'",
                [],
                |row| Ok((row.get(0)?, row.get(1)?)),
            )
            .optional()
            .map_err(self.failed())?;
        match kind {
            None => return Err(wrong("it has no table `sqlar`".to_owned())),
            Some((kind, false)) if kind == "table" => {}
            Some((_, true)) => return Err(wrong("its `sqlar` is WITHOUT ROWID".to_owned())),
            Some((kind, _)) => return Err(wrong(format!("its `sqlar` is a {kind}, not a table"))),
        }
        let columns: Vec<(String, i64)> = self
            .connection
            .prepare("SELECT lower(name), hidden FROM pragma_table_xinfo('sqlar')")
            .and_then(|mut statement| {
                statement
                    .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
                    .collect()
            })
            .map_err(self.failed())?;
        for needed in NEEDED_COLUMNS {
            match columns.iter().find(|(name, _)| name == needed) {
                Some((_, 0)) => {}
                Some(_) => return Err(wrong(format!("its column `{needed}` is computed"))),
                None => return Err(wrong(format!("its table `sqlar` has no column `{needed}`"))),
            }
        }
        Ok(())
    }

    pub(crate) fn failed(&self) -> impl FnOnce(rusqlite::Error) -> ArchiveError {
        ArchiveError::database(&self.path)
    }

    fn fault(&self) -> impl FnOnce(RowFault) -> ArchiveError {
        move |fault| match fault {
            RowFault::Bad(error) => error,
            RowFault::Sqlite(source) => self.failed()(source),
        }
    }
}

/// A text that need not be UTF-8.
fn text(bytes: &[u8]) -> ToSqlOutput<'_> {
    ToSqlOutput::Borrowed(ValueRef::Text(bytes))
}

/// Where the content of a file is, and how long it is when it is not compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    pub(crate) row: i64,
    pub(crate) size: u64,
}

impl Place {
    /// That of an entry.
    #[must_use]
    pub fn of(entry: &Entry) -> Self {
        Self {
            row: entry.row,
            size: entry.size,
        }
    }

    /// Bytes of the content, as the archive says.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }
}

/// Where all files of an archive are, by name; for the readers of the state of the archive from which it
/// was made. Threads share it.
#[derive(Debug)]
pub struct Catalogue {
    rows: HashMap<Box<str>, Place>,
}

impl Catalogue {
    /// Where the content of a name is; `None` if no file has it.
    #[must_use]
    pub fn place(&self, name: &str) -> Option<Place> {
        self.rows.get(name).copied()
    }

    /// How many files there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is no file.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// All names, in no order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.rows.keys().map(AsRef::as_ref)
    }
}
