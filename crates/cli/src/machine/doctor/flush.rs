//! How long a flush takes here, and whether it can be true.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use serde::Serialize;
use sqlitmus_core::units::format_microseconds;

use super::{Check, Judgement, Level};

/// The check.
pub const CHECK: Check = Check {
    name: "flush",
    why: "A commit that survives a loss of power costs at least one flush: where flushes are answered \
          before the data is safe, durable writes look faster than they are.",
};

/// Flushes of each kind, at the most.
const FLUSHES_MAX: usize = 400;
/// Flushes of each kind after which the time limit holds.
const FLUSHES_MIN: usize = 20;
/// Bytes that are overwritten before each flush: one page.
const WRITE_BYTES: usize = 4096;
/// Size of the file, in bytes.
const FILE_BYTES: usize = 64 * WRITE_BYTES;

/// No known disk writes a page and its filesystem's journal in less, in nanoseconds: it is the time of a
/// few microseconds' transfer to a cache that is protected against a loss of power, and of the kernel's own work.
const TOO_FAST_NS: u64 = 15_000;
/// Disks with a volatile cache that must really write take longer than this, in nanoseconds.
const FAST_WITH_VOLATILE_CACHE_NS: u64 = 60_000;
/// A 99th percentile so many times the median makes single commits hard to compare.
const TAIL_FACTOR: u64 = 20;

/// Durations of one kind of flush, in nanoseconds.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct FlushTimes {
    /// How many were measured.
    pub count: usize,
    /// Shortest.
    pub shortest_ns: u64,
    /// Median.
    pub median_ns: u64,
    /// 99th percentile.
    pub p99_ns: u64,
    /// Longest.
    pub longest_ns: u64,
}

impl FlushTimes {
    /// Of some durations; `None` without any.
    #[must_use]
    pub fn of(mut durations_ns: Vec<u64>) -> Option<Self> {
        durations_ns.sort_unstable();
        let count = durations_ns.len();
        // The smallest value that at least this share of all values does not exceed.
        let at = |percent: usize| {
            let rank = (count * percent).div_ceil(100).max(1);
            durations_ns.get(rank - 1).copied()
        };
        Some(Self {
            count,
            shortest_ns: *durations_ns.first()?,
            median_ns: at(50)?,
            p99_ns: at(99)?,
            longest_ns: *durations_ns.last()?,
        })
    }
}

/// What was measured of flushes.
#[derive(Clone, Debug, Serialize)]
pub struct Flush {
    /// fsync(2) after a page was overwritten.
    pub fsync: Option<FlushTimes>,
    /// fdatasync(2) likewise.
    pub fdatasync: Option<FlushTimes>,
    /// Whether the filesystem lies on a disk of this machine, where a flush means something.
    pub on_device: bool,
    /// What the disk says about a volatile cache.
    pub write_cache: Option<String>,
    /// Why nothing was measured; empty if it was.
    pub failure: String,
}

/// Overwrites pages of a new file and flushes each, for about as long as given for each kind of
/// flush. Returns the durations of fsync and fdatasync.
///
/// # Errors
/// The file exists, or the operating system failed.
pub fn measure(path: &Path, time: Duration) -> io::Result<(Vec<u64>, Vec<u64>)> {
    let file = File::create_new(path)?;
    file.write_all_at(&vec![1; FILE_BYTES], 0)?;
    file.sync_all()?;
    let fsync = flushes(&file, time, File::sync_all)?;
    let fdatasync = flushes(&file, time, File::sync_data)?;
    Ok((fsync, fdatasync))
}

fn flushes(
    file: &File,
    time: Duration,
    flush: impl Fn(&File) -> io::Result<()>,
) -> io::Result<Vec<u64>> {
    let start = Instant::now();
    let mut durations = Vec::with_capacity(FLUSHES_MAX);
    while durations.len() < FLUSHES_MAX && (durations.len() < FLUSHES_MIN || start.elapsed() < time)
    {
        let page = durations.len() * 37 % (FILE_BYTES / WRITE_BYTES);
        let content = [durations.len() as u8; WRITE_BYTES];
        file.write_all_at(&content, (page * WRITE_BYTES) as u64)?;
        let begin = Instant::now();
        flush(file)?;
        durations.push(u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX));
    }
    Ok(durations)
}

