//! SQLite's interface for reading and writing a blob in pieces, without SQL. Where the handles
//! are kept is [`super::connection`]'s business.

use std::ffi::c_int;
use std::marker::PhantomData;
use std::ptr::NonNull;

use libsqlite3_sys::sqlite3_blob;

use super::connection::{Connection, Database};
use super::error::SqliteError;

/// Number of an open blob handle of one connection; given back to close it.
#[derive(Debug, PartialEq, Eq)]
pub struct BlobId(pub(super) usize);

/// What a blob handle is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub enum BlobMode {
    /// Reading.
    Read = 0,
    /// Reading and writing.
    ReadWrite = 1,
}

/// An open blob handle in use. It cannot change the size of a blob.
pub struct BlobHandle<'c> {
    database: Database,
    raw: NonNull<sqlite3_blob>,
    connection: PhantomData<&'c mut Connection>,
}

impl<'c> BlobHandle<'c> {
    /// The caller holds the connection for as long as `'c`.
    #[inline]
    pub(super) fn borrow(database: Database, raw: NonNull<sqlite3_blob>) -> Self {
        Self {
            database,
            raw,
            connection: PhantomData,
        }
    }

    /// Moves the handle to the blob of another row of the same table, which is faster than
    /// opening a new one.
    ///
    /// # Errors
    /// There is no such row, or no blob in it. SQLite then allows nothing more with this handle
    /// but closing it.
    #[inline]
    pub fn reopen(&mut self, rowid: i64) -> Result<(), SqliteError> {
        // SAFETY: the handle is open.
        let code =
            unsafe { (self.database.functions.sqlite3_blob_reopen)(self.raw.as_ptr(), rowid) };
        self.database
            .check(code, || format!("move a blob handle to row {rowid}"))
    }

    /// Size of the blob in bytes.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> usize {
        // SAFETY: the handle is open.
        let bytes = unsafe { (self.database.functions.sqlite3_blob_bytes)(self.raw.as_ptr()) };
        usize::try_from(bytes).unwrap_or(0)
    }

    /// Fills the buffer with the bytes from `offset` on.
    ///
    /// # Errors
    /// The blob ends before, the row was changed since the handle was opened, or I/O failed.
    #[inline]
    pub fn read(&mut self, buffer: &mut [u8], offset: usize) -> Result<(), SqliteError> {
        let (length, offset) = span(buffer.len(), offset)?;
        // SAFETY: the handle is open; the buffer has `length` bytes.
        let code = unsafe {
            (self.database.functions.sqlite3_blob_read)(
                self.raw.as_ptr(),
                buffer.as_mut_ptr().cast(),
                length,
                offset,
            )
        };
        self.database.check(code, || "read a blob".to_owned())
    }

    /// Reads the whole blob. The buffer grows as needed and never shrinks, so that no time goes
    /// into filling it with zeros again and again; the blob is its returned beginning.
    ///
    /// # Errors
    /// As [`BlobHandle::read`].
    #[inline]
    pub fn read_whole<'b>(&mut self, buffer: &'b mut Vec<u8>) -> Result<&'b [u8], SqliteError> {
        let bytes = self.bytes();
        if buffer.len() < bytes {
            buffer.resize(bytes, 0);
        }
        let blob = &mut buffer[..bytes];
        self.read(blob, 0)?;
        Ok(blob)
    }

    /// Overwrites the bytes from `offset` on.
    ///
    /// # Errors
    /// The blob ends before, the handle is for reading only, the row was changed since the
    /// handle was opened, or I/O failed.
    #[inline]
    pub fn write(&mut self, bytes: &[u8], offset: usize) -> Result<(), SqliteError> {
        let (length, offset) = span(bytes.len(), offset)?;
        // SAFETY: the handle is open; there are `length` bytes, which SQLite only reads.
        let code = unsafe {
            (self.database.functions.sqlite3_blob_write)(
                self.raw.as_ptr(),
                bytes.as_ptr().cast(),
                length,
                offset,
            )
        };
        self.database.check(code, || "write a blob".to_owned())
    }
}

/// Length and offset in SQLite's type; no blob reaches 2 GiB.
#[inline]
fn span(length: usize, offset: usize) -> Result<(c_int, c_int), SqliteError> {
    match (c_int::try_from(length), c_int::try_from(offset)) {
        (Ok(length), Ok(offset)) => Ok((length, offset)),
        _ => Err(SqliteError::misuse(
            "reach into a blob",
            "no blob is that long",
        )),
    }
}
