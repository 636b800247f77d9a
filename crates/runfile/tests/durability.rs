//! Durability runs: what is written is read back, each kind of file is refused where the other is
//! wanted, and DURABILITY.md names every table and column and has a query that runs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use sqlitmus_core::case::Durability;
use sqlitmus_core::durability::{
    Batches, Configuration, Cut, CutKind, DurabilityPlan, Ending, Found, KeyFinding, Speed,
    StoreFinding, find,
};
use sqlitmus_core::run::{RunHead, RunState};
use sqlitmus_core::settings::Settings;
use sqlitmus_runfile::{DurabilityFile, Kind, RunFileError, kind, read, read_durability};

fn head() -> RunHead {
    RunHead {
        id: "20261120-120000-durability-1".to_owned(),
        sqlitmus_version: "0.1.0".to_owned(),
        started_utc: "2026-11-20T12:00:00Z".to_owned(),
        finished_utc: None,
        state: RunState::Started,
        command_line: "sqlitmus durability".to_owned(),
        place: "/place".to_owned(),
    }
}

const BATCHES: Batches = Batches {
    keys: 7,
    blobs: 2,
    seed: 3,
};

fn plan() -> DurabilityPlan {
    DurabilityPlan {
        filesystems: vec!["ext4:data=journal".to_owned()],
        configurations: vec![Configuration {
            name: "files rename".to_owned(),
            engine: "files".to_owned(),
            settings: Settings::from_pairs([("write", "rename")]),
            claimed: Durability::ProcessCrash,
            intact_after: Durability::ProcessCrash,
            transactional: false,
            is_control: false,
        }],
        cuts: 2,
        hold_ns: (1, 2),
        crash_hold_ns: 1,
        batches: BATCHES,
        settle_every: 50,
        early_writeback: false,
    }
}

fn cut(ending: Ending) -> Cut {
    Cut {
        filesystem: "ext4:data=journal".to_owned(),
        configuration: "files rename".to_owned(),
        kind: CutKind::Shutdown,
        number: 1,
        held_ns: 12,
        pause_ns: 3,
        lost_age_ns: Some(5),
        mount_ns: Some(9),
        ending,
    }
}

/// One of everything that can be found.
fn found() -> Ending {
    let found = [
        Found::Whole(12),
        Found::Empty,
        Found::Zeros,
        Found::Mixed,
        Found::Broken,
        Found::Missing,
        Found::Unreadable,
    ];
    let keys = (1..)
        .zip(found)
        .map(|(key, found)| KeyFinding { key, found });
    let store = StoreFinding {
        read_error: Some("it cannot be read".to_owned()),
        keys: keys.collect(),
        stray_files: 4,
        recover_ns: 77,
        ..StoreFinding::default()
    };
    let finding = find(&BATCHES, 11, 12, &store);
    Ending::Found { finding, store }
}

fn written(directory: &Path) -> PathBuf {
    let path = directory.join("durability.run");
    let environment = [("kernel".to_owned(), "Linux".to_owned())];
    let mut file = DurabilityFile::create(&path, &head(), &plan(), &environment).expect("created");
    file.record_cut(&cut(found())).expect("recorded");
    file.record_cut(&cut(Ending::Failed("no space".to_owned())))
        .expect("recorded");
    file.record_speed(&Speed {
        filesystem: "ext4:data=journal".to_owned(),
        configuration: "files rename".to_owned(),
        commits: 100,
        elapsed_ns: 5,
    })
    .expect("recorded");
    let read_back = BTreeMap::from([("sync".to_owned(), "none".to_owned())]);
    file.record_read_back("files rename", &read_back)
        .expect("recorded");
    file.record_mount_options("ext4:data=journal", "rw,data=journal")
        .expect("recorded");
    file.finish(RunState::Complete, "2026-11-20T12:40:00Z")
        .expect("finished");
    path
}

#[test]
fn what_is_written_is_read_back() {
    let directory = tempfile::tempdir().expect("directory");
    let path = written(directory.path());
    let run = read_durability(&path).expect("read");
    assert_eq!(run.plan, plan());
    assert_eq!(run.head.state, RunState::Complete);
    assert_eq!(run.cuts.len(), 2);
    assert_eq!(run.cuts[0], cut(found()));
    assert_eq!(run.cuts[1].ending, Ending::Failed("no space".to_owned()));
    assert_eq!(run.speeds[0].commits, 100);
    assert_eq!(run.read_back["files rename"]["sync"], "none");
    assert_eq!(run.mount_options["ext4:data=journal"], "rw,data=journal");
}

#[test]
fn each_kind_is_refused_where_the_other_is_wanted() {
    let directory = tempfile::tempdir().expect("directory");
    let path = written(directory.path());
    assert_eq!(kind(&path).expect("a kind"), Kind::Durability);
    let error = read(&path).expect_err("no measurement");
    assert!(
        matches!(error, RunFileError::DurabilityRun { .. }),
        "{error}"
    );
    assert!(error.hint().contains("sqlitmus report"));
    let taken = DurabilityFile::create(&path, &head(), &plan(), &[]).map(drop);
    assert!(matches!(taken, Err(RunFileError::AlreadyExists { .. })));
    let other = directory.path().join("other.db");
    let connection = Connection::open(&other).expect("opened");
    connection.execute_batch("CREATE TABLE t(x)").expect("made");
    let error = kind(&other).expect_err("another application's");
    assert!(
        matches!(error, RunFileError::OtherApplication { .. }),
        "{error}"
    );
}

#[test]
fn a_truncated_file_is_found_out() {
    let directory = tempfile::tempdir().expect("directory");
    let path = written(directory.path());
    let file = std::fs::File::options()
        .write(true)
        .open(&path)
        .expect("opened");
    let bytes = file.metadata().expect("length").len();
    file.set_len(bytes - 5000).expect("cut");
    let error = read_durability(&path).expect_err("truncated");
    assert!(matches!(error, RunFileError::Truncated { .. }), "{error}");
}

#[test]
fn the_document_names_everything_and_its_query_runs() {
    const DOCUMENT: &str = include_str!("../DURABILITY.md");
    let directory = tempfile::tempdir().expect("directory");
    let connection = Connection::open(written(directory.path())).expect("opened");
    let mut statement = connection
        .prepare("SELECT t.name, c.name FROM sqlite_schema t, pragma_table_info(t.name) c WHERE t.type = 'table'")
        .expect("prepared");
    let columns = statement
        .query_map([], |row| {
            Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?))
        })
        .expect("rows");
    for column in columns {
        let (table, column) = column.expect("row");
        assert!(DOCUMENT.contains(&format!("**{table}**")), "{table}");
        assert!(
            DOCUMENT.contains(&format!("`{column}`")),
            "{table}.{column}"
        );
    }
    let sql = DOCUMENT
        .split("```sql\n")
        .nth(1)
        .and_then(|rest| rest.split("```").next());
    let lost: (String, u32) = connection
        .query_row(sql.expect("query"), [], |row| {
            Ok((row.get(1)?, row.get(3)?))
        })
        .expect("a row");
    assert_eq!(lost, ("files rename".to_owned(), 1));
}
