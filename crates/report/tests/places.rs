//! Runs from several places of one machine: the machine is said once, places tell the runs apart, and rates
//! stand side by side, in every format that sets runs side by side; each rate follows from count and seconds.

mod fixture;

use serde_json::Value;

use sqlitmus_core::analysis::{Analysis, analyse};
use sqlitmus_core::case::Workload;
use sqlitmus_core::environment::fact;
use sqlitmus_core::run::Run;
use sqlitmus_core::suite::PublishedRate;
use sqlitmus_report::{
    Analysed, Look, html_side_by_side, json, json_of_several, markdown, markdown_side_by_side,
    terminal_side_by_side,
};

const COLUMNS: usize = 120;

/// A run in which the first group is about jobs, in a place.
fn run(filesystem: &str, description: &str) -> Run {
    let mut run = fixture::complete();
    for arm in &mut run.plan.groups[0].arms {
        arm.case.workload = Workload::JobQueue {
            operations: 10,
            threads: 1,
            limit_ms: 0,
        };
    }
    let arm = &mut run.plan.groups[0].arms[0];
    arm.published_rate = Some(published(13_400, "RAM disk"));
    arm.further_published_rates = vec![published(86, "SSD")];
    run.environment.retain(|(name, _)| {
        ![
            fact::FILESYSTEM,
            fact::PLACE_DESCRIPTION,
            fact::MOUNT_OPTIONS,
        ]
        .contains(&name.as_str())
    });
    for (name, value) in [
        (fact::FILESYSTEM, filesystem),
        (fact::PLACE_DESCRIPTION, description),
        (fact::MOUNT_OPTIONS, "rw,relatime"),
    ] {
        run.environment.push((name.to_owned(), value.to_owned()));
    }
    run
}

fn published(operations: u64, machine: &str) -> PublishedRate {
    PublishedRate {
        threads: 1,
        operations,
        elapsed_ms: 1000,
        cpu_percent: None,
        machine: machine.to_owned(),
    }
}

fn with_several<R>(look: impl FnOnce(&[Analysed<'_>]) -> R) -> R {
    let runs = [
        run("ext4", "ext4 on /dev/vda (virtual disk)"),
        run("btrfs", "btrfs:nocow on a loop device"),
    ];
    let analyses: Vec<Analysis> = runs.iter().map(analyse).collect();
    let pairs = runs.iter().zip(&analyses);
    let analysed: Vec<Analysed<'_>> = pairs
        .map(|(run, analysis)| Analysed { run, analysis })
        .collect();
    look(&analysed)
}

#[test]
fn the_machine_is_said_once_and_places_tell_runs_apart() {
    let look = Look {
        columns: COLUMNS,
        color: false,
    };
    let text = with_several(|runs| terminal_side_by_side(runs, &look));
    assert!(
        text.contains("\n[1] ext4 on /dev/vda (virtual disk)\n"),
        "{text}"
    );
    assert!(
        text.contains("\n[2] btrfs:nocow on a loop device\n"),
        "{text}"
    );
    assert!(text.contains("(rw, relatime)"), "{text}");
    assert!(text.contains("jobs of 13 writes a second"), "{text}");
    assert_eq!(text.matches("13,400/s (RAM disk)").count(), 1, "{text}");
    assert_eq!(text.matches("86/s (SSD)").count(), 1, "{text}");
}

#[test]
fn a_device_that_all_places_share_is_not_in_their_names() {
    let runs = [
        run("ext4", "ext4 on a loop device on a virtual disk"),
        run("xfs", "xfs on a loop device on a virtual disk"),
        run("tmpfs", "tmpfs (in memory)"),
    ];
    let analyses: Vec<Analysis> = runs.iter().map(analyse).collect();
    let pairs = runs.iter().zip(&analyses);
    let analysed: Vec<Analysed<'_>> = pairs
        .map(|(run, analysis)| Analysed { run, analysis })
        .collect();
    let look = Look {
        columns: COLUMNS,
        color: false,
    };
    let text = terminal_side_by_side(&analysed, &look);
    for name in ["\n[1] ext4\n", "\n[2] xfs\n", "\n[3] tmpfs (in memory)\n"] {
        assert!(text.contains(name), "{text}");
    }
}

#[test]
fn pages_and_markdown_have_places_and_rates() {
    let page = with_several(html_side_by_side);
    for words in [
        "The places",
        "btrfs:nocow on a loop device",
        "id=\"heading-rates-1\"",
        "SSD",
    ] {
        assert!(page.contains(words), "{words}");
    }
    let text = with_several(markdown_side_by_side);
    for words in ["### The places", "| btrfs |", "/s |", "SSD"] {
        assert!(text.contains(words), "{words}: {text}");
    }
}

#[test]
fn every_rate_follows_from_the_count_and_the_seconds_beside_it() {
    let text = with_several(json_of_several);
    let report: Value = serde_json::from_str(&text).expect("JSON");
    let mut rows = 0;
    for run in report["runs"].as_array().expect("runs") {
        for group in run["rates"].as_array().expect("rates") {
            for row in group["rows"].as_array().expect("rows") {
                if row["reason"].is_string() {
                    assert!(row["count"].is_null());
                    continue;
                }
                let number = |name: &str| row[name].as_f64().expect("a number");
                let rate = number("count") / number("seconds");
                assert!((rate / number("per_second") - 1.0).abs() < 1e-5, "{row}");
                rows += 1;
            }
        }
        let first = &run["rates"][0]["rows"][0]["published"];
        assert_eq!(first[0]["per_second"], 13_400.0);
        assert_eq!(first[1]["machine"], "SSD");
    }
    assert!(rows > 2);
    // A run of blobs has none.
    let blobs = fixture::complete();
    let report: Value = serde_json::from_str(&json(&blobs, &analyse(&blobs))).expect("JSON");
    assert_eq!(report["rates"], serde_json::json!([]));
}

#[test]
fn one_run_has_its_rates_in_markdown_too() {
    let run = run("ext4", "ext4");
    let text = markdown(&run, &analyse(&run));
    assert!(
        text.contains("| Arm | count | seconds | per second |"),
        "{text}"
    );
}
