//! The block device under a filesystem: what kind of disk it is, as far as the kernel's `/sys` and
//! the disk's own name tell, through partitions, loop devices and mapped devices.
//!
//! Which device belongs to a path is left to `place`. A disk's kind is a hint: a hypervisor can
//! present anything as anything.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::kernel_files::KernelFiles;

/// What kind of disk a device is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceKind {
    /// Presented by a hypervisor or a cloud: nothing is known of what lies behind.
    Virtual,
    /// Turns, so it seeks.
    HardDisk,
    /// Flash or the like.
    SolidState,
    /// A file presented as a device; `beneath` is the disk that file lies on.
    Loop,
    /// Made of other devices (LVM, encryption, RAID), which are `beneath`.
    Mapped,
    /// Memory presented as a device (zram, ramdisk).
    Memory,
    /// Reached over a network (nbd, rbd, drbd).
    Network,
    /// The kernel does not say.
    Unknown,
}

/// A block device, whole or a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockDevice {
    /// The kernel's name of it: `vda1`.
    pub name: String,
    /// The kernel's name of the whole disk: `vda`.
    pub disk: String,
    /// What kind of disk it is.
    pub kind: DeviceKind,
    /// What the disk says of itself; virtual disks often say `true` whatever lies behind.
    pub is_rotational: Option<bool>,
    /// Read-ahead in KiB.
    pub read_ahead_kib: Option<u64>,
    /// Whether the disk says it holds writes in a volatile cache: `write back` or `write through`.
    pub write_cache: Option<String>,
    /// The request scheduler in use.
    pub scheduler: Option<String>,
    /// Vendor and model as the disk names itself; for mapped devices what maps them.
    pub model: Option<String>,
    /// The file behind a loop device.
    pub backing_file: Option<PathBuf>,
    /// The devices a loop or mapped device rests on.
    pub beneath: Vec<BlockDevice>,
}

/// How many devices may lie on top of each other before we stop looking.
const DEPTH_MAX: u32 = 6;

impl BlockDevice {
    /// The device with this major and minor number, or `None` if the kernel shows no such block
    /// device, as for tmpfs, network filesystems and btrfs's own numbers.
    pub fn find(files: &KernelFiles, device: (u32, u32)) -> Option<Self> {
        Self::find_at_depth(files, device, 0)
    }

    fn find_at_depth(files: &KernelFiles, device: (u32, u32), depth: u32) -> Option<Self> {
        let link = files.path(format!("/sys/dev/block/{}:{}", device.0, device.1));
        let folder = std::fs::canonicalize(link).ok()?;
        let name = last_name(&folder)?;
        // A partition's folder lies inside its disk's, which alone has a queue.
        let disk_folder = if folder.join("partition").exists() {
            folder.parent()?.to_path_buf()
        } else {
            folder
        };
        // These folders are absolute already: they are read as they are.
        let disk_files = KernelFiles::below(&disk_folder);
        let disk = last_name(&disk_folder)?;
        let is_rotational = disk_files
            .number("queue/rotational")
            .map(|value| value != 0);
        let model = model(&disk_files);
        let kind = kind(&disk, &disk_folder, model.as_deref(), is_rotational);
        let backing_file = disk_files.text("loop/backing_file").map(PathBuf::from);
        let beneath = if depth < DEPTH_MAX {
            devices_beneath(&disk_files, backing_file.as_deref())
                .into_iter()
                .filter_map(|device| Self::find_at_depth(files, device, depth + 1))
                .collect()
        } else {
            Vec::new()
        };
        Some(Self {
            name,
            kind,
            is_rotational,
            read_ahead_kib: disk_files.number("queue/read_ahead_kb"),
            write_cache: disk_files.text("queue/write_cache"),
            scheduler: scheduler(&disk_files),
            model,
            backing_file,
            beneath,
            disk,
        })
    }

    /// The kind in words: `virtual disk`, `loop device on a hard disk`.
    pub fn describe(&self) -> String {
        let words = match self.kind {
            DeviceKind::Virtual => "virtual disk",
            DeviceKind::HardDisk => "hard disk",
            DeviceKind::SolidState => "solid-state disk",
            DeviceKind::Loop => "loop device",
            DeviceKind::Mapped => match &self.model {
                Some(model) => return on(model, &self.beneath),
                None => "mapped device",
            },
            DeviceKind::Memory => "device in memory",
            DeviceKind::Network => "network disk",
            DeviceKind::Unknown => "disk of unknown kind",
        };
        on(words, &self.beneath)
    }
}

