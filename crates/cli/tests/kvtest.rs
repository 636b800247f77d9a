//! `sqlitmus kvtest` from the outside: what its verbs print, what they make, and what they leave
//! alone. What they refuse is in `kvtest/refused.rs`, and how they get on with other programs in
//! `kvtest/interchange.rs`.

#[path = "kvtest/folder.rs"]
mod folder;
#[path = "kvtest/interchange.rs"]
mod interchange;
#[path = "kvtest/refused.rs"]
mod refused;

use folder::{Ended, Folder, query_text};

#[test]
fn init_makes_the_table_of_kvtest() {
    let folder = Folder::new();
    let made = folder.done("init x.db --count 300 --size 1k --variance 200 --pagesize 0x400");
    assert_eq!(made.output, "");
    assert_eq!(folder.contents().len(), 1, "nothing else is left");
    let connection = rusqlite::Connection::open(folder.path("x.db")).expect("database");
    let text = |sql: &str| query_text(&connection, sql);
    assert_eq!(
        text("SELECT sql FROM sqlite_schema"),
        "CREATE TABLE kv(k INTEGER PRIMARY KEY, v BLOB)"
    );
    assert_eq!(
        text("SELECT count(*)||' '||min(k)||' '||max(k) FROM kv"),
        "300 1 300"
    );
    let sizes = text("SELECT min(length(v))||' '||max(length(v)) FROM kv");
    let (smallest, largest) = sizes.split_once(' ').expect("two sizes");
    let size = |text: &str| text.parse::<u32>().expect("a size");
    assert!(
        (800..850).contains(&size(smallest)) && (1150..=1200).contains(&size(largest)),
        "{sizes}"
    );
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
        .execute_batch(
            "CREATE TABLE big(x); INSERT INTO big VALUES(zeroblob(100000)); DROP TABLE big",
        )
        .expect("free pages");
    drop(connection);
    assert!(folder.done("stat x.db").number("Freelist-count:") > 20.0);
    let vacuumed = folder.done("stat x.db --vacuum");
    assert_eq!(
        vacuumed.output,
        format!("Vacuuming....       done\n{expected}")
    );
    // An empty table, too, is one.
    folder.make("empty.db", &[]);
    assert_eq!(
        folder.done("stat empty.db").number("Maximum value size:"),
        0.0
    );
}

