//! The `sqlite` engine beyond what every engine must do: settings are in force, batches become
//! the transactions that were asked for, checkpoints run when they should, and what is not a
//! store is left alone.

use std::fs;
use std::path::{Path, PathBuf};

use sqlitmus_core::dataset::{Dataset, SizeDistribution};
use sqlitmus_core::settings::Settings;
use sqlitmus_engines::sqlite::{Connection, Library, LibraryChoice, OpenMode, Sqlite};
use sqlitmus_engines::{Engine, EngineError, Session, Store};

const COUNT: u64 = 300;

fn dataset() -> Dataset {
    Dataset {
        count: COUNT,
        size: SizeDistribution::Uniform(0, 12_000),
        compressibility: 0.0,
        seed: 5,
    }
}

fn settings(pairs: &[(&str, &str)]) -> Settings {
    Settings::from_pairs(pairs.iter().copied())
}

fn create(path: &Path, pairs: &[(&str, &str)]) -> Box<dyn Store> {
    Sqlite
        .create(path, &settings(pairs))
        .unwrap_or_else(|error| panic!("{pairs:?}: {error}"))
}

fn loaded(path: &Path, pairs: &[(&str, &str)]) -> Box<dyn Store> {
    let store = create(path, pairs);
    let mut last = 0;
    store
        .load(&dataset(), &mut |done| last = done)
        .unwrap_or_else(|error| panic!("{pairs:?}: {error}"));
    assert_eq!(last, COUNT);
    store
}

fn read(session: &mut dyn Session, key: u64) -> Option<Vec<u8>> {
    let mut found = None;
    match session.read(key, &mut |bytes| found = Some(bytes.to_vec())) {
        Ok(()) => assert!(found.is_some()),
        Err(EngineError::Missing { key: missing, .. }) => {
            assert_eq!(missing, key);
            assert_eq!(found, None);
        }
        Err(error) => panic!("{error}"),
    }
    found
}

fn put(session: &mut dyn Session, key: u64, value: &[u8]) {
    let writer = session.writer().expect("it writes");
    writer.begin().expect("begins");
    writer.put(key, value).expect("puts");
    writer.commit().expect("commits");
}

fn log_bytes(path: &Path) -> u64 {
    let log = PathBuf::from(format!("{}-wal", path.display()));
    fs::metadata(log).map_or(0, |metadata| metadata.len())
}

#[test]
fn every_way_of_reading_delivers_what_was_loaded() {
    let scratch = tempfile::tempdir().expect("scratch");
    let mut number = 0;
    for library in ["bundled", "default-options"] {
        for (api, layout) in [
            ("select", "rowid"),
            ("select", "without-rowid"),
            ("select", "name"),
            ("blob", "rowid"),
            ("blob", "name"),
        ] {
            for (read_transaction, mmap, page_size) in [
                ("held", "0", "4096"),
                ("each", "all", "65536"),
                ("held", "1MiB", "512"),
            ] {
                number += 1;
                let path = scratch.path().join(format!("{number}.db"));
                let pairs = [
                    ("library", library),
                    ("api", api),
                    ("layout", layout),
                    ("read_transaction", read_transaction),
                    ("mmap", mmap),
                    ("page_size", page_size),
                ];
                let store = loaded(&path, &pairs);
                let mut session = store.session().expect("opens");
                let mut expected = Vec::new();
                for key in (1..=COUNT).rev().step_by(7) {
                    dataset().fill(key, 0, &mut expected);
                    assert_eq!(
                        read(&mut *session, key).as_ref(),
                        Some(&expected),
                        "{pairs:?}"
                    );
                }
                assert_eq!(read(&mut *session, COUNT + 1), None, "{pairs:?}");
                assert!(read(&mut *session, 1).is_some(), "{pairs:?}");
                let mut keys = Vec::new();
                session.keys(&mut |key| keys.push(key)).expect("lists");
                assert_eq!(keys, (1..=COUNT).collect::<Vec<_>>());
            }
        }
    }
}

