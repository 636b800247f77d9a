//! Under which conditions two runs were measured, and whether they are alike enough to be compared:
//! the machine, the disk, what the live engines said, and what the plans say beside their cases.
//!
//! Which arms are the same case is for [`super::matching`]; what to do about a difference that
//! forbids a comparison, for the callers.

use std::collections::{BTreeMap, BTreeSet};

use crate::environment::{UNKNOWN, fact, is_about_machine, said};
use crate::names::nearest;
use crate::run::{Outcome, Run};

use super::matching::Pair;
use super::{Difference, Effect, RunComparisonError};

/// Stands for all that makes one SQLite library differ from another; see [`SQLITE_NAMES`].
const SQLITE: &str = "sqlite";

/// What [`SQLITE`] stands for.
const SQLITE_NAMES: [&str; 4] = [
    said::SQLITE_VERSION,
    said::SQLITE_SOURCE_ID,
    said::COMPILE_OPTIONS,
    said::THREADING,
];

/// Name of the difference that one run says nothing about its machine.
const ENVIRONMENT: &str = "environment";

/// Name of a difference between settings that do not identify a case.
const SETTINGS: &str = "settings";

/// Memory of the same size differs by what firmware and kernel keep for themselves.
const ALIKE_MEMORY_SHARE: f64 = 0.02;

/// How two texts of a fact are compared.
#[derive(Clone, Copy)]
enum Alike {
    /// Letter by letter.
    Same,
    /// As sets of words with commas or spaces between them.
    Words,
    /// As bytes, within [`ALIKE_MEMORY_SHARE`].
    Memory,
    /// By name, major and minor version; a difference after these is told and does not matter.
    Kernel,
}

/// A fact that decides: its name, how its texts are compared, and why it matters.
type Rule = (&'static str, Alike, &'static str);

/// Facts about machine and place that must be alike.
const RULES: [Rule; 23] = [
    (
        fact::CPU_MODEL,
        Alike::Same,
        "another processor takes another time for everything, and not in the same proportion",
    ),
    (
        fact::CPU_ARCHITECTURE,
        Alike::Same,
        "another instruction set is another program",
    ),
    (
        fact::CPU_LOGICAL_CORES,
        Alike::Same,
        "workers and kernel threads share the cores",
    ),
    (
        fact::CPU_ALLOWED_CORES,
        Alike::Same,
        "workers and kernel threads share the cores that may be used",
    ),
    (
        fact::CPU_LIMIT_MILLICORES,
        Alike::Same,
        "a limit on processor time stops a worker in the middle of a slice",
    ),
    (
        fact::CPU_GOVERNOR,
        Alike::Same,
        "the governor decides the processor's frequency",
    ),
    (
        fact::MEMORY_TOTAL_BYTES,
        Alike::Memory,
        "memory decides what stays in the page cache",
    ),
    (
        fact::MEMORY_LIMIT_BYTES,
        Alike::Same,
        "the limit decides what stays in the page cache",
    ),
    (
        fact::TRANSPARENT_HUGE_PAGES,
        Alike::Same,
        "huge pages change what a page fault and a mapping cost",
    ),
    (
        fact::PAGE_BYTES,
        Alike::Same,
        "the size of a page changes what a page fault and a cache cost",
    ),
    (
        fact::DIRTY_PERCENT,
        Alike::Same,
        "it decides when a writer must wait for the disk",
    ),
    (
        fact::DIRTY_BACKGROUND_PERCENT,
        Alike::Same,
        "it decides when the kernel begins to write back",
    ),
    (
        fact::KERNEL,
        Alike::Kernel,
        "another kernel has other system calls, page cache and filesystems",
    ),
    (
        fact::VIRTUALISATION,
        Alike::Same,
        "a hypervisor makes system calls, faults and disks slower",
    ),
    (
        fact::CLOCK_SOURCE,
        Alike::Same,
        "what reading the clock costs is part of every figure",
    ),
    (
        fact::FILESYSTEM,
        Alike::Same,
        "the filesystem is half of what is measured",
    ),
    (
        fact::MOUNT_OPTIONS,
        Alike::Words,
        "options decide about time stamps, barriers and journals",
    ),
    (
        fact::DISK_KIND,
        Alike::Same,
        "another kind of disk takes another time to sync and to settle",
    ),
    (
        fact::DISK_MODEL,
        Alike::Same,
        "another disk takes another time to sync and to settle",
    ),
    (
        fact::DISK_ROTATIONAL,
        Alike::Same,
        "the kernel treats rotating disks differently",
    ),
    (
        fact::DISK_READ_AHEAD_KIB,
        Alike::Same,
        "read-ahead decides how the page cache is filled, in which pieces",
    ),
    (
        fact::DISK_WRITE_CACHE,
        Alike::Same,
        "without a write cache, or with one, a sync is another thing",
    ),
    (
        fact::DISK_SCHEDULER,
        Alike::Same,
        "the scheduler decides the order of reads and writes",
    ),
];

