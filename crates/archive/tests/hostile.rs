//! Archives that lie, and directories that are not what they seem: refused as a whole, and nothing is
//! written outside, whatever they try.

mod tree;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, params};
use sqlitmus_archive::{
    Archive, ArchiveError, Compression, Links, UnpackSettings, VerifySettings, Watch, unpack,
    verify,
};

const SCHEMA: &str =
    "CREATE TABLE sqlar(name TEXT PRIMARY KEY, mode INT, mtime INT, sz INT, data BLOB)";

type Row<'a> = (&'a str, u32, i64, Option<&'a [u8]>);

fn database(path: &Path, schema: &str, rows: &[Row<'_>]) {
    let connection = Connection::open(path).expect("opened");
    connection.execute_batch(schema).expect("schema");
    for (name, mode, size, data) in rows {
        connection
            .execute(
                "INSERT INTO sqlar VALUES(?1, ?2, 0, ?3, ?4)",
                params![name, mode, size, data],
            )
            .expect("inserted");
    }
}

struct Try {
    _folder: tempfile::TempDir,
    outside: PathBuf,
    target: PathBuf,
    path: PathBuf,
}

impl Try {
    fn new(rows: &[Row<'_>]) -> Self {
        let folder = tempfile::tempdir().expect("temporary directory");
        let outside = folder.path().join("outside");
        let target = outside.join("target");
        fs::create_dir_all(&target).expect("directories");
        fs::write(outside.join("precious"), "precious").expect("file");
        let path = folder.path().join("a.sqlar");
        database(&path, SCHEMA, rows);
        Self {
            _folder: folder,
            outside,
            target,
            path,
        }
    }

    fn unpack(&self, settings: &UnpackSettings) -> Result<(), ArchiveError> {
        let archive = Archive::open(&self.path)?;
        unpack(&archive, &self.target, settings, &Watch::new()).map(drop)
    }

    /// Nothing was written anywhere.
    fn is_untouched(&self) {
        let there = tree::read(&self.outside);
        let names: Vec<&str> = there.keys().map(String::as_str).collect();
        assert_eq!(names, ["precious", "target"]);
        assert_eq!(there["precious"].2, b"precious");
    }
}

const FILE: u32 = 0o100_644;
const LINK: u32 = 0o120_777;

fn file(name: &str) -> Row<'_> {
    (name, FILE, 3, Some(b"bad"))
}

fn link<'a>(name: &'a str, target: &'a str) -> Row<'a> {
    (name, LINK, -1, Some(target.as_bytes()))
}

#[test]
fn names_and_links_that_lead_out_refuse_the_whole() {
    let cases: &[&[Row<'_>]] = &[
        &[file("/tmp/sqlitmus-should-not-exist")],
        &[file("../precious")],
        &[file("a/../../precious")],
        &[file("good"), file("..")],
        &[link("a", "/etc")],
        &[link("a", "../precious")],
        &[link("d/a", "../../precious")],
        &[link("d/a", "b/../../../precious")],
        &[link("a", "."), file("a/b")],
        &[link("a", "target"), file("a/precious")],
        &[file("a"), file("a/b")],
        &[file("a"), file("./a")],
        &[file("a/b"), file("a//b")],
        &[link("a", "x"), file("./a")],
        &[("device", 0o060_644, 0, Some(b""))],
        &[("pipe", 0o010_644, 0, Some(b""))],
        &[link("a", "")],
        &[file("a\0b")],
    ];
    for rows in cases {
        let attempt = Try::new(rows);
        for force in [false, true] {
            let error = attempt
                .unpack(&UnpackSettings {
                    force,
                    ..UnpackSettings::default()
                })
                .expect_err("refused");
            assert!(
                matches!(error, ArchiveError::Unsafe { .. }),
                "{rows:?}: {error}"
            );
        }
        attempt.is_untouched();
    }
}

#[test]
fn links_elsewhere_are_made_if_asked_for_and_never_followed() {
    let attempt = Try::new(&[link("out", "../precious"), file("in")]);
    attempt
        .unpack(&UnpackSettings {
            links: Links::Skip,
            ..UnpackSettings::default()
        })
        .expect("unpacked");
    assert!(!attempt.target.join("out").exists());
    let all = UnpackSettings {
        links: Links::All,
        force: true,
        ..UnpackSettings::default()
    };
    attempt.unpack(&all).expect("unpacked");
    assert_eq!(
        fs::read_link(attempt.target.join("out")).expect("a link"),
        Path::new("../precious")
    );
    // Now the link is there, and an archive has a file of its name: it is replaced, not written through.
    let second = attempt.outside.join("second.sqlar");
    database(&second, SCHEMA, &[file("out")]);
    let archive = Archive::open(&second).expect("opened");
    let refused = unpack(
        &archive,
        &attempt.target,
        &UnpackSettings::default(),
        &Watch::new(),
    );
    assert!(matches!(refused, Err(ArchiveError::WouldOverwrite { .. })));
    let forced = UnpackSettings {
        force: true,
        ..UnpackSettings::default()
    };
    unpack(&archive, &attempt.target, &forced, &Watch::new()).expect("unpacked");
    assert_eq!(
        fs::read(attempt.outside.join("precious")).expect("file"),
        b"precious"
    );
    assert_eq!(fs::read(attempt.target.join("out")).expect("file"), b"bad");
}

#[test]
fn planted_links_are_not_followed() {
    let attempt = Try::new(&[file("d/precious"), ("e", 0o040_755, 0, None)]);
    symlink("..", attempt.target.join("d")).expect("link");
    for force in [false, true] {
        let error = attempt
            .unpack(&UnpackSettings {
                force,
                ..UnpackSettings::default()
            })
            .expect_err("refused");
        assert!(error.to_string().contains("d/precious"), "{error}");
    }
    assert_eq!(
        fs::read(attempt.outside.join("precious")).expect("file"),
        b"precious"
    );
    fs::remove_file(attempt.target.join("d")).expect("removed");
    symlink("..", attempt.target.join("e")).expect("link");
    assert!(
        attempt
            .unpack(&UnpackSettings {
                force: true,
                ..UnpackSettings::default()
            })
            .is_err()
    );
    assert!(
        !attempt.target.join("d").exists(),
        "refused before anything is written"
    );
}

#[test]
fn existing_files_are_kept_unless_forced() {
    let attempt = Try::new(&[file("a"), file("b")]);
    fs::write(attempt.target.join("b"), "mine").expect("file");
    let error = attempt
        .unpack(&UnpackSettings::default())
        .expect_err("refused");
    assert!(
        error.to_string().contains("the first: b") && error.hint().contains("--force"),
        "{error}"
    );
    assert!(!attempt.target.join("a").exists());
    attempt
        .unpack(&UnpackSettings {
            force: true,
            ..UnpackSettings::default()
        })
        .expect("unpacked");
    assert_eq!(fs::read(attempt.target.join("b")).expect("file"), b"bad");
    assert_eq!(
        fs::read_dir(&attempt.target).expect("readable").count(),
        2,
        "no temporary file stays"
    );
}

#[test]
fn sizes_that_lie_and_broken_streams_name_the_entry() {
    let text = vec![b'a'; 100_000];
    let stream = Compression::Level(6).compress(&text).expect("smaller");
    let length = 100_000;
    let mut corrupt = stream.clone();
    corrupt[20] ^= 0xff;
    let cases: &[(i64, Option<&[u8]>, &str)] = &[
        (length + 1, Some(&stream), "shorter than its sz"),
        (length - 1, Some(&stream), "longer than its sz"),
        (length, Some(&corrupt), "zlib stream"),
        (length, Some(&stream[..stream.len() - 10]), "cut short"),
        (5, Some(b"abc"), "zlib stream"),
        (2, Some(b"abc"), "zlib stream"),
        (i64::MAX, Some(&stream), "cannot become"),
        (1 << 40, Some(&stream), "more than"),
        (5, None, "directory with content"),
        (-1, Some(b"abc"), "negative"),
    ];
    for (size, data, expected) in cases {
        let mode = if data.is_none() { 0o040_755 } else { FILE };
        let attempt = Try::new(&[("good", FILE, 1, Some(b"x")), ("liar", mode, *size, *data)]);
        let error = attempt
            .unpack(&UnpackSettings::default())
            .expect_err("refused")
            .to_string();
        let archive = Archive::open(&attempt.path).expect("opened");
        let report = verify(&archive, &VerifySettings::default(), &Watch::new()).expect("verified");
        let fault = report.faults.join("\n");
        let limit = error.contains("more than the 2147483647");
        assert!(
            error.contains("liar") && (error.contains(expected) || limit),
            "{size}: {error}"
        );
        assert!(fault.contains("liar"), "{size}: {fault}");
        assert!(
            !attempt.target.join("liar").exists(),
            "nothing half written stays"
        );
    }
}

#[test]
fn a_bomb_is_refused_before_it_goes_off() {
    let text = vec![0; 3_000_000];
    let stream = Compression::Level(9).compress(&text).expect("smaller");
    let attempt = Try::new(&[("bomb", FILE, 3_000_000, Some(&stream))]);
    let settings = UnpackSettings {
        max_total_bytes: Some(1_000_000),
        ..UnpackSettings::default()
    };
    let error = attempt.unpack(&settings).expect_err("refused");
    assert!(matches!(error, ArchiveError::OverLimit { .. }), "{error}");
    let settings = UnpackSettings {
        max_entry_bytes: 1_000_000,
        ..UnpackSettings::default()
    };
    assert!(
        attempt
            .unpack(&settings)
            .expect_err("refused")
            .to_string()
            .contains("bomb")
    );
    attempt.is_untouched();
    attempt
        .unpack(&UnpackSettings::default())
        .expect("unpacked");
}

#[test]
fn what_is_no_archive_is_said_to_be_none() {
    let folder = tempfile::tempdir().expect("temporary directory");
    let at = |name: &str| folder.path().join(name);
    let error = |path: &Path| Archive::open(path).expect_err("refused").to_string();
    assert!(error(&at("nothing")).contains("there is no archive"));
    assert!(error(folder.path()).contains("not a regular file"));
    fs::write(at("empty"), "").expect("file");
    assert!(error(&at("empty")).contains("it is empty"));
    fs::write(at("text"), "a text of some length").expect("file");
    assert!(error(&at("text")).contains("not an SQLite database"));
    let schemas = [
        ("CREATE TABLE other(name)", "no table `sqlar`"),
        (
            "CREATE TABLE sqlar(name, mode, mtime, sz)",
            "no column `data`",
        ),
        (
            "CREATE VIEW sqlar AS SELECT 1 name, 2 mode, 3 mtime, 4 sz, 5 data",
            "is a view",
        ),
        (
            "CREATE TABLE sqlar(name PRIMARY KEY, mode, mtime, sz, data) WITHOUT ROWID",
            "WITHOUT ROWID",
        ),
        (
            "CREATE TABLE sqlar(name, mode, mtime, sz, data AS (mode))",
            "is computed",
        ),
    ];
    for (number, (schema, expected)) in schemas.iter().enumerate() {
        let path = at(&number.to_string());
        database(&path, schema, &[]);
        assert!(
            error(&path).contains(expected),
            "{schema}: {}",
            error(&path)
        );
    }
    let path = at("sound");
    database(&path, SCHEMA, &[("a", FILE, 50_000, Some(&[7; 50_000]))]);
    let bytes = fs::read(&path).expect("read");
    for length in [50, 100, 4096, bytes.len() / 2, bytes.len() - 1] {
        fs::write(&path, &bytes[..length]).expect("file");
        assert!(
            error(&path).contains("truncated"),
            "{length}: {}",
            error(&path)
        );
    }
    let mut damaged = bytes.clone();
    damaged[4096..8192].fill(0xff);
    fs::write(&path, &damaged).expect("file");
    let found = Archive::open(&path)
        .and_then(|archive| verify(&archive, &VerifySettings::default(), &Watch::new()));
    match found {
        Ok(report) => assert!(!report.faults.is_empty()),
        Err(error) => assert!(matches!(error, ArchiveError::Damaged { .. }), "{error}"),
    }
    fs::write(&path, &bytes).expect("file");
    fs::write(at("sound-journal"), "hot").expect("file");
    assert!(error(&path).contains("unfinished changes"));
}

#[test]
fn reading_changes_and_creates_nothing_even_with_a_write_ahead_log() {
    let attempt = Try::new(&[file("a")]);
    let connection = Connection::open(&attempt.path).expect("opened");
    connection
        .pragma_update(None, "journal_mode", "wal")
        .expect("set");
    drop(connection);
    let before = fs::read(&attempt.path).expect("read");
    let archive = Archive::open(&attempt.path).expect("opened");
    let reader = archive.reader().expect("reader");
    assert_eq!(
        reader.lookup().expect("lookup").get("a").expect("read"),
        Some(&b"bad"[..])
    );
    let folder = attempt.path.parent().expect("a parent");
    assert_eq!(
        fs::read_dir(folder).expect("readable").count(),
        2,
        "no -wal, no -shm"
    );
    assert_eq!(fs::read(&attempt.path).expect("read"), before);
}
