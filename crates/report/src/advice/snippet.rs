//! What to paste: connection set-up, schema, reading and writing in several languages, with the settings
//! that were measured. The templates beside this file are programs with holes; a test of the command line
//! runs each of them. Those in `outside/` keep contents in files too. For tables of which there is no code
//! ([`Setup::of`] is `None`) [`without_code`] says why.

use sqlitmus_core::advice::{AdviceRecord, Candidate, Recommendation, Store};
use sqlitmus_core::units::parse_bytes;

use crate::text::clean;

/// As much of a database is mapped as the library allows: what `mmap = all` was measured with.
const ALL_MAPPED: &str = "1099511627776";

/// Page cache of SQLite where none is chosen.
const DEFAULT_CACHE_KIB: u64 = 2000;

/// Page size of SQLite where none is chosen.
const DEFAULT_PAGE_BYTES: &str = "4096";

/// A language to paste in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// `sqlite3` of Python's standard library.
    Python,
    /// rusqlite.
    Rust,
    /// mattn/go-sqlite3.
    Go,
    /// better-sqlite3.
    Node,
    /// The C library.
    C,
}

impl Language {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Python, Self::Rust, Self::Go, Self::Node, Self::C];

    /// Name on the command line.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Python => "python",
            Self::Rust => "rust",
            Self::Go => "go",
            Self::Node => "node",
            Self::C => "c",
        }
    }

    fn template(self) -> &'static str {
        match self {
            Self::Python => include_str!("snippets/python.py.in"),
            Self::Rust => include_str!("snippets/rust.rs.in"),
            Self::Go => include_str!("snippets/go.go.in"),
            Self::Node => include_str!("snippets/node.js.in"),
            Self::C => include_str!("snippets/c.c.in"),
        }
    }

    /// The same with files for what is large.
    fn template_with_files(self) -> &'static str {
        match self {
            Self::Python => include_str!("snippets/outside/python.py.in"),
            Self::Rust => include_str!("snippets/outside/rust.rs.in"),
            Self::Go => include_str!("snippets/outside/go.go.in"),
            Self::Node => include_str!("snippets/outside/node.js.in"),
            Self::C => include_str!("snippets/outside/c.c.in"),
        }
    }
}

/// How files are found in the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// By name.
    Name,
    /// By number.
    Id,
    /// By number, in a table without a hidden row number.
    IdWithoutRowid,
}

/// Contents that are files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outside {
    /// Bytes up to which a content is in the database all the same.
    pub inline_limit: String,
    /// Whether a file is on the device before the row that names it is committed.
    pub syncs: bool,
}

/// What a database is opened with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setup {
    /// Heads the code.
    pub title: String,
    /// Bytes in a page.
    pub page_bytes: String,
    /// `PRAGMA journal_mode`.
    pub journal_mode: String,
    /// `PRAGMA synchronous`.
    pub synchronous: String,
    /// `PRAGMA mmap_size`, in bytes.
    pub mmap_bytes: String,
    /// `PRAGMA cache_size`, in KiB.
    pub cache_kib: String,
    /// How files are found.
    pub key: Key,
    /// What is not in the database; `None` if all is.
    pub outside: Option<Outside>,
}

/// The candidate that is best of those with a database.
fn best<'a>(record: &'a AdviceRecord, recommendation: &Recommendation) -> Option<&'a Candidate> {
    let best = recommendation.database.as_ref()?;
    let mut candidates = record.candidates.iter();
    candidates.find(|candidate| candidate.name == best.name)
}

/// How files are found in a candidate's tables; `None` if these are none that there is code for.
fn key_of(candidate: &Candidate) -> Option<Key> {
    let is_in_memory = candidate.writing.get("catalogue") == Some("memory");
    let is_by_handle = candidate.reading.get("api") == Some("blob");
    match (candidate.store, candidate.writing.get("layout")) {
        (Store::Hybrid | Store::External, _) => Some(Key::Id),
        _ if is_in_memory || is_by_handle => None,
        (_, Some("name")) => Some(Key::Name),
        (_, None | Some("rowid")) => Some(Key::Id),
        (_, Some("without-rowid")) => Some(Key::IdWithoutRowid),
        _ => None,
    }
}

