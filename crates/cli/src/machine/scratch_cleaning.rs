//! Cleaning a scratch directory: what is ours in it is listed or removed, run files only on request,
//! and whatever is not ours stays, with the reason.
//!
//! The layout is `scratch`'s, the judgement of each path `ownership`'s; what is said to the user is
//! left to the verb.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::loopback;
use super::owner_record::RecordReading;
use super::ownership::{self, OwnershipError, Standing};
use super::path_suffix::with_suffix;
use super::scratch::{
    CACHE_TAG, CACHE_TAG_TEXT, IGNORE, IGNORE_TEXT, LOCK, LOOPBACK, MARKER, RUNS, STORES, Scratch,
    ScratchError, failed, is_real_directory, list,
};
use super::tree_removal::TreeSize;
use crate::failure::with_causes;

/// What `clean` is asked to do.
#[derive(Clone, Copy, Debug, Default)]
pub struct CleanOptions {
    /// Remove run files too, which are the results.
    pub with_runs: bool,
    /// Remove nothing, only list what would be.
    pub list_only: bool,
}

/// Something of ours that was removed, or would be.
#[derive(Debug)]
pub struct CleanedPath {
    /// Where it was.
    pub path: PathBuf,
    /// What it took.
    pub size: TreeSize,
}

/// Something that cleaning left, with the reason.
#[derive(Debug)]
pub struct KeptPath {
    /// Where it is.
    pub path: PathBuf,
    /// Why it stays.
    pub reason: String,
}

/// What cleaning did, or with `list_only` would do.
#[derive(Debug, Default)]
pub struct CleanReport {
    /// Removed.
    pub removed: Vec<CleanedPath>,
    /// Run files that were kept because they were not asked for.
    pub kept_runs: Vec<PathBuf>,
    /// Not ours: left alone.
    pub foreign: Vec<KeptPath>,
    /// Ours, but the operating system refused.
    pub failed: Vec<KeptPath>,
    /// Whether the scratch directory itself is gone (or would be).
    pub is_scratch_removed: bool,
}

/// Removes what is ours in the scratch directory of `place`; the directory too, once it is empty.
/// `None` if there is no scratch directory.
///
/// # Errors
/// [`ScratchError::Foreign`] if `.sqlitmus` is a symbolic link or not ours, [`ScratchError::Busy`]
/// if a run measures in it. What fails for one path alone is in the report.
pub fn clean(place: &Path, options: CleanOptions) -> Result<Option<CleanReport>, ScratchError> {
    let Some(scratch) = Scratch::find(place)? else {
        return Ok(None);
    };
    let _lock = scratch.lock()?;
    let mut report = CleanReport::default();
    if !options.list_only {
        for path in owned_bases(&scratch.loopback_directory())? {
            // What is still mounted cannot be removed, which is reported below.
            let _ = loopback::release_folder(&path);
        }
    }
    clean_folder(
        &scratch.loopback_directory(),
        options.list_only,
        &mut report,
    )?;
    clean_folder(&scratch.stores_directory(), options.list_only, &mut report)?;
    if options.with_runs {
        clean_folder(&scratch.runs_directory(), options.list_only, &mut report)?;
    } else {
        report.kept_runs = owned_bases(&scratch.runs_directory())?
            .into_iter()
            .filter(|path| std::fs::symlink_metadata(path).is_ok())
            .collect();
    }
    list_foreign_in_root(&scratch, &mut report)?;
    let is_empty =
        report.kept_runs.is_empty() && report.foreign.is_empty() && report.failed.is_empty();
    if options.list_only {
        report.is_scratch_removed = is_empty;
    } else if is_empty {
        report.is_scratch_removed = remove_root(&scratch)?;
    }
    Ok(Some(report))
}

/// Removes what is ours in one folder of the layout and reports the rest.
fn clean_folder(
    folder: &Path,
    list_only: bool,
    report: &mut CleanReport,
) -> Result<(), ScratchError> {
    if !is_real_directory(folder)? {
        return Ok(());
    }
    let mut explained = BTreeSet::from([folder.join(CACHE_TAG)]);
    for path in owned_bases(folder)? {
        let sidecar = ownership::sidecar_path(&path)?;
        let cleaned = clean_path(&path, list_only);
        match cleaned {
            Ok(Some(size)) => {
                explained.extend([path.clone(), sidecar]);
                explained.extend(companions(&path));
                report.removed.push(CleanedPath { path, size });
            }
            Ok(None) => {
                explained.insert(sidecar);
            }
            Err(OwnershipError::NotOurs { path, reason }) => {
                explained.extend([path.clone(), sidecar]);
                report.foreign.push(KeptPath { path, reason });
            }
            Err(error) => {
                explained.extend([path.clone(), sidecar]);
                report.failed.push(KeptPath {
                    path,
                    reason: with_causes(&error),
                });
            }
        }
    }
    for path in list(folder)? {
        let is_staged = |base: &PathBuf| is_staged_name_of(&path, base);
        if explained.contains(&path) || explained.iter().any(is_staged) {
            continue;
        }
        report.foreign.push(KeptPath {
            path,
            reason: "it has no owner file".to_owned(),
        });
    }
    Ok(())
}

