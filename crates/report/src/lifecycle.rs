//! The life of stores: how fast they are read when they are old, how they lie on the device then, and what
//! happens once: filling, opening, copying, cleaning up, emptying. Speeds are paired and have intervals as
//! everywhere; of what happens once in a life there are as many figures as lives, shown as the middle one and
//! the range.
//!
//! Found out by the plan: arms that read stores of several ages, and arms whose workload is a life.

use std::collections::BTreeSet;

use serde_json::{Value, json as object};
use sqlitmus_core::case::Workload;
use sqlitmus_core::lifecycle::{self as names, Spread, at_age, spread};
use sqlitmus_core::measurements::{ArmStatus, Cost, Measurements};
use sqlitmus_core::plan::{Arm, Group};
use sqlitmus_core::run::Run;
use sqlitmus_core::statistics::RatioEstimate;
use sqlitmus_core::units::format_count;

use crate::figures::{DASH, judged_plainly, microseconds};
use crate::plain_table::PlainTable;
use crate::summary::{named, trouble};
use crate::text::clean;

/// The same figures for programs: speeds by storage age, and what happens once, each as the middle one and the
/// range of all lives, by name with unit. Empty lists if no store grew old.
pub(crate) fn json(run: &Run) -> Value {
    let measurements = Measurements::new(run);
    let ratio = |found: &Option<RatioEstimate>| {
        found.as_ref().map(|found| {
            let ends = found.interval;
            object!({
                "ratio": found.ratio,
                "low": ends.map(|ends| ends.low),
                "high": ends.map(|ends| ends.high),
            })
        })
    };
    let groups = || run.plan.groups.iter();
    let stores = groups().flat_map(|group| aged_stores(&measurements, group));
    let reading = stores.map(|store| {
        let ages = store.ages.iter().map(|at| {
            object!({
                "age": at.age,
                "operation_ns": at.operation_ns.as_ref().ok(),
                "times_as_fast_as_when_new": ratio(&at.than_new),
                "times_as_fast_as_the_baseline": ratio(&at.than_baseline),
            })
        });
        object!({ "label": store.label, "ages": ages.collect::<Vec<_>>() })
    });
    let arms = groups().flat_map(|group| &group.arms);
    let lives = arms
        .filter(|arm| ages_of_life(arm).is_some() && !arm.is_twin())
        .map(|arm| {
            let trials = run.trials.iter().filter(|trial| trial.arm == arm.name);
            let names: BTreeSet<&String> =
                trials.flat_map(|trial| trial.resources.keys()).collect();
            let figures = names.into_iter().filter_map(|name| {
                let found = spread(run, &arm.name, name)?;
                let figures = object!({
                    "median": found.median,
                    "lowest": found.lowest,
                    "highest": found.highest,
                    "lives": found.lives,
                });
                Some((name.clone(), figures))
            });
            object!({
                "label": named(&arm.label, "an arm without a name"),
                "figures": figures.collect::<serde_json::Map<String, Value>>(),
            })
        });
    object!({ "reading": reading.collect::<Vec<_>>(), "lives": lives.collect::<Vec<_>>() })
}

/// Whether a group is about lives of stores.
pub(crate) fn is_shown(group: &Group) -> bool {
    group.arms.iter().any(|arm| ages_of_life(arm).is_some())
}

/// All tables of a run; none if no store of it grew old.
pub(crate) fn tables(run: &Run) -> Vec<PlainTable> {
    let measurements = Measurements::new(run);
    let mut tables = Vec::new();
    for group in &run.plan.groups {
        let stores = aged_stores(&measurements, group);
        if !stores.is_empty() {
            tables.push(speeds(group, &stores));
        }
    }
    for group in run.plan.groups.iter().filter(|group| is_shown(group)) {
        let lives = Lives {
            run,
            measurements: &measurements,
            group,
        };
        tables.push(lives.space());
        tables.push(lives.beginning());
        tables.push(lives.copies());
        tables.push(lives.giving_back());
        tables.push(lives.ending());
    }
    tables
}

