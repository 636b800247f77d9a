//! What filesystem a loopback has, and how that is written on a command line: the type, then after
//! a colon its options, joined by `+`; several filesystems are separated by commas.
//!
//! ```text
//! ext4  xfs  btrfs  tmpfs  ext4:data=journal  ext4:data=writeback+noauto_da_alloc  ext4:nojournal
//! btrfs:nocow  btrfs:compress-force=zlib:3
//! ```
//!
//! Options are those of mount(8), except `nojournal` (ext4 without a journal) and `nocow` (btrfs,
//! every new file as after `chattr +C`). Carrying them out is left to `mounting`.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use sqlitmus_core::names::nearest;

use super::LoopbackError;
#[cfg(target_os = "linux")]
use super::failed;

const MIB: u64 = 1 << 20;

/// Words of ours among the options.
const NO_JOURNAL: &str = "nojournal";
const NO_COPY_ON_WRITE: &str = "nocow";

/// Options that would make `mount` do something else than mount our image for writing.
const REFUSED: &[&str] = &[
    "ro",
    "bind",
    "rbind",
    "move",
    "remount",
    "loop",
    "offset",
    "sizelimit",
    "noload",
    "norecovery",
    "user",
    "users",
    "helper",
    "size",
];

/// Types of filesystems that can be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Filesystem {
    /// ext4.
    Ext4,
    /// xfs.
    Xfs,
    /// btrfs.
    Btrfs,
    /// Memory; it has no image.
    Tmpfs,
}

impl Filesystem {
    const ALL: [Self; 4] = [Self::Ext4, Self::Xfs, Self::Btrfs, Self::Tmpfs];

    /// The kernel's word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4",
            Self::Xfs => "xfs",
            Self::Btrfs => "btrfs",
            Self::Tmpfs => "tmpfs",
        }
    }
}

/// A specification that makes no sense.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{specification}` is no loopback filesystem: {reason}")]
pub struct SpecificationError {
    /// As given.
    pub specification: String,
    /// What is wrong with it.
    pub reason: String,
    /// What to write instead.
    pub hint: String,
}

/// A filesystem with its options.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LoopbackSpecification {
    /// Its type.
    pub filesystem: Filesystem,
    /// Its options, as given.
    options: Vec<String>,
}

impl LoopbackSpecification {
    /// A filesystem with its default options.
    #[must_use]
    pub fn plain(filesystem: Filesystem) -> Self {
        Self {
            filesystem,
            options: Vec::new(),
        }
    }

    /// Options for `mount -o`.
    pub(super) fn mount_options(&self) -> impl Iterator<Item = &str> {
        let own = [NO_JOURNAL, NO_COPY_ON_WRITE];
        let options = self.options.iter().map(String::as_str);
        options.filter(move |option| !own.contains(option))
    }

    fn has(&self, word: &str) -> bool {
        self.options.iter().any(|option| option == word)
    }

    /// Whether it lies in a file.
    #[must_use]
    pub fn has_image(&self) -> bool {
        self.filesystem != Filesystem::Tmpfs
    }

