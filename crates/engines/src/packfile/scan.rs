//! Reading a packfile from its start: finding the frames, building the catalog, and telling a
//! batch that was cut off from one that is damaged.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::catalog::{Catalog, Change, Place};
use super::checksum::checksum;
use super::format::{
    FILE_HEADER_BYTES, FRAME_MAGIC, FRAME_PAYLOAD_BYTES, FrameHeader, Record, check_file_header,
    is_intact,
};
use crate::engine::EngineError;

/// Bytes read at first for a frame's header and table: enough for a mebibyte of 10 kB blobs.
const HEAD_BYTES: u64 = 4096;

/// Walks over the intact frames of a file.
pub(super) struct FrameReader<'file> {
    file: &'file File,
    /// Frames end here at the latest.
    limit: u64,
    /// Where the next frame begins.
    position: u64,
    /// Header and table of the frame that was read last.
    head: Vec<u8>,
}

impl<'file> FrameReader<'file> {
    pub(super) fn new(file: &'file File, position: u64, limit: u64) -> Self {
        Self {
            file,
            limit,
            position,
            head: Vec::new(),
        }
    }

    /// Reads the next frame's header and table; `None` if no intact frame begins there.
    pub(super) fn next_frame(&mut self) -> io::Result<Option<FrameHeader>> {
        let available = self.limit.saturating_sub(self.position);
        let mut loaded = HEAD_BYTES.min(available);
        self.load_head(0, loaded)?;
        let Some(header) = FrameHeader::parse(&self.head, self.position) else {
            return Ok(None);
        };
        let Some(end) = header.end().filter(|end| *end <= self.limit) else {
            return Ok(None);
        };
        if header.head_bytes() > loaded {
            self.load_head(loaded, header.head_bytes())?;
            loaded = header.head_bytes();
        }
        debug_assert!(loaded >= header.head_bytes(), "the whole head is loaded");
        self.head.truncate(header.head_bytes() as usize);
        let stated: u64 = self.records().map(|record| u64::from(record.length)).sum();
        if !is_intact(&self.head) || stated != header.payload_bytes {
            return Ok(None);
        }
        self.position = end;
        Ok(Some(header))
    }

    /// The records of the frame that was read last.
    pub(super) fn records(&self) -> impl Iterator<Item = Record> + '_ {
        Record::all_in(&self.head)
    }

    /// Replaces the contents of `payload` with the payload of the frame that was read last.
    pub(super) fn read_payload(
        &self,
        header: &FrameHeader,
        payload: &mut Vec<u8>,
    ) -> io::Result<()> {
        payload.resize(header.payload_bytes as usize, 0);
        self.file.read_exact_at(payload, header.payload_position())
    }

    fn load_head(&mut self, from: u64, to: u64) -> io::Result<()> {
        self.head.resize(to as usize, 0);
        let rest = &mut self.head[from as usize..];
        self.file.read_exact_at(rest, self.position + from)
    }
}

/// A batch on its way from the file to the catalog.
struct Batch {
    number: u64,
    end: u64,
    changes: Vec<Change>,
    checksums: Vec<u64>,
}

impl Batch {
    fn numbered(number: u64) -> Self {
        Self {
            number,
            end: 0,
            changes: Vec::new(),
            checksums: Vec::new(),
        }
    }

    fn add(&mut self, header: &FrameHeader, records: impl Iterator<Item = Record>) {
        let mut position = header.payload_position();
        for record in records {
            let place = Place {
                position,
                length: record.length,
            };
            position = place.end();
            self.changes
                .push((record.key, (!record.removed).then_some(place)));
            self.checksums.push(record.checksum);
        }
    }

