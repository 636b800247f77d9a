//! What stands in an open run file, as the types of the core: the run with all its trials, its
//! head alone, its rounds. Opening the file is [`crate::access`]'s business, writing it
//! [`crate::RunFile`]'s.

use std::collections::BTreeMap;
use std::path::Path;

use rusqlite::{Connection, Row, Statement};
use sqlitmus_core::latencies::Latencies;
use sqlitmus_core::plan::Plan;
use sqlitmus_core::run::{Footprint, Outcome, Run, RunHead, RunState, Sample, SystemCalls, Trial};

use crate::error::RunFileError;
use crate::latency_blob::decode_latencies;
use crate::schema::ADDED_SAMPLE_COLUMNS;

/// Reason given for trials of a round that was measured again after an interruption.
pub const SUPERSEDED: &str = "its round was interrupted and measured again";

/// A round as it was recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedRound {
    /// Name of the group.
    pub group: String,
    /// Round, from 0.
    pub round: u32,
    /// Attempt at the round, from 0. Only a round's last attempt counts, and only the last can be
    /// complete.
    pub attempt: u32,
    /// Whether all of its trials ended; `false` if it was interrupted.
    pub complete: bool,
}

/// What was read, or why it could not be.
type Reading<T> = Result<T, ReadingError>;

/// Why contents could not be read; the path is added by the caller.
enum ReadingError {
    Database(rusqlite::Error),
    Value(String),
    Plan(String, serde_json::Error),
}

impl From<rusqlite::Error> for ReadingError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Database(error)
    }
}

/// An open run file, for reading.
pub(crate) struct Contents<'a> {
    /// Its database.
    pub(crate) connection: &'a Connection,
    /// Its path, for errors.
    pub(crate) path: &'a Path,
}

impl Contents<'_> {
    /// The whole run, from one consistent state of the file.
    pub(crate) fn run(&self) -> Result<Run, RunFileError> {
        self.consistently(|connection| {
            let (head, plan) = head_and_plan(connection)?;
            Ok(Run {
                head,
                plan,
                environment: environment(connection)?,
                trials: TrialReader::new(connection)?.trials()?,
                footprints: footprints(connection)?,
            })
        })
    }

    /// The head of the run with the names of its suite and its scale.
    pub(crate) fn head(&self) -> Result<(RunHead, String, String), RunFileError> {
        self.consistently(|connection| {
            let sql = format!("SELECT {HEAD_COLUMNS}, suite, scale FROM run");
            connection.query_row(&sql, [], |row| {
                Ok(head(row).and_then(|head| Ok((head, row.get(7)?, row.get(8)?))))
            })?
        })
    }

    /// All rounds in the order of recording.
    pub(crate) fn rounds(&self) -> Result<Vec<RecordedRound>, RunFileError> {
        self.consistently(|connection| {
            let mut statement = connection.prepare(
                "SELECT name, number, attempt, complete FROM round JOIN arm_group USING (group_id) \
                 ORDER BY round_id",
            )?;
            let rounds = statement.query_map([], |row| {
                Ok(RecordedRound {
                    group: row.get(0)?,
                    round: row.get(1)?,
                    attempt: row.get(2)?,
                    complete: row.get(3)?,
                })
            })?;
            Ok(rounds.collect::<Result<_, _>>()?)
        })
    }

    /// Reads within one transaction, so that a round recorded meanwhile is seen whole or not.
    fn consistently<T>(
        &self,
        read: impl FnOnce(&Connection) -> Reading<T>,
    ) -> Result<T, RunFileError> {
        let outcome = self
            .connection
            .unchecked_transaction()
            .map_err(ReadingError::from)
            .and_then(|transaction| read(&transaction));
        outcome.map_err(|error| match error {
            ReadingError::Database(source) => RunFileError::from_database(self.path, source),
            ReadingError::Value(reason) => RunFileError::damaged(self.path, reason),
            ReadingError::Plan(sqlitmus_version, source) => RunFileError::UnknownPlan {
                path: self.path.to_owned(),
                sqlitmus_version,
                source,
            },
        })
    }
}

const HEAD_COLUMNS: &str =
    "run_id, sqlitmus_version, started_utc, finished_utc, state, command_line, place";

fn head(row: &Row<'_>) -> Reading<RunHead> {
    let state: String = row.get(4)?;
    Ok(RunHead {
        id: row.get(0)?,
        sqlitmus_version: row.get(1)?,
        started_utc: row.get(2)?,
        finished_utc: row.get(3)?,
        state: state_of(&state)
            .ok_or_else(|| ReadingError::Value(format!("a run cannot be `{state}`")))?,
        command_line: row.get(5)?,
        place: row.get(6)?,
    })
}

/// How a state is written.
pub(crate) fn state_word(state: RunState) -> &'static str {
    match state {
        RunState::Started => "started",
        RunState::Interrupted => "interrupted",
        RunState::Complete => "complete",
    }
}

