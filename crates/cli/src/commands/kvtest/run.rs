//! `kvtest run`: reads or overwrites blobs of a database or a directory, and prints kvtest's
//! closing lines. Where a defect of kvtest's is put right and that changes a figure, a line says
//! so; `--as-kvtest` keeps the defects.

use std::ffi::OsString;
use std::io::{self, Write};
use std::time::Duration;

use super::database::{self, Database};
use super::failures;
use super::notes;
use super::run_options::{GRAMMAR, RunOptions};
use super::statistics::print_resources;
use super::walk::Tally;
use super::walk_database::{self, DatabaseWalk};
use super::walk_directory::BlobDirectory;
use crate::machine::resources::ResourceSnapshot;

/// Runs the test and prints what came out.
///
/// # Errors
/// There is nothing to read or overwrite, or an operation failed.
pub(super) fn run(words: &[OsString], output: &mut dyn Write) -> anyhow::Result<()> {
    let options = RunOptions::from(&GRAMMAR.read(words)?)?;
    if options.path.is_dir() {
        run_on_directory(&options, output)
    } else {
        run_on_database(&options, output)
    }
}

fn run_on_database(options: &RunOptions, output: &mut dyn Write) -> anyhow::Result<()> {
    let database = if options.changes_database() {
        Database::for_writing(&options.path)?
    } else {
        Database::for_reading(&options.path)?
    };
    walk_database::survey(&database, options)?;
    let before = ResourceSnapshot::now();
    let walked = walk_database::timed_walk(&database, options)?;
    let used = ResourceSnapshot::now().since(&before);
    if let Some(counters) = &walked.counters {
        writeln!(output)?;
        counters.print(output)?;
        print_resources(output, &used)?;
    }
    print_misses(output, walked.tally)?;
    writeln!(output, "SQLite version: {}", database::library()?.version())?;
    let findings = if options.integrity_check {
        let failed = |error| failures::sqlite(&options.path, &error);
        let mut connection = database.open()?;
        let findings = database.check_integrity(&mut connection, 100)?;
        connection.close().map_err(failed)?;
        findings
    } else {
        Vec::new()
    };
    for finding in &findings {
        writeln!(output, "integrity-check: {finding}")?;
    }
    print_settings(output, options, &walked)?;
    for note in notes::on_database(options, &walked) {
        writeln!(output, "note: {note}")?;
    }
    print_closing_lines(output, options, walked.tally, walked.elapsed)?;
    match options
        .integrity_check
        .then(|| database.damage(&findings))
        .flatten()
    {
        Some(damage) => Err(damage.into()),
        None => Ok(()),
    }
}

fn run_on_directory(options: &RunOptions, output: &mut dyn Write) -> anyhow::Result<()> {
    let directory = BlobDirectory::survey(options)?;
    let before = ResourceSnapshot::now();
    let walked = directory.walk(options)?;
    let used = ResourceSnapshot::now().since(&before);
    if options.statistics {
        writeln!(output)?;
        print_resources(output, &used)?;
    }
    print_misses(output, walked.tally)?;
    print_keys(output, options, walked.tally, directory.highest)?;
    for note in notes::on_directory(options, directory.highest) {
        writeln!(output, "note: {note}")?;
    }
    print_closing_lines(output, options, walked.tally, walked.elapsed)?;
    Ok(())
}

fn print_misses(output: &mut dyn Write, tally: Tally) -> io::Result<()> {
    if tally.misses > 0 {
        writeln!(
            output,
            "{} cycles due to {} misses",
            tally.cycles, tally.misses
        )?;
    }
    Ok(())
}

fn print_keys(
    output: &mut dyn Write,
    options: &RunOptions,
    tally: Tally,
    highest: i64,
) -> io::Result<()> {
    let order = options.order.word();
    writeln!(
        output,
        "--count {} --max-id {highest} --{order}",
        tally.blobs()
    )
}

fn print_settings(
    output: &mut dyn Write,
    options: &RunOptions,
    walked: &DatabaseWalk,
) -> io::Result<()> {
    let in_force = &walked.in_force;
    print_keys(output, options, walked.tally, in_force.highest)?;
    writeln!(
        output,
        "--cache-size {} --jmode {}",
        in_force.cache_size, in_force.journal_mode
    )?;
    let blob_api = if options.blob_api { " --blob-api" } else { "" };
    writeln!(output, "--mmap {}{blob_api}", options.mmap_bytes)?;
    if options.no_sync {
        writeln!(output, "--nosync")?;
    }
    writeln!(output, "Database page size: {}", in_force.page_bytes)
}

/// The three lines at the end that programs read.
fn print_closing_lines(
    output: &mut dyn Write,
    options: &RunOptions,
    tally: Tally,
    elapsed: Duration,
) -> io::Result<()> {
    let verb = if options.update { "write" } else { "read" };
    // kvtest's clock has milliseconds.
    let (seconds, decimals) = if options.as_kvtest {
        (elapsed.as_millis() as f64 / 1e3, 3)
    } else {
        (elapsed.as_secs_f64(), 6)
    };
    writeln!(output, "Total elapsed time: {seconds:.decimals$}")?;
    let microseconds = seconds * 1e6 / tally.cycles as f64;
    writeln!(output, "Microseconds per BLOB {verb}: {microseconds:.3}")?;
    let megabytes = tally.bytes as f64 / 1e6 / seconds;
    writeln!(output, "Content {verb} rate: {megabytes:.1} MB/s")
}
