//! A control group of our own that limits the memory of a process, with everything that the kernel caches for
//! it: version 2 (`memory.max`) or version 1 (`memory.limit_in_bytes`), whichever the machine has. Who is put into
//! it, and what follows from the limit, is for the callers.
//!
//! A group is a directory that bears the number and the start of the process that has made it. It is removed
//! when it is dropped; what a killed process has left is removed by [`remove_leftovers`], and nothing else is.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use sqlitmus_core::units::format_bytes;

use super::control_group::{Version, groups};
use super::kernel_files::KernelFiles;

/// What the names of our groups begin with.
const PREFIX: &str = "sqlitmus-memory-";

/// Less than this is not enough for a process that measures.
pub const LEAST_BYTES: u64 = 16 << 20;

/// The kernel needs a moment to see that the last process has gone.
const REMOVAL_TRIES: u32 = 80;
const BETWEEN_TRIES: Duration = Duration::from_millis(25);

/// Groups of this process are told apart by it.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// Why memory cannot be limited.
#[derive(Debug, thiserror::Error)]
#[error("memory cannot be limited to {}: {reason}", format_bytes(*bytes))]
pub struct MemoryGroupError {
    /// The limit.
    bytes: u64,
    /// What the last try came to.
    reason: String,
}

/// A group with a limit; removed when it is dropped.
#[derive(Debug)]
pub struct MemoryGroup {
    path: PathBuf,
    version: Version,
}

impl MemoryGroup {
    /// Makes a group below this process's own, or where version 2 does not allow that, beside it or further up.
    ///
    /// # Errors
    /// There is no controller for memory, or no right to make a group.
    pub fn create(bytes: u64) -> Result<Self, MemoryGroupError> {
        Self::create_on(&KernelFiles::of_this_machine(), bytes)
    }

    fn create_on(files: &KernelFiles, bytes: u64) -> Result<Self, MemoryGroupError> {
        let mut reason = "this machine has no control group for memory".to_owned();
        for (version, parent) in groups(files, "memory") {
            match Self::create_in(&files.path(&parent), version, bytes) {
                Ok(group) => return Ok(group),
                Err(error) => reason = format!("{}: {error}", parent.display()),
            }
        }
        Err(MemoryGroupError { bytes, reason })
    }

    fn create_in(parent: &Path, version: Version, bytes: u64) -> io::Result<Self> {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let process = std::process::id();
        let started = started(process).unwrap_or(0);
        let name = format!("{PREFIX}{process}-{started}-{number}");
        let path = parent.join(name);
        if version == Version::Two && !has_memory(parent) {
            // Refused where the group has processes of its own: then one further up is tried.
            let _ = fs::write(parent.join("cgroup.subtree_control"), "+memory");
        }
        fs::create_dir(&path)?;
        // From here on it goes when it is dropped.
        let group = Self { path, version };
        let (limit, swap) = match version {
            Version::Two => ("memory.max", "memory.swap.max"),
            Version::One => ("memory.limit_in_bytes", "memory.swappiness"),
        };
        let file = group.path.join(limit);
        if !file.exists() {
            let missing = format!("no {limit} in a group made there");
            return Err(io::Error::new(io::ErrorKind::Unsupported, missing));
        }
        fs::write(&file, bytes.to_string())?;
        let page_bytes = rustix::param::page_size() as u64;
        let in_force = fs::read_to_string(&file)?.trim().parse::<u64>().ok();
        if in_force.is_none_or(|found| found.abs_diff(bytes) > page_bytes) {
            return Err(io::Error::other(format!("the kernel did not keep {limit}")));
        }
        // What is swapped out would be memory all the same. A kernel without swap has no such file.
        let _ = fs::write(group.path.join(swap), "0");
        Ok(group)
    }

    /// Puts a process into the group; what it has in memory already stays where it was counted.
    ///
    /// # Errors
    /// It has gone, or the kernel refused.
    pub fn take_in(&self, process: u32) -> io::Result<()> {
        fs::write(self.path.join("cgroup.procs"), process.to_string())
    }

    /// Version of the control groups it is one of: `1` or `2`.
    #[must_use]
    pub fn version(&self) -> &'static str {
        match self.version {
            Version::One => "1",
            Version::Two => "2",
        }
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        // What was cached for it is given up, so that nobody has it for free later.
        let force = match self.version {
            Version::One => ("memory.force_empty", "0".to_owned()),
            Version::Two => ("memory.reclaim", u64::from(u32::MAX).to_string()),
        };
        for _ in 0..REMOVAL_TRIES {
            let _ = fs::write(self.path.join(force.0), &force.1);
            match fs::remove_dir(&self.path) {
                Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {
                    std::thread::sleep(BETWEEN_TRIES);
                }
                // What cannot be removed now, a later start removes.
                _ => return,
            }
        }
    }
}

