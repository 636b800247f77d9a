//! Runs the conformance suite for the `sqlite` engine with every interesting set of settings.
//!
//! Rollback journals are tried with `read_transaction = each`: a reader that holds its transaction
//! keeps others from committing there, by SQLite's design, and the suite's reader never ends.

#![expect(clippy::print_stderr, reason = "a test that skips says why")]

use sqlitmus_core::settings::Settings;
use sqlitmus_engines::conformance;
use sqlitmus_engines::sqlite::{Library, LibraryChoice, LibraryError, Sqlite};

fn check(pairs: &[(&str, &str)]) {
    let place = tempfile::tempdir().expect("a scratch directory");
    let settings = Settings::from_pairs(pairs.iter().copied());
    conformance::check(&Sqlite, &settings, place.path());
}

#[test]
fn defaults() {
    check(&[]);
}

#[test]
fn layouts_and_ways_of_reading() {
    for (api, layout) in [
        ("select", "rowid"),
        ("select", "without-rowid"),
        ("select", "name"),
        ("select", "with-metadata"),
        ("select", "separate"),
        ("select", "sqlar"),
        ("blob", "rowid"),
        ("blob", "name"),
        ("blob", "with-metadata"),
        ("blob", "separate"),
        ("blob", "sqlar"),
    ] {
        for read_transaction in ["held", "each"] {
            check(&[
                ("api", api),
                ("layout", layout),
                ("read_transaction", read_transaction),
                ("mmap", "all"),
            ]);
        }
    }
}

#[test]
fn chunks_and_names_in_memory() {
    for api in ["select", "blob"] {
        for (mmap, chunk_bytes) in [("0", "1024"), ("all", "10000"), ("0", "65536")] {
            check(&[
                ("api", api),
                ("layout", "chunked"),
                ("chunk_bytes", chunk_bytes),
                ("mmap", mmap),
            ]);
        }
        for layout in ["name", "sqlar"] {
            for read_transaction in ["held", "each"] {
                check(&[
                    ("api", api),
                    ("layout", layout),
                    ("catalogue", "memory"),
                    ("read_transaction", read_transaction),
                ]);
            }
        }
    }
}

#[test]
fn layouts_by_single_transactions_and_without_mapping() {
    for layout in ["with-metadata", "separate", "chunked", "sqlar"] {
        for transaction in ["one", "2"] {
            check(&[("layout", layout), ("transaction", transaction)]);
        }
        check(&[
            ("layout", layout),
            ("prepare", "each"),
            ("page_size", "16384"),
        ]);
    }
}

#[test]
fn journal_modes() {
    for journal_mode in ["delete", "truncate", "persist", "memory", "off"] {
        for api in ["select", "blob"] {
            check(&[
                ("journal_mode", journal_mode),
                ("read_transaction", "each"),
                ("api", api),
            ]);
        }
    }
}

#[test]
fn transactions_and_checkpoints() {
    for transaction in ["one", "2", "1000"] {
        for api in ["select", "blob"] {
            check(&[
                ("transaction", transaction),
                ("checkpoint", "included"),
                ("api", api),
            ]);
        }
    }
}

#[test]
fn synchronous_and_sizes() {
    for (synchronous, page_size) in [("off", "512"), ("full", "8192"), ("extra", "65536")] {
        check(&[
            ("synchronous", synchronous),
            ("page_size", page_size),
            ("cache", "65536"),
        ]);
    }
}

#[test]
fn default_options() {
    for api in ["select", "blob"] {
        check(&[("library", "default-options"), ("api", api)]);
    }
}

#[test]
fn system_library() {
    match Library::load(&LibraryChoice::System) {
        Ok(_) => check(&[("library", "system")]),
        Err(LibraryError::Missing(reason)) => eprintln!("skipped: {reason}"),
        Err(error) => panic!("{error}"),
    }
}
