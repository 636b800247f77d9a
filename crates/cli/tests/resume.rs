//! Runs that were killed: whatever the moment, the run file opens and is whole, and a resumed run
//! neither loses nor repeats a round that had ended.
//!
//! `SQLITMUS_KILLS` sets how often the orchestrator is killed, and as often a worker.

mod program;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use sqlitmus_core::run::{Outcome, Run, RunState};

const SUITE: &str = r#"
name = "killed"
about = "for tests"
question = "Does it go on?"

[[dataset]]
name = "few"
count = 60
size = { uniform = [100, 900] }

[[group]]
name = "read"
dataset = "few"
workload = { kind = "read", order = "random" }
cache = "warm"
durability = "process-crash"
baseline = "files"
rounds = 8
slices = 2
slice_ms = 1

[[group.arm]]
name = "files"
label = "files"
engine = "files"

[[group.arm]]
name = "sqlite"
label = "SQLite"
engine = "sqlite"

[[group]]
name = "write"
dataset = "few"
workload = { kind = "overwrite", order = "random", operations = 10 }
cache = "warm"
durability = "process-crash"
baseline = "write-files"
rounds = 8
slices = 2

[[group.arm]]
name = "write-files"
label = "files"
engine = "files"

[[group.arm]]
name = "write-sqlite"
label = "SQLite"
engine = "sqlite"
"#;

struct Place {
    folder: tempfile::TempDir,
    /// State of a small generator of moments: xorshift (Marsaglia 2003).
    random: u64,
}

impl Place {
    fn new(seed: u64) -> Self {
        let folder = tempfile::tempdir().expect("a temporary directory");
        std::fs::write(folder.path().join("suite.toml"), SUITE).expect("suite written");
        Self {
            folder,
            random: seed,
        }
    }

    fn moment(&mut self, longest: Duration) -> Duration {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        longest.mul_f64((self.random >> 11) as f64 / (1u64 << 53) as f64)
    }

