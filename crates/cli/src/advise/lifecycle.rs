//! The life of the recommended store, as a plan for the last stage of [`super::thorough`], which decides
//! nothing: what it is made of is for [`sqlitmus_core::advice::lifecycle`].

use sqlitmus_core::advice::lifecycle::LifecycleParts;
use sqlitmus_core::advice::{AdviceRecord, Candidate};
use sqlitmus_core::plan::Plan;

use super::tree::Sampled;
use crate::catalogue::BuiltInEngines;
use crate::failure::Failure;

/// Rounds of reading at all ages: as few as give a verdict.
const ROUNDS: u32 = 8;

/// Stores of each kind that are lived through.
const LIVES: u32 = 3;

/// The plan of the stage, for the best database and a sample: what it will take can be told by it
/// ([`crate::progress::estimate_ns`]).
///
/// # Errors
/// The database cannot be planned.
pub fn plan(
    record: &AdviceRecord,
    best: &Candidate,
    sample: &Sampled,
    rounds: Option<u32>,
    seed: u64,
) -> Result<Plan, Failure> {
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
    planned.map_err(|error| Failure::bad_input(error.to_string(), error.hint))
}

#[cfg(test)]
mod tests {
    use super::*;
    use sqlitmus_core::advice::stage::join;
    use sqlitmus_core::advice::{
        Ablation, Breadth, CacheWish, Circumstances, SampleFacts, Skew, Stage, TreeFacts, Wish,
        ablation, candidates, sweep,
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
            classes: Vec::new(),
            fillings: Default::default(),
            sweep: None,
            ablation: None,
        }
    }

    #[test]
    fn every_database_has_a_life_beside_the_files() {
        for durability in [
            Durability::None,
            Durability::ProcessCrash,
            Durability::PowerLoss,
        ] {
            let record = record(durability, Circumstances::default());
            let databases = record.candidates.iter();
            for best in databases.filter(|one| one.store.has_database()) {
                let planned = plan(&record, best, &sample(), Some(2), 1);
                let mut planned = planned.expect("planned");
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
        let mut plan = parts.plan(&BuiltInEngines).expect("planned");
        assert!(plan.groups.len() >= 2);
        let best = all[2];
        let swept = sweep::plan(&record, best, 0.0, (2, 1), &BuiltInEngines);
        join(&mut plan, swept.expect("planned"));
        let mut record = record.clone();
        record.ablation = Some(Ablation {
            best: best.name.clone(),
            changes: ablation::changes(best, &record.wish),
        });
        let changed = ablation::plan(&record, &sample.dataset, (2, 1), &BuiltInEngines);
        join(&mut plan, changed.expect("planned"));
        for word in ["sweep-read", "sweep-write", "ablate-read", "ablate-write"] {
            let mut groups = plan.groups.iter();
            assert!(groups.any(|group| group.name.starts_with(word)), "{word}");
        }
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
