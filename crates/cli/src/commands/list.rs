//! `sqlitmus list`: suites, engines with their settings, and the runs kept in a place.

use std::fmt::Write;

use sqlitmus_core::settings::SettingKind;

use crate::arguments::ListArguments;
use crate::commands::print;
use crate::failure::ExitCode;
use crate::{runs, suites};

/// Lists.
///
/// # Errors
/// Standard output cannot be written.
pub fn run(arguments: &ListArguments) -> anyhow::Result<ExitCode> {
    let mut text = String::from("Suites (sqlitmus measure SUITE):\n");
    for suite in suites::embedded() {
        writeln!(text, "  {:<12} {}", suite.name, suite.about)?;
        writeln!(text, "  {:<12} scales: {}", "", suite.scales().join(", "))?;
        let groups: Vec<&str> = suite
            .group
            .iter()
            .map(|group| group.name.as_str())
            .collect();
        writeln!(text, "  {:<12} groups: {}", "", groups.join(", "))?;
    }
    text.push_str("\nEngines and their settings, the default first:\n");
    for engine in sqlitmus_engines::all() {
        writeln!(text, "  {:<12} {}", engine.name(), engine.about())?;
        for setting in engine.settings() {
            writeln!(
                text,
                "    {:<16} {}\n    {:<16} {}",
                setting.name,
                values(&setting.kind, setting.default),
                "",
                setting.about
            )?;
        }
    }
    let kept = runs::kept(&arguments.place)?;
    text.push_str("\nRuns kept here, newest first (sqlitmus report RUN):\n");
    if kept.runs.is_empty() && kept.unreadable.is_empty() {
        text.push_str("  none\n");
    }
    for run in kept.runs.iter().rev() {
        writeln!(text, "  {}", run.path.display())?;
    }
    for error in &kept.unreadable {
        writeln!(text, "  cannot be read: {error}")?;
    }
    print(&text)?;
    Ok(ExitCode::Done)
}

/// Values that a setting takes, its default first.
fn values(kind: &SettingKind, default: &str) -> String {
    let words = |words: &[&str]| {
        let others = words.iter().filter(|word| **word != default);
        std::iter::once(default)
            .chain(others.copied())
            .collect::<Vec<_>>()
            .join(" | ")
    };
    match kind {
        SettingKind::Choice(known) => words(known),
        SettingKind::ChoiceOrPath(known) => format!("{} | PATH", words(known)),
        SettingKind::CountOr(known) => format!("{} | N", words(known)),
        SettingKind::Bytes {
            minimum,
            maximum,
            words: known,
        } => format!("{} | bytes from {minimum} to {maximum}", words(known)),
    }
}
