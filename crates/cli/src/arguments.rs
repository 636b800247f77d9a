//! The command line: verbs and their options, as clap describes them. What a verb does is in
//! [`crate::commands`].

pub mod advise;
pub mod archive;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};

use crate::failure::Failure;
use crate::orchestrator::PlantedSlowdown;

/// The litmus test for embedded storage: SQLite, files or another engine, measured on your machine.
#[derive(Debug, Parser)]
#[command(
    name = "sqlitmus",
    version,
    disable_help_subcommand = true,
    arg_required_else_help = true,
    after_help = "Start with `sqlitmus measure`. `sqlitmus VERB --help` explains a verb.",
    after_long_help = "\
Examples:
  sqlitmus measure                     where should small blobs live on this machine?
  sqlitmus measure --place /mnt/ssd    the same on another disk
  sqlitmus report latest --format html --output report.html
  sqlitmus kvtest run test.db --random --count 10000

Exit codes:
  0    done
  1    the answer is no: an integrity check found damage, a case has become slower, doctor found a problem,
       a tier of durability is not kept, an archive differs
  2    bad input, or refused
  3    not sure: what was measured does not decide it
  4    finished, but some arms failed, or their stores do not hold what was written;
       packed, but something was left out
  5    the environment failed: disk full, I/O error
  130  stopped by Ctrl-C or SIGTERM"
)]
pub struct CommandLine {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Measure a suite on this machine and print the answer
    #[command(after_long_help = MEASURE_EXAMPLES)]
    Measure(Box<MeasureArguments>),
    /// Database or files, and with which settings: the answer for a directory of yours
    #[command(after_long_help = advise::ADVISE_EXAMPLES)]
    Advise(advise::AdviseArguments),
    /// Show runs again, in any format; several side by side
    #[command(after_long_help = REPORT_EXAMPLES)]
    Report(ReportArguments),
    /// Compare two runs: has anything become slower from A to B?
    #[command(after_long_help = COMPARE_EXAMPLES)]
    Compare(CompareArguments),
    /// Record a directory tree in an SQLite database, or bring its record up to date
    #[command(after_long_help = INDEX_EXAMPLES)]
    Index(IndexArguments),
    /// Pull the plug and count what is lost: what each way of writing really keeps
    #[command(after_long_help = DURABILITY_EXAMPLES)]
    Durability(DurabilityArguments),
    /// SQLite's kvtest: init, stat, export, run
    #[command(disable_help_flag = true)]
    Kvtest {
        /// kvtest's own words; `sqlitmus kvtest --help` explains them
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<OsString>,
    },
    /// Pack directories into an SQLite archive
    #[command(after_long_help = archive::PACK_EXAMPLES)]
    Pack(archive::PackArguments),
    /// Unpack an SQLite archive into a directory
    #[command(after_long_help = archive::UNPACK_EXAMPLES)]
    Unpack(archive::UnpackArguments),
    /// List what is in an archive
    Ls(archive::LsArguments),
    /// Print a file that is in an archive
    Cat(archive::CatArguments),
    /// Check an archive, also against a directory
    #[command(after_long_help = archive::VERIFY_EXAMPLES)]
    Verify(archive::VerifyArguments),
    /// Answer HTTP requests for what is in an archive
    #[command(after_long_help = archive::SERVE_EXAMPLES)]
    Serve(archive::ServeArguments),
    /// List suites, engines with their settings, and runs
    List(ListArguments),
    /// What about this machine makes numbers untrustworthy, and what to do
    #[command(after_long_help = DOCTOR_EXAMPLES)]
    Doctor(DoctorArguments),
    /// Remove the stores that sqlitmus made in a place
    #[command(after_long_help = CLEAN_EXAMPLES)]
    Clean(CleanArguments),
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page, in roff
    Man,
}

const MEASURE_EXAMPLES: &str = "\
Examples:
  sqlitmus measure                       the canonical suite, here
  sqlitmus measure --place /mnt/ssd      on another disk
  sqlitmus measure disks --place . --place /mnt/ssd                two disks side by side
  sudo sqlitmus measure disks --loopback ext4,xfs,btrfs,tmpfs      filesystems made for it
  sqlitmus measure --full                at the scale of the article: 100,000 blobs
  sqlitmus measure --full --group read   the group read alone, at that scale
  sqlitmus measure my-suite.toml         a suite of your own
  sqlitmus measure --precision 1%        until every interval is within 1% on either side
  sqlitmus measure --budget 5m           as sure as five minutes allow
  sqlitmus measure oltp --rows 1M --threads 1,2 --set hit_percent=100
  sqlitmus measure builds --sqlite-library mine=/opt/lib/libsqlite3.so
  sqlitmus measure --worker old=../old/sqlitmus   another build of sqlitmus beside this one, in the same run
  sqlitmus measure file-index --set tree=/usr                      a directory of yours
  sqlitmus measure --json > result.json
  sqlitmus measure --resume latest       go on where Ctrl-C or a kill has stopped the last run

