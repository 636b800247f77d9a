//! Plans: a suite made concrete at one scale and with one seed. Every name is checked, every
//! setting resolved, and nothing is left to decide while measuring.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::advice::AdviceRecord;
use crate::arrivals::{Arrivals, Rate};
use crate::case::{Case, Databases, Durability, Readers, Workload};
use crate::dataset::{Dataset, mix};
use crate::explanation::{Explanation, Share};
use crate::names::{is_plain, nearest};
use crate::settings::{SettingSpecification, Settings, SettingsError};
use crate::stopping::Stopping;
use crate::storage_age::OLDEST;
use crate::suite::{
    Chart, ChartKind, Claim, PublishedRate, Suite, SuiteArm, SuiteError, SuiteGroup, SuiteWorkload,
    Versus,
};
use crate::verdict::DEFAULT_THRESHOLD;

/// Appended to the baseline's name for its repetition.
pub const TWIN_SUFFIX: &str = "~twin";

/// Threads of one trial, at the most: far more than any machine's cores tell nothing about storage.
pub const MOST_THREADS: u32 = 256;

/// The engine that trees are recorded with, and those of its settings that are put in force for that.
const INDEX_ENGINE: &str = "sqlite";
const INDEX_SETTINGS: [&str; 5] = [
    "journal_mode",
    "synchronous",
    "cache",
    "transaction",
    "checkpoint",
];

/// What a plan needs to know about an engine.
pub trait Catalogue {
    /// Names of all engines.
    fn names(&self) -> Vec<&'static str>;
    /// Settings of an engine, or `None` if there is no such engine.
    fn specifications(&self, engine: &str) -> Option<&'static [SettingSpecification]>;
    /// Whether resolved settings make sense together.
    ///
    /// # Errors
    /// Says which do not.
    fn check(&self, engine: &str, settings: &Settings) -> Result<(), SettingsError>;
    /// What a committed write survives with these settings.
    fn durability(&self, engine: &str, settings: &Settings) -> Durability;
    /// Whether it can query, import and update rows.
    fn has_rows(&self, engine: &str) -> bool;
}

/// A suite, made concrete.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Name of the suite.
    pub suite: String,
    /// The question that heads the report.
    pub question: String,
    /// Name of the scale.
    pub scale: String,
    /// Everything random follows from it.
    pub seed: u64,
    /// Groups, in the order they are measured.
    pub groups: Vec<Group>,
    /// What the report draws.
    pub charts: Vec<Chart>,
    /// Sentences to judge.
    pub claims: Vec<Claim>,
    /// Sentences of the conclusion.
    pub conclusion: Vec<String>,
    /// Where the time of some arms goes, in parts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub explanations: Vec<Explanation>,
    /// Questions whose answer is a share.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shares: Vec<Share>,
    /// The smallest difference that is worth having, as a share: what verdicts are given against.
    #[serde(default = "default_threshold")]
    pub threshold: f64,
    /// How long to measure, where that was asked for.
    #[serde(default)]
    pub stopping: Stopping,
    /// What an advice run is about; of all other runs nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advice: Option<Box<AdviceRecord>>,
}

/// Of runs that were measured before it could be chosen.
fn default_threshold() -> f64 {
    DEFAULT_THRESHOLD
}

/// Arms that are measured together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Group {
    /// Name.
    pub name: String,
    /// Name of the arm that all are compared with.
    pub baseline: String,
    /// Number of rounds.
    pub rounds: u32,
    /// Slices of every arm in a round.
    pub slices: u32,
    /// Length of a reading slice in nanoseconds.
    pub slice_ns: u64,
    /// How its arms take turns.
    #[serde(default)]
    pub turns: Turns,
    /// The arms; the baseline's twin is among them.
    pub arms: Vec<Arm>,
}

