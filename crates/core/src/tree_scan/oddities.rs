//! What is odd in a directory tree: counted by kind, and the first few of each kind by name. Finding
//! them is left to whoever walks the tree.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};

/// So many of a kind are kept by name; all are counted.
pub const MOST_EXAMPLES: usize = 20;

/// Kinds of what is not simply a readable file or folder, or was not dealt with like one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum OddityKind {
    /// A name that is not UTF-8.
    NameNotUtf8,
    /// A symbolic link; it is not followed.
    SymbolicLink,
    /// A pipe, a socket or a device.
    SpecialFile,
    /// A folder that cannot be opened or not be read to its end.
    UnreadableFolder,
    /// Something that the system refuses to tell about, or a file that cannot be read.
    UnreadableFile,
    /// It was listed, and gone when it was looked at.
    Vanished,
    /// A folder that changed while it was read or before the scan ended.
    ChangedFolder,
    /// A file whose size or time was another one when it was read.
    ChangedFile,
    /// A folder that is one of those it lies in, so that entering it would never end.
    Loop,
    /// Another filesystem, where the walk was told to stay on one.
    OtherFilesystem,
}

impl OddityKind {
    /// How so many of the kind are called: `symbolic links`.
    #[must_use]
    pub fn of(self, count: u64) -> &'static str {
        let (one, many) = match self {
            Self::NameNotUtf8 => ("name that is not UTF-8", "names that are not UTF-8"),
            Self::SymbolicLink => (
                "symbolic link (not followed)",
                "symbolic links (not followed)",
            ),
            Self::SpecialFile => ("special file", "special files"),
            Self::UnreadableFolder => ("unreadable folder", "unreadable folders"),
            Self::UnreadableFile => ("unreadable file", "unreadable files"),
            Self::Vanished => ("vanished meanwhile", "vanished meanwhile"),
            Self::ChangedFolder => ("folder changed meanwhile", "folders changed meanwhile"),
            Self::ChangedFile => ("file changed meanwhile", "files changed meanwhile"),
            Self::Loop => ("loop (not entered)", "loops (not entered)"),
            Self::OtherFilesystem => (
                "other filesystem (not entered)",
                "other filesystems (not entered)",
            ),
        };
        if count == 1 { one } else { many }
    }

    /// Whether what was found about the tree is incomplete or out of date because of it.
    #[must_use]
    pub fn is_trouble(self) -> bool {
        !matches!(
            self,
            Self::NameNotUtf8 | Self::SymbolicLink | Self::SpecialFile
        )
    }
}

/// One of them by name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Example {
    /// Path relative to the top of the tree; empty for the top itself.
    #[serde(serialize_with = "serialize_path")]
    pub path: PathBuf,
    /// What the system said, or an empty text.
    pub reason: String,
}

/// Number of a kind, and the first few.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct OddityCount {
    /// All of this kind.
    pub count: u64,
    /// At most [`MOST_EXAMPLES`] of them, by path.
    pub examples: Vec<Example>,
}

/// All that is odd in a tree.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Oddities {
    counts: BTreeMap<OddityKind, OddityCount>,
}

impl Oddities {
    /// Counts one. The path is asked for only if it is kept.
    pub fn note(&mut self, kind: OddityKind, path: impl FnOnce() -> PathBuf, reason: &str) {
        let counted = self.counts.entry(kind).or_default();
        counted.count += 1;
        if counted.examples.len() < MOST_EXAMPLES {
            counted.examples.push(Example {
                path: path(),
                reason: reason.to_owned(),
            });
        }
    }

    /// Adds what another walker of the same tree has found.
    pub fn merge(&mut self, other: Self) {
        for (kind, theirs) in other.counts {
            let ours = self.counts.entry(kind).or_default();
            ours.count += theirs.count;
            ours.examples.extend(theirs.examples);
            ours.examples.sort();
            ours.examples.truncate(MOST_EXAMPLES);
        }
    }

    /// How many there are of a kind.
    #[must_use]
    pub fn count(&self, kind: OddityKind) -> u64 {
        self.counts.get(&kind).map_or(0, |counted| counted.count)
    }

    /// The named ones of a kind.
    #[must_use]
    pub fn examples(&self, kind: OddityKind) -> &[Example] {
        self.counts
            .get(&kind)
            .map_or(&[], |counted| &counted.examples)
    }

    /// Every kind there is, in the order of [`OddityKind`].
    pub fn kinds(&self) -> impl Iterator<Item = (OddityKind, &OddityCount)> {
        self.counts.iter().map(|(kind, counted)| (*kind, counted))
    }
}

/// A path as text: bytes that are not UTF-8 and control characters as `\xE4`, a backslash doubled.
/// Two different paths never give the same text.
#[must_use]
pub fn display_path(path: &Path) -> String {
    let mut text = String::new();
    for chunk in path.as_os_str().as_encoded_bytes().utf8_chunks() {
        for letter in chunk.valid().chars() {
            match letter {
                '\\' => text.push_str("\\\\"),
                letter if letter.is_control() => {
                    for byte in letter.encode_utf8(&mut [0; 4]).bytes() {
                        push_byte(&mut text, byte);
                    }
                }
                letter => text.push(letter),
            }
        }
        for byte in chunk.invalid() {
            push_byte(&mut text, *byte);
        }
    }
    text
}

fn push_byte(text: &mut String, byte: u8) {
    // Writing to a String cannot fail.
    let _ = write!(text, "\\x{byte:02X}");
}

pub(super) fn serialize_path<S: Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&display_path(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_are_counted_and_few_are_named() {
        let mut one = Oddities::default();
        let mut other = Oddities::default();
        for number in 0..30 {
            one.note(
                OddityKind::Vanished,
                || PathBuf::from(format!("b{number:02}")),
                "gone",
            );
        }
        other.note(OddityKind::Vanished, || PathBuf::from("a"), "gone");
        other.note(OddityKind::Loop, || PathBuf::from("l"), "");
        one.merge(other);
        assert_eq!(one.count(OddityKind::Vanished), 31);
        assert_eq!(one.count(OddityKind::Loop), 1);
        assert_eq!(one.count(OddityKind::SpecialFile), 0);
        let named = one.examples(OddityKind::Vanished);
        assert_eq!(named.len(), MOST_EXAMPLES);
        assert_eq!(named[0].path, Path::new("a"));
    }

    #[cfg(unix)]
    #[test]
    fn paths_that_are_not_text_are_told_apart() {
        use std::os::unix::ffi::OsStrExt;
        let show = |bytes: &[u8]| display_path(Path::new(std::ffi::OsStr::from_bytes(bytes)));
        assert_eq!(show(b"a/\xE4\n"), "a/\\xE4\\x0A");
        assert_eq!(show("\u{e4}".as_bytes()), "\u{e4}");
        assert_eq!(show(b"\\xE4"), "\\\\xE4");
        assert_ne!(show(b"\xC2\x85"), show(b"\x85"));
    }
}
