//! What the machine does while nothing is measured: other programs, the hypervisor's other guests,
//! swapping. Seen between two moments.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::{Check, Judgement, Level};
use crate::machine::environment::{Environment, NO_HYPERVISOR, fact};
use crate::machine::kernel_files::KernelFiles;

/// The check of other load.
pub const LOAD: Check = Check {
    name: "load",
    why: "Other programs take the cores, the caches and the disk at moments of their own, so that arms \
          measured at different moments meet different machines.",
};

/// The check of steal time.
pub const STEAL: Check = Check {
    name: "virtualisation",
    why: "A hypervisor can give the core to another guest in the middle of an operation, and its host \
          caches what is called a disk here.",
};

/// Programs that are named, at the most.
const NAMED: usize = 3;
/// A program that takes less than this share of a core is not named.
const NAMED_CORES: f64 = 0.02;

/// Other load up to this many cores is what an idle system does.
const LOAD_NOTE_CORES: f64 = 0.05;
/// From here on it shows in the numbers.
const LOAD_WARNING_CORES: f64 = 0.15;
/// From this share of all cores on, the worker's core is likely to be among those that are taken.
const LOAD_PROBLEM_SHARE: f64 = 0.25;

/// A stolen share of core time from which on it shows in the numbers.
const STEAL_WARNING: f64 = 0.01;
/// A stolen share that no repetition averages out within minutes.
const STEAL_PROBLEM: f64 = 0.05;

/// Counters at one moment.
#[derive(Clone, Debug)]
pub struct Moment {
    at: Instant,
    busy_ticks: u64,
    steal_ticks: u64,
    processes: BTreeMap<u32, Process>,
    swapped_pages: Option<u64>,
}

/// A process at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Process {
    /// Its name, which it may change.
    name: String,
    /// When it began, in ticks since boot: with its number, its identity.
    began: u64,
    /// Processor time so far, in ticks.
    ticks: u64,
}

impl Moment {
    /// Now.
    #[must_use]
    pub fn now(files: &KernelFiles) -> Self {
        let ticks: Vec<u64> = files
            .text("/proc/stat")
            .and_then(|text| {
                let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
                line.split_whitespace()
                    .map(|word| word.parse().ok())
                    .collect()
            })
            .unwrap_or_default();
        let tick = |index: usize| ticks.get(index).copied().unwrap_or(0);
        let vmstat = files.text("/proc/vmstat");
        Self {
            at: Instant::now(),
            // user, nice, system, irq, softirq; the others are waiting, stolen, or counted in these.
            busy_ticks: [0, 1, 2, 5, 6].into_iter().map(tick).sum(),
            steal_ticks: tick(7),
            processes: processes(files),
            swapped_pages: vmstat.and_then(|text| swapped_pages(&text)),
        }
    }
}

/// Processor time of all processes, in ticks.
fn processes(files: &KernelFiles) -> BTreeMap<u32, Process> {
    let Ok(folders) = std::fs::read_dir(files.path("/proc")) else {
        return BTreeMap::new();
    };
    folders
        .filter_map(|folder| {
            let process: u32 = folder.ok()?.file_name().to_str()?.parse().ok()?;
            let stat = files.text(format!("/proc/{process}/stat"))?;
            Some((process, parsed(&stat)?))
        })
        .collect()
}

/// From `/proc/pid/stat`, see proc(5): the name stands in parentheses and may contain some itself.
fn parsed(stat: &str) -> Option<Process> {
    let (start, rest) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    // The first of them is the third field of the file.
    let number = |field: usize| -> Option<u64> { fields.get(field - 3)?.parse().ok() };
    Some(Process {
        name: start.split_once('(')?.1.to_owned(),
        began: number(22)?,
        ticks: number(14)? + number(15)?,
    })
}

fn swapped_pages(vmstat: &str) -> Option<u64> {
    let value = |name: &str| -> Option<u64> {
        let mut lines = vmstat.lines().filter_map(|line| line.split_once(' '));
        lines
            .find(|(found, _)| *found == name)?
            .1
            .trim()
            .parse()
            .ok()
    };
    Some(value("pswpin")? + value("pswpout")?)
}

/// A program and the share of a core it took.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BusyProgram {
    /// Process number.
    pub process: u32,
    /// Its name.
    pub name: String,
    /// Cores it kept busy.
    pub cores: f64,
}

