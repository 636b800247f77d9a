//! How the files of a tree are called: length, extension, characters. Why it matters: a name is a key,
//! in a database as in a folder, and one that is not UTF-8 is no TEXT.

use std::collections::BTreeMap;

use serde::Serialize;

use super::LogHistogram;

/// So many different extensions are told apart in one thread; what comes later counts as other.
pub const MOST_EXTENSIONS: usize = 1_000;
/// Longer ones are no extensions but part of a name with a point.
const LONGEST_EXTENSION_BYTES: usize = 16;

/// Files of one extension.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct ExtensionCount {
    /// How many.
    pub files: u64,
    /// Their content.
    pub bytes: u64,
}

impl ExtensionCount {
    fn add(&mut self, other: Self) {
        self.files += other.files;
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}

/// How files are called.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Names {
    /// Bytes of the names, without folders.
    pub length_bytes: LogHistogram,
    /// Only letters and digits of ASCII, point, hyphen and underscore.
    pub portable: u64,
    /// Other ASCII, such as spaces.
    pub other_ascii: u64,
    /// UTF-8 beyond ASCII.
    pub other_utf8: u64,
    /// Not UTF-8.
    pub not_utf8: u64,
    /// By extension: what follows the last point, in small letters; an empty text for none.
    extensions: BTreeMap<String, ExtensionCount>,
    /// Of extensions beyond [`MOST_EXTENSIONS`].
    pub other_extensions: ExtensionCount,
}

impl Names {
    /// Counts the name of a file with so much content.
    pub fn add(&mut self, name: &[u8], bytes: u64) {
        self.length_bytes.add(name.len() as u64);
        let is_portable =
            |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
        if name.iter().all(is_portable) {
            self.portable += 1;
        } else if name.is_ascii() {
            self.other_ascii += 1;
        } else if std::str::from_utf8(name).is_ok() {
            self.other_utf8 += 1;
        } else {
            self.not_utf8 += 1;
        }
        self.add_extension(extension(name), ExtensionCount { files: 1, bytes });
    }

    fn add_extension(&mut self, extension: &str, more: ExtensionCount) {
        let is_capital = extension.bytes().any(|byte| byte.is_ascii_uppercase());
        let small = is_capital.then(|| extension.to_ascii_lowercase());
        let extension = small.as_deref().unwrap_or(extension);
        if let Some(counted) = self.extensions.get_mut(extension) {
            counted.add(more);
        } else if self.extensions.len() < MOST_EXTENSIONS {
            self.extensions.insert(extension.to_owned(), more);
        } else {
            self.other_extensions.add(more);
        }
    }

    /// Adds what another thread has counted.
    pub fn merge(&mut self, other: Self) {
        self.length_bytes.merge(&other.length_bytes);
        self.portable += other.portable;
        self.other_ascii += other.other_ascii;
        self.other_utf8 += other.other_utf8;
        self.not_utf8 += other.not_utf8;
        for (extension, counted) in other.extensions {
            self.add_extension(&extension, counted);
        }
        self.other_extensions.add(other.other_extensions);
    }

    /// Extensions with the most files first, at most so many.
    #[must_use]
    pub fn most_frequent(&self, most: usize) -> Vec<(&str, ExtensionCount)> {
        let mut all: Vec<(&str, ExtensionCount)> = self
            .extensions
            .iter()
            .map(|(extension, counted)| (extension.as_str(), *counted))
            .collect();
        all.sort_by_key(|(extension, counted)| (std::cmp::Reverse(counted.files), *extension));
        all.truncate(most);
        all
    }
}

/// What follows the last point, unless the name begins with it or that is not short text.
fn extension(name: &[u8]) -> &str {
    let Some(point) = name.iter().rposition(|byte| *byte == b'.') else {
        return "";
    };
    let after = &name[point + 1..];
    if point == 0 || after.is_empty() || after.len() > LONGEST_EXTENSION_BYTES {
        return "";
    }
    std::str::from_utf8(after).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_apart() {
        let mut names = Names::default();
        let given: [&[u8]; 8] = [
            b"a.JPG",
            b"b.jpg",
            b".profile",
            b"no_point",
            b"with space.txt",
            "\u{e4}.txt".as_bytes(),
            b"\xE4.txt",
            b"a.this is not an extension",
        ];
        for name in given {
            names.add(name, 10);
        }
        assert_eq!(names.portable, 4);
        assert_eq!(names.other_ascii, 2);
        assert_eq!(names.other_utf8, 1);
        assert_eq!(names.not_utf8, 1);
        assert_eq!(names.length_bytes.maximum(), Some(26));
        let frequent = names.most_frequent(3);
        let counts: Vec<(&str, u64)> = frequent
            .iter()
            .map(|(extension, counted)| (*extension, counted.files))
            .collect();
        assert_eq!(counts, [("", 3), ("txt", 3), ("jpg", 2)]);
    }

    #[test]
    fn memory_stays_bounded() {
        let mut names = Names::default();
        for number in 0..5_000 {
            names.add(format!("a.{number}").as_bytes(), 1);
        }
        assert_eq!(names.most_frequent(usize::MAX).len(), MOST_EXTENSIONS);
        assert_eq!(names.other_extensions.files, 4_000);
        let mut other = names.clone();
        other.merge(names);
        assert_eq!(other.other_extensions.files, 8_000);
    }
}
