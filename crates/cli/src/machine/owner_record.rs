//! The record of who made a path: the JSON in a sidecar file, and the identity of the object that
//! it speaks of, so that a foreign object under the same name is not taken for ours.
//!
//! When a record is written and what follows from it is left to `ownership` and `scratch`.

use std::collections::hash_map::RandomState;
use std::fs::{File, Metadata};
use std::hash::BuildHasher;
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::UNIX_EPOCH;

use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

/// The tool's name as records state it.
const TOOL: &str = "sqlitmus";

/// The version of the record's format; records of a later one are not ours to judge.
const FORMAT: u32 = 1;

/// The longest record that is read, in bytes; ours have a few hundred.
const RECORD_BYTES_MAX: u64 = 64 << 10;

/// What kind of object a record speaks of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ObjectKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
}

/// What tells one file or directory from every other one, whatever its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// File or directory.
    pub kind: ObjectKind,
    /// Device number; it may differ after a restart of the machine.
    pub device: u64,
    /// Inode number; it may be given to a new file once the old one is deleted.
    pub inode: u64,
    /// When the object was created, in nanoseconds since 1970, where the filesystem keeps that.
    pub birth_time_ns: Option<u64>,
}

impl Identity {
    /// The identity behind metadata; `None` for what we never create: links, devices, sockets.
    pub fn of(metadata: &Metadata) -> Option<Self> {
        let kind = if metadata.is_dir() {
            ObjectKind::Directory
        } else if metadata.is_file() {
            ObjectKind::File
        } else {
            return None;
        };
        let birth_time_ns = metadata
            .created()
            .ok()
            .and_then(|time| time.duration_since(UNIX_EPOCH).ok())
            .and_then(|duration| u64::try_from(duration.as_nanos()).ok());
        Some(Self {
            kind,
            device: metadata.dev(),
            inode: metadata.ino(),
            birth_time_ns,
        })
    }

    /// Whether both are the same object. With both birth times known the device's number does not
    /// count, since it can change when the machine restarts.
    pub fn is_same_object(&self, other: &Self) -> bool {
        let is_same_origin = match (self.birth_time_ns, other.birth_time_ns) {
            (Some(own), Some(others)) => own == others,
            _ => self.device == other.device,
        };
        self.kind == other.kind && self.inode == other.inode && is_same_origin
    }
}

/// How far the creation or removal of an object has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RecordState {
    /// Announced; nothing of ours is under the name yet.
    Creating,
    /// The object with this identity is or will be under the name.
    Ready,
    /// The object is being removed, so its content may be incomplete.
    Removing,
}

/// What a sidecar says of the path beside it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnerRecord {
    tool: String,
    format: u32,
    /// The version of the tool that made the object.
    pub version: String,
    /// What the object is, in words for the reader: `store`, `run file`.
    pub what: String,
    /// Random hexadecimal digits; part of the names used while the object is made.
    pub nonce: String,
    /// How far it has come.
    pub state: RecordState,
    /// The object, once it exists.
    pub identity: Option<Identity>,
    /// Whether the object was there before, empty, and was only taken into use.
    #[serde(default)]
    pub adopted: bool,
}

/// What was found where a record is expected.
#[derive(Debug)]
pub enum RecordReading {
    /// Nothing is there.
    Missing,
    /// Something is there that is no record of ours, with the reason.
    NotOurs(String),
    /// A record, and the user who owns its file.
    Found {
        /// What it says.
        record: OwnerRecord,
        /// The owner of the record's file, by number.
        user: u32,
    },
}

impl OwnerRecord {
    /// The record of an object that is about to be created.
    pub fn creating(what: &str) -> Self {
        Self {
            tool: TOOL.to_owned(),
            format: FORMAT,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            what: what.to_owned(),
            nonce: nonce(),
            state: RecordState::Creating,
            identity: None,
            adopted: false,
        }
    }

