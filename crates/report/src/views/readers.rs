//! What several readers do more than one, against the ideal: a curve for each family of arms.

use crate::scaling::Scaling;
use crate::svg::{Axis, LineChart, Point, Scale, Series, plain};

/// The curves of one group.
pub(crate) fn view(scaling: &Scaling, id: &str) -> Option<LineChart> {
    let mut numbers: Vec<u32> = Vec::new();
    let mut series: Vec<Series> = scaling
        .families
        .iter()
        .map(|family| {
            let points = family.members.iter().filter_map(|member| {
                let (ratio, interval) = member.speed_up?;
                if !numbers.contains(&member.readers) {
                    numbers.push(member.readers);
                }
                Some(Point {
                    x: f64::from(member.readers),
                    y: ratio,
                    interval: interval.map(|ends| (ends.low, ends.high)),
                })
            });
            Series {
                label: family.label.clone(),
                strong: false,
                published: false,
                points: points.collect(),
            }
        })
        .collect();
    series.retain(|series| series.points.len() > 1);
    if series.is_empty() {
        return None;
    }
    numbers.sort_unstable();
    let ticks: Vec<f64> = numbers.iter().map(|readers| f64::from(*readers)).collect();
    series.push(Series {
        label: "ideal".to_owned(),
        strong: false,
        published: true,
        points: numbers
            .iter()
            .map(|readers| Point {
                x: f64::from(*readers),
                y: f64::from(scaling.ideal(*readers)),
                interval: None,
            })
            .collect(),
    });
    Some(LineChart {
        id: id.to_owned(),
        title: format!("Readers at once: {}", scaling.title),
        x: Axis::new("readers", Scale::Logarithmic, plain).with_ticks(&ticks),
        y: Axis::new(
            "times as many operations a second as one reader",
            Scale::Linear,
            plain,
        ),
        reference: None,
        marked: Vec::new(),
        crossings: Vec::new(),
        series,
    })
}
