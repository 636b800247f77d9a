//! The number under which the kernel knows a trace point, which perf_event_open(2) asks for.
//!
//! The numbers are published in tracefs alone. Where it is not mounted, it is opened without being
//! mounted anywhere: such a mount has no path, nobody else sees it, and it goes with its last file.

use std::fs::File;
use std::io::{self, Read};

/// Where tracefs is mounted, if it is: the usual place, and the one before Linux 4.1.
const FOLDERS: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// The number of a trace point, such as `raw_syscalls/sys_enter`.
///
/// # Errors
/// Tracefs is not there, or only root may look into it.
#[cfg(target_os = "linux")]
pub fn number(name: &str) -> io::Result<u64> {
    let path = format!("events/{name}/id");
    let mut refusal = None;
    for folder in FOLDERS {
        match File::open(format!("{folder}/{path}")) {
            Ok(file) => return parsed(file),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => refusal = Some(error),
        }
    }
    match open_unmounted(&path) {
        Ok(file) => parsed(file),
        // That a mounted one is closed to us says more than that we may not mount either.
        Err(error) => Err(refusal.unwrap_or(error)),
    }
}

/// No trace points are known on this platform.
///
/// # Errors
/// Always.
#[cfg(not(target_os = "linux"))]
pub fn number(_name: &str) -> io::Result<u64> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(target_os = "linux")]
fn open_unmounted(path: &str) -> io::Result<File> {
    use rustix::fs::{Mode, OFlags};
    use rustix::mount::{
        FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen,
    };
    let context = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&context)?;
    let mount = fsmount(
        &context,
        FsMountFlags::FSMOUNT_CLOEXEC,
        MountAttrFlags::MOUNT_ATTR_RDONLY,
    )?;
    let file = rustix::fs::openat(
        &mount,
        path,
        OFlags::RDONLY | OFlags::CLOEXEC,
        Mode::empty(),
    )?;
    Ok(File::from(file))
}

fn parsed(mut file: File) -> io::Result<u64> {
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    text.trim()
        .parse()
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}
