//! The orchestrator: runs the groups of a plan, round by round, and hands every round to the run
//! file as it ends. It decides what runs and checks what comes back; the measuring itself happens
//! in worker processes, of which only one is at work at any moment.
//!
//! Where stores are and how they are filled is [`crate::stores`]' business; one round of one set
//! of arms is [`round`]'s.

pub mod cache_state;
pub mod expectation;
pub mod live_arm;
pub mod pace;
pub mod round;
pub mod worker_process;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use sqlitmus_core::case::CacheState;
use sqlitmus_core::measurements::Measurements;
use sqlitmus_core::plan::{Arm, Group, Plan, Turns};
use sqlitmus_core::run::{Outcome, Trial};
use sqlitmus_core::schedule::{ArmMemory, live_sets};
use sqlitmus_core::statistics::FEWEST_ROUNDS;
use sqlitmus_runfile::RunFile;

use crate::failure::{Failure, with_causes};
use crate::interruption;
use crate::stores::{StoreError, Stores};
use crate::variants::Variants;
use expectation::Written;
use pace::Pace;
use round::{RoundContext, RoundPlace};
use worker_process::WorkerProgram;

/// An arm that failed in this many rounds is not tried again: a worker that hangs would otherwise
/// cost its timeout in every round.
const FAILURES_UNTIL_GIVEN_UP: usize = 2;

/// A group has at most this share of rounds added because trials were not in the cache state they
/// are labelled with: one for every five.
const ROUNDS_PER_EXTRA_ROUND: u32 = 5;

/// Times that an arm which is measured alone and was not in its cache state is measured again in the same
/// round: a round of all others would cost far more.
const REPEATS_IN_A_ROUND: u32 = 2;

/// What happens, for whoever shows it.
#[derive(Debug)]
pub enum Event<'a> {
    /// Stores of a group are being filled.
    Filling {
        /// The group.
        group: &'a Group,
        /// Stores still to fill.
        stores: usize,
    },
    /// A round begins.
    RoundBegins {
        /// The group.
        group: &'a Group,
        /// Round, from 0.
        round: u32,
    },
    /// An arm is measured now.
    Measuring {
        /// Its group.
        group: &'a Group,
        /// Label of the arm.
        label: &'a str,
    },
    /// A round has ended and is in the run file.
    RoundEnded {
        /// The group.
        group: &'a Group,
        /// Round, from 0.
        round: u32,
        /// How long it took.
        took: Duration,
        /// What came of it, one trial an arm and set.
        trials: &'a [Trial],
    },
    /// Something went wrong that does not end the run.
    Trouble {
        /// What, in a sentence.
        message: String,
    },
}

/// How a run ended that was not stopped by an error.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ending {
    /// The user stopped it.
    pub interrupted: bool,
    /// Some arm failed or was given up.
    pub arms_failed: bool,
}

impl Ending {
    /// Takes in how a later part of the run ended.
    pub fn add(&mut self, later: Self) {
        self.interrupted |= later.interrupted;
        self.arms_failed |= later.arms_failed;
    }
}

/// What a run needs beside its plan.
pub struct Orchestrator<'a> {
    /// What runs a trial.
    pub program: WorkerProgram,
    /// Libraries and other workers beside what is built in.
    pub variants: Variants,
    /// Where stores are.
    pub stores: Stores,
    /// Cores that workers are pinned to.
    pub worker_core: Option<usize>,
    /// Stores of a group beyond this many bytes are measured in pairs with the baseline.
    pub memory_limit_bytes: u64,
    /// Whether the kernel may be told to drop what it caches of the whole machine.
    pub may_drop_caches: bool,
    /// Next generation of content to write; every slice of the run writes one of its own.
    pub next_generation: u64,
    /// When everything is to be over; `None` if it takes as long as it takes.
    pub deadline: Option<Instant>,
    /// A slowdown planted in one arm, to test the harness with.
    pub planted: Option<PlantedSlowdown>,
    /// Where rounds go.
    pub file: &'a mut RunFile,
    /// Who is told what happens.
    pub tell: &'a mut dyn FnMut(Event<'_>),
}

