//! Stages: which arms are measured when, as suites that a plan is made of. What is fixed here are names
//! of arms, by which [`super::recommendation`] finds them again, and the size of what is done at once;
//! how many rounds there is time for is for whoever has a clock.

use serde_json::{Value, json};

use super::candidate::{Candidate, EngineSettings, TODAY};
use super::wish::CacheWish;
use super::{AdviceRecord, SizeClass};
use crate::case::Durability;
use crate::dataset::{Dataset, SizeDistribution};
use crate::plan::{Catalogue, Plan};
use crate::suite::{Suite, SuiteError};

/// Name of the suite of all advice runs.
pub const SUITE: &str = "advice";

/// Name of the dataset that is the sample.
pub(super) const SAMPLE: &str = "sample";

/// What one batch of writes comes to, in bytes: as much as SQLite lets its log grow to before it
/// writes it into the database, with pages of 4 KiB.
const BATCH_BYTES: u64 = 4 << 20;

/// Fewest and most writes of a batch; where every write waits for the device, fewer.
const BATCH_OPERATIONS: (u64, u64) = (30, 500);
const MOST_SYNCED_OPERATIONS: u64 = 60;

/// How often the candidates are halved, at the most.
pub const MOST_HALVINGS: u8 = 4;

/// A stage of the search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// All candidates.
    Select,
    /// The better half of those that were measured before; which halving, from 1.
    Halve(u8),
    /// The best two, on fresh files, with what they are to be held against.
    Confirm,
}

impl Stage {
    /// First word of the names of its groups and arms.
    #[must_use]
    pub fn word(self) -> String {
        match self {
            Self::Select => "select".to_owned(),
            // As it was called when there was but one.
            Self::Halve(1) => "halve".to_owned(),
            Self::Halve(number) => format!("halve-{number}"),
            Self::Confirm => "confirm".to_owned(),
        }
    }

    /// Stages in the order of time: a later one has a higher number.
    #[must_use]
    pub fn number(self) -> u8 {
        match self {
            Self::Select => 0,
            Self::Halve(number) => number,
            Self::Confirm => u8::MAX,
        }
    }

    /// All of them, the last first.
    pub fn from_last() -> impl Iterator<Item = Self> {
        let halvings = (1..=MOST_HALVINGS).rev().map(Self::Halve);
        std::iter::once(Self::Confirm)
            .chain(halvings)
            .chain([Self::Select])
    }
}

/// What is done to the files in one group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Reading, everything in memory.
    Read,
    /// Overwriting, at the durability that was asked for.
    Write,
    /// Overwriting, at [`super::Wish::other_durability`].
    WriteOtherwise,
    /// Reading what is not in memory.
    ReadCold,
    /// Reading the files of one class of sizes.
    Class(usize),
}

/// Arms of the confirmation that are no candidates.
pub mod reference {
    /// The best database with the system's SQLite.
    pub const SYSTEM: &str = "system-library";
    /// The best database, many reads to a transaction.
    pub const HELD: &str = "held";
    /// The best database, many writes to a transaction.
    pub const BATCHED: &str = "batched";
    /// One packed file.
    pub const PACKFILE: &str = "packfile";
    /// A copy in memory.
    pub const MEMORY: &str = "memory";
}

/// Name of a group.
#[must_use]
pub fn group_name(stage: Stage, purpose: Purpose) -> String {
    let word = match purpose {
        Purpose::Read => "read".to_owned(),
        Purpose::Write => "write".to_owned(),
        Purpose::WriteOtherwise => "write-otherwise".to_owned(),
        Purpose::ReadCold => "read-cold".to_owned(),
        Purpose::Class(number) => format!("read-size-{number}"),
    };
    format!("{}-{word}", stage.word())
}

/// Name of the arm of a candidate, or of a reference.
#[must_use]
pub fn arm_name(stage: Stage, purpose: Purpose, candidate: &str) -> String {
    format!("{}.{candidate}", group_name(stage, purpose))
}

/// Rounds of a stage: those of the groups that decide, and of those that tell what would change the
/// answer.
#[derive(Debug, Clone, Copy)]
pub struct Rounds {
    /// Of reading and writing.
    pub deciding: u32,
    /// Of all others.
    pub others: u32,
}

