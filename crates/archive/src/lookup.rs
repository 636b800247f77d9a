//! Reading content out of an archive: whole by name or by place, lent or into a buffer that is used
//! again, or poured piece by piece, so that memory stays bounded whatever an entry claims.
//!
//! The format's rule: data as long as `sz` is the content itself, other data is a zlib stream. A stream that
//! gives more or fewer bytes than `sz` is an error, and no more than `sz` bytes are ever made of it.

use rusqlite::blob::Blob;
use rusqlite::{MAIN_DB, Statement};

use crate::deflate::Inflater;
use crate::entry::{Entry, Kind, kind_of};
use crate::error::ArchiveError;
use crate::reader::{Place, Reader};

/// Bytes of stored data that are in memory at a time, when content is poured.
const PIECE_BYTES: usize = 256 * 1024;

/// Largest content, in bytes, that is given in one piece: the largest blob that any SQLite can be
/// told to hold, 2^31 - 1.
pub const LARGEST_WHOLE_BYTES: u64 = 0x7fff_ffff;

/// zlib makes at the most 1032 bytes of one (<https://zlib.net/zlib_tech.html>); an entry that claims more lies.
pub(crate) const MOST_INFLATION: u64 = 1032;

/// Reads content. It belongs to one [`Reader`].
pub struct Lookup<'r> {
    reader: &'r Reader,
    by_name: Statement<'r>,
    blob: Option<Blob<'r>>,
    stored: Vec<u8>,
    content: Vec<u8>,
    inflater: Inflater,
}

impl<'r> Lookup<'r> {
    pub(crate) fn new(reader: &'r Reader) -> Result<Self, ArchiveError> {
        let sql = "SELECT mode, sz, data FROM sqlar WHERE name = ?1";
        Ok(Self {
            reader,
            by_name: reader.connection.prepare(sql).map_err(reader.failed())?,
            blob: None,
            stored: Vec::new(),
            content: Vec::new(),
            inflater: Inflater::new(),
        })
    }

    /// Lends the content of a file to `consume`, without copying it once more unless it is compressed. `None` if
    /// there is no file of that name.
    ///
    /// # Errors
    /// The content is not what the archive says, or the archive cannot be read.
    pub fn with<T>(
        &mut self,
        name: &str,
        consume: impl FnOnce(&[u8]) -> T,
    ) -> Result<Option<T>, ArchiveError> {
        let Self {
            reader,
            by_name,
            content,
            inflater,
            ..
        } = self;
        let mut rows = by_name.query([name]).map_err(reader.failed())?;
        let Some(row) = rows.next().map_err(reader.failed())? else {
            return Ok(None);
        };
        let bad = |_| ArchiveError::bad_entry(name, "what stands in its row is of a wrong type");
        let mode = row
            .get_ref(0)
            .and_then(|mode| Ok(mode.as_i64()?))
            .map_err(bad)?;
        let sz = row
            .get_ref(1)
            .and_then(|sz| Ok(sz.as_i64()?))
            .map_err(bad)?;
        let data = row
            .get_ref(2)
            .and_then(|data| Ok(data.as_bytes_or_null()?))
            .map_err(bad)?;
        let kind = u32::try_from(mode).map(|mode| kind_of(mode, data.is_none()));
        if kind != Ok(Kind::File) {
            return Ok(None);
        }
        let data = data.unwrap_or_default();
        let size =
            u64::try_from(sz).map_err(|_| ArchiveError::bad_entry(name, "its sz is negative"))?;
        if data.len() as u64 == size {
            return Ok(Some(consume(data)));
        }
        check_size(name, size, data.len() as u64)?;
        content.clear();
        inflater.whole(name, data, size, content)?;
        Ok(Some(consume(content)))
    }

