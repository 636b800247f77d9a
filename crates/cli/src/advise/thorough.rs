//! What a thorough advice run does after its confirmation, stage by stage. What a stage measures is a plan
//! of [`sqlitmus_core::advice`]; that its groups join the run file, and when it is over, is for
//! [`super::search`].

use std::time::Instant;

use sqlitmus_core::advice::recommendation::recommend;
use sqlitmus_core::advice::{Ablation, Candidate, Sweep, ablation, sweep};
use sqlitmus_core::plan::Plan;
use sqlitmus_core::suite::SuiteError;
use sqlitmus_runfile::RunFile;

use super::lifecycle;
use super::search::Search;
use crate::catalogue::BuiltInEngines;
use crate::failure::Failure;
use crate::orchestrator::Ending;

/// A stage after the confirmation.
pub struct ThoroughStage {
    /// What the announcement calls it.
    pub words: &'static str,
    /// Seconds that it is expected to take.
    pub seconds: u64,
    /// Measures it, until the time given is over: the plan so far, which it extends, and the run file.
    pub measure: fn(&mut Search<'_>, &mut Plan, &mut RunFile, Instant) -> anyhow::Result<Ending>,
}

/// All of them, in their order. A further stage is a line here; where its results are shown is in
/// `sqlitmus_report::advice::further`.
pub const STAGES: &[ThoroughStage] = &[
    ThoroughStage {
        words: "where the answer turns by size",
        seconds: 250,
        measure: measure_sweep,
    },
    ThoroughStage {
        words: "what each setting is worth",
        seconds: 120,
        measure: measure_ablation,
    },
    ThoroughStage {
        words: "how the stores grow old, are copied and cleaned up",
        seconds: 180,
        measure: measure_lives,
    },
];

/// Rounds of both, at the most.
const SWEEP_ROUNDS: u32 = 10;
const ABLATION_ROUNDS: u32 = 12;

/// So that each stage has orders of keys of its own.
const SWEEP_SEED: u64 = 1_001;
const ABLATION_SEED: u64 = 1_002;
const LIVES_SEED: u64 = 1_003;

fn measure_sweep(
    search: &mut Search<'_>,
    whole: &mut Plan,
    file: &mut RunFile,
    ends: Instant,
) -> anyhow::Result<Ending> {
    let best = standing_candidates(search, file)?;
    let Some(inside) = sweep::inside(&best.iter().collect::<Vec<_>>()).cloned() else {
        return Ok(Ending::default());
    };
    search.record.sweep = Some(Sweep {
        inside: inside.name.clone(),
        sizes: sweep::SIZES.to_vec(),
    });
    let rounds = search.at_most(SWEEP_ROUNDS);
    let plan = sweep::plan(
        &search.record,
        &inside,
        search.samples.confirmation.dataset.compressibility,
        (rounds, search.seed.wrapping_add(SWEEP_SEED)),
        &BuiltInEngines,
    );
    // How the stores of a size come to lie on the disk moves its point, and with it where the curve crosses 1.
    search.measure_anew_each_round(plan.map_err(refused)?, rounds, whole, file, ends)
}

fn measure_ablation(
    search: &mut Search<'_>,
    whole: &mut Plan,
    file: &mut RunFile,
    ends: Instant,
) -> anyhow::Result<Ending> {
    let Some(best) = best_database(search, file)? else {
        return Ok(Ending::default());
    };
    search.record.ablation = Some(Ablation {
        changes: ablation::changes(&best, &search.record.wish),
        best: best.name,
    });
    let rounds = search.at_most(ABLATION_ROUNDS);
    let plan = ablation::plan(
        &search.record,
        &search.samples.confirmation.dataset,
        (rounds, search.seed.wrapping_add(ABLATION_SEED)),
        &BuiltInEngines,
    );
    search.measure_further(plan.map_err(refused)?, Some(rounds), whole, file, ends)
}

fn measure_lives(
    search: &mut Search<'_>,
    whole: &mut Plan,
    file: &mut RunFile,
    ends: Instant,
) -> anyhow::Result<Ending> {
    let Some(best) = best_database(search, file)? else {
        return Ok(Ending::default());
    };
    let sample = &search.samples.selection;
    let seed = search.seed.wrapping_add(LIVES_SEED);
    let stage = lifecycle::plan(&search.record, &best, sample, search.rounds, seed);
    search.measure_further(stage?, None, whole, file, ends)
}

/// The candidates that have figures, the best by the last stage first.
fn standing_candidates(search: &Search<'_>, file: &RunFile) -> anyhow::Result<Vec<Candidate>> {
    let run = file.run().map_err(Failure::from)?;
    let standings = recommend(&run).map_or(Vec::new(), |found| found.standings);
    let measured = standings.iter().filter(|one| one.composed.is_some());
    Ok(measured
        .filter_map(|standing| search.candidate(&standing.name).cloned())
        .collect())
}

fn best_database(search: &Search<'_>, file: &RunFile) -> anyhow::Result<Option<Candidate>> {
    let mut standing = standing_candidates(search, file)?.into_iter();
    Ok(standing.find(|one| one.store.has_database()))
}

fn refused(error: SuiteError) -> Failure {
    Failure::bad_input(error.to_string(), error.hint)
}
