//! The engines `external` and `hybrid` beyond what every engine must do: what is where, what a
//! process that was killed leaves behind and what becomes of it, and when old files go.

use std::fs;
use std::path::{Path, PathBuf};

use sqlitmus_core::dataset::{Dataset, SizeDistribution};
use sqlitmus_core::settings::Settings;
use sqlitmus_engines::external::{examine, stray_files};
use sqlitmus_engines::{Engine, EngineError, Session, find};

const COUNT: u64 = 20;

fn engine(name: &str) -> &'static dyn Engine {
    find(name).expect("an engine")
}

fn settings(pairs: &[(&str, &str)]) -> Settings {
    Settings::from_pairs(pairs.iter().copied())
}

/// A store of blobs of 5000 bytes.
fn loaded(name: &str, path: &Path, pairs: &[(&str, &str)]) -> Settings {
    let settings = settings(pairs);
    let store = engine(name).create(path, &settings).expect("created");
    let dataset = Dataset {
        count: COUNT,
        size: SizeDistribution::Fixed(5000),
        compressibility: 0.0,
        seed: 3,
    };
    store.load(&dataset, &mut |_| ()).expect("loaded");
    settings
}

fn session(name: &str, path: &Path, settings: &Settings) -> Box<dyn Session> {
    let store = engine(name).open(path, settings).expect("opened");
    store.session().expect("a session")
}

fn put(session: &mut dyn Session, key: u64, value: &[u8]) {
    let writer = session.writer().expect("it writes");
    writer.begin().expect("begun");
    writer.put(key, value).expect("put");
    writer.commit().expect("committed");
}

fn read(session: &mut dyn Session, key: u64) -> Vec<u8> {
    let mut found = Vec::new();
    session
        .read(key, &mut |bytes| found = bytes.to_vec())
        .expect("read");
    found
}

fn contents(path: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(path.join("content")).expect("a folder");
    let mut names: Vec<_> = entries.map(|entry| entry.expect("one").path()).collect();
    names.sort_unstable();
    names
}

fn marks(path: &Path) -> usize {
    let entries = fs::read_dir(path).expect("a folder");
    let is_mark = |name: &str| name.starts_with("writer-");
    entries
        .filter(|entry| {
            let entry = entry.as_ref().expect("one");
            is_mark(&entry.file_name().to_string_lossy())
        })
        .count()
}

#[test]
fn contents_move_between_database_and_files_as_their_size_says() {
    let scratch = tempfile::tempdir().expect("scratch");
    let path = scratch.path().join("store");
    let settings = loaded("hybrid", &path, &[("inline_limit", "5000")]);
    assert!(contents(&path).is_empty(), "5000 bytes are inside");
    let mut session = session("hybrid", &path, &settings);
    put(&mut *session, 7, &[1; 5001]);
    assert_eq!(contents(&path).len(), 1);
    assert_eq!(read(&mut *session, 7), [1; 5001]);
    put(&mut *session, 7, &[2; 6000]);
    assert_eq!(contents(&path).len(), 1, "the old file is gone");
    put(&mut *session, 7, &[3; 100]);
    assert!(contents(&path).is_empty());
    assert_eq!(read(&mut *session, 7), [3; 100]);
    drop(session);
    assert_eq!(examine(&path).expect("examined"), None);
    assert_eq!(marks(&path), 0);
}

#[test]
fn a_store_is_opened_with_the_limit_it_was_made_with() {
    let scratch = tempfile::tempdir().expect("scratch");
    let path = scratch.path().join("store");
    loaded("hybrid", &path, &[("inline_limit", "5000")]);
    let other = [("inline_limit", "6000")];
    let opened = engine("hybrid").open(&path, &settings(&other)).map(|_| ());
    assert!(matches!(opened, Err(EngineError::NotInForce { .. })));
    let opened = engine("external").open(&path, &settings(&[])).map(|_| ());
    assert!(matches!(opened, Err(EngineError::NotInForce { .. })));
}

