//! Which SQLite is really linked in: the options that `.cargo/config.toml` asks for are in force
//! in the bundled library, and none of them in its twin without options.

use std::collections::BTreeSet;

use sqlitmus_engines::sqlite::{Library, LibraryChoice, Threading};

fn options(choice: &LibraryChoice) -> BTreeSet<String> {
    let library = Library::load(choice).expect("linked");
    library.compile_options().into_iter().collect()
}

#[test]
fn bundled_library_has_the_recommended_options() {
    let options = options(&LibraryChoice::Bundled);
    for wanted in [
        "THREADSAFE=2",
        "DEFAULT_MEMSTATUS=0",
        "MAX_MMAP_SIZE=1099511627776",
        "USE_ALLOCA",
        "LIKE_DOESNT_MATCH_BLOBS",
        "MAX_EXPR_DEPTH=0",
        "DQS=0",
        "DIRECT_OVERFLOW_READ",
    ] {
        assert!(options.contains(wanted), "{wanted} is not in {options:?}");
    }
    for unwanted in ["ENABLE_API_ARMOR", "ENABLE_MEMORY_MANAGEMENT", "DEBUG"] {
        assert!(!options.contains(unwanted), "{unwanted} is in {options:?}");
    }
    let library = Library::load(&LibraryChoice::Bundled).expect("linked");
    assert_eq!(library.threading(), Threading::Multi);
}

#[test]
fn twin_has_no_options_of_ours_and_the_same_source() {
    let twin = Library::load(&LibraryChoice::DefaultOptions).expect("linked");
    let bundled = Library::load(&LibraryChoice::Bundled).expect("linked");
    assert_eq!(twin.version(), bundled.version());
    assert_eq!(twin.source_id(), bundled.source_id());
    assert_eq!(twin.threading(), Threading::Serialized);

    let options = options(&LibraryChoice::DefaultOptions);
    // SQLite's own limit, 2 GiB less 64 KiB.
    for wanted in ["THREADSAFE=1", "MAX_MMAP_SIZE=0x7fff0000"] {
        assert!(options.contains(wanted), "{wanted} is not in {options:?}");
    }
    for ours in [
        "DEFAULT_MEMSTATUS",
        "USE_ALLOCA",
        "ENABLE_",
        "DQS",
        "MAX_EXPR_DEPTH=0",
    ] {
        assert!(
            !options.iter().any(|option| option.starts_with(ours)),
            "{ours} is in {options:?}"
        );
    }
}
