//! How an archive gets its name only when it is complete: it is made under a temporary name beside it,
//! synced, and renamed. Also how the temporary file of a killed run is known as ours and removed.
//!
//! A temporary file is `.ARCHIVE.sqlitmus-NONCE-INODE`: it says itself which file it is, so that a copy
//! of it, or anything else under such a name, is not ours. (It is made with inode 0 in its name, and is
//! empty as long as it has that.) The process that writes it holds a lock on it (flock), which the system takes
//! away when the process ends, however it ends. So a file of that form which is a regular file of this
//! user, has that inode and one name, and is not locked, is left over, and the next run removes it.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{
    AtFlags, CWD, FlockOperation, Mode, OFlags, RenameFlags, flock, openat, renameat_with,
};
use rustix::io::Errno;

use crate::archive::unfinished_companion;
use crate::error::ArchiveError;

/// Longest part of the archive's name in the temporary one, which has some 50 bytes more; names have at
/// the most 255.
const MOST_NAME_BYTES: usize = 160;

/// A file under a temporary name; removed when dropped, unless it has been published.
pub(crate) struct Staged {
    /// Where it is to be.
    target: PathBuf,
    parent: PathBuf,
    temporary: PathBuf,
    /// Holds the lock.
    file: File,
    published: bool,
}

impl Staged {
    /// Makes an empty file for a target, after removing what killed runs for the same target left.
    pub(crate) fn create(target: &Path, replace: bool) -> Result<Self, ArchiveError> {
        let name = target.file_name().ok_or_else(|| ArchiveError::BadSetting {
            what: format!("archive {}", target.display()),
            reason: "it names no file".to_owned(),
        })?;
        let parent = match target.parent() {
            Some(parent) if parent != Path::new("") => parent.to_owned(),
            _ => PathBuf::from("."),
        };
        check_target(target, replace)?;
        remove_strays(&parent, name)?;
        let (temporary, file) = create_locked(&parent, name)?;
        let mut staged = Self {
            target: target.to_owned(),
            parent,
            temporary,
            file,
            published: false,
        };
        staged.name_inode(name)?;
        Ok(staged)
    }

    /// Where it is now.
    pub(crate) fn path(&self) -> &Path {
        &self.temporary
    }

    /// Device and inode: packing must not pack it.
    pub(crate) fn identity(&self) -> Result<(u64, u64), ArchiveError> {
        let metadata = self
            .file
            .metadata()
            .map_err(ArchiveError::io("look at", &self.temporary))?;
        Ok((metadata.dev(), metadata.ino()))
    }

    /// Waits until its bytes are on the device; says how long that took.
    pub(crate) fn sync(&self) -> Result<Duration, ArchiveError> {
        let begin = Instant::now();
        self.file
            .sync_all()
            .map_err(ArchiveError::io("sync", &self.temporary))?;
        Ok(begin.elapsed())
    }

    /// Makes the next reads come from the device. Best effort: a filesystem may not be able to.
    pub(crate) fn forget_cached(&self) {
        let _ = rustix::fs::fadvise(&self.file, 0, None, rustix::fs::Advice::DontNeed);
    }

    /// Gives it its name, and syncs the directory; says how long the latter took.
    pub(crate) fn publish(mut self, replace: bool) -> Result<Duration, ArchiveError> {
        check_target(&self.target, replace)?;
        if replace {
            std::fs::rename(&self.temporary, &self.target)
        } else {
            rename_to_free_name(&self.temporary, &self.target)
        }
        .map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => ArchiveError::Exists {
                path: self.target.clone(),
            },
            _ => ArchiveError::io("put in place", &self.target)(error),
        })?;
        self.published = true;
        let begin = Instant::now();
        // Some filesystems cannot sync a directory; what is lost then is the name, not the bytes.
        let _ = File::open(&self.parent).and_then(|parent| parent.sync_all());
        Ok(begin.elapsed())
    }

    /// Takes the inode into the name.
    fn name_inode(&mut self, name: &OsStr) -> Result<(), ArchiveError> {
        let (_, inode) = self.identity()?;
        let named = self.parent.join(temporary_name(name, nonce(), inode));
        rename_to_free_name(&self.temporary, &named).map_err(ArchiveError::io("create", &named))?;
        self.temporary = named;
        Ok(())
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        if !self.published {
            // Whatever failed before is the error to tell; the next run removes what stays.
            let _ = std::fs::remove_file(&self.temporary);
        }
    }
}

