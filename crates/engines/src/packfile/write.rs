//! Writing records to a packfile, frame by frame. When a batch begins and counts is left to the
//! session.

use std::fs::File;
use std::io::{self, IoSlice};
use std::os::unix::fs::FileExt;

use rustix::io::{pwritev, retry_on_intr};

use super::catalog::{Change, Place};
use super::checksum::checksum;
use super::format::{FRAME_HEADER_BYTES, FRAME_PAYLOAD_BYTES, FrameHeader, RECORD_BYTES, Record};

/// What a batch is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Batching {
    /// All frames up to [`FrameWriter::finish`] are one batch.
    Whole,
    /// Each frame is a batch, so that opening the file has only the last one to check. For
    /// writing that is all or nothing by other means.
    EachFrame,
}

/// Collects records and writes them as frames.
#[derive(Debug)]
pub(super) struct FrameWriter {
    batching: Batching,
    /// Where the next frame goes.
    position: u64,
    /// Number of the batch that the next frame belongs to.
    batch: u64,
    /// Header (still blank) and table of the next frame.
    head: Vec<u8>,
    payload: Vec<u8>,
    /// Changes made since the start. Those from `unplaced` on are in the frame that is not
    /// written yet: their positions are still relative to its payload.
    changes: Vec<Change>,
    unplaced: usize,
}

impl FrameWriter {
    /// A writer that has not been started.
    pub(super) fn new() -> Self {
        Self {
            batching: Batching::Whole,
            position: 0,
            batch: 0,
            head: Vec::new(),
            payload: Vec::new(),
            changes: Vec::new(),
            unplaced: 0,
        }
    }

    /// Forgets everything and starts at a position of the file, with the batch after `batch`.
    pub(super) fn start(&mut self, batching: Batching, position: u64, batch: u64) {
        self.batching = batching;
        self.position = position;
        self.batch = batch + 1;
        self.changes.clear();
        self.clear_frame();
    }

    /// Adds a blob, or its removal; writes a frame if one is full.
    pub(super) fn add(&mut self, file: &File, key: u64, blob: Option<&[u8]>) -> io::Result<()> {
        let bytes = blob.unwrap_or_default();
        let length = u32::try_from(bytes.len()).map_err(|_| io::ErrorKind::FileTooLarge)?;
        if self.payload.len() + bytes.len() > FRAME_PAYLOAD_BYTES && !self.payload.is_empty() {
            self.write_frame(file, self.batching == Batching::EachFrame)?;
        }
        let place = Place {
            position: self.payload.len() as u64,
            length,
        };
        Record {
            key,
            checksum: checksum(bytes),
            length,
            removed: blob.is_none(),
        }
        .append_to(&mut self.head);
        self.payload.extend_from_slice(bytes);
        self.changes.push((key, blob.map(|_| place)));
        Ok(())
    }

    /// Writes what is left, so that the last batch is complete. Writes nothing if nothing was
    /// added.
    pub(super) fn finish(&mut self, file: &File) -> io::Result<()> {
        // A full frame is written only when there is more to add, so the last one is never blank
        // unless all is.
        if self.unplaced == self.changes.len() {
            return Ok(());
        }
        self.write_frame(file, true)
    }

    /// Changes made since the start, all of them written once [`FrameWriter::finish`] is done.
    pub(super) fn take_changes(&mut self) -> Vec<Change> {
        self.unplaced = 0;
        std::mem::take(&mut self.changes)
    }

    /// Position behind the last frame.
    pub(super) fn end(&self) -> u64 {
        self.position
    }

    /// Number of the last complete batch.
    pub(super) fn batch(&self) -> u64 {
        self.batch - 1
    }

    fn write_frame(&mut self, file: &File, last_of_batch: bool) -> io::Result<()> {
        let header = FrameHeader {
            position: self.position,
            batch: self.batch,
            payload_bytes: self.payload.len() as u64,
            records: ((self.head.len() - FRAME_HEADER_BYTES) / RECORD_BYTES) as u32,
            last_of_batch,
        };
        let end = header.end().ok_or(io::ErrorKind::FileTooLarge)?;
        header.seal(&mut self.head);
        let padding = end - header.payload_position() - header.payload_bytes;
        let parts = [&self.head, &self.payload, &[0; 8][..padding as usize]];
        write_parts(file, parts, self.position)?;
        for (_, place) in &mut self.changes[self.unplaced..] {
            if let Some(place) = place {
                place.position += header.payload_position();
            }
        }
        self.position = end;
        self.batch += u64::from(last_of_batch);
        self.clear_frame();
        Ok(())
    }

    fn clear_frame(&mut self) {
        self.head.clear();
        self.head.resize(FRAME_HEADER_BYTES, 0);
        self.payload.clear();
        self.unplaced = self.changes.len();
    }
}

/// Writes the parts one behind the other, if possible with one call.
fn write_parts(file: &File, parts: [&[u8]; 3], position: u64) -> io::Result<()> {
    let slices = parts.map(IoSlice::new);
    let mut written = retry_on_intr(|| pwritev(file, &slices, position))?;
    let mut position = position;
    for part in parts {
        let done = written.min(part.len());
        file.write_all_at(&part[done..], position + done as u64)?;
        written -= done;
        position += part.len() as u64;
    }
    Ok(())
}
