//! The command line: verbs and their options, as clap describes them. What a verb does is in
//! [`crate::commands`].

use std::ffi::OsString;
use std::path::PathBuf;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};

use crate::failure::Failure;

/// The litmus test for embedded storage: SQLite, files or another engine, measured on your machine.
#[derive(Debug, Parser)]
#[command(
    name = "sqlitmus",
    version,
    disable_help_subcommand = true,
    arg_required_else_help = true,
    after_help = "Start with `sqlitmus measure`. `sqlitmus VERB --help` explains a verb.",
    after_long_help = "\
Examples:
  sqlitmus measure                     where should small blobs live on this machine?
  sqlitmus measure --place /mnt/ssd    the same on another disk
  sqlitmus report latest --format html --output report.html
  sqlitmus kvtest run test.db --random --count 10000

Exit codes:
  0    done
  1    the answer is no: an integrity check found damage
  2    bad input, or refused
  4    finished, but some arms failed, or their stores do not hold what was written
  5    the environment failed: disk full, I/O error
  130  stopped by Ctrl-C or SIGTERM"
)]
pub struct CommandLine {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Measure a suite on this machine and print the answer
    #[command(after_long_help = MEASURE_EXAMPLES)]
    Measure(MeasureArguments),
    /// Show a run again, as text, HTML or JSON
    #[command(after_long_help = REPORT_EXAMPLES)]
    Report(ReportArguments),
    /// SQLite's kvtest: init, stat, export, run
    #[command(disable_help_flag = true)]
    Kvtest {
        /// kvtest's own words; `sqlitmus kvtest --help` explains them
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<OsString>,
    },
    /// List suites, engines with their settings, and runs
    List(ListArguments),
    /// Remove the stores that sqlitmus made in a place
    #[command(after_long_help = CLEAN_EXAMPLES)]
    Clean(CleanArguments),
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page, in roff
    Man,
}

const MEASURE_EXAMPLES: &str = "\
Examples:
  sqlitmus measure                       the canonical suite, here
  sqlitmus measure --place /mnt/ssd      on another disk
  sqlitmus measure --full                at the scale of the article: 100,000 blobs
  sqlitmus measure --full --group read   the group read alone, at that scale
  sqlitmus measure my-suite.toml         a suite of your own
  sqlitmus measure oltp --rows 1M --threads 1,2 --set hit_percent=100
  sqlitmus measure --json > result.json
  sqlitmus measure --resume latest       go on where Ctrl-C or a kill has stopped the last run

Stores are kept in .sqlitmus/ of the place: the next run uses its folders of files
again, and writes databases anew. `sqlitmus clean` removes them. Data goes to standard output, progress to standard error.";

const REPORT_EXAMPLES: &str = "\
Examples:
  sqlitmus report latest
  sqlitmus report latest --format html --output report.html
  sqlitmus report previous --format json
  sqlitmus report .sqlitmus/runs/20261120-120000-article-1a2b.run";

const CLEAN_EXAMPLES: &str = "\
Examples:
  sqlitmus clean                    stores in ./.sqlitmus; runs are kept
  sqlitmus clean --runs             the runs too
  sqlitmus clean --place /mnt/ssd

Only what sqlitmus made is removed.";

