//! The two tables of an advice page: how large the files are, and what was tried.

use sqlitmus_core::advice::{AdviceRecord, Part, Recommendation, Stage, Standing};
use sqlitmus_core::tree_scan::log_histogram::CLASS_STARTS;
use sqlitmus_core::units::format_ratio;

use super::sentences::{binary, ratio_words, time_words};
use crate::terminal::{Ink, Tone};
use crate::text::{clean, fit, left, width};

/// Columns of the longest bar.
const BAR_COLUMNS: usize = 30;

/// Columns of names, at least.
const NAME_COLUMNS: usize = 30;

/// Sizes of the files by class, as bars of their number.
pub(super) fn sizes(record: &AdviceRecord, columns: usize) -> Vec<String> {
    let classes = classes(record);
    let whole = (
        record.tree.files.max(1) as f64,
        record.tree.bytes.max(1) as f64,
    );
    let most = classes
        .iter()
        .map(|class| class.files)
        .max()
        .unwrap_or(1)
        .max(1);
    let mut lines = vec![format!(
        "{:<18} {:<BAR_COLUMNS$} {:>8} {:>8}",
        "Size", "files", "of files", "of bytes"
    )];
    for class in classes {
        let bar = (class.files as f64 / most as f64 * BAR_COLUMNS as f64).ceil() as usize;
        lines.push(format!(
            "  {:<16} {:<BAR_COLUMNS$} {:>7.1}% {:>7.1}%",
            class.name,
            "#".repeat(bar),
            class.files as f64 / whole.0 * 100.0,
            class.bytes as f64 / whole.1 * 100.0
        ));
    }
    lines.iter().map(|line| fit(line, columns)).collect()
}

struct Class {
    name: String,
    files: u64,
    bytes: u64,
}

/// The histogram in classes that are easy to name; those at both ends that are empty are left out.
fn classes(record: &AdviceRecord) -> Vec<Class> {
    let ends = CLASS_STARTS.iter().skip(1).copied().map(Some).chain([None]);
    let classes = CLASS_STARTS.iter().zip(ends).map(|(from, below)| {
        let inside = record
            .tree
            .sizes
            .iter()
            .filter(|size| size.low >= *from && below.is_none_or(|below| size.low < below));
        let (files, bytes) =
            inside.fold((0, 0), |sum, size| (sum.0 + size.files, sum.1 + size.bytes));
        let name = match (*from, below) {
            (0, _) => "empty".to_owned(),
            (from, Some(below)) if from <= 1 => format!("below {}", binary(below)),
            (from, Some(below)) => format!("{} - {}", binary(from), binary(below)),
            (from, None) => format!("from {}", binary(from)),
        };
        Class { name, files, bytes }
    });
    let mut classes: Vec<Class> = classes.skip_while(|class| class.files == 0).collect();
    while classes.last().is_some_and(|class| class.files == 0) {
        classes.pop();
    }
    classes
}

/// What was tried, the confirmed first.
pub(super) fn standings(
    record: &AdviceRecord,
    recommendation: &Recommendation,
    columns: usize,
    ink: Ink,
) -> Vec<String> {
    let mix = match (record.wish.reads, record.wish.writes) {
        (_, 0) => "reading".to_owned(),
        (0, _) => "writing".to_owned(),
        (reads, writes) => format!("{reads}:{writes}"),
    };
    let layout = Layout::of(recommendation, columns);
    let head = layout.line(
        "Times as fast as your files",
        &mix,
        ["read", "write", "space"],
    );
    let mut lines = vec![ink.paint(&fit(&head, columns), Tone::Heading)];
    let mut last_stage = None;
    let mut standings: Vec<&Standing> = recommendation.standings.iter().collect();
    // The sort keeps the order by speed within a stage.
    standings.sort_by_key(|standing| match standing.composed {
        None => u8::MAX,
        Some(_) => u8::MAX - 1 - standing.stage.number().min(u8::MAX - 1),
    });
    for standing in standings {
        if last_stage != Some(standing.stage) && standing.composed.is_some() {
            lines.push(ink.paint(&stage_line(standing.stage), Tone::Faint));
            last_stage = Some(standing.stage);
        }
        lines.push(fit(&layout.standing(standing), columns));
    }
    for (number, (name, part)) in recommendation.references.iter().enumerate() {
        if number == 0 {
            lines.push(ink.paint("to compare, reading alone:", Tone::Faint));
        }
        let label = match name.as_str() {
            "system-library" => "  with your system's SQLite",
            "packfile" => "  one packed file, mapped",
            _ => "  a copy in memory: the limit",
        };
        let read = layout.part(part);
        let line = layout.line(label, "", [&read, &time_words(part.operation_ns), ""]);
        lines.push(fit(line.trim_end(), columns));
    }
    lines
}

/// Widths of the columns: where there is no room for all intervals, the mixture alone has its.
struct Layout {
    name: usize,
    has_all_intervals: bool,
}

impl Layout {
    /// Columns of a ratio with its interval, of one without, and of space.
    const INTERVAL: usize = 19;
    const BARE: usize = 11;
    const SPACE: usize = 7;

    fn of(recommendation: &Recommendation, columns: usize) -> Self {
        let labels = recommendation.standings.iter();
        let longest = labels.map(|standing| width(&clean(&standing.label))).max();
        let wide = (longest.unwrap_or(0) + 2).max(NAME_COLUMNS);
        Self {
            name: wide.min(columns.saturating_sub(Self::INTERVAL + 2 * Self::BARE + Self::SPACE)),
            has_all_intervals: wide + 3 * Self::INTERVAL + Self::SPACE <= columns,
        }
    }

    fn line(&self, label: &str, mixture: &str, [read, write, space]: [&str; 3]) -> String {
        let half = if self.has_all_intervals {
            Self::INTERVAL
        } else {
            Self::BARE
        };
        let (interval, last) = (Self::INTERVAL, Self::SPACE);
        let label = left(&fit(label, self.name), self.name);
        format!("{label}{mixture:>interval$}{read:>half$}{write:>half$}{space:>last$}")
    }

    fn part(&self, part: &Part) -> String {
        if self.has_all_intervals {
            ratio_words(part.ratio, part.interval)
        } else {
            format_ratio(part.ratio)
        }
    }

    fn standing(&self, standing: &Standing) -> String {
        let label = format!("  {}", clean(&standing.label));
        let Some(composed) = standing.composed else {
            let reason = standing.reason.as_deref().unwrap_or("not measured");
            return format!("{} {}", left(&label, self.name), clean(reason));
        };
        let is_confirmed = standing.stage == Stage::Confirm;
        let part = |part: Option<Part>| match part {
            Some(part) if is_confirmed => self.part(&part),
            Some(part) => format!("about {}", format_ratio(part.ratio)),
            None => "-".to_owned(),
        };
        let whole = if is_confirmed {
            ratio_words(composed.ratio, composed.interval)
        } else {
            format!("about {}", format_ratio(composed.ratio))
        };
        let space = standing.space;
        let space = space.map_or("-".to_owned(), |space| format_ratio(1.0 / space));
        let parts = [&part(composed.read), &part(composed.write), space.as_str()];
        self.line(&label, &whole, [parts[0], parts[1], parts[2]])
    }
}

fn stage_line(stage: Stage) -> String {
    match stage {
        Stage::Confirm => "confirmed:".to_owned(),
        Stage::Halve(number) => {
            format!(
                "tried, and left after round {} of the selection:",
                number + 1
            )
        }
        Stage::Select => "tried, and left after the first round of the selection:".to_owned(),
    }
}
