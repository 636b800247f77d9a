//! Writing an archive: one connection, one transaction, no journal, and no waiting for the device until
//! the end. That is safe because nobody sees the file before it is complete and synced
//! ([`crate::staging`] says how). Where content comes from is left to the callers.

use std::io::Read;
use std::path::Path;
use std::time::Duration;

use rusqlite::limits::Limit;
use rusqlite::types::Null;
use rusqlite::{Connection, ErrorCode, MAIN_DB, OpenFlags, params};

use crate::archive::Archive;
use crate::deflate::Compression;
use crate::entry::{DIRECTORY, PERMISSION_BITS, REGULAR, SYMLINK};
use crate::error::ArchiveError;
use crate::name;
use crate::staging::Staged;

/// The table as <https://sqlite.org/sqlar.html> documents it.
const SCHEMA: &str = "CREATE TABLE sqlar(\n  name TEXT PRIMARY KEY,  -- name of the file\n  \
                      mode INT,               -- access permissions\n  \
                      mtime INT,              -- last modification time\n  \
                      sz INT,                 -- original file size\n  \
                      data BLOB               -- compressed content\n)";

const INSERT: &str = "INSERT INTO sqlar(name, mode, mtime, sz, data) VALUES(?1, ?2, ?3, ?4, ?5)";

/// Bytes of page cache: pages are written once, in order, so more would only be more to search.
const CACHE_KIB: u32 = 16 * 1024;

/// Bytes of a row beside its name and its content, at the most: five lengths and three numbers.
const ROW_BYTES: u64 = 64;

/// Bytes in memory at a time of content that is streamed.
const PIECE_BYTES: usize = 1024 * 1024;

/// How an archive is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriteSettings {
    /// Bytes of a page: a power of two from 512 to 65536. Default: 4096.
    pub page_bytes: u32,
    /// Whether what has the archive's name is replaced, at the very end. Default: false.
    pub replace: bool,
}

impl Default for WriteSettings {
    fn default() -> Self {
        Self {
            page_bytes: 4096,
            replace: false,
        }
    }
}

