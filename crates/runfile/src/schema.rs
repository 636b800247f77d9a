//! What makes a file a run file: its marks and its tables. The statements stand in `schema.sql`;
//! [`crate::RunFile`] fills the tables, [`crate::read`] reads them.
#![doc = include_str!("../SCHEMA.md")]

/// `PRAGMA application_id` of a run file: the letters `SLTM`. It stands at offset 68 of the file,
/// so that `file(1)` and this crate know a run file without opening the database.
pub const APPLICATION_ID: u32 = u32::from_be_bytes(*b"SLTM");

/// `PRAGMA user_version` of the run files that this version writes: the newest that it reads. It
/// rises when a reader of an earlier version would misunderstand the file.
pub const FORMAT_VERSION: u32 = 1;

/// `PRAGMA application_id` of a run of the durability experiment: the letters `SLTD`. Its tables are
/// others (see `crate::durability_file`), so that programs which know measurements only refuse it.
pub const DURABILITY_APPLICATION_ID: u32 = u32::from_be_bytes(*b"SLTD");

/// What makes a file one of ours, of one kind.
#[derive(Debug)]
pub(crate) struct FileKind {
    /// Its mark.
    pub(crate) application_id: u32,
    /// The newest format version of it that is read.
    pub(crate) format_version: u32,
    /// Tables without which it cannot be read.
    pub(crate) tables: &'static [&'static str],
}

/// Runs that measure.
pub(crate) const MEASUREMENT: FileKind = FileKind {
    application_id: APPLICATION_ID,
    format_version: FORMAT_VERSION,
    tables: &TABLES,
};

/// Runs of the durability experiment.
pub(crate) const DURABILITY: FileKind = FileKind {
    application_id: DURABILITY_APPLICATION_ID,
    format_version: 1,
    tables: &[
        "run",
        "environment",
        "filesystem",
        "configuration",
        "cut",
        "speed",
    ],
};

/// Size of a page in bytes: SQLite's own default, fixed here because the library may be compiled
/// with another.
pub(crate) const PAGE_BYTES: u32 = 4096;

/// Creates all tables of an empty file.
pub(crate) const STATEMENTS: &str = include_str!("schema.sql");

/// Columns of `sample` that came after the first version; a file of that version lacks them.
pub(crate) const ADDED_SAMPLE_COLUMNS: [&str; 3] = [
    "involuntary_context_switches",
    "machine_steal_ns",
    "device_read_ns",
];

/// Tables without which a run cannot be read.
const TABLES: [&str; 10] = [
    "run",
    "environment",
    "arm_group",
    "arm",
    "footprint",
    "round",
    "read_back",
    "trial",
    "resource",
    "sample",
];
