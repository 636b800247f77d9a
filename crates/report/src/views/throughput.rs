//! Rates of groups about rows and jobs: how they grow with the number of threads, and all arms of a group on one
//! scale. What was published stands beside ours.

use std::collections::BTreeMap;

use sqlitmus_core::analysis::{Analysis, GroupAnalysis};
use sqlitmus_core::case::Workload;
use sqlitmus_core::measurements::ArmStatus;
use sqlitmus_core::plan::{Arm, Group};
use sqlitmus_core::run::Run;
use sqlitmus_core::suite::PublishedRate;
use sqlitmus_core::units::{format_count, format_ratio};

use crate::oltp::{Rate, RateRow, RateTable, per_second, rate, seconds};
use crate::summary::named;
use crate::svg::{
    Axis, Bar, Bars, BarsBody, BarsRow, Data, LineChart, Mark, Point, RatioScale, Scale, Series,
    Shape, bytes, datum,
};
use crate::text::clean;

use super::is_strong;

/// More curves than this are a tangle; the table has all of them.
const MOST_FAMILIES: usize = 6;

/// Rates that differ by more than this factor stand on a logarithmic scale.
const FACTOR_FOR_LOGARITHM: f64 = 30.0;

/// Arms that are the same but for the number of their threads.
struct Family<'a> {
    label: String,
    strong: bool,
    has_baseline: bool,
    /// Threads and rates, with the slowest and fastest round.
    points: Vec<Point>,
    /// Threads and rates that somebody published.
    published: Vec<&'a PublishedRate>,
}

/// Operations a second by the number of threads; `None` for a group without arms that differ in it.
pub(crate) fn by_threads(
    run: &Run,
    group: &Group,
    measured: &GroupAnalysis,
    id: &str,
) -> Option<LineChart> {
    let families = families(run, group, measured);
    let ideal = families
        .iter()
        .find(|family| family.has_baseline)
        .or_else(|| families.first())
        .and_then(ideal);
    let mut series: Vec<Series> = Vec::new();
    for family in &families {
        if family.published.len() > 1 {
            series.push(published(family));
        }
    }
    let ours = families.into_iter().map(|family| Series {
        label: family.label,
        strong: family.strong,
        published: false,
        points: family.points,
    });
    let mut all: Vec<Series> = ours.collect();
    if all.is_empty() {
        return None;
    }
    all.extend(series);
    all.extend(ideal);
    let mut y = Axis::new("operations a second", Scale::Linear, short_count);
    y.include(0.0);
    Some(LineChart {
        id: id.to_owned(),
        title: "By number of threads".to_owned(),
        x: Axis::new("threads", Scale::Logarithmic, |threads| {
            format_count(threads.round() as u64)
        })
        .with_ticks(&[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0]),
        y,
        reference: None,
        marked: Vec::new(),
        crossings: Vec::new(),
        series: all,
    })
}

fn families<'a>(run: &Run, group: &'a Group, measured: &GroupAnalysis) -> Vec<Family<'a>> {
    let mut found: Vec<(String, Family<'a>)> = Vec::new();
    for arm in group.arms.iter().filter(|arm| !arm.is_twin()) {
        let Some(key) = family_of(arm) else {
            continue;
        };
        if !found.iter().any(|(known, _)| *known == key) {
            let family = Family {
                label: without_threads(&named(&arm.label, &arm.name)),
                strong: is_strong(run, &arm.name),
                has_baseline: false,
                points: Vec::new(),
                published: Vec::new(),
            };
            found.push((key.clone(), family));
        }
        let Some((_, family)) = found.iter_mut().find(|(known, _)| *known == key) else {
            continue;
        };
        family.has_baseline |= arm.name == group.baseline;
        family.published.extend(&arm.published_rate);
        family.points.extend(point(run, arm, measured));
    }
    let mut families: Vec<Family<'a>> = found.into_iter().map(|(_, family)| family).collect();
    for family in &mut families {
        family
            .points
            .sort_by(|one, other| one.x.total_cmp(&other.x));
        family.published.sort_by_key(|published| published.threads);
    }
    families.retain(|family| family.points.len() > 1);
    // A stable sort: the plan's order decides among equals.
    families.sort_by_key(|family| {
        let published = family.published.len() > 1;
        std::cmp::Reverse((family.has_baseline, published, family.points.len()))
    });
    families.truncate(MOST_FAMILIES);
    families
}

