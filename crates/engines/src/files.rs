//! The `files` engine: one file for each blob, in one directory or in a tree of directories, read
//! and written through a choice of interfaces. With the default settings it does what SQLite's
//! `kvtest` does.
//!
//! # Names
//! With `layout = flat` blob 1 is the file `000001` (`%06d`); the name of a key above 999,999 is
//! as long as it must be. With `layout = tree` it is `00/00/01` (`%02d/%02d/%02d` of key / 10000,
//! key / 100 % 100 and key % 100), so no folder has more than 100 entries, except the outermost
//! one, which for keys above 999,999 gets `100` and so on, as in `kvtest`. Entries with other
//! names are not ours and are ignored.
//!
//! # Batches
//! Files know no transactions: each `put` and `delete` is visible, and as durable as it will be,
//! when it returns; `begin`, `commit` and `settle` do nothing. The blocks that unsynced writes
//! leave dirty are flushed by whoever measures (syncfs), not here. A reader may meet a blob that
//! is half overwritten, except with `write = rename`; with `api = mmap` a file that is cut short
//! while it is read kills the reader (SIGBUS).
//!
//! # Parts
//! With `part` only some of the calls are made that reading or overwriting a blob takes, so that
//! what they cost can be measured by itself: see `part`. What is not delivered whole cannot be
//! verified, and is no way of storing anything.
//!
//! # Durability
//! Bytes that `write` has accepted are in the page cache and survive the process. What survives a
//! loss of power is argued at [`Files::durability`]. Which file system the files are on, and how
//! it is mounted, is for the caller to find out.

mod part;
mod path;
mod read;
mod stdio;
#[cfg(test)]
mod tests;
mod walk;
mod write;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::fs::{CWD, Mode, OFlags, fsync, mkdir, open};
use rustix::io::Errno;
use sqlitmus_core::case::Durability;
use sqlitmus_core::environment::said;
use sqlitmus_core::settings::{SettingKind, SettingSpecification, Settings, SettingsError};

use crate::engine::{Capabilities, Content, Engine, EngineError, ReadBack, Session, Store, Writer};
use part::{KeptFiles, Part};
use path::BlobPath;

pub use path::Layout;
pub use walk::layout_of;
pub(crate) use write::{close, file_mode, write_at_start};

/// One file for each blob.
#[derive(Debug, Clone, Copy)]
pub struct Files;

const SETTINGS: &[SettingSpecification] = &[
    SettingSpecification {
        name: "layout",
        kind: SettingKind::Choice(&["flat", "tree"]),
        default: "flat",
        stored: true,
        about: "one directory, or a tree of at most 100 entries a folder",
    },
    SettingSpecification {
        name: "api",
        kind: SettingKind::Choice(&["stdio", "open", "openat", "mmap"]),
        default: "stdio",
        stored: false,
        about: "stat and C streams as kvtest does; system calls by full path; relative to an open \
                directory; memory-mapped",
    },
    SettingSpecification {
        name: "write",
        kind: SettingKind::Choice(&["truncate", "in-place", "rename"]),
        default: "truncate",
        stored: false,
        about: "empty the file and fill it again; write over the old bytes; replace the file",
    },
    SettingSpecification {
        name: "sync",
        kind: SettingKind::Choice(&["none", "fsync", "fsync+dir"]),
        default: "none",
        stored: false,
        about: "after each write nothing, fsync, or fsync of the file and, if names changed, of \
                its directory",
    },
    SettingSpecification {
        name: "part",
        kind: SettingKind::Choice(Part::WORDS),
        default: "all",
        stored: false,
        about: "all of the work, or for measuring its parts: stat; fstat of a file that stays \
                open; open and close; content of a file that stays open",
    },
];

/// How files are read and written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Api {
    /// C streams by full path, as `kvtest`.
    Stdio,
    /// System calls by full path.
    Open,
    /// System calls relative to the open root directory.
    Openat,
    /// The same, but contents are mapped rather than read.
    Mmap,
}

/// How a blob is overwritten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Overwrite {
    Truncate,
    InPlace,
    Rename,
}

/// What is forced to the device before a write returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Synchronise {
    Nothing,
    File,
    FileAndDirectory,
}

#[derive(Debug, Clone, Copy)]
struct Means {
    layout: Layout,
    api: Api,
    overwrite: Overwrite,
    synchronise: Synchronise,
    part: Part,
}

impl Means {
    /// The last arm of each match stands for the one value that is left: resolved settings have
    /// no others.
    fn from(settings: &Settings) -> Result<Self, EngineError> {
        let resolved = settings.resolve(Files.name(), SETTINGS)?;
        let value = |name| resolved.get(name).unwrap_or_default();
        Ok(Self {
            layout: match value("layout") {
                "flat" => Layout::Flat,
                _ => Layout::Tree,
            },
            api: match value("api") {
                "stdio" => Api::Stdio,
                "open" => Api::Open,
                "openat" => Api::Openat,
                _ => Api::Mmap,
            },
            overwrite: match value("write") {
                "truncate" => Overwrite::Truncate,
                "in-place" => Overwrite::InPlace,
                _ => Overwrite::Rename,
            },
            synchronise: match value("sync") {
                "none" => Synchronise::Nothing,
                "fsync" => Synchronise::File,
                _ => Synchronise::FileAndDirectory,
            },
            part: Part::of(value("part")),
        })
    }

