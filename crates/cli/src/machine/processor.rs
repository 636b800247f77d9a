//! Cores: which ones this process may use, which one a single-threaded worker gets and which one the
//! orchestrator, and pinning; and the tie that lets a worker die with its orchestrator.
//!
//! When to pin is left to the orchestrator and the worker. Off Linux nothing can be pinned, and a
//! worker notices the orchestrator's end by the end of its input.

use std::io;

use super::kernel_files::{self, KernelFiles};

/// Why a process could not be pinned or tied to its parent.
#[derive(Debug, thiserror::Error)]
pub enum ProcessorError {
    /// The platform has no way to do it.
    #[error("this platform cannot {action}")]
    Unsupported {
        /// What was to be done, as a verb.
        action: &'static str,
    },
    /// The core does not exist or may not be used.
    #[error("cannot run on core {core}")]
    NoSuchCore {
        /// The core's number.
        core: usize,
        /// The operating system's answer.
        #[source]
        source: io::Error,
    },
    /// The parent ended before the tie was made.
    #[error("the process that started this one has ended")]
    ParentIsGone,
    /// The operating system failed.
    #[error("cannot {action}")]
    Io {
        /// What was being done, as a verb.
        action: &'static str,
        /// The operating system's answer.
        #[source]
        source: io::Error,
    },
}

/// Which cores a run uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoreChoice {
    /// Where single-threaded workers run, one at a time; `None` if nothing can be pinned.
    pub worker: Option<usize>,
    /// Where the orchestrator runs, on another physical core than the worker if there is one;
    /// `None` if there is no second core, and then it stays unpinned.
    pub orchestrator: Option<usize>,
}

impl CoreChoice {
    /// Chooses from the cores that this process may use. Decide once, before pinning anything,
    /// since pinning narrows what is allowed.
    pub fn of_this_machine() -> Self {
        let allowed = allowed_cores().unwrap_or_default();
        choose(&KernelFiles::of_this_machine(), &allowed)
    }
}

/// Chooses the worker's core and the orchestrator's among the allowed ones.
///
/// The worker gets the strongest core (some processors mix sizes), and of equals the last, since
/// interrupts and housekeeping tend to land on the first. The orchestrator gets the first core that
/// shares no execution units with it.
fn choose(files: &KernelFiles, allowed: &[usize]) -> CoreChoice {
    let strength = |&core: &usize| {
        let folder = format!("/sys/devices/system/cpu/cpu{core}");
        files
            .number(format!("{folder}/cpu_capacity"))
            .or_else(|| files.number(format!("{folder}/cpufreq/cpuinfo_max_freq")))
            .unwrap_or(0)
    };
    let Some(worker) = allowed
        .iter()
        .copied()
        .max_by_key(|core| (strength(core), *core))
    else {
        return CoreChoice {
            worker: None,
            orchestrator: None,
        };
    };
    let siblings = files
        .text(format!(
            "/sys/devices/system/cpu/cpu{worker}/topology/thread_siblings_list"
        ))
        .and_then(|text| kernel_files::number_list(&text))
        .unwrap_or_default();
    let others = || allowed.iter().copied().filter(|&core| core != worker);
    let orchestrator = others()
        .find(|core| !siblings.contains(core))
        .or_else(|| others().next());
    CoreChoice {
        worker: Some(worker),
        orchestrator,
    }
}

/// The cores that the calling thread may use, in ascending order.
///
/// # Errors
/// [`ProcessorError::Unsupported`] off Linux.
#[cfg(target_os = "linux")]
pub fn allowed_cores() -> Result<Vec<usize>, ProcessorError> {
    use rustix::thread::{CpuSet, sched_getaffinity};
    let set = sched_getaffinity(None).map_err(|error| ProcessorError::Io {
        action: "ask for the allowed cores",
        source: error.into(),
    })?;
    Ok((0..CpuSet::MAX_CPU)
        .filter(|&core| set.is_set(core))
        .collect())
}

/// Pins the calling thread to one core; threads it starts afterwards are pinned with it, so a
/// process that calls this first is pinned as a whole.
///
/// # Errors
/// [`ProcessorError::NoSuchCore`], or [`ProcessorError::Unsupported`] off Linux.
#[cfg(target_os = "linux")]
pub fn pin_to_core(core: usize) -> Result<(), ProcessorError> {
    use rustix::thread::{CpuSet, sched_setaffinity};
    let no_such_core = |source| ProcessorError::NoSuchCore { core, source };
    if core >= CpuSet::MAX_CPU {
        return Err(no_such_core(io::ErrorKind::InvalidInput.into()));
    }
    let mut set = CpuSet::new();
    set.set(core);
    sched_setaffinity(None, &set).map_err(|error| no_such_core(error.into()))
}

