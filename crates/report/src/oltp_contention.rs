//! Where threads wait: the same work, by the same number of threads, on one database and on one
//! for each. What the copies cost more than one thread alone is the machine's: cores and memory
//! that are shared. What one database costs more than copies is waiting for locks.

use sqlitmus_core::analysis::{ArmAnalysis, GroupAnalysis};
use sqlitmus_core::case::{Databases, Workload};
use sqlitmus_core::measurements::ArmStatus;
use sqlitmus_core::plan::{Arm, Group};
use sqlitmus_core::run::Run;

use crate::figures::percent;
use crate::oltp::rate;
use crate::summary::label;
use crate::thread_scaling::shares_page_cache_mutex;

/// Differences below this share are not told from noise, if the noise itself is not known.
const UNKNOWN_NOISE: f64 = 0.05;

/// Why a shared cache is not to be used, whatever was measured.
const NEVER_SHARED: &str = "A shared cache is not recommended, whatever the figures: all \
    connections of the process go through one page cache behind one mutex, so that threads wait \
    for each other even to read; its table locks do not heed the busy timeout; and SQLite's own \
    documentation discourages it. Private caches, with a write-ahead log where somebody writes, \
    do all that it was made for.";

/// Sentences about the threads of a group.
pub(crate) fn notes(run: &Run, group: &Group, measured: &GroupAnalysis) -> Vec<String> {
    let arms: Vec<(&Arm, &ArmAnalysis)> = group
        .arms
        .iter()
        .zip(&measured.arms)
        .filter(|(arm, analysed)| !arm.is_twin() && analysed.status == ArmStatus::Measured)
        .collect();
    let noise = measured.noise_floor.unwrap_or(UNKNOWN_NOISE);
    let mut notes: Vec<String> = arms
        .iter()
        .filter_map(|arm| waiting(run, &arms, *arm, noise))
        .collect();
    let shares = |arm: &Arm| arm.case.settings.get("cache_sharing") == Some("shared");
    if group.arms.iter().any(shares) {
        notes.push(NEVER_SHARED.to_owned());
    }
    notes
}

/// What one arm's threads wait for; `None` unless both arms it is compared with are there.
fn waiting(
    run: &Run,
    arms: &[(&Arm, &ArmAnalysis)],
    (arm, analysed): (&Arm, &ArmAnalysis),
    noise: f64,
) -> Option<String> {
    let Workload::PointQuery {
        range,
        threads: threads @ 2..,
        databases: Databases::One,
        readers_are,
    } = arm.case.workload
    else {
        return None;
    };
    if shares_page_cache_mutex(run, arm) {
        // Its threads wait for each other on databases of their own, too: nothing can be told apart.
        return None;
    }
    let find = |threads: u32, databases: Databases| {
        let workload = Workload::PointQuery {
            range,
            threads,
            databases,
            readers_are,
        };
        let found = arms.iter().find(|(other, _)| {
            other.case.workload == workload && differs_in_sharing_alone(arm, other)
        });
        found.copied()
    };
    let thread_ns = |(arm, analysed): (&Arm, &ArmAnalysis)| {
        let rate = rate(run, arm, analysed);
        f64::from(arm.case.workload.threads()) * rate.elapsed_ns as f64 / rate.count as f64
    };
    let one = thread_ns((arm, analysed));
    let own = thread_ns(find(threads, Databases::Own)?);
    let alone = thread_ns(find(1, Databases::One)?);
    let locks = (one - own) / one;
    let machine = (own - alone) / one;
    let share = |share: f64| match share {
        share if share.abs() <= noise => "no more than noise".to_owned(),
        share if share < 0.0 => format!("less than nothing ({} less)", percent(-share)),
        share => percent(share),
    };
    Some(format!(
        "{}: a query takes {:.0} ns of a thread; on databases of their own {:.0} ns, by one thread \
         alone {:.0} ns. Of it, waiting for locks: {}; for cores and memory: {}.",
        label(analysed),
        one,
        own,
        alone,
        share(locks),
        share(machine),
    ))
}

/// Whether two arms' settings are the same but for the sharing of the cache.
fn differs_in_sharing_alone(arm: &Arm, other: &Arm) -> bool {
    let without = |arm: &Arm| {
        let mut settings = arm.case.settings.clone();
        settings.set("cache_sharing", "");
        settings
    };
    arm.case.engine == other.case.engine
        && without(arm) == without(other)
        && other.case.settings.get("cache_sharing") != Some("shared")
}
