//! Packing directories into an archive: [`listing`] finds out what there is, [`pipeline`] reads and
//! compresses it in several threads, and this file writes, reads back if that is asked for, and reports.

mod listing;
mod pipeline;
mod reading;

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::deflate::Compression;
use crate::entry::Kind;
use crate::error::ArchiveError;
use crate::selection::Selection;
use crate::verify;
use crate::watch::Watch;
use crate::writer::{ArchiveWriter, Stored, WriteSettings};
use listing::{Listed, Listing};
use pipeline::Batch;
use reading::{Content, Hashing, Sources};

/// How directories are packed.
#[derive(Debug, Clone)]
pub struct PackSettings {
    /// Whether content is compressed.
    pub compression: Compression,
    /// Bytes of a page.
    pub page_bytes: u32,
    /// What is taken.
    pub selection: Selection,
    /// Whether what has the archive's name is replaced.
    pub replace: bool,
    /// Whether everything is read back and compared before the archive gets its name.
    pub verify: bool,
    /// Go on without files that are larger than a blob.
    pub skip_too_large: bool,
    /// Go on without what vanishes, changes, cannot be read or cannot be held.
    pub skip_unreadable: bool,
    /// Threads that read and compress; one more writes.
    pub threads: usize,
}

impl Default for PackSettings {
    fn default() -> Self {
        Self {
            compression: Compression::Never,
            page_bytes: WriteSettings::default().page_bytes,
            selection: Selection::default(),
            replace: false,
            verify: false,
            skip_too_large: false,
            skip_unreadable: false,
            threads: default_threads(),
        }
    }
}

impl PackSettings {
    pub(crate) fn may_skip(&self, error: &ArchiveError) -> bool {
        match error {
            ArchiveError::TooLarge { .. } => self.skip_too_large,
            ArchiveError::SourceChanged { .. }
            | ArchiveError::Io { .. }
            | ArchiveError::NotUtf8 { .. }
            | ArchiveError::Unsupported { .. } => self.skip_unreadable,
            _ => false,
        }
    }
}

/// One thread a core, as far as the system tells.
pub(crate) fn default_threads() -> usize {
    std::thread::available_parallelism()
        .map_or(1, usize::from)
        .min(16)
}

/// Something that was left out, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// What and why, as the error would have been.
    pub reason: String,
}

impl Skipped {
    fn of(error: &ArchiveError) -> Self {
        let mut reason = error.to_string();
        if let Some(source) = std::error::Error::source(error) {
            reason.push_str(": ");
            reason.push_str(&source.to_string());
        }
        Self { reason }
    }
}

/// What was packed.
#[derive(Debug, Clone, Default)]
pub struct PackReport {
    /// Files.
    pub files: u64,
    /// Directories.
    pub directories: u64,
    /// Symbolic links.
    pub links: u64,
    /// Files that are stored compressed.
    pub compressed: u64,
    /// Bytes of content.
    pub content_bytes: u64,
    /// Bytes of the archive.
    pub archive_bytes: u64,
    /// What was left out.
    pub skipped: Vec<Skipped>,
    /// Time from the start until everything was written, without waiting for the device.
    pub packing: Duration,
    /// Time of waiting for the device at the end.
    pub sync: Duration,
    /// Time of reading back; zero if that was not asked for.
    pub verifying: Duration,
}

/// Packs what is in `directories` into a new archive. Names are relative to the directory that they are in, and
/// sorted. The archive gets its name when it is complete and synced; until then there is nothing, or what was there.
///
/// # Errors
/// Something is there already, a source cannot be read or changes meanwhile, two directories have the same name
/// in them, a file is too large, what was read back differs, or the system refuses.
pub fn pack(
    directories: &[&Path],
    archive: &Path,
    settings: &PackSettings,
    watch: &Watch,
) -> Result<PackReport, ArchiveError> {
    let begin = Instant::now();
    let write_settings = WriteSettings {
        page_bytes: settings.page_bytes,
        replace: settings.replace,
    };
    let writer = ArchiveWriter::create(archive, write_settings)?;
    let mut own = vec![writer.identity()?];
    if let Ok(metadata) = archive.symlink_metadata() {
        own.push((metadata.dev(), metadata.ino()));
    }
    let Listing { entries, skipped } = listing::list(directories, settings, &own, watch)?;
    watch.begin(
        entries.len() as u64,
        entries.iter().map(|entry| entry.size).sum(),
    );
    let spool = match archive.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let sources = Sources {
        roots: directories,
        settings,
        spool,
        most_content_bytes: writer.most_content_bytes(""),
    };
    let mut packing = Packing {
        writer,
        sources,
        watch,
        report: PackReport {
            skipped,
            ..PackReport::default()
        },
        hashes: Vec::new(),
    };
    pipeline::run(&entries, sources, watch, |batch| {
        packing.write(&entries[batch.entries.clone()], batch)
    })?;
    let Packing {
        writer,
        mut report,
        hashes,
        ..
    } = packing;
    drop(entries);
    let sealed = writer.seal()?;
    let elapsed = begin.elapsed();
    if settings.verify {
        let begin = Instant::now();
        verify::read_back(&sealed.archive()?, &hashes, settings.threads, watch)?;
        report.verifying = begin.elapsed();
    }
    watch.check()?;
    let finished = sealed.publish()?;
    report.archive_bytes = finished.bytes;
    report.sync = finished.sync;
    report.packing = elapsed.saturating_sub(finished.sync);
    Ok(report)
}

