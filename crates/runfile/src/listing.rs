//! The runs of a directory, by their heads: what `latest` and `previous` are chosen from. Where
//! run files are kept and how they are named is the command line's business.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use sqlitmus_core::run::RunHead;

use crate::access::ReadAccess;
use crate::creation::UNFINISHED_SUFFIX;
use crate::durability_file::{self, Kind, kind};
use crate::error::RunFileError;

/// A run file, by its head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedRun {
    /// Path of the file.
    pub path: PathBuf,
    /// Head of the run.
    pub head: RunHead,
    /// What kind of run it is.
    pub kind: Kind,
    /// Name of the suite; `durability` for a run of that experiment.
    pub suite: String,
    /// Name of the scale; empty where there are none.
    pub scale: String,
}

/// The run files of a directory.
#[derive(Debug, Default)]
pub struct Listing {
    /// Those that can be read, the oldest first.
    pub runs: Vec<ListedRun>,
    /// What is wrong with the others. Files that are no run files at all are passed over.
    pub unreadable: Vec<RunFileError>,
}

/// The head of one run; costs a few pages, however large the file is.
///
/// # Errors
/// Not a run file, damaged, of a newer format, or refused by the system.
pub fn head(path: &Path) -> Result<ListedRun, RunFileError> {
    let kind = kind(path)?;
    let (head, suite, scale) = match kind {
        Kind::Measurement => ReadAccess::open(path)?.contents().head()?,
        Kind::Durability => (
            durability_file::head(path)?,
            "durability".to_owned(),
            String::new(),
        ),
    };
    Ok(ListedRun {
        path: path.to_owned(),
        head,
        kind,
        suite,
        scale,
    })
}

/// The heads of all run files in a directory, not in those below it. A directory that is missing
/// holds no runs.
///
/// # Errors
/// The directory cannot be read.
pub fn heads(directory: &Path) -> Result<Listing, RunFileError> {
    let refused = |source| RunFileError::File {
        path: directory.to_owned(),
        source,
    };
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Listing::default()),
        entries => entries.map_err(refused)?,
    };
    let mut listing = Listing::default();
    for entry in entries {
        let path = entry.map_err(refused)?.path();
        if path.to_string_lossy().ends_with(UNFINISHED_SUFFIX) {
            continue;
        }
        match head(&path) {
            Ok(run) => listing.runs.push(run),
            Err(
                RunFileError::Missing { .. }
                | RunFileError::NotAFile { .. }
                | RunFileError::NotADatabase { .. }
                | RunFileError::OtherApplication { .. },
            ) => {}
            Err(error) => listing.unreadable.push(error),
        }
    }
    // RFC 3339 in UTC sorts as text; the identity decides between runs of the same second.
    listing.runs.sort_by(|one, next| {
        let key = |run: &ListedRun| (run.head.started_utc.clone(), run.head.id.clone());
        key(one).cmp(&key(next))
    });
    Ok(listing)
}
