//! The harness held against workers that hang, crash, print rubbish and lie: each is one failed
//! arm with its reason, never a failed run and never a figure.

mod program;

use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::Instant;

use serde_json::Value;

const SUITE: &str = r#"
name = "harness"
about = "for tests"
question = "Does the harness hold?"

[[dataset]]
name = "few"
count = 50
size = { uniform = [100, 900] }

[[group]]
name = "read"
dataset = "few"
workload = { kind = "read", order = "random" }
cache = "warm"
durability = "process-crash"
baseline = "files"
rounds = 2
slices = 2
slice_ms = 1

[[group.arm]]
name = "files"
label = "files"
engine = "files"

[[group.arm]]
name = "packfile"
label = "one packed file"
engine = "packfile"

[[group]]
name = "write"
dataset = "few"
workload = { kind = "overwrite", order = "random", operations = 10 }
cache = "warm"
durability = "process-crash"
baseline = "write-files"
rounds = 2
slices = 2

[[group.arm]]
name = "write-files"
label = "files"
engine = "files"

[[group.arm]]
name = "write-packfile"
label = "one packed file"
engine = "packfile"
"#;

struct Harness {
    place: tempfile::TempDir,
}

impl Harness {
    fn new() -> Self {
        let place = tempfile::tempdir().expect("a temporary directory");
        std::fs::write(place.path().join("suite.toml"), SUITE).expect("suite written");
        Self { place }
    }

    fn path(&self) -> &Path {
        self.place.path()
    }

    /// Measures with a worker that misbehaves for one engine.
    fn measure(&self, misbehaviour: &str) -> Output {
        let words = ["measure", "suite.toml", "--json", "--quiet"];
        program::command(self.path(), &words)
            .args(["--worker-timeout", "2", "--worker-program"])
            .arg(program::fixture_worker())
            .env("FIXTURE_ENGINE", "packfile")
            .env("FIXTURE_MISBEHAVIOUR", misbehaviour)
            .output()
            .expect("sqlitmus runs")
    }
}

fn arm_of<'a>(result: &'a Value, name: &str) -> &'a Value {
    result["arms"]
        .as_array()
        .expect("arms")
        .iter()
        .find(|arm| arm["name"] == name)
        .unwrap_or_else(|| panic!("no arm {name} in {result}"))
}

/// The misbehaving arm failed for the given reason, the other was measured.
fn assert_one_failed_arm(misbehaviour: &str, name: &str, reason: &str) {
    let output = Harness::new().measure(misbehaviour);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(4), "{misbehaviour}: {stderr}");
    let result: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let failed = arm_of(&result, name);
    assert_eq!(failed["status"], "failed", "{misbehaviour}: {failed}");
    let found = failed["reason"].as_str().expect("a reason");
    assert!(found.contains(reason), "{misbehaviour}: {found}");
    assert!(
        failed["operation_ns"].is_null(),
        "no figure for a failed arm"
    );
    let other = if name.starts_with("write") {
        "write-files"
    } else {
        "files"
    };
    assert_eq!(
        arm_of(&result, other)["status"],
        "measured",
        "{misbehaviour}"
    );
}

#[test]
fn honest_workers_are_measured() {
    let output = Harness::new().measure("");
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    let result: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    for name in ["files", "packfile", "write-files", "write-packfile"] {
        let arm = arm_of(&result, name);
        assert_eq!(arm["status"], "measured", "{arm}");
        assert!(arm["operation_ns"].as_f64().expect("a figure") > 0.0);
    }
}

#[test]
fn a_worker_that_hangs_is_killed_and_given_up_after_two_rounds() {
    let start = Instant::now();
    assert_one_failed_arm("hang", "packfile", "did not answer within 2 s");
    // Two arms, two rounds, two seconds each: not one timeout a slice.
    assert!(start.elapsed().as_secs() < 30, "{:?}", start.elapsed());
}

#[test]
fn a_worker_that_crashes_fails_alone_and_its_last_words_are_kept() {
    assert_one_failed_arm("crash", "packfile", "crashing as told");
}

#[test]
fn a_worker_that_ends_without_a_word_fails_alone() {
    assert_one_failed_arm("silence", "packfile", "the worker ended");
}