Stores are kept in .sqlitmus/ of the place: the next run uses its folders of files
again, and writes databases anew. `sqlitmus clean` removes them. Data goes to standard output, progress to standard error.";

const DURABILITY_EXAMPLES: &str = "\
Examples:
  sudo sqlitmus durability                        ext4 and xfs, 20 cuts each: about half an hour
  sudo sqlitmus durability --quick                3 cuts each: three minutes
  sudo sqlitmus durability --loopback ext4:data=writeback,btrfs
  sudo sqlitmus durability --only 'sqlite wal' --cuts 100
  sudo sqlitmus durability --early-writeback --hold 1-5s
  sqlitmus durability --place .                   without root: processes are killed, power stays on

A store on a filesystem of its own (an image file in .sqlitmus/) is written by a process that
acknowledges every commit; at a random moment the power goes. Then the filesystem is mounted again,
the store recovered by its engine, and every blob compared with what was acknowledged.

How the power goes:
  shutdown     the filesystem forgets what it has not handed to its device (ext4, xfs)
  device       the device stops and keeps what it was given (every filesystem; needs FUSE)
  reordering   the device stops, and of what it was given since the last flush it keeps a random part

Exit code 1: something is less durable than its engine claims. Exit code 5: the configuration that
lies on purpose was not caught, so that the table proves nothing.";

const REPORT_EXAMPLES: &str = "\
Examples:
  sqlitmus report latest
  sqlitmus report latest --format html --output report.html
  sqlitmus report previous --format json
  sqlitmus report laptop.run server.run          two machines side by side
  sqlitmus report runs/ --format html -o all.html   every run file in a folder
  sqlitmus report latest --resources             what one operation of every arm uses
  sqlitmus report latest --format csv | head     every sample, one a row

The JSON is described by crates/report/schema/report-1.schema.json. A run file is
an SQLite database: crates/runfile/SCHEMA.md says what is in it.";

const COMPARE_EXAMPLES: &str = "\
Examples:
  sqlitmus compare previous latest
  sqlitmus compare before.run after.run --threshold 5%
  sqlitmus compare before.run after.run --expect sqlite      two versions of SQLite
  sqlitmus compare main.run change.run --format github > comment.md

Cases are matched by what they are, not by their names. What is compared is each
case's time as a multiple of the baseline's in the same run, since a machine that
is slower on another day moves both; --of time compares the times themselves.
Runs from unlike machines, disks, kernels or SQLites are refused, and what differs
is listed; --expect NAME says that a difference is what is to be compared.

Exit codes:
  0  nothing is slower in B by more than the threshold
  1  something is
  2  refused, or bad input
  3  not sure: something is not decided, failed, or is missing in B";

const DOCTOR_EXAMPLES: &str = "\
Examples:
  sqlitmus doctor                  this machine, and the disk of this directory
  sqlitmus doctor /mnt/ssd         another disk
  sqlitmus doctor --quick          without what takes time: two seconds instead of about fifteen
  sqlitmus doctor --json | jq '.findings[] | select(.level == \"problem\")'

Every check has a finding, why it matters, and what to do. Levels are ok, note (worth knowing), warning (numbers become
noisier, or stand for something else), problem (numbers measured now are not to be trusted). It works in .sqlitmus/
of DIR and removes there what it has written.

Exit codes: 0 no problem, 1 at least one; others as for all verbs.";

const INDEX_EXAMPLES: &str = "\
Examples:
  sqlitmus index /usr --into usr.db            record it; again: write only what has changed
  sqlitmus index /usr --into slow.db --naive   as published: one thread, one INSERT and commit for each entry
  sqlitmus index /usr --walk-only              what walking alone costs
  sqlite3 usr.db \"SELECT folder, filename FROM file_index WHERE filename LIKE '%.ttf'\"