    /// The content of a file, valid until the next call. `None` if there is no file of that name.
    ///
    /// # Errors
    /// As [`Self::with`].
    pub fn get(&mut self, name: &str) -> Result<Option<&[u8]>, ArchiveError> {
        let mut content = std::mem::take(&mut self.stored);
        let found = self.get_into(name, &mut content);
        self.stored = content;
        Ok(found?.then_some(self.stored.as_slice()))
    }

    /// Replaces what is in `buffer` by the content of a file. `false` if there is no file of that name; the
    /// buffer is empty then.
    ///
    /// # Errors
    /// As [`Self::with`].
    pub fn get_into(&mut self, name: &str, buffer: &mut Vec<u8>) -> Result<bool, ArchiveError> {
        buffer.clear();
        let found = self.with(name, |content| buffer.extend_from_slice(content))?;
        Ok(found.is_some())
    }

    /// The content at a place, valid until the next call: the fastest way, for programs that keep a
    /// [`crate::Catalogue`].
    ///
    /// # Errors
    /// The content is not what the archive says, the place is of another archive, or the archive cannot be read.
    pub fn get_at(&mut self, place: Place) -> Result<&[u8], ArchiveError> {
        let stored_bytes = self.point_at(place.row)?;
        if stored_bytes as u64 > LARGEST_WHOLE_BYTES {
            return Err(self.bad_row(place.row, "it is too large to be read as a whole"));
        }
        // Grows only: clearing what will be overwritten costs as much as reading it.
        if self.stored.len() < stored_bytes {
            self.stored.resize(stored_bytes, 0);
        }
        self.read_stored(0, stored_bytes)?;
        if stored_bytes as u64 == place.size {
            return Ok(&self.stored[..stored_bytes]);
        }
        let name = self.name_of(place.row);
        check_size(&name, place.size, stored_bytes as u64)?;
        self.content.clear();
        let stored = &self.stored[..stored_bytes];
        self.inflater
            .whole(&name, stored, place.size, &mut self.content)?;
        Ok(&self.content)
    }

    /// Pours the content of a file or the target of a link into `sink`, in pieces of at the most 256 KiB.
    ///
    /// # Errors
    /// The content is not what the archive says (pieces may have been poured by then), the archive cannot be
    /// read, or the first that `sink` returns.
    pub fn pour(
        &mut self,
        entry: &Entry,
        sink: &mut dyn FnMut(&[u8]) -> Result<(), ArchiveError>,
    ) -> Result<(), ArchiveError> {
        if entry.stored_bytes == 0 {
            return match entry.size {
                0 => Ok(()),
                _ => Err(ArchiveError::bad_entry(
                    &entry.name,
                    "it has no data, and its sz is not 0",
                )),
            };
        }
        let stored_bytes = self.point_at(entry.row)?;
        if stored_bytes as u64 != entry.stored_bytes {
            return Err(ArchiveError::bad_entry(
                &entry.name,
                "it changed while it was read",
            ));
        }
        let raw = entry.stored_bytes == entry.size;
        if !raw {
            check_size(&entry.name, entry.size, entry.stored_bytes)?;
            self.inflater.begin(entry.size);
        }
        if self.stored.len() < stored_bytes.min(PIECE_BYTES) {
            self.stored.resize(stored_bytes.min(PIECE_BYTES), 0);
        }
        let mut offset = 0;
        while offset < stored_bytes {
            let length = (stored_bytes - offset).min(PIECE_BYTES);
            self.read_stored(offset, length)?;
            let piece = &self.stored[..length];
            if raw {
                sink(piece)?;
            } else {
                self.inflater.piece(&entry.name, piece, sink)?;
            }
            offset += length;
        }
        if raw {
            Ok(())
        } else {
            self.inflater.end(&entry.name)
        }
    }

