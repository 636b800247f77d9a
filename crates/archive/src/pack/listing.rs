//! What there is to pack: directories are walked, nothing is read yet. Names are relative to the
//! directory that was named, and sorted, so that SQLite's index of names is written from left to right;
//! symbolic links come last.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, statat};

use super::{PackSettings, Skipped};
use crate::directory::Directory;
use crate::entry::Kind;
use crate::error::ArchiveError;
use crate::watch::Watch;

/// Something to pack.
#[derive(Debug)]
pub(super) struct Listed {
    pub(super) name: Box<str>,
    pub(super) kind: Kind,
    pub(super) mode: u32,
    pub(super) mtime: i64,
    pub(super) size: u64,
    /// Which of the directories that were named it is in.
    pub(super) root: usize,
}

/// All that is to be packed, and what is left out.
#[derive(Debug, Default)]
pub(super) struct Listing {
    pub(super) entries: Vec<Listed>,
    pub(super) skipped: Vec<Skipped>,
}

/// Walks the directories. `own` are device and inode of files that are never packed: the archive itself.
pub(super) fn list(
    roots: &[&Path],
    settings: &PackSettings,
    own: &[(u64, u64)],
    watch: &Watch,
) -> Result<Listing, ArchiveError> {
    let mut walk = Walk {
        settings,
        own,
        listing: Listing::default(),
    };
    for (root, path) in roots.iter().enumerate() {
        let mut directory = Directory::open(path).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotADirectory => ArchiveError::BadSetting {
                what: path.display().to_string(),
                reason: "it is not a directory".to_owned(),
            },
            std::io::ErrorKind::NotFound => ArchiveError::BadSetting {
                what: path.display().to_string(),
                reason: "there is no such directory".to_owned(),
            },
            _ => ArchiveError::io("open", path)(error),
        })?;
        let mut pending = vec![String::new()];
        while let Some(name) = pending.pop() {
            watch.check()?;
            if let Err(error) = walk.list_one(&mut directory, root, path, &name, &mut pending) {
                walk.skip_or_fail(error)?;
            }
        }
    }
    let mut listing = walk.listing;
    listing
        .entries
        .sort_unstable_by(|one, other| one.name.cmp(&other.name).then(one.root.cmp(&other.root)));
    if settings.selection.is_partial() {
        drop_empty_directories(&mut listing.entries, settings);
    }
    merge_directories(&mut listing.entries, roots)?;
    // `sqlite3 -Ax` gives the time of a link to what it points at, and stops if that is not there yet. The
    // sort is stable.
    listing
        .entries
        .sort_by_key(|entry| entry.kind == Kind::Symlink);
    Ok(listing)
}

struct Walk<'a> {
    settings: &'a PackSettings,
    own: &'a [(u64, u64)],
    listing: Listing,
}

impl Walk<'_> {
    fn list_one(
        &mut self,
        directory: &mut Directory,
        root: usize,
        root_path: &Path,
        name: &str,
        pending: &mut Vec<String>,
    ) -> Result<(), ArchiveError> {
        let path = root_path.join(name);
        let failed = |error: rustix::io::Errno| ArchiveError::io("list", &path)(error.into());
        let opened = directory
            .at(name)
            .map_err(ArchiveError::io("open", &path))?;
        for entry in Dir::read_from(opened).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let child = entry.file_name().to_bytes();
            if child == b"." || child == b".." {
                continue;
            }
            if let Err(error) = self.note(opened, entry.file_name(), root, (name, &path), pending) {
                self.skip_or_fail(error)?;
            }
        }
        Ok(())
    }

    fn note(
        &mut self,
        opened: std::os::fd::BorrowedFd<'_>,
        child: &std::ffi::CStr,
        root: usize,
        parent: (&str, &Path),
        pending: &mut Vec<String>,
    ) -> Result<(), ArchiveError> {
        let (parent, parent_path) = parent;
        let path = parent_path.join(OsStr::from_bytes(child.to_bytes()));
        let name_bytes = Path::new(parent).join(OsStr::from_bytes(child.to_bytes()));
        let metadata = statat(opened, child, AtFlags::SYMLINK_NOFOLLOW)
            .map_err(|error| ArchiveError::io("look at", &path)(error.into()))?;
        let (kind, what) = kind_of(FileType::from_raw_mode(metadata.st_mode));
        let is_directory = kind == Kind::Directory;
        let enters = is_directory && self.settings.selection.enters(&name_bytes);
        let takes = self.settings.selection.takes(&name_bytes, is_directory);
        if !enters && !takes || self.own.contains(&(metadata.st_dev, metadata.st_ino)) {
            return Ok(());
        }
        let Some(name) = name_bytes.to_str().map(str::to_owned) else {
            return Err(ArchiveError::NotUtf8 { path });
        };
        if kind == Kind::Other {
            return Err(ArchiveError::Unsupported { path, what });
        }
        if enters {
            pending.push(name.clone());
        }
        self.listing.entries.push(Listed {
            name: name.into_boxed_str(),
            kind,
            mode: metadata.st_mode,
            mtime: metadata.st_mtime,
            size: if kind == Kind::File {
                u64::try_from(metadata.st_size).unwrap_or(0)
            } else {
                0
            },
            root,
        });
        Ok(())
    }

    fn skip_or_fail(&mut self, error: ArchiveError) -> Result<(), ArchiveError> {
        if !self.settings.may_skip(&error) {
            return Err(error);
        }
        self.listing.skipped.push(Skipped::of(&error));
        Ok(())
    }
}

fn kind_of(file_type: FileType) -> (Kind, &'static str) {
    match file_type {
        FileType::RegularFile => (Kind::File, "a file"),
        FileType::Directory => (Kind::Directory, "a directory"),
        FileType::Symlink => (Kind::Symlink, "a link"),
        FileType::Fifo => (Kind::Other, "a named pipe"),
        FileType::Socket => (Kind::Other, "a socket"),
        FileType::CharacterDevice | FileType::BlockDevice => (Kind::Other, "a device"),
        FileType::Unknown => (Kind::Other, "of an unknown kind"),
    }
}

/// Of the directories that were only entered, those stay which hold something that was taken.
fn drop_empty_directories(entries: &mut Vec<Listed>, settings: &PackSettings) {
    let mut needed = std::collections::HashSet::new();
    for entry in entries.iter() {
        let is_taken = entry.kind != Kind::Directory
            || settings.selection.takes(Path::new(&*entry.name), true);
        let mut name = if is_taken { &*entry.name } else { "" };
        while let Some((parent, _)) = name.rsplit_once('/') {
            if !needed.insert(parent.to_owned()) {
                break;
            }
            name = parent;
        }
    }
    entries.retain(|entry| {
        entry.kind != Kind::Directory
            || needed.contains(&*entry.name)
            || settings.selection.takes(Path::new(&*entry.name), true)
    });
}

/// A directory may come from several of those that were named; anything else may not.
fn merge_directories(entries: &mut Vec<Listed>, roots: &[&Path]) -> Result<(), ArchiveError> {
    let clash = entries.windows(2).find(|pair| {
        pair[0].name == pair[1].name
            && !(pair[0].kind == Kind::Directory && pair[1].kind == Kind::Directory)
    });
    if let Some(pair) = clash {
        let at = |entry: &Listed| {
            let path: PathBuf = roots[entry.root].join(&*entry.name);
            path.display().to_string()
        };
        return Err(ArchiveError::Twice {
            name: pair[0].name.to_string(),
            first: at(&pair[0]),
            second: at(&pair[1]),
        });
    }
    entries.dedup_by(|later, kept| later.name == kept.name);
    Ok(())
}
