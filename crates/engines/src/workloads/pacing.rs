//! When operations begin: one after the other as fast as they go (a closed loop), or when they are
//! due, whether or not those before them have ended (an open loop).
//!
//! In a closed loop a stall of the store delays one operation, and whoever would have asked
//! meanwhile is not counted: "coordinated omission" (Gil Tene). In an open loop operations are due
//! at moments drawn beforehand, and a latency is counted from the moment an operation was due, so
//! that everybody who had to wait is counted. What a stall does to both is worked out in the tests,
//! with a clock that is simulated.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use crate::engine::EngineError;

/// An operation that begins later than this after it was due is counted as late: a thread that only
/// has to wake up takes less.
pub(super) const LATE_NS: u64 = 1_000_000;

/// A sleeping thread is woken this long before an operation is due; the rest is spent yielding.
const WAKE_EARLY_NS: u64 = 60_000;

/// Nanoseconds since a start that all threads of a slice share.
pub(super) trait Clock {
    /// Now.
    fn now_ns(&mut self) -> u64;
    /// Returns at that moment or after it.
    fn wait_until(&mut self, due_ns: u64);
}

/// The machine's clock.
pub(super) struct RealClock {
    pub(super) start: Instant,
}

impl Clock for RealClock {
    fn now_ns(&mut self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }

    fn wait_until(&mut self, due_ns: u64) {
        let now_ns = self.now_ns();
        if due_ns > now_ns + WAKE_EARLY_NS {
            std::thread::sleep(Duration::from_nanos(due_ns - now_ns - WAKE_EARLY_NS));
        }
        while self.now_ns() < due_ns {
            std::thread::yield_now();
        }
    }
}

/// What one thread's operations came to.
pub(super) struct Paced {
    /// Operations done.
    pub(super) operations: u64,
    /// Those that began late.
    pub(super) late: u64,
    /// Those that were due and never begun, because time was up.
    pub(super) skipped: u64,
    /// Time that operations took, in nanoseconds, without what the thread did between them.
    pub(super) busy_ns: u64,
}

impl Paced {
    fn nothing() -> Self {
        Self {
            operations: 0,
            late: 0,
            skipped: 0,
            busy_ns: 0,
        }
    }
}

/// One operation; it may prepare something before its clock starts.
pub(super) trait Operation {
    /// Makes ready what is no part of the operation.
    fn prepare(&mut self) {}
    /// Does it.
    fn run(&mut self) -> Result<(), EngineError>;
}

/// Operations one after the other until a moment.
pub(super) fn closed(
    clock: &mut dyn Clock,
    until_ns: u64,
    operation: &mut dyn Operation,
    latencies: &mut Histogram<u64>,
) -> Result<Paced, EngineError> {
    let mut paced = Paced::nothing();
    loop {
        operation.prepare();
        let begin_ns = clock.now_ns();
        if begin_ns >= until_ns {
            return Ok(paced);
        }
        operation.run()?;
        let end_ns = clock.now_ns();
        latencies.saturating_record(end_ns - begin_ns);
        paced.operations += 1;
        paced.busy_ns += end_ns - begin_ns;
    }
}

/// Operations as they are due. Threads that share `next` share the moments: whoever is free takes
/// the next one. After `give_up_ns` what is still due is skipped; how long it had waited by then is
/// the least that its latency would have been, and is recorded.
pub(super) fn open(
    clock: &mut dyn Clock,
    (moments, next): (&[u64], &AtomicUsize),
    give_up_ns: u64,
    operation: &mut dyn Operation,
    latencies: &mut Histogram<u64>,
) -> Result<Paced, EngineError> {
    let mut paced = Paced::nothing();
    operation.prepare();
    while let Some(due_ns) = moments.get(next.fetch_add(1, Ordering::Relaxed)) {
        clock.wait_until(*due_ns);
        let begin_ns = clock.now_ns();
        let waited_ns = begin_ns.saturating_sub(*due_ns);
        if begin_ns >= give_up_ns {
            paced.skipped += 1;
            latencies.saturating_record(waited_ns);
            continue;
        }
        operation.run()?;
        let end_ns = clock.now_ns();
        latencies.saturating_record(end_ns - due_ns);
        paced.operations += 1;
        paced.late += u64::from(waited_ns > LATE_NS);
        paced.busy_ns += end_ns - begin_ns;
        operation.prepare();
    }
    Ok(paced)
}

#[cfg(test)]
mod tests {
    use super::super::new_histogram;
    use super::*;
    use std::cell::Cell;
    use std::rc::Rc;

