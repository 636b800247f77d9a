//! The engines `external` and `hybrid`: an index in SQLite, contents in files. With `external`
//! every content is a file and the database has its name and metadata, which are looked up first,
//! as in the published comparisons (Gray and others 2006; SQLite's "Internal Versus External
//! BLOBs"). With `hybrid` contents of up to `inline_limit` bytes are in the database, in the very
//! row that would name the file.
//!
//! # On disk
//! A directory with `index.db` and the folder `content`; beside them, while there is somebody who
//! writes or after one that was killed, a mark `writer-...` (`mark`). The tables are
//! `entry(k, mode, mtime, size, file, v)`, where `file` is a path below `content` or NULL, and
//! `store(name, value)` with the settings that decide how the bytes lie. Loaded contents are named
//! after their keys, as the `files` engine names them; later ones have a suffix that no other has.
//!
//! # Order of writing
//! A content is never changed. An overwrite makes a new file; the row that names it is committed;
//! then the old file is removed. So whoever is killed leaves rows whose files are all there, whole,
//! and perhaps files that no row names: they are removed when the store is opened next. With
//! `sync = fsync+dir` new files and their folders are synchronised before the commit. Where the
//! commit itself may be undone by a loss of power (`synchronous = normal`, and `full` with
//! `journal_mode = delete`) old files are kept until `settle` has made it durable, since the row
//! that comes back names them.
//!
//! A reader who finds its file gone looks at the row again: somebody has replaced it meanwhile.
//!
//! # Batches
//! As in the `sqlite` engine; a transaction always takes its lock when it begins.

mod folder;
mod mark;
mod session;
mod store;

use std::path::Path;

use sqlitmus_core::case::Durability;
use sqlitmus_core::settings::{SettingKind, SettingSpecification, Settings, SettingsError};

use crate::engine::{Capabilities, Engine, EngineError, ReadBack, Store};
use crate::files::Layout;
use crate::sqlite::{self, specification};

/// The names in SQLite, the contents in files.
#[derive(Debug, Clone, Copy)]
pub struct External;

/// Small contents in SQLite, large ones in files.
#[derive(Debug, Clone, Copy)]
pub struct Hybrid;

const LAYOUT: SettingSpecification = SettingSpecification {
    name: "layout",
    kind: SettingKind::Choice(&["flat", "tree"]),
    default: "flat",
    stored: true,
    about: "files in one directory, or in a tree of at most 100 entries a folder",
};

const API: SettingSpecification = SettingSpecification {
    name: "api",
    kind: SettingKind::Choice(&["openat", "mmap"]),
    default: "openat",
    stored: false,
    about: "files are read by system calls relative to an open directory, or memory-mapped",
};

const SYNC: SettingSpecification = SettingSpecification {
    name: "sync",
    kind: SettingKind::Choice(&["none", "fsync+dir"]),
    default: "none",
    stored: false,
    about: "before a commit nothing, or fsync of the new files and of their directories",
};

const JOURNAL_MODE: SettingSpecification = SettingSpecification {
    name: "journal_mode",
    kind: SettingKind::Choice(&["wal", "delete"]),
    default: "wal",
    stored: true,
    about: "how a transaction of the database is made atomic",
};

const INLINE_LIMIT: SettingSpecification = SettingSpecification {
    name: "inline_limit",
    kind: SettingKind::Bytes {
        minimum: 1,
        // SQLite's own limit for a blob, as it is compiled by default.
        maximum: 1_000_000_000,
        words: &[],
    },
    default: "65536",
    stored: true,
    about: "contents of up to so many bytes are in the database, larger ones in files",
};

/// Those that are also the sqlite engine's, under the same names.
const OF_SQLITE: [&str; 9] = [
    "library",
    "read_transaction",
    "page_size",
    "cache",
    "mmap",
    "synchronous",
    "transaction",
    "checkpoint",
    "busy_timeout",
];

