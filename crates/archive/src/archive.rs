//! Opening an archive for reading, without changing or creating anything: what kind of file it is,
//! and connections to it. What its rows say is left to [`crate::reader`].
//!
//! Why a write-ahead log or a journal beside it is refused. To read it with either, SQLite has to
//! write: it creates an index of the log, or rolls the journal back. What is read here stays as it is.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, MAIN_DB, OpenFlags};

use crate::error::ArchiveError;
use crate::reader::Reader;

/// What every SQLite database begins with.
const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// Bytes of a database's header. Offsets in it: <https://sqlite.org/fileformat2.html>, section 1.3.
const HEADER_BYTES: usize = 100;

/// A writer that finishes soon is waited for.
const PATIENCE: Duration = Duration::from_secs(5);

/// How an archive is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenSettings {
    /// Bytes of the archive that each reader maps into memory; `u64::MAX` for all of it. Mapped reads are
    /// faster, but a program that *truncates* a mapped archive kills its readers (SIGBUS). Archives that
    /// are only ever replaced as a whole, as this library does it, are safe. Default: 0.
    pub mmap_bytes: u64,
    /// Bytes of page cache of each reader. Default: 2,048,000, as SQLite's.
    pub cache_bytes: u64,
    /// Whether a reader holds one read transaction as long as it lives: it sees one state of the archive and
    /// reads faster, and a program that changes the archive in place has to wait. Default: true.
    pub hold: bool,
}

impl Default for OpenSettings {
    fn default() -> Self {
        Self {
            mmap_bytes: 0,
            cache_bytes: 2_048_000,
            hold: true,
        }
    }
}

/// An archive that can be read, by many threads at once: each takes a [`Reader`] of its own.
#[derive(Debug, Clone)]
pub struct Archive {
    source: Source,
    settings: OpenSettings,
    bytes: u64,
    page_bytes: u32,
}

#[derive(Debug, Clone)]
enum Source {
    /// `immutable`: it is in write-ahead-log mode with an empty log, and would be written to.
    File {
        path: PathBuf,
        immutable: bool,
    },
    Memory(Arc<[u8]>),
}

impl Archive {
    /// Opens an archive with default settings.
    ///
    /// # Errors
    /// It is missing, no archive, truncated, in the midst of a change, or locked.
    pub fn open(path: &Path) -> Result<Self, ArchiveError> {
        Self::open_with(path, OpenSettings::default())
    }

    /// Opens an archive.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_with(path: &Path, settings: OpenSettings) -> Result<Self, ArchiveError> {
        // An absolute path is no name with a meaning of its own, as `:memory:`.
        let path = std::fs::canonicalize(path).map_err(missing_or_failed(path))?;
        let metadata = path.metadata().map_err(missing_or_failed(&path))?;
        if !metadata.is_file() {
            return Err(not_an_archive(&path, "it is not a regular file"));
        }
        let mut head = Vec::with_capacity(HEADER_BYTES);
        File::open(&path)
            .and_then(|file| file.take(HEADER_BYTES as u64).read_to_end(&mut head))
            .map_err(ArchiveError::io("read", &path))?;
        let header = Header::of(&head, &path)?;
        if let Some(companion) = unfinished_companion(&path) {
            return Err(ArchiveError::Unfinished { path, companion });
        }
        let immutable = header.write_ahead_log;
        let archive = Self {
            source: Source::File { path, immutable },
            settings,
            bytes: metadata.len(),
            page_bytes: header.page_bytes,
        };
        archive.check_length(&header)?;
        // Whether it is an archive is found out now and not at the first read.
        archive.reader()?;
        Ok(archive)
    }

    /// Reads an archive that is in memory, for example one that a program carries with it. Each
    /// reader has a copy.
    ///
    /// # Errors
    /// It is no archive, or truncated.
    pub fn from_bytes(bytes: impl Into<Arc<[u8]>>) -> Result<Self, ArchiveError> {
        let bytes: Arc<[u8]> = bytes.into();
        let header = Header::of(&bytes[..bytes.len().min(HEADER_BYTES)], Path::new("memory"))?;
        let archive = Self {
            bytes: bytes.len() as u64,
            source: Source::Memory(bytes),
            settings: OpenSettings::default(),
            page_bytes: header.page_bytes,
        };
        archive.check_length(&header)?;
        archive.reader()?;
        Ok(archive)
    }

    /// A reader for one thread at a time.
    ///
    /// # Errors
    /// SQLite refuses, or what is there is no archive any more.
    pub fn reader(&self) -> Result<Reader, ArchiveError> {
        Reader::new(self.connect()?, self.path().to_owned(), self.settings.hold)
    }

    /// Where it is; `memory` for one that is in memory.
    #[must_use]
    pub fn path(&self) -> &Path {
        match &self.source {
            Source::File { path, .. } => path,
            Source::Memory(_) => Path::new("memory"),
        }
    }

    /// Bytes of the whole archive.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Bytes of one page.
    #[must_use]
    pub fn page_bytes(&self) -> u32 {
        self.page_bytes
    }

    fn check_length(&self, header: &Header) -> Result<(), ArchiveError> {
        // SQLite would take a last page that is cut short as filled up with zeros.
        match header.expected_bytes {
            Some(expected_bytes) if self.bytes < expected_bytes => Err(ArchiveError::Truncated {
                path: self.path().to_owned(),
                expected_bytes,
                found_bytes: self.bytes,
            }),
            _ => Ok(()),
        }
    }

    fn connect(&self) -> Result<Connection, ArchiveError> {
        let connection = match &self.source {
            Source::File { path, immutable } => open_file(path, *immutable),
            Source::Memory(bytes) => open_bytes(bytes),
        }
        .map_err(ArchiveError::database(self.path()))?;
        self.put_in_force(&connection)
            .map_err(ArchiveError::database(self.path()))?;
        Ok(connection)
    }

    fn put_in_force(&self, connection: &Connection) -> rusqlite::Result<()> {
        connection.busy_timeout(PATIENCE)?;
        // The archive may be anybody's: nothing that stands in its schema is to be trusted. (Its pages are
        // checked where they are used. `cell_size_check` would check a whole page at every use, which
        // takes longer than the read; the integrity check does that once.)
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false)?;
        let mapped = i64::try_from(self.settings.mmap_bytes).unwrap_or(i64::MAX);
        let cache_kib = i64::try_from(self.settings.cache_bytes / 1024).unwrap_or(i64::MAX);
        connection.execute_batch(&format!(
            "PRAGMA query_only = ON; \
             PRAGMA cache_size = -{}; PRAGMA mmap_size = {mapped}",
            cache_kib.min(i64::from(i32::MAX))
        ))
    }
}

