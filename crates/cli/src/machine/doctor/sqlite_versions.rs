//! The SQLite libraries of this machine, and bugs of their versions that are known to lose data.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde::Serialize;
use sqlitmus_engines::sqlite::{Library, LibraryChoice};

use super::{Check, Judgement, Level};

/// The check.
pub const CHECK: Check = Check {
    name: "SQLite",
    why: "Speed is worth nothing where committed data can be lost; and the library that programs here \
          use is seldom the one that was measured.",
};

/// How long another program may take to tell its version.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// Three numbers, as in `3.51.3`.
pub type Version = [u32; 3];

/// A bug that is known, and the versions that have it.
#[derive(Debug)]
pub struct KnownBug {
    /// What it is called.
    pub name: &'static str,
    /// What it does.
    pub effect: &'static str,
    /// The first version that has it.
    pub first: Version,
    /// The first version that does not have it any more.
    pub fixed: Version,
    /// Versions of older branches from which on it is fixed there too.
    pub fixed_in_branches: &'static [Version],
    /// How much it matters.
    pub level: Level,
    /// Where it is described.
    pub source: &'static str,
}

/// Bugs that matter to data that is kept in SQLite; far from all that were ever fixed.
pub const KNOWN_BUGS: &[KnownBug] = &[
    KnownBug {
        name: "WAL-reset bug",
        effect: "in WAL mode two connections that write or checkpoint at the same moment can, rarely, corrupt the database",
        first: [3, 7, 0],
        fixed: [3, 51, 3],
        fixed_in_branches: &[[3, 44, 6], [3, 50, 7]],
        level: Level::Warning,
        source: "https://sqlite.org/wal.html#walresetbug",
    },
    KnownBug {
        name: "CVE-2025-6965",
        effect: "SQL with more aggregate terms than columns can corrupt memory",
        first: [3, 0, 0],
        fixed: [3, 50, 2],
        fixed_in_branches: &[],
        level: Level::Note,
        source: "https://nvd.nist.gov/vuln/detail/CVE-2025-6965",
    },
    KnownBug {
        name: "CVE-2022-35737",
        effect: "strings of billions of bytes can overflow an array",
        first: [1, 0, 12],
        fixed: [3, 39, 2],
        fixed_in_branches: &[],
        level: Level::Note,
        source: "https://nvd.nist.gov/vuln/detail/CVE-2022-35737",
    },
];

impl KnownBug {
    /// Whether a version has it. Distributions may have mended it without changing the version.
    #[must_use]
    pub fn affects(&self, version: Version) -> bool {
        let is_fixed_in_branch = self
            .fixed_in_branches
            .iter()
            .any(|fixed| version[..2] == fixed[..2] && version >= *fixed);
        version >= self.first && version < self.fixed && !is_fixed_in_branch
    }
}

/// A library of this machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FoundLibrary {
    /// `bundled`, `system` or `python3`.
    pub whose: &'static str,
    /// Its version.
    pub version: String,
}

/// The libraries that were found.
#[derive(Clone, Debug, Serialize)]
pub struct SqliteVersions {
    /// Ours first.
    pub libraries: Vec<FoundLibrary>,
}

impl SqliteVersions {
    /// Looks for them.
    #[must_use]
    pub fn read() -> Self {
        let loaded = |whose, choice: LibraryChoice| {
            let library = Library::load(&choice).ok()?;
            Some(FoundLibrary {
                whose,
                version: library.version(),
            })
        };
        let python = python_version().map(|version| FoundLibrary {
            whose: "python3",
            version,
        });
        Self {
            libraries: [
                loaded("bundled", LibraryChoice::Bundled),
                loaded("system", LibraryChoice::System),
                python,
            ]
            .into_iter()
            .flatten()
            .collect(),
        }
    }

