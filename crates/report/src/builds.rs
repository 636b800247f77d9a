//! Which SQLites a run has measured, as each says of itself: version, compile options, and where the
//! library tells it, compiler and optimisation. One is written out, of the others what differs.
//! Shown where a run has libraries that are not built into the program; how it is laid out is the
//! formats' business.

use std::collections::{BTreeMap, BTreeSet};

use sqlitmus_core::environment::said;
use sqlitmus_core::run::{Outcome, Run};

use crate::text::{clean, wrap};

/// The setting that names a library.
const LIBRARY: &str = "library";

/// What stands above them.
pub(crate) const TITLE: &str = "SQLite libraries, as each says of itself";

/// A library of a run.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Build {
    /// As the arms name it.
    pub(crate) library: String,
    /// What it says, or why it was not asked.
    pub(crate) said: Result<Said, String>,
}

/// What a library says of itself.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Said {
    /// Version.
    pub(crate) version: String,
    /// Compile options, in its own order.
    pub(crate) options: Vec<String>,
    /// Compiler and its options, if it knows them.
    pub(crate) built_with: Option<String>,
    /// Against the first library: options that it has and the first has not, and the reverse;
    /// `None` for the first.
    pub(crate) differs: Option<[Vec<String>; 2]>,
}

impl Said {
    /// The options in words: all of them, or what differs from the library of that name.
    pub(crate) fn words(&self, first: &str) -> String {
        let options = match &self.differs {
            None => self.options.join(" "),
            Some([more, fewer]) if more.is_empty() && fewer.is_empty() => {
                format!("the same options as {first}")
            }
            Some([more, fewer]) => {
                let part = |word: &str, options: &[String]| {
                    (!options.is_empty()).then(|| format!("{word} {}", options.join(" ")))
                };
                let parts = [part("with", more), part("without", fewer)];
                let parts: Vec<String> = parts.into_iter().flatten().collect();
                format!("as {first}, {}", parts.join(", "))
            }
        };
        match &self.built_with {
            Some(built_with) => format!("{options}; {built_with}"),
            None => options,
        }
    }
}

/// The libraries of a run, in the order of its arms; none if all of them are built in.
pub(crate) fn builds(run: &Run) -> Vec<Build> {
    let library = |arm: &str| {
        let (_, arm) = run.plan.arm(arm)?;
        arm.case.settings.get(LIBRARY)
    };
    let mut names: Vec<&str> = Vec::new();
    for (_, arm) in run.plan.arms() {
        if let Some(name) = arm.case.settings.get(LIBRARY)
            && !names.contains(&name)
        {
            names.push(name);
        }
    }
    let is_built_in = |name: &&str| !name.starts_with(['@', '/']);
    if names.iter().all(is_built_in) {
        return Vec::new();
    }
    let mut told: BTreeMap<&str, &BTreeMap<String, String>> = BTreeMap::new();
    let mut reasons: BTreeMap<&str, &str> = BTreeMap::new();
    for trial in &run.trials {
        let Some(name) = library(&trial.arm) else {
            continue;
        };
        if trial.read_back.contains_key(said::COMPILE_OPTIONS) {
            told.entry(name).or_insert(&trial.read_back);
        }
        if let Outcome::Skipped(reason) | Outcome::Failed(reason) = &trial.outcome {
            reasons.entry(name).or_insert(reason);
        }
    }
    let mut first: Option<BTreeSet<String>> = None;
    let mut of = |name: &str| match told.get(name) {
        Some(told) => Ok(say(told, &mut first)),
        None => {
            let reason = reasons.get(name).copied();
            Err(clean(reason.unwrap_or("not measured")))
        }
    };
    names
        .into_iter()
        .map(|name| Build {
            library: clean(name),
            said: of(name),
        })
        .collect()
}

fn say(told: &BTreeMap<String, String>, first: &mut Option<BTreeSet<String>>) -> Said {
    let value = |name: &str| told.get(name).map(|value| clean(value));
    let options: Vec<String> = value(said::COMPILE_OPTIONS)
        .unwrap_or_default()
        .split_whitespace()
        .map(str::to_owned)
        .collect();
    let own: BTreeSet<String> = options.iter().cloned().collect();
    let differs = first.as_ref().map(|first| {
        let of = |one: &BTreeSet<String>, other: &BTreeSet<String>| {
            one.difference(other).cloned().collect::<Vec<_>>()
        };
        [of(&own, first), of(first, &own)]
    });
    first.get_or_insert(own);
    Said {
        version: value(said::SQLITE_VERSION).unwrap_or_default(),
        options,
        built_with: value(said::BUILD),
        differs,
    }
}

/// What the others are held against: the first that said something.
pub(crate) fn first(builds: &[Build]) -> &str {
    let told = builds.iter().find(|build| build.said.is_ok());
    told.map_or("", |build| build.library.as_str())
}

/// As a paragraph for a terminal, no line wider than `columns`; none if there is nothing to say.
pub(crate) fn paragraph(run: &Run, columns: usize) -> Option<Vec<String>> {
    let builds = builds(run);
    if builds.is_empty() {
        return None;
    }
    let first = first(&builds);
    let mut lines = vec![TITLE.to_owned()];
    for build in &builds {
        let words = match &build.said {
            Ok(said) => format!("{} {}: {}", build.library, said.version, said.words(first)),
            Err(reason) => format!("{}: not asked: {reason}", build.library),
        };
        for (number, text) in wrap(&words, columns.saturating_sub(4)).iter().enumerate() {
            let margin = if number == 0 { "  " } else { "    " };
            lines.push(format!("{margin}{text}"));
        }
    }
    Some(lines)
}