/// An arm that is made slower on purpose, to see whether it is found out.
#[derive(Debug, Clone, PartialEq)]
pub struct PlantedSlowdown {
    /// Name of the arm.
    pub arm: String,
    /// Share of the time of every operation that is waited after it: 0.03 is 3%.
    pub share: f64,
}

impl Orchestrator<'_> {
    /// Runs all groups of a plan.
    ///
    /// # Errors
    /// The place or the run file gave out. Arms that fail are no error.
    pub fn run(&mut self, plan: &Plan) -> anyhow::Result<Ending> {
        let mut arms_failed = false;
        for (index, group) in plan.groups.iter().enumerate() {
            if interruption::requested() {
                break;
            }
            arms_failed |= self.run_group(plan, index, group)?;
        }
        Ok(Ending {
            interrupted: interruption::requested(),
            arms_failed,
        })
    }

    /// Runs one group; says whether an arm failed.
    fn run_group(&mut self, plan: &Plan, index: usize, group: &Group) -> anyhow::Result<bool> {
        let mut state = self.recorded(group)?;
        let mut half_width = self.half_width(group, &state)?;
        let pace = Pace::of(plan, index, self.deadline, &self.stores);
        if pace.has_enough(state.counted_rounds(group), half_width) {
            if group.writes() && self.stores.any_in_use(group) {
                self.verify_written(group, &mut state)?;
            }
            return Ok(state.any_failed);
        }
        let mut trials = self.fill_stores(group, state.rounds)?;
        if group.writes() {
            self.stores.mark_in_use(group)?;
        }
        self.note_round(&trials, &mut state);
        let mut pace = Pace::of(plan, index, self.deadline, &self.stores);
        while pace.goes_on(state.counted_rounds(group), half_width) && !interruption::requested() {
            let round = state.rounds;
            (self.tell)(Event::RoundBegins { group, round });
            let start = Instant::now();
            let (measured, gave_out) = self.run_round(plan, group, &mut state)?;
            self.note_round(&measured, &mut state);
            trials.extend(measured);
            let complete =
                !interruption::now() && gave_out.is_none() && state.covers(group, &trials);
            self.file
                .record_round(&group.name, round, &trials, complete)
                .map_err(Failure::from)?;
            if let Some(reason) = gave_out {
                let hint = format!(
                    "what was measured is kept: sqlitmus report {}",
                    self.file.path().display()
                );
                return Err(Failure::environment(reason, hint).into());
            }
            (self.tell)(Event::RoundEnded {
                group,
                round,
                took: start.elapsed(),
                trials: &trials,
            });
            trials.clear();
            state.rounds += 1;
            pace.note(start.elapsed());
            if pace.looks_after(state.counted_rounds(group)) {
                half_width = self.half_width(group, &state)?;
            }
        }
        if pace.is_over() && !interruption::requested() {
            self.tell_of_the_end(plan, group, &state)?;
        }
        if group.writes() && !interruption::requested() {
            self.verify_written(group, &mut state)?;
        }
        Ok(state.any_failed)
    }

    /// How far a group has come by what the run file holds: nothing in a new run.
    fn recorded(&self, group: &Group) -> anyhow::Result<GroupState> {
        let rounds = self.file.rounds().map_err(Failure::from)?;
        let mut state = GroupState::default();
        let complete: Vec<u32> = rounds
            .iter()
            .filter(|round| round.group == group.name && round.complete)
            .map(|round| round.round)
            .collect();
        if complete.is_empty() {
            return Ok(state);
        }
        // Rounds end one after the other: none is missing before the last.
        state.rounds = complete.len() as u32;
        let run = self.file.run().map_err(Failure::from)?;
        for round in complete {
            let is_of_round = |trial: &&Trial| {
                trial.round == round && group.arms.iter().any(|arm| arm.name == trial.arm)
            };
            state.note(run.trials.iter().filter(is_of_round));
        }
        Ok(state)
    }

    /// How wide the widest interval of a group is, by what the run file holds.
    fn half_width(&self, group: &Group, state: &GroupState) -> anyhow::Result<Option<f64>> {
        if state.rounds == 0 {
            return Ok(None);
        }
        let run = self.file.run().map_err(Failure::from)?;
        Ok(Measurements::new(&run).widest_half_width(group))
    }

    /// Says what a budget that has ended leaves unsure.
    fn tell_of_the_end(
        &mut self,
        plan: &Plan,
        group: &Group,
        state: &GroupState,
    ) -> anyhow::Result<()> {
        let name = &group.name;
        let rounds = state.rounds;
        let message = if rounds < FEWEST_ROUNDS {
            format!(
                "{name}: the budget ended after {rounds} rounds: fewer than {FEWEST_ROUNDS} give no \
                 verdict"
            )
        } else {
            let Some(precision) = plan.stopping.precision else {
                return Ok(());
            };
            match self.half_width(group, state)? {
                Some(half_width) if half_width <= precision => return Ok(()),
                Some(half_width) => format!(
                    "{name}: the budget ended with intervals of up to ±{:.1}%, not ±{:.1}%",
                    half_width * 100.0,
                    precision * 100.0
                ),
                None => format!("{name}: the budget ended before every arm had an interval"),
            }
        };
        (self.tell)(Event::Trouble { message });
        Ok(())
    }

    /// Notes how the trials of a round ended, and tells which failed or were skipped.
    fn note_round(&mut self, trials: &[Trial], state: &mut GroupState) {
        state.note(trials.iter());
        for trial in trials {
            let (what, reason) = match &trial.outcome {
                // What does not count is repeated, and stands in the report.
                Outcome::Valid | Outcome::Invalid(_) => continue,
                Outcome::Failed(reason) | Outcome::Refuted(reason) => ("failed", reason),
                Outcome::Skipped(reason) => ("is skipped", reason),
            };
            let message = format!("{} {what}: {reason}", trial.arm);
            (self.tell)(Event::Trouble { message });
        }
    }

    /// Fills what is not yet filled; returns a trial of this round for every arm that cannot be.
    fn fill_stores(&mut self, group: &Group, round: u32) -> anyhow::Result<Vec<Trial>> {
        let stores = self.stores.to_fill(group).len();
        if stores > 0 {
            (self.tell)(Event::Filling { group, stores });
        }
        let mut without_store = Vec::new();
        for (arm, result) in self.stores.fill(group)? {
            match result {
                Ok(Some(footprint)) => self
                    .file
                    .record_footprint(&arm, &footprint)
                    .map_err(Failure::from)?,
                Ok(None) => {}
                Err(error) if matches!(*error, StoreError::Interrupted) => {}
                Err(error) => {
                    let outcome = error.outcome()?;
                    without_store.push(round::trial_without_samples(&arm, round, 0, outcome));
                }
            }
        }
        Ok(without_store)
    }

    /// Runs one round of all arms that are not given up. Returns their trials, and why the machine
    /// gave out if it did.
    fn run_round(
        &mut self,
        plan: &Plan,
        group: &Group,
        state: &mut GroupState,
    ) -> anyhow::Result<(Vec<Trial>, Option<String>)> {
        let arms: Vec<usize> = (0..group.arms.len())
            .filter(|arm| !state.has_given_up(&group.arms[*arm].name))
            .collect();
        let sets = self.sets(group, &arms);
        let one_set = sets.len() == 1;
        let mut trials = Vec::new();
        for (set, members) in sets.into_iter().enumerate() {
            if interruption::requested() {
                break;
            }
            // One set stays in memory from round to round; of several, each drives out the last.
            let is_cold = members
                .iter()
                .any(|arm| group.arms[*arm].case.cache != CacheState::Warm);
            if !is_cold && (!state.is_warm || !one_set) {
                let arms: Vec<&Arm> = members.iter().map(|arm| &group.arms[*arm]).collect();
                self.stores.warm(group, &arms)?;
            }
            let set = set as u32;
            let mut gave_out = self.run_set(plan, group, (&members, set), state, &mut trials);
            for _ in 0..REPEATS_IN_A_ROUND {
                let again = to_repeat(group, &members, &trials, set);
                if again.is_empty() || gave_out.is_some() || interruption::requested() {
                    break;
                }
                gave_out = self.run_set(plan, group, (&again, set), state, &mut trials);
            }
            if gave_out.is_some() {
                return Ok((trials, gave_out));
            }
        }
        state.is_warm = true;
        Ok((trials, None))
    }

    /// Runs some arms of a group, as a set of the round with this number. Returns why the machine gave out
    /// if it did.
    fn run_set(
        &mut self,
        plan: &Plan,
        group: &Group,
        (members, set): (&[usize], u32),
        state: &mut GroupState,
        trials: &mut Vec<Trial>,
    ) -> Option<String> {
        let mut context = RoundContext {
            plan,
            group,
            program: &self.program,
            variants: &self.variants,
            stores: &self.stores,
            worker_core: self.worker_core,
            may_drop_caches: self.may_drop_caches,
            planted: self.planted.as_ref(),
            written: &state.written,
            first_generation: self.next_generation,
            tell: self.tell,
        };
        let place = RoundPlace {
            round: state.rounds,
            set,
        };
        let result = context.run(members, place);
        // One for the lead-in, one for every slice, one for counting system calls.
        self.next_generation += u64::from(group.slices) + 2;
        trials.extend(result.trials);
        for (arm, written) in result.written {
            state.note_written(&arm, written);
        }
        result.gave_out
    }

    /// The sets of arms, as indices into the group, that are alive together.
    fn sets(&self, group: &Group, arms: &[usize]) -> Vec<Vec<usize>> {
        let mut known = Vec::new();
        let memory: Vec<ArmMemory> = arms
            .iter()
            .map(|arm| {
                let (path, bytes) = self.stores.memory(group, &group.arms[*arm]);
                let store = known.iter().position(|known| *known == path);
                ArmMemory {
                    bytes,
                    store: store.unwrap_or_else(|| {
                        known.push(path);
                        known.len() - 1
                    }),
                }
            })
            .collect();
        let twin = group.twin();
        let always: Vec<usize> = (0..arms.len())
            .filter(|index| {
                let name = &group.arms[arms[*index]].name;
                *name == group.baseline || *name == twin
            })
            .collect();
        live_sets(&memory, &always, self.memory_limit_bytes)
            .into_iter()
            .map(|set| set.into_iter().map(|index| arms[index]).collect())
            .collect()
    }

    /// Verifies every blob of every written store; a store that differs is kept as a round of its
    /// own, which refutes all that its arm has shown.
    fn verify_written(&mut self, group: &Group, state: &mut GroupState) -> anyhow::Result<()> {
        let stores: Vec<(&Arm, Option<&Written>)> = group
            .arms
            .iter()
            .filter_map(|arm| Some((arm, state.written.get(&arm.name)?.as_ref())))
            .collect();
        let mut differing = Vec::new();
        for ((arm, _), verified) in stores.iter().zip(self.stores.verify_all(group, &stores)) {
            match verified {
                Ok(()) => self.stores.mark_unused(group, arm)?,
                Err(StoreError::Interrupted) => return Ok(()),
                Err(error) => {
                    let reason = format!("after the last round: {}", with_causes(&error));
                    differing.push(round::trial_without_samples(
                        &arm.name,
                        state.rounds,
                        0,
                        Outcome::Refuted(reason),
                    ));
                }
            }
        }
        self.note_round(&differing, state);
        if !differing.is_empty() {
            self.file
                .record_round(&group.name, state.rounds, &differing, true)
                .map_err(Failure::from)?;
        }
        Ok(())
    }
}

