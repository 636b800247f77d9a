//! `run` on a database: what is there, and the timed walk over it. The clock runs from opening the
//! database to closing it, as in kvtest: to open and close once is what a database is for.

use std::time::{Duration, Instant};

use sqlitmus_engines::sqlite::{BlobId, BlobMode, Connection, SqliteError, StatementId};

use super::database::Database;
use super::failures;
use super::key_sequence::KeySequence;
use super::random_bytes::{LONGEST_READY_BYTES, RandomBytes};
use super::run_options::{DEFAULT_CACHE_PAGES, RunOptions};
use super::statistics::DatabaseCounters;
use super::walk::{Tally, walk};
use crate::failure::Failure;

/// Page size for which kvtest's default cache is kept in bytes.
const DEFAULT_PAGE_BYTES: i64 = 4096;

/// Overwrites with bytes that are ready; only for blobs longer than those does SQLite make some.
const UPDATE: &str = "UPDATE kv SET v=CASE WHEN length(v)<=?3 THEN substr(?2,1,length(v)) \
                      ELSE randomblob(length(v)) END WHERE k=?1 AND length(v)>0";

/// Overwrites with bytes that SQLite makes meanwhile, as kvtest does.
const UPDATE_AS_KVTEST: &str = "UPDATE kv SET v=randomblob(length(v)) WHERE k=?1 AND length(v)>0";

/// A walk, how long it took, and what was in force.
pub(super) struct DatabaseWalk {
    /// What was done.
    pub(super) tally: Tally,
    /// From opening to closing.
    pub(super) elapsed: Duration,
    /// Closing, and with it the checkpoint, if that was left out of the time.
    pub(super) closing: Option<Duration>,
    /// What the database said of itself.
    pub(super) in_force: InForce,
    /// SQLite's counters, if asked for.
    pub(super) counters: Option<DatabaseCounters>,
}

/// Settings as the live connection reports them.
pub(super) struct InForce {
    /// The highest key visited.
    pub(super) highest: i64,
    /// Bytes in a page.
    pub(super) page_bytes: i64,
    /// Pages, or KiB below zero.
    pub(super) cache_size: i64,
    /// Bytes of the file that are mapped, at the most.
    pub(super) mmap_bytes: i64,
    /// Journal mode.
    pub(super) journal_mode: String,
}

/// Makes sure, before any clock starts, that the walk finds something; what a crash left is
/// recovered on the way, if the database may be changed.
///
/// # Errors
/// It is no database, has no table `kv`, or no blob in reach.
pub(super) fn survey(database: &Database, options: &RunOptions) -> Result<(), Failure> {
    let path = database.path();
    let failed = |error: SqliteError| failures::sqlite(path, &error);
    let mut connection = database.open_checked()?;
    let reach = options
        .highest
        .map_or(String::new(), |highest| format!(" AND k<={highest}"));
    let query = format!("SELECT k FROM kv WHERE k>=1{reach} AND length(v)>0 LIMIT 1");
    let Some(key) = connection.query_i64(&query).map_err(failed)? else {
        let reach = options.highest.map(|highest| format!(" up to {highest}"));
        return Err(Failure::bad_input(
            format!(
                "{} has no blob under the keys from 1{}",
                path.display(),
                reach.unwrap_or_default()
            ),
            format!("see what it has: sqlitmus kvtest stat {}", path.display()),
        ));
    };
    if options.blob_api {
        // A table without rowids, for instance, has no blob handles.
        let blob = connection.open_blob(c"kv", c"v", key, BlobMode::Read);
        let blob = blob.map_err(failed)?;
        connection.close_blob(blob).map_err(failed)?;
    }
    connection.close().map_err(failed)
}

