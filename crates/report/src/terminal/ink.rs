//! Colour on a terminal, where it means something: a verdict, a failure. Nothing else is coloured,
//! and everything can be read without. Lines are put together here, so that widths are counted
//! before colours go in.

use crate::text::{fit, width};

/// What a piece of text means.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Tone {
    /// Nothing in particular.
    #[default]
    Plain,
    /// A heading.
    Heading,
    /// Faster, or a sentence that holds.
    Good,
    /// Slower, failed, or a sentence that does not hold.
    Bad,
    /// Not decided.
    Unsure,
    /// Of less importance.
    Faint,
}

/// Whether colours are used.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ink {
    /// If not, every text stays as it is.
    pub(crate) color: bool,
}

impl Ink {
    /// The text in its tone; its width does not change.
    pub(crate) fn paint(self, text: &str, tone: Tone) -> String {
        // The sixteen colours that every terminal has, as its theme defines them.
        let code = match tone {
            Tone::Plain => return text.to_owned(),
            Tone::Heading => "1",
            Tone::Good => "32",
            Tone::Bad => "31",
            Tone::Unsure => "33",
            Tone::Faint => "2",
        };
        let inner = text.trim_end();
        if !self.color || inner.is_empty() {
            return text.to_owned();
        }
        format!("\u{1b}[{code}m{inner}\u{1b}[0m{}", &text[inner.len()..])
    }
}

/// A line of cleaned texts, each with its tone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Line(Vec<(String, Tone)>);

impl Line {
    /// A line of one text.
    pub(crate) fn of(text: &str, tone: Tone) -> Self {
        let mut line = Self::default();
        line.push(text, tone);
        line
    }

    /// Appends a text.
    pub(crate) fn push(&mut self, text: &str, tone: Tone) {
        self.0.push((text.to_owned(), tone));
    }

    /// Appends spaces up to a column, if the line is shorter.
    pub(crate) fn pad_to(&mut self, column: usize) {
        let spaces = column.saturating_sub(self.width());
        self.push(&" ".repeat(spaces), Tone::Plain);
    }

    /// Columns it takes.
    pub(crate) fn width(&self) -> usize {
        self.0.iter().map(|(text, _)| width(text)).sum()
    }

    /// Whether nothing can be seen of it.
    pub(crate) fn is_blank(&self) -> bool {
        self.0.iter().all(|(text, _)| text.trim().is_empty())
    }

    /// The line as it is printed: cut off at so many columns, without spaces at its end.
    pub(crate) fn render(&self, columns: usize, ink: Ink) -> String {
        let mut rendered = String::new();
        let mut left = columns;
        for (text, tone) in &self.0 {
            let text = fit(text, left);
            left -= width(&text);
            rendered.push_str(&ink.paint(&text, *tone));
        }
        rendered.truncate(rendered.trim_end().len());
        rendered
    }
}
