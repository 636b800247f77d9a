//! Overwriting blobs with other bytes of the same size, batch by batch: the content is made before the
//! clock starts, since making it empties the processor's caches.

use std::ops::Range;
use std::time::Instant;

use hdrhistogram::Histogram;
use sqlitmus_core::dataset::Dataset;
use sqlitmus_core::keys::{KeyWalk, Span};

use super::blobs::{
    BlobLeadIn, BlobPreparation, BlobStretch, RunningBlobs, Slowing, counted_since, digests,
    read_untimed, walk,
};
use super::{Meter, counts, new_histogram, unfit};
use crate::engine::{EngineError, Session};

/// An overwriting trial under way.
pub(super) struct Overwrite<S> {
    session: Box<dyn Session>,
    dataset: Dataset,
    /// Writes of a slice.
    operations: u64,
    walk: KeyWalk,
    latencies: Histogram<u64>,
    lead_in_batch: Batch,
    batch: Batch,
    /// Where the batch stands that is written untimed.
    staged: Option<Span>,
    slowing: S,
}

/// Content of the batch that is written next.
#[derive(Default)]
struct Batch {
    bytes: Vec<u8>,
    entries: Vec<(u64, Range<usize>)>,
}

impl<S: Slowing> Overwrite<S> {
    pub(super) fn prepare(preparation: BlobPreparation<'_, S>, operations: u64) -> Self {
        Self {
            walk: walk(&preparation),
            session: preparation.session,
            dataset: preparation.case.dataset.clone(),
            operations,
            latencies: new_histogram(),
            lead_in_batch: Batch::default(),
            batch: Batch::default(),
            staged: None,
            slowing: preparation.slowing,
        }
    }
}

impl<S: Slowing> RunningBlobs for Overwrite<S> {
    fn lead_in(&mut self, generation: u64) -> Result<BlobLeadIn, EngineError> {
        let keys = self.walk.len() as u64;
        let read = read_untimed(self.session.as_mut(), &mut self.walk, |done| done < keys)?;
        // Somewhat more than any slice will write, so that no slice has to grow a journal.
        let operations = self.operations + self.operations / 10 + 1;
        let written = self
            .batch
            .fill(&self.dataset, &mut self.walk, operations, generation);
        self.batch
            .write(self.session.as_mut(), None, &mut self.slowing)?;
        Ok(BlobLeadIn {
            read,
            written: Some(written),
        })
    }

    fn slice(
        &mut self,
        generation: u64,
        meter: &mut dyn Meter,
    ) -> Result<BlobStretch, EngineError> {
        self.latencies.reset();
        // Some untimed writes: the other arms have emptied the processor's caches. The content of
        // both batches is made before, since making it empties them too.
        let (dataset, walk) = (&self.dataset, &mut self.walk);
        let few = (self.operations / 50).clamp(1, 50);
        let lead_in = self.lead_in_batch.fill(dataset, walk, few, generation);
        let timed = self.batch.fill(dataset, walk, self.operations, generation);
        let session = self.session.as_mut();
        self.lead_in_batch.write(session, None, &mut self.slowing)?;
        let before = session.counters();
        meter.begin();
        let latencies = Some(&mut self.latencies);
        let elapsed_ns = self.batch.write(session, latencies, &mut self.slowing)?;
        meter.end();
        Ok(BlobStretch {
            lead_in,
            timed,
            elapsed_ns,
            latencies: counts(&self.latencies),
            counters: counted_since(session, &before),
        })
    }

    fn stage(&mut self, generation: u64) {
        let (dataset, walk) = (&self.dataset, &mut self.walk);
        self.staged = Some(self.batch.fill(dataset, walk, self.operations, generation));
    }

    fn untimed(&mut self, _reads: u64) -> Result<Span, EngineError> {
        let Some(span) = self.staged.take() else {
            return Err(unfit("nothing was staged to be written"));
        };
        self.batch
            .write(self.session.as_mut(), None, &mut self.slowing)?;
        Ok(span)
    }

    fn settle(&mut self) -> Result<(), EngineError> {
        self.session
            .writer()
            .map_or(Ok(()), |writer| writer.settle())
    }

    fn verify(&mut self, keys: &[u64]) -> Result<Vec<u64>, EngineError> {
        digests(self.session.as_mut(), keys)
    }
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

    /// Writes the batch; returns nanoseconds from the start to the end of the commit. The latency of an
    /// operation is that of its `put`; what the commit of the whole batch takes is in the total alone.
    fn write(
        &self,
        session: &mut dyn Session,
        mut latencies: Option<&mut Histogram<u64>>,
        slowing: &mut impl Slowing,
    ) -> Result<u64, EngineError> {
        let Some(writer) = session.writer() else {
            return Err(unfit("the engine does not write"));
        };
        let start = Instant::now();
        slowing.begin(start);
        writer.begin()?;
        let mut previous = Instant::now();
        for (key, range) in &self.entries {
            writer.put(*key, &self.bytes[range.clone()])?;
            let now = slowing.after(Instant::now());
            if let Some(latencies) = &mut latencies {
                latencies.saturating_record((now - previous).as_nanos() as u64);
            }
            previous = now;
        }
        writer.commit()?;
        let end = slowing.wait(Instant::now());
        Ok((end - start).as_nanos() as u64)
    }
}
