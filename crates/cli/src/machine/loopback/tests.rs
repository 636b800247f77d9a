//! Tests of `loopback`: what is accepted as a specification, and on machines that allow mounting,
//! that every filesystem can be made, is gone afterwards however its owner ended, and that nothing
//! of anybody else is touched.

use std::time::{Duration, Instant};

use super::*;
use crate::machine::place::Place;
use crate::machine::scratch::ScratchError;
use crate::machine::scratch_cleaning::{CleanOptions, clean};
use crate::machine::test_mount;

const MIB: u64 = 1 << 20;

fn parsed(text: &str) -> Vec<LoopbackSpecification> {
    parse_specifications(text).expect(text)
}

fn is_mounted(point: &Path) -> bool {
    let point = point.canonicalize().unwrap_or(point.to_path_buf());
    mounting::is_mounted(&point).expect("mount table")
}

/// A scratch directory, where mounts are allowed and the programs are there.
struct Site {
    place: tempfile::TempDir,
    scratch: Scratch,
    lock: ScratchLock,
}

impl Site {
    fn new(specifications: &str) -> Option<Self> {
        if !test_mount::is_allowed() {
            return None;
        }
        if let Err(error) = require(&parsed(specifications)) {
            test_mount::say_skipped(&error.to_string());
            return None;
        }
        let place = tempfile::tempdir().expect("temporary directory");
        let scratch = Scratch::open(place.path()).expect("scratch");
        let lock = scratch.lock().expect("lock");
        Some(Self {
            place,
            scratch,
            lock,
        })
    }

    fn make(&self, specification: &str) -> Loopback {
        let name = specification.replace([':', '=', '+'], "-");
        let specification = specification.parse().expect("specification");
        Loopback::create(&self.scratch, &self.lock, &name, &specification, 64 * MIB).expect("made")
    }

    fn is_empty(&self) -> bool {
        let entries = std::fs::read_dir(self.scratch.loopback_directory()).expect("list");
        entries.count() == 0
    }
}

#[test]
fn specifications_are_read_and_written() {
    let all = "ext4,xfs,btrfs,btrfs:nocow,btrfs:compress-force=zlib:3,tmpfs,ext4:data=journal,\
               ext4:data=writeback+noauto_da_alloc,ext4:nojournal";
    let found = parsed(all);
    assert_eq!(found.len(), 9);
    let words: Vec<String> = found.iter().map(ToString::to_string).collect();
    assert_eq!(words.join(","), all);
    let options = |index: usize| found[index].mount_options().collect::<Vec<_>>().join(",");
    assert_eq!(options(4), "compress-force=zlib:3");
    assert_eq!(options(7), "data=writeback,noauto_da_alloc");
    // Words of ours are no options for mount.
    assert_eq!((options(3), options(8)), (String::new(), String::new()));
    assert!(found[8].format_command().contains(&"^has_journal"));
    assert_eq!(parsed("xfs, xfs").len(), 1);
}

#[test]
fn what_makes_no_sense_is_refused_with_a_way_out() {
    for (text, reason, hint) in [
        ("ext5", "not a filesystem", "`ext4`"),
        ("ntfs", "not a filesystem", "btrfs"),
        ("", "not a filesystem", "one of"),
        ("ext4,", "not a filesystem", "one of"),
        ("ext4:", "empty", "mount(8)"),
        ("ext4:ro", "not for a filesystem to write to", "mount(8)"),
        ("ext4:remount", "not for", "mount(8)"),
        ("tmpfs:size=1", "not for", "mount(8)"),
        ("ext4:data=a b", "odd characters", "mount(8)"),
        ("ext4:nocow", "an option of btrfs", "mount(8)"),
        ("xfs:nojournal", "an option of ext4", "mount(8)"),
    ] {
        let error = parse_specifications(text).expect_err(text);
        assert!(error.reason.contains(reason), "{text}: {error}");
        assert!(error.hint.contains(hint), "{text}: {}", error.hint);
    }
}