    /// Reads a record; never follows a link.
    ///
    /// # Errors
    /// If the operating system fails; what is no record is not an error.
    pub fn read(path: &Path) -> io::Result<RecordReading> {
        let not_ours = |reason: &str| Ok(RecordReading::NotOurs(reason.to_owned()));
        // NONBLOCK, so that a planted pipe cannot make us wait.
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let opened = File::options()
            .read(true)
            .custom_flags(flags.bits() as i32)
            .open(path);
        let file = match opened {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(RecordReading::Missing);
            }
            Err(error) if error.raw_os_error() == Some(libc::ELOOP) => {
                return not_ours("the owner file is a symbolic link");
            }
            Err(error) => return Err(error),
        };
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return not_ours("the owner file is no regular file");
        }
        let mut text = Vec::new();
        file.take(RECORD_BYTES_MAX).read_to_end(&mut text)?;
        let Ok(record) = serde_json::from_slice::<Self>(&text) else {
            return not_ours("the owner file is not readable as one");
        };
        if record.tool != TOOL {
            return not_ours("the owner file is another tool's");
        }
        if record.format > FORMAT {
            return not_ours("the owner file was written by a later version");
        }
        // The nonce becomes part of names that are deleted: it must not lead elsewhere.
        if !is_nonce(&record.nonce) {
            return not_ours("the owner file is damaged");
        }
        Ok(RecordReading::Found {
            record,
            user: metadata.uid(),
        })
    }

    /// Writes the record into a new file that appears complete or not at all, and flushes it.
    ///
    /// # Errors
    /// [`io::ErrorKind::AlreadyExists`] if anything is at the path.
    pub fn write_new(&self, path: &Path) -> io::Result<()> {
        let text = self.to_text()?;
        #[cfg(target_os = "linux")]
        if write_unnamed_then_link(&text, path)? {
            return Ok(());
        }
        let mut file = File::options().write(true).create_new(true).open(path)?;
        file.write_all(&text)?;
        file.sync_all()
    }

    /// Replaces the record at `path` in one step, by way of a new file at `staged`.
    ///
    /// # Errors
    /// If the operating system fails; the old record then stays.
    pub fn replace(&self, path: &Path, staged: &Path) -> io::Result<()> {
        // Left by a crash: the name holds our nonce, so it is our own file.
        match std::fs::remove_file(staged) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        self.write_new(staged)?;
        std::fs::rename(staged, path)
    }

    fn to_text(&self) -> io::Result<Vec<u8>> {
        let mut text = serde_json::to_vec_pretty(self)?;
        text.push(b'\n');
        Ok(text)
    }
}

/// Writes a file that has no name until it is complete. `false` if the filesystem cannot do that.
#[cfg(target_os = "linux")]
fn write_unnamed_then_link(text: &[u8], path: &Path) -> io::Result<bool> {
    use rustix::fs::{AtFlags, CWD, Mode};
    use std::os::fd::AsRawFd;
    let folder = path
        .parent()
        .filter(|folder| *folder != Path::new(""))
        .unwrap_or(Path::new("."));
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    let Ok(file) = rustix::fs::open(folder, flags, Mode::from_raw_mode(0o644)) else {
        // Not supported, or not permitted: the plain way will say what is wrong.
        return Ok(false);
    };
    let mut file = File::from(file);
    file.write_all(text)?;
    file.sync_all()?;
    let unnamed = format!("/proc/self/fd/{}", file.as_raw_fd());
    match rustix::fs::linkat(CWD, unnamed, CWD, path, AtFlags::SYMLINK_FOLLOW) {
        Ok(()) => Ok(true),
        Err(error) if error == rustix::io::Errno::EXIST => Err(error.into()),
        // Without /proc the link cannot be made; the unnamed file vanishes with its handle.
        Err(_) => Ok(false),
    }
}

const NONCE_DIGITS: usize = 32;

/// Random digits from the keys that the standard library draws from the operating system for its
/// hash tables: unpredictable enough to never meet a name by chance.
fn nonce() -> String {
    let half = || RandomState::new().hash_one(std::process::id());
    format!("{:016x}{:016x}", half(), half())
}