/// What a stage is made of.
#[derive(Debug, Clone, Copy)]
pub struct StageParts<'a> {
    /// Which.
    pub stage: Stage,
    /// What is asked, and all candidates.
    pub record: &'a AdviceRecord,
    /// Those that take part; the files of today always do.
    pub candidates: &'a [&'a Candidate],
    /// Sizes of the sample.
    pub dataset: &'a Dataset,
    /// Sizes of the parts of the sample that are measured by themselves, with their classes.
    pub classes: &'a [(SizeClass, Dataset)],
    /// How many rounds.
    pub rounds: Rounds,
    /// Everything random follows from it.
    pub seed: u64,
}

impl StageParts<'_> {
    /// The plan of the stage.
    ///
    /// # Errors
    /// A candidate that the catalogue does not know, or a dataset that cannot be.
    pub fn plan(&self, catalogue: &dyn Catalogue) -> Result<Plan, SuiteError> {
        plan_of(self.record, &self.suite()?, self.seed, catalogue)
    }

    fn suite(&self) -> Result<Suite, SuiteError> {
        let classes = self.classes.iter().enumerate();
        let classes = classes.map(|(number, (_, dataset))| (class_name(number), dataset));
        let datasets: Vec<(String, &Dataset)> = std::iter::once((SAMPLE.to_owned(), self.dataset))
            .chain(classes)
            .collect();
        suite_of(self.record, &datasets, &self.groups(), &self.charts())
    }

    fn groups(&self) -> Vec<Value> {
        let wish = &self.record.wish;
        let mut groups = Vec::new();
        if wish.reads > 0 {
            groups.push(match wish.reading() {
                Purpose::ReadCold => self.cold_group(self.rounds.deciding),
                _ => self.read_group(),
            });
        }
        if wish.writes > 0 {
            groups.push(self.write_group(Purpose::Write, wish.durability));
        }
        if self.stage != Stage::Confirm {
            return groups;
        }
        if wish.writes > 0 {
            groups.push(self.write_group(Purpose::WriteOtherwise, wish.other_durability()));
        }
        if wish.cache == CacheWish::Both && wish.reads > 0 {
            groups.push(self.cold_group(self.rounds.others));
        }
        if wish.cache != CacheWish::Cold {
            groups.extend((0..self.classes.len()).map(|number| self.class_group(number)));
        }
        groups
    }

    fn arm(&self, purpose: Purpose, name: &str, label: &str, with: &EngineSettings) -> Value {
        arm_of(&arm_name(self.stage, purpose, name), label, with)
    }

    /// Today's files first, then the others.
    fn members(&self) -> impl Iterator<Item = &Candidate> {
        let today = self
            .record
            .candidates
            .iter()
            .filter(|one| one.name == TODAY);
        let others = self.candidates.iter().copied();
        today.chain(others.filter(|one| one.name != TODAY))
    }

    /// The store with a database that is best so far.
    fn best_database(&self) -> Option<&Candidate> {
        let mut all = self.candidates.iter().copied();
        all.find(|one| one.store.has_database())
    }

    fn read_group(&self) -> Value {
        let purpose = Purpose::Read;
        let mut arms: Vec<Value> = self
            .members()
            .map(|one| self.arm(purpose, &one.name, &one.label, &one.reading))
            .collect();
        if self.stage == Stage::Confirm {
            if let Some(best) = self.best_database() {
                let system = best.reading.clone().with("library", "system");
                let label = format!("{}, your system's", best.label);
                arms.push(self.arm(purpose, reference::SYSTEM, &label, &system));
                let held = best.reading.clone().with("read_transaction", "held");
                let label = format!("{}, many reads at once", best.label);
                arms.push(self.arm(purpose, reference::HELD, &label, &held));
            }
            for (name, engine, label) in [
                (reference::PACKFILE, "packfile", "one packed file, mmap"),
                (reference::MEMORY, "memory", "a copy in memory: the limit"),
            ] {
                let settings = match engine {
                    "packfile" => vec![("read".to_owned(), "mmap".to_owned())],
                    _ => Vec::new(),
                };
                let engine = engine.to_owned();
                let with = EngineSettings { engine, settings };
                arms.push(self.arm(purpose, name, label, &with));
            }
        }
        let workload = json!({"kind": "read", "order": self.order()});
        let mut group = self.group(purpose, workload, self.rounds.deciding, arms);
        read_as(&mut group, Purpose::Read);
        group
    }

    fn cold_group(&self, rounds: u32) -> Value {
        let purpose = Purpose::ReadCold;
        let arms = self
            .members()
            .map(|one| self.arm(purpose, &one.name, &one.label, &one.reading))
            .collect();
        let workload = json!({"kind": "read", "order": "random"});
        let mut group = self.group(purpose, workload, rounds, arms);
        read_as(&mut group, purpose);
        group
    }

    fn class_group(&self, number: usize) -> Value {
        let purpose = Purpose::Class(number);
        let members = self.members();
        let today_and_best = members
            .filter(|one| one.name == TODAY || self.best_database() == Some(one))
            .map(|one| self.arm(purpose, &one.name, &one.label, &one.reading))
            .collect();
        let workload = json!({"kind": "read", "order": "random"});
        let mut group = self.group(purpose, workload, self.rounds.others, today_and_best);
        group["dataset"] = json!(class_name(number));
        group["slices"] = json!(6);
        group["slice_ms"] = json!(5);
        group
    }

    fn write_group(&self, purpose: Purpose, durability: Durability) -> Value {
        let otherwise = purpose == Purpose::WriteOtherwise;
        let writing = |one: &Candidate| match otherwise {
            true => one.writing_otherwise.clone(),
            false => one.writing.clone(),
        };
        let members = self
            .members()
            .filter(|one| !otherwise || one.name == TODAY || self.best_database() == Some(one));
        let mut arms: Vec<Value> = members
            .map(|one| self.arm(purpose, &one.name, &one.label, &writing(one)))
            .collect();
        if self.stage == Stage::Confirm
            && !otherwise
            && let Some(best) = self.best_database()
        {
            let batched = writing(best).with("transaction", "all");
            let label = format!("{}, in batches", best.label);
            arms.push(self.arm(purpose, reference::BATCHED, &label, &batched));
        }
        let operations = self.batch_operations(durability);
        let rounds = if otherwise {
            self.rounds.others
        } else {
            self.rounds.deciding
        };
        let workload =
            json!({"kind": "overwrite", "order": self.order(), "operations": operations});
        let mut group = self.group(purpose, workload, rounds, arms);
        group["durability"] = json!(durability);
        group["slices"] = json!(3);
        group
    }

    fn group(&self, purpose: Purpose, workload: Value, rounds: u32, arms: Vec<Value>) -> Value {
        json!({
            "name": group_name(self.stage, purpose),
            "dataset": SAMPLE,
            "workload": workload,
            "cache": "warm",
            // Reading has none; groups that write set theirs.
            "durability": "none",
            "baseline": arm_name(self.stage, purpose, TODAY),
            "rounds": rounds.max(1),
            "slices": 1,
            "arm": arms,
        })
    }

    fn order(&self) -> Value {
        json!(self.record.wish.skew.order())
    }

    /// Writes of one batch.
    #[must_use]
    pub fn batch_operations(&self, durability: Durability) -> u64 {
        batch_operations(self.dataset, durability)
    }

    /// What the general report draws: the confirmation.
    fn charts(&self) -> Vec<Value> {
        if self.stage != Stage::Confirm {
            return Vec::new();
        }
        let names = |group: &Value| -> Vec<Value> {
            let arms = group["arm"].as_array().into_iter().flatten();
            arms.map(|arm| arm["name"].clone()).collect()
        };
        let groups = self.groups();
        let chart = |group: &Value| {
            let title = match group["name"].as_str() {
                Some("confirm-read") => "Read one file",
                Some("confirm-write") => "Overwrite one file",
                Some("confirm-write-otherwise") => "Overwrite one file, at the other durability",
                Some("confirm-read-cold") => "Read one file, cold",
                _ => "Read one file of a class of sizes",
            };
            let versus = json!([{"arm": group["baseline"], "label": "your files"}]);
            json!({"title": title, "arms": names(group), "versus": versus})
        };
        let mut charts: Vec<Value> = groups.iter().map(chart).collect();
        if let Some(read) = groups.first() {
            let versus = json!([{"arm": read["baseline"], "label": "your files"}]);
            let on_disk: Vec<Value> = names(read)
                .into_iter()
                .filter(|name| {
                    name.as_str()
                        .is_some_and(|name| !name.ends_with(reference::MEMORY))
                })
                .collect();
            let title = "Space on disk";
            charts
                .push(json!({"title": title, "shows": "space", "arms": on_disk, "versus": versus}));
        }
        charts
    }
}

