//! The protocol between orchestrator and worker: one JSON object a line, requests on the worker's
//! standard input, responses on its standard output, strictly one response to one request.
//!
//! A worker does what it is told, one step at a time, and never decides what runs. It returns
//! what it consumed; whether that is right is decided by the orchestrator, which has its own
//! expectation.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use sqlitmus_core::case::Case;
pub use sqlitmus_core::keys::Span;
use sqlitmus_core::latencies::Latencies;

/// Version of the protocol; worker and orchestrator must have the same.
pub const PROTOCOL_VERSION: u32 = 2;

/// What the orchestrator asks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "kebab-case")]
pub enum Request {
    /// Say what you are, and what a library is that you are to load. Before anything else.
    Introduce {
        /// Path of an SQLite library.
        library: Option<String>,
    },
    /// Open the store and make everything that must not be made while the clock runs.
    Prepare(Box<Preparation>),
    /// Untimed operations of a trial: one pass over all keys, so that page tables and caches are
    /// as in a process that has been running for a while. A writing trial then writes one batch,
    /// so that journals are there and have grown.
    LeadIn {
        /// Generation of the content to write; ignored by reading workloads.
        generation: u64,
    },
    /// One timed slice, after some untimed operations.
    Slice {
        /// Generation of the content to write; ignored by reading workloads.
        generation: u64,
    },
    /// Finish what the slice's commits have left for later, and have it written to the device.
    Settle,
    /// Do what a slice does, untimed, and count the system calls: some hundreds of reads, or one
    /// batch.
    Count {
        /// Generation of the content to write; ignored by reading workloads.
        generation: u64,
    },
    /// Read these keys, untimed, and end.
    Finish {
        /// Keys to digest.
        verify: Vec<u64>,
    },
}

/// What a worker needs for its trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Preparation {
    /// [`PROTOCOL_VERSION`] of the orchestrator.
    pub protocol_version: u32,
    /// What is measured.
    pub case: Case,
    /// Where the store is.
    pub store: PathBuf,
    /// Where in the common key order the trial starts, as a share of the whole.
    pub key_offset: f64,
    /// Seed of the common key order.
    pub order_seed: u64,
    /// Length of a reading slice in nanoseconds.
    pub slice_ns: u64,
    /// Length of the untimed operations before a reading slice, in nanoseconds; 0 for none.
    pub slice_lead_in_ns: u64,
    /// A reading slice ends after so many operations, if its time is not over before: a cold cache
    /// is cold for every key once.
    pub slice_operations_max: Option<u64>,
    /// Processor core to stay on.
    pub core: Option<usize>,
    /// Share of the time of every timed operation to wait after it, in its time. `None` but in tests of
    /// the harness, where all arms have one, of 0 or more: keeping account of waits costs some
    /// nanoseconds, which are to be no part of what is found.
    #[serde(default)]
    pub slowdown: Option<f64>,
    /// Cores that a workload of several threads may use.
    #[serde(default)]
    pub cores: Vec<usize>,
}

/// What the worker answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "response", rename_all = "kebab-case")]
pub enum Response {
    /// To [`Request::Introduce`].
    Introduced {
        /// [`PROTOCOL_VERSION`] of the worker.
        protocol_version: u32,
        /// Version of the worker's program.
        sqlitmus_version: String,
        /// What the library says of itself; empty if none was asked about.
        library: BTreeMap<String, String>,
    },
    /// To [`Request::Prepare`].
    Prepared {
        /// [`PROTOCOL_VERSION`] of the worker.
        protocol_version: u32,
        /// What the live engine says is in force.
        read_back: BTreeMap<String, String>,
    },
    /// To [`Request::LeadIn`].
    LedIn {
        /// The pass over all keys.
        read: Span,
        /// The batch of a writing trial.
        written: Option<Span>,
    },
    /// To [`Request::Slice`].
    Sliced {
        /// The untimed operations before it.
        lead_in: Span,
        /// The timed operations.
        timed: Span,
        /// Time of the timed operations in nanoseconds.
        elapsed_ns: u64,
        /// Latencies of the timed operations.
        latencies: Latencies,
        /// What the timed operations used, by name with unit; what the kernel does not tell is
        /// not there.
        resources: BTreeMap<String, u64>,
    },
    /// To [`Request::LeadIn`], of workloads that may have several threads.
    Started {
        /// What each thread has done.
        spans: Vec<Span>,
    },
    /// To [`Request::Slice`], of workloads that may have several threads.
    Measured {
        /// The untimed operations before it, of each thread.
        lead_in: Vec<Span>,
        /// The timed operations, of each thread.
        timed: Vec<Span>,
        /// Time from the start of the first thread to the end of the last, in nanoseconds.
        elapsed_ns: u64,
        /// Latencies of the timed operations.
        latencies: Latencies,
        /// What the timed operations used, and what they counted, by name with unit.
        resources: BTreeMap<String, u64>,
    },
    /// To [`Request::Settle`].
    Settled {
        /// Time it took, in nanoseconds.
        elapsed_ns: u64,
    },
    /// To [`Request::Count`].
    Counted {
        /// The operations.
        span: Span,
        /// Their system calls by name; `None` where the kernel does not let us count.
        system_calls: Option<BTreeMap<String, u64>>,
    },
    /// To [`Request::Finish`].
    Finished {
        /// Digest of each key's content, in the order asked for.
        digests: Vec<u64>,
    },
    /// To anything: the machine lacks what the case needs. The worker ends.
    Unavailable {
        /// What it lacks.
        reason: String,
    },
    /// To anything: it went wrong. The worker ends.
    Failed {
        /// What went wrong.
        reason: String,
        /// Whether the machine gave out (disk full, I/O error), which ends the run.
        #[serde(default)]
        environment: bool,
    },
}
