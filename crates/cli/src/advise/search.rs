//! Measuring in stages: every stage is a plan of its own, whose groups join those of the earlier ones in
//! the run file; what follows from one decides what is in the next. Stores are removed when their stage
//! has ended.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Instant;

use sqlitmus_core::advice::recommendation::ranking;
use sqlitmus_core::advice::stage::{MOST_HALVINGS, Rounds, StageParts, group_name, join};
use sqlitmus_core::advice::{AdviceRecord, Candidate, Purpose, SizeClass, Stage, Store};
use sqlitmus_core::dataset::Dataset;
use sqlitmus_core::plan::{Group, Plan};
use sqlitmus_core::stopping::Stopping;
use sqlitmus_runfile::RunFile;

use super::thorough::STAGES;
use super::timetable::{Phase, Timetable};
use super::tree::{Sampled, Samples};
use crate::catalogue::BuiltInEngines;
use crate::failure::Failure;
use crate::machine::ownership;
use crate::machine::processor::{self, CoreChoice};
use crate::machine::scratch::Scratch;
use crate::orchestrator::worker_process::WorkerProgram;
use crate::orchestrator::{Ending, Event, Orchestrator};
use crate::progress::Progress;
use crate::stores::Stores;

/// Rounds of each stage, at the most.
const SELECTION_ROUNDS: u32 = 3;
const HALVING_ROUNDS: u32 = 3;
const CONFIRMATION: Rounds = Rounds {
    deciding: 16,
    others: 8,
};

/// After so many rounds of what decides its stores are removed and filled anew: how a store comes to lie on
/// the disk is chance too, and a verdict that a second run would not confirm is none.
const ROUNDS_PER_FILLING: u32 = 4;

/// Candidates that are confirmed.
const FINALISTS: usize = 2;

/// What a search needs.
pub struct Search<'a> {
    /// What runs the trials.
    pub program: WorkerProgram,
    /// Where stores and run files are.
    pub scratch: &'a Scratch,
    /// What is asked.
    pub record: AdviceRecord,
    /// The files.
    pub samples: &'a Samples,
    /// Everything random follows from it.
    pub seed: u64,
    /// Cores for workers and for this process while it measures.
    pub cores: CoreChoice,
    /// All cores that it may use.
    pub all_cores: Vec<usize>,
    /// Stores beyond so many bytes are measured in pairs.
    pub memory_limit_bytes: u64,
    /// Later than every generation that an earlier run can have written.
    pub next_generation: u64,
    /// When which part is to be over.
    pub timetable: Timetable,
    /// Whether the further stages of [`super::thorough`] are measured.
    pub is_thorough: bool,
    /// Rounds of each stage at the most; `None` for as many as there should be.
    pub rounds: Option<u32>,
    /// Shows nothing but trouble.
    pub quiet: bool,
}

