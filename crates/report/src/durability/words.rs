//! The words that all forms of the truth table share: one row as cells, and the sentences around the
//! table. Where they stand is each form's business.

use sqlitmus_core::case::Durability;
use sqlitmus_core::durability::{Claim, Cut, CutKind, DurabilityRun, NextTier, Row, Table, Tally};
use sqlitmus_core::run::RunState;
use sqlitmus_core::units::{format_count, format_duration, format_ratio};

use crate::text::clean;

/// Stands where there is nothing to say.
pub(super) const DASH: &str = "-";

/// Headings of the columns, in the order of [`Cells::all`].
pub(super) const HEADINGS: [&str; 8] = [
    "configuration",
    "claimed",
    "observed",
    "lost, killed",
    "lost, power",
    "worst loss",
    "commits/s",
    "next tier",
];

/// Below this the next tier costs nothing that such short turns could tell.
const NO_DIFFERENCE: f64 = 1.1;

/// How a row is to be looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// As claimed.
    Good,
    /// Worse than claimed.
    Bad,
    /// Not known, or better than claimed.
    Unsure,
}

/// A row in words.
#[derive(Debug, Clone)]
pub(super) struct Cells {
    pub(super) configuration: String,
    pub(super) claimed: String,
    pub(super) observed: String,
    pub(super) process: String,
    pub(super) power: String,
    pub(super) worst: String,
    pub(super) speed: String,
    pub(super) next: String,
    /// What else happened, one sentence each; the first says how the claim stands, if it does not hold.
    pub(super) notes: Vec<String>,
    pub(super) standing: Standing,
}

impl Cells {
    pub(super) fn of(row: &Row<'_>) -> Self {
        Self {
            configuration: clean(&row.configuration.name),
            claimed: tier(row.configuration.claimed).to_owned(),
            observed: row.observed.map_or(DASH, tier).to_owned(),
            process: lost(&row.process),
            power: lost(&row.power),
            worst: worst(row),
            speed: row
                .commits_per_second
                .map_or(DASH.to_owned(), |speed| format_count(speed.round() as u64)),
            next: row.next.as_ref().map_or(DASH.to_owned(), next_tier),
            notes: notes(row),
            standing: standing(row.claim),
        }
    }

    pub(super) fn all(&self) -> [&str; 8] {
        [
            &self.configuration,
            &self.claimed,
            &self.observed,
            &self.process,
            &self.power,
            &self.worst,
            &self.speed,
            &self.next,
        ]
    }
}

fn tier(tier: Durability) -> &'static str {
    match tier {
        Durability::None => "none",
        Durability::ProcessCrash => "process-crash",
        Durability::PowerLoss => "power-loss",
    }
}

/// `power-loss, 5.00 times slower: sqlite wal full`.
fn next_tier(next: &NextTier) -> String {
    let name = clean(&next.configuration);
    let tier = tier(next.tier);
    if next.slowdown < NO_DIFFERENCE {
        return format!("{tier}, no slower: {name}");
    }
    format!(
        "{tier}, {} times slower: {name}",
        format_ratio(next.slowdown)
    )
}

fn standing(claim: Claim) -> Standing {
    match claim {
        Claim::Holds | Claim::Caught => Standing::Good,
        Claim::Lost(_) | Claim::NotIntact(_) | Claim::NotCaught => Standing::Bad,
        Claim::Exceeded | Claim::Untested => Standing::Unsure,
    }
}

/// `0 of 20 (<14%)`, `18 of 20 (>71%)`.
fn lost(tally: &Tally) -> String {
    if tally.cuts == 0 {
        return DASH.to_owned();
    }
    let percent = |share: f64| format!("{:.0}%", share * 100.0);
    let bound = if tally.lost == 0 {
        format!("<{}", percent(tally.lost_share_at_most()))
    } else {
        format!(">{}", percent(tally.lost_share_at_least()))
    };
    format!("{} of {} ({bound})", tally.lost, tally.cuts)
}

fn worst(row: &Row<'_>) -> String {
    let worse = if row.power.worst_lost_commits > 0 {
        &row.power
    } else {
        &row.process
    };
    if worse.worst_lost_commits == 0 {
        return DASH.to_owned();
    }
    let commits = plural(worse.worst_lost_commits, "commit");
    format!("{commits}, {}", age(worse.worst_lost_age_ns))
}

fn age(ns: u64) -> String {
    if ns >= 10_000_000_000 {
        return format!("{} s", ns / 1_000_000_000);
    }
    format_duration(ns)
}

pub(super) fn plural(count: u64, what: &str) -> String {
    let s = if count == 1 { "" } else { "s" };
    format!("{} {what}{s}", format_count(count))
}

/// What happened beside losing commits.
fn notes(row: &Row<'_>) -> Vec<String> {
    let mut notes = Vec::new();
    notes.extend(claim(row));
    for (event, tally) in [("process killed", &row.process), ("power gone", &row.power)] {
        let counted = damage(row, tally);
        if !counted.is_empty() {
            notes.push(format!("{event}: {}", counted.join(", ")));
        }
        if tally.failed > 0 {
            notes.push(format!(
                "{event}: {} could not be made or looked at",
                plural(u64::from(tally.failed), "cut")
            ));
        }
    }
    let example = row.power.example.as_ref().or(row.process.example.as_ref());
    notes.extend(example.map(|example| format!("it said: {}", clean(example))));
    notes
}

