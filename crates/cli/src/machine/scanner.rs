//! An on-access scanner of our own: the kernel asks it before any file of a directory is opened, and
//! it answers as scanners of viruses do, after it has read the file. What it costs is the least that
//! such a scanner can cost, since it looks for nothing in what it reads.
//!
//! It cannot hang the machine:
//!
//! - It watches one bind mount, made in a mount namespace that belongs to the worker and its scanner
//!   alone. No other process sees that mount, so none is ever asked; it goes with the two of them.
//! - It spends a second on a file at the most, then says yes.
//! - An alarm ends it if an answer takes longer than that; when it ends, however it does, the kernel
//!   lets everything pass. It ends with the worker, too: by the kernel's word, and because its
//!   input ends.
//!
//! [`Scan`] is the worker's side, [`serve`] the scanner's; fanotify itself is `fanotify`'s business.

#[cfg(target_os = "linux")]
mod fanotify;
#[cfg(target_os = "linux")]
mod responder;
#[cfg(target_os = "linux")]
mod scan;
#[cfg(not(target_os = "linux"))]
#[path = "scanner/no_scanner.rs"]
mod scan;

#[cfg(target_os = "linux")]
pub use responder::serve;
pub use scan::Scan;
#[cfg(not(target_os = "linux"))]
pub use scan::serve;

/// The word that makes this program a worker whose store is scanned; the orchestrator's process
/// number, what the scanner does, and the directory follow.
pub const SCANNED_ARGUMENT: &str = "__scanned";

/// The word that makes this program a scanner; the worker's process number and the same follow.
pub const SCANNER_ARGUMENT: &str = "__scanner";

/// What a scanner has done so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Scanned {
    /// Files that it was asked about.
    pub files: u64,
    /// Bytes that it has read.
    pub bytes: u64,
    /// Processor time that it has used, in nanoseconds.
    pub cpu_ns: u64,
    /// Files that it has allowed without having read all of them, for want of time.
    pub unfinished: u64,
}

impl Scanned {
    /// What was done since an earlier moment, by name with unit.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> [(&'static str, u64); 4] {
        [
            ("scanned_files", self.files - earlier.files),
            ("scanned_bytes", self.bytes - earlier.bytes),
            ("scanner_cpu_ns", self.cpu_ns - earlier.cpu_ns),
            ("scans_unfinished", self.unfinished - earlier.unfinished),
        ]
    }

    fn line(&self) -> String {
        let Self {
            files,
            bytes,
            cpu_ns,
            unfinished,
        } = self;
        format!("{files} {bytes} {cpu_ns} {unfinished}\n")
    }

    fn parse(line: &str) -> Option<Self> {
        let mut numbers = line.split_whitespace().map(|word| word.parse().ok());
        let mut next = || numbers.next().flatten();
        Some(Self {
            files: next()?,
            bytes: next()?,
            cpu_ns: next()?,
            unfinished: next()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_done_survives_the_way_through_a_pipe() {
        let done = Scanned {
            files: 1,
            bytes: 20,
            cpu_ns: 300,
            unfinished: 4,
        };
        assert_eq!(Scanned::parse(&done.line()), Some(done));
        assert_eq!(Scanned::parse("1 2 3"), None);
        assert_eq!(Scanned::parse("no"), None);
        let since = done.since(&Scanned::default());
        assert_eq!(since[1], ("scanned_bytes", 20));
    }
}
