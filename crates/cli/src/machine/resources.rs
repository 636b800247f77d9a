//! What a process used between two moments: processor time, page faults, context switches, bytes and
//! calls read and written, and what the hypervisor took from the machine meanwhile.
//!
//! A counter that the platform or kernel does not give is `None`. Dividing by operations and judging
//! are left to callers.

use std::mem::MaybeUninit;

use super::kernel_files::KernelFiles;

/// Counters of the calling process at one moment. They mean something only as a difference.
#[derive(Clone, Debug)]
pub struct ResourceSnapshot {
    usage: Option<Usage>,
    peak_memory_bytes: Option<u64>,
    io: Option<IoCounters>,
    machine_steal_ns: Option<u64>,
    /// What taking this snapshot read before its own I/O counters were taken.
    own_reads_before: OwnReads,
    /// What taking this snapshot read that its own I/O counters do not show yet.
    own_reads_after: OwnReads,
}

/// What a process used between two snapshots; all its threads together, and children it waited for
/// only in the I/O counters (the kernel adds theirs).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resources {
    /// Processor time in user mode, in nanoseconds.
    pub user_cpu_ns: Option<u64>,
    /// Processor time in the kernel, in nanoseconds.
    pub system_cpu_ns: Option<u64>,
    /// Page faults served from memory.
    pub minor_faults: Option<u64>,
    /// Page faults that waited for a device.
    pub major_faults: Option<u64>,
    /// Times the process gave up its core, as when waiting.
    pub voluntary_context_switches: Option<u64>,
    /// Times the process was taken off its core.
    pub involuntary_context_switches: Option<u64>,
    /// The largest resident memory of the process, in bytes, since its program started or since
    /// [`reset_peak_memory`]; no difference.
    pub peak_memory_bytes: Option<u64>,
    /// Bytes that read calls returned, cached or not; reads through a mapping do not count.
    pub read_call_bytes: Option<u64>,
    /// Bytes handed to write calls.
    pub write_call_bytes: Option<u64>,
    /// Read calls.
    pub read_calls: Option<u64>,
    /// Write calls.
    pub write_calls: Option<u64>,
    /// Bytes that had to come from a device, also for page faults and read-ahead.
    pub device_read_bytes: Option<u64>,
    /// Bytes of pages made dirty, which will go to a device.
    pub device_write_bytes: Option<u64>,
    /// Bytes of dirty pages that were discarded before they went to a device.
    pub cancelled_write_bytes: Option<u64>,
    /// Time the hypervisor gave to others while a core was ready to run; all cores of the machine.
    pub machine_steal_ns: Option<u64>,
}

impl Resources {
    /// Names and values of what the kernel told, in a fixed order.
    pub fn named(&self) -> impl Iterator<Item = (&'static str, u64)> {
        [
            ("user_cpu_ns", self.user_cpu_ns),
            ("system_cpu_ns", self.system_cpu_ns),
            ("minor_faults", self.minor_faults),
            ("major_faults", self.major_faults),
            (
                "voluntary_context_switches",
                self.voluntary_context_switches,
            ),
            (
                "involuntary_context_switches",
                self.involuntary_context_switches,
            ),
            ("peak_memory_bytes", self.peak_memory_bytes),
            ("read_call_bytes", self.read_call_bytes),
            ("write_call_bytes", self.write_call_bytes),
            ("read_calls", self.read_calls),
            ("write_calls", self.write_calls),
            ("device_read_bytes", self.device_read_bytes),
            ("device_write_bytes", self.device_write_bytes),
            ("cancelled_write_bytes", self.cancelled_write_bytes),
            ("machine_steal_ns", self.machine_steal_ns),
        ]
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
    }
}