Every second a line says how far it is: Speed (rows in a second), Number (rows so far), sqlTime (seconds in SQLite)
and walkTime (seconds walking, of all threads together). Symbolic links are recorded and not followed; what cannot
be read, or vanishes meanwhile, is counted and named. Nothing in DIR is changed.";

const CLEAN_EXAMPLES: &str = "\
Examples:
  sqlitmus clean                    stores in ./.sqlitmus; runs are kept
  sqlitmus clean --runs             the runs too
  sqlitmus clean --place /mnt/ssd

Only what sqlitmus made is removed.";

/// Options of `measure`.
#[derive(Debug, Args)]
pub struct MeasureArguments {
    /// Name of a suite (`sqlitmus list`), or path of a suite's file
    #[arg(default_value = crate::suites::CANONICAL)]
    pub suite: String,
    /// Directory whose disk is measured; may be repeated [default: .]
    ///
    /// Stores go into .sqlitmus/ there. Each of several has a run of its own, and the report sets them
    /// side by side.
    #[arg(long, value_name = "DIR")]
    pub place: Vec<PathBuf>,
    /// Filesystems to make, measure and remove again: ext4,xfs,btrfs,tmpfs; root only
    ///
    /// In image files, with options after a colon, joined by `+`: btrfs:nocow, ext4:data=journal,
    /// btrfs:compress-force=zlib:3. What takes several options: ext4:data=writeback+noauto_da_alloc.
    #[arg(long, value_name = "LIST")]
    pub loopback: Option<String>,
    /// Directory for the images of --loopback, in .sqlitmus/ there [default: .]
    #[arg(
        long,
        value_name = "DIR",
        requires = "loopback",
        hide_short_help = true
    )]
    pub images: Option<PathBuf>,
    /// Size of each image, if not what the suite needs: 2GiB
    #[arg(long, value_name = "BYTES", requires = "loopback", value_parser = image_bytes, hide_short_help = true)]
    pub image_size: Option<u64>,
    /// The published scale instead of the quick one: short for --scale full
    #[arg(long, conflicts_with = "scale")]
    pub full: bool,
    /// Scale of the suite
    #[arg(long, value_name = "NAME", default_value = "default")]
    pub scale: String,
    /// Only this group of the suite (`sqlitmus list`); may be repeated
    #[arg(long, value_name = "NAME")]
    pub group: Vec<String>,
    /// Rows in every table, in a suite about rows: short for --set rows=N
    #[arg(long, value_name = "N")]
    pub rows: Option<String>,
    /// Numbers of threads, in a suite about rows: short for --set threads=LIST
    #[arg(long, value_name = "LIST")]
    pub threads: Option<String>,
    /// Change a parameter of a suite about rows or trees: rows, text_bytes, hit_percent, threads,
    /// limit_ms, tree; may be repeated
    #[arg(long, value_name = "NAME=VALUE", hide_short_help = true)]
    pub set: Vec<String>,
    /// Rounds of every group: more rounds, narrower intervals. With --budget or --precision: at most
    /// so many
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub rounds: Option<u32>,
    /// Go on until every interval is at most this much on either side, such as 2%
    #[arg(long, value_name = "SHARE", value_parser = precision)]
    pub precision: Option<f64>,
    /// Time for everything, filling stores included, such as 60s or 5m: as many rounds as fit
    #[arg(long, value_name = "TIME", value_parser = budget)]
    pub budget: Option<Duration>,
    /// Smallest difference that is worth having: what verdicts are given against
    #[arg(long, value_name = "SHARE", value_parser = share, default_value = "3%")]
    pub threshold: f64,
    /// Everything random follows from it
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Let the kernel drop what it caches of the whole machine, for fully-cold arms; root only
    #[arg(long)]
    pub drop_caches: bool,
    /// Run of `sqlitmus durability` that says what commits really survive; by default the newest in
    /// the place that was made on such a filesystem
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub durability_run: Option<PathBuf>,
    /// Write the run file here instead of .sqlitmus/runs/
    ///
    /// Of several places it is a new folder, for a run file of each.
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Go on with a run that was interrupted or killed: its run file, or `latest`
    ///
    /// Of a run in several places, with all that is not complete.
    #[arg(long, value_name = "RUN", conflicts_with_all = [
        "suite", "full", "scale", "group", "rounds", "seed", "output", "durability_run", "loopback"
    ])]
    pub resume: Option<String>,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
    /// No progress: only the result, and what went wrong
    #[arg(long, short)]
    pub quiet: bool,
    /// An SQLite library for arms with `library = "@NAME"`, or for a copy of every group's SQLite arm;
    /// may be repeated
    #[arg(long, value_name = "[NAME=]PATH", hide_short_help = true)]
    pub sqlite_library: Vec<String>,
    /// Another sqlitmus that measures the arm NAME, or a copy of every group's baseline; may be
    /// repeated
    #[arg(long, value_name = "NAME=PATH", hide_short_help = true)]
    pub worker: Vec<String>,
    /// Program that runs the trials, for testing the harness
    #[arg(long, value_name = "PROGRAM", hide = true)]
    pub worker_program: Option<PathBuf>,
    /// Make one arm slower by a share of its time, for testing the harness: ARM=3%
    #[arg(long, value_name = "ARM=SHARE", value_parser = planted, hide = true)]
    pub plant_slowdown: Option<PlantedSlowdown>,
    /// Longest wait for one answer of a worker, in seconds
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 300,
        hide_short_help = true
    )]
    pub worker_timeout: u64,
}

