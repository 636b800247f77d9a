//! Writing what is planned, relative to open directories. A file gets its name when it is complete
//! ([`super::draft`]); one that is replaced is replaced as a whole, by renaming.

use std::io::{self, Write};
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{
    AtFlags, Mode, Timespec, Timestamps, UTIME_OMIT, fchmod, futimens, mkdirat, renameat,
    symlinkat, unlinkat, utimensat,
};
use rustix::io::Errno;

use super::UnpackSettings;
use super::draft::{Draft, staged_name};
use super::plan::{Plan, Planned};
use crate::archive::Archive;
use crate::directory::{Directory, is_no_directory, split};
use crate::entry::PERMISSION_BITS;
use crate::error::ArchiveError;
use crate::lookup::Lookup;
use crate::watch::Watch;

/// Files that a thread takes at a time.
const CHUNK_FILES: usize = 64;

/// What a directory may while it is filled.
const WHILE_FILLED: Mode = Mode::RWXU;

/// Writes the plan.
pub(super) fn write(
    archive: &Archive,
    plan: &Plan,
    directory: &Directory,
    target: &Path,
    settings: &UnpackSettings,
    watch: &Watch,
) -> Result<(), ArchiveError> {
    let again = || directory.again().map_err(ArchiveError::io("open", target));
    let mut job = Job {
        directory: again()?,
        target,
        force: settings.force,
        mask: creation_mask(),
    };
    let made = job.make_directories(plan)?;
    watch.done(plan.directories.len() as u64, 0);
    write_files(archive, &plan.files, &job, settings.threads, watch)?;
    for (planned, link_target) in &plan.links {
        watch.check()?;
        job.make_link(planned, link_target)?;
        watch.done(1, 0);
    }
    // The deepest first: what is in a directory changes its time, and a closed one cannot be entered.
    for planned in made.into_iter().rev() {
        job.finish_directory(planned)?;
    }
    Ok(())
}

/// Each thread begins in a part of its own, so that threads seldom make names in the same directory; then it
/// helps in the other parts.
fn write_files(
    archive: &Archive,
    files: &[Planned],
    job: &Job<'_>,
    threads: usize,
    watch: &Watch,
) -> Result<(), ArchiveError> {
    let threads = threads.clamp(1, files.len().div_ceil(CHUNK_FILES).max(1));
    let border = |part: usize| part * files.len() / threads;
    let next: Vec<AtomicUsize> = (0..threads)
        .map(|part| AtomicUsize::new(border(part)))
        .collect();
    let failed = AtomicBool::new(false);
    let first_error = Mutex::new(None);
    let work = |own: usize| -> Result<(), ArchiveError> {
        let reader = archive.reader()?;
        let mut lookup = reader.lookup()?;
        let mut job = job.again()?;
        for part in (own..threads).chain(0..own) {
            loop {
                let begin = next[part].fetch_add(CHUNK_FILES, Ordering::Relaxed);
                if begin >= border(part + 1) || failed.load(Ordering::Relaxed) {
                    break;
                }
                watch.check()?;
                for planned in &files[begin..border(part + 1).min(begin + CHUNK_FILES)] {
                    job.write_file(planned, &mut lookup)?;
                    watch.done(1, planned.entry.size);
                }
            }
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        for own in 0..threads {
            let (work, failed, first_error) = (&work, &failed, &first_error);
            scope.spawn(move || {
                if let Err(error) = work(own) {
                    failed.store(true, Ordering::Relaxed);
                    first_error
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .get_or_insert(error);
                }
            });
        }
    });
    match first_error
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner)
    {
        Some(error) => Err(error),
        None => Ok(()),
    }
}

/// What one thread needs to write.
struct Job<'a> {
    directory: Directory,
    target: &'a Path,
    force: bool,
    /// Permissions that the system takes away from what is made; all, if that is not known.
    mask: u32,
}

