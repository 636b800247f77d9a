//! Memory statistics are switched for the whole process, before anything uses the library: hence
//! a test program of its own.

use sqlitmus_core::settings::Settings;
use sqlitmus_engines::sqlite::Sqlite;
use sqlitmus_engines::{Engine, EngineError};

#[test]
fn memory_statistics_are_switched_once_for_the_process() {
    let scratch = tempfile::tempdir().expect("scratch");
    let with = |library, statistics| {
        Settings::from_pairs([("library", library), ("memory_statistics", statistics)])
    };
    // The bundled library is compiled with them off, its twin with them on.
    for (library, statistics) in [("bundled", "on"), ("default-options", "off")] {
        let settings = with(library, statistics);
        Sqlite.set_up_process(&settings).expect("in time");
        let engine = Sqlite.rows().expect("rows");
        let path = scratch.path().join(library);
        let store = engine.create(&path, &settings).expect("creates");
        let back = store
            .session()
            .expect("opens")
            .read_back()
            .expect("is in force");
        assert_eq!(back["memory_statistics_kept"], statistics);
        Sqlite.set_up_process(&settings).expect("the same again");

        let other = if statistics == "on" { "off" } else { "on" };
        let late = Sqlite.set_up_process(&with(library, other));
        assert!(matches!(late, Err(EngineError::Settings(_))), "too late");
        let session = engine
            .open(&path, &with(library, other))
            .expect("opens")
            .session();
        let refused = session
            .expect("opens")
            .read_back()
            .expect_err("not in force");
        assert!(
            matches!(refused, EngineError::NotInForce { .. }),
            "{refused}"
        );
    }
}
