//! `sqlitmus measure --resume`: goes on with a run that was interrupted or killed. No round that
//! has ended is measured again; what the last one left half done is.
//!
//! All rounds of a run are to be from one machine in one state: where something differs that
//! figures depend on, the run is not resumed.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context;
use sqlitmus_core::environment::fact;
use sqlitmus_core::run::{Run, RunState};
use sqlitmus_runfile::RunFile;

use super::several_places::{self, Itinerary};
use super::{Site, announce, answer, conclude, facts, first_place, measure, variants_of, warn};
use crate::arguments::MeasureArguments;
use crate::failure::{ExitCode, Failure};
use crate::interruption;
use crate::machine::environment::Environment;
use crate::machine::place::Place;
use crate::machine::scratch::Scratch;
use crate::orchestrator::Ending;
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
    if let [_, another, ..] = arguments.place.as_slice() {
        return Err(Failure::bad_input(
            format!(
                "a run is resumed where it was: --place {} says nothing to it",
                another.display()
            ),
            "name the run file, or one place to look for `latest` in",
        )
        .into());
    }
    let path = runs::find_measurement(word, first_place(arguments))?;
    let run = sqlitmus_runfile::read(&path).map_err(Failure::from)?;
    if run.plan.advice.is_some() {
        return Err(Failure::bad_input(
            format!(
                "{} is the run of an advice, which is not resumed",
                path.display()
            ),
            "begin anew: sqlitmus advise DIR",
        )
        .into());
    }
    require_version(&run, &path)?;
    if let Some(itinerary) = Itinerary::recorded(&run, &path)? {
        return several_places::resume(arguments, &run.plan, &itinerary);
    }
    require_open(&run, &path)?;
    let place = Place::inspect(Path::new(&run.head.place)).map_err(Failure::from)?;
    let scratch = Scratch::open(&place.path).map_err(Failure::from)?;
    let _lock = scratch.lock().map_err(Failure::from)?;
    interruption::listen().context("cannot listen for Ctrl-C")?;
    let site = Site {
        facts: place.facts(),
        place,
        stores: Stores::new(&scratch.stores_directory()),
        name: RunName::now(&run.plan.suite),
        path,
        is_kept_here: false,
        deadline: None,
    };
    let (path, ending) = go_on(arguments, &run, site)?;
    answer(arguments, &path, ending)
}

/// Goes on with an incomplete run in a place that is there. Returns the run file and how it ended.
pub(super) fn go_on(
    arguments: &MeasureArguments,
    run: &Run,
    mut site: Site,
) -> anyhow::Result<(PathBuf, Ending)> {
    let environment = Environment::read();
    let variants = variants_of(arguments, &run.plan)?;
    let mut facts = facts(&environment, &site.facts);
    facts.extend(variants.facts(&run.plan));
    require_same(&run.environment, &facts)?;
    let mut file = RunFile::open_for_append(&site.path).map_err(Failure::from)?;
    if !arguments.quiet {
        announce(&run.plan, &site.place, &site.stores)?;
    }
    warn(&site)?;
    let now = now_utc();
    file.record_fact(RESUMED, &now).map_err(Failure::from)?;
    file.finish(RunState::Started, None)
        .map_err(Failure::from)?;
    // How much of a budget is spent is not known: a resumed run has it once more.
    let budget = run.plan.stopping.budget_ns.map(Duration::from_nanos);
    site.deadline = budget.map(|budget| Instant::now() + budget);
    let ending = measure(
        arguments,
        &run.plan,
        &environment,
        (site, variants),
        &mut file,
    );
    conclude(file, ending)
}

fn require_open(run: &Run, path: &Path) -> Result<(), Failure> {
    let path = path.display();
    if run.head.state == RunState::Complete {
        return Err(Failure::bad_input(
            format!("{path} is complete: there is nothing to resume"),
            format!("see it: sqlitmus report {path}"),
        ));
    }
    Ok(())
}

fn require_version(run: &Run, path: &Path) -> Result<(), Failure> {
    let path = path.display();
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
    // A filesystem that was made for the run is made anew, on the next loop device that is free.
    let is_made_anew = now.iter().any(|(name, _)| name == fact::LOOPBACK);
    let is_passing =
        |name: &str| PASSING.contains(&name) || (is_made_anew && name == fact::MOUNT_SOURCE);
    let differences: Vec<String> = then
        .iter()
        .filter(|(name, _)| !is_passing(name))
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
        // On a filesystem that is made for the run the loop device may be another.
        let then = facts(&[("mount_source", "/dev/loop0"), ("loopback", "ext4")]);
        let now = facts(&[("mount_source", "/dev/loop1"), ("loopback", "ext4")]);
        require_same(&then, &now).expect("made anew");
        require_same(&then[..1], &now[..1]).expect_err("another disk");
        let then = facts(&[("kernel", "6.1")]);
        let now = facts(&[("kernel", "6.2"), ("load_average", "0.1")]);
        let error = require_same(&then, &now).expect_err("another kernel");
        assert!(error.to_string().contains("kernel was 6.1, is 6.2"));
    }
}
