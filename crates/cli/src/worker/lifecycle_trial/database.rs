//! What only a database has to do in its life: how its pages lie, its own ways of making a copy, and giving
//! back the space of what was removed. All by the SQLite that is built in, through connections of its own:
//! nothing else has the database open meanwhile.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, ErrorCode, OpenFlags};
use sqlitmus_engines::{Engine, EngineError};

use crate::failure::with_causes;

/// `PRAGMA auto_vacuum` that keeps free pages until they are asked for.
const INCREMENTAL: i64 = 2;

/// How the pages of a database lie.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Pages {
    /// Pages that hold content: leaves and overflow.
    pub(super) content: u64,
    /// Stretches of neighbouring pages that these are in, in the order in which the table is read.
    pub(super) runs: u64,
    /// Pages that hold nothing.
    pub(super) free: u64,
}

/// The database that a store is, if it is one and nothing beside.
pub(super) fn of(engine: &dyn Engine, store: &Path) -> Option<PathBuf> {
    (engine.name() == "sqlite").then(|| store.to_owned())
}

/// Counts pages and the stretches that they lie in.
pub(super) fn pages(path: &Path) -> Result<Pages, EngineError> {
    let counted = || -> rusqlite::Result<Pages> {
        let database = open(path)?;
        let free: i64 = database.query_row("PRAGMA freelist_count", [], |row| row.get(0))?;
        let mut pages = Pages {
            free: free.unsigned_abs(),
            ..Pages::default()
        };
        // Ordered by path, the pages of a tree are in logical order: each leaf, then what overflows it.
        let mut select = database.prepare(
            "SELECT name, pageno FROM dbstat WHERE pagetype <> 'internal' ORDER BY name, path",
        )?;
        let mut rows = select.query([])?;
        let mut previous: Option<(String, i64)> = None;
        while let Some(row) = rows.next()? {
            let page: (String, i64) = (row.get(0)?, row.get(1)?);
            let follows = previous
                .as_ref()
                .is_some_and(|(tree, number)| *tree == page.0 && page.1 == number + 1);
            pages.content += 1;
            pages.runs += u64::from(!follows);
            previous = Some(page);
        }
        Ok(pages)
    };
    counted().map_err(|error| refused(path, &error))
}

/// Makes a compact copy; one that keeps free pages until they are asked for, if it is to.
pub(super) fn vacuum_into(
    path: &Path,
    target: &Path,
    keeps_free_pages: bool,
) -> Result<(), EngineError> {
    let copied = || -> rusqlite::Result<()> {
        let database = open(path)?;
        if keeps_free_pages {
            // In force for what is written next, which is the copy alone.
            database.pragma_update(None, "auto_vacuum", INCREMENTAL)?;
        }
        let name = target.to_string_lossy();
        database.execute("VACUUM INTO ?1", [name.as_ref()])?;
        Ok(())
    };
    copied().map_err(|error| refused(target, &error))
}

/// Copies page by page through SQLite's backup interface, in one step.
pub(super) fn back_up(path: &Path, target: &Path) -> Result<(), EngineError> {
    let copied = || -> rusqlite::Result<()> {
        let database = open(path)?;
        let mut copy = Connection::open(target)?;
        let backup = rusqlite::backup::Backup::new(&database, &mut copy)?;
        backup.step(-1).map(drop)
    };
    copied().map_err(|error| refused(target, &error))
}

/// Writes the database anew without free pages, and makes the file shorter.
pub(super) fn vacuum(path: &Path) -> Result<(), EngineError> {
    let cleaned = || -> rusqlite::Result<()> {
        let database = open(path)?;
        database.execute_batch("VACUUM")?;
        checkpoint(&database)
    };
    cleaned().map_err(|error| refused(path, &error))
}

