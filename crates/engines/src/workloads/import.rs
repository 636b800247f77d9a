//! Bulk import: rows into an empty table, in transactions of a given size. Every slice begins
//! with an empty table in a file as small as it was, so that it has to grow again.

use std::time::{Duration, Instant};

use sqlitmus_core::case::Workload;
use sqlitmus_core::keys::Span;
use sqlitmus_core::rows::{Rows, User};

use super::{Meter, Preparation, Running, Stretch, counts, new_histogram, unfit, verify_rows};
use crate::engine::{EngineError, ReadBack};
use crate::rows::RowSession;

/// Rows of the untimed import before a slice.
const LEAD_IN_ROWS: u64 = 5;

/// A prepared import.
pub(super) struct Import {
    session: Box<dyn RowSession>,
    rows: Rows,
    operations: u64,
    transaction_rows: usize,
    limit: Option<Duration>,
}

impl Import {
    pub(super) fn prepare(preparation: &Preparation<'_>) -> Result<Self, EngineError> {
        let Workload::Import {
            operations,
            limit_ms,
        } = preparation.case.workload
        else {
            return Err(unfit("this is no import"));
        };
        Ok(Self {
            session: preparation.row_store(preparation.store)?.session()?,
            rows: Rows::new(&preparation.case.dataset),
            operations,
            transaction_rows: preparation.transaction_rows(operations),
            limit: (limit_ms > 0).then(|| Duration::from_millis(limit_ms)),
        })
    }

    /// Imports some rows and takes them out again: code and statements are warm.
    fn import_untimed(&mut self) -> Result<Span, EngineError> {
        let rows = LEAD_IN_ROWS.min(self.operations);
        let users: Vec<User<'_>> = (1..=rows).map(|id| self.rows.user(id)).collect();
        for users in users.chunks(self.transaction_rows) {
            import(&mut *self.session, users)?;
        }
        let consumed = self.session.totals()?.consumed;
        self.session.clear()?;
        Ok(Span {
            position: 0,
            operations: rows,
            consumed,
        })
    }
}

/// One transaction; a single row commits by itself.
fn import(session: &mut dyn RowSession, users: &[User<'_>]) -> Result<(), EngineError> {
    if users.len() == 1 {
        return session.insert(users);
    }
    session.begin()?;
    session.insert(users)?;
    session.commit()
}

impl Running for Import {
    fn read_back(&mut self) -> Result<ReadBack, EngineError> {
        self.session.read_back()
    }

    fn lead_in(&mut self, _generation: u64) -> Result<Vec<Span>, EngineError> {
        self.session.clear()?;
        Ok(vec![self.import_untimed()?])
    }

    fn slice(&mut self, _generation: u64, meter: &mut dyn Meter) -> Result<Stretch, EngineError> {
        self.session.clear()?;
        let lead_in = self.import_untimed()?;
        let users: Vec<User<'_>> = (1..=self.operations).map(|id| self.rows.user(id)).collect();
        let mut latencies = new_histogram();
        let mut done = 0;
        self.session.take_counters();
        meter.begin();
        let start = Instant::now();
        let mut previous = start;
        for users in users.chunks(self.transaction_rows) {
            import(&mut *self.session, users)?;
            let now = Instant::now();
            latencies.saturating_record((now - previous).as_nanos() as u64);
            previous = now;
            done += users.len();
            if self.limit.is_some_and(|limit| now - start >= limit) {
                break;
            }
        }
        meter.end();
        let mut counters = self.session.take_counters();
        let totals = self.session.totals()?;
        counters.insert("rows_found".to_owned(), totals.rows);
        Ok(Stretch {
            lead_in: vec![lead_in],
            timed: vec![Span {
                position: 0,
                operations: done as u64,
                consumed: totals.consumed,
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