/// What happened between two moments.
#[derive(Clone, Debug, Serialize)]
pub struct Activity {
    /// How long it was looked at, in milliseconds.
    pub window_ms: u64,
    /// Logical cores of the machine.
    pub cores: usize,
    /// Cores that others kept busy.
    pub busy_cores: f64,
    /// Load average over 1, 5 and 15 minutes.
    pub load_average: String,
    /// Who took most, most first.
    pub programs: Vec<BusyProgram>,
    /// Share of core time that the hypervisor gave to others.
    pub steal_share: f64,
    /// Whether this is a virtual machine, and which.
    pub virtualisation: String,
    /// Pages that went to or came from swap; `None` if it is not told.
    #[serde(skip)]
    pub swapped_pages: Option<u64>,
}

impl Activity {
    /// Looks on for some time.
    #[must_use]
    pub fn watch(files: &KernelFiles, environment: &Environment, window: Duration) -> Self {
        let before = Moment::now(files);
        std::thread::sleep(window);
        let after = Moment::now(files);
        Self::between(&before, &after, environment, std::process::id())
    }

    /// What happened between two moments, apart from what one process (ourselves) did.
    #[must_use]
    pub fn between(
        before: &Moment,
        after: &Moment,
        environment: &Environment,
        own_process: u32,
    ) -> Self {
        let window = after.at.duration_since(before.at);
        let ticks_per_second = rustix::param::clock_ticks_per_second() as f64;
        let as_cores =
            |ticks: u64| ticks as f64 / ticks_per_second / window.as_secs_f64().max(1e-9);
        let taken = |process: &u32| -> Option<(&str, u64)> {
            let now = after.processes.get(process)?;
            // One that has started meanwhile took all of its time now.
            let then = before.processes.get(process);
            let then = then.filter(|then| then.began == now.began);
            let ticks = now.ticks.saturating_sub(then.map_or(0, |then| then.ticks));
            Some((now.name.as_str(), ticks))
        };
        let own = taken(&own_process).map_or(0, |(_, ticks)| ticks);
        let busy = after.busy_ticks.saturating_sub(before.busy_ticks);
        let mut programs: Vec<BusyProgram> = after
            .processes
            .keys()
            .filter(|process| **process != own_process)
            .filter_map(|process| {
                let (name, ticks) = taken(process)?;
                Some(BusyProgram {
                    process: *process,
                    name: name.to_owned(),
                    cores: as_cores(ticks),
                })
            })
            .filter(|program| program.cores >= NAMED_CORES)
            .collect();
        programs.sort_by(|one, two| two.cores.total_cmp(&one.cores));
        programs.truncate(NAMED);
        let cores = environment
            .number(fact::CPU_LOGICAL_CORES)
            .unwrap_or(1)
            .max(1) as usize;
        let stolen = after.steal_ticks.saturating_sub(before.steal_ticks);
        Self {
            window_ms: u64::try_from(window.as_millis()).unwrap_or(u64::MAX),
            cores,
            busy_cores: as_cores(busy.saturating_sub(own)),
            load_average: environment.value(fact::LOAD_AVERAGE).to_owned(),
            programs,
            steal_share: as_cores(stolen) / cores as f64,
            virtualisation: environment.value(fact::VIRTUALISATION).to_owned(),
            swapped_pages: after
                .swapped_pages
                .zip(before.swapped_pages)
                .map(|(now, then)| now.saturating_sub(then)),
        }
    }

    /// What follows from the load of others.
    #[must_use]
    pub fn judge_load(&self) -> Judgement {
        let mut finding = format!(
            "others keep {:.2} of {} cores busy, load average {}",
            self.busy_cores, self.cores, self.load_average
        );
        let named: Vec<String> = self
            .programs
            .iter()
            .map(|program| {
                format!(
                    "{} (process {}) {:.2}",
                    program.name, program.process, program.cores
                )
            })
            .collect();
        if !named.is_empty() {
            finding.push_str(&format!("; most by {}", named.join(", ")));
        }
        let level = if self.busy_cores > self.cores as f64 * LOAD_PROBLEM_SHARE {
            Level::Problem
        } else if self.busy_cores > LOAD_WARNING_CORES {
            Level::Warning
        } else if self.busy_cores > LOAD_NOTE_CORES {
            Level::Note
        } else {
            return Judgement::ok(finding);
        };
        let advice = "stop what is not needed, or wait until it is done; `top` shows more";
        Judgement::new(level, finding, advice)
    }

