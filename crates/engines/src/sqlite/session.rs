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
use super::settings::{
    Api, Checkpoints, JournalMode, Layout, Part, Plan, Prepare, ReadTransaction, Transaction,
};
use super::statement::{Statement, StatementId};
use crate::engine::{EngineError, ReadBack, Session, Writer};

/// A connection with everything prepared.
pub(super) struct SqliteSession {
    path: PathBuf,
    plan: Plan,
    connection: Connection,
    prepared: Prepared,
    /// The blob handle, once there is one, and what it was opened for.
    blob: Option<(BlobId, BlobMode)>,
    /// Where blob handles read to.
    buffer: Vec<u8>,
    name: KeyName,
    /// Commits made by all sessions of this store.
    commits: Arc<AtomicU64>,
    /// With a read transaction held: how many commits there were when it began.
    held_since: Option<u64>,
    /// Within a batch: writes since the last commit.
    batch: Option<u64>,
    /// Pages that the last checkpoint could not copy, because somebody still reads older ones.
    unsettled_pages: u32,
}

/// Statements, prepared once.
struct Prepared {
    select: StatementId,
    /// From a key to its rowid, where the two differ.
    select_rowid: Option<StatementId>,
    update: StatementId,
    insert: StatementId,
    delete: StatementId,
    keys: StatementId,
    begin: StatementId,
    begin_writing: StatementId,
    commit: StatementId,
    rollback: StatementId,
}

impl Prepared {
    fn new(connection: &mut Connection, plan: &Plan) -> Result<Self, SqliteError> {
        let layout = plan.layout;
        let key = layout.key_column();
        let mut prepare = |sql: &str| connection.prepare(sql);
        let select = match plan.part {
            Part::All | Part::Rollback => format!("SELECT v FROM kv WHERE {key}=?1"),
            // The length stands in the row's header: pages of a long blob are not read for it.
            Part::LookUp => format!("SELECT length(v) FROM kv WHERE {key}=?1"),
            Part::Call => "SELECT ?1".to_owned(),
        };
        Ok(Self {
            select: prepare(&select)?,
            select_rowid: match layout {
                Layout::Name => Some(prepare("SELECT rowid FROM kv WHERE name=?1")?),
                Layout::Rowid | Layout::WithoutRowid => None,
            },
            update: prepare(&format!("UPDATE kv SET v=?2 WHERE {key}=?1"))?,
            insert: prepare(&format!("INSERT INTO kv({key}, v) VALUES(?1, ?2)"))?,
            delete: prepare(&format!("DELETE FROM kv WHERE {key}=?1"))?,
            keys: prepare(&format!("SELECT CAST({key} AS INTEGER) FROM kv ORDER BY 1"))?,
            begin: prepare("BEGIN")?,
            begin_writing: prepare(plan.begin.sql())?,
            commit: prepare("COMMIT")?,
            rollback: prepare("ROLLBACK")?,
        })
    }
}

/// The write-ahead log of a database.
fn log_path(database: &Path) -> PathBuf {
    let mut path = database.as_os_str().to_owned();
    path.push("-wal");
    path.into()
}

/// What a read or a blob write found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    Yes,
    No,
}

impl SqliteSession {
    pub(super) fn open(
        path: &Path,
        plan: Plan,
        commits: Arc<AtomicU64>,
    ) -> Result<Self, EngineError> {
        let mut connection = force::open(path, &plan)?;
        let prepared = Prepared::new(&mut connection, &plan).map_err(at(path))?;
        Ok(Self {
            path: path.to_owned(),
            plan,
            connection,
            prepared,
            blob: None,
            buffer: Vec::new(),
            name: KeyName::new(),
            commits,
            held_since: None,
            batch: None,
            unsettled_pages: 0,
        })
    }

    fn run(&mut self, statement: StatementId) -> Result<(), SqliteError> {
        self.connection.statement(statement).run()
    }

