//! `sqlitmus kvtest` from the outside: what it prints, what it makes, what it leaves alone, and
//! that databases and directories go back and forth between it, SQLite and the program kvtest.
//!
//! The parts that need another program are skipped, with a line that says so, where it is
//! missing: the `sqlite3` shell, and a compiled kvtest that SQLITMUS_KVTEST points to.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

/// Exit code, standard output and standard error of a program.
struct Ended {
    code: i32,
    output: String,
    errors: String,
}

impl Ended {
    /// The value that follows a label at the beginning of a line.
    fn value(&self, label: &str) -> &str {
        let line = self.output.lines().find(|line| line.starts_with(label));
        line.unwrap_or_else(|| panic!("no {label:?} in {}", self.output))[label.len()..].trim()
    }

    fn number(&self, label: &str) -> f64 {
        let first = self.value(label).split_whitespace().next().expect("a value");
        first.parse().expect("a number")
    }

    fn notes(&self) -> Vec<&str> {
        let lines = self.output.lines();
        lines.filter(|line| line.starts_with("note: ")).collect()
    }
}

fn ended(command: &mut Command) -> Ended {
    let ended = command.output().expect("the program starts");
    Ended {
        code: ended.status.code().expect("an exit code"),
        output: String::from_utf8(ended.stdout).expect("UTF-8"),
        errors: String::from_utf8(ended.stderr).expect("UTF-8"),
    }
}

fn program() -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("sqlitmus"));
    command.arg("kvtest");
    command
}

/// A folder to work in; paths of the words are relative to it.
struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(TempDir::new().expect("temporary folder"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Runs `sqlitmus kvtest` with these words.
    fn kvtest(&self, words: &str) -> Ended {
        ended(program().args(words.split_whitespace()).current_dir(self.0.path()))
    }

    /// The same where all must go well.
    fn done(&self, words: &str) -> Ended {
        let ended = self.kvtest(words);
        assert_eq!((ended.code, ended.errors.as_str()), (0, ""), "{words}: {}", ended.output);
        ended
    }

    /// The same where it must be refused: the message and the hint.
    fn refused(&self, words: &str) -> String {
        let before = self.contents();
        let ended = self.kvtest(words);
        assert_eq!(ended.code, 2, "{words}: {} {}", ended.output, ended.errors);
        assert_eq!(ended.output, "", "{words}");
        let lines: Vec<&str> = ended.errors.lines().collect();
        assert_eq!(lines.len(), 2, "{words}: {}", ended.errors);
        assert!(lines[0].starts_with("error: "), "{}", ended.errors);
        assert!(lines[1].starts_with("hint: ") && lines[1].len() > 8, "{}", ended.errors);
        assert_eq!(self.contents(), before, "{words} has changed something");
        ended.errors
    }

    /// Everything in the folder: files with their bytes, directories without.
    fn contents(&self) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
        let mut found = BTreeMap::new();
        let mut folders = vec![self.0.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in folder.read_dir().expect("listing") {
                let path = entry.expect("entry").path();
                if path.is_dir() {
                    folders.push(path.clone());
                    found.insert(path, None);
                } else {
                    found.insert(path.clone(), std::fs::read(&path).ok());
                }
            }
        }
        found
    }

    /// All blobs of a database, by key.
    fn blobs(&self, database: &str) -> BTreeMap<i64, Vec<u8>> {
        let connection = rusqlite::Connection::open(self.path(database)).expect("database");
        let mut query = connection.prepare("SELECT k, v FROM kv").expect("query");
        let rows = query.query_map([], |row| Ok((row.get(0)?, row.get(1)?)));
        rows.expect("rows").map(|row| row.expect("row")).collect()
    }

    /// A database as kvtest makes it, by somebody else's hand: keys and sizes.
    fn make(&self, database: &str, blobs: &[(i64, i64)]) -> rusqlite::Connection {
        let connection = rusqlite::Connection::open(self.path(database)).expect("database");
        connection
            .execute_batch("CREATE TABLE kv(k INTEGER PRIMARY KEY, v BLOB)")
            .expect("table");
        for (key, bytes) in blobs {
            connection
                .execute(
                    "INSERT INTO kv VALUES(?1, CASE ?2 WHEN 0 THEN x'' ELSE randomblob(?2) END)",
                    [key, bytes],
                )
                .expect("insert");
        }
        connection
    }
}

