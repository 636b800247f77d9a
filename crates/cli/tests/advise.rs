//! `sqlitmus advise` from the outside: an answer for a tree, files that are as they were, stores that are
//! gone, and what it refuses. Whether its figures are right does not depend on these tests, nor they on
//! the speed of the machine: one round of each stage is measured, which decides nothing.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

fn program() -> &'static str {
    env!("CARGO_BIN_EXE_sqlitmus")
}

fn sqlitmus(place: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(program());
    let output = command.args(words).current_dir(place).output();
    output.expect("sqlitmus runs")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// 150 files of 0 to 30,000 bytes in folders of ten, with what is odd among them.
fn tree() -> tempfile::TempDir {
    let place = tempfile::tempdir().expect("a folder");
    let files = place.path().join("files");
    for number in 0..150usize {
        let folder = files.join(format!("{}", number / 10));
        fs::create_dir_all(&folder).expect("created");
        let bytes: Vec<u8> = (0..number * 200).map(|at| (at * number) as u8).collect();
        fs::write(folder.join(format!("file {number}")), bytes).expect("written");
    }
    symlink("/nowhere", files.join("dangling")).expect("linked");
    symlink("..", files.join("loop")).expect("linked");
    let closed = files.join("closed");
    fs::write(&closed, "not for everybody").expect("written");
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).expect("closed");
    place
}

/// Content, and times of change, by path.
fn state(folder: &Path) -> BTreeMap<PathBuf, (i64, i64, Option<Vec<u8>>)> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![folder.to_owned()];
    while let Some(path) = waiting.pop() {
        let metadata = fs::symlink_metadata(&path).expect("there");
        let mut content = None;
        if metadata.is_dir() {
            let entries = fs::read_dir(&path).expect("listed");
            waiting.extend(entries.map(|entry| entry.expect("an entry").path()));
        } else if metadata.is_file() {
            content = fs::read(&path).ok();
        }
        let changed = metadata.mtime_nsec() + metadata.mtime() * 1_000_000_000;
        let inode_changed = metadata.ctime_nsec() + metadata.ctime() * 1_000_000_000;
        found.insert(path, (changed, inode_changed, content));
    }
    found
}

const QUICKLY: [&str; 6] = ["--rounds", "1", "--sample", "1MB", "--budget", "10m"];

fn advise(place: &Path, words: &[&str]) -> Output {
    let all: Vec<&str> = ["advise"]
        .iter()
        .chain(words)
        .chain(&QUICKLY)
        .copied()
        .collect();
    sqlitmus(place, &all)
}

