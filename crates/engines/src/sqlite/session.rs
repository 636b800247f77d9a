//! One thread's work on a store: reading through SQL or a blob handle, and writing in batches.
//! How a connection comes to have its settings is [`super::force`]'s business.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::blob::{BlobId, BlobMode};
use super::connection::{Connection, ConnectionStatus};
use super::error::SqliteError;
use super::force::{self, at};
use super::layout::Layout;
use super::settings::{Api, Checkpoints, JournalMode, Plan, ReadTransaction, Transaction};
use super::statement::StatementId;
use super::table::{Found, Table, endless};
use crate::engine::{EngineError, ReadBack, Session, Writer};

/// A connection with everything prepared.
pub(super) struct SqliteSession {
    path: PathBuf,
    plan: Plan,
    connection: Connection,
    prepared: Prepared,
    table: Table,
    /// The blob handle, once there is one, and what it was opened for.
    blob: Option<(BlobId, BlobMode)>,
    /// Where blob handles read to.
    buffer: Vec<u8>,
    /// With names in memory: how many commits there were when they were read.
    names_as_of: u64,
    /// Commits made by all sessions of this store.
    commits: Arc<AtomicU64>,
    /// With a read transaction held: how many commits there were when it began.
    held_since: Option<u64>,
    /// Within a batch: writes since the last commit.
    batch: Option<u64>,
    /// Pages that the last checkpoint could not copy, because somebody still reads older ones.
    unsettled_pages: u32,
}

/// Statements of transactions, prepared once.
struct Prepared {
    begin: StatementId,
    begin_writing: StatementId,
    commit: StatementId,
    rollback: StatementId,
}

impl Prepared {
    fn new(connection: &mut Connection, plan: &Plan) -> Result<Self, SqliteError> {
        Ok(Self {
            begin: connection.prepare("BEGIN")?,
            begin_writing: connection.prepare(plan.begin.sql())?,
            commit: connection.prepare("COMMIT")?,
            rollback: connection.prepare("ROLLBACK")?,
        })
    }
}

/// The write-ahead log of a database.
fn log_path(database: &Path) -> PathBuf {
    let mut path = database.as_os_str().to_owned();
    path.push("-wal");
    path.into()
}

impl SqliteSession {
    pub(super) fn open(
        path: &Path,
        plan: Plan,
        commits: Arc<AtomicU64>,
    ) -> Result<Self, EngineError> {
        let mut connection = force::open(path, &plan)?;
        let prepared = Prepared::new(&mut connection, &plan).map_err(at(path))?;
        let mut table = Table::new(&mut connection, &plan, plan.prepare).map_err(at(path))?;
        // Counted before they are read: one commit too few makes them be read again.
        let names_as_of = commits.load(Ordering::Acquire);
        table.read_names(&mut connection).map_err(at(path))?;
        Ok(Self {
            path: path.to_owned(),
            plan,
            connection,
            prepared,
            table,
            blob: None,
            buffer: Vec::new(),
            names_as_of,
            commits,
            held_since: None,
            batch: None,
            unsettled_pages: 0,
        })
    }

    fn run(&mut self, statement: StatementId) -> Result<(), SqliteError> {
        self.connection.statement(statement).run()
    }

    /// Sees to it that reads happen in a held read transaction, and not in one that began before
    /// somebody's last commit.
    #[inline]
    fn hold(&mut self) -> Result<(), SqliteError> {
        // Counted before the transaction begins: one commit too few makes it end too early, never
        // too late.
        let commits = self.commits.load(Ordering::Acquire);
        if self.held_since == Some(commits) {
            return Ok(());
        }
        self.release()?;
        self.run(self.prepared.begin)?;
        self.held_since = Some(commits);
        Ok(())
    }

    /// Ends a held read transaction and what keeps it open.
    fn release(&mut self) -> Result<(), SqliteError> {
        self.close_blob()?;
        // Grave errors (I/O, memory) make SQLite end the transaction by itself.
        if self.held_since.take().is_some() && self.connection.is_in_transaction() {
            self.run(self.prepared.commit)?;
        }
        Ok(())
    }

    fn close_blob(&mut self) -> Result<(), SqliteError> {
        match self.blob.take() {
            Some((id, _)) => self.connection.close_blob(id),
            None => Ok(()),
        }
    }

    /// Sees to it that names in memory are those of the last commit of this store's sessions.
    #[inline]
    fn refresh_names(&mut self) -> Result<(), SqliteError> {
        if !self.table.keeps_names() {
            return Ok(());
        }
        let commits = self.commits.load(Ordering::Acquire);
        if self.table.has_names() && self.names_as_of == commits {
            return Ok(());
        }
        self.names_as_of = commits;
        self.table.read_names(&mut self.connection)
    }

