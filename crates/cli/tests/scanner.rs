//! The on-access scanner of our own, for real: who opens a file below the store of a scanned arm is
//! asked, nobody else is, and however it ends nothing hangs. As root with `SQLITMUS_TEST_MOUNTS=1`;
//! the mounts are in namespaces of the workers' own.
#![cfg(target_os = "linux")]

mod program;

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use program::PROGRAM;

const SUITE: &str = r#"
name = "scanned"
about = "for tests"
question = "What does a scanner cost?"

[[dataset]]
name = "few"
count = 40
size = { fixed = 10000 }

[[group]]
name = "read"
dataset = "few"
workload = { kind = "read", order = "random" }
cache = "warm"
durability = "process-crash"
baseline = "files"
rounds = 2
slices = 2
slice_ms = 5

[[group.arm]]
name = "files"
label = "files"
engine = "files"

[[group.arm]]
name = "files-asks"
label = "files, asks"
engine = "files"
scanner = "asks"

[[group.arm]]
name = "files-reads"
label = "files, reads"
engine = "files"
scanner = "reads"

[[group.arm]]
name = "files-remembers"
label = "files, remembers"
engine = "files"
scanner = "remembers"

[[group.arm]]
name = "sqlite-reads"
label = "SQLite, reads"
engine = "sqlite"
scanner = "reads"
"#;

fn is_allowed() -> bool {
    let is_allowed =
        std::env::var_os("SQLITMUS_TEST_MOUNTS").is_some() && rustix::process::geteuid().is_root();
    if !is_allowed {
        let reason = "skipped: a scanner takes root and SQLITMUS_TEST_MOUNTS=1";
        writeln!(std::io::stderr(), "{reason}").expect("stderr");
    }
    is_allowed
}

fn measure(place: &Path, words: &[&str]) -> Output {
    std::fs::write(place.join("suite.toml"), SUITE).expect("suite written");
    Command::new(Path::new(PROGRAM))
        .args([
            "measure",
            "suite.toml",
            "--json",
            "--quiet",
            "--output",
            "run",
        ])
        .args(words)
        .current_dir(place)
        .output()
        .expect("sqlitmus runs")
}

fn counted(run: &sqlitmus_core::run::Run, arm: &str, name: &str) -> u64 {
    let trials = run.trials.iter().filter(|trial| trial.arm == arm);
    trials.filter_map(|trial| trial.resources.get(name)).sum()
}

#[test]
fn every_opened_file_is_scanned_and_nothing_else_is() {
    if !is_allowed() {
        return;
    }
    let place = tempfile::tempdir().expect("a temporary directory");
    let mounts_before = std::fs::read_to_string("/proc/self/mountinfo").expect("mounts");
    let output = measure(place.path(), &[]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let result: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    for arm in result["arms"].as_array().expect("arms") {
        assert_eq!(arm["status"], "measured", "{arm}");
    }
    let run = sqlitmus_runfile::read(&place.path().join("run")).expect("a run file");
    let files = |arm: &str, name: &str| counted(&run, arm, name);
    for arm in ["files-asks", "files-reads"] {
        // One open for one operation, and nothing else below the store's directory.
        assert_eq!(
            files(arm, "scanned_files"),
            files(arm, "scanned_operations"),
            "{arm}"
        );
        assert!(files(arm, "scanned_files") > 0, "{arm}");
    }
    assert_eq!(files("files-asks", "scanned_bytes"), 0);
    let read = files("files-reads", "scanned_bytes");
    assert_eq!(read, files("files-reads", "scanned_files") * 10_000);
    assert_eq!(files("files-reads", "scans_unfinished"), 0);
    // Every file was opened in the lead-in, and none has changed.
    assert_eq!(files("files-remembers", "scanned_files"), 0);
    // The database was opened before the first slice.
    assert_eq!(files("sqlite-reads", "scanned_files"), 0);
    let trials = run.trials.iter().filter(|trial| trial.arm == "files");
    for trial in trials {
        assert!(
            !trial.resources.contains_key("scanned_files"),
            "nobody is asked"
        );
    }
    let mounts_after = std::fs::read_to_string("/proc/self/mountinfo").expect("mounts");
    assert_eq!(mounts_before, mounts_after, "no mount is seen outside");
}

#[test]
fn without_root_scanned_arms_are_skipped_and_the_others_measured() {
    if !rustix::process::geteuid().is_root() {
        let place = tempfile::tempdir().expect("a temporary directory");
        let output = measure(place.path(), &[]);
        check_skipped(&output);
        return;
    }
    // As nobody, who may neither mount nor listen; the place is given to him.
    let place = tempfile::tempdir().expect("a temporary directory");
    let path = place.path();
    std::os::unix::fs::chown(path, Some(65534), Some(65534)).expect("given away");
    std::fs::write(path.join("suite.toml"), SUITE).expect("suite written");
    let readable = path.join("sqlitmus");
    std::fs::copy(Path::new(PROGRAM), &readable).expect("copied");
    use std::os::unix::process::CommandExt;
    let output = Command::new(&readable)
        .args(["measure", "suite.toml", "--json", "--quiet"])
        .current_dir(path)
        .uid(65534)
        .gid(65534)
        .output()
        .expect("sqlitmus runs");
    check_skipped(&output);
}

fn check_skipped(output: &Output) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let result: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    for arm in result["arms"].as_array().expect("arms") {
        let label = arm["label"].as_str().expect("a label");
        let is_scanned = ["asks", "reads", "remembers"]
            .iter()
            .any(|word| label.ends_with(word));
        let expected = if is_scanned { "skipped" } else { "measured" };
        assert_eq!(arm["status"], expected, "{arm}");
        if is_scanned {
            let reason = arm["reason"].as_str().expect("a reason");
            assert!(reason.contains("takes root"), "{reason}");
        }
    }
}

