//! The `sqlite` engine's settings: which there are, which contradict each other, what they mean
//! in this program's types, and which durability follows from them. Putting them in force is
//! [`super::force`]'s business.

use sqlitmus_core::case::Durability;
use sqlitmus_core::settings::{SettingKind, SettingSpecification, Settings, SettingsError};

use super::connection::CacheSharing;
use super::layout::Layout;
use super::library::LibraryChoice;
use crate::engine::ReadBack;

/// Name of the engine.
pub(super) const ENGINE: &str = "sqlite";

/// SQLite's limits for a page, bytes; a page has a power of two.
const PAGE_BYTES: std::ops::RangeInclusive<u64> = 512..=65_536;

/// `PRAGMA cache_size` counts KiB in a signed 32-bit number.
const CACHE_BYTES: std::ops::RangeInclusive<u64> = 1024..=(i32::MAX as u64) * 1024;

/// Bytes in a chunk. From the smallest to the largest a key's chunks hold more than a blob may have.
const CHUNK_BYTES: std::ops::RangeInclusive<u64> = 1024..=(16 << 20);

const DEFAULT_CHUNK_BYTES: &str = "65536";

const fn bytes(
    range: &std::ops::RangeInclusive<u64>,
    words: &'static [&'static str],
) -> SettingKind {
    SettingKind::Bytes {
        minimum: *range.start(),
        maximum: *range.end(),
        words,
    }
}

/// Everything that can be set. Nothing is left to a library's own default.
pub(super) const SETTINGS: &[SettingSpecification] = &[
    SettingSpecification {
        name: "library",
        kind: SettingKind::ChoiceOrPath(&["bundled", "default-options", "system"]),
        default: "bundled",
        stored: false,
        about: "which SQLite: ours, the same without compile options, the system's, a file, or @NAME",
    },
    SettingSpecification {
        name: "api",
        kind: SettingKind::Choice(&["select", "blob"]),
        default: "select",
        stored: false,
        about: "reach blobs through SQL, or through a blob handle that moves from row to row",
    },
    SettingSpecification {
        name: "read_transaction",
        kind: SettingKind::Choice(&["held", "each"]),
        default: "held",
        stored: false,
        about: "one read transaction until something is committed, as kvtest does; or one a read",
    },
    SettingSpecification {
        name: "page_size",
        kind: bytes(&PAGE_BYTES, &[]),
        default: "4096",
        stored: true,
        about: "bytes in a page: a power of two",
    },
    SettingSpecification {
        name: "cache",
        kind: bytes(&CACHE_BYTES, &[]),
        // SQLite's default, 2000 KiB.
        default: "2048000",
        stored: false,
        about: "bytes of page cache: a multiple of 1024",
    },
    SettingSpecification {
        name: "mmap",
        kind: bytes(&(0..=i64::MAX as u64), &["all"]),
        default: "0",
        stored: false,
        about: "bytes of the database that are memory-mapped, or all of it",
    },
    SettingSpecification {
        name: "journal_mode",
        kind: SettingKind::Choice(&["delete", "truncate", "persist", "wal", "memory", "off"]),
        default: "wal",
        // Whether it is `wal` stands in the database itself.
        stored: true,
        about: "how a transaction is made atomic",
    },
    SettingSpecification {
        name: "synchronous",
        kind: SettingKind::Choice(&["off", "normal", "full", "extra"]),
        default: "normal",
        stored: false,
        about: "when SQLite waits for the device",
    },
    SettingSpecification {
        name: "layout",
        kind: SettingKind::Choice(&[
            "rowid",
            "without-rowid",
            "name",
            "with-metadata",
            "separate",
            "chunked",
            "sqlar",
        ]),
        default: "rowid",
        stored: true,
        about: "table keyed by rowid; the same WITHOUT ROWID; keyed by names such as 000001; with \
                other columns in the row; these and blobs in two tables; cut into rows of \
                chunk_bytes; SQLite's archive",
    },
    SettingSpecification {
        name: "chunk_bytes",
        kind: bytes(&CHUNK_BYTES, &[]),
        default: DEFAULT_CHUNK_BYTES,
        stored: true,
        about: "layout = chunked: bytes in a chunk",
    },
    SettingSpecification {
        name: "catalogue",
        kind: SettingKind::Choice(&["none", "memory"]),
        default: "none",
        stored: false,
        about: "layout = name or sqlar: names are found by SQLite, or in memory, where they are \
                read to when the store is opened",
    },
    SettingSpecification {
        name: "transaction",
        kind: SettingKind::CountOr(&["all", "one"]),
        default: "all",
        stored: false,
        about: "writes in a transaction: the whole batch, one, or a number",
    },
    SettingSpecification {
        name: "checkpoint",
        kind: SettingKind::Choice(&["apart", "included", "automatic"]),
        default: "apart",
        stored: false,
        about: "with a write-ahead log: checkpoints only when settling, with every batch, or as \
                SQLite does by itself, every 1000 pages",
    },
    SettingSpecification {
        name: "prepare",
        kind: SettingKind::Choice(&["once", "each"]),
        default: "once",
        stored: false,
        about: "statements are prepared once, or each time they are run",
    },
    SettingSpecification {
        name: "begin",
        kind: SettingKind::Choice(&["immediate", "deferred"]),
        default: "immediate",
        stored: false,
        about: "a writing transaction takes its lock as it begins, or at its first write",
    },
    SettingSpecification {
        name: "busy_timeout",
        kind: SettingKind::CountOr(&["none"]),
        // Long enough for a checkpoint of somebody else's, short enough to be seen as an error
        // rather than as a hang.
        default: "5000",
        stored: false,
        about: "milliseconds that a statement waits for another connection's lock",
    },
    SettingSpecification {
        name: "cache_sharing",
        kind: SettingKind::Choice(&["private", "shared"]),
        default: "private",
        stored: false,
        about: "rows: each connection has its own page cache, or all share one (never faster)",
    },
    SettingSpecification {
        name: "memory_statistics",
        kind: SettingKind::Choice(&["as-compiled", "on", "off"]),
        default: "as-compiled",
        stored: false,
        about: "whether SQLite counts its memory, under one mutex for the whole process",
    },
    SettingSpecification {
        name: "insert",
        kind: SettingKind::Choice(&["prepared", "text", "multi-row"]),
        default: "prepared",
        stored: false,
        about: "rows: bound to a prepared INSERT, as SQL text, or many to one INSERT",
    },
    SettingSpecification {
        name: "index",
        kind: SettingKind::Choice(&["none", "c1"]),
        default: "none",
        stored: true,
        about: "rows: secondary index of user",
    },
    SettingSpecification {
        name: "residence",
        kind: SettingKind::Choice(&["file", "memory"]),
        default: "file",
        stored: false,
        about: "rows: in the file, or in memory and copied over the file now and then",
    },
    SettingSpecification {
        name: "copy_every",
        kind: SettingKind::CountOr(&["never"]),
        default: "1000",
        stored: false,
        about: "rows in memory: milliseconds between two copies",
    },
];