impl Search<'_> {
    /// The plan of the selection, with which the run file begins.
    ///
    /// # Errors
    /// A candidate cannot be.
    pub fn first_plan(&self) -> Result<Plan, Failure> {
        let all: Vec<&Candidate> = self.record.candidates.iter().collect();
        let mut plan = self.plan(Stage::Select, &all, &self.record)?;
        plan.advice = Some(Box::new(self.record.clone()));
        Ok(plan)
    }

    fn plan(
        &self,
        stage: Stage,
        candidates: &[&Candidate],
        record: &AdviceRecord,
    ) -> Result<Plan, Failure> {
        let (sample, rounds) = match stage {
            Stage::Select => (&self.samples.selection, of(SELECTION_ROUNDS)),
            Stage::Halve(_) => (&self.samples.selection, of(HALVING_ROUNDS)),
            Stage::Confirm => (&self.samples.confirmation, CONFIRMATION),
        };
        let rounds = Rounds {
            deciding: self.at_most(rounds.deciding),
            others: self.at_most(rounds.others),
        };
        let classes: Vec<(SizeClass, Dataset)> = match stage {
            Stage::Confirm => {
                let classes = self.samples.classes.iter();
                classes
                    .map(|(class, sampled)| (*class, sampled.dataset.clone()))
                    .collect()
            }
            Stage::Select | Stage::Halve(_) => Vec::new(),
        };
        let parts = StageParts {
            stage,
            record,
            candidates,
            dataset: &sample.dataset,
            classes: &classes,
            rounds,
            // Fresh orders of keys for each stage.
            seed: self.seed.wrapping_add(u64::from(stage.number())),
        };
        let mut plan = parts
            .plan(&BuiltInEngines)
            .map_err(|error| Failure::bad_input(error.to_string(), error.hint))?;
        if stage != Stage::Confirm {
            // What was left is in the table of what was tried.
            plan.charts.clear();
        }
        self.set_limits(&mut plan, rounds.deciding);
        Ok(plan)
    }

    fn set_limits(&self, plan: &mut Plan, rounds: u32) {
        plan.threshold = self.record.wish.worth.min(plan.threshold);
        plan.stopping = Stopping {
            precision: None,
            budget_ns: Some(self.timetable.whole().as_nanos() as u64),
            rounds: Some(rounds),
        };
    }

    /// So many rounds, or what was asked for if that is fewer.
    pub(super) fn at_most(&self, rounds: u32) -> u32 {
        rounds.min(self.rounds.unwrap_or(u32::MAX))
    }

    /// Measures all stages.
    ///
    /// # Errors
    /// The place or the run file gave out. Arms that fail are no error.
    pub fn run(mut self, file: &mut RunFile) -> anyhow::Result<Ending> {
        let mut whole = file.run().map_err(Failure::from)?.plan;
        let mut ending = Ending::default();
        let ranked = self.select(&mut whole, file, &mut ending)?;
        if ending.interrupted {
            return Ok(ending);
        }
        self.confirm(&ranked, &mut whole, file, &mut ending)?;
        let stages = if self.is_thorough { STAGES } else { &[] };
        for (place, stage) in stages.iter().enumerate() {
            if ending.interrupted {
                return Ok(ending);
            }
            let ends = self.timetable.ends(Phase::Further(place));
            ending.add((stage.measure)(&mut self, &mut whole, file, ends)?);
        }
        Ok(ending)
    }

    /// All candidates, then the better half as long as there are many; names, the best first.
    fn select(
        &mut self,
        whole: &mut Plan,
        file: &mut RunFile,
        ending: &mut Ending,
    ) -> anyhow::Result<Vec<String>> {
        let ends = self.timetable.ends(Phase::Search(Stage::Select));
        ending.add(self.measure(&whole.clone(), ends, file)?);
        let mut ranked = ranking(&file.run().map_err(Failure::from)?, Stage::Select);
        for number in 1..=MOST_HALVINGS {
            if ending.interrupted || ranked.len() <= 2 * FINALISTS {
                break;
            }
            ranked.truncate(ranked.len().div_ceil(2));
            let stage = Stage::Halve(number);
            let ends = self.timetable.ends(Phase::Search(stage));
            let plan = self.plan(stage, &self.named(&ranked), &self.record)?;
            join(whole, plan.clone());
            file.extend_plan(whole).map_err(Failure::from)?;
            ending.add(self.measure(&plan, ends, file)?);
            let again = ranking(&file.run().map_err(Failure::from)?, stage);
            if !again.is_empty() {
                ranked = again;
            }
        }
        Ok(ranked)
    }

    /// The best two, on other files, with what they are to be held against.
    fn confirm(
        &mut self,
        ranked: &[String],
        whole: &mut Plan,
        file: &mut RunFile,
        ending: &mut Ending,
    ) -> anyhow::Result<()> {
        self.record.finalists = self.finalists(ranked, file)?;
        let classes = self.samples.classes.iter();
        self.record.classes = classes.map(|(class, _)| *class).collect();
        whole.advice = Some(Box::new(self.record.clone()));
        let finalists = self.named(&self.record.finalists);
        let mut deciding = self.plan(Stage::Confirm, &finalists, &self.record)?;
        let mut others = deciding.clone();
        let reading = self.record.wish.reading();
        let decides = [reading, Purpose::Write].map(|purpose| group_name(Stage::Confirm, purpose));
        join(whole, deciding.clone());
        file.extend_plan(whole).map_err(Failure::from)?;
        // What decides has its rounds first; the rest has what time is left.
        deciding
            .groups
            .retain(|group| decides.contains(&group.name));
        others.groups.retain(|group| !decides.contains(&group.name));
        self.decide(deciding, file, ending)?;
        whole.advice = Some(Box::new(self.record.clone()));
        file.extend_plan(whole).map_err(Failure::from)?;
        others.stopping.rounds = Some(self.at_most(CONFIRMATION.others));
        let ends = self.timetable.ends(Phase::Others);
        ending.add(self.measure(&others, ends, file)?);
        Ok(())
    }

    /// The groups that decide: a few rounds with every filling of their stores.
    fn decide(
        &mut self,
        mut plan: Plan,
        file: &mut RunFile,
        ending: &mut Ending,
    ) -> anyhow::Result<()> {
        let began = Instant::now();
        let ends = self.timetable.ends(Phase::Deciding);
        let time = ends.saturating_duration_since(began);
        let all = self.at_most(CONFIRMATION.deciding);
        let fillings = all.div_ceil(ROUNDS_PER_FILLING);
        for filling in 1..=fillings {
            let rounds = all.min(filling * ROUNDS_PER_FILLING);
            plan.stopping.rounds = Some(rounds);
            self.measure_filling(&plan, began + time * filling / fillings, file, ending)?;
            if ending.interrupted || filling == fillings {
                break;
            }
            let recorded = recorded_rounds(file)?;
            let has_fewer = |group: &Group| {
                recorded
                    .get(&group.name)
                    .is_none_or(|so_far| *so_far < rounds)
            };
            if plan.groups.iter().any(has_fewer) {
                // Filling takes too much of the time: the rest of it belongs to a single one.
                plan.stopping.rounds = Some(all);
                self.measure_filling(&plan, ends, file, ending)?;
                break;
            }
        }
        Ok(())
    }

    /// Measures on stores of their own, and notes from which round on.
    fn measure_filling(
        &mut self,
        plan: &Plan,
        ends: Instant,
        file: &mut RunFile,
        ending: &mut Ending,
    ) -> anyhow::Result<()> {
        let recorded = recorded_rounds(file)?;
        for group in &plan.groups {
            let so_far = recorded.get(&group.name).copied().unwrap_or(0);
            self.record.fillings.note(&group.name, so_far);
        }
        ending.add(self.measure(plan, ends, file)?);
        Ok(())
    }

    /// Measures a stage of [`super::thorough`]: its groups and what it has put into the record join the
    /// run file first. Without `rounds` each group has those of its plan.
    ///
    /// # Errors
    /// The place or the run file gave out.
    pub(super) fn measure_further(
        &mut self,
        mut plan: Plan,
        rounds: Option<u32>,
        whole: &mut Plan,
        file: &mut RunFile,
        ends: Instant,
    ) -> anyhow::Result<Ending> {
        whole.advice = Some(Box::new(self.record.clone()));
        join(whole, plan.clone());
        file.extend_plan(whole).map_err(Failure::from)?;
        if let Some(rounds) = rounds {
            self.set_limits(&mut plan, rounds);
            return self.measure(&plan, ends, file);
        }
        let mut ending = Ending::default();
        for group in &plan.groups {
            // A budget alone would be used up by as many rounds as there is time for.
            let mut own = plan.clone();
            own.groups = vec![group.clone()];
            self.set_limits(&mut own, group.rounds);
            ending.add(self.measure(&own, ends, file)?);
            if ending.interrupted {
                break;
            }
        }
        Ok(ending)
    }

    /// As [`Self::measure_further`], with stores that are filled anew for every round.
    ///
    /// # Errors
    /// The place or the run file gave out.
    pub(super) fn measure_anew_each_round(
        &mut self,
        mut plan: Plan,
        rounds: u32,
        whole: &mut Plan,
        file: &mut RunFile,
        ends: Instant,
    ) -> anyhow::Result<Ending> {
        let mut ending = self.measure_further(plan.clone(), Some(1), whole, file, ends)?;
        for so_many in 2..=rounds {
            if ending.interrupted || Instant::now() >= ends {
                break;
            }
            self.set_limits(&mut plan, so_many);
            ending.add(self.measure(&plan, ends, file)?);
        }
        Ok(ending)
    }

    /// A candidate by its name.
    pub(super) fn candidate(&self, name: &str) -> Option<&Candidate> {
        self.record.candidates.iter().find(|one| one.name == name)
    }

    /// The best two; one of them a database, since whether to move is the question. The best way to use the
    /// files as they are is always held against them, however it came out of a few rounds: it costs less than
    /// moving.
    fn finalists(&self, ranked: &[String], file: &RunFile) -> anyhow::Result<Vec<String>> {
        let mut chosen: Vec<String> = ranked.iter().take(FINALISTS).cloned().collect();
        let is = |name: &String, wanted: &dyn Fn(&Candidate) -> bool| {
            self.candidate(name).is_some_and(wanted)
        };
        let is_database = |name: &String| is(name, &|one| one.store.has_database());
        if !chosen.iter().any(is_database) {
            chosen.truncate(FINALISTS - 1);
            chosen.extend(ranked.iter().find(|name| is_database(name)).cloned());
        }
        let is_files = |name: &String| is(name, &|one| one.store == Store::Files);
        if !chosen.iter().any(is_files) {
            let run = file.run().map_err(Failure::from)?;
            let mut ranked = Stage::from_last().flat_map(|stage| ranking(&run, stage));
            chosen.extend(ranked.find(is_files));
        }
        Ok(chosen)
    }

    fn named(&self, names: &[String]) -> Vec<&Candidate> {
        let names = names.iter();
        names.filter_map(|name| self.candidate(name)).collect()
    }

    /// Measures one stage, and removes its stores whatever came of it.
    fn measure(
        &mut self,
        plan: &Plan,
        ends: Instant,
        file: &mut RunFile,
    ) -> anyhow::Result<Ending> {
        let mut plan = plan.clone();
        let left = ends.saturating_duration_since(Instant::now());
        // What is shown as left is what this stage has left.
        plan.stopping.budget_ns = Some(left.as_nanos() as u64);
        // Stores are filled with all cores; unpinned is noisier, not wrong.
        let _ = processor::use_cores(&self.all_cores);
        let mut stores = Stores::new(&self.scratch.stores_directory());
        if let Some(core) = self.cores.orchestrator {
            let _ = processor::pin_to_core(core);
        }
        let classes = self.samples.classes.iter().map(|(_, sampled)| sampled);
        let both = [&self.samples.selection, &self.samples.confirmation];
        for Sampled { dataset, list } in both.into_iter().chain(classes) {
            stores.provide_files(dataset, list.clone());
        }
        let directories = store_directories(&stores, &plan);
        let mut progress = Progress::new(&plan, self.quiet);
        let mut orchestrator = Orchestrator {
            program: self.program.clone(),
            variants: Default::default(),
            stores,
            worker_core: self.cores.worker,
            memory_limit_bytes: self.memory_limit_bytes,
            may_drop_caches: false,
            next_generation: self.next_generation,
            deadline: Some(ends),
            planted: None,
            file,
            tell: &mut |event| {
                if !is_about_the_budget(&event) {
                    progress.show(&event);
                }
            },
        };
        let ending = orchestrator.run(&plan);
        self.next_generation = orchestrator.next_generation;
        progress.end();
        let removed = directories
            .iter()
            .try_for_each(|directory| ownership::remove_owned(directory).map(drop));
        let ending = ending?;
        removed?;
        Ok(ending)
    }
}

