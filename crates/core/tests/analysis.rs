//! What follows from runs made by hand: which slices and trials count, ratios, noise floors, arms,
//! groups and charts. Claims, conclusions and incomplete runs have files of their own. Numbers are
//! worked out in the comments.

mod fixture;

#[path = "analysis/claims.rs"]
mod claims;
#[path = "analysis/conclusion.rs"]
mod conclusion;
#[path = "analysis/incomplete.rs"]
mod incomplete;
#[path = "analysis/judging.rs"]
mod judging;
#[path = "analysis/resources.rs"]
mod resources;

use sqlitmus_core::analysis::{Analysis, ArmAnalysis, Compared, analyse};
use sqlitmus_core::measurements::{ArmStatus, Cost, Measurements};
use sqlitmus_core::run::{Outcome, Run, Trial};
use sqlitmus_core::statistics::RatioEstimate;
use sqlitmus_core::suite::ChartKind;
use sqlitmus_core::verdict::Verdict;

use fixture::{
    T_THREE_ROUNDS, T_TWO_ROUNDS, assert_near, chart, ended, in_set, occupies, reading, run,
    settling, steady, steady_run, trial, with_device_reads, writing,
};

/// A run of one reading group with the arms `base`, `one` and `other`, and these trials.
fn run_with(trials: Vec<Trial>) -> Run {
    let mut run = run(vec![reading("read", &["base", "one", "other"])]);
    run.trials = trials;
    run
}

fn acknowledged(run: &Run, reference: &str, arm: &str) -> Option<RatioEstimate> {
    Measurements::new(run).ratio(reference, arm, Cost::Acknowledged)
}

#[track_caller]
fn ratio(run: &Run, reference: &str, arm: &str) -> RatioEstimate {
    acknowledged(run, reference, arm).expect("they can be compared")
}

fn arm<'a>(analysis: &'a Analysis, name: &str) -> &'a ArmAnalysis {
    let mut arms = analysis.groups.iter().flat_map(|group| &group.arms);
    arms.find(|arm| arm.name == name).expect("it is planned")
}

fn noise_floor(run: &Run) -> Option<f64> {
    analyse(run).groups[0].noise_floor
}

/// The interval as reaches below and above the ratio, in the unit of ln 2.
fn reaches(estimate: &RatioEstimate) -> (f64, f64) {
    let interval = estimate.interval.expect("an interval");
    let reach = |one: f64, other: f64| (one / other).log2();
    (
        reach(estimate.ratio, interval.low),
        reach(interval.high, estimate.ratio),
    )
}

#[track_caller]
fn assert_reaches(estimate: &RatioEstimate, wanted: f64) {
    let (below, above) = reaches(estimate);
    assert!(
        (below - wanted).abs() < 1e-5 && (above - wanted).abs() < 1e-5,
        "{below} {above}"
    );
}

#[test]
fn a_ratio_is_the_mean_over_rounds_of_the_medians_of_paired_log_ratios() {
    // Round 1: 2, 9, 3: median 3. Round 2: 1, 12, 12: median 12. The mean of ln 3 and ln 12 is ln 6.
    // (The mean of the medians would be 7.5, the median of all pairs 4.9, the trials' own medians
    // divided by one another 8 and 12.)
    let mut run = run_with(vec![
        trial("base", 0, &[200, 900, 800]),
        trial("one", 0, &[100, 100, 267]),
        trial("base", 1, &[100, 2400, 1200]),
        trial("one", 1, &[100, 200, 100]),
    ]);
    run.trials[0].samples[2].elapsed_ns = 801 * 10;
    let estimate = ratio(&run, "base", "one");
    assert_near(estimate.ratio, 6.0);
    assert_eq!(
        (estimate.paired, estimate.rounds, estimate.slices),
        (true, 2, 6)
    );
    assert_near(estimate.round_values[0], 3.0f64.ln());
    assert_near(estimate.round_values[1], 12.0f64.ln());
    assert_near(estimate.ratio_of_totals, 5601.0 / 867.0);
    // The two round values differ by ln 4, so their mean has the standard error ln 2.
    assert_reaches(&estimate, T_TWO_ROUNDS);
    // The other way round it is the inverse.
    assert_near(ratio(&run, "one", "base").ratio, 1.0 / 6.0);
}

