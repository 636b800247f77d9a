//! Names of blobs: from a key to a path, without an allocation, and from a name back to its key.
//!
//! What is done with the files is left to the other modules.

use std::ffi::{CStr, OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use crate::engine::EngineError;

/// How blobs are spread over directories.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// All in one: `000001`.
    Flat,
    /// At most 100 entries a folder: `00/00/01`.
    Tree,
}

impl Layout {
    /// Value of the setting.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Flat => "flat",
            Self::Tree => "tree",
        }
    }

    /// The path of a blob's file, relative to the root directory.
    #[must_use]
    pub fn relative_path(self, key: u64) -> PathBuf {
        let mut name = Vec::new();
        push_name(&mut name, self, key);
        PathBuf::from(OsString::from_vec(name))
    }
}

/// Digits of a file name in a flat directory, at the least.
pub(super) const FLAT_DIGITS: usize = 6;

/// Digits of each name in a tree, at the least.
pub(super) const TREE_DIGITS: usize = 2;

/// The path of one blob, in a buffer that is written anew for each.
#[derive(Debug, Clone)]
pub(super) struct BlobPath {
    /// Root directory, slash, name, NUL.
    bytes: Vec<u8>,
    /// Bytes of the root directory and its slash.
    root_bytes: usize,
    layout: Layout,
}

impl BlobPath {
    /// # Errors
    /// The root's name contains a NUL byte.
    pub(super) fn new(root: &Path, layout: Layout) -> Result<Self, EngineError> {
        let mut bytes = root.as_os_str().as_bytes().to_vec();
        if bytes.contains(&0) {
            let invalid = std::io::ErrorKind::InvalidInput.into();
            return Err(EngineError::io("open", root)(invalid));
        }
        bytes.push(b'/');
        let root_bytes = bytes.len();
        bytes.push(0);
        Ok(Self {
            bytes,
            root_bytes,
            layout,
        })
    }

    /// Makes it the path of a blob.
    pub(super) fn set(&mut self, key: u64) {
        self.bytes.truncate(self.root_bytes);
        push_name(&mut self.bytes, self.layout, key);
        self.bytes.push(0);
    }

    /// Makes it a path beside a blob that no blob and no other session uses.
    pub(super) fn set_temporary(&mut self, key: u64, session: u64) {
        self.set(key);
        self.bytes.pop();
        self.bytes.extend_from_slice(b".new");
        push_number(&mut self.bytes, session, 1);
        self.bytes.push(0);
    }

    /// The path as the caller gave the root: relative to the current directory, or absolute.
    pub(super) fn full(&self) -> &CStr {
        // Always terminated, so the default is never taken.
        CStr::from_bytes_until_nul(&self.bytes).unwrap_or_default()
    }

    /// The path relative to the root.
    pub(super) fn relative(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.bytes[self.root_bytes..]).unwrap_or_default()
    }

    /// Folders between the root and the blob, outermost first, relative to the root.
    pub(super) fn folders(&self) -> impl Iterator<Item = &[u8]> {
        let relative = &self.bytes[self.root_bytes..];
        relative
            .iter()
            .enumerate()
            .filter(|(_, byte)| **byte == b'/')
            .map(|(end, _)| &relative[..end])
    }

    /// The root directory, for messages.
    pub(super) fn root(&self) -> PathBuf {
        PathBuf::from(OsStr::from_bytes(&self.bytes[..self.root_bytes - 1]))
    }

    /// The full path, for messages.
    pub(super) fn to_path_buf(&self) -> PathBuf {
        PathBuf::from(OsStr::from_bytes(self.full().to_bytes()))
    }
}

/// Appends the path of a blob, relative to the root.
fn push_name(bytes: &mut Vec<u8>, layout: Layout, key: u64) {
    match layout {
        Layout::Flat => push_number(bytes, key, FLAT_DIGITS),
        Layout::Tree => {
            push_number(bytes, key / 10_000, TREE_DIGITS);
            bytes.push(b'/');
            push_number(bytes, key / 100 % 100, TREE_DIGITS);
            bytes.push(b'/');
            push_number(bytes, key % 100, TREE_DIGITS);
        }
    }
}

/// Appends a number with leading zeros (`%0*d`).
fn push_number(bytes: &mut Vec<u8>, mut number: u64, least_digits: usize) {
    const MOST_DIGITS: usize = 20;
    let mut digits = [b'0'; MOST_DIGITS];
    let mut start = MOST_DIGITS;
    while number > 0 {
        start -= 1;
        digits[start] = b'0' + (number % 10) as u8;
        number /= 10;
    }
    bytes.extend_from_slice(&digits[start.min(MOST_DIGITS - least_digits)..]);
}

/// The number that [`push_number`] would write just so, with so many digits at the least.
pub(super) fn parse_number(name: &[u8], least_digits: usize) -> Option<u64> {
    let padded = name.len() > least_digits && name[0] == b'0';
    if name.len() < least_digits || padded {
        return None;
    }
    name.iter().try_fold(0u64, |number, byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn relative(layout: Layout, key: u64) -> String {
        let mut path = BlobPath::new(Path::new("/some/place"), layout).expect("valid");
        path.set(key);
        let full = path.full().to_str().expect("ASCII").to_owned();
        let relative = path.relative().to_str().expect("ASCII").to_owned();
        assert_eq!(full, format!("/some/place/{relative}"));
        assert_eq!(layout.relative_path(key), Path::new(&relative));
        relative
    }

    #[test]
    fn names_are_those_of_kvtest() {
        assert_eq!(relative(Layout::Flat, 1), "000001");
        assert_eq!(relative(Layout::Flat, 999_999), "999999");
        assert_eq!(relative(Layout::Flat, 1_000_000), "1000000");
        assert_eq!(relative(Layout::Tree, 1), "00/00/01");
        assert_eq!(relative(Layout::Tree, 123_456), "12/34/56");
        assert_eq!(relative(Layout::Tree, 1_000_000), "100/00/00");
        assert_eq!(relative(Layout::Flat, u64::MAX), u64::MAX.to_string());
    }

    #[test]
    fn only_our_own_spelling_is_parsed() {
        for key in [0, 1, 999_999, 1_000_000, u64::MAX] {
            let name = relative(Layout::Flat, key);
            assert_eq!(parse_number(name.as_bytes(), FLAT_DIGITS), Some(key));
        }
        for foreign in [
            "1",
            "00001",
            "0000001",
            "00000a",
            "000001.new1",
            "",
            "+00001",
        ] {
            assert_eq!(parse_number(foreign.as_bytes(), FLAT_DIGITS), None);
        }
        let beyond = "18446744073709551616";
        assert_eq!(parse_number(beyond.as_bytes(), FLAT_DIGITS), None);
    }

    #[test]
    fn a_path_is_set_again_and_again() {
        let mut path = BlobPath::new(Path::new("d"), Layout::Tree).expect("valid");
        path.set_temporary(12_345, 7);
        assert_eq!(path.full(), c"d/01/23/45.new7");
        let folders: Vec<&[u8]> = path.folders().collect();
        assert_eq!(folders, [&b"01"[..], b"01/23"]);
        path.set(2);
        assert_eq!(path.relative(), c"00/00/02");
        assert_eq!(path.root(), Path::new("d"));
    }

    #[test]
    fn a_root_with_a_nul_byte_is_refused() {
        assert!(BlobPath::new(Path::new("a\0b"), Layout::Flat).is_err());
    }
}
