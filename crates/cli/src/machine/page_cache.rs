//! The page cache as seen from a file: how much of it is in memory, reading it in, and asking the
//! kernel to drop it.
//!
//! Counts come from cachestat(2) (Linux 6.5), or else from mincore(2): on older kernels, and on overlay
//! filesystems, where cachestat looks at the wrong layer. Both only for files whose owner (or root)
//! asks: to others the kernel refuses the first and answers the second with "all resident".
//! Contents only: whether inodes and directory entries are cached cannot be asked. Filesystems with a
//! cache of their own (ZFS) do not show in these counts. What state a trial needs is left to callers.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// How residency was found out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ResidencyMethod {
    /// cachestat(2): resident, dirty and under write-back.
    Cachestat,
    /// mincore(2): resident only.
    Mincore,
}

impl std::fmt::Display for ResidencyMethod {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Cachestat => "cachestat",
            Self::Mincore => "mincore",
        })
    }
}

/// How much of one or several files the page cache holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Residency {
    /// Pages that the content takes.
    pub pages: u64,
    /// Of these, pages in the cache.
    pub cached_pages: u64,
    /// Of these, pages that are newer than the disk; `None` if that is not told.
    pub dirty_pages: Option<u64>,
    /// Of these, pages that are being written to the disk; `None` if that is not told.
    pub writeback_pages: Option<u64>,
    /// How it was found out; the weaker method if there were several.
    pub method: ResidencyMethod,
}

impl Residency {
    /// Nothing at all: the sum of no files.
    pub const NONE: Self = Self {
        pages: 0,
        cached_pages: 0,
        dirty_pages: Some(0),
        writeback_pages: Some(0),
        method: ResidencyMethod::Cachestat,
    };

    /// The sum of two.
    pub fn plus(self, other: Self) -> Self {
        let sum = |one: Option<u64>, two: Option<u64>| Some(one? + two?);
        Self {
            pages: self.pages + other.pages,
            cached_pages: self.cached_pages + other.cached_pages,
            dirty_pages: sum(self.dirty_pages, other.dirty_pages),
            writeback_pages: sum(self.writeback_pages, other.writeback_pages),
            method: self.method.max(other.method),
        }
    }

    /// Whether every page is in the cache.
    pub fn is_fully_cached(&self) -> bool {
        self.cached_pages == self.pages
    }

    /// Whether no page is in the cache.
    pub fn is_fully_evicted(&self) -> bool {
        self.cached_pages == 0
    }
}

/// Why the page cache could not be asked or changed.
#[derive(Debug, thiserror::Error)]
pub enum PageCacheError {
    /// The kernel or platform has no way to tell.
    #[error("this system cannot tell what of {} is in the page cache", .path.display())]
    Unsupported {
        /// The file.
        path: PathBuf,
    },
    /// The file belongs to another user, to whom the kernel gives no (true) answer.
    #[error("only its owner may ask what of {} is in the page cache", .path.display())]
    NotOwner {
        /// The file.
        path: PathBuf,
    },
    /// The operating system failed.
    #[error("cannot {action} {}", .path.display())]
    Io {
        /// What was being done, as a verb.
        action: &'static str,
        /// To what.
        path: PathBuf,
        /// The operating system's answer.
        #[source]
        source: io::Error,
    },
}

impl PageCacheError {
    /// Whether the answer cannot be had here at all, as opposed to a failure: the state is then
    /// to be called unverified.
    pub fn is_unverifiable(&self) -> bool {
        matches!(self, Self::Unsupported { .. } | Self::NotOwner { .. })
    }
}

/// How much of a file, or of all files in a directory tree, is in the page cache. Links inside a
/// tree are not followed; what is no regular file counts nothing.
///
/// # Errors
/// If it cannot be told, or a file cannot be opened.
pub fn residency(path: &Path) -> Result<Residency, PageCacheError> {
    residency_of_sample(path, usize::MAX)
}