    fn command(&self, words: &[&str]) -> Command {
        let words = [&["measure", "--quiet", "--json"], words].concat();
        let mut command = program::command(self.folder.path(), &words);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn run_file(&self) -> Option<PathBuf> {
        let entries = std::fs::read_dir(self.folder.path().join(".sqlitmus/runs")).ok()?;
        entries
            .flatten()
            .map(|entry| entry.path())
            .find(|path| path.extension().is_some_and(|ending| ending == "run"))
    }
}

fn kills() -> usize {
    let wanted = std::env::var("SQLITMUS_KILLS").ok();
    wanted.and_then(|kills| kills.parse().ok()).unwrap_or(6)
}

/// Complete rounds by group and number: each must be there once.
fn complete_rounds(path: &Path) -> BTreeMap<(String, u32), u32> {
    let connection = rusqlite::Connection::open(path).expect("the run file opens");
    let integrity: String = connection
        .query_row("PRAGMA integrity_check", [], |row| row.get(0))
        .expect("integrity_check runs");
    assert_eq!(integrity, "ok");
    let mut statement = connection
        .prepare(
            "SELECT name, number, count(*) FROM round JOIN arm_group USING (group_id) \
             WHERE complete GROUP BY 1, 2",
        )
        .expect("a query");
    let rows = statement
        .query_map([], |row| Ok(((row.get(0)?, row.get(1)?), row.get(2)?)))
        .expect("rows");
    rows.map(|row| row.expect("a row")).collect()
}

/// Samples of the rounds that have ended, to be found again unchanged.
fn ended_samples(run: &Run, rounds: &BTreeMap<(String, u32), u32>) -> Vec<String> {
    let mut samples = Vec::new();
    for (group, round) in rounds.keys() {
        let arms = run.plan.groups.iter().find(|known| known.name == *group);
        let arms = &arms.expect("a group of the plan").arms;
        let trials = run
            .trials
            .iter()
            .filter(|trial| trial.round == *round && arms.iter().any(|arm| arm.name == trial.arm));
        let valid = trials.filter(|trial| trial.outcome == Outcome::Valid);
        samples.extend(valid.map(|trial| format!("{}{:?}", trial.arm, trial.samples)));
    }
    samples
}

fn wait_or_kill(mut child: Child, after: Duration) -> bool {
    let deadline = Instant::now() + after;
    while Instant::now() < deadline {
        if child.try_wait().expect("a state").is_some() {
            return false;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    child.kill().expect("killed");
    child.wait().expect("reaped");
    true
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Kills the orchestrator until the run is complete or often enough; returns how often.
fn kill_and_resume(seed: u64, longest: Duration, most: usize) -> usize {
    let mut place = Place::new(seed);
    let mut known: Vec<String> = Vec::new();
    let mut killed = 0;
    while killed < most {
        let words: &[&str] = match place.run_file() {
            Some(_) => &["--resume", "latest"],
            None => &["suite.toml"],
        };
        let child = place.command(words).spawn().expect("sqlitmus starts");
        let after = place.moment(longest);
        if !wait_or_kill(child, after) {
            break;
        }
        killed += 1;
        // Killed before there was a run file: the next one begins anew.
        let Some(path) = place.run_file() else {
            continue;
        };
        let run = sqlitmus_runfile::read(&path).expect("the run file opens");
        let rounds = complete_rounds(&path);
        assert!(rounds.values().all(|count| *count == 1), "{rounds:?}");
        let samples = ended_samples(&run, &rounds);
        for sample in &known {
            assert!(samples.contains(sample), "a round that had ended is lost");
        }
        known = samples;
    }
    finish(&place, &known);
    killed
}

/// Resumes to the end, and looks at what has come of it.
fn finish(place: &Place, known: &[String]) {
    let path = match place.run_file() {
        Some(path) => path,
        None => {
            let output: Output = place.command(&["suite.toml"]).output().expect("it runs");
            assert!(output.status.success(), "{}", text(&output.stderr));
            place.run_file().expect("a run file")
        }
    };
    let state = sqlitmus_runfile::read(&path).expect("readable").head.state;
    if state != RunState::Complete {
        let output = place
            .command(&["--resume", "latest"])
            .output()
            .expect("it runs");
        assert!(output.status.success(), "{}", text(&output.stderr));
        let run = sqlitmus_runfile::read(&path).expect("readable");
        let mut facts = run.environment.iter();
        let says_so = facts.any(|(name, _)| name == "resumed_utc");
        assert!(says_so, "the run says that it was interrupted");
    }
    let run = sqlitmus_runfile::read(&path).expect("readable");
    assert_eq!(run.head.state, RunState::Complete);
    let rounds = complete_rounds(&path);
    assert!(rounds.len() >= 16, "{rounds:?}");
    assert!(rounds.values().all(|count| *count == 1), "{rounds:?}");
    let samples = ended_samples(&run, &rounds);
    for sample in known {
        assert!(samples.contains(sample), "a round that had ended is lost");
    }
}

#[test]
fn a_killed_run_is_resumed_without_losing_or_repeating_a_round() {
    let mut left = kills();
    let mut seed = 0x5eed;
    while left > 0 {
        seed += 1;
        // Long enough for some rounds, short enough for most kills to hit.
        let killed = kill_and_resume(seed, Duration::from_millis(900), left.min(8));
        // A run that was through before its first kill counts for one too, so that this ends.
        left -= killed.clamp(1, left);
    }
}

/// The first worker of an orchestrator that can be found.
#[cfg(target_os = "linux")]
fn worker_of(orchestrator: u32) -> Option<u32> {
    let entries = std::fs::read_dir("/proc").ok()?.flatten();
    let mut processes = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    processes.find(|process: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        // pid (name) state parent ...
        let after = stat.rsplit(") ").next().unwrap_or_default();
        after.split(' ').nth(1) == Some(&orchestrator.to_string())
    })
}

#[cfg(target_os = "linux")]
#[test]
fn a_killed_worker_is_one_failed_trial() {
    for seed in 0..kills() as u64 {
        let mut place = Place::new(seed + 0xdead);
        let child = place.command(&["suite.toml"]).spawn().expect("it starts");
        std::thread::sleep(place.moment(Duration::from_millis(900)));
        if let Some(worker) = worker_of(child.id()) {
            let _ = Command::new("kill")
                .args(["-9", &worker.to_string()])
                .stderr(Stdio::null())
                .status();
        }
        let output = child.wait_with_output().expect("it ends");
        let code = output.status.code();
        assert!(
            matches!(code, Some(0 | 4)),
            "{code:?}: {}",
            text(&output.stderr)
        );
        let path = place.run_file().expect("a run file");
        let run = sqlitmus_runfile::read(&path).expect("readable");
        assert_eq!(run.head.state, RunState::Complete);
        let rounds = complete_rounds(&path);
        assert!(rounds.values().all(|count| *count == 1), "{rounds:?}");
        let failed = run
            .trials
            .iter()
            .filter(|trial| matches!(trial.outcome, Outcome::Failed(_)));
        assert!(failed.count() <= 1, "one kill, one failed trial");
    }
}

#[test]
fn what_cannot_be_resumed_is_refused() {
    let place = Place::new(1);
    let output = place.command(&["suite.toml"]).output().expect("it runs");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let output = place
        .command(&["--resume", "latest"])
        .output()
        .expect("it runs");
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("nothing to resume"));
    let path = place.run_file().expect("a run file");
    for (change, reason) in [
        (
            "UPDATE run SET state = 'started', sqlitmus_version = '0.0.0'",
            "was begun by sqlitmus 0.0.0",
        ),
        (
            "UPDATE run SET state = 'interrupted'; \
             UPDATE environment SET value = '2.4.0' WHERE name = 'kernel'",
            "kernel was 2.4.0",
        ),
    ] {
        let copy = place.folder.path().join("changed.run");
        std::fs::copy(&path, &copy).expect("copied");
        let connection = rusqlite::Connection::open(&copy).expect("opens");
        connection.execute_batch(change).expect("changed");
        drop(connection);
        let before = std::fs::read(&copy).expect("read");
        let output = place
            .command(&["--resume", "changed.run"])
            .output()
            .expect("it runs");
        assert_eq!(output.status.code(), Some(2), "{}", text(&output.stdout));
        assert!(
            text(&output.stderr).contains(reason),
            "{}",
            text(&output.stderr)
        );
        assert_eq!(before, std::fs::read(&copy).expect("read"), "unchanged");
    }
}
