//! The first hundred bytes of a run file, read before SQLite touches it: whether it is a database,
//! whose, and in which format. Opening a foreign database with SQLite can leave files beside it
//! (a write-ahead log and its index), so everything that is not ours is refused here.
//!
//! Offsets are from "Database File Format", section 1.3, <https://www.sqlite.org/fileformat.html>.
//! Tables and their contents are [`crate::access`]'s and [`crate::contents`]'s business.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use crate::error::RunFileError;
use crate::schema::{DURABILITY, FileKind, MEASUREMENT};

const MAGIC: &[u8; 16] = b"SQLite format 3\0";
const HEADER_BYTES: usize = 100;
/// SQLite's smallest page, and so its smallest database.
const SMALLEST_BYTES: u64 = 512;

/// What the header of a run file says.
#[derive(Debug)]
pub(crate) struct Header {
    /// Whether the file is in write-ahead-log mode. Never by us, but any tool can switch it.
    pub(crate) write_ahead_log: bool,
    /// Bytes that the file should have; 0 where the header does not say.
    pub(crate) expected_bytes: u64,
    /// Bytes that it has.
    pub(crate) found_bytes: u64,
}

impl Header {
    /// Reads the header of a run file and checks that it is one of that kind.
    ///
    /// Closing the file drops all POSIX locks that this process holds on it ("How To Corrupt An
    /// SQLite Database File", section 2.2). [`crate::RunFile`] holds locks only inside its
    /// methods, so that is harmless as long as no other thread reads the same file by its path.
    ///
    /// # Errors
    /// Not a file, not a database, another application's, a newer format, or cut off here.
    pub(crate) fn read(path: &Path, kind: &FileKind) -> Result<Self, RunFileError> {
        let refused = |source| RunFileError::from_file(path, source);
        let metadata = fs::metadata(path).map_err(refused)?;
        // Asked before opening: opening a pipe would wait for its other end.
        if !metadata.is_file() {
            return Err(RunFileError::NotAFile {
                path: path.to_owned(),
            });
        }
        let mut bytes = Vec::with_capacity(HEADER_BYTES);
        File::open(path)
            .and_then(|file| file.take(HEADER_BYTES as u64).read_to_end(&mut bytes))
            .map_err(refused)?;
        if !bytes.starts_with(MAGIC) {
            return Err(RunFileError::NotADatabase {
                path: path.to_owned(),
            });
        }
        let Some(bytes) = bytes.first_chunk::<HEADER_BYTES>() else {
            return Err(RunFileError::Truncated {
                path: path.to_owned(),
                expected_bytes: SMALLEST_BYTES,
                found_bytes: metadata.len(),
            });
        };
        check_marks(path, bytes, kind)?;
        Ok(Self {
            write_ahead_log: bytes[18] == 2 || bytes[19] == 2,
            expected_bytes: expected_bytes(bytes),
            found_bytes: metadata.len(),
        })
    }

    /// Reads the header of a run file of whatever kind; `None` if it is none.
    pub(crate) fn read_any(path: &Path) -> Option<Self> {
        [&MEASUREMENT, &DURABILITY]
            .into_iter()
            .find_map(|kind| Self::read(path, kind).ok())
    }
}

fn check_marks(
    path: &Path,
    bytes: &[u8; HEADER_BYTES],
    kind: &FileKind,
) -> Result<(), RunFileError> {
    let path = path.to_owned();
    let application_id = number(bytes, 68);
    if application_id != kind.application_id {
        return Err(match application_id {
            id if id == DURABILITY.application_id => RunFileError::DurabilityRun { path },
            id if id == MEASUREMENT.application_id => RunFileError::MeasurementRun { path },
            application_id => RunFileError::OtherApplication {
                path,
                application_id,
            },
        });
    }
    let known = kind.format_version;
    match number(bytes, 60) {
        0 => Err(RunFileError::Damaged {
            path,
            reason: "it has no format version".to_owned(),
        }),
        found if found > known => Err(RunFileError::NewerFormat { path, found, known }),
        _ => Ok(()),
    }
}

/// Size of a page times the number of pages, if the latter is up to date.
fn expected_bytes(bytes: &[u8; HEADER_BYTES]) -> u64 {
    let page_bytes = match u16::from_be_bytes([bytes[16], bytes[17]]) {
        1 => 65_536,
        bytes => u64::from(bytes),
    };
    let is_current = number(bytes, 24) == number(bytes, 92);
    if is_current {
        page_bytes * u64::from(number(bytes, 28))
    } else {
        0
    }
}

/// A 32-bit number, most significant byte first.
fn number(bytes: &[u8; HEADER_BYTES], offset: usize) -> u32 {
    u32::from_be_bytes([
        bytes[offset],
        bytes[offset + 1],
        bytes[offset + 2],
        bytes[offset + 3],
    ])
}
