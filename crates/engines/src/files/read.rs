//! Reading one blob from its file, in each of the ways that `api` names. The sequence of system
//! calls is what is measured: each way makes those that it is known for, and no others.

use memmap2::MmapOptions;
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags, fstat, openat, stat};
use rustix::io::{Errno, read, retry_on_intr};

use super::stdio::{CBuffer, CFile};
use super::{Api, Failure, FilesSession};

impl FilesSession {
    /// Reads the blob that `self.path` is set to.
    pub(super) fn read_blob(&mut self, consume: &mut dyn FnMut(&[u8])) -> Result<(), Failure> {
        match self.means.api {
            Api::Stdio => self.read_through_stream(consume),
            Api::Open | Api::Openat => self.read_into_buffer(consume),
            Api::Mmap => self.read_through_mapping(consume),
        }
    }

    /// What `readFile()` of `kvtest` does: stat, fopen, a new buffer, fread, fclose.
    fn read_through_stream(&mut self, consume: &mut dyn FnMut(&[u8])) -> Result<(), Failure> {
        let path = self.path.full();
        let status = stat(path).map_err(Failure::of("look at"))?;
        let mut file = CFile::open(path, c"rb").map_err(Failure::of("open"))?;
        let mut buffer = CBuffer::allocate(length_in_bytes(status.st_size))
            .map_err(Failure::of("get memory for"))?;
        let blob = buffer.fill(&mut file).map_err(Failure::of("read"))?;
        file.close().map_err(Failure::of("close"))?;
        consume(blob);
        Ok(())
    }

    /// open, fstat, read, close; the buffer is used again.
    fn read_into_buffer(&mut self, consume: &mut dyn FnMut(&[u8])) -> Result<(), Failure> {
        let (file, bytes) = self.open_to_read()?;
        if self.buffer.len() < bytes {
            self.buffer.resize(bytes, 0);
        }
        let mut filled = 0;
        while filled < bytes {
            let rest = &mut self.buffer[filled..bytes];
            match retry_on_intr(|| read(&file, &mut *rest)).map_err(Failure::of("read"))? {
                // The file was cut short since fstat: there is no more than this.
                0 => break,
                more => filled += more,
            }
        }
        drop(file);
        consume(&self.buffer[..filled]);
        Ok(())
    }

    /// openat, fstat, mmap, munmap, close.
    fn read_through_mapping(&mut self, consume: &mut dyn FnMut(&[u8])) -> Result<(), Failure> {
        let (file, bytes) = self.open_to_read()?;
        if bytes == 0 {
            // An empty mapping is not allowed.
            consume(&[]);
            return Ok(());
        }
        // SAFETY: the bytes are read once, as plain bytes, and the mapping ends here. That nobody
        // cuts the file short meanwhile cannot be ensured; the engine's documentation says so.
        let mapping = unsafe { MmapOptions::new().len(bytes).map(&file) }
            .map_err(|error| Failure::of("map")(error_number(&error)))?;
        consume(&mapping);
        Ok(())
    }

    fn open_to_read(&self) -> Result<(OwnedFd, usize), Failure> {
        let (directory, path) = self.place(&self.path);
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let file = retry_on_intr(|| openat(directory, path, flags, Mode::empty()))
            .map_err(Failure::of("open"))?;
        let status = fstat(&file).map_err(Failure::of("look at"))?;
        Ok((file, length_in_bytes(status.st_size)))
    }
}

/// The system's signed length; never negative for a file.
fn length_in_bytes(st_size: i64) -> usize {
    usize::try_from(st_size).unwrap_or(0)
}

fn error_number(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}
