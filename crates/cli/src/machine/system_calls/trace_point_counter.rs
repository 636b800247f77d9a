//! Counters of system calls by perf events on the trace point `raw_syscalls:sys_enter`: one for each kind of call with
//! a filter on its numbers, and one without for the sum. All those filters are tried at every call while they run.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd, RawFd};

use perf_event_open_sys as perf;
use perf_event_open_sys::bindings::{
    PERF_FLAG_FD_CLOEXEC, PERF_IOC_FLAG_GROUP, PERF_TYPE_TRACEPOINT, perf_event_attr,
};

use super::kinds::KINDS;
use super::{OTHER, SystemCallsError};
use crate::machine::trace_points;

/// The kind in which our own calls to start and stop the counters are counted.
const OWN_KIND: &str = "ioctl";

/// Counters of system calls, open but standing still until they are started.
#[derive(Debug)]
pub struct TracePointCounter {
    threads: Vec<ThreadCounters>,
}

/// The counters of one thread, and of threads it starts later: a group that starts and stops as
/// one, led by the sum.
#[derive(Debug)]
struct ThreadCounters {
    sum: File,
    kinds: Vec<(&'static str, File)>,
}

impl TracePointCounter {
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
        SystemCallsError::Io { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
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