    fn blobs_are_intact(&self, file: &File) -> io::Result<bool> {
        let mut blob = Vec::new();
        for ((_, place), expected) in self.changes.iter().zip(&self.checksums) {
            let Some(place) = place else { continue };
            blob.resize(place.length as usize, 0);
            file.read_exact_at(&mut blob, place.position)?;
            if checksum(&blob) != *expected {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn apply_to(self, catalog: &mut Catalog) {
        catalog.batch = self.number;
        catalog.end = self.end;
        catalog.apply(self.changes);
    }
}

/// Builds the catalog of a file.
///
/// # Errors
/// It is no packfile, it is damaged, or it cannot be read.
pub(super) fn scan(file: File, path: &Path) -> Result<Catalog, EngineError> {
    let length = check_header(&file, path)?;
    let mut catalog = Catalog::empty(file);
    build(&mut catalog, length).map_err(EngineError::io("read", path))?;
    catalog.ignored_bytes = length - catalog.end;
    let torn = catalog.batch + 1;
    let later = later_frame(&catalog.file, catalog.end, length, torn)
        .map_err(EngineError::io("read", path))?;
    match later {
        None => Ok(catalog),
        Some(later) => Err(EngineError::Damaged {
            path: path.to_owned(),
            reason: format!(
                "batch {torn} at byte {} is not intact, but batch {later} after it was written",
                catalog.end
            ),
        }),
    }
}

/// Checks the file's header; returns the file's length.
fn check_header(file: &File, path: &Path) -> Result<u64, EngineError> {
    let damaged = |reason| EngineError::Damaged {
        path: path.to_owned(),
        reason,
    };
    let metadata = file.metadata().map_err(EngineError::io("look at", path))?;
    if metadata.len() < FILE_HEADER_BYTES {
        return Err(damaged("it is too short for a packfile".to_owned()));
    }
    let mut header = [0; FILE_HEADER_BYTES as usize];
    file.read_exact_at(&mut header, 0)
        .map_err(EngineError::io("read", path))?;
    check_file_header(&header).map_err(damaged)?;
    Ok(metadata.len())
}

/// Adds all complete batches. Each waits for its successor: where there is one, the batch was
/// complete when that began; where there is none, its blobs are checked.
fn build(catalog: &mut Catalog, length: u64) -> io::Result<()> {
    let file = std::sync::Arc::clone(&catalog.file);
    let mut reader = FrameReader::new(&file, catalog.end, length);
    let mut waiting: Option<Batch> = None;
    let mut growing = Batch::numbered(1);
    while let Some(header) = reader.next_frame()? {
        if header.batch != growing.number {
            break;
        }
        growing.add(&header, reader.records());
        if header.last_of_batch {
            growing.end = reader.position;
            let next = Batch::numbered(growing.number + 1);
            let complete = std::mem::replace(&mut growing, next);
            if let Some(earlier) = waiting.replace(complete) {
                earlier.apply_to(catalog);
            }
        }
    }
    if let Some(last) = waiting
        && last.blobs_are_intact(&file)?
    {
        last.apply_to(catalog);
    }
    Ok(())
}

/// Looks behind the end of the log for an intact frame of a batch after the one that was `torn`;
/// returns that batch's number. Frames begin at multiples of 8.
fn later_frame(file: &File, from: u64, length: u64, torn: u64) -> io::Result<Option<u64>> {
    let mut window = Vec::new();
    let mut start = from;
    while start < length {
        window.resize((length - start).min(FRAME_PAYLOAD_BYTES as u64) as usize, 0);
        file.read_exact_at(&mut window, start)?;
        for (index, word) in window.chunks_exact(FRAME_MAGIC.len()).enumerate() {
            if word != FRAME_MAGIC {
                continue;
            }
            let position = start + (index * FRAME_MAGIC.len()) as u64;
            let found = FrameReader::new(file, position, length).next_frame()?;
            if let Some(header) = found.filter(|header| header.batch > torn) {
                return Ok(Some(header.batch));
            }
        }
        start += window.len() as u64;
    }
    Ok(None)
}

/// What [`verify`] has seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verification {
    /// Blobs that can be read.
    pub blobs: u64,
    /// Bytes of blobs whose checksums were compared, overwritten ones included.
    pub checked_bytes: u64,
    /// Bytes behind the last complete batch, which are ignored.
    pub ignored_bytes: u64,
}

/// Compares every blob in a packfile with its checksum, those that have been overwritten too.
///
/// # Errors
/// There is no such file, or it cannot be read; [`EngineError::Damaged`] names the first blob that
/// differs.
pub fn verify(path: &Path) -> Result<Verification, EngineError> {
    let file = super::store::open_file(path)?;
    let catalog = scan(file, path)?;
    let mut checked_bytes = 0;
    let mut payload = Vec::new();
    let mut reader = FrameReader::new(&catalog.file, FILE_HEADER_BYTES, catalog.end);
    while let Some(header) = reader.next_frame().map_err(EngineError::io("read", path))? {
        reader
            .read_payload(&header, &mut payload)
            .map_err(EngineError::io("read", path))?;
        check_payload(&reader, &payload, path)?;
        checked_bytes += header.payload_bytes;
    }
    Ok(Verification {
        blobs: catalog.places.len() as u64,
        checked_bytes,
        ignored_bytes: catalog.ignored_bytes,
    })
}

/// Compares the blobs of a frame's payload with the checksums of its records.
fn check_payload(reader: &FrameReader<'_>, payload: &[u8], path: &Path) -> Result<(), EngineError> {
    let mut rest = payload;
    for record in reader.records() {
        let (blob, others) = rest.split_at(record.length as usize);
        rest = others;
        check_blob(&record, blob, path)?;
    }
    Ok(())
}

/// Compares a blob with the checksum of its record.
///
/// # Errors
/// [`EngineError::Damaged`] if they differ.
pub(super) fn check_blob(record: &Record, blob: &[u8], path: &Path) -> Result<(), EngineError> {
    if record.removed || checksum(blob) == record.checksum {
        return Ok(());
    }
    Err(EngineError::Damaged {
        path: path.to_owned(),
        reason: format!("blob {} does not match its checksum", record.key),
    })
}
