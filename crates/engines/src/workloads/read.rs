//! Reading blobs one after the other in the common key order, each whole.

use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use sqlitmus_core::dataset::consume;
use sqlitmus_core::keys::{KeyWalk, Span};

use super::blobs::{
    BlobLeadIn, BlobPreparation, BlobStretch, RunningBlobs, Slowing, counted_since, digests,
    read_untimed, walk,
};
use super::{Meter, counts, new_histogram};
use crate::engine::{EngineError, Session};

/// A reading trial under way.
pub(super) struct Read<S> {
    session: Box<dyn Session>,
    walk: KeyWalk,
    latencies: Histogram<u64>,
    slice: Duration,
    slice_lead_in: Duration,
    slice_operations_max: u64,
    slowing: S,
}

impl<S: Slowing> Read<S> {
    pub(super) fn prepare(preparation: BlobPreparation<'_, S>) -> Self {
        Self {
            walk: walk(&preparation),
            session: preparation.session,
            latencies: new_histogram(),
            slice: preparation.slice,
            slice_lead_in: preparation.slice_lead_in,
            slice_operations_max: preparation.slice_operations_max,
            slowing: preparation.slowing,
        }
    }

    /// Reads for a slice's time. The clock is read once an operation: the end of one is the start of
    /// the next.
    fn read_timed(&mut self) -> Result<(Span, Duration), EngineError> {
        let position = self.walk.position();
        let mut operations = 0;
        let mut consumed = 0u64;
        let start = Instant::now();
        self.slowing.begin(start);
        let mut previous = start;
        let end = loop {
            let key = self.walk.next_key();
            self.session.read(key, &mut |bytes| {
                consumed = consumed.wrapping_add(consume(bytes));
            })?;
            let now = self.slowing.after(Instant::now());
            self.latencies
                .saturating_record((now - previous).as_nanos() as u64);
            previous = now;
            operations += 1;
            if now - start >= self.slice || operations >= self.slice_operations_max {
                break now;
            }
        };
        let span = Span {
            position,
            operations,
            consumed,
        };
        Ok((span, end - start))
    }
}

impl<S: Slowing> RunningBlobs for Read<S> {
    fn lead_in(&mut self, _generation: u64) -> Result<BlobLeadIn, EngineError> {
        let operations = self.walk.len() as u64;
        let read = self.untimed(operations)?;
        Ok(BlobLeadIn {
            read,
            written: None,
        })
    }

    fn slice(
        &mut self,
        _generation: u64,
        meter: &mut dyn Meter,
    ) -> Result<BlobStretch, EngineError> {
        self.latencies.reset();
        let (begin, length) = (Instant::now(), self.slice_lead_in);
        let more = |_| begin.elapsed() < length;
        let lead_in = read_untimed(self.session.as_mut(), &mut self.walk, more)?;
        let before = self.session.counters();
        meter.begin();
        let (timed, elapsed) = self.read_timed()?;
        meter.end();
        Ok(BlobStretch {
            lead_in,
            timed,
            elapsed_ns: elapsed.as_nanos() as u64,
            latencies: counts(&self.latencies),
            counters: counted_since(self.session.as_mut(), &before),
        })
    }

    fn stage(&mut self, _generation: u64) {}

    fn untimed(&mut self, reads: u64) -> Result<Span, EngineError> {
        read_untimed(self.session.as_mut(), &mut self.walk, |done| done < reads)
    }

    fn settle(&mut self) -> Result<(), EngineError> {
        // As after a writing slice: an engine that writes may have something left.
        self.session
            .writer()
            .map_or(Ok(()), |writer| writer.settle())
    }

    fn verify(&mut self, keys: &[u64]) -> Result<Vec<u64>, EngineError> {
        digests(self.session.as_mut(), keys)
    }
}
