//! `kvtest run`: reads or overwrites blobs of a database or a directory, and prints kvtest's
//! closing lines. Where a defect of kvtest's is put right and that changes a figure, a line says
//! so; `--as-kvtest` keeps the defects.

use std::ffi::OsString;
use std::io::{self, Write};
use std::time::Duration;

use sqlitmus_core::units::format_count;

use super::database::{self, Database};
use super::failures;
use super::run_options::{
    DEFAULT_CACHE_PAGES, GRAMMAR, KVTEST_HIGHEST_IN_DIRECTORY, RunOptions,
};
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
    for note in database_notes(options, &walked) {
        writeln!(output, "note: {note}")?;
    }
    print_closing_lines(output, options, walked.tally, walked.elapsed)?;
    match options.integrity_check.then(|| database.damage(&findings)).flatten() {
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
    for note in directory_notes(options, directory.highest) {
        writeln!(output, "note: {note}")?;
    }
    print_closing_lines(output, options, walked.tally, walked.elapsed)?;
    Ok(())
}

fn print_misses(output: &mut dyn Write, tally: Tally) -> io::Result<()> {
    if tally.misses > 0 {
        writeln!(output, "{} cycles due to {} misses", tally.cycles, tally.misses)?;
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
    writeln!(output, "--count {} --max-id {highest} --{order}", tally.blobs())
}

fn print_settings(
    output: &mut dyn Write,
    options: &RunOptions,
    walked: &DatabaseWalk,
) -> io::Result<()> {
    let in_force = &walked.in_force;
    print_keys(output, options, walked.tally, in_force.highest)?;
    writeln!(output, "--cache-size {} --jmode {}", in_force.cache_size, in_force.journal_mode)?;
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
    let (verb, rate) = if options.update { ("write", "write") } else { ("read", "read") };
    // kvtest's clock has milliseconds.
    let elapsed = if options.as_kvtest {
        Duration::from_millis(u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX))
    } else {
        elapsed
    };
    let seconds = elapsed.as_secs_f64();
    if options.as_kvtest {
        writeln!(output, "Total elapsed time: {seconds:.3}")?;
    } else {
        writeln!(output, "Total elapsed time: {seconds:.6}")?;
    }
    let microseconds = seconds * 1e6 / tally.cycles as f64;
    writeln!(output, "Microseconds per BLOB {verb}: {microseconds:.3}")?;
    let megabytes = tally.bytes as f64 / 1e6 / seconds;
    writeln!(output, "Content {rate} rate: {megabytes:.1} MB/s")
}

/// What kvtest would have done otherwise, or what an option did not do, on a database.
fn database_notes(options: &RunOptions, walked: &DatabaseWalk) -> Vec<String> {
    let in_force = &walked.in_force;
    let mut notes = Vec::new();
    if let Some(closing) = walked.closing {
        notes.push(format!(
            "closing the database, with the checkpoint if one was due, took {:.6} s more, which the lines below leave out",
            closing.as_secs_f64()
        ));
    }
    if options.no_checkpoint && options.journal_mode.is_none() && in_force.journal_mode == "wal" {
        notes.push(
            "--nocheckpoint without --jmode wal leaves SQLite's own checkpoints on, as in kvtest"
                .to_owned(),
        );
    }
    if options.blob_api && options.multiple_transactions {
        notes.push(
            "--multitrans does nothing with --blob-api: the one handle keeps its transaction open, as in kvtest".to_owned(),
        );
    }
    if options.fsync {
        notes.push("--fsync does nothing to a database, as in kvtest".to_owned());
    }
    if options.as_kvtest {
        notes.push(KEPT_DEFECTS.to_owned());
        return notes;
    }
    if in_force.cache_size < 0 && options.cache_size.is_none() {
        let page_bytes = in_force.page_bytes;
        notes.push(format!(
            "the cache has 4,096,000 bytes with every page size; kvtest takes {DEFAULT_CACHE_PAGES} pages, here {} bytes",
            format_count((DEFAULT_CACHE_PAGES * page_bytes).unsigned_abs())
        ));
    }
    if i32::try_from(options.mmap_bytes).is_err() {
        notes.push(format!(
            "--mmap is taken as it is; kvtest computes in 32 bits and makes {} of it",
            options.mmap_bytes as i32
        ));
    }
    if in_force.mmap_bytes != options.mmap_bytes {
        notes.push(format!("SQLite maps {} bytes at the most", in_force.mmap_bytes));
    }
    if options.update {
        notes.push(READY_BYTES.to_owned());
    }
    if options.blob_api && walked.tally.misses > 0 {
        notes.push(
            "after a miss a new blob handle was opened; kvtest goes on with the useless one and counts reads that did not happen".to_owned(),
        );
    }
    notes
}

/// The same on a directory.
fn directory_notes(options: &RunOptions, highest: i64) -> Vec<String> {
    let mut notes = Vec::new();
    let useless = [
        (options.blob_api, "--blob-api"),
        (options.cache_size.is_some(), "--cache-size"),
        (options.mmap_bytes != 0, "--mmap"),
        (options.journal_mode.is_some(), "--jmode"),
        (options.no_sync, "--nosync"),
        (options.no_checkpoint, "--nocheckpoint"),
        (options.multiple_transactions, "--multitrans"),
        (options.integrity_check, "--integrity-check"),
        (options.fsync && !options.update, "--fsync"),
    ];
    let useless: Vec<&str> = useless
        .into_iter()
        .filter_map(|(is_given, option)| is_given.then_some(option))
        .collect();
    if !useless.is_empty() {
        notes.push(format!("without effect here, as in kvtest: {}", useless.join(" ")));
    }
    if options.as_kvtest {
        notes.push(KEPT_DEFECTS.to_owned());
        return notes;
    }
    if options.highest.is_none() && highest != KVTEST_HIGHEST_IN_DIRECTORY {
        notes.push(format!(
            "all keys up to {highest} take part; kvtest takes those up to {KVTEST_HIGHEST_IN_DIRECTORY} of any directory"
        ));
    }
    if options.update {
        notes.push(READY_BYTES.to_owned());
        notes.push(
            "files are overwritten in place; kvtest empties each file first and fills it again"
                .to_owned(),
        );
    }
    if options.update && options.fsync {
        notes.push(
            "each file is flushed whole; kvtest calls fsync while the end of the file is still in its buffer".to_owned(),
        );
    }
    notes
}

const READY_BYTES: &str =
    "the random bytes were ready before the clock started; kvtest makes them while it runs";

const KEPT_DEFECTS: &str = "--as-kvtest: kvtest's defects are kept; `sqlitmus kvtest run --help` names them";
