//! How far a walk is, for whoever watches it from another thread.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread::Thread;
use std::time::{Duration, Instant};

/// How far a walk is.
#[derive(Debug)]
pub struct WalkProgress {
    started: Instant,
    threads: u64,
    walking: AtomicUsize,
    entries: AtomicU64,
    blocked_ns: AtomicU64,
    /// From the start to the end of each thread that has ended, added up.
    ended_ns: AtomicU64,
    stop: AtomicBool,
    watcher: Thread,
}

impl WalkProgress {
    /// Begins now; the calling thread is the one that watches.
    #[must_use]
    pub fn new(threads: usize) -> Self {
        Self {
            started: Instant::now(),
            threads: threads as u64,
            walking: AtomicUsize::new(threads),
            entries: AtomicU64::new(0),
            blocked_ns: AtomicU64::new(0),
            ended_ns: AtomicU64::new(0),
            stop: AtomicBool::new(false),
            watcher: std::thread::current(),
        }
    }

    /// Entries seen so far.
    #[must_use]
    pub fn entries(&self) -> u64 {
        self.entries.load(Ordering::Relaxed)
    }

    /// Whether all threads have ended.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.walking.load(Ordering::Acquire) == 0
    }

    /// Ends the walk early.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Waits for the end of the walk, at most so long.
    pub fn wait(&self, longest: Duration) {
        if !self.is_over() {
            std::thread::park_timeout(longest);
        }
    }

    /// Time that the threads have spent walking so far, added up, in nanoseconds.
    #[must_use]
    pub fn walk_ns(&self) -> u64 {
        let walking = self.walking.load(Ordering::Acquire) as u64;
        let so_far = nanoseconds(self.started) * walking.min(self.threads);
        let ended = self.ended_ns.load(Ordering::Relaxed);
        (so_far + ended).saturating_sub(self.blocked_ns.load(Ordering::Relaxed))
    }

    pub(super) fn note_entries(&self, count: u64) {
        self.entries.fetch_add(count, Ordering::Relaxed);
    }

    /// Does what may have to wait, and counts the time as not spent walking.
    pub(crate) fn blocked<R>(&self, wait: impl FnOnce() -> R) -> R {
        let started = Instant::now();
        let answer = wait();
        self.blocked_ns
            .fetch_add(nanoseconds(started), Ordering::Relaxed);
        answer
    }

    pub(super) fn note_end(&self) {
        self.ended_ns
            .fetch_add(nanoseconds(self.started), Ordering::Relaxed);
        if self.walking.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.watcher.unpark();
        }
    }
}

/// Nanoseconds since then.
pub(crate) fn nanoseconds(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX)
}