#[test]
fn settings_are_in_force_and_read_back() {
    let scratch = tempfile::tempdir().expect("scratch");
    for (number, pairs) in [
        &[
            ("journal_mode", "wal"),
            ("synchronous", "full"),
            ("checkpoint", "included"),
        ][..],
        &[
            ("journal_mode", "delete"),
            ("synchronous", "extra"),
            ("page_size", "8192"),
        ],
        &[
            ("journal_mode", "truncate"),
            ("synchronous", "normal"),
            ("cache", "1024"),
        ],
        &[
            ("journal_mode", "persist"),
            ("mmap", "3GiB"),
            ("cache", "64MiB"),
        ],
        &[("journal_mode", "memory"), ("layout", "without-rowid")],
        &[
            ("journal_mode", "off"),
            ("synchronous", "off"),
            ("layout", "name"),
        ],
        &[
            ("library", "default-options"),
            ("mmap", "0"),
            ("transaction", "1000"),
        ],
    ]
    .into_iter()
    .enumerate()
    {
        let path = scratch.path().join(format!("{number}.db"));
        drop(loaded(&path, pairs));
        let store = Sqlite.open(&path, &settings(pairs)).expect("opens");
        let back = store
            .session()
            .expect("opens")
            .read_back()
            .expect("answers");
        let resolved = settings(pairs)
            .resolve("sqlite", Sqlite.settings())
            .expect("valid");
        for (name, value) in resolved.iter() {
            assert_eq!(
                back.get(name).map(String::as_str),
                Some(value),
                "{name} of {pairs:?}"
            );
        }
        assert!(back["compile_options"].contains("THREADSAFE"));
        assert!(back["sqlite_version"].starts_with("3."));
        assert_eq!(back["fullfsync"], "1");
    }
}

#[test]
fn loading_leaves_a_sound_database_in_the_chosen_mode() {
    let scratch = tempfile::tempdir().expect("scratch");
    let path = scratch.path().join("blobs.db");
    drop(loaded(&path, &[("page_size", "8192")]));
    for companion in Sqlite.companions(&path) {
        assert!(!companion.exists(), "{}", companion.display());
    }
    let library = Library::load(&LibraryChoice::Bundled).expect("linked");
    let mut connection = Connection::open(library, &path, OpenMode::ReadOnly).expect("opens");
    let sound = connection.pragma_text("integrity_check").expect("reads");
    assert_eq!(sound.as_deref(), Some("ok"));
    let mode = connection.pragma_text("journal_mode").expect("reads");
    assert_eq!(mode.as_deref(), Some("wal"));
    let sql = connection
        .query_text("SELECT sql FROM sqlite_schema")
        .expect("reads");
    assert_eq!(
        sql.as_deref(),
        Some("CREATE TABLE kv(k INTEGER PRIMARY KEY, v BLOB)")
    );
}

#[test]
fn reads_see_what_other_sessions_have_committed() {
    let scratch = tempfile::tempdir().expect("scratch");
    for (number, (api, read_transaction)) in [
        ("select", "held"),
        ("select", "each"),
        ("blob", "held"),
        ("blob", "each"),
    ]
    .into_iter()
    .enumerate()
    {
        let path = scratch.path().join(format!("{number}.db"));
        let store = loaded(
            &path,
            &[("api", api), ("read_transaction", read_transaction)],
        );
        let mut reader = store.session().expect("opens");
        let mut writer = store.session().expect("opens");
        let old = read(&mut *reader, 7).expect("loaded");
        put(&mut *writer, 7, b"new");
        assert_ne!(old, b"new");
        assert_eq!(read(&mut *reader, 7).as_deref(), Some(&b"new"[..]));
        // The reader's own writes, too, and of the same size.
        put(&mut *reader, 7, b"own");
        assert_eq!(read(&mut *reader, 7).as_deref(), Some(&b"own"[..]));
        assert_eq!(read(&mut *writer, 7).as_deref(), Some(&b"own"[..]));
    }
}

#[test]
fn a_session_reads_its_own_uncommitted_writes() {
    let scratch = tempfile::tempdir().expect("scratch");
    for (number, api) in ["select", "blob"].into_iter().enumerate() {
        let path = scratch.path().join(format!("{number}.db"));
        let store = loaded(&path, &[("api", api)]);
        let mut session = store.session().expect("opens");
        let mut other = store.session().expect("opens");
        session.writer().expect("writes").begin().expect("begins");
        session
            .writer()
            .expect("writes")
            .put(1, b"pending")
            .expect("puts");
        assert_eq!(read(&mut *session, 1).as_deref(), Some(&b"pending"[..]));
        session
            .writer()
            .expect("writes")
            .put(1, b"PENDING")
            .expect("puts");
        assert!(
            session
                .writer()
                .expect("writes")
                .delete(2)
                .expect("deletes")
        );
        assert!(
            !session
                .writer()
                .expect("writes")
                .delete(2)
                .expect("deletes")
        );
        assert_eq!(read(&mut *session, 2), None);
        assert!(read(&mut *other, 2).is_some(), "not committed yet");
        session.writer().expect("writes").commit().expect("commits");
        assert_eq!(read(&mut *other, 1).as_deref(), Some(&b"PENDING"[..]));
        assert_eq!(read(&mut *other, 2), None);
    }
}

