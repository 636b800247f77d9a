//! The life of a store as a workload: it is filled, grows old, is looked at at certain ages, read back whole,
//! opened as a program that starts opens it, copied, cleaned up, emptied and removed. One slice is one life, of
//! a store of its own, so that as many stores are lived through as there are rounds.
//!
//! What is timed stands in [`sqlitmus_core::lifecycle`]. Content is made before the clock starts, and all of it is
//! verified before anything is removed. What only a database has to do is in [`database`].

mod database;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use sqlitmus_core::case::{Case, Workload};
use sqlitmus_core::keys::Span;
use sqlitmus_core::latencies::Latencies;
use sqlitmus_core::lifecycle as names;
use sqlitmus_core::storage_age::{BATCH, History};
use sqlitmus_engines::ageing::{Replacements, verify_age};
use sqlitmus_engines::workloads::{Meter, Preparation, Running, Stretch};
use sqlitmus_engines::{Engine, EngineError, ReadBack, Session, footprint};

use crate::machine::extents;
use crate::machine::page_cache;
use crate::machine::path_suffix::with_suffix;

/// What the copies of a store are called, beside it.
const COPIES: [&str; 4] = ["-copy", "-into", "-backup", "-incremental"];

/// A prepared life.
pub(super) struct LifecycleTrial {
    engine: &'static dyn Engine,
    case: Case,
    ages: Vec<u32>,
    removed_percent: u32,
    /// Of the life's own store.
    path: PathBuf,
    read_back: ReadBack,
}

/// A life under way.
struct Life<'a> {
    trial: &'a LifecycleTrial,
    counters: BTreeMap<String, u64>,
    /// Whether the filesystem tells where files lie.
    tells_extents: bool,
}

impl LifecycleTrial {
    pub(super) fn prepare(preparation: &Preparation<'_>) -> Result<Self, EngineError> {
        let case = preparation.case;
        let Workload::Lifecycle {
            ref ages,
            removed_percent,
        } = case.workload
        else {
            return Err(EngineError::Unavailable("this is no life".to_owned()));
        };
        let engine = sqlitmus_engines::find(&case.engine)
            .map_err(|error| EngineError::Unavailable(error.to_string()))?;
        let can = engine.capabilities(&case.settings);
        if !(can.persistent && can.writes && can.keeps_content) {
            let reason = format!("the stores of `{}` have no life on disk", engine.name());
            return Err(EngineError::Unavailable(reason));
        }
        let mut session = engine.open(preparation.store, &case.settings)?.session()?;
        let mut read_back = session.read_back()?;
        let extents = extents::refusal(preparation.store);
        read_back.insert(
            "extents".to_owned(),
            extents.unwrap_or_else(|| "counted".to_owned()),
        );
        Ok(Self {
            engine,
            case: case.clone(),
            ages: ages.clone(),
            removed_percent,
            path: with_suffix(preparation.store, ".lived"),
            read_back,
        })
    }

    /// Removes what a life that was cut short has left.
    fn clear(&self) -> Result<(), EngineError> {
        self.remove(&self.path)?;
        for copy in COPIES {
            self.remove(&with_suffix(&self.path, copy))?;
        }
        Ok(())
    }