/// Facts that are told if they differ, and do not forbid anything.
const TOLD: [&str; 6] = [
    fact::OPERATING_SYSTEM,
    fact::SWAP_TOTAL_BYTES,
    fact::RUNNING_AS_ROOT,
    fact::MOUNT_SOURCE,
    fact::MOUNT_POINT,
    fact::PLACE_PATH,
];

/// Facts of the moment, and words made of other facts: no two runs are alike in them.
const OF_THE_MOMENT: [&str; 8] = [
    fact::MEMORY_AVAILABLE_BYTES,
    fact::SWAP_FREE_BYTES,
    fact::LOAD_AVERAGE,
    fact::STEAL_NS,
    fact::CLOCK_RESOLUTION_NS,
    fact::PLACE_DESCRIPTION,
    fact::SPACE_AVAILABLE_BYTES,
    fact::SPACE_AVAILABLE_INODES,
];

/// What live engines say and must be alike. Settings that identify a case are not among them: they
/// are alike in every pair.
const SAID_RULES: [Rule; 9] = [
    (
        said::SQLITE_VERSION,
        Alike::Same,
        "another SQLite is another program",
    ),
    (
        said::SQLITE_SOURCE_ID,
        Alike::Same,
        "it is the same version made of another source",
    ),
    (
        said::COMPILE_OPTIONS,
        Alike::Words,
        "options of the compilation change what SQLite does and how fast",
    ),
    (
        said::THREADING,
        Alike::Same,
        "locks inside SQLite cost time",
    ),
    (
        said::C_LIBRARY,
        Alike::Same,
        "the C library decides the system calls of buffered files",
    ),
    (
        "auto_vacuum",
        Alike::Same,
        "it decides what a commit has to do",
    ),
    (
        "secure_delete",
        Alike::Same,
        "it decides what overwriting has to do",
    ),
    ("fullfsync", Alike::Same, "it decides what a sync does"),
    (
        "wal_autocheckpoint",
        Alike::Same,
        "it decides when the log is written back",
    ),
];

/// Facts by name; the first of a name counts, unknown ones do not.
type Facts<'a> = BTreeMap<&'a str, &'a str>;