/// Options of `durability`.
#[derive(Debug, Args)]
pub struct DurabilityArguments {
    /// Filesystems to make, separated by commas, with options: ext4:data=writeback+noauto_da_alloc
    #[arg(
        long,
        value_name = "LIST",
        default_value = "ext4,xfs",
        conflicts_with = "place"
    )]
    pub loopback: String,
    /// Kill processes that write in this directory, and leave the power on: needs no root
    #[arg(long, value_name = "DIR")]
    pub place: Option<PathBuf>,
    /// Directory for images and the run file; they go into .sqlitmus/ there
    #[arg(
        long,
        value_name = "DIR",
        default_value = ".",
        conflicts_with = "place"
    )]
    pub images: PathBuf,
    /// Cuts of each kind for every configuration on every filesystem
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub cuts: Option<u32>,
    /// Shortest and longest time of writing before the power goes
    #[arg(long, value_name = "RANGE")]
    pub hold: Option<String>,
    /// A version of three minutes: 3 cuts of 1 to 10 seconds
    #[arg(long)]
    pub quick: bool,
    /// Only configurations whose name contains this; may be repeated
    #[arg(long, value_name = "WORDS")]
    pub only: Vec<String>,
    /// How the power goes; by default shutdown where the filesystem can, else device
    #[arg(long, value_enum)]
    pub power: Option<Power>,
    /// Hand random pieces of what is written to the device early, as a kernel short of memory does:
    /// finds in seconds what otherwise takes many cuts
    #[arg(long)]
    pub early_writeback: bool,
    /// Cuts at a time, each on a filesystem of its own
    #[arg(long, value_name = "N", default_value_t = 24, value_parser = clap::value_parser!(u32).range(1..=200))]
    pub at_once: u32,
    /// Everything random follows from it
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Write the run file here instead of .sqlitmus/runs/
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// No progress: only the result, and what went wrong
    #[arg(long, short)]
    pub quiet: bool,
}

/// How the power goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Power {
    /// The filesystem forgets what it has not handed to its device
    Shutdown,
    /// The device stops and keeps what it was given
    Device,
    /// The device stops and keeps a random part of what no flush has made safe
    Reordering,
}

/// Options of `report`.
#[derive(Debug, Args)]
pub struct ReportArguments {
    /// Run files, folders of run files, `latest` or `previous`; several are set side by side
    #[arg(value_name = "RUN", default_value = "latest")]
    pub runs: Vec<String>,
    /// Form of the report
    #[arg(long, value_enum, default_value_t = Format::Terminal)]
    pub format: Format,
    /// Write to this file instead of standard output; it must not exist
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Judge against another smallest difference worth having than the run was measured with
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub threshold: Option<f64>,
    /// On a terminal: what an operation uses (processor, faults, bytes, system calls), in place of the charts
    #[arg(long)]
    pub resources: bool,
    /// Where `latest` and `previous` are looked for
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub place: PathBuf,
}

