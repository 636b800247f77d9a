//! For engine authors: one suite that every engine passes, with every interesting set of settings.
//!
//! [`check`] panics at the first promise of the seam that an engine breaks, and says which. What
//! an engine promises beyond the seam (its file format, its system calls, what survives a crash)
//! is left to tests of its own.

mod content;
mod sharing;

use std::fs;
use std::path::{Path, PathBuf};

use sqlitmus_core::case::Durability;
use sqlitmus_core::dataset::{Dataset, SizeDistribution};
use sqlitmus_core::settings::Settings;

use crate::engine::{Engine, EngineError, Session, Store, Writer};
use content::blob;

/// Checks an engine with some settings (those that are not given take their defaults), in an
/// existing, empty directory, where it leaves its stores behind.
///
/// # Panics
/// If the engine breaks a promise.
pub fn check(engine: &dyn Engine, settings: &Settings, place: &Path) {
    let settings = settings
        .resolve(engine.name(), engine.settings())
        .expect("the settings to check are valid");
    engine
        .check(&settings)
        .expect("the settings to check do not contradict each other");
    let trial = Trial {
        engine,
        settings,
        place,
    };
    trial.bad_settings_are_refused();
    trial.a_missing_store_is_not_opened();
    trial.an_existing_path_is_not_overwritten();
    trial.settings_are_read_back();
    if !trial.engine.capabilities(&trial.settings).keeps_content {
        trial.what_keeps_nothing_still_answers();
        return;
    }
    trial.a_loaded_dataset_is_there();
    trial.readers_in_threads_do_not_disturb_each_other();
    if !trial.engine.capabilities(&trial.settings).writes {
        return;
    }
    trial.blobs_come_back();
    trial.missing_keys_are_missing();
    trial.blobs_are_overwritten();
    trial.blobs_are_deleted();
    trial.keys_are_in_order();
    trial.batches_are_complete();
    trial.an_abandoned_batch_blocks_nobody();
    trial.a_session_sees_what_another_has_committed();
    if trial.engine.capabilities(&trial.settings).persistent {
        trial.a_store_is_reopened();
        trial.committed_data_has_left_the_process();
        trial.rubbish_is_not_opened();
    }
}

/// One engine with settings, and where to try it.
struct Trial<'a> {
    engine: &'a dyn Engine,
    settings: Settings,
    place: &'a Path,
}

