//! Compiles the second copy of SQLite that `library = default-options` measures: the same
//! `sqlite3.c` that libsqlite3-sys bundles, without a single `SQLITE_` option, at `-O2`.
//!
//! The first copy, with our options, is libsqlite3-sys's own business (`.cargo/config.toml`).
//! No source of SQLite is kept in this repository: libsqlite3-sys tells where its copy lies.

use std::env;
use std::path::PathBuf;

const WRAPPER: &str = "src/sqlite/default_options.c";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={WRAPPER}");
    println!("cargo::rerun-if-env-changed=DEP_SQLITE3_INCLUDE");
    let source = env::var_os("DEP_SQLITE3_INCLUDE")
        .map(PathBuf::from)
        .filter(|directory| directory.join("sqlite3.c").is_file());
    let Some(source) = source else {
        panic!(
            "libsqlite3-sys did not say where its sqlite3.c is. Unset \
             LIBSQLITE3_SYS_USE_PKG_CONFIG: both copies of SQLite that are compared must come \
             from the same source."
        );
    };
    println!(
        "cargo::rerun-if-changed={}",
        source.join("sqlite3.c").display()
    );
    cc::Build::new()
        .file(WRAPPER)
        .include(source)
        // In every profile: a debug build of sqlitmus must not make this SQLite look bad.
        .opt_level(2)
        .debug(false)
        .warnings(false)
        .flag_if_supported("-w")
        .compile("sqlitmus_sqlite_default_options");
}
