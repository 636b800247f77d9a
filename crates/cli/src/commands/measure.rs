//! `sqlitmus measure`: resolves a suite, says what will happen, has it measured, and prints the
//! answer.

mod resume;
mod several_places;

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context;
use sqlitmus_core::analysis::analyse;
use sqlitmus_core::environment::fact;
use sqlitmus_core::parameters::PARAMETERS;
use sqlitmus_core::plan::Plan;
use sqlitmus_core::run::{RunHead, RunState};
use sqlitmus_core::stopping::{MOST_ROUNDS, Stopping};
use sqlitmus_core::suite::SuiteError;
use sqlitmus_core::units::{format_bytes, format_duration};
use sqlitmus_runfile::RunFile;
use sqlitmus_trees::walk::Tree;

use crate::arguments::MeasureArguments;
use crate::catalogue::BuiltInEngines;
use crate::commands::{look, print};
use crate::durability::proofs;
use crate::failure::{ExitCode, Failure};
use crate::interruption;
use crate::machine::environment::Environment;
use crate::machine::ownership;
use crate::machine::place::Place;
use crate::machine::processor::{self, CoreChoice};
use crate::machine::scratch::{SCRATCH_NAME, Scratch};
use crate::machine::verification;
use crate::orchestrator::worker_process::WorkerProgram;
use crate::orchestrator::{Ending, Orchestrator};
use crate::progress::{Progress, estimate_ns, filling_ns};
use crate::runs::{RunName, now_utc};
use crate::stores::{SpaceNeeded, Stores, count_entries};
use crate::suites;
use crate::variants::Variants;

/// Generations of content that one run can write, at the most.
pub(super) const GENERATIONS_OF_A_RUN: u64 = 1 << 24;

/// Parameter that names a directory.
const TREE: &str = "tree";

/// Where memory is unknown, stores of up to this many bytes are measured together.
pub(super) const MEMORY_LIMIT_IF_UNKNOWN_BYTES: u64 = 1 << 30;

/// Measures.
///
/// # Errors
/// Bad input before anything is created; the environment later.
pub fn run(arguments: &MeasureArguments) -> anyhow::Result<ExitCode> {
    let started = Instant::now();
    if let Some(word) = &arguments.resume {
        return resume::run(arguments, word);
    }
    let mut plan = resolve(arguments)?;
    // What is no library or cannot be a variant is refused before anything is made.
    variants(arguments)?.join(&mut plan)?;
    if let Some(output) = &arguments.output {
        refuse_existing(output)?;
    }
    if arguments.loopback.is_some() || arguments.place.len() > 1 {
        return several_places::run(arguments, &plan, started);
    }
    let directory = first_place(arguments);
    let place = Place::inspect(directory).map_err(Failure::from)?;
    require_space(&plan, &place)?;
    let proved = proofs::facts(&plan, &place, arguments.durability_run.as_deref())?;
    let scratch = Scratch::open(&place.path).map_err(Failure::from)?;
    let _lock = scratch.lock().map_err(Failure::from)?;
    interruption::listen().context("cannot listen for Ctrl-C")?;
    let name = RunName::now(&plan.suite);
    let site = Site {
        path: match &arguments.output {
            Some(path) => path.clone(),
            None => scratch.runs_directory().join(name.file_name()),
        },
        name,
        is_kept_here: arguments.output.is_none(),
        stores: Stores::new(&scratch.stores_directory()),
        deadline: arguments.budget.map(|budget| started + budget),
        facts: place.facts().into_iter().chain(proved).collect(),
        place,
    };
    let (path, ending) = begin(arguments, &plan, &Environment::read(), site)?;
    answer(arguments, &path, ending)
}

/// The place that is named, or the first of several.
fn first_place(arguments: &MeasureArguments) -> &Path {
    arguments
        .place
        .first()
        .map_or(Path::new("."), PathBuf::as_path)
}

/// Where a run is measured and kept. Its scratch directory is locked by whoever has made this.
struct Site {
    place: Place,
    /// What the run file says of the place.
    facts: Vec<(String, String)>,
    stores: Stores,
    name: RunName,
    /// The run file.
    path: PathBuf,
    /// Whether that is in a scratch directory, where files have an owner.
    is_kept_here: bool,
    deadline: Option<Instant>,
}

