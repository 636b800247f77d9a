//! Loopback filesystems: an image file of ours is formatted, mounted, used, unmounted and removed,
//! so that a filesystem can be measured that the machine's disks do not have.
//!
//! ```text
//! .sqlitmus/loopback/NAME/image   the filesystem (none for tmpfs)
//! .sqlitmus/loopback/NAME/mount   where it is mounted
//! .sqlitmus/loopback/NAME.sqlitmus-owner
//! ```
//!
//! Each is a directory that `ownership` knows as ours, in the scratch directory of a place. Making
//! one takes that scratch directory's lock, which one process has at a time: what is found there
//! by the next holder is a leftover of a process that has ended, and [`remove_leftovers`] takes it
//! away, mount and loop device first. It is dropped in the same order, also when a thread panics.
//!
//! What filesystems there are and how they are written down is `specification`'s business, the
//! programs and the mount table are `mounting`'s; what is measured is left to the callers.

mod mounting;
mod specification;
#[cfg(test)]
mod tests;
#[cfg_attr(not(target_os = "linux"), path = "loopback/no_volatile_device.rs")]
pub mod volatile_device;

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use super::ownership::{self, OwnershipError, Standing};
use super::scratch::{Scratch, ScratchError, ScratchLock};
use super::scratch_cleaning::owned_bases;

pub use specification::{
    Filesystem, LoopbackSpecification, SpecificationError, parse_specifications,
};

const IMAGE: &str = "image";
const MOUNT: &str = "mount";

/// What the sidecar calls it.
const WHAT: &str = "loopback filesystem";

/// Why there is no loopback filesystem.
#[derive(Debug, thiserror::Error)]
pub enum LoopbackError {
    /// Something that mounting takes is not there.
    #[error("cannot make {what}: {missing}")]
    Unavailable {
        /// What was wanted: `an xfs filesystem`.
        what: String,
        /// What is missing.
        missing: String,
        /// How to get it.
        hint: String,
    },
    /// A program that formats or mounts failed.
    #[error("{program} failed for {}: {message}", .path.display())]
    Program {
        /// The program, with its options.
        program: String,
        /// What it was to work on.
        path: PathBuf,
        /// What it said, in one line.
        message: String,
    },
    /// It is still mounted or attached, and nothing of it was removed.
    #[error("{} is still in use: {reason}", .path.display())]
    InUse {
        /// The mount point or the image.
        path: PathBuf,
        /// By what.
        reason: String,
    },
    /// The scratch directory is not usable.
    #[error(transparent)]
    Scratch(#[from] ScratchError),
    /// The directory of the image could not be made or removed.
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

impl LoopbackError {
    /// What helps, in one line.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::Unavailable { hint, .. } => hint.clone(),
            Self::Program { program, .. } => {
                format!("see what the kernel says: dmesg | tail; and the options: man {program}")
            }
            Self::InUse { path, .. } => format!(
                "end what uses it (fuser -vm {}), then: sqlitmus clean",
                path.display()
            ),
            Self::Scratch(error) => error.hint().unwrap_or_default(),
            Self::Ownership(_) | Self::Io { .. } => String::new(),
        }
    }

    /// Whether the machine gave out, rather than lacking something or being asked for what it
    /// cannot do.
    #[must_use]
    pub fn is_environment(&self) -> bool {
        !matches!(self, Self::Unavailable { .. } | Self::Scratch(_))
    }
}

fn failed<'path>(
    action: &'static str,
    path: &'path Path,
) -> impl Fn(io::Error) -> LoopbackError + 'path {
    move |source| LoopbackError::Io {
        action,
        path: path.to_path_buf(),
        source,
    }
}

/// Makes sure that filesystems can be made and mounted here, before anything is done: root, the
/// loop device, and the programs.
///
/// # Errors
/// [`LoopbackError::Unavailable`], with the first thing that is missing and how to get it.
pub fn require(specifications: &[LoopbackSpecification]) -> Result<(), LoopbackError> {
    specifications.iter().try_for_each(mounting::require)
}

/// A filesystem of ours. Dropping it unmounts and removes it, as far as that goes;
/// [`Loopback::remove`] also says what went wrong.
#[derive(Debug)]
pub struct Loopback {
    specification: LoopbackSpecification,
    /// The directory that is ours.
    folder: PathBuf,
    /// The file that is formatted, if it has one; it may lie elsewhere.
    image: Option<PathBuf>,
    image_bytes: u64,
    removed: bool,
}

impl Loopback {
    /// Makes an image of so many bytes (sparse: it takes what is written to it), formats it and
    /// mounts it. `name` is its name in the scratch directory, and must be free; the lock is the
    /// proof that nobody else works there.
    ///
    /// # Errors
    /// What is missing, a program's complaint, or an error of the system; nothing is left then.
    pub fn create(
        scratch: &Scratch,
        lock: &ScratchLock,
        name: &str,
        specification: &LoopbackSpecification,
        image_bytes: u64,
    ) -> Result<Self, LoopbackError> {
        Self::prepare(scratch, lock, name, specification, image_bytes)?.started(None)
    }

