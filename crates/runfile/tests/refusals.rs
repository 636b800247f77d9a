//! What is no run file, or no longer one, is refused with a reason and a hint; reading and
//! refusing change nothing and leave nothing behind.

mod fixture;

use std::fs::{self, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use sqlitmus_runfile::schema::{APPLICATION_ID, FORMAT_VERSION};
use sqlitmus_runfile::{RunFile, RunFileError, head, read, rounds};
use tempfile::TempDir;

/// A directory with a run file in it.
fn place() -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("directory");
    let path = fixture::run_file(directory.path());
    (directory, path)
}

/// Names, bytes and times of all files in a directory.
fn state(directory: &Path) -> Vec<(String, Vec<u8>, std::time::SystemTime)> {
    let of = |name: String| {
        let path = directory.join(&name);
        let modified = fs::metadata(&path).and_then(|metadata| metadata.modified());
        let bytes = fs::read(&path).unwrap_or_default();
        (name, bytes, modified.expect("time"))
    };
    fixture::names(directory).into_iter().map(of).collect()
}

/// Opens the file in every way, which must fail in the same way and change nothing.
fn refused(path: &Path) -> RunFileError {
    let directory = path.parent().expect("directory");
    let before = state(directory);
    let error = read(path).expect_err("read");
    let kind = std::mem::discriminant(&error);
    for other in [
        head(path).map(drop).expect_err("head"),
        rounds(path).map(drop).expect_err("rounds"),
        RunFile::open_for_append(path)
            .map(drop)
            .expect_err("append"),
    ] {
        assert_eq!(std::mem::discriminant(&other), kind, "{other} / {error}");
    }
    assert!(!error.hint().is_empty());
    assert!(!error.environment_failed(), "{error}");
    assert!(
        error.to_string().contains(&path.display().to_string()),
        "{error}"
    );
    assert!(state(directory) == before, "something changed");
    error
}

fn overwrite(path: &Path, offset: u64, bytes: &[u8]) {
    let mut file = OpenOptions::new().write(true).open(path).expect("opened");
    file.seek(SeekFrom::Start(offset)).expect("offset");
    file.write_all(bytes).expect("written");
}

#[test]
fn marks_are_as_documented() {
    let (_directory, path) = place();
    let bytes = fs::read(&path).expect("bytes");
    assert_eq!(&bytes[68..72], b"SLTM");
    assert_eq!(bytes[60..64], FORMAT_VERSION.to_be_bytes());
    assert_eq!(APPLICATION_ID, 1_397_511_245);
}

#[test]
fn what_is_no_file_is_refused() {
    let (directory, path) = place();
    let missing = refused(&directory.path().join("none.run"));
    assert!(matches!(missing, RunFileError::Missing { .. }));
    let below = directory.path().join("below");
    fs::create_dir(&below).expect("directory");
    assert!(matches!(refused(&below), RunFileError::NotAFile { .. }));
    let device = read(Path::new("/dev/null")).expect_err("refused");
    assert!(matches!(device, RunFileError::NotAFile { .. }), "{device}");
    // A name that SQLite would take for a database in memory.
    assert!(matches!(
        read(Path::new(":memory:")),
        Err(RunFileError::Missing { .. })
    ));
    assert!(matches!(
        read(Path::new("")),
        Err(RunFileError::Missing { .. })
    ));
    read(&path).expect("as before");
}

#[test]
fn what_is_no_database_is_refused() {
    let directory = tempfile::tempdir().expect("directory");
    let path = directory.path().join("a.run");
    for content in [
        "",
        "SQLite",
        "this is a text, and longer than a header of a database has to be",
    ] {
        fs::write(&path, content).expect("written");
        assert!(matches!(refused(&path), RunFileError::NotADatabase { .. }));
    }
}

