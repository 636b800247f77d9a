//! A process killed at any moment leaves a run file that reads, with every round that was
//! recorded, and that can be continued.

mod fixture;

use std::env;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use rusqlite::Connection;
use sqlitmus_runfile::{RunFile, read, rounds};

use fixture::GROUP;

/// Where the process that is to be killed records its rounds.
const VICTIM_PATH: &str = "SQLITMUS_TEST_VICTIM_PATH";

/// A file as a process leaves it that is killed in the middle of a transaction: pages of the new
/// state in the database, pages of the old one in the journal.
fn half_written(directory: &Path) -> std::path::PathBuf {
    let original = fixture::run_file(directory);
    let connection = Connection::open(&original).expect("opened");
    connection
        .execute_batch(
            "PRAGMA cache_size = 1; BEGIN IMMEDIATE;
             UPDATE sample SET elapsed_ns = 1;
             UPDATE trial SET latencies = zeroblob(16000);
             UPDATE run SET command_line = printf('%.*c', 20000, 'x')",
        )
        .expect("half written");
    let killed = directory.join("killed");
    fs::create_dir(&killed).expect("directory");
    let path = killed.join("b.run");
    fs::copy(&original, &path).expect("copied");
    fs::copy(
        directory.join("a.run-journal"),
        killed.join("b.run-journal"),
    )
    .expect("copied");
    assert_ne!(
        fs::metadata(&path).expect("size").len(),
        0,
        "there is something to roll back"
    );
    path
}

#[test]
fn a_half_written_file_is_read_untouched_and_rolled_back_when_appended_to() {
    let directory = tempfile::tempdir().expect("directory");
    let path = half_written(directory.path());
    let killed = path.parent().expect("directory");
    let bytes = || {
        let of = |name: &String| fs::read(killed.join(name)).expect("bytes");
        fixture::names(killed).iter().map(of).collect::<Vec<_>>()
    };
    let before = bytes();
    assert_eq!(before.len(), 2);
    assert_ne!(
        fixture::integrity(&path),
        "ok",
        "SQLite alone would have to write"
    );
    assert_eq!(read(&path).expect("read"), fixture::run());
    assert_eq!(rounds(&path).expect("rounds").len(), 3);
    assert!(bytes() == before, "reading changed something");

    let file = RunFile::open_for_append(&path).expect("opened");
    assert_eq!(file.run().expect("run"), fixture::run());
    drop(file);
    assert_eq!(fixture::names(killed), ["b.run"]);
    assert_eq!(fixture::integrity(&path), "ok");
}

/// Not a test by itself: the process that the next test kills.
#[test]
fn victim() {
    let Some(path) = env::var_os(VICTIM_PATH) else {
        return;
    };
    let path = Path::new(&path);
    let mut file = if path.exists() {
        RunFile::open_for_append(path).expect("opened")
    } else {
        let head = fixture::head("1", "2026-01-01T00:00:00Z");
        RunFile::create(path, &head, &fixture::plan(), &[]).expect("created")
    };
    let done = file.rounds().expect("rounds").len() as u32;
    for round in done..u32::MAX {
        let trials = fixture::round_of_trials(round);
        file.record_round(GROUP, round, &trials, true)
            .expect("recorded");
    }
}

#[test]
fn kills_at_any_moment_lose_and_repeat_no_recorded_round() {
    let directory = tempfile::tempdir().expect("directory");
    let path = directory.path().join("a.run");
    let mut recorded = 0;
    for attempt in 0..12u64 {
        let mut victim = Command::new(env::current_exe().expect("this program"))
            .args(["--exact", "victim"])
            .env(VICTIM_PATH, &path)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("started");
        thread::sleep(Duration::from_millis(60 + 17 * attempt % 50));
        victim.kill().expect("killed");
        victim.wait().expect("ended");
        // Killed while it was being created: then the next one creates it.
        let whole = fs::metadata(&path).is_ok_and(|metadata| metadata.len() > 0);
        if !whole {
            let _ = fs::remove_file(&path);
            let _ = fs::remove_file(directory.path().join("a.run.new"));
            let _ = fs::remove_file(directory.path().join("a.run.new-journal"));
            continue;
        }
        let run = read(&path).expect("read");
        let rounds = rounds(&path).expect("rounds");
        assert!(rounds.len() >= recorded, "a round was lost");
        recorded = rounds.len();
        for (number, round) in rounds.iter().enumerate() {
            assert_eq!((round.round as usize, round.complete), (number, true));
        }
        assert!(
            run.trials
                .chunks(3)
                .zip(0..)
                .all(|(trials, round)| { trials == fixture::round_of_trials(round) })
        );
        assert_eq!(run.trials.len(), 3 * recorded);
    }
    // On a very slow machine none may have got that far, which says nothing about the file.
    if recorded > 0 {
        drop(RunFile::open_for_append(&path).expect("opened"));
        assert_eq!(fixture::integrity(&path), "ok");
    }
}
