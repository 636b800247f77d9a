//! Stores of both engines: creating, opening, loading, cleaning up after a process that was
//! killed, and looking whether all is well. Reading and writing blobs is [`super::session`]'s
//! business.

use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use rustix::fs::fsync;

use super::Means;
use super::folder::{CONTENT, Folder, Name};
use super::mark;
use super::session::{ExternalSession, Index};
use crate::engine::{Content, EngineError, Session, Store};
use crate::files::{Layout, open_directory};
use crate::sqlite::{self, Connection, Library, LibraryChoice, OpenMode, at};

/// The database, in the store's directory.
const INDEX: &str = "index.db";

/// Blobs between two reports of progress.
const PROGRESS_BLOBS: u64 = 256;

const SCHEMA: &str = "\
    CREATE TABLE entry(k INTEGER PRIMARY KEY, mode INT, mtime INT, size INT, file TEXT, v BLOB); \
    CREATE TABLE store(name TEXT PRIMARY KEY, value TEXT)";

/// What `inline_limit` is noted as in a store of `external`.
const NONE_INLINE: &str = "none";

pub(super) struct ExternalStore {
    path: PathBuf,
    means: Means,
    /// Commits made by all sessions of this store.
    commits: Arc<AtomicU64>,
}

/// The database of a store.
pub(super) fn index_path(store: &Path) -> PathBuf {
    store.join(INDEX)
}

fn inline_limit(means: &Means) -> String {
    means
        .inline_limit
        .map_or_else(|| NONE_INLINE.to_owned(), |limit| limit.to_string())
}

pub(super) fn create(path: &Path, means: Means) -> Result<ExternalStore, EngineError> {
    fs::create_dir(path).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => EngineError::Exists(path.to_owned()),
        _ => EngineError::io("create", path)(error),
    })?;
    fill_directory(path, &means).inspect_err(|_| {
        // Ours, made a moment ago. The first failure is the one to report.
        let _ = fs::remove_dir_all(path);
    })?;
    Ok(ExternalStore::new(path, means))
}

fn fill_directory(path: &Path, means: &Means) -> Result<(), EngineError> {
    let content = path.join(CONTENT);
    fs::create_dir(&content).map_err(EngineError::io("create", &content))?;
    let notes = format!(
        "{SCHEMA}; INSERT INTO store VALUES('layout', '{}'), ('inline_limit', '{}')",
        means.layout.word(),
        inline_limit(means)
    );
    sqlite::create_file(&index_path(path), &means.index, &notes)?;
    if !means.synchronises {
        return Ok(());
    }
    let parent = match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    for folder in [path, parent] {
        open_directory(folder)
            .and_then(fsync)
            .map_err(|errno| EngineError::io("synchronise", folder)(errno.into()))?;
    }
    Ok(())
}

pub(super) fn open(path: &Path, means: Means) -> Result<ExternalStore, EngineError> {
    require_store(path)?;
    let connection = open_index(path, &means)?;
    clean(path, &means, connection)?;
    Ok(ExternalStore::new(path, means))
}

/// Refuses what is no directory with an index and a folder of contents.
fn require_store(path: &Path) -> Result<(), EngineError> {
    let is = |path: PathBuf, right: fn(&fs::Metadata) -> bool| match path.metadata() {
        Ok(metadata) => Ok(right(&metadata)),
        Err(error) => match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Ok(false),
            _ => Err(EngineError::io("open", &path)(error)),
        },
    };
    let is_store = is(index_path(path), fs::Metadata::is_file)?
        && is(path.join(CONTENT), fs::Metadata::is_dir)?;
    match is_store {
        true => Ok(()),
        false => Err(EngineError::NoStore(path.to_owned())),
    }
}

