//! What a look at the clock costs and how fine it is.

use std::time::Instant;

use serde::Serialize;

use super::{Check, Judgement, Level};
use crate::machine::environment::{Environment, fact};

/// The check.
pub const CHECK: Check = Check {
    name: "clock",
    why: "Every operation has one reading of the clock in its latency, and nothing shorter than a step \
          of the clock can be told apart.",
};

/// Readings of the clock that are timed together.
const BATCH: u32 = 2000;
/// Batches; the fastest counts, since an interruption can only make one slower.
const BATCHES: u32 = 25;

/// A reading that costs more than this in nanoseconds is no plain read of a processor register.
const COST_NOTE_NS: f64 = 60.0;
/// One that costs more than this is a system call or the read of a device.
const COST_WARNING_NS: f64 = 200.0;
/// Steps from here on hide differences between single operations on cached data, in nanoseconds.
const STEP_WARNING_NS: u64 = 1000;
/// Steps from here on are longer than most operations, in nanoseconds.
const STEP_PROBLEM_NS: u64 = 1_000_000;

/// What was found out about the clock.
#[derive(Clone, Debug, Serialize)]
pub struct Clock {
    /// The kernel's clock source.
    pub source: String,
    /// What one reading costs, in nanoseconds.
    pub cost_ns: f64,
    /// The shortest time between two readings that differ, in nanoseconds.
    pub step_ns: u64,
    /// The resolution that the clock claims, in nanoseconds.
    pub claimed_resolution_ns: Option<u64>,
}

impl Clock {
    /// Measures it; takes a few milliseconds.
    #[must_use]
    pub fn read(environment: &Environment) -> Self {
        let mut cost_ns = f64::INFINITY;
        let mut step_ns = u64::MAX;
        for _ in 0..BATCHES {
            let start = Instant::now();
            let mut last = start;
            for _ in 0..BATCH {
                let now = Instant::now();
                let step = u64::try_from((now - last).as_nanos()).unwrap_or(u64::MAX);
                if step > 0 {
                    step_ns = step_ns.min(step);
                }
                last = now;
            }
            cost_ns = cost_ns.min((last - start).as_nanos() as f64 / f64::from(BATCH));
        }
        Self {
            source: environment.value(fact::CLOCK_SOURCE).to_owned(),
            cost_ns,
            step_ns,
            claimed_resolution_ns: environment.number(fact::CLOCK_RESOLUTION_NS),
        }
    }

    /// What follows.
    #[must_use]
    pub fn judge(&self) -> Judgement {
        let finding = format!(
            "clock source {}, {:.0} ns a reading, shortest step {} ns",
            self.source, self.cost_ns, self.step_ns
        );
        let advice = "see what else the kernel offers, tsc being the cheapest: \
                      cat /sys/devices/system/clocksource/clocksource0/available_clocksource";
        if self.step_ns >= STEP_PROBLEM_NS {
            Judgement::new(Level::Problem, finding, advice)
        } else if self.cost_ns > COST_WARNING_NS || self.step_ns >= STEP_WARNING_NS {
            Judgement::new(Level::Warning, finding, advice)
        } else if self.cost_ns > COST_NOTE_NS {
            Judgement::new(Level::Note, finding, advice)
        } else {
            Judgement::ok(finding)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(cost_ns: f64, step_ns: u64) -> Level {
        let clock = Clock {
            source: "hpet".to_owned(),
            cost_ns,
            step_ns,
            claimed_resolution_ns: Some(1),
        };
        clock.judge().level
    }

    #[test]
    fn cost_and_steps_are_judged() {
        assert_eq!(clock(20.0, 10), Level::Ok);
        assert_eq!(clock(90.0, 90), Level::Note);
        assert_eq!(clock(900.0, 900), Level::Warning);
        assert_eq!(clock(20.0, 1000), Level::Warning);
        assert_eq!(clock(20.0, 4_000_000), Level::Problem);
    }

    #[test]
    fn this_machines_clock_moves() {
        let clock = Clock::read(&Environment::read());
        assert!(
            clock.cost_ns > 0.0 && clock.step_ns < STEP_PROBLEM_NS,
            "{clock:?}"
        );
    }
}
