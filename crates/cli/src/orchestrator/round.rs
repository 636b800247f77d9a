//! One round of one set of arms: a fresh worker for each, an untimed lead-in, then slices in
//! strict turns, then verification; or all of that for one arm after the other. The steps of a
//! trial are [`super::live_arm`]'s.

use std::collections::BTreeMap;
use std::path::PathBuf;

use sqlitmus_core::case::{Shape, Workload};
use sqlitmus_core::dataset::{Dataset, mix};
use sqlitmus_core::keys::KeyWalk;
use sqlitmus_core::latencies::Latencies;
use sqlitmus_core::plan::{Group, Plan, Turns};
use sqlitmus_core::run::{Outcome, Trial};
use sqlitmus_core::schedule::{key_offset, turn_order};

use super::expectation::Written;
use super::live_arm::{LiveArm, Team};
use super::worker_process::WorkerProgram;
use super::{Event, PlantedSlowdown};
use crate::interruption;
use crate::machine::page_cache::Residency;
use crate::protocol::{PROTOCOL_VERSION, Preparation};
use crate::stores::Stores;
use crate::variants::Variants;

/// Untimed reading before every reading slice: the other arms have emptied the core's caches.
const SLICE_LEAD_IN_NS: u64 = 1_000_000;

/// A cold slice reads this share of all keys: the same number in every arm. What is read ahead for
/// one blob may hold another, and the more were read, the likelier; who reads faster must not for
/// that reason find more in memory.
const KEYS_PER_COLD_OPERATION: u64 = 10;

/// What a round needs to know.
pub struct RoundContext<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// The group.
    pub group: &'a Group,
    /// What runs a trial.
    pub program: &'a WorkerProgram,
    /// Libraries and other workers.
    pub variants: &'a Variants,
    /// Where stores are.
    pub stores: &'a Stores,
    /// Core for workers.
    pub worker_core: Option<usize>,
    /// Whether the kernel may be told to drop what it caches of the whole machine.
    pub may_drop_caches: bool,
    /// A slowdown planted in one arm.
    pub planted: Option<&'a PlantedSlowdown>,
    /// What each arm has written in earlier rounds, by name; `None` if that is not known.
    pub written: &'a BTreeMap<String, Option<Written>>,
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
#[derive(Default)]
pub struct SetResult {
    /// A trial for each arm that has anything to show.
    pub trials: Vec<Trial>,
    /// What each arm has written, by name; `None` if that is not known because it failed.
    pub written: Vec<(String, Option<Written>)>,
    /// Why the machine gave out, which ends the run.
    pub gave_out: Option<String>,
}

/// The keys that all arms of a set walk over.
struct CommonWalk {
    order_seed: u64,
    walk: KeyWalk,
}

/// An arm that takes part: its index in the group, and where in the common walk it begins.
#[derive(Clone, Copy)]
struct Member {
    index: usize,
    key_offset: f64,
}

impl<'a> RoundContext<'a> {
    /// Runs the round for the arms with these indices.
    pub fn run(&mut self, members: &[usize], place: RoundPlace) -> SetResult {
        let mut result = SetResult::default();
        let Some(common) = self.common_walk(members) else {
            return result;
        };
        let members: Vec<Member> = members
            .iter()
            .enumerate()
            .map(|(position, index)| Member {
                index: *index,
                key_offset: key_offset(position, members.len(), place.round),
            })
            .collect();
        match self.group.turns {
            Turns::Interleaved => self.run_trials(&members, 0, &common, place, &mut result),
            Turns::Alone => {
                let seed = self.turn_seed(place);
                // No turn of the round has this number: slices have an order of their own.
                let order = turn_order(members.len(), seed, place.round, u32::MAX);
                for (position, member) in order.into_iter().enumerate() {
                    if interruption::requested() || result.gave_out.is_some() {
                        break;
                    }
                    let alone = [members[member]];
                    self.run_trials(&alone, position, &common, place, &mut result);
                }
            }
        }
        result
    }

    /// All arms of a group have one dataset and one order of keys.
    fn common_walk(&self, members: &[usize]) -> Option<CommonWalk> {
        let case = &self.group.arms[*members.first()?].case;
        let order_seed = mix(self.plan.seed ^ 0x6b65_7973);
        let order = case.workload.order();
        let keys = order.keys(case.dataset.count as u32, order_seed);
        Some(CommonWalk {
            order_seed,
            walk: KeyWalk::new(keys, 0.0),
        })
    }

    fn turn_seed(&self, place: RoundPlace) -> u64 {
        mix(self.plan.seed ^ (u64::from(place.set) << 40))
    }

