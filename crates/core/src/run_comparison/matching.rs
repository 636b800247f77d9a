//! Which arms of two runs are the same case. By identity first, by name among arms of the same
//! identity; what cannot be matched without a guess is not matched.

use crate::case::Case;
use crate::plan::{Arm, Group};
use crate::run::Run;

use super::{PartDifference, Unmatched, WhyUnmatched};

/// The same case in two runs.
#[derive(Clone, Copy)]
pub(super) struct Pair<'a> {
    /// Group in the first run.
    pub(super) group_a: &'a Group,
    /// Arm in the first run.
    pub(super) a: &'a Arm,
    /// Group in the second run.
    pub(super) group_b: &'a Group,
    /// Arm in the second run.
    pub(super) b: &'a Arm,
}

/// Arms of two runs, without the repetitions of baselines.
pub(super) struct Matching<'a> {
    /// Those that are in both, in the order of the first run's plan.
    pub(super) pairs: Vec<Pair<'a>>,
    /// Those of the first run alone.
    pub(super) only_a: Vec<Unmatched>,
    /// Those of the second run alone.
    pub(super) only_b: Vec<Unmatched>,
}

/// An arm that waits for its counterpart.
struct Candidate<'a> {
    group: &'a Group,
    arm: &'a Arm,
    id: String,
    taken: bool,
}

/// Matches the arms of two runs.
pub(super) fn matched<'a>(a: &'a Run, b: &'a Run) -> Matching<'a> {
    let (mut of_a, mut of_b) = (candidates(a), candidates(b));
    let mut partners: Vec<Option<usize>> = vec![None; of_a.len()];
    for by_name in [true, false] {
        for index in 0..of_a.len() {
            if of_a[index].taken {
                continue;
            }
            let (id, name) = (&of_a[index].id, &of_a[index].arm.name);
            let free = |candidates: &[Candidate<'_>]| -> Vec<usize> {
                let found = candidates.iter().enumerate().filter(|(_, candidate)| {
                    let named = !by_name || candidate.arm.name == *name;
                    !candidate.taken && candidate.id == *id && named
                });
                found.map(|(index, _)| index).collect()
            };
            // Whoever is the only one left on both sides was renamed; anything else is a guess.
            if let ([own], [other]) = (free(&of_a).as_slice(), free(&of_b).as_slice()) {
                partners[*own] = Some(*other);
                of_b[*other].taken = true;
                of_a[*own].taken = true;
            }
        }
    }
    let pairs = of_a.iter().zip(&partners).filter_map(|(own, partner)| {
        let other = &of_b[(*partner)?];
        Some(Pair {
            group_a: own.group,
            a: own.arm,
            group_b: other.group,
            b: other.arm,
        })
    });
    Matching {
        pairs: pairs.collect(),
        only_a: unmatched(&of_a, &of_b),
        only_b: unmatched(&of_b, &of_a),
    }
}

fn candidates(run: &Run) -> Vec<Candidate<'_>> {
    let arms = run.plan.groups.iter().flat_map(|group| {
        let arms = group.arms.iter().filter(|arm| !arm.is_twin());
        arms.map(move |arm| (group, arm))
    });
    arms.map(|(group, arm)| Candidate {
        group,
        arm,
        id: arm.case.id(),
        taken: false,
    })
    .collect()
}

fn unmatched(own: &[Candidate<'_>], others: &[Candidate<'_>]) -> Vec<Unmatched> {
    let left = own.iter().filter(|candidate| !candidate.taken);
    left.map(|candidate| {
        let same_case = |other: &&Candidate<'_>| !other.taken && other.id == candidate.id;
        let same_name = others
            .iter()
            .find(|other| other.arm.name == candidate.arm.name);
        let why = if others.iter().any(|other| same_case(&other)) {
            WhyUnmatched::Ambiguous
        } else if let Some(other) = same_name {
            WhyUnmatched::OtherCase(part_differences(&candidate.arm.case, &other.arm.case))
        } else {
            WhyUnmatched::Absent
        };
        Unmatched {
            name: candidate.arm.name.clone(),
            label: candidate.arm.label.clone(),
            group: candidate.group.name.clone(),
            case_id: candidate.id.clone(),
            why,
        }
    })
    .collect()
}

/// The parts of two cases that are not the same.
fn part_differences(own: &Case, other: &Case) -> Vec<PartDifference> {
    let parts = |case: &Case| {
        let text = |part: serde_json::Result<String>| part.unwrap_or_default();
        [
            ("workload", text(serde_json::to_string(&case.workload))),
            ("blobs", case.dataset.count.to_string()),
            ("size", text(serde_json::to_string(&case.dataset.size))),
            ("compressibility", case.dataset.compressibility.to_string()),
            ("engine", case.engine.clone()),
            ("settings", case.chosen.to_string()),
            ("durability", case.durability.to_string()),
            ("cache", case.cache.to_string()),
        ]
    };
    let pairs = parts(own).into_iter().zip(parts(other));
    pairs
        .filter(|((_, own), (_, other))| own != other)
        .map(|((part, here), (_, there))| PartDifference { part, here, there })
        .collect()
}
