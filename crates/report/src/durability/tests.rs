//! Tests of the truth table's forms: each says what was lost, how sure that is, who broke a promise
//! and that a liar was not caught; hostile texts stay text.

use std::collections::BTreeMap;

use sqlitmus_core::case::Durability;
use sqlitmus_core::durability::{
    Batches, Configuration, Cut, CutKind, DurabilityPlan, DurabilityRun, Ending, Finding, Speed,
    StoreFinding, judge,
};
use sqlitmus_core::run::{RunHead, RunState};
use sqlitmus_core::settings::Settings;

use super::{html, json, markdown, terminal};
use crate::terminal::Look;

const LOOK: Look = Look {
    columns: 160,
    color: false,
};

fn configuration(name: &str, claimed: Durability, is_control: bool) -> Configuration {
    Configuration {
        name: name.to_owned(),
        engine: "sqlite".to_owned(),
        settings: Settings::default(),
        claimed,
        intact_after: claimed,
        transactional: true,
        is_control,
    }
}

fn cut(configuration: &str, kind: CutKind, number: u32, lost_commits: u64) -> Cut {
    Cut {
        filesystem: "xfs".to_owned(),
        configuration: configuration.to_owned(),
        kind,
        number,
        held_ns: 4_000_000_000,
        pause_ns: 1,
        lost_age_ns: (lost_commits > 0).then_some(12_000_000_000),
        mount_ns: Some(5),
        ending: Ending::Found {
            finding: Finding {
                acknowledged_commits: 100,
                lost_commits,
                first_lost_commit: (lost_commits > 0).then_some(9),
                ..Finding::default()
            },
            store: StoreFinding::default(),
        },
    }
}

fn run(control_loses: u64) -> DurabilityRun {
    let power = Durability::PowerLoss;
    let mut cuts = Vec::new();
    for number in 0..20 {
        for (name, lost) in [
            ("safe", 0),
            ("<b>|fast", 7),
            ("broken", 1),
            ("liar", control_loses),
        ] {
            cuts.push(cut(name, CutKind::Shutdown, number, lost));
            cuts.push(cut(
                name,
                CutKind::ProcessCrash,
                number,
                if name == "liar" { lost } else { 0 },
            ));
        }
    }
    let speed = |name: &str, commits| Speed {
        filesystem: "xfs".to_owned(),
        configuration: name.to_owned(),
        commits,
        elapsed_ns: 1_000_000_000,
    };
    DurabilityRun {
        head: RunHead {
            id: "run".to_owned(),
            sqlitmus_version: "0.1.0".to_owned(),
            started_utc: "2026-11-20T12:00:00Z".to_owned(),
            finished_utc: None,
            state: RunState::Complete,
            command_line: "sqlitmus durability".to_owned(),
            place: "/place".to_owned(),
        },
        plan: DurabilityPlan {
            filesystems: vec!["xfs".to_owned()],
            configurations: vec![
                configuration("safe", power, false),
                configuration("<b>|fast", Durability::ProcessCrash, false),
                configuration("broken", power, false),
                configuration("liar", power, true),
            ],
            cuts: 20,
            hold_ns: (1_000_000_000, 40_000_000_000),
            crash_hold_ns: 1,
            batches: Batches {
                keys: 24,
                blobs: 3,
                seed: 1,
            },
            settle_every: 50,
            early_writeback: false,
        },
        environment: vec![("kernel".to_owned(), "Linux \u{1b}[31mred".to_owned())],
        mount_options: BTreeMap::from([("xfs".to_owned(), "rw,relatime".to_owned())]),
        read_back: BTreeMap::new(),
        cuts,
        speeds: vec![speed("safe", 200), speed("<b>|fast", 1000)],
    }
}

#[test]
fn every_form_says_what_was_lost_and_how_sure_that_is() {
    let run = run(8);
    let table = judge(&run);
    let forms = [
        terminal(&run, &table, &LOOK),
        markdown(&run, &table).replace('\\', ""),
        html(&run, &table).replace("&lt;", "<").replace("&gt;", ">"),
    ];
    for form in &forms {
        for expected in [
            "0 of 20 (<14%)",
            "20 of 20 (>86%)",
            "7 commits, 12 s",
            "power-loss, 5.00 times slower: safe",
            "FAILS ITS CLAIM: a loss of power undid acknowledged commits",
            "1 row does not keep what is claimed.",
            "it lies on purpose, and was caught",
        ] {
            assert!(form.contains(expected), "{expected}: {form}");
        }
    }
    let value: serde_json::Value = serde_json::from_str(&json(&run, &table)).expect("json");
    assert_eq!(value["rows"][2]["claim"], "lost");
    assert_eq!(value["rows"][0]["power_gone"]["cuts"], 20);
    assert_eq!(value["trustworthy"], true);
}

#[test]
fn a_liar_that_gets_away_is_not_to_be_overlooked() {
    let run = run(0);
    let table = judge(&run);
    for form in [
        terminal(&run, &table, &LOOK),
        markdown(&run, &table),
        html(&run, &table),
    ] {
        assert!(form.contains("THE LIAR WAS NOT CAUGHT"));
    }
}

#[test]
fn hostile_texts_stay_text() {
    let run = run(8);
    let table = judge(&run);
    let page = html(&run, &table);
    assert!(!page.contains("<b>|fast") && page.contains("&lt;b&gt;|fast"));
    assert!(!page.contains('\u{1b}'));
    assert!(markdown(&run, &table).contains("\\<b\\>\\|fast"));
}

#[test]
fn lines_of_a_narrow_terminal_do_not_fail() {
    let run = run(8);
    let table = judge(&run);
    for columns in [1, 20, 80] {
        let look = Look {
            columns,
            color: true,
        };
        let text = terminal(&run, &table, &look);
        assert!(columns < 20 || text.contains("liar"));
        let look = Look {
            color: false,
            ..look
        };
        for line in terminal(&run, &table, &look).lines() {
            assert!(
                crate::text::width(line) <= columns.max(2),
                "{columns}: {line}"
            );
        }
    }
    for columns in [80, 100] {
        let look = Look {
            columns,
            color: false,
        };
        let text = terminal(&run, &table, &look);
        // No column's content is lost, wherever it stands.
        assert!(
            text.contains("power-loss, 5.00 times slower: safe"),
            "{text}"
        );
        assert!(text.contains("7 commits, 12 s"), "{text}");
    }
}
