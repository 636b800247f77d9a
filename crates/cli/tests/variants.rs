//! Libraries and workers that the command line names: they are measured beside what is built in, and
//! what is none of the sort is one clear error or one arm with its reason, never a run that ends.

mod program;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use program::{PROGRAM, fixture_worker, stderr};

const SUITE: &str = r#"
name = "variants"
about = "for tests"
question = "Which variants are there?"

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
name = "sqlite"
label = "SQLite"
engine = "sqlite"

[[group.arm]]
name = "unbuilt"
label = "SQLite built by nobody"
engine = "sqlite"
settings = { library = "@nobody-builds-this" }

[[group]]
name = "write"
dataset = "few"
workload = { kind = "overwrite", order = "random", operations = 10 }
cache = "warm"
durability = "process-crash"
baseline = "write"
rounds = 2
slices = 2

[[group.arm]]
name = "write"
label = "SQLite writes"
engine = "sqlite"

[[chart]]
title = "Read"
arms = ["files", "sqlite", "unbuilt"]
"#;

fn measure(words: &[&str], misbehaviour: &str) -> Output {
    let place = tempfile::tempdir().expect("a temporary directory");
    std::fs::write(place.path().join("suite.toml"), SUITE).expect("suite written");
    Command::new(PROGRAM)
        .args(["measure", "suite.toml", "--json", "--quiet"])
        .args(["--worker-timeout", "2"])
        .args(words)
        .current_dir(place.path())
        .env("FIXTURE_ENGINE", "none")
        .env("FIXTURE_MISBEHAVIOUR", misbehaviour)
        .output()
        .expect("sqlitmus runs")
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", stderr(output)))
}

fn arm<'a>(result: &'a Value, name: &str) -> &'a Value {
    let arms = result["arms"].as_array().expect("arms");
    let found = arms.iter().find(|arm| arm["name"] == name);
    found.unwrap_or_else(|| panic!("no arm {name} in {result}"))
}

/// A shared library that is SQLite, if this machine has one apart from ours.
fn system_library() -> Option<PathBuf> {
    let folders = [
        "/usr/lib/x86_64-linux-gnu",
        "/usr/lib/aarch64-linux-gnu",
        "/usr/lib64",
        "/usr/lib",
    ];
    let paths = folders.map(|folder| Path::new(folder).join("libsqlite3.so.0"));
    let found = paths.into_iter().find(|path| path.exists());
    if found.is_none() {
        use std::io::Write;
        writeln!(
            std::io::stderr(),
            "skipped: no libsqlite3.so.0 on this machine"
        )
        .expect("stderr");
    }
    found
}

#[test]
fn another_worker_measures_a_copy_of_every_baseline() {
    let word = format!("again={PROGRAM}");
    let output = measure(&["--worker", &word], "");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let result = json(&output);
    for name in ["files.again", "write.again"] {
        assert_eq!(arm(&result, name)["status"], "measured", "{name}");
    }
    let environment = result["environment"].as_array().expect("facts");
    let fact = environment
        .iter()
        .find(|fact| fact["name"] == "worker.again");
    let value = fact.and_then(|fact| fact["value"].as_str());
    assert!(value.is_some_and(|value| value.contains(env!("CARGO_PKG_VERSION"))));
}

#[test]
fn a_worker_can_be_given_an_arm_of_the_suite() {
    let word = format!("sqlite={}", fixture_worker().display());
    let output = measure(&["--worker", &word], "introduce-rubbish");
    assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
    let result = json(&output);
    assert_eq!(arm(&result, "sqlite")["status"], "failed");
    assert_eq!(arm(&result, "files")["status"], "measured");
    assert_eq!(arm(&result, "write")["status"], "measured");
}

#[test]
fn what_is_no_worker_of_this_version_is_failed_arms_and_the_run_goes_on() {
    let fixture = fixture_worker().display().to_string();
    for (path, misbehaviour, reason) in [
        (
            "/bin/true",
            "",
            "does not answer as a worker of sqlitmus does: the worker ended",
        ),
        (&fixture, "introduce-rubbish", "answered rubbish: Hello!"),
        (&fixture, "introduce-hang", "did not answer within 2 s"),
        (&fixture, "introduce-older", "a worker of an older sqlitmus"),
        (
            &fixture,
            "introduce-other-version",
            "is sqlitmus 99.0.0, whose workers speak version",
        ),
    ] {
        let word = format!("other={path}");
        let output = measure(&["--worker", &word, "--group", "read"], misbehaviour);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(4), "{misbehaviour}: {said}");
        assert!(said.contains(reason), "{misbehaviour}: {said}");
        let result = json(&output);
        let failed = arm(&result, "files.other");
        assert_eq!(failed["status"], "failed", "{failed}");
        let found = failed["reason"].as_str().expect("a reason");
        assert!(found.contains(reason), "{misbehaviour}: {found}");
        assert_eq!(arm(&result, "files")["status"], "measured");
    }
}

