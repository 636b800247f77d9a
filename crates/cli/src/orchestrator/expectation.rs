//! What a worker must have seen: sums and digests computed by the orchestrator from the dataset
//! alone, so that a worker that skipped work, read something else or lies is found out.

use std::collections::HashMap;

use sqlitmus_core::dataset::{Dataset, consume, digest};
use sqlitmus_core::keys::{KeyWalk, shuffle};

use crate::protocol::Span;

/// Keys that are digested at the end of every trial, at the most; the whole store is verified
/// after a group's last round.
const VERIFIED_KEYS: usize = 256;

/// What reading the untouched content (generation 0) of every key gives.
pub struct ContentSums {
    sums: Vec<u64>,
    value_bytes: Vec<u32>,
}

impl ContentSums {
    /// Generates every blob once; some seconds for a gigabyte.
    #[must_use]
    pub fn new(dataset: &Dataset) -> Self {
        let mut buffer = Vec::new();
        let (sums, value_bytes) = (1..=dataset.count)
            .map(|key| {
                dataset.fill(key, 0, &mut buffer);
                (consume(&buffer), buffer.len() as u32)
            })
            .unzip();
        Self { sums, value_bytes }
    }

    /// What reading the keys of a span must add up to.
    #[must_use]
    pub fn sum(&self, walk: &KeyWalk, span: &Span) -> u64 {
        walk.span(span.position, span.operations)
            .map(|key| self.sums[key as usize - 1])
            .fold(0, u64::wrapping_add)
    }

    /// Bytes of the keys of a span.
    #[must_use]
    pub fn bytes(&self, walk: &KeyWalk, span: &Span) -> u64 {
        walk.span(span.position, span.operations)
            .map(|key| u64::from(self.value_bytes[key as usize - 1]))
            .sum()
    }
}

/// Which generation the keys of a store have, as far as this run has written them.
#[derive(Debug, Clone, Default)]
pub struct Written {
    generations: HashMap<u64, u64>,
}

impl Written {
    /// Notes that the keys of a span were written.
    pub fn note(&mut self, walk: &KeyWalk, span: &Span, generation: u64) {
        for key in walk.span(span.position, span.operations) {
            self.generations.insert(key, generation);
        }
    }

    /// Takes over what was written later.
    pub fn then(&mut self, later: &Self) {
        self.generations.extend(&later.generations);
    }

    /// The generation of a key; `None` if this run has not written it.
    #[must_use]
    pub fn generation(&self, key: u64) -> Option<u64> {
        self.generations.get(&key).copied()
    }

    fn keys(&self) -> Vec<u64> {
        let mut keys: Vec<u64> = self.generations.keys().copied().collect();
        keys.sort_unstable();
        keys
    }
}

/// The keys to digest at the end of a trial, and what the digests must be.
pub struct Verification {
    /// Keys, in the order to ask for.
    pub keys: Vec<u64>,
    expected: Vec<u64>,
}

impl Verification {
    /// Chooses keys by a seed: of those written if any were, else of all.
    #[must_use]
    pub fn choose(dataset: &Dataset, written: &Written, seed: u64) -> Self {
        let mut keys = written.keys();
        if keys.is_empty() {
            keys = (1..=dataset.count).collect();
        }
        shuffle(&mut keys, seed);
        keys.truncate(VERIFIED_KEYS);
        let mut buffer = Vec::new();
        let expected = keys.iter().map(|key| {
            dataset.fill(*key, written.generation(*key).unwrap_or(0), &mut buffer);
            digest(&buffer)
        });
        Self {
            expected: expected.collect(),
            keys,
        }
    }

    /// Compares what the worker reports.
    ///
    /// # Errors
    /// Names the first key whose content is not what it must be.
    pub fn check(&self, digests: &[u64]) -> Result<(), String> {
        if digests.len() != self.keys.len() {
            return Err(format!(
                "verification: asked for {} digests, got {}",
                self.keys.len(),
                digests.len()
            ));
        }
        let pairs = self.expected.iter().zip(digests);
        match self
            .keys
            .iter()
            .zip(pairs)
            .find(|(_, (expected, got))| expected != got)
        {
            None => Ok(()),
            Some((key, _)) => Err(format!(
                "verification: the content of blob {key} is not what was stored"
            )),
        }
    }
}