#[test]
fn an_answer_leaves_the_files_as_they_were_and_no_stores() {
    let place = tree();
    let files = place.path().join("files");
    let before = state(&files);
    let output = advise(
        place.path(),
        &["files", "--json", "--snippet", "all", "--cache", "both"],
    );
    // One round decides nothing.
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert_eq!(state(&files), before);

    let answer: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(answer["format"], "sqlitmus-advice-1");
    assert_eq!(answer["recommendation"]["answer"], "not-sure");
    assert_eq!(answer["recommendation"]["rounds"], 1);
    assert!(answer["tree"]["files"].as_u64() >= Some(150));
    let standings = answer["recommendation"]["standings"].as_array();
    let standings = standings.expect("what was tried");
    assert_eq!(standings.len(), 8);
    for standing in standings {
        let ratio = standing["composed"]["ratio"].as_f64();
        assert!(ratio.is_some_and(|ratio| ratio > 0.0), "{standing}");
    }
    let database = &answer["recommendation"]["database"];
    assert_eq!(database["stage"], "confirm");
    let finalists = answer["finalists"].as_array().expect("names");
    assert!((2..=3).contains(&finalists.len()), "{finalists:?}");
    // One round ranks by chance; the files, used in a better way, are held against the best all the same.
    let is_files = |name: &Value| name.as_str().is_some_and(|name| name.starts_with("files-"));
    assert!(finalists.iter().any(is_files), "{finalists:?}");
    let snippets = answer["snippets"].as_object().expect("snippets");
    assert_eq!(snippets.len(), 5);

    let scratch = place.path().join(".sqlitmus");
    let stores: Vec<_> = fs::read_dir(scratch.join("stores"))
        .expect("listed")
        .map(|entry| entry.expect("an entry").file_name())
        .collect();
    assert_eq!(stores, ["CACHEDIR.TAG"]);
    let again = sqlitmus(place.path(), &["report", "latest"]);
    assert_eq!(again.status.code(), Some(0), "{}", stderr(&again));
    // Sizes of samples are no grid of a suite.
    assert!(!String::from_utf8_lossy(&again.stdout).contains("by size of pages"));
    let page = sqlitmus(place.path(), &["report", "latest", "--format", "html"]);
    assert_eq!(page.status.code(), Some(0), "{}", stderr(&page));
    let second = advise(place.path(), &["files", "--quiet", "--cache", "both"]);
    assert_eq!(second.status.code(), Some(3), "{}", stderr(&second));
    // What comes of one round each does not matter; that they can be compared does.
    let compared = sqlitmus(place.path(), &["compare", "previous", "latest"]);
    let code = compared.status.code();
    assert!(
        [Some(0), Some(1), Some(3)].contains(&code),
        "{}",
        stderr(&compared)
    );
    let resumed = sqlitmus(place.path(), &["measure", "--resume", "latest"]);
    assert_eq!(resumed.status.code(), Some(2));
    assert!(
        stderr(&resumed).contains("begin anew"),
        "{}",
        stderr(&resumed)
    );
}

#[test]
fn a_page_begins_with_the_question_and_ends_with_what_to_paste() {
    let place = tree();
    let words = [
        "files", "--reads", "1", "--writes", "0", "--skew", "zipf", "--quiet",
    ];
    let output = advise(place.path(), &words);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    let page = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(page.starts_with("Where should the files of"), "{page}");
    for words in [
        "Size",
        "Not sure.",
        "confirmed:",
        "What to paste",
        "def open_store(path):",
    ] {
        assert!(page.contains(words), "no `{words}` in\n{page}");
    }
}

/// How stores come to lie on the disk is chance, which a second run meets with others.
#[test]
fn stores_of_what_decides_are_filled_anew_every_four_rounds() {
    let place = tree();
    let words = [
        "advise",
        "files",
        "--reads",
        "1",
        "--writes",
        "0",
        "--rounds",
        "6",
        "--sample",
        "1MB",
        "--budget",
        "10m",
        "--snippet",
        "none",
    ];
    let output = sqlitmus(place.path(), &words);
    let said = stderr(&output);
    let filled = |group: &str| {
        let line = format!("{group}: filling");
        said.lines().filter(|one| one.starts_with(&line)).count()
    };
    assert_eq!(filled("confirm-read"), 2, "{said}");
    assert_eq!(filled("select-read"), 1, "{said}");
    assert!(said.contains("confirm-read: round 6 "), "{said}");
    let page = String::from_utf8(output.stdout).expect("UTF-8");
    let page = page.replace('\n', " ");
    assert!(
        page.contains("in 6 rounds on 2 fillings of the stores"),
        "{page}"
    );
}

/// However long the budget: every stage has the rounds that it should have, and is over then.
#[test]
fn a_thorough_run_goes_through_all_its_stages() {
    let place = tree();
    let words = [
        "files",
        "--thorough",
        "--reads",
        "1",
        "--writes",
        "0",
        "--json",
    ];
    let output = advise(place.path(), &words);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(3), "{said}");
    for words in ["wide search", "where the answer turns by size", "grow old"] {
        assert!(said.contains(words), "no `{words}` in {said}");
    }
    for group in [
        "sweep-read-1000",
        "sweep-read-2000000",
        "ablate-read",
        "life-read",
        "life-whole",
    ] {
        let line = format!("{group}: round ");
        let rounds = said.lines().filter(|one| one.starts_with(&line)).count();
        assert_eq!(rounds, 1, "{group}: {said}");
    }
    let answer: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let standings = answer["recommendation"]["standings"].as_array();
    assert!(standings.is_some_and(|all| all.len() > 20));
    let worths = answer["recommendation"]["ablation"].as_array();
    let worths = worths.expect("what settings are worth");
    assert!(
        worths
            .iter()
            .any(|worth| worth["composed"]["ratio"].as_f64().is_some())
    );
}

