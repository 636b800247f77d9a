//! Connections: opening, closing, and what concerns a database as a whole. A connection owns its
//! prepared statements and blob handles; callers keep their numbers ([`StatementId`],
//! [`BlobId`]) and borrow one at a time from the connection to use it.
//!
//! Why numbers: an engine keeps statements beside their connection in one struct, which borrowed
//! statements could not do and reference counts would make unfit for another thread. The price
//! is one look-up in a short vector a use. And because a statement in use borrows the connection
//! whole, nothing can pull the row away that a slice still points to.
//!
//! Using a statement is [`super::statement`]'s business, a blob handle [`super::blob`]'s; which
//! SQLite answers is [`super::library`]'s.

use std::ffi::{CStr, CString, c_int};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::{self, NonNull};

use libsqlite3_sys as ffi;
use libsqlite3_sys::{sqlite3, sqlite3_blob};

use super::blob::{BlobHandle, BlobId, BlobMode};
use super::error::SqliteError;
use super::functions::Functions;
use super::library::{Library, Status};
use super::statement::{Statement, StatementId, StatementSlot};

/// A connection to one database. It may move to another thread but not be used by two at once.
pub struct Connection {
    library: &'static Library,
    database: Database,
    statements: Vec<StatementSlot>,
    blobs: Vec<Option<NonNull<sqlite3_blob>>>,
    closed: bool,
}

// SAFETY: SQLite allows a connection, with its statements and blob handles, to be used from
// different threads as long as it is not at the same time ("Using SQLite In Multi-Threaded
// Applications"): everything that touches the raw handles borrows the connection, which is not
// Sync. Libraries without mutexes allow no second connection (`Library::occupy`).
unsafe impl Send for Connection {}

/// The raw handle, and how to make errors of it.
#[derive(Clone, Copy)]
pub(super) struct Database {
    pub(super) functions: &'static Functions,
    pub(super) raw: NonNull<sqlite3>,
}

/// What a database is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenMode {
    /// Reading a database that exists.
    ReadOnly,
    /// Reading and writing a database that exists.
    ReadWrite,
    /// Reading and writing; the file is created if it does not exist.
    Create,
}

/// Whether connections of one process to one database share a page cache
/// ("SQLite Shared-Cache Mode").
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CacheSharing {
    /// Every connection has its own.
    #[default]
    Private,
    /// One for all that are opened so, behind one mutex.
    Shared,
}

/// What a checkpoint has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Checkpoint {
    /// Pages in the log; `None` if the database has no log.
    pub log_pages: Option<u32>,
    /// Pages of the log that are in the database file now.
    pub copied_pages: Option<u32>,
}

/// A figure that SQLite keeps for one connection (`sqlite3_db_status`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub enum ConnectionStatus {
    /// Bytes in page caches.
    CacheUsed = ffi::SQLITE_DBSTATUS_CACHE_USED,
    /// Pages found in the page cache.
    CacheHits = ffi::SQLITE_DBSTATUS_CACHE_HIT,
    /// Pages not found in the page cache.
    CacheMisses = ffi::SQLITE_DBSTATUS_CACHE_MISS,
    /// Pages written.
    CacheWrites = ffi::SQLITE_DBSTATUS_CACHE_WRITE,
    /// Pages written before their transaction ended, because the page cache was full.
    CacheSpills = ffi::SQLITE_DBSTATUS_CACHE_SPILL,
}

impl Connection {
    /// Opens the database in a file.
    ///
    /// The mutex flags are left out, so that the library's own threading mode applies: it is part
    /// of what is compared between libraries.
    ///
    /// # Errors
    /// The file cannot be opened or created; or the library is compiled for a single thread and
    /// has a connection open already. Whether the file is a database shows at the first
    /// statement.
    pub fn open(
        library: &'static Library,
        path: &Path,
        mode: OpenMode,
    ) -> Result<Self, SqliteError> {
        Self::open_sharing(library, path, mode, CacheSharing::Private)
    }

