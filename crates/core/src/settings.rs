//! Settings: what an engine is opened with, as named text values, and the specifications that
//! say which names and values an engine knows.
//!
//! A setting that is not given takes the default of its specification, so a resolved set is
//! always complete: nothing that affects durability or cache is left to a library's own default.
//! What a value *means* is the engine's business.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::names::{is_plain, nearest};
use crate::units::parse_bytes;

/// Named values, in alphabetical order of their names. Values are text; sizes are in bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Settings(BTreeMap<String, String>);

/// One setting that an engine knows.
#[derive(Debug, Clone, Copy)]
pub struct SettingSpecification {
    /// Name, as written in a suite.
    pub name: &'static str,
    /// Which values are allowed.
    pub kind: SettingKind,
    /// Value where none is given; must itself be allowed.
    pub default: &'static str,
    /// Whether it decides how the bytes lie on disk. Readers whose stored settings are the same
    /// may share one store.
    pub stored: bool,
    /// One line for `sqlitmus list`.
    pub about: &'static str,
}

/// Which values a setting allows.
#[derive(Debug, Clone, Copy)]
pub enum SettingKind {
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A number of bytes, with the usual suffixes, at least this one; or one of the words.
    Bytes {
        /// Smallest number of bytes.
        minimum: u64,
        /// Largest number of bytes.
        maximum: u64,
        /// Words that may stand instead of a number.
        words: &'static [&'static str],
    },
    /// One of these words, or an absolute path: a worker works in a directory of its own. Or `@` and
    /// a name that each machine has its own path for.
    ChoiceOrPath(&'static [&'static str]),
    /// A whole number of at least 1, or one of these words.
    CountOr(&'static [&'static str]),
}

/// Why settings could not be resolved.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// The engine has no setting of that name.
    #[error("engine `{engine}` has no setting `{name}`")]
    UnknownName {
        /// Engine asked.
        engine: String,
        /// Name given.
        name: String,
        /// What to write instead.
        hint: String,
    },
    /// The setting does not allow that value.
    #[error("setting `{name}` of engine `{engine}` cannot be `{value}`")]
    BadValue {
        /// Engine asked.
        engine: String,
        /// Setting's name.
        name: String,
        /// Value given.
        value: String,
        /// What to write instead.
        hint: String,
    },
    /// Values are allowed one by one but not together.
    #[error("engine `{engine}`: {reason}")]
    Contradiction {
        /// Engine asked.
        engine: String,
        /// What contradicts what.
        reason: String,
        /// What to write instead.
        hint: String,
    },
}

impl SettingsError {
    /// What the user can do about it.
    #[must_use]
    pub fn hint(&self) -> &str {
        match self {
            Self::UnknownName { hint, .. }
            | Self::BadValue { hint, .. }
            | Self::Contradiction { hint, .. } => hint,
        }
    }
}

impl Settings {
    /// Settings from pairs of name and value.
    pub fn from_pairs<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        Self(
            pairs
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect(),
        )
    }

    /// Value of a setting, if it is there.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Sets a value.
    pub fn set(&mut self, name: &str, value: &str) {
        self.0.insert(name.to_owned(), value.to_owned());
    }

    /// All names and values, in alphabetical order of the names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// These settings, completed with defaults; sizes are written as plain bytes, so that two
    /// spellings of one value are one value.
    ///
    /// # Errors
    /// A name that is not among the specifications, or a value that its specification forbids.
    pub fn resolve(
        &self,
        engine: &str,
        specifications: &[SettingSpecification],
    ) -> Result<Self, SettingsError> {
        for (name, _) in self.iter() {
            if !specifications.iter().any(|known| known.name == name) {
                return Err(unknown_name(engine, name, specifications));
            }
        }
        let mut resolved = Self::default();
        for specification in specifications {
            let value = self
                .get(specification.name)
                .unwrap_or(specification.default);
            let canonical =
                specification
                    .kind
                    .canonical(value)
                    .ok_or_else(|| SettingsError::BadValue {
                        engine: engine.to_owned(),
                        name: specification.name.to_owned(),
                        value: value.to_owned(),
                        hint: specification.kind.hint(value),
                    })?;
            resolved.set(specification.name, &canonical);
        }
        Ok(resolved)
    }

    /// Those of these settings that differ from the engine's defaults.
    #[must_use]
    pub fn without_defaults(&self, specifications: &[SettingSpecification]) -> Self {
        let is_default = |name: &str, value: &str| {
            specifications
                .iter()
                .filter(|known| known.name == name)
                .any(|known| known.kind.canonical(known.default).as_deref() == Some(value))
        };
        Self::from_pairs(self.iter().filter(|(name, value)| !is_default(name, value)))
    }

    /// Those of these settings that decide how the bytes lie on disk.
    #[must_use]
    pub fn stored(&self, specifications: &[SettingSpecification]) -> Self {
        let is_stored = |name: &str| {
            specifications
                .iter()
                .any(|known| known.stored && known.name == name)
        };
        Self::from_pairs(self.iter().filter(|(name, _)| is_stored(name)))
    }
}

