//! Parts of the work, which arms do that explain where the time goes: what they deliver, what they
//! leave alone, and what cannot be combined.

use std::path::Path;

use sqlitmus_core::dataset::{Dataset, SizeDistribution};
use sqlitmus_core::settings::Settings;
use sqlitmus_engines::{EngineError, Session, Store, conformance, find};

fn dataset() -> Dataset {
    Dataset {
        count: 40,
        // Empty ones, whole blocks, and all between.
        size: SizeDistribution::Histogram(vec![(0, 1), (4096, 1), (8192, 1), (10_000, 3)]),
        compressibility: 0.0,
        seed: 3,
    }
}

fn settings(pairs: &[(&str, &str)]) -> Settings {
    Settings::from_pairs(pairs.iter().copied())
}

/// A loaded store, opened again with other settings.
fn store(engine: &str, path: &Path, pairs: &[(&str, &str)]) -> Box<dyn Store> {
    let engine = find(engine).expect("the engine exists");
    if !path.exists() {
        let created = engine.create(path, &Settings::default()).expect("created");
        created.load(&dataset(), &mut |_| ()).expect("loaded");
    }
    engine.open(path, &settings(pairs)).expect("opened")
}

fn read(session: &mut dyn Session, key: u64) -> Vec<u8> {
    let mut found = None;
    session
        .read(key, &mut |bytes| found = Some(bytes.to_vec()))
        .expect("read");
    found.expect("delivered once")
}

fn content(key: u64, generation: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    dataset().fill(key, generation, &mut bytes);
    bytes
}

fn put(session: &mut dyn Session, key: u64, value: &[u8]) {
    let writer = session.writer().expect("a writer");
    writer.begin().expect("begun");
    writer.put(key, value).expect("put");
    writer.commit().expect("committed");
}

#[test]
fn files_that_stay_open_are_read_whole_and_other_parts_deliver_nothing() {
    let place = tempfile::tempdir().expect("a scratch directory");
    let path = place.path().join("files");
    for api in ["stdio", "open", "openat"] {
        for part in ["look-up", "status", "open-close", "content"] {
            let store = store("files", &path, &[("api", api), ("part", part)]);
            let mut session = store.session().expect("a session");
            // Twice: the second time the file is open already.
            for key in (1..=40).chain(1..=40) {
                let expected = match part {
                    "content" => content(key, 0),
                    _ => Vec::new(),
                };
                assert_eq!(read(&mut *session, key), expected, "{api} {part} {key}");
            }
            let missing = session.read(41, &mut |_| panic!("there is none"));
            assert!(
                matches!(missing, Err(EngineError::Missing { key: 41, .. })),
                "{api} {part}"
            );
        }
    }
}

#[test]
fn only_the_content_of_a_file_is_a_part_that_writes() {
    let place = tempfile::tempdir().expect("a scratch directory");
    let path = place.path().join("files");
    for part in ["look-up", "status", "open-close"] {
        let store = store("files", &path, &[("part", part), ("write", "in-place")]);
        put(&mut *store.session().expect("a session"), 7, b"other");
    }
    let whole = store("files", &path, &[]);
    let mut whole = whole.session().expect("a session");
    assert_eq!(read(&mut *whole, 7), content(7, 0), "left alone");
    let kept = store("files", &path, &[("part", "content")]);
    let mut kept = kept.session().expect("a session");
    for value in [content(7, 5), b"shorter".to_vec(), content(7, 6)] {
        put(&mut *kept, 7, &value);
        assert_eq!(read(&mut *whole, 7), value);
        assert_eq!(read(&mut *kept, 7), value);
    }
}

#[test]
fn parts_of_sqlite_find_rows_and_deliver_nothing() {
    let place = tempfile::tempdir().expect("a scratch directory");
    let path = place.path().join("database");
    for pairs in [
        &[("part", "look-up")][..],
        &[("part", "call")],
        &[("part", "look-up"), ("api", "blob")],
        &[("part", "look-up"), ("mmap", "all")],
    ] {
        let store = store("sqlite", &path, pairs);
        let mut session = store.session().expect("a session");
        assert_eq!(read(&mut *session, 9), b"", "{pairs:?}");
        put(&mut *session, 9, b"other");
    }
    let looked_up = store("sqlite", &path, &[("part", "look-up")]);
    let missing = looked_up
        .session()
        .expect("a session")
        .read(41, &mut |_| panic!("there is none"));
    assert!(matches!(missing, Err(EngineError::Missing { .. })));
    let undone = store("sqlite", &path, &[("part", "rollback")]);
    let mut undone = undone.session().expect("a session");
    put(&mut *undone, 9, &content(9, 4));
    put(&mut *undone, 10, &content(10, 4));
    let whole = store("sqlite", &path, &[]);
    let mut whole = whole.session().expect("a session");
    for key in [9, 10] {
        assert_eq!(read(&mut *whole, key), content(key, 0), "nothing was kept");
    }
    drop(undone);
    put(&mut *whole, 9, &content(9, 5));
    assert_eq!(read(&mut *whole, 9), content(9, 5));
}

#[test]
fn parts_answer_as_every_engine_does() {
    for (engine, pairs) in [
        ("files", &[("part", "look-up")][..]),
        ("files", &[("part", "open-close"), ("api", "openat")]),
        ("files", &[("part", "status")]),
        ("sqlite", &[("part", "look-up")]),
        ("sqlite", &[("part", "look-up"), ("api", "blob")]),
        ("sqlite", &[("part", "call")]),
    ] {
        let place = tempfile::tempdir().expect("a scratch directory");
        let engine = find(engine).expect("the engine exists");
        assert!(!engine.capabilities(&settings(pairs)).keeps_content);
        conformance::check(engine, &settings(pairs), place.path());
    }
}

#[test]
fn what_cannot_be_taken_apart_is_refused() {
    for (engine, pairs) in [
        ("files", &[("part", "content"), ("api", "mmap")][..]),
        ("files", &[("part", "content"), ("write", "rename")]),
        ("files", &[("part", "open-close"), ("sync", "fsync")]),
        ("sqlite", &[("part", "call"), ("api", "blob")]),
        ("sqlite", &[("part", "rollback"), ("transaction", "one")]),
        ("sqlite", &[("part", "rollback"), ("journal_mode", "off")]),
    ] {
        let engine = find(engine).expect("the engine exists");
        let resolved = settings(pairs)
            .resolve(engine.name(), engine.settings())
            .expect("known");
        let error = engine.check(&resolved).expect_err("contradiction");
        assert!(!error.hint().is_empty(), "{pairs:?}");
    }
}
