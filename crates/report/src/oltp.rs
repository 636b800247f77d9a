//! Rates: the view of groups about rows and jobs. Count and seconds stand side by side, and every
//! rate is the one divided by the other; beside them processor time, latencies, locks, what was
//! published, and what several threads cost each other.
//!
//! Here are the figures; how they are laid out is for [`crate::oltp_terminal`] and
//! [`crate::oltp_html`] to say, where threads wait for [`crate::oltp_contention`].

use sqlitmus_core::analysis::{Analysis, ArmAnalysis, GroupAnalysis};
use sqlitmus_core::case::Workload;
use sqlitmus_core::plan::{Arm, Group};
use sqlitmus_core::run::{Outcome, Run, Sample, Trial, is_level};
use sqlitmus_core::suite::PublishedRate;
use sqlitmus_core::units::{format_count, format_duration};

use crate::oltp_contention;
use crate::proved::Proved;
use crate::summary::{label, named, trouble};
use crate::text::clean;
use crate::thread_scaling;

/// The rates of one group.
#[derive(Debug)]
pub(crate) struct RateTable {
    /// Name of the group.
    pub(crate) title: String,
    /// What is counted, and the group's name.
    pub(crate) heading: String,
    /// What is counted.
    pub(crate) unit: String,
    /// That, and over how many rounds it was counted.
    pub(crate) subtitle: String,
    /// Whether commits left something for later.
    pub(crate) settles: bool,
    /// One for each arm, or for each kind of operation of an arm.
    pub(crate) rows: Vec<RateRow>,
    /// Sentences beneath.
    pub(crate) notes: Vec<String>,
    /// Those of them that say what was published.
    pub(crate) published: Vec<String>,
}

/// What an arm did, or why it did nothing.
#[derive(Debug)]
pub(crate) struct RateRow {
    /// Name of the arm.
    pub(crate) arm: String,
    /// What of its operations was counted, if it has two kinds; else nothing.
    pub(crate) counted: &'static str,
    /// What the arm is called, and what was counted if there is more than one thing.
    pub(crate) label: String,
    /// What a write survives, in few letters; empty for reading arms.
    pub(crate) survives: String,
    /// The figures, or the reason why there are none.
    pub(crate) figures: Result<Rate, String>,
}

/// Operations in a time.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Rate {
    /// Operations of all trials that count.
    pub(crate) count: u64,
    /// The time they took, nanoseconds.
    pub(crate) elapsed_ns: u64,
    /// Time for what they left for later, nanoseconds.
    pub(crate) settle_ns: u64,
    /// Processor time of all threads, nanoseconds; `None` if the kernel does not tell.
    pub(crate) cpu_ns: Option<u64>,
    /// Latencies that half, 99 and 99.9 of a hundred did not exceed, and the longest; nanoseconds.
    pub(crate) latency_ns: Option<[u64; 4]>,
    /// Times that a lock was refused; `None` where there are none to be refused.
    pub(crate) busy: Option<u64>,
}

impl Rate {
    /// Operations in a second: count divided by seconds.
    pub(crate) fn per_second(&self) -> f64 {
        self.count as f64 / (self.elapsed_ns as f64 / 1e9)
    }

    /// Processor time as a share of the elapsed time, in percent of one processor.
    pub(crate) fn cpu_percent(&self) -> Option<f64> {
        Some(self.cpu_ns? as f64 / self.elapsed_ns as f64 * 100.0)
    }

    /// Processor time of all threads for one operation, in microseconds.
    pub(crate) fn cpu_us(&self) -> Option<String> {
        let ns = self.cpu_ns? as f64 / self.count as f64;
        ns.is_finite()
            .then(|| sqlitmus_core::units::format_microseconds(ns))
    }
}

/// The tables of all groups about rows and jobs.
pub(crate) fn tables(run: &Run, analysis: &Analysis) -> Vec<RateTable> {
    tables_of(run, analysis)
        .map(|(_, _, table)| table)
        .collect()
}

