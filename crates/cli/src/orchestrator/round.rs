//! One round of one set of arms: a fresh worker for each, an untimed lead-in, then slices in
//! strict turns, then verification. Whatever a worker does wrong is a failed trial here.

use std::collections::BTreeMap;
use std::time::Instant;

use sqlitmus_core::case::Workload;
use sqlitmus_core::dataset::mix;
use sqlitmus_core::keys::KeyWalk;
use sqlitmus_core::latencies::Latencies;
use sqlitmus_core::plan::{Arm, Group, Plan};
use sqlitmus_core::run::{Outcome, Sample, Trial};
use sqlitmus_core::schedule::{key_offset, turn_order};

use super::Event;
use super::expectation::{ContentSums, Verification, Written};
use super::worker_process::{WorkerError, WorkerProcess, WorkerProgram};
use crate::interruption;
use crate::protocol::{PROTOCOL_VERSION, Preparation, Request, Response, Span};
use crate::stores::Stores;

/// A trial counts if at least one in so many of its slices was in the state that its case is
/// labelled with.
const SLICES_PER_NEEDED_SLICE: usize = 3;

/// Untimed reading before every reading slice: the other arms have emptied the core's caches.
const SLICE_LEAD_IN_NS: u64 = 1_000_000;

/// What a round needs to know.
pub struct RoundContext<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// The group.
    pub group: &'a Group,
    /// What runs a trial.
    pub program: &'a WorkerProgram,
    /// Where stores are.
    pub stores: &'a Stores,
    /// Core for workers.
    pub worker_core: Option<usize>,
    /// First generation that is not written yet; the lead-in and every slice take one.
    pub first_generation: u64,
    /// Who is told what happens.
    pub tell: &'a mut dyn FnMut(Event<'_>),
}

/// Which round and which of its sets.
#[derive(Debug, Clone, Copy)]
pub struct RoundPlace {
    /// Round, from 0.
    pub round: u32,
    /// Set of arms, from 0.
    pub set: u32,
}

/// What a set of arms leaves behind.
pub struct SetResult {
    /// A trial for each arm that has anything to show.
    pub trials: Vec<Trial>,
    /// What each arm has written, by name; `None` if that is not known because it failed.
    pub written: Vec<(String, Option<Written>)>,
    /// Why the machine gave out, which ends the run.
    pub gave_out: Option<String>,
}

/// An arm in its round.
struct LiveArm<'a> {
    arm: &'a Arm,
    /// Gone once it has failed.
    process: Option<WorkerProcess>,
    /// What reads must give; `None` where nothing is read or the engine keeps nothing.
    sums: Option<&'a ContentSums>,
    keeps_content: bool,
    /// Where in the common key order its next operation must be.
    position: usize,
    written: Written,
    latencies: Vec<Latencies>,
    finished: bool,
    gave_out: Option<String>,
    trial: Trial,
}

/// Why a trial ended early.
enum Stop {
    Outcome(Outcome),
    /// The machine gave out.
    GaveOut(String),
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

impl<'a> RoundContext<'a> {
    /// Runs the round for the arms with these indices.
    pub fn run(&mut self, members: &[usize], place: RoundPlace) -> SetResult {
        let mut live: Vec<LiveArm<'_>> = Vec::new();
        if let Some(first) = members.first().map(|member| &self.group.arms[*member]) {
            // All arms of a group have one dataset and one order of keys.
            let dataset = &first.case.dataset;
            let order_seed = mix(self.plan.seed ^ 0x6b65_7973);
            let keys = first
                .case
                .workload
                .order()
                .keys(dataset.count as u32, order_seed);
            let walk = KeyWalk::new(keys, 0.0);
            for (index, member) in members.iter().enumerate() {
                let offset = key_offset(index, members.len(), place.round);
                live.push(self.start(*member, place, order_seed, &walk, offset));
            }
            for arm in &mut live {
                arm.step(|arm| arm.lead_in(&walk, self.first_generation));
            }
            self.take_turns(&mut live, &walk, place);
            for arm in &mut live {
                let seed = mix(self.plan.seed ^ u64::from(place.round));
                arm.step(|arm| arm.finish(seed));
            }
        }
        let mut result = SetResult {
            trials: Vec::new(),
            written: Vec::new(),
            gave_out: None,
        };
        for arm in live {
            let known = arm.finished.then_some(arm.written);
            result.written.push((arm.arm.name.clone(), known));
            result.gave_out = result.gave_out.or(arm.gave_out);
            result.trials.extend(ended(arm.trial, arm.finished));
        }
        result
    }

