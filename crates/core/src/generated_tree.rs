//! A generated directory tree: folders and files whose names, places and sizes follow from a dataset, so that
//! a tree of the same shape can be made anywhere and walked again. Also what recording its entries must add
//! up to. Making it on a disk is left to the command line.
//!
//! Every folder but the first ones lies in one that is chosen among all before it, as the nodes of a random
//! recursive tree do: most folders are near the top, some are deep.

use crate::case::fingerprint_of;
use crate::dataset::{Dataset, bounded, mix};

/// One of so many entries is a folder: about as in `/usr` of a Debian system.
const ENTRIES_PER_FOLDER: u64 = 12;

/// Letters of a name before its number: from this many to [`MOST_LETTERS`].
const LEAST_LETTERS: u64 = 3;
const MOST_LETTERS: u64 = 20;

const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz-_.eai";

/// An entry of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GeneratedEntry<'a> {
    /// Path relative to the top, with `/` between its parts.
    pub path: &'a str,
    /// `None` for a folder, else the size of a file in bytes.
    pub file_bytes: Option<u64>,
}

/// The entries of a tree, every folder before what lies in it.
#[derive(Debug)]
pub struct GeneratedTree {
    entries: Vec<(String, Option<u64>)>,
}

impl GeneratedTree {
    /// A tree with as many entries as the dataset has items, and files of the dataset's sizes.
    #[must_use]
    pub fn new(dataset: &Dataset) -> Self {
        let mut entries: Vec<(String, Option<u64>)> = Vec::with_capacity(dataset.count as usize);
        // Where folders stand in the list.
        let mut folders: Vec<usize> = Vec::new();
        for number in 1..=dataset.count {
            let bits = |part: u64| mix(dataset.seed ^ mix(number ^ mix(part)));
            // The top is one of those to choose from.
            let chosen = bounded(bits(0), folders.len() as u64 + 1) as usize;
            let parent = chosen
                .checked_sub(1)
                .map(|folder| entries[folders[folder]].0.as_str());
            let name = name(bits(1), bits(2), number);
            let path = match parent {
                Some(parent) => format!("{parent}/{name}"),
                None => name,
            };
            if number % ENTRIES_PER_FOLDER == 1 {
                folders.push(entries.len());
                entries.push((path, None));
            } else {
                entries.push((path, Some(dataset.value_bytes(number) as u64)));
            }
        }
        Self { entries }
    }

    /// All entries.
    pub fn entries(&self) -> impl Iterator<Item = GeneratedEntry<'_>> {
        self.entries
            .iter()
            .map(|(path, file_bytes)| GeneratedEntry {
                path,
                file_bytes: *file_bytes,
            })
    }

    /// Sum of [`consume_entry`] over all entries, wrapping.
    #[must_use]
    pub fn consumed(&self) -> u64 {
        let sums = self
            .entries
            .iter()
            .map(|(path, _)| match path.rsplit_once('/') {
                Some((folder, name)) => consume_entry(folder.as_bytes(), name.as_bytes()),
                None => consume_entry(b"", path.as_bytes()),
            });
        sums.fold(0, u64::wrapping_add)
    }
}

/// Letters that follow from some bits, and the number, so that no name is there twice.
fn name(length: u64, letters: u64, number: u64) -> String {
    let length = LEAST_LETTERS + bounded(length, MOST_LETTERS - LEAST_LETTERS + 1);
    let mut bits = letters;
    let mut name = String::with_capacity(length as usize + 8);
    for place in 0..length {
        if place % 12 == 11 {
            bits = mix(bits);
        }
        let letter = LETTERS[(bits & 31) as usize];
        bits >>= 5;
        // A name that begins with a dot is hidden from some programs.
        let letter = if place == 0 && !letter.is_ascii_lowercase() {
            b'x'
        } else {
            letter
        };
        name.push(char::from(letter));
    }
    name.push_str(&number.to_string());
    name
}

/// What recording an entry adds up to: its folder's path relative to the top, and its name.
#[must_use]
pub fn consume_entry(folder: &[u8], name: &[u8]) -> u64 {
    fingerprint_of(folder).rotate_left(32) ^ fingerprint_of(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::SizeDistribution;
    use std::collections::BTreeSet;

    fn tree(count: u64, seed: u64) -> GeneratedTree {
        GeneratedTree::new(&Dataset {
            count,
            size: SizeDistribution::Uniform(0, 9),
            compressibility: 0.0,
            seed,
        })
    }

    #[test]
    fn every_entry_lies_in_a_folder_that_comes_before_it() {
        let tree = tree(5000, 7);
        let mut folders = BTreeSet::new();
        let mut paths = BTreeSet::new();
        for entry in tree.entries() {
            if let Some((folder, _)) = entry.path.rsplit_once('/') {
                assert!(folders.contains(folder), "{}", entry.path);
            }
            match entry.file_bytes {
                None => assert!(folders.insert(entry.path.to_owned())),
                Some(bytes) => assert!(bytes <= 9),
            }
            assert!(paths.insert(entry.path.to_owned()), "twice: {}", entry.path);
            assert!(entry.path.len() < 1000 && !entry.path.contains("/."));
        }
        assert_eq!((paths.len(), folders.len()), (5000, 417));
        let deepest = paths.iter().map(|path| path.matches('/').count()).max();
        assert!((5..40).contains(&deepest.expect("entries")), "{deepest:?}");
    }

    #[test]
    fn all_follows_from_the_seed() {
        assert_eq!(tree(300, 1).consumed(), tree(300, 1).consumed());
        assert_ne!(tree(300, 1).consumed(), tree(300, 2).consumed());
        assert_ne!(tree(300, 1).consumed(), tree(301, 1).consumed());
        assert_eq!(tree(1, 1).entries().count(), 1);
    }

    #[test]
    fn folder_and_name_both_count() {
        assert_ne!(consume_entry(b"a", b"b"), consume_entry(b"b", b"a"));
        assert_ne!(consume_entry(b"", b"ab"), consume_entry(b"a", b"b"));
    }
}
