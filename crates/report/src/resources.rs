//! What an operation uses beside time: which counters are shown, under which name and in which unit, and the tables
//! of them for a terminal. The page's is in [`crate::resources_html`], what they mean in [`sqlitmus_core::resource_use`].

use sqlitmus_core::analysis::{Analysis, ArmAnalysis};
use sqlitmus_core::case::CacheState;
use sqlitmus_core::measurements::Measurements;
use sqlitmus_core::plan::Group;
use sqlitmus_core::resource_use::ResourceUse;
use sqlitmus_core::run::Run;
use sqlitmus_core::units::{format_bytes, format_count, format_microseconds};

use crate::columns::{Columns, ColumnsRow};
use crate::figures::DASH;
use crate::summary::{label, named, plural, trouble};
use crate::terminal::{LEAST_COLUMNS, Look};
use crate::text::{clean, fit, width, wrap};
use crate::views::is_strong;

/// How a counter is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    /// Nanoseconds, written in microseconds.
    Time,
    Bytes,
    Times,
}

/// A counter that tables show.
#[derive(Debug)]
pub(crate) struct Counter {
    /// Its name in a trial's resources.
    name: &'static str,
    /// Heading of a column.
    pub(crate) heading: &'static str,
    /// The same where there is little room.
    short: &'static str,
    unit: Unit,
}

const fn counter(
    name: &'static str,
    heading: &'static str,
    short: &'static str,
    unit: Unit,
) -> Counter {
    Counter {
        name,
        heading,
        short,
        unit,
    }
}

/// Counters in the order of the page's columns. Those that no arm has are left out, those that are not here
/// (of single workloads) stand in the JSON.
const COUNTERS: [Counter; 20] = [
    counter("user_cpu_ns", "µs in the program", "program us", Unit::Time),
    counter("system_cpu_ns", "µs in the kernel", "kernel us", Unit::Time),
    counter("minor_faults", "faults from memory", "faults", Unit::Times),
    counter("major_faults", "faults from a device", "major", Unit::Times),
    counter(
        "voluntary_context_switches",
        "waits for something",
        "waits",
        Unit::Times,
    ),
    counter(
        "involuntary_context_switches",
        "taken off its core",
        "taken off",
        Unit::Times,
    ),
    counter("read_calls", "read calls", "reads", Unit::Times),
    counter("read_call_bytes", "bytes read", "read", Unit::Bytes),
    counter("write_calls", "write calls", "writes", Unit::Times),
    counter("write_call_bytes", "bytes written", "written", Unit::Bytes),
    counter(
        "device_read_requests",
        "device requests",
        "requests",
        Unit::Times,
    ),
    counter(
        "device_read_bytes",
        "bytes from the device",
        "from device",
        Unit::Bytes,
    ),
    counter(
        "device_write_bytes",
        "bytes to the device",
        "to device",
        Unit::Bytes,
    ),
    counter(
        "sqlite_cache_hits",
        "SQLite cache hits",
        "hits",
        Unit::Times,
    ),
    counter(
        "sqlite_cache_misses",
        "SQLite cache misses",
        "misses",
        Unit::Times,
    ),
    counter(
        "sqlite_cache_writes",
        "SQLite pages written",
        "pages",
        Unit::Times,
    ),
    counter(
        "sqlite_cache_spills",
        "SQLite pages spilled",
        "spilled",
        Unit::Times,
    ),
    counter("peak_memory_bytes", "peak memory", "memory", Unit::Bytes),
    counter(
        "peak_sqlite_cache_bytes",
        "peak SQLite cache",
        "cache",
        Unit::Bytes,
    ),
    counter("peak_sqlite_wal_bytes", "largest log", "log", Unit::Bytes),
];

impl Counter {
    /// Of one operation, or the level; `None` if it was not counted.
    pub(crate) fn value(&self, used: &ResourceUse) -> Option<f64> {
        let level = used.levels.get(self.name).map(|level| *level as f64);
        level.or_else(|| used.per_operation.get(self.name).copied())
    }

    /// The figure as text; a dash if it was not counted.
    pub(crate) fn text(&self, used: &ResourceUse) -> String {
        let Some(value) = self.value(used).filter(|value| value.is_finite()) else {
            return DASH.to_owned();
        };
        match self.unit {
            _ if value == 0.0 => "0".to_owned(),
            Unit::Time => format_microseconds(value),
            Unit::Bytes => format_bytes(value.round() as u64),
            Unit::Times => times(value),
        }
    }
}

/// How often something happens in one operation.
pub(crate) fn times(value: f64) -> String {
    match value {
        value if !value.is_finite() => DASH.to_owned(),
        0.0 => "0".to_owned(),
        value if value < 0.001 => "<0.001".to_owned(),
        value if value < 1.0 => format!("{value:.3}"),
        value if value < 100.0 => format!("{value:.2}"),
        value => format_count(value.round() as u64),
    }
}

