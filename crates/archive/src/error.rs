//! What can go wrong with an archive, and what to do about it. Which exit code follows is the
//! command line's decision; [`ArchiveError::nature`] tells the kinds apart.

use std::io;
use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

/// Why an archive could not be read, written, unpacked or served.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// There is nothing at the path.
    #[error("there is no archive {}", path.display())]
    Missing {
        /// Path asked for.
        path: PathBuf,
    },
    /// Something that is no SQLite archive.
    #[error("{} is not an SQLite archive: {reason}", path.display())]
    NotAnArchive {
        /// Path asked for.
        path: PathBuf,
        /// How that was found out.
        reason: String,
    },
    /// The end is missing.
    #[error("{} is truncated: it has {found_bytes} bytes of {expected_bytes}", path.display())]
    Truncated {
        /// Path of the archive.
        path: PathBuf,
        /// Bytes it should have, at the least.
        expected_bytes: u64,
        /// Bytes it has.
        found_bytes: u64,
    },
    /// A journal or a log lies beside it: another program is writing, or was killed while it was.
    #[error("{} has unfinished changes in {}", path.display(), companion.display())]
    Unfinished {
        /// Path of the archive.
        path: PathBuf,
        /// The journal or log.
        companion: PathBuf,
    },
    /// Another program has locked it.
    #[error("{} is locked by another program", path.display())]
    Busy {
        /// Path of the archive.
        path: PathBuf,
    },
    /// SQLite finds its pages inconsistent.
    #[error("{} is damaged: {reason}", path.display())]
    Damaged {
        /// Path of the archive.
        path: PathBuf,
        /// What SQLite says.
        reason: String,
    },
    /// What the archive says of one entry cannot be.
    #[error("entry `{}`: {reason}", name.escape_debug())]
    BadEntry {
        /// Name of the entry.
        name: String,
        /// What is wrong with it.
        reason: String,
    },
    /// There is no entry of that name.
    #[error("the archive has no entry `{}`", name.escape_debug())]
    NoEntry {
        /// Name asked for.
        name: String,
    },
    /// Entries that must not be unpacked; nothing was.
    #[error("{count} entries cannot be unpacked safely; the first: {first}")]
    Unsafe {
        /// How many.
        count: usize,
        /// Name of the first, and what is wrong with it.
        first: String,
    },
    /// Unpacking would overwrite; nothing was unpacked.
    #[error("{count} entries exist already in {}; the first: {first}", target.display())]
    WouldOverwrite {
        /// Directory that was to be unpacked into.
        target: PathBuf,
        /// How many.
        count: usize,
        /// Name of the first.
        first: String,
    },
    /// More bytes than were allowed.
    #[error("{what} would take {bytes} bytes, more than the {limit_bytes} that are allowed")]
    OverLimit {
        /// What would.
        what: String,
        /// Bytes it would take, as it says itself.
        bytes: u64,
        /// Bytes allowed.
        limit_bytes: u64,
    },
    /// Something is there already.
    #[error("{} exists already", path.display())]
    Exists {
        /// Where.
        path: PathBuf,
    },
    /// A file that no SQLite blob can hold.
    #[error("{} has {bytes} bytes; a blob of SQLite holds {limit_bytes}", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its size.
        bytes: u64,
        /// What a row may hold, less its name.
        limit_bytes: u64,
    },
    /// A source file is not what it was when the directory was listed.
    #[error("{} changed while it was packed: {reason}", path.display())]
    SourceChanged {
        /// The file.
        path: PathBuf,
        /// In which way.
        reason: String,
    },
    /// Two entries of one name.
    #[error("`{}` is there twice: {first} and {second}", name.escape_debug())]
    Twice {
        /// The name.
        name: String,
        /// Where it was found first.
        first: String,
        /// Where it was found again.
        second: String,
    },
    /// A name that an archive cannot hold.
    #[error("the name {} is not UTF-8, and an archive's names are", path.display())]
    NotUtf8 {
        /// The file.
        path: PathBuf,
    },
    /// Neither a file, a directory nor a symbolic link.
    #[error("{} is {what}, which an archive does not hold", path.display())]
    Unsupported {
        /// The file.
        path: PathBuf,
        /// What it is.
        what: &'static str,
    },
    /// A setting that cannot be.
    #[error("{what}: {reason}")]
    BadSetting {
        /// Which.
        what: String,
        /// Why.
        reason: String,
    },
    /// What was read back is not what was packed.
    #[error("read back, `{}` is not what was packed: {reason}", name.escape_debug())]
    ReadBack {
        /// Name of the entry.
        name: String,
        /// What differs.
        reason: String,
    },
    /// No space.
    #[error("no space left to write {}", path.display())]
    Full {
        /// What was written.
        path: PathBuf,
    },
    /// What is to be written cannot fit.
    #[error("{} has {free_bytes} bytes free, and {needed_bytes} are needed", path.display())]
    TooLittleSpace {
        /// Where it was to be written.
        path: PathBuf,
        /// Bytes needed, at the least.
        needed_bytes: u64,
        /// Bytes free.
        free_bytes: u64,
    },
    /// The operating system refused.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// What was being done, as a verb.
        action: &'static str,
        /// To what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// SQLite refused.
    #[error("{}", path.display())]
    Database {
        /// Path of the archive.
        path: PathBuf,
        /// What SQLite said.
        source: rusqlite::Error,
    },
    /// The caller asked to stop.
    #[error("interrupted")]
    Interrupted,
}