/// Gives all free pages back, and makes the file shorter.
pub(super) fn incremental_vacuum(path: &Path) -> Result<(), EngineError> {
    let cleaned = || -> rusqlite::Result<()> {
        let database = open(path)?;
        let mode: i64 = database.query_row("PRAGMA auto_vacuum", [], |row| row.get(0))?;
        if mode != INCREMENTAL {
            let reason = format!("auto_vacuum is {mode}, not {INCREMENTAL}");
            return Err(rusqlite::Error::InvalidParameterName(reason));
        }
        // A step for every page: the statement has to be run to its end.
        let mut statement = database.prepare("PRAGMA incremental_vacuum")?;
        let mut rows = statement.query([])?;
        while rows.next()?.is_some() {}
        drop(rows);
        drop(statement);
        checkpoint(&database)
    };
    cleaned().map_err(|error| refused(path, &error))
}

fn open(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    Connection::open_with_flags(path, flags)
}

fn checkpoint(database: &Connection) -> rusqlite::Result<()> {
    database.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
}

/// A full disk is the machine's, and ends the run; all else is this arm's.
fn refused(path: &Path, error: &rusqlite::Error) -> EngineError {
    let kind = match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => std::io::ErrorKind::StorageFull,
        _ => std::io::ErrorKind::Other,
    };
    let error = std::io::Error::new(kind, with_causes(error));
    EngineError::io("maintain the database", path)(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A database of 200 blobs of ten pages, and where it is.
    fn database(folder: &Path) -> PathBuf {
        let path = folder.join("a");
        let database = Connection::open(&path).expect("created");
        database
            .execute_batch(
                "PRAGMA page_size = 4096; PRAGMA journal_mode = WAL;
                 CREATE TABLE kv(k INTEGER PRIMARY KEY, v BLOB);
                 WITH RECURSIVE number(k) AS (SELECT 1 UNION ALL SELECT k + 1 FROM number WHERE k < 200)
                 INSERT INTO kv SELECT k, randomblob(40000) FROM number;",
            )
            .expect("filled");
        path
    }

    #[test]
    fn pages_lie_in_runs_and_removal_leaves_free_ones() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = database(folder.path());
        let new = pages(&path).expect("counted");
        assert!(new.content >= 2000 && new.free == 0, "{new:?}");
        assert!(new.runs < new.content / 4, "{new:?}");
        let connection = Connection::open(&path).expect("opened");
        connection
            .execute_batch(
                "DELETE FROM kv WHERE k % 2 = 0;
                 INSERT INTO kv SELECT k + 1000, randomblob(60000) FROM kv WHERE k < 100;
                 DELETE FROM kv WHERE k % 10 = 1;",
            )
            .expect("changed");
        drop(connection);
        let old = pages(&path).expect("counted");
        assert!(old.free > 0, "{old:?}");
        assert!(old.runs * new.content > new.runs * old.content, "{old:?}");
        vacuum(&path).expect("cleaned");
        let clean = pages(&path).expect("counted");
        assert_eq!(clean.free, 0);
    }

    #[test]
    fn copies_hold_the_same_and_give_their_space_back() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = database(folder.path());
        let target = |name: &str| folder.path().join(name);
        vacuum_into(&path, &target("into"), false).expect("copied");
        back_up(&path, &target("backup")).expect("copied");
        vacuum_into(&path, &target("incremental"), true).expect("copied");
        let rows = |path: &Path| -> i64 {
            let database = Connection::open(path).expect("opened");
            let sum = "SELECT sum(k) FROM kv";
            database.query_row(sum, [], |row| row.get(0)).expect("read")
        };
        for name in ["into", "backup", "incremental"] {
            assert_eq!(rows(&target(name)), rows(&path), "{name}");
        }
        let incremental = target("incremental");
        let connection = Connection::open(&incremental).expect("opened");
        connection
            .execute_batch("DELETE FROM kv WHERE k % 4 = 0")
            .expect("removed");
        drop(connection);
        let before = std::fs::metadata(&incremental).expect("there").len();
        incremental_vacuum(&incremental).expect("given back");
        let after = std::fs::metadata(&incremental).expect("there").len();
        assert!(after < before * 8 / 10, "{after} of {before}");
        assert!(
            incremental_vacuum(&path).is_err(),
            "it was not made for that"
        );
    }
}
