//! One thread's work on a store: the index and the files, in the order that a crash at any moment
//! leaves whole.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::fsync;

use super::folder::{Folder, Name};
use super::mark::Mark;
use super::store::{index_path, notes, open_index};
use super::{Api, Means};
use crate::engine::{EngineError, ReadBack, Session, Writer};
use crate::files::open_directory;
use crate::sqlite::{
    self, Checkpoints, Connection, JournalMode, ReadTransaction, SqliteError, StatementId,
    Transaction, at,
};

impl Means {
    /// Whether a content of so many bytes is in the database.
    pub(super) fn is_inline(&self, bytes: usize) -> bool {
        self.inline_limit.is_some_and(|limit| bytes as u64 <= limit)
    }
}

/// The database with its statements, prepared once.
pub(super) struct Index {
    pub(super) connection: Connection,
    journal_mode: JournalMode,
    select: StatementId,
    select_file: StatementId,
    update: StatementId,
    insert: StatementId,
    delete: StatementId,
    keys: StatementId,
    begin: StatementId,
    begin_writing: StatementId,
    commit: StatementId,
    rollback: StatementId,
}

impl Index {
    pub(super) fn new(
        path: &Path,
        means: &Means,
        mut connection: Connection,
    ) -> Result<Self, EngineError> {
        let index = index_path(path);
        let mut prepare = |sql: &str| connection.prepare(sql).map_err(at(&index));
        // A store of `external` has nothing in its last column to be read.
        let select = match means.inline_limit {
            Some(_) => "SELECT size, file, v FROM entry WHERE k=?1",
            None => "SELECT size, file FROM entry WHERE k=?1",
        };
        Ok(Self {
            select: prepare(select)?,
            select_file: prepare("SELECT file FROM entry WHERE k=?1")?,
            update: prepare("UPDATE entry SET size=?2, file=?3, v=?4 WHERE k=?1")?,
            insert: prepare(
                "INSERT INTO entry(k, mode, mtime, size, file, v) \
                 VALUES(?1, 33188, 0, ?2, ?3, ?4)",
            )?,
            delete: prepare("DELETE FROM entry WHERE k=?1")?,
            keys: prepare("SELECT k FROM entry ORDER BY k")?,
            begin: prepare("BEGIN")?,
            begin_writing: prepare("BEGIN IMMEDIATE")?,
            commit: prepare("COMMIT")?,
            rollback: prepare("ROLLBACK")?,
            journal_mode: means.index.journal_mode,
            connection,
        })
    }

    fn run(&mut self, statement: StatementId) -> Result<(), SqliteError> {
        self.connection.statement(statement).run()
    }

    /// Adds the row of a content: that of the file, or with the content itself.
    pub(super) fn insert(
        &mut self,
        key: u64,
        value: &[u8],
        file: Option<&Name>,
    ) -> Result<(), SqliteError> {
        self.change(self.insert, key, value, file)
    }

    fn change(
        &mut self,
        statement: StatementId,
        key: u64,
        value: &[u8],
        file: Option<&Name>,
    ) -> Result<(), SqliteError> {
        let mut statement = self.connection.statement(statement);
        statement.bind_i64(1, key.cast_signed())?;
        // No blob reaches 2^63 bytes.
        statement.bind_i64(2, value.len() as i64)?;
        // What is not bound is NULL. Names are ASCII, so the default is never taken.
        match file {
            Some(name) => statement.bind_text(3, name.to_str().unwrap_or_default())?,
            None => statement.bind_blob(4, value)?,
        }
        statement.run()
    }

    /// The file that a key's row names: `None` without a row, and in it `None` without a file.
    fn file_of(&mut self, key: u64) -> Result<Option<Option<Name>>, SqliteError> {
        let mut statement = self.connection.statement(self.select_file);
        statement.bind_i64(1, key.cast_signed())?;
        let Some(mut row) = statement.step()? else {
            return Ok(None);
        };
        let name = row.blob(0)?;
        Ok(Some(
            (!name.is_empty()).then(|| Name::new(name).unwrap_or_default()),
        ))
    }

