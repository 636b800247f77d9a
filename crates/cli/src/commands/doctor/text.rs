//! An examination as text: one line a check, then what to do about those that are not well.

use std::fmt::Write;

use sqlitmus_report::{Look, clean, fit, left, wrap};

use crate::machine::doctor::{Examination, Finding, Level};

/// Columns of the word of the level and the name of the check, with what separates them.
const LEVEL_COLUMNS: usize = 9;
const CHECK_COLUMNS: usize = 16;
const INDENT: usize = 2;

/// Fewer columns than this are not filled any more.
const COLUMNS_MIN: usize = 60;

/// The text.
pub fn text(examination: &Examination, look: &Look) -> String {
    let columns = look.columns.max(COLUMNS_MIN);
    let mut text = format!(
        "Examined: this machine, and {}\n\n",
        clean(&examination.place)
    );
    for finding in &examination.findings {
        push_line(&mut text, finding, columns, look.color);
    }
    for level in [Level::Problem, Level::Warning, Level::Note] {
        for finding in examination
            .findings
            .iter()
            .filter(|finding| finding.level == level)
        {
            push_advice(&mut text, finding, columns, look.color);
        }
    }
    text.push('\n');
    for line in wrap(&in_short(examination), columns) {
        text.push_str(&line);
        text.push('\n');
    }
    text
}

/// One line; where nothing is said about it below, all of it is shown.
fn push_line(text: &mut String, finding: &Finding, columns: usize, color: bool) {
    let head = INDENT + LEVEL_COLUMNS + CHECK_COLUMNS;
    let said = clean(&finding.finding);
    let lines = match finding.level {
        Level::Ok => wrap(&said, columns - head),
        _ => vec![fit(&said, columns - head)],
    };
    for (index, line) in lines.iter().enumerate() {
        text.push_str(&" ".repeat(INDENT));
        if index == 0 {
            text.push_str(&painted(
                &left(finding.level.word(), LEVEL_COLUMNS),
                finding.level,
                color,
            ));
            text.push_str(&left(finding.check, CHECK_COLUMNS));
        } else {
            text.push_str(&" ".repeat(head - INDENT));
        }
        text.push_str(line);
        text.push('\n');
    }
}

/// What was found in full, why it matters, and what to do.
fn push_advice(text: &mut String, finding: &Finding, columns: usize, color: bool) {
    let word = painted(finding.level.word(), finding.level, color);
    // Writing to a text cannot fail.
    let _ = writeln!(text, "\n{word}: {}", finding.check);
    let parts = [
        ("found: ", finding.finding.as_str()),
        ("why:   ", finding.why),
        ("do:    ", finding.advice.as_str()),
    ];
    for (name, said) in parts.into_iter().filter(|(_, said)| !said.is_empty()) {
        let width = columns - INDENT - name.len();
        for (index, line) in wrap(&clean(said), width).iter().enumerate() {
            let name = if index == 0 { name } else { "       " };
            let _ = writeln!(text, "{}{name}{line}", " ".repeat(INDENT));
        }
    }
}

fn in_short(examination: &Examination) -> String {
    let count = |level, one: &str, many: &str| {
        let found = examination
            .findings
            .iter()
            .filter(|finding| finding.level == level);
        match found.count() {
            1 => format!("1 {one}"),
            other => format!("{other} {many}"),
        }
    };
    let counts = format!(
        "{}, {}, {}",
        count(Level::Problem, "problem", "problems"),
        count(Level::Warning, "warning", "warnings"),
        count(Level::Note, "note", "notes")
    );
    let meaning = match examination.level {
        Level::Problem => "numbers measured here now are not to be trusted",
        Level::Warning => "numbers can be measured here; read them with the warnings in mind",
        Level::Ok | Level::Note => "nothing stands in the way of measuring here",
    };
    format!("In short: {counts}: {meaning}.")
}

/// In the colour of its level: the sixteen that every terminal has.
fn painted(text: &str, level: Level, color: bool) -> String {
    let code = match level {
        Level::Ok => "32",
        Level::Note => "36",
        Level::Warning => "33",
        Level::Problem => "31",
    };
    if color {
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    } else {
        text.to_owned()
    }
}
