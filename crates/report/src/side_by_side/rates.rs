//! Rates of several runs side by side: groups about rows, jobs and trees, whose figures are count, seconds
//! and the one divided by the other, and not charts. Arms are matched as in [`super`].

use crate::oltp::{Rate, tables};
use crate::proved::claimed_in_short;

use super::Analysed;

/// The rates of a group that at least one run has.
pub(crate) struct RateGroup {
    /// Name of the group.
    pub(crate) title: String,
    /// What is counted.
    pub(crate) unit: String,
    pub(crate) rows: Vec<RateOfRuns>,
    /// What was published for its arms: whole sentences.
    pub(crate) published: Vec<String>,
}

/// What an arm did in each run.
pub(crate) struct RateOfRuns {
    pub(crate) label: String,
    /// What a write is claimed to survive, in a word; empty for reading arms.
    pub(crate) survives: &'static str,
    /// The figures of each run, or why there are none; `None` if it has no such arm.
    pub(crate) of_runs: Vec<Option<Result<Rate, String>>>,
}

impl RateOfRuns {
    /// The figures of a run, if it has some.
    pub(crate) fn rate(&self, run: usize) -> Option<&Rate> {
        self.of_runs.get(run)?.as_ref()?.as_ref().ok()
    }

    /// The largest rate of any run, operations a second.
    pub(crate) fn largest(&self) -> f64 {
        let rates = (0..self.of_runs.len()).filter_map(|run| self.rate(run));
        rates
            .map(Rate::per_second)
            .filter(|rate| rate.is_finite())
            .fold(0.0, f64::max)
    }
}

/// All groups that are shown as rates, in the order in which they first appear.
pub(crate) fn groups(runs: &[Analysed<'_>]) -> Vec<RateGroup> {
    let mut groups: Vec<RateGroup> = Vec::new();
    // Of each row of each group: identity of the case, name of the arm, what was counted.
    let mut keys: Vec<Vec<(String, String, &'static str)>> = Vec::new();
    for (index, one) in runs.iter().enumerate() {
        for table in tables(one.run, one.analysis) {
            let at = groups.iter().position(|known| known.title == table.title);
            let at = at.unwrap_or_else(|| {
                groups.push(RateGroup {
                    title: table.title.clone(),
                    unit: table.unit.clone(),
                    rows: Vec::new(),
                    published: Vec::new(),
                });
                keys.push(Vec::new());
                groups.len() - 1
            });
            for sentence in table.published {
                if !groups[at].published.contains(&sentence) {
                    groups[at].published.push(sentence);
                }
            }
            for row in table.rows {
                let planned = one.run.plan.arm(&row.arm).map(|(_, arm)| arm);
                let id = planned.map_or_else(String::new, |arm| arm.case.id());
                let key = (id, row.arm.clone(), row.counted);
                let found = keys[at].iter().position(|known| *known == key);
                let place = found.unwrap_or_else(|| {
                    keys[at].push(key);
                    groups[at].rows.push(RateOfRuns {
                        label: row.label.clone(),
                        // Each place may have proofs of its own: here stands what all of them claim.
                        survives: planned
                            .filter(|arm| arm.case.workload.writes())
                            .map_or("", |arm| claimed_in_short(arm.case.durability)),
                        of_runs: vec![None; runs.len()],
                    });
                    groups[at].rows.len() - 1
                });
                groups[at].rows[place].of_runs[index] = Some(row.figures);
            }
        }
    }
    groups
}
