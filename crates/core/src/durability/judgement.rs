//! From cuts to the truth table: for every configuration on every filesystem what it keeps, how sure
//! that is, whether it is what the engine claims, how fast it is, and what the next tier costs.

use super::finding::Finding;
use super::plan::{Configuration, Cut, CutKind, DurabilityRun, Ending};
use crate::case::Durability;
use crate::statistics::{DEFAULT_CONFIDENCE, lower_bound, median, upper_bound};

/// What the cuts of one kind of event did to one configuration.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tally {
    /// Cuts whose store was looked at.
    pub cuts: u32,
    /// Cuts that could not be made or looked at.
    pub failed: u32,
    /// Cuts after which an acknowledged commit was not there.
    pub lost: u32,
    /// Cuts after which the store did not open, its own check complained, or a blob that nobody was
    /// writing was torn, empty, gone or unreadable.
    pub damaged: u32,
    /// Cuts after which either was so: what was acknowledged was lost, or damaged.
    pub broken: u32,
    /// Cuts after which the store did not open.
    pub unopened: u32,
    /// Cuts after which the store's own check complained.
    pub inconsistent: u32,
    /// Cuts after which blobs were torn, empty, missing, or unreadable, in this order.
    pub kinds: [u32; 4],
    /// Cuts after which a blob that was being written was neither old nor new.
    pub destroyed: u32,
    /// Cuts after which a batch was there in part.
    pub half_applied: u32,
    /// Cuts after which files were left over.
    pub strays: u32,
    /// Commits acknowledged, in all cuts.
    pub acknowledged_commits: u64,
    /// Most commits that one cut lost.
    pub worst_lost_commits: u64,
    /// Longest time between an acknowledgement and the cut that undid it, nanoseconds.
    pub worst_lost_age_ns: u64,
    /// Longest time to mount and to open and read, nanoseconds.
    pub worst_recover_ns: u64,
    /// The first error that a store gave, or that kept a cut from being made.
    pub example: Option<String>,
}

impl Tally {
    fn of<'a>(cuts: impl Iterator<Item = &'a Cut>) -> Self {
        let mut tally = Self::default();
        for cut in cuts {
            tally.add(cut);
        }
        tally
    }

    fn add(&mut self, cut: &Cut) {
        let (finding, store) = match &cut.ending {
            Ending::Found { finding, store } => (finding, store),
            Ending::Failed(reason) => {
                self.failed += 1;
                self.example.get_or_insert_with(|| reason.clone());
                return;
            }
        };
        let is_unopened = store.open_error.is_some();
        let is_inconsistent = store.integrity_error.is_some();
        let kinds = blob_kinds(finding);
        let is_damaged = is_unopened || is_inconsistent || kinds.iter().any(|blobs| *blobs > 0);
        self.cuts += 1;
        self.lost += u32::from(finding.lost_commits > 0);
        self.damaged += u32::from(is_damaged);
        self.broken += u32::from(is_damaged || finding.lost_commits > 0);
        self.unopened += u32::from(is_unopened);
        self.inconsistent += u32::from(is_inconsistent);
        if !is_unopened {
            for (count, blobs) in self.kinds.iter_mut().zip(kinds) {
                *count += u32::from(blobs > 0);
            }
        }
        self.destroyed += u32::from(finding.destroyed_in_flight_blobs > 0);
        self.half_applied += u32::from(finding.half_applied_commits > 0);
        self.strays += u32::from(store.stray_files > 0);
        self.acknowledged_commits += finding.acknowledged_commits;
        self.worst_lost_commits = self.worst_lost_commits.max(finding.lost_commits);
        self.worst_lost_age_ns = self.worst_lost_age_ns.max(cut.lost_age_ns.unwrap_or(0));
        let recover_ns = cut.mount_ns.unwrap_or(0) + store.recover_ns;
        self.worst_recover_ns = self.worst_recover_ns.max(recover_ns);
        let errors = [&store.open_error, &store.integrity_error, &store.read_error];
        if self.example.is_none() {
            self.example = errors.into_iter().flatten().next().cloned();
        }
    }

    /// Whether no cut broke the tier: nothing acknowledged was lost or damaged.
    #[must_use]
    pub fn is_survived(&self) -> bool {
        self.broken == 0
    }

    /// The largest share of cuts that may lose something, with 95% confidence.
    #[must_use]
    pub fn lost_share_at_most(&self) -> f64 {
        upper_bound(self.lost, self.cuts, DEFAULT_CONFIDENCE)
    }

    /// The smallest share of cuts that must lose something, with 95% confidence.
    #[must_use]
    pub fn lost_share_at_least(&self) -> f64 {
        lower_bound(self.lost, self.cuts, DEFAULT_CONFIDENCE)
    }
}

