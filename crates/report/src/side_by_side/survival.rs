//! What commits survive, run by run: what each case claims, and what the durability experiment proved of it in
//! each place. A proof belongs to a filesystem, so that the same case may be proved in one run and only claimed in
//! another. Cases are matched as in [`super`].

use sqlitmus_core::case::Durability;
use sqlitmus_core::durability::Standing;

use crate::proved::{Proved, Tier};
use crate::summary::label_of;

use super::Analysed;

/// Cases that write and claim something.
#[derive(Debug, Default)]
pub(crate) struct Survival {
    /// In the order in which they first appear.
    pub(crate) rows: Vec<SurvivalRow>,
}

/// A case.
#[derive(Debug)]
pub(crate) struct SurvivalRow {
    pub(crate) label: String,
    /// Of each run; `None` if it has no such case.
    pub(crate) of_runs: Vec<Option<Tier>>,
}

impl Survival {
    pub(crate) fn of(runs: &[Analysed<'_>]) -> Self {
        let mut rows: Vec<((String, String), SurvivalRow)> = Vec::new();
        for (index, one) in runs.iter().enumerate() {
            let proved = Proved::of(one.run);
            let arms = one.run.plan.groups.iter().flat_map(|group| &group.arms);
            for arm in arms.filter(|arm| !arm.is_twin() && arm.case.durability > Durability::None) {
                let Some(tier) = proved.tier(arm) else {
                    continue;
                };
                let key = (arm.case.id(), arm.name.clone());
                let at = rows.iter().position(|(known, _)| *known == key);
                let at = at.unwrap_or_else(|| {
                    let row = SurvivalRow {
                        label: label_of(one.run, &arm.name),
                        of_runs: runs.iter().map(|_| None).collect(),
                    };
                    rows.push((key, row));
                    rows.len() - 1
                });
                rows[at].1.of_runs[index] = Some(tier);
            }
        }
        Self {
            rows: rows.into_iter().map(|(_, row)| row).collect(),
        }
    }

    /// Whether the experiment says something of any case of any run.
    pub(crate) fn is_proved(&self) -> bool {
        let tiers = self.rows.iter().flat_map(|row| &row.of_runs).flatten();
        tiers
            .into_iter()
            .any(|tier| matches!(tier.standing, Standing::Kept(_) | Standing::Broken(..)))
    }
}
