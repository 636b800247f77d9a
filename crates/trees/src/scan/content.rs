//! Reading files of a tree that were seen before: for reading alone, without leaving the tree, and
//! without waiting at what has become a pipe meanwhile.

use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use rustix::fs::{AtFlags, FileType, OFlags, fstat, statat};
use rustix::io::Errno;
use sqlitmus_core::tree_scan::{FileAt, Oddities, OddityKind};

use crate::walk::listing::open_beneath;
use crate::walk::{FolderStamp, Tree};

const FOR_READING: OFlags = OFlags::RDONLY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK)
    .union(OFlags::CLOEXEC);

/// A path of the tree's bytes.
pub(super) fn path_of(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(bytes))
}

/// When a folder was changed last; `None` if it is not there any more.
pub(super) fn folder_stamp(tree: &Tree, path: &[u8]) -> Option<FolderStamp> {
    let path: &[u8] = if path.is_empty() { b"." } else { path };
    let stat = statat(tree.folder(), path, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    (FileType::from_raw_mode(stat.st_mode) == FileType::Directory).then(|| FolderStamp::from(&stat))
}

/// Opens a file that was seen in the tree; what is in the way is noted, and `None`.
pub(super) fn open(tree: &Tree, file: &FileAt, oddities: &mut Oddities) -> Option<File> {
    let mut note = |kind, reason: &str| oddities.note(kind, || file.path.clone(), reason);
    let path = file.path.as_os_str().as_bytes();
    let opened = open_beneath(tree.folder(), path, FOR_READING)
        .and_then(|descriptor| Ok((fstat(&descriptor)?, descriptor)));
    match opened {
        Ok((stat, descriptor)) => {
            let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
            if is_file && u64::try_from(stat.st_size) == Ok(file.bytes) {
                return Some(File::from(descriptor));
            }
            note(OddityKind::ChangedFile, "");
        }
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => note(OddityKind::Vanished, ""),
        Err(error) => note(
            OddityKind::UnreadableFile,
            &std::io::Error::from(error).to_string(),
        ),
    }
    None
}

/// Reads a piece of a file into the buffer, and answers with it; what is in the way is noted, and
/// `None`.
pub(super) fn read_piece<'b>(
    opened: &File,
    file: &FileAt,
    start: u64,
    bytes: u64,
    buffer: &'b mut Vec<u8>,
    oddities: &mut Oddities,
) -> Option<&'b [u8]> {
    // Callers ask for pieces of at most some hundred kilobytes.
    buffer.resize(usize::try_from(bytes).unwrap_or(0), 0);
    match opened.read_exact_at(buffer, start) {
        Ok(()) => Some(buffer),
        Err(error) => {
            let kind = match error.kind() {
                std::io::ErrorKind::UnexpectedEof => OddityKind::ChangedFile,
                _ => OddityKind::UnreadableFile,
            };
            oddities.note(kind, || file.path.clone(), &error.to_string());
            None
        }
    }
}
