//! `sqlitmus verify`: whether an archive is sound, and the same as a directory.

use std::fmt::Write;

use sqlitmus_archive::{Archive, ArchiveError, VerifySettings, verify};
use sqlitmus_core::units::format_bytes;

use super::progress::watched;
use super::{failed, selection};
use crate::arguments::archive::VerifyArguments;
use crate::commands::print;
use crate::failure::ExitCode;

/// Faults that are named.
const MOST_NAMED: usize = 100;

/// Verifies.
///
/// # Errors
/// There is nothing to verify, or it cannot be read. What is wrong with it is no error: it is printed.
pub fn run(arguments: &VerifyArguments) -> anyhow::Result<ExitCode> {
    let archive = match Archive::open(&arguments.archive) {
        Ok(archive) => archive,
        // An archive that was cut short or damaged is an answer, and not a wrong question.
        Err(error @ (ArchiveError::Truncated { .. } | ArchiveError::Damaged { .. })) => {
            print(&format!("{error}\n"))?;
            return Ok(ExitCode::No);
        }
        Err(error) => return Err(failed(error)),
    };
    let settings = VerifySettings {
        against: arguments.against.as_deref(),
        selection: selection(&arguments.selection)?,
        ..VerifySettings::default()
    };
    let report = watched("verifying", arguments.quiet, |watch| {
        verify(&archive, &settings, watch).map_err(failed)
    })?;
    let mut text = String::new();
    for fault in report.faults.iter().take(MOST_NAMED) {
        writeln!(text, "{fault}")?;
    }
    if report.faults.len() > MOST_NAMED {
        writeln!(text, "and {} more", report.faults.len() - MOST_NAMED)?;
    }
    let entries = report.entries;
    let bytes = format_bytes(report.content_bytes);
    match (report.faults.len(), &arguments.against) {
        (0, None) => writeln!(text, "sound: {entries} entries, {bytes}")?,
        (0, Some(path)) => {
            writeln!(
                text,
                "sound, and the same as {}: {entries} entries, {bytes}",
                path.display()
            )?;
        }
        (faults, _) => writeln!(text, "{faults} faults; {entries} entries")?,
    }
    print(&text)?;
    Ok(if report.faults.is_empty() {
        ExitCode::Done
    } else {
        ExitCode::No
    })
}
