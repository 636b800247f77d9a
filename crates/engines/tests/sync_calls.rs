//! Counts what every durable way of writing really asks of the device: which files it synchronises,
//! and in which order, for each commit. A tier of durability that is bought with another number of
//! calls than documented here is not the tier that it is called.
//!
//! Each configuration writes in a process of its own under `strace`; where that cannot be had the
//! test says so and checks nothing. `--nocapture` prints the table for METHODOLOGY.md.

#![cfg(target_os = "linux")]
#![expect(
    clippy::print_stdout,
    reason = "it prints a table, or why there is none"
)]

use std::fmt;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use sqlitmus_core::dataset::{Dataset, SizeDistribution};
use sqlitmus_core::settings::Settings;
use sqlitmus_engines::{Writer, find};

/// Set for the process that writes: which configuration it writes with.
const CHILD: &str = "SQLITMUS_TEST_SYNC_CALLS_CHILD";

const STORE: &str = "store";

/// Batches of overwrites that are watched.
const BATCHES: usize = 10;

/// Overwrites in a batch.
const PUTS: u64 = 4;

/// Everything that can make data durable, and the calls by which the writing process marks where it
/// is. What an architecture does not have, `?` lets pass.
const TRACED: &str = "trace=?fsync,?fdatasync,?sync_file_range,?sync_file_range2,?syncfs,?sync,\
                      ?msync,?mkdir,?mkdirat";

/// What a call synchronises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    /// The file of one blob.
    Blob,
    /// The directory with the names of what is written.
    Directory,
    /// A database, or a packfile.
    Store,
    /// A rollback journal.
    Journal,
    /// A write-ahead log.
    Log,
    /// The directory in which a store keeps its database.
    Place,
    /// What nobody expects.
    Unknown,
}

impl Target {
    fn word(self) -> &'static str {
        match self {
            Self::Blob => "blob",
            Self::Directory => "directory",
            Self::Store => "store",
            Self::Journal => "journal",
            Self::Log => "log",
            Self::Place => "store's directory",
            Self::Unknown => "unknown",
        }
    }
}

use Target::{Blob, Directory, Journal, Log, Place, Store};

struct Configuration {
    engine: &'static str,
    settings: &'static [(&'static str, &'static str)],
    commits_in_a_batch: usize,
    /// What each commit synchronises, in order.
    commit: &'static [Target],
    /// What settling synchronises, after the batches.
    settle: &'static [Target],
    /// What the first commit after settling synchronises before what each does.
    restart: &'static [Target],
    /// How many of a commit's own calls come before those.
    restart_after: usize,
    why: &'static str,
}

const fn files(
    settings: &'static [(&'static str, &'static str)],
    commit: &'static [Target],
    why: &'static str,
) -> Configuration {
    Configuration {
        engine: "files",
        settings,
        // Each put is durable, or not, when it returns.
        commits_in_a_batch: PUTS as usize,
        commit,
        settle: &[],
        restart: &[],
        restart_after: 0,
        why,
    }
}

const fn sqlite(
    settings: &'static [(&'static str, &'static str)],
    commit: &'static [Target],
    why: &'static str,
) -> Configuration {
    Configuration {
        engine: "sqlite",
        commits_in_a_batch: 1,
        ..files(settings, commit, why)
    }
}

/// A database with a log, which settling alone copies into the database.
const fn wal(
    settings: &'static [(&'static str, &'static str)],
    commits_in_a_batch: usize,
    commit: &'static [Target],
    why: &'static str,
) -> Configuration {
    Configuration {
        commits_in_a_batch,
        // <https://sqlite.org/pragma.html#pragma_synchronous>: "the WAL file is synchronized before
        // each checkpoint and the database file is synchronized after each completed checkpoint and
        // the WAL file header is synchronized when a WAL file begins to be reused".
        settle: &[Log, Store],
        restart: &[Log],
        ..sqlite(settings, commit, why)
    }
}

const NOTHING_ASKED: &str = "nothing is asked for: the page cache has it";
const OVERWRITTEN: &str = "the name stays, so only the file is synchronised";
const RENAMED_FILE: &str =
    "the new file before it is renamed; the rename itself is not synchronised";
const RENAMED: &str = "the new file before it is renamed, its directory after";
const LOG_NOT_SYNCHRONISED: &str = "\"no sync operations occur during most transactions\" \
                                    (PRAGMA synchronous)";
