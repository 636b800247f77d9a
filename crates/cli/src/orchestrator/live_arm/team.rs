//! The steps of a trial whose workload may have several threads, rows and jobs: each thread's
//! walk is followed here as one thread's is for blobs, and what they claim is held against what
//! follows from the rows.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use sqlitmus_core::case::{JOB_UPDATES, Workload};
use sqlitmus_core::dataset::{Dataset, consume, digest};
use sqlitmus_core::keys::{KeyWalk, Span, thread_offset};
use sqlitmus_core::latencies::Latencies;
use sqlitmus_core::lifecycle::replacements;
use sqlitmus_core::plan::Arm;
use sqlitmus_core::rows::FoundRows;
use sqlitmus_core::run::Sample;

use super::life::check_emptied;
use super::{LiveArm, Stop, lied, unexpected};
use crate::orchestrator::expectation::{RowFacts, TreeFacts};
use crate::protocol::{Request, Response};

/// Keys whose content is asked for at the end of a trial.
const VERIFIED_KEYS: u64 = 64;

/// What is known of a trial before it begins.
pub struct Team {
    /// One for each thread, at the place where its next operation must be.
    walks: Vec<KeyWalk>,
    /// How many of them, the first ones, read.
    readers: usize,
    rows: Option<Arc<RowFacts>>,
    /// What is known of the tree that is recorded.
    tree: Option<Arc<TreeFacts>>,
    /// Updates of all trials before, as far as they are known.
    updates_before: Option<u64>,
}

impl Team {
    /// What follows from the case, from where in the key order the trial begins, and from what
    /// earlier trials have written.
    pub fn new(
        arm: &Arm,
        key_offset: f64,
        order_seed: u64,
        (rows, tree): (Option<Arc<RowFacts>>, Option<Arc<TreeFacts>>),
        updates_before: Option<u64>,
    ) -> Self {
        let case = &arm.case;
        let count = case.dataset.count;
        let walk = |range: u64| {
            let keys = case.workload.order().keys(range as u32, order_seed);
            KeyWalk::new(keys, 0.0)
        };
        let several = |walk: KeyWalk, threads: u32| {
            (0..threads)
                .map(|thread| walk.starting_at(thread_offset(key_offset, thread, threads)))
                .collect::<Vec<_>>()
        };
        let (walks, readers) = match case.workload {
            Workload::PointQuery { range, threads, .. } => {
                (several(walk(range), threads), threads as usize)
            }
            Workload::Traffic {
                range,
                readers,
                writers,
                ..
            } => {
                let mut walks = several(walk(range), readers);
                walks.extend(several(walk(count), writers));
                (walks, readers as usize)
            }
            Workload::Load {
                readers, writers, ..
            } => {
                let mut walks = several(walk(count), readers);
                let all = walk(count);
                walks.extend((0..writers).map(|writer| all.part(writer, writers, key_offset)));
                (walks, readers as usize)
            }
            Workload::JobQueue { threads, .. } => (several(walk(count), threads), 0),
            Workload::Import { .. } => (vec![walk(count)], 0),
            _ => (several(walk(count), 1), 0),
        };
        Self {
            walks,
            readers,
            rows,
            tree,
            updates_before,
        }
    }
}