fn skipped(reason: &str) {
    writeln!(std::io::stderr(), "skipped: {reason}").expect("standard error");
}

fn query_text(connection: &rusqlite::Connection, sql: &str) -> String {
    connection.query_row(sql, [], |row| row.get(0)).expect(sql)
}

#[test]
fn init_makes_the_table_of_kvtest() {
    let folder = Folder::new();
    let made = folder.done("init x.db --count 300 --size 1k --variance 200 --pagesize 0x400");
    assert_eq!(made.output, "");
    assert_eq!(folder.contents().len(), 1, "nothing else is left");
    let connection = rusqlite::Connection::open(folder.path("x.db")).expect("database");
    let text = |sql: &str| query_text(&connection, sql);
    assert_eq!(text("SELECT sql FROM sqlite_schema"), "CREATE TABLE kv(k INTEGER PRIMARY KEY, v BLOB)");
    assert_eq!(text("SELECT count(*)||' '||min(k)||' '||max(k) FROM kv"), "300 1 300");
    assert_eq!(text("SELECT min(length(v))>=800 AND max(length(v))<=1200 AND max(length(v))>min(length(v)) ||'' FROM kv"), "1");
    assert_eq!(text("SELECT page_size||'' FROM pragma_page_size"), "1024");
    assert_eq!(text("PRAGMA journal_mode"), "delete");
    assert_eq!(text("PRAGMA integrity_check"), "ok");
    drop(connection);

    // The same words make the same database.
    folder.done("init y.db -variance 200 -size 1000 -pagesize 1KiB -count 300");
    assert_eq!(folder.blobs("x.db"), folder.blobs("y.db"));
    // An empty file is filled.
    std::fs::write(folder.path("z.db"), "").expect("empty file");
    folder.done("init z.db --count 2");
    assert_eq!(folder.blobs("z.db").len(), 2);
}

#[test]
fn stat_prints_what_kvtest_prints() {
    let folder = Folder::new();
    folder.make("x.db", &[(1, 10), (2, 20), (7, 33)]);
    let expected = "\
Number of entries:         3
Average value size:       21
Minimum value size:       10
Maximum value size:       33
Page-size:              4096
Page-count:                2
Freelist-count:            0
Integrity-check:    ok
";
    let before = folder.contents();
    assert_eq!(folder.done("stat x.db").output, expected);
    assert_eq!(folder.contents(), before);

    let connection = rusqlite::Connection::open(folder.path("x.db")).expect("database");
    connection
        .execute_batch("CREATE TABLE big(x); INSERT INTO big VALUES(zeroblob(100000)); DROP TABLE big")
        .expect("free pages");
    drop(connection);
    assert!(folder.done("stat x.db").number("Freelist-count:") > 20.0);
    let vacuumed = folder.done("stat x.db --vacuum");
    assert_eq!(vacuumed.output, format!("Vacuuming....       done\n{expected}"));
    // An empty table, too, is one.
    folder.make("empty.db", &[]);
    assert_eq!(folder.done("stat empty.db").number("Maximum value size:"), 0.0);
}

#[test]
fn export_writes_each_blob_into_its_file() {
    let folder = Folder::new();
    folder.make("x.db", &[(1, 10), (2, 0), (99, 5000), (100, 7), (1_234_567, 3)]);
    let blobs = folder.blobs("x.db");
    assert_eq!(folder.done("export x.db flat").output, "\r1234567   \n");
    assert_eq!(folder.done("export x.db tree --tree").output, "\r123/45/67   \n");
    std::fs::create_dir(folder.path("empty")).expect("folder");
    folder.done("export x.db empty -tree");
    let names = [
        (1, "000001", "00/00/01"),
        (2, "000002", "00/00/02"),
        (99, "000099", "00/00/99"),
        (100, "000100", "00/01/00"),
        (1_234_567, "1234567", "123/45/67"),
    ];
    for (key, flat, tree) in names {
        for path in [format!("flat/{flat}"), format!("tree/{tree}"), format!("empty/{tree}")] {
            let bytes = std::fs::read(folder.path(&path)).expect(&path);
            assert_eq!(bytes, blobs[&key], "{path}");
        }
    }
    assert_eq!(folder.path("flat").read_dir().expect("listing").count(), 5);
    let top: Vec<_> = folder.0.path().read_dir().expect("listing").collect();
    assert_eq!(top.len(), 4, "nothing else is left");
}

