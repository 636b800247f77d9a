//! What a worker must have seen: sums and digests computed by the orchestrator from the dataset
//! alone, so that a worker that skipped work, read something else or lies is found out.

use std::collections::HashMap;

use sqlitmus_core::dataset::{Dataset, consume, digest};
use sqlitmus_core::keys::{KeyWalk, shuffle};
use sqlitmus_core::rows::{Rows, UserSums};
use sqlitmus_engines::Content;

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
    /// Generates or reads every blob once; some seconds for a gigabyte.
    ///
    /// # Errors
    /// Content that comes from files cannot be read.
    pub fn new(content: &dyn Content) -> std::io::Result<Self> {
        let mut buffer = Vec::new();
        let mut sums = Self {
            sums: Vec::new(),
            value_bytes: Vec::new(),
        };
        for key in 1..=content.count() {
            content.fill(key, &mut buffer)?;
            sums.sums.push(consume(&buffer));
            sums.value_bytes.push(buffer.len() as u32);
        }
        Ok(sums)
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

/// What is known of a dataset's rows.
#[derive(Debug)]
pub struct RowFacts {
    /// Rows in each table.
    pub count: u64,
    /// Sum of `user.c1` before any update.
    pub c1_sum: i64,
    /// What reading rows must add up to, before any update.
    pub sums: UserSums,
}

impl RowFacts {
    /// Makes every row once.
    #[must_use]
    pub fn new(dataset: &Dataset) -> Self {
        let rows = Rows::new(dataset);
        Self {
            count: rows.count(),
            c1_sum: rows.c1_sum(),
            sums: UserSums::new(&rows),
        }
    }

    /// Whether the sum of `user.c1` is what so many updates by one make it.
    ///
    /// # Errors
    /// Says by how many it is not.
    pub fn check_c1_sum(&self, c1_sum: i64, updates: u64) -> Result<(), String> {
        let counted = c1_sum.wrapping_sub(self.c1_sum);
        if counted == updates.cast_signed() {
            return Ok(());
        }
        Err(format!(
            "verification: {updates} updates were acknowledged, and the rows have counted {counted}"
        ))
    }
}

/// What is known of a directory tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TreeFacts {
    /// Entries, without the top.
    pub entries: u64,
    /// Sum of [`sqlitmus_core::generated_tree::consume_entry`] over all of them, wrapping.
    pub consumed: u64,
}

/// Which generation the keys of a store have, as far as this run has written them; for rows, how
/// many were updated or imported.
#[derive(Debug, Clone, Default)]
pub struct Written {
    generations: HashMap<u64, u64>,
    updates: u64,
    imported: Option<u64>,
}

impl Written {
    /// Notes that the keys of a span were written.
    pub fn note(&mut self, walk: &KeyWalk, span: &Span, generation: u64) {
        for key in walk.span(span.position, span.operations) {
            self.generations.insert(key, generation);
        }
    }

    /// Notes updates of rows.
    pub fn note_updates(&mut self, updates: u64) {
        self.updates += updates;
    }

    /// Notes an import, which has emptied the table before.
    pub fn note_import(&mut self, rows: u64) {
        self.imported = Some(rows);
    }

    /// Updates of rows.
    #[must_use]
    pub fn updates(&self) -> u64 {
        self.updates
    }

    /// Rows that the last import has left; `None` if there was none.
    #[must_use]
    pub fn imported(&self) -> Option<u64> {
        self.imported
    }

    /// Takes over what was written later.
    pub fn then(&mut self, later: &Self) {
        self.generations.extend(&later.generations);
        self.updates += later.updates;
        self.imported = later.imported.or(self.imported);
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
    /// Chooses keys by a seed: of those written if any were, else of all, which hold what their store
    /// was filled with.
    ///
    /// # Errors
    /// Content that comes from files cannot be read any more.
    pub fn choose(
        dataset: &Dataset,
        first: &dyn Content,
        written: &Written,
        seed: u64,
    ) -> std::io::Result<Self> {
        let mut keys = written.keys();
        if keys.is_empty() {
            keys = (1..=dataset.count).collect();
        }
        shuffle(&mut keys, seed);
        keys.truncate(VERIFIED_KEYS);
        let mut buffer = Vec::new();
        let mut expected = Vec::with_capacity(keys.len());
        for key in &keys {
            match written.generation(*key) {
                Some(generation) => dataset.fill(*key, generation, &mut buffer),
                None => first.fill(*key, &mut buffer)?,
            }
            expected.push(digest(&buffer));
        }
        Ok(Self { keys, expected })
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

#[cfg(test)]
mod tests {
    use super::*;
    use sqlitmus_core::dataset::SizeDistribution;

    #[test]
    fn acknowledged_updates_must_be_in_the_rows() {
        let facts = RowFacts::new(&Dataset {
            count: 10,
            size: SizeDistribution::Fixed(5),
            compressibility: 0.0,
            seed: 1,
        });
        let mut written = Written::default();
        written.note_updates(3);
        let mut later = Written::default();
        later.note_updates(4);
        written.then(&later);
        assert_eq!(
            facts.check_c1_sum(facts.c1_sum + 7, written.updates()),
            Ok(())
        );
        let lost = facts.check_c1_sum(facts.c1_sum + 6, written.updates());
        assert!(lost.expect_err("one is lost").contains("7 updates"));
    }

    #[test]
    fn the_last_import_counts() {
        let mut written = Written::default();
        assert_eq!(written.imported(), None);
        written.note_import(5);
        written.then(&Written::default());
        assert_eq!(written.imported(), Some(5));
        let mut later = Written::default();
        later.note_import(2);
        written.then(&later);
        assert_eq!(written.imported(), Some(2));
    }
}
