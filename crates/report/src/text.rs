//! Text that is safe to show. Labels, reasons, paths and command lines come from run files, which
//! may be anybody's: they must not move the cursor, change colours, reverse the reading direction
//! or widen a table.
//!
//! Escaping for a format (HTML, JSON) is that format's business.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Stands for what was cut off.
const ELLIPSIS: char = '…';

/// Marks that may stack on one letter: what real scripts need, not what fills a screen.
const MOST_MARKS: usize = 3;

/// One line of text without anything invisible: escape sequences, control characters, marks that
/// change the reading direction and characters of no width that are not accents are removed; line
/// breaks and tabs become spaces, and runs of spaces one.
#[must_use]
pub fn clean(text: &str) -> String {
    let mut cleaned = String::with_capacity(text.len());
    let mut marks = 0;
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        if letter == '\u{1b}' || letter == '\u{9b}' {
            skip_escape_sequence(letter, &mut letters);
            continue;
        }
        if letter.is_whitespace() {
            if !cleaned.is_empty() && !cleaned.ends_with(' ') {
                cleaned.push(' ');
            }
            continue;
        }
        if letter.is_control() || is_invisible(letter) {
            continue;
        }
        marks = if letter.width() == Some(0) {
            marks + 1
        } else {
            0
        };
        if marks <= MOST_MARKS && (marks == 0 || !cleaned.is_empty()) {
            cleaned.push(letter);
        }
    }
    cleaned.truncate(cleaned.trim_end().len());
    cleaned
}

/// What follows an escape character and belongs to it: `ESC [ ... letter`, `ESC ] ... BEL`, or one
/// letter. A sequence that does not end takes the rest of the text with it, as a terminal would.
fn skip_escape_sequence(first: char, letters: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    let introducer = if first == '\u{9b}' {
        Some('[')
    } else {
        letters.next()
    };
    match introducer {
        Some('[') => {
            let _ = letters.find(|letter| ('@'..='~').contains(letter));
        }
        Some(']' | 'P' | 'X' | '^' | '_') => {
            while let Some(letter) = letters.next() {
                if letter == '\u{7}' || letter == '\u{9c}' {
                    break;
                }
                if letter == '\u{1b}' {
                    let _ = letters.next_if_eq(&'\\');
                    break;
                }
            }
        }
        // `ESC ( B` and the like: one letter more.
        Some(' '..='/') => {
            let _ = letters.next();
        }
        _ => {}
    }
}

/// Whether a terminal does nothing with a character but show it.
pub(crate) fn is_harmless(letter: char) -> bool {
    !letter.is_control() && !is_invisible(letter) && !matches!(letter, '\u{2028}' | '\u{2029}')
}

/// Whether a character is there to be acted on, not read: Unicode's format characters as far as
/// they are known here (category Cf), variation selectors and private use.
fn is_invisible(letter: char) -> bool {
    matches!(letter,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{e000}'..='\u{f8ff}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffc}'
        | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{10ffff}')
}

/// Columns that a cleaned text takes on a terminal.
pub(crate) fn width(text: &str) -> usize {
    text.width()
}

/// As much of a cleaned text as fits into so many columns; where something is cut off, the last
/// column is an ellipsis.
#[must_use]
pub fn fit(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mut fitted = String::new();
    for letter in text.chars() {
        fitted.push(letter);
        if width(&fitted) + 1 > columns {
            fitted.pop();
            break;
        }
    }
    if columns > 0 {
        fitted.truncate(fitted.trim_end().len());
        fitted.push(ELLIPSIS);
    }
    fitted
}

/// A cleaned text on the left of so many columns.
#[must_use]
pub fn left(text: &str, columns: usize) -> String {
    let fitted = fit(text, columns);
    let spaces = columns.saturating_sub(width(&fitted));
    fitted + &" ".repeat(spaces)
}

/// A cleaned text on the right of so many columns.
pub(crate) fn right(text: &str, columns: usize) -> String {
    let fitted = fit(text, columns);
    " ".repeat(columns.saturating_sub(width(&fitted))) + &fitted
}

/// A cleaned text in lines of at most so many columns, broken at spaces; a word that is longer than
/// a line is cut where the line ends.
#[must_use]
pub fn wrap(text: &str, columns: usize) -> Vec<String> {
    let columns = columns.max(2);
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let spaced = usize::from(!line.is_empty());
        if width(&line) + spaced + width(word) <= columns {
            if spaced == 1 {
                line.push(' ');
            }
            line.push_str(word);
            continue;
        }
        if !line.is_empty() {
            lines.push(std::mem::take(&mut line));
        }
        for letter in word.chars() {
            line.push(letter);
            if width(&line) > columns {
                line.pop();
                lines.push(std::mem::replace(&mut line, letter.to_string()));
            }
        }
    }
    if !line.is_empty() {
        lines.push(line);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_acts_on_a_terminal_is_removed() {
        assert_eq!(clean("\u{1b}[31mred\u{1b}[0m"), "red");
        assert_eq!(clean("\u{1b}]0;title\u{7}text"), "text");
        assert_eq!(clean("\u{1b}]8;;http://x\u{1b}\\link"), "link");
        assert_eq!(clean("\u{9b}2Jgone"), "gone");
        assert_eq!(clean("\u{1b}(Bplain \u{1b}c!"), "plain !");
        assert_eq!(clean("a\u{0}\u{7f}\u{8}b\u{85}c"), "ab c");
        assert_eq!(clean("unfinished \u{1b}[31"), "unfinished");
    }

    #[test]
    fn what_reorders_or_hides_is_removed() {
        assert_eq!(
            clean("a\u{202e}cba\u{202c} \u{2066}x\u{2069}\u{200f}"),
            "acba x"
        );
        assert_eq!(clean("ze\u{200b}ro\u{feff}"), "zero");
        assert_eq!(clean("\u{301}e\u{301}"), "e\u{301}");
        assert_eq!(
            clean(&format!("e{}", "\u{301}".repeat(50))).chars().count(),
            4
        );
    }

    #[test]
    fn line_breaks_become_spaces() {
        assert_eq!(
            clean("  one\n\ttwo \r\n three\u{2028}four  "),
            "one two three four"
        );
    }

    #[test]
    fn wide_characters_are_counted_as_two() {
        assert_eq!(fit("データベース", 7), "データ…");
        assert_eq!(width(&fit("データベース", 6)), 5);
        assert_eq!(left("表", 4), "表  ");
        assert_eq!(right("表", 3), " 表");
        assert_eq!(fit("short", 5), "short");
        assert_eq!(fit("longer", 5), "long…");
        assert_eq!(fit("a longer one", 3), "a…");
        assert_eq!(fit("x", 0), "");
    }

    #[test]
    fn lines_are_never_wider_than_asked() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(
            wrap("データベースは速い", 6),
            ["データ", "ベース", "は速い"]
        );
        assert_eq!(wrap("", 7), Vec::<String>::new());
        for columns in 2..40 {
            for line in wrap(
                "a sentence with anextraordinarilylongword in データベース it",
                columns,
            ) {
                assert!(width(&line) <= columns, "{columns}: {line}");
            }
        }
    }
}
