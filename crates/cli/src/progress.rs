//! Progress on standard error: a bar with the time left and the [live view](crate::live_view) where there is a
//! terminal, a plain line for every round where there is none, nothing with `--quiet`. Also the estimate of how long a
//! plan will take, before it starts.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use sqlitmus_core::case::{Shape, Workload};
use sqlitmus_core::lifecycle::replacements;
use sqlitmus_core::plan::{Arm, Group, Plan};
use sqlitmus_core::units::format_duration;

use crate::interruption;
use crate::live_view::LiveView;
use crate::orchestrator::Event;

/// A terminal that does not say how large it is.
const COLUMNS_AND_ROWS_IF_UNKNOWN: (usize, usize) = (80, 24);

/// Guess at the time of one untimed read, for the estimate: files read as kvtest does.
pub(crate) const READ_NS: u64 = 5_000;

/// Guess at the time of one overwrite, for the estimate: between a page cache's 12 us and a
/// truncated file's 170 us.
const WRITE_NS: u64 = 35_000;

/// Guess at the time of storing one blob, for the estimate: two threads, half of them files.
const FILL_NS: u64 = 20_000;

/// Guess at writing one row in a large transaction, for the estimate.
const ROW_NS: u64 = 10_000;

/// Guess at recording one entry of a tree, for the estimate: between the best way and one commit each.
const ENTRY_NS: u64 = 50_000;

/// Guess at the life of one job, for the estimate: between a page cache and a device that syncs.
const JOB_NS: u64 = 500_000;

/// What the life of a store takes beside its replacements, for the estimate: filling, copying, cleaning up and
/// removing, as writes of every blob, and the flushes between.
const OTHERS_OF_A_LIFE: u64 = 8;
const LIFE_NS: u64 = 800_000_000;

/// Guess at starting and ending a worker, for the estimate.
const WORKER_NS: u64 = 15_000_000;

/// Guess at settling after a writing slice, for the estimate.
const SETTLE_NS: u64 = 35_000_000;

/// How long a plan takes, in nanoseconds, when its stores are there: a guess from a machine like
/// any other, put right while measuring.
#[must_use]
pub fn estimate_ns(plan: &Plan) -> u64 {
    plan.groups.iter().map(group_ns).sum()
}

/// How long filling that many blobs' stores takes, in nanoseconds.
#[must_use]
pub fn filling_ns(blobs: u64) -> u64 {
    blobs * FILL_NS
}

/// How long the rounds of a group take, in nanoseconds: a guess.
pub(crate) fn group_ns(group: &Group) -> u64 {
    u64::from(group.rounds) * round_ns(group)
}

/// How long one round of a group takes, in nanoseconds: a guess.
pub(crate) fn round_ns(group: &Group) -> u64 {
    group.arms.iter().map(|arm| trial_ns(group, arm)).sum()
}

fn trial_ns(group: &Group, arm: &Arm) -> u64 {
    let slices = u64::from(group.slices);
    let lead_in_ns = arm.case.dataset.count * READ_NS;
    let slices_ns = match arm.case.workload {
        Workload::Read { .. } => slices * (group.slice_ns + 1_500_000),
        // The lead-in has a batch too.
        Workload::Overwrite { operations, .. } => {
            (slices + 1) * (operations * WRITE_NS + SETTLE_NS)
        }
        // A pass over the tree before.
        Workload::Index { limit_ms, .. } => {
            let limit_ns = if limit_ms > 0 {
                limit_ms * 1_000_000
            } else {
                u64::MAX
            };
            let whole_ns = arm.case.dataset.count * ENTRY_NS;
            slices * (whole_ns.min(limit_ns) + SETTLE_NS)
        }
        Workload::Lifecycle { ref ages, .. } => {
            let written = arm.case.dataset.count * (replacements(ages) + OTHERS_OF_A_LIFE);
            slices * (written * WRITE_NS + LIFE_NS)
        }
        ref workload => return WORKER_NS + team_ns(workload, slices, group.slice_ns),
    };
    WORKER_NS + lead_in_ns + slices_ns
}

