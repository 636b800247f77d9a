//! Cases: workload x dataset x engine x settings x durability x cache state, fully resolved, with
//! an identity that is the same on every machine and in every version.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::arrivals::Arrivals;
use crate::dataset::{Dataset, mix};
use crate::keys::KeyOrder;
use crate::settings::Settings;
use crate::units::format_bytes;

/// What a committed write survives. Ordered: each tier includes the ones before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Durability {
    /// Nothing is promised: a crash of the process may lose or damage what was stored.
    None,
    /// A crash of the process, not of the machine.
    ProcessCrash,
    /// Loss of power.
    PowerLoss,
}

impl fmt::Display for Durability {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::None => "none",
            Self::ProcessCrash => "process-crash",
            Self::PowerLoss => "power-loss",
        })
    }
}

/// Where the data is when a timed operation begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CacheState {
    /// In memory: no timed operation reads from the device.
    Warm,
    /// No content is in memory: timed operations read it from the device. Where it lies (inodes,
    /// directory entries) is known.
    DataCold,
    /// Neither content nor the filesystem's knowledge of where it lies is in memory.
    FullyCold,
    /// In memory as far as so many bytes go, for the process and everything that the kernel caches for it: a part
    /// of the operations reads from the device, and how many do is what is measured.
    Limited(u64),
}

impl CacheState {
    /// Whether content has to come from the device.
    #[must_use]
    pub fn is_cold(self) -> bool {
        matches!(self, Self::DataCold | Self::FullyCold)
    }

    /// Bytes of memory that there are, if they are limited.
    #[must_use]
    pub fn memory_bytes(self) -> Option<u64> {
        match self {
            Self::Limited(bytes) => Some(bytes),
            _ => None,
        }
    }
}

impl fmt::Display for CacheState {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Warm => "warm",
            Self::DataCold => "data-cold",
            Self::FullyCold => "fully-cold",
            Self::Limited(bytes) => {
                return write!(formatter, "limited to {}", format_bytes(*bytes));
            }
        })
    }
}

/// Who is asked before a file of the store may be opened, as on-access scanners of viruses are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scanner {
    /// Nobody.
    #[default]
    None,
    /// One that says yes at once: what asking alone costs.
    Asks,
    /// One that reads the whole file first, every time.
    Reads,
    /// One that reads the whole file first, and is not asked again until the file has changed.
    Remembers,
}

impl Scanner {
    /// Whether nobody is asked.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Self::None
    }

    /// The scanner of a word as [`Display`](fmt::Display) writes it.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        [Self::None, Self::Asks, Self::Reads, Self::Remembers]
            .into_iter()
            .find(|scanner| scanner.to_string() == word)
    }
}

impl fmt::Display for Scanner {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::None => "none",
            Self::Asks => "asks",
            Self::Reads => "reads",
            Self::Remembers => "remembers",
        })
    }
}

