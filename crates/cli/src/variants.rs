//! Variants: SQLite libraries and workers that stand beside what is built in. A suite says
//! `library = "@NAME"`; the command line, or a folder made by `cargo xtask workers`, says which file
//! that is on this machine. Any other program that answers as a worker can measure arms, too.
//!
//! Each is asked what it is before anything is measured, in a process of its own: what is no SQLite,
//! no worker, or hangs, is found out then. What arms are added for them is
//! [`sqlitmus_core::variants`]' business.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sqlitmus_core::names::is_plain;
use sqlitmus_core::plan::{Arm, Plan};
use sqlitmus_core::settings::Settings;
use sqlitmus_core::variants::Difference;

use crate::failure::Failure;
use crate::orchestrator::worker_process::{WorkerError, WorkerProcess, WorkerProgram};
use crate::protocol::{PROTOCOL_VERSION, Request, Response};

/// Folder in which `cargo xtask workers` leaves its libraries, beside the program or one above it.
const FOLDER: &str = "sqlite-builds";

/// How a library file there ends.
const ENDING: &str = "so";

/// Name of a library that was given without one.
const UNNAMED: &str = "given";

/// Longest wait for a program to say what it is.
const INTRODUCTION: Duration = Duration::from_secs(10);

/// Libraries and workers by name.
#[derive(Debug, Clone, Default)]
pub struct Variants {
    libraries: BTreeMap<String, PathBuf>,
    workers: BTreeMap<String, Worker>,
    /// Names that the command line has given, of libraries.
    given: Vec<String>,
}

/// A program that is to measure arms.
#[derive(Debug, Clone)]
struct Worker {
    path: PathBuf,
    /// Its version, or why it cannot measure.
    introduced: Result<String, String>,
    /// Arms that it measures.
    arms: Vec<String>,
}

impl Variants {
    /// What the command line names, and the libraries that lie beside this program.
    ///
    /// # Errors
    /// A word without a path, a name that cannot be one, a path where there is nothing, or a
    /// library that is not SQLite.
    pub fn find(
        libraries: &[String],
        workers: &[String],
        own: &WorkerProgram,
    ) -> Result<Self, Failure> {
        let own = &WorkerProgram {
            path: own.path.clone(),
            timeout: own.timeout.min(INTRODUCTION),
        };
        let mut found = Self {
            libraries: built(&own.path),
            ..Self::default()
        };
        for word in libraries {
            let (name, path) = named_path(word, "--sqlite-library")?;
            let name = name.unwrap_or(UNNAMED);
            if found.given.iter().any(|known| known == name) {
                return Err(Failure::bad_input(
                    format!("two SQLite libraries are called `{name}`"),
                    "give each a name: --sqlite-library NAME=PATH",
                ));
            }
            let path = existing(path)?;
            check_library(own, &path)?;
            found.given.push(name.to_owned());
            found.libraries.insert(name.to_owned(), path);
        }
        for word in workers {
            let (name, path) = named_path(word, "--worker")?;
            let Some(name) = name else {
                return Err(Failure::bad_input(
                    format!("`--worker {word}` has no name"),
                    "NAME=PATH: an arm's name, or a new one for a copy of every baseline",
                ));
            };
            let path = existing(path)?;
            let worker = Worker {
                introduced: introduced(&WorkerProgram {
                    path: path.clone(),
                    ..own.clone()
                }),
                path,
                arms: Vec::new(),
            };
            if found.workers.insert(name.to_owned(), worker).is_some() {
                return Err(Failure::bad_input(
                    format!("two workers are called `{name}`"),
                    "give each a name of its own",
                ));
            }
        }
        Ok(found)
    }

    /// Adds the arms that the given names stand for, where the plan has none for them.
    ///
    /// # Errors
    /// There is nothing that a variant could be of.
    pub fn join(&mut self, plan: &mut Plan) -> Result<(), Failure> {
        for name in &self.given {
            if !plan.uses_library(name) {
                add(plan, name, Difference::Library)?;
            }
        }
        for (name, worker) in &mut self.workers {
            worker.arms = match plan.arm(name) {
                Some(_) => vec![name.clone()],
                None => add(plan, name, Difference::Program)?,
            };
        }
        Ok(())
    }