/// One of the settings, for an engine that has it too.
///
/// # Panics
/// There is none of that name; where it is used this is found while compiling.
pub(crate) const fn specification(name: &str) -> SettingSpecification {
    let mut index = 0;
    while index < SETTINGS.len() {
        if is_same(SETTINGS[index].name.as_bytes(), name.as_bytes()) {
            return SETTINGS[index];
        }
        index += 1;
    }
    panic!("the sqlite engine has no such setting")
}

/// `==`, which slices do not have in constants.
const fn is_same(one: &[u8], other: &[u8]) -> bool {
    if one.len() != other.len() {
        return false;
    }
    let mut index = 0;
    while index < one.len() {
        if one[index] != other[index] {
            return false;
        }
        index += 1;
    }
    true
}

/// How blobs are reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Api {
    Select,
    Blob,
}

/// How long a read transaction lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadTransaction {
    Held,
    Each,
}

/// How many bytes are mapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mapped {
    All,
    Bytes(u64),
}

/// How a transaction is made atomic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JournalMode {
    Delete,
    Truncate,
    Persist,
    Wal,
    Memory,
    Off,
}

impl JournalMode {
    /// SQLite's word, which is also the setting's.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Delete => "delete",
            Self::Truncate => "truncate",
            Self::Persist => "persist",
            Self::Wal => "wal",
            Self::Memory => "memory",
            Self::Off => "off",
        }
    }
}

/// When SQLite waits for the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Synchronous {
    Off,
    Normal,
    Full,
    Extra,
}

impl Synchronous {
    /// In the order of SQLite's numbers, 0 to 3.
    pub(super) const ALL: [Self; 4] = [Self::Off, Self::Normal, Self::Full, Self::Extra];

    /// SQLite's word, which is also the setting's.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Normal => "normal",
            Self::Full => "full",
            Self::Extra => "extra",
        }
    }
}

/// Where names are looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Catalogue {
    None,
    Memory,
}

/// How many writes a transaction has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transaction {
    All,
    One,
    Every(u64),
}

/// When the write-ahead log is copied into the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Checkpoints {
    Apart,
    Included,
    Automatic,
}