    #[inline]
    fn read_by_blob(
        &mut self,
        key: u64,
        consume: &mut dyn FnMut(&[u8]),
    ) -> Result<Found, SqliteError> {
        let found = match self.table.chunk_bytes() {
            None => self.read_whole_by_blob(key, consume)?,
            Some(chunk_bytes) => self.read_chunks_by_blob(key, chunk_bytes, consume)?,
        };
        let each = self.plan.read_transaction == ReadTransaction::Each;
        if found == Found::Yes && each && self.batch.is_none() {
            // An open handle is an open read transaction.
            self.close_blob()?;
        }
        Ok(found)
    }

    #[inline]
    fn read_whole_by_blob(
        &mut self,
        key: u64,
        consume: &mut dyn FnMut(&[u8]),
    ) -> Result<Found, SqliteError> {
        if self.point_at(key, BlobMode::Read)? == Found::No {
            return Ok(Found::No);
        }
        if let Some((id, _)) = &self.blob {
            consume(self.connection.blob(id).read_whole(&mut self.buffer)?);
        }
        Ok(Found::Yes)
    }

    fn read_chunks_by_blob(
        &mut self,
        key: u64,
        chunk_bytes: usize,
        consume: &mut dyn FnMut(&[u8]),
    ) -> Result<Found, SqliteError> {
        let Some(first) = self.table.rowid(&mut self.connection, key)? else {
            return Ok(Found::No);
        };
        let mut filled = 0;
        for rowid in first.. {
            if self.point_at_row(rowid, BlobMode::Read)? == Found::No {
                let is_missing = rowid == first;
                return if is_missing {
                    Ok(Found::No)
                } else {
                    Err(endless(key))
                };
            }
            let Some((id, _)) = &self.blob else {
                break;
            };
            let mut blob = self.connection.blob(id);
            let bytes = blob.bytes();
            if self.buffer.len() < filled + bytes {
                self.buffer.resize(filled + bytes, 0);
            }
            blob.read(&mut self.buffer[filled..filled + bytes], 0)?;
            filled += bytes;
            if bytes < chunk_bytes {
                break;
            }
        }
        consume(&self.buffer[..filled]);
        Ok(Found::Yes)
    }

    /// Makes the blob handle point at a key.
    #[inline]
    fn point_at(&mut self, key: u64, mode: BlobMode) -> Result<Found, SqliteError> {
        match self.table.rowid(&mut self.connection, key)? {
            Some(rowid) => self.point_at_row(rowid, mode),
            None => Ok(Found::No),
        }
    }

    /// Makes the blob handle point at a row: moves the one there is, or opens one.
    #[inline]
    fn point_at_row(&mut self, rowid: i64, mode: BlobMode) -> Result<Found, SqliteError> {
        let pointed = match &self.blob {
            Some((id, opened)) if *opened == mode => self.connection.blob(id).reopen(rowid),
            _ => {
                self.close_blob()?;
                let (table, column) = self.plan.layout.blob_column();
                self.connection
                    .open_blob(table, column, rowid, mode)
                    .map(|id| self.blob = Some((id, mode)))
            }
        };
        match pointed {
            Ok(()) => Ok(Found::Yes),
            Err(error) => {
                // A handle that could not be moved is good for nothing more.
                self.close_blob()?;
                // A missing row and a wrong kind of value have one code: look which it is.
                let missing = error.is_sql() && !self.table.has_row(&mut self.connection, rowid)?;
                if missing { Ok(Found::No) } else { Err(error) }
            }
        }
    }

    /// Overwrites through a blob handle; only where there is a blob of that size already.
    fn overwrite_by_blob(&mut self, key: u64, value: &[u8]) -> Result<Found, SqliteError> {
        if self.plan.layout == Layout::Chunked {
            return self.overwrite_chunks_by_blob(key, value);
        }
        if self.point_at(key, BlobMode::ReadWrite)? == Found::No {
            return Ok(Found::No);
        }
        self.write_through_blob(value)
    }

    /// Writes the blob that the handle points at, if it has that size.
    fn write_through_blob(&mut self, value: &[u8]) -> Result<Found, SqliteError> {
        let Some((id, _)) = &self.blob else {
            return Ok(Found::No);
        };
        let mut blob = self.connection.blob(id);
        if blob.bytes() != value.len() {
            return Ok(Found::No);
        }
        blob.write(value, 0)?;
        Ok(Found::Yes)
    }

