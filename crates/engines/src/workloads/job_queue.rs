//! The life of a job, over and over: its record is inserted, updated eleven times with other
//! content of the same size, and deleted. What one write is to the engine (a transaction, a file
//! replaced, with or without a sync) its settings say.

use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use sqlitmus_core::case::{JOB_UPDATES, Workload};
use sqlitmus_core::dataset::{Dataset, consume, digest};
use sqlitmus_core::keys::{KeyWalk, Span, thread_offset};

use super::{Meter, Preparation, Running, Stretch, counts, new_histogram, team, unfit};
use crate::engine::{EngineError, ReadBack, Session};
use crate::rows::Counters;

/// Lives before a slice, of each thread, untimed.
const LEAD_IN_LIVES: u64 = 2;

/// A prepared job queue.
pub(super) struct JobQueue {
    workers: Vec<Worker>,
    dataset: Dataset,
    /// Lives of each thread in a batch.
    lives: u64,
    limit: Option<Duration>,
}

/// One thread with jobs of its own.
struct Worker {
    session: Box<dyn Session>,
    walk: KeyWalk,
    /// Added to the walk's keys: no other thread has such keys.
    first_key: u64,
    batch: Batch,
    latencies: Histogram<u64>,
}

/// Content of the lives to come, made before the clock starts.
#[derive(Default)]
struct Batch {
    bytes: Vec<u8>,
    lives: Vec<Life>,
}

struct Life {
    key: u64,
    start: usize,
    value_bytes: usize,
}

/// What a thread did.
struct Lived {
    span: Span,
    busy: u64,
}

impl JobQueue {
    pub(super) fn prepare(preparation: &Preparation<'_>) -> Result<Self, EngineError> {
        let case = preparation.case;
        let Workload::JobQueue {
            operations,
            threads,
            limit_ms,
        } = case.workload
        else {
            return Err(unfit("this is no job queue"));
        };
        let engine = crate::find(&case.engine).map_err(|error| unfit(&error.to_string()))?;
        let capabilities = engine.capabilities(&case.settings);
        if !capabilities.writes {
            return Err(unfit(&format!("engine `{}` does not write", case.engine)));
        }
        let store = if capabilities.persistent {
            engine.open(preparation.store, &case.settings)?
        } else {
            engine.create(preparation.store, &case.settings)?
        };
        let walk = preparation.walk(case.dataset.count);
        let workers = (0..threads)
            .map(|thread| {
                let offset = thread_offset(preparation.key_offset, thread, threads);
                Ok(Worker {
                    session: store.session()?,
                    walk: walk.starting_at(offset),
                    first_key: u64::from(thread) * case.dataset.count,
                    batch: Batch::default(),
                    latencies: new_histogram(),
                })
            })
            .collect::<Result<_, EngineError>>()?;
        Ok(Self {
            workers,
            dataset: case.dataset.clone(),
            lives: operations.div_ceil(u64::from(threads)),
            limit: (limit_ms > 0).then(|| Duration::from_millis(limit_ms)),
        })
    }

    fn run(
        &mut self,
        lives: u64,
        is_timed: bool,
        generation: u64,
        meter: Option<&mut dyn Meter>,
    ) -> Result<(Vec<Lived>, u64), EngineError> {
        for worker in &mut self.workers {
            worker.fill(&self.dataset, lives, generation);
        }
        let limit = self.limit;
        let workers: Vec<&mut Worker> = self.workers.iter_mut().collect();
        team::run(workers, meter, |worker, start| {
            let deadline = limit.map(|limit| start + limit);
            worker.live(start, deadline, !is_timed)
        })
    }
}

impl Worker {
    /// Makes the content of the next lives.
    fn fill(&mut self, dataset: &Dataset, lives: u64, generation: u64) {
        let position = self.walk.position();
        self.batch.bytes.clear();
        self.batch.lives.clear();
        for _ in 0..lives {
            let key = self.walk.next_key();
            let value_bytes = dataset.value_bytes(key);
            let start = self.batch.bytes.len();
            for update in 0..=JOB_UPDATES {
                let end = self.batch.bytes.len();
                self.batch.bytes.resize(end + value_bytes, 0);
                let value = &mut self.batch.bytes[end..];
                dataset.fill_slice(key, generation + update, value);
            }
            self.batch.lives.push(Life {
                key: self.first_key + key,
                start,
                value_bytes,
            });
        }
        self.walk.return_to(position);
    }