/// As [`residency`], but of at most `files_max` files of a tree, evenly spread.
///
/// # Errors
/// As [`residency`].
pub fn residency_of_sample(path: &Path, files_max: usize) -> Result<Residency, PageCacheError> {
    let mut files = Vec::new();
    list_files(path, &mut files)?;
    let step = files.len().div_ceil(files_max.max(1)).max(1);
    let mut sum = Residency::NONE;
    for path in files.iter().step_by(step) {
        let file = File::open(path).map_err(failed("open", path))?;
        sum = sum.plus(residency_of_file(path, &file)?);
    }
    Ok(sum)
}

/// Reads a file, or all files of a tree, from end to end, and returns the bytes read.
///
/// # Errors
/// If a file cannot be opened or read.
pub fn warm(path: &Path) -> Result<u64, PageCacheError> {
    let mut buffer = vec![0; 1 << 20];
    let mut read_bytes = 0;
    for_each_file(path, &mut |path, file| {
        // Only a hint, to keep the disk busy while we copy; the reading itself is what counts.
        #[cfg(target_os = "linux")]
        let _ = rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::WillNeed);
        let mut file = file;
        loop {
            match file.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(bytes) => read_bytes += bytes as u64,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(failed("read", path)(error)),
            }
        }
    })?;
    Ok(read_bytes)
}

/// Brings the inodes of a tree of our own files into the page cache as blocks of the filesystem,
/// by giving every file the time of now, and has that written back. Reading a file does not: its
/// inode is cached by itself, and the first write has to fetch the block that it lies in.
///
/// # Errors
/// If a file cannot be opened or its time not be set.
pub fn warm_inodes(path: &Path) -> Result<(), PageCacheError> {
    let now = rustix::fs::Timestamps {
        last_access: rustix::fs::Timespec {
            tv_sec: 0,
            tv_nsec: rustix::fs::UTIME_OMIT,
        },
        last_modification: rustix::fs::Timespec {
            tv_sec: 0,
            tv_nsec: rustix::fs::UTIME_NOW,
        },
    };
    for_each_file(path, &mut |path, file| {
        rustix::fs::futimens(file, &now)
            .map_err(io::Error::from)
            .map_err(failed("set the time of", path))
    })?;
    File::open(path)
        .and_then(|directory| sync_filesystem(&directory))
        .map_err(failed("write back", path))
}

/// Writes back and drops a file, or all files of a tree, from the page cache, and tells what stayed:
/// the kernel does not drop pages that some process has mapped, nor those of files in tmpfs. Inodes
/// and directory entries stay cached in any case. `None` if what stayed cannot be verified.
///
/// For a tree the whole filesystem is written back at once: file by file it would take about a
/// millisecond each.
///
/// # Errors
/// If a file cannot be opened or written back.
pub fn evict(path: &Path) -> Result<Option<Residency>, PageCacheError> {
    let is_written_back = write_back_tree(path)?;
    let mut sum = Some(Residency::NONE);
    for_each_file(path, &mut |path, file| {
        if !is_written_back {
            file.sync_data().map_err(failed("write back", path))?;
        }
        let stayed = drop_pages(path, file)?;
        sum = sum.zip(stayed).map(|(sum, stayed)| sum.plus(stayed));
        Ok(())
    })?;
    Ok(sum)
}

/// Has the filesystem of an open file write everything to its device, other files' data too.
///
/// # Errors
/// The device refused.
pub fn sync_filesystem(file: &File) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    rustix::fs::syncfs(file)?;
    // Elsewhere there is no such call: this one syncs all filesystems.
    #[cfg(not(target_os = "linux"))]
    {
        let _ = file;
        rustix::fs::sync();
    }
    Ok(())
}

fn failed<'path>(
    action: &'static str,
    path: &'path Path,
) -> impl Fn(io::Error) -> PageCacheError + 'path {
    move |source| PageCacheError::Io {
        action,
        path: path.to_path_buf(),
        source,
    }
}

/// Opens the file at `path`, or each regular file below it, one at a time.
fn for_each_file(
    path: &Path,
    visit: &mut dyn FnMut(&Path, &File) -> Result<(), PageCacheError>,
) -> Result<(), PageCacheError> {
    let mut files = Vec::new();
    list_files(path, &mut files)?;
    for path in &files {
        let file = File::open(path).map_err(failed("open", path))?;
        visit(path, &file)?;
    }
    Ok(())
}