fn blob_kinds(finding: &Finding) -> [u64; 4] {
    [
        finding.torn_blobs,
        finding.empty_blobs,
        finding.missing_blobs,
        finding.unreadable_blobs,
    ]
}

/// How what was observed stands to what is claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claim {
    /// Nothing contradicts it, and the event was tried.
    Holds,
    /// Acknowledged commits were lost in an event that they are claimed to survive.
    Lost(Durability),
    /// Nothing was lost, but a store that is documented to stay intact was not.
    NotIntact(Durability),
    /// More survived than is claimed; chance and the kind of cut may be the reason.
    Exceeded,
    /// The event that it claims to survive was not tried, or no cut of it succeeded.
    Untested,
    /// The control was caught losing what it had acknowledged.
    Caught,
    /// The control was not caught: the experiment proves nothing.
    NotCaught,
}

/// What it takes to come to the next tier.
#[derive(Debug, Clone, PartialEq)]
pub struct NextTier {
    /// The tier.
    pub tier: Durability,
    /// The fastest configuration of the same engine that has it on this filesystem.
    pub configuration: String,
    /// How many times as fast the configuration without it is.
    pub slowdown: f64,
}

/// One line of the truth table.
#[derive(Debug, Clone, PartialEq)]
pub struct Row<'a> {
    /// The filesystem.
    pub filesystem: &'a str,
    /// The way of writing.
    pub configuration: &'a Configuration,
    /// What killing the process did.
    pub process: Tally,
    /// What losing power did, by whatever kind of cut.
    pub power: Tally,
    /// The highest tier that no cut contradicts; `None` if nothing was tried.
    pub observed: Option<Durability>,
    /// How that stands to the claim.
    pub claim: Claim,
    /// Acknowledged commits a second, alone on the machine: the median of its turns.
    pub commits_per_second: Option<f64>,
    /// The price of the next tier, if there is one to have.
    pub next: Option<NextTier>,
}

/// The truth table.
#[derive(Debug, Clone, PartialEq)]
pub struct Table<'a> {
    /// Its lines, in the order of the plan: filesystem by filesystem.
    pub rows: Vec<Row<'a>>,
}

impl Table<'_> {
    /// Whether the experiment can see losses: every control was caught wherever it was cut.
    #[must_use]
    pub fn is_trustworthy(&self) -> bool {
        let controls = || self.rows.iter().filter(|row| row.configuration.is_control);
        controls().any(|row| row.claim == Claim::Caught)
            && controls().all(|row| row.claim != Claim::NotCaught)
    }

    /// Lines whose claim is broken.
    pub fn broken(&self) -> impl Iterator<Item = &Row<'_>> {
        let is_broken = |row: &&Row<'_>| matches!(row.claim, Claim::Lost(_) | Claim::NotIntact(_));
        self.rows.iter().filter(is_broken)
    }
}

/// Judges a run.
#[must_use]
pub fn judge(run: &DurabilityRun) -> Table<'_> {
    let mut rows: Vec<Row<'_>> = Vec::new();
    for filesystem in &run.plan.filesystems {
        for configuration in &run.plan.configurations {
            rows.push(row(run, filesystem, configuration));
        }
    }
    let next: Vec<_> = rows.iter().map(|row| next_tier(row, &rows)).collect();
    for (row, next) in rows.iter_mut().zip(next) {
        row.next = next;
    }
    Table { rows }
}

fn row<'a>(
    run: &'a DurabilityRun,
    filesystem: &'a str,
    configuration: &'a Configuration,
) -> Row<'a> {
    let cuts = |tier: Durability| {
        run.cuts.iter().filter(move |cut| {
            cut.filesystem == filesystem
                && cut.configuration == configuration.name
                && cut.kind.tier() == tier
        })
    };
    let process = Tally::of(cuts(CutKind::ProcessCrash.tier()));
    let power = Tally::of(cuts(Durability::PowerLoss));
    let observed = observed(&process, &power);
    let claim = claim(configuration, &process, &power, observed);
    let speeds = run.speeds.iter().filter(|speed| {
        speed.filesystem == filesystem
            && speed.configuration == configuration.name
            && speed.elapsed_ns > 0
    });
    let speeds: Vec<f64> = speeds
        .map(|speed| speed.commits as f64 * 1e9 / speed.elapsed_ns as f64)
        .collect();
    Row {
        filesystem,
        configuration,
        process,
        power,
        observed,
        claim,
        commits_per_second: median(&speeds),
        next: None,
    }
}

/// The highest tier that was tried and is not contradicted. A tier includes the ones below it.
fn observed(process: &Tally, power: &Tally) -> Option<Durability> {
    if process.cuts + power.cuts == 0 {
        return None;
    }
    if !process.is_survived() {
        return Some(Durability::None);
    }
    if power.cuts > 0 && power.is_survived() {
        return Some(Durability::PowerLoss);
    }
    // With nothing known of crashes, a loss of power that was not survived says nothing of them.
    (process.cuts > 0).then_some(Durability::ProcessCrash)
}

