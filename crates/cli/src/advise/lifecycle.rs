//! The life of the recommended store, as a stage of a thorough search: planned by
//! [`sqlitmus_core::advice::lifecycle`], measured by the same orchestrator as all others. It decides nothing, so
//! it comes last.

use sqlitmus_core::advice::lifecycle::LifecycleParts;
use sqlitmus_core::advice::{AdviceRecord, Store};
use sqlitmus_core::plan::Plan;
use sqlitmus_runfile::RunFile;

use super::search::Search;
use super::tree::Sampled;
use crate::catalogue::BuiltInEngines;
use crate::failure::Failure;
use crate::orchestrator::Ending;

/// Rounds of reading at all ages: as few as give a verdict.
const ROUNDS: u32 = 8;

/// Stores of each kind that are lived through.
const LIVES: u32 = 3;

/// The plan of the stage, for a sample: what it will take can be told by it ([`crate::progress::estimate_ns`]).
/// `None` as long as no database is among the finalists, which are the best of the search first.
///
/// # Errors
/// The database cannot be planned.
pub fn plan(
    record: &AdviceRecord,
    sample: &Sampled,
    rounds: Option<u32>,
    seed: u64,
) -> Result<Option<Plan>, Failure> {
    let candidate = |name: &String| record.candidates.iter().find(|one| one.name == *name);
    let mut finalists = record.finalists.iter().filter_map(candidate);
    let Some(best) = finalists.find(|one| one.store != Store::Files) else {
        return Ok(None);
    };
    let at_most = rounds.unwrap_or(u32::MAX);
    let parts = LifecycleParts {
        record,
        best,
        dataset: &sample.dataset,
        rounds: ROUNDS.min(at_most),
        lives: LIVES.min(at_most),
        seed,
    };
    let planned = parts.plan(&BuiltInEngines);
    planned
        .map(Some)
        .map_err(|error| Failure::bad_input(error.to_string(), error.hint))
}

/// Measures the stage, joins it to the run's plan and file, and removes its stores. `ends` is the share of the
/// search's time that is over when it ends. To be called when the finalists are known.
///
/// # Errors
/// The place or the run file gave out. Arms that fail are no error.
pub fn run(
    search: &mut Search<'_>,
    whole: &mut Plan,
    ends: f64,
    file: &mut RunFile,
) -> anyhow::Result<Ending> {
    let sample = &search.samples.selection;
    let planned = plan(&search.record, sample, search.rounds, search.seed)?;
    let Some(stage) = planned else {
        return Ok(Ending {
            interrupted: false,
            arms_failed: false,
        });
    };
    search.go_on(whole, stage, ends, file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sqlitmus_core::advice::stage::join;
    use sqlitmus_core::advice::{
        CacheWish, Circumstances, SampleFacts, Skew, Stage, TreeFacts, Wish, candidates,
    };
    use sqlitmus_core::case::{CacheState, Durability, Workload};
    use sqlitmus_core::dataset::{Dataset, FileSizes, SizeDistribution};
    use sqlitmus_core::plan::Turns;

    fn sample() -> Sampled {
        let identity = "0f".to_owned();
        let bytes = (1..=40).collect();
        Sampled {
            dataset: Dataset {
                count: 40,
                size: SizeDistribution::Files(FileSizes { identity, bytes }),
                compressibility: 0.0,
                seed: 1,
            },
            list: Default::default(),
        }
    }

    fn record(durability: Durability, circumstances: Circumstances) -> AdviceRecord {
        let wish = Wish {
            reads: 90,
            writes: 10,
            skew: Skew::Uniform,
            cache: CacheWish::Warm,
            durability,
            worth: 0.1,
            circumstances,
        };
        AdviceRecord {
            candidates: candidates(wish.durability, wish.other_durability()),
            wish,
            tree: TreeFacts::default(),
            finalists: Vec::new(),
            selected_with: SampleFacts::default(),
            confirmed_with: SampleFacts::default(),
            classes: Vec::new(),
        }
    }

    #[test]
    fn every_database_has_a_life_beside_the_files() {
        for durability in [
            Durability::None,
            Durability::ProcessCrash,
            Durability::PowerLoss,
        ] {
            let mut record = record(durability, Circumstances::default());
            let none = plan(&record, &sample(), None, 1).expect("planned");
            assert!(none.is_none(), "nothing is recommended yet");
            let databases = record.candidates.clone().into_iter();
            for best in databases.filter(|one| one.store != Store::Files) {
                record.finalists = vec!["files-openat".to_owned(), best.name.clone()];
                let planned = plan(&record, &sample(), Some(2), 1).expect("planned");
                let mut planned = planned.expect("there is a database");
                let lives = planned
                    .groups
                    .iter()
                    .find(|group| group.name == "life-whole");
                let lives = lives.expect("a group");
                assert_eq!((lives.rounds, lives.turns), (2, Turns::Alone));
                let mut engines: Vec<&str> = lives
                    .arms
                    .iter()
                    .map(|arm| arm.case.engine.as_str())
                    .collect();
                engines.dedup();
                assert_eq!(engines, ["files", best.reading.engine.as_str(), "files"]);
                let oldest = planned.arms().map(|(_, arm)| arm.case.age).max();
                assert_eq!(oldest, Some(8));
                let own = planned
                    .arms()
                    .any(|(_, arm)| arm.case.engine == "own-files");
                assert!(!own, "nobody's own files grow old");
                let other = planned.clone();
                join(&mut planned, other);
            }
        }
    }

    #[test]
    fn circumstances_hold_for_every_group() {
        use sqlitmus_core::advice::stage::{Rounds, StageParts};
        let circumstances = Circumstances {
            memory_bytes: Some(64 << 20),
            readers: 3,
            writers: 2,
        };
        let record = record(Durability::ProcessCrash, circumstances);
        let all: Vec<_> = record.candidates.iter().collect();
        let sample = sample();
        let parts = StageParts {
            stage: Stage::Confirm,
            record: &record,
            candidates: &all,
            dataset: &sample.dataset,
            classes: &[],
            rounds: Rounds {
                deciding: 2,
                others: 2,
            },
            seed: 1,
        };
        let plan = parts.plan(&BuiltInEngines).expect("planned");
        assert!(plan.groups.len() >= 2);
        for (group, arm) in plan.arms() {
            assert_eq!(group.turns, Turns::Alone, "{}", group.name);
            assert_eq!(arm.case.cache, CacheState::Limited(64 << 20));
            let threads = match arm.case.workload {
                Workload::Load {
                    readers: 0,
                    writers,
                    ..
                } => writers == 2,
                Workload::Load {
                    readers,
                    writers: 0,
                    ..
                } => readers == 3,
                _ => false,
            };
            assert!(threads, "{}: {:?}", arm.name, arm.case.workload);
            assert_ne!(arm.case.engine, "memory");
        }
        let known: Vec<&str> = plan.arms().map(|(_, arm)| arm.name.as_str()).collect();
        for chart in &plan.charts {
            assert!(chart.arms.iter().all(|name| known.contains(&name.as_str())));
        }
    }
}