/// A connection to the index, with all settings in force, the noted ones among them.
pub(super) fn open_index(path: &Path, means: &Means) -> Result<Connection, EngineError> {
    let index = index_path(path);
    let mut connection = sqlite::connect(&index, &means.index)?;
    let noted = notes(&mut connection, path)?;
    let asked = [
        ("layout", means.layout.word().to_owned()),
        ("inline_limit", inline_limit(means)),
    ];
    for ((name, asked), got) in asked.into_iter().zip(noted) {
        if asked != got {
            return Err(EngineError::NotInForce { name, asked, got });
        }
    }
    sqlite::put_in_force(&mut connection, &index, &means.index)?;
    Ok(connection)
}

/// The layout and the limit that stand in the index.
pub(super) fn notes(connection: &mut Connection, path: &Path) -> Result<[String; 2], EngineError> {
    let mut note = |name: &str| {
        let asked = connection.query_text(&format!("SELECT value FROM store WHERE name='{name}'"));
        let missing = || EngineError::Damaged {
            path: index_path(path),
            reason: format!("it is a database, but says nothing of the store's {name}"),
        };
        match asked {
            Ok(found) => found.ok_or_else(missing),
            Err(error) if error.is_sql() => Err(missing()),
            Err(error) => Err(at(&index_path(path))(error)),
        }
    };
    Ok([note("layout")?, note("inline_limit")?])
}

/// Removes what processes that were killed have left, if there is a mark of any: files that no row
/// names. Whoever is at work meanwhile is left in peace, and the rest to the next opening.
fn clean(path: &Path, means: &Means, connection: Connection) -> Result<(), EngineError> {
    let dead = mark::of_the_dead(path)?;
    if dead.is_empty() {
        return connection.close().map_err(at(&index_path(path)));
    }
    let database = index_path(path);
    let failed = at(&database);
    let mut index = Index::new(path, means, connection)?;
    // Rows that a loss of power would bring back name files that must not go before.
    if !index.make_durable(path)? {
        return Ok(());
    }
    let connection = &mut index.connection;
    // A file whose row is not committed yet is made by whoever holds this lock.
    match connection.execute("BEGIN IMMEDIATE") {
        Err(error) if error.is_busy() => return Ok(()),
        begun => begun.map_err(&failed)?,
    }
    let folder = Folder::open(path, means.layout)?;
    let named = named_files(connection, path)?;
    let (leftovers, _) = folder.others_than(&named)?;
    for name in &leftovers {
        folder.remove(name)?;
    }
    connection.execute("ROLLBACK").map_err(&failed)?;
    for (mark, _lock) in dead {
        // One that stays makes the next opening look again.
        let _ = fs::remove_file(mark);
    }
    index.connection.close().map_err(failed)
}

/// All files that rows name.
fn named_files(connection: &mut Connection, path: &Path) -> Result<HashSet<Name>, EngineError> {
    let mut named = HashSet::new();
    let mut collect = || {
        let select = connection.prepare("SELECT file FROM entry WHERE file IS NOT NULL")?;
        let mut statement = connection.statement(select);
        while let Some(mut row) = statement.step()? {
            named.extend(Name::new(row.blob(0)?));
        }
        statement.reset()
    };
    collect().map_err(at(&index_path(path)))?;
    Ok(named)
}

impl ExternalStore {
    fn new(path: &Path, means: Means) -> Self {
        Self {
            path: path.to_owned(),
            means,
            commits: Arc::new(AtomicU64::new(0)),
        }
    }

    /// Makes all files and inserts all rows in one transaction, in the order of the keys.
    fn insert_all(
        &self,
        index: &mut Index,
        content: &dyn Content,
        progress: &mut dyn FnMut(u64),
    ) -> Result<(), EngineError> {
        let database = index_path(&self.path);
        let folder = Folder::open(&self.path, self.means.layout)?;
        let mut changed = BTreeSet::new();
        let mut blob = Vec::new();
        index
            .connection
            .execute("BEGIN EXCLUSIVE")
            .map_err(at(&database))?;
        for key in 1..=content.count() {
            content
                .fill(key, &mut blob)
                .map_err(EngineError::io("make the content of", &self.path))?;
            let is_inline = self.means.is_inline(blob.len());
            let name = (!is_inline).then(|| folder.name(key, ""));
            let is_made = match &name {
                Some(name) => folder.create(name, &blob, &mut changed)?,
                None => true,
            };
            if !is_made {
                return Err(EngineError::Exists(self.path.join(CONTENT)));
            }
            index
                .insert(key, &blob, name.as_ref())
                .map_err(at(&database))?;
            if key % PROGRESS_BLOBS == 0 || key == content.count() {
                progress(key);
            }
        }
        index.connection.execute("COMMIT").map_err(at(&database))
    }
}

