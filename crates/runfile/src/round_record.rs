//! A round as rows: checked, and inserted with its trials, samples and resources in the caller's
//! transaction.

use std::collections::BTreeMap;

use rusqlite::{OptionalExtension, Statement, Transaction, params};
use sqlitmus_core::run::{Sample, Trial};

use crate::contents::outcome_words;
use crate::error::RunFileError;
use crate::latency_blob::encode_latencies;

/// Turns SQLite's errors into ours, which name the file.
pub(crate) type Failed<'a> = &'a dyn Fn(rusqlite::Error) -> RunFileError;

/// Inserts the next attempt at a round with its trials.
pub(crate) fn insert_round(
    transaction: &Transaction<'_>,
    group: &str,
    round: u32,
    trials: &[Trial],
    complete: bool,
    failed: Failed<'_>,
) -> Result<(), RunFileError> {
    let group_id = group_id(transaction, group, failed)?;
    let (attempt, is_complete) = attempts(transaction, group_id, round).map_err(failed)?;
    if is_complete {
        return Err(RunFileError::RoundComplete {
            group: group.to_owned(),
            round,
        });
    }
    transaction
        .execute(
            "INSERT INTO round (group_id, number, attempt, complete) VALUES (?, ?, ?, ?)",
            params![group_id, round, attempt, complete],
        )
        .map_err(failed)?;
    let round_id = transaction.last_insert_rowid();
    let arms = arms_of(transaction, group_id).map_err(failed)?;
    let mut insert = TrialInsertion::new(transaction).map_err(failed)?;
    for trial in trials {
        check_trial(trial, round)?;
        let arm_id = *arms
            .get(&trial.arm)
            .ok_or_else(|| RunFileError::UnknownArm {
                arm: trial.arm.clone(),
            })?;
        insert.trial(round_id, arm_id, trial, failed)?;
    }
    Ok(())
}

fn group_id(
    transaction: &Transaction<'_>,
    group: &str,
    failed: Failed<'_>,
) -> Result<i64, RunFileError> {
    transaction
        .query_row(
            "SELECT group_id FROM arm_group WHERE name = ?",
            [group],
            |row| row.get(0),
        )
        .optional()
        .map_err(failed)?
        .ok_or_else(|| RunFileError::UnknownGroup {
            group: group.to_owned(),
        })
}

/// Number of attempts at a round so far, and whether one is complete.
fn attempts(
    transaction: &Transaction<'_>,
    group_id: i64,
    round: u32,
) -> rusqlite::Result<(u32, bool)> {
    transaction.query_row(
        "SELECT count(*), coalesce(max(complete), 0) FROM round \
         WHERE group_id = ? AND number = ?",
        params![group_id, round],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )
}

fn arms_of(
    transaction: &Transaction<'_>,
    group_id: i64,
) -> rusqlite::Result<BTreeMap<String, i64>> {
    transaction
        .prepare("SELECT name, arm_id FROM arm WHERE group_id = ?")?
        .query_map([group_id], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect()
}

fn check_trial(trial: &Trial, round: u32) -> Result<(), RunFileError> {
    if trial.round != round {
        return Err(RunFileError::WrongRound {
            arm: trial.arm.clone(),
            found: trial.round,
            expected: round,
        });
    }
    if !trial.samples.is_sorted_by(|one, next| one.turn < next.turn) {
        return Err(RunFileError::WrongTurns {
            arm: trial.arm.clone(),
        });
    }
    Ok(())
}

/// The statements that insert a trial, prepared once for a round.
struct TrialInsertion<'t> {
    transaction: &'t Transaction<'t>,
    read_back: Statement<'t>,
    trial: Statement<'t>,
    resource: Statement<'t>,
    /// `None` in a file that was begun before there was such a table.
    system_call: Option<Statement<'t>>,
    sample: Statement<'t>,
}

