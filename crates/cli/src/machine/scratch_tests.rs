//! Tests of `scratch` and `scratch_cleaning`: creation and reuse, refusal of links and foreign directories, the lock, and
//! cleaning, which must leave everything that is not ours.

use super::*;
use std::os::unix::fs::symlink;

use crate::machine::ownership;
use crate::machine::scratch_cleaning::{CleanOptions, CleanReport, clean};

fn place() -> tempfile::TempDir {
    tempfile::tempdir().expect("temporary directory")
}

fn names(folder: &Path) -> Vec<String> {
    let name = |path: PathBuf| path.file_name().map(|name| name.to_string_lossy().into());
    let paths = list(folder).expect("list");
    paths.into_iter().filter_map(name).collect()
}

fn store(scratch: &Scratch, name: &str) -> PathBuf {
    let path = scratch.stores_directory().join(name);
    ownership::create_directory(&path, "store").expect("create");
    std::fs::write(path.join("data"), vec![1; 5000]).expect("write");
    path
}

fn run(scratch: &Scratch, name: &str) -> PathBuf {
    let path = scratch.runs_directory().join(name);
    std::fs::write(&path, "samples").expect("write");
    ownership::claim_created(&path, "run file").expect("claim");
    path
}

fn cleaned(place: &Path, options: CleanOptions) -> CleanReport {
    let report = clean(place, options).expect("clean");
    report.expect("a scratch directory")
}

const STORES_ONLY: CleanOptions = CleanOptions {
    with_runs: false,
    list_only: false,
};
const WITH_RUNS: CleanOptions = CleanOptions {
    with_runs: true,
    list_only: false,
};

