//! System calls by name: what the threads of this process asked of the kernel between two moments.
//!
//! There are two ways, and both count every call once, when it enters the kernel. The kernel's own counters
//! (perf events on a trace point) need rights that few users have. Where they are refused, a process of ours
//! traces the threads (ptrace(2)), which every user may do to his own processes, and which stops each call
//! twice. Both belong into a stretch of operations that is *not* timed. What a number means, and dividing by
//! operations, is left to callers.
//!
//! What this cannot see is not missed silently: `io_uring` is counted as the calls that submit and wait,
//! not as the operations it carries, and a read through a mapping is no system call at all.

use std::collections::BTreeMap;
use std::io;
use std::marker::PhantomData;

#[cfg(target_os = "linux")]
mod kinds;
#[cfg(target_os = "linux")]
mod trace_point_counter;
#[cfg(target_os = "linux")]
mod tracer;

#[cfg(all(test, target_os = "linux"))]
mod tests;

/// The key under which all calls stand that have no name of their own here.
pub const OTHER: &str = "other";

/// Why system calls could not be counted.
#[derive(Debug, thiserror::Error)]
pub enum SystemCallsError {
    /// Only Linux is known to count them.
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
    /// Neither way is open.
    #[error("{refusal}; nor may a process of ours trace them ({source})")]
    NotTraceable {
        /// Why the kernel's counters are not.
        refusal: Box<SystemCallsError>,
        /// What the operating system says of tracing.
        source: io::Error,
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
            Self::NotTraceable { .. } => {
                "run as root, or where processes may be traced: not in a debugger, \
                 and not in a container that forbids ptrace"
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

/// Counters of system calls, open but standing still until they are started. They belong to the thread that
/// opened them.
#[derive(Debug)]
pub struct SystemCallCounter {
    way: Way,
    /// Not to be sent to another thread.
    bound: PhantomData<*const ()>,
}

#[derive(Debug)]
enum Way {
    #[cfg(target_os = "linux")]
    TracePoint(trace_point_counter::TracePointCounter),
    #[cfg(target_os = "linux")]
    Tracer(tracer::Tracer),
    #[cfg(not(target_os = "linux"))]
    None,
}

#[cfg(target_os = "linux")]
impl SystemCallCounter {
    /// Counters of the calling thread and of threads that it starts while they are open.
    ///
    /// # Errors
    /// If the kernel does not let us count, with what is missing.
    pub fn of_this_thread() -> Result<Self, SystemCallsError> {
        let by_kernel = trace_point_counter::TracePointCounter::of_this_thread();
        Self::or_traced(by_kernel, tracer::Tracer::of_this_thread)
    }

    /// Counters of all threads of this process, and of threads that they start while the
    /// counters are open.
    ///
    /// # Errors
    /// If the kernel does not let us count, with what is missing.
    pub fn of_this_process() -> Result<Self, SystemCallsError> {
        let by_kernel = trace_point_counter::TracePointCounter::of_this_process();
        Self::or_traced(by_kernel, tracer::Tracer::of_this_process)
    }

    fn or_traced(
        by_kernel: Result<trace_point_counter::TracePointCounter, SystemCallsError>,
        by_tracer: fn() -> io::Result<tracer::Tracer>,
    ) -> Result<Self, SystemCallsError> {
        let way = match by_kernel {
            Ok(counter) => Way::TracePoint(counter),
            Err(refusal) => match by_tracer() {
                Ok(tracer) => Way::Tracer(tracer),
                Err(source) => {
                    return Err(SystemCallsError::NotTraceable {
                        refusal: refusal.into(),
                        source,
                    });
                }
            },
        };
        Ok(Self {
            way,
            bound: PhantomData,
        })
    }

    /// How they count, as words that follow "counted".
    #[must_use]
    pub fn method(&self) -> &'static str {
        match self.way {
            Way::TracePoint(_) => "by the kernel's trace point",
            Way::Tracer(_) => "by tracing (ptrace), since the kernel's trace point is not allowed",
        }
    }

    /// Starts counting.
    ///
    /// # Errors
    /// The kernel refused.
    pub fn start(&self) -> Result<(), SystemCallsError> {
        match &self.way {
            Way::TracePoint(counter) => counter.start(),
            Way::Tracer(tracer) => {
                tracer.start();
                Ok(())
            }
        }
    }

    /// Stops counting and tells the calls by name, those that occurred alone; calls without a name here
    /// stand under [`OTHER`]. Stopping itself is not counted.
    ///
    /// # Errors
    /// The kernel refused.
    pub fn stop(self) -> Result<BTreeMap<&'static str, u64>, SystemCallsError> {
        match self.way {
            Way::TracePoint(counter) => counter.stop(),
            Way::Tracer(tracer) => tracer.stop().map_err(|source| SystemCallsError::Io {
                action: "read what the tracing process has counted",
                source,
            }),
        }
    }
}

/// There are none on this platform.
#[cfg(not(target_os = "linux"))]
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
    #[must_use]
    pub fn method(&self) -> &'static str {
        "by nothing"
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