struct Packing<'a> {
    writer: ArchiveWriter,
    sources: Sources<'a>,
    watch: &'a Watch,
    report: PackReport,
    /// Of each row, in order, if it is to be read back.
    hashes: Vec<Option<blake3::Hash>>,
}

impl Packing<'_> {
    fn write(&mut self, entries: &[Listed], batch: &mut Batch) -> Result<(), ArchiveError> {
        let contents = std::mem::take(&mut batch.contents);
        for (entry, read) in entries.iter().zip(contents) {
            let written = read.and_then(|(content, hash)| {
                let streamed = self.write_one(entry, content, &batch.buffer)?;
                Ok(hash.or(streamed))
            });
            match written {
                Ok(hash) if self.sources.settings.verify => self.hashes.push(hash),
                Ok(_) => {}
                Err(error) if self.sources.settings.may_skip(&error) => {
                    self.report.skipped.push(Skipped::of(&error));
                }
                Err(error) => return Err(error),
            }
            self.watch.done(1, entry.size);
        }
        Ok(())
    }

    /// Gives the hash of content that was not hashed when it was read.
    fn write_one(
        &mut self,
        entry: &Listed,
        content: Content,
        buffer: &[u8],
    ) -> Result<Option<blake3::Hash>, ArchiveError> {
        let (name, mode, mtime) = (&*entry.name, entry.mode, entry.mtime);
        let mut hash = None;
        let written = match content {
            Content::Nothing => self.writer.add_directory(name, mode, mtime),
            Content::Target(target) => self.writer.add_link(name, mtime, &target),
            Content::Raw(range) => {
                self.writer
                    .add_stored(name, mode, mtime, Stored::Raw(&buffer[range]))
            }
            Content::Deflated(stream, size) => {
                self.report.compressed += 1;
                self.writer
                    .add_stored(name, mode, mtime, Stored::Deflated(&stream, size))
            }
            Content::Large(file, size) => {
                let mut source = Hashing::new(file, self.sources.settings.verify);
                let written = self.writer.add_from(name, mode, mtime, size, &mut source);
                hash = source.finish();
                written.map_err(|error| shrank(error, &self.sources.path(entry)))
            }
            Content::Spooled(mut file, stream_bytes, size) => {
                self.report.compressed += 1;
                self.writer
                    .add_pieces(name, mode, mtime, (stream_bytes, size), &mut file)
            }
        };
        written.map_err(|error| match error {
            ArchiveError::TooLarge {
                bytes, limit_bytes, ..
            } => ArchiveError::TooLarge {
                path: self.sources.path(entry),
                bytes,
                limit_bytes,
            },
            error => error,
        })?;
        self.count(entry);
        Ok(hash)
    }

    fn count(&mut self, entry: &Listed) {
        self.report.content_bytes += entry.size;
        match entry.kind {
            Kind::Directory => self.report.directories += 1,
            Kind::Symlink => self.report.links += 1,
            _ => self.report.files += 1,
        }
    }
}

/// A source that ends too early has become shorter.
fn shrank(error: ArchiveError, path: &Path) -> ArchiveError {
    match error {
        ArchiveError::Io { source, .. } if source.kind() == io::ErrorKind::UnexpectedEof => {
            reading::shrank(path)
        }
        error => error,
    }
}

/// Names, kinds and modes of entries, and why others could not be taken.
pub(crate) type Names = (Vec<(String, Kind, u32)>, Vec<String>);

/// What [`pack`] would take of a directory.
pub(crate) fn list_names(
    directory: &Path,
    settings: &PackSettings,
    watch: &Watch,
) -> Result<Names, ArchiveError> {
    let Listing { entries, skipped } = listing::list(&[directory], settings, &[], watch)?;
    let entries = entries
        .into_iter()
        .map(|entry| (entry.name.into_string(), entry.kind, entry.mode));
    let skipped = skipped.into_iter().map(|skipped| skipped.reason);
    Ok((entries.collect(), skipped.collect()))
}
