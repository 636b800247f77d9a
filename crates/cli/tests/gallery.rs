//! Run files that are published say nothing of the machine but what is general: `scripts/make-gallery.py`, on the files
//! of the gallery and on one that names somebody's directories. Skipped, saying so, where there is no Python.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use rusqlite::Connection;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Runs the script; `None`, with a word, where there is no Python.
#[allow(clippy::print_stderr)]
fn script(gallery: &Path, words: &[&str]) -> Option<Output> {
    if Command::new("python3").arg("-V").output().is_err() {
        eprintln!("skipped: there is no python3 on this machine");
        return None;
    }
    let output = Command::new("python3")
        .arg("-B")
        .arg(Path::new(ROOT).join("scripts/make-gallery.py"))
        .arg("--gallery")
        .arg(gallery)
        .args(["--program", env!("CARGO_BIN_EXE_sqlitmus")])
        .args(words)
        .output();
    Some(output.expect("the script runs"))
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A gallery of one run, changed by these statements.
fn gallery(statements: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let run = folder.path().join("mine.run");
    let old = Path::new(ROOT).join("crates/cli/tests/runs/format-1.run");
    std::fs::copy(old, &run).expect("copied");
    let database = Connection::open(&run).expect("opened");
    database.execute_batch(statements).expect("changed");
    (folder, run)
}

fn said(run: &Path, question: &str) -> String {
    let database = Connection::open(run).expect("opened");
    let answer = database.query_row(question, [], |row| row.get(0));
    answer.expect("an answer")
}

#[test]
fn what_is_in_the_gallery_may_be_published() {
    let folder = Path::new(ROOT).join("docs/gallery");
    let Some(output) = script(&folder, &["--check"]) else {
        return;
    };
    assert_eq!(output.status.code(), Some(0), "{}", errors(&output));
}

#[test]
fn a_run_file_is_made_general_and_its_figures_stay() {
    let (folder, run) = gallery(
        "UPDATE environment SET value = 'Linux 6.18.44-acme-build-7 #1 SMP' WHERE name = 'kernel';
         UPDATE environment SET value = 'rw,relatime,resuid=65534,subvol=/@quentina' WHERE name = 'mount_options';
         UPDATE environment SET value = '/home/quentina/secret' WHERE name = 'place_path';
         UPDATE run SET place = '/home/quentina/secret',
           command_line = '/home/quentina/bin/sqlitmus measure --scale smoke --output /home/quentina/a.run';
         UPDATE trial SET reason = 'gone: /home/quentina/secret/.sqlitmus/x', outcome = 'failed' WHERE trial_id = 1;",
    );
    let figures = "SELECT group_concat(elapsed_ns || ' ' || operations) FROM sample";
    let (measured, plan) = (said(&run, figures), said(&run, "SELECT plan FROM run"));
    let Some(check) = script(folder.path(), &["--check"]) else {
        return;
    };
    assert_eq!(check.status.code(), Some(1), "a check refuses it");
    assert!(errors(&check).contains("acme"), "{}", errors(&check));
    assert_eq!(said(&run, "SELECT place FROM run"), "/home/quentina/secret");
    let output = script(folder.path(), &[]).expect("Python is there");
    assert_eq!(output.status.code(), Some(0), "{}", errors(&output));
    for (question, answer) in [
        ("SELECT place FROM run", "/tmp/mine"),
        (
            "SELECT command_line FROM run",
            "sqlitmus measure --scale smoke",
        ),
        (
            "SELECT value FROM environment WHERE name = 'kernel'",
            "Linux 6.18.44",
        ),
        (
            "SELECT value FROM environment WHERE name = 'mount_options'",
            "rw,relatime",
        ),
        (
            "SELECT reason FROM trial WHERE trial_id = 1",
            "gone: /tmp/mine/.sqlitmus/x",
        ),
        (figures, &measured),
        ("SELECT plan FROM run", &plan),
    ] {
        assert_eq!(said(&run, question), answer, "{question}");
    }
    let bytes = std::fs::read(&run).expect("readable");
    for secret in ["quentina", "acme", "65534"] {
        let found = bytes
            .windows(secret.len())
            .any(|bytes| bytes == secret.as_bytes());
        assert!(!found, "{secret} is still in the file");
    }
    assert!(folder.path().join("mine.html").is_file());
}

#[test]
fn a_run_file_that_would_still_name_somebodys_paths_is_refused_and_stays() {
    // A plan decides which cases are the same: it is never rewritten.
    for change in [
        "UPDATE run SET plan = replace(plan, '\"suite\"', '\"from\":\"/home/quentina/files\",\"suite\"')",
        "UPDATE environment SET value = 'on /srv/quentina/disk' WHERE name = 'disk_model'",
        "UPDATE run SET command_line = 'sqlitmus measure /root/mine.toml'",
    ] {
        let (folder, run) = gallery(change);
        let before = std::fs::read(&run).expect("readable");
        let Some(output) = script(folder.path(), &[]) else {
            return;
        };
        let errors = errors(&output);
        assert_eq!(output.status.code(), Some(1), "{change}: {errors}");
        assert!(
            errors.contains("names /") && errors.contains("hint:"),
            "{errors}"
        );
        assert_eq!(std::fs::read(&run).expect("readable"), before);
        let entries = std::fs::read_dir(folder.path()).expect("a folder").count();
        assert_eq!(entries, 1, "no draft and no page is left");
    }
}
