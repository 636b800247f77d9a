//! `sqlitmus durability` from the outside: what it finds, that a liar is always caught, what it
//! refuses, and that nothing stays mounted however it ends. Tests that mount need root and
//! `SQLITMUS_TEST_MOUNTS=1`.
#![cfg(target_os = "linux")]

mod program;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use sqlitmus_core::case::Durability;
use sqlitmus_core::durability::{Claim, DurabilityRun, judge};
use sqlitmus_core::run::RunState;

use program::{command as sqlitmus, run as output};

/// Longest wait for something that takes a second or two; no test depends on it being short.
const PATIENCE: Duration = Duration::from_secs(120);

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn place() -> tempfile::TempDir {
    tempfile::tempdir().expect("temporary directory")
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

fn mounts_below(directory: &Path) -> Vec<String> {
    let directory = directory
        .canonicalize()
        .expect("path")
        .display()
        .to_string();
    let table = std::fs::read_to_string("/proc/self/mountinfo").expect("mounts");
    let lines = table.lines().filter(|line| line.contains(&directory));
    lines.map(str::to_owned).collect()
}

fn runs_of(directory: &Path) -> Vec<PathBuf> {
    let runs = std::fs::read_dir(directory.join(".sqlitmus/runs")).expect("runs");
    let paths = runs.map(|entry| entry.expect("entry").path());
    paths
        .filter(|path| path.extension().is_some_and(|ending| ending == "run"))
        .collect()
}

fn only_run(directory: &Path) -> DurabilityRun {
    let runs = runs_of(directory);
    assert_eq!(runs.len(), 1);
    sqlitmus_runfile::read_durability(&runs[0]).expect("read")
}

/// What was claimed and observed of a configuration, by its name.
fn judged(run: &DurabilityRun, name: &str) -> (Option<Durability>, Claim) {
    let table = judge(run);
    let mut rows = table.rows.iter();
    let row = rows.find(|row| row.configuration.name == name).expect(name);
    assert_eq!(
        (row.power.failed, row.process.failed),
        (0, 0),
        "{:?}",
        row.power.example
    );
    (row.observed, row.claim)
}

#[test]
fn without_root_processes_are_killed_and_it_says_that_this_is_all() {
    let place = place();
    let words = [
        "durability",
        "--place",
        ".",
        "--quick",
        "--cuts",
        "2",
        "--only",
        "packfile none",
        "--only",
        "wal normal",
    ];
    let done = output(place.path(), &words);
    let said = text(&done.stderr);
    assert_eq!(done.status.code(), Some(0), "{said}");
    assert!(said.contains("the power stays on"), "{said}");
    let table = text(&done.stdout);
    assert!(
        table.contains("the power was not cut") && table.contains("was caught"),
        "{table}"
    );

    let run = only_run(place.path());
    let crash = Some(Durability::ProcessCrash);
    assert_eq!(judged(&run, "packfile none"), (crash, Claim::Holds));
    assert_eq!(judged(&run, "sqlite wal normal"), (crash, Claim::Holds));
    assert_eq!(
        judged(&run, "control: a liar"),
        (Some(Durability::None), Claim::Caught)
    );
    assert_eq!(run.head.state, RunState::Complete);
    assert_eq!(run.read_back["sqlite wal normal"]["synchronous"], "normal");
    // The stores are gone, the run is kept.
    let stores = std::fs::read_dir(place.path().join(".sqlitmus/stores")).expect("stores");
    let left: Vec<_> = stores.flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(left, ["CACHEDIR.TAG"]);

    for (format, expected) in [
        ("terminal", "What do commits survive?"),
        ("html", "<h1>What do commits survive?</h1>"),
        ("markdown", "| packfile none |"),
        ("json", "\"kind\": \"durability\""),
    ] {
        let report = output(place.path(), &["report", "latest", "--format", format]);
        assert_eq!(report.status.code(), Some(0), "{}", text(&report.stderr));
        assert!(text(&report.stdout).contains(expected), "{format}");
    }
}

#[test]
fn what_cannot_be_done_is_refused_with_a_way_out() {
    let place = place();
    std::fs::write(place.path().join("taken"), "content").expect("written");
    for (words, message, hint) in [
        (&["--loopback", "ext5"][..], "ext5", "did you mean `ext4`?"),
        (&["--hold", "40-1s"], "no range of times", "--hold 1-40s"),
        (
            &["--only", "mongodb"],
            "no configuration",
            "sqlite wal full",
        ),
        (&["--place", "missing"], "does not exist", "mkdir"),
        (
            &["--place", ".", "--output", "taken"],
            "exists already",
            "name another",
        ),
        (&["--cuts", "0"], "0", "--help"),
    ] {
        let words = [&["durability"], words].concat();
        let refused = output(place.path(), &words);
        let said = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{words:?}: {said}");
        assert!(
            said.contains(message) && said.contains(hint),
            "{words:?}: {said}"
        );
        assert!(
            !place.path().join(".sqlitmus").exists(),
            "{words:?} left something"
        );
    }
    // A search path without the programs, as on a system that lacks them.
    let mut command = sqlitmus(
        place.path(),
        &["durability", "--loopback", "btrfs", "--power", "shutdown"],
    );
    if rustix::process::geteuid().is_root() {
        let refused = command.output().expect("started");
        let said = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{said}");
        assert!(said.contains("hint: "), "{said}");
    }
}

#[test]
fn a_measurement_is_no_durability_run_and_the_other_way_round() {
    let place = place();
    let words = [
        "durability",
        "--place",
        ".",
        "--quick",
        "--cuts",
        "1",
        "--only",
        "packfile none",
    ];
    assert_eq!(output(place.path(), &words).status.code(), Some(0));
    let error = sqlitmus_runfile::read(&runs_of(place.path())[0]).expect_err("no measurement");
    assert!(
        error.to_string().contains("durability experiment"),
        "{error}"
    );
}

#[test]
fn losses_of_power_are_seen_and_nothing_stays() {
    if !may_mount() {
        return;
    }
    let place = place();
    let words = [
        "durability",
        "--quick",
        "--cuts",
        "3",
        "--hold",
        "300ms-900ms",
        "--loopback",
        "ext4,xfs",
        "--only",
        "sqlite wal full",
        "--only",
        "files rename none",
        "--only",
        "files in-place fsync",
    ];
    let done = output(place.path(), &words);
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    let run = only_run(place.path());
    let (power, crash) = (Some(Durability::PowerLoss), Some(Durability::ProcessCrash));
    assert_eq!(judged(&run, "sqlite wal full"), (power, Claim::Holds));
    assert_eq!(judged(&run, "files in-place fsync"), (power, Claim::Holds));
    assert_eq!(judged(&run, "files rename none"), (crash, Claim::Holds));
    assert_eq!(judged(&run, "control: a liar").1, Claim::Caught);
    assert_eq!(run.cuts.len(), 2 * 2 * 3 * 4 + 2 * 2 * 3);
    assert!(mounts_below(place.path()).is_empty());
    let left = std::fs::read_dir(place.path().join(".sqlitmus/loopback")).expect("folder");
    assert_eq!(left.count(), 0);
}

#[test]
fn below_any_filesystem_the_device_can_stop() {
    if !may_mount() || !Path::new("/dev/fuse").exists() {
        return;
    }
    for power in ["device", "reordering"] {
        let place = place();
        let words = [
            "durability",
            "--quick",
            "--cuts",
            "2",
            "--hold",
            "300ms-900ms",
            "--loopback",
            "btrfs,ext4",
            "--power",
            power,
            "--only",
            "sqlite wal full",
        ];
        let done = output(place.path(), &words);
        assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
        let run = only_run(place.path());
        let expected = (Some(Durability::PowerLoss), Claim::Holds);
        assert_eq!(judged(&run, "sqlite wal full"), expected, "{power}");
        assert_eq!(judged(&run, "control: a liar").1, Claim::Caught, "{power}");
        assert!(mounts_below(place.path()).is_empty());
    }
}

/// A run that is in the midst of cutting, with filesystems mounted.
fn started(place: &Path) -> Child {
    let words = [
        "durability",
        "--quick",
        "--cuts",
        "1",
        "--hold",
        "60s",
        "--loopback",
        "ext4",
        "--only",
        "packfile none",
    ];
    let mut child = sqlitmus(place, &words)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("started");
    let until = Instant::now() + PATIENCE;
    while !mounts_below(place)
        .iter()
        .any(|line| line.contains("shutdown"))
    {
        assert!(child.try_wait().expect("status").is_none(), "it ended");
        assert!(Instant::now() < until, "nothing was mounted");
        std::thread::sleep(Duration::from_millis(20));
    }
    child
}

fn signal(child: &Child, signal: rustix::process::Signal) {
    let process = i32::try_from(child.id())
        .ok()
        .and_then(rustix::process::Pid::from_raw);
    rustix::process::kill_process(process.expect("a process"), signal).expect("signalled");
}

#[test]
fn an_interrupted_run_leaves_nothing_mounted_and_keeps_what_it_has() {
    if !may_mount() {
        return;
    }
    let place = place();
    let mut child = started(place.path());
    signal(&child, rustix::process::Signal::INT);
    let status = child.wait().expect("ended");
    assert_eq!(status.code(), Some(130));
    assert!(mounts_below(place.path()).is_empty());
    assert_eq!(only_run(place.path()).head.state, RunState::Interrupted);
    let report = output(place.path(), &["report", "latest"]);
    assert!(text(&report.stdout).contains("NOT COMPLETE"));
}

#[test]
fn after_a_kill_the_next_start_takes_the_leftovers_away() {
    if !may_mount() {
        return;
    }
    let place = place();
    let mut child = started(place.path());
    signal(&child, rustix::process::Signal::KILL);
    child.wait().expect("ended");
    assert!(
        !mounts_below(place.path()).is_empty(),
        "the kill came too late to prove anything"
    );
    let words = [
        "durability",
        "--place",
        ".",
        "--quick",
        "--cuts",
        "1",
        "--only",
        "packfile none",
    ];
    let done = output(place.path(), &words);
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    assert!(mounts_below(place.path()).is_empty());
}

/// A run of the first version, on btrfs: every later version renders it.
#[test]
fn the_run_in_the_gallery_is_rendered() {
    let run = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/gallery/durability-btrfs.run"
    );
    let place = place();
    let report = output(place.path(), &["report", run, "--format", "markdown"]);
    assert_eq!(report.status.code(), Some(0), "{}", text(&report.stderr));
    let table = text(&report.stdout);
    let row = table
        .lines()
        .find(|line| line.starts_with("| sqlite delete full |"));
    assert!(row.expect("a row").contains("5 of 10"), "{table}");
}
