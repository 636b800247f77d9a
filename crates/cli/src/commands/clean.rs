//! `sqlitmus clean`: removes what sqlitmus has made in a place, and nothing else.

use std::fmt::Write;

use sqlitmus_core::units::format_bytes;

use crate::arguments::CleanArguments;
use crate::commands::print;
use crate::failure::{ExitCode, Failure};
use crate::machine::scratch_cleaning::{CleanOptions, CleanReport, clean};

/// Cleans.
///
/// # Errors
/// What is there is not ours, is in use, or cannot be removed.
pub fn run(arguments: &CleanArguments) -> anyhow::Result<ExitCode> {
    let options = CleanOptions {
        with_runs: arguments.runs,
        list_only: arguments.list,
    };
    let report = clean(&arguments.place, options).map_err(Failure::from)?;
    let Some(report) = report else {
        print("nothing to clean: there is no .sqlitmus here\n")?;
        return Ok(ExitCode::Done);
    };
    print(&describe(&report, arguments.list)?)?;
    match report.failed.first() {
        None => Ok(ExitCode::Done),
        Some(kept) => Err(Failure::environment(
            format!("cannot remove {}: {}", kept.path.display(), kept.reason),
            "remove it by hand",
        )
        .into()),
    }
}

fn describe(report: &CleanReport, list_only: bool) -> Result<String, std::fmt::Error> {
    let mut text = String::new();
    let verb = if list_only { "would remove" } else { "removed" };
    for cleaned in &report.removed {
        writeln!(
            text,
            "{verb} {} ({})",
            cleaned.path.display(),
            format_bytes(cleaned.size.allocated_bytes)
        )?;
    }
    for kept in &report.foreign {
        writeln!(text, "left alone {}: {}", kept.path.display(), kept.reason)?;
    }
    if !report.kept_runs.is_empty() {
        writeln!(
            text,
            "kept {} run files; --runs removes them too",
            report.kept_runs.len()
        )?;
    }
    if text.is_empty() {
        text.push_str("nothing to clean\n");
    }
    Ok(text)
}
