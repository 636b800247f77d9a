//! How fast stores are read when they are old: a curve for each store, in microseconds and against itself when new.

use sqlitmus_core::measurements::Measurements;
use sqlitmus_core::plan::Group;
use sqlitmus_core::run::Run;

use super::View;
use crate::lifecycle::{AgedStore, AtAge, aged_stores};
use crate::summary::named;
use crate::svg::{Axis, Chart, LineChart, Point, Scale, Series, plain};

/// A view for each group whose stores are read at several ages.
pub(crate) fn views(run: &Run) -> Vec<View> {
    let measurements = Measurements::new(run);
    let groups = run.plan.groups.iter().enumerate();
    groups
        .filter_map(|(index, group)| {
            let stores = aged_stores(&measurements, group);
            (!stores.is_empty()).then(|| view(index, group, &stores))
        })
        .collect()
}

fn view(index: usize, group: &Group, stores: &[AgedStore]) -> View {
    let id = |what: &str| format!("age-{}-{what}", index + 1);
    let cache = group.arms.first().map(|arm| arm.case.cache);
    let cache = cache.map_or_else(String::new, |cache| format!(", {cache}"));
    let charts = [
        (
            time(stores, &id("time"), &cache),
            "Lower is better. Every age is a store of its own; all are measured in turns.",
        ),
        (
            change(stores, &id("change"), &cache),
            "Below 1 the store has become slower. Bands are 95% intervals.",
        ),
    ];
    View {
        id: id("speeds"),
        heading: format!(
            "Reading by storage age: {}{cache}",
            named(&group.name, "a group without a name")
        ),
        about: "Age is how often every blob was replaced by one of another size.".to_owned(),
        charts: charts
            .into_iter()
            .filter_map(|(chart, legend)| Some((Box::new(chart?) as Box<dyn Chart>, legend)))
            .collect(),
    }
}

fn curves(
    stores: &[AgedStore],
    point: impl Fn(&AtAge) -> Option<Point>,
) -> (Vec<Series>, Vec<f64>) {
    let series: Vec<Series> = stores
        .iter()
        .map(|store| Series {
            label: store.label.clone(),
            strong: store.engine == "sqlite",
            published: false,
            points: store.ages.iter().filter_map(&point).collect(),
        })
        .filter(|series| series.points.len() > 1)
        .collect();
    let ages = stores.iter().flat_map(|store| &store.ages);
    let mut ticks: Vec<f64> = ages.map(|at| f64::from(at.age)).collect();
    ticks.sort_unstable_by(f64::total_cmp);
    ticks.dedup();
    (series, ticks)
}

fn time(stores: &[AgedStore], id: &str, cache: &str) -> Option<LineChart> {
    let (series, ticks) = curves(stores, |at| {
        let ns = at.operation_ns.as_ref().ok()?;
        Some(Point {
            x: f64::from(at.age),
            y: ns / 1e3,
            interval: None,
        })
    });
    let mut y = Axis::new("microseconds to read one blob", Scale::Linear, plain);
    y.include(0.0);
    (!series.is_empty()).then(|| LineChart {
        id: id.to_owned(),
        title: format!("Time to read one blob by storage age{cache}"),
        x: Axis::new(
            "storage age: replacements of every blob",
            Scale::Linear,
            plain,
        )
        .with_ticks(&ticks),
        y,
        reference: None,
        marked: Vec::new(),
        crossings: Vec::new(),
        series,
    })
}

fn change(stores: &[AgedStore], id: &str, cache: &str) -> Option<LineChart> {
    let youngest = |store: &AgedStore| store.ages.first().map(|at| at.age);
    let firsts: Vec<Option<u32>> = stores.iter().map(youngest).collect();
    let (series, ticks) = curves(stores, |at| match &at.than_new {
        Some(estimate) => Some(Point {
            x: f64::from(at.age),
            y: estimate.ratio,
            interval: estimate.interval.map(|ends| (ends.low, ends.high)),
        }),
        // A store is as fast as itself.
        None if firsts.contains(&Some(at.age)) && at.operation_ns.is_ok() => Some(Point {
            x: f64::from(at.age),
            y: 1.0,
            interval: None,
        }),
        None => None,
    });
    (!series.is_empty()).then(|| LineChart {
        id: id.to_owned(),
        title: format!("Speed against the same store when new{cache}"),
        x: Axis::new(
            "storage age: replacements of every blob",
            Scale::Linear,
            plain,
        )
        .with_ticks(&ticks),
        y: Axis::new("times as fast as when new", Scale::Linear, plain),
        reference: Some((1.0, "as fast as when new".to_owned())),
        marked: Vec::new(),
        crossings: Vec::new(),
        series,
    })
}
