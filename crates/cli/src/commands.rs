//! The verbs, one file each, and what they share: printing to standard output.

mod advise;
mod archive;
mod clean;
mod compare;
mod doctor;
mod durability;
mod index;
mod kvtest;
mod list;
mod measure;
mod report;

use std::io::{IsTerminal, Write};

use sqlitmus_report::Look;

use crate::arguments::{self, Command};
use crate::failure::ExitCode;

/// Columns where there is no terminal to ask.
const COLUMNS_IF_UNKNOWN: usize = 100;

/// Does what a verb says.
///
/// # Errors
/// A [`crate::failure::Failure`], or an error of the environment with its context.
pub fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Measure(arguments) => measure::run(&arguments),
        Command::Advise(arguments) => advise::run(&arguments),
        Command::Report(arguments) => report::run(&arguments),
        Command::Compare(arguments) => compare::run(&arguments),
        Command::Index(arguments) => index::run(&arguments),
        Command::Durability(arguments) => durability::run(&arguments),
        Command::Kvtest { words } => kvtest::run(words),
        Command::Pack(arguments) => archive::pack::run(&arguments),
        Command::Unpack(arguments) => archive::unpack::run(&arguments),
        Command::Ls(arguments) => archive::ls::run(&arguments),
        Command::Cat(arguments) => archive::cat::run(&arguments),
        Command::Verify(arguments) => archive::verify::run(&arguments),
        Command::Serve(arguments) => archive::serve::run(&arguments),
        Command::List(arguments) => list::run(&arguments),
        Command::Doctor(arguments) => doctor::run(&arguments),
        Command::Clean(arguments) => clean::run(&arguments),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            let mut definition = arguments::definition();
            clap_complete::generate(shell, &mut definition, "sqlitmus", &mut script);
            print_bytes(&script).map(|()| ExitCode::Done)
        }
        Command::Man => {
            let mut page = Vec::new();
            clap_mangen::Man::new(arguments::definition()).render(&mut page)?;
            print_bytes(&page).map(|()| ExitCode::Done)
        }
    }
}

/// Prints data to standard output.
///
/// # Errors
/// Standard output cannot be written. A reader that has gone, as after `| head`, is no error.
pub fn print(text: &str) -> anyhow::Result<()> {
    print_bytes(text.as_bytes())
}

fn print_bytes(bytes: &[u8]) -> anyhow::Result<()> {
    let mut output = std::io::stdout().lock();
    match output.write_all(bytes).and_then(|()| output.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(anyhow::Error::new(error).context("cannot write to standard output"))
        }
        _ => Ok(()),
    }
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
