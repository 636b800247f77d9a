//! Programs that are told of, or asked about, every access to files: virus scanners, indexers, backup
//! agents.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Check, Judgement, Level};
use crate::machine::kernel_files::KernelFiles;

/// The check.
pub const CHECK: Check = Check {
    name: "scanners",
    why: "A scanner that is asked at every open makes files slower by a factor and a database hardly: \
          the comparison becomes one of scanners.",
};

/// Bits of a fanotify group's flags under which the kernel waits for the listener's answer:
/// FAN_CLASS_CONTENT and FAN_CLASS_PRE_CONTENT of fanotify_init(2).
const ASKED: u64 = 0x4 | 0x8;

/// A program that listens by fanotify(7).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Listener {
    /// Process number.
    pub process: u32,
    /// Its name.
    pub name: String,
    /// Whether an access can wait for its answer.
    pub is_asked: bool,
}

/// What is known about listeners.
#[derive(Clone, Debug, Serialize)]
pub struct Scanners {
    /// Those that were found.
    pub listeners: Vec<Listener>,
    /// Processes that do not let us look.
    pub hidden_processes: usize,
    /// Whether we looked as root.
    pub is_root: bool,
}

impl Scanners {
    /// Looks through all processes.
    #[must_use]
    pub fn read(files: &KernelFiles) -> Self {
        let mut found = BTreeMap::new();
        let mut hidden_processes = 0;
        let processes = std::fs::read_dir(files.path("/proc")).into_iter().flatten();
        for process in processes {
            let name = process
                .ok()
                .and_then(|entry| entry.file_name().into_string().ok());
            let Some(process) = name.and_then(|name| name.parse::<u32>().ok()) else {
                continue;
            };
            let descriptors = match std::fs::read_dir(files.path(format!("/proc/{process}/fdinfo")))
            {
                Ok(descriptors) => descriptors,
                Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
                    hidden_processes += 1;
                    continue;
                }
                // It has ended.
                Err(_) => continue,
            };
            for descriptor in descriptors.flatten() {
                let text = std::fs::read_to_string(descriptor.path()).unwrap_or_default();
                if let Some(is_asked) = fanotify_group(&text) {
                    *found.entry(process).or_insert(false) |= is_asked;
                }
            }
        }
        let listeners = found.into_iter().map(|(process, is_asked)| Listener {
            process,
            name: files
                .text(format!("/proc/{process}/comm"))
                .unwrap_or_else(|| "unknown".to_owned()),
            is_asked,
        });
        Self {
            listeners: listeners.collect(),
            hidden_processes,
            is_root: rustix::process::geteuid().is_root(),
        }
    }

    /// What follows.
    #[must_use]
    pub fn judge(&self) -> Judgement {
        let mut judgement = Judgement::ok(if self.listeners.is_empty() {
            "nobody listens to file accesses by fanotify"
        } else {
            ""
        });
        for listener in &self.listeners {
            let Listener {
                process,
                name,
                is_asked,
            } = listener;
            judgement = if *is_asked {
                judgement.and(
                    Level::Warning,
                    &format!(
                        "{name} (process {process}) can be asked before files are opened or read"
                    ),
                    "exclude the place from scanning, or stop the scanner while measuring",
                )
            } else {
                judgement.and(
                    Level::Note,
                    &format!("{name} (process {process}) is told of file accesses"),
                    "see whether it grows busy while measuring: top",
                )
            };
        }
        if self.hidden_processes > 0 {
            let hidden = format!(
                "processes that do not let us look: {}",
                self.hidden_processes
            );
            let advice = "as root nearly all processes can be looked at: sudo sqlitmus doctor";
            let advice = if self.is_root { "" } else { advice };
            judgement = judgement.and(Level::Note, &hidden, advice);
        }
        judgement
    }
}

/// Whether an `fdinfo` text is that of a fanotify group, and then whether accesses wait for it.
fn fanotify_group(text: &str) -> Option<bool> {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("fanotify flags:"))?;
    let flags = line.split_whitespace().next().unwrap_or_default();
    // The kernel writes them in hexadecimal, without a prefix.
    let flags = u64::from_str_radix(flags.trim_start_matches("0x"), 16).unwrap_or(0);
    Some(flags & ASKED != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_told_apart_by_their_class() {
        let group = |flags| format!("pos:\t0\nfanotify flags:{flags} event-flags:8000\n");
        assert_eq!(fanotify_group(&group("0")), Some(false));
        assert_eq!(fanotify_group(&group("3")), Some(false));
        assert_eq!(fanotify_group(&group("16")), Some(true));
        assert_eq!(fanotify_group(&group("8")), Some(true));
        assert_eq!(fanotify_group("pos:\t0\nflags:\t02\n"), None);
    }

    #[test]
    fn listeners_are_found_in_the_processes_files() {
        let root = tempfile::tempdir().expect("temporary directory");
        let process = root.path().join("proc/42");
        std::fs::create_dir_all(process.join("fdinfo")).expect("folders");
        std::fs::write(process.join("comm"), "clamonacc\n").expect("write");
        std::fs::write(process.join("fdinfo/3"), "fanotify flags:4 event-flags:0\n")
            .expect("write");
        std::fs::write(process.join("fdinfo/4"), "pos:\t0\n").expect("write");
        let scanners = Scanners::read(&KernelFiles::below(root.path()));
        assert_eq!(scanners.listeners.len(), 1);
        let judgement = scanners.judge();
        assert_eq!(judgement.level, Level::Warning);
        assert!(judgement.finding.starts_with("clamonacc (process 42)"));
    }

    #[test]
    fn nobody_is_fine_and_hidden_is_said() {
        let mut scanners = Scanners {
            listeners: Vec::new(),
            hidden_processes: 0,
            is_root: false,
        };
        assert_eq!(scanners.judge().level, Level::Ok);
        scanners.hidden_processes = 3;
        assert_eq!(scanners.judge().level, Level::Note);
    }

    /// The real thing: this process listens itself.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_real_group_of_this_process_is_found() {
        // SAFETY: takes two numbers; the descriptor it returns is closed below.
        let descriptor = unsafe { libc::fanotify_init(libc::FAN_CLASS_CONTENT, 0) };
        if descriptor < 0 {
            return;
        }
        let scanners = Scanners::read(&KernelFiles::of_this_machine());
        // SAFETY: the descriptor is ours and used by nobody else.
        unsafe { libc::close(descriptor) };
        let own = std::process::id();
        let found = scanners
            .listeners
            .iter()
            .find(|listener| listener.process == own);
        assert!(
            found.is_some_and(|listener| listener.is_asked),
            "{scanners:?}"
        );
    }
}
