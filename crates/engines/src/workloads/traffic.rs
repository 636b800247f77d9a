//! Point queries by some threads and point updates by others, all at once: readers beside a
//! writer, and several writers into one database, by themselves or through a queue.
//!
//! A transaction that finds the database locked after its busy timeout is counted as busy and
//! begun anew; one that is still refused when the time is up is given up and not counted as done.

use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use sqlitmus_core::case::{Workload, Writing};
use sqlitmus_core::keys::{KeyWalk, Span, thread_offset};
use sqlitmus_core::settings::SettingsError;

use super::point_query::{Queried, Reader, add_latencies};
use super::transaction::{Ended, update};
use super::{
    Meter, Preparation, Running, Stretch, counts, new_histogram, team, unfit, verify_rows,
};
use crate::engine::{EngineError, ReadBack};
use crate::rows::{Counters, RowSession};

/// Length of the lead-in of a trial: journals and caches are as after a while of work.
const LEAD_IN: Duration = Duration::from_millis(200);

/// Prepared traffic.
pub(super) struct Traffic {
    readers: Vec<Reader>,
    writers: Vec<Writer>,
    /// The session that a queue's writer has; without a queue the one that settles and verifies.
    own: Box<dyn RowSession>,
    writing: Writing,
    slice: Duration,
}

/// One thread that wants rows updated.
struct Writer {
    /// With a queue it has none.
    session: Option<Box<dyn RowSession>>,
    walk: KeyWalk,
    transaction_rows: usize,
    latencies: Histogram<u64>,
}

/// What one of the threads did.
enum Did {
    Queried(Queried),
    Updated(Updated),
    /// The queue's own thread.
    Served(u64),
}

struct Updated {
    span: Span,
    busy: u64,
    elapsed_ns: u64,
}