impl Flush {
    /// What follows.
    #[must_use]
    pub fn judge(&self) -> Judgement {
        let (Some(fsync), Some(fdatasync)) = (self.fsync, self.fdatasync) else {
            let finding = format!("not measured: {}", self.failure);
            return Judgement::new(
                Level::Warning,
                finding,
                "see whether the place can be written to",
            );
        };
        let shown = |times: FlushTimes| {
            format!(
                "{} us, 99th percentile {} us",
                format_microseconds(times.median_ns as f64),
                format_microseconds(times.p99_ns as f64)
            )
        };
        let judgement = Judgement::ok(format!(
            "fsync of a page {}; fdatasync {}",
            shown(fsync),
            shown(fdatasync)
        ));
        if !self.on_device {
            let finding = "no disk of this machine stands behind it";
            return judgement.and(Level::Note, finding, "");
        }
        let pull =
            "only pulling the plug shows what is kept; until then do not call these writes durable";
        let volatile = self.write_cache.as_deref() == Some("write back");
        let median = fsync.median_ns.min(fdatasync.median_ns);
        if median < TOO_FAST_NS {
            judgement.and(
                Level::Warning,
                "faster than any disk: something answers before the data is safe",
                pull,
            )
        } else if volatile && median < FAST_WITH_VOLATILE_CACHE_NS {
            let finding = "suspiciously fast for a disk that says it has a volatile cache";
            judgement.and(Level::Note, finding, pull)
        } else if fsync.p99_ns > fsync.median_ns.saturating_mul(TAIL_FACTOR) {
            let finding = "the slowest flushes take very much longer than most";
            let advice =
                "look at percentiles of durable writes, not at means; give them more rounds";
            judgement.and(Level::Note, finding, advice)
        } else {
            judgement
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flush(median_ns: u64, p99_ns: u64, on_device: bool, cache: &str) -> Level {
        let times = Some(FlushTimes {
            count: 100,
            shortest_ns: median_ns,
            median_ns,
            p99_ns,
            longest_ns: p99_ns,
        });
        let flush = Flush {
            fsync: times,
            fdatasync: times,
            on_device,
            write_cache: Some(cache.to_owned()),
            failure: String::new(),
        };
        flush.judge().level
    }

    #[test]
    fn what_is_too_fast_to_be_true_is_said() {
        assert_eq!(flush(5_000_000, 9_000_000, true, "write back"), Level::Ok);
        assert_eq!(flush(30_000, 60_000, true, "write through"), Level::Ok);
        assert_eq!(flush(30_000, 60_000, true, "write back"), Level::Note);
        assert_eq!(flush(2_000, 3_000, true, "write through"), Level::Warning);
        assert_eq!(flush(2_000, 3_000, false, ""), Level::Note);
        assert_eq!(
            flush(100_000, 9_000_000, true, "write through"),
            Level::Note
        );
    }

    #[test]
    fn percentiles_are_values_that_occurred() {
        let times = FlushTimes::of((1..=200).rev().collect()).expect("some");
        assert_eq!((times.shortest_ns, times.median_ns), (1, 100));
        assert_eq!((times.p99_ns, times.longest_ns), (198, 200));
        assert!(FlushTimes::of(Vec::new()).is_none());
        assert_eq!(FlushTimes::of(vec![7]).expect("one").p99_ns, 7);
    }

    #[test]
    fn a_few_flushes_are_measured_even_without_time() {
        let folder = tempfile::tempdir().expect("temporary directory");
        let path = folder.path().join("flush");
        let (fsync, fdatasync) = measure(&path, Duration::ZERO).expect("measured");
        assert_eq!((fsync.len(), fdatasync.len()), (FLUSHES_MIN, FLUSHES_MIN));
        assert!(
            measure(&path, Duration::ZERO).is_err(),
            "nothing is overwritten"
        );
    }
}
