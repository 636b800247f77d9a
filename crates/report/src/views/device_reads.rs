//! What a cold read asked of the device, which is why it takes as long as it does: requests, each of which waits,
//! and bytes, as a multiple of what was asked for.

use sqlitmus_core::analysis::Analysis;
use sqlitmus_core::resource_use::ResourceUse;
use sqlitmus_core::run::Run;

use crate::resources::{ColdGroup, cold_groups, times};
use crate::svg::{Bar, Bars, BarsBody, BarsRow, Chart, Data, datum};

use super::View;

/// What one of the two pictures shows.
struct Quantity {
    id: &'static str,
    title: &'static str,
    heading: &'static str,
    column: &'static str,
    of: fn(&ResourceUse) -> Option<f64>,
}

const QUANTITIES: [Quantity; 2] = [
    Quantity {
        id: "requests",
        title: "Requests to the device",
        heading: "requests for one operation (fewer is better)",
        column: "device_read_requests",
        of: |used| used.per_operation.get("device_read_requests").copied(),
    },
    Quantity {
        id: "bytes",
        title: "Bytes from the device",
        heading: "bytes from the device for each byte of content (fewer is better)",
        column: "device_bytes_per_content_byte",
        of: ResourceUse::device_bytes_per_content_byte,
    },
];

/// A view for each group with a cold cache.
pub(crate) fn views(run: &Run, analysis: &Analysis) -> Vec<View> {
    let groups = cold_groups(run, analysis);
    let view = |(index, group): (usize, &ColdGroup)| View {
        id: format!("device-{}", index + 1),
        heading: group.title(),
        about: "Each request is waited for; what is read ahead may serve the next read, or nobody."
            .to_owned(),
        charts: QUANTITIES
            .iter()
            .filter_map(|quantity| chart(group, quantity, index))
            .map(|chart| -> (Box<dyn Chart>, &'static str) { (Box::new(chart), "") })
            .collect(),
    };
    groups.iter().enumerate().map(view).collect()
}

fn chart(group: &ColdGroup, quantity: &Quantity, index: usize) -> Option<Bars> {
    let value = |used: &ResourceUse| (quantity.of)(used).filter(|value| value.is_finite());
    let known = group
        .arms
        .iter()
        .filter_map(|arm| value(arm.used.as_ref().ok()?));
    let largest = known.fold(0.0, f64::max);
    if largest <= 0.0 {
        return None;
    }
    let rows = group.arms.iter().map(|arm| {
        let found = arm.used.as_ref().map(value);
        BarsRow {
            label: arm.label.clone(),
            strong: arm.strong,
            hover: match found {
                Ok(Some(value)) => format!("{} {}", times(value), quantity.title.to_lowercase()),
                _ => String::new(),
            },
            tags: Vec::new(),
            body: match found {
                Ok(Some(value)) => BarsBody::Figures {
                    bar: Bar {
                        solid: value / largest,
                        figure: times(value),
                        ..Bar::default()
                    },
                    marks: Vec::new(),
                },
                Ok(None) => BarsBody::Trouble {
                    text: "not counted".to_owned(),
                    failed: false,
                },
                Err(reason) => BarsBody::Trouble {
                    failed: reason.starts_with("failed"),
                    text: reason.clone(),
                },
            },
        }
    });
    Some(Bars {
        id: format!("device-{}-{}", index + 1, quantity.id),
        title: format!("{}, {}", quantity.title, group.cache),
        bars: quantity.heading.to_owned(),
        scales: Vec::new(),
        rows: rows.collect(),
        data: Data {
            columns: vec!["arm".to_owned(), quantity.column.to_owned()],
            rows: group
                .arms
                .iter()
                .filter_map(|arm| {
                    let used = arm.used.as_ref().ok()?;
                    Some(vec![arm.label.clone(), datum(value(used))])
                })
                .collect(),
        },
    })
}
