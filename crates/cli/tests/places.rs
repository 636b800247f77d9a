//! Several places from the outside: directories and filesystems that are made for the run stand side by side,
//! what cannot be is refused before anything is made, and nothing stays mounted however it ends. Tests that
//! mount need root and `SQLITMUS_TEST_MOUNTS=1`.
#![cfg(target_os = "linux")]

mod program;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use sqlitmus_core::run::{Outcome, Run, RunState};

/// Longest wait for something that takes a second or two; no test depends on it being short.
const PATIENCE: Duration = Duration::from_secs(120);

const SUITE: &str = r#"
name = "places"
about = "for tests"
question = "Where?"

[[dataset]]
name = "few"
count = 60
size = { uniform = [100, 900] }

[[dataset]]
name = "tree"
count = 40
size = { fixed = 10 }

[[dataset]]
name = "many"
count = { default = 60, large = 400 }
size = { fixed = 100_000 }

[[group]]
name = "read"
dataset = "few"
workload = { kind = "read", order = "random" }
cache = "warm"
durability = "process-crash"
baseline = "files"
rounds = { default = 2, long = 200 }
slices = 2
slice_ms = 1

[[group.arm]]
name = "files"
label = "files"
engine = "files"

[[group.arm]]
name = "sqlite"
label = "SQLite"
engine = "sqlite"

[[group]]
name = "record"
dataset = "tree"
workload = { kind = "index", walkers = 2, limit_ms = 0 }
cache = "warm"
durability = "process-crash"
turns = "alone"
baseline = "best"
rounds = 2
slices = 1

[[group.arm]]
name = "best"
label = "in batches"
engine = "sqlite"
settings = { journal_mode = "delete", synchronous = "full", transaction = "100000" }
workload = { way = "best" }

[[group.arm]]
name = "naive"
label = "one by one"
engine = "sqlite"
settings = { journal_mode = "delete", synchronous = "off", transaction = "one" }
workload = { way = "naive" }

[[group]]
name = "write"
dataset = "many"
workload = { kind = "overwrite", order = "random", operations = 10 }
cache = "warm"
durability = "process-crash"
baseline = "write-sqlite"
rounds = 2
slices = 1

[[group.arm]]
name = "write-sqlite"
label = "SQLite"
engine = "sqlite"

[[chart]]
title = "Read one blob"
arms = ["files", "sqlite"]
versus = [{ arm = "files", label = "files" }]
"#;

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary directory");
    std::fs::write(folder.path().join("suite.toml"), SUITE).expect("suite written");
    for place in ["a", "b"] {
        std::fs::create_dir(folder.path().join(place)).expect("a place");
    }
    folder
}

fn command(folder: &Path, words: &[&str]) -> Command {
    let mut command = program::command(folder, words);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn measure(folder: &Path, words: &[&str]) -> Output {
    let words = [&["measure", "suite.toml"], words].concat();
    command(folder, &words).output().expect("started")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn may_mount() -> bool {
    let may =
        std::env::var_os("SQLITMUS_TEST_MOUNTS").is_some() && rustix::process::geteuid().is_root();
    if !may {
        let reason = "skipped: mounting needs root and SQLITMUS_TEST_MOUNTS=1";
        writeln!(std::io::stderr(), "{reason}").expect("stderr");
    }
    may
}

fn run_files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "run"))
        .collect();
    files.sort();
    files
}

fn read(path: &Path) -> Run {
    sqlitmus_runfile::read(path).expect("a run file")
}

fn fact<'a>(run: &'a Run, name: &str) -> Option<&'a str> {
    let mut facts = run.environment.iter();
    facts
        .find(|(found, _)| found == name)
        .map(|(_, value)| value.as_str())
}