impl fmt::Display for Settings {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (name, value)) in self.iter().enumerate() {
            let separator = if index == 0 { "" } else { " " };
            write!(formatter, "{separator}{name}={value}")?;
        }
        Ok(())
    }
}

fn unknown_name(
    engine: &str,
    name: &str,
    specifications: &[SettingSpecification],
) -> SettingsError {
    let names = specifications.iter().map(|known| known.name);
    let hint = match nearest(name, names.clone()) {
        Some(near) => format!("did you mean `{near}`?"),
        None if specifications.is_empty() => "this engine takes no settings".to_owned(),
        None => format!("it knows {}", names.collect::<Vec<_>>().join(", ")),
    };
    SettingsError::UnknownName {
        engine: engine.to_owned(),
        name: name.to_owned(),
        hint,
    }
}

impl SettingKind {
    /// The one spelling of an allowed value, or `None` if it is not allowed.
    fn canonical(&self, value: &str) -> Option<String> {
        let word = |words: &[&str]| {
            let lower = value.to_ascii_lowercase();
            words.iter().any(|known| *known == lower).then_some(lower)
        };
        match self {
            Self::Choice(words) => word(words),
            Self::ChoiceOrPath(words) => word(words).or_else(|| {
                let is_name = value.strip_prefix('@').is_some_and(is_plain);
                (is_name || value.starts_with('/')).then(|| value.to_owned())
            }),
            Self::CountOr(words) => word(words).or_else(|| {
                let count = value.parse::<u64>().ok().filter(|count| *count > 0)?;
                Some(count.to_string())
            }),
            Self::Bytes {
                minimum,
                maximum,
                words,
            } => word(words).or_else(|| {
                let bytes = parse_bytes(value).ok()?;
                (*minimum..=*maximum)
                    .contains(&bytes)
                    .then(|| bytes.to_string())
            }),
        }
    }

    fn hint(&self, value: &str) -> String {
        let near = |words: &[&'static str]| nearest(value, words.iter().copied());
        match self {
            Self::Choice(words) => match near(words) {
                Some(word) => format!("did you mean `{word}`?"),
                None => format!("it is one of {}", words.join(", ")),
            },
            Self::ChoiceOrPath(words) => match near(words) {
                Some(word) => format!("did you mean `{word}`?"),
                None => format!(
                    "it is one of {}, an absolute path, or `@` and a name",
                    words.join(", ")
                ),
            },
            Self::CountOr(words) => {
                format!("it is a whole number from 1, or {}", words.join(" or "))
            }
            Self::Bytes {
                minimum,
                maximum,
                words,
            } => {
                let alternative = if words.is_empty() {
                    String::new()
                } else {
                    format!(", or {}", words.join(" or "))
                };
                format!("it is a number of bytes from {minimum} to {maximum}{alternative}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPECIFICATIONS: &[SettingSpecification] = &[
        SettingSpecification {
            name: "api",
            kind: SettingKind::Choice(&["select", "blob"]),
            default: "select",
            stored: false,
            about: "",
        },
        SettingSpecification {
            name: "page_size",
            kind: SettingKind::Bytes {
                minimum: 512,
                maximum: 65536,
                words: &[],
            },
            default: "4096",
            stored: true,
            about: "",
        },
    ];

    #[test]
    fn defaults_complete_the_set_and_sizes_have_one_spelling() {
        let given = Settings::from_pairs([("page_size", "4KiB")]);
        let resolved = given.resolve("sqlite", SPECIFICATIONS).expect("valid");
        assert_eq!(resolved.to_string(), "api=select page_size=4096");
        assert_eq!(
            Settings::default().resolve("sqlite", SPECIFICATIONS),
            Ok(resolved)
        );
    }

    #[test]
    fn unknown_names_and_values_name_the_nearest() {
        let name = Settings::from_pairs([("pagesize", "4096")])
            .resolve("sqlite", SPECIFICATIONS)
            .expect_err("unknown");
        assert_eq!(name.hint(), "did you mean `page_size`?");
        let value = Settings::from_pairs([("api", "selct")])
            .resolve("sqlite", SPECIFICATIONS)
            .expect_err("bad");
        assert_eq!(value.hint(), "did you mean `select`?");
        let size = Settings::from_pairs([("page_size", "1M")])
            .resolve("sqlite", SPECIFICATIONS)
            .expect_err("too large");
        assert!(size.hint().contains("65536"));
    }
}
