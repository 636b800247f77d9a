//! The database among the files it records. Its own size and time, and the time of the folder it lies
//! in, change with every write: a record of them would be out of date at once and cause the next write.

use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::entry::{Entry, EntryKind};
use crate::walk::Folder;

/// What SQLite adds to the name of a database for files of its own.
const SUFFIXES: [&[u8]; 4] = [b"", b"-journal", b"-wal", b"-shm"];

/// Where the database is.
#[derive(Debug, Default)]
pub(super) struct OwnFiles {
    /// Filesystem and inode of its folder; `None` if it is nowhere.
    folder: Option<(u64, u64)>,
    names: Vec<Vec<u8>>,
}

impl OwnFiles {
    pub(super) fn of(database: &Path) -> Self {
        // By its real path: what SQLite writes lies beside the file, not beside a link to it.
        let full = std::fs::canonicalize(database);
        let Ok((full, folder)) = full.and_then(|full| {
            let folder = full.parent().unwrap_or(Path::new("/")).metadata()?;
            Ok((full, folder))
        }) else {
            return Self::default();
        };
        let name = full.file_name().map(OsStrExt::as_bytes).unwrap_or_default();
        Self {
            folder: Some((folder.dev(), folder.ino())),
            names: SUFFIXES
                .iter()
                .map(|suffix| [name, suffix].concat())
                .collect(),
        }
    }

    /// Whether the database lies in this folder.
    pub(super) fn are_in(&self, folder: &Folder<'_>) -> bool {
        self.folder == Some((folder.device, folder.inode))
    }

    /// Whether it is one of them, in their folder.
    pub(super) fn are_called(&self, name: &[u8]) -> bool {
        self.names.iter().any(|own| own == name)
    }

    /// Whether the entry is the folder that the database lies in.
    pub(super) fn lie_below(&self, entry: &Entry<'_>) -> bool {
        entry.kind == EntryKind::Folder
            && entry
                .status
                .is_some_and(|status| self.folder == Some((status.device, status.inode)))
    }
}