    /// As [`Loopback::create`], on an existing file of that many bytes, which is formatted and not
    /// removed with the filesystem: for images that are served by somebody else.
    ///
    /// # Errors
    /// As [`Loopback::create`].
    pub fn create_on(
        scratch: &Scratch,
        lock: &ScratchLock,
        name: &str,
        specification: &LoopbackSpecification,
        image: &Path,
        image_bytes: u64,
    ) -> Result<Self, LoopbackError> {
        Self::prepare(scratch, lock, name, specification, image_bytes)?.started(Some(image))
    }

    fn prepare(
        scratch: &Scratch,
        _lock: &ScratchLock,
        name: &str,
        specification: &LoopbackSpecification,
        image_bytes: u64,
    ) -> Result<Self, LoopbackError> {
        mounting::require(specification)?;
        let folder = scratch.open_loopback_directory()?.join(name);
        ownership::create_directory(&folder, WHAT)?;
        Ok(Self {
            specification: specification.clone(),
            folder,
            image: None,
            image_bytes: image_bytes.max(specification.minimum_bytes()),
            removed: false,
        })
    }

    /// Formats and mounts. If that fails, dropping `self` removes what there is.
    fn started(mut self, image: Option<&Path>) -> Result<Self, LoopbackError> {
        let point = self.point();
        std::fs::create_dir(&point).map_err(failed("create", &point))?;
        if self.specification.has_image() {
            let image = match image {
                Some(image) => image.to_path_buf(),
                None => {
                    let image = self.folder.join(IMAGE);
                    File::create_new(&image)
                        .and_then(|file| file.set_len(self.image_bytes))
                        .map_err(failed("create", &image))?;
                    image
                }
            };
            mounting::format(&self.specification, &image)?;
            self.image = Some(image);
        }
        self.mount()?;
        self.specification.adapt_root(&point)?;
        Ok(self)
    }

    /// Where it is mounted: the directory to work in.
    #[must_use]
    pub fn point(&self) -> PathBuf {
        self.folder.join(MOUNT)
    }

    /// What it is.
    #[must_use]
    pub fn specification(&self) -> &LoopbackSpecification {
        &self.specification
    }

    /// Mounts it again after [`Loopback::unmount`]; the filesystem replays its journal.
    ///
    /// # Errors
    /// What `mount` said.
    pub fn mount(&self) -> Result<(), LoopbackError> {
        let size = self.image_bytes;
        mounting::mount(
            &self.specification,
            self.image.as_deref(),
            size,
            &self.point(),
        )
    }

    /// From the next mounting on it lies in another file, which has the same content.
    pub fn set_image(&mut self, image: &Path) {
        self.image = Some(image.to_path_buf());
    }

    /// Unmounts it; the loop device goes with it. What is on it stays. (A tmpfs forgets.)
    ///
    /// # Errors
    /// Somebody uses it.
    pub fn unmount(&self) -> Result<(), LoopbackError> {
        mounting::unmount(&self.point())
    }

    /// Unmounts and removes it.
    ///
    /// # Errors
    /// Somebody uses it, or it cannot be removed; a later start tries again.
    pub fn remove(mut self) -> Result<(), LoopbackError> {
        self.removed = true;
        remove_folder(&self.folder)
    }
}

impl Drop for Loopback {
    fn drop(&mut self) {
        if !self.removed {
            // What is left is found by the next start.
            let _ = remove_folder(&self.folder);
        }
    }
}

/// What was done with one leftover.
#[derive(Debug)]
pub struct Leftover {
    /// Its directory.
    pub path: PathBuf,
    /// Why it is still there, if it is.
    pub kept: Option<String>,
}

/// Unmounts and removes what processes that have ended left in a scratch directory: only what is
/// ours, and nothing outside of it. The lock is the proof that those processes have ended.
///
/// # Errors
/// The scratch directory cannot be listed. What fails for one leftover is in the list.
pub fn remove_leftovers(
    scratch: &Scratch,
    _lock: &ScratchLock,
) -> Result<Vec<Leftover>, LoopbackError> {
    let leftovers = owned_bases(&scratch.loopback_directory())?
        .into_iter()
        .map(|path| {
            let kept = remove_folder(&path).err().map(|error| error.to_string());
            Leftover { path, kept }
        });
    Ok(leftovers.collect())
}

/// Unmounts and removes a directory of ours.
fn remove_folder(folder: &Path) -> Result<(), LoopbackError> {
    release_folder(folder)?;
    ownership::remove_owned(folder)?;
    Ok(())
}

/// Unmounts what is mounted in a directory of ours, and detaches loop devices of its image; nothing
/// to do if there is none. What is not ours is refused before anything is unmounted.
pub(super) fn release_folder(folder: &Path) -> Result<(), LoopbackError> {
    if let Standing::Foreign { reason } = ownership::standing(folder)? {
        return Err(OwnershipError::NotOurs {
            path: folder.to_path_buf(),
            reason,
        }
        .into());
    }
    mounting::unmount(&folder.join(MOUNT))?;
    mounting::detach(&folder.join(IMAGE))
}
