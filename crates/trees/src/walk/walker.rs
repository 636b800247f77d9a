//! One thread of a walk: takes a folder, reads it, looks at every entry, and leaves the folders in it
//! to whoever is free.

use std::ffi::{CStr, OsStr};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use rustix::fs::{AtFlags, FileType, Stat, fstat, statat};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use sqlitmus_core::tree_scan::{Oddities, OddityKind};

use super::ancestry::Ancestry;
use super::folder_queue::FolderQueue;
use super::listing::{NameBuffer, open_folder, open_folder_beneath};
use super::progress::WalkProgress;
use super::{EntryCounts, Folder, FolderStamp, FolderState, Tree, Visitor, WalkOptions};
use crate::entry::{Entry, EntryKind, Status};

/// Open folders at once where the system does not say how many it allows.
const OPEN_FOLDERS_IF_UNKNOWN: u64 = 256;

/// What all threads of a walk have in common.
pub(super) struct Shared<'a, M> {
    tree: &'a Tree,
    options: &'a WalkOptions,
    progress: &'a WalkProgress,
    should_stop: &'a (dyn Fn() -> bool + Sync),
    queue: FolderQueue<Waiting<M>>,
    open_folders: Arc<AtomicUsize>,
    most_open_folders: usize,
    stopped: AtomicBool,
}

/// A folder that is still to be read.
struct Waiting<M> {
    /// Relative to the top.
    path: Vec<u8>,
    name_start: usize,
    depth: u32,
    device: u64,
    inode: u64,
    /// `None` for the top, and where too many folders are open already: then the path leads there.
    parent: Option<Arc<OpenFolder>>,
    above: Option<Arc<Ancestry>>,
    mark: Option<M>,
}

impl<M> Waiting<M> {
    fn folder(&self) -> Folder<'_> {
        Folder {
            path: &self.path,
            name: &self.path[self.name_start..],
            depth: self.depth,
            device: self.device,
            inode: self.inode,
        }
    }
}

/// A folder that stays open until those in it have been opened.
struct OpenFolder {
    descriptor: OwnedFd,
    /// All of them.
    count: Arc<AtomicUsize>,
}

impl OpenFolder {
    fn new(descriptor: OwnedFd, count: &Arc<AtomicUsize>) -> Arc<Self> {
        count.fetch_add(1, Ordering::Relaxed);
        Arc::new(Self {
            descriptor,
            count: Arc::clone(count),
        })
    }
}

impl Drop for OpenFolder {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::Relaxed);
    }
}

impl<'a, M> Shared<'a, M> {
    pub(super) fn new(
        tree: &'a Tree,
        options: &'a WalkOptions,
        progress: &'a WalkProgress,
        should_stop: &'a (dyn Fn() -> bool + Sync),
    ) -> Self {
        let top = Waiting {
            path: Vec::new(),
            name_start: 0,
            depth: 0,
            device: tree.status.device,
            inode: tree.status.inode,
            parent: None,
            above: None,
            mark: None,
        };
        let allowed = getrlimit(Resource::Nofile).current;
        // Half of what the system allows, for the program has other files.
        let most_open_folders = allowed.unwrap_or(OPEN_FOLDERS_IF_UNKNOWN) / 2;
        Self {
            tree,
            options,
            progress,
            should_stop,
            queue: FolderQueue::new(top),
            open_folders: Arc::default(),
            most_open_folders: usize::try_from(most_open_folders).unwrap_or(usize::MAX),
            stopped: AtomicBool::new(false),
        }
    }

    pub(super) fn was_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }
}

/// What is left of a walker.
pub(super) struct Ended<V> {
    pub(super) visitor: V,
    pub(super) counts: EntryCounts,
    pub(super) oddities: Oddities,
}

/// One thread of a walk.
pub(super) struct Walker<'a, V: Visitor> {
    shared: &'a Shared<'a, V::Mark>,
    visitor: V,
    counts: EntryCounts,
    oddities: Oddities,
    buffer: NameBuffer,
    found: Vec<Waiting<V::Mark>>,
}

/// Lets the others end, too, if this thread panics.
struct Panics<'a, M>(&'a Shared<'a, M>);

