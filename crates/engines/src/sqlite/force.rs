//! Putting settings in force on a connection, and asking the live connection what is in force.
//! What the settings mean is [`super::settings`]'s business.

use std::path::Path;

use sqlitmus_core::environment::said;
use sqlitmus_core::settings::SettingsError;

use super::connection::{Connection, OpenMode};
use super::error::SqliteError;
use super::layout::Layout;
use super::library::{Library, LibraryError, Threading};
use super::settings::{Checkpoints, ENGINE, Mapped, Plan, Synchronous};
use crate::engine::{EngineError, ReadBack};

/// SQLite's default for `PRAGMA wal_autocheckpoint`, in pages: while a long batch is written, the
/// log is copied as it would be without us, so that it does not grow beyond all bounds.
const AUTOMATIC_CHECKPOINT_PAGES: u32 = 1000;

/// More than any database: "all".
const ALL_BYTES: u64 = i64::MAX as u64;

/// The error to report for a database.
pub(crate) fn at(path: &Path) -> impl Fn(SqliteError) -> EngineError + use<'_> {
    move |source| {
        let path = path.to_owned();
        if source.is_damaged() {
            EngineError::Damaged {
                path,
                reason: source.message,
            }
        } else {
            EngineError::Sqlite { path, source }
        }
    }
}

/// The library that the plan names.
pub(super) fn library(plan: &Plan) -> Result<&'static Library, EngineError> {
    Library::load(&plan.library).map_err(refused)
}

/// Sets the library that the plan names up for this process: what cannot be changed any more once
/// it is in use.
pub(crate) fn set_up(plan: &Plan) -> Result<(), EngineError> {
    let loaded = Library::load_with(&plan.library, plan.memory_statistics);
    loaded.map(|_| ()).map_err(refused)
}

fn refused(error: LibraryError) -> EngineError {
    match error {
        LibraryError::Missing(_) | LibraryError::Unnamed(_) => {
            EngineError::Unavailable(error.to_string())
        }
        _ => EngineError::Settings(SettingsError::Contradiction {
            engine: ENGINE.to_owned(),
            reason: error.to_string(),
            hint: "`library` is bundled, default-options, system, or the path of a \
                   libsqlite3.so"
                .to_owned(),
        }),
    }
}

/// A connection to an existing database, with all settings in force.
pub(super) fn open(path: &Path, plan: &Plan) -> Result<Connection, EngineError> {
    let mut connection = connect(path, plan)?;
    check_table(&mut connection, path, plan)?;
    put_in_force(&mut connection, path, plan)?;
    Ok(connection)
}

/// A connection to an existing database, with nothing but the busy timeout set.
pub(crate) fn connect(path: &Path, plan: &Plan) -> Result<Connection, EngineError> {
    let mut connection =
        Connection::open_sharing(library(plan)?, path, OpenMode::ReadWrite, plan.sharing)
            .map_err(at(path))?;
    connection
        .set_busy_timeout_ms(plan.busy_timeout_ms)
        .map_err(at(path))?;
    Ok(connection)
}

/// Sets everything that lies with a connection, then asks for all of it.
pub(crate) fn put_in_force(
    connection: &mut Connection,
    path: &Path,
    plan: &Plan,
) -> Result<(), EngineError> {
    let mapped = match plan.mapped {
        Mapped::All => ALL_BYTES,
        Mapped::Bytes(bytes) => bytes,
    };
    let automatic_checkpoint = match plan.checkpoints {
        Checkpoints::Apart => 0,
        Checkpoints::Included | Checkpoints::Automatic => AUTOMATIC_CHECKPOINT_PAGES,
    };
    let pragmas = [
        ("locking_mode", "normal".to_owned()),
        ("cache_size", format!("-{}", plan.cache_bytes / 1024)),
        ("mmap_size", mapped.to_string()),
        ("journal_mode", plan.journal_mode.word().to_owned()),
        ("synchronous", plan.synchronous.word().to_owned()),
        ("wal_autocheckpoint", automatic_checkpoint.to_string()),
        // Where fsync leaves data in the device's cache (macOS), a sync means that it does not:
        // as on every other system.
        ("fullfsync", "1".to_owned()),
        ("checkpoint_fullfsync", "1".to_owned()),
    ];
    for (name, value) in pragmas {
        connection.set_pragma(name, value).map_err(at(path))?;
    }
    let in_force = read_back(connection, path, plan)?;
    let got = |name: &str| in_force.get(name).cloned().unwrap_or_default();
    let expected = [
        ("page_size", plan.page_bytes.to_string()),
        ("cache", plan.cache_bytes.to_string()),
        ("journal_mode", plan.journal_mode.word().to_owned()),
        ("synchronous", plan.synchronous.word().to_owned()),
        ("locking_mode", "normal".to_owned()),
        ("wal_autocheckpoint", automatic_checkpoint.to_string()),
        ("busy_timeout", busy_timeout(plan.busy_timeout_ms.into())),
    ];
    for (name, asked) in expected {
        if got(name) != asked {
            let got = got(name);
            return Err(EngineError::NotInForce { name, asked, got });
        }
    }
    check_mapped(plan, &got("mmap_size"), &got("database_bytes"))
}

