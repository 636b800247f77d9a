//! What a store knows of its file: where each blob lies, where the log ends, how much of it is
//! alive. Reading and writing the file is left to the other modules.

use std::fs::File;
use std::sync::Arc;

use super::format::{FILE_HEADER_BYTES, FRAME_PAYLOAD_BYTES, RECORD_BYTES};
use super::write::FrameWriter;
use crate::key_map::KeyMap;

/// Where a blob lies in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    /// Position of its first byte.
    pub position: u64,
    /// Its length in bytes.
    pub length: u32,
}

impl Place {
    /// Position behind its last byte.
    pub(super) fn end(self) -> u64 {
        self.position + u64::from(self.length)
    }

    fn bytes_on_disk(self) -> u64 {
        u64::from(self.length) + RECORD_BYTES as u64
    }
}

/// A change that a batch makes: a blob and its new place, or none if it was removed.
pub(super) type Change = (u64, Option<Place>);

/// The file and the index of what is in it, as of the last complete batch.
#[derive(Debug)]
pub(super) struct Catalog {
    /// The data file.
    pub file: Arc<File>,
    /// Which file it is: each compaction makes another.
    pub generation: u64,
    /// Where each blob lies.
    pub places: KeyMap<Place>,
    /// End of the last complete batch: where the next one goes.
    pub end: u64,
    /// Number of the last complete batch.
    pub batch: u64,
    /// Bytes of blobs that are current, with their lines in the tables.
    pub live_bytes: u64,
    /// Bytes behind the last complete batch that were ignored when the file was opened.
    pub ignored_bytes: u64,
}

impl Catalog {
    /// The catalog of a file without frames.
    pub(super) fn empty(file: File) -> Self {
        Self {
            file: Arc::new(file),
            generation: 0,
            places: KeyMap::default(),
            end: FILE_HEADER_BYTES,
            batch: 0,
            live_bytes: 0,
            ignored_bytes: 0,
        }
    }

    /// Makes the changes of a complete batch.
    pub(super) fn apply(&mut self, changes: impl IntoIterator<Item = Change>) {
        for (key, place) in changes {
            let old = match place {
                Some(place) => {
                    self.live_bytes += place.bytes_on_disk();
                    self.places.insert(key, place)
                }
                None => self.places.remove(&key),
            };
            self.live_bytes -= old.map_or(0, Place::bytes_on_disk);
        }
    }

    /// Makes the changes of a writer that has finished, and moves the end behind them.
    pub(super) fn absorb(&mut self, writer: &mut FrameWriter) {
        self.apply(writer.take_changes());
        self.end = writer.end();
        self.batch = writer.batch();
    }

    /// Bytes of the log that nobody needs any more.
    pub(super) fn dead_bytes(&self) -> u64 {
        self.end - FILE_HEADER_BYTES - self.live_bytes
    }

    /// Whether the dead bytes outweigh the living, and by enough to be worth the trouble.
    pub(super) fn wants_compaction(&self) -> bool {
        let dead = self.dead_bytes();
        dead > self.live_bytes && dead > FRAME_PAYLOAD_BYTES as u64
    }
}
