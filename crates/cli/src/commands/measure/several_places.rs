//! `sqlitmus measure` in several places: directories that are there, and filesystems that are made for the
//! run. One place is measured after the other, each as a run of its own with a run file of its own; then
//! the runs stand side by side, as those of several machines do.
//!
//! Which places there are, what their run files are called and whether everything fits is [`itinerary`]'s
//! business; measuring in one place is [`super`]'s, filesystems in images are [`crate::machine::loopback`]'s.

mod itinerary;

use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context;
use sqlitmus_core::analysis::{Analysis, analyse};
use sqlitmus_core::plan::Plan;
use sqlitmus_core::run::{Run, RunState};
use sqlitmus_core::units::{format_bytes, format_duration};
use sqlitmus_report::Analysed;

use super::{Site, begin, duration_words, exit_code, resume, tell};
use crate::arguments::MeasureArguments;
use crate::commands::{look, print};
use crate::durability::proofs;
use crate::failure::{ExitCode, Failure};
use crate::interruption;
use crate::machine::environment::Environment;
use crate::machine::loopback::{self, Loopback, LoopbackSpecification};
use crate::machine::place::Place;
use crate::machine::processor;
use crate::machine::scratch::{Scratch, ScratchLock};
use crate::orchestrator::Ending;
use crate::progress::{estimate_ns, filling_ns};
use crate::runs::RunName;
use crate::stores::Stores;
use itinerary::Space;
pub(super) use itinerary::{Ground, Itinerary};

/// Scratch directories that are locked until the last place is measured.
type Locked = BTreeMap<PathBuf, (Scratch, ScratchLock)>;

/// Measures a plan in all the places that the command line names.
///
/// # Errors
/// Bad input, or something that is missing, before anything is created; the environment later.
pub(super) fn run(
    arguments: &MeasureArguments,
    plan: &Plan,
    started: Instant,
) -> anyhow::Result<ExitCode> {
    if arguments.durability_run.is_some() {
        return Err(Failure::bad_input(
            "--durability-run is for one place",
            "leave it out: the newest run of `sqlitmus durability` in each place is asked",
        )
        .into());
    }
    let mut itinerary = Itinerary::of(arguments)?;
    let space = itinerary.require_space(plan)?;
    let locked = lock(&itinerary)?;
    interruption::listen().context("cannot listen for Ctrl-C")?;
    if let Some(folder) = &arguments.output {
        std::fs::create_dir(folder).map_err(|error| {
            Failure::environment(
                format!("cannot make the folder {}: {error}", folder.display()),
                "name another with --output",
            )
        })?;
    }
    let name = RunName::now(&plan.suite);
    itinerary.keep_runs(
        arguments.output.as_deref(),
        &name,
        &locked[itinerary.home()].0,
    );
    if !arguments.quiet {
        announce(&itinerary, plan, &space)?;
    }
    let deadline = arguments.budget.map(|budget| started + budget);
    visit(arguments, plan, &itinerary, &locked, deadline)
}

/// Goes on with what is not complete of a run in several places.
///
/// # Errors
/// All is complete; a place is gone or is no longer as it was; or as [`run`].
pub(super) fn resume(
    arguments: &MeasureArguments,
    plan: &Plan,
    itinerary: &Itinerary,
) -> anyhow::Result<ExitCode> {
    let mut open = 0;
    for index in 0..itinerary.grounds.len() {
        open += usize::from(
            recorded(&itinerary.run_file(index))?
                .is_none_or(|run| run.head.state != RunState::Complete),
        );
    }
    if open == 0 {
        return Err(Failure::bad_input(
            "the run is complete in all of its places: there is nothing to resume",
            format!("see it: sqlitmus report {}", itinerary.run_files()),
        )
        .into());
    }
    itinerary.require_grounds()?;
    let space = itinerary.require_space(plan)?;
    let locked = lock(itinerary)?;
    interruption::listen().context("cannot listen for Ctrl-C")?;
    if !arguments.quiet {
        announce(itinerary, plan, &space)?;
    }
    // How much of a budget is spent is not known: each place that is left has its share once more.
    visit(arguments, plan, itinerary, &locked, None)
}

