//! `kvtest export`: every blob of a database into a file of its own, flat or as a tree.
//!
//! The directory appears under its name when it is complete; a directory that is there already,
//! and empty, is filled where it is. Names and writing are the `files` engine's business.

use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use sqlitmus_core::settings::Settings;
use sqlitmus_engines::files::{Files, Layout};
use sqlitmus_engines::sqlite::{Connection, SqliteError};
use sqlitmus_engines::{Engine, EngineError, Session, Writer};

use super::database::Database;
use super::progress::Progress;
use super::target::Found;
use super::words::Grammar;
use super::{failures, target};
use crate::failure::Failure;
use crate::interruption;

const GRAMMAR: Grammar = Grammar {
    verb: "export",
    paths: &["DBFILE", "DIRECTORY"],
    flags: &["tree"],
    values: &[],
};

/// What a file, and a directory of up to 100 names, is rounded up to, for the space needed.
const BLOCK_BYTES: i64 = 4096;

/// What a name takes in a flat directory, about, with what makes it quick to find.
const NAME_BYTES: u64 = 32;

/// Makes the files.
///
/// # Errors
/// Bad input before anything is created; a full disk and the like later, with everything removed.
pub(super) fn run(words: &[OsString], output: &mut dyn Write) -> anyhow::Result<()> {
    let words = GRAMMAR.read(words)?;
    let (path, directory) = (words.path(0), words.path(1));
    let layout = if words.has("tree") {
        Layout::Tree
    } else {
        Layout::Flat
    };
    let found = target::require_free_for_directory(&directory)?;
    let database = Database::for_reading(&path)?;
    let mut connection = database.open_checked()?;
    let survey = Survey::of(&mut connection, &path)?;
    let place = match found {
        Found::Nothing => target::parent(&directory),
        Found::Empty => &directory,
    };
    target::require_space(place, survey.bytes, survey.inodes(layout))?;

    interruption::listen()
        .map_err(|error| failures::file("cannot listen for Ctrl-C", &error, ""))?;
    let mut export = Export::begin(&directory, found, layout)?;
    let exported = export
        .copy(&mut connection, &path, survey.count)
        .and_then(|()| export.publish(&directory, found));
    if exported.is_err() {
        export.undo(found);
    }
    exported?;
    // kvtest writes every name over the one before; this is what stands there in the end.
    let last = survey
        .highest
        .map(|key| layout.relative_path(key.unsigned_abs()));
    writeln!(
        output,
        "{}",
        last.map_or(String::new(), |name| format!("\r{}   ", name.display()))
    )?;
    Ok(())
}

/// What there is to export.
struct Survey {
    count: u64,
    highest: Option<i64>,
    folders: u64,
    bytes: u64,
}

impl Survey {
    fn of(connection: &mut Connection, path: &Path) -> Result<Self, Failure> {
        let failed = |error: SqliteError| failures::sqlite(path, &error);
        let query = format!(
            "SELECT count(*), min(k), max(k), sum((length(v)+{0}-1)/{0}) FROM kv",
            BLOCK_BYTES
        );
        let query = connection.prepare(&query).map_err(failed)?;
        let mut statement = connection.statement(query);
        let (count, lowest, highest, blocks) = match statement.step().map_err(failed)? {
            Some(row) => (row.i64(0), row.i64(1), row.i64(2), row.i64(3)),
            None => (0, 0, 0, 0),
        };
        if lowest < 0 {
            return Err(Failure::bad_input(
                format!(
                    "{} has the key {lowest}, and files are named by keys from 0 on",
                    path.display()
                ),
                format!(
                    "delete such rows: sqlite3 {} \"DELETE FROM kv WHERE k<0\"",
                    path.display()
                ),
            ));
        }
        let count = count.unsigned_abs();
        // No more folders than blobs, and no more than the keys span.
        let folders = count.min((highest / 100 - lowest / 100 + 1).unsigned_abs());
        let blocks = blocks.unsigned_abs() + folders;
        Ok(Self {
            count,
            highest: (count > 0).then_some(highest),
            folders,
            bytes: blocks * BLOCK_BYTES.unsigned_abs() + count * NAME_BYTES,
        })
    }

