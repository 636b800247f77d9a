//! Removing a directory tree, or counting what a removal would free, without ever leaving it: no
//! symbolic link is followed and no other filesystem mounted inside is entered.
//!
//! Whether a tree may be removed is left to `ownership`.

use std::ffi::{CStr, OsStr};
use std::io;
use std::ops::AddAssign;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

/// What a path takes, or what its removal freed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TreeSize {
    /// Everything that is no directory.
    pub files: u64,
    /// Directories, with the topmost.
    pub directories: u64,
    /// Allocated blocks in bytes, of what no other name refers to.
    pub allocated_bytes: u64,
}

impl AddAssign for TreeSize {
    fn add_assign(&mut self, other: Self) {
        self.files += other.files;
        self.directories += other.directories;
        self.allocated_bytes += other.allocated_bytes;
    }
}

impl TreeSize {
    fn add(&mut self, status: &Stat) {
        let is_directory = FileType::from_raw_mode(status.st_mode) == FileType::Directory;
        if is_directory {
            self.directories += 1;
        } else {
            self.files += 1;
        }
        if is_directory || status.st_nlink <= 1 {
            // Blocks of 512 bytes, whatever the filesystem's own are.
            let blocks = u64::try_from(status.st_blocks).unwrap_or(0);
            self.allocated_bytes += blocks * 512;
        }
    }
}

/// Why a tree was not removed, or not to the end.
#[derive(Debug, thiserror::Error)]
pub enum TreeError {
    /// Another filesystem is mounted inside the tree; nothing in it was touched.
    #[error("{} is a mount point, so what is in it is left alone", .path.display())]
    MountInside {
        /// The mount point.
        path: PathBuf,
    },
    /// The operating system failed.
    #[error("cannot remove {}", .path.display())]
    Io {
        /// What could not be opened, listed or removed.
        path: PathBuf,
        /// The operating system's answer.
        #[source]
        source: io::Error,
    },
}

fn failed(path: &Path, error: Errno) -> TreeError {
    TreeError::Io {
        path: path.to_path_buf(),
        source: error.into(),
    }
}

/// What is to happen to the entries of a tree.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Action {
    Count,
    Remove,
}

/// Counts a file or a tree.
///
/// # Errors
/// If something in it cannot be listed.
pub fn count(path: &Path) -> Result<TreeSize, TreeError> {
    let status = rustix::fs::lstat(path).map_err(|error| failed(path, error))?;
    let mut size = TreeSize::default();
    size.add(&status);
    if FileType::from_raw_mode(status.st_mode) == FileType::Directory {
        let folder = open_topmost(path)?;
        size += walk(folder.as_fd(), path, status.st_dev, Action::Count)?;
    }
    Ok(size)
}

/// Removes a file; a directory is refused by the operating system.
///
/// # Errors
/// If the operating system refuses.
pub fn remove_file(path: &Path) -> Result<TreeSize, TreeError> {
    let status = rustix::fs::lstat(path).map_err(|error| failed(path, error))?;
    let mut size = TreeSize::default();
    size.add(&status);
    rustix::fs::unlink(path).map_err(|error| failed(path, error))?;
    Ok(size)
}

/// Removes a directory and all that is in it, provided that `is_expected` accepts the directory
/// that was really opened; between a look at a name and its use another object can be put there.
/// `None` if it was not accepted.
///
/// # Errors
/// If something in it cannot be removed; what was removed before that stays removed.
pub fn remove_directory(
    path: &Path,
    is_expected: impl FnOnce(&std::fs::Metadata) -> bool,
) -> Result<Option<TreeSize>, TreeError> {
    let folder = std::fs::File::from(open_topmost(path)?);
    let io_failed = |source| TreeError::Io {
        path: path.to_path_buf(),
        source,
    };
    if !is_expected(&folder.metadata().map_err(io_failed)?) {
        return Ok(None);
    }
    let status = rustix::fs::fstat(&folder).map_err(|error| failed(path, error))?;
    let mut size = TreeSize::default();
    size.add(&status);
    size += walk(folder.as_fd(), path, status.st_dev, Action::Remove)?;
    rustix::fs::rmdir(path).map_err(|error| failed(path, error))?;
    Ok(Some(size))
}

const DIRECTORY: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

fn open_topmost(path: &Path) -> Result<OwnedFd, TreeError> {
    rustix::fs::openat(CWD, path, DIRECTORY, Mode::empty()).map_err(|error| failed(path, error))
}

/// Counts or removes the entries of an open directory, the topmost of which has `device`.
fn walk(
    folder: BorrowedFd<'_>,
    path: &Path,
    device: rustix::fs::Dev,
    action: Action,
) -> Result<TreeSize, TreeError> {
    let mut size = TreeSize::default();
    // A listing that is changed while it is read may leave entries out on some filesystems:
    // passes are repeated until one finds nothing.
    loop {
        let pass = walk_once(folder, path, device, action)?;
        size += pass;
        if action == Action::Count || pass == TreeSize::default() {
            return Ok(size);
        }
    }
}

