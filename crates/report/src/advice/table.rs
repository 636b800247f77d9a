//! The two tables of an advice page: how large the files are, and what was tried.

use sqlitmus_core::advice::{AdviceRecord, Recommendation, Stage, Standing};
use sqlitmus_core::tree_scan::log_histogram::CLASS_STARTS;
use sqlitmus_core::units::format_ratio;

use super::sentences::{binary, ratio_words, time_words};
use crate::terminal::{Ink, Tone};
use crate::text::{clean, fit, left};

/// Columns of the longest bar.
const BAR_COLUMNS: usize = 30;

/// Columns of names.
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
    let head = format!(
        "{} {:>19} {:>17} {:>17} {:>9}",
        left("Times as fast as your files", NAME_COLUMNS),
        mix,
        "read",
        "write",
        "space"
    );
    let mut lines = vec![ink.paint(&fit(&head, columns), Tone::Heading)];
    let mut last_stage = None;
    for standing in &recommendation.standings {
        if last_stage != Some(standing.stage) && standing.composed.is_some() {
            lines.push(ink.paint(stage_line(standing.stage), Tone::Faint));
            last_stage = Some(standing.stage);
        }
        lines.push(fit(&standing_line(standing), columns));
    }
    for (name, part) in &recommendation.references {
        if lines.last().is_some_and(|line| !line.starts_with("  = ")) {
            lines.push(ink.paint("to compare, reading alone:", Tone::Faint));
        }
        let label = match name.as_str() {
            "system-library" => "with your system's SQLite",
            "packfile" => "one packed file, mapped",
            _ => "a copy in memory: the limit",
        };
        let line = format!(
            "  = {} {:>19} {:>17}",
            left(label, NAME_COLUMNS - 4),
            "",
            ratio_words(part.ratio, part.interval),
        );
        lines.push(fit(
            &format!("{line} {:>12}", time_words(part.operation_ns)),
            columns,
        ));
    }
    lines
}

fn stage_line(stage: Stage) -> &'static str {
    match stage {
        Stage::Confirm => "confirmed:",
        Stage::Halve => "tried, and left after the second round of selection:",
        Stage::Select => "tried, and left after the first:",
    }
}

fn standing_line(standing: &Standing) -> String {
    let label = left(&clean(&standing.label), NAME_COLUMNS - 2);
    let Some(composed) = standing.composed else {
        let reason = standing.reason.as_deref().unwrap_or("not measured");
        return format!("  {label} {}", clean(reason));
    };
    let is_confirmed = standing.stage == Stage::Confirm;
    let part = |part: Option<sqlitmus_core::advice::Part>| match part {
        Some(part) if is_confirmed => ratio_words(part.ratio, part.interval),
        Some(part) => format!("about {}", format_ratio(part.ratio)),
        None => "-".to_owned(),
    };
    let whole = if is_confirmed {
        ratio_words(composed.ratio, composed.interval)
    } else {
        format!("about {}", format_ratio(composed.ratio))
    };
    let space = standing
        .space
        .map_or("-".to_owned(), |space| format_ratio(1.0 / space));
    format!(
        "  {label} {whole:>19} {:>17} {:>17} {space:>9}",
        part(composed.read),
        part(composed.write),
    )
}
