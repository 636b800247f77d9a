//! The worker's side: a mount of its own, and a scanner that watches it.

use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::mount::{MountPropagationFlags, mount_bind, mount_change};
use rustix::thread::UnshareFlags;
use sqlitmus_core::case::Scanner;

use super::{SCANNER_ARGUMENT, Scanned};

/// First line of a scanner that has begun.
pub(super) const READY: &str = "ready";

/// Longest wait for a line of the scanner's.
const WAIT: Timespec = Timespec {
    tv_sec: 10,
    tv_nsec: 0,
};

/// A scanner at work. It ends when this is dropped, or with this process.
pub struct Scan {
    child: Child,
    questions: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Scan {
    /// Puts this process, which must have one thread, into a mount namespace of its own, mounts the
    /// directory over itself there, and has a scanner asked about every file opened below it.
    ///
    /// # Errors
    /// What the machine or this user lacks, in a sentence.
    pub fn begin(scanner: Scanner, directory: &Path) -> Result<Self, String> {
        if !rustix::process::geteuid().is_root() {
            return Err(
                "an on-access scanner takes root (fanotify and a mount of its own): run it with sudo"
                    .to_owned(),
            );
        }
        let outside = own_mount(directory)
            .map_err(|error| format!("cannot make a mount for a scanner: {error}"))?;
        let mut scan = Self::start(scanner, directory, &outside)
            .map_err(|error| format!("cannot start a scanner: {error}"))?;
        match scan.line() {
            Some(line) if line.trim_end() == READY => Ok(scan),
            Some(line) => Err(format!("the scanner cannot begin: {}", line.trim_end())),
            None => Err("the scanner did not begin within 10 s".to_owned()),
        }
    }

    fn start(scanner: Scanner, directory: &Path, outside: &Path) -> io::Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .arg(SCANNER_ARGUMENT)
            .arg(std::process::id().to_string())
            .arg(scanner.to_string())
            .arg(directory)
            .arg(outside)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let (questions, answers) = (child.stdin.take(), child.stdout.take());
        match answers {
            Some(answers) => Ok(Self {
                child,
                questions,
                answers: BufReader::new(answers),
            }),
            None => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    /// What it has done so far; `None` if it has ended, and nobody is asked any more.
    pub fn scanned(&mut self) -> Option<Scanned> {
        self.questions.as_mut()?.write_all(b"?").ok()?;
        Scanned::parse(&self.line()?)
    }

    /// The scanner's next line.
    fn line(&mut self) -> Option<String> {
        if self.answers.buffer().is_empty() {
            let mut waiting = [PollFd::from_borrowed_fd(
                self.answers.get_ref().as_fd(),
                PollFlags::IN,
            )];
            if !matches!(poll(&mut waiting, Some(&WAIT)), Ok(1..)) {
                return None;
            }
        }
        let mut line = String::new();
        let read = self.answers.read_line(&mut line).ok()?;
        (read > 0).then_some(line)
    }
}

impl Drop for Scan {
    fn drop(&mut self) {
        drop(self.questions.take());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The namespace that a process's mounts are in, as the kernel calls it.
pub(super) const NAMESPACE: &str = "/proc/self/ns/mnt";

/// Mounts a directory over itself where no other process sees it; returns the namespace that this
/// process was in before.
fn own_mount(directory: &Path) -> io::Result<PathBuf> {
    let outside = std::fs::read_link(NAMESPACE)?;
    // SAFETY: the process has one thread, so that no other one finds itself in another namespace.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNS) }?;
    // Or what is mounted here would be mounted everywhere.
    mount_change(
        "/",
        MountPropagationFlags::REC | MountPropagationFlags::PRIVATE,
    )?;
    mount_bind(directory, directory)?;
    Ok(outside)
}
