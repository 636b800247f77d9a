//! Recording a directory tree as a workload: here the walk and the index of `sqlitmus_trees`, which the
//! engines do not know, become slices of a trial. The published way and the best one stand beside each other.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode};
use sqlitmus_core::case::{IndexWay, Workload};
use sqlitmus_core::environment::said;
use sqlitmus_core::generated_tree::consume_entry;
use sqlitmus_core::keys::Span;
use sqlitmus_core::latencies::Latencies;
use sqlitmus_core::settings::Settings;
use sqlitmus_engines::workloads::{Meter, Preparation, Running, Stretch};
use sqlitmus_engines::{EngineError, ReadBack};
use sqlitmus_trees::TreeError;
use sqlitmus_trees::index::naive::{self, NaiveDatabase};
use sqlitmus_trees::index::{self, IndexDatabase, IndexOptions, RowWrites};
use sqlitmus_trees::walk::{OnlyLook, Tree, WalkOptions, WalkProgress, walk};

use crate::failure::with_causes;
use crate::machine::path_suffix::with_suffix;

/// Name of the generated tree, beside the databases that it is recorded in.
pub const GENERATED_TREE: &str = "tree";

/// Pages after which SQLite makes a checkpoint by itself.
const AUTOMATIC_CHECKPOINT_PAGES: i64 = 1000;

/// Longer than any recording: nobody is told how far it is.
const NEVER: Duration = Duration::from_secs(1 << 32);

/// A prepared index.
pub(super) struct IndexTrial {
    path: PathBuf,
    tree: Tree,
    way: IndexWay,
    options: IndexOptions,
    settings: Settings,
    database: Option<Database>,
}

/// The database of either way.
enum Database {
    Naive(NaiveDatabase),
    Best(IndexDatabase),
}

impl Database {
    fn connection(&self) -> &Connection {
        match self {
            Self::Naive(database) => database.connection(),
            Self::Best(database) => database.connection(),
        }
    }
}

/// What a recording or a walk came to.
struct Recorded {
    entries: u64,
    writes: RowWrites,
    counters: BTreeMap<String, u64>,
}

impl IndexTrial {
    pub(super) fn prepare(preparation: &Preparation<'_>) -> Result<Self, EngineError> {
        let case = preparation.case;
        let Workload::Index {
            way,
            walkers,
            ref tree,
            limit_ms,
        } = case.workload
        else {
            return Err(EngineError::Unavailable("this records no tree".to_owned()));
        };
        let tree = tree.as_deref().unwrap_or(GENERATED_TREE);
        let tree = Tree::open(Path::new(tree)).map_err(|error| refused(Path::new(tree), &error))?;
        let rows = match case.settings.get("transaction") {
            Some("one") => 1,
            Some(number) => number.parse().unwrap_or(u64::MAX),
            None => u64::MAX,
        };
        if (way == IndexWay::Naive) != (rows == 1) {
            let reason =
                "the naive way commits every entry (transaction = \"one\"), the others many";
            return Err(EngineError::Unavailable(reason.to_owned()));
        }
        let walkers = NonZeroUsize::new(walkers as usize).unwrap_or(NonZeroUsize::MIN);
        let is_limited = limit_ms > 0 && matches!(way, IndexWay::Naive | IndexWay::Best);
        Ok(Self {
            path: preparation.store.to_owned(),
            tree,
            way,
            options: IndexOptions {
                walk: WalkOptions {
                    threads: walkers,
                    ..WalkOptions::default()
                },
                rows_per_transaction: rows,
                report_every: NEVER,
                time_limit: is_limited.then(|| Duration::from_millis(limit_ms)),
            },
            settings: case.settings.clone(),
            database: None,
        })
    }

