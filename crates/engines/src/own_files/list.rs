//! Lists of somebody's files: which they are and how long, kept in a file of ours; and their content
//! as what stores are filled with. The content is read anew each time: it may be larger than memory.

use std::ffi::OsStr;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;

use super::{damaged, not_found};
use crate::engine::{Content, EngineError};

/// The first bytes of a list.
const HEAD: &[u8] = b"sqlitmus list of files 1";

/// One file of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedFile {
    /// Path relative to the top.
    pub path: PathBuf,
    /// Bytes of content.
    pub bytes: u32,
}

/// Files below one directory. The first has the key 1.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileList {
    root: PathBuf,
    files: Vec<ListedFile>,
}

impl FileList {
    /// Files by their paths relative to `root`, which is absolute.
    #[must_use]
    pub fn new(root: &Path, files: Vec<ListedFile>) -> Self {
        let root = root.to_owned();
        Self { root, files }
    }

    /// The directory that they are below.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The files, in the order of their keys.
    #[must_use]
    pub fn files(&self) -> &[ListedFile] {
        &self.files
    }

    /// Number of files.
    #[must_use]
    pub fn len(&self) -> usize {
        self.files.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Where the file of a key is.
    #[must_use]
    pub fn full_path(&self, key: u64) -> Option<PathBuf> {
        Some(self.root.join(&self.file(key)?.path))
    }

    pub(super) fn full_paths(&self) -> impl Iterator<Item = PathBuf> + '_ {
        self.files.iter().map(|file| self.root.join(&file.path))
    }

    pub(super) fn relative_paths(&self) -> impl Iterator<Item = PathBuf> + '_ {
        self.files.iter().map(|file| file.path.clone())
    }

    fn file(&self, key: u64) -> Option<&ListedFile> {
        let index = usize::try_from(key).ok()?.checked_sub(1)?;
        self.files.get(index)
    }

    /// The list as it is kept, which also tells it from every other.
    #[must_use]
    pub fn as_bytes(&self) -> Vec<u8> {
        let mut text = HEAD.to_vec();
        text.push(0);
        text.extend_from_slice(self.root.as_os_str().as_bytes());
        text.push(0);
        for file in &self.files {
            text.extend_from_slice(file.bytes.to_string().as_bytes());
            text.push(0);
            text.extend_from_slice(file.path.as_os_str().as_bytes());
            text.push(0);
        }
        text
    }

    /// Writes the list over the file at a path of ours.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), EngineError> {
        std::fs::write(path, self.as_bytes()).map_err(EngineError::io("write", path))
    }

    /// Reads a list.
    ///
    /// # Errors
    /// There is none, or it is something else.
    pub fn read(path: &Path) -> Result<Self, EngineError> {
        let text = match std::fs::read(path) {
            Ok(text) => text,
            Err(error) if not_found(&error) => return Err(EngineError::NoStore(path.to_owned())),
            Err(error) => return Err(EngineError::io("read", path)(error)),
        };
        let foreign = || damaged(path, "it is no list of files");
        let text = text.strip_suffix(&[0]).ok_or_else(foreign)?;
        let mut parts = text.split(|byte| *byte == 0);
        if parts.next() != Some(HEAD) {
            return Err(foreign());
        }
        let as_path = |bytes: &[u8]| PathBuf::from(OsStr::from_bytes(bytes));
        let root = as_path(parts.next().ok_or_else(foreign)?);
        let mut files = Vec::new();
        while let Some(bytes) = parts.next() {
            let bytes = std::str::from_utf8(bytes).ok();
            let bytes = bytes.and_then(|bytes| bytes.parse().ok());
            files.push(ListedFile {
                bytes: bytes.ok_or_else(foreign)?,
                path: as_path(parts.next().ok_or_else(foreign)?),
            });
        }
        Ok(Self { root, files })
    }
}

/// A file that is not as it was listed. Inside of the [`io::Error`] that a content is refused with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedFile {
    /// The file.
    pub path: PathBuf,
    /// Its size in bytes when it was listed.
    pub sampled_bytes: u32,
    /// Whether there is none any more.
    pub is_gone: bool,
}

impl std::fmt::Display for ChangedFile {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let path = self.path.display();
        if self.is_gone {
            return write!(formatter, "{path} has gone since it was sampled");
        }
        let bytes = self.sampled_bytes;
        write!(
            formatter,
            "{path} has changed: it had {bytes} bytes when it was sampled"
        )
    }
}

impl std::error::Error for ChangedFile {}

/// The content of listed files. One that is longer or shorter than listed has changed, which is an
/// error: what was sampled is not there any more.
#[derive(Debug, Clone, Default)]
pub struct FileContent(pub Arc<FileList>);

impl Content for FileContent {
    fn count(&self) -> u64 {
        self.0.len() as u64
    }

    fn fill(&self, key: u64, buffer: &mut Vec<u8>) -> io::Result<()> {
        let missing = || io::Error::from(io::ErrorKind::NotFound);
        let listed = self.0.file(key).ok_or_else(missing)?;
        let path = self.0.full_path(key).ok_or_else(missing)?;
        let named = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => io::Error::other(ChangedFile {
                path: path.clone(),
                sampled_bytes: listed.bytes,
                is_gone: true,
            }),
            kind => io::Error::new(kind, format!("{}: {error}", path.display())),
        };
        let mut file = open_quietly(&path).map_err(named)?;
        buffer.clear();
        let wanted = u64::from(listed.bytes);
        // One byte more than listed shows a file that has grown.
        file.by_ref()
            .take(wanted + 1)
            .read_to_end(buffer)
            .map_err(named)?;
        if buffer.len() as u64 == wanted {
            return Ok(());
        }
        Err(io::Error::other(ChangedFile {
            path,
            sampled_bytes: listed.bytes,
            is_gone: false,
        }))
    }

    fn files(&self) -> Option<&FileList> {
        Some(&self.0)
    }
}

/// Opens for reading alone; the time of the last access stays as it is where the system allows that, no
/// link is followed in the last place, and nothing is waited for.
fn open_quietly(path: &Path) -> io::Result<std::fs::File> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    #[cfg(target_os = "linux")]
    match open(path, flags | OFlags::NOATIME, Mode::empty()) {
        // Only the owner may.
        Err(Errno::PERM) => {}
        answer => return Ok(answer.map(std::fs::File::from)?),
    }
    let opened: Result<_, Errno> = open(path, flags, Mode::empty());
    Ok(opened.map(std::fs::File::from)?)
}