/// All differences between the conditions of two runs, those of the machine first. `expected` are
/// the names of facts whose difference is what is to be compared.
///
/// # Errors
/// [`UnknownFact`](RunComparisonError::UnknownFact) for an expected name that is none.
pub(super) fn differences(
    a: &Run,
    b: &Run,
    pairs: &[Pair<'_>],
    expected: &[String],
) -> Result<Vec<Difference>, RunComparisonError> {
    let expected = expand(expected)?;
    let mut found = machine(a, b);
    found.extend(engines(a, b, pairs));
    found.extend(plans(a, b));
    for difference in &mut found {
        let is_expected = expected.contains(difference.name.as_str());
        if is_expected && difference.effect == Effect::Forbids {
            difference.effect = Effect::Expected;
        }
    }
    Ok(found)
}

/// Names of facts that were expected to differ and do not.
pub(super) fn not_different(expected: &[String], found: &[Difference]) -> Vec<String> {
    let differs = |name: &str| found.iter().any(|difference| difference.name == name);
    let missing = expected.iter().filter(|name| match name.as_str() {
        SQLITE => !SQLITE_NAMES.iter().any(|name| differs(name)),
        name => !differs(name),
    });
    missing.cloned().collect()
}

/// The names that may be expected to differ.
fn names() -> impl Iterator<Item = &'static str> {
    let rules = RULES.iter().chain(&SAID_RULES).map(|(name, ..)| *name);
    rules.chain([SQLITE, SETTINGS, ENVIRONMENT])
}

fn expand(expected: &[String]) -> Result<BTreeSet<&str>, RunComparisonError> {
    let mut all = BTreeSet::new();
    for name in expected {
        if !names().any(|known| known == name) {
            return Err(RunComparisonError::UnknownFact {
                name: name.clone(),
                nearest: nearest(name, names()).map(str::to_owned),
                known: names().map(str::to_owned).collect(),
            });
        }
        if name == SQLITE {
            all.extend(SQLITE_NAMES);
        }
        all.insert(name.as_str());
    }
    Ok(all)
}

fn facts(run: &Run) -> Facts<'_> {
    let mut facts = Facts::new();
    for (name, value) in &run.environment {
        facts.entry(name).or_insert(value);
    }
    facts.retain(|name, value| is_about_machine(name) && !value.is_empty() && *value != UNKNOWN);
    facts
}

fn machine(a: &Run, b: &Run) -> Vec<Difference> {
    let (of_a, of_b) = (facts(a), facts(b));
    let decides = |facts: &Facts<'_>| RULES.iter().any(|(name, ..)| facts.contains_key(name));
    if !decides(&of_a) || !decides(&of_b) {
        let words = |facts| {
            if decides(facts) {
                "recorded"
            } else {
                "not recorded"
            }
        };
        return vec![Difference {
            name: ENVIRONMENT.to_owned(),
            a: Some(words(&of_a).to_owned()),
            b: Some(words(&of_b).to_owned()),
            effect: Effect::Forbids,
            why:
                "a run that does not say on which machine it was measured can be compared with none"
                    .to_owned(),
            arms: Vec::new(),
        }];
    }
    let mut found: Vec<Difference> = RULES
        .iter()
        .filter_map(|rule| by_rule(rule, of_a.get(rule.0).copied(), of_b.get(rule.0).copied()))
        .collect();
    let ruled = |name: &str| RULES.iter().any(|(known, ..)| *known == name);
    // What a later version may have recorded is told, as nothing is known of its weight.
    let others: BTreeSet<&str> = of_a.keys().chain(of_b.keys()).copied().collect();
    for name in others {
        if !ruled(name) && !OF_THE_MOMENT.contains(&name) {
            let both = (of_a.get(name).copied(), of_b.get(name).copied());
            // Of a fact that only one version records nothing can be said.
            if TOLD.contains(&name) || both.0.is_some() == both.1.is_some() {
                found.extend(told(name, both.0, both.1));
            }
        }
    }
    found
}

/// The difference that a rule sees; what only one run knows is told and does not forbid, so that
/// runs of an earlier version, which recorded less, can still be compared.
fn by_rule(rule: &Rule, a: Option<&str>, b: Option<&str>) -> Option<Difference> {
    let (name, alike, why) = *rule;
    let (Some(of_a), Some(of_b)) = (a, b) else {
        let mut difference = told(name, a, b)?;
        "only one run knows it".clone_into(&mut difference.why);
        return Some(difference);
    };
    let mut difference = told(name, a, b)?;
    let forbids = match alike {
        Alike::Same => true,
        Alike::Words => words(of_a) != words(of_b),
        Alike::Memory => !alike_memory(of_a, of_b),
        Alike::Kernel => series(of_a) != series(of_b),
    };
    if forbids {
        difference.effect = Effect::Forbids;
        why.clone_into(&mut difference.why);
        return Some(difference);
    }
    // Only of the kernel the rest is worth a line.
    matches!(alike, Alike::Kernel).then_some(difference)
}