/// How the arms of a group take turns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Turns {
    /// All arms are alive at once, and take turns slice by slice: drift of the machine falls on
    /// all of them alike.
    #[default]
    Interleaved,
    /// One arm after the other has the machine to itself for all of its slices, in an order that
    /// changes from round to round. For what disturbs its neighbours: several threads, a fixed
    /// rate of arrivals, a cold cache.
    Alone,
}

/// One arm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Arm {
    /// Name; unique in the plan.
    pub name: String,
    /// What the report calls it.
    pub label: String,
    /// What is measured.
    pub case: Case,
    /// What somebody published for it, as number and time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published_rate: Option<PublishedRate>,
    /// What else was published for it: the same on other places or machines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub further_published_rates: Vec<PublishedRate>,
}

impl Arm {
    /// Whether this is the repetition of a baseline.
    #[must_use]
    pub fn is_twin(&self) -> bool {
        self.name.ends_with(TWIN_SUFFIX)
    }

    /// All that was published for it.
    pub fn published_rates(&self) -> impl Iterator<Item = &PublishedRate> {
        self.published_rate
            .iter()
            .chain(&self.further_published_rates)
    }
}

/// A chart for each group about blobs, against its baseline: for suites that have none of their own, so that
/// every figure is shown somewhere. Rows and jobs have tables in any case.
fn implied_charts(groups: &[Group]) -> Vec<Chart> {
    let about_blobs = |group: &&Group| {
        let mut arms = group.arms.iter();
        arms.all(|arm| arm.case.workload.is_about_blobs())
    };
    let chart = |group: &Group| {
        let arms = || group.arms.iter().filter(|arm| !arm.is_twin());
        let baseline = arms().find(|arm| arm.name == group.baseline);
        let versus = baseline.map(|baseline| Versus {
            arm: baseline.name.clone(),
            label: baseline.label.clone(),
        });
        Chart {
            title: group.name.clone(),
            shows: ChartKind::Time,
            answers: String::new(),
            arms: arms().map(|arm| arm.name.clone()).collect(),
            versus: versus.into_iter().collect(),
            published: Vec::new(),
        }
    };
    groups.iter().filter(about_blobs).map(chart).collect()
}

impl Plan {
    /// Makes a suite concrete.
    ///
    /// # Errors
    /// The first name, number or setting that cannot be, with a hint.
    pub fn resolve(
        suite: &Suite,
        scale: &str,
        seed: u64,
        catalogue: &dyn Catalogue,
    ) -> Result<Self, SuiteError> {
        let resolver = Resolver {
            suite,
            scale,
            seed,
            catalogue,
        };
        resolver.check_scale()?;
        let groups = suite
            .group
            .iter()
            .map(|group| resolver.group(group))
            .collect::<Result<Vec<_>, _>>()?;
        let charts = match suite.chart.is_empty() {
            true => implied_charts(&groups),
            false => suite.chart.clone(),
        };
        let plan = Self {
            suite: suite.name.clone(),
            question: suite.question.clone(),
            scale: scale.to_owned(),
            seed,
            groups,
            charts,
            claims: suite.claim.clone(),
            conclusion: suite.conclusion.clone(),
            explanations: suite.explanation.clone(),
            shares: suite.share.clone(),
            threshold: DEFAULT_THRESHOLD,
            stopping: Stopping::default(),
            advice: None,
        };
        resolver.check_references(&plan)?;
        Ok(plan)
    }

