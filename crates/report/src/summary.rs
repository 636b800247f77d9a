//! A run in words: what was asked, under which conditions, on which machine, and what a reader must
//! know before believing a figure. The same words in every format; layout is the formats' business.

use std::collections::BTreeSet;

use sqlitmus_core::advice::Stage;
use sqlitmus_core::analysis::{Analysis, ArmAnalysis, GroupAnalysis};
use sqlitmus_core::case::{Case, Shape, Workload};
use sqlitmus_core::claims::Judgement;
use sqlitmus_core::dataset::{Dataset, SizeDistribution};
use sqlitmus_core::keys::KeyOrder;
use sqlitmus_core::measurements::ArmStatus;
use sqlitmus_core::plan::Group;
use sqlitmus_core::run::{Outcome, Run, RunState, Sample};
use sqlitmus_core::statistics::FEWEST_ROUNDS;
use sqlitmus_core::suite::{Chart, Claim};
use sqlitmus_core::units::{format_bytes, format_count, format_duration};

use crate::figures::{bare_ratio, percent};
use crate::machine;
use crate::text::clean;

/// What stands at the head of a report. All texts are cleaned.
pub(crate) struct Summary {
    /// The question of the suite.
    pub(crate) question: String,
    /// What a reader must know before believing a figure: whole sentences.
    pub(crate) warnings: Vec<String>,
    /// Data, cache state, noise and effort, in short pieces.
    pub(crate) conditions: Vec<String>,
    /// The machine, in short pieces.
    pub(crate) machine: Vec<String>,
    /// What measuring itself costs: a sentence, if the run has an arm for it.
    pub(crate) harness: Option<String>,
}

impl Summary {
    /// The words about a run.
    pub(crate) fn of(run: &Run, analysis: &Analysis) -> Self {
        Self {
            question: named(&run.plan.question, "What did this run measure?"),
            warnings: warnings(run, analysis),
            conditions: conditions(run, analysis),
            machine: machine::pieces(run),
            harness: harness(run, analysis),
        }
    }
}

/// A cleaned text, or what stands there if nothing is left of it.
pub(crate) fn named(text: &str, otherwise: &str) -> String {
    let cleaned = clean(text);
    if cleaned.is_empty() {
        otherwise.to_owned()
    } else {
        cleaned
    }
}

/// What an arm is called.
pub(crate) fn label(arm: &ArmAnalysis) -> String {
    named(&arm.label, &named(&arm.name, "(without a name)"))
}

/// What a named arm is called; its name if the run does not know it.
pub(crate) fn label_of(run: &Run, name: &str) -> String {
    let label = run.plan.arm(name).map_or("", |(_, arm)| arm.label.as_str());
    named(label, &named(name, "(without a name)"))
}

/// Why an arm has no figures; `None` if it has.
pub(crate) fn trouble(status: &ArmStatus) -> Option<String> {
    match status {
        ArmStatus::Measured => None,
        ArmStatus::Failed(reason) => Some(format!("failed: {}", named(reason, "no reason given"))),
        ArmStatus::Skipped(reason) => {
            Some(format!("skipped: {}", named(reason, "no reason given")))
        }
        ArmStatus::NotReached => Some("not measured: the run ended before its turn".to_owned()),
    }
}

/// What became of a claim, in words, and the reason if it was not measured.
pub(crate) fn judgement(judgement: &Judgement) -> (&'static str, Option<String>) {
    match judgement {
        Judgement::Holds => ("holds", None),
        Judgement::DoesNotHold => ("does not hold", None),
        Judgement::NotSure => ("not sure", None),
        Judgement::NotMeasured(reason) => ("not measured", Some(named(reason, "no reason given"))),
    }
}

/// Which ratios a claim needs: `needs 1.25 or more`. `None` if any will do.
pub(crate) fn border(claim: &Claim) -> Option<String> {
    match (
        claim.at_least.map(bare_ratio),
        claim.at_most.map(bare_ratio),
    ) {
        (Some(least), Some(most)) => Some(format!("needs {least} to {most}")),
        (Some(least), None) => Some(format!("needs {least} or more")),
        (None, Some(most)) => Some(format!("needs {most} or less")),
        (None, None) => None,
    }
}