#[test]
fn a_worker_that_prints_rubbish_fails_alone() {
    assert_one_failed_arm("rubbish", "packfile", "rubbish");
}

#[test]
fn a_worker_that_read_something_else_is_found_out() {
    assert_one_failed_arm("wrong-sum", "packfile", "wrong content");
}

#[test]
fn a_worker_that_skips_its_lead_in_is_found_out() {
    assert_one_failed_arm("half-lead-in", "packfile", "lead-in");
}

#[test]
fn a_worker_with_a_wrong_digest_is_found_out() {
    assert_one_failed_arm("wrong-digest", "packfile", "verification");
    assert_one_failed_arm("wrong-digest", "write-packfile", "verification");
}

#[test]
fn a_worker_that_writes_less_is_found_out() {
    assert_one_failed_arm("fewer-writes", "write-packfile", "whole batch");
}

#[test]
fn a_worker_that_times_nothing_is_found_out() {
    assert_one_failed_arm("no-time", "packfile", "timed nothing");
}

#[test]
fn a_worker_that_reads_other_keys_or_too_many_is_found_out() {
    assert_one_failed_arm("same-keys", "packfile", "other keys");
    assert_one_failed_arm("endless", "packfile", "operations");
}

#[test]
fn a_worker_whose_clock_lies_is_found_out() {
    assert_one_failed_arm("too-fast", "packfile", "time");
    assert_one_failed_arm("too-slow", "packfile", "time");
}

#[test]
fn an_arm_without_its_library_is_skipped_alone_though_it_shares_a_store() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let group = SUITE.find("[[group]]").expect("a group");
    let arm = |name: &str, settings: &str| {
        format!(
            "[[group.arm]]\nname = \"{name}\"\nlabel = \"{name}\"\nengine = \"sqlite\"\n\
             settings = {{ {settings} }}\n"
        )
    };
    let suite = format!(
        "{}[[group]]\nname = \"read\"\ndataset = \"few\"\ncache = \"warm\"\n\
         workload = {{ kind = \"read\", order = \"random\" }}\n\
         durability = \"process-crash\"\nbaseline = \"plain\"\nrounds = 2\nslices = 2\n\
         slice_ms = 1\n{}{}",
        &SUITE[..group],
        arm("plain", ""),
        arm("missing", "library = \"/nonexistent/libsqlite3.so\""),
    );
    std::fs::write(place.path().join("suite.toml"), suite).expect("suite written");
    let words = ["measure", "suite.toml", "--json", "--quiet"];
    let output = program::run(place.path(), &words);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(
        output.status.code(),
        Some(0),
        "skipped is not failed: {stderr}"
    );
    let result: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(arm_of(&result, "plain")["status"], "measured");
    assert!(arm_of(&result, "plain")["footprint"]["allocated_bytes"].as_u64() > Some(0));
    let missing = arm_of(&result, "missing");
    assert_eq!(missing["status"], "skipped");
    assert!(
        missing["reason"]
            .as_str()
            .expect("a reason")
            .contains("nonexistent")
    );
}

#[test]
fn nothing_is_left_running_and_stores_are_used_again() {
    let harness = Harness::new();
    harness.measure("hang");
    let stores = || {
        let mut found = Vec::new();
        let directory = harness.path().join(".sqlitmus/stores");
        for entry in std::fs::read_dir(directory).expect("stores").flatten() {
            if entry.path().is_dir() {
                for store in std::fs::read_dir(entry.path()).expect("store").flatten() {
                    let metadata = store.metadata().expect("metadata");
                    found.push((store.path(), metadata.created().ok()));
                }
            }
        }
        found.sort();
        found
    };
    let of_readers = |stores: Vec<(PathBuf, _)>| -> Vec<(PathBuf, _)> {
        // Stores that are one file are written anew by every run.
        let is_reader = |path: &Path| path.is_dir() && !path.to_string_lossy().contains("write");
        stores
            .into_iter()
            .filter(|(path, _)| is_reader(path))
            .collect()
    };
    let before = of_readers(stores());
    assert!(!before.is_empty());
    harness.measure("");
    assert_eq!(of_readers(stores()), before);
}
