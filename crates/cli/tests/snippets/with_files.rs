// SQLite 16 KiB, mmap | measured by sqlitmus advise /some/where
use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rusqlite::{Connection, OptionalExtension, params};

/// Bytes; what is larger is a file.
const INLINE_LIMIT: usize = 4;
/// Whether a file is on the device before the row that names it.
const SYNC: bool = true;

type Error = Box<dyn std::error::Error + Send + Sync>;

/// A database, and a folder for what is large. What a crash leaves in the folder without a row does no harm.
pub struct Store {
    database: Connection,
    content: PathBuf,
}

impl Store {
    /// Opens the store, and makes it if it is not there.
    pub fn open(directory: &Path) -> Result<Self, Error> {
        let content = directory.join("content");
        fs::create_dir_all(&content)?;
        let database = Connection::open(directory.join("index.db"))?;
        // page_size takes effect when the file is made.
        database.execute_batch(
            "PRAGMA page_size = 16384;
             PRAGMA journal_mode = wal;
             PRAGMA synchronous = normal;
             PRAGMA mmap_size = 1099511627776;
             PRAGMA cache_size = -2000;
             PRAGMA busy_timeout = 5000;
             CREATE TABLE IF NOT EXISTS file(id INTEGER PRIMARY KEY, content BLOB, path TEXT);",
        )?;
        Ok(Self { database, content })
    }

    /// The content, or `None`.
    pub fn read(&self, id: i64) -> Result<Option<Vec<u8>>, Error> {
        let mut missing = None;
        loop {
            let row: Option<(Option<Vec<u8>>, Option<String>)> = self
                .database
                .prepare_cached("SELECT content, path FROM file WHERE id = ?1")?
                .query_row([id], |row| Ok((row.get(0)?, row.get(1)?)))
                .optional()?;
            let Some((content, path)) = row else {
                return Ok(None);
            };
            let Some(path) = path else {
                return Ok(content);
            };
            match fs::read(self.content.join(&path)) {
                Ok(content) => return Ok(Some(content)),
                // Somebody has replaced it meanwhile, and the row names another now; or it is lost.
                Err(error)
                    if error.kind() == ErrorKind::NotFound && missing.as_ref() != Some(&path) =>
                {
                    missing = Some(path);
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// One transaction. The old file goes when nothing names it any more.
    pub fn write(&mut self, id: i64, content: &[u8]) -> Result<(), Error> {
        let path = match content.len() > INLINE_LIMIT {
            true => Some(self.new_file(id, content)?),
            false => None,
        };
        let inline = path.is_none().then_some(content);
        let transaction = self
            .database
            .transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        let old: Option<Option<String>> = transaction
            .prepare_cached("SELECT path FROM file WHERE id = ?1")?
            .query_row([id], |row| row.get(0))
            .optional()?;
        transaction
            .prepare_cached("INSERT OR REPLACE INTO file(id, content, path) VALUES (?1, ?2, ?3)")?
            .execute(params![id, inline, path])?;
        transaction.commit()?;
        if let Some(old) = old.flatten() {
            fs::remove_file(self.content.join(old))?;
        }
        Ok(())
    }

    fn new_file(&self, id: i64, content: &[u8]) -> Result<String, Error> {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
        let folder = format!("{:02}", id.rem_euclid(100));
        let path = format!("{folder}/{id}-{:x}", now.as_nanos());
        let folder = self.content.join(folder);
        fs::create_dir_all(&folder)?;
        let mut file = fs::File::create_new(self.content.join(&path))?;
        file.write_all(content)?;
        if SYNC {
            file.sync_all()?;
            for folder in [&folder, &self.content] {
                fs::File::open(folder)?.sync_all()?;
            }
        }
        Ok(path)
    }
}
