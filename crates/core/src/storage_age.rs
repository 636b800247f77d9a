//! Storage age: how often every object of a dataset has been replaced since the store was filled (the measure
//! of Sears and van Ingen, "Fragmentation in large object repositories", 2007). What a replacement is follows
//! from dataset and generation alone, so that any store of that age can be made, and verified, without a
//! record of what was done to it.
//!
//! A replacement has another size: that of another object, so that the distribution of sizes stays what it is.
//! A part of the objects is not overwritten but removed, and inserted again later in the same batch.

use crate::dataset::{Dataset, mix};
use crate::keys::KeyOrder;

/// Oldest age that a store is brought to: beyond it a run takes hours and tells nothing new.
pub const OLDEST: u32 = 64;

/// Replacements of one batch. Larger batches are faster and leave fewer holes at a time.
pub const BATCH: usize = 100;

/// One object in so many is removed and inserted again instead of being overwritten.
const REMOVED_ONE_IN: u64 = 4;

/// The history of the objects of a dataset.
#[derive(Debug, Clone, Copy)]
pub struct History<'a> {
    dataset: &'a Dataset,
}

impl<'a> History<'a> {
    /// Of a dataset.
    #[must_use]
    pub fn of(dataset: &'a Dataset) -> Self {
        Self { dataset }
    }

    /// Size of an object's generation in bytes. Generation 0 has the object's own.
    #[must_use]
    pub fn value_bytes(&self, key: u64, generation: u64) -> usize {
        let count = self.dataset.count;
        // A rotation by another stretch each time: every size is some object's, once.
        let stretch = match generation {
            0 => 0,
            _ => mix(self.dataset.seed ^ mix(generation)) % count,
        };
        let lender = (key - 1 + stretch) % count + 1;
        self.dataset.value_bytes(lender)
    }

    /// Replaces the contents of `buffer` with an object's generation. Generation 0 of files that are there is
    /// their content, which is not known here: it is to be read.
    pub fn fill(&self, key: u64, generation: u64, buffer: &mut Vec<u8>) {
        buffer.resize(self.value_bytes(key, generation), 0);
        self.dataset.fill_slice(key, generation, buffer);
    }

    /// Order in which the objects get their generation.
    #[must_use]
    pub fn order(&self, generation: u64) -> Vec<u32> {
        let seed = mix(self.dataset.seed.rotate_left(17) ^ mix(generation));
        KeyOrder::Random.keys(self.dataset.count as u32, seed)
    }

    /// Whether an object is removed before it gets this generation, and not overwritten.
    #[must_use]
    pub fn is_removed_first(&self, key: u64, generation: u64) -> bool {
        mix(self.dataset.seed ^ mix(key.rotate_left(32) ^ generation))
            .is_multiple_of(REMOVED_ONE_IN)
    }

    /// The objects that are removed for good when so many of a hundred are, in an order that has nothing to do
    /// with where they lie.
    #[must_use]
    pub fn removed_for_good(&self, percent: u32) -> Vec<u32> {
        let mut keys = self.order(u64::MAX);
        let count = self.dataset.count * u64::from(percent.min(100)) / 100;
        keys.truncate(count as usize);
        keys
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::SizeDistribution;

    fn dataset() -> Dataset {
        Dataset {
            count: 500,
            size: SizeDistribution::Uniform(10, 400),
            compressibility: 0.0,
            seed: 3,
        }
    }

    #[test]
    fn sizes_change_and_their_distribution_does_not() {
        let dataset = dataset();
        let history = History::of(&dataset);
        let sizes = |generation: u64| -> Vec<usize> {
            let keys = 1..=dataset.count;
            keys.map(|key| history.value_bytes(key, generation))
                .collect()
        };
        let sorted = |mut sizes: Vec<usize>| {
            sizes.sort_unstable();
            sizes
        };
        assert_eq!(sizes(0)[6], dataset.value_bytes(7));
        for generation in 1..9 {
            assert_ne!(sizes(generation), sizes(generation - 1));
            assert_eq!(sorted(sizes(generation)), sorted(sizes(0)));
        }
    }

    #[test]
    fn content_says_which_generation_it_is() {
        let dataset = dataset();
        let history = History::of(&dataset);
        let (mut old, mut new) = (Vec::new(), Vec::new());
        history.fill(5, 3, &mut old);
        history.fill(5, 4, &mut new);
        assert_eq!(old.len(), history.value_bytes(5, 3));
        assert_ne!(old[..8], new[..8]);
    }

    #[test]
    fn every_object_is_replaced_once_and_some_are_removed_before() {
        let dataset = dataset();
        let history = History::of(&dataset);
        let mut order = history.order(2);
        assert_ne!(order, history.order(3));
        let removed = order
            .iter()
            .filter(|key| history.is_removed_first(u64::from(**key), 2))
            .count();
        assert!((75..175).contains(&removed), "{removed}");
        order.sort_unstable();
        assert_eq!(order, (1..=500).collect::<Vec<_>>());
        assert_eq!(history.removed_for_good(25).len(), 125);
    }
}
