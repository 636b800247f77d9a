//! Point queries by one or more threads, each with a session of its own: on one database, or each
//! on a copy. What the same work costs on copies is what several threads cost each other without
//! sharing a database; the rest is contention.

use std::path::{Path, PathBuf};
use std::time::Instant;

use hdrhistogram::Histogram;
use sqlitmus_core::case::{Databases, Workload};
use sqlitmus_core::keys::{KeyWalk, Span, thread_offset};

use super::transaction::query;
use super::{
    Meter, Preparation, Running, Stretch, counts, new_histogram, team, unfit, verify_rows,
};
use crate::engine::{EngineError, ReadBack};
use crate::rows::{Counters, RowSession};

/// Prepared point queries.
pub(super) struct PointQuery {
    readers: Vec<Reader>,
    range: u64,
    slice: std::time::Duration,
    slice_lead_in: std::time::Duration,
    /// Databases that were copied for this trial, removed at its end.
    _copies: Copies,
}

/// One thread that queries.
pub(super) struct Reader {
    pub(super) session: Box<dyn RowSession>,
    pub(super) walk: KeyWalk,
    latencies: Histogram<u64>,
}

/// What a reader did in a stretch.
pub(super) struct Queried {
    pub(super) span: Span,
    pub(super) found: u64,
    pub(super) busy: u64,
    pub(super) elapsed_ns: u64,
}

impl PointQuery {
    /// Opens a session for each thread.
    pub(super) fn prepare(preparation: &Preparation<'_>) -> Result<Self, EngineError> {
        let Workload::PointQuery {
            range,
            threads,
            databases,
            ..
        } = preparation.case.workload
        else {
            return Err(unfit("this is no point query"));
        };
        let walk = preparation.walk(range);
        let mut copies = Copies::default();
        let mut readers = Vec::new();
        for thread in 0..threads {
            let path = match databases {
                Databases::Own if thread > 0 => copies.make(preparation.store, thread)?,
                _ => preparation.store.to_owned(),
            };
            let session = preparation.row_store(&path)?.session()?;
            let offset = thread_offset(preparation.key_offset, thread, threads);
            readers.push(Reader::new(session, walk.starting_at(offset)));
        }
        Ok(Self {
            readers,
            range,
            slice: preparation.slice,
            slice_lead_in: preparation.slice_lead_in,
            _copies: copies,
        })
    }

    fn run_for(
        &mut self,
        length: std::time::Duration,
        meter: Option<&mut dyn Meter>,
    ) -> Result<(Vec<Queried>, u64), EngineError> {
        let readers: Vec<&mut Reader> = self.readers.iter_mut().collect();
        team::run(readers, meter, |reader, start| {
            reader.query_until(start, start + length)
        })
    }
}

impl Reader {
    pub(super) fn new(session: Box<dyn RowSession>, walk: KeyWalk) -> Self {
        Self {
            session,
            walk,
            latencies: new_histogram(),
        }
    }

    /// Queries until the deadline. One clock reading a query: the end of one is the start of the
    /// next.
    pub(super) fn query_until(
        &mut self,
        start: Instant,
        deadline: Instant,
    ) -> Result<Queried, EngineError> {
        self.latencies.reset();
        let position = self.walk.position();
        let (mut operations, mut consumed, mut found, mut busy) = (0, 0u64, 0, 0);
        let mut previous = start;
        while previous < deadline {
            let before = self.walk.position();
            let id = self.walk.next_key();
            let Some(row) = query(&mut *self.session, id, deadline, &mut busy)? else {
                self.walk.return_to(before);
                previous = Instant::now();
                break;
            };
            if let Some(sum) = row {
                consumed = consumed.wrapping_add(sum);
                found += 1;
            }
            let now = Instant::now();
            self.latencies
                .saturating_record((now - previous).as_nanos() as u64);
            previous = now;
            operations += 1;
        }
        Ok(Queried {
            span: Span {
                position,
                operations,
                consumed,
            },
            found,
            busy,
            elapsed_ns: (previous - start).as_nanos() as u64,
        })
    }

    /// Queries so many ids, untimed.
    fn query_untimed(&mut self, operations: u64) -> Result<Span, EngineError> {
        let mut span = Span {
            position: self.walk.position(),
            operations,
            consumed: 0,
        };
        for _ in 0..operations {
            if let Some(sum) = self.session.query(self.walk.next_key())? {
                span.consumed = span.consumed.wrapping_add(sum);
            }
        }
        Ok(span)
    }
}

/// The latencies of several readers together.
pub(super) fn add_latencies<'a>(
    sum: &mut Histogram<u64>,
    readers: impl IntoIterator<Item = &'a Reader>,
) {
    for reader in readers {
        // All have the same bounds.
        let _ = sum.add(&reader.latencies);
    }
}

impl Running for PointQuery {
    fn read_back(&mut self) -> Result<ReadBack, EngineError> {
        self.readers[0].session.read_back()
    }

    /// One pass over the ids, in equal parts.
    fn lead_in(&mut self, _generation: u64) -> Result<Vec<Span>, EngineError> {
        let part = self.range.div_ceil(self.readers.len() as u64);
        let readers: Vec<&mut Reader> = self.readers.iter_mut().collect();
        let led_in = team::run(readers, None, |reader, _| reader.query_untimed(part));
        led_in.map(|(spans, _)| spans)
    }

    fn slice(&mut self, _generation: u64, meter: &mut dyn Meter) -> Result<Stretch, EngineError> {
        let (lead_in, _) = self.run_for(self.slice_lead_in, None)?;
        let (timed, elapsed_ns) = self.run_for(self.slice, Some(meter))?;
        let mut latencies = new_histogram();
        add_latencies(&mut latencies, &self.readers);
        let sum = |number: fn(&Queried) -> u64| timed.iter().map(number).sum::<u64>();
        let counters: Counters = [
            ("rows_found", sum(|queried| queried.found)),
            ("busy", sum(|queried| queried.busy)),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into();
        Ok(Stretch {
            lead_in: lead_in.iter().map(|queried| queried.span).collect(),
            timed: timed.iter().map(|queried| queried.span).collect(),
            elapsed_ns,
            latencies: counts(&latencies),
            counters,
        })
    }

    fn settle(&mut self) -> Result<(), EngineError> {
        Ok(())
    }

    fn verify(&mut self, keys: &[u64]) -> Result<Vec<u64>, EngineError> {
        verify_rows(&mut *self.readers[0].session, keys)
    }
}

/// Copies of a database, made by this trial and removed with it. One that a killed trial has left
/// behind is written over by the next.
#[derive(Default)]
struct Copies(Vec<PathBuf>);

impl Copies {
    /// Makes the copy for a thread, beside the store.
    fn make(&mut self, store: &Path, thread: u32) -> Result<PathBuf, EngineError> {
        let mut name = store.as_os_str().to_owned();
        name.push(format!("-copy{thread}"));
        let path = PathBuf::from(name);
        self.0.push(path.clone());
        std::fs::copy(store, &path).map_err(EngineError::io("copy the store to", &path))?;
        // Or the device would be busy with it while the clock runs.
        std::fs::File::open(&path)
            .and_then(|file| file.sync_all())
            .map_err(EngineError::io("sync", &path))?;
        Ok(path)
    }
}

impl Drop for Copies {
    fn drop(&mut self) {
        for path in &self.0 {
            // Nobody is left to be told; what stays lies among the stores, which `clean` removes.
            let _ = std::fs::remove_file(path);
            for companion in crate::sqlite::companions(path) {
                let _ = std::fs::remove_file(companion);
            }
        }
    }
}
