//! Runs that ended early or were damaged: nothing panics, nothing is claimed, and no figure is anything
//! but a finite number.

use sqlitmus_core::analysis::{Analysis, Compared, analyse};
use sqlitmus_core::measurements::ArmStatus;
use sqlitmus_core::run::{Outcome, Run};
use sqlitmus_core::verdict::Verdict;

use crate::arm;
use crate::fixture::{assert_near, chart, claim, ended, reading, run, steady_run, trial};

#[test]
fn an_arm_that_was_never_reached_stands_empty_beside_the_others() {
    let mut run = steady_run(8, 200, 200, &[("one", 100), ("late", 100)]);
    run.trials.retain(|trial| trial.arm != "late");
    run.plan.charts = vec![chart(&["late", "one"], "base"), chart(&["one"], "late")];
    let analysis = analyse(&run);
    assert_eq!(arm(&analysis, "late").status, ArmStatus::NotReached);
    assert_eq!(arm(&analysis, "late").operation_ns, None);
    let compared = |chart: usize, row: usize| {
        let row = &analysis.charts[chart].rows[row];
        row.versus[0].as_ref().map(|found| found.verdict)
    };
    assert_eq!(compared(0, 0), None);
    assert_eq!(compared(0, 1), Some(Verdict::Faster));
    assert_eq!(compared(1, 0), None);
    assert_eq!(analysis.groups[0].rounds, 8);
}

/// Everything that is analysed, asked for of a run, and whether all of it is finite numbers.
fn analyse_everything(mut run: Run) -> Analysis {
    run.plan.charts = vec![chart(&["base", "one", "other"], "base")];
    run.plan.claims = vec![
        claim("base", "one", Some(1.5), None),
        claim("other", "one", None, Some(1.5)),
    ];
    run.plan.conclusion = ["fast", "fast-settled", "space", "factor"]
        .map(|kind| format!("It is {{{kind}:one|base}} it."))
        .to_vec();
    let analysis = analyse(&run);
    let shown = format!("{analysis:?}");
    assert!(!shown.contains("NaN") && !shown.contains("inf"), "{shown}");
    analysis
}

#[test]
fn an_empty_run_has_empty_answers() {
    let analysis = analyse_everything(run(vec![reading("read", &["base", "one", "other"])]));
    let group = &analysis.groups[0];
    assert_eq!(
        (group.noise_floor, group.rounds, group.arms.len()),
        (None, 0, 4)
    );
    for found in &group.arms {
        assert_eq!(found.status, ArmStatus::NotReached);
        assert_eq!((found.operation_ns, found.bytes_per_second), (None, None));
        assert_eq!((found.slices_left_out, found.latencies.count()), (0, 0));
        assert!(found.round_values_ns.is_empty() && found.left_out.is_empty());
    }
    assert_eq!(analysis.charts[0].rows.len(), 3);
    assert_eq!(analysis.claims.len(), 2);
    assert!(analysis.claims.iter().all(|found| found.ratio.is_none()));
    // A plan without groups is as quiet.
    let analysis = analyse_everything(run(Vec::new()));
    assert!(analysis.groups.is_empty() && analysis.charts[0].rows.is_empty());
}

#[test]
fn one_round_gives_ratios_without_intervals_and_nothing_sure() {
    let run = steady_run(1, 200, 200, &[("one", 100), ("other", 200)]);
    let analysis = analyse_everything(run);
    assert_eq!(
        (analysis.groups[0].noise_floor, analysis.groups[0].rounds),
        (None, 1)
    );
    let compared = |row: usize| {
        analysis.charts[0].rows[row].versus[0]
            .clone()
            .expect("compared")
    };
    for (row, wanted) in [(1, 2.0), (2, 1.0)] {
        let Compared { estimate, verdict } = compared(row);
        assert_near(estimate.ratio, wanted);
        assert_eq!((estimate.interval, estimate.rounds), (None, 1));
        assert_eq!(verdict, Verdict::NotSureYet);
    }
    assert_eq!(arm(&analysis, "one").operation_ns, Some(100.0));
}

#[test]
fn numbers_of_a_damaged_run_neither_stop_the_analysis_nor_become_figures() {
    let sound = steady_run(2, 200, 200, &[("one", 100), ("other", 50)]);
    for (operations, elapsed_ns) in [(0, 0), (0, 1000), (10, 0)] {
        let mut run = sound.clone();
        for trial in run.trials.iter_mut().filter(|trial| trial.arm == "one") {
            trial.samples[0].operations = operations;
            trial.samples[0].elapsed_ns = elapsed_ns;
        }
        let analysis = analyse_everything(run);
        let rows = &analysis.charts[0].rows;
        assert!(rows[1].versus[0].is_none(), "{operations} in {elapsed_ns}");
        assert_near(
            rows[2].versus[0].as_ref().expect("compared").estimate.ratio,
            4.0,
        );
    }
    // The largest numbers there are: sums must not overflow.
    let mut run = sound;
    for trial in &mut run.trials {
        trial.round = u32::MAX - trial.round;
        trial.set = u32::MAX;
        for sample in &mut trial.samples {
            sample.turn = u32::MAX;
            sample.content_bytes = u64::MAX;
            sample.elapsed_ns = u64::MAX;
            sample.settle_ns = Some(u64::MAX);
        }
        trial.latencies.0 = vec![(u64::MAX, u64::MAX), (u64::MAX, 1)];
    }
    let crash = Outcome::Failed("crashed".to_owned());
    run.trials.push(ended(crash, trial("other", u32::MAX, &[])));
    let analysis = analyse_everything(run);
    let other = arm(&analysis, "other");
    assert_eq!(other.left_out, ["round 4294967296: crashed"]);
    // All of the bytes in all of the time: a byte a nanosecond.
    assert_near(other.bytes_per_second.expect("a rate"), 1e9);
}