/// The group that a chart's arms are in, as planned and as measured.
pub(crate) fn group_of_chart<'a>(
    run: &'a Run,
    analysis: &'a Analysis,
    chart: &Chart,
) -> Option<(&'a Group, &'a GroupAnalysis)> {
    let group = chart
        .arms
        .iter()
        .find_map(|name| run.plan.arm(name))
        .map(|(group, _)| group)?;
    let measured = analysis
        .groups
        .iter()
        .find(|found| found.name == group.name)?;
    Some((group, measured))
}

/// Effort and noise of a chart in short pieces: `9 rounds x 30 slices`, `noise 2.1%`.
/// Data that is not the report's first is named before.
pub(crate) fn chart_conditions(run: &Run, analysis: &Analysis, chart: &Chart) -> Vec<String> {
    let Some((group, measured)) = group_of_chart(run, analysis, chart) else {
        return Vec::new();
    };
    let slices = u64::from(group.slices);
    let slices = match batch(group, chart) {
        Some(operations) => {
            let batches = plural(slices, "batch", "batches");
            format!("{batches} of {}", format_count(operations))
        }
        None if group.writes() => plural(slices, "batch", "batches"),
        None => plural(slices, "slice", "slices"),
    };
    let data = |group: &Group| {
        group
            .arms
            .first()
            .map(|arm| dataset_words(&arm.case.dataset))
    };
    let first = run.plan.groups.first().and_then(data);
    let mut pieces: Vec<String> = data(group)
        .filter(|own| Some(own) != first.as_ref())
        .into_iter()
        .collect();
    pieces.push(format!("{} x {slices}", rounds(group, measured)));
    pieces.push(match measured.noise_floor {
        Some(floor) => format!("noise {}", percent(floor)),
        None => "noise unknown".to_owned(),
    });
    pieces
}

/// Trials of an arm that do not count, and why.
pub(crate) struct LeftOut {
    /// Which, counted from 1: `round 3`, `rounds 1-9`.
    pub(crate) rounds: String,
    /// What was wrong with them.
    pub(crate) reason: String,
}

/// The trials of an arm that were kept but do not count; those with the same reason together.
pub(crate) fn left_out_of(run: &Run, arm: &str) -> Vec<LeftOut> {
    let mut reasons: Vec<(String, BTreeSet<u32>)> = Vec::new();
    for trial in run.trials.iter().filter(|trial| trial.arm == arm) {
        let (Outcome::Invalid(reason)
        | Outcome::Failed(reason)
        | Outcome::Skipped(reason)
        | Outcome::Refuted(reason)) = &trial.outcome
        else {
            continue;
        };
        let reason = named(reason, "no reason given");
        let round = trial.round.saturating_add(1);
        match reasons.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, rounds)) => {
                rounds.insert(round);
            }
            None => reasons.push((reason, BTreeSet::from([round]))),
        }
    }
    let words = |(reason, rounds): (String, BTreeSet<u32>)| LeftOut {
        rounds: rounds_words(&rounds),
        reason,
    };
    reasons.into_iter().map(words).collect()
}

/// `round 3`, `rounds 1-4, 7`.
fn rounds_words(rounds: &BTreeSet<u32>) -> String {
    let mut stretches: Vec<(u32, u32)> = Vec::new();
    for &round in rounds {
        match stretches.last_mut() {
            Some((_, last)) if last.saturating_add(1) == round => *last = round,
            _ => stretches.push((round, round)),
        }
    }
    let words = stretches.iter().map(|(first, last)| match last - first {
        0 => first.to_string(),
        _ => format!("{first}-{last}"),
    });
    let noun = if rounds.len() == 1 { "round" } else { "rounds" };
    format!("{noun} {}", words.collect::<Vec<_>>().join(", "))
}

