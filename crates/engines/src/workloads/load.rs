//! Blobs read by some threads and overwritten by another, or by several of which each has keys of its own, all at once and for a slice's time: in a
//! closed loop, or in an open one whose rate is given or a share of what the same threads did in a
//! closed loop during the lead-in. When operations begin is [`super::pacing`]'s business.
//!
//! A blob that is written meanwhile has one content or another; of what readers then consumed only
//! the length can be known. What a write's content is made of is made between operations, on the
//! writer's own time.

use std::sync::atomic::AtomicUsize;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use sqlitmus_core::arrivals::{Arrivals, Rate, due_moments};
use sqlitmus_core::case::Workload;
use sqlitmus_core::dataset::{Dataset, consume, digest, mix};
use sqlitmus_core::keys::{KeyWalk, Span, thread_offset};
use sqlitmus_core::settings::SettingsError;

use super::pacing::{Clock, Operation, Paced, RealClock, closed, open};
use super::{Meter, Preparation, Running, Stretch, counts, new_histogram, team, unfit};
use crate::engine::{EngineError, ReadBack, Session, Store};
use crate::rows::Counters;

/// An open loop works off what is left of a slice for as long again, and gives up the rest.
const GIVE_UP_SLICES: u32 = 2;

/// A prepared load.
pub(super) struct Load {
    clients: Vec<Client>,
    readers: usize,
    own: Box<dyn Session>,
    arrivals: Arrivals,
    slice: Duration,
    seed: u64,
    /// Operations a second in a closed loop: reads, writes.
    capacity: [f64; 2],
    _store: Box<dyn Store>,
}

/// One thread.
struct Client {
    session: Box<dyn Session>,
    walk: KeyWalk,
    /// Whether somebody writes while it reads.
    beside_a_writer: bool,
    latencies: Histogram<u64>,
    /// What it writes; readers have none.
    content: Option<Content>,
}

/// The next write.
struct Content {
    dataset: Dataset,
    generation: u64,
    bytes: Vec<u8>,
}

/// What one thread did.
struct Did {
    span: Span,
    paced: Paced,
    busy: u64,
    writes: bool,
}

/// How the threads of a stretch know when to begin.
enum Schedule {
    Closed,
    /// Moments of reads and of writes, each with the next that nobody has taken.
    Open([(Vec<u64>, AtomicUsize); 2]),
}

impl Load {
    pub(super) fn prepare(preparation: &Preparation<'_>) -> Result<Self, EngineError> {
        let case = preparation.case;
        let Workload::Load {
            readers,
            writers,
            arrivals,
            ..
        } = case.workload
        else {
            return Err(unfit("this is no load"));
        };
        check(preparation, readers > 0 && writers > 0)?;
        let store = open_store(preparation)?;
        let walk = preparation.walk(case.dataset.count);
        let offset = |thread, threads| thread_offset(preparation.key_offset, thread, threads);
        let mut clients = Vec::new();
        for thread in 0..readers {
            clients.push(Client::new(
                store.session()?,
                walk.starting_at(offset(thread, readers)),
                writers > 0,
            ));
        }
        for thread in 0..writers {
            // Writers of the same blob could not be told apart.
            let walk = walk.part(thread, writers, preparation.key_offset);
            let mut writer = Client::new(store.session()?, walk, true);
            writer.content = Some(Content {
                dataset: case.dataset.clone(),
                generation: 0,
                bytes: Vec::new(),
            });
            clients.push(writer);
        }
        Ok(Self {
            clients,
            readers: readers as usize,
            own: store.session()?,
            arrivals,
            slice: preparation.slice,
            seed: preparation.order_seed,
            capacity: [0.0; 2],
            _store: store,
        })
    }

    /// Has all threads work for a while.
    fn run(
        &mut self,
        schedule: &Schedule,
        generation: u64,
        length: Duration,
        meter: Option<&mut dyn Meter>,
    ) -> Result<(Vec<Did>, u64), EngineError> {
        for client in &mut self.clients {
            client.latencies.reset();
            if let Some(content) = &mut client.content {
                content.generation = generation;
            }
        }
        let clients: Vec<&mut Client> = self.clients.iter_mut().collect();
        team::run(clients, meter, |client, start| {
            client.work(schedule, start, length)
        })
    }

    /// When operations are due in a slice.
    fn schedule(&self, generation: u64) -> Schedule {
        let Arrivals::Open { pattern, rate } = self.arrivals else {
            return Schedule::Closed;
        };
        let writers = self.clients.len() > self.readers;
        let per_second = match rate {
            Rate::CapacityPercent(percent) => self
                .capacity
                .map(|capacity| capacity * f64::from(percent) / 100.0),
            Rate::PerSecond { reads, writes } => [f64::from(reads), f64::from(writes)],
        };
        let length_ns = self.slice.as_nanos() as u64;
        let moments = |which: usize, any: bool| {
            let seed = mix(self.seed ^ mix(generation ^ ((which as u64) << 60)));
            let moments = match any {
                true => due_moments(pattern, per_second[which], length_ns, seed),
                false => Vec::new(),
            };
            (moments, AtomicUsize::new(0))
        };
        Schedule::Open([moments(0, self.readers > 0), moments(1, writers)])
    }
}