/// Lists the file at `path`, or each regular file below it; links inside are not followed.
fn list_files(path: &Path, files: &mut Vec<PathBuf>) -> Result<(), PageCacheError> {
    let metadata = std::fs::metadata(path).map_err(failed("look at", path))?;
    if !metadata.is_dir() {
        files.push(path.to_path_buf());
        return Ok(());
    }
    let mut folders = vec![path.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).map_err(failed("list", &folder))? {
            let entry = entry.map_err(failed("list", &folder))?;
            let path = entry.path();
            let kind = entry.file_type().map_err(failed("look at", &path))?;
            if kind.is_dir() {
                folders.push(path);
            } else if kind.is_file() {
                files.push(path);
            }
        }
    }
    Ok(())
}

/// Writes back the filesystem of a directory; only clean pages can be dropped. `false` if the path is
/// no directory: a file is written back by itself.
fn write_back_tree(path: &Path) -> Result<bool, PageCacheError> {
    let folder = File::open(path).map_err(failed("open", path))?;
    let metadata = folder.metadata().map_err(failed("look at", path))?;
    if metadata.is_dir() {
        sync_filesystem(&folder).map_err(failed("write back", path))?;
    }
    Ok(metadata.is_dir())
}

/// Drops the clean pages of a file and counts what stayed.
fn drop_pages(path: &Path, file: &File) -> Result<Option<Residency>, PageCacheError> {
    #[cfg(target_os = "linux")]
    rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::DontNeed)
        .map_err(|error| failed("drop the cached pages of", path)(error.into()))?;
    match residency_of_file(path, file) {
        Ok(stayed) => Ok(Some(stayed)),
        Err(error) if error.is_unverifiable() => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(not(target_os = "linux"))]
fn residency_of_file(path: &Path, _file: &File) -> Result<Residency, PageCacheError> {
    // mincore exists elsewhere, but what it answers there has not been verified.
    Err(PageCacheError::Unsupported {
        path: path.to_path_buf(),
    })
}

#[cfg(target_os = "linux")]
fn residency_of_file(path: &Path, file: &File) -> Result<Residency, PageCacheError> {
    let metadata = file.metadata().map_err(failed("look at", path))?;
    if is_on_overlay(file) {
        return residency_by_mincore(path, file, &metadata);
    }
    let counts = match linux::cachestat(file) {
        Ok(counts) => counts,
        Err(error) => {
            return match error.raw_os_error() {
                Some(libc::EPERM) => Err(PageCacheError::NotOwner {
                    path: path.to_path_buf(),
                }),
                Some(libc::ENOSYS | libc::EOPNOTSUPP) => {
                    residency_by_mincore(path, file, &metadata)
                }
                _ => Err(failed("ask for the cached pages of", path)(error)),
            };
        }
    };
    let pages = pages(metadata.len());
    Ok(Residency {
        pages,
        // The cache may hold pages beyond the end of the content.
        cached_pages: counts.cached_pages.min(pages),
        dirty_pages: Some(counts.dirty_pages),
        writeback_pages: Some(counts.writeback_pages),
        method: ResidencyMethod::Cachestat,
    })
}

/// Pages that so many bytes take.
#[cfg(target_os = "linux")]
fn pages(bytes: u64) -> u64 {
    bytes.div_ceil(rustix::param::page_size() as u64)
}

/// On an overlay, which is what containers stand on, the content is cached for the file in the layer
/// below. cachestat asks for the overlay's own file and finds nothing, whatever is cached; a mapping
/// leads to the layer below, so mincore sees it. (Observed on Linux 6.18.)
#[cfg(target_os = "linux")]
fn is_on_overlay(file: &File) -> bool {
    /// `OVERLAYFS_SUPER_MAGIC` of linux/magic.h.
    const OVERLAY_MAGIC: u64 = 0x794c_7630;
    // The type of the field differs between architectures; the magic number is positive in all.
    rustix::fs::fstatfs(file).is_ok_and(|answer| answer.f_type as u64 == OVERLAY_MAGIC)
}