/// How content is stored.
#[derive(Debug, Clone, Copy)]
pub enum Stored<'a> {
    /// As it is.
    Raw(&'a [u8]),
    /// As a zlib stream of content of that many bytes; the stream has fewer.
    Deflated(&'a [u8], u64),
}

/// An archive that is being written. Dropped before [`Self::finish`] it leaves nothing behind.
pub struct ArchiveWriter {
    connection: Connection,
    staged: Staged,
    settings: WriteSettings,
    most_row_bytes: u64,
}

impl ArchiveWriter {
    /// Begins an archive. Until [`Self::finish`] there is nothing at the path, or what was there before.
    ///
    /// # Errors
    /// Something is there and is not to be replaced, the settings cannot be, or the system refuses.
    pub fn create(path: &Path, settings: WriteSettings) -> Result<Self, ArchiveError> {
        if !settings.page_bytes.is_power_of_two() || !(512..=65_536).contains(&settings.page_bytes)
        {
            return Err(ArchiveError::BadSetting {
                what: format!("page size {}", settings.page_bytes),
                reason: "it has to be a power of two from 512 to 65536".to_owned(),
            });
        }
        let staged = Staged::create(path, settings.replace)?;
        let failed = || ArchiveError::database(staged.path());
        let connection = connect(staged.path(), settings.page_bytes).map_err(failed())?;
        let most = connection
            .limit(Limit::SQLITE_LIMIT_LENGTH)
            .map_err(failed())?;
        Ok(Self {
            connection,
            settings,
            most_row_bytes: u64::try_from(most).unwrap_or(0),
            staged,
        })
    }

    /// Adds a file, compressed if that is asked for and makes it smaller. Of `mode` the permission bits are taken.
    ///
    /// # Errors
    /// The name cannot be unpacked again or is there already, the content is too large for SQLite, or
    /// writing fails.
    pub fn add_file(
        &mut self,
        name: &str,
        mode: u32,
        mtime: i64,
        content: &[u8],
        compression: Compression,
    ) -> Result<(), ArchiveError> {
        match compression.compress(content) {
            Some(stream) => self.add_stored(
                name,
                mode,
                mtime,
                Stored::Deflated(&stream, content.len() as u64),
            ),
            None => self.add_stored(name, mode, mtime, Stored::Raw(content)),
        }
    }

    /// Adds a file whose content is in its stored form already.
    ///
    /// # Errors
    /// As [`Self::add_file`].
    pub fn add_stored(
        &mut self,
        name: &str,
        mode: u32,
        mtime: i64,
        stored: Stored<'_>,
    ) -> Result<(), ArchiveError> {
        let (data, size) = match stored {
            Stored::Raw(data) => (data, data.len() as u64),
            Stored::Deflated(data, size) => (data, size),
        };
        self.check_size(name, size)?;
        let mode = REGULAR | mode & PERMISSION_BITS;
        self.insert(name, mode, mtime, size.cast_signed(), Some(data))
    }

    /// Adds a directory.
    ///
    /// # Errors
    /// As [`Self::add_file`].
    pub fn add_directory(&mut self, name: &str, mode: u32, mtime: i64) -> Result<(), ArchiveError> {
        self.insert(name, DIRECTORY | mode & PERMISSION_BITS, mtime, 0, None)
    }

    /// Adds a symbolic link.
    ///
    /// # Errors
    /// As [`Self::add_file`].
    pub fn add_link(&mut self, name: &str, mtime: i64, target: &[u8]) -> Result<(), ArchiveError> {
        // `sqlite3 -Ac` writes -1 here, and SQLite 3.40 then cannot unpack its own archive; every version
        // takes data that is as long as `sz` as it is.
        let size = target.len().cast_signed() as i64;
        self.insert(name, SYMLINK | PERMISSION_BITS, mtime, size, Some(target))
    }

    /// Adds a file of a known size piece by piece, as it is.
    ///
    /// # Errors
    /// As [`Self::add_file`]; or the source has fewer bytes, and then nothing was added.
    pub fn add_from(
        &mut self,
        name: &str,
        mode: u32,
        mtime: i64,
        size: u64,
        source: &mut dyn Read,
    ) -> Result<(), ArchiveError> {
        self.add_pieces(name, mode, mtime, (size, size), source)
    }

    /// As [`Self::add_from`]; `sizes` are those of the data and of the content.
    pub(crate) fn add_pieces(
        &mut self,
        name: &str,
        mode: u32,
        mtime: i64,
        sizes: (u64, u64),
        source: &mut dyn Read,
    ) -> Result<(), ArchiveError> {
        let (stored_bytes, size) = sizes;
        self.check_size(name, size)?;
        check_name(name)?;
        let zeros = rusqlite::types::ToSqlOutput::ZeroBlob(stored_bytes);
        let mode = REGULAR | mode & PERMISSION_BITS;
        self.connection
            .prepare_cached(INSERT)
            .and_then(|mut insert| {
                insert.execute(params![name, mode, mtime, size.cast_signed(), zeros])
            })
            .map_err(self.failed(name))?;
        let row = self.connection.last_insert_rowid();
        let copied = self.fill(row, stored_bytes, source);
        if copied.is_err() {
            // Without a journal nothing rolls back. If this fails too, so will the commit.
            let _ = self
                .connection
                .execute("DELETE FROM sqlar WHERE rowid = ?1", [row]);
        }
        copied
    }

    fn fill(&self, row: i64, stored_bytes: u64, source: &mut dyn Read) -> Result<(), ArchiveError> {
        let failed = || ArchiveError::database(self.staged.path());
        let mut blob = self
            .connection
            .blob_open(MAIN_DB, "sqlar", "data", row, false)
            .map_err(failed())?;
        let mut piece = vec![0; PIECE_BYTES.min(stored_bytes as usize)];
        let mut offset = 0;
        while offset < stored_bytes as usize {
            let length = (stored_bytes as usize - offset).min(piece.len());
            source
                .read_exact(&mut piece[..length])
                .map_err(ArchiveError::io("read what goes into", self.staged.path()))?;
            blob.write_at(&piece[..length], offset).map_err(failed())?;
            offset += length;
        }
        blob.close().map_err(failed())
    }

    /// Bytes that the content of a file may have.
    #[must_use]
    pub fn most_content_bytes(&self, name: &str) -> u64 {
        self.most_row_bytes
            .saturating_sub(name.len() as u64 + ROW_BYTES)
    }

    /// Commits, syncs, and gives the archive its name.
    ///
    /// # Errors
    /// Writing fails, or something has taken the name; there is no new archive then.
    pub fn finish(self) -> Result<Finished, ArchiveError> {
        self.seal()?.publish()
    }

    /// Commits and syncs; the archive has its temporary name still, and can be read back.
    ///
    /// # Errors
    /// Writing fails.
    pub fn seal(self) -> Result<Sealed, ArchiveError> {
        let failed = || ArchiveError::database(self.staged.path());
        self.connection.flush_prepared_statement_cache();
        self.connection.execute_batch("COMMIT").map_err(failed())?;
        self.connection
            .close()
            .map_err(|(_, source)| failed()(source))?;
        let sync = self.staged.sync()?;
        let metadata = self.staged.path().metadata();
        let bytes = metadata
            .map_err(ArchiveError::io("look at", self.staged.path()))?
            .len();
        Ok(Sealed {
            staged: self.staged,
            replace: self.settings.replace,
            bytes,
            sync,
        })
    }

    /// Device and inode of the temporary file.
    pub(crate) fn identity(&self) -> Result<(u64, u64), ArchiveError> {
        self.staged.identity()
    }

    fn insert(
        &mut self,
        name: &str,
        mode: u32,
        mtime: i64,
        sz: i64,
        data: Option<&[u8]>,
    ) -> Result<(), ArchiveError> {
        check_name(name)?;
        let mut insert = self
            .connection
            .prepare_cached(INSERT)
            .map_err(self.failed(name))?;
        match data {
            Some(data) => insert.execute(params![name, mode, mtime, sz, data]),
            None => insert.execute(params![name, mode, mtime, sz, Null]),
        }
        .map_err(self.failed(name))?;
        Ok(())
    }

    fn check_size(&self, name: &str, bytes: u64) -> Result<(), ArchiveError> {
        let limit_bytes = self.most_content_bytes(name);
        if bytes <= limit_bytes {
            return Ok(());
        }
        Err(ArchiveError::TooLarge {
            path: name.into(),
            bytes,
            limit_bytes,
        })
    }

    fn failed(&self, name: &str) -> impl FnOnce(rusqlite::Error) -> ArchiveError {
        move |source| match source.sqlite_error_code() {
            Some(ErrorCode::ConstraintViolation) => ArchiveError::Twice {
                name: name.to_owned(),
                first: "in the archive".to_owned(),
                second: "added again".to_owned(),
            },
            _ => ArchiveError::database(self.staged.path())(source),
        }
    }
}

/// A complete and synced archive that has no name of its own yet. Dropped, it leaves nothing behind.
pub struct Sealed {
    staged: Staged,
    replace: bool,
    bytes: u64,
    sync: Duration,
}

impl Sealed {
    /// Opens it for reading back, from the device where the system allows.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn archive(&self) -> Result<Archive, ArchiveError> {
        self.staged.forget_cached();
        Archive::open(self.staged.path())
    }

    /// Gives it its name.
    ///
    /// # Errors
    /// Something has taken the name, or the system refuses.
    pub fn publish(self) -> Result<Finished, ArchiveError> {
        let directory_sync = self.staged.publish(self.replace)?;
        Ok(Finished {
            bytes: self.bytes,
            sync: self.sync + directory_sync,
        })
    }
}

/// What has become of an archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Finished {
    /// Its bytes.
    pub bytes: u64,
    /// Time for which the device was waited for.
    pub sync: Duration,
}

/// A name that could not be unpacked again is not packed.
fn check_name(name: &str) -> Result<(), ArchiveError> {
    match name::components(name) {
        Ok(parts) if parts.is_empty() => Err(ArchiveError::bad_entry(name, "its name is empty")),
        Ok(_) => Ok(()),
        Err(reason) => Err(ArchiveError::bad_entry(name, reason)),
    }
}

fn connect(path: &Path, page_bytes: u32) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    // A path without a directory could be a name with a meaning of its own.
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let connection = Connection::open_with_flags(path, flags)?;
    connection.execute_batch(&format!(
        "PRAGMA page_size = {page_bytes}; PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; \
         PRAGMA locking_mode = EXCLUSIVE; PRAGMA cache_size = -{CACHE_KIB}; \
         BEGIN EXCLUSIVE; {SCHEMA}"
    ))?;
    Ok(connection)
}