    /// Sees to it that no loss of power undoes what was committed; `false` if somebody who reads an
    /// older state stands in the way.
    pub(super) fn make_durable(&mut self, store: &Path) -> Result<bool, EngineError> {
        if self.journal_mode == JournalMode::Wal {
            // "The WAL file is synchronized before each checkpoint" (PRAGMA synchronous).
            let outcome = self
                .connection
                .checkpoint()
                .map_err(at(&index_path(store)))?;
            return Ok(outcome.copied_pages == outcome.log_pages);
        }
        // The deletion of the journal is the commit.
        open_directory(store)
            .and_then(fsync)
            .map_err(|errno| EngineError::io("synchronise", store)(errno.into()))?;
        Ok(true)
    }
}

pub(super) struct ExternalSession {
    path: PathBuf,
    database: PathBuf,
    means: Means,
    index: Index,
    folder: Folder,
    /// Where the file in hand is.
    name: Name,
    buffer: Vec<u8>,
    /// Commits made by all sessions of this store.
    commits: Arc<AtomicU64>,
    /// With a read transaction held: how many commits there were when it began.
    held_since: Option<u64>,
    /// Within a batch: writes since the last commit.
    batch: Option<u64>,
    /// Files that the open transaction has made.
    made: Vec<Name>,
    /// Folders in which it has made them.
    changed: BTreeSet<Vec<u8>>,
    /// Files that the open transaction's rows name no more.
    replaced: Vec<Name>,
    /// Files that no row names since a commit that is not durable yet.
    kept: Vec<Name>,
    /// There since the first batch.
    mark: Option<Mark>,
    /// Files made by this session: part of the next one's name.
    files: u64,
    /// It is not known whether a commit went through, so that its files had to be left alone.
    leaves_files: bool,
}

impl ExternalSession {
    pub(super) fn open(
        path: &Path,
        means: Means,
        commits: Arc<AtomicU64>,
    ) -> Result<Self, EngineError> {
        let connection = open_index(path, &means)?;
        Ok(Self {
            path: path.to_owned(),
            database: index_path(path),
            index: Index::new(path, &means, connection)?,
            folder: Folder::open(path, means.layout)?,
            means,
            name: Name::default(),
            buffer: Vec::new(),
            commits,
            held_since: None,
            batch: None,
            made: Vec::new(),
            changed: BTreeSet::new(),
            replaced: Vec::new(),
            kept: Vec::new(),
            mark: None,
            files: 0,
            leaves_files: false,
        })
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
        self.index.run(self.index.begin)?;
        self.held_since = Some(commits);
        Ok(())
    }

    /// Ends a held read transaction.
    fn release(&mut self) -> Result<(), SqliteError> {
        if self.held_since.take().is_some() && self.index.connection.is_in_transaction() {
            self.index.run(self.index.commit)?;
        }
        Ok(())
    }

    /// Looks a key up. Delivers what is in the database; of a file, sets the name and returns its
    /// size.
    #[inline]
    fn look_up(&mut self, key: u64, consume: &mut dyn FnMut(&[u8])) -> Result<LookUp, SqliteError> {
        let is_held = self.means.index.read_transaction == ReadTransaction::Held;
        if is_held && self.batch.is_none() {
            self.hold()?;
        }
        let mut statement = self.index.connection.statement(self.index.select);
        statement.bind_i64(1, key.cast_signed())?;
        let Some(mut row) = statement.step()? else {
            return Ok(LookUp::Missing);
        };
        let bytes = usize::try_from(row.i64(0)).unwrap_or(0);
        let file = row.blob(1)?;
        if file.is_empty() {
            consume(row.blob(2)?);
            return Ok(LookUp::Delivered);
        }
        set_name(&mut self.name, file);
        statement.reset()?;
        Ok(LookUp::File { bytes })
    }

    fn missing(&self, key: u64) -> EngineError {
        EngineError::Missing {
            key,
            path: self.path.clone(),
        }
    }

    /// Does one write of a batch. If it fails the batch is over: what of it was not committed is
    /// undone, and `commit` will say so rather than commit the rest.
    fn write<T>(
        &mut self,
        write: impl FnOnce(&mut Self) -> Result<T, EngineError>,
    ) -> Result<T, EngineError> {
        let written = self.write_in_transaction(write);
        if written.is_err() {
            // The first failure is the one to report.
            let _ = self.abandon();
        }
        written
    }