    /// Runs the trials of some arms that are alive at once, the first of which has this place in
    /// the order of the round.
    fn run_trials(
        &mut self,
        members: &[Member],
        first_place: usize,
        common: &CommonWalk,
        place: RoundPlace,
        result: &mut SetResult,
    ) {
        let mut live: Vec<LiveArm<'_>> = Vec::new();
        for member in members {
            live.push(self.start(*member, place, common));
        }
        for arm in &mut live {
            arm.step(|arm| arm.lead_in(&common.walk, self.first_generation));
        }
        check_stores(&mut live);
        self.take_turns(&mut live, first_place, &common.walk, place);
        if place.round == 0 {
            // Once is enough: what an operation asks of the system is the same in every round.
            let generation = self.first_generation + 1 + u64::from(self.group.slices);
            for arm in &mut live {
                arm.step(|arm| arm.count(&common.walk, generation));
            }
        }
        for arm in &mut live {
            let seed = mix(self.plan.seed ^ u64::from(place.round));
            arm.step(|arm| arm.finish(seed));
        }
        for arm in live {
            arm.end(result);
        }
    }

    fn take_turns(
        &mut self,
        live: &mut [LiveArm<'_>],
        first_place: usize,
        walk: &KeyWalk,
        place: RoundPlace,
    ) {
        // The first generation is the lead-in's.
        let first = self.first_generation + 1;
        let seed = self.turn_seed(place);
        let slice_ns = self.group.slice_ns;
        for turn in 0..self.group.slices {
            let order = turn_order(live.len(), seed, place.round, turn);
            for (position, index) in order.into_iter().enumerate() {
                if interruption::now() {
                    return;
                }
                let arm = &mut live[index];
                if arm.is_alive() {
                    (self.tell)(Event::Measuring {
                        group: self.group,
                        label: arm.label(),
                    });
                }
                let generation = first + u64::from(turn);
                let turn = (turn, (first_place + position) as u32);
                arm.step(|arm| arm.slice(walk, generation, turn, slice_ns));
            }
        }
    }

    fn start(&self, member: Member, place: RoundPlace, common: &CommonWalk) -> LiveArm<'a> {
        let group = self.group;
        let arm = &group.arms[member.index];
        let keeps_content = self.stores.keeps_content(arm);
        let trial = trial_without_samples(&arm.name, place.round, place.set, Outcome::Valid);
        let mut live = LiveArm::new(
            arm,
            self.stores.files(group, arm),
            common.walk.start(member.key_offset),
            trial,
        );
        if keeps_content {
            let workload = &arm.case.workload;
            let reads = workload.shape() == Shape::Blobs && !workload.writes();
            let first = self.stores.content(&arm.case);
            live.keep_content(first, reads.then(|| self.stores.sums(&arm.case)));
        }
        if !arm.case.workload.is_about_blobs() {
            live.be_team(self.team(member, common));
        }
        let is_cold = arm.case.cache.is_cold();
        let mut case = arm.case.clone();
        case.settings = self.variants.with_paths(&case.settings);
        let store = self.stores.path(group, arm);
        let preparation = Preparation {
            protocol_version: PROTOCOL_VERSION,
            case,
            store: store.clone(),
            key_offset: member.key_offset,
            order_seed: common.order_seed,
            slice_ns: group.slice_ns,
            slice_lead_in_ns: if is_cold { 0 } else { SLICE_LEAD_IN_NS },
            slice_operations_max: is_cold.then(|| cold_slice_operations(&arm.case.dataset)),
            core: self.worker_core,
            slowdown: self.planted.map(|planted| {
                if planted.arm == arm.name {
                    planted.share
                } else {
                    0.0
                }
            }),
            cores: self.stores.cores().to_vec(),
        };
        let program = self.variants.program(arm, self.program);
        live.start(program, &store, self.may_drop_caches);
        live.step(|live| live.prepare(preparation));
        live
    }

    fn team(&self, member: Member, common: &CommonWalk) -> Team {
        let arm = &self.group.arms[member.index];
        let is_about_rows = arm.case.workload.is_about_rows();
        let rows = is_about_rows.then(|| self.stores.row_facts(&arm.case.dataset));
        let before = match self.written.get(&arm.name) {
            None => Some(0),
            Some(written) => written.as_ref().map(Written::updates),
        };
        let is_index = matches!(arm.case.workload, Workload::Index { .. });
        let tree = is_index.then(|| self.stores.tree_facts(self.group, arm));
        let seed = common.order_seed;
        Team::new(arm, member.key_offset, seed, (rows, tree), before)
    }
}

/// Blobs that one cold slice reads, if its time is not over before.
pub fn cold_slice_operations(dataset: &Dataset) -> u64 {
    (dataset.count / KEYS_PER_COLD_OPERATION).max(1)
}

/// Asks the kernel what of each store is in memory before the first slice; once for arms that
/// share one.
fn check_stores(live: &mut [LiveArm<'_>]) {
    let mut known: BTreeMap<Vec<PathBuf>, Option<Residency>> = BTreeMap::new();
    for arm in live {
        arm.step(|arm| {
            let residency = match known.get(arm.files()) {
                Some(residency) => *residency,
                None => {
                    let residency = arm.check_store()?;
                    known.insert(arm.files().to_vec(), residency);
                    residency
                }
            };
            arm.note_residency(residency);
            Ok(())
        });
    }
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
        system_calls: None,
        latencies: Latencies::default(),
        samples: Vec::new(),
    }
}
