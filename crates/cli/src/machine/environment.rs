//! The machine as part of the result: an ordered list of facts, each a name and a text, as it is
//! stored in a run file.
//!
//! Whatever a platform, a container or missing rights do not show is the text `unknown`; reading
//! never fails. What a fact means for the numbers, and whether two environments are alike enough to
//! be compared, is left to the callers; the disk is `place`'s business.

use super::control_group;
use super::kernel_files::{self, KernelFiles};
use super::processor;
use super::resources;
use rustix::time::ClockId;

pub use sqlitmus_core::environment::{NOT_EXPOSED, UNKNOWN, fact};

/// What is known of a machine at one moment: names and texts, in a fixed order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment {
    facts: Vec<(String, String)>,
}

impl Environment {
    /// The machine this process runs on, now. To be read before anything is pinned, since pinning
    /// narrows the allowed cores.
    pub fn read() -> Self {
        Self::read_from(&KernelFiles::of_this_machine())
    }

    /// The machine whose kernel files are given. What is asked by system call (kernel, clock, user,
    /// allowed cores) is always this process's own.
    pub fn read_from(files: &KernelFiles) -> Self {
        let memory = files.text("/proc/meminfo").unwrap_or_default();
        let meminfo_bytes = |name| known(meminfo_bytes(&memory, name));
        let facts = [
            (fact::CPU_MODEL, known(cpu_model(files))),
            (fact::CPU_ARCHITECTURE, std::env::consts::ARCH.to_owned()),
            (fact::CPU_LOGICAL_CORES, known(logical_cores(files))),
            (fact::CPU_ALLOWED_CORES, known(allowed_cores())),
            (
                fact::CPU_LIMIT_MILLICORES,
                control_group::processor_limit_millicores(files).to_string(),
            ),
            (fact::CPU_GOVERNOR, governor(files)),
            (fact::MEMORY_TOTAL_BYTES, meminfo_bytes("MemTotal")),
            (fact::MEMORY_AVAILABLE_BYTES, meminfo_bytes("MemAvailable")),
            (
                fact::MEMORY_LIMIT_BYTES,
                control_group::memory_limit_bytes(files).to_string(),
            ),
            (fact::SWAP_TOTAL_BYTES, meminfo_bytes("SwapTotal")),
            (fact::SWAP_FREE_BYTES, meminfo_bytes("SwapFree")),
            (fact::TRANSPARENT_HUGE_PAGES, known(huge_pages(files))),
            (fact::PAGE_BYTES, rustix::param::page_size().to_string()),
            (
                fact::DIRTY_PERCENT,
                known(files.number("/proc/sys/vm/dirty_ratio")),
            ),
            (
                fact::DIRTY_BACKGROUND_PERCENT,
                known(files.number("/proc/sys/vm/dirty_background_ratio")),
            ),
            (fact::KERNEL, kernel()),
            (fact::OPERATING_SYSTEM, known(operating_system(files))),
            (fact::VIRTUALISATION, virtualisation(files)),
            (fact::LOAD_AVERAGE, known(load_average(files))),
            (fact::STEAL_NS, known(resources::machine_steal_ns(files))),
            (fact::RUNNING_AS_ROOT, running_as_root()),
            (fact::CLOCK_SOURCE, known(clock_source(files))),
            (fact::CLOCK_RESOLUTION_NS, clock_resolution_ns().to_string()),
        ];
        Self {
            facts: facts.map(|(name, value)| (name.to_owned(), value)).into(),
        }
    }

    /// All facts, in their order.
    pub fn facts(&self) -> &[(String, String)] {
        &self.facts
    }

    /// The text of a fact, `unknown` if there is none of that name.
    pub fn value(&self, name: &str) -> &str {
        self.facts
            .iter()
            .find(|(found, _)| found == name)
            .map_or(UNKNOWN, |(_, value)| value)
    }

    /// A fact as a whole number; `None` if it is unknown or no number, such as the limit `none`.
    pub fn number(&self, name: &str) -> Option<u64> {
        self.value(name).parse().ok()
    }

    /// Memory that stores and page cache may take without swapping, in bytes: what the machine has
    /// available, and no more than the control group allows.
    pub fn memory_usable_bytes(&self) -> Option<u64> {
        let available = self.number(fact::MEMORY_AVAILABLE_BYTES);
        let limit = self.number(fact::MEMORY_LIMIT_BYTES);
        available.into_iter().chain(limit).min()
    }
}

/// What `virtualisation` says where nothing hints at a hypervisor.
pub const NO_HYPERVISOR: &str = "none seen";

fn known(value: Option<impl ToString>) -> String {
    value.map_or_else(|| UNKNOWN.to_owned(), |value| value.to_string())
}

