//! What a worker must have seen: sums and digests computed by the orchestrator from the dataset
//! alone, so that a worker that skipped work, read something else or lies is found out.

use std::collections::HashMap;

use sqlitmus_core::dataset::{Dataset, consume, digest};
use sqlitmus_core::keys::{KeyWalk, shuffle};

use crate::protocol::Span;

/// Keys that are digested at the end of every trial, at the most; the whole store is verified
/// after a group's last round.
const VERIFIED_KEYS: usize = 256;

/// Sums of the untouched content (generation 0) of every key.
pub struct ContentSums {
    sums: Vec<u64>,
}

impl ContentSums {
    /// Generates every blob once; some seconds for a gigabyte.
    #[must_use]
    pub fn new(dataset: &Dataset) -> Self {
        let mut buffer = Vec::new();
        let sums = (1..=dataset.count).map(|key| {
            dataset.fill(key, 0, &mut buffer);
            consume(&buffer)
        });
        Self {
            sums: sums.collect(),
        }
    }

    /// What reading the keys of a span must add up to.
    #[must_use]
    pub fn of(&self, walk: &KeyWalk, span: &Span) -> u64 {
        walk.span(span.position, span.operations)
            .map(|key| self.sums[key as usize - 1])
            .fold(0, u64::wrapping_add)
    }
}

/// Which generation of its keys a writing trial has left behind.
#[derive(Default)]
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

    fn keys(&self) -> Vec<u64> {
        let mut keys: Vec<u64> = self.generations.keys().copied().collect();
        keys.sort_unstable();
        keys
    }

    fn generation(&self, key: u64) -> u64 {
        self.generations.get(&key).copied().unwrap_or(0)
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
            dataset.fill(*key, written.generation(*key), &mut buffer);
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