fn claim(row: &Row<'_>) -> Option<String> {
    let event = |tier: Durability| match tier {
        Durability::PowerLoss => "a loss of power",
        _ => "a crash of the process",
    };
    Some(match row.claim {
        Claim::Holds => return None,
        Claim::Caught => {
            "it lies on purpose, and was caught: losses are seen by this experiment".to_owned()
        }
        Claim::NotCaught => {
            "IT LIES ON PURPOSE AND WAS NOT CAUGHT: this table proves nothing".to_owned()
        }
        Claim::Lost(tier) => format!(
            "FAILS ITS CLAIM: {} undid acknowledged commits",
            event(tier)
        ),
        Claim::NotIntact(tier) => format!(
            "FAILS ITS DOCUMENTATION: {} left the store in pieces, though no acknowledged commit was lost",
            event(tier)
        ),
        Claim::Exceeded => "more survived than is claimed; nobody promises it".to_owned(),
        Claim::Untested => "its claim was not put to the test".to_owned(),
    })
}

/// What was found, with the number of cuts in which it was.
fn damage(row: &Row<'_>, tally: &Tally) -> Vec<String> {
    let [torn, empty, missing, unreadable] = tally.kinds;
    // Where batches are no transactions, half of one is what they are.
    let half_applied = if row.configuration.transactional {
        tally.half_applied
    } else {
        0
    };
    let counted = [
        (tally.unopened, "did not open"),
        (tally.inconsistent, "failed its own check"),
        (torn, "torn blobs"),
        (empty, "empty blobs"),
        (missing, "missing blobs"),
        (unreadable, "unreadable blobs"),
        (half_applied, "a transaction half applied"),
        (tally.destroyed, "the blob being overwritten destroyed"),
        (tally.strays, "files left over"),
    ];
    let seen = counted.into_iter().filter(|(count, _)| *count > 0);
    seen.map(|(count, what)| format!("{what} in {count} of {}", tally.cuts))
        .collect()
}

/// What stands above a filesystem's rows.
pub(super) fn filesystem_line(run: &DurabilityRun, filesystem: &str) -> String {
    let kinds = |cut: &&Cut| cut.filesystem == filesystem && cut.kind != CutKind::ProcessCrash;
    let power = match run.cuts.iter().find(kinds).map(|cut| cut.kind) {
        Some(CutKind::Shutdown) => {
            "the power goes by shutting the filesystem down: what it had handed to the device stays"
        }
        Some(CutKind::Device) => "the power goes below the filesystem: what the device had stays",
        Some(CutKind::Reordering) => {
            "the power goes below the filesystem: of what was not flushed a random part stays"
        }
        _ => "the power was not cut",
    };
    let options = run.mount_options.get(filesystem);
    let options = options.map_or(String::new(), |options| format!(" ({})", clean(options)));
    format!("{}{options}; {power}", clean(filesystem))
}

/// What stands above the table.
pub(super) fn sentences(run: &DurabilityRun, table: &Table<'_>) -> Vec<String> {
    let plan = &run.plan;
    let mut sentences = vec![format!(
        "{} on {}; {} of each kind; writing for {} to {} before the power goes; {} of 1 to 24 kB, {} in a batch",
        plural(plan.configurations.len() as u64, "configuration"),
        plan.filesystems
            .iter()
            .map(|name| clean(name))
            .collect::<Vec<_>>()
            .join(", "),
        plural(u64::from(plan.cuts), "cut"),
        format_duration(plan.hold_ns.0),
        format_duration(plan.hold_ns.1),
        plural(plan.batches.keys, "blob"),
        plan.batches.blobs,
    )];
    if plan.early_writeback {
        sentences.push(
            "Random pieces of what was written were handed to the device early, as by a kernel that is \
             short of memory."
                .to_owned(),
        );
    }
    if run.head.state != RunState::Complete {
        sentences.push(format!("NOT COMPLETE: {} cuts were made", run.cuts.len()));
    }
    if !table.is_trustworthy() {
        sentences.push(
            "THE LIAR WAS NOT CAUGHT: this experiment cannot see losses, so believe none of it"
                .to_owned(),
        );
    }
    let broken = table.broken().count() as u64;
    sentences.push(if broken == 0 {
        "Nothing was found to be less durable than its engine claims.".to_owned()
    } else {
        let verb = if broken == 1 { "does" } else { "do" };
        format!("{} {verb} not keep what is claimed.", plural(broken, "row"))
    });
    sentences
}

/// How to read the table.
pub(super) const HOW_TO_READ: [&str; 5] = [
    "claimed: what a commit survives, as the engine says. observed: the highest event that no cut contradicts.",
    "lost: with the process killed, and with the power gone: cuts after which an acknowledged commit was not there, of all cuts; in brackets what that means with 95% \
     confidence (Clopper and Pearson): with <14% fewer than 14 of 100 such events would lose something, with >71% more \
     than 71 would.",
    "worst loss: the most commits that one cut lost, and the longest time for which one of them had been acknowledged.",
    "commits/s: acknowledged commits of three blobs, alone on the machine, checkpoints and compactions included, on the \
     same loopback filesystem; an image in a file, so no statement about a disk.",
    "next tier: what has it, and how many times slower that is: the fastest configuration of the same engine.",
];