    /// Lives the lives of the batch, as far as the deadline allows. With `reads` the last of them
    /// is read before it is deleted.
    fn live(
        &mut self,
        start: Instant,
        deadline: Option<Instant>,
        reads: bool,
    ) -> Result<Lived, EngineError> {
        self.latencies.reset();
        let position = self.walk.position();
        let (mut operations, mut consumed, mut busy) = (0, 0, 0);
        let mut previous = start;
        let batch = std::mem::take(&mut self.batch);
        for (number, life) in batch.lives.iter().enumerate() {
            let is_read = reads && number + 1 == batch.lives.len();
            let session = &mut *self.session;
            live_once(
                session,
                life,
                &batch.bytes,
                &mut busy,
                |session| match is_read {
                    true => session.read(life.key, &mut |bytes| consumed = consume(bytes)),
                    false => Ok(()),
                },
            )?;
            self.walk.next_key();
            operations += 1;
            let now = Instant::now();
            self.latencies
                .saturating_record((now - previous).as_nanos() as u64);
            previous = now;
            if deadline.is_some_and(|deadline| now >= deadline) {
                break;
            }
        }
        self.batch = batch;
        Ok(Lived {
            span: Span {
                position,
                operations,
                consumed,
            },
            busy,
        })
    }
}

/// Inserts, updates and deletes one record; `before_the_end` is called before it is deleted.
fn live_once(
    session: &mut dyn Session,
    life: &Life,
    bytes: &[u8],
    busy: &mut u64,
    before_the_end: impl FnOnce(&mut dyn Session) -> Result<(), EngineError>,
) -> Result<(), EngineError> {
    let value = |update: u64| {
        let start = life.start + update as usize * life.value_bytes;
        &bytes[start..start + life.value_bytes]
    };
    write(session, busy, &|writer| writer.insert(life.key, value(0)))?;
    for update in 1..=JOB_UPDATES {
        write(session, busy, &|writer| writer.put(life.key, value(update)))?;
    }
    before_the_end(session)?;
    write(session, busy, &|writer| writer.delete(life.key).map(|_| ()))
}

/// One write, acknowledged by the engine, repeated as long as somebody else has the lock.
fn write(
    session: &mut dyn Session,
    busy: &mut u64,
    write: &dyn Fn(&mut dyn crate::engine::Writer) -> Result<(), EngineError>,
) -> Result<(), EngineError> {
    let Some(writer) = session.writer() else {
        return Err(unfit("the engine does not write"));
    };
    loop {
        let written = writer
            .begin()
            .and_then(|()| write(writer))
            .and_then(|()| writer.commit());
        match written {
            Err(error) if error.is_busy() => {
                *busy += 1;
                std::thread::yield_now();
            }
            other => return other,
        }
    }
}

impl Running for JobQueue {
    fn read_back(&mut self) -> Result<ReadBack, EngineError> {
        self.workers[0].session.read_back()
    }

    fn lead_in(&mut self, generation: u64) -> Result<Vec<Span>, EngineError> {
        let (lived, _) = self.run(LEAD_IN_LIVES, false, generation, None)?;
        Ok(lived.iter().map(|lived| lived.span).collect())
    }

    fn slice(&mut self, generation: u64, meter: &mut dyn Meter) -> Result<Stretch, EngineError> {
        let (lead_in, _) = self.run(LEAD_IN_LIVES, false, generation, None)?;
        let (timed, elapsed_ns) = self.run(self.lives, true, generation, Some(meter))?;
        let mut latencies = new_histogram();
        for worker in &self.workers {
            // All have the same bounds.
            let _ = latencies.add(&worker.latencies);
        }
        let busy = timed.iter().map(|lived| lived.busy).sum();
        Ok(Stretch {
            lead_in: lead_in.iter().map(|lived| lived.span).collect(),
            timed: timed.iter().map(|lived| lived.span).collect(),
            elapsed_ns,
            latencies: counts(&latencies),
            counters: Counters::from([("busy".to_owned(), busy)]),
        })
    }

    fn settle(&mut self) -> Result<(), EngineError> {
        match self.workers[0].session.writer() {
            Some(writer) => writer.settle(),
            None => Ok(()),
        }
    }

    /// Each key lives once more, of generation 0, and its digest is taken before it is deleted.
    fn verify(&mut self, keys: &[u64]) -> Result<Vec<u64>, EngineError> {
        let worker = &mut self.workers[0];
        let mut numbers = Vec::with_capacity(keys.len() + 1);
        for key in keys {
            let mut bytes = Vec::new();
            let mut value = Vec::new();
            for update in 0..=JOB_UPDATES {
                self.dataset.fill(*key, update, &mut value);
                bytes.extend_from_slice(&value);
            }
            let life = Life {
                key: *key,
                start: 0,
                value_bytes: value.len(),
            };
            let session = &mut *worker.session;
            live_once(session, &life, &bytes, &mut 0, |session| {
                session.read(*key, &mut |bytes| numbers.push(digest(bytes)))
            })?;
        }
        let mut left = 0;
        worker.session.keys(&mut |_| left += 1)?;
        numbers.push(left);
        Ok(numbers)
    }
}