fn told(name: &str, a: Option<&str>, b: Option<&str>) -> Option<Difference> {
    (a != b).then(|| Difference {
        name: name.to_owned(),
        a: a.map(str::to_owned),
        b: b.map(str::to_owned),
        effect: Effect::Told,
        why: String::new(),
        arms: Vec::new(),
    })
}

fn words(text: &str) -> BTreeSet<&str> {
    let words = text.split([',', ' ', '\n']);
    words.filter(|word| !word.is_empty()).collect()
}

fn alike_memory(a: &str, b: &str) -> bool {
    let (Ok(a), Ok(b)) = (a.parse::<u64>(), b.parse::<u64>()) else {
        return a == b;
    };
    a.abs_diff(b) as f64 <= ALIKE_MEMORY_SHARE * a.max(b) as f64
}

/// `Linux 6.18` of `Linux 6.18.44-distribution`.
fn series(kernel: &str) -> String {
    let (name, release) = kernel.split_once(' ').unwrap_or(("", kernel));
    let mut parts = release.split(['.', '-', '+']);
    let (major, minor) = (parts.next().unwrap_or(""), parts.next().unwrap_or(""));
    format!("{name} {major}.{minor}")
}

/// What the last trial of an arm that counts, or else the last one, read back from its engine.
fn said_by<'a>(run: &'a Run, arm: &str) -> Option<&'a BTreeMap<String, String>> {
    let mut trials = run.trials.iter().rev();
    let of_arm = |trial: &&crate::run::Trial| trial.arm == arm && !trial.read_back.is_empty();
    let valid = trials
        .clone()
        .filter(of_arm)
        .find(|trial| trial.outcome == Outcome::Valid);
    valid
        .or_else(|| trials.find(of_arm))
        .map(|trial| &trial.read_back)
}

