//! Limits that a control group (a container, a systemd unit) puts on this process: memory and
//! processor time, from cgroup version 1 and 2.
//!
//! A group's limit also binds the groups below it, so the smallest one on the way up counts. What
//! a limit means for a measurement is left to the caller.

use std::fmt;
use std::path::{Path, PathBuf};

use super::kernel_files::KernelFiles;
use super::mounts::{self, Mount};

/// A limit, if there is one and if it can be known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// The control group cannot be read.
    Unknown,
    /// It can be read and sets no limit.
    Unlimited,
    /// The smallest limit that applies.
    Of(u64),
}

impl fmt::Display for Limit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Limit::Unknown => formatter.write_str("unknown"),
            Limit::Unlimited => formatter.write_str("none"),
            Limit::Of(value) => write!(formatter, "{value}"),
        }
    }
}

/// The memory limit in bytes; page cache counts against it.
pub fn memory_limit_bytes(files: &KernelFiles) -> Limit {
    smallest(files, "memory", |files, group, version| match version {
        Version::Two => files.number(group.join("memory.max")),
        // Without a limit version 1 shows the largest multiple of a page that fits in 63 bits.
        Version::One => files
            .number(group.join("memory.limit_in_bytes"))
            .filter(|&bytes| bytes < 1 << 62),
    })
}

/// The limit on processor time in thousandths of a core; a process that reaches it is stopped until
/// the next period, usually 100 ms long.
pub fn processor_limit_millicores(files: &KernelFiles) -> Limit {
    smallest(files, "cpu", |files, group, version| {
        let (quota, period) = match version {
            Version::Two => {
                let text = files.text(group.join("cpu.max"))?;
                let (quota, period) = text.split_once(' ')?;
                (quota.parse::<u64>().ok()?, period.parse::<u64>().ok()?)
            }
            // Without a limit the quota is -1, which is no u64.
            Version::One => (
                files.number(group.join("cpu.cfs_quota_us"))?,
                files.number(group.join("cpu.cfs_period_us"))?,
            ),
        };
        quota.saturating_mul(1000).checked_div(period)
    })
}

/// Version of control groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    One,
    Two,
}

/// The smallest value that `read` finds in this process's groups and those above them.
fn smallest(
    files: &KernelFiles,
    controller: &str,
    read: impl Fn(&KernelFiles, &Path, Version) -> Option<u64>,
) -> Limit {
    let groups = groups(files, controller);
    if groups.is_empty() {
        return Limit::Unknown;
    }
    groups
        .iter()
        .filter_map(|(version, group)| read(files, group, *version))
        .min()
        .map_or(Limit::Unlimited, Limit::Of)
}

/// The folders of this process's groups for a controller, from its own up to the mount points.
pub(super) fn groups(files: &KernelFiles, controller: &str) -> Vec<(Version, PathBuf)> {
    let (Some(own), Some(table)) = (
        files.text("/proc/self/cgroup"),
        files.bytes("/proc/self/mountinfo"),
    ) else {
        return Vec::new();
    };
    let mounts = mounts::parse(&table);
    let mut folders = Vec::new();
    for line in own.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(group)) = (fields.next(), fields.next()) else {
            continue;
        };
        let version = match controllers {
            "" => Version::Two,
            list if list.split(',').any(|name| name == controller) => Version::One,
            _ => continue,
        };
        let is_its_mount = |mount: &&Mount| match version {
            Version::Two => mount.filesystem == "cgroup2",
            Version::One => {
                mount.filesystem == "cgroup"
                    && mount.filesystem_options.iter().any(|o| o == controller)
            }
        };
        if let Some(mount) = mounts.iter().find(is_its_mount) {
            // A container without its own group namespace is told the host's path, while its mount
            // begins at the container's group.
            let below = Path::new(group)
                .strip_prefix(&mount.root)
                .or_else(|_| Path::new(group).strip_prefix("/"))
                .unwrap_or(Path::new(""));
            let own_folder = mount.mount_point.join(below);
            let up = own_folder
                .ancestors()
                .take_while(|folder| folder.starts_with(&mount.mount_point));
            folders.extend(up.map(|folder| (version, folder.to_path_buf())));
        }
    }
    folders
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(files: &[(&str, &str)]) -> (tempfile::TempDir, KernelFiles) {
        let root = tempfile::tempdir().expect("temporary directory");
        for (path, text) in files {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().expect("parent")).expect("folders");
            std::fs::write(path, text).expect("write");
        }
        let files = KernelFiles::below(root.path());
        (root, files)
    }

    #[test]
    fn version_two_takes_the_smallest_limit_on_the_way_up() {
        let (_root, files) = machine(&[
            ("proc/self/cgroup", "0::/user/job\n"),
            (
                "proc/self/mountinfo",
                "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
            ),
            ("sys/fs/cgroup/user/job/memory.max", "max\n"),
            ("sys/fs/cgroup/user/memory.max", "2147483648\n"),
            ("sys/fs/cgroup/user/job/cpu.max", "150000 100000\n"),
            ("sys/fs/cgroup/user/cpu.max", "max 100000\n"),
        ]);
        assert_eq!(memory_limit_bytes(&files), Limit::Of(2 << 30));
        assert_eq!(processor_limit_millicores(&files), Limit::Of(1500));
    }

    #[test]
    fn version_one_in_a_container_that_sees_the_hosts_path() {
        let (_root, files) = machine(&[
            ("proc/self/cgroup", "4:cpu,cpuacct:/box\n3:memory:/box/a\n"),
            (
                "proc/self/mountinfo",
                "1 0 0:1 /box /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n\
                 2 0 0:2 /box/a /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n",
            ),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "1048576\n"),
            ("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n"),
            ("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"),
        ]);
        assert_eq!(memory_limit_bytes(&files), Limit::Of(1 << 20));
        assert_eq!(processor_limit_millicores(&files), Limit::Unlimited);
    }

    #[test]
    fn version_one_writes_no_limit_as_a_huge_number() {
        let (_root, files) = machine(&[
            ("proc/self/cgroup", "3:memory:/\n0::/\n"),
            (
                "proc/self/mountinfo",
                "2 0 0:2 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n",
            ),
            (
                "sys/fs/cgroup/memory/memory.limit_in_bytes",
                "9223372036854771712\n",
            ),
        ]);
        assert_eq!(memory_limit_bytes(&files), Limit::Unlimited);
    }

    #[test]
    fn nothing_readable_is_unknown() {
        let (_root, files) = machine(&[]);
        assert_eq!(memory_limit_bytes(&files), Limit::Unknown);
        assert_eq!(Limit::Unknown.to_string(), "unknown");
    }
}
