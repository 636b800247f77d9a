//! Time spent in SQLite by one thread: on the clock, and of the processor.

use std::time::Instant;

use rustix::time::{ClockId, clock_gettime};

/// Adds up what is timed.
#[derive(Debug, Default)]
pub(super) struct Stopwatch {
    wall_ns: u64,
    cpu_ns: u64,
}

impl Stopwatch {
    /// Times what is done.
    pub(super) fn time<R>(&mut self, work: impl FnOnce() -> R) -> R {
        let (wall, cpu_ns) = (Instant::now(), thread_cpu_ns());
        let answer = work();
        self.cpu_ns += thread_cpu_ns().saturating_sub(cpu_ns);
        self.wall_ns += super::nanoseconds(wall);
        answer
    }

    pub(super) fn wall_ns(&self) -> u64 {
        self.wall_ns
    }

    pub(super) fn cpu_ns(&self) -> u64 {
        self.cpu_ns
    }
}

/// Processor time of this thread since it began.
fn thread_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0)
}
