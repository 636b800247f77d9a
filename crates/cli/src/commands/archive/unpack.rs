//! `sqlitmus unpack`: an archive into a directory.

use sqlitmus_archive::{Archive, Links, UnpackSettings, unpack};
use sqlitmus_core::units::format_bytes;

use super::failed;
use super::progress::{say, watched};
use crate::arguments::archive::{LinkChoice, UnpackArguments};
use crate::failure::ExitCode;

/// Unpacks.
///
/// # Errors
/// As [`sqlitmus_archive::unpack`].
pub fn run(arguments: &UnpackArguments) -> anyhow::Result<ExitCode> {
    let archive = Archive::open(&arguments.archive).map_err(failed)?;
    let mut settings = UnpackSettings {
        names: arguments.names.clone(),
        force: arguments.force,
        links: match arguments.links {
            LinkChoice::Inside => Links::Inside,
            LinkChoice::All => Links::All,
            LinkChoice::Skip => Links::Skip,
        },
        max_entry_bytes: arguments.max_entry,
        max_total_bytes: arguments.max_total,
        ..UnpackSettings::default()
    };
    if let Some(threads) = arguments.threads {
        settings.threads = usize::from(threads);
    }
    let report = watched("unpacking", arguments.quiet, |watch| {
        unpack(&archive, &arguments.into, &settings, watch).map_err(failed)
    })?;
    let mut line = format!(
        "{}: {} files, {} directories, {} links, {}",
        arguments.into.display(),
        report.files,
        report.directories,
        report.links,
        format_bytes(report.content_bytes)
    );
    if report.links_skipped > 0 {
        line.push_str(&format!("; {} links left out", report.links_skipped));
    }
    say(arguments.quiet, &line);
    Ok(ExitCode::Done)
}
