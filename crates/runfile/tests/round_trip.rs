//! What is recorded comes back as it was: whole runs, interrupted ones, rounds measured again.

mod fixture;

use std::collections::BTreeMap;

use proptest::prelude::*;
use sqlitmus_core::dataset::SizeDistribution;
use sqlitmus_core::latencies::Latencies;
use sqlitmus_core::run::{Footprint, Outcome, Run, RunState, Sample, SystemCalls, Trial};
use sqlitmus_core::suite::{Chart, ChartKind, Published};
use sqlitmus_runfile::{
    RecordedRound, RunFile, RunFileError, SUPERSEDED, head, heads, read, rounds,
};

use fixture::{ARMS, GROUP};

const LARGEST: u64 = i64::MAX as u64;

fn outcomes() -> impl Strategy<Value = Outcome> {
    prop_oneof![
        3 => Just(Outcome::Valid),
        1 => any::<String>().prop_map(Outcome::Invalid),
        1 => any::<String>().prop_map(Outcome::Failed),
        1 => any::<String>().prop_map(Outcome::Skipped),
        1 => any::<String>().prop_map(Outcome::Refuted),
    ]
}

fn samples() -> impl Strategy<Value = Vec<Sample>> {
    let number = || 0..=LARGEST;
    let sample = (
        (any::<u32>(), any::<u32>()),
        (number(), number(), number()),
        proptest::collection::vec(proptest::option::of(number()), 6),
    );
    proptest::collection::vec(sample, 0..6).prop_map(|samples| {
        let by_turn: BTreeMap<u32, Sample> = samples
            .into_iter()
            .map(
                |((turn, place), (operations, content_bytes, elapsed_ns), known)| {
                    let sample = Sample {
                        turn,
                        place,
                        operations,
                        content_bytes,
                        elapsed_ns,
                        settle_ns: known[0],
                        device_read_bytes: known[1],
                        major_faults: known[2],
                        involuntary_context_switches: known[3],
                        machine_steal_ns: known[4],
                        device_read_ns: known[5],
                    };
                    (turn, sample)
                },
            )
            .collect();
        by_turn.into_values().collect()
    })
}

/// Counted or not; no operation makes no calls at all.
fn system_calls() -> impl Strategy<Value = Option<SystemCalls>> {
    let calls = proptest::collection::btree_map(any::<String>(), 0..=LARGEST, 1..4);
    let counted = (1..=LARGEST, calls);
    proptest::option::of(counted.prop_map(|(operations, calls)| SystemCalls { operations, calls }))
}

fn trials() -> impl Strategy<Value = Trial> {
    let latencies = proptest::collection::btree_map(any::<u64>(), any::<u64>(), 0..6);
    let read_back = proptest::collection::btree_map(any::<String>(), any::<String>(), 0..3);
    let resources = proptest::collection::btree_map(any::<String>(), 0..=LARGEST, 0..4);
    let place = (0..ARMS.len(), 0..4u32, any::<u32>());
    (
        place,
        outcomes(),
        read_back,
        resources,
        system_calls(),
        latencies,
        samples(),
    )
        .prop_map(
            |(
                (arm, round, set),
                outcome,
                read_back,
                resources,
                system_calls,
                latencies,
                samples,
            )| Trial {
                arm: ARMS[arm].to_owned(),
                round,
                set,
                outcome,
                read_back,
                resources,
                system_calls,
                latencies: Latencies(latencies.into_iter().collect()),
                samples,
            },
        )
}

fn footprints() -> impl Strategy<Value = BTreeMap<String, Footprint>> {
    let number = || 0..=LARGEST;
    let footprint = (number(), number(), number(), number(), number()).prop_map(
        |(content_bytes, apparent_bytes, allocated_bytes, files, directories)| Footprint {
            content_bytes,
            apparent_bytes,
            allocated_bytes,
            files,
            directories,
        },
    );
    let arm = (0..ARMS.len()).prop_map(|arm| ARMS[arm].to_owned());
    proptest::collection::btree_map(arm, footprint, 0..4)
}