    fn write_in_transaction<T>(
        &mut self,
        write: impl FnOnce(&mut Self) -> Result<T, EngineError>,
    ) -> Result<T, EngineError> {
        let Some(pending) = self.batch else {
            return Err(self.refused("write"));
        };
        if !self.index.connection.is_in_transaction() {
            // Before any file is made: who cleans up takes this lock.
            let begun = self.index.run(self.index.begin_writing);
            begun.map_err(at(&self.database))?;
        }
        let written = write(self)?;
        let limit = match self.means.index.transaction {
            Transaction::All => u64::MAX,
            Transaction::One => 1,
            Transaction::Every(limit) => limit,
        };
        self.batch = Some(pending + 1);
        if pending + 1 >= limit {
            self.commit_transaction()?;
            self.batch = Some(0);
        }
        Ok(written)
    }

    fn refused(&self, doing: &'static str) -> EngineError {
        let reason = std::io::Error::other("no batch is open");
        EngineError::io(doing, &self.path)(reason)
    }

    fn put_value(&mut self, key: u64, value: &[u8]) -> Result<(), EngineError> {
        let old = self.index.file_of(key).map_err(at(&self.database))?;
        let file = match self.means.is_inline(value.len()) {
            true => None,
            false => Some(self.make_file(key, value)?),
        };
        let statement = match old {
            Some(_) => self.index.update,
            None => self.index.insert,
        };
        self.index
            .change(statement, key, value, file.as_ref())
            .map_err(at(&self.database))?;
        self.replaced.extend(old.flatten());
        Ok(())
    }

    /// Makes a file under a name that no other has.
    fn make_file(&mut self, key: u64, value: &[u8]) -> Result<Name, EngineError> {
        let tag = self.mark.as_ref().map_or(0, |mark| mark.tag);
        loop {
            self.files += 1;
            let name = self.folder.name(key, &format!("-{tag:x}-{:x}", self.files));
            // Noted before it is made: one that was made by half goes, too.
            self.made.push(name.clone());
            if self.folder.create(&name, value, &mut self.changed)? {
                return Ok(name);
            }
            self.made.pop();
        }
    }

    /// Files, then their folders, then the row that names them; then what it named before goes.
    fn commit_transaction(&mut self) -> Result<(), EngineError> {
        if self.means.synchronises {
            for name in &self.made {
                self.folder.synchronise(name)?;
            }
            for folder in &self.changed {
                self.folder.synchronise_folder(folder)?;
            }
        }
        let committed = self.index.run(self.index.commit);
        if committed.is_err() {
            // Whether it went through is not known: what it names must stay.
            self.made.clear();
            self.leaves_files = true;
        }
        committed.map_err(at(&self.database))?;
        self.commits.fetch_add(1, Ordering::Release);
        self.made.clear();
        self.changed.clear();
        if self.means.keeps_old_files() {
            self.kept.append(&mut self.replaced);
            return Ok(());
        }
        let replaced = std::mem::take(&mut self.replaced);
        replaced
            .iter()
            .try_for_each(|name| self.folder.remove(name))
    }

    fn end_batch(&mut self) -> Result<(), EngineError> {
        if self.batch.take().is_none() {
            return Err(self.refused("commit to"));
        }
        if self.index.connection.is_in_transaction() {
            self.commit_transaction()?;
        }
        if self.means.index.checkpoints == Checkpoints::Included {
            self.settle_all()?;
        }
        Ok(())
    }

    /// Makes durable what was committed, and removes what was kept for it not being so.
    fn settle_all(&mut self) -> Result<(), EngineError> {
        self.release().map_err(at(&self.database))?;
        let is_wal = self.index.journal_mode == JournalMode::Wal;
        if (is_wal || !self.kept.is_empty()) && self.index.make_durable(&self.path)? {
            let kept = std::mem::take(&mut self.kept);
            kept.iter().try_for_each(|name| self.folder.remove(name))?;
        }
        Ok(())
    }

    /// Ends what an error may have left open.
    fn abandon(&mut self) -> Result<(), EngineError> {
        self.batch = None;
        self.release().map_err(at(&self.database))?;
        if self.index.connection.is_in_transaction() {
            let undone = self.index.run(self.index.rollback);
            undone.map_err(at(&self.database))?;
        }
        self.replaced.clear();
        self.changed.clear();
        let made = std::mem::take(&mut self.made);
        made.iter().try_for_each(|name| self.folder.remove(name))
    }
}

/// What there is under a key.
enum LookUp {
    Missing,
    /// It was in the database.
    Delivered,
    /// It is in a file.
    File {
        bytes: usize,
    },
}