#[test]
fn slices_are_paired_by_their_turn_not_by_their_place_in_the_list() {
    let mut run = run_with(vec![
        trial("base", 0, &[200, 900, 1600]),
        trial("one", 0, &[100, 300, 400]),
    ]);
    run.trials[1].samples.reverse();
    // 2, 3, 4; by place in the list 0.5, 3, 16.
    assert_near(ratio(&run, "base", "one").round_values[0], 3.0f64.ln());
    assert_eq!(ratio(&run, "base", "one").slices, 3);
    run.trials[1].samples.retain(|sample| sample.turn != 1);
    // 2 and 4: the median of their logarithms is ln sqrt 8.
    let estimate = ratio(&run, "base", "one");
    assert_eq!(estimate.slices, 2);
    assert_near(estimate.ratio, 8.0f64.sqrt());
}

#[test]
fn slices_that_were_not_warm_count_nowhere_and_are_counted_as_left_out() {
    let mut run = run_with(vec![
        trial("base", 0, &[200, 300, 10, 10]),
        with_device_reads(&[2], trial("one", 0, &[100, 300, 900, 1000])),
    ]);
    run.trials[1].samples[3].major_faults = Some(1);
    // What the kernel does not tell is not held against a slice.
    run.trials[1].samples[0].device_read_bytes = None;
    run.trials[1].samples[0].major_faults = None;

    // 2 and 1; with the two others it would be far below 1.
    let estimate = ratio(&run, "base", "one");
    assert_near(estimate.ratio, 2.0f64.sqrt());
    assert_eq!(estimate.slices, 2);
    // It does not matter on which side the slice was not warm.
    assert_near(ratio(&run, "one", "base").ratio, 0.5f64.sqrt());

    let analysis = analyse(&run);
    let one = arm(&analysis, "one");
    assert_eq!(one.slices_left_out, 2);
    assert_eq!(one.round_values_ns, [200.0]);
    assert_eq!(one.operation_ns, Some(200.0));
    // 2 x 1,000 bytes in (100 + 300) x 10 ns.
    assert_near(one.bytes_per_second.expect("a rate"), 5e8);
    assert!(one.left_out.is_empty(), "{:?}", one.left_out);
    assert_eq!(arm(&analysis, "base").slices_left_out, 0);
    assert_eq!(arm(&analysis, "base").round_values_ns, [105.0]);
}

#[test]
fn a_round_whose_counted_slices_have_no_common_turn_is_judged_by_its_medians() {
    let run = run_with(vec![
        with_device_reads(&[2, 3], trial("base", 0, &[400, 600, 9000, 9000])),
        with_device_reads(&[0, 1], trial("one", 0, &[1, 1, 100, 150])),
        with_device_reads(&[0], trial("base", 1, &[5000, 100])),
        trial("one", 1, &[700, 100]),
    ]);
    // Round 1: 500 / 125 = 4. Round 2 has one common turn: 1. The mean of ln 4 and ln 1 is ln 2.
    let estimate = ratio(&run, "base", "one");
    assert_near(estimate.round_values[0], 4.0f64.ln());
    assert_near(estimate.ratio, 2.0);
    assert_eq!(
        (estimate.paired, estimate.rounds, estimate.slices),
        (true, 2, 2)
    );
}

#[test]
fn a_round_without_any_counted_slice_on_one_side_is_passed_over() {
    let run = run_with(vec![
        trial("base", 0, &[100]),
        with_device_reads(&[0], trial("one", 0, &[7])),
        trial("base", 1, &[300]),
        trial("one", 1, &[100]),
    ]);
    let estimate = ratio(&run, "base", "one");
    assert_near(estimate.ratio, 3.0);
    assert_eq!((estimate.rounds, estimate.interval), (1, None));
    let analysis = analyse(&run);
    assert_eq!(arm(&analysis, "one").round_values_ns, [100.0]);
    assert_eq!(arm(&analysis, "one").slices_left_out, 1);
}

#[test]
fn arms_without_any_round_in_common_are_compared_all_the_same() {
    // They took turns once, and then one of them was not warm.
    let run = run_with(vec![
        trial("base", 0, &[200]),
        with_device_reads(&[0], trial("one", 0, &[7])),
        trial("one", 1, &[100]),
    ]);
    let estimate = ratio(&run, "base", "one");
    assert_near(estimate.ratio, 2.0);
    assert_eq!((estimate.paired, estimate.interval), (false, None));
}

