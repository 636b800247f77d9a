//! `sqlitmus advise`: scans a directory, has candidates measured on its files, and prints what follows.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context;
use sqlitmus_core::advice::recommendation::{Answer, recommend};
use sqlitmus_core::advice::{AdviceRecord, Breadth, TreeFacts, candidates};
use sqlitmus_core::plan::Plan;
use sqlitmus_core::run::{RunHead, RunState};
use sqlitmus_core::tree_scan::display_path;
use sqlitmus_core::units::{format_bytes, format_count, format_duration};
use sqlitmus_engines::own_files::ChangedFile;
use sqlitmus_report::advice::snippet::Language;
use sqlitmus_runfile::RunFile;
use sqlitmus_trees::scan::Scanned;
use sqlitmus_trees::walk::Tree;

use super::measure::{
    GENERATIONS_OF_A_RUN, MEMORY_LIMIT_IF_UNKNOWN_BYTES, command_line, facts, own_program,
    refuse_existing, tell, warn_of,
};
use super::{look, print};
use crate::advise::memory;
use crate::advise::place::{self, AdvicePlace};
use crate::advise::search::{Search, store_directories};
use crate::advise::timetable::{self, Timetable};
use crate::advise::tree::{self, FEWEST_FILES, Samples};
use crate::arguments::advise::{AdviseArguments, Snippet};
use crate::failure::{ExitCode, Failure};
use crate::interruption;
use crate::machine::environment::Environment;
use crate::machine::ownership;
use crate::machine::processor::{self, CoreChoice};
use crate::machine::scratch::Scratch;
use crate::orchestrator::Ending;
use crate::orchestrator::worker_process::WorkerProgram;
use crate::runs::{RunName, now_utc};
use crate::stores::Stores;

/// Longest wait for one answer of a worker.
const WORKER_TIMEOUT: Duration = Duration::from_secs(120);

/// The stores of the stage that has the most come to so many times the sample of the confirmation: of the
/// confirmation itself, and of the wide search, whose sample is half as large.
const STORES_AT_ONCE: u64 = 14;
const STORES_AT_ONCE_IF_THOROUGH: u64 = 36;

/// Gives advice.
///
/// # Errors
/// Bad input before anything is made; the environment later.
pub fn run(arguments: &AdviseArguments) -> anyhow::Result<ExitCode> {
    let started = Instant::now();
    if arguments.reads == 0 && arguments.writes == 0 {
        let hint = "--reads 90 --writes 10, for example";
        return Err(
            Failure::bad_input("neither reads nor writes: nothing to measure", hint).into(),
        );
    }
    if let Some(output) = &arguments.output {
        refuse_existing(output)?;
    }
    let tree = Tree::open(&arguments.directory).map_err(|error| Failure {
        hint: "name a directory of files that you may read".to_owned(),
        ..Failure::from(error)
    })?;
    let chosen = place::choose(tree.path(), arguments.place.as_deref())?;
    let limited = memory::require(arguments)?;
    interruption::listen().context("cannot listen for Ctrl-C")?;
    let scanned = tree::scan_tree(&tree, arguments.seed, arguments.quiet)?;
    require_files(&tree, &scanned)?;
    let samples = tree::draw(&tree, &scanned, arguments.sample, arguments.seed)?;
    let stores = match arguments.thorough {
        true => STORES_AT_ONCE_IF_THOROUGH,
        false => STORES_AT_ONCE,
    };
    let needed = samples.confirmation.facts().bytes * stores;
    let inodes = samples.confirmation.facts().files * stores / 2;
    let place = &chosen.place;
    place
        .require_space(needed, inodes)
        .map_err(|error| Failure {
            hint: "free some space, name another --place DIR, or measure with less: --sample 20MB"
                .to_owned(),
            ..Failure::from(error)
        })?;
    if !arguments.quiet {
        announce(arguments, &tree, &scanned, &samples, &chosen, needed)?;
    }
    warn_of(place)?;
    let scratch = Scratch::open(&place.path).map_err(Failure::from)?;
    let _lock = scratch.lock().map_err(Failure::from)?;
    let environment = Environment::read();
    let name = RunName::now("advice");
    let search = search(
        arguments,
        record(arguments, &tree, &scanned, &samples),
        (&scratch, &samples),
        (&environment, &name),
        started,
    )?;
    let plan = search.first_plan()?;
    remove_leftovers(&scratch, &plan)?;
    let path = match &arguments.output {
        Some(path) => path.clone(),
        None => scratch.runs_directory().join(name.file_name()),
    };
    let head = RunHead {
        id: name.id.clone(),
        sqlitmus_version: env!("CARGO_PKG_VERSION").to_owned(),
        started_utc: name.started_utc.clone(),
        finished_utc: None,
        state: RunState::Started,
        command_line: command_line(),
        place: place.path.display().to_string(),
    };
    let mut facts = facts(&environment, &place.facts());
    facts.extend(limited);
    let mut file = RunFile::create(&path, &head, &plan, &facts).map_err(Failure::from)?;
    if arguments.output.is_none() {
        ownership::claim_created(&path, "run file")?;
    }
    let ending = search.run(&mut file).map_err(explained);
    conclude(arguments, file, ending)
}