    /// As [`Variants::join`], for a plan that has its arms already.
    pub fn rejoin(&mut self, plan: &Plan) {
        for (name, worker) in &mut self.workers {
            let ending = format!(".{name}");
            let arms = plan.arms().map(|(_, arm)| arm.name.clone());
            worker.arms = arms
                .filter(|arm| arm == name || arm.ends_with(&ending))
                .collect();
        }
    }

    /// Facts for the run file: which file each name stands for.
    #[must_use]
    pub fn facts(&self, plan: &Plan) -> Vec<(String, String)> {
        let libraries = self
            .libraries
            .iter()
            .filter(|(name, _)| plan.uses_library(name))
            .map(|(name, path)| (format!("sqlite_library.{name}"), path.display().to_string()));
        let workers = self.workers.iter().map(|(name, worker)| {
            let version = worker.introduced.as_deref().unwrap_or("no worker");
            (
                format!("worker.{name}"),
                format!("{} ({version})", worker.path.display()),
            )
        });
        libraries.chain(workers).collect()
    }

    /// Why some of the workers cannot measure, in a sentence each.
    pub fn troubles(&self) -> impl Iterator<Item = &str> {
        let introduced = self.workers.values().map(|worker| &worker.introduced);
        introduced.filter_map(|introduced| introduced.as_ref().err().map(String::as_str))
    }

    /// The settings with the path of the library in the place of its name. A name that nothing is
    /// known of stays: the worker then says what is missing.
    #[must_use]
    pub fn with_paths(&self, settings: &Settings) -> Settings {
        let mut settings = settings.clone();
        let name = settings
            .get("library")
            .and_then(|value| value.strip_prefix('@'));
        let path = name.and_then(|name| self.libraries.get(name));
        if let Some(path) = path.and_then(|path| path.to_str()).map(str::to_owned) {
            settings.set("library", &path);
        }
        settings
    }

    /// The program that measures an arm.
    ///
    /// # Errors
    /// It is not a worker of this version.
    pub fn program(&self, arm: &Arm, own: &WorkerProgram) -> Result<WorkerProgram, String> {
        let mut workers = self.workers.values();
        let other = workers.find(|worker| worker.arms.contains(&arm.name));
        match other {
            None => Ok(own.clone()),
            Some(worker) => {
                worker.introduced.clone()?;
                Ok(WorkerProgram {
                    path: worker.path.clone(),
                    ..own.clone()
                })
            }
        }
    }
}

fn add(plan: &mut Plan, name: &str, difference: Difference) -> Result<Vec<String>, Failure> {
    let added = plan.add_variant(name, difference);
    if added.is_empty() {
        let what = match difference {
            Difference::Library => "uses SQLite",
            Difference::Program => "can be measured",
        };
        return Err(Failure::bad_input(
            format!("no arm of suite {} {what}", plan.suite),
            "`sqlitmus list` shows the suites; builds is about SQLite libraries",
        ));
    }
    Ok(added)
}

/// The libraries beside the program, by name.
fn built(own_program: &Path) -> BTreeMap<String, PathBuf> {
    let folders = own_program.ancestors().skip(1).take(2);
    let files = folders.flat_map(|folder| {
        let entries = std::fs::read_dir(folder.join(FOLDER));
        entries.into_iter().flatten().flatten()
    });
    let mut found = BTreeMap::new();
    for file in files {
        let path = file.path();
        let name = path.file_stem().and_then(|name| name.to_str());
        let is_library = path.extension().is_some_and(|ending| ending == ENDING);
        if let Some(name) = name.filter(|name| is_library && is_plain(name)) {
            found.entry(name.to_owned()).or_insert(path);
        }
    }
    found
}

/// `NAME=PATH`, or a path alone.
fn named_path<'a>(word: &'a str, option: &str) -> Result<(Option<&'a str>, &'a Path), Failure> {
    let (name, path) = match word.split_once('=') {
        // A path may have a `=` in it.
        Some((name, _)) if name.contains('/') => (None, word),
        Some((name, path)) => (Some(name), path),
        None => (None, word),
    };
    if path.is_empty() {
        return Err(Failure::bad_input(
            format!("`{option} {word}` has no path"),
            "it is NAME=PATH",
        ));
    }
    if let Some(name) = name.filter(|name| !is_plain(name)) {
        return Err(Failure::bad_input(
            format!("nothing can be called `{name}`"),
            "names are of letters, digits, `.`, `_` and `-`, and begin with a letter or a digit",
        ));
    }
    Ok((name, Path::new(path)))
}

