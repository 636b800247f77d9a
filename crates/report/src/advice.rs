//! Advice as text: one page that begins with the answer ([`terminal()`], [`markdown()`]), the same for programs
//! ([`json()`]), and what to paste ([`snippet`]). What follows from the figures is decided in
//! [`sqlitmus_core::advice`].

pub(crate) mod further;
mod markdown;
pub(crate) mod sentences;
pub mod snippet;
mod table;

use serde_json::{Value, json as object};
use sqlitmus_core::advice::{AdviceRecord, Recommendation};
use sqlitmus_core::run::Run;

use crate::Look;
use crate::lifecycle;
use crate::terminal::{Ink, Tone};
use crate::text::wrap;
use further::Section;
use snippet::Language;

pub use markdown::markdown;

/// Version of the JSON.
const FORMAT: &str = "sqlitmus-advice-1";

/// Running text is not set wider than this.
const MOST_TEXT_COLUMNS: usize = 110;

/// Fewer columns than this are treated as this many.
const LEAST_COLUMNS: usize = 60;

/// The page for a terminal: lines, each ended by a line feed. What is to be pasted comes last, and keeps
/// its lines as they are.
#[must_use]
pub fn terminal(
    run: &Run,
    recommendation: &Recommendation,
    languages: &[Language],
    look: &Look,
) -> String {
    let Some(record) = run.plan.advice.as_deref() else {
        return String::new();
    };
    let mut page = Page {
        columns: look.columns.max(LEAST_COLUMNS),
        ink: Ink { color: look.color },
        lines: Vec::new(),
    };
    page.text(&sentences::question(record), Tone::Heading);
    for line in sentences::about(run, record, recommendation) {
        page.text(&line, Tone::Plain);
    }
    page.blank();
    page.lines.extend(table::sizes(record, page.columns));
    page.blank();
    page.text(
        &sentences::answer(record, recommendation),
        sentences::tone(recommendation),
    );
    for sentence in sentences::beside(record, recommendation) {
        page.text(&sentence, Tone::Plain);
    }
    page.blank();
    page.lines.extend(table::standings(
        record,
        recommendation,
        page.columns,
        page.ink,
    ));
    let changes = sentences::sensitivity(record, recommendation);
    if !changes.is_empty() {
        page.blank();
        page.text("What would change the answer", Tone::Heading);
        for change in changes {
            page.item(&change);
        }
    }
    for section in further::sections(record, recommendation) {
        page.section(&section);
    }
    page.lives(run);
    page.paste(run, record, recommendation, languages);
    let mut text = page.lines.join("\n");
    text.push('\n');
    text
}

/// A page in the making.
struct Page {
    columns: usize,
    ink: Ink,
    lines: Vec<String>,
}

impl Page {
    fn blank(&mut self) {
        if self.lines.last().is_some_and(|line| !line.is_empty()) {
            self.lines.push(String::new());
        }
    }

    fn text(&mut self, text: &str, tone: Tone) {
        for line in wrap(text, self.columns.min(MOST_TEXT_COLUMNS)) {
            self.lines.push(self.ink.paint(&line, tone));
        }
    }

    fn item(&mut self, text: &str) {
        let columns = self.columns.min(MOST_TEXT_COLUMNS) - 4;
        for (number, line) in wrap(text, columns).into_iter().enumerate() {
            let mark = if number == 0 { "  - " } else { "    " };
            self.lines.push(format!("{mark}{line}"));
        }
    }

    /// A part of a thorough run.
    fn section(&mut self, section: &Section) {
        self.blank();
        self.text(section.heading, Tone::Heading);
        for sentence in &section.sentences {
            self.text(sentence, Tone::Plain);
        }
        self.blank();
        self.lines.extend(section.table.lines(self.columns));
    }

    /// What becomes of the stores when they are old, if that was measured.
    fn lives(&mut self, run: &Run) {
        for table in lifecycle::tables(run) {
            self.blank();
            self.lines.extend(table.lines(self.columns));
        }
    }

    /// Connection, schema, reading and writing, for the database that was best.
    fn paste(
        &mut self,
        run: &Run,
        record: &AdviceRecord,
        recommendation: &Recommendation,
        languages: &[Language],
    ) {
        let Some(setup) = snippet::Setup::of(record, recommendation) else {
            if let Some(reason) = snippet::without_code(record, recommendation) {
                self.blank();
                self.text(&reason, Tone::Plain);
            }
            return;
        };
        self.blank();
        if languages.is_empty() {
            let elsewhere = "What to paste, in five languages: `sqlitmus advise --snippet all`, or the HTML report of this run.";
            self.text(elsewhere, Tone::Plain);
            return;
        }
        self.text("What to paste", Tone::Heading);
        self.text(&sentences::paste(run, record, recommendation), Tone::Plain);
        for language in languages {
            self.blank();
            let code = setup.code(*language);
            self.lines.extend(code.lines().map(ToOwned::to_owned));
        }
    }
}

/// The answer for programs.
#[must_use]
pub fn json(run: &Run, recommendation: &Recommendation, languages: &[Language]) -> String {
    let answer = object_of(run, recommendation, languages);
    let mut text = serde_json::to_string_pretty(&answer).unwrap_or_default();
    text.push('\n');
    text
}

pub(crate) fn object_of(
    run: &Run,
    recommendation: &Recommendation,
    languages: &[Language],
) -> Value {
    let record = run.plan.advice.as_deref();
    let setup = record.and_then(|record| snippet::Setup::of(record, recommendation));
    let code: serde_json::Map<String, Value> = setup
        .iter()
        .flat_map(|setup| {
            let of = |language: &Language| {
                (
                    language.word().to_owned(),
                    Value::from(setup.code(*language)),
                )
            };
            languages.iter().map(of)
        })
        .collect();
    object!({
        "format": FORMAT,
        "run": run.head.id,
        "sqlitmus_version": run.head.sqlitmus_version,
        "place": run.head.place,
        "wish": record.map(|record| &record.wish),
        "tree": record.map(|record| &record.tree),
        "selected_with": record.map(|record| record.selected_with),
        "confirmed_with": record.map(|record| record.confirmed_with),
        "finalists": record.map(|record| &record.finalists),
        "sentence": record.map(|record| sentences::answer(record, recommendation)),
        "recommendation": recommendation,
        "settings": setup.as_ref().map(snippet::Setup::settings),
        "snippets": code,
        "lifecycle": lifecycle::json(run),
    })
}
