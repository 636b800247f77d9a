//! Suites: what is measured, as data. A suite is a TOML file that spells out datasets, groups of
//! arms with their baseline, the charts to draw, the published figures to set beside ours, and
//! the claims to judge. This file says what may stand in one; [`crate::plan`] makes it concrete.

mod matrix;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::arrivals::Arrivals;
use crate::case::{
    CacheState, Databases, Durability, IndexWay, Readers, Scanner, Workload, Writing,
};
use crate::dataset::SizeDistribution;
use crate::explanation::{Explanation, Share};
use crate::plan::Turns;
pub use matrix::{Matrix, PublishedMatrix};

/// A suite as it stands in its file.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Suite {
    /// Name on the command line.
    pub name: String,
    /// One line for `sqlitmus list`.
    pub about: String,
    /// The question that heads the report.
    pub question: String,
    /// What the blobs are.
    pub dataset: Vec<SuiteDataset>,
    /// Arms that are measured together.
    pub group: Vec<SuiteGroup>,
    /// What the report draws.
    #[serde(default)]
    pub chart: Vec<Chart>,
    /// Sentences to judge.
    #[serde(default)]
    pub claim: Vec<Claim>,
    /// Sentences of the conclusion, with `{...}` where figures go: see
    /// [`crate::conclusion`].
    #[serde(default)]
    pub conclusion: Vec<String>,
    /// Where the time of an arm goes, in parts that were measured by themselves.
    #[serde(default)]
    pub explanation: Vec<Explanation>,
    /// Questions whose answer is a share.
    #[serde(default)]
    pub share: Vec<Share>,
}

/// A number that may differ by scale: either one number for all, or a table with `default` and
/// any other names, such as `full`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Scaled {
    /// The same at every scale.
    Same(u64),
    /// By name of the scale; a scale that is not named takes `default`.
    ByScale(BTreeMap<String, u64>),
}

impl Scaled {
    /// The number at a scale, if there is one.
    #[must_use]
    pub fn at(&self, scale: &str) -> Option<u64> {
        match self {
            Self::Same(number) => Some(*number),
            Self::ByScale(numbers) => numbers
                .get(scale)
                .or_else(|| numbers.get("default"))
                .copied(),
        }
    }

    fn scales(&self) -> impl Iterator<Item = &str> {
        let numbers = match self {
            Self::Same(_) => None,
            Self::ByScale(numbers) => Some(numbers),
        };
        numbers
            .into_iter()
            .flat_map(|numbers| numbers.keys().map(String::as_str))
    }
}

/// A dataset of a suite.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SuiteDataset {
    /// Name that groups refer to.
    pub name: String,
    /// Number of blobs.
    pub count: Scaled,
    /// Their sizes.
    pub size: SizeDistribution,
    /// Share of the bytes that a compressor can remove.
    #[serde(default)]
    pub compressibility: f64,
}

/// Arms that are measured together and compared.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SuiteGroup {
    /// Name; unique in the suite.
    pub name: String,
    /// Name of the dataset.
    pub dataset: String,
    /// What every arm does.
    pub workload: SuiteWorkload,
    /// Cache state at the start of every timed operation.
    pub cache: CacheState,
    /// What a committed write survives, unless an arm says otherwise.
    pub durability: Durability,
    /// Arm that all are compared with, and that stands twice in every round.
    pub baseline: String,
    /// Rounds: fresh processes for every arm.
    pub rounds: Scaled,
    /// Slices of every arm in a round.
    pub slices: Scaled,
    /// Length of a reading slice in milliseconds. A writing slice is one batch.
    #[serde(default = "default_slice_ms")]
    pub slice_ms: u64,
    /// How the arms take turns, if not slice by slice; a cold group's are alone in any case.
    #[serde(default)]
    pub turns: Option<Turns>,
    /// The arms.
    pub arm: Vec<SuiteArm>,
    /// Over what it is repeated. Written out by [`Suite::parse`], and then gone.
    #[serde(default)]
    pub matrix: Option<Matrix>,
}

fn default_slice_ms() -> u64 {
    10
}

