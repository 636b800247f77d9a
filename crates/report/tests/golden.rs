//! Golden files: what the reports of a made-up run look like, byte by byte. After a change that is
//! meant, `UPDATE_GOLDEN=1 cargo test -p sqlitmus-report` writes them anew; look at the difference
//! before it is committed.

mod fixture;

use std::path::PathBuf;

use sqlitmus_core::analysis::analyse;
use sqlitmus_core::run::{Outcome, Run};
use sqlitmus_core::run_comparison::{Options, compare_runs};
use sqlitmus_report::comparison::{self, Flavour};
use sqlitmus_report::{
    Analysed, Look, csv, html, html_side_by_side, json, markdown, markdown_side_by_side, svg,
    terminal, terminal_resources, terminal_side_by_side,
};

/// A name and what makes the run.
type Fixture = (&'static str, fn() -> Run);

const FIXTURES: [Fixture; 4] = [
    ("complete", fixture::complete),
    ("interrupted", fixture::interrupted),
    ("hostile", fixture::hostile),
    ("rows", fixture::rows),
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
fn resources_on_a_terminal() {
    let run = fixture::rows();
    for columns in [80, 120] {
        let look = Look {
            columns,
            color: false,
        };
        check(
            &format!("resources-{columns}.txt"),
            &terminal_resources(&run, &analyse(&run), &look),
        );
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

/// The complete run, and what became of it later: one arm slower, one faster, one that failed, one
/// that is another case now, one that is new, and another SQLite on another kernel.
fn two_runs() -> (Run, Run) {
    let (a, mut b) = (fixture::complete(), fixture::complete());
    "20270203T040506Z-fixture".clone_into(&mut b.head.id);
    "2027-02-03T04:05:06Z".clone_into(&mut b.head.started_utc);
    for trial in &mut b.trials {
        let factor = match trial.arm.as_str() {
            "sqlite-blob" => 1.3,
            "write-sqlite-wal" => 0.6,
            _ => 1.04,
        };
        for sample in &mut trial.samples {
            sample.elapsed_ns = (sample.elapsed_ns as f64 * factor) as u64;
        }
        if let Some(version) = trial.read_back.get_mut("sqlite_version") {
            "3.55.0".clone_into(version);
        }
        if let Some(options) = trial.read_back.get_mut("compile_options") {
            *options = options.replace("gcc-12.2.0", "clang-19");
        }
        if trial.arm == "memory" {
            trial.outcome = Outcome::Refuted("4 of 100 blobs are not what was written".to_owned());
        }
    }
    for arm in b.plan.groups.iter_mut().flat_map(|group| &mut group.arms) {
        match arm.name.as_str() {
            "files-tree" => arm.case.dataset.count = 100_000,
            "null" => {
                "harness".clone_into(&mut arm.name);
                arm.case.engine = "harness".to_owned();
            }
            _ => {}
        }
    }
    for (name, value) in &mut b.environment {
        if name == "kernel" {
            "Linux 7.0.1".clone_into(value);
        }
    }
    (a, b)
}

#[test]
fn comparisons() {
    let (a, b) = two_runs();
    let options = Options {
        expected: vec!["sqlite".to_owned(), "filesystem".to_owned()],
        ..Options::default()
    };
    let found = compare_runs(&a, &b, &options).expect("compared");
    for columns in [80, 120] {
        let look = Look {
            columns,
            color: false,
        };
        let text = comparison::terminal(&found, &look);
        for line in text.lines() {
            assert!(line.chars().count() <= columns, "{line}");
        }
        check(&format!("comparison-{columns}.txt"), &text);
    }
    let github = comparison::markdown(&found, Flavour::GitHub);
    check("comparison-github.md", &github);
    let plain = comparison::markdown(&found, Flavour::Plain);
    assert!(!plain.contains("<details>"));
    check("comparison.md", &plain);
    check("comparison.json", &comparison::json(&found));
    check("comparison-bencher.json", &comparison::bencher(&found));
}

#[test]
fn bencher_metric_format_is_what_its_schema_says() {
    let (a, b) = two_runs();
    let found = compare_runs(&a, &b, &Options::default()).expect("compared");
    let text = comparison::bencher(&found);
    let value: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let benchmarks = value.as_object().expect("an object of benchmarks");
    assert!(benchmarks.contains_key("fixture/default/sqlite-select"));
    for (name, measures) in benchmarks {
        assert!(name.chars().count() <= 1024, "{name}");
        for metric in measures.as_object().expect("measures").values() {
            let number = |name: &str| {
                metric
                    .get(name)
                    .map(|value| value.as_f64().expect("a number"))
            };
            let value = number("value").expect("required");
            assert!(number("lower_value").is_none_or(|lower| lower <= value));
            assert!(number("upper_value").is_none_or(|upper| upper >= value));
            let keys = metric.as_object().expect("a metric").keys();
            assert!(keys.into_iter().all(|key| key.ends_with("value")));
        }
    }
    let missing = comparison::without_figures(&found);
    assert!(
        missing.contains(&"fixture/default/memory".to_owned()),
        "{missing:?}"
    );
    assert!(missing.iter().all(|name| !benchmarks.contains_key(name)));
}

#[test]
fn hostile_runs_are_compared_without_harm() {
    let (a, mut b) = (fixture::hostile(), fixture::hostile());
    b.head.id.push('b');
    let Ok(found) = compare_runs(&a, &b, &Options::default()) else {
        panic!("the same cases");
    };
    let look = Look {
        columns: 80,
        color: false,
    };
    let acts = |letter: char| letter != '\n' && (letter.is_control() || letter == '\u{202e}');
    let github = comparison::markdown(&found, Flavour::GitHub);
    for text in [comparison::terminal(&found, &look), github.clone()] {
        assert!(!text.contains(acts) && !text.contains("NaN"), "{text}");
    }
    let tags = ["<script", "<img", "<b>", "](http"];
    assert!(
        tags.iter().all(|tag| !github.to_lowercase().contains(tag)),
        "{github}"
    );
    for text in [comparison::json(&found), comparison::bencher(&found)] {
        assert!(!text.contains(acts));
        serde_json::from_str::<serde_json::Value>(&text).expect("JSON");
    }
}

#[test]
fn markdown_reports() {
    for (name, run) in FIXTURES {
        let run = run();
        check(&format!("{name}.md"), &markdown(&run, &analyse(&run)));
    }
}

#[test]
fn csv_reports() {
    // One round is enough to see every column.
    check("interrupted.csv", &csv(&[&fixture::interrupted()]));
}

#[test]
fn svg_reports() {
    let run = fixture::interrupted();
    check("interrupted.svg", &svg(&run, &analyse(&run)));
    let run = fixture::rows();
    check("rows.svg", &svg(&run, &analyse(&run)));
}

#[test]
fn runs_side_by_side() {
    // Of one suite.
    let runs: Vec<Run> = FIXTURES[..3].iter().map(|(_, run)| run()).collect();
    let analyses: Vec<_> = runs.iter().map(analyse).collect();
    let pairs = runs.iter().zip(&analyses);
    let analysed: Vec<Analysed<'_>> = pairs
        .map(|(run, analysis)| Analysed { run, analysis })
        .collect();
    let page = html_side_by_side(&analysed);
    // Its parts are those of the other pages; what is its own are the tables.
    let tables = page
        .split("id=\"heading-claims\"")
        .nth(1)
        .and_then(|rest| rest.split("</section>").next());
    check("several-claims.html", tables.expect("a table of claims"));
    check("several.md", &markdown_side_by_side(&analysed));
    for columns in [80, 120] {
        let look = Look {
            columns,
            color: false,
        };
        check(
            &format!("several-{columns}.txt"),
            &terminal_side_by_side(&analysed, &look),
        );
    }
}
