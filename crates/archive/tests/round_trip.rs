//! What is packed comes out again: names, content, permissions, times and links.

mod tree;

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::time::{Duration, SystemTime};

use proptest::prelude::*;
use sqlitmus_archive::{
    Archive, ArchiveError, Compression, PackSettings, Selection, UnpackSettings, VerifySettings,
    Watch, pack, unpack, verify,
};

fn round_trip(from: &Path, settings: &PackSettings) -> Result<(), String> {
    let folder = tempfile::tempdir().expect("temporary directory");
    let (path, to) = (folder.path().join("a.sqlar"), folder.path().join("to"));
    let text = |error: ArchiveError| error.to_string();
    pack(&[from], &path, settings, &Watch::new()).map_err(text)?;
    let archive = Archive::open(&path).map_err(text)?;
    unpack(&archive, &to, &UnpackSettings::default(), &Watch::new()).map_err(text)?;
    let against = VerifySettings {
        against: Some(from),
        ..VerifySettings::default()
    };
    let report = verify(&archive, &against, &Watch::new()).map_err(text)?;
    if !report.faults.is_empty() {
        return Err(format!("{:?}", report.faults));
    }
    let (before, after) = (tree::read(from), tree::read(&to));
    if before == after {
        Ok(())
    } else {
        Err(format!("{before:?}\n{after:?}"))
    }
}

#[derive(Debug, Clone)]
enum Node {
    File(Vec<u8>, u32, u32),
    Directory(u32),
    Link(String),
}

fn node() -> impl Strategy<Value = Node> {
    let content = prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..50),
        (any::<u8>(), 0..40_000_usize).prop_map(|(byte, length)| vec![byte; length]),
        proptest::collection::vec(any::<u8>(), 20_000..40_000),
    ];
    prop_oneof![
        8 => (content, 0..0o1000_u32, any::<u32>()).prop_map(|(content, mode, mtime)| Node::File(content, mode, mtime)),
        2 => (0..0o1000_u32).prop_map(Node::Directory),
        1 => "[a-z]{1,20}".prop_map(Node::Link),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn packing_and_unpacking_is_identity(
        nodes in proptest::collection::btree_map(
            proptest::collection::vec("[ -.0-~\u{e4}\u{1f600}\n]{1,12}", 1..5), node(), 0..25),
        compression in prop_oneof![
            Just(Compression::Never), Just(Compression::Auto), (1..10_u32).prop_map(Compression::Level)],
        page in 9..17_u32,
        threads in 1..4_usize,
        verify in any::<bool>(),
    ) {
        let folder = tempfile::tempdir().expect("temporary directory");
        let top = folder.path();
        let mut modes = Vec::new();
        for (parts, node) in &nodes {
            if parts.iter().any(|part| part == "." || part == "..") {
                continue;
            }
            let path = top.join(parts.join("/"));
            // A name that another node has taken as a file is left out.
            if fs::create_dir_all(path.parent().expect("a parent")).is_err() || path.symlink_metadata().is_ok() {
                continue;
            }
            match node {
                Node::File(content, mode, mtime) => {
                    fs::write(&path, content).expect("file");
                    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(u64::from(*mtime));
                    fs::File::options().write(true).open(&path).expect("open").set_modified(time).expect("time");
                    modes.push((path, *mode | 0o400));
                }
                Node::Directory(mode) => {
                    fs::create_dir(&path).expect("directory");
                    modes.push((path, *mode | 0o500));
                }
                Node::Link(target) => symlink(target, &path).expect("link"),
            }
        }
        for (path, mode) in modes.iter().rev() {
            fs::set_permissions(path, fs::Permissions::from_mode(*mode)).expect("permissions");
        }
        let settings = PackSettings { compression, page_bytes: 1 << page, threads, verify, ..PackSettings::default() };
        prop_assert_eq!(round_trip(top, &settings), Ok(()));
        for (path, _) in &modes {
            // So that an ordinary user can remove it.
            let _ = fs::set_permissions(path, fs::Permissions::from_mode(0o700));
        }
    }
}

