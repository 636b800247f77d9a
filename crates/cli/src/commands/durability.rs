//! `sqlitmus durability`: says what will be cut off how often, has it done, and prints what each way
//! of writing really keeps.

use std::io::{IsTerminal, Write};
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::Context;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use sqlitmus_core::durability::{
    Batches, Configuration, CutKind, DurabilityPlan, DurabilityRun, judge,
};
use sqlitmus_core::run::{RunHead, RunState};
use sqlitmus_core::units::format_duration;
use sqlitmus_runfile::DurabilityFile;

use crate::arguments::{DurabilityArguments, Power};
use crate::commands::measure::command_line;
use crate::commands::{look, print};
use crate::durability::configurations;
use crate::durability::cutting::Site;
use crate::durability::experiment::{Ended, Event, Experiment, Ground};
use crate::durability::writing::StoreProgram;
use crate::failure::{ExitCode, Failure};
use crate::interruption;
use crate::machine::environment::Environment;
use crate::machine::loopback::{self, Filesystem, LoopbackSpecification, parse_specifications};
use crate::machine::ownership;
use crate::machine::place::Place;
use crate::machine::scratch::{Scratch, ScratchLock};
use crate::runs::{RunName, now_utc};

/// Keys of a store, and blobs in a batch. Few keys, so that each is overwritten often; three blobs, so
/// that half a batch can be seen.
const KEYS: u64 = 24;
const BLOBS: u64 = 3;

/// Commits between two settlings: a checkpoint or a compaction happens every second or so.
const SETTLE_EVERY: u64 = 50;

/// What is done by default, and by `--quick`: cuts, hold in seconds, turns and milliseconds of the
/// measurement of speed.
const THOROUGH: (u32, (u64, u64), u32, u64) = (20, (1, 40), 3, 500);
const QUICK: (u32, (u64, u64), u32, u64) = (3, (1, 10), 1, 300);

/// Longest time of writing before a process is killed.
const CRASH_HOLD_NS: u64 = 500_000_000;

/// What an image takes, at the most, while it is written: a journal and what a writer leaves.
const IMAGE_TAKES_BYTES: u64 = 120 << 20;

/// Making, filling, mounting again and looking at one store, about.
const OVERHEAD_NS: u64 = 1_200_000_000;

/// Between two lines of progress where there is no terminal.
const BETWEEN_LINES: Duration = Duration::from_secs(30);

/// Runs the experiment.
///
/// # Errors
/// Bad input, or something that is missing, before anything is created; the environment later.
pub fn run(arguments: &DurabilityArguments) -> anyhow::Result<ExitCode> {
    let grounds = grounds(arguments)?;
    let directory = arguments.place.as_ref().unwrap_or(&arguments.images);
    let place = Place::inspect(directory).map_err(Failure::from)?;
    if let Some(output) = &arguments.output {
        super::measure::refuse_existing(output)?;
    }
    let plan = plan(arguments, &grounds, &place)?;
    let lanes = u64::from(arguments.at_once).min(cuts(&plan, &grounds).max(1));
    place
        .require_space((lanes + 1) * IMAGE_TAKES_BYTES, 10_000)
        .map_err(Failure::from)?;
    let scratch = Scratch::open(&place.path).map_err(Failure::from)?;
    let lock = scratch.lock().map_err(Failure::from)?;
    interruption::listen().context("cannot listen for Ctrl-C")?;
    remove_leftovers(&scratch, &lock)?;
    if !arguments.quiet {
        announce(arguments, &plan, &grounds, &place, lanes)?;
    }
    let name = RunName::now("durability");
    let path = match &arguments.output {
        Some(path) => path.clone(),
        None => scratch.runs_directory().join(name.file_name()),
    };
    let mut facts = Environment::read().facts().to_vec();
    facts.extend(place.facts());
    let head = head(&name, &place);
    let file = DurabilityFile::create(&path, &head, &plan, &facts).map_err(Failure::from)?;
    if arguments.output.is_none() {
        ownership::claim_created(&path, "run file")?;
    }
    let progress = Progress::new(arguments.quiet);
    let experiment = Experiment {
        plan: &plan,
        grounds,
        site: Site {
            scratch,
            lock,
            program: StoreProgram {
                path: std::env::current_exe().context("cannot find this program's own file")?,
            },
        },
        file: Mutex::new(file),
        lanes: lanes as usize,
        speed_turns: if arguments.quick { QUICK.2 } else { THOROUGH.2 },
        speed_length: Duration::from_millis(if arguments.quick { QUICK.3 } else { THOROUGH.3 }),
        tell: &|event| progress.show(&event),
    };
    let ended = experiment.run();
    progress.end();
    let mut file = experiment
        .file
        .into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    let ended = ended.map_err(Failure::from)?;
    let state = if ended.interrupted {
        RunState::Interrupted
    } else {
        RunState::Complete
    };
    file.finish(state, &now_utc()).map_err(Failure::from)?;
    let run = file.run().map_err(Failure::from)?;
    drop(file);
    answer(arguments, &path, &run, ended)
}

