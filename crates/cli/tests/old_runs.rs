//! Run files of every format version so far can still be read and rendered. The files under
//! `tests/runs/` are real runs of the smallest scale and are never changed, only added to; what they
//! look like in every format is kept beside them (`UPDATE_GOLDEN=1` writes it anew).

mod program;

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
    let output = Command::new(program::PROGRAM)
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
        for (format, extension) in [
            ("terminal", "txt"),
            ("markdown", "md"),
            ("html", "html"),
            ("csv", "csv"),
            ("json", "json"),
            ("svg", "svg"),
        ] {
            let text = rendered(&run, format);
            assert!(!text.contains(">NaN") && !text.contains(" NaN"), "{format}");
            let golden = run.with_extension(extension);
            if std::env::var_os("UPDATE_GOLDEN").is_some() {
                std::fs::write(&golden, &text).expect("golden written");
            }
            let expected = std::fs::read_to_string(&golden).expect("a golden text");
            assert!(
                text == expected,
                "{} differs from {}",
                run.display(),
                golden.display()
            );
        }
        let csv = rendered(&run, "csv");
        let samples: usize = sqlitmus_runfile::read(&run)
            .expect("a run")
            .trials
            .iter()
            .map(|trial| trial.samples.len().max(1))
            .sum();
        assert_eq!(csv.lines().count(), 1 + samples, "one row a sample");
        let svg = rendered(&run, "svg");
        assert!(svg.starts_with("<?xml") && svg.trim_end().ends_with("</svg>"));
        assert!(svg.contains("Overwrite one blob") && !svg.contains("NaN"));
        assert_eq!(
            std::fs::read(&run).expect("readable"),
            before,
            "left as it was"
        );
    }
}

#[test]
fn several_runs_and_folders_of_them_stand_side_by_side() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let run = &runs()[0];
    for name in ["one.run", "two.run", "no-run.txt"] {
        std::fs::copy(run, folder.path().join(name)).expect("copied");
    }
    let report = |arguments: &[&std::ffi::OsStr]| {
        let output = Command::new(program::PROGRAM)
            .arg("report")
            .args(arguments)
            .output()
            .expect("sqlitmus runs");
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        (
            output.status.code(),
            String::from_utf8(output.stdout).expect("UTF-8"),
            stderr,
        )
    };
    let place = folder.path().as_os_str();
    let format = "--format".as_ref();
    for (name, wanted) in [
        ("html", "2 runs side by side"),
        ("terminal", "Where each published sentence holds"),
        ("markdown", "### What differs between the machines"),
        ("json", "\"runs\": ["),
        ("csv", "run_id,"),
        ("svg", "<svg"),
    ] {
        let (code, text, stderr) = report(&[place, format, name.as_ref()]);
        assert_eq!(code, Some(0), "{stderr}");
        assert!(text.contains(wanted) && !text.contains("NaN"), "{name}");
        let one = folder.path().join("one.run");
        let two = folder.path().join("two.run");
        let same = report(&[
            one.as_os_str(),
            two.as_os_str(),
            one.as_os_str(),
            format,
            name.as_ref(),
        ]);
        assert!(
            same.1 == text,
            "{name}: a file that is named twice counts once"
        );
    }
    let empty = tempfile::tempdir().expect("a temporary directory");
    let (code, _, stderr) = report(&[empty.path().as_os_str()]);
    assert_eq!(code, Some(2));
    assert!(
        stderr.contains("no run file in") && stderr.contains("hint: "),
        "{stderr}"
    );
}
