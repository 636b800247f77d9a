//! The few calls of fanotify(7) that a scanner needs.

use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read};
use std::mem::size_of;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Bytes read at a time: some hundred questions.
const BUFFER_BYTES: usize = 8192;

/// A listener that the kernel asks before a file is opened.
pub(super) struct Group {
    file: File,
    buffer: Vec<u8>,
}

/// A question of the kernel's: may this file be opened? Not answering stops whoever asks, so it is
/// answered with yes at the latest when it is dropped.
pub(super) struct Question<'a> {
    group: &'a File,
    /// The file, opened by the kernel for the listener; nobody is asked about that.
    pub(super) file: File,
    /// Process that wants to open it.
    pub(super) process: i32,
}

impl Group {
    /// Asks the kernel to be asked about every file opened through the mount at a directory.
    pub(super) fn watch(directory: &Path) -> io::Result<Self> {
        let flags = libc::FAN_CLASS_CONTENT | libc::FAN_CLOEXEC | libc::FAN_UNLIMITED_MARKS;
        // Files are opened for us to be read, without leaving a trace in their time stamps.
        let file_flags = libc::O_RDONLY | libc::O_LARGEFILE | libc::O_CLOEXEC | libc::O_NOATIME;
        // SAFETY: takes two numbers, returns a descriptor or -1.
        let descriptor = unsafe { libc::fanotify_init(flags, file_flags as libc::c_uint) };
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was just made and belongs to nobody else.
        let group = unsafe { OwnedFd::from_raw_fd(descriptor) };
        let path = CString::new(directory.as_os_str().as_bytes())?;
        // SAFETY: the path is a C string that lives through the call; the rest are numbers.
        let marked = unsafe {
            libc::fanotify_mark(
                group.as_raw_fd(),
                libc::FAN_MARK_ADD | libc::FAN_MARK_MOUNT,
                libc::FAN_OPEN_PERM,
                libc::AT_FDCWD,
                path.as_ptr(),
            )
        };
        if marked < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self {
            file: File::from(group),
            buffer: vec![0; BUFFER_BYTES],
        })
    }

    /// What to wait for a question on.
    pub(super) fn file(&self) -> &File {
        &self.file
    }

    /// The questions that are waiting, at least one. Those that are not taken are answered with yes.
    pub(super) fn questions(&mut self) -> io::Result<Vec<Question<'_>>> {
        let read = (&self.file).read(&mut self.buffer)?;
        let mut rest = &self.buffer[..read];
        let mut questions = Vec::new();
        while rest.len() >= size_of::<libc::fanotify_event_metadata>() {
            // SAFETY: there are enough bytes for one, any of which is valid in its numbers; they need
            // not be aligned.
            let event = unsafe {
                rest.as_ptr()
                    .cast::<libc::fanotify_event_metadata>()
                    .read_unaligned()
            };
            let length = event.event_len as usize;
            if event.fd >= 0 {
                // SAFETY: the kernel opened it for this listener, which is told once.
                let file = unsafe { File::from_raw_fd(event.fd) };
                questions.push(Question {
                    group: &self.file,
                    file,
                    process: event.pid,
                });
            }
            match rest.get(length.max(1)..) {
                Some(further) => rest = further,
                None => break,
            }
        }
        Ok(questions)
    }
}

impl Question<'_> {
    /// Does not want to be asked about this file again until it has changed.
    pub(super) fn remember(&self) -> io::Result<()> {
        let path = CString::new(format!("/proc/self/fd/{}", self.file.as_raw_fd()))?;
        // SAFETY: the path is a C string that lives through the call; the rest are numbers.
        let marked = unsafe {
            libc::fanotify_mark(
                self.group.as_raw_fd(),
                libc::FAN_MARK_ADD | libc::FAN_MARK_IGNORED_MASK,
                libc::FAN_OPEN_PERM,
                libc::AT_FDCWD,
                path.as_ptr(),
            )
        };
        if marked < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }
}

impl Drop for Question<'_> {
    fn drop(&mut self) {
        let response = libc::fanotify_response {
            fd: self.file.as_raw_fd(),
            response: libc::FAN_ALLOW,
        };
        // SAFETY: the pointer is to a structure of that length, read during the call. If the write
        // fails the group is broken, and what is waiting passes when this process ends.
        unsafe {
            libc::write(
                self.group.as_raw_fd(),
                (&raw const response).cast(),
                size_of::<libc::fanotify_response>(),
            )
        };
    }
}