const OF_EXTERNAL: &[SettingSpecification] = &[
    LAYOUT,
    API,
    SYNC,
    JOURNAL_MODE,
    specification(OF_SQLITE[0]),
    specification(OF_SQLITE[1]),
    specification(OF_SQLITE[2]),
    specification(OF_SQLITE[3]),
    specification(OF_SQLITE[4]),
    specification(OF_SQLITE[5]),
    specification(OF_SQLITE[6]),
    specification(OF_SQLITE[7]),
    specification(OF_SQLITE[8]),
];

const OF_HYBRID: &[SettingSpecification] = &[
    INLINE_LIMIT,
    LAYOUT,
    API,
    SYNC,
    JOURNAL_MODE,
    specification(OF_SQLITE[0]),
    specification(OF_SQLITE[1]),
    specification(OF_SQLITE[2]),
    specification(OF_SQLITE[3]),
    specification(OF_SQLITE[4]),
    specification(OF_SQLITE[5]),
    specification(OF_SQLITE[6]),
    specification(OF_SQLITE[7]),
    specification(OF_SQLITE[8]),
];

/// How files are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Api {
    Openat,
    Mmap,
}

/// Resolved settings, in types.
#[derive(Debug, Clone)]
struct Means {
    /// Bytes up to which a content is in the database; `None` if none is.
    inline_limit: Option<u64>,
    layout: Layout,
    api: Api,
    synchronises: bool,
    index: sqlite::Plan,
    resolved: Settings,
}

impl Means {
    /// The last arm of each match stands for the one value that is left: resolved settings have
    /// no others.
    fn from(
        engine: &str,
        specifications: &[SettingSpecification],
        settings: &Settings,
    ) -> Result<Self, SettingsError> {
        let resolved = settings.resolve(engine, specifications)?;
        let value = |name| resolved.get(name).unwrap_or_default();
        let of_index = OF_SQLITE.into_iter().chain(["journal_mode"]);
        let pairs = of_index.map(|name| (name, value(name)));
        let index = sqlite::Plan::from(&Settings::from_pairs(pairs))
            .map_err(|error| named_after(engine, error))?;
        Ok(Self {
            inline_limit: resolved
                .get("inline_limit")
                .and_then(|limit| limit.parse().ok()),
            layout: match value("layout") {
                "flat" => Layout::Flat,
                _ => Layout::Tree,
            },
            api: match value("api") {
                "openat" => Api::Openat,
                _ => Api::Mmap,
            },
            synchronises: value("sync") != "none",
            index,
            resolved,
        })
    }

    /// A row survives as SQLite's settings have it, and its file a loss of power only if it was
    /// synchronised, with its name, before the row was committed.
    fn durability(&self) -> Durability {
        let of_files = match self.synchronises {
            true => Durability::PowerLoss,
            false => Durability::ProcessCrash,
        };
        self.index.durability().min(of_files)
    }

    /// Whether a loss of power may undo a commit whose old files should then be there: they are
    /// removed later. Where nothing is synchronised nothing is promised, and nothing is kept.
    fn keeps_old_files(&self) -> bool {
        let is_never_synchronised = self.resolved.get("synchronous") == Some("off");
        self.synchronises
            && !is_never_synchronised
            && self.index.durability() < Durability::PowerLoss
    }

    /// Settings that are known here alone: they say how a session goes about it.
    fn add_own(&self, back: &mut ReadBack) {
        for name in [
            "api",
            "sync",
            "read_transaction",
            "transaction",
            "checkpoint",
        ] {
            let value = self.resolved.get(name).unwrap_or_default();
            back.insert(name.to_owned(), value.to_owned());
        }
    }
}

/// A contradiction of the index's settings is one of the engine's that has the index.
fn named_after(engine: &str, error: SettingsError) -> SettingsError {
    match error {
        SettingsError::Contradiction { reason, hint, .. } => SettingsError::Contradiction {
            engine: engine.to_owned(),
            reason,
            hint,
        },
        other => other,
    }
}

const CAPABILITIES: Capabilities = Capabilities {
    keeps_content: true,
    persistent: true,
    writes: true,
};

