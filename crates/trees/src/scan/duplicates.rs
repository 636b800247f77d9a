//! How much is there more than once: of the sizes that were sampled all files are read and their
//! content compared by a digest (XXH3, 128 bits, with the size).

use std::collections::HashSet;

use sqlitmus_core::tree_scan::{Duplicates, FileAt, Oddities, SizeGroups};
use xxhash_rust::xxh3::Xxh3;

use super::content::{open, read_piece};
use crate::walk::Tree;

/// Of larger files only as much at the beginning and at the end is read.
const PIECE_BYTES: u64 = 64 << 10;

/// Compares; `None` if there was nothing to compare.
pub(super) fn sample(
    tree: &Tree,
    same_sizes: &SizeGroups,
    oddities: &mut Oddities,
    should_stop: &dyn Fn() -> bool,
) -> Option<Duplicates> {
    let mut found = Duplicates {
        is_whole: same_sizes.are_all(),
        is_lower_bound: !same_sizes.are_whole(),
        most_bytes_per_file: PIECE_BYTES,
        ..Duplicates::default()
    };
    let mut buffer = Vec::new();
    for group in same_sizes.groups() {
        if should_stop() {
            found.is_whole = false;
            break;
        }
        compare(tree, &group, &mut found, &mut buffer, oddities);
    }
    (found.compared_files > 0).then_some(found)
}

/// Files of one size.
fn compare(
    tree: &Tree,
    group: &[FileAt],
    found: &mut Duplicates,
    buffer: &mut Vec<u8>,
    oddities: &mut Oddities,
) {
    // The only one of its size is nobody's duplicate, and need not be read.
    let is_alone = group.len() == 1;
    let mut seen = HashSet::new();
    for file in group {
        let is_duplicate = if is_alone {
            false
        } else {
            match digest(tree, file, buffer, oddities) {
                Some(digest) => !seen.insert(digest),
                None => continue,
            }
        };
        found.compared_files += 1;
        found.compared_bytes += file.bytes;
        if is_duplicate {
            found.duplicate_files += 1;
            found.duplicate_bytes += file.bytes;
        }
    }
}

fn digest(
    tree: &Tree,
    file: &FileAt,
    buffer: &mut Vec<u8>,
    oddities: &mut Oddities,
) -> Option<u128> {
    let opened = open(tree, file, oddities)?;
    let mut hash = Xxh3::new();
    let first = file.bytes.min(2 * PIECE_BYTES);
    let pieces = if first == file.bytes {
        [(0, first), (0, 0)]
    } else {
        [(0, PIECE_BYTES), (file.bytes - PIECE_BYTES, PIECE_BYTES)]
    };
    for (start, bytes) in pieces {
        hash.update(read_piece(&opened, file, start, bytes, buffer, oddities)?);
    }
    Some(hash.digest128())
}