/// What is opened under DIR is opened for reading, whoever opens it.
#[test]
fn no_file_is_opened_for_writing() {
    let strace = Command::new("strace").arg("-V").output();
    if strace.is_err() {
        writeln!(std::io::stderr(), "skipped: strace is not there").expect("stderr");
        return;
    }
    let place = tree();
    let trace = place.path().join("trace");
    let mut words = vec!["advise", "files", "--quiet", "--snippet", "none"];
    words.extend(QUICKLY);
    let calls = "trace=open,openat,creat,truncate,unlink,unlinkat,rename,renameat,renameat2,link,linkat,\
                 symlink,symlinkat,mkdir,mkdirat,chmod,fchmodat,chown,fchownat,utimensat,setxattr,removexattr";
    let traced = Command::new("strace")
        .args(["-f", "-y", "-s", "4096", "-e", calls, "-o"])
        .arg(&trace)
        .arg(program())
        .args(&words)
        .current_dir(place.path())
        .output()
        .expect("strace runs");
    if traced.status.code().is_none_or(|code| code != 3) {
        let reason = stderr(&traced);
        if reason.contains("ptrace") || reason.contains("PTRACE") {
            writeln!(std::io::stderr(), "skipped: {reason}").expect("stderr");
            return;
        }
        panic!("{:?}: {reason}", traced.status);
    }
    let trace = fs::read_to_string(&trace).expect("a trace");
    let files = fs::canonicalize(place.path().join("files")).expect("a path");
    let files = format!("{}/", files.display());
    // The second half of a call that another one interrupted says nothing of how.
    let whole = trace.lines().filter(|line| !line.contains("resumed>"));
    let touched: Vec<&str> = whole.filter(|line| line.contains(&files)).collect();
    assert!(touched.len() > 150, "{} calls", touched.len());
    for call in touched {
        let writes = ["O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC", "O_APPEND"];
        let is_open = call.contains("open(") || call.contains("openat(");
        assert!(
            is_open && !writes.iter().any(|flag| call.contains(flag)),
            "{call}"
        );
    }
}

#[test]
fn what_cannot_be_advised_on_is_refused_before_anything_is_made() {
    let place = tempfile::tempdir().expect("a folder");
    let refused = |words: &[&str], message: &str| {
        let output = advise(place.path(), words);
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        let said = stderr(&output);
        assert!(said.contains(message) && said.contains("hint: "), "{said}");
        assert!(output.stdout.is_empty());
        assert!(!place.path().join(".sqlitmus").exists());
    };
    refused(&["missing"], "missing");
    fs::create_dir(place.path().join("empty")).expect("created");
    refused(&["empty"], "there are no files in");
    fs::create_dir(place.path().join("one")).expect("created");
    fs::write(place.path().join("one/file"), "content").expect("written");
    refused(&["one"], "there is one file in");
    refused(&["one/file"], "one/file");
    fs::create_dir(place.path().join("many")).expect("created");
    for number in 0..30 {
        fs::write(place.path().join(format!("many/{number}")), "content").expect("written");
    }
    refused(&["many", "--place", "many"], "inside of");
    refused(
        &["many", "--reads", "0", "--writes", "0"],
        "nothing to measure",
    );
    fs::write(place.path().join("there.run"), "somebody's").expect("written");
    refused(&["many", "--output", "there.run"], "exists already");
}