/// What reading one store costs at each of its ages.
pub(crate) struct AgedStore {
    /// What it is called, without an age.
    pub(crate) label: String,
    /// Name of its engine.
    pub(crate) engine: String,
    /// By age, ascending.
    pub(crate) ages: Vec<AtAge>,
}

/// One age of a store.
pub(crate) struct AtAge {
    /// Times that every blob had been replaced.
    pub(crate) age: u32,
    /// Nanoseconds to read a blob, or why that is not known.
    pub(crate) operation_ns: Result<f64, String>,
    /// Times as fast as the same store when new; `None` for the youngest.
    pub(crate) than_new: Option<RatioEstimate>,
    /// Times as fast as the group's baseline, which is young; `None` for the baseline.
    pub(crate) than_baseline: Option<RatioEstimate>,
}

/// The stores of a group that are read at several ages.
pub(crate) fn aged_stores(measurements: &Measurements<'_>, group: &Group) -> Vec<AgedStore> {
    let mut families: Vec<(&Arm, Vec<&Arm>)> = Vec::new();
    for arm in group.arms.iter().filter(|arm| !arm.is_twin()) {
        let is_same = |other: &Arm| {
            (&other.case.engine, &other.case.settings) == (&arm.case.engine, &arm.case.settings)
        };
        match families.iter_mut().find(|(first, _)| is_same(first)) {
            Some((_, members)) => members.push(arm),
            None => families.push((arm, vec![arm])),
        }
    }
    families.retain(|(_, members)| members.iter().any(|arm| arm.case.age > 0));
    let store = |(_, mut members): (&Arm, Vec<&Arm>)| {
        members.sort_by_key(|arm| arm.case.age);
        let youngest = members.first().copied();
        AgedStore {
            label: youngest.map_or_else(String::new, without_age),
            engine: youngest.map_or_else(String::new, |arm| arm.case.engine.clone()),
            ages: members
                .iter()
                .map(|arm| at_one_age(measurements, group, youngest, arm))
                .collect(),
        }
    };
    families.into_iter().map(store).collect()
}

fn at_one_age(
    measurements: &Measurements<'_>,
    group: &Group,
    youngest: Option<&Arm>,
    arm: &Arm,
) -> AtAge {
    let ratio = |reference: &str| measurements.ratio(reference, &arm.name, Cost::Acknowledged);
    let status = measurements.status(&arm.name);
    let values = measurements.round_values(&arm.name, Cost::Acknowledged);
    let middle = sqlitmus_core::statistics::median(&values);
    AtAge {
        age: arm.case.age,
        operation_ns: match (trouble(&status), middle) {
            (None, Some(ns)) => Ok(ns),
            (reason, _) => Err(reason.unwrap_or_else(|| "not measured".to_owned())),
        },
        than_new: youngest
            .filter(|youngest| youngest.name != arm.name)
            .and_then(|youngest| ratio(&youngest.name)),
        than_baseline: (arm.name != group.baseline)
            .then(|| ratio(&group.baseline))
            .flatten(),
    }
}

/// The label of an arm as the suite has it, before its age was added.
fn without_age(arm: &Arm) -> String {
    let label = named(&arm.label, "an arm without a name");
    let suffix = format!(", age {}", arm.case.age);
    label
        .strip_suffix(&suffix)
        .map_or_else(|| label.clone(), str::to_owned)
}

