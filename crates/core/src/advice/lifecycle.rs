//! The life of the recommended store beside that of files as they are today: a stage that decides nothing, and
//! says what becomes of either when the files are replaced again and again. It is measured with the files' own
//! sizes; since nobody's own files are ever changed, those of today are copies.

use serde_json::{Value, json};

use super::AdviceRecord;
use super::candidate::{Candidate, EngineSettings, TODAY};
use super::stage::{SAMPLE, arm_of, suite_of};
use crate::dataset::Dataset;
use crate::plan::{Catalogue, Plan};
use crate::suite::SuiteError;

/// First word of the names of its groups and arms.
pub const WORD: &str = "life";

/// Storage ages at which is read and looked.
const AGES: [u32; 5] = [0, 1, 2, 4, 8];

/// Files of a hundred that are removed before a database is cleaned up.
const REMOVED_PERCENT: u32 = 25;

/// What the stage is made of.
#[derive(Debug, Clone, Copy)]
pub struct LifecycleParts<'a> {
    /// What is asked, and all candidates.
    pub record: &'a AdviceRecord,
    /// The store that is recommended, or would be: a database.
    pub best: &'a Candidate,
    /// Sizes of the sample.
    pub dataset: &'a Dataset,
    /// Rounds of reading at all ages.
    pub rounds: u32,
    /// Stores of each kind that are lived through; what happens once in a life has as many figures.
    pub lives: u32,
    /// Everything random follows from it.
    pub seed: u64,
}

impl LifecycleParts<'_> {
    /// The plan of the stage; to be joined to the plan of a run by [`super::stage::join`].
    ///
    /// # Errors
    /// A candidate that the catalogue does not know, or a dataset that cannot be.
    pub fn plan(&self, catalogue: &dyn Catalogue) -> Result<Plan, SuiteError> {
        let datasets = [(SAMPLE.to_owned(), self.dataset)];
        let groups = [self.reading(), self.lives()];
        let suite = suite_of(self.record, &datasets, &groups, &[])?;
        // Of one reader, from memory, whatever was asked for: what age does is compared, not what is asked.
        let mut plan = Plan::resolve(&suite, "default", self.seed, catalogue)?;
        // Groups of reading would get charts of their own, which say less than the curves by age.
        plan.charts.clear();
        Ok(plan)
    }

    /// Copies of today's files, in their way of writing.
    fn files(&self) -> Option<&EngineSettings> {
        let mut all = self.record.candidates.iter();
        all.find(|one| one.name == TODAY).map(|one| &one.writing)
    }

    fn arm(&self, purpose: &str, name: &str, label: &str, with: &EngineSettings) -> Value {
        arm_of(&format!("{WORD}-{purpose}.{name}"), label, with)
    }

    fn reading(&self) -> Value {
        let aged = |mut arm: Value| {
            arm["workload"] = json!({ "ages": AGES });
            arm
        };
        let files = self.files();
        let files = files.map(|with| aged(self.arm("read", TODAY, "copies of your files", with)));
        let best = self.best;
        let best = aged(self.arm("read", &best.name, &best.label, &best.reading));
        json!({
            "name": format!("{WORD}-read"),
            "dataset": SAMPLE,
            "workload": { "kind": "read", "order": "random" },
            "cache": "warm",
            "durability": "none",
            "baseline": format!("{WORD}-read.{TODAY}-age-0"),
            "rounds": self.rounds.max(1),
            "slices": 8,
            "slice_ms": 5,
            "arm": files.into_iter().chain([best]).collect::<Vec<_>>(),
        })
    }

    fn lives(&self) -> Value {
        let files = self.files();
        let files = files.map(|with| self.arm("whole", TODAY, "copies of your files", with));
        let best = self.best;
        // A life is replaced in batches; the checkpoint is timed as settling.
        let writing = best.writing.clone().with("transaction", "all");
        let writing = match writing.engine.as_str() {
            "sqlite" => writing.with("checkpoint", "apart"),
            _ => writing,
        };
        let best = self.arm("whole", &best.name, &best.label, &writing);
        json!({
            "name": format!("{WORD}-whole"),
            "dataset": SAMPLE,
            "workload": { "kind": "lifecycle", "ages": AGES, "removed_percent": REMOVED_PERCENT },
            "cache": "warm",
            "durability": "none",
            "turns": "alone",
            "baseline": format!("{WORD}-whole.{TODAY}"),
            "rounds": self.lives.max(1),
            "slices": 1,
            "arm": files.into_iter().chain([best]).collect::<Vec<_>>(),
        })
    }
}