/// What is done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(
    tag = "kind",
    rename_all = "kebab-case",
    rename_all_fields = "kebab-case",
    deny_unknown_fields
)]
pub enum Workload {
    /// One blob after the other is read whole.
    Read {
        /// Order of the keys.
        order: KeyOrder,
    },
    /// Blobs are overwritten with other bytes of the same size; a slice is one batch.
    Overwrite {
        /// Order of the keys.
        order: KeyOrder,
        /// Operations in one batch.
        operations: u64,
    },
    /// `select * from user where id = ?`, by one or more threads at once.
    PointQuery {
        /// Ids are random in 1 to this; those beyond the number of rows are not found.
        range: u64,
        /// Threads, each with a connection of its own.
        threads: u32,
        /// What the threads' connections are to.
        databases: Databases,
        /// Whether they are threads or processes.
        #[serde(default, skip_serializing_if = "Readers::are_threads")]
        readers_are: Readers,
    },
    /// Blobs are read by some threads and overwritten by others, all at once and for a slice's
    /// time.
    Load {
        /// Order of the keys.
        order: KeyOrder,
        /// Threads that read.
        readers: u32,
        /// Threads that overwrite: one, or none; of several each has keys of its own.
        writers: u32,
        /// When operations begin.
        arrivals: Arrivals,
        /// Whether readers are threads or processes.
        #[serde(default, skip_serializing_if = "Readers::are_threads")]
        readers_are: Readers,
    },
    /// Rows are inserted into an empty table `user`; a slice is one import.
    Import {
        /// Rows of one import.
        operations: u64,
        /// The import ends at the first commit after so many milliseconds, done or not; 0: never.
        limit_ms: u64,
    },
    /// `update user set c1=c1+1 where id=?`; a slice is one batch.
    Update {
        /// Order of the ids.
        order: KeyOrder,
        /// Updates in one batch.
        operations: u64,
        /// The batch ends at the first commit after so many milliseconds, done or not; 0: never.
        limit_ms: u64,
    },
    /// Point queries by some threads and point updates by others, all at once and for a slice's
    /// time. An operation is a query or an update.
    Traffic {
        /// Ids queried are random in 1 to this.
        range: u64,
        /// Threads that query.
        readers: u32,
        /// Threads that update.
        writers: u32,
        /// How the updates get into the database.
        writing: Writing,
    },
    /// The life of a job, again and again: a record is inserted, updated
    /// [`JOB_UPDATES`] times and deleted. An operation is one life; a slice is one batch.
    JobQueue {
        /// Lives in one batch, of all threads together.
        operations: u64,
        /// Threads, each with jobs of its own.
        threads: u32,
        /// The batch ends after the first life that ends after so many milliseconds; 0: never.
        limit_ms: u64,
    },
    /// A directory tree is recorded in a database, or only walked. An operation is one entry; a slice is
    /// the whole tree, which has as many entries as the dataset.
    Index {
        /// How.
        way: IndexWay,
        /// Threads that walk.
        walkers: u32,
        /// Path of the directory that is walked; without one, [`crate::generated_tree`].
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tree: Option<String>,
        /// The recording ends soon after so many milliseconds, done or not; 0: never.
        limit_ms: u64,
    },
    /// The whole life of a store: it is filled, aged, looked at, copied, cleaned up and emptied; an operation is
    /// one replacement of an object ([`crate::storage_age`]), a slice is one life. What happens once in it is
    /// in the trial's resources: see [`crate::lifecycle`].
    Lifecycle {
        /// Ages at which the store is looked at, ascending; the last is the oldest it gets.
        ages: Vec<u32>,
        /// Objects of a hundred that are removed before the store is cleaned up.
        removed_percent: u32,
    },
}

/// How a directory tree is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IndexWay {
    /// As published: one thread, and for each entry a statement and a commit of its own.
    Naive,
    /// Several threads walk, and one writes in batches, into an empty database.
    Best,
    /// As the best way, over a database in which the same tree is recorded already.
    Again,
    /// Nothing is recorded: the tree is walked, and every entry looked at.
    Walk,
}

/// How often a job's record is updated in its life, as in the published study of job queues.
pub const JOB_UPDATES: u64 = 11;

/// What several readers are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Readers {
    /// Threads of one process.
    #[default]
    Threads,
    /// Processes of one thread each.
    Processes,
}

impl Readers {
    fn are_threads(&self) -> bool {
        *self == Self::Threads
    }
}

/// What several threads' connections are to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Databases {
    /// All to the same database.
    #[default]
    One,
    /// Each thread has a copy of its own: what several threads cost each other without sharing.
    Own,
}

/// How several threads' updates get into the database.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Writing {
    /// Every thread has a connection and writes by itself.
    #[default]
    Direct,
    /// The threads hand their transactions to one more thread, which writes them one by one, and
    /// wait for it.
    Queue,
    /// As `queue`, but all transactions that wait become one.
    QueueMerged,
}

/// What a store holds, by what is done with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Blobs with the keys 1 to the dataset's count.
    Blobs,
    /// The tables `user` and `orders`, see [`crate::rows`].
    Rows,
    /// The same tables, empty.
    NoRows,
    /// No blobs at rest.
    NoBlobs,
    /// Nothing, beside a tree whose entries go in.
    Tree,
}

impl Workload {
    /// Whether it changes the store.
    #[must_use]
    pub fn writes(&self) -> bool {
        match self {
            Self::Read { .. } | Self::PointQuery { .. } => false,
            Self::Traffic { writers, .. } | Self::Load { writers, .. } => *writers > 0,
            Self::Index { way, .. } => matches!(way, IndexWay::Naive | IndexWay::Best),
            Self::Overwrite { .. }
            | Self::Import { .. }
            | Self::Update { .. }
            | Self::JobQueue { .. }
            | Self::Lifecycle { .. } => true,
        }
    }

    /// Order in which keys are visited.
    #[must_use]
    pub fn order(&self) -> KeyOrder {
        match self {
            Self::Read { order }
            | Self::Overwrite { order, .. }
            | Self::Update { order, .. }
            | Self::Load { order, .. } => *order,
            Self::PointQuery { .. } | Self::Traffic { .. } => KeyOrder::Random,
            Self::Import { .. }
            | Self::JobQueue { .. }
            | Self::Index { .. }
            | Self::Lifecycle { .. } => KeyOrder::Ascending,
        }
    }