/// Options of `compare`.
#[derive(Debug, Args)]
pub struct CompareArguments {
    /// The reference: a run file, or `latest` or `previous`
    pub a: String,
    /// What is judged: likewise
    pub b: String,
    /// Compare times, or ratios to the baseline of the same run
    #[arg(long, value_enum, value_name = "WHAT", default_value_t = Compared::Ratio)]
    pub of: Compared,
    /// Smallest difference worth having: 3% or 0.03
    #[arg(long, value_name = "SHARE", default_value = "3%", value_parser = share)]
    pub threshold: f64,
    /// This fact differs and is what is compared, such as sqlite_version, kernel, filesystem;
    /// `sqlite` is all that makes one SQLite differ from another; may be repeated
    #[arg(long, value_name = "FACT")]
    pub expect: Vec<String>,
    /// Compare runs whose conditions differ in other ways too, with a warning
    #[arg(long)]
    pub force: bool,
    /// Form of the answer
    #[arg(long, value_enum, default_value_t = ComparisonFormat::Terminal)]
    pub format: ComparisonFormat,
    /// Write to this file instead of standard output; it must not exist
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Where `latest` and `previous` are looked for
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub place: PathBuf,
}

/// What is compared between two runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Compared {
    /// Times as multiples of the baseline's: the machine's own drift drops out
    Ratio,
    /// Times as they are
    Time,
}

/// Forms of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ComparisonFormat {
    /// Text for a terminal
    Terminal,
    /// Markdown for a comment on GitHub, with collapsed details
    Github,
    /// Markdown
    Markdown,
    /// For programs
    Json,
    /// Bencher Metric Format, of the figures of B
    Bencher,
}

/// A share from 0 to 1: `3%` or `0.03`.
fn share(text: &str) -> Result<f64, String> {
    let (number, unit) = match text.strip_suffix('%') {
        Some(number) => (number, 100.0),
        None => (text, 1.0),
    };
    let share = number.trim().parse::<f64>().map(|number| number / unit);
    match share {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        Ok(_) => Err("a share lies between 0% and 100%; 3% is written 3% or 0.03".to_owned()),
        Err(_) => Err("not a share; 3% is written 3% or 0.03".to_owned()),
    }
}

/// Forms of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Text for a terminal
    Terminal,
    /// One self-contained page
    Html,
    /// Tables for a document
    Markdown,
    /// Every sample, one a row
    Csv,
    /// For programs
    Json,
    /// The charts as one picture
    Svg,
}

/// Options of `index`.
#[derive(Debug, Args)]
pub struct IndexArguments {
    /// Directory whose tree is recorded
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
    /// Database to write; one that holds something else, or another tree, is refused
    #[arg(long, value_name = "DB", required_unless_present = "walk_only")]
    pub into: Option<PathBuf>,
    /// The published way: one thread, one INSERT and one commit for each entry, into a new database
    #[arg(long)]
    pub naive: bool,
    /// Walk and look at every entry, and write nothing
    #[arg(long, conflicts_with_all = ["naive", "into"])]
    pub walk_only: bool,
    /// Threads that walk; as many as there are processors unless given
    #[arg(long, value_name = "N", conflicts_with = "naive", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub threads: Option<u16>,
    /// Stay on the filesystem of DIR
    #[arg(long)]
    pub one_file_system: bool,
    /// Stop after this many seconds; what is recorded by then stays
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub seconds: Option<u64>,
    /// Print the summary as JSON
    #[arg(long)]
    pub json: bool,
    /// No progress: only the summary, and what went wrong
    #[arg(long, short)]
    pub quiet: bool,
}

/// Options of `list`.
#[derive(Debug, Args)]
pub struct ListArguments {
    /// Where runs are looked for
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub place: PathBuf,
}

/// Options of `doctor`.
#[derive(Debug, Args)]
pub struct DoctorArguments {
    /// Directory whose disk is examined
    #[arg(value_name = "DIR", default_value = ".")]
    pub place: PathBuf,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
    /// Leave out what takes time: the noise floor, and whether an idle file stays cached
    #[arg(long)]
    pub quick: bool,
    /// No progress: only the result, and what went wrong
    #[arg(long, short)]
    pub quiet: bool,
    /// Rounds of the measurement of the noise floor, for testing
    #[arg(long, value_name = "N", hide = true, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub rounds: Option<u32>,
    /// How long a file is left alone, at the least, in seconds, for testing
    #[arg(long, value_name = "SECONDS", hide = true, default_value_t = 10)]
    pub idle: u64,
}

/// Options of `clean`.
#[derive(Debug, Args)]
pub struct CleanArguments {
    /// Directory in which .sqlitmus/ is
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub place: PathBuf,
    /// Remove the run files too
    #[arg(long)]
    pub runs: bool,
    /// Only list what would be removed
    #[arg(long)]
    pub list: bool,
}

