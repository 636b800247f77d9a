//! Walking a directory tree with several threads: every folder is read by one of them, relative to its
//! parent's open descriptor, and every entry in it is looked at once, without following symbolic
//! links. What is done with the entries is a [`Visitor`]'s, one for each thread.
//!
//! This is not left to a library because those at hand (`ignore`, `jwalk`, `walkdir`) hand out paths:
//! size, time and inode then cost a second look by the whole path for every entry, and a folder that
//! is replaced by a symbolic link meanwhile leads out of the tree. METHODOLOGY.md has the figures.

mod ancestry;
mod folder_queue;
pub(crate) mod listing;
mod progress;
mod walker;

use std::num::NonZeroUsize;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, fstat, openat};
use sqlitmus_core::tree_scan::Oddities;

use crate::entry::{Entry, EntryKind, Status};
use crate::error::TreeError;
pub use progress::WalkProgress;
use walker::{Shared, Walker};

/// The top of a directory tree, open.
#[derive(Debug)]
pub struct Tree {
    path: PathBuf,
    folder: OwnedFd,
    status: Status,
}

impl Tree {
    /// Opens a directory; if the path is a symbolic link to one, that one.
    ///
    /// # Errors
    /// There is nothing, it is not a directory, or it may not be read.
    pub fn open(path: &Path) -> Result<Self, TreeError> {
        let failed = |source| TreeError::Top {
            path: path.to_owned(),
            source,
        };
        let full = std::fs::canonicalize(path).map_err(failed)?;
        if !full.is_dir() {
            return Err(TreeError::NotADirectory {
                path: path.to_owned(),
            });
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder =
            openat(CWD, &full, flags, Mode::empty()).map_err(|error| failed(error.into()))?;
        let stat = fstat(&folder).map_err(|error| failed(error.into()))?;
        Ok(Self {
            path: full,
            folder,
            status: Status::from(&stat),
        })
    }

    /// Where it is: absolute, without symbolic links.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn folder(&self) -> BorrowedFd<'_> {
        self.folder.as_fd()
    }
}

/// How to walk.
#[derive(Debug, Clone, Copy)]
pub struct WalkOptions {
    /// Threads that read folders.
    pub threads: NonZeroUsize,
    /// Enter no folder of another filesystem than the top's.
    pub one_filesystem: bool,
    /// Look at every folder once more when it is read, to see whether it has changed meanwhile.
    pub watch_changes: bool,
}

impl Default for WalkOptions {
    /// As many threads as there are processors for this process.
    fn default() -> Self {
        Self {
            threads: std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN),
            one_filesystem: false,
            watch_changes: false,
        }
    }
}

/// A folder of the tree.
#[derive(Debug, Clone, Copy)]
pub struct Folder<'a> {
    /// Path relative to the top; empty for the top itself.
    pub path: &'a [u8],
    /// Last part of the path.
    pub name: &'a [u8],
    /// 0 for the top.
    pub depth: u32,
    /// Number of its filesystem.
    pub device: u64,
    /// Its number there.
    pub inode: u64,
}

/// How the reading of a folder ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FolderState {
    /// All of its entries were told.
    Listed,
    /// The system refused to open it or to read it to its end.
    Unreadable,
    /// It was listed in its parent, and gone, or something else, when it was to be opened.
    Vanished,
    /// Not entered: it is one of the folders it lies in.
    Loop,
    /// Not entered: another filesystem.
    OtherFilesystem,
}

/// When a folder and what is listed in it were changed last, as the system has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FolderStamp {
    /// Nanoseconds since 1970 UTC.
    pub mtime_ns: i64,
    /// The same of its inode.
    pub ctime_ns: i64,
}

/// What one thread does with what it sees. For every folder: `enter`, its entries, `leave`; also
/// for one that cannot be opened or is not entered, which has no entries.
pub trait Visitor {
    /// What the folders in a folder are to know of it.
    type Mark: Copy + Send;

