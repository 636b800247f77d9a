//! Which files of a tree may be sampled: of every size class those that have the smallest of random
//! numbers drawn for each path from a seed. That is a uniform sample of the class, it takes bounded
//! memory, and it is the same however many threads walked the tree and in whichever order (a bottom-k
//! sample: Cohen and Kaplan, "Summarizing data using bottom-k sketches", PODC 2007).

use std::collections::{BTreeMap, BinaryHeap};
use std::path::PathBuf;

use serde::Serialize;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::log_histogram::size_class;
use super::oddities::serialize_path;

/// A file of a tree.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct FileAt {
    /// Path relative to the top.
    #[serde(serialize_with = "serialize_path")]
    pub path: PathBuf,
    /// Length of the content when it was seen.
    pub bytes: u64,
}

/// A file with the number that was drawn for it. Ordered by that number.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Drawn {
    priority: u64,
    file: FileAt,
}

#[derive(Debug, Clone, Default)]
struct Class {
    /// The largest number on top.
    drawn: BinaryHeap<Drawn>,
    files: u64,
    bytes: u64,
}

/// The number that is drawn for a folder, from which those of its files are drawn.
#[derive(Debug, Clone, Copy)]
pub struct FolderSeed(u64);

/// Files that may be sampled, by size class (see [`size_class`]).
#[derive(Debug, Clone)]
pub struct Candidates {
    seed: u64,
    most_per_class: usize,
    classes: BTreeMap<u32, Class>,
}

impl Candidates {
    /// None so far; keeps so many of each of the 65 size classes.
    #[must_use]
    pub fn new(seed: u64, most_per_class: usize) -> Self {
        Self {
            seed,
            most_per_class: most_per_class.max(1),
            classes: BTreeMap::new(),
        }
    }

    /// To be computed once for every folder, by its path.
    #[must_use]
    pub fn folder_seed(&self, path: &[u8]) -> FolderSeed {
        FolderSeed(xxh3_64_with_seed(path, self.seed))
    }

    /// Considers a file; its path is asked for only if it is kept.
    pub fn add(
        &mut self,
        folder: FolderSeed,
        name: &[u8],
        bytes: u64,
        path: impl FnOnce() -> PathBuf,
    ) {
        let priority = xxh3_64_with_seed(name, folder.0);
        let class = self.classes.entry(size_class(bytes)).or_default();
        class.files += 1;
        class.bytes = class.bytes.saturating_add(bytes);
        let is_full = class.drawn.len() >= self.most_per_class;
        if is_full
            && class
                .drawn
                .peek()
                .is_some_and(|last| last.priority <= priority)
        {
            return;
        }
        class.drawn.push(Drawn {
            priority,
            file: FileAt {
                path: path(),
                bytes,
            },
        });
        if is_full {
            class.drawn.pop();
        }
    }

    /// Adds those of another thread, with the same seed and limit.
    pub fn merge(&mut self, other: Self) {
        for (number, theirs) in other.classes {
            let ours = self.classes.entry(number).or_default();
            ours.files += theirs.files;
            ours.bytes = ours.bytes.saturating_add(theirs.bytes);
            ours.drawn.extend(theirs.drawn);
            while ours.drawn.len() > self.most_per_class {
                ours.drawn.pop();
            }
        }
    }

    /// The same without the size classes above so many bytes: what cannot be sampled whole.
    #[must_use]
    pub fn up_to(&self, most_bytes: u64) -> Self {
        let mut fewer = self.clone();
        fewer
            .classes
            .retain(|class, _| *class <= size_class(most_bytes));
        fewer
    }

    /// The classes, smallest sizes first, with their candidates in the order in which they are to be
    /// taken.
    #[must_use]
    pub fn classes(&self) -> Vec<CandidateClass<'_>> {
        self.classes
            .values()
            .map(|class| {
                let mut drawn: Vec<&Drawn> = class.drawn.iter().collect();
                drawn.sort();
                CandidateClass {
                    files: class.files,
                    bytes: class.bytes,
                    candidates: drawn.into_iter().map(|drawn| &drawn.file).collect(),
                }
            })
            .collect()
    }
}

/// Candidates of one size class.
#[derive(Debug, Clone)]
pub struct CandidateClass<'a> {
    /// Files of the class in the tree.
    pub files: u64,
    /// Their content in bytes.
    pub bytes: u64,
    /// A uniform sample of them, in random order: its first n are a uniform sample too.
    pub candidates: Vec<&'a FileAt>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(parts: usize) -> Vec<Candidates> {
        let mut all = vec![Candidates::new(7, 50); parts];
        for number in 0..20_000u64 {
            let candidates = &mut all[number as usize % parts];
            let folder = format!("{}", number % 100);
            let seed = candidates.folder_seed(folder.as_bytes());
            let name = format!("{number}");
            let path = || PathBuf::from(format!("{folder}/{name}"));
            candidates.add(seed, name.as_bytes(), number % 4_000, path);
        }
        all
    }

    #[test]
    fn the_same_are_chosen_by_any_number_of_threads() {
        let one = filled(1).remove(0);
        let mut several = filled(3);
        let mut merged = several.remove(0);
        for other in several {
            merged.merge(other);
        }
        let (one, merged) = (one.classes(), merged.classes());
        assert_eq!(one.len(), 13);
        for (one, merged) in one.iter().zip(&merged) {
            assert_eq!(one.files, merged.files);
            assert_eq!(one.bytes, merged.bytes);
            assert_eq!(one.candidates, merged.candidates);
            assert_eq!(one.candidates.len() as u64, one.files.min(50));
        }
    }

    #[test]
    fn a_class_is_sampled_evenly() {
        let mut candidates = Candidates::new(3, 1_000);
        let seed = candidates.folder_seed(b"");
        for number in 0..10_000u64 {
            let name = number.to_string();
            candidates.add(seed, name.as_bytes(), 1 << 20 | number, || {
                PathBuf::from(&name)
            });
        }
        let classes = candidates.classes();
        let low = classes[0].candidates.iter();
        let low = low.filter(|file| file.bytes & 0xFFFFF < 5_000).count();
        // 500 expected, with a standard deviation of 15.
        assert!((420..580).contains(&low), "{low}");
    }
}
