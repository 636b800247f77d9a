//! How much disk a store takes: bytes as they appear, and blocks as they are allocated.
//!
//! Some file systems allocate blocks only when data is written back: whoever wants the final
//! figure synchronises the file system first. What a store consists of is left to its engine
//! ([`Engine::companions`](crate::Engine::companions)).

use std::collections::HashSet;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use sqlitmus_core::run::Footprint;

use crate::engine::EngineError;

/// Unit of `st_blocks`, whatever the file system's own block size (POSIX leaves it open; Linux and
/// macOS use this).
const BLOCK_BYTES: u64 = 512;

/// The footprint of a file or a directory with all that is in it, and of its companions;
/// `content_bytes` is how much content the caller has stored there. What does not exist takes no
/// space; a file with several names counts once; symbolic links are counted, not followed. The
/// allocated bytes are what `du` prints: blocks of files and of directories.
///
/// # Errors
/// Something exists but cannot be looked at.
pub fn measure(
    path: &Path,
    companions: &[PathBuf],
    content_bytes: u64,
) -> Result<Footprint, EngineError> {
    let mut footprint = Footprint {
        content_bytes,
        apparent_bytes: 0,
        allocated_bytes: 0,
        files: 0,
        directories: 0,
    };
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
        if metadata.is_dir() {
            footprint.directories += 1;
            footprint.allocated_bytes += metadata.blocks() * BLOCK_BYTES;
            for entry in fs::read_dir(&path).map_err(EngineError::io("list", &path))? {
                waiting.push(entry.map_err(EngineError::io("list", &path))?.path());
            }
        } else if metadata.nlink() == 1 || seen.insert((metadata.dev(), metadata.ino())) {
            footprint.files += 1;
            footprint.apparent_bytes += metadata.len();
            footprint.allocated_bytes += metadata.blocks() * BLOCK_BYTES;
        }
    }
    Ok(footprint)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allocated(path: &Path) -> u64 {
        fs::symlink_metadata(path).expect("there").blocks() * BLOCK_BYTES
    }

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
        // What is not written back yet may have no blocks, and then get them while we look.
        rustix::fs::sync();

        let companions = [companion.clone(), missing];
        let footprint = measure(&store, &companions, 10_100).expect("counted");
        let link_bytes = place.path().as_os_str().len() as u64;
        assert_eq!(footprint.content_bytes, 10_100);
        assert_eq!(footprint.apparent_bytes, 10_100 + link_bytes);
        assert_eq!(footprint.files, 3);
        assert_eq!(footprint.directories, 3);
        let inside = ["", "00", "00/01", "00/01/one", "loop"].map(|name| store.join(name));
        let expected = inside.iter().map(|path| allocated(path)).sum::<u64>();
        assert_eq!(footprint.allocated_bytes, expected + allocated(&companion));
    }

    #[test]
    fn what_is_missing_takes_no_space() {
        let place = tempfile::tempdir().expect("a scratch directory");
        let footprint = measure(&place.path().join("none"), &[], 0).expect("counted");
        assert_eq!(footprint.files + footprint.directories, 0);
        assert_eq!(footprint.allocated_bytes + footprint.apparent_bytes, 0);
    }
}
