//! One entry of an archive: what its row says, in types. Reading its content is
//! [`crate::lookup`]'s business.

use rusqlite::Row;
use rusqlite::types::ValueRef;

use crate::error::ArchiveError;

/// Bits of `mode` that say what an entry is, as in `stat`.
pub(crate) const KIND_BITS: u32 = 0o170_000;
/// A regular file.
pub(crate) const REGULAR: u32 = 0o100_000;
/// A directory.
pub(crate) const DIRECTORY: u32 = 0o040_000;
/// A symbolic link.
pub(crate) const SYMLINK: u32 = 0o120_000;
/// Bits of `mode` that are kept when packing and when unpacking, as `sqlite3 -Ax` does: who may
/// read, write and execute. Set-user-id, set-group-id and sticky bits are not among them.
pub(crate) const PERMISSION_BITS: u32 = 0o777;

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link; its content is what it points at.
    Symlink,
    /// A device, a socket, a pipe or nothing known: it is listed, and never unpacked.
    Other,
}

/// An entry without its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Name, as it stands in the archive.
    pub name: String,
    /// What it is.
    pub kind: Kind,
    /// Kind and permissions, as in `stat`.
    pub mode: u32,
    /// Time of the last change, seconds since 1970.
    pub mtime: i64,
    /// Bytes of its content, as the archive says; nothing has checked it yet.
    pub size: u64,
    /// Bytes that are stored: fewer than `size` if they are compressed.
    pub stored_bytes: u64,
    /// Row of the table `sqlar`.
    pub row: i64,
}

/// Columns of an entry, in the order that [`from_row`] takes them. `octet_length` and `typeof` read
/// the head of a record only, not the content.
pub(crate) const COLUMNS: &str = "rowid, name, mode, mtime, sz, octet_length(data), typeof(data)";

/// Makes an entry of a row.
///
/// # Errors
/// What stands in it cannot be an entry, or SQLite fails.
pub(crate) fn from_row(row: &Row<'_>) -> Result<Entry, RowFault> {
    let id: i64 = row.get(0)?;
    let name = match row.get_ref(1)? {
        ValueRef::Text(bytes) => match std::str::from_utf8(bytes) {
            Ok(name) => name.to_owned(),
            Err(_) => {
                let shown = String::from_utf8_lossy(bytes).into_owned();
                return Err(RowFault::bad(&shown, "its name is not UTF-8"));
            }
        },
        _ => {
            return Err(RowFault::bad(
                &format!("row {id}"),
                "its name is not a text",
            ));
        }
    };
    let bad = |reason: &str| RowFault::bad(&name, reason);
    let mode = match row.get_ref(2)? {
        ValueRef::Integer(mode) => u32::try_from(mode).map_err(|_| bad("its mode is no mode"))?,
        _ => return Err(bad("its mode is not a number")),
    };
    let mtime = match row.get_ref(3)? {
        ValueRef::Integer(mtime) => mtime,
        // As a program without seconds may leave it.
        ValueRef::Null => 0,
        _ => return Err(bad("its mtime is not a number")),
    };
    let stored_bytes = match row.get_ref(5)? {
        ValueRef::Integer(bytes) => u64::try_from(bytes).unwrap_or(0),
        _ => 0,
    };
    let data_type = row.get_ref(6)?.as_bytes().unwrap_or_default();
    if !matches!(data_type, b"blob" | b"text" | b"null") {
        return Err(bad("its data is not a blob"));
    }
    let kind = kind_of(mode, data_type == b"null");
    let size = match row.get_ref(4)? {
        ValueRef::Integer(size) => size_of(kind, size, stored_bytes).map_err(bad)?,
        _ => return Err(bad("its sz is not a number")),
    };
    Ok(Entry {
        name,
        kind,
        mode,
        mtime,
        size,
        stored_bytes,
        row: id,
    })
}

/// A mode without a kind is a file, or, where there is no data, a directory.
pub(crate) fn kind_of(mode: u32, has_no_data: bool) -> Kind {
    match mode & KIND_BITS {
        REGULAR => Kind::File,
        DIRECTORY => Kind::Directory,
        SYMLINK => Kind::Symlink,
        0 if has_no_data => Kind::Directory,
        0 => Kind::File,
        _ => Kind::Other,
    }
}

/// `sz` is the size of a file, 0 for a directory, and for a link the length of its target or, as `sqlite3 -Ac`
/// writes it, -1: targets are stored as they are.
fn size_of(kind: Kind, sz: i64, stored_bytes: u64) -> Result<u64, &'static str> {
    match (kind, u64::try_from(sz)) {
        (Kind::Directory, Ok(0)) if stored_bytes == 0 => Ok(0),
        (Kind::Directory, _) => Err("it is a directory with content"),
        (Kind::Symlink, Err(_) | Ok(0)) => Ok(stored_bytes),
        (_, Ok(size)) => Ok(size),
        (_, Err(_)) => Err("its sz is negative"),
    }
}

/// Why a row is no entry.
pub(crate) enum RowFault {
    Bad(ArchiveError),
    Sqlite(rusqlite::Error),
}

impl RowFault {
    fn bad(name: &str, reason: &str) -> Self {
        Self::Bad(ArchiveError::bad_entry(name, reason))
    }
}

impl From<rusqlite::Error> for RowFault {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}
