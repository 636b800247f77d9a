//! The comparison as Markdown: one line that says it all, then what was found to have changed, then
//! everything. For comments of a CI.

use sqlitmus_core::run_comparison::{Answer, Effect, Regression, RunComparison};
use sqlitmus_core::verdict::Verdict;

use super::{
    Row, Table, advice, answer_words, difference_words, method_words, not_judged, side_words,
    tables, unmatched_words, warnings,
};

/// Whose Markdown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flavour {
    /// Tables, and nothing that is HTML.
    Plain,
    /// GitHub's: details are collapsed.
    GitHub,
}

/// Renders a comparison as Markdown. Texts of the runs are escaped: they make no links, mentions,
/// tables or tags.
#[must_use]
pub fn markdown(comparison: &RunComparison, flavour: Flavour) -> String {
    let mut page = Page {
        flavour,
        text: String::new(),
    };
    let mark = match comparison.answer() {
        Answer::NoRegression => "pass",
        Answer::Regression => "fail",
        Answer::NotSure => "open",
    };
    page.line(&format!(
        "### sqlitmus compare: {mark}\n\n**{}**",
        escaped(&answer_words(comparison))
    ));
    for warning in warnings(comparison) {
        page.line(&format!("> **Warning:** {}", escaped(&warning)));
    }
    let tables = tables(comparison);
    page.changed(&tables);
    if let Some(advice) = advice(comparison) {
        page.line(&escaped(&advice));
    }
    let of_effect = |told: bool| -> Vec<String> {
        let all = comparison.differences.iter();
        all.filter(|difference| (difference.effect == Effect::Told) == told)
            .map(difference_words)
            .collect()
    };
    page.list("Conditions that differ", &of_effect(false));
    page.list("Not compared", &not_judged(comparison));
    page.list("In A alone", &unmatched_words(&comparison.only_a));
    page.list("In B alone", &unmatched_words(&comparison.only_b));
    page.details(comparison, &tables, &of_effect(true));
    page.text
}

struct Page {
    flavour: Flavour,
    text: String,
}

impl Page {
    /// A paragraph.
    fn line(&mut self, line: &str) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn list(&mut self, heading: &str, items: &[String]) {
        if items.is_empty() {
            return;
        }
        self.line(&format!("{heading}:"));
        let items: Vec<String> = items
            .iter()
            .map(|item| format!("- {}", escaped(item)))
            .collect();
        self.line(&items.join("\n"));
    }

    /// What became faster or slower; the rest is in the details.
    fn changed(&mut self, tables: &[Table<'_>]) {
        let rows: Vec<(&str, &Row<'_>)> = tables
            .iter()
            .flat_map(|table| table.rows.iter().map(|row| (table.group.as_str(), row)))
            .filter(|(_, row)| matches!(row.judged.verdict, Verdict::Faster | Verdict::Slower))
            .collect();
        if !rows.is_empty() {
            self.line(&table_of(&rows));
        }
    }

    fn details(&mut self, comparison: &RunComparison, tables: &[Table<'_>], told: &[String]) {
        let open = |row: &Row<'_>| row.judged.regression == Regression::Open;
        let rows = || tables.iter().flat_map(|table| &table.rows);
        let summary = format!(
            "All {} comparisons, {} not decided",
            rows().count(),
            rows().filter(|row| open(row)).count()
        );
        match self.flavour {
            Flavour::GitHub => self.line(&format!("<details>\n<summary>{summary}</summary>")),
            Flavour::Plain => self.line(&format!("#### {summary}")),
        }
        for table in tables {
            self.line(&format!("**Group {}**", escaped(&table.group)));
            for note in &table.notes {
                self.line(&escaped(note));
            }
            let rows: Vec<(&str, &Row<'_>)> = table
                .rows
                .iter()
                .map(|row| (table.group.as_str(), row))
                .collect();
            if !rows.is_empty() {
                self.line(&table_of(&rows));
            }
        }
        self.list("Also different", told);
        let sides = [
            side_words("A", &comparison.a),
            side_words("B", &comparison.b),
            method_words(comparison),
        ];
        self.list("Runs", &sides);
        self.line(
            "us: microseconds per operation. B vs A: times as fast, ± half of its own 95% interval. \
             Faster and slower hold among all comparisons, beyond noise floor and threshold.",
        );
        if self.flavour == Flavour::GitHub {
            self.line("</details>");
        }
    }
}

fn table_of(rows: &[(&str, &Row<'_>)]) -> String {
    let mut lines = vec![
        "| group | case | A us | B us | B vs A | verdict |".to_owned(),
        "|---|---|---:|---:|---:|---|".to_owned(),
    ];
    lines.extend(rows.iter().map(|(group, row)| {
        let bold = match row.judged.verdict {
            Verdict::Faster | Verdict::Slower => "**",
            Verdict::NoDifferenceWorthHaving | Verdict::NotSureYet => "",
        };
        format!(
            "| {} | {} | {} | {} | {} | {bold}{}{bold} |",
            escaped(group),
            escaped(&row.label),
            row.a,
            row.b,
            row.change,
            row.verdict
        )
    }));
    lines.join("\n")
}

/// A cleaned text in which nothing is Markdown or HTML. What GitHub links by itself (mentions,
/// issues, addresses) is broken up by an empty comment, which is not shown.
fn escaped(text: &str) -> String {
    const NOTHING: &str = "<!-- -->";
    let mut escaped = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '\\' | '`' | '*' | '_' | '{' | '}' | '[' | ']' | '|' | '~' | '!' => {
                escaped.push('\\');
                escaped.push(letter);
            }
            '@' | '#' => {
                escaped.push(letter);
                escaped.push_str(NOTHING);
            }
            ':' if letters.peek() == Some(&'/') => {
                escaped.push(letter);
                escaped.push_str(NOTHING);
            }
            '.' if escaped.to_ascii_lowercase().ends_with("www") => {
                escaped.push_str(NOTHING);
                escaped.push(letter);
            }
            _ => escaped.push(letter),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_text_is_markdown() {
        assert_eq!(
            escaped("a|b <b>*x*</b> `y` _z_ [l](u)"),
            "a\\|b &lt;b&gt;\\*x\\*&lt;/b&gt; \\`y\\` \\_z\\_ \\[l\\](u)"
        );
        assert_eq!(escaped("@all #12"), "@<!-- -->all #<!-- -->12");
        assert_eq!(
            escaped("https://x WWW.x"),
            "https:<!-- -->//x WWW<!-- -->.x"
        );
        assert_eq!(escaped("mail a@b.c: 1.5"), "mail a@<!-- -->b.c: 1.5");
    }
}
