//! What was proved about the durability of arms stands in every format for people and in the JSON, marked
//! where a claim is broken, and is no fact about the machine.

mod fixture;

use sqlitmus_core::analysis::analyse;
use sqlitmus_core::case::Durability;
use sqlitmus_core::durability::{CutKind, Cuts, Proof};
use sqlitmus_core::environment::PROVED_DURABILITY;
use sqlitmus_core::run::Run;
use sqlitmus_report::{
    Analysed, Look, csv, html, html_side_by_side, json, markdown, markdown_side_by_side, terminal,
    terminal_side_by_side,
};

/// The made-up run with proofs: of its writing arms in turn one that keeps what it claims and one that
/// does not; the others were not tried.
fn run() -> (Run, String, String) {
    let mut run = fixture::complete();
    let mut names = Vec::new();
    for group in &mut run.plan.groups {
        for arm in &mut group.arms {
            if arm.case.workload.writes() && !arm.is_twin() {
                arm.case.durability = Durability::PowerLoss;
                names.push(arm.name.clone());
            }
        }
    }
    let cuts = |broken| Cuts { made: 20, broken };
    for (name, broken) in names.iter().zip([0, 13]) {
        let proof = Proof {
            run: "20261120-120000-durability-1".to_owned(),
            file: "<i>proof</i>.run".to_owned(),
            filesystem: "ext4".to_owned(),
            configuration: "sqlite delete full".to_owned(),
            observed: Durability::ProcessCrash,
            power_kind: Some(CutKind::Shutdown),
            process: cuts(0),
            power: cuts(broken),
        };
        run.environment.push(proof.fact(name).expect("a fact"));
    }
    (run, names[0].clone(), names[1].clone())
}

const KEPT: &str = "power-loss, kept in 20 of 20 cuts";
const BROKEN: &str = "power-loss, NOT KEPT in 13 of 20 cuts";
const CLAIMED: &str = "power-loss, claimed only";

#[test]
fn every_format_says_what_is_claimed_and_what_was_proved() {
    let (run, _, _) = run();
    let analysis = analyse(&run);
    let look = Look {
        columns: 120,
        color: false,
    };
    let page = html(&run, &analysis);
    let text = markdown(&run, &analysis);
    for rendered in [&terminal(&run, &analysis, &look), &page, &text] {
        for expected in [KEPT, BROKEN, CLAIMED] {
            assert!(rendered.contains(expected), "{expected}: {rendered}");
        }
        assert!(!rendered.contains(PROVED_DURABILITY), "{rendered}");
    }
    assert!(text.contains(&format!("- **{BROKEN}")), "{text}");
    assert!(page.contains("id=\"proved\"") && page.contains("href=\"#proved\""));
    assert!(page.contains("13 of 20 (≤"), "{page}");
    assert!(!page.contains("<i>proof</i>"), "texts stay texts");
}

#[test]
fn runs_side_by_side_say_it_run_by_run() {
    let (proved, _, _) = run();
    let mut claimed = run().0;
    claimed
        .environment
        .retain(|(name, _)| !name.starts_with(PROVED_DURABILITY));
    let (analysis, other) = (analyse(&proved), analyse(&claimed));
    let both = [
        Analysed {
            run: &proved,
            analysis: &analysis,
        },
        Analysed {
            run: &claimed,
            analysis: &other,
        },
    ];
    let page = html_side_by_side(&both);
    let text = markdown_side_by_side(&both);
    for rendered in [&page, &text] {
        for expected in [KEPT, BROKEN, CLAIMED] {
            assert!(rendered.contains(expected), "{expected}: {rendered}");
        }
    }
    assert!(page.contains("id=\"survival\"") && !page.contains("<i>proof</i>"));
    let row = text
        .lines()
        .find(|line| line.contains(KEPT))
        .expect("a row");
    assert!(row.ends_with(&format!("| {CLAIMED} |")), "{row}");
    let look = Look {
        columns: 100,
        color: false,
    };
    let lines = terminal_side_by_side(&both, &look);
    for expected in ["What commits survive", "power 20/20", "NOT KEPT"] {
        assert!(lines.contains(expected), "{expected}: {lines}");
    }
    // Where nothing was proved, one sentence says so.
    let unproved = [both[1], both[1]];
    let text = markdown_side_by_side(&unproved);
    assert!(text.contains("was not put to the test here") && !text.contains(CLAIMED));
}

#[test]
fn samples_carry_how_the_claim_of_their_arm_stands() {
    let (run, kept, broken) = run();
    let text = csv(&[&run]);
    let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let headings = lines.next().expect("headings");
    let column = |name: &str| {
        headings
            .iter()
            .position(|heading| *heading == name)
            .expect("a column")
    };
    let (arm, claim) = (column("arm"), column("durability_claim"));
    // The last columns, counted from the end: labels before them may hold commas.
    let from_end = headings.len() - claim;
    let said = |name: &str| {
        let mut of_arm = text
            .lines()
            .filter(|line| line.split(',').nth(arm) == Some(name));
        let cells: Vec<&str> = of_arm.next().expect("a sample").split(',').collect();
        cells[cells.len() - from_end..].join(",")
    };
    assert_eq!(said(&kept), "kept,20,0,20,0");
    assert_eq!(said(&broken), "broken,20,0,20,13");
    assert_eq!(said("files-stdio"), ",,,,");
}

#[test]
fn every_column_of_the_csv_is_documented() {
    let text = csv(&[]);
    let documented = include_str!("../schema/CSV.md");
    for column in text.trim_end().split(',') {
        assert!(documented.contains(&format!("`{column}`")), "{column}");
    }
}

#[test]
fn programs_are_told_too() {
    let (run, kept, broken) = run();
    let value: serde_json::Value = serde_json::from_str(&json(&run, &analyse(&run))).expect("JSON");
    let arms = value["arms"].as_array().expect("arms");
    let proved = |name: &str| {
        let arm = arms.iter().find(|arm| arm["name"] == name).expect("an arm");
        arm["proved"].clone()
    };
    assert_eq!(proved(&kept)["claim"], "kept");
    assert_eq!(proved(&broken)["claim"], "broken");
    assert_eq!(proved(&broken)["power_gone"]["broken"], 13);
    assert_eq!(proved(&broken)["power_kind"], "shutdown");
    assert!(proved("files-stdio").is_null(), "it writes nothing");
}