    /// What follows from the hypervisor.
    #[must_use]
    pub fn judge_steal(&self) -> Judgement {
        let finding = format!(
            "{}; {:.1}% of the time stolen",
            self.virtualisation,
            self.steal_share * 100.0
        );
        let advice =
            "measure at another hour, or on a machine or an instance type with cores of its own";
        if self.steal_share > STEAL_PROBLEM {
            Judgement::new(Level::Problem, finding, advice)
        } else if self.steal_share > STEAL_WARNING {
            Judgement::new(Level::Warning, finding, advice)
        } else if self.virtualisation == NO_HYPERVISOR {
            Judgement::ok(finding)
        } else {
            Judgement::new(
                Level::Note,
                finding,
                "what is measured here holds for this virtual machine, its disk included; say so with the numbers",
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn activity(busy_cores: f64, steal_share: f64) -> Activity {
        Activity {
            window_ms: 1000,
            cores: 4,
            busy_cores,
            load_average: "0.10 0.20 0.30".to_owned(),
            programs: Vec::new(),
            steal_share,
            virtualisation: NO_HYPERVISOR.to_owned(),
            swapped_pages: None,
        }
    }

    #[test]
    fn load_and_steal_are_judged() {
        let load = |cores| activity(cores, 0.0).judge_load().level;
        assert_eq!(
            [load(0.01), load(0.1), load(0.5), load(1.5)],
            [Level::Ok, Level::Note, Level::Warning, Level::Problem]
        );
        let steal = |share| activity(0.0, share).judge_steal().level;
        assert_eq!(
            [steal(0.001), steal(0.02), steal(0.2)],
            [Level::Ok, Level::Warning, Level::Problem]
        );
        let mut guest = activity(0.0, 0.0);
        guest.virtualisation = "virtual machine (KVM)".to_owned();
        assert_eq!(guest.judge_steal().level, Level::Note);
    }

    #[test]
    fn names_with_parentheses_are_read() {
        let stat = "7 (a (b) c) R 1 1 1 0 -1 4 1 0 0 0 30 12 0 0 20 0 1 0 5 1 1";
        let process = parsed(stat).expect("all fields");
        assert_eq!(
            (process.name.as_str(), process.ticks, process.began),
            ("a (b) c", 42, 5)
        );
        assert_eq!(parsed("7 (short) R 1"), None);
    }

    #[test]
    fn our_own_time_is_taken_out() {
        let second = rustix::param::clock_ticks_per_second();
        let at = Instant::now();
        let process = |name: &str, ticks| Process {
            name: name.to_owned(),
            began: 5,
            ticks,
        };
        let moment = |at, busy_ticks, own: u64, other: (&str, u64), steal_ticks| Moment {
            at,
            busy_ticks,
            steal_ticks,
            processes: BTreeMap::from([(1, process("us", own)), (2, process(other.0, other.1))]),
            swapped_pages: Some(5),
        };
        let before = moment(at, 0, 0, ("other", 10 * second), 0);
        let later = at + Duration::from_secs(2);
        // It has changed its name, as kernel threads do.
        let other = ("other-busy", 12 * second);
        let after = moment(later, 3 * second, second, other, second);
        let seen = Activity::between(&before, &after, &Environment::default(), 1);
        assert!((seen.busy_cores - 1.0).abs() < 1e-9, "{seen:?}");
        assert!((seen.steal_share - 0.5).abs() < 1e-9, "{seen:?}");
        assert_eq!(seen.programs.len(), 1);
        assert_eq!(seen.programs[0].name, "other-busy");
        assert!((seen.programs[0].cores - 1.0).abs() < 1e-9, "{seen:?}");
        assert_eq!(seen.swapped_pages, Some(0));
    }

    #[test]
    fn swapping_is_read() {
        assert_eq!(swapped_pages("x 1\npswpin 3\npswpout 4\n"), Some(7));
        assert_eq!(swapped_pages("pswpin 3\n"), None);
    }
}
