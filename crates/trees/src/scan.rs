//! Summing up a directory tree for advice: what it is made of ([`TreeScan`]), and which of its files
//! may be sampled ([`Candidates`]). Memory is bounded whatever the number of files: what is kept are
//! histograms, the first few of every oddity, a limited number of candidates, and the time of change of a
//! limited number of folders. No file is opened for writing, and times of access stay as they are
//! where the system allows that.

mod compression;
mod content;
mod counter;
mod duplicates;
#[cfg(test)]
mod tests;

use std::num::NonZeroUsize;
use std::time::Duration;

use sqlitmus_core::tree_scan::{Candidates, Oddities, OddityKind, SizeGroups, TreeScan};

use crate::walk::{Tree, WalkOptions, WalkProgress, walk};
use counter::{Counter, FolderTimes};

/// How to scan.
#[derive(Debug, Clone, Copy)]
pub struct ScanOptions {
    /// Threads that walk.
    pub threads: NonZeroUsize,
    /// Stay on the filesystem of the top.
    pub one_filesystem: bool,
    /// What is sampled follows from it, and from nothing else but the tree.
    pub seed: u64,
    /// Files of each size class that can be sampled later; each takes about a hundred bytes of memory.
    pub most_candidates_per_class: usize,
    /// Read at most about so many bytes to see what compresses; 0 reads none.
    pub compression_bytes: u64,
    /// Compare at most about so many files to find duplicates; 0 compares none.
    pub compared_files: usize,
    /// How often progress is told.
    pub report_every: Duration,
}

impl Default for ScanOptions {
    fn default() -> Self {
        Self {
            threads: WalkOptions::default().threads,
            one_filesystem: true,
            seed: 1,
            most_candidates_per_class: 16_384,
            compression_bytes: 16 << 20,
            compared_files: 2_000,
            report_every: Duration::from_millis(200),
        }
    }
}

/// How far a scan is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScanProgress {
    /// Entries counted so far.
    Walking(u64),
    /// The tree is counted; the sampled files are being read.
    Reading,
}

/// What a scan has found.
#[derive(Debug)]
pub struct Scanned {
    /// The summary.
    pub summary: TreeScan,
    /// What can be sampled, by [`sqlitmus_core::tree_scan::sample::draw`].
    pub candidates: Candidates,
}

/// Scans a tree. `observe` is told how far it is; `should_stop` ends it early, and the summary says so.
///
/// There are no errors: what cannot be read is in the summary's oddities.
pub fn scan(
    tree: &Tree,
    options: &ScanOptions,
    should_stop: &(dyn Fn() -> bool + Sync),
    observe: &mut dyn FnMut(ScanProgress),
) -> Scanned {
    let walk_options = WalkOptions {
        threads: options.threads,
        one_filesystem: options.one_filesystem,
        watch_changes: true,
    };
    let threads = options.threads.get();
    let progress = WalkProgress::new(threads);
    let counters = (0..threads).map(|_| Counter::new(options)).collect();
    let ((), walked) = walk(
        tree,
        &walk_options,
        counters,
        should_stop,
        &progress,
        || {
            while !progress.is_over() {
                progress.wait(options.report_every);
                observe(ScanProgress::Walking(progress.entries()));
            }
        },
    );
    let mut found = Counter::new(options);
    for counter in walked.visitors {
        found.merge(counter);
    }
    let mut summary = found.summary;
    summary.oddities = walked.oddities;
    summary.stopped = walked.stopped;
    if !summary.stopped {
        observe(ScanProgress::Reading);
        read_samples(
            tree,
            options,
            &mut summary,
            &found.candidates,
            &found.same_sizes,
            should_stop,
        );
        note_changes(tree, &found.folder_times, &mut summary.oddities);
    }
    Scanned {
        summary,
        candidates: found.candidates,
    }
}

fn read_samples(
    tree: &Tree,
    options: &ScanOptions,
    summary: &mut TreeScan,
    candidates: &Candidates,
    same_sizes: &SizeGroups,
    should_stop: &dyn Fn() -> bool,
) {
    let oddities = &mut summary.oddities;
    if options.compression_bytes > 0 {
        let most_bytes = options.compression_bytes;
        summary.compressibility =
            compression::sample(tree, candidates, most_bytes, oddities, should_stop);
    }
    if options.compared_files > 0 {
        summary.duplicates = duplicates::sample(tree, same_sizes, oddities, should_stop);
    }
    summary.stopped |= should_stop();
}

/// Looks at the folders once more: entries that came or went since they were read are not in the
/// summary.
fn note_changes(tree: &Tree, times: &FolderTimes, oddities: &mut Oddities) {
    for (path, stamp) in times.folders() {
        let now = content::folder_stamp(tree, path);
        if now != Some(*stamp) {
            let reason = if now.is_some() {
                "after it was read"
            } else {
                "gone after it was read"
            };
            let path = || content::path_of(path);
            oddities.note(OddityKind::ChangedFolder, path, reason);
        }
    }
}