impl LiveArm<'_> {
    /// Has the worker do the untimed operations at the beginning of its trial.
    pub(super) fn start_team(&mut self, generation: u64) -> Result<(), Stop> {
        let Response::Started { spans } = self.ask(&Request::LeadIn { generation })? else {
            return Err(lied("the worker did not answer a lead-in with a lead-in"));
        };
        if let Some(facts) = self.tree_facts() {
            return self.follow_pass(&facts, &spans);
        }
        self.follow_team(&spans, generation).map(|_| ())
    }

    fn tree_facts(&self) -> Option<Arc<TreeFacts>> {
        self.team.as_ref()?.tree.clone()
    }

    /// Has the worker do one timed slice, and a writing one settle.
    pub(super) fn team_slice(
        &mut self,
        generation: u64,
        (turn, place): (u32, u32),
        slice_ns: u64,
    ) -> Result<(), Stop> {
        let asked = Instant::now();
        let response = self.ask(&Request::Slice { generation })?;
        let waited_ns = asked.elapsed().as_nanos() as u64;
        let Response::Measured {
            lead_in,
            timed,
            elapsed_ns,
            latencies,
            resources,
        } = response
        else {
            return Err(lied("the worker did not answer a slice with a slice"));
        };
        let operations = timed.iter().map(|span| span.operations).sum();
        self.check_length(operations, elapsed_ns, waited_ns, slice_ns)?;
        if !lead_in.is_empty() {
            self.follow_team(&lead_in, generation)?;
        }
        self.check_found(&timed, &resources)?;
        let content_bytes = self.follow_team(&timed, generation)?;
        let settle_ns = match self.arm.case.workload.writes() {
            true => Some(self.settle()?),
            false => None,
        };
        let sample = Sample {
            turn,
            place,
            operations,
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

    /// Whether number and time can be true: as many operations as were asked for, or as long as
    /// it was to take.
    fn check_length(
        &self,
        operations: u64,
        elapsed_ns: u64,
        waited_ns: u64,
        slice_ns: u64,
    ) -> Result<(), Stop> {
        let threads = u64::from(self.arm.case.workload.threads());
        let limited = |asked: u64, limit_ms: u64| {
            let is_over = limit_ms > 0 && elapsed_ns >= limit_ms * 1_000_000;
            operations == asked || (operations < asked && is_over)
        };
        let is_right = match self.arm.case.workload {
            Workload::Import {
                operations,
                limit_ms,
            }
            | Workload::Update {
                operations,
                limit_ms,
                ..
            } => limited(operations, limit_ms),
            Workload::JobQueue {
                operations,
                threads,
                limit_ms,
            } => limited(
                operations.div_ceil(threads.into()) * u64::from(threads),
                limit_ms,
            ),
            Workload::Index { limit_ms, .. } if self.arm.case.workload.writes() => {
                limited(self.arm.case.dataset.count, limit_ms)
            }
            Workload::Index { .. } => operations == self.arm.case.dataset.count,
            Workload::Lifecycle { ref ages, .. } => {
                operations == self.arm.case.dataset.count * replacements(ages)
            }
            _ => elapsed_ns >= slice_ns,
        };
        if !is_right {
            return Err(lied("the slice is shorter than it was to be"));
        }
        if operations == 0 || elapsed_ns == 0 {
            return Err(lied("the worker timed nothing"));
        }
        if elapsed_ns > waited_ns || operations > waited_ns.saturating_mul(threads) {
            return Err(lied("the worker claims more than there was time for"));
        }
        Ok(())
    }

    /// Whether the readers found as many rows as there are among the ids they queried.
    fn check_found(&self, timed: &[Span], counted: &BTreeMap<String, u64>) -> Result<(), Stop> {
        let Some(team) = self.team.as_ref() else {
            return Ok(());
        };
        let (Some(facts), 1..) = (&team.rows, team.readers) else {
            return Ok(());
        };
        let readers = team.walks.iter().zip(timed).take(team.readers);
        let found: u64 = readers
            .map(|(walk, span)| {
                facts
                    .sums
                    .of(walk.span(span.position, span.operations))
                    .rows
            })
            .sum();
        match counted.get("rows_found") {
            Some(counted) if *counted == found => Ok(()),
            _ => Err(lied(format!("the queries did not find {found} rows"))),
        }
    }

    /// Follows every thread in its walk, checks what the readers consumed, and notes what was
    /// written. Returns the bytes of content.
    fn follow_team(&mut self, spans: &[Span], generation: u64) -> Result<u64, Stop> {
        let Some(mut team) = self.team.take() else {
            return Err(lied("there is no team"));
        };
        let followed = self.follow_walks(&mut team, spans, generation);
        self.team = Some(team);
        followed
    }

    fn follow_walks(
        &mut self,
        team: &mut Team,
        spans: &[Span],
        generation: u64,
    ) -> Result<u64, Stop> {
        if let Some(facts) = &team.tree {
            return self.follow_recording(facts, spans).map(|()| 0);
        }
        if self.is_life() {
            return self.follow_life(spans);
        }
        if spans.len() != team.walks.len() {
            return Err(lied("the worker has another number of threads"));
        }
        let mut bytes = 0;
        let all_read = team.readers == team.walks.len();
        for (thread, (walk, span)) in team.walks.iter_mut().zip(spans).enumerate() {
            let is_import = matches!(self.arm.case.workload, Workload::Import { .. });
            let position = if is_import { 0 } else { walk.position() };
            if span.position != position {
                return Err(lied("the worker has visited other keys than it was to"));
            }
            if let Workload::Load { .. } = self.arm.case.workload {
                bytes += self.follow_load(walk, span, thread >= team.readers, generation)?;
                walk.return_to(position + span.operations as usize);
                continue;
            }
            let keys = walk.span(span.position, span.operations);
            let dataset = &self.arm.case.dataset;
            match &team.rows {
                Some(facts) => {
                    let found = facts.sums.of(keys);
                    // Rows that are updated meanwhile have some `c1` or other: of them only the
                    // number found can be known.
                    if (all_read || is_import) && found.consumed != span.consumed {
                        return Err(wrong_content(&found));
                    }
                    bytes += found.bytes;
                }
                None => {
                    check_job(dataset, keys, span, generation)?;
                    let keys = walk.span(span.position, span.operations);
                    bytes += keys.map(|key| job_bytes(dataset, key)).sum::<u64>();
                }
            }
            walk.return_to(position + span.operations as usize);
            if is_import {
                self.written.note_import(span.operations);
            } else if thread >= team.readers && team.rows.is_some() {
                self.written.note_updates(span.operations);
            }
        }
        Ok(bytes)
    }

    /// Has the worker verify what is stored, and ends its trial.
    pub(super) fn finish_team(&mut self) -> Result<(), Stop> {
        let Some(team) = self.team.take() else {
            return Err(lied("there is no team"));
        };
        let last = match self.written.imported() {
            _ if team.tree.is_some() => 0,
            Some(rows) => rows,
            None => self.arm.case.dataset.count,
        };
        let step = (last / VERIFIED_KEYS).max(1) as usize;
        let verify: Vec<u64> = (1..=last).step_by(step).collect();
        let request = Request::Finish {
            verify: verify.clone(),
        };
        let digests = match self.ask(&request)? {
            Response::Finished { digests } => digests,
            other => return Err(unexpected(&other)),
        };
        match (&team.rows, &team.tree) {
            (Some(facts), _) => self.check_rows(&team, facts, &verify, &digests)?,
            (None, Some(facts)) => self.check_recorded(facts, &digests)?,
            (None, None) if self.is_life() => check_emptied(&digests)?,
            (None, None) => check_jobs(&self.arm.case.dataset, &verify, &digests)?,
        }
        self.trial.latencies = Latencies::merged(&self.latencies);
        self.finished = true;
        self.check_cache_state()
    }

    fn check_rows(
        &self,
        team: &Team,
        facts: &RowFacts,
        ids: &[u64],
        numbers: &[u64],
    ) -> Result<(), Stop> {
        let Some((found, [rows, c1_sum, consumed])) = numbers.split_last_chunk::<3>() else {
            return Err(lied("the worker did not count the rows"));
        };
        let last = self.written.imported().unwrap_or(facts.count);
        if *rows != last {
            return Err(lied(format!("verification: {rows} rows instead of {last}")));
        }
        if found.len() != ids.len() {
            return Err(lied("the worker did not read the rows it was to verify"));
        }
        if self.arm.case.workload.writes() && self.written.imported().is_none() {
            // Each update has counted one row up by one.
            let updates = self.written.updates();
            return match team.updates_before.map(|before| before + updates) {
                Some(updates) => facts
                    .check_c1_sum(c1_sum.cast_signed(), updates)
                    .map_err(lied),
                None => Ok(()),
            };
        }
        let expected = facts.sums.of(1..=last);
        if *consumed != expected.consumed {
            return Err(wrong_content(&expected));
        }
        let single = |id: &u64| facts.sums.of(std::iter::once(*id)).consumed;
        match ids.iter().zip(found).find(|(id, got)| single(id) != **got) {
            None => Ok(()),
            Some((id, _)) => Err(lied(format!(
                "verification: row {id} is not what was stored"
            ))),
        }
    }
}

fn wrong_content(expected: &FoundRows) -> Stop {
    lied(format!(
        "wrong content: the sum over {} rows is not what was stored",
        expected.rows
    ))
}

/// Bytes that one job writes in its life.
fn job_bytes(dataset: &Dataset, key: u64) -> u64 {
    (JOB_UPDATES + 1) * dataset.value_bytes(key) as u64
}

/// Before a slice, the last job of each thread is read when it has been updated for the last time.
fn check_job(
    dataset: &Dataset,
    keys: impl Iterator<Item = u64>,
    span: &Span,
    generation: u64,
) -> Result<(), Stop> {
    let Some(key) = keys.last().filter(|_| span.consumed != 0) else {
        return Ok(());
    };
    let mut value = Vec::new();
    dataset.fill(key, generation + JOB_UPDATES, &mut value);
    match span.consumed == consume(&value) {
        true => Ok(()),
        false => Err(lied(format!("wrong content: that of job {key}"))),
    }
}

/// Each job that was lived once more had its last content before it was deleted; none is left.
fn check_jobs(dataset: &Dataset, keys: &[u64], numbers: &[u64]) -> Result<(), Stop> {
    let Some((left, digests)) = numbers.split_last() else {
        return Err(lied("the worker did not count the jobs that are left"));
    };
    if *left > 0 {
        return Err(lied(format!("verification: {left} jobs are left")));
    }
    let mut value = Vec::new();
    let expected: Vec<u64> = keys
        .iter()
        .map(|key| {
            dataset.fill(*key, JOB_UPDATES, &mut value);
            digest(&value)
        })
        .collect();
    match digests == expected {
        true => Ok(()),
        false => Err(lied("verification: a job is not what was stored")),
    }
}