macro_rules! engine {
    ($engine:ident, $name:literal, $about:literal, $settings:ident) => {
        impl $engine {
            fn means(settings: &Settings) -> Result<Means, SettingsError> {
                Means::from($name, $settings, settings)
            }
        }

        impl Engine for $engine {
            fn name(&self) -> &'static str {
                $name
            }

            fn about(&self) -> &'static str {
                $about
            }

            fn settings(&self) -> &'static [SettingSpecification] {
                $settings
            }

            fn check(&self, settings: &Settings) -> Result<(), SettingsError> {
                Self::means(settings).map(|_| ())
            }

            fn capabilities(&self, _settings: &Settings) -> Capabilities {
                CAPABILITIES
            }

            fn durability(&self, settings: &Settings) -> Durability {
                Self::means(settings).map_or(Durability::None, |means| means.durability())
            }

            fn set_up_process(&self, settings: &Settings) -> Result<(), EngineError> {
                sqlite::set_up(&Self::means(settings)?.index)
            }

            fn create(
                &self,
                path: &Path,
                settings: &Settings,
            ) -> Result<Box<dyn Store>, EngineError> {
                Ok(Box::new(store::create(path, Self::means(settings)?)?))
            }

            fn open(
                &self,
                path: &Path,
                settings: &Settings,
            ) -> Result<Box<dyn Store>, EngineError> {
                Ok(Box::new(store::open(path, Self::means(settings)?)?))
            }
        }
    };
}

engine!(
    External,
    "external",
    "one file for each blob, its name and metadata in SQLite",
    OF_EXTERNAL
);
engine!(
    Hybrid,
    "hybrid",
    "small blobs in SQLite, larger ones in files that it names",
    OF_HYBRID
);

/// What is wrong with a store of either engine, beyond what reading its blobs shows: SQLite's
/// integrity check of the index, contents that are missing or of another length than their row
/// says. `None` if nothing is.
///
/// # Errors
/// It cannot be looked at.
pub fn examine(path: &Path) -> Result<Option<String>, EngineError> {
    store::examine(path)
}

/// Contents that no row names, and other files that are none of the store's: none after a store
/// was opened.
///
/// # Errors
/// It cannot be looked at.
pub fn stray_files(path: &Path) -> Result<u64, EngineError> {
    store::stray_files(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_worth_no_more_than_its_file() {
        let tier = |pairs: &[(&str, &str)]| {
            External.durability(&Settings::from_pairs(pairs.iter().copied()))
        };
        assert_eq!(tier(&[]), Durability::ProcessCrash);
        assert_eq!(tier(&[("synchronous", "full")]), Durability::ProcessCrash);
        assert_eq!(tier(&[("sync", "fsync+dir")]), Durability::ProcessCrash);
        let both = [("sync", "fsync+dir"), ("synchronous", "full")];
        assert_eq!(tier(&both), Durability::PowerLoss);
        let deleted = [both[0], both[1], ("journal_mode", "delete")];
        assert_eq!(tier(&deleted), Durability::ProcessCrash);
    }

    #[test]
    fn old_files_are_kept_where_a_commit_may_be_undone() {
        let keeps = |pairs: &[(&str, &str)]| {
            let settings = Settings::from_pairs(pairs.iter().copied());
            Hybrid::means(&settings).expect("valid").keeps_old_files()
        };
        assert!(!keeps(&[]));
        assert!(keeps(&[("sync", "fsync+dir")]));
        assert!(!keeps(&[("sync", "fsync+dir"), ("synchronous", "full")]));
        assert!(!keeps(&[("sync", "fsync+dir"), ("synchronous", "off")]));
    }

    #[test]
    fn a_contradiction_is_the_engines_own() {
        let settings = Settings::from_pairs([("page_size", "5000")]);
        let error = Hybrid.check(&settings).expect_err("no power of two");
        assert!(error.to_string().contains("hybrid"), "{error}");
    }
}
