//! `sqlitmus report`: renders run files again, one by itself, several side by side. Nothing is measured.

use std::io::Write;
use std::path::{Path, PathBuf};

use sqlitmus_core::advice::recommend;
use sqlitmus_core::analysis::{Analysis, analyse};
use sqlitmus_core::durability::judge;
use sqlitmus_core::run::Run;
use sqlitmus_report::{Analysed, Look};
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
    if arguments.resources && arguments.format != Format::Terminal {
        return Err(Failure::bad_input(
            "--resources is a form of the report for terminals",
            "leave it out: html, markdown and json tell what operations use in any case",
        )
        .into());
    }
    let mut paths: Vec<PathBuf> = Vec::new();
    for word in &arguments.runs {
        for path in runs::find_all(word, &arguments.place)? {
            // The same file twice would say nothing about another machine.
            if !paths.contains(&path) {
                paths.push(path);
            }
        }
    }
    let text = match paths.as_slice() {
        [path] if kind(path)? == Kind::Durability => durability(arguments, path)?,
        _ => measurements(arguments, &paths)?,
    };
    match &arguments.output {
        None => print(&text)?,
        Some(path) => write_new(path, &text)?,
    }
    Ok(ExitCode::Done)
}

fn kind(path: &Path) -> Result<Kind, Failure> {
    sqlitmus_runfile::kind(path).map_err(Failure::from)
}

fn measurements(arguments: &ReportArguments, paths: &[PathBuf]) -> Result<String, Failure> {
    let mut runs: Vec<Run> = Vec::new();
    for path in paths {
        if kind(path)? == Kind::Durability {
            return Err(Failure::bad_input(
                format!("{} is a run of `sqlitmus durability`", path.display()),
                "such runs are reported one by one, and not beside measurements",
            ));
        }
        let mut run = sqlitmus_runfile::read(path).map_err(Failure::from)?;
        if let Some(threshold) = arguments.threshold {
            run.plan.threshold = threshold;
        }
        runs.push(run);
    }
    let analyses: Vec<Analysis> = runs.iter().map(analyse).collect();
    let pairs = runs.iter().zip(&analyses);
    let analysed: Vec<Analysed<'_>> = pairs
        .map(|(run, analysis)| Analysed { run, analysis })
        .collect();
    let look = look_of(arguments);
    if arguments.resources {
        let texts = analysed.iter().map(|one| {
            let name = sqlitmus_report::clean(&one.run.head.id);
            let table = sqlitmus_report::terminal_resources(one.run, one.analysis, &look);
            format!("{name}\n{table}")
        });
        return Ok(texts.collect::<Vec<_>>().join("\n"));
    }
    Ok(match analysed.as_slice() {
        [one] => render(arguments.format, one, &look),
        several => render_side_by_side(arguments.format, several, &look),
    })
}

fn durability(arguments: &ReportArguments, path: &Path) -> Result<String, Failure> {
    let run = sqlitmus_runfile::read_durability(path).map_err(Failure::from)?;
    let table = judge(&run);
    if arguments.resources {
        return Err(Failure::bad_input(
            "a run of `sqlitmus durability` counts what is lost, not what is used",
            "leave out --resources",
        ));
    }
    Ok(match arguments.format {
        Format::Terminal => {
            sqlitmus_report::durability::terminal(&run, &table, &look_of(arguments))
        }
        Format::Html => sqlitmus_report::durability::html(&run, &table),
        Format::Markdown => sqlitmus_report::durability::markdown(&run, &table),
        Format::Json => sqlitmus_report::durability::json(&run, &table),
        Format::Csv | Format::Svg => {
            return Err(Failure::bad_input(
                "a run of `sqlitmus durability` has no samples to list and no charts",
                "use --format terminal, html, markdown or json",
            ));
        }
    })
}

fn look_of(arguments: &ReportArguments) -> Look {
    let mut look = look();
    look.color &= arguments.output.is_none();
    look
}

fn render(format: Format, one: &Analysed<'_>, look: &Look) -> String {
    let Analysed { run, analysis } = one;
    match format {
        Format::Terminal => {
            let advice = recommend(run)
                .map(|found| sqlitmus_report::advice::terminal(run, &found, &[], look) + "\n");
            advice.unwrap_or_default() + &sqlitmus_report::terminal(run, analysis, look)
        }
        Format::Html => sqlitmus_report::html(run, analysis),
        Format::Markdown => {
            let advice =
                recommend(run).map(|found| sqlitmus_report::advice::markdown(run, &found) + "\n");
            advice.unwrap_or_default() + &sqlitmus_report::markdown(run, analysis)
        }
        Format::Csv => sqlitmus_report::csv(&[run]),
        Format::Json => sqlitmus_report::json(run, analysis),
        Format::Svg => sqlitmus_report::svg(run, analysis),
    }
}

fn render_side_by_side(format: Format, runs: &[Analysed<'_>], look: &Look) -> String {
    match format {
        Format::Terminal => sqlitmus_report::terminal_side_by_side(runs, look),
        Format::Html => sqlitmus_report::html_side_by_side(runs),
        Format::Markdown => sqlitmus_report::markdown_side_by_side(runs),
        Format::Csv => sqlitmus_report::csv(&runs.iter().map(|one| one.run).collect::<Vec<_>>()),
        Format::Json => sqlitmus_report::json_of_several(runs),
        Format::Svg => sqlitmus_report::svg_side_by_side(runs),
    }
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