/// A trial of rows or jobs: slices that end by time, or batches that mostly do.
fn team_ns(workload: &Workload, slices: u64, slice_ns: u64) -> u64 {
    let batch = |operations: u64, operation_ns: u64, limit_ms: u64| {
        let whole = operations * operation_ns;
        let longest = if limit_ms > 0 {
            limit_ms * 1_000_000
        } else {
            u64::MAX
        };
        whole.min(longest) + SETTLE_NS
    };
    slices
        * match workload {
            Workload::Import {
                operations,
                limit_ms,
            }
            | Workload::Update {
                operations,
                limit_ms,
                ..
            } => batch(*operations, ROW_NS, *limit_ms),
            Workload::JobQueue {
                operations,
                limit_ms,
                ..
            } => batch(*operations, JOB_NS, *limit_ms),
            _ => slice_ns + slice_ns / 10,
        }
}

/// Shows what happens while a plan is measured.
pub struct Progress {
    bar: Option<ProgressBar>,
    plain: bool,
    /// Estimated time of each group still to come, in nanoseconds, by name.
    ahead: Vec<(String, u64)>,
    /// Time that measuring took over its estimate, so far.
    spent_ns: u64,
    estimated_spent_ns: u64,
    rounds: u32,
    group: String,
    started: Instant,
    /// Time for everything, where there is a budget.
    budget: Option<Duration>,
    /// Whether the number of rounds is not known before.
    is_open: bool,
    live: LiveView,
    /// Label of the arm whose turn it is.
    measuring: String,
    /// The user has been told that a second Ctrl-C stops at once.
    told_to_stop: bool,
}

impl Progress {
    /// Progress of a plan; `quiet` shows nothing but trouble.
    #[must_use]
    pub fn new(plan: &Plan, quiet: bool) -> Self {
        let terminal = std::io::stderr().is_terminal();
        let bar = (!quiet && terminal).then(|| {
            let bar =
                ProgressBar::with_draw_target(Some(1000), ProgressDrawTarget::stderr_with_hz(5));
            let style = ProgressStyle::with_template("{bar:24} {prefix}\n{msg}");
            bar.set_style(
                style
                    .unwrap_or_else(|_| ProgressStyle::default_bar())
                    .progress_chars("##-"),
            );
            bar
        });
        Self {
            bar,
            plain: !quiet && !terminal,
            ahead: plan
                .groups
                .iter()
                .map(|group| (group.name.clone(), group_ns(group)))
                .collect(),
            spent_ns: 0,
            estimated_spent_ns: 0,
            rounds: 0,
            group: String::new(),
            started: Instant::now(),
            budget: plan.stopping.budget_ns.map(Duration::from_nanos),
            is_open: !plan.stopping.is_fixed(),
            live: LiveView::new(plan),
            measuring: String::new(),
            told_to_stop: false,
        }
    }

    /// Shows one event.
    pub fn show(&mut self, event: &Event<'_>) {
        match event {
            Event::Filling { group, stores } => {
                let arm = group.arms.first();
                let with = arm.map_or(String::new(), |arm| {
                    let count = arm.case.dataset.count;
                    match arm.case.workload.shape() {
                        Shape::Blobs => format!(" with {count} blobs each"),
                        Shape::Rows => format!(" with two tables of {count} rows each"),
                        Shape::Tree => format!(", and a tree of {count} entries"),
                        Shape::NoRows | Shape::NoBlobs => String::new(),
                    }
                });
                self.say(&format!("{}: filling {stores} stores{with}", group.name));
            }
            Event::RoundBegins { group, round } => {
                self.group.clone_from(&group.name);
                self.rounds = group.rounds.max(round + 1);
                if *round == 0 {
                    self.live.begin(group);
                }
                self.draw(*round);
                self.draw_arms(group);
            }
            Event::Measuring { group, label } => {
                self.measuring = (*label).to_owned();
                self.draw_arms(group);
                self.tell_of_interruption();
            }
            Event::RoundEnded {
                group,
                round,
                took,
                trials,
            } => {
                self.note_round(group, *took);
                self.live.add(group, trials);
                self.draw_arms(group);
                if self.plain {
                    self.line(&format!(
                        "{}: round {} took {}, {}",
                        group.name,
                        self.of_rounds(round + 1),
                        format_duration(took.as_nanos() as u64),
                        self.left_words()
                    ));
                }
                self.draw(round + 1);
            }
            Event::Trouble { message } => self.line(message),
        }
    }

