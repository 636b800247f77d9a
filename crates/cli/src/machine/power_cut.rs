//! Cutting a mounted filesystem off as a loss of power does: it forgets everything that it has not
//! handed to its device. When, and what is left, is for the callers.

use std::fs::File;
use std::io;
use std::path::Path;

/// `FS_IOC_SHUTDOWN` of the kernel (linux/fs.h; before 6.x each filesystem had the same number under
/// its own name, such as `XFS_IOC_GOINGDOWN`): `_IOR('X', 125, __u32)`.
#[cfg(target_os = "linux")]
const SHUTDOWN: u64 = 0x8004_587D;

/// `FS_SHUTDOWN_FLAGS_NOLOGFLUSH`: neither data nor the journal in memory is written first.
#[cfg(target_os = "linux")]
const WITHOUT_FLUSHING_THE_LOG: u32 = 2;

/// Shuts the filesystem down that is mounted at a directory, without flushing anything. From then
/// on every write fails; unmounting and mounting it replays its journal, as after a loss of power.
///
/// # Errors
/// Not root, or the filesystem cannot do it ([`io::ErrorKind::Unsupported`]; ext4, xfs and f2fs can).
#[cfg(target_os = "linux")]
pub fn shut_down(mount_point: &Path) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    let directory = File::open(mount_point)?;
    let flags = WITHOUT_FLUSHING_THE_LOG;
    // SAFETY: the descriptor is open, and the call reads one `u32` from a pointer that is valid
    // for its duration. The request's type differs between C libraries, hence the cast.
    let answer = unsafe { libc::ioctl(directory.as_raw_fd(), SHUTDOWN as _, &raw const flags) };
    if answer == 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::ENOTTY | libc::EOPNOTSUPP | libc::EINVAL) => {
            Err(io::ErrorKind::Unsupported.into())
        }
        _ => Err(error),
    }
}

/// Not known on this platform.
///
/// # Errors
/// Always [`io::ErrorKind::Unsupported`].
#[cfg(not(target_os = "linux"))]
pub fn shut_down(_mount_point: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