#[test]
fn trials_that_are_not_valid_are_kept_but_never_count() {
    let not_valid = [
        Outcome::Invalid("not warm".to_owned()),
        Outcome::Failed("it crashed".to_owned()),
        Outcome::Skipped("no such library".to_owned()),
    ];
    let mut trials = steady("base", 4, 200);
    trials.push(trial("one", 0, &[100]));
    for (outcome, round) in not_valid.into_iter().zip(1..) {
        trials.push(ended(
            outcome,
            with_device_reads(&[1], trial("one", round, &[1, 1])),
        ));
    }
    let run = run_with(trials);
    for (estimate, wanted) in [
        (ratio(&run, "base", "one"), 2.0),
        (ratio(&run, "one", "base"), 0.5),
    ] {
        assert_near(estimate.ratio, wanted);
        assert_eq!((estimate.rounds, estimate.slices), (1, 1));
    }
    let analysis = analyse(&run);
    let one = arm(&analysis, "one");
    assert_eq!(one.status, ArmStatus::Measured);
    assert_eq!(one.round_values_ns, [100.0]);
    assert_eq!(one.latencies.0, [(100, 1)]);
    assert_near(one.bytes_per_second.expect("a rate"), 1e9);
    // Slices of trials that do not count are not what is meant by slices left out.
    assert_eq!(one.slices_left_out, 0);
    assert_eq!(
        one.left_out,
        [
            "round 2: not warm",
            "round 3: it crashed",
            "round 4: no such library"
        ]
    );
    assert_eq!(analysis.groups[0].rounds, 4);
}

#[test]
fn a_refuted_arm_has_no_figures_whatever_it_measured() {
    let mut run = steady_run(3, 200, 200, &[("one", 100), ("other", 50)]);
    let reason = "blob 7 differs".to_owned();
    run.trials
        .push(ended(Outcome::Refuted(reason), trial("one", 3, &[])));
    run.plan.charts = vec![chart(&["one", "other"], "base")];
    assert_eq!(acknowledged(&run, "base", "one"), None);
    assert_eq!(acknowledged(&run, "one", "base"), None);

    let analysis = analyse(&run);
    let one = arm(&analysis, "one");
    assert_eq!(one.status, ArmStatus::Failed("blob 7 differs".to_owned()));
    assert_eq!((one.operation_ns, one.bytes_per_second), (None, None));
    assert!(one.round_values_ns.is_empty());
    assert_eq!((one.latencies.count(), one.slices_left_out), (0, 0));
    assert_eq!(one.left_out, ["round 4: blob 7 differs"]);
    // The others are as they were.
    let rows = &analysis.charts[0].rows;
    assert!(rows[0].versus[0].is_none());
    assert_near(
        rows[1].versus[0].as_ref().expect("compared").estimate.ratio,
        4.0,
    );
    assert_eq!(analysis.groups[0].rounds, 3);

    // Without a baseline nothing is compared, and there is no noise floor.
    let reason = "blob 8 differs".to_owned();
    run.trials
        .push(ended(Outcome::Refuted(reason), trial("base", 3, &[])));
    assert_eq!(acknowledged(&run, "base", "other"), None);
    assert_eq!(noise_floor(&run), None);
}

#[test]
fn an_arm_without_figures_says_why() {
    let of = |trials: Vec<Trial>| Measurements::new(&run_with(trials)).status("one");
    let failed = |reason: &str| ArmStatus::Failed(reason.to_owned());
    let skipped = || ended(Outcome::Skipped("no LMDB".to_owned()), trial("one", 0, &[]));
    let crashed = || ended(Outcome::Failed("crashed".to_owned()), trial("one", 0, &[]));
    let cold = || ended(Outcome::Invalid("cold".to_owned()), trial("one", 1, &[100]));
    assert_eq!(of(Vec::new()), ArmStatus::NotReached);
    assert_eq!(of(vec![trial("base", 0, &[100])]), ArmStatus::NotReached);
    assert_eq!(
        of(vec![skipped()]),
        ArmStatus::Skipped("no LMDB".to_owned())
    );
    assert_eq!(of(vec![crashed(), cold()]), failed("cold"));
    assert_eq!(of(vec![cold(), crashed()]), failed("crashed"));
    assert_eq!(of(vec![trial("one", 0, &[])]), failed("no slices"));
    assert_eq!(
        of(vec![trial("one", 0, &[100]), crashed()]),
        ArmStatus::Measured
    );
}

