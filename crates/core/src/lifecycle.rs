//! What happens once in the life of a store, or at an age of it: the names under which a life's trial keeps it
//! among its resources, and what several lives say of it together. How it is measured is the worker's
//! business.

use crate::run::{Outcome, Run};

/// Filling an empty store, until the engine is done.
pub const LOAD_NS: &str = "load_ns";
/// The same until everything is on the device.
pub const LOAD_SETTLED_NS: &str = "load_settled_ns";
/// Opening a store whose content is in memory, until the first blob is read.
pub const FIRST_READ_NS: &str = "first_read_ns";
/// The same when nothing of the content is in memory.
pub const FIRST_READ_COLD_NS: &str = "first_read_cold_ns";
/// Copying the store's files.
pub const COPY_NS: &str = "copy_ns";
/// The same until the copy is on the device.
pub const COPY_SETTLED_NS: &str = "copy_settled_ns";
/// Bytes allocated to the copy.
pub const COPY_BYTES: &str = "copy_bytes";
/// `VACUUM INTO` another file, until that is on the device.
pub const VACUUM_INTO_NS: &str = "vacuum_into_ns";
/// Size of that file.
pub const VACUUM_INTO_BYTES: &str = "vacuum_into_bytes";
/// SQLite's backup interface, in one step, until the copy is on the device.
pub const BACKUP_NS: &str = "backup_ns";
/// Removing a part of the blobs for good.
pub const REMOVE_PART_NS: &str = "remove_part_ns";
/// Allocated to the store afterwards.
pub const REMOVED_BYTES: &str = "removed_allocated_bytes";
/// `VACUUM`, with the checkpoint that makes the file shorter.
pub const VACUUM_NS: &str = "vacuum_ns";
/// Allocated to the store afterwards.
pub const VACUUMED_BYTES: &str = "vacuumed_allocated_bytes";
/// `PRAGMA incremental_vacuum` of all free pages, with the checkpoint, in a copy that was made for it.
pub const INCREMENTAL_VACUUM_NS: &str = "incremental_vacuum_ns";
/// Allocated to that copy before.
pub const INCREMENTAL_BEFORE_BYTES: &str = "incremental_before_bytes";
/// Allocated to that copy afterwards.
pub const INCREMENTAL_AFTER_BYTES: &str = "incremental_after_bytes";
/// Removing all blobs that are left, one by one.
pub const EMPTY_NS: &str = "empty_ns";
/// Removing the copy as a whole, with all files and folders.
pub const UNLINK_NS: &str = "unlink_ns";

/// At an age: nanoseconds of the replacements of the last age, without settling.
pub const WRITE_NS: &str = "write_ns";
/// At an age: nanoseconds that settling them took.
pub const SETTLE_NS: &str = "settle_ns";
/// At an age: bytes allocated.
pub const ALLOCATED_BYTES: &str = "allocated_bytes";
/// At an age: files and folders.
pub const INODES: &str = "inodes";
/// At an age: files whose extents were counted.
pub const EXTENT_FILES: &str = "extent_files";
/// At an age: stretches on the device that these files are in.
pub const EXTENTS: &str = "extents";
/// At an age: pages of the database that hold content.
pub const PAGES: &str = "pages";
/// At an age: stretches of neighbouring pages that they are read in.
pub const PAGE_RUNS: &str = "page_runs";
/// At an age: pages of the database that hold nothing.
pub const FREE_PAGES: &str = "free_pages";

/// The name of what is known at an age.
#[must_use]
pub fn at_age(age: u32, name: &str) -> String {
    format!("age_{age}_{name}")
}

/// Replacements of every object in a life that is looked at at these ages.
#[must_use]
pub fn replacements(ages: &[u32]) -> u64 {
    u64::from(ages.last().copied().unwrap_or(0))
}

/// A figure that every life has once.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// The middle one.
    pub median: f64,
    /// The smallest.
    pub lowest: f64,
    /// The largest.
    pub highest: f64,
    /// Number of lives.
    pub lives: usize,
}

/// What the lives of an arm say of a resource; `None` if none that counts knows it.
#[must_use]
pub fn spread(run: &Run, arm: &str, resource: &str) -> Option<Spread> {
    let trials = run.trials.iter();
    let valid = trials.filter(|trial| trial.arm == arm && trial.outcome == Outcome::Valid);
    spread_of(valid.filter_map(|trial| trial.resources.get(resource).copied()))
}

/// The middle and the ends of some numbers; `None` of none.
#[must_use]
pub fn spread_of(values: impl Iterator<Item = u64>) -> Option<Spread> {
    let mut values: Vec<u64> = values.collect();
    values.sort_unstable();
    let (lowest, highest) = (*values.first()?, *values.last()?);
    let middle = values.len() / 2;
    let median = match values.len() % 2 {
        1 => values[middle] as f64,
        _ => (values[middle - 1] as f64 + values[middle] as f64) / 2.0,
    };
    Some(Spread {
        median,
        lowest: lowest as f64,
        highest: highest as f64,
        lives: values.len(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_of_several_lives() {
        let spread = |values: &[u64]| spread_of(values.iter().copied());
        assert_eq!(spread(&[]), None);
        let three = spread(&[30, 10, 11]).expect("known");
        assert_eq!(
            (three.median, three.lowest, three.highest),
            (11.0, 10.0, 30.0)
        );
        assert_eq!(spread(&[4, 2]).expect("known").median, 3.0);
        assert_eq!(spread(&[4, 2]).expect("known").lives, 2);
    }

    #[test]
    fn an_age_is_in_the_name() {
        assert_eq!(at_age(8, EXTENTS), "age_8_extents");
        assert_eq!(replacements(&[0, 1, 8]), 8);
    }
}
