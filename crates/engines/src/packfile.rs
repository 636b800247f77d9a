//! The `packfile` engine: all blobs in one append-only file, with an index in memory. It is the
//! fair competitor that comparisons of databases with files forget: no open and close for each
//! blob, no padding to blocks, and no database.
//!
//! # The file
//! Numbers are little-endian. The file begins with a header of 32 bytes (magic, version,
//! checksum) and goes on with *frames*. A frame holds some records of one batch:
//!
//! | part | bytes | what |
//! |---|---|---|
//! | magic | 8 | `PackFrm` and a NUL |
//! | checksum | 8 | XXH64 of all that follows, up to the payload |
//! | position | 8 | of this frame in the file |
//! | batch | 8 | number of its batch: 1, 2, 3 ... |
//! | payload bytes | 8 | length of the payload |
//! | records | 4 | number of records |
//! | flags | 4 | 1: the last frame of its batch |
//! | table | 24 each | key (8), XXH64 of the blob (8), its length (4), kind (4): 0 blob, 1 removed |
//! | payload | | the blobs, end to end |
//! | padding | 0 to 7 | zeros, to a multiple of 8 |
//!
//! Because a frame's table stands before its payload, opening reads the tables and skips the
//! blobs: one or two small reads a frame, and a load puts a mebibyte of blobs into each.
//!
//! # Batches and crashes
//! A batch is buffered and written frame by frame; it counts when the frame with flag 1 is there.
//! `commit` writes that frame, synchronises if asked, and only then shows the batch to readers: of
//! a batch that was cut off nothing is ever seen. Opening checks the header and table of every
//! frame, and the blobs of the last batch only: the ones before it were complete when it began.
//! What follows the last complete batch is ignored, and cut off before the next write. But if
//! frames of *later* batches follow what is broken, an acknowledged batch is damaged, and the
//! store is not opened. (After a loss of power that can happen with `sync = none`, which promises
//! no more than a crash of the process.)
//!
//! Checksums of blobs are not checked at each read, as files and, by default, SQLite have none to
//! check; [`verify`] checks them all.
//!
//! # Readers and writers
//! Sessions of one store share the index under a reader-writer lock, held for the look-up alone;
//! one of them writes at a time. The first `begin` locks the file against other stores and
//! processes until the store is closed. A second store opened on the same file to read sees what
//! was there when it was opened.
//!
//! # Space
//! An overwritten blob leaves its old bytes behind. When the dead bytes outweigh the living (and
//! a mebibyte), `settle` copies the living records to a new file, synchronises it and renames it
//! over the old one. That rewriting is part of what overwriting costs here.

mod access;
mod catalog;
mod checksum;
mod compaction;
mod format;
mod scan;
mod session;
mod store;
#[cfg(test)]
mod tests;
mod write;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use sqlitmus_core::case::Durability;
use sqlitmus_core::settings::{SettingKind, SettingSpecification, Settings};

use crate::engine::{Capabilities, Engine, EngineError, Store};
use store::PackfileStore;

pub use scan::{Verification, verify};

/// All blobs in one file.
#[derive(Debug, Clone, Copy)]
pub struct Packfile;

const SETTINGS: &[SettingSpecification] = &[
    SettingSpecification {
        name: "read",
        kind: SettingKind::Choice(&["pread", "mmap"]),
        default: "pread",
        stored: false,
        about: "copy each blob to a buffer with one system call, or consume it in the mapped file",
    },
    SettingSpecification {
        name: "sync",
        kind: SettingKind::Choice(&["none", "fdatasync"]),
        default: "none",
        stored: false,
        about: "what a commit waits for",
    },
];

/// How blobs are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reading {
    Pread,
    Mmap,
}

#[derive(Debug, Clone, Copy)]
struct Means {
    reading: Reading,
    /// Whether a commit waits for the device.
    synchronises: bool,
}

impl Means {
    fn from(settings: &Settings) -> Result<Self, EngineError> {
        let resolved = settings.resolve(Packfile.name(), SETTINGS)?;
        Ok(Self {
            reading: match resolved.get("read") {
                Some("mmap") => Reading::Mmap,
                _ => Reading::Pread,
            },
            synchronises: resolved.get("sync") == Some("fdatasync"),
        })
    }
}

impl Engine for Packfile {
    fn name(&self) -> &'static str {
        "packfile"
    }

    fn about(&self) -> &'static str {
        "all blobs in one append-only file, with an index in memory"
    }

    fn settings(&self) -> &'static [SettingSpecification] {
        SETTINGS
    }

    fn capabilities(&self, _settings: &Settings) -> Capabilities {
        Capabilities {
            keeps_content: true,
            persistent: true,
            writes: true,
        }
    }

    /// A commit has handed its batch to the operating system, which survives the process; with
    /// `fdatasync` the device has it too, with the file's new length (fdatasync(2) leaves out only
    /// what is not needed to read the data back), and the file's own name was synchronised when
    /// it was created.
    fn durability(&self, settings: &Settings) -> Durability {
        match Means::from(settings) {
            Ok(means) if means.synchronises => Durability::PowerLoss,
            Ok(_) => Durability::ProcessCrash,
            Err(_) => Durability::None,
        }
    }

    fn durability_settings(&self) -> Vec<&'static str> {
        vec!["sync"]
    }

    fn create(&self, path: &Path, settings: &Settings) -> Result<Box<dyn Store>, EngineError> {
        let means = Means::from(settings)?;
        Ok(Box::new(PackfileStore::create(path, means)?))
    }

    fn open(&self, path: &Path, settings: &Settings) -> Result<Box<dyn Store>, EngineError> {
        let means = Means::from(settings)?;
        Ok(Box::new(PackfileStore::open(path, means)?))
    }

    /// The new file of a compaction that has not come to its end.
    fn companions(&self, path: &Path) -> Vec<PathBuf> {
        vec![compacted_path(path)]
    }
}

/// Where a compaction puts the new file until it is complete.
fn compacted_path(path: &Path) -> PathBuf {
    let mut name = OsString::from(path);
    name.push("-compacted");
    PathBuf::from(name)
}
