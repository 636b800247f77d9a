//! What is scanned stays as it is: content, times of change and of access; and the kernel is never
//! asked for more than reading.

use std::fs;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, UTIME_OMIT, utimensat};
use sqlitmus_trees::scan::{ScanOptions, scan};
use sqlitmus_trees::walk::Tree;

/// A tree of 40 files with duplicates; answers with the paths of all that is in it, and itself.
fn fill(top: &Path) -> Vec<PathBuf> {
    let mut paths = vec![top.to_owned()];
    for number in 0..40 {
        let folder = top.join(format!("folder {}", number % 3));
        if number < 3 {
            fs::create_dir(&folder).expect("folder");
            paths.push(folder.clone());
        }
        let path = folder.join(number.to_string());
        let content = format!("{}", number % 10).repeat(1_000 * (1 + number % 4));
        fs::write(&path, content).expect("file");
        paths.push(path);
    }
    for path in &paths {
        // A time of access that any reading would move, even where the system moves them rarely.
        let times = Timestamps {
            last_access: Timespec {
                tv_sec: 1_000_000_000,
                tv_nsec: 0,
            },
            last_modification: Timespec {
                tv_sec: 0,
                tv_nsec: UTIME_OMIT,
            },
        };
        utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW).expect("set");
    }
    paths
}

/// Times of change, of the inode's change and of access. Looking at them moves none.
fn times(paths: &[PathBuf]) -> Vec<[i64; 6]> {
    paths
        .iter()
        .map(|path| {
            let metadata = fs::symlink_metadata(path).expect("metadata");
            [
                metadata.mtime(),
                metadata.mtime_nsec(),
                metadata.ctime(),
                metadata.ctime_nsec(),
                metadata.atime(),
                metadata.atime_nsec(),
            ]
        })
        .collect()
}

fn contents(paths: &[PathBuf]) -> Vec<Vec<u8>> {
    let files = paths.iter().filter(|path| path.is_file());
    files.map(|path| fs::read(path).expect("read")).collect()
}

#[test]
#[cfg(target_os = "linux")]
fn contents_and_times_are_as_they_were() {
    let (folder, twin) = (tempfile::tempdir(), tempfile::tempdir());
    let (folder, twin) = (folder.expect("folder"), twin.expect("folder"));
    let paths = fill(folder.path());
    let expected = contents(&fill(twin.path()));
    let before = times(&paths);
    let tree = Tree::open(folder.path()).expect("opens");
    let scanned = scan(&tree, &ScanOptions::default(), &|| false, &mut |_| {});
    assert_eq!(scanned.summary.files(), 40);
    let duplicates = scanned.summary.duplicates.expect("compared");
    assert_eq!(duplicates.compared_files, 40, "all were read");
    assert_eq!(times(&paths), before);
    assert_eq!(contents(&paths), expected);
    // Otherwise this would show nothing.
    assert_ne!(times(&paths), before, "reading moves times of access here");
}

#[test]
fn the_kernel_is_asked_for_reading_alone() {
    // Beside the folder of the test programs.
    let program = std::env::current_exe().expect("path");
    let program = program.ancestors().nth(2).expect("folder");
    let program = program.join("examples/scan");
    let has_strace = Command::new("strace").arg("-V").output().is_ok();
    if !has_strace || !program.exists() {
        let reason = format!("skipped: needs strace and {}", program.display());
        writeln!(std::io::stderr(), "{reason}").expect("stderr");
        return;
    }
    let (folder, place) = (tempfile::tempdir(), tempfile::tempdir());
    let (folder, place) = (folder.expect("folder"), place.expect("folder"));
    fill(folder.path());
    let log = place.path().join("calls");
    let output = Command::new("strace")
        .args(["-f", "-y", "-e", "trace=%file,%desc", "-o"])
        .arg(&log)
        .arg(program)
        .arg(folder.path())
        .output()
        .expect("strace runs");
    assert!(output.status.success(), "{output:?}");
    let log = fs::read_to_string(log).expect("log");
    let top = folder.path().display().to_string();
    let inside: Vec<&str> = log.lines().filter(|line| line.contains(&top)).collect();
    assert!(inside.len() > 80, "{log}");
    let reading = [
        "execve(",
        "openat(",
        "openat2(",
        "newfstatat(",
        "fstat(",
        "statx(",
        "getdents64(",
        "pread64(",
        "close(",
        "readlink(",
        "F_GETFD",
        "<... ",
    ];
    for line in inside {
        let is_reading = reading.iter().any(|call| line.contains(call));
        assert!(is_reading, "{line}");
        for flag in ["O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC"] {
            assert!(!line.contains(flag), "{line}");
        }
    }
}
