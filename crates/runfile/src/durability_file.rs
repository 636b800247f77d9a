//! The file of a durability run: the same care as for a run file, other tables.
//! What the rows mean is judged by [`sqlitmus_core::durability`].
#![doc = include_str!("../DURABILITY.md")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, Row, Transaction, TransactionBehavior, params};
use sqlitmus_core::durability::{
    Cut, CutKind, DurabilityPlan, DurabilityRun, Ending, Finding, Found, KeyFinding, Speed,
    StoreFinding,
};
use sqlitmus_core::run::{RunHead, RunState};

use crate::access::{ReadAccess, open_kind_for_append, open_writable};
use crate::contents::{environment_of, state_of, state_word};
use crate::creation::{create_under_another_name, insert_environment};
use crate::error::RunFileError;
use crate::header::Header;
use crate::round_record::json;
use crate::schema::{DURABILITY, PAGE_BYTES};

/// Kinds of run files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A measurement: [`crate::read`].
    Measurement,
    /// A run of the durability experiment: [`read_durability`].
    Durability,
}

/// What kind of run a file holds.
///
/// # Errors
/// It is no run file.
pub fn kind(path: &Path) -> Result<Kind, RunFileError> {
    match Header::read(path, &DURABILITY) {
        Ok(_) => Ok(Kind::Durability),
        Err(RunFileError::MeasurementRun { .. }) => Ok(Kind::Measurement),
        Err(error) => Err(error),
    }
}

/// Reads a whole durability run, finished or not; changes and creates nothing.
///
/// # Errors
/// Not such a file, truncated, damaged, of a newer format, or refused by the system.
pub fn read_durability(path: &Path) -> Result<DurabilityRun, RunFileError> {
    let access = ReadAccess::open_kind(path, &DURABILITY)?;
    read_run(access.connection(), path)
}

/// The file of a durability run that goes on.
#[derive(Debug)]
pub struct DurabilityFile {
    connection: Connection,
    path: PathBuf,
}

impl DurabilityFile {
    /// Makes the file. Nothing may be at the path.
    ///
    /// # Errors
    /// Something is there, or the file cannot be written.
    pub fn create(
        path: &Path,
        head: &RunHead,
        plan: &DurabilityPlan,
        environment: &[(String, String)],
    ) -> Result<Self, RunFileError> {
        create_under_another_name(path, |unfinished| {
            let failed = |source| RunFileError::from_database(unfinished, source);
            let mut connection = open_writable(unfinished)?;
            let set = |name, value| connection.pragma_update(None, name, value);
            set("page_size", PAGE_BYTES).map_err(failed)?;
            let transaction = connection.transaction().map_err(failed)?;
            fill(&transaction, head, plan, environment).map_err(failed)?;
            transaction.commit().map_err(failed)?;
            connection.close().map_err(|(_, source)| failed(source))
        })?;
        Ok(Self {
            connection: open_kind_for_append(path, &DURABILITY)?,
            path: path.to_owned(),
        })
    }