fn claim(
    configuration: &Configuration,
    process: &Tally,
    power: &Tally,
    observed: Option<Durability>,
) -> Claim {
    let events = [
        (Durability::ProcessCrash, process),
        (Durability::PowerLoss, power),
    ];
    let tried = || events.into_iter().filter(|(_, tally)| tally.cuts > 0);
    if configuration.is_control {
        let caught = tried().all(|(_, tally)| tally.lost > 0);
        return match (tried().count(), caught) {
            (0, _) => Claim::Untested,
            (_, true) => Claim::Caught,
            (_, false) => Claim::NotCaught,
        };
    }
    for (tier, tally) in tried() {
        if tier <= configuration.claimed && !tally.is_survived() {
            return Claim::Lost(tier);
        }
    }
    for (tier, tally) in tried() {
        let half_applied = configuration.transactional && tally.half_applied > 0;
        let is_intact = tally.damaged == 0 && tally.destroyed == 0 && !half_applied;
        if tier <= configuration.intact_after && !is_intact {
            return Claim::NotIntact(tier);
        }
    }
    let is_tried = events
        .iter()
        .all(|(tier, tally)| *tier > configuration.claimed || tally.cuts > 0);
    match observed {
        Some(observed) if observed > configuration.claimed => Claim::Exceeded,
        Some(_) if is_tried => Claim::Holds,
        _ => Claim::Untested,
    }
}

