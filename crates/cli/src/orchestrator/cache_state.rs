//! Puts a store into the cache state that a case is labelled with, and asks the kernel what is in
//! memory right before the first slice. Whether the slices then were in that state is judged by
//! what they read from the device: [`sqlitmus_core::run::Sample::is_in`].

use std::path::{Path, PathBuf};

use sqlitmus_core::case::CacheState;

use crate::machine::drop_caches::drop_caches;
use crate::machine::page_cache::{self, PageCacheError, Residency};

/// Opening a store reads its head, and the kernel reads on: so many pages, or this share of all,
/// may be in memory when a cold slice begins.
const COLD_PAGES_MAX: u64 = 1024;
const COLD_PAGES_MAX_PER_MILLE: u64 = 20;

/// Of a folder of files, at most so many are asked for before warm slices.
const SAMPLED_FILES: usize = 1000;

/// Why a store is not in the state that it was to be in.
#[derive(Debug)]
pub enum NotInState {
    /// The machine or the user's rights lack something: the arm is skipped.
    Lacks(String),
    /// It was tried, and something stayed in memory.
    Stayed(String),
}

/// The files of one store.
#[derive(Debug, Clone)]
pub struct StoreFiles {
    /// The store, and files that belong to it and are there.
    pub paths: Vec<PathBuf>,
}

impl StoreFiles {
    /// Has the content of all files written back and dropped from memory and, for a fully cold
    /// store, what the filesystem knows of them.
    ///
    /// # Errors
    /// It cannot be done here, or something stayed.
    pub fn make_cold(&self, state: CacheState, may_drop_caches: bool) -> Result<(), NotInState> {
        if self.paths.is_empty() {
            let reason = format!("it has no files, and cannot be {state}");
            return Err(NotInState::Lacks(reason));
        }
        if state == CacheState::FullyCold && !may_drop_caches {
            let reason = "fully-cold drops what the kernel caches of the whole machine: allow it \
                          with --drop-caches";
            return Err(NotInState::Lacks(reason.to_owned()));
        }
        for path in &self.paths {
            match page_cache::evict(path) {
                Ok(Some(stayed)) if !is_cold(&stayed, 0) => return Err(stayed_in_memory(&stayed)),
                Ok(_) => {}
                Err(error) => return Err(NotInState::Stayed(error.to_string())),
            }
        }
        if state == CacheState::FullyCold {
            drop_caches().map_err(NotInState::Lacks)?;
        }
        Ok(())
    }

    /// What of a cold store is in memory, after it was opened and before its slice. `None` if
    /// that cannot be told.
    ///
    /// Asking opens every file, which would bring the inodes of a folder of files into memory: a
    /// fully cold one is not asked.
    ///
    /// # Errors
    /// More than opening a store explains.
    pub fn check_cold(&self, state: CacheState) -> Result<Option<Residency>, NotInState> {
        if state == CacheState::FullyCold && self.paths.iter().any(|path| path.is_dir()) {
            return Ok(None);
        }
        match self.residency(usize::MAX) {
            Some(found) if !is_cold(&found, COLD_PAGES_MAX) => Err(stayed_in_memory(&found)),
            found => Ok(found),
        }
    }

    /// What of a warm store is in memory, before its first slice; of a folder a sample. What has
    /// been reclaimed since the lead-in is read in again. `None` if it cannot be told.
    #[must_use]
    pub fn check_warm(&self) -> Option<Residency> {
        let found = self.residency(SAMPLED_FILES)?;
        if found.is_fully_cached() {
            return Some(found);
        }
        for path in &self.paths {
            // What cannot be read now, the slices will tell.
            let _ = page_cache::warm(path);
        }
        self.residency(SAMPLED_FILES)
    }

    /// What of a store is in memory, of a folder in a sample; `None` if it cannot be told.
    #[must_use]
    pub fn look(&self) -> Option<Residency> {
        self.residency(SAMPLED_FILES)
    }

    fn residency(&self, files_max: usize) -> Option<Residency> {
        let of = |path: &Path| -> Result<Residency, PageCacheError> {
            page_cache::residency_of_sample(path, files_max)
        };
        self.paths.iter().try_fold(Residency::NONE, |sum, path| {
            of(path).ok().map(|found| sum.plus(found))
        })
    }
}

fn is_cold(found: &Residency, pages_max: u64) -> bool {
    let share = found.pages * COLD_PAGES_MAX_PER_MILLE / 1000;
    let allowed = if pages_max == 0 {
        0
    } else {
        pages_max.max(share)
    };
    found.cached_pages <= allowed
}

fn stayed_in_memory(found: &Residency) -> NotInState {
    NotInState::Stayed(format!(
        "{} of {} pages are in memory",
        found.cached_pages, found.pages
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(path: &Path) -> StoreFiles {
        StoreFiles {
            paths: vec![path.to_owned()],
        }
    }

    #[test]
    fn what_has_no_files_or_no_leave_cannot_be_cold() {
        let nothing = StoreFiles { paths: Vec::new() };
        let lacks = nothing.make_cold(CacheState::DataCold, true);
        assert!(matches!(lacks, Err(NotInState::Lacks(reason)) if reason.contains("no files")));
        let folder = tempfile::tempdir().expect("a folder");
        let lacks = files(folder.path()).make_cold(CacheState::FullyCold, false);
        assert!(
            matches!(lacks, Err(NotInState::Lacks(reason)) if reason.contains("--drop-caches"))
        );
    }

    #[test]
    fn a_file_is_made_cold_and_warm_again() {
        // Beside the sources, since /tmp may be memory, which cannot be evicted.
        let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).expect("a folder");
        let path = folder.path().join("store");
        std::fs::write(&path, vec![7; 4 << 20]).expect("written");
        let store = files(&path);
        match store.make_cold(CacheState::DataCold, false) {
            Ok(()) => {}
            Err(NotInState::Lacks(reason) | NotInState::Stayed(reason)) => {
                writeln!(std::io::stderr(), "skipped: {reason}").expect("stderr");
                return;
            }
        }
        let Ok(Some(found)) = store.check_cold(CacheState::DataCold) else {
            writeln!(std::io::stderr(), "skipped: residency cannot be told").expect("stderr");
            return;
        };
        assert_eq!((found.pages, found.cached_pages), (1024, 0));
        let found = store.check_warm().expect("it was told before");
        assert_eq!(found.cached_pages, found.pages);
        assert!(!is_cold(&found, 0));
    }

    use std::io::Write;
}
