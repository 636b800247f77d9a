//! What the device below a file has read, counted by the kernel for the whole device: requests, bytes
//! and time. A process's own counters know bytes only; how many requests they came in tells how far
//! was read ahead.
//!
//! Other processes' reads count too: it means something only while nothing else reads.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::kernel_files::KernelFiles;
use super::mounts;

/// The unit of the kernel's counters, whatever the device's own; see
/// Documentation/admin-guide/iostats.rst.
const SECTOR_BYTES: u64 = 512;

/// The device that a store lies on.
#[derive(Debug, Clone)]
pub struct StoreDevice {
    /// Where the kernel shows its counters.
    counters: PathBuf,
}

/// What a device has read since it was found. Means something only as a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceReads {
    /// Read requests that the device completed, adjacent ones merged.
    pub requests: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Time that they took, one added to the other, in whole milliseconds.
    pub time_ns: u64,
}

impl StoreDevice {
    /// The device that a file lies on, or the one that its filesystem was mounted from; `None` if
    /// there is none (tmpfs, overlay) or the kernel does not count.
    #[must_use]
    pub fn of(path: &Path) -> Option<Self> {
        let own = std::fs::metadata(path).ok()?.dev();
        let of_number = |device: u64| {
            let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
            let counters = PathBuf::from(format!("/sys/dev/block/{major}:{minor}/stat"));
            counters.exists().then_some(Self { counters })
        };
        of_number(own).or_else(|| {
            // btrfs has a number of its own for every subvolume.
            let path = std::fs::canonicalize(path).ok()?;
            let table = KernelFiles::of_this_machine().bytes("/proc/self/mountinfo")?;
            let mounts = mounts::parse(&table);
            let device = (rustix::fs::major(own), rustix::fs::minor(own));
            let source = &mounts::mount_of(&mounts, &path, device)?.source;
            of_number(std::fs::metadata(source).ok()?.rdev())
        })
    }

    /// What it has read.
    #[must_use]
    pub fn reads(&self) -> Option<DeviceReads> {
        DeviceReads::parse(&KernelFiles::of_this_machine().text(&self.counters)?)
    }
}

impl DeviceReads {
    /// What was read since earlier counters of the same device.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            requests: self.requests.saturating_sub(earlier.requests),
            bytes: self.bytes.saturating_sub(earlier.bytes),
            time_ns: self.time_ns.saturating_sub(earlier.time_ns),
        }
    }

    /// From `/sys/dev/block/*/stat`: read requests, merged ones, sectors, milliseconds ...
    fn parse(text: &str) -> Option<Self> {
        let mut numbers = text.split_whitespace().map(|word| word.parse::<u64>().ok());
        let requests = numbers.next()??;
        let sectors = numbers.nth(1)??;
        let milliseconds = numbers.next()??;
        Some(Self {
            requests,
            bytes: sectors.checked_mul(SECTOR_BYTES)?,
            time_ns: milliseconds.checked_mul(1_000_000)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_and_sectors_are_told_apart() {
        let before = DeviceReads::parse("  10  3  160  5  1 2 3 4").expect("counters");
        let after = DeviceReads::parse("  14  3  224  7  1 2 3 4").expect("counters");
        let between = after.since(before);
        assert_eq!((between.requests, between.bytes), (4, 64 * 512));
        assert_eq!(between.time_ns, 2_000_000);
        assert_eq!(DeviceReads::parse("10 3 160"), None);
        assert_eq!(DeviceReads::parse("10 3"), None);
        assert_eq!(DeviceReads::parse("not numbers here"), None);
    }
}