fn is_nonce(text: &str) -> bool {
    text.len() == NONCE_DIGITS && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(path: &Path) -> RecordReading {
        OwnerRecord::read(path).expect("readable")
    }

    fn reason(path: &Path) -> String {
        match record(path) {
            RecordReading::NotOurs(reason) => reason,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_record_is_read_back_and_replaced() {
        let folder = tempfile::tempdir().expect("temporary directory");
        let path = folder.path().join("owner");
        let mut written = OwnerRecord::creating("store");
        written.write_new(&path).expect("write");
        let again = written.write_new(&path).expect_err("exists");
        assert_eq!(again.kind(), io::ErrorKind::AlreadyExists);

        let metadata = std::fs::symlink_metadata(folder.path()).expect("metadata");
        written.identity = Identity::of(&metadata);
        written.state = RecordState::Ready;
        let staged = folder.path().join("staged");
        std::fs::write(&staged, "left by a crash").expect("write");
        written.replace(&path, &staged).expect("replace");
        match record(&path) {
            RecordReading::Found { record, user } => {
                assert_eq!(record, written);
                assert_eq!(user, metadata.uid());
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(std::fs::read_dir(folder.path()).expect("list").count(), 1);
    }

    #[test]
    fn what_is_no_record_of_ours_says_why() {
        let folder = tempfile::tempdir().expect("temporary directory");
        let path = |name: &str| folder.path().join(name);
        assert!(matches!(record(&path("missing")), RecordReading::Missing));

        let real = path("real");
        OwnerRecord::creating("x").write_new(&real).expect("write");
        std::os::unix::fs::symlink(&real, path("link")).expect("link");
        assert!(reason(&path("link")).contains("symbolic link"));

        std::fs::create_dir(path("directory")).expect("folder");
        assert!(reason(&path("directory")).contains("regular file"));

        std::fs::write(path("empty"), "").expect("write");
        assert!(reason(&path("empty")).contains("not readable"));

        let text = std::fs::read_to_string(&real).expect("read");
        let planted = |name: &str, from: &str, to: &str| {
            std::fs::write(path(name), text.replacen(from, to, 1)).expect("write");
            reason(&path(name))
        };
        assert!(planted("tool", "\"sqlitmus\"", "\"other\"").contains("another tool"));
        assert!(planted("format", "\"format\": 1", "\"format\": 2").contains("later version"));
        assert!(planted("nonce", "\"nonce\": \"", "\"nonce\": \"../../").contains("damaged"));
    }

    #[test]
    fn a_new_object_under_the_same_name_is_another_one() {
        let folder = tempfile::tempdir().expect("temporary directory");
        let path = folder.path().join("file");
        let identity = || {
            let metadata = std::fs::symlink_metadata(&path).expect("metadata");
            Identity::of(&metadata).expect("identity")
        };
        std::fs::write(&path, "one").expect("write");
        let first = identity();
        std::fs::write(&path, "changed").expect("write");
        assert!(first.is_same_object(&identity()), "content does not count");
        std::fs::rename(&path, folder.path().join("other")).expect("rename");
        std::fs::write(&path, "two").expect("write");
        assert!(!first.is_same_object(&identity()));
    }

    #[test]
    fn the_device_number_counts_only_without_birth_times() {
        let one = Identity {
            kind: ObjectKind::File,
            device: 1,
            inode: 7,
            birth_time_ns: Some(5),
        };
        let restarted = Identity { device: 2, ..one };
        assert!(one.is_same_object(&restarted));
        let without = Identity {
            birth_time_ns: None,
            ..restarted
        };
        assert!(!one.is_same_object(&without));
        let reused = Identity {
            birth_time_ns: Some(6),
            ..one
        };
        assert!(!one.is_same_object(&reused));
    }

    #[test]
    fn nonces_differ() {
        assert!(is_nonce(&nonce()));
        assert_ne!(nonce(), nonce());
    }
}
