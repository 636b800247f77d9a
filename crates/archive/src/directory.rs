//! Walking down from one directory without following a symbolic link: every component of a path is
//! opened by itself, relative to the one before. So nothing that is planted in between leads out, and
//! paths longer than the system's limit work too.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{Mode, OFlags, mkdirat, open, openat, readlinkat};
use rustix::io::Errno;

const DIRECTORY: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// Permissions of directories that are made on the way; the process's mask takes its share.
const NEW_DIRECTORY: Mode = Mode::RWXU.union(Mode::RWXG).union(Mode::RWXO);

/// An open directory, and the one below it that was used last.
pub(crate) struct Directory {
    top: OwnedFd,
    current: Option<(String, OwnedFd)>,
}

impl Directory {
    /// Opens the top; the path itself may be a link.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let top = open(path, flags, Mode::empty())?;
        Ok(Self { top, current: None })
    }

    /// A second handle of the same directory, for another thread.
    pub(crate) fn again(&self) -> io::Result<Self> {
        Ok(Self {
            top: self.top.try_clone()?,
            current: None,
        })
    }

    /// The directory itself.
    pub(crate) fn top(&self) -> BorrowedFd<'_> {
        self.top.as_fd()
    }

    /// The directory of a relative path; the empty path is the top.
    pub(crate) fn at(&mut self, path: &str) -> io::Result<BorrowedFd<'_>> {
        self.reach(path, false)
    }

    /// The same, made where it is missing.
    pub(crate) fn make(&mut self, path: &str) -> io::Result<BorrowedFd<'_>> {
        self.reach(path, true)
    }

    /// Opens a regular file for reading; never follows a link, and never waits for a pipe.
    pub(crate) fn open_file(&mut self, path: &str) -> io::Result<File> {
        let (parent, name) = split(path);
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = File::from(openat(self.at(parent)?, name, flags, Mode::empty())?);
        if file.metadata()?.is_file() {
            Ok(file)
        } else {
            Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "it is no regular file",
            ))
        }
    }

    /// What a symbolic link points at.
    pub(crate) fn read_link(&mut self, path: &str) -> io::Result<Vec<u8>> {
        let (parent, name) = split(path);
        Ok(readlinkat(self.at(parent)?, name, Vec::new())?.into_bytes())
    }

    fn reach(&mut self, path: &str, make: bool) -> io::Result<BorrowedFd<'_>> {
        if path.is_empty() {
            return Ok(self.top.as_fd());
        }
        let is_current = self
            .current
            .as_ref()
            .is_some_and(|(current, _)| current == path);
        if !is_current {
            let opened = self.descend(path, make)?;
            self.current = Some((path.to_owned(), opened));
        }
        match &self.current {
            Some((_, opened)) => Ok(opened.as_fd()),
            None => Ok(self.top.as_fd()),
        }
    }

    fn descend(&self, path: &str, make: bool) -> io::Result<OwnedFd> {
        let mut opened: Option<OwnedFd> = None;
        for part in path.split('/') {
            let parent = opened.as_ref().map_or(self.top.as_fd(), AsFd::as_fd);
            let next = match openat(parent, part, DIRECTORY, Mode::empty()) {
                Err(Errno::NOENT) if make => {
                    match mkdirat(parent, part, NEW_DIRECTORY) {
                        // Another thread was faster.
                        Err(Errno::EXIST) | Ok(()) => {}
                        Err(error) => return Err(error.into()),
                    }
                    openat(parent, part, DIRECTORY, Mode::empty())
                }
                opened => opened,
            };
            opened = Some(next?);
        }
        opened.ok_or_else(|| io::ErrorKind::InvalidInput.into())
    }
}

/// A relative path as the directory that holds it, and its last name.
pub(crate) fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

/// Whether a component was a link or a file where a directory was wanted: with `O_NOFOLLOW` and
/// `O_DIRECTORY` a link is one or the other error.
pub(crate) fn is_no_directory(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotADirectory || is_link(error)
}

/// Whether a link was met that is not followed.
pub(crate) fn is_link(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::LOOP.raw_os_error())
}