/// A library caps the mapping (`SQLITE_MAX_MMAP_SIZE`). That is as good as what was asked for, as
/// long as the whole database is below the cap.
fn check_mapped(plan: &Plan, got: &str, database_bytes: &str) -> Result<(), EngineError> {
    let number = |text: &str| text.parse::<u64>().unwrap_or(0);
    let covers_all = number(got) >= number(database_bytes);
    let (asked, in_force) = match plan.mapped {
        Mapped::All => ("all".to_owned(), covers_all),
        Mapped::Bytes(bytes) => {
            let capped = number(got) < bytes && covers_all;
            (bytes.to_string(), number(got) == bytes || capped)
        }
    };
    if in_force {
        return Ok(());
    }
    Err(EngineError::NotInForce {
        name: "mmap",
        asked,
        got: format!("{got}, which is less than the {database_bytes} bytes of the database"),
    })
}

/// What the live connection says about itself. Sizes are in bytes, words in small letters.
pub(crate) fn read_back(
    connection: &mut Connection,
    path: &Path,
    plan: &Plan,
) -> Result<ReadBack, EngineError> {
    let library = connection.library();
    let mut back = ReadBack::new();
    let mut set = |name: &str, value: String| back.insert(name.to_owned(), value);
    set("library", library.choice().to_string());
    set(said::SQLITE_VERSION, library.version());
    set(said::SQLITE_SOURCE_ID, library.source_id());
    set(said::COMPILE_OPTIONS, library.compile_options().join(" "));
    if let Some(build) = library.build() {
        set(said::BUILD, build);
    }
    let threading = match library.threading() {
        Threading::Single => "single-thread",
        Threading::Multi => "multi-thread",
        Threading::Serialized => "serialized",
    };
    set(said::THREADING, threading.to_owned());

    let mut number = |name: &str| -> Result<i64, EngineError> {
        // A pragma without an answer is one that was left out of the library: nothing in force.
        Ok(connection.pragma_i64(name).map_err(at(path))?.unwrap_or(0))
    };
    let page_bytes = number("page_size")?;
    let cache = match number("cache_size")? {
        // Below zero it is KiB, otherwise pages.
        size if size < 0 => -1024 * size,
        pages => pages * page_bytes,
    };
    set("cache", cache.to_string());
    set("page_size", page_bytes.to_string());
    let database_bytes = number("page_count")? * page_bytes;
    set("database_bytes", database_bytes.to_string());
    let mapped = number("mmap_size")?;
    set("mmap_size", mapped.to_string());
    // "all" is no number of SQLite's: it is in force if the number covers the database.
    let covers_all = plan.mapped == Mapped::All && mapped >= database_bytes;
    let all = covers_all.then(|| "all".to_owned());
    set("mmap", all.unwrap_or_else(|| mapped.to_string()));
    for name in [
        "wal_autocheckpoint",
        "secure_delete",
        "auto_vacuum",
        "fullfsync",
    ] {
        set(name, number(name)?.to_string());
    }
    set("busy_timeout", busy_timeout(number("busy_timeout")?));
    let synchronous = number("synchronous")?;
    let word = usize::try_from(synchronous)
        .ok()
        .and_then(|index| Synchronous::ALL.get(index))
        .map_or_else(|| synchronous.to_string(), |known| known.word().to_owned());
    set("synchronous", word);
    for name in ["journal_mode", "locking_mode"] {
        let word = connection.pragma_text(name).map_err(at(path))?;
        set(name, word.unwrap_or_default());
    }
    let statistics = match library.keeps_memory_statistics() {
        Some(true) => "on",
        Some(false) => "off",
        None => "unknown",
    };
    set("memory_statistics_kept", statistics.to_owned());
    Ok(back)
}

/// The setting for a number of milliseconds.
fn busy_timeout(timeout_ms: i64) -> String {
    match timeout_ms {
        0 => "none".to_owned(),
        timeout_ms => timeout_ms.to_string(),
    }
}

