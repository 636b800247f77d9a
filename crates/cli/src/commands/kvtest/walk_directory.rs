//! `run` on a directory of files: what is there, and the timed walk over it. Reading and writing
//! are the `files` engine's business.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use sqlitmus_core::settings::Settings;
use sqlitmus_engines::files::{Files, Layout, layout_of};
use sqlitmus_engines::{Engine, EngineError, Session};

use super::failures;
use super::key_sequence::KeySequence;
use super::random_bytes::RandomBytes;
use super::run_options::{KVTEST_HIGHEST_IN_DIRECTORY, RunOptions};
use super::walk::{Tally, walk};
use crate::failure::Failure;

/// Bytes that a C stream holds back: its buffer on Linux.
const STREAM_BUFFER_BYTES: usize = 4096;

/// A directory in which blobs can be found.
pub(super) struct BlobDirectory {
    path: PathBuf,
    layout: Layout,
    /// The highest key to visit.
    pub(super) highest: i64,
}

/// A walk and how long it took.
pub(super) struct DirectoryWalk {
    /// What was done.
    pub(super) tally: Tally,
    /// From the first operation to the last.
    pub(super) elapsed: Duration,
}

impl BlobDirectory {
    /// Looks into a directory, before any clock starts.
    ///
    /// # Errors
    /// There is no blob in it that the walk could find.
    pub(super) fn survey(options: &RunOptions) -> Result<Self, Failure> {
        let path = options.path.clone();
        let failed = |error: EngineError| failures::engine(&path, &error);
        let nothing = |highest: Option<i64>| {
            let (shown, asked) = (
                path.display(),
                highest.map(|key| format!(" up to {key:06}")),
            );
            Failure::bad_input(
                format!(
                    "there is no blob in {shown}: no file named like 000001 or 00/00/01{}, \
                     or only empty ones",
                    asked.unwrap_or_default()
                ),
                format!("fill a new directory: sqlitmus kvtest export test.db {shown}.new"),
            )
        };
        let layout = layout_of(&path)
            .map_err(failed)?
            .ok_or_else(|| nothing(None))?;
        let as_kvtest = options.as_kvtest.then_some(KVTEST_HIGHEST_IN_DIRECTORY);
        let given = options.highest.or(as_kvtest);
        let has_blob = |key: i64| {
            let metadata = path.join(relative_path(layout, key)).metadata();
            metadata.is_ok_and(|found| found.is_file() && found.len() > 0)
        };
        // One look at one file, where that is enough: a listing of everything would warm caches.
        if let Some(highest) = given.filter(|highest| options.start <= *highest)
            && has_blob(options.start)
        {
            return Ok(Self {
                path,
                layout,
                highest,
            });
        }
        let keys = keys(&path, layout).map_err(failed)?;
        let highest = given.or(keys.last().copied()).unwrap_or(0);
        let in_reach = keys.iter().filter(|key| (1..=highest).contains(*key));
        if in_reach.copied().any(has_blob) {
            Ok(Self {
                path,
                layout,
                highest,
            })
        } else {
            Err(nothing(given))
        }
    }

    /// Walks.
    ///
    /// # Errors
    /// A file cannot be read or written.
    pub(super) fn walk(&self, options: &RunOptions) -> Result<DirectoryWalk, Failure> {
        let keys = KeySequence::new(options.order, options.start, self.highest);
        if options.update {
            self.update(options, keys)
        } else {
            self.read(options, keys)
        }
    }

    fn session(&self, options: &RunOptions) -> Result<Box<dyn Session>, EngineError> {
        let settings = Settings::from_pairs([
            ("layout", self.layout.word()),
            ("api", "stdio"),
            (
                "write",
                if options.as_kvtest {
                    "truncate"
                } else {
                    "in-place"
                },
            ),
            ("sync", if options.fsync { "fsync" } else { "none" }),
        ]);
        Files.open(&self.path, &settings)?.session()
    }

    fn read(&self, options: &RunOptions, mut keys: KeySequence) -> Result<DirectoryWalk, Failure> {
        let failed = |error: EngineError| failures::engine(&self.path, &error);
        let mut session = self.session(options).map_err(failed)?;
        let start = Instant::now();
        let tally = walk(&mut keys, options.count, |key| {
            let mut bytes = 0;
            match session.read(key.unsigned_abs(), &mut |blob| bytes = blob.len() as u64) {
                Ok(()) | Err(EngineError::Missing { .. }) => Ok(bytes),
                Err(error) => Err(failed(error)),
            }
        })?;
        let elapsed = start.elapsed();
        Ok(DirectoryWalk { tally, elapsed })
    }

    fn update(
        &self,
        options: &RunOptions,
        mut keys: KeySequence,
    ) -> Result<DirectoryWalk, Failure> {
        let failed = |error: EngineError| failures::engine(&self.path, &error);
        let mut session = self.session(options).map_err(failed)?;
        let writer = session
            .writer()
            .ok_or_else(|| failed(EngineError::Unavailable("writing files".to_owned())))?;
        let mut random = if options.as_kvtest {
            RandomBytes::made_on_demand()
        } else {
            RandomBytes::ready()
        };
        writer.begin().map_err(failed)?;
        let start = Instant::now();
        let tally = walk(&mut keys, options.count, |key| {
            let path = self.path.join(relative_path(self.layout, key));
            let bytes = file_bytes(&path)?;
            if bytes == 0 {
                return Ok(0);
            }
            if options.as_kvtest && options.fsync {
                let written = write_and_flush_in_vain(&path, random.fresh(bytes));
                written.map_err(|error| unwritten(&path, &error))?;
            } else {
                let blob = if options.as_kvtest {
                    random.fresh(bytes)
                } else {
                    random.piece(bytes)
                };
                writer.put(key.unsigned_abs(), blob).map_err(failed)?;
            }
            Ok(bytes as u64)
        })?;
        writer.commit().map_err(failed)?;
        let elapsed = start.elapsed();
        Ok(DirectoryWalk { tally, elapsed })
    }
}

/// Where the blob of a key is below the directory. Keys of a walk are not negative.
fn relative_path(layout: Layout, key: i64) -> PathBuf {
    layout.relative_path(key.unsigned_abs())
}

/// All keys, in ascending order; files with other names are none.
fn keys(path: &Path, layout: Layout) -> Result<Vec<i64>, EngineError> {
    let settings = Settings::from_pairs([("layout", layout.word())]);
    let mut session = Files.open(path, &settings)?.session()?;
    let mut keys = Vec::new();
    session.keys(&mut |key| keys.extend(i64::try_from(key)))?;
    Ok(keys)
}

/// Size of the file to overwrite. A missing one is an error, as in kvtest: there is nothing whose
/// size could be kept.
fn file_bytes(path: &Path) -> Result<usize, Failure> {
    let metadata = fs::metadata(path).map_err(|error| unwritten(path, &error))?;
    Ok(usize::try_from(metadata.len()).unwrap_or(usize::MAX))
}

fn unwritten(path: &Path, error: &io::Error) -> Failure {
    failures::file(
        format!("cannot overwrite {}", path.display()),
        error,
        "overwrite only keys that are there, in ascending order from 1: --max-id N",
    )
}

/// kvtest's way of flushing: fsync comes while the C stream still holds back what does not fill
/// its buffer, so the end of the file is not flushed. These are the system calls it makes.
fn write_and_flush_in_vain(path: &Path, blob: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).truncate(true).open(path)?;
    let (written, held_back) = blob.split_at(blob.len() - blob.len() % STREAM_BUFFER_BYTES);
    file.write_all(written)?;
    file.sync_all()?;
    file.write_all(held_back)
}