/// The same with their groups, as planned and as measured.
pub(crate) fn tables_of<'a>(
    run: &'a Run,
    analysis: &'a Analysis,
) -> impl Iterator<Item = (&'a Group, &'a GroupAnalysis, RateTable)> {
    let groups = run.plan.groups.iter().zip(&analysis.groups);
    groups
        .filter(|(group, _)| is_shown(group))
        .map(|(group, measured)| (group, measured, table(run, group, measured)))
}

/// Whether a group is shown as rates.
pub(crate) fn is_shown(group: &Group) -> bool {
    let mut arms = group.arms.iter();
    // A load has a view of its own: see `crate::load`; so have lives: `crate::lifecycle`.
    arms.any(|arm| !arm.case.workload.is_about_blobs())
        && !crate::load::is_shown(group)
        && !crate::lifecycle::is_shown(group)
}

fn table(run: &Run, group: &Group, measured: &GroupAnalysis) -> RateTable {
    let mut rows = Vec::new();
    let mut notes = Vec::new();
    for (arm, analysed) in group.arms.iter().zip(&measured.arms) {
        // The repetition is there to know the noise, which is said above the table.
        if arm.is_twin() {
            continue;
        }
        rows.extend(rows_of(run, arm, analysed));
        notes.extend(scaled(run, arm, analysed));
        notes.extend(copies(run, arm, analysed));
        notes.extend(recording(run, arm, analysed));
    }
    notes.extend(tolerated(run, group));
    let published: Vec<String> = group.arms.iter().flat_map(published).collect();
    notes.extend_from_slice(&published);
    notes.extend(oltp_contention::notes(run, group, measured));
    notes.extend(thread_scaling::notes(run, group, measured));
    let rounds = measured.rounds;
    let noise = match measured.noise_floor {
        Some(floor) => format!(", noise {}", crate::figures::percent(floor)),
        None => String::new(),
    };
    let unit = group
        .arms
        .first()
        .map_or("", |arm| unit(&arm.case.workload));
    RateTable {
        heading: heading(unit, &named(&group.name, "a group without a name")),
        title: named(&group.name, "a group without a name"),
        unit: unit.to_owned(),
        subtitle: format!(
            "{unit}, {rounds} round{}{noise}",
            if rounds == 1 { "" } else { "s" }
        ),
        settles: group.writes(),
        rows,
        notes,
        published,
    }
}

/// What is counted.
fn unit(workload: &Workload) -> &'static str {
    match workload {
        Workload::PointQuery { .. } => "queries",
        Workload::Import { .. } => "rows, latency of a transaction",
        Workload::Update { .. } => "updates, latency of a transaction",
        Workload::Traffic { readers: 0, .. } => "updates of a row, latency of a transaction",
        Workload::Traffic { .. } => "queries and updates, latency of a query or a transaction",
        Workload::Load { .. } => "blobs",
        Workload::JobQueue { .. } => "jobs of 13 writes, latency of a job",
        Workload::Index { .. } => "entries of a tree",
        Workload::Lifecycle { .. } => "replacements of a blob",
        Workload::Read { .. } | Workload::Overwrite { .. } => "blobs",
    }
}

fn rows_of(run: &Run, arm: &Arm, analysed: &ArmAnalysis) -> Vec<RateRow> {
    let survives = Proved::of(run)
        .tier(arm)
        .map_or(String::new(), |tier| tier.short);
    let row = |label: String, figures: Result<Rate, String>| RateRow {
        arm: arm.name.clone(),
        counted: "",
        label,
        survives: survives.clone(),
        figures,
    };
    if let Some(reason) = trouble(&analysed.status) {
        return vec![row(label(analysed), Err(reason))];
    }
    let Workload::Traffic {
        readers, writers, ..
    } = arm.case.workload
    else {
        return vec![row(label(analysed), Ok(rate(run, arm, analysed)))];
    };
    let mut rows = Vec::new();
    if readers > 0 {
        let rate = part(run, arm, analysed, "queries", "querying_ns", "query");
        rows.push(RateRow {
            counted: "queries",
            ..row(format!("{}: queries", label(analysed)), Ok(rate))
        });
    }
    if writers > 0 {
        let rate = part(run, arm, analysed, "updates", "updating_ns", "transaction");
        let name = match readers {
            0 => label(analysed),
            _ => format!("{}: updates", label(analysed)),
        };
        rows.push(RateRow {
            counted: "updates",
            ..row(name, Ok(rate))
        });
    }
    rows
}

