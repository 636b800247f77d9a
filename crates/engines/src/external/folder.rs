//! The folder of contents: files that are made once, read, and removed, and never changed. Which
//! of them counts is for the index to say.

use std::collections::{BTreeSet, HashSet};
use std::ffi::{CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use memmap2::MmapOptions;
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, Mode, OFlags, fstat, fsync, mkdirat, openat, unlinkat};
use rustix::io::{Errno, read, retry_on_intr};

use super::Api;
use crate::engine::EngineError;
use crate::files::{Failure, Layout, close, file_mode, open_directory, write_at_start};

/// Where contents are, in the store's directory.
pub(super) const CONTENT: &str = "content";

/// The path of a content, relative to the folder.
pub(super) type Name = CString;

/// The open folder.
pub(super) struct Folder {
    path: PathBuf,
    directory: OwnedFd,
    layout: Layout,
}

impl Folder {
    /// Opens the folder of a store.
    pub(super) fn open(store: &Path, layout: Layout) -> Result<Self, EngineError> {
        let path = store.join(CONTENT);
        let directory =
            open_directory(&path).map_err(|errno| EngineError::io("open", &path)(errno.into()))?;
        Ok(Self {
            path,
            directory,
            layout,
        })
    }

    /// Where a content is, for messages.
    fn path_of(&self, name: &Name) -> PathBuf {
        self.path.join(OsStr::from_bytes(name.to_bytes()))
    }

    /// The name of a key's content; `suffix` makes it one that no other content has.
    pub(super) fn name(&self, key: u64, suffix: &str) -> Name {
        let mut path = self.layout.relative_path(key).into_os_string();
        path.push(suffix);
        // Digits, slashes, and a suffix of ours: the default is never taken.
        Name::new(path.as_bytes()).unwrap_or_default()
    }