/// The published ratios of an arm, each with the machine it is from.
pub(crate) fn published_of(chart: &Chart, arm: &str) -> Vec<(f64, String)> {
    let figures = chart
        .published
        .iter()
        .filter(|published| published.arm == arm);
    figures
        .map(|published| (published.ratio, clean(&published.machine)))
        .collect()
}

/// `20,000 blobs of 8-12 kB`.
pub(crate) fn dataset_words(dataset: &Dataset) -> String {
    let blobs = plural(dataset.count, "blob", "blobs");
    match &dataset.size {
        SizeDistribution::Fixed(bytes) => format!("{blobs} of {}", size(*bytes)),
        SizeDistribution::Uniform(low, high) => format!("{blobs} of {}", size_range(*low, *high)),
        SizeDistribution::LogNormal {
            median, maximum, ..
        } => {
            format!(
                "{blobs}, half of them below {}, none above {}",
                size(*median),
                size(*maximum)
            )
        }
        SizeDistribution::Histogram(classes) => {
            let largest = classes.iter().map(|(bytes, _)| *bytes).max().unwrap_or(0);
            format!("{blobs} of {} sizes up to {}", classes.len(), size(largest))
        }
        SizeDistribution::Files(files) => {
            let largest = files.bytes.iter().copied().max().unwrap_or(0);
            let files = plural(dataset.count, "file", "files");
            format!("a sample of {files} of up to {}", size(largest))
        }
    }
}

/// The data of a case, whatever it is.
fn data_words(case: &Case) -> String {
    let texts = || match &case.dataset.size {
        SizeDistribution::Fixed(bytes) => size(*bytes),
        _ => "several sizes".to_owned(),
    };
    match case.workload.shape() {
        Shape::Blobs => dataset_words(&case.dataset),
        Shape::Rows | Shape::NoRows => {
            let rows = plural(case.dataset.count, "row", "rows");
            format!("{rows} with two texts of {}", texts())
        }
        Shape::NoBlobs => format!("records of {}", texts()),
        Shape::Tree => format!(
            "a tree of {}",
            plural(case.dataset.count, "entry", "entries")
        ),
    }
}

/// A number with its noun.
pub(crate) fn plural(count: u64, one: &str, many: &str) -> String {
    format!(
        "{} {}",
        format_count(count),
        if count == 1 { one } else { many }
    )
}

fn size(bytes: u32) -> String {
    match bytes {
        1_000_000.. if bytes.is_multiple_of(1_000_000) => format!("{} MB", bytes / 1_000_000),
        1_000.. if bytes.is_multiple_of(1_000) => format!("{} kB", bytes / 1_000),
        1_024.. if bytes.is_multiple_of(1_024) => format!("{} KiB", bytes / 1_024),
        _ => format_bytes(u64::from(bytes)),
    }
}

/// `8-12 kB`, `0.8-1.2 MB`.
fn size_range(low: u32, high: u32) -> String {
    for (unit, unit_bytes) in [("MB", 1_000_000), ("kB", 1_000), ("KiB", 1_024)] {
        // Exact with one decimal at the most, or not in this unit.
        let exact = |bytes: u32| (u64::from(bytes) * 10).is_multiple_of(unit_bytes);
        if u64::from(high) >= unit_bytes && exact(low) && exact(high) {
            let number = |bytes: u32| f64::from(bytes) / unit_bytes as f64;
            return format!("{}-{} {unit}", number(low), number(high));
        }
    }
    format!("{} to {}", size(low), size(high))
}

fn order_words(order: KeyOrder) -> &'static str {
    match order {
        KeyOrder::Random => "random",
        KeyOrder::Ascending => "ascending",
        KeyOrder::Descending => "descending",
        KeyOrder::Zipf => "skewed (Zipf)",
    }
}