impl Job<'_> {
    fn again(&self) -> Result<Self, ArchiveError> {
        let directory = self
            .directory
            .again()
            .map_err(ArchiveError::io("open", self.target))?;
        Ok(Self {
            directory,
            target: self.target,
            force: self.force,
            mask: self.mask,
        })
    }

    /// Makes all directories, also those that have no entry; gives the entries whose directory is to get its
    /// permissions and time: new ones, and with `force` those that were there.
    fn make_directories<'p>(&mut self, plan: &'p Plan) -> Result<Vec<&'p Planned>, ArchiveError> {
        let target = self.target;
        let mut made = Vec::new();
        for planned in &plan.directories {
            let (parent, name) = split(&planned.path);
            let failed = || failed(target, "create", &planned.path);
            let parent = self.directory.make(parent).map_err(failed())?;
            let is_new = match mkdirat(parent, name, WHILE_FILLED) {
                Ok(()) => true,
                Err(Errno::EXIST) => false,
                Err(error) => return Err(failed()(error.into())),
            };
            if is_new || self.force {
                made.push(planned);
            }
        }
        let mut before = "";
        let links = plan.links.iter().map(|(planned, _)| planned);
        for planned in plan.files.iter().chain(links) {
            let (parent, _) = split(&planned.path);
            if parent != before {
                self.directory
                    .make(parent)
                    .map_err(failed(target, "create", parent))?;
                before = parent;
            }
        }
        Ok(made)
    }

    fn write_file(
        &mut self,
        planned: &Planned,
        lookup: &mut Lookup<'_>,
    ) -> Result<(), ArchiveError> {
        let Self {
            directory,
            target,
            force,
            mask,
        } = self;
        let failed = |action| failed(target, action, &planned.path);
        let (parent, name) = split(&planned.path);
        let parent = directory
            .at(parent)
            .map_err(failed("open the directory of"))?;
        let permissions = planned.entry.mode & PERMISSION_BITS;
        let mode = Mode::from_raw_mode(permissions);
        let refused = |error: Errno| match error {
            Errno::EXIST => ArchiveError::Exists {
                path: target.join(&*planned.path),
            },
            error => failed("create")(error.into()),
        };
        let mut draft = Draft::create(parent, name, mode, *force).map_err(refused)?;
        let file = draft.file();
        let mut write = || {
            lookup.pour(&planned.entry, &mut |piece| {
                file.write_all(piece).map_err(failed("write"))
            })?;
            if permissions & *mask != 0 {
                fchmod(&*file, mode)
                    .map_err(|error| failed("set the permissions of")(error.into()))?;
            }
            futimens(&*file, &changed_at(planned.entry.mtime))
                .map_err(|error| failed("set the time of")(error.into()))
        };
        match write() {
            Ok(()) => draft.publish(parent, name, *force).map_err(refused),
            Err(error) => {
                draft.discard(parent);
                Err(error)
            }
        }
    }

    fn make_link(&mut self, planned: &Planned, link_target: &[u8]) -> Result<(), ArchiveError> {
        let Self {
            directory,
            target,
            force,
            ..
        } = self;
        let failed = |action| failed(target, action, &planned.path);
        let (parent, name) = split(&planned.path);
        let parent = directory
            .at(parent)
            .map_err(failed("open the directory of"))?;
        let staged = force.then(staged_name);
        let written_name = staged.as_deref().unwrap_or(name);
        symlinkat(link_target, parent, written_name).map_err(|error| match error {
            Errno::EXIST => ArchiveError::Exists {
                path: target.join(&*planned.path),
            },
            error => failed("create")(error.into()),
        })?;
        let times = changed_at(planned.entry.mtime);
        // Not every filesystem keeps a link's own time.
        let _ = utimensat(parent, written_name, &times, AtFlags::SYMLINK_NOFOLLOW);
        if staged.is_some() {
            renameat(parent, written_name, parent, name).map_err(|error| {
                let _ = unlinkat(parent, written_name, AtFlags::empty());
                failed("replace")(error.into())
            })?;
        }
        Ok(())
    }

    fn finish_directory(&mut self, planned: &Planned) -> Result<(), ArchiveError> {
        let target = self.target;
        let failed = |action| failed(target, action, &planned.path);
        let opened: BorrowedFd<'_> = self.directory.at(&planned.path).map_err(failed("open"))?;
        let permissions = Mode::from_raw_mode(planned.entry.mode & PERMISSION_BITS);
        fchmod(opened, permissions)
            .map_err(|error| failed("set the permissions of")(error.into()))?;
        futimens(opened, &changed_at(planned.entry.mtime))
            .map_err(|error| failed("set the time of")(error.into()))
    }
}

fn failed(
    target: &Path,
    action: &'static str,
    path: &str,
) -> impl FnOnce(io::Error) -> ArchiveError {
    let path = target.join(path);
    move |error| {
        if is_no_directory(&error) {
            let first = format!(
                "{}: a link or a file stands where a directory has to be",
                path.display()
            );
            return ArchiveError::Unsafe { count: 1, first };
        }
        ArchiveError::io(action, &path)(error)
    }
}

fn changed_at(mtime: i64) -> Timestamps {
    Timestamps {
        last_access: Timespec {
            tv_sec: 0,
            tv_nsec: UTIME_OMIT,
        },
        last_modification: Timespec {
            tv_sec: mtime,
            tv_nsec: 0,
        },
    }
}

/// The process's mask of permissions, without changing it, as there may be other threads; all bits if
/// the system does not tell.
fn creation_mask() -> u32 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    mask.and_then(|mask| u32::from_str_radix(mask.trim(), 8).ok())
        .unwrap_or(PERMISSION_BITS)
}
