//! System calls by name, counted by the kernel: what the threads of this process asked of it between
//! two moments.
//!
//! The counters are perf events on the trace point `raw_syscalls:sys_enter`, one for each kind of call
//! with a filter on its number, and one without for the sum. While they run, all those filters are tried
//! at every system call, so they belong into a stretch of operations that is *not* timed. What a number means, and dividing by operations, is left to callers.
//!
//! What this cannot see is not missed silently: `io_uring` is counted as the calls that submit and wait,
//! not as the operations it carries, and a read through a mapping is no system call at all.

use std::collections::BTreeMap;
use std::io;

/// The key under which all calls stand that have no name of their own here.
pub const OTHER: &str = "other";

/// Why system calls could not be counted.
#[derive(Debug, thiserror::Error)]
pub enum SystemCallsError {
    /// Only Linux is known to count them this way.
    #[error("system calls are not counted: this platform has no trace points")]
    Unsupported,
    /// The trace point's number could not be read.
    #[error(
        "system calls are not counted: the trace point raw_syscalls:sys_enter cannot be looked up"
    )]
    NoTracePoint {
        /// The operating system's answer.
        #[source]
        source: io::Error,
    },
    /// The kernel does not let this user count.
    #[error("system calls are not counted: perf_event_open is not permitted{}", paranoid(*.level))]
    NotPermitted {
        /// `kernel.perf_event_paranoid`, if it could be read.
        level: Option<i64>,
    },
    /// The operating system failed otherwise.
    #[error("system calls are not counted: cannot {action}")]
    Io {
        /// What was being done, as a verb.
        action: &'static str,
        /// The operating system's answer.
        #[source]
        source: io::Error,
    },
}

impl SystemCallsError {
    /// What helps, in one line for the reader of the error.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Unsupported => "measure on Linux to have them counted",
            Self::NoTracePoint { .. } | Self::NotPermitted { .. } => {
                "run as root, or give the program the right: \
                 setcap cap_perfmon,cap_dac_read_search,cap_sys_admin=ep sqlitmus"
            }
            Self::Io { .. } => "see: ulimit -n (each thread needs about 30 file descriptors)",
        }
    }
}

fn paranoid(level: Option<i64>) -> String {
    level.map_or_else(String::new, |level| {
        format!(" (kernel.perf_event_paranoid is {level})")
    })
}

#[cfg(target_os = "linux")]
pub use linux::SystemCallCounter;

#[cfg(not(target_os = "linux"))]
pub use elsewhere::SystemCallCounter;

#[cfg(target_os = "linux")]
mod linux {
    use std::ffi::CString;
    use std::fs::File;
    use std::io::Read;
    use std::os::fd::{AsRawFd, FromRawFd, RawFd};

    use perf_event_open_sys as perf;
    use perf_event_open_sys::bindings::{
        PERF_FLAG_FD_CLOEXEC, PERF_IOC_FLAG_GROUP, PERF_TYPE_TRACEPOINT, perf_event_attr,
    };

    use super::{BTreeMap, OTHER, SystemCallsError, io};
    use crate::machine::trace_points;

    /// Kinds of calls, each with the numbers that belong to it. Old and new forms of one call share
    /// a kind, since which of them is used is the C library's choice and not the caller's.
    const KINDS: &[(&str, &[libc::c_long])] = &[
        (
            "openat",
            &[
                #[cfg(target_arch = "x86_64")]
                libc::SYS_open,
                libc::SYS_openat,
                libc::SYS_openat2,
            ],
        ),
        ("close", &[libc::SYS_close]),
        ("read", &[libc::SYS_read]),
        ("pread64", &[libc::SYS_pread64]),
        (
            "readv",
            &[libc::SYS_readv, libc::SYS_preadv, libc::SYS_preadv2],
        ),
        ("write", &[libc::SYS_write]),
        ("pwrite64", &[libc::SYS_pwrite64]),
        (
            "writev",
            &[libc::SYS_writev, libc::SYS_pwritev, libc::SYS_pwritev2],
        ),
        ("lseek", &[libc::SYS_lseek]),
        ("fstat", &[libc::SYS_fstat]),
        (
            "newfstatat",
            &[
                #[cfg(target_arch = "x86_64")]
                libc::SYS_stat,
                #[cfg(target_arch = "x86_64")]
                libc::SYS_lstat,
                libc::SYS_newfstatat,
            ],
        ),
        ("statx", &[libc::SYS_statx]),
        (
            "faccessat",
            &[
                #[cfg(target_arch = "x86_64")]
                libc::SYS_access,
                libc::SYS_faccessat,
                libc::SYS_faccessat2,
            ],
        ),
        ("fsync", &[libc::SYS_fsync]),
        ("fdatasync", &[libc::SYS_fdatasync]),
        ("ftruncate", &[libc::SYS_ftruncate]),
        ("fallocate", &[libc::SYS_fallocate]),
        (
            "rename",
            &[
                #[cfg(target_arch = "x86_64")]
                libc::SYS_rename,
                #[cfg(not(target_arch = "riscv64"))]
                libc::SYS_renameat,
                libc::SYS_renameat2,
            ],
        ),
        (
            "unlink",
            &[
                #[cfg(target_arch = "x86_64")]
                libc::SYS_unlink,
                libc::SYS_unlinkat,
            ],
        ),
        ("mmap", &[libc::SYS_mmap]),
        ("munmap", &[libc::SYS_munmap]),
        ("madvise", &[libc::SYS_madvise]),
        ("futex", &[libc::SYS_futex]),
        ("fcntl", &[libc::SYS_fcntl]),
        ("ioctl", &[libc::SYS_ioctl]),
        (
            "getdents64",
            &[
                #[cfg(target_arch = "x86_64")]
                libc::SYS_getdents,
                libc::SYS_getdents64,
            ],
        ),
        ("io_uring_enter", &[libc::SYS_io_uring_enter]),
    ];

