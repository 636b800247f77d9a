//! The one thread that writes: blocks of folders into the database, some ten thousand rows a
//! transaction, with prepared statements.

use rusqlite::types::ValueRef;
use rusqlite::{CachedStatement, Connection, params};

use super::difference::{Step, Stored, steps};
use super::folder_block::{EntryRecord, Figures, FolderBlock, FolderRecord, Name, state_word};
use super::known_folders::KnownFolders;
use super::stopwatch::Stopwatch;
use super::{Recorded, RowWrites};

const INSERT_FOLDER: &str =
    "INSERT INTO folder (id, parent_id, name, state, digest) VALUES (?1, ?2, ?3, ?4, ?5)";
const INSERT_ENTRY: &str = "INSERT INTO entry (folder_id, name, kind, size_bytes, mtime_ns, inode) \
                            VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
const UPDATE_ENTRY: &str = "UPDATE entry SET kind = ?3, size_bytes = ?4, mtime_ns = ?5, inode = ?6 \
                            WHERE folder_id = ?1 AND name = ?2";
const FOLDERS_BELOW: &str = "WITH RECURSIVE below (id) AS (\
                             SELECT id FROM folder WHERE parent_id = ?1 AND name = ?2 \
                             UNION ALL SELECT folder.id FROM below JOIN folder ON folder.parent_id = below.id) \
                             SELECT id FROM below";

/// Writes, counts and times.
pub(super) struct Recorder<'c> {
    connection: &'c Connection,
    rows_per_transaction: u64,
    stopwatch: Stopwatch,
    writes: RowWrites,
    commits: u64,
    in_transaction: bool,
    rows_since_commit: u64,
    /// Written so far, and of that committed.
    recorded: Recorded,
    committed: Recorded,
}

impl<'c> Recorder<'c> {
    pub(super) fn new(connection: &'c Connection, rows_per_transaction: u64) -> Self {
        Self {
            connection,
            rows_per_transaction,
            stopwatch: Stopwatch::default(),
            writes: RowWrites::default(),
            commits: 0,
            in_transaction: false,
            rows_since_commit: 0,
            recorded: Recorded::default(),
            committed: Recorded::default(),
        }
    }

    pub(super) fn known_folders(&mut self) -> rusqlite::Result<KnownFolders> {
        let connection = self.connection;
        self.stopwatch.time(|| KnownFolders::read(connection))
    }

    /// Writes a block; what is written is committed from time to time.
    pub(super) fn write(&mut self, block: &FolderBlock) -> rusqlite::Result<()> {
        self.timed(|recorder| {
            recorder.begin()?;
            let rows_before = recorder.writes.total();
            for folder in &block.folders {
                recorder.write_folder(block, folder)?;
            }
            recorder.rows_since_commit += recorder.writes.total() - rows_before;
            if recorder.rows_since_commit >= recorder.rows_per_transaction {
                recorder.commit()?;
            }
            Ok(())
        })
    }

    /// Ends the last transaction. A tree of which nothing changed is not written to.
    pub(super) fn finish(&mut self, is_complete: bool) -> rusqlite::Result<()> {
        self.timed(|recorder| {
            let sql = "SELECT is_complete FROM tree";
            let was_complete: bool = recorder.connection.query_row(sql, [], |row| row.get(0))?;
            if is_complete && !was_complete {
                recorder.begin()?;
                let sql = "UPDATE tree SET is_complete = 1, \
                           written_utc = strftime('%Y-%m-%dT%H:%M:%SZ', 'now')";
                recorder.writes.tree += recorder.connection.execute(sql, [])? as u64;
            }
            recorder.commit()
        })
    }

    /// Takes back what is not committed; answers what is.
    pub(super) fn give_up(&mut self) -> Recorded {
        if !self.connection.is_autocommit() {
            // Some errors have rolled back already; after others SQLite does it when it closes.
            let _ = self.connection.execute_batch("ROLLBACK");
        }
        self.committed
    }

    fn timed<R>(&mut self, work: impl FnOnce(&mut Self) -> R) -> R {
        let mut stopwatch = std::mem::take(&mut self.stopwatch);
        let answer = stopwatch.time(|| work(self));
        self.stopwatch = stopwatch;
        answer
    }

    fn begin(&mut self) -> rusqlite::Result<()> {
        if self.in_transaction {
            return Ok(());
        }
        self.connection.execute_batch("BEGIN IMMEDIATE")?;
        self.in_transaction = true;
        let sql = "UPDATE tree SET is_complete = 0 WHERE is_complete = 1";
        self.writes.tree += self.connection.execute(sql, [])? as u64;
        Ok(())
    }

    fn commit(&mut self) -> rusqlite::Result<()> {
        if !self.in_transaction {
            return Ok(());
        }
        self.connection.execute_batch("COMMIT")?;
        self.in_transaction = false;
        self.commits += 1;
        self.rows_since_commit = 0;
        self.committed = self.recorded;
        Ok(())
    }

