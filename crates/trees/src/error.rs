//! Why a tree could not be walked or recorded, and what to do about it. Which exit code follows is
//! left to the command line; [`TreeError::environment_failed`] tells the two kinds apart.

use std::io;
use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

use crate::index::Recorded;

/// What can go wrong as a whole. What is wrong with one entry is an oddity of the walk and no error.
#[derive(Debug, thiserror::Error)]
pub enum TreeError {
    /// The top of the tree cannot be opened.
    #[error("cannot read the directory {}", path.display())]
    Top {
        /// Path asked for.
        path: PathBuf,
        /// The system's answer.
        #[source]
        source: io::Error,
    },
    /// The top of the tree is not a directory.
    #[error("{} is not a directory", path.display())]
    NotADirectory {
        /// Path asked for.
        path: PathBuf,
    },
    /// The path of the database is something else than a file.
    #[error("{} is not a file", path.display())]
    NotAFile {
        /// Path asked for.
        path: PathBuf,
    },
    /// A file, but not a database.
    #[error("{} is not an SQLite database", path.display())]
    NotADatabase {
        /// Path asked for.
        path: PathBuf,
    },
    /// A database that holds something else.
    #[error("{} is an SQLite database, but not an index: {found}", path.display())]
    OtherSchema {
        /// Path of the database.
        path: PathBuf,
        /// What it holds instead.
        found: String,
    },
    /// An index in a form that this program does not know.
    #[error("{} is an index of format {found}; this program knows format {known}", path.display())]
    OtherFormat {
        /// Path of the database.
        path: PathBuf,
        /// Its format.
        found: i64,
        /// Ours.
        known: i64,
    },
    /// An index of another tree.
    #[error("{} is the index of {indexed}, not of {asked}", path.display())]
    OtherTree {
        /// Path of the database.
        path: PathBuf,
        /// Tree that it records.
        indexed: String,
        /// Tree that was asked for.
        asked: String,
    },
    /// The naive way starts from nothing.
    #[error("{} holds an index already", path.display())]
    NotEmpty {
        /// Path of the database.
        path: PathBuf,
    },
    /// SQLite failed.
    #[error("cannot write the index {}; {recorded}", path.display())]
    Database {
        /// Path of the database.
        path: PathBuf,
        /// What is safely in it.
        recorded: Recorded,
        /// SQLite's answer.
        #[source]
        source: rusqlite::Error,
    },
}

impl TreeError {
    pub(crate) fn database(path: &Path, recorded: Recorded, source: rusqlite::Error) -> Self {
        if code(&source) == Some(ErrorCode::NotADatabase) {
            return Self::NotADatabase {
                path: path.to_owned(),
            };
        }
        Self::Database {
            path: path.to_owned(),
            recorded,
            source,
        }
    }

    /// What helps, in one line.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::Top { .. } | Self::NotADirectory { .. } => {
                "name a directory that you may read, as in `sqlitmus index /usr --into usr.db`"
                    .to_owned()
            }
            Self::NotAFile { .. } | Self::NotADatabase { .. } | Self::OtherSchema { .. } => {
                "nothing was changed; name another file, or one that is not there yet, with --into"
                    .to_owned()
            }
            Self::OtherFormat { .. } => {
                "nothing was changed; name a file that is not there yet with --into".to_owned()
            }
            Self::OtherTree { indexed, .. } => format!(
                "nothing was changed; `sqlitmus index {indexed}` brings it up to date, or name \
                 another file with --into"
            ),
            Self::NotEmpty { .. } => {
                "--naive starts from nothing: name a file that is not there yet with --into"
                    .to_owned()
            }
            Self::Database { source, path, .. } => database_hint(source, path),
        }
    }

    /// Whether the machine gave out, and not the input.
    #[must_use]
    pub fn environment_failed(&self) -> bool {
        match self {
            Self::Database { source, .. } => !matches!(
                code(source),
                Some(
                    ErrorCode::ReadOnly
                        | ErrorCode::PermissionDenied
                        | ErrorCode::CannotOpen
                        | ErrorCode::DatabaseBusy
                        | ErrorCode::DatabaseLocked
                )
            ),
            _ => false,
        }
    }
}

fn database_hint(source: &rusqlite::Error, path: &Path) -> String {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    match code(source) {
        Some(ErrorCode::DiskFull) => format!(
            "the database is intact; make room (`df -h {}`) and give the same command again: it \
             goes on from there",
            folder.display()
        ),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            "another program has the database open for writing; try again when it is done"
                .to_owned()
        }
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen) => {
            format!(
                "name a file in a directory that you may write to (`ls -ld {}`)",
                folder.display()
            )
        }
        Some(ErrorCode::DatabaseCorrupt) => {
            "the database is damaged; name a file that is not there yet with --into".to_owned()
        }
        _ => "the database is as it was after its last commit; give the same command again"
            .to_owned(),
    }
}

fn code(error: &rusqlite::Error) -> Option<ErrorCode> {
    error.sqlite_error_code()
}
