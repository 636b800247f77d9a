//! What `kvtest run` is asked to do, with kvtest's defaults. Doing it is left to the walks.

use std::path::PathBuf;

use sqlitmus_core::names::nearest;

use super::key_sequence::Order;
use super::words::{Grammar, Words};
use crate::failure::Failure;

/// kvtest's default for `--cache-size`, in pages.
pub(super) const DEFAULT_CACHE_PAGES: i64 = 1000;

/// The highest key that kvtest reads from a directory unless it is told another one.
pub(super) const KVTEST_HIGHEST_IN_DIRECTORY: i64 = 1000;

/// Words of `run`.
pub(super) const GRAMMAR: Grammar = Grammar {
    verb: "run",
    paths: &["DBFILE"],
    flags: &[
        "asc",
        "desc",
        "random",
        "update",
        "blob-api",
        "fsync",
        "integrity-check",
        "multitrans",
        "nocheckpoint",
        "nosync",
        "stats",
        "as-kvtest",
    ],
    values: &["cache-size", "count", "jmode", "max-id", "mmap", "start"],
};

/// SQLite's journal modes.
const JOURNAL_MODES: [&str; 6] = ["delete", "truncate", "persist", "memory", "wal", "off"];

/// One call of `run`.
#[derive(Debug, Clone)]
pub(super) struct RunOptions {
    /// Database or directory.
    pub(super) path: PathBuf,
    /// Order of the keys.
    pub(super) order: Order,
    /// First key.
    pub(super) start: i64,
    /// Highest key, if given.
    pub(super) highest: Option<i64>,
    /// Blobs to read or write.
    pub(super) count: u64,
    /// Overwrite instead of reading.
    pub(super) update: bool,
    /// Use a blob handle instead of SQL.
    pub(super) blob_api: bool,
    /// `PRAGMA cache_size`, if given: pages, or KiB below zero.
    pub(super) cache_size: Option<i64>,
    /// `PRAGMA mmap_size` in bytes.
    pub(super) mmap_bytes: i64,
    /// `PRAGMA journal_mode`, if given.
    pub(super) journal_mode: Option<&'static str>,
    /// Each operation in a transaction of its own.
    pub(super) multiple_transactions: bool,
    /// Leave the checkpoint out of the time.
    pub(super) no_checkpoint: bool,
    /// `PRAGMA synchronous=OFF`.
    pub(super) no_sync: bool,
    /// Flush each file.
    pub(super) fsync: bool,
    /// Check the database afterwards.
    pub(super) integrity_check: bool,
    /// Print counters.
    pub(super) statistics: bool,
    /// Keep kvtest's defects.
    pub(super) as_kvtest: bool,
}

impl RunOptions {
    /// Reads and checks the words after the verb.
    ///
    /// # Errors
    /// A word or a value that makes no sense.
    pub(super) fn from(words: &Words) -> Result<Self, Failure> {
        let as_kvtest = words.has("as-kvtest");
        Ok(Self {
            path: words.path(0),
            order: match words.last_of(&["asc", "desc", "random"]) {
                Some("desc") => Order::Descending,
                Some("random") => Order::Random,
                _ => Order::Ascending,
            },
            start: words.positive("start", 1)?.cast_signed(),
            // Zero and below are kvtest's way of saying "find out".
            highest: words.integer("max-id")?.filter(|highest| *highest > 0),
            count: words.positive("count", 1000)?,
            update: words.has("update"),
            blob_api: words.has("blob-api"),
            cache_size: cache_size(words)?,
            mmap_bytes: mmap_bytes(words, as_kvtest)?,
            journal_mode: journal_mode(words)?,
            multiple_transactions: words.has("multitrans"),
            no_checkpoint: words.has("nocheckpoint"),
            no_sync: words.has("nosync"),
            fsync: words.has("fsync"),
            integrity_check: words.has("integrity-check"),
            statistics: words.has("stats"),
            as_kvtest,
        })
    }

    /// Whether the database is to be changed.
    pub(super) fn changes_database(&self) -> bool {
        self.update || self.journal_mode.is_some()
    }
}

fn cache_size(words: &Words) -> Result<Option<i64>, Failure> {
    let size = words.integer("cache-size")?;
    match size {
        // SQLite takes a 32-bit number.
        Some(size) if i32::try_from(size).is_err() => Err(Failure::bad_input(
            format!("kvtest run: --cache-size {size} is more than SQLite can count"),
            "below zero it counts KiB: --cache-size -1000000 is 1 GB",
        )),
        size => Ok(size),
    }
}

fn mmap_bytes(words: &Words, as_kvtest: bool) -> Result<i64, Failure> {
    let bytes = words.integer("mmap")?.unwrap_or(0);
    if bytes < 0 {
        return Err(Failure::bad_input(
            format!("kvtest run: --mmap must not be below zero, but is {bytes}"),
            "leave --mmap out to map nothing",
        ));
    }
    // kvtest computes in 32 bits, and what does not fit wraps round.
    Ok(if as_kvtest {
        i64::from(bytes as i32)
    } else {
        bytes
    })
}

fn journal_mode(words: &Words) -> Result<Option<&'static str>, Failure> {
    let Some(given) = words.text("jmode") else {
        return Ok(None);
    };
    let known = JOURNAL_MODES
        .into_iter()
        .find(|mode| mode.eq_ignore_ascii_case(given));
    known.map(Some).ok_or_else(|| {
        let hint = match nearest(given, JOURNAL_MODES) {
            Some(near) => format!("did you mean --jmode {near}?"),
            None => format!("it is one of {}", JOURNAL_MODES.join(", ")),
        };
        Failure::bad_input(
            format!("kvtest run: there is no journal mode {given}"),
            hint,
        )
    })
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;

    fn options(words: &[&str]) -> Result<RunOptions, Failure> {
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        RunOptions::from(&GRAMMAR.read(&words)?)
    }

    #[test]
    fn defaults_are_those_of_kvtest() {
        let options = options(&["x.db"]).expect("valid");
        assert_eq!(
            (options.count, options.start, options.highest),
            (1000, 1, None)
        );
        assert_eq!(options.order, Order::Ascending);
        assert_eq!((options.cache_size, options.mmap_bytes), (None, 0));
        assert!(!options.changes_database());
    }

    #[test]
    fn a_large_mapping_wraps_round_only_as_kvtest() {
        let bytes = |words: &[&str]| options(words).expect("valid").mmap_bytes;
        assert_eq!(bytes(&["x.db", "-mmap", "10gb"]), 10_000_000_000);
        assert_eq!(
            bytes(&["x.db", "-mmap", "10GB", "--as-kvtest"]),
            1_410_065_408
        );
        assert!(options(&["x.db", "-mmap", "-1"]).is_err());
    }

    #[test]
    fn odd_values() {
        let given = |words: &[&str]| options(words).expect("valid");
        assert_eq!(given(&["x", "--max-id", "-5"]).highest, None);
        assert_eq!(given(&["x", "--jmode", "WAL"]).journal_mode, Some("wal"));
        assert_eq!(
            given(&["x", "--cache-size", "-4000"]).cache_size,
            Some(-4000)
        );
        let hint = |words: &[&str]| options(words).expect_err("invalid").hint;
        assert_eq!(
            hint(&["x", "--jmode", "trunkate"]),
            "did you mean --jmode truncate?"
        );
        assert!(hint(&["x", "--cache-size", "3G"]).contains("KiB"));
        assert!(options(&["x", "--start", "0"]).is_err());
    }
}