const LOG_SYNCHRONISED: &str = "\"an additional sync operation of the WAL file happens after each \
                                transaction commit\" (PRAGMA synchronous)";
const OFF: &str = "\"continues without syncing\" (PRAGMA synchronous)";
const DELETE_NORMAL: &str = "the journal, its directory because the name is new, the database; not \
                             the directory after the journal's deletion, which is the commit";
const DELETE_FULL: &str = "as normal, and the journal once more: its header counts the pages only \
                           after they are safe (\"Atomic Commit In SQLite\", 3.7)";
const DELETE_EXTRA: &str = "as full, and \"the directory containing a rollback journal is synced \
                            after that journal is unlinked\" (PRAGMA synchronous)";
const JOURNAL_KEPT: &str = "as delete with full, and the journal once more when it is made invalid, \
                            which is the commit; SQLite opens it anew for each transaction and \
                            synchronises its directory, though its name is old";

const LOG_EXTRA: &str =
    "as full: there is no rollback journal whose directory could be synchronised";
const TRUNCATE_NORMAL: &str = "the journal and its directory before the database; the end of the journal, which is the \
                           commit, is not synchronised";
const PERSIST_NORMAL: &str = "the journal, its directory, the database, and the journal once more: its header is overwritten \
                              with zeros, which is the commit, and that is synchronised with normal already";
const KEPT_EXTRA: &str =
    "as full: the directory is synchronised after a deletion only, and this journal stays";
const JOURNAL_IN_MEMORY: &str = "the journal is no file, so only the database is synchronised";
const FILES_FIRST: &str = "the new files and their directory; the commit is not synchronised, so \
                           that old files stay until settling has synchronised it";
const FILES_BEFORE_THEIR_ROWS: &str =
    "the new files and their directory before the commit that names them";
const NO_JOURNAL: &str = "there is no journal, so only the database is synchronised";