/// Removes groups of processes that have ended. Returns how many.
pub fn remove_leftovers() -> usize {
    let files = KernelFiles::of_this_machine();
    let mut removed = 0;
    for (_, parent) in groups(&files, "memory") {
        let entries = fs::read_dir(files.path(&parent))
            .into_iter()
            .flatten()
            .flatten();
        for entry in entries {
            let name = entry.file_name().to_string_lossy().into_owned();
            if is_left(&name, started) && fs::remove_dir(entry.path()).is_ok() {
                removed += 1;
            }
        }
    }
    removed
}

/// Whether a group of this name is ours and its process has ended; `started` knows when those that have not
/// began.
fn is_left(name: &str, started: impl Fn(u32) -> Option<u64>) -> bool {
    let Some(numbers) = name.strip_prefix(PREFIX) else {
        return false;
    };
    let numbers: Option<Vec<u64>> = numbers.split('-').map(|word| word.parse().ok()).collect();
    match numbers.as_deref() {
        Some([process, began, _]) => u32::try_from(*process)
            .ok()
            .is_some_and(|process| started(process) != Some(*began)),
        _ => false,
    }
}

/// Whether the groups below one of version 2 have a limit on memory.
fn has_memory(parent: &Path) -> bool {
    fs::read_to_string(parent.join("cgroup.subtree_control"))
        .is_ok_and(|list| list.split_whitespace().any(|name| name == "memory"))
}

/// When a process began, in the kernel's ticks since the machine did; `None` if there is none.
fn started(process: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name of the program may contain anything, but ends at the last parenthesis; `starttime` is field
    // 22 of proc_pid_stat(5), the third being the first after it.
    let (_, fields) = text.rsplit_once(')')?;
    fields.split_whitespace().nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn only_groups_of_processes_that_have_ended_are_left() {
        let known = |process: u32| (process == 7).then_some(100);
        assert!(is_left("sqlitmus-memory-8-100-0", known), "it has ended");
        assert!(is_left("sqlitmus-memory-7-99-0", known), "another began");
        assert!(!is_left("sqlitmus-memory-7-100-3", known), "it lives");
        for foreign in [
            "sqlitmus-memory-",
            "sqlitmus-memory-8-100",
            "user.slice",
            "sqlitmus-memory-8-x-0",
        ] {
            assert!(!is_left(foreign, known), "{foreign}");
        }
    }

    #[test]
    fn a_process_knows_when_it_began() {
        assert!(started(std::process::id()).is_some());
        assert_eq!(started(u32::MAX), None);
    }

    #[test]
    fn a_machine_without_control_groups_says_so() {
        let root = tempfile::tempdir().expect("a folder");
        let files = KernelFiles::below(root.path());
        let refused = MemoryGroup::create_on(&files, 64 << 20).expect_err("refused");
        assert!(
            refused.to_string().contains("no control group"),
            "{refused}"
        );
    }

    #[test]
    fn a_group_limits_what_is_cached_for_a_process_and_goes() {
        let limit = 32u64 << 20;
        let group = match MemoryGroup::create(limit) {
            Ok(group) => group,
            Err(error) => {
                eprintln!("skipped: {error}");
                return;
            }
        };
        let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).expect("a folder");
        let path = folder.path().join("large");
        fs::write(&path, vec![7u8; 96 << 20]).expect("written");
        crate::machine::page_cache::evict(&path).expect("evicted");
        let mut child = Command::new("sh")
            .args([
                "-c",
                "read word; cat \"$1\" > /dev/null; echo done; read word",
                "sh",
            ])
            .arg(&path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("sh runs");
        group.take_in(child.id()).expect("taken in");
        let mut input = child.stdin.take().expect("piped");
        let mut output = io::BufReader::new(child.stdout.take().expect("piped"));
        io::Write::write_all(&mut input, b"go\n").expect("told");
        let mut line = String::new();
        io::BufRead::read_line(&mut output, &mut line).expect("said");
        assert_eq!(line, "done\n");
        if let Ok(found) = crate::machine::page_cache::residency(&path) {
            let cached = found.cached_pages * rustix::param::page_size() as u64;
            assert!(cached <= limit, "{cached} bytes are cached");
        }
        drop(input);
        child.wait().expect("ended");
        let path = group.path.clone();
        drop(group);
        assert!(!path.exists(), "{} is still there", path.display());
    }
}
