//! Advice: where somebody's own files should live. What is wished for ([`wish`]), what is tried
//! ([`candidate`], [`families`]), in which stages ([`stage`]), and what follows from what was measured
//! ([`score`], [`recommendation`]). Asked for more, it says where the answer turns by size ([`sweep`])
//! and what each setting is worth ([`ablation`]).
//!
//! All is measured in stages, as successive halving does (K. Jamieson and A. Talwalkar, "Non-stochastic
//! best arm identification and hyperparameter optimization", AISTATS 2016): all candidates for a few
//! rounds, then the better half. Whoever is best of many by a noisy figure looks better than it is, so
//! the last two are measured anew, on other files and for more rounds, and what is recommended rests on
//! these figures alone.
//!
//! Reading a directory, measuring and printing are for others.

pub mod ablation;
pub mod candidate;
pub mod circumstances;
pub mod families;
pub mod fillings;
pub mod lifecycle;
pub mod recommendation;
pub mod score;
pub mod stage;
pub mod sweep;
pub mod wish;

use serde::{Deserialize, Serialize};

use crate::tree_scan::{Duplicates, TreeScan};

pub use ablation::{Ablation, Change, SettingWorth};
pub use candidate::{Candidate, Store};
pub use circumstances::Circumstances;
pub use families::{Breadth, candidates};
pub use fillings::Fillings;
pub use recommendation::{Answer, Recommendation, recommend};
pub use score::{Composed, Part, Standing};
pub use stage::{Purpose, Stage, arm_name};
pub use sweep::{Sweep, SweepResult};
pub use wish::{CacheWish, Skew, Wish};

/// What an advice run keeps beside its plan: what was asked, of which files, and how far it came.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AdviceRecord {
    /// What was asked.
    pub wish: Wish,
    /// The files that it is about.
    pub tree: TreeFacts,
    /// Everything that was tried, the files as they are today first.
    pub candidates: Vec<Candidate>,
    /// Names of the candidates that were confirmed, the best of the selection first; empty as long as
    /// none is.
    pub finalists: Vec<String>,
    /// Files and bytes of the sample that the selection was made with.
    pub selected_with: SampleFacts,
    /// The same of the confirmation.
    pub confirmed_with: SampleFacts,
    /// Classes of sizes that were measured by themselves.
    #[serde(default)]
    pub classes: Vec<SizeClass>,
    /// When the stores of what decides were filled anew, if they were.
    #[serde(default, skip_serializing_if = "Fillings::is_empty")]
    pub fillings: Fillings,
    /// What was swept over sizes, if anything was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sweep: Option<Sweep>,
    /// Changes of single settings that were measured, and what they were changes of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ablation: Option<Ablation>,
}

/// Part of the files, by size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SizeClass {
    /// Bytes of the smallest file that belongs here.
    pub from: u64,
    /// Bytes of the smallest file that does not any more; `None` for the largest class.
    pub below: Option<u64>,
    /// Files of the class that were measured.
    pub files: u64,
}

/// A sample in two numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SampleFacts {
    /// Files.
    pub files: u64,
    /// Bytes of their content.
    pub bytes: u64,
}

/// What is said of the files that the advice is about; what a scan has found, in figures that a report
/// can be made of later.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TreeFacts {
    /// The directory.
    pub path: String,
    /// Regular files.
    pub files: u64,
    /// Folders, the top included.
    pub folders: u64,
    /// Bytes of content of all files.
    pub bytes: u64,
    /// Bytes of the file in the middle.
    pub median_bytes: u64,
    /// Bytes of the largest file.
    pub largest_bytes: u64,
    /// Folders on the way to the deepest one.
    pub deepest: u32,
    /// Entries of the largest folder.
    pub most_entries: u64,
    /// Bytes after compression, as a share of those before; `None` if it was not tried.
    pub compressed_share: Option<f64>,
    /// Share of the files that are there twice; `None` if it was not looked for.
    pub duplicate_share: Option<f64>,
    /// Sizes between powers of two: smallest and largest of the class, files, bytes.
    pub sizes: Vec<SizeCount>,
    /// What was odd: how many, and what.
    pub oddities: Vec<(u64, String)>,
}

impl TreeFacts {
    /// The figures of a scan that are kept.
    #[must_use]
    pub fn of(path: String, scan: &TreeScan) -> Self {
        let sizes = scan.file_bytes.octaves().into_iter();
        let oddities = scan.oddities.kinds();
        Self {
            path,
            files: scan.files(),
            folders: scan.folders(),
            bytes: scan.total_bytes(),
            median_bytes: scan.file_bytes.quantile(0.5).unwrap_or(0),
            largest_bytes: scan.file_bytes.maximum().unwrap_or(0),
            deepest: scan.deepest_folder,
            most_entries: scan.folder_entries.maximum().unwrap_or(0),
            compressed_share: scan.compressibility.as_ref().map(|found| found.ratio),
            duplicate_share: scan
                .duplicates
                .as_ref()
                .and_then(Duplicates::share_of_files),
            sizes: sizes
                .map(|class| SizeCount {
                    low: class.low,
                    high: class.high,
                    files: class.count,
                    bytes: class.total,
                })
                .collect(),
            oddities: oddities
                .map(|(kind, found)| (found.count, kind.of(found.count).to_owned()))
                .collect(),
        }
    }
}

/// Files of one class of a histogram.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SizeCount {
    /// Bytes of the smallest file that belongs here.
    pub low: u64,
    /// Bytes of the largest.
    pub high: u64,
    /// Files.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
}
