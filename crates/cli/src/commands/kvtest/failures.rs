//! Errors of SQLite, of engines and of files, as failures with a hint and an exit code: what the
//! user named wrongly is 2, what the machine could not do is 5.

use std::fmt::Display;
use std::io;
use std::path::Path;

use rusqlite::ffi;
use sqlitmus_engines::EngineError;
use sqlitmus_engines::sqlite::SqliteError;

use crate::failure::{ExitCode, Failure, with_causes};

/// SQLite refused to do something with a database.
pub(super) fn sqlite(path: &Path, error: &SqliteError) -> Failure {
    let shown = path.display();
    let (code, message, hint) = match error.code {
        ffi::SQLITE_NOTADB => (
            ExitCode::BadInput,
            format!("{shown} is not an SQLite database"),
            format!("make one under another name: sqlitmus kvtest init {shown}.db"),
        ),
        ffi::SQLITE_CORRUPT => (
            ExitCode::BadInput,
            format!("{shown} is damaged: {error}"),
            format!("save what can be read: sqlite3 {shown} .recover"),
        ),
        _ if error.extended_code == ffi::SQLITE_READONLY_ROLLBACK => (
            ExitCode::BadInput,
            format!(
                "{shown} was left in the middle of a transaction, and a verb that only reads \
                 must not change it"
            ),
            format!("roll the transaction back: sqlite3 {shown} \"SELECT count(*) FROM kv\""),
        ),
        ffi::SQLITE_READONLY | ffi::SQLITE_PERM | ffi::SQLITE_CANTOPEN => (
            ExitCode::BadInput,
            format!("{shown}: {error}"),
            format!("see who may read and write it and its directory: ls -ld {shown}"),
        ),
        ffi::SQLITE_FULL => (
            ExitCode::Environment,
            format!("{shown}: {error}"),
            format!("free some space; see: df -h {shown}"),
        ),
        ffi::SQLITE_IOERR | ffi::SQLITE_NOMEM => (
            ExitCode::Environment,
            format!("{shown}: {error}"),
            "look for the system's own words: dmesg | tail".to_owned(),
        ),
        _ if error.is_busy() => (
            ExitCode::Environment,
            format!("{shown} is in use by another program: {error}"),
            format!("find out which one: fuser -v {shown}"),
        ),
        _ => (
            ExitCode::BadInput,
            format!("{shown}: {error}"),
            format!("look at the database: sqlitmus kvtest stat {shown}"),
        ),
    };
    Failure {
        code,
        message,
        hint,
    }
}

/// An engine failed at a path.
pub(super) fn engine(path: &Path, error: &EngineError) -> Failure {
    let shown = path.display();
    match error {
        EngineError::Sqlite { source, .. } => sqlite(path, source),
        EngineError::Io {
            doing,
            path,
            source,
        } => {
            let doing = format!("cannot {doing} {}", path.display());
            file(doing, source, format!("see: ls -ld {shown}; df -h {shown}"))
        }
        _ => Failure::bad_input(with_causes(error), format!("see: ls -l {shown}")),
    }
}

/// A file operation failed; `doing` says what was to be done to what.
pub(super) fn file(doing: impl Display, source: &io::Error, hint: impl Into<String>) -> Failure {
    let code = match source.kind() {
        io::ErrorKind::NotFound
        | io::ErrorKind::AlreadyExists
        | io::ErrorKind::PermissionDenied
        | io::ErrorKind::ReadOnlyFilesystem
        | io::ErrorKind::NotADirectory
        | io::ErrorKind::IsADirectory
        | io::ErrorKind::InvalidFilename => ExitCode::BadInput,
        _ => ExitCode::Environment,
    };
    Failure {
        code,
        message: format!("{doing}: {source}"),
        hint: hint.into(),
    }
}

/// The user asked to stop; `left` says what became of the work.
pub(super) fn interrupted(left: &str) -> Failure {
    Failure {
        code: ExitCode::Interrupted,
        message: format!("stopped: {left}"),
        hint: String::new(),
    }
}
