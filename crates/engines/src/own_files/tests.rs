//! What `own-files` promises: content where it lies, by every way of reading, and never a write.

use std::sync::Arc;

use super::*;

struct Place {
    folder: tempfile::TempDir,
    list: FileList,
}

/// Three files in a folder of theirs: one empty, one short, one of many pages.
fn place() -> Place {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().join("theirs");
    std::fs::create_dir_all(root.join("deep/er")).expect("created");
    let files = [("empty", 0), ("deep/short", 5), ("deep/er/long", 70_000)];
    let files = files.map(|(name, bytes)| {
        std::fs::write(root.join(name), vec![bytes as u8; bytes]).expect("written");
        let path = PathBuf::from(name);
        let bytes = bytes as u32;
        ListedFile { path, bytes }
    });
    Place {
        list: FileList::new(&root, files.to_vec()),
        folder,
    }
}

fn content(place: &Place) -> FileContent {
    FileContent(Arc::new(place.list.clone()))
}

#[test]
fn every_way_of_reading_delivers_the_files() {
    let place = place();
    for api in ["open", "openat", "mmap"] {
        let settings = Settings::from_pairs([("api", api)]);
        let path = place.folder.path().join(api);
        let store = OwnFiles.create(&path, &settings).expect("created");
        store.load(&content(&place), &mut |_| {}).expect("loaded");
        let store = OwnFiles.open(&path, &settings).expect("opened");
        let mut session = store.session().expect("a session");
        for (key, bytes) in [(1, 0), (2, 5), (3, 70_000)] {
            let mut read = None;
            session
                .read(key, &mut |blob| read = Some(blob.to_vec()))
                .expect("read");
            assert_eq!(read, Some(vec![bytes as u8; bytes]), "{api}, blob {key}");
        }
        let missing = session.read(4, &mut |_| panic!("there is no blob 4"));
        assert!(matches!(missing, Err(EngineError::Missing { key: 4, .. })));
        assert!(session.writer().is_none());
        let mut keys = Vec::new();
        session.keys(&mut |key| keys.push(key)).expect("listed");
        assert_eq!(keys, [1, 2, 3]);
        assert_eq!(session.read_back().expect("told")["api"], api);
    }
}

#[test]
fn the_files_are_nobody_elses_to_remove() {
    let place = place();
    let path = place.folder.path().join("list");
    let settings = Settings::default();
    let store = OwnFiles.create(&path, &settings).expect("created");
    store.load(&content(&place), &mut |_| {}).expect("loaded");
    assert!(OwnFiles.companions(&path).is_empty());
    let foreign = OwnFiles.foreign_files(&path).expect("listed");
    assert_eq!(foreign.len(), 3);
    assert!(foreign.iter().all(|path| path.is_file()));
    assert!(OwnFiles.create(&path, &settings).is_err(), "it is there");
}

#[test]
fn content_that_is_in_no_files_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let settings = Settings::default();
    let store = OwnFiles.create(&folder.path().join("list"), &settings);
    let generated = sqlitmus_core::dataset::Dataset {
        count: 3,
        size: sqlitmus_core::dataset::SizeDistribution::Fixed(5),
        compressibility: 0.0,
        seed: 1,
    };
    let loaded = store.expect("created").load(&generated, &mut |_| {});
    assert!(matches!(loaded, Err(EngineError::Unavailable(_))));
}

#[test]
fn a_file_that_has_changed_is_named() {
    let place = place();
    let content = content(&place);
    let mut buffer = Vec::new();
    content.fill(2, &mut buffer).expect("as it was");
    assert_eq!(buffer, [5; 5]);
    for bytes in [4, 6] {
        std::fs::write(place.list.root().join("deep/short"), vec![5; bytes]).expect("written");
        let error = content.fill(2, &mut buffer).expect_err("changed");
        assert!(
            error.to_string().contains("deep/short has changed"),
            "{error}"
        );
    }
    std::fs::remove_file(place.list.root().join("deep/short")).expect("removed");
    let error = content.fill(2, &mut buffer).expect_err("gone");
    assert!(error.to_string().contains("deep/short"), "{error}");
    assert!(content.fill(0, &mut buffer).is_err() && content.fill(4, &mut buffer).is_err());
}

#[test]
fn lists_keep_any_name_and_rubbish_is_no_list() {
    use std::os::unix::ffi::OsStrExt;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("list");
    let odd = std::ffi::OsStr::from_bytes(b"line\nbreak \xff");
    let list = FileList::new(
        Path::new("/somewhere"),
        vec![ListedFile {
            path: odd.into(),
            bytes: 7,
        }],
    );
    list.write(&path).expect("written");
    assert_eq!(FileList::read(&path).expect("read"), list);
    for rubbish in [
        &b""[..],
        b"\0",
        b"something else\0/\0",
        b"sqlitmus list of files 1\0/\0x\0y\0",
    ] {
        std::fs::write(&path, rubbish).expect("written");
        let read = FileList::read(&path);
        assert!(matches!(read, Err(EngineError::Damaged { .. })), "{read:?}");
    }
    let missing = FileList::read(&folder.path().join("none"));
    assert!(matches!(missing, Err(EngineError::NoStore(_))));
}
