//! `sqlitmus advise` on directories that are no directories of many small files that stay as they are: what is
//! too large, too empty, too full, read-only, or changes meanwhile. Whatever is said, the user's files are as
//! they were.
//!
//! `SQLITMUS_TEST_LARGE=1` tries 1,000,000 files instead of 4,000. Where something is to be mounted it takes
//! root and `SQLITMUS_TEST_MOUNTS=1`.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, Ordering};

const QUICKLY: [&str; 8] = [
    "--rounds",
    "1",
    "--sample",
    "1MB",
    "--budget",
    "10m",
    "--snippet",
    "none",
];

fn advise(place: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sqlitmus"));
    command.arg("advise").args(words).args(QUICKLY);
    command.current_dir(place).output().expect("sqlitmus runs")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn skipped(reason: &str) {
    writeln!(std::io::stderr(), "skipped: {reason}").expect("stderr");
}

fn may_mount() -> bool {
    let is_root = fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
    let may = std::env::var_os("SQLITMUS_TEST_MOUNTS").is_some() && is_root;
    if !may {
        skipped("mounting needs root and SQLITMUS_TEST_MOUNTS=1");
    }
    may
}

/// A directory `files` with so many files of so many bytes.
fn tree(count: usize, bytes: usize) -> (tempfile::TempDir, PathBuf) {
    let place = tempfile::tempdir().expect("a folder");
    let files = place.path().join("files");
    fs::create_dir(&files).expect("created");
    fill(&files, count, bytes);
    (place, files)
}

fn fill(files: &Path, count: usize, bytes: usize) {
    let content: Vec<u8> = (0..bytes).map(|at| (at * 31) as u8).collect();
    for number in 0..count {
        fs::write(files.join(format!("{number}")), &content).expect("written");
    }
}

/// Mounted at a directory until it is dropped.
struct Mounted(PathBuf);

impl Mounted {
    fn tmpfs(at: &Path, options: &str) -> Option<Self> {
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", options, "tmpfs"])
            .arg(at)
            .output();
        match mounted {
            Ok(output) if output.status.success() => Some(Self(at.to_owned())),
            other => {
                skipped(&format!("{other:?}"));
                None
            }
        }
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).output();
    }
}

#[test]
fn files_larger_than_memory_are_named_and_not_read() {
    let (place, files) = tree(40, 3000);
    for (name, bytes) in [
        ("film", 1u64 << 40),
        ("image", 3 << 30),
        ("disk", 900 << 20),
    ] {
        let file = fs::File::create(files.join(name)).expect("created");
        file.set_len(bytes).expect("sparse");
    }
    let before = fs::metadata(files.join("film")).expect("there");
    let output = advise(place.path(), &["files", "--quiet"]);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    let page = String::from_utf8(output.stdout).expect("UTF-8");
    let page = page.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        page.contains("The largest file that was measured has 3.00 kB, the largest of all 1.10 TB"),
        "{page}"
    );
    let after = fs::metadata(files.join("film")).expect("there");
    assert_eq!(after.blocks(), before.blocks());
    assert_eq!(after.modified().ok(), before.modified().ok());
}

#[test]
fn empty_files_by_the_thousands_are_measured_too() {
    let is_large = std::env::var_os("SQLITMUS_TEST_LARGE").is_some();
    let count = if is_large { 1_000_000 } else { 4_000 };
    let (place, files) = tree(0, 0);
    for number in 0..count {
        let folder = files.join(format!("{}", number / 1000));
        if number % 1000 == 0 {
            fs::create_dir(&folder).expect("created");
        }
        fs::File::create(folder.join(format!("{number}"))).expect("created");
    }
    let output = advise(place.path(), &["files", "--json", "--quiet"]);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(answer["tree"]["files"].as_u64(), Some(count));
    assert_eq!(answer["tree"]["bytes"].as_u64(), Some(0));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        !text.contains("NaN") && !text.contains("takes - times"),
        "{text}"
    );
}

