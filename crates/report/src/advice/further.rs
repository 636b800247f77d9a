//! What a thorough run adds to the page, as sections that every format renders alike: where the answer
//! turns by size, and what each setting is worth. A further stage is a line in [`sections`].

use sqlitmus_core::advice::sweep::{SweptCurve, SweptWhat};
use sqlitmus_core::advice::{
    AdviceRecord, CacheWish, Composed, Part, Recommendation, SettingWorth, SweepResult, Wish,
};
use sqlitmus_core::units::{format_bytes, format_ratio};

use super::sentences::ratio_words;
use crate::plain_table::PlainTable;
use crate::svg::{Axis, LineChart, Point, Scale, Series, bytes, ratio};
use crate::text::clean;
use crate::views::blob_sizes::marks;

/// A part of the page.
pub(crate) struct Section {
    /// Heading.
    pub(crate) heading: &'static str,
    /// What is said first.
    pub(crate) sentences: Vec<String>,
    /// What the first column of the table is.
    pub(crate) first_column: &'static str,
    /// The figures.
    pub(crate) table: PlainTable,
    /// The same as a picture.
    pub(crate) chart: Option<LineChart>,
}

impl Section {
    /// Headings and rows of the table, the first column included.
    pub(crate) fn cells(&self) -> (Vec<String>, Vec<Vec<String>>) {
        let (mut headings, rows) = self.table.cells();
        if let Some(first) = headings.first_mut() {
            self.first_column.clone_into(first);
        }
        (headings, rows)
    }
}

/// All sections that a run has something for, in their order.
pub(crate) fn sections(record: &AdviceRecord, recommendation: &Recommendation) -> Vec<Section> {
    let sweep = recommendation.sweep.as_ref();
    let all = [
        sweep.map(|sweep| by_size(&record.wish, sweep)),
        by_setting(&recommendation.ablation),
    ];
    all.into_iter().flatten().collect()
}

fn by_size(wish: &Wish, sweep: &SweepResult) -> Section {
    let mut sentences = vec![format!(
        "Files of one size each, made for this, on this disk and with the settings of {}, held against files that are \
         read and written as yours are now; all of a size are asked for alike, {}.",
        clean(&sweep.inside),
        match (wish.cache, wish.circumstances.memory_bytes) {
            (CacheWish::Cold, _) => "and read from the device".to_owned(),
            (_, Some(bytes)) => format!("with {} of memory", format_bytes(bytes)),
            _ => "and read from memory".to_owned(),
        }
    )];
    if wish.circumstances.memory_bytes.is_some() {
        sentences.push("That memory may have held all files of one size.".to_owned());
    }
    sentences.extend(sweep.curves.iter().map(|curve| {
        let what = capital(words_of(curve.what));
        format!("{what}: {}.", curve.words)
    }));
    Section {
        heading: "Where the answer turns by size",
        sentences,
        first_column: "Size",
        table: size_table(sweep),
        chart: size_chart(sweep),
    }
}

fn words_of(what: SweptWhat) -> &'static str {
    match what {
        SweptWhat::Mixture => "the mixture",
        SweptWhat::Reading => "reading",
        SweptWhat::Writing => "writing",
    }
}

fn capital(words: &str) -> String {
    let mut letters = words.chars();
    letters.next().map_or(String::new(), |first| {
        first.to_uppercase().chain(letters).collect()
    })
}

fn size_table(sweep: &SweepResult) -> PlainTable {
    let mut sizes: Vec<f64> = sweep
        .curves
        .iter()
        .flat_map(|curve| curve.points.iter().map(|point| point.bytes))
        .collect();
    sizes.sort_by(f64::total_cmp);
    sizes.dedup();
    let cell = |curve: &SweptCurve, bytes: f64| {
        let point = curve.points.iter().find(|point| point.bytes == bytes);
        point.map_or("-".to_owned(), |point| {
            ratio_words(point.ratio, point.interval)
        })
    };
    // A row of one cell would be a reason.
    let is_single = sweep.curves.len() == 1;
    let filler = || is_single.then(String::new);
    let row = |bytes: f64| {
        let cells = sweep.curves.iter().map(|curve| cell(curve, bytes));
        (format_bytes(bytes as u64), cells.chain(filler()).collect())
    };
    PlainTable {
        title: "Times as fast as files (95% interval)".to_owned(),
        headings: sweep
            .curves
            .iter()
            .map(|curve| words_of(curve.what))
            .chain(is_single.then_some(""))
            .collect(),
        rows: sizes.into_iter().map(row).collect(),
        notes: Vec::new(),
    }
}