    /// Bytes `from` to `to` (not included) of an entry that is stored as it is, in pieces.
    ///
    /// # Errors
    /// It is compressed or shorter, the archive cannot be read, or the first that `sink` returns.
    pub fn pour_range(
        &mut self,
        entry: &Entry,
        range: std::ops::Range<u64>,
        sink: &mut dyn FnMut(&[u8]) -> Result<(), ArchiveError>,
    ) -> Result<(), ArchiveError> {
        if entry.stored_bytes != entry.size {
            return self.pour_part_of_compressed(entry, range, sink);
        }
        let stored_bytes = self.point_at(entry.row)? as u64;
        if stored_bytes != entry.size || range.end > stored_bytes {
            return Err(ArchiveError::bad_entry(
                &entry.name,
                "it changed while it was read",
            ));
        }
        // Not larger than a blob, so it fits.
        let (mut offset, end) = (range.start as usize, range.end as usize);
        if self.stored.len() < PIECE_BYTES {
            self.stored.resize(PIECE_BYTES, 0);
        }
        while offset < end {
            let length = (end - offset).min(PIECE_BYTES);
            self.read_stored(offset, length)?;
            sink(&self.stored[..length])?;
            offset += length;
        }
        Ok(())
    }

    /// What comes before the range has to be decompressed too.
    fn pour_part_of_compressed(
        &mut self,
        entry: &Entry,
        range: std::ops::Range<u64>,
        sink: &mut dyn FnMut(&[u8]) -> Result<(), ArchiveError>,
    ) -> Result<(), ArchiveError> {
        let mut offset = 0;
        self.pour(entry, &mut |piece| {
            let length = piece.len() as u64;
            let from = range.start.saturating_sub(offset).min(length) as usize;
            let to = range.end.saturating_sub(offset).min(length) as usize;
            offset += length;
            if from < to {
                sink(&piece[from..to])
            } else {
                Ok(())
            }
        })
    }

    /// Makes the blob handle point at a row; gives the length of its data.
    fn point_at(&mut self, row: i64) -> Result<usize, ArchiveError> {
        let reader = self.reader;
        let pointed = match &mut self.blob {
            Some(blob) => blob.reopen(row),
            None => reader
                .connection
                .blob_open(MAIN_DB, "sqlar", "data", row, true)
                .map(|blob| self.blob = Some(blob)),
        };
        if let Err(source) = pointed {
            // A handle that could not be moved is good for nothing more.
            self.blob = None;
            return Err(match source.sqlite_error_code() {
                // No such row, or neither a blob nor a text in it.
                Some(rusqlite::ErrorCode::Unknown) => self.bad_row(row, "it has no data"),
                _ => reader.failed()(source),
            });
        }
        Ok(self.blob.as_ref().map_or(0, Blob::len))
    }

    fn read_stored(&mut self, offset: usize, length: usize) -> Result<(), ArchiveError> {
        let Some(blob) = &self.blob else {
            return Ok(());
        };
        blob.read_at_exact(&mut self.stored[..length], offset)
            .map_err(self.reader.failed())
    }

    #[cold]
    fn name_of(&self, row: i64) -> String {
        let sql = "SELECT name FROM sqlar WHERE rowid = ?1";
        let name = self
            .reader
            .connection
            .query_row(sql, [row], |row| row.get(0));
        name.unwrap_or_else(|_| format!("row {row}"))
    }

    #[cold]
    fn bad_row(&self, row: i64, reason: &str) -> ArchiveError {
        ArchiveError::bad_entry(&self.name_of(row), reason)
    }
}

/// Whether so few bytes can become so many.
///
/// # Errors
/// They cannot.
pub(crate) fn check_size(name: &str, size: u64, stored_bytes: u64) -> Result<(), ArchiveError> {
    if size > stored_bytes.saturating_mul(MOST_INFLATION) {
        let reason = format!("its sz is {size}, which {stored_bytes} bytes of data cannot become");
        return Err(ArchiveError::bad_entry(name, reason));
    }
    if size > LARGEST_WHOLE_BYTES {
        let reason = format!("its sz is {size}, more than an archive can hold");
        return Err(ArchiveError::bad_entry(name, reason));
    }
    Ok(())
}