/// A workload whose numbers may differ by scale.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum SuiteWorkload {
    /// As [`Workload::Read`].
    Read {
        /// Order of the keys.
        order: crate::keys::KeyOrder,
    },
    /// As [`Workload::Overwrite`].
    Overwrite {
        /// Order of the keys.
        order: crate::keys::KeyOrder,
        /// Operations in one batch.
        operations: Scaled,
    },
    /// As [`Workload::PointQuery`]; threads are the arms' own.
    PointQuery {
        /// Queries of a hundred that find their row.
        hit_percent: u32,
    },
    /// As [`Workload::Import`].
    Import {
        /// Rows of one import.
        operations: Scaled,
        /// Longest time of one import in milliseconds; 0: none.
        limit_ms: u64,
    },
    /// As [`Workload::Update`].
    Update {
        /// Order of the ids.
        order: crate::keys::KeyOrder,
        /// Updates in one batch.
        operations: Scaled,
        /// Longest time of one batch in milliseconds; 0: none.
        limit_ms: u64,
    },
    /// As [`Workload::Traffic`]. Of readers and writers, the number that is left out is the arm's
    /// number of threads.
    Traffic {
        /// Queries of a hundred that find their row.
        hit_percent: u32,
        /// Threads that query.
        readers: Option<u32>,
        /// Threads that update.
        writers: Option<u32>,
    },
    /// As [`Workload::Load`]; the arms' threads read.
    Load {
        /// Order of the keys.
        order: crate::keys::KeyOrder,
        /// Threads that overwrite: one, or none.
        #[serde(default)]
        writers: u32,
    },
    /// As [`Workload::JobQueue`]; threads are the arms' own.
    JobQueue {
        /// Lives in one batch.
        operations: Scaled,
        /// Longest time of one batch in milliseconds; 0: none.
        limit_ms: u64,
    },
    /// As [`Workload::Index`]; the way is the arms' own.
    Index {
        /// Threads that walk.
        walkers: u32,
        /// Path of the directory that is walked; without one a tree is generated.
        tree: Option<String>,
        /// Longest time of one recording in milliseconds; 0: none.
        limit_ms: u64,
    },
    /// As [`Workload::Lifecycle`].
    Lifecycle {
        /// Ages at which the store is looked at, ascending.
        ages: Vec<u32>,
        /// Objects of a hundred that are removed before the store is cleaned up.
        removed_percent: u32,
    },
}

/// What an arm may have of its own in its group's workload. What the workload has no use for is
/// refused.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArmWorkload {
    /// Queries of a hundred that find their row.
    pub hit_percent: Option<u32>,
    /// What several threads' connections are to.
    pub databases: Option<Databases>,
    /// Order of the ids.
    pub order: Option<crate::keys::KeyOrder>,
    /// Longest time of one batch in milliseconds.
    pub limit_ms: Option<u64>,
    /// How several threads' updates get into the database.
    pub writing: Option<Writing>,
    /// How a tree is recorded.
    pub way: Option<IndexWay>,
    /// When operations begin.
    pub arrivals: Option<Arrivals>,
    /// Whether several readers are threads or processes.
    pub readers_are: Option<Readers>,
    /// Storage ages of what is read ([`crate::storage_age`]). With them the arm stands for several arms, named
    /// and labelled after it: `files` with `[0, 4]` for `files-age-0` and `files-age-4`.
    #[serde(default)]
    pub ages: Vec<u32>,
}

impl SuiteWorkload {
    /// The workload of an arm at a scale, with this number of threads, over a dataset of `count`.
    ///
    /// # Errors
    /// What is missing, impossible, or of no use to this workload.
    pub fn at(
        &self,
        scale: &str,
        arm: &SuiteArm,
        threads: u32,
        count: u64,
    ) -> Result<Workload, String> {
        self.refuse_useless(arm)?;
        let own = &arm.workload;
        let operations = |of_group: &Scaled| {
            let scaled = arm.operations.as_ref().unwrap_or(of_group).at(scale);
            scaled.ok_or_else(|| "operations are missing".to_owned())
        };
        let range = |of_group: u32| {
            let percent = own.hit_percent.unwrap_or(of_group);
            match percent {
                1..=100 => Ok((count * 100).div_ceil(u64::from(percent))),
                _ => Err("`hit_percent` is a number from 1 to 100".to_owned()),
            }
        };
        Ok(match self {
            Self::Read { order } => Workload::Read { order: *order },
            Self::Overwrite {
                order,
                operations: of_group,
            } => Workload::Overwrite {
                order: *order,
                operations: operations(of_group)?,
            },
            Self::PointQuery { hit_percent } => Workload::PointQuery {
                range: range(*hit_percent)?,
                threads,
                databases: own.databases.unwrap_or_default(),
                readers_are: own.readers_are.unwrap_or_default(),
            },
            Self::Load { order, writers } => Workload::Load {
                order: own.order.unwrap_or(*order),
                readers: threads,
                writers: *writers,
                arrivals: own.arrivals.unwrap_or_default(),
                readers_are: own.readers_are.unwrap_or_default(),
            },
            Self::Import {
                operations: of_group,
                limit_ms,
            } => Workload::Import {
                operations: operations(of_group)?,
                limit_ms: own.limit_ms.unwrap_or(*limit_ms),
            },
            Self::Update {
                order,
                operations: of_group,
                limit_ms,
            } => Workload::Update {
                order: own.order.unwrap_or(*order),
                operations: operations(of_group)?,
                limit_ms: own.limit_ms.unwrap_or(*limit_ms),
            },
            Self::Traffic {
                hit_percent,
                readers,
                writers,
            } => Workload::Traffic {
                range: range(*hit_percent)?,
                readers: readers.unwrap_or(threads),
                writers: writers.unwrap_or(threads),
                writing: own.writing.unwrap_or_default(),
            },
            Self::JobQueue {
                operations: of_group,
                limit_ms,
            } => Workload::JobQueue {
                operations: operations(of_group)?,
                threads,
                limit_ms: own.limit_ms.unwrap_or(*limit_ms),
            },
            Self::Index {
                walkers,
                tree,
                limit_ms,
            } => {
                let way = own
                    .way
                    .ok_or_else(|| "its workload has no `way`".to_owned())?;
                Workload::Index {
                    way,
                    walkers: if way == IndexWay::Naive { 1 } else { *walkers },
                    tree: tree.clone(),
                    limit_ms: own.limit_ms.unwrap_or(*limit_ms),
                }
            }
            Self::Lifecycle {
                ages,
                removed_percent,
            } => Workload::Lifecycle {
                ages: ages.clone(),
                removed_percent: *removed_percent,
            },
        })
    }