/// One of the threads that start together.
enum Member<'a> {
    Reader(&'a mut Reader),
    Writer(&'a mut Writer),
    Client(&'a mut Writer, Sender<Order>),
    Server(&'a mut dyn RowSession, Receiver<Order>),
}

/// A transaction on its way through the queue.
struct Order {
    ids: Vec<u64>,
    done: SyncSender<()>,
}

impl Traffic {
    pub(super) fn prepare(preparation: &Preparation<'_>) -> Result<Self, EngineError> {
        let Workload::Traffic {
            range,
            readers,
            writers,
            writing,
        } = preparation.case.workload
        else {
            return Err(unfit("this is no traffic"));
        };
        check(preparation, writers)?;
        let store = preparation.row_store(preparation.store)?;
        let offset = |thread, threads| thread_offset(preparation.key_offset, thread, threads);
        let walk = preparation.walk(range);
        let readers = (0..readers)
            .map(|thread| {
                let walk = walk.starting_at(offset(thread, readers));
                Ok(Reader::new(store.session()?, walk))
            })
            .collect::<Result<_, EngineError>>()?;
        let walk = preparation.walk(preparation.case.dataset.count);
        let writers = (0..writers)
            .map(|thread| {
                let session = match writing {
                    Writing::Direct => Some(store.session()?),
                    Writing::Queue | Writing::QueueMerged => None,
                };
                Ok(Writer {
                    session,
                    walk: walk.starting_at(offset(thread, writers)),
                    transaction_rows: preparation.transaction_rows(1000),
                    latencies: new_histogram(),
                })
            })
            .collect::<Result<_, EngineError>>()?;
        Ok(Self {
            readers,
            writers,
            own: store.session()?,
            writing,
            slice: preparation.slice,
        })
    }

    fn run_for(
        &mut self,
        length: Duration,
        meter: Option<&mut dyn Meter>,
    ) -> Result<(Vec<Did>, u64), EngineError> {
        let mut members: Vec<Member<'_>> = self.readers.iter_mut().map(Member::Reader).collect();
        if self.writing == Writing::Direct {
            members.extend(self.writers.iter_mut().map(Member::Writer));
        } else {
            let (orders, waiting) = channel();
            for writer in &mut self.writers {
                members.push(Member::Client(writer, orders.clone()));
            }
            members.push(Member::Server(&mut *self.own, waiting));
        }
        let merges = self.writing == Writing::QueueMerged;
        team::run(members, meter, |member, start| {
            let deadline = start + length;
            Ok(match member {
                Member::Reader(reader) => Did::Queried(reader.query_until(start, deadline)?),
                Member::Writer(writer) => Did::Updated(writer.update_until(start, deadline)?),
                Member::Client(writer, orders) => {
                    Did::Updated(writer.order_until(start, deadline, &orders)?)
                }
                Member::Server(session, waiting) => Did::Served(serve(session, &waiting, merges)?),
            })
        })
    }
}

/// Refuses settings with which the threads would wait for each other for ever.
fn check(preparation: &Preparation<'_>, writers: u32) -> Result<(), EngineError> {
    let settings = &preparation.case.settings;
    let contradiction = |reason: &str, hint: &str| {
        Err(EngineError::Settings(SettingsError::Contradiction {
            engine: preparation.case.engine.clone(),
            reason: reason.to_owned(),
            hint: hint.to_owned(),
        }))
    };
    if writers > 0 && settings.get("read_transaction") == Some("held") {
        return contradiction(
            "readers that hold a transaction see no update, and with a rollback journal let none in",
            "use `read_transaction = each`",
        );
    }
    if settings.get("transaction") == Some("all") {
        return contradiction(
            "traffic has no batch that a transaction could be all of",
            "use a number for `transaction`",
        );
    }
    Ok(())
}

impl Writer {
    fn next_ids(&mut self) -> Vec<u64> {
        (0..self.transaction_rows)
            .map(|_| self.walk.next_key())
            .collect()
    }

    /// Updates until the deadline, by itself.
    fn update_until(&mut self, start: Instant, deadline: Instant) -> Result<Updated, EngineError> {
        let Some(mut session) = self.session.take() else {
            return Err(unfit("a writer without a session"));
        };
        let mut busy = 0;
        let updated = self.until(start, deadline, |ids| {
            update(&mut *session, ids, Some(deadline), &mut busy)
        });
        self.session = Some(session);
        Ok(Updated { busy, ..updated? })
    }

    /// Hands transactions to the queue until the deadline, and waits for each.
    fn order_until(
        &mut self,
        start: Instant,
        deadline: Instant,
        orders: &Sender<Order>,
    ) -> Result<Updated, EngineError> {
        let (done, answer) = sync_channel(1);
        self.until(start, deadline, |ids| {
            let order = Order {
                ids: ids.to_vec(),
                done: done.clone(),
            };
            // The server is gone if it has failed; its error is the one to report.
            let served = orders.send(order).is_ok() && answer.recv().is_ok();
            Ok(if served {
                Ended::Committed
            } else {
                Ended::GivenUp
            })
        })
    }

    fn until(
        &mut self,
        start: Instant,
        deadline: Instant,
        mut transact: impl FnMut(&[u64]) -> Result<Ended, EngineError>,
    ) -> Result<Updated, EngineError> {
        self.latencies.reset();
        let position = self.walk.position();
        let mut operations = 0;
        let mut previous = start;
        while previous < deadline {
            let before = self.walk.position();
            let ids = self.next_ids();
            let ended = transact(&ids)?;
            let now = Instant::now();
            if ended == Ended::GivenUp {
                self.walk.return_to(before);
                previous = now;
                break;
            }
            self.latencies
                .saturating_record((now - previous).as_nanos() as u64);
            previous = now;
            operations += ids.len() as u64;
        }
        Ok(Updated {
            span: Span {
                position,
                operations,
                consumed: 0,
            },
            busy: 0,
            elapsed_ns: (previous - start).as_nanos() as u64,
        })
    }
}

/// Commits what comes through the queue, each transaction by itself or all that wait as one, until
/// nobody is left to send any. Returns how often the database was busy.
fn serve(
    session: &mut dyn RowSession,
    waiting: &Receiver<Order>,
    merges: bool,
) -> Result<u64, EngineError> {
    let mut busy = 0;
    let mut orders = Vec::new();
    let mut ids = Vec::new();
    while let Ok(first) = waiting.recv() {
        ids.clear();
        orders.clear();
        orders.push(first);
        if merges {
            orders.extend(waiting.try_iter());
        }
        for order in &orders {
            ids.extend_from_slice(&order.ids);
        }
        update(session, &ids, None, &mut busy)?;
        for order in orders.drain(..) {
            // Room for one answer, and the one before has been taken.
            let _ = order.done.send(());
        }
    }
    Ok(busy)
}

impl Running for Traffic {
    fn read_back(&mut self) -> Result<ReadBack, EngineError> {
        self.own.read_back()
    }

    fn lead_in(&mut self, _generation: u64) -> Result<Vec<Span>, EngineError> {
        let (did, _) = self.run_for(LEAD_IN, None)?;
        self.own.settle()?;
        Ok(spans(&did))
    }

    fn slice(&mut self, _generation: u64, meter: &mut dyn Meter) -> Result<Stretch, EngineError> {
        let (did, elapsed_ns) = self.run_for(self.slice, Some(meter))?;
        let mut reading = new_histogram();
        add_latencies(&mut reading, &self.readers);
        let mut writing = new_histogram();
        for writer in &self.writers {
            // All have the same bounds.
            let _ = writing.add(&writer.latencies);
        }
        let mut counters = count(&did);
        for (name, histogram) in [("query", &reading), ("transaction", &writing)] {
            if !histogram.is_empty() {
                let p99 = histogram.value_at_quantile(0.99);
                counters.insert(format!("peak_{name}_ns_p99"), p99);
                counters.insert(format!("peak_{name}_ns"), histogram.max());
            }
        }
        let mut latencies = reading;
        // All have the same bounds.
        let _ = latencies.add(&writing);
        Ok(Stretch {
            lead_in: Vec::new(),
            timed: spans(&did),
            elapsed_ns,
            latencies: counts(&latencies),
            counters,
        })
    }

    fn settle(&mut self) -> Result<(), EngineError> {
        self.own.settle()
    }

    fn verify(&mut self, keys: &[u64]) -> Result<Vec<u64>, EngineError> {
        verify_rows(&mut *self.own, keys)
    }
}

fn spans(did: &[Did]) -> Vec<Span> {
    let spans = did.iter().filter_map(|did| match did {
        Did::Queried(queried) => Some(queried.span),
        Did::Updated(updated) => Some(updated.span),
        Did::Served(_) => None,
    });
    spans.collect()
}

/// Readers and writers end at different moments: each side's time is that of its last thread.
fn count(did: &[Did]) -> Counters {
    let mut counters = Counters::new();
    let mut add = |name: &str, value: u64| {
        *counters.entry(name.to_owned()).or_default() += value;
    };
    let (mut reading_ns, mut writing_ns) = (0, 0);
    for did in did {
        match did {
            Did::Queried(queried) => {
                add("queries", queried.span.operations);
                add("rows_found", queried.found);
                add("busy", queried.busy);
                reading_ns = reading_ns.max(queried.elapsed_ns);
            }
            Did::Updated(updated) => {
                add("updates", updated.span.operations);
                add("busy", updated.busy);
                writing_ns = writing_ns.max(updated.elapsed_ns);
            }
            Did::Served(busy) => add("busy", *busy),
        }
    }
    add("querying_ns", reading_ns);
    add("updating_ns", writing_ns);
    counters
}