/// How many rounds each group has so far.
fn recorded_rounds(file: &RunFile) -> anyhow::Result<BTreeMap<String, u32>> {
    let mut rounds = BTreeMap::new();
    for round in file.rounds().map_err(Failure::from)? {
        if round.complete {
            *rounds.entry(round.group).or_default() += 1;
        }
    }
    Ok(rounds)
}

/// That time was over is no trouble here: how many rounds there were is on the page, and with too few
/// its answer is not sure.
fn is_about_the_budget(event: &Event<'_>) -> bool {
    matches!(event, Event::Trouble { message } if message.contains("the budget ended"))
}

fn of(rounds: u32) -> Rounds {
    Rounds {
        deciding: rounds,
        others: rounds,
    }
}

/// The directories that hold the stores of a plan, one a dataset.
pub fn store_directories(stores: &Stores, plan: &Plan) -> BTreeSet<PathBuf> {
    let paths = plan.arms().map(|(group, arm)| stores.path(group, arm));
    paths
        .filter_map(|path| Some(path.parent()?.to_owned()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use sqlitmus_core::advice::{
        Ablation, Breadth, CacheWish, SampleFacts, Skew, TreeFacts, Wish, ablation, candidates,
        sweep,
    };
    use sqlitmus_core::case::Durability;
    use sqlitmus_core::dataset::{FileSizes, SizeDistribution};

    fn dataset(count: u64) -> Dataset {
        let bytes = (1..=count as u32).collect();
        let identity = "0f".to_owned();
        Dataset {
            count,
            size: SizeDistribution::Files(FileSizes { identity, bytes }),
            compressibility: 0.3,
            seed: 1,
        }
    }

    /// What is data to the core is checked against the engines that there are.
    #[test]
    fn every_stage_of_every_wish_can_be_measured() {
        let class = SizeClass {
            from: 0,
            below: Some(4096),
            files: 20,
        };
        for durability in [
            Durability::None,
            Durability::ProcessCrash,
            Durability::PowerLoss,
        ] {
            for (reads, writes, cache) in [
                (90, 10, CacheWish::Warm),
                (1, 0, CacheWish::Cold),
                (0, 1, CacheWish::Warm),
                (5, 5, CacheWish::Both),
            ] {
                let skew = Skew::Zipf;
                let wish = Wish {
                    reads,
                    writes,
                    skew,
                    cache,
                    durability,
                    worth: 0.1,
                    circumstances: Default::default(),
                };
                let record = AdviceRecord {
                    candidates: candidates(
                        &TreeFacts::default(),
                        (wish.durability, wish.other_durability()),
                        Breadth::Wide,
                    ),
                    wish,
                    tree: TreeFacts::default(),
                    finalists: Vec::new(),
                    selected_with: SampleFacts::default(),
                    confirmed_with: SampleFacts::default(),
                    classes: vec![class],
                    fillings: Default::default(),
                    sweep: None,
                    ablation: None,
                };
                let all: Vec<&Candidate> = record.candidates.iter().collect();
                every_further_plan_can_be(&record);
                let mut whole: Option<Plan> = None;
                for stage in [Stage::Select, Stage::Halve(1), Stage::Confirm] {
                    let parts = StageParts {
                        stage,
                        record: &record,
                        candidates: &all,
                        dataset: &dataset(40),
                        classes: &[(class, dataset(20))],
                        rounds: of(2),
                        seed: 1,
                    };
                    let plan = parts.plan(&BuiltInEngines);
                    let plan = plan.unwrap_or_else(|error| panic!("{error}: {}", error.hint));
                    assert!(!plan.groups.is_empty());
                    match &mut whole {
                        None => whole = Some(plan),
                        Some(whole) => join(whole, plan),
                    }
                }
                let whole = whole.expect("three stages");
                let mut names: Vec<&str> = whole.arms().map(|(_, arm)| arm.name.as_str()).collect();
                let count = names.len();
                names.sort_unstable();
                names.dedup();
                assert_eq!(names.len(), count, "every arm has a name of its own");
            }
        }
    }

    /// Whatever comes out as the best, it can be swept over sizes, and changed.
    fn every_further_plan_can_be(record: &AdviceRecord) {
        let databases = record
            .candidates
            .iter()
            .filter(|one| one.store.has_database());
        for best in databases {
            let swept = sweep::inside(&[best])
                .map(|inside| sweep::plan(record, inside, 0.3, (2, 1), &BuiltInEngines));
            if let Some(Err(error)) = swept {
                panic!("{}: {error}: {}", best.name, error.hint);
            }
            let mut record = record.clone();
            record.ablation = Some(Ablation {
                best: best.name.clone(),
                changes: ablation::changes(best, &record.wish),
            });
            let plan = ablation::plan(&record, &dataset(40), (2, 1), &BuiltInEngines);
            let plan =
                plan.unwrap_or_else(|error| panic!("{}: {error}: {}", best.name, error.hint));
            assert!(!plan.groups.is_empty());
        }
    }
}
