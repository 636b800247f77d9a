//! Opening folders and listing names: the calls to the kernel. What is made of the names is left to
//! the walker.

use std::ffi::CStr;
#[cfg(target_os = "linux")]
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{FileType, Mode, OFlags, openat};
use rustix::io::Errno;
use rustix::path::Arg;

/// Bytes of names that are asked for at once; a folder of a thousand entries takes one call.
#[cfg(target_os = "linux")]
const BUFFER_BYTES: usize = 64 << 10;

const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// Opens for reading without leaving a time of access, where the system allows that: it does to the
/// owner and to root, and refuses others with EPERM.
pub(crate) fn open_quietly(
    folder: BorrowedFd<'_>,
    name: &CStr,
    flags: OFlags,
) -> Result<OwnedFd, Errno> {
    #[cfg(target_os = "linux")]
    match openat(folder, name, flags | OFlags::NOATIME, Mode::empty()) {
        Err(Errno::PERM) => {}
        opened => return opened,
    }
    openat(folder, name, flags, Mode::empty())
}

/// Opens a folder in a folder; a symbolic link is refused.
pub(super) fn open_folder(parent: BorrowedFd<'_>, name: &CStr) -> Result<OwnedFd, Errno> {
    open_quietly(parent, name, FOLDER)
}

/// Opens by its relative path what lies deep in a tree, without leaving the tree and without following
/// any symbolic link on the way, where the system can promise that.
pub(crate) fn open_beneath(
    top: BorrowedFd<'_>,
    path: &[u8],
    flags: OFlags,
) -> Result<OwnedFd, Errno> {
    path.into_with_c_str(|path| {
        #[cfg(target_os = "linux")]
        for flags in [flags | OFlags::NOATIME, flags] {
            use rustix::fs::{ResolveFlags, openat2};
            let inside = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
            match openat2(top, path, flags, Mode::empty(), inside) {
                Err(Errno::PERM) => {}
                // Kernels before 5.6, and sandboxes that do not know the call.
                Err(Errno::NOSYS) => break,
                opened => return opened,
            }
        }
        open_quietly(top, path, flags)
    })
}

/// As [`open_beneath`], for a folder.
pub(super) fn open_folder_beneath(top: BorrowedFd<'_>, path: &[u8]) -> Result<OwnedFd, Errno> {
    open_beneath(top, path, FOLDER)
}

/// Memory for listing folders, used again and again; allocated when it is first needed.
#[derive(Default)]
pub(super) struct NameBuffer {
    #[cfg(target_os = "linux")]
    bytes: Box<[MaybeUninit<u8>]>,
}

impl NameBuffer {
    /// Calls `each` with every name in a folder, but for `.` and `..`, and with its type if the
    /// filesystem tells it there.
    pub(super) fn list(
        &mut self,
        folder: &OwnedFd,
        mut each: impl FnMut(&CStr, FileType),
    ) -> Result<(), Errno> {
        let mut one = |name: &CStr, file_type| {
            if !matches!(name.to_bytes(), b"." | b"..") {
                each(name, file_type);
            }
        };
        #[cfg(target_os = "linux")]
        {
            if self.bytes.is_empty() {
                self.bytes = Box::new_uninit_slice(BUFFER_BYTES);
            }
            let mut entries = rustix::fs::RawDir::new(folder.as_fd(), &mut self.bytes);
            while let Some(entry) = entries.next() {
                let entry = entry?;
                one(entry.file_name(), entry.file_type());
            }
        }
        #[cfg(not(target_os = "linux"))]
        for entry in rustix::fs::Dir::read_from(folder.as_fd())? {
            let entry = entry?;
            one(entry.file_name(), entry.file_type());
        }
        Ok(())
    }
}
