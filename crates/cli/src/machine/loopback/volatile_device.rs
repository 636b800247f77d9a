//! A disk with a volatile write cache, served by this process: an image in a FUSE filesystem, below
//! a loop device. It knows which writes the last flush has made safe, so its power can be cut in one
//! instant, below any filesystem, and then it forgets what a real disk may forget.
//!
//! What it shows: writes in the order in which they reached the device or, as disks reorder them,
//! an arbitrary part of those that no flush has made safe, in pieces of a page. What it cannot: pieces
//! smaller than a page, a flush that lies, a device that loses what it had long written.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use fuser::{
    BackgroundSession, Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags,
    Generation, INodeNo, LockOwner, MountOption, OpenFlags, ReplyAttr, ReplyData, ReplyEmpty,
    ReplyEntry, ReplyOpen, ReplyWrite, Request, WriteFlags,
};
use sqlitmus_core::dataset::mix;

use super::{IMAGE, LoopbackError, MOUNT, failed, mounting, remove_folder};
use crate::machine::ownership;
use crate::machine::scratch::{Scratch, ScratchLock};

/// What a device writes as a whole.
const PIECE_BYTES: usize = 4096;

/// The cache's size: what it holds beyond, it writes by itself, the oldest first.
const CACHE_BYTES: usize = 64 << 20;

/// Attributes do not change.
const ATTRIBUTES_HOLD: Duration = Duration::from_secs(3600);

/// The image's number; 1 is the directory's.
const IMAGE_INODE: u64 = 2;

/// What is left in the instant of the cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AtCut {
    /// All writes that reached the device.
    KeepAll,
    /// All that a flush has made safe, and of the others each piece as a coin falls.
    KeepSome,
}

/// A served image. Dropping it takes it away.
#[derive(Debug)]
pub struct VolatileDevice {
    /// The directory that is ours.
    folder: PathBuf,
    device: Arc<Mutex<Device>>,
    session: Option<BackgroundSession>,
}

impl VolatileDevice {
    /// Serves an empty image of so many bytes.
    ///
    /// # Errors
    /// FUSE is not there, or the system refuses.
    pub fn create(
        scratch: &Scratch,
        _lock: &ScratchLock,
        name: &str,
        bytes: u64,
    ) -> Result<Self, LoopbackError> {
        require()?;
        let folder = scratch.open_loopback_directory()?.join(name);
        ownership::create_directory(&folder, "served image")?;
        let (image, point) = (folder.join(IMAGE), folder.join(MOUNT));
        let made = std::fs::create_dir(&point).and_then(|()| {
            let file = File::options()
                .read(true)
                .write(true)
                .create_new(true)
                .open(&image)?;
            file.set_len(bytes)?;
            Ok(file)
        });
        // From here on dropping it takes the folder away.
        let device = match made {
            Ok(file) => Device::new(file),
            Err(error) => {
                let _ = ownership::remove_owned(&folder);
                return Err(failed("create", &image)(error));
            }
        };
        let mut served = Self {
            folder,
            device: Arc::new(Mutex::new(device)),
            session: None,
        };
        let mut config = Config::default();
        config.mount_options = vec![MountOption::FSName("sqlitmus".to_owned())];
        let server = Server {
            device: Arc::clone(&served.device),
            bytes,
            created: SystemTime::now(),
        };
        let session = fuser::spawn_mount(server, &point, &config);
        served.session = Some(session.map_err(failed("mount a served image at", &point))?);
        Ok(served)
    }

    /// The image as it is served, for a loop device.
    #[must_use]
    pub fn served_image(&self) -> PathBuf {
        self.folder.join(MOUNT).join(IMAGE)
    }

    /// Cuts the power: nothing is written or flushed from now on, and what is not safe is forgotten
    /// as `keep` says.
    ///
    /// # Errors
    /// The image cannot be written.
    pub fn cut(&mut self, keep: AtCut, seed: u64) -> io::Result<()> {
        lock(&self.device).cut(keep, seed)
    }

    /// Ends serving, once nothing uses the image any more; returns the file that it was.
    ///
    /// # Errors
    /// Something still uses it.
    pub fn stop(&mut self) -> Result<PathBuf, LoopbackError> {
        let point = self.folder.join(MOUNT);
        mounting::unmount(&point)?;
        if let Some(session) = self.session.take() {
            // Its thread ends with the mount.
            session.join().map_err(failed("stop serving at", &point))?;
        }
        Ok(self.folder.join(IMAGE))
    }
}

