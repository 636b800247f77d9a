//! What the device below a file has read, counted by the kernel for the whole device: requests and
//! bytes. A process's own counters know bytes only; how many requests they came in tells how far
//! was read ahead.
//!
//! Other processes' reads count too: it means something only while nothing else reads.

use std::path::Path;

use super::kernel_files::KernelFiles;

/// The unit of the kernel's counters, whatever the device's own; see
/// Documentation/admin-guide/iostats.rst.
const SECTOR_BYTES: u64 = 512;

/// What a device has read since it was found. Means something only as a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceReads {
    /// Read requests that the device completed, adjacent ones merged.
    pub requests: u64,
    /// Bytes of them.
    pub bytes: u64,
}

impl DeviceReads {
    /// Counters of the device that a file lies on; `None` if the filesystem has no single device
    /// (tmpfs, overlay, btrfs) or the kernel does not count.
    #[must_use]
    pub fn of(path: &Path, files: &KernelFiles) -> Option<Self> {
        use std::os::unix::fs::MetadataExt;
        let device = std::fs::metadata(path).ok()?.dev();
        let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
        Self::parse(&files.text(format!("/sys/dev/block/{major}:{minor}/stat"))?)
    }

    /// What was read since earlier counters of the same device.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            requests: self.requests.saturating_sub(earlier.requests),
            bytes: self.bytes.saturating_sub(earlier.bytes),
        }
    }

    /// From `/sys/dev/block/*/stat`: read requests, merged ones, sectors ...
    fn parse(text: &str) -> Option<Self> {
        let mut numbers = text.split_whitespace().map(|word| word.parse::<u64>().ok());
        let requests = numbers.next()??;
        let sectors = numbers.nth(1)??;
        Some(Self {
            requests,
            bytes: sectors.checked_mul(SECTOR_BYTES)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_and_sectors_are_told_apart() {
        let before = DeviceReads::parse("  10  3  160  5  1 2 3 4").expect("counters");
        let after = DeviceReads::parse("  14  3  224  5  1 2 3 4").expect("counters");
        let between = after.since(before);
        assert_eq!((between.requests, between.bytes), (4, 64 * 512));
        assert_eq!(DeviceReads::parse("10 3"), None);
        assert_eq!(DeviceReads::parse("not numbers here"), None);
    }
}