fn on(words: &str, beneath: &[BlockDevice]) -> String {
    match beneath {
        [] => words.to_owned(),
        [one] => format!("{words} on a {}", one.describe()),
        [first, ..] => format!(
            "{words} of {} devices, the first a {}",
            beneath.len(),
            first.describe()
        ),
    }
}

fn last_name(folder: &Path) -> Option<String> {
    Some(folder.file_name()?.to_string_lossy().into_owned())
}

/// Vendor and model of a disk, or what maps a mapped device: `LVM volume`, `raid1`.
fn model(disk: &KernelFiles) -> Option<String> {
    if let Some(identifier) = disk.text("dm/uuid") {
        return Some(match identifier.split('-').next()? {
            "CRYPT" => "encrypted volume".to_owned(),
            "LVM" => "LVM volume".to_owned(),
            other => other.to_owned(),
        });
    }
    if let Some(level) = disk.text("md/level") {
        return Some(level);
    }
    let model = disk.text("device/model")?;
    // Some drivers put a bus number where others put a name.
    let vendor = disk
        .text("device/vendor")
        .filter(|vendor| !vendor.starts_with("0x") && vendor != "ATA");
    Some(vendor.map_or_else(|| model.clone(), |vendor| format!("{vendor} {model}")))
}

fn kind(disk: &str, folder: &Path, model: Option<&str>, is_rotational: Option<bool>) -> DeviceKind {
    let named = |names: &[&str]| {
        names.iter().any(|name| {
            let rest = disk.strip_prefix(name);
            rest.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit() || c == '-'))
        })
    };
    if named(&["loop"]) {
        DeviceKind::Loop
    } else if named(&["dm", "md", "bcache"]) {
        DeviceKind::Mapped
    } else if named(&["zram", "ram"]) {
        DeviceKind::Memory
    } else if named(&["nbd", "rbd", "drbd"]) {
        DeviceKind::Network
    } else if is_virtual(disk, folder, model) {
        DeviceKind::Virtual
    } else {
        match is_rotational {
            Some(true) => DeviceKind::HardDisk,
            Some(false) => DeviceKind::SolidState,
            None => DeviceKind::Unknown,
        }
    }
}

/// Whether the bus or the model is one that only hypervisors and clouds present.
fn is_virtual(disk: &str, folder: &Path, model: Option<&str>) -> bool {
    const MODELS: [&str; 10] = [
        "qemu",
        "vbox",
        "virtual",
        "vmware",
        "amazon elastic block",
        "amazon ec2",
        "nvme_card",
        "persistentdisk",
        "google",
        "msft",
    ];
    const BUSES: [&str; 3] = ["virtio", "vbd-", "VMBUS:"];
    let bus = folder.to_string_lossy();
    let model = model.unwrap_or_default().to_lowercase();
    disk.starts_with("vd")
        || disk.starts_with("xvd")
        || BUSES.iter().any(|hint| bus.contains(&format!("/{hint}")))
        || MODELS.iter().any(|hint| model.contains(hint))
}

fn scheduler(disk: &KernelFiles) -> Option<String> {
    let text = disk.text("queue/scheduler")?;
    let chosen = text
        .split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'));
    Some(chosen.map_or(text.as_str(), |(name, _)| name).to_owned())
}

/// The numbers of the devices that a loop or mapped device rests on.
fn devices_beneath(disk: &KernelFiles, backing_file: Option<&Path>) -> Vec<(u32, u32)> {
    if let Some(file) = backing_file {
        let Ok(metadata) = std::fs::metadata(file) else {
            return Vec::new();
        };
        return vec![numbers(metadata.dev())];
    }
    let Ok(entries) = std::fs::read_dir(disk.path("slaves")) else {
        return Vec::new();
    };
    let mut names: Vec<_> = entries.flatten().map(|entry| entry.file_name()).collect();
    names.sort();
    names
        .iter()
        .filter_map(|name| {
            let text = disk.text(Path::new("slaves").join(name).join("dev"))?;
            let (major, minor) = text.split_once(':')?;
            Some((major.parse().ok()?, minor.parse().ok()?))
        })
        .collect()
}

