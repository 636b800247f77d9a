//! Where the time of an operation goes, by parts that were measured by themselves: a bar for each
//! arm that the suite explains, one colour a part whatever the arm, and the rest last.

use sqlitmus_core::analysis::Analysis;
use sqlitmus_core::run::Run;
use sqlitmus_core::units::format_microseconds;

use crate::explanation::REST;
use crate::summary::named;
use crate::svg::{Stack, Stacks};

use super::is_strong;

/// The parts of all explained arms.
pub(crate) fn view(run: &Run, analysis: &Analysis, id: &str) -> Option<Stacks> {
    let explained: Vec<_> = analysis
        .explanations
        .iter()
        .filter_map(|explained| Some((explained, explained.result.as_ref().ok()?)))
        .collect();
    let mut names: Vec<String> = Vec::new();
    for (name, _) in explained.iter().flat_map(|(_, parts)| &parts.parts) {
        let name = named(name, "a part");
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let rows: Vec<Stack> = explained
        .iter()
        .map(|(explained, parts)| {
            let size = |wanted: &String| {
                let of_name = parts
                    .parts
                    .iter()
                    .filter(|(name, _)| named(name, "a part") == *wanted);
                of_name.map(|(_, amount)| amount.ns).sum::<f64>()
            };
            let mut sizes: Vec<f64> = names.iter().map(size).collect();
            sizes.push(parts.rest.map_or(0.0, |rest| rest.ns));
            Stack {
                label: named(&explained.label, &explained.arm),
                strong: is_strong(run, &explained.arm),
                sizes,
            }
        })
        .collect();
    names.push(REST.to_owned());
    (!rows.is_empty()).then(|| Stacks {
        id: id.to_owned(),
        title: "Parts of an operation, measured one by one".to_owned(),
        heading: "microseconds per operation".to_owned(),
        format: format_microseconds,
        parts: names,
        rows,
    })
}