/// Kinds of failure, for exit codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nature {
    /// What was given cannot be used, or was refused.
    BadInput,
    /// The machine gave out, or a source changed under our hands.
    Environment,
    /// The caller asked to stop.
    Interrupted,
    /// What was written is not what was to be written.
    Differs,
}

impl ArchiveError {
    /// Which kind of failure it is.
    #[must_use]
    pub fn nature(&self) -> Nature {
        match self {
            Self::Interrupted => Nature::Interrupted,
            Self::ReadBack { .. } => Nature::Differs,
            Self::Full { .. }
            | Self::TooLittleSpace { .. }
            | Self::Io { .. }
            | Self::Database { .. }
            | Self::SourceChanged { .. } => Nature::Environment,
            _ => Nature::BadInput,
        }
    }

    /// What to do about it; may be empty.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::Missing { .. } => "`sqlitmus pack DIR ARCHIVE` makes one".to_owned(),
            Self::NotAnArchive { .. } => {
                "an archive is an SQLite database with a table sqlar(name, mode, mtime, sz, data)"
                    .to_owned()
            }
            Self::Truncated { .. } => "copy it again from where it came".to_owned(),
            Self::Damaged { path, .. } => format!(
                "`sqlite3 '{}' .recover` may save what can be read",
                path.display()
            ),
            Self::Unfinished { path, .. } => format!(
                "let its writer finish, or: sqlite3 '{}' 'PRAGMA journal_mode = DELETE'",
                path.display()
            ),
            Self::Busy { .. } => "wait until the other program has finished".to_owned(),
            Self::BadEntry { .. } => "`sqlitmus verify ARCHIVE` lists all such entries".to_owned(),
            Self::NoEntry { .. } => "`sqlitmus ls ARCHIVE` lists its names".to_owned(),
            Self::Unsafe { .. } => {
                "nothing was unpacked; name the entries to unpack, or for links see --links"
                    .to_owned()
            }
            Self::WouldOverwrite { .. } => {
                "nothing was unpacked; unpack into an empty directory, or use --force".to_owned()
            }
            Self::OverLimit { .. } => {
                "if the archive is to be trusted, raise the limit: --max-entry, --max-total"
                    .to_owned()
            }
            Self::Exists { .. } => "choose another name, or use --force".to_owned(),
            Self::TooLarge { .. } => "--skip-too-large goes on without it".to_owned(),
            Self::SourceChanged { .. } => {
                "pack a directory that is at rest, or use --skip-unreadable".to_owned()
            }
            Self::Twice { .. } => "pack the directories into one archive each".to_owned(),
            Self::NotUtf8 { .. } => "rename it, or leave it out with --exclude".to_owned(),
            Self::Unsupported { .. } => "leave it out with --exclude".to_owned(),
            Self::Full { .. } | Self::TooLittleSpace { .. } => {
                "free some space, and run it again".to_owned()
            }
            Self::ReadBack { .. } => {
                "nothing was put in place; check the disk, then pack again".to_owned()
            }
            _ => String::new(),
        }
    }

    /// An error of the operating system; a full disk has a name of its own.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full { path },
            _ => Self::Io {
                action,
                path,
                source,
            },
        }
    }

    /// An error of SQLite.
    pub(crate) fn database(path: &Path) -> impl FnOnce(rusqlite::Error) -> Self {
        let path = path.to_owned();
        move |source| match source.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => Self::Full { path },
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy { path },
            Some(ErrorCode::NotADatabase) => Self::NotAnArchive {
                path,
                reason: "it is not an SQLite database".to_owned(),
            },
            Some(ErrorCode::DatabaseCorrupt) => Self::Damaged {
                path,
                reason: source.to_string(),
            },
            _ => Self::Database { path, source },
        }
    }

    pub(crate) fn bad_entry(name: &str, reason: impl Into<String>) -> Self {
        Self::BadEntry {
            name: name.to_owned(),
            reason: reason.into(),
        }
    }
}