/// Removes one path of ours; `None` if only its sidecar was left.
fn clean_path(path: &Path, list_only: bool) -> Result<Option<TreeSize>, OwnershipError> {
    if let Standing::Foreign { reason } = ownership::standing(path)? {
        return Err(OwnershipError::NotOurs {
            path: path.to_path_buf(),
            reason,
        });
    }
    let size = if list_only {
        ownership::count_owned(path)?
    } else {
        ownership::remove_owned(path)?
    };
    Ok((size != TreeSize::default()).then_some(size))
}

/// The paths in a folder that have an owner file beside them, sorted.
pub(super) fn owned_bases(folder: &Path) -> Result<Vec<PathBuf>, ScratchError> {
    let base = |path: PathBuf| {
        let name = path.file_name()?.as_bytes();
        let base = name.strip_suffix(ownership::SIDECAR_SUFFIX.as_bytes())?;
        (!base.is_empty()).then(|| folder.join(OsStr::from_bytes(base)))
    };
    if !is_real_directory(folder)? {
        return Ok(Vec::new());
    }
    Ok(list(folder)?.into_iter().filter_map(base).collect())
}

fn companions(path: &Path) -> impl Iterator<Item = PathBuf> {
    let suffixes = ownership::DATABASE_COMPANIONS.iter();
    suffixes.map(|suffix| with_suffix(path, suffix))
}

/// Whether `path` is a name under which an interrupted creation of `base` left something.
fn is_staged_name_of(path: &Path, base: &Path) -> bool {
    let (path, base) = (path.as_os_str().as_bytes(), base.as_os_str().as_bytes());
    let base = base
        .strip_suffix(ownership::SIDECAR_SUFFIX.as_bytes())
        .unwrap_or(base);
    path.strip_prefix(base).is_some_and(|rest| {
        rest.starts_with(b".sqlitmus-") && rest != ownership::SIDECAR_SUFFIX.as_bytes()
    })
}

fn list_foreign_in_root(scratch: &Scratch, report: &mut CleanReport) -> Result<(), ScratchError> {
    for path in list(scratch.root())? {
        let name = path.file_name().unwrap_or_default();
        let reason = if [STORES, RUNS, LOOPBACK].iter().any(|known| name == *known) {
            if is_real_directory(&path)? {
                continue;
            }
            "it is not a directory of ours"
        } else if [MARKER, LOCK].iter().any(|known| name == *known) || is_our_ignore_file(&path) {
            continue;
        } else {
            "sqlitmus keeps nothing under this name"
        };
        report.foreign.push(KeptPath {
            path,
            reason: reason.to_owned(),
        });
    }
    Ok(())
}

fn is_our_ignore_file(path: &Path) -> bool {
    let is_file = std::fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_file());
    let name = path.file_name().unwrap_or_default();
    is_file && name == IGNORE && std::fs::read_to_string(path).is_ok_and(|text| text == IGNORE_TEXT)
}

/// Removes the layout of an otherwise empty scratch directory. `false` if the directory itself
/// stays because it was there before us.
fn remove_root(scratch: &Scratch) -> Result<bool, ScratchError> {
    let is_adopted = match scratch.marker()? {
        RecordReading::Found { record, .. } => record.adopted,
        _ => return Ok(false),
    };
    let remove_file = |path: PathBuf| match std::fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(failed("remove", &path)(error))
        }
        _ => Ok(()),
    };
    let remove_folder = |path: &Path| match std::fs::remove_dir(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed("remove", path)(error)),
        _ => Ok(()),
    };
    let tag = scratch.stores_directory().join(CACHE_TAG);
    if std::fs::read_to_string(&tag).is_ok_and(|text| text == CACHE_TAG_TEXT) {
        remove_file(tag)?;
    }
    remove_folder(&scratch.stores_directory())?;
    remove_folder(&scratch.runs_directory())?;
    remove_folder(&scratch.loopback_directory())?;
    // The marker goes last of the files, so that an interrupted cleaning can be repeated.
    for name in [IGNORE, LOCK, MARKER] {
        remove_file(scratch.root().join(name))?;
    }
    if !is_adopted {
        remove_folder(scratch.root())?;
    }
    Ok(!is_adopted)
}
