//! Where the time of an operation goes, as far as every run can tell: on the processor in the program, on the
//! processor in the kernel, and neither (waiting for a device, or for the processor).

use sqlitmus_core::analysis::{ArmAnalysis, ChartAnalysis};
use sqlitmus_core::run::{Outcome, Run};
use sqlitmus_core::units::format_microseconds;

use crate::summary::label;
use crate::svg::{Stack, Stacks};

use super::{is_strong, measured};

/// The parts of a chart's arms.
pub(crate) fn view(run: &Run, chart: &ChartAnalysis, id: &str) -> Option<Stacks> {
    let rows: Vec<Stack> = measured(chart)
        .filter_map(|arm| {
            Some(Stack {
                label: label(arm),
                strong: is_strong(run, &arm.name),
                sizes: parts_ns(run, arm)?.into(),
            })
        })
        .collect();
    (!rows.is_empty()).then(|| Stacks {
        id: id.to_owned(),
        title: "Where the time goes".to_owned(),
        heading: "microseconds per blob, to acknowledgement".to_owned(),
        format: format_microseconds,
        parts: [
            "in the program",
            "in the kernel",
            "waiting, or not explained",
        ]
        .map(str::to_owned)
        .into(),
        rest: Some(2),
        as_shares: false,
        rows,
    })
}

/// Nanoseconds of an operation: program, kernel, rest. `None` if the run does not say.
fn parts_ns(run: &Run, arm: &ArmAnalysis) -> Option<[f64; 3]> {
    let (mut operations, mut elapsed, mut user, mut kernel) = (0.0, 0.0, 0.0, 0.0);
    let trials = run.trials.iter().filter(|trial| trial.arm == arm.name);
    // What a trial used is summed over all of its slices, so all of them count here.
    for trial in trials.filter(|trial| trial.outcome == Outcome::Valid) {
        let used = |name: &str| trial.resources.get(name).map(|ns| *ns as f64);
        user += used("user_cpu_ns")?;
        kernel += used("system_cpu_ns")?;
        for sample in &trial.samples {
            operations += sample.operations as f64;
            elapsed += sample.elapsed_ns as f64;
        }
    }
    if operations <= 0.0 || elapsed <= 0.0 {
        return None;
    }
    // The kernel counts in ticks, which can come to a little more than the clock says.
    let whole = elapsed.max(user + kernel);
    let rest = whole - user - kernel;
    let scale = elapsed / whole / operations;
    Some([user * scale, kernel * scale, rest * scale])
}
