//! The driver that calls SQLite: statements and blob handles on every library, several libraries
//! in one process, and what is said about files that are no SQLite library.

#![expect(clippy::print_stderr, reason = "a test that skips says why")]

use std::fs;
use std::path::Path;

use sqlitmus_engines::sqlite::{
    BlobMode, Connection, ConnectionStatus, Library, LibraryChoice, LibraryError, OpenMode,
    ProcessStatus,
};

const LINKED: [LibraryChoice; 2] = [LibraryChoice::Bundled, LibraryChoice::DefaultOptions];

fn create(choice: &LibraryChoice, directory: &Path) -> Connection {
    let library = Library::load(choice).expect("linked");
    let path = directory.join(format!("{}.db", choice.to_string().replace('/', "_")));
    let mut connection = Connection::open(library, &path, OpenMode::Create).expect("opens");
    connection
        .execute("CREATE TABLE kv(k INTEGER PRIMARY KEY, v BLOB)")
        .expect("creates");
    connection
}

fn fill(connection: &mut Connection, rows: u8) {
    let insert = connection
        .prepare("INSERT INTO kv(k, v) VALUES(?1, ?2)")
        .expect("prepares");
    for key in 1..=rows {
        let value = vec![key; 100 * usize::from(key)];
        let mut statement = connection.statement(insert);
        statement.bind_i64(1, i64::from(key)).expect("binds");
        statement.bind_blob(2, &value).expect("binds");
        statement.run().expect("inserts");
    }
}

#[test]
fn statements_are_reused_and_rows_are_borrowed() {
    for choice in LINKED {
        let directory = tempfile::tempdir().expect("scratch");
        let mut connection = create(&choice, directory.path());
        fill(&mut connection, 100);
        assert_eq!(connection.changes(), 1);
        let select = connection
            .prepare("SELECT v FROM kv WHERE k=?1")
            .expect("prepares");
        for key in (1..=100u8).rev() {
            let mut statement = connection.statement(select);
            statement.bind_i64(1, i64::from(key)).expect("binds");
            let mut row = statement.step().expect("steps").expect("a row");
            let expected = vec![key; 100 * usize::from(key)];
            assert_eq!(row.blob(0).expect("reads"), expected);
            assert!(statement.step().expect("steps").is_none());
        }
        let mut statement = connection.statement(select);
        statement.bind_i64(1, 101).expect("binds");
        assert!(statement.step().expect("steps").is_none());
    }
}

#[test]
fn a_dropped_or_forgotten_statement_leaves_nothing_behind() {
    let directory = tempfile::tempdir().expect("scratch");
    let mut connection = create(&LibraryChoice::Bundled, directory.path());
    fill(&mut connection, 2);
    let echo = connection
        .prepare("SELECT ?1, ?2, typeof(?1)")
        .expect("prepares");
    {
        let value = b"short-lived".to_vec();
        let mut statement = connection.statement(echo);
        statement.bind_blob(1, &value).expect("binds");
        statement.bind_text(2, "text").expect("binds");
        let mut row = statement.step().expect("steps").expect("a row");
        assert_eq!(row.blob(0).expect("reads"), b"short-lived");
        assert_eq!(row.text(1).expect("reads"), "text");
        std::mem::forget(statement);
    }
    // What the forgotten statement was bound to is gone: the next use sees NULL.
    let mut statement = connection.statement(echo);
    let mut row = statement.step().expect("steps").expect("a row");
    assert_eq!(row.text(2).expect("reads"), "null");
    assert_eq!(row.blob(0).expect("reads"), b"");
    drop(statement);

    // A statement that was not run to its end holds no lock once it is dropped.
    let all = connection.prepare("SELECT k FROM kv").expect("prepares");
    assert!(connection.statement(all).step().expect("steps").is_some());
    let library = connection.library();
    let path = directory.path().join("bundled.db");
    let mut other = Connection::open(library, &path, OpenMode::ReadWrite).expect("opens");
    other.execute("DELETE FROM kv").expect("nothing is locked");
    other.close().expect("closes");
    connection.close().expect("closes");
}