/// Why there is no code for what was best, and what stands next that there is code for; `None` if there
/// is code, or nothing was best.
#[must_use]
pub fn without_code(record: &AdviceRecord, recommendation: &Recommendation) -> Option<String> {
    let best = best(record, recommendation)?;
    if key_of(best).is_some() {
        return None;
    }
    let candidate = |name: &str| record.candidates.iter().find(|one| one.name == name);
    let mut standings = recommendation.standings.iter();
    let next = standings.find(|standing| {
        let has_code = candidate(&standing.name).and_then(key_of).is_some();
        standing.store.has_database() && has_code && standing.composed.is_some()
    });
    let next = next.map_or(String::new(), |next| {
        format!(
            " Next to it, with tables that are simpler: {}.",
            clean(&next.label)
        )
    });
    let what = match (best.reading.get("api"), best.writing.get("layout")) {
        (Some("blob"), _) => {
            "There is no code to paste for it: it reads through blob handles (sqlite3_blob_open and its like), which not \
             every language has."
        }
        (_, Some("sqlar")) => {
            "There is no code to paste for it: `sqlitmus pack` makes this table, and every SQLite reads it \
             (SELECT data FROM sqlar WHERE name = ?; what `sqlitmus pack` has compressed is shorter than sz)."
        }
        _ => {
            "There is no code to paste for it: how it keeps names or parts of contents is a program's own business, \
             and a few lines would not be what was measured."
        }
    };
    Some(format!("{what}{next}"))
}

impl Setup {
    /// Of the best store with a database, whatever the answer; `None` if there is none, or no code for it.
    #[must_use]
    pub fn of(record: &AdviceRecord, recommendation: &Recommendation) -> Option<Self> {
        let candidate = best(record, recommendation)?;
        let key = key_of(candidate)?;
        let get = |name: &str| candidate.writing.get(name);
        Some(Self {
            title: format!(
                "{} | measured by sqlitmus advise {}",
                clean(&candidate.label),
                // A path may hold what ends a comment.
                clean(&record.tree.path).replace("*/", "* /")
            ),
            page_bytes: number(get("page_size"))
                .unwrap_or(DEFAULT_PAGE_BYTES)
                .to_owned(),
            journal_mode: word(get("journal_mode"), "wal"),
            synchronous: word(get("synchronous"), "normal"),
            mmap_bytes: match get("mmap") {
                Some("all") => ALL_MAPPED.to_owned(),
                other => number(other).unwrap_or("0").to_owned(),
            },
            cache_kib: cache_kib(get("cache")),
            key,
            outside: match candidate.store {
                Store::Files | Store::Sqlite => None,
                Store::Hybrid | Store::External => Some(Outside {
                    // An external store has everything outside.
                    inline_limit: number(get("inline_limit")).unwrap_or("0").to_owned(),
                    syncs: get("sync").is_some_and(|sync| sync != "none"),
                }),
            },
        })
    }

    /// For programs.
    pub(super) fn settings(&self) -> serde_json::Value {
        serde_json::json!({
            "page_size": self.page_bytes,
            "journal_mode": self.journal_mode,
            "synchronous": self.synchronous,
            "mmap_size": self.mmap_bytes,
            "cache_kib": self.cache_kib,
            "key": match self.key {
                Key::Name => "name",
                Key::Id | Key::IdWithoutRowid => "id",
            },
            "inline_limit": self.outside.as_ref().map(|outside| &outside.inline_limit),
        })
    }

    /// The code in a language.
    #[must_use]
    pub fn code(&self, language: Language) -> String {
        let template = match self.outside {
            Some(_) => language.template_with_files(),
            None => language.template(),
        };
        let mut code = template.to_owned();
        for (hole, filling) in self.fillings() {
            code = code.replace(&format!("{{{{{hole}}}}}"), filling);
        }
        code
    }

    fn fillings(&self) -> Vec<(&'static str, &str)> {
        let mut fillings = vec![
            ("title", self.title.as_str()),
            ("page_bytes", &self.page_bytes),
            ("journal_mode", &self.journal_mode),
            ("synchronous", &self.synchronous),
            ("mmap_bytes", &self.mmap_bytes),
            ("cache_kib", &self.cache_kib),
        ];
        if let Some(outside) = &self.outside {
            let syncs = |yes, no| if outside.syncs { yes } else { no };
            fillings.extend([
                ("inline_limit", outside.inline_limit.as_str()),
                ("syncs", syncs("true", "false")),
                ("python_syncs", syncs("True", "False")),
                ("c_syncs", syncs("1", "0")),
                (
                    "schema",
                    "CREATE TABLE IF NOT EXISTS file(id INTEGER PRIMARY KEY, content BLOB, path TEXT)",
                ),
            ]);
            return fillings;
        }
        fillings.extend(match self.key {
            Key::Name => [
                ("key", "name"),
                (
                    "schema",
                    "CREATE TABLE IF NOT EXISTS file(name TEXT PRIMARY KEY, content BLOB)",
                ),
                ("imported", "its names"),
                ("key_of_file", "relative"),
                ("rust_type", "&str"),
                ("go_type", "string"),
                ("c_type", "const char *"),
                (
                    "c_bind_select",
                    "sqlite3_bind_text(store->select, 1, name, -1, SQLITE_STATIC)",
                ),
                (
                    "c_bind_insert",
                    "sqlite3_bind_text(store->insert, 1, name, -1, SQLITE_STATIC)",
                ),
            ],
            Key::Id | Key::IdWithoutRowid => [
                ("key", "id"),
                (
                    "schema",
                    match self.key {
                        Key::IdWithoutRowid => {
                            "CREATE TABLE IF NOT EXISTS file(id INTEGER PRIMARY KEY, content BLOB) WITHOUT ROWID"
                        }
                        _ => "CREATE TABLE IF NOT EXISTS file(id INTEGER PRIMARY KEY, content BLOB)",
                    },
                ),
                ("imported", "the id of every name: keep it"),
                ("key_of_file", "len(keys) + 1"),
                ("rust_type", "i64"),
                ("go_type", "int64"),
                ("c_type", "sqlite3_int64"),
                ("c_bind_select", "sqlite3_bind_int64(store->select, 1, id)"),
                ("c_bind_insert", "sqlite3_bind_int64(store->insert, 1, id)"),
            ],
        });
        fillings
    }
}

