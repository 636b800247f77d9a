//! The verbs for archives, and what they share: opening one, progress, and choosing names.

pub mod cat;
pub mod ls;
pub mod pack;
mod progress;
pub mod serve;
pub mod unpack;
pub mod verify;

use std::path::Path;

use sqlitmus_archive::{ArchiveError, Selection};

use crate::arguments::archive::SelectionArguments;
use crate::failure::Failure;

/// What the options say is taken.
fn selection(arguments: &SelectionArguments) -> Result<Selection, Failure> {
    let ignore_files: Vec<&Path> = arguments.ignore_file.iter().map(AsRef::as_ref).collect();
    Selection::new(&arguments.include, &arguments.exclude, &ignore_files).map_err(Failure::from)
}

/// An error of the archive as this program's.
fn failed(error: ArchiveError) -> anyhow::Error {
    Failure::from(error).into()
}
