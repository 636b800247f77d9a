//! Tests of `page_cache`, on real files. Where the working directory's filesystem cannot evict (tmpfs),
//! what follows from evicting is not tested.

use super::*;

/// A file of 100 pages and a bit, in a folder on the working directory's filesystem, because
/// the one for temporary files may be a tmpfs, which evicts nothing.
fn file_of(bytes: usize) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir_in(".").expect("temporary directory");
    let path = folder.path().join("file");
    std::fs::write(&path, vec![7; bytes]).expect("write");
    (folder, path)
}

#[test]
fn sums_add_up_and_keep_the_weaker_method() {
    let whole = Residency {
        pages: 10,
        cached_pages: 5,
        ..Residency::NONE
    };
    let partly = Residency {
        dirty_pages: None,
        method: ResidencyMethod::Mincore,
        ..whole
    };
    let sum = whole.plus(partly);
    assert_eq!((sum.pages, sum.cached_pages), (20, 10));
    assert_eq!(sum.dirty_pages, None);
    assert_eq!(sum.writeback_pages, Some(0));
    assert_eq!(sum.method, ResidencyMethod::Mincore);
    assert!(!sum.is_fully_cached() && !sum.is_fully_evicted());
}

#[test]
fn a_missing_file_is_an_error_with_its_path() {
    let error = residency(Path::new("/nowhere/at/all")).expect_err("missing");
    assert!(error.to_string().contains("/nowhere/at/all"));
    assert!(!error.is_unverifiable());
}

#[test]
fn warming_reads_everything_in_a_tree() {
    let (folder, _) = file_of(5000);
    std::fs::create_dir(folder.path().join("below")).expect("folder");
    std::fs::write(folder.path().join("below/other"), [1; 77]).expect("write");
    std::os::unix::fs::symlink("file", folder.path().join("link")).expect("link");
    assert_eq!(warm(folder.path()).expect("warm"), 5077);
}

#[cfg(target_os = "linux")]
#[test]
fn residency_follows_writing_warming_and_evicting() {
    let page_bytes = rustix::param::page_size();
    let (folder, path) = file_of(100 * page_bytes + 1);
    let written = match residency(&path) {
        Err(error) if error.is_unverifiable() => return,
        answer => answer.expect("residency"),
    };
    assert_eq!(written.pages, 101);
    assert!(written.is_fully_cached());
    let Some(evicted) = evict(&path).expect("evict") else {
        return;
    };
    assert_eq!(evicted.pages, 101);
    assert_eq!(evicted.dirty_pages.unwrap_or(0), 0);
    if evicted.is_fully_cached() {
        // The working directory lies on a filesystem that cannot evict.
        return;
    }
    assert!(evicted.is_fully_evicted(), "{evicted:?}");
    warm(&path).expect("warm");
    assert!(
        residency(folder.path())
            .expect("residency")
            .is_fully_cached()
    );
    std::fs::write(folder.path().join("other"), [1; 9000]).expect("write");
    let tree = evict(folder.path()).expect("evict");
    assert!(tree.expect("verified").is_fully_evicted(), "{tree:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn mincore_agrees_with_cachestat() {
    let page_bytes = rustix::param::page_size();
    let (_folder, path) = file_of(33 * page_bytes + 5);
    let file = File::open(&path).expect("open");
    let metadata = file.metadata().expect("metadata");
    let counted = residency_by_mincore(&path, &file, &metadata).expect("mincore");
    assert_eq!((counted.pages, counted.cached_pages), (34, 34));
    assert_eq!(counted.dirty_pages, None);
    evict(&path).expect("evict");
    let counted = residency_by_mincore(&path, &file, &metadata).expect("mincore");
    let asked = residency(&path).expect("residency");
    assert_eq!(counted.cached_pages, asked.cached_pages);
}

#[cfg(target_os = "linux")]
#[test]
fn an_overlay_is_seen_through() {
    let Some(mount) = crate::machine::test_mount::TestMount::overlay() else {
        return;
    };
    let path = mount.point().join("file");
    std::fs::write(&path, [7; 50_000]).expect("write");
    let written = residency(&path).expect("residency");
    assert!(written.is_fully_cached(), "{written:?}");
    assert_eq!(written.method, ResidencyMethod::Mincore);
    let layer = mount.folder().join("upper/file");
    let below = residency(&layer).expect("residency");
    assert_eq!(below.cached_pages, written.cached_pages);
    let evicted = evict(&path).expect("evict").expect("verified");
    let below = residency(&layer).expect("residency");
    assert_eq!(evicted.cached_pages, below.cached_pages);
}

#[cfg(target_os = "linux")]
#[test]
fn a_strangers_file_is_unverifiable_not_resident() {
    use std::os::unix::fs::MetadataExt;
    let path = std::env::current_exe().expect("program");
    let metadata = std::fs::metadata("/etc/passwd").expect("metadata");
    if rustix::process::geteuid().as_raw() == metadata.uid() {
        // Run by root, to whom no file is a stranger's.
        assert!(residency(&path).expect("residency").pages > 0);
        return;
    }
    let error = residency(Path::new("/etc/passwd")).expect_err("not ours");
    assert!(error.is_unverifiable(), "{error:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn an_empty_file_is_neither_missing_nor_cached() {
    let (_folder, path) = file_of(0);
    let file = File::open(&path).expect("open");
    assert_eq!(linux::mincore(&file, 0).expect("mincore"), 0);
    if let Ok(residency) = residency(&path) {
        assert!(residency.is_fully_cached() && residency.is_fully_evicted());
    }
}