/// What an arm uses, or why that is not known.
pub(crate) struct ArmUse {
    /// What the arm is called; cleaned.
    pub(crate) label: String,
    /// Whether it is what reports are about.
    pub(crate) strong: bool,
    /// Its group; cleaned.
    pub(crate) group: String,
    /// What it uses, or why there are no figures.
    pub(crate) used: Result<ResourceUse, String>,
}

/// All arms but repetitions of baselines, in the order of the plan.
pub(crate) fn of_all(run: &Run, analysis: &Analysis) -> Vec<ArmUse> {
    let measurements = Measurements::new(run);
    let groups = run.plan.groups.iter().zip(&analysis.groups);
    groups
        .flat_map(|(group, measured)| of_group(&measurements, group, &measured.arms))
        .collect()
}

fn of_group(
    measurements: &Measurements<'_>,
    group: &Group,
    measured: &[ArmAnalysis],
) -> Vec<ArmUse> {
    let arms = group.arms.iter().filter(|arm| !arm.is_twin());
    arms.filter_map(|arm| {
        let analysed = measured.iter().find(|found| found.name == arm.name)?;
        let used = match trouble(&analysed.status) {
            Some(reason) => Err(reason),
            None => ResourceUse::of(measurements, &arm.name)
                .ok_or_else(|| "nothing was counted".to_owned()),
        };
        Some(ArmUse {
            label: label(analysed),
            strong: is_strong(measurements.run(), &arm.name),
            group: named(&group.name, "without a name"),
            used,
        })
    })
    .collect()
}

/// The counters that at least one of the arms has, and that are not 0 in all.
pub(crate) fn counters(arms: &[ArmUse]) -> Vec<&'static Counter> {
    let says_something = |counter: &&Counter| {
        let mut used = arms.iter().filter_map(|arm| arm.used.as_ref().ok());
        used.any(|used| counter.value(used).is_some_and(|value| value > 0.0))
    };
    COUNTERS.iter().filter(says_something).collect()
}

/// System calls by name: `pread64 3.02, openat 1`. Empty if none were counted.
pub(crate) fn calls_by_name(used: &ResourceUse) -> String {
    let mut calls: Vec<(&String, &f64)> = used.system_calls.iter().collect();
    calls.sort_by(|one, other| other.1.total_cmp(one.1));
    let calls = calls
        .into_iter()
        .map(|(name, number)| format!("{} {}", clean(name), times(*number)));
    calls.collect::<Vec<_>>().join(", ")
}

/// How system calls were counted, or that they were not, as the run says it.
pub(crate) fn method(run: &Run) -> Option<String> {
    let mut facts = run.environment.iter();
    let (_, method) = facts.find(|(name, _)| name == "system_calls")?;
    Some(clean(method)).filter(|method| !method.is_empty())
}

/// What every operation of a run used, group by group, for a terminal; no line is wider than it.
#[must_use]
pub fn terminal_resources(run: &Run, analysis: &Analysis, look: &Look) -> String {
    let columns = look.columns.max(LEAST_COLUMNS);
    let measurements = Measurements::new(run);
    let mut lines = wrap(
        "What one operation uses, over all rounds that count",
        columns,
    );
    let method = method(run)
        .map(|method| format!("System calls, of operations that were not timed: {method}."));
    lines.extend(method.iter().flat_map(|method| wrap(method, columns)));
    for (group, measured) in run.plan.groups.iter().zip(&analysis.groups) {
        let arms = of_group(&measurements, group, &measured.arms);
        let rounds = plural(u64::from(measured.rounds), "round", "rounds");
        let title = format!("{}, {rounds}", named(&group.name, "without a name"));
        lines.push(String::new());
        lines.push(fit(&title, columns));
        lines.extend(of_arms(&arms, columns).lines(columns));
    }
    let mut text = lines.join("\n");
    text.push('\n');
    text
}

/// The columns of a terminal, the most telling first: what has no room is left out.
const TERMINAL: [&str; 13] = [
    "user_cpu_ns",
    "system_cpu_ns",
    "peak_memory_bytes",
    "minor_faults",
    "device_read_requests",
    "device_read_bytes",
    "device_write_bytes",
    "write_call_bytes",
    "read_call_bytes",
    "voluntary_context_switches",
    "involuntary_context_switches",
    "write_calls",
    "read_calls",
];

/// A label keeps so many columns before figures are left out.
const LABEL_COLUMNS: usize = 26;

