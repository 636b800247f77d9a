//! One arm in its round: the steps of a trial, each asked of its worker and held against what is
//! known of the data. Whatever a worker does wrong is a failed trial here.

mod index;
mod life;
mod load;
mod team;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use sqlitmus_core::case::{CacheState, Shape, Workload};
use sqlitmus_core::keys::KeyWalk;
use sqlitmus_core::latencies::Latencies;
use sqlitmus_core::plan::Arm;
use sqlitmus_core::run::{Outcome, Sample, SystemCalls, Trial, is_level};
use sqlitmus_engines::Content;

use super::cache_state::{NotInState, StoreFiles};
use super::expectation::{ContentSums, Verification, Written};
use super::round::{SetResult, cold_slice_operations};
use super::worker_process::{ScannedStore, WorkerError, WorkerProcess, WorkerProgram};
use crate::interruption;
use crate::machine::memory_group::MemoryGroup;
use crate::machine::page_cache::Residency;
use crate::protocol::{PROTOCOL_VERSION, Preparation, Request, Response, Span};

pub use team::Team;

/// A trial counts if at least one in so many of its slices was in the state that its case is
/// labelled with.
const SLICES_PER_NEEDED_SLICE: usize = 3;

/// An arm in its round.
pub struct LiveArm<'a> {
    arm: &'a Arm,
    files: StoreFiles,
    /// Gone once it has failed.
    process: Option<WorkerProcess>,
    /// What reads must give; `None` where nothing is read or the engine keeps nothing.
    sums: Option<&'a ContentSums>,
    /// What its store was filled with; `None` if the engine does not give back what was stored.
    first: Option<Arc<dyn Content + Send>>,
    /// Where in the common key order its next operation must be.
    position: usize,
    written: Written,
    /// What several threads must do; `None` for workloads on blobs, which have one.
    team: Option<Team>,
    latencies: Vec<Latencies>,
    finished: bool,
    gave_out: Option<String>,
    trial: Trial,
}

/// Why a trial ended early.
pub enum Stop {
    /// Ended like this.
    Outcome(Outcome),
    /// The machine gave out.
    GaveOut(String),
    /// By the user.
    Interrupted,
}

impl From<WorkerError> for Stop {
    fn from(error: WorkerError) -> Self {
        match error {
            WorkerError::Interrupted => Self::Interrupted,
            WorkerError::GaveOut(reason) => Self::GaveOut(reason),
            WorkerError::Unavailable(reason) => Self::Outcome(Outcome::Skipped(reason)),
            other => Self::Outcome(Outcome::Failed(other.to_string())),
        }
    }
}

fn lied(reason: impl Into<String>) -> Stop {
    Stop::Outcome(Outcome::Failed(reason.into()))
}

impl<'a> LiveArm<'a> {
    /// An arm whose worker is not started yet. `position` is where in the common walk it begins.
    pub fn new(arm: &'a Arm, files: StoreFiles, position: usize, trial: Trial) -> Self {
        Self {
            arm,
            files,
            process: None,
            sums: None,
            first: None,
            position,
            written: Written::default(),
            team: None,
            latencies: Vec::new(),
            finished: false,
            gave_out: None,
            trial,
        }
    }

    /// What it reads is what was stored: with the sums, reading is checked too.
    pub fn keep_content(&mut self, first: Arc<dyn Content + Send>, sums: Option<&'a ContentSums>) {
        self.first = Some(first);
        self.sums = sums;
    }

    /// Its workload may have several threads, of which this is known.
    pub fn be_team(&mut self, team: Team) {
        self.team = Some(team);
    }

    /// Whether it goes on.
    pub fn is_alive(&self) -> bool {
        self.process.is_some()
    }

