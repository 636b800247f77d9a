//! Prepared statements: binding, stepping, and reading the columns of a row without copying.
//! Where they are kept is [`super::connection`]'s business.

use std::ffi::c_int;
use std::marker::PhantomData;
use std::ptr::{self, NonNull};

use libsqlite3_sys as ffi;
use libsqlite3_sys::sqlite3_stmt;

use super::connection::Database;
use super::error::SqliteError;

/// Number of a prepared statement of one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatementId(pub(super) usize);

/// A statement as its connection keeps it. The flags live here and not in [`Statement`], so that
/// they are known even if a [`Statement`] is forgotten and never dropped.
pub(super) struct StatementSlot {
    pub(super) raw: NonNull<sqlite3_stmt>,
    /// What it was prepared from.
    sql: Box<str>,
    /// It was stepped and not yet reset.
    running: bool,
    /// It is bound to memory that SQLite did not copy.
    borrows: bool,
}

impl StatementSlot {
    /// Prepares the first statement of `sql`.
    pub(super) fn prepare(database: Database, sql: &str) -> Result<Self, SqliteError> {
        let during = || format!("prepare \"{sql}\"");
        let length = c_int::try_from(sql.len())
            .map_err(|_| SqliteError::misuse("prepare", "the SQL is too long"))?;
        let mut raw = ptr::null_mut();
        // SAFETY: the handle is open; the text has `length` bytes; SQLite stores the new
        // statement in `raw`.
        let code = unsafe {
            (database.functions.sqlite3_prepare_v2)(
                database.raw.as_ptr(),
                sql.as_ptr().cast(),
                length,
                &mut raw,
                ptr::null_mut(),
            )
        };
        database.check(code, during)?;
        // SQLite prepares nothing out of blanks and comments.
        let raw = NonNull::new(raw)
            .ok_or_else(|| SqliteError::misuse(&during(), "there is no statement in it"))?;
        Ok(Self {
            raw,
            sql: sql.into(),
            running: false,
            borrows: false,
        })
    }

    /// Prepares the same SQL again, for whoever prepares each time.
    pub(super) fn prepare_again(&mut self, database: Database) -> Result<(), SqliteError> {
        let anew = Self::prepare(database, &self.sql)?;
        let old = std::mem::replace(self, anew);
        // SAFETY: the old statement is open and used no more: using it borrows the slot, and here
        // it is borrowed anew. The code repeats the error of its last step.
        unsafe { (database.functions.sqlite3_finalize)(old.raw.as_ptr()) };
        Ok(())
    }
}

/// A prepared statement in use. When it is dropped it is reset, so that no read transaction
/// outlives it.
pub struct Statement<'c> {
    database: Database,
    slot: &'c mut StatementSlot,
}

impl<'c> Statement<'c> {
    #[inline]
    pub(super) fn borrow(database: Database, slot: &'c mut StatementSlot) -> Self {
        let mut statement = Self { database, slot };
        statement.clean();
        statement
    }

    /// Makes the statement as new: what it was bound to may be gone by now.
    #[inline]
    fn clean(&mut self) {
        if self.slot.running {
            self.slot.running = false;
            // SAFETY: the statement is open. The code repeats the error of its last step.
            unsafe { (self.database.functions.sqlite3_reset)(self.slot.raw.as_ptr()) };
        }
        if self.slot.borrows {
            self.slot.borrows = false;
            // SAFETY: the statement is open and not running; all parameters become NULL.
            unsafe { (self.database.functions.sqlite3_clear_bindings)(self.slot.raw.as_ptr()) };
        }
    }

    /// Binds a whole number to a parameter, counted from 1.
    ///
    /// # Errors
    /// There is no such parameter, or the statement is running.
    #[inline]
    pub fn bind_i64(&mut self, parameter: u16, value: i64) -> Result<(), SqliteError> {
        // SAFETY: the statement is open.
        let code = unsafe {
            (self.database.functions.sqlite3_bind_int64)(
                self.slot.raw.as_ptr(),
                c_int::from(parameter),
                value,
            )
        };
        self.database
            .check(code, || format!("bind parameter {parameter}"))
    }

    /// Binds a blob to a parameter, counted from 1, without copying it.
    ///
    /// # Errors
    /// There is no such parameter, the statement is running, or the blob exceeds SQLite's limit.
    #[inline]
    pub fn bind_blob(&mut self, parameter: u16, value: &'c [u8]) -> Result<(), SqliteError> {
        // An empty slice has an address of its own, so it is bound as an empty blob, not as NULL.
        self.slot.borrows = true;
        // SAFETY: the statement is open. SQLite keeps the address: the slice outlives this
        // `Statement`, and the next one clears the binding before anything steps.
        let code = unsafe {
            (self.database.functions.sqlite3_bind_blob64)(
                self.slot.raw.as_ptr(),
                c_int::from(parameter),
                value.as_ptr().cast(),
                value.len() as u64,
                None,
            )
        };
        self.database
            .check(code, || format!("bind parameter {parameter}"))
    }