/// `9 rounds`, or `3 of 9 rounds` if there are fewer than planned; rounds that stand in for spoiled
/// ones can make them more.
fn rounds(group: &Group, measured: &GroupAnalysis) -> String {
    if measured.rounds < group.rounds {
        format!(
            "{} of {}",
            measured.rounds,
            plural(u64::from(group.rounds), "round", "rounds")
        )
    } else {
        plural(u64::from(measured.rounds), "round", "rounds")
    }
}

/// Operations of a batch, if all arms of the chart have the same number.
fn batch(group: &Group, chart: &Chart) -> Option<u64> {
    let arms = group
        .arms
        .iter()
        .filter(|arm| chart.arms.contains(&arm.name));
    let mut operations = arms.filter_map(|arm| match arm.case.workload {
        Workload::Overwrite { operations, .. } => Some(operations),
        _ => None,
    });
    let first = operations.next()?;
    operations.all(|other| other == first).then_some(first)
}

fn warnings(run: &Run, analysis: &Analysis) -> Vec<String> {
    let mut warnings = Vec::new();
    let incomplete = match run.head.state {
        RunState::Complete => None,
        RunState::Interrupted => Some("Interrupted: this run was stopped before its end, after"),
        RunState::Started => Some("Incomplete: this run was killed, or is still going on, after"),
    };
    if let Some(incomplete) = incomplete {
        let groups = run.plan.groups.iter().zip(&analysis.groups);
        let reached = groups.map(|(group, measured)| {
            format!(
                "{} ({})",
                rounds(group, measured),
                named(&group.name, "one group")
            )
        });
        let reached = reached.collect::<Vec<_>>().join(" and ");
        warnings.push(format!("{incomplete} {reached}."));
    }
    // The selection of an advice has few rounds, and nothing is said for sure from it.
    let is_judged =
        |group: &Group| run.plan.advice.is_none() || group.name.starts_with(&Stage::Confirm.word());
    let groups = run.plan.groups.iter().zip(&analysis.groups);
    let judged: Vec<u32> = groups
        .filter(|(group, _)| is_judged(group))
        .map(|(_, measured)| measured.rounds)
        .collect();
    if judged.contains(&1) {
        warnings.push(
            "From one round nothing follows about others: where there is one, there are no \
             intervals and no verdicts."
                .to_owned(),
        );
    }
    let few = |rounds: &u32| (2..FEWEST_ROUNDS).contains(rounds);
    if judged.iter().any(few) {
        warnings.push(format!(
            "From fewer than {FEWEST_ROUNDS} rounds no verdict is given: where there are fewer, nothing is \
             sure."
        ));
    }
    let count = |wanted: fn(&ArmStatus) -> bool| {
        let arms = analysis.groups.iter().flat_map(|group| &group.arms);
        arms.filter(|arm| wanted(&arm.status)).count() as u64
    };
    let failed = count(|status| matches!(status, ArmStatus::Failed(_)));
    if failed > 0 {
        let (arms, rows) = match failed {
            1 => ("arm", "its row says"),
            _ => ("arms", "their rows say"),
        };
        warnings.push(format!(
            "{} {arms} failed: {rows} why.",
            format_count(failed)
        ));
    }
    warnings
}

fn conditions(run: &Run, analysis: &Analysis) -> Vec<String> {
    let mut pieces: Vec<String> = Vec::new();
    let mut add = |piece: String| {
        if !pieces.contains(&piece) {
            pieces.push(piece);
        }
    };
    if let Some((_, arm)) = run.plan.arms().next() {
        add(data_words(&arm.case));
    }
    for (_, arm) in run.plan.arms() {
        add(format!("{} order", order_words(arm.case.workload.order())));
    }
    let verified = if stayed_warm(run) { " (verified)" } else { "" };
    for (_, arm) in run.plan.arms() {
        add(format!("{} cache{verified}", arm.case.cache));
    }
    let mut groups = analysis.groups.iter();
    let effort: Vec<String> = run
        .plan
        .groups
        .iter()
        .filter_map(|group| Some(rounds(group, groups.next()?)))
        .collect();
    if let [only] = effort.as_slice() {
        add(only.clone());
    } else if effort.windows(2).all(|pair| pair[0] == pair[1]) {
        pieces.extend(effort.into_iter().next());
    }
    pieces.extend(noise_words(analysis));
    pieces
}