impl Store for ExternalStore {
    /// Loads without a journal and without synchronising anything, whatever the settings; they are
    /// put in force again afterwards.
    fn load(
        &self,
        content: &dyn Content,
        progress: &mut dyn FnMut(u64),
    ) -> Result<(), EngineError> {
        let database = index_path(&self.path);
        let connection = sqlite::connect_for_loading(&database, &self.means.index)?;
        let mut index = Index::new(&self.path, &self.means, connection)?;
        self.insert_all(&mut index, content, progress)?;
        index.connection.close().map_err(at(&database))?;
        let connection = open_index(&self.path, &self.means)?;
        connection.close().map_err(at(&database))
    }

    fn session(&self) -> Result<Box<dyn Session>, EngineError> {
        let commits = Arc::clone(&self.commits);
        let session = ExternalSession::open(&self.path, self.means.clone(), commits)?;
        Ok(Box::new(session))
    }
}

/// A connection for looking at a store of either engine, whatever its settings, and its layout.
fn look(path: &Path) -> Result<(Connection, Folder), EngineError> {
    require_store(path)?;
    let index = index_path(path);
    let library = Library::load(&LibraryChoice::Bundled)
        .map_err(|error| EngineError::Unavailable(error.to_string()))?;
    let mut connection =
        Connection::open(library, &index, OpenMode::ReadWrite).map_err(at(&index))?;
    let [layout, _] = notes(&mut connection, path)?;
    let layout = match layout.as_str() {
        "tree" => Layout::Tree,
        _ => Layout::Flat,
    };
    Ok((connection, Folder::open(path, layout)?))
}

pub(super) fn examine(path: &Path) -> Result<Option<String>, EngineError> {
    let (mut connection, folder) = look(path)?;
    let database = index_path(path);
    let failed = at(&database);
    let verdict = connection
        .query_text("PRAGMA integrity_check(1)")
        .map_err(&failed)?
        .unwrap_or_default();
    if verdict != "ok" {
        return Ok(Some(verdict));
    }
    let sql = "SELECT k, size, file FROM entry WHERE file IS NOT NULL ORDER BY k";
    let select = connection.prepare(sql).map_err(&failed)?;
    let mut statement = connection.statement(select);
    while let Some(mut row) = statement.step().map_err(&failed)? {
        let (key, size) = (row.i64(0), row.i64(1).cast_unsigned());
        let Ok(name) = Name::new(row.blob(2).map_err(&failed)?) else {
            return Ok(Some(format!("row {key} names a file with a zero byte")));
        };
        match folder.bytes_of(&name)? {
            Some(bytes) if bytes == size => {}
            Some(bytes) => {
                let reason = format!("row {key} says {size} bytes, and {name:?} has {bytes}");
                return Ok(Some(reason));
            }
            None => {
                return Ok(Some(format!(
                    "row {key} names {name:?}, which is not there"
                )));
            }
        }
    }
    Ok(None)
}

pub(super) fn stray_files(path: &Path) -> Result<u64, EngineError> {
    let (mut connection, folder) = look(path)?;
    let named = named_files(&mut connection, path)?;
    drop(connection);
    let (leftovers, foreign) = folder.others_than(&named)?;
    let index = index_path(path);
    let mut known = sqlite::companions(&index);
    known.extend([index, path.join(CONTENT)]);
    let entries = path.read_dir().map_err(EngineError::io("list", path))?;
    let others = entries
        .filter_map(Result::ok)
        .filter(|entry| !known.contains(&entry.path()))
        .count();
    Ok((leftovers.len() + foreign.len() + others) as u64)
}
