//! Candidates: ways to store the files, as data. Each is an engine with settings for reading, and with
//! settings for writing at every tier of durability. To try another, add its lines to `TRIED`.

use serde::{Deserialize, Serialize};

use crate::case::Durability;

/// What a candidate is to the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Store {
    /// The files stay where they are.
    Files,
    /// They move into an SQLite database.
    Sqlite,
}

/// A way to store the files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Candidate {
    /// Short name, unique.
    pub name: String,
    /// What the report calls it.
    pub label: String,
    /// What it is to the user.
    pub store: Store,
    /// Settings for reading.
    pub reading: EngineSettings,
    /// Settings for writing at the durability that was asked for, and what it is then called.
    pub writing: EngineSettings,
    /// The same at [`super::Wish::other_durability`].
    pub writing_otherwise: EngineSettings,
}

/// An engine with settings that differ from its defaults.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineSettings {
    /// Name of the engine.
    pub engine: String,
    /// Names and values.
    pub settings: Vec<(String, String)>,
}

impl EngineSettings {
    fn new(engine: &str, settings: &[&[(&str, &str)]]) -> Self {
        let settings = settings.iter().flat_map(|part| part.iter());
        Self {
            engine: engine.to_owned(),
            settings: settings
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
        }
    }

    /// Value of a setting that is not left at its default.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        let mut settings = self.settings.iter();
        let found = settings.find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The same with one setting more, or another value of it.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.settings.retain(|(known, _)| known != name);
        self.settings.push((name.to_owned(), value.to_owned()));
        self
    }
}

/// Pairs of names and values.
type Pairs = &'static [(&'static str, &'static str)];

/// A candidate before the durability is known.
struct Tried {
    name: &'static str,
    label: &'static str,
    store: Store,
    /// How files are read (engine `own-files`), or how a database is read.
    reading: Pairs,
    /// What is stored, for databases; how copies of files are written where the device need not have
    /// them, for files.
    other: Pairs,
}

/// Name of the candidate that is what is there today.
pub const TODAY: &str = "files";

/// What is tried. The first is today's.
///
/// A file is found by its name, and so is a blob in most of the databases; where blobs have numbers
/// (`id`), the program has to keep the numbers itself, which saves a search.
///
/// A page of 64 KiB holds a blob of some 10 kB on the leaf of the tree itself, where a mapped database
/// hands it out without a copy; with 4 KiB it lies in a chain of overflow pages, which have to be
/// collected. Every page that changes is written whole, so large pages cost writers.
const TRIED: &[Tried] = &[
    Tried {
        name: TODAY,
        label: "your files, as they are",
        store: Store::Files,
        reading: &[("api", "open")],
        other: &[("api", "open"), ("write", "truncate")],
    },
    Tried {
        name: "files-openat",
        label: "your files, openat",
        store: Store::Files,
        reading: &[("api", "openat")],
        other: &[("api", "openat"), ("write", "in-place")],
    },
    Tried {
        name: "sqlite-4k",
        label: "SQLite as it comes",
        store: Store::Sqlite,
        reading: &[],
        other: &[("layout", "name"), ("page_size", "4096")],
    },
    Tried {
        name: "sqlite-8k-mmap",
        label: "SQLite 8 KiB, mmap",
        store: Store::Sqlite,
        reading: &[("mmap", "all")],
        other: &[("layout", "name"), ("page_size", "8192")],
    },
    Tried {
        name: "sqlite-16k-mmap",
        label: "SQLite 16 KiB, mmap",
        store: Store::Sqlite,
        reading: &[("mmap", "all")],
        other: &[("layout", "name"), ("page_size", "16384")],
    },
    Tried {
        name: "sqlite-64k-mmap",
        label: "SQLite 64 KiB, mmap",
        store: Store::Sqlite,
        reading: &[("mmap", "all")],
        other: &[("layout", "name"), ("page_size", "65536")],
    },
    Tried {
        name: "sqlite-4k-mmap-id-blob",
        label: "SQLite 4 KiB, mmap, id, blob API",
        store: Store::Sqlite,
        reading: &[("mmap", "all"), ("api", "blob")],
        other: &[("page_size", "4096")],
    },
    Tried {
        name: "sqlite-64k-mmap-id",
        label: "SQLite 64 KiB, mmap, id",
        store: Store::Sqlite,
        reading: &[("mmap", "all")],
        other: &[("page_size", "65536")],
    },
];