    /// Prepares a statement for its next run, if that is done each time.
    #[inline]
    fn prepare_if_each(&mut self, statement: StatementId) -> Result<(), SqliteError> {
        match self.plan.prepare {
            Prepare::Once => Ok(()),
            Prepare::Each => self.connection.prepare_again(statement),
        }
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

    #[inline]
    fn read_by_select(
        &mut self,
        key: u64,
        consume: &mut dyn FnMut(&[u8]),
    ) -> Result<Found, SqliteError> {
        self.prepare_if_each(self.prepared.select)?;
        let mut statement = self.connection.statement(self.prepared.select);
        bind_key(&mut statement, self.plan.layout, &mut self.name, key)?;
        let Some(mut row) = statement.step()? else {
            return Ok(Found::No);
        };
        match self.plan.part {
            Part::All | Part::Rollback => consume(row.blob(0)?),
            Part::Call | Part::LookUp => {
                std::hint::black_box(row.i64(0));
                consume(&[]);
            }
        }
        statement.reset()?;
        Ok(Found::Yes)
    }

    #[inline]
    fn read_by_blob(
        &mut self,
        key: u64,
        consume: &mut dyn FnMut(&[u8]),
    ) -> Result<Found, SqliteError> {
        if self.point_at(key, BlobMode::Read)? == Found::No {
            return Ok(Found::No);
        }
        match &self.blob {
            Some(_) if self.plan.part == Part::LookUp => consume(&[]),
            Some((id, _)) => consume(self.connection.blob(id).read_whole(&mut self.buffer)?),
            None => {}
        }
        let each = self.plan.read_transaction == ReadTransaction::Each;
        if each && self.batch.is_none() {
            // An open handle is an open read transaction.
            self.close_blob()?;
        }
        Ok(Found::Yes)
    }

    /// Makes the blob handle point at a key: moves the one there is, or opens one.
    #[inline]
    fn point_at(&mut self, key: u64, mode: BlobMode) -> Result<Found, SqliteError> {
        let rowid = match self.prepared.select_rowid {
            None => key.cast_signed(),
            Some(select_rowid) => {
                let mut statement = self.connection.statement(select_rowid);
                statement.bind_text(1, self.name.of(key))?;
                match statement.step()? {
                    Some(row) => row.i64(0),
                    None => return Ok(Found::No),
                }
            }
        };
        let pointed = match &self.blob {
            Some((id, opened)) if *opened == mode => self.connection.blob(id).reopen(rowid),
            _ => {
                self.close_blob()?;
                self.connection
                    .open_blob(c"kv", c"v", rowid, mode)
                    .map(|id| self.blob = Some((id, mode)))
            }
        };
        match pointed {
            Ok(()) => Ok(Found::Yes),
            Err(error) => {
                // A handle that could not be moved is good for nothing more.
                self.close_blob()?;
                // A missing row and a wrong kind of value have one code: look which it is.
                let missing = error.is_sql() && self.is_missing(key)?;
                if missing { Ok(Found::No) } else { Err(error) }
            }
        }
    }

    #[cold]
    fn is_missing(&mut self, key: u64) -> Result<bool, SqliteError> {
        let mut statement = self.connection.statement(self.prepared.select);
        bind_key(&mut statement, self.plan.layout, &mut self.name, key)?;
        Ok(statement.step()?.is_none())
    }

    /// Overwrites through a blob handle; only where there is a blob of that size already.
    fn overwrite_by_blob(&mut self, key: u64, value: &[u8]) -> Result<Found, SqliteError> {
        if self.point_at(key, BlobMode::ReadWrite)? == Found::No {
            return Ok(Found::No);
        }
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

    /// Runs a statement on a key; says whether it changed a row.
    fn change(
        &mut self,
        statement: StatementId,
        key: u64,
        value: Option<&[u8]>,
    ) -> Result<Found, SqliteError> {
        self.prepare_if_each(statement)?;
        let mut statement = self.connection.statement(statement);
        bind_key(&mut statement, self.plan.layout, &mut self.name, key)?;
        if let Some(value) = value {
            statement.bind_blob(2, value)?;
        }
        statement.run()?;
        drop(statement);
        Ok(match self.connection.changes() {
            0 => Found::No,
            _ => Found::Yes,
        })
    }

    fn put_value(&mut self, key: u64, value: &[u8]) -> Result<(), SqliteError> {
        if matches!(self.plan.part, Part::Call | Part::LookUp) {
            return self.read_by_select(key, &mut |_| {}).map(|_| ());
        }
        let by_blob = self.plan.api == Api::Blob;
        if by_blob && self.overwrite_by_blob(key, value)? == Found::Yes {
            return Ok(());
        }
        // A handle on a row that SQL changes would be of no more use.
        self.close_blob()?;
        if self.change(self.prepared.update, key, Some(value))? == Found::No {
            self.change(self.prepared.insert, key, Some(value))?;
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
        if self.plan.part == Part::Rollback {
            return self.run(self.prepared.rollback);
        }
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
        let found = held.and_then(|()| match self.plan.api {
            Api::Select => self.read_by_select(key, consume),
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
        let mut statement = self.connection.statement(self.prepared.keys);
        let visited = released.and_then(|()| {
            while let Some(row) = statement.step()? {
                visit(row.i64(0).cast_unsigned());
            }
            statement.reset()
        });
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
            session.change(session.prepared.insert, key, Some(value))
        });
        inserted.map(|_| ())
    }

    fn delete(&mut self, key: u64) -> Result<bool, EngineError> {
        let found = self.write(|session| {
            session.close_blob()?;
            session.change(session.prepared.delete, key, None)
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

/// Binds a key to the first parameter.
#[inline]
fn bind_key<'c>(
    statement: &mut Statement<'c>,
    layout: Layout,
    name: &'c mut KeyName,
    key: u64,
) -> Result<(), SqliteError> {
    match layout {
        // Keys above i64::MAX become negative, and again themselves when they are read.
        Layout::Rowid | Layout::WithoutRowid => statement.bind_i64(1, key.cast_signed()),
        Layout::Name => statement.bind_text(1, name.of(key)),
    }
}

/// A key as a name: decimal, at least six digits (`000001`), as kvtest names files. Made in
/// place, without an allocation.
pub(super) struct KeyName {
    digits: [u8; Self::MOST_DIGITS],
}

impl KeyName {
    const LEAST_DIGITS: usize = 6;
    const MOST_DIGITS: usize = 20;

    pub(super) fn new() -> Self {
        Self {
            digits: [b'0'; Self::MOST_DIGITS],
        }
    }

    /// The name of a key.
    pub(super) fn of(&mut self, key: u64) -> &str {
        let mut rest = key;
        let mut start = Self::MOST_DIGITS;
        while rest > 0 || start > Self::MOST_DIGITS - Self::LEAST_DIGITS {
            start -= 1;
            self.digits[start] = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        // Digits are ASCII, so the default is never taken.
        std::str::from_utf8(&self.digits[start..]).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_kvtest() {
        let mut name = KeyName::new();
        assert_eq!(name.of(1), "000001");
        assert_eq!(name.of(999_999), "999999");
        assert_eq!(name.of(1_000_000), "1000000");
        assert_eq!(name.of(u64::MAX), u64::MAX.to_string());
        assert_eq!(name.of(0), "000000");
    }
}