/// A scanned worker, with the requests of a trial that is never begun.
fn scanned_worker(directory: &Path) -> Child {
    Command::new(Path::new(PROGRAM))
        .arg("__scanned")
        .arg(std::process::id().to_string())
        .arg("reads")
        .arg(directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a worker")
}

/// Asks the worker who it is: after its answer the scanner is at work.
fn introduce(worker: &mut Child) {
    let mut stdin = worker.stdin.take().expect("piped");
    writeln!(stdin, r#"{{"request":"introduce","library":null}}"#).expect("asked");
    let mut line = String::new();
    let stdout = worker.stdout.as_mut().expect("piped");
    BufReader::new(stdout)
        .read_line(&mut line)
        .expect("answered");
    assert!(line.contains("introduced"), "{line}");
    worker.stdin = Some(stdin);
}

/// The scanner of a worker.
fn scanner_of(worker: &Child) -> u32 {
    let children = format!("/proc/{0}/task/{0}/children", worker.id());
    let children = std::fs::read_to_string(children).expect("children");
    let first = children.split_whitespace().next().expect("a scanner");
    first.parse().expect("a number")
}

/// Opens a file as the worker's namespace sees it, which the scanner is asked about.
fn open_inside(worker: &Child, file: &Path) -> std::process::ExitStatus {
    Command::new("nsenter")
        .args(["--mount", "--target", &worker.id().to_string(), "cat"])
        .arg(file)
        .stdout(Stdio::null())
        .status()
        .expect("nsenter runs")
}

#[test]
fn a_scanner_that_stops_or_is_killed_lets_everything_pass() {
    if !is_allowed() {
        return;
    }
    let place = tempfile::tempdir().expect("a temporary directory");
    let directory = place.path().canonicalize().expect("a path");
    let file = directory.join("file");
    std::fs::write(&file, b"content").expect("written");
    let mut worker = scanned_worker(&directory);
    introduce(&mut worker);
    assert!(
        open_inside(&worker, &file).success(),
        "it is asked, and says yes"
    );

    // Outside nobody is asked: this is answered although the scanner is stopped.
    let scanner = scanner_of(&worker);
    let signal = |word: &str| {
        let killed = Command::new("kill")
            .args([word, &scanner.to_string()])
            .status();
        assert!(killed.expect("kill runs").success());
    };
    signal("-STOP");
    let begun = Instant::now();
    std::fs::read(&file).expect("outside nobody is asked");
    assert!(begun.elapsed() < Duration::from_secs(5));

    // Inside an open waits for it; when it is killed the kernel lets it pass.
    let waiting = Command::new("nsenter")
        .args(["--mount", "--target", &worker.id().to_string(), "cat"])
        .arg(&file)
        .stdout(Stdio::null())
        .spawn();
    let mut waiting = waiting.expect("nsenter runs");
    std::thread::sleep(Duration::from_millis(300));
    assert!(
        matches!(waiting.try_wait(), Ok(None)),
        "it waits for an answer"
    );
    signal("-KILL");
    let ended = waiting.wait().expect("it ends");
    assert!(ended.success(), "what waited passes");
    assert!(
        open_inside(&worker, &file).success(),
        "and what comes later"
    );
    drop(worker.stdin.take());
    worker.wait().expect("it ends");
}

#[test]
fn a_scanner_ends_with_its_worker() {
    if !is_allowed() {
        return;
    }
    let place = tempfile::tempdir().expect("a temporary directory");
    let directory = place.path().canonicalize().expect("a path");
    let mut worker = scanned_worker(&directory);
    introduce(&mut worker);
    let scanner = scanner_of(&worker);
    worker.kill().expect("killed");
    worker.wait().expect("it ends");
    let process = format!("/proc/{scanner}/cmdline");
    let patience = Instant::now() + Duration::from_secs(10);
    // A process that has ended and waits for its parent has no command line.
    while std::fs::read(&process).is_ok_and(|line| !line.is_empty()) {
        assert!(Instant::now() < patience, "the scanner is still there");
        std::thread::sleep(Duration::from_millis(20));
    }
}
