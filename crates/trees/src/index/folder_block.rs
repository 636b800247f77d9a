//! Folders with their entries on the way from a walker to the recorder: some at once, in few
//! allocations.

use std::ops::Range;

use rusqlite::ToSql;
use rusqlite::types::{ToSqlOutput, ValueRef};
use xxhash_rust::xxh3::xxh3_128;

use crate::entry::{Entry, EntryKind};
use crate::walk::FolderState;

/// Folders whose entries are to be written, or compared with what is there.
#[derive(Debug, Default)]
pub(super) struct FolderBlock {
    pub(super) folders: Vec<FolderRecord>,
    pub(super) entries: Vec<EntryRecord>,
    names: Vec<u8>,
}

/// One folder.
#[derive(Debug)]
pub(super) struct FolderRecord {
    pub(super) id: i64,
    /// `None` for the top.
    pub(super) parent_id: Option<i64>,
    /// Whether the database has it under this id.
    pub(super) is_known: bool,
    pub(super) state: FolderState,
    pub(super) digest: FolderDigest,
    name: Range<usize>,
    /// Of the block's.
    pub(super) entries: Range<usize>,
}

/// One entry, as it is recorded.
#[derive(Debug)]
pub(super) struct EntryRecord {
    name: Range<usize>,
    is_text: bool,
    pub(super) kind: EntryKind,
    pub(super) figures: Figures,
}

/// What is recorded beside name and kind; all `None` where the system refused to tell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Figures {
    pub(super) size_bytes: Option<i64>,
    pub(super) mtime_ns: Option<i64>,
    pub(super) inode: Option<i64>,
}

/// A name as SQLite gets it: TEXT if it is UTF-8, BLOB if not. Ordered as SQLite orders them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Name<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) is_text: bool,
}

impl<'a> Name<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            is_text: std::str::from_utf8(bytes).is_ok(),
        }
    }

    /// What comes first: texts before blobs, both byte by byte.
    fn order(self) -> (bool, &'a [u8]) {
        (!self.is_text, self.bytes)
    }
}

impl Ord for Name<'_> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.order().cmp(&other.order())
    }
}

impl PartialOrd for Name<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl ToSql for Name<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(if self.is_text {
            ValueRef::Text(self.bytes)
        } else {
            ValueRef::Blob(self.bytes)
        }))
    }
}

/// Tells whether a folder is as it was: the sum of the hashes (XXH3, 128 bits) of all its entries, so
/// that the order in which they are listed does not matter, and of how reading it ended. Not meant
/// against people who make files collide on purpose.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct FolderDigest(u128);

impl FolderDigest {
    pub(super) fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(u128::from_le_bytes(bytes))
    }

    pub(super) fn to_bytes(self) -> [u8; 16] {
        self.0.to_le_bytes()
    }

    pub(super) fn add_entry(
        &mut self,
        scratch: &mut Vec<u8>,
        name: &[u8],
        kind: EntryKind,
        figures: &Figures,
    ) {
        scratch.clear();
        scratch.extend_from_slice(kind.letter().as_bytes());
        for figure in [figures.size_bytes, figures.mtime_ns, figures.inode] {
            scratch.push(u8::from(figure.is_some()));
            scratch.extend_from_slice(&figure.unwrap_or(0).to_le_bytes());
        }
        // At the end: it is the only part without a fixed length.
        scratch.extend_from_slice(name);
        self.0 = self.0.wrapping_add(xxh3_128(scratch));
    }

    pub(super) fn add_state(&mut self, state: FolderState) {
        self.0 = self.0.wrapping_add(xxh3_128(state_word(state).as_bytes()));
    }
}

/// How a state is called in the database.
pub(super) fn state_word(state: FolderState) -> &'static str {
    match state {
        FolderState::Listed => "listed",
        FolderState::Unreadable => "unreadable",
        FolderState::Vanished => "vanished",
        FolderState::Loop => "loop",
        FolderState::OtherFilesystem => "other filesystem",
    }
}

impl Figures {
    /// What is recorded of an entry.
    pub(super) fn of(entry: &Entry<'_>) -> Self {
        let Some(status) = entry.status else {
            return Self::default();
        };
        Self {
            size_bytes: Some(i64::try_from(status.size_bytes).unwrap_or(i64::MAX)),
            mtime_ns: Some(status.mtime_ns),
            // The same 64 bits: SQLite has no numbers without sign.
            inode: Some(status.inode.cast_signed()),
        }
    }
}

impl FolderBlock {
    /// Where the entries of the next folder begin.
    pub(super) fn position(&self) -> (usize, usize) {
        (self.entries.len(), self.names.len())
    }

    /// Takes back what was added since.
    pub(super) fn go_back(&mut self, (entries, names): (usize, usize)) {
        self.entries.truncate(entries);
        self.names.truncate(names);
    }

    pub(super) fn add_entry(&mut self, entry: &Entry<'_>, figures: Figures) {
        let name = self.keep(entry.name);
        self.entries.push(EntryRecord {
            name,
            is_text: entry.text.is_some(),
            kind: entry.kind,
            figures,
        });
    }

    /// Makes a folder of the entries that were added since `position`, in the order of their names:
    /// they are then written, or compared, from one end of the table to the other.
    pub(super) fn add_folder(
        &mut self,
        position: (usize, usize),
        name: &[u8],
        record: impl FnOnce(Range<usize>, Range<usize>) -> FolderRecord,
    ) {
        let name = self.keep(name);
        let names = &self.names;
        self.entries[position.0..]
            .sort_unstable_by(|one, other| one.name(names).cmp(&other.name(names)));
        let entries = position.0..self.entries.len();
        self.folders.push(record(name, entries));
    }

    fn keep(&mut self, name: &[u8]) -> Range<usize> {
        let start = self.names.len();
        self.names.extend_from_slice(name);
        start..self.names.len()
    }

    pub(super) fn entry_name(&self, entry: &EntryRecord) -> Name<'_> {
        entry.name(&self.names)
    }

    pub(super) fn folder_name(&self, folder: &FolderRecord) -> Name<'_> {
        Name::new(&self.names[folder.name.clone()])
    }
}

impl EntryRecord {
    fn name<'a>(&self, names: &'a [u8]) -> Name<'a> {
        Name {
            bytes: &names[self.name.clone()],
            is_text: self.is_text,
        }
    }
}

impl FolderRecord {
    pub(super) fn new(
        (id, parent_id, is_known): (i64, Option<i64>, bool),
        state: FolderState,
        digest: FolderDigest,
        name: Range<usize>,
        entries: Range<usize>,
    ) -> Self {
        Self {
            id,
            parent_id,
            is_known,
            state,
            digest,
            name,
            entries,
        }
    }
}
