//! Tests of `place`: each refusal, and what is found on real mounts. The mounts need root and
//! `SQLITMUS_TEST_MOUNTS=1`; without them those tests say so on stderr and pass.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;

use super::*;
#[cfg(target_os = "linux")]
use crate::machine::block_device::DeviceKind;
#[cfg(target_os = "linux")]
use crate::machine::test_mount::TestMount;

#[cfg(target_os = "linux")]
fn fact(place: &Place, name: &str) -> String {
    let facts = place.facts();
    let (_, value) = facts.iter().find(|(found, _)| found == name).expect("fact");
    value.clone()
}

#[test]
fn missing_places_and_files_are_refused_with_a_hint() {
    let folder = tempfile::tempdir().expect("temporary directory");
    let missing = folder.path().join("a/b");
    let error = Place::inspect(&missing).expect_err("missing");
    assert!(matches!(error, PlaceError::Missing { .. }), "{error:?}");
    assert!(error.to_string().contains("does not exist"));
    assert!(error.hint().contains("mkdir -p"));

    let file = folder.path().join("file");
    std::fs::write(&file, "").expect("write");
    let error = Place::inspect(&file).expect_err("a file");
    assert!(matches!(error, PlaceError::NotADirectory { .. }));
    let error = Place::inspect(&file.join("below")).expect_err("below a file");
    assert!(
        matches!(error, PlaceError::NotADirectory { .. }),
        "{error:?}"
    );

    std::os::unix::fs::symlink("nowhere", folder.path().join("link")).expect("link");
    let error = Place::inspect(&folder.path().join("link")).expect_err("dangling");
    assert!(matches!(error, PlaceError::Missing { .. }));
    assert_eq!(std::fs::read_dir(folder.path()).expect("list").count(), 2);
}

#[test]
fn a_directory_without_write_permission_is_refused() {
    if rustix::process::geteuid().is_root() {
        writeln!(std::io::stderr(), "skipped: root may write everywhere").expect("stderr");
        return;
    }
    let folder = tempfile::tempdir().expect("temporary directory");
    let read_only = std::fs::Permissions::from_mode(0o500);
    std::fs::set_permissions(folder.path(), read_only).expect("chmod");
    let error = Place::inspect(folder.path()).expect_err("not writable");
    assert!(matches!(error, PlaceError::NotWritable { .. }), "{error:?}");
}

#[test]
fn a_place_is_canonical_and_knows_its_space() {
    let folder = tempfile::tempdir().expect("temporary directory");
    std::fs::create_dir(folder.path().join("real")).expect("folder");
    let link = folder.path().join("link");
    std::os::unix::fs::symlink("real", &link).expect("link");
    let place = Place::inspect(&link).expect("a place");
    assert!(place.path.ends_with("real"));
    place.require_space(0, 0).expect("nothing always fits");
    let error = place.require_space(u64::MAX, 0).expect_err("too small");
    let text = error.to_string();
    assert!(
        text.contains("too small: ") && text.contains(" MB needed, "),
        "{text}"
    );
    assert!(text.contains(" MB available"), "{text}");
    if place.space.available_inodes.is_some() {
        let error = place
            .require_space(0, u64::MAX)
            .expect_err("too few inodes");
        assert!(error.to_string().contains("inodes"), "{error}");
    }
}

#[test]
fn shortages_never_read_as_enough() {
    let space = Space {
        available_bytes: 4_999_999,
        available_inodes: None,
    };
    assert_eq!(
        shortage(5_000_001, &space, 9),
        "5.1 MB needed, 4.9 MB available"
    );
}

#[test]
fn filesystems_are_told_apart_by_type() {
    assert_eq!(class("ext4"), FilesystemClass::Device);
    assert_eq!(class("tmpfs"), FilesystemClass::Memory);
    assert_eq!(class("nfs4"), FilesystemClass::Network);
    assert_eq!(class("fuse.sshfs"), FilesystemClass::Network);
    assert_eq!(class("fuseblk"), FilesystemClass::Device);
    assert_eq!(class("overlay"), FilesystemClass::Layered);
}

#[cfg(target_os = "linux")]
#[test]
fn a_read_only_filesystem_is_refused() {
    let Some(mount) = TestMount::tmpfs("size=1m") else {
        return;
    };
    mount.remount_read_only();
    let error = Place::inspect(&mount.point()).expect_err("read-only");
    assert!(matches!(error, PlaceError::ReadOnly { .. }), "{error:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn tmpfs_is_recognised() {
    let Some(mount) = TestMount::tmpfs("size=1m,nr_inodes=50") else {
        return;
    };
    let place = Place::inspect(&mount.point()).expect("a place");
    assert!(place.is_tmpfs());
    assert_eq!(place.filesystem, "tmpfs");
    assert_eq!(place.device, None);
    assert_eq!(place.mount_point, place.path);
    assert_eq!(place.describe(), "tmpfs (in memory)");
    assert_eq!(place.space.available_bytes, 1 << 20);
    assert!(place.space.available_inodes < Some(50));
    assert!(
        place
            .mount_options
            .iter()
            .any(|option| option == "size=1024k")
    );
    place.require_space(1 << 20, 10).expect("fits exactly");
    assert!(place.require_space((1 << 20) + 1, 10).is_err());
    assert!(place.require_space(1, 100).is_err());
}

#[cfg(target_os = "linux")]
#[test]
fn a_loop_mount_is_followed_to_the_disk_below() {
    let Some(mount) = TestMount::ext4(16 << 20) else {
        return;
    };
    let inside = mount.point().join("folder");
    std::fs::create_dir(&inside).expect("folder");
    let place = Place::inspect(&inside).expect("a place");
    assert_eq!(place.filesystem, "ext4");
    assert_eq!(
        place.mount_point,
        std::fs::canonicalize(mount.point()).expect("path")
    );
    assert_eq!(place.class(), FilesystemClass::Device);
    let device = place.device.clone().expect("a loop device");
    assert_eq!(device.kind, DeviceKind::Loop);
    let image = mount.folder().join("image");
    assert_eq!(device.backing_file, Some(image));
    assert!(
        place.describe().starts_with("ext4 on /dev/loop"),
        "{}",
        place.describe()
    );
    assert_eq!(fact(&place, "disk_kind"), device.describe());
    assert!(place.space.available_bytes < 16 << 20);
    assert!(place.space.available_inodes.is_some());
}
