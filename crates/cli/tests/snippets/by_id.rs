// SQLite 16 KiB, mmap | measured by sqlitmus advise /some/where
use rusqlite::{Connection, OptionalExtension, Result, params};

/// Opens the store, and makes it if it is not there.
pub fn open_store(path: &str) -> Result<Connection> {
    let store = Connection::open(path)?;
    // page_size takes effect when the file is made.
    store.execute_batch(
        "PRAGMA page_size = 16384;
         PRAGMA journal_mode = wal;
         PRAGMA synchronous = normal;
         PRAGMA mmap_size = 1099511627776;
         PRAGMA cache_size = -2000;
         PRAGMA busy_timeout = 5000;
         CREATE TABLE IF NOT EXISTS file(id INTEGER PRIMARY KEY, content BLOB);",
    )?;
    Ok(store)
}

/// The content, or `None`. To use it where it lies, without a copy, take `row.get_ref(0)?.as_blob()?` in the closure.
pub fn read(store: &Connection, id: i64) -> Result<Option<Vec<u8>>> {
    store
        .prepare_cached("SELECT content FROM file WHERE id = ?1")?
        .query_row([id], |row| row.get(0))
        .optional()
}

/// One transaction. For many at once: `store.unchecked_transaction()?` before, `commit()?` after.
pub fn write(store: &Connection, id: i64, content: &[u8]) -> Result<()> {
    store
        .prepare_cached("INSERT OR REPLACE INTO file(id, content) VALUES (?1, ?2)")?
        .execute(params![id, content])
        .map(drop)
}
