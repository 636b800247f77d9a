//! A run in words: what was asked, under which conditions, on which machine, and what a reader must
//! know before believing a figure. The same words in every format; layout is the formats' business.

use std::collections::BTreeSet;

use sqlitmus_core::analysis::{Analysis, ArmAnalysis, ArmStatus, GroupAnalysis};
use sqlitmus_core::case::Workload;
use sqlitmus_core::claims::Judgement;
use sqlitmus_core::dataset::{Dataset, SizeDistribution};
use sqlitmus_core::keys::KeyOrder;
use sqlitmus_core::plan::Group;
use sqlitmus_core::run::{Outcome, Run, RunState};
use sqlitmus_core::suite::{Chart, Claim};
use sqlitmus_core::units::{format_bytes, format_count, format_duration, format_ratio};

use crate::figures::percent;
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
            machine: machine(run),
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
    match (claim.at_least, claim.at_most) {
        (Some(least), Some(most)) => Some(format!(
            "needs {} to {}",
            format_ratio(least),
            format_ratio(most)
        )),
        (Some(least), None) => Some(format!("needs {} or more", format_ratio(least))),
        (None, Some(most)) => Some(format!("needs {} or less", format_ratio(most))),
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
    }
}

/// What is done to a blob, in words: `read in random order`.
pub(crate) fn workload_words(workload: &Workload) -> String {
    format!(
        "{} in {} order",
        workload.verb(),
        order_words(workload.order())
    )
}

/// A number with its noun.
pub(crate) fn plural(count: u64, one: &str, many: &str) -> String {
    format!(
        "{} {}",
        format_count(count),
        if count == 1 { one } else { many }
    )
}

/// Versions of SQLite that the live engines reported.
pub(crate) fn sqlite_versions(run: &Run) -> BTreeSet<String> {
    let versions = run.trials.iter().filter_map(|trial| {
        let (_, arm) = run.plan.arm(&trial.arm)?;
        let mut names = [
            "sqlite_version",
            "sqlite-version",
            "library_version",
            "version",
        ]
        .iter();
        let version = names.find_map(|name| trial.read_back.get(*name))?;
        arm.case.engine.contains("sqlite").then(|| clean(version))
    });
    versions.filter(|version| !version.is_empty()).collect()
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
    }
}