impl Drop for VolatileDevice {
    fn drop(&mut self) {
        // What is left is found by the next start.
        let _ = self.stop();
        let _ = remove_folder(&self.folder);
    }
}

/// Makes sure that images can be served here.
///
/// # Errors
/// [`LoopbackError::Unavailable`], with how to get what is missing.
pub fn require() -> Result<(), LoopbackError> {
    if Path::new("/dev/fuse").exists() {
        return Ok(());
    }
    Err(LoopbackError::Unavailable {
        what: "a disk with a volatile cache".to_owned(),
        missing: "there is no FUSE (/dev/fuse)".to_owned(),
        hint: "load it: modprobe fuse; in a container, ask for the device".to_owned(),
    })
}

fn lock(device: &Mutex<Device>) -> MutexGuard<'_, Device> {
    device.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A write that no flush has made safe.
#[derive(Debug)]
struct Unsafe {
    position: u64,
    old: Vec<u8>,
    new: Vec<u8>,
}

/// The image, and what is not safe of it.
#[derive(Debug)]
struct Device {
    file: File,
    is_off: bool,
    unsafe_writes: std::collections::VecDeque<Unsafe>,
    unsafe_bytes: usize,
}

impl Device {
    fn new(file: File) -> Self {
        Self {
            file,
            is_off: false,
            unsafe_writes: std::collections::VecDeque::new(),
            unsafe_bytes: 0,
        }
    }

    fn write(&mut self, position: u64, data: &[u8]) -> io::Result<()> {
        self.require_power()?;
        let mut old = vec![0; data.len()];
        self.file.read_exact_at(&mut old, position)?;
        self.file.write_all_at(data, position)?;
        self.unsafe_bytes += data.len();
        self.unsafe_writes.push_back(Unsafe {
            position,
            old,
            new: data.to_vec(),
        });
        while self.unsafe_bytes > CACHE_BYTES {
            let written = self.unsafe_writes.pop_front();
            self.unsafe_bytes -= written.map_or(self.unsafe_bytes, |write| write.new.len());
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.require_power()?;
        self.unsafe_writes.clear();
        self.unsafe_bytes = 0;
        Ok(())
    }

    fn require_power(&self) -> io::Result<()> {
        if self.is_off {
            return Err(io::Error::from_raw_os_error(libc::EIO));
        }
        Ok(())
    }

    fn cut(&mut self, keep: AtCut, seed: u64) -> io::Result<()> {
        self.is_off = true;
        if keep == AtCut::KeepAll {
            return Ok(());
        }
        // Back to the last flush, then forward again with what the coin lets live.
        for write in self.unsafe_writes.iter().rev() {
            self.file.write_all_at(&write.old, write.position)?;
        }
        let mut random = seed;
        for write in &self.unsafe_writes {
            for (index, piece) in write.new.chunks(PIECE_BYTES).enumerate() {
                random = mix(random);
                if random >> 63 == 0 {
                    let position = write.position + (index * PIECE_BYTES) as u64;
                    self.file.write_all_at(piece, position)?;
                }
            }
        }
        Ok(())
    }
}

/// A filesystem of one file.
struct Server {
    device: Arc<Mutex<Device>>,
    bytes: u64,
    created: SystemTime,
}

impl Server {
    fn attributes(&self, inode: u64) -> FileAttr {
        let is_image = inode == IMAGE_INODE;
        let time = self.created;
        FileAttr {
            ino: INodeNo(inode),
            size: if is_image { self.bytes } else { 0 },
            blocks: self.bytes / 512,
            atime: time,
            mtime: time,
            ctime: time,
            crtime: time,
            kind: if is_image {
                FileType::RegularFile
            } else {
                FileType::Directory
            },
            perm: if is_image { 0o600 } else { 0o700 },
            nlink: 1,
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: PIECE_BYTES as u32,
            flags: 0,
        }
    }
}

impl Filesystem for Server {
    fn lookup(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        if parent == INodeNo::ROOT && name == IMAGE {
            reply.entry(
                &ATTRIBUTES_HOLD,
                &self.attributes(IMAGE_INODE),
                Generation(0),
            );
        } else {
            reply.error(Errno::ENOENT);
        }
    }

