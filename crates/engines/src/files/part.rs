//! Parts of the work on a file, for finding out where its time goes: the same calls that reading
//! or overwriting a blob makes, but only some of them. What they cost together is compared with
//! the whole by whoever measures.
//!
//! Descriptors that are kept are opened at the first use of each key, so that the lead-in of a
//! trial, which passes over all keys, has opened all of them.

use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{Mode, OFlags, fstat, ftruncate, openat, stat, statat};
use rustix::io::{pread, pwrite, retry_on_intr};

use super::stdio::{CBuffer, CFile, STREAM_BLOCK_BYTES};
use super::{Api, Failure, FilesSession};

/// What of the work is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    All,
    /// stat by the path, and nothing else.
    LookUp,
    /// fstat of a descriptor that is kept.
    Status,
    /// The file is opened and closed, and not read or written.
    OpenClose,
    /// The content is read from, or written to, a descriptor that is kept.
    Content,
}

impl Part {
    /// Values of the setting.
    pub(super) const WORDS: &[&str] = &["all", "look-up", "status", "open-close", "content"];

    /// The last arm stands for the one value that is left.
    pub(super) fn of(word: &str) -> Self {
        match word {
            "all" => Self::All,
            "look-up" => Self::LookUp,
            "status" => Self::Status,
            "open-close" => Self::OpenClose,
            _ => Self::Content,
        }
    }

    /// Value of the setting.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::LookUp => "look-up",
            Self::Status => "status",
            Self::OpenClose => "open-close",
            Self::Content => "content",
        }
    }

    /// Whether blobs are delivered whole.
    pub(super) fn delivers(self) -> bool {
        matches!(self, Self::All | Self::Content)
    }

    /// Whether each file stays open.
    pub(super) fn keeps_descriptors(self) -> bool {
        matches!(self, Self::Status | Self::Content)
    }
}

/// Files that stay open, by key.
#[derive(Default)]
pub(super) struct KeptFiles {
    files: Vec<Option<Kept>>,
}

struct Kept {
    file: OwnedFd,
    bytes: usize,
}

/// As many open files as are asked for: the kernel's own default for the most that a process may
/// be allowed (`fs.nr_open`).
const MANY_FILES: u64 = 1 << 20;

/// Allows this process as many open files as it may have at all: with the right to, more than it
/// was given.
pub(super) fn allow_many_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let most = limit.maximum.map(|most| most.max(MANY_FILES));
    for allowed in [most, limit.maximum] {
        let limit = Rlimit {
            current: allowed,
            maximum: allowed,
        };
        // Where both fail there is room for fewer files, which opening them will say.
        if setrlimit(Resource::Nofile, limit).is_ok() {
            return;
        }
    }
}

impl FilesSession {
    /// Does a part of reading the blob that `self.path` is set to.
    pub(super) fn read_part(
        &mut self,
        key: u64,
        consume: &mut dyn FnMut(&[u8]),
    ) -> Result<(), Failure> {
        match self.means.part {
            Part::All => return self.read_blob(consume),
            Part::LookUp => self.look_up()?,
            Part::OpenClose => self.open_and_close(c"rb", OFlags::RDONLY)?,
            Part::Status => {
                fstat(&self.kept(key)?.file).map_err(Failure::of("look at"))?;
            }
            Part::Content => return self.read_content(key, consume),
        }
        consume(&[]);
        Ok(())
    }

    /// Does a part of overwriting the blob that `self.path` is set to.
    pub(super) fn write_part(&mut self, key: u64, value: &[u8]) -> Result<(), Failure> {
        match self.means.part {
            Part::OpenClose => self.open_and_close(c"r+b", OFlags::WRONLY),
            Part::Content => self.write_content(key, value),
            Part::LookUp => self.look_up(),
            _ => {
                fstat(&self.kept(key)?.file).map_err(Failure::of("look at"))?;
                Ok(())
            }
        }
    }

    fn look_up(&self) -> Result<(), Failure> {
        let found = match self.means.api {
            Api::Stdio | Api::Open => stat(self.path.full()),
            Api::Openat | Api::Mmap => {
                let (directory, path) = self.place(&self.path);
                statat(directory, path, rustix::fs::AtFlags::empty())
            }
        };
        found.map(|_| ()).map_err(Failure::of("look at"))
    }