    /// The plan without all groups but these, and without the charts, claims and sentences that
    /// need others.
    ///
    /// # Errors
    /// The first name that is no group, with the nearest that is.
    pub fn only(mut self, groups: &[String]) -> Result<Self, SuiteError> {
        let known: Vec<&str> = self
            .groups
            .iter()
            .map(|group| group.name.as_str())
            .collect();
        for name in groups {
            if !known.contains(&name.as_str()) {
                let hint = match nearest(name, known.iter().copied()) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("there are {}", known.join(", ")),
                };
                return Err(SuiteError {
                    suite: self.suite.clone(),
                    problem: format!("there is no group `{name}`"),
                    hint,
                });
            }
        }
        self.groups.retain(|group| groups.contains(&group.name));
        let arms: BTreeSet<String> = self.arms().map(|(_, arm)| arm.name.clone()).collect();
        let has = |name: &str| arms.contains(name);
        self.charts.retain(|chart| {
            let versus = chart.versus.iter().map(|versus| &versus.arm);
            chart.arms.iter().chain(versus).all(|name| has(name))
        });
        self.claims
            .retain(|claim| has(&claim.numerator) && has(&claim.denominator));
        self.conclusion.retain(|sentence| {
            crate::placeholders::check(std::slice::from_ref(sentence), &has).is_ok()
        });
        self.explanations
            .retain(|explanation| explanation.arms().all(|name| has(name)));
        self.shares
            .retain(|share| share.arms().all(|name| has(name)));
        Ok(self)
    }

    /// All arms, with the group they are in.
    pub fn arms(&self) -> impl Iterator<Item = (&Group, &Arm)> {
        self.groups
            .iter()
            .flat_map(|group| group.arms.iter().map(move |arm| (group, arm)))
    }

    /// An arm by its name, with its group.
    #[must_use]
    pub fn arm(&self, name: &str) -> Option<(&Group, &Arm)> {
        self.arms().find(|(_, arm)| arm.name == name)
    }
}

impl Group {
    /// Whether its arms change their stores.
    #[must_use]
    pub fn writes(&self) -> bool {
        self.arms.iter().any(|arm| arm.case.workload.writes())
    }

    /// Name of the baseline's repetition.
    #[must_use]
    pub fn twin(&self) -> String {
        format!("{}{TWIN_SUFFIX}", self.baseline)
    }
}

struct Resolver<'a> {
    suite: &'a Suite,
    scale: &'a str,
    seed: u64,
    catalogue: &'a dyn Catalogue,
}