fn speeds(group: &Group, stores: &[AgedStore]) -> PlainTable {
    let ratio =
        |found: &Option<RatioEstimate>| found.as_ref().map_or(DASH.to_owned(), judged_plainly);
    let rows = stores.iter().flat_map(|store| {
        store.ages.iter().map(move |at| {
            let label = format!("{}, age {}", store.label, at.age);
            match &at.operation_ns {
                Err(reason) => (label, vec![reason.clone()]),
                Ok(ns) => (
                    label,
                    vec![
                        microseconds(Some(*ns)),
                        ratio(&at.than_new),
                        ratio(&at.than_baseline),
                    ],
                ),
            }
        })
    });
    let baseline = group.arms.iter().find(|arm| arm.name == group.baseline);
    let cache = baseline.map_or_else(String::new, |arm| format!(", {}", arm.case.cache));
    PlainTable {
        title: format!(
            "Reading by storage age: {}{cache}",
            named(&group.name, "a group without a name")
        ),
        headings: vec!["us per blob", "than when new", "than the baseline"],
        rows: rows.collect(),
        notes: vec![format!(
            "Age: how often every blob was replaced by one of another size, a quarter of them by removing and \
             inserting. Than: times as fast as, with the 95% interval; the baseline is {}.",
            baseline.map_or_else(
                || "unknown".to_owned(),
                |arm| named(&arm.label, "an arm without a name")
            )
        )],
    }
}

/// Ages at which a life is looked at; `None` for arms that are no life.
fn ages_of_life(arm: &Arm) -> Option<&[u32]> {
    match &arm.case.workload {
        Workload::Lifecycle { ages, .. } => Some(ages),
        _ => None,
    }
}

/// The lives of a group's arms.
struct Lives<'a> {
    run: &'a Run,
    measurements: &'a Measurements<'a>,
    group: &'a Group,
}

