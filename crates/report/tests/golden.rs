//! Golden files: what the reports of a made-up run look like, byte by byte. After a change that is
//! meant, `UPDATE_GOLDEN=1 cargo test -p sqlitmus-report` writes them anew; look at the difference
//! before it is committed.

mod fixture;

use std::path::PathBuf;

use sqlitmus_core::analysis::analyse;
use sqlitmus_core::run::Run;
use sqlitmus_report::{Look, html, json, terminal};

/// A name and what makes the run.
type Fixture = (&'static str, fn() -> Run);

const FIXTURES: [Fixture; 3] = [
    ("complete", fixture::complete),
    ("interrupted", fixture::interrupted),
    ("hostile", fixture::hostile),
];

fn check(name: &str, rendered: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, rendered).expect("the golden file is written");
        return;
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        golden == rendered,
        "{name} differs from its golden file; UPDATE_GOLDEN=1 writes it anew:\n{rendered}"
    );
}

#[test]
fn terminal_reports() {
    for (name, run) in FIXTURES {
        let run = run();
        for columns in [80, 120] {
            let look = Look {
                columns,
                color: false,
            };
            check(
                &format!("{name}-{columns}.txt"),
                &terminal(&run, &analyse(&run), &look),
            );
        }
    }
}

#[test]
fn json_reports() {
    for (name, run) in FIXTURES {
        let run = run();
        check(&format!("{name}.json"), &json(&run, &analyse(&run)));
    }
}

#[test]
fn html_reports() {
    for (name, run) in FIXTURES {
        let run = run();
        check(&format!("{name}.html"), &html(&run, &analyse(&run)));
    }
}