/// Nothing is mounted below a folder, and no image is left there.
fn assert_clean(folder: &Path) {
    let path = folder.canonicalize().expect("path").display().to_string();
    let table = std::fs::read_to_string("/proc/self/mountinfo").expect("mounts");
    let mounted: Vec<&str> = table.lines().filter(|line| line.contains(&path)).collect();
    assert!(mounted.is_empty(), "{mounted:?}");
    let left = std::fs::read_dir(folder.join(".sqlitmus/loopback"));
    let left: Vec<_> = left
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

fn wait_for(what: &str, mut is_there: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_there() {
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn kill(child: &Child, signal: rustix::process::Signal) {
    let id = rustix::process::Pid::from_child(child);
    rustix::process::kill_process(id, signal).expect("a signal");
}

#[test]
fn directories_stand_side_by_side_each_with_a_run_of_its_own() {
    let folder = folder();
    let words = ["--place", "a", "--place", "b", "--output", "runs"];
    let done = measure(folder.path(), &words);
    let said = text(&done.stderr);
    assert_eq!(done.status.code(), Some(0), "{said}");
    for words in [
        "in 2 places",
        "Place 1 of 2",
        "Place 2 of 2",
        "for all",
        "Run files: runs",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    let table = text(&done.stdout);
    for words in ["Read one blob", "record: entries of a tree a second", "[2]"] {
        assert!(table.contains(words), "{words}: {table}");
    }
    // Beneath every rate stands what it follows from.
    for words in ["    count ", "    in "] {
        let lines = table.lines().filter(|line| line.starts_with(words));
        assert!(lines.count() >= 2, "{words}: {table}");
    }
    let files = run_files(&folder.path().join("runs"));
    assert_eq!(files.len(), 2, "{files:?}");
    for (number, file) in files.iter().enumerate() {
        let run = read(file);
        assert_eq!(run.head.state, RunState::Complete);
        assert_eq!(
            fact(&run, "place_number"),
            Some((number + 1).to_string().as_str())
        );
        assert!(
            run.head.place.ends_with(["/a", "/b"][number]),
            "{}",
            run.head.place
        );
        assert!(
            run.trials
                .iter()
                .all(|trial| matches!(trial.outcome, Outcome::Valid | Outcome::Invalid(_)))
        );
    }
    // Every entry of the tree is an operation, in the naive way too.
    let run = read(&files[0]);
    let naive = run
        .trials
        .iter()
        .find(|trial| trial.arm == "naive")
        .expect("a trial");
    assert_eq!(naive.samples[0].operations, 40);
    assert_eq!(naive.resources["commits"], 40);

    for (format, expected) in [
        ("html", "rates-1"),
        ("markdown", "record"),
        ("json", "\"runs\""),
    ] {
        let report = command(folder.path(), &["report", "runs", "--format", format]).output();
        let report = report.expect("started");
        assert_eq!(report.status.code(), Some(0), "{}", text(&report.stderr));
        assert!(text(&report.stdout).contains(expected), "{format}");
    }
    // What is complete everywhere cannot be resumed; what is renamed cannot be found.
    let words = ["measure", "--resume", files[0].to_str().expect("UTF-8")];
    let refused = command(folder.path(), &words).output().expect("started");
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("complete in all of its places"));
    let renamed = folder.path().join("runs/other.run");
    std::fs::rename(&files[0], &renamed).expect("renamed");
    let words = ["measure", "--resume", renamed.to_str().expect("UTF-8")];
    let refused = command(folder.path(), &words).output().expect("started");
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("renamed"));
}

#[test]
fn a_budget_is_for_all_places_together_and_quiet_is_quiet() {
    let folder = folder();
    let words = [
        "--place", "a", "--place", "b", "--budget", "4s", "--quiet", "--json", "--group", "read",
    ];
    let done = measure(folder.path(), &words);
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    let json: serde_json::Value = serde_json::from_slice(&done.stdout).expect("JSON");
    let runs = json["runs"].as_array().expect("runs");
    assert_eq!(runs.len(), 2);
    let budgets: Vec<u64> = runs
        .iter()
        .map(|run| {
            run["plan"]["stopping"]["budget_ns"]
                .as_u64()
                .expect("a budget")
        })
        .collect();
    assert!(
        budgets[0] <= 2_000_000_000 && budgets[1] <= 4_000_000_000,
        "{budgets:?}"
    );
    let said = text(&done.stderr);
    assert!(
        !said.contains("Place") && !said.contains(" took "),
        "{said}"
    );
    // Without a folder of their own the runs lie together in the first place.
    assert_eq!(run_files(&folder.path().join("a/.sqlitmus/runs")).len(), 2);
    assert!(run_files(&folder.path().join("b/.sqlitmus/runs")).is_empty());
}

#[test]
fn what_cannot_be_is_refused_before_anything_is_made() {
    let folder = folder();
    std::fs::write(folder.path().join("taken"), "").expect("written");
    for (words, message, hint) in [
        (
            &["--place", "a", "--place", "a/../a"][..],
            "named twice",
            "once",
        ),
        (
            &["--place", "a", "--place", "missing"],
            "does not exist",
            "mkdir",
        ),
        (
            &["--place", "a", "--place", "taken"],
            "not a directory",
            "name a directory",
        ),
        (&["--loopback", "reiserfs"], "reiserfs", "ext4"),
        (&["--images", "a"], "--loopback", "--help"),
        (
            &["--place", "a", "--place", "b", "--output", "taken"],
            "exists already",
            "another",
        ),
        (&["--set", "tree=missing"], "missing", ""),
        (
            &["--place", "a", "--set", "tree=a"],
            "lies in the tree",
            "--place",
        ),
        (&["--set", "tree=taken"], "not a directory", ""),
    ] {
        let refused = measure(folder.path(), words);
        let said = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{words:?}: {said}");
        assert!(
            said.contains(message) && said.contains(hint),
            "{words:?}: {said}"
        );
        for place in [".", "a", "b"] {
            let scratch = folder.path().join(place).join(".sqlitmus");
            assert!(!scratch.exists(), "{words:?} left {}", scratch.display());
        }
    }
    let words = [
        "measure", "--resume", "latest", "--place", "a", "--place", "b",
    ];
    let refused = command(folder.path(), &words).output().expect("started");
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("resumed where it was"));
}

#[test]
fn a_directory_of_the_users_is_recorded_and_not_changed() {
    let folder = folder();
    let tree = folder.path().join("mine");
    std::fs::create_dir_all(tree.join("below")).expect("folders");
    std::fs::write(tree.join("below/one"), "1").expect("written");
    let words = [
        "--place",
        "a",
        "--group",
        "record",
        "--set",
        "tree=mine",
        "--json",
        "--quiet",
    ];
    let done = measure(folder.path(), &words);
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    let json: serde_json::Value = serde_json::from_slice(&done.stdout).expect("JSON");
    let workload = &json["arms"][0]["case"]["workload"];
    assert!(
        workload["tree"]
            .as_str()
            .expect("a path")
            .ends_with("/mine")
    );
    assert_eq!(json["arms"][0]["case"]["dataset"]["count"], 2);
    assert_eq!(json["arms"][0]["status"], "measured");
    let left: Vec<_> = std::fs::read_dir(&tree)
        .expect("a folder")
        .flatten()
        .collect();
    assert_eq!(left.len(), 1);
}

#[test]
fn filesystems_are_made_measured_and_removed() {
    if !may_mount() {
        return;
    }
    let folder = folder();
    let words = ["--loopback", "ext4,tmpfs", "--place", "a"];
    let done = measure(folder.path(), &words);
    let said = text(&done.stderr);
    assert_eq!(done.status.code(), Some(0), "{said}");
    assert!(
        !said.contains("this place is in memory"),
        "it was asked for: {said}"
    );
    let files = run_files(&folder.path().join(".sqlitmus/runs"));
    assert_eq!(files.len(), 3, "{files:?}");
    let ext4 = read(&files[1]);
    assert_eq!(fact(&ext4, "loopback"), Some("ext4"));
    assert_eq!(fact(&ext4, "filesystem"), Some("ext4"));
    assert_eq!(fact(&read(&files[2]), "filesystem"), Some("tmpfs"));
    assert!(
        text(&done.stdout).contains("ext4 on a loop device"),
        "{}",
        text(&done.stdout)
    );
    assert_clean(folder.path());
}

#[test]
fn a_full_image_ends_the_run_and_is_gone() {
    if !may_mount() {
        return;
    }
    let folder = folder();
    let words = [
        "--loopback",
        "ext4",
        "--image-size",
        "24MiB",
        "--scale",
        "large",
        "--group",
        "write",
    ];
    let done = measure(folder.path(), &words);
    let said = text(&done.stderr);
    assert_eq!(done.status.code(), Some(5), "{said}");
    assert!(said.contains("error: ") && said.contains("full"), "{said}");
    assert_clean(folder.path());
}

#[test]
fn what_a_kill_leaves_is_taken_away_and_the_rest_is_resumed() {
    if !may_mount() {
        return;
    }
    let folder = folder();
    let words = [
        "measure",
        "suite.toml",
        "--scale",
        "long",
        "--group",
        "read",
        "--place",
        "a",
        "--loopback",
        "ext4",
        "--rounds",
        "30",
        "--quiet",
    ];
    let mut child = command(folder.path(), &words).spawn().expect("started");
    let runs = folder.path().join(".sqlitmus/runs");
    let second = || run_files(&runs).into_iter().nth(1);
    wait_for("a round on the filesystem", || {
        second()
            .is_some_and(|path| sqlitmus_runfile::read(&path).is_ok_and(|run| run.trials.len() > 6))
    });
    kill(&child, rustix::process::Signal::KILL);
    child.wait().expect("ended");
    let path = second().expect("a run file");
    let before = read(&path);
    assert_ne!(before.head.state, RunState::Complete);
    let leftovers = std::fs::read_dir(folder.path().join(".sqlitmus/loopback")).expect("a folder");
    assert!(leftovers.count() > 0, "the filesystem is still there");

    let words = ["measure", "--resume", "latest", "--json", "--quiet"];
    let done = command(folder.path(), &words).output().expect("started");
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    assert_clean(folder.path());
    for path in run_files(&runs) {
        assert_eq!(read(&path).head.state, RunState::Complete);
    }
    let after = read(&path);
    assert!(fact(&after, "resumed_utc").is_some());
    let ended = |run: &Run| {
        let trials = run.trials.iter().filter(|trial| trial.round == 0);
        trials
            .map(|trial| format!("{:?}", trial.samples))
            .collect::<Vec<_>>()
    };
    assert_eq!(ended(&before), ended(&after), "no round is measured again");
}

#[test]
fn ctrl_c_ends_between_places_and_leaves_nothing() {
    if !may_mount() {
        return;
    }
    let folder = folder();
    let words = [
        "measure",
        "suite.toml",
        "--scale",
        "long",
        "--group",
        "read",
        "--loopback",
        "ext4,tmpfs",
        "--rounds",
        "10000",
        "--quiet",
    ];
    let mut child = command(folder.path(), &words).spawn().expect("started");
    let runs = folder.path().join(".sqlitmus/runs");
    wait_for("a round", || {
        let files = run_files(&runs);
        let mut read = files
            .iter()
            .filter_map(|path| sqlitmus_runfile::read(path).ok());
        read.any(|run| run.trials.len() > 3)
    });
    kill(&child, rustix::process::Signal::INT);
    let code = child.wait().expect("ended").code();
    assert_eq!(code, Some(130));
    assert_clean(folder.path());
    let files = run_files(&runs);
    assert_eq!(files.len(), 1, "the second place was not begun: {files:?}");
    assert_eq!(read(&files[0]).head.state, RunState::Interrupted);
}
