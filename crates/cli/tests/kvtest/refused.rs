//! What is refused, what is found damaged, and what an interruption leaves: nothing.

use std::process::Stdio;

use crate::folder::{Folder, program};

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
        (
            "init y.db --size 3GB",
            "SQLite stores 1000000000 at the most",
        ),
        ("init y.db --size 99999999999999999999", "too large"),
        (
            "init y.db --size 9223372036854775807 --variance 9223372036854775806",
            "at the most",
        ),
        ("init y.db --count 9223372036854775807", "y.db"),
        ("init y.db --variance -1", "--variance must be from 0"),
        (
            "init y.db --size 10 --variance 10",
            "--variance must be from 0",
        ),
        ("init y.db --pagesize 1000", "power of two"),
        ("init y.db --pagesize 131072", "power of two"),
        ("init y.db --pagesize 64k", "power of two"),
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
        (
            "run empty-blobs --as-kvtest --random",
            "no blob in empty-blobs",
        ),
        ("run no-rows.db", "no blob under the keys from 1"),
        (
            "run empty-rows.db --blob-api",
            "no blob under the keys from 1",
        ),
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
    assert!(
        folder
            .refused("init new.db")
            .contains("new.db-journal is in the way")
    );
}

#[test]
fn a_directory_without_the_keys_asked_for_is_refused() {
    let folder = Folder::new();
    drop(folder.make("x.db", &[(500, 10), (600, 10)]));
    folder.done("export x.db flat");
    for what in ["x.db", "flat"] {
        assert!(
            folder
                .refused(&format!("run {what} --max-id 499"))
                .contains("up to")
        );
        folder.done(&format!("run {what} --max-id 500 --count 2"));
    }
    assert!(
        folder
            .refused("run flat --update --count 2")
            .contains("cannot overwrite")
    );
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
    for words in [
        "init closed/x.db",
        "export x.db closed/x",
        "export x.db closed",
    ] {
        assert!(folder.refused(words).contains("no permission"), "{words}");
    }
}

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