/// Whether every slice of the reading trials brings evidence of what it read from a device; those
/// that read something do not count.
pub(crate) fn stayed_warm(run: &Run) -> bool {
    let reading = run
        .plan
        .arms()
        .filter(|(_, arm)| !arm.case.workload.writes());
    let reading: BTreeSet<&str> = reading.map(|(_, arm)| arm.name.as_str()).collect();
    let valid = run
        .trials
        .iter()
        .filter(|trial| trial.outcome == Outcome::Valid);
    let mut samples = valid
        .filter(|trial| reading.contains(trial.arm.as_str()))
        .flat_map(|trial| &trial.samples)
        .peekable();
    let tells =
        |sample: &Sample| sample.device_read_bytes.is_some() && sample.major_faults.is_some();
    samples.peek().is_some() && samples.all(tells)
}

/// `noise floor 2.1%`, or its range over the groups.
fn noise_words(analysis: &Analysis) -> Option<String> {
    let mut floors: Vec<f64> = analysis
        .groups
        .iter()
        .filter_map(|group| group.noise_floor)
        .collect();
    floors.sort_by(f64::total_cmp);
    let (lowest, highest) = (percent(*floors.first()?), percent(*floors.last()?));
    Some(if lowest == highest {
        format!("noise floor {lowest}")
    } else {
        format!("noise floor {}-{highest}", lowest.trim_end_matches('%'))
    })
}

fn harness(run: &Run, analysis: &Analysis) -> Option<String> {
    let of_null = analysis
        .groups
        .iter()
        .flat_map(|group| &group.arms)
        .find_map(|arm| {
            let (_, planned) = run.plan.arm(&arm.name)?;
            let ns = arm.operation_ns.filter(|ns| ns.is_finite() && *ns >= 0.0)?;
            // What is due at given times takes as long as it is waited for.
            let is_paced = matches!(planned.case.workload, Workload::Load { arrivals, .. } if arrivals.words().is_some());
            (planned.case.engine == "null" && !is_paced).then_some(ns)
        })?;
    let cost = format_duration(of_null.round() as u64);
    Some(format!(
        "The harness itself takes {cost} an operation, which every figure contains."
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dataset(size: SizeDistribution) -> Dataset {
        Dataset {
            count: 20_000,
            size,
            compressibility: 0.0,
            seed: 1,
        }
    }

    #[test]
    fn datasets_are_described_in_few_words() {
        for (size, words) in [
            (
                SizeDistribution::Uniform(8_000, 12_000),
                "20,000 blobs of 8-12 kB",
            ),
            (
                SizeDistribution::Uniform(800_000, 1_200_000),
                "20,000 blobs of 0.8-1.2 MB",
            ),
            (
                SizeDistribution::Uniform(10, 90),
                "20,000 blobs of 10 B to 90 B",
            ),
            (SizeDistribution::Fixed(4_096), "20,000 blobs of 4 KiB"),
            (SizeDistribution::Fixed(1_000_000), "20,000 blobs of 1 MB"),
            (SizeDistribution::Fixed(1_234), "20,000 blobs of 1.23 kB"),
            (
                SizeDistribution::Histogram(vec![(10, 1), (2_000, 1)]),
                "20,000 blobs of 2 sizes up to 2 kB",
            ),
        ] {
            assert_eq!(dataset_words(&dataset(size)), words);
        }
    }

    #[test]
    fn rounds_in_a_row_are_named_together() {
        assert_eq!(rounds_words(&BTreeSet::from([3])), "round 3");
        assert_eq!(
            rounds_words(&BTreeSet::from([1, 2, 3, 4, 7, 9, 10])),
            "rounds 1-4, 7, 9-10"
        );
        assert_eq!(
            rounds_words(&BTreeSet::from([u32::MAX])),
            "round 4294967295"
        );
    }
}
