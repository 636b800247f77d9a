//! Arms that are measured alone and had to read from the device: what is repeated in the round, and what
//! counts all the same. A worker of our own says what the kernel is to have counted.

use std::path::{Path, PathBuf};
use std::process::Command;

use sqlitmus_core::run::{Outcome, Run};

/// Slices that are long enough for a read to be a hundredth of them.
const SUITE: &str = r#"
name = "alone"
about = "for tests"
question = "Was it warm?"

[[dataset]]
name = "rows"
count = 60
size = { fixed = 40 }

[[group]]
name = "query"
dataset = "rows"
workload = { kind = "point-query", hit_percent = 10 }
cache = "warm"
durability = "none"
turns = "alone"
baseline = "one"
rounds = 2
slices = 1
slice_ms = 120

[[group.arm]]
name = "one"
label = "one"
engine = "sqlite"
"#;

/// Measures with a worker that misbehaves like this; returns the run and what was reported.
fn measure(misbehaviour: &str) -> (Run, String) {
    let place = tempfile::tempdir().expect("scratch");
    std::fs::write(place.path().join("suite.toml"), SUITE).expect("suite written");
    let program = Path::new(env!("CARGO_BIN_EXE_sqlitmus"));
    let fixture: PathBuf = program
        .parent()
        .expect("a target directory")
        .join("examples/fixture_worker");
    assert!(
        fixture.exists(),
        "no fixture worker: `cargo test -p sqlitmus` builds it, `--test NAME` alone does not"
    );
    let output = Command::new(program)
        .current_dir(place.path())
        .args(["measure", "./suite.toml", "--output", "it.run"])
        .arg("--worker-program")
        .arg(fixture)
        .env("FIXTURE_ENGINE", "sqlite")
        .env("FIXTURE_MISBEHAVIOUR", misbehaviour)
        .env("FIXTURE_MARK", place.path().join("mark"))
        .output()
        .expect("runs");
    let report = String::from_utf8_lossy(&output.stdout).into_owned();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{report}{stderr}");
    let run = sqlitmus_runfile::read(&place.path().join("it.run")).expect("a run file");
    (run, report.split_whitespace().collect::<Vec<_>>().join(" "))
}

#[test]
fn a_trial_that_was_not_warm_is_repeated_in_its_round() {
    let (run, report) = measure("reads-once");
    let is_valid = |outcome: &Outcome| *outcome == Outcome::Valid;
    let first: Vec<_> = run.trials.iter().filter(|trial| trial.round == 0).collect();
    // The arm and its repetition, and one of them once more, after both.
    assert_eq!(first.len(), 3, "{first:?}");
    let invalid: Vec<_> = first
        .iter()
        .filter(|trial| !is_valid(&trial.outcome))
        .collect();
    assert_eq!(invalid.len(), 1);
    assert!(
        matches!(&invalid[0].outcome, Outcome::Invalid(reason) if reason.contains("had to read")),
        "{:?}",
        invalid[0].outcome
    );
    let last = first[2];
    assert!(last.arm == invalid[0].arm && is_valid(&last.outcome));
    // No round is lost, so none is added.
    assert_eq!(run.trials.iter().map(|trial| trial.round).max(), Some(1));
    assert!(!report.contains("Counted as warm"), "{report}");
}

#[test]
fn a_read_that_took_less_than_a_hundredth_of_the_time_counts_and_is_told() {
    let (run, report) = measure("reads-briefly");
    assert_eq!(run.trials.len(), 4, "nothing is repeated");
    for trial in &run.trials {
        assert_eq!(trial.outcome, Outcome::Valid);
        assert_eq!(trial.samples[0].device_read_bytes, Some(4096));
        assert_eq!(trial.samples[0].device_read_ns, Some(0));
    }
    // A millisecond, which is what the kernel rounds to, of 120.
    let told =
        "Counted as warm: 4 slices in which the device was read, for at most 0.8% of the time.";
    assert!(report.contains(told), "{report}");
}