    /// The kind in which our own calls to start and stop the counters are counted.
    const OWN_KIND: &str = "ioctl";

    /// Counters of system calls, open but standing still until they are started.
    #[derive(Debug)]
    pub struct SystemCallCounter {
        threads: Vec<ThreadCounters>,
    }

    /// The counters of one thread, and of threads it starts later: a group that starts and stops as
    /// one, led by the sum.
    #[derive(Debug)]
    struct ThreadCounters {
        sum: File,
        kinds: Vec<(&'static str, File)>,
    }

    impl SystemCallCounter {
        /// Counters of the calling thread and of threads that it starts while they are open.
        ///
        /// # Errors
        /// If the kernel does not let us count, with what is missing.
        pub fn of_this_thread() -> Result<Self, SystemCallsError> {
            let trace_point = trace_point()?;
            let own = ThreadCounters::open(trace_point, 0)?;
            Ok(Self { threads: vec![own] })
        }

        /// Counters of all threads of this process, and of threads that they start while the
        /// counters are open.
        ///
        /// # Errors
        /// If the kernel does not let us count, with what is missing.
        pub fn of_this_process() -> Result<Self, SystemCallsError> {
            let trace_point = trace_point()?;
            let own = rustix::thread::gettid().as_raw_nonzero().get();
            let mut others: Vec<i32> = std::fs::read_dir("/proc/self/task")
                .map_err(failed("list the threads of this process"))?
                .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
                .filter(|thread| *thread != own)
                .collect();
            others.sort_unstable();
            let mut threads = Vec::new();
            for thread in others {
                match ThreadCounters::open(trace_point, thread) {
                    Ok(counters) => threads.push(counters),
                    // It has ended meanwhile.
                    Err(SystemCallsError::Io { source, .. })
                        if source.raw_os_error() == Some(libc::ESRCH) => {}
                    Err(error) => return Err(error),
                }
            }
            // The calling thread's are started last and stopped first, so that of our own calls they
            // see exactly one: the one that stops them.
            threads.push(ThreadCounters::open(trace_point, 0)?);
            Ok(Self { threads })
        }

        /// Starts counting. To be called by the thread that opened the counters.
        ///
        /// # Errors
        /// The kernel refused.
        pub fn start(&self) -> Result<(), SystemCallsError> {
            for thread in &self.threads {
                thread.switch(perf::ioctls::ENABLE, "start the counters")?;
            }
            Ok(())
        }

        /// Stops counting and tells the calls by name, those that occurred alone; calls without a name here
        /// stand under [`OTHER`]. Stopping itself is not counted. To be called by the thread that
        /// opened the counters.
        ///
        /// # Errors
        /// The kernel refused.
        pub fn stop(self) -> Result<BTreeMap<&'static str, u64>, SystemCallsError> {
            for thread in self.threads.iter().rev() {
                thread.switch(perf::ioctls::DISABLE, "stop the counters")?;
            }
            let mut calls = BTreeMap::new();
            for (index, thread) in self.threads.iter().enumerate() {
                let is_own = index + 1 == self.threads.len();
                let own_calls = u64::from(is_own);
                let mut rest = count(&thread.sum)?.saturating_sub(own_calls);
                for (kind, counter) in &thread.kinds {
                    let mut number = count(counter)?;
                    if *kind == OWN_KIND {
                        number = number.saturating_sub(own_calls);
                    }
                    rest = rest.saturating_sub(number);
                    *calls.entry(*kind).or_insert(0) += number;
                }
                *calls.entry(OTHER).or_insert(0) += rest;
            }
            calls.retain(|_, number| *number > 0);
            Ok(calls)
        }
    }

