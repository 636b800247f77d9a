//! A slowdown on purpose: waiting busily for a share of the time that operations take, so that the
//! harness can be tested with differences that are known. Nobody else asks for one.

use std::time::{Duration, Instant};

use sqlitmus_engines::workloads::Slowing;

/// Operations of this long are waited for at once: a wait cannot be told more finely than by a reading of
/// the clock, some 25 ns.
const WORK_BETWEEN_WAITS: Duration = Duration::from_micros(20);

/// Makes operations slower by a share of their own time.
#[derive(Debug)]
pub struct Slowdown {
    /// `None` where no account is kept.
    share: Option<f64>,
    /// Since when work has not been waited for.
    since: Instant,
    /// What is to be waited; below 0 for a wait that was too long.
    owed_ns: f64,
}

impl Slowdown {
    /// A slowdown by this share. One of 0 keeps account and never waits, so that it differs from others
    /// in the waits alone; `None` does nothing.
    #[must_use]
    pub fn new(share: Option<f64>) -> Self {
        Self {
            share,
            since: Instant::now(),
            owed_ns: 0.0,
        }
    }
}

impl Slowing for Slowdown {
    #[inline]
    fn begin(&mut self, now: Instant) {
        self.since = now;
    }

    #[inline]
    fn after(&mut self, now: Instant) -> Instant {
        if self.share.is_none() || now - self.since < WORK_BETWEEN_WAITS {
            return now;
        }
        self.wait(now)
    }

    #[cold]
    fn wait(&mut self, now: Instant) -> Instant {
        let Some(share) = self.share else { return now };
        self.owed_ns += nanoseconds(self.since, now) * share;
        let mut end = now;
        while nanoseconds(now, end) < self.owed_ns {
            std::hint::spin_loop();
            end = Instant::now();
        }
        // The clock cannot be read often enough to wait exactly; the next wait makes up for it.
        self.owed_ns -= nanoseconds(now, end);
        self.since = end;
        end
    }
}

fn nanoseconds(start: Instant, end: Instant) -> f64 {
    (end - start).as_nanos() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_waited_is_the_share_of_the_time() {
        let mut slowdown = Slowdown::new(Some(0.05));
        let mut waited_ns = 0.0;
        let mut now = Instant::now();
        slowdown.begin(now);
        for _ in 0..2000 {
            // Operations of 700 ns, as told: nothing else has to take its time here.
            let end = now + Duration::from_nanos(700);
            now = slowdown.after(end);
            waited_ns += nanoseconds(end, now);
        }
        let end = now;
        waited_ns += nanoseconds(end, slowdown.wait(end));
        // What was waited too long is known, and would be made up for.
        let expected_ns = 2000.0 * 700.0 * 0.05;
        let found_ns = waited_ns + slowdown.owed_ns;
        assert!((found_ns - expected_ns).abs() < 1.0, "{found_ns}");
        assert!(slowdown.owed_ns <= 0.0 && waited_ns >= expected_ns - 1.0);
    }

    #[test]
    fn without_a_share_nothing_is_waited() {
        for share in [None, Some(0.0)] {
            let mut slowdown = Slowdown::new(share);
            let end = Instant::now() + Duration::from_secs(1);
            assert_eq!(slowdown.after(end), end);
            assert_eq!(slowdown.wait(end), end);
        }
    }
}
