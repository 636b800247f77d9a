//! What the machine is and what it lets us do: its facts, the place on disk that is measured, the
//! scratch directory there and who owns what in it, the page cache, resource counters and cores.
//!
//! Everything that asks the operating system lives below this module, so that the orchestrator,
//! the worker and the verbs see typed answers. It decides nothing about a measurement: which cases
//! run, what "warm enough" means and what a finding is worth is left to its callers.
//!
//! Linux is the platform that is verified. Elsewhere the module compiles, and what it cannot find
//! out there is `unknown` or `None`, never a guess.

pub mod block_device;
pub mod control_group;
pub mod device_reads;
pub mod doctor;
pub mod drop_caches;
pub mod environment;
pub mod extents;
pub mod free_name;
pub mod kernel_files;
pub mod loopback;
pub mod memory_group;
pub mod mounts;
pub mod own_program;
pub mod owner_record;
pub mod ownership;
pub mod page_cache;
pub mod path_suffix;
pub mod place;
pub mod power_cut;
pub mod processor;
pub mod resources;
pub mod scanner;
pub mod scratch;
pub mod scratch_cleaning;
pub mod system_calls;
pub mod trace_points;
pub mod tree_removal;
pub mod verification;
pub mod writeback;

#[cfg(all(test, target_os = "linux"))]
mod test_mount;
