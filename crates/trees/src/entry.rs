//! What a walk tells about one entry of a folder.

use rustix::fs::{FileType, Stat};

/// What an entry is, with the letter that `find -type` has for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EntryKind {
    /// A regular file: `f`.
    File,
    /// A folder: `d`.
    Folder,
    /// A symbolic link: `l`.
    SymbolicLink,
    /// A named pipe: `p`.
    Pipe,
    /// A socket: `s`.
    Socket,
    /// A character device: `c`.
    CharacterDevice,
    /// A block device: `b`.
    BlockDevice,
    /// The system did not say: `?`.
    Unknown,
}

impl EntryKind {
    /// One letter.
    #[must_use]
    pub fn letter(self) -> &'static str {
        match self {
            Self::File => "f",
            Self::Folder => "d",
            Self::SymbolicLink => "l",
            Self::Pipe => "p",
            Self::Socket => "s",
            Self::CharacterDevice => "c",
            Self::BlockDevice => "b",
            Self::Unknown => "?",
        }
    }

    /// Whether it is a pipe, a socket or a device.
    #[must_use]
    pub fn is_special(self) -> bool {
        matches!(
            self,
            Self::Pipe | Self::Socket | Self::CharacterDevice | Self::BlockDevice
        )
    }
}

impl From<FileType> for EntryKind {
    fn from(file_type: FileType) -> Self {
        match file_type {
            FileType::RegularFile => Self::File,
            FileType::Directory => Self::Folder,
            FileType::Symlink => Self::SymbolicLink,
            FileType::Fifo => Self::Pipe,
            FileType::Socket => Self::Socket,
            FileType::CharacterDevice => Self::CharacterDevice,
            FileType::BlockDevice => Self::BlockDevice,
            FileType::Unknown => Self::Unknown,
        }
    }
}

/// What the system keeps of an entry beside its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Status {
    /// Length of the content in bytes.
    pub size_bytes: u64,
    /// Last change of the content, in nanoseconds since 1970 UTC; the nearest that 64 bits hold if the
    /// file claims to be from before 1678 or after 2262.
    pub mtime_ns: i64,
    /// Number of the file in its filesystem.
    pub inode: u64,
    /// Number of the filesystem.
    pub device: u64,
    /// Names of the file.
    pub links: u64,
}

// The types of these fields differ from system to system.
#[allow(clippy::unnecessary_cast, clippy::cast_lossless)]
impl From<&Stat> for Status {
    fn from(stat: &Stat) -> Self {
        let whole = (stat.st_mtime as i64).saturating_mul(1_000_000_000);
        Self {
            size_bytes: u64::try_from(stat.st_size).unwrap_or(0),
            mtime_ns: whole.saturating_add(stat.st_mtime_nsec as i64),
            inode: stat.st_ino as u64,
            device: stat.st_dev as u64,
            links: stat.st_nlink as u64,
        }
    }
}

/// One entry of a folder.
#[derive(Debug, Clone, Copy)]
pub struct Entry<'a> {
    /// Name in its folder: any bytes but `/` and NUL.
    pub name: &'a [u8],
    /// The same, if it is UTF-8.
    pub text: Option<&'a str>,
    /// What it is.
    pub kind: EntryKind,
    /// `None` if the system refused to tell.
    pub status: Option<Status>,
}
