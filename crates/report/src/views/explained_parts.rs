//! Where the time of an operation goes, by parts that were measured by themselves: a bar for each
//! arm that the suite explains, one colour a part, and the rest last. Arms of one group stand in one chart:
//! reading and writing differ by orders of magnitude.

use sqlitmus_core::analysis::Analysis;
use sqlitmus_core::explanation::{Explained as Arm, Parts};
use sqlitmus_core::run::Run;
use sqlitmus_core::units::format_microseconds;

use crate::explanation::REST;
use crate::summary::named;
use crate::svg::{Stack, Stacks};

use super::is_strong;

/// Wholes that differ by more than this factor are drawn as shares: the smallest would be a line.
const FACTOR_FOR_SHARES: f64 = 12.0;

type Explained<'a> = (&'a Arm, &'a Parts);

/// A chart for each group with explained arms.
pub(crate) fn views(run: &Run, analysis: &Analysis, id: &str) -> Vec<Stacks> {
    let mut groups: Vec<(String, Vec<Explained<'_>>)> = Vec::new();
    for explained in &analysis.explanations {
        let Ok(parts) = &explained.result else {
            continue;
        };
        let group = run.plan.arm(&explained.arm);
        let group = group.map_or_else(String::new, |(group, _)| group.name.clone());
        match groups.iter_mut().find(|(known, _)| *known == group) {
            Some((_, arms)) => arms.push((explained, parts)),
            None => groups.push((group, vec![(explained, parts)])),
        }
    }
    let several = groups.len() > 1;
    let charts = groups.iter().enumerate().map(|(index, (group, arms))| {
        let of = match several {
            true => format!(": {}", named(group, "a group without a name")),
            false => String::new(),
        };
        let title = format!("Parts of an operation, measured one by one{of}");
        chart(run, arms, (format!("{id}-{}", index + 1), title))
    });
    charts.collect()
}

fn chart(run: &Run, arms: &[Explained<'_>], (id, title): (String, String)) -> Stacks {
    let mut parts: Vec<String> = Vec::new();
    for (name, _) in arms.iter().flat_map(|(_, found)| &found.parts) {
        let name = named(name, "a part");
        if !parts.contains(&name) {
            parts.push(name);
        }
    }
    let rows: Vec<Stack> = arms
        .iter()
        .map(|(explained, found)| {
            let size = |wanted: &String| {
                let of_name = found
                    .parts
                    .iter()
                    .filter(|(name, _)| named(name, "a part") == *wanted);
                of_name.map(|(_, amount)| amount.ns).sum::<f64>()
            };
            let mut sizes: Vec<f64> = parts.iter().map(size).collect();
            sizes.push(found.rest.map_or(0.0, |rest| rest.ns));
            Stack {
                label: named(&explained.label, &explained.arm),
                strong: is_strong(run, &explained.arm),
                sizes,
            }
        })
        .collect();
    let wholes = || rows.iter().map(|row| row.sizes.iter().sum::<f64>());
    let (least, most) = (
        wholes().fold(f64::INFINITY, f64::min),
        wholes().fold(0.0, f64::max),
    );
    let as_shares = least > 0.0 && most / least > FACTOR_FOR_SHARES;
    let rest = parts.len();
    parts.push(REST.to_owned());
    Stacks {
        id,
        title,
        heading: match as_shares {
            true => "share of each operation's time, which stands at the end in microseconds",
            false => "microseconds per operation",
        }
        .to_owned(),
        format: format_microseconds,
        parts,
        rest: Some(rest),
        as_shares,
        rows,
    }
}
