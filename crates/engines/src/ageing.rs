//! Making a store older: every blob is replaced once by its next generation, in batches and in random order, as
//! [`sqlitmus_core::storage_age`] says. What that takes is timed by the caller, batch by batch.

use std::io;
use std::ops::Range;

use sqlitmus_core::dataset::Dataset;
use sqlitmus_core::storage_age::{BATCH, History};

use crate::engine::{Content, EngineError, Session, Writer};

/// Batches after which a store that nobody times settles, so that its journal stays small.
const BATCHES_UNTIL_SETTLED: usize = 10;

/// The replacements of one generation, batch by batch.
pub struct Replacements<'a> {
    history: History<'a>,
    generation: u64,
    order: Vec<u32>,
    next: usize,
    bytes: Vec<u8>,
    entries: Vec<Entry>,
}

struct Entry {
    key: u64,
    content: Range<usize>,
    is_removed_first: bool,
}

impl<'a> Replacements<'a> {
    /// All replacements that make the objects of a dataset this generation.
    #[must_use]
    pub fn of(dataset: &'a Dataset, generation: u64) -> Self {
        let history = History::of(dataset);
        Self {
            history,
            generation,
            order: history.order(generation),
            next: 0,
            bytes: Vec::new(),
            entries: Vec::new(),
        }
    }

    /// Makes the content of the next batch; says whether there is one.
    pub fn make_batch(&mut self) -> bool {
        self.bytes.clear();
        self.entries.clear();
        let end = (self.next + BATCH).min(self.order.len());
        let mut blob = Vec::new();
        for key in &self.order[self.next..end] {
            let key = u64::from(*key);
            self.history.fill(key, self.generation, &mut blob);
            let start = self.bytes.len();
            self.bytes.extend_from_slice(&blob);
            self.entries.push(Entry {
                key,
                content: start..self.bytes.len(),
                is_removed_first: self.history.is_removed_first(key, self.generation),
            });
        }
        self.next = end;
        !self.entries.is_empty()
    }

    /// Writes the batch that was made, and commits it.
    ///
    /// # Errors
    /// The engine refused, or a blob that is to be removed is not there.
    pub fn write_batch(&self, writer: &mut dyn Writer) -> Result<(), EngineError> {
        let again = || self.entries.iter().filter(|entry| entry.is_removed_first);
        writer.begin()?;
        for entry in again() {
            if !writer.delete(entry.key)? {
                return Err(EngineError::Unavailable(format!(
                    "blob {} was to be removed and is not there",
                    entry.key
                )));
            }
        }
        for entry in self.entries.iter().filter(|entry| !entry.is_removed_first) {
            writer.put(entry.key, &self.bytes[entry.content.clone()])?;
        }
        for entry in again() {
            writer.insert(entry.key, &self.bytes[entry.content.clone()])?;
        }
        writer.commit()
    }
}

/// Brings a store that was just filled to an age, untimed; `goes_on` is asked before every batch.
///
/// # Errors
/// The engine does not write, or refused; [`io::ErrorKind::Interrupted`] if it was not to go on.
pub fn bring_to_age(
    session: &mut dyn Session,
    dataset: &Dataset,
    age: u32,
    goes_on: &dyn Fn() -> bool,
) -> Result<(), EngineError> {
    for generation in 1..=u64::from(age) {
        let mut replacements = Replacements::of(dataset, generation);
        let mut batches = 0;
        while replacements.make_batch() {
            let Some(writer) = session.writer() else {
                let reason = "the engine does not write, so its stores do not age";
                return Err(EngineError::Unavailable(reason.to_owned()));
            };
            if !goes_on() {
                let interrupted = io::Error::from(io::ErrorKind::Interrupted);
                return Err(EngineError::io("age", "a store".as_ref())(interrupted));
            }
            replacements.write_batch(writer)?;
            batches += 1;
            if batches % BATCHES_UNTIL_SETTLED == 0 {
                writer.settle()?;
            }
        }
        if let Some(writer) = session.writer() {
            writer.settle()?;
        }
    }
    Ok(())
}

