//! The making of a run file: under another name, in one transaction, read back once, and only then
//! given its name. Recording into it is [`crate::RunFile`]'s business.

use std::fs::{self, File};
use std::path::Path;

use rusqlite::{Transaction, params};
use sqlitmus_core::plan::Plan;
use sqlitmus_core::run::RunHead;

use crate::access::{ReadAccess, beside, open_writable};
use crate::contents::state_word;
use crate::error::RunFileError;
use crate::round_record::json;
use crate::schema::{APPLICATION_ID, FORMAT_VERSION, PAGE_BYTES, STATEMENTS};

/// Added to the name of a run file until it is whole.
pub(crate) const UNFINISHED_SUFFIX: &str = ".new";

/// Makes the file of a new run; leaves nothing behind if it cannot.
pub(crate) fn create_file(
    path: &Path,
    head: &RunHead,
    plan: &Plan,
    environment: &[(String, String)],
) -> Result<(), RunFileError> {
    create_under_another_name(path, |unfinished| {
        build(unfinished, head, plan, environment)
    })
}

/// Makes a file by filling an empty one that has another name until it is whole.
pub(crate) fn create_under_another_name(
    path: &Path,
    build: impl FnOnce(&Path) -> Result<(), RunFileError>,
) -> Result<(), RunFileError> {
    // Before anything is written; and once more, without a gap, when it is put in place.
    if fs::symlink_metadata(path).is_ok() {
        return Err(RunFileError::AlreadyExists {
            path: path.to_owned(),
        });
    }
    let unfinished = beside(path, UNFINISHED_SUFFIX);
    reserve(&unfinished)?;
    let built = build(&unfinished).and_then(|()| put_in_place(&unfinished, path));
    if built.is_err() {
        // The error that is returned says more than one about removing.
        let _ = fs::remove_file(beside(&unfinished, "-journal"));
        let _ = fs::remove_file(&unfinished);
    }
    built
}

/// Takes a name by creating an empty file.
fn reserve(path: &Path) -> Result<(), RunFileError> {
    match File::create_new(path) {
        Ok(_) => Ok(()),
        // It is the directory that is missing.
        Err(source) if source.kind() == std::io::ErrorKind::NotFound => Err(RunFileError::File {
            path: path.parent().unwrap_or(path).to_owned(),
            source,
        }),
        Err(source) => Err(RunFileError::from_file(path, source)),
    }
}

/// Gives the finished file its name. The name is taken first, so that nothing which another
/// program has put there meanwhile is overwritten.
fn put_in_place(unfinished: &Path, path: &Path) -> Result<(), RunFileError> {
    reserve(path)?;
    fs::rename(unfinished, path).map_err(|source| {
        // Our own empty file.
        let _ = fs::remove_file(path);
        RunFileError::from_file(path, source)
    })
}

/// Fills an empty file, and reads it back: better to fail now than when the run is over.
fn build(
    path: &Path,
    head: &RunHead,
    plan: &Plan,
    environment: &[(String, String)],
) -> Result<(), RunFileError> {
    let failed = |source| RunFileError::from_database(path, source);
    let mut connection = open_writable(path)?;
    connection
        .pragma_update(None, "page_size", PAGE_BYTES)
        .map_err(failed)?;
    let transaction = connection.transaction().map_err(failed)?;
    let fill = || {
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
        transaction.pragma_update(None, "user_version", FORMAT_VERSION)?;
        transaction.execute_batch(STATEMENTS)?;
        insert_head(&transaction, head, plan)?;
        insert_environment(&transaction, environment)?;
        insert_arms(&transaction, plan, 0)
    };
    fill().map_err(failed)?;
    transaction.commit().map_err(failed)?;
    connection.close().map_err(|(_, source)| failed(source))?;
    ReadAccess::open(path)?.contents().run().map(drop)
}

fn insert_head(transaction: &Transaction<'_>, head: &RunHead, plan: &Plan) -> rusqlite::Result<()> {
    let sql = "INSERT INTO run VALUES (1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
    transaction.execute(
        sql,
        params![
            head.id,
            head.sqlitmus_version,
            head.started_utc,
            head.finished_utc,
            state_word(head.state),
            head.command_line,
            head.place,
            plan.suite,
            plan.scale,
            plan.seed.to_string(),
            json(plan)?,
        ],
    )?;
    Ok(())
}

pub(crate) fn insert_environment(
    transaction: &Transaction<'_>,
    environment: &[(String, String)],
) -> rusqlite::Result<()> {
    let mut insert = transaction.prepare("INSERT INTO environment VALUES (?, ?, ?)")?;
    for (position, (name, value)) in (0i64..).zip(environment) {
        insert.execute(params![position, name, value])?;
    }
    Ok(())
}

/// Writes a plan over one that has so many groups, with which it begins.
pub(crate) fn extend_plan(
    transaction: &Transaction<'_>,
    plan: &Plan,
    known_groups: usize,
) -> rusqlite::Result<()> {
    transaction.execute("UPDATE run SET plan = ?", [json(plan)?])?;
    insert_arms(transaction, plan, known_groups)
}

/// Writes the groups and arms of the plan as rows, for queries; reading a run takes the plan. The first
/// `known_groups` are there already.
fn insert_arms(
    transaction: &Transaction<'_>,
    plan: &Plan,
    known_groups: usize,
) -> rusqlite::Result<()> {
    let mut insert_group =
        transaction.prepare("INSERT INTO arm_group VALUES (?, ?, ?, ?, ?, ?)")?;
    let mut insert_arm =
        transaction.prepare("INSERT INTO arm VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")?;
    let known_arms: usize = plan
        .groups
        .iter()
        .take(known_groups)
        .map(|group| group.arms.len())
        .sum();
    let mut arm_ids = known_arms as i64..;
    for (group_id, group) in (0i64..).zip(&plan.groups).skip(known_groups) {
        insert_group.execute(params![
            group_id,
            group.name,
            group.baseline,
            group.rounds,
            group.slices,
            // At most a minute.
            i64::try_from(group.slice_ns).unwrap_or(i64::MAX),
        ])?;
        for (arm, arm_id) in group.arms.iter().zip(&mut arm_ids) {
            let case = &arm.case;
            insert_arm.execute(params![
                arm_id,
                group_id,
                arm.name,
                arm.label,
                case.id(),
                json(&case.workload)?,
                json(&case.dataset)?,
                case.engine,
                json(&case.settings)?,
                case.durability.to_string(),
                case.cache.to_string(),
            ])?;
        }
    }
    Ok(())
}
