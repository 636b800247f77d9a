//! The scratch directory `.sqlitmus/` in a place: stores that are reused between runs, run files,
//! and the lock that keeps two measuring runs apart.
//!
//! ```text
//! .sqlitmus/.sqlitmus-owner   who made the directory (inside, so that the place holds one name)
//! .sqlitmus/.gitignore        keeps all of it out of version control
//! .sqlitmus/lock              held by the run that measures
//! .sqlitmus/stores/NAME       each with its own owner file beside it
//! .sqlitmus/runs/NAME         each with its own owner file beside it
//! .sqlitmus/loopback/NAME     likewise; made when the first filesystem is, see `loopback`
//! ```
//!
//! What stores and run files are called and contain is left to the orchestrator, which makes them
//! through `ownership`; removing them is left to `scratch_cleaning`.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, OFlags};
use rustix::io::Errno;

use super::owner_record::{Identity, OwnerRecord, RecordReading, RecordState};
use super::ownership::OwnershipError;

/// The name of the scratch directory in a place.
pub const SCRATCH_NAME: &str = ".sqlitmus";

pub(super) const MARKER: &str = ".sqlitmus-owner";
pub(super) const LOCK: &str = "lock";
pub(super) const STORES: &str = "stores";
pub(super) const RUNS: &str = "runs";
pub(super) const LOOPBACK: &str = "loopback";
pub(super) const IGNORE: &str = ".gitignore";
pub(super) const IGNORE_TEXT: &str = "# Made by sqlitmus; `sqlitmus clean` removes it.\n*\n";
/// Tells backup programs that stores can be made again: <https://bford.info/cachedir/>
pub(super) const CACHE_TAG: &str = "CACHEDIR.TAG";
pub(super) const CACHE_TAG_TEXT: &str =
    "Signature: 8a477f597d28d172789f06886806bc55\n# Made by sqlitmus.\n";

/// Why the scratch directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ScratchError {
    /// Something else has the name, or a part of the layout.
    #[error("{} is not sqlitmus's scratch directory: {reason}", .path.display())]
    Foreign {
        /// What is in the way.
        path: PathBuf,
        /// How that was found out.
        reason: String,
    },
    /// Another process measures in or cleans this scratch directory.
    #[error("{} is in use by another sqlitmus ({holder})", .path.display())]
    Busy {
        /// The scratch directory.
        path: PathBuf,
        /// The other process, as it described itself.
        holder: String,
    },
    /// Something in the directory could not be created or removed.
    #[error(transparent)]
    Ownership(#[from] OwnershipError),
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

impl ScratchError {
    /// What helps, in one line for the reader of the error; `None` if the error says it all.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Foreign { path, .. } => Some(format!(
                "move {} away, or choose another place with --place DIR",
                path.display()
            )),
            Self::Busy { .. } => {
                Some("wait until it is done, or choose another place with --place DIR".to_owned())
            }
            Self::Ownership(_) | Self::Io { .. } => None,
        }
    }
}

/// The scratch directory of one place.
#[derive(Clone, Debug)]
pub struct Scratch {
    root: PathBuf,
}

/// The right to measure in or clean a scratch directory; given back when dropped.
#[derive(Debug)]
pub struct ScratchLock {
    _file: File,
}

impl Scratch {
    /// Opens the scratch directory of `place`, and creates it or its missing parts.
    ///
    /// # Errors
    /// [`ScratchError::Foreign`] if `.sqlitmus` or a folder in it is a symbolic link or not ours.
    pub fn open(place: &Path) -> Result<Self, ScratchError> {
        let scratch = Self {
            root: place.join(SCRATCH_NAME),
        };
        let is_new = match std::fs::create_dir(&scratch.root) {
            Ok(()) => true,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => false,
            Err(error) => return Err(failed("create", &scratch.root)(error)),
        };
        match scratch.marker()? {
            RecordReading::Found { record, user } => scratch.require_ours(&record, user)?,
            RecordReading::NotOurs(reason) => return Err(foreign(&scratch.root, &reason)),
            RecordReading::Missing => scratch.mark(is_new)?,
        }
        for folder in [scratch.stores_directory(), scratch.runs_directory()] {
            require_directory(&folder)?;
        }
        write_if_missing(&scratch.root.join(IGNORE), IGNORE_TEXT)?;
        write_if_missing(&scratch.stores_directory().join(CACHE_TAG), CACHE_TAG_TEXT)?;
        Ok(scratch)
    }

