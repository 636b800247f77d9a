//! The lines of `run` that begin with `note:`: where a figure is not what kvtest would have
//! printed, because a defect of kvtest's is put right, and where an option has no effect.

use sqlitmus_core::units::format_count;

use super::run_options::{DEFAULT_CACHE_PAGES, KVTEST_HIGHEST_IN_DIRECTORY, RunOptions};
use super::walk_database::DatabaseWalk;

/// What kvtest would have done otherwise, or what an option did not do, on a database.
pub(super) fn on_database(options: &RunOptions, walked: &DatabaseWalk) -> Vec<String> {
    let in_force = &walked.in_force;
    let mut notes = Vec::new();
    if let Some(closing) = walked.closing.filter(|_| !options.as_kvtest) {
        notes.push(format!(
            "closing the database, with the checkpoint if one was due, took {:.6} s more, \
             which the lines below leave out",
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
            "--multitrans does nothing with --blob-api: the one handle keeps its transaction \
             open, as in kvtest"
                .to_owned(),
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
            "the cache has 4,096,000 bytes with every page size; kvtest takes \
             {DEFAULT_CACHE_PAGES} pages, here {} bytes",
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
        notes.push(format!(
            "SQLite maps {} bytes at the most",
            in_force.mmap_bytes
        ));
    }
    if options.update {
        notes.push(READY_BYTES.to_owned());
    }
    if options.blob_api && walked.tally.misses > 0 {
        notes.push(
            "after a miss a new blob handle was opened; kvtest goes on with the useless one and \
             counts reads that did not happen"
                .to_owned(),
        );
    }
    notes
}

/// The same on a directory.
pub(super) fn on_directory(options: &RunOptions, highest: i64) -> Vec<String> {
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
        notes.push(format!(
            "without effect here, as in kvtest: {}",
            useless.join(" ")
        ));
    }
    if options.as_kvtest {
        notes.push(KEPT_DEFECTS.to_owned());
        return notes;
    }
    if options.highest.is_none() && highest != KVTEST_HIGHEST_IN_DIRECTORY {
        notes.push(format!(
            "all keys up to {highest} take part; kvtest takes those up to \
             {KVTEST_HIGHEST_IN_DIRECTORY} of any directory"
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
            "each file is flushed whole; kvtest calls fsync while the end of the file is still in \
             its buffer"
                .to_owned(),
        );
    }
    notes
}

const READY_BYTES: &str =
    "the random bytes were ready before the clock started; kvtest makes them while it runs";

const KEPT_DEFECTS: &str =
    "--as-kvtest: kvtest's defects are kept; `sqlitmus kvtest run --help` names them";
