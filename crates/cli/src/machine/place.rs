//! A place: a directory in which is measured, with the filesystem, the mount and the disk below it,
//! and the space that is left.
//!
//! Whether a place suits a measurement (a warning on tmpfs, say) is left to the verbs; what is
//! created in it, to `scratch`.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD};
use rustix::io::Errno;

use super::block_device::{self, BlockDevice};
use super::environment::{UNKNOWN, fact};
use super::kernel_files::KernelFiles;
use super::mounts;

/// Why a directory cannot be a place to measure in.
#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    /// There is nothing at the path, or a link in it leads nowhere.
    #[error("the place {} does not exist", .path.display())]
    Missing {
        /// The path as given.
        path: PathBuf,
    },
    /// The path is a file or something else that holds no files.
    #[error("the place {} is not a directory", .path.display())]
    NotADirectory {
        /// The path as given.
        path: PathBuf,
    },
    /// The filesystem is mounted read-only.
    #[error("the place {} lies on a read-only filesystem", .path.display())]
    ReadOnly {
        /// The canonical path.
        path: PathBuf,
    },
    /// This user may not create files there.
    #[error("no permission to write to the place {}", .path.display())]
    NotWritable {
        /// The canonical path.
        path: PathBuf,
    },
    /// Less space or fewer inodes are free than needed.
    #[error("the place {} is too small: {}", .path.display(), shortage(*.needed_bytes, .space, *.needed_inodes))]
    TooSmall {
        /// The canonical path.
        path: PathBuf,
        /// Bytes that are needed.
        needed_bytes: u64,
        /// Inodes that are needed: one for each file and directory.
        needed_inodes: u64,
        /// What is available.
        space: Space,
    },
    /// The operating system failed otherwise.
    #[error("cannot inspect the place {}", .path.display())]
    Io {
        /// The path as given.
        path: PathBuf,
        /// The operating system's answer.
        #[source]
        source: io::Error,
    },
}

impl PlaceError {
    /// What helps, in one line for the reader of the error.
    pub fn hint(&self) -> String {
        match self {
            Self::Missing { path } => format!("create it first: mkdir -p {}", path.display()),
            Self::NotADirectory { path } => {
                let parent = path.parent().filter(|parent| *parent != Path::new(""));
                let parent = parent.unwrap_or(Path::new("."));
                format!("name a directory, for example {}", parent.display())
            }
            Self::ReadOnly { .. } => "name a directory on a writable filesystem".to_owned(),
            Self::NotWritable { path } => format!(
                "name a directory of your own, or see who may write there: ls -ld {}",
                path.display()
            ),
            Self::TooSmall { path, .. } => format!(
                "free some space, choose another place or a smaller dataset; see: df -h {0}; df -i {0}",
                path.display()
            ),
            Self::Io { path, .. } => format!("see: ls -ld {}", path.display()),
        }
    }
}

/// Space that is left on a filesystem, for this user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// Bytes that may be written without the share that is reserved for root.
    pub available_bytes: u64,
    /// Files and directories that may be created; `None` on filesystems that set no limit (btrfs).
    pub available_inodes: Option<u64>,
}

/// How a filesystem keeps its files, as far as its type tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilesystemClass {
    /// On a device of this machine.
    Device,
    /// In memory: gone after a restart, and a flush does nothing.
    Memory,
    /// On another machine, or in another program's hands (FUSE), which decides what a flush means.
    Network,
    /// Layers of other filesystems, which are not visible from here (overlay).
    Layered,
}

/// A directory and what it lies on, at the moment it was inspected.
#[derive(Clone, Debug)]
pub struct Place {
    /// The directory's canonical path.
    pub path: PathBuf,
    /// The filesystem's type; `unknown` where the platform does not tell.
    pub filesystem: String,
    /// What is mounted: `/dev/vda`, `host:/export`, `tmpfs`; `unknown` where it is not told.
    pub mount_source: PathBuf,
    /// Where it is mounted.
    pub mount_point: PathBuf,
    /// The mount's and the filesystem's options.
    pub mount_options: Vec<String>,
    /// The disk below, if there is one and it is visible.
    pub device: Option<BlockDevice>,
    /// The space that was left.
    pub space: Space,
}