#[test]
fn slices_are_paired_within_the_same_set_only() {
    // The stores do not fit into memory together: the baseline is measured with each challenger, and
    // the machine was five times as fast in the second set.
    let run = run_with(vec![
        trial("base", 0, &[1000]),
        trial("other", 0, &[250]),
        in_set(1, trial("base", 0, &[200])),
        in_set(1, trial("one", 0, &[100])),
    ]);
    for (name, wanted) in [("one", 2.0), ("other", 4.0)] {
        for (estimate, wanted) in [
            (ratio(&run, "base", name), wanted),
            (ratio(&run, name, "base"), 1.0 / wanted),
        ] {
            assert_near(estimate.ratio, wanted);
            assert_eq!((estimate.paired, estimate.slices), (true, 1));
        }
    }
    // The value of a round is taken over all its sets.
    let analysis = analyse(&run);
    assert_eq!(arm(&analysis, "base").round_values_ns, [600.0]);
    assert_eq!(analysis.groups[0].rounds, 1);
}

#[test]
fn sets_of_one_round_are_one_round_value() {
    // The twin is in every set: 2 and 8 in the first round, 1 in the second. ln 4 and 0: ln 2.
    let run = run_with(vec![
        trial("base", 0, &[200]),
        trial("base~twin", 0, &[100]),
        in_set(1, trial("base", 0, &[800])),
        in_set(1, trial("base~twin", 0, &[100])),
        trial("base", 1, &[100]),
        trial("base~twin", 1, &[100]),
    ]);
    let estimate = ratio(&run, "base", "base~twin");
    assert_near(estimate.ratio, 2.0);
    assert_eq!((estimate.rounds, estimate.slices), (2, 3));
}

#[test]
fn arms_that_never_took_turns_are_compared_by_the_values_of_their_rounds() {
    // Pairs would be 2 and 2, without scatter. Round values: ln 100, ln 400 against ln 50, ln 200, each
    // side with the variance (ln 4)^2 / 2, so a = b = (ln 2)^2 and the standard error is sqrt 2 x ln 2,
    // with Welch's 1 / (1/4 + 1/4) = 2 degrees of freedom.
    let run = run_with(vec![
        trial("one", 0, &[100]),
        in_set(1, trial("other", 0, &[50])),
        trial("one", 1, &[400]),
        in_set(1, trial("other", 1, &[200])),
    ]);
    let estimate = ratio(&run, "one", "other");
    assert_near(estimate.ratio, 2.0);
    assert_eq!(
        (estimate.paired, estimate.rounds, estimate.slices),
        (false, 2, 0)
    );
    assert_reaches(&estimate, T_THREE_ROUNDS * 2.0f64.sqrt());
}

#[test]
fn arms_of_different_groups_are_compared_though_they_share_no_round() {
    let mut run = run(vec![
        reading("read", &["base", "one"]),
        writing("write", &["slow"]),
    ]);
    run.trials = vec![
        trial("one", 0, &[90, 100, 500]),
        trial("one", 1, &[100]),
        trial("slow", 2, &[300]),
        trial("slow", 3, &[200, 1000, 300]),
    ];
    let estimate = ratio(&run, "slow", "one");
    assert_near(estimate.ratio, 3.0);
    assert!(!estimate.paired);
    assert_reaches(&estimate, 0.0);
}