/// Measures a plan from its beginning. Returns the run file and how the run ended.
fn begin(
    arguments: &MeasureArguments,
    plan: &Plan,
    environment: &Environment,
    site: Site,
) -> anyhow::Result<(PathBuf, Ending)> {
    if !arguments.quiet {
        announce(plan, &site.place, &site.stores)?;
    }
    warn(&site)?;
    let head = RunHead {
        id: site.name.id.clone(),
        sqlitmus_version: env!("CARGO_PKG_VERSION").to_owned(),
        started_utc: site.name.started_utc.clone(),
        finished_utc: None,
        state: RunState::Started,
        command_line: command_line(),
        place: site.place.path.display().to_string(),
    };
    let variants = variants_of(arguments, plan)?;
    let mut facts = facts(environment, &site.facts);
    facts.extend(variants.facts(plan));
    let mut file = RunFile::create(&site.path, &head, plan, &facts).map_err(Failure::from)?;
    if site.is_kept_here {
        ownership::claim_created(&site.path, "run file")?;
    }
    let ending = measure(arguments, plan, environment, (site, variants), &mut file);
    conclude(file, ending)
}

/// What is known of the machine and the place, and of what can be verified there.
pub(super) fn facts(
    environment: &Environment,
    of_place: &[(String, String)],
) -> Vec<(String, String)> {
    let mut facts = environment.facts().to_vec();
    facts.extend_from_slice(of_place);
    facts.extend(verification::facts());
    facts
}

/// Records how the run ended. Returns the run file.
fn conclude(
    mut file: RunFile,
    ending: anyhow::Result<Ending>,
) -> anyhow::Result<(PathBuf, Ending)> {
    let state = match &ending {
        Ok(Ending {
            interrupted: false, ..
        }) => RunState::Complete,
        Ok(_) => RunState::Interrupted,
        Err(_) => RunState::Started,
    };
    let finished = file.finish(state, Some(&now_utc()));
    let ending = ending?;
    finished.map_err(Failure::from)?;
    let path = file.path().to_owned();
    Ok((path, ending))
}

fn resolve(arguments: &MeasureArguments) -> Result<Plan, Failure> {
    let mut suite = suites::find(&arguments.suite)?;
    let refused = |error: SuiteError| Failure::bad_input(error.to_string(), error.hint);
    for (name, value) in parameters(arguments)? {
        if name == TREE {
            let (path, entries) = tree(arguments, value)?;
            suite.set_parameter(TREE, &path).map_err(refused)?;
            suite
                .set_parameter("rows", &entries.to_string())
                .map_err(refused)?;
        } else {
            suite.set_parameter(name, value).map_err(refused)?;
        }
    }
    let scale = if arguments.full {
        "full"
    } else {
        &arguments.scale
    };
    let mut plan = Plan::resolve(&suite, scale, arguments.seed, &BuiltInEngines)
        .map_err(|error| Failure::bad_input(error.to_string(), error.hint))?;
    if !arguments.group.is_empty() {
        plan = plan
            .only(&arguments.group)
            .map_err(|error| Failure::bad_input(error.to_string(), error.hint))?;
    }
    plan.threshold = arguments.threshold;
    plan.stopping = Stopping {
        precision: arguments.precision,
        budget_ns: arguments.budget.map(|budget| budget.as_nanos() as u64),
        rounds: arguments.rounds,
    };
    for group in &mut plan.groups {
        group.rounds = plan.stopping.rule(group.rounds).at_least;
    }
    require_planted(arguments, &plan)?;
    Ok(plan)
}

/// Libraries and workers beside what is built in.
fn variants(arguments: &MeasureArguments) -> anyhow::Result<Variants> {
    let own = WorkerProgram {
        path: own_program()?,
        timeout: Duration::from_secs(arguments.worker_timeout),
    };
    let variants = Variants::find(&arguments.sqlite_library, &arguments.worker, &own)?;
    Ok(variants)
}

/// The same for a plan that has its arms.
fn variants_of(arguments: &MeasureArguments, plan: &Plan) -> anyhow::Result<Variants> {
    let mut variants = variants(arguments)?;
    variants.rejoin(plan);
    Ok(variants)
}

