//! Renaming that replaces nothing: how what is complete gets its own name. What is renamed, and
//! what to do when the name is taken, is left to the callers.

use std::fs;
use std::io;
use std::path::Path;

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

/// Gives a file or a directory another name on the same filesystem, if nothing has that name.
///
/// # Errors
/// [`io::ErrorKind::AlreadyExists`] if something has the name, or the operating system fails;
/// nothing is changed then.
pub fn rename_to_free_name(from: &Path, to: &Path) -> io::Result<()> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // Filesystems that do not know the flag (NFS, some FUSE), and kernels before 3.15.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => without_the_flag(from, to),
        done => Ok(done?),
    }
}

/// A file gets its second name only if nothing has it; a filesystem without links, and a directory,
/// leave the instant between looking and renaming.
fn without_the_flag(from: &Path, to: &Path) -> io::Result<()> {
    if !from.symlink_metadata()?.is_dir() {
        match rustix::fs::link(from, to) {
            Err(Errno::PERM | Errno::NOSYS | Errno::NOTSUP) => {}
            linked => {
                linked?;
                return fs::remove_file(from);
            }
        }
    }
    match to.symlink_metadata() {
        Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => fs::rename(from, to),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Rename = fn(&Path, &Path) -> io::Result<()>;

    #[test]
    fn nothing_is_replaced_and_a_free_name_is_taken() {
        let folder = tempfile::tempdir().expect("temporary directory");
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        for rename in [rename_to_free_name as Rename, without_the_flag] {
            fs::write(&from, "ours").expect("write");
            fs::write(&to, "foreign").expect("write");
            let error = rename(&from, &to).expect_err("taken");
            assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
            assert_eq!(fs::read_to_string(&to).expect("read"), "foreign");
            fs::remove_file(&to).expect("remove");
            rename(&from, &to).expect("free");
            assert!(!from.exists());
            assert_eq!(fs::read_to_string(&to).expect("read"), "ours");
            fs::remove_file(&to).expect("remove");

            fs::create_dir(&from).expect("folder");
            // Even an empty one, which a plain rename would replace.
            fs::create_dir(&to).expect("folder");
            let error = rename(&from, &to).expect_err("taken");
            assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
            fs::remove_dir(&to).expect("remove");
            rename(&from, &to).expect("free");
            assert!(!from.exists());
            fs::remove_dir(&to).expect("remove");
        }
    }
}
