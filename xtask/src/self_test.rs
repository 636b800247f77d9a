//! `cargo xtask self-test DIR`: does the program call identical arms different, and does it find
//! slowdowns that were planted? By the real program with its real workers, on this machine.
//!
//! - A/A: identical arms that read the same store, ten seconds a try, every other one with another load
//!   running, judged at threshold 0 and at 3%. Besides, arms that overwrite stores of their own, which are
//!   not quite identical.
//! - Planted: an arm that waits busily for 2%, 3% or 5% of the time of every operation, thirty seconds a
//!   try, judged at threshold 1%.
//!
//! Tries come in a random order that follows from the seed, so that what there is of an unfinished
//! self-test is a fair sample. Each is one line of `DIR/tries.jsonl`, written when it ends: the self-test
//! may be killed at any time, and goes on when it is started again.

mod load;
mod record;
mod tally;
mod tries;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

use record::Records;
use tries::Try;

pub(crate) use load::{LOAD, load};

/// What the command line looks like.
pub(crate) const USAGE: &str = "self-test DIR [--seed N] [--seconds N]";

/// Seed where none is given.
const DEFAULT_SEED: u64 = 20_261_120;

/// How often a try that cannot begin is tried again: a measurement of a self-test that was killed goes on
/// to its end, and holds the place.
const ATTEMPTS: u32 = 8;

/// Pause between two attempts.
const PAUSE: Duration = Duration::from_secs(5);

/// Exit code of a program that refused to begin.
const REFUSED: i32 = 2;

/// What was asked for.
struct Wish {
    directory: PathBuf,
    seed: u64,
    /// No try begins after so long.
    time: Option<Duration>,
}

impl Wish {
    fn parse(words: &[&str]) -> anyhow::Result<Self> {
        let usage = || format!("usage: cargo xtask {USAGE}");
        let (directory, mut options) = words.split_first().with_context(usage)?;
        let mut wish = Self {
            directory: PathBuf::from(directory),
            seed: DEFAULT_SEED,
            time: None,
        };
        while let [name, value, rest @ ..] = options {
            let number: u64 = value.parse().with_context(usage)?;
            match *name {
                "--seed" => wish.seed = number,
                "--seconds" => wish.time = Some(Duration::from_secs(number)),
                _ => bail!(usage()),
            }
            options = rest;
        }
        if !options.is_empty() || directory.starts_with('-') {
            bail!(usage());
        }
        Ok(wish)
    }
}

/// Runs what is not yet there of a self-test, and prints the tally.
///
/// # Errors
/// The program fails, the directory cannot be used, or the self-test is finished and a target missed.
pub(crate) fn run(words: &[&str]) -> anyhow::Result<()> {
    let wish = Wish::parse(words)?;
    let start = Instant::now();
    std::fs::create_dir_all(&wish.directory)
        .with_context(|| format!("cannot create {}", wish.directory.display()))?;
    let directory = wish.directory.canonicalize()?;
    let mut records = Records::open(&directory.join("tries.jsonl"), wish.seed)?;
    let tries = tries::all(wish.seed);
    let program = program()?;
    let place = directory.join("place");
    std::fs::create_dir_all(&place)?;
    for (index, one) in tries.iter().enumerate() {
        if records.has(index) {
            continue;
        }
        if wish.time.is_some_and(|time| start.elapsed() >= time) {
            break;
        }
        let result = run_try(one, &program, &place)
            .with_context(|| format!("try {index} ({})", one.words()))?;
        crate::complain(&format!(
            "{} of {}: {}: {}",
            records.len() + 1,
            tries.len(),
            one.words(),
            result.words()
        ));
        records.add(index, one, &result)?;
    }
    let tally = tally::Tally::of(records.all());
    crate::complain(&tally.to_string());
    if records.len() == tries.len() && !tally.is_met() {
        bail!("the self-test missed a target");
    }
    Ok(())
}

/// Builds the program as it is released; the self-test is about it, not about a debug build.
fn program() -> anyhow::Result<PathBuf> {
    crate::cargo(&["build", "--release", "--package", "sqlitmus"], &[])?;
    let own = std::env::current_exe().context("cannot find this program's own file")?;
    // target/debug/xtask -> target/release/sqlitmus
    let target = own.parent().and_then(Path::parent);
    let program = target
        .context("this program is not in a target directory")?
        .join("release/sqlitmus");
    if !program.exists() {
        bail!("{} is not there", program.display());
    }
    Ok(program)
}

/// One try: measured once, judged at each threshold.
fn run_try(one: &Try, program: &Path, place: &Path) -> anyhow::Result<record::TryResult> {
    let start = Instant::now();
    let run_file = place.join("try.run");
    let suite = place.join("suite.toml");
    std::fs::write(&suite, one.suite())?;
    let load = one
        .with_load
        .then(|| load::Load::start(one.seed, place))
        .transpose()?;
    let mut attempt = 1;
    loop {
        let _ = std::fs::remove_file(&run_file);
        let output = Command::new(program)
            .args(["measure", &suite.display().to_string(), "--quiet"])
            .args(["--seed", &one.seed.to_string()])
            .args(["--budget", &format!("{}s", one.seconds())])
            .args(one.planted_argument())
            .arg("--place")
            .arg(place)
            .arg("--output")
            .arg(&run_file)
            .output()
            .context("cannot run sqlitmus")?;
        if output.status.success() {
            break;
        }
        let said = String::from_utf8_lossy(&output.stderr);
        if output.status.code() != Some(REFUSED) || attempt == ATTEMPTS {
            bail!("sqlitmus measure: {}: {said}", output.status);
        }
        attempt += 1;
        std::thread::sleep(PAUSE);
    }
    drop(load);
    let judged = one.thresholds().iter().map(|threshold| {
        let output = Command::new(program)
            .arg("report")
            .arg(&run_file)
            .args(["--format", "json", "--threshold", &threshold.to_string()])
            .output()
            .context("cannot run sqlitmus")?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            bail!("sqlitmus report: {}: {said}", output.status);
        }
        record::Judged::read(&output.stdout, *threshold)
    });
    let judged = judged.collect::<anyhow::Result<Vec<_>>>()?;
    Ok(record::TryResult {
        judged,
        took_s: start.elapsed().as_secs_f64(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_a_directory_and_numbers() {
        let wish = Wish::parse(&["there", "--seconds", "170", "--seed", "7"]).expect("valid");
        assert_eq!(wish.directory, Path::new("there"));
        assert_eq!((wish.seed, wish.time), (7, Some(Duration::from_secs(170))));
        for bad in [
            &[][..],
            &["--seed", "7"],
            &["there", "--seed"],
            &["there", "--seed", "x"],
            &["there", "--seeds", "7"],
        ] {
            assert!(Wish::parse(bad).is_err(), "{bad:?}");
        }
    }
}