    /// The scratch directory of `place` if there is one; creates nothing.
    ///
    /// # Errors
    /// As [`Scratch::open`].
    pub fn find(place: &Path) -> Result<Option<Self>, ScratchError> {
        let root = place.join(SCRATCH_NAME);
        if let Err(error) = std::fs::symlink_metadata(&root) {
            return match error.kind() {
                io::ErrorKind::NotFound => Ok(None),
                _ => Err(failed("look at", &root)(error)),
            };
        }
        let scratch = Self { root };
        match scratch.marker()? {
            RecordReading::Found { record, user } => scratch.require_ours(&record, user)?,
            RecordReading::NotOurs(reason) => return Err(foreign(&scratch.root, &reason)),
            // As a process leaves it that was killed right after creating it: nothing is in it, and
            // opening will take it into use.
            RecordReading::Missing if list(&scratch.root)?.is_empty() => return Ok(None),
            RecordReading::Missing => {
                return Err(foreign(&scratch.root, "it has no owner file"));
            }
        }
        Ok(Some(scratch))
    }

    /// The scratch directory itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Where stores lie.
    pub fn stores_directory(&self) -> PathBuf {
        self.root.join(STORES)
    }

    /// Where run files lie.
    pub fn runs_directory(&self) -> PathBuf {
        self.root.join(RUNS)
    }

    /// Where filesystems of ours lie, with their mount points.
    pub fn loopback_directory(&self) -> PathBuf {
        self.root.join(LOOPBACK)
    }

    /// As [`Scratch::loopback_directory`], which is made if it is missing.
    ///
    /// # Errors
    /// [`ScratchError::Foreign`] if it is a symbolic link or no directory.
    pub fn open_loopback_directory(&self) -> Result<PathBuf, ScratchError> {
        let folder = self.loopback_directory();
        require_directory(&folder)?;
        Ok(folder)
    }