/// Full path and number of entries of a directory that is to be recorded instead of a generated tree.
fn tree(arguments: &MeasureArguments, word: &str) -> Result<(String, u64), Failure> {
    let tree = Tree::open(Path::new(word))?;
    let Some(path) = tree.path().to_str() else {
        return Err(Failure::bad_input(
            format!(
                "the path of the tree {} is not UTF-8",
                tree.path().display()
            ),
            "record a directory above it",
        ));
    };
    let places = arguments.place.iter().chain(&arguments.images);
    let here = PathBuf::from(".");
    for place in places.chain([&here]) {
        let inside = std::fs::canonicalize(place).is_ok_and(|place| place.starts_with(tree.path()));
        if inside && (place != &here || arguments.place.is_empty()) {
            return Err(Failure::bad_input(
                format!("the place {} lies in the tree {path}", place.display()),
                "what is measured would change the tree: choose another --place",
            ));
        }
    }
    match count_entries(&tree) {
        0 => Err(Failure::bad_input(
            format!("there is nothing in {path} that could be read"),
            "name a directory with files in it",
        )),
        entries => Ok((path.to_owned(), entries)),
    }
}

fn require_planted(arguments: &MeasureArguments, plan: &Plan) -> Result<(), Failure> {
    match &arguments.plant_slowdown {
        Some(planted) if plan.arm(&planted.arm).is_none() => Err(Failure::bad_input(
            format!("there is no arm `{}` to make slower", planted.arm),
            "its name is that of the suite",
        )),
        _ => Ok(()),
    }
}

/// The suite's parameters that are to be changed.
fn parameters(arguments: &MeasureArguments) -> Result<Vec<(&str, &str)>, Failure> {
    let short = [("rows", &arguments.rows), ("threads", &arguments.threads)];
    let short = short
        .into_iter()
        .filter_map(|(name, value)| Some(Ok((name, value.as_deref()?))));
    let long = arguments.set.iter().map(|word| {
        word.split_once('=').ok_or_else(|| {
            let names = PARAMETERS
                .iter()
                .map(|(name, about)| format!("{name}: {about}"));
            Failure::bad_input(
                format!("`--set {word}` has no value"),
                format!("NAME=VALUE, of {}", names.collect::<Vec<_>>().join("; ")),
            )
        })
    });
    short.chain(long).collect()
}

pub(super) fn refuse_existing(output: &Path) -> Result<(), Failure> {
    if output.symlink_metadata().is_ok() {
        return Err(Failure::bad_input(
            format!("{} exists already", output.display()),
            "run files are never overwritten: name another",
        ));
    }
    Ok(())
}

/// Refuses a place that is too small before anything is made there.
fn require_space(plan: &Plan, place: &Place) -> Result<(), Failure> {
    let scratch = Scratch::find(&place.path).map_err(Failure::from)?;
    // Without a scratch directory no store is there yet.
    let directory = scratch.map_or_else(
        || place.path.join(SCRATCH_NAME),
        |scratch| scratch.stores_directory(),
    );
    let SpaceNeeded { bytes, inodes, .. } = Stores::new(&directory).space_needed(plan);
    place.require_space(bytes, inodes).map_err(Failure::from)
}

/// Says what will happen, before it does.
fn announce(plan: &Plan, place: &Place, stores: &Stores) -> anyhow::Result<()> {
    let needed = stores.space_needed(plan);
    let filling_ns = filling_ns(stores.blobs_to_fill(plan));
    let estimate_ns = (estimate_ns(plan) + filling_ns) / 1_000_000_000 * 1_000_000_000;
    let duration = duration_words(plan, &format_duration(estimate_ns));
    let space = if needed.bytes == 0 {
        "in the space of an earlier run".to_owned()
    } else {
        format!(
            "needs up to {}, {} free",
            format_bytes(needed.bytes),
            format_bytes(place.space.available_bytes)
        )
    };
    let lines = format!(
        "Measuring suite {} in {}\n  {} | {space} | {duration}\n",
        plan.suite,
        place.path.display(),
        place.describe(),
    );
    tell(&lines)
}

/// How long it will take: `about 1 m 20 s`, `5 m`, `1 m at the least, until every interval is within ±1%`.
fn duration_words(plan: &Plan, estimate: &str) -> String {
    let stopping = &plan.stopping;
    if stopping.is_fixed() {
        return format!("about {estimate}");
    }
    let until = stopping.precision.map(|precision| {
        let percent = precision * 100.0;
        format!("until every interval is within ±{percent}%")
    });
    match (stopping.budget_ns, until) {
        (Some(budget_ns), None) => format_duration(budget_ns),
        (Some(budget_ns), Some(until)) => {
            format!("{until}, {} at the most", format_duration(budget_ns))
        }
        (None, until) => {
            let rounds = stopping.rounds.unwrap_or(MOST_ROUNDS);
            let until = until.unwrap_or_default();
            format!("about {estimate} or more, {until} or for {rounds} rounds of each group")
        }
    }
}

