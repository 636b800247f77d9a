//! A candidate: a way to store the files, as an engine with settings for reading, and with settings for
//! writing at every tier of durability. Which ways are tried is for [`super::families`] to choose.

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
    /// Small ones move into an SQLite database, large ones into files that it names.
    Hybrid,
    /// Their names move into an SQLite database, their contents into files that it names.
    External,
}

impl Store {
    /// Whether it takes a database, so that moving there is work.
    #[must_use]
    pub fn has_database(self) -> bool {
        self != Self::Files
    }
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
    /// Of an engine, a later value of a setting in the place of an earlier one.
    #[must_use]
    pub fn new(engine: &str, settings: &[&[(&str, &str)]]) -> Self {
        let empty = Self {
            engine: engine.to_owned(),
            settings: Vec::new(),
        };
        let settings = settings.iter().flat_map(|part| part.iter());
        settings.fold(empty, |with, (name, value)| with.with(name, value))
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

    /// The same with a setting left at its default.
    #[must_use]
    pub fn without(mut self, name: &str) -> Self {
        self.settings.retain(|(known, _)| known != name);
        self
    }
}

/// Pairs of names and values.
pub(super) type Pairs<'a> = &'a [(&'a str, &'a str)];

/// Name of the candidate that is what is there today.
pub const TODAY: &str = "files";

/// How a database is written at a tier. Every blob is a transaction, since a file that is written is
/// one too; every batch ends with a checkpoint, so that its cost is a part of each.
fn database_writing(durability: Durability) -> Pairs<'static> {
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
const REPLACED_SAFELY: Pairs<'_> = &[
    ("api", "openat"),
    ("write", "rename"),
    ("sync", "fsync+dir"),
];

/// Files that a database names, likewise.
const NAMED_SAFELY: Pairs<'_> = &[("sync", "fsync+dir")];

/// Copies of the files lie in folders of at most 100.
const COPIES: Pairs<'_> = &[("layout", "tree")];

/// Settings that writing takes and reading has no use for.
const OF_WRITING: [&str; 4] = ["synchronous", "transaction", "checkpoint", "sync"];

impl Candidate {
    /// Files that are read in a way of the engine `own-files`, and copies of them that are written in
    /// a way of the engine `files` where the device need not have them.
    pub(super) fn files(
        (name, label): (&str, &str),
        reading: Pairs<'_>,
        written: Pairs<'_>,
        (durability, otherwise): (Durability, Durability),
    ) -> Self {
        let writing = |durability: Durability| match durability {
            Durability::PowerLoss => EngineSettings::new("files", &[COPIES, REPLACED_SAFELY]),
            Durability::None | Durability::ProcessCrash => {
                EngineSettings::new("files", &[COPIES, written])
            }
        };
        Self {
            name: name.to_owned(),
            label: label.to_owned(),
            store: Store::Files,
            reading: EngineSettings::new("own-files", &[reading]),
            writing: writing(durability),
            writing_otherwise: writing(otherwise),
        }
    }

    /// A store with a database. Its settings stand before those that follow from the durability.
    pub(super) fn database(
        (name, label): (&str, &str),
        store: Store,
        settings: Pairs<'_>,
        (durability, otherwise): (Durability, Durability),
    ) -> Self {
        let (engine, layout): (_, Pairs<'_>) = match store {
            Store::Hybrid => ("hybrid", COPIES),
            Store::External => ("external", COPIES),
            Store::Files | Store::Sqlite => ("sqlite", &[]),
        };
        let writing = |durability: Durability| {
            let is_safe = durability == Durability::PowerLoss && engine != "sqlite";
            let files: Pairs<'_> = if is_safe { NAMED_SAFELY } else { &[] };
            let parts = [layout, database_writing(durability), files, settings];
            EngineSettings::new(engine, &parts)
        };
        let reading = EngineSettings::new(engine, &[layout, settings]);
        Self {
            name: name.to_owned(),
            label: label.to_owned(),
            store,
            reading: OF_WRITING
                .iter()
                .fold(reading, |with, name| with.without(name)),
            writing: writing(durability),
            writing_otherwise: writing(otherwise),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_has_one_value() {
        let one = EngineSettings::new("sqlite", &[&[("mmap", "0"), ("mmap", "all")]]);
        assert_eq!(one.settings.len(), 1);
        let other = one.clone().with("mmap", "0").with("api", "blob");
        assert_eq!(other.get("mmap"), Some("0"));
        assert_eq!(other.get("api"), Some("blob"));
        assert_eq!(one.get("api"), None);
        assert_eq!(other.without("api"), one.with("mmap", "0"));
    }

    #[test]
    fn settings_follow_the_durability() {
        let tiers = (Durability::ProcessCrash, Durability::PowerLoss);
        for store in [Store::Sqlite, Store::Hybrid, Store::External] {
            let found = Candidate::database(("a", "A"), store, &[("mmap", "all")], tiers);
            assert_eq!(found.writing.get("synchronous"), Some("normal"));
            assert_eq!(found.writing_otherwise.get("synchronous"), Some("full"));
            let is_synced = found.writing_otherwise.get("sync").is_some();
            assert_eq!(is_synced, store != Store::Sqlite);
            assert_eq!(found.reading.get("synchronous"), None);
            assert_eq!(found.reading.get("mmap"), Some("all"));
        }
        let files = Candidate::files((TODAY, "files"), &[], &[("api", "open")], tiers);
        assert_eq!(files.writing.get("sync"), None);
        assert_eq!(files.writing_otherwise.get("sync"), Some("fsync+dir"));
    }
}