/// Opens the database, walks, and closes it.
///
/// # Errors
/// SQLite refuses; a transaction that is open is then rolled back.
pub(super) fn timed_walk(
    database: &Database,
    options: &RunOptions,
) -> Result<DatabaseWalk, Failure> {
    let path = database.path();
    let failed = |error: SqliteError| failures::sqlite(path, &error);
    let mut random = if options.update && !options.as_kvtest {
        RandomBytes::ready()
    } else {
        RandomBytes::made_on_demand()
    };

    let start = Instant::now();
    let mut connection = database.open()?;
    let in_force = set_up(&mut connection, options).map_err(failed)?;
    if let Some(asked) = options
        .journal_mode
        .filter(|asked| *asked != in_force.journal_mode)
    {
        return Err(Failure::environment(
            format!(
                "{}: SQLite stays in journal mode {} instead of {asked}",
                path.display(),
                in_force.journal_mode
            ),
            format!(
                "see whether another program uses the database: fuser -v {}",
                path.display()
            ),
        ));
    }
    if !options.multiple_transactions {
        connection.execute("BEGIN").map_err(failed)?;
    }
    let mut tally = match (options.blob_api, options.update) {
        (true, _) => walk_by_blob(&mut connection, options, &in_force, &mut random, failed),
        (false, true) => update_by_sql(&mut connection, options, &in_force, &mut random, failed),
        (false, false) => read_by_sql(&mut connection, options, &in_force, failed),
    }?;
    if !options.multiple_transactions {
        connection.execute("COMMIT").map_err(failed)?;
    }
    let counters = if options.statistics {
        Some(DatabaseCounters::read(&mut connection).map_err(failed)?)
    } else {
        None
    };
    let (elapsed, closing) = if options.no_checkpoint {
        let elapsed = start.elapsed();
        connection.close().map_err(failed)?;
        (elapsed, Some(start.elapsed().saturating_sub(elapsed)))
    } else {
        connection.close().map_err(failed)?;
        (start.elapsed(), None)
    };

    if options.update && !options.blob_api {
        tally.bytes = count_bytes(database, options, &in_force, tally.cycles)?;
    }
    Ok(DatabaseWalk {
        tally,
        elapsed,
        closing,
        in_force,
        counters,
    })
}

/// Sets what was asked for, and asks what is in force.
fn set_up(connection: &mut Connection, options: &RunOptions) -> Result<InForce, SqliteError> {
    let number = |connection: &mut Connection, pragma: &str| {
        connection.pragma_i64(pragma).map(Option::unwrap_or_default)
    };
    let mmap_bytes = number(connection, &format!("mmap_size={}", options.mmap_bytes))?;
    let page_bytes = number(connection, "page_size")?;
    connection.set_pragma("cache_size", wanted_cache_size(options, page_bytes))?;
    if options.no_sync {
        connection.set_pragma("synchronous", "OFF")?;
    }
    let cache_size = number(connection, "cache_size")?;
    if let Some(mode) = options.journal_mode {
        connection.set_pragma("journal_mode", mode)?;
        if options.no_checkpoint {
            connection.set_pragma("wal_autocheckpoint", 0)?;
        }
    }
    let journal_mode = connection.pragma_text("journal_mode")?.unwrap_or_default();
    let highest = match options.highest {
        Some(highest) => highest,
        None => connection.query_i64("SELECT max(k) FROM kv")?.unwrap_or(0),
    };
    Ok(InForce {
        highest,
        page_bytes,
        cache_size,
        mmap_bytes,
        journal_mode,
    })
}

/// kvtest's default of 1000 pages is 4,096,000 bytes with its default page size, and that is what
/// other page sizes get, too: with 1000 pages of each, what is compared is the cache.
fn wanted_cache_size(options: &RunOptions, page_bytes: i64) -> i64 {
    match options.cache_size {
        Some(size) => size,
        None if options.as_kvtest || page_bytes == DEFAULT_PAGE_BYTES => DEFAULT_CACHE_PAGES,
        None => -(DEFAULT_CACHE_PAGES * DEFAULT_PAGE_BYTES / 1024),
    }
}

fn keys(options: &RunOptions, in_force: &InForce) -> KeySequence {
    KeySequence::new(options.order, options.start, in_force.highest)
}

fn read_by_sql(
    connection: &mut Connection,
    options: &RunOptions,
    in_force: &InForce,
    failed: impl Fn(SqliteError) -> Failure,
) -> Result<Tally, Failure> {
    let select = connection
        .prepare("SELECT v FROM kv WHERE k=?1")
        .map_err(&failed)?;
    let mut read = |key| -> Result<u64, SqliteError> {
        let mut statement = connection.statement(select);
        statement.bind_i64(1, key)?;
        match statement.step()? {
            Some(mut row) => Ok(row.blob(0)?.len() as u64),
            None => Ok(0),
        }
    };
    walk(&mut keys(options, in_force), options.count, |key| {
        read(key).map_err(&failed)
    })
}