    /// Takes the right to measure here, at once or not at all. The kernel gives it back when this
    /// process ends, however it ends; workers do not inherit it.
    ///
    /// # Errors
    /// [`ScratchError::Busy`] if another process has it.
    pub fn lock(&self) -> Result<ScratchLock, ScratchError> {
        let path = self.root.join(LOCK);
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let mut file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .custom_flags(flags.bits() as i32)
            .open(&path)
            .map_err(failed("open", &path))?;
        let opened = file.metadata().map_err(failed("look at", &path))?;
        if !opened.is_file() {
            return Err(foreign(&path, "it is no regular file"));
        }
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Err(self.busy(&mut file)),
            Err(error) => return Err(failed("lock", &path)(error.into())),
        }
        // A cleaning process may have removed the file between our opening and locking it.
        let named = std::fs::symlink_metadata(&path);
        if !named.is_ok_and(|named| named.ino() == opened.ino()) {
            return Err(self.busy(&mut file));
        }
        let holder = format!("process {}\n", std::process::id());
        file.set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| file.write_all(holder.as_bytes()))
            .map_err(failed("write", &path))?;
        Ok(ScratchLock { _file: file })
    }

    fn busy(&self, lock: &mut File) -> ScratchError {
        let mut holder = String::new();
        // The text only helps the reader: a failure to read it must not hide that it is locked.
        let _ = lock.take(200).read_to_string(&mut holder);
        let holder = match holder.trim() {
            "" => "another process".to_owned(),
            known => known.to_owned(),
        };
        ScratchError::Busy {
            path: self.root.clone(),
            holder,
        }
    }

    /// Reads the marker, after making sure that the directory is one and not a link to one.
    pub(super) fn marker(&self) -> Result<RecordReading, ScratchError> {
        let metadata =
            std::fs::symlink_metadata(&self.root).map_err(failed("look at", &self.root))?;
        if metadata.is_symlink() {
            return Err(foreign(&self.root, "it is a symbolic link"));
        }
        if !metadata.is_dir() {
            return Err(foreign(&self.root, "it is not a directory"));
        }
        let marker = self.root.join(MARKER);
        OwnerRecord::read(&marker).map_err(failed("read", &marker))
    }

    fn require_ours(&self, record: &OwnerRecord, user: u32) -> Result<(), ScratchError> {
        let metadata =
            std::fs::symlink_metadata(&self.root).map_err(failed("look at", &self.root))?;
        let found = Identity::of(&metadata);
        let is_recorded = match (&record.identity, found) {
            (Some(recorded), Some(found)) => recorded.is_same_object(&found),
            _ => false,
        };
        if !is_recorded {
            let reason = "its owner file names another directory, as after copying one";
            return Err(foreign(&self.root, reason));
        }
        if user != metadata.uid() {
            return Err(foreign(&self.root, "its owner file is another user's"));
        }
        Ok(())
    }

    /// Marks the directory as ours. An empty one may be taken into use, since that harms nothing;
    /// it is remembered, and cleaning then leaves the empty directory itself.
    fn mark(&self, is_new: bool) -> Result<(), ScratchError> {
        let mut entries = std::fs::read_dir(&self.root).map_err(failed("list", &self.root))?;
        if entries.next().is_some() {
            return Err(foreign(&self.root, "it has no owner file and is not empty"));
        }
        let metadata =
            std::fs::symlink_metadata(&self.root).map_err(failed("look at", &self.root))?;
        let mut record = OwnerRecord::creating("scratch directory");
        record.state = RecordState::Ready;
        record.identity = Identity::of(&metadata);
        record.adopted = !is_new;
        let marker = self.root.join(MARKER);
        match record.write_new(&marker) {
            // Another process of ours was quicker: its marker is as good.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            done => done.map_err(failed("write", &marker)),
        }
    }
}

/// The paths in a folder, sorted.
pub(super) fn list(folder: &Path) -> Result<Vec<PathBuf>, ScratchError> {
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed("list", folder))? {
        paths.push(entry.map_err(failed("list", folder))?.path());
    }
    paths.sort();
    Ok(paths)
}

/// Whether a directory, and not a link to one, is at the path.
pub(super) fn is_real_directory(path: &Path) -> Result<bool, ScratchError> {
    match std::fs::symlink_metadata(path) {
        Ok(metadata) => Ok(metadata.is_dir()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(failed("look at", path)(error)),
    }
}

/// Creates a directory of the layout, or makes sure that what is there is a directory and no link.
fn require_directory(path: &Path) -> Result<(), ScratchError> {
    match std::fs::create_dir(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            return Err(failed("create", path)(error));
        }
        _ => {}
    }
    if is_real_directory(path)? {
        return Ok(());
    }
    Err(foreign(path, "it is not a directory"))
}

fn write_if_missing(path: &Path, text: &str) -> Result<(), ScratchError> {
    match File::create_new(path) {
        Ok(mut file) => file
            .write_all(text.as_bytes())
            .map_err(failed("write", path)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(failed("create", path)(error)),
    }
}

pub(super) fn foreign(path: &Path, reason: &str) -> ScratchError {
    ScratchError::Foreign {
        path: path.to_path_buf(),
        reason: reason.to_owned(),
    }
}

pub(super) fn failed<'path>(
    action: &'static str,
    path: &'path Path,
) -> impl Fn(io::Error) -> ScratchError + 'path {
    move |source| ScratchError::Io {
        action,
        path: path.to_path_buf(),
        source,
    }
}

#[cfg(test)]
#[path = "scratch_tests.rs"]
mod tests;
