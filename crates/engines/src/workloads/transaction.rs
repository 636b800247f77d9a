//! One transaction of point updates, repeated as long as somebody else has the lock.

use std::time::Instant;

use crate::engine::EngineError;
use crate::rows::RowSession;

/// How a transaction ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    /// Committed.
    Committed,
    /// Given up at the deadline: nothing of it was written.
    GivenUp,
}

/// Updates these rows in one transaction; a single one commits by itself. Every refusal because
/// of a lock is counted in `busy`, and the transaction begun anew, until `deadline`.
///
/// # Errors
/// Anything but a lock; a row that is not there.
pub(super) fn update(
    session: &mut dyn RowSession,
    ids: &[u64],
    deadline: Option<Instant>,
    busy: &mut u64,
) -> Result<Ended, EngineError> {
    loop {
        match attempt(session, ids) {
            Ok(()) => return Ok(Ended::Committed),
            Err(error) if error.is_busy() => {
                *busy += 1;
                session.rollback()?;
                if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                    return Ok(Ended::GivenUp);
                }
                std::thread::yield_now();
            }
            Err(error) => return Err(error),
        }
    }
}

fn attempt(session: &mut dyn RowSession, ids: &[u64]) -> Result<(), EngineError> {
    let is_single = ids.len() == 1;
    if !is_single {
        session.begin()?;
    }
    for id in ids {
        if !session.update(*id)? {
            return Err(EngineError::Unavailable(format!("there is no row {id}")));
        }
    }
    if is_single { Ok(()) } else { session.commit() }
}

/// Queries one row; refusals because of a lock are counted and the query repeated, until
/// `deadline`. The outer `None` is a query given up.
///
/// # Errors
/// Anything but a lock.
#[inline]
pub(super) fn query(
    session: &mut dyn RowSession,
    id: u64,
    deadline: Instant,
    busy: &mut u64,
) -> Result<Option<Option<u64>>, EngineError> {
    loop {
        match session.query(id) {
            Ok(found) => return Ok(Some(found)),
            Err(error) if error.is_busy() => {
                *busy += 1;
                session.rollback()?;
                if Instant::now() >= deadline {
                    return Ok(None);
                }
                std::thread::yield_now();
            }
            Err(error) => return Err(error),
        }
    }
}