    /// Takes the bar away.
    pub fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    fn note_round(&mut self, group: &Group, took: Duration) {
        let estimated_ns = round_ns(group);
        self.spent_ns += took.as_nanos() as u64;
        self.estimated_spent_ns += estimated_ns;
        if let Some((_, ahead_ns)) = self.ahead.iter_mut().find(|(name, _)| *name == group.name) {
            *ahead_ns = ahead_ns.saturating_sub(estimated_ns);
        }
    }

    /// Time left in nanoseconds: the estimate of what is ahead, put right by how far the rounds
    /// so far were off theirs.
    fn left_ns(&self) -> u64 {
        if let Some(budget) = self.budget {
            return budget.saturating_sub(self.started.elapsed()).as_nanos() as u64;
        }
        let ahead_ns: u64 = self.ahead.iter().map(|(_, ahead_ns)| ahead_ns).sum();
        if self.estimated_spent_ns == 0 {
            return ahead_ns;
        }
        (ahead_ns as f64 * self.spent_ns as f64 / self.estimated_spent_ns as f64) as u64
    }

    /// `3 of 8`, or `3` where nobody knows how many there will be.
    fn of_rounds(&self, round: u32) -> String {
        if self.is_open {
            round.to_string()
        } else {
            format!("{round} of {}", self.rounds)
        }
    }

    /// What is left, in whole seconds; nothing is known of it where a precision alone decides.
    fn left_words(&self) -> String {
        if self.is_open && self.budget.is_none() {
            return "until it is precise enough".to_owned();
        }
        let left_ns = self.left_ns() / 1_000_000_000 * 1_000_000_000;
        format!("{} left", format_duration(left_ns))
    }

    fn draw(&self, round: u32) {
        let Some(bar) = &self.bar else { return };
        let left_ns = self.left_ns();
        let whole_ns = (self.spent_ns + left_ns).max(1);
        bar.set_position(1000 * self.spent_ns / whole_ns);
        bar.set_prefix(format!(
            "{} {}, {}",
            self.group,
            self.of_rounds(round),
            self.left_words()
        ));
    }

    /// The arms with their ratios beneath the bar.
    fn draw_arms(&self, group: &Group) {
        let Some(bar) = &self.bar else { return };
        let size = rustix::termios::tcgetwinsize(std::io::stderr()).ok();
        let size = size.map(|size| (usize::from(size.ws_col), usize::from(size.ws_row)));
        let known = size.filter(|(columns, rows)| *columns > 0 && *rows > 0);
        let (columns, rows) = known.unwrap_or(COLUMNS_AND_ROWS_IF_UNKNOWN);
        // The last column is left free: some terminals break the line when it is written to.
        let lines = self.live.lines(group, &self.measuring, columns - 1, rows);
        bar.set_message(lines.join("\n"));
    }

    /// Says, once, what becomes of the first Ctrl-C.
    fn tell_of_interruption(&mut self) {
        if interruption::requested() && !self.told_to_stop && (self.plain || self.bar.is_some()) {
            self.told_to_stop = true;
            self.line("stopping after this trial; Ctrl-C again stops now");
        }
    }

    fn say(&self, message: &str) {
        match &self.bar {
            Some(bar) => bar.set_message(message.to_owned()),
            None if self.plain => self.line(message),
            None => {}
        }
    }

    /// A line that stays.
    fn line(&self, message: &str) {
        match &self.bar {
            Some(bar) => bar.println(message),
            // Standard error is all there is to complain to.
            None => {
                let _ = writeln!(std::io::stderr(), "{message}");
            }
        }
    }
}