    fn read_back(self) -> ReadBack {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let mut back = ReadBack::from([
            pair("layout", self.layout.word()),
            match self.api {
                Api::Stdio => pair("api", "stdio"),
                Api::Open => pair("api", "open"),
                Api::Openat => pair("api", "openat"),
                Api::Mmap => pair("api", "mmap"),
            },
            match self.overwrite {
                Overwrite::Truncate => pair("write", "truncate"),
                Overwrite::InPlace => pair("write", "in-place"),
                Overwrite::Rename => pair("write", "rename"),
            },
            match self.synchronise {
                Synchronise::Nothing => pair("sync", "none"),
                Synchronise::File => pair("sync", "fsync"),
                Synchronise::FileAndDirectory => pair("sync", "fsync+dir"),
            },
            pair("part", self.part.word()),
        ]);
        if self.api == Api::Stdio {
            // Buffer sizes and with them the number of system calls are the C library's choice.
            back.insert(said::C_LIBRARY.to_owned(), stdio::c_library());
        }
        back
    }
}

impl Engine for Files {
    fn name(&self) -> &'static str {
        "files"
    }

    fn about(&self) -> &'static str {
        "one file for each blob"
    }

    fn settings(&self) -> &'static [SettingSpecification] {
        SETTINGS
    }

    fn check(&self, settings: &Settings) -> Result<(), SettingsError> {
        let resolved = settings.resolve(self.name(), SETTINGS)?;
        let is = |name, value| resolved.get(name) == Some(value);
        if !is("part", "all") && (is("api", "mmap") || is("write", "rename") || !is("sync", "none"))
        {
            return Err(SettingsError::Contradiction {
                engine: self.name().to_owned(),
                reason: "a part of the work is measured without mapping, renaming or synchronising"
                    .to_owned(),
                hint: "use `part = all`".to_owned(),
            });
        }
        Ok(())
    }

    fn capabilities(&self, settings: &Settings) -> Capabilities {
        let part = Part::of(settings.get("part").unwrap_or("all"));
        Capabilities {
            keeps_content: part.delivers(),
            persistent: true,
            writes: true,
        }
    }

    /// Without fsync a write survives the process, in the page cache. With fsync an overwritten
    /// file has its new bytes after a loss of power; that the overwriting was not *atomic* (power
    /// lost in the middle leaves neither the old blob nor the new one) does not concern writes
    /// that were acknowledged. A *new name* is another matter: fsync of a file does not promise
    /// that the directory's entry is on the device (fsync(2)), so with `write = rename`, where
    /// every write makes a new name, `fsync` alone promises nothing: the old blob may be back. For
    /// blobs that did not exist before the same holds with every way of writing; the tier stated
    /// is that of overwriting.
    fn durability(&self, settings: &Settings) -> Durability {
        let Ok(means) = Means::from(settings) else {
            return Durability::None;
        };
        match (means.synchronise, means.overwrite) {
            (Synchronise::Nothing, _) | (Synchronise::File, Overwrite::Rename) => {
                Durability::ProcessCrash
            }
            (Synchronise::File, Overwrite::Truncate | Overwrite::InPlace)
            | (Synchronise::FileAndDirectory, _) => Durability::PowerLoss,
        }
    }

    fn durability_settings(&self) -> Vec<&'static str> {
        vec!["write", "sync"]
    }

    fn create(&self, path: &Path, settings: &Settings) -> Result<Box<dyn Store>, EngineError> {
        let means = Means::from(settings)?;
        match mkdir(path, Mode::from_raw_mode(0o777)) {
            Err(Errno::EXIST) => return Err(EngineError::Exists(path.to_owned())),
            answer => answer.map_err(io::Error::from),
        }
        .map_err(EngineError::io("create", path))?;
        if means.synchronise == Synchronise::FileAndDirectory {
            let parent = match path.parent() {
                Some(parent) if parent != Path::new("") => parent,
                _ => Path::new("."),
            };
            open_directory(parent)
                .and_then(fsync)
                .map_err(|errno| EngineError::io("synchronise", parent)(errno.into()))?;
        }
        Ok(Box::new(FilesStore::new(path, means)))
    }

    fn open(&self, path: &Path, settings: &Settings) -> Result<Box<dyn Store>, EngineError> {
        let means = Means::from(settings)?;
        let found = match layout_of(path) {
            Err(EngineError::Io { source, .. }) if is_no_directory(&source) => {
                return Err(EngineError::NoStore(path.to_owned()));
            }
            answer => answer?,
        };
        match found {
            // With the wrong layout every blob would be missing.
            Some(found) if found != means.layout => Err(EngineError::NotInForce {
                name: "layout",
                asked: means.layout.word().to_owned(),
                got: found.word().to_owned(),
            }),
            _ => Ok(Box::new(FilesStore::new(path, means))),
        }
    }
}

