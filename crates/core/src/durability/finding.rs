//! What a cut did to one store: every key compared with what was acknowledged before it.

use serde::{Deserialize, Serialize};

use super::content::{Batches, Found};

/// What was found under one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyFinding {
    /// The key.
    pub key: u64,
    /// What it holds.
    pub found: Found,
}

/// What was found of a store, as the process that recovered it says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreFinding {
    /// Why the store did not open, if it did not.
    pub open_error: Option<String>,
    /// The first error in reading a key.
    pub read_error: Option<String>,
    /// All keys; none if the store did not open.
    pub keys: Vec<KeyFinding>,
    /// What the store's own check says is wrong with it (`PRAGMA integrity_check`); `None` if it has
    /// no check or nothing is wrong.
    pub integrity_error: Option<String>,
    /// Files that are left over: temporary names, or what should be gone.
    pub stray_files: u64,
    /// Time to open and read, nanoseconds: what recovery costs the engine.
    pub recover_ns: u64,
}

/// What a cut did, in numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// Commits acknowledged before the cut, without the filling.
    pub acknowledged_commits: u64,
    /// Acknowledged commits of which at least one blob is older than they are, or gone.
    pub lost_commits: u64,
    /// The first of them.
    pub first_lost_commit: Option<u64>,
    /// Acknowledged blobs that are there in an older generation.
    pub stale_blobs: u64,
    /// Blobs that nobody was writing when the power went, and that are mixed or broken.
    pub torn_blobs: u64,
    /// Likewise without bytes, or all zeros.
    pub empty_blobs: u64,
    /// Likewise gone.
    pub missing_blobs: u64,
    /// Likewise, but the store gives an error.
    pub unreadable_blobs: u64,
    /// Blobs that were being written and are neither old nor new.
    pub destroyed_in_flight_blobs: u64,
    /// Batches of which some blobs are there and some are not.
    pub half_applied_commits: u64,
}

impl Finding {
    /// Blobs that are neither what was acknowledged nor anything older.
    #[must_use]
    pub fn damaged_blobs(&self) -> u64 {
        self.torn_blobs
            + self.empty_blobs
            + self.missing_blobs
            + self.unreadable_blobs
            + self.destroyed_in_flight_blobs
    }
}

/// Compares what was found with what was acknowledged.
///
/// `acknowledged` commits were acknowledged before the cut began. `begun` is the last batch that can
/// have begun: its blobs, and those of every batch between the two, may be old or new, and only with
/// an engine that replaces nothing atomically neither of them.
///
/// A batch whose blobs were all overwritten later leaves no trace, so `lost_commits` is the number
/// that is proved to be lost, not more.
#[must_use]
pub fn find(batches: &Batches, acknowledged: u64, begun: u64, store: &StoreFinding) -> Finding {
    let mut finding = Finding {
        acknowledged_commits: acknowledged,
        ..Finding::default()
    };
    if store.open_error.is_some() {
        finding.lost_commits = acknowledged;
        finding.first_lost_commit = (acknowledged > 0).then_some(1);
        finding.unreadable_blobs = batches.keys;
        return finding;
    }
    let found = |key: u64| {
        let finding = store.keys.iter().find(|finding| finding.key == key);
        finding.map_or(Found::Missing, |finding| finding.found)
    };
    let found: Vec<Found> = (1..=batches.keys).map(found).collect();
    let history = History::new(batches, acknowledged, begun.max(acknowledged));
    for (index, found) in found.iter().enumerate() {
        count_key(&mut finding, &history, index, *found);
    }
    count_batches(&mut finding, batches, &history, &found);
    finding
}

/// Who wrote what when, by key (from 0).
struct History {
    acknowledged: u64,
    /// The last acknowledged batch of each key; 0 is the filling.
    last: Vec<u64>,
    /// Whether a batch that is not acknowledged can have written it.
    in_flight: Vec<bool>,
    /// The keys of each batch from 1 to the last that can have begun.
    keys: Vec<Vec<usize>>,
}

impl History {
    fn new(batches: &Batches, acknowledged: u64, begun: u64) -> Self {
        let mut history = Self {
            acknowledged,
            last: vec![0; batches.keys as usize],
            in_flight: vec![false; batches.keys as usize],
            keys: Vec::new(),
        };
        for batch in 1..=begun {
            let keys: Vec<usize> = batches
                .keys_of(batch)
                .into_iter()
                .map(|key| key as usize - 1)
                .collect();
            for key in &keys {
                if batch <= acknowledged {
                    history.last[*key] = batch;
                } else {
                    history.in_flight[*key] = true;
                }
            }
            history.keys.push(keys);
        }
        history
    }
}

fn count_key(finding: &mut Finding, history: &History, index: usize, found: Found) {
    if let Found::Whole(batch) = found {
        finding.stale_blobs += u64::from(batch < history.last[index]);
        return;
    }
    let counter = if history.in_flight[index] {
        &mut finding.destroyed_in_flight_blobs
    } else {
        match found {
            Found::Empty | Found::Zeros => &mut finding.empty_blobs,
            Found::Missing => &mut finding.missing_blobs,
            Found::Unreadable => &mut finding.unreadable_blobs,
            _ => &mut finding.torn_blobs,
        }
    };
    *counter += 1;
}