#[test]
fn a_library_that_nobody_has_built_is_a_skipped_arm_with_a_hint() {
    let output = measure(&["--group", "read"], "");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let result = json(&output);
    let skipped = arm(&result, "unbuilt");
    assert_eq!(skipped["status"], "skipped");
    let reason = skipped["reason"].as_str().expect("a reason");
    assert!(reason.contains("cargo xtask workers"), "{reason}");
    assert!(
        reason.contains("--sqlite-library nobody-builds-this=PATH"),
        "{reason}"
    );
    assert_eq!(arm(&result, "sqlite")["status"], "measured");
}

#[test]
fn a_library_by_name_is_what_the_suite_calls_so_and_says_its_options() {
    let Some(library) = system_library() else {
        return;
    };
    let word = format!("nobody-builds-this={}", library.display());
    let output = measure(&["--sqlite-library", &word], "");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let result = json(&output);
    let measured = arm(&result, "unbuilt");
    assert_eq!(measured["status"], "measured", "{measured}");
    let options = measured["read_back"]["compile_options"].as_str();
    assert!(options.is_some_and(|options| options.contains("THREADSAFE")));
    assert_eq!(
        measured["case"]["settings"]["library"],
        "@nobody-builds-this"
    );
    assert_eq!(
        result["arms"].as_array().expect("arms").len(),
        6,
        "none was added"
    );
}

#[test]
fn a_library_without_a_name_is_measured_beside_every_groups_sqlite() {
    let Some(library) = system_library() else {
        return;
    };
    let path = library.display().to_string();
    let output = measure(&["--sqlite-library", &path], "");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let result = json(&output);
    for name in ["sqlite.given", "write.given"] {
        let added = arm(&result, name);
        assert_eq!(added["status"], "measured", "{added}");
    }
    let rows = result["charts"][0]["rows"].as_array().expect("rows");
    assert!(
        rows.iter().any(|row| row["arm"] == "sqlite.given"),
        "it is in the chart"
    );
}

#[test]
fn what_is_not_sqlite_is_refused_before_anything_is_measured() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let text = folder.path().join("libsqlite3.so");
    std::fs::write(&text, "not a library").expect("written");
    let text = text.display().to_string();
    let two = format!("two={PROGRAM}");
    for (words, reason) in [
        (&["--sqlite-library", &text][..], "is not a shared library"),
        (
            &["--sqlite-library", "/nowhere.so"],
            "cannot use /nowhere.so",
        ),
        (
            &["--sqlite-library", "a b=/nowhere.so"],
            "nothing can be called `a b`",
        ),
        (&["--sqlite-library", "a="], "has no path"),
        (&["--sqlite-library", "/"], "it is not a file"),
        (&["--worker", "/bin/true"], "has no name"),
        (&["--worker", "a=/nowhere"], "cannot use /nowhere"),
        (
            &["--worker", &two, "--worker", &two],
            "two workers are called `two`",
        ),
    ] {
        let output = measure(words, "");
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {said}");
        assert!(said.contains(reason), "{words:?}: {said}");
        assert!(said.contains("hint: "), "{words:?}: {said}");
        let errors = said.lines().filter(|line| line.starts_with("error"));
        assert_eq!(errors.count(), 1, "{said}");
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn a_shared_library_of_something_else_is_not_sqlite() {
    let folders = [
        "/lib/x86_64-linux-gnu",
        "/lib/aarch64-linux-gnu",
        "/lib64",
        "/lib",
    ];
    let paths = folders.map(|folder| Path::new(folder).join("libm.so.6"));
    let Some(library) = paths.into_iter().find(|path| path.exists()) else {
        return;
    };
    let output = measure(&["--sqlite-library", &library.display().to_string()], "");
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains("is a shared library, but not SQLite"),
        "{said}"
    );
}
