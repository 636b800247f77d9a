//! Suites that are built into the program, and suites in files.

use std::path::Path;

use sqlitmus_core::names::nearest;
use sqlitmus_core::suite::Suite;

use crate::failure::Failure;

/// Name of the suite that is measured when none is named.
pub const CANONICAL: &str = "article";

/// Texts of the embedded suites.
const TEXTS: &[(&str, &str)] = &[
    ("article", include_str!("../../../suites/article.toml")),
    (
        "blob-matrix",
        include_str!("../../../suites/blob-matrix.toml"),
    ),
    (
        "archive-reads",
        include_str!("../../../suites/archive-reads.toml"),
    ),
    ("cold", include_str!("../../../suites/cold.toml")),
    ("explain", include_str!("../../../suites/explain.toml")),
    ("oltp", include_str!("../../../suites/oltp.toml")),
    (
        "mixed-load",
        include_str!("../../../suites/mixed-load.toml"),
    ),
    ("scaling", include_str!("../../../suites/scaling.toml")),
    ("job-queue", include_str!("../../../suites/job-queue.toml")),
    ("builds", include_str!("../../../suites/builds.toml")),
    ("writers", include_str!("../../../suites/writers.toml")),
    ("scanners", include_str!("../../../suites/scanners.toml")),
    (
        "file-index",
        include_str!("../../../suites/file-index.toml"),
    ),
    ("disks", include_str!("../../../suites/disks.toml")),
    ("lifecycle", include_str!("../../../suites/lifecycle.toml")),
];

/// The suites built into this program.
///
/// # Panics
/// If one is damaged, which a test rules out.
#[must_use]
pub fn embedded() -> Vec<Suite> {
    TEXTS
        .iter()
        .map(|(name, text)| {
            Suite::parse(text, name).unwrap_or_else(|error| panic!("embedded {error}"))
        })
        .collect()
}

/// The suite of that name, or in that file: a file's name ends in `.toml` or contains a `/`.
///
/// # Errors
/// No such suite, an unreadable file, or one that is not a suite.
pub fn find(name_or_path: &str) -> Result<Suite, Failure> {
    let is_path = name_or_path.contains('/') || name_or_path.ends_with(".toml");
    if is_path {
        return read(Path::new(name_or_path));
    }
    let suites = embedded();
    let names: Vec<String> = suites.iter().map(|suite| suite.name.clone()).collect();
    let found = suites.into_iter().find(|suite| suite.name == name_or_path);
    found.ok_or_else(|| {
        let hint = match nearest(name_or_path, names.iter().map(String::as_str)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "`sqlitmus list` shows all suites; a file is named by its path".to_owned(),
        };
        Failure::bad_input(format!("there is no suite `{name_or_path}`"), hint)
    })
}

fn read(path: &Path) -> Result<Suite, Failure> {
    let text = std::fs::read_to_string(path).map_err(|error| {
        Failure::bad_input(
            format!("cannot read the suite {}: {error}", path.display()),
            "`sqlitmus list` shows the suites that are built in",
        )
    })?;
    Suite::parse(&text, &path.display().to_string())
        .map_err(|error| Failure::bad_input(error.to_string(), error.hint))
}
