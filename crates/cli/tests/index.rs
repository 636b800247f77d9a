//! `sqlitmus index` from the outside: what it prints where, what it refuses, and what a full disk, a
//! folder that may not be read and a loop do to it.

mod program;

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use rusqlite::Connection;

use program::{PROGRAM, stderr, stdout};

fn index(place: &Path, words: &[&str]) -> Output {
    program::run(place, &[&["index"], words].concat())
}

fn tree() -> tempfile::TempDir {
    let place = tempfile::tempdir().expect("a temporary directory");
    fs::create_dir_all(place.path().join("tree/below")).expect("folders");
    fs::write(place.path().join("tree/one.txt"), "1").expect("file");
    fs::write(place.path().join("tree/below/two.txt"), "22").expect("file");
    place
}

fn count(database: &Path, table: &str) -> i64 {
    let connection = Connection::open(database).expect("opens");
    let intact: String = connection
        .query_row("PRAGMA integrity_check", [], |row| row.get(0))
        .expect("checked");
    assert_eq!(intact, "ok");
    let sql = format!("SELECT count(*) FROM {table}");
    connection
        .query_row(&sql, [], |row| row.get(0))
        .expect("counted")
}

#[test]
fn a_tree_is_recorded_and_then_nothing_is_written() {
    let place = tree();
    let first = index(place.path(), &["tree", "--into", "tree.db"]);
    assert_eq!(first.status.code(), Some(0), "{}", stderr(&first));
    let text = stdout(&first);
    for words in [
        "3 entries: 2 files, 1 folders",
        "3 entries added",
        "sqlTime",
        "walkTime",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert!(
        first.stderr.is_empty(),
        "nothing takes a second here: {}",
        stderr(&first)
    );
    let again = index(place.path(), &["tree", "--into", "tree.db"]);
    assert!(
        stdout(&again).contains("no row: nothing has changed"),
        "{}",
        stdout(&again)
    );
    let database = Connection::open(place.path().join("tree.db")).expect("opens");
    let sql = "SELECT folder || '/' || filename FROM file_index WHERE filename LIKE 'two%'";
    let found: String = database
        .query_row(sql, [], |row| row.get(0))
        .expect("found");
    assert!(found.ends_with("/tree/below/two.txt"), "{found}");
}

#[test]
fn the_summary_is_json_too() {
    let place = tree();
    let words = ["tree", "--into", "tree.db", "--json", "--threads", "3"];
    let output = index(place.path(), &words);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(json["seen"]["entries"], 3);
    assert_eq!(json["written"]["entries_added"], 3);
    assert_eq!(json["complete"], true);
    assert_eq!(json["threads"], 3);
    // Rates follow from what stands beside them.
    let rows = 3.0 + 2.0;
    let rate = json["rows_per_sql_second"].as_f64().expect("rate");
    let seconds = json["sql_ns"].as_f64().expect("time") / 1e9;
    assert!((rate * seconds - rows).abs() < 1e-6);
    let walked = index(place.path(), &["tree", "--walk-only", "--json"]);
    let json: serde_json::Value = serde_json::from_slice(&walked.stdout).expect("JSON");
    assert_eq!(
        (&json["seen"]["files"], &json["written"]["rows"]),
        (&2.into(), &0.into())
    );
}

#[test]
fn the_naive_way_records_what_was_published_and_starts_from_nothing() {
    let place = tree();
    let words = ["tree", "--into", "slow.db", "--naive"];
    let output = index(place.path(), &words);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(
        stdout(&output).contains("in 3 transactions"),
        "{}",
        stdout(&output)
    );
    assert_eq!(count(&place.path().join("slow.db"), "file_index"), 3);
    for words in [&words[..], &words[..3]] {
        let refused = index(place.path(), words);
        assert_eq!(refused.status.code(), Some(2), "{words:?}");
        assert!(stderr(&refused).contains("hint: "), "{}", stderr(&refused));
    }
    assert_eq!(count(&place.path().join("slow.db"), "file_index"), 3);
}

#[test]
fn bad_input_is_refused_with_a_hint() {
    let place = tree();
    fs::write(place.path().join("text"), "not a database, but a text").expect("file");
    let cases: [(&[&str], &str); 7] = [
        (
            &["missing", "--into", "x.db"],
            "cannot read the directory missing",
        ),
        (&["text", "--into", "x.db"], "text is not a directory"),
        (&["tree", "--into", "text"], "not an SQLite database"),
        (&["tree", "--into", "tree"], "is not a file"),
        (&["tree", "--into", "no/where.db"], "cannot write the index"),
        (&["tree"], "--into"),
        (&["tree", "--walk-only", "--naive"], "cannot be used with"),
    ];
    for (words, said) in cases {
        let refused = index(place.path(), words);
        assert_eq!(
            refused.status.code(),
            Some(2),
            "{words:?}: {}",
            stderr(&refused)
        );
        let stderr = stderr(&refused);
        assert!(
            stderr.contains(said) && stderr.contains("hint: "),
            "{stderr}"
        );
        assert!(refused.stdout.is_empty());
    }
    assert!(!place.path().join("x.db").exists());
}

#[test]
fn a_folder_that_may_not_be_read_is_counted_and_named() {
    let place = tree();
    let closed = place.path().join("tree/below");
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).expect("closed");
    let (is_root, mut command) = (rustix::process::geteuid().is_root(), Command::new(PROGRAM));
    if is_root {
        // Nothing is closed to root: as somebody else, who may write beside the tree.
        fs::set_permissions(place.path(), fs::Permissions::from_mode(0o777)).expect("opened");
        command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups", PROGRAM]);
    }
    let output = command
        .args(["index", "tree", "--into", "tree.db"])
        .current_dir(place.path())
        .output();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o755)).expect("opened");
    let output = match output {
        Ok(output) if output.status.code() != Some(127) => output,
        _ => return skipped("setpriv, and a program that everybody may run"),
    };
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = stdout(&output);
    assert!(
        text.contains("1 unreadable folder: below (Permission denied"),
        "{text}"
    );
    let database = place.path().join("tree.db");
    assert_eq!(count(&database, "folder WHERE state = 'unreadable'"), 1);
    assert_eq!(count(&database, "entry"), 2);
    // Readable again, it is recorded.
    index(place.path(), &["tree", "--into", "tree.db"]);
    assert_eq!(count(&database, "entry"), 3);
    assert_eq!(count(&database, "folder WHERE state = 'unreadable'"), 0);
}

