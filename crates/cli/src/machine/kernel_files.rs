//! Text that the kernel publishes under `/proc` and `/sys`, read without ever failing.
//!
//! A missing, unreadable or empty file is `None`: which facts a kernel, a container or another
//! platform gives differs too much for that to be an error. What a text means is left to the
//! modules that ask for it. The root can be moved, so that tests read a machine laid out in a
//! temporary directory.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The longest text that is read from one file, in bytes. The longest one needed is
/// `/proc/cpuinfo`, about 1.5 kB a core.
const TEXT_BYTES_MAX: u64 = 16 << 20;

/// The files of one machine: the one we run on, or one laid out by a test.
#[derive(Clone, Debug)]
pub struct KernelFiles {
    root: PathBuf,
}

impl KernelFiles {
    /// The machine this process runs on.
    pub fn of_this_machine() -> Self {
        Self {
            root: PathBuf::from("/"),
        }
    }

    /// A machine whose `/proc`, `/sys` and `/etc` lie below `root`.
    pub fn below(root: &Path) -> Self {
        Self {
            root: root.to_path_buf(),
        }
    }

    /// Where the file with this absolute path lies below the root.
    pub fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = path.as_ref();
        self.root.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// The bytes of a file, or `None` if it cannot be read.
    pub fn bytes(&self, path: impl AsRef<Path>) -> Option<Vec<u8>> {
        let file = File::open(self.path(path)).ok()?;
        let mut bytes = Vec::new();
        file.take(TEXT_BYTES_MAX).read_to_end(&mut bytes).ok()?;
        Some(bytes)
    }

    /// The text of a file without surrounding white space and NUL bytes (the device tree ends its
    /// texts with one), or `None` if it cannot be read or nothing is left.
    pub fn text(&self, path: impl AsRef<Path>) -> Option<String> {
        let bytes = self.bytes(path)?;
        let text = String::from_utf8_lossy(&bytes);
        let text = text.trim_matches(|c: char| c.is_whitespace() || c == '\0');
        (!text.is_empty()).then(|| text.to_owned())
    }

    /// The whole number that a file holds, or `None` if it holds something else.
    pub fn number(&self, path: impl AsRef<Path>) -> Option<u64> {
        self.text(path)?.parse().ok()
    }
}

/// The value of the first line `name : value` of a text such as `/proc/cpuinfo` or `/proc/meminfo`.
pub fn line_value<'text>(text: &'text str, name: &str) -> Option<&'text str> {
    text.lines().find_map(|line| {
        let (found, value) = line.split_once(':')?;
        (found.trim() == name && !value.trim().is_empty()).then(|| value.trim())
    })
}

/// A list such as `0-3,8,10-11`, as the kernel writes sets of cores; `None` if it is malformed.
pub fn number_list(text: &str) -> Option<Vec<usize>> {
    /// More than any kernel is built for; keeps a damaged text from filling the memory.
    const NUMBER_MAX: usize = 1 << 16;
    let mut numbers = Vec::new();
    for part in text.trim().split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        if last > NUMBER_MAX {
            return None;
        }
        numbers.extend(first..=last);
    }
    Some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_and_empty_files_are_none() {
        let root = tempfile::tempdir().expect("temporary directory");
        std::fs::write(root.path().join("empty"), "\n").expect("write");
        std::fs::write(root.path().join("model"), "Board\0").expect("write");
        let files = KernelFiles::below(root.path());
        assert_eq!(files.text("/missing"), None);
        assert_eq!(files.text("/empty"), None);
        assert_eq!(files.number("/model"), None);
        assert_eq!(files.text("/model").as_deref(), Some("Board"));
    }

    #[test]
    fn lines_are_found_by_their_whole_name() {
        let text = "model\t\t: 2\nmodel name\t: AMD EPYC\nempty :\n";
        assert_eq!(line_value(text, "model name"), Some("AMD EPYC"));
        assert_eq!(line_value(text, "model"), Some("2"));
        assert_eq!(line_value(text, "empty"), None);
        assert_eq!(line_value(text, "name"), None);
    }

    #[test]
    fn number_lists_are_expanded() {
        assert_eq!(number_list("0-2,5,7-8\n"), Some(vec![0, 1, 2, 5, 7, 8]));
        assert_eq!(number_list(""), Some(vec![]));
        assert_eq!(number_list("0-x"), None);
        assert_eq!(number_list("0-99999999999"), None);
    }
}
