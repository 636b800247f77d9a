//! The orchestrator: runs the groups of a plan, round by round, and hands every round to the run
//! file as it ends. It decides what runs and checks what comes back; the measuring itself happens
//! in worker processes, of which only one is at work at any moment.
//!
//! Where stores are and how they are filled is [`crate::stores`]' business; one round of one set
//! of arms is [`round`]'s.

pub mod expectation;
pub mod round;
pub mod worker_process;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use sqlitmus_core::plan::{Arm, Group, Plan};
use sqlitmus_core::run::{Footprint, Outcome, Trial};
use sqlitmus_core::schedule::{ArmMemory, live_sets};

use crate::interruption;
use crate::stores::{StoreError, Stores};
use round::{RoundContext, RoundPlace};
use worker_process::WorkerProgram;

/// An arm that failed in this many rounds is not tried again: a worker that hangs would otherwise
/// cost its timeout in every round.
const FAILURES_UNTIL_GIVEN_UP: usize = 2;

/// A group has at most this share of rounds added because trials were not in the cache state they
/// are labelled with: one for every five.
const ROUNDS_PER_EXTRA_ROUND: u32 = 5;

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
    },
    /// Something went wrong that does not end the run.
    Trouble {
        /// What, in a sentence.
        message: String,
    },
}

/// Keeps what was measured.
pub trait Keeper {
    /// Keeps the trials of a round; a round that was cut short is not `complete`.
    ///
    /// # Errors
    /// It cannot be kept: the run ends.
    fn keep_round(
        &mut self,
        group: &str,
        round: u32,
        complete: bool,
        trials: &[Trial],
    ) -> anyhow::Result<()>;

    /// Keeps the space that an arm's store takes.
    ///
    /// # Errors
    /// It cannot be kept: the run ends.
    fn keep_footprint(&mut self, arm: &str, footprint: &Footprint) -> anyhow::Result<()>;
}

/// How a run ended that was not stopped by an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ending {
    /// The user stopped it.
    pub interrupted: bool,
    /// Some arm failed or was given up.
    pub arms_failed: bool,
}

/// What a run needs beside its plan.
pub struct Orchestrator<'a> {
    /// What runs a trial.
    pub program: WorkerProgram,
    /// Where stores are.
    pub stores: Stores,
    /// Cores that workers are pinned to.
    pub worker_core: Option<usize>,
    /// Stores of a group beyond this many bytes are measured in pairs with the baseline.
    pub memory_limit_bytes: u64,
    /// First generation of content that this run may write.
    pub first_generation: u64,
    /// Where rounds go.
    pub keeper: &'a mut dyn Keeper,
    /// Who is told what happens.
    pub tell: &'a mut dyn FnMut(Event<'_>),
}

