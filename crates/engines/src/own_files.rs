//! The `own-files` engine: somebody's files, read where they are by their own names. What a program does
//! today that keeps its blobs in files is measured with it, on the very files.
//!
//! A store is a list of names ([`FileList`]); the files themselves belong to somebody else. They are
//! opened for reading and for nothing else, there is no writer, and no path that this engine names as
//! its store or its companion is one of theirs, so that whoever removes stores removes the list alone.
//! Which files are on the list is for the caller to choose; it has to say so, since a store cannot be
//! filled with content that is not in files already.

mod list;
#[cfg(test)]
mod tests;

use std::ffi::CStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use memmap2::MmapOptions;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{CWD, Mode, OFlags, fstat, open, openat};
use rustix::io::{Errno, read, retry_on_intr};
use sqlitmus_core::case::Durability;
use sqlitmus_core::settings::{SettingKind, SettingSpecification, Settings};

use crate::engine::{Capabilities, Content, Engine, EngineError, ReadBack, Session, Store, Writer};

pub use list::{ChangedFile, FileContent, FileList, ListedFile};

/// Somebody's files, where they are.
#[derive(Debug, Clone, Copy)]
pub struct OwnFiles;

const SETTINGS: &[SettingSpecification] = &[SettingSpecification {
    name: "api",
    kind: SettingKind::Choice(&["open", "openat", "mmap"]),
    default: "open",
    stored: false,
    about: "open by full path, look, read, close; the same relative to the open top; memory-mapped",
}];

/// How a file is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Api {
    Open,
    Openat,
    Mmap,
}

impl Api {
    /// The last arm stands for the one value that is left: resolved settings have no others.
    fn from(settings: &Settings) -> Result<Self, EngineError> {
        let resolved = settings.resolve(OwnFiles.name(), SETTINGS)?;
        Ok(match resolved.get("api") {
            Some("open") => Self::Open,
            Some("openat") => Self::Openat,
            _ => Self::Mmap,
        })
    }

    fn word(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Openat => "openat",
            Self::Mmap => "mmap",
        }
    }
}

impl Engine for OwnFiles {
    fn name(&self) -> &'static str {
        "own-files"
    }

    fn about(&self) -> &'static str {
        "your own files, read where they are (sqlitmus advise)"
    }

    fn settings(&self) -> &'static [SettingSpecification] {
        SETTINGS
    }

    fn capabilities(&self, _settings: &Settings) -> Capabilities {
        Capabilities {
            keeps_content: true,
            persistent: true,
            writes: false,
        }
    }

    /// Nothing is written.
    fn durability(&self, _settings: &Settings) -> Durability {
        Durability::PowerLoss
    }

    fn create(&self, path: &Path, settings: &Settings) -> Result<Box<dyn Store>, EngineError> {
        let api = Api::from(settings)?;
        if path.symlink_metadata().is_ok() {
            return Err(EngineError::Exists(path.to_owned()));
        }
        let list = FileList::default();
        list.write(path)?;
        Ok(Box::new(OwnFilesStore::new(path, api)))
    }

    fn open(&self, path: &Path, settings: &Settings) -> Result<Box<dyn Store>, EngineError> {
        let api = Api::from(settings)?;
        FileList::read(path)?;
        Ok(Box::new(OwnFilesStore::new(path, api)))
    }

    fn foreign_files(&self, path: &Path) -> Result<Vec<PathBuf>, EngineError> {
        let list = FileList::read(path)?;
        Ok(list.full_paths().collect())
    }
}

struct OwnFilesStore {
    path: PathBuf,
    api: Api,
}

impl OwnFilesStore {
    fn new(path: &Path, api: Api) -> Self {
        let path = path.to_owned();
        Self { path, api }
    }
}

impl Store for OwnFilesStore {
    /// Notes which files they are.
    fn load(
        &self,
        content: &dyn Content,
        progress: &mut dyn FnMut(u64),
    ) -> Result<(), EngineError> {
        let Some(list) = content.files() else {
            let reason = "it reads files that are there already, and this content is in none";
            return Err(EngineError::Unavailable(reason.to_owned()));
        };
        list.write(&self.path)?;
        progress(content.count());
        Ok(())
    }

    fn session(&self) -> Result<Box<dyn Session>, EngineError> {
        let list = FileList::read(&self.path)?;
        let names = match self.api {
            Api::Open => Names::new(list.full_paths()),
            Api::Openat | Api::Mmap => Names::new(list.relative_paths()),
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        // An empty list has no top yet.
        let top = match self.api {
            Api::Openat | Api::Mmap if !list.is_empty() => Some(
                open(list.root(), flags, Mode::empty())
                    .map_err(|errno| EngineError::io("open", list.root())(errno.into()))?,
            ),
            _ => None,
        };
        Ok(Box::new(OwnFilesSession {
            store: self.path.clone(),
            list: Arc::new(list),
            api: self.api,
            names,
            top,
            flags: quiet_flags(),
            buffer: Vec::new(),
        }))
    }
}

/// Names one after the other in one piece of memory: what finding one costs is a part of what is
/// measured, and is to be as little as a program pays that has the name at hand.
struct Names {
    bytes: Vec<u8>,
    /// Where each begins.
    starts: Vec<u32>,
}

impl Names {
    fn new(paths: impl Iterator<Item = PathBuf>) -> Self {
        use std::os::unix::ffi::OsStrExt;
        let (mut bytes, mut starts) = (Vec::new(), Vec::new());
        for path in paths {
            starts.push(bytes.len() as u32);
            bytes.extend_from_slice(path.as_os_str().as_bytes());
            bytes.push(0);
        }
        Self { bytes, starts }
    }