/// The cheapest way to the tier above, among configurations of the same engine.
fn next_tier(row: &Row<'_>, rows: &[Row<'_>]) -> Option<NextTier> {
    let (observed, speed) = (row.observed?, row.commits_per_second?);
    let better = rows.iter().filter(|other| {
        other.filesystem == row.filesystem
            && other.configuration.engine == row.configuration.engine
            && !other.configuration.is_control
            && other.observed.is_some_and(|tier| tier > observed)
            && other.configuration.claimed > observed
    });
    let better = better.filter_map(|other| Some((other, other.commits_per_second?)));
    let tier = better
        .clone()
        .filter_map(|(other, _)| other.observed)
        .min()?;
    let (other, other_speed) = better
        .filter(|(other, _)| other.observed == Some(tier))
        .max_by(|(_, one), (_, next)| one.total_cmp(next))?;
    Some(NextTier {
        tier,
        configuration: other.configuration.name.clone(),
        slowdown: speed / other_speed,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::durability::content::Batches;
    use crate::durability::finding::StoreFinding;
    use crate::durability::plan::{DurabilityPlan, Speed};
    use crate::run::{RunHead, RunState};
    use crate::settings::Settings;

    fn configuration(name: &str, claimed: Durability) -> Configuration {
        Configuration {
            name: name.to_owned(),
            engine: "sqlite".to_owned(),
            settings: Settings::default(),
            claimed,
            intact_after: Durability::PowerLoss,
            transactional: true,
            is_control: false,
        }
    }

    fn run(configurations: Vec<Configuration>, cuts: Vec<Cut>) -> DurabilityRun {
        DurabilityRun {
            head: RunHead {
                id: "run".to_owned(),
                sqlitmus_version: "0".to_owned(),
                started_utc: String::new(),
                finished_utc: None,
                state: RunState::Complete,
                command_line: String::new(),
                place: String::new(),
            },
            plan: DurabilityPlan {
                filesystems: vec!["xfs".to_owned()],
                configurations,
                cuts: 2,
                hold_ns: (1, 2),
                crash_hold_ns: 1,
                batches: Batches {
                    keys: 4,
                    blobs: 2,
                    seed: 1,
                },
                settle_every: 10,
                early_writeback: false,
            },
            environment: Vec::new(),
            mount_options: Default::default(),
            read_back: Default::default(),
            cuts,
            speeds: Vec::new(),
        }
    }

    fn cut(name: &str, kind: CutKind, change: impl FnOnce(&mut Finding)) -> Cut {
        let mut finding = Finding {
            acknowledged_commits: 10,
            ..Finding::default()
        };
        change(&mut finding);
        Cut {
            filesystem: "xfs".to_owned(),
            configuration: name.to_owned(),
            kind,
            number: 0,
            held_ns: 5,
            pause_ns: 1,
            lost_age_ns: (finding.lost_commits > 0).then_some(700),
            mount_ns: Some(3),
            ending: Ending::Found {
                finding,
                store: StoreFinding::default(),
            },
        }
    }

    fn nothing(_: &mut Finding) {}

    fn loses(finding: &mut Finding) {
        finding.lost_commits = 2;
    }

    fn only(claimed: Durability, cuts: Vec<Cut>) -> (Option<Durability>, Claim) {
        let run = run(vec![configuration("x", claimed)], cuts);
        let table = judge(&run);
        (table.rows[0].observed, table.rows[0].claim)
    }

    #[test]
    fn the_tier_is_the_highest_that_no_cut_contradicts() {
        use CutKind::{ProcessCrash, Shutdown};
        let power = Durability::PowerLoss;
        let safe = || cut("x", ProcessCrash, nothing);
        let cases = [
            (
                vec![safe(), cut("x", Shutdown, nothing)],
                Some(power),
                Claim::Holds,
            ),
            (
                vec![
                    safe(),
                    cut("x", Shutdown, nothing),
                    cut("x", Shutdown, loses),
                ],
                Some(Durability::ProcessCrash),
                Claim::Lost(power),
            ),
            (
                vec![safe()],
                Some(Durability::ProcessCrash),
                Claim::Untested,
            ),
            (vec![], None, Claim::Untested),
            (
                vec![cut("x", ProcessCrash, loses), cut("x", Shutdown, nothing)],
                Some(Durability::None),
                Claim::Lost(Durability::ProcessCrash),
            ),
            (
                vec![
                    safe(),
                    cut("x", Shutdown, |finding| finding.half_applied_commits = 1),
                ],
                Some(power),
                Claim::NotIntact(power),
            ),
            (
                vec![safe(), cut("x", Shutdown, |finding| finding.torn_blobs = 1)],
                Some(Durability::ProcessCrash),
                Claim::Lost(power),
            ),
        ];
        for (cuts, observed, claim) in cases {
            assert_eq!(only(power, cuts.clone()), (observed, claim), "{cuts:?}");
        }
        let less = only(
            Durability::ProcessCrash,
            vec![safe(), cut("x", Shutdown, loses)],
        );
        assert_eq!(less, (Some(Durability::ProcessCrash), Claim::Holds));
        let more = only(
            Durability::ProcessCrash,
            vec![safe(), cut("x", Shutdown, nothing)],
        );
        assert_eq!(more, (Some(power), Claim::Exceeded));
    }

    #[test]
    fn a_failed_cut_proves_nothing() {
        let mut failed = cut("x", CutKind::Shutdown, nothing);
        failed.ending = Ending::Failed("no space".to_owned());
        let (observed, claim) = only(Durability::PowerLoss, vec![failed]);
        assert_eq!((observed, claim), (None, Claim::Untested));
    }

    #[test]
    fn a_control_that_is_not_caught_makes_the_table_worthless() {
        let mut control = configuration("liar", Durability::PowerLoss);
        control.is_control = true;
        for (change, claim) in [
            (loses as fn(&mut Finding), Claim::Caught),
            (nothing, Claim::NotCaught),
        ] {
            let cuts = vec![cut("liar", CutKind::Shutdown, change)];
            let run = run(vec![control.clone()], cuts);
            let table = judge(&run);
            assert_eq!(table.rows[0].claim, claim);
            assert_eq!(table.is_trustworthy(), claim == Claim::Caught);
        }
        let run = run(vec![configuration("x", Durability::None)], Vec::new());
        assert!(
            !judge(&run).is_trustworthy(),
            "without a control nothing is proved"
        );
    }

    #[test]
    fn the_next_tier_is_the_fastest_that_has_it() {
        let names = ["fast", "safe", "slow"];
        let claimed = [
            Durability::ProcessCrash,
            Durability::PowerLoss,
            Durability::PowerLoss,
        ];
        let configurations = names
            .iter()
            .zip(claimed)
            .map(|(name, tier)| configuration(name, tier));
        let mut cuts = Vec::new();
        for name in names {
            cuts.push(cut(name, CutKind::ProcessCrash, nothing));
            let change = if name == "fast" { loses } else { nothing };
            cuts.push(cut(name, CutKind::Shutdown, change));
        }
        let mut run = run(configurations.collect(), cuts);
        run.speeds = names
            .iter()
            .zip([1000, 250, 100])
            .map(|(name, commits)| Speed {
                filesystem: "xfs".to_owned(),
                configuration: (*name).to_owned(),
                commits,
                elapsed_ns: 1_000_000_000,
            })
            .collect();
        let table = judge(&run);
        let next = table.rows[0].next.clone().expect("a next tier");
        assert_eq!(
            (next.tier, next.configuration.as_str()),
            (Durability::PowerLoss, "safe")
        );
        assert!((next.slowdown - 4.0).abs() < 1e-9);
        assert_eq!(table.rows[1].next, None);
        assert_eq!(table.rows[0].power.worst_lost_age_ns, 700);
    }
}
