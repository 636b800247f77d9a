//! Several threads read and compress, one writes. Entries go through in batches, in the order in which
//! they are written; a thread takes the next batch only if it is not too far ahead of the writer, and so memory
//! is bounded: at the most `AHEAD` batches a thread, each of a few hundred files and some 9 MB.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::listing::Listed;
use super::reading::{Content, LARGE_BYTES, SourceReader, Sources};
use crate::error::ArchiveError;
use crate::watch::Watch;

/// Batches that a thread may be ahead of the writer.
const AHEAD: usize = 3;

/// A batch ends when it has so many bytes of content ...
const BATCH_BYTES: u64 = 1024 * 1024;

/// ... or so many entries.
const BATCH_ENTRIES: usize = 256;

/// What was read of one entry.
pub(super) type ReadEntry = Result<(Content, Option<blake3::Hash>), ArchiveError>;

/// What was read of consecutive entries.
pub(super) struct Batch {
    pub(super) entries: Range<usize>,
    pub(super) contents: Vec<ReadEntry>,
    pub(super) buffer: Vec<u8>,
}

#[derive(Default)]
struct State {
    /// The next batch that nobody reads yet.
    next: usize,
    /// The batch that the writer waits for.
    written: usize,
    read: BTreeMap<usize, Batch>,
    /// Buffers to be used again.
    buffers: Vec<Vec<u8>>,
    /// The writer has given up, or a reader has panicked.
    abandoned: bool,
}

struct Belt {
    state: Mutex<State>,
    changed: Condvar,
}

impl Belt {
    /// A thread that panicked is noticed when the scope ends.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.changed
            .wait(state)
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sees to it that nobody waits for a thread that has panicked.
struct Leaving<'a>(&'a Belt);

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.lock().abandoned = true;
            self.0.changed.notify_all();
        }
    }
}

/// Reads all entries with `threads` threads and hands them to `write`, in order, in this thread.
pub(super) fn run(
    entries: &[Listed],
    sources: Sources<'_>,
    watch: &Watch,
    mut write: impl FnMut(&mut Batch) -> Result<(), ArchiveError>,
) -> Result<(), ArchiveError> {
    let batches = batches(entries);
    let threads = sources.settings.threads.clamp(1, batches.len().max(1));
    let belt = Belt {
        state: Mutex::new(State::default()),
        changed: Condvar::new(),
    };
    std::thread::scope(|scope| {
        for _ in 0..threads {
            let (belt, batches) = (&belt, &batches);
            scope.spawn(move || {
                let _leaving = Leaving(belt);
                read_batches(belt, batches, entries, sources, threads * AHEAD);
            });
        }
        let mut write_all = || {
            for number in 0..batches.len() {
                watch.check()?;
                let mut batch = take(&belt, number)?;
                write(&mut batch)?;
                give_back(&belt, batch.buffer);
            }
            Ok(())
        };
        let written = write_all();
        belt.lock().abandoned = true;
        belt.changed.notify_all();
        written
    })
}

fn read_batches(
    belt: &Belt,
    batches: &[Range<usize>],
    entries: &[Listed],
    sources: Sources<'_>,
    ahead: usize,
) {
    let mut source = SourceReader::new(sources);
    loop {
        let mut state = belt.lock();
        while !state.abandoned && state.next < batches.len() && state.next >= state.written + ahead
        {
            state = belt.wait(state);
        }
        if state.abandoned || state.next >= batches.len() {
            return;
        }
        let number = state.next;
        state.next += 1;
        let mut buffer = state.buffers.pop().unwrap_or_default();
        drop(state);
        let range = batches[number].clone();
        let contents = entries[range.clone()]
            .iter()
            .map(|entry| source.read(entry, &mut buffer, sources.settings.verify))
            .collect();
        let batch = Batch {
            entries: range,
            contents,
            buffer,
        };
        belt.lock().read.insert(number, batch);
        belt.changed.notify_all();
    }
}

fn take(belt: &Belt, number: usize) -> Result<Batch, ArchiveError> {
    let mut state = belt.lock();
    loop {
        if let Some(batch) = state.read.remove(&number) {
            state.written = number + 1;
            drop(state);
            belt.changed.notify_all();
            return Ok(batch);
        }
        if state.abandoned {
            // A reader has panicked; the scope passes that on.
            return Err(ArchiveError::Interrupted);
        }
        state = belt.wait(state);
    }
}

fn give_back(belt: &Belt, mut buffer: Vec<u8>) {
    buffer.clear();
    belt.lock().buffers.push(buffer);
}

/// Consecutive entries that are read together; large files are alone.
fn batches(entries: &[Listed]) -> Vec<Range<usize>> {
    let mut batches = Vec::new();
    let (mut begin, mut bytes) = (0, 0);
    for (index, entry) in entries.iter().enumerate() {
        let is_full = bytes >= BATCH_BYTES || index - begin >= BATCH_ENTRIES;
        if index > begin && (is_full || entry.size > LARGE_BYTES) {
            batches.push(begin..index);
            (begin, bytes) = (index, 0);
        }
        bytes += entry.size;
    }
    if begin < entries.len() {
        batches.push(begin..entries.len());
    }
    batches
}