/// The weaker way. To who does not own the file the kernel answers that all of it is resident, so it
/// is not asked then.
#[cfg(target_os = "linux")]
fn residency_by_mincore(
    path: &Path,
    file: &File,
    metadata: &std::fs::Metadata,
) -> Result<Residency, PageCacheError> {
    use std::os::unix::fs::MetadataExt;
    let user = rustix::process::geteuid();
    if !user.is_root() && user.as_raw() != metadata.uid() {
        return Err(PageCacheError::NotOwner {
            path: path.to_path_buf(),
        });
    }
    let counted = linux::mincore(file, metadata.len());
    let cached_pages = counted.map_err(|error| match error.raw_os_error() {
        Some(libc::ENOSYS | libc::ENODEV) => PageCacheError::Unsupported {
            path: path.to_path_buf(),
        },
        _ => failed("ask for the cached pages of", path)(error),
    })?;
    Ok(Residency {
        pages: pages(metadata.len()),
        cached_pages,
        dirty_pages: None,
        writeback_pages: None,
        method: ResidencyMethod::Mincore,
    })
}

/// The two system calls.
#[cfg(target_os = "linux")]
mod linux {
    use std::fs::File;
    use std::io;
    use std::os::fd::AsRawFd;
    use std::ptr::null_mut;

    /// The same number on every architecture but Alpha, which Rust does not support.
    const SYS_CACHESTAT: libc::c_long = 451;

    /// `struct cachestat_range` of linux/mman.h; a length of 0 means to the end.
    #[repr(C)]
    struct CachestatRange {
        offset_bytes: u64,
        length_bytes: u64,
    }

    /// `struct cachestat` of linux/mman.h, in pages.
    #[repr(C)]
    #[derive(Default)]
    pub(super) struct Cachestat {
        pub(super) cached_pages: u64,
        pub(super) dirty_pages: u64,
        pub(super) writeback_pages: u64,
        evicted_pages: u64,
        recently_evicted_pages: u64,
    }

    pub(super) fn cachestat(file: &File) -> io::Result<Cachestat> {
        let range = CachestatRange {
            offset_bytes: 0,
            length_bytes: 0,
        };
        let mut counts = Cachestat::default();
        // SAFETY: the descriptor is open for the whole call; both pointers are to live values laid
        // out as the kernel expects, of which it reads the first and writes the second.
        let status = unsafe {
            libc::syscall(
                SYS_CACHESTAT,
                file.as_raw_fd(),
                &raw const range,
                &raw mut counts,
                0,
            )
        };
        if status != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(counts)
    }

    /// Counts resident pages through a mapping, a stretch at a time so that a large file takes
    /// little memory for the answer.
    pub(super) fn mincore(file: &File, length_bytes: u64) -> io::Result<u64> {
        const STRETCH_BYTES: u64 = 256 << 20;
        let page_bytes = rustix::param::page_size() as u64;
        let mut resident_pages = 0;
        let mut offset = 0;
        while offset < length_bytes {
            let bytes = STRETCH_BYTES.min(length_bytes - offset);
            let mut pages = vec![0u8; bytes.div_ceil(page_bytes) as usize];
            mincore_stretch(file, offset, bytes as usize, &mut pages)?;
            resident_pages += pages.iter().filter(|&&page| page & 1 == 1).count() as u64;
            offset += bytes;
        }
        Ok(resident_pages)
    }

    fn mincore_stretch(file: &File, offset: u64, bytes: usize, pages: &mut [u8]) -> io::Result<()> {
        let offset = libc::off_t::try_from(offset).map_err(io::Error::other)?;
        // SAFETY: a new read-only mapping at an address of the kernel's choice; nothing reads from
        // it, so a file that shrinks meanwhile does no harm.
        let address = unsafe {
            libc::mmap(
                null_mut(),
                bytes,
                libc::PROT_READ,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                offset,
            )
        };
        if address == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the range is the mapping just made, and `pages` has one byte for each of its pages.
        let status = unsafe { libc::mincore(address, bytes, pages.as_mut_ptr()) };
        let answer = if status == 0 {
            Ok(())
        } else {
            Err(io::Error::last_os_error())
        };
        // SAFETY: the mapping was made above, and no reference into it exists.
        unsafe { libc::munmap(address, bytes) };
        answer
    }
}

#[cfg(test)]
#[path = "page_cache_tests.rs"]
mod tests;