fn is_no_directory(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

pub(crate) fn open_directory(path: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    open(path, flags, Mode::empty())
}

struct FilesStore {
    root: PathBuf,
    means: Means,
    /// Sessions handed out so far: each has temporary names of its own.
    sessions: AtomicU64,
}

impl FilesStore {
    fn new(root: &Path, means: Means) -> Self {
        Self {
            root: root.to_owned(),
            means,
            sessions: AtomicU64::new(0),
        }
    }

    fn files_session(&self, means: Means) -> Result<FilesSession, EngineError> {
        let number = self.sessions.fetch_add(1, Ordering::Relaxed) + 1;
        FilesSession::new(&self.root, means, number)
    }
}

impl Store for FilesStore {
    /// Writes by system calls relative to the root directory and synchronises nothing, whatever the
    /// settings: they decide how blobs are read and overwritten, not how they come to be there.
    fn load(
        &self,
        content: &dyn Content,
        progress: &mut dyn FnMut(u64),
    ) -> Result<(), EngineError> {
        let means = Means {
            synchronise: Synchronise::Nothing,
            ..self.means
        };
        self.files_session(means)?.load(content, progress)
    }

    fn session(&self) -> Result<Box<dyn Session>, EngineError> {
        Ok(Box::new(self.files_session(self.means)?))
    }
}

struct FilesSession {
    means: Means,
    /// The root directory, opened for this session alone: threads that share a descriptor also
    /// share, and fight for, its reference count.
    directory: OwnedFd,
    /// Where the blob in hand is.
    path: BlobPath,
    /// Where a blob is written before it is renamed.
    temporary: BlobPath,
    number: u64,
    buffer: Vec<u8>,
    kept: KeptFiles,
}

impl FilesSession {
    fn new(root: &Path, means: Means, number: u64) -> Result<Self, EngineError> {
        let directory = open_directory(root)
            .map_err(|errno| EngineError::io("open", root)(io::Error::from(errno)))?;
        let path = BlobPath::new(root, means.layout)?;
        if means.part.keeps_descriptors() {
            part::allow_many_files();
        }
        Ok(Self {
            means,
            directory,
            temporary: path.clone(),
            path,
            number,
            buffer: Vec::new(),
            kept: KeptFiles::default(),
        })
    }

    /// The directory and the name relative to it by which `api` reaches a path. (For C streams,
    /// which know full paths only, this serves what goes with them, such as rename.)
    fn place<'a>(&'a self, path: &'a BlobPath) -> (BorrowedFd<'a>, &'a std::ffi::CStr) {
        match self.means.api {
            Api::Stdio | Api::Open => (CWD, path.full()),
            Api::Openat | Api::Mmap => (rustix::fd::AsFd::as_fd(&self.directory), path.relative()),
        }
    }
}

impl Session for FilesSession {
    fn read(&mut self, key: u64, consume: &mut dyn FnMut(&[u8])) -> Result<(), EngineError> {
        self.path.set(key);
        self.read_part(key, consume)
            .map_err(|failure| failure.of_blob(key, &self.path))
    }

    fn keys(&mut self, visit: &mut dyn FnMut(u64)) -> Result<(), EngineError> {
        let mut keys = walk::keys(&self.directory, self.means.layout)
            .map_err(|failure| failure.at(self.path.root()))?;
        keys.sort_unstable();
        keys.into_iter().for_each(visit);
        Ok(())
    }

    fn writer(&mut self) -> Option<&mut dyn Writer> {
        Some(self)
    }

    fn read_back(&mut self) -> Result<ReadBack, EngineError> {
        Ok(self.means.read_back())
    }
}

/// A system call that failed, and what it was for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Failure {
    doing: &'static str,
    pub(crate) errno: Errno,
}

impl Failure {
    /// For `map_err`: the call was made in order to `doing`.
    pub(crate) fn of(doing: &'static str) -> impl FnOnce(Errno) -> Self {
        move |errno| Self { doing, errno }
    }

    /// The error to report, where the file's absence is no surprise.
    pub(crate) fn at(self, path: PathBuf) -> EngineError {
        EngineError::Io {
            doing: self.doing,
            path,
            source: self.errno.into(),
        }
    }

    /// The error to report, where a missing file means that there is no such blob.
    fn of_blob(self, key: u64, path: &BlobPath) -> EngineError {
        if self.errno == Errno::MFILE || self.errno == Errno::NFILE {
            let reason = "more files are to stay open than the system allows (ulimit -n)";
            return EngineError::Unavailable(reason.to_owned());
        }
        if self.errno == Errno::NOENT {
            let path = path.root();
            return EngineError::Missing { key, path };
        }
        self.at(path.to_path_buf())
    }
}
