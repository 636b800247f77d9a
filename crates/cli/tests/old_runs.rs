//! Run files of every format version so far can still be read and rendered. The files under
//! `tests/runs/` are real runs of the smallest scale and are never changed, only added to; what they
//! look like as text is kept beside them (`UPDATE_GOLDEN=1` writes it anew).

use std::path::{Path, PathBuf};
use std::process::Command;

fn runs() -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/runs");
    let entries = std::fs::read_dir(directory).expect("runs").flatten();
    let mut runs: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "run"))
        .collect();
    runs.sort();
    runs
}

fn rendered(run: &Path, format: &str) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_sqlitmus"))
        .arg("report")
        .arg(run)
        .args(["--format", format])
        .output()
        .expect("sqlitmus runs");
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{}: {stderr}", run.display());
    String::from_utf8(output.stdout).expect("UTF-8")
}

#[test]
fn every_old_run_is_rendered_in_every_format() {
    assert!(!runs().is_empty());
    for run in runs() {
        let before = std::fs::read(&run).expect("readable");
        let html = rendered(&run, "html");
        assert!(html.starts_with("<!DOCTYPE html>") && html.contains("Overwrite one blob"));
        let json: serde_json::Value = serde_json::from_str(&rendered(&run, "json")).expect("JSON");
        assert_eq!(json["run"]["state"], "complete");
        let text = rendered(&run, "terminal");
        assert!(!text.contains("NaN"), "{text}");
        let golden = run.with_extension("txt");
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(&golden, &text).expect("golden written");
        }
        let expected = std::fs::read_to_string(&golden).expect("a golden text");
        assert_eq!(text, expected, "{}", run.display());
        assert_eq!(
            std::fs::read(&run).expect("readable"),
            before,
            "left as it was"
        );
    }
}
