//! `sqlitmus explain`: where the time goes. Measures the suite that takes operations apart, or shows
//! what a run of it has found.

use std::ffi::OsString;

use clap::Parser;
use sqlitmus_core::analysis::analyse;

use crate::arguments::{Command, CommandLine, ExplainArguments};
use crate::commands::{look, measure, print};
use crate::failure::{ExitCode, Failure};
use crate::runs;

/// Name of the suite that is measured.
const SUITE: &str = "explain";

/// Explains.
///
/// # Errors
/// As `measure`; no such run, or one of a suite that explains nothing.
pub fn run(arguments: &ExplainArguments) -> anyhow::Result<ExitCode> {
    match &arguments.run {
        Some(word) => show(arguments, word),
        None => measure_suite(arguments),
    }
}

/// Shows what a run has found, and nothing else of it.
fn show(arguments: &ExplainArguments, word: &str) -> anyhow::Result<ExitCode> {
    let path = runs::find_measurement(word, &arguments.place)?;
    let run = sqlitmus_runfile::read(&path).map_err(Failure::from)?;
    let analysis = analyse(&run);
    if analysis.explanations.is_empty() {
        return Err(Failure::bad_input(
            format!(
                "{} is of the suite {}, which takes no operation apart",
                path.display(),
                sqlitmus_report::clean(&run.plan.suite)
            ),
            "`sqlitmus explain` without a run measures the suite that does",
        )
        .into());
    }
    if arguments.json {
        print(&sqlitmus_report::json(&run, &analysis))?;
    } else {
        print(&sqlitmus_report::explanation(&run, &analysis, &look()))?;
    }
    Ok(ExitCode::Done)
}

/// The same as `measure explain`, with the options that make sense here.
fn measure_suite(arguments: &ExplainArguments) -> anyhow::Result<ExitCode> {
    let mut words: Vec<OsString> = ["sqlitmus", "measure", SUITE, "--place"]
        .map(OsString::from)
        .to_vec();
    words.push(arguments.place.clone().into());
    let mut add = |option: &str, value: Option<OsString>| {
        words.push(option.into());
        words.extend(value);
    };
    add("--scale", Some(arguments.scale.clone().into()));
    for group in &arguments.group {
        add("--group", Some(group.into()));
    }
    if let Some(rounds) = arguments.rounds {
        add("--rounds", Some(rounds.to_string().into()));
    }
    if let Some(output) = &arguments.output {
        add("--output", Some(output.into()));
    }
    for (option, given) in [("--json", arguments.json), ("--quiet", arguments.quiet)] {
        if given {
            add(option, None);
        }
    }
    match CommandLine::try_parse_from(words)?.command {
        Command::Measure(measured) => measure::run(&measured),
        _ => Err(anyhow::anyhow!("the words of `measure` are another verb's")),
    }
}