    /// Binds text to a parameter, counted from 1, without copying it.
    ///
    /// # Errors
    /// There is no such parameter, the statement is running, or the text exceeds SQLite's limit.
    #[inline]
    pub fn bind_text(&mut self, parameter: u16, value: &'c str) -> Result<(), SqliteError> {
        let length = c_int::try_from(value.len())
            .map_err(|_| SqliteError::misuse("bind", "the text is too long"))?;
        self.slot.borrows = true;
        // SAFETY: as in `bind_blob`.
        let code = unsafe {
            (self.database.functions.sqlite3_bind_text)(
                self.slot.raw.as_ptr(),
                c_int::from(parameter),
                value.as_ptr().cast(),
                length,
                None,
            )
        };
        self.database
            .check(code, || format!("bind parameter {parameter}"))
    }

    /// Goes to the next row; `None` after the last.
    ///
    /// # Errors
    /// Whatever can go wrong in a database.
    #[inline]
    pub fn step(&mut self) -> Result<Option<Row<'_>>, SqliteError> {
        self.slot.running = true;
        // SAFETY: the statement is open; what it is bound to is alive (`bind_blob`).
        match unsafe { (self.database.functions.sqlite3_step)(self.slot.raw.as_ptr()) } {
            ffi::SQLITE_ROW => Ok(Some(Row {
                database: self.database,
                raw: self.slot.raw,
                statement: PhantomData,
            })),
            ffi::SQLITE_DONE => Ok(None),
            _ => Err(self.database.error("step")),
        }
    }

    /// Ends the run, and with it the read transaction if no other statement needs it. Bindings
    /// stay.
    ///
    /// # Errors
    /// The error of the last step, once more.
    #[inline]
    pub fn reset(&mut self) -> Result<(), SqliteError> {
        self.slot.running = false;
        // SAFETY: the statement is open.
        let code = unsafe { (self.database.functions.sqlite3_reset)(self.slot.raw.as_ptr()) };
        self.database.check(code, || "reset".to_owned())
    }

    /// Runs a statement that returns no rows, to its end.
    ///
    /// # Errors
    /// Whatever can go wrong in a database.
    #[inline]
    pub fn run(&mut self) -> Result<(), SqliteError> {
        self.step()?;
        self.reset()
    }
}

impl Drop for Statement<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.slot.running {
            self.slot.running = false;
            // SAFETY: the statement is open. The code repeats the error of its last step.
            unsafe { (self.database.functions.sqlite3_reset)(self.slot.raw.as_ptr()) };
        }
    }
}

/// The row a statement stands on; columns are counted from 0. It borrows the statement, so that
/// nothing moves on while a slice of it is in use; and one column at a time is borrowed from it,
/// because asking for another type can make SQLite convert a value where it lies.
pub struct Row<'s> {
    database: Database,
    raw: NonNull<sqlite3_stmt>,
    statement: PhantomData<&'s mut StatementSlot>,
}

impl Row<'_> {
    /// Bytes of a blob, or of a text; empty for NULL.
    ///
    /// # Errors
    /// Out of memory.
    #[inline]
    pub fn blob(&mut self, column: u16) -> Result<&[u8], SqliteError> {
        let column = c_int::from(column);
        let functions = self.database.functions;
        // SAFETY: the statement stands on a row; a column that does not exist reads as NULL. The
        // bytes are asked for after the address, as SQLite's documentation recommends.
        let (start, length) = unsafe {
            (
                (functions.sqlite3_column_blob)(self.raw.as_ptr(), column),
                (functions.sqlite3_column_bytes)(self.raw.as_ptr(), column),
            )
        };
        // SAFETY: these are what SQLite just returned.
        unsafe { self.slice(start.cast(), length) }
    }

    /// Text.
    ///
    /// # Errors
    /// Out of memory, or not UTF-8.
    pub fn text(&mut self, column: u16) -> Result<&str, SqliteError> {
        let column = c_int::from(column);
        let functions = self.database.functions;
        // SAFETY: as in `blob`.
        let (start, length) = unsafe {
            (
                (functions.sqlite3_column_text)(self.raw.as_ptr(), column),
                (functions.sqlite3_column_bytes)(self.raw.as_ptr(), column),
            )
        };
        // SAFETY: these are what SQLite just returned.
        let bytes = unsafe { self.slice(start, length) }?;
        std::str::from_utf8(bytes)
            .map_err(|error| SqliteError::misuse("read text", &error.to_string()))
    }

    /// A whole number; 0 for NULL and for text that is none.
    #[must_use]
    pub fn i64(&self, column: u16) -> i64 {
        // SAFETY: the statement stands on a row.
        unsafe {
            (self.database.functions.sqlite3_column_int64)(self.raw.as_ptr(), c_int::from(column))
        }
    }

    /// A number; 0 for NULL and for text that is none.
    #[must_use]
    pub fn f64(&self, column: u16) -> f64 {
        // SAFETY: the statement stands on a row.
        unsafe {
            (self.database.functions.sqlite3_column_double)(self.raw.as_ptr(), c_int::from(column))
        }
    }

    /// The bytes SQLite has pointed to.
    ///
    /// # Safety
    /// `start` and `length` must be what SQLite returned last for a column of this row.
    #[inline]
    unsafe fn slice(&mut self, start: *const u8, length: c_int) -> Result<&[u8], SqliteError> {
        match usize::try_from(length) {
            Ok(length) if !start.is_null() => {
                // SAFETY: the caller's promise; the bytes stay until the next call that changes
                // the statement or the column, and both are borrowed as long as the slice.
                Ok(unsafe { std::slice::from_raw_parts(start, length) })
            }
            // SQLite returns null for NULL and for an empty blob.
            Ok(0) => Ok(&[]),
            _ => Err(self.database.error("read a column")),
        }
    }
}