fn open_file(path: &Path, immutable: bool) -> rusqlite::Result<Connection> {
    // One thread at a time uses the connection, so SQLite need not lock it.
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    if immutable {
        let address = format!("file:{}?immutable=1", escaped(path));
        Connection::open_with_flags(address, flags | OpenFlags::SQLITE_OPEN_URI)
    } else {
        Connection::open_with_flags(path, flags)
    }
}

fn open_bytes(bytes: &[u8]) -> rusqlite::Result<Connection> {
    let mut connection = Connection::open_in_memory()?;
    connection.deserialize_read_exact(MAIN_DB, bytes, bytes.len(), true)?;
    Ok(connection)
}

/// A path as part of a URI.
fn escaped(path: &Path) -> String {
    use std::fmt::Write;
    use std::os::unix::ffi::OsStrExt;
    let mut text = String::new();
    for byte in path.as_os_str().as_bytes() {
        if byte.is_ascii_alphanumeric() || b"/-_.".contains(byte) {
            text.push(char::from(*byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(text, "%{byte:02x}");
        }
    }
    text
}

/// A journal or a log beside a database that is not empty.
pub(crate) fn unfinished_companion(path: &Path) -> Option<PathBuf> {
    ["-journal", "-wal"].into_iter().find_map(|suffix| {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        let companion = PathBuf::from(name);
        let metadata = companion.symlink_metadata().ok()?;
        (metadata.len() > 0).then_some(companion)
    })
}

/// What the header of a database says.
struct Header {
    page_bytes: u32,
    /// Not known if a very old SQLite has written it last.
    expected_bytes: Option<u64>,
    write_ahead_log: bool,
}

impl Header {
    fn of(head: &[u8], path: &Path) -> Result<Self, ArchiveError> {
        if head.is_empty() {
            return Err(not_an_archive(path, "it is empty"));
        }
        if !head.starts_with(MAGIC) {
            return Err(not_an_archive(path, "it is not an SQLite database"));
        }
        if head.len() < HEADER_BYTES {
            return Err(ArchiveError::Truncated {
                path: path.to_owned(),
                expected_bytes: HEADER_BYTES as u64,
                found_bytes: head.len() as u64,
            });
        }
        let number =
            |at: usize| u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let page_bytes = match u16::from_be_bytes([head[16], head[17]]) {
            1 => 65_536,
            bytes => u32::from(bytes),
        };
        let pages_are_valid = number(24) == number(92);
        Ok(Self {
            page_bytes,
            expected_bytes: pages_are_valid.then(|| u64::from(number(28)) * u64::from(page_bytes)),
            write_ahead_log: head[18] == 2 || head[19] == 2,
        })
    }
}

fn not_an_archive(path: &Path, reason: &str) -> ArchiveError {
    ArchiveError::NotAnArchive {
        path: path.to_owned(),
        reason: reason.to_owned(),
    }
}

fn missing_or_failed(path: &Path) -> impl FnOnce(std::io::Error) -> ArchiveError {
    let path = path.to_owned();
    move |source| match source.kind() {
        std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory => {
            ArchiveError::Missing { path }
        }
        _ => ArchiveError::io("open", &path)(source),
    }
}
