//! `sqlitmus compare`: has anything become slower from one run to another? Nothing is measured.

use std::io::Write;
use std::path::Path;

use sqlitmus_core::run::Run;
use sqlitmus_core::run_comparison::{Answer, Options, Quantity, RunComparison, compare_runs};
use sqlitmus_report::comparison::{self, Flavour};

use crate::arguments::{CompareArguments, Compared, ComparisonFormat};
use crate::commands::report::write_new;
use crate::commands::{look, print};
use crate::failure::{ExitCode, Failure};
use crate::runs;

/// Compares.
///
/// # Errors
/// No such run, not a run file, runs that cannot be compared or whose conditions are too different,
/// or the output cannot be written.
pub fn run(arguments: &CompareArguments) -> anyhow::Result<ExitCode> {
    let options = Options {
        of: match arguments.of {
            Compared::Ratio => Quantity::Ratio,
            Compared::Time => Quantity::Time,
        },
        threshold: arguments.threshold,
        expected: arguments.expect.clone(),
        ..Options::default()
    };
    let a = read(&arguments.a, &arguments.place)?;
    let b = read(&arguments.b, &arguments.place)?;
    let comparison = compare_runs(&a, &b, &options).map_err(Failure::from)?;
    if !arguments.force {
        refuse_unlike(&comparison)?;
    }
    let text = render(arguments, &comparison);
    match &arguments.output {
        None => print(&text)?,
        Some(path) => write_new(path, &text)?,
    }
    Ok(match comparison.answer() {
        Answer::NoRegression => ExitCode::Done,
        Answer::Regression => ExitCode::No,
        Answer::NotSure => ExitCode::NotSure,
    })
}

fn read(word: &str, place: &Path) -> Result<Run, Failure> {
    let path = runs::find_measurement(word, place)?;
    Ok(sqlitmus_runfile::read(&path)?)
}

/// Refuses runs whose conditions forbid a comparison, with every reason.
fn refuse_unlike(comparison: &RunComparison) -> Result<(), Failure> {
    let reasons: Vec<String> = comparison
        .forbidding()
        .map(|difference| format!("\n  {}", comparison::difference_words(difference)))
        .collect();
    let Some(first) = comparison.forbidding().next() else {
        return Ok(());
    };
    Err(Failure::bad_input(
        format!(
            "A and B were not measured under the same conditions:{}",
            reasons.concat()
        ),
        format!(
            "--expect {} says that this difference is what is to be compared; --force compares \
             whatever differs, and warns",
            first.name
        ),
    ))
}

fn render(arguments: &CompareArguments, found: &RunComparison) -> String {
    match arguments.format {
        ComparisonFormat::Terminal => {
            let mut look = look();
            look.color &= arguments.output.is_none();
            comparison::terminal(found, &look)
        }
        ComparisonFormat::Github => comparison::markdown(found, Flavour::GitHub),
        ComparisonFormat::Markdown => comparison::markdown(found, Flavour::Plain),
        ComparisonFormat::Json => comparison::json(found),
        ComparisonFormat::Bencher => {
            tell_what_is_left_out(found);
            comparison::bencher(found)
        }
    }
}

/// The format has no place for a case without figures: it is named beside it.
fn tell_what_is_left_out(found: &RunComparison) {
    for name in comparison::without_figures(found) {
        // The data is what counts; if nobody can be told, it is still right.
        let _ = writeln!(std::io::stderr(), "warning: B has no figures for {name}");
    }
}
