//! The ways of writing that are put to the test: all of SQLite's journal modes with all levels of
//! synchronous, files in every way they are overwritten and synchronised, the packfile, files that a
//! database names, every other engine as it is by default, and one that lies.
//!
//! What each claims is asked of its engine. What its documentation promises about the *state* of a
//! store after a crash stands here, with its source.

use sqlitmus_core::case::Durability;
use sqlitmus_core::durability::Configuration;
use sqlitmus_core::settings::Settings;
use sqlitmus_engines::Engine;

/// Name of the configuration that lies: it acknowledges before it writes. It is always run.
pub const CONTROL: &str = "control: a liar";

/// `PRAGMA journal_mode`.
const JOURNAL_MODES: [&str; 6] = ["delete", "truncate", "persist", "wal", "memory", "off"];

/// `PRAGMA synchronous`.
const SYNCHRONOUS: [&str; 4] = ["off", "normal", "full", "extra"];

/// All of them, the control last.
#[must_use]
pub fn all() -> Vec<Configuration> {
    let mut all = Vec::new();
    for journal_mode in JOURNAL_MODES {
        for synchronous in SYNCHRONOUS {
            all.push(sqlite(journal_mode, synchronous));
        }
    }
    for write in ["truncate", "in-place", "rename"] {
        for sync in ["none", "fsync", "fsync+dir"] {
            all.push(files(write, sync));
        }
    }
    for sync in ["none", "fdatasync"] {
        all.push(packfile(sync));
    }
    for (engine, journal_mode, synchronous, sync) in [
        ("external", "wal", "normal", "none"),
        ("external", "wal", "normal", "fsync+dir"),
        ("external", "wal", "full", "fsync+dir"),
        ("external", "delete", "full", "fsync+dir"),
        ("hybrid", "wal", "normal", "fsync+dir"),
        ("hybrid", "wal", "full", "fsync+dir"),
    ] {
        all.push(external(engine, journal_mode, synchronous, sync));
    }
    for engine in sqlitmus_engines::all() {
        if !all.iter().any(|known| known.engine == engine.name()) {
            all.extend(as_it_is(*engine));
        }
    }
    let mut control = sqlite("wal", "full");
    CONTROL.clone_into(&mut control.name);
    control.is_control = true;
    all.push(control);
    all
}

/// As the engine itself claims it.
fn configuration(
    name: String,
    engine: &str,
    pairs: &[(&str, &str)],
    intact_after: Durability,
    transactional: bool,
) -> Configuration {
    let settings = Settings::from_pairs(pairs.iter().copied());
    let claimed = sqlitmus_engines::find(engine)
        .map_or(Durability::None, |engine| engine.durability(&settings));
    Configuration {
        name,
        engine: engine.to_owned(),
        settings,
        claimed,
        intact_after,
        transactional,
        is_control: false,
    }
}

/// What SQLite's documentation says of the state of a database:
///
/// - `PRAGMA journal_mode`: with `off` and `memory`, if the application crashes in the middle of a
///   transaction "the database file will very likely go corrupt".
/// - `PRAGMA synchronous`: with `off` "the database might become corrupted if the operating system
///   crashes or the computer loses power"; with `normal` in a rollback mode there is a "very small
///   (though non-zero) chance" of it on an older filesystem, so that nothing is promised; "WAL mode
///   is safe from corruption with synchronous=NORMAL".
fn sqlite(journal_mode: &str, synchronous: &str) -> Configuration {
    let intact_after = match (journal_mode, synchronous) {
        ("memory" | "off", _) => Durability::None,
        (_, "off") => Durability::ProcessCrash,
        ("wal", _) | (_, "full" | "extra") => Durability::PowerLoss,
        _ => Durability::ProcessCrash,
    };
    configuration(
        format!("sqlite {journal_mode} {synchronous}"),
        "sqlite",
        &[
            ("journal_mode", journal_mode),
            ("synchronous", synchronous),
            ("transaction", "all"),
        ],
        intact_after,
        true,
    )
}

/// A file that is emptied or overwritten is for a moment neither old nor new, whoever dies in that
/// moment; one that is renamed over the old is not (rename(2)), but what it holds after a loss of
/// power is promised only if it was synchronised before (fsync(2)). No two files are written as one.
fn files(write: &str, sync: &str) -> Configuration {
    let intact_after = match (write, sync) {
        ("rename", "none") => Durability::ProcessCrash,
        ("rename", _) => Durability::PowerLoss,
        _ => Durability::None,
    };
    let settings = [("write", write), ("sync", sync), ("api", "openat")];
    configuration(
        format!("files {write} {sync}"),
        "files",
        &settings,
        intact_after,
        false,
    )
}

/// By our own design (`sqlitmus_engines::packfile`) half a batch is never seen.
fn packfile(sync: &str) -> Configuration {
    let intact_after = match sync {
        "none" => Durability::ProcessCrash,
        _ => Durability::PowerLoss,
    };
    let name = format!("packfile {sync}");
    configuration(name, "packfile", &[("sync", sync)], intact_after, true)
}

/// By our own design (`sqlitmus_engines::external`) a row never names a file that is not there,
/// whole: after a loss of power only if files are synchronised before their rows.
fn external(engine: &str, journal_mode: &str, synchronous: &str, sync: &str) -> Configuration {
    let intact_after = match sync {
        "none" => Durability::ProcessCrash,
        _ => Durability::PowerLoss,
    };
    let mut settings = vec![
        ("journal_mode", journal_mode),
        ("synchronous", synchronous),
        ("sync", sync),
    ];
    if engine == "hybrid" {
        // Of the blobs that are written about as many are in the database as in files.
        settings.push(("inline_limit", "12000"));
    }
    let name = format!("{engine} {journal_mode} {synchronous} {sync}");
    configuration(name, engine, &settings, intact_after, true)
}

/// An engine of which nothing more is known here: with its default settings, if it keeps anything.
fn as_it_is(engine: &dyn Engine) -> Option<Configuration> {
    let settings = Settings::default();
    let can = engine.capabilities(&settings);
    if !(can.keeps_content && can.persistent && can.writes) {
        return None;
    }
    let claimed = engine.durability(&settings);
    let name = format!("{} as by default", engine.name());
    Some(configuration(name, engine.name(), &[], claimed, false))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_settings_are_known_and_one_lies() {
        let all = all();
        assert!(all.len() >= 25, "{}", all.len());
        let mut names: Vec<&str> = all.iter().map(|one| one.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all.len());
        for one in &all {
            let engine = sqlitmus_engines::find(&one.engine).expect("an engine");
            let resolved = one
                .settings
                .resolve(&one.engine, engine.settings())
                .expect("known");
            engine.check(&resolved).expect("no contradiction");
        }
        assert_eq!(all.iter().filter(|one| one.is_control).count(), 1);
    }

    #[test]
    fn every_engine_that_keeps_anything_is_there() {
        for engine in sqlitmus_engines::all() {
            let can = engine.capabilities(&Settings::default());
            let is_there = all().iter().any(|one| one.engine == engine.name());
            assert_eq!(is_there, can.keeps_content && can.persistent && can.writes);
        }
    }
}
