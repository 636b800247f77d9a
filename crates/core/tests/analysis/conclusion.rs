//! Conclusions: what stands in the place of each placeholder, and what is said where nothing can.

use sqlitmus_core::analysis::analyse;
use sqlitmus_core::run::{Outcome, Run};

use crate::fixture::{ended, occupies, run, settling, steady_run, trial, writing};

fn concluded(run: &Run, sentences: &[&str]) -> Vec<String> {
    let mut run = run.clone();
    run.plan.conclusion = sentences.iter().map(|text| (*text).to_owned()).collect();
    analyse(&run).conclusion
}

/// What one placeholder becomes.
#[track_caller]
fn phrase(run: &Run, placeholder: &str) -> String {
    let sentence = format!("It is <{{{placeholder}}}>.");
    let concluded = concluded(run, &[&sentence]);
    let [only] = concluded.as_slice() else {
        panic!("{concluded:?}");
    };
    let inside = only
        .strip_prefix("It is <")
        .and_then(|rest| rest.strip_suffix(">."));
    inside.unwrap_or(only).to_owned()
}

#[test]
fn each_verdict_has_its_phrase() {
    let arms = [("swift", 500), ("alike", 1000), ("slow", 1600)];
    let quiet = steady_run(8, 1000, 1000, &arms);
    assert_eq!(phrase(&quiet, "fast:swift|base"), "2.00 times as fast as");
    assert_eq!(phrase(&quiet, "fast:alike|base"), "about as fast as");
    assert_eq!(
        phrase(&quiet, "fast:slow|base"),
        "only 0.62 times as fast as"
    );
    // The arm comes first: seen from the slow one the baseline is the fast one.
    assert_eq!(phrase(&quiet, "fast:base|slow"), "1.60 times as fast as");
    let unsure = "not clearly faster or slower than";
    let noisy = steady_run(8, 1000, 3000, &arms);
    for name in ["swift", "alike", "slow"] {
        assert_eq!(phrase(&noisy, &format!("fast:{name}|base")), unsure);
    }
    let short = steady_run(1, 1000, 1000, &arms);
    assert_eq!(phrase(&short, "fast:swift|base"), unsure);
}

#[test]
fn settling_counts_only_where_it_is_asked_for() {
    let mut run = run(vec![writing("write", &["base", "one"])]);
    for round in 0..8 {
        run.trials.extend([
            settling(100, trial("base", round, &[200])),
            settling(100, trial("base~twin", round, &[200])),
            settling(800, trial("one", round, &[100])),
        ]);
    }
    assert_eq!(phrase(&run, "fast:one|base"), "2.00 times as fast as");
    assert_eq!(
        phrase(&run, "fast-settled:one|base"),
        "only 0.33 times as fast as"
    );
    assert_eq!(phrase(&run, "factor:one|base"), "0.50 (0.50 to 0.50)");
}

#[test]
fn a_factor_of_settled_noise_is_judged_by_settled_noise() {
    let mut run = run(vec![writing("write", &["base", "one"])]);
    for round in 0..8 {
        run.trials.extend([
            settling(100, trial("base", round, &[200])),
            // The twin settles four times as long.
            settling(1000, trial("base~twin", round, &[200])),
            settling(50, trial("one", round, &[100])),
        ]);
    }
    assert_eq!(phrase(&run, "fast:one|base"), "2.00 times as fast as");
    assert_eq!(
        phrase(&run, "fast-settled:one|base"),
        "not clearly faster or slower than"
    );
}

#[test]
fn a_factor_is_the_arms_time_with_its_interval() {
    // 1.99 and 2.01: exp of the mean of their logarithms is 2.00; they differ by 0.01, so the standard
    // error is 0.005, and with t = 12.706 the interval is 2.00 x exp(-+0.0635): 1.88 to 2.13.
    let mut run = steady_run(2, 1000, 1000, &[("one", 1990)]);
    for trial in &mut run.trials {
        if trial.round == 1 && trial.arm == "one" {
            trial.samples[0].elapsed_ns = 20_100;
        }
    }
    assert_eq!(phrase(&run, "factor:one|base"), "2.00 (1.88 to 2.13)");
    assert_eq!(phrase(&run, "factor:base|one"), "0.50 (0.47 to 0.53)");
    // A factor is a figure, not a verdict: it stands whatever the noise.
    let noisy = steady_run(2, 1000, 9000, &[("one", 3000)]);
    assert_eq!(phrase(&noisy, "factor:one|base"), "3.00 (3.00 to 3.00)");
}