    /// Refuses what an arm has for its workload and the workload has no use for.
    fn refuse_useless(&self, arm: &SuiteArm) -> Result<(), String> {
        let own = &arm.workload;
        let is_query = matches!(self, Self::PointQuery { .. });
        let is_traffic = matches!(self, Self::Traffic { .. });
        let is_update = matches!(self, Self::Update { .. });
        let is_load = matches!(self, Self::Load { .. });
        let is_index = matches!(self, Self::Index { .. });
        let is_read = matches!(self, Self::Read { .. });
        let is_limited =
            is_update || is_index || matches!(self, Self::Import { .. } | Self::JobQueue { .. });
        let has_threads =
            is_query || is_traffic || is_load || matches!(self, Self::JobQueue { .. });
        let given = [
            (
                "hit_percent",
                own.hit_percent.is_some(),
                is_query || is_traffic,
            ),
            ("databases", own.databases.is_some(), is_query),
            ("order", own.order.is_some(), is_update || is_load),
            ("arrivals", own.arrivals.is_some(), is_load),
            (
                "readers_are",
                own.readers_are.is_some(),
                is_query || is_load,
            ),
            ("limit_ms", own.limit_ms.is_some(), is_limited),
            ("writing", own.writing.is_some(), is_traffic),
            ("way", own.way.is_some(), is_index),
            ("ages", !own.ages.is_empty(), is_read),
            ("threads", !arm.threads.is_empty(), has_threads),
        ];
        match given.iter().find(|(_, given, useful)| *given && !useful) {
            Some((name, ..)) => Err(format!("its workload has no `{name}`")),
            None => Ok(()),
        }
    }

    /// Its numbers that differ by scale.
    fn operations(&self) -> Option<&Scaled> {
        match self {
            Self::Overwrite { operations, .. }
            | Self::Import { operations, .. }
            | Self::Update { operations, .. }
            | Self::JobQueue { operations, .. } => Some(operations),
            Self::Read { .. }
            | Self::PointQuery { .. }
            | Self::Traffic { .. }
            | Self::Index { .. }
            | Self::Lifecycle { .. }
            | Self::Load { .. } => None,
        }
    }
}

/// One arm of a group.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SuiteArm {
    /// Name; unique in the suite.
    pub name: String,
    /// What the report calls it.
    pub label: String,
    /// Engine's name.
    pub engine: String,
    /// Settings that differ from the engine's defaults: text, numbers or booleans.
    #[serde(default)]
    pub settings: BTreeMap<String, toml::Value>,
    /// Durability of this arm, where it is not the group's.
    pub durability: Option<Durability>,
    /// Operations in one batch, where not the group's.
    pub operations: Option<Scaled>,
    /// Who is asked before a file of the store is opened; nobody unless given.
    #[serde(default)]
    pub scanner: Option<Scanner>,
    /// Numbers of threads. With more than one number the arm stands for several arms, named and
    /// labelled after it: `private` with `[1, 2]` for `private-1` and `private-2`.
    #[serde(default)]
    pub threads: Vec<u32>,
    /// What else is its own in the group's workload.
    #[serde(default)]
    pub workload: ArmWorkload,
    /// What somebody published for this arm, by number of threads where the arm has several.
    #[serde(default)]
    pub published_rate: Vec<PublishedRate>,
}

