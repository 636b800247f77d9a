//! In how many stretches a file lies on its device, as the filesystem itself says it (the FIEMAP call of Linux):
//! what filefrag prints as extents. Extents that follow each other on the device count as one, also with a hole
//! between them that could be filled there.
//!
//! What is not written back yet is written back first, by the same call.

use std::fs::File;
use std::io;
use std::path::Path;

/// Files and the stretches that they lie in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Extents {
    /// Files that were asked about.
    pub files: u64,
    /// Stretches of all of them together; an empty file has none.
    pub extents: u64,
}

/// Counts the extents of a file, or of all files below a directory; links are not followed.
///
/// # Errors
/// The filesystem has no such call ([`io::ErrorKind::Unsupported`]), or a file cannot be opened.
pub fn count(path: &Path) -> io::Result<Extents> {
    let metadata = std::fs::symlink_metadata(path)?;
    let mut counted = Extents::default();
    if metadata.is_dir() {
        for entry in std::fs::read_dir(path)? {
            let inside = count(&entry?.path())?;
            counted.files += inside.files;
            counted.extents += inside.extents;
        }
    } else if metadata.is_file() {
        counted.files = 1;
        counted.extents = of_file(&File::open(path)?)?;
    }
    Ok(counted)
}

/// Why a filesystem's extents cannot be counted, in a few words; `None` if they can. Asks about one file or directory.
#[must_use]
pub fn refusal(path: &Path) -> Option<String> {
    let counted = count(path);
    counted.err().map(|error| match error.kind() {
        io::ErrorKind::Unsupported => "the filesystem does not tell where files lie".to_owned(),
        _ => error.to_string(),
    })
}

#[cfg(target_os = "linux")]
fn of_file(file: &File) -> io::Result<u64> {
    let mut stretches = 0;
    let mut previous: Option<linux::Extent> = None;
    let mut request = Box::new(linux::Request::new());
    loop {
        request.ask(file)?;
        let extents = request.answered();
        for extent in extents {
            if !previous.is_some_and(|previous| extent.follows(&previous)) {
                stretches += 1;
            }
            previous = Some(*extent);
        }
        match extents.last() {
            Some(last) if !last.is_last() => {
                let next = last.logical + last.length;
                request.go_on_at(next);
            }
            _ => return Ok(stretches),
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn of_file(_file: &File) -> io::Result<u64> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(target_os = "linux")]
mod linux {
    use std::fs::File;
    use std::io;
    use std::os::fd::AsRawFd;

    /// Extents that are asked for at once.
    const AT_ONCE: usize = 256;

    /// `FS_IOC_FIEMAP`: `_IOWR('f', 11, struct fiemap)` of linux/fiemap.h.
    const FS_IOC_FIEMAP: u64 = 0xC020_660B;

    /// Write back first.
    const FLAG_SYNC: u32 = 1;

    /// `FIEMAP_EXTENT_LAST`.
    const LAST: u32 = 0x1;

    /// Extents without a place of their own on the device: unknown, delayed, encoded, inline or packed.
    const WITHOUT_PLACE: u32 = 0x2 | 0x4 | 0x8 | 0x100 | 0x200 | 0x400;

    /// `struct fiemap_extent`.
    #[derive(Clone, Copy, Default)]
    #[repr(C)]
    pub(super) struct Extent {
        pub(super) logical: u64,
        physical: u64,
        pub(super) length: u64,
        reserved_wide: [u64; 2],
        flags: u32,
        reserved: [u32; 3],
    }

    impl Extent {
        pub(super) fn is_last(&self) -> bool {
            self.flags & LAST != 0
        }

        /// Whether it lies on the device where the previous one ends, or where it would end if a hole between
        /// them were filled.
        pub(super) fn follows(&self, previous: &Self) -> bool {
            let are_placed = (self.flags | previous.flags) & WITHOUT_PLACE == 0;
            let dense = previous.physical.wrapping_add(previous.length);
            let apart = self.logical.wrapping_sub(previous.logical);
            let with_hole = previous.physical.wrapping_add(apart);
            are_placed && (self.physical == dense || self.physical == with_hole)
        }
    }

    /// `struct fiemap`, with room for extents behind it.
    #[repr(C)]
    pub(super) struct Request {
        start: u64,
        length: u64,
        flags: u32,
        mapped_extents: u32,
        extent_count: u32,
        reserved: u32,
        extents: [Extent; AT_ONCE],
    }

    impl Request {
        pub(super) fn new() -> Self {
            Self {
                start: 0,
                length: u64::MAX,
                flags: FLAG_SYNC,
                mapped_extents: 0,
                extent_count: AT_ONCE as u32,
                reserved: 0,
                extents: [Extent::default(); AT_ONCE],
            }
        }

        pub(super) fn go_on_at(&mut self, start: u64) {
            self.start = start;
            self.length = u64::MAX - start;
        }

        pub(super) fn ask(&mut self, file: &File) -> io::Result<()> {
            // SAFETY: the kernel writes into the structure alone, as many extents as `extent_count` says at
            // the most, for which there is room; the descriptor is open as long as the file is borrowed.
            let result = unsafe {
                libc::ioctl(
                    file.as_raw_fd(),
                    FS_IOC_FIEMAP as _,
                    std::ptr::from_mut::<Self>(self),
                )
            };
            if result == 0 {
                return Ok(());
            }
            let error = io::Error::last_os_error();
            match error.raw_os_error() {
                Some(libc::EOPNOTSUPP | libc::ENOTTY | libc::EBADR) => {
                    Err(io::ErrorKind::Unsupported.into())
                }
                _ => Err(error),
            }
        }

        pub(super) fn answered(&self) -> &[Extent] {
            &self.extents[..(self.mapped_extents as usize).min(AT_ONCE)]
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;
    use std::process::Command;

    #[test]
    fn a_file_with_holes_has_as_many_extents_as_filefrag_says() {
        let place = tempfile::tempdir().expect("a folder");
        let path = place.path().join("holes");
        let file = File::create(&path).expect("created");
        for hole in 0..300u64 {
            file.write_all_at(&[7; 4096], hole * 64 * 1024)
                .expect("written");
        }
        file.sync_all().expect("synced");
        std::fs::write(place.path().join("empty"), b"").expect("written");
        let counted = match count(&path) {
            Err(error) if error.kind() == io::ErrorKind::Unsupported => {
                eprintln!("skipped: {} does not tell extents", place.path().display());
                return;
            }
            counted => counted.expect("counted"),
        };
        assert_eq!(counted.files, 1);
        assert!((1..=300).contains(&counted.extents), "{counted:?}");
        let all = count(place.path()).expect("counted");
        assert_eq!((all.files, all.extents), (2, counted.extents));
        let Ok(said) = Command::new("filefrag").arg(&path).output() else {
            eprintln!("skipped in part: filefrag is not here");
            return;
        };
        let said = String::from_utf8_lossy(&said.stdout).into_owned();
        let words = format!(": {} extent", counted.extents);
        assert!(said.contains(&words), "{said} is not {}", counted.extents);
    }
}