/// The closing lines, in their order, with figures that follow from each other.
fn check_closing_lines(run: &Ended, verb: &str) {
    let lines: Vec<&str> = run.output.lines().collect();
    let last = &lines[lines.len() - 3..];
    let per_blob = format!("Microseconds per BLOB {verb}: ");
    let rate = format!("Content {verb} rate: ");
    assert!(last[0].starts_with("Total elapsed time: "), "{}", run.output);
    assert!(last[1].starts_with(&per_blob), "{}", run.output);
    assert!(last[2].starts_with(&rate) && last[2].ends_with(" MB/s"), "{}", run.output);
    assert!(run.number("Total elapsed time: ") > 0.0);
    assert!(run.number(&per_blob) > 0.0 && run.number(&rate) > 0.0);
}

#[test]
fn run_reads_a_database_in_every_way() {
    let folder = Folder::new();
    folder.done("init x.db --count 500 --size 6000");
    let before = folder.contents();
    let plain = folder.done("run x.db");
    let head: Vec<&str> = plain.output.lines().take(5).collect();
    assert!(head[0].starts_with("SQLite version: 3."));
    assert_eq!(
        head[1..],
        [
            "--count 1000 --max-id 500 --asc",
            "--cache-size 1000 --jmode delete",
            "--mmap 0",
            "Database page size: 4096",
        ]
    );
    check_closing_lines(&plain, "read");
    // The figures agree: 6 MB in the time that is printed, at three decimals of a microsecond.
    let seconds = plain.number("Total elapsed time: ");
    let rate = plain.number("Content read rate: ");
    assert!((rate * seconds - 6.0).abs() < 0.06 + 0.1 * seconds, "{}", plain.output);
    assert!(plain.notes().is_empty());

    let words = "run x.db --random --blob-api -mmap 1MiB --CACHE";
    assert!(folder.refused(words).contains("did you mean --cache-size?"));
    let other = folder.done(
        "run x.db --random --blob-api -mmap 1MiB --cache-size -2000 --nosync --count 0x20 --start 3",
    );
    for line in ["--count 32 --max-id 500 --random", "--cache-size -2000 --jmode delete", "--mmap 1048576 --blob-api", "--nosync"] {
        assert!(other.output.lines().any(|found| found == line), "{line}: {}", other.output);
    }
    folder.done("run x.db --desc --multitrans --max-id 100");
    let checked = folder.done("run x.db --integrity-check --stats");
    assert_eq!(checked.value("integrity-check:"), "ok");
    assert!(checked.number("Page cache misses:") > 500.0, "{}", checked.output);
    assert!(checked.number("Largest Pcache Allocation:") > 4096.0);
    assert!(checked.value("Memory Used:").starts_with("not counted"));
    assert_eq!(folder.contents(), before, "reading changes nothing");
}

#[test]
fn run_reads_directories_to_their_highest_key() {
    let folder = Folder::new();
    folder.done("init x.db --count 1200 --size 500");
    folder.done("export x.db flat");
    folder.done("export x.db tree --tree");
    let before = folder.contents();
    for directory in ["flat", "tree"] {
        let run = folder.done(&format!("run {directory} --count 1500 --random"));
        assert!(run.output.starts_with("--count 1500 --max-id 1200 --random\n"), "{}", run.output);
        assert_eq!(run.notes().len(), 1);
        assert!(run.notes()[0].contains("kvtest takes those up to 1000"));
        check_closing_lines(&run, "read");
        let as_kvtest = folder.done(&format!("run {directory} --as-kvtest --count 1500"));
        assert!(as_kvtest.output.starts_with("--count 1500 --max-id 1000 --asc\n"));
        let told = folder.done(&format!("run {directory} --max-id 1200 --desc --mmap 1G --stats"));
        assert!(told.notes()[0].contains("without effect here, as in kvtest: --mmap"));
        #[cfg(target_os = "linux")]
        assert!(told.number("Bytes received by read():") >= 500_000.0, "{}", told.output);
    }
    assert_eq!(folder.contents(), before, "reading changes nothing");
}

