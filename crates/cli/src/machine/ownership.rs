//! The rule that the tool never deletes or overwrites a path that it did not create.
//!
//! Who made `PATH` is told by the sidecar file `PATH.sqlitmus-owner` beside it, so that the layout
//! of a store, an archive or an exported tree stays as it is. The sidecar holds the identity of the
//! object (inode and time of birth): something else under the same name is not ours.
//!
//! The order makes every crash recoverable without a guess. Creation: the sidecar announces a
//! random name, the object is made under that name, the sidecar takes its identity, and only then
//! the object gets its own name, which must be free. Removal: the sidecar says so, the object goes,
//! the sidecar goes last. [`recover`] finishes or undoes what a crash left.
//!
//! No symbolic link is followed at the path itself or below it. Two processes that create or remove
//! the *same* path at once are kept apart by the scratch directory's lock; elsewhere one of them
//! gets an error, and still nothing foreign is deleted. What is made and when is left to callers.

use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::free_name::rename_to_free_name;
use super::owner_record::{Identity, OwnerRecord, RecordReading, RecordState};
use super::path_suffix::with_suffix;
use super::tree_removal::{self, TreeError, TreeSize};

/// What the name of a sidecar ends with.
pub const SIDECAR_SUFFIX: &str = ".sqlitmus-owner";

/// What SQLite appends to a database's name for the files that belong to it.
pub const DATABASE_COMPANIONS: [&str; 3] = ["-wal", "-shm", "-journal"];

/// Why a path was not created or removed.
#[derive(Debug, thiserror::Error)]
pub enum OwnershipError {
    /// Something is there that the tool did not make.
    #[error("{} was not created by sqlitmus and is left as it is: {reason}", .path.display())]
    NotOurs {
        /// The path.
        path: PathBuf,
        /// How that was found out.
        reason: String,
    },
    /// An earlier run of the tool made it, and it is complete.
    #[error("{} exists already ({what}, made by sqlitmus {version})", .path.display())]
    ExistsAndIsOurs {
        /// The path.
        path: PathBuf,
        /// What it is.
        what: String,
        /// The version that made it.
        version: String,
    },
    /// The path has no last name: it is empty, `/`, or ends in `..`.
    #[error("{} names nothing that could be created or removed", .path.display())]
    NoName {
        /// The path.
        path: PathBuf,
    },
    /// A tree could not be removed.
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// The operating system failed.
    #[error("cannot {action} {}", .path.display())]
    Io {
        /// What was being done, as a verb.
        action: &'static str,
        /// To what.
        path: PathBuf,
        /// The operating system's answer.
        #[source]
        source: io::Error,
    },
}

/// How a path stands to us.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Nothing is there.
    Free,
    /// Something is there that is not ours.
    Foreign {
        /// How that was found out.
        reason: String,
    },
    /// Ours and complete.
    Ours {
        /// What it is.
        what: String,
        /// The version that made it.
        version: String,
    },
    /// A creation or removal was interrupted; [`recover`] puts it right.
    Unfinished,
}

/// The sidecar's path for a path, whether it exists or not.
///
/// # Errors
/// [`OwnershipError::NoName`].
pub fn sidecar_path(path: &Path) -> Result<PathBuf, OwnershipError> {
    Ok(Site::of(path)?.sidecar())
}

/// How a path stands to us. Changes nothing.
///
/// # Errors
/// If the operating system fails.
pub fn standing(path: &Path) -> Result<Standing, OwnershipError> {
    let site = Site::of(path)?;
    let object = site.metadata()?;
    let record = match site.record()? {
        RecordReading::Found { record, user } => match &object {
            // In a folder open to all, another user can plant a sidecar that names your file.
            Some(object) if user != object.uid() && user != effective_user() => {
                return Ok(foreign("its owner file is another user's"));
            }
            _ => record,
        },
        RecordReading::NotOurs(reason) => return Ok(Standing::Foreign { reason }),
        RecordReading::Missing if object.is_some() => {
            return Ok(foreign("it has no owner file"));
        }
        RecordReading::Missing => return Ok(Standing::Free),
    };
    let Some(object) = object else {
        return Ok(Standing::Unfinished);
    };
    if !is_recorded(&record, &object) {
        return Ok(foreign("it is not the object that its owner file names"));
    }
    Ok(match record.state {
        RecordState::Ready => Standing::Ours {
            what: record.what,
            version: record.version,
        },
        RecordState::Creating | RecordState::Removing => Standing::Unfinished,
    })
}

/// Whether the path is ours and complete.
///
/// # Errors
/// If the operating system fails.
pub fn is_ours(path: &Path) -> Result<bool, OwnershipError> {
    Ok(matches!(standing(path)?, Standing::Ours { .. }))
}