/// The state that a word stands for.
pub(crate) fn state_of(word: &str) -> Option<RunState> {
    [RunState::Started, RunState::Interrupted, RunState::Complete]
        .into_iter()
        .find(|state| state_word(*state) == word)
}

fn head_and_plan(connection: &Connection) -> Reading<(RunHead, Plan)> {
    let sql = format!("SELECT {HEAD_COLUMNS}, plan FROM run");
    let (head, plan) = connection.query_row(&sql, [], |row| {
        Ok(head(row).and_then(|head| Ok((head, row.get::<_, String>(7)?))))
    })??;
    match serde_json::from_str(&plan) {
        Ok(plan) => Ok((head, plan)),
        Err(error) => Err(ReadingError::Plan(head.sqlitmus_version, error)),
    }
}

fn environment(connection: &Connection) -> Reading<Vec<(String, String)>> {
    Ok(environment_of(connection)?)
}

/// The facts of the machine, in their order.
pub(crate) fn environment_of(connection: &Connection) -> rusqlite::Result<Vec<(String, String)>> {
    let mut statement =
        connection.prepare("SELECT name, value FROM environment ORDER BY position")?;
    let pairs = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    pairs.collect()
}

fn footprints(connection: &Connection) -> Reading<BTreeMap<String, Footprint>> {
    let mut statement = connection.prepare(
        "SELECT name, content_bytes, apparent_bytes, allocated_bytes, files, directories \
         FROM footprint JOIN arm USING (arm_id)",
    )?;
    let mut rows = statement.query([])?;
    let mut footprints = BTreeMap::new();
    while let Some(row) = rows.next()? {
        let footprint = Footprint {
            content_bytes: unsigned(row, 1)?,
            apparent_bytes: unsigned(row, 2)?,
            allocated_bytes: unsigned(row, 3)?,
            files: unsigned(row, 4)?,
            directories: unsigned(row, 5)?,
        };
        footprints.insert(row.get(0)?, footprint);
    }
    Ok(footprints)
}

/// A number that is never negative.
fn unsigned(row: &Row<'_>, column: usize) -> Reading<u64> {
    to_unsigned(row.get(column)?)
}

fn to_unsigned(number: i64) -> Reading<u64> {
    u64::try_from(number).map_err(|_| ReadingError::Value(format!("a quantity is {number}")))
}

/// Reads trials with their samples and resources, statement by prepared statement.
struct TrialReader<'c> {
    trials: Statement<'c>,
    samples: Statement<'c>,
    resources: Statement<'c>,
    /// `None` in a file from before there was such a table.
    system_calls: Option<Statement<'c>>,
    /// By `read_back_id`: few, shared by many trials.
    read_backs: BTreeMap<i64, BTreeMap<String, String>>,
}

impl<'c> TrialReader<'c> {
    fn new(connection: &'c Connection) -> Reading<Self> {
        Ok(Self {
            // A later attempt at the same round makes this one superseded.
            trials: connection.prepare(
                "SELECT trial_id, arm.name, round.number, live_set, outcome, reason, \
                   read_back_id, latencies, \
                   EXISTS (SELECT 1 FROM round AS later \
                     WHERE later.group_id = round.group_id AND later.number = round.number \
                       AND later.attempt > round.attempt) \
                 FROM trial JOIN round USING (round_id) JOIN arm USING (arm_id) \
                 ORDER BY trial_id",
            )?,
            samples: connection.prepare(&sample_query(connection)?)?,
            resources: connection.prepare("SELECT name, value FROM resource WHERE trial_id = ?")?,
            system_calls: if connection.table_exists(None, "system_call")? {
                let sql = "SELECT name, calls, operations FROM system_call WHERE trial_id = ?";
                Some(connection.prepare(sql)?)
            } else {
                None
            },
            read_backs: read_backs(connection)?,
        })
    }

    fn trials(&mut self) -> Reading<Vec<Trial>> {
        let mut rows = self.trials.query([])?;
        let mut trials = Vec::new();
        while let Some(row) = rows.next()? {
            let trial_id = row.get(0)?;
            let read_back = self.read_backs.get(&row.get(6)?).ok_or_else(|| {
                ReadingError::Value(format!("trial {trial_id} lacks its settings"))
            })?;
            trials.push(Trial {
                arm: row.get(1)?,
                round: row.get(2)?,
                set: row.get(3)?,
                outcome: outcome(row)?,
                read_back: read_back.clone(),
                resources: resources(&mut self.resources, trial_id)?,
                system_calls: match &mut self.system_calls {
                    Some(statement) => system_calls(statement, trial_id)?,
                    None => None,
                },
                latencies: latencies(row, trial_id)?,
                samples: samples(&mut self.samples, trial_id)?,
            });
        }
        Ok(trials)
    }
}