/// When statements are prepared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Prepare {
    Once,
    Each,
}

/// When a writing transaction takes its lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Begin {
    Immediate,
    Deferred,
}

impl Begin {
    /// SQL that begins such a transaction.
    pub(super) fn sql(self) -> &'static str {
        match self {
            Self::Immediate => "BEGIN IMMEDIATE",
            Self::Deferred => "BEGIN",
        }
    }
}

/// How rows are handed to SQLite.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Insert {
    Prepared,
    Text,
    MultiRow,
}

/// Where the database is while it is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Residence {
    File,
    /// In memory; copied over the file after so many milliseconds, or never.
    Memory {
        copy_every_ms: Option<u64>,
    },
}

/// Resolved settings, in types.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(super) library: LibraryChoice,
    pub(super) api: Api,
    pub(crate) read_transaction: ReadTransaction,
    pub(super) page_bytes: u64,
    pub(super) cache_bytes: u64,
    pub(super) mapped: Mapped,
    pub(crate) journal_mode: JournalMode,
    pub(super) synchronous: Synchronous,
    pub(super) layout: Layout,
    pub(super) chunk_bytes: usize,
    pub(super) catalogue: Catalogue,
    pub(crate) transaction: Transaction,
    pub(crate) checkpoints: Checkpoints,
    pub(super) prepare: Prepare,
    pub(super) begin: Begin,
    pub(super) busy_timeout_ms: u32,
    pub(super) sharing: CacheSharing,
    pub(super) memory_statistics: Option<bool>,
    pub(super) insert: Insert,
    /// Whether `user` has its secondary index.
    pub(super) indexed: bool,
    pub(super) residence: Residence,
    /// The settings as resolved, for those that only this engine, not SQLite, knows of.
    pub(super) resolved: Settings,
}

impl Plan {
    /// Resolves and checks. The last arm of each match stands for the one value that is left:
    /// resolved settings have no others.
    ///
    /// # Errors
    /// A name or value that is not known, or a contradiction.
    pub(crate) fn from(settings: &Settings) -> Result<Self, SettingsError> {
        let resolved = settings.resolve(ENGINE, SETTINGS)?;
        let value = |name| resolved.get(name).unwrap_or_default();
        let number = |name| value(name).parse::<u64>().unwrap_or(0);
        let plan = Self {
            library: match value("library") {
                "bundled" => LibraryChoice::Bundled,
                "default-options" => LibraryChoice::DefaultOptions,
                "system" => LibraryChoice::System,
                name if name.starts_with('@') => LibraryChoice::Named(name[1..].to_owned()),
                path => LibraryChoice::Path(path.into()),
            },
            api: match value("api") {
                "select" => Api::Select,
                _ => Api::Blob,
            },
            read_transaction: match value("read_transaction") {
                "held" => ReadTransaction::Held,
                _ => ReadTransaction::Each,
            },
            page_bytes: number("page_size"),
            cache_bytes: number("cache"),
            mapped: match value("mmap") {
                "all" => Mapped::All,
                _ => Mapped::Bytes(number("mmap")),
            },
            journal_mode: match value("journal_mode") {
                "delete" => JournalMode::Delete,
                "truncate" => JournalMode::Truncate,
                "persist" => JournalMode::Persist,
                "wal" => JournalMode::Wal,
                "memory" => JournalMode::Memory,
                _ => JournalMode::Off,
            },
            synchronous: match value("synchronous") {
                "off" => Synchronous::Off,
                "normal" => Synchronous::Normal,
                "full" => Synchronous::Full,
                _ => Synchronous::Extra,
            },
            layout: Layout::ALL
                .into_iter()
                .find(|layout| layout.word() == value("layout"))
                .unwrap_or(Layout::Rowid),
            chunk_bytes: number("chunk_bytes") as usize,
            catalogue: match value("catalogue") {
                "none" => Catalogue::None,
                _ => Catalogue::Memory,
            },
            transaction: match value("transaction") {
                "all" => Transaction::All,
                "one" | "1" => Transaction::One,
                _ => Transaction::Every(number("transaction")),
            },
            checkpoints: match value("checkpoint") {
                "apart" => Checkpoints::Apart,
                "included" => Checkpoints::Included,
                _ => Checkpoints::Automatic,
            },
            prepare: match value("prepare") {
                "once" => Prepare::Once,
                _ => Prepare::Each,
            },
            begin: match value("begin") {
                "immediate" => Begin::Immediate,
                _ => Begin::Deferred,
            },
            // SQLite keeps it in an int.
            busy_timeout_ms: number("busy_timeout").min(i32::MAX as u64) as u32,
            sharing: match value("cache_sharing") {
                "private" => CacheSharing::Private,
                _ => CacheSharing::Shared,
            },
            memory_statistics: match value("memory_statistics") {
                "on" => Some(true),
                "off" => Some(false),
                _ => None,
            },
            insert: match value("insert") {
                "prepared" => Insert::Prepared,
                "text" => Insert::Text,
                _ => Insert::MultiRow,
            },
            indexed: value("index") != "none",
            residence: match value("residence") {
                "file" => Residence::File,
                _ => Residence::Memory {
                    copy_every_ms: Some(number("copy_every")).filter(|every| *every > 0),
                },
            },
            resolved,
        };
        plan.check()?;
        Ok(plan)
    }