#[test]
fn misses_are_counted_and_made_up_for() {
    let folder = Folder::new();
    folder.make("x.db", &[(1, 10), (2, 0), (4, 10), (6, 10)]);
    folder.done("export x.db flat");
    for what in ["x.db", "x.db --blob-api", "flat"] {
        let run = folder.done(&format!("run {what} --count 6 --max-id 6"));
        // 1, 4, 6, and the same again, with 2, 3 and 5 between them.
        assert!(run.output.contains("11 cycles due to 5 misses\n") || run.output.contains("12 cycles due to 6 misses\n"), "{}", run.output);
        assert!(run.output.contains("--count 6 --max-id 6 --asc\n"));
    }
    let run = folder.done("run x.db --blob-api --count 6");
    assert!(run.notes()[0].contains("after a miss a new blob handle was opened"));
    // kvtest's handle becomes useless at key 2, and it counts 10 bytes again and again.
    let run = folder.done("run x.db --blob-api --count 6 --start 4 --as-kvtest");
    assert!(!run.output.contains("misses"), "{}", run.output);
    let run = folder.kvtest("run x.db --blob-api --start 3 --as-kvtest");
    assert_eq!(run.code, 2);
}

#[test]
fn updates_keep_sizes_and_change_bytes() {
    let folder = Folder::new();
    folder.done("init x.db --count 50 --size 3000 --variance 2000");
    folder.done("export x.db flat");
    folder.done("export x.db tree --tree");
    for words in ["", "--blob-api", "--as-kvtest", "--blob-api --as-kvtest", "--multitrans", "--jmode truncate --nosync --random --count 2000"] {
        let before = folder.blobs("x.db");
        let run = folder.done(&format!("run x.db --update --count 50 {words}"));
        check_closing_lines(&run, "write");
        let after = folder.blobs("x.db");
        assert_eq!(before.len(), after.len());
        for (key, blob) in &before {
            assert_eq!(blob.len(), after[key].len(), "{words}");
            assert!(*blob != after[key] || words.contains("random"), "{words}: blob {key}");
        }
        if !words.contains("random") {
            let bytes: usize = before.values().map(Vec::len).sum();
            let printed = run.number("Content write rate: ") * run.number("Total elapsed time: ");
            assert!((printed - bytes as f64 / 1e6).abs() < 0.02, "{}", run.output);
        }
    }
    for directory in ["flat", "tree"] {
        for words in ["", "--fsync", "--as-kvtest", "--as-kvtest --fsync"] {
            let before = folder.contents();
            let run = folder.done(&format!("run {directory} --update --count 50 --max-id 50 {words}"));
            check_closing_lines(&run, "write");
            assert_eq!(run.notes().iter().any(|note| note.contains("overwritten in place")), !words.contains("as-kvtest"));
            for (path, bytes) in folder.contents() {
                let (old, new) = (&before[&path], &bytes);
                assert_eq!(old.as_ref().map(Vec::len), new.as_ref().map(Vec::len));
                let is_blob = path.starts_with(folder.path(directory)) && path.is_file();
                assert_eq!(is_blob, old != new, "{words}: {}", path.display());
            }
        }
    }
}

