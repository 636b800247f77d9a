//! `sqlitmus kvtest`: SQLite's test program of that name, with the same words and the same
//! database. What each verb does is in its own file; this one picks the verb.

mod database;
mod database_size;
mod export;
mod failures;
mod help;
mod init;
mod key_sequence;
mod notes;
mod progress;
mod random_bytes;
mod run;
mod run_options;
mod stat;
mod statistics;
mod target;
mod walk;
mod walk_database;
mod walk_directory;
mod words;

use std::ffi::OsString;
use std::io::{self, Write};

use sqlitmus_core::names::nearest;

use crate::failure::{ExitCode, Failure};

/// The verbs of kvtest.
const VERBS: [&str; 4] = ["init", "stat", "export", "run"];

/// Does what the words after `kvtest` say, and prints to standard output.
///
/// # Errors
/// A [`Failure`], or standard output cannot be written. A reader that has gone, as after
/// `| head`, is no error.
pub fn run(words: Vec<OsString>) -> anyhow::Result<ExitCode> {
    let mut output = io::stdout().lock();
    let done = print(&words, &mut output).and_then(|()| Ok(output.flush()?));
    match done {
        Ok(()) => Ok(ExitCode::Done),
        Err(error) if is_closed_pipe(&error) => Ok(ExitCode::Done),
        Err(error) if error.is::<io::Error>() => {
            Err(error.context("cannot write to standard output"))
        }
        Err(error) => Err(error),
    }
}

/// The only errors of files that come up bare are those of the output.
fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error
        .downcast_ref::<io::Error>()
        .is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

fn print(words: &[OsString], output: &mut dyn Write) -> anyhow::Result<()> {
    let Some((verb, words)) = words.split_first() else {
        let hint = "write init, stat, export or run; see: sqlitmus kvtest --help";
        return Err(Failure::bad_input("kvtest: the verb is missing", hint).into());
    };
    let verb = verb.to_string_lossy();
    if let Some(text) = help::asked_for(&verb, words) {
        output.write_all(text.as_bytes())?;
        return Ok(());
    }
    match &*verb {
        "init" => init::run(words),
        "stat" => stat::run(words, output),
        "export" => export::run(words, output),
        "run" => run::run(words, output),
        _ => {
            let hint = match nearest(&verb, VERBS) {
                Some(near) => format!("did you mean `sqlitmus kvtest {near}`?"),
                None => format!(
                    "it is one of {}; see: sqlitmus kvtest --help",
                    VERBS.join(", ")
                ),
            };
            Err(Failure::bad_input(format!("kvtest has no verb `{verb}`"), hint).into())
        }
    }
}