/// Creates an empty directory of ours; its parent must exist. `what` says what it is, for readers
/// of the sidecar and of messages.
///
/// # Errors
/// If anything is at the path; nothing is changed then.
pub fn create_directory(path: &Path, what: &str) -> Result<(), OwnershipError> {
    let site = Site::of(path)?;
    match recover(path)? {
        Standing::Free => {}
        Standing::Foreign { reason } => return Err(site.not_ours(reason)),
        Standing::Ours { what, version } => {
            return Err(OwnershipError::ExistsAndIsOurs {
                path: path.to_path_buf(),
                what,
                version,
            });
        }
        Standing::Unfinished => {
            return Err(site.not_ours("another process is working on it".to_owned()));
        }
    }
    let mut record = OwnerRecord::creating(what);
    let sidecar = site.sidecar();
    record
        .write_new(&sidecar)
        .map_err(failed("write", &sidecar))?;
    let published = site.publish(&mut record);
    if published.is_err() {
        // Best effort: what it cannot undo the next call will; the first error is the one to tell.
        let _ = site.finish(&record);
    }
    published?;
    site.flush();
    Ok(())
}

/// Notes that what the caller has just created at the path is ours; for what other code must create
/// under its own name. A crash between the two leaves something that counts as foreign, and stays.
///
/// # Errors
/// If nothing is at the path, or a sidecar is there already; nothing is changed then.
pub fn claim_created(path: &Path, what: &str) -> Result<(), OwnershipError> {
    let site = Site::of(path)?;
    let Some(found) = site.metadata()? else {
        return Err(site.not_ours("there is nothing".to_owned()));
    };
    let mut record = OwnerRecord::creating(what);
    record.identity = Identity::of(&found);
    if record.identity.is_none() {
        return Err(site.not_ours("it is neither a file nor a directory".to_owned()));
    }
    record.state = RecordState::Ready;
    let sidecar = site.sidecar();
    record
        .write_new(&sidecar)
        .map_err(failed("write", &sidecar))?;
    site.flush();
    Ok(())
}

/// Removes what is ours: a directory with all that is in it, or a file with SQLite's companion files
/// (`-wal`, `-shm`, `-journal`); then the sidecar. What an interrupted run left is removed as well.
/// Where nothing is, nothing is done.
///
/// # Errors
/// [`OwnershipError::NotOurs`] if what is there is foreign, which then stays; or if the operating
/// system fails, in which case a repeated call goes on from there.
pub fn remove_owned(path: &Path) -> Result<TreeSize, OwnershipError> {
    let site = Site::of(path)?;
    match standing(path)? {
        Standing::Free => return Ok(TreeSize::default()),
        Standing::Foreign { reason } => return Err(site.not_ours(reason)),
        Standing::Ours { .. } | Standing::Unfinished => {}
    }
    let RecordReading::Found { mut record, .. } = site.record()? else {
        return Err(site.not_ours("its owner file vanished".to_owned()));
    };
    if record.state == RecordState::Ready && site.metadata()?.is_some() {
        record.state = RecordState::Removing;
        site.replace_record(&record)?;
    }
    site.finish(&record)
}

/// What [`remove_owned`] would free. Changes nothing.
///
/// # Errors
/// If the path cannot be counted.
pub fn count_owned(path: &Path) -> Result<TreeSize, OwnershipError> {
    let site = Site::of(path)?;
    let mut size = TreeSize::default();
    if let Some(metadata) = site.metadata()? {
        size += tree_removal::count(&site.object())?;
        for companion in site.companions_of(&metadata) {
            size += tree_removal::count(&companion)?;
        }
    }
    Ok(size)
}

/// Puts right what an interrupted creation or removal left at the path, and a sidecar that outlived
/// its object; leaves everything else as it is. Returns how the path stands afterwards.
///
/// # Errors
/// If the operating system fails.
pub fn recover(path: &Path) -> Result<Standing, OwnershipError> {
    let found = standing(path)?;
    if found != Standing::Unfinished {
        return Ok(found);
    }
    let site = Site::of(path)?;
    if let RecordReading::Found { record, .. } = site.record()? {
        site.finish(&record)?;
    }
    standing(path)
}

/// A path split into its parent and its last name, with the names we use beside it.
struct Site {
    path: PathBuf,
    parent: PathBuf,
    name: OsString,
}

impl Site {
    fn of(path: &Path) -> Result<Self, OwnershipError> {
        let no_name = || OwnershipError::NoName {
            path: path.to_path_buf(),
        };
        let name = path.file_name().ok_or_else(no_name)?.to_owned();
        let parent = path.parent().filter(|parent| *parent != Path::new(""));
        Ok(Self {
            path: path.to_path_buf(),
            parent: parent.unwrap_or(Path::new(".")).to_path_buf(),
            name,
        })
    }

    fn beside(&self, suffix: impl AsRef<OsStr>) -> PathBuf {
        with_suffix(&self.object(), suffix)
    }

    /// The object without a trailing slash, which would make the kernel follow a link.
    fn object(&self) -> PathBuf {
        self.parent.join(&self.name)
    }

    fn sidecar(&self) -> PathBuf {
        self.beside(SIDECAR_SUFFIX)
    }

    /// The name under which the object is made before it gets its own.
    fn staged_object(&self, record: &OwnerRecord) -> PathBuf {
        self.beside(format!(".sqlitmus-{}", record.nonce))
    }

    /// The name under which a new text of the sidecar is made.
    fn staged_record(&self, record: &OwnerRecord) -> PathBuf {
        self.beside(format!(".sqlitmus-{}.owner", record.nonce))
    }