#[test]
fn a_journal_mode_stays_and_checkpoints_are_told() {
    let folder = Folder::new();
    folder.done("init x.db --count 50");
    let run = folder.done("run x.db --update --count 50 --jmode WAL --nocheckpoint --random");
    assert!(run.output.contains("--jmode wal\n"));
    assert!(run.notes()[0].contains("closing the database, with the checkpoint"), "{}", run.output);
    assert!(run.notes().iter().any(|note| note.contains("ready before the clock started")));
    assert_eq!(folder.contents().len(), 1, "the log is gone");
    // Reading a database in WAL mode leaves no log behind, and the file as it is.
    let before = folder.contents();
    let run = folder.done("run x.db --random");
    assert!(run.output.contains("--jmode wal\n"));
    folder.done("stat x.db");
    assert_eq!(folder.contents(), before);
    let run = folder.done("run x.db --update --nocheckpoint");
    assert!(run.notes()[1].contains("leaves SQLite's own checkpoints on"), "{}", run.output);
    folder.done("run x.db --jmode delete");
    let connection = rusqlite::Connection::open(folder.path("x.db")).expect("database");
    assert_eq!(query_text(&connection, "PRAGMA journal_mode"), "delete");
}

#[test]
fn a_log_that_was_left_is_read_and_left() {
    let folder = Folder::new();
    let connection = folder.make("x.db", &[(1, 100), (2, 100)]);
    assert_eq!(query_text(&connection, "PRAGMA journal_mode=wal"), "wal");
    connection.execute_batch("UPDATE kv SET v=randomblob(5000)").expect("update");
    // As a crash leaves it: the log and the file, without a checkpoint.
    for name in ["x.db", "x.db-wal"] {
        let crashed = folder.path(&name.replace('x', "crashed"));
        std::fs::copy(folder.path(name), crashed).expect("copy");
    }
    drop(connection);
    let kept = || ["crashed.db", "crashed.db-wal"].map(|name| std::fs::read(folder.path(name)).expect("file"));
    let before = kept();
    assert_eq!(folder.done("stat crashed.db").number("Minimum value size:"), 5000.0);
    let run = folder.done("run crashed.db --count 2");
    assert!((run.number("Content read rate: ") * run.number("Total elapsed time: ") - 0.01).abs() < 0.001);
    assert_eq!(kept(), before);
}

#[test]
fn other_page_sizes_get_as_much_cache() {
    let folder = Folder::new();
    folder.done("init x.db --count 20 --pagesize 64k");
    assert!(folder.path("x.db").metadata().is_err(), "64,000 is no power of two");
}

#[test]
fn the_default_cache_has_the_same_bytes_for_every_page_size() {
    let folder = Folder::new();
    folder.done("init x.db --count 20 --pagesize 64KiB");
    let run = folder.done("run x.db");
    assert!(run.output.contains("--cache-size -4000 "), "{}", run.output);
    assert!(run.notes()[0].contains("here 65,536,000 bytes"), "{}", run.output);
    let run = folder.done("run x.db --as-kvtest");
    assert!(run.output.contains("--cache-size 1000 "), "{}", run.output);
    assert!(run.notes()[0].contains("defects are kept"));
    let run = folder.done("run x.db --cache-size 1000");
    assert!(run.output.contains("--cache-size 1000 ") && run.notes().is_empty());
}

#[test]
fn mappings_beyond_two_gigabytes() {
    let folder = Folder::new();
    folder.done("init x.db --count 5");
    let run = folder.done("run x.db --mmap 10GB");
    assert!(run.output.contains("--mmap 10000000000\n"));
    assert!(run.notes()[0].contains("makes 1410065408 of it"));
    let run = folder.done("run x.db --mmap 10gb --as-kvtest");
    assert!(run.output.contains("--mmap 1410065408\n"));
}