impl ResourceSnapshot {
    /// The counters now.
    pub fn now() -> Self {
        let (stat, reads_of_stat) = read_once("/proc/stat");
        let (status, reads_of_status) = read_once("/proc/self/status");
        let own_reads_before = reads_of_stat.plus(reads_of_status);
        let usage = Usage::now();
        let peak_memory_bytes = status
            .as_deref()
            .and_then(peak_memory_bytes)
            .or_else(|| Some(usage.as_ref()?.peak_memory_bytes));
        // Last, and in one call, so that what the snapshot itself reads is known exactly.
        let (io, own_reads_after) = read_once("/proc/self/io");
        Self {
            usage,
            peak_memory_bytes,
            io: io.as_deref().map(IoCounters::parse),
            machine_steal_ns: stat.as_deref().and_then(steal_ns),
            own_reads_before,
            own_reads_after,
        }
    }

    /// What was used since an earlier snapshot of the same process. The snapshots' own reading of
    /// /proc is taken out of the read calls and bytes.
    pub fn since(&self, earlier: &Self) -> Resources {
        let usage = |field: fn(&Usage) -> u64| {
            let (now, then) = (self.usage.as_ref()?, earlier.usage.as_ref()?);
            Some(field(now).saturating_sub(field(then)))
        };
        let io = |field: fn(&IoCounters) -> Option<u64>| {
            let (now, then) = (self.io.as_ref()?, earlier.io.as_ref()?);
            Some(field(now)?.saturating_sub(field(then)?))
        };
        let own_calls = earlier.own_reads_after.calls + self.own_reads_before.calls;
        let own_bytes = earlier.own_reads_after.bytes + self.own_reads_before.bytes;
        let less = |count: Option<u64>, own: u64| Some(count?.saturating_sub(own));
        Resources {
            user_cpu_ns: usage(|usage| usage.user_cpu_ns),
            system_cpu_ns: usage(|usage| usage.system_cpu_ns),
            minor_faults: usage(|usage| usage.minor_faults),
            major_faults: usage(|usage| usage.major_faults),
            voluntary_context_switches: usage(|usage| usage.voluntary_context_switches),
            involuntary_context_switches: usage(|usage| usage.involuntary_context_switches),
            peak_memory_bytes: self.peak_memory_bytes,
            read_call_bytes: less(io(|io| io.read_call_bytes), own_bytes),
            write_call_bytes: io(|io| io.write_call_bytes),
            read_calls: less(io(|io| io.read_calls), own_calls),
            write_calls: io(|io| io.write_calls),
            device_read_bytes: io(|io| io.device_read_bytes),
            device_write_bytes: io(|io| io.device_write_bytes),
            cancelled_write_bytes: io(|io| io.cancelled_write_bytes),
            machine_steal_ns: self
                .machine_steal_ns
                .zip(earlier.machine_steal_ns)
                .map(|(now, then)| now.saturating_sub(then)),
        }
    }
}

/// Forgets the peak of resident memory so far: from now on it is that of what comes, beginning with
/// what is resident now. Returns whether the kernel did so; where it did not, peaks are those since the
/// program started.
pub fn reset_peak_memory() -> bool {
    // proc(5), under /proc/pid/clear_refs: 5 sets the peak to what is resident, since Linux 4.0.
    std::fs::write("/proc/self/clear_refs", "5").is_ok()
}