fn rounds(group: &Group, measured: &GroupAnalysis) -> String {
    let planned = plural(u64::from(group.rounds), "round", "rounds");
    if measured.rounds == group.rounds {
        planned
    } else {
        format!("{} of {planned}", measured.rounds)
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
        Workload::Read { .. } => None,
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
    if analysis.groups.iter().any(|group| group.rounds == 1) {
        warnings.push(
            "From one round nothing follows about others: where there is one, there are no \
             intervals and no verdicts."
                .to_owned(),
        );
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
        add(dataset_words(&arm.case.dataset));
    }
    for (_, arm) in run.plan.arms() {
        add(format!("{} order", order_words(arm.case.workload.order())));
    }
    for (_, arm) in run.plan.arms() {
        let verified = if stayed_warm(run) { " (verified)" } else { "" };
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

/// Whether every reading trial that counts says that it read nothing from the device.
fn stayed_warm(run: &Run) -> bool {
    let reads = |name: &str| {
        run.plan
            .arm(name)
            .is_some_and(|(_, arm)| !arm.case.workload.writes())
    };
    let mut counted = run
        .trials
        .iter()
        .filter(|trial| trial.outcome == Outcome::Valid && reads(&trial.arm))
        .peekable();
    counted.peek().is_some()
        && counted.all(|trial| {
            let used = |name: &str| trial.resources.get(name).copied();
            used("device_read_bytes") == Some(0) && used("major_faults") == Some(0)
        })
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

/// A fact about the machine; `None` if it is not known.
pub(crate) fn fact(run: &Run, name: &str) -> Option<String> {
    let (_, value) = run.environment.iter().find(|(found, _)| found == name)?;
    let value = clean(value);
    (!value.is_empty() && value != "unknown" && value != "none").then_some(value)
}

/// The machine in short pieces: `AMD EPYC, 2 cores, 24 GB`, `ext4 on /dev/vda (virtual disk)`,
/// `Linux 6.18.44`, `SQLite 3.54.1`. What the run does not know is left out.
fn machine(run: &Run) -> Vec<String> {
    let number = |name: &str| fact(run, name).and_then(|value| value.parse::<u64>().ok());
    let model = fact(run, "cpu_model")
        .map(|model| short_model(&model))
        .or_else(|| fact(run, "cpu_architecture").map(|name| format!("{name} processor")));
    let cores = number("cpu_logical_cores").map(|all| match number("cpu_allowed_cores") {
        Some(allowed) if allowed < all => format!("{allowed} of {all} cores"),
        _ => plural(all, "core", "cores"),
    });
    let memory = number("memory_total_bytes").map(|total| {
        match number("memory_limit_bytes").filter(|limit| *limit < total) {
            Some(limit) => format!("{} limited to {}", memory(total), memory(limit)),
            None => memory(total),
        }
    });
    let hardware: Vec<String> = [model, cores, memory].into_iter().flatten().collect();
    let versions: Vec<String> = sqlite_versions(run).into_iter().collect();
    let place = fact(run, "place_description").or_else(|| fact(run, "filesystem"));
    let pieces = [
        (!hardware.is_empty()).then(|| hardware.join(", ")),
        place,
        fact(run, "kernel").map(|kernel| short_kernel(&kernel)),
        (!versions.is_empty()).then(|| format!("SQLite {}", versions.join(" and "))),
    ];
    let pieces: Vec<String> = pieces.into_iter().flatten().collect();
    if pieces.is_empty() {
        return vec!["the run does not say on which machine it was measured".to_owned()];
    }
    pieces
}

/// A processor's name without trade marks and without the frequency, which the model implies.
fn short_model(model: &str) -> String {
    let model = model.replace("(R)", "").replace("(TM)", "");
    let model = model.split(" @ ").next().unwrap_or(&model);
    let words = model
        .split_whitespace()
        .filter(|word| !["CPU", "Processor"].contains(word));
    words.collect::<Vec<_>>().join(" ")
}

/// `Linux 6.18.44-distribution-7` without what follows the version.
fn short_kernel(kernel: &str) -> String {
    let Some((name, release)) = kernel.split_once(' ') else {
        return kernel.to_owned();
    };
    let is_version = |letter: char| letter.is_ascii_digit() || letter == '.';
    let end = release
        .find(|letter| !is_version(letter))
        .unwrap_or(release.len());
    format!("{name} {}", release[..end].trim_end_matches('.'))
        .trim_end()
        .to_owned()
}

/// Memory as it is sold: in units of 2^30 bytes that are called GB.
fn memory(bytes: u64) -> String {
    const GIBIBYTE: u64 = 1 << 30;
    const MEBIBYTE: u64 = 1 << 20;
    if bytes >= GIBIBYTE {
        format!("{} GB", bytes.saturating_add(GIBIBYTE / 2) / GIBIBYTE)
    } else {
        format!("{} MB", (bytes + MEBIBYTE / 2) / MEBIBYTE)
    }
}

fn harness(run: &Run, analysis: &Analysis) -> Option<String> {
    let of_null = analysis
        .groups
        .iter()
        .flat_map(|group| &group.arms)
        .find_map(|arm| {
            let (_, planned) = run.plan.arm(&arm.name)?;
            let ns = arm.operation_ns.filter(|ns| ns.is_finite() && *ns >= 0.0)?;
            (planned.case.engine == "null").then_some(ns)
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
    fn names_of_machines_are_shortened() {
        assert_eq!(
            short_model("Intel(R) Core(TM) i7-4770K CPU @ 3.50GHz"),
            "Intel Core i7-4770K"
        );
        assert_eq!(short_kernel("Linux 6.18.44-fc-7"), "Linux 6.18.44");
        assert_eq!(short_kernel("Linux"), "Linux");
        assert_eq!(memory(24_684_092 * 1024), "24 GB");
        assert_eq!(memory(u64::MAX), "17179869183 GB");
        assert_eq!(memory(512 << 20), "512 MB");
    }
}