/// Major and minor number of a device number as `stat` gives it.
pub fn numbers(device: u64) -> (u32, u32) {
    // The type's width differs between platforms.
    let device = device as rustix::fs::Dev;
    (rustix::fs::major(device), rustix::fs::minor(device))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// A `/sys` with one disk folder per call of `disk`.
    struct Machine {
        root: tempfile::TempDir,
    }

    impl Machine {
        fn new() -> Self {
            let root = tempfile::tempdir().expect("temporary directory");
            std::fs::create_dir_all(root.path().join("sys/dev/block")).expect("folders");
            Self { root }
        }

        fn device(&self, number: &str, folder: &str, files: &[(&str, &str)]) -> &Self {
            let folder = self.root.path().join("sys/devices").join(folder);
            std::fs::create_dir_all(&folder).expect("folders");
            for (name, text) in files {
                let path = folder.join(name);
                std::fs::create_dir_all(path.parent().expect("parent")).expect("folders");
                std::fs::write(path, text).expect("write");
            }
            let link = self.root.path().join("sys/dev/block").join(number);
            symlink(folder, link).expect("link");
            self
        }

        fn find(&self, device: (u32, u32)) -> Option<BlockDevice> {
            BlockDevice::find(&KernelFiles::below(self.root.path()), device)
        }
    }

    #[test]
    fn a_partition_takes_its_disks_properties() {
        let machine = Machine::new();
        machine
            .device(
                "8:0",
                "pci/ata1/block/sda",
                &[
                    ("queue/rotational", "1\n"),
                    ("queue/read_ahead_kb", "128\n"),
                    ("queue/scheduler", "none [mq-deadline] bfq\n"),
                    ("queue/write_cache", "write back\n"),
                    ("device/model", "ST2000LM015\n"),
                    ("device/vendor", "ATA     \n"),
                ],
            )
            .device("8:1", "pci/ata1/block/sda/sda1", &[("partition", "1\n")]);
        let found = machine.find((8, 1)).expect("device");
        assert_eq!((found.name.as_str(), found.disk.as_str()), ("sda1", "sda"));
        assert_eq!(found.kind, DeviceKind::HardDisk);
        assert_eq!(found.read_ahead_kib, Some(128));
        assert_eq!(found.scheduler.as_deref(), Some("mq-deadline"));
        assert_eq!(found.model.as_deref(), Some("ST2000LM015"));
        assert_eq!(found.describe(), "hard disk");
        assert_eq!(machine.find((8, 2)), None);
    }

    #[test]
    fn hypervisors_and_clouds_are_recognised_whatever_they_say_of_rotation() {
        let machine = Machine::new();
        machine
            .device(
                "254:0",
                "pci/virtio1/block/vda",
                &[("queue/rotational", "1")],
            )
            .device(
                "259:0",
                "pci/nvme/nvme0/nvme0n1",
                &[
                    ("queue/rotational", "0"),
                    ("device/model", "Amazon Elastic Block Store"),
                ],
            )
            .device(
                "259:5",
                "pci/nvme/nvme1/nvme1n1",
                &[
                    ("queue/rotational", "0"),
                    ("device/model", "Samsung SSD 980 PRO"),
                ],
            )
            .device(
                "8:16",
                "pci/host2/block/sdb",
                &[("device/vendor", "QEMU"), ("device/model", "QEMU HARDDISK")],
            );
        assert_eq!(
            machine.find((254, 0)).expect("vda").kind,
            DeviceKind::Virtual
        );
        assert_eq!(
            machine.find((259, 0)).expect("ebs").kind,
            DeviceKind::Virtual
        );
        assert_eq!(
            machine.find((8, 16)).expect("sdb").kind,
            DeviceKind::Virtual
        );
        assert_eq!(
            machine.find((259, 5)).expect("nvme").kind,
            DeviceKind::SolidState
        );
    }

    #[test]
    fn mapped_devices_name_what_they_rest_on() {
        let machine = Machine::new();
        machine
            .device(
                "8:0",
                "pci/block/sda",
                &[("queue/rotational", "0"), ("dev", "8:0")],
            )
            .device(
                "253:0",
                "virtual/block/dm-0",
                &[("dm/uuid", "CRYPT-LUKS2-abc")],
            )
            .device("253:1", "virtual/block/zram0", &[]);
        let slaves = machine
            .root
            .path()
            .join("sys/devices/virtual/block/dm-0/slaves");
        std::fs::create_dir_all(&slaves).expect("folder");
        symlink(
            machine.root.path().join("sys/devices/pci/block/sda"),
            slaves.join("sda"),
        )
        .expect("link");
        let found = machine.find((253, 0)).expect("dm-0");
        assert_eq!(found.describe(), "encrypted volume on a solid-state disk");
        assert_eq!(
            machine.find((253, 1)).expect("zram0").kind,
            DeviceKind::Memory
        );
    }
}