/// Writes of one batch of a dataset.
#[must_use]
pub fn batch_operations(dataset: &Dataset, durability: Durability) -> u64 {
    let mean = dataset.total_bytes() / dataset.count.max(1);
    let (fewest, most) = BATCH_OPERATIONS;
    let operations = (BATCH_BYTES / mean.max(1)).clamp(fewest, most);
    // A batch overwrites no file twice.
    let operations = operations.min(dataset.count);
    match durability {
        Durability::PowerLoss => operations.min(MOST_SYNCED_OPERATIONS),
        Durability::None | Durability::ProcessCrash => operations,
    }
}

/// Makes a group read as the reading that decides does, from memory or from the device.
pub(super) fn read_as(group: &mut Value, reading: Purpose) {
    match reading {
        Purpose::ReadCold => {
            group["cache"] = json!("data-cold");
            // A key that comes again would not be cold any more.
            group["workload"]["order"] = json!("random");
            group["slices"] = json!(1);
            group["slice_ms"] = json!(1000);
        }
        _ => {
            group["cache"] = json!("warm");
            group["slices"] = json!(8);
            group["slice_ms"] = json!(5);
        }
    }
}

/// An arm of a suite.
pub(super) fn arm_of(name: &str, label: &str, with: &EngineSettings) -> Value {
    let settings = with.settings.iter();
    let settings: serde_json::Map<String, Value> = settings
        .map(|(name, value)| (name.clone(), json!(value)))
        .collect();
    json!({ "name": name, "label": label, "engine": with.engine, "settings": settings })
}

