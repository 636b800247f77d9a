//! Writing, overwriting and removing blobs, and forcing them to the device as far as `sync` asks.
//!
//! An existing file is opened without `O_CREAT`, and created only if that fails: so we know
//! whether a name is new, which is what decides whether its directory must be synchronised too.

use rustix::fd::{AsFd, IntoRawFd, OwnedFd};
use rustix::fs::{
    AtFlags, Mode, OFlags, fstat, fsync, ftruncate, mkdirat, openat, renameat, stat, unlinkat,
};
use rustix::io::{Errno, pwrite, retry_on_intr};

use super::path::Layout;
use super::stdio::CFile;
use super::{Api, Failure, FilesSession, Overwrite, Synchronise};
use crate::engine::{Content, EngineError, Writer};

/// Blobs between two reports of progress.
const PROGRESS_BLOBS: u64 = 256;

/// What fopen gives new files; the process's mask takes away from it.
pub(crate) fn file_mode() -> Mode {
    Mode::from_raw_mode(0o666)
}

impl Writer for FilesSession {
    fn begin(&mut self) -> Result<(), EngineError> {
        Ok(())
    }

    fn put(&mut self, key: u64, value: &[u8]) -> Result<(), EngineError> {
        self.path.set(key);
        let outcome = match self.write_blob(key, value) {
            Err(failure) if failure.errno == Errno::NOENT && self.means.layout == Layout::Tree => {
                self.make_folders()
                    .and_then(|()| self.write_blob(key, value))
            }
            outcome => outcome,
        };
        outcome.map_err(|failure| failure.at(self.path.to_path_buf()))
    }

    fn delete(&mut self, key: u64) -> Result<bool, EngineError> {
        self.path.set(key);
        let (directory, path) = self.place(&self.path);
        match unlinkat(directory, path, AtFlags::empty()) {
            Ok(()) => self.synchronise_directory().map(|()| true),
            Err(Errno::NOENT) => Ok(false),
            Err(errno) => Err(Failure::of("remove")(errno)),
        }
        .map_err(|failure| failure.at(self.path.to_path_buf()))
    }

    fn commit(&mut self) -> Result<(), EngineError> {
        Ok(())
    }

    fn settle(&mut self) -> Result<(), EngineError> {
        Ok(())
    }
}

impl FilesSession {
    /// Writes all blobs of an empty store: one buffer, folders made once.
    pub(super) fn load(
        &mut self,
        content: &dyn Content,
        progress: &mut dyn FnMut(u64),
    ) -> Result<(), EngineError> {
        let mut blob = Vec::new();
        for key in 1..=content.count() {
            self.path.set(key);
            content.fill(key, &mut blob).map_err(|error| {
                EngineError::io("make the content of", &self.path.to_path_buf())(error)
            })?;
            // Keys ascend: where the last two digits begin anew, so does a folder.
            let new_folder = self.means.layout == Layout::Tree && (key == 1 || key % 100 == 0);
            let folders = if new_folder {
                self.make_folders()
            } else {
                Ok(())
            };
            folders
                .and_then(|()| self.create_file(&blob))
                .map_err(|failure| failure.at(self.path.to_path_buf()))?;
            if key % PROGRESS_BLOBS == 0 || key == content.count() {
                progress(key);
            }
        }
        Ok(())
    }

