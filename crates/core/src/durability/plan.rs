//! The experiment as data: which configurations are cut off how often, what each cut found, and
//! how fast each configuration was.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::content::Batches;
use super::finding::{Finding, StoreFinding};
use crate::case::Durability;
use crate::run::RunHead;
use crate::settings::Settings;

/// One way of writing whose durability is put to the test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Configuration {
    /// Name, unique in a plan.
    pub name: String,
    /// The engine.
    pub engine: String,
    /// Its settings, as far as they differ from its defaults.
    pub settings: Settings,
    /// What a committed write survives, as the engine claims it.
    pub claimed: Durability,
    /// The worst event after which, by the documentation, the store is intact: it opens, and each
    /// blob and each transaction is there as a whole or not at all.
    pub intact_after: Durability,
    /// Whether a batch is one transaction.
    pub transactional: bool,
    /// Whether it is there to lose: it acknowledges before it writes, and an experiment that does
    /// not catch it proves nothing.
    pub is_control: bool,
}

/// What ends the writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CutKind {
    /// The process is killed; the machine goes on.
    ProcessCrash,
    /// The filesystem forgets what it has not handed to the device (`FS_IOC_SHUTDOWN` without
    /// flushing the log). The device keeps all it was given, in order.
    Shutdown,
    /// The device stops at that moment and keeps all it was given.
    Device,
    /// The device stops, and of what it was given since its last flush it keeps a random part.
    Reordering,
}

impl CutKind {
    /// All kinds.
    pub const ALL: [Self; 4] = [
        Self::ProcessCrash,
        Self::Shutdown,
        Self::Device,
        Self::Reordering,
    ];

    /// Its name.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::ProcessCrash => "process-crash",
            Self::Shutdown => "shutdown",
            Self::Device => "device",
            Self::Reordering => "reordering",
        }
    }

    /// The event it stands for, as a tier: what survives it has that tier.
    #[must_use]
    pub fn tier(self) -> Durability {
        match self {
            Self::ProcessCrash => Durability::ProcessCrash,
            _ => Durability::PowerLoss,
        }
    }
}

impl fmt::Display for CutKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.word())
    }
}

/// What is done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DurabilityPlan {
    /// Filesystems, as they were asked for (`ext4:data=journal`), or what the place has.
    pub filesystems: Vec<String>,
    /// Ways of writing.
    pub configurations: Vec<Configuration>,
    /// Cuts of each kind, for every configuration on every filesystem.
    pub cuts: u32,
    /// Shortest and longest time of writing before the power goes, nanoseconds.
    pub hold_ns: (u64, u64),
    /// Longest time of writing before the process is killed, nanoseconds.
    pub crash_hold_ns: u64,
    /// Which blobs are written.
    pub batches: Batches,
    /// Commits between two settlings (checkpoint, compaction).
    pub settle_every: u64,
    /// Whether random pieces of what was written are handed to the device early, as a kernel that is
    /// short of memory does.
    #[serde(default)]
    pub early_writeback: bool,
}

/// How one cut ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    /// The store was looked at.
    Found {
        /// What the cut did.
        finding: Finding,
        /// What was found in detail.
        store: StoreFinding,
    },
    /// The cut could not be made, or its store not be looked at.
    Failed(String),
}

/// One cut.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cut {
    /// The filesystem, by its name in the plan.
    pub filesystem: String,
    /// The configuration, by its name in the plan.
    pub configuration: String,
    /// What ended the writing.
    pub kind: CutKind,
    /// From 0, for each kind.
    pub number: u32,
    /// How long there was writing, nanoseconds.
    pub held_ns: u64,
    /// Mean pause of the writer between two commits, nanoseconds.
    pub pause_ns: u64,
    /// With a loss: the time from the first lost commit's acknowledgement to the cut, nanoseconds.
    pub lost_age_ns: Option<u64>,
    /// Time to mount the filesystem again, nanoseconds.
    pub mount_ns: Option<u64>,
    /// How it ended.
    pub ending: Ending,
}

/// How fast a configuration commits, alone on the machine, on the same filesystem.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Speed {
    /// The filesystem, by its name in the plan.
    pub filesystem: String,
    /// The configuration, by its name in the plan.
    pub configuration: String,
    /// Acknowledged commits.
    pub commits: u64,
    /// In so many nanoseconds.
    pub elapsed_ns: u64,
}

/// One execution of the experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DurabilityRun {
    /// What stands at the head.
    pub head: RunHead,
    /// What was to be done.
    pub plan: DurabilityPlan,
    /// The machine, as pairs of name and value.
    pub environment: Vec<(String, String)>,
    /// Mount options in force, by filesystem.
    pub mount_options: BTreeMap<String, String>,
    /// What the live engines said is in force, by configuration.
    pub read_back: BTreeMap<String, BTreeMap<String, String>>,
    /// All cuts, in the order in which they ended.
    pub cuts: Vec<Cut>,
    /// All speeds, several for each configuration.
    pub speeds: Vec<Speed>,
}