    fn getattr(&self, _request: &Request, inode: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        reply.attr(&ATTRIBUTES_HOLD, &self.attributes(inode.0));
    }

    fn open(&self, _request: &Request, _inode: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        reply.opened(FileHandle(0), FopenFlags::empty());
    }

    fn read(
        &self,
        _request: &Request,
        _inode: INodeNo,
        _handle: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let mut bytes = vec![0; (self.bytes.saturating_sub(offset)).min(u64::from(size)) as usize];
        match lock(&self.device).file.read_exact_at(&mut bytes, offset) {
            Ok(()) => reply.data(&bytes),
            Err(_) => reply.error(Errno::EIO),
        }
    }

    fn write(
        &self,
        _request: &Request,
        _inode: INodeNo,
        _handle: FileHandle,
        offset: u64,
        data: &[u8],
        _write_flags: WriteFlags,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        match lock(&self.device).write(offset, data) {
            Ok(()) => reply.written(data.len() as u32),
            Err(_) => reply.error(Errno::EIO),
        }
    }

    fn flush(
        &self,
        _request: &Request,
        _inode: INodeNo,
        _handle: FileHandle,
        _owner: LockOwner,
        reply: ReplyEmpty,
    ) {
        // Closing a file makes nothing safe.
        reply.ok();
    }

    fn fsync(
        &self,
        _request: &Request,
        _inode: INodeNo,
        _handle: FileHandle,
        _datasync: bool,
        reply: ReplyEmpty,
    ) {
        match lock(&self.device).flush() {
            Ok(()) => reply.ok(),
            Err(_) => reply.error(Errno::EIO),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(bytes: usize) -> Device {
        let file = tempfile::tempfile().expect("file");
        file.set_len(bytes as u64).expect("length");
        Device::new(file)
    }

    fn content(device: &Device, bytes: usize) -> Vec<u8> {
        let mut content = vec![0; bytes];
        device.file.read_exact_at(&mut content, 0).expect("read");
        content
    }

    #[test]
    fn what_was_flushed_stays_and_the_rest_is_a_matter_of_luck() {
        const PIECES: usize = 64;
        let bytes = PIECES * PIECE_BYTES;
        let mut device = device(bytes);
        device.write(0, &vec![1; bytes]).expect("written");
        device.flush().expect("flushed");
        // Twice, so that the older of two unsafe writes can be what is left.
        device.write(0, &vec![2; bytes]).expect("written");
        device.write(0, &vec![3; bytes]).expect("written");
        device.cut(AtCut::KeepSome, 5).expect("cut");
        let content = content(&device, bytes);
        let count = |value: u8| {
            let pieces = content.chunks(PIECE_BYTES);
            pieces
                .filter(|piece| piece.iter().all(|byte| *byte == value))
                .count()
        };
        assert_eq!(count(1) + count(2) + count(3), PIECES);
        assert!(count(1) > 0 && count(2) > 0 && count(3) > 0);
        assert!(device.write(0, &[9]).is_err() && device.flush().is_err());
    }

    #[test]
    fn a_device_that_keeps_all_keeps_all() {
        let mut device = device(2 * PIECE_BYTES);
        device
            .write(PIECE_BYTES as u64, &[7; PIECE_BYTES])
            .expect("written");
        device.cut(AtCut::KeepAll, 1).expect("cut");
        let content = content(&device, 2 * PIECE_BYTES);
        assert_eq!(content[PIECE_BYTES..], [7; PIECE_BYTES]);
        assert!(device.write(0, &[9]).is_err());
    }

    #[test]
    fn the_cache_is_not_larger_than_it_is() {
        let mut device = device(CACHE_BYTES / 2);
        for value in 1..=3 {
            device
                .write(0, &vec![value; CACHE_BYTES / 2])
                .expect("written");
        }
        // The first is on the device: nothing can bring back what was there before it.
        device.cut(AtCut::KeepSome, 3).expect("cut");
        assert!(
            content(&device, CACHE_BYTES / 2)
                .iter()
                .all(|byte| *byte > 0)
        );
    }
}
