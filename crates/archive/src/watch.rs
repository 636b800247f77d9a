//! How far a long job is, for whoever shows it, and how it is asked to stop. One thread works, another
//! looks; what is shown is left to the program.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::error::ArchiveError;

/// Counts of a job under way, shared by reference.
#[derive(Debug, Default)]
pub struct Watch {
    total_entries: AtomicU64,
    total_bytes: AtomicU64,
    entries: AtomicU64,
    bytes: AtomicU64,
    stop: AtomicBool,
}

impl Watch {
    /// A job that has not begun.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Entries done and to be done; the latter is 0 as long as it is not known.
    #[must_use]
    pub fn entries(&self) -> (u64, u64) {
        (
            self.entries.load(Ordering::Relaxed),
            self.total_entries.load(Ordering::Relaxed),
        )
    }

    /// Bytes of content done and to be done.
    #[must_use]
    pub fn bytes(&self) -> (u64, u64) {
        (
            self.bytes.load(Ordering::Relaxed),
            self.total_bytes.load(Ordering::Relaxed),
        )
    }

    /// Asks the job to stop; it then fails with [`ArchiveError::Interrupted`] and leaves nothing half done
    /// under a final name.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    pub(crate) fn begin(&self, entries: u64, bytes: u64) {
        self.entries.store(0, Ordering::Relaxed);
        self.bytes.store(0, Ordering::Relaxed);
        self.total_bytes.store(bytes, Ordering::Relaxed);
        self.total_entries.store(entries, Ordering::Relaxed);
    }

    pub(crate) fn done(&self, entries: u64, bytes: u64) {
        self.entries.fetch_add(entries, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn check(&self) -> Result<(), ArchiveError> {
        if self.stop.load(Ordering::Relaxed) {
            Err(ArchiveError::Interrupted)
        } else {
            Ok(())
        }
    }
}
