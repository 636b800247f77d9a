//! What follows from two runs: which cases are the same, which conditions forbid a comparison, verdicts
//! and the answer. How often verdicts are wrong is in `run_comparison/simulation.rs`.

#[allow(dead_code)] // It is shared with tests that need more of it.
mod fixture;

#[path = "run_comparison/simulation.rs"]
mod simulation;

use proptest::prelude::*;
use sqlitmus_core::environment::{fact, said};
use sqlitmus_core::measurements::ArmStatus;
use sqlitmus_core::run::{Outcome, Run};
use sqlitmus_core::run_comparison::{
    Answer, ComparedCase, Effect, NotJudged, Options, Quantity, Regression, RunComparison,
    RunComparisonError, WhyUnmatched, compare_runs,
};
use sqlitmus_core::settings::Settings;
use sqlitmus_core::verdict::Verdict;

use fixture::{assert_near, ended, reading, run, settling, steady_run, trial, writing};

const OTHERS: [&str; 2] = ["one", "other"];

/// A run of `base`, `one` and `other`, whose identity is `id`, on a known machine. Every arm is
/// another case.
fn known(id: &str, base_ns: u64, one_ns: u64, other_ns: u64) -> Run {
    let mut run = steady_run(8, base_ns, base_ns, &[("one", one_ns), ("other", other_ns)]);
    id.clone_into(&mut run.head.id);
    identify(&mut run);
    run.environment = [
        (fact::CPU_MODEL, "Made Up 9000"),
        (fact::KERNEL, "Linux 6.18.44"),
        (fact::FILESYSTEM, "ext4"),
        (fact::LOAD_AVERAGE, id),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .into();
    run
}

/// Gives every arm but twins a case of its own.
fn identify(run: &mut Run) {
    for arm in run.plan.groups.iter_mut().flat_map(|group| &mut group.arms) {
        let name = arm.name.trim_end_matches("~twin").to_owned();
        arm.case.chosen = Settings::from_pairs([("name", name.as_str())]);
    }
}

fn options(of: Quantity) -> Options {
    Options {
        of,
        ..Options::default()
    }
}

#[track_caller]
fn compared(a: &Run, b: &Run, of: Quantity) -> RunComparison {
    compare_runs(a, b, &options(of)).expect("they can be compared")
}

fn case<'a>(comparison: &'a RunComparison, name: &str) -> &'a ComparedCase {
    let mut cases = comparison.cases.iter();
    cases.find(|case| case.name == name).expect("it is in both")
}

#[track_caller]
fn verdict(comparison: &RunComparison, name: &str) -> Verdict {
    case(comparison, name)
        .change
        .as_ref()
        .expect("judged")
        .verdict
}

#[test]
fn ratios_do_not_see_a_slower_machine_and_times_do() {
    let (a, b) = (known("a", 1000, 500, 300), known("b", 1200, 600, 360));
    let ratios = compared(&a, &b, Quantity::Ratio);
    for name in OTHERS {
        assert_eq!(verdict(&ratios, name), Verdict::NoDifferenceWorthHaving);
    }
    assert_eq!(ratios.answer(), Answer::NoRegression);
    assert_eq!(case(&ratios, "base").change, Err(NotJudged::IsBaseline));
    let (moved, _) = ratios.groups[0].baseline_change.expect("measured in both");
    assert_near(moved, 1000.0 / 1200.0);
    let times = compared(&a, &b, Quantity::Time);
    for name in ["base", "one", "other"] {
        assert_eq!(verdict(&times, name), Verdict::Slower);
        let change = case(&times, name).change.as_ref().expect("judged");
        assert_near(change.ratio, 1000.0 / 1200.0);
        assert_eq!(change.regression, Regression::Found);
    }
    assert_eq!(times.answer(), Answer::Regression);
    assert!(times.cases.iter().all(|case| !case.name.contains("twin")));
}

