//! What is tried: which arms, with which seed, with how much of a slowdown, and as which suite.

use serde::{Deserialize, Serialize};
use sqlitmus_core::dataset::mix;
use sqlitmus_core::keys::shuffle;

/// Comparisons of identical arms, which read the same store.
const IDENTICAL: u64 = 200;

/// Comparisons of arms that are alike but for their stores: each that writes has one of its own, and where
/// it lies differs. Told of, without a target.
const IDENTICAL_BUT_FOR_STORES: u64 = 40;

/// Tries of each planted slowdown.
const PLANTED: u64 = 40;

/// Slowdowns that are planted, in hundredths.
pub(crate) const SLOWDOWNS: [u32; 3] = [2, 3, 5];

/// What an A/A try takes, in seconds.
const IDENTICAL_SECONDS: u32 = 10;

/// What a planted try takes, in seconds.
const PLANTED_SECONDS: u32 = 30;

/// What both arms of a try do. In turn, so that none decides the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Subject {
    /// SQLite reads by SQL.
    SqliteRead,
    /// Files are read in the best way.
    FilesRead,
    /// SQLite reads from its mapping: no system calls.
    SqliteMapped,
    /// One packed file is read by system calls.
    PackfileRead,
    /// SQLite overwrites, with a write-ahead log.
    SqliteWrite,
}

/// Those that read.
const READERS: [Subject; 4] = [
    Subject::SqliteRead,
    Subject::FilesRead,
    Subject::SqliteMapped,
    Subject::PackfileRead,
];

/// One try.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Try {
    /// What both arms do.
    pub(crate) subject: Subject,
    /// Slowdown of one of them in hundredths; 0 for identical arms.
    pub(crate) slowdown_percent: u32,
    /// Whether another load runs meanwhile.
    pub(crate) with_load: bool,
    /// Seed of the run, and of the load.
    pub(crate) seed: u64,
}

/// All tries, in the order that follows from the seed.
pub(crate) fn all(seed: u64) -> Vec<Try> {
    let of = |number: u64, slowdown_percent: u32| Try {
        subject: READERS[(number / 2 % READERS.len() as u64) as usize],
        slowdown_percent,
        with_load: slowdown_percent == 0 && number % 2 == 1,
        // Small enough to be read and typed.
        seed: mix(seed ^ mix(u64::from(slowdown_percent) << 32 | number)) >> 32,
    };
    let mut tries: Vec<Try> = (0..IDENTICAL).map(|number| of(number, 0)).collect();
    tries.extend((0..IDENTICAL_BUT_FOR_STORES).map(|number| Try {
        subject: Subject::SqliteWrite,
        ..of(IDENTICAL + number, 0)
    }));
    for percent in SLOWDOWNS {
        tries.extend((0..PLANTED).map(|number| of(2 * number, percent)));
    }
    shuffle(&mut tries, mix(seed));
    tries
}

impl Try {
    /// What it is, in a few words.
    pub(crate) fn words(&self) -> String {
        let what = match self.slowdown_percent {
            0 => "identical arms".to_owned(),
            percent => format!("slower by {percent}%"),
        };
        let load = if self.with_load { ", under load" } else { "" };
        format!("{what}, {:?}{load}, seed {}", self.subject, self.seed)
    }

    /// How long it may take, in seconds.
    pub(crate) fn seconds(&self) -> u32 {
        if self.slowdown_percent == 0 {
            IDENTICAL_SECONDS
        } else {
            PLANTED_SECONDS
        }
    }

    /// What its result is judged against, as shares.
    pub(crate) fn thresholds(&self) -> &'static [f64] {
        if self.slowdown_percent == 0 {
            &[0.0, 0.03]
        } else {
            &[0.01]
        }
    }

    /// The option that plants the slowdown.
    pub(crate) fn planted_argument(&self) -> Vec<String> {
        match self.slowdown_percent {
            0 => Vec::new(),
            percent => vec![format!("--plant-slowdown=other={percent}%")],
        }
    }

    /// The suite of two arms that are alike; the second is called `other`.
    ///
    /// Slices are short and few and rounds many, as both components of variance advise (METHODOLOGY.md,
    /// section 4): on the machine where this was set up fresh processes scatter about as much as the
    /// medians of six slices. The store is small, so that processes start fast.
    pub(crate) fn suite(&self) -> String {
        let (engine, settings) = match self.subject {
            Subject::SqliteRead => ("sqlite", "api = \"select\""),
            Subject::FilesRead => ("files", "layout = \"flat\", api = \"openat\""),
            Subject::PackfileRead => ("packfile", "read = \"pread\""),
            Subject::SqliteMapped => ("sqlite", "api = \"blob\", mmap = \"all\""),
            Subject::SqliteWrite => ("sqlite", "journal_mode = \"wal\", synchronous = \"normal\""),
        };
        let (workload, slices) = match self.subject {
            Subject::SqliteWrite => (
                "kind = \"overwrite\", order = \"random\", operations = 100",
                6,
            ),
            _ => ("kind = \"read\", order = \"random\"", 8),
        };
        let arm = |name: &str| {
            format!(
                "[[group.arm]]\nname = \"{name}\"\nlabel = \"{name}\"\nengine = \"{engine}\"\n\
                 settings = {{ {settings} }}\n"
            )
        };
        format!(
            "name = \"self-test\"\nabout = \"two arms that are alike\"\nquestion = \"Are they alike?\"\n\
             [[dataset]]\nname = \"blobs\"\ncount = 300\nsize = {{ uniform = [8000, 12000] }}\n\
             [[group]]\nname = \"alike\"\ndataset = \"blobs\"\nworkload = {{ {workload} }}\n\
             cache = \"warm\"\ndurability = \"process-crash\"\nbaseline = \"one\"\nrounds = 8\n\
             slices = {slices}\nslice_ms = 4\n{}{}\
             [[chart]]\ntitle = \"Alike\"\narms = [\"other\"]\n\
             versus = [{{ arm = \"one\", label = \"one\" }}]\n",
            arm("one"),
            arm("other"),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sqlitmus_core::suite::Suite;

    #[test]
    fn there_are_as_many_of_each_as_promised() {
        let tries = all(1);
        let count = |wanted: &dyn Fn(&Try) -> bool| tries.iter().filter(|one| wanted(one)).count();
        let reads = |one: &Try| one.subject != Subject::SqliteWrite;
        assert_eq!(count(&|one| one.slowdown_percent == 0 && reads(one)), 200);
        assert_eq!(count(&|one| one.with_load && reads(one)), 100);
        assert_eq!(count(&|one| !reads(one)), 40);
        assert_eq!(count(&|one| one.with_load && !reads(one)), 20);
        for percent in SLOWDOWNS {
            assert_eq!(count(&|one| one.slowdown_percent == percent), 40);
        }
        for subject in READERS {
            let alike = |one: &Try| one.subject == subject && one.slowdown_percent == 0;
            assert_eq!(count(&|one| alike(one)), 50);
            assert_eq!(count(&|one| alike(one) && one.with_load), 25);
        }
        assert_eq!(count(&|one| one.with_load && one.slowdown_percent > 0), 0);
    }

    #[test]
    fn everything_follows_from_the_seed() {
        assert_eq!(all(7), all(7));
        assert_ne!(all(7), all(8));
        let mut seeds: Vec<u64> = all(7).iter().map(|one| one.seed).collect();
        seeds.sort_unstable();
        seeds.dedup();
        assert_eq!(seeds.len(), 360);
    }

    #[test]
    fn suites_are_suites() {
        for one in all(1) {
            Suite::parse(&one.suite(), "self-test").expect("a suite");
        }
    }
}