impl<M> Drop for Panics<'_, M> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.queue.close();
        }
        self.0.progress.note_end();
    }
}

impl<'a, V: Visitor> Walker<'a, V> {
    pub(super) fn new(shared: &'a Shared<'a, V::Mark>, visitor: V) -> Self {
        Self {
            shared,
            visitor,
            counts: EntryCounts::default(),
            oddities: Oddities::default(),
            buffer: NameBuffer::default(),
            found: Vec::new(),
        }
    }

    /// Works until nothing is left.
    pub(super) fn run(mut self) -> Ended<V> {
        let _panics = Panics(self.shared);
        while let Some(waiting) = self.next() {
            let seen_before = self.counts.total();
            self.read(waiting);
            let seen = self.counts.total() - seen_before;
            self.shared.progress.note_entries(seen);
            self.shared.queue.finish(&mut self.found);
            if self.shared.progress.is_stopped() || (self.shared.should_stop)() {
                self.shared.stopped.store(true, Ordering::Relaxed);
                self.shared.queue.close();
            }
        }
        self.visitor.finish();
        Ended {
            visitor: self.visitor,
            counts: self.counts,
            oddities: self.oddities,
        }
    }

    fn next(&mut self) -> Option<Waiting<V::Mark>> {
        if let Some(waiting) = self.shared.queue.try_take() {
            return Some(waiting);
        }
        self.visitor.idle();
        self.shared.progress.blocked(|| self.shared.queue.take())
    }

    fn read(&mut self, mut waiting: Waiting<V::Mark>) {
        let mark = self.visitor.enter(&waiting.folder(), waiting.mark);
        let (state, stamp) = match self.open(&mut waiting) {
            Ok(descriptor) => self.list(&waiting, mark, descriptor),
            Err(state) => (state, None),
        };
        self.visitor.leave(&waiting.folder(), state, stamp);
    }

    fn open(&mut self, waiting: &mut Waiting<V::Mark>) -> Result<OwnedFd, FolderState> {
        let shared = self.shared;
        let is_elsewhere = waiting.device != shared.tree.status.device;
        let mut refused = |kind, state, reason: &str| {
            let path = || path_of(&waiting.path);
            self.oddities.note(kind, path, reason);
            Err(state)
        };
        if waiting
            .above
            .as_ref()
            .is_some_and(|above| above.contains(waiting.device, waiting.inode))
        {
            return refused(OddityKind::Loop, FolderState::Loop, "");
        }
        if shared.options.one_filesystem && is_elsewhere {
            let state = FolderState::OtherFilesystem;
            return refused(OddityKind::OtherFilesystem, state, "");
        }
        let opened = match &waiting.parent {
            _ if waiting.depth == 0 => open_folder(shared.tree.folder(), c"."),
            Some(parent) => {
                use rustix::path::Arg;
                waiting.path[waiting.name_start..]
                    .into_with_c_str(|name| open_folder(parent.descriptor.as_fd(), name))
            }
            None => open_folder_beneath(shared.tree.folder(), &waiting.path),
        };
        opened.or_else(|error| match error {
            // A folder no more: removed, or replaced by a file or by a symbolic link.
            Errno::NOENT | Errno::NOTDIR | Errno::LOOP => {
                refused(OddityKind::Vanished, FolderState::Vanished, &said(error))
            }
            error => {
                let state = FolderState::Unreadable;
                refused(OddityKind::UnreadableFolder, state, &said(error))
            }
        })
    }

    fn list(
        &mut self,
        waiting: &Waiting<V::Mark>,
        mark: V::Mark,
        descriptor: OwnedFd,
    ) -> (FolderState, Option<FolderStamp>) {
        let before = self.stamp(&descriptor);
        let folder = waiting.folder();
        // The closure needs the rest of the walker while the buffer is lent to the listing.
        let mut buffer = std::mem::take(&mut self.buffer);
        let listed = buffer.list(&descriptor, |name, file_type| {
            self.look(&folder, &descriptor, name, file_type);
        });
        self.buffer = buffer;
        let mut state = FolderState::Listed;
        if let Err(error) = listed {
            state = FolderState::Unreadable;
            let path = || path_of(folder.path);
            self.oddities
                .note(OddityKind::UnreadableFolder, path, &said(error));
        }
        if before != self.stamp(&descriptor) {
            let path = || path_of(folder.path);
            self.oddities.note(OddityKind::ChangedFolder, path, "");
        }
        self.hand_on(waiting, mark, descriptor);
        (state, before)
    }

