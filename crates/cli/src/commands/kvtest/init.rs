//! `kvtest init`: a new database of random blobs, with kvtest's table.
//!
//! Unlike kvtest's, the content follows from a fixed seed, so that everybody who gives the same
//! options gets the same blobs; and the database appears under its name when it is complete and
//! on the device. How it is filled is the `sqlite` engine's business.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sqlitmus_core::dataset::{Dataset, MAXIMUM_BLOB_BYTES, SizeDistribution};
use sqlitmus_core::settings::Settings;
use sqlitmus_engines::sqlite::Sqlite;
use sqlitmus_engines::{Content, Engine, EngineError};

use super::database_size::database_bytes;
use super::progress::Progress;
use super::words::{Grammar, Words};
use super::{failures, target};
use crate::failure::Failure;
use crate::interruption;

const GRAMMAR: Grammar = Grammar {
    verb: "init",
    paths: &["DBFILE"],
    flags: &[],
    values: &["count", "size", "pagesize", "variance"],
};

/// Everything random follows from it.
const SEED: u64 = 0x6b76_7465_7374;

/// Between two rounds of handing dirty pages to the device.
const FLUSH_PAUSE: Duration = Duration::from_millis(20);

/// Makes the database. Prints nothing, as kvtest does.
///
/// # Errors
/// Bad input before anything is created; a full disk and the like later, with everything removed.
pub(super) fn run(words: &[OsString]) -> anyhow::Result<()> {
    let words = GRAMMAR.read(words)?;
    let path = words.path(0);
    let dataset = dataset(&words)?;
    let page_bytes = page_bytes(&words)?;
    let found = target::require_free_for_database(&path)?;
    // At least so much: known at once, where the exact size of very many blobs takes a while.
    let least_bytes = dataset.count.saturating_mul(smallest_bytes(&dataset));
    target::require_space(target::parent(&path), least_bytes, 1)?;
    let sizes = (1..=dataset.count).map(|key| (key, dataset.value_bytes(key) as u64));
    let needed_bytes = database_bytes(page_bytes, sizes);
    target::require_space(target::parent(&path), needed_bytes, 1)?;

    interruption::listen()
        .map_err(|error| failures::file("cannot listen for Ctrl-C", &error, ""))?;
    let unfinished = target::unfinished_name(&path)?;
    let made = fill(&unfinished, &dataset, page_bytes)
        .and_then(|()| target::publish(&unfinished, &path, found));
    if made.is_err() {
        // The first failure is the one to report.
        for leftover in Sqlite.companions(&unfinished).iter().chain([&unfinished]) {
            let _ = fs::remove_file(leftover);
        }
    }
    Ok(made?)
}

fn dataset(words: &Words) -> Result<Dataset, Failure> {
    let count = words.positive("count", 1000)?;
    let size = words.positive("size", 10_000)?;
    let variance = words.integer("variance")?.unwrap_or(0);
    let largest = u64::from(MAXIMUM_BLOB_BYTES);
    // Below the size: a blob has at least one byte.
    let variance = u64::try_from(variance)
        .ok()
        .filter(|variance| *variance < size)
        .ok_or_else(|| {
            Failure::bad_input(
                format!(
                    "kvtest init: --variance must be from 0 to below --size {size}, not {variance}"
                ),
                "for blobs of 8,000 to 12,000 bytes write: --size 10000 --variance 2000",
            )
        })?;
    if size.saturating_add(variance) > largest {
        return Err(Failure::bad_input(
            format!(
                "kvtest init: --size and --variance allow blobs of {} bytes, but SQLite stores \
                 {largest} at the most",
                size.saturating_add(variance)
            ),
            "choose a smaller --size",
        ));
    }
    let dataset = Dataset {
        count,
        // Both fit: they are below SQLite's limit.
        size: SizeDistribution::Uniform((size - variance) as u32, (size + variance) as u32),
        compressibility: 0.0,
        seed: SEED,
    };
    dataset.validate().map_err(|error| {
        Failure::bad_input(format!("kvtest init: {error}"), "choose a smaller --count")
    })?;
    Ok(dataset)
}

fn smallest_bytes(dataset: &Dataset) -> u64 {
    match dataset.size {
        SizeDistribution::Uniform(smallest, _) => u64::from(smallest),
        _ => 0,
    }
}

fn page_bytes(words: &Words) -> Result<u64, Failure> {
    let given = words.integer("pagesize")?.unwrap_or(4096);
    u64::try_from(given)
        .ok()
        .filter(|bytes| (512..=65_536).contains(bytes) && bytes.is_power_of_two())
        .ok_or_else(|| {
            Failure::bad_input(
                format!(
                    "kvtest init: --pagesize must be a power of two from 512 to 65536, not {given}"
                ),
                "SQLite's default is --pagesize 4096",
            )
        })
}

/// Makes and fills a database at a free path, and sees to it that it is on the device.
fn fill(path: &Path, dataset: &Dataset, page_bytes: u64) -> Result<(), Failure> {
    let page_size = page_bytes.to_string();
    let settings = Settings::from_pairs([
        ("layout", "rowid"),
        ("page_size", &page_size),
        // Where kvtest leaves its databases.
        ("journal_mode", "delete"),
    ]);
    let failed = |error: EngineError| match interruption::requested() {
        true => failures::interrupted("the database is not complete and was removed"),
        false => failures::engine(path, &error),
    };
    let store = Sqlite.create(path, &settings).map_err(failed)?;
    let flushing = |error: io::Error| {
        failures::file(
            format!("cannot flush {}", path.display()),
            &error,
            "see: dmesg | tail",
        )
    };
    // Opened before SQLite does, and closed after: closing a file drops the locks of this process.
    let file = File::open(path).map_err(flushing)?;
    let content = Interruptible(dataset);
    let mut progress = Progress::new();
    let loaded = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // The device works while the next blobs are made; kvtest leaves it all to the end.
        let flusher = scope.spawn(|| {
            while !loaded.load(Ordering::Acquire) {
                std::thread::park_timeout(FLUSH_PAUSE);
                // A failure here is met again by the flush that counts.
                let _ = file.sync_data();
            }
        });
        let outcome = store.load(&content, &mut |done| {
            progress.show(|| format!("{done} of {} blobs", dataset.count));
        });
        loaded.store(true, Ordering::Release);
        flusher.thread().unpark();
        outcome
    })
    .map_err(failed)?;
    file.sync_all().map_err(flushing)
}

/// The blobs of a dataset, until the user asks to stop.
struct Interruptible<'d>(&'d Dataset);

impl Content for Interruptible<'_> {
    fn count(&self) -> u64 {
        self.0.count
    }

    fn fill(&self, key: u64, buffer: &mut Vec<u8>) -> io::Result<()> {
        if interruption::requested() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        Content::fill(self.0, key, buffer)
    }
}