impl Orchestrator<'_> {
    /// Runs all groups of a plan.
    ///
    /// # Errors
    /// The place or the run file gave out. Arms that fail are no error.
    pub fn run(&mut self, plan: &Plan) -> anyhow::Result<Ending> {
        let mut arms_failed = false;
        for group in &plan.groups {
            if interruption::requested() {
                break;
            }
            arms_failed |= self.run_group(plan, group)?;
        }
        Ok(Ending {
            interrupted: interruption::requested(),
            arms_failed,
        })
    }

    /// Runs one group; says whether an arm failed.
    fn run_group(&mut self, plan: &Plan, group: &Group) -> anyhow::Result<bool> {
        let mut given_up: BTreeMap<String, usize> = BTreeMap::new();
        let skipped = self.fill_stores(group)?;
        let mut any_failed = skipped
            .iter()
            .any(|trial| matches!(trial.outcome, Outcome::Failed(_)));
        for trial in &skipped {
            given_up.insert(trial.arm.clone(), FAILURES_UNTIL_GIVEN_UP);
        }
        if group.writes() {
            self.stores.mark_in_use(group)?;
        }
        self.stores.warm(group)?;
        let mut first_trials = skipped;
        let mut round = 0;
        let mut invalid: BTreeMap<String, u32> = BTreeMap::new();
        while round < wanted_rounds(group, &invalid) && !interruption::requested() {
            (self.tell)(Event::RoundBegins { group, round });
            let start = Instant::now();
            let mut trials = std::mem::take(&mut first_trials);
            trials.extend(self.run_round(plan, group, round, &given_up));
            let complete = !interruption::requested();
            self.keeper
                .keep_round(&group.name, round, complete, &trials)?;
            for trial in &trials {
                any_failed |= self.note_trouble(trial, &mut given_up);
                if let Outcome::Invalid(_) = trial.outcome {
                    *invalid.entry(trial.arm.clone()).or_default() += 1;
                }
            }
            (self.tell)(Event::RoundEnded {
                group,
                round,
                took: start.elapsed(),
            });
            round += 1;
        }
        if group.writes() && !interruption::requested() {
            any_failed |= self.verify_written(group, round, &given_up)?;
        }
        Ok(any_failed)
    }

    /// Tells of a trial that failed or was skipped; says whether it failed.
    fn note_trouble(&mut self, trial: &Trial, given_up: &mut BTreeMap<String, usize>) -> bool {
        let (what, reason) = match &trial.outcome {
            // What does not count is repeated, and stands in the report.
            Outcome::Valid | Outcome::Invalid(_) => return false,
            Outcome::Failed(reason) | Outcome::Refuted(reason) => ("failed", reason),
            Outcome::Skipped(reason) => ("is skipped", reason),
        };
        let message = format!("{} {what}: {reason}", trial.arm);
        (self.tell)(Event::Trouble { message });
        match &trial.outcome {
            Outcome::Failed(_) => {
                *given_up.entry(trial.arm.clone()).or_default() += 1;
                true
            }
            Outcome::Skipped(_) => {
                given_up.insert(trial.arm.clone(), FAILURES_UNTIL_GIVEN_UP);
                false
            }
            _ => false,
        }
    }

    /// Fills what is not yet filled; returns a trial for every arm that cannot be.
    fn fill_stores(&mut self, group: &Group) -> anyhow::Result<Vec<Trial>> {
        let stores = self.stores.missing(group);
        if stores > 0 {
            (self.tell)(Event::Filling { group, stores });
        }
        let mut skipped = Vec::new();
        for (arm, result) in self.stores.fill(group)? {
            match result {
                Ok(Some(footprint)) => self.keeper.keep_footprint(&arm, &footprint)?,
                Ok(None) => {}
                Err(StoreError::Interrupted) => {}
                Err(error) => skipped.push(round::trial_without_samples(
                    &arm,
                    0,
                    0,
                    error.into_outcome()?,
                )),
            }
        }
        Ok(skipped)
    }

    fn run_round(
        &mut self,
        plan: &Plan,
        group: &Group,
        round: u32,
        given_up: &BTreeMap<String, usize>,
    ) -> Vec<Trial> {
        let alive = |name: &str| given_up.get(name).copied().unwrap_or(0) < FAILURES_UNTIL_GIVEN_UP;
        let arms: Vec<usize> = (0..group.arms.len())
            .filter(|arm| alive(&group.arms[*arm].name))
            .collect();
        let mut trials = Vec::new();
        for (set, members) in self.sets(group, &arms).into_iter().enumerate() {
            if interruption::requested() {
                break;
            }
            let mut context = RoundContext {
                plan,
                group,
                program: &self.program,
                stores: &self.stores,
                worker_core: self.worker_core,
                first_generation: self.first_generation,
                tell: self.tell,
            };
            let place = RoundPlace {
                round,
                set: set as u32,
            };
            trials.extend(context.run(&members, place));
        }
        trials
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

    /// Verifies every blob of every written store; says whether one differs, which is kept as a
    /// round of its own.
    fn verify_written(
        &mut self,
        group: &Group,
        round: u32,
        given_up: &BTreeMap<String, usize>,
    ) -> anyhow::Result<bool> {
        let arms: Vec<&Arm> = group
            .arms
            .iter()
            .filter(|arm| !given_up.contains_key(&arm.name))
            .collect();
        let mut differing = Vec::new();
        for (arm, verified) in arms.iter().zip(self.stores.verify_all(group, &arms)) {
            match verified {
                Ok(()) => self.stores.mark_unused(group, arm)?,
                Err(StoreError::Interrupted) => return Ok(false),
                Err(error) => {
                    let reason = format!("after the last round: {error}");
                    differing.push(round::trial_without_samples(
                        &arm.name,
                        round,
                        0,
                        Outcome::Refuted(reason),
                    ));
                }
            }
        }
        for trial in &differing {
            self.note_trouble(trial, &mut BTreeMap::new());
        }
        if !differing.is_empty() {
            self.keeper
                .keep_round(&group.name, round, true, &differing)?;
        }
        Ok(!differing.is_empty())
    }
}

/// Rounds that a group is to have: those planned, and as many more as its worst arm has trials
/// that do not count, within bounds.
fn wanted_rounds(group: &Group, invalid: &BTreeMap<String, u32>) -> u32 {
    let worst = invalid.values().copied().max().unwrap_or(0);
    group.rounds + worst.min(group.rounds / ROUNDS_PER_EXTRA_ROUND)
}