    /// As [`Connection::open`], with a page cache of its own or a shared one.
    ///
    /// # Errors
    /// As [`Connection::open`].
    pub fn open_sharing(
        library: &'static Library,
        path: &Path,
        mode: OpenMode,
        sharing: CacheSharing,
    ) -> Result<Self, SqliteError> {
        let during = || format!("open {}", path.display());
        // An absolute path can be neither a URI nor one of SQLite's special names.
        let name = std::path::absolute(path)
            .map_err(|error| SqliteError::misuse(&during(), &error.to_string()))?;
        let name = CString::new(name.as_os_str().as_bytes())
            .map_err(|_| SqliteError::misuse(&during(), "the path contains a zero byte"))?;
        let flags = match mode {
            OpenMode::ReadOnly => ffi::SQLITE_OPEN_READONLY,
            OpenMode::ReadWrite => ffi::SQLITE_OPEN_READWRITE,
            OpenMode::Create => ffi::SQLITE_OPEN_READWRITE | ffi::SQLITE_OPEN_CREATE,
        };
        let flags = flags
            | match sharing {
                CacheSharing::Private => ffi::SQLITE_OPEN_PRIVATECACHE,
                CacheSharing::Shared => ffi::SQLITE_OPEN_SHAREDCACHE,
            };
        Self::open_named(library, &name, flags, during)
    }

    /// Opens a new database in memory, which is gone when the connection closes.
    ///
    /// # Errors
    /// No memory, or as [`Connection::open`] with a library for a single thread.
    pub fn open_in_memory(library: &'static Library) -> Result<Self, SqliteError> {
        let flags = ffi::SQLITE_OPEN_READWRITE
            | ffi::SQLITE_OPEN_CREATE
            | ffi::SQLITE_OPEN_MEMORY
            | ffi::SQLITE_OPEN_PRIVATECACHE;
        Self::open_named(library, c":memory:", flags, || {
            "open a database in memory".to_owned()
        })
    }

    fn open_named(
        library: &'static Library,
        name: &CStr,
        flags: c_int,
        during: impl Fn() -> String,
    ) -> Result<Self, SqliteError> {
        if !library.occupy() {
            return Err(SqliteError::misuse(
                &during(),
                "this SQLite is compiled for a single thread, and a connection is open",
            ));
        }
        let functions = &library.functions;
        let mut raw = ptr::null_mut();
        // SAFETY: the name is a C string; SQLite stores the new handle in `raw`.
        let code =
            unsafe { (functions.sqlite3_open_v2)(name.as_ptr(), &mut raw, flags, ptr::null()) };
        let Some(raw) = NonNull::new(raw) else {
            library.vacate();
            return Err(SqliteError::misuse(&during(), "SQLite is out of memory"));
        };
        let connection = Self {
            library,
            database: Database { functions, raw },
            statements: Vec::new(),
            blobs: Vec::new(),
            closed: false,
        };
        if code != ffi::SQLITE_OK {
            // The handle holds the message and is closed as the connection is dropped.
            return Err(connection.database.error(&during()));
        }
        Ok(connection)
    }

