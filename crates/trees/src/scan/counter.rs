//! What one thread of a scan counts and keeps.

use sqlitmus_core::tree_scan::candidates::FolderSeed;
use sqlitmus_core::tree_scan::{Candidates, SizeGroups, TreeScan};

use super::ScanOptions;
use super::content::path_of;
use crate::entry::{Entry, EntryKind};
use crate::walk::{Folder, FolderStamp, FolderState, Visitor};

/// So many folders are looked at again when the tree is counted, to see what has changed meanwhile.
const MOST_WATCHED_FOLDERS: usize = 100_000;

/// Folders with the time of their last change.
#[derive(Debug, Default)]
pub(super) struct FolderTimes {
    folders: Vec<(Vec<u8>, FolderStamp)>,
}

impl FolderTimes {
    pub(super) fn folders(&self) -> &[(Vec<u8>, FolderStamp)] {
        &self.folders
    }

    fn add(&mut self, path: &[u8], stamp: FolderStamp) {
        if self.folders.len() < MOST_WATCHED_FOLDERS {
            self.folders.push((path.to_vec(), stamp));
        }
    }

    fn merge(&mut self, mut other: Self) {
        self.folders.append(&mut other.folders);
        self.folders.truncate(MOST_WATCHED_FOLDERS);
    }
}

/// One thread's visitor.
pub(super) struct Counter {
    pub(super) summary: TreeScan,
    pub(super) candidates: Candidates,
    pub(super) same_sizes: SizeGroups,
    pub(super) folder_times: FolderTimes,
    entries: u64,
    folder_seed: FolderSeed,
}

impl Counter {
    pub(super) fn new(options: &ScanOptions) -> Self {
        let candidates = Candidates::new(options.seed, options.most_candidates_per_class);
        Self {
            summary: TreeScan::default(),
            folder_seed: candidates.folder_seed(b""),
            candidates,
            same_sizes: SizeGroups::new(options.seed, options.compared_files),
            folder_times: FolderTimes::default(),
            entries: 0,
        }
    }

    pub(super) fn merge(&mut self, other: Self) {
        self.summary.merge(other.summary);
        self.candidates.merge(other.candidates);
        self.same_sizes.merge(other.same_sizes);
        self.folder_times.merge(other.folder_times);
    }
}

impl Visitor for Counter {
    type Mark = ();

    fn enter(&mut self, folder: &Folder<'_>, _: Option<()>) {
        self.entries = 0;
        self.folder_seed = self.candidates.folder_seed(folder.path);
    }

    fn entry(&mut self, folder: &Folder<'_>, entry: &Entry<'_>) {
        self.entries += 1;
        let (EntryKind::File, Some(status)) = (entry.kind, entry.status) else {
            return;
        };
        let bytes = status.size_bytes;
        self.summary
            .add_file(entry.name, bytes, status.links, folder.depth);
        let path = || {
            let mut path = path_of(folder.path);
            path.push(path_of(entry.name));
            path
        };
        self.candidates
            .add(self.folder_seed, entry.name, bytes, path);
        self.same_sizes.add(bytes, path);
    }

    fn leave(&mut self, folder: &Folder<'_>, _: FolderState, stamp: Option<FolderStamp>) {
        // Without a stamp it was not opened, and nothing is known of its entries.
        if let Some(stamp) = stamp {
            self.summary.add_folder(self.entries, folder.depth);
            self.folder_times.add(folder.path, stamp);
        }
    }
}