/// Refuses a directory with too few files to say anything of.
fn require_files(tree: &Tree, scanned: &Scanned) -> Result<(), Failure> {
    let files = scanned.summary.files();
    if files >= FEWEST_FILES {
        return Ok(());
    }
    let path = tree.path().display();
    let problem = match files {
        0 => format!("there are no files in {path}"),
        1 => format!("there is one file in {path}"),
        _ => format!("there are {files} files in {path}"),
    };
    Err(Failure::bad_input(
        problem,
        format!(
            "fewer than {FEWEST_FILES} files are well kept as files; name a directory with more, and \
             `sqlitmus measure` answers for made-up blobs"
        ),
    ))
}

fn record(
    arguments: &AdviseArguments,
    tree: &Tree,
    scanned: &Scanned,
    samples: &Samples,
) -> AdviceRecord {
    let wish = arguments.wish();
    let tree = TreeFacts::of(display_path(tree.path()), &scanned.summary);
    let breadth = match arguments.thorough {
        true => Breadth::Wide,
        false => Breadth::Eight,
    };
    let tiers = (wish.durability, wish.other_durability());
    let mut candidates = candidates(&tree, tiers, breadth);
    candidates.retain(|one| wish.circumstances.has_room_for(&one.reading));
    AdviceRecord {
        candidates,
        wish,
        tree,
        finalists: Vec::new(),
        selected_with: samples.selection.facts(),
        confirmed_with: samples.confirmation.facts(),
        classes: Vec::new(),
        fillings: Default::default(),
        sweep: None,
        ablation: None,
    }
}

fn search<'a>(
    arguments: &AdviseArguments,
    record: AdviceRecord,
    (scratch, samples): (&'a Scratch, &'a Samples),
    (environment, name): (&Environment, &RunName),
    started: Instant,
) -> anyhow::Result<Search<'a>> {
    let search = Search {
        program: WorkerProgram {
            path: own_program()?,
            timeout: WORKER_TIMEOUT,
        },
        scratch,
        record,
        samples,
        seed: arguments.seed,
        cores: CoreChoice::of_this_machine(),
        all_cores: processor::allowed_cores().unwrap_or_default(),
        memory_limit_bytes: environment
            .memory_usable_bytes()
            .map_or(MEMORY_LIMIT_IF_UNKNOWN_BYTES, |bytes| bytes / 2),
        next_generation: name.started_seconds * GENERATIONS_OF_A_RUN,
        timetable: Timetable::new(arguments.thorough, started, arguments.budget),
        is_thorough: arguments.thorough,
        rounds: arguments.rounds,
        quiet: arguments.quiet,
    };
    Ok(search)
}

/// What a killed run has left: stores of the same sample.
fn remove_leftovers(scratch: &Scratch, plan: &Plan) -> anyhow::Result<()> {
    let stores = Stores::new(&scratch.stores_directory());
    for directory in store_directories(&stores, plan) {
        ownership::remove_owned(&directory)?;
    }
    Ok(())
}

