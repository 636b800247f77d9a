//! One packfile, opened: what its sessions share, and the permission to write, which one of them
//! has at a time.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::Means;
use super::catalog::Catalog;
use super::compacted_path;
use super::format::file_header;
use super::scan::scan;
use super::session::PackfileSession;
use super::write::{Batching, FrameWriter};
use crate::engine::{Content, EngineError, Session, Store};

/// Blobs between two reports of progress.
const PROGRESS_BLOBS: u64 = 256;

/// What the sessions of a store share.
#[derive(Debug)]
pub(super) struct Shared {
    pub path: PathBuf,
    pub means: Means,
    catalog: RwLock<Catalog>,
    /// Somebody has the permission to write.
    writing: AtomicBool,
    /// The file is locked against other stores. Changed only by whoever may write.
    locked: AtomicBool,
}

impl Shared {
    /// The catalog. Applying a batch cannot panic half-way, so a poisoned lock is no worse than
    /// another.
    pub(super) fn catalog(&self) -> RwLockReadGuard<'_, Catalog> {
        self.catalog.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The catalog, to be changed by whoever may write.
    pub(super) fn catalog_mut(&self) -> RwLockWriteGuard<'_, Catalog> {
        self.catalog.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The permission to write. Given back when it is dropped; unless it was [`Permit::keep`]t to the
/// end, what was written behind the last complete batch is cut off again.
#[derive(Debug)]
pub(super) struct Permit {
    shared: Arc<Shared>,
    /// The data file; only a compaction, which needs the permission, makes another.
    pub file: Arc<File>,
    end: u64,
    kept: bool,
}

impl Permit {
    /// # Errors
    /// Another session, or another store on the same file, is writing; or another store has
    /// written since this one was opened.
    pub(super) fn acquire(shared: &Arc<Shared>) -> Result<Self, EngineError> {
        if shared.writing.swap(true, Ordering::Acquire) {
            return Err(busy(&shared.path));
        }
        let (file, end) = {
            let catalog = shared.catalog();
            (Arc::clone(&catalog.file), catalog.end)
        };
        let mut permit = Self {
            shared: Arc::clone(shared),
            file,
            end,
            // Before the file is locked nothing may be cut off.
            kept: true,
        };
        if !shared.locked.load(Ordering::Relaxed) {
            permit.lock_out_others()?;
            shared.locked.store(true, Ordering::Relaxed);
        }
        permit.kept = false;
        Ok(permit)
    }

    /// What was written counts.
    pub(super) fn keep(mut self) {
        self.kept = true;
    }

    /// Locks the file, makes sure that it is what was scanned, and clears away what others have
    /// left behind.
    fn lock_out_others(&self) -> Result<(), EngineError> {
        let path = &self.shared.path;
        lock(&self.file, path)?;
        let ignored_bytes = self.shared.catalog().ignored_bytes;
        let changed = || -> io::Result<bool> {
            let ours = self.file.metadata()?;
            let named = fs::metadata(path)?;
            let same_file = (ours.dev(), ours.ino()) == (named.dev(), named.ino());
            Ok(!same_file || ours.len() != self.end + ignored_bytes)
        };
        if changed().map_err(EngineError::io("look at", path))? {
            let reason = io::Error::other("another store has changed it since it was opened");
            return Err(EngineError::io("write to", path)(reason));
        }
        if ignored_bytes > 0 {
            self.file
                .set_len(self.end)
                .map_err(EngineError::io("shorten", path))?;
        }
        match fs::remove_file(compacted_path(path)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(EngineError::io("remove", &compacted_path(path))(error))
            }
            _ => Ok(()),
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if !self.kept {
            // If it fails the bytes stay, and are ignored for want of a complete batch.
            let _ = self.file.set_len(self.end);
        }
        self.shared.writing.store(false, Ordering::Release);
    }
}

fn busy(path: &Path) -> EngineError {
    let reason = io::Error::new(io::ErrorKind::ResourceBusy, "another writer is at work");
    EngineError::io("write to", path)(reason)
}

/// Locks a file against other stores and processes until it is closed.
pub(super) fn lock(file: &File, path: &Path) -> Result<(), EngineError> {
    match file.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => Err(busy(path)),
        Err(TryLockError::Error(error)) => Err(EngineError::io("lock", path)(error)),
    }
}

