//! Several readers at once, as threads and as processes, a writer beside them, and operations that
//! are due at moments drawn beforehand: small suites are measured, and everything that the threads
//! claim is held against what was stored.

mod program;

use std::path::Path;

use serde_json::Value;

const SUITE: &str = include_str!("readers/several.toml");

fn sqlitmus(place: &Path, words: &[&str]) -> (i32, String, String) {
    let output = program::run(place, words);
    let code = program::code(&output).expect("was not killed");
    (code, program::stdout(&output), program::stderr(&output))
}

fn measure(place: &Path, suite: &str, more: &[&str]) -> (i32, String, String) {
    std::fs::write(place.join("suite.toml"), suite).expect("writes");
    let words = [&["measure", "./suite.toml"], more].concat();
    sqlitmus(place, &words)
}

#[test]
fn what_several_readers_and_a_writer_claim_is_true() {
    let place = tempfile::tempdir().expect("scratch");
    let (code, report, progress) = measure(place.path(), SUITE, &[]);
    // Whatever a thread read, wrote or left behind wrongly would be a failed arm.
    assert_eq!(code, 0, "{report}\n{progress}");
    for part in [
        "Latency under load: load",
        "WAL at half, 2 threads, 50% of capacity: reads",
        "rollback, 2 threads, given rate, at equal distances: writes",
        "Readers at once: queries",
        "Readers at once: reads",
        "queries apart, 3 processes",
    ] {
        // Long labels may be cut at the terminal's edge.
        let begins: String = part.chars().take(40).collect();
        assert!(report.contains(&begins), "no `{part}` in\n{report}");
    }
    for (format, parts) in [
        ("markdown", ["p99.9", "speed-up"]),
        ("html", ["Latencies by percentile", "ideal"]),
        ("svg", ["Latencies by percentile", "ideal"]),
    ] {
        let (code, text, error) = sqlitmus(place.path(), &["report", "latest", "--format", format]);
        assert_eq!(code, 0, "{error}");
        for part in parts {
            assert!(text.contains(part), "no `{part}` in {format}");
        }
    }
}

#[test]
fn operations_that_were_due_are_done_or_counted_as_skipped() {
    let place = tempfile::tempdir().expect("scratch");
    let words = [
        "--group", "load", "--json", "--quiet", "--output", "due.run",
    ];
    let (code, _, error) = measure(place.path(), SUITE, &words);
    assert_eq!(code, 0, "{error}");
    let run = sqlitmus_runfile::read(&place.path().join("due.run")).expect("a run file");
    let trials = run.trials.iter().filter(|trial| trial.arm == "null-1");
    let mut seen = 0;
    for trial in trials {
        let counted = |name: &str| trial.resources.get(name).copied().unwrap_or(0);
        // Two slices of 40 ms: moments at 1, 2, ... 39 ms, and at 2, 4, ... 38 ms.
        assert_eq!((counted("reads_due"), counted("writes_due")), (78, 38));
        assert_eq!(counted("reads") + counted("reads_skipped"), 78);
        assert_eq!(counted("writes") + counted("writes_skipped"), 38);
        seen += 1;
    }
    assert_eq!(seen, 2, "one trial a round");
}

#[test]
fn loads_that_cannot_be_are_bad_input() {
    let place = tempfile::tempdir().expect("scratch");
    for (from, to, hint) in [
        ("writers = 1", "writers = 2", "0 or 1"),
        ("capacity-percent = 50", "capacity-percent = 0", "1 to 1000"),
        (
            "turns = \"alone\"\nbaseline = \"wal-2\"",
            "baseline = \"wal-2\"",
            "alone",
        ),
        (
            "label = \"WAL\"",
            "label = \"WAL\"\nworkload = { readers_are = \"processes\" }",
            "use threads",
        ),
        ("pattern = \"poisson\"", "pattern = \"sometimes\"", ""),
    ] {
        let suite = SUITE.replacen(from, to, 1);
        assert_ne!(suite, SUITE, "{from}");
        let (code, _, error) = measure(place.path(), &suite, &[]);
        assert_eq!(code, 2, "{to}: {error}");
        assert!(error.contains(hint), "{to}: {error}");
    }
}

#[test]
fn explain_takes_operations_apart_and_shows_it_again() {
    let place = tempfile::tempdir().expect("scratch");
    let words = ["explain", "--scale", "smoke", "--json", "--quiet"];
    let (code, json, error) = sqlitmus(place.path(), &words);
    assert_eq!(code, 0, "{error}");
    let report: Value = serde_json::from_str(&json).expect("JSON");
    let explanations = report["explanations"].as_array().expect("explanations");
    assert!(explanations.len() >= 10, "{json}");
    for explanation in explanations {
        let number = |value: &Value| value["ns"].as_f64().unwrap_or(0.0);
        let parts = explanation["parts"].as_array().expect("parts");
        let sum: f64 = parts.iter().map(number).sum::<f64>() + number(&explanation["rest"]);
        let whole = number(&explanation["whole"]);
        assert!(whole > 0.0, "{explanation}");
        assert!((sum - whole).abs() < whole * 1e-3, "{explanation}");
    }
    assert_eq!(report["shares"].as_array().map(Vec::len), Some(3));
    let (code, text, error) = sqlitmus(place.path(), &["explain", "latest"]);
    assert_eq!(code, 0, "{error}");
    for part in ["Where the time goes: files, as kvtest does", "all of it"] {
        assert!(text.contains(part), "no `{part}` in\n{text}");
    }
    assert!(!text.contains("times as fast as"), "nothing else:\n{text}");
}

#[test]
fn a_run_that_takes_nothing_apart_is_refused() {
    let place = tempfile::tempdir().expect("scratch");
    let (code, _, error) = measure(
        place.path(),
        SUITE,
        &[
            "--group",
            "queries",
            "--rounds",
            "1",
            "--output",
            "other.run",
        ],
    );
    assert_eq!(code, 0, "{error}");
    let (code, _, error) = sqlitmus(place.path(), &["explain", "other.run"]);
    assert_eq!(code, 2);
    assert!(error.contains("takes no operation apart"), "{error}");
    assert!(error.contains("hint:"), "{error}");
    let (code, _, _) = sqlitmus(place.path(), &["explain", "other.run", "--rounds", "2"]);
    assert_eq!(code, 2, "a run that is shown is not measured");
}