    fn of(&self, key: u64) -> Option<&CStr> {
        let index = usize::try_from(key).ok()?.checked_sub(1)?;
        let start = *self.starts.get(index)? as usize;
        CStr::from_bytes_until_nul(&self.bytes[start..]).ok()
    }
}

struct OwnFilesSession {
    store: PathBuf,
    list: Arc<FileList>,
    api: Api,
    names: Names,
    top: Option<OwnedFd>,
    /// What files are opened with.
    flags: OFlags,
    buffer: Vec<u8>,
}

/// Reading alone; the time of the last access is left as it is where the system allows that.
fn quiet_flags() -> OFlags {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    #[cfg(target_os = "linux")]
    return flags | OFlags::NOATIME;
    #[cfg(not(target_os = "linux"))]
    flags
}

impl OwnFilesSession {
    fn failed(&self, key: u64, doing: &'static str, errno: Errno) -> EngineError {
        let path = self.list.full_path(key);
        EngineError::io(doing, &path.unwrap_or_default())(errno.into())
    }

    fn open_to_read(&mut self, key: u64) -> Result<(OwnedFd, usize), EngineError> {
        let Some(name) = self.names.of(key) else {
            let path = self.store.clone();
            return Err(EngineError::Missing { key, path });
        };
        let folder: BorrowedFd<'_> = self.top.as_ref().map_or(CWD, AsFd::as_fd);
        let open = |flags| retry_on_intr(|| openat(folder, name, flags, Mode::empty()));
        let plain = OFlags::RDONLY | OFlags::CLOEXEC;
        let file = match open(self.flags) {
            // Only the owner may ask for that: from now on nobody is asked.
            Err(Errno::PERM) if self.flags != plain => {
                let opened = open(plain);
                self.flags = plain;
                opened
            }
            answer => answer,
        };
        let file = file.map_err(|errno| self.failed(key, "open", errno))?;
        let status = fstat(&file).map_err(|errno| self.failed(key, "look at", errno))?;
        Ok((file, usize::try_from(status.st_size).unwrap_or(0)))
    }

    fn read_into_buffer(&mut self, key: u64) -> Result<usize, EngineError> {
        let (file, bytes) = self.open_to_read(key)?;
        if self.buffer.len() < bytes {
            self.buffer.resize(bytes, 0);
        }
        let mut filled = 0;
        while filled < bytes {
            let rest = &mut self.buffer[filled..bytes];
            match retry_on_intr(|| read(&file, &mut *rest)) {
                // Cut short since it was looked at.
                Ok(0) => break,
                Ok(more) => filled += more,
                Err(errno) => return Err(self.failed(key, "read", errno)),
            }
        }
        Ok(filled)
    }
}

impl Session for OwnFilesSession {
    fn read(&mut self, key: u64, consume: &mut dyn FnMut(&[u8])) -> Result<(), EngineError> {
        if self.api != Api::Mmap {
            let filled = self.read_into_buffer(key)?;
            consume(&self.buffer[..filled]);
            return Ok(());
        }
        let (file, bytes) = self.open_to_read(key)?;
        if bytes == 0 {
            // An empty mapping is not allowed.
            consume(&[]);
            return Ok(());
        }
        // SAFETY: the bytes are read once, as plain bytes, and the mapping ends here. That nobody
        // cuts the file short meanwhile cannot be ensured; a worker that is killed by it has failed.
        let mapping = unsafe { MmapOptions::new().len(bytes).map(&file) };
        match mapping {
            Ok(mapping) => consume(&mapping),
            Err(error) => {
                let errno = Errno::from_io_error(&error).unwrap_or(Errno::IO);
                return Err(self.failed(key, "map", errno));
            }
        }
        Ok(())
    }

    fn keys(&mut self, visit: &mut dyn FnMut(u64)) -> Result<(), EngineError> {
        (1..=self.list.len() as u64).for_each(visit);
        Ok(())
    }

    fn writer(&mut self) -> Option<&mut dyn Writer> {
        None
    }

    fn read_back(&mut self) -> Result<ReadBack, EngineError> {
        Ok(ReadBack::from([
            ("api".to_owned(), self.api.word().to_owned()),
            ("files".to_owned(), self.list.len().to_string()),
        ]))
    }
}

fn damaged(path: &Path, reason: &str) -> EngineError {
    EngineError::Damaged {
        path: path.to_owned(),
        reason: reason.to_owned(),
    }
}

fn not_found(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
}