/// The members of a set whose last trial was not in its cache state, where arms are measured alone: those
/// that take turns with others are measured again together, in a round of its own.
fn to_repeat(group: &Group, members: &[usize], trials: &[Trial], set: u32) -> Vec<usize> {
    if group.turns != Turns::Alone {
        return Vec::new();
    }
    let last = |arm: &usize| {
        let name = &group.arms[*arm].name;
        let mut of_arm = trials.iter().rev();
        of_arm.find(|trial| trial.arm == *name && trial.set == set)
    };
    let is_invalid = |trial: Option<&Trial>| {
        trial.is_some_and(|trial| matches!(trial.outcome, Outcome::Invalid(_)))
    };
    let members = members.iter().copied();
    members.filter(|arm| is_invalid(last(arm))).collect()
}

/// How far a group has come.
#[derive(Default)]
struct GroupState {
    /// Rounds that have ended.
    rounds: u32,
    /// Failed trials of each arm.
    failures: BTreeMap<String, usize>,
    /// Sets of rounds in which no trial of an arm counts, of those that were measured.
    invalid: BTreeMap<String, u32>,
    /// What each arm has written; `None` if that is not known, since a trial of it failed.
    written: BTreeMap<String, Option<Written>>,
    any_failed: bool,
    /// Whether its stores were read once since they were filled, or since the run was resumed.
    is_warm: bool,
}