#[test]
fn values_keep_their_types() {
    let directory = tempfile::tempdir().expect("scratch");
    let mut connection = create(&LibraryChoice::Bundled, directory.path());
    let echo = connection
        .prepare("SELECT ?1, typeof(?2), typeof(?3), 0.5")
        .expect("prepares");
    let mut statement = connection.statement(echo);
    statement.bind_i64(1, i64::MIN).expect("binds");
    statement.bind_text(2, "").expect("binds");
    statement.bind_blob(3, &[]).expect("binds");
    let mut row = statement.step().expect("steps").expect("a row");
    assert_eq!(row.i64(0), i64::MIN);
    // Empty, but not NULL.
    assert_eq!(row.text(1).expect("reads"), "text");
    assert_eq!(row.text(2).expect("reads"), "blob");
    assert!((row.f64(3) - 0.5).abs() < f64::EPSILON);
    statement.reset().expect("resets");
    assert!(statement.bind_i64(6, 1).is_err(), "there is no parameter 6");
    drop(statement);
    let error = connection
        .query_text("SELECT x'ff'")
        .expect_err("not UTF-8");
    assert!(error.message.contains("utf-8"), "{error}");
}

#[test]
fn blob_handles_are_reopened_read_and_written() {
    for choice in LINKED {
        let directory = tempfile::tempdir().expect("scratch");
        let mut connection = create(&choice, directory.path());
        fill(&mut connection, 100);
        let mut buffer = Vec::new();
        let id = connection
            .open_blob(c"kv", c"v", 50, BlobMode::Read)
            .expect("opens");
        for key in [50u8, 100, 1] {
            let mut blob = connection.blob(&id);
            blob.reopen(i64::from(key)).expect("moves");
            let expected = vec![key; 100 * usize::from(key)];
            assert_eq!(blob.bytes(), expected.len());
            assert_eq!(blob.read_whole(&mut buffer).expect("reads"), expected);
        }
        assert_eq!(buffer.len(), 10_000, "the buffer does not shrink");
        let mut blob = connection.blob(&id);
        assert!(blob.read(&mut buffer, 0).is_err(), "beyond the end");
        assert!(blob.write(b"x", 0).is_err(), "opened for reading");
        let error = blob.reopen(101).expect_err("no such row");
        assert!(error.message.contains("101"), "{error}");
        assert!(blob.reopen(1).is_err(), "nothing goes after a failure");
        connection.close_blob(id).expect("closes");

        let id = connection
            .open_blob(c"kv", c"v", 2, BlobMode::ReadWrite)
            .expect("opens");
        connection.blob(&id).write(b"new", 100).expect("writes");
        connection.close_blob(id).expect("commits");
        let changed = connection
            .query_text("SELECT substr(v, 100, 5) FROM kv WHERE k=2")
            .expect("reads");
        assert_eq!(changed.as_deref(), Some("\u{2}new\u{2}"));
    }
}

#[test]
fn two_libraries_work_side_by_side_in_several_threads() {
    let directory = tempfile::tempdir().expect("scratch");
    let mut connections: Vec<_> = LINKED
        .iter()
        .map(|choice| create(choice, directory.path()))
        .collect();
    std::thread::scope(|scope| {
        for connection in &mut connections {
            scope.spawn(move || {
                fill(connection, 100);
                let bytes = connection.query_i64("SELECT sum(length(v)) FROM kv");
                assert_eq!(bytes.expect("reads"), Some(505_000));
            });
        }
    });
}

#[test]
fn pragmas_and_figures_are_read_back() {
    let directory = tempfile::tempdir().expect("scratch");
    let mut connection = create(&LibraryChoice::Bundled, directory.path());
    connection.set_busy_timeout_ms(10).expect("sets");
    connection.set_pragma("journal_mode", "wal").expect("sets");
    connection
        .set_pragma("mmap_size", 1u64 << 33)
        .expect("sets");
    let mode = connection.pragma_text("journal_mode").expect("reads");
    assert_eq!(mode.as_deref(), Some("wal"));
    let mapped = connection.pragma_i64("mmap_size").expect("reads");
    assert_eq!(mapped, Some(1 << 33));
    assert_eq!(
        connection.pragma_i64("no_such_pragma").expect("reads"),
        None
    );

    fill(&mut connection, 10);
    assert!(!connection.is_in_transaction());
    let checkpoint = connection.checkpoint().expect("copies");
    assert_eq!(checkpoint.copied_pages, checkpoint.log_pages);
    assert!(checkpoint.log_pages.expect("there is a log") > 0);
    let cache = connection
        .status(ConnectionStatus::CacheUsed)
        .expect("known");
    assert!(cache.current > 0);
    let twin = Library::load(&LibraryChoice::DefaultOptions).expect("linked");
    let _database = create(&LibraryChoice::DefaultOptions, directory.path());
    let memory = twin.status(ProcessStatus::MemoryUsed).expect("known");
    assert!(memory.current > 0 && memory.highest >= memory.current);
}

