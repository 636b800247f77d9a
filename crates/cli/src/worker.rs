//! The worker: one trial in a process of its own. Opens the store, makes keys and content before
//! the clock starts, runs the slices it is told to run, and reports what it consumed.
//!
//! It decides nothing: order, number and length of slices come from the orchestrator.

mod crew_trial;
mod index_trial;
mod introduction;
mod lifecycle_trial;
mod meter;
pub mod scanned;
mod team_trial;

use std::io::{BufRead, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sqlitmus_core::case::Case;
use sqlitmus_core::dataset::SizeDistribution;
use sqlitmus_engines::ageing::AgedContent;
use sqlitmus_engines::own_files::{FileContent, FileList};
use sqlitmus_engines::workloads::{self, BlobPreparation, RunningBlobs};
use sqlitmus_engines::{EngineError, Store};

use crate::failure::with_causes;
use crate::machine::device_reads::StoreDevice;
use crate::machine::resources::reset_peak_memory;
use crate::machine::system_calls::SystemCallCounter;
use crate::machine::{own_program, processor};
use crate::protocol::{PROTOCOL_VERSION, Preparation, Request, Response};
use crate::slowdown::Slowdown;
use crate::stores::list_beside;
use crew_trial::CrewTrial;
pub use index_trial::GENERATED_TREE;
use meter::TrialMeter;
use team_trial::TeamTrial;

/// Reads whose system calls are counted.
const COUNTED_READS: u64 = 256;

/// Answers requests until there are no more; says whether all went well.
pub fn serve(requests: &mut dyn BufRead, responses: &mut dyn Write) -> bool {
    serve_with(requests, responses, &mut Worker::answer)
}

/// As [`serve`], with something of the caller's around every answer.
fn serve_with(
    requests: &mut dyn BufRead,
    responses: &mut dyn Write,
    answer: &mut dyn FnMut(&mut Worker, Request) -> Response,
) -> bool {
    let mut worker = Worker::default();
    let mut line = String::new();
    loop {
        line.clear();
        match requests.read_line(&mut line) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(_) => return false,
        }
        let response = match serde_json::from_str(&line) {
            Ok(request) => answer(&mut worker, request),
            Err(error) => failed(format!("not a request: {error}")),
        };
        if send(&response, responses).is_err() {
            return false;
        }
        match response {
            Response::Finished { .. } => return true,
            Response::Unavailable { .. } | Response::Failed { .. } => return false,
            _ => {}
        }
    }
}

fn send(response: &Response, responses: &mut dyn Write) -> std::io::Result<()> {
    serde_json::to_writer(&mut *responses, response)?;
    responses.write_all(b"\n")?;
    responses.flush()
}

/// A worker, apart from where its requests come from.
#[derive(Default)]
pub struct Worker {
    trial: Option<Trial>,
    /// The trial of a workload that may have several threads.
    team: Option<TeamTrial>,
    /// The trial of a workload whose readers are processes.
    crew: Option<CrewTrial>,
}

impl Worker {
    /// Does what a request asks for.
    pub fn answer(&mut self, request: Request) -> Response {
        if let Request::Introduce { library } = &request {
            return introduction::answer(library.as_deref());
        }
        if let Some(crew) = &mut self.crew {
            return answered(crew.answer(&request));
        }
        if let Some(team) = &mut self.team {
            return answered(team.answer(request));
        }
        let result = match (request, self.trial.as_mut()) {
            (Request::Prepare(preparation), None) if preparation.case.workload.has_processes() => {
                CrewTrial::prepare(*preparation).map(|(crew, response)| {
                    self.crew = Some(crew);
                    response
                })
            }
            (Request::Prepare(preparation), None)
                if !preparation.case.workload.is_about_blobs() =>
            {
                TeamTrial::prepare(*preparation).map(|(team, response)| {
                    self.team = Some(team);
                    response
                })
            }
            (Request::Prepare(preparation), None) => {
                Trial::prepare(*preparation).map(|(trial, response)| {
                    self.trial = Some(trial);
                    response
                })
            }
            (Request::LeadIn { generation }, Some(trial)) => trial.lead_in(generation),
            (Request::Slice { generation }, Some(trial)) => trial.slice(generation),
            (Request::Settle, Some(trial)) => trial.settle(),
            (Request::Count { generation }, Some(trial)) => trial.count(generation),
            (Request::Finish { verify }, Some(trial)) => trial.finish(&verify),
            (request, _) => return failed(format!("out of order: {request:?}")),
        };
        answered(result)
    }
}

fn answered(result: Result<Response, EngineError>) -> Response {
    result.unwrap_or_else(|error| match error {
        EngineError::Unavailable(reason) => Response::Unavailable { reason },
        other => Response::Failed {
            reason: with_causes(&other),
            environment: other.is_environment(),
        },
    })
}

fn failed(reason: String) -> Response {
    Response::Failed {
        reason,
        environment: false,
    }
}

/// A trial under way.
struct Trial {
    preparation: Preparation,
    running: Box<dyn RunningBlobs>,
    /// What its device reads, where a slice's reads are to reach it.
    device: Option<StoreDevice>,
}

/// Fills a store that nothing outlives, with what the other stores of the dataset beside it hold.
fn load(store: &dyn Store, case: &Case, path: &Path) -> Result<(), EngineError> {
    let dataset = &case.dataset;
    if case.age > 0 {
        // In memory nothing is left of an object that was replaced.
        let content = AgedContent {
            dataset: dataset.clone(),
            age: case.age,
        };
        return store.load(&content, &mut |_| {});
    }
    let list = match &dataset.size {
        SizeDistribution::Files(_) => list_beside(path),
        _ => None,
    };
    match list {
        Some(list) => {
            let content = FileContent(Arc::new(FileList::read(&list)?));
            store.load(&content, &mut |_| {})
        }
        None => store.load(dataset, &mut |_| {}),
    }
}

