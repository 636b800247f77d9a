//! The figures of run B in Bencher Metric Format, for services that keep figures over time. The
//! format: an object of benchmarks, each an object of measures, each with `value` and, if known,
//! `lower_value` and `upper_value` (<https://bencher.dev/docs/reference/bencher-metric-format/>).

use serde_json::{Map, Value};

use sqlitmus_core::measurements::Cost;
use sqlitmus_core::run_comparison::{ArmCost, ComparedCase, RunComparison};

use crate::json::{rounded, write};
use crate::text::clean;

/// Renders the figures of B as one JSON object.
///
/// A benchmark is called `suite/scale/arm`, since at another scale an arm is another case. Measures:
/// `latency` (nanoseconds of one operation, the service's own name and unit) and, of writing arms,
/// `settled-latency`; each with the ends of its 95% interval. The format has no place for verdicts,
/// nor for cases without figures: [`without_figures`] names those.
#[must_use]
pub fn bencher(comparison: &RunComparison) -> String {
    let mut benchmarks = Map::new();
    for case in &comparison.cases {
        let Some(cost) = case.b else { continue };
        let measure = match case.cost {
            Cost::Acknowledged => "latency",
            Cost::Settled => "settled-latency",
        };
        let measures = benchmarks
            .entry(name(comparison, case))
            .or_insert_with(|| Value::Object(Map::new()));
        if let Value::Object(measures) = measures {
            measures.insert(measure.to_owned(), metric(&cost));
        }
    }
    write(&Value::Object(benchmarks))
}

/// Names of the benchmarks that B has no figures for.
#[must_use]
pub fn without_figures(comparison: &RunComparison) -> Vec<String> {
    let cases = comparison.cases.iter();
    cases
        .filter(|case| case.b.is_none() && case.cost == Cost::Acknowledged)
        .map(|case| name(comparison, case))
        .collect()
}

fn name(comparison: &RunComparison, case: &ComparedCase) -> String {
    let side = &comparison.b;
    clean(&format!("{}/{}/{}", side.suite, side.scale, case.name))
}

fn metric(cost: &ArmCost) -> Value {
    let mut metric = Map::new();
    let mut set = |name: &str, value: Option<f64>| {
        if let Some(value) = rounded(value) {
            metric.insert(name.to_owned(), value.into());
        }
    };
    set("value", Some(cost.operation_ns));
    set("lower_value", cost.interval.map(|ends| ends.low));
    set("upper_value", cost.interval.map(|ends| ends.high));
    Value::Object(metric)
}
