//! How fast a configuration commits: alone on the machine, on the same kind of filesystem, without
//! pauses, settling included. The figure that stands beside its tier.

use std::path::Path;
use std::time::{Duration, Instant};

use sqlitmus_core::durability::{Batches, Configuration, Speed};

use super::cutting::Site;
use super::job::{Filled, Job, Task};
use super::writing::Reason;

/// Longest wait for filling a store.
const PATIENCE: Duration = Duration::from_secs(60);

/// What the live engine said, and how fast it was; `None` for the control, whose speed is a lie.
pub type Measured = (std::collections::BTreeMap<String, String>, Option<Speed>);

/// Measures one turn in a folder, which is its own.
///
/// # Errors
/// The store cannot be made or written.
pub fn measure(
    site: &Site,
    filesystem: &str,
    configuration: &Configuration,
    folder: &Path,
    batches: Batches,
    settle_every: u64,
    length: Duration,
) -> Result<Measured, Reason> {
    let mut job = Job {
        engine: configuration.engine.clone(),
        settings: configuration.settings.clone(),
        path: folder.join("store"),
        batches,
        task: Task::Fill,
    };
    let read_back = match site.program.ask(&job, PATIENCE)? {
        Filled::Done(read_back) => read_back,
        Filled::Failed(why) | Filled::Unavailable(why) => return Err(why),
    };
    if configuration.is_control {
        return Ok((read_back, None));
    }
    // What others have left unwritten is not for this one to wait for.
    let directory = std::fs::File::open(folder).map_err(|error| error.to_string())?;
    #[cfg(target_os = "linux")]
    rustix::fs::syncfs(&directory).map_err(|error| error.to_string())?;
    drop(directory);
    job.task = Task::Write {
        pause_ns: 0,
        settle_every,
        lag: 0,
    };
    let mut writing = site.program.write(&job)?;
    let started = Instant::now();
    std::thread::sleep(length);
    writing.require_alive()?;
    let commits = writing.kill();
    // To the last acknowledgement that was heard: what was begun after it is not counted either.
    let elapsed = commits
        .last()
        .map_or(Duration::ZERO, |last| last.duration_since(started));
    let speed = Speed {
        filesystem: filesystem.to_owned(),
        configuration: configuration.name.clone(),
        commits: commits.len() as u64,
        elapsed_ns: elapsed.as_nanos() as u64,
    };
    Ok((read_back, Some(speed)))
}