fn size_chart(sweep: &SweepResult) -> Option<LineChart> {
    let series = |(place, curve): (usize, &SweptCurve)| Series {
        label: words_of(curve.what).to_owned(),
        strong: place == 0,
        published: false,
        points: curve
            .points
            .iter()
            .map(|point| Point {
                x: point.bytes,
                y: point.ratio,
                interval: point.interval.map(|ends| (ends.low, ends.high)),
            })
            .collect(),
    };
    let crossings = sweep
        .curves
        .first()
        .map(|curve| marks(0, &curve.crossover).collect());
    Some(LineChart {
        id: "advice-sizes".to_owned(),
        title: "In the database or outside, by size".to_owned(),
        x: Axis::new("bytes of a file", Scale::Logarithmic, bytes),
        y: Axis::new("times as fast as files", Scale::Logarithmic, ratio),
        marked: Vec::new(),
        crossings: crossings?,
        reference: Some((1.0, "as fast as files".to_owned())),
        series: sweep.curves.iter().enumerate().map(series).collect(),
    })
}

fn by_setting(worths: &[SettingWorth]) -> Option<Section> {
    if worths.is_empty() {
        return None;
    }
    let mut sorted: Vec<&SettingWorth> = worths.iter().collect();
    let gain = |worth: &SettingWorth| worth.composed.map_or(0.0, |composed| composed.ratio);
    sorted.sort_by(|one, other| {
        let put_back = other.is_put_back.cmp(&one.is_put_back);
        put_back.then(gain(other).total_cmp(&gain(one)))
    });
    let better: Vec<String> = sorted
        .iter()
        .filter(|worth| {
            worth
                .composed
                .is_some_and(|found| is_beyond(&found, Side::Loses))
        })
        .map(|worth| clean(&worth.words))
        .collect();
    let mut sentences = vec![
        "From the best, one thing is changed at a time: how many times as slow it is then. ~ is inside the noise: \
         no difference worth having. Each is judged by itself: of twenty, one may seem to differ by chance."
            .to_owned(),
    ];
    if !better.is_empty() {
        sentences.push(format!(
            "Surely faster the other way round: {}.",
            better.join("; ")
        ));
    }
    Some(Section {
        heading: "What each setting is worth",
        sentences,
        first_column: "Setting",
        table: PlainTable {
            title: "Gain of the best over the change (95% interval)".to_owned(),
            headings: vec!["the mixture", "reading", "writing", "space"],
            rows: sorted.into_iter().map(setting_row).collect(),
            notes: Vec::new(),
        },
        chart: None,
    })
}

/// Which way a setting is sure to go.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Gains,
    Loses,
}

/// Whether a gain or a loss is beyond the noise.
fn is_beyond(found: &Composed, side: Side) -> bool {
    let (Some(interval), Some(floor)) = (found.interval, found.noise_floor) else {
        return false;
    };
    match side {
        Side::Gains => interval.low > 1.0 && found.ratio > 1.0 + floor,
        Side::Loses => interval.high < 1.0 && found.ratio < 1.0 / (1.0 + floor),
    }
}

fn setting_row(worth: &SettingWorth) -> (String, Vec<String>) {
    let label = clean(&worth.words);
    let Some(found) = worth.composed else {
        let reason = worth.reason.as_deref().unwrap_or("not measured");
        return (label, vec![clean(reason)]);
    };
    let is_sure = is_beyond(&found, Side::Gains) || is_beyond(&found, Side::Loses);
    let mark = if is_sure { "" } else { "~" };
    let part = |part: Option<Part>| match part {
        // The same arm twice: only the other half was changed.
        Some(part) if part.interval.is_some_and(|ends| ends.low == ends.high) => "-".to_owned(),
        Some(part) => ratio_words(part.ratio, part.interval),
        None => "-".to_owned(),
    };
    let cells = vec![
        format!("{mark}{}", ratio_words(found.ratio, found.interval)),
        part(found.read),
        part(found.write),
        worth.space.map_or("-".to_owned(), format_ratio),
    ];
    (label, cells)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sqlitmus_core::statistics::Interval;

    fn worth(words: &str, low: f64, high: f64, floor: f64) -> SettingWorth {
        SettingWorth {
            words: words.to_owned(),
            is_put_back: true,
            composed: Some(Composed {
                ratio: (low * high).sqrt(),
                interval: Some(Interval { low, high }),
                read: None,
                write: None,
                noise_floor: Some(floor),
            }),
            space: None,
            reason: None,
        }
    }

    #[test]
    fn settings_are_sorted_and_noise_is_marked() {
        let section = by_setting(&[
            worth("little", 0.99, 1.02, 0.01),
            worth("much", 1.9, 2.1, 0.01),
            worth("harm", 0.8, 0.9, 0.01),
            worth("below the floor", 1.01, 1.03, 0.05),
        ]);
        let section = section.expect("a section");
        let (_, rows) = section.cells();
        let shown: Vec<(&str, &str)> = rows
            .iter()
            .map(|row| (row[0].as_str(), row[1].as_str()))
            .collect();
        assert_eq!(shown[0], ("much", "2.00 (1.90-2.10)"));
        assert_eq!(shown[1].1.chars().next(), Some('~'));
        assert_eq!(shown[2].1.chars().next(), Some('~'));
        assert_eq!(shown[3], ("harm", "0.85 (0.80-0.90)"));
        assert!(section.sentences[1].ends_with("the other way round: harm."));
        assert!(by_setting(&[]).is_none());
    }
}
