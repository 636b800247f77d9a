//! Names beside a path: the path with something appended to its last name. Which names are taken,
//! and by whom, is left to the callers.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// The path with `suffix` appended to its last name: `-wal` makes `data.db` into `data.db-wal`. A
/// trailing slash does not count.
#[must_use]
pub fn with_suffix(path: &Path, suffix: impl AsRef<OsStr>) -> PathBuf {
    let mut name = path.components().as_path().as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_name_grows_and_slashes_behind_it_go() {
        for (path, expected) in [
            ("data.db", "data.db-wal"),
            ("./data.db", "./data.db-wal"),
            ("/a/b.c/", "/a/b.c-wal"),
            ("a/../b//", "a/../b-wal"),
        ] {
            assert_eq!(with_suffix(Path::new(path), "-wal"), Path::new(expected));
        }
    }
}