#[test]
fn each_filesystem_is_made_and_gone_afterwards() {
    let all = "ext4,xfs,btrfs,btrfs:nocow,btrfs:compress-force=zlib:3,tmpfs,ext4:data=journal,\
               ext4:nojournal";
    let Some(site) = Site::new(all) else { return };
    for specification in parsed(all) {
        let made = site.make(&specification.to_string());
        let point = made.point();
        let place = Place::inspect(&point).expect("place");
        assert_eq!(place.filesystem, specification.filesystem.word());
        for option in specification.mount_options() {
            let is_set = place.mount_options.iter().any(|found| found == option);
            assert!(is_set, "{option} of {:?}", place.mount_options);
        }
        std::fs::write(point.join("file"), "content").expect("write");
        if specification.to_string() == "btrfs:nocow" {
            let file = File::open(point.join("file")).expect("open");
            let flags = rustix::fs::ioctl_getflags(&file).expect("flags");
            assert!(flags.contains(rustix::fs::IFlags::NOCOW));
        }
        if specification.has_image() {
            made.unmount().expect("unmount");
            assert!(!point.join("file").exists());
            made.mount().expect("mount");
            let content = std::fs::read_to_string(point.join("file")).expect("read");
            assert_eq!(content, "content");
        }
        made.remove().expect("remove");
        assert!(site.is_empty(), "{specification}");
    }
}

#[test]
fn a_leftover_of_a_dead_owner_is_taken_away_and_nothing_else() {
    let Some(site) = Site::new("ext4,tmpfs") else {
        return;
    };
    // A killed process runs no destructors.
    let points = ["ext4", "tmpfs"].map(|word| {
        let made = site.make(word);
        let point = made.point();
        std::mem::forget(made);
        point
    });
    let foreign = site.scratch.loopback_directory().join("foreign");
    std::fs::create_dir_all(foreign.join(MOUNT)).expect("foreign");
    std::fs::write(foreign.join(IMAGE), "somebody's").expect("foreign");
    assert!(points.iter().all(|point| is_mounted(point)));

    let leftovers = remove_leftovers(&site.scratch, &site.lock).expect("remove");
    assert_eq!(leftovers.len(), 2, "{leftovers:?}");
    assert!(leftovers.iter().all(|leftover| leftover.kept.is_none()));
    assert!(
        !points
            .iter()
            .any(|point| is_mounted(point) || point.exists())
    );
    let image = std::fs::read_to_string(foreign.join(IMAGE)).expect("still there");
    assert_eq!(image, "somebody's");
}

#[test]
fn a_panic_leaves_nothing_and_cleaning_takes_away_the_rest() {
    let Some(site) = Site::new("ext4") else {
        return;
    };
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _made = site.make("ext4");
        std::panic::resume_unwind(Box::new("on purpose"));
    }));
    assert!(panicked.is_err());
    assert!(site.is_empty());

    std::mem::forget(site.make("ext4"));
    let Site {
        place,
        scratch,
        lock,
    } = site;
    let point = scratch.loopback_directory().join("ext4").join(MOUNT);
    drop(lock);
    // A child that another test is about to start has the lock too, from its fork to its exec.
    let ends = Instant::now() + Duration::from_secs(20);
    let report = loop {
        match clean(place.path(), CleanOptions::default()) {
            Err(ScratchError::Busy { .. }) if Instant::now() < ends => {
                std::thread::sleep(Duration::from_millis(20));
            }
            cleaned => break cleaned.expect("clean"),
        }
    };
    let report = report.expect("scratch");
    assert!(!is_mounted(&point));
    assert_eq!((report.removed.len(), report.failed.len()), (1, 0));
    assert!(report.is_scratch_removed);
}

#[test]
fn what_is_in_use_stays_and_says_so() {
    let Some(site) = Site::new("ext4") else {
        return;
    };
    let made = site.make("ext4");
    let user = File::create(made.point().join("file")).expect("create");
    let error = made.unmount().expect_err("busy");
    assert!(matches!(error, LoopbackError::InUse { .. }), "{error}");
    assert!(error.hint().contains("fuser"));
    drop(user);
    made.remove().expect("remove");
}

#[test]
fn what_the_kernel_refuses_leaves_nothing() {
    let Some(site) = Site::new("ext4") else {
        return;
    };
    let specification = "ext4:data=nonsense".parse().expect("plain characters");
    let made = Loopback::create(&site.scratch, &site.lock, "x", &specification, 64 * MIB);
    let error = made.expect_err("no such mode");
    assert!(matches!(error, LoopbackError::Program { .. }), "{error}");
    assert!(site.is_empty());
    assert!(specification.to_string().contains("nonsense"));
}