    /// What the report calls it.
    pub fn label(&self) -> &'a str {
        &self.arm.label
    }

    /// The files of its store.
    pub fn files(&self) -> &[PathBuf] {
        &self.files.paths
    }

    /// Starts the worker, after the store was made cold if it is to be.
    pub fn start(
        &mut self,
        program: Result<WorkerProgram, String>,
        store: &Path,
        may_drop_caches: bool,
    ) {
        let cache = self.arm.case.cache;
        let cold = match cache {
            CacheState::Warm => Ok(()),
            CacheState::DataCold | CacheState::FullyCold => {
                self.files.make_cold(cache, may_drop_caches)
            }
            // Pages that others have read in would be in memory and count for nobody.
            CacheState::Limited(_) => self.files.make_cold(CacheState::DataCold, false),
        };
        if let Err(error) = cold {
            self.trial.outcome = self.not_in_state(error);
            return;
        }
        let scanner = self.arm.case.scanner;
        let scanned = (!scanner.is_none()).then(|| ScannedStore {
            scanner,
            directory: store.parent().unwrap_or(store).to_owned(),
        });
        let group = match cache.memory_bytes().map(MemoryGroup::create) {
            None => None,
            Some(Ok(group)) => Some(group),
            Some(Err(error)) => {
                self.trial.outcome = Outcome::Skipped(error.to_string());
                return;
            }
        };
        let started = program.and_then(|program| {
            WorkerProcess::start_in(&program, scanned.as_ref(), group)
                .map_err(|error| error.to_string())
        });
        match started {
            Ok(process) => self.process = Some(process),
            Err(reason) => self.trial.outcome = Outcome::Failed(reason),
        }
    }

    fn not_in_state(&self, error: NotInState) -> Outcome {
        match error {
            NotInState::Lacks(reason) => Outcome::Skipped(reason),
            NotInState::Stayed(reason) => {
                Outcome::Invalid(format!("not {}: {reason}", self.arm.case.cache))
            }
        }
    }

    /// Adds what it leaves behind to the result of its set.
    pub fn end(self, result: &mut SetResult) {
        let known = self.finished.then_some(self.written);
        result.written.push((self.arm.name.clone(), known));
        if result.gave_out.is_none() {
            result.gave_out = self.gave_out;
        }
        result.trials.extend(ended(self.trial, self.finished));
    }

    /// What of its store is in memory before the first slice; `None` if that cannot be told.
    ///
    /// # Errors
    /// More than may be in a cold cache.
    pub fn check_store(&self) -> Result<Option<Residency>, Stop> {
        let cache = self.arm.case.cache;
        if cache.is_cold() {
            let checked = self.files.check_cold(cache);
            return checked.map_err(|error| Stop::Outcome(self.not_in_state(error)));
        }
        if cache.memory_bytes().is_some() {
            // To be told, not to be read in: that would be other memory than the worker's.
            return Ok(self.files.look());
        }
        Ok(self.files.check_warm())
    }

    /// Keeps what [`LiveArm::check_store`] found.
    pub fn note_residency(&mut self, residency: Option<Residency>) {
        let Some(found) = residency.filter(|found| found.pages > 0) else {
            return;
        };
        let page_bytes = rustix::param::page_size() as u64;
        let mut note = |name: &str, pages: u64| {
            let bytes = pages.saturating_mul(page_bytes);
            self.trial.resources.insert(name.to_owned(), bytes);
        };
        note("store_checked_bytes", found.pages);
        note("store_cached_bytes", found.cached_pages);
    }

    /// Does one step, unless the arm has failed before; what goes wrong becomes its outcome.
    pub fn step(&mut self, step: impl FnOnce(&mut Self) -> Result<(), Stop>) {
        if self.process.is_none() || interruption::now() {
            return;
        }
        match step(self) {
            Ok(()) => {}
            Err(Stop::Interrupted) => self.process = None,
            Err(Stop::GaveOut(reason)) => {
                self.trial.outcome = Outcome::Failed(reason.clone());
                self.gave_out = Some(reason);
                self.process = None;
            }
            Err(Stop::Outcome(outcome)) => {
                self.trial.outcome = outcome;
                self.process = None;
            }
        }
    }

    fn ask(&mut self, request: &Request) -> Result<Response, Stop> {
        match &mut self.process {
            Some(process) => Ok(process.ask(request)?),
            None => Err(Stop::Interrupted),
        }
    }

    /// Has the worker open the store and make ready.
    ///
    /// # Errors
    /// It does not.
    pub fn prepare(&mut self, preparation: Preparation) -> Result<(), Stop> {
        match self.ask(&Request::Prepare(Box::new(preparation)))? {
            Response::Prepared {
                protocol_version: PROTOCOL_VERSION,
                read_back,
            } => {
                self.trial.read_back = read_back;
                Ok(())
            }
            other => Err(unexpected(&other)),
        }
    }

    /// Has the worker pass over all keys, and write a batch if it writes; a cold one does
    /// neither, since its first touch is what is measured.
    ///
    /// # Errors
    /// It does not, or not what it was to do.
    pub fn lead_in(&mut self, walk: &KeyWalk, generation: u64) -> Result<(), Stop> {
        if self.arm.case.cache.is_cold() {
            return Ok(());
        }
        if self.team.is_some() {
            return self.start_team(generation);
        }
        let Response::LedIn { read, written } = self.ask(&Request::LeadIn { generation })? else {
            return Err(lied("the worker did not answer a lead-in with a lead-in"));
        };
        if read.operations != walk.len() as u64 {
            return Err(lied("the lead-in did not pass over all keys"));
        }
        self.follow(walk, &read)?;
        self.check_sum(walk, &read)?;
        match (written, &self.arm.case.workload) {
            (None, Workload::Read { .. }) => Ok(()),
            (Some(span), Workload::Overwrite { operations, .. })
                if (*operations..=2 * *operations + 1).contains(&span.operations) =>
            {
                self.follow(walk, &span)?;
                self.written.note(walk, &span, generation);
                Ok(())
            }
            _ => Err(lied("the lead-in did not write what it should")),
        }
    }

    /// Has the worker do one timed slice at a turn and a place in it, and a writing one settle.
    ///
    /// # Errors
    /// It does not, or what it says of it cannot be true.
    pub fn slice(
        &mut self,
        walk: &KeyWalk,
        generation: u64,
        (turn, place): (u32, u32),
        slice_ns: u64,
    ) -> Result<(), Stop> {
        if self.team.is_some() {
            return self.team_slice(generation, (turn, place), slice_ns);
        }
        let asked = Instant::now();
        let Response::Sliced {
            lead_in,
            timed,
            elapsed_ns,
            latencies,
            resources,
        } = self.ask(&Request::Slice { generation })?
        else {
            return Err(lied("the worker did not answer a slice with a slice"));
        };
        let waited_ns = asked.elapsed().as_nanos() as u64;
        check_time(&lead_in, &timed, elapsed_ns, waited_ns)?;
        self.follow(walk, &lead_in)?;
        self.follow(walk, &timed)?;
        let (content_bytes, settle_ns) = match self.arm.case.workload {
            Workload::Read { .. } => {
                let case = &self.arm.case;
                let is_through = case.cache.is_cold()
                    && timed.operations == cold_slice_operations(&case.dataset);
                if elapsed_ns < slice_ns && !is_through {
                    return Err(lied("the time of the slice is shorter than it was to be"));
                }
                self.check_sum(walk, &lead_in)?;
                self.check_sum(walk, &timed)?;
                (self.sums.map_or(0, |sums| sums.bytes(walk, &timed)), None)
            }
            Workload::Overwrite { operations, .. } => {
                if timed.operations != operations {
                    return Err(lied("the worker did not write the whole batch"));
                }
                self.written.note(walk, &lead_in, generation);
                self.written.note(walk, &timed, generation);
                let dataset = &self.arm.case.dataset;
                let keys = walk.span(timed.position, timed.operations);
                let bytes = keys.map(|key| dataset.value_bytes(key) as u64).sum();
                (bytes, Some(self.settle()?))
            }
            _ => return Err(lied("the worker has answered for another workload")),
        };
        let sample = Sample {
            turn,
            place,
            operations: timed.operations,
            content_bytes,
            elapsed_ns,
            settle_ns,
            device_read_bytes: None,
            major_faults: None,
            involuntary_context_switches: None,
            machine_steal_ns: None,
            device_read_ns: None,
        };
        self.keep(sample, latencies, resources);
        Ok(())
    }

    /// Keeps a slice, with what the kernel counted while it ran.
    fn keep(&mut self, mut sample: Sample, latencies: Latencies, resources: BTreeMap<String, u64>) {
        let counted = |name: &str| resources.get(name).copied();
        sample.device_read_bytes = counted("device_read_bytes");
        sample.major_faults = counted("major_faults");
        sample.involuntary_context_switches = counted("involuntary_context_switches");
        sample.machine_steal_ns = counted("machine_steal_ns");
        sample.device_read_ns = counted("device_read_ns");
        // What does not count leaves no trace in the percentiles either.
        if sample.is_in(self.arm.case.cache) {
            self.latencies.push(latencies);
        }
        self.trial.samples.push(sample);
        self.add_used(resources);
    }

    /// Has the worker do what a slice does once more, untimed, and count the system calls.
    ///
    /// # Errors
    /// It does not, or not what it was to do.
    pub fn count(&mut self, walk: &KeyWalk, generation: u64) -> Result<(), Stop> {
        if self.team.is_some() {
            // Only the calls of one thread can be counted.
            return Ok(());
        }
        let Response::Counted { span, system_calls } = self.ask(&Request::Count { generation })?
        else {
            return Err(lied("the worker did not answer a count with a count"));
        };
        self.follow(walk, &span)?;
        match self.arm.case.workload {
            Workload::Read { .. } => self.check_sum(walk, &span)?,
            Workload::Overwrite { operations, .. } if span.operations == operations => {
                self.written.note(walk, &span, generation);
            }
            _ => {
                return Err(lied(
                    "the worker did not write the whole batch to be counted",
                ));
            }
        }
        if span.operations > 0 {
            self.trial.system_calls = system_calls.map(|calls| SystemCalls {
                operations: span.operations,
                calls,
            });
        }
        Ok(())
    }

    /// Goes on in the walk of the keys by a span, which must begin where the last has ended.
    fn follow(&mut self, walk: &KeyWalk, span: &Span) -> Result<(), Stop> {
        if span.position != self.position {
            return Err(lied("the worker has visited other keys than it was to"));
        }
        self.position = (self.position + span.operations as usize) % walk.len();
        Ok(())
    }

    fn settle(&mut self) -> Result<u64, Stop> {
        match self.ask(&Request::Settle)? {
            Response::Settled { elapsed_ns } => Ok(elapsed_ns),
            other => Err(unexpected(&other)),
        }
    }

    /// Has the worker read some keys, chosen by the seed, and ends its trial.
    ///
    /// # Errors
    /// What it read is not what was stored, or the slices were not in the cache state that the
    /// case is labelled with.
    pub fn finish(&mut self, seed: u64) -> Result<(), Stop> {
        if self.team.is_some() && self.arm.case.workload.shape() != Shape::Blobs {
            return self.finish_team();
        }
        let dataset = &self.arm.case.dataset;
        let verification = match &self.first {
            Some(first) => {
                let chosen = Verification::choose(dataset, first.as_ref(), &self.written, seed);
                Some(chosen.map_err(|error| lied(error.to_string()))?)
            }
            None => None,
        };
        let verify = verification.as_ref().map(|chosen| chosen.keys.clone());
        let verify = verify.unwrap_or_default();
        let Response::Finished { digests } = self.ask(&Request::Finish { verify })? else {
            return Err(lied("the worker did not finish"));
        };
        if let Some(verification) = verification {
            verification.check(&digests).map_err(lied)?;
        }
        self.trial.latencies = Latencies::merged(&self.latencies);
        self.finished = true;
        self.check_cache_state()
    }

    /// A trial nearly all of whose slices were not in the state that its case is labelled with does
    /// not count: what it measured would be something else.
    fn check_cache_state(&mut self) -> Result<(), Stop> {
        let cache = self.arm.case.cache;
        let samples = &self.trial.samples;
        let others = samples.iter().filter(|sample| !sample.is_in(cache)).count();
        if others * SLICES_PER_NEEDED_SLICE <= samples.len() * (SLICES_PER_NEEDED_SLICE - 1) {
            return Ok(());
        }
        let found = match cache {
            CacheState::Warm | CacheState::Limited(_) => "had to read from the device",
            CacheState::DataCold | CacheState::FullyCold => {
                "read less than their content from the device"
            }
        };
        Err(Stop::Outcome(Outcome::Invalid(format!(
            "not {cache}: {others} of {} slices {found}",
            samples.len()
        ))))
    }

    /// Adds what a slice used to what the trial used.
    fn add_used(&mut self, resources: BTreeMap<String, u64>) {
        for (name, used) in resources {
            let is_level = is_level(&name);
            let sum = self.trial.resources.entry(name).or_default();
            *sum = if is_level {
                used.max(*sum)
            } else {
                *sum + used
            };
        }
    }

    fn check_sum(&self, walk: &KeyWalk, span: &Span) -> Result<(), Stop> {
        match self.sums {
            Some(sums) if sums.sum(walk, span) != span.consumed => Err(lied(format!(
                "wrong content: the sum over {} blobs is not what was stored",
                span.operations
            ))),
            _ => Ok(()),
        }
    }
}

