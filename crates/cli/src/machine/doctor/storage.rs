//! The place that is measured: its filesystem, mount options and disk, and the room that is left.

use serde::Serialize;
use sqlitmus_core::units::{format_bytes, format_count};

use super::{Check, Judgement, Level};
use crate::machine::block_device::{BlockDevice, DeviceKind};
use crate::machine::place::{FilesystemClass, Place};

/// The check of the filesystem and what lies below it.
pub const STORAGE: Check = Check {
    name: "storage",
    why: "Filesystem, mount options and disk decide what a write costs and what it survives: the figures \
          are about them as much as about any engine.",
};

/// The check of room.
pub const SPACE: Check = Check {
    name: "space",
    why: "A full disk ends a run, and filesystems get slower as they fill up.",
};

/// Options that change what an operation costs, each with what they do.
const COSTLY_OPTIONS: [(&str, Level, &str); 5] = [
    ("sync", Level::Warning, "every write waits for the disk"),
    (
        "dirsync",
        Level::Warning,
        "every change of a directory waits for the disk",
    ),
    (
        "strictatime",
        Level::Warning,
        "every read writes a time of access",
    ),
    (
        "data=journal",
        Level::Warning,
        "every byte is written twice",
    ),
    (
        "discard",
        Level::Note,
        "deleting also tells the disk which blocks are free",
    ),
];

/// Options under which a flush does not reach the disk.
const UNSAFE_OPTIONS: [&str; 2] = ["nobarrier", "barrier=0"];

/// A place, as far as it is judged.
#[derive(Clone, Debug, Serialize)]
pub struct Storage {
    /// Filesystem and disk in a few words.
    pub description: String,
    /// The filesystem's type.
    pub filesystem: String,
    /// `device`, `memory`, `network` or `layered`.
    pub kept: &'static str,
    /// The mount's and the filesystem's options.
    pub mount_options: Vec<String>,
    /// What kind of disk it is; `None` where none is visible.
    pub disk: Option<&'static str>,
    /// Whether the disk says it turns.
    pub is_rotational: Option<bool>,
    /// What the disk says about a volatile cache.
    pub write_cache: Option<String>,
}

impl Storage {
    /// What of a place is judged.
    #[must_use]
    pub fn of(place: &Place) -> Self {
        let device = place.device.as_ref();
        Self {
            description: place.describe(),
            filesystem: place.filesystem.clone(),
            kept: match place.class() {
                FilesystemClass::Device => "device",
                FilesystemClass::Memory => "memory",
                FilesystemClass::Network => "network",
                FilesystemClass::Layered => "layered",
            },
            mount_options: place.mount_options.clone(),
            disk: device.map(kind),
            is_rotational: device.and_then(|device| device.is_rotational),
            write_cache: device.and_then(|device| device.write_cache.clone()),
        }
    }

    /// What follows.
    #[must_use]
    pub fn judge(&self) -> Judgement {
        let mut judgement = Judgement::ok(format!(
            "{}, mounted with {}",
            self.description,
            self.mount_options.join(",")
        ));
        let elsewhere =
            "sqlitmus doctor DIR and sqlitmus measure --place DIR look at another place";
        judgement = match (self.kept, self.disk) {
            ("memory", _) => judgement.and(Level::Warning, "this is memory and no disk", elsewhere),
            ("network", _) => judgement.and(
                Level::Warning,
                "another machine or program decides what a flush means",
                elsewhere,
            ),
            ("layered", _) => judgement.and(
                Level::Warning,
                "layers hide the real filesystem, and writing to a file below copies it first",
                "use a volume or a bind mount of a real filesystem",
            ),
            (_, Some("loop")) => judgement.and(
                Level::Note,
                "a file presented as a disk: two filesystems are measured at once",
                "",
            ),
            (_, Some("virtual")) => judgement.and(
                Level::Note,
                "a virtual disk: what lies behind it, and what the host caches, is unknown",
                "call a cold cache here \"cold in this machine\", and say that the disk is virtual",
            ),
            _ => judgement,
        };
        for (option, level, effect) in COSTLY_OPTIONS {
            if self.has(option) {
                judgement = judgement.and(
                    level,
                    &format!("{option}: {effect}"),
                    &format!("mount without {option}, unless you want to know its cost"),
                );
            }
        }
        for option in UNSAFE_OPTIONS.into_iter().filter(|option| self.has(option)) {
            judgement = judgement.and(
                Level::Problem,
                &format!("{option}: a flush does not make writes durable"),
                "mount without it: figures of durable writes mean nothing here",
            );
        }
        judgement
    }

