//! Archives and directories that are not what they should be, as the verbs for archives answer them: exit
//! code, the name of the entry, a hint, and a target that stays consistent. What the library says of each is
//! tested beside it.

mod program;

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use rusqlite::{Connection, params};

use program::{code, run as sqlitmus, stderr};

const SCHEMA: &str =
    "CREATE TABLE sqlar(name TEXT PRIMARY KEY, mode INT, mtime INT, sz INT, data BLOB)";

fn say(reason: &str) {
    writeln!(std::io::stderr(), "skipped: {reason}").expect("stderr");
}

/// An archive with a good entry, and one of that size and data.
fn archive(path: &Path, schema: &str, size: i64, data: &[u8]) {
    let connection = Connection::open(path).expect("opened");
    connection.execute_batch(schema).expect("schema");
    if schema != SCHEMA {
        return;
    }
    for (name, size, data) in [("good", 4, &b"good"[..]), ("liar", size, data)] {
        connection
            .execute(
                "INSERT INTO sqlar VALUES(?1, 33188, 0, ?2, ?3)",
                params![name, size, data],
            )
            .expect("inserted");
    }
}

/// Files below a directory, by name.
fn files(top: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![top.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten() {
            let path = entry.expect("entry").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(top).expect("below").display().to_string();
                found.insert(name, fs::read(path).expect("read"));
            }
        }
    }
    found
}

fn tree(top: &Path, count: usize, bytes: usize) {
    for number in 0..count {
        let folder = top.join((number % 10).to_string());
        fs::create_dir_all(&folder).expect("directory");
        let content = format!("{number} ").repeat(bytes / 2);
        fs::write(folder.join(number.to_string()), &content[..bytes]).expect("file");
    }
}

#[test]
fn an_archive_that_lies_is_refused_by_name_and_leaves_whole_files_only() {
    let place = tempfile::tempdir().expect("temporary directory");
    let at = |name: &str| place.path().join(name);
    // What `sqlitmus pack` makes of it, and what happens to it.
    let text = b"a".repeat(50_000);
    fs::create_dir(at("from")).expect("directory");
    fs::write(at("from/liar"), &text).expect("file");
    let packed = sqlitmus(
        place.path(),
        &["pack", "from", "sound.sqlar", "--compress", "6"],
    );
    assert_eq!(code(&packed), Some(0), "{}", stderr(&packed));
    let stream: Vec<u8> = Connection::open(at("sound.sqlar"))
        .and_then(|sound| sound.query_row("SELECT data FROM sqlar", [], |row| row.get(0)))
        .expect("a stream");
    let mut corrupt = stream.clone();
    corrupt[20] ^= 0xff;
    let cut = &stream[..stream.len() - 9];
    let cases: [(&str, i64, &[u8]); 5] = [
        ("sz-too-large", 50_001, &stream),
        ("sz-too-small", 49_999, &stream),
        ("corrupt-zlib", 50_000, &corrupt),
        ("zlib-cut-short", 50_000, cut),
        ("raw-shorter-than-sz", 9, b"abc"),
    ];
    for (name, size, data) in cases {
        let file = format!("{name}.sqlar");
        archive(&at(&file), SCHEMA, size, data);
        let unpacked = sqlitmus(place.path(), &["unpack", &file, "--into", name]);
        let told = stderr(&unpacked);
        assert_eq!(code(&unpacked), Some(2), "{name}: {told}");
        assert!(
            told.contains("liar") && told.contains("hint: "),
            "{name}: {told}"
        );
        let left = files(&at(name));
        assert!(
            left.is_empty() || left == BTreeMap::from([("good".to_owned(), b"good".to_vec())]),
            "{name}: {left:?}"
        );
        let verified = sqlitmus(place.path(), &["verify", &file]);
        let said = String::from_utf8_lossy(&verified.stdout).into_owned();
        assert_eq!(code(&verified), Some(1), "{name}: {said}");
        assert!(said.contains("liar"), "{name}: {said}");
        let read = sqlitmus(place.path(), &["cat", &file, "liar"]);
        assert_eq!(code(&read), Some(2), "{name}: {}", stderr(&read));
    }
}

#[test]
fn what_is_no_archive_is_refused_by_every_verb() {
    let place = tempfile::tempdir().expect("temporary directory");
    let at = |name: &str| place.path().join(name);
    fs::write(at("text"), "a text of some length, and no database at all").expect("file");
    archive(&at("other"), "CREATE TABLE other(name)", 0, b"");
    archive(&at("whole"), SCHEMA, 60_000, &[7; 60_000]);
    let bytes = fs::read(at("whole")).expect("read");
    fs::write(at("truncated"), &bytes[..bytes.len() / 2]).expect("file");
    let cases = [
        ("text", "is not an SQLite archive"),
        ("other", "no table `sqlar`"),
        ("truncated", "is truncated"),
        ("nothing", "there is no archive"),
    ];
    for (name, expected) in cases {
        for words in [
            vec!["unpack", name, "--into", "to"],
            vec!["ls", name],
            vec!["cat", name, "x"],
            vec!["serve", name, "--listen", "127.0.0.1:0"],
        ] {
            let output = sqlitmus(place.path(), &words);
            let told = stderr(&output);
            assert_eq!(code(&output), Some(2), "{words:?}: {told}");
            assert!(
                told.contains(expected) && told.contains("hint: "),
                "{words:?}: {told}"
            );
        }
        assert!(!at("to").exists(), "{name}: nothing was made");
    }
}