#[test]
fn deep_paths_many_files_and_large_ones_come_out_again() {
    let folder = tempfile::tempdir().expect("temporary directory");
    let top = folder.path();
    // Longer than the system takes in one piece.
    let mut deep = top.to_owned();
    for _ in 0..60 {
        deep.push("d".repeat(60));
    }
    fs::create_dir_all(&deep).expect("directories");
    fs::write(deep.join("file"), "deep").expect("file");
    for number in 0..3000 {
        tree::write(
            top,
            &format!("many/{}/{number}", number % 7),
            number.to_string().as_bytes(),
        );
    }
    let words = b"compressible ".repeat(1_000_000);
    tree::write(top, "large/words", &words);
    let mut state = 1_u64;
    let noise: Vec<u8> = (0..9_000_000)
        .map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 56) as u8
        })
        .collect();
    tree::write(top, "large/noise", &noise);
    for compression in [Compression::Never, Compression::Auto, Compression::Level(1)] {
        let settings = PackSettings {
            compression,
            verify: true,
            ..PackSettings::default()
        };
        assert_eq!(round_trip(top, &settings), Ok(()), "{compression:?}");
    }
}

#[test]
fn what_is_left_out_and_what_collides() {
    let folder = tempfile::tempdir().expect("temporary directory");
    let (one, two) = (folder.path().join("one"), folder.path().join("two"));
    for name in ["keep/a.jpg", "keep/b.png", "old/c.jpg", "d.jpg"] {
        tree::write(&one, name, b"x");
    }
    tree::write(&two, "keep/e.jpg", b"y");
    let path = folder.path().join("a.sqlar");
    let selection =
        Selection::new(&["*.jpg".to_owned()], &["old/".to_owned()], &[]).expect("patterns");
    let settings = PackSettings {
        selection,
        replace: true,
        ..PackSettings::default()
    };
    let report = pack(&[&one, &two], &path, &settings, &Watch::new()).expect("packed");
    assert_eq!((report.files, report.directories), (3, 1));
    let names: Vec<String> = Archive::open(&path)
        .and_then(|archive| archive.reader())
        .and_then(|reader| reader.entries())
        .expect("entries")
        .into_iter()
        .map(|entry| entry.name)
        .collect();
    assert_eq!(names, ["d.jpg", "keep", "keep/a.jpg", "keep/e.jpg"]);
    tree::write(&two, "d.jpg", b"z");
    let clash = pack(&[&one, &two], &path, &settings, &Watch::new()).expect_err("a clash");
    assert!(
        clash.to_string().contains("`d.jpg` is there twice"),
        "{clash}"
    );
    assert_eq!(
        fs::read_dir(folder.path()).expect("readable").count(),
        3,
        "nothing is left over"
    );
}

#[test]
fn what_cannot_be_packed_is_named_or_left_out_as_asked() {
    let folder = tempfile::tempdir().expect("temporary directory");
    let top = folder.path().join("top");
    tree::write(&top, "good", b"x");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        top.join("pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    )
    .expect("a pipe");
    let path = folder.path().join("a.sqlar");
    let refused =
        pack(&[&top], &path, &PackSettings::default(), &Watch::new()).expect_err("a pipe");
    assert!(refused.to_string().contains("named pipe"), "{refused}");
    assert!(!path.exists());
    let odd = std::os::unix::ffi::OsStrExt::from_bytes(b"odd\xff");
    fs::write(top.join(<std::ffi::OsStr as AsRef<Path>>::as_ref(odd)), "x").expect("file");
    let huge = fs::File::create(top.join("huge")).expect("file");
    huge.set_len(1_100_000_000).expect("sparse");
    let settings = PackSettings {
        skip_unreadable: true,
        ..PackSettings::default()
    };
    let refused = pack(&[&top], &path, &settings, &Watch::new()).expect_err("too large");
    assert!(
        refused.to_string().contains("huge") && refused.hint().contains("--skip-too-large"),
        "{refused}"
    );
    let settings = PackSettings {
        skip_too_large: true,
        ..settings
    };
    let report = pack(&[&top], &path, &settings, &Watch::new()).expect("packed");
    assert_eq!(
        (report.files, report.skipped.len()),
        (1, 3),
        "{:?}",
        report.skipped
    );
}