fn walk_once(
    folder: BorrowedFd<'_>,
    path: &Path,
    device: rustix::fs::Dev,
    action: Action,
) -> Result<TreeSize, TreeError> {
    let mut size = TreeSize::default();
    let entries = Dir::read_from(folder).map_err(|error| failed(path, error))?;
    for entry in entries {
        let entry = entry.map_err(|error| failed(path, error))?;
        let name = entry.file_name();
        if name == c"." || name == c".." {
            continue;
        }
        let entry_path = path.join(OsStr::from_bytes(name.to_bytes()));
        let failed = |error| failed(&entry_path, error);
        let status = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).map_err(failed)?;
        let mut flags = AtFlags::empty();
        if FileType::from_raw_mode(status.st_mode) == FileType::Directory {
            let below = open_below(folder, name, device, &entry_path)?;
            size += walk(below.as_fd(), &entry_path, device, action)?;
            flags = AtFlags::REMOVEDIR;
        }
        if action == Action::Remove {
            rustix::fs::unlinkat(folder, name, flags).map_err(failed)?;
        }
        size.add(&status);
    }
    Ok(size)
}

/// Opens a directory inside the tree, but not through a link and not into another filesystem.
fn open_below(
    folder: BorrowedFd<'_>,
    name: &CStr,
    device: rustix::fs::Dev,
    path: &Path,
) -> Result<OwnedFd, TreeError> {
    let mount_inside = || TreeError::MountInside {
        path: path.to_path_buf(),
    };
    // Only the kernel can tell a folder of the same filesystem that is mounted here a second time.
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::ResolveFlags;
        let resolve = ResolveFlags::NO_XDEV | ResolveFlags::NO_SYMLINKS | ResolveFlags::BENEATH;
        match rustix::fs::openat2(folder, name, DIRECTORY, Mode::empty(), resolve) {
            Ok(below) => return Ok(below),
            Err(Errno::XDEV) => return Err(mount_inside()),
            // Before Linux 5.6, and in containers that do not let the call through.
            Err(Errno::NOSYS | Errno::PERM) => {}
            Err(error) => return Err(failed(path, error)),
        }
    }
    let below = rustix::fs::openat(folder, name, DIRECTORY, Mode::empty())
        .map_err(|error| failed(path, error))?;
    let status = rustix::fs::fstat(&below).map_err(|error| failed(path, error))?;
    if status.st_dev != device {
        return Err(mount_inside());
    }
    Ok(below)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn links_are_removed_and_never_followed() {
        let folder = tempfile::tempdir().expect("temporary directory");
        let foreign = folder.path().join("foreign");
        std::fs::create_dir(&foreign).expect("folder");
        std::fs::write(foreign.join("keep"), "keep").expect("write");
        let tree = folder.path().join("tree");
        std::fs::create_dir_all(tree.join("a/b")).expect("folders");
        std::fs::write(tree.join("a/b/file"), vec![1; 10_000]).expect("write");
        symlink(&foreign, tree.join("a/link")).expect("link");
        symlink(foreign.join("keep"), tree.join("link")).expect("link");
        symlink("nowhere", tree.join("dangling")).expect("link");

        let counted = count(&tree).expect("count");
        assert_eq!((counted.files, counted.directories), (4, 3));
        let removed = remove_directory(&tree, |_| true).expect("remove");
        assert_eq!(removed, Some(counted));
        assert!(!tree.exists());
        assert!(foreign.join("keep").exists());
    }

    #[test]
    fn a_link_as_the_topmost_name_is_refused() {
        let folder = tempfile::tempdir().expect("temporary directory");
        let real = folder.path().join("real");
        std::fs::create_dir(&real).expect("folder");
        std::fs::write(real.join("keep"), "").expect("write");
        let link = folder.path().join("link");
        symlink(&real, &link).expect("link");
        assert!(remove_directory(&link, |_| true).is_err());
        assert!(real.join("keep").exists());
    }

    #[test]
    fn a_directory_that_is_not_accepted_stays() {
        let folder = tempfile::tempdir().expect("temporary directory");
        std::fs::write(folder.path().join("keep"), "").expect("write");
        let answer = remove_directory(folder.path(), |_| false).expect("no failure");
        assert_eq!(answer, None);
        assert!(folder.path().join("keep").exists());
    }

    #[test]
    fn many_entries_go_in_full() {
        let folder = tempfile::tempdir().expect("temporary directory");
        let tree = folder.path().join("tree");
        std::fs::create_dir(&tree).expect("folder");
        for number in 0..3000 {
            std::fs::write(tree.join(format!("{number:06}")), "").expect("write");
        }
        let removed = remove_directory(&tree, |_| true).expect("remove");
        assert_eq!(removed.expect("accepted").files, 3000);
        assert!(!tree.exists());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_mount_inside_is_left_alone() {
        let foreign = tempfile::tempdir().expect("temporary directory");
        std::fs::write(foreign.path().join("keep"), "").expect("write");
        // A bind mount has the same device number as the tree around it.
        let bind = crate::machine::test_mount::TestMount::bind(foreign.path());
        let Some(mount) = bind else {
            return;
        };
        let removed = remove_directory(mount.folder(), |_| true);
        assert!(
            matches!(removed, Err(TreeError::MountInside { .. })),
            "{removed:?}"
        );
        assert!(foreign.path().join("keep").exists());
    }
}