/// Warns of a place that is no disk, with `--quiet` too; not if that was asked for.
fn warn(site: &Site) -> anyhow::Result<()> {
    let is_made = site.facts.iter().any(|(name, _)| name == fact::LOOPBACK);
    if is_made {
        Ok(())
    } else {
        warn_of(&site.place)
    }
}

/// Warns of a place that is no disk.
pub(super) fn warn_of(place: &Place) -> anyhow::Result<()> {
    if place.is_tmpfs() {
        tell(
            "warning: this place is in memory, not on a disk: the figures are about memory\n\
             hint: --place DIR measures another place\n",
        )?;
    }
    Ok(())
}

pub(super) fn tell(lines: &str) -> anyhow::Result<()> {
    std::io::stderr()
        .write_all(lines.as_bytes())
        .context("cannot write to standard error")
}

fn measure(
    arguments: &MeasureArguments,
    plan: &Plan,
    environment: &Environment,
    (site, variants): (Site, Variants),
    file: &mut RunFile,
) -> anyhow::Result<Ending> {
    for trouble in variants.troubles() {
        tell(&format!("warning: {trouble}\n"))?;
    }
    let cores = CoreChoice::of_this_machine();
    if let Some(core) = cores.orchestrator {
        // Unpinned is noisier, not wrong.
        let _ = processor::pin_to_core(core);
    }
    let program = WorkerProgram {
        path: match &arguments.worker_program {
            Some(path) => path.clone(),
            None => own_program()?,
        },
        timeout: Duration::from_secs(arguments.worker_timeout),
    };
    let mut progress = Progress::new(plan, arguments.quiet);
    let ending = Orchestrator {
        program,
        variants,
        stores: site.stores,
        worker_core: cores.worker,
        memory_limit_bytes: environment
            .memory_usable_bytes()
            .map_or(MEMORY_LIMIT_IF_UNKNOWN_BYTES, |bytes| bytes / 2),
        may_drop_caches: arguments.drop_caches,
        // Later than every generation that an earlier run can have written.
        next_generation: site.name.started_seconds * GENERATIONS_OF_A_RUN,
        deadline: site.deadline,
        planted: arguments.plant_slowdown.clone(),
        file,
        tell: &mut |event| progress.show(&event),
    }
    .run(plan);
    progress.end();
    ending
}

pub(super) fn own_program() -> anyhow::Result<PathBuf> {
    std::env::current_exe().context("cannot find this program's own file to run as a worker")
}

/// The result on standard output, the way to more on standard error.
fn answer(arguments: &MeasureArguments, path: &Path, ending: Ending) -> anyhow::Result<ExitCode> {
    let run = sqlitmus_runfile::read(path).map_err(Failure::from)?;
    let analysis = analyse(&run);
    if arguments.json {
        print(&sqlitmus_report::json(&run, &analysis))?;
    } else {
        print(&sqlitmus_report::terminal(&run, &analysis, &look()))?;
    }
    if !arguments.quiet {
        let mut error = std::io::stderr();
        let separator = if std::io::stdout().is_terminal() {
            "\n"
        } else {
            ""
        };
        // The result is out; these lines are a service.
        let _ = writeln!(
            error,
            "{separator}Run file: {}\nAgain, as a page: sqlitmus report {} --format html --output report.html",
            path.display(),
            if arguments.output.is_some() || first_place(arguments) != Path::new(".") {
                path.display().to_string()
            } else {
                "latest".to_owned()
            }
        );
    }
    Ok(exit_code(ending))
}

fn exit_code(ending: Ending) -> ExitCode {
    if ending.interrupted {
        ExitCode::Interrupted
    } else if ending.arms_failed {
        ExitCode::ArmsFailed
    } else {
        ExitCode::Done
    }
}

pub(super) fn command_line() -> String {
    let words = std::env::args_os().map(|word| {
        let word = word.to_string_lossy().into_owned();
        let plain =
            |character: char| character.is_ascii_alphanumeric() || "-_./=,:+".contains(character);
        if !word.is_empty() && word.chars().all(plain) {
            word
        } else {
            format!("'{}'", word.replace('\'', "'\\''"))
        }
    });
    let words: Vec<String> = ["sqlitmus".to_owned()]
        .into_iter()
        .chain(words.skip(1))
        .collect();
    words.join(" ")
}