/// Puts the names in a file's directory on the device.
pub(super) fn synchronise_parent(path: &Path) -> Result<(), EngineError> {
    let parent = match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    File::open(parent)
        .and_then(|directory| directory.sync_all())
        .map_err(EngineError::io("synchronise", parent))
}

/// Opens an existing file.
pub(super) fn open_file(path: &Path) -> Result<File, EngineError> {
    match OpenOptions::new().read(true).write(true).open(path) {
        Ok(file) => Ok(file),
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound
                    | io::ErrorKind::NotADirectory
                    | io::ErrorKind::IsADirectory
            ) =>
        {
            Err(EngineError::NoStore(path.to_owned()))
        }
        Err(error) => Err(EngineError::io("open", path)(error)),
    }
}

/// A packfile.
#[derive(Debug)]
pub(super) struct PackfileStore(Arc<Shared>);

impl PackfileStore {
    fn new(path: &Path, means: Means, catalog: Catalog) -> Self {
        Self(Arc::new(Shared {
            path: path.to_owned(),
            means,
            catalog: RwLock::new(catalog),
            writing: AtomicBool::new(false),
            locked: AtomicBool::new(false),
        }))
    }

    pub(super) fn create(path: &Path, means: Means) -> Result<Self, EngineError> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .open(path)
            .map_err(|error| match error.kind() {
                io::ErrorKind::AlreadyExists => EngineError::Exists(path.to_owned()),
                _ => EngineError::io("create", path)(error),
            })?;
        let written = file
            .write_all_at(&file_header(), 0)
            .map_err(EngineError::io("write", path))
            .and_then(|()| {
                if means.synchronises {
                    file.sync_all()
                        .map_err(EngineError::io("synchronise", path))?;
                    synchronise_parent(path)?;
                }
                Ok(())
            });
        if let Err(error) = written {
            // Half a header is worse than nothing; the failure itself is what is reported.
            let _ = fs::remove_file(path);
            return Err(error);
        }
        Ok(Self::new(path, means, Catalog::empty(file)))
    }

    pub(super) fn open(path: &Path, means: Means) -> Result<Self, EngineError> {
        let catalog = scan(open_file(path)?, path)?;
        Ok(Self::new(path, means, catalog))
    }
}

impl Store for PackfileStore {
    fn load(
        &self,
        content: &dyn Content,
        progress: &mut dyn FnMut(u64),
    ) -> Result<(), EngineError> {
        let Self(shared) = self;
        let path = &shared.path;
        let permit = Permit::acquire(shared)?;
        let mut writer = FrameWriter::new();
        {
            let catalog = shared.catalog();
            writer.start(Batching::EachFrame, catalog.end, catalog.batch);
        }
        let mut blob = Vec::new();
        for key in 1..=content.count() {
            content
                .fill(key, &mut blob)
                .map_err(EngineError::io("make the content of", path))?;
            writer
                .add(&permit.file, key, Some(&blob))
                .map_err(EngineError::io("write", path))?;
            if key % PROGRESS_BLOBS == 0 || key == content.count() {
                progress(key);
            }
        }
        writer
            .finish(&permit.file)
            .map_err(EngineError::io("write", path))?;
        shared.catalog_mut().absorb(&mut writer);
        permit.keep();
        Ok(())
    }

    fn session(&self) -> Result<Box<dyn Session>, EngineError> {
        Ok(Box::new(PackfileSession::new(&self.0)?))
    }
}
