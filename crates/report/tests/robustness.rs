//! What must hold of every report, whatever is in the run: no line wider than the terminal, nothing
//! that a terminal or a browser acts on, no figure that is none.

mod fixture;

use sqlitmus_core::analysis::analyse;
use sqlitmus_core::run::{Footprint, Outcome, Run, RunState};
use sqlitmus_report::{
    Analysed, FORMAT, Look, csv, html, html_side_by_side, json, json_of_several, markdown,
    markdown_side_by_side, svg, svg_side_by_side, terminal, terminal_resources,
    terminal_side_by_side,
};
use unicode_width::UnicodeWidthStr;

fn runs() -> Vec<Run> {
    let mut runs = vec![
        fixture::complete(),
        fixture::interrupted(),
        fixture::hostile(),
        fixture::rows(),
        fixture::hostile_rows(),
        fixture::load(),
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
    // One round alone, and in it clocks that stood still.
    for mut run in [fixture::complete(), fixture::rows()] {
        run.trials.retain(|trial| trial.round < 1);
        runs.push(run.clone());
        for sample in run.trials.iter_mut().flat_map(|trial| &mut trial.samples) {
            (sample.elapsed_ns, sample.settle_ns) = (0, sample.settle_ns.map(|_| 0));
        }
        runs.push(run.clone());
        for sample in run.trials.iter_mut().flat_map(|trial| &mut trial.samples) {
            sample.operations = 0;
        }
        runs.push(run);
    }
    // Every trial failed.
    let mut failed = fixture::complete();
    for trial in &mut failed.trials {
        trial.outcome = Outcome::Failed("<b>bold</b> and no reason".to_owned());
        trial.samples.clear();
    }
    runs.push(failed);
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
        for columns in (40..=100).chain([120, 140, 200, 1000]) {
            let look = Look {
                columns,
                color: false,
            };
            let resources = terminal_resources(&run, &analyse(&run), &look);
            for line in plain(&run, columns).lines().chain(resources.lines()) {
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

/// A run in all formats but the page, alone and beside another.
fn texts(run: &Run) -> Vec<(&'static str, String)> {
    let analysis = analyse(run);
    let look = Look {
        columns: 100,
        color: false,
    };
    let other = fixture::complete();
    let other_analysis = analyse(&other);
    let both = [
        Analysed {
            run,
            analysis: &analysis,
        },
        Analysed {
            run: &other,
            analysis: &other_analysis,
        },
    ];
    vec![
        ("terminal", terminal(run, &analysis, &look)),
        ("resources", terminal_resources(run, &analysis, &look)),
        ("markdown", markdown(run, &analysis)),
        ("csv", csv(&[run]).replace('\r', "")),
        ("json", json(run, &analysis)),
        ("svg", svg(run, &analysis)),
        ("several on a terminal", terminal_side_by_side(&both, &look)),
        ("several in markdown", markdown_side_by_side(&both)),
        ("several in json", json_of_several(&both)),
        ("several in svg", svg_side_by_side(&both)),
    ]
}

#[test]
fn nothing_breaks_out_of_any_format() {
    for run in runs() {
        for (name, text) in texts(&run) {
            let found: Vec<char> = text
                .chars()
                .filter(|&letter| letter != '\n' && acts(letter))
                .collect();
            assert_eq!(found, [], "{name}");
            assert_eq!(figures_that_are_none(&text), [""; 0], "{name}");
            let markup = name.contains("markdown") || name.contains("svg");
            if markup {
                // In Markdown nothing acts inside of a code span, which holds the command line.
                let text: String = text.split('`').step_by(2).collect();
                for forbidden in ["<script", "<img", "<b>", "javascript:", "onload"] {
                    assert!(!text.contains(forbidden), "{name}: {forbidden}");
                }
            }
        }
    }
}

#[test]
fn pages_of_several_runs_hold_hostile_ones() {
    for run in runs() {
        let other = fixture::complete();
        let (analysis, other_analysis) = (analyse(&run), analyse(&other));
        let both = [
            Analysed {
                run: &run,
                analysis: &analysis,
            },
            Analysed {
                run: &other,
                analysis: &other_analysis,
            },
        ];
        let page = html_side_by_side(&both);
        assert_eq!(figures_that_are_none(&page), [""; 0]);
        let (head, body, script) = parts(&page);
        for forbidden in ["<script", "<b>bold", "javascript:", "onload", "src="] {
            assert!(!head.contains(forbidden) && !body.contains(forbidden));
        }
        assert_eq!(script, parts(&html(&other, &other_analysis)).2);
        assert!(!page.chars().any(|letter| letter != '\n' && acts(letter)));
    }
}

#[test]
fn runs_of_different_suites_say_so_wherever_they_stand_side_by_side() {
    let (one, other) = (fixture::complete(), fixture::rows());
    let (analysis, other_analysis) = (analyse(&one), analyse(&other));
    let both = [
        Analysed {
            run: &one,
            analysis: &analysis,
        },
        Analysed {
            run: &other,
            analysis: &other_analysis,
        },
    ];
    let look = Look {
        columns: 200,
        color: false,
    };
    for text in [
        html_side_by_side(&both),
        markdown_side_by_side(&both),
        terminal_side_by_side(&both, &look),
    ] {
        assert!(text.contains("runs of different suites"), "{text}");
        assert!(
            text.contains("Read one blob") || text.contains("Reads"),
            "{text}"
        );
    }
}

/// A page in three parts: head (with the style), body, script.
fn parts(page: &str) -> (&str, &str, &str) {
    let (head, rest) = page.split_once("<body>").expect("a body");
    let (body, script) = rest.split_once("<script>").expect("a script");
    (head, body, script)
}

#[test]
fn nothing_breaks_out_of_the_page() {
    for run in runs() {
        let page = html(&run, &analyse(&run));
        let (head, body, script) = parts(&page);
        for forbidden in [
            "<script",
            "http:",
            "https:",
            "src=",
            "url(",
            "@import",
            "onload",
            "<b>bold",
            "javascript:",
        ] {
            assert!(
                !head.contains(forbidden) && !body.contains(forbidden),
                "{forbidden}"
            );
        }
        // The script is the same in every page: nothing of a run is in it.
        assert_eq!(
            script,
            parts(&html(&fixture::complete(), &analyse(&fixture::complete()))).2
        );
        for once in [
            "<style",
            "</style>",
            "<h1>",
            "<main>",
            "<script",
            "</script>",
        ] {
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
        let (head, body, _) = parts(&page);
        for tag in [head, "<body>", body].concat().split('<').skip(1) {
            let name: String = tag
                .trim_start_matches('/')
                .chars()
                .take_while(char::is_ascii_alphanumeric)
                .collect();
            if tag.starts_with('/') {
                assert_eq!(open.pop(), Some(name));
            } else if !tag.starts_with('!')
                && !tag.split('>').next().is_some_and(|tag| tag.ends_with('/'))
                && !["meta", "link", "br"].contains(&name.as_str())
            {
                open.push(name);
            }
        }
        // The script is the last of the body.
        assert_eq!(open, ["html", "body"]);
    }
}

#[test]
fn identities_in_a_page_are_unique_and_links_lead_somewhere() {
    for run in runs() {
        let page = html(&run, &analyse(&run));
        let (_, body, _) = parts(&page);
        let named = |attribute: &str| -> Vec<String> {
            let before = format!(" {attribute}=\"");
            let found = body.split(before.as_str()).skip(1);
            found
                .map(|rest| rest.split('"').next().unwrap_or("").to_owned())
                .collect()
        };
        let all = named("id");
        let unique: std::collections::BTreeSet<&String> = all.iter().collect();
        assert_eq!(all.len(), unique.len());
        for link in named("href") {
            let target = link.trim_start_matches('#').to_owned();
            assert!(link == "data:," || unique.contains(&target), "{link}");
        }
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

/// A run of very many cases and rounds, each arm with settings of its own.
fn large() -> Run {
    let mut run = fixture::complete();
    let group = run.plan.groups[0].clone();
    let template = run
        .trials
        .iter()
        .find(|trial| trial.arm == "sqlite-select")
        .expect("a trial")
        .clone();
    let charts = run.plan.charts[0].clone();
    run.plan.groups.clear();
    run.plan.charts.clear();
    run.trials.clear();
    for chart in 0..10 {
        let mut group = group.clone();
        group.name = format!("group {chart}");
        group.rounds = 50;
        group.arms = (0..50)
            .map(|index| {
                let mut arm = group.arms[3].clone();
                arm.name = format!("arm-{chart}-{index}");
                arm.label = format!("SQLite, pages of {index} kB, group {chart}");
                arm.case
                    .settings
                    .set("page_size", &(chart * 50 + index).to_string());
                arm
            })
            .collect();
        group.baseline = group.arms[0].name.clone();
        let mut shown = charts.clone();
        shown.title = format!("Chart {chart}");
        shown.arms = group.arms.iter().map(|arm| arm.name.clone()).collect();
        shown.versus.truncate(1);
        shown.versus[0].arm = group.baseline.clone();
        shown.published.clear();
        for (index, arm) in group.arms.iter().enumerate() {
            for round in 0..50u32 {
                let mut trial = template.clone();
                trial.arm = arm.name.clone();
                trial.round = round;
                for sample in &mut trial.samples {
                    sample.elapsed_ns +=
                        31 * index as u64 * u64::from(round % 7) + 1000 * index as u64;
                }
                trial
                    .read_back
                    .insert("page_size".to_owned(), index.to_string());
                trial.resources.insert("user_cpu_ns".to_owned(), 20_000_000);
                trial
                    .resources
                    .insert("system_cpu_ns".to_owned(), 20_000_000);
                run.trials.push(trial);
            }
        }
        run.plan.charts.push(shown);
        run.plan.groups.push(group);
    }
    run
}

/// 500 cases of 50 rounds make a page that can be sent by mail: below 1.5 MB. How long it takes is printed, not
/// asserted.
#[test]
#[allow(clippy::print_stderr)]
fn a_large_run_makes_a_page_of_modest_size() {
    let run = large();
    let start = std::time::Instant::now();
    let analysis = analyse(&run);
    let analysed = start.elapsed();
    let page = html(&run, &analysis);
    eprintln!(
        "{} bytes; analysed in {analysed:?}, rendered in {:?}",
        page.len(),
        start.elapsed() - analysed
    );
    if let Some(path) = std::env::var_os("SQLITMUS_LARGE_PAGE") {
        std::fs::write(path, &page).expect("written");
    }
    assert!(page.len() < 1_500_000, "{} bytes", page.len());
    assert!(page.contains("SQLite, pages of 49 kB, group 9"));
}
