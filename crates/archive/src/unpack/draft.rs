//! A file that has no name until it is complete (`O_TMPFILE`, and a link when it is written), so that a
//! process that is killed while it unpacks leaves nothing that is half a file. Where the filesystem or the
//! system has no such files, it has its name from the beginning.

use std::fs::File;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{AtFlags, Mode, OFlags, openat, renameat, unlinkat};
use rustix::io::Errno;

/// A file that is being written.
pub(super) struct Draft {
    file: File,
    /// The name it has already; none if it has no name yet.
    name: Option<String>,
}

impl Draft {
    /// Begins a file in a directory. Neither a link nor a file of that name, however it got there, is
    /// opened or replaced.
    pub(super) fn create(
        parent: BorrowedFd<'_>,
        name: &str,
        permissions: Mode,
        force: bool,
    ) -> Result<Self, Errno> {
        if let Some(file) = unnamed(parent, permissions)? {
            return Ok(Self { file, name: None });
        }
        let name = if force {
            staged_name()
        } else {
            name.to_owned()
        };
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = File::from(openat(parent, &*name, flags, permissions)?);
        Ok(Self {
            file,
            name: Some(name),
        })
    }

    /// What is written to.
    pub(super) fn file(&mut self) -> &mut File {
        &mut self.file
    }

    /// Gives the complete file its name; with `force` in the place of what has it.
    pub(super) fn publish(
        self,
        parent: BorrowedFd<'_>,
        name: &str,
        force: bool,
    ) -> Result<(), Errno> {
        let staged = match &self.name {
            Some(own) if own == name => return Ok(()),
            Some(own) => own.clone(),
            None => match link(&self.file, parent, name) {
                Err(Errno::EXIST) if force => {
                    let staged = staged_name();
                    link(&self.file, parent, &staged)?;
                    staged
                }
                linked => return linked,
            },
        };
        renameat(parent, &*staged, parent, name).inspect_err(|_| {
            // The first failure is the one to tell.
            let _ = unlinkat(parent, &*staged, AtFlags::empty());
        })
    }

    /// Takes the file away again.
    pub(super) fn discard(self, parent: BorrowedFd<'_>) {
        if let Some(name) = &self.name {
            // What is there is whole; why it was given up is the failure to tell.
            let _ = unlinkat(parent, name.as_str(), AtFlags::empty());
        }
    }
}

/// A name for what will replace something; no other file of this process has it.
pub(super) fn staged_name() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!(".sqlitmus-unpack-{}-{count}", std::process::id())
}

/// A file without a name; `None` where there is no such thing.
#[cfg(target_os = "linux")]
fn unnamed(parent: BorrowedFd<'_>, permissions: Mode) -> Result<Option<File>, Errno> {
    use std::sync::OnceLock;

    // A link is made through it.
    static HAS_PROC: OnceLock<bool> = OnceLock::new();
    if !HAS_PROC.get_or_init(|| std::path::Path::new("/proc/self/fd").is_dir()) {
        return Ok(None);
    }
    let flags = OFlags::WRONLY | OFlags::TMPFILE | OFlags::CLOEXEC;
    match openat(parent, ".", flags, permissions) {
        Ok(opened) => Ok(Some(File::from(opened))),
        // As filesystems, and kernels before 3.11, say that they have none.
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL | Errno::NOSYS | Errno::NOENT) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

#[cfg(not(target_os = "linux"))]
fn unnamed(_parent: BorrowedFd<'_>, _permissions: Mode) -> Result<Option<File>, Errno> {
    Ok(None)
}

#[cfg(target_os = "linux")]
fn link(file: &File, parent: BorrowedFd<'_>, name: &str) -> Result<(), Errno> {
    use std::os::fd::AsRawFd;

    let own = format!("/proc/self/fd/{}", file.as_raw_fd());
    rustix::fs::linkat(
        rustix::fs::CWD,
        own.as_str(),
        parent,
        name,
        AtFlags::SYMLINK_FOLLOW,
    )
}

#[cfg(not(target_os = "linux"))]
fn link(_file: &File, _parent: BorrowedFd<'_>, _name: &str) -> Result<(), Errno> {
    Err(Errno::NOSYS)
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::fd::AsFd;

    use super::*;

    fn names(folder: &std::path::Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).expect("readable");
        let name = |entry: std::io::Result<std::fs::DirEntry>| {
            let name = entry.expect("entry").file_name();
            name.into_string().expect("UTF-8")
        };
        let mut names: Vec<String> = entries.map(name).collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_has_its_name_when_it_is_complete_and_replaces_only_by_force() {
        let folder = tempfile::tempdir().expect("temporary directory");
        let opened = File::open(folder.path()).expect("opened");
        let parent = opened.as_fd();
        let mode = Mode::RUSR | Mode::WUSR;
        let write = |force: bool, content: &str| {
            let mut draft = Draft::create(parent, "a", mode, force)?;
            draft.file().write_all(content.as_bytes()).expect("written");
            draft.publish(parent, "a", force)
        };
        let read = || std::fs::read_to_string(folder.path().join("a")).expect("read");
        write(false, "one").expect("published");
        assert_eq!(write(false, "two"), Err(Errno::EXIST));
        assert_eq!(read(), "one");
        write(true, "three").expect("replaced");
        assert_eq!(
            (read().as_str(), names(folder.path())),
            ("three", vec!["a".to_owned()])
        );
        let draft = Draft::create(parent, "b", mode, false).expect("begun");
        draft.discard(parent);
        assert_eq!(names(folder.path()), ["a"]);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn an_unfinished_file_is_not_seen() {
        let folder = tempfile::tempdir().expect("temporary directory");
        let opened = File::open(folder.path()).expect("opened");
        let mode = Mode::RUSR | Mode::WUSR;
        if unnamed(opened.as_fd(), mode).expect("asked").is_none() {
            let reason = "skipped: this filesystem has no files without a name";
            writeln!(std::io::stderr(), "{reason}").expect("stderr");
            return;
        }
        let mut draft = Draft::create(opened.as_fd(), "a", mode, false).expect("begun");
        draft.file().write_all(b"half").expect("written");
        assert_eq!(names(folder.path()), Vec::<String>::new());
    }
}