impl Client {
    fn new(session: Box<dyn Session>, walk: KeyWalk, beside_a_writer: bool) -> Self {
        Self {
            session,
            walk,
            beside_a_writer,
            latencies: new_histogram(),
            content: None,
        }
    }

    fn work(
        &mut self,
        schedule: &Schedule,
        start: Instant,
        length: Duration,
    ) -> Result<Did, EngineError> {
        let length_ns = length.as_nanos() as u64;
        let mut clock = RealClock { start };
        let mut latencies = std::mem::replace(&mut self.latencies, new_histogram());
        let mut task = Task {
            span: Span {
                position: self.walk.position(),
                ..Span::default()
            },
            next: None,
            busy: 0,
            client: self,
        };
        let paced = match schedule {
            Schedule::Closed => closed(&mut clock, length_ns, &mut task, &mut latencies),
            Schedule::Open(moments) => {
                let (moments, next) = &moments[usize::from(task.client.content.is_some())];
                let give_up_ns = length_ns * u64::from(GIVE_UP_SLICES);
                open(
                    &mut clock,
                    (moments, next),
                    give_up_ns,
                    &mut task,
                    &mut latencies,
                )
            }
        }?;
        // An open loop lasts to its end, also if nothing is due any more.
        clock.wait_until(length_ns);
        let (span, busy) = (task.span, task.busy);
        // A key that was prepared and not used is the next one's.
        self.walk
            .return_to(span.position + span.operations as usize);
        self.latencies = latencies;
        Ok(Did {
            span,
            paced,
            busy,
            writes: self.content.is_some(),
        })
    }

    /// Reads so many keys, untimed.
    fn pass(&mut self, operations: u64) -> Result<Span, EngineError> {
        let mut task = Task {
            span: Span {
                position: self.walk.position(),
                ..Span::default()
            },
            next: None,
            busy: 0,
            client: self,
        };
        for _ in 0..operations {
            task.run()?;
        }
        Ok(task.span)
    }
}

/// A thread's operations, with what they came to.
struct Task<'a> {
    span: Span,
    /// The key that content was made for.
    next: Option<u64>,
    busy: u64,
    client: &'a mut Client,
}

impl Operation for Task<'_> {
    fn prepare(&mut self) {
        let Some(content) = &mut self.client.content else {
            return;
        };
        if self.next.is_none() {
            let key = self.client.walk.next_key();
            content
                .dataset
                .fill(key, content.generation, &mut content.bytes);
            self.next = Some(key);
        }
    }

    fn run(&mut self) -> Result<(), EngineError> {
        let client = &mut *self.client;
        let key = match self.next.take() {
            Some(key) => key,
            None => client.walk.next_key(),
        };
        loop {
            let mut consumed = 0;
            let done = match &client.content {
                Some(content) => write(&mut *client.session, key, &content.bytes),
                None => {
                    let only_length = client.beside_a_writer;
                    client.session.read(key, &mut |bytes| {
                        let sum = consume(bytes);
                        consumed = if only_length {
                            std::hint::black_box(sum);
                            bytes.len() as u64
                        } else {
                            sum
                        };
                    })
                }
            };
            match done {
                Ok(()) => {
                    self.span.operations += 1;
                    self.span.consumed = self.span.consumed.wrapping_add(consumed);
                    return Ok(());
                }
                // Refused after its busy timeout: begun anew, on the same clock.
                Err(error) if error.is_busy() => self.busy += 1,
                Err(error) => return Err(error),
            }
        }
    }
}

fn write(session: &mut dyn Session, key: u64, bytes: &[u8]) -> Result<(), EngineError> {
    let Some(writer) = session.writer() else {
        return Err(unfit("the engine does not write"));
    };
    writer.begin()?;
    writer.put(key, bytes)?;
    writer.commit()
}

fn open_store(preparation: &Preparation<'_>) -> Result<Box<dyn Store>, EngineError> {
    let case = preparation.case;
    let engine = crate::find(&case.engine).map_err(|error| unfit(&error.to_string()))?;
    if engine.capabilities(&case.settings).persistent {
        return engine.open(preparation.store, &case.settings);
    }
    let store = engine.create(preparation.store, &case.settings)?;
    store.load(&case.dataset, &mut |_| {})?;
    Ok(store)
}

