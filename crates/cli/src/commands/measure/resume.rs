//! `sqlitmus measure --resume`: goes on with a run that was interrupted or killed. No round that
//! has ended is measured again; what the last one left half done is.
//!
//! All rounds of a run are to be from one machine in one state: where something differs that
//! figures depend on, the run is not resumed.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context;
use sqlitmus_core::run::{Run, RunState};
use sqlitmus_runfile::RunFile;

use super::{announce, conclude, facts, measure, variants, warn};
use crate::arguments::MeasureArguments;
use crate::failure::{ExitCode, Failure};
use crate::interruption;
use crate::machine::environment::Environment;
use crate::machine::place::Place;
use crate::machine::scratch::Scratch;
use crate::runs::{self, RunName, now_utc};
use crate::stores::Stores;

/// Name of the fact that a resumed run carries, once for every time.
const RESUMED: &str = "resumed_utc";

/// Facts that may differ when a run is resumed: they change from minute to minute.
const PASSING: [&str; 8] = [
    "memory_available_bytes",
    "swap_free_bytes",
    "load_average",
    "steal_ns",
    "space_available_bytes",
    "space_available_inodes",
    // Both say again what other facts say, with the free space.
    "place_description",
    RESUMED,
];

/// Goes on with a run.
///
/// # Errors
/// There is no such run, it is complete, or it was begun by another version, in another place or
/// on a machine that is no longer the same.
pub fn run(arguments: &MeasureArguments, word: &str) -> anyhow::Result<ExitCode> {
    let path = runs::find_measurement(word, &arguments.place)?;
    let run = sqlitmus_runfile::read(&path).map_err(Failure::from)?;
    require_open(&run, &path)?;
    let place = Place::inspect(Path::new(&run.head.place)).map_err(Failure::from)?;
    let environment = Environment::read();
    let mut variants = variants(arguments)?;
    variants.rejoin(&run.plan);
    let mut now = facts(&environment, &place);
    now.extend(variants.facts(&run.plan));
    require_same(&run.environment, &now)?;
    let scratch = Scratch::open(&place.path).map_err(Failure::from)?;
    let _lock = scratch.lock().map_err(Failure::from)?;
    interruption::listen().context("cannot listen for Ctrl-C")?;
    let stores = Stores::new(&scratch.stores_directory());
    let mut file = RunFile::open_for_append(&path).map_err(Failure::from)?;
    if !arguments.quiet {
        announce(&run.plan, &place, &stores)?;
    }
    warn(&place)?;
    let now = now_utc();
    file.record_fact(RESUMED, &now).map_err(Failure::from)?;
    file.finish(RunState::Started, None)
        .map_err(Failure::from)?;
    let name = RunName::now(&run.plan.suite);
    // How much of a budget is spent is not known: a resumed run has it once more.
    let budget = run.plan.stopping.budget_ns.map(Duration::from_nanos);
    let deadline = budget.map(|budget| Instant::now() + budget);
    let ending = measure(
        arguments,
        &run.plan,
        &environment,
        stores,
        (&name, deadline),
        (variants, &mut file),
    );
    conclude(arguments, file, ending)
}

fn require_open(run: &Run, path: &Path) -> Result<(), Failure> {
    let path = path.display();
    if run.head.state == RunState::Complete {
        return Err(Failure::bad_input(
            format!("{path} is complete: there is nothing to resume"),
            format!("see it: sqlitmus report {path}"),
        ));
    }
    let ours = env!("CARGO_PKG_VERSION");
    if run.head.sqlitmus_version != ours {
        return Err(Failure::bad_input(
            format!(
                "{path} was begun by sqlitmus {}, this is {ours}",
                run.head.sqlitmus_version
            ),
            "rounds of two versions do not belong in one run: measure anew",
        ));
    }
    Ok(())
}

/// Refuses a machine or a place that is not as it was.
fn require_same(then: &[(String, String)], now: &[(String, String)]) -> Result<(), Failure> {
    let differences: Vec<String> = then
        .iter()
        .filter(|(name, _)| !PASSING.contains(&name.as_str()))
        .filter_map(|(name, then)| {
            let found = now.iter().find(|(known, _)| known == name);
            let Some((_, now)) = found else {
                // What the command line or a folder named must be named again.
                return is_variant(name).then(|| format!("{name} was {then}, is not named now"));
            };
            (now != then).then(|| format!("{name} was {then}, is {now}"))
        })
        .collect();
    if differences.is_empty() {
        return Ok(());
    }
    Err(Failure::bad_input(
        format!(
            "the machine is not as it was when the run began: {}",
            differences.join("; ")
        ),
        "rounds of two machines do not belong in one run: measure anew",
    ))
}

fn is_variant(name: &str) -> bool {
    ["sqlite_library.", "worker."]
        .iter()
        .any(|prefix| name.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    }

    #[test]
    fn only_what_lasts_must_be_the_same() {
        let then = facts(&[("kernel", "6.1"), ("load_average", "0.1"), ("old", "x")]);
        let now = facts(&[("kernel", "6.1"), ("load_average", "0.9"), ("new", "y")]);
        require_same(&then, &now).expect("alike");
        let then_named = facts(&[("worker.old", "/old")]);
        require_same(&then_named, &now).expect_err("the worker is not named again");
        let now = facts(&[("kernel", "6.2"), ("load_average", "0.1")]);
        let error = require_same(&then, &now).expect_err("another kernel");
        assert!(error.to_string().contains("kernel was 6.1, is 6.2"));
    }
}