    /// What follows.
    #[must_use]
    pub fn judge(&self) -> Judgement {
        let versions: Vec<String> = self
            .libraries
            .iter()
            .map(|library| format!("{} {}", library.whose, library.version))
            .collect();
        let mut judgement = Judgement::ok(versions.join(", "));
        for bug in KNOWN_BUGS {
            let whose: Vec<&str> = self
                .libraries
                .iter()
                .filter(|library| {
                    parsed(&library.version).is_some_and(|version| bug.affects(version))
                })
                .map(|library| library.whose)
                .collect();
            if whose.is_empty() {
                continue;
            }
            let [major, minor, patch] = bug.fixed;
            judgement = judgement.and(
                bug.level,
                &format!("{} ({}): {}", bug.name, whose.join(", "), bug.effect),
                &format!(
                    "{}: use {major}.{minor}.{patch} or later, or a version that your distribution has mended; {}",
                    bug.name, bug.source
                ),
            );
        }
        judgement
    }
}

/// The numbers of a version; `None` if it is written in another way.
#[must_use]
pub fn parsed(version: &str) -> Option<Version> {
    let mut numbers = version.split('.').map(str::parse);
    let mut next = || numbers.next()?.ok();
    Some([next()?, next()?, next().unwrap_or(0)])
}

/// The version that the first `python3` on the path uses; `None` if there is none, or no answer.
fn python_version() -> Option<String> {
    let mut python = Command::new("python3")
        // Isolated: nothing of the current directory or the environment is run.
        .args(["-I", "-c", "import sqlite3; print(sqlite3.sqlite_version)"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let start = Instant::now();
    loop {
        match python.try_wait() {
            Ok(Some(_)) => break,
            Ok(None) if start.elapsed() < ANSWER_TIMEOUT => {
                std::thread::sleep(Duration::from_millis(5));
            }
            _ => {
                // It may have ended by itself meanwhile.
                let _ = python.kill();
                let _ = python.wait();
                return None;
            }
        }
    }
    let output = python.wait_with_output().ok()?;
    let version = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    parsed(&version).map(|_| version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixes_of_older_branches_count() {
        let bug = &KNOWN_BUGS[0];
        let affected = |version| bug.affects(parsed(version).expect("a version"));
        for version in ["3.7.0", "3.40.1", "3.44.5", "3.50.4", "3.51.2", "3.45.0"] {
            assert!(affected(version), "{version}");
        }
        for version in ["3.6.23", "3.44.6", "3.50.7", "3.51.3", "3.54.1"] {
            assert!(!affected(version), "{version}");
        }
    }

    #[test]
    fn every_bug_has_a_range_and_a_source() {
        for bug in KNOWN_BUGS {
            assert!(bug.first < bug.fixed, "{}", bug.name);
            assert!(bug.source.starts_with("https://"), "{}", bug.name);
            assert!(
                bug.affects(bug.first) && !bug.affects(bug.fixed),
                "{}",
                bug.name
            );
        }
    }

    #[test]
    fn a_library_with_a_bug_is_named() {
        let versions = SqliteVersions {
            libraries: vec![
                FoundLibrary {
                    whose: "bundled",
                    version: "3.54.1".to_owned(),
                },
                FoundLibrary {
                    whose: "system",
                    version: "3.40.1".to_owned(),
                },
            ],
        };
        let judgement = versions.judge();
        assert_eq!(judgement.level, Level::Warning);
        assert!(
            judgement.finding.contains("WAL-reset bug (system)"),
            "{}",
            judgement.finding
        );
        assert!(judgement.advice.contains("3.51.3"), "{}", judgement.advice);
    }

    #[test]
    fn our_own_library_has_none_of_these_bugs() {
        let found = SqliteVersions::read();
        let own = found
            .libraries
            .iter()
            .find(|library| library.whose == "bundled");
        let version = parsed(&own.expect("it is built in").version).expect("a version");
        assert!(KNOWN_BUGS.iter().all(|bug| !bug.affects(version)));
    }

    #[test]
    fn versions_are_read() {
        assert_eq!(parsed("3.54.1"), Some([3, 54, 1]));
        assert_eq!(parsed("3.7"), Some([3, 7, 0]));
        assert_eq!(parsed("three"), None);
    }
}