/// Replaces a name without a new allocation.
#[inline]
fn set_name(name: &mut Name, bytes: &[u8]) {
    let mut old = std::mem::take(name).into_bytes();
    old.clear();
    old.extend_from_slice(bytes);
    *name = Name::new(old).unwrap_or_default();
}

impl Session for ExternalSession {
    fn read(&mut self, key: u64, consume: &mut dyn FnMut(&[u8])) -> Result<(), EngineError> {
        let mut gone: Option<Name> = None;
        loop {
            let found = self.look_up(key, consume);
            let bytes = match found.map_err(at(&self.database))? {
                LookUp::Missing => return Err(self.missing(key)),
                LookUp::Delivered => return Ok(()),
                LookUp::File { bytes } => bytes,
            };
            if gone.as_ref() == Some(&self.name) {
                return Err(EngineError::Damaged {
                    path: self.path.clone(),
                    reason: format!("row {key} names {:?}, which is not there", self.name),
                });
            }
            let api: Api = self.means.api;
            let buffer = &mut self.buffer;
            if self.folder.read(&self.name, bytes, api, buffer, consume)? {
                return Ok(());
            }
            // Somebody has replaced it since the row was read: there is another row by now.
            gone = Some(self.name.clone());
            if self.batch.is_none() {
                self.release().map_err(at(&self.database))?;
            }
        }
    }

    fn keys(&mut self, visit: &mut dyn FnMut(u64)) -> Result<(), EngineError> {
        let released = match self.batch {
            None => self.release(),
            Some(_) => Ok(()),
        };
        let mut statement = self.index.connection.statement(self.index.keys);
        let visited = released.and_then(|()| {
            while let Some(row) = statement.step()? {
                visit(row.i64(0).cast_unsigned());
            }
            statement.reset()
        });
        visited.map_err(at(&self.database))
    }

    fn writer(&mut self) -> Option<&mut dyn Writer> {
        Some(self)
    }

    fn read_back(&mut self) -> Result<ReadBack, EngineError> {
        let connection = &mut self.index.connection;
        let mut back = sqlite::read_back(connection, &self.database, &self.means.index)?;
        let [layout, inline_limit] = notes(connection, &self.path)?;
        back.insert("layout".to_owned(), layout);
        back.insert("inline_limit".to_owned(), inline_limit);
        self.means.add_own(&mut back);
        let kept = self.kept.len().to_string();
        back.insert("unsettled_files".to_owned(), kept);
        Ok(back)
    }
}

impl Writer for ExternalSession {
    fn begin(&mut self) -> Result<(), EngineError> {
        self.abandon()?;
        if self.mark.is_none() {
            self.mark = Some(Mark::make(&self.path, self.means.synchronises)?);
        }
        if self.means.index.transaction != Transaction::One {
            let begun = self.index.run(self.index.begin_writing);
            begun.map_err(at(&self.database))?;
        }
        self.batch = Some(0);
        Ok(())
    }

    fn put(&mut self, key: u64, value: &[u8]) -> Result<(), EngineError> {
        self.write(|session| session.put_value(key, value))
    }

    fn delete(&mut self, key: u64) -> Result<bool, EngineError> {
        self.write(|session| {
            let old = session.index.file_of(key).map_err(at(&session.database))?;
            let Some(file) = old else {
                return Ok(false);
            };
            let mut statement = session.index.connection.statement(session.index.delete);
            statement
                .bind_i64(1, key.cast_signed())
                .and_then(|()| statement.run())
                .map_err(at(&session.database))?;
            drop(statement);
            session.replaced.extend(file);
            Ok(true)
        })
    }

    fn commit(&mut self) -> Result<(), EngineError> {
        let ended = self.end_batch();
        if ended.is_err() {
            // The failure to commit is the one to report; this only frees the locks.
            let _ = self.abandon();
        }
        ended
    }

    fn settle(&mut self) -> Result<(), EngineError> {
        self.settle_all()
    }
}

impl Drop for ExternalSession {
    fn drop(&mut self) {
        let ended = self.abandon().and_then(|()| match self.kept.is_empty() {
            true => Ok(()),
            false => self.settle_all(),
        });
        // What could not be put in order is found by whoever opens the store next.
        let is_in_order = ended.is_ok() && self.kept.is_empty() && !self.leaves_files;
        if let Some(mark) = self.mark.take().filter(|_| is_in_order) {
            mark.remove();
        }
    }
}
