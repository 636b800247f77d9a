//! `sqlitmus compare` as its users meet it: exit codes, formats, refusals. The runs have the plan and
//! the machine of a real run, and made-up times, since no test depends on speed.

mod program;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::Value;
use sqlitmus_core::environment::{fact, said};
use sqlitmus_core::latencies::Latencies;
use sqlitmus_core::run::{Outcome, Run, RunState, Sample, Trial};
use sqlitmus_runfile::RunFile;

const ROUNDS: u32 = 12;

/// A baseline's time, in nanoseconds.
const BASE_NS: u64 = 10_000;

fn template() -> Run {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/runs/format-1.run");
    let mut run = sqlitmus_runfile::read(&path).expect("a run");
    run.trials.clear();
    run
}

/// A run of the template's plan in which every arm takes `BASE_NS`, but those that `times` names take
/// so many times as long.
fn made_up(id: &str, times: &[(&str, f64)]) -> Run {
    let mut run = template();
    id.clone_into(&mut run.head.id);
    for group in &run.plan.groups {
        for arm in &group.arms {
            let found = times.iter().find(|(name, _)| *name == arm.name);
            let factor = found.map_or(1.0, |(_, factor)| *factor);
            for round in 0..ROUNDS {
                run.trials
                    .push(trial(&arm.name, round, factor, arm.case.workload.writes()));
            }
        }
    }
    run
}

fn trial(arm: &str, round: u32, factor: f64, writes: bool) -> Trial {
    // A little scatter that differs from arm to arm: below half a percent.
    let scatter = (arm.len() as u64 * 7 + u64::from(round) * 13) % 11;
    let elapsed_ns = ((BASE_NS + 4 * scatter) as f64 * factor) as u64 * 100;
    Trial {
        arm: arm.to_owned(),
        round,
        set: 0,
        outcome: Outcome::Valid,
        read_back: BTreeMap::from([(said::SQLITE_VERSION.to_owned(), "3.54.1".to_owned())]),
        resources: BTreeMap::new(),
        system_calls: None,
        latencies: Latencies(vec![(BASE_NS, 100)]),
        samples: vec![Sample {
            turn: 0,
            place: 0,
            operations: 100,
            content_bytes: 1_000_000,
            elapsed_ns,
            settle_ns: writes.then_some(1_000_000),
            device_read_bytes: Some(0),
            major_faults: Some(0),
            involuntary_context_switches: None,
            machine_steal_ns: None,
            device_read_ns: None,
        }],
    }
}

/// The first arm that is no baseline and reads.
fn an_arm() -> String {
    let run = template();
    let mut arms = run.plan.groups.iter().flat_map(|group| {
        let is_other = |arm: &&sqlitmus_core::plan::Arm| {
            arm.name != group.baseline && !arm.is_twin() && !arm.case.workload.writes()
        };
        group.arms.iter().filter(is_other)
    });
    arms.next().expect("an arm").name.clone()
}

struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary directory"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn keep(&self, name: &str, run: &Run) {
        let path = self.path(name);
        let file = RunFile::create(&path, &run.head, &run.plan, &run.environment);
        let mut file = file.expect("created");
        for group in &run.plan.groups {
            for round in 0..ROUNDS {
                let of_round = |trial: &&Trial| {
                    trial.round == round && group.arms.iter().any(|arm| arm.name == trial.arm)
                };
                let trials: Vec<Trial> = run.trials.iter().filter(of_round).cloned().collect();
                file.record_round(&group.name, round, &trials, true)
                    .expect("recorded");
            }
        }
        file.finish(run.head.state, Some("2026-11-20T20:14:48Z"))
            .expect("finished");
    }

    fn run(&self, words: &[&str]) -> Output {
        program::run(self.0.path(), words)
    }

    /// Compares `a` with `b`, which must end with this exit code; what is printed.
    #[track_caller]
    fn compares(&self, options: &[&str], code: i32) -> String {
        let output = self.run(&[&["compare", "a", "b"], options].concat());
        let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{stdout}\n{stderr}");
        stdout
    }

    /// Refused with exit code 2, one error and one hint; the error with its hint.
    #[track_caller]
    fn refuses(&self, words: &[&str]) -> String {
        let output = self.run(words);
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{words:?}: {stderr}");
        assert!(output.stdout.is_empty(), "{words:?}");
        assert_eq!(stderr.matches("error: ").count(), 1, "{stderr}");
        assert_eq!(stderr.matches("hint: ").count(), 1, "{stderr}");
        stderr
    }
}

