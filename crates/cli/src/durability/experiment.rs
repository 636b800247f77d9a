//! All of a plan: first every configuration's speed, one after the other; then the cuts, several at
//! a time, each on a filesystem of its own, because on a shared one an fsync of one writer would
//! make its neighbours' writes safe too (ext4 commits one journal for all).

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use sqlitmus_core::dataset::{bounded, mix};
use sqlitmus_core::durability::{Batches, Configuration, Cut, CutKind, DurabilityPlan};
use sqlitmus_runfile::{DurabilityFile, RunFileError};

use super::cutting::{IMAGE_BYTES, NoCut, PlannedCut, Site};
use super::speeds;
use crate::failure::with_causes;
use crate::interruption;
use crate::machine::loopback::{Loopback, LoopbackSpecification};
use crate::machine::ownership;
use crate::machine::place::Place;

/// Shortest and longest mean pause of a writer whose power is cut: from one that is always at work to
/// one that mostly waits, since what is lost differs.
const PAUSE_NS: (u64, u64) = (3_000_000, 60_000_000);

/// The same of a writer that is killed, which is to be met at work.
const CRASH_PAUSE_NS: (u64, u64) = (100_000, 4_000_000);

/// Shortest time of writing before a kill.
const CRASH_HOLD_LEAST_NS: u64 = 20_000_000;

/// Where a filesystem of the plan is.
#[derive(Debug, Clone)]
pub enum Ground {
    /// A loopback, and by what its power is cut, if it can be.
    Loopback(LoopbackSpecification, Option<CutKind>),
    /// The place itself, where only processes can be killed.
    Place(PathBuf),
}

/// What happens, for a progress display.
#[derive(Debug)]
pub enum Event<'a> {
    /// A speed was measured; so many of so many.
    Speed(usize, usize),
    /// A cut was made; so many of so many.
    Cut(&'a Cut, usize, usize),
    /// Something that is left out, with the reason.
    LeftOut(String),
}

/// The experiment.
pub struct Experiment<'a> {
    /// What is done.
    pub plan: &'a DurabilityPlan,
    /// The filesystems of the plan, in its order.
    pub grounds: Vec<Ground>,
    /// What all cuts share.
    pub site: Site,
    /// Where everything is kept.
    pub file: Mutex<DurabilityFile>,
    /// Cuts at a time.
    pub lanes: usize,
    /// Turns in which speeds are measured, and the length of each; 0 turns measures none.
    pub speed_turns: u32,
    /// Length of a turn.
    pub speed_length: Duration,
    /// Told what happens.
    pub tell: &'a (dyn Fn(Event<'_>) + Sync),
}

/// One thing for a lane to do.
struct Work {
    ground: usize,
    configuration: usize,
    kind: CutKind,
    /// Which cut; all of them for process crashes, which share a filesystem one after the other.
    numbers: Vec<u32>,
    length_ns: u64,
}

/// How the experiment ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// By the user.
    pub interrupted: bool,
    /// Some cuts could not be made or looked at.
    pub failed_cuts: usize,
}

