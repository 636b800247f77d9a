//! Mistakes that were made once: arms of different groups paired by accident, reasons that were
//! not the reason.
#[allow(dead_code)]
mod fixture;
use fixture::*;
use sqlitmus_core::claims::Judgement;
use sqlitmus_core::measurements::*;
use sqlitmus_core::suite::{Claim, ClaimQuantity};

#[test]
fn arms_of_different_groups_are_compared_unpaired_though_their_rounds_have_the_same_numbers() {
    let mut run = run(vec![
        reading("read", &["base"]),
        reading("write", &["slow"]),
    ]);
    run.trials = vec![
        trial("base", 0, &[50]),
        trial("base", 1, &[200]),
        trial("slow", 0, &[100]),
        trial("slow", 1, &[400]),
    ];
    let estimate = Measurements::new(&run)
        .ratio("slow", "base", Cost::Acknowledged)
        .expect("compared");
    assert_near(estimate.ratio, 2.0);
    assert_eq!((estimate.paired, estimate.slices), (false, 0));
    // Welch: reach t(0.975, 2) x sqrt 2 x ln 2 (paired: a point).
    let interval = estimate.interval.expect("an interval");
    assert!(((interval.high / 2.0).log2() - T_THREE_ROUNDS * 2.0f64.sqrt()).abs() < 1e-5);
}

#[test]
fn a_space_claim_without_footprints_does_not_blame_the_rounds() {
    for taken in [None, Some(0)] {
        let mut run = steady_run(8, 200, 200, &[("one", 100)]);
        occupies(&mut run, "base", 4000);
        if let Some(bytes) = taken {
            occupies(&mut run, "one", bytes);
        }
        run.plan.claims = vec![Claim {
            of: ClaimQuantity::Space,
            ..claim("base", "one", None, Some(1.0))
        }];
        let claims = sqlitmus_core::analysis::analyse(&run).claims;
        let Judgement::NotMeasured(reason) = &claims[0].judgement else {
            panic!()
        };
        assert!(!reason.contains("rounds"), "{reason}");
    }
}

#[test]
fn a_time_claim_whose_arm_has_no_counted_slice_does_not_blame_the_rounds() {
    let mut run = steady_run(8, 200, 200, &[("one", 100)]);
    for trial in run.trials.iter_mut().filter(|t| t.arm == "one") {
        trial.samples[0].device_read_bytes = Some(1);
    }
    assert_ne!(Measurements::new(&run).status("one"), ArmStatus::Measured);
}