    fn check(&self) -> Result<(), SettingsError> {
        let contradiction = |reason: &str, hint: &str| {
            Err(SettingsError::Contradiction {
                engine: ENGINE.to_owned(),
                reason: reason.to_owned(),
                hint: hint.to_owned(),
            })
        };
        if self.api == Api::Blob && self.layout == Layout::WithoutRowid {
            return contradiction(
                "a blob handle needs a rowid, and `layout = without-rowid` has none",
                "use `api = select`, or `layout = rowid`",
            );
        }
        if self.catalogue == Catalogue::Memory && !self.layout.is_named() {
            return contradiction(
                "a catalogue is of names, and this layout has none",
                "use `layout = sqlar` or `layout = name`, or leave `catalogue` out",
            );
        }
        if self.layout != Layout::Chunked
            && self.resolved.get("chunk_bytes") != Some(DEFAULT_CHUNK_BYTES)
        {
            return contradiction(
                "`chunk_bytes` is for chunks, and this layout has none",
                "use `layout = chunked`, or leave `chunk_bytes` out",
            );
        }
        if self.checkpoints != Checkpoints::Apart && self.journal_mode != JournalMode::Wal {
            return contradiction(
                "only a write-ahead log has checkpoints to include",
                "use `journal_mode = wal`, or `checkpoint = apart`",
            );
        }
        if !self.page_bytes.is_power_of_two() {
            return contradiction(
                "`page_size` is a power of two",
                "use 512, 1024, 2048, 4096, 8192, 16384, 32768 or 65536",
            );
        }
        if !self.cache_bytes.is_multiple_of(1024) {
            return contradiction(
                "SQLite counts its cache in KiB",
                "use a multiple of 1024 bytes for `cache`",
            );
        }
        if self.residence != Residence::File && self.sharing == CacheSharing::Shared {
            return contradiction(
                "a database in memory belongs to one connection here",
                "use `cache_sharing = private`",
            );
        }
        Ok(())
    }

    /// Adds the settings that are none of SQLite's to what a live connection says: they tell how
    /// a session calls it.
    pub(super) fn add_own(&self, back: &mut ReadBack) {
        for name in [
            "api",
            "catalogue",
            "read_transaction",
            "transaction",
            "checkpoint",
            "prepare",
            "begin",
            "cache_sharing",
            "memory_statistics",
            "insert",
            "index",
            "residence",
            "copy_every",
        ] {
            let value = self.resolved.get(name).unwrap_or_default();
            back.insert(name.to_owned(), value.to_owned());
        }
    }

    /// Refuses settings that mean something for rows alone.
    pub(super) fn check_for_blobs(&self) -> Result<(), SettingsError> {
        let specific = [
            ("cache_sharing", self.sharing != CacheSharing::Private),
            ("insert", self.insert != Insert::Prepared),
            ("index", self.indexed),
            ("residence", self.residence != Residence::File),
        ];
        match specific.iter().find(|(_, is_set)| *is_set) {
            None => Ok(()),
            Some((name, _)) => Err(SettingsError::Contradiction {
                engine: ENGINE.to_owned(),
                reason: format!("`{name}` is for rows, and these are blobs"),
                hint: format!("leave `{name}` out"),
            }),
        }
    }

