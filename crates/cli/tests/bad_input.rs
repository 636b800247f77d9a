//! Bad input gets one clear error with a hint and exit code 2, and leaves the place as it was.
#![expect(clippy::print_stderr, reason = "a test that skips says why")]

mod program;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A small suite in which one word can be replaced by a wrong one.
const SUITE: &str = r#"
name = "small"
about = "for tests"
question = "?"

[[dataset]]
name = "few"
count = 20
size = { fixed = 100 }

[[group]]
name = "read"
dataset = "few"
workload = { kind = "read", order = "random" }
cache = "warm"
durability = "process-crash"
baseline = "files"
rounds = 2
slices = 1
slice_ms = 1

[[group.arm]]
name = "files"
label = "files"
engine = "files"
settings = { layout = "flat" }
"#;

struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary directory"))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn with_suite(suite: &str) -> Self {
        let place = Self::new();
        std::fs::write(place.path().join("suite.toml"), suite).expect("suite written");
        place
    }

    fn run(&self, words: &[&str]) -> Output {
        program::run(self.path(), words)
    }

    fn entries(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.path()).expect("readable");
        let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        paths.sort();
        paths
    }

    /// The command is refused with this text in its error and this one in its hint, and nothing
    /// in the place has changed.
    #[track_caller]
    fn refuses(&self, words: &[&str], error: &str, hint: &str) {
        let before = self.entries();
        let output = self.run(words);
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{words:?}: {stderr}");
        assert!(
            output.stdout.is_empty(),
            "{words:?}: no data on standard output"
        );
        let (first, rest) = stderr.split_once("hint: ").unwrap_or((&stderr, ""));
        assert!(first.starts_with("error: "), "{words:?}: {stderr}");
        assert!(first.contains(error), "{words:?}: {stderr}");
        assert!(rest.contains(hint), "{words:?}: {stderr}");
        assert_eq!(stderr.matches("error: ").count(), 1, "one error: {stderr}");
        assert_eq!(self.entries(), before, "{words:?}: the place is as it was");
    }
}

#[test]
fn misspelt_words_are_answered_with_the_nearest_valid_one() {
    let place = Place::new();
    place.refuses(&["mesure"], "mesure", "did you mean `measure`?");
    place.refuses(
        &["measure", "--plce", "."],
        "--plce",
        "did you mean `--place`?",
    );
    place.refuses(
        &["measure", "artcle"],
        "no suite `artcle`",
        "did you mean `article`?",
    );
    place.refuses(
        &["measure", "--scale", "ful"],
        "no scale `ful`",
        "did you mean `full`?",
    );
    place.refuses(
        &["measure", "--group", "raed"],
        "no group `raed`",
        "did you mean `read`?",
    );
    place.refuses(
        &["report", "--format", "htm"],
        "htm",
        "did you mean `html`?",
    );
}

#[test]
fn numbers_that_cannot_be_are_refused() {
    let place = Place::new();
    place.refuses(&["measure", "--rounds", "0"], "--rounds", "");
    place.refuses(&["measure", "--rounds", "99999999999"], "--rounds", "");
    place.refuses(&["measure", "--seed", "-1"], "-1", "");
}

#[test]
fn mistakes_in_a_suite_name_what_is_wrong() {
    let cases = [
        (
            "engine = \"files\"",
            "engine = \"file\"",
            "no engine `file`",
            "`files`",
        ),
        (
            "layout = \"flat\"",
            "layuot = \"flat\"",
            "layuot",
            "did you mean `layout`?",
        ),
        (
            "layout = \"flat\"",
            "layout = \"flta\"",
            "flta",
            "did you mean `flat`?",
        ),
        (
            "baseline = \"files\"",
            "baseline = \"fils\"",
            "no arm `fils`",
            "`files`",
        ),
        (
            "dataset = \"few\"",
            "dataset = \"fw\"",
            "no dataset `fw`",
            "`few`",
        ),
        ("count = 20", "count = 0", "at least one blob", ""),
        (
            "fixed = 100",
            "fixed = 4000000000",
            "1,000,000,000 bytes",
            "",
        ),
        (
            "fixed = 100",
            "fixed = 40000000000000000000",
            "suite.toml",
            "",
        ),
        ("rounds = 2", "rounds = 0", "rounds", ""),
        ("question", "quesiton", "quesiton", ""),
    ];
    for (right, wrong, error, hint) in cases {
        let place = Place::with_suite(&SUITE.replacen(right, wrong, 1));
        place.refuses(&["measure", "suite.toml"], error, hint);
    }
    Place::new().refuses(
        &["measure", "missing.toml"],
        "missing.toml",
        "sqlitmus list",
    );
}

#[test]
fn places_that_cannot_be_measured_are_refused() {
    let place = Place::with_suite(SUITE);
    place.refuses(&["measure", "--place", "missing"], "missing", "mkdir");
    place.refuses(&["measure", "--place", "suite.toml"], "suite.toml", "");
}