#[test]
fn bad_words_are_refused_with_a_hint() {
    let folder = Folder::new();
    folder.done("init x.db --count 5");
    for (words, expected) in [
        ("", "the verb is missing"),
        ("innit y.db", "did you mean `sqlitmus kvtest init`?"),
        ("init", "DBFILE is missing"),
        ("init y.db --pagesise 4096", "did you mean --pagesize?"),
        ("init y.db --count", "--count needs a value"),
        ("init y.db --count 0", "--count must be at least 1"),
        ("init y.db --count -3", "--count must be at least 1"),
        ("init y.db --count 10X", "not a unit"),
        ("init y.db --count ten", "not a number"),
        ("init y.db --size 0", "--size must be at least 1"),
        ("init y.db --size 3GB", "SQLite stores 1000000000 at the most"),
        ("init y.db --size 99999999999999999999", "too large"),
        ("init y.db --size 9223372036854775807 --variance 9223372036854775806", "at the most"),
        ("init y.db --count 9223372036854775807", "y.db"),
        ("init y.db --variance -1", "--variance must be from 0"),
        ("init y.db --size 10 --variance 10", "--variance must be from 0"),
        ("init y.db --pagesize 1000", "power of two"),
        ("init y.db --pagesize 131072", "power of two"),
        ("init y.db z.db", "one word too many"),
        ("export x.db", "DIRECTORY is missing"),
        ("export x.db y --three", "did you mean --tree?"),
        ("stat x.db --count 5", "has no option --count"),
        ("run x.db --count 0", "--count must be at least 1"),
        ("run x.db --start 0", "--start must be at least 1"),
        ("run x.db --jmode wall", "did you mean --jmode wal?"),
        ("run x.db --mmap -1", "--mmap must not be below zero"),
        ("run x.db --cache-size 10G", "more than SQLite can count"),
        ("run x.db --max-id", "--max-id needs a value"),
        ("run x.db --updat", "did you mean --update?"),
    ] {
        let expected = expected.replace("y.db", "");
        let told = folder.refused(words);
        assert!(told.contains(&expected), "{words}: {told}");
    }
}

#[test]
fn things_that_are_not_what_they_should_be_are_refused() {
    let folder = Folder::new();
    folder.done("init x.db --count 50 --size 2000");
    std::fs::write(folder.path("text"), "not a database ".repeat(500)).expect("file");
    std::fs::write(folder.path("short"), "short").expect("file");
    std::fs::write(folder.path("nothing"), "").expect("file");
    std::fs::create_dir_all(folder.path("no-blobs/folder")).expect("folder");
    std::fs::write(folder.path("no-blobs/readme"), "x").expect("file");
    std::fs::create_dir(folder.path("empty")).expect("folder");
    std::fs::create_dir(folder.path("empty-blobs")).expect("folder");
    std::fs::write(folder.path("empty-blobs/000001"), "").expect("file");
    drop(folder.make("no-rows.db", &[]));
    drop(folder.make("empty-rows.db", &[(1, 0)]));
    let other = rusqlite::Connection::open(folder.path("other.db")).expect("database");
    other.execute_batch("CREATE TABLE t(x)").expect("table");
    drop(other);
    let whole = std::fs::read(folder.path("x.db")).expect("database");
    let mut damaged = whole.clone();
    damaged[100..8192].fill(0xA5);
    std::fs::write(folder.path("damaged.db"), damaged).expect("file");

    for (words, expected) in [
        ("missing.db", "No such file"),
        ("text", "not an SQLite database"),
        ("short", "not an SQLite database"),
        ("nothing", "not an SQLite database"),
        ("damaged.db", "damaged"),
        ("other.db", "no table kv(k, v)"),
    ] {
        for verb in ["run", "stat", "run --update", "stat --vacuum", "export"] {
            let (verb, option) = verb.split_once(' ').unwrap_or((verb, ""));
            let target = if verb == "export" { "new" } else { "" };
            let told = folder.refused(&format!("{verb} {words} {target} {option}"));
            assert!(told.contains(expected), "{verb} {words}: {told}");
        }
    }
    for (words, expected) in [
        ("stat empty", "is a directory, not a database"),
        ("export empty new", "is a directory, not a database"),
        ("init empty", "is a directory"),
        ("run empty", "no blob in empty"),
        ("run no-blobs", "no blob in no-blobs"),
        ("run empty-blobs", "no blob in empty-blobs"),
        ("run empty-blobs --as-kvtest --random", "no blob in empty-blobs"),
        ("run no-rows.db", "no blob under the keys from 1"),
        ("run empty-rows.db --blob-api", "no blob under the keys from 1"),
        ("run x.db/x", "Not a directory"),
        ("init no/such/place.db", "does not exist"),
        ("init text/x.db", "Not a directory"),
        ("export x.db no/such/place", "does not exist"),
        ("init too-large.db --count 1G --size 1GB", "too small"),
        ("init x.db", "exists already"),
        ("init text", "exists already"),
        ("export x.db x.db", "not a directory"),
        ("export x.db no-blobs", "not empty"),
    ] {
        let told = folder.refused(words);
        assert!(told.contains(expected), "{words}: {told}");
    }
    std::fs::write(folder.path("new.db-journal"), "x").expect("file");
    assert!(folder.refused("init new.db").contains("new.db-journal is in the way"));
}