/// Where is written, and by what the power is cut there.
fn grounds(arguments: &DurabilityArguments) -> Result<Vec<Ground>, Failure> {
    if let Some(place) = &arguments.place {
        return Ok(vec![Ground::Place(place.clone())]);
    }
    let specifications = parse_specifications(&arguments.loopback).map_err(Failure::from)?;
    let without = "`sqlitmus durability --place DIR` needs neither root nor a loop device: it kills \
                   processes, and leaves the power on";
    loopback::require(&specifications).map_err(|error| {
        let mut failure = Failure::from(error);
        failure.hint = format!("{}; {without}", failure.hint);
        failure
    })?;
    specifications
        .into_iter()
        .map(|specification| {
            let kind = power_kind(arguments.power, &specification)?;
            Ok(Ground::Loopback(specification, kind))
        })
        .collect()
}

fn power_kind(
    power: Option<Power>,
    specification: &LoopbackSpecification,
) -> Result<Option<CutKind>, Failure> {
    let filesystem = specification.filesystem;
    let can_shut_down = matches!(filesystem, Filesystem::Ext4 | Filesystem::Xfs);
    if filesystem == Filesystem::Tmpfs {
        // Without power nothing is left of it: there is nothing to find out.
        return Ok(None);
    }
    let kind = match power {
        Some(Power::Shutdown) if !can_shut_down => {
            return Err(Failure::bad_input(
                format!("{specification} cannot be shut down: its kernel driver has no such call"),
                "use --power device or --power reordering, which work below any filesystem",
            ));
        }
        Some(Power::Shutdown) => CutKind::Shutdown,
        None if can_shut_down => CutKind::Shutdown,
        Some(Power::Reordering) => CutKind::Reordering,
        Some(Power::Device) | None => CutKind::Device,
    };
    if kind != CutKind::Shutdown {
        loopback::volatile_device::require().map_err(Failure::from)?;
    }
    Ok(Some(kind))
}

fn plan(
    arguments: &DurabilityArguments,
    grounds: &[Ground],
    place: &Place,
) -> Result<DurabilityPlan, Failure> {
    let (default_cuts, (least, most), ..) = if arguments.quick { QUICK } else { THOROUGH };
    let hold_ns = match &arguments.hold {
        Some(text) => parse_hold(text)?,
        None => (least * 1_000_000_000, most * 1_000_000_000),
    };
    let filesystems = grounds.iter().map(|ground| match ground {
        Ground::Loopback(specification, _) => specification.to_string(),
        Ground::Place(_) => place.filesystem.clone(),
    });
    Ok(DurabilityPlan {
        filesystems: filesystems.collect(),
        configurations: chosen(&arguments.only)?,
        cuts: arguments.cuts.unwrap_or(default_cuts),
        hold_ns,
        crash_hold_ns: CRASH_HOLD_NS,
        batches: Batches {
            keys: KEYS,
            blobs: BLOBS,
            seed: arguments.seed,
        },
        settle_every: SETTLE_EVERY,
        early_writeback: arguments.early_writeback,
    })
}

/// The configurations that are asked for, and always the one that lies.
fn chosen(only: &[String]) -> Result<Vec<Configuration>, Failure> {
    let mut all = configurations::all();
    for words in only {
        if !all.iter().any(|one| one.name.contains(words.as_str())) {
            let names: Vec<&str> = all.iter().map(|one| one.name.as_str()).collect();
            return Err(Failure::bad_input(
                format!("no configuration's name contains `{words}`"),
                format!("there are: {}", names.join("; ")),
            ));
        }
    }
    all.retain(|one| {
        only.is_empty() || one.is_control || only.iter().any(|words| one.name.contains(words))
    });
    Ok(all)
}