    /// Keeps a cut.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn record_cut(&mut self, cut: &Cut) -> Result<(), RunFileError> {
        self.write(|transaction| insert_cut(transaction, cut))
    }

    /// Keeps a speed.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn record_speed(&mut self, speed: &Speed) -> Result<(), RunFileError> {
        self.write(|transaction| {
            let sql = "INSERT INTO speed VALUES (NULL, ?, ?, ?, ?)";
            let values = params![
                speed.filesystem,
                speed.configuration,
                speed.commits.cast_signed(),
                speed.elapsed_ns.cast_signed()
            ];
            transaction.execute(sql, values).map(drop)
        })
    }

    /// Keeps what a live engine said is in force.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn record_read_back(
        &mut self,
        configuration: &str,
        read_back: &BTreeMap<String, String>,
    ) -> Result<(), RunFileError> {
        self.write(|transaction| {
            let sql = "UPDATE configuration SET read_back = ? WHERE name = ?";
            let values = params![json(read_back)?, configuration];
            transaction.execute(sql, values).map(drop)
        })
    }

    /// Keeps the mount options in force on a filesystem.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn record_mount_options(
        &mut self,
        filesystem: &str,
        options: &str,
    ) -> Result<(), RunFileError> {
        self.write(|transaction| {
            let sql = "INSERT OR REPLACE INTO filesystem VALUES (?, ?)";
            transaction.execute(sql, [filesystem, options]).map(drop)
        })
    }

    /// Keeps how far the run came and when it ended (RFC 3339, UTC).
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn finish(&mut self, state: RunState, finished_utc: &str) -> Result<(), RunFileError> {
        self.write(|transaction| {
            let sql = "UPDATE run SET state = ?, finished_utc = ?";
            transaction
                .execute(sql, [state_word(state), finished_utc])
                .map(drop)
        })
    }

    /// Everything kept so far.
    ///
    /// # Errors
    /// As [`read_durability`].
    pub fn run(&self) -> Result<DurabilityRun, RunFileError> {
        read_run(&self.connection, &self.path)
    }

    fn write(
        &mut self,
        change: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<()>,
    ) -> Result<(), RunFileError> {
        let changed = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .and_then(|transaction| change(&transaction).and_then(|()| transaction.commit()));
        changed.map_err(|source| RunFileError::from_database(&self.path, source))
    }
}

fn fill(
    transaction: &Transaction<'_>,
    head: &RunHead,
    plan: &DurabilityPlan,
    environment: &[(String, String)],
) -> rusqlite::Result<()> {
    transaction.pragma_update(None, "application_id", DURABILITY.application_id)?;
    transaction.pragma_update(None, "user_version", DURABILITY.format_version)?;
    transaction.execute_batch(include_str!("durability_file.sql"))?;
    transaction.execute(
        "INSERT INTO run VALUES (1, ?, ?, ?, ?, ?, ?, ?, ?)",
        params![
            head.id,
            head.sqlitmus_version,
            head.started_utc,
            head.finished_utc,
            state_word(head.state),
            head.command_line,
            head.place,
            json(plan)?,
        ],
    )?;
    insert_environment(transaction, environment)?;
    let sql = "INSERT INTO configuration VALUES (?, ?, ?, NULL, ?, ?, ?, ?)";
    for configuration in &plan.configurations {
        transaction.execute(
            sql,
            params![
                configuration.name,
                configuration.engine,
                json(&configuration.settings)?,
                configuration.claimed.to_string(),
                configuration.intact_after.to_string(),
                configuration.transactional,
                configuration.is_control,
            ],
        )?;
    }
    Ok(())
}

const INSERT_CUT: &str = "INSERT INTO cut VALUES \
    (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";

fn insert_cut(transaction: &Transaction<'_>, cut: &Cut) -> rusqlite::Result<()> {
    let (finding, store, failure) = match &cut.ending {
        Ending::Found { finding, store } => (Some(finding), Some(store), None),
        Ending::Failed(reason) => (None, None, Some(reason)),
    };
    let count = |get: fn(&Finding) -> u64| finding.map(|finding| get(finding).cast_signed());
    let text =
        |get: fn(&StoreFinding) -> &Option<String>| store.and_then(|store| get(store).as_ref());
    transaction.execute(
        INSERT_CUT,
        params![
            cut.filesystem,
            cut.configuration,
            cut.kind.word(),
            cut.number,
            cut.held_ns.cast_signed(),
            cut.pause_ns.cast_signed(),
            failure,
            count(|finding| finding.acknowledged_commits),
            count(|finding| finding.lost_commits),
            finding
                .and_then(|finding| finding.first_lost_commit)
                .map(u64::cast_signed),
            cut.lost_age_ns.map(u64::cast_signed),
            count(|finding| finding.stale_blobs),
            count(|finding| finding.torn_blobs),
            count(|finding| finding.empty_blobs),
            count(|finding| finding.missing_blobs),
            count(|finding| finding.unreadable_blobs),
            count(|finding| finding.destroyed_in_flight_blobs),
            count(|finding| finding.half_applied_commits),
            store.map(|store| store.stray_files.cast_signed()),
            text(|store| &store.open_error),
            text(|store| &store.read_error),
            text(|store| &store.integrity_error),
            cut.mount_ns.map(u64::cast_signed),
            store.map(|store| store.recover_ns.cast_signed()),
            store.map(|store| found_words(&store.keys)),
        ],
    )?;
    Ok(())
}

