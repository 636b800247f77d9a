//! Judgements: every comparison that the charts and the conclusion of a run name, each judged once,
//! together with the others of its group. What a verdict needs is in [`crate::verdict`]; published
//! sentences are judged in [`crate::claims`].

use std::collections::BTreeMap;

use crate::measurements::{Cost, Measurements};
use crate::placeholders::fill;
use crate::plan::Plan;
use crate::statistics::RatioEstimate;
use crate::suite::ChartKind;
use crate::verdict::{Judged, Verdict, judge_together};

/// Reference, arm, and which part of their time is compared.
type Key = (String, String, Cost);

/// The comparisons of a run with their verdicts.
pub struct Judgements {
    comparisons: BTreeMap<Key, (RatioEstimate, Verdict)>,
    /// How many comparisons each group's family has.
    families: BTreeMap<String, usize>,
}

impl Judgements {
    /// Compares and judges everything that the plan's charts and conclusion ask for. The family of a
    /// comparison is all that are asked for of arms of the same group: what a reader sees side by side.
    #[must_use]
    pub fn of(measurements: &Measurements<'_>) -> Self {
        let plan = &measurements.run().plan;
        let mut families: BTreeMap<String, Vec<(Key, RatioEstimate)>> = BTreeMap::new();
        for key in asked_for(plan) {
            let (reference, arm, cost) = &key;
            let group = plan.arm(arm).map(|(group, _)| group.name.clone());
            let estimate = measurements.ratio(reference, arm, *cost);
            if let (Some(group), Some(estimate)) = (group, estimate) {
                families.entry(group).or_default().push((key, estimate));
            }
        }
        let mut found = Self {
            comparisons: BTreeMap::new(),
            families: BTreeMap::new(),
        };
        for (group, family) in families {
            found.families.insert(group, family.len());
            let judged: Vec<Judged<'_>> = family
                .iter()
                .map(|((_, arm, cost), estimate)| Judged {
                    estimate,
                    noise_floor: measurements.noise_floor_of(arm, *cost),
                })
                .collect();
            let verdicts = judge_together(&judged, plan.threshold);
            for ((key, estimate), verdict) in family.into_iter().zip(verdicts) {
                found.comparisons.insert(key, (estimate, verdict));
            }
        }
        found
    }

    /// A comparison with its verdict; `None` if it was not asked for or cannot be made.
    #[must_use]
    pub fn compared(
        &self,
        reference: &str,
        arm: &str,
        cost: Cost,
    ) -> Option<&(RatioEstimate, Verdict)> {
        let key = (reference.to_owned(), arm.to_owned(), cost);
        self.comparisons.get(&key)
    }

    /// How many comparisons were judged together in a group.
    #[must_use]
    pub fn family_size(&self, group: &str) -> usize {
        self.families.get(group).copied().unwrap_or(0)
    }
}

/// What charts and conclusion compare, each comparison once. No arm is compared with itself.
fn asked_for(plan: &Plan) -> Vec<Key> {
    let mut keys: Vec<Key> = Vec::new();
    let mut ask = |reference: &str, arm: &str, cost: Cost| {
        let key = (reference.to_owned(), arm.to_owned(), cost);
        if reference != arm && !keys.contains(&key) {
            keys.push(key);
        }
    };
    let charts = plan.charts.iter();
    for chart in charts.filter(|chart| chart.shows == ChartKind::Time) {
        for arm in &chart.arms {
            let writes = plan
                .arm(arm)
                .is_some_and(|(_, arm)| arm.case.workload.writes());
            for versus in &chart.versus {
                ask(&versus.arm, arm, Cost::Acknowledged);
                if writes {
                    ask(&versus.arm, arm, Cost::Settled);
                }
            }
        }
    }
    for sentence in &plan.conclusion {
        // A sentence that is not well formed says so when it is filled in.
        let _ = fill(sentence, &mut |kind, arm, reference| {
            match kind {
                "fast" => ask(reference, arm, Cost::Acknowledged),
                "fast-settled" => ask(reference, arm, Cost::Settled),
                _ => {}
            }
            Ok(String::new())
        });
    }
    keys
}