fn of_arms(arms: &[ArmUse], columns: usize) -> Columns {
    let said = counters(arms);
    let cell = |counter: &Counter, arm: &ArmUse| match &arm.used {
        Ok(used) => counter.text(used),
        Err(_) => String::new(),
    };
    let longest = arms.iter().map(|arm| width(&arm.label)).max();
    let mut room = columns.saturating_sub(longest.unwrap_or(0).min(LABEL_COLUMNS));
    let mut chosen: Vec<&Counter> = Vec::new();
    for name in TERMINAL {
        let Some(counter) = said.iter().find(|counter| counter.name == name) else {
            continue;
        };
        let cells = arms.iter().map(|arm| width(&cell(counter, arm)));
        let needed = cells.max().unwrap_or(0).max(counter.short.len()) + 2;
        if needed <= room {
            room -= needed;
            chosen.push(counter);
        }
    }
    // As on the page.
    chosen.sort_by_key(|counter| COUNTERS.iter().position(|other| other.name == counter.name));
    Columns {
        headings: chosen
            .iter()
            .map(|counter| counter.short.to_owned())
            .collect(),
        rows: arms
            .iter()
            .map(|arm| ColumnsRow {
                label: arm.label.clone(),
                cells: match &arm.used {
                    Ok(_) => Ok(chosen.iter().map(|counter| cell(counter, arm)).collect()),
                    Err(reason) => Err(reason.clone()),
                },
                beneath: arm.used.as_ref().map(beneath).unwrap_or_default(),
            })
            .collect(),
    }
}

/// System calls by name, and the counters of SQLite's page cache.
fn beneath(used: &ResourceUse) -> String {
    let calls = calls_by_name(used);
    let cache: Vec<String> = COUNTERS
        .iter()
        .filter(|counter| counter.name.starts_with("sqlite_cache_"))
        .filter(|counter| counter.value(used).is_some_and(|value| value > 0.0))
        .map(|counter| format!("{} {}", counter.short, counter.text(used)))
        .collect();
    let cache = match cache.is_empty() {
        true => String::new(),
        false => format!("page cache: {}", cache.join(", ")),
    };
    [calls, cache]
        .into_iter()
        .filter(|piece| !piece.is_empty())
        .collect::<Vec<_>>()
        .join("; ")
}

const COLD_HEADINGS: [&str; 4] = ["requests", "bytes", "of content", "system calls"];

/// Of every cold group what the device had to do, which is why its arms take as long as they do: as paragraphs of
/// lines, none wider than `columns`.
pub(crate) fn cold_paragraphs(run: &Run, analysis: &Analysis, columns: usize) -> Vec<Vec<String>> {
    cold_groups(run, analysis)
        .into_iter()
        .map(|cold| {
            let rows = cold.arms.iter().map(|arm| ColumnsRow {
                label: arm.label.clone(),
                cells: arm.used.as_ref().map(cold_cells).map_err(Clone::clone),
                beneath: String::new(),
            });
            let table = Columns {
                headings: COLD_HEADINGS.map(str::to_owned).into(),
                rows: rows.collect(),
            };
            let mut lines = vec![fit(&cold.title(), columns)];
            lines.extend(table.lines(columns));
            lines
        })
        .collect()
}

/// The arms of a group with a cold cache.
pub(crate) struct ColdGroup {
    /// Its state.
    pub(crate) cache: CacheState,
    verb: &'static str,
    /// What each of them asked of the device.
    pub(crate) arms: Vec<ArmUse>,
}

impl ColdGroup {
    /// `What the device had to do for one read, data-cold`.
    pub(crate) fn title(&self) -> String {
        format!(
            "What the device had to do for one {}, {}",
            self.verb, self.cache
        )
    }
}

/// The groups with a cold cache of which something was counted.
pub(crate) fn cold_groups(run: &Run, analysis: &Analysis) -> Vec<ColdGroup> {
    let measurements = Measurements::new(run);
    let groups = run.plan.groups.iter().zip(&analysis.groups);
    groups
        .filter_map(|(group, measured)| {
            let case = &group.arms.first()?.case;
            let arms = of_group(&measurements, group, &measured.arms);
            let counted = arms.iter().any(|arm| arm.used.is_ok());
            (case.cache.is_cold() && counted).then(|| ColdGroup {
                cache: case.cache,
                verb: case.workload.verb(),
                arms,
            })
        })
        .collect()
}

/// Requests and bytes from the device, these as a multiple of the content, and system calls.
fn cold_cells(used: &ResourceUse) -> Vec<String> {
    let number = |value: Option<f64>, digits: usize| {
        value.map_or_else(|| DASH.to_owned(), |value| format!("{value:.digits$}"))
    };
    let per_operation = |name: &str| used.per_operation.get(name).copied();
    let bytes = per_operation("device_read_bytes");
    vec![
        number(per_operation("device_read_requests"), 2),
        bytes.map_or_else(
            || DASH.to_owned(),
            |bytes| format_bytes(bytes.round() as u64),
        ),
        used.device_bytes_per_content_byte()
            .map_or_else(|| DASH.to_owned(), |factor| format!("{factor:.2}x")),
        number(used.system_calls_per_operation(), 1),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rare_and_frequent_things_are_told_apart() {
        for (value, text) in [
            (0.0, "0"),
            (0.000_01, "<0.001"),
            (0.25, "0.250"),
            (3.021, "3.02"),
            (12_345.6, "12,346"),
            (f64::NAN, "-"),
        ] {
            assert_eq!(times(value), text);
        }
    }
}