/// Options of `measure`.
#[derive(Debug, Args)]
pub struct MeasureArguments {
    /// Name of a suite (`sqlitmus list`), or path of a suite's file
    #[arg(default_value = crate::suites::CANONICAL)]
    pub suite: String,
    /// Directory whose disk is measured; stores go into .sqlitmus/ there
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub place: PathBuf,
    /// The published scale instead of the quick one: short for --scale full
    #[arg(long, conflicts_with = "scale")]
    pub full: bool,
    /// Scale of the suite
    #[arg(long, value_name = "NAME", default_value = "default")]
    pub scale: String,
    /// Only this group of the suite (`sqlitmus list`); may be repeated
    #[arg(long, value_name = "NAME")]
    pub group: Vec<String>,
    /// Rows in every table, in a suite about rows: short for --set rows=N
    #[arg(long, value_name = "N")]
    pub rows: Option<String>,
    /// Numbers of threads, in a suite about rows: short for --set threads=LIST
    #[arg(long, value_name = "LIST")]
    pub threads: Option<String>,
    /// Change a parameter of a suite about rows: rows, text_bytes, hit_percent, threads, limit_ms;
    /// may be repeated
    #[arg(long, value_name = "NAME=VALUE", hide_short_help = true)]
    pub set: Vec<String>,
    /// Rounds of every group: more rounds, narrower intervals
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub rounds: Option<u32>,
    /// Everything random follows from it
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Let the kernel drop what it caches of the whole machine, for fully-cold arms; root only
    #[arg(long)]
    pub drop_caches: bool,
    /// Write the run file here instead of .sqlitmus/runs/
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Go on with a run that was interrupted or killed: its run file, or `latest`
    #[arg(long, value_name = "RUN", conflicts_with_all = [
        "suite", "full", "scale", "group", "rounds", "seed", "output"
    ])]
    pub resume: Option<String>,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
    /// No progress: only the result, and what went wrong
    #[arg(long, short)]
    pub quiet: bool,
    /// Program that runs the trials, for testing the harness
    #[arg(long, value_name = "PROGRAM", hide = true)]
    pub worker_program: Option<PathBuf>,
    /// Longest wait for one answer of a worker, in seconds
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 300,
        hide_short_help = true
    )]
    pub worker_timeout: u64,
}

/// Options of `report`.
#[derive(Debug, Args)]
pub struct ReportArguments {
    /// Run file, or `latest` or `previous`
    #[arg(default_value = "latest")]
    pub run: String,
    /// Form of the report
    #[arg(long, value_enum, default_value_t = Format::Terminal)]
    pub format: Format,
    /// Write to this file instead of standard output; it must not exist
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Where `latest` and `previous` are looked for
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub place: PathBuf,
}

/// Forms of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Text for a terminal
    Terminal,
    /// One self-contained page
    Html,
    /// For programs
    Json,
}

/// Options of `list`.
#[derive(Debug, Args)]
pub struct ListArguments {
    /// Where runs are looked for
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub place: PathBuf,
}

/// Options of `clean`.
#[derive(Debug, Args)]
pub struct CleanArguments {
    /// Directory in which .sqlitmus/ is
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub place: PathBuf,
    /// Remove the run files too
    #[arg(long)]
    pub runs: bool,
    /// Only list what would be removed
    #[arg(long)]
    pub list: bool,
}

/// What became of the arguments.
#[derive(Debug)]
pub enum Parsed {
    /// A verb with its options.
    Command(Box<Command>),
    /// Help or version: a text for standard output.
    Text(String),
    /// Not a valid command line.
    Bad(Failure),
}

/// Parses a command line; the first word is the program's name.
#[must_use]
pub fn parse(words: impl IntoIterator<Item = OsString>) -> Parsed {
    match CommandLine::try_parse_from(words) {
        Ok(line) => Parsed::Command(Box::new(line.command)),
        Err(error) => match error.kind() {
            ErrorKind::DisplayHelp
            | ErrorKind::DisplayVersion
            | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
                Parsed::Text(error.to_string())
            }
            _ => Parsed::Bad(bad(&error)),
        },
    }
}

/// clap's complaint as one message and one hint.
fn bad(error: &clap::Error) -> Failure {
    let text = error.to_string();
    let first = text.lines().next().unwrap_or_default();
    let message = first.strip_prefix("error: ").unwrap_or(first).to_owned();
    let suggestion = [
        ContextKind::SuggestedArg,
        ContextKind::SuggestedSubcommand,
        ContextKind::SuggestedValue,
    ]
    .into_iter()
    .find_map(|kind| match error.get(kind)? {
        ContextValue::String(word) => Some(word.clone()),
        ContextValue::Strings(words) => words.first().cloned(),
        _ => None,
    });
    let hint = match suggestion {
        Some(word) => format!("did you mean `{word}`?"),
        None => "`sqlitmus --help` shows all verbs, `sqlitmus VERB --help` its options".to_owned(),
    };
    Failure::bad_input(message, hint)
}

/// The command line as clap sees it, for completions and the manual.
#[must_use]
pub fn definition() -> clap::Command {
    CommandLine::command()
}