/// Files of earlier versions lack the columns that were added since: they read as NULL.
fn sample_query(connection: &Connection) -> Reading<String> {
    let mut columns = String::new();
    for added in ADDED_SAMPLE_COLUMNS {
        let is_there = has_column(connection, "sample", added)?;
        columns.push_str(", ");
        columns.push_str(if is_there { added } else { "NULL" });
    }
    Ok(format!(
        "SELECT turn, place, operations, content_bytes, elapsed_ns, settle_ns, \
         device_read_bytes, major_faults{columns} \
         FROM sample WHERE trial_id = ? ORDER BY turn"
    ))
}

/// Whether a table has a column.
pub(crate) fn has_column(
    connection: &Connection,
    table: &str,
    column: &str,
) -> rusqlite::Result<bool> {
    connection.query_row(
        "SELECT EXISTS (SELECT 1 FROM pragma_table_info(?) WHERE name = ?)",
        [table, column],
        |row| row.get(0),
    )
}

fn read_backs(connection: &Connection) -> Reading<BTreeMap<i64, BTreeMap<String, String>>> {
    let mut statement = connection.prepare("SELECT read_back_id, settings FROM read_back")?;
    let mut rows = statement.query([])?;
    let mut read_backs = BTreeMap::new();
    while let Some(row) = rows.next()? {
        let settings: String = row.get(1)?;
        let settings = serde_json::from_str(&settings)
            .map_err(|error| ReadingError::Value(format!("settings read back: {error}")))?;
        read_backs.insert(row.get(0)?, settings);
    }
    Ok(read_backs)
}

/// How an outcome is written: its word and its reason.
pub(crate) fn outcome_words(outcome: &Outcome) -> (&'static str, Option<&str>) {
    match outcome {
        Outcome::Valid => ("valid", None),
        Outcome::Invalid(reason) => ("invalid", Some(reason)),
        Outcome::Failed(reason) => ("failed", Some(reason)),
        Outcome::Skipped(reason) => ("skipped", Some(reason)),
        Outcome::Refuted(reason) => ("refuted", Some(reason)),
    }
}

fn outcome(row: &Row<'_>) -> Reading<Outcome> {
    let word: String = row.get(4)?;
    let reason: Option<String> = row.get(5)?;
    let is_superseded: bool = row.get(8)?;
    match (word.as_str(), reason) {
        // The later attempt counts: slices of both must not be paired with each other.
        ("valid", None) if is_superseded => Ok(Outcome::Invalid(SUPERSEDED.to_owned())),
        ("valid", None) => Ok(Outcome::Valid),
        ("invalid", Some(reason)) => Ok(Outcome::Invalid(reason)),
        ("failed", Some(reason)) => Ok(Outcome::Failed(reason)),
        ("skipped", Some(reason)) => Ok(Outcome::Skipped(reason)),
        ("refuted", Some(reason)) => Ok(Outcome::Refuted(reason)),
        _ => Err(ReadingError::Value(format!(
            "a trial cannot be `{word}`, with or without a reason"
        ))),
    }
}

fn latencies(row: &Row<'_>, trial_id: i64) -> Reading<Latencies> {
    let bytes = row
        .get_ref(7)?
        .as_blob()
        .map_err(|error| ReadingError::Value(format!("latencies of trial {trial_id}: {error}")))?;
    decode_latencies(bytes).ok_or_else(|| {
        ReadingError::Value(format!("latencies of trial {trial_id} end in half a pair"))
    })
}

fn resources(statement: &mut Statement<'_>, trial_id: i64) -> Reading<BTreeMap<String, u64>> {
    let mut rows = statement.query([trial_id])?;
    let mut resources = BTreeMap::new();
    while let Some(row) = rows.next()? {
        resources.insert(row.get(0)?, unsigned(row, 1)?);
    }
    Ok(resources)
}

fn system_calls(statement: &mut Statement<'_>, trial_id: i64) -> Reading<Option<SystemCalls>> {
    let mut rows = statement.query([trial_id])?;
    let mut counted: Option<SystemCalls> = None;
    while let Some(row) = rows.next()? {
        let operations = unsigned(row, 2)?;
        let counted = counted.get_or_insert_with(|| SystemCalls {
            operations,
            calls: BTreeMap::new(),
        });
        counted.calls.insert(row.get(0)?, unsigned(row, 1)?);
    }
    Ok(counted)
}

fn samples(statement: &mut Statement<'_>, trial_id: i64) -> Reading<Vec<Sample>> {
    let mut rows = statement.query([trial_id])?;
    let mut samples = Vec::new();
    while let Some(row) = rows.next()? {
        let known = |column: usize| -> Reading<Option<u64>> {
            let value: Option<i64> = row.get(column)?;
            value.map(to_unsigned).transpose()
        };
        samples.push(Sample {
            turn: row.get(0)?,
            place: row.get(1)?,
            operations: unsigned(row, 2)?,
            content_bytes: unsigned(row, 3)?,
            elapsed_ns: unsigned(row, 4)?,
            settle_ns: known(5)?,
            device_read_bytes: known(6)?,
            major_faults: known(7)?,
            involuntary_context_switches: known(8)?,
            machine_steal_ns: known(9)?,
            device_read_ns: known(10)?,
        });
    }
    Ok(samples)
}