#[test]
fn a_directory_without_the_keys_asked_for_is_refused() {
    let folder = Folder::new();
    drop(folder.make("x.db", &[(500, 10), (600, 10)]));
    folder.done("export x.db flat");
    for what in ["x.db", "flat"] {
        assert!(folder.refused(&format!("run {what} --max-id 499")).contains("up to"));
        folder.done(&format!("run {what} --max-id 500 --count 2"));
    }
    assert!(folder.refused("run flat --update --count 2").contains("cannot overwrite"));
}

#[test]
fn damage_found_by_the_check_is_exit_code_1() {
    let folder = Folder::new();
    folder.done("init x.db --count 50 --size 2000");
    // A page of the free list is said to be there that is not: reading blobs does not meet it.
    let mut bytes = std::fs::read(folder.path("x.db")).expect("database");
    bytes[32..40].copy_from_slice(&[0, 0, 0, 9, 0, 0, 0, 1]);
    std::fs::write(folder.path("x.db"), bytes).expect("database");
    for words in ["stat x.db", "run x.db --integrity-check"] {
        let ended = folder.kvtest(words);
        assert_eq!(ended.code, 1, "{words}: {}{}", ended.output, ended.errors);
        assert!(ended.output.to_lowercase().contains("integrity-check:"));
        assert!(ended.errors.contains("hint: "), "{}", ended.errors);
    }
}

#[test]
fn a_read_only_place_is_refused() {
    let folder = Folder::new();
    folder.done("init x.db --count 5");
    let closed = folder.path("closed");
    std::fs::create_dir(&closed).expect("folder");
    if rustix::process::geteuid().is_root() {
        // No permission keeps root out; /proc takes no files from anybody.
        for words in ["init /proc/x.db", "export x.db /proc/x"] {
            assert!(folder.refused(words).contains("/proc"), "{words}");
        }
        return;
    }
    let mut permissions = closed.metadata().expect("folder").permissions();
    permissions.set_readonly(true);
    std::fs::set_permissions(&closed, permissions).expect("permissions");
    for words in ["init closed/x.db", "export x.db closed/x", "export x.db closed"] {
        assert!(folder.refused(words).contains("no permission"), "{words}");
    }
}

#[test]
fn help_goes_to_standard_output() {
    let folder = Folder::new();
    for (words, expected) in [
        ("--help", "Examples"),
        ("-h", "Usage: sqlitmus kvtest"),
        ("help run", "--as-kvtest"),
        ("run --help", "What is put right"),
        ("init -h", "--variance V"),
        ("stat --help", "--vacuum"),
        ("export x.db y --help", "--tree"),
    ] {
        let help = folder.done(words);
        assert!(help.output.contains(expected), "{words}: {}", help.output);
    }
    assert!(folder.contents().is_empty());
}

#[cfg(unix)]
#[test]
fn an_interrupted_init_leaves_nothing_behind() {
    use rustix::process::{Pid, Signal, kill_process};
    let folder = Folder::new();
    let mut child = program()
        .args("init x.db --count 5M --size 200".split(' '))
        .current_dir(folder.0.path())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    // It listens to signals before it creates anything.
    let has_begun = || folder.0.path().read_dir().expect("listing").count() > 0;
    while !has_begun() && child.try_wait().expect("child").is_none() {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    let process = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    kill_process(process.expect("process"), Signal::INT).expect("signal");
    let ended = child.wait_with_output().expect("child");
    let errors = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(130), "{errors}");
    assert!(errors.contains("was removed"), "{errors}");
    assert!(folder.contents().is_empty());
}