    /// Opens an empty database in the place of what is there.
    fn start_anew(&mut self) -> Result<(), EngineError> {
        self.database = None;
        for suffix in ["", "-journal", "-wal", "-shm"] {
            let path = with_suffix(&self.path, suffix);
            match std::fs::remove_file(&path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(EngineError::io("remove", &path)(error));
                }
                _ => {}
            }
        }
        let database = match self.way {
            IndexWay::Naive => NaiveDatabase::create(&self.path).map(Database::Naive),
            _ => IndexDatabase::open(&self.path, &self.tree).map(Database::Best),
        };
        let database = database.map_err(|error| refused(&self.path, &error))?;
        force(database.connection(), &self.settings)
            .map_err(|error| sqlite_refused(&self.path, &error))?;
        self.database = Some(database);
        Ok(())
    }

    /// Does what the way says, once.
    fn record(&mut self) -> Result<Recorded, EngineError> {
        let (tree, options) = (&self.tree, &self.options);
        let indexed = match &mut self.database {
            None => return Ok(look(tree, options)),
            Some(Database::Naive(database)) => {
                naive::record(tree, database, options, &|| false, &mut |_| {})
            }
            Some(Database::Best(database)) => {
                index::record(tree, database, options, &|| false, &mut |_| {})
            }
        };
        let indexed = indexed.map_err(|error| refused(&self.path, &error))?;
        let counters = [
            ("sql_ns", indexed.sql_ns),
            ("walk_ns", indexed.walk_ns),
            ("commits", indexed.commits),
            ("row_writes", indexed.writes.total()),
        ];
        Ok(Recorded {
            entries: match self.way {
                IndexWay::Naive | IndexWay::Best => indexed.writes.entries(),
                IndexWay::Again | IndexWay::Walk => indexed.counts.total(),
            },
            writes: indexed.writes,
            counters: named(counters),
        })
    }

    /// Rows of entries in the database, and what they add up to.
    fn totals(&self) -> Result<(u64, u64), EngineError> {
        let Some(database) = &self.database else {
            return Ok((0, 0));
        };
        sums(database.connection(), self.tree.path())
            .map_err(|error| sqlite_refused(&self.path, &error))
    }
}

/// The walk alone.
fn look(tree: &Tree, options: &IndexOptions) -> Recorded {
    let threads = options.walk.threads.get();
    let progress = WalkProgress::new(threads);
    let visitors = vec![OnlyLook; threads];
    let ((), walked) = walk(tree, &options.walk, visitors, &|| false, &progress, || {});
    Recorded {
        entries: walked.counts.total(),
        writes: RowWrites::default(),
        counters: named([("walk_ns", walked.walk_ns)]),
    }
}

fn named<const COUNT: usize>(counters: [(&str, u64); COUNT]) -> BTreeMap<String, u64> {
    let named = counters.map(|(name, value)| (name.to_owned(), value));
    named.into()
}

/// Number of all entries and sum of [`consume_entry`] over them; both ways have the same view of them.
///
/// # Errors
/// SQLite refuses.
pub fn sums(connection: &Connection, tree: &Path) -> rusqlite::Result<(u64, u64)> {
    let top = tree.as_os_str().as_bytes();
    let mut select = connection.prepare("SELECT folder, filename FROM file_index")?;
    let mut rows = select.query([])?;
    let (mut count, mut sum) = (0, 0u64);
    while let Some(row) = rows.next()? {
        let folder = row.get_ref(0)?.as_bytes()?;
        let below = folder.strip_prefix(top).unwrap_or(folder);
        let below = below.strip_prefix(b"/").unwrap_or(below);
        count += 1;
        sum = sum.wrapping_add(consume_entry(below, row.get_ref(1)?.as_bytes()?));
    }
    Ok((count, sum))
}

/// Puts settings in force that the library does not have by itself.
fn force(connection: &Connection, settings: &Settings) -> rusqlite::Result<()> {
    let asked = |name| settings.get(name).unwrap_or_default();
    connection.pragma_update(None, "cache_size", -cache_kib(settings))?;
    connection.pragma_update(None, "synchronous", asked("synchronous"))?;
    let automatic = match asked("checkpoint") {
        "automatic" => AUTOMATIC_CHECKPOINT_PAGES,
        _ => 0,
    };
    // Both are answered with what is in force now.
    let sql = format!("PRAGMA journal_mode = {}", asked("journal_mode"));
    connection.query_row(&sql, [], |_| Ok(()))?;
    let sql = format!("PRAGMA wal_autocheckpoint = {automatic}");
    connection.query_row(&sql, [], |_| Ok(()))
}

fn cache_kib(settings: &Settings) -> i64 {
    let bytes = settings
        .get("cache")
        .and_then(|bytes| bytes.parse::<i64>().ok());
    bytes.unwrap_or(0) / 1024
}

/// What the live connection says, in the words of the settings.
fn ask(connection: &Connection) -> rusqlite::Result<ReadBack> {
    let number = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let synchronous = match number("synchronous")? {
        0 => "off",
        1 => "normal",
        2 => "full",
        _ => "extra",
    };
    let journal: String = connection.pragma_query_value(None, "journal_mode", |row| row.get(0))?;
    let source: String = connection.query_row("SELECT sqlite_source_id()", [], |row| row.get(0))?;
    let checkpoint = match number("wal_autocheckpoint")? {
        0 => "apart",
        _ => "automatic",
    };
    let back = [
        ("journal_mode", journal),
        ("synchronous", synchronous.to_owned()),
        ("cache", (-number("cache_size")? * 1024).to_string()),
        ("checkpoint", checkpoint.to_owned()),
        (said::SQLITE_VERSION, rusqlite::version().to_owned()),
        (said::SQLITE_SOURCE_ID, source),
    ];
    Ok(back.map(|(name, value)| (name.to_owned(), value)).into())
}