/// The longest budget: thirty days.
const LONGEST_BUDGET: Duration = Duration::from_secs(30 * 24 * 3600);

/// A share that intervals can reach.
fn precision(text: &str) -> Result<f64, String> {
    let share = share(text)?;
    if share < 0.0001 {
        return Err("no interval becomes narrower than 0.01%".to_owned());
    }
    Ok(share)
}

fn budget(text: &str) -> Result<Duration, String> {
    let budget = humantime::parse_duration(text)
        .map_err(|error| format!("{error}; a time is given as 90s, 5m or 1h"))?;
    if budget.is_zero() || budget > LONGEST_BUDGET {
        return Err("a budget is more than nothing and at most thirty days".to_owned());
    }
    Ok(budget)
}

fn image_bytes(text: &str) -> Result<u64, String> {
    match sqlitmus_core::units::parse_bytes(text) {
        Ok(0) => Err("an image has some bytes: 2GiB".to_owned()),
        Ok(bytes) => Ok(bytes),
        Err(error) => Err(error.to_string()),
    }
}

fn planted(text: &str) -> Result<PlantedSlowdown, String> {
    let (arm, share_text) = text.split_once('=').ok_or("it is ARM=SHARE")?;
    Ok(PlantedSlowdown {
        arm: arm.to_owned(),
        share: share(share_text)?,
    })
}

/// What became of the arguments.
#[derive(Debug)]
pub enum Parsed {
    /// A verb with its options.
    Command(Box<Command>),
    /// Help or version: a text for standard output.
    Text(String),
    /// Not a valid command line.
    Bad(Failure),
}

/// Parses a command line; the first word is the program's name.
#[must_use]
pub fn parse(words: impl IntoIterator<Item = OsString>) -> Parsed {
    match CommandLine::try_parse_from(words) {
        Ok(line) => Parsed::Command(Box::new(line.command)),
        Err(error) => match error.kind() {
            ErrorKind::DisplayHelp
            | ErrorKind::DisplayVersion
            | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
                Parsed::Text(error.to_string())
            }
            _ => Parsed::Bad(bad(&error)),
        },
    }
}

/// clap's complaint as one message and one hint.
fn bad(error: &clap::Error) -> Failure {
    let text = error.to_string();
    let first = text.lines().next().unwrap_or_default();
    let mut message = first.strip_prefix("error: ").unwrap_or(first).to_owned();
    if message.ends_with(':') {
        // What is missing stands in the lines below.
        let missing = text.lines().skip(1).take_while(|line| !line.is_empty());
        missing.for_each(|line| message.extend([" ", line.trim()]));
    }
    let suggestion = [
        ContextKind::SuggestedArg,
        ContextKind::SuggestedSubcommand,
        ContextKind::SuggestedValue,
    ]
    .into_iter()
    .find_map(|kind| match error.get(kind)? {
        ContextValue::String(word) => Some(word.clone()),
        // The likeliest comes last.
        ContextValue::Strings(words) => words.last().cloned(),
        _ => None,
    });
    let hint = match suggestion {
        Some(word) => format!("did you mean `{word}`?"),
        None => "`sqlitmus --help` shows all verbs, `sqlitmus VERB --help` its options".to_owned(),
    };
    Failure::bad_input(message, hint)
}

/// The command line as clap sees it, for completions and the manual.
#[must_use]
pub fn definition() -> clap::Command {
    CommandLine::command()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_percent_or_fractions() {
        assert_eq!(share("3%"), Ok(0.03));
        assert_eq!(share("0.03"), Ok(0.03));
        assert_eq!(share("0"), Ok(0.0));
        assert_eq!(share("0.5 %"), Ok(0.005));
        assert_eq!(share("100%"), Ok(1.0));
        for bad in ["", "%", "3", "-1%", "101%", "NaN", "inf", "3%%", "three"] {
            assert!(share(bad).is_err(), "{bad}");
        }
        assert!(precision("0").is_err());
        assert_eq!(precision("0.01%"), Ok(0.0001));
    }

    #[test]
    fn budgets_are_times() {
        assert_eq!(budget("60s"), Ok(Duration::from_secs(60)));
        assert_eq!(budget("1h 30m"), Ok(Duration::from_secs(5400)));
        for bad in ["", "60", "0s", "1year", "-1s", "soon"] {
            assert!(budget(bad).is_err(), "{bad}");
        }
    }
}