/// Locks the scratch directories of all places that are there, and takes away what processes that have
/// ended left of filesystems.
fn lock(itinerary: &Itinerary) -> anyhow::Result<Locked> {
    let mut locked = Locked::new();
    for directory in itinerary.directories() {
        if locked.contains_key(directory) {
            continue;
        }
        let scratch = Scratch::open(directory).map_err(Failure::from)?;
        let lock = scratch.lock().map_err(Failure::from)?;
        for leftover in loopback::remove_leftovers(&scratch, &lock).map_err(Failure::from)? {
            if let Some(reason) = leftover.kept {
                let path = leftover.path.display();
                tell(&format!("warning: a leftover stays, {path}: {reason}\n"))?;
            }
        }
        locked.insert(directory.to_owned(), (scratch, lock));
    }
    Ok(locked)
}

/// Says what will happen, before it does.
fn announce(itinerary: &Itinerary, plan: &Plan, space: &Space) -> anyhow::Result<()> {
    let count = itinerary.grounds.len();
    let mut lines = format!(
        "Measuring suite {} in {count} places, one after the other\n",
        plan.suite
    );
    for (index, ground) in itinerary.grounds.iter().enumerate() {
        lines += &match ground {
            Ground::Directory(path) => format!("  {}  {}\n", index + 1, path.display()),
            Ground::Loopback(specification) if specification.has_image() => format!(
                "  {}  {specification}, in an image of {} in {}\n",
                index + 1,
                format_bytes(space.image_bytes),
                itinerary.home().display()
            ),
            Ground::Loopback(specification) => {
                format!("  {}  {specification}, in memory\n", index + 1)
            }
        };
    }
    let nowhere = Stores::new(Path::new(itinerary::NOWHERE));
    let once_ns = estimate_ns(plan) + filling_ns(nowhere.blobs_to_fill(plan));
    let all_ns = once_ns * count as u64 / 1_000_000_000 * 1_000_000_000;
    lines += &format!(
        "  needs up to {} on a disk, {} free | {} for all\n",
        format_bytes(space.needed_bytes),
        format_bytes(space.available_bytes),
        duration_words(plan, &format_duration(all_ns))
    );
    tell(&lines)
}

/// Measures in one place after the other, and prints what came of it.
fn visit(
    arguments: &MeasureArguments,
    plan: &Plan,
    itinerary: &Itinerary,
    locked: &Locked,
    deadline: Option<Instant>,
) -> anyhow::Result<ExitCode> {
    // Measuring pins this process; filling the stores of the next place is to have all cores again.
    let cores = processor::allowed_cores().unwrap_or_default();
    let count = itinerary.grounds.len();
    let mut whole = Ending {
        interrupted: false,
        arms_failed: false,
    };
    for index in 0..count {
        if interruption::requested() {
            whole.interrupted = true;
            break;
        }
        let known = recorded(&itinerary.run_file(index))?;
        if known
            .as_ref()
            .is_some_and(|run| run.head.state == RunState::Complete)
        {
            continue;
        }
        let mut plan = plan.clone();
        // What is left of the time is shared by the places that are left.
        let left = deadline.map(|deadline| {
            deadline.saturating_duration_since(Instant::now()) / (count - index) as u32
        });
        if let Some(left) = left {
            plan.stopping.budget_ns = Some((left.as_nanos() as u64).max(1));
        }
        if !arguments.quiet {
            tell(&format!(
                "Place {} of {count}: {}\n",
                index + 1,
                itinerary.grounds[index]
            ))?;
        }
        let visit = Visit {
            arguments,
            plan: &plan,
            itinerary,
            index,
            known: known.as_ref(),
            budget: left,
        };
        let ending = visit.measure(locked)?;
        whole.interrupted |= ending.interrupted;
        whole.arms_failed |= ending.arms_failed;
        // Staying pinned is slower, not wrong.
        let _ = processor::use_cores(&cores);
    }
    answer(arguments, itinerary, whole)
}

/// One place, and what is known of it.
struct Visit<'a> {
    arguments: &'a MeasureArguments,
    plan: &'a Plan,
    itinerary: &'a Itinerary,
    index: usize,
    /// The run that was begun here, if it goes on.
    known: Option<&'a Run>,
    budget: Option<Duration>,
}

