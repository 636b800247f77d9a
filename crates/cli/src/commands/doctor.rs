//! `sqlitmus doctor`: examines the machine and a place, says what makes numbers untrustworthy and what
//! to do. What is judged, and how, is [`crate::machine::doctor`]'s business.

#[cfg(test)]
mod golden;
mod text;

use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context;
use sqlitmus_core::analysis::analyse;
use sqlitmus_core::plan::Plan;
use sqlitmus_core::run::{RunHead, RunState};
use sqlitmus_runfile::RunFile;

use crate::arguments::DoctorArguments;
use crate::catalogue::BuiltInEngines;
use crate::commands::{look, print};
use crate::failure::{ExitCode, Failure, with_causes};
use crate::interruption;
use crate::machine::doctor::activity::{self, Activity};
use crate::machine::doctor::clock::{self, Clock};
use crate::machine::doctor::cores::{self, Cores, Frequency};
use crate::machine::doctor::flush::{self, Flush, FlushTimes};
use crate::machine::doctor::memory::{self, HugePages, Memory, Swap};
use crate::machine::doctor::noise::{self, Noise};
use crate::machine::doctor::page_reclaim::{self, IdleFile, PageReclaim};
use crate::machine::doctor::rights::{self, Rights};
use crate::machine::doctor::scanners::{self, Scanners};
use crate::machine::doctor::sqlite_versions::{self, SqliteVersions};
use crate::machine::doctor::storage::{self, Room, Storage};
use crate::machine::doctor::{Examination, FORMAT, Finding, Level};
use crate::machine::environment::Environment;
use crate::machine::kernel_files::KernelFiles;
use crate::machine::ownership::{self, OwnershipError};
use crate::machine::place::{FilesystemClass, Place};
use crate::machine::processor::{self, CoreChoice};
use crate::machine::scratch::Scratch;
use crate::orchestrator::Orchestrator;
use crate::orchestrator::worker_process::WorkerProgram;
use crate::runs::{RunName, now_utc};
use crate::stores::{SpaceNeeded, Stores};
use crate::suites;

/// How long others are watched.
const WATCH: Duration = Duration::from_secs(1);
const WATCH_QUICK: Duration = Duration::from_millis(300);

/// How long flushes of each kind are timed, at the most.
const FLUSHING: Duration = Duration::from_secs(1);
const FLUSHING_QUICK: Duration = Duration::from_millis(200);

/// Longest wait for one answer of a worker.
const WORKER_TIMEOUT: Duration = Duration::from_secs(60);

/// Examines.
///
/// # Errors
/// The place does not exist or cannot be written to, or another run is under way there.
pub fn run(arguments: &DoctorArguments) -> anyhow::Result<ExitCode> {
    let place = Place::inspect(&arguments.place).map_err(Failure::from)?;
    // Before anything is pinned, or keeps a core busy.
    let environment = Environment::read();
    let scratch = Scratch::open(&place.path).map_err(Failure::from)?;
    let _lock = scratch.lock().map_err(Failure::from)?;
    interruption::listen().context("cannot listen for Ctrl-C")?;
    let folder = scratch.stores_directory().join("doctor");
    // One that was killed may have left some.
    ownership::remove_owned(&folder).map_err(in_the_way)?;
    ownership::create_directory(&folder, "files of sqlitmus doctor").map_err(in_the_way)?;
    let doctor = Doctor {
        arguments,
        place: &place,
        environment: &environment,
        files: KernelFiles::of_this_machine(),
        folder: &folder,
    };
    let findings = doctor.examine();
    let removed = ownership::remove_owned(&folder);
    let findings = findings?;
    removed?;
    if interruption::requested() {
        return Ok(ExitCode::Interrupted);
    }
    let examination = Examination {
        format: FORMAT,
        sqlitmus_version: env!("CARGO_PKG_VERSION").to_owned(),
        examined_utc: now_utc(),
        place: place.path.display().to_string(),
        quick: arguments.quick,
        level: Examination::worst(&findings),
        findings,
    };
    if arguments.json {
        print(&(serde_json::to_string_pretty(&examination)? + "\n"))?;
    } else {
        print(&text::text(&examination, &look()))?;
    }
    Ok(match examination.level {
        Level::Problem => ExitCode::No,
        Level::Ok | Level::Note | Level::Warning => ExitCode::Done,
    })
}

