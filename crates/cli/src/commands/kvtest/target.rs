//! What `init` and `export` may create, and where: nothing that exists is overwritten, what is
//! made gets its name when it is complete, and what could not be completed is removed.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use super::failures;
use crate::failure::Failure;
use crate::machine::free_name::rename_to_free_name;
use crate::machine::ownership::DATABASE_COMPANIONS;
use crate::machine::path_suffix::with_suffix;
use crate::machine::place::Place;

/// What is at the path of a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// Nothing.
    Nothing,
    /// A file of no bytes, or a directory without entries.
    Empty,
}

/// The directory in which a path's last name is, or will be.
pub(super) fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}

/// Checks that a database may be made at the path.
///
/// # Errors
/// Something is there, or a file that SQLite would take for the new database's journal.
pub(super) fn require_free_for_database(path: &Path) -> Result<Found, Failure> {
    let shown = path.display();
    for suffix in DATABASE_COMPANIONS {
        let companion = beside(path, suffix)?;
        if companion.symlink_metadata().is_ok() {
            let shown = companion.display();
            return Err(Failure::bad_input(
                format!("{shown} is in the way: SQLite would take it for part of the new database"),
                "choose another name for the database",
            ));
        }
    }
    match path.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Found::Nothing),
        Err(error) => Err(unseen(path, &error)),
        Ok(metadata) if metadata.is_file() && metadata.len() == 0 => Ok(Found::Empty),
        Ok(metadata) if metadata.is_dir() => Err(Failure::bad_input(
            format!("{shown} is a directory, not a place for a database"),
            format!(
                "name a file in it: sqlitmus kvtest init {}",
                path.join("test.db").display()
            ),
        )),
        Ok(_) => Err(Failure::bad_input(
            format!("{shown} exists already, and nothing is overwritten"),
            "choose another name, or move away what is there",
        )),
    }
}

/// Checks that blobs may be exported to a directory at the path.
///
/// # Errors
/// Something is there that is no empty directory.
pub(super) fn require_free_for_directory(path: &Path) -> Result<Found, Failure> {
    let shown = path.display();
    let nothing = path
        .symlink_metadata()
        .is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
    if nothing {
        return Ok(Found::Nothing);
    }
    let metadata = path.metadata().map_err(|error| unseen(path, &error))?;
    if !metadata.is_dir() {
        return Err(Failure::bad_input(
            format!("{shown} exists already and is not a directory"),
            "choose another name, or move away what is there",
        ));
    }
    let mut entries = path.read_dir().map_err(|error| unseen(path, &error))?;
    match entries.next() {
        None => Ok(Found::Empty),
        Some(_) => Err(Failure::bad_input(
            format!("the directory {shown} is not empty, and nothing is overwritten"),
            "choose another name, or move away what is there",
        )),
    }
}

fn unseen(path: &Path, error: &io::Error) -> Failure {
    let shown = path.display();
    let above = parent(path).display();
    failures::file(
        format!("cannot look at {shown}"),
        error,
        format!("see: ls -ld {above}"),
    )
}

/// Checks that so much can be made in a directory.
///
/// # Errors
/// It is missing, not to be written to, or too small.
pub(super) fn require_space(directory: &Path, bytes: u64, inodes: u64) -> Result<(), Failure> {
    Place::inspect(directory)
        .and_then(|place| place.require_space(bytes, inodes))
        .map_err(Failure::from)
}

/// A name beside a path, that nothing has, for what is still being made. It ends in the number of
/// this process: nobody else makes that name, and who finds one knows what it was.
///
/// # Errors
/// The path has no last name.
pub(super) fn unfinished_name(path: &Path) -> Result<PathBuf, Failure> {
    let process = std::process::id();
    let mut number = 0;
    loop {
        let candidate = beside(path, &format!(".sqlitmus-unfinished-{process}-{number}"))?;
        if candidate.symlink_metadata().is_err() {
            return Ok(candidate);
        }
        number += 1;
    }
}

fn beside(path: &Path, suffix: &str) -> Result<PathBuf, Failure> {
    if path.file_name().is_none() {
        return Err(Failure::bad_input(
            format!("{} names nothing that could be made", path.display()),
            "name a file or directory that does not exist yet",
        ));
    }
    Ok(with_suffix(path, suffix))
}

/// Gives what is complete its own name, which must still be as it was found.
///
/// # Errors
/// Something has appeared there meanwhile, or the system refuses.
pub(super) fn publish(unfinished: &Path, path: &Path, found: Found) -> Result<(), Failure> {
    let renamed = match found {
        Found::Nothing => rename_to_free_name(unfinished, path),
        Found::Empty => fs::rename(unfinished, path),
    };
    let shown = path.display();
    renamed.map_err(|error| {
        failures::file(
            format!("cannot give {} its name {shown}", unfinished.display()),
            &error,
            format!("see what is there now: ls -ld {shown}"),
        )
    })?;
    // Some filesystems cannot flush a directory; the name is there all the same.
    let _ = File::open(parent(path)).and_then(|directory| directory.sync_all());
    Ok(())
}