#[test]
fn databases_of_others_are_refused_and_left_alone() {
    let directory = tempfile::tempdir().expect("directory");
    for mode in ["delete", "wal"] {
        let path = directory.path().join(mode);
        let foreign = Connection::open(&path).expect("opened");
        foreign
            .pragma_update(None, "journal_mode", mode)
            .expect("mode");
        foreign
            .execute_batch("PRAGMA application_id = 252006674; CREATE TABLE run (id)")
            .expect("filled");
        drop(foreign);
        let error = refused(&path);
        assert!(
            matches!(
                error,
                RunFileError::OtherApplication {
                    application_id: 252_006_674,
                    ..
                }
            ),
            "{error}"
        );
    }
    assert_eq!(fixture::names(directory.path()), ["delete", "wal"]);
}

#[test]
fn newer_and_missing_format_versions_are_refused() {
    let (_directory, path) = place();
    overwrite(&path, 60, &(FORMAT_VERSION + 1).to_be_bytes());
    let error = refused(&path);
    assert!(
        matches!(error, RunFileError::NewerFormat { found, known, .. }
        if found == FORMAT_VERSION + 1 && known == FORMAT_VERSION)
    );
    overwrite(&path, 60, &0u32.to_be_bytes());
    assert!(matches!(refused(&path), RunFileError::Damaged { .. }));
}

#[test]
fn truncated_files_are_refused_wherever_they_end() {
    let (directory, path) = place();
    let whole = fs::read(&path).expect("bytes");
    let cut = directory.path().join("cut.run");
    for bytes in [
        16,
        99,
        100,
        511,
        4096,
        5000,
        8192,
        whole.len() - 4096,
        whole.len() - 1,
    ] {
        fs::write(&cut, &whole[..bytes]).expect("written");
        let error = refused(&cut);
        let as_found = |found: u64| found == bytes as u64;
        assert!(
            matches!(error, RunFileError::Truncated { found_bytes, .. } if as_found(found_bytes)),
            "{bytes} bytes: {error}"
        );
    }
}

#[test]
fn damage_is_an_error_and_never_a_crash() {
    let (directory, path) = place();
    let whole = fs::read(&path).expect("bytes");
    let damaged = directory.path().join("damaged.run");
    for page in 1..whole.len() / 4096 {
        let mut bytes = whole.clone();
        bytes[page * 4096..(page + 1) * 4096].fill(0xA5);
        fs::write(&damaged, &bytes).expect("written");
        match read(&damaged) {
            // The page of an index that reading a run does not use.
            Ok(run) => assert_eq!(run, fixture::run()),
            Err(error) => assert!(matches!(error, RunFileError::Damaged { .. }), "{error}"),
        }
    }
}

#[test]
fn missing_tables_and_impossible_values_are_named() {
    let change = |sql: &str| {
        let (directory, path) = place();
        let connection = Connection::open(&path).expect("opened");
        let prelude = "PRAGMA foreign_keys = OFF; PRAGMA ignore_check_constraints = ON;";
        connection
            .execute_batch(&format!("{prelude} {sql}"))
            .expect("changed");
        drop(connection);
        let error = read(&path).expect_err("refused");
        drop(directory);
        error
    };
    let error = change("DROP VIEW slice; DROP TABLE sample");
    assert!(
        matches!(
            error,
            RunFileError::MissingTable {
                table: "sample",
                ..
            }
        ),
        "{error}"
    );
    for (sql, word) in [
        (
            "DROP VIEW slice; ALTER TABLE sample DROP COLUMN place",
            "place",
        ),
        ("UPDATE run SET state = 'paused'", "paused"),
        ("UPDATE sample SET elapsed_ns = -5", "-5"),
        ("UPDATE trial SET outcome = 'valued'", "valued"),
        ("UPDATE trial SET latencies = x'00'", "half a pair"),
        ("UPDATE trial SET read_back_id = 99", "settings"),
        ("UPDATE read_back SET settings = '{'", "read back"),
        ("DELETE FROM run", "no rows"),
    ] {
        let error = change(sql);
        assert!(
            matches!(error, RunFileError::Damaged { .. }),
            "{sql}: {error}"
        );
        assert!(error.to_string().contains(word), "{sql}: {error}");
    }
    let error = change("UPDATE run SET plan = replace(plan, '\"warm\"', '\"tepid\"')");
    assert!(matches!(error, RunFileError::UnknownPlan { .. }), "{error}");
    assert!(error.hint().contains("0.1.0"), "{}", error.hint());
}