/// Letters for what is not a whole blob.
const LETTERS: [(Found, &str); 6] = [
    (Found::Empty, "e"),
    (Found::Zeros, "z"),
    (Found::Mixed, "m"),
    (Found::Broken, "b"),
    (Found::Missing, "-"),
    (Found::Unreadable, "!"),
];

fn found_words(keys: &[KeyFinding]) -> String {
    let word = |finding: &KeyFinding| match finding.found {
        Found::Whole(batch) => batch.to_string(),
        found => {
            let letter = LETTERS.iter().find(|(known, _)| *known == found);
            letter.map_or("!", |(_, letter)| letter).to_owned()
        }
    };
    keys.iter().map(word).collect::<Vec<_>>().join(" ")
}

fn found_of(words: &str) -> Option<Vec<KeyFinding>> {
    let found = |word: &str| match LETTERS.iter().find(|(_, letter)| *letter == word) {
        Some((found, _)) => Some(*found),
        None => word.parse().ok().map(Found::Whole),
    };
    (1..)
        .zip(words.split_whitespace())
        .map(|(key, word)| {
            Some(KeyFinding {
                key,
                found: found(word)?,
            })
        })
        .collect()
}

/// The head of a durability run.
pub(crate) fn head(path: &Path) -> Result<RunHead, RunFileError> {
    let access = ReadAccess::open_kind(path, &DURABILITY)?;
    let read = head_and_plan(access.connection());
    read.map(|(head, _)| head)
        .map_err(|source| RunFileError::from_database(path, source))
}

/// The head, and the plan as it is written.
fn head_and_plan(connection: &Connection) -> rusqlite::Result<(RunHead, String)> {
    let sql = "SELECT run_id, sqlitmus_version, started_utc, finished_utc, state, command_line, \
               place, plan FROM run";
    connection.query_row(sql, [], |row| {
        let state: String = row.get(4)?;
        let head = RunHead {
            id: row.get(0)?,
            sqlitmus_version: row.get(1)?,
            started_utc: row.get(2)?,
            finished_utc: row.get(3)?,
            state: state_of(&state).unwrap_or(RunState::Started),
            command_line: row.get(5)?,
            place: row.get(6)?,
        };
        Ok((head, row.get(7)?))
    })
}

fn read_run(connection: &Connection, path: &Path) -> Result<DurabilityRun, RunFileError> {
    let failed = |source| RunFileError::from_database(path, source);
    let transaction = connection.unchecked_transaction().map_err(failed)?;
    let (head, plan) = head_and_plan(&transaction).map_err(failed)?;
    let plan = serde_json::from_str(&plan).map_err(|source| RunFileError::UnknownPlan {
        path: path.to_owned(),
        sqlitmus_version: head.sqlitmus_version.clone(),
        source,
    })?;
    let rows = || {
        Ok(DurabilityRun {
            head,
            plan,
            environment: environment_of(&transaction)?,
            mount_options: mount_options(&transaction)?,
            read_back: read_back(&transaction)?,
            cuts: cuts(&transaction)?,
            speeds: speeds(&transaction)?,
        })
    };
    rows().map_err(failed)
}

fn mount_options(connection: &Connection) -> rusqlite::Result<BTreeMap<String, String>> {
    let mut statement = connection.prepare("SELECT name, mount_options FROM filesystem")?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    rows.collect()
}