    use sqlitmus_core::arrivals::{Pattern, due_moments};

    const MS: u64 = 1_000_000;

    struct SimulatedClock(Rc<Cell<u64>>);

    impl Clock for SimulatedClock {
        fn now_ns(&mut self) -> u64 {
            self.0.get()
        }

        fn wait_until(&mut self, due_ns: u64) {
            self.0.set(self.0.get().max(due_ns));
        }
    }

    /// Takes 0.1 ms; the first operation that begins after a second takes half a second more.
    struct Stalling {
        now: Rc<Cell<u64>>,
        has_stalled: bool,
    }

    impl Operation for Stalling {
        fn run(&mut self) -> Result<(), EngineError> {
            let mut took = MS / 10;
            if !self.has_stalled && self.now.get() >= 1_000 * MS {
                self.has_stalled = true;
                took += 500 * MS;
            }
            self.now.set(self.now.get() + took);
            Ok(())
        }
    }

    fn planted() -> (SimulatedClock, Stalling, Histogram<u64>) {
        let now = Rc::new(Cell::new(0));
        let stalling = Stalling {
            now: Rc::clone(&now),
            has_stalled: false,
        };
        (SimulatedClock(now), stalling, new_histogram())
    }

    fn near(found_ns: u64, expected_ns: u64) -> bool {
        // The histogram keeps two digits.
        found_ns.abs_diff(expected_ns) <= expected_ns / 50
    }

    #[test]
    fn a_closed_loop_omits_who_would_have_waited() {
        let (mut clock, mut stalling, mut latencies) = planted();
        let paced = closed(&mut clock, 10_000 * MS, &mut stalling, &mut latencies);
        // 9.5 seconds of operations of 0.1 ms; one in 95,000 has stalled.
        assert_eq!(paced.expect("no errors").operations, 95_000);
        assert!(near(latencies.value_at_quantile(0.99), MS / 10));
        assert!(near(latencies.value_at_quantile(0.999), MS / 10));
        assert!(near(latencies.max(), 500 * MS));
    }

    #[test]
    fn an_open_loop_counts_everybody_from_when_they_were_due() {
        let (mut clock, mut stalling, mut latencies) = planted();
        // 1,000 a second: at a tenth of the capacity.
        let moments = due_moments(Pattern::Fixed, 1_000.0, 10_000 * MS, 1);
        assert_eq!(moments.len(), 9_999);
        let next = AtomicUsize::new(0);
        let paced = open(
            &mut clock,
            (&moments, &next),
            u64::MAX,
            &mut stalling,
            &mut latencies,
        );
        let paced = paced.expect("no errors");
        // While the store stalls for 500 ms, 500 operations fall due; it takes up another 55 ms to
        // work them off at 0.1 ms each while more arrive. The wait falls from 500 ms to nothing in
        // 556 operations, of 9,999. So 1% of all, 100, wait longer than
        // 500 * (1 - 100 / 556) = 410 ms.
        assert!(near(latencies.value_at_quantile(0.99), 410 * MS));
        assert!(near(latencies.value_at_quantile(0.5), MS / 10));
        assert!(near(latencies.max(), 500 * MS));
        assert_eq!(paced.operations, 9_999);
        assert!(paced.late.abs_diff(555) <= 3, "{}", paced.late);
        assert_eq!(paced.skipped, 0);
    }

    #[test]
    fn what_was_due_and_is_not_begun_in_time_is_skipped_and_counted() {
        let (mut clock, mut stalling, mut latencies) = planted();
        let moments = due_moments(Pattern::Fixed, 1_000.0, 2_000 * MS, 1);
        let next = AtomicUsize::new(0);
        let paced = open(
            &mut clock,
            (&moments, &next),
            1_200 * MS,
            &mut stalling,
            &mut latencies,
        );
        let paced = paced.expect("no errors");
        // Those due in the first second, and the one that stalls until 1.5 s.
        assert_eq!(paced.operations, 1_000);
        assert_eq!(paced.operations + paced.skipped, moments.len() as u64);
        assert_eq!(latencies.len(), moments.len() as u64);
    }

    #[test]
    fn threads_share_the_moments() {
        let (mut clock, mut stalling, mut latencies) = planted();
        let moments = due_moments(Pattern::Fixed, 100.0, 500 * MS, 1);
        let next = AtomicUsize::new(40);
        let paced = open(
            &mut clock,
            (&moments, &next),
            u64::MAX,
            &mut stalling,
            &mut latencies,
        );
        assert_eq!(paced.expect("no errors").operations, 9);
    }
}
