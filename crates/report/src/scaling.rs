//! Scaling: what several readers, threads or processes, do more than one. An arm belongs to a
//! family of arms that differ in the number of readers alone; its speed-up is its rate divided by
//! that of the family's one reader, with the interval of that ratio. The ideal is as many times as
//! there are readers, up to the number of processors.

use sqlitmus_core::arrivals::Arrivals;
use sqlitmus_core::case::{Readers, Workload};
use sqlitmus_core::measurements::{ArmStatus, Cost, Measurements};
use sqlitmus_core::plan::{Arm, Group};
use sqlitmus_core::run::Run;
use sqlitmus_core::statistics::{Interval, median};
use sqlitmus_core::units::{format_count, format_ratio};

use crate::figures::{DASH, percent, range};
use crate::plain_table::PlainTable;
use crate::summary::{named, trouble};

/// The families of one group.
pub(crate) struct Scaling {
    /// Name of the group.
    pub(crate) title: String,
    /// Processors of the machine, if known.
    pub(crate) processors: Option<u32>,
    /// The families.
    pub(crate) families: Vec<Family>,
}

/// Arms that differ in the number of readers alone.
pub(crate) struct Family {
    /// What they are called, without the number.
    pub(crate) label: String,
    /// In ascending order of readers.
    pub(crate) members: Vec<Member>,
}

/// One arm of a family.
pub(crate) struct Member {
    label: String,
    /// Readers at once.
    pub(crate) readers: u32,
    /// Operations a second, or why there are none.
    rate: Result<f64, String>,
    /// Times as fast as one reader.
    pub(crate) speed_up: Option<(f64, Option<Interval>)>,
}

/// The number of readers of an arm that only reads, as fast as it can.
fn readers(workload: &Workload) -> Option<(u32, Readers)> {
    match workload {
        Workload::PointQuery {
            threads,
            readers_are,
            ..
        } => Some((*threads, *readers_are)),
        Workload::Load {
            readers,
            writers: 0,
            arrivals: Arrivals::Closed,
            readers_are,
            ..
        } => Some((*readers, *readers_are)),
        _ => None,
    }
}

/// The same workload with one reader: equal for all arms of a family.
fn alone(arm: &Arm) -> Option<(String, Workload)> {
    let mut workload = arm.case.workload.clone();
    match &mut workload {
        Workload::PointQuery { threads, .. } => *threads = 1,
        Workload::Load { readers, .. } => *readers = 1,
        _ => return None,
    }
    Some((
        format!("{} {}", arm.case.engine, arm.case.settings),
        workload,
    ))
}

/// Of every group with a family that has one reader and several.
pub(crate) fn of(run: &Run) -> Vec<Scaling> {
    let measurements = Measurements::new(run);
    let processors = run
        .environment
        .iter()
        .find(|(name, _)| name == sqlitmus_core::environment::fact::CPU_ALLOWED_CORES)
        .and_then(|(_, value)| value.parse().ok());
    let scalings = run.plan.groups.iter().filter_map(|group| {
        let families = families(&measurements, group);
        (!families.is_empty()).then(|| Scaling {
            title: named(&group.name, "a group without a name"),
            processors,
            families,
        })
    });
    scalings.collect()
}

fn families(measurements: &Measurements<'_>, group: &Group) -> Vec<Family> {
    let mut grouped: Vec<((String, Workload), Vec<&Arm>)> = Vec::new();
    for arm in group.arms.iter().filter(|arm| !arm.is_twin()) {
        let (Some(_), Some(key)) = (readers(&arm.case.workload), alone(arm)) else {
            continue;
        };
        match grouped.iter_mut().find(|(known, _)| *known == key) {
            Some((_, arms)) => arms.push(arm),
            None => grouped.push((key, vec![arm])),
        }
    }
    let families = grouped
        .into_iter()
        .filter_map(|(_, arms)| family(measurements, &arms));
    families.collect()
}

fn family(measurements: &Measurements<'_>, arms: &[&Arm]) -> Option<Family> {
    let number = |arm: &Arm| readers(&arm.case.workload).map_or(0, |(number, _)| number);
    let single = arms.iter().find(|arm| number(arm) == 1)?;
    if arms.len() < 2 {
        return None;
    }
    let mut members: Vec<Member> = arms
        .iter()
        .map(|arm| {
            let values = measurements.round_values(&arm.name, Cost::Acknowledged);
            let status = measurements.status(&arm.name);
            let rate = median(&values).filter(|ns| *ns > 0.0).map(|ns| 1e9 / ns);
            let reason = || trouble(&status).unwrap_or_else(|| DASH.to_owned());
            Member {
                label: named(&arm.label, &arm.name),
                readers: number(arm),
                rate: rate
                    .filter(|_| status == ArmStatus::Measured)
                    .ok_or_else(reason),
                speed_up: match arm.name == single.name {
                    true => rate.map(|_| (1.0, None)),
                    false => measurements
                        .ratio(&single.name, &arm.name, Cost::Acknowledged)
                        .map(|found| (found.ratio, found.interval)),
                },
            }
        })
        .collect();
    members.sort_by_key(|member| member.readers);
    let label = named(&single.label, &single.name);
    let label = label
        .strip_suffix(", 1 thread")
        .or_else(|| label.strip_suffix(", 1 process"))
        .unwrap_or(&label);
    Some(Family {
        label: label.to_owned(),
        members,
    })
}

impl Scaling {
    /// Times as fast as one reader that so many could be.
    pub(crate) fn ideal(&self, readers: u32) -> u32 {
        readers.min(self.processors.unwrap_or(readers))
    }

    /// The figures as a table.
    pub(crate) fn table(&self) -> PlainTable {
        let members = self.families.iter().flat_map(|family| &family.members);
        let rows = members.map(|member| {
            let ideal = self.ideal(member.readers);
            let cells = match &member.rate {
                Err(reason) => vec![reason.clone()],
                Ok(rate) => {
                    let (speed_up, interval) = match member.speed_up {
                        Some((ratio, interval)) => (Some(ratio), interval),
                        None => (None, None),
                    };
                    vec![
                        format_count(rate.round() as u64),
                        speed_up.map_or_else(|| DASH.to_owned(), format_ratio),
                        range(interval),
                        ideal.to_string(),
                        speed_up.map_or_else(
                            || DASH.to_owned(),
                            |ratio| percent(ratio / f64::from(ideal.max(1))),
                        ),
                    ]
                }
            };
            (member.label.clone(), cells)
        });
        let processors = match self.processors {
            Some(processors) => format!("{processors} processors"),
            None => "unknown number of processors".to_owned(),
        };
        PlainTable {
            title: format!("Readers at once: {}, {processors}", self.title),
            headings: vec!["per second", "speed-up", "95%", "ideal", "of ideal"],
            rows: rows.collect(),
            notes: Vec::new(),
        }
    }
}