#[test]
fn transactions_have_the_size_that_was_asked_for() {
    let scratch = tempfile::tempdir().expect("scratch");
    for (transaction, committed) in [("all", 0), ("one", 10), ("4", 8)] {
        for api in ["select", "blob"] {
            let path = scratch.path().join(format!("{transaction}-{api}.db"));
            let store = loaded(&path, &[("transaction", transaction), ("api", api)]);
            let mut session = store.session().expect("opens");
            let writer = session.writer().expect("writes");
            writer.begin().expect("begins");
            let mut value = Vec::new();
            for key in 1..=10 {
                dataset().fill(key, 1, &mut value);
                writer.put(key, &value).expect("puts");
            }
            // What is not committed is gone with the session.
            drop(session);
            let mut session = store.session().expect("opens");
            for key in 1..=10 {
                dataset().fill(key, u64::from(key <= committed), &mut value);
                let found = read(&mut *session, key).expect("there");
                assert_eq!(
                    found, value,
                    "blob {key}, transaction={transaction} api={api}"
                );
            }
        }
    }
}

#[test]
fn checkpoints_run_apart_or_included() {
    let scratch = tempfile::tempdir().expect("scratch");
    for (checkpoint, in_database) in [("apart", false), ("included", true)] {
        let path = scratch.path().join(format!("{checkpoint}.db"));
        let store = loaded(&path, &[("checkpoint", checkpoint)]);
        let mut session = store.session().expect("opens");
        let value = [7u8; 10_000];
        put(&mut *session, 1, &value);
        assert!(log_bytes(&path) > 10_000);
        let copied = |path: &Path| {
            let database = fs::read(path).expect("reads");
            database
                .windows(1000)
                .any(|window| window == &value[..1000])
        };
        assert_eq!(copied(&path), in_database);
        session.writer().expect("writes").settle().expect("settles");
        assert!(copied(&path));
        assert_eq!(
            session.read_back().expect("answers")["unsettled_pages"],
            "0"
        );
        // The log is written over from its start: it does not grow for ever.
        let size = log_bytes(&path);
        for _ in 0..5 {
            put(&mut *session, 1, &value);
            session.writer().expect("writes").settle().expect("settles");
        }
        assert!(
            log_bytes(&path) <= size + 4200,
            "{} from {size}",
            log_bytes(&path)
        );
    }
}

#[test]
fn pages_that_a_reader_keeps_from_settling_are_counted() {
    let scratch = tempfile::tempdir().expect("scratch");
    let path = scratch.path().join("blobs.db");
    let store = loaded(&path, &[]);
    let mut reader = store.session().expect("opens");
    let mut writer = store.session().expect("opens");
    assert!(read(&mut *reader, 1).is_some());
    put(&mut *writer, 1, &[1; 10_000]);
    writer
        .writer()
        .expect("writes")
        .settle()
        .expect("is no error");
    assert_ne!(writer.read_back().expect("answers")["unsettled_pages"], "0");
    assert!(read(&mut *reader, 1).is_some());
    writer.writer().expect("writes").settle().expect("settles");
    assert_eq!(writer.read_back().expect("answers")["unsettled_pages"], "0");
}

#[test]
fn writes_outside_a_batch_are_refused() {
    let scratch = tempfile::tempdir().expect("scratch");
    let store = loaded(&scratch.path().join("blobs.db"), &[]);
    let mut session = store.session().expect("opens");
    let before = read(&mut *session, 1);
    let writer = session.writer().expect("writes");
    assert!(writer.put(1, b"x").is_err());
    assert!(writer.delete(1).is_err());
    assert!(writer.commit().is_err());
    assert_eq!(read(&mut *session, 1), before);
}

#[test]
fn two_writers_take_turns_or_are_told_so() {
    let scratch = tempfile::tempdir().expect("scratch");
    let store = loaded(&scratch.path().join("blobs.db"), &[]);
    let mut first = store.session().expect("opens");
    let mut second = store.session().expect("opens");
    first.writer().expect("writes").begin().expect("begins");
    let error = second
        .writer()
        .expect("writes")
        .begin()
        .expect_err("locked");
    assert!(
        matches!(&error, EngineError::Sqlite { source, .. } if source.is_busy()),
        "{error}"
    );
    first.writer().expect("writes").commit().expect("commits");
    put(&mut *second, 1, b"second");
}

