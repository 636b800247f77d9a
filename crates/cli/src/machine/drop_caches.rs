//! Dropping what the kernel caches of all filesystems: content, inodes and directory entries. The
//! only way to forget where files lie without unmounting. It hits the whole machine, so it is done
//! only where the user has allowed it.

use std::path::Path;

/// Drops content, inodes and directory entries; see Documentation/admin-guide/sysctl/vm.rst.
const EVERYTHING: &str = "3";

/// What is written to for it, by those who may.
pub const CONTROL: &str = "/proc/sys/vm/drop_caches";

/// Has the kernel drop all clean pages, inodes and directory entries that nobody uses. What is
/// dirty stays: sync the filesystem first.
///
/// # Errors
/// What this machine or this user lacks, in a sentence.
pub fn drop_caches() -> Result<(), String> {
    write(Path::new(CONTROL), EVERYTHING)
}

fn write(control: &Path, what: &str) -> Result<(), String> {
    match std::fs::OpenOptions::new()
        .write(true)
        .open(control)
        .and_then(|mut file| std::io::Write::write_all(&mut file, what.as_bytes()))
    {
        Ok(()) => Ok(()),
        Err(error) => match error.kind() {
            std::io::ErrorKind::NotFound => {
                Err("this system has no way to drop what it caches".to_owned())
            }
            std::io::ErrorKind::PermissionDenied | std::io::ErrorKind::ReadOnlyFilesystem => {
                Err("only root may have the kernel drop its caches".to_owned())
            }
            _ => Err(format!("the kernel did not drop its caches: {error}")),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lacking_is_said() {
        let folder = tempfile::tempdir().expect("a folder");
        let missing = write(&folder.path().join("none"), EVERYTHING).expect_err("not there");
        assert!(missing.contains("no way"), "{missing}");
        let control = folder.path().join("control");
        std::fs::write(&control, "").expect("written");
        write(&control, EVERYTHING).expect("a file takes it");
        assert_eq!(std::fs::read_to_string(&control).expect("read"), "3");
    }
}