impl Trial {
    fn prepare(preparation: Preparation) -> Result<(Self, Response), EngineError> {
        check_version(&preparation)?;
        if let Some(core) = preparation.core {
            // Unpinned is slower to settle, not wrong: the attempt is enough.
            let _ = processor::pin_to_core(core);
        }
        // Paths are as short as those of a program that works in its own directory: what a path
        // costs grows with its length.
        let (directory, store) = split(&preparation.store);
        std::env::set_current_dir(directory)
            .map_err(EngineError::io("enter the directory", directory))?;
        let case = &preparation.case;
        if case.cache.is_cold() {
            // What is read from the device is to be the store, not this program.
            own_program::keep_cached();
        }
        let engine = sqlitmus_engines::find(&case.engine)
            .map_err(|error| EngineError::Unavailable(error.to_string()))?;
        let store = if engine.capabilities(&case.settings).persistent {
            engine.open(store, &case.settings)?
        } else {
            let store = engine.create(store, &case.settings)?;
            load(store.as_ref(), case, &preparation.store)?;
            store
        };
        let mut session = store.session()?;
        let read_back = session.read_back()?;
        let running = workloads::prepare_blobs(BlobPreparation {
            case,
            session,
            key_offset: preparation.key_offset,
            order_seed: preparation.order_seed,
            slice: Duration::from_nanos(preparation.slice_ns),
            slice_lead_in: Duration::from_nanos(preparation.slice_lead_in_ns),
            slice_operations_max: preparation.slice_operations_max.unwrap_or(u64::MAX),
            slowing: Slowdown::new(preparation.slowdown),
        })?;
        // Asking takes time, which is worth it only where reads are to reach the device.
        let device = case
            .cache
            .is_cold()
            .then(|| StoreDevice::of(split(&preparation.store).1))
            .flatten();
        let trial = Self {
            running,
            device,
            preparation,
        };
        // What preparing took is not the timed operations' peak.
        reset_peak_memory();
        let response = Response::Prepared {
            protocol_version: PROTOCOL_VERSION,
            read_back,
        };
        Ok((trial, response))
    }

    fn lead_in(&mut self, generation: u64) -> Result<Response, EngineError> {
        let done = self.running.lead_in(generation)?;
        if done.written.is_some() {
            self.settle()?;
        }
        Ok(Response::LedIn {
            read: done.read,
            written: done.written,
        })
    }

    fn slice(&mut self, generation: u64) -> Result<Response, EngineError> {
        let mut meter = TrialMeter::of_cold_device(self.device.as_ref());
        let stretch = self.running.slice(generation, &mut meter)?;
        let mut resources = meter.into_used();
        resources.extend(stretch.counters);
        Ok(Response::Sliced {
            lead_in: stretch.lead_in,
            timed: stretch.timed,
            elapsed_ns: stretch.elapsed_ns,
            latencies: stretch.latencies,
            resources,
        })
    }

    fn count(&mut self, generation: u64) -> Result<Response, EngineError> {
        // Content is made before: what that asks of the system is not the engine's.
        self.running.stage(generation);
        // Without the right to count, the operations are done all the same.
        let counter = SystemCallCounter::of_this_thread()
            .and_then(|counter| counter.start().map(|()| counter))
            .ok();
        let span = self.running.untimed(COUNTED_READS)?;
        let counted = counter.and_then(|counter| counter.stop().ok());
        Ok(Response::Counted {
            span,
            system_calls: counted.map(|calls| {
                calls
                    .into_iter()
                    .map(|(name, calls)| (name.to_owned(), calls))
                    .collect()
            }),
        })
    }

    fn settle(&mut self) -> Result<Response, EngineError> {
        let start = Instant::now();
        self.running.settle()?;
        sync_filesystem(split(&self.preparation.store).1)?;
        Ok(Response::Settled {
            elapsed_ns: start.elapsed().as_nanos() as u64,
        })
    }

    fn finish(&mut self, verify: &[u64]) -> Result<Response, EngineError> {
        let digests = self.running.verify(verify)?;
        Ok(Response::Finished { digests })
    }
}

/// Both sides have to speak the same protocol.
fn check_version(preparation: &Preparation) -> Result<(), EngineError> {
    if preparation.protocol_version == PROTOCOL_VERSION {
        return Ok(());
    }
    Err(EngineError::Unavailable(format!(
        "worker speaks protocol {PROTOCOL_VERSION}, orchestrator {}",
        preparation.protocol_version
    )))
}

/// A store's directory and its name in it.
fn split(store: &Path) -> (&Path, &Path) {
    match (store.parent(), store.file_name()) {
        (Some(directory), Some(name)) if directory != Path::new("") => (directory, Path::new(name)),
        _ => (Path::new("."), store),
    }
}

/// Has the filesystem of a store write everything to its device.
fn sync_filesystem(store: &std::path::Path) -> Result<(), EngineError> {
    let Ok(file) = std::fs::File::open(store) else {
        // A store that has no path (memory) has nothing to write.
        return Ok(());
    };
    crate::machine::page_cache::sync_filesystem(&file)
        .map_err(EngineError::io("sync the filesystem of", store))
}