    impl ThreadCounters {
        fn open(trace_point: u64, thread: i32) -> Result<Self, SystemCallsError> {
            let sum = open_counter(trace_point, thread, -1)?;
            let mut kinds = Vec::with_capacity(KINDS.len());
            for (kind, numbers) in KINDS {
                let counter = open_counter(trace_point, thread, sum.as_raw_fd())?;
                set_filter(&counter, numbers)?;
                kinds.push((*kind, counter));
            }
            Ok(Self { sum, kinds })
        }

        fn switch(
            &self,
            request: unsafe fn(RawFd, libc::c_uint) -> libc::c_int,
            action: &'static str,
        ) -> Result<(), SystemCallsError> {
            // SAFETY: the descriptor is open, and these requests take a number and no pointer.
            let status = unsafe { request(self.sum.as_raw_fd(), PERF_IOC_FLAG_GROUP) };
            checked(status, action).map(|_| ())
        }
    }

    fn trace_point() -> Result<u64, SystemCallsError> {
        trace_points::number("raw_syscalls/sys_enter")
            .map_err(|source| SystemCallsError::NoTracePoint { source })
    }

    fn open_counter(trace_point: u64, thread: i32, group: RawFd) -> Result<File, SystemCallsError> {
        let mut attributes = perf_event_attr {
            size: size_of::<perf_event_attr>() as u32,
            type_: PERF_TYPE_TRACEPOINT,
            config: trace_point,
            ..Default::default()
        };
        // The others of a group run when their leader does.
        attributes.set_disabled(u64::from(group == -1));
        attributes.set_inherit(1);
        // SAFETY: the attributes are a live structure whose size it states; the kernel copies them.
        let descriptor = unsafe {
            perf::perf_event_open(
                &raw mut attributes,
                thread,
                -1,
                group,
                PERF_FLAG_FD_CLOEXEC.into(),
            )
        };
        let descriptor = checked(descriptor, "open a counter").map_err(|error| match error {
            SystemCallsError::Io { source, .. }
                if source.kind() == io::ErrorKind::PermissionDenied =>
            {
                let level = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid");
                let level = level.ok().and_then(|text| text.trim().parse().ok());
                SystemCallsError::NotPermitted { level }
            }
            // A kernel without perf events, or a container that hides the call.
            SystemCallsError::Io { source, .. } if source.raw_os_error() == Some(libc::ENOSYS) => {
                SystemCallsError::Unsupported
            }
            error => error,
        })?;
        // SAFETY: the descriptor is new and nobody else's.
        Ok(unsafe { File::from_raw_fd(descriptor) })
    }

    fn set_filter(counter: &File, numbers: &[libc::c_long]) -> Result<(), SystemCallsError> {
        let terms: Vec<String> = numbers.iter().map(|id| format!("id == {id}")).collect();
        let filter = CString::new(terms.join(" || ")).map_err(|error| SystemCallsError::Io {
            action: "write a filter",
            source: error.into(),
        })?;
        // SAFETY: the text ends with a NUL and lives until the call returns; the kernel only reads it.
        let status =
            unsafe { perf::ioctls::SET_FILTER(counter.as_raw_fd(), filter.as_ptr().cast_mut()) };
        checked(status, "filter a counter by system call").map(|_| ())
    }

    fn count(mut counter: &File) -> Result<u64, SystemCallsError> {
        let mut bytes = [0; 8];
        counter
            .read_exact(&mut bytes)
            .map_err(failed("read a counter"))?;
        Ok(u64::from_ne_bytes(bytes))
    }

    fn checked(status: libc::c_int, action: &'static str) -> Result<libc::c_int, SystemCallsError> {
        if status < 0 {
            return Err(failed(action)(io::Error::last_os_error()));
        }
        Ok(status)
    }

    fn failed(action: &'static str) -> impl FnOnce(io::Error) -> SystemCallsError {
        move |source| SystemCallsError::Io { action, source }
    }
}

#[cfg(not(target_os = "linux"))]
mod elsewhere {
    use super::{BTreeMap, SystemCallsError};

    /// Counters of system calls; there are none on this platform.
    #[derive(Debug)]
    pub struct SystemCallCounter(());

    impl SystemCallCounter {
        /// Not possible here.
        ///
        /// # Errors
        /// Always [`SystemCallsError::Unsupported`].
        pub fn of_this_thread() -> Result<Self, SystemCallsError> {
            Err(SystemCallsError::Unsupported)
        }

        /// Not possible here.
        ///
        /// # Errors
        /// Always [`SystemCallsError::Unsupported`].
        pub fn of_this_process() -> Result<Self, SystemCallsError> {
            Err(SystemCallsError::Unsupported)
        }