    /// As [`Self::overwrite_by_blob`], chunk by chunk. What of it is written when a chunk turns out
    /// to be of another size is written again by whoever then does it by SQL.
    fn overwrite_chunks_by_blob(&mut self, key: u64, value: &[u8]) -> Result<Found, SqliteError> {
        let Some(first) = self.table.rowid(&mut self.connection, key)? else {
            return Ok(Found::No);
        };
        let full = value.chunks_exact(self.plan.chunk_bytes);
        let rest = std::iter::once(full.remainder());
        for (rowid, piece) in (first..).zip(full.chain(rest)) {
            let found = match self.point_at_row(rowid, BlobMode::ReadWrite)? {
                Found::Yes => self.write_through_blob(piece)?,
                Found::No => Found::No,
            };
            if found == Found::No {
                return Ok(Found::No);
            }
        }
        Ok(Found::Yes)
    }

    fn put_value(&mut self, key: u64, value: &[u8]) -> Result<(), SqliteError> {
        let by_blob = self.plan.api == Api::Blob;
        if by_blob {
            self.refresh_names()?;
            if self.overwrite_by_blob(key, value)? == Found::Yes {
                return Ok(());
            }
        }
        // A handle on a row that SQL changes would be of no more use.
        self.close_blob()?;
        if self.table.update(&mut self.connection, key, value)? == Found::No {
            self.table.insert(&mut self.connection, key, value)?;
        }
        Ok(())
    }

    /// Does one write of a batch. If it fails the batch is over: what of it was not committed
    /// is undone, and `commit` will say so rather than commit the rest.
    fn write(
        &mut self,
        write: impl FnOnce(&mut Self) -> Result<Found, SqliteError>,
    ) -> Result<Found, EngineError> {
        let written = self.write_in_transaction(write);
        if written.is_err() {
            // The first failure is the one to report.
            let _ = self.abandon();
        }
        written.map_err(at(&self.path))
    }

    /// Does one write in the transaction that the settings give it.
    fn write_in_transaction(
        &mut self,
        write: impl FnOnce(&mut Self) -> Result<Found, SqliteError>,
    ) -> Result<Found, SqliteError> {
        let Some(pending) = self.batch else {
            return Err(SqliteError::misuse("write", "no batch is open"));
        };
        let limit = match self.plan.transaction {
            Transaction::All => u64::MAX,
            Transaction::One if self.plan.layout.writes_in_steps() => {
                self.run(self.prepared.begin_writing)?;
                let found = write(self)?;
                self.commit_transaction()?;
                return Ok(found);
            }
            Transaction::One => {
                let found = write(self)?;
                // What a blob handle has written is committed as it is closed.
                self.close_blob()?;
                self.commits.fetch_add(1, Ordering::Release);
                return Ok(found);
            }
            Transaction::Every(limit) => limit,
        };
        if pending == 0 && !self.connection.is_in_transaction() {
            self.run(self.prepared.begin_writing)?;
        }
        let found = write(self)?;
        self.batch = Some(pending + 1);
        if pending + 1 == limit {
            self.commit_transaction()?;
            self.batch = Some(0);
        }
        Ok(found)
    }

    fn commit_transaction(&mut self) -> Result<(), SqliteError> {
        self.close_blob()?;
        self.run(self.prepared.commit)?;
        self.commits.fetch_add(1, Ordering::Release);
        Ok(())
    }

    fn end_batch(&mut self) -> Result<(), SqliteError> {
        if self.batch.take().is_none() {
            return Err(SqliteError::misuse("commit", "no batch is open"));
        }
        // One that was only read from stays open otherwise, and with it a transaction.
        self.close_blob()?;
        if self.connection.is_in_transaction() {
            self.commit_transaction()?;
        }
        if self.plan.checkpoints == Checkpoints::Included {
            self.checkpoint()?;
        }
        Ok(())
    }

    /// Copies the log into the database, without waiting for readers of older states: sessions
    /// that hold one are no error, and what was left over is reported by `read_back`.
    fn checkpoint(&mut self) -> Result<(), SqliteError> {
        self.release()?;
        if self.plan.journal_mode == JournalMode::Wal {
            let outcome = self.connection.checkpoint()?;
            let copied = outcome.copied_pages.unwrap_or(0);
            self.unsettled_pages = outcome.log_pages.unwrap_or(0).saturating_sub(copied);
        }
        Ok(())
    }

    /// Ends what an error may have left open.
    fn abandon(&mut self) -> Result<(), SqliteError> {
        self.batch = None;
        self.release()?;
        if self.connection.is_in_transaction() {
            self.run(self.prepared.rollback)?;
        }
        Ok(())
    }
}