    /// The SQLite that answers.
    #[must_use]
    pub fn library(&self) -> &'static Library {
        self.library
    }

    /// Closes the connection. The last one of a database in WAL mode makes a checkpoint and
    /// removes the log, which takes time: hence not left to the drop where that is measured.
    ///
    /// # Errors
    /// SQLite's reason; the connection is then leaked.
    pub fn close(mut self) -> Result<(), SqliteError> {
        self.release()
    }

    fn release(&mut self) -> Result<(), SqliteError> {
        let functions = self.database.functions;
        for blob in self.blobs.drain(..).flatten() {
            // SAFETY: an open handle of this connection, used no more. What the code reports, a
            // failed commit, cannot be acted upon here; writing callers close their handles.
            unsafe { (functions.sqlite3_blob_close)(blob.as_ptr()) };
        }
        for statement in self.statements.drain(..) {
            // SAFETY: a statement of this connection, used no more. The code repeats the error
            // of its last step.
            unsafe { (functions.sqlite3_finalize)(statement.raw.as_ptr()) };
        }
        self.closed = true;
        // SAFETY: nothing of this connection is left open, and the drop closes no second time.
        let code = unsafe { (functions.sqlite3_close)(self.database.raw.as_ptr()) };
        self.library.vacate();
        if code == ffi::SQLITE_OK {
            Ok(())
        } else {
            Err(SqliteError::misuse("close", "something is still open"))
        }
    }

    /// Runs SQL statements, separated by `;`; rows are thrown away.
    ///
    /// # Errors
    /// Those of the first statement that fails; the ones before it are done.
    pub fn execute(&mut self, sql: &str) -> Result<(), SqliteError> {
        let text = CString::new(sql)
            .map_err(|_| SqliteError::misuse("execute", "the SQL contains a zero byte"))?;
        // SAFETY: the handle is open, the text a C string; no callback, no message wanted.
        let code = unsafe {
            (self.database.functions.sqlite3_exec)(
                self.database.raw.as_ptr(),
                text.as_ptr(),
                None,
                ptr::null_mut(),
                ptr::null_mut(),
            )
        };
        self.database.check(code, || format!("execute \"{sql}\""))
    }

    /// Prepares one SQL statement, to be kept until the connection closes.
    ///
    /// # Errors
    /// The SQL is wrong, or the database cannot be read.
    pub fn prepare(&mut self, sql: &str) -> Result<StatementId, SqliteError> {
        let slot = StatementSlot::prepare(self.database, sql)?;
        self.statements.push(slot);
        Ok(StatementId(self.statements.len() - 1))
    }

    /// Throws a statement away and prepares it again under its number, for whoever prepares each
    /// time.
    ///
    /// # Errors
    /// As [`Connection::prepare`]; the statement is then as it was.
    ///
    /// # Panics
    /// As [`Connection::statement`].
    #[inline]
    pub fn prepare_again(&mut self, id: StatementId) -> Result<(), SqliteError> {
        self.statements[id.0].prepare_again(self.database)
    }

    /// A prepared statement, ready to be bound and run.
    ///
    /// # Panics
    /// If the number is not from this connection, and it has no statement of that number.
    #[inline]
    pub fn statement(&mut self, id: StatementId) -> Statement<'_> {
        Statement::borrow(self.database, &mut self.statements[id.0])
    }

    /// First column of the first row, as a whole number; `None` if there is no row.
    ///
    /// # Errors
    /// The SQL is wrong, or the database cannot be read.
    pub fn query_i64(&mut self, sql: &str) -> Result<Option<i64>, SqliteError> {
        self.query(sql, |statement| Ok(statement.step()?.map(|row| row.i64(0))))
    }

    /// First column of the first row, as text; `None` if there is no row.
    ///
    /// # Errors
    /// The SQL is wrong, the database cannot be read, or the value is not UTF-8.
    pub fn query_text(&mut self, sql: &str) -> Result<Option<String>, SqliteError> {
        self.query(sql, |statement| match statement.step()? {
            Some(mut row) => Ok(Some(row.text(0)?.to_owned())),
            None => Ok(None),
        })
    }

    /// Copies all of this connection's database over the main database of another, page by page
    /// and in one transaction there (the backup API). Returns the number of pages.
    ///
    /// # Errors
    /// The other is in use, or cannot be written.
    pub fn copy_to(&mut self, destination: &mut Self) -> Result<u64, SqliteError> {
        let functions = self.database.functions;
        if !ptr::eq(self.library, destination.library) {
            return Err(SqliteError::misuse(
                "copy the database",
                "its copy is open in another SQLite",
            ));
        }
        // SAFETY: both handles are open in the same library; the names are C strings.
        let backup = unsafe {
            (functions.sqlite3_backup_init)(
                destination.database.raw.as_ptr(),
                c"main".as_ptr(),
                self.database.raw.as_ptr(),
                c"main".as_ptr(),
            )
        };
        if backup.is_null() {
            return Err(destination.database.error("begin a copy"));
        }
        // SAFETY: the backup is open; a negative number means all pages.
        let (code, pages) = unsafe {
            let code = (functions.sqlite3_backup_step)(backup, -1);
            (code, (functions.sqlite3_backup_pagecount)(backup))
        };
        // SAFETY: the backup is open and used no more.
        let finished = unsafe { (functions.sqlite3_backup_finish)(backup) };
        if code != ffi::SQLITE_DONE || finished != ffi::SQLITE_OK {
            // A step that found the destination locked leaves no error there: its code says it.
            let code = if code == ffi::SQLITE_DONE {
                finished
            } else {
                code
            };
            return Err(SqliteError {
                code: code & 0xff,
                extended_code: code,
                message: "the copy was not completed".to_owned(),
                during: "copy the database".to_owned(),
            });
        }
        Ok(u64::try_from(pages).unwrap_or(0))
    }

    /// Runs a statement that is needed once.
    fn query<T>(
        &mut self,
        sql: &str,
        run: impl FnOnce(&mut Statement<'_>) -> Result<T, SqliteError>,
    ) -> Result<T, SqliteError> {
        let mut slot = StatementSlot::prepare(self.database, sql)?;
        let result = run(&mut Statement::borrow(self.database, &mut slot));
        // SAFETY: just prepared and used no more. An error of its step is in `result`.
        unsafe { (self.database.functions.sqlite3_finalize)(slot.raw.as_ptr()) };
        result
    }

    /// Value of a pragma as a whole number; `None` if this SQLite does not know the pragma.
    /// The name goes into the SQL as it is.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn pragma_i64(&mut self, name: &str) -> Result<Option<i64>, SqliteError> {
        self.query_i64(&format!("PRAGMA {name}"))
    }

    /// Value of a pragma as text; `None` if this SQLite does not know the pragma. The name goes
    /// into the SQL as it is.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn pragma_text(&mut self, name: &str) -> Result<Option<String>, SqliteError> {
        self.query_text(&format!("PRAGMA {name}"))
    }

    /// Sets a pragma; whether the value is in force, only reading it back can tell. Name and
    /// value go into the SQL as they are.
    ///
    /// # Errors
    /// SQLite refuses; many pragmas rather ignore a value that they cannot take.
    pub fn set_pragma(
        &mut self,
        name: &str,
        value: impl std::fmt::Display,
    ) -> Result<(), SqliteError> {
        self.execute(&format!("PRAGMA {name}={value}"))
    }

    /// Lets statements wait this long for locks of other connections, in milliseconds.
    ///
    /// # Errors
    /// None are known.
    pub fn set_busy_timeout_ms(&mut self, timeout_ms: u32) -> Result<(), SqliteError> {
        let timeout_ms = c_int::try_from(timeout_ms).unwrap_or(c_int::MAX);
        // SAFETY: the handle is open.
        let code = unsafe {
            (self.database.functions.sqlite3_busy_timeout)(self.database.raw.as_ptr(), timeout_ms)
        };
        self.database
            .check(code, || "set the busy timeout".to_owned())
    }

    /// Number of rows that the last INSERT, UPDATE or DELETE changed.
    #[must_use]
    pub fn changes(&self) -> u64 {
        // SAFETY: the handle is open.
        let rows = unsafe { (self.database.functions.sqlite3_changes)(self.database.raw.as_ptr()) };
        u64::try_from(rows).unwrap_or(0)
    }

    /// Whether a transaction is open that `BEGIN` started.
    #[must_use]
    pub fn is_in_transaction(&self) -> bool {
        // SAFETY: the handle is open.
        unsafe { (self.database.functions.sqlite3_get_autocommit)(self.database.raw.as_ptr()) == 0 }
    }

    /// Copies the write-ahead log into the database file, as far as no reader or writer stands in
    /// the way (`SQLITE_CHECKPOINT_PASSIVE`).
    ///
    /// # Errors
    /// I/O.
    pub fn checkpoint(&mut self) -> Result<Checkpoint, SqliteError> {
        let (mut log, mut copied): (c_int, c_int) = (-1, -1);
        // SAFETY: the handle is open; a null name means all attached databases; the pointers are
        // to live variables.
        let code = unsafe {
            (self.database.functions.sqlite3_wal_checkpoint_v2)(
                self.database.raw.as_ptr(),
                ptr::null(),
                ffi::SQLITE_CHECKPOINT_PASSIVE,
                &mut log,
                &mut copied,
            )
        };
        self.database.check(code, || "checkpoint".to_owned())?;
        Ok(Checkpoint {
            log_pages: u32::try_from(log).ok(),
            copied_pages: u32::try_from(copied).ok(),
        })
    }

    /// A figure kept for this connection.
    ///
    /// # Errors
    /// This SQLite does not keep it.
    pub fn status(&mut self, which: ConnectionStatus) -> Result<Status, SqliteError> {
        let (mut current, mut highest): (c_int, c_int) = (0, 0);
        // SAFETY: the handle is open, the pointers are to live variables.
        let code = unsafe {
            (self.database.functions.sqlite3_db_status)(
                self.database.raw.as_ptr(),
                which as c_int,
                &mut current,
                &mut highest,
                0,
            )
        };
        self.database.check(code, || format!("ask for {which:?}"))?;
        Ok(Status {
            current: i64::from(current),
            highest: i64::from(highest),
        })
    }

    /// Opens a handle on the blob in one row of a table of the main database. While it is open, a
    /// transaction is open: others see no checkpoint past it, this connection no later commit.
    ///
    /// # Errors
    /// No such table, column or row, a table WITHOUT ROWID, or a value that is not a blob.
    pub fn open_blob(
        &mut self,
        table: &CStr,
        column: &CStr,
        rowid: i64,
        mode: BlobMode,
    ) -> Result<BlobId, SqliteError> {
        let mut raw = ptr::null_mut();
        // SAFETY: the handle is open, the names are C strings; SQLite stores the new handle.
        let code = unsafe {
            (self.database.functions.sqlite3_blob_open)(
                self.database.raw.as_ptr(),
                c"main".as_ptr(),
                table.as_ptr(),
                column.as_ptr(),
                rowid,
                mode as c_int,
                &mut raw,
            )
        };
        self.database
            .check(code, || format!("open the blob of row {rowid}"))?;
        let place = match self.blobs.iter().position(Option::is_none) {
            Some(place) => place,
            None => {
                self.blobs.push(None);
                self.blobs.len() - 1
            }
        };
        self.blobs[place] = NonNull::new(raw);
        Ok(BlobId(place))
    }

    /// An open blob handle.
    ///
    /// # Panics
    /// If the number is not from this connection.
    #[inline]
    pub fn blob(&mut self, id: &BlobId) -> BlobHandle<'_> {
        match self.blobs[id.0] {
            Some(raw) => BlobHandle::borrow(self.database, raw),
            None => panic!("a blob handle is open until its number is given back"),
        }
    }

    /// Closes a blob handle. Outside a transaction this commits what was written through it.
    ///
    /// # Errors
    /// The commit failed; the handle is closed all the same.
    pub fn close_blob(&mut self, id: BlobId) -> Result<(), SqliteError> {
        let Some(raw) = self.blobs.get_mut(id.0).and_then(Option::take) else {
            return Ok(());
        };
        // SAFETY: an open handle of this connection, just taken off the list.
        let code = unsafe { (self.database.functions.sqlite3_blob_close)(raw.as_ptr()) };
        self.database.check(code, || "close a blob".to_owned())
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if !self.closed {
            // Nobody is left to be told; `close` is there for those who want to know.
            let _unheard = self.release();
        }
    }
}

impl Database {
    /// What SQLite says about the call that just failed.
    #[cold]
    pub(super) fn error(self, during: &str) -> SqliteError {
        // SAFETY: the handle is open; the message is a C string that stays until the next call.
        let (extended_code, message) = unsafe {
            (
                (self.functions.sqlite3_extended_errcode)(self.raw.as_ptr()),
                CStr::from_ptr((self.functions.sqlite3_errmsg)(self.raw.as_ptr())),
            )
        };
        SqliteError {
            code: extended_code & 0xff,
            extended_code,
            message: message.to_string_lossy().into_owned(),
            during: during.to_owned(),
        }
    }

    /// An error unless the code is `SQLITE_OK`.
    #[inline]
    pub(super) fn check(
        self,
        code: c_int,
        during: impl FnOnce() -> String,
    ) -> Result<(), SqliteError> {
        if code == ffi::SQLITE_OK {
            Ok(())
        } else {
            Err(self.error(&during()))
        }
    }
}