/// A value of `/proc/meminfo`, which counts in units of 1,024 bytes though it writes `kB`.
fn meminfo_bytes(meminfo: &str, name: &str) -> Option<u64> {
    let value = kernel_files::line_value(meminfo, name)?;
    let kibibytes: u64 = value.strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

fn cpu_model(files: &KernelFiles) -> Option<String> {
    let cpuinfo = files.text("/proc/cpuinfo").unwrap_or_default();
    // x86 and some others write `model name`; ARM names only the implementer and part by number,
    // where the board's name from the device tree says more.
    ["model name", "cpu model", "uarch"]
        .iter()
        .find_map(|name| kernel_files::line_value(&cpuinfo, name).map(str::to_owned))
        .or_else(|| files.text("/proc/device-tree/model"))
        .or_else(|| {
            let implementer = kernel_files::line_value(&cpuinfo, "CPU implementer")?;
            let part = kernel_files::line_value(&cpuinfo, "CPU part")?;
            Some(format!("implementer {implementer} part {part}"))
        })
}

fn logical_cores(files: &KernelFiles) -> Option<usize> {
    files
        .text("/sys/devices/system/cpu/online")
        .and_then(|text| kernel_files::number_list(&text))
        .map(|cores| cores.len())
        .or_else(|| {
            let cpuinfo = files.text("/proc/cpuinfo")?;
            let is_core = |line: &&str| line.starts_with("processor");
            Some(cpuinfo.lines().filter(is_core).count())
        })
        .or_else(|| std::thread::available_parallelism().ok().map(usize::from))
        .filter(|&cores| cores > 0)
}

fn allowed_cores() -> Option<usize> {
    let cores = processor::allowed_cores().ok()?.len();
    (cores > 0).then_some(cores)
}

fn governor(files: &KernelFiles) -> String {
    let online = files.text("/sys/devices/system/cpu/online");
    let Some(cores) = online.and_then(|text| kernel_files::number_list(&text)) else {
        return UNKNOWN.to_owned();
    };
    let mut governors: Vec<String> = cores
        .iter()
        .filter_map(|core| {
            files.text(format!(
                "/sys/devices/system/cpu/cpu{core}/cpufreq/scaling_governor"
            ))
        })
        .collect();
    governors.sort();
    governors.dedup();
    if governors.is_empty() {
        return NOT_EXPOSED.to_owned();
    }
    governors.join(", ")
}

fn huge_pages(files: &KernelFiles) -> Option<String> {
    let text = files.text("/sys/kernel/mm/transparent_hugepage/enabled")?;
    let (_, chosen) = text.split_once('[')?;
    Some(chosen.split_once(']')?.0.to_owned())
}

fn kernel() -> String {
    let names = rustix::system::uname();
    format!(
        "{} {}",
        names.sysname().to_string_lossy(),
        names.release().to_string_lossy()
    )
}

fn operating_system(files: &KernelFiles) -> Option<String> {
    let text = files
        .text("/etc/os-release")
        .or_else(|| files.text("/usr/lib/os-release"))?;
    let value = |name: &str| {
        let mut values = text.lines().filter_map(|line| line.split_once('='));
        let (_, value) = values.find(|(found, _)| *found == name)?;
        let value = value.trim().trim_matches(['"', '\'']);
        (!value.is_empty()).then(|| value.to_owned())
    };
    value("PRETTY_NAME").or_else(|| value("NAME"))
}

/// A hint, not a proof: a hypervisor can hide, and on other processors than x86 only the firmware's
/// names tell.
fn virtualisation(files: &KernelFiles) -> String {
    let firmware = [
        "/sys/class/dmi/id/sys_vendor",
        "/sys/class/dmi/id/product_name",
    ]
    .iter()
    .filter_map(|path| files.text(path))
    .collect::<Vec<_>>()
    .join(" ");
    let name = files
        .text("/sys/hypervisor/type")
        .or_else(|| (!firmware.is_empty()).then(|| firmware.clone()));
    let cpuinfo = files.text("/proc/cpuinfo").unwrap_or_default();
    let flags = kernel_files::line_value(&cpuinfo, "flags");
    let has_flag = flags.map(|flags| flags.split_whitespace().any(|flag| flag == "hypervisor"));
    match (has_flag, name) {
        (Some(true), Some(name)) => format!("virtual machine ({name})"),
        (Some(true), None) => "virtual machine (hypervisor not named)".to_owned(),
        (Some(false), _) => NO_HYPERVISOR.to_owned(),
        (None, Some(name)) if is_virtual_product(&name) => format!("virtual machine ({name})"),
        (None, Some(_)) => NO_HYPERVISOR.to_owned(),
        (None, None) => UNKNOWN.to_owned(),
    }
}

/// Whether a firmware's vendor and product are those of a virtual machine.
fn is_virtual_product(name: &str) -> bool {
    const VIRTUAL: [&str; 9] = [
        "kvm",
        "qemu",
        "virtual",
        "vmware",
        "xen",
        "hvm domu",
        "amazon ec2",
        "google compute engine",
        "openstack",
    ];
    let name = name.to_lowercase();
    VIRTUAL.iter().any(|hint| name.contains(hint)) && !name.contains("metal")
}

fn load_average(files: &KernelFiles) -> Option<String> {
    let text = files.text("/proc/loadavg")?;
    let averages: Vec<&str> = text.split_whitespace().take(3).collect();
    (averages.len() == 3).then(|| averages.join(" "))
}

fn running_as_root() -> String {
    let is_root = rustix::process::geteuid().is_root();
    if is_root { "yes" } else { "no" }.to_owned()
}

fn clock_source(files: &KernelFiles) -> Option<String> {
    files.text("/sys/devices/system/clocksource/clocksource0/current_clocksource")
}

fn clock_resolution_ns() -> u64 {
    let resolution = rustix::time::clock_getres(ClockId::Monotonic);
    let seconds = u64::try_from(resolution.tv_sec).unwrap_or(0);
    let nanoseconds = u64::try_from(resolution.tv_nsec).unwrap_or(0);
    seconds * 1_000_000_000 + nanoseconds
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(files: &[(&str, &str)]) -> (tempfile::TempDir, Environment) {
        let root = tempfile::tempdir().expect("temporary directory");
        for (path, text) in files {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().expect("parent")).expect("folders");
            std::fs::write(path, text).expect("write");
        }
        let environment = Environment::read_from(&KernelFiles::below(root.path()));
        (root, environment)
    }

    #[test]
    fn a_machine_that_shows_nothing_is_unknown_but_no_error() {
        let (_root, environment) = machine(&[]);
        for name in [
            fact::CPU_MODEL,
            fact::MEMORY_TOTAL_BYTES,
            fact::MEMORY_LIMIT_BYTES,
            fact::CPU_GOVERNOR,
            fact::STEAL_NS,
            fact::VIRTUALISATION,
            fact::OPERATING_SYSTEM,
        ] {
            assert_eq!(environment.value(name), UNKNOWN, "{name}");
        }
        assert_eq!(environment.memory_usable_bytes(), None);
    }

    #[test]
    fn a_known_machine_shows_its_facts() {
        let (_root, environment) = machine(&[
            (
                "proc/cpuinfo",
                "processor : 0\nmodel name : Intel(R) Core(TM) i7-4770K CPU @ 3.50GHz\n\
                 flags : fpu hypervisor\nprocessor : 1\n",
            ),
            ("sys/devices/system/cpu/online", "0-1\n"),
            (
                "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
                "powersave\n",
            ),
            (
                "sys/devices/system/cpu/cpu1/cpufreq/scaling_governor",
                "performance\n",
            ),
            (
                "proc/meminfo",
                "MemTotal: 24684092 kB\nMemAvailable: 20000000 kB\nSwapTotal: 0 kB\n",
            ),
            ("proc/self/cgroup", "0::/job\n"),
            (
                "proc/self/mountinfo",
                "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
            ),
            ("sys/fs/cgroup/job/memory.max", "2147483648\n"),
            ("etc/os-release", "NAME=x\nPRETTY_NAME=\"Debian 12\"\n"),
            (
                "sys/kernel/mm/transparent_hugepage/enabled",
                "always [madvise] never\n",
            ),
            ("sys/class/dmi/id/product_name", "KVM Guest\n"),
            ("proc/loadavg", "0.10 0.20 0.30 1/99 1234\n"),
        ]);
        assert_eq!(environment.number(fact::CPU_LOGICAL_CORES), Some(2));
        assert_eq!(
            environment.value(fact::CPU_GOVERNOR),
            "performance, powersave"
        );
        assert_eq!(
            environment.number(fact::MEMORY_TOTAL_BYTES),
            Some(24_684_092 * 1024)
        );
        assert_eq!(environment.memory_usable_bytes(), Some(2 << 30));
        assert_eq!(environment.value(fact::OPERATING_SYSTEM), "Debian 12");
        assert_eq!(environment.value(fact::TRANSPARENT_HUGE_PAGES), "madvise");
        assert_eq!(environment.value(fact::LOAD_AVERAGE), "0.10 0.20 0.30");
        assert_eq!(
            environment.value(fact::VIRTUALISATION),
            "virtual machine (KVM Guest)"
        );
    }

    #[test]
    fn this_machine_has_facts_in_their_order() {
        let environment = Environment::read();
        assert_eq!(environment.facts()[0].0, fact::CPU_MODEL);
        assert!(environment.number(fact::CLOCK_RESOLUTION_NS) >= Some(1));
    }

    #[test]
    fn metal_of_a_cloud_is_no_virtual_machine() {
        assert!(is_virtual_product("Amazon EC2 m5.large"));
        assert!(!is_virtual_product("Amazon EC2 m5.metal"));
    }
}
