//! Spending: how the comparisons of a group scatter between slices and between rounds, and what that
//! says about spending time on more of either. The formulas are in
//! [`statistics`](crate::statistics); the words, in the reports.

use crate::case::Workload;
use crate::measurements::{Cost, Measurements};
use crate::plan::{Arm, Group};
use crate::statistics::{DEFAULT_CONFIDENCE, FEWEST_ROUNDS, Scatter, median};

/// Guess at starting and ending a worker, in nanoseconds.
const WORKER_NS: f64 = 15e6;

/// Untimed operations and messages that come with every slice, in nanoseconds.
const AROUND_SLICE_NS: f64 = 1.5e6;

/// The precision that the advice is given for: half of the interval, as a share.
pub const ADVISED_PRECISION: f64 = 0.01;

/// What a group's scatter says about how to spend time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spending {
    /// How a comparison with the baseline scatters: medians over the arms of the group.
    pub scatter: Scatter,
    /// Slices of every arm in a round, as they were taken.
    pub slices: u32,
    /// Slices in a round that give the narrowest intervals in a given time.
    pub best_slices: u32,
    /// Rounds of the slices that were taken after which intervals can be expected to be within
    /// [`ADVISED_PRECISION`] on either side; `None` if no number of rounds is enough.
    pub rounds_advised: Option<u32>,
}

impl Spending {
    /// What a group's comparisons with its baseline say; `None` with too little of them.
    pub(crate) fn of(measurements: &Measurements<'_>, group: &Group, rounds: u32) -> Option<Self> {
        let challengers = group.arms.iter().filter(|arm| arm.name != group.baseline);
        let scatters: Vec<Scatter> = challengers
            .filter_map(|arm| {
                let found = measurements.ratio(&group.baseline, &arm.name, Cost::Acknowledged)?;
                Scatter::of(&found)
            })
            .collect();
        let middle =
            |part: fn(&Scatter) -> f64| median(&scatters.iter().map(part).collect::<Vec<_>>());
        let scatter = Scatter {
            between_rounds: middle(|scatter| scatter.between_rounds)?,
            within_rounds: middle(|scatter| scatter.within_rounds)?,
        };
        let arms = || group.arms.iter();
        let round_ns: f64 = arms()
            .map(|arm| before_slices_ns(measurements, group, arm))
            .sum();
        let turn_ns: f64 = arms()
            .map(|arm| AROUND_SLICE_NS + slice_ns(measurements, group, arm))
            .sum();
        (rounds > 1).then(|| Self {
            scatter,
            slices: group.slices,
            best_slices: scatter.best_slices(round_ns, turn_ns),
            rounds_advised: scatter.rounds_for(
                ADVISED_PRECISION,
                group.slices,
                DEFAULT_CONFIDENCE,
                FEWEST_ROUNDS,
            ),
        })
    }
}

/// What a trial takes before its first slice: a process, a pass over all keys, and for writers a batch.
/// The pass of a writer is not known; it is left out. Threads warm up for about a slice.
fn before_slices_ns(measurements: &Measurements<'_>, group: &Group, arm: &Arm) -> f64 {
    let read = || median(&measurements.round_values(&arm.name, Cost::Acknowledged));
    let lead_in_ns = match arm.case.workload {
        Workload::Read { .. } => arm.case.dataset.count as f64 * read().unwrap_or(0.0),
        _ => slice_ns(measurements, group, arm),
    };
    WORKER_NS + lead_in_ns
}

fn slice_ns(measurements: &Measurements<'_>, group: &Group, arm: &Arm) -> f64 {
    let settled = || median(&measurements.round_values(&arm.name, Cost::Settled)).unwrap_or(0.0);
    // A batch that ends by time is over after its limit and one transaction more.
    let limited = |operations: u64, limit_ms: u64| {
        let whole_ns = operations as f64 * settled();
        if limit_ms == 0 {
            whole_ns
        } else {
            whole_ns.min(limit_ms as f64 * 1e6)
        }
    };
    match arm.case.workload {
        Workload::Read { .. }
        | Workload::PointQuery { .. }
        | Workload::Traffic { .. }
        | Workload::Load { .. } => group.slice_ns as f64,
        Workload::Overwrite { operations, .. } => limited(operations, 0),
        Workload::Import {
            operations,
            limit_ms,
        }
        | Workload::Update {
            operations,
            limit_ms,
            ..
        }
        | Workload::JobQueue {
            operations,
            limit_ms,
            ..
        } => limited(operations, limit_ms),
        Workload::Index { limit_ms, .. } => limited(arm.case.dataset.count, limit_ms),
        Workload::Lifecycle { ref ages, .. } => limited(
            arm.case.dataset.count * crate::lifecycle::replacements(ages),
            0,
        ),
    }
}