impl GroupState {
    /// Notes trials of one round.
    fn note<'a>(&mut self, trials: impl Iterator<Item = &'a Trial>) {
        let mut counts: BTreeMap<(&str, u32), bool> = BTreeMap::new();
        for trial in trials {
            let failures = self.failures.entry(trial.arm.clone()).or_default();
            match &trial.outcome {
                Outcome::Valid => {
                    counts.insert((&trial.arm, trial.set), true);
                }
                Outcome::Invalid(_) => {
                    counts.entry((&trial.arm, trial.set)).or_insert(false);
                }
                Outcome::Skipped(_) => *failures = FAILURES_UNTIL_GIVEN_UP,
                Outcome::Failed(_) | Outcome::Refuted(_) => {
                    *failures += 1;
                    self.any_failed = true;
                }
            }
        }
        for ((arm, _), _) in counts.into_iter().filter(|(_, counts)| !counts) {
            *self.invalid.entry(arm.to_owned()).or_default() += 1;
        }
    }

    fn note_written(&mut self, arm: &str, written: Option<Written>) {
        let known = self
            .written
            .entry(arm.to_owned())
            .or_insert_with(|| Some(Written::default()));
        match (known.as_mut(), written) {
            (Some(known), Some(later)) => known.then(&later),
            _ => *known = None,
        }
    }

    fn has_given_up(&self, arm: &str) -> bool {
        self.failures.get(arm).copied().unwrap_or(0) >= FAILURES_UNTIL_GIVEN_UP
    }

    /// Whether a round has a trial of every arm that is not given up: asked to stop, the orchestrator
    /// may have ended it between two sets of arms, or two arms that are measured alone.
    fn covers(&self, group: &Group, trials: &[Trial]) -> bool {
        group.arms.iter().all(|arm| {
            self.has_given_up(&arm.name) || trials.iter().any(|trial| trial.arm == arm.name)
        })
    }

    /// Rounds so far, without as many as the worst arm has trials that do not count: those are made up
    /// for, within bounds.
    fn counted_rounds(&self, group: &Group) -> u32 {
        let worst = self.invalid.values().copied().max().unwrap_or(0);
        let planned = group.rounds.max(self.rounds);
        self.rounds - worst.min(planned / ROUNDS_PER_EXTRA_ROUND).min(self.rounds)
    }
}