/// The trials of an arm that count.
fn trials<'a>(run: &'a Run, arm: &'a Arm) -> impl Iterator<Item = &'a Trial> {
    let of_arm = run.trials.iter().filter(|trial| trial.arm == arm.name);
    of_arm.filter(|trial| trial.outcome == Outcome::Valid)
}

/// A counter over all trials of an arm; `None` if nothing has counted it.
pub(crate) fn counter(run: &Run, arm: &Arm, name: &str) -> Option<u64> {
    let counted = trials(run, arm).filter_map(|trial| trial.resources.get(name).copied());
    counted.reduce(|sum, value| match is_level(name) {
        true => sum.max(value),
        false => sum.saturating_add(value),
    })
}

/// Everything that an arm did.
pub(crate) fn rate(run: &Run, arm: &Arm, analysed: &ArmAnalysis) -> Rate {
    let mut rate = Rate {
        busy: counter(run, arm, "busy").filter(|_| arm.case.workload.threads() > 1),
        cpu_ns: cpu_ns(run, arm),
        latency_ns: latencies(analysed),
        ..Rate::default()
    };
    for sample in trials(run, arm).flat_map(|trial| &trial.samples) {
        rate.count = rate.count.saturating_add(sample.operations);
        rate.elapsed_ns = rate.elapsed_ns.saturating_add(sample.elapsed_ns);
        rate.settle_ns = rate.settle_ns.saturating_add(sample.settle_ns.unwrap_or(0));
    }
    rate
}

/// One kind of operation of an arm that has two.
fn part(
    run: &Run,
    arm: &Arm,
    analysed: &ArmAnalysis,
    count: &str,
    elapsed: &str,
    latency: &str,
) -> Rate {
    let whole = rate(run, arm, analysed);
    let is_alone = match arm.case.workload {
        Workload::Traffic {
            readers, writers, ..
        } => readers == 0 || writers == 0,
        _ => true,
    };
    let longest = counter(run, arm, &format!("peak_{latency}_ns"));
    Rate {
        count: counter(run, arm, count).unwrap_or(0),
        elapsed_ns: counter(run, arm, elapsed).unwrap_or(0),
        // Of two kinds together only the longest of each is known.
        latency_ns: match is_alone {
            true => whole.latency_ns,
            false => longest.map(|longest| {
                let p99 = counter(run, arm, &format!("peak_{latency}_ns_p99")).unwrap_or(0);
                [0, p99, 0, longest]
            }),
        },
        ..whole
    }
}

fn cpu_ns(run: &Run, arm: &Arm) -> Option<u64> {
    let user = counter(run, arm, "user_cpu_ns")?;
    let system = counter(run, arm, "system_cpu_ns")?;
    Some(user.saturating_add(system))
}

fn latencies(analysed: &ArmAnalysis) -> Option<[u64; 4]> {
    let quantile = |share| analysed.latencies.quantile_ns(share);
    Some([
        quantile(0.5)?,
        quantile(0.99)?,
        quantile(0.999)?,
        quantile(1.0)?,
    ])
}

/// What a batch that was ended by time would have taken, if that happened.
fn scaled(run: &Run, arm: &Arm, analysed: &ArmAnalysis) -> Option<String> {
    let planned = match arm.case.workload {
        Workload::Import { operations, .. }
        | Workload::Update { operations, .. }
        | Workload::JobQueue { operations, .. } => operations,
        Workload::Index { .. } => arm.case.dataset.count,
        _ => return None,
    };
    // A database in memory is updated for a time: nobody has asked how long a number takes.
    let is_for_a_time = planned >= 1_000_000;
    let slices = trials(run, arm)
        .map(|trial| trial.samples.len() as u64)
        .sum::<u64>();
    let rate = rate(run, arm, analysed);
    if is_for_a_time || rate.count == 0 || rate.count >= planned.saturating_mul(slices) {
        return None;
    }
    let whole_ns = planned as f64 / rate.per_second() * 1e9;
    Some(format!(
        "{}: ended by time. {} would take {}, scaled from {} in {}.",
        label(analysed),
        format_count(planned),
        format_duration(whole_ns as u64),
        format_count(rate.count),
        seconds(rate.elapsed_ns),
    ))
}