#[test]
fn export_writes_each_blob_into_its_file() {
    let folder = Folder::new();
    folder.make(
        "x.db",
        &[(1, 10), (2, 0), (99, 5000), (100, 7), (1_234_567, 3)],
    );
    let blobs = folder.blobs("x.db");
    assert_eq!(folder.done("export x.db flat").output, "\r1234567   \n");
    assert_eq!(
        folder.done("export x.db tree --tree").output,
        "\r123/45/67   \n"
    );
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
        for path in [
            format!("flat/{flat}"),
            format!("tree/{tree}"),
            format!("empty/{tree}"),
        ] {
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
    assert!(
        last[0].starts_with("Total elapsed time: "),
        "{}",
        run.output
    );
    assert!(last[1].starts_with(&per_blob), "{}", run.output);
    assert!(
        last[2].starts_with(&rate) && last[2].ends_with(" MB/s"),
        "{}",
        run.output
    );
    if run.notes().iter().any(|note| note.contains("--as-kvtest")) {
        // Its clock has milliseconds, and may well see none go by.
        return;
    }
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
    assert!(
        (rate * seconds - 6.0).abs() < 0.06 + 0.1 * seconds,
        "{}",
        plain.output
    );
    assert!(plain.notes().is_empty());

    let words = "run x.db --random --blob-api -mmap 1MiB --CACHE";
    assert!(folder.refused(words).contains("did you mean --cache-size?"));
    let other = folder.done(
        "run x.db --random --blob-api -mmap 1MiB --cache-size -2000 --nosync --count 0x20 --start 3",
    );
    for line in [
        "--count 32 --max-id 500 --random",
        "--cache-size -2000 --jmode delete",
        "--mmap 1048576 --blob-api",
        "--nosync",
    ] {
        assert!(
            other.output.lines().any(|found| found == line),
            "{line}: {}",
            other.output
        );
    }
    folder.done("run x.db --desc --multitrans --max-id 100");
    let checked = folder.done("run x.db --integrity-check --stats");
    assert_eq!(checked.value("integrity-check:"), "ok");
    assert!(
        checked.number("Page cache misses:") > 100.0,
        "{}",
        checked.output
    );
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
        assert!(
            run.output
                .starts_with("--count 1500 --max-id 1200 --random\n"),
            "{}",
            run.output
        );
        assert_eq!(run.notes().len(), 1);
        assert!(run.notes()[0].contains("kvtest takes those up to 1000"));
        check_closing_lines(&run, "read");
        let as_kvtest = folder.done(&format!("run {directory} --as-kvtest --count 1500"));
        assert!(
            as_kvtest
                .output
                .starts_with("--count 1500 --max-id 1000 --asc\n")
        );
        let told = folder.done(&format!(
            "run {directory} --max-id 1200 --desc --mmap 1G --stats"
        ));
        assert!(told.notes()[0].contains("without effect here, as in kvtest: --mmap"));
        #[cfg(target_os = "linux")]
        assert!(
            told.number("Bytes received by read():") >= 500_000.0,
            "{}",
            told.output
        );
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
        // 1, 4 and 6 twice over, with 2, 3 and 5 between them.
        assert!(
            run.output.starts_with("12 cycles due to 6 misses\n"),
            "{}",
            run.output
        );
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
    for words in [
        "",
        "--blob-api",
        "--as-kvtest",
        "--blob-api --as-kvtest",
        "--multitrans",
        "--jmode truncate --nosync --random --count 2000",
    ] {
        let before = folder.blobs("x.db");
        let run = folder.done(&format!("run x.db --update --count 50 {words}"));
        check_closing_lines(&run, "write");
        let after = folder.blobs("x.db");
        assert_eq!(before.len(), after.len());
        for (key, blob) in &before {
            assert_eq!(blob.len(), after[key].len(), "{words}");
            assert!(
                *blob != after[key] || words.contains("random"),
                "{words}: blob {key}"
            );
        }
        if !words.contains("random") && !words.contains("as-kvtest") {
            let bytes: usize = before.values().map(Vec::len).sum();
            let seconds = run.number("Total elapsed time: ");
            let printed = run.number("Content write rate: ") * seconds;
            let rounding = 0.05 * seconds + 0.02;
            assert!(
                (printed - bytes as f64 / 1e6).abs() < rounding,
                "{}",
                run.output
            );
        }
    }
    for directory in ["flat", "tree"] {
        for words in ["", "--fsync", "--as-kvtest", "--as-kvtest --fsync"] {
            let before = folder.contents();
            let run = folder.done(&format!(
                "run {directory} --update --count 50 --max-id 50 {words}"
            ));
            check_closing_lines(&run, "write");
            assert_eq!(
                run.notes()
                    .iter()
                    .any(|note| note.contains("overwritten in place")),
                !words.contains("as-kvtest")
            );
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
    assert!(
        run.notes()[0].contains("closing the database, with the checkpoint"),
        "{}",
        run.output
    );
    assert!(
        run.notes()
            .iter()
            .any(|note| note.contains("ready before the clock started"))
    );
    assert_eq!(folder.contents().len(), 1, "the log is gone");
    // Reading a database in WAL mode leaves no log behind, and the file as it is.
    let before = folder.contents();
    let run = folder.done("run x.db --random");
    assert!(run.output.contains("--jmode wal\n"));
    folder.done("stat x.db");
    assert_eq!(folder.contents(), before);
    let run = folder.done("run x.db --update --nocheckpoint");
    assert!(
        run.notes()[1].contains("leaves SQLite's own checkpoints on"),
        "{}",
        run.output
    );
    folder.done("run x.db --jmode delete");
    let connection = rusqlite::Connection::open(folder.path("x.db")).expect("database");
    assert_eq!(query_text(&connection, "PRAGMA journal_mode"), "delete");
}

#[test]
fn a_log_that_was_left_is_read_and_left() {
    let folder = Folder::new();
    let connection = folder.make("x.db", &[(1, 100), (2, 100)]);
    assert_eq!(query_text(&connection, "PRAGMA journal_mode=wal"), "wal");
    connection
        .execute_batch("UPDATE kv SET v=randomblob(5000)")
        .expect("update");
    // As a crash leaves it: the log and the file, without a checkpoint.
    for name in ["x.db", "x.db-wal"] {
        let crashed = folder.path(&name.replace('x', "crashed"));
        std::fs::copy(folder.path(name), crashed).expect("copy");
    }
    drop(connection);
    let kept = || {
        ["crashed.db", "crashed.db-wal"].map(|name| std::fs::read(folder.path(name)).expect("file"))
    };
    let before = kept();
    assert_eq!(
        folder.done("stat crashed.db").number("Minimum value size:"),
        5000.0
    );
    let run = folder.done("run crashed.db --count 2");
    let seconds = run.number("Total elapsed time: ");
    let megabytes = run.number("Content read rate: ") * seconds;
    assert!(
        (megabytes - 0.01).abs() < 0.001 + 0.05 * seconds,
        "{}",
        run.output
    );
    assert_eq!(kept(), before);
}

#[test]
fn the_default_cache_has_the_same_bytes_for_every_page_size() {
    let folder = Folder::new();
    folder.done("init x.db --count 20 --pagesize 64KiB");
    let run = folder.done("run x.db");
    assert!(run.output.contains("--cache-size -4000 "), "{}", run.output);
    assert!(
        run.notes()[0].contains("here 65,536,000 bytes"),
        "{}",
        run.output
    );
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
