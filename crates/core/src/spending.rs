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
        let round_ns: f64 = arms().map(|arm| before_slices_ns(measurements, arm)).sum();
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
/// The pass of a writer is not known; it is left out.
fn before_slices_ns(measurements: &Measurements<'_>, arm: &Arm) -> f64 {
    let cost_ns = |cost: Cost| median(&measurements.round_values(&arm.name, cost)).unwrap_or(0.0);
    let lead_in_ns = match arm.case.workload {
        Workload::Read { .. } => arm.case.dataset.count as f64 * cost_ns(Cost::Acknowledged),
        Workload::Overwrite { operations, .. } => operations as f64 * cost_ns(Cost::Settled),
    };
    WORKER_NS + lead_in_ns
}

fn slice_ns(measurements: &Measurements<'_>, group: &Group, arm: &Arm) -> f64 {
    match arm.case.workload {
        Workload::Read { .. } => group.slice_ns as f64,
        Workload::Overwrite { operations, .. } => {
            let settled = median(&measurements.round_values(&arm.name, Cost::Settled));
            operations as f64 * settled.unwrap_or(0.0)
        }
    }
}
