//! The process that touches a store: it makes one, writes to it until it is killed, or looks at what
//! is left of one. It is a process of its own so that it can be killed, and so that a damaged store
//! which crashes its engine crashes nothing else.

use std::io::{self, Read, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use sqlitmus_core::dataset::mix;
use sqlitmus_core::durability::{Batches, Found, KeyFinding, StoreFinding, examine};
use sqlitmus_engines::{Content, Engine, EngineError, Session, Writer};

use super::job::{Filled, Job, Task};
use crate::failure::with_causes;

/// Does the job on standard input. `false` if it could not be done.
pub fn serve(input: &mut impl Read, output: &mut impl Write) -> bool {
    let mut text = String::new();
    let job = match input.read_to_string(&mut text) {
        Ok(_) => serde_json::from_str::<Job>(&text).map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    };
    let done = job.and_then(|job| {
        let engine = sqlitmus_engines::find(&job.engine).map_err(|error| error.to_string())?;
        match &job.task {
            Task::Fill => answer(output, &fill(engine, &job)),
            Task::Check => answer(output, &check(engine, &job)),
            Task::Write { .. } => write(engine, &job, output).map_err(|error| with_causes(&error)),
        }
    });
    match done {
        Ok(()) => true,
        Err(reason) => {
            // Standard error is all that is left to say it on.
            let _ = writeln!(io::stderr(), "{reason}");
            false
        }
    }
}

fn answer(output: &mut impl Write, value: &impl serde::Serialize) -> Result<(), String> {
    let text = serde_json::to_string(value).map_err(|error| error.to_string())?;
    let written = output
        .write_all(text.as_bytes())
        .and_then(|()| output.flush());
    written.map_err(|error| error.to_string())
}

/// The first content of all keys.
struct Filling(Batches);

impl Content for Filling {
    fn count(&self) -> u64 {
        self.0.keys
    }

    fn fill(&self, key: u64, buffer: &mut Vec<u8>) -> io::Result<()> {
        *buffer = self.0.value(key, 0);
        Ok(())
    }
}

fn fill(engine: &dyn Engine, job: &Job) -> Filled {
    let filled = || {
        let store = engine.create(&job.path, &job.settings)?;
        store.load(&Filling(job.batches), &mut |_| {})?;
        drop(store);
        let store = engine.open(&job.path, &job.settings)?;
        let mut session = store.session()?;
        session.read_back()
    };
    match filled() {
        Ok(read_back) => Filled::Done(read_back),
        Err(EngineError::Unavailable(reason)) => Filled::Unavailable(reason),
        Err(error) => Filled::Failed(with_causes(&error)),
    }
}

/// Writes until killed, or until nobody hears the acknowledgements.
fn write(engine: &dyn Engine, job: &Job, output: &mut impl Write) -> Result<(), EngineError> {
    let Task::Write {
        pause_ns,
        settle_every,
        lag,
    } = job.task
    else {
        return Ok(());
    };
    let store = engine.open(&job.path, &job.settings)?;
    let mut session = store.session()?;
    let mut acknowledge = |batch: u64| {
        output
            .write_all(&batch.to_le_bytes())
            .and_then(|()| output.flush())
            .map_err(EngineError::io("acknowledge a commit to", &job.path))
    };
    acknowledge(0)?;
    let mut random = job.batches.seed;
    for batch in 1.. {
        if lag > 0 {
            acknowledge(batch)?;
        }
        if batch > lag {
            write_batch(session.as_mut(), &job.batches, batch - lag, &job.path)?;
        }
        if lag == 0 {
            acknowledge(batch)?;
        }
        if batch % settle_every == 0 {
            writer(session.as_mut(), &job.path)?.settle()?;
        }
        random = mix(random);
        pause(pause_ns, random);
    }
    Ok(())
}

fn writer<'a>(
    session: &'a mut dyn Session,
    path: &Path,
) -> Result<&'a mut dyn Writer, EngineError> {
    let reason = || io::Error::from(io::ErrorKind::Unsupported);
    session
        .writer()
        .ok_or_else(|| EngineError::io("write to", path)(reason()))
}

