//! `run --stats`: SQLite's counters under kvtest's labels, and what the process used meanwhile.
//! What the figures mean for a measurement is left to the reader.

use std::io::{self, Write};

use sqlitmus_core::units::format_duration;
use sqlitmus_engines::sqlite::{
    Connection, ConnectionStatus, Library, ProcessStatus, SqliteError, Status,
};

use crate::machine::resources::Resources;

/// The compile option of an SQLite that does not count its memory.
const NO_MEMORY_STATISTICS: &str = "DEFAULT_MEMSTATUS=0";

/// SQLite's counters at the end of a walk.
pub(super) struct DatabaseCounters {
    library: &'static Library,
    cache_used_bytes: i64,
    cache_hits: i64,
    cache_misses: i64,
    cache_writes: i64,
    /// kvtest does not show them.
    cache_spills: Option<i64>,
}

impl DatabaseCounters {
    /// Asks the connection, after its last commit.
    ///
    /// # Errors
    /// This SQLite does not keep them.
    pub(super) fn read(connection: &mut Connection) -> Result<Self, SqliteError> {
        let mut current = |which| connection.status(which).map(|status| status.current);
        Ok(Self {
            cache_used_bytes: current(ConnectionStatus::CacheUsed)?,
            cache_hits: current(ConnectionStatus::CacheHits)?,
            cache_misses: current(ConnectionStatus::CacheMisses)?,
            cache_writes: current(ConnectionStatus::CacheWrites)?,
            // Old libraries do not know them.
            cache_spills: connection
                .status(ConnectionStatus::CacheSpills)
                .ok()
                .map(|status| status.current),
            library: connection.library(),
        })
    }

    /// Prints them, in kvtest's order.
    ///
    /// # Errors
    /// The output cannot be written.
    pub(super) fn print(&self, output: &mut dyn Write) -> io::Result<()> {
        let options = self.library.compile_options();
        let counts_memory = options.iter().all(|option| option != NO_MEMORY_STATISTICS);
        for (label, which, form) in PROCESS_COUNTERS {
            let value = match self.library.status(which) {
                Some(status) if counts_memory || !is_memory(which) => form.text(status),
                _ => "not counted: this SQLite is built without memory statistics".to_owned(),
            };
            writeln!(output, "{label:<36} {value}")?;
        }
        for (label, value, unit) in [
            ("Pager Heap Usage:", self.cache_used_bytes, " bytes"),
            ("Page cache hits:", self.cache_hits, ""),
            ("Page cache misses:", self.cache_misses, ""),
            ("Page cache writes:", self.cache_writes, ""),
        ] {
            writeln!(output, "{label:<36} {value}{unit}")?;
        }
        if let Some(spills) = self.cache_spills {
            writeln!(output, "{:<36} {spills}", "Page cache spills:")?;
        }
        Ok(())
    }
}

/// How a counter of the process is printed, with its unit.
#[derive(Clone, Copy)]
enum Form {
    /// Now and at its highest.
    Both(&'static str),
    /// At its highest.
    Highest(&'static str),
}

impl Form {
    fn text(self, status: Status) -> String {
        match self {
            Self::Both(unit) => format!("{} (max {}){unit}", status.current, status.highest),
            Self::Highest(unit) => format!("{}{unit}", status.highest),
        }
    }
}

/// Labels are kvtest's.
const PROCESS_COUNTERS: [(&str, ProcessStatus, Form); 6] = [
    (
        "Memory Used:",
        ProcessStatus::MemoryUsed,
        Form::Both(" bytes"),
    ),
    (
        "Number of Outstanding Allocations:",
        ProcessStatus::Allocations,
        Form::Both(""),
    ),
    (
        "Number of Pcache Pages Used:",
        ProcessStatus::PageCacheUsed,
        Form::Both(" pages"),
    ),
    (
        "Number of Pcache Overflow Bytes:",
        ProcessStatus::PageCacheOverflow,
        Form::Both(" bytes"),
    ),
    (
        "Largest Allocation:",
        ProcessStatus::LargestAllocation,
        Form::Highest(" bytes"),
    ),
    (
        "Largest Pcache Allocation:",
        ProcessStatus::LargestPageCacheAllocation,
        Form::Highest(" bytes"),
    ),
];

/// Whether a counter is one of those that an SQLite without memory statistics leaves at 0.
fn is_memory(which: ProcessStatus) -> bool {
    matches!(
        which,
        ProcessStatus::MemoryUsed | ProcessStatus::Allocations | ProcessStatus::LargestAllocation
    )
}

/// Prints what the process used in the timed part; first what kvtest prints, then more. Counters
/// that the platform does not give are left out.
///
/// # Errors
/// The output cannot be written.
pub(super) fn print_resources(output: &mut dyn Write, used: &Resources) -> io::Result<()> {
    let count = |value: Option<u64>| value.map(|value| value.to_string());
    for (label, value) in [
        ("Bytes received by read():", count(used.read_call_bytes)),
        ("Bytes sent to write():", count(used.write_call_bytes)),
        ("Read() system calls:", count(used.read_calls)),
        ("Write() system calls:", count(used.write_calls)),
        ("Bytes read from storage:", count(used.device_read_bytes)),
        ("Bytes written to storage:", count(used.device_write_bytes)),
        ("Cancelled write bytes:", count(used.cancelled_write_bytes)),
        ("Page faults served from memory:", count(used.minor_faults)),
        ("Page faults read from storage:", count(used.major_faults)),
        (
            "Context switches, waiting:",
            count(used.voluntary_context_switches),
        ),
        (
            "Context switches, taken off:",
            count(used.involuntary_context_switches),
        ),
        (
            "Processor time, program:",
            used.user_cpu_ns.map(format_duration),
        ),
        (
            "Processor time, kernel:",
            used.system_cpu_ns.map(format_duration),
        ),
        (
            "Largest resident memory, bytes:",
            count(used.peak_memory_bytes),
        ),
    ] {
        if let Some(value) = value {
            writeln!(output, "{label:<36} {value}")?;
        }
    }
    Ok(())
}
