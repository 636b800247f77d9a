//! Starting the program in tests: one way for all of them.

// Not every test file uses all of it.
#![allow(dead_code)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The program that is tested.
pub const PROGRAM: &str = env!("CARGO_BIN_EXE_sqlitmus");

/// The program with these words, in a directory, with nothing to read from standard input.
pub fn command(directory: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(PROGRAM);
    command
        .args(words)
        .current_dir(directory)
        .stdin(Stdio::null());
    command
}

/// What became of it.
pub fn run(directory: &Path, words: &[&str]) -> Output {
    command(directory, words).output().expect("sqlitmus runs")
}

/// What it printed on standard output.
pub fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

/// What it printed on standard error; names of files there may be anything.
pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Its exit code; `None` if it was killed.
pub fn code(output: &Output) -> Option<i32> {
    output.status.code()
}

/// A worker that misbehaves as it is told, which is built with the tests of the whole crate.
pub fn fixture_worker() -> PathBuf {
    let folder = Path::new(PROGRAM).parent().expect("a target directory");
    let fixture = folder.join("examples/fixture_worker");
    assert!(
        fixture.exists(),
        "no fixture worker: `cargo test -p sqlitmus` builds it, `--test NAME` alone does not"
    );
    fixture
}
