//! Latency under load: what readers and a writer waited, by percentile, and how many of the
//! operations that were due began late or not at all. In an open loop a latency is counted from the
//! moment an operation was due; a closed loop stands beside it, whose latencies leave out whoever
//! would have asked during a stall.

use sqlitmus_core::analysis::{Analysis, ArmAnalysis, GroupAnalysis};
use sqlitmus_core::case::Workload;
use sqlitmus_core::plan::{Arm, Group};
use sqlitmus_core::run::{Outcome, Run, Trial, is_level};
use sqlitmus_core::units::{format_count, format_microseconds};

use crate::figures::DASH;
use crate::plain_table::PlainTable;
use crate::summary::{label, named, trouble};

/// Shares of the operations whose longest latency is shown.
const SHARES: [f64; 5] = [0.5, 0.9, 0.99, 0.999, 1.0];

/// Whether a group is about load: it has a writer beside readers, or arrivals.
pub(crate) fn is_shown(group: &Group) -> bool {
    let loads = |arm: &Arm| match &arm.case.workload {
        Workload::Load {
            writers, arrivals, ..
        } => *writers > 0 || arrivals.is_open(),
        _ => false,
    };
    group.arms.iter().any(loads)
}

/// The tables of all groups about load.
pub(crate) fn tables(run: &Run, analysis: &Analysis) -> Vec<PlainTable> {
    let groups = run.plan.groups.iter().zip(&analysis.groups);
    groups
        .filter(|(group, _)| is_shown(group))
        .map(|(group, measured)| table(run, group, measured))
        .collect()
}

fn table(run: &Run, group: &Group, measured: &GroupAnalysis) -> PlainTable {
    let mut rows = Vec::new();
    let arms = group.arms.iter().zip(&measured.arms);
    for (arm, analysed) in arms.filter(|(arm, _)| !arm.is_twin()) {
        match trouble(&analysed.status) {
            Some(reason) => rows.push((label_of(arm, analysed), vec![reason])),
            None => rows.extend(rows_of(run, arm, analysed)),
        }
    }
    PlainTable {
        title: format!(
            "Latency under load: {}, microseconds",
            named(&group.name, "a group without a name")
        ),
        headings: vec![
            "p50", "p90", "p99", "p99.9", "max", "due/s", "done/s", "late", "skipped",
        ],
        rows,
        notes: vec![
            "In an open loop operations are due at random moments, unless an arm says otherwise, and a latency is counted from \
             the moment an operation was due; late: begun more than 1 ms after it; skipped: not begun by the time that the slice was over \
             twice, and counted with what they had waited by then. In a closed loop whoever would \
             have asked during a stall is not counted. Percentiles of writes are the largest of \
             any trial."
                .to_owned(),
        ],
    }
}

/// What an arm is called here: with when its operations begin, unless its label says so.
pub(crate) fn label_of(arm: &Arm, analysed: &ArmAnalysis) -> String {
    let label = label(analysed);
    let Workload::Load { arrivals, .. } = arm.case.workload else {
        return label;
    };
    match arrivals.words() {
        Some(words) if label.contains(&words) => label,
        Some(words) => format!("{label}, {words}"),
        None => format!("{label}, closed loop"),
    }
}

/// The same for the name of a curve: what all arms of the group share is left out.
pub(crate) fn curve_label(group: &Group, arm: &Arm, analysed: &ArmAnalysis) -> String {
    let label = label_of(arm, analysed);
    // What a plan appends is the number of readers.
    let readers = |arm: &Arm| match arm.case.workload {
        Workload::Load { readers, .. } => Some(readers),
        _ => None,
    };
    let mut arms = group.arms.iter();
    match readers(arm) {
        Some(threads) if arms.all(|other| readers(other) == Some(threads)) => {
            label.replace(&format!(", {threads} threads"), "")
        }
        _ => label,
    }
}

fn rows_of(run: &Run, arm: &Arm, analysed: &ArmAnalysis) -> Vec<(String, Vec<String>)> {
    let Workload::Load {
        readers, writers, ..
    } = arm.case.workload
    else {
        return vec![(label(analysed), vec![DASH.to_owned()])];
    };
    let name = |what: &str| format!("{}: {what}", label_of(arm, analysed));
    let mut rows = Vec::new();
    if readers > 0 {
        let latencies = SHARES.map(|share| analysed.latencies.quantile_ns(share));
        rows.push((name("reads"), cells(run, arm, "reads", latencies)));
    }
    if writers > 0 {
        let levels = [
            "peak_write_ns_p50",
            "peak_write_ns_p90",
            "peak_write_ns_p99",
            "peak_write_ns_p999",
            "peak_write_ns",
        ];
        let latencies = levels.map(|level| counter(run, arm, level));
        rows.push((name("writes"), cells(run, arm, "writes", latencies)));
    }
    rows
}

fn cells(run: &Run, arm: &Arm, what: &str, latencies: [Option<u64>; 5]) -> Vec<String> {
    let elapsed_ns: f64 = trials(run, arm)
        .flat_map(|trial| &trial.samples)
        .map(|sample| sample.elapsed_ns as f64)
        .sum();
    // What is due, is due in the slice's own time; what is left is worked off after it.
    let slices: usize = trials(run, arm).map(|trial| trial.samples.len()).sum();
    let group = run.plan.arm(&arm.name).map(|(group, _)| group);
    let due_ns = group.map_or(0.0, |group| group.slice_ns as f64 * slices as f64);
    let rate = |count: Option<u64>, ns: f64| match count {
        Some(count) if ns > 0.0 => format_count((count as f64 * 1e9 / ns).round() as u64),
        _ => DASH.to_owned(),
    };
    let count = |name: String| counter(run, arm, &name);
    let shown = |count: Option<u64>| count.map_or_else(|| DASH.to_owned(), format_count);
    let due = count(format!("{what}_due"));
    let microseconds =
        |ns: Option<u64>| ns.map_or_else(|| DASH.to_owned(), |ns| format_microseconds(ns as f64));
    let mut cells: Vec<String> = latencies.map(microseconds).to_vec();
    cells.extend([
        rate(due, due_ns),
        rate(count(what.to_owned()), elapsed_ns),
        shown(due.and(count(format!("{what}_late")))),
        shown(due.and(count(format!("{what}_skipped")))),
    ]);
    cells
}

/// The trials of an arm that count.
fn trials<'a>(run: &'a Run, arm: &'a Arm) -> impl Iterator<Item = &'a Trial> {
    let of_arm = run.trials.iter().filter(|trial| trial.arm == arm.name);
    of_arm.filter(|trial| trial.outcome == Outcome::Valid)
}

/// A counter over all trials of an arm; `None` if nothing has counted it.
fn counter(run: &Run, arm: &Arm, name: &str) -> Option<u64> {
    let counted = trials(run, arm).filter_map(|trial| trial.resources.get(name).copied());
    counted.reduce(|sum, value| match is_level(name) {
        true => sum.max(value),
        false => sum.saturating_add(value),
    })
}
