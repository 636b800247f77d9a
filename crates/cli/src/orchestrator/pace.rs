//! Pace: how a budget of time is shared among groups, and whether a group goes on with another round.
//! Widths are judged by [`sqlitmus_core::stopping`]; here is the clock that it does not read.

use std::time::{Duration, Instant};

use sqlitmus_core::plan::{Arm, Group, Plan};
use sqlitmus_core::stopping::StoppingRule;

use crate::progress::{READ_NS, filling_ns, group_ns, round_ns};
use crate::stores::Stores;

/// A round can take somewhat longer than the longest so far: by one in so many.
const LATER_ROUNDS_MAY_TAKE_LONGER: u32 = 20;

/// The pace of one group.
#[derive(Debug)]
pub struct Pace {
    /// When it has enough rounds.
    rule: StoppingRule,
    /// When its time is over.
    ends: Option<Instant>,
    /// What the next round is expected to take at the most.
    round: Duration,
}

impl Pace {
    /// The pace of the group at an index of the plan, whose stores are filled. With a deadline it gets
    /// the share of the time left that it has of the estimate of all groups still to come.
    #[must_use]
    pub fn of(plan: &Plan, index: usize, deadline: Option<Instant>, stores: &Stores) -> Self {
        let (group, later) = match plan.groups.get(index..).and_then(<[Group]>::split_first) {
            Some((group, later)) => (Some(group), later),
            None => (None, &[][..]),
        };
        let planned = group.map_or(0, |group| group.rounds);
        let own_ns = group.map_or(0, group_ns);
        let all_ns = own_ns + later.iter().map(group_ns).sum::<u64>();
        let reserved_ns = group.map_or(0, verifying_ns)
            + later
                .iter()
                .map(|group| filling_ns(blobs_to_fill(stores, group)) + verifying_ns(group))
                .sum::<u64>();
        let ends = deadline.map(|deadline| {
            let now = Instant::now();
            let left = deadline.saturating_duration_since(now);
            let left = left.saturating_sub(Duration::from_nanos(reserved_ns));
            now + left.mul_f64(own_ns as f64 / all_ns.max(1) as f64)
        });
        Self {
            rule: plan.stopping.rule(planned),
            ends,
            // The estimate is a guess; half of it is at least not far too long.
            round: Duration::from_nanos(group.map_or(0, round_ns) / 2),
        }
    }

    /// Notes how long a round has taken.
    pub fn note(&mut self, took: Duration) {
        self.round = self.round.max(took + took / LATER_ROUNDS_MAY_TAKE_LONGER);
    }

    /// Whether the widths are to be looked at after so many rounds.
    #[must_use]
    pub fn looks_after(&self, rounds: u32) -> bool {
        self.rule.precision.is_some() && self.rule.looks_after(rounds)
    }

    /// Whether so many rounds that count are enough, whatever time is left.
    #[must_use]
    pub fn has_enough(&self, rounds: u32, half_width: Option<f64>) -> bool {
        !self.rule.goes_on(rounds, half_width)
    }

    /// Whether to go on after so many rounds that count, the widest interval having this half width.
    #[must_use]
    pub fn goes_on(&self, rounds: u32, half_width: Option<f64>) -> bool {
        self.rule.goes_on(rounds, half_width) && !self.is_over()
    }

    /// Whether there is no time for another round.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.ends
            .is_some_and(|ends| Instant::now() + self.round > ends)
    }
}

fn blobs_to_fill(stores: &Stores, group: &Group) -> u64 {
    let stores = stores.to_fill(group);
    let of_arm = |arm: &&Arm| arm.case.dataset.count * (1 + u64::from(arm.case.age));
    stores.values().map(of_arm).sum()
}

/// Guess at verifying every blob of every written store after the last round.
fn verifying_ns(group: &Group) -> u64 {
    let written = group.arms.iter().filter(|arm| arm.case.workload.writes());
    written
        .map(|arm| arm.case.dataset.count * 2 * READ_NS)
        .sum()
}