    /// A folder begins; `parent` is what its parent's `enter` returned.
    fn enter(&mut self, folder: &Folder<'_>, parent: Option<Self::Mark>) -> Self::Mark;

    /// An entry of the folder that was entered last.
    fn entry(&mut self, folder: &Folder<'_>, entry: &Entry<'_>);

    /// The folder ends. The stamp is there if the walk was told to watch changes.
    fn leave(&mut self, folder: &Folder<'_>, state: FolderState, stamp: Option<FolderStamp>);

    /// Nothing to do just now: what is held back may be passed on.
    fn idle(&mut self) {}

    /// There is nothing more for this thread.
    fn finish(&mut self) {}
}

/// Does nothing with what is seen: the walk with a look at everything, and no more.
#[derive(Debug, Clone, Copy, Default)]
pub struct OnlyLook;

impl Visitor for OnlyLook {
    type Mark = ();
    fn enter(&mut self, _: &Folder<'_>, _: Option<()>) {}
    fn entry(&mut self, _: &Folder<'_>, _: &Entry<'_>) {}
    fn leave(&mut self, _: &Folder<'_>, _: FolderState, _: Option<FolderStamp>) {}
}

/// How many entries there are of each kind, below the top.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EntryCounts {
    /// Regular files.
    pub files: u64,
    /// Folders.
    pub folders: u64,
    /// Symbolic links.
    pub symbolic_links: u64,
    /// Pipes, sockets and devices.
    pub special_files: u64,
    /// Of unknown kind: the system refused to tell.
    pub unknown: u64,
}

impl EntryCounts {
    /// All of them.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.files + self.folders + self.symbolic_links + self.special_files + self.unknown
    }

    pub(crate) fn count(&mut self, kind: EntryKind) {
        match kind {
            EntryKind::File => self.files += 1,
            EntryKind::Folder => self.folders += 1,
            EntryKind::SymbolicLink => self.symbolic_links += 1,
            EntryKind::Unknown => self.unknown += 1,
            _ => self.special_files += 1,
        }
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.files += other.files;
        self.folders += other.folders;
        self.symbolic_links += other.symbolic_links;
        self.special_files += other.special_files;
        self.unknown += other.unknown;
    }
}

/// What a walk has seen.
#[derive(Debug)]
pub struct Walked<V> {
    /// The visitors, each with what it has gathered.
    pub visitors: Vec<V>,
    /// Entries by kind.
    pub counts: EntryCounts,
    /// What was odd.
    pub oddities: Oddities,
    /// Time that the threads spent walking, added up: their whole time without that in which they
    /// waited for work or for their visitor's reader. Nanoseconds.
    pub walk_ns: u64,
    /// Whether it was stopped before its end.
    pub stopped: bool,
}

/// Walks a tree, one thread for each visitor, and does `meanwhile` in the calling thread; that thread
/// is unparked when the walk has ended. The walk stops early when `should_stop` says so. `progress` is
/// made in the calling thread for as many threads as there are visitors, right before.
pub fn walk<V: Visitor + Send, R>(
    tree: &Tree,
    options: &WalkOptions,
    visitors: Vec<V>,
    should_stop: &(dyn Fn() -> bool + Sync),
    progress: &WalkProgress,
    meanwhile: impl FnOnce() -> R,
) -> (R, Walked<V>) {
    let shared = Shared::new(tree, options, progress, should_stop);
    let (answer, walkers) = std::thread::scope(|scope| {
        let threads: Vec<_> = visitors
            .into_iter()
            .map(|visitor| scope.spawn(|| Walker::new(&shared, visitor).run()))
            .collect();
        let answer = meanwhile();
        let walkers: Vec<_> = threads
            .into_iter()
            .map(|thread| {
                thread
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            })
            .collect();
        (answer, walkers)
    });
    (answer, gather(walkers, &shared, progress))
}

/// Walks a tree in the calling thread.
pub fn walk_here<V: Visitor>(
    tree: &Tree,
    options: &WalkOptions,
    visitor: V,
    should_stop: &(dyn Fn() -> bool + Sync),
) -> Walked<V> {
    let progress = WalkProgress::new(1);
    let shared = Shared::new(tree, options, &progress, should_stop);
    let walker = Walker::new(&shared, visitor).run();
    gather(vec![walker], &shared, &progress)
}

fn gather<V: Visitor>(
    walkers: Vec<walker::Ended<V>>,
    shared: &Shared<'_, V::Mark>,
    progress: &WalkProgress,
) -> Walked<V> {
    let mut walked = Walked {
        visitors: Vec::with_capacity(walkers.len()),
        counts: EntryCounts::default(),
        oddities: Oddities::default(),
        walk_ns: progress.walk_ns(),
        stopped: shared.was_stopped(),
    };
    for walker in walkers {
        walked.visitors.push(walker.visitor);
        walked.counts.add(&walker.counts);
        walked.oddities.merge(walker.oddities);
    }
    walked
}

#[cfg(test)]
mod tests;