prop_compose! {
    fn runs()(
        id in any::<String>(),
        environment in proptest::collection::vec(any::<(String, String)>(), 0..4),
        mut trials in proptest::collection::vec(trials(), 0..8),
        footprints in footprints(),
        (compressibility, sigma, ratio) in (0.0..1.0, 0.0..10.0, proptest::num::f64::NORMAL),
        seed in any::<u64>(),
    ) -> Run {
        trials.sort_by_key(|trial| trial.round);
        let mut run = fixture::run();
        run.head.id = id;
        run.plan.seed = seed;
        let dataset = &mut run.plan.groups[0].arms[1].case.dataset;
        dataset.compressibility = compressibility;
        dataset.size = SizeDistribution::LogNormal { median: 5, sigma, maximum: 9 };
        run.plan.charts.push(Chart {
            title: "Read".to_owned(),
            shows: ChartKind::Time,
            answers: String::new(),
            arms: vec!["files".to_owned()],
            versus: Vec::new(),
            published: vec![Published {
                arm: "files".to_owned(),
                ratio,
                machine: "Mac".to_owned(),
            }],
        });
        Run { environment, trials, footprints, ..run }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_run_comes_back_as_it_was(run in runs()) {
        let directory = tempfile::tempdir().expect("directory");
        let path = directory.path().join("a.run");
        let file = fixture::write(&path, &run, 3).expect("written");
        prop_assert_eq!(&file.run().expect("its own"), &run);
        drop(file);
        prop_assert_eq!(read(&path).expect("by path"), run);
        prop_assert_eq!(fixture::names(directory.path()), ["a.run"]);
        prop_assert_eq!(fixture::integrity(&path), "ok");
    }
}

#[test]
fn an_interrupted_run_reads_without_its_end() {
    let directory = tempfile::tempdir().expect("directory");
    let path = directory.path().join("a.run");
    let head = fixture::head("1", "2026-01-01T00:00:00Z");
    let mut file = RunFile::create(&path, &head, &fixture::plan(), &[]).expect("created");
    let trials = fixture::round_of_trials(0);
    file.record_round(GROUP, 0, &trials, true)
        .expect("recorded");
    // Killed here: nothing is closed or finished.
    std::mem::forget(file);
    let run = read(&path).expect("readable");
    assert_eq!(run.head, head);
    assert_eq!(run.head.state, RunState::Started);
    assert_eq!(run.trials, trials);
}

#[test]
fn a_round_that_was_interrupted_is_measured_again_and_counts_once() {
    let directory = tempfile::tempdir().expect("directory");
    let path = fixture::run_file(directory.path());
    let recorded = |round, attempt, complete| RecordedRound {
        group: GROUP.to_owned(),
        round,
        attempt,
        complete,
    };
    let before = [
        recorded(0, 0, true),
        recorded(1, 0, true),
        recorded(2, 0, false),
    ];
    assert_eq!(rounds(&path).expect("rounds"), before);
    assert_eq!(read(&path).expect("read").trials[6].outcome, Outcome::Valid);

    let mut file = RunFile::open_for_append(&path).expect("opened");
    assert_eq!(file.rounds().expect("rounds"), before);
    let again = fixture::round_of_trials(2);
    file.record_round(GROUP, 2, &again, true).expect("recorded");
    file.finish(RunState::Complete, Some("2026-01-02T04:00:00Z"))
        .expect("finished");
    drop(file);

    assert_eq!(rounds(&path).expect("rounds")[3], recorded(2, 1, true));
    let run = read(&path).expect("read");
    assert_eq!(run.head.state, RunState::Complete);
    assert_eq!(
        run.head.finished_utc.as_deref(),
        Some("2026-01-02T04:00:00Z")
    );
    let superseded = &run.trials[6];
    assert_eq!(superseded.outcome, Outcome::Invalid(SUPERSEDED.to_owned()));
    assert_eq!(superseded.samples.len(), 1);
    assert_eq!(run.trials[7..], again);
}

#[test]
fn a_refused_round_leaves_nothing() {
    let directory = tempfile::tempdir().expect("directory");
    let path = fixture::run_file(directory.path());
    let before = read(&path).expect("read");
    let mut file = RunFile::open_for_append(&path).expect("opened");
    let mut refuse = |group: &str, round, change: fn(&mut Trial)| {
        let mut trials = fixture::round_of_trials(round);
        change(&mut trials[2]);
        file.record_round(group, round, &trials, true)
            .expect_err("refused")
    };
    type Refused = RunFileError;
    assert!(matches!(
        refuse(GROUP, 1, |_| ()),
        Refused::RoundComplete { round: 1, .. }
    ));
    assert!(matches!(
        refuse("raed", 5, |_| ()),
        Refused::UnknownGroup { .. }
    ));
    let renamed = refuse(GROUP, 5, |trial| trial.arm = "flies".to_owned());
    assert!(matches!(renamed, Refused::UnknownArm { .. }));
    let moved = refuse(GROUP, 5, |trial| trial.round = 4);
    assert!(matches!(
        moved,
        Refused::WrongRound {
            found: 4,
            expected: 5,
            ..
        }
    ));
    let repeated = refuse(GROUP, 5, |trial| trial.samples[1].turn = 0);
    assert!(matches!(repeated, Refused::WrongTurns { .. }));
    let large = refuse(GROUP, 5, |trial| trial.samples[3].elapsed_ns = u64::MAX);
    assert!(matches!(large, Refused::TooLarge { .. }));
    let footprint = file.record_footprint("flies", &fixture::footprint());
    assert!(matches!(footprint, Err(Refused::UnknownArm { .. })));
    drop(file);
    assert_eq!(read(&path).expect("read"), before);
}

#[test]
fn a_footprint_is_replaced() {
    let directory = tempfile::tempdir().expect("directory");
    let path = fixture::run_file(directory.path());
    let mut file = RunFile::open_for_append(&path).expect("opened");
    let larger = Footprint {
        files: 2000,
        ..fixture::footprint()
    };
    file.record_footprint("files", &larger).expect("recorded");
    let footprints = file.run().expect("run").footprints;
    assert_eq!(footprints, BTreeMap::from([("files".to_owned(), larger)]));
}

#[test]
fn heads_are_listed_from_the_oldest_and_other_files_passed_over() {
    let directory = tempfile::tempdir().expect("directory");
    let place = directory.path();
    let create = |name: &str, id: &str, started_utc: &str| {
        let head = fixture::head(id, started_utc);
        RunFile::create(&place.join(name), &head, &fixture::plan(), &[]).expect("created")
    };
    create("a", "3", "2026-01-03T00:00:00Z");
    create("b", "1", "2026-01-01T00:00:00Z");
    create("c", "2", "2026-01-01T00:00:00Z");
    create("unfinished.new", "4", "2026-01-04T00:00:00Z");
    std::fs::write(place.join("notes.txt"), "not a run").expect("written");
    std::fs::write(place.join("empty"), "").expect("written");
    std::fs::create_dir(place.join("below")).expect("directory");
    std::fs::copy(place.join("a"), place.join("cut")).expect("copied");
    let cut = std::fs::OpenOptions::new()
        .write(true)
        .open(place.join("cut"));
    cut.and_then(|file| file.set_len(5000)).expect("cut");

    let listing = heads(place).expect("listed");
    let ids: Vec<&str> = listing
        .runs
        .iter()
        .map(|run| run.head.id.as_str())
        .collect();
    assert_eq!(ids, ["1", "2", "3"]);
    assert_eq!(listing.runs[2], head(&place.join("a")).expect("head"));
    assert_eq!(
        (
            listing.runs[0].suite.as_str(),
            listing.runs[0].scale.as_str()
        ),
        ("article", "default")
    );
    assert!(matches!(
        listing.unreadable[..],
        [RunFileError::Truncated { .. }]
    ));
    assert!(
        heads(&place.join("nowhere"))
            .expect("listed")
            .runs
            .is_empty()
    );
}

/// Not in the usual run, because it depends on speed: `cargo test --release -- --ignored`.
#[test]
#[ignore = "takes seconds and depends on the machine's speed"]
fn a_large_run_is_read_quickly() {
    let directory = tempfile::tempdir().expect("directory");
    let path = directory.path().join("large.run");
    let names: Vec<String> = (0..500).map(|number| format!("arm {number}")).collect();
    let plan = fixture::plan_of(names.iter().map(|name| fixture::arm(name)).collect());
    let head = fixture::head("1", "2026-01-01T00:00:00Z");
    let mut file = RunFile::create(&path, &head, &plan, &[]).expect("created");
    for round in 0..50 {
        let trial = |name: &String| {
            let mut trial = fixture::trial(name, round, 30);
            trial.latencies = Latencies((0..300).map(|step| (1000 + step, step)).collect());
            let resource = |number: u64| (format!("resource_{number}_ns"), number);
            trial.resources = (0..12).map(resource).collect();
            trial
        };
        let trials: Vec<Trial> = names.iter().map(trial).collect();
        file.record_round(GROUP, round, &trials, true)
            .expect("recorded");
    }
    drop(file);
    let begin = std::time::Instant::now();
    let run = read(&path).expect("read");
    let elapsed = begin.elapsed();
    assert_eq!(run.trials.len(), 25_000);
    assert_eq!(run.trials[24_999].samples.len(), 30);
    assert!(elapsed.as_secs_f64() < 2.0, "{elapsed:?}");
}

#[test]
fn a_plan_goes_on_with_more_groups_and_changes_none() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("longer.run");
    let short = fixture::plan();
    let mut file = RunFile::create(
        &path,
        &fixture::head("longer", "2026-01-01T00:00:00Z"),
        &short,
        &[],
    )
    .expect("created");
    let mut longer = short.clone();
    let mut group = short.groups[0].clone();
    group.name = "later".to_owned();
    group.baseline = format!("later {}", group.baseline);
    for arm in &mut group.arms {
        arm.name = format!("later {}", arm.name);
    }
    let arm = group.arms[0].name.clone();
    longer.groups.push(group);
    file.extend_plan(&longer).expect("extended");
    let footprint = Footprint::default();
    file.record_footprint(&arm, &footprint)
        .expect("the arm is known");
    assert_eq!(file.run().expect("read").plan, longer);
    let mut other = longer.clone();
    other.groups[0].rounds += 1;
    for wrong in [other, short] {
        let refused = file.extend_plan(&wrong).expect_err("groups would change");
        assert!(
            matches!(refused, RunFileError::PlanChanges { .. }),
            "{refused}"
        );
    }
    drop(file);
    assert_eq!(read(&path).expect("read").plan, longer);
}