    /// Files and directories.
    fn inodes(&self, layout: Layout) -> u64 {
        match layout {
            Layout::Flat => self.count + 1,
            // Every hundred inner folders have one above them.
            Layout::Tree => self.count + self.folders + self.folders / 100 + 2,
        }
    }
}

/// A directory that is being filled.
struct Export {
    root: PathBuf,
    layout: Layout,
    session: Box<dyn Session>,
    /// Written so far.
    keys: Vec<i64>,
}

impl Export {
    fn begin(directory: &Path, found: Found, layout: Layout) -> Result<Self, Failure> {
        let settings = Settings::from_pairs([
            ("layout", layout.word()),
            ("api", "openat"),
            ("sync", "none"),
        ]);
        let root = match found {
            Found::Nothing => target::unfinished_name(directory)?,
            Found::Empty => directory.to_owned(),
        };
        let store = match found {
            Found::Nothing => Files.create(&root, &settings),
            Found::Empty => Files.open(&root, &settings),
        };
        let session = store.and_then(|store| store.session()).map_err(|error| {
            if found == Found::Nothing {
                let _ = fs::remove_dir(&root);
            }
            failures::engine(directory, &error)
        })?;
        Ok(Self {
            session,
            root,
            layout,
            keys: Vec::new(),
        })
    }

    fn copy(
        &mut self,
        connection: &mut Connection,
        path: &Path,
        count: u64,
    ) -> Result<(), Failure> {
        let reading = |error: SqliteError| failures::sqlite(path, &error);
        let root = self.root.clone();
        let writing = |error: EngineError| failures::engine(&root, &error);
        let query = connection
            .prepare("SELECT k, v FROM kv ORDER BY k")
            .map_err(reading)?;
        let mut statement = connection.statement(query);
        let mut progress = Progress::new();
        let writer = writer(self.session.as_mut()).map_err(writing)?;
        writer.begin().map_err(writing)?;
        while let Some(mut row) = statement.step().map_err(reading)? {
            if interruption::requested() {
                return Err(failures::interrupted(
                    "the export is not complete and was removed",
                ));
            }
            let key = row.i64(0);
            self.keys.push(key);
            let blob = row.blob(1).map_err(reading)?;
            writer.put(key.unsigned_abs(), blob).map_err(writing)?;
            progress.show(|| format!("{} of {count} blobs", self.keys.len()));
        }
        writer.commit().map_err(writing)
    }

    fn publish(&self, directory: &Path, found: Found) -> Result<(), Failure> {
        match found {
            Found::Nothing => target::publish(&self.root, directory, found),
            Found::Empty => Ok(()),
        }
    }

    /// Removes what was written, and nothing that somebody else has put there meanwhile. The
    /// failure that led here is the one to report, so no other is.
    fn undo(&mut self, found: Found) {
        if let Ok(writer) = writer(self.session.as_mut()) {
            for key in &self.keys {
                let _ = writer.delete(key.unsigned_abs());
            }
        }
        if self.layout == Layout::Tree {
            self.keys.dedup_by_key(|key| *key / 100);
            for key in &self.keys {
                let file = self.layout.relative_path(key.unsigned_abs());
                // Only empty folders can be removed so; the outer one is with the last inner one.
                for folder in file.ancestors().skip(1).take(2) {
                    let _ = fs::remove_dir(self.root.join(folder));
                }
            }
        }
        if found == Found::Nothing {
            let _ = fs::remove_dir(&self.root);
        }
    }
}

fn writer(session: &mut dyn Session) -> Result<&mut dyn Writer, EngineError> {
    session
        .writer()
        .ok_or_else(|| EngineError::Unavailable("writing files".to_owned()))
}