fn is_foreign<T: std::fmt::Debug>(answer: Result<T, ScratchError>, reason: &str) -> bool {
    match answer {
        Err(error @ ScratchError::Foreign { .. }) => {
            assert!(error.to_string().contains(reason), "{error}");
            error.hint().is_some()
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn it_is_created_reused_and_takes_one_name_in_the_place() {
    let place = place();
    assert!(Scratch::find(place.path()).expect("find").is_none());
    assert!(names(place.path()).is_empty(), "find creates nothing");
    let scratch = Scratch::open(place.path()).expect("create");
    assert_eq!(names(place.path()), [SCRATCH_NAME]);
    let path = store(&scratch, "blobs");
    let again = Scratch::open(place.path()).expect("reuse");
    assert!(ownership::is_ours(&path).expect("standing"));
    assert_eq!(again.root(), scratch.root());
    assert!(Scratch::find(place.path()).expect("find").is_some());
}

#[test]
fn links_files_and_foreign_directories_are_refused_and_untouched() {
    let elsewhere = place();
    std::fs::write(elsewhere.path().join("keep"), "keep").expect("write");

    let linked = place();
    symlink(elsewhere.path(), linked.path().join(SCRATCH_NAME)).expect("link");
    assert!(is_foreign(Scratch::open(linked.path()), "symbolic link"));
    assert!(is_foreign(clean(linked.path(), WITH_RUNS), "symbolic link"));

    let dangling = place();
    symlink("nowhere", dangling.path().join(SCRATCH_NAME)).expect("link");
    assert!(is_foreign(Scratch::open(dangling.path()), "symbolic link"));
    assert!(is_foreign(Scratch::find(dangling.path()), "symbolic link"));
    assert!(!dangling.path().join("nowhere").exists());

    let file = place();
    std::fs::write(file.path().join(SCRATCH_NAME), "notes").expect("write");
    assert!(is_foreign(Scratch::open(file.path()), "not a directory"));

    let foreign = place();
    let root = foreign.path().join(SCRATCH_NAME);
    std::fs::create_dir(&root).expect("folder");
    std::fs::write(root.join("keep"), "keep").expect("write");
    assert!(is_foreign(Scratch::open(foreign.path()), "no owner file"));
    assert!(is_foreign(
        clean(foreign.path(), WITH_RUNS),
        "no owner file"
    ));
    assert_eq!(names(&root), ["keep"]);
    assert_eq!(names(elsewhere.path()), ["keep"]);
}

#[test]
fn a_copied_scratch_directory_is_not_ours() {
    let (original, copy) = (place(), place());
    Scratch::open(original.path()).expect("create");
    let root = copy.path().join(SCRATCH_NAME);
    std::fs::create_dir(&root).expect("folder");
    let marker = original.path().join(SCRATCH_NAME).join(MARKER);
    std::fs::copy(marker, root.join(MARKER)).expect("copy");
    assert!(is_foreign(Scratch::open(copy.path()), "copying"));
}

#[test]
fn a_link_planted_inside_is_refused() {
    let (place, elsewhere) = (place(), place());
    let scratch = Scratch::open(place.path()).expect("create");
    std::fs::remove_file(scratch.stores_directory().join(CACHE_TAG)).expect("remove");
    std::fs::remove_dir(scratch.stores_directory()).expect("remove");
    symlink(elsewhere.path(), scratch.stores_directory()).expect("link");
    assert!(is_foreign(Scratch::open(place.path()), "not a directory"));
    // Cleaning does not go through the link either, and says that it is there.
    let owned = elsewhere.path().join("store");
    ownership::create_directory(&owned, "store").expect("create");
    let report = cleaned(place.path(), WITH_RUNS);
    assert!(owned.exists());
    assert!(report.removed.is_empty() && !report.is_scratch_removed);
    assert_eq!(report.foreign.len(), 1, "{:?}", report.foreign);
}

#[test]
fn two_measuring_runs_exclude_each_other() {
    let place = place();
    let scratch = Scratch::open(place.path()).expect("create");
    let lock = scratch.lock().expect("free");
    let error = scratch.lock().expect_err("taken");
    let expected = format!("process {}", std::process::id());
    assert!(error.to_string().contains(&expected), "{error}");
    assert!(error.hint().is_some());
    let error = clean(place.path(), STORES_ONLY).expect_err("cleaning waits too");
    assert!(matches!(error, ScratchError::Busy { .. }));
    drop(lock);
    // Processes that other tests of this program fork meanwhile have the lock too, until they end.
    let mut again = scratch.lock();
    for _ in 0..500 {
        if again.is_ok() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
        again = scratch.lock();
    }
    again.expect("free again");
}

#[test]
fn a_lock_that_is_a_link_is_not_followed() {
    let (place, elsewhere) = (place(), place());
    let scratch = Scratch::open(place.path()).expect("create");
    let target = elsewhere.path().join("target");
    symlink(&target, scratch.root().join(LOCK)).expect("link");
    assert!(scratch.lock().is_err());
    assert!(!target.exists());
}

#[test]
fn clean_removes_stores_and_keeps_runs() {
    let place = place();
    let scratch = Scratch::open(place.path()).expect("create");
    let blobs = store(&scratch, "blobs");
    let result = run(&scratch, "one.run");

    let list_only = CleanOptions {
        with_runs: false,
        list_only: true,
    };
    let report = cleaned(place.path(), list_only);
    assert_eq!(report.removed.len(), 1);
    assert!(report.removed[0].size.allocated_bytes >= 5000);
    assert!(blobs.exists(), "only listed");

    let report = cleaned(place.path(), STORES_ONLY);
    assert_eq!(report.removed[0].path, blobs);
    assert_eq!(report.kept_runs, std::slice::from_ref(&result));
    assert!(!blobs.exists() && result.exists() && !report.is_scratch_removed);

    let report = cleaned(place.path(), WITH_RUNS);
    assert!(report.is_scratch_removed && report.foreign.is_empty());
    assert!(names(place.path()).is_empty());
    assert!(clean(place.path(), WITH_RUNS).expect("clean").is_none());
}

#[test]
fn clean_leaves_what_is_foreign_and_says_so() {
    let place = place();
    let scratch = Scratch::open(place.path()).expect("create");
    store(&scratch, "blobs");
    let replaced = store(&scratch, "replaced");
    std::fs::remove_dir_all(&replaced).expect("remove");
    std::fs::write(&replaced, "someone else's").expect("write");
    std::fs::write(scratch.stores_directory().join("notes"), "keep").expect("write");
    std::fs::write(scratch.root().join("todo"), "keep").expect("write");
    let report = cleaned(place.path(), WITH_RUNS);
    assert_eq!(report.removed.len(), 1);
    let left: Vec<_> = report.foreign.iter().map(|kept| &kept.path).collect();
    let expected = [
        replaced.clone(),
        scratch.stores_directory().join("notes"),
        scratch.root().join("todo"),
    ];
    assert_eq!(left, expected.iter().collect::<Vec<_>>());
    assert!(!report.is_scratch_removed);
    assert!(expected.iter().all(|path| path.exists()));
    Scratch::open(place.path()).expect("still usable");
}

#[test]
fn clean_clears_what_a_crash_left() {
    let place = place();
    let scratch = Scratch::open(place.path()).expect("create");
    let path = scratch.stores_directory().join("half");
    let record = OwnerRecord::creating("store");
    let sidecar = ownership::sidecar_path(&path).expect("name");
    record.write_new(&sidecar).expect("write");
    let staged = format!("half.sqlitmus-{}", record.nonce);
    std::fs::create_dir(scratch.stores_directory().join(staged)).expect("folder");

    let list_only = CleanOptions {
        with_runs: true,
        list_only: true,
    };
    let report = cleaned(place.path(), list_only);
    assert!(report.foreign.is_empty(), "{:?}", report.foreign);
    let report = cleaned(place.path(), WITH_RUNS);
    assert!(report.is_scratch_removed, "{report:?}");
}

#[test]
fn an_empty_directory_may_be_used_but_is_not_removed() {
    let place = place();
    std::fs::create_dir(place.path().join(SCRATCH_NAME)).expect("folder");
    let scratch = Scratch::open(place.path()).expect("adopted");
    store(&scratch, "blobs");
    let report = cleaned(place.path(), WITH_RUNS);
    assert!(!report.is_scratch_removed);
    assert!(names(scratch.root()).is_empty());
}

#[test]
fn an_empty_directory_is_no_scratch_yet_and_can_become_one() {
    let place = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(place.path().join(SCRATCH_NAME)).expect("created");
    assert!(Scratch::find(place.path()).expect("looked for").is_none());
    Scratch::open(place.path()).expect("taken into use");
    assert!(Scratch::find(place.path()).expect("looked for").is_some());
}
