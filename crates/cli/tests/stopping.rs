//! When `measure` stops: by rounds, by the width of intervals, by a budget of time. What is asserted
//! follows from the rules, not from the speed of the machine.

mod program;

use std::process::Output;

use serde_json::Value;

const SUITE: &str = r#"
name = "stopping"
about = "for tests"
question = "When does it stop?"

[[dataset]]
name = "few"
count = 20
size = { fixed = 100 }

[[group]]
name = "read"
dataset = "few"
workload = { kind = "read", order = "random" }
cache = "warm"
durability = "process-crash"
baseline = "one"
rounds = 3
slices = 2
slice_ms = 1

[[group.arm]]
name = "one"
label = "packed file"
engine = "packfile"

[[group.arm]]
name = "again"
label = "packed file"
engine = "packfile"

[[chart]]
title = "Both"
arms = ["again"]
versus = [{ arm = "one", label = "one" }]
"#;

fn sqlitmus(place: &tempfile::TempDir, words: &[&str]) -> Output {
    std::fs::write(place.path().join("suite.toml"), SUITE).expect("suite written");
    program::run(place.path(), words)
}

fn place() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

/// What a measurement with these options prints.
fn measured(words: &[&str]) -> Value {
    let place = place();
    let words = [&["measure", "suite.toml", "--json", "--quiet"], words].concat();
    let output = sqlitmus(&place, &words);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn rounds(result: &Value) -> (u64, u64) {
    let group = &result["plan"]["groups"][0];
    let number = |name: &str| group[name].as_u64().expect("a number");
    (number("rounds_planned"), number("rounds_measured"))
}

fn verdict(result: &Value) -> String {
    let comparison = &result["charts"][0]["rows"][0]["comparisons"][0];
    comparison["verdict"]
        .as_str()
        .expect("a verdict")
        .to_owned()
}

#[test]
fn without_a_wish_the_suite_has_its_rounds_and_few_give_no_verdict() {
    let result = measured(&[]);
    assert_eq!(rounds(&result), (3, 3));
    assert_eq!(verdict(&result), "not-sure-yet");
    let warnings = result["warnings"].to_string();
    assert!(warnings.contains("fewer than 8 rounds"), "{warnings}");
    assert_eq!(result["plan"]["threshold"], 0.03);
    assert!(result["plan"]["stopping"]["precision"].is_null());
}

#[test]
fn a_precision_takes_eight_rounds_at_the_least() {
    // How many more depends on the machine.
    let result = measured(&["--precision", "100%", "--rounds", "30", "--threshold", "2%"]);
    let (planned, measured) = rounds(&result);
    assert_eq!(planned, 8);
    assert!((8..=30).contains(&measured), "{measured}");
    assert_eq!(result["plan"]["threshold"], 0.02);
    assert_eq!(result["plan"]["stopping"]["precision"], 1.0);
}

#[test]
fn a_precision_that_is_never_reached_ends_with_the_rounds() {
    let result = measured(&["--precision", "0.01%", "--rounds", "11"]);
    assert_eq!(rounds(&result).1, 11);
}

#[test]
fn a_budget_that_is_over_before_it_begins_measures_nothing_and_says_so() {
    let place = place();
    let output = sqlitmus(
        &place,
        &["measure", "suite.toml", "--json", "--budget", "1ms"],
    );
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    assert!(
        stderr.contains("the budget ended after 0 rounds"),
        "{stderr}"
    );
    let result: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(result["arms"][0]["status"], "not-reached");
}

#[test]
fn a_budget_is_spent_on_rounds() {
    let result = measured(&["--budget", "2s", "--rounds", "9"]);
    let (planned, measured) = rounds(&result);
    assert_eq!(planned, 8);
    assert!((1..=9).contains(&measured), "{measured}");
    assert_eq!(result["plan"]["stopping"]["budget_ns"], 2_000_000_000u64);
}

#[test]
fn a_run_is_judged_again_against_another_threshold() {
    let place = place();
    let words = ["measure", "suite.toml", "--quiet", "--output", "it.run"];
    assert_eq!(sqlitmus(&place, &words).status.code(), Some(0));
    let words = ["report", "it.run", "--format", "json", "--threshold", "50%"];
    let output = sqlitmus(&place, &words);
    let result: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(result["plan"]["threshold"], 0.5);
}

#[test]
fn wishes_that_cannot_be_are_refused() {
    for (words, said) in [
        (["--precision", "0"], "0.01%"),
        (["--precision", "two"], "not a share"),
        (["--threshold", "200%"], "a share lies between"),
        (["--budget", "60"], "a time is given as"),
        (["--budget", "0s"], "more than nothing"),
        (["--plant-slowdown", "nobody=3%"], "no arm `nobody`"),
    ] {
        let place = place();
        let output = sqlitmus(&place, &[&["measure", "suite.toml"], &words[..]].concat());
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{words:?}: {stderr}");
        assert!(stderr.contains(said), "{words:?}: {stderr}");
        assert!(!place.path().join(".sqlitmus").exists(), "{words:?}");
    }
}
