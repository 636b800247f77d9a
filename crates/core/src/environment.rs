//! The names of what a run says about the machine it was measured on, and about its live engines.
//!
//! They are written by the command line and the engines, kept in run files, and read by reports and by
//! [`run_comparison`](crate::run_comparison), so they stand in one place. A name, once published, never
//! changes. Finding the facts out is left to the command line.

/// The text of a fact that could not be found out.
pub const UNKNOWN: &str = "unknown";

/// The text of the governor where no frequency control is visible, as in most virtual machines.
pub const NOT_EXPOSED: &str = "not exposed";

/// How the names of facts begin that say what was proved of an arm ([`crate::durability::Proof`]): its
/// name follows. They are kept with a run's facts, but are not about its machine.
pub const PROVED_DURABILITY: &str = "proved_durability:";

/// Whether a fact is about the machine or the place.
#[must_use]
pub fn is_about_machine(name: &str) -> bool {
    !name.starts_with(PROVED_DURABILITY)
}

/// The names of facts, in the order in which they are stored. Units stand last.
pub mod fact {
    /// The processor's model as it names itself.
    pub const CPU_MODEL: &str = "cpu_model";
    /// The instruction set: `x86_64`, `aarch64`.
    pub const CPU_ARCHITECTURE: &str = "cpu_architecture";
    /// Logical cores that are online.
    pub const CPU_LOGICAL_CORES: &str = "cpu_logical_cores";
    /// Logical cores that this process may use.
    pub const CPU_ALLOWED_CORES: &str = "cpu_allowed_cores";
    /// The control group's limit on processor time, in thousandths of a core, or `none`.
    pub const CPU_LIMIT_MILLICORES: &str = "cpu_limit_millicores";
    /// The frequency governor, all that are in use if cores differ, or `not exposed`.
    pub const CPU_GOVERNOR: &str = "cpu_governor";
    /// Memory of the machine, in bytes.
    pub const MEMORY_TOTAL_BYTES: &str = "memory_total_bytes";
    /// Memory that could be had without swapping, in bytes (`MemAvailable`).
    pub const MEMORY_AVAILABLE_BYTES: &str = "memory_available_bytes";
    /// The control group's memory limit in bytes, or `none`.
    pub const MEMORY_LIMIT_BYTES: &str = "memory_limit_bytes";
    /// Swap space in bytes.
    pub const SWAP_TOTAL_BYTES: &str = "swap_total_bytes";
    /// Unused swap space in bytes.
    pub const SWAP_FREE_BYTES: &str = "swap_free_bytes";
    /// The setting of transparent huge pages: `always`, `madvise` or `never`.
    pub const TRANSPARENT_HUGE_PAGES: &str = "transparent_huge_pages";
    /// The size of a memory page in bytes.
    pub const PAGE_BYTES: &str = "page_bytes";
    /// The share of memory, in percent, at which a writer must itself write dirty pages back.
    pub const DIRTY_PERCENT: &str = "dirty_percent";
    /// The share of memory, in percent, at which the kernel begins to write dirty pages back.
    pub const DIRTY_BACKGROUND_PERCENT: &str = "dirty_background_percent";
    /// The kernel's name and release.
    pub const KERNEL: &str = "kernel";
    /// The operating system's name and version, from os-release.
    pub const OPERATING_SYSTEM: &str = "operating_system";
    /// Whether a hypervisor is below, and which one if it says so.
    pub const VIRTUALISATION: &str = "virtualisation";
    /// Load average over 1, 5 and 15 minutes.
    pub const LOAD_AVERAGE: &str = "load_average";
    /// Time the hypervisor gave to others while a core was ready to run, since boot, all cores.
    pub const STEAL_NS: &str = "steal_ns";
    /// `yes` or `no`: whether the effective user is root.
    pub const RUNNING_AS_ROOT: &str = "running_as_root";
    /// The kernel's clock source: `tsc` is read in nanoseconds, `hpet` in microseconds.
    pub const CLOCK_SOURCE: &str = "clock_source";
    /// The resolution that the monotonic clock claims, in nanoseconds.
    pub const CLOCK_RESOLUTION_NS: &str = "clock_resolution_ns";

    /// Directory that was measured.
    pub const PLACE_PATH: &str = "place_path";
    /// Filesystem and disk of the place in a few words.
    pub const PLACE_DESCRIPTION: &str = "place_description";
    /// What filesystem was made in an image for the run alone, as on the command line: `btrfs:nocow`.
    pub const LOOPBACK: &str = "loopback";
    /// All places that were measured one after the other, each in a run file of its own, as a JSON array
    /// of texts: a directory's path, or a [`LOOPBACK`].
    pub const PLACES: &str = "places";
    /// Which of [`PLACES`] this is, from 1.
    pub const PLACE_NUMBER: &str = "place_number";
    /// Directory in whose scratch directory images of filesystems lie.
    pub const IMAGES: &str = "images";
    /// Size of each image in bytes, where it was asked for.
    pub const IMAGE_BYTES: &str = "image_bytes";
    /// Kind of the filesystem: `ext4`, `btrfs`.
    pub const FILESYSTEM: &str = "filesystem";
    /// What is mounted there: a device, usually.
    pub const MOUNT_SOURCE: &str = "mount_source";
    /// Where it is mounted.
    pub const MOUNT_POINT: &str = "mount_point";
    /// Options it is mounted with, with commas between them.
    pub const MOUNT_OPTIONS: &str = "mount_options";
    /// Free space of the filesystem in bytes.
    pub const SPACE_AVAILABLE_BYTES: &str = "space_available_bytes";
    /// Free inodes of the filesystem, or `unlimited`.
    pub const SPACE_AVAILABLE_INODES: &str = "space_available_inodes";
    /// What kind of disk it is, in words.
    pub const DISK_KIND: &str = "disk_kind";
    /// The disk's model as it names itself.
    pub const DISK_MODEL: &str = "disk_model";
    /// `yes` or `no`: whether the kernel takes the disk for a rotating one.
    pub const DISK_ROTATIONAL: &str = "disk_rotational";
    /// How much the kernel reads ahead, in KiB.
    pub const DISK_READ_AHEAD_KIB: &str = "disk_read_ahead_kib";
    /// The disk's write cache: `write back` or `write through`.
    pub const DISK_WRITE_CACHE: &str = "disk_write_cache";
    /// The scheduler of the disk's queue.
    pub const DISK_SCHEDULER: &str = "disk_scheduler";
}

/// The names under which live engines say what they are, where more than one crate reads them.
pub mod said {
    /// Version of the SQLite library: `3.54.1`.
    pub const SQLITE_VERSION: &str = "sqlite_version";
    /// Identity of the source that the library was made of.
    pub const SQLITE_SOURCE_ID: &str = "sqlite_source_id";
    /// Options the library was compiled with, with spaces between them.
    pub const COMPILE_OPTIONS: &str = "compile_options";
    /// The compiler and its options, of libraries that say so: SQLite itself does not.
    pub const BUILD: &str = "build";
    /// How the library locks: `multi-thread`.
    pub const THREADING: &str = "threading";
    /// The C library and its version, where file operations go through it.
    pub const C_LIBRARY: &str = "c_library";
}
