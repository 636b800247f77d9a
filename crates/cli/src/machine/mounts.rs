//! The mount table, from `/proc/self/mountinfo`: which mount a path lies on, and with what options.
//!
//! What the options and the filesystem mean for a measurement is left to `place`.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// One line of the mount table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// Major and minor number that files on this mount report as their device; on btrfs and
    /// overlay they may report another one.
    pub device: (u32, u32),
    /// The part of the filesystem that is mounted: `/`, or a folder for bind mounts and subvolumes.
    pub root: PathBuf,
    /// Where it is mounted.
    pub mount_point: PathBuf,
    /// The filesystem's type, with its subtype if it has one: `ext4`, `fuse.sshfs`.
    pub filesystem: String,
    /// What is mounted: a device, `host:/export`, or a word such as `tmpfs`. May be empty.
    pub source: PathBuf,
    /// Options of this mount.
    pub mount_options: Vec<String>,
    /// Options of the filesystem, the same for all its mounts.
    pub filesystem_options: Vec<String>,
}

impl Mount {
    /// Whether nothing can be written through this mount.
    pub fn is_read_only(&self) -> bool {
        let is_read_only = |options: &[String]| options.iter().any(|option| option == "ro");
        is_read_only(&self.mount_options) || is_read_only(&self.filesystem_options)
    }

    /// All options in one list: `ro` or `rw` first, each option once.
    pub fn options(&self) -> Vec<String> {
        let access = if self.is_read_only() { "ro" } else { "rw" };
        let mut all = vec![access.to_owned()];
        for option in self.mount_options.iter().chain(&self.filesystem_options) {
            if option != "ro" && option != "rw" && !option.is_empty() && !all.contains(option) {
                all.push(option.clone());
            }
        }
        all
    }
}

/// The mounts in a `mountinfo` text, in its order; lines that do not follow the format are left out.
///
/// The format is described in proc(5), under `/proc/pid/mountinfo`.
pub fn parse(mountinfo: &[u8]) -> Vec<Mount> {
    mountinfo
        .split(|&byte| byte == b'\n')
        .filter_map(parse_line)
        .collect()
}

fn parse_line(line: &[u8]) -> Option<Mount> {
    // Single spaces, not white space: an empty source is written as an empty field.
    let mut fields = line.split(|&byte| byte == b' ');
    let device = text(fields.nth(2)?);
    let (major, minor) = device.split_once(':')?;
    let root = unescape_path(fields.next()?);
    let mount_point = unescape_path(fields.next()?);
    let mount_options = options(fields.next()?);
    // Any number of optional fields, ended by a lone hyphen.
    fields.by_ref().find(|field| *field == b"-")?;
    Some(Mount {
        device: (major.parse().ok()?, minor.parse().ok()?),
        root,
        mount_point,
        filesystem: text(fields.next()?),
        source: unescape_path(fields.next()?),
        mount_options,
        filesystem_options: options(fields.next().unwrap_or_default()),
    })
}

/// The mount that an absolute, canonical path lies on.
///
/// Of the mounts of the path's own `device` (major, minor) it is the one with the longest mount
/// point above the path. Where none has that device (btrfs subvolumes and overlay report a device
/// that the mount table does not list), the longest mount point alone decides. Among equals the
/// last wins, since it was mounted over the others.
pub fn mount_of<'mounts>(
    mounts: &'mounts [Mount],
    path: &Path,
    device: (u32, u32),
) -> Option<&'mounts Mount> {
    let above = || {
        mounts
            .iter()
            .filter(|mount| path.starts_with(&mount.mount_point))
    };
    let depth = |mount: &&Mount| mount.mount_point.components().count();
    above()
        .filter(|mount| mount.device == device)
        .max_by_key(depth)
        .or_else(|| above().max_by_key(depth))
}

fn options(field: &[u8]) -> Vec<String> {
    field.split(|&byte| byte == b',').map(text).collect()
}

fn text(field: &[u8]) -> String {
    String::from_utf8_lossy(&unescape(field)).into_owned()
}

fn unescape_path(field: &[u8]) -> PathBuf {
    PathBuf::from(OsString::from_vec(unescape(field)))
}

/// Undoes the kernel's octal escapes: `\040` for a space, also for tab, newline, `#` and backslash.
fn unescape(field: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&first, after)) = rest.split_first() {
        match after {
            [
                a @ b'0'..=b'3',
                b @ b'0'..=b'7',
                c @ b'0'..=b'7',
                after @ ..,
            ] if first == b'\\' => {
                bytes.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
                rest = after;
            }
            _ => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &[u8] = b"\
22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard
40 27 7:1 / /mnt/with\\040space\\011and\\134tab rw,nosuid shared:3 master:1 - xfs /dev/loop1 ro,inode64
41 27 0:45 /@home /home rw - btrfs /dev/sda2 rw,compress=zstd:3,subvol=/@home
42 27 0:50 / /mnt/empty rw -  none rw
43 42 0:51 / /mnt/empty rw - tmpfs  rw,size=4k
44 27 254:0 /srv /mnt/bind ro,relatime - ext4 /dev/vda rw
broken line
";

    fn mount_at(path: &str, device: (u32, u32)) -> Mount {
        let mounts = parse(TABLE);
        mount_of(&mounts, Path::new(path), device)
            .expect("a mount")
            .clone()
    }

    #[test]
    fn escapes_optional_fields_and_empty_sources_are_read() {
        let mounts = parse(TABLE);
        assert_eq!(mounts.len(), 7);
        let escaped = &mounts[2];
        assert_eq!(
            escaped.mount_point,
            Path::new("/mnt/with space\tand\\tab"),
            "octal escapes"
        );
        assert_eq!(escaped.filesystem, "xfs");
        assert!(escaped.is_read_only(), "the filesystem is read-only");
        assert_eq!(escaped.options(), ["ro", "nosuid", "inode64"]);
        assert_eq!(mounts[5].filesystem, "tmpfs");
        assert_eq!(mounts[5].source, Path::new(""));
    }

    #[test]
    fn the_device_decides_before_the_prefix() {
        assert_eq!(mount_at("/work", (254, 0)).mount_point, Path::new("/"));
        let bind = mount_at("/mnt/bind/x", (254, 0));
        assert_eq!(bind.mount_point, Path::new("/mnt/bind"));
        assert!(bind.is_read_only());
        // Of two mounts at one point, the one the path is really on.
        let covered = mount_at("/mnt/empty", (0, 50));
        assert_eq!(covered.source, Path::new("none"));
        // A path that only looks like it is below a mount point.
        assert_eq!(
            mount_at("/mnt/bindings", (254, 0)).mount_point,
            Path::new("/")
        );
    }

    #[test]
    fn an_unlisted_device_falls_back_to_the_longest_prefix() {
        let home = mount_at("/home/user", (0, 99));
        assert_eq!(home.filesystem, "btrfs");
        assert_eq!(mount_at("/mnt/empty/x", (0, 99)).filesystem, "tmpfs");
    }

    #[test]
    fn a_backslash_without_three_octal_digits_stays() {
        assert_eq!(unescape(b"a\\04"), b"a\\04");
        assert_eq!(unescape(b"\\777x"), b"\\777x");
        assert_eq!(unescape(b"\\043"), b"#");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_own_table_names_the_root() {
        let table = std::fs::read("/proc/self/mountinfo").expect("mountinfo");
        let mounts = parse(&table);
        assert!(mount_of(&mounts, Path::new("/proc"), (u32::MAX, 0)).is_some());
    }
}
