//! How much disk a store takes: bytes as they appear, blocks as they are allocated, and the
//! directories' own blocks.
//!
//! Some file systems allocate blocks only when data is written back: whoever wants the final
//! figure synchronises the file system first. What a store consists of is left to its engine
//! ([`Engine::companions`](crate::Engine::companions)).

use std::collections::HashSet;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::engine::EngineError;

/// Unit of `st_blocks`, whatever the file system's own block size (POSIX leaves it open; Linux and
/// macOS use this).
const BLOCK_BYTES: u64 = 512;

/// Disk space of a store.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Footprint {
    /// Lengths of all files added up, in bytes.
    pub apparent_bytes: u64,
    /// Blocks allocated to files, in bytes.
    pub allocated_bytes: u64,
    /// Blocks allocated to directories, in bytes; not part of `allocated_bytes`.
    pub directory_bytes: u64,
    /// Number of files and of whatever else is not a directory.
    pub files: u64,
    /// Number of directories.
    pub directories: u64,
}

impl Footprint {
    /// The footprint of a file or a directory with all that is in it, and of its companions. What
    /// does not exist takes no space; a file with several names counts once; symbolic links are
    /// counted, not followed.
    ///
    /// # Errors
    /// Something exists but cannot be looked at.
    pub fn of(path: &Path, companions: &[PathBuf]) -> Result<Self, EngineError> {
        let mut footprint = Self::default();
        let mut seen = HashSet::new();
        let mut waiting = vec![path.to_owned()];
        waiting.extend_from_slice(companions);
        while let Some(path) = waiting.pop() {
            let metadata = match fs::symlink_metadata(&path) {
                Ok(metadata) => metadata,
                // A journal may go away while we look.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(EngineError::io("look at", &path)(error)),
            };
            footprint.add(&metadata, &mut seen);
            if metadata.is_dir() {
                for entry in fs::read_dir(&path).map_err(EngineError::io("list", &path))? {
                    waiting.push(entry.map_err(EngineError::io("list", &path))?.path());
                }
            }
        }
        Ok(footprint)
    }

    /// All blocks, those of files and of directories, in bytes: what `du` prints.
    #[must_use]
    pub fn total_allocated_bytes(&self) -> u64 {
        self.allocated_bytes + self.directory_bytes
    }

    fn add(&mut self, metadata: &Metadata, seen: &mut HashSet<(u64, u64)>) {
        let allocated = metadata.blocks() * BLOCK_BYTES;
        if metadata.is_dir() {
            self.directories += 1;
            self.directory_bytes += allocated;
        } else if metadata.nlink() == 1 || seen.insert((metadata.dev(), metadata.ino())) {
            self.files += 1;
            self.apparent_bytes += metadata.len();
            self.allocated_bytes += allocated;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_files_directories_and_companions() {
        let place = tempfile::tempdir().expect("a scratch directory");
        let store = place.path().join("store");
        fs::create_dir_all(store.join("00/01")).expect("created");
        fs::write(store.join("00/01/one"), [1; 10_000]).expect("written");
        fs::hard_link(store.join("00/01/one"), store.join("two")).expect("linked");
        std::os::unix::fs::symlink(place.path(), store.join("loop")).expect("linked");
        let companion = place.path().join("store-journal");
        fs::write(&companion, [1; 100]).expect("written");
        let missing = place.path().join("store-wal");

        let footprint = Footprint::of(&store, &[companion, missing]).expect("counted");
        let link_bytes = place.path().as_os_str().len() as u64;
        assert_eq!(footprint.apparent_bytes, 10_100 + link_bytes);
        assert_eq!(footprint.files, 3);
        assert_eq!(footprint.directories, 3);
        assert_eq!(
            footprint.total_allocated_bytes(),
            footprint.allocated_bytes + footprint.directory_bytes
        );
    }

    #[test]
    fn what_is_missing_takes_no_space() {
        let place = tempfile::tempdir().expect("a scratch directory");
        let footprint = Footprint::of(&place.path().join("none"), &[]).expect("counted");
        assert_eq!(footprint, Footprint::default());
    }
}
