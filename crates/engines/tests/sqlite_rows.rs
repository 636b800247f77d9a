//! Rows in SQLite: what is stored is what was given, in every way of giving it; transactions,
//! locks, shared caches and copies of a database in memory do what their settings say.

use std::path::Path;

use sqlitmus_core::dataset::{Dataset, SizeDistribution};
use sqlitmus_core::rows::{Rows, User, UserSums};
use sqlitmus_core::settings::Settings;
use sqlitmus_engines::rows::{RowEngine, RowSession, RowStore};
use sqlitmus_engines::sqlite::{Connection, Library, LibraryChoice, OpenMode, Sqlite};
use sqlitmus_engines::{Engine, EngineError};

const COUNT: u64 = 250;

fn rows() -> Rows {
    Rows::new(&Dataset {
        count: COUNT,
        size: SizeDistribution::Uniform(0, 300),
        compressibility: 0.0,
        seed: 11,
    })
}

fn engine() -> &'static dyn RowEngine {
    Sqlite.rows().expect("SQLite speaks SQL")
}

fn settings(pairs: &[(&str, &str)]) -> Settings {
    Settings::from_pairs(pairs.iter().copied())
}

fn empty(path: &Path, pairs: &[(&str, &str)]) -> Box<dyn RowStore> {
    engine().create(path, &settings(pairs)).expect("creates")
}

fn loaded(path: &Path, pairs: &[(&str, &str)]) -> Box<dyn RowStore> {
    let store = empty(path, pairs);
    store.load(&rows(), &mut |_| true).expect("loads");
    store
}

fn session(store: &dyn RowStore) -> Box<dyn RowSession> {
    store.session().expect("opens")
}

#[test]
fn queries_find_the_rows_that_were_loaded_and_no_others() {
    let scratch = tempfile::tempdir().expect("scratch");
    let rows = rows();
    let sums = UserSums::new(&rows);
    let mut number = 0;
    for library in ["bundled", "default-options"] {
        for prepare in ["once", "each"] {
            for read_transaction in ["held", "each"] {
                for (journal_mode, mmap) in [("wal", "0"), ("delete", "all")] {
                    number += 1;
                    let pairs = [
                        ("library", library),
                        ("prepare", prepare),
                        ("read_transaction", read_transaction),
                        ("journal_mode", journal_mode),
                        ("mmap", mmap),
                    ];
                    let store = loaded(&scratch.path().join(format!("{number}.db")), &pairs);
                    let mut session = session(&*store);
                    for id in 1..=COUNT {
                        let found = session.query(id).expect("reads");
                        assert_eq!(found, Some(rows.user(id).consumed()), "{id} {pairs:?}");
                    }
                    for id in [0, COUNT + 1, u64::MAX] {
                        assert_eq!(session.query(id).expect("reads"), None, "{pairs:?}");
                    }
                    let totals = session.totals().expect("reads");
                    assert_eq!(totals.rows, COUNT);
                    assert_eq!(totals.c1_sum, rows.c1_sum());
                    assert_eq!(totals.consumed, sums.of(1..=COUNT).consumed);
                }
            }
        }
    }
}

#[test]
fn both_tables_are_as_published() {
    let scratch = tempfile::tempdir().expect("scratch");
    let path = scratch.path().join("rows.db");
    drop(loaded(&path, &[("index", "c1")]));
    let library = Library::load(&LibraryChoice::Bundled).expect("linked");
    let mut connection = Connection::open(library, &path, OpenMode::ReadOnly).expect("opens");
    let mut text = |sql: &str| connection.query_text(sql).expect("reads").expect("a row");
    assert_eq!(text("PRAGMA integrity_check"), "ok");
    assert_eq!(text("PRAGMA journal_mode"), "wal");
    let schema = text("SELECT lower(group_concat(sql, ';')) FROM sqlite_schema WHERE sql NOTNULL");
    for part in [
        "create table user(id integer primary key autoincrement, c1 int, c2 varchar(1000), c3",
        "create table orders(id integer primary key autoincrement, user_id int, c1 varchar(1000)",
        "create index user_c1 on user(c1)",
    ] {
        assert!(schema.contains(part), "{schema}");
    }
    let rows = rows();
    let order = rows.order(7);
    let stored = text("SELECT user_id || ' ' || c1 || ' ' || c2 FROM orders WHERE id=7");
    assert_eq!(
        stored,
        format!("{} {} {}", order.user_id, order.c1, order.c2)
    );
    assert_eq!(text("SELECT count(*) || '' FROM orders"), COUNT.to_string());
}