    fn has(&self, option: &str) -> bool {
        self.mount_options.iter().any(|found| found == option)
    }
}

fn kind(device: &BlockDevice) -> &'static str {
    match device.kind {
        DeviceKind::Virtual => "virtual",
        DeviceKind::HardDisk => "hard disk",
        DeviceKind::SolidState => "solid state",
        DeviceKind::Loop => "loop",
        DeviceKind::Mapped => "mapped",
        DeviceKind::Memory => "memory",
        DeviceKind::Network => "network",
        DeviceKind::Unknown => "unknown",
    }
}

/// Room in a place.
#[derive(Clone, Debug, Serialize)]
pub struct Room {
    /// Bytes that may be written.
    pub available_bytes: u64,
    /// Files and directories that may be created; `None` without a limit.
    pub available_inodes: Option<u64>,
    /// What the canonical suite needs, in bytes.
    pub needed_bytes: u64,
    /// What it needs in files and directories.
    pub needed_inodes: u64,
}

impl Room {
    /// What follows.
    #[must_use]
    pub fn judge(&self) -> Judgement {
        let inodes = match self.available_inodes {
            Some(inodes) => format!("{} inodes", format_count(inodes)),
            None => "no limit on inodes".to_owned(),
        };
        let finding = format!("{} free, {inodes}", format_bytes(self.available_bytes));
        let needed = format!(
            "the canonical suite needs {} and {} inodes",
            format_bytes(self.needed_bytes),
            format_count(self.needed_inodes)
        );
        let judgement = Judgement::ok(finding);
        let holds = |times: u64| {
            self.available_bytes >= self.needed_bytes.saturating_mul(times)
                && self
                    .available_inodes
                    .is_none_or(|free| free >= self.needed_inodes.saturating_mul(times))
        };
        if !holds(1) {
            judgement.and(
                Level::Problem,
                &needed,
                "free some space, or choose another place",
            )
        } else if !holds(2) {
            judgement.and(
                Level::Warning,
                &needed,
                "free some space: it would be nearly full",
            )
        } else {
            judgement
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn storage(kept: &'static str, disk: Option<&'static str>, options: &[&str]) -> Level {
        let storage = Storage {
            description: "ext4 on /dev/sda1".to_owned(),
            filesystem: "ext4".to_owned(),
            kept,
            mount_options: options.iter().map(|option| (*option).to_owned()).collect(),
            disk,
            is_rotational: Some(false),
            write_cache: None,
        };
        storage.judge().level
    }

    #[test]
    fn places_and_options_are_judged() {
        let disk = Some("solid state");
        assert_eq!(storage("device", disk, &["rw", "relatime"]), Level::Ok);
        assert_eq!(storage("device", Some("virtual"), &["rw"]), Level::Note);
        assert_eq!(storage("memory", None, &["rw"]), Level::Warning);
        assert_eq!(storage("layered", None, &["rw"]), Level::Warning);
        assert_eq!(storage("device", disk, &["rw", "sync"]), Level::Warning);
        assert_eq!(
            storage("device", disk, &["rw", "barrier=0"]),
            Level::Problem
        );
    }

    #[test]
    fn room_is_judged_by_what_is_needed() {
        let room = |available_bytes, available_inodes| {
            let room = Room {
                available_bytes,
                available_inodes,
                needed_bytes: 1000,
                needed_inodes: 100,
            };
            room.judge().level
        };
        assert_eq!(room(5000, None), Level::Ok);
        assert_eq!(room(1500, Some(1000)), Level::Warning);
        assert_eq!(room(500, Some(1000)), Level::Problem);
        assert_eq!(room(5000, Some(99)), Level::Problem);
    }
}