#[test]
fn existing_paths_are_never_overwritten() {
    let (directory, path) = place();
    let link = directory.path().join("link");
    std::os::unix::fs::symlink("nowhere", &link).expect("link");
    let below = directory.path().join("below");
    fs::create_dir(&below).expect("directory");
    let create = |path: &Path| {
        let head = fixture::head("1", "2026-01-01T00:00:00Z");
        RunFile::create(path, &head, &fixture::plan(), &[]).map(drop)
    };
    let before = fixture::names(directory.path());
    for path in [&path, &link, &below] {
        let error = create(path).expect_err("refused");
        assert!(
            matches!(error, RunFileError::AlreadyExists { .. }),
            "{error}"
        );
    }
    let nowhere = directory.path().join("nowhere/a.run");
    let error = create(&nowhere).expect_err("refused");
    assert!(matches!(error, RunFileError::File { .. }), "{error}");
    assert!(
        error
            .to_string()
            .starts_with(&nowhere.parent().expect("it").display().to_string())
    );
    assert_eq!(fixture::names(directory.path()), before);
    assert_eq!(read(&path).expect("unchanged"), fixture::run());
}

#[test]
fn a_plan_that_could_not_be_read_back_is_refused_at_once() {
    let directory = tempfile::tempdir().expect("directory");
    let path = directory.path().join("a.run");
    let mut plan = fixture::plan();
    plan.groups[0].arms[0].case.dataset.compressibility = f64::NAN;
    let head = fixture::head("1", "2026-01-01T00:00:00Z");
    let error = RunFile::create(&path, &head, &plan, &[]).expect_err("refused");
    assert!(matches!(error, RunFileError::UnknownPlan { .. }), "{error}");
    assert!(fixture::names(directory.path()).is_empty());
}

#[test]
fn reading_works_in_a_read_only_directory_and_touches_nothing() {
    let (directory, path) = place();
    let allow = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("permissions");
    };
    let before = state(directory.path());
    allow(&path, 0o444);
    allow(directory.path(), 0o555);
    let run = read(&path);
    let listed = head(&path);
    // The administrator may write whatever the permissions say.
    let may_write = OpenOptions::new().write(true).open(&path).is_ok();
    let refused = (!may_write).then(|| RunFile::open_for_append(&path).map(drop));
    allow(directory.path(), 0o755);
    assert_eq!(run.expect("read"), fixture::run());
    assert_eq!(listed.expect("head").head, fixture::run().head);
    assert!(matches!(
        refused,
        None | Some(Err(RunFileError::File { .. }))
    ));
    assert!(state(directory.path()) == before);
}

#[test]
fn a_file_that_another_tool_has_switched_to_a_write_ahead_log_is_read_untouched() {
    let (directory, path) = place();
    let tool = Connection::open(&path).expect("opened");
    tool.pragma_update(None, "journal_mode", "wal")
        .expect("mode");
    tool.execute_batch("UPDATE run SET place = 'elsewhere'")
        .expect("changed");
    let before = state(directory.path());
    assert_eq!(read(&path).expect("read").head.place, "elsewhere");
    assert!(state(directory.path()) == before);
    // For appending the tool has to let go of it.
    drop(tool);
    drop(RunFile::open_for_append(&path).expect("appended"));
    assert_eq!(fixture::names(directory.path()), ["a.run"]);
    assert_eq!(fs::read(&path).expect("bytes")[18..20], [1, 1]);
}
