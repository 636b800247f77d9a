//! `sqlitmus advise` with a limit on memory and with several readers and writers: what is refused, what is kept of
//! the wish, and that the control groups go however a run ends. Where memory cannot be limited (it takes root or
//! a delegated control group), that is said, and the tests that need it are skipped.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

const QUICKLY: [&str; 8] = [
    "--rounds",
    "1",
    "--sample",
    "1MB",
    "--budget",
    "10m",
    "--snippet",
    "none",
];

/// What the names of control groups of this program begin with.
const PREFIX: &str = "sqlitmus-memory-";

/// Longest wait for something that comes within a second or two.
const PATIENCE: Duration = Duration::from_secs(60);

fn advise(place: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sqlitmus"));
    command.args(["advise", "files"]).args(words).args(QUICKLY);
    command.current_dir(place);
    command
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn tree() -> tempfile::TempDir {
    let place = tempfile::tempdir().expect("a folder");
    let files = place.path().join("files");
    fs::create_dir(&files).expect("created");
    for number in 0..120usize {
        let content: Vec<u8> = (0..number * 100).map(|at| (at * number) as u8).collect();
        fs::write(files.join(format!("{number}")), content).expect("written");
    }
    place
}

/// Whether memory cannot be limited here, by what a run has said.
fn cannot(output: &Output) -> bool {
    let said = stderr(output);
    let refused = said.contains("memory cannot be limited");
    if refused {
        // That is one clear refusal, with what to do about it.
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("hint: "), "{said}");
        writeln!(std::io::stderr(), "skipped: {said}").expect("stderr");
    }
    refused
}

/// Groups that a process has made and that are there.
fn groups_of(process: u32) -> Vec<PathBuf> {
    let begins = format!("{PREFIX}{process}-");
    let found = Command::new("find")
        .args(["/sys/fs/cgroup", "-type", "d", "-name"])
        .arg(format!("{begins}*"))
        .output()
        .expect("find runs");
    let text = String::from_utf8_lossy(&found.stdout).into_owned();
    text.lines().map(PathBuf::from).collect()
}

fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < PATIENCE, "{what} does not come");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn too_little_memory_and_contradictions_are_refused() {
    let place = tree();
    for (words, message) in [
        (&["--memory", "1MB"][..], "too little"),
        (
            &["--memory", "64MB", "--cache", "cold"],
            "neither warm nor cold",
        ),
        (
            &["--memory", "64MB", "--cache", "both"],
            "neither warm nor cold",
        ),
        (&["--memory", "much"], "much"),
        (&["--readers", "0"], "0"),
        (&["--writers", "65"], "65"),
    ] {
        let output = advise(place.path(), words).output().expect("runs");
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(message), "{said}");
        assert!(!place.path().join(".sqlitmus").exists());
    }
}

#[test]
fn several_readers_and_writers_are_measured_and_said() {
    let place = tree();
    let words = ["--readers", "3", "--writers", "2", "--quiet"];
    let output = advise(place.path(), &words).output().expect("runs");
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    let page = String::from_utf8(output.stdout).expect("UTF-8");
    let page = page.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        page.contains("3 readers at once, 2 writers at once"),
        "{page}"
    );
    let run = latest(place.path());
    let kinds = text_of(
        &run,
        "SELECT group_concat(DISTINCT workload) FROM arm WHERE workload NOT LIKE '%\"kind\":\"load\"%'",
    );
    assert_eq!(
        kinds, "",
        "everything that was measured has several threads"
    );
    let threads = text_of(
        &run,
        "SELECT group_concat(DISTINCT json_extract(workload, '$.readers') || '+' || json_extract(workload, '$.writers'))
         FROM (SELECT workload FROM arm ORDER BY arm_id)",
    );
    assert_eq!(threads, "3+0,0+2");
}

#[test]
fn memory_is_limited_for_files_and_stores_alike() {
    let place = tree();
    let child = advise(
        place.path(),
        &[
            "--memory", "48MB", "--json", "--reads", "1", "--writes", "0",
        ],
    )
    .stdout(Stdio::piped())
    .stderr(Stdio::piped())
    .spawn()
    .expect("runs");
    let process = child.id();
    let output = child.wait_with_output().expect("ended");
    if cannot(&output) {
        return;
    }
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    let answer: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(answer["wish"]["circumstances"]["memory_bytes"], 48_000_000);
    assert_eq!(groups_of(process), Vec::<PathBuf>::new());
    let run = latest(place.path());
    let states = text_of(&run, "SELECT group_concat(DISTINCT cache_state) FROM arm");
    assert_eq!(states, "limited to 48.0 MB");
    let by = text_of(
        &run,
        "SELECT value FROM environment WHERE name = 'memory_limited_by'",
    );
    assert!(by.starts_with("control groups, version"), "{by}");
}

#[test]
fn groups_go_when_a_run_is_interrupted_or_killed() {
    let place = tree();
    let start = || -> Child {
        advise(
            place.path(),
            &[
                "--memory", "48MB", "--quiet", "--reads", "1", "--writes", "0",
            ],
        )
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("runs")
    };
    let mut child = start();
    let process = child.id();
    let mut has_ended = false;
    wait_for("a control group", || {
        has_ended = child.try_wait().expect("asked").is_some();
        has_ended || !groups_of(process).is_empty()
    });
    if has_ended {
        assert!(cannot(&child.wait_with_output().expect("ended")));
        return;
    }
    signal("INT", process);
    let interrupted = child.wait_with_output().expect("ended");
    assert_eq!(
        interrupted.status.code(),
        Some(130),
        "{}",
        stderr(&interrupted)
    );
    assert_eq!(groups_of(process), Vec::<PathBuf>::new());

    // Between two workers there is no group for a moment: one that is there when it is killed is waited for.
    let mut left = Vec::new();
    let mut killed = 0;
    for _ in 0..20 {
        let mut child = start();
        killed = child.id();
        wait_for("a control group", || !groups_of(killed).is_empty());
        signal("KILL", killed);
        child.wait().expect("ended");
        left = groups_of(killed);
        if !left.is_empty() {
            break;
        }
    }
    assert!(!left.is_empty(), "a killed run leaves its group");
    let later = advise(place.path(), &["--quiet", "--reads", "1", "--writes", "0"])
        .output()
        .expect("runs");
    assert_eq!(later.status.code(), Some(3), "{}", stderr(&later));
    assert_eq!(
        groups_of(killed),
        Vec::<PathBuf>::new(),
        "a later start removes it"
    );
}

fn signal(name: &str, process: u32) {
    let sent = Command::new("kill")
        .arg(format!("-{name}"))
        .arg(process.to_string())
        .status();
    assert!(sent.is_ok_and(|status| status.success()));
}

fn latest(place: &Path) -> rusqlite::Connection {
    let runs = fs::read_dir(place.join(".sqlitmus/runs")).expect("listed");
    let runs = runs.map(|entry| entry.expect("an entry").path());
    let run = runs.filter(|path| path.extension().is_some_and(|end| end == "run"));
    rusqlite::Connection::open(run.max().expect("a run")).expect("opened")
}

fn text_of(run: &rusqlite::Connection, sql: &str) -> String {
    let text: Option<String> = run.query_row(sql, [], |row| row.get(0)).expect("a row");
    text.unwrap_or_default()
}
