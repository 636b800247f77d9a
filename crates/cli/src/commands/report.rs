//! `sqlitmus report`: renders a run file again. Nothing is measured.

use std::io::Write;
use std::path::Path;

use sqlitmus_core::analysis::analyse;
use sqlitmus_core::durability::judge;
use sqlitmus_report::Look;
use sqlitmus_runfile::Kind;

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
    let text = match sqlitmus_runfile::kind(&path).map_err(Failure::from)? {
        Kind::Measurement => measurement(arguments, &path)?,
        Kind::Durability => durability(arguments, &path)?,
    };
    match &arguments.output {
        None => print(&text)?,
        Some(path) => write_new(path, &text)?,
    }
    Ok(ExitCode::Done)
}

fn measurement(arguments: &ReportArguments, path: &Path) -> Result<String, Failure> {
    let mut run = sqlitmus_runfile::read(path).map_err(Failure::from)?;
    if let Some(threshold) = arguments.threshold {
        run.plan.threshold = threshold;
    }
    let analysis = analyse(&run);
    Ok(match arguments.format {
        Format::Terminal => sqlitmus_report::terminal(&run, &analysis, &look_of(arguments)),
        Format::Html => sqlitmus_report::html(&run, &analysis),
        Format::Json => sqlitmus_report::json(&run, &analysis),
        Format::Markdown => {
            return Err(Failure::bad_input(
                "a measurement has no report in Markdown",
                "use --format terminal, html or json; Markdown is for runs of `sqlitmus durability`",
            ));
        }
    })
}

fn durability(arguments: &ReportArguments, path: &Path) -> Result<String, Failure> {
    let run = sqlitmus_runfile::read_durability(path).map_err(Failure::from)?;
    let table = judge(&run);
    Ok(match arguments.format {
        Format::Terminal => {
            sqlitmus_report::durability::terminal(&run, &table, &look_of(arguments))
        }
        Format::Html => sqlitmus_report::durability::html(&run, &table),
        Format::Markdown => sqlitmus_report::durability::markdown(&run, &table),
        Format::Json => sqlitmus_report::durability::json(&run, &table),
    })
}

fn look_of(arguments: &ReportArguments) -> Look {
    let mut look = look();
    look.color &= arguments.output.is_none();
    look
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
