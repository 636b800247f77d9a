//! What files promise beyond the seam: names, layouts that are told apart, foreign files, and what
//! replacing leaves behind.

use std::fs;
use std::path::Path;

use sqlitmus_core::case::Durability;
use sqlitmus_core::dataset::{Dataset, SizeDistribution};
use sqlitmus_core::settings::Settings;

use super::{Files, Layout, layout_of};
use crate::engine::{Engine, EngineError, Session, Store};

fn settings(pairs: &[(&str, &str)]) -> Settings {
    Settings::from_pairs(pairs.iter().copied())
}

fn open(path: &Path, pairs: &[(&str, &str)]) -> Box<dyn Store> {
    Files.open(path, &settings(pairs)).expect("opened")
}

fn put(session: &mut dyn Session, key: u64, value: &[u8]) {
    let writer = session.writer().expect("a writer");
    writer.begin().expect("begun");
    writer.put(key, value).expect("put");
    writer.commit().expect("committed");
}

fn keys(session: &mut dyn Session) -> Vec<u64> {
    let mut keys = Vec::new();
    session.keys(&mut |key| keys.push(key)).expect("keys");
    keys
}

fn names_in(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(directory)
        .expect("a directory")
        .map(|entry| entry.expect("an entry").file_name())
        .map(|name| name.into_string().expect("ASCII"))
        .collect();
    names.sort_unstable();
    names
}

#[test]
fn a_tree_has_at_most_a_hundred_entries_a_folder() {
    let place = tempfile::tempdir().expect("a scratch directory");
    let path = place.path().join("tree");
    let store = Files
        .create(&path, &settings(&[("layout", "tree")]))
        .expect("created");
    let dataset = Dataset {
        count: 10_201,
        size: SizeDistribution::Fixed(1),
        compressibility: 0.0,
        seed: 1,
    };
    store.load(&dataset, &mut |_| ()).expect("loaded");
    assert_eq!(names_in(&path), ["00", "01"]);
    assert_eq!(names_in(&path.join("00")).len(), 100);
    assert_eq!(
        names_in(&path.join("00/00")).len(),
        99,
        "there is no blob 0"
    );
    assert_eq!(names_in(&path.join("00/99")).len(), 100);
    assert_eq!(names_in(&path.join("01")), ["00", "01", "02"]);
    assert_eq!(names_in(&path.join("01/02")), ["00", "01"]);
}

#[test]
fn the_wrong_layout_is_refused() {
    let place = tempfile::tempdir().expect("a scratch directory");
    for (layout, other, found) in [
        ("flat", "tree", Layout::Flat),
        ("tree", "flat", Layout::Tree),
    ] {
        let path = place.path().join(layout);
        let store = Files
            .create(&path, &settings(&[("layout", layout)]))
            .expect("created");
        assert_eq!(layout_of(&path).expect("listed"), None);
        drop(open(&path, &[("layout", other)]));
        put(&mut *store.session().expect("a session"), 123_456, b"x");
        assert_eq!(layout_of(&path).expect("listed"), Some(found));
        drop(open(&path, &[("layout", layout)]));
        let refused = Files.open(&path, &settings(&[("layout", other)]));
        let refused = refused.map(|_| "a store").expect_err("refused");
        assert!(
            matches!(refused, EngineError::NotInForce { .. }),
            "{refused}"
        );
    }
}

#[test]
fn foreign_entries_are_ignored() {
    let place = tempfile::tempdir().expect("a scratch directory");
    let flat = place.path().join("flat");
    fs::create_dir_all(flat.join("000009")).expect("made");
    for name in ["1", "000002.new1", "0000003", "README", "00000x", "000004"] {
        fs::write(flat.join(name), b"foreign").expect("written");
    }
    let store = open(&flat, &[("layout", "flat")]);
    assert_eq!(keys(&mut *store.session().expect("a session")), [4]);

    let tree = place.path().join("tree");
    for folder in ["00/00", "00/100", "000/00", "01/xx", "02"] {
        fs::create_dir_all(tree.join(folder)).expect("made");
        fs::write(tree.join(folder).join("05"), b"a blob or not").expect("written");
    }
    fs::write(tree.join("00/00/100"), b"foreign").expect("written");
    let store = open(&tree, &[("layout", "tree")]);
    assert_eq!(keys(&mut *store.session().expect("a session")), [5]);
}

#[test]
fn overwriting_keeps_or_replaces_the_file_as_asked() {
    use std::os::unix::fs::MetadataExt;
    let place = tempfile::tempdir().expect("a scratch directory");
    for api in ["stdio", "open", "openat", "mmap"] {
        for (write, replaced) in [("truncate", false), ("in-place", false), ("rename", true)] {
            let path = place.path().join(format!("{api}-{write}"));
            let pairs = [("api", api), ("write", write)];
            let store = Files.create(&path, &settings(&pairs)).expect("created");
            let mut session = store.session().expect("a session");
            put(&mut *session, 1, b"the old blob");
            let old = path.join("000001").metadata().expect("there");
            // Held open, so that its number is not given to another file.
            let held = fs::File::open(path.join("000001")).expect("opened");
            put(&mut *session, 1, b"the new");
            let new = path.join("000001").metadata().expect("there");
            assert_eq!(old.ino() != new.ino(), replaced, "{api} {write}");
            assert_eq!(fs::read(path.join("000001")).expect("read"), b"the new");
            assert_eq!(names_in(&path), ["000001"], "{api} {write}");
            drop(held);
        }
    }
}

#[test]
fn a_replacement_that_fails_leaves_nothing() {
    let place = tempfile::tempdir().expect("a scratch directory");
    for api in ["stdio", "openat"] {
        let path = place.path().join(api);
        let pairs = [("api", api), ("write", "rename")];
        let store = Files.create(&path, &settings(&pairs)).expect("created");
        // A file cannot be renamed over a directory.
        fs::create_dir(path.join("000001")).expect("made");
        let mut session = store.session().expect("a session");
        let failed = session.writer().expect("a writer").put(1, b"x");
        let message = failed.expect_err("refused").to_string();
        assert!(message.contains("replace"), "{message}");
        assert_eq!(names_in(&path), ["000001"]);
    }
}

#[test]
fn errors_name_the_file() {
    let place = tempfile::tempdir().expect("a scratch directory");
    let path = place.path().join("store");
    for api in ["stdio", "open", "openat", "mmap"] {
        // Not empty, because some file systems would say it had no bytes to read.
        fs::create_dir_all(path.join("000001/entry")).expect("made");
        let store = open(&path, &[("api", api)]);
        let mut session = store.session().expect("a session");
        let failed = session.read(1, &mut |_| panic!("a directory is no blob"));
        let message = failed.expect_err("refused").to_string();
        assert!(message.contains("000001"), "{api}: {message}");
    }
}

#[test]
fn durability_follows_from_what_is_synchronised() {
    let tier = |write, sync| Files.durability(&settings(&[("write", write), ("sync", sync)]));
    for write in ["truncate", "in-place", "rename"] {
        assert_eq!(tier(write, "none"), Durability::ProcessCrash);
        assert_eq!(tier(write, "fsync+dir"), Durability::PowerLoss);
    }
    assert_eq!(tier("truncate", "fsync"), Durability::PowerLoss);
    assert_eq!(tier("in-place", "fsync"), Durability::PowerLoss);
    assert_eq!(tier("rename", "fsync"), Durability::ProcessCrash);
}