/// The peak of resident memory in `/proc/self/status`. It begins with the program, while getrusage(2)
/// begins with the process: a process that was started by vfork is given its parent's peak there, which
/// hides every smaller one of its own.
fn peak_memory_bytes(status: &str) -> Option<u64> {
    let value = super::kernel_files::line_value(status, "VmHWM")?;
    let kibibytes: u64 = value.strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

/// Time the hypervisor gave to others while a core of this machine was ready to run, since boot, in
/// nanoseconds; `None` where the kernel does not count it.
pub fn machine_steal_ns(files: &KernelFiles) -> Option<u64> {
    steal_ns(&files.text("/proc/stat")?)
}

/// From the first line of `/proc/stat`: user, nice, system, idle, iowait, irq, softirq, steal ...
fn steal_ns(stat: &str) -> Option<u64> {
    let line = stat.lines().find(|line| line.starts_with("cpu "))?;
    let ticks: u64 = line.split_whitespace().nth(8)?.parse().ok()?;
    let tick_ns = 1_000_000_000u64.checked_div(rustix::param::clock_ticks_per_second())?;
    ticks.checked_mul(tick_ns)
}

/// What getrusage(2) tells.
#[derive(Clone, Debug)]
struct Usage {
    user_cpu_ns: u64,
    system_cpu_ns: u64,
    minor_faults: u64,
    major_faults: u64,
    voluntary_context_switches: u64,
    involuntary_context_switches: u64,
    peak_memory_bytes: u64,
}

impl Usage {
    fn now() -> Option<Self> {
        let mut usage = MaybeUninit::<libc::rusage>::uninit();
        // SAFETY: the pointer is to memory of the right size, which the call fills on success.
        let status = unsafe { libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr()) };
        if status != 0 {
            return None;
        }
        // SAFETY: the call succeeded, so it has written the whole structure.
        let usage = unsafe { usage.assume_init() };
        let count = |value: libc::c_long| u64::try_from(value).unwrap_or(0);
        // Kibibytes everywhere but on Apple's systems.
        let memory_unit_bytes = if cfg!(target_vendor = "apple") {
            1
        } else {
            1024
        };
        Some(Self {
            user_cpu_ns: nanoseconds(usage.ru_utime),
            system_cpu_ns: nanoseconds(usage.ru_stime),
            minor_faults: count(usage.ru_minflt),
            major_faults: count(usage.ru_majflt),
            voluntary_context_switches: count(usage.ru_nvcsw),
            involuntary_context_switches: count(usage.ru_nivcsw),
            peak_memory_bytes: count(usage.ru_maxrss) * memory_unit_bytes,
        })
    }
}

fn nanoseconds(time: libc::timeval) -> u64 {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let microseconds = u64::try_from(time.tv_usec).unwrap_or(0);
    seconds * 1_000_000_000 + microseconds * 1000
}

/// What `/proc/self/io` tells; see proc(5).
#[derive(Clone, Debug)]
struct IoCounters {
    read_call_bytes: Option<u64>,
    write_call_bytes: Option<u64>,
    read_calls: Option<u64>,
    write_calls: Option<u64>,
    device_read_bytes: Option<u64>,
    device_write_bytes: Option<u64>,
    cancelled_write_bytes: Option<u64>,
}

impl IoCounters {
    fn parse(text: &str) -> Self {
        let value = |name| super::kernel_files::line_value(text, name)?.parse().ok();
        Self {
            read_call_bytes: value("rchar"),
            write_call_bytes: value("wchar"),
            read_calls: value("syscr"),
            write_calls: value("syscw"),
            device_read_bytes: value("read_bytes"),
            device_write_bytes: value("write_bytes"),
            cancelled_write_bytes: value("cancelled_write_bytes"),
        }
    }
}

/// Reads of `/proc` by a snapshot itself.
#[derive(Clone, Copy, Debug, Default)]
struct OwnReads {
    calls: u64,
    bytes: u64,
}

impl OwnReads {
    fn plus(self, other: Self) -> Self {
        Self {
            calls: self.calls + other.calls,
            bytes: self.bytes + other.bytes,
        }
    }
}