#[test]
fn a_case_that_became_slower_is_a_regression_and_a_faster_one_is_none() {
    let (a, b) = (known("a", 1000, 500, 300), known("b", 1000, 550, 300));
    let comparison = compared(&a, &b, Quantity::Ratio);
    assert_eq!(verdict(&comparison, "one"), Verdict::Slower);
    assert_near(
        case(&comparison, "one")
            .change
            .as_ref()
            .expect("judged")
            .ratio,
        500.0 / 550.0,
    );
    assert_eq!(
        verdict(&comparison, "other"),
        Verdict::NoDifferenceWorthHaving
    );
    assert_eq!(comparison.answer(), Answer::Regression);
    let back = compared(&b, &a, Quantity::Ratio);
    assert_eq!(verdict(&back, "one"), Verdict::Faster);
    assert_eq!(back.answer(), Answer::NoRegression);
    // Alike within a larger threshold.
    let wide = Options {
        threshold: 0.2,
        ..Options::default()
    };
    let comparison = compare_runs(&a, &b, &wide).expect("compared");
    assert_eq!(comparison.answer(), Answer::NoRegression);
}

#[test]
fn settling_is_judged_for_itself() {
    let run_of = |id: &str, settling_ns: u64| {
        let mut run = run(vec![writing("write", &["base", "one"])]);
        identify(&mut run);
        id.clone_into(&mut run.head.id);
        for round in 0..8 {
            run.trials
                .push(settling(100, trial("base", round, &[1000])));
            run.trials
                .push(settling(100, trial("base~twin", round, &[1000])));
            run.trials
                .push(settling(settling_ns, trial("one", round, &[500])));
        }
        run
    };
    let comparison = compared(&run_of("a", 100), &run_of("b", 400), Quantity::Ratio);
    let verdicts: Vec<Option<Verdict>> = comparison
        .cases
        .iter()
        .filter(|case| case.name == "one")
        .map(|case| case.change.as_ref().ok().map(|change| change.verdict))
        .collect();
    assert_eq!(
        verdicts,
        [
            Some(Verdict::NoDifferenceWorthHaving),
            Some(Verdict::Slower)
        ]
    );
}

#[test]
fn a_noisy_twin_leaves_everything_open() {
    let quiet = known("a", 1000, 500, 300);
    let mut noisy = steady_run(8, 1000, 1100, &[("one", 530), ("other", 300)]);
    "b".clone_into(&mut noisy.head.id);
    noisy.environment = quiet.environment.clone();
    identify(&mut noisy);
    let comparison = compared(&quiet, &noisy, Quantity::Ratio);
    for name in OTHERS {
        assert_eq!(verdict(&comparison, name), Verdict::NotSureYet);
    }
    assert_eq!(comparison.answer(), Answer::NotSure);
    let floor = case(&comparison, "one")
        .change
        .as_ref()
        .expect("judged")
        .noise_floor;
    assert_near(floor.expect("known"), 0.1);
}

#[test]
fn what_has_no_figures_is_told_and_leaves_the_answer_open() {
    let a = known("a", 1000, 500, 300);
    type Ending = fn(String) -> Outcome;
    for ending in [
        Outcome::Failed as Ending,
        Outcome::Refuted,
        Outcome::Skipped,
    ] {
        let mut b = known("b", 1000, 500, 300);
        for trial in &mut b.trials {
            if trial.arm == "one" {
                *trial = ended(ending("a reason".to_owned()), trial.clone());
            }
        }
        let comparison = compared(&a, &b, Quantity::Ratio);
        let Err(NotJudged::NoFigures { a: of_a, b: of_b }) = &case(&comparison, "one").change
        else {
            panic!("{:?}", case(&comparison, "one"));
        };
        assert_eq!(*of_a, ArmStatus::Measured);
        assert_ne!(*of_b, ArmStatus::Measured);
        assert_eq!(case(&comparison, "one").trials_left_out, (0, 8));
        assert_eq!(comparison.answer(), Answer::NotSure);
    }
    // What neither machine has is no question.
    let skipped = |mut run: Run| {
        run.trials.retain(|trial| trial.arm != "one");
        let reason = "no such library".to_owned();
        run.trials
            .push(ended(Outcome::Skipped(reason), trial("one", 0, &[])));
        run
    };
    let comparison = compared(
        &skipped(known("a", 1000, 500, 300)),
        &skipped(known("b", 1000, 500, 300)),
        Quantity::Ratio,
    );
    assert_eq!(comparison.answer(), Answer::NoRegression);
    // A run that ended early.
    let mut b = known("b", 1000, 500, 300);
    b.trials.retain(|trial| trial.arm != "other");
    assert_eq!(compared(&a, &b, Quantity::Ratio).answer(), Answer::NotSure);
}