#[test]
fn cost_including_settling_is_kept_beside_the_cost_to_acknowledgement() {
    let mut run = run(vec![writing("write", &["base", "one"])]);
    for round in 0..8 {
        run.trials.extend([
            settling(300, trial("base", round, &[100])),
            trial("base~twin", round, &[100]),
            settling(100, trial("one", round, &[100])),
        ]);
    }
    run.plan.charts = vec![chart(&["one"], "base")];
    let settled = |reference: &str, arm: &str| {
        let estimate = Measurements::new(&run).ratio(reference, arm, Cost::Settled);
        estimate.expect("they can be compared").ratio
    };
    assert_near(ratio(&run, "base", "one").ratio, 1.0);
    assert_near(settled("base", "one"), 400.0 / 200.0);
    assert_near(settled("base", "base~twin"), 400.0 / 100.0);

    let analysis = analyse(&run);
    let (base, one) = (arm(&analysis, "base"), arm(&analysis, "one"));
    assert_eq!(
        (base.operation_ns, base.settled_operation_ns),
        (Some(100.0), Some(400.0))
    );
    assert_eq!(
        (one.operation_ns, one.settled_operation_ns),
        (Some(100.0), Some(200.0))
    );
    assert_eq!(one.round_values_ns, [100.0; 8]);
    // 1,000 bytes in 100 x 10 ns: settling is not part of the rate.
    assert_near(one.bytes_per_second.expect("a rate"), 1e9);
    // What identical arms differ by counts the same cost: none to acknowledgement, a factor of four
    // in settling, where two is then no difference.
    let row = &analysis.charts[0].rows[0];
    let compared = |of: &[Option<Compared>]| of[0].clone().expect("compared");
    assert_eq!(
        compared(&row.versus).verdict,
        Verdict::NoDifferenceWorthHaving
    );
    assert_near(compared(&row.versus_settled).estimate.ratio, 2.0);
    assert_eq!(compared(&row.versus_settled).verdict, Verdict::NotSureYet);
}

#[test]
fn readers_do_not_settle() {
    let mut run = steady_run(2, 200, 200, &[("one", 100)]);
    run.plan.charts = vec![chart(&["one"], "base")];
    let analysis = analyse(&run);
    assert_eq!(arm(&analysis, "one").settled_operation_ns, None);
    let row = &analysis.charts[0].rows[0];
    assert_eq!((row.versus.len(), row.versus_settled.len()), (1, 0));
}

#[test]
fn the_noise_floor_is_the_farther_end_of_the_twins_interval() {
    // Without scatter it is the twin's distance, in either direction.
    assert_near(
        noise_floor(&steady_run(2, 125, 100, &[])).expect("a floor"),
        0.25,
    );
    assert_near(
        noise_floor(&steady_run(2, 100, 125, &[])).expect("a floor"),
        0.25,
    );
    assert_near(
        noise_floor(&steady_run(2, 100, 100, &[])).expect("a floor"),
        0.0,
    );
    // 4 and 1: ln 2 with the standard error ln 2, so the farther end is at (1 + t) x ln 2.
    let mut run = steady_run(2, 100, 100, &[]);
    run.trials[0] = trial("base", 0, &[400]);
    let floor = noise_floor(&run).expect("a floor");
    let in_twos = (floor + 1.0).log2();
    assert!((in_twos - (1.0 + T_TWO_ROUNDS)).abs() < 1e-5, "{in_twos}");
    // 1/4 and 1: the lower end is as far.
    run.trials[0] = trial("base", 0, &[25]);
    assert_near(noise_floor(&run).expect("a floor"), floor);
    // One round says nothing of others.
    assert_eq!(noise_floor(&steady_run(1, 100, 100, &[])), None);
}

/// The verdict on an arm, seen from the baseline.
fn verdict(run: &Run, name: &str) -> Verdict {
    let mut run = run.clone();
    run.plan.charts = vec![chart(&[name], "base")];
    let row = analyse(&run).charts[0].rows[0].clone();
    row.versus[0].as_ref().expect("compared").verdict
}

#[test]
fn a_verdict_needs_more_than_noise_and_three_hundredths() {
    let arms = [("swift", 1000), ("alike", 1020), ("slow", 1082)];
    // Against 1040: 1.04, 1.0196 and 0.9612 (below 1 / 1.03 = 0.9709).
    let quiet = steady_run(8, 1040, 1040, &arms);
    assert_eq!(verdict(&quiet, "swift"), Verdict::Faster);
    assert_eq!(verdict(&quiet, "alike"), Verdict::NoDifferenceWorthHaving);
    assert_eq!(verdict(&quiet, "slow"), Verdict::Slower);
    // A twin that differs by a factor of 1.3.
    let noisy = steady_run(8, 1040, 800, &arms);
    for name in ["swift", "alike", "slow"] {
        assert_eq!(verdict(&noisy, name), Verdict::NotSureYet, "{name}");
    }
}