    /// What a committed write survives, by SQLite's documentation of `PRAGMA synchronous` and
    /// `PRAGMA journal_mode`:
    ///
    /// - `journal_mode = off` or `memory`: if the process dies in the middle of a transaction
    ///   "the database file will very likely go corrupt", and with it what was committed before.
    /// - `synchronous = off`: "if the application running SQLite crashes, the data will be safe,
    ///   but the database might become corrupted if the operating system crashes or the computer
    ///   loses power".
    /// - `normal`: in WAL mode "a transaction committed in WAL mode with synchronous=NORMAL might
    ///   roll back following a power loss" (the database stays intact); with a rollback journal
    ///   the end of a transaction is not synchronised either.
    /// - `full`: durable, except in `delete` mode: there a transaction is committed by unlinking
    ///   the journal, and its directory is synchronised only by `extra`, which "provides
    ///   additional durability if the commit is followed closely by a power loss". The journal
    ///   may be back after it, and undo what was acknowledged. `truncate` and `persist`
    ///   synchronise the journal itself after they have made it invalid.
    /// - `residence = memory`: what was written since the last copy is lost with the process.
    pub(crate) fn durability(&self) -> Durability {
        if self.residence != Residence::File {
            return Durability::None;
        }
        match (self.journal_mode, self.synchronous) {
            (JournalMode::Memory | JournalMode::Off, _) => Durability::None,
            (_, Synchronous::Off | Synchronous::Normal) => Durability::ProcessCrash,
            (JournalMode::Delete, Synchronous::Full) => Durability::ProcessCrash,
            (_, Synchronous::Full | Synchronous::Extra) => Durability::PowerLoss,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(pairs: &[(&str, &str)]) -> Result<Plan, SettingsError> {
        Plan::from(&Settings::from_pairs(pairs.iter().copied()))
    }

    #[test]
    fn defaults_are_allowed_and_complete() {
        let plan = plan(&[]).expect("defaults");
        assert_eq!(plan.library, LibraryChoice::Bundled);
        assert_eq!(plan.cache_bytes, 2_048_000);
        assert_eq!(plan.mapped, Mapped::Bytes(0));
        assert_eq!(plan.resolved.iter().count(), SETTINGS.len());
    }

    #[test]
    fn values_become_types() {
        let plan = plan(&[
            ("library", "/lib/libsqlite3.so"),
            ("mmap", "all"),
            ("cache", "64MiB"),
            ("transaction", "100"),
        ])
        .expect("valid");
        assert_eq!(
            plan.library,
            LibraryChoice::Path("/lib/libsqlite3.so".into())
        );
        assert_eq!(plan.mapped, Mapped::All);
        assert_eq!(plan.cache_bytes, 64 << 20);
        assert_eq!(plan.transaction, Transaction::Every(100));
    }

    #[test]
    fn contradictions_come_with_a_way_out() {
        for pairs in [
            &[("api", "blob"), ("layout", "without-rowid")][..],
            &[("catalogue", "memory")],
            &[("chunk_bytes", "4096"), ("layout", "separate")],
            &[("checkpoint", "included"), ("journal_mode", "delete")],
            &[("page_size", "5000")],
            &[("cache", "5000")],
            &[("residence", "memory"), ("cache_sharing", "shared")],
        ] {
            let error = plan(pairs).expect_err("contradiction");
            assert!(
                matches!(error, SettingsError::Contradiction { .. }),
                "{error}"
            );
            assert!(!error.hint().is_empty());
        }
        assert!(plan(&[("page_size", "131072")]).is_err());
        assert!(plan(&[("mmap", "9223372036854775808")]).is_err());
    }

    #[test]
    fn what_is_for_rows_is_refused_for_blobs() {
        assert_eq!(plan(&[]).expect("defaults").check_for_blobs(), Ok(()));
        for pairs in [
            [("cache_sharing", "shared")],
            [("insert", "text")],
            [("index", "c1")],
            [("residence", "memory")],
        ] {
            let plan = plan(&pairs).expect("allowed by itself");
            assert!(plan.check_for_blobs().is_err(), "{pairs:?}");
        }
    }

    #[test]
    fn durability_is_what_the_documentation_promises() {
        let tier = |journal_mode, synchronous| {
            plan(&[("journal_mode", journal_mode), ("synchronous", synchronous)])
                .expect("valid")
                .durability()
        };
        for mode in ["wal", "truncate", "persist"] {
            assert_eq!(tier(mode, "off"), Durability::ProcessCrash);
            assert_eq!(tier(mode, "normal"), Durability::ProcessCrash);
            assert_eq!(tier(mode, "full"), Durability::PowerLoss);
            assert_eq!(tier(mode, "extra"), Durability::PowerLoss);
        }
        assert_eq!(tier("delete", "full"), Durability::ProcessCrash);
        assert_eq!(tier("delete", "extra"), Durability::PowerLoss);
        for mode in ["memory", "off"] {
            assert_eq!(tier(mode, "extra"), Durability::None);
        }
        let in_memory = plan(&[("residence", "memory"), ("synchronous", "full")]);
        assert_eq!(in_memory.expect("valid").durability(), Durability::None);
    }
}