/// The beginning of a file, read by one call: all of `/proc/self/io`, and the lines that count of
/// `/proc/stat` and `/proc/self/status`.
fn read_once(path: &str) -> (Option<String>, OwnReads) {
    use std::io::Read;
    let Ok(mut file) = std::fs::File::open(path) else {
        return (None, OwnReads::default());
    };
    let mut buffer = [0; 4096];
    let length = file.read(&mut buffer);
    let bytes = *length.as_ref().unwrap_or(&0);
    let text = length
        .is_ok()
        .then(|| String::from_utf8_lossy(&buffer[..bytes]).into_owned());
    let own = OwnReads {
        calls: 1,
        bytes: bytes as u64,
    };
    (text, own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steal_is_the_eighth_number_in_ticks() {
        let tick_ns = 1_000_000_000 / rustix::param::clock_ticks_per_second();
        let stat = "cpu  2721 0 2835 111465 420 0 78 13 0 0\ncpu0 1 2 3 4 5 6 7 8\n";
        assert_eq!(steal_ns(stat), Some(13 * tick_ns));
        // Kernels before 2.6.11 do not count it.
        assert_eq!(steal_ns("cpu  1 2 3 4\n"), None);
        assert_eq!(steal_ns(""), None);
    }

    #[test]
    fn io_counters_are_told_apart() {
        let text = "rchar: 1\nwchar: 2\nsyscr: 3\nsyscw: 4\nread_bytes: 5\nwrite_bytes: 6\n\
                    cancelled_write_bytes: 7\n";
        let io = IoCounters::parse(text);
        assert_eq!((io.read_call_bytes, io.read_calls), (Some(1), Some(3)));
        assert_eq!(io.device_write_bytes, Some(6));
        assert_eq!(io.cancelled_write_bytes, Some(7));
        assert_eq!(IoCounters::parse("rchar: 1\n").write_calls, None);
    }

    #[test]
    fn processor_time_and_faults_are_counted() {
        let before = ResourceSnapshot::now();
        let mut memory = vec![0u8; 8 << 20];
        let mut sum = 0u64;
        while ResourceSnapshot::now().since(&before).user_cpu_ns < Some(5_000_000) {
            for byte in memory.iter_mut() {
                *byte = byte.wrapping_add(1);
                sum += u64::from(*byte);
            }
        }
        assert!(std::hint::black_box(sum) > 0);
        let used = ResourceSnapshot::now().since(&before);
        assert!(used.user_cpu_ns >= Some(5_000_000), "{used:?}");
        assert!(used.minor_faults > Some(0), "{used:?}");
        assert!(used.peak_memory_bytes >= Some(8 << 20), "{used:?}");
    }

    #[test]
    fn the_peak_is_the_programs_own() {
        let status = "Name:\tx\nVmPeak:\t  900 kB\nVmHWM:\t  512 kB\nVmRSS:\t  100 kB\n";
        assert_eq!(peak_memory_bytes(status), Some(512 << 10));
        assert_eq!(peak_memory_bytes("Name:\tx\n"), None);
    }

    /// In a process of its own, since other tests take memory as they like.
    #[cfg(target_os = "linux")]
    #[test]
    fn the_peak_can_be_forgotten() {
        const MARK: &str = "SQLITMUS_TEST_PEAK_CHILD";
        const BIG: u64 = 256 << 20;
        let peak = || {
            let now = ResourceSnapshot::now();
            now.since(&now).peak_memory_bytes.expect("peak")
        };
        if std::env::var_os(MARK).is_none() {
            run_alone(MARK);
            return;
        }
        let memory = vec![1u8; BIG as usize];
        assert!(std::hint::black_box(&memory).len() as u64 == BIG);
        drop(memory);
        assert!(peak() >= BIG);
        if reset_peak_memory() {
            assert!(peak() < BIG / 2, "{}", peak());
        }
    }

    /// In a process of its own, since the counters are those of all threads and other tests read.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_snapshot_does_not_count_its_own_reading() {
        const MARK: &str = "SQLITMUS_TEST_SNAPSHOT_CHILD";
        if std::env::var_os(MARK).is_none() {
            run_alone(MARK);
            return;
        }
        let before = ResourceSnapshot::now();
        let after = ResourceSnapshot::now();
        let idle = after.since(&before);
        if idle.read_calls.is_none() {
            return;
        }
        assert_eq!((idle.read_calls, idle.read_call_bytes), (Some(0), Some(0)));
        let (text, own) = read_once("/proc/self/stat");
        assert!(text.is_some());
        let busy = ResourceSnapshot::now().since(&after);
        assert_eq!(busy.read_calls, Some(own.calls));
        assert_eq!(busy.read_call_bytes, Some(own.bytes));
    }

    /// Runs the current test again in a process of its own, with a mark in its environment.
    #[cfg(target_os = "linux")]
    fn run_alone(mark: &str) {
        let name = std::thread::current().name().map(str::to_owned);
        let status = std::process::Command::new(std::env::current_exe().expect("program"))
            .args(["--exact", &name.expect("name"), "--test-threads=1"])
            .env(mark, "1")
            .stdout(std::process::Stdio::null())
            .status()
            .expect("child");
        assert!(status.success());
    }
}