/// Checks that the live library keeps memory statistics as asked. Only where it could be set up
/// for that: a process that uses several libraries, or one that was in use before, cannot.
pub(super) fn check_memory_statistics(plan: &Plan, got: &ReadBack) -> Result<(), EngineError> {
    let Some(asked) = plan
        .memory_statistics
        .map(|on| if on { "on" } else { "off" })
    else {
        return Ok(());
    };
    match got.get("memory_statistics_kept") {
        Some(got) if got != asked => Err(EngineError::NotInForce {
            name: "memory_statistics",
            asked: asked.to_owned(),
            got: got.clone(),
        }),
        _ => Ok(()),
    }
}

/// Checks that the database holds the tables of the plan's layout.
fn check_table(connection: &mut Connection, path: &Path, plan: &Plan) -> Result<(), EngineError> {
    let Some(layout) = layout(connection, path)? else {
        return Err(EngineError::Damaged {
            path: path.to_owned(),
            reason: "it is a database, but has no table of blobs such as kv(k, v)".to_owned(),
        });
    };
    let mut expected = vec![(
        "layout",
        plan.layout.word().to_owned(),
        layout.word().to_owned(),
    )];
    if layout == Layout::Chunked {
        let got = chunk_bytes(connection, path)?;
        expected.push(("chunk_bytes", plan.chunk_bytes.to_string(), got));
    }
    match expected.into_iter().find(|(_, asked, got)| asked != got) {
        None => Ok(()),
        Some((name, asked, got)) => Err(EngineError::NotInForce { name, asked, got }),
    }
}

/// What the tables look like; `None` if there is none that this engine makes.
pub(super) fn layout(
    connection: &mut Connection,
    path: &Path,
) -> Result<Option<Layout>, EngineError> {
    for layout in Layout::ALL {
        let (table, expected) = layout.known_by();
        let columns = connection
            .query_text(&format!(
                "SELECT group_concat(lower(name)) FROM pragma_table_info('{table}')"
            ))
            .map_err(at(path))?;
        if columns.as_deref() != Some(expected) {
            continue;
        }
        if layout != Layout::Rowid {
            return Ok(Some(layout));
        }
        // Only a table with rowids has a column of that name.
        return match connection.query_i64("SELECT rowid FROM kv LIMIT 1") {
            Ok(_) => Ok(Some(Layout::Rowid)),
            Err(error) if error.is_sql() => Ok(Some(Layout::WithoutRowid)),
            Err(error) => Err(at(path)(error)),
        };
    }
    Ok(None)
}

/// Bytes in a chunk, which stand in the header of a database that has chunks.
pub(super) fn chunk_bytes(connection: &mut Connection, path: &Path) -> Result<String, EngineError> {
    let noted = connection.pragma_i64("user_version").map_err(at(path))?;
    Ok(noted.unwrap_or(0).to_string())
}

/// Files that SQLite keeps beside a database, by its naming.
pub(crate) fn companions(path: &Path) -> Vec<std::path::PathBuf> {
    ["-journal", "-wal", "-shm"]
        .iter()
        .map(|suffix| {
            let mut name = path.as_os_str().to_owned();
            name.push(suffix);
            name.into()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use sqlitmus_core::settings::Settings;

    use super::*;

    #[test]
    fn a_mapping_is_in_force_if_it_is_as_asked_or_covers_the_database() {
        let check = |asked: &str, got: &str, database_bytes: &str| {
            let settings = Settings::from_pairs([("mmap", asked)]);
            let plan = Plan::from(&settings).expect("valid");
            check_mapped(&plan, got, database_bytes)
        };
        let gib = |number: u64| (number << 30).to_string();
        assert!(check("0", "0", &gib(1)).is_ok());
        assert!(check("1GiB", &gib(1), &gib(5)).is_ok());
        assert!(check("all", &gib(2), &gib(1)).is_ok());
        assert!(check("4GiB", &gib(2), &gib(1)).is_ok());
        let error = check("all", &gib(2), &gib(3)).expect_err("capped");
        assert!(error.to_string().contains("asked for all"), "{error}");
        assert!(check("4GiB", &gib(2), &gib(3)).is_err());
        // More than was asked for is not what was asked for.
        assert!(check("0", &gib(2), &gib(1)).is_err());
    }

    #[test]
    fn companions_are_named_after_the_database() {
        let names = companions(Path::new("/place/blobs.db"));
        assert_eq!(names[1], Path::new("/place/blobs.db-wal"));
    }
}