/// A new archive must not get a name beside which a journal or a log lies: SQLite would take that for the
/// new one's, and write its pages into it.
fn check_target(target: &Path, replace: bool) -> Result<(), ArchiveError> {
    if let Some(companion) = unfinished_companion(target) {
        return Err(ArchiveError::Unfinished {
            path: target.to_owned(),
            companion,
        });
    }
    match target.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(ArchiveError::io("look at", target)(error)),
        Ok(metadata) if replace && metadata.is_file() => Ok(()),
        Ok(_) if replace => Err(ArchiveError::BadSetting {
            what: format!("archive {}", target.display()),
            reason: "what is there is not a file, and is not replaced".to_owned(),
        }),
        Ok(_) => Err(ArchiveError::Exists {
            path: target.to_owned(),
        }),
    }
}

/// A new file with a lock on it.
fn create_locked(parent: &Path, name: &OsStr) -> Result<(PathBuf, File), ArchiveError> {
    loop {
        let path = parent.join(temporary_name(name, nonce(), 0));
        let file = File::options()
            .read(true)
            .write(true)
            .create_new(true)
            .open(&path)
            .map_err(ArchiveError::io("create", &path))?;
        flock(&file, FlockOperation::LockExclusive)
            .map_err(|error| ArchiveError::io("lock", &path)(error.into()))?;
        // Between these two calls another run may have taken it for a stray, and removed it.
        let metadata = file
            .metadata()
            .map_err(ArchiveError::io("look at", &path))?;
        if metadata.nlink() == 1 {
            return Ok((path, file));
        }
    }
}

/// Removes temporary files of this target that nobody writes any more.
fn remove_strays(parent: &Path, name: &OsStr) -> Result<(), ArchiveError> {
    let entries = std::fs::read_dir(parent).map_err(ArchiveError::io("list", parent))?;
    for entry in entries {
        let entry = entry.map_err(ArchiveError::io("list", parent))?;
        let Some(inode) = inode_of_temporary(&entry.file_name(), name) else {
            continue;
        };
        let path = entry.path();
        if is_stray(&path, inode) {
            std::fs::remove_file(&path).map_err(ArchiveError::io("remove", &path))?;
        }
    }
    Ok(())
}

/// Whether the file is ours and left over; the head of this file says how that is known.
fn is_stray(path: &Path, inode: u64) -> bool {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let Ok(file) = openat(CWD, path, flags, Mode::empty()).map(File::from) else {
        return false;
    };
    let Ok(metadata) = file.metadata() else {
        return false;
    };
    let is_its_own = if inode == 0 {
        metadata.len() == 0
    } else {
        metadata.ino() == inode
    };
    let is_ours = metadata.is_file()
        && metadata.nlink() == 1
        && metadata.uid() == rustix::process::geteuid().as_raw()
        && is_its_own;
    is_ours && flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok()
}

fn temporary_name(name: &OsStr, nonce: u64, inode: u64) -> OsString {
    let mut temporary = prefix(name);
    temporary.push(format!("{nonce:016x}-{inode:x}"));
    temporary
}

fn prefix(name: &OsStr) -> OsString {
    let bytes = name.as_bytes();
    let mut prefix = OsString::from(".");
    if bytes.len() <= MOST_NAME_BYTES {
        prefix.push(name);
    } else {
        // What is cut off is in the hash.
        prefix.push(OsStr::from_bytes(&bytes[..MOST_NAME_BYTES / 2]));
        prefix.push(&blake3::hash(bytes).to_hex()[..16]);
    }
    prefix.push(".sqlitmus-");
    prefix
}

/// The inode that a temporary file's name says, if it is a temporary name for this target.
fn inode_of_temporary(found: &OsStr, name: &OsStr) -> Option<u64> {
    let rest = found.as_bytes().strip_prefix(prefix(name).as_bytes())?;
    let (nonce, inode) = std::str::from_utf8(rest).ok()?.split_once('-')?;
    let is_hex = |text: &str| text.bytes().all(|byte| b"0123456789abcdef".contains(&byte));
    if nonce.len() != 16 || !is_hex(nonce) || !is_hex(inode) {
        return None;
    }
    u64::from_str_radix(inode, 16).ok()
}