#[test]
fn a_foreign_scratch_directory_is_left_alone() {
    let place = Place::with_suite(SUITE);
    std::fs::create_dir(place.path().join(".sqlitmus")).expect("created");
    std::fs::write(place.path().join(".sqlitmus/mine"), "precious").expect("written");
    place.refuses(&["measure", "suite.toml"], ".sqlitmus", "--place");
    place.refuses(&["clean"], ".sqlitmus", "");
    let kept = std::fs::read_to_string(place.path().join(".sqlitmus/mine"));
    assert_eq!(kept.expect("still there"), "precious");
}

#[test]
fn a_scratch_directory_that_is_a_link_is_not_followed() {
    let place = Place::with_suite(SUITE);
    let elsewhere = Place::new();
    std::os::unix::fs::symlink(elsewhere.path(), place.path().join(".sqlitmus")).expect("linked");
    place.refuses(&["measure", "suite.toml"], "symbolic link", "--place");
    assert!(elsewhere.entries().is_empty());
}

#[test]
fn runs_that_are_not_there_or_not_runs_are_refused() {
    let place = Place::with_suite(SUITE);
    place.refuses(&["report"], "no latest run", "sqlitmus measure");
    place.refuses(
        &["report", "previous"],
        "no previous run",
        "sqlitmus measure",
    );
    place.refuses(&["report", "missing.run"], "missing.run", "sqlitmus list");
    place.refuses(&["report", "suite.toml"], "suite.toml", "");
    std::fs::write(place.path().join("empty.run"), "").expect("written");
    place.refuses(&["report", "empty.run"], "empty.run", "");
}

#[test]
fn existing_files_are_never_overwritten() {
    let place = Place::with_suite(SUITE);
    let path = place.path().join("precious");
    std::fs::write(&path, "precious").expect("written");
    place.refuses(
        &["measure", "suite.toml", "--output", "precious"],
        "exists already",
        "never overwritten",
    );
    assert!(
        place
            .run(&["measure", "suite.toml", "--quiet"])
            .status
            .success()
    );
    place.refuses(
        &["report", "latest", "--output", "precious"],
        "exists already",
        "nothing is overwritten",
    );
    assert_eq!(
        std::fs::read_to_string(&path).expect("still there"),
        "precious"
    );
}

#[test]
fn a_place_that_is_read_only_or_too_small_is_refused() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: mounting needs root");
        return;
    }
    let small = Place::new();
    let mount = |options: &str| {
        let status = Command::new("mount")
            .args(["-t", "tmpfs", "-o", options, "tmpfs"])
            .arg(small.path())
            .status();
        status.is_ok_and(|status| status.success())
    };
    if !mount("size=1m") {
        eprintln!("skipped: tmpfs cannot be mounted here");
        return;
    }
    let unmount = Unmount(small.path().to_owned());
    let place = small.path().display().to_string();
    let elsewhere = Place::new();
    elsewhere.refuses(
        &["measure", "--place", &place],
        "too small",
        "free some space",
    );
    assert!(small.entries().is_empty(), "nothing is left there");
    assert!(mount("remount,ro"), "remounted read-only");
    elsewhere.refuses(&["measure", "--place", &place], "read-only", "");
    drop(unmount);
}

/// Overwrites whose stores grow until the place is full.
const GROWING: &str = r#"
name = "growing"
about = "for tests"
question = "?"

[[dataset]]
name = "blobs"
count = 2000
size = { fixed = 10000 }

[[group]]
name = "write"
dataset = "blobs"
workload = { kind = "overwrite", order = "random", operations = 500 }
cache = "warm"
durability = "process-crash"
baseline = "pack"
rounds = 30
slices = 3

[[group.arm]]
name = "pack"
label = "one packed file"
engine = "packfile"
"#;

#[test]
fn a_disk_that_is_full_in_the_middle_ends_the_run_and_keeps_what_was_measured() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: mounting needs root");
        return;
    }
    let small = Place::new();
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=60m", "tmpfs"])
        .arg(small.path())
        .status();
    if !mounted.is_ok_and(|status| status.success()) {
        eprintln!("skipped: tmpfs cannot be mounted here");
        return;
    }
    let _unmount = Unmount(small.path().to_owned());
    let elsewhere = Place::with_suite(GROWING);
    let place = small.path().display().to_string();
    let words = [
        "measure",
        "suite.toml",
        "--place",
        &place,
        "--output",
        "kept.run",
        "--quiet",
    ];
    let output = elsewhere.run(&words);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(5), "{stderr}");
    assert!(stderr.contains("No space left on device"), "{stderr}");
    assert!(stderr.contains("hint: "), "{stderr}");
    let report = elsewhere.run(&["report", "kept.run"]);
    assert_eq!(report.status.code(), Some(0));
    assert!(
        elsewhere
            .run(&["clean", "--place", &place])
            .status
            .success()
    );
}

/// Takes a mount away, whatever the test did.
struct Unmount(PathBuf);

impl Drop for Unmount {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg(&self.0).status();
        assert!(unmounted.is_ok_and(|status| status.success()));
    }
}
