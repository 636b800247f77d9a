//! Claims: what becomes of a sentence for a ratio, a noise floor and a bound that are known exactly.

use sqlitmus_core::claims::{ClaimResult, Judgement};
use sqlitmus_core::run::{Outcome, Run};
use sqlitmus_core::suite::{Claim, ClaimQuantity};

use crate::fixture::{
    assert_near, claim, ended, occupies, reading, run, settling, steady, steady_run, trial,
};

fn result(run: &Run, claim: &Claim) -> ClaimResult {
    let mut run = run.clone();
    run.plan.claims = vec![claim.clone()];
    let mut results = sqlitmus_core::analysis::analyse(&run).claims;
    assert_eq!(results.len(), 1);
    results.remove(0)
}

fn judged(run: &Run, claim: &Claim) -> Judgement {
    result(run, claim).judgement
}

/// What becomes of the claim that `base` costs so many times as much as `one`.
fn bounded(run: &Run, at_least: Option<f64>, at_most: Option<f64>) -> Judgement {
    judged(run, &claim("base", "one", at_least, at_most))
}

fn space_claim(numerator: &str, denominator: &str, most: f64) -> Claim {
    Claim {
        of: ClaimQuantity::Space,
        ..claim(numerator, denominator, None, Some(most))
    }
}

fn not_measured(reason: &str) -> Judgement {
    Judgement::NotMeasured(reason.to_owned())
}

#[test]
fn the_interval_is_widened_by_the_noise_floor_before_it_is_judged() {
    // The ratio is 2.6, a point; the twin differs by a factor of 1.25, so what is judged reaches from
    // 2.6 / 1.25 = 2.08 to 2.6 x 1.25 = 3.25.
    let run = steady_run(8, 260, 208, &[("one", 100)]);
    for (at_least, at_most, judgement) in [
        (Some(2.07), None, Judgement::Holds),
        (Some(2.09), None, Judgement::NotSure),
        (Some(3.24), None, Judgement::NotSure),
        (Some(3.26), None, Judgement::DoesNotHold),
        (None, Some(3.26), Judgement::Holds),
        (None, Some(3.24), Judgement::NotSure),
        (None, Some(2.09), Judgement::NotSure),
        (None, Some(2.07), Judgement::DoesNotHold),
        (Some(2.07), Some(3.26), Judgement::Holds),
        (Some(2.07), Some(3.24), Judgement::NotSure),
        (Some(2.09), Some(3.26), Judgement::NotSure),
        (Some(3.26), Some(9.0), Judgement::DoesNotHold),
        (Some(1.0), Some(2.07), Judgement::DoesNotHold),
    ] {
        assert_eq!(
            bounded(&run, at_least, at_most),
            judgement,
            "{at_least:?} {at_most:?}"
        );
    }
    // What is shown is not widened.
    let claim = claim("base", "one", Some(2.0), None);
    let result = result(&run, &claim);
    assert_eq!(result.claim, claim);
    assert_near(result.ratio.expect("a ratio"), 2.6);
    let interval = result.interval.expect("an interval");
    assert_near(interval.low, 2.6);
    assert_near(interval.high, 2.6);
}

#[test]
fn the_whole_interval_decides_not_the_ratio() {
    // Seven rounds of 2 and one of 250: 3.7, and far too unlike to be sure of it.
    let mut run = steady_run(8, 200, 200, &[("one", 100)]);
    assert_eq!(bounded(&run, Some(1.5), None), Judgement::Holds);
    for trial in &mut run.trials {
        if trial.round == 1 && trial.arm == "one" {
            trial.samples[0].elapsed_ns = 8;
        }
    }
    assert_eq!(bounded(&run, Some(1.5), None), Judgement::NotSure);
    let found = result(&run, &claim("base", "one", Some(1.5), None));
    // (2 to the 7th x 250) to the 1/8: elapsed 8 ns for ten operations.
    assert_near(
        found.ratio.expect("a ratio"),
        (128.0f64 * 250.0).powf(0.125),
    );
}

#[test]
fn the_larger_noise_floor_of_both_groups_counts() {
    // From 1.0 to 4.0 in the rough group's noise of a factor of two; 2 exactly in the calm one's.
    let groups = vec![
        reading("calm", &["base", "one"]),
        reading("rough", &["rock", "sand"]),
    ];
    let mut run = run(groups);
    run.trials = [
        steady("base", 8, 200),
        steady("base~twin", 8, 200),
        steady("one", 8, 100),
        steady("rock", 8, 200),
        steady("rock~twin", 8, 400),
        steady("sand", 8, 100),
    ]
    .concat();
    for (numerator, denominator, judgement) in [
        ("base", "one", Judgement::Holds),
        ("base", "sand", Judgement::NotSure),
        ("rock", "one", Judgement::NotSure),
        ("rock", "sand", Judgement::NotSure),
    ] {
        let claim = claim(numerator, denominator, Some(1.5), None);
        assert_eq!(judged(&run, &claim), judgement, "{numerator} {denominator}");
    }
    // Without one of the twins nothing is sure.
    run.trials.retain(|trial| trial.arm != "rock~twin");
    for (numerator, denominator) in [("base", "sand"), ("rock", "one")] {
        let found = result(&run, &claim(numerator, denominator, Some(0.1), None));
        assert_near(found.ratio.expect("a ratio"), 2.0);
        assert_eq!(found.judgement, Judgement::NotSure);
    }
}