/// The standard library's hash maps have keys of the system's randomness, new ones each time.
fn nonce() -> u64 {
    RandomState::new().hash_one(std::process::id())
}

/// Renames a file; fails if something has that name.
fn rename_to_free_name(from: &Path, to: &Path) -> io::Result<()> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // Filesystems that do not know the flag (NFS, some FUSE): a second name is taken only if it is free.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
            rustix::fs::linkat(CWD, from, CWD, to, AtFlags::empty())?;
            std::fs::remove_file(from)
        }
        done => Ok(done?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).expect("readable");
        entries
            .map(|entry| {
                entry
                    .expect("entry")
                    .file_name()
                    .to_string_lossy()
                    .into_owned()
            })
            .collect()
    }

    #[test]
    fn a_file_gets_its_name_only_when_published_and_goes_when_dropped() {
        let folder = tempfile::tempdir().expect("temporary directory");
        let target = folder.path().join("a.sqlar");
        let staged = Staged::create(&target, false).expect("created");
        std::fs::write(staged.path(), "content").expect("written");
        assert!(!target.exists());
        staged.publish(false).expect("published");
        assert_eq!(names(folder.path()), ["a.sqlar"]);
        assert!(matches!(
            Staged::create(&target, false),
            Err(ArchiveError::Exists { .. })
        ));
        drop(Staged::create(&target, true).expect("created"));
        assert_eq!(std::fs::read(&target).expect("read"), b"content");
        assert_eq!(names(folder.path()), ["a.sqlar"]);
    }

    #[test]
    fn strays_are_removed_and_what_only_looks_like_one_is_not() {
        let folder = tempfile::tempdir().expect("temporary directory");
        let at = |name: &OsStr| folder.path().join(name);
        let name = OsStr::new("a.sqlar");
        let target = at(name);
        // As a kill leaves them: without and with the inode.
        std::fs::write(at(&temporary_name(name, 1, 0)), "").expect("written");
        let stray = at(OsStr::new("stray"));
        std::fs::write(&stray, "half").expect("written");
        let inode = stray.metadata().expect("metadata").ino();
        std::fs::rename(&stray, at(&temporary_name(name, 2, inode))).expect("renamed");
        // Foreign: a copy, another target's, another form, a directory, a live one.
        let mut foreign = vec![
            temporary_name(name, 3, inode + 1_000_000),
            temporary_name(name, 3, 0),
            temporary_name(OsStr::new("b.sqlar"), 4, 0),
            OsString::from(".a.sqlar.sqlitmus-0"),
        ];
        for file in &foreign {
            std::fs::write(at(file), "precious").expect("written");
        }
        let directory = temporary_name(name, 5, 0);
        std::fs::create_dir(at(&directory)).expect("created");
        foreign.push(directory);
        let live = Staged::create(&target, false).expect("created");
        let other = Staged::create(&target, false).expect("created");
        assert!(live.path().exists(), "locked");
        foreign.push(live.path().file_name().expect("name").to_owned());
        foreign.push(other.path().file_name().expect("name").to_owned());
        let mut left = names(folder.path());
        let mut expected: Vec<_> = foreign
            .iter()
            .map(|name| name.to_string_lossy().into_owned())
            .collect();
        left.sort();
        expected.sort();
        assert_eq!(left, expected);
        live.publish(false).expect("published");
        assert!(
            matches!(other.publish(false), Err(ArchiveError::Exists { .. })),
            "the first has it"
        );
    }

    #[test]
    fn a_journal_at_the_target_is_refused() {
        let folder = tempfile::tempdir().expect("temporary directory");
        let target = folder.path().join("a.sqlar");
        std::fs::write(folder.path().join("a.sqlar-journal"), "hot").expect("written");
        let refused = Staged::create(&target, true);
        assert!(matches!(refused, Err(ArchiveError::Unfinished { .. })));
    }

    #[test]
    fn long_names_have_temporary_names_too() {
        let long = OsString::from("n".repeat(255));
        let temporary = temporary_name(&long, u64::MAX, u64::MAX);
        assert!(temporary.len() <= 255);
        assert_eq!(inode_of_temporary(&temporary, &long), Some(u64::MAX));
    }
}
