//! `sqlitmus pack`: directories into an archive.

use std::fmt::Write;
use std::path::Path;

use sqlitmus_archive::{PackReport, PackSettings, pack};
use sqlitmus_core::units::{format_bytes, format_duration};

use super::progress::{say, watched};
use super::{failed, selection};
use crate::arguments::archive::PackArguments;
use crate::failure::{ExitCode, Failure};

/// Skipped entries that are named.
const MOST_NAMED: usize = 20;

/// Packs.
///
/// # Errors
/// As [`sqlitmus_archive::pack`].
pub fn run(arguments: &PackArguments) -> anyhow::Result<ExitCode> {
    let Some((archive, directories)) = arguments.paths.split_last() else {
        return Err(Failure::bad_input("no archive is named", "sqlitmus pack DIR ARCHIVE").into());
    };
    if archive.is_dir() {
        let message = format!("{} is a directory, not an archive", archive.display());
        return Err(Failure::bad_input(
            message,
            "the archive comes last: sqlitmus pack DIR ARCHIVE",
        )
        .into());
    }
    let mut settings = PackSettings {
        compression: arguments.compress,
        page_bytes: arguments.page_size,
        selection: selection(&arguments.selection)?,
        replace: arguments.force,
        verify: arguments.verify,
        skip_too_large: arguments.skip_too_large,
        skip_unreadable: arguments.skip_unreadable,
        ..PackSettings::default()
    };
    if let Some(threads) = arguments.threads {
        settings.threads = usize::from(threads);
    }
    let directories: Vec<&Path> = directories.iter().map(AsRef::as_ref).collect();
    let report = watched("packing", arguments.quiet, |watch| {
        pack(&directories, archive, &settings, watch).map_err(failed)
    })?;
    say(arguments.quiet, &describe(&report, archive));
    // What was left out is said even when nothing else is.
    for skipped in report.skipped.iter().take(MOST_NAMED) {
        say(false, &format!("left out: {}", skipped.reason));
    }
    if report.skipped.len() > MOST_NAMED {
        say(
            false,
            &format!("left out: {} more", report.skipped.len() - MOST_NAMED),
        );
    }
    Ok(if report.skipped.is_empty() {
        ExitCode::Done
    } else {
        ExitCode::ArmsFailed
    })
}

fn describe(report: &PackReport, archive: &Path) -> String {
    let nanoseconds = |time: std::time::Duration| time.as_nanos() as u64;
    let mut text = format!(
        "{}: {} files, {} directories, {} links, {} in {}; packed in {}, synced in {}",
        archive.display(),
        report.files,
        report.directories,
        report.links,
        format_bytes(report.content_bytes),
        format_bytes(report.archive_bytes),
        format_duration(nanoseconds(report.packing)),
        format_duration(nanoseconds(report.sync)),
    );
    // Writing to a string cannot fail.
    if report.compressed > 0 {
        let _ = write!(text, "; {} files compressed", report.compressed);
    }
    if !report.verifying.is_zero() {
        let _ = write!(
            text,
            "; read back in {}",
            format_duration(nanoseconds(report.verifying))
        );
    }
    text
}