impl Visit<'_> {
    fn measure(&self, locked: &Locked) -> anyhow::Result<Ending> {
        match &self.itinerary.grounds[self.index] {
            Ground::Directory(path) => {
                let place = Place::inspect(path).map_err(Failure::from)?;
                let facts = place.facts();
                self.measure_at(place, facts, &locked[path].0)
            }
            Ground::Loopback(specification) => self.measure_on(specification, locked),
        }
    }

    /// Makes a filesystem, measures on it, and takes it away, however that ends.
    fn measure_on(
        &self,
        specification: &LoopbackSpecification,
        locked: &Locked,
    ) -> anyhow::Result<Ending> {
        let (scratch, lock) = &locked[self.itinerary.home()];
        let bytes = self.itinerary.image_bytes(self.plan);
        let name = self.itinerary.words(self.index);
        let made =
            Loopback::create(scratch, lock, &name, specification, bytes).map_err(Failure::from)?;
        let ending = {
            let place = Place::inspect(&made.point()).map_err(Failure::from)?;
            let facts = self.itinerary.facts_of_loopback(&place, specification);
            let inside = Scratch::open(&place.path).map_err(Failure::from)?;
            let _lock = inside.lock().map_err(Failure::from)?;
            self.measure_at(place, facts, &inside)
        };
        let removed = made.remove();
        let ending = ending?;
        removed.map_err(Failure::from)?;
        Ok(ending)
    }

    fn measure_at(
        &self,
        place: Place,
        mut facts: Vec<(String, String)>,
        scratch: &Scratch,
    ) -> anyhow::Result<Ending> {
        facts.extend(self.itinerary.facts(self.index));
        if self.known.is_none() {
            facts.extend(proofs::facts(self.plan, &place, None)?);
        }
        let path = self.itinerary.run_file(self.index);
        let site = Site {
            place,
            facts,
            stores: Stores::new(&scratch.stores_directory()),
            name: self.itinerary.name(self.index, &self.plan.suite),
            path,
            is_kept_here: self.itinerary.is_in_scratch(),
            deadline: self.budget.map(|budget| Instant::now() + budget),
        };
        let (_, ending) = match self.known {
            Some(run) => resume::go_on(self.arguments, run, site)?,
            None => begin(self.arguments, self.plan, &Environment::read(), site)?,
        };
        Ok(ending)
    }
}

/// What a run file holds, if it is there.
fn recorded(path: &Path) -> Result<Option<Run>, Failure> {
    match path.exists() {
        true => Ok(Some(sqlitmus_runfile::read(path)?)),
        false => Ok(None),
    }
}

/// The runs side by side on standard output, the way to more on standard error.
fn answer(
    arguments: &MeasureArguments,
    itinerary: &Itinerary,
    ending: Ending,
) -> anyhow::Result<ExitCode> {
    let mut runs = Vec::new();
    for index in 0..itinerary.grounds.len() {
        runs.extend(recorded(&itinerary.run_file(index))?);
    }
    let analyses: Vec<Analysis> = runs.iter().map(analyse).collect();
    let pairs = runs.iter().zip(&analyses);
    let analysed: Vec<Analysed<'_>> = pairs
        .map(|(run, analysis)| Analysed { run, analysis })
        .collect();
    match analysed.as_slice() {
        [] => {}
        several if arguments.json => print(&sqlitmus_report::json_of_several(several))?,
        [one] => print(&sqlitmus_report::terminal(one.run, one.analysis, &look()))?,
        several => print(&sqlitmus_report::terminal_side_by_side(several, &look()))?,
    }
    if !arguments.quiet && !analysed.is_empty() {
        let separator = if std::io::stdout().is_terminal() {
            "\n"
        } else {
            ""
        };
        let files = itinerary.run_files();
        // The result is out; these lines are a service.
        let _ = writeln!(
            std::io::stderr(),
            "{separator}Run files: {files}\nAgain, as a page: sqlitmus report {files} --format html --output report.html"
        );
    }
    Ok(exit_code(ending))
}