const CONFIGURATIONS: &[Configuration] = &[
    files(
        &[("write", "truncate"), ("sync", "none")],
        &[],
        NOTHING_ASKED,
    ),
    files(
        &[("write", "truncate"), ("sync", "fsync")],
        &[Blob],
        OVERWRITTEN,
    ),
    files(
        &[("write", "truncate"), ("sync", "fsync+dir")],
        &[Blob],
        OVERWRITTEN,
    ),
    files(
        &[("write", "in-place"), ("sync", "none")],
        &[],
        NOTHING_ASKED,
    ),
    files(
        &[("write", "in-place"), ("sync", "fsync")],
        &[Blob],
        OVERWRITTEN,
    ),
    files(
        &[("write", "in-place"), ("sync", "fsync+dir")],
        &[Blob],
        OVERWRITTEN,
    ),
    files(&[("write", "rename"), ("sync", "none")], &[], NOTHING_ASKED),
    files(
        &[("write", "rename"), ("sync", "fsync")],
        &[Blob],
        RENAMED_FILE,
    ),
    files(
        &[("write", "rename"), ("sync", "fsync+dir")],
        &[Blob, Directory],
        RENAMED,
    ),
    // Another path through the engine: system calls instead of C streams.
    files(
        &[
            ("write", "rename"),
            ("sync", "fsync+dir"),
            ("api", "openat"),
        ],
        &[Blob, Directory],
        RENAMED,
    ),
    Configuration {
        settle: &[],
        restart: &[],
        ..wal(
            &[
                ("journal_mode", "wal"),
                ("synchronous", "off"),
                ("transaction", "one"),
            ],
            PUTS as usize,
            &[],
            OFF,
        )
    },
    Configuration {
        settle: &[],
        restart: &[],
        ..wal(
            &[
                ("journal_mode", "wal"),
                ("synchronous", "off"),
                ("transaction", "all"),
            ],
            1,
            &[],
            OFF,
        )
    },
    wal(
        &[
            ("journal_mode", "wal"),
            ("synchronous", "normal"),
            ("transaction", "one"),
        ],
        PUTS as usize,
        &[],
        LOG_NOT_SYNCHRONISED,
    ),
    wal(
        &[
            ("journal_mode", "wal"),
            ("synchronous", "normal"),
            ("transaction", "all"),
        ],
        1,
        &[],
        LOG_NOT_SYNCHRONISED,
    ),
    wal(
        &[
            ("journal_mode", "wal"),
            ("synchronous", "full"),
            ("transaction", "one"),
        ],
        PUTS as usize,
        &[Log],
        LOG_SYNCHRONISED,
    ),
    wal(
        &[
            ("journal_mode", "wal"),
            ("synchronous", "full"),
            ("transaction", "all"),
        ],
        1,
        &[Log],
        LOG_SYNCHRONISED,
    ),
    wal(
        &[
            ("journal_mode", "wal"),
            ("synchronous", "extra"),
            ("transaction", "all"),
        ],
        1,
        &[Log],
        LOG_EXTRA,
    ),
    sqlite(
        &[("journal_mode", "delete"), ("synchronous", "off")],
        &[],
        OFF,
    ),
    sqlite(
        &[("journal_mode", "delete"), ("synchronous", "normal")],
        &[Journal, Directory, Store],
        DELETE_NORMAL,
    ),
    sqlite(
        &[("journal_mode", "delete"), ("synchronous", "full")],
        &[Journal, Directory, Journal, Store],
        DELETE_FULL,
    ),
    sqlite(
        &[("journal_mode", "delete"), ("synchronous", "extra")],
        &[Journal, Directory, Journal, Store, Directory],
        DELETE_EXTRA,
    ),
    sqlite(
        &[("journal_mode", "truncate"), ("synchronous", "full")],
        &[Journal, Directory, Journal, Store, Journal],
        JOURNAL_KEPT,
    ),
    sqlite(
        &[("journal_mode", "persist"), ("synchronous", "full")],
        &[Journal, Directory, Journal, Store, Journal],
        JOURNAL_KEPT,
    ),
    sqlite(
        &[("journal_mode", "truncate"), ("synchronous", "off")],
        &[],
        OFF,
    ),
    sqlite(
        &[("journal_mode", "truncate"), ("synchronous", "normal")],
        &[Journal, Directory, Store],
        TRUNCATE_NORMAL,
    ),
    sqlite(
        &[("journal_mode", "truncate"), ("synchronous", "extra")],
        &[Journal, Directory, Journal, Store, Journal],
        KEPT_EXTRA,
    ),
    sqlite(
        &[("journal_mode", "persist"), ("synchronous", "off")],
        &[],
        OFF,
    ),
    sqlite(
        &[("journal_mode", "persist"), ("synchronous", "normal")],
        &[Journal, Directory, Store, Journal],
        PERSIST_NORMAL,
    ),
    sqlite(
        &[("journal_mode", "persist"), ("synchronous", "extra")],
        &[Journal, Directory, Journal, Store, Journal],
        KEPT_EXTRA,
    ),
    sqlite(
        &[("journal_mode", "memory"), ("synchronous", "off")],
        &[],
        OFF,
    ),
    sqlite(
        &[("journal_mode", "memory"), ("synchronous", "normal")],
        &[Store],
        JOURNAL_IN_MEMORY,
    ),
    sqlite(
        &[("journal_mode", "memory"), ("synchronous", "full")],
        &[Store],
        JOURNAL_IN_MEMORY,
    ),
    sqlite(
        &[("journal_mode", "memory"), ("synchronous", "extra")],
        &[Store],
        JOURNAL_IN_MEMORY,
    ),
    sqlite(&[("journal_mode", "off"), ("synchronous", "off")], &[], OFF),
    sqlite(
        &[("journal_mode", "off"), ("synchronous", "normal")],
        &[Store],
        NO_JOURNAL,
    ),
    sqlite(
        &[("journal_mode", "off"), ("synchronous", "full")],
        &[Store],
        NO_JOURNAL,
    ),
    sqlite(
        &[("journal_mode", "off"), ("synchronous", "extra")],
        &[Store],
        NO_JOURNAL,
    ),
    external(
        "external",
        &[("sync", "none")],
        &[],
        &[Log, Store],
        &[Log],
        LOG_NOT_SYNCHRONISED,
    ),
    external(
        "external",
        &[("sync", "fsync+dir")],
        &[Blob, Blob, Blob, Blob, Directory],
        &[Log, Store],
        &[Log],
        FILES_FIRST,
    ),
    external(
        "external",
        &[("sync", "fsync+dir"), ("synchronous", "full")],
        &[Blob, Blob, Blob, Blob, Directory, Log],
        &[Log, Store],
        &[Log],
        FILES_BEFORE_THEIR_ROWS,
    ),
    external(
        "external",
        &[
            ("sync", "fsync+dir"),
            ("synchronous", "full"),
            ("journal_mode", "delete"),
        ],
        &[
            Blob, Blob, Blob, Blob, Directory, Journal, Place, Journal, Store,
        ],
        &[Place],
        &[],
        "as above, by a rollback journal; settling synchronises its deletion, which is the commit, \
         and then removes the old files",
    ),
    external(
        "hybrid",
        &[
            ("sync", "fsync+dir"),
            ("synchronous", "full"),
            ("inline_limit", "999"),
        ],
        &[Blob, Blob, Blob, Blob, Directory, Log],
        &[Log, Store],
        &[Log],
        FILES_BEFORE_THEIR_ROWS,
    ),
    external(
        "hybrid",
        &[("sync", "fsync+dir"), ("synchronous", "full")],
        &[Log],
        &[Log, Store],
        &[Log],
        "the blobs are in the database",
    ),
    Configuration {
        engine: "packfile",
        ..sqlite(&[("sync", "none")], &[], NOTHING_ASKED)
    },
    Configuration {
        engine: "packfile",
        ..sqlite(
            &[("sync", "fdatasync")],
            &[Store],
            "the file after the batch was appended; fdatasync(2) includes its new length",
        )
    },
];