#[test]
fn exit_codes_are_the_answer() {
    let arm = an_arm();
    for (factor, code, words) in [
        (1.0, 0, "No regression"),
        (0.8, 0, "No regression"),
        (1.1, 1, "Regression: 1 of"),
    ] {
        let place = Place::new();
        place.keep("a", &made_up("a", &[]));
        place.keep("b", &made_up("b", &[(&arm, factor)]));
        let text = place.compares(&[], code);
        assert!(text.contains(words), "{text}");
        let json: Value =
            serde_json::from_str(&place.compares(&["--format", "json"], code)).expect("JSON");
        assert_eq!(json["format"], 1);
        for format in ["github", "markdown"] {
            assert!(place.compares(&["--format", format], code).contains(words));
        }
        let bencher: Value =
            serde_json::from_str(&place.compares(&["--format", "bencher"], code)).expect("JSON");
        let latency = &bencher[format!("article/smoke/{arm}")]["latency"]["value"];
        let found = latency.as_f64().expect("a number") / BASE_NS as f64;
        assert!((found / factor - 1.0).abs() < 0.01, "{found}");
        if code == 1 {
            place.compares(&["--threshold", "20%"], 0);
            place.compares(&["--of", "time"], 1);
        }
    }
}

#[test]
fn what_is_not_decided_is_not_passed_over() {
    let arm = an_arm();
    let place = Place::new();
    place.keep("a", &made_up("a", &[]));
    let mut failed = made_up("b", &[]);
    failed.head.state = RunState::Interrupted;
    for trial in failed.trials.iter_mut().filter(|trial| trial.arm == arm) {
        trial.outcome = Outcome::Failed("it crashed".to_owned());
    }
    place.keep("b", &failed);
    let text = place.compares(&[], 3);
    for words in ["it crashed", "B was interrupted", "Not sure"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let output = place.run(&["compare", "a", "b", "--format", "bencher"]);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        stderr.contains(&format!("no figures for article/smoke/{arm}")),
        "{stderr}"
    );
}

#[test]
fn unlike_conditions_are_refused_unless_expected_or_forced() {
    let place = Place::new();
    place.keep("a", &made_up("a", &[]));
    let mut other = made_up("b", &[]);
    for (name, value) in &mut other.environment {
        match name.as_str() {
            fact::CPU_MODEL => "Another".clone_into(value),
            fact::MOUNT_OPTIONS => "rw,noatime".clone_into(value),
            _ => {}
        }
    }
    for trial in &mut other.trials {
        trial
            .read_back
            .insert(said::SQLITE_VERSION.to_owned(), "3.55.0".to_owned());
    }
    place.keep("b", &other);
    let error = place.refuses(&["compare", "a", "b"]);
    for words in [
        "cpu_model: AMD EPYC in A, Another in B (another processor",
        "mount_options: rw,relatime in A, rw,noatime in B",
        "sqlite_version: 3.54.1 in A, 3.55.0 in B",
        "--expect cpu_model",
        "--force",
    ] {
        assert!(error.contains(words), "{words}: {error}");
    }
    let text = place.compares(&["--force"], 0);
    assert!(text.contains("Forced: 3 differences"), "{text}");
    let expected = [
        "--expect",
        "cpu_model",
        "--expect",
        "mount_options",
        "--expect",
        "sqlite",
    ];
    let text = place.compares(&expected, 0);
    assert!(
        !text.contains("Forced") && text.contains("(expected)"),
        "{text}"
    );
    let error = place.refuses(&["compare", "a", "b", "--expect", "cpu_modle"]);
    assert!(error.contains("did you mean `cpu_model`?"), "{error}");
}

