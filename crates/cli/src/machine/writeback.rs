//! Handing some of what was written to its device before anybody asks for it, as the kernel does when
//! memory is short or data has become old. Which of it, is a matter of chance, as there.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use sqlitmus_core::dataset::{bounded, mix};

/// Longest piece that is handed over at once, bytes.
const PIECE_BYTES: u64 = 64 << 10;

/// Starts writing back a random piece of a random file in a folder or in the folders below it, and
/// waits for it. Nothing is flushed, and no metadata is written.
///
/// # Errors
/// The folder cannot be read, or the filesystem refuses.
pub fn write_back_some(folder: &Path, random: u64) -> io::Result<()> {
    let mut files = Vec::new();
    collect(folder, &mut files)?;
    if files.is_empty() {
        return Ok(());
    }
    let chosen = &files[bounded(mix(random), files.len() as u64) as usize];
    let file = File::open(chosen)?;
    let start = bounded(mix(random ^ 1), file.metadata()?.len().max(1));
    write_back(&file, start, 1 + bounded(mix(random ^ 2), PIECE_BYTES))
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            collect(&entry.path(), files)?;
        } else {
            files.push(entry.path());
        }
    }
    Ok(())
}

#[cfg(target_os = "linux")]
fn write_back(file: &File, start: u64, bytes: u64) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    let flags = libc::SYNC_FILE_RANGE_WRITE | libc::SYNC_FILE_RANGE_WAIT_AFTER;
    // SAFETY: the descriptor is open for as long as `file` is borrowed; there are no pointers.
    let answer = unsafe {
        libc::sync_file_range(
            file.as_raw_fd(),
            start.cast_signed(),
            bytes.cast_signed(),
            flags,
        )
    };
    if answer == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

#[cfg(not(target_os = "linux"))]
fn write_back(_file: &File, _start: u64, _bytes: u64) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_with_files_below_it_is_written_back_and_an_empty_one_is_no_error() {
        let folder = tempfile::tempdir().expect("folder");
        write_back_some(folder.path(), 1).expect("nothing to do");
        std::fs::create_dir(folder.path().join("below")).expect("folder");
        std::fs::write(folder.path().join("below/file"), vec![1; 200_000]).expect("written");
        for random in 0..20 {
            write_back_some(folder.path(), random).expect("written back");
        }
    }
}
