//! The scanner's side: answers the kernel, and says what it has done when the worker asks.

use std::fs::File;
use std::io::{self, Read, Stdin, Stdout, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use sqlitmus_core::case::Scanner;
use sqlitmus_core::dataset::consume;

use super::fanotify::Group;
use super::{Scanned, scan};
use crate::machine::mounts;

/// Longest time spent on one file.
const PATIENCE: Duration = Duration::from_secs(1);

/// A question that is not answered after so many seconds ends the scanner, and with it all waiting.
const ALARM_SECONDS: u32 = 5;

/// Bytes read at a time, as scanners do.
const READ_BYTES: usize = 128 << 10;

/// This process is a scanner: it answers the kernel until its input ends. The first line of output says
/// whether it could begin; what it returns, whether all went well.
pub fn serve(input: &Stdin, output: &mut Stdout) -> bool {
    let begun = asked().and_then(|asked| {
        require_own_mount(&asked.directory, &asked.outside)?;
        let group = Group::watch(&asked.directory).map_err(refused)?;
        Ok((asked.scanner, group))
    });
    let (first, begun) = match begun {
        Ok(begun) => (format!("{}\n", scan::READY), Some(begun)),
        Err(error) => (format!("{error}\n"), None),
    };
    let told = output
        .write_all(first.as_bytes())
        .and_then(|()| output.flush());
    let Some((scanner, group)) = begun.filter(|_| told.is_ok()) else {
        return false;
    };
    Responder {
        scanner,
        group,
        buffer: vec![0; READ_BYTES],
        scanned: Scanned::default(),
    }
    .run(input, output)
    .is_ok()
}

/// What the kernel said, with what it was asked for.
fn refused(error: io::Error) -> io::Error {
    let words = "this kernel does not let files be watched by fanotify with FAN_OPEN_PERM";
    io::Error::new(error.kind(), format!("{words}: {error}"))
}

/// What the command line asks for.
struct Asked {
    scanner: Scanner,
    directory: PathBuf,
    /// The namespace of mounts that all others are in.
    outside: PathBuf,
}

fn asked() -> io::Result<Asked> {
    let mut words = std::env::args_os().skip(3);
    let mut asked = || {
        Some(Asked {
            scanner: Scanner::parse(words.next()?.to_str()?)?,
            directory: words.next()?.into(),
            outside: words.next()?.into(),
        })
    };
    let none = "a scanner is told what to do, where, and what is outside";
    asked().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, none))
}

/// Refuses to watch anything but a mount of its own: the machine's root least of all.
fn require_own_mount(directory: &Path, outside: &Path) -> io::Result<()> {
    let table = std::fs::read("/proc/self/mountinfo")?;
    let is_mount = mounts::parse(&table)
        .into_iter()
        .any(|mount| mount.mount_point == directory);
    let is_apart = std::fs::read_link(scan::NAMESPACE)? != outside;
    if is_mount && is_apart && directory != Path::new("/") {
        return Ok(());
    }
    Err(io::Error::new(
        io::ErrorKind::PermissionDenied,
        format!("{} is no mount of this worker's own", directory.display()),
    ))
}

struct Responder {
    scanner: Scanner,
    group: Group,
    buffer: Vec<u8>,
    scanned: Scanned,
}

impl Responder {
    fn run(mut self, input: &Stdin, output: &mut Stdout) -> io::Result<()> {
        loop {
            let mut waiting = [
                PollFd::from_borrowed_fd(self.group.file().as_fd(), PollFlags::IN),
                PollFd::from_borrowed_fd(input.as_fd(), PollFlags::IN),
            ];
            match poll(&mut waiting, None) {
                Err(rustix::io::Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
                Ok(_) => {}
            }
            let [asked, told] = waiting.map(|file| !file.revents().is_empty());
            if asked {
                alarm(ALARM_SECONDS);
                self.answer()?;
                alarm(0);
            }
            if told {
                let mut word = [0; 1];
                // Unbuffered: what is read is what was waited for.
                if rustix::io::read(input, &mut word)? == 0 {
                    return Ok(());
                }
                self.scanned.cpu_ns = cpu_ns();
                output.write_all(self.scanned.line().as_bytes())?;
                output.flush()?;
            }
        }
    }

    fn answer(&mut self) -> io::Result<()> {
        let own = std::process::id();
        for question in self.group.questions()? {
            if u32::try_from(question.process) == Ok(own) {
                continue;
            }
            self.scanned.files += 1;
            if self.scanner != Scanner::Asks {
                let (bytes, is_whole) = read_whole(&question.file, &mut self.buffer);
                self.scanned.bytes += bytes;
                self.scanned.unfinished += u64::from(!is_whole);
            }
            if self.scanner == Scanner::Remembers {
                question.remember()?;
            }
            alarm(ALARM_SECONDS);
        }
        Ok(())
    }
}

/// Reads a file as far as patience goes; returns the bytes, and whether they are all.
fn read_whole(file: &File, buffer: &mut [u8]) -> (u64, bool) {
    let begun = Instant::now();
    let mut bytes = 0;
    let mut sum = 0u64;
    let is_whole = loop {
        match (&*file).read(buffer) {
            Ok(0) => break true,
            Ok(read) => {
                sum = sum.wrapping_add(consume(&buffer[..read]));
                bytes += read as u64;
            }
            // What cannot be read cannot be scanned: that is for the opener to find out.
            Err(_) => break false,
        }
        if begun.elapsed() > PATIENCE {
            break false;
        }
    };
    // The compiler must not find out that nobody wants it.
    std::hint::black_box(sum);
    (bytes, is_whole)
}

/// Ends this process after so many seconds, unless it is set anew; 0 takes it back.
fn alarm(seconds: u32) {
    // SAFETY: takes a number; the signal's default action ends the process, which is what is wanted.
    unsafe { libc::alarm(seconds) };
}

/// Processor time of this process.
fn cpu_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
