//! The pages in a real browser, headless: no complaint in its console, no request but for the page itself, the
//! charts with the values of the run, and everything that the script does, on a telephone and on a desk. Skipped,
//! saying so, where there is no Chromium.

mod fixture;

use std::path::{Path, PathBuf};
use std::process::Command;

use base64::Engine;
use serde_json::Value;

use sqlitmus_core::analysis::analyse;
use sqlitmus_report::{Analysed, html, html_side_by_side};

const HARNESS: &str = include_str!("browser/harness.html");

/// Hosts that Chromium itself calls.
const OF_THE_BROWSER: [&str; 4] = [
    ".google.com/",
    ".googleapis.com/",
    ".gvt1.com/",
    ".gstatic.com/",
];

fn chromium() -> Option<PathBuf> {
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let path = std::env::var_os("PATH")?;
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let candidates = folders
        .iter()
        .flat_map(|folder| names.map(|name| folder.join(name)));
    candidates.into_iter().find(|candidate| candidate.is_file())
}

/// What the harness found, what the browser's console said, and what it asked of the network.
struct Observed {
    found: Value,
    console: Vec<String>,
    requests: Vec<String>,
}

fn observe(browser: &Path) -> Observed {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let run = fixture::complete();
    let mut other = fixture::complete();
    other.head.started_utc = "2027-02-03T03:04:05Z".to_owned();
    other.environment[0].1 = "Another Processor 1".to_owned();
    let (analysis, other_analysis) = (analyse(&run), analyse(&other));
    let runs = [
        Analysed {
            run: &run,
            analysis: &analysis,
        },
        Analysed {
            run: &other,
            analysis: &other_analysis,
        },
    ];
    let write = |name: &str, text: &str| {
        std::fs::write(directory.path().join(name), text).expect("written");
    };
    write("one.html", &html(&run, &analysis));
    for (name, run) in [
        ("rows.html", fixture::rows()),
        ("load.html", fixture::load()),
        ("hostile.html", fixture::hostile()),
    ] {
        write(name, &html(&run, &analyse(&run)));
    }
    let places = [fixture::rows(), fixture::rows()].map(|mut run| {
        run.plan.groups[0].name.push_str(" of rows");
        run
    });
    let analyses = places.each_ref().map(analyse);
    let pairs = places.iter().zip(&analyses);
    let places: Vec<Analysed<'_>> = pairs
        .map(|(run, analysis)| Analysed { run, analysis })
        .collect();
    write("places.html", &html_side_by_side(&places));
    write("several.html", &html_side_by_side(&runs));
    write("harness.html", HARNESS);
    let net_log = directory.path().join("net.json");
    let output = Command::new(browser)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--no-first-run",
        ])
        .args([
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
        ])
        .args([
            "--allow-file-access-from-files",
            "--enable-logging=stderr",
            "--virtual-time-budget=600000",
        ])
        .args(["--window-size=1500,2000", "--disable-dev-shm-usage"])
        .arg(format!(
            "--user-data-dir={}",
            directory.path().join("profile").display()
        ))
        .arg(format!("--log-net-log={}", net_log.display()))
        .arg("--dump-dom")
        .arg(format!(
            "file://{}",
            directory.path().join("harness.html").display()
        ))
        .output()
        .expect("the browser starts");
    let page = String::from_utf8_lossy(&output.stdout).into_owned();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    let result = page
        .split("<pre id=\"result\">")
        .nth(1)
        .and_then(|rest| rest.split('<').next());
    let result = result.filter(|result| !result.is_empty());
    let result = result.unwrap_or_else(|| panic!("the harness has not ended: {stderr}"));
    let bytes = base64::engine::general_purpose::STANDARD
        .decode(result)
        .expect("base64");
    let log = std::fs::read_to_string(&net_log).unwrap_or_default();
    let urls = log
        .split("\"url\":\"")
        .skip(1)
        .filter_map(|rest| rest.split('"').next());
    Observed {
        found: serde_json::from_slice(&bytes).expect("JSON"),
        console: stderr
            .lines()
            .filter(|line| line.contains("CONSOLE"))
            .map(str::to_owned)
            .collect(),
        requests: urls
            .filter(|url| url.starts_with("http") || url.starts_with("ws"))
            // What the browser asks of its makers by itself, whatever page it shows.
            .filter(|url| !OF_THE_BROWSER.iter().any(|host| url.contains(host)))
            .map(str::to_owned)
            .collect(),
    }
}

fn numbers(list: &Value) -> Vec<f64> {
    let values = list
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(Value::as_str);
    values.filter_map(|text| text.parse().ok()).collect()
}