#[test]
fn errors_say_what_failed_and_why() {
    let directory = tempfile::tempdir().expect("scratch");
    let library = Library::load(&LibraryChoice::Bundled).expect("linked");
    let missing = directory.path().join("missing.db");
    let error = Connection::open(library, &missing, OpenMode::ReadWrite)
        .err()
        .expect("there is no such file");
    assert!(error.is_environment() && error.to_string().contains("missing.db"));
    assert!(!missing.exists());

    let garbage = directory.path().join("garbage.db");
    fs::write(&garbage, vec![7u8; 8192]).expect("writes");
    let mut connection = Connection::open(library, &garbage, OpenMode::ReadOnly).expect("opens");
    let error = connection
        .query_i64("SELECT 1 FROM kv")
        .expect_err("not a database");
    assert!(error.is_damaged(), "{error}");

    let mut connection = create(&LibraryChoice::Bundled, directory.path());
    let error = connection.prepare("SELEC 1").expect_err("not SQL");
    assert!(error.to_string().contains("SELEC 1"), "{error}");
    assert!(connection.prepare(" -- nothing").is_err());
    connection.execute("BEGIN IMMEDIATE").expect("begins");
    assert!(connection.is_in_transaction());
    let path = directory.path().join("bundled.db");
    let mut other = Connection::open(library, &path, OpenMode::ReadWrite).expect("opens");
    let error = other.execute("BEGIN IMMEDIATE").expect_err("locked");
    assert!(error.is_busy(), "{error}");
}

#[test]
fn a_name_that_looks_like_a_uri_is_a_file() {
    let directory = tempfile::tempdir().expect("scratch");
    let library = Library::load(&LibraryChoice::Bundled).expect("linked");
    let path = directory.path().join("file:odd?mode=memory");
    let mut connection = Connection::open(library, &path, OpenMode::Create).expect("opens");
    connection.execute("CREATE TABLE t(x)").expect("creates");
    assert!(path.is_file());
}

#[test]
fn system_library_is_another_sqlite() {
    let library = match Library::load(&LibraryChoice::System) {
        Ok(library) => library,
        Err(LibraryError::Missing(reason)) => {
            eprintln!("skipped: {reason}");
            return;
        }
        Err(error) => panic!("{error}"),
    };
    let again = Library::load(&LibraryChoice::System).expect("loaded");
    assert!(std::ptr::eq(library, again));
    let directory = tempfile::tempdir().expect("scratch");
    let mut connection = create(&LibraryChoice::System, directory.path());
    fill(&mut connection, 10);
    // The version that SQL reports is the one of the code that runs: nothing was mixed up with
    // the SQLite that is linked in.
    let version = connection
        .query_text("SELECT sqlite_source_id()")
        .expect("reads");
    assert_eq!(version, Some(library.source_id()));
    assert!(!library.compile_options().is_empty());
}

#[test]
fn what_is_no_sqlite_library_is_said_so() {
    let directory = tempfile::tempdir().expect("scratch");
    let load =
        |path: &Path| Library::load(&LibraryChoice::Path(path.to_owned())).expect_err("not SQLite");
    let missing = directory.path().join("missing.so");
    assert!(matches!(load(&missing), LibraryError::Missing(_)));
    assert!(matches!(
        load(directory.path()),
        LibraryError::NotALibrary { .. }
    ));
    let text = directory.path().join("text.so");
    fs::write(&text, "no library").expect("writes");
    let error = load(&text);
    assert!(matches!(error, LibraryError::NotALibrary { .. }), "{error}");
    assert!(error.to_string().contains("text.so"));
}

#[cfg(target_os = "linux")]
#[test]
fn a_library_that_is_not_sqlite_is_said_so() {
    // The C library is loaded in every process; its file stands in the memory map.
    let map = fs::read_to_string("/proc/self/maps").expect("Linux");
    let libc = map
        .lines()
        .filter_map(|line| line.split_whitespace().last())
        .find(|path| path.contains("/libc.so") || path.contains("/libc-"));
    let Some(libc) = libc else {
        eprintln!("skipped: linked statically");
        return;
    };
    let error = Library::load(&LibraryChoice::Path(libc.into())).expect_err("not SQLite");
    assert!(matches!(error, LibraryError::NotSqlite { .. }), "{error}");
}