/// Files that a database names, in a commit of `PUTS` overwrites.
const fn external(
    engine: &'static str,
    settings: &'static [(&'static str, &'static str)],
    commit: &'static [Target],
    settle: &'static [Target],
    restart: &'static [Target],
    why: &'static str,
) -> Configuration {
    let mut files_first = 0;
    while files_first < commit.len() && matches!(commit[files_first], Blob | Directory) {
        files_first += 1;
    }
    Configuration {
        engine,
        settle,
        restart,
        restart_after: files_first,
        ..sqlite(settings, commit, why)
    }
}

impl fmt::Display for Configuration {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.engine)?;
        for (name, value) in self.settings {
            write!(formatter, " {name}={value}")?;
        }
        Ok(())
    }
}

fn words(targets: &[Target]) -> String {
    let words: Vec<_> = targets.iter().map(|target| target.word()).collect();
    if words.is_empty() {
        return "-".to_owned();
    }
    words.join(", ")
}

/// Parts of the writing, as the marks divide it.
const PARTS: usize = 2 + BATCHES + 2;

#[test]
fn commits_synchronise_what_their_durability_needs() {
    if let Some(index) = std::env::var_os(CHILD) {
        let index: usize = index.to_string_lossy().parse().expect("an index");
        write(&CONFIGURATIONS[index]);
        return;
    }
    if let Err(reason) = try_tracing() {
        println!("skipped: {reason}");
        return;
    }
    println!("| configuration | syncs per commit | of what, in order | when settling | why |");
    println!("|---|---|---|---|---|");
    for (index, configuration) in CONFIGURATIONS.iter().enumerate() {
        let parts = trace(index, configuration);
        // Before the first mark the store is filled; the first batch may set up a journal.
        let watched = &parts[2..];
        let (batches, last) = watched.split_at(BATCHES);
        let batch = configuration
            .commit
            .repeat(configuration.commits_in_a_batch);
        for (number, found) in batches.iter().enumerate() {
            assert_eq!(*found, batch, "batch {number} of {configuration}");
        }
        assert_eq!(last[0], configuration.settle, "settling {configuration}");
        let (before, after) = batch.split_at(configuration.restart_after);
        let restarted = [before, configuration.restart, after].concat();
        assert_eq!(last[1], restarted, "after settling {configuration}");
        println!(
            "| {configuration} | {} | {} | {} | {} |",
            configuration.commit.len(),
            words(configuration.commit),
            words(configuration.settle),
            configuration.why
        );
    }
}

