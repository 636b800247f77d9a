//! A sample of the files of a tree: at most so many bytes, with the tree's distribution of sizes. Of
//! every size class the same share is taken, and inside a class all files are equally likely.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::Serialize;

use super::candidates::{CandidateClass, Candidates, FileAt};
use crate::keys::shuffle;

/// How much smaller the share becomes when rounding has drawn more bytes than are allowed.
const SHRINK: f64 = 0.97;

/// Files drawn from a tree.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sample {
    /// The files, in random order.
    pub files: Vec<FileAt>,
    /// Their content.
    pub bytes: u64,
    /// Share of the tree's files that was aimed at in every size class, from 0 to 1.
    pub share: f64,
    /// Whether these are all files of the tree.
    pub is_whole: bool,
    /// Whether fewer were drawn than `most_bytes` allows because the candidates of some class were
    /// used up: the scan would have had to remember more of them.
    pub is_short_of_candidates: bool,
}

/// Draws a sample of at most `most_bytes`.
///
/// Of each size class the same share of files is taken; a fraction of a file is taken or left by the
/// seed, so that rare large files are there as often as they ought to be on average. If the result is
/// too large, the share is made smaller and all is drawn again.
#[must_use]
pub fn draw(candidates: &Candidates, most_bytes: u64, seed: u64) -> Sample {
    let classes = candidates.classes();
    let files: u64 = classes.iter().map(|class| class.files).sum();
    let bytes = classes.iter().map(|class| class.bytes);
    let bytes = bytes.fold(0, u64::saturating_add);
    let by_bytes = (most_bytes as f64 / bytes.max(1) as f64).min(1.0);
    // The share for which every class has candidates enough.
    let by_candidates = classes
        .iter()
        .map(|class| class.candidates.len() as f64 / class.files as f64)
        .fold(1.0, f64::min);
    let mut share = by_bytes.min(by_candidates);
    let mut chosen = choose(&classes, share, seed);
    while total(&chosen) > most_bytes {
        share *= SHRINK;
        chosen = choose(&classes, share, seed);
    }
    let mut chosen: Vec<FileAt> = chosen.into_iter().cloned().collect();
    shuffle(&mut chosen, seed);
    Sample {
        bytes: chosen.iter().map(|file| file.bytes).sum(),
        is_whole: chosen.len() as u64 == files,
        is_short_of_candidates: by_candidates < by_bytes,
        files: chosen,
        share,
    }
}

/// The first of each class, as many as the share says.
fn choose<'a>(classes: &[CandidateClass<'a>], share: f64, seed: u64) -> Vec<&'a FileAt> {
    let mut stream = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut chosen = Vec::new();
    for class in classes {
        let wanted = class.files as f64 * share;
        // 53 bits, the precision of a double, in [0, 1).
        let ticket = (stream.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        let count = wanted.floor() + f64::from(u8::from(ticket < wanted.fract()));
        chosen.extend(class.candidates.iter().take(count as usize).copied());
    }
    chosen
}

fn total(files: &[&FileAt]) -> u64 {
    let sizes = files.iter().map(|file| file.bytes);
    sizes.fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn tree(sizes: &[u64], most_per_class: usize) -> Candidates {
        let mut candidates = Candidates::new(1, most_per_class);
        let seed = candidates.folder_seed(b"");
        for (number, bytes) in sizes.iter().enumerate() {
            let name = number.to_string();
            candidates.add(seed, name.as_bytes(), *bytes, || PathBuf::from(&name));
        }
        candidates
    }

    /// Sizes whose logarithm is spread evenly from 1 byte to 1 MB.
    fn spread_sizes(count: u64) -> Vec<u64> {
        (0..count)
            .map(|number| 10f64.powf(6.0 * number as f64 / count as f64) as u64)
            .collect()
    }

    #[test]
    fn the_distribution_of_sizes_is_kept() {
        let sizes = spread_sizes(20_000);
        let whole: u64 = sizes.iter().sum();
        let sample = draw(&tree(&sizes, usize::MAX), whole / 10, 5);
        assert!(sample.bytes <= whole / 10);
        assert!(
            sample.bytes > whole / 12,
            "{} of {}",
            sample.bytes,
            whole / 10
        );
        assert!(!sample.is_whole && !sample.is_short_of_candidates);
        // The largest distance of the two distribution functions (Kolmogorov and Smirnov). For 2,000
        // drawn at random it is above 0.037 once in a hundred times; strata make it smaller.
        let mut drawn: Vec<u64> = sample.files.iter().map(|file| file.bytes).collect();
        drawn.sort_unstable();
        let distance = sizes
            .iter()
            .map(|size| {
                let up_to = |sorted: &[u64]| {
                    sorted.partition_point(|bytes| bytes <= size) as f64 / sorted.len() as f64
                };
                (up_to(&drawn) - up_to(&sizes)).abs()
            })
            .fold(0.0, f64::max);
        assert!(distance < 0.037, "{distance}");
    }

    #[test]
    fn all_is_taken_if_it_fits() {
        let sizes = [0, 0, 5, 70, 70_000];
        let sample = draw(&tree(&sizes, 10), u64::MAX, 1);
        assert!(sample.is_whole && !sample.is_short_of_candidates);
        assert_eq!(sample.files.len(), 5);
        assert_eq!(sample.bytes, 70_075);
        let empty = draw(&tree(&[], 10), 1_000, 1);
        assert!(empty.is_whole && empty.files.is_empty());
    }

    #[test]
    fn it_is_never_too_large_and_follows_from_the_seed() {
        let sizes = spread_sizes(5_000);
        let candidates = tree(&sizes, 100);
        for most_bytes in [0, 1, 1_000, 1_000_000, 50_000_000] {
            let sample = draw(&candidates, most_bytes, 9);
            assert!(sample.bytes <= most_bytes, "{most_bytes}: {}", sample.bytes);
            assert_eq!(sample, draw(&candidates, most_bytes, 9));
        }
        assert_ne!(
            draw(&candidates, 1_000_000, 1),
            draw(&candidates, 1_000_000, 2)
        );
        assert!(draw(&candidates, u64::MAX, 1).is_short_of_candidates);
    }

    #[test]
    fn rare_large_files_are_there_as_often_as_they_ought_to_be() {
        // One file of ten thousand is large; a tenth of the bytes is drawn.
        let mut sizes = vec![1_000; 9_999];
        sizes.push(100_000);
        let candidates = tree(&sizes, usize::MAX);
        let times = (0..200)
            .filter(|seed| {
                let sample = draw(&candidates, 1_010_000, *seed);
                sample.files.iter().any(|file| file.bytes == 100_000)
            })
            .count();
        // About 20 expected; with 8 or 36 the odds are below one in a thousand.
        assert!((8..=36).contains(&times), "{times}");
    }
}
