//! Names of runs and run files: how a new run is called, and which file `latest`, `previous` or a
//! path means.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use sqlitmus_runfile::{Kind, Listing, RunFileError};

use crate::failure::Failure;
use crate::machine::scratch::{SCRATCH_NAME, Scratch};

/// Ending of a run file's name.
pub const EXTENSION: &str = "run";

/// Time and identity of a run that begins now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunName {
    /// When it begins, RFC 3339, UTC, to the second.
    pub started_utc: String,
    /// Identity: the time, the suite and the process, so that names sort by time.
    pub id: String,
    /// Seconds since 1970.
    pub started_seconds: u64,
}

impl RunName {
    /// The name of a run that begins now.
    #[must_use]
    pub fn now(suite: &str) -> Self {
        let now = SystemTime::now();
        let started_utc = humantime::format_rfc3339_seconds(now).to_string();
        let digits: String = started_utc
            .chars()
            .filter(|character| character.is_ascii_digit() || *character == 'T')
            .map(|character| if character == 'T' { '-' } else { character })
            .collect();
        let suite: String = suite
            .chars()
            .map(|character| {
                if character.is_ascii_alphanumeric() {
                    character
                } else {
                    '-'
                }
            })
            .collect();
        let started_seconds = now
            .duration_since(SystemTime::UNIX_EPOCH)
            .map_or(0, |since| since.as_secs());
        Self {
            id: format!("{digits}-{suite}-{:x}", std::process::id()),
            started_utc,
            started_seconds,
        }
    }

    /// Name of its file.
    #[must_use]
    pub fn file_name(&self) -> String {
        format!("{}.{EXTENSION}", self.id)
    }
}

/// The time now, RFC 3339, UTC, to the second.
#[must_use]
pub fn now_utc() -> String {
    humantime::format_rfc3339_seconds(SystemTime::now()).to_string()
}

/// The runs kept in a place, in the order in which they were begun, whatever their files are called.
///
/// # Errors
/// The directory of runs cannot be read.
pub fn kept(place: &Path) -> Result<Listing, Failure> {
    let Ok(Some(scratch)) = Scratch::find(place) else {
        return Ok(Listing::default());
    };
    Ok(sqlitmus_runfile::heads(&scratch.runs_directory())?)
}

/// The run file that a word means: `latest`, `previous`, or a path.
///
/// # Errors
/// There are not so many runs in the place, no file at the path, or a run file that cannot be read and
/// may be the one that is meant.
pub fn find(word: &str, place: &Path) -> Result<PathBuf, Failure> {
    find_among(word, place, |_| true)
}

/// As [`find`], of measurements alone: `latest` passes over runs of the durability experiment.
///
/// # Errors
/// As [`find`].
pub fn find_measurement(word: &str, place: &Path) -> Result<PathBuf, Failure> {
    find_among(word, place, |kind| kind == Kind::Measurement)
}

fn find_among(
    word: &str,
    place: &Path,
    is_wanted: impl Fn(Kind) -> bool,
) -> Result<PathBuf, Failure> {
    let back = match word {
        "latest" => 1,
        "previous" => 2,
        path => {
            return if Path::new(path).exists() {
                Ok(PathBuf::from(path))
            } else {
                Err(Failure::bad_input(
                    format!("there is no run file {path}"),
                    "`sqlitmus list` shows the runs; `latest` means the newest of them",
                ))
            };
        }
    };
    let Listing {
        mut runs,
        unreadable,
    } = kept(place)?;
    runs.retain(|run| is_wanted(run.kind));
    let found = runs
        .len()
        .checked_sub(back)
        .map(|index| runs.swap_remove(index).path);
    // Names sort by time: one that sorts before what was found cannot be the one that is meant.
    let may_be_meant = |error: &RunFileError| match (&found, error.path()) {
        (Some(found), Some(path)) => path.file_name() > found.file_name(),
        _ => true,
    };
    if let Some(error) = unreadable.into_iter().find(may_be_meant) {
        let mut failure = Failure::from(error);
        failure.message = format!("cannot tell which run is {word}: {}", failure.message);
        "name the run file itself; `sqlitmus list` shows them all".clone_into(&mut failure.hint);
        return Err(failure);
    }
    found.ok_or_else(|| {
        Failure::bad_input(
            format!(
                "there is no {word} run in {}",
                place.join(SCRATCH_NAME).display()
            ),
            "`sqlitmus measure` makes one; --place DIR looks in another place",
        )
    })
}

/// The run files that a word means: those in a folder, by name, or what [`find()`] says.
///
/// # Errors
/// As [`find()`]; or a folder cannot be read or has no run file in it.
pub fn find_all(word: &str, place: &Path) -> Result<Vec<PathBuf>, Failure> {
    let folder = Path::new(word);
    if !folder.is_dir() {
        return Ok(vec![find(word, place)?]);
    }
    let entries = std::fs::read_dir(folder).map_err(|error| {
        Failure::environment(
            format!("cannot read the folder {}: {error}", folder.display()),
            "name the run files themselves",
        )
    })?;
    let mut paths: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|found| found == EXTENSION))
        .collect();
    paths.sort();
    if paths.is_empty() {
        return Err(Failure::bad_input(
            format!("there is no run file in {}", folder.display()),
            format!("run files end in .{EXTENSION}; those of a place are in {SCRATCH_NAME}/runs/"),
        ));
    }
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_sort_by_time_and_have_no_odd_characters() {
        let name = RunName::now("../x y");
        assert!(name.file_name().ends_with(".run"));
        assert!(!name.id.contains(['/', ' ', ':', '.']), "{}", name.id);
        assert!(name.id.starts_with("20"));
    }
}
