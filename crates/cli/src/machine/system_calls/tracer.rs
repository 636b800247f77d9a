//! Counting system calls without any right: a process of ours, forked off for it, traces the threads that are
//! counted (ptrace(2)) and is told by two calls that mean nothing else when to begin and when to end.
//!
//! It is forked and not started anew so that it needs no program, and does nothing after the fork but system calls
//! on memory that it has already: another thread may have held a lock of the allocator.

use std::collections::BTreeMap;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsRawFd, RawFd};

use libc::{c_int, c_long, pid_t};

use super::kinds;

/// Numbers of system calls are below this on all platforms; the last place takes those that are not.
const NUMBERS: usize = 1024;

/// The first argument of the calls that begin and end: no `which` of getpriority(2), so that they fail at once.
const MARK: u64 = 0x73_716c;
const BEGIN: u64 = 1;
const END: u64 = 2;

/// What the kernel adds to SIGTRAP at a system call (`PTRACE_O_TRACESYSGOOD`).
const SYSTEM_CALL: c_int = libc::SIGTRAP | 0x80;
/// An event of a thread that was seized: `PTRACE_EVENT_STOP`.
const EVENT_STOP: c_int = 128;
/// `PTRACE_GET_SYSCALL_INFO`, since Linux 5.3, and what it answers at the entry of a call.
const GET_CALL: libc::c_uint = 0x420e;
const ENTRY: u8 = 1;

/// The beginning of `struct ptrace_syscall_info`, as at the entry of a call.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Call {
    stage: u8,
    padding: u8,
    flags: u16,
    architecture: u32,
    instruction_pointer: u64,
    stack_pointer: u64,
    number: u64,
    arguments: [u64; 6],
}

/// A process that traces threads of this one.
#[derive(Debug)]
pub struct Tracer {
    process: pid_t,
    counts: PipeReader,
}

impl Tracer {
    /// Of the calling thread, and of threads that it starts from now on.
    ///
    /// # Errors
    /// Tracing is not allowed here, or somebody is tracing already.
    pub fn of_this_thread() -> io::Result<Self> {
        Self::of(&[own_thread()])
    }

    /// Of all threads of this process, and of those that they start from now on.
    ///
    /// # Errors
    /// Tracing is not allowed here, or somebody is tracing already.
    pub fn of_this_process() -> io::Result<Self> {
        let own = own_thread();
        let others = std::fs::read_dir("/proc/self/task")?
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
            .filter(|thread| *thread != own);
        let threads: Vec<pid_t> = std::iter::once(own).chain(others).collect();
        Self::of(&threads)
    }

    /// Of threads, of which the first is the calling one.
    fn of(threads: &[pid_t]) -> io::Result<Self> {
        let (permission, mut permit) = io::pipe()?;
        let (mut counts, report) = io::pipe()?;
        let unused = [permit.as_raw_fd(), counts.as_raw_fd()];
        // SAFETY: the child calls nothing but `trace`, which keeps to what is allowed after a fork.
        let process = unsafe { libc::fork() };
        match process {
            -1 => return Err(io::Error::last_os_error()),
            0 => trace(threads, &permission, &report, unused),
            _ => {}
        }
        drop((permission, report));
        // Where the kernel's Yama module allows tracing to parents alone, it may be allowed by name. Kernels
        // without it refuse the call, which is as good.
        // SAFETY: takes numbers alone.
        unsafe { libc::prctl(PR_SET_PTRACER, process as libc::c_ulong, 0, 0, 0) };
        let mut answer = [0; size_of::<c_int>()];
        let attached = permit
            .write_all(&[1])
            .and_then(|()| counts.read_exact(&mut answer));
        // From here on it is ended when it is dropped.
        let tracer = Self { process, counts };
        attached?;
        match c_int::from_ne_bytes(answer) {
            0 => Ok(tracer),
            error => Err(io::Error::from_raw_os_error(error)),
        }
    }

    /// Counts from now on.
    pub fn start(&self) {
        mark(BEGIN);
    }

    /// Ends counting and tells the calls by name.
    ///
    /// # Errors
    /// The tracing process has gone.
    pub fn stop(mut self) -> io::Result<BTreeMap<&'static str, u64>> {
        mark(END);
        let mut bytes = [0; NUMBERS * size_of::<u64>()];
        self.counts.read_exact(&mut bytes)?;
        let counts = bytes.chunks_exact(size_of::<u64>()).map(|bytes| {
            let mut count = [0; size_of::<u64>()];
            count.copy_from_slice(bytes);
            u64::from_ne_bytes(count)
        });
        Ok(kinds::by_name((0..).zip(counts)))
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        // What a dead process has traced runs on untraced. One that has ended already is only waited for.
        // SAFETY: the process is our child, which nobody else waits for, so its number is not another's yet.
        unsafe {
            libc::kill(self.process, libc::SIGKILL);
            while libc::waitpid(self.process, std::ptr::null_mut(), 0) == -1
                && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
            {}
            libc::prctl(PR_SET_PTRACER, 0, 0, 0, 0);
        }
    }
}

/// `PR_SET_PTRACER` of prctl(2), which not every C library names.
const PR_SET_PTRACER: c_int = 0x5961_6d61;

fn own_thread() -> pid_t {
    rustix::thread::gettid().as_raw_nonzero().get()
}

/// Tells the tracer something by a call that fails.
fn mark(what: u64) {
    // SAFETY: takes two numbers, of which the first is none that it knows.
    unsafe { libc::syscall(libc::SYS_getpriority, MARK, what) };
}