/// Fails with the first blob of a store that is not what its last replacement has made it, or if there are
/// others. `is_left` says which keys are there.
///
/// # Errors
/// [`EngineError::Damaged`], or the store cannot be read. Returns the sum of
/// [`sqlitmus_core::dataset::consume`] over all blobs.
pub fn verify_age(
    session: &mut dyn Session,
    dataset: &Dataset,
    age: u32,
    is_left: &dyn Fn(u64) -> bool,
) -> Result<u64, EngineError> {
    let history = History::of(dataset);
    let damaged = |reason: String| EngineError::Damaged {
        path: "the aged store".into(),
        reason,
    };
    let mut keys = Vec::new();
    session.keys(&mut |key| keys.push(key))?;
    let expected: Vec<u64> = (1..=dataset.count).filter(|key| is_left(*key)).collect();
    if keys != expected {
        return Err(damaged(format!(
            "{} blobs instead of {}, or others",
            keys.len(),
            expected.len()
        )));
    }
    let (mut buffer, mut sum) = (Vec::new(), 0u64);
    for key in expected {
        history.fill(key, u64::from(age), &mut buffer);
        let mut is_right = false;
        session.read(key, &mut |bytes| {
            is_right = bytes == buffer.as_slice();
            sum = sum.wrapping_add(sqlitmus_core::dataset::consume(bytes));
        })?;
        if !is_right {
            return Err(damaged(format!("blob {key} is not what was written last")));
        }
    }
    Ok(sum)
}

/// What a store of an age above 0 holds.
#[derive(Debug, Clone)]
pub struct AgedContent {
    /// The objects.
    pub dataset: Dataset,
    /// How often each has been replaced.
    pub age: u32,
}

impl Content for AgedContent {
    fn count(&self) -> u64 {
        self.dataset.count
    }

    fn fill(&self, key: u64, buffer: &mut Vec<u8>) -> io::Result<()> {
        History::of(&self.dataset).fill(key, u64::from(self.age), buffer);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sqlitmus_core::dataset::SizeDistribution;
    use sqlitmus_core::settings::Settings;

    fn dataset() -> Dataset {
        Dataset {
            count: 230,
            size: SizeDistribution::Uniform(0, 9000),
            compressibility: 0.0,
            seed: 11,
        }
    }

    #[test]
    fn every_writing_engine_ages_and_holds_what_was_written_last() {
        let dataset = dataset();
        for name in ["files", "sqlite", "hybrid", "external", "packfile"] {
            let place = tempfile::tempdir().expect("a folder");
            let engine = crate::find(name).expect("known");
            let settings = Settings::default()
                .resolve(name, engine.settings())
                .expect("defaults");
            let store = engine
                .create(&place.path().join("store"), &settings)
                .expect("created");
            store.load(&dataset, &mut |_| {}).expect("filled");
            let mut session = store.session().expect("a session");
            bring_to_age(session.as_mut(), &dataset, 3, &|| true).expect(name);
            verify_age(session.as_mut(), &dataset, 3, &|_| true).expect(name);
            let older = verify_age(session.as_mut(), &dataset, 2, &|_| true);
            assert!(older.is_err(), "{name} does not hold what was there before");
            let writer = session.writer().expect("writes");
            writer.begin().expect("begun");
            assert!(writer.delete(7).expect("removed"));
            writer.commit().expect("committed");
            assert!(verify_age(session.as_mut(), &dataset, 3, &|_| true).is_err());
            verify_age(session.as_mut(), &dataset, 3, &|key| key != 7).expect(name);
        }
    }

    #[test]
    fn what_cannot_write_does_not_age() {
        let dataset = dataset();
        let place = tempfile::tempdir().expect("a folder");
        let engine = crate::find("null").expect("known");
        let store = engine
            .create(&place.path().join("store"), &Settings::default())
            .expect("created");
        let mut session = store.session().expect("a session");
        if session.writer().is_none() {
            assert!(bring_to_age(session.as_mut(), &dataset, 1, &|| true).is_err());
        }
    }
}