#[test]
#[allow(clippy::print_stderr)]
fn pages_work_in_a_browser() {
    let Some(browser) = chromium() else {
        eprintln!("skipped: there is no Chromium on this machine");
        return;
    };
    let Observed {
        found,
        console,
        requests,
    } = observe(&browser);
    assert_eq!(found["error"], Value::Null, "{found:#}");
    assert_eq!(console, [""; 0]);
    assert_eq!(requests, [""; 0]);
    for page in found["one"].as_array().expect("two widths") {
        one_run(page);
    }
    let restored = &found["restored"];
    assert_eq!(restored["sort"], "descending", "{restored}");
    assert_eq!(restored["filter"], "sqlite");
    assert_eq!(restored["theme"], "dark");
    assert_eq!(restored["opened"], true);
    for page in found["several"].as_array().expect("two widths") {
        several_runs(page);
    }
    for page in found["every"].as_array().expect("pages by widths") {
        assert_eq!(page["overflow"], 0, "as wide as its window: {page:#}");
        assert_eq!(page["wrong"], serde_json::json!([]), "{page:#}");
        assert!(page["charts"].as_u64() > Some(0), "{page:#}");
    }
}

fn one_run(page: &Value) {
    let run = fixture::complete();
    let analysis = analyse(&run);
    assert_eq!(
        page["overflow"], 0,
        "the page is no wider than its window: {page:#}"
    );
    assert_eq!(page["overflow_open"], 0);
    assert_eq!(page["resources"], 0);
    assert_eq!(page["small_print"], 0);
    let charts = page["charts"].as_array().expect("charts");
    for title in [
        "Read one blob",
        "Latencies by percentile",
        "Round by round",
        "Disk space",
    ] {
        assert!(
            charts.iter().any(|chart| chart == title),
            "{title}: {charts:?}"
        );
    }
    // Every measured time of the first chart stands in it.
    let figures = page["figures"].as_array().expect("figures");
    for row in &analysis.charts[0].rows {
        if let Some(ns) = row.arm.operation_ns {
            let shown = sqlitmus_core::units::format_microseconds(ns);
            assert!(
                figures.iter().any(|figure| *figure == shown.as_str()),
                "{shown}: {figures:?}"
            );
        }
    }
    let second = &analysis.charts[0].rows[1];
    let shown =
        sqlitmus_core::units::format_microseconds(second.arm.operation_ns.expect("measured"));
    for words in ["hover", "keyboard", "spoken"] {
        let words = page[words].as_str().expect("words");
        assert!(
            words.starts_with(&second.arm.label) && words.contains(&shown),
            "{words}"
        );
    }
    assert_eq!(page["left"], true);
    let (mut ascending, mut descending) =
        (numbers(&page["ascending"]), numbers(&page["descending"]));
    assert!(
        ascending.len() > 10 && ascending.is_sorted(),
        "{ascending:?}"
    );
    descending.reverse();
    assert!(descending.is_sorted(), "{descending:?}");
    ascending.sort_by(f64::total_cmp);
    assert_eq!(ascending, descending);
    assert_eq!(page["sort_said"], "descending");
    let filtered = page["filtered"].as_array().expect("rows");
    assert!(
        !filtered.is_empty() && filtered.len() < page["rows"].as_u64().expect("a number") as usize
    );
    for row in filtered {
        let row = row.as_str().expect("a row");
        assert!(row.contains("sqlite") && row.contains("blob"), "{row}");
    }
    assert_eq!(page["light"][0], "light");
    assert_eq!(page["dark"][0], "dark");
    assert_ne!(page["light"][1], page["dark"][1]);
    let fragment = page["fragment"].as_str().expect("a fragment");
    for part in ["cases.sort=", "filter=sqlite", "theme=dark"] {
        assert!(fragment.contains(part), "{fragment}");
    }
    assert_eq!(page["svg"]["error"], false);
    assert_eq!(page["svg"]["rows"], analysis.charts[0].rows.len());
    let csv = page["csv"].as_str().expect("CSV");
    assert!(csv.contains("vs files, as kvtest does low"), "{csv}");
    assert!(!csv.contains("\"1,"), "numbers have no commas: {csv}");
    assert_eq!(csv.lines().count(), 1 + analysis.charts[0].rows.len());
}

fn several_runs(page: &Value) {
    assert_eq!(page["overflow"], 0, "{page:#}");
    let (rows, without) = (page["rows"].as_u64(), page["rows_without_one_run"].as_u64());
    // A heading and two runs for each case; one of the runs is taken away.
    assert_eq!(rows.map(|rows| rows / 3 * 2), without, "{page:#}");
    assert_eq!(page["smaller"], true);
    assert_eq!(page["packed"], true);
    assert_eq!(page["columns"], 2);
    assert_eq!(page["engines_left"], 0);
    assert_eq!(page["kept"], true);
    let fragment = page["fragment"].as_str().expect("a fragment");
    assert!(
        fragment.contains("without.run=2") && fragment.contains("without.engine=files"),
        "{fragment}"
    );
}