fn count_batches(finding: &mut Finding, batches: &Batches, history: &History, found: &[Found]) {
    for (batch, keys) in (1..).zip(&history.keys) {
        let is_there = |key: usize| found[key].batch().is_some_and(|shown| shown >= batch);
        // A damaged blob has lost its last acknowledged content, unless it was being overwritten.
        let is_lost = |key: usize| match found[key] {
            Found::Whole(shown) => shown < batch,
            _ => history.last[key] == batch && !history.in_flight[key],
        };
        if batch <= history.acknowledged && keys.iter().any(|key| is_lost(*key)) {
            finding.lost_commits += 1;
            finding.first_lost_commit.get_or_insert(batch);
        }
        let there = keys.iter().filter(|key| is_there(**key)).count();
        if there > 0 && (there as u64) < batches.blobs.min(batches.keys) {
            finding.half_applied_commits += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BATCHES: Batches = Batches {
        keys: 6,
        blobs: 2,
        seed: 11,
    };

    /// The store as it is right after a batch.
    fn state(batch: u64) -> StoreFinding {
        let mut keys = [0; 7];
        for earlier in 1..=batch {
            for key in BATCHES.keys_of(earlier) {
                keys[key as usize] = earlier;
            }
        }
        let keys = (1..=6).map(|key| KeyFinding {
            key,
            found: Found::Whole(keys[key as usize]),
        });
        StoreFinding {
            keys: keys.collect(),
            ..StoreFinding::default()
        }
    }

    fn put(store: &mut StoreFinding, key: u64, found: Found) {
        store.keys[key as usize - 1].found = found;
    }

    #[test]
    fn what_was_acknowledged_or_was_being_written_is_no_loss() {
        for found in [state(20), state(21)] {
            let finding = find(&BATCHES, 20, 21, &found);
            assert_eq!(finding.acknowledged_commits, 20);
            assert_eq!((finding.lost_commits, finding.damaged_blobs()), (0, 0));
            assert_eq!(finding.half_applied_commits, 0);
        }
    }

    #[test]
    fn a_store_that_is_some_commits_old_has_lost_just_those() {
        let finding = find(&BATCHES, 20, 21, &state(17));
        assert_eq!(finding.lost_commits, 3);
        assert_eq!(finding.first_lost_commit, Some(18));
        assert_eq!(
            (finding.half_applied_commits, finding.damaged_blobs()),
            (0, 0)
        );
        let all = find(&BATCHES, 20, 21, &state(0));
        assert_eq!((all.lost_commits, all.first_lost_commit), (20, Some(1)));
    }

    #[test]
    fn half_a_batch_is_seen_whether_or_not_it_was_acknowledged() {
        let keys = BATCHES.keys_of(21);
        let mut store = state(20);
        put(&mut store, keys[0], Found::Whole(21));
        let finding = find(&BATCHES, 20, 21, &store);
        assert_eq!((finding.half_applied_commits, finding.lost_commits), (1, 0));
        let finding = find(&BATCHES, 21, 22, &store);
        assert_eq!((finding.half_applied_commits, finding.lost_commits), (1, 1));
    }

    #[test]
    fn damage_is_counted_by_kind_and_by_whether_it_was_being_written() {
        let in_flight = BATCHES.keys_of(21);
        let calm: Vec<u64> = (1..=6).filter(|key| !in_flight.contains(key)).collect();
        let mut store = state(20);
        put(&mut store, calm[0], Found::Empty);
        put(&mut store, calm[1], Found::Mixed);
        put(&mut store, calm[2], Found::Missing);
        put(&mut store, calm[3], Found::Unreadable);
        put(&mut store, in_flight[0], Found::Empty);
        let finding = find(&BATCHES, 20, 21, &store);
        let kinds = [
            finding.empty_blobs,
            finding.torn_blobs,
            finding.missing_blobs,
            finding.unreadable_blobs,
            finding.destroyed_in_flight_blobs,
        ];
        assert_eq!(kinds, [1; 5]);
        assert!(finding.lost_commits >= 2, "{finding:?}");
        // With nothing in flight the fifth is a loss as well.
        let finding = find(&BATCHES, 20, 20, &store);
        assert_eq!(
            (finding.empty_blobs, finding.destroyed_in_flight_blobs),
            (2, 0)
        );
    }

    #[test]
    fn a_store_that_does_not_open_has_lost_everything() {
        let store = StoreFinding {
            open_error: Some("file is not a database".to_owned()),
            ..StoreFinding::default()
        };
        let finding = find(&BATCHES, 9, 10, &store);
        assert_eq!((finding.lost_commits, finding.unreadable_blobs), (9, 6));
    }
}
