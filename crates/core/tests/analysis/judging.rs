//! Judging: rounds and thresholds that verdicts need, many arms at once, scatter and outliers.

use sqlitmus_core::analysis::analyse;
use sqlitmus_core::run::Run;
use sqlitmus_core::verdict::Verdict;

use crate::fixture::{assert_near, chart, reading, run, steady_run, trial};
use crate::{arm, run_with, verdict};

#[test]
fn fewer_than_eight_rounds_decide_nothing() {
    assert_eq!(
        verdict(&steady_run(7, 200, 200, &[("one", 100)]), "one"),
        Verdict::NotSureYet
    );
    assert_eq!(
        verdict(&steady_run(8, 200, 200, &[("one", 100)]), "one"),
        Verdict::Faster
    );
}

#[test]
fn the_threshold_is_the_plans() {
    let mut run = steady_run(8, 1040, 1040, &[("one", 1000)]);
    assert_eq!(verdict(&run, "one"), Verdict::Faster);
    run.plan.threshold = 0.05;
    assert_eq!(verdict(&run, "one"), Verdict::NoDifferenceWorthHaving);
    run.plan.threshold = 0.0;
    assert_eq!(verdict(&run, "one"), Verdict::Faster);
}

#[test]
fn arms_of_a_group_are_judged_together() {
    // Round values of ln 1.04 +- 0.011: the standard error is 0.011 x sqrt(8 / 7) / sqrt 8 = 0.00416, and
    // ln 1.04 is (0.03922 - 0.02956) / 0.00416 = 2.32 of it above ln 1.03: not quite t = 2.36. With 0.0105
    // it is 2.43: sure by itself (the chance is 0.045), and not sure beside another that is no surer.
    let arms = [("one", 1_000_000), ("other", 1_000_000)];
    let mut run = steady_run(8, 1_040_000, 1_040_000, &arms);
    let scatter = |run: &mut Run, by: f64| {
        for trial in &mut run.trials {
            if ["one", "other"].contains(&trial.arm.as_str()) {
                let sign = if trial.round % 2 == 0 { 1.0 } else { -1.0 };
                trial.samples[0].elapsed_ns = (1e7 * f64::exp(sign * by)) as u64;
            }
        }
    };
    scatter(&mut run, 0.011);
    assert_eq!(verdict(&run, "one"), Verdict::NotSureYet);
    scatter(&mut run, 0.0105);
    assert_eq!(verdict(&run, "one"), Verdict::Faster);
    run.plan.charts = vec![chart(&["one", "other"], "base")];
    let analysis = analyse(&run);
    assert_eq!(analysis.groups[0].comparisons, 2);
    for row in &analysis.charts[0].rows {
        let compared = row.versus[0].as_ref().expect("compared");
        assert_eq!(compared.verdict, Verdict::NotSureYet);
    }
    // What the conclusion says is the very verdict of the chart.
    run.plan.conclusion = vec!["{fast:one|base}".to_owned()];
    assert_eq!(
        analyse(&run).conclusion,
        ["not clearly faster or slower than"]
    );
    // More rounds would do: both stand by Holm's rule once they are sure enough.
    scatter(&mut run, 0.008);
    assert_eq!(analyse(&run).conclusion, ["1.04 times as fast as"]);
}

#[test]
fn scatter_is_given_for_groups_with_what_would_help() {
    let mut run = run(vec![reading("read", &["base"])]);
    run.plan.groups[0].slices = 3;
    for round in 0..8 {
        // Every round is off by 2%, one way or the other, its slices by 1% around it.
        let off = if round % 2 == 0 { 10_200 } else { 9800 };
        run.trials
            .push(trial("base", round, &[10_000, 10_000, 10_000]));
        let twin = trial("base~twin", round, &[off, off * 101 / 100, off * 99 / 100]);
        run.trials.push(twin);
    }
    let spending = analyse(&run).groups[0].spending.expect("eight rounds");
    assert!(
        (spending.scatter.between_rounds - 0.0206).abs() < 0.001,
        "{spending:?}"
    );
    assert!(
        (spending.scatter.within_rounds - 0.0105).abs() < 0.001,
        "{spending:?}"
    );
    assert_eq!((spending.slices, spending.best_slices), (3, 3));
    // 0.0206 and 0.0105 x 0.66 make 0.0217 a round; with 21 rounds t = 2.09: 0.0099.
    let rounds = spending.rounds_advised.expect("possible");
    assert!((19..24).contains(&rounds), "{rounds}");
    assert_eq!(
        analyse(&steady_run(1, 100, 100, &[])).groups[0].spending,
        None
    );
}

#[test]
fn outliers_are_told_of_and_count() {
    let mut run = run_with(
        (0..4)
            .map(|round| trial("one", round, &[100, 101, 102]))
            .collect(),
    );
    run.trials[2].samples[1].elapsed_ns = 9000;
    run.trials[2].samples[1].machine_steal_ns = Some(10_000_000);
    let analysis = analyse(&run);
    let one = arm(&analysis, "one");
    assert_eq!((one.outliers.outliers, one.outliers.stolen), (1, 1));
    assert_eq!((one.outliers.slices, one.slices_left_out), (12, 0));
    // It is in the total: 3 x (1000 + 1010 + 1020) + 1000 + 9000 + 1020 ns for 12 x 1,000 bytes.
    assert_near(one.bytes_per_second.expect("a rate"), 12e12 / 20_110.0);
}
