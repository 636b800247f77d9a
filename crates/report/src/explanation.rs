//! Where the time goes: the parts of an operation that were measured by themselves, and what they
//! leave unexplained. Here are the words and figures; how they are laid out is for
//! [`crate::explanation_terminal`] and [`crate::explanation_html`], the chart for
//! [`crate::views::explained_parts`].

use sqlitmus_core::analysis::Analysis;
use sqlitmus_core::explanation::{Amount, Explained, LARGE_REST, Parts, ShareResult};
use sqlitmus_core::statistics::Interval;

use crate::figures::{DASH, percent};
use crate::summary::named;
use crate::text::clean;

/// Name of what no part explains.
pub(crate) const REST: &str = "not explained";

/// One arm's parts as text.
pub(crate) struct PartTable {
    /// What the report calls the arm.
    pub(crate) label: String,
    /// Rounds that it rests on; empty if nothing came of it.
    pub(crate) rounds: String,
    /// Parts, the rest, and the whole.
    pub(crate) rows: Vec<PartRow>,
    /// Sentences beneath.
    pub(crate) notes: Vec<String>,
}

/// A part as text.
pub(crate) struct PartRow {
    pub(crate) name: String,
    /// Microseconds, without the unit.
    pub(crate) time: String,
    /// Half of the interval in microseconds: `±0.03`.
    pub(crate) reach: String,
    /// Of the whole, as a percentage.
    pub(crate) share: String,
    /// The same as a number, for bars.
    pub(crate) fraction: f64,
    pub(crate) kind: PartKind,
}

/// What a row of parts is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum PartKind {
    Part,
    Rest,
    Whole,
}

/// All arms that the suite explains.
pub(crate) fn tables(analysis: &Analysis) -> Vec<PartTable> {
    analysis.explanations.iter().map(table).collect()
}

fn table(explained: &Explained) -> PartTable {
    let label = named(&explained.label, &explained.arm);
    let parts = match &explained.result {
        Ok(parts) => parts,
        Err(reason) => {
            return PartTable {
                label,
                rounds: String::new(),
                rows: Vec::new(),
                notes: vec![format!("Nothing is explained: {}.", clean(reason))],
            };
        }
    };
    let mut rows: Vec<PartRow> = parts
        .parts
        .iter()
        .map(|(name, amount)| row(&named(name, "a part"), amount, PartKind::Part))
        .collect();
    rows.extend(parts.rest.map(|rest| row(REST, &rest, PartKind::Rest)));
    rows.push(row("all of it", &parts.whole, PartKind::Whole));
    PartTable {
        label,
        rounds: crate::summary::plural(parts.rounds as u64, "round", "rounds"),
        rows,
        notes: notes(parts),
    }
}

fn row(name: &str, amount: &Amount, kind: PartKind) -> PartRow {
    PartRow {
        name: name.to_owned(),
        time: signed_microseconds(amount.ns),
        reach: reach(amount.interval),
        share: percent(amount.share),
        fraction: amount.share,
        kind,
    }
}

fn notes(parts: &Parts) -> Vec<String> {
    let mut notes = Vec::new();
    if parts.rest.is_none() {
        notes.push(
            "Each part is what one arm takes longer than the one before it: they add up by \
             construction."
                .to_owned(),
        );
    }
    if !parts.has_large_rest() {
        return notes;
    }
    let limit = percent(LARGE_REST);
    notes.push(match &parts.suspected {
        Some(suspected) => format!(
            "More than {limit} is not explained. Suspected, not measured: {}",
            clean(suspected)
        ),
        None => format!("More than {limit} is not explained, and the suite suspects nothing."),
    });
    notes
}

/// Microseconds with a sign where they are below zero: a difference may be.
pub(crate) fn signed_microseconds(ns: f64) -> String {
    if !ns.is_finite() {
        return DASH.to_owned();
    }
    let microseconds = ns / 1e3;
    let decimals = match microseconds.abs() {
        size if size < 9.995 => 2,
        size if size < 99.95 => 1,
        _ => 0,
    };
    let shown = format!("{microseconds:.decimals$}");
    match shown.trim_start_matches(['-', '0', '.']).is_empty() {
        true => shown.trim_start_matches('-').to_owned(),
        false => shown,
    }
}

fn reach(interval: Option<Interval>) -> String {
    interval.map_or_else(
        || "±?".to_owned(),
        |ends| format!("±{}", signed_microseconds((ends.high - ends.low) / 2.0)),
    )
}

/// The answers about shares, as sentences.
pub(crate) fn answers(analysis: &Analysis) -> Vec<String> {
    analysis.shares.iter().map(answer).collect()
}

fn answer(share: &ShareResult) -> String {
    let sentence = clean(&share.sentence);
    match &share.result {
        Err(reason) => format!("{sentence}: not known, since {}.", clean(reason)),
        Ok(found) => match found.interval {
            Some(ends) => format!(
                "{sentence} {} ({} to {}).",
                percent(found.ratio),
                percent(ends.low),
                percent(ends.high)
            ),
            None => format!(
                "{sentence}: not known, since what it is a share of cannot be told from nothing."
            ),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_below_zero_keep_their_sign() {
        assert_eq!(signed_microseconds(-120.0), "-0.12");
        assert_eq!(signed_microseconds(-1.0), "0.00");
        assert_eq!(signed_microseconds(12_340.0), "12.3");
        assert_eq!(signed_microseconds(123_400.0), "123");
        assert_eq!(signed_microseconds(f64::NAN), "-");
    }
}