#[test]
fn without_a_baseline_there_are_no_ratios() {
    let a = known("a", 1000, 500, 300);
    let mut b = known("b", 1000, 500, 300);
    b.trials.retain(|trial| !trial.arm.starts_with("base"));
    let comparison = compared(&a, &b, Quantity::Ratio);
    assert_eq!(case(&comparison, "one").change, Err(NotJudged::NoRatio));
    assert_eq!(comparison.answer(), Answer::NotSure);
    let mut b = known("b", 1000, 500, 300);
    "other".clone_into(&mut b.plan.groups[0].baseline);
    let comparison = compared(&a, &b, Quantity::Ratio);
    assert!(matches!(
        case(&comparison, "one").change,
        Err(NotJudged::OtherBaseline { .. })
    ));
    assert_eq!(comparison.groups[0].baseline_change, None);
}

#[test]
fn one_round_decides_nothing() {
    let one_round = |id: &str, one_ns: u64| {
        let mut run = known(id, 1000, one_ns, 300);
        run.trials.retain(|trial| trial.round == 0);
        run
    };
    let comparison = compared(&one_round("a", 500), &one_round("b", 900), Quantity::Ratio);
    assert_eq!(verdict(&comparison, "one"), Verdict::NotSureYet);
    assert_eq!(comparison.answer(), Answer::NotSure);
}

#[test]
fn cases_are_matched_by_identity_then_by_name() {
    let a = known("a", 1000, 500, 300);
    let mut b = known("b", 1000, 500, 300);
    // Renamed: still the same case.
    let rename = |run: &mut Run, from: &str, to: &str| {
        for arm in run.plan.groups.iter_mut().flat_map(|group| &mut group.arms) {
            if arm.name == from {
                to.clone_into(&mut arm.name);
            }
        }
        for trial in &mut run.trials {
            if trial.arm == from {
                to.clone_into(&mut trial.arm);
            }
        }
    };
    rename(&mut b, "one", "renamed");
    let comparison = compared(&a, &b, Quantity::Ratio);
    assert_eq!(case(&comparison, "renamed").name_a, "one");
    assert_eq!(
        verdict(&comparison, "renamed"),
        Verdict::NoDifferenceWorthHaving
    );
    assert!(comparison.only_a.is_empty() && comparison.only_b.is_empty());
    // The same name, but another case: never compared.
    let mut b = known("b", 1000, 500, 300);
    b.plan.groups[0].arms[1].case.dataset.count = 7;
    let comparison = compared(&a, &b, Quantity::Ratio);
    assert!(comparison.cases.iter().all(|case| case.name != "one"));
    let WhyUnmatched::OtherCase(parts) = &comparison.only_a[0].why else {
        panic!("{:?}", comparison.only_a);
    };
    assert_eq!(
        (
            parts[0].part,
            parts[0].here.as_str(),
            parts[0].there.as_str()
        ),
        ("blobs", "100", "7")
    );
    assert_eq!(comparison.only_b.len(), 1);
    assert_eq!(comparison.answer(), Answer::NotSure);
    // What B alone has leaves nothing open.
    let mut a = known("a", 1000, 500, 300);
    a.plan.groups[0].arms.remove(1);
    let comparison = compared(&a, &known("b", 1000, 500, 300), Quantity::Ratio);
    assert_eq!(comparison.only_b[0].why, WhyUnmatched::Absent);
    assert_eq!(comparison.answer(), Answer::NoRegression);
}

