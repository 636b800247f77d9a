//! What an operation uses: worked values.

use std::collections::BTreeMap;

use sqlitmus_core::measurements::Measurements;
use sqlitmus_core::resource_use::ResourceUse;
use sqlitmus_core::run::{Outcome, SystemCalls, Trial};

use crate::fixture::{assert_near, ended, trial};
use crate::run_with;

/// Two slices of ten operations that used these.
fn using(arm: &str, round: u32, resources: &[(&str, u64)]) -> Trial {
    let resources = resources
        .iter()
        .map(|(name, used)| ((*name).to_owned(), *used));
    Trial {
        resources: resources.collect(),
        ..trial(arm, round, &[5, 6])
    }
}

#[test]
fn sums_are_divided_by_operations_and_levels_are_the_largest() {
    let counted = SystemCalls {
        operations: 4,
        calls: BTreeMap::from([("openat".to_owned(), 4), ("read".to_owned(), 6)]),
    };
    let first = Trial {
        system_calls: Some(counted),
        ..using(
            "one",
            0,
            &[
                ("read_calls", 30),
                ("peak_memory_bytes", 7),
                ("store_cached_bytes", 99),
            ],
        )
    };
    let second = using("one", 1, &[("read_calls", 50), ("peak_memory_bytes", 5)]);
    let failed = ended(
        Outcome::Failed("it did".to_owned()),
        using("one", 2, &[("read_calls", 1_000_000)]),
    );
    let run = run_with(vec![first, second, failed]);
    let used = ResourceUse::of(&Measurements::new(&run), "one").expect("two trials count");
    // 80 calls by two trials of two slices of ten operations.
    assert_eq!(used.operations, 40);
    assert_near(used.per_operation["read_calls"], 2.0);
    assert_eq!(
        used.levels,
        BTreeMap::from([("peak_memory_bytes".to_owned(), 7)])
    );
    assert!(!used.per_operation.contains_key("store_cached_bytes"));
    assert_near(used.system_calls["read"], 1.5);
    assert_near(used.system_calls_per_operation().expect("counted"), 2.5);
    assert_eq!(used.device_bytes_per_content_byte(), None);
}

#[test]
fn bytes_from_the_device_are_set_against_the_content() {
    let run = run_with(vec![using("one", 0, &[("device_read_bytes", 6_000)])]);
    let used = ResourceUse::of(&Measurements::new(&run), "one").expect("a trial counts");
    let content = used.content_bytes as f64;
    assert!(content > 0.0);
    let factor = used.device_bytes_per_content_byte().expect("counted");
    assert_near(factor, 6_000.0 / content);
    assert_eq!(used.system_calls_per_operation(), None);
    assert!(ResourceUse::of(&Measurements::new(&run), "other").is_none());
}
