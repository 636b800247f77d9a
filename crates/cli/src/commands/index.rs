//! `sqlitmus index`: records a directory tree in SQLite. How that is done is in `sqlitmus_trees`; here
//! is what the user is told before, meanwhile and afterwards.

mod live_line;
mod summary;

use std::num::NonZeroUsize;
use std::path::Path;
use std::time::{Duration, Instant};

use sqlitmus_trees::index::naive::{self, NaiveDatabase};
use sqlitmus_trees::index::{self, IndexDatabase, IndexOptions, Indexed};
use sqlitmus_trees::walk::{OnlyLook, Tree, WalkOptions, WalkProgress, walk};

use crate::arguments::IndexArguments;
use crate::commands::print;
use crate::failure::{ExitCode, Failure};
use crate::interruption;
use live_line::LiveLine;
use summary::{Summary, Way};

/// How often a walk that writes nothing looks whether its time is up.
const GLANCE: Duration = Duration::from_millis(100);

/// Records, or only walks.
///
/// # Errors
/// The tree cannot be read, the database is something else, or cannot be written.
pub fn run(arguments: &IndexArguments) -> anyhow::Result<ExitCode> {
    interruption::listen()?;
    let tree = Tree::open(&arguments.directory).map_err(Failure::from)?;
    let options = options(arguments);
    let (way, indexed) = match &arguments.into {
        Some(path) => record(&tree, path, &options, arguments)?,
        None => (Way::WalkOnly, only_walk(&tree, &options)),
    };
    let summary = Summary {
        tree: tree.path(),
        database: arguments.into.as_deref(),
        way,
        indexed: &indexed,
    };
    print(&if arguments.json {
        summary.json()?
    } else {
        summary.text()?
    })?;
    Ok(if interruption::requested() {
        ExitCode::Interrupted
    } else {
        ExitCode::Done
    })
}

fn options(arguments: &IndexArguments) -> IndexOptions {
    let default = WalkOptions::default();
    let threads = arguments.threads.map(usize::from);
    IndexOptions {
        walk: WalkOptions {
            threads: threads
                .and_then(NonZeroUsize::new)
                .unwrap_or(default.threads),
            one_filesystem: arguments.one_file_system,
            ..default
        },
        time_limit: arguments.seconds.map(Duration::from_secs),
        ..IndexOptions::default()
    }
}

fn record(
    tree: &Tree,
    path: &Path,
    options: &IndexOptions,
    arguments: &IndexArguments,
) -> Result<(Way, Indexed), Failure> {
    let mut live_line = LiveLine::new(arguments.quiet);
    let mut observe = |progress: &_| live_line.show(progress);
    let (way, indexed) = if arguments.naive {
        let mut database = NaiveDatabase::create(path)?;
        let indexed = naive::record(
            tree,
            &mut database,
            options,
            &interruption::requested,
            &mut observe,
        );
        (Way::Naive, indexed)
    } else {
        let mut database = IndexDatabase::open(path, tree)?;
        let indexed = index::record(
            tree,
            &mut database,
            options,
            &interruption::requested,
            &mut observe,
        );
        (Way::Best, indexed)
    };
    live_line.end();
    Ok((way, indexed?))
}

/// The walk alone, in the form of a recording that wrote nothing.
fn only_walk(tree: &Tree, options: &IndexOptions) -> Indexed {
    let started = Instant::now();
    let threads = options.walk.threads.get();
    let progress = WalkProgress::new(threads);
    let visitors = vec![OnlyLook; threads];
    let stop = &interruption::requested;
    let ((), walked) = walk(tree, &options.walk, visitors, stop, &progress, || {
        while !progress.is_over() {
            match options.time_limit {
                Some(limit) if started.elapsed() >= limit => return progress.stop(),
                _ => progress.wait(GLANCE),
            }
        }
    });
    Indexed {
        counts: walked.counts,
        oddities: walked.oddities,
        writes: index::RowWrites::default(),
        commits: 0,
        threads,
        elapsed_ns: u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX),
        sql_ns: 0,
        sql_cpu_ns: 0,
        walk_ns: walked.walk_ns,
        stopped: walked.stopped,
    }
}