    /// Makes a content; `false` if the name is taken. Folders that were made for it are added to
    /// `changed`, as is the one that it is in.
    pub(super) fn create(
        &self,
        name: &Name,
        value: &[u8],
        changed: &mut BTreeSet<Vec<u8>>,
    ) -> Result<bool, EngineError> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let open =
            || retry_on_intr(|| openat(&self.directory, name.as_c_str(), flags, file_mode()));
        let opened = match open() {
            Err(Errno::NOENT) if self.layout == Layout::Tree => {
                self.make_folders(name, changed)?;
                open()
            }
            opened => opened,
        };
        let file = match opened {
            Ok(file) => file,
            Err(Errno::EXIST) => return Ok(false),
            Err(errno) => return Err(self.failed("create", errno, name)),
        };
        changed.insert(parent(name.to_bytes()).to_vec());
        write_at_start(&file, value)
            .and_then(|()| close(file))
            .map_err(|failure| failure.at(self.path_of(name)))?;
        Ok(true)
    }

    /// Makes the folders that a name goes through, as far as they are missing.
    fn make_folders(
        &self,
        name: &Name,
        changed: &mut BTreeSet<Vec<u8>>,
    ) -> Result<(), EngineError> {
        let bytes = name.to_bytes();
        let slashes = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        for (end, _) in slashes {
            let folder = &bytes[..end];
            match mkdirat(&self.directory, folder, Mode::from_raw_mode(0o777)) {
                Ok(()) => {
                    changed.insert(parent(folder).to_vec());
                }
                Err(Errno::EXIST) => {}
                Err(errno) => return Err(self.failed("make the folder of", errno, name)),
            }
        }
        Ok(())
    }

    /// Hands a content of `bytes` bytes to `consume`; `false` if there is no such file.
    #[inline]
    pub(super) fn read(
        &self,
        name: &Name,
        bytes: usize,
        api: Api,
        buffer: &mut Vec<u8>,
        consume: &mut dyn FnMut(&[u8]),
    ) -> Result<bool, EngineError> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let opened =
            retry_on_intr(|| openat(&self.directory, name.as_c_str(), flags, Mode::empty()));
        let file = match opened {
            Ok(file) => file,
            Err(Errno::NOENT) => return Ok(false),
            Err(errno) => return Err(self.failed("open", errno, name)),
        };
        match api {
            Api::Openat => self.read_into(&file, name, bytes, buffer, consume),
            Api::Mmap => self.read_through_mapping(&file, name, bytes, consume),
        }
        .map(|()| true)
    }

    /// The length is the row's, so nobody has to ask the file for it.
    fn read_into(
        &self,
        file: &OwnedFd,
        name: &Name,
        bytes: usize,
        buffer: &mut Vec<u8>,
        consume: &mut dyn FnMut(&[u8]),
    ) -> Result<(), EngineError> {
        if buffer.len() < bytes {
            buffer.resize(bytes, 0);
        }
        let mut filled = 0;
        while filled < bytes {
            let rest = &mut buffer[filled..bytes];
            match retry_on_intr(|| read(file, &mut *rest)) {
                Ok(0) => return Err(self.shorter(name, filled as u64, bytes)),
                Ok(more) => filled += more,
                Err(errno) => return Err(self.failed("read", errno, name)),
            }
        }
        consume(&buffer[..bytes]);
        Ok(())
    }

    fn read_through_mapping(
        &self,
        file: &OwnedFd,
        name: &Name,
        bytes: usize,
        consume: &mut dyn FnMut(&[u8]),
    ) -> Result<(), EngineError> {
        let status = fstat(file).map_err(|errno| self.failed("look at", errno, name))?;
        let found = u64::try_from(status.st_size).unwrap_or(0);
        if found < bytes as u64 {
            return Err(self.shorter(name, found, bytes));
        }
        if bytes == 0 {
            // An empty mapping is not allowed.
            consume(&[]);
            return Ok(());
        }
        // SAFETY: the bytes are read once, as plain bytes, and the mapping ends here. Contents are
        // never changed by this engine; that nobody else cuts the file short cannot be ensured.
        let mapping = unsafe { MmapOptions::new().len(bytes).map(file) }
            .map_err(EngineError::io("map", &self.path_of(name)))?;
        consume(&mapping);
        Ok(())
    }

    /// Forces a content to the device.
    pub(super) fn synchronise(&self, name: &Name) -> Result<(), EngineError> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        openat(&self.directory, name.as_c_str(), flags, Mode::empty())
            .and_then(fsync)
            .map_err(|errno| self.failed("synchronise", errno, name))
    }

    /// Forces the names in a folder to the device.
    pub(super) fn synchronise_folder(&self, folder: &[u8]) -> Result<(), EngineError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let synchronised = match folder {
            b"." => fsync(&self.directory),
            folder => openat(&self.directory, folder, flags, Mode::empty()).and_then(fsync),
        };
        let path = self.path.join(OsStr::from_bytes(folder));
        synchronised.map_err(|errno| EngineError::io("synchronise", &path)(errno.into()))
    }

    /// Removes a content, if it is there. A name that this engine does not make is refused: what a
    /// damaged index says must not lead out of the folder.
    pub(super) fn remove(&self, name: &Name) -> Result<(), EngineError> {
        if !is_ours(name.to_bytes()) {
            return Err(EngineError::Damaged {
                path: self.path.clone(),
                reason: format!("a row names {name:?}, which is no name of a content"),
            });
        }
        match unlinkat(&self.directory, name.as_c_str(), AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(errno) => Err(self.failed("remove", errno, name)),
        }
    }

    /// Names of all files that are not among these, ours first and the others after them.
    pub(super) fn others_than(
        &self,
        named: &HashSet<Name>,
    ) -> Result<(Vec<Name>, Vec<PathBuf>), EngineError> {
        let (mut ours, mut foreign) = (Vec::new(), Vec::new());
        let mut waiting = vec![PathBuf::new()];
        while let Some(folder) = waiting.pop() {
            let path = self.path.join(&folder);
            for entry in path.read_dir().map_err(EngineError::io("list", &path))? {
                let entry = entry.map_err(EngineError::io("list", &path))?;
                let relative = folder.join(entry.file_name());
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    waiting.push(relative);
                    continue;
                }
                match Name::new(relative.as_os_str().as_bytes()) {
                    Ok(name) if named.contains(&name) => {}
                    Ok(name) if is_ours(name.to_bytes()) => ours.push(name),
                    _ => foreign.push(relative),
                }
            }
        }
        Ok((ours, foreign))
    }

    /// How long a content is; `None` if there is none of that name.
    pub(super) fn bytes_of(&self, name: &Name) -> Result<Option<u64>, EngineError> {
        match rustix::fs::statat(&self.directory, name.as_c_str(), AtFlags::empty()) {
            Ok(status) => Ok(u64::try_from(status.st_size).ok()),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(self.failed("look at", errno, name)),
        }
    }

    #[cold]
    fn failed(&self, doing: &'static str, errno: Errno, name: &Name) -> EngineError {
        Failure::of(doing)(errno).at(self.path_of(name))
    }

    #[cold]
    fn shorter(&self, name: &Name, found: u64, bytes: usize) -> EngineError {
        EngineError::Damaged {
            path: self.path_of(name),
            reason: format!("it has {found} bytes, and its row says {bytes}"),
        }
    }
}

/// The folder that a path is in.
fn parent(path: &[u8]) -> &[u8] {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(end) => &path[..end],
        None => b".",
    }
}

/// Whether this engine could have made a file of that name.
fn is_ours(name: &[u8]) -> bool {
    let may_stand = |byte: &u8| byte.is_ascii_hexdigit() || matches!(byte, b'/' | b'-');
    name.first().is_some_and(u8::is_ascii_digit) && name.iter().all(may_stand)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_nowhere_else() {
        for name in ["000001", "00/00/01", "00/00/01-1f-3"] {
            assert!(is_ours(name.as_bytes()), "{name}");
        }
        for name in ["", "../000001", "/etc/passwd", "0/../1", "content", "-1"] {
            assert!(!is_ours(name.as_bytes()), "{name}");
        }
        assert_eq!(parent(b"00/01/02"), b"00/01");
        assert_eq!(parent(b"000001"), b".");
    }
}