    /// Looks at one entry and tells the visitor.
    fn look(
        &mut self,
        folder: &Folder<'_>,
        descriptor: &OwnedFd,
        name: &CStr,
        said_type: FileType,
    ) {
        let bytes = name.to_bytes();
        let (kind, status) = match statat(descriptor, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => (kind_of(&stat), Some(Status::from(&stat))),
            Err(Errno::NOENT) => {
                self.note(OddityKind::Vanished, folder, bytes, "");
                return;
            }
            Err(error) => {
                self.note(OddityKind::UnreadableFile, folder, bytes, &said(error));
                (EntryKind::from(said_type), None)
            }
        };
        let text = std::str::from_utf8(bytes).ok();
        if text.is_none() {
            self.note(OddityKind::NameNotUtf8, folder, bytes, "");
        }
        if kind == EntryKind::SymbolicLink {
            self.note(OddityKind::SymbolicLink, folder, bytes, "");
        } else if kind.is_special() {
            self.note(OddityKind::SpecialFile, folder, bytes, "");
        }
        self.counts.count(kind);
        self.visitor.entry(
            folder,
            &Entry {
                name: bytes,
                text,
                kind,
                status,
            },
        );
        if kind == EntryKind::Folder {
            let path = joined(folder.path, bytes);
            self.found.push(Waiting {
                name_start: path.len() - bytes.len(),
                path,
                depth: folder.depth.saturating_add(1),
                // Without a status it will not open either; if it does, no loop can be told.
                device: status.map_or(folder.device, |status| status.device),
                inode: status.map_or(0, |status| status.inode),
                parent: None,
                above: None,
                mark: None,
            });
        }
    }

    /// Gives the folders that were found what they are opened with.
    fn hand_on(&mut self, waiting: &Waiting<V::Mark>, mark: V::Mark, descriptor: OwnedFd) {
        if self.found.is_empty() {
            return;
        }
        let shared = self.shared;
        let above = Ancestry::new(waiting.device, waiting.inode, waiting.above.clone());
        let is_kept = shared.open_folders.load(Ordering::Relaxed) < shared.most_open_folders;
        let parent = is_kept.then(|| OpenFolder::new(descriptor, &shared.open_folders));
        for folder in &mut self.found {
            folder.parent.clone_from(&parent);
            folder.above = Some(Arc::clone(&above));
            folder.mark = Some(mark);
        }
    }

    fn stamp(&self, descriptor: &OwnedFd) -> Option<FolderStamp> {
        if !self.shared.options.watch_changes {
            return None;
        }
        fstat(descriptor).ok().map(|stat| FolderStamp::from(&stat))
    }

    fn note(&mut self, kind: OddityKind, folder: &Folder<'_>, name: &[u8], reason: &str) {
        let path = || path_of(&joined(folder.path, name));
        self.oddities.note(kind, path, reason);
    }
}

// The types of these fields differ from system to system.
#[allow(clippy::unnecessary_cast, clippy::cast_lossless)]
impl From<&Stat> for FolderStamp {
    fn from(stat: &Stat) -> Self {
        let whole = (stat.st_ctime as i64).saturating_mul(1_000_000_000);
        Self {
            mtime_ns: Status::from(stat).mtime_ns,
            ctime_ns: whole.saturating_add(stat.st_ctime_nsec as i64),
        }
    }
}

fn kind_of(stat: &Stat) -> EntryKind {
    EntryKind::from(FileType::from_raw_mode(stat.st_mode))
}

fn joined(folder: &[u8], name: &[u8]) -> Vec<u8> {
    let mut path = Vec::with_capacity(folder.len() + 1 + name.len());
    path.extend_from_slice(folder);
    if !folder.is_empty() {
        path.push(b'/');
    }
    path.extend_from_slice(name);
    path
}

fn path_of(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(bytes))
}

/// What the system said, in its words.
fn said(error: Errno) -> String {
    std::io::Error::from(error).to_string()
}
