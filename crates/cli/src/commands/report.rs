//! `sqlitmus report`: renders a run file again. Nothing is measured.

use std::io::{IsTerminal, Write};
use std::path::Path;

use sqlitmus_core::analysis::analyse;
use sqlitmus_report::Look;
use sqlitmus_runfile::RunFileError;

use crate::arguments::{Format, ReportArguments};
use crate::commands::print;
use crate::failure::{ExitCode, Failure};
use crate::runs;

/// Columns where there is no terminal to ask.
const COLUMNS_IF_UNKNOWN: usize = 100;

/// Renders.
///
/// # Errors
/// No such run, not a run file, or the output cannot be written.
pub fn run(arguments: &ReportArguments) -> anyhow::Result<ExitCode> {
    let path = runs::find(&arguments.run, &arguments.place)?;
    let run = sqlitmus_runfile::read(&path).map_err(run_file_failure)?;
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

/// How text is to look on standard output.
#[must_use]
pub fn look() -> Look {
    let columns = rustix::termios::tcgetwinsize(std::io::stdout())
        .ok()
        .map(|size| usize::from(size.ws_col))
        .filter(|columns| *columns > 0);
    // https://no-color.org: any value that is not empty.
    let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    Look {
        columns: columns.unwrap_or(COLUMNS_IF_UNKNOWN),
        color: std::io::stdout().is_terminal() && !no_color,
    }
}

/// A run file's complaint as a failure: bad input, unless the machine gave out.
#[must_use]
pub fn run_file_failure(error: RunFileError) -> Failure {
    if error.environment_failed() {
        Failure::environment(error.to_string(), error.hint())
    } else {
        Failure::bad_input(error.to_string(), error.hint())
    }
}

/// Writes a file that must not exist yet.
fn write_new(path: &Path, text: &str) -> Result<(), Failure> {
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
