//! What two identical arms differ by on this machine: the noise floor, measured as `measure` does it.
//!
//! The plan stands here; that it is run by the orchestrator is the verb's business.

use serde::Serialize;
use sqlitmus_core::plan::Plan;
use sqlitmus_core::suite::Suite;

use super::{Check, Judgement, Level};
use crate::catalogue::BuiltInEngines;
use crate::failure::Failure;

/// The check.
pub const CHECK: Check = Check {
    name: "noise floor",
    why: "Two identical arms were compared as different ones are: no difference smaller than what they \
          seem to differ by can be told here in that time.",
};

/// The suite.
const SUITE: &str = include_str!("noise.toml");

/// A noise floor up to this share lets small differences be told.
const FINE: f64 = 0.02;
/// Up to this one, more rounds help.
const NOTABLE: f64 = 0.05;
/// Beyond this one, differences worth having drown.
const TOO_MUCH: f64 = 0.10;

/// What was measured.
#[derive(Clone, Debug, Serialize)]
pub struct Noise {
    /// Farther end of the 95% interval of the ratio of the two arms, as a share; `None` if it could not
    /// be measured.
    pub noise_floor: Option<f64>,
    /// Rounds of fresh processes.
    pub rounds: u32,
    /// Slices of each arm in a round.
    pub slices: u32,
    /// Length of a slice in milliseconds.
    pub slice_ms: u64,
    /// Nanoseconds of one operation.
    pub operation_ns: Option<f64>,
    /// How long all of it took, in milliseconds.
    pub took_ms: u64,
    /// Why nothing was measured; empty if it was, or was not tried.
    pub failure: String,
}

/// The plan of the measurement.
///
/// # Errors
/// The embedded suite is damaged, which a test rules out.
pub fn plan(rounds: Option<u32>) -> Result<Plan, Failure> {
    let suite = Suite::parse(SUITE, "noise.toml")
        .map_err(|error| Failure::environment(error.to_string(), error.hint))?;
    let mut plan = Plan::resolve(&suite, "default", 1, &BuiltInEngines)
        .map_err(|error| Failure::environment(error.to_string(), error.hint))?;
    for group in &mut plan.groups {
        group.rounds = rounds.unwrap_or(group.rounds);
    }
    Ok(plan)
}

impl Noise {
    /// What follows.
    #[must_use]
    pub fn judge(&self) -> Judgement {
        let Some(floor) = self.noise_floor.filter(|floor| floor.is_finite()) else {
            if self.failure.is_empty() {
                return Judgement::ok("not measured (--quick)");
            }
            let finding = format!("could not be measured: {}", self.failure);
            return Judgement::new(Level::Problem, finding, "see what `sqlitmus measure` says");
        };
        let finding = format!(
            "two identical arms differ by up to {:.1}% ({} rounds of {} slices of {} ms, {:.0} s)",
            floor * 100.0,
            self.rounds,
            self.slices,
            self.slice_ms,
            self.took_ms as f64 / 1000.0
        );
        if floor <= FINE {
            Judgement::ok(finding)
        } else if floor <= NOTABLE {
            let advice = "for smaller differences measure more rounds: --rounds N";
            Judgement::new(Level::Note, finding, advice)
        } else if floor <= TOO_MUCH {
            let advice =
                "quiet the machine (see the other findings), or measure more rounds: --rounds N";
            Judgement::new(Level::Warning, finding, advice)
        } else {
            let advice = "quiet the machine before measuring: see the other findings";
            Judgement::new(Level::Problem, finding, advice)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(noise_floor: Option<f64>, failure: &str) -> Level {
        let noise = Noise {
            noise_floor,
            rounds: 8,
            slices: 50,
            slice_ms: 10,
            operation_ns: Some(5000.0),
            took_ms: 9000,
            failure: failure.to_owned(),
        };
        noise.judge().level
    }

    #[test]
    fn the_floor_is_judged() {
        assert_eq!(noise(Some(0.01), ""), Level::Ok);
        assert_eq!(noise(Some(0.03), ""), Level::Note);
        assert_eq!(noise(Some(0.08), ""), Level::Warning);
        assert_eq!(noise(Some(0.3), ""), Level::Problem);
        assert_eq!(noise(Some(f64::INFINITY), "too few rounds"), Level::Problem);
        assert_eq!(noise(None, "the worker crashed"), Level::Problem);
        assert_eq!(noise(None, ""), Level::Ok);
    }

    #[test]
    fn the_plan_is_one_arm_and_its_twin() {
        let plan = plan(Some(3)).expect("the embedded suite is good");
        assert_eq!(plan.groups.len(), 1);
        assert_eq!(plan.groups[0].rounds, 3);
        assert_eq!(plan.groups[0].arms.len(), 2);
    }
}