/// `1-40s`, `500ms-2s`, or one time for both.
fn parse_hold(text: &str) -> Result<(u64, u64), Failure> {
    let (least, most) = text.split_once('-').unwrap_or((text, text));
    let unit = most.trim_start_matches(|letter: char| letter.is_ascii_digit() || letter == '.');
    let time = |text: &str| {
        let has_unit = text.ends_with(|letter: char| letter.is_ascii_alphabetic());
        let text = if has_unit {
            text.to_owned()
        } else {
            format!("{text}{unit}")
        };
        let time = humantime::parse_duration(text.trim()).ok()?;
        u64::try_from(time.as_nanos()).ok()
    };
    match (time(least), time(most)) {
        (Some(least), Some(most)) if 0 < least && least <= most && most <= HOLD_MOST_NS => {
            Ok((least, most))
        }
        _ => Err(Failure::bad_input(
            format!("`{text}` is no range of times"),
            "write the shortest and the longest, up to an hour: --hold 1-40s, --hold 500ms-2s",
        )),
    }
}

/// An hour.
const HOLD_MOST_NS: u64 = 3_600_000_000_000;

/// Cuts of all kinds.
fn cuts(plan: &DurabilityPlan, grounds: &[Ground]) -> u64 {
    let kinds = grounds.iter().map(|ground| match ground {
        Ground::Loopback(_, Some(_)) => 2,
        _ => 1,
    });
    kinds.sum::<u64>() * plan.configurations.len() as u64 * u64::from(plan.cuts)
}

fn head(name: &RunName, place: &Place) -> RunHead {
    RunHead {
        id: name.id.clone(),
        sqlitmus_version: env!("CARGO_PKG_VERSION").to_owned(),
        started_utc: name.started_utc.clone(),
        finished_utc: None,
        state: RunState::Started,
        command_line: command_line(),
        place: place.path.display().to_string(),
    }
}

fn remove_leftovers(scratch: &Scratch, lock: &ScratchLock) -> anyhow::Result<()> {
    for leftover in loopback::remove_leftovers(scratch, lock).map_err(Failure::from)? {
        if let Some(reason) = leftover.kept {
            let path = leftover.path.display();
            tell(&format!("warning: a leftover stays, {path}: {reason}\n"))?;
        }
    }
    Ok(())
}

/// Says what will happen, before it does.
fn announce(
    arguments: &DurabilityArguments,
    plan: &DurabilityPlan,
    grounds: &[Ground],
    place: &Place,
    lanes: u64,
) -> anyhow::Result<()> {
    let mut lines = format!(
        "Cutting off {} configurations on {}, {} times each, in {}\n",
        plan.configurations.len(),
        plan.filesystems.join(", "),
        plan.cuts,
        place.path.display(),
    );
    for (ground, filesystem) in grounds.iter().zip(&plan.filesystems) {
        lines += &match ground {
            Ground::Loopback(_, Some(kind)) => {
                format!("  {filesystem}: processes are killed, and the power goes by {kind}\n")
            }
            Ground::Loopback(_, None) => format!(
                "  {filesystem}: processes are killed; without power nothing is left of it anyway\n"
            ),
            Ground::Place(_) => format!(
                "  {filesystem}: processes are killed; the power stays on, so nothing is found out \
                 about losing it (that takes root and a loop device)\n"
            ),
        };
    }
    let estimate_ns = estimate_ns(arguments, plan, grounds, lanes);
    lines += &format!(
        "  {lanes} at a time, each on a filesystem of its own | about {}\n",
        format_duration(estimate_ns / 1_000_000_000 * 1_000_000_000)
    );
    tell(&lines)
}

fn estimate_ns(
    arguments: &DurabilityArguments,
    plan: &DurabilityPlan,
    grounds: &[Ground],
    lanes: u64,
) -> u64 {
    let (_, _, turns, length_ms) = if arguments.quick { QUICK } else { THOROUGH };
    let arms = plan.configurations.len() as u64;
    let speeds = grounds.len() as u64 * arms * u64::from(turns) * (length_ms + 150) * 1_000_000;
    let hold_ns = (plan.hold_ns.0 + plan.hold_ns.1) / 2 + OVERHEAD_NS;
    let crash_ns = plan.crash_hold_ns / 2 + OVERHEAD_NS / 3;
    let cut_ns = grounds.iter().map(|ground| match ground {
        Ground::Loopback(_, Some(_)) => hold_ns + crash_ns,
        _ => crash_ns,
    });
    speeds + cut_ns.sum::<u64>() * arms * u64::from(plan.cuts) / lanes
}