impl Place {
    /// Inspects a directory in which files are to be created; creates nothing itself.
    ///
    /// # Errors
    /// If it is missing, no directory, or not to be written by this user; each with a hint.
    pub fn inspect(directory: &Path) -> Result<Self, PlaceError> {
        let failed = |source: io::Error| match source.kind() {
            io::ErrorKind::NotFound => PlaceError::Missing {
                path: directory.to_path_buf(),
            },
            io::ErrorKind::NotADirectory => PlaceError::NotADirectory {
                path: directory.to_path_buf(),
            },
            _ => PlaceError::Io {
                path: directory.to_path_buf(),
                source,
            },
        };
        let path = std::fs::canonicalize(directory).map_err(failed)?;
        let metadata = std::fs::metadata(&path).map_err(failed)?;
        if !metadata.is_dir() {
            return Err(PlaceError::NotADirectory {
                path: directory.to_path_buf(),
            });
        }
        let files = KernelFiles::of_this_machine();
        let numbers = block_device::numbers(metadata.dev());
        let table = files.bytes("/proc/self/mountinfo").unwrap_or_default();
        let mounts = mounts::parse(&table);
        let mount = mounts::mount_of(&mounts, &path, numbers);
        if mount.is_some_and(mounts::Mount::is_read_only) {
            return Err(PlaceError::ReadOnly { path });
        }
        require_write_permission(&path)?;
        let space = space(&path)?;
        let mount_source = mount.map_or(PathBuf::from(UNKNOWN), |mount| mount.source.clone());
        Ok(Self {
            filesystem: mount.map_or(UNKNOWN.to_owned(), |mount| mount.filesystem.clone()),
            mount_point: mount.map_or(PathBuf::from(UNKNOWN), |mount| mount.mount_point.clone()),
            mount_options: mount.map(mounts::Mount::options).unwrap_or_default(),
            device: BlockDevice::find(&files, numbers)
                .or_else(|| device_of_source(&files, &mount_source)),
            mount_source,
            path,
            space,
        })
    }

    /// How the filesystem keeps its files.
    pub fn class(&self) -> FilesystemClass {
        class(&self.filesystem)
    }

    /// Whether files here are kept in memory only.
    pub fn is_tmpfs(&self) -> bool {
        self.class() == FilesystemClass::Memory
    }

    /// Makes sure that so many bytes and so many files and directories fit, by asking the
    /// filesystem anew.
    ///
    /// # Errors
    /// [`PlaceError::TooSmall`] with what is needed and what is available.
    pub fn require_space(&self, bytes: u64, inodes: u64) -> Result<(), PlaceError> {
        let space = space(&self.path)?;
        let inodes_suffice = space.available_inodes.is_none_or(|free| free >= inodes);
        if space.available_bytes >= bytes && inodes_suffice {
            return Ok(());
        }
        Err(PlaceError::TooSmall {
            path: self.path.clone(),
            needed_bytes: bytes,
            needed_inodes: inodes,
            space,
        })
    }

    /// The place in a few words: `ext4 on /dev/vda (virtual disk)`.
    pub fn describe(&self) -> String {
        let filesystem = &self.filesystem;
        let source = self.mount_source.display();
        match (self.class(), &self.device) {
            (FilesystemClass::Memory, _) => format!("{filesystem} (in memory)"),
            (FilesystemClass::Network, _) => format!("{filesystem} on {source} (network)"),
            (FilesystemClass::Layered, _) => format!("{filesystem} (the disk is not visible)"),
            (FilesystemClass::Device, Some(device)) => {
                format!("{filesystem} on {source} ({})", device.describe())
            }
            (FilesystemClass::Device, None) if filesystem == UNKNOWN => {
                "unknown filesystem (unverified on this platform)".to_owned()
            }
            (FilesystemClass::Device, None) => format!("{filesystem} on {source} (unknown disk)"),
        }
    }

    /// The place as facts for a run file, in a fixed order; texts, `unknown` where nothing is known.
    pub fn facts(&self) -> Vec<(String, String)> {
        let device = self.device.as_ref();
        let known = |value: Option<String>| value.unwrap_or_else(|| UNKNOWN.to_owned());
        let facts = [
            (fact::PLACE_PATH, self.path.display().to_string()),
            (fact::PLACE_DESCRIPTION, self.describe()),
            (fact::FILESYSTEM, self.filesystem.clone()),
            (fact::MOUNT_SOURCE, self.mount_source.display().to_string()),
            (fact::MOUNT_POINT, self.mount_point.display().to_string()),
            (fact::MOUNT_OPTIONS, self.mount_options.join(",")),
            (
                fact::SPACE_AVAILABLE_BYTES,
                self.space.available_bytes.to_string(),
            ),
            (
                fact::SPACE_AVAILABLE_INODES,
                self.space
                    .available_inodes
                    .map_or("unlimited".to_owned(), |inodes| inodes.to_string()),
            ),
            (fact::DISK_KIND, known(device.map(BlockDevice::describe))),
            (
                fact::DISK_MODEL,
                known(device.and_then(|device| device.model.clone())),
            ),
            (
                fact::DISK_ROTATIONAL,
                known(
                    device
                        .and_then(|device| device.is_rotational)
                        .map(yes_or_no),
                ),
            ),
            (
                fact::DISK_READ_AHEAD_KIB,
                known(device.and_then(|device| Some(device.read_ahead_kib?.to_string()))),
            ),
            (
                fact::DISK_WRITE_CACHE,
                known(device.and_then(|device| device.write_cache.clone())),
            ),
            (
                fact::DISK_SCHEDULER,
                known(device.and_then(|device| device.scheduler.clone())),
            ),
        ];
        facts.map(|(name, value)| (name.to_owned(), value)).into()
    }
}