/// What the live engines of the pairs said differently; the same difference of several arms once.
fn engines(a: &Run, b: &Run, pairs: &[Pair<'_>]) -> Vec<Difference> {
    let mut found: Vec<Difference> = Vec::new();
    for pair in pairs {
        let said = said_by(a, &pair.a.name).zip(said_by(b, &pair.b.name));
        let Some((of_a, of_b)) = said else {
            continue;
        };
        let text = |said: &'_ BTreeMap<String, String>, name: &str| said.get(name).cloned();
        for rule in &SAID_RULES {
            let (of_a, of_b) = (text(of_a, rule.0), text(of_b, rule.0));
            found_for(
                &mut found,
                by_rule(rule, of_a.as_deref(), of_b.as_deref()),
                pair,
            );
        }
        for (name, of_a) in pair.a.case.settings.iter() {
            let of_b = pair.b.case.settings.get(name);
            if let Some(of_b) = of_b.filter(|of_b| *of_b != of_a) {
                let named = [of_a, of_b].map(|value| format!("{name}={value}"));
                let mut difference = told(SETTINGS, Some(&named[0]), Some(&named[1]));
                if let Some(difference) = &mut difference {
                    difference.effect = Effect::Forbids;
                    "the default of a setting has changed between the versions of sqlitmus"
                        .clone_into(&mut difference.why);
                }
                found_for(&mut found, difference, pair);
            }
        }
    }
    // Another version is made of another source: that is one difference, not two.
    let versions: BTreeSet<String> = found
        .iter()
        .filter(|difference| difference.name == said::SQLITE_VERSION)
        .flat_map(|difference| difference.arms.clone())
        .collect();
    for difference in &mut found {
        if difference.name == said::SQLITE_SOURCE_ID {
            difference.arms.retain(|arm| !versions.contains(arm));
        }
    }
    found.retain(|difference| !difference.arms.is_empty());
    found
}

/// Adds a difference of a pair, or the pair's arm to the same difference of another.
fn found_for(found: &mut Vec<Difference>, difference: Option<Difference>, pair: &Pair<'_>) {
    let Some(mut difference) = difference else {
        return;
    };
    let arm = pair.b.name.clone();
    let known = found.iter_mut().find(|known| {
        (&known.name, &known.a, &known.b) == (&difference.name, &difference.a, &difference.b)
    });
    match known {
        Some(known) => known.arms.push(arm),
        None => {
            difference.arms.push(arm);
            found.push(difference);
        }
    }
}

/// What the plans and heads say beside their cases: told, since the cases are the same.
fn plans(a: &Run, b: &Run) -> Vec<Difference> {
    let of = |run: &Run| {
        [
            ("suite", run.plan.suite.clone()),
            ("scale", run.plan.scale.clone()),
            ("seed", run.plan.seed.to_string()),
            ("sqlitmus_version", run.head.sqlitmus_version.clone()),
        ]
    };
    let pairs = of(a).into_iter().zip(of(b));
    let mut found: Vec<Difference> = pairs
        .filter_map(|((name, of_a), (_, of_b))| told(name, Some(&of_a), Some(&of_b)))
        .collect();
    for group in &a.plan.groups {
        let other = b.plan.groups.iter().find(|other| other.name == group.name);
        if let Some(other) = other {
            let of_a = format!("{} ns in group {}", group.slice_ns, group.name);
            let of_b = format!("{} ns in group {}", other.slice_ns, other.name);
            found.extend(told("slice", Some(&of_a), Some(&of_b)));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fact_has_one_place() {
        let all: Vec<&str> = RULES
            .iter()
            .map(|(name, ..)| *name)
            .chain(TOLD)
            .chain(OF_THE_MOMENT)
            .collect();
        let unique: BTreeSet<&str> = all.iter().copied().collect();
        assert_eq!(unique.len(), all.len());
    }

    #[test]
    fn kernels_of_a_series_are_alike() {
        assert_eq!(series("Linux 6.18.44-fc-7"), series("Linux 6.18.9"));
        assert_ne!(series("Linux 6.18.44"), series("Linux 6.1.8"));
        assert_ne!(series("Linux 6.18"), series("Darwin 6.18"));
        assert_eq!(series("Linux 6.18-rc1"), series("Linux 6.18.0"));
        let rule = &RULES
            .iter()
            .find(|rule| rule.0 == fact::KERNEL)
            .expect("a rule");
        let found = by_rule(rule, Some("Linux 6.18.1"), Some("Linux 6.18.2")).expect("told");
        assert_eq!(found.effect, Effect::Told);
    }

    #[test]
    fn order_of_options_and_a_little_memory_do_not_matter() {
        let rule = |name: &str| RULES.iter().find(|rule| rule.0 == name).expect("a rule");
        let options = rule(fact::MOUNT_OPTIONS);
        assert_eq!(
            by_rule(options, Some("rw,relatime"), Some("relatime,rw")),
            None
        );
        let found = by_rule(options, Some("rw"), Some("rw,noatime")).expect("different");
        assert_eq!(found.effect, Effect::Forbids);
        let memory = rule(fact::MEMORY_TOTAL_BYTES);
        assert_eq!(
            by_rule(memory, Some("25276510208"), Some("25276500000")),
            None
        );
        assert!(by_rule(memory, Some("25276510208"), Some("12600000000")).is_some());
        assert_eq!(by_rule(memory, None, None), None);
        let found = by_rule(memory, None, Some("1")).expect("told");
        assert_eq!(found.effect, Effect::Told);
    }
}