#[test]
fn without_the_twin_nothing_is_sure() {
    let mut run = steady_run(8, 1000, 1000, &[("swift", 100), ("alike", 1000)]);
    assert_eq!(verdict(&run, "swift"), Verdict::Faster);
    run.trials.retain(|trial| trial.arm != "base~twin");
    assert_eq!(noise_floor(&run), None);
    assert_near(ratio(&run, "base", "swift").ratio, 10.0);
    for name in ["swift", "alike"] {
        assert_eq!(verdict(&run, name), Verdict::NotSureYet, "{name}");
    }
}

#[test]
fn charts_keep_their_order_and_leave_out_what_says_nothing() {
    let mut run = steady_run(2, 400, 400, &[("one", 100), ("other", 800)]);
    let mut of_time = chart(&["other", "base", "one"], "base");
    of_time.versus.extend(chart(&[], "one").versus);
    let mut of_space = chart(&["one", "nobody", "other"], "base");
    of_space.shows = ChartKind::Space;
    run.plan.charts = vec![of_time.clone(), of_space];
    occupies(&mut run, "one", 4096);

    let analysis = analyse(&run);
    let [time, space] = analysis.charts.as_slice() else {
        panic!("{} charts", analysis.charts.len());
    };
    assert_eq!((&time.chart, time.noise_floor), (&of_time, Some(0.0)));
    let ratios = |row: usize| -> Vec<Option<f64>> {
        let compared = time.rows[row].versus.iter();
        let ratio = |found: &Compared| (found.estimate.ratio * 1e6).round() / 1e6;
        compared.map(|found| found.as_ref().map(ratio)).collect()
    };
    let arms: Vec<&str> = time.rows.iter().map(|row| row.arm.name.as_str()).collect();
    assert_eq!(arms, ["other", "base", "one"]);
    // An arm is not compared with itself.
    assert_eq!(ratios(0), [Some(0.5), Some(0.125)]);
    assert_eq!(ratios(1), [None, Some(0.25)]);
    assert_eq!(ratios(2), [Some(4.0), None]);
    // An arm that is not in the plan has no row, and charts of space have no times to compare.
    assert_eq!(space.rows.len(), 2);
    assert_eq!(space.rows[0].arm.label, "the one");
    assert!(space.rows.iter().all(|row| row.versus.is_empty()));
    let allocated = |row: usize| space.rows[row].footprint.map(|found| found.allocated_bytes);
    assert_eq!((allocated(0), allocated(1)), (Some(4096), None));
}

#[test]
fn an_arm_is_judged_by_the_noise_floor_of_its_own_group() {
    let mut run = run(vec![
        reading("calm", &["base"]),
        reading("rough", &["rock"]),
    ]);
    run.trials = [
        steady("base", 8, 100),
        steady("base~twin", 8, 100),
        steady("rock", 8, 200),
        steady("rock~twin", 8, 500),
    ]
    .concat();
    run.plan.charts = vec![
        chart(&["base"], "rock"),
        chart(&["rock"], "base"),
        chart(&["nobody"], "base"),
        chart(&["base", "rock"], "rock"),
    ];
    let analysis = analyse(&run);
    let floors: Vec<f64> = analysis
        .groups
        .iter()
        .filter_map(|group| group.noise_floor)
        .collect();
    assert_near(floors[0], 0.0);
    assert_near(floors[1], 1.5);
    let judged = |index: usize| {
        let chart = &analysis.charts[index];
        let compared = chart.rows[0].versus[0].clone().expect("compared");
        (chart.noise_floor, compared.verdict)
    };
    assert_eq!(judged(0), (Some(floors[0]), Verdict::Faster));
    assert_eq!(judged(1), (Some(floors[1]), Verdict::NotSureYet));
    assert_eq!(analysis.charts[2].noise_floor, None);
    // A chart of both has that of its first arm.
    assert_eq!(judged(3), (Some(floors[0]), Verdict::Faster));
}

#[test]
fn latencies_of_all_valid_trials_are_put_together() {
    let run = run_with(vec![
        trial("one", 0, &[100, 200]),
        trial("one", 1, &[300, 100]),
        trial("other", 0, &[900]),
    ]);
    let analysis = analyse(&run);
    let one = arm(&analysis, "one");
    assert_eq!(one.latencies.0, [(100, 2), (200, 1), (300, 1)]);
    // 4 x 1,000 bytes in (100 + 200 + 300 + 100) x 10 ns; the median of 150 and 200.
    assert_near(one.bytes_per_second.expect("a rate"), 4e12 / 7000.0);
    assert_eq!(one.operation_ns, Some(175.0));
}