fn write_batch(
    session: &mut dyn Session,
    batches: &Batches,
    batch: u64,
    path: &Path,
) -> Result<(), EngineError> {
    let blobs = batches
        .keys_of(batch)
        .into_iter()
        .map(|key| (key, batches.value(key, batch)));
    let blobs: Vec<_> = blobs.collect();
    let writer = writer(session, path)?;
    writer.begin()?;
    for (key, value) in &blobs {
        writer.put(*key, value)?;
    }
    writer.commit()
}

/// Waits for a time that is exponentially distributed, so that cuts meet the writer at work and idle.
fn pause(mean_ns: u64, random: u64) {
    if mean_ns == 0 {
        return;
    }
    let unit = ((random >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
    std::thread::sleep(Duration::from_nanos((mean_ns as f64 * -unit.ln()) as u64));
}

/// Opens the store as its engine does after a crash, and looks at everything.
fn check(engine: &dyn Engine, job: &Job) -> StoreFinding {
    let mut finding = StoreFinding::default();
    let started = Instant::now();
    if let Err(error) = read_all(engine, job, &mut finding) {
        finding.open_error = Some(with_causes(&error));
        finding.keys.clear();
    }
    finding.recover_ns = started.elapsed().as_nanos() as u64;
    if finding.open_error.is_none() {
        finding.integrity_error = integrity_error(&job.engine, &job.path);
    }
    finding.stray_files = stray_files(engine, job);
    finding
}

fn read_all(engine: &dyn Engine, job: &Job, finding: &mut StoreFinding) -> Result<(), EngineError> {
    let store = engine.open(&job.path, &job.settings)?;
    let mut session = store.session()?;
    for key in 1..=job.batches.keys {
        let mut found = Found::Missing;
        let read = session.read(key, &mut |bytes| found = examine(key, bytes));
        match read {
            Ok(()) | Err(EngineError::Missing { .. }) => {}
            Err(error) => {
                found = Found::Unreadable;
                finding
                    .read_error
                    .get_or_insert_with(|| with_causes(&error));
            }
        }
        finding.keys.push(KeyFinding { key, found });
    }
    Ok(())
}

/// What the store's own check says is wrong, for engines that have one.
fn integrity_error(engine: &str, path: &Path) -> Option<String> {
    match engine {
        "sqlite" => {
            let check = || {
                let database = rusqlite::Connection::open(path)?;
                database.query_row("PRAGMA integrity_check(1)", [], |row| {
                    row.get::<_, String>(0)
                })
            };
            match check() {
                Ok(verdict) if verdict == "ok" => None,
                Ok(verdict) => Some(verdict),
                Err(error) => Some(error.to_string()),
            }
        }
        "packfile" => {
            let verified = sqlitmus_engines::packfile::verify(path);
            verified.err().map(|error| with_causes(&error))
        }
        "external" | "hybrid" => match sqlitmus_engines::external::examine(path) {
            Ok(reason) => reason,
            Err(error) => Some(with_causes(&error)),
        },
        _ => None,
    }
}

/// Files that are neither the store nor belong to it, and in a folder of files, names of no blob.
fn stray_files(engine: &dyn Engine, job: &Job) -> u64 {
    let names = |folder: &Path| {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect::<Vec<_>>()
    };
    let companions = engine.companions(&job.path);
    let folder = job.path.parent().unwrap_or(Path::new("."));
    let is_ours =
        |path: &Path| *path == job.path || companions.iter().any(|companion| companion == path);
    let mut strays = names(folder).iter().filter(|path| !is_ours(path)).count();
    if matches!(engine.name(), "external" | "hybrid") {
        // What cannot be looked at was told of already.
        let inside = sqlitmus_engines::external::stray_files(&job.path);
        return strays as u64 + inside.unwrap_or(0);
    }
    if engine.name() == "files" {
        let is_blob = |path: &Path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.chars().all(|letter| letter.is_ascii_digit())
        };
        strays += names(&job.path)
            .iter()
            .filter(|path| !is_blob(path))
            .count();
    }
    strays as u64
}