/// Slices that count though something was read from a device in them: it took too little time to matter.
fn tolerated(run: &Run, group: &Group) -> Option<String> {
    let trials = group.arms.iter().flat_map(|arm| trials(run, arm));
    let shares: Vec<f64> = trials
        .flat_map(|trial| &trial.samples)
        .filter_map(Sample::tolerated_share)
        .collect();
    let longest = shares.iter().copied().reduce(f64::max)?;
    let slices = crate::summary::plural(shares.len() as u64, "slice", "slices");
    Some(format!(
        "Counted as warm: {slices} in which the device was read, for at most {} of the time.",
        crate::figures::percent(longest),
    ))
}

/// What copying a database in memory cost, and what was at risk.
fn copies(run: &Run, arm: &Arm, analysed: &ArmAnalysis) -> Option<String> {
    let copies = counter(run, arm, "copies")?;
    let rate = rate(run, arm, analysed);
    let copying_ns = counter(run, arm, "copying_ns")?;
    if copies == 0 {
        return Some(format!(
            "{}: nothing was copied while the clock ran; all of it was at risk.",
            label(analysed)
        ));
    }
    Some(format!(
        "{}: {} took {}, {} of the time; what a crash would have lost was up to {} old.",
        label(analysed),
        crate::summary::plural(copies, "copy", "copies"),
        seconds(copying_ns),
        crate::figures::percent(copying_ns as f64 / rate.elapsed_ns as f64),
        format_duration(counter(run, arm, "peak_at_risk_ns").unwrap_or(0)),
    ))
}

/// What of recording a tree was SQL and what walking, in the words of the published test.
fn recording(run: &Run, arm: &Arm, analysed: &ArmAnalysis) -> Option<String> {
    let sql_ns = counter(run, arm, "sql_ns")?;
    let walk_ns = counter(run, arm, "walk_ns")?;
    let commits = counter(run, arm, "commits").unwrap_or(0);
    Some(format!(
        "{}: sqlTime {}, walkTime {} of all threads together; {}.",
        label(analysed),
        seconds(sql_ns),
        seconds(walk_ns),
        crate::summary::plural(commits, "commit", "commits"),
    ))
}

/// What was published for an arm, as it follows from number and time.
fn published(arm: &Arm) -> Vec<String> {
    let published = arm.published_rates();
    published
        .map(|published| published_words(arm, published))
        .collect()
}

fn published_words(arm: &Arm, published: &PublishedRate) -> String {
    let per_second = published.per_second();
    let cpu = published
        .cpu_percent
        .map(|percent| format!(" at {percent}% CPU"));
    format!(
        "Published for {}: {} in {} s = {}/s{} ({}).",
        named(&arm.label, &arm.name),
        format_count(published.operations),
        published.elapsed_ms as f64 / 1e3,
        format_count(per_second.round() as u64),
        cpu.unwrap_or_default(),
        clean(&published.machine),
    )
}

/// A time in seconds with three decimals.
pub(crate) fn seconds(ns: u64) -> String {
    format!("{:.3} s", ns as f64 / 1e9)
}

/// A latency in microseconds; a dash for one that is not known.
pub(crate) fn microseconds(ns: u64) -> String {
    match ns {
        0 => "-".to_owned(),
        ns => sqlitmus_core::units::format_microseconds(ns as f64),
    }
}

/// Operations a second, with the digits that mean something.
pub(crate) fn per_second(rate: &Rate) -> String {
    let value = rate.per_second();
    if !value.is_finite() {
        return "-".to_owned();
    }
    format_count(value.round() as u64)
}

/// `Updates of a row: wal`: names of groups alone say little.
pub(crate) fn heading(unit: &str, name: &str) -> String {
    match first_word(unit) {
        "" => name.to_owned(),
        counted if counted == name => capitalised(name),
        counted => format!("{}: {name}", capitalised(counted)),
    }
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(letters).collect()
    })
}

/// What is counted, without what follows after a comma.
pub(crate) fn first_word(unit: &str) -> &str {
    unit.split(',').next().unwrap_or(unit)
}