    /// What the store holds at the beginning.
    #[must_use]
    pub fn shape(&self) -> Shape {
        match self {
            Self::Read { .. } | Self::Overwrite { .. } | Self::Load { .. } => Shape::Blobs,
            Self::PointQuery { .. } | Self::Update { .. } | Self::Traffic { .. } => Shape::Rows,
            Self::Import { .. } => Shape::NoRows,
            Self::JobQueue { .. } | Self::Lifecycle { .. } => Shape::NoBlobs,
            Self::Index { .. } => Shape::Tree,
        }
    }

    /// Whether it reads or overwrites blobs one by one; all others may have several threads.
    #[must_use]
    pub fn is_about_blobs(&self) -> bool {
        matches!(self, Self::Read { .. } | Self::Overwrite { .. })
    }

    /// What each of several reading processes does; the workload itself if they are threads.
    #[must_use]
    pub fn of_one_process(&self) -> Self {
        let mut one = self.clone();
        match &mut one {
            Self::PointQuery {
                threads,
                readers_are,
                ..
            }
            | Self::Load {
                readers: threads,
                readers_are,
                ..
            } if *readers_are == Readers::Processes => {
                *threads = 1;
                *readers_are = Readers::Threads;
            }
            _ => {}
        }
        one
    }

    /// Whether its readers are processes.
    #[must_use]
    pub fn has_processes(&self) -> bool {
        matches!(
            self,
            Self::PointQuery {
                readers_are: Readers::Processes,
                ..
            } | Self::Load {
                readers_are: Readers::Processes,
                ..
            }
        )
    }

    /// Whether it is about rows: for engines that speak SQL.
    #[must_use]
    pub fn is_about_rows(&self) -> bool {
        matches!(self.shape(), Shape::Rows | Shape::NoRows)
    }

    /// Threads at work at the same time.
    #[must_use]
    pub fn threads(&self) -> u32 {
        match self {
            Self::Read { .. }
            | Self::Overwrite { .. }
            | Self::Import { .. }
            | Self::Update { .. }
            | Self::Lifecycle { .. } => 1,
            Self::PointQuery { threads, .. } | Self::JobQueue { threads, .. } => *threads,
            Self::Index {
                way: IndexWay::Naive,
                ..
            } => 1,
            Self::Index { way, walkers, .. } => walkers + u32::from(*way != IndexWay::Walk),
            Self::Load {
                readers, writers, ..
            } => readers + writers,
            Self::Traffic {
                readers,
                writers,
                writing,
                ..
            } => readers + writers + u32::from(*writing != Writing::Direct),
        }
    }

    /// Number of the keys that are visited: 1 to this, for a dataset of `count`.
    #[must_use]
    pub fn key_range(&self, count: u64) -> u64 {
        match self {
            Self::PointQuery { range, .. } | Self::Traffic { range, .. } => *range,
            _ => count,
        }
    }

    /// One word: what is done to a blob.
    #[must_use]
    pub fn verb(&self) -> &'static str {
        match self {
            Self::Read { .. } => "read",
            Self::Overwrite { .. } => "overwrite",
            Self::PointQuery { .. } => "point query",
            Self::Import { .. } => "import",
            Self::Update { .. } => "update",
            Self::Traffic { .. } => "queries and updates",
            Self::Load { writers: 0, .. } => "read",
            Self::Load { .. } => "read and overwrite",
            Self::JobQueue { .. } => "job",
            Self::Index { .. } => "index",
            Self::Lifecycle { .. } => "replacement",
        }
    }
}

/// One thing to measure, with nothing left open.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Case {
    /// What is done.
    pub workload: Workload,
    /// To which data.
    pub dataset: Dataset,
    /// By which engine.
    pub engine: String,
    /// Opened with what; resolved.
    pub settings: Settings,
    /// Those of the settings that are not the engine's defaults. They identify the case, so that
    /// a setting that a later version adds changes the identity of no earlier case. Hence the rule
    /// that a default, once published, never changes.
    pub chosen: Settings,
    /// What a committed write must survive at the least.
    pub durability: Durability,
    /// Where the data is at the start.
    pub cache: CacheState,
    /// Who is asked before a file is opened.
    #[serde(default, skip_serializing_if = "Scanner::is_none")]
    pub scanner: Scanner,
    /// How often every blob of the store has been replaced before: see [`crate::storage_age`].
    #[serde(default, skip_serializing_if = "is_new")]
    pub age: u32,
}

