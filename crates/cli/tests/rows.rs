//! Suites about rows and jobs from the outside: small ones are measured, and everything that their
//! workloads claim is held against what follows from the rows.

mod program;

use std::path::Path;
use std::process::Command;

/// Every workload once or more, as small as can be.
const SUITE: &str = include_str!("rows/every-workload.toml");

fn measure(place: &Path, more: &[&str]) -> (i32, String, String) {
    let suite = place.join("suite.toml");
    std::fs::write(&suite, SUITE).expect("writes");
    let output = program::run(place, &[&["measure", "./suite.toml"], more].concat());
    let code = program::code(&output).expect("was not killed");
    // Where lines end is a matter of the layout.
    let report = program::stdout(&output);
    let report = report.split_whitespace().collect::<Vec<_>>().join(" ");
    (code, report, program::stderr(&output))
}

#[test]
fn every_workload_is_measured_and_verified() {
    let place = tempfile::tempdir().expect("scratch");
    let (code, report, progress) = measure(place.path(), &[]);
    // Whatever a thread read, wrote, counted or left behind wrongly would be a failed arm.
    assert_eq!(code, 0, "{report}\n{progress}");
    for part in [
        "per second",
        "Of it, waiting for locks",
        "A shared cache is not recommended",
        "two, 2 threads: queries",
        "two, 2 threads: updates",
        "Published for private, 1 thread: 1,000 in 2 s = 500/s at 80% CPU",
        "ended by time. 20,000 would take",
        "what a crash would have lost was up to",
        "60 rows with two texts of 40 B",
    ] {
        assert!(report.contains(part), "no `{part}` in\n{report}");
    }
    // The copies that threads had of their own are gone.
    let copies = Command::new("find")
        .args([
            place.path().as_os_str(),
            "-name".as_ref(),
            "*-copy*".as_ref(),
        ])
        .output()
        .expect("runs");
    assert!(copies.stdout.is_empty(), "{copies:?}");
}

#[test]
fn parameters_change_a_suite_about_rows() {
    let place = tempfile::tempdir().expect("scratch");
    let more = [
        "--group",
        "query",
        "--rounds",
        "1",
        "--rows",
        "70",
        "--threads",
        "3",
        "--set",
        "text_bytes=50",
        "--set",
        "hit_percent=100",
    ];
    let (code, report, progress) = measure(place.path(), &more);
    assert_eq!(code, 0, "{report}\n{progress}");
    assert!(
        report.contains("70 rows with two texts of 50 B"),
        "{report}"
    );
    // The baseline stays beside the numbers asked for.
    assert!(report.contains("private, 1 thread "), "{report}");
    assert!(report.contains("private, 3 threads"), "{report}");
    assert!(!report.contains("private, 2 threads"), "{report}");
}

#[test]
fn parameters_that_cannot_be_are_bad_input() {
    let place = tempfile::tempdir().expect("scratch");
    for (more, hint) in [
        (["--rows", "none"], "from 1"),
        (["--threads", "0"], "1,2,4"),
        (["--set", "hit_percent"], "NAME=VALUE"),
        (["--set", "row=7"], "`rows`"),
    ] {
        let (code, _, error) = measure(place.path(), &more);
        assert_eq!(code, 2, "{error}");
        assert!(error.contains("hint:") && error.contains(hint), "{error}");
    }
    assert!(
        !place.path().join(".sqlitmus").exists(),
        "refused before anything is made"
    );
    let article = program::run(place.path(), &["measure", "article", "--rows", "5"]);
    assert_eq!(program::code(&article), Some(2), "it has no rows");
}