impl Running for IndexTrial {
    fn read_back(&mut self) -> Result<ReadBack, EngineError> {
        if self.way == IndexWay::Walk {
            return Ok(ReadBack::new());
        }
        self.start_anew()?;
        let Some(database) = &self.database else {
            return Ok(ReadBack::new());
        };
        let back =
            ask(database.connection()).map_err(|error| sqlite_refused(&self.path, &error))?;
        let is_wal = self.settings.get("journal_mode") == Some("wal");
        for name in ["journal_mode", "synchronous", "cache", "checkpoint"] {
            let asked = self.settings.get(name).unwrap_or_default();
            let got = back.get(name).map_or("", String::as_str);
            // Without a write-ahead log there is nothing to check in.
            if asked != got && (name != "checkpoint" || is_wal) {
                return Err(EngineError::NotInForce {
                    name,
                    asked: asked.to_owned(),
                    got: got.to_owned(),
                });
            }
        }
        Ok(back)
    }

    /// A pass over the tree, so that the filesystem knows it; before the first recording of a tree that
    /// is recorded already, that recording.
    fn lead_in(&mut self, _generation: u64) -> Result<Vec<Span>, EngineError> {
        let mut entries = look(&self.tree, &self.options).entries;
        if self.way == IndexWay::Again {
            entries = self.record()?.entries;
        }
        Ok(vec![Span {
            position: 0,
            operations: entries,
            consumed: 0,
        }])
    }

    fn slice(&mut self, _generation: u64, meter: &mut dyn Meter) -> Result<Stretch, EngineError> {
        if matches!(self.way, IndexWay::Naive | IndexWay::Best) {
            self.start_anew()?;
        }
        meter.begin();
        let start = Instant::now();
        let recorded = self.record()?;
        let elapsed = start.elapsed();
        meter.end();
        if self.way == IndexWay::Again && recorded.writes.total() > 0 {
            return Err(EngineError::Damaged {
                path: self.path.clone(),
                reason: "rows were written although the tree has not changed".to_owned(),
            });
        }
        let (_, consumed) = self.totals()?;
        Ok(Stretch {
            lead_in: Vec::new(),
            timed: vec![Span {
                position: 0,
                operations: recorded.entries,
                consumed,
            }],
            elapsed_ns: elapsed.as_nanos() as u64,
            // Of single entries nobody takes the time: they are written in batches.
            latencies: Latencies::default(),
            counters: recorded.counters,
        })
    }

    fn settle(&mut self) -> Result<(), EngineError> {
        let Some(database) = &self.database else {
            return Ok(());
        };
        let settled =
            database
                .connection()
                .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        settled.map_err(|error| sqlite_refused(&self.path, &error))
    }

    /// Rows of entries, what they add up to, and whether the database is whole.
    fn verify(&mut self, _keys: &[u64]) -> Result<Vec<u64>, EngineError> {
        let Some(database) = &self.database else {
            return Ok(Vec::new());
        };
        let check = database
            .connection()
            .query_row("PRAGMA integrity_check", [], |row| row.get::<_, String>(0));
        let check = check.map_err(|error| sqlite_refused(&self.path, &error))?;
        let (rows, consumed) = self.totals()?;
        Ok(vec![rows, consumed, u64::from(check == "ok")])
    }
}

fn refused(path: &Path, error: &TreeError) -> EngineError {
    let is_full = match error {
        TreeError::Database { source, .. } => is_full(source),
        _ => false,
    };
    failed(path, is_full, with_causes(error))
}

fn sqlite_refused(path: &Path, error: &rusqlite::Error) -> EngineError {
    failed(path, is_full(error), with_causes(error))
}

fn is_full(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::DiskFull)
}

/// A full disk is the machine's, and ends the run; all else is this arm's.
fn failed(path: &Path, is_full: bool, message: String) -> EngineError {
    let kind = match is_full {
        true => std::io::ErrorKind::StorageFull,
        false => std::io::ErrorKind::Other,
    };
    EngineError::io("record a tree in", path)(std::io::Error::new(kind, message))
}
