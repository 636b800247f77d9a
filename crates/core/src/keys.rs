//! Key orders: in which order a trial visits the keys of a dataset. Every arm of a group walks
//! the same seeded order, each from an offset of its own, so that all do the same work and none
//! replays the keys that another has just put into the processor's cache.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::{Deserialize, Serialize};

use crate::dataset::bounded;

/// The order in which keys are visited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KeyOrder {
    /// A seeded permutation: every key once before any key again.
    Random,
    /// From the smallest to the largest.
    Ascending,
    /// From the largest to the smallest.
    Descending,
}

impl KeyOrder {
    /// The keys 1 to `count` in this order.
    #[must_use]
    pub fn keys(self, count: u32, seed: u64) -> Vec<u32> {
        let mut keys: Vec<u32> = (1..=count).collect();
        match self {
            Self::Ascending => {}
            Self::Descending => keys.reverse(),
            Self::Random => shuffle(&mut keys, seed),
        }
        keys
    }
}

/// Puts the items in a seeded random order (Fisher and Yates; Durstenfeld's algorithm 235, 1964).
pub fn shuffle<T>(items: &mut [T], seed: u64) {
    let mut stream = Xoshiro256PlusPlus::seed_from_u64(seed);
    for index in (1..items.len()).rev() {
        items.swap(index, bounded(stream.next_u64(), index as u64 + 1) as usize);
    }
}

/// A walk around a list of keys that starts anywhere and never ends.
#[derive(Debug, Clone)]
pub struct KeyWalk {
    keys: Vec<u32>,
    position: usize,
}

impl KeyWalk {
    /// A walk that starts at `offset`, a share of the whole from 0 to 1.
    ///
    /// # Panics
    /// If there are no keys; a validated dataset has some.
    #[must_use]
    pub fn new(keys: Vec<u32>, offset: f64) -> Self {
        assert!(!keys.is_empty(), "a dataset has at least one key");
        let mut walk = Self { keys, position: 0 };
        walk.position = walk.start(offset);
        walk
    }

    /// Where a walk over these keys starts that has this offset.
    #[must_use]
    pub fn start(&self, offset: f64) -> usize {
        let count = self.keys.len();
        (offset.rem_euclid(1.0) * count as f64) as usize % count
    }

    /// The next key.
    #[inline]
    pub fn next_key(&mut self) -> u64 {
        let key = self.keys[self.position];
        self.position += 1;
        if self.position == self.keys.len() {
            self.position = 0;
        }
        u64::from(key)
    }

    /// Where the walk stands, for [`KeyWalk::span`].
    #[must_use]
    pub fn position(&self) -> usize {
        self.position
    }

    /// Number of keys in one turn of the walk.
    #[must_use]
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Never: a walk has keys.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// The keys of `operations` steps from `position`, as they were or will be walked.
    pub fn span(&self, position: usize, operations: u64) -> impl Iterator<Item = u64> + '_ {
        (0..operations)
            .map(move |step| u64::from(self.keys[(position + step as usize) % self.keys.len()]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_order_is_a_seeded_permutation() {
        let keys = KeyOrder::Random.keys(1000, 1);
        assert_ne!(keys, KeyOrder::Ascending.keys(1000, 1));
        assert_ne!(keys, KeyOrder::Random.keys(1000, 2));
        assert_eq!(keys, KeyOrder::Random.keys(1000, 1));
        let mut sorted = keys;
        sorted.sort_unstable();
        assert_eq!(sorted, KeyOrder::Ascending.keys(1000, 1));
    }

    #[test]
    fn a_walk_goes_round_from_its_offset() {
        let mut walk = KeyWalk::new(KeyOrder::Ascending.keys(4, 0), 0.5);
        let walked: Vec<u64> = (0..6).map(|_| walk.next_key()).collect();
        assert_eq!(walked, [3, 4, 1, 2, 3, 4]);
        let again: Vec<u64> = walk.span(2, 6).collect();
        assert_eq!(walked, again);
    }

    #[test]
    fn every_offset_is_inside() {
        for offset in [0.0, 0.999_999_999, 1.0, 7.3, -0.1] {
            let mut walk = KeyWalk::new(vec![1, 2, 3], offset);
            walk.next_key();
        }
    }
}
