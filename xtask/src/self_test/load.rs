//! Another load on the machine: a process of its own that computes, streams through memory and writes
//! files in bursts, with pauses, all at random. It is not pinned: now it is on the workers' core, now on
//! the other.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;
use sqlitmus_core::dataset::mix;

/// The word that makes this program a load; the process it belongs to and a seed follow.
pub(crate) const LOAD: &str = "__load";

/// Bursts that run at the same time.
const THREADS: u64 = 2;

/// A burst lasts up to this.
const LONGEST_BURST: Duration = Duration::from_millis(150);

/// A pause lasts up to this.
const LONGEST_PAUSE: Duration = Duration::from_millis(300);

/// More than the processor's caches hold, in words of eight bytes.
const STREAM_WORDS: usize = 8 << 20;

/// A file that is written in a burst has so many bytes.
const FILE_BYTES: usize = 1 << 20;

/// A load that runs until it is dropped.
pub(crate) struct Load {
    child: Child,
    file: PathBuf,
}

impl Load {
    /// Starts a load; its files are in `directory`.
    pub(crate) fn start(seed: u64, directory: &Path) -> anyhow::Result<Self> {
        let program = std::env::current_exe().context("cannot find this program's own file")?;
        let child = Command::new(program)
            .args([LOAD, &std::process::id().to_string(), &seed.to_string()])
            .current_dir(directory)
            .stdin(Stdio::null())
            .spawn()
            .context("cannot start the load")?;
        Ok(Self {
            child,
            file: directory.to_owned(),
        })
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        for thread in 0..THREADS {
            let _ = std::fs::remove_file(self.file.join(file_name(thread)));
        }
    }
}

fn file_name(thread: u64) -> String {
    format!("load-{thread}")
}

/// Is a load until the process that started it has gone.
///
/// # Errors
/// The words are no numbers.
pub(crate) fn load(parent: &str, seed: &str) -> anyhow::Result<()> {
    let parent: u32 = parent.parse().context("a process number")?;
    let seed: u64 = seed.parse().context("a seed")?;
    let threads: Vec<_> = (0..THREADS)
        .map(|thread| std::thread::spawn(move || bursts(parent, mix(seed ^ thread), thread)))
        .collect();
    for thread in threads {
        let _ = thread.join();
    }
    Ok(())
}

fn bursts(parent: u32, seed: u64, thread: u64) {
    let mut words = vec![1u64; STREAM_WORDS];
    let mut random = seed;
    let mut next = || {
        random = mix(random);
        random
    };
    let share = |of: Duration, random: u64| of.mul_f64((random >> 40) as f64 / (1u64 << 24) as f64);
    while std::os::unix::process::parent_id() == parent {
        let end = Instant::now() + share(LONGEST_BURST, next());
        match next() % 3 {
            0 => compute(end),
            1 => stream(&mut words, end),
            _ => write(thread, end),
        }
        std::thread::sleep(share(LONGEST_PAUSE, next()));
    }
}

fn compute(end: Instant) {
    let mut value = 1u64;
    while Instant::now() < end {
        for _ in 0..1000 {
            value = mix(value);
        }
    }
    std::hint::black_box(value);
}

fn stream(words: &mut [u64], end: Instant) {
    for part in words.chunks_mut(1 << 16) {
        for word in &mut *part {
            *word = word.wrapping_mul(3);
        }
        if Instant::now() >= end {
            break;
        }
    }
    std::hint::black_box(words);
}

/// Without a disk to write to it is a load all the same.
fn write(thread: u64, end: Instant) {
    let bytes = vec![7u8; FILE_BYTES];
    while Instant::now() < end {
        let Ok(mut file) = std::fs::File::create(file_name(thread)) else {
            return;
        };
        let _ = file.write_all(&bytes);
    }
}