impl Session for SqliteSession {
    fn read(&mut self, key: u64, consume: &mut dyn FnMut(&[u8])) -> Result<(), EngineError> {
        let hold = self.plan.read_transaction == ReadTransaction::Held && self.batch.is_none();
        let held = if hold { self.hold() } else { Ok(()) };
        let ready = held.and_then(|()| self.refresh_names());
        let found = ready.and_then(|()| match self.plan.api {
            Api::Select => {
                let (connection, buffer) = (&mut self.connection, &mut self.buffer);
                self.table.read(connection, key, buffer, consume)
            }
            Api::Blob => self.read_by_blob(key, consume),
        });
        match found {
            Ok(Found::Yes) => Ok(()),
            Ok(Found::No) => Err(EngineError::Missing {
                key,
                path: self.path.clone(),
            }),
            Err(error) => Err(at(&self.path)(error)),
        }
    }

    fn keys(&mut self, visit: &mut dyn FnMut(u64)) -> Result<(), EngineError> {
        let released = match self.batch {
            None => self.release(),
            Some(_) => Ok(()),
        };
        let visited = released.and_then(|()| self.table.keys(&mut self.connection, visit));
        visited.map_err(at(&self.path))
    }

    fn writer(&mut self) -> Option<&mut dyn Writer> {
        Some(self)
    }

    fn counters(&mut self) -> BTreeMap<&'static str, u64> {
        const COUNTED: [(&str, ConnectionStatus); 5] = [
            ("sqlite_cache_hits", ConnectionStatus::CacheHits),
            ("sqlite_cache_misses", ConnectionStatus::CacheMisses),
            ("sqlite_cache_writes", ConnectionStatus::CacheWrites),
            ("sqlite_cache_spills", ConnectionStatus::CacheSpills),
            ("peak_sqlite_cache_bytes", ConnectionStatus::CacheUsed),
        ];
        // What this library does not count is left out.
        let mut counters: BTreeMap<_, _> = COUNTED
            .into_iter()
            .filter_map(|(name, which)| {
                let status = self.connection.status(which).ok()?;
                Some((name, u64::try_from(status.current).ok()?))
            })
            .collect();
        if self.plan.journal_mode == JournalMode::Wal {
            let log = std::fs::metadata(log_path(&self.path));
            let log_bytes = log.map_or(0, |metadata| metadata.len());
            counters.insert("peak_sqlite_wal_bytes", log_bytes);
        }
        counters
    }

    fn read_back(&mut self) -> Result<ReadBack, EngineError> {
        let mut back = force::read_back(&mut self.connection, &self.path, &self.plan)?;
        let layout = force::layout(&mut self.connection, &self.path)?;
        let chunk_bytes = match layout {
            Some(Layout::Chunked) => force::chunk_bytes(&mut self.connection, &self.path)?,
            _ => self.plan.chunk_bytes.to_string(),
        };
        back.insert("chunk_bytes".to_owned(), chunk_bytes);
        let layout = layout.map_or("none", Layout::word);
        back.insert("layout".to_owned(), layout.to_owned());
        self.plan.add_own(&mut back);
        let unsettled = self.unsettled_pages.to_string();
        back.insert("unsettled_pages".to_owned(), unsettled);
        Ok(back)
    }
}

impl Writer for SqliteSession {
    fn begin(&mut self) -> Result<(), EngineError> {
        let begun = self.abandon().and_then(|()| match self.plan.transaction {
            Transaction::One => Ok(()),
            Transaction::All | Transaction::Every(_) => self.run(self.prepared.begin_writing),
        });
        begun.map_err(at(&self.path))?;
        self.batch = Some(0);
        Ok(())
    }

    fn put(&mut self, key: u64, value: &[u8]) -> Result<(), EngineError> {
        self.write(|session| session.put_value(key, value).map(|()| Found::Yes))
            .map(|_| ())
    }

    fn insert(&mut self, key: u64, value: &[u8]) -> Result<(), EngineError> {
        let inserted = self.write(|session| {
            session.close_blob()?;
            session.table.insert(&mut session.connection, key, value)?;
            Ok(Found::Yes)
        });
        inserted.map(|_| ())
    }

    fn delete(&mut self, key: u64) -> Result<bool, EngineError> {
        let found = self.write(|session| {
            session.close_blob()?;
            session.table.delete(&mut session.connection, key)
        });
        Ok(found? == Found::Yes)
    }

    fn commit(&mut self) -> Result<(), EngineError> {
        let ended = self.end_batch();
        if ended.is_err() {
            // The failure to commit is the one to report; this only frees the locks.
            let _ = self.abandon();
        }
        ended.map_err(at(&self.path))
    }

    fn settle(&mut self) -> Result<(), EngineError> {
        self.checkpoint().map_err(at(&self.path))
    }
}
