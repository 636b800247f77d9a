//! The walkers' side of the recording: gathers folders into blocks, drops those that are as the
//! database has them, and sends the rest to the recorder.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::mpsc::SyncSender;

use super::folder_block::{Figures, FolderBlock, FolderDigest, FolderRecord};
use super::known_folders::KnownFolders;
use super::own_files::OwnFiles;
use crate::entry::Entry;
use crate::walk::{Folder, FolderStamp, FolderState, Visitor, WalkProgress};

/// A block with so many entries, or so many folders, is sent: waking the recorder costs some
/// microseconds, which is much for one folder and nothing for a thousand entries.
const ENTRIES_PER_BLOCK: usize = 2_000;
const FOLDERS_PER_BLOCK: usize = 500;

/// One walker's visitor.
pub(super) struct Gatherer<'a> {
    known: &'a KnownFolders,
    next_id: &'a AtomicI64,
    own_files: &'a OwnFiles,
    progress: &'a WalkProgress,
    /// `None` when there is nobody to send to any more.
    sender: Option<SyncSender<FolderBlock>>,
    block: FolderBlock,
    scratch: Vec<u8>,
    current: Current,
}

/// The folder that is being read.
#[derive(Default)]
struct Current {
    id: i64,
    parent_id: Option<i64>,
    known_digest: Option<FolderDigest>,
    digest: FolderDigest,
    position: (usize, usize),
    holds_database: bool,
}

impl<'a> Gatherer<'a> {
    pub(super) fn new(
        known: &'a KnownFolders,
        next_id: &'a AtomicI64,
        own_files: &'a OwnFiles,
        sender: SyncSender<FolderBlock>,
        progress: &'a WalkProgress,
    ) -> Self {
        Self {
            known,
            next_id,
            own_files,
            progress,
            sender: Some(sender),
            block: FolderBlock::default(),
            scratch: Vec::new(),
            current: Current::default(),
        }
    }

    fn send(&mut self) {
        if self.block.folders.is_empty() {
            return;
        }
        let block = std::mem::take(&mut self.block);
        if let Some(sender) = &self.sender {
            let sent = self.progress.blocked(|| sender.send(block));
            if sent.is_err() {
                // The recorder has failed, and stops the walk.
                self.sender = None;
            }
        }
    }
}

impl Visitor for Gatherer<'_> {
    /// Id of the folder.
    type Mark = i64;

    fn enter(&mut self, folder: &Folder<'_>, parent: Option<i64>) -> i64 {
        let known = self.known.find(parent, folder.name);
        let id = known.map_or_else(
            || self.next_id.fetch_add(1, Ordering::Relaxed),
            |(id, _)| id,
        );
        self.current = Current {
            id,
            parent_id: parent,
            known_digest: known.map(|(_, digest)| digest),
            digest: FolderDigest::default(),
            position: self.block.position(),
            holds_database: self.own_files.are_in(folder),
        };
        id
    }

    fn entry(&mut self, _: &Folder<'_>, entry: &Entry<'_>) {
        if self.current.holds_database && self.own_files.are_called(entry.name) {
            return;
        }
        let mut figures = Figures::of(entry);
        if self.own_files.lie_below(entry) {
            figures.size_bytes = None;
            figures.mtime_ns = None;
        }
        let digest = &mut self.current.digest;
        digest.add_entry(&mut self.scratch, entry.name, entry.kind, &figures);
        self.block.add_entry(entry, figures);
    }

    fn leave(&mut self, folder: &Folder<'_>, state: FolderState, _: Option<FolderStamp>) {
        let current = &mut self.current;
        current.digest.add_state(state);
        if current.known_digest == Some(current.digest) {
            self.block.go_back(current.position);
            return;
        }
        let identity = (
            current.id,
            current.parent_id,
            current.known_digest.is_some(),
        );
        let digest = current.digest;
        self.block
            .add_folder(current.position, folder.name, |name, entries| {
                FolderRecord::new(identity, state, digest, name, entries)
            });
        let is_full = self.block.entries.len() >= ENTRIES_PER_BLOCK
            || self.block.folders.len() >= FOLDERS_PER_BLOCK;
        if is_full {
            self.send();
        }
    }

    fn idle(&mut self) {
        self.send();
    }

    fn finish(&mut self) {
        self.send();
        self.sender = None;
    }
}