/// A file of sysfs says that it is as long as a page, and is shorter: as one that shrinks while it is read.
#[test]
fn a_source_that_becomes_shorter_is_named_and_can_be_left_out() {
    let source = Path::new("/sys/kernel/mm/transparent_hugepage");
    let enabled = source.join("enabled");
    let shrinks = |path: &Path| {
        let claimed = fs::metadata(path).ok()?.len();
        Some(claimed > fs::read(path).ok()?.len() as u64)
    };
    if shrinks(&enabled) != Some(true) {
        say("there is no /sys/kernel/mm/transparent_hugepage/enabled that can be read");
        return;
    }
    let place = tempfile::tempdir().expect("temporary directory");
    let words = [
        "pack",
        "/sys/kernel/mm/transparent_hugepage",
        "a.sqlar",
        "--include",
        "enabled",
    ];
    let packed = sqlitmus(place.path(), &words);
    let told = stderr(&packed);
    assert_eq!(code(&packed), Some(5), "{told}");
    assert!(
        told.contains("enabled") && told.contains("became shorter") && told.contains("hint: "),
        "{told}"
    );
    assert_eq!(
        fs::read_dir(place.path()).expect("readable").count(),
        0,
        "no archive, and nothing stray"
    );
    let mut skipping = words.to_vec();
    skipping.push("--skip-unreadable");
    let packed = sqlitmus(place.path(), &skipping);
    let told = stderr(&packed);
    assert_eq!(code(&packed), Some(4), "done, but not all of it: {told}");
    assert!(
        told.contains("enabled"),
        "what was left out is named: {told}"
    );
}

/// Files take whole pages there, so that what fits by its bytes does not fit.
#[test]
fn a_disk_that_is_full_in_the_middle_leaves_whole_files_only() {
    let is_allowed = std::env::var_os("SQLITMUS_TEST_MOUNTS").is_some();
    if !is_allowed || !rustix::process::geteuid().is_root() {
        say("mounting needs root and SQLITMUS_TEST_MOUNTS=1");
        return;
    }
    let place = tempfile::tempdir().expect("temporary directory");
    tree(&place.path().join("from"), 2000, 200);
    let packed = sqlitmus(place.path(), &["pack", "from", "a.sqlar"]);
    assert_eq!(code(&packed), Some(0), "{}", stderr(&packed));
    let small = place.path().join("small");
    fs::create_dir(&small).expect("directory");
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=2m", "tmpfs"])
        .arg(&small)
        .status();
    assert!(mounted.expect("mount runs").success());
    let unpacked = sqlitmus(place.path(), &["unpack", "a.sqlar", "--into", "small/to"]);
    let left = files(&small.join("to"));
    let unmounted = Command::new("umount").arg(&small).status();
    assert!(unmounted.expect("umount runs").success());
    let told = stderr(&unpacked);
    assert_eq!(code(&unpacked), Some(5), "{told}");
    assert!(
        told.contains("no space left to write") && told.contains("hint: "),
        "{told}"
    );
    let sound = files(&place.path().join("from"));
    assert!(
        !left.is_empty() && left.len() < sound.len(),
        "{}",
        left.len()
    );
    for (name, content) in &left {
        assert_eq!(Some(content), sound.get(name), "{name}");
    }
}

#[test]
fn a_kill_while_unpacking_leaves_whole_files_only_and_force_goes_on() {
    let place = tempfile::tempdir().expect("temporary directory");
    tree(&place.path().join("from"), 1200, 9000);
    let packed = sqlitmus(place.path(), &["pack", "from", "a.sqlar", "--quiet"]);
    assert_eq!(code(&packed), Some(0), "{}", stderr(&packed));
    let sound = files(&place.path().join("from"));
    let mut cut_short = 0;
    for number in 0..4_u64 {
        let target = place.path().join(format!("to-{number}"));
        let into = target.display().to_string();
        let words = ["unpack", "a.sqlar", "--quiet", "--into", &into];
        let mut child = program::command(place.path(), &words)
            .stderr(Stdio::null())
            .spawn()
            .expect("started");
        // The moment is chosen by how far it has come, so that slow machines are killed in the middle too.
        let wanted = (number * 300) as usize;
        while child.try_wait().expect("asked").is_none() && files_at_most(&target, wanted) {
            std::thread::sleep(Duration::from_millis(1));
        }
        child.kill().expect("killed");
        child.wait().expect("waited");
        let left = files(&target);
        cut_short += usize::from(left.len() < sound.len());
        for (name, content) in &left {
            assert!(
                Some(content) == sound.get(name),
                "{name}: {} bytes of {:?}",
                content.len(),
                sound.get(name).map(Vec::len)
            );
        }
        if number % 4 == 1 {
            let again = sqlitmus(
                place.path(),
                &["unpack", "a.sqlar", "--quiet", "--force", "--into", &into],
            );
            assert_eq!(code(&again), Some(0), "{}", stderr(&again));
            assert!(files(&target) == sound, "all of it, and nothing else");
        }
        fs::remove_dir_all(&target).expect("removed");
    }
    assert!(cut_short > 0, "at least one was killed before it was done");
}

/// Whether there are no more files than that; counted without reading them.
fn files_at_most(top: &Path, most: usize) -> bool {
    let folders = fs::read_dir(top).into_iter().flatten().flatten();
    let counts = folders.map(|folder| fs::read_dir(folder.path()).into_iter().flatten().count());
    counts.sum::<usize>() <= most
}
