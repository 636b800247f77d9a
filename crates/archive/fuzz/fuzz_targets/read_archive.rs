//! `cargo +nightly fuzz run read_archive`, in `crates/archive`. The corpus is replayed by
//! `tests/corpus.rs` in every run of the tests, without nightly.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| sqlitmus_archive::exercise(bytes));
