//! Several threads that start together. Each does its own work with its own session; the clock
//! runs from the start of the first to the end of the last.

use std::sync::Barrier;
use std::time::Instant;

use super::Meter;
use crate::engine::EngineError;

/// What one thread did, and when.
struct Timed<R> {
    start: Instant,
    end: Instant,
    result: R,
}

/// Runs `work` once for every member, each in a thread of its own, started by a barrier. Returns
/// their results in the order of the members, and the nanoseconds that all of them took together.
///
/// # Errors
/// The first error of any member, when all have ended.
pub(super) fn run<M: Send, R: Send>(
    members: Vec<M>,
    meter: Option<&mut dyn Meter>,
    work: impl Fn(M, Instant) -> Result<R, EngineError> + Sync,
) -> Result<(Vec<R>, u64), EngineError> {
    let barrier = Barrier::new(members.len() + 1);
    let mut meter = meter;
    let timed = std::thread::scope(|scope| {
        let (barrier, work) = (&barrier, &work);
        let threads: Vec<_> = members
            .into_iter()
            .map(|member| {
                scope.spawn(move || {
                    barrier.wait();
                    let start = Instant::now();
                    let result = work(member, start);
                    Timed {
                        start,
                        end: Instant::now(),
                        result,
                    }
                })
            })
            .collect();
        if let Some(meter) = &mut meter {
            meter.begin();
        }
        barrier.wait();
        let joined = threads.into_iter().map(|thread| match thread.join() {
            Ok(timed) => timed,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        joined.collect::<Vec<_>>()
    });
    if let Some(meter) = &mut meter {
        meter.end();
    }
    let start = timed.iter().map(|timed| timed.start).min();
    let end = timed.iter().map(|timed| timed.end).max();
    let elapsed_ns = match (start, end) {
        (Some(start), Some(end)) => (end - start).as_nanos() as u64,
        _ => 0,
    };
    let results: Result<Vec<R>, EngineError> =
        timed.into_iter().map(|timed| timed.result).collect();
    Ok((results?, elapsed_ns))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn members_run_at_the_same_time_and_report_in_order() {
        let arrived = AtomicUsize::new(0);
        let (results, elapsed_ns) = run(vec![3, 1, 2], None, |member, _| {
            // Would never end if they ran one after the other.
            arrived.fetch_add(1, Ordering::SeqCst);
            while arrived.load(Ordering::SeqCst) < 3 {
                std::thread::yield_now();
            }
            Ok(member * 10)
        })
        .expect("no errors");
        assert_eq!(results, [30, 10, 20]);
        assert!(elapsed_ns > 0);
    }

    #[test]
    fn an_error_of_one_is_an_error_of_all() {
        let failed = run(vec![1, 2], None, |member, _| match member {
            1 => Ok(()),
            _ => Err(EngineError::Unavailable("planted".to_owned())),
        });
        assert!(failed.is_err());
    }
}