/// The path of a file that is there, from the root on: workers work in directories of their own.
fn existing(path: &Path) -> Result<PathBuf, Failure> {
    let found = path.canonicalize().and_then(|path| {
        let is_file = path.metadata()?.is_file();
        is_file.then_some(path).ok_or_else(|| {
            std::io::Error::new(std::io::ErrorKind::InvalidInput, "it is not a file")
        })
    });
    found.map_err(|error| {
        Failure::bad_input(
            format!("cannot use {}: {error}", path.display()),
            "name a file: NAME=PATH",
        )
    })
}

/// Has a process of its own load the library and say what it is.
fn check_library(own: &WorkerProgram, path: &Path) -> Result<(), Failure> {
    let refused = |reason: String| {
        Failure::bad_input(
            reason,
            "--sqlite-library takes a shared library of SQLite, such as \
             /usr/lib/x86_64-linux-gnu/libsqlite3.so.0",
        )
    };
    let Some(library) = path.to_str() else {
        let reason = format!("{} is no text", path.display());
        return Err(refused(reason));
    };
    let request = Request::Introduce {
        library: Some(library.to_owned()),
    };
    match ask(own, &request) {
        Ok(Response::Introduced { .. }) => Ok(()),
        Ok(other) => Err(refused(format!("unexpected: {other:?}"))),
        // What the library said is one sentence; a process that ended says less.
        Err(WorkerError::Unavailable(reason) | WorkerError::Failed(reason)) => Err(refused(reason)),
        Err(error) => Err(refused(format!(
            "{} cannot be loaded: {error}",
            path.display()
        ))),
    }
}

/// The version of a program that answers as a worker of this one does; otherwise what is wrong.
fn introduced(program: &WorkerProgram) -> Result<String, String> {
    let wrong = |what: String| format!("{} {what}", program.path.display());
    let request = Request::Introduce { library: None };
    match ask(program, &request) {
        Ok(Response::Introduced {
            protocol_version: PROTOCOL_VERSION,
            sqlitmus_version,
            ..
        }) => Ok(sqlitmus_version),
        Ok(Response::Introduced {
            protocol_version,
            sqlitmus_version,
            ..
        }) => Err(wrong(format!(
            "is sqlitmus {sqlitmus_version}, whose workers speak version {protocol_version} of the \
             protocol; this one speaks {PROTOCOL_VERSION}"
        ))),
        Err(WorkerError::Failed(reason)) if reason.contains("not a request") => Err(wrong(
            "is a worker of an older sqlitmus: it does not know how to introduce itself".to_owned(),
        )),
        Ok(other) => Err(wrong(format!(
            "does not answer as a worker does: {other:?}"
        ))),
        Err(error) => Err(wrong(format!(
            "does not answer as a worker of sqlitmus does: {error}"
        ))),
    }
}

fn ask(program: &WorkerProgram, request: &Request) -> Result<Response, WorkerError> {
    WorkerProcess::start(program, None)?.ask(request)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_names_and_paths() {
        let parse = |word| named_path(word, "--worker").ok();
        assert_eq!(parse("a=/b"), Some((Some("a"), Path::new("/b"))));
        assert_eq!(parse("/b"), Some((None, Path::new("/b"))));
        assert_eq!(parse("/b=c/d"), Some((None, Path::new("/b=c/d"))));
        assert_eq!(parse("a="), None);
        assert_eq!(parse("@a=/b"), None);
    }

    #[test]
    fn built_libraries_lie_beside_the_program_or_one_above() {
        let place = tempfile::tempdir().expect("temporary directory");
        let folder = place.path().join(FOLDER);
        std::fs::create_dir(&folder).expect("folder");
        for name in ["os.so", "os.txt", "os.partial", ".hidden.so"] {
            std::fs::write(folder.join(name), b"").expect("write");
        }
        let found = built(&place.path().join("release/sqlitmus"));
        assert_eq!(found.len(), 1);
        let variants = Variants {
            libraries: found,
            ..Variants::default()
        };
        let settings = |library| Settings::from_pairs([("library", library)]);
        let with_paths = variants.with_paths(&settings("@os"));
        let path = folder.join("os.so");
        assert_eq!(with_paths.get("library"), path.to_str());
        for other in ["@none", "bundled", "/os"] {
            let same = variants.with_paths(&settings(other));
            assert_eq!(same.get("library"), Some(other));
        }
    }
}