impl Experiment<'_> {
    /// Goes through all of it.
    ///
    /// # Errors
    /// The run file cannot be written. What fails for one cut is kept with the cut.
    pub fn run(&self) -> Result<Ended, RunFileError> {
        self.measure_speeds()?;
        let mut work = self.work();
        let total: usize = work.iter().map(|work| work.numbers.len()).sum();
        // The longest first, taken from the end: then no lane is left alone with one.
        work.sort_by_key(|work| work.length_ns);
        let shared = Shared {
            work: Mutex::new(work),
            done: Mutex::new((0, 0)),
            total,
            error: Mutex::new(None),
            stopped: AtomicBool::new(false),
        };
        std::thread::scope(|scope| {
            for _ in 0..self.lanes.max(1) {
                scope.spawn(|| self.lane(&shared));
            }
        });
        let error = shared
            .error
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(error) = error {
            return Err(error);
        }
        let (_, failed_cuts) = *shared.done.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(Ended {
            interrupted: interruption::requested(),
            failed_cuts,
        })
    }

    /// All cuts.
    fn work(&self) -> Vec<Work> {
        let mut all = Vec::new();
        for (ground, place) in self.grounds.iter().enumerate() {
            for configuration in 0..self.plan.configurations.len() {
                let numbers: Vec<u32> = (0..self.plan.cuts).collect();
                all.push(Work {
                    ground,
                    configuration,
                    kind: CutKind::ProcessCrash,
                    length_ns: u64::from(self.plan.cuts) * self.plan.crash_hold_ns,
                    numbers: numbers.clone(),
                });
                let Ground::Loopback(_, Some(kind)) = place else {
                    continue;
                };
                for number in numbers {
                    let mut work = Work {
                        ground,
                        configuration,
                        kind: *kind,
                        numbers: vec![number],
                        length_ns: 0,
                    };
                    work.length_ns = self.planned(&work, number).hold.as_nanos() as u64;
                    all.push(work);
                }
            }
        }
        all
    }

    /// A cut with everything random drawn from the seed and what the cut is.
    fn planned(&self, work: &Work, number: u32) -> PlannedCut<'_> {
        let plan = self.plan;
        let kind = work.kind as u64;
        let place = mix((work.ground as u64) << 32 | work.configuration as u64);
        let seed = mix(plan.batches.seed ^ mix(place ^ mix(kind << 32 | u64::from(number))));
        let is_crash = work.kind == CutKind::ProcessCrash;
        let (least, most) = if is_crash {
            (
                CRASH_HOLD_LEAST_NS.min(plan.crash_hold_ns),
                plan.crash_hold_ns,
            )
        } else {
            plan.hold_ns
        };
        // Each cut has its own stretch of the range, so that all of it is covered.
        let span = most.saturating_sub(least) / u64::from(plan.cuts.max(1));
        let hold_ns = least + span * u64::from(number) + bounded(mix(seed ^ 1), span.max(1));
        let pauses = if is_crash { CRASH_PAUSE_NS } else { PAUSE_NS };
        PlannedCut {
            filesystem: &plan.filesystems[work.ground],
            configuration: &plan.configurations[work.configuration],
            kind: work.kind,
            number,
            hold: Duration::from_nanos(hold_ns),
            pause: Duration::from_nanos(log_uniform(pauses, mix(seed ^ 2))),
            batches: Batches {
                seed,
                ..plan.batches
            },
            settle_every: plan.settle_every,
            early_writeback: plan.early_writeback,
        }
    }

    /// Does work until there is none.
    fn lane(&self, shared: &Shared) {
        while !shared.stopped.load(Ordering::Relaxed) && !interruption::requested() {
            let next = shared
                .work
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .pop();
            let Some(work) = next else { return };
            let kept = self.do_work(&work, &mut |cut| self.keep(&cut, shared));
            match kept {
                Ok(()) => {}
                Err(Stop::Interrupted) => return,
                Err(Stop::File(error)) => {
                    shared.stopped.store(true, Ordering::Relaxed);
                    let mut first = shared.error.lock().unwrap_or_else(PoisonError::into_inner);
                    first.get_or_insert(error);
                }
            }
        }
    }

    fn do_work(
        &self,
        work: &Work,
        keep: &mut dyn FnMut(Cut) -> Result<(), RunFileError>,
    ) -> Result<(), Stop> {
        if work.kind == CutKind::ProcessCrash {
            return self.kill_processes(work, keep);
        }
        let Ground::Loopback(filesystem, _) = &self.grounds[work.ground] else {
            return Ok(());
        };
        for number in &work.numbers {
            let planned = self.planned(work, *number);
            keep(planned.with_power(&self.site, filesystem)?)?;
        }
        Ok(())
    }

    /// All process crashes of a configuration, one after the other on one filesystem: nothing that
    /// the system keeps is lost by them.
    fn kill_processes(
        &self,
        work: &Work,
        keep: &mut dyn FnMut(Cut) -> Result<(), RunFileError>,
    ) -> Result<(), Stop> {
        let name = format!("crash-{}-{}", work.ground, work.configuration);
        let folders = match Folders::new(&self.site, &self.grounds[work.ground], &name) {
            Ok(folders) => folders,
            Err(reason) => {
                for number in &work.numbers {
                    let planned = self.planned(work, *number);
                    keep(failed(&planned, &reason))?;
                }
                return Ok(());
            }
        };
        for number in &work.numbers {
            let planned = self.planned(work, *number);
            let cut = match folders.make(*number) {
                Ok(folder) => {
                    let cut = planned.by_killing(&self.site, &folder)?;
                    // What stays is removed with the filesystem, or by `sqlitmus clean`.
                    let _ = folders.remove(&folder);
                    cut
                }
                Err(reason) => failed(&planned, &reason),
            };
            keep(cut)?;
        }
        Ok(())
    }

    fn keep(&self, cut: &Cut, shared: &Shared) -> Result<(), RunFileError> {
        self.file().record_cut(cut)?;
        let mut done = shared.done.lock().unwrap_or_else(PoisonError::into_inner);
        done.0 += 1;
        done.1 += usize::from(matches!(
            cut.ending,
            sqlitmus_core::durability::Ending::Failed(_)
        ));
        (self.tell)(Event::Cut(cut, done.0, shared.total));
        Ok(())
    }

    fn file(&self) -> std::sync::MutexGuard<'_, DurabilityFile> {
        self.file.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Every configuration in turns, on one filesystem of each kind.
    fn measure_speeds(&self) -> Result<(), RunFileError> {
        let arms = self.grounds.len() * self.plan.configurations.len();
        let total = arms * self.speed_turns as usize;
        let mut done = 0;
        for (ground, filesystem) in self.grounds.iter().zip(&self.plan.filesystems) {
            let folders = match Folders::new(&self.site, ground, "speed") {
                Ok(folders) => folders,
                Err(reason) => {
                    (self.tell)(Event::LeftOut(format!("speeds on {filesystem}: {reason}")));
                    continue;
                }
            };
            if let Ok(place) = Place::inspect(&folders.base()) {
                let options = place.mount_options.join(",");
                self.file().record_mount_options(filesystem, &options)?;
            }
            for turn in 0..self.speed_turns {
                for (index, configuration) in self.plan.configurations.iter().enumerate() {
                    if interruption::requested() {
                        return Ok(());
                    }
                    let number = turn * 1000 + index as u32;
                    self.measure_speed(&folders, filesystem, configuration, number)?;
                    done += 1;
                    (self.tell)(Event::Speed(done, total));
                }
            }
        }
        Ok(())
    }

    fn measure_speed(
        &self,
        folders: &Folders,
        filesystem: &str,
        configuration: &Configuration,
        number: u32,
    ) -> Result<(), RunFileError> {
        let measured = folders.make(number).and_then(|folder| {
            let measured = speeds::measure(
                &self.site,
                filesystem,
                configuration,
                &folder,
                self.plan.batches,
                self.plan.settle_every,
                self.speed_length,
            );
            let removed = folders.remove(&folder);
            measured.and_then(|measured| removed.map(|()| measured))
        });
        match measured {
            Ok((read_back, speed)) => {
                let mut file = self.file();
                file.record_read_back(&configuration.name, &read_back)?;
                speed.map_or(Ok(()), |speed| file.record_speed(&speed))
            }
            Err(reason) => {
                let name = &configuration.name;
                (self.tell)(Event::LeftOut(format!(
                    "speed of {name} on {filesystem}: {reason}"
                )));
                Ok(())
            }
        }
    }
}

