//! Marks: a file in the store's directory, locked for as long as a session that writes lives. One
//! that nobody has locked was left behind by a process that was killed, and says that there may be
//! files which no row names. Removing those is [`super::store`]'s business.

use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock, fsync};
use rustix::io::Errno;

use crate::engine::EngineError;
use crate::files::open_directory;

/// Begins the name of a mark.
pub(super) const PREFIX: &str = "writer-";

/// The mark of a live session.
pub(super) struct Mark {
    path: PathBuf,
    /// Holds the lock.
    _file: File,
    /// Part of the names of this session's files.
    pub(super) tag: u32,
}

impl Mark {
    /// Marks a store. With `synchronises` the mark is on the device before anything else is.
    pub(super) fn make(store: &Path, synchronises: bool) -> Result<Self, EngineError> {
        loop {
            // The standard library's source of random numbers for hash maps.
            let tag = RandomState::new().hash_one(store) as u32;
            let path = store.join(format!("{PREFIX}{tag:08x}"));
            let made = OpenOptions::new().write(true).create_new(true).open(&path);
            let file = match made {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                made => made.map_err(EngineError::io("create", &path))?,
            };
            flock(&file, FlockOperation::LockExclusive)
                .map_err(|errno| EngineError::io("lock", &path)(errno.into()))?;
            // Between the two somebody may have taken it for a dead one's, and removed it.
            let status = file.metadata().map_err(EngineError::io("look at", &path))?;
            if status.nlink() == 0 {
                continue;
            }
            if synchronises {
                open_directory(store)
                    .and_then(fsync)
                    .map_err(|errno| EngineError::io("synchronise", store)(errno.into()))?;
            }
            return Ok(Self {
                path,
                _file: file,
                tag,
            });
        }
    }

    /// Removes the mark: nothing of the session is left behind.
    pub(super) fn remove(self) {
        // One that stays costs whoever opens the store next a look at the folder.
        let _ = fs::remove_file(&self.path);
    }
}

/// Marks that nobody holds, locked now.
pub(super) fn of_the_dead(store: &Path) -> Result<Vec<(PathBuf, File)>, EngineError> {
    let mut dead = Vec::new();
    for entry in store.read_dir().map_err(EngineError::io("list", store))? {
        let entry = entry.map_err(EngineError::io("list", store))?;
        let name = entry.file_name();
        if !name.to_string_lossy().starts_with(PREFIX) {
            continue;
        }
        let path = entry.path();
        let file = match File::open(&path) {
            Ok(file) => file,
            // Its session has just ended.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(EngineError::io("open", &path)(error)),
        };
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => dead.push((path, file)),
            Err(Errno::WOULDBLOCK) => {}
            Err(errno) => return Err(EngineError::io("lock", &path)(errno.into())),
        }
    }
    Ok(dead)
}
