//! C streams and C memory, as thin as they come: `kvtest` reads and writes files through them, so
//! the arm that stands for it must pay what they cost. When to use them is left to the callers.

use std::ffi::CStr;
use std::ptr::NonNull;

use rustix::fd::{AsRawFd, BorrowedFd};
use rustix::io::Errno;

/// Size of a stream's buffer: glibc takes the file's preferred block. What a request has of whole
/// blocks it reads directly to where it is to go, the rest by way of the buffer.
pub(super) const STREAM_BLOCK_BYTES: usize = 4096;

/// A C stream (`FILE *`).
pub(super) struct CFile(NonNull<libc::FILE>);

impl CFile {
    /// fopen.
    pub(super) fn open(path: &CStr, mode: &CStr) -> Result<Self, Errno> {
        // SAFETY: both are valid C strings for the duration of the call.
        let stream = unsafe { libc::fopen(path.as_ptr(), mode.as_ptr()) };
        NonNull::new(stream).map(Self).ok_or_else(last_error)
    }

    /// fwrite of all the bytes.
    pub(super) fn write_all(&mut self, bytes: &[u8]) -> Result<(), Errno> {
        let mut written = 0;
        while written < bytes.len() {
            let rest = &bytes[written..];
            // SAFETY: `rest` is valid for reads of its length; the stream is open.
            written +=
                unsafe { libc::fwrite(rest.as_ptr().cast(), 1, rest.len(), self.0.as_ptr()) };
            if written < bytes.len() {
                self.forgive_interruption()?;
            }
        }
        Ok(())
    }

    /// fflush: without it fsync would miss what the stream still holds.
    pub(super) fn flush(&mut self) -> Result<(), Errno> {
        // SAFETY: the stream is open.
        match unsafe { libc::fflush(self.0.as_ptr()) } {
            0 => Ok(()),
            _ => Err(last_error()),
        }
    }

    /// The descriptor under the stream.
    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        // SAFETY: the stream is open, and stays so for as long as `self` is borrowed.
        unsafe { BorrowedFd::borrow_raw(libc::fileno(self.0.as_ptr())) }
    }

    /// fclose, which also writes what is still in the stream's buffer, and may fail at that.
    pub(super) fn close(self) -> Result<(), Errno> {
        let stream = self.0;
        std::mem::forget(self);
        // SAFETY: the stream is open, and with `self` gone nobody can use it again.
        match unsafe { libc::fclose(stream.as_ptr()) } {
            0 => Ok(()),
            _ => Err(last_error()),
        }
    }

    /// fread of up to so many bytes; fewer only at the end of the file.
    ///
    /// # Safety
    /// `target` is valid for writes of `bytes` bytes.
    unsafe fn read(&mut self, target: NonNull<u8>, bytes: usize) -> Result<usize, Errno> {
        let mut got = 0;
        while got < bytes {
            // SAFETY: by the contract there is room for `bytes - got` bytes after the first `got`.
            let more = unsafe {
                let rest = target.as_ptr().add(got);
                libc::fread(rest.cast(), 1, bytes - got, self.0.as_ptr())
            };
            got += more;
            // SAFETY: the stream is open.
            if got < bytes && unsafe { libc::feof(self.0.as_ptr()) } != 0 {
                break;
            }
            if got < bytes {
                self.forgive_interruption()?;
            }
        }
        Ok(got)
    }

    /// After a call that fell short: an error, unless a signal was all that happened.
    fn forgive_interruption(&mut self) -> Result<(), Errno> {
        let error = last_error();
        if error != Errno::INTR {
            return Err(error);
        }
        // SAFETY: the stream is open.
        unsafe { libc::clearerr(self.0.as_ptr()) };
        Ok(())
    }
}

impl Drop for CFile {
    fn drop(&mut self) {
        // SAFETY: the stream is open, and nobody can use it after this.
        unsafe { libc::fclose(self.0.as_ptr()) };
    }
}

/// Memory from malloc, for one blob.
pub(super) struct CBuffer {
    memory: NonNull<u8>,
    capacity_bytes: usize,
}

impl CBuffer {
    /// malloc.
    pub(super) fn allocate(bytes: usize) -> Result<Self, Errno> {
        // At least one byte: malloc(0) may return nothing without being out of memory.
        // SAFETY: malloc has no preconditions.
        let memory = unsafe { libc::malloc(bytes.max(1)) };
        let memory = NonNull::new(memory.cast()).ok_or(Errno::NOMEM)?;
        Ok(Self {
            memory,
            capacity_bytes: bytes,
        })
    }

    /// Reads as many bytes as fit, or as there are, and returns them.
    pub(super) fn fill(&mut self, file: &mut CFile) -> Result<&[u8], Errno> {
        // SAFETY: `memory` has room for `capacity_bytes`.
        let got = unsafe { file.read(self.memory, self.capacity_bytes) }?;
        // SAFETY: fread has just initialised the first `got` bytes, and `self` is borrowed for as
        // long as the slice lives.
        Ok(unsafe { std::slice::from_raw_parts(self.memory.as_ptr(), got) })
    }

    /// Reads as [`CBuffer::fill`] does, from the start of a file, but without a stream: in the same
    /// pieces, of which the last goes through `block`.
    pub(super) fn fill_in_blocks(
        &mut self,
        file: BorrowedFd<'_>,
        block: &mut [u8],
    ) -> Result<&[u8], Errno> {
        let direct = self.capacity_bytes - self.capacity_bytes % block.len().max(1);
        let mut got = 0;
        while got < direct {
            // SAFETY: there is room for `direct - got` bytes after the first `got`.
            let more = unsafe {
                let rest = self.memory.as_ptr().add(got);
                libc::pread(file.as_raw_fd(), rest.cast(), direct - got, got as i64)
            };
            match usize::try_from(more) {
                Err(_) => return Err(last_error()),
                // Cut short meanwhile.
                Ok(0) => break,
                Ok(more) => got += more,
            }
        }
        if got == direct && direct < self.capacity_bytes {
            let tail = rustix::io::pread(file, &mut *block, direct as u64)?;
            let tail = tail.min(self.capacity_bytes - direct);
            // SAFETY: there is room for the tail after the first `direct` bytes, and `block`, which
            // is other memory, holds at least so many.
            unsafe {
                let rest = self.memory.as_ptr().add(direct);
                std::ptr::copy_nonoverlapping(block.as_ptr(), rest, tail);
            }
            got += tail;
        }
        // SAFETY: the first `got` bytes have just been initialised, and `self` is borrowed for as
        // long as the slice lives.
        Ok(unsafe { std::slice::from_raw_parts(self.memory.as_ptr(), got) })
    }
}

impl Drop for CBuffer {
    fn drop(&mut self) {
        // SAFETY: the memory came from malloc and is freed once.
        unsafe { libc::free(self.memory.as_ptr().cast()) };
    }
}

/// Which C library the streams are of.
pub(super) fn c_library() -> String {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        // SAFETY: the function has no preconditions and returns a static C string.
        let version = unsafe { CStr::from_ptr(libc::gnu_get_libc_version()) };
        format!("glibc {}", version.to_string_lossy())
    }
    #[cfg(not(all(target_os = "linux", target_env = "gnu")))]
    {
        format!("{} {}", std::env::consts::OS, "C library")
    }
}

fn last_error() -> Errno {
    let error = std::io::Error::last_os_error();
    Errno::from_io_error(&error).unwrap_or(Errno::IO)
}
