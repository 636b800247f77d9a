//! `sqlite3 -A` reads our archives, and we read its. Skipped where there is no such program.

mod tree;

use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use sqlitmus_archive::{
    Archive, Compression, PackSettings, UnpackSettings, VerifySettings, Watch, pack, unpack, verify,
};

fn shell(directory: &Path, words: &[&str]) -> Option<String> {
    let output = Command::new("sqlite3")
        .args(words)
        .current_dir(directory)
        .output()
        .ok()?;
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    if errors.contains("unknown option") {
        return None;
    }
    assert!(output.status.success(), "{words:?}: {errors}");
    Some(String::from_utf8(output.stdout).expect("UTF-8"))
}

/// With `SQLITMUS_TEST_LARGE=1` as many files as the format is used for; else enough for every kind.
fn make(top: &Path) {
    let files = if std::env::var_os("SQLITMUS_TEST_LARGE").is_some() {
        100_000
    } else {
        300
    };
    for number in 0..files {
        tree::write(
            top,
            &format!("many/{}/{number}", number % 100),
            format!("{number}").repeat(9).as_bytes(),
        );
    }
    for name in [
        "a b",
        "quote'",
        "double\"",
        "\u{e4}\u{1f600}",
        "-dash",
        "star*?[x]",
        "semi;colon",
        "back\\slash",
    ] {
        tree::write(top, &format!("odd/{name}"), name.as_bytes());
    }
    tree::write(top, "empty", b"");
    tree::write(top, "words", &b"compressible ".repeat(10_000));
    let deep = ["d"; 200].join("/");
    tree::write(top, &format!("{deep}/file"), b"deep");
    std::fs::create_dir(top.join("nothing")).expect("directory");
    symlink("words", top.join("link")).expect("link");
}

#[test]
fn both_ways_give_equal_bytes() {
    let folder = tempfile::tempdir().expect("temporary directory");
    let at = |name: &str| folder.path().join(name);
    let from = at("from");
    make(&from);
    let ours = at("ours.sqlar");
    let settings = PackSettings {
        compression: Compression::Auto,
        ..PackSettings::default()
    };
    let report = pack(&[&from], &ours, &settings, &Watch::new()).expect("packed");
    let Some(listed) = shell(folder.path(), &["ours.sqlar", "-Atv"]) else {
        writeln!(std::io::stderr(), "skipped: there is no sqlite3 with -A").expect("stderr");
        return;
    };
    let entries = report.files + report.directories + report.links;
    assert_eq!(listed.lines().count() as u64, entries);
    std::fs::create_dir(at("theirs")).expect("directory");
    shell(&at("theirs"), &["../ours.sqlar", "-Ax"]);
    same(&from, &at("theirs"));

    let names: Vec<String> = std::fs::read_dir(&from)
        .expect("readable")
        .map(|entry| {
            entry
                .expect("entry")
                .file_name()
                .into_string()
                .expect("UTF-8")
        })
        .collect();
    let mut words = vec!["../theirs.sqlar", "-Ac"];
    words.extend(names.iter().map(String::as_str));
    shell(&from, &words).expect("it was there before");
    let archive = Archive::open(&at("theirs.sqlar")).expect("opened");
    unpack(
        &archive,
        &at("out"),
        &UnpackSettings::default(),
        &Watch::new(),
    )
    .expect("unpacked");
    assert!(tree::read(&from) == tree::read(&at("out")));
    let against = VerifySettings {
        against: Some(&from),
        ..VerifySettings::default()
    };
    let report = verify(&archive, &against, &Watch::new()).expect("verified");
    assert_eq!(report.faults, Vec::<String>::new());
}

/// `sqlite3 -Ax` gives the time of a link to what it points at, and directories that have content the time
/// of unpacking.
fn same(one: &Path, other: &Path) {
    let (one, other) = (tree::read(one), tree::read(other));
    let missing: Vec<_> = one
        .keys()
        .filter(|name| !other.contains_key(*name))
        .take(9)
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
    assert_eq!(one.len(), other.len());
    for (name, (mode, mtime, content)) in &one {
        let (other_mode, other_mtime, other_content) = &other[name];
        assert_eq!((mode, content), (other_mode, other_content), "{name}");
        if mode & 0o170_000 == 0o100_000 && name != "words" {
            assert_eq!(mtime, other_mtime, "{name}");
        }
    }
}
