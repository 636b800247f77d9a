//! Formatting, mounting and unmounting, by the programs that every Linux has for it: their
//! complaints are the ones that users can look up. They run apart from the terminal's group of
//! processes, so that Ctrl-C does not end them half-way.
//!
//! Whether a path may be mounted on or removed is left to [`super`].

use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::{Filesystem, LoopbackError, LoopbackSpecification, failed};
use crate::machine::mounts;

/// Where administrators' programs are, for a root whose search path leaves them out.
const ADMINISTRATION: [&str; 4] = ["/usr/sbin", "/sbin", "/usr/local/sbin", "/bin"];

/// Attempts at unmounting what is busy: a process that was killed a moment ago still holds it.
const UNMOUNT_ATTEMPTS: u32 = 50;

/// Between two attempts.
const UNMOUNT_PAUSE: Duration = Duration::from_millis(20);

/// Attempts at formatting.
const FORMAT_ATTEMPTS: u32 = 3;

/// Longest line of a program's complaint that is passed on, in characters.
const MESSAGE_CHARACTERS: usize = 300;

/// Makes sure that a filesystem can be made and mounted.
pub(super) fn require(specification: &LoopbackSpecification) -> Result<(), LoopbackError> {
    let word = specification.filesystem.word();
    let unavailable = |missing: String, hint: String| LoopbackError::Unavailable {
        what: format!("a loopback filesystem {specification}"),
        missing,
        hint,
    };
    if !cfg!(target_os = "linux") {
        let hint = "name a directory on such a filesystem with --place DIR".to_owned();
        return Err(unavailable("that works on Linux only".to_owned(), hint));
    }
    if !rustix::process::geteuid().is_root() {
        let hint = "run it as root (sudo sqlitmus ...), or name a directory with --place DIR";
        return Err(unavailable(
            "mounting takes root".to_owned(),
            hint.to_owned(),
        ));
    }
    let program = specification.format_command().first().copied();
    for program in program.into_iter().chain(["mount", "umount"]) {
        if find_program(program).is_none() {
            let package = match (program, specification.filesystem) {
                ("mount" | "umount", _) => "util-linux",
                (_, Filesystem::Ext4) => "e2fsprogs",
                (_, Filesystem::Xfs) => "xfsprogs",
                _ => "btrfs-progs",
            };
            return Err(unavailable(
                format!("there is no program {program}"),
                format!("install the package {package}: apt install {package}"),
            ));
        }
    }
    if specification.has_image() && !Path::new("/dev/loop-control").exists() {
        return Err(unavailable(
            "there is no loop device (/dev/loop-control)".to_owned(),
            format!(
                "load the driver (modprobe loop); in a container, ask for the device; {word} cannot be mounted without"
            ),
        ));
    }
    Ok(())
}

fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(ADMINISTRATION.map(PathBuf::from));
    folders
        .map(|folder| folder.join(name))
        .find(|found| found.is_file())
}

/// Runs a program to its end.
fn run(words: &[&str], path: &Path, further: &[&Path]) -> Result<(), LoopbackError> {
    let [program, options @ ..] = words else {
        return Ok(());
    };
    let found = find_program(program).unwrap_or_else(|| PathBuf::from(program));
    let mut command = Command::new(found);
    command.args(options).arg(path).args(further);
    command.stdin(Stdio::null()).process_group(0);
    // Messages as the manuals have them.
    let output = command.env("LC_ALL", "C").output();
    let output = output.map_err(failed("start the program that works on", path))?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    let message: String = lines.join(" ").chars().take(MESSAGE_CHARACTERS).collect();
    Err(LoopbackError::Program {
        program: (*program).to_owned(),
        path: path.to_path_buf(),
        message: if message.is_empty() {
            output.status.to_string()
        } else {
            message
        },
    })
}

/// Formats an image. mkfs.btrfs looks at all loop devices first, and fails if one of somebody else's
/// goes while it looks: it is asked again.
pub(super) fn format(
    specification: &LoopbackSpecification,
    image: &Path,
) -> Result<(), LoopbackError> {
    let command = specification.format_command();
    for _ in 1..FORMAT_ATTEMPTS {
        if run(&command, image, &[]).is_ok() {
            return Ok(());
        }
    }
    run(&command, image, &[])
}

/// Mounts an image through a loop device that goes when it is unmounted, or a tmpfs.
pub(super) fn mount(
    specification: &LoopbackSpecification,
    image: Option<&Path>,
    image_bytes: u64,
    point: &Path,
) -> Result<(), LoopbackError> {
    let mut options: Vec<String> = specification.mount_options().map(str::to_owned).collect();
    let word = specification.filesystem.word();
    match image {
        Some(image) => {
            options.push("loop".to_owned());
            let options = options.join(",");
            run(&["mount", "-t", word, "-o", &options], image, &[point])
        }
        None => {
            options.push(format!("size={image_bytes}"));
            let options = options.join(",");
            run(
                &["mount", "-t", word, "-o", &options],
                Path::new(word),
                &[point],
            )
        }
    }
}

/// Unmounts all that is mounted at a directory, one over the other; nothing to do if nothing is.
pub(super) fn unmount(point: &Path) -> Result<(), LoopbackError> {
    // The mount table has canonical paths. A folder that cannot be looked at (a filesystem that was
    // shut down) is made canonical by its parent.
    let parent = point.parent().unwrap_or(Path::new("."));
    let (Ok(parent), Some(name)) = (parent.canonicalize(), point.file_name()) else {
        return Ok(());
    };
    let point = parent.join(name);
    for attempt in 0.. {
        if !is_mounted(&point)? {
            return Ok(());
        }
        match run(&["umount"], &point, &[]) {
            Ok(()) => {}
            Err(LoopbackError::Program { message, .. }) if attempt >= UNMOUNT_ATTEMPTS => {
                return Err(LoopbackError::InUse {
                    path: point,
                    reason: message,
                });
            }
            Err(_) => std::thread::sleep(UNMOUNT_PAUSE),
        }
    }
    Ok(())
}

/// Whether something is mounted at a directory, given by its canonical path.
pub(super) fn is_mounted(point: &Path) -> Result<bool, LoopbackError> {
    let table = Path::new("/proc/self/mountinfo");
    let text = std::fs::read(table).map_err(failed("read", table))?;
    let mut mounts = mounts::parse(&text).into_iter();
    Ok(mounts.any(|mount| mount.mount_point == point))
}

/// Detaches loop devices that an image is attached to without being mounted, as after a kill
/// between the two.
pub(super) fn detach(image: &Path) -> Result<(), LoopbackError> {
    let Ok(metadata) = std::fs::symlink_metadata(image) else {
        return Ok(());
    };
    let devices = std::fs::read_dir("/sys/block")
        .into_iter()
        .flatten()
        .flatten();
    for device in devices {
        let Ok(name) = device.file_name().into_string() else {
            continue;
        };
        // The same file, not only the same name.
        let is_attached = || {
            let backing = std::fs::read_to_string(device.path().join("loop/backing_file"));
            let found = backing.and_then(|path| std::fs::metadata(path.trim_end()));
            found.is_ok_and(|found| (found.dev(), found.ino()) == (metadata.dev(), metadata.ino()))
        };
        if !is_attached() {
            continue;
        }
        match run(&["losetup", "-d"], &Path::new("/dev").join(name), &[]) {
            // The kernel was about to detach it by itself, as after every unmounting.
            Err(_) if !is_attached() => {}
            detached => detached?,
        }
    }
    Ok(())
}
