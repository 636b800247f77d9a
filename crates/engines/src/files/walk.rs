//! Walking a store's directories: which keys there are, and which layout they are laid out in.

use std::path::Path;

use rustix::fd::OwnedFd;
use rustix::fs::{Dir, FileType, Mode, OFlags, openat};
use rustix::io::Errno;

use super::Failure;
use super::path::{FLAT_DIGITS, Layout, TREE_DIGITS, parse_number};
use crate::engine::EngineError;

/// The layout of the blobs in a directory: by `kvtest`'s rule it is a tree if it has a folder
/// `00`; failing that, the first entry that could be a blob, or a folder of blobs, decides. `None`
/// if there is no such entry.
///
/// # Errors
/// The directory cannot be read, or is none.
pub fn layout_of(directory: &Path) -> Result<Option<Layout>, EngineError> {
    let is_directory = |path: &Path| path.metadata().is_ok_and(|found| found.is_dir());
    if is_directory(&directory.join("00")) {
        return Ok(Some(Layout::Tree));
    }
    for entry in directory
        .read_dir()
        .map_err(EngineError::io("list", directory))?
    {
        let entry = entry.map_err(EngineError::io("list", directory))?;
        let name = entry.file_name();
        let could_be = |digits| parse_number(name.as_encoded_bytes(), digits).is_some();
        if could_be(FLAT_DIGITS) && !is_directory(&entry.path()) {
            return Ok(Some(Layout::Flat));
        }
        if could_be(TREE_DIGITS) && is_directory(&entry.path()) {
            return Ok(Some(Layout::Tree));
        }
    }
    Ok(None)
}

/// All keys of a store, in no order.
pub(super) fn keys(root: &OwnedFd, layout: Layout) -> Result<Vec<u64>, Failure> {
    let mut keys = Vec::new();
    if layout == Layout::Flat {
        keys = numbers_in(root, FileType::RegularFile, FLAT_DIGITS)?;
        return Ok(keys);
    }
    for high in numbers_in(root, FileType::Directory, TREE_DIGITS)? {
        let Some(outer) = open_folder(root, high)? else {
            continue;
        };
        for middle in numbers_in(&outer, FileType::Directory, TREE_DIGITS)? {
            let Some(inner) = open_folder(&outer, middle)? else {
                continue;
            };
            for low in numbers_in(&inner, FileType::RegularFile, TREE_DIGITS)? {
                // Larger parts are somebody else's names: no key is written with them.
                if middle < 100 && low < 100 {
                    let thousands = high.checked_mul(10_000);
                    keys.extend(thousands.and_then(|key| key.checked_add(middle * 100 + low)));
                }
            }
        }
    }
    Ok(keys)
}

/// The numbers that name entries of a type in a directory.
fn numbers_in(
    directory: &OwnedFd,
    wanted: FileType,
    least_digits: usize,
) -> Result<Vec<u64>, Failure> {
    let mut numbers = Vec::new();
    for entry in Dir::read_from(directory).map_err(Failure::of("list"))? {
        let entry = entry.map_err(Failure::of("list"))?;
        // Some file systems do not tell the type here.
        let may_be = entry.file_type() == wanted || entry.file_type() == FileType::Unknown;
        let number = parse_number(entry.file_name().to_bytes(), least_digits);
        numbers.extend(number.filter(|_| may_be));
    }
    Ok(numbers)
}

/// Opens a folder of a tree; `None` if it is no folder after all.
fn open_folder(directory: &OwnedFd, number: u64) -> Result<Option<OwnedFd>, Failure> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    match openat(directory, format!("{number:02}"), flags, Mode::empty()) {
        Ok(folder) => Ok(Some(folder)),
        Err(Errno::NOTDIR) => Ok(None),
        Err(errno) => Err(Failure::of("open")(errno)),
    }
}
