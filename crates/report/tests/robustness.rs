//! What must hold of every report, whatever is in the run: no line wider than the terminal, nothing
//! that a terminal or a browser acts on, no figure that is none.

mod fixture;

use sqlitmus_core::analysis::analyse;
use sqlitmus_core::run::{Footprint, Run, RunState};
use sqlitmus_report::{FORMAT, Look, html, json, terminal};
use unicode_width::UnicodeWidthStr;

fn runs() -> Vec<Run> {
    let mut runs = vec![
        fixture::complete(),
        fixture::interrupted(),
        fixture::hostile(),
    ];
    // Nothing was measured.
    let mut untouched = fixture::complete();
    untouched.head.state = RunState::Started;
    untouched.head.finished_utc = None;
    untouched.trials.clear();
    untouched.footprints.clear();
    untouched.environment.clear();
    runs.push(untouched);
    // Nothing was even planned.
    let mut empty = fixture::complete();
    empty.trials.clear();
    empty.plan.groups.clear();
    empty.plan.charts.clear();
    empty.plan.claims.clear();
    empty.plan.conclusion.clear();
    empty.plan.question.clear();
    runs.push(empty);
    // Charts and claims of arms that the plan does not have.
    let mut foreign = fixture::complete();
    foreign.plan.groups.remove(0);
    runs.push(foreign);
    // Stores of no size and of impossible size.
    let mut sizes = fixture::complete();
    for (index, footprint) in sizes.footprints.values_mut().enumerate() {
        let bytes = if index % 2 == 0 { 0 } else { u64::MAX };
        *footprint = Footprint {
            content_bytes: bytes,
            apparent_bytes: bytes,
            allocated_bytes: bytes,
            files: bytes,
            directories: bytes,
        };
    }
    runs.push(sizes);
    // Two rounds: intervals that may be absurdly wide.
    let mut short = fixture::complete();
    short.trials.retain(|trial| trial.round < 2);
    runs.push(short);
    runs
}

fn plain(run: &Run, columns: usize) -> String {
    let look = Look {
        columns,
        color: false,
    };
    terminal(run, &analyse(run), &look)
}

/// Characters that are there to be acted on, as far as the hostile fixture has them.
fn acts(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

fn figures_that_are_none(text: &str) -> Vec<&str> {
    let words = text.split(|letter: char| !letter.is_ascii_alphanumeric());
    words
        .filter(|word| ["NaN", "nan", "inf", "Infinity"].contains(word))
        .collect()
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    for run in runs() {
        for columns in (40..=140).chain([200, 300, 1000]) {
            for line in plain(&run, columns).lines() {
                assert!(
                    line.width() <= columns,
                    "{columns} columns: {} {line:?}",
                    line.width()
                );
            }
        }
    }
}

#[test]
fn colour_adds_nothing_but_colour() {
    for run in runs() {
        let look = Look {
            columns: 100,
            color: true,
        };
        let mut colored = terminal(&run, &analyse(&run), &look);
        for code in ["0", "1", "2", "31", "32", "33"] {
            colored = colored.replace(&format!("\u{1b}[{code}m"), "");
        }
        assert_eq!(colored, plain(&run, 100));
    }
}

#[test]
fn nothing_acts_on_a_terminal() {
    for run in runs() {
        let texts = [
            plain(&run, 80),
            plain(&run, 120),
            json(&run, &analyse(&run)),
        ];
        for text in texts {
            let found: Vec<char> = text
                .chars()
                .filter(|&letter| letter != '\n' && acts(letter))
                .collect();
            assert_eq!(found, [], "{text}");
        }
    }
}

#[test]
fn nothing_breaks_out_of_the_page() {
    for run in runs() {
        let page = html(&run, &analyse(&run));
        for forbidden in [
            "<script", "http:", "https:", "src=", "url(", "@import", "onload", "<b>bold",
        ] {
            assert!(!page.contains(forbidden), "{forbidden}");
        }
        for once in ["<style>", "</style>", "<h1>", "<main>"] {
            assert_eq!(page.matches(once).count(), 1, "{once}");
        }
        assert!(!page.chars().any(|letter| letter != '\n' && acts(letter)));
    }
}

#[test]
fn every_element_is_closed() {
    for run in runs() {
        let page = html(&run, &analyse(&run));
        let mut open = Vec::new();
        for tag in page.split('<').skip(1) {
            let name: String = tag
                .trim_start_matches('/')
                .chars()
                .take_while(char::is_ascii_alphanumeric)
                .collect();
            if tag.starts_with('/') {
                assert_eq!(open.pop(), Some(name));
            } else if !tag.starts_with('!') && !["meta", "link", "br"].contains(&name.as_str()) {
                open.push(name);
            }
        }
        assert_eq!(open, Vec::<String>::new());
    }
}

#[test]
fn no_figure_is_none() {
    for run in runs() {
        let analysis = analyse(&run);
        for text in [
            plain(&run, 80),
            plain(&run, 160),
            html(&run, &analysis),
            json(&run, &analysis),
        ] {
            assert_eq!(figures_that_are_none(&text), [""; 0]);
        }
    }
}

#[test]
fn json_is_json_with_its_version_first() {
    for run in runs() {
        let text = json(&run, &analyse(&run));
        assert!(text.starts_with(&format!("{{\n  \"format\": {FORMAT},")));
        let value: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(value["question"], run.plan.question.as_str());
        assert_eq!(value["plan"]["seed"], run.plan.seed.to_string());
    }
}

#[test]
fn an_interrupted_run_says_so_at_the_top() {
    let report = plain(&fixture::interrupted(), 80);
    let top: Vec<&str> = report.lines().take(3).collect();
    assert!(top.join(" ").contains("stopped before its end"), "{top:?}");
}