/// Writes in the current directory, and marks each part by making a directory.
fn write(configuration: &Configuration) {
    let engine = find(configuration.engine).expect("the engine exists");
    let settings = Settings::from_pairs(configuration.settings.iter().copied());
    let dataset = Dataset {
        count: PUTS,
        size: SizeDistribution::Fixed(1000),
        compressibility: 0.0,
        seed: 1,
    };
    let store = engine.create(Path::new(STORE), &settings).expect("created");
    store.load(&dataset, &mut |_| {}).expect("loaded");
    drop(store);
    let store = engine.open(Path::new(STORE), &settings).expect("opened");
    let mut session = store.session().expect("a session");
    let writer = session.writer().expect("a writer");
    let mut part = 0;
    let mut mark = || {
        part += 1;
        fs::create_dir(format!("mark-{part}")).expect("marked");
    };
    mark();
    write_batch(writer, &dataset, 1);
    mark();
    for generation in 0..BATCHES as u64 {
        write_batch(writer, &dataset, generation + 2);
        mark();
    }
    writer.settle().expect("settled");
    mark();
    write_batch(writer, &dataset, 100);
    mark();
}

fn write_batch(writer: &mut dyn Writer, dataset: &Dataset, generation: u64) {
    let mut blob = Vec::new();
    writer.begin().expect("begun");
    for key in 1..=PUTS {
        dataset.fill(key, generation, &mut blob);
        writer.put(key, &blob).expect("written");
    }
    writer.commit().expect("committed");
}

/// Whether a process can be traced here.
fn try_tracing() -> Result<(), String> {
    let traced = Command::new("strace")
        .args(["-f", "-y", "-e", TRACED, "-o", "/dev/null", "true"])
        .stderr(Stdio::piped())
        .output();
    match traced {
        Err(error) => Err(format!("strace cannot be run: {error}")),
        Ok(output) if !output.status.success() => Err(format!(
            "strace may not trace: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        )),
        Ok(_) => Ok(()),
    }
}

/// What each part of the writing synchronised.
fn trace(index: usize, configuration: &Configuration) -> Vec<Vec<Target>> {
    let place = tempfile::tempdir().expect("a scratch directory");
    // strace prints where a descriptor really leads.
    let directory = place.path().canonicalize().expect("a path");
    let calls = directory.join("calls.txt");
    let name = std::thread::current().name().map(str::to_owned);
    let output = Command::new("strace")
        .args(["-f", "-y", "-e", TRACED, "-o"])
        .arg(&calls)
        .arg(std::env::current_exe().expect("program"))
        .args(["--exact", &name.expect("a test"), "--test-threads=1"])
        .env(CHILD, index.to_string())
        .current_dir(&directory)
        .output()
        .expect("strace runs");
    assert!(output.status.success(), "{configuration}: {output:?}");
    let calls = fs::read_to_string(&calls).expect("calls");
    let mut parts = vec![Vec::new()];
    for line in calls.lines().filter(|line| !line.contains(" resumed>")) {
        let Some((call, arguments)) = line.split_once('(') else {
            continue;
        };
        if call.ends_with("mkdir") || call.ends_with("mkdirat") {
            if arguments.contains("\"mark-") {
                parts.push(Vec::new());
            }
        } else if let Some(part) = parts.last_mut() {
            part.push(target(configuration.engine, call, arguments, &directory));
        }
    }
    parts.truncate(PARTS);
    assert_eq!(parts.len(), PARTS, "{configuration}: {calls}");
    parts
}

/// What a line such as `fsync(3</place/store-wal>) = 0` synchronises.
fn target(engine: &str, call: &str, arguments: &str, directory: &Path) -> Target {
    let path = arguments.split_once('<').and_then(|(_, rest)| {
        let (path, _) = rest.split_once('>')?;
        Path::new(path).strip_prefix(directory).ok()?.to_str()
    });
    if !call.ends_with("fsync") && !call.ends_with("fdatasync") {
        return Target::Unknown;
    }
    if matches!(engine, "external" | "hybrid") {
        return match path {
            Some(STORE) => Place,
            Some("store/content") => Directory,
            Some(path) if path.starts_with("store/content/") => Blob,
            Some("store/index.db") => Store,
            Some("store/index.db-wal") => Log,
            Some("store/index.db-journal") => Journal,
            _ => Target::Unknown,
        };
    }
    match (engine, path) {
        ("files", Some(STORE)) => Directory,
        // All in one directory, under their own names or provisional ones.
        ("files", Some(path)) if path.starts_with("store/0000") => Blob,
        (_, Some("")) => Directory,
        (_, Some(STORE)) => Store,
        (_, Some("store-journal")) => Journal,
        (_, Some("store-wal")) => Log,
        _ => Target::Unknown,
    }
}
