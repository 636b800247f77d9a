//! The run file while a run is measured: created, appended to round by round, finished. Every
//! method is one transaction, so a process killed at any moment leaves what was recorded before.
//!
//! When a round ends, what it holds and what the file is called is decided by the caller.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};
use sqlitmus_core::plan::Plan;
use sqlitmus_core::run::{Footprint, Run, RunHead, RunState, Trial};

use crate::access::open_for_append;
use crate::contents::{Contents, RecordedRound, state_word};
use crate::creation::{create_file, extend_plan};
use crate::error::RunFileError;
use crate::round_record::{Failed, insert_round, signed};

/// A run file that is open for appending. One at a time for each file.
#[derive(Debug)]
pub struct RunFile {
    connection: Connection,
    path: PathBuf,
}

impl RunFile {
    /// Creates the file of a new run and opens it. It appears at `path` with all its tables or
    /// not at all.
    ///
    /// # Errors
    /// The path exists, its directory is missing or refuses, the disk is full, or the plan cannot
    /// be read back as it was written. Nothing is left behind.
    pub fn create(
        path: &Path,
        head: &RunHead,
        plan: &Plan,
        environment: &[(String, String)],
    ) -> Result<Self, RunFileError> {
        create_file(path, head, plan, environment)?;
        Self::open_for_append(path)
    }

    /// Opens an existing run file to go on with its run. Rolls back what a killed process left
    /// half written.
    ///
    /// # Errors
    /// Not a run file, damaged, of a newer format, or held by another program.
    pub fn open_for_append(path: &Path) -> Result<Self, RunFileError> {
        Ok(Self {
            connection: open_for_append(path)?,
            path: path.to_owned(),
        })
    }

    /// Its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Replaces the plan by one that begins with the same groups and goes on: for runs whose later groups
    /// depend on what the earlier ones have shown.
    ///
    /// # Errors
    /// The groups that are there would change, or the file cannot be written.
    pub fn extend_plan(&mut self, plan: &Plan) -> Result<(), RunFileError> {
        let known = self.run()?.plan.groups;
        if plan.groups.get(..known.len()) != Some(known.as_slice()) {
            let path = self.path.clone();
            return Err(RunFileError::PlanChanges { path });
        }
        self.write(|transaction, failed| {
            extend_plan(transaction, plan, known.len()).map_err(failed)
        })
    }

    /// Records the space that an arm's store takes; replaces what was recorded before.
    ///
    /// # Errors
    /// The plan has no such arm, or the file cannot be written.
    pub fn record_footprint(
        &mut self,
        arm: &str,
        footprint: &Footprint,
    ) -> Result<(), RunFileError> {
        self.write(|transaction, failed| {
            let arm_id: Option<i64> = transaction
                .query_row("SELECT arm_id FROM arm WHERE name = ?", [arm], |row| {
                    row.get(0)
                })
                .optional()
                .map_err(failed)?;
            let arm_id = arm_id.ok_or_else(|| RunFileError::UnknownArm {
                arm: arm.to_owned(),
            })?;
            let sql = "INSERT OR REPLACE INTO footprint VALUES (?, ?, ?, ?, ?, ?)";
            let values = params![
                arm_id,
                signed("content_bytes", footprint.content_bytes)?,
                signed("apparent_bytes", footprint.apparent_bytes)?,
                signed("allocated_bytes", footprint.allocated_bytes)?,
                signed("files", footprint.files)?,
                signed("directories", footprint.directories)?,
            ];
            transaction.execute(sql, values).map_err(failed)?;
            Ok(())
        })
    }

    /// Adds a fact to the environment, after those that are there.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn record_fact(&mut self, name: &str, value: &str) -> Result<(), RunFileError> {
        self.write(|transaction, failed| {
            let sql = "INSERT INTO environment \
                       SELECT coalesce(max(position) + 1, 0), ?, ? FROM environment";
            transaction
                .execute(sql, params![name, value])
                .map_err(failed)?;
            Ok(())
        })
    }

    /// Records a round of a group with all its trials, in the order they ended; all or nothing.
    /// `complete` is false if the round was interrupted: its trials count until the same round is
    /// recorded again, and are kept after that.
    ///
    /// # Errors
    /// The round is complete already; a trial of another group's arm or of another round, or
    /// whose turns do not ascend; or the file cannot be written.
    pub fn record_round(
        &mut self,
        group: &str,
        round: u32,
        trials: &[Trial],
        complete: bool,
    ) -> Result<(), RunFileError> {
        self.write(|transaction, failed| {
            insert_round(transaction, group, round, trials, complete, failed)
        })
    }

    /// Records how far the run came and when it ended (RFC 3339, UTC; `None` if it goes on).
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn finish(
        &mut self,
        state: RunState,
        finished_utc: Option<&str>,
    ) -> Result<(), RunFileError> {
        self.write(|transaction, failed| {
            let sql = "UPDATE run SET state = ?, finished_utc = ?";
            transaction
                .execute(sql, params![state_word(state), finished_utc])
                .map_err(failed)?;
            Ok(())
        })
    }

    /// Everything recorded so far.
    ///
    /// # Errors
    /// As [`crate::read`].
    pub fn run(&self) -> Result<Run, RunFileError> {
        self.contents().run()
    }

    /// All rounds in the order of recording: what a resumed run need not repeat.
    ///
    /// # Errors
    /// As [`crate::read`].
    pub fn rounds(&self) -> Result<Vec<RecordedRound>, RunFileError> {
        self.contents().rounds()
    }

    fn contents(&self) -> Contents<'_> {
        Contents {
            connection: &self.connection,
            path: &self.path,
        }
    }

    /// Runs one transaction; `change` is given what turns SQLite's errors into ours.
    fn write(
        &mut self,
        change: impl FnOnce(&Transaction<'_>, Failed<'_>) -> Result<(), RunFileError>,
    ) -> Result<(), RunFileError> {
        let path = self.path.clone();
        let failed = |source| RunFileError::from_database(&path, source);
        // Immediate: to wait for the lock at the start, where waiting is all it takes.
        let transaction = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(failed)?;
        change(&transaction, &failed)?;
        transaction.commit().map_err(failed)
    }
}
