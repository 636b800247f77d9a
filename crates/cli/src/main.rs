//! Entry: hands the arguments to a verb, and turns what it returns into lines and an exit code.

use std::io::{self, BufReader};

use sqlitmus_cli::arguments::{self, Parsed};
use sqlitmus_cli::durability::job::STORE_ARGUMENT;
use sqlitmus_cli::durability::store_process;
use sqlitmus_cli::failure::{self, ExitCode};
use sqlitmus_cli::machine::scanner::{self, SCANNED_ARGUMENT, SCANNER_ARGUMENT};
use sqlitmus_cli::orchestrator::worker_process::WORKER_ARGUMENT;
use sqlitmus_cli::{commands, interruption, machine, worker};

fn main() {
    std::process::exit(run() as i32);
}

fn run() -> ExitCode {
    match std::env::args_os().nth(1) {
        Some(word) if word == WORKER_ARGUMENT => {
            return work(|requests, responses| worker::serve(requests, responses));
        }
        Some(word) if word == SCANNED_ARGUMENT => {
            return work(|requests, responses| worker::scanned::serve(requests, responses));
        }
        Some(word) if word == SCANNER_ARGUMENT => {
            return work(|requests, responses| scanner::serve(requests.get_ref(), responses));
        }
        Some(word) if word == STORE_ARGUMENT => {
            return work(store_process::serve);
        }
        _ => {}
    }
    let result = match arguments::parse(std::env::args_os()) {
        Parsed::Command(command) => commands::run(*command),
        Parsed::Text(text) => commands::print(&text).map(|()| ExitCode::Done),
        Parsed::Bad(failure) => Err(failure.into()),
    };
    result.unwrap_or_else(|error| {
        let (lines, code) = failure::describe(&error);
        // Nobody is left to be told if standard error is closed too.
        let _ = io::Write::write_all(&mut io::stderr(), format!("{lines}\n").as_bytes());
        code
    })
}

/// This process is a worker: it does what the orchestrator asks for and ends with it.
fn work(serve: fn(&mut BufReader<io::Stdin>, &mut io::Stdout) -> bool) -> ExitCode {
    // Not needed for measuring: the orchestrator kills workers it has no more use for.
    let _ = interruption::ignore();
    let parent = std::env::args().nth(2).and_then(|word| word.parse().ok());
    if let Some(parent) = parent
        && let Err(machine::processor::ProcessorError::ParentIsGone) =
            machine::processor::die_with_parent(parent)
    {
        return ExitCode::Environment;
    }
    let mut requests = BufReader::new(io::stdin());
    if serve(&mut requests, &mut io::stdout()) {
        ExitCode::Done
    } else {
        ExitCode::Environment
    }
}