/// What lanes share.
struct Shared {
    work: Mutex<Vec<Work>>,
    /// Cuts made, and of these failed.
    done: Mutex<(usize, usize)>,
    total: usize,
    error: Mutex<Option<RunFileError>>,
    stopped: AtomicBool,
}

/// Why a lane stops.
enum Stop {
    Interrupted,
    File(RunFileError),
}

impl From<NoCut> for Stop {
    fn from(_: NoCut) -> Self {
        Self::Interrupted
    }
}

impl From<RunFileError> for Stop {
    fn from(error: RunFileError) -> Self {
        Self::File(error)
    }
}

fn failed(planned: &PlannedCut<'_>, reason: &str) -> Cut {
    Cut {
        filesystem: planned.filesystem.to_owned(),
        configuration: planned.configuration.name.clone(),
        kind: planned.kind,
        number: planned.number,
        held_ns: 0,
        pause_ns: planned.pause.as_nanos() as u64,
        lost_age_ns: None,
        mount_ns: None,
        ending: sqlitmus_core::durability::Ending::Failed(reason.to_owned()),
    }
}

/// Between two bounds, such that each factor is equally likely.
fn log_uniform((least, most): (u64, u64), random: u64) -> u64 {
    let unit = ((random >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
    (least as f64 * (most as f64 / least as f64).powf(unit)) as u64
}

/// Folders for stores that are not cut off with their filesystem: on a loopback of their own, or in
/// the scratch directory of the place.
enum Folders {
    Loopback(Loopback),
    /// A folder for stores, and the beginning of their names.
    Place(PathBuf, String),
}

impl Folders {
    fn new(site: &Site, ground: &Ground, name: &str) -> Result<Self, String> {
        match ground {
            Ground::Loopback(filesystem, _) => {
                Loopback::create(&site.scratch, &site.lock, name, filesystem, IMAGE_BYTES)
                    .map(Self::Loopback)
                    .map_err(|error| with_causes(&error))
            }
            Ground::Place(_) => Ok(Self::Place(
                site.scratch.stores_directory(),
                format!("durability-{name}"),
            )),
        }
    }

    fn base(&self) -> PathBuf {
        match self {
            Self::Loopback(loopback) => loopback.point(),
            Self::Place(folder, _) => folder.clone(),
        }
    }

    fn make(&self, number: u32) -> Result<PathBuf, String> {
        match self {
            Self::Loopback(loopback) => {
                let folder = loopback.point().join(format!("cut-{number}"));
                std::fs::create_dir(&folder).map_err(|error| error.to_string())?;
                Ok(folder)
            }
            Self::Place(folder, name) => {
                let folder = folder.join(format!("{name}-{number}"));
                // Of a run that was killed.
                let made = ownership::remove_owned(&folder)
                    .and_then(|_| ownership::create_directory(&folder, "durability store"));
                made.map_err(|error| with_causes(&error))?;
                Ok(folder)
            }
        }
    }

    fn remove(&self, folder: &std::path::Path) -> Result<(), String> {
        match self {
            // All of that filesystem is ours.
            Self::Loopback(_) => std::fs::remove_dir_all(folder).map_err(|error| error.to_string()),
            Self::Place(..) => {
                let removed = ownership::remove_owned(folder);
                removed.map(drop).map_err(|error| with_causes(&error))
            }
        }
    }
}