#[test]
fn who_is_who_is_not_guessed() {
    let alike = |id: &str, names: [&str; 2]| {
        let mut run = run(vec![reading("read", &["base", names[0], names[1]])]);
        id.clone_into(&mut run.head.id);
        for arm in &mut run.plan.groups[0].arms {
            if arm.name.starts_with("base") {
                arm.case.chosen = Settings::from_pairs([("name", "base")]);
            }
        }
        run
    };
    let (a, b) = (alike("a", ["p", "q"]), alike("b", ["r", "s"]));
    let comparison = compared(&a, &b, Quantity::Ratio);
    assert_eq!(comparison.cases.len(), 1);
    for left in comparison.only_a.iter().chain(&comparison.only_b) {
        assert_eq!(left.why, WhyUnmatched::Ambiguous);
    }
    assert_eq!(comparison.only_a.len() + comparison.only_b.len(), 4);
    // One name tells which is which, and then the other is too.
    let b = alike("b", ["r", "p"]);
    let comparison = compared(&a, &b, Quantity::Ratio);
    let pairs: Vec<(&str, &str)> = comparison
        .cases
        .iter()
        .map(|case| (case.name_a.as_str(), case.name.as_str()))
        .collect();
    assert_eq!(pairs, [("base", "base"), ("p", "p"), ("q", "r")]);
}

#[test]
fn runs_that_have_nothing_to_say_to_each_other_are_refused() {
    let a = known("a", 1000, 500, 300);
    let same = compare_runs(&a, &a.clone(), &Options::default());
    assert!(matches!(same, Err(RunComparisonError::SameRun { .. })));
    let mut b = known("b", 1000, 500, 300);
    for arm in &mut b.plan.groups[0].arms {
        arm.case.dataset.count = 7;
    }
    let error = compare_runs(&a, &b, &Options::default()).expect_err("nothing in common");
    assert!(
        error
            .to_string()
            .contains("no case in common: A measured 3 cases"),
        "{error}"
    );
    let expecting = |name: &str| Options {
        expected: vec![name.to_owned()],
        ..Options::default()
    };
    let error = compare_runs(&a, &known("b", 1, 1, 1), &expecting("sqlite_verson"));
    assert!(
        error
            .expect_err("no such fact")
            .hint()
            .contains("`sqlite_version`")
    );
    let error = compare_runs(&a, &known("b", 1, 1, 1), &expecting("zzz"));
    assert!(
        error
            .expect_err("no such fact")
            .hint()
            .contains("cpu_model")
    );
}

#[test]
fn unlike_machines_forbid_a_comparison_and_facts_of_the_moment_do_not() {
    let a = known("a", 1000, 500, 300);
    let mut b = known("b", 1000, 500, 300);
    assert!(compared(&a, &b, Quantity::Ratio).differences.is_empty());
    "Made Up 9001".clone_into(&mut b.environment[0].1);
    "Linux 6.18.45".clone_into(&mut b.environment[1].1);
    b.plan.seed = 2;
    let comparison = compared(&a, &b, Quantity::Ratio);
    let effects: Vec<(&str, Effect)> = comparison
        .differences
        .iter()
        .map(|difference| (difference.name.as_str(), difference.effect))
        .collect();
    assert_eq!(
        effects,
        [
            (fact::CPU_MODEL, Effect::Forbids),
            (fact::KERNEL, Effect::Told),
            ("seed", Effect::Told)
        ]
    );
    assert!(!comparison.forbidding().next().expect("one").why.is_empty());
    let expecting = Options {
        expected: vec![fact::CPU_MODEL.to_owned(), fact::FILESYSTEM.to_owned()],
        ..Options::default()
    };
    let comparison = compare_runs(&a, &b, &expecting).expect("compared");
    assert_eq!(comparison.forbidding().count(), 0);
    assert_eq!(comparison.differences[0].effect, Effect::Expected);
    assert_eq!(comparison.not_different, [fact::FILESYSTEM]);
    // A machine of which nothing is known is like none.
    b.environment.clear();
    let comparison = compared(&a, &b, Quantity::Ratio);
    assert_eq!(comparison.forbidding().count(), 1);
}