impl<'t> TrialInsertion<'t> {
    fn new(transaction: &'t Transaction<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            transaction,
            // Updates nothing, but so returns the row that is there already.
            read_back: transaction.prepare(
                "INSERT INTO read_back (settings) VALUES (?) \
                 ON CONFLICT (settings) DO UPDATE SET settings = excluded.settings \
                 RETURNING read_back_id",
            )?,
            trial: transaction.prepare(
                "INSERT INTO trial (round_id, arm_id, live_set, outcome, reason, \
                   read_back_id, latencies) VALUES (?, ?, ?, ?, ?, ?, ?)",
            )?,
            resource: transaction.prepare("INSERT INTO resource VALUES (?, ?, ?)")?,
            system_call: if transaction.table_exists(None, "system_call")? {
                Some(transaction.prepare("INSERT INTO system_call VALUES (?, ?, ?, ?)")?)
            } else {
                None
            },
            sample: transaction.prepare(
                "INSERT INTO sample (trial_id, turn, place, operations, content_bytes, elapsed_ns, \
                   settle_ns, device_read_bytes, major_faults, involuntary_context_switches, \
                   machine_steal_ns, device_read_ns) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            )?,
        })
    }

    fn trial(
        &mut self,
        round_id: i64,
        arm_id: i64,
        trial: &Trial,
        failed: Failed<'_>,
    ) -> Result<(), RunFileError> {
        let (outcome, reason) = outcome_words(&trial.outcome);
        let settings = json(&trial.read_back).map_err(failed)?;
        let read_back_id: i64 = self
            .read_back
            .query_row([settings], |row| row.get(0))
            .map_err(failed)?;
        let values = params![
            round_id,
            arm_id,
            trial.set,
            outcome,
            reason,
            read_back_id,
            encode_latencies(&trial.latencies)
        ];
        self.trial.execute(values).map_err(failed)?;
        let trial_id = self.transaction.last_insert_rowid();
        for (name, value) in &trial.resources {
            let values = params![trial_id, name, signed(name, *value)?];
            self.resource.execute(values).map_err(failed)?;
        }
        if let Some((counted, insert)) = trial.system_calls.as_ref().zip(self.system_call.as_mut())
        {
            let operations = signed("operations", counted.operations)?;
            for (name, calls) in &counted.calls {
                let values = params![trial_id, name, signed(name, *calls)?, operations];
                insert.execute(values).map_err(failed)?;
            }
        }
        for sample in &trial.samples {
            self.sample(trial_id, sample, failed)?;
        }
        Ok(())
    }

    fn sample(
        &mut self,
        trial_id: i64,
        sample: &Sample,
        failed: Failed<'_>,
    ) -> Result<(), RunFileError> {
        let known =
            |what: &str, value: Option<u64>| value.map(|value| signed(what, value)).transpose();
        let values = params![
            trial_id,
            sample.turn,
            sample.place,
            signed("operations", sample.operations)?,
            signed("content_bytes", sample.content_bytes)?,
            signed("elapsed_ns", sample.elapsed_ns)?,
            known("settle_ns", sample.settle_ns)?,
            known("device_read_bytes", sample.device_read_bytes)?,
            known("major_faults", sample.major_faults)?,
            known(
                "involuntary_context_switches",
                sample.involuntary_context_switches
            )?,
            known("machine_steal_ns", sample.machine_steal_ns)?,
            known("device_read_ns", sample.device_read_ns)?
        ];
        self.sample.execute(values).map_err(failed)?;
        Ok(())
    }
}

/// SQLite's integers have a sign; what has 64 bits without one fits only up to half.
pub(crate) fn signed(what: &str, value: u64) -> Result<i64, RunFileError> {
    i64::try_from(value).map_err(|_| RunFileError::TooLarge {
        what: what.to_owned(),
        value,
    })
}

/// A value as JSON.
pub(crate) fn json(value: &impl serde::Serialize) -> rusqlite::Result<String> {
    serde_json::to_string(value)
        .map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))
}