impl Resolver<'_> {
    fn error(&self, problem: String, hint: String) -> SuiteError {
        SuiteError {
            suite: self.suite.name.clone(),
            problem,
            hint,
        }
    }

    fn no_such<'n>(
        &self,
        what: &str,
        name: &str,
        known: impl IntoIterator<Item = &'n str>,
    ) -> SuiteError {
        let known: Vec<&str> = known.into_iter().collect();
        let hint = match nearest(name, known.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("there are {}", known.join(", ")),
        };
        self.error(format!("there is no {what} `{name}`"), hint)
    }

    fn check_scale(&self) -> Result<(), SuiteError> {
        let scales = self.suite.scales();
        if scales.contains(&self.scale) {
            return Ok(());
        }
        Err(self.no_such("scale", self.scale, scales))
    }

    fn group(&self, group: &SuiteGroup) -> Result<Group, SuiteError> {
        let number = |what: &str, scaled: &crate::suite::Scaled| {
            scaled
                .at(self.scale)
                .filter(|number| (1..=100_000).contains(number))
                .map(|number| number as u32)
                .ok_or_else(|| {
                    let problem = format!("group `{}`: {what} is missing or 0", group.name);
                    self.error(problem, "it is a number from 1 to 100000".to_owned())
                })
        };
        let dataset = self.dataset(&group.dataset)?;
        let mut arms = Vec::new();
        for arm in &group.arm {
            arms.extend(self.arms(group, arm, &dataset)?);
        }
        let Some(baseline) = arms.iter().find(|arm| arm.name == group.baseline) else {
            let names = arms.iter().map(|arm| arm.name.as_str());
            return Err(self.no_such("arm", &group.baseline, names));
        };
        let twin = Arm {
            name: format!("{}{TWIN_SUFFIX}", baseline.name),
            label: format!("{}, again", baseline.label),
            case: baseline.case.clone(),
            published_rate: None,
            further_published_rates: Vec::new(),
        };
        arms.push(twin);
        Ok(Group {
            name: group.name.clone(),
            baseline: group.baseline.clone(),
            rounds: number("rounds", &group.rounds)?,
            slices: number("slices", &group.slices)?,
            slice_ns: group.slice_ms.clamp(1, 60_000) * 1_000_000,
            turns: self.turns(group)?,
            arms,
        })
    }

    /// A cold cache lasts for one slice, whose arm is alone.
    fn turns(&self, group: &SuiteGroup) -> Result<Turns, SuiteError> {
        if !group.cache.is_cold() {
            return Ok(group.turns.unwrap_or_default());
        }
        let refused = |what: &str, hint: &str| {
            let problem = format!("group `{}` is {}: {what}", group.name, group.cache);
            Err(self.error(problem, hint.to_owned()))
        };
        if group.turns == Some(Turns::Interleaved) {
            return refused("its arms cannot take turns", "leave `turns` out");
        }
        if group.slices.at(self.scale) != Some(1) {
            return refused(
                "after its first slice a cache is no longer cold",
                "set `slices = 1`, and more `rounds`",
            );
        }
        if !matches!(group.workload, SuiteWorkload::Read { .. }) {
            return refused("only reading can be measured so", "set `cache = \"warm\"`");
        }
        Ok(Turns::Alone)
    }

    fn dataset(&self, name: &str) -> Result<Dataset, SuiteError> {
        let names = || self.suite.dataset.iter().map(|known| known.name.as_str());
        let found = self.suite.dataset.iter().find(|known| known.name == name);
        let Some(found) = found else {
            return Err(self.no_such("dataset", name, names()));
        };
        let dataset = Dataset {
            count: found.count.at(self.scale).unwrap_or(0),
            size: found.size.clone(),
            compressibility: found.compressibility,
            seed: mix(self.seed),
        };
        match dataset.validate() {
            Ok(()) => Ok(dataset),
            Err(error) => Err(self.error(format!("dataset `{name}`: {error}"), String::new())),
        }
    }

    /// The arms that an arm of the suite stands for: one for each number of threads.
    fn arms(
        &self,
        group: &SuiteGroup,
        arm: &SuiteArm,
        dataset: &Dataset,
    ) -> Result<Vec<Arm>, SuiteError> {
        if !arm.workload.ages.is_empty() {
            return self.aged(group, arm, dataset);
        }
        // Arms of a load may differ in nothing but how much is due.
        let with_rate = |mut one: Arm| {
            if let Workload::Load { arrivals, .. } = one.case.workload
                && let Some(words) = arrivals.words()
            {
                one.label = format!("{}, {words}", one.label);
            }
            one
        };
        if arm.threads.is_empty() {
            return Ok(vec![with_rate(self.arm(group, arm, dataset, 1)?)]);
        }
        let processes = arm.workload.readers_are == Some(Readers::Processes);
        let in_words = |threads: u32| match (threads, processes) {
            (1, false) => "1 thread".to_owned(),
            (_, false) => format!("{threads} threads"),
            (1, true) => "1 process".to_owned(),
            (_, true) => format!("{threads} processes"),
        };
        let of_threads = |threads: &u32| {
            let mut one = self.arm(group, arm, dataset, *threads)?;
            one.name = format!("{}-{threads}", arm.name);
            one.label = format!("{}, {}", arm.label, in_words(*threads));
            Ok(with_rate(one))
        };
        arm.threads.iter().map(of_threads).collect()
    }

    /// The arms that an arm with storage ages stands for.
    fn aged(
        &self,
        group: &SuiteGroup,
        arm: &SuiteArm,
        dataset: &Dataset,
    ) -> Result<Vec<Arm>, SuiteError> {
        let aged = |age: &u32| {
            self.check_ages(&arm.name, std::slice::from_ref(age))?;
            let mut one = self.arm(group, arm, dataset, 1)?;
            one.case.age = *age;
            one.name = format!("{}-age-{age}", arm.name);
            one.label = format!("{}, age {age}", arm.label);
            Ok(one)
        };
        arm.workload.ages.iter().map(aged).collect()
    }

    fn check_ages(&self, arm: &str, ages: &[u32]) -> Result<(), SuiteError> {
        let ascend = ages.windows(2).all(|two| two[0] < two[1]);
        if ascend && ages.last().is_some_and(|last| *last <= OLDEST) {
            return Ok(());
        }
        let hint = format!("they are numbers from 0 to {OLDEST}, in ascending order");
        Err(self.error(format!("arm `{arm}`: impossible storage ages"), hint))
    }

    fn arm(
        &self,
        group: &SuiteGroup,
        arm: &SuiteArm,
        dataset: &Dataset,
        threads: u32,
    ) -> Result<Arm, SuiteError> {
        let Some(specifications) = self.catalogue.specifications(&arm.engine) else {
            return Err(self.no_such("engine", &arm.engine, self.catalogue.names()));
        };
        let in_arm = |error: SettingsError| {
            let problem = format!("arm `{}`: {error}", arm.name);
            self.error(problem, error.hint().to_owned())
        };
        let settings = given_settings(arm)
            .resolve(&arm.engine, specifications)
            .map_err(in_arm)?;
        self.catalogue
            .check(&arm.engine, &settings)
            .map_err(in_arm)?;
        let durability = arm.durability.unwrap_or(group.durability);
        let promised = self.catalogue.durability(&arm.engine, &settings);
        let workload = self.workload(group, arm, dataset, threads)?;
        let mut published = arm
            .published_rate
            .iter()
            .filter(|published| published.threads == threads)
            .cloned();
        if workload.writes() && promised < durability {
            let problem = format!(
                "arm `{}` is to survive {durability}, but its settings promise {promised}",
                arm.name
            );
            return Err(self.error(problem, "set `durability` of the arm".to_owned()));
        }
        Ok(Arm {
            name: arm.name.clone(),
            label: arm.label.clone(),
            case: Case {
                workload,
                dataset: dataset.clone(),
                engine: arm.engine.clone(),
                chosen: settings.without_defaults(specifications),
                settings,
                durability,
                cache: group.cache,
                scanner: arm.scanner.unwrap_or_default(),
                age: 0,
            },
            published_rate: published.next(),
            further_published_rates: published.collect(),
        })
    }

    fn workload(
        &self,
        group: &SuiteGroup,
        arm: &SuiteArm,
        dataset: &Dataset,
        threads: u32,
    ) -> Result<Workload, SuiteError> {
        let in_arm = |problem: String| format!("arm `{}`: {problem}", arm.name);
        let workload = group
            .workload
            .at(self.scale, arm, threads, dataset.count)
            .map_err(|problem| self.error(in_arm(problem), String::new()))?;
        if !(1..=MOST_THREADS).contains(&workload.threads()) {
            let hint = format!("a trial has 1 to {MOST_THREADS} threads");
            let problem = in_arm(format!("{} threads", workload.threads()));
            return Err(self.error(problem, hint));
        }
        if workload.key_range(dataset.count) > u64::from(u32::MAX) {
            let problem = in_arm("more ids than can be put in an order".to_owned());
            let hint = format!("rows * 100 / hit_percent is at most {}", u32::MAX);
            return Err(self.error(problem, hint));
        }
        if workload.is_about_rows() && !self.catalogue.has_rows(&arm.engine) {
            let problem = in_arm(format!("engine `{}` has no rows", arm.engine));
            return Err(self.error(problem, "rows are for engines that speak SQL".to_owned()));
        }
        match workload {
            Workload::Overwrite { operations, .. }
                if !(1..=dataset.count).contains(&operations) =>
            {
                let problem = format!(
                    "arm `{}`: a batch of {operations} overwrites of {} blobs",
                    arm.name, dataset.count
                );
                let hint = "a batch overwrites every blob once at the most".to_owned();
                Err(self.error(problem, hint))
            }
            Workload::Import { operations, .. } if !(1..=dataset.count).contains(&operations) => {
                let rows = dataset.count;
                let problem = in_arm(format!("an import of {operations} of {rows} rows"));
                let hint = "an import has 1 row at the least and the dataset's at the most";
                Err(self.error(problem, hint.to_owned()))
            }
            Workload::Load {
                writers,
                arrivals,
                readers_are,
                ..
            } => {
                self.check_load(group, writers, arrivals, readers_are)
                    .map_err(|(problem, hint)| self.error(in_arm(problem), hint))?;
                Ok(workload)
            }
            Workload::PointQuery {
                databases: Databases::Own,
                readers_are: Readers::Processes,
                ..
            } => {
                let problem = in_arm("processes have one database".to_owned());
                let hint = "leave `databases` out, or `readers_are`".to_owned();
                Err(self.error(problem, hint))
            }
            Workload::Update { operations: 0, .. } | Workload::JobQueue { operations: 0, .. } => {
                Err(self.error(in_arm("no operations".to_owned()), String::new()))
            }
            Workload::Index { .. } => {
                self.check_index(arm)?;
                Ok(workload)
            }
            Workload::Lifecycle {
                ref ages,
                removed_percent,
            } => {
                self.check_ages(&arm.name, ages)?;
                if ages.last() == Some(&0) || !(1..=99).contains(&removed_percent) {
                    let hint = "the last of `ages` is 1 or more, `removed_percent` from 1 to 99";
                    let problem = in_arm("no life of a store".to_owned());
                    return Err(self.error(problem, hint.to_owned()));
                }
                Ok(workload)
            }
            workload => Ok(workload),
        }
    }

    /// A tree is recorded by the library that is built in, with these settings and no others.
    fn check_index(&self, arm: &SuiteArm) -> Result<(), SuiteError> {
        if arm.engine != INDEX_ENGINE {
            let problem = format!(
                "arm `{}`: engine `{}` records no trees",
                arm.name, arm.engine
            );
            let hint = format!("its engine is `{INDEX_ENGINE}`");
            return Err(self.error(problem, hint));
        }
        match arm
            .settings
            .keys()
            .find(|name| !INDEX_SETTINGS.contains(&name.as_str()))
        {
            None => Ok(()),
            Some(name) => {
                let problem = format!("arm `{}`: recording a tree has no `{name}`", arm.name);
                Err(self.error(problem, format!("there are {}", INDEX_SETTINGS.join(", "))))
            }
        }
    }

    /// What a load cannot be, with a hint.
    fn check_load(
        &self,
        group: &SuiteGroup,
        writers: u32,
        arrivals: Arrivals,
        readers_are: Readers,
    ) -> Result<(), (String, String)> {
        let refuse = |problem: &str, hint: &str| Err((problem.to_owned(), hint.to_owned()));
        if writers > 1 {
            return refuse("several writers of one blob", "`writers` is 0 or 1");
        }
        if group.turns != Some(Turns::Alone) {
            return refuse(
                "several threads disturb their neighbours",
                "set `turns = \"alone\"` of the group",
            );
        }
        if readers_are == Readers::Processes && (writers > 0 || arrivals.is_open()) {
            return refuse(
                "processes only read, one blob after the other",
                "use threads for a writer and for arrivals",
            );
        }
        let none_due = match arrivals {
            Arrivals::Closed => false,
            Arrivals::Open { rate, .. } => match rate {
                Rate::CapacityPercent(percent) => !(1..=1000).contains(&percent),
                Rate::PerSecond { reads, writes } => reads == 0 || (writers > 0 && writes == 0),
            },
        };
        if none_due {
            return refuse(
                "nothing is due",
                "a rate is 1 to 1000 percent of the capacity, or so many a second",
            );
        }
        Ok(())
    }

    /// Checks that parts and shares name arms of one group: only those are measured in the same
    /// rounds.
    fn check_explanations(&self, plan: &Plan) -> Result<(), SuiteError> {
        let of_explanations = plan.explanations.iter().map(|explanation| {
            let arms: Vec<&String> = explanation.arms().collect();
            (format!("the explanation of `{}`", explanation.arm), arms)
        });
        let of_shares = plan.shares.iter().map(|share| {
            let arms: Vec<&String> = share.arms().collect();
            (format!("the share \"{}\"", share.sentence), arms)
        });
        for (what, arms) in of_explanations.chain(of_shares) {
            let mut groups = BTreeSet::new();
            for name in arms {
                let Some((group, _)) = plan.arm(name) else {
                    let names = plan.arms().map(|(_, arm)| arm.name.as_str());
                    return Err(self.no_such("arm", name, names));
                };
                groups.insert(group.name.as_str());
            }
            if groups.len() > 1 {
                let problem = format!("{what} has arms of several groups");
                let hint = "only arms of one group are measured in the same rounds".to_owned();
                return Err(self.error(problem, hint));
            }
        }
        Ok(())
    }

    /// Checks that names are unique and that charts and claims name arms that exist.
    fn check_references(&self, plan: &Plan) -> Result<(), SuiteError> {
        let mut names = BTreeSet::new();
        for arm in self.suite.group.iter().flat_map(|group| &group.arm) {
            if !is_plain(&arm.name) {
                let problem = format!("an arm cannot be called `{}`", arm.name);
                let hint = "names are of letters, digits, `.`, `_` and `-`, at most 64, and begin \
                            with a letter or a digit";
                return Err(self.error(problem, hint.to_owned()));
            }
        }
        for (_, arm) in plan.arms() {
            if !names.insert(arm.name.as_str()) {
                let problem = format!("two arms are called `{}`", arm.name);
                return Err(self.error(problem, "names are unique in a suite".to_owned()));
            }
        }
        let of_charts = plan.charts.iter().flat_map(|chart| {
            let versus = chart.versus.iter().map(|versus| &versus.arm);
            let published = chart.published.iter().map(|published| &published.arm);
            chart.arms.iter().chain(versus).chain(published)
        });
        let of_claims = plan
            .claims
            .iter()
            .flat_map(|claim| [&claim.numerator, &claim.denominator]);
        let groups = plan.groups.iter().map(|group| ("group", &group.name));
        let datasets = self
            .suite
            .dataset
            .iter()
            .map(|data| ("dataset", &data.name));
        let mut seen = BTreeSet::new();
        for (what, name) in groups.chain(datasets) {
            if !seen.insert((what, name)) {
                let problem = format!("two {what}s are called `{name}`");
                return Err(self.error(problem, "names are unique in a suite".to_owned()));
            }
        }
        let boundless = |claim: &&Claim| claim.at_least.is_none() && claim.at_most.is_none();
        if let Some(claim) = plan.claims.iter().find(boundless) {
            let problem = format!("the claim \"{}\" can only hold", claim.sentence);
            return Err(self.error(problem, "give it `at_least` or `at_most`".to_owned()));
        }
        self.check_explanations(plan)?;
        for name in of_charts.chain(of_claims) {
            if !names.contains(name.as_str()) {
                return Err(self.no_such("arm", name, names.iter().copied()));
            }
        }
        let is_arm = |name: &str| names.contains(name);
        crate::placeholders::check(&plan.conclusion, &is_arm)
            .map_err(|problem| self.error(problem, String::new()))
    }
}

/// The settings of an arm as text, whatever kind of value the file has.
fn given_settings(arm: &SuiteArm) -> Settings {
    let mut settings = Settings::default();
    for (name, value) in &arm.settings {
        match value {
            toml::Value::String(text) => settings.set(name, text),
            other => settings.set(name, &other.to_string()),
        }
    }
    settings
}
