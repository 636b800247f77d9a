//! `sqlitmus cat`: files of an archive to standard output.

use std::io::{self, Write};

use sqlitmus_archive::{Archive, ArchiveError, Kind};

use super::failed;
use crate::arguments::archive::CatArguments;
use crate::failure::{ExitCode, Failure};

/// Prints.
///
/// # Errors
/// There is no such file, its content is not what the archive says, or standard output cannot be written.
pub fn run(arguments: &CatArguments) -> anyhow::Result<ExitCode> {
    let archive = Archive::open(&arguments.archive).map_err(failed)?;
    let reader = archive.reader().map_err(failed)?;
    let mut entries = Vec::new();
    for name in &arguments.names {
        let entry = reader.entry(name).map_err(failed)?;
        let entry = entry.ok_or_else(|| failed(ArchiveError::NoEntry { name: name.clone() }))?;
        if entry.kind != Kind::File {
            let hint = format!("`sqlitmus ls {} {name}` lists it", archive.path().display());
            return Err(Failure::bad_input(format!("`{name}` is no file"), hint).into());
        }
        entries.push(entry);
    }
    let mut lookup = reader.lookup().map_err(failed)?;
    let mut output = io::stdout().lock();
    for entry in &entries {
        let mut refused = None;
        let poured = lookup.pour(entry, &mut |piece| {
            output.write_all(piece).map_err(|error| {
                refused = Some(error);
                ArchiveError::Interrupted
            })
        });
        match refused {
            // A reader that has gone, as after `| head`, is no error.
            Some(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(ExitCode::Done),
            Some(error) => {
                return Err(anyhow::Error::new(error).context("cannot write to standard output"));
            }
            None => poured.map_err(failed)?,
        }
    }
    match output.flush() {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(anyhow::Error::new(error).context("cannot write to standard output"))
        }
        _ => Ok(ExitCode::Done),
    }
}