/// A number with its unit, and how other numbers are written in the same unit.
type Unit = fn(f64) -> (f64, &'static str);

fn time(ns: f64) -> (f64, &'static str) {
    match ns {
        _ if ns < 999.5e3 => (1e3, "us"),
        _ if ns < 999.5e6 => (1e6, "ms"),
        _ => (1e9, "s"),
    }
}

fn size(bytes: f64) -> (f64, &'static str) {
    match bytes {
        _ if bytes < 999.5e3 => (1e3, "kB"),
        _ if bytes < 999.5e6 => (1e6, "MB"),
        _ => (1e9, "GB"),
    }
}

fn count(_: f64) -> (f64, &'static str) {
    (1.0, "")
}

/// The middle and, where lives differ, the range in the same unit: `87 ms (80-92)`.
fn shown(spread: Option<Spread>, unit: Unit) -> String {
    let Some(spread) = spread else {
        return DASH.to_owned();
    };
    let (scale, name) = unit(spread.median);
    let number = |value: f64| {
        let value = (value / scale).max(0.0);
        match value {
            _ if name.is_empty() || value >= 99.5 => format_count(value.round() as u64),
            _ if value >= 9.95 => format!("{value:.0}"),
            _ => format!("{value:.1}"),
        }
    };
    let [middle, lowest, highest] = [spread.median, spread.lowest, spread.highest].map(number);
    let middle = format!("{middle} {name}");
    let middle = middle.trim_end();
    if lowest == highest {
        middle.to_owned()
    } else {
        format!("{middle} ({lowest}–{highest})")
    }
}

impl Lives<'_> {
    fn title(&self, what: &str) -> String {
        let lives = self.arms().map(|arm| {
            spread(self.run, &arm.name, names::LOAD_NS).map_or(0, |spread| spread.lives)
        });
        let lives = lives.max().unwrap_or(0);
        format!(
            "{what}: {}, {lives} {} of every store",
            named(&self.group.name, "a group without a name"),
            if lives == 1 { "life" } else { "lives" }
        )
    }

    fn arms(&self) -> impl Iterator<Item = &Arm> {
        self.group.arms.iter().filter(|arm| !arm.is_twin())
    }

    fn cell(&self, arm: &Arm, resource: &str, unit: Unit) -> String {
        shown(spread(self.run, &arm.name, resource), unit)
    }

    /// A row for each arm; of those that have no figures the reason.
    fn rows(&self, cells: &dyn Fn(&Arm) -> Vec<String>) -> Vec<(String, Vec<String>)> {
        let row = |arm: &Arm| {
            let label = named(&arm.label, "an arm without a name");
            let status = self.measurements.status(&arm.name);
            match trouble(&status) {
                Some(reason) if status != ArmStatus::Measured => (label, vec![reason]),
                _ => (label, cells(arm)),
            }
        };
        self.arms().map(row).collect()
    }

    /// What a store takes at each age, and in how many pieces it lies.
    fn space(&self) -> PlainTable {
        let mut rows = Vec::new();
        for arm in self.arms() {
            let label = named(&arm.label, "an arm without a name");
            let status = self.measurements.status(&arm.name);
            if let Some(reason) = trouble(&status) {
                rows.push((label, vec![reason]));
                continue;
            }
            for age in ages_of_life(arm).unwrap_or_default() {
                rows.push((format!("{label}, age {age}"), self.at_age(arm, *age)));
            }
        }
        PlainTable {
            title: self.title("Space and fragments by storage age"),
            headings: vec![
                "on disk",
                "inodes",
                "extents",
                "per file",
                "pages a run",
                "free pages",
                "us to replace",
            ],
            rows,
            notes: self.notes_of_space(),
        }
    }

    fn at_age(&self, arm: &Arm, age: u32) -> Vec<String> {
        let of = |name: &str| spread(self.run, &arm.name, &at_age(age, name));
        let share = |upper: &str, lower: &str| match (of(upper), of(lower)) {
            (Some(upper), Some(lower)) if lower.median > 0.0 => {
                format!("{:.2}", upper.median / lower.median)
            }
            _ => DASH.to_owned(),
        };
        let blobs = arm.case.dataset.count as f64;
        let settled = of(names::WRITE_NS).map(|write| {
            let settle = of(names::SETTLE_NS).map_or(0.0, |settle| settle.median);
            (write.median + settle) / blobs
        });
        vec![
            shown(of(names::ALLOCATED_BYTES), size),
            shown(of(names::INODES), count),
            shown(of(names::EXTENTS), count),
            share(names::EXTENTS, names::EXTENT_FILES),
            share(names::PAGES, names::PAGE_RUNS),
            shown(of(names::FREE_PAGES), count),
            microseconds(settled),
        ]
    }

    /// How to read the table, and why there may be no extents.
    fn notes_of_space(&self) -> Vec<String> {
        let mut notes = vec![
            "Extents: stretches on the device as filefrag counts them, of all files of the store. Pages a run: \
             pages of a database that are neighbours in the file and in the order of reading; an overflow \
             chain in one run is read without a seek. To replace: one blob, with settling, in batches of 100."
                .to_owned(),
        ];
        let refused = self.run.trials.iter().find_map(|trial| {
            let is_here = self.arms().any(|arm| arm.name == trial.arm);
            let said = trial.read_back.get("extents").filter(|_| is_here)?;
            (said != "counted").then(|| clean(said))
        });
        notes.extend(refused.map(|reason| format!("Extents were not counted: {reason}.")));
        notes
    }

    fn beginning(&self) -> PlainTable {
        PlainTable {
            title: self.title("Filling and starting"),
            headings: vec!["fill", "until on the device", "first read", "first read, cold"],
            rows: self.rows(&|arm| {
                vec![
                    self.cell(arm, names::LOAD_NS, time),
                    self.cell(arm, names::LOAD_SETTLED_NS, time),
                    self.cell(arm, names::FIRST_READ_NS, time),
                    self.cell(arm, names::FIRST_READ_COLD_NS, time),
                ]
            }),
            notes: vec![
                "The middle one of all lives, and the range where they differ. First read: opening the store at the oldest \
                 age and reading one blob; cold: its content was evicted, what the filesystem knows of the \
                 files was not."
                    .to_owned(),
            ],
        }
    }

    fn copies(&self) -> PlainTable {
        PlainTable {
            title: self.title("Copies and backups, at the oldest age"),
            headings: vec![
                "copy files",
                "its size",
                "VACUUM INTO",
                "its size",
                "backup API",
            ],
            rows: self.rows(&|arm| {
                vec![
                    self.cell(arm, names::COPY_SETTLED_NS, time),
                    self.cell(arm, names::COPY_BYTES, size),
                    self.cell(arm, names::VACUUM_INTO_NS, time),
                    self.cell(arm, names::VACUUM_INTO_BYTES, size),
                    self.cell(arm, names::BACKUP_NS, time),
                ]
            }),
            notes: vec![
                "Until the copy is on the device. Files are copied one after the other as cp -r does, with nothing else \
                 writing; VACUUM INTO and the backup interface copy a database that is in use."
                    .to_owned(),
            ],
        }
    }

    /// Of a hundred blobs, those that are removed before cleaning up.
    fn removed_percent(&self) -> u32 {
        let of = |arm: &Arm| match arm.case.workload {
            Workload::Lifecycle {
                removed_percent, ..
            } => Some(removed_percent),
            _ => None,
        };
        self.arms().find_map(of).unwrap_or(0)
    }

    fn giving_back(&self) -> PlainTable {
        let percent = self.removed_percent();
        PlainTable {
            title: self.title("Giving space back, at the oldest age"),
            headings: vec!["remove a part", "then on disk", "VACUUM", "then on disk"],
            rows: self.rows(&|arm| {
                vec![
                    self.cell(arm, names::REMOVE_PART_NS, time),
                    self.cell(arm, names::REMOVED_BYTES, size),
                    self.cell(arm, names::VACUUM_NS, time),
                    self.cell(arm, names::VACUUMED_BYTES, size),
                ]
            }),
            notes: vec![format!(
                "A part: {percent}% of the blobs, one by one in batches of 100. VACUUM with the checkpoint that makes the \
                 file shorter, until everything is on the device."
            )],
        }
    }

    fn ending(&self) -> PlainTable {
        let percent = self.removed_percent();
        PlainTable {
            title: self.title("Incremental vacuum, and the end"),
            headings: vec![
                "incremental vacuum",
                "on disk before",
                "after",
                "remove all",
                "unlink a copy",
            ],
            rows: self.rows(&|arm| {
                vec![
                    self.cell(arm, names::INCREMENTAL_VACUUM_NS, time),
                    self.cell(arm, names::INCREMENTAL_BEFORE_BYTES, size),
                    self.cell(arm, names::INCREMENTAL_AFTER_BYTES, size),
                    self.cell(arm, names::EMPTY_NS, time),
                    self.cell(arm, names::UNLINK_NS, time),
                ]
            }),
            notes: vec![format!(
                "Incremental vacuum of a compact copy made with auto_vacuum = incremental, from which the same {percent}% were \
                 removed. Remove all: all blobs that are left, one by one in batches of 100. Unlink a copy: all \
                 files and folders of a copy of the whole store."
            )],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_in_the_unit_of_the_middle() {
        let spread = |median: f64, lowest: f64, highest: f64| {
            Some(Spread {
                median,
                lowest,
                highest,
                lives: 3,
            })
        };
        assert_eq!(shown(None, time), "-");
        assert_eq!(shown(spread(87e6, 80.2e6, 1.2e9), time), "87 ms (80–1,200)");
        assert_eq!(shown(spread(1.5e9, 1.5e9, 1.5e9), time), "1.5 s");
        assert_eq!(
            shown(spread(4096.0, 4096.0, 8192.0), size),
            "4.1 kB (4.1–8.2)"
        );
        assert_eq!(shown(spread(1234.0, 1.0, 5.5), count), "1,234 (1–6)");
    }
}