#[test]
fn space_is_so_many_hundredths_more_or_less() {
    let mut run = steady_run(2, 100, 100, &[("one", 100)]);
    occupies(&mut run, "base", 10_000);
    for (bytes, wanted) in [
        (8300, "17% less disk than"),
        (10_300, "3% more disk than"),
        (10_000, "as much disk as"),
        (10_049, "as much disk as"),
        (9951, "as much disk as"),
        (9949, "1% less disk than"),
        (10_051, "1% more disk than"),
        (25_000, "150% more disk than"),
        (0, "100% less disk than"),
    ] {
        occupies(&mut run, "one", bytes);
        assert_eq!(phrase(&run, "space:one|base"), wanted, "{bytes}");
    }
    occupies(&mut run, "one", 20_000);
    assert_eq!(phrase(&run, "space:base|one"), "50% less disk than");
}

#[test]
fn a_sentence_may_have_several_placeholders_or_none() {
    let mut run = steady_run(8, 200, 200, &[("one", 100)]);
    occupies(&mut run, "base", 100);
    occupies(&mut run, "one", 100);
    let found = concluded(
        &run,
        &[
            "Nothing to fill in.",
            "One is {fast:one|base} base, takes {factor:one|base} of its time and {space:one|base} it.",
        ],
    );
    let filled = "One is 2.00 times as fast as base, takes 0.50 (0.50 to 0.50) of its time and as \
                  much disk as it.";
    assert_eq!(found, ["Nothing to fill in.", filled]);
}

#[test]
fn what_cannot_be_said_is_left_unsaid_in_a_line_of_its_own() {
    let others = [
        ("late", 1),
        ("crashed", 1),
        ("skipped", 1),
        ("refuted", 1),
        ("invalid", 1),
    ];
    let mut run = steady_run(2, 200, 200, &others);
    run.trials
        .retain(|trial| trial.arm.starts_with("base") || trial.arm == "refuted");
    let reason = || "why".to_owned();
    run.trials.extend([
        ended(Outcome::Failed(reason()), trial("crashed", 0, &[])),
        ended(Outcome::Skipped(reason()), trial("skipped", 0, &[])),
        ended(Outcome::Refuted(reason()), trial("refuted", 2, &[])),
        ended(Outcome::Invalid(reason()), trial("invalid", 0, &[100])),
    ]);
    let unsaid = |reason: &str| format!("Something is left unsaid here: {reason}.");
    for (placeholder, reason) in [
        ("fast:late|base", "\"the late\" was not reached"),
        ("fast:base|late", "\"the late\" was not reached"),
        (
            "factor:crashed|base",
            "\"the crashed\" was not measured (why)",
        ),
        (
            "fast-settled:base|skipped",
            "\"the skipped\" was not measured (why)",
        ),
        (
            "fast:refuted|base",
            "\"the refuted\" was not measured (why)",
        ),
        (
            "factor:base|invalid",
            "\"the invalid\" was not measured (why)",
        ),
        // The arm is asked before the reference.
        ("fast:late|crashed", "\"the late\" was not reached"),
        (
            "fast:crashed|late",
            "\"the crashed\" was not measured (why)",
        ),
    ] {
        assert_eq!(phrase(&run, placeholder), unsaid(reason), "{placeholder}");
    }
    // A sentence is left out whole, what is said comes first, and each reason once.
    let sentences = [
        "Base is {fast:base|base} itself, late {fast:late|base} it.",
        "Late: {factor:late|base}.",
        "Base takes {factor:base|base} of its time.",
        "Crashed: {factor:crashed|base}.",
    ];
    assert_eq!(
        concluded(&run, &sentences),
        [
            "Base takes 1.00 (1.00 to 1.00) of its time.".to_owned(),
            unsaid("\"the late\" was not reached"),
            unsaid("\"the crashed\" was not measured (why)"),
        ]
    );
}

#[test]
fn a_factor_needs_two_rounds_and_space_two_footprints() {
    let mut run = steady_run(1, 200, 200, &[("one", 100)]);
    assert!(phrase(&run, "factor:one|base").contains("one round is not enough"));
    occupies(&mut run, "one", 100);
    for placeholder in ["space:one|base", "space:base|one"] {
        let found = phrase(&run, placeholder);
        assert!(
            found.starts_with("Something is left unsaid here: the space of"),
            "{found}"
        );
    }
    occupies(&mut run, "base", 0);
    assert!(phrase(&run, "space:one|base").contains("is not known"));
}

#[test]
fn arms_whose_numbers_cannot_be_true_are_not_compared() {
    let mut run = steady_run(2, 200, 200, &[("one", 100)]);
    for trial in run.trials.iter_mut().filter(|trial| trial.arm == "one") {
        trial.samples[0].elapsed_ns = 0;
    }
    for kind in ["fast", "fast-settled", "factor"] {
        let found = phrase(&run, &format!("{kind}:one|base"));
        assert!(
            found.contains("left unsaid") && found.contains("cannot be compared"),
            "{found}"
        );
    }
}
