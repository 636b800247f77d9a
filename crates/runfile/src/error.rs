//! What can go wrong with a run file, and what to do about it. Which exit code follows is the
//! command line's decision; [`RunFileError::environment_failed`] tells the two kinds apart.

use std::io;
use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

use crate::header::Header;

/// Why a run file could not be created, read or written.
#[derive(Debug, thiserror::Error)]
pub enum RunFileError {
    /// There is nothing at the path.
    #[error("there is no run file {}", path.display())]
    Missing {
        /// Path asked for.
        path: PathBuf,
    },
    /// Something that is not a regular file.
    #[error("{} is not a file", path.display())]
    NotAFile {
        /// Path asked for.
        path: PathBuf,
    },
    /// A run file is never written over anything.
    #[error("{} exists already", path.display())]
    AlreadyExists {
        /// Path asked for.
        path: PathBuf,
    },
    /// A file, but no database.
    #[error("{} is not an SQLite database", path.display())]
    NotADatabase {
        /// Path asked for.
        path: PathBuf,
    },
    /// A database, but not one of ours.
    #[error("{} is an SQLite database of another application", path.display())]
    OtherApplication {
        /// Path asked for.
        path: PathBuf,
        /// Its `PRAGMA application_id`.
        application_id: u32,
    },
    /// A run of the durability experiment, where a measurement is wanted.
    #[error("{} is a run of the durability experiment, not a measurement", path.display())]
    DurabilityRun {
        /// Path asked for.
        path: PathBuf,
    },
    /// A measurement, where a run of the durability experiment is wanted.
    #[error("{} is a measurement, not a run of the durability experiment", path.display())]
    MeasurementRun {
        /// Path asked for.
        path: PathBuf,
    },
    /// Written by a version of sqlitmus that is newer than this one.
    #[error("{} has format version {found}; this sqlitmus reads up to {known}", path.display())]
    NewerFormat {
        /// Path asked for.
        path: PathBuf,
        /// Its format version.
        found: u32,
        /// The newest format version that can be read.
        known: u32,
    },
    /// The end is missing.
    #[error(
        "{} is truncated: it has {found_bytes} bytes of {expected_bytes}", path.display()
    )]
    Truncated {
        /// Path asked for.
        path: PathBuf,
        /// Bytes it should have, at the least.
        expected_bytes: u64,
        /// Bytes it has.
        found_bytes: u64,
    },
    /// A table is missing.
    #[error("{} has no table `{table}`", path.display())]
    MissingTable {
        /// Path asked for.
        path: PathBuf,
        /// Name of the table.
        table: &'static str,
    },
    /// What stands in it cannot be.
    #[error("{} is damaged: {reason}", path.display())]
    Damaged {
        /// Path asked for.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The plan is in words that this version does not know.
    #[error("{}: its plan, written by sqlitmus {sqlitmus_version}, cannot be understood", path.display())]
    UnknownPlan {
        /// Path asked for.
        path: PathBuf,
        /// Version that wrote it.
        sqlitmus_version: String,
        /// What is not understood.
        source: serde_json::Error,
    },
    /// Another program held it for longer than this one waits.
    #[error("{} is locked by another program", path.display())]
    Busy {
        /// Path asked for.
        path: PathBuf,
    },
    /// No space.
    #[error("no space left to write {}", path.display())]
    Full {
        /// Path asked for.
        path: PathBuf,
    },
    /// The system refused a file.
    #[error("{}: {source}", path.display())]
    File {
        /// Path in question.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// SQLite refused.
    #[error("{}: {source}", path.display())]
    Database {
        /// Path in question.
        path: PathBuf,
        /// What SQLite said.
        source: rusqlite::Error,
    },
    /// The plan has no such group.
    #[error("the plan has no group `{group}`")]
    UnknownGroup {
        /// Name given.
        group: String,
    },
    /// A longer plan that does not begin with the groups that are recorded.
    #[error("{}: the groups that are there would change", path.display())]
    PlanChanges {
        /// Path in question.
        path: PathBuf,
    },
    /// The plan, or the group that is recorded, has no such arm.
    #[error("there is no arm `{arm}` to record")]
    UnknownArm {
        /// Name given.
        arm: String,
    },
    /// A trial of one round among those of another.
    #[error("a trial of `{arm}` in round {found} was recorded with round {expected}")]
    WrongRound {
        /// Name of the trial's arm.
        arm: String,
        /// Round of the trial.
        found: u32,
        /// Round that is recorded.
        expected: u32,
    },
    /// Two slices of one trial in the same turn.
    #[error("a trial of `{arm}` has turns out of order or twice")]
    WrongTurns {
        /// Name of the trial's arm.
        arm: String,
    },
    /// The round was finished before.
    #[error("round {round} of group `{group}` is complete already")]
    RoundComplete {
        /// Name of the group.
        group: String,
        /// Round, from 0.
        round: u32,
    },
    /// A number that the database cannot hold.
    #[error("{what} of {value} is more than a run file can hold")]
    TooLarge {
        /// What the number is.
        what: String,
        /// The number.
        value: u64,
    },
}

impl RunFileError {
    /// What the user can do about it.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::Missing { .. } | Self::NotAFile { .. } => {
                "`sqlitmus measure` makes a run file and names it when it ends".to_owned()
            }
            Self::AlreadyExists { .. } => {
                "run files are never overwritten: give another name".to_owned()
            }
            Self::NotADatabase { .. } | Self::OtherApplication { .. } => {
                "give a run file that `sqlitmus measure` has made".to_owned()
            }
            Self::DurabilityRun { path } | Self::MeasurementRun { path } => {
                format!("`sqlitmus report {}` shows it", path.display())
            }
            Self::NewerFormat { .. } => {
                "update sqlitmus: a later version has written this file".to_owned()
            }
            Self::Truncated { .. } => {
                "copy it again from the machine it was measured on".to_owned()
            }
            Self::MissingTable { path, .. } | Self::Damaged { path, .. } => format!(
                "copy it again from the machine it was measured on; `sqlite3 '{}' .recover` \
                 prints what can still be read",
                path.display()
            ),
            Self::UnknownPlan {
                sqlitmus_version, ..
            } => format!("read it with sqlitmus {sqlitmus_version} or a later version"),
            Self::Busy { .. } => "close the program that has it open, then try again".to_owned(),
            Self::Full { .. } => {
                "make room; the rounds recorded so far are safe in the file".to_owned()
            }
            Self::File { path, .. } => {
                format!("see `ls -ld '{}'` and its directory", path.display())
            }
            Self::Database { source, .. }
                if source.sqlite_error_code() != Some(ErrorCode::ConstraintViolation) =>
            {
                "see whether its directory is writable and its disk is well".to_owned()
            }
            Self::RoundComplete { .. } => {
                "is another sqlitmus continuing the same run? let only one do so".to_owned()
            }
            Self::Database { .. }
            | Self::UnknownGroup { .. }
            | Self::UnknownArm { .. }
            | Self::PlanChanges { .. }
            | Self::WrongRound { .. }
            | Self::WrongTurns { .. }
            | Self::TooLarge { .. } => "this is a mistake in sqlitmus: please report it".to_owned(),
        }
    }

    /// The file in question; `None` where it is about what was to be recorded.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Missing { path }
            | Self::NotAFile { path }
            | Self::AlreadyExists { path }
            | Self::NotADatabase { path }
            | Self::OtherApplication { path, .. }
            | Self::DurabilityRun { path }
            | Self::MeasurementRun { path }
            | Self::NewerFormat { path, .. }
            | Self::Truncated { path, .. }
            | Self::MissingTable { path, .. }
            | Self::Damaged { path, .. }
            | Self::UnknownPlan { path, .. }
            | Self::Busy { path }
            | Self::Full { path }
            | Self::File { path, .. }
            | Self::PlanChanges { path }
            | Self::Database { path, .. } => Some(path),
            Self::UnknownGroup { .. }
            | Self::UnknownArm { .. }
            | Self::WrongRound { .. }
            | Self::WrongTurns { .. }
            | Self::RoundComplete { .. }
            | Self::TooLarge { .. } => None,
        }
    }

    /// Whether the machine is to blame (disk full, I/O error, a lock) and not what was asked for.
    #[must_use]
    pub fn environment_failed(&self) -> bool {
        matches!(
            self,
            Self::Busy { .. } | Self::Full { .. } | Self::File { .. } | Self::Database { .. }
        )
    }

    /// From what SQLite said about the database at a path.
    pub(crate) fn from_database(path: &Path, source: rusqlite::Error) -> Self {
        let path = path.to_owned();
        match source.sqlite_error_code() {
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                Self::damaged(&path, source.to_string())
            }
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy { path },
            Some(ErrorCode::DiskFull) => Self::Full { path },
            // A column or view that is not there.
            Some(ErrorCode::Unknown) => Self::damaged(&path, source.to_string()),
            Some(_) => Self::Database { path, source },
            // Not from SQLite but about a value: a NULL or a text where a number should be.
            None => Self::damaged(&path, source.to_string()),
        }
    }

    /// From what the system said about the file at a path.
    pub(crate) fn from_file(path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::NotFound => Self::Missing { path },
            io::ErrorKind::AlreadyExists => Self::AlreadyExists { path },
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full { path },
            _ => Self::File { path, source },
        }
    }

    /// Damaged, or plainly truncated where the file is shorter than its own header says. Only
    /// asked after reading has failed: while a round is being written the header runs ahead.
    pub(crate) fn damaged(path: &Path, reason: String) -> Self {
        match Header::read_any(path) {
            Some(header) if header.expected_bytes > header.found_bytes => Self::Truncated {
                path: path.to_owned(),
                expected_bytes: header.expected_bytes,
                found_bytes: header.found_bytes,
            },
            _ => Self::Damaged {
                path: path.to_owned(),
                reason,
            },
        }
    }
}