#[test]
fn a_place_that_is_too_small_is_refused_before_anything_is_made() {
    if !may_mount() {
        return;
    }
    let place = tempfile::tempdir().expect("a folder");
    let Some(_mounted) = Mounted::tmpfs(place.path(), "size=2M") else {
        return;
    };
    let files = place.path().join("files");
    fs::create_dir(&files).expect("created");
    fill(&files, 100, 4000);
    let output = advise(place.path(), &["files"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    let said = stderr(&output);
    for words in ["is too small", "needed", "available", "hint: ", "--sample"] {
        assert!(said.contains(words), "no `{words}` in {said}");
    }
    assert!(!place.path().join(".sqlitmus").exists());
}

#[test]
fn a_parent_that_cannot_be_written_to_is_refused_and_another_place_will_do() {
    let parent = tempfile::tempdir().expect("a folder");
    let files = parent.path().join("files");
    fs::create_dir(&files).expect("created");
    let is_root = fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
    // Root may write where nobody may, unless the filesystem is read-only.
    let mounted = if is_root {
        if !may_mount() {
            return;
        }
        let Some(mounted) = Mounted::tmpfs(parent.path(), "size=8M") else {
            return;
        };
        fs::create_dir(&files).expect("created");
        fill(&files, 40, 3000);
        let remounted = Command::new("mount")
            .args(["-o", "remount,ro"])
            .arg(parent.path())
            .output();
        assert!(remounted.expect("mount runs").status.success());
        Some(mounted)
    } else {
        fill(&files, 40, 3000);
        fs::set_permissions(parent.path(), fs::Permissions::from_mode(0o555)).expect("closed");
        None
    };
    let elsewhere = tempfile::tempdir().expect("a folder");
    let path = files.to_str().expect("UTF-8");
    let refused = advise(elsewhere.path(), &[path]);
    let place = elsewhere.path().to_str().expect("UTF-8");
    let done = advise(elsewhere.path(), &[path, "--place", place]);
    if mounted.is_none() {
        fs::set_permissions(parent.path(), fs::Permissions::from_mode(0o755)).expect("opened");
    }
    assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
    assert!(
        stderr(&refused).contains("hint: --place DIR"),
        "{}",
        stderr(&refused)
    );
    assert_eq!(done.status.code(), Some(3), "{}", stderr(&done));
    // A disk and memory are compared, which is to be said.
    if mounted.is_some() {
        assert!(
            stderr(&done).contains("another filesystem"),
            "{}",
            stderr(&done)
        );
    }
}

#[test]
fn a_directory_that_changes_meanwhile_gives_an_answer_or_says_why_not() {
    let (place, files) = tree(400, 2500);
    let calm = files.join("calm");
    fs::create_dir(&calm).expect("created");
    fill(&calm, 100, 1000);
    let is_over = AtomicBool::new(false);
    let output = std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut number = 0;
            while !is_over.load(Ordering::Relaxed) {
                number += 1;
                let path = |number: usize| files.join(format!("{}", number % 400));
                let _ = fs::write(files.join(format!("new {number}")), [7; 900]);
                let _ = fs::remove_file(path(7 * number));
                let _ = fs::write(path(11 * number), vec![8; number % 5000]);
                let _ = fs::rename(path(13 * number), path(17 * number));
                std::thread::sleep(std::time::Duration::from_micros(300));
            }
        });
        let output = advise(place.path(), &["files"]);
        is_over.store(true, Ordering::Relaxed);
        output
    });
    let said = stderr(&output);
    match output.status.code() {
        // What was sampled happened to stay as it was, or some arm met what did not.
        Some(3 | 4) => {}
        Some(2) => {
            let reasons = ["has changed", "has gone", "changed"];
            assert!(reasons.iter().any(|reason| said.contains(reason)), "{said}");
            assert!(said.contains("hint: "), "{said}");
        }
        code => panic!("{code:?}: {said}"),
    }
    assert!(!said.contains("panicked"), "{said}");
    for number in 0..100 {
        let content = fs::read(calm.join(format!("{number}"))).expect("still there");
        assert_eq!(content.len(), 1000);
    }
    let left = fs::read_dir(place.path().join(".sqlitmus/stores")).expect("listed");
    let left: Vec<_> = left
        .map(|entry| entry.expect("an entry").file_name())
        .collect();
    assert_eq!(left, ["CACHEDIR.TAG"]);
}