fn yes_or_no(value: bool) -> String {
    if value { "yes" } else { "no" }.to_owned()
}

/// How a filesystem of this type keeps its files.
fn class(filesystem: &str) -> FilesystemClass {
    const NETWORK: [&str; 15] = [
        "nfs",
        "nfs4",
        "cifs",
        "smb3",
        "smbfs",
        "9p",
        "virtiofs",
        "ceph",
        "afs",
        "lustre",
        "gfs2",
        "ocfs2",
        "glusterfs",
        "beegfs",
        "fuse",
    ];
    match filesystem {
        "tmpfs" | "ramfs" | "devtmpfs" => FilesystemClass::Memory,
        "overlay" | "aufs" | "ecryptfs" => FilesystemClass::Layered,
        // `fuseblk` is left out: it is FUSE on a device of this machine (ntfs-3g).
        name if NETWORK.contains(&name) || name.starts_with("fuse.") => FilesystemClass::Network,
        _ => FilesystemClass::Device,
    }
}

/// Asks with the effective user, who will create the files.
fn require_write_permission(path: &Path) -> Result<(), PlaceError> {
    let access = Access::WRITE_OK | Access::EXEC_OK;
    match rustix::fs::accessat(CWD, path, access, AtFlags::EACCESS) {
        Ok(()) => Ok(()),
        Err(Errno::ROFS) => Err(PlaceError::ReadOnly {
            path: path.to_path_buf(),
        }),
        // PERM is what an immutable directory answers, even to root.
        Err(Errno::ACCESS | Errno::PERM) => Err(PlaceError::NotWritable {
            path: path.to_path_buf(),
        }),
        Err(error) => Err(PlaceError::Io {
            path: path.to_path_buf(),
            source: error.into(),
        }),
    }
}

fn space(path: &Path) -> Result<Space, PlaceError> {
    let answer = rustix::fs::statvfs(path).map_err(|error| PlaceError::Io {
        path: path.to_path_buf(),
        source: error.into(),
    })?;
    Ok(Space {
        available_bytes: answer.f_bavail.saturating_mul(answer.f_frsize),
        available_inodes: (answer.f_files != 0).then_some(answer.f_favail),
    })
}

/// The device that a mount names as its source. btrfs gives files a device number of its own that
/// belongs to no disk; its source is one of its disks.
fn device_of_source(files: &KernelFiles, source: &Path) -> Option<BlockDevice> {
    use std::os::unix::fs::FileTypeExt;
    if !source.is_absolute() {
        return None;
    }
    let metadata = std::fs::metadata(source).ok()?;
    if !metadata.file_type().is_block_device() {
        return None;
    }
    BlockDevice::find(files, block_device::numbers(metadata.rdev()))
}

fn shortage(needed_bytes: u64, space: &Space, needed_inodes: u64) -> String {
    let mut missing = Vec::new();
    if needed_bytes > space.available_bytes {
        missing.push(format!(
            "{} needed, {} available",
            megabytes(needed_bytes.div_ceil(TENTH_OF_MEGABYTE)),
            megabytes(space.available_bytes / TENTH_OF_MEGABYTE)
        ));
    }
    if let Some(available) = space.available_inodes.filter(|&free| free < needed_inodes) {
        missing.push(format!(
            "{needed_inodes} files and directories (inodes) needed, {available} available"
        ));
    }
    missing.join("; ")
}

const TENTH_OF_MEGABYTE: u64 = 100_000;

/// What is needed is rounded up and what is available down before it comes here, so that a small
/// shortage never reads as enough.
fn megabytes(tenths: u64) -> String {
    format!("{}.{} MB", tenths / 10, tenths % 10)
}

#[cfg(test)]
#[path = "place_tests.rs"]
mod tests;
