//! The command line of `advise`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use sqlitmus_core::advice::{CacheWish, Circumstances, Skew, Wish};
use sqlitmus_core::case::Durability;

use super::{budget, share};

/// What `advise --help` ends with.
pub const ADVISE_EXAMPLES: &str = "\
Examples:
  sqlitmus advise ~/.cache/thumbnails              two minutes: database or files, and with which settings
  sqlitmus advise photos --reads 99 --writes 1     they are read most of the time
  sqlitmus advise mail --durability power-loss     what is written must survive loss of power
  sqlitmus advise tiles --cache both --skew zipf
  sqlitmus advise tiles --readers 4 --memory 256MB  several threads, on a machine with little memory (as root)
  sqlitmus advise /usr/share/doc --place /var/tmp  DIR's parent cannot be written to
  sqlitmus advise attachments --snippet rust       what to paste, for Rust
  sqlitmus advise photos --thorough                where it turns by size, what each setting is worth: 15 minutes
  sqlitmus report latest --place DIR/.. --format html --output advice.html

DIR is scanned, and a sample that keeps its distribution of sizes is read from your files, where they are, and
from stores made of copies in .sqlitmus/ of the place; these are removed afterwards. All candidates are measured
for a few rounds, the better half again, and the best two on other files: what is recommended rests on these last
figures alone. Your files are opened for reading and for nothing else.

Reads and writes are measured apart and weighed by --reads and --writes; what readers and writers cost each other
is not measured. --readers and --writers are threads of one process that do the same at once. --memory is a hard limit
by a control group of our own, for files and stores alike; what is cached for a worker counts. It takes root or a
delegated group. Every write is a transaction by itself, as every file is written by itself.

Exit codes: 0 there is an answer, also \"keep the files\"; 3 not sure; others as for all verbs.";

/// Options of `advise`.
#[derive(Debug, Args)]
pub struct AdviseArguments {
    /// Directory with your files
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
    /// Directory for the stores that are measured, on the disk of DIR; DIR's parent unless given
    #[arg(long, value_name = "DIR")]
    pub place: Option<PathBuf>,
    /// Reads of a hundred (or any number) operations; with --writes
    #[arg(long, value_name = "N", default_value_t = 90, value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    pub reads: u32,
    /// Writes beside so many reads
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    pub writes: u32,
    /// Which files are asked for: all alike, or few of them most of the time
    #[arg(long, value_enum, default_value_t = SkewWord::Uniform)]
    pub skew: SkewWord,
    /// Where what is read lies: in memory, on the device, or both (the first decides)
    #[arg(long, value_enum, default_value_t = CacheWord::Warm)]
    pub cache: CacheWord,
    /// What a write must survive
    #[arg(long, value_enum, default_value_t = DurabilityWord::ProcessCrash)]
    pub durability: DurabilityWord,
    /// Memory of whoever reads or writes, page cache and all: 256MB
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    pub memory: Option<u64>,
    /// Threads that read at the same time
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub readers: u32,
    /// Threads that write at the same time
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub writers: u32,
    /// Smallest gain that is worth moving for
    #[arg(long, value_name = "SHARE", value_parser = share, default_value = "10%")]
    pub worth: f64,
    /// Search widely, find the size where the answer turns, what each setting is worth, how stores grow old
    #[arg(long)]
    pub thorough: bool,
    /// Time for everything; 110s unless given, and some 15 minutes with --thorough
    #[arg(long, value_name = "TIME", value_parser = budget)]
    pub budget: Option<Duration>,
    /// Language of what to paste, or all of them, or none
    #[arg(long, value_enum, default_value_t = Snippet::Python)]
    pub snippet: Snippet,
    /// Which files are sampled, and everything else random, follows from it
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Write the run file here instead of .sqlitmus/runs/ of the place
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
    /// No progress: only the result, and what went wrong
    #[arg(long, short)]
    pub quiet: bool,
    /// Most bytes of the sample of the confirmation; the selection's is half as large
    #[arg(long, value_name = "SIZE", value_parser = bytes, default_value = "96MB", hide_short_help = true)]
    pub sample: u64,
    /// Rounds of each stage at the most, for testing
    #[arg(long, value_name = "N", hide = true, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub rounds: Option<u32>,
}

fn bytes(text: &str) -> Result<u64, String> {
    sqlitmus_core::units::parse_bytes(text).map_err(|error| error.to_string())
}

/// Which files are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SkewWord {
    /// All alike
    Uniform,
    /// The n-th most popular in proportion to 1/n
    Zipf,
}

/// Where what is read lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CacheWord {
    /// In memory
    Warm,
    /// On the device
    Cold,
    /// In memory decides; on the device is measured too
    Both,
}

/// What a write must survive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DurabilityWord {
    /// Nothing
    None,
    /// A crash of the process
    ProcessCrash,
    /// Loss of power
    PowerLoss,
}

/// Language of what to paste.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Snippet {
    /// sqlite3 of the standard library
    Python,
    /// rusqlite
    Rust,
    /// mattn/go-sqlite3
    Go,
    /// better-sqlite3
    Node,
    /// The C library
    C,
    /// All of them
    All,
    /// Nothing
    None,
}

impl AdviseArguments {
    /// What is wished for.
    #[must_use]
    pub fn wish(&self) -> Wish {
        Wish {
            reads: self.reads,
            writes: self.writes,
            skew: match self.skew {
                SkewWord::Uniform => Skew::Uniform,
                SkewWord::Zipf => Skew::Zipf,
            },
            cache: match self.cache {
                CacheWord::Warm => CacheWish::Warm,
                CacheWord::Cold => CacheWish::Cold,
                CacheWord::Both => CacheWish::Both,
            },
            durability: match self.durability {
                DurabilityWord::None => Durability::None,
                DurabilityWord::ProcessCrash => Durability::ProcessCrash,
                DurabilityWord::PowerLoss => Durability::PowerLoss,
            },
            worth: self.worth,
            circumstances: Circumstances {
                memory_bytes: self.memory,
                readers: self.readers,
                writers: self.writers,
            },
        }
    }
}