#[test]
fn another_sqlite_is_one_difference_with_all_its_arms() {
    let with_sqlite = |id: &str, version: &str| {
        let mut run = known(id, 1000, 500, 300);
        for trial in &mut run.trials {
            if OTHERS.contains(&trial.arm.as_str()) {
                for (name, value) in [
                    (said::SQLITE_VERSION, version),
                    (said::SQLITE_SOURCE_ID, version),
                    (said::COMPILE_OPTIONS, "B A"),
                    ("database_bytes", id),
                ] {
                    trial.read_back.insert(name.to_owned(), value.to_owned());
                }
            }
        }
        run
    };
    let (a, b) = (with_sqlite("a", "3.51.3"), with_sqlite("b", "3.54.1"));
    let comparison = compared(&a, &b, Quantity::Ratio);
    let [difference] = comparison.differences.as_slice() else {
        panic!("{:?}", comparison.differences);
    };
    assert_eq!(difference.name, said::SQLITE_VERSION);
    assert_eq!(difference.arms, OTHERS);
    assert_eq!(difference.effect, Effect::Forbids);
    for name in ["sqlite", said::SQLITE_VERSION] {
        let expecting = Options {
            expected: vec![name.to_owned()],
            ..Options::default()
        };
        let comparison = compare_runs(&a, &b, &expecting).expect("compared");
        assert_eq!(comparison.forbidding().count(), 0);
        assert!(comparison.not_different.is_empty());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn the_other_way_round_verdicts_are_the_opposite_ones(
        costs in proptest::collection::vec(100u64..130, 2 * 4 * 5),
        by_time in any::<bool>(),
        threshold in 0.0..0.2f64,
    ) {
        let names = ["base", "base~twin", "one", "other"];
        let run_of = |id: &str, costs: &[u64]| {
            let mut run = run(vec![reading("read", &["base", "one", "other"])]);
            id.clone_into(&mut run.head.id);
            identify(&mut run);
            for (arm, costs) in names.iter().zip(costs.chunks(5)) {
                for (round, cost) in costs.iter().enumerate() {
                    let base = if arm.starts_with("base") { 1000 } else { *cost };
                    run.trials.push(trial(arm, round as u32, &[base]));
                }
            }
            run
        };
        let (a, b) = (run_of("a", &costs[..20]), run_of("b", &costs[20..]));
        let options = Options {
            of: if by_time { Quantity::Time } else { Quantity::Ratio },
            threshold,
            ..Options::default()
        };
        let there = compare_runs(&a, &b, &options).expect("compared");
        let back = compare_runs(&b, &a, &options).expect("compared");
        for (there, back) in there.cases.iter().zip(&back.cases) {
            prop_assert_eq!(&there.name, &back.name);
            let (Ok(there), Ok(back)) = (&there.change, &back.change) else {
                continue;
            };
            let opposite = match there.verdict {
                Verdict::Faster => Verdict::Slower,
                Verdict::Slower => Verdict::Faster,
                same => same,
            };
            prop_assert_eq!(back.verdict, opposite);
            prop_assert!((there.ratio * back.ratio - 1.0).abs() < 1e-9);
        }
    }
}