/// Counts operations and misses; the bytes are counted when the clock has stopped.
fn update_by_sql(
    connection: &mut Connection,
    options: &RunOptions,
    in_force: &InForce,
    random: &mut RandomBytes,
    failed: impl Fn(SqliteError) -> Failure,
) -> Result<Tally, Failure> {
    let sql = if options.as_kvtest {
        UPDATE_AS_KVTEST
    } else {
        UPDATE
    };
    let update = connection.prepare(sql).map_err(&failed)?;
    let mut write = |key| -> Result<u64, SqliteError> {
        let mut statement = connection.statement(update);
        statement.bind_i64(1, key)?;
        if !options.as_kvtest {
            statement.bind_blob(2, random.piece(LONGEST_READY_BYTES))?;
            statement.bind_i64(3, LONGEST_READY_BYTES as i64)?;
        }
        statement.run()?;
        drop(statement);
        Ok(connection.changes())
    };
    walk(&mut keys(options, in_force), options.count, |key| {
        write(key).map_err(&failed)
    })
}

/// The blobs that a finished walk of SQL updates has overwritten, in bytes; sizes never change.
fn count_bytes(
    database: &Database,
    options: &RunOptions,
    in_force: &InForce,
    cycles: u64,
) -> Result<u64, Failure> {
    let failed = |error: SqliteError| failures::sqlite(database.path(), &error);
    let mut connection = database.open()?;
    let select = connection
        .prepare("SELECT length(v) FROM kv WHERE k=?1")
        .map_err(failed)?;
    let mut keys = keys(options, in_force);
    let mut bytes = 0;
    for _ in 0..cycles {
        bytes += length(&mut connection, select, keys.next_key()).map_err(failed)?;
    }
    connection.close().map_err(failed)?;
    Ok(bytes)
}

fn length(connection: &mut Connection, select: StatementId, key: i64) -> Result<u64, SqliteError> {
    let mut statement = connection.statement(select);
    statement.bind_i64(1, key)?;
    Ok(statement.step()?.map_or(0, |row| row.i64(0).unsigned_abs()))
}

/// Reads or overwrites through one blob handle that moves from row to row.
fn walk_by_blob(
    connection: &mut Connection,
    options: &RunOptions,
    in_force: &InForce,
    random: &mut RandomBytes,
    failed: impl Fn(SqliteError) -> Failure,
) -> Result<Tally, Failure> {
    let mut blob = MovingBlob::new(options);
    let walked = walk(&mut keys(options, in_force), options.count, |key| {
        blob.visit(connection, key, random).map_err(&failed)
    });
    let closed = match blob.handle.take() {
        Some(handle) => connection.close_blob(handle),
        None => Ok(()),
    };
    let tally = walked?;
    closed.map_err(&failed)?;
    Ok(tally)
}

/// The blob handle of a walk, and where it reads to.
struct MovingBlob<'o> {
    options: &'o RunOptions,
    handle: Option<BlobId>,
    buffer: Vec<u8>,
    /// Bytes of the last blob found.
    last_bytes: u64,
}

impl<'o> MovingBlob<'o> {
    fn new(options: &'o RunOptions) -> Self {
        Self {
            options,
            handle: None,
            buffer: Vec::new(),
            last_bytes: 0,
        }
    }

    /// Reads or overwrites one blob; returns its bytes, none if there is no such row.
    #[inline]
    fn visit(
        &mut self,
        connection: &mut Connection,
        key: i64,
        random: &mut RandomBytes,
    ) -> Result<u64, SqliteError> {
        match self.point_at(connection, key) {
            Ok(()) => {}
            // kvtest does not notice that its handle has become useless: from here on it counts
            // the last blob found again and again.
            Err(_) if self.options.as_kvtest && self.handle.is_some() => {
                return Ok(self.last_bytes);
            }
            Err(error) if error.is_sql() && !self.options.as_kvtest => {
                // SQLite allows nothing more with the handle.
                if let Some(useless) = self.handle.take() {
                    let _ = connection.close_blob(useless);
                }
                return Ok(0);
            }
            Err(error) => return Err(error),
        }
        let Some(handle) = &self.handle else {
            return Ok(0);
        };
        let mut blob = connection.blob(handle);
        let bytes = blob.bytes();
        if !self.options.update {
            blob.read_whole(&mut self.buffer)?;
        } else if self.options.as_kvtest {
            blob.write(random.fresh(bytes), 0)?;
        } else {
            blob.write(random.piece(bytes), 0)?;
        }
        self.last_bytes = bytes as u64;
        Ok(self.last_bytes)
    }

    #[inline]
    fn point_at(&mut self, connection: &mut Connection, key: i64) -> Result<(), SqliteError> {
        if let Some(handle) = &self.handle {
            return connection.blob(handle).reopen(key);
        }
        let mode = if self.options.update {
            BlobMode::ReadWrite
        } else {
            BlobMode::Read
        };
        self.handle = Some(connection.open_blob(c"kv", c"v", key, mode)?);
        Ok(())
    }
}