/// How a database is written at a tier. Every blob is a transaction, since a file that is written is
/// one too; every batch ends with a checkpoint, so that its cost is a part of each.
fn database_writing(durability: Durability) -> Pairs {
    match durability {
        Durability::None => &[
            ("journal_mode", "wal"),
            ("synchronous", "off"),
            ("transaction", "one"),
            ("checkpoint", "included"),
        ],
        Durability::ProcessCrash => &[
            ("journal_mode", "wal"),
            ("synchronous", "normal"),
            ("transaction", "one"),
            ("checkpoint", "included"),
        ],
        Durability::PowerLoss => &[
            ("journal_mode", "wal"),
            ("synchronous", "full"),
            ("transaction", "one"),
            ("checkpoint", "included"),
        ],
    }
}

/// How files are written so that each is there, old or new, after a loss of power.
const REPLACED_SAFELY: Pairs = &[
    ("api", "openat"),
    ("write", "rename"),
    ("sync", "fsync+dir"),
];

/// Copies of the files lie in folders of at most 100.
const COPIES: Pairs = &[("layout", "tree")];

impl Tried {
    fn reading(&self) -> EngineSettings {
        match self.store {
            Store::Files => EngineSettings::new("own-files", &[self.reading]),
            Store::Sqlite => EngineSettings::new("sqlite", &[self.other, self.reading]),
        }
    }

    fn writing(&self, durability: Durability) -> EngineSettings {
        match (self.store, durability) {
            (Store::Files, Durability::PowerLoss) => {
                EngineSettings::new("files", &[COPIES, REPLACED_SAFELY])
            }
            (Store::Files, _) => EngineSettings::new("files", &[COPIES, self.other]),
            (Store::Sqlite, _) => EngineSettings::new(
                "sqlite",
                &[self.other, self.reading, database_writing(durability)],
            ),
        }
    }
}

/// All candidates for a durability and another one that is worth knowing of.
#[must_use]
pub fn candidates(durability: Durability, otherwise: Durability) -> Vec<Candidate> {
    let of = |tried: &Tried| Candidate {
        name: tried.name.to_owned(),
        label: tried.label.to_owned(),
        store: tried.store,
        reading: tried.reading(),
        writing: tried.writing(durability),
        writing_otherwise: tried.writing(otherwise),
    };
    TRIED.iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_at_most_eight_and_today_is_the_first() {
        let all = candidates(Durability::ProcessCrash, Durability::PowerLoss);
        assert!(all.len() <= 8);
        assert_eq!(all[0].name, TODAY);
        let mut names: Vec<&str> = all.iter().map(|one| one.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all.len());
    }

    #[test]
    fn settings_follow_the_durability() {
        for candidate in candidates(Durability::ProcessCrash, Durability::PowerLoss) {
            let word = match candidate.store {
                Store::Files => "sync",
                Store::Sqlite => "synchronous",
            };
            let now = candidate.writing.get(word);
            let otherwise = candidate.writing_otherwise.get(word);
            assert_ne!(now, otherwise, "{}", candidate.name);
        }
    }

    #[test]
    fn a_shared_cache_is_never_recommended() {
        for tier in [
            Durability::None,
            Durability::ProcessCrash,
            Durability::PowerLoss,
        ] {
            for candidate in candidates(tier, Durability::PowerLoss) {
                let settings = [
                    &candidate.reading,
                    &candidate.writing,
                    &candidate.writing_otherwise,
                ];
                let shared = settings.iter().find_map(|one| one.get("cache_sharing"));
                assert_eq!(shared, None, "{}: private is the default", candidate.name);
            }
        }
    }

    #[test]
    fn a_setting_has_one_value() {
        let one = EngineSettings::new("sqlite", &[&[("mmap", "all")]]);
        let other = one.clone().with("mmap", "0").with("api", "blob");
        assert_eq!(other.get("mmap"), Some("0"));
        assert_eq!(other.get("api"), Some("blob"));
        assert_eq!(one.get("api"), None);
    }
}
