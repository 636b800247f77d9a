//! `kvtest stat`: how many blobs a database holds, how large they are, and whether the file is
//! sound.

use std::ffi::OsString;
use std::io::Write;

use sqlitmus_engines::sqlite::{Connection, SqliteError};

use super::database::Database;
use super::failures;
use super::words::Grammar;

const GRAMMAR: Grammar = Grammar {
    verb: "stat",
    paths: &["DBFILE"],
    flags: &["vacuum"],
    values: &[],
};

/// Findings of the integrity check that are printed, at the most; kvtest's number.
const MOST_FINDINGS: u32 = 10;

/// Prints the summary.
///
/// # Errors
/// There is no such database, it is damaged, or it cannot be vacuumed.
pub(super) fn run(words: &[OsString], output: &mut dyn Write) -> anyhow::Result<()> {
    let words = GRAMMAR.read(words)?;
    let path = words.path(0);
    let database = if words.has("vacuum") {
        Database::for_writing(&path)?
    } else {
        Database::for_reading(&path)?
    };
    let mut connection = database.open_checked()?;
    let failed = |error: SqliteError| failures::sqlite(&path, &error);
    if words.has("vacuum") {
        write!(output, "Vacuuming....")?;
        output.flush()?;
        let vacuumed = connection.execute("VACUUM");
        writeln!(
            output,
            "{}",
            if vacuumed.is_ok() { "       done" } else { "" }
        )?;
        vacuumed.map_err(failed)?;
    }
    summarise(&mut connection, output, failed)?;
    let findings = database.check_integrity(&mut connection, MOST_FINDINGS)?;
    for finding in &findings {
        writeln!(output, "Integrity-check:    {finding}")?;
    }
    connection.close().map_err(failed)?;
    match database.damage(&findings) {
        Some(damage) => Err(damage.into()),
        None => Ok(()),
    }
}

fn summarise(
    connection: &mut Connection,
    output: &mut dyn Write,
    failed: impl Fn(SqliteError) -> crate::failure::Failure,
) -> anyhow::Result<()> {
    let query = connection
        .prepare("SELECT count(*), avg(length(v)), min(length(v)), max(length(v)) FROM kv")
        .map_err(&failed)?;
    let mut statement = connection.statement(query);
    if let Some(row) = statement.step().map_err(&failed)? {
        // Whole bytes, cut off: that is how kvtest prints the average, too.
        let average = row.f64(1) as i64;
        writeln!(output, "Number of entries:  {:8}", row.i64(0))?;
        writeln!(output, "Average value size: {average:8}")?;
        writeln!(output, "Minimum value size: {:8}", row.i64(2))?;
        writeln!(output, "Maximum value size: {:8}", row.i64(3))?;
    }
    drop(statement);
    for (label, pragma) in [
        ("Page-size:          ", "page_size"),
        ("Page-count:         ", "page_count"),
        ("Freelist-count:     ", "freelist_count"),
    ] {
        let value = connection.pragma_i64(pragma).map_err(&failed)?;
        writeln!(output, "{label}{:8}", value.unwrap_or(0))?;
    }
    Ok(())
}