    fn take_turns(&mut self, live: &mut [LiveArm<'_>], walk: &KeyWalk, place: RoundPlace) {
        // The first generation is the lead-in's.
        let first = self.first_generation + 1;
        let order_seed = mix(self.plan.seed ^ (u64::from(place.set) << 40));
        let slice_ns = self.group.slice_ns;
        for turn in 0..self.group.slices {
            let order = turn_order(live.len(), order_seed, place.round, turn);
            for (position, index) in order.into_iter().enumerate() {
                if interruption::requested() {
                    return;
                }
                let arm = &mut live[index];
                if arm.process.is_some() {
                    (self.tell)(Event::Measuring {
                        label: &arm.arm.label,
                    });
                }
                let generation = first + u64::from(turn);
                arm.step(|arm| arm.slice(walk, generation, (turn, position as u32), slice_ns));
            }
        }
    }

    fn start(
        &self,
        member: usize,
        place: RoundPlace,
        order_seed: u64,
        walk: &KeyWalk,
        offset: f64,
    ) -> LiveArm<'a> {
        let group = self.group;
        let arm = &group.arms[member];
        let mut live = LiveArm {
            arm,
            process: None,
            sums: None,
            keeps_content: self.stores.keeps_content(arm),
            position: walk.start(offset),
            written: Written::default(),
            latencies: Vec::new(),
            finished: false,
            gave_out: None,
            trial: trial_without_samples(&arm.name, place.round, place.set, Outcome::Valid),
        };
        let preparation = Preparation {
            protocol_version: PROTOCOL_VERSION,
            case: arm.case.clone(),
            store: self.stores.path(group, arm),
            key_offset: offset,
            order_seed,
            slice_ns: group.slice_ns,
            slice_lead_in_ns: SLICE_LEAD_IN_NS,
            core: self.worker_core,
        };
        match WorkerProcess::start(self.program) {
            Ok(process) => live.process = Some(process),
            Err(error) => live.trial.outcome = Outcome::Failed(error.to_string()),
        }
        if live.keeps_content && !arm.case.workload.writes() {
            live.sums = Some(self.stores.sums(&arm.case.dataset));
        }
        live.step(|live| live.prepare(preparation));
        live
    }
}

impl LiveArm<'_> {
    /// Does one step, unless the arm has failed before; what goes wrong becomes its outcome.
    fn step(&mut self, step: impl FnOnce(&mut Self) -> Result<(), Stop>) {
        if self.process.is_none() || interruption::requested() {
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

    fn prepare(&mut self, preparation: Preparation) -> Result<(), Stop> {
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

    fn lead_in(&mut self, walk: &KeyWalk, generation: u64) -> Result<(), Stop> {
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

    fn slice(
        &mut self,
        walk: &KeyWalk,
        generation: u64,
        (turn, place): (u32, u32),
        slice_ns: u64,
    ) -> Result<(), Stop> {
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
                if elapsed_ns < slice_ns {
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
        };
        let sample = Sample {
            turn,
            place,
            operations: timed.operations,
            content_bytes,
            elapsed_ns,
            settle_ns,
            device_read_bytes: resources.get("device_read_bytes").copied(),
            major_faults: resources.get("major_faults").copied(),
        };
        // What does not count leaves no trace in the percentiles either.
        if sample.is_in(self.arm.case.cache) {
            self.latencies.push(latencies);
        }
        self.trial.samples.push(sample);
        self.add_used(resources);
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

    fn finish(&mut self, seed: u64) -> Result<(), Stop> {
        let verification = Verification::choose(&self.arm.case.dataset, &self.written, seed);
        let verify = if self.keeps_content {
            verification.keys.clone()
        } else {
            Vec::new()
        };
        let checked = !verify.is_empty();
        let Response::Finished { digests } = self.ask(&Request::Finish { verify })? else {
            return Err(lied("the worker did not finish"));
        };
        if checked {
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
        Err(Stop::Outcome(Outcome::Invalid(format!(
            "not {cache}: {others} of {} slices had to read from the device",
            samples.len()
        ))))
    }

    /// Adds what a slice used to what the trial used.
    fn add_used(&mut self, resources: BTreeMap<String, u64>) {
        for (name, used) in resources {
            // The one resource that is a level, not a sum.
            let is_level = name == "peak_memory_bytes";
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

/// A trial that has no samples, or none yet.
#[must_use]
pub fn trial_without_samples(arm: &str, round: u32, set: u32, outcome: Outcome) -> Trial {
    Trial {
        arm: arm.to_owned(),
        round,
        set,
        outcome,
        read_back: Default::default(),
        resources: Default::default(),
        latencies: Latencies::default(),
        samples: Vec::new(),
    }
}