/// The tracing process: reports an error number, 0 if it has begun, and at the end the counts.
fn trace(threads: &[pid_t], permission: &PipeReader, report: &PipeWriter, unused: [RawFd; 2]) -> ! {
    let mut permitted = 0u8;
    // SAFETY: these calls take numbers, and a buffer of one byte that lives on.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0);
        for descriptor in unused {
            libc::close(descriptor);
        }
        libc::read(
            permission.as_raw_fd(),
            (&raw mut permitted).cast(),
            size_of::<u8>(),
        );
    }
    let error = seize(threads).and_then(|seized| follow(threads, seized, report));
    let error = error.err().unwrap_or(0);
    tell(report, &error.to_ne_bytes());
    // SAFETY: ends this process without what the program has registered for its own end.
    unsafe { libc::_exit(0) }
}

/// Attaches to threads and has them stop; returns how many are there still.
fn seize(threads: &[pid_t]) -> Result<usize, c_int> {
    let options = (libc::PTRACE_O_TRACESYSGOOD | libc::PTRACE_O_TRACECLONE) as usize;
    let mut seized = 0;
    for (index, thread) in threads.iter().enumerate() {
        match request(libc::PTRACE_SEIZE as _, *thread, 0, options) {
            Ok(()) => {
                request(libc::PTRACE_INTERRUPT as _, *thread, 0, 0)?;
                seized += 1;
            }
            // Another than the one that waits for us may have ended meanwhile.
            Err(libc::ESRCH) if index > 0 => {}
            Err(error) => return Err(error),
        }
    }
    Ok(seized)
}

/// Lets the threads run from call to call; once all do, says so. Returns only with an error.
fn follow(threads: &[pid_t], seized: usize, report: &PipeWriter) -> Result<(), c_int> {
    let mut counts = [0u64; NUMBERS];
    let mut counting = false;
    let mut begun = 0;
    loop {
        let mut status = 0;
        // SAFETY: the status is a live integer.
        let thread = unsafe { libc::waitpid(-1, &raw mut status, libc::__WALL) };
        if thread == -1 {
            match last_error() {
                libc::EINTR => continue,
                error => return Err(error),
            }
        }
        if !libc::WIFSTOPPED(status) {
            continue;
        }
        let (signal, event) = (libc::WSTOPSIG(status), status >> 16);
        let mut delivered = 0;
        let mut how = libc::PTRACE_SYSCALL as libc::c_uint;
        if signal == SYSTEM_CALL {
            let call = call_of(thread)?;
            match (call.stage, call.number, call.arguments) {
                (ENTRY, number, [MARK, what, ..]) if number == libc::SYS_getpriority as u64 => {
                    if what == END && threads.first() == Some(&thread) {
                        finish(thread, &counts, report);
                    }
                    counting |= what == BEGIN;
                }
                (ENTRY, number, _) if counting => {
                    let place = (number as usize).min(NUMBERS - 1);
                    if let Some(count) = counts.get_mut(place) {
                        *count += 1;
                    }
                }
                _ => {}
            }
        } else if event == EVENT_STOP && signal != libc::SIGTRAP {
            // The whole process was told to stop, and stays so.
            how = libc::PTRACE_LISTEN as _;
        } else if event == 0 {
            delivered = signal as usize;
        }
        match request(how, thread, 0, delivered) {
            // Killed in this moment.
            Ok(()) | Err(libc::ESRCH) => {}
            Err(error) => return Err(error),
        }
        if event == EVENT_STOP && begun < seized {
            begun += 1;
            if begun == seized {
                tell(report, &0i32.to_ne_bytes());
            }
        }
    }
}

/// Writes what was counted and lets go of the thread that reads it; of the others the kernel does.
fn finish(thread: pid_t, counts: &[u64; NUMBERS], report: &PipeWriter) -> ! {
    // SAFETY: plain numbers seen as bytes; a pipe takes so many at once.
    let bytes = unsafe { std::slice::from_raw_parts(counts.as_ptr().cast(), size_of_val(counts)) };
    tell(report, bytes);
    let _ = request(libc::PTRACE_DETACH as _, thread, 0, 0);
    // SAFETY: as in `trace`.
    unsafe { libc::_exit(0) }
}

fn call_of(thread: pid_t) -> Result<Call, c_int> {
    let mut call = Call::default();
    // SAFETY: the kernel writes no more than the size that is stated.
    let length = unsafe {
        libc::ptrace(
            GET_CALL as _,
            thread,
            size_of::<Call>(),
            (&raw mut call).cast::<libc::c_void>(),
        )
    };
    checked(length).map(|()| call)
}

/// A request of ptrace(2) that takes numbers.
fn request(what: libc::c_uint, thread: pid_t, address: usize, data: usize) -> Result<(), c_int> {
    // SAFETY: none of the requests made here takes a pointer.
    checked(unsafe { libc::ptrace(what as _, thread, address, data) })
}

fn checked(status: c_long) -> Result<(), c_int> {
    if status < 0 {
        Err(last_error())
    } else {
        Ok(())
    }
}

fn last_error() -> c_int {
    io::Error::last_os_error()
        .raw_os_error()
        .unwrap_or(libc::EIO)
}

/// Writes without anything that a library does besides.
fn tell(report: &PipeWriter, bytes: &[u8]) {
    // SAFETY: the bytes live until the call returns. A reader who has gone needs no telling.
    unsafe { libc::write(report.as_raw_fd(), bytes.as_ptr().cast(), bytes.len()) };
}