/// Something that is not ours has the name of our folder, unless the machine gave out.
fn in_the_way(error: OwnershipError) -> Failure {
    let message = with_causes(&error);
    match error {
        OwnershipError::Io { .. } => Failure::environment(message, ""),
        _ => Failure::bad_input(message, "move it away, or examine another directory"),
    }
}

/// An examination under way.
struct Doctor<'a> {
    arguments: &'a DoctorArguments,
    place: &'a Place,
    environment: &'a Environment,
    files: KernelFiles,
    /// Ours, and removed afterwards.
    folder: &'a Path,
}

impl Doctor<'_> {
    /// All findings, in their order. What can only be seen while nothing happens comes first, the
    /// noise floor last, since it pins this process.
    fn examine(&self) -> anyhow::Result<Vec<Finding>> {
        let quick = self.arguments.quick;
        self.tell("watching what others do");
        let window = if quick { WATCH_QUICK } else { WATCH };
        let activity = Activity::watch(&self.files, self.environment, window);
        self.tell("looking at clock, memory, disk and programs");
        let idle = (!quick).then(|| IdleFile::leave(&self.folder.join("idle")));
        let needed = needed_by_the_canonical_suite(&self.folder.join("nowhere"))?;
        let mut findings = self.findings_of_the_machine(&activity, needed);
        let storage = Storage::of(self.place);
        findings.push(storage::STORAGE.finding(&storage, storage.judge()));
        let room = Room {
            available_bytes: self.place.space.available_bytes,
            available_inodes: self.place.space.available_inodes,
            needed_bytes: needed.bytes,
            needed_inodes: needed.inodes,
        };
        findings.push(storage::SPACE.finding(&room, room.judge()));
        self.tell("timing flushes");
        let flush = self.flush(&storage);
        findings.push(flush::CHECK.finding(&flush, flush.judge()));
        if !quick {
            self.tell("comparing two identical arms, about ten seconds");
        }
        let noise = self.noise();
        let reclaim = self.page_reclaim(idle);
        findings.push(page_reclaim::CHECK.finding(&reclaim, reclaim.judge()));
        findings.push(noise::CHECK.finding(&noise, noise.judge()));
        Ok(findings)
    }

    fn findings_of_the_machine(&self, activity: &Activity, needed: SpaceNeeded) -> Vec<Finding> {
        let clock = Clock::read(self.environment);
        let cores = Cores::read(&self.files, self.environment);
        let frequency = Frequency::read(&self.files, self.environment);
        let memory = Memory::read(self.environment, needed.bytes);
        let swap = Swap::read(self.environment, activity.swapped_pages);
        let huge_pages = HugePages::read(self.environment);
        let scanners = Scanners::read(&self.files);
        let versions = SqliteVersions::read();
        let rights = Rights::read();
        vec![
            clock::CHECK.finding(&clock, clock.judge()),
            cores::CORES.finding(&cores, cores.judge()),
            cores::FREQUENCY.finding(&frequency, frequency.judge()),
            activity::STEAL.finding(activity, activity.judge_steal()),
            activity::LOAD.finding(activity, activity.judge_load()),
            memory::MEMORY.finding(&memory, memory.judge()),
            memory::SWAP.finding(&swap, swap.judge()),
            memory::HUGE_PAGES.finding(&huge_pages, huge_pages.judge()),
            scanners::CHECK.finding(&scanners, scanners.judge()),
            sqlite_versions::CHECK.finding(&versions, versions.judge()),
            rights::CHECK.finding(&rights, rights.judge()),
        ]
    }

    fn flush(&self, storage: &Storage) -> Flush {
        let time = if self.arguments.quick {
            FLUSHING_QUICK
        } else {
            FLUSHING
        };
        let measured = flush::measure(&self.folder.join("flush"), time);
        let failure = measured.as_ref().err().map(|error| with_causes(error));
        let (fsync, fdatasync) = measured.unwrap_or_default();
        Flush {
            fsync: FlushTimes::of(fsync),
            fdatasync: FlushTimes::of(fdatasync),
            on_device: self.place.class() == FilesystemClass::Device,
            write_cache: storage.write_cache.clone(),
            failure: failure.unwrap_or_default(),
        }
    }

    fn page_reclaim(&self, idle: Option<std::io::Result<IdleFile>>) -> PageReclaim {
        let after = Duration::from_secs(self.arguments.idle);
        let looked = idle.map(|file| match file {
            Ok(file) => file.look(after).map_err(|error| with_causes(&error)),
            Err(error) => Err(format!(
                "a file to be left alone cannot be written: {error}"
            )),
        });
        let (idle, untold) = match looked {
            Some(Ok(idle)) => (Some(idle), String::new()),
            Some(Err(reason)) => (None, reason),
            None => (None, String::new()),
        };
        PageReclaim {
            idle,
            untold,
            reclaimers: page_reclaim::reclaimers(&self.files),
        }
    }

    fn noise(&self) -> Noise {
        let mut noise = Noise {
            noise_floor: None,
            rounds: 0,
            slices: 0,
            slice_ms: 0,
            operation_ns: None,
            took_ms: 0,
            failure: String::new(),
        };
        if self.arguments.quick {
            return noise;
        }
        let start = Instant::now();
        if let Err(error) = self.measure_noise(&mut noise) {
            noise.failure = format!("{error:#}");
        }
        noise.took_ms = u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX);
        noise
    }

    /// Runs the plan of the noise floor as `measure` would run it.
    fn measure_noise(&self, noise: &mut Noise) -> anyhow::Result<()> {
        let plan = noise::plan(self.arguments.rounds)?;
        let group = plan.groups.first().context("the plan is empty")?;
        noise.slices = group.slices;
        noise.slice_ms = group.slice_ns / 1_000_000;
        let name = RunName::now(&plan.suite);
        let path = self.folder.join("noise.run");
        let head = RunHead {
            id: name.id.clone(),
            sqlitmus_version: env!("CARGO_PKG_VERSION").to_owned(),
            started_utc: name.started_utc.clone(),
            finished_utc: None,
            state: RunState::Started,
            command_line: "sqlitmus doctor".to_owned(),
            place: self.place.path.display().to_string(),
        };
        let mut file = RunFile::create(&path, &head, &plan, self.environment.facts())?;
        let trouble = self.orchestrate(&plan, &mut file)?;
        let run = file.run()?;
        let analysis = analyse(&run);
        let measured = analysis.groups.first().context("nothing was analysed")?;
        noise.rounds = measured.rounds;
        noise.noise_floor = measured.noise_floor;
        noise.operation_ns = measured.arms.first().and_then(|arm| arm.operation_ns);
        noise.failure = match (measured.noise_floor, trouble.as_slice()) {
            (Some(floor), _) if floor.is_finite() => String::new(),
            (_, []) => "too few rounds count".to_owned(),
            (_, trouble) => trouble.join("; "),
        };
        Ok(())
    }

    /// Runs a plan; returns what went wrong in it without ending it.
    fn orchestrate(&self, plan: &Plan, file: &mut RunFile) -> anyhow::Result<Vec<String>> {
        // Before pinning: filling uses the cores that may be used now.
        let stores = Stores::new(self.folder);
        let cores = CoreChoice::of_this_machine();
        if let Some(core) = cores.orchestrator {
            // Unpinned is noisier, not wrong.
            let _ = processor::pin_to_core(core);
        }
        let mut trouble = Vec::new();
        Orchestrator {
            variants: Default::default(),
            program: WorkerProgram {
                path: std::env::current_exe()
                    .context("cannot find this program's own file to run as a worker")?,
                timeout: WORKER_TIMEOUT,
            },
            stores,
            worker_core: cores.worker,
            // Two readers of one small store.
            memory_limit_bytes: u64::MAX,
            may_drop_caches: false,
            deadline: None,
            planted: None,
            next_generation: 1,
            file,
            tell: &mut |event| {
                if let crate::orchestrator::Event::Trouble { message } = event {
                    trouble.push(message);
                }
            },
        }
        .run(plan)?;
        Ok(trouble)
    }

    fn tell(&self, doing: &str) {
        if !self.arguments.quiet {
            // A service; that it cannot be written changes nothing.
            let _ = writeln!(std::io::stderr(), "{doing} ...");
        }
    }
}

/// Space that the canonical suite takes where none of its stores is there yet.
fn needed_by_the_canonical_suite(nowhere: &Path) -> Result<SpaceNeeded, Failure> {
    let suite = suites::find(suites::CANONICAL)?;
    let plan = Plan::resolve(&suite, "default", 1, &BuiltInEngines)
        .map_err(|error| Failure::bad_input(error.to_string(), error.hint))?;
    Ok(Stores::new(nowhere).space_needed(&plan))
}
