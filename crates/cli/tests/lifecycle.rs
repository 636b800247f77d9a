//! The suite about the life of stores from the outside, as small as it can be: every blob is read back as it was
//! written last, what happens once is timed and counted, and every format shows it.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

const SUITE: &str = include_str!("lifecycle/small.toml");

fn sqlitmus(place: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sqlitmus"));
    let output = command.current_dir(place).args(words).output();
    output.expect("runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn measured(place: &Path, suite: &str) -> Output {
    std::fs::write(place.join("suite.toml"), suite).expect("written");
    sqlitmus(place, &["measure", "./suite.toml", "--quiet"])
}

/// Resources of an arm's only trial.
fn resources(run: &rusqlite::Connection, arm: &str) -> BTreeMap<String, u64> {
    let mut select = run
        .prepare(
            "SELECT resource.name, resource.value FROM resource JOIN trial USING (trial_id) JOIN arm USING (arm_id)
             WHERE arm.name = ?1",
        )
        .expect("the documented schema");
    let rows = select.query_map([arm], |row| Ok((row.get(0)?, row.get::<_, i64>(1)?)));
    let rows = rows.expect("queried");
    rows.map(|row| row.expect("a row"))
        .map(|(name, value)| (name, value.unsigned_abs()))
        .collect()
}

#[test]
fn stores_grow_old_and_what_happens_once_is_known() {
    let place = tempfile::tempdir().expect("a folder");
    let output = measured(place.path(), SUITE);
    let report = text(&output.stdout);
    // Whatever was not read back as it was written last would be a failed arm.
    assert_eq!(
        output.status.code(),
        Some(0),
        "{report}\n{}",
        text(&output.stderr)
    );
    let report = report.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "Reading by storage age: reads, warm",
        "database, age 3",
        "Space and fragments by storage age: lives, 1 life of every store",
        "VACUUM INTO",
        "first read, cold",
        "incremental vacuum",
    ] {
        assert!(report.contains(part), "no `{part}` in\n{report}");
    }
    let runs = place.path().join(".sqlitmus/runs");
    let run = std::fs::read_dir(&runs)
        .expect("listed")
        .map(|entry| entry.expect("an entry").path())
        .find(|path| path.extension().is_some_and(|end| end == "run"))
        .expect("a run");
    let run = rusqlite::Connection::open(run).expect("opened");
    let files = resources(&run, "life-files");
    // 40 blobs in a folder of their own.
    assert!(files["age_0_inodes"] >= 41 && files["age_3_inodes"] == files["age_0_inodes"]);
    assert!(
        !files.contains_key("vacuum_ns"),
        "files have nothing of the kind"
    );
    let database = resources(&run, "life-database");
    assert_eq!(database["age_3_inodes"], 1);
    for name in [
        "vacuum_ns",
        "incremental_vacuum_ns",
        "backup_ns",
        "copy_ns",
        "empty_ns",
        "unlink_ns",
    ] {
        assert!(database[name] > 0, "{name}");
    }
    assert!(database["vacuumed_allocated_bytes"] < database["removed_allocated_bytes"]);
    assert!(database["incremental_after_bytes"] < database["incremental_before_bytes"]);
    assert!(database["age_3_page_runs"] > database["age_0_page_runs"]);
    if let Some(extents) = files.get("age_3_extents") {
        assert!(*extents >= 30, "{extents} extents of 40 files");
    }
    // Nothing of a life is left but the empty store beside which it was lived.
    let left = Command::new("find")
        .args([
            place.path().as_os_str(),
            "-name".as_ref(),
            "*.lived*".as_ref(),
        ])
        .output()
        .expect("find runs");
    assert!(left.stdout.is_empty(), "{}", text(&left.stdout));
    every_format_shows_it(place.path());
}

fn every_format_shows_it(place: &Path) {
    for (format, part) in [
        ("markdown", "### Giving space back"),
        ("html", "times as fast as when new"),
        ("svg", "storage age"),
        ("csv", "database-age-3"),
    ] {
        let shown = sqlitmus(place, &["report", "latest", "--format", format]);
        assert_eq!(shown.status.code(), Some(0), "{}", text(&shown.stderr));
        let shown = text(&shown.stdout);
        assert!(shown.contains(part), "no `{part}` in {format}");
        assert!(!shown.contains("NaN"), "{format}");
    }
    let json = sqlitmus(place, &["report", "latest", "--format", "json"]);
    let json: Value = serde_json::from_slice(&json.stdout).expect("JSON");
    assert!(json.to_string().contains("incremental_vacuum_ns"));
}

#[test]
fn impossible_lives_are_refused() {
    let place = tempfile::tempdir().expect("a folder");
    for (good, bad, message) in [
        ("ages = [0, 3], removed", "ages = [0], removed", "no life"),
        (
            "ages = [0, 3], removed",
            "ages = [3, 0], removed",
            "storage ages",
        ),
        ("removed_percent = 25", "removed_percent = 100", "no life"),
        ("ages = [0, 3] }", "ages = [0, 1000] }", "storage ages"),
        (
            "engine = \"sqlite\" # life\nsettings = { page_size = 1024 }",
            "engine = \"memory\"",
            "no life on disk",
        ),
    ] {
        assert!(SUITE.contains(good), "{good}");
        let output = measured(place.path(), &SUITE.replacen(good, bad, 1));
        let said = format!("{}{}", text(&output.stderr), text(&output.stdout));
        let code = output.status.code();
        assert!(matches!(code, Some(0 | 2 | 4)), "{said}");
        assert!(said.contains(message), "no `{message}` in {said}");
    }
}