/// What arms of one family have in common; `None` for workloads without threads to choose.
fn family_of(arm: &Arm) -> Option<String> {
    let mut workload = arm.case.workload.clone();
    match &mut workload {
        Workload::PointQuery { threads, .. } | Workload::JobQueue { threads, .. } => *threads = 1,
        _ => return None,
    }
    let settings: BTreeMap<&str, &str> = arm.case.settings.iter().collect();
    Some(format!("{} {settings:?} {workload:?}", arm.case.engine))
}

/// `private cache, 4 threads` without its end, which the axis says.
fn without_threads(label: &str) -> String {
    let end = label.rsplit_once(", ").filter(|(_, end)| {
        let (number, noun) = end.split_once(' ').unwrap_or_default();
        number.parse::<u32>().is_ok() && noun.starts_with("thread")
    });
    end.map_or(label, |(before, _)| before).to_owned()
}

fn point(run: &Run, arm: &Arm, measured: &GroupAnalysis) -> Option<Point> {
    let analysed = measured.arms.iter().find(|found| found.name == arm.name)?;
    if analysed.status != ArmStatus::Measured {
        return None;
    }
    let per_second = rate(run, arm, analysed).per_second();
    let rounds = analysed.round_values_ns.iter().map(|ns| 1e9 / ns);
    let rounds: Vec<f64> = rounds.filter(|rate| rate.is_finite()).collect();
    let low = rounds.iter().copied().fold(f64::INFINITY, f64::min);
    let high = rounds.iter().copied().fold(0.0, f64::max);
    per_second.is_finite().then(|| Point {
        x: f64::from(arm.case.workload.threads()),
        y: per_second,
        interval: (rounds.len() > 1).then_some((low, high)),
    })
}

fn published(family: &Family<'_>) -> Series {
    let points = family.published.iter().map(|published| Point {
        x: f64::from(published.threads),
        y: published_per_second(published),
        interval: None,
    });
    Series {
        label: format!("{}, published", family.label),
        strong: false,
        published: true,
        points: points.filter(|point| point.y.is_finite()).collect(),
    }
}

/// As many times the rate of one thread as there are threads.
fn ideal(family: &Family<'_>) -> Option<Series> {
    let one = family.points.first()?;
    let points = family.points.iter().map(|point| Point {
        x: point.x,
        y: one.y / one.x * point.x,
        interval: None,
    });
    Some(Series {
        label: format!("{}, if threads cost nothing", family.label),
        strong: false,
        published: true,
        points: points.collect(),
    })
}

fn published_per_second(published: &PublishedRate) -> f64 {
    published.operations as f64 / (published.elapsed_ms as f64 / 1e3)
}

/// A rate beside an axis: `7.34M`, `36.1k`, `59`.
fn short_count(value: f64) -> String {
    let in_bytes = bytes(value);
    let Some((number, unit)) = in_bytes.split_once(' ') else {
        return in_bytes;
    };
    let unit = match unit {
        "GB" => "G",
        "MB" => "M",
        "kB" => "k",
        _ => "",
    };
    let number = number.parse::<f64>().map_or(number.to_owned(), |number| {
        let rounded: f64 = format!("{number:.2e}").parse().unwrap_or(number);
        rounded.to_string()
    });
    format!("{number}{unit}")
}

/// The rates of a table as bars, on a logarithmic scale if they differ much, with the published ones.
pub(crate) fn rates(run: &Run, table: &RateTable, id: &str) -> Option<Bars> {
    let measured = || {
        table
            .rows
            .iter()
            .filter_map(|row| row.figures.as_ref().ok())
    };
    let per_second = |rate: &Rate| Some(rate.per_second()).filter(|rate| rate.is_finite());
    let known: Vec<f64> = measured()
        .filter_map(per_second)
        .filter(|rate| *rate > 0.0)
        .collect();
    let (low, high) = (
        known.iter().copied().fold(f64::INFINITY, f64::min),
        known.iter().copied().fold(0.0, f64::max),
    );
    if known.len() < 2 {
        return None;
    }
    // Down to a power of ten that leaves the shortest bar a length.
    let floor =
        (high / low > FACTOR_FOR_LOGARITHM).then(|| 10f64.powf((low / 2.0).log10().floor()));
    let length = |rate: f64| match floor {
        Some(floor) => (rate / floor).log10() / (high / floor).log10(),
        None => rate / high,
    };
    let has_published = table
        .rows
        .iter()
        .any(|row| published_of(run, row).is_some());
    let rows = table.rows.iter().map(|row| BarsRow {
        label: row.label.clone(),
        strong: is_strong(run, &row.arm),
        hover: words(run, row),
        tags: Vec::new(),
        body: match &row.figures {
            Err(reason) => BarsBody::Trouble {
                text: reason.clone(),
                failed: reason.starts_with("failed"),
            },
            Ok(rate) => BarsBody::Figures {
                bar: Bar {
                    solid: length(rate.per_second()),
                    light: 0.0,
                    figure: crate::oltp::per_second(rate),
                    series: None,
                },
                marks: match has_published {
                    true => vec![against_published(run, row, rate)],
                    false => Vec::new(),
                },
            },
        },
    });
    let scale = RatioScale {
        heading: "times the published rate".to_owned(),
        noise_floor: None,
    };
    Some(Bars {
        id: id.to_owned(),
        title: format!("{}: rates", table.title),
        bars: match floor {
            Some(floor) => format!("a second, logarithmic from {}", short_count(floor)),
            None => "a second (longer is better)".to_owned(),
        },
        scales: has_published.then_some(scale).into_iter().collect(),
        rows: rows.collect(),
        data: data(run, table),
    })
}