/// Says what will happen, before it does.
fn announce(
    arguments: &AdviseArguments,
    tree: &Tree,
    scanned: &Scanned,
    samples: &Samples,
    chosen: &AdvicePlace,
    needed: u64,
) -> anyhow::Result<()> {
    let summary = &scanned.summary;
    let selection = samples.selection.facts();
    let confirmation = samples.confirmation.facts();
    let budget = arguments
        .budget
        .unwrap_or_else(|| timetable::expected(arguments.thorough));
    let mut lines = format!(
        "Advice on {}: {} files, {}\n  measured with {} of them ({}), the best two confirmed with {} {} ({})\n  \
         in {} | {} | needs up to {}, {} free | {} at the most\n",
        tree.path().display(),
        format_count(summary.files()),
        format_bytes(summary.total_bytes()),
        format_count(selection.files),
        format_bytes(selection.bytes),
        format_count(confirmation.files),
        if samples.is_whole {
            "of the same"
        } else {
            "others"
        },
        format_bytes(confirmation.bytes),
        chosen.place.path.display(),
        chosen.place.describe(),
        format_bytes(needed),
        format_bytes(chosen.place.space.available_bytes),
        format_duration(budget.as_nanos() as u64),
    );
    if arguments.thorough {
        let parts = timetable::in_words(budget).into_iter();
        let parts: Vec<String> = parts
            .map(|(what, time)| format!("{what} {}", format_duration(time.as_nanos() as u64)))
            .collect();
        lines.push_str(&format!("  of it {}\n", parts.join(", ")));
    }
    if chosen.is_elsewhere {
        lines.push_str(
            "warning: the stores are on another filesystem than the files, so that disks are compared too\n",
        );
    }
    let all_bytes = summary.total_bytes();
    lines.extend(memory::warning(
        arguments.memory,
        all_bytes,
        confirmation.bytes,
    ));
    if let Some((count, example)) = &samples.left_out {
        lines.push_str(&format!(
            "warning: {} files were left out, which cannot be read or have changed: {example}\n",
            format_count(*count)
        ));
    }
    tell(&lines)
}

/// An error of measuring, in words that help where the files have changed meanwhile.
fn explained(error: anyhow::Error) -> anyhow::Error {
    let changed = error.chain().find_map(|cause| {
        let inner = cause.downcast_ref::<std::io::Error>()?.get_ref()?;
        inner.downcast_ref::<ChangedFile>().map(ToString::to_string)
    });
    match changed {
        Some(changed) => Failure::bad_input(
            changed,
            "files that somebody writes meanwhile cannot be measured: stop that for some minutes, or advise on a \
             copy (cp -a DIR COPY)",
        )
        .into(),
        None => error,
    }
}

/// Records how the run ended, and prints its answer.
fn conclude(
    arguments: &AdviseArguments,
    mut file: RunFile,
    ending: anyhow::Result<Ending>,
) -> anyhow::Result<ExitCode> {
    let state = match &ending {
        Ok(ending) if !ending.interrupted => RunState::Complete,
        Ok(_) => RunState::Interrupted,
        Err(_) => RunState::Started,
    };
    let finished = file.finish(state, Some(&now_utc()));
    let ending = ending?;
    finished.map_err(Failure::from)?;
    let path: PathBuf = file.path().to_owned();
    drop(file);
    if ending.interrupted {
        return Ok(ExitCode::Interrupted);
    }
    answer(arguments, &path, ending)
}

fn answer(arguments: &AdviseArguments, path: &Path, ending: Ending) -> anyhow::Result<ExitCode> {
    let run = sqlitmus_runfile::read(path).map_err(Failure::from)?;
    let Some(recommendation) = recommend(&run) else {
        anyhow::bail!("{} holds no advice", path.display());
    };
    let languages = languages(arguments.snippet);
    if arguments.json {
        print(&sqlitmus_report::advice::json(
            &run,
            &recommendation,
            &languages,
        ))?;
    } else {
        let page = sqlitmus_report::advice::terminal(&run, &recommendation, &languages, &look());
        print(&page)?;
    }
    if !arguments.quiet {
        let separator = if std::io::stdout().is_terminal() {
            "\n"
        } else {
            ""
        };
        // The answer is out; this line is a service.
        let _ = writeln!(
            std::io::stderr(),
            "{separator}Run file: {}\nAll figures, as a page: sqlitmus report {} --format html --output advice.html",
            path.display(),
            path.display(),
        );
    }
    Ok(if ending.arms_failed {
        ExitCode::ArmsFailed
    } else if recommendation.answer == Answer::NotSure {
        ExitCode::NotSure
    } else {
        ExitCode::Done
    })
}

fn languages(snippet: Snippet) -> Vec<Language> {
    match snippet {
        Snippet::Python => vec![Language::Python],
        Snippet::Rust => vec![Language::Rust],
        Snippet::Go => vec![Language::Go],
        Snippet::Node => vec![Language::Node],
        Snippet::C => vec![Language::C],
        Snippet::All => Language::ALL.to_vec(),
        Snippet::None => Vec::new(),
    }
}
