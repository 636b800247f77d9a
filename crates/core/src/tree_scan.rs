//! What a directory tree is made of, as pure data: how many files of which size, how they are spread
//! over folders, how they are called, what a compressor would save and how much is there twice
//! ([`TreeScan`]); and a sample of the files that keeps the distribution of their sizes
//! ([`sample::draw`]). Whoever walks a tree fills one of these for each thread and merges them.

pub mod candidates;
pub mod content;
pub mod log_histogram;
pub mod names;
mod oddities;
pub mod sample;
pub mod size_groups;

use serde::Serialize;

pub use candidates::{Candidates, FileAt};
pub use content::{Compressibility, Duplicates};
pub use log_histogram::{ClassShare, LogHistogram};
pub use names::Names;
pub use oddities::{Example, MOST_EXAMPLES, Oddities, OddityCount, OddityKind, display_path};
pub use size_groups::SizeGroups;

/// Depths that are counted one by one; deeper ones are counted with the last.
pub const DEPTHS: usize = 64;

/// Summary of a directory tree. Files are regular files; all else is in the oddities.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TreeScan {
    /// Sizes of the files in bytes. Its count is the number of files, its total their content.
    pub file_bytes: LogHistogram,
    /// Files that have more than one name.
    pub hard_linked_files: u64,
    /// Entries of each folder, the top included. Its count is the number of folders.
    pub folder_entries: LogHistogram,
    /// Files by the number of folders they lie in below the top, from 0; the last counts all deeper.
    pub files_by_depth: Vec<u64>,
    /// Deepest folder, the top being 0.
    pub deepest_folder: u32,
    /// How files are called.
    pub names: Names,
    /// What is odd, counted and named.
    pub oddities: Oddities,
    /// What a compressor would save, if that was asked for and there was something to read.
    pub compressibility: Option<Compressibility>,
    /// What is there twice, if that was asked for and there was something to read.
    pub duplicates: Option<Duplicates>,
    /// Whether the scan was stopped before its end.
    pub stopped: bool,
}

impl Default for TreeScan {
    fn default() -> Self {
        Self {
            file_bytes: LogHistogram::default(),
            hard_linked_files: 0,
            folder_entries: LogHistogram::default(),
            files_by_depth: vec![0; DEPTHS],
            deepest_folder: 0,
            names: Names::default(),
            oddities: Oddities::default(),
            compressibility: None,
            duplicates: None,
            stopped: false,
        }
    }
}

impl TreeScan {
    /// Counts a regular file that lies in so many folders below the top.
    pub fn add_file(&mut self, name: &[u8], bytes: u64, links: u64, depth: u32) {
        self.file_bytes.add(bytes);
        self.hard_linked_files += u64::from(links > 1);
        self.names.add(name, bytes);
        let depth = (depth as usize).min(DEPTHS - 1);
        self.files_by_depth[depth] += 1;
    }

    /// Counts a folder with its number of entries.
    pub fn add_folder(&mut self, entries: u64, depth: u32) {
        self.folder_entries.add(entries);
        self.deepest_folder = self.deepest_folder.max(depth);
    }

    /// Adds what another thread has counted in the same tree. What was sampled is not merged: it is
    /// read when all is counted.
    pub fn merge(&mut self, other: Self) {
        self.file_bytes.merge(&other.file_bytes);
        self.hard_linked_files += other.hard_linked_files;
        self.folder_entries.merge(&other.folder_entries);
        for (ours, theirs) in self.files_by_depth.iter_mut().zip(other.files_by_depth) {
            *ours += theirs;
        }
        self.deepest_folder = self.deepest_folder.max(other.deepest_folder);
        self.names.merge(other.names);
        self.oddities.merge(other.oddities);
        self.stopped |= other.stopped;
    }

    /// Regular files.
    #[must_use]
    pub fn files(&self) -> u64 {
        self.file_bytes.count()
    }

    /// Folders, the top included.
    #[must_use]
    pub fn folders(&self) -> u64 {
        self.folder_entries.count()
    }

    /// Bytes of content of all files; what is saturated is not told apart from `u64::MAX`.
    #[must_use]
    pub fn total_bytes(&self) -> u64 {
        self.file_bytes.total()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_add_up_to_what_one_would_have_counted() {
        let mut whole = TreeScan::default();
        let mut parts = [TreeScan::default(), TreeScan::default()];
        for number in 0..1000u64 {
            let name = format!("{number}.jpg");
            let (bytes, links, depth) = (number * number, 1 + number % 2, (number % 70) as u32);
            whole.add_file(name.as_bytes(), bytes, links, depth);
            parts[(number % 2) as usize].add_file(name.as_bytes(), bytes, links, depth);
            whole.add_folder(number % 7, depth);
            parts[(number % 3 % 2) as usize].add_folder(number % 7, depth);
        }
        let [mut one, other] = parts;
        one.merge(other);
        assert_eq!(one, whole);
        assert_eq!(whole.files(), 1000);
        assert_eq!(whole.total_bytes(), 332_833_500);
        assert_eq!(whole.hard_linked_files, 500);
        assert_eq!(whole.files_by_depth.iter().sum::<u64>(), 1000);
        assert_eq!(whole.deepest_folder, 69);
    }
}