    fn metadata(&self) -> Result<Option<Metadata>, OwnershipError> {
        let object = self.object();
        metadata(&object).map_err(failed("look at", &object))
    }

    fn record(&self) -> Result<RecordReading, OwnershipError> {
        let sidecar = self.sidecar();
        OwnerRecord::read(&sidecar).map_err(failed("read", &sidecar))
    }

    fn replace_record(&self, record: &OwnerRecord) -> Result<(), OwnershipError> {
        let sidecar = self.sidecar();
        record
            .replace(&sidecar, &self.staged_record(record))
            .map_err(failed("write", &sidecar))?;
        self.flush();
        Ok(())
    }

    fn not_ours(&self, reason: String) -> OwnershipError {
        OwnershipError::NotOurs {
            path: self.path.clone(),
            reason,
        }
    }

    /// Makes names survive a loss of power. Some filesystems cannot flush a directory; a lost name
    /// is then recovered like one lost to a crash.
    fn flush(&self) {
        let _ = File::open(&self.parent).and_then(|parent| parent.sync_all());
    }

    /// SQLite's files beside an object; only regular files, and only beside a file.
    fn companions_of(&self, object: &Metadata) -> Vec<PathBuf> {
        if !object.is_file() {
            return Vec::new();
        }
        let paths = DATABASE_COMPANIONS.map(|suffix| self.beside(suffix));
        let is_file = |path: &PathBuf| {
            let metadata = std::fs::symlink_metadata(path);
            metadata.is_ok_and(|metadata| metadata.is_file())
        };
        paths.into_iter().filter(is_file).collect()
    }

    /// Makes the directory under its random name, records its identity and gives it its own name.
    fn publish(&self, record: &mut OwnerRecord) -> Result<(), OwnershipError> {
        let staged = self.staged_object(record);
        std::fs::create_dir(&staged).map_err(failed("create", &staged))?;
        let found = metadata(&staged).map_err(failed("look at", &staged))?;
        record.identity = found.as_ref().and_then(Identity::of);
        record.state = RecordState::Ready;
        self.replace_record(record)?;
        let object = self.object();
        match rename_to_free_name(&staged, &object) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Err(self.not_ours("it appeared while ours was being made".to_owned()))
            }
            done => done.map_err(failed("create", &object)),
        }
    }

    /// Removes what the record speaks of, under whichever of our names it is, and the record last.
    /// A complete object under its own name (a record in state `Ready`) is left, with its record.
    fn finish(&self, record: &OwnerRecord) -> Result<TreeSize, OwnershipError> {
        let mut size = TreeSize::default();
        // The random name makes it ours, and before it gets its own name it is always empty.
        let staged = self.staged_object(record);
        if let Some(found) = metadata(&staged).map_err(failed("look at", &staged))? {
            let removed = if found.is_dir() {
                std::fs::remove_dir(&staged)
            } else {
                std::fs::remove_file(&staged)
            };
            removed.map_err(failed("remove", &staged))?;
        }
        if let Some(object) = self.metadata()?
            && is_recorded(record, &object)
        {
            if record.state == RecordState::Ready {
                return Ok(size);
            }
            size += self.remove_object(record, &object)?;
            self.flush();
        }
        for path in [self.staged_record(record), self.sidecar()] {
            match std::fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(failed("remove", &path)(error));
                }
                _ => {}
            }
        }
        self.flush();
        Ok(size)
    }

    fn remove_object(
        &self,
        record: &OwnerRecord,
        object: &Metadata,
    ) -> Result<TreeSize, OwnershipError> {
        let path = self.object();
        if object.is_dir() {
            return tree_removal::remove_directory(&path, |opened| is_recorded(record, opened))?
                .ok_or_else(|| self.not_ours("it was replaced a moment ago".to_owned()));
        }
        let mut size = TreeSize::default();
        // Companions first: as long as they exist, so does the database that makes them ours.
        for companion in self.companions_of(object) {
            size += tree_removal::remove_file(&companion)?;
        }
        size += tree_removal::remove_file(&path)?;
        Ok(size)
    }
}

fn failed<'path>(
    action: &'static str,
    path: &'path Path,
) -> impl Fn(io::Error) -> OwnershipError + 'path {
    move |source| OwnershipError::Io {
        action,
        path: path.to_path_buf(),
        source,
    }
}

fn foreign(reason: &str) -> Standing {
    Standing::Foreign {
        reason: reason.to_owned(),
    }
}

fn effective_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Metadata of the path itself, not of what a link leads to; `None` if nothing is there.
fn metadata(path: &Path) -> io::Result<Option<Metadata>> {
    match std::fs::symlink_metadata(path) {
        Ok(metadata) => Ok(Some(metadata)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn is_recorded(record: &OwnerRecord, object: &Metadata) -> bool {
    match (&record.identity, Identity::of(object)) {
        (Some(recorded), Some(found)) => recorded.is_same_object(&found),
        _ => false,
    }
}

#[cfg(test)]
#[path = "ownership_tests.rs"]
mod tests;
