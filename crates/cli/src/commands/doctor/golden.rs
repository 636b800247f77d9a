//! Golden files: what an examination of a made-up machine looks like, byte by byte. After a change that
//! is meant, `UPDATE_GOLDEN=1 cargo test -p sqlitmus golden` writes them anew; look at the difference
//! before it is committed.

use std::path::PathBuf;

use sqlitmus_report::Look;

use super::text::text;
use super::*;
use crate::machine::doctor::activity::BusyProgram;
use crate::machine::doctor::page_reclaim::{IdlePages, Reclaimer};
use crate::machine::doctor::scanners::Listener;
use crate::machine::doctor::sqlite_versions::FoundLibrary;

fn times(median_ns: u64) -> FlushTimes {
    FlushTimes {
        count: 400,
        shortest_ns: median_ns / 2,
        median_ns,
        p99_ns: median_ns * 3,
        longest_ns: median_ns * 9,
    }
}

fn processor() -> Vec<Finding> {
    let clock = Clock {
        source: "tsc".to_owned(),
        cost_ns: 21.5,
        step_ns: 10,
        claimed_resolution_ns: Some(1),
    };
    let cores = Cores {
        online: Some(4),
        allowed: Some(4),
        limit_millicores: None,
        isolated: vec![3],
        simultaneous_multithreading: Some(false),
        worker_core: Some(3),
        orchestrator_core: Some(0),
    };
    let frequency = Frequency {
        governor: "ondemand".to_owned(),
        driver: Some("acpi-cpufreq".to_owned()),
        turbo: Some(true),
    };
    let activity = Activity {
        window_ms: 1000,
        cores: 4,
        busy_cores: 1.5,
        load_average: "1.50 0.70 0.30".to_owned(),
        // A program may call itself anything.
        programs: vec![BusyProgram {
            process: 4711,
            name: "evil\u{1b}[31m".to_owned(),
            cores: 1.25,
        }],
        steal_share: 0.0,
        virtualisation: "none seen".to_owned(),
        swapped_pages: Some(0),
    };
    vec![
        clock::CHECK.finding(&clock, clock.judge()),
        cores::CORES.finding(&cores, cores.judge()),
        cores::FREQUENCY.finding(&frequency, frequency.judge()),
        activity::STEAL.finding(&activity, activity.judge_steal()),
        activity::LOAD.finding(&activity, activity.judge_load()),
    ]
}

fn memory_and_programs() -> Vec<Finding> {
    let memory = Memory {
        total_bytes: Some(16 << 30),
        available_bytes: Some(12 << 30),
        limit_bytes: Some(4 << 30),
        stores_bytes: 900 << 20,
    };
    let swap = Swap {
        total_bytes: Some(0),
        used_bytes: Some(0),
        moving_pages: Some(0),
    };
    let huge_pages = HugePages {
        setting: "always".to_owned(),
    };
    let scanners = Scanners {
        listeners: vec![Listener {
            process: 99,
            name: "scand".to_owned(),
            is_asked: true,
        }],
        hidden_processes: 12,
        is_root: false,
    };
    let library = |whose, version: &str| FoundLibrary {
        whose,
        version: version.to_owned(),
    };
    let versions = SqliteVersions {
        libraries: vec![library("bundled", "3.54.1"), library("system", "3.40.1")],
    };
    let rights = Rights {
        system_calls: "system calls are not counted: perf_event_open is not permitted".to_owned(),
        system_calls_hint: "run as root",
        drop_caches: false,
    };
    vec![
        memory::MEMORY.finding(&memory, memory.judge()),
        memory::SWAP.finding(&swap, swap.judge()),
        memory::HUGE_PAGES.finding(&huge_pages, huge_pages.judge()),
        scanners::CHECK.finding(&scanners, scanners.judge()),
        sqlite_versions::CHECK.finding(&versions, versions.judge()),
        rights::CHECK.finding(&rights, rights.judge()),
    ]
}

fn disk_and_noise() -> Vec<Finding> {
    let storage = Storage {
        description: "ext4 on /dev/sda1 (solid state)".to_owned(),
        filesystem: "ext4".to_owned(),
        kept: "device",
        mount_options: vec!["rw".to_owned(), "relatime".to_owned()],
        disk: Some("solid state"),
        is_rotational: Some(false),
        write_cache: Some("write back".to_owned()),
    };
    let room = Room {
        available_bytes: 80_000_000_000,
        available_inodes: Some(5_000_000),
        needed_bytes: 2_000_000_000,
        needed_inodes: 150_000,
    };
    let flush = Flush {
        fsync: Some(times(30_000)),
        fdatasync: Some(times(25_000)),
        on_device: true,
        write_cache: storage.write_cache.clone(),
        failure: String::new(),
    };
    let reclaim = PageReclaim {
        idle: Some(IdlePages {
            idle_ms: 14_200,
            pages: 4096,
            cached_pages: 4096,
        }),
        untold: String::new(),
        reclaimers: vec![Reclaimer {
            name: "DAMON (damon_reclaim)".to_owned(),
            idle_seconds: Some(120),
            spares_mapped: false,
        }],
    };
    let noise = Noise {
        noise_floor: Some(0.034),
        rounds: 8,
        slices: 50,
        slice_ms: 10,
        operation_ns: Some(5123.5),
        took_ms: 9400,
        failure: String::new(),
    };
    vec![
        storage::STORAGE.finding(&storage, storage.judge()),
        storage::SPACE.finding(&room, room.judge()),
        flush::CHECK.finding(&flush, flush.judge()),
        page_reclaim::CHECK.finding(&reclaim, reclaim.judge()),
        noise::CHECK.finding(&noise, noise.judge()),
    ]
}

fn examination() -> Examination {
    let mut findings = processor();
    findings.extend(memory_and_programs());
    findings.extend(disk_and_noise());
    Examination {
        format: FORMAT,
        sqlitmus_version: "0.1.0".to_owned(),
        examined_utc: "2026-11-20T12:00:00Z".to_owned(),
        place: "/home/somebody".to_owned(),
        quick: false,
        level: Examination::worst(&findings),
        findings,
    }
}

fn check(name: &str, rendered: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::create_dir_all(path.parent().expect("parent")).expect("the folder is made");
        std::fs::write(&path, rendered).expect("the golden file is written");
        return;
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        golden == rendered,
        "{name} differs from its golden file; UPDATE_GOLDEN=1 writes it anew:\n{rendered}"
    );
}

#[test]
fn texts() {
    for columns in [80, 120] {
        let look = Look {
            columns,
            color: false,
        };
        let text = text(&examination(), &look);
        let widest = text.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(columns), "{text}");
        assert!(!text.contains('\u{1b}'), "{text}");
        check(&format!("doctor-{columns}.txt"), &text);
    }
}

#[test]
fn json() {
    let json = serde_json::to_string_pretty(&examination()).expect("plain structures") + "\n";
    check("doctor.json", &json);
}