#[test]
fn databases_go_back_and_forth_with_the_sqlite3_shell() {
    let folder = Folder::new();
    let shell = |database: &str, sql: &str| {
        let mut command = Command::new("sqlite3");
        command.arg(folder.path(database)).arg(sql);
        command.output().ok().filter(|ended| ended.status.success())
    };
    if shell("probe.db", "SELECT 1").is_none() {
        return skipped("there is no sqlite3 shell here");
    }
    folder.done("init ours.db --count 20 --size 5000");
    let sum = "SELECT count(*), sum(length(v)) FROM kv; PRAGMA integrity_check";
    let answer = shell("ours.db", sum).expect("the shell reads it");
    assert_eq!(String::from_utf8_lossy(&answer.stdout), "20|100000\nok\n");
    let made = shell(
        "theirs.db",
        "CREATE TABLE kv(k INTEGER PRIMARY KEY, v BLOB);
         WITH RECURSIVE c(x) AS (VALUES(1) UNION ALL SELECT x+1 FROM c WHERE x<20)
         INSERT INTO kv SELECT x, randomblob(100) FROM c;",
    );
    made.expect("the shell makes it");
    assert_eq!(folder.done("stat theirs.db").number("Number of entries:"), 20.0);
    folder.done("run theirs.db --random --blob-api --update");
    folder.done("export theirs.db flat");
}

#[test]
fn databases_and_directories_go_back_and_forth_with_kvtest() {
    let Some(kvtest) = std::env::var_os("SQLITMUS_KVTEST") else {
        return skipped("SQLITMUS_KVTEST does not point to a compiled kvtest");
    };
    let folder = Folder::new();
    let theirs = |words: &str| {
        let mut command = Command::new(Path::new(&kvtest));
        let ended = ended(command.args(words.split_whitespace()).current_dir(folder.0.path()));
        assert_eq!(ended.code, 0, "kvtest {words}: {}", ended.output);
        ended
    };
    let init = "--count 1500 --size 3000 --variance 500 --pagesize 8192";
    folder.done(&format!("init ours.db {init}"));
    theirs(&format!("init theirs.db {init}"));
    for database in ["ours", "theirs"] {
        assert_eq!(theirs(&format!("stat {database}.db")).output, folder.done(&format!("stat {database}.db")).output);
        for tree in ["", "--tree"] {
            theirs(&format!("export {database}.db {database}-c{tree} {tree}"));
            folder.done(&format!("export {database}.db {database}-r{tree} {tree}"));
            let files = |by: &str| {
                let root = folder.path(&format!("{database}-{by}{tree}"));
                let contents = folder.contents().into_iter();
                let below = |(path, bytes): (PathBuf, _)| Some((path.strip_prefix(&root).ok()?.to_owned(), bytes));
                contents.filter_map(below).collect::<BTreeMap<_, _>>()
            };
            assert!(files("c").len() > 1500);
            assert_eq!(files("c"), files("r"));
        }
    }
    // The same lines, but for times and for what is put right.
    let comparable = |ended: &Ended| {
        let lines = ended.output.lines().filter(|line| !line.starts_with("note: "));
        lines.map(|line| line.split(": ").next().unwrap_or_default().to_owned()).collect::<Vec<_>>()
    };
    for words in [
        "ours.db --random --cache-size 500", "theirs.db --desc --blob-api --cache-size 1000",
        "theirs.db --update --random --jmode wal --cache-size 1000 --mmap 1MB",
        "ours.db --nosync --integrity-check --cache-size 1000 --max-id 2000 --count 1500",
        "ours-c --max-id 1500 --random", "theirs-r--tree --start 77", "theirs-c --update --fsync",
    ] {
        let (c, r) = (theirs(&format!("run {words}")), folder.done(&format!("run {words} --as-kvtest")));
        assert_eq!(comparable(&c), comparable(&r), "{words}");
    }
}
