//! `sqlitmus report`: renders a run file again. Nothing is measured.

use std::io::Write;
use std::path::Path;

use sqlitmus_core::analysis::analyse;

use crate::arguments::{Format, ReportArguments};
use crate::commands::{look, print};
use crate::failure::{ExitCode, Failure};
use crate::runs;

/// Renders.
///
/// # Errors
/// No such run, not a run file, or the output cannot be written.
pub fn run(arguments: &ReportArguments) -> anyhow::Result<ExitCode> {
    let path = runs::find(&arguments.run, &arguments.place)?;
    let mut run = sqlitmus_runfile::read(&path).map_err(Failure::from)?;
    if let Some(threshold) = arguments.threshold {
        run.plan.threshold = threshold;
    }
    let analysis = analyse(&run);
    let text = match arguments.format {
        Format::Terminal => {
            let mut look = look();
            look.color &= arguments.output.is_none();
            sqlitmus_report::terminal(&run, &analysis, &look)
        }
        Format::Html => sqlitmus_report::html(&run, &analysis),
        Format::Json => sqlitmus_report::json(&run, &analysis),
    };
    match &arguments.output {
        None => print(&text)?,
        Some(path) => write_new(path, &text)?,
    }
    Ok(ExitCode::Done)
}

/// Writes a file that must not exist yet.
pub(super) fn write_new(path: &Path, text: &str) -> Result<(), Failure> {
    let written =
        std::fs::File::create_new(path).and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => Failure::bad_input(
            format!("{} exists already", path.display()),
            "name another file: nothing is overwritten",
        ),
        _ => Failure::environment(
            format!("cannot write {}: {error}", path.display()),
            "name another file with --output",
        ),
    })
}