#[test]
fn every_way_to_insert_stores_the_same_rows() {
    let scratch = tempfile::tempdir().expect("scratch");
    let rows = rows();
    let expected = UserSums::new(&rows).of(1..=COUNT).consumed;
    let users: Vec<User<'_>> = (1..=COUNT).map(|id| rows.user(id)).collect();
    for insert in ["prepared", "text", "multi-row"] {
        for prepare in ["once", "each"] {
            for index in ["none", "c1"] {
                let pairs = [("insert", insert), ("prepare", prepare), ("index", index)];
                let name = format!("{insert}-{prepare}-{index}.db");
                let store = empty(&scratch.path().join(name), &pairs);
                let mut session = session(&*store);
                // Twice: the second time as new, with the same ids.
                for _ in 0..2 {
                    session.clear().expect("clears");
                    assert_eq!(session.totals().expect("reads").rows, 0);
                    session.insert(&users[..1]).expect("inserts");
                    session.begin().expect("begins");
                    session.insert(&users[1..]).expect("inserts");
                    session.commit().expect("commits");
                    let totals = session.totals().expect("reads");
                    assert_eq!(
                        (totals.rows, totals.consumed),
                        (COUNT, expected),
                        "{pairs:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn clearing_makes_the_file_small_again() {
    let scratch = tempfile::tempdir().expect("scratch");
    let rows = rows();
    let users: Vec<User<'_>> = (1..=COUNT).map(|id| rows.user(id)).collect();
    for journal_mode in ["wal", "delete", "truncate", "off"] {
        let path = scratch.path().join(format!("{journal_mode}.db"));
        let store = empty(&path, &[("journal_mode", journal_mode)]);
        let bytes = || std::fs::metadata(&path).expect("is there").len();
        let mut session = session(&*store);
        session.clear().expect("clears");
        let small = bytes();
        session.insert(&users).expect("inserts");
        session.settle().expect("settles");
        assert!(bytes() > small);
        session.clear().expect("clears");
        assert_eq!(bytes(), small, "{journal_mode}");
    }
}

#[test]
fn updates_count_up_and_can_be_undone() {
    let scratch = tempfile::tempdir().expect("scratch");
    let store = loaded(&scratch.path().join("rows.db"), &[]);
    let mut session = session(&*store);
    let before = session.totals().expect("reads");
    assert!(session.update(3).expect("updates"));
    assert!(!session.update(COUNT + 1).expect("no such row"));
    session.begin().expect("begins");
    assert!(session.update(3).expect("updates"));
    session.rollback().expect("undoes");
    session.rollback().expect("nothing to undo is no error");
    session.begin().expect("begins");
    for id in 1..=COUNT {
        assert!(session.update(id).expect("updates"));
    }
    session.commit().expect("commits");
    let after = session.totals().expect("reads");
    assert_eq!(after.c1_sum - before.c1_sum, COUNT as i64 + 1);
    let rows = rows();
    let mut user = rows.user(3);
    user.c1 += 2;
    assert_eq!(session.query(3).expect("reads"), Some(user.consumed()));
}

#[test]
fn a_lock_is_busy_at_once_or_after_its_timeout() {
    let scratch = tempfile::tempdir().expect("scratch");
    for (number, begin) in ["immediate", "deferred"].into_iter().enumerate() {
        let pairs = [("busy_timeout", "none"), ("begin", begin)];
        let store = loaded(&scratch.path().join(format!("{number}.db")), &pairs);
        let (mut first, mut second) = (session(&*store), session(&*store));
        first.begin().expect("begins");
        first.update(1).expect("updates");
        let refused = match begin {
            "immediate" => second.begin(),
            _ => {
                second.begin().expect("takes no lock yet");
                second.update(2).map(|_| ())
            }
        };
        assert!(refused.expect_err("locked").is_busy(), "{begin}");
        second.rollback().expect("undoes");
        first.commit().expect("commits");
        assert!(second.update(2).expect("free"));
    }
    let pairs = [("busy_timeout", "10000")];
    let store = loaded(&scratch.path().join("waits.db"), &pairs);
    let (mut first, mut second) = (session(&*store), session(&*store));
    first.begin().expect("begins");
    first.update(1).expect("updates");
    std::thread::scope(|scope| {
        scope.spawn(move || {
            std::thread::sleep(std::time::Duration::from_millis(20));
            first.commit().expect("commits");
        });
        assert!(second.update(2).expect("waits for the lock"));
    });
}

#[test]
fn a_shared_cache_is_shared() {
    let scratch = tempfile::tempdir().expect("scratch");
    // With a rollback journal a writer that has committed nothing keeps nobody from reading; only
    // in a shared cache it has a lock on the table, in which no busy timeout waits.
    for (sharing, is_shared) in [("private", false), ("shared", true)] {
        let path = scratch.path().join(format!("{sharing}.db"));
        let pairs = [
            ("cache_sharing", sharing),
            ("journal_mode", "delete"),
            ("read_transaction", "each"),
        ];
        drop(loaded(&path, &pairs));
        let store = engine().open(&path, &settings(&pairs)).expect("opens");
        let (mut writer, mut reader) = (session(&*store), session(&*store));
        assert!(reader.query(1).expect("reads").is_some());
        writer.begin().expect("begins");
        writer.update(1).expect("updates");
        match reader.query(1) {
            Ok(found) => assert!(!is_shared && found.is_some()),
            Err(error) => assert!(is_shared && error.is_busy(), "{error}"),
        }
        writer.commit().expect("commits");
        assert!(reader.query(1).expect("reads").is_some());
    }
}

#[test]
fn what_is_in_memory_reaches_the_file_by_copies_alone() {
    let scratch = tempfile::tempdir().expect("scratch");
    let path = scratch.path().join("rows.db");
    let file = [("journal_mode", "delete"), ("synchronous", "full")];
    drop(loaded(&path, &file));
    let memory = |copy_every| {
        let mut pairs = file.to_vec();
        pairs.extend([("residence", "memory"), ("copy_every", copy_every)]);
        engine().open(&path, &settings(&pairs)).expect("opens")
    };
    let on_disk = || {
        let store = engine().open(&path, &settings(&file)).expect("opens");
        session(&*store).totals().expect("reads").c1_sum
    };
    let before = on_disk();

    let mut never = session(&*memory("never"));
    assert!(never.update(1).expect("updates"));
    assert_eq!(never.totals().expect("reads").c1_sum, before + 1);
    assert_eq!(on_disk(), before, "at risk");
    never.settle().expect("copies");
    assert_eq!(on_disk(), before + 1);
    let counters = never.take_counters();
    assert_eq!(counters["copies"], 1);
    assert!(counters["copied_pages"] > 10 && counters["peak_at_risk_ns"] > 0);
    assert_eq!(never.take_counters()["copies"], 0, "taken");
    drop(never);

    let mut often = session(&*memory("1"));
    std::thread::sleep(std::time::Duration::from_millis(2));
    assert!(often.update(1).expect("updates"));
    assert_eq!(on_disk(), before + 2, "the copy was due");
    // In a transaction nothing is copied.
    often.begin().expect("begins");
    std::thread::sleep(std::time::Duration::from_millis(2));
    assert!(often.update(1).expect("updates"));
    assert_eq!(on_disk(), before + 2);
    often.commit().expect("commits");
    assert_eq!(on_disk(), before + 3);
    let back = often.read_back().expect("answers");
    assert_eq!(back["residence"], "memory");
    assert_eq!(back["synchronous"], "full", "of the file");
}

#[test]
fn settings_of_rows_are_read_back() {
    let scratch = tempfile::tempdir().expect("scratch");
    let pairs = [
        ("busy_timeout", "250"),
        ("begin", "deferred"),
        ("prepare", "each"),
        ("index", "c1"),
        ("checkpoint", "automatic"),
    ];
    let store = loaded(&scratch.path().join("rows.db"), &pairs);
    let back = session(&*store).read_back().expect("answers");
    for (name, value) in pairs {
        assert_eq!(back[name], value);
    }
    assert_eq!(back["wal_autocheckpoint"], "1000");
    // Ours is compiled without, and this process has not switched them on.
    assert_eq!(back["memory_statistics_kept"], "off");
}

#[test]
fn what_is_no_store_with_rows_is_refused() {
    let scratch = tempfile::tempdir().expect("scratch");
    let path = scratch.path().join("blobs.db");
    let refused = |path: &Path, pairs: &[(&str, &str)]| {
        let opened = engine().open(path, &settings(pairs)).map(|_| ());
        opened.expect_err("refused")
    };
    assert!(matches!(refused(&path, &[]), EngineError::NoStore(_)));
    drop(Sqlite.create(&path, &settings(&[])).expect("creates"));
    assert!(matches!(refused(&path, &[]), EngineError::Damaged { .. }));
    let exists = engine().create(&path, &settings(&[])).map(|_| ());
    assert!(matches!(
        exists.expect_err("exists"),
        EngineError::Exists(_)
    ));
    let path = scratch.path().join("rows.db");
    drop(loaded(&path, &[]));
    let other = refused(&path, &[("index", "c1")]);
    assert!(
        matches!(other, EngineError::NotInForce { name: "index", .. }),
        "{other}"
    );
    let blobs = Sqlite
        .open(&path, &settings(&[("insert", "text")]))
        .map(|_| ());
    assert!(matches!(blobs.expect_err("rows"), EngineError::Settings(_)));
    let stopped = empty(&scratch.path().join("stopped.db"), &[]).load(&rows(), &mut |_| false);
    assert!(matches!(stopped, Err(EngineError::Io { .. })));
}
