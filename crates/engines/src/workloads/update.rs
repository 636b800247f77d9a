//! Point updates by one thread, `user.c1` counted up, in transactions of a given size.

use std::time::{Duration, Instant};

use sqlitmus_core::case::Workload;
use sqlitmus_core::keys::{KeyWalk, Span};

use super::transaction::{Ended, update};
use super::{Meter, Preparation, Running, Stretch, counts, new_histogram, unfit, verify_rows};
use crate::engine::{EngineError, ReadBack};
use crate::rows::RowSession;

/// Prepared updates.
pub(super) struct Update {
    session: Box<dyn RowSession>,
    walk: KeyWalk,
    operations: u64,
    transaction_rows: usize,
    limit: Option<Duration>,
}

impl Update {
    pub(super) fn prepare(preparation: &Preparation<'_>) -> Result<Self, EngineError> {
        let Workload::Update {
            operations,
            limit_ms,
            ..
        } = preparation.case.workload
        else {
            return Err(unfit("this is no update"));
        };
        Ok(Self {
            session: preparation.row_store(preparation.store)?.session()?,
            walk: preparation.walk(preparation.case.dataset.count),
            operations,
            transaction_rows: preparation.transaction_rows(operations),
            limit: (limit_ms > 0).then(|| Duration::from_millis(limit_ms)),
        })
    }

    /// Untimed transactions, few enough not to take longer than what is timed.
    fn update_untimed(&mut self) -> Result<Span, EngineError> {
        let mut span = Span {
            position: self.walk.position(),
            operations: (self.operations / 50).clamp(1, 50),
            consumed: 0,
        };
        let ids: Vec<u64> = (0..span.operations).map(|_| self.walk.next_key()).collect();
        // Even where each would sync by itself: one for the journal to be there.
        let rows = if self.transaction_rows == 1 {
            1
        } else {
            ids.len()
        };
        let ids = &ids[..if rows == 1 {
            ids.len().min(5)
        } else {
            ids.len()
        }];
        for ids in ids.chunks(rows) {
            update(&mut *self.session, ids, None, &mut 0)?;
        }
        span.operations = ids.len() as u64;
        self.walk.return_to(span.position + ids.len());
        Ok(span)
    }
}

impl Running for Update {
    fn read_back(&mut self) -> Result<ReadBack, EngineError> {
        self.session.read_back()
    }

    fn lead_in(&mut self, _generation: u64) -> Result<Vec<Span>, EngineError> {
        let span = self.update_untimed()?;
        self.session.settle()?;
        Ok(vec![span])
    }

    fn slice(&mut self, _generation: u64, meter: &mut dyn Meter) -> Result<Stretch, EngineError> {
        let lead_in = self.update_untimed()?;
        let position = self.walk.position();
        let ids: Vec<u64> = (0..self.operations).map(|_| self.walk.next_key()).collect();
        let mut latencies = new_histogram();
        let (mut done, mut busy) = (0, 0);
        self.session.take_counters();
        meter.begin();
        let start = Instant::now();
        let mut previous = start;
        for ids in ids.chunks(self.transaction_rows) {
            let ended = update(&mut *self.session, ids, None, &mut busy)?;
            debug_assert_eq!(ended, Ended::Committed, "there is no deadline");
            let now = Instant::now();
            latencies.saturating_record((now - previous).as_nanos() as u64);
            previous = now;
            done += ids.len();
            if self.limit.is_some_and(|limit| now - start >= limit) {
                break;
            }
        }
        meter.end();
        self.walk.return_to(position + done);
        let mut counters = self.session.take_counters();
        counters.insert("busy".to_owned(), busy);
        Ok(Stretch {
            lead_in: vec![lead_in],
            timed: vec![Span {
                position,
                operations: done as u64,
                consumed: 0,
            }],
            elapsed_ns: (previous - start).as_nanos() as u64,
            latencies: counts(&latencies),
            counters,
        })
    }

    fn settle(&mut self) -> Result<(), EngineError> {
        self.session.settle()
    }

    fn verify(&mut self, keys: &[u64]) -> Result<Vec<u64>, EngineError> {
        verify_rows(&mut *self.session, keys)
    }
}
