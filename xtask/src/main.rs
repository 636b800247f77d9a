//! `cargo xtask`: what CI runs, as one command that runs the same everywhere.
//!
//! `cargo xtask check` is formatting, lints, documentation, licences, a smoke run of the
//! main job, and all tests. What is measured and how is none of its business. `cargo xtask self-test`
//! holds the program against differences that are known; it takes hours and is no part of CI.
//! `cargo xtask workers` builds the SQLites of the suite `builds`.

mod self_test;
mod workers;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, bail};

/// Licences that a dependency may have; each is compatible with MIT OR Apache-2.0.
const LICENCES: &[&str] = &[
    "MIT",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
    "0BSD",
    "CC0-1.0",
    "MIT-0",
    "BSL-1.0",
];

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let result = match words.as_slice() {
        ["check"] => check(),
        ["licences"] => licences(),
        ["smoke"] => smoke(),
        ["self-test", words @ ..] => self_test::run(words),
        ["workers", words @ ..] => workers::run(words),
        [self_test::LOAD, parent, seed] => self_test::load(parent, seed),
        _ => Err(anyhow::anyhow!(
            "usage: cargo xtask check | licences | smoke | workers [NAME...] | {}",
            self_test::USAGE
        )),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn check() -> anyhow::Result<()> {
    cargo(&["fmt", "--all", "--check"], &[])?;
    cargo(
        &[
            "clippy",
            "--workspace",
            "--all-targets",
            "--",
            "--deny",
            "warnings",
        ],
        &[],
    )?;
    cargo(
        &[
            "doc",
            "--workspace",
            "--no-deps",
            "--document-private-items",
        ],
        &[("RUSTDOCFLAGS", "--deny warnings")],
    )?;
    licences()?;
    smoke()?;
    // Tests of the harness run a worker that misbehaves, which is an example; those of the scan trace a
    // program that only scans.
    cargo(
        &[
            "build",
            "--package",
            "sqlitmus",
            "--package",
            "sqlitmus-trees",
            "--examples",
        ],
        &[],
    )?;
    cargo(&["test", "--workspace", "--tests"], &[])
}

/// Fails when a dependency has a licence that is not on the list.
fn licences() -> anyhow::Result<()> {
    let output = Command::new(cargo_program())
        .args([
            "tree",
            "--workspace",
            "--edges",
            "normal,build",
            "--prefix",
            "none",
        ])
        .args(["--format", "{p}\t{l}"])
        .output()
        .context("cannot run cargo tree")?;
    if !output.status.success() {
        bail!(
            "cargo tree failed: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    let listing = String::from_utf8(output.stdout).context("cargo tree is not UTF-8")?;
    for line in listing.lines().filter(|line| !line.is_empty()) {
        let (package, licence) = line.split_once('\t').unwrap_or((line, ""));
        let licence = licence.trim_end_matches(" (*)").trim();
        if !allowed(licence) {
            bail!("{package} has the licence `{licence}`, which is not on the list");
        }
    }
    Ok(())
}

/// Whether at least one alternative of a licence expression is wholly on the list.
fn allowed(expression: &str) -> bool {
    let flat = expression.replace(['(', ')'], "").replace('/', " OR ");
    flat.split(" OR ").any(|alternative| {
        alternative
            .split(" AND ")
            .all(|licence| LICENCES.contains(&licence.trim()))
    })
}

/// Runs the main job at its smallest scale in a place of its own.
fn smoke() -> anyhow::Result<()> {
    let place = std::env::temp_dir().join(format!("sqlitmus-smoke-{}", std::process::id()));
    std::fs::create_dir(&place).with_context(|| format!("cannot create {}", place.display()))?;
    let result = smoke_in(&place);
    std::fs::remove_dir_all(&place)
        .with_context(|| format!("cannot remove {}", place.display()))?;
    result
}

fn smoke_in(place: &Path) -> anyhow::Result<()> {
    let place = place.display().to_string();
    let run = |words: &[&str]| {
        cargo(
            &[&["run", "--quiet", "--package", "sqlitmus", "--"], words].concat(),
            &[],
        )
    };
    run(&["measure", "--scale", "smoke", "--place", &place])?;
    run(&["report", "latest", "--place", &place])?;
    run(&["clean", "--runs", "--place", &place])
}

fn cargo(arguments: &[&str], environment: &[(&str, &str)]) -> anyhow::Result<()> {
    complain(&format!("cargo {}", arguments.join(" ")));
    let status = Command::new(cargo_program())
        .args(arguments)
        .envs(environment.iter().copied())
        .status()
        .context("cannot run cargo")?;
    if !status.success() {
        bail!("cargo {} failed: {status}", arguments.join(" "));
    }
    Ok(())
}

fn cargo_program() -> PathBuf {
    std::env::var_os("CARGO").map_or_else(|| PathBuf::from("cargo"), PathBuf::from)
}

/// A line on standard error, where nobody is left to be told if that is closed.
fn complain(line: &str) {
    let _ = std::io::Write::write_all(&mut std::io::stderr(), format!("{line}\n").as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_licence_is_allowed_if_one_alternative_is() {
        assert!(allowed("MIT OR GPL-3.0"));
        assert!(allowed("MIT/Apache-2.0"));
        assert!(allowed("(MIT OR Apache-2.0) AND Unicode-3.0"));
        assert!(!allowed("GPL-3.0"));
        assert!(!allowed(""));
    }
}