/// A mounted filesystem that is unmounted however the test ends.
struct Mount(PathBuf);

impl Mount {
    fn new(words: &[&str], point: &Path) -> Option<Self> {
        let is_allowed = std::env::var_os("SQLITMUS_TEST_MOUNTS").is_some();
        if !is_allowed || !rustix::process::geteuid().is_root() {
            skipped("root and SQLITMUS_TEST_MOUNTS=1");
            return None;
        }
        fs::create_dir_all(point).expect("mount point");
        let status = Command::new("mount").args(words).arg(point).status();
        assert!(status.expect("mount runs").success());
        Some(Self(point.to_owned()))
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // A failure shows as a mount that stays; a panic here would hide the test's own.
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

fn skipped(needs: &str) {
    writeln!(std::io::stderr(), "skipped: needs {needs}").expect("stderr");
}

#[test]
fn a_full_disk_leaves_the_database_intact_and_says_how_far_it_came() {
    let place = tempfile::tempdir().expect("a temporary directory");
    for number in 0..40 {
        let folder = place.path().join(format!("tree/{number}"));
        fs::create_dir_all(&folder).expect("folder");
        for number in 0..100 {
            let name = format!("a rather long name that takes some room {number}");
            fs::write(folder.join(name), "").expect("file");
        }
    }
    let point = place.path().join("small");
    // All 4,040 entries take some 400 kB.
    let options = ["-t", "tmpfs", "-o", "size=160k", "tmpfs"];
    let Some(_mount) = Mount::new(&options, &point) else {
        return;
    };
    for (way, table) in [(&[][..], "entry"), (&["--naive"][..], "file_index")] {
        let words = [&["tree", "--into", "small/full.db"][..], way].concat();
        let full = index(place.path(), &words);
        assert_eq!(full.status.code(), Some(5), "{}", stderr(&full));
        let stderr = stderr(&full);
        assert!(
            stderr.contains("full") && stderr.contains("hint: "),
            "{stderr}"
        );
        let said = stderr
            .split("it came as far as ")
            .nth(1)
            .expect("says how far");
        let said: String = said.chars().take_while(|letter| *letter != ' ').collect();
        let recorded = count(&point.join("full.db"), table);
        assert_eq!(said.replace(',', ""), recorded.to_string());
        assert_eq!(
            recorded > 0,
            table == "file_index",
            "the other commits once"
        );
        fs::remove_file(point.join("full.db")).expect("removed");
    }
    let mut words = vec!["tree", "--into", "small/full.db"];
    index(place.path(), &words);
    let remount = ["-o", "remount,size=2m"];
    let status = Command::new("mount").args(remount).arg(&point).status();
    assert!(status.expect("mount runs").success());
    words.push("--json");
    let rest = index(place.path(), &words);
    assert_eq!(rest.status.code(), Some(0), "{}", stderr(&rest));
    assert_eq!(count(&point.join("full.db"), "entry"), 4_040);
}

#[test]
fn a_folder_inside_itself_is_not_entered_and_other_filesystems_are_if_wanted() {
    let place = tree();
    let (below, other) = (
        place.path().join("tree/below"),
        place.path().join("tree/other"),
    );
    let top = place.path().join("tree").display().to_string();
    let Some(_loop) = Mount::new(&["--bind", &top], &below) else {
        return;
    };
    let _other = Mount::new(&["-t", "tmpfs", "tmpfs"], &other);
    fs::write(other.join("inside"), "x").expect("file");
    let output = index(place.path(), &["tree", "--into", "tree.db"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = stdout(&output);
    assert!(text.contains("1 loop (not entered): below"), "{text}");
    let database = place.path().join("tree.db");
    assert_eq!(count(&database, "entry"), 4);
    assert_eq!(count(&database, "folder WHERE state = 'loop'"), 1);
    let output = index(
        place.path(),
        &["tree", "--into", "tree.db", "--one-file-system"],
    );
    let text = stdout(&output);
    assert!(
        text.contains("1 other filesystem (not entered): other"),
        "{text}"
    );
    assert_eq!(count(&database, "entry WHERE name = 'inside'"), 0);
}
