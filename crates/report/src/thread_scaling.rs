//! What several threads do together, as a multiple of one of them alone, where a group has several
//! SQLites; and why it is little, where the library itself names a mutex of the whole process.

use std::collections::BTreeMap;

use sqlitmus_core::analysis::{ArmAnalysis, GroupAnalysis};
use sqlitmus_core::case::{Databases, Workload};
use sqlitmus_core::environment::{fact, said};
use sqlitmus_core::measurements::ArmStatus;
use sqlitmus_core::plan::{Arm, Group};
use sqlitmus_core::run::Run;
use sqlitmus_core::units::format_ratio;

use crate::oltp::{counter, rate};
use crate::summary::label;

/// Threads that do less than this share of what is ideal are held up by something.
const LITTLE: f64 = 0.6;

/// The compile option with which all page caches of a process share one mutex.
const MEMORY_MANAGEMENT: &str = "ENABLE_MEMORY_MANAGEMENT";

/// The compile option without which small allocations are served from a connection's own memory.
const OMIT_LOOKASIDE: &str = "OMIT_LOOKASIDE";

/// Whether an arm's library was compiled with one mutex around the page caches of all connections.
pub(crate) fn shares_page_cache_mutex(run: &Run, arm: &Arm) -> bool {
    has_option(run, arm, MEMORY_MANAGEMENT)
}

fn has_option(run: &Run, arm: &Arm, option: &str) -> bool {
    let options = read_back(run, arm).and_then(|told| told.get(said::COMPILE_OPTIONS));
    options.is_some_and(|options| options.split_whitespace().any(|word| word == option))
}

/// Sentences about the threads of a group with several SQLites.
pub(crate) fn notes(run: &Run, group: &Group, measured: &GroupAnalysis) -> Vec<String> {
    let library = |arm: &Arm| arm.case.settings.get("library").map(str::to_owned);
    let first = group.arms.first().and_then(library);
    if group.arms.iter().all(|arm| library(arm) == first) {
        return Vec::new();
    }
    let arms: Vec<(&Arm, &ArmAnalysis)> = group
        .arms
        .iter()
        .zip(&measured.arms)
        .filter(|(arm, analysed)| !arm.is_twin() && analysed.status == ArmStatus::Measured)
        .collect();
    arms.iter()
        .filter_map(|(arm, analysed)| note(run, &arms, arm, analysed))
        .collect()
}

fn note(
    run: &Run,
    arms: &[(&Arm, &ArmAnalysis)],
    arm: &Arm,
    analysed: &ArmAnalysis,
) -> Option<String> {
    let Workload::PointQuery {
        range,
        threads: threads @ 2..,
        databases: Databases::One,
        readers_are,
    } = arm.case.workload
    else {
        return None;
    };
    let find = |threads: u32, databases: Databases| {
        let workload = Workload::PointQuery {
            range,
            threads,
            databases,
            readers_are,
        };
        let found = arms.iter().find(|(other, _)| {
            other.case.workload == workload && other.case.settings == arm.case.settings
        });
        found.map(|(arm, analysed)| rate(run, arm, analysed).per_second())
    };
    let alone = find(1, Databases::One)?;
    let together = rate(run, arm, analysed);
    let factor = together.per_second() / alone;
    let mut sentence = format!(
        "{}: together {} times what one of them does alone",
        label(analysed),
        format_ratio(factor)
    );
    if factor < LITTLE * f64::from(threads).min(cores(run)) {
        if let Some(own) = find(threads, Databases::Own) {
            let own = format_ratio(own / alone);
            sentence.push_str(&format!(
                ", on databases of their own {own} times: it is no lock of the database"
            ));
        }
        if let Some(waits) = counter(run, arm, "voluntary_context_switches") {
            let waits = waits as f64 / together.count.max(1) as f64;
            sentence.push_str(&format!(", with {waits:.2} waits a query"));
        }
        sentence.push_str(&format!(". {}", cause(run, arm)));
    } else {
        sentence.push('.');
    }
    Some(sentence)
}

/// Cores that threads could use; as many as there may be if the run does not say.
fn cores(run: &Run) -> f64 {
    let found = run
        .environment
        .iter()
        .find(|(name, _)| name == fact::CPU_ALLOWED_CORES);
    let cores = found.and_then(|(_, value)| value.parse::<f64>().ok());
    cores.filter(|cores| *cores >= 1.0).unwrap_or(f64::INFINITY)
}

/// What the library says of itself that explains why threads wait.
fn cause(run: &Run, arm: &Arm) -> &'static str {
    let keeps = read_back(run, arm).and_then(|told| told.get("memory_statistics_kept"));
    if shares_page_cache_mutex(run, arm) {
        "Cause: it is compiled with SQLITE_ENABLE_MEMORY_MANAGEMENT, so that the page caches of all \
         connections of a process are one pool behind one mutex, which every page that is fetched or \
         let go takes."
    } else if keeps.is_some_and(|keeps| keeps == "on") && has_option(run, arm, OMIT_LOOKASIDE) {
        "What it says of itself explains it: it counts its memory (SQLITE_DEFAULT_MEMSTATUS) under one \
         mutex of the process at every allocation, and without lookaside memory (SQLITE_OMIT_LOOKASIDE) \
         every query allocates."
    } else {
        "Its compile options name no cause."
    }
}

fn read_back<'a>(run: &'a Run, arm: &Arm) -> Option<&'a BTreeMap<String, String>> {
    let mut trials = run.trials.iter().filter(|trial| trial.arm == arm.name);
    let told = trials.find(|trial| !trial.read_back.is_empty())?;
    Some(&told.read_back)
}