    fn create_file(&self, value: &[u8]) -> Result<(), Failure> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let file = openat(&self.directory, self.path.relative(), flags, file_mode())
            .map_err(Failure::of("create"))?;
        write_at_start(&file, value)?;
        close(file)
    }

    /// Writes the blob that `self.path` is set to.
    fn write_blob(&mut self, key: u64, value: &[u8]) -> Result<(), Failure> {
        let stream = self.means.api == Api::Stdio;
        let name_is_new = match self.means.overwrite {
            Overwrite::Truncate if stream => self.truncate_through_stream(value)?,
            Overwrite::InPlace if stream => self.write_in_place_through_stream(value)?,
            Overwrite::Truncate => self.truncate(value)?,
            Overwrite::InPlace => self.write_in_place(value)?,
            Overwrite::Rename => {
                self.replace(key, value)?;
                true
            }
        };
        if name_is_new {
            self.synchronise_directory()?;
        }
        Ok(())
    }

    /// fopen("wb"), fwrite, fclose, as `updateFile()` of `kvtest`; but what the stream holds back
    /// is flushed before it is synchronised.
    fn truncate_through_stream(&self, value: &[u8]) -> Result<bool, Failure> {
        // Asked only where the answer matters.
        let name_is_new = self.means.synchronise == Synchronise::FileAndDirectory
            && stat(self.path.full()).err() == Some(Errno::NOENT);
        let file = CFile::open(self.path.full(), c"wb").map_err(Failure::of("open"))?;
        self.finish_stream(file, value)?;
        Ok(name_is_new)
    }

    fn write_in_place_through_stream(&self, value: &[u8]) -> Result<bool, Failure> {
        let path = self.path.full();
        let (file, name_is_new) = match CFile::open(path, c"r+b") {
            Err(Errno::NOENT) => (CFile::open(path, c"wb"), true),
            answer => (answer, false),
        };
        let mut file = file.map_err(Failure::of("open"))?;
        let old = fstat(file.descriptor()).map_err(Failure::of("look at"))?;
        if i64::try_from(value.len()).is_ok_and(|new| new < old.st_size) {
            file.write_all(value)
                .and_then(|()| file.flush())
                .map_err(Failure::of("write"))?;
            ftruncate(file.descriptor(), value.len() as u64).map_err(Failure::of("shorten"))?;
            self.finish_stream(file, &[])?;
        } else {
            self.finish_stream(file, value)?;
        }
        Ok(name_is_new)
    }

    /// fwrite, fflush and fsync if asked for, fclose.
    fn finish_stream(&self, mut file: CFile, value: &[u8]) -> Result<(), Failure> {
        file.write_all(value).map_err(Failure::of("write"))?;
        if self.means.synchronise != Synchronise::Nothing {
            file.flush().map_err(Failure::of("write"))?;
            fsync(file.descriptor()).map_err(Failure::of("synchronise"))?;
        }
        file.close().map_err(Failure::of("write"))
    }

    fn truncate(&self, value: &[u8]) -> Result<bool, Failure> {
        let (file, name_is_new) = self.open_to_write(OFlags::TRUNC)?;
        write_at_start(&file, value)?;
        self.finish(file)?;
        Ok(name_is_new)
    }

    fn write_in_place(&self, value: &[u8]) -> Result<bool, Failure> {
        let (file, name_is_new) = self.open_to_write(OFlags::empty())?;
        let old = fstat(&file).map_err(Failure::of("look at"))?;
        write_at_start(&file, value)?;
        if i64::try_from(value.len()).is_ok_and(|new| new < old.st_size) {
            ftruncate(&file, value.len() as u64).map_err(Failure::of("shorten"))?;
        }
        self.finish(file)?;
        Ok(name_is_new)
    }

    /// Writes a new file beside the old one and gives it the old one's name. What an interrupted
    /// process leaves behind has a name that is no blob's.
    fn replace(&mut self, key: u64, value: &[u8]) -> Result<(), Failure> {
        self.temporary.set_temporary(key, self.number);
        let (directory, temporary) = self.place(&self.temporary);
        let written = if self.means.api == Api::Stdio {
            CFile::open(temporary, c"wb")
                .map_err(Failure::of("create"))
                .and_then(|file| self.finish_stream(file, value))
        } else {
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::CLOEXEC;
            retry_on_intr(|| openat(directory, temporary, flags, file_mode()))
                .map_err(Failure::of("create"))
                .and_then(|file| {
                    write_at_start(&file, value)?;
                    self.finish(file)
                })
        };
        let (_, path) = self.place(&self.path);
        let replaced = written.and_then(|()| {
            renameat(directory, temporary, directory, path).map_err(Failure::of("replace"))
        });
        if replaced.is_err() {
            // The first failure is the one to report, whatever becomes of this.
            let _ = unlinkat(directory, temporary, AtFlags::empty());
        }
        replaced
    }

    fn open_to_write(&self, further: OFlags) -> Result<(OwnedFd, bool), Failure> {
        let (directory, path) = self.place(&self.path);
        let flags = OFlags::WRONLY | OFlags::CLOEXEC | further;
        match retry_on_intr(|| openat(directory, path, flags, Mode::empty())) {
            Ok(file) => Ok((file, false)),
            Err(Errno::NOENT) => {
                let flags = flags | OFlags::CREATE;
                let file = retry_on_intr(|| openat(directory, path, flags, file_mode()))
                    .map_err(Failure::of("create"))?;
                Ok((file, true))
            }
            Err(errno) => Err(Failure::of("open")(errno)),
        }
    }

    fn finish(&self, file: OwnedFd) -> Result<(), Failure> {
        if self.means.synchronise != Synchronise::Nothing {
            fsync(&file).map_err(Failure::of("synchronise"))?;
        }
        close(file)
    }

    /// Makes the folders that the path goes through, as far as they are missing.
    fn make_folders(&self) -> Result<(), Failure> {
        let mut parent: &[u8] = b".";
        for folder in self.path.folders() {
            match mkdirat(&self.directory, folder, Mode::from_raw_mode(0o777)) {
                Ok(()) => self.synchronise_folder(parent)?,
                Err(Errno::EXIST) => {}
                Err(errno) => return Err(Failure::of("make the folder of")(errno)),
            }
            parent = folder;
        }
        Ok(())
    }

    /// Synchronises the directory that the path's name is in, if asked for.
    fn synchronise_directory(&self) -> Result<(), Failure> {
        self.synchronise_folder(self.path.folders().last().unwrap_or(b"."))
    }

    fn synchronise_folder(&self, folder: &[u8]) -> Result<(), Failure> {
        if self.means.synchronise != Synchronise::FileAndDirectory {
            return Ok(());
        }
        if folder == b"." {
            return fsync(&self.directory).map_err(Failure::of("synchronise the folder of"));
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        openat(&self.directory, folder, flags, Mode::empty())
            .and_then(fsync)
            .map_err(Failure::of("synchronise the folder of"))
    }
}

/// Writes all the bytes, from the start of the file.
pub(crate) fn write_at_start(file: impl AsFd, bytes: &[u8]) -> Result<(), Failure> {
    let mut written = 0;
    while written < bytes.len() {
        let rest = &bytes[written..];
        match retry_on_intr(|| pwrite(&file, rest, written as u64)).map_err(Failure::of("write"))? {
            0 => return Err(Failure::of("write")(Errno::IO)),
            more => written += more,
        }
    }
    Ok(())
}

/// Closes a file that was written, and says if that fails: network file systems report there what
/// they could not write.
pub(crate) fn close(file: OwnedFd) -> Result<(), Failure> {
    // SAFETY: the descriptor is ours, open, and given up by `into_raw_fd`.
    match unsafe { libc::close(file.into_raw_fd()) } {
        0 => Ok(()),
        _ => {
            let error = std::io::Error::last_os_error();
            match Errno::from_io_error(&error) {
                // Linux has closed it all the same (close(2)).
                Some(Errno::INTR) => Ok(()),
                errno => Err(Failure::of("close")(errno.unwrap_or(Errno::IO))),
            }
        }
    }
}