/// How many operations took how long, as published.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedRate {
    /// Threads at work.
    #[serde(default = "one_thread")]
    pub threads: u32,
    /// Operations, of all threads together.
    pub operations: u64,
    /// Time they took together, in milliseconds.
    pub elapsed_ms: u64,
    /// Processor time as a share of `elapsed_ms`, in percent of one processor.
    #[serde(default)]
    pub cpu_percent: Option<u32>,
    /// Machine it is from.
    pub machine: String,
}

impl PublishedRate {
    /// Operations in a second, as they follow from number and time.
    #[must_use]
    pub fn per_second(&self) -> f64 {
        self.operations as f64 / (self.elapsed_ms as f64 / 1e3)
    }
}

fn one_thread() -> u32 {
    1
}

/// One chart of the report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Chart {
    /// Heading.
    pub title: String,
    /// What it shows.
    #[serde(default)]
    pub shows: ChartKind,
    /// What of the published article it answers, such as "charts 1-3".
    #[serde(default)]
    pub answers: String,
    /// Arms from top to bottom.
    pub arms: Vec<String>,
    /// Arms that the others are compared with, one column each.
    #[serde(default)]
    pub versus: Vec<Versus>,
    /// Published figures, set beside ours.
    #[serde(default)]
    pub published: Vec<Published>,
}

/// What a chart shows of its arms.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChartKind {
    /// Time of one operation.
    #[default]
    Time,
    /// Space on disk.
    Space,
}

/// A column of ratios.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Versus {
    /// Arm that is compared with.
    pub arm: String,
    /// Heading of the column: "... times as fast as {label}".
    pub label: String,
}

/// A figure somebody published for what an arm does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// Arm it belongs to.
    pub arm: String,
    /// Time of direct file access divided by time of the arm; for space likewise bytes.
    pub ratio: f64,
    /// Machine it is from.
    pub machine: String,
}

/// A sentence that can be tested.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// The sentence, in our words.
    pub sentence: String,
    /// Which quantity of the arms is compared.
    #[serde(default)]
    pub of: ClaimQuantity,
    /// The ratio is this arm's cost ...
    pub numerator: String,
    /// ... divided by this arm's.
    pub denominator: String,
    /// Smallest ratio for which the sentence holds.
    #[serde(default)]
    pub at_least: Option<f64>,
    /// Largest ratio for which the sentence holds.
    #[serde(default)]
    pub at_most: Option<f64>,
}

/// What a claim compares.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClaimQuantity {
    /// Time of one operation, to acknowledgement.
    #[default]
    Time,
    /// Allocated space on disk.
    Space,
}

/// Why a suite cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("suite {suite}: {problem}")]
pub struct SuiteError {
    /// Name of the suite or path of its file.
    pub suite: String,
    /// What is wrong, and where.
    pub problem: String,
    /// What to do about it; may be empty.
    pub hint: String,
}

impl Suite {
    /// Reads a suite; `source` names it in errors.
    ///
    /// # Errors
    /// Not TOML, or not a suite: says where.
    pub fn parse(text: &str, source: &str) -> Result<Self, SuiteError> {
        let mut suite: Self = toml::from_str(text).map_err(|error| SuiteError {
            suite: source.to_owned(),
            problem: error.to_string().trim_end().to_owned(),
            hint: "suites/article.toml in the source of sqlitmus is a complete example".to_owned(),
        })?;
        matrix::write_out(&mut suite)?;
        Ok(suite)
    }

    /// Names of the scales that the suite knows; `default` always comes first.
    #[must_use]
    pub fn scales(&self) -> Vec<&str> {
        let mut scales = vec!["default"];
        let of_groups = self.group.iter().flat_map(|group| {
            let operations = group.workload.operations();
            let of_arms = group.arm.iter().filter_map(|arm| arm.operations.as_ref());
            [Some(&group.rounds), Some(&group.slices), operations]
                .into_iter()
                .flatten()
                .chain(of_arms)
        });
        for scaled in self
            .dataset
            .iter()
            .map(|dataset| &dataset.count)
            .chain(of_groups)
        {
            for scale in scaled.scales() {
                if !scales.contains(&scale) {
                    scales.push(scale);
                }
            }
        }
        scales
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scale_that_is_not_named_takes_the_default() {
        let scaled: BTreeMap<String, Scaled> =
            toml::from_str("a = 3\nb = { default = 4, full = 5 }").expect("valid");
        assert_eq!(scaled["a"].at("full"), Some(3));
        assert_eq!(scaled["b"].at("full"), Some(5));
        assert_eq!(scaled["b"].at("smoke"), Some(4));
    }

    #[test]
    fn an_unknown_field_is_refused_with_its_place() {
        let error = Suite::parse("name = 'x'\nabuot = 'y'", "x.toml").expect_err("typo");
        assert!(error.problem.contains("abuot"), "{}", error.problem);
    }
}