fn published_of(run: &Run, row: &RateRow) -> Option<f64> {
    let (_, arm) = run.plan.arm(&row.arm)?;
    let rate = published_per_second(arm.published_rate.as_ref()?);
    (rate.is_finite() && rate > 0.0).then_some(rate)
}

fn against_published(run: &Run, row: &RateRow, rate: &Rate) -> Vec<Mark> {
    let ratio = published_of(run, row).map(|published| rate.per_second() / published);
    let ratio = ratio.filter(|ratio| ratio.is_finite() && *ratio > 0.0);
    let mark = ratio.map(|ratio| Mark {
        ratio,
        interval: None,
        shape: Shape::Ours,
        class: "none",
        text: format_ratio(ratio),
    });
    mark.into_iter().collect()
}

fn words(run: &Run, row: &RateRow) -> String {
    let Ok(rate) = &row.figures else {
        return String::new();
    };
    let published = run
        .plan
        .arm(&row.arm)
        .and_then(|(_, arm)| arm.published_rate.as_ref());
    let published = published.map_or(String::new(), |published| {
        let rate = published_per_second(published);
        format!(
            "; published {} a second on {}",
            format_count(rate.round() as u64),
            clean(&published.machine)
        )
    });
    format!(
        "{} a second: {} in {}{published}",
        per_second(rate),
        format_count(rate.count),
        seconds(rate.elapsed_ns)
    )
}

fn data(run: &Run, table: &RateTable) -> Data {
    let rows = table.rows.iter().filter_map(|row| {
        let rate = row.figures.as_ref().ok()?;
        Some(vec![
            row.label.clone(),
            rate.count.to_string(),
            rate.elapsed_ns.to_string(),
            datum(Some(rate.per_second())),
            datum(published_of(run, row)),
        ])
    });
    Data {
        columns: [
            "arm",
            "operations",
            "elapsed_ns",
            "operations_per_second",
            "published_operations_per_second",
        ]
        .map(str::to_owned)
        .into(),
        rows: rows.collect(),
    }
}

/// The charts of all groups about rows and jobs, for a file of charts.
pub(crate) fn all(run: &Run, analysis: &Analysis) -> Vec<Box<dyn crate::svg::Chart>> {
    let mut charts: Vec<Box<dyn crate::svg::Chart>> = Vec::new();
    for (index, (group, measured, table)) in crate::oltp::tables_of(run, analysis).enumerate() {
        let id = format!("rates-{}", index + 1);
        if let Some(mut lines) = by_threads(run, group, measured, &format!("{id}-threads")) {
            lines.title = format!("{}, by number of threads", table.title);
            charts.push(Box::new(lines));
        }
        if let Some(bars) = rates(run, &table, &id) {
            charts.push(Box::new(bars));
        }
    }
    charts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_short_and_labels_lose_their_threads_alone() {
        for (value, text) in [
            (0.0, "0"),
            (59.2, "59.2"),
            (36_123.0, "36.1k"),
            (7_341_316.0, "7.34M"),
        ] {
            assert_eq!(short_count(value), text);
        }
        assert_eq!(without_threads("private cache, 1 thread"), "private cache");
        assert_eq!(without_threads("a, b, 16 threads"), "a, b");
        assert_eq!(without_threads("1,000, WAL FULL"), "1,000, WAL FULL");
        assert_eq!(without_threads(""), "");
    }
}