fn is_new(age: &u32) -> bool {
    *age == 0
}

impl Case {
    /// Identity of the case: twelve hexadecimal digits that follow from all of its parts but the
    /// seed. Equal on all machines and in all versions, so that runs can be matched.
    #[must_use]
    pub fn id(&self) -> String {
        let dataset = &self.dataset;
        let mut canonical = format!(
            "{}|{}|{}|{}|{}|{}|{}|{}",
            as_text(&self.workload),
            dataset.count,
            as_text(&dataset.size),
            dataset.compressibility,
            self.engine,
            self.chosen,
            self.durability,
            self.cache
        );
        // It came later: cases without one are who they were.
        if !self.scanner.is_none() {
            canonical.push_str(&format!("|scanner {}", self.scanner));
        }
        if let Some(bytes) = self.cache.memory_bytes() {
            // In words it is rounded.
            canonical.push_str(&format!("|memory {bytes}"));
        }
        if self.age > 0 {
            canonical.push_str(&format!("|age {}", self.age));
        }
        format!("{:012x}", fingerprint(&canonical) >> 16)
    }
}

/// Data structures as JSON: unlike `Debug`, spelled by our own serde attributes.
fn as_text(part: &impl Serialize) -> String {
    serde_json::to_string(part).unwrap_or_default()
}

/// A 64-bit fingerprint of a text: FNV-1a (Fowler, Noll, Vo) with a final mix. Stable for ever;
/// not for adversaries.
#[must_use]
pub fn fingerprint(text: &str) -> u64 {
    fingerprint_of(text.as_bytes())
}

/// As [`fingerprint`], of any bytes.
#[must_use]
pub fn fingerprint_of(bytes: &[u8]) -> u64 {
    let folded = bytes.iter().fold(0xCBF2_9CE4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01B3)
    });
    mix(folded)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::SizeDistribution;

    fn case() -> Case {
        Case {
            workload: Workload::Read {
                order: KeyOrder::Random,
            },
            dataset: Dataset {
                count: 10,
                size: SizeDistribution::Uniform(8000, 12000),
                compressibility: 0.0,
                seed: 1,
            },
            engine: "files".to_owned(),
            settings: Settings::from_pairs([("api", "stdio"), ("layout", "flat")]),
            chosen: Settings::from_pairs([("api", "stdio")]),
            durability: Durability::ProcessCrash,
            cache: CacheState::Warm,
            scanner: Scanner::None,
            age: 0,
        }
    }

    #[test]
    fn identity_ignores_the_seed_and_nothing_else() {
        let first = case();
        let mut other = case();
        other.dataset.seed = 2;
        assert_eq!(first.id(), other.id());
        other.chosen.set("api", "open");
        assert_ne!(first.id(), other.id());
        // A setting that has its default may come or go.
        let mut other = case();
        other.settings.set("new", "default");
        assert_eq!(first.id(), other.id());
        let mut other = case();
        other.dataset.count = 11;
        assert_ne!(first.id(), other.id());
        let mut other = case();
        other.scanner = Scanner::Reads;
        assert_ne!(first.id(), other.id());
        let mut other = case();
        other.age = 4;
        assert_ne!(first.id(), other.id());
    }

    #[test]
    fn identity_never_changes_between_versions() {
        // Run files of earlier versions are matched by it: change the code, not this value.
        assert_eq!(case().id(), "8399252f0142");
    }

    #[test]
    fn workloads_say_what_they_need() {
        let query = Workload::PointQuery {
            range: 1000,
            threads: 4,
            databases: Databases::One,
            readers_are: Readers::Processes,
        };
        assert!(query.has_processes() && !query.of_one_process().has_processes());
        assert_eq!(query.of_one_process().threads(), 1);
        assert!(!query.writes() && query.is_about_rows());
        assert_eq!((query.threads(), query.key_range(100)), (4, 1000));
        let mut traffic = Workload::Traffic {
            range: 100,
            readers: 2,
            writers: 0,
            writing: Writing::Direct,
        };
        assert!(!traffic.writes());
        if let Workload::Traffic {
            writers, writing, ..
        } = &mut traffic
        {
            (*writers, *writing) = (3, Writing::Queue);
        }
        assert!(traffic.writes());
        assert_eq!(traffic.threads(), 6, "the queue's own thread counts");
        let jobs = Workload::JobQueue {
            operations: 10,
            threads: 1,
            limit_ms: 0,
        };
        assert!(jobs.writes() && !jobs.is_about_rows());
    }
}