fn read_back(
    connection: &Connection,
) -> rusqlite::Result<BTreeMap<String, BTreeMap<String, String>>> {
    let sql = "SELECT name, read_back FROM configuration WHERE read_back IS NOT NULL";
    let mut statement = connection.prepare(sql)?;
    let rows = statement.query_map([], |row| {
        let text: String = row.get(1)?;
        let read_back = serde_json::from_str(&text).map_err(|error| damaged(1, error))?;
        Ok((row.get(0)?, read_back))
    })?;
    rows.collect()
}

fn damaged(
    column: usize,
    error: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> rusqlite::Error {
    let text = rusqlite::types::Type::Text;
    rusqlite::Error::FromSqlConversionFailure(column, text, error.into())
}

fn speeds(connection: &Connection) -> rusqlite::Result<Vec<Speed>> {
    let sql = "SELECT filesystem, configuration, commits, elapsed_ns FROM speed ORDER BY speed_id";
    let mut statement = connection.prepare(sql)?;
    let rows = statement.query_map([], |row| {
        Ok(Speed {
            filesystem: row.get(0)?,
            configuration: row.get(1)?,
            commits: unsigned(row, 2)?,
            elapsed_ns: unsigned(row, 3)?,
        })
    })?;
    rows.collect()
}

fn cuts(connection: &Connection) -> rusqlite::Result<Vec<Cut>> {
    let mut statement = connection.prepare("SELECT * FROM cut ORDER BY cut_id")?;
    let rows = statement.query_map([], |row| {
        let word: String = row.get("kind")?;
        let kind = CutKind::ALL.into_iter().find(|kind| kind.word() == word);
        let kind = kind.ok_or_else(|| damaged(3, format!("there is no cut `{word}`")))?;
        Ok(Cut {
            filesystem: row.get("filesystem")?,
            configuration: row.get("configuration")?,
            kind,
            number: row.get("number")?,
            held_ns: named(row, "held_ns")?,
            pause_ns: named(row, "pause_ns")?,
            lost_age_ns: row
                .get::<_, Option<i64>>("lost_age_ns")?
                .map(i64::cast_unsigned),
            mount_ns: row
                .get::<_, Option<i64>>("mount_ns")?
                .map(i64::cast_unsigned),
            ending: match row.get("failure")? {
                Some(reason) => Ending::Failed(reason),
                None => ending(row)?,
            },
        })
    })?;
    rows.collect()
}

fn ending(row: &Row<'_>) -> rusqlite::Result<Ending> {
    let first = row.get::<_, Option<i64>>("first_lost_commit")?;
    let words: String = row.get("found")?;
    let keys = found_of(&words);
    Ok(Ending::Found {
        finding: Finding {
            acknowledged_commits: named(row, "acknowledged_commits")?,
            lost_commits: named(row, "lost_commits")?,
            first_lost_commit: first.map(i64::cast_unsigned),
            stale_blobs: named(row, "stale_blobs")?,
            torn_blobs: named(row, "torn_blobs")?,
            empty_blobs: named(row, "empty_blobs")?,
            missing_blobs: named(row, "missing_blobs")?,
            unreadable_blobs: named(row, "unreadable_blobs")?,
            destroyed_in_flight_blobs: named(row, "destroyed_in_flight_blobs")?,
            half_applied_commits: named(row, "half_applied_commits")?,
        },
        store: StoreFinding {
            open_error: row.get("open_error")?,
            read_error: row.get("read_error")?,
            keys: keys.ok_or_else(|| damaged(25, format!("keys cannot be `{words}`")))?,
            integrity_error: row.get("integrity_error")?,
            stray_files: named(row, "stray_files")?,
            recover_ns: named(row, "recover_ns")?,
        },
    })
}

/// A number that is never negative.
fn unsigned(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    row.get(column).map(i64::cast_unsigned)
}

/// Likewise, by the column's name.
fn named(row: &Row<'_>, column: &str) -> rusqlite::Result<u64> {
    row.get(column).map(i64::cast_unsigned)
}