fn tell(lines: &str) -> anyhow::Result<()> {
    std::io::stderr()
        .write_all(lines.as_bytes())
        .context("cannot write to standard error")
}

/// A bar on a terminal, a line now and then elsewhere, nothing if quiet.
struct Progress {
    bar: Option<ProgressBar>,
    last_line: Mutex<Option<Instant>>,
}

impl Progress {
    fn new(quiet: bool) -> Self {
        let is_terminal = std::io::stderr().is_terminal();
        let bar = (is_terminal && !quiet).then(|| {
            let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr());
            let style = ProgressStyle::with_template("{msg:24} {bar:30} {pos}/{len} {elapsed}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar
        });
        Self {
            bar,
            last_line: Mutex::new((!quiet && !is_terminal).then(Instant::now)),
        }
    }

    fn show(&self, event: &Event<'_>) {
        let (what, done, total) = match event {
            Event::Speed(done, total) => ("measuring speeds", *done, *total),
            Event::Cut(_, done, total) => ("cutting", *done, *total),
            Event::LeftOut(reason) => {
                // A warning is worth a line even when progress is not.
                let _ = tell(&format!("warning: left out: {reason}\n"));
                return;
            }
        };
        if let Some(bar) = &self.bar {
            bar.set_length(total as u64);
            bar.set_position(done as u64);
            bar.set_message(what);
        }
        let mut last = self
            .last_line
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(at) = last.as_mut()
            && (at.elapsed() > BETWEEN_LINES || done == total)
        {
            *at = Instant::now();
            let _ = tell(&format!("{what}: {done} of {total}\n"));
        }
    }

    fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// The table on standard output, the way to more on standard error.
fn answer(
    arguments: &DurabilityArguments,
    path: &Path,
    run: &DurabilityRun,
    ended: Ended,
) -> anyhow::Result<ExitCode> {
    let table = judge(run);
    print(&sqlitmus_report::durability::terminal(run, &table, &look()))?;
    if !arguments.quiet {
        let shown = path.display();
        tell(&format!(
            "Run file: {shown}\nAgain, as a page: sqlitmus report {shown} --format html --output durability.html\n"
        ))?;
    }
    Ok(if ended.interrupted {
        ExitCode::Interrupted
    } else if !table.is_trustworthy() {
        ExitCode::Environment
    } else if ended.failed_cuts > 0 {
        ExitCode::ArmsFailed
    } else if table.broken().next().is_some() {
        ExitCode::No
    } else {
        ExitCode::Done
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_times_are_read() {
        let seconds = |least: u64, most: u64| (least * 1_000_000_000, most * 1_000_000_000);
        assert_eq!(parse_hold("1-40s").expect("valid"), seconds(1, 40));
        assert_eq!(parse_hold("1s-2m").expect("valid"), seconds(1, 120));
        assert_eq!(parse_hold("5s").expect("valid"), seconds(5, 5));
        assert_eq!(parse_hold("500ms-2s").expect("valid").0, 500_000_000);
        for text in ["", "-", "x", "40-1s", "1", "0s", "2h", "1-40"] {
            let failure = parse_hold(text).expect_err(text);
            assert!(failure.hint.contains("--hold"), "{text}");
        }
    }

    #[test]
    fn the_liar_is_always_there() {
        let names = |only: &[&str]| -> Vec<String> {
            let only: Vec<String> = only.iter().map(|words| (*words).to_owned()).collect();
            chosen(&only)
                .expect("known")
                .into_iter()
                .map(|one| one.name)
                .collect()
        };
        let few = names(&["sqlite wal normal", "packfile"]);
        assert_eq!(few.len(), 4, "{few:?}");
        assert_eq!(few[3], configurations::CONTROL);
        let failure = chosen(&["mongodb".to_owned()]).expect_err("unknown");
        assert!(failure.hint.contains("sqlite wal full"));
    }
}
