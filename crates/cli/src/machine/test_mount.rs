//! Mounts for tests of this module: taken away again however the test ends, and made only by root
//! with `SQLITMUS_TEST_MOUNTS=1`, so that plain `cargo test` mounts nothing on anyone's machine.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Whether tests may mount; if not, that is said on stderr.
pub(super) fn is_allowed() -> bool {
    let is_allowed =
        std::env::var_os("SQLITMUS_TEST_MOUNTS").is_some() && rustix::process::geteuid().is_root();
    if !is_allowed {
        say_skipped("mounting needs root and SQLITMUS_TEST_MOUNTS=1");
    }
    is_allowed
}

/// Says on stderr why a test checks nothing.
pub(super) fn say_skipped(reason: &str) {
    writeln!(std::io::stderr(), "skipped: {reason}").expect("stderr");
}

/// A mounted filesystem, in a temporary folder of its own. (Filesystems with a type of their own
/// are made by `loopback`; here are the odd ones: overlays, second mounts, read-only ones.)
pub(super) struct TestMount {
    folder: tempfile::TempDir,
}

impl TestMount {
    /// Calls `mount` with what `arguments` makes of the temporary folder, at a mount point with a
    /// space in its name. `None` if mounting is not allowed, which is said on stderr.
    pub(super) fn new<const COUNT: usize>(
        arguments: impl FnOnce(&Path) -> [String; COUNT],
    ) -> Option<Self> {
        if !is_allowed() {
            return None;
        }
        let folder = tempfile::tempdir().expect("temporary directory");
        let mount = Self { folder };
        std::fs::create_dir(mount.point()).expect("mount point");
        let arguments = arguments(mount.folder());
        run(Command::new("mount").args(arguments).arg(mount.point()));
        Some(mount)
    }

    /// A tmpfs with the given options.
    pub(super) fn tmpfs(options: &str) -> Option<Self> {
        Self::new(|_| ["-t", "tmpfs", "-o", options, "tmpfs"].map(str::to_owned))
    }

    /// An ext4 filesystem in a file named `image`.
    pub(super) fn ext4(image_bytes: u64) -> Option<Self> {
        Self::new(|folder| {
            let image = folder.join("image");
            let file = std::fs::File::create(&image).expect("image");
            file.set_len(image_bytes).expect("image size");
            run(Command::new("mkfs.ext4").args(["-q", "-F"]).arg(&image));
            let image = image.display().to_string();
            ["-o", "loop", &image].map(str::to_owned)
        })
    }

    /// An overlay of two empty folders, as containers have it.
    pub(super) fn overlay() -> Option<Self> {
        Self::new(|folder| {
            for layer in ["lower", "upper", "work"] {
                std::fs::create_dir(folder.join(layer)).expect("layer");
            }
            let below = folder.display();
            let options =
                format!("lowerdir={below}/lower,upperdir={below}/upper,workdir={below}/work");
            ["-t", "overlay", "-o", &options, "overlay"].map(str::to_owned)
        })
    }

    /// A folder that is mounted a second time.
    pub(super) fn bind(source: &Path) -> Option<Self> {
        Self::new(|_| ["--bind", &source.display().to_string()].map(str::to_owned))
    }

    /// The temporary folder that holds the mount point and what is mounted.
    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Where it is mounted.
    pub(super) fn point(&self) -> PathBuf {
        self.folder().join("mount point")
    }

    /// Makes it read-only.
    pub(super) fn remount_read_only(&self) {
        run(Command::new("mount")
            .args(["-o", "remount,ro"])
            .arg(self.point()));
    }
}

impl Drop for TestMount {
    fn drop(&mut self) {
        // A loop device made by mount is freed by umount. A failure here shows as a mount that stays;
        // panicking in drop would hide the test's own failure.
        let _ = Command::new("umount").arg(self.point()).status();
    }
}

fn run(command: &mut Command) {
    let status = command.status().expect("command starts");
    assert!(status.success(), "{command:?}: {status}");
}