        /// Never reached, since there is no counter.
        ///
        /// # Errors
        /// Always [`SystemCallsError::Unsupported`].
        pub fn start(&self) -> Result<(), SystemCallsError> {
            Err(SystemCallsError::Unsupported)
        }

        /// Never reached, since there is no counter.
        ///
        /// # Errors
        /// Always [`SystemCallsError::Unsupported`].
        pub fn stop(self) -> Result<BTreeMap<&'static str, u64>, SystemCallsError> {
            Err(SystemCallsError::Unsupported)
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::fs::File;
    use std::io::{Read, Seek, SeekFrom, Write};
    use std::os::unix::fs::FileExt;

    use super::*;

    /// Counters, or `None` with a printed reason where the kernel does not give any.
    #[expect(clippy::print_stderr, reason = "a test that skips says why")]
    fn counter() -> Option<SystemCallCounter> {
        match SystemCallCounter::of_this_thread() {
            Ok(counter) => Some(counter),
            Err(error) => {
                eprintln!("skipped: {error} ({:?})", std::error::Error::source(&error));
                None
            }
        }
    }

    #[test]
    fn every_call_is_counted_once_and_under_its_name() {
        let folder = tempfile::tempdir().expect("temporary directory");
        let path = folder.path().join("file");
        std::fs::write(&path, [7; 4096]).expect("write");
        let Some(counter) = counter() else { return };
        let mut buffer = [0; 64];
        counter.start().expect("start");
        for _ in 0..100 {
            let mut file = File::open(&path).expect("open");
            file.read_exact(&mut buffer).expect("read");
            file.read_exact_at(&mut buffer, 128).expect("read at");
            file.seek(SeekFrom::Start(1)).expect("seek");
        }
        let writer = File::options().write(true).open(&path).expect("open");
        (&writer).write_all(&buffer).expect("write");
        writer.write_all_at(&buffer, 64).expect("write at");
        writer.sync_all().expect("fsync");
        writer.sync_data().expect("fdatasync");
        let moved = folder.path().join("moved");
        std::fs::rename(&path, &moved).expect("rename");
        std::fs::remove_file(&moved).expect("unlink");
        let _ = rustix::process::getppid();
        let calls = counter.stop().expect("stop");
        let mut expected = BTreeMap::from([
            ("openat", 101),
            ("read", 100),
            ("pread64", 100),
            ("lseek", 100),
            // The writer is still open.
            ("close", 100),
            ("write", 1),
            ("pwrite64", 1),
            ("fsync", 1),
            ("fdatasync", 1),
            ("rename", 1),
            ("unlink", 1),
            (OTHER, 1),
        ]);
        // In builds with debug assertions the standard library asks whether a descriptor is open
        // before it closes it.
        if calls.contains_key("fcntl") {
            expected.insert("fcntl", 100);
        }
        assert_eq!(calls, expected);
    }

    #[test]
    fn nothing_done_is_nothing_counted() {
        let Some(counter) = counter() else { return };
        counter.start().expect("start");
        let calls = counter.stop().expect("stop");
        assert_eq!(calls, BTreeMap::new());
    }

    #[test]
    fn threads_started_while_counting_are_counted() {
        let folder = tempfile::tempdir().expect("temporary directory");
        let path = folder.path().join("file");
        let file = File::create(&path).expect("create");
        let Some(counter) = counter() else { return };
        counter.start().expect("start");
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..50 {
                    file.write_all_at(b"x", 0).expect("write");
                }
            });
        });
        let calls = counter.stop().expect("stop");
        assert_eq!(calls.get("pwrite64"), Some(&50));
    }

    #[test]
    fn threads_of_the_process_that_live_already_are_counted() {
        if counter().is_none() {
            return;
        }
        let folder = tempfile::tempdir().expect("temporary directory");
        let file = File::create(folder.path().join("file")).expect("create");
        let barrier = std::sync::Barrier::new(2);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                barrier.wait();
                barrier.wait();
                for _ in 0..50 {
                    file.sync_data().expect("fdatasync");
                }
                barrier.wait();
            });
            barrier.wait();
            // Other tests run in this process too, so no exact number can be asked for.
            let counter = SystemCallCounter::of_this_process().expect("counters");
            counter.start().expect("start");
            barrier.wait();
            barrier.wait();
            let calls = counter.stop().expect("stop");
            assert!(calls.get("fdatasync") >= Some(&50), "{calls:?}");
        });
    }

    #[test]
    fn what_is_missing_is_said() {
        let refused = SystemCallsError::NotPermitted { level: Some(2) };
        assert_eq!(
            refused.to_string(),
            "system calls are not counted: perf_event_open is not permitted \
             (kernel.perf_event_paranoid is 2)"
        );
        assert!(refused.hint().contains("cap_perfmon"));
    }
}
