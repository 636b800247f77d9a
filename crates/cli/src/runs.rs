//! Names of runs and run files: how a new run is called, and which file `latest`, `previous` or a
//! path means.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

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

/// The run files kept in a place, oldest first.
#[must_use]
pub fn kept(place: &Path) -> Vec<PathBuf> {
    let Ok(Some(scratch)) = Scratch::find(place) else {
        return Vec::new();
    };
    let entries = std::fs::read_dir(scratch.runs_directory())
        .into_iter()
        .flatten()
        .flatten();
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|found| found == EXTENSION))
        .collect();
    paths.sort();
    paths
}

/// The run file that a word means: `latest`, `previous`, or a path.
///
/// # Errors
/// There are not so many runs in the place, or no file at the path.
pub fn find(word: &str, place: &Path) -> Result<PathBuf, Failure> {
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
    let runs = kept(place);
    let index = runs.len().checked_sub(back);
    index.map(|index| runs[index].clone()).ok_or_else(|| {
        Failure::bad_input(
            format!(
                "there is no {word} run in {}",
                place.join(SCRATCH_NAME).display()
            ),
            "`sqlitmus measure` makes one; --place DIR looks in another place",
        )
    })
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
