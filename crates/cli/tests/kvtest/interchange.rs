//! Databases and directories go back and forth between `sqlitmus kvtest`, the `sqlite3` shell and
//! the program kvtest. Where one of these is missing its part is skipped, with a line that says
//! so; SQLITMUS_KVTEST points to a compiled kvtest.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::folder::{Ended, Folder, ended, skipped};

#[test]
fn databases_go_back_and_forth_with_the_sqlite3_shell() {
    let folder = Folder::new();
    let shell = |database: &str, sql: &str| {
        let mut command = Command::new("sqlite3");
        command.arg(folder.path(database)).arg(sql);
        command.output().ok().filter(|ended| ended.status.success())
    };
    if shell("probe.db", "SELECT 1").is_none() {
        return skipped("there is no sqlite3 shell here");
    }
    folder.done("init ours.db --count 20 --size 5000");
    let sum = "SELECT count(*), sum(length(v)) FROM kv; PRAGMA integrity_check";
    let answer = shell("ours.db", sum).expect("the shell reads it");
    assert_eq!(String::from_utf8_lossy(&answer.stdout), "20|100000\nok\n");
    let made = shell(
        "theirs.db",
        "CREATE TABLE kv(k INTEGER PRIMARY KEY, v BLOB);
         WITH RECURSIVE c(x) AS (VALUES(1) UNION ALL SELECT x+1 FROM c WHERE x<20)
         INSERT INTO kv SELECT x, randomblob(100) FROM c;",
    );
    made.expect("the shell makes it");
    assert_eq!(
        folder.done("stat theirs.db").number("Number of entries:"),
        20.0
    );
    folder.done("run theirs.db --random --blob-api --update");
    folder.done("export theirs.db flat");
}

#[test]
fn databases_and_directories_go_back_and_forth_with_kvtest() {
    let Some(kvtest) = std::env::var_os("SQLITMUS_KVTEST") else {
        return skipped("SQLITMUS_KVTEST does not point to a compiled kvtest");
    };
    let folder = Folder::new();
    let theirs = |words: &str| {
        let mut command = Command::new(Path::new(&kvtest));
        let ended = ended(
            command
                .args(words.split_whitespace())
                .current_dir(folder.0.path()),
        );
        assert_eq!(ended.code, 0, "kvtest {words}: {}", ended.output);
        ended
    };
    let init = "--count 1500 --size 3000 --variance 500 --pagesize 8192";
    folder.done(&format!("init ours.db {init}"));
    theirs(&format!("init theirs.db {init}"));
    for database in ["ours", "theirs"] {
        assert_eq!(
            theirs(&format!("stat {database}.db")).output,
            folder.done(&format!("stat {database}.db")).output
        );
        for tree in ["", "--tree"] {
            theirs(&format!("export {database}.db {database}-c{tree} {tree}"));
            folder.done(&format!("export {database}.db {database}-r{tree} {tree}"));
            let files = |by: &str| {
                let root = folder.path(&format!("{database}-{by}{tree}"));
                let contents = folder.contents().into_iter();
                let below = |(path, bytes): (PathBuf, _)| {
                    Some((path.strip_prefix(&root).ok()?.to_owned(), bytes))
                };
                contents.filter_map(below).collect::<BTreeMap<_, _>>()
            };
            assert!(files("c").len() > 1500);
            assert_eq!(files("c"), files("r"));
        }
    }
    // The same lines, but for times and for what is put right.
    let comparable = |ended: &Ended| {
        let lines = ended
            .output
            .lines()
            .filter(|line| !line.starts_with("note: "));
        lines
            .map(|line| line.split(": ").next().unwrap_or_default().to_owned())
            .collect::<Vec<_>>()
    };
    for words in [
        "ours.db --random --cache-size 500",
        "theirs.db --desc --blob-api --cache-size 1000",
        "theirs.db --update --random --jmode wal --cache-size 1000 --mmap 1MB",
        "ours.db --nosync --integrity-check --cache-size 1000 --max-id 2000 --count 1500",
        "ours-c --max-id 1500 --random",
        "theirs-r--tree --start 77",
        "theirs-c --update --fsync",
    ] {
        let (c, r) = (
            theirs(&format!("run {words}")),
            folder.done(&format!("run {words} --as-kvtest")),
        );
        assert_eq!(comparable(&c), comparable(&r), "{words}");
    }
}