impl Trial<'_> {
    fn path(&self, name: &str) -> PathBuf {
        self.place.join(name)
    }

    fn create(&self, name: &str) -> Box<dyn Store> {
        let created = self.engine.create(&self.path(name), &self.settings);
        created.unwrap_or_else(|error| panic!("cannot create {name}: {error:?} ({self})"))
    }

    fn open(&self, name: &str, settings: &Settings) -> Box<dyn Store> {
        let opened = self.engine.open(&self.path(name), settings);
        opened.unwrap_or_else(|error| panic!("cannot open {name}: {error:?} ({self})"))
    }

    fn session(&self, store: &dyn Store) -> Box<dyn Session> {
        let session = store.session();
        session.unwrap_or_else(|error| panic!("no session: {error:?} ({self})"))
    }

    /// Writes a batch and commits it.
    fn write(&self, session: &mut dyn Session, batch: impl FnOnce(&mut dyn Writer)) {
        let writer = session
            .writer()
            .unwrap_or_else(|| panic!("the engine says it writes, but offers no writer ({self})"));
        self.done("begin", writer.begin());
        batch(writer);
        self.done("commit", writer.commit());
    }

    /// Stores blobs in one batch.
    fn put<'b>(
        &self,
        session: &mut dyn Session,
        blobs: impl IntoIterator<Item = (u64, &'b Vec<u8>)>,
    ) {
        self.write(session, |writer| {
            for (key, value) in blobs {
                self.done("put", writer.put(key, value));
            }
        });
    }

    /// The blob under a key, which is there.
    fn read(&self, session: &mut dyn Session, key: u64) -> Vec<u8> {
        let mut deliveries = Vec::new();
        let outcome = session.read(key, &mut |bytes| deliveries.push(bytes.to_vec()));
        self.done(&format!("read of blob {key}"), outcome);
        assert_eq!(deliveries.len(), 1, "blob {key} is delivered once ({self})");
        deliveries.remove(0)
    }

    fn expect_blob(&self, session: &mut dyn Session, key: u64, expected: &[u8]) {
        let got = self.read(session, key);
        // Not assert_eq: nobody wants 8 MiB of bytes in a message.
        assert!(
            got == expected,
            "blob {key} comes back as it was stored: {} bytes, not {} ({self})",
            got.len(),
            expected.len()
        );
    }

    fn expect_missing(&self, session: &mut dyn Session, key: u64) {
        let outcome = session.read(key, &mut |_| {
            panic!("consume is called for blob {key}, which is missing ({self})")
        });
        assert!(
            matches!(outcome, Err(EngineError::Missing { key: missing, .. }) if missing == key),
            "blob {key} is missing, not {outcome:?} ({self})"
        );
    }

    fn expect_keys(&self, session: &mut dyn Session, expected: &[u64]) {
        let mut keys = Vec::new();
        let outcome = session.keys(&mut |key| keys.push(key));
        self.done("keys", outcome);
        assert_eq!(keys, expected, "all keys, in ascending order ({self})");
    }

    fn done<T>(&self, what: &str, outcome: Result<T, EngineError>) -> T {
        outcome.unwrap_or_else(|error| panic!("{what}: {error:?} ({self})"))
    }

    fn bad_settings_are_refused(&self) {
        let specifications = self.engine.settings();
        let names = specifications.iter().map(|known| known.name);
        for name in names.chain(["no-such-setting"]) {
            let mut bad = self.settings.clone();
            bad.set(name, "no-such-value");
            let error = bad
                .resolve(self.engine.name(), specifications)
                .expect_err("a bad setting is refused");
            assert!(!error.hint().is_empty(), "{error} has a hint ({self})");
            let path = self.path("bad-settings");
            assert!(
                matches!(
                    self.engine.create(&path, &bad),
                    Err(EngineError::Settings(_))
                ),
                "create refuses {name}=no-such-value ({self})"
            );
            assert!(!path.exists(), "a refused create leaves nothing ({self})");
        }
    }

    fn a_missing_store_is_not_opened(&self) {
        let before = listing(self.place);
        for name in ["missing", "missing/in-missing"] {
            let opened = self.engine.open(&self.path(name), &self.settings);
            let outcome = opened.map(|_| "a store");
            assert!(
                matches!(outcome, Err(EngineError::NoStore(_))),
                "a missing store is NoStore, not {outcome:?} ({self})"
            );
        }
        let after = listing(self.place);
        assert_eq!(before, after, "opening creates nothing ({self})");
    }

    fn an_existing_path_is_not_overwritten(&self) {
        let file = self.path("existing-file");
        let directory = self.path("existing-directory");
        fs::write(&file, b"precious").expect("written");
        fs::create_dir(&directory).expect("made");
        fs::write(directory.join("000001"), b"precious").expect("written");
        let before = listing(self.place);
        for path in [&file, &directory] {
            let outcome = self.engine.create(path, &self.settings).map(|_| "a store");
            assert!(
                matches!(outcome, Err(EngineError::Exists(_))),
                "create refuses an existing path, not {outcome:?} ({self})"
            );
        }
        assert_eq!(before, listing(self.place), "nothing is touched ({self})");
        for path in [file, directory.join("000001")] {
            let content = fs::read(path).expect("still there");
            assert_eq!(content, b"precious", "nothing is touched ({self})");
        }
    }

    fn settings_are_read_back(&self) {
        let store = self.create("read-back");
        let mut session = self.session(&*store);
        let back = self.done("read_back", session.read_back());
        for (name, asked) in self.settings.iter() {
            let got = back.get(name).map_or("nothing", String::as_str);
            assert_eq!(got, asked, "setting {name} is read back ({self})");
        }
    }

    fn what_keeps_nothing_still_answers(&self) {
        let store = self.create("keeps-nothing");
        self.done("load", store.load(&small_dataset(), &mut |_| ()));
        let mut session = self.session(&*store);
        let _ = self.read(&mut *session, 1);
        if self.engine.capabilities(&self.settings).writes {
            self.put(&mut *session, [(1, &blob(1, 100))]);
            let writer = session.writer().expect("it wrote just now");
            self.done("settle", writer.settle());
        }
    }

    fn a_loaded_dataset_is_there(&self) {
        let dataset = small_dataset();
        let store = self.create("loaded");
        let mut stored = 0;
        let mut progress = |so_far| {
            assert!(so_far >= stored, "progress goes forward ({self})");
            stored = so_far;
        };
        self.done("load", store.load(&dataset, &mut progress));
        assert!(
            stored <= dataset.count,
            "progress counts blobs that are there ({self})"
        );
        let mut session = self.session(&*store);
        let keys: Vec<u64> = (1..=dataset.count).collect();
        self.expect_keys(&mut *session, &keys);
        let mut scratch = Vec::new();
        for key in keys {
            let bytes = self.read(&mut *session, key);
            let generation = dataset.verify(key, &bytes, &mut scratch);
            assert_eq!(generation, Some(0), "blob {key} is verified ({self})");
        }
        self.expect_missing(&mut *session, dataset.count + 1);
    }

    fn a_store_is_reopened(&self) {
        let name = "reopened";
        let (kept, new) = (blob(1, 10_000), blob(2, 20_000));
        let store = self.create(name);
        let mut session = self.session(&*store);
        self.put(&mut *session, [(1, &kept), (2, &kept), (3, &kept)]);
        self.write(&mut *session, |writer| {
            self.done("put", writer.put(2, &new));
            assert!(self.done("delete", writer.delete(3)), "there was one");
        });
        drop((session, store));

        let store = self.open(name, &self.settings);
        let mut session = self.session(&*store);
        self.expect_keys(&mut *session, &[1, 2]);
        self.expect_blob(&mut *session, 1, &kept);
        self.expect_blob(&mut *session, 2, &new);
        self.expect_missing(&mut *session, 3);
        self.put(&mut *session, [(4, &new)]);
        let writer = session.writer().expect("it wrote just now");
        self.done("settle", writer.settle());
        drop((session, store));

        // Settings that are not stored may differ from one opening to the next.
        let stored = self.settings.stored(self.engine.settings());
        let store = self.open(name, &stored);
        let mut session = self.session(&*store);
        self.expect_keys(&mut *session, &[1, 2, 4]);
        self.expect_blob(&mut *session, 4, &new);
    }

    /// What is seen through a second store on the same place would also be there if the first
    /// one's process had died.
    fn committed_data_has_left_the_process(&self) {
        if self.engine.durability(&self.settings) < Durability::ProcessCrash {
            return;
        }
        let name = "left-the-process";
        let value = blob(5, 10_000);
        let store = self.create(name);
        let mut session = self.session(&*store);
        self.put(&mut *session, [(1, &value)]);
        let second = self.open(name, &self.settings);
        self.expect_blob(&mut *self.session(&*second), 1, &value);
    }

    fn rubbish_is_not_opened(&self) {
        let path = self.path("rubbish");
        let rubbish = blob(9, 50_000);
        fs::write(&path, &rubbish).expect("written");
        let outcome = self
            .engine
            .open(&path, &self.settings)
            .and_then(|store| store.session())
            .and_then(|mut session| session.read(1, &mut |_| ()));
        assert!(outcome.is_err(), "rubbish is not opened ({self})");
        let after = fs::read(&path).expect("still there");
        assert!(after == rubbish, "rubbish is not touched ({self})");
    }
}

impl std::fmt::Display for Trial<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            formatter,
            "engine {}, {}",
            self.engine.name(),
            self.settings
        )
    }
}

fn small_dataset() -> Dataset {
    Dataset {
        count: 250,
        size: SizeDistribution::Uniform(8, 20_000),
        compressibility: 0.0,
        seed: 11,
    }
}

/// Names in a directory.
fn listing(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).expect("the place of the trial is a directory");
    let mut names: Vec<PathBuf> = entries
        .map(|entry| entry.expect("an entry").path())
        .collect();
    names.sort_unstable();
    names
}