#[test]
fn one_round_is_never_sure() {
    let run = steady_run(1, 200, 200, &[("one", 100)]);
    let found = result(&run, &claim("base", "one", Some(0.001), None));
    assert_near(found.ratio.expect("a ratio"), 2.0);
    assert_eq!(
        (found.interval, found.judgement),
        (None, Judgement::NotSure)
    );
}

#[test]
fn claims_are_about_the_time_to_acknowledgement() {
    let mut run = steady_run(8, 200, 200, &[("one", 100)]);
    for trial in run.trials.iter_mut().filter(|trial| trial.arm == "one") {
        *trial = settling(900, trial.clone());
    }
    assert_eq!(bounded(&run, Some(1.9), Some(2.1)), Judgement::Holds);
}

#[test]
fn a_claim_without_figures_says_which_arm_is_missing_and_why() {
    let measured = steady_run(2, 200, 200, &[("one", 100), ("other", 100)]);
    let claimed = claim("base", "one", Some(1.0), None);
    let with_one = |outcome: Option<Outcome>| {
        let mut run = measured.clone();
        run.trials.retain(|trial| trial.arm != "one");
        run.trials
            .extend(outcome.map(|outcome| ended(outcome, trial("one", 0, &[100]))));
        run
    };
    let reason = || "it was so".to_owned();
    for (outcome, wanted) in [
        (None, "the run ended before \"the one\" was measured"),
        (
            Some(Outcome::Failed(reason())),
            "\"the one\" failed: it was so",
        ),
        (
            Some(Outcome::Invalid(reason())),
            "\"the one\" failed: it was so",
        ),
        (
            Some(Outcome::Refuted(reason())),
            "\"the one\" failed: it was so",
        ),
        (
            Some(Outcome::Skipped(reason())),
            "\"the one\" was skipped: it was so",
        ),
    ] {
        let found = result(&with_one(outcome), &claimed);
        assert_eq!(found.judgement, not_measured(wanted));
        assert_eq!((found.ratio, found.interval), (None, None));
    }
    // On either side of the fraction; of two the numerator is named.
    let run = with_one(None);
    let wanted = not_measured("the run ended before \"the one\" was measured");
    assert_eq!(judged(&run, &claim("one", "base", Some(1.0), None)), wanted);
    let mut run = run;
    run.trials.retain(|trial| trial.arm != "other");
    assert_eq!(
        judged(&run, &claim("one", "other", Some(1.0), None)),
        wanted
    );
    // An arm that a damaged plan does not have goes by its name.
    let wanted = not_measured("the run ended before \"nobody\" was measured");
    assert_eq!(
        judged(&run, &claim("base", "nobody", Some(1.0), None)),
        wanted
    );
}

#[test]
fn space_is_counted_so_its_ratio_is_sure() {
    // The twin is so noisy that no time would be sure.
    let mut run = steady_run(2, 100, 900, &[("one", 100)]);
    occupies(&mut run, "base", 4000);
    occupies(&mut run, "one", 5000);
    for (numerator, denominator, most, judgement) in [
        ("base", "one", 0.8, Judgement::Holds),
        ("base", "one", 0.79, Judgement::DoesNotHold),
        ("one", "base", 1.25, Judgement::Holds),
        ("one", "base", 1.24, Judgement::DoesNotHold),
    ] {
        let found = result(&run, &space_claim(numerator, denominator, most));
        assert_eq!(found.judgement, judgement, "{numerator} {most}");
        assert_eq!(found.interval, None);
    }
    let found = result(&run, &space_claim("base", "one", 1.0));
    assert_near(found.ratio.expect("a ratio"), 0.8);
}

#[test]
fn space_that_is_not_known_is_not_measured() {
    let mut run = run(vec![reading("read", &["base", "one"])]);
    occupies(&mut run, "base", 4000);
    run.trials = vec![
        trial("base", 0, &[100]),
        ended(Outcome::Skipped("no LMDB".to_owned()), trial("one", 0, &[])),
    ];
    let wanted = not_measured("\"the one\" was skipped: no LMDB");
    assert_eq!(judged(&run, &space_claim("base", "one", 1.0)), wanted);
    assert_eq!(judged(&run, &space_claim("one", "base", 1.0)), wanted);
    // A store that takes nothing has no ratio to it.
    occupies(&mut run, "one", 0);
    assert_eq!(judged(&run, &space_claim("base", "one", 1.0)), wanted);
    assert_eq!(
        judged(&run, &space_claim("one", "base", 1.0)),
        Judgement::Holds
    );
}