    fn open_and_close(&self, mode: &std::ffi::CStr, flags: OFlags) -> Result<(), Failure> {
        if self.means.api == Api::Stdio {
            let file = CFile::open(self.path.full(), mode).map_err(Failure::of("open"))?;
            return file.close().map_err(Failure::of("close"));
        }
        let (directory, path) = self.place(&self.path);
        let flags = flags | OFlags::CLOEXEC;
        let opened = retry_on_intr(|| openat(directory, path, flags, Mode::empty()));
        opened.map(drop).map_err(Failure::of("open"))
    }

    /// The file of a key, opened at its first use.
    fn kept(&mut self, key: u64) -> Result<&mut Kept, Failure> {
        let index = usize::try_from(key).unwrap_or(usize::MAX - 1);
        if self.kept.files.len() <= index {
            self.kept.files.resize_with(index + 1, || None);
        }
        if self.kept.files[index].is_none() {
            let (directory, path) = self.place(&self.path);
            let flags = OFlags::RDWR | OFlags::CLOEXEC;
            let file = retry_on_intr(|| openat(directory, path, flags, Mode::empty()))
                .map_err(Failure::of("keep open"))?;
            let status = fstat(&file).map_err(Failure::of("look at"))?;
            let bytes = usize::try_from(status.st_size).unwrap_or(0);
            self.kept.files[index] = Some(Kept { file, bytes });
        }
        match &mut self.kept.files[index] {
            Some(kept) => Ok(kept),
            None => Err(Failure::of("keep open")(rustix::io::Errno::BADF)),
        }
    }

    /// The reads that `api` makes, in the same pieces and to the same kind of memory.
    fn read_content(&mut self, key: u64, consume: &mut dyn FnMut(&[u8])) -> Result<(), Failure> {
        let through_stream = self.means.api == Api::Stdio;
        // Taken out, since the file is borrowed from the session too.
        let mut buffer = std::mem::take(&mut self.buffer);
        let read = self.kept(key).and_then(|kept| match through_stream {
            true => read_as_stream(kept, &mut buffer, consume),
            false => read_at_once(kept, &mut buffer, consume),
        });
        self.buffer = buffer;
        read
    }

    fn write_content(&mut self, key: u64, value: &[u8]) -> Result<(), Failure> {
        let kept = self.kept(key)?;
        let mut written = 0;
        while written < value.len() {
            let rest = &value[written..];
            let more = retry_on_intr(|| pwrite(&kept.file, rest, written as u64));
            written += more.map_err(Failure::of("write"))?;
        }
        if value.len() < kept.bytes {
            ftruncate(&kept.file, value.len() as u64).map_err(Failure::of("shorten"))?;
        }
        kept.bytes = value.len();
        Ok(())
    }
}

/// New memory for each blob, filled as a C stream fills it.
fn read_as_stream(
    kept: &Kept,
    block: &mut Vec<u8>,
    consume: &mut dyn FnMut(&[u8]),
) -> Result<(), Failure> {
    block.resize(STREAM_BLOCK_BYTES, 0);
    let mut memory = CBuffer::allocate(kept.bytes).map_err(Failure::of("get memory for"))?;
    let blob = memory.fill_in_blocks(kept.file.as_fd(), block);
    consume(blob.map_err(Failure::of("read"))?);
    Ok(())
}

/// One read into memory that is used again.
fn read_at_once(
    kept: &Kept,
    buffer: &mut Vec<u8>,
    consume: &mut dyn FnMut(&[u8]),
) -> Result<(), Failure> {
    if buffer.len() < kept.bytes {
        buffer.resize(kept.bytes, 0);
    }
    let mut filled = 0;
    while filled < kept.bytes {
        let rest = &mut buffer[filled..kept.bytes];
        match retry_on_intr(|| pread(&kept.file, &mut *rest, filled as u64)) {
            // Cut short since it was opened.
            Ok(0) => break,
            Ok(more) => filled += more,
            Err(errno) => return Err(Failure::of("read")(errno)),
        }
    }
    consume(&buffer[..filled]);
    Ok(())
}
