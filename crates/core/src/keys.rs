//! Key orders: in which order a trial visits the keys of a dataset. Every arm of a group walks
//! the same seeded order, each from an offset of its own, so that all do the same work and none
//! replays the keys that another has just put into the processor's cache.

use std::sync::Arc;

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
    /// As many draws as there are keys: the n-th most popular key in proportion to 1/n (G. K. Zipf,
    /// 1949), which keys are popular being random. Some keys come often and some not at all.
    Zipf,
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
            Self::Zipf => {
                shuffle(&mut keys, seed);
                return zipf_draws(&keys, seed);
            }
        }
        keys
    }
}

/// As many draws as there are keys, the first of which is the most popular.
fn zipf_draws(by_rank: &[u32], seed: u64) -> Vec<u32> {
    let mut up_to = Vec::with_capacity(by_rank.len());
    let mut weight = 0.0;
    for rank in 1..=by_rank.len() {
        weight += 1.0 / rank as f64;
        up_to.push(weight);
    }
    let mut stream = Xoshiro256PlusPlus::seed_from_u64(!seed);
    let draw = |_: &u32| {
        // 53 bits, the precision of a double, in [0, 1).
        let ticket = (stream.next_u64() >> 11) as f64 / (1u64 << 53) as f64 * weight;
        let rank = up_to.partition_point(|end| *end <= ticket);
        by_rank[rank.min(by_rank.len() - 1)]
    };
    by_rank.iter().map(draw).collect()
}

/// Puts the items in a seeded random order (Fisher and Yates; Durstenfeld's algorithm 235, 1964).
pub fn shuffle<T>(items: &mut [T], seed: u64) {
    let mut stream = Xoshiro256PlusPlus::seed_from_u64(seed);
    for index in (1..items.len()).rev() {
        items.swap(index, bounded(stream.next_u64(), index as u64 + 1) as usize);
    }
}

/// Operations on consecutive keys of a walk.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// Position in the key order of the first.
    pub position: usize,
    /// Number of operations.
    pub operations: u64,
    /// Sum over what was read: of [`crate::dataset::consume`] for blobs, of
    /// [`crate::rows::consume_user`] for rows; 0 for writes.
    pub consumed: u64,
}

/// Where one of several threads starts in the key order: they are spread evenly, so that they
/// meet no sooner than they must.
#[must_use]
pub fn thread_offset(offset: f64, thread: u32, threads: u32) -> f64 {
    offset + f64::from(thread) / f64::from(threads.max(1))
}

/// A walk around a list of keys that starts anywhere and never ends. Copies share the list.
#[derive(Debug, Clone)]
pub struct KeyWalk {
    keys: Arc<[u32]>,
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
        let mut walk = Self {
            keys: keys.into(),
            position: 0,
        };
        walk.position = walk.start(offset);
        walk
    }

    /// Where a walk over these keys starts that has this offset.
    #[must_use]
    pub fn start(&self, offset: f64) -> usize {
        let count = self.keys.len();
        (offset.rem_euclid(1.0) * count as f64) as usize % count
    }

    /// A walk around the same keys that starts elsewhere.
    #[must_use]
    pub fn starting_at(&self, offset: f64) -> Self {
        let mut other = self.clone();
        other.position = self.start(offset);
        other
    }

    /// A walk around every `parts`-th of the same keys, beginning with the one at `part`, that starts at `offset`
    /// of them: of several such walks no two meet. One part is the whole.
    ///
    /// # Panics
    /// If there are fewer keys than parts.
    #[must_use]
    pub fn part(&self, part: u32, parts: u32, offset: f64) -> Self {
        let keys = self.keys.iter().skip(part as usize);
        let keys: Vec<u32> = keys.step_by(parts.max(1) as usize).copied().collect();
        Self::new(keys, offset)
    }

    /// Goes back to where the walk stood, as [`KeyWalk::position`] has said.
    pub fn return_to(&mut self, position: usize) {
        self.position = position % self.keys.len();
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
    fn the_popular_keys_of_zipf_come_as_often_as_they_should() {
        let keys = KeyOrder::Zipf.keys(10_000, 3);
        assert_eq!(keys.len(), 10_000);
        assert_eq!(keys, KeyOrder::Zipf.keys(10_000, 3));
        assert_ne!(keys, KeyOrder::Zipf.keys(10_000, 4));
        let mut counts = std::collections::BTreeMap::new();
        keys.iter()
            .for_each(|key| *counts.entry(*key).or_insert(0u32) += 1);
        let mut counts: Vec<u32> = counts.into_values().collect();
        counts.sort_unstable();
        counts.reverse();
        // The harmonic number of 10,000 is 9.79: the first is drawn 1022 times, the second half as often.
        assert!((900..1150).contains(&counts[0]), "{}", counts[0]);
        assert!((430..600).contains(&counts[1]), "{}", counts[1]);
        assert_eq!(KeyOrder::Zipf.keys(1, 1), [1]);
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
    fn threads_start_apart_and_go_back_where_they_were() {
        let walk = KeyWalk::new(KeyOrder::Ascending.keys(100, 0), 0.0);
        let starts = (0..4).map(|thread| {
            let mut walk = walk.starting_at(thread_offset(0.1, thread, 4));
            let position = walk.position();
            let first = walk.next_key();
            walk.return_to(position);
            assert_eq!(walk.next_key(), first);
            first
        });
        assert_eq!(starts.collect::<Vec<_>>(), [11, 36, 61, 86]);
    }

    #[test]
    fn every_offset_is_inside() {
        for offset in [0.0, 0.999_999_999, 1.0, 7.3, -0.1] {
            let mut walk = KeyWalk::new(vec![1, 2, 3], offset);
            walk.next_key();
        }
    }
}