/// Lets the calling thread use these cores, as [`allowed_cores`] has named them before pinning.
///
/// # Errors
/// [`ProcessorError::NoSuchCore`], or [`ProcessorError::Unsupported`] off Linux.
#[cfg(target_os = "linux")]
pub fn use_cores(cores: &[usize]) -> Result<(), ProcessorError> {
    use rustix::thread::{CpuSet, sched_setaffinity};
    let mut set = CpuSet::new();
    for core in cores.iter().filter(|core| **core < CpuSet::MAX_CPU) {
        set.set(*core);
    }
    let core = cores.first().copied().unwrap_or(0);
    sched_setaffinity(None, &set).map_err(|error| ProcessorError::NoSuchCore {
        core,
        source: error.into(),
    })
}

/// Lets the kernel kill this process when its parent ends. To be called first thing in a worker, with
/// the orchestrator's process number as the orchestrator gave it: if the parent ended before the tie
/// was made no signal ever comes, and only that number tells.
///
/// The tie is to the *thread* that started the process, so the orchestrator must start workers from
/// a thread that lives as long as it does.
///
/// # Errors
/// [`ProcessorError::ParentIsGone`], upon which the worker is to end; or
/// [`ProcessorError::Unsupported`] off Linux, where the end of the worker's input has to do.
#[cfg(target_os = "linux")]
pub fn die_with_parent(parent_process: u32) -> Result<(), ProcessorError> {
    use rustix::process::{Signal, getppid, set_parent_process_death_signal};
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(|error| ProcessorError::Io {
        action: "tie this process to its parent",
        source: error.into(),
    })?;
    // An orphan's parent is another process, or none that is visible in its namespace.
    let parent = getppid().map(|process| process.as_raw_nonzero().get());
    if parent.and_then(|process| u32::try_from(process).ok()) != Some(parent_process) {
        return Err(ProcessorError::ParentIsGone);
    }
    Ok(())
}

/// The cores that the calling thread may use: not known on this platform.
///
/// # Errors
/// Always [`ProcessorError::Unsupported`].
#[cfg(not(target_os = "linux"))]
pub fn allowed_cores() -> Result<Vec<usize>, ProcessorError> {
    Err(ProcessorError::Unsupported {
        action: "tell the allowed cores",
    })
}

/// Lets the calling thread use these cores: not possible on this platform.
///
/// # Errors
/// Always [`ProcessorError::Unsupported`].
#[cfg(not(target_os = "linux"))]
pub fn use_cores(_cores: &[usize]) -> Result<(), ProcessorError> {
    Err(ProcessorError::Unsupported {
        action: "choose cores for a thread",
    })
}

/// Pins the calling thread to one core: not possible on this platform.
///
/// # Errors
/// Always [`ProcessorError::Unsupported`].
#[cfg(not(target_os = "linux"))]
pub fn pin_to_core(_core: usize) -> Result<(), ProcessorError> {
    Err(ProcessorError::Unsupported {
        action: "pin a thread to a core",
    })
}

