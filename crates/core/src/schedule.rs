//! Schedules: who takes which turn. Slices of all arms are interleaved in a seeded random order,
//! so that drift of the machine falls on all of them alike; where all stores together would not
//! stay in memory, arms are measured in pairs with their baseline.

use crate::dataset::mix;
use crate::keys::shuffle;

/// The order of one turn: every arm once.
#[must_use]
pub fn turn_order(arms: usize, seed: u64, round: u32, turn: u32) -> Vec<usize> {
    let mut order: Vec<usize> = (0..arms).collect();
    let place = (u64::from(round) << 32) | u64::from(turn);
    shuffle(&mut order, mix(seed ^ mix(place)));
    order
}

/// Where in the common key order an arm starts in a round, as a share of the whole. Arms are
/// spread evenly; rounds move on by the golden ratio, so that over the rounds every arm visits
/// every region of the keys.
#[must_use]
pub fn key_offset(arm: usize, arms: usize, round: u32) -> f64 {
    const GOLDEN: f64 = 0.618_033_988_749_894_9;
    (arm as f64 / arms.max(1) as f64 + f64::from(round) * GOLDEN).fract()
}

/// Memory that one arm wants to find in the page cache or takes for itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArmMemory {
    /// Bytes.
    pub bytes: u64,
    /// Arms with the same number share their store, whose bytes count once.
    pub store: usize,
}

/// Splits the arms of a group into sets that are measured together: one set of all if their
/// stores fit into `limit_bytes`, else the always-present arms (baseline and twin) with one
/// challenger each. Returns indices into `arms`.
#[must_use]
pub fn live_sets(arms: &[ArmMemory], always: &[usize], limit_bytes: u64) -> Vec<Vec<usize>> {
    let mut stores: Vec<usize> = Vec::new();
    let mut total = 0u64;
    for arm in arms {
        if !stores.contains(&arm.store) {
            stores.push(arm.store);
            total = total.saturating_add(arm.bytes);
        }
    }
    if total <= limit_bytes {
        return vec![(0..arms.len()).collect()];
    }
    let challengers = (0..arms.len()).filter(|arm| !always.contains(arm));
    let sets: Vec<Vec<usize>> = challengers
        .map(|challenger| always.iter().copied().chain([challenger]).collect())
        .collect();
    if sets.is_empty() {
        vec![always.to_vec()]
    } else {
        sets
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_has_every_arm_once_and_follows_from_the_seed() {
        let mut orders = Vec::new();
        for turn in 0..50 {
            let order = turn_order(5, 1, 0, turn);
            assert_eq!(order, turn_order(5, 1, 0, turn));
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, [0, 1, 2, 3, 4]);
            orders.push(order);
        }
        orders.dedup();
        assert!(orders.len() > 40);
        // Every arm is first about as often as any other.
        let first = orders.iter().filter(|order| order[0] == 2).count();
        assert!((2..25).contains(&first), "{first}");
    }

    #[test]
    fn offsets_are_apart_and_move_with_the_rounds() {
        assert!((key_offset(1, 4, 0) - 0.25).abs() < 1e-12);
        assert!((key_offset(1, 4, 0) - key_offset(1, 4, 1)).abs() > 0.1);
        assert!((0..100).all(|round| (0.0..1.0).contains(&key_offset(3, 4, round))));
    }

    #[test]
    fn what_does_not_fit_is_measured_in_pairs_with_the_baseline() {
        let arm = |bytes, store| ArmMemory { bytes, store };
        let arms = [arm(10, 0), arm(10, 1), arm(10, 1), arm(10, 0)];
        assert_eq!(live_sets(&arms, &[0, 3], 20), [vec![0, 1, 2, 3]]);
        assert_eq!(
            live_sets(&arms, &[0, 3], 19),
            [vec![0, 3, 1], vec![0, 3, 2]]
        );
        assert_eq!(live_sets(&arms[..1], &[0], 1), [vec![0]]);
    }
}
