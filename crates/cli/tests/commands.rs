//! The verbs from the outside: what they print where, what they leave behind, how they end.

mod program;

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use program::{run as sqlitmus, stdout};

#[test]
fn help_is_one_screen_and_goes_to_standard_output() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let short = sqlitmus(place.path(), &["-h"]);
    assert_eq!(short.status.code(), Some(0));
    assert!(short.stderr.is_empty());
    // Every verb has a line; few terminals have fewer than so many.
    assert!(stdout(&short).lines().count() <= 32, "{}", stdout(&short));
    let long = stdout(&sqlitmus(place.path(), &["--help"]));
    assert!(
        long.contains("Examples:") && long.contains("Exit codes:"),
        "{long}"
    );
    for verb in [
        "measure",
        "report",
        "compare",
        "index",
        "durability",
        "pack",
        "unpack",
        "ls",
        "cat",
        "verify",
        "serve",
        "doctor",
        "list",
        "clean",
        "kvtest",
        "completions",
        "man",
    ] {
        assert!(long.contains(verb), "{verb}");
        let help = sqlitmus(place.path(), &[verb, "--help"]);
        assert_eq!(help.status.code(), Some(0), "{verb}");
        assert!(help.stderr.is_empty(), "{verb}");
        assert!(
            stdout(&help).contains("Usage") || stdout(&help).contains("usage"),
            "{verb}"
        );
    }
}

#[test]
fn the_canonical_suite_runs_and_is_reported_again() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let measured = sqlitmus(place.path(), &["measure", "--scale", "smoke"]);
    let stderr = String::from_utf8_lossy(&measured.stderr).into_owned();
    assert_eq!(measured.status.code(), Some(0), "{stderr}");
    assert!(stderr.contains("Run file: "), "{stderr}");
    assert!(stderr.contains("sqlitmus report latest"), "{stderr}");
    let text = stdout(&measured);
    for word in [
        "Read one blob",
        "Overwrite one blob",
        "Disk space",
        "In short",
    ] {
        assert!(text.contains(word), "{word}: {text}");
    }
    let again = sqlitmus(place.path(), &["report"]);
    assert_eq!(
        stdout(&again),
        text,
        "a report is a function of the run file"
    );
    let html = stdout(&sqlitmus(place.path(), &["report", "--format", "html"]));
    assert!(
        html.starts_with("<!DOCTYPE html>"),
        "{}",
        &html[..80.min(html.len())]
    );
    let json = stdout(&sqlitmus(place.path(), &["report", "--format", "json"]));
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["run"]["state"], "complete");
    let listed = stdout(&sqlitmus(place.path(), &["list"]));
    assert!(
        listed.contains("article") && listed.contains(".run"),
        "{listed}"
    );
}

#[test]
fn one_group_is_measured_alone() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let words = ["measure", "--scale", "smoke", "--group", "read", "--quiet"];
    let measured = sqlitmus(place.path(), &words);
    assert_eq!(measured.status.code(), Some(0));
    let text = stdout(&measured);
    assert!(
        text.contains("Read one blob") && text.contains("Disk space"),
        "{text}"
    );
    assert!(!text.contains("Overwrite one blob"), "{text}");
    assert!(!text.contains("left unsaid"), "{text}");
}

#[test]
fn arms_in_memory_alone_are_measured_too() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let suite = r#"
name = "memory"
about = "for tests"
question = "Is memory enough?"

[[dataset]]
name = "few"
count = 20
size = { fixed = 100 }

[[group]]
name = "read"
dataset = "few"
workload = { kind = "read", order = "random" }
cache = "warm"
durability = "none"
baseline = "memory"
rounds = 1
slices = 1
slice_ms = 1

[[group.arm]]
name = "memory"
label = "memory"
engine = "memory"
"#;
    std::fs::write(place.path().join("suite.toml"), suite).expect("suite written");
    let measured = sqlitmus(place.path(), &["measure", "suite.toml", "--quiet"]);
    let said = String::from_utf8_lossy(&measured.stderr).into_owned();
    assert_eq!(measured.status.code(), Some(0), "{said}");
}

#[test]
fn cleaning_removes_stores_keeps_runs_and_leaves_what_is_foreign() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let suite = "--scale";
    assert!(
        sqlitmus(place.path(), &["measure", suite, "smoke", "--quiet"])
            .status
            .success()
    );
    let scratch = place.path().join(".sqlitmus");
    let foreign = scratch.join("stores/mine");
    std::fs::write(&foreign, "precious").expect("written");
    let cleaned = sqlitmus(place.path(), &["clean"]);
    assert_eq!(cleaned.status.code(), Some(0));
    assert!(
        stdout(&cleaned).contains("left alone"),
        "{}",
        stdout(&cleaned)
    );
    assert!(
        sqlitmus(place.path(), &["report"]).status.success(),
        "runs are kept"
    );
    assert_eq!(
        std::fs::read_to_string(&foreign).expect("there"),
        "precious"
    );
    std::fs::remove_file(&foreign).expect("removed");
    assert!(
        sqlitmus(place.path(), &["clean", "--runs"])
            .status
            .success()
    );
    assert!(!scratch.exists(), "nothing is left");
    assert!(
        stdout(&sqlitmus(place.path(), &["clean"])).contains("nothing to clean"),
        "and that is no error"
    );
}