    /// The program that formats it, with its options.
    pub(super) fn format_command(&self) -> Vec<&'static str> {
        let mut command = match self.filesystem {
            // Nothing is left for the kernel to do in the background while something is measured.
            Filesystem::Ext4 => vec![
                "mkfs.ext4",
                "-q",
                "-F",
                "-E",
                "lazy_itable_init=0,lazy_journal_init=0",
            ],
            Filesystem::Xfs => vec!["mkfs.xfs", "-q", "-f"],
            Filesystem::Btrfs => vec!["mkfs.btrfs", "-q", "-f"],
            Filesystem::Tmpfs => Vec::new(),
        };
        if self.has(NO_JOURNAL) {
            command.extend(["-O", "^has_journal"]);
        }
        command
    }

    /// The smallest image that its program formats as it formats disks, in bytes: mkfs.xfs refuses
    /// less than 300 MB, mkfs.btrfs less than 109 MiB.
    #[must_use]
    pub fn minimum_bytes(&self) -> u64 {
        match self.filesystem {
            Filesystem::Ext4 => 16 * MIB,
            Filesystem::Xfs => 300 * MIB,
            Filesystem::Btrfs => 128 * MIB,
            Filesystem::Tmpfs => MIB,
        }
    }

    /// What can only be set on the mounted filesystem.
    #[cfg(target_os = "linux")]
    pub(super) fn adapt_root(&self, point: &Path) -> Result<(), LoopbackError> {
        use rustix::fs::{IFlags, Mode, OFlags};
        if !self.has(NO_COPY_ON_WRITE) {
            return Ok(());
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let set = || {
            let root = rustix::fs::open(point, flags, Mode::empty())?;
            let flags = rustix::fs::ioctl_getflags(&root)?;
            rustix::fs::ioctl_setflags(&root, flags | IFlags::NOCOW)
        };
        set().map_err(|error| failed("switch off copy on write in", point)(error.into()))
    }

    /// Nothing is mounted on this platform.
    #[cfg(not(target_os = "linux"))]
    pub(super) fn adapt_root(&self, _point: &Path) -> Result<(), LoopbackError> {
        Ok(())
    }

    fn check(&self) -> Result<(), String> {
        for option in &self.options {
            let name = option.split('=').next().unwrap_or_default();
            let is_plain = |character: char| {
                character.is_ascii_alphanumeric() || "_-=:./^%".contains(character)
            };
            if option.is_empty() {
                return Err("an option is empty".to_owned());
            }
            if !option.chars().all(is_plain) {
                return Err(format!("the option `{option}` has odd characters"));
            }
            if REFUSED.contains(&name) {
                return Err(format!(
                    "the option `{option}` is not for a filesystem to write to"
                ));
            }
        }
        for (word, filesystem) in [
            (NO_JOURNAL, Filesystem::Ext4),
            (NO_COPY_ON_WRITE, Filesystem::Btrfs),
        ] {
            if self.has(word) && self.filesystem != filesystem {
                return Err(format!("`{word}` is an option of {}", filesystem.word()));
            }
        }
        Ok(())
    }
}

impl fmt::Display for LoopbackSpecification {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.filesystem.word())?;
        if self.options.is_empty() {
            return Ok(());
        }
        write!(formatter, ":{}", self.options.join("+"))
    }
}

impl FromStr for LoopbackSpecification {
    type Err = SpecificationError;

    fn from_str(text: &str) -> Result<Self, SpecificationError> {
        let (word, options) = match text.split_once(':') {
            Some((word, options)) => (word, options.split('+').map(str::to_owned).collect()),
            None => (text, Vec::new()),
        };
        let error = |reason: String, hint: String| SpecificationError {
            specification: text.to_owned(),
            reason,
            hint,
        };
        let known = Filesystem::ALL.map(Filesystem::word);
        let Some(filesystem) = Filesystem::ALL.into_iter().find(|one| one.word() == word) else {
            let hint = match nearest(word, known) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("it is one of {}", known.join(", ")),
            };
            return Err(error(
                format!("`{word}` is not a filesystem that is made here"),
                hint,
            ));
        };
        let specification = Self {
            filesystem,
            options,
        };
        match specification.check() {
            Ok(()) => Ok(specification),
            Err(reason) => Err(error(
                reason,
                "options are those of mount(8), joined by `+`: ext4:data=journal+nobarrier"
                    .to_owned(),
            )),
        }
    }
}

/// A list of filesystems, separated by commas; each only once.
///
/// # Errors
/// The first one that makes no sense.
pub fn parse_specifications(text: &str) -> Result<Vec<LoopbackSpecification>, SpecificationError> {
    let mut found: Vec<LoopbackSpecification> = Vec::new();
    for word in text.split(',') {
        let specification: LoopbackSpecification = word.trim().parse()?;
        if !found.contains(&specification) {
            found.push(specification);
        }
    }
    Ok(found)
}
