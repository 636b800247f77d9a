//! What to paste: connection set-up, schema, reading and writing in several languages, with the settings
//! that were measured. The templates beside this file are programs with holes; a test of the command line
//! runs each of them.

use sqlitmus_core::advice::{AdviceRecord, Recommendation};

use crate::text::clean;

/// As much of a database is mapped as the library allows: what `mmap = all` was measured with.
const ALL_MAPPED: &str = "1099511627776";

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
}

/// How files are found in the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// By name.
    Name,
    /// By number.
    Id,
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
    /// How files are found.
    pub key: Key,
}

impl Setup {
    /// Of the best database, whatever the answer; `None` if there is none.
    #[must_use]
    pub fn of(record: &AdviceRecord, recommendation: &Recommendation) -> Option<Self> {
        let best = recommendation.database.as_ref()?;
        let mut candidates = record.candidates.iter();
        let candidate = candidates.find(|candidate| candidate.name == best.name)?;
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
            key: match get("layout") {
                Some("name") => Key::Name,
                _ => Key::Id,
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
            "key": match self.key {
                Key::Name => "name",
                Key::Id => "id",
            },
        })
    }

    /// The code in a language.
    #[must_use]
    pub fn code(&self, language: Language) -> String {
        let mut code = language.template().to_owned();
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
        ];
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
            Key::Id => [
                ("key", "id"),
                (
                    "schema",
                    "CREATE TABLE IF NOT EXISTS file(id INTEGER PRIMARY KEY, content BLOB)",
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

/// A value that is nothing but letters, likewise.
fn word(value: Option<&str>, otherwise: &str) -> String {
    let letters =
        |value: &&str| !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_alphabetic());
    value.filter(letters).unwrap_or(otherwise).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setup(key: Key) -> Setup {
        Setup {
            title: "a title".to_owned(),
            page_bytes: "65536".to_owned(),
            journal_mode: "wal".to_owned(),
            synchronous: "normal".to_owned(),
            mmap_bytes: "0".to_owned(),
            key,
        }
    }

    #[test]
    fn no_hole_is_left() {
        for language in Language::ALL {
            for key in [Key::Name, Key::Id] {
                let code = setup(key).code(language);
                assert!(!code.contains("{{") && !code.contains("}}"), "{code}");
                assert!(code.contains("page_size = 65536"), "{code}");
            }
        }
    }

    #[test]
    fn values_of_a_foreign_run_file_are_no_code() {
        assert_eq!(number(Some("4096; DROP TABLE file")), None);
        assert_eq!(number(Some("8192")), Some("8192"));
        assert_eq!(word(Some("wal\"); evil("), "wal"), "wal");
        assert_eq!(word(Some("delete"), "wal"), "delete");
    }
}
