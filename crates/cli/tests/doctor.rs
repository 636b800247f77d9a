//! `sqlitmus doctor` from the outside. What it finds depends on the machine, so the tests ask that what it
//! says fits together, and that it leaves nothing behind.

mod program;

use std::path::Path;
use std::process::Output;

use serde_json::Value;

fn doctor(place: &Path, words: &[&str]) -> Output {
    program::run(place, &[&["doctor"], words].concat())
}

fn examination(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).expect("standard output is JSON")
}

fn finding<'a>(examination: &'a Value, check: &str) -> &'a Value {
    let findings = examination["findings"].as_array().expect("findings");
    let found = findings.iter().find(|finding| finding["check"] == check);
    found.unwrap_or_else(|| panic!("no check {check}"))
}

/// The exit code must be that of the worst level.
fn assert_code_fits(output: &Output) {
    let level = examination(output)["level"].clone();
    let expected = i32::from(level == "problem");
    assert_eq!(output.status.code(), Some(expected), "{level}");
}

#[test]
fn a_quick_examination_is_consistent_and_leaves_nothing() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let output = doctor(place.path(), &["--quick", "--json", "--quiet"]);
    assert!(
        output.stderr.is_empty(),
        "{:?}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert_code_fits(&output);
    let examination = examination(&output);
    assert_eq!(examination["format"], 1);
    assert_eq!(examination["quick"], true);
    let flush = finding(&examination, "flush");
    assert!(
        flush["reading"]["fsync"]["count"].as_u64() >= Some(20),
        "{flush}"
    );
    let versions = &finding(&examination, "SQLite")["reading"]["libraries"];
    assert_eq!(versions[0]["whose"], "bundled");
    assert!(finding(&examination, "clock")["reading"]["cost_ns"].as_f64() > Some(0.0));
    for finding in examination["findings"].as_array().expect("findings") {
        assert!(
            finding["finding"]
                .as_str()
                .is_some_and(|text| !text.is_empty()),
            "{finding}"
        );
        assert!(
            finding["why"].as_str().is_some_and(|text| !text.is_empty()),
            "{finding}"
        );
    }
    let stores = place.path().join(".sqlitmus/stores");
    assert!(!stores.join("doctor").exists());
    let left = std::fs::read_dir(&stores).expect("stores").count();
    // The tag that keeps backup programs away.
    assert_eq!(left, 1);
}

#[test]
fn the_noise_floor_is_measured_by_real_workers() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let output = doctor(place.path(), &["--json", "--rounds", "3", "--idle", "0"]);
    assert_code_fits(&output);
    let examination = examination(&output);
    let reading = &finding(&examination, "noise floor")["reading"];
    assert_eq!(
        (&reading["rounds"], &reading["slices"]),
        (&3.into(), &50.into()),
        "{reading}"
    );
    assert!(reading["operation_ns"].as_f64() > Some(0.0), "{reading}");
    assert!(reading["noise_floor"].as_f64() > Some(0.0), "{reading}");
    let idle = &finding(&examination, "page cache")["reading"];
    assert!(!idle["idle"].is_null() || idle["untold"] != "", "{idle}");
    assert!(!place.path().join(".sqlitmus/stores/doctor").exists());
}

#[test]
fn what_a_killed_examination_left_is_removed_and_what_is_foreign_stays() {
    let place = tempfile::tempdir().expect("a temporary directory");
    assert!(doctor(place.path(), &["--quick"]).status.code().is_some());
    let foreign = place.path().join(".sqlitmus/stores/doctor");
    std::fs::create_dir(&foreign).expect("a folder that is not sqlitmus's");
    std::fs::write(foreign.join("precious"), "x").expect("write");
    let refused = doctor(place.path(), &["--quick"]);
    assert!(refused.stdout.is_empty());
    assert_eq!(
        refused.status.code(),
        Some(2),
        "{}",
        String::from_utf8_lossy(&refused.stderr)
    );
    assert!(foreign.join("precious").exists());
}

#[test]
fn a_place_that_is_none_is_refused_with_a_hint() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let missing = doctor(place.path(), &["nowhere"]);
    assert_eq!(missing.status.code(), Some(2));
    assert!(missing.stdout.is_empty());
    let said = String::from_utf8_lossy(&missing.stderr).into_owned();
    assert!(
        said.contains("does not exist") && said.contains("hint: "),
        "{said}"
    );
}