/// A suite of an advice run, of datasets by their names.
pub(super) fn suite_of(
    record: &AdviceRecord,
    datasets: &[(String, &Dataset)],
    groups: &[Value],
    charts: &[Value],
) -> Result<Suite, SuiteError> {
    let described = datasets.iter().map(|(name, dataset)| {
        json!({
            "name": name,
            "count": dataset.count,
            // There may be a hundred thousand sizes: they are not written out and read again.
            "size": SizeDistribution::Fixed(0),
            "compressibility": dataset.compressibility,
        })
    });
    let text = json!({
        "name": SUITE,
        "about": "where your own files should live",
        "question": format!("Where should the files of {} live?", record.tree.path),
        "dataset": described.collect::<Vec<_>>(),
        "group": groups,
        "chart": charts,
    });
    let mut suite: Suite = serde_json::from_value(text).map_err(|error| SuiteError {
        suite: SUITE.to_owned(),
        problem: error.to_string(),
        hint: String::new(),
    })?;
    for (named, (_, dataset)) in suite.dataset.iter_mut().zip(datasets) {
        named.size = dataset.size.clone();
    }
    Ok(suite)
}

/// The plan of such a suite: as it was asked for, with so much memory and for so many at once.
pub(super) fn plan_of(
    record: &AdviceRecord,
    suite: &Suite,
    seed: u64,
    catalogue: &dyn Catalogue,
) -> Result<Plan, SuiteError> {
    let mut plan = Plan::resolve(suite, "default", seed, catalogue)?;
    record.wish.circumstances.apply(&mut plan);
    Ok(plan)
}

fn class_name(number: usize) -> String {
    format!("size-{number}")
}

/// Joins the plan of a later stage to that of the earlier ones.
pub fn join(whole: &mut Plan, later: Plan) {
    whole.groups.extend(later.groups);
    whole.charts.extend(later.charts);
}
