//! Compaction: the living records, in the order in which they lie, into a new file, which then
//! takes the old one's name. A crash leaves the old file or the new one, each complete.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::catalog::{Catalog, Place};
use super::compacted_path;
use super::format::{FILE_HEADER_BYTES, file_header};
use super::scan::{FrameReader, check_blob};
use super::store::lock;
use super::write::{Batching, FrameWriter};
use crate::engine::EngineError;

/// Replaces the file at `path`, which `old` describes; returns the catalog of the new one. The
/// caller keeps writers away, and synchronises the directory if the new name must survive a loss
/// of power (the old file, under the old name, is as good until then).
///
/// # Errors
/// A living blob does not match its checksum, or the new file cannot be written; the old one is
/// then as it was.
pub(super) fn compact(old: &Catalog, path: &Path) -> Result<Catalog, EngineError> {
    let new_path = compacted_path(path);
    let outcome = copy_living(old, path, &new_path).and_then(|catalog| {
        fs::rename(&new_path, path).map_err(EngineError::io("replace", path))?;
        Ok(catalog)
    });
    if outcome.is_err() {
        // The first failure is the one to report, whatever becomes of this.
        let _ = fs::remove_file(&new_path);
    }
    outcome
}

fn copy_living(old: &Catalog, path: &Path, new_path: &Path) -> Result<Catalog, EngineError> {
    let failed = || EngineError::io("compact to", new_path);
    let file = create_new_file(new_path)?;
    let mut writer = FrameWriter::new();
    writer.start(Batching::EachFrame, FILE_HEADER_BYTES, 0);
    let mut reader = FrameReader::new(&old.file, FILE_HEADER_BYTES, old.end);
    let mut payload = Vec::new();
    while let Some(header) = reader.next_frame().map_err(EngineError::io("read", path))? {
        reader
            .read_payload(&header, &mut payload)
            .map_err(EngineError::io("read", path))?;
        let mut position = header.payload_position();
        for record in reader.records() {
            let place = Place {
                position,
                length: record.length,
            };
            position = place.end();
            if record.removed || old.places.get(&record.key) != Some(&place) {
                continue;
            }
            let start = (place.position - header.payload_position()) as usize;
            let blob = &payload[start..start + place.length as usize];
            check_blob(&record, blob, path)?;
            writer
                .add(&file, record.key, Some(blob))
                .map_err(failed())?;
        }
    }
    writer.finish(&file).map_err(failed())?;
    // Even where commits do not wait: the old file must not go before the new one is safe.
    file.sync_data().map_err(failed())?;
    let mut catalog = Catalog::empty(file);
    catalog.generation = old.generation + 1;
    catalog.absorb(&mut writer);
    Ok(catalog)
}

/// Whatever is at that path was left behind by a compaction that was interrupted.
fn create_new_file(path: &Path) -> Result<File, EngineError> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(true)
        .open(path)
        .map_err(EngineError::io("create", path))?;
    // Before it has the name that others open.
    lock(&file, path)?;
    file.write_all_at(&file_header(), 0)
        .map_err(EngineError::io("write", path))?;
    Ok(file)
}