    fn write_folder(&mut self, block: &FolderBlock, folder: &FolderRecord) -> rusqlite::Result<()> {
        let rows_before = self.writes.entries();
        if folder.is_known {
            self.update_folder(block, folder)?;
        } else {
            self.insert_folder(block, folder)?;
        }
        self.recorded.entries += self.writes.entries() - rows_before;
        self.recorded.folders += 1;
        Ok(())
    }

    fn insert_folder(
        &mut self,
        block: &FolderBlock,
        folder: &FolderRecord,
    ) -> rusqlite::Result<()> {
        self.connection
            .prepare_cached(INSERT_FOLDER)?
            .execute(params![
                folder.id,
                folder.parent_id,
                block.folder_name(folder),
                state_word(folder.state),
                folder.digest.to_bytes(),
            ])?;
        self.writes.folders_added += 1;
        let mut insert = self.connection.prepare_cached(INSERT_ENTRY)?;
        for entry in &block.entries[folder.entries.clone()] {
            put(&mut insert, folder.id, block.entry_name(entry), entry)?;
            self.writes.entries_added += 1;
        }
        Ok(())
    }

    fn update_folder(
        &mut self,
        block: &FolderBlock,
        folder: &FolderRecord,
    ) -> rusqlite::Result<()> {
        let stored = self.stored(folder.id)?;
        for step in steps(block, folder, &stored) {
            match step {
                Step::Add(entry) => {
                    let mut insert = self.connection.prepare_cached(INSERT_ENTRY)?;
                    put(&mut insert, folder.id, block.entry_name(entry), entry)?;
                    self.writes.entries_added += 1;
                }
                Step::Change { entry, was_folder } => {
                    let mut update = self.connection.prepare_cached(UPDATE_ENTRY)?;
                    put(&mut update, folder.id, block.entry_name(entry), entry)?;
                    self.writes.entries_changed += 1;
                    if was_folder {
                        self.remove_below(folder.id, block.entry_name(entry))?;
                    }
                }
                Step::Remove { stored, was_folder } => {
                    let sql = "DELETE FROM entry WHERE folder_id = ?1 AND name = ?2";
                    let mut delete = self.connection.prepare_cached(sql)?;
                    self.writes.entries_removed +=
                        delete.execute(params![folder.id, stored.name()])? as u64;
                    if was_folder {
                        self.remove_below(folder.id, stored.name())?;
                    }
                }
            }
        }
        let sql = "UPDATE folder SET state = ?2, digest = ?3 WHERE id = ?1";
        let mut update = self.connection.prepare_cached(sql)?;
        let state = state_word(folder.state);
        update.execute(params![folder.id, state, folder.digest.to_bytes()])?;
        self.writes.folders_changed += 1;
        Ok(())
    }

    /// The entries of a folder that are recorded, in the order of their names.
    fn stored(&self, folder_id: i64) -> rusqlite::Result<Vec<Stored>> {
        let sql = "SELECT name, kind, size_bytes, mtime_ns, inode FROM entry \
                   WHERE folder_id = ?1 ORDER BY name";
        let mut select = self.connection.prepare_cached(sql)?;
        let rows = select.query_map([folder_id], |row| {
            let name = row.get_ref(0)?;
            Ok(Stored {
                is_text: matches!(name, ValueRef::Text(_)),
                name: name.as_bytes()?.to_vec(),
                kind: row.get(1)?,
                figures: Figures {
                    size_bytes: row.get(2)?,
                    mtime_ns: row.get(3)?,
                    inode: row.get(4)?,
                },
            })
        })?;
        rows.collect()
    }

    /// Removes a folder that is gone, with all below it.
    fn remove_below(&mut self, parent_id: i64, name: Name<'_>) -> rusqlite::Result<()> {
        let mut select = self.connection.prepare_cached(FOLDERS_BELOW)?;
        let ids = select.query_map(params![parent_id, name], |row| row.get::<_, i64>(0))?;
        let ids: Vec<i64> = ids.collect::<rusqlite::Result<_>>()?;
        let mut entries = self
            .connection
            .prepare_cached("DELETE FROM entry WHERE folder_id = ?1")?;
        let mut folders = self
            .connection
            .prepare_cached("DELETE FROM folder WHERE id = ?1")?;
        for id in ids {
            self.writes.entries_removed += entries.execute([id])? as u64;
            self.writes.folders_removed += folders.execute([id])? as u64;
        }
        Ok(())
    }

    pub(super) fn writes(&self) -> RowWrites {
        self.writes
    }

    pub(super) fn commits(&self) -> u64 {
        self.commits
    }

    pub(super) fn sql_ns(&self) -> u64 {
        self.stopwatch.wall_ns()
    }

    pub(super) fn sql_cpu_ns(&self) -> u64 {
        self.stopwatch.cpu_ns()
    }
}

/// Inserts or updates one entry.
fn put(
    statement: &mut CachedStatement<'_>,
    folder_id: i64,
    name: Name<'_>,
    entry: &EntryRecord,
) -> rusqlite::Result<()> {
    let figures = &entry.figures;
    statement.execute(params![
        folder_id,
        name,
        entry.kind.letter(),
        figures.size_bytes,
        figures.mtime_ns,
        figures.inode,
    ])?;
    Ok(())
}