/// Refuses settings with which the threads would wait for each other for ever, or readers meet
/// blobs that are half written.
fn check(preparation: &Preparation<'_>, mixed: bool) -> Result<(), EngineError> {
    let settings = &preparation.case.settings;
    let contradiction = |reason: &str, hint: &str| {
        Err(EngineError::Settings(SettingsError::Contradiction {
            engine: preparation.case.engine.clone(),
            reason: reason.to_owned(),
            hint: hint.to_owned(),
        }))
    };
    if mixed && settings.get("read_transaction") == Some("held") {
        return contradiction(
            "readers that hold a transaction see no write, and with a rollback journal let none in",
            "use `read_transaction = each`",
        );
    }
    if mixed && settings.get("write") == Some("truncate") {
        return contradiction(
            "readers would meet files that are empty or half full",
            "use `write = rename`, or `write = in-place`",
        );
    }
    Ok(())
}

impl Running for Load {
    fn read_back(&mut self) -> Result<ReadBack, EngineError> {
        self.own.read_back()
    }

    /// One pass over the keys by the readers, in equal parts, and a slice's time in a closed loop,
    /// which is what the threads can do.
    fn lead_in(&mut self, generation: u64) -> Result<Vec<Span>, EngineError> {
        let readers = self.readers;
        let keys = self.clients.first().map_or(0, |client| client.walk.len());
        let part = (keys as u64).div_ceil(readers.max(1) as u64);
        let clients: Vec<&mut Client> = self.clients.iter_mut().take(readers).collect();
        let (mut spans, _) = team::run(clients, None, |client, _| client.pass(part))?;
        let writes = self.clients.len() > readers;
        if !writes && !self.arrivals.is_open() {
            return Ok(spans);
        }
        let (did, _) = self.run(&Schedule::Closed, generation, self.slice, None)?;
        for (which, writes) in [false, true].into_iter().enumerate() {
            let of_kind = did.iter().filter(|did| did.writes == writes);
            self.capacity[which] = of_kind
                .filter(|did| did.paced.busy_ns > 0)
                .map(|did| did.span.operations as f64 * 1e9 / did.paced.busy_ns as f64)
                .sum();
        }
        self.settle()?;
        for (index, did) in did.iter().enumerate() {
            match spans.get_mut(index).filter(|_| index < readers) {
                // Both went on where the walk stood.
                Some(span) => {
                    span.operations += did.span.operations;
                    span.consumed = span.consumed.wrapping_add(did.span.consumed);
                }
                None => spans.push(did.span),
            }
        }
        Ok(spans)
    }

    fn slice(&mut self, generation: u64, meter: &mut dyn Meter) -> Result<Stretch, EngineError> {
        let schedule = self.schedule(generation);
        let (did, elapsed_ns) = self.run(&schedule, generation, self.slice, Some(meter))?;
        let mut counters = count(&did);
        if let Schedule::Open(moments) = &schedule {
            for (name, (moments, _)) in ["reads_due", "writes_due"].iter().zip(moments) {
                counters.insert((*name).to_owned(), moments.len() as u64);
            }
        }
        let (mut reading, mut writing) = (new_histogram(), new_histogram());
        for client in &self.clients {
            let sum = match client.content {
                None => &mut reading,
                Some(_) => &mut writing,
            };
            // All have the same bounds.
            let _ = sum.add(&client.latencies);
        }
        if !writing.is_empty() {
            for (name, share) in [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p999", 0.999)] {
                let level = format!("peak_write_ns_{name}");
                counters.insert(level, writing.value_at_quantile(share));
            }
            counters.insert("peak_write_ns".to_owned(), writing.max());
        }
        Ok(Stretch {
            lead_in: Vec::new(),
            timed: did.iter().map(|did| did.span).collect(),
            elapsed_ns,
            latencies: counts(&reading),
            counters,
        })
    }

    fn settle(&mut self) -> Result<(), EngineError> {
        match self.own.writer() {
            Some(writer) => writer.settle(),
            None => Ok(()),
        }
    }

    fn verify(&mut self, keys: &[u64]) -> Result<Vec<u64>, EngineError> {
        let mut digests = Vec::with_capacity(keys.len());
        for key in keys {
            self.own
                .read(*key, &mut |bytes| digests.push(digest(bytes)))?;
        }
        Ok(digests)
    }
}

fn count(did: &[Did]) -> Counters {
    let mut counters = Counters::new();
    let mut add = |name: &str, value: u64| {
        *counters.entry(name.to_owned()).or_default() += value;
    };
    for did in did {
        let [operations, late, skipped] = match did.writes {
            false => ["reads", "reads_late", "reads_skipped"],
            true => ["writes", "writes_late", "writes_skipped"],
        };
        add(operations, did.span.operations);
        add(late, did.paced.late);
        add(skipped, did.paced.skipped);
        add("busy", did.busy);
    }
    counters
}
