//! The shell of a page: head, style, script, and a policy that forbids everything else. The policy names
//! style and script by their hashes, so that not a letter that a run file brings along can be either.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use maud::{DOCTYPE, Markup, PreEscaped, html as markup};
use sha2::{Digest, Sha256};

use crate::svg::{self, Chart};
use crate::text::clean;

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");

/// A page in the making. Whatever is put into it is escaped by `maud`.
pub struct Page {
    /// Title of the window; cleaned.
    pub title: String,
    /// Version of sqlitmus that measured; cleaned.
    pub version: String,
    /// The first screen.
    pub header: Markup,
    /// What follows.
    pub main: Markup,
    /// The last line.
    pub footer: Markup,
}

impl Page {
    /// The page as one self-contained file.
    #[must_use]
    pub fn render(&self) -> String {
        let style = format!("{}{STYLE}", svg::STYLE);
        let policy = format!(
            "default-src 'none'; style-src '{}'; script-src '{}'; img-src data:; base-uri 'none'; form-action 'none'",
            hash(&style),
            hash(SCRIPT)
        );
        let page = markup! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    // A page that is passed on asks nobody for anything.
                    meta http-equiv="Content-Security-Policy" content=(policy);
                    meta name="color-scheme" content="light dark";
                    meta name="generator" content={ "sqlitmus " (clean(&self.version)) };
                    link rel="icon" href="data:,";
                    title { (self.title) " - sqlitmus" }
                    style id="page-style" { (PreEscaped(style)) }
                }
                body {
                    header { (self.header) }
                    main { (self.main) }
                    footer { (self.footer) }
                    script { (PreEscaped(SCRIPT)) }
                }
            }
        };
        in_lines(&page.into_string())
    }
}

/// Rows of charts beyond which a page draws each chart once: see [`svg::in_page_once`].
const MOST_ROWS_TWICE: usize = 150;

/// How a page shows its figures.
#[derive(Debug, Clone, Copy)]
pub struct Figures {
    /// Draw each chart in the wide arrangement alone.
    once: bool,
}

impl Figures {
    /// For a page whose charts have so many rows together.
    #[must_use]
    pub fn for_rows(rows: usize) -> Self {
        Self {
            once: rows > MOST_ROWS_TWICE,
        }
    }

    /// Whether the page is so large that it leaves out what can be had elsewhere.
    #[must_use]
    pub fn is_large(self) -> bool {
        self.once
    }

    /// A chart with its legend. The script adds what saves it; `data` is the identity of the table that its
    /// numbers are in.
    #[must_use]
    pub fn figure(self, chart: &dyn Chart, legend: &Markup, data: &str) -> Markup {
        let content = if self.once {
            svg::in_page_once(chart)
        } else {
            svg::in_page(chart)
        };
        markup! {
            figure data-table=[(!data.is_empty()).then_some(data)] data-name=(chart.id()) {
                div.drawing { (content) }
                figcaption { (legend) }
            }
        }
    }

    /// A chart that brings its own numbers along, folded away; on a large page without them.
    #[must_use]
    pub fn with_data(self, chart: &dyn Chart, legend: &Markup) -> Markup {
        if self.once {
            return self.figure(chart, legend, "");
        }
        let data = chart.data();
        markup! {
            (self.figure(chart, legend, &format!("{}-data", chart.id())))
            details.data {
                summary { "Numbers of this chart" }
                div.scroll role="region" tabindex="0" aria-label={ "Numbers of " (chart.title()) } {
                    table.plain.figures id={ (chart.id()) "-data" } {
                        thead { tr { @for column in &data.columns { th scope="col" { (column) } } } }
                        tbody { @for row in &data.rows { tr { @for cell in row { td { (cell) } } } } }
                    }
                }
            }
        }
    }
}

/// A source of a policy: the hash of a text that is allowed.
fn hash(text: &str) -> String {
    format!(
        "sha256-{}",
        STANDARD.encode(Sha256::digest(text.as_bytes()))
    )
}

/// Line breaks between the parts of a page, where they change nothing, so that two pages can be
/// compared line by line. Style and script stay as they are: their hashes are in the policy.
fn in_lines(page: &str) -> String {
    let (head, rest) = page.split_once("<body>").unwrap_or(("", page));
    let (body, script) = rest.rsplit_once("<script>").unwrap_or((rest, ""));
    let mut lines = body.to_owned();
    for tag in [
        "<h2",
        "<figure",
        "<g class=\"row",
        "<table",
        "<tr",
        "<dt",
        "<details",
        "<footer",
    ] {
        lines = lines.replace(tag, &format!("\n{tag}"));
    }
    // Shapes have nothing in them: half a dozen letters less for each of thousands.
    lines = svg::short(&lines);
    format!("{head}\n<body>{lines}\n<script>{script}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_policy_names_what_is_in_the_page() {
        // The empty text's digest, as everybody's tools give it.
        assert_eq!(
            hash(""),
            "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="
        );
        let page = Page {
            title: "Title".to_owned(),
            version: "1".to_owned(),
            header: markup! { h1 { "One" } },
            main: markup! { table { tr { td { "<script>" } } } },
            footer: markup! {},
        };
        let page = page.render();
        let between = |open: &str, close: &str| {
            let start = page.find(open).expect("there") + open.len();
            let end = page[start..].find(close).expect("ended");
            page[start..start + end].to_owned()
        };
        for (open, close) in [
            ("<style id=\"page-style\">", "</style>"),
            ("<script>", "</script>"),
        ] {
            assert!(page.contains(&hash(&between(open, close))), "{open}");
        }
        assert!(!SCRIPT.contains("</") && !STYLE.contains("</") && !svg::STYLE.contains("</"));
    }
}
