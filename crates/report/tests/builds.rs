//! What every format says of the SQLites that a run has measured: each as it says of itself, the first
//! in full, the others by what differs; skipped ones with their reason.

mod fixture;

use sqlitmus_core::analysis::analyse;
use sqlitmus_core::case::{Databases, Workload};
use sqlitmus_core::run::{Outcome, Run};
use sqlitmus_report::{Look, html, json, markdown, terminal};

/// Gives an arm of the made-up run a library that says this of itself; none if nothing was said.
fn set_library(run: &mut Run, name: &str, library: &str, options: Option<&str>) {
    for group in &mut run.plan.groups {
        for arm in group.arms.iter_mut().filter(|arm| arm.name == name) {
            arm.case.settings.set("library", library);
        }
    }
    for trial in run.trials.iter_mut().filter(|trial| trial.arm == name) {
        match options {
            Some(options) => {
                let told = &mut trial.read_back;
                told.insert("compile_options".to_owned(), options.to_owned());
                told.insert("build".to_owned(), format!("cc 1.0 for {library}"));
            }
            None => {
                trial.read_back.clear();
                trial.samples.clear();
                trial.outcome = Outcome::Skipped("nobody has built it".to_owned());
            }
        }
    }
}

fn with_libraries() -> Run {
    let mut run = fixture::complete();
    set_library(
        &mut run,
        "sqlite-select",
        "bundled",
        Some("DQS=0 THREADSAFE=2"),
    );
    set_library(
        &mut run,
        "sqlite-blob",
        "@armor",
        Some("DQS=0 ENABLE_API_ARMOR"),
    );
    set_library(&mut run, "sqlite-mmap", "@same", Some("THREADSAFE=2 DQS=0"));
    set_library(&mut run, "sqlite-system", "@none", None);
    run
}

const SAID: [&str; 4] = [
    "DQS=0 THREADSAFE=2; cc 1.0 for bundled",
    "as bundled, with ENABLE_API_ARMOR, without THREADSAFE=2; cc 1.0 for @armor",
    "the same options as bundled; cc 1.0 for @same",
    "nobody has built it",
];

/// A text on one line, whatever it is wrapped and escaped into.
fn flat(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").replace('\\', "")
}

#[test]
fn terminal_page_and_markdown_say_what_each_library_says() {
    let run = with_libraries();
    let analysis = analyse(&run);
    for columns in [80, 120] {
        let look = Look {
            columns,
            color: false,
        };
        let text = terminal(&run, &analysis, &look);
        assert!(text.lines().all(|line| line.chars().count() <= columns));
        for words in SAID {
            assert!(flat(&text).contains(words), "{words}:\n{text}");
        }
    }
    for (name, text) in [
        ("html", html(&run, &analysis)),
        ("markdown", markdown(&run, &analysis).replace("&#64;", "@")),
    ] {
        for words in SAID {
            assert!(flat(&text).contains(words), "{name}: {words}");
        }
    }
    let json = json(&run, &analysis);
    assert!(json.contains(r#""compile_options": "DQS=0 ENABLE_API_ARMOR""#));
}

#[test]
fn a_run_of_built_in_libraries_alone_has_no_such_section() {
    let run = fixture::complete();
    let text = terminal(
        &run,
        &analyse(&run),
        &Look {
            columns: 80,
            color: false,
        },
    );
    assert!(!text.contains("as each says of itself"));
}

/// The arms of the made-up reading group as point queries by one and two threads.
fn threads(options: &str) -> Run {
    let mut run = fixture::complete();
    let arms = [
        ("sqlite-select", "bundled", 1, Databases::One),
        ("sqlite-blob", "@mm", 1, Databases::One),
        ("sqlite-mmap", "@mm", 2, Databases::One),
        ("files-openat", "@mm", 2, Databases::Own),
    ];
    run.plan.groups.truncate(1);
    let group = &mut run.plan.groups[0];
    let known = |name: &str| arms.iter().find(|(known, ..)| *known == name);
    group.arms.retain(|arm| known(&arm.name).is_some());
    group.baseline = "sqlite-select".to_owned();
    for arm in &mut group.arms {
        let Some((_, library, threads, databases)) = known(&arm.name) else {
            continue;
        };
        arm.case.settings = Default::default();
        arm.case.settings.set("library", library);
        arm.case.workload = Workload::PointQuery {
            range: 100,
            threads: *threads,
            databases: *databases,
        };
        // As plans name and label arms by threads.
        let number = *threads;
        arm.label = format!("{}, {number} threads", arm.label);
    }
    run.plan.charts.clear();
    run.plan.claims.clear();
    run.plan.conclusion.clear();
    run.trials.retain(|trial| known(&trial.arm).is_some());
    for trial in &mut run.trials {
        let told = &mut trial.read_back;
        told.insert("compile_options".to_owned(), options.to_owned());
        told.insert("memory_statistics_kept".to_owned(), "off".to_owned());
        // Two threads do half of what one does.
        let factor = if trial.arm == "sqlite-blob" { 1 } else { 2 };
        for sample in &mut trial.samples {
            sample.operations = 1000;
            sample.elapsed_ns = 1_000_000 * factor;
        }
        let waits = trial.samples.len() as u64 * 500;
        trial
            .resources
            .insert("voluntary_context_switches".to_owned(), waits);
    }
    run
}

#[test]
fn threads_that_wait_for_one_mutex_are_told_why() {
    let run = threads("ENABLE_MEMORY_MANAGEMENT THREADSAFE=2");
    let look = Look {
        columns: 120,
        color: false,
    };
    let text = flat(&terminal(&run, &analyse(&run), &look));
    for words in [
        "together 0.50 times what one of them does alone",
        "on databases of their own 0.50 times: it is no lock of the database",
        "with 0.50 waits a query",
        "Cause: it is compiled with SQLITE_ENABLE_MEMORY_MANAGEMENT",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert!(
        !text.contains("waiting for locks"),
        "copies tell nothing here"
    );
    let run = threads("THREADSAFE=2");
    let text = flat(&terminal(&run, &analyse(&run), &look));
    assert!(
        text.contains("Its compile options name no cause."),
        "{text}"
    );
}
