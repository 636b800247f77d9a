//! Unpacking an archive into a directory, so that nothing leaves it and nothing is overwritten unasked.
//!
//! [`plan`] checks every name, link, size and what is there already, and refuses as a whole before anything
//! is written. Then directories are made, files are written by several threads, links come when no file is to be
//! written any more, and permissions and times of directories last. All of it is relative to open directories
//! ([`crate::directory`]), so that a link which is planted meanwhile is not followed either.

mod draft;
mod plan;
mod writing;

use std::path::{Path, PathBuf};

use crate::archive::Archive;
use crate::directory::Directory;
use crate::error::ArchiveError;
use crate::lookup::LARGEST_WHOLE_BYTES;
use crate::pack::default_threads;
use crate::watch::Watch;

/// Unless told otherwise, an archive may become so many times as large ...
const MOST_GROWTH: u64 = 100;

/// ... or this many bytes, whichever is more.
const SMALL_BYTES: u64 = 1 << 30;

/// What is done with symbolic links.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Links {
    /// Those that cannot lead out of the target are made; one that could is refused, and with it the archive.
    Inside,
    /// All are made, wherever they lead. None is followed.
    All,
    /// None is made.
    Skip,
}

/// How an archive is unpacked.
#[derive(Debug, Clone)]
pub struct UnpackSettings {
    /// What to unpack: each name stands for itself and all below it. Empty: everything.
    pub names: Vec<String>,
    /// Whether files and links that exist are replaced.
    pub force: bool,
    /// What is done with symbolic links.
    pub links: Links,
    /// Largest file, in bytes.
    pub max_entry_bytes: u64,
    /// Bytes of all files together; by default 100 times the archive, or 1 GiB if that is more.
    pub max_total_bytes: Option<u64>,
    /// Threads that read and write.
    pub threads: usize,
}

impl Default for UnpackSettings {
    fn default() -> Self {
        Self {
            names: Vec::new(),
            force: false,
            links: Links::Inside,
            max_entry_bytes: LARGEST_WHOLE_BYTES,
            max_total_bytes: None,
            threads: default_threads(),
        }
    }
}

/// What was unpacked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UnpackReport {
    /// Files.
    pub files: u64,
    /// Directories that stand in the archive.
    pub directories: u64,
    /// Symbolic links.
    pub links: u64,
    /// Links that were left out, as asked for.
    pub links_skipped: u64,
    /// Bytes of content.
    pub content_bytes: u64,
}

/// Unpacks an archive into a directory, which is made if it is missing. Nothing is synced.
///
/// # Errors
/// Something in it is unsafe, would overwrite, is larger than allowed or does not fit: then nothing was written.
/// Or an entry's content is not what the archive says, or the system refuses: then what is there is whole, and the
/// rest is missing. So it is after a kill, where the filesystem has files without a name (`O_TMPFILE`).
pub fn unpack(
    archive: &Archive,
    target: &Path,
    settings: &UnpackSettings,
    watch: &Watch,
) -> Result<UnpackReport, ArchiveError> {
    let plan = plan::plan(&archive.reader()?, settings)?;
    let default_limit = archive.bytes().saturating_mul(MOST_GROWTH).max(SMALL_BYTES);
    let limit_bytes = settings.max_total_bytes.unwrap_or(default_limit);
    if plan.content_bytes > limit_bytes {
        return Err(ArchiveError::OverLimit {
            what: "the content".to_owned(),
            bytes: plan.content_bytes,
            limit_bytes,
        });
    }
    check_space(target, plan.content_bytes)?;
    let existed = target.exists();
    if existed {
        let mut directory = Directory::open(target).map_err(ArchiveError::io("open", target))?;
        plan::check_target(&plan, &mut directory, target, settings.force)?;
    } else {
        std::fs::create_dir_all(target).map_err(ArchiveError::io("create", target))?;
    }
    let directory = Directory::open(target).map_err(ArchiveError::io("open", target))?;
    if plan::ignores_case(&directory, target)? {
        plan::check_case(&plan)?;
    }
    watch.begin(plan.entries() as u64, plan.content_bytes);
    writing::write(archive, &plan, &directory, target, settings, watch)?;
    Ok(UnpackReport {
        files: plan.files.len() as u64,
        directories: plan.directories.len() as u64,
        links: plan.links.len() as u64,
        links_skipped: plan.links_skipped,
        content_bytes: plan.content_bytes,
    })
}

/// What is checked of an archive before unpacking it, alone.
pub(crate) fn check_plan(
    reader: &crate::reader::Reader,
    settings: &UnpackSettings,
) -> Result<usize, ArchiveError> {
    plan::plan(reader, settings).map(|plan| plan.entries())
}

/// A disk that is too small is found out before, and not when it is full.
fn check_space(target: &Path, needed_bytes: u64) -> Result<(), ArchiveError> {
    let absolute = std::path::absolute(target).unwrap_or_else(|_| target.to_owned());
    let existing: PathBuf = absolute
        .ancestors()
        .find(|path| path.exists())
        .unwrap_or(Path::new("/"))
        .to_owned();
    let Ok(space) = rustix::fs::statvfs(&existing) else {
        return Ok(());
    };
    let free_bytes = space.f_bavail.saturating_mul(space.f_frsize);
    if needed_bytes > free_bytes {
        return Err(ArchiveError::TooLittleSpace {
            path: existing,
            needed_bytes,
            free_bytes,
        });
    }
    Ok(())
}