#[test]
fn what_is_there_is_neither_overwritten_nor_deleted() {
    let scratch = tempfile::tempdir().expect("scratch");
    let path = scratch.path().join("blobs.db");
    fs::write(&path, "precious").expect("writes");
    let refused = Sqlite.create(&path, &settings(&[])).err().expect("exists");
    assert!(matches!(refused, EngineError::Exists(_)));
    let refused = Sqlite
        .open(&path, &settings(&[]))
        .err()
        .expect("no database");
    assert!(matches!(refused, EngineError::Damaged { .. }), "{refused}");
    assert_eq!(fs::read(&path).expect("reads"), b"precious");
    fs::remove_file(&path).expect("removes");

    let journal = scratch.path().join("blobs.db-journal");
    fs::write(&journal, "somebody's").expect("writes");
    let refused = Sqlite.create(&path, &settings(&[])).err().expect("exists");
    assert!(matches!(refused, EngineError::Exists(at) if at == journal));
    assert!(journal.exists() && !path.exists());
}

#[test]
fn what_cannot_be_opened_says_why_and_leaves_nothing() {
    let scratch = tempfile::tempdir().expect("scratch");
    let path = scratch.path().join("blobs.db");
    let missing = Sqlite.open(&path, &settings(&[])).err().expect("missing");
    assert!(matches!(missing, EngineError::NoStore(_)));
    let missing = Sqlite
        .open(scratch.path(), &settings(&[]))
        .err()
        .expect("a directory");
    assert!(matches!(missing, EngineError::NoStore(_)));

    let nowhere = settings(&[("library", "/nowhere/libsqlite3.so")]);
    let skipped = Sqlite.create(&path, &nowhere).err().expect("no library");
    assert!(matches!(skipped, EngineError::Unavailable(_)), "{skipped}");
    let text = scratch.path().join("text.so");
    fs::write(&text, "no library").expect("writes");
    let library = text.to_str().expect("UTF-8");
    let wrong = Sqlite
        .create(&path, &settings(&[("library", library)]))
        .err()
        .expect("no library");
    assert!(matches!(wrong, EngineError::Settings(_)), "{wrong}");
    let beyond = scratch.path().join("missing").join("blobs.db");
    let refused = Sqlite
        .create(&beyond, &settings(&[]))
        .err()
        .expect("no folder");
    assert!(matches!(refused, EngineError::Io { .. }), "{refused}");
    assert!(!path.exists() && !beyond.exists());
}

#[test]
fn a_store_of_other_settings_is_not_taken_for_ours() {
    let scratch = tempfile::tempdir().expect("scratch");
    let path = scratch.path().join("blobs.db");
    drop(loaded(&path, &[]));
    for (pairs, setting) in [
        ([("page_size", "8192")], "page_size"),
        ([("layout", "name")], "layout"),
        ([("layout", "without-rowid")], "layout"),
    ] {
        let refused = Sqlite
            .open(&path, &settings(&pairs))
            .err()
            .expect("differs");
        assert!(
            matches!(&refused, EngineError::NotInForce { name, .. } if *name == setting),
            "{refused}"
        );
    }
    let library = Library::load(&LibraryChoice::Bundled).expect("linked");
    let other = scratch.path().join("other.db");
    let mut connection = Connection::open(library, &other, OpenMode::Create).expect("opens");
    connection
        .execute("CREATE TABLE something(x)")
        .expect("creates");
    drop(connection);
    let refused = Sqlite.open(&other, &settings(&[])).err().expect("no table");
    assert!(matches!(refused, EngineError::Damaged { .. }), "{refused}");
}

/// What core computes from the file format is what SQLite writes.
#[test]
fn a_database_is_as_large_as_its_format_says() {
    let scratch = tempfile::tempdir().expect("scratch");
    for page_bytes in [1024u64, 4096, 16_384, 65_536] {
        for blob_bytes in [100u64, 3_000, 10_000, 100_000] {
            let count = 60;
            let path = scratch.path().join(format!("{page_bytes}-{blob_bytes}"));
            let page_size = page_bytes.to_string();
            let store = create(&path, &[("page_size", &page_size)]);
            let dataset = Dataset {
                count,
                size: SizeDistribution::Fixed(blob_bytes as u32),
                compressibility: 0.0,
                seed: 1,
            };
            store.load(&dataset, &mut |_| ()).expect("loaded");
            let found = fs::metadata(&path).expect("a file").len();
            let computed = sqlitmus_core::packing::database_bytes(page_bytes, blob_bytes, count);
            // Keys of the first rows are shorter than those of the last, for which it is computed.
            let difference = found.abs_diff(computed) / page_bytes;
            assert!(
                difference <= 1,
                "{page_bytes} {blob_bytes}: {found} bytes, computed {computed}"
            );
        }
    }
}
