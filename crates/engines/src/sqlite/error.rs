//! What SQLite says when it refuses. What is done about it is the caller's business.

use libsqlite3_sys as ffi;

/// An error of SQLite's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot {during}: {message} (SQLite code {extended_code})")]
pub struct SqliteError {
    /// Primary result code, such as 5 (`SQLITE_BUSY`).
    pub code: i32,
    /// Extended result code; its low byte is the primary one.
    pub extended_code: i32,
    /// SQLite's own words.
    pub message: String,
    /// What was being done, as a verb: "open", "step".
    pub during: String,
}

impl SqliteError {
    /// An error found before SQLite was called.
    pub(super) fn misuse(during: &str, message: &str) -> Self {
        Self {
            code: ffi::SQLITE_MISUSE,
            extended_code: ffi::SQLITE_MISUSE,
            message: message.to_owned(),
            during: during.to_owned(),
        }
    }

    /// Whether the SQL is at fault: no such table, column or row, or not SQL at all.
    #[must_use]
    pub fn is_sql(&self) -> bool {
        self.code == ffi::SQLITE_ERROR
    }

    /// Whether another connection holds what was needed.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        matches!(self.code, ffi::SQLITE_BUSY | ffi::SQLITE_LOCKED)
    }

    /// Whether the file is not a database, or a damaged one.
    #[must_use]
    pub fn is_damaged(&self) -> bool {
        matches!(self.code, ffi::SQLITE_CORRUPT | ffi::SQLITE_NOTADB)
    }

    /// Whether the machine refused rather than SQLite: disk full, I/O error, no permission, no
    /// memory, a file that cannot be opened.
    #[must_use]
    pub fn is_environment(&self) -> bool {
        matches!(
            self.code,
            ffi::SQLITE_FULL
                | ffi::SQLITE_IOERR
                | ffi::SQLITE_PERM
                | ffi::SQLITE_READONLY
                | ffi::SQLITE_NOMEM
                | ffi::SQLITE_CANTOPEN
        )
    }
}