/// Lets the kernel kill this process when its parent ends: not possible on this platform.
///
/// # Errors
/// Always [`ProcessorError::Unsupported`].
#[cfg(not(target_os = "linux"))]
pub fn die_with_parent(_parent_process: u32) -> Result<(), ProcessorError> {
    Err(ProcessorError::Unsupported {
        action: "tie a process to its parent",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(files: &[(&str, &str)]) -> (tempfile::TempDir, KernelFiles) {
        let root = tempfile::tempdir().expect("temporary directory");
        for (path, text) in files {
            let path = root.path().join("sys/devices/system/cpu").join(path);
            std::fs::create_dir_all(path.parent().expect("parent")).expect("folders");
            std::fs::write(path, text).expect("write");
        }
        let files = KernelFiles::below(root.path());
        (root, files)
    }

    #[test]
    fn the_orchestrator_avoids_the_workers_sibling() {
        let siblings = [
            ("cpu3/topology/thread_siblings_list", "2-3"),
            ("cpu2/topology/thread_siblings_list", "2-3"),
        ];
        let (_root, files) = machine(&siblings);
        let choice = choose(&files, &[1, 2, 3]);
        assert_eq!((choice.worker, choice.orchestrator), (Some(3), Some(1)));
        // With nothing but siblings, a sibling is better than the same core.
        let choice = choose(&files, &[2, 3]);
        assert_eq!((choice.worker, choice.orchestrator), (Some(3), Some(2)));
    }

    #[test]
    fn the_worker_gets_the_strongest_core() {
        let (_root, files) = machine(&[
            ("cpu0/cpu_capacity", "1024"),
            ("cpu1/cpu_capacity", "1024"),
            ("cpu2/cpu_capacity", "400"),
        ]);
        let choice = choose(&files, &[0, 1, 2]);
        assert_eq!((choice.worker, choice.orchestrator), (Some(1), Some(0)));
    }

    #[test]
    fn one_core_or_none_leaves_the_orchestrator_unpinned() {
        let (_root, files) = machine(&[]);
        let choice = choose(&files, &[4]);
        assert_eq!((choice.worker, choice.orchestrator), (Some(4), None));
        assert_eq!(choose(&files, &[]).worker, None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_pinned_thread_stays_on_its_core() {
        // In a thread of its own: pinning cannot be taken back through this module.
        let pinned = std::thread::spawn(|| {
            let choice = CoreChoice::of_this_machine();
            let core = choice.worker.expect("a core");
            pin_to_core(core).expect("pin");
            assert_eq!(rustix::thread::sched_getcpu(), core);
            assert_eq!(allowed_cores().expect("allowed"), [core]);
            assert!(pin_to_core(1 << 20).is_err());
            assert!(pin_to_core(1000).is_err());
        });
        pinned.join().expect("thread");
    }

    /// Which part a process that runs one of the tests below plays; the test itself has none.
    #[cfg(target_os = "linux")]
    const ROLE: &str = "SQLITMUS_TEST_PROCESS_ROLE";

    /// A process that runs the current test again in a given role.
    #[cfg(target_os = "linux")]
    fn in_role(role: &str) -> std::process::Command {
        let name = std::thread::current().name().map(str::to_owned);
        let program = std::env::current_exe().expect("program");
        let mut command = std::process::Command::new(program);
        command
            .args([
                "--exact",
                &name.expect("name"),
                "--test-threads=1",
                "--nocapture",
            ])
            .env(ROLE, role)
            .env("PARENT", std::process::id().to_string())
            .stdout(std::process::Stdio::null());
        command
    }

    #[cfg(target_os = "linux")]
    fn given_parent() -> u32 {
        let parent = std::env::var("PARENT").expect("parent");
        parent.parse().expect("number")
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_process_that_is_not_our_parent_is_gone() {
        if std::env::var_os(ROLE).is_some() {
            die_with_parent(given_parent()).expect("the parent lives");
            let gone = die_with_parent(u32::MAX).expect_err("no such parent");
            assert!(matches!(gone, ProcessorError::ParentIsGone));
            return;
        }
        assert!(in_role("child").status().expect("child").success());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_tied_process_dies_with_its_parent() {
        use std::io::{Read, Write};
        match std::env::var(ROLE).as_deref() {
            Ok("worker") => {
                die_with_parent(given_parent()).expect("the parent lives");
                io::stderr().write_all(b"R").expect("stderr");
                // Long enough for any machine; if the tie fails this ends the test with an L.
                std::thread::sleep(std::time::Duration::from_secs(20));
                io::stderr().write_all(b"L").expect("stderr");
            }
            Ok(_) => {
                in_role("worker").status().expect("worker");
            }
            Err(_) => {
                let mut orchestrator = in_role("orchestrator");
                orchestrator.stderr(std::process::Stdio::piped());
                let mut orchestrator = orchestrator.spawn().expect("orchestrator");
                let mut said = orchestrator.stderr.take().expect("stderr");
                let mut first = [0];
                said.read_exact(&mut first).expect("the worker is ready");
                orchestrator.kill().expect("kill");
                orchestrator.wait().expect("wait");
                // Ends only when the worker, too, has closed its end.
                let mut rest = String::new();
                said.read_to_string(&mut rest).expect("read");
                assert_eq!((first, rest.as_str()), ([b'R'], ""));
            }
        }
    }
}