/// What a killed process leaves is made here by hand: a mark that nobody locks, and a file that no
/// row names.
#[test]
fn leftovers_of_the_dead_go_and_those_of_the_living_stay() {
    let scratch = tempfile::tempdir().expect("scratch");
    let path = scratch.path().join("store");
    let settings = loaded("external", &path, &[]);
    let leftover = path.join("content/000003-abc-1");
    fs::write(&leftover, b"half").expect("written");
    assert_eq!(stray_files(&path).expect("counted"), 1);
    drop(session("external", &path, &settings));
    assert!(leftover.exists(), "without a mark nobody looks");

    fs::write(path.join("writer-00000001"), b"").expect("written");
    let mut living = session("external", &path, &settings);
    assert!(!leftover.exists(), "it is removed as the store is opened");
    assert_eq!(contents(&path).len() as u64, COUNT);
    assert_eq!(stray_files(&path).expect("counted"), 0);

    // A session in the middle of a batch has a file that no row names yet.
    let writer = living.writer().expect("it writes");
    writer.begin().expect("begun");
    writer.put(3, &[9; 3000]).expect("put");
    assert_eq!(contents(&path).len() as u64, COUNT + 1);
    let mut other = session("external", &path, &settings);
    assert_eq!(
        contents(&path).len() as u64,
        COUNT + 1,
        "its mark is locked"
    );
    let writer = living.writer().expect("it writes");
    writer.commit().expect("committed");
    assert_eq!(read(&mut *other, 3), [9; 3000]);
    assert_eq!(contents(&path).len() as u64, COUNT);
}

#[test]
fn a_batch_that_is_given_up_leaves_no_files() {
    let scratch = tempfile::tempdir().expect("scratch");
    let path = scratch.path().join("store");
    let settings = loaded("external", &path, &[]);
    let before = contents(&path);
    let mut session = session("external", &path, &settings);
    let writer = session.writer().expect("it writes");
    writer.begin().expect("begun");
    writer.put(1, &[1; 10]).expect("put");
    writer.put(100, &[1; 10]).expect("put");
    assert!(writer.delete(2).expect("deleted"));
    assert_eq!(contents(&path).len(), before.len() + 2, "nothing goes yet");
    drop(session);
    assert_eq!(contents(&path), before);
    assert_eq!(marks(&path), 0);
}

#[test]
fn old_files_stay_until_the_commit_is_durable() {
    let scratch = tempfile::tempdir().expect("scratch");
    let path = scratch.path().join("store");
    let settings = loaded("external", &path, &[("sync", "fsync+dir")]);
    let mut session = session("external", &path, &settings);
    put(&mut *session, 1, &[1; 10]);
    assert_eq!(
        contents(&path).len() as u64,
        COUNT + 1,
        "the old one is kept"
    );
    session
        .writer()
        .expect("it writes")
        .settle()
        .expect("settled");
    assert_eq!(contents(&path).len() as u64, COUNT);
    put(&mut *session, 1, &[2; 10]);
    drop(session);
    assert_eq!(
        contents(&path).len() as u64,
        COUNT,
        "as the session ends, too"
    );
}

#[test]
fn a_reader_of_an_older_state_finds_the_newer_content() {
    let scratch = tempfile::tempdir().expect("scratch");
    let path = scratch.path().join("store");
    let settings = loaded("external", &path, &[]);
    // As two processes, which know nothing of each other's commits.
    let mut reader = session("external", &path, &settings);
    let mut writer = session("external", &path, &settings);
    assert_eq!(read(&mut *reader, 1).len(), 5000);
    put(&mut *writer, 1, &[8; 70]);
    assert_eq!(read(&mut *reader, 1), [8; 70]);
}

#[test]
fn damage_is_told() {
    let scratch = tempfile::tempdir().expect("scratch");
    let path = scratch.path().join("store");
    let settings = loaded("external", &path, &[]);
    fs::remove_file(path.join("content/000002")).expect("removed");
    fs::write(path.join("content/000003"), b"short").expect("written");
    let mut session = session("external", &path, &settings);
    for key in [2, 3] {
        let outcome = session.read(key, &mut |_| panic!("nothing is delivered"));
        assert!(
            matches!(outcome, Err(EngineError::Damaged { .. })),
            "{outcome:?}"
        );
    }
    assert_eq!(read(&mut *session, 1).len(), 5000);
    drop(session);
    let found = examine(&path).expect("examined").expect("damaged");
    assert!(found.contains("row 2"), "{found}");
    fs::write(path.join("content/000002"), [0; 5000]).expect("written");
    let found = examine(&path).expect("examined").expect("damaged");
    assert!(found.contains("row 3"), "{found}");
}