/// A value that is nothing but digits: it goes into code, and may come from anybody's run file.
fn number(value: Option<&str>) -> Option<&str> {
    value.filter(|value| !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()))
}

/// A number of bytes in KiB; what SQLite has where nobody chooses if it is none.
fn cache_kib(value: Option<&str>) -> String {
    let bytes = value.and_then(|value| parse_bytes(value).ok());
    bytes
        .map_or(DEFAULT_CACHE_KIB, |bytes| bytes / 1024)
        .to_string()
}

/// A value that is nothing but letters, likewise.
fn word(value: Option<&str>, otherwise: &str) -> String {
    let letters =
        |value: &&str| !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_alphabetic());
    value.filter(letters).unwrap_or(otherwise).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use sqlitmus_core::advice::{Breadth, SizeCount, TreeFacts, candidates};
    use sqlitmus_core::case::Durability;

    fn setup(key: Key) -> Setup {
        Setup {
            title: "a title".to_owned(),
            page_bytes: "65536".to_owned(),
            journal_mode: "wal".to_owned(),
            synchronous: "normal".to_owned(),
            mmap_bytes: "0".to_owned(),
            cache_kib: "65536".to_owned(),
            key,
            outside: None,
        }
    }

    #[test]
    fn no_hole_is_left() {
        let is_whole = |code: &str| {
            assert!(!code.contains("{{") && !code.contains("}}"), "{code}");
            assert!(code.contains("page_size = 65536"), "{code}");
            assert!(code.contains("cache_size = -65536"), "{code}");
        };
        for language in Language::ALL {
            for key in [Key::Name, Key::Id, Key::IdWithoutRowid] {
                is_whole(&setup(key).code(language));
            }
            let mut setup = setup(Key::Id);
            setup.outside = Some(Outside {
                inline_limit: "16384".to_owned(),
                syncs: true,
            });
            let code = setup.code(language);
            is_whole(&code);
            assert!(code.contains("16384"), "{code}");
        }
    }

    #[test]
    fn what_was_measured_is_what_is_pasted_or_nothing_is() {
        let tree = TreeFacts {
            sizes: vec![size(1 << 10, 100), size(1 << 20, 10)],
            ..TreeFacts::default()
        };
        let tiers = (Durability::ProcessCrash, Durability::PowerLoss);
        for breadth in [Breadth::Eight, Breadth::Wide] {
            let all = candidates(&tree, tiers, breadth);
            let without = all.iter().filter(|one| one.store.has_database());
            let without: Vec<&str> = without
                .filter(|one| key_of(one).is_none())
                .map(|one| one.name.as_str())
                .collect();
            // The quick run recommends nothing that it cannot give code for.
            assert_eq!(without.is_empty(), breadth == Breadth::Eight, "{without:?}");
        }
    }

    fn size(low: u64, files: u64) -> SizeCount {
        SizeCount {
            low,
            high: 2 * low - 1,
            files,
            bytes: low * files,
        }
    }

    #[test]
    fn values_of_a_foreign_run_file_are_no_code() {
        assert_eq!(number(Some("4096; DROP TABLE file")), None);
        assert_eq!(number(Some("8192")), Some("8192"));
        assert_eq!(word(Some("wal\"); evil("), "wal"), "wal");
        assert_eq!(word(Some("delete"), "wal"), "delete");
        assert_eq!(cache_kib(Some("64MiB")), "65536");
        assert_eq!(cache_kib(Some("1; evil()")), "2000");
        assert_eq!(cache_kib(None), "2000");
    }
}