    fn remove(&self, store: &Path) -> Result<(), EngineError> {
        let mut all = self.engine.companions(store);
        all.push(store.to_owned());
        for path in all {
            let removed = match std::fs::symlink_metadata(&path) {
                Ok(metadata) if metadata.is_dir() => std::fs::remove_dir_all(&path),
                Ok(_) => std::fs::remove_file(&path),
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
                Err(error) => Err(error),
            };
            match removed {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(EngineError::io("remove", &path)(error));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Files of a store that are there, the store itself first.
    fn parts(&self, store: &Path) -> Vec<PathBuf> {
        let companions = self.engine.companions(store).into_iter();
        let all = std::iter::once(store.to_owned()).chain(companions);
        all.filter(|path| path.exists()).collect()
    }

    fn session(&self, store: &Path) -> Result<Box<dyn Session>, EngineError> {
        self.engine.open(store, &self.case.settings)?.session()
    }

    fn oldest(&self) -> u32 {
        names::replacements(&self.ages) as u32
    }
}

impl Life<'_> {
    fn note(&mut self, name: impl Into<String>, value: u64) {
        self.counters.insert(name.into(), value);
    }

    fn synced(&self) -> Result<(), EngineError> {
        let path = &self.trial.path;
        File::open(".")
            .and_then(|file| page_cache::sync_filesystem(&file))
            .map_err(EngineError::io("sync the filesystem of", path))
    }

    /// Fills the store.
    fn load(&mut self) -> Result<(), EngineError> {
        let trial = self.trial;
        let settings = &trial.case.settings;
        self.synced()?;
        let start = Instant::now();
        let store = trial.engine.create(&trial.path, settings)?;
        store.load(&trial.case.dataset, &mut |_| {})?;
        drop(store);
        self.note(names::LOAD_NS, nanoseconds(start));
        self.synced()?;
        self.note(names::LOAD_SETTLED_NS, nanoseconds(start));
        Ok(())
    }

    /// Fills the store and brings it to its oldest age, looking at it on the way; returns the time of all
    /// replacements.
    fn grow_old(&mut self) -> Result<u64, EngineError> {
        let trial = self.trial;
        let mut total_ns = 0;
        for age in 0..=trial.oldest() {
            if age > 0 {
                let (write_ns, settle_ns) = self.replace_all(age)?;
                total_ns += write_ns;
                if trial.ages.contains(&age) {
                    self.note(names::at_age(age, names::WRITE_NS), write_ns);
                    self.note(names::at_age(age, names::SETTLE_NS), settle_ns);
                }
            }
            if trial.ages.contains(&age) {
                self.look(age)?;
            }
        }
        Ok(total_ns)
    }

    fn replace_all(&mut self, age: u32) -> Result<(u64, u64), EngineError> {
        let trial = self.trial;
        let mut session = trial.session(&trial.path)?;
        let mut replacements = Replacements::of(&trial.case.dataset, u64::from(age));
        let (mut write_ns, mut settle_ns) = (0, 0);
        while replacements.make_batch() {
            let Some(writer) = session.writer() else {
                return Err(EngineError::Unavailable(
                    "the engine does not write".to_owned(),
                ));
            };
            let start = Instant::now();
            replacements.write_batch(writer)?;
            write_ns += nanoseconds(start);
            // A log that is never emptied would be no database that is in use.
            let start = Instant::now();
            writer.settle()?;
            settle_ns += nanoseconds(start);
        }
        let start = Instant::now();
        drop(session);
        self.synced()?;
        Ok((write_ns, settle_ns + nanoseconds(start)))
    }

    /// What the store takes, and how it lies.
    fn look(&mut self, age: u32) -> Result<(), EngineError> {
        self.synced()?;
        let allocated = self.allocated(&self.trial.path)?;
        self.note(names::at_age(age, names::ALLOCATED_BYTES), allocated.0);
        self.note(names::at_age(age, names::INODES), allocated.1);
        if self.tells_extents {
            let mut all = extents::Extents::default();
            for part in self.trial.parts(&self.trial.path) {
                let of_part = extents::count(&part);
                let of_part =
                    of_part.map_err(EngineError::io("count the extents of", &self.trial.path))?;
                all.files += of_part.files;
                all.extents += of_part.extents;
            }
            self.note(names::at_age(age, names::EXTENT_FILES), all.files);
            self.note(names::at_age(age, names::EXTENTS), all.extents);
        }
        if let Some(database) = database::of(self.trial.engine, &self.trial.path) {
            let pages = database::pages(&database)?;
            self.note(names::at_age(age, names::PAGES), pages.content);
            self.note(names::at_age(age, names::PAGE_RUNS), pages.runs);
            self.note(names::at_age(age, names::FREE_PAGES), pages.free);
        }
        Ok(())
    }

    /// Bytes that a store takes on disk, and its files and folders.
    fn allocated(&self, store: &Path) -> Result<(u64, u64), EngineError> {
        let companions = self.trial.engine.companions(store);
        let found = footprint::measure(store, &companions, 0)?;
        Ok((found.allocated_bytes, found.files + found.directories))
    }

    /// Opens the store and reads one blob, as a program that starts does.
    fn first_read(&mut self) -> Result<(), EngineError> {
        let trial = self.trial;
        let key = trial.case.dataset.count / 2 + 1;
        let read = || -> Result<u64, EngineError> {
            let start = Instant::now();
            trial.session(&trial.path)?.read(key, &mut |_| {})?;
            Ok(nanoseconds(start))
        };
        // Once untimed: the engine's own code is in memory in both.
        read()?;
        self.note(names::FIRST_READ_NS, read()?);
        let mut is_evicted = true;
        for part in trial.parts(&trial.path) {
            let stayed = page_cache::evict(&part);
            is_evicted &= matches!(stayed, Ok(Some(stayed)) if stayed.is_fully_evicted());
        }
        if is_evicted {
            self.note(names::FIRST_READ_COLD_NS, read()?);
        }
        Ok(())
    }

    /// Copies the store's files as they are.
    fn copy(&mut self) -> Result<PathBuf, EngineError> {
        let trial = self.trial;
        let copy = with_suffix(&trial.path, COPIES[0]);
        for part in trial.parts(&trial.path) {
            page_cache::warm(&part).map_err(|error| other("read in", &part, &error))?;
        }
        self.synced()?;
        let start = Instant::now();
        copy_tree(&trial.path, &copy)?;
        self.note(names::COPY_NS, nanoseconds(start));
        self.synced()?;
        self.note(names::COPY_SETTLED_NS, nanoseconds(start));
        self.note(names::COPY_BYTES, self.allocated(&copy)?.0);
        Ok(copy)
    }

    /// The database's own ways of making a copy.
    fn back_up(&mut self, database: &Path) -> Result<(), EngineError> {
        let into = with_suffix(&self.trial.path, COPIES[1]);
        self.synced()?;
        let start = Instant::now();
        database::vacuum_into(database, &into, false)?;
        self.synced()?;
        self.note(names::VACUUM_INTO_NS, nanoseconds(start));
        self.note(names::VACUUM_INTO_BYTES, self.allocated(&into)?.0);
        self.trial.remove(&into)?;
        let backup = with_suffix(&self.trial.path, COPIES[2]);
        self.synced()?;
        let start = Instant::now();
        database::back_up(database, &backup)?;
        self.synced()?;
        self.note(names::BACKUP_NS, nanoseconds(start));
        self.trial.remove(&backup)
    }

    /// Removes some blobs for good; returns the time that took.
    fn remove_blobs(&self, store: &Path, keys: &[u32]) -> Result<u64, EngineError> {
        let mut session = self.trial.session(store)?;
        let start = Instant::now();
        for batch in keys.chunks(BATCH) {
            let Some(writer) = session.writer() else {
                return Err(EngineError::Unavailable(
                    "the engine does not write".to_owned(),
                ));
            };
            writer.begin()?;
            for key in batch {
                writer.delete(u64::from(*key))?;
            }
            writer.commit()?;
        }
        if let Some(writer) = session.writer() {
            writer.settle()?;
        }
        Ok(nanoseconds(start))
    }

    /// Removes a part of the blobs, and has a database give back what that leaves.
    fn clean_up(&mut self, removed: &[u32]) -> Result<(), EngineError> {
        let trial = self.trial;
        let database = database::of(trial.engine, &trial.path);
        let incremental = with_suffix(&trial.path, COPIES[3]);
        if let Some(database) = &database {
            database::vacuum_into(database, &incremental, true)?;
            self.remove_blobs(&incremental, removed)?;
        }
        let remove_ns = self.remove_blobs(&trial.path, removed)?;
        self.note(names::REMOVE_PART_NS, remove_ns);
        self.synced()?;
        self.note(names::REMOVED_BYTES, self.allocated(&trial.path)?.0);
        let Some(database) = &database else {
            return Ok(());
        };
        let start = Instant::now();
        database::vacuum(database)?;
        self.synced()?;
        self.note(names::VACUUM_NS, nanoseconds(start));
        self.note(names::VACUUMED_BYTES, self.allocated(&trial.path)?.0);
        self.note(
            names::INCREMENTAL_BEFORE_BYTES,
            self.allocated(&incremental)?.0,
        );
        let start = Instant::now();
        database::incremental_vacuum(&incremental)?;
        self.synced()?;
        self.note(names::INCREMENTAL_VACUUM_NS, nanoseconds(start));
        self.note(
            names::INCREMENTAL_AFTER_BYTES,
            self.allocated(&incremental)?.0,
        );
        self.verify_left(&incremental, removed)?;
        trial.remove(&incremental)
    }

    /// Verifies every blob that is not removed.
    fn verify_left(&self, store: &Path, removed: &[u32]) -> Result<(), EngineError> {
        let trial = self.trial;
        let removed: BTreeSet<u64> = removed.iter().map(|key| u64::from(*key)).collect();
        let mut session = trial.session(store)?;
        let is_left = |key: u64| !removed.contains(&key);
        verify_age(
            session.as_mut(),
            &trial.case.dataset,
            trial.oldest(),
            &is_left,
        )
        .map(drop)
    }

    /// Lives from filling to emptying; returns the time of all replacements and the sum over all blobs at the
    /// oldest age. Of the process's resources only those that growing old uses are metered: later the store is
    /// evicted on purpose, and whoever reads from the device then is not to be taken for a store that was not warm.
    fn live(&mut self, meter: &mut dyn Meter) -> Result<(u64, u64), EngineError> {
        let trial = self.trial;
        let dataset = &trial.case.dataset;
        self.load()?;
        meter.begin();
        let elapsed_ns = self.grow_old()?;
        meter.end();
        let mut session = trial.session(&trial.path)?;
        let consumed = verify_age(session.as_mut(), dataset, trial.oldest(), &|_| true)?;
        drop(session);
        self.first_read()?;
        let copy = self.copy()?;
        self.verify_left(&copy, &[])?;
        self.synced()?;
        let start = Instant::now();
        trial.remove(&copy)?;
        self.note(names::UNLINK_NS, nanoseconds(start));
        if let Some(database) = database::of(trial.engine, &trial.path) {
            self.back_up(&database)?;
        }
        let removed = History::of(dataset).removed_for_good(trial.removed_percent);
        self.clean_up(&removed)?;
        self.verify_left(&trial.path, &removed)?;
        let gone: BTreeSet<u32> = removed.into_iter().collect();
        let rest: Vec<u32> = (1..=dataset.count as u32)
            .filter(|key| !gone.contains(key))
            .collect();
        let empty_ns = self.remove_blobs(&trial.path, &rest)?;
        self.note(names::EMPTY_NS, empty_ns);
        Ok((elapsed_ns, consumed))
    }
}

impl Running for LifecycleTrial {
    fn read_back(&mut self) -> Result<ReadBack, EngineError> {
        Ok(self.read_back.clone())
    }

    fn lead_in(&mut self, _generation: u64) -> Result<Vec<Span>, EngineError> {
        self.clear()?;
        Ok(Vec::new())
    }

    fn slice(&mut self, _generation: u64, meter: &mut dyn Meter) -> Result<Stretch, EngineError> {
        self.clear()?;
        let mut life = Life {
            trial: self,
            counters: BTreeMap::new(),
            tells_extents: self.read_back.get("extents").map(String::as_str) == Some("counted"),
        };
        let (elapsed_ns, consumed) = life.live(meter)?;
        let counters = life.counters;
        Ok(Stretch {
            lead_in: Vec::new(),
            timed: vec![Span {
                position: 0,
                operations: self.case.dataset.count * u64::from(self.oldest()),
                consumed,
            }],
            elapsed_ns,
            latencies: Latencies::default(),
            counters,
        })
    }

    fn settle(&mut self) -> Result<(), EngineError> {
        Ok(())
    }

    /// The number of blobs that are left in the store that was emptied, which is then removed.
    fn verify(&mut self, _keys: &[u64]) -> Result<Vec<u64>, EngineError> {
        let mut left = 0;
        self.session(&self.path)?.keys(&mut |_| left += 1)?;
        self.clear()?;
        Ok(vec![left])
    }
}

/// Copies a file, or a directory with all that is in it, as `cp -r` does.
fn copy_tree(from: &Path, to: &Path) -> Result<(), EngineError> {
    let copied = || -> io::Result<Vec<PathBuf>> {
        if !std::fs::symlink_metadata(from)?.is_dir() {
            return std::fs::copy(from, to).map(|_| Vec::new());
        }
        std::fs::create_dir(to)?;
        let entries = std::fs::read_dir(from)?;
        entries.map(|entry| Ok(entry?.file_name().into())).collect()
    };
    for name in copied().map_err(EngineError::io("copy", from))? {
        copy_tree(&from.join(&name), &to.join(&name))?;
    }
    Ok(())
}

fn nanoseconds(start: Instant) -> u64 {
    start.elapsed().as_nanos() as u64
}

fn other(doing: &'static str, path: &Path, error: &dyn std::error::Error) -> EngineError {
    EngineError::io(doing, path)(io::Error::other(error.to_string()))
}
