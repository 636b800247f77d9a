//! Explanations and shares, from runs small enough to be worked out by hand.

// The fixture has more than these tests need.
#[allow(dead_code)]
mod fixture;

use sqlitmus_core::analysis::analyse;
use sqlitmus_core::explanation::{Difference, Explanation, Part, Share};
use sqlitmus_core::run::{Outcome, Run};

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn part(name: &str, plus: &[&str], minus: &[&str]) -> Part {
    Part {
        name: name.to_owned(),
        plus: names(plus),
        minus: names(minus),
    }
}

fn explanation(parts: Vec<Part>) -> Explanation {
    Explanation {
        arm: "base".to_owned(),
        part: parts,
        suspected: "the weather".to_owned(),
    }
}

/// Whole 1,000 ns; opening 500 and copying 300 with a harness of 100 in each of them.
fn run() -> Run {
    fixture::steady_run(
        3,
        1_000,
        1_000,
        &[("open", 500), ("copy", 300), ("harness", 100)],
    )
}

fn honest_parts() -> Vec<Part> {
    vec![
        part("opening", &["open"], &["harness"]),
        part("copying", &["copy"], &["harness"]),
        part("the harness", &["harness"], &[]),
    ]
}

#[test]
fn parts_and_the_rest_add_up_to_the_whole() {
    let mut run = run();
    run.plan.explanations = vec![explanation(honest_parts())];
    let analysis = analyse(&run);
    let parts = analysis.explanations[0].result.as_ref().expect("measured");
    let ns: Vec<f64> = parts.parts.iter().map(|(_, amount)| amount.ns).collect();
    assert_eq!(ns, [400.0, 200.0, 100.0]);
    let rest = parts.rest.expect("a rest");
    assert_eq!((parts.whole.ns, rest.ns, rest.share), (1_000.0, 300.0, 0.3));
    let interval = rest.interval.expect("three rounds");
    assert_eq!((interval.low, interval.high), (300.0, 300.0));
    assert!(parts.has_large_rest());
    assert_eq!(parts.suspected.as_deref(), Some("the weather"));
    assert_eq!(parts.rounds, 3);
}

#[test]
fn a_small_rest_needs_no_suspicion() {
    let mut run = run();
    let mut parts = honest_parts();
    parts.push(part("more", &["copy"], &[]));
    run.plan.explanations = vec![explanation(parts)];
    let analysis = analyse(&run);
    let parts = analysis.explanations[0].result.as_ref().expect("measured");
    assert_eq!(parts.rest.expect("a rest").ns, 0.0);
    assert_eq!(parts.suspected, None);
}

#[test]
fn parts_that_only_lead_up_to_the_whole_leave_no_rest_to_be_proud_of() {
    let mut run = run();
    run.plan.explanations = vec![explanation(vec![
        part("the harness", &["harness"], &[]),
        part("opening", &["open"], &["harness"]),
        part("all else", &["base"], &["open"]),
    ])];
    let analysis = analyse(&run);
    let parts = analysis.explanations[0].result.as_ref().expect("measured");
    assert_eq!(parts.rest, None);
    assert!(!parts.has_large_rest());
}

#[test]
fn an_arm_that_failed_is_named_and_a_round_without_it_does_not_count() {
    let mut run = run();
    run.plan.explanations = vec![explanation(honest_parts())];
    for trial in run.trials.iter_mut().filter(|trial| trial.arm == "open") {
        if trial.round == 1 {
            trial.outcome = Outcome::Failed("crashed".to_owned());
        }
    }
    let parts = analyse(&run).explanations[0].result.clone();
    assert_eq!(parts.expect("measured").rounds, 2);
    for trial in run.trials.iter_mut().filter(|trial| trial.arm == "open") {
        trial.outcome = Outcome::Skipped("too few descriptors".to_owned());
    }
    let reason = analyse(&run).explanations[0].result.clone();
    let reason = reason.expect_err("an arm is missing");
    assert_eq!(reason, "the open was skipped: too few descriptors");
}

#[test]
fn a_share_is_a_ratio_of_differences() {
    let mut run = run();
    run.plan.shares = vec![Share {
        sentence: "of the extra time, opening is".to_owned(),
        part: Difference {
            plus: names(&["open"]),
            minus: names(&["harness"]),
        },
        of: Difference {
            plus: names(&["base"]),
            minus: names(&["copy"]),
        },
    }];
    let analysis = analyse(&run);
    let share = analysis.shares[0].result.as_ref().expect("measured");
    assert!((share.ratio - 400.0 / 700.0).abs() < 1e-12);
    let interval = share.interval.expect("no scatter");
    assert!((interval.high - interval.low).abs() < 1e-6);
}
