//! Which files are to be compared to find duplicates. A sample of files finds hardly any: both of a
//! pair have to be in it. So sizes are sampled, and of a chosen size all files are compared: two files
//! of the same content have the same size.

use std::collections::BTreeMap;
use std::path::PathBuf;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::FileAt;

/// All files of sizes that were chosen by the seed.
#[derive(Debug, Clone)]
pub struct SizeGroups {
    seed: u64,
    most_files: usize,
    /// By the number drawn for the size; the sizes with the smallest are kept.
    groups: BTreeMap<u64, Group>,
    files: usize,
    /// Sizes whose number is this or larger have been given up.
    limit: Option<u64>,
}

#[derive(Debug, Clone, Default)]
struct Group {
    bytes: u64,
    paths: Vec<PathBuf>,
    /// Files of this size, also those that were not kept.
    seen: u64,
}

impl SizeGroups {
    /// None so far; keeps about so many files.
    #[must_use]
    pub fn new(seed: u64, most_files: usize) -> Self {
        Self {
            seed,
            most_files,
            groups: BTreeMap::new(),
            files: 0,
            limit: None,
        }
    }

    /// Considers a file; its path is asked for only if it is kept. Empty files are left out: they are
    /// all alike, and counted anyway.
    pub fn add(&mut self, bytes: u64, path: impl FnOnce() -> PathBuf) {
        let drawn = xxh3_64_with_seed(&bytes.to_le_bytes(), self.seed);
        if bytes == 0 || self.limit.is_some_and(|limit| drawn >= limit) {
            return;
        }
        let group = self.groups.entry(drawn).or_default();
        group.bytes = bytes;
        group.seen += 1;
        // The last size that is left is cut, or a tree of files of one size would be kept whole.
        if group.paths.len() < self.most_files {
            group.paths.push(path());
            self.files += 1;
        }
        self.shrink();
    }

    /// Adds those of another thread, with the same seed and limit.
    pub fn merge(&mut self, other: Self) {
        self.limit = match (self.limit, other.limit) {
            (Some(ours), Some(theirs)) => Some(ours.min(theirs)),
            (ours, theirs) => ours.or(theirs),
        };
        for (drawn, mut theirs) in other.groups {
            let ours = self.groups.entry(drawn).or_default();
            ours.bytes = theirs.bytes;
            ours.seen += theirs.seen;
            ours.paths.append(&mut theirs.paths);
            ours.paths.truncate(self.most_files);
        }
        if let Some(limit) = self.limit {
            self.groups.split_off(&limit);
        }
        self.files = self.groups.values().map(|group| group.paths.len()).sum();
        self.shrink();
    }

    fn shrink(&mut self) {
        while self.files > self.most_files && self.groups.len() > 1 {
            if let Some((drawn, group)) = self.groups.pop_last() {
                self.files -= group.paths.len();
                self.limit = Some(drawn);
            }
        }
    }

    /// The files of the chosen sizes, size by size in random order.
    pub fn groups(&self) -> impl Iterator<Item = Vec<FileAt>> + '_ {
        self.groups.values().map(|group| {
            let file = |path: &PathBuf| FileAt {
                path: path.clone(),
                bytes: group.bytes,
            };
            group.paths.iter().map(file).collect()
        })
    }

    /// Whether of every chosen size all files are here. If not, duplicates are underestimated.
    #[must_use]
    pub fn are_whole(&self) -> bool {
        self.groups
            .values()
            .all(|group| group.seen == group.paths.len() as u64)
    }

    /// Whether all files that are not empty are here.
    #[must_use]
    pub fn are_all(&self) -> bool {
        self.limit.is_none() && self.are_whole()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(parts: usize, most_files: usize) -> SizeGroups {
        let mut all = vec![SizeGroups::new(7, most_files); parts];
        for number in 0..9_000u64 {
            let groups = &mut all[number as usize % parts];
            groups.add(number % 3_000, || PathBuf::from(number.to_string()));
        }
        let mut merged = all.remove(0);
        for other in all {
            merged.merge(other);
        }
        merged
    }

    fn sorted(groups: &SizeGroups) -> Vec<Vec<FileAt>> {
        let mut all: Vec<Vec<FileAt>> = groups.groups().collect();
        all.iter_mut().for_each(|group| group.sort());
        all
    }

    #[test]
    fn of_a_chosen_size_all_are_there_whoever_walked() {
        let one = filled(1, 300);
        assert!(one.are_whole() && !one.are_all());
        let groups = sorted(&one);
        assert!(groups.iter().all(|group| group.len() == 3));
        assert!((90..=100).contains(&groups.len()), "{}", groups.len());
        assert_eq!(groups, sorted(&filled(4, 300)));
        assert!(filled(2, 10_000).are_all());
    }

    #[test]
    fn files_of_one_size_do_not_fill_the_memory() {
        let mut groups = SizeGroups::new(1, 100);
        for number in 0..1_000 {
            groups.add(10_000, || PathBuf::from(number.to_string()));
        }
        assert!(!groups.are_whole() && !groups.are_all());
        assert_eq!(groups.groups().map(|group| group.len()).sum::<usize>(), 100);
    }
}
