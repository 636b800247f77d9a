//! What is not a table: pieces of a line that share a separator, and the published sentences with
//! their verdicts.

use sqlitmus_core::claims::{ClaimResult, Judgement};
use sqlitmus_core::suite::ClaimQuantity;
use sqlitmus_core::units::format_ratio;
use sqlitmus_core::verdict::Verdict;

use crate::figures::{DASH, plus_minus};
use crate::summary::{border, judgement, named};
use crate::text::{fit, left, right, width, wrap};

use super::ink::{Ink, Line, Tone};
use super::time_chart::MOST_REASON_COLUMNS;

/// Short pieces in lines of at most so many columns, ` | ` between them; a piece is broken only if
/// it is longer than a line.
pub(super) fn pieces(pieces: &[String], columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for piece in pieces {
        match lines.last_mut() {
            Some(line) if width(line) + 3 + width(piece) <= columns => {
                line.push_str(" | ");
                line.push_str(piece);
            }
            _ => lines.extend(wrap(piece, columns)),
        }
    }
    lines
}

/// The tone of a verdict.
pub(super) fn tone(verdict: Verdict) -> Tone {
    match verdict {
        Verdict::Faster => Tone::Good,
        Verdict::Slower => Tone::Bad,
        Verdict::NoDifferenceWorthHaving | Verdict::NotSureYet => Tone::Faint,
    }
}

/// The published sentences: verdict, measured ratio with its interval, sentence.
pub(super) fn claims(claims: &[ClaimResult], columns: usize, ink: Ink) -> Vec<String> {
    let figures = |claim: &ClaimResult| match claim.ratio {
        Some(ratio) if claim.interval.is_some() || claim.claim.of == ClaimQuantity::Time => (
            format_ratio(ratio),
            format!(" {}", plus_minus(claim.interval)),
        ),
        Some(ratio) => (format_ratio(ratio), String::new()),
        None => (DASH.to_owned(), String::new()),
    };
    let widest = |part: fn(&(String, String)) -> &String| {
        claims
            .iter()
            .map(|claim| width(part(&figures(claim))))
            .max()
            .unwrap_or(0)
    };
    let verdicts = claims
        .iter()
        .map(|claim| width(judgement(&claim.judgement).0))
        .max();
    let (verdicts, heads, tails) = (
        verdicts.unwrap_or(0),
        widest(|pair| &pair.0),
        widest(|pair| &pair.1),
    );
    let indent = verdicts + 2 + heads + tails + 2;
    let mut lines = Vec::new();
    for claim in claims {
        let (verdict, reason) = judgement(&claim.judgement);
        let (head, tail) = figures(claim);
        let mut line = Line::of(
            &left(verdict, verdicts + 2),
            judgement_tone(&claim.judgement),
        );
        line.push(&right(&head, heads), Tone::Plain);
        line.push(&tail, Tone::Plain);
        let sentence = sentence(claim, reason, columns.saturating_sub(indent));
        for text in sentence {
            line.pad_to(indent);
            line.push(&text, Tone::Plain);
            lines.push(std::mem::take(&mut line).render(columns, ink));
        }
    }
    lines
}

/// A claim's sentence in lines; where its border is follows if that needs no further line.
fn sentence(claim: &ClaimResult, reason: Option<String>, columns: usize) -> Vec<String> {
    let mut sentence = named(&claim.claim.sentence, "(without a sentence)");
    if let Some(reason) = reason {
        sentence = format!("{sentence} ({})", fit(&reason, MOST_REASON_COLUMNS));
        return wrap(&sentence, columns);
    }
    let lines = wrap(&sentence, columns);
    let Some(border) = border(&claim.claim) else {
        return lines;
    };
    let longer = wrap(&format!("{sentence} ({border})"), columns);
    if longer.len() == lines.len() {
        longer
    } else {
        lines
    }
}

fn judgement_tone(judgement: &Judgement) -> Tone {
    match judgement {
        Judgement::Holds => Tone::Good,
        Judgement::DoesNotHold => Tone::Bad,
        Judgement::NotSure => Tone::Unsure,
        Judgement::NotMeasured(_) => Tone::Faint,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_share_lines_where_they_fit() {
        let given = ["one", "two", "three and a half"].map(str::to_owned);
        assert_eq!(pieces(&given, 80), ["one | two | three and a half"]);
        assert_eq!(pieces(&given, 10), ["one | two", "three and", "a half"]);
    }
}
