//! The worker: one trial in a process of its own. Opens the store, makes keys and content before
//! the clock starts, runs the slices it is told to run, and reports what it consumed.
//!
//! It decides nothing: order, number and length of slices come from the orchestrator.

mod crew_trial;
mod index_trial;
mod introduction;
mod lifecycle_trial;
pub mod scanned;
mod team_trial;

use std::collections::BTreeMap;
use std::io::{BufRead, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use sqlitmus_core::case::{Case, Workload};
use sqlitmus_core::dataset::{Dataset, SizeDistribution, consume, digest};
use sqlitmus_core::keys::KeyWalk;
use sqlitmus_core::latencies::Latencies;
use sqlitmus_core::run::is_level;
use sqlitmus_engines::ageing::AgedContent;
use sqlitmus_engines::own_files::{FileContent, FileList};
use sqlitmus_engines::{EngineError, Session, Store};

use crate::failure::with_causes;
use crate::machine::device_reads::DeviceReads;
use crate::machine::kernel_files::KernelFiles;
use crate::machine::resources::{ResourceSnapshot, reset_peak_memory};
use crate::machine::system_calls::SystemCallCounter;
use crate::machine::{own_program, processor};
use crate::protocol::{PROTOCOL_VERSION, Preparation, Request, Response, Span};
use crate::slowdown::Slowdown;
use crate::stores::list_beside;
use crew_trial::CrewTrial;
pub use index_trial::GENERATED_TREE;
use team_trial::TeamTrial;

/// Latencies are recorded up to this; longer ones count as this.
const LONGEST_LATENCY_NS: u64 = 60_000_000_000;

/// Digits kept of a latency: two, which is within 1%, keep the histogram at some 30 kB, so that
/// recording does not push the engine's data out of the processor's cache.
const LATENCY_DIGITS: u8 = 2;

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
    session: Box<dyn Session>,
    walk: KeyWalk,
    latencies: Histogram<u64>,
    lead_in_batch: Batch,
    batch: Batch,
    slowdown: Slowdown,
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

/// Content of the batch that is written next, made before the clock starts.
#[derive(Default)]
struct Batch {
    bytes: Vec<u8>,
    entries: Vec<(u64, std::ops::Range<usize>)>,
}

/// Counters at one moment.
struct Counters {
    device: Option<DeviceReads>,
    engine: BTreeMap<&'static str, u64>,
    process: ResourceSnapshot,
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
        let count = case.dataset.count as u32;
        let keys = case.workload.order().keys(count, preparation.order_seed);
        let trial = Self {
            walk: KeyWalk::new(keys, preparation.key_offset),
            session,
            latencies: new_histogram(),
            lead_in_batch: Batch::default(),
            batch: Batch::default(),
            slowdown: Slowdown::new(preparation.slowdown),
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
        let operations = self.walk.len() as u64;
        let read = self.read_untimed(|done| done < operations)?;
        let mut written = None;
        if let Workload::Overwrite { operations, .. } = self.preparation.case.workload {
            // Somewhat more than any slice will write, so that no slice has to grow a journal.
            let operations = operations + operations / 10 + 1;
            let dataset = &self.preparation.case.dataset;
            written = Some(
                self.batch
                    .fill(dataset, &mut self.walk, operations, generation),
            );
            let session = self.session.as_mut();
            write_batch(session, &self.batch, None, &mut self.slowdown)?;
            self.settle()?;
        }
        Ok(Response::LedIn { read, written })
    }

    fn slice(&mut self, generation: u64) -> Result<Response, EngineError> {
        self.latencies.reset();
        match self.preparation.case.workload {
            Workload::Read { .. } => self.reading_slice(),
            Workload::Overwrite { operations, .. } => self.writing_slice(operations, generation),
            _ => Err(EngineError::Unavailable(
                "this trial is about blobs".to_owned(),
            )),
        }
    }

    fn reading_slice(&mut self) -> Result<Response, EngineError> {
        let lead_in_ns = Duration::from_nanos(self.preparation.slice_lead_in_ns);
        let slice_ns = Duration::from_nanos(self.preparation.slice_ns);
        let begin_lead_in = Instant::now();
        let lead_in = self.read_untimed(|_| begin_lead_in.elapsed() < lead_in_ns)?;
        let position = self.walk.position();
        let longest = self.preparation.slice_operations_max.unwrap_or(u64::MAX);
        let mut operations = 0;
        let mut consumed = 0u64;
        let before = self.counters();
        // One clock reading an operation: the end of one is the start of the next.
        let start = Instant::now();
        self.slowdown.begin(start);
        let mut previous = start;
        let end = loop {
            let key = self.walk.next_key();
            self.session.read(key, &mut |bytes| {
                consumed = consumed.wrapping_add(consume(bytes));
            })?;
            let now = self.slowdown.after(Instant::now());
            self.latencies
                .saturating_record((now - previous).as_nanos() as u64);
            previous = now;
            operations += 1;
            if now - start >= slice_ns || operations >= longest {
                break now;
            }
        };
        let resources = self.used_since(&before);
        Ok(Response::Sliced {
            lead_in,
            resources,
            timed: Span {
                position,
                operations,
                consumed,
            },
            elapsed_ns: (end - start).as_nanos() as u64,
            latencies: counts(&self.latencies),
        })
    }

    fn writing_slice(&mut self, operations: u64, generation: u64) -> Result<Response, EngineError> {
        let dataset = &self.preparation.case.dataset;
        // Some untimed writes: the other arms have emptied the processor's caches. The content of
        // both batches is made before, since making it empties them too.
        let lead_in_operations = (operations / 50).clamp(1, 50);
        let lead_in =
            self.lead_in_batch
                .fill(dataset, &mut self.walk, lead_in_operations, generation);
        let timed = self
            .batch
            .fill(dataset, &mut self.walk, operations, generation);
        write_batch(
            self.session.as_mut(),
            &self.lead_in_batch,
            None,
            &mut self.slowdown,
        )?;
        let before = self.counters();
        let session = self.session.as_mut();
        let elapsed_ns = write_batch(
            session,
            &self.batch,
            Some(&mut self.latencies),
            &mut self.slowdown,
        )?;
        Ok(Response::Sliced {
            lead_in,
            resources: self.used_since(&before),
            timed,
            elapsed_ns,
            latencies: counts(&self.latencies),
        })
    }

    fn count(&mut self, generation: u64) -> Result<Response, EngineError> {
        // Content is made before: what that asks of the system is not the engine's.
        let batch = match self.preparation.case.workload {
            Workload::Overwrite { operations, .. } => {
                let dataset = &self.preparation.case.dataset;
                let walk = &mut self.walk;
                Some(self.batch.fill(dataset, walk, operations, generation))
            }
            _ => None,
        };
        // Without the right to count, the operations are done all the same.
        let counter = SystemCallCounter::of_this_thread()
            .and_then(|counter| counter.start().map(|()| counter))
            .ok();
        let span = match batch {
            None => self.read_untimed(|done| done < COUNTED_READS)?,
            Some(span) => {
                write_batch(self.session.as_mut(), &self.batch, None, &mut self.slowdown)?;
                span
            }
        };
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
        if let Some(writer) = self.session.writer() {
            writer.settle()?;
        }
        sync_filesystem(split(&self.preparation.store).1)?;
        Ok(Response::Settled {
            elapsed_ns: start.elapsed().as_nanos() as u64,
        })
    }

    fn finish(&mut self, verify: &[u64]) -> Result<Response, EngineError> {
        let mut digests = Vec::with_capacity(verify.len());
        for key in verify {
            self.session
                .read(*key, &mut |bytes| digests.push(digest(bytes)))?;
        }
        Ok(Response::Finished { digests })
    }

    /// All counters, right before a slice. The device's and the engine's are read first: what that
    /// takes is not to be counted as the slice's.
    fn counters(&mut self) -> Counters {
        // Worth their time only where reads reach the device.
        let counts_device = self.preparation.case.cache.is_cold();
        Counters {
            device: counts_device.then(|| self.device_reads()).flatten(),
            engine: self.session.counters(),
            process: ResourceSnapshot::now(),
        }
    }

    fn device_reads(&self) -> Option<DeviceReads> {
        let store = split(&self.preparation.store).1;
        DeviceReads::of(store, &KernelFiles::of_this_machine())
    }

    /// What was used since, by name with unit.
    fn used_since(&mut self, before: &Counters) -> BTreeMap<String, u64> {
        let process = ResourceSnapshot::now().since(&before.process);
        let mut used: BTreeMap<String, u64> = process
            .named()
            .map(|(name, value)| (name.to_owned(), value))
            .collect();
        for (name, value) in self.session.counters() {
            let earlier = if is_level(name) {
                0
            } else {
                before.engine.get(name).copied().unwrap_or(0)
            };
            used.insert(name.to_owned(), value.saturating_sub(earlier));
        }
        let device = before.device.zip(self.device_reads());
        if let Some(reads) = device.map(|(before, after)| after.since(before)) {
            used.insert("device_read_requests".to_owned(), reads.requests);
            used.insert("whole_device_read_bytes".to_owned(), reads.bytes);
        }
        used
    }

    /// Reads on in the walk while `more` says so, given the number of operations done.
    fn read_untimed(&mut self, more: impl Fn(u64) -> bool) -> Result<Span, EngineError> {
        let mut span = Span {
            position: self.walk.position(),
            operations: 0,
            consumed: 0,
        };
        while more(span.operations) {
            let key = self.walk.next_key();
            self.session.read(key, &mut |bytes| {
                span.consumed = span.consumed.wrapping_add(consume(bytes));
            })?;
            span.operations += 1;
        }
        Ok(span)
    }
}

/// Writes a batch; returns nanoseconds from the start to the end of the commit. The latency of an
/// operation is that of its `put`; what the commit of the whole batch takes is in the total alone.
fn write_batch(
    session: &mut dyn Session,
    batch: &Batch,
    mut latencies: Option<&mut Histogram<u64>>,
    slowdown: &mut Slowdown,
) -> Result<u64, EngineError> {
    let Some(writer) = session.writer() else {
        return Err(EngineError::Unavailable(
            "the engine does not write".to_owned(),
        ));
    };
    let start = Instant::now();
    slowdown.begin(start);
    writer.begin()?;
    let mut previous = Instant::now();
    for (key, range) in &batch.entries {
        writer.put(*key, &batch.bytes[range.clone()])?;
        let now = slowdown.after(Instant::now());
        if let Some(latencies) = &mut latencies {
            latencies.saturating_record((now - previous).as_nanos() as u64);
        }
        previous = now;
    }
    writer.commit()?;
    let end = slowdown.wait(Instant::now());
    Ok((end - start).as_nanos() as u64)
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

/// A histogram as counts by latency.
fn counts(histogram: &Histogram<u64>) -> Latencies {
    let buckets = histogram.iter_recorded();
    Latencies(
        buckets
            .map(|bucket| (bucket.value_iterated_to(), bucket.count_at_value()))
            .collect(),
    )
}

impl Batch {
    /// Makes the content of the next `operations` keys of a walk; returns where they stand.
    fn fill(
        &mut self,
        dataset: &Dataset,
        walk: &mut KeyWalk,
        operations: u64,
        generation: u64,
    ) -> Span {
        let span = Span {
            position: walk.position(),
            operations,
            consumed: 0,
        };
        self.bytes.clear();
        self.entries.clear();
        for _ in 0..operations {
            let key = walk.next_key();
            let start = self.bytes.len();
            self.bytes.resize(start + dataset.value_bytes(key), 0);
            dataset.fill_slice(key, generation, &mut self.bytes[start..]);
            self.entries.push((key, start..self.bytes.len()));
        }
        span
    }
}

fn new_histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LONGEST_LATENCY_NS, LATENCY_DIGITS)
        .expect("constant bounds are valid")
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
