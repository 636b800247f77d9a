//! Runs the conformance suite for every engine with every interesting set of settings. (More of
//! SQLite's are in `sqlite_conformance.rs`.)

use sqlitmus_core::settings::Settings;
use sqlitmus_engines::{conformance, find};

/// All combinations of values, one taken from each of the named lists.
fn combinations(lists: &[(&'static str, &[&'static str])]) -> Vec<Settings> {
    let mut all = vec![Settings::default()];
    for (name, values) in lists {
        all = all
            .iter()
            .flat_map(|settings| {
                values.iter().map(|value| {
                    let mut extended = settings.clone();
                    extended.set(name, value);
                    extended
                })
            })
            .collect();
    }
    all
}

fn check(engine: &str, settings: impl IntoIterator<Item = Settings>) {
    let engine = find(engine).expect("the engine exists");
    for settings in settings {
        let place = tempfile::tempdir().expect("a scratch directory");
        conformance::check(engine, &settings, place.path());
    }
}

#[test]
fn null() {
    check("null", [Settings::default()]);
}

#[test]
fn memory() {
    check("memory", combinations(&[("copy", &["yes", "no"])]));
}

#[test]
fn packfile() {
    let settings = combinations(&[
        ("read", &["pread", "mmap"]),
        ("sync", &["none", "fdatasync"]),
    ]);
    check("packfile", settings);
}

/// The ways of reading, each with all ways of writing; nothing is synchronised.
fn unsynchronised_files(layout: &'static str) -> Vec<Settings> {
    combinations(&[
        ("layout", &[layout]),
        ("api", &["stdio", "open", "openat", "mmap"]),
        ("write", &["truncate", "in-place", "rename"]),
    ])
}

/// All ways of writing, synchronised.
fn synchronised_files(
    layout: &'static str,
    api: &'static str,
    sync: &'static str,
) -> Vec<Settings> {
    combinations(&[
        ("layout", &[layout]),
        ("api", &[api]),
        ("write", &["truncate", "in-place", "rename"]),
        ("sync", &[sync]),
    ])
}

#[test]
fn files_in_one_directory() {
    check("files", unsynchronised_files("flat"));
}

#[test]
fn files_in_one_directory_synchronised() {
    check("files", synchronised_files("flat", "stdio", "fsync"));
    check("files", synchronised_files("flat", "openat", "fsync+dir"));
}

#[test]
fn files_in_a_tree() {
    check("files", unsynchronised_files("tree"));
}

#[test]
fn files_in_a_tree_synchronised() {
    check("files", synchronised_files("tree", "stdio", "fsync+dir"));
}

#[test]
fn sqlite_as_kvtest_and_by_the_best_means() {
    let settings = combinations(&[
        ("api", &["select", "blob"]),
        ("page_size", &["1024", "4096", "65536"]),
        ("mmap", &["0", "all"]),
    ]);
    check("sqlite", settings);
}

#[test]
fn sqlite_journal_modes() {
    let modes: &[&str] = &["delete", "truncate", "persist", "wal", "memory", "off"];
    let settings = combinations(&[
        ("journal_mode", modes),
        ("layout", &["rowid", "without-rowid", "name"]),
        // With a rollback journal a held read transaction keeps others from committing.
        ("read_transaction", &["each"]),
    ]);
    check("sqlite", settings);
}

/// Both engines that keep contents in files.
fn external_and_hybrid(lists: &[(&'static str, &[&'static str])]) {
    check("external", combinations(lists));
    let mut of_hybrid = lists.to_vec();
    of_hybrid.push(("inline_limit", &["10000"]));
    check("hybrid", combinations(&of_hybrid));
}

#[test]
fn external_and_hybrid_in_one_directory() {
    external_and_hybrid(&[
        ("api", &["openat", "mmap"]),
        ("read_transaction", &["held", "each"]),
    ]);
    let limits = [("inline_limit", &["1", "1000000"][..])];
    check("hybrid", combinations(&limits));
}

#[test]
fn external_and_hybrid_in_a_tree() {
    external_and_hybrid(&[("layout", &["tree"]), ("transaction", &["all", "2"])]);
}

#[test]
fn external_and_hybrid_synchronised() {
    external_and_hybrid(&[("sync", &["fsync+dir"]), ("layout", &["tree"])]);
    let full = [("sync", &["fsync+dir"][..]), ("synchronous", &["full"])];
    check("external", combinations(&full));
}

#[test]
fn external_and_hybrid_with_single_transactions_and_a_rollback_journal() {
    external_and_hybrid(&[
        ("transaction", &["one"]),
        ("journal_mode", &["wal", "delete"]),
        ("read_transaction", &["each"]),
    ]);
    external_and_hybrid(&[("checkpoint", &["included"])]);
}