#[test]
fn an_interrupted_run_reports_what_it_has() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let child = program::command(
        place.path(),
        &["measure", "--scale", "smoke", "--rounds", "10000"],
    )
    .stdout(Stdio::piped())
    .stderr(Stdio::piped())
    .spawn()
    .expect("sqlitmus starts");
    wait_for_rounds(place.path(), 2);
    signal(&child, rustix::process::Signal::INT);
    let output = stopped(child);
    let text = stdout(&output);
    assert!(text.contains("Read one blob"), "{text}");
    assert!(text.to_lowercase().contains("interrupted"), "{text}");
    assert!(sqlitmus(place.path(), &["report"]).status.success());
    // Once: the round that was under way has been finished, and counts.
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("Ctrl-C again stops now"), "{said}");
    assert!(kept_rounds(place.path()).iter().all(|complete| *complete));
}

#[test]
fn a_run_that_is_terminated_stops_at_once_and_reports_what_it_has() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let child = program::command(
        place.path(),
        &[
            "measure", "--scale", "smoke", "--rounds", "10000", "--group", "read",
        ],
    )
    .stdout(Stdio::piped())
    .stderr(Stdio::piped())
    .spawn()
    .expect("sqlitmus starts");
    wait_for_rounds(place.path(), 1);
    signal(&child, rustix::process::Signal::TERM);
    let output = stopped(child);
    let text = stdout(&output);
    assert!(text.to_lowercase().contains("interrupted"), "{text}");
    assert!(sqlitmus(place.path(), &["report"]).status.success());
}

fn signal(child: &std::process::Child, signal: rustix::process::Signal) {
    let process = rustix::process::Pid::from_child(child);
    rustix::process::kill_process(process, signal).expect("signalled");
}

/// What a run said that was asked to stop.
fn stopped(mut child: std::process::Child) -> std::process::Output {
    let deadline = Instant::now() + Duration::from_secs(60);
    while child.try_wait().expect("waited").is_none() {
        assert!(Instant::now() < deadline, "it stops soon");
        std::thread::sleep(Duration::from_millis(20));
    }
    let output = child.wait_with_output().expect("output");
    assert_eq!(output.status.code(), Some(130));
    output
}

/// Of every round that the only run of a place has kept, whether it is complete.
fn kept_rounds(place: &Path) -> Vec<bool> {
    let runs = std::fs::read_dir(place.join(".sqlitmus/runs"))
        .expect("runs")
        .flatten();
    let mut paths = runs.map(|entry| entry.path());
    let path = paths.find(|path| path.extension().is_some_and(|extension| extension == "run"));
    let rounds = sqlitmus_runfile::rounds(&path.expect("a run file")).expect("rounds");
    rounds.iter().map(|round| round.complete).collect()
}

/// Waits until the run under way has kept some rounds.
fn wait_for_rounds(place: &Path, rounds: usize) {
    let deadline = Instant::now() + Duration::from_secs(120);
    loop {
        let runs = std::fs::read_dir(place.join(".sqlitmus/runs"));
        let kept = runs.into_iter().flatten().flatten().any(|entry| {
            let path = entry.path();
            path.extension().is_some_and(|extension| extension == "run")
                && sqlitmus_runfile::rounds(&path).is_ok_and(|kept| kept.len() >= rounds)
        });
        if kept {
            return;
        }
        assert!(Instant::now() < deadline, "no round was kept");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_place_is_measured_by_one_run_at_a_time() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let mut first = program::command(
        place.path(),
        &[
            "measure", "--scale", "smoke", "--rounds", "10000", "--quiet",
        ],
    )
    .stdout(Stdio::null())
    .stderr(Stdio::null())
    .spawn()
    .expect("sqlitmus starts");
    wait_for_rounds(place.path(), 1);
    let second = sqlitmus(place.path(), &["measure", "--scale", "smoke"]);
    let cleaning = sqlitmus(place.path(), &["clean"]);
    first.kill().expect("killed");
    first.wait().expect("ended");
    for refused in [second, cleaning] {
        assert_eq!(refused.status.code(), Some(2));
        let stderr = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(stderr.contains("hint: "), "{stderr}");
    }
    // What the kill left behind is no obstacle.
    let third = sqlitmus(place.path(), &["measure", "--scale", "smoke", "--quiet"]);
    let stderr = String::from_utf8_lossy(&third.stderr).into_owned();
    assert_eq!(third.status.code(), Some(0), "{stderr}");
}

#[test]
fn completions_and_manual_are_printed() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let script = sqlitmus(place.path(), &["completions", "bash"]);
    assert!(stdout(&script).contains("_sqlitmus"), "{}", stdout(&script));
    let page = sqlitmus(place.path(), &["man"]);
    assert!(stdout(&page).contains(".TH sqlitmus"), "{}", stdout(&page));
    assert_eq!(
        std::fs::read_dir(place.path()).expect("readable").count(),
        0
    );
}