#[test]
fn what_is_no_run_or_has_nothing_in_common_is_refused() {
    let place = Place::new();
    let whole = made_up("a", &[]);
    place.keep("a", &whole);
    let bytes = std::fs::read(place.path("a")).expect("readable");
    std::fs::write(place.path("truncated"), &bytes[..bytes.len() / 2]).expect("written");
    std::fs::write(
        place.path("text"),
        "not a run, but long enough for a header of one",
    )
    .expect("written");
    std::fs::write(place.path("empty"), "").expect("written");
    let foreign = rusqlite::Connection::open(place.path("foreign")).expect("opened");
    foreign
        .execute_batch("CREATE TABLE run (id)")
        .expect("made");
    std::fs::copy(place.path("a"), place.path("newer")).expect("copied");
    let newer = rusqlite::Connection::open(place.path("newer")).expect("opened");
    newer.pragma_update(None, "user_version", 99).expect("set");
    std::fs::copy(place.path("a"), place.path("unplanned")).expect("copied");
    let unplanned = rusqlite::Connection::open(place.path("unplanned")).expect("opened");
    let sql = r#"UPDATE run SET plan = '{"kind":"of-the-future"}', sqlitmus_version = '9.9.9'"#;
    unplanned.execute(sql, []).expect("set");
    let mut other = made_up("other", &[]);
    for arm in other
        .plan
        .groups
        .iter_mut()
        .flat_map(|group| &mut group.arms)
    {
        arm.case.dataset.count += 1;
    }
    place.keep("other", &other);
    for (name, error, hint) in [
        ("truncated", "truncated", "copy it again"),
        ("text", "not an SQLite database", "sqlitmus measure"),
        ("empty", "not an SQLite database", "sqlitmus measure"),
        ("foreign", "another application", "sqlitmus measure"),
        ("newer", "format version 99", "update sqlitmus"),
        ("unplanned", "cannot be understood", "sqlitmus 9.9.9"),
        ("missing", "no run file missing", "sqlitmus list"),
        ("other", "no case in common", "--scale"),
        ("a", "the same run", "measure again"),
        ("latest", "no latest run", "sqlitmus measure"),
    ] {
        let words: [&[&str]; 3] = [
            &["compare", "a", name],
            &["compare", name, "a", "--force"],
            &["report", name],
        ];
        for words in words {
            // These two are runs like any other, by themselves.
            if words[0] == "report" && ["other", "a"].contains(&name) {
                continue;
            }
            let found = place.refuses(words);
            assert!(
                found.contains(error) && found.contains(hint),
                "{name}: {found}"
            );
        }
    }
}

#[test]
fn thresholds_are_shares() {
    let place = Place::new();
    for wrong in ["3", "-1%", "101%", "NaN", "much", ""] {
        let threshold = format!("--threshold={wrong}");
        let error = place.refuses(&["compare", "a", "b", &threshold]);
        assert!(error.contains("3% or 0.03"), "{error}");
    }
}

/// Names of files may lie: what counts is when a run was begun.
#[test]
fn latest_and_previous_go_by_time() {
    let place = Place::new();
    let suite = "name = \"s\"\nabout = \"a\"\nquestion = \"?\"\n\
        [[dataset]]\nname = \"d\"\ncount = 5\nsize = { fixed = 10 }\n\
        [[group]]\nname = \"g\"\ndataset = \"d\"\ncache = \"warm\"\ndurability = \"process-crash\"\n\
        workload = { kind = \"read\", order = \"random\" }\nbaseline = \"m\"\nrounds = 1\n\
        slices = 1\nslice_ms = 1\n\
        [[group.arm]]\nname = \"m\"\nlabel = \"m\"\nengine = \"packfile\"\n";
    std::fs::write(place.path("suite.toml"), suite).expect("written");
    let measured = place.run(&["measure", "suite.toml", "--quiet"]);
    assert_eq!(
        measured.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&measured.stderr)
    );
    let runs = place.path(".sqlitmus/runs");
    let later = |name: &str, id: &str, started_utc: &str| {
        let mut run = made_up(id, &[]);
        started_utc.clone_into(&mut run.head.started_utc);
        place.keep(&format!(".sqlitmus/runs/{name}"), &run);
    };
    later("1.run", "newest", "2099-02-01T00:00:00Z");
    later("2.run", "second", "2099-01-01T00:00:00Z");
    let text = place.run(&["compare", "previous", "latest", "--format", "json"]);
    let json: Value = serde_json::from_slice(&text.stdout).expect("JSON");
    assert_eq!(
        (&json["a"]["id"], &json["b"]["id"]),
        (&"second".into(), &"newest".into())
    );
    // A run that cannot be read and may be the newest is not passed over.
    let bytes = std::fs::read(runs.join("1.run")).expect("readable");
    std::fs::write(runs.join("3.run"), &bytes[..bytes.len() / 2]).expect("written");
    let error = place.refuses(&["report", "latest"]);
    assert!(error.contains("cannot tell which run is latest"), "{error}");
    let listed = place.run(&["list"]);
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    assert!(
        listed.contains("cannot be read: ") && listed.contains("1.run"),
        "{listed}"
    );
    std::fs::rename(runs.join("3.run"), runs.join("0.run")).expect("renamed");
    assert_eq!(place.run(&["report", "latest"]).status.code(), Some(0));
}