/// Whether what a worker says of time and number can be true, judged by how long its answer took.
fn check_time(lead_in: &Span, timed: &Span, elapsed_ns: u64, waited_ns: u64) -> Result<(), Stop> {
    // No operation takes less than a nanosecond.
    if timed.operations.saturating_add(lead_in.operations) > waited_ns {
        return Err(lied(
            "the worker claims more operations than there was time for",
        ));
    }
    if timed.operations == 0 || elapsed_ns == 0 {
        return Err(lied("the worker timed nothing"));
    }
    if elapsed_ns > waited_ns {
        return Err(lied("the worker's time is longer than its answer took"));
    }
    Ok(())
}

/// The trial as it is kept: one that the user has interrupted was not verified, and does not
/// count; one that has nothing to show is not kept.
fn ended(mut trial: Trial, finished: bool) -> Option<Trial> {
    if trial.outcome == Outcome::Valid && !finished {
        if trial.samples.is_empty() {
            return None;
        }
        let reason = "interrupted before it was verified";
        trial.outcome = Outcome::Invalid(reason.to_owned());
    }
    Some(trial)
}

fn unexpected(response: &Response) -> Stop {
    let word = format!("{response:?}");
    let word = word.split([' ', '(', '{']).next().unwrap_or_default();
    lied(format!("the worker answered {word}, which was not asked"))
}
