//! What `sqlitmus durability` proved stands beside the speeds of later measurements in the same place, and
//! what it did not try is said to be claimed only.
#![cfg(target_os = "linux")]

mod program;

use sqlitmus_core::case::Durability;
use sqlitmus_core::durability::proofs;

use program::run as sqlitmus;

const SUITE: &str = r#"
name = "tiers"
about = "Two engines that write"
question = "What survives?"

[[dataset]]
name = "few"
count = 20
size = { fixed = 1000 }
compressibility = 0.0

[[group]]
name = "write"
dataset = "few"
workload = { kind = "overwrite", order = "random", operations = 5 }
cache = "warm"
durability = "process-crash"
baseline = "write-files"
rounds = 1
slices = 1

[[group.arm]]
name = "write-files"
label = "files"
engine = "files"

[[group.arm]]
name = "write-packfile"
label = "one packed file"
engine = "packfile"
settings = { sync = "none" }
"#;

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn what_was_proved_in_a_place_stands_beside_its_speeds() {
    let place = tempfile::tempdir().expect("temporary directory");
    std::fs::write(place.path().join("suite.toml"), SUITE).expect("suite");
    let measure = ["measure", "suite.toml", "--quiet", "--output"];
    let with = |more: &[&'static str]| {
        let mut words = measure.to_vec();
        words.extend(more);
        sqlitmus(place.path(), &words)
    };
    let before = with(&["before.run"]);
    assert_eq!(before.status.code(), Some(0), "{}", text(&before.stderr));
    assert!(
        text(&before.stdout).contains("was not put to the test here"),
        "{}",
        text(&before.stdout)
    );

    let words = [
        "durability",
        "--place",
        ".",
        "--quick",
        "--cuts",
        "2",
        "--only",
        "packfile none",
        "--output",
        "proof.run",
    ];
    let cut = sqlitmus(place.path(), &words);
    assert_eq!(cut.status.code(), Some(0), "{}", text(&cut.stderr));
    let after = with(&["after.run", "--durability-run", "proof.run"]);
    assert_eq!(after.status.code(), Some(0), "{}", text(&after.stderr));
    let shown = text(&after.stdout);
    for expected in [
        "process-crash, kept in 2 of 2 kills: one packed file",
        "process-crash, claimed only: files",
        "proof.run",
    ] {
        assert!(shown.contains(expected), "{expected}: {shown}");
    }

    let run = sqlitmus_runfile::read(&place.path().join("after.run")).expect("read");
    let found = proofs(&run.environment);
    assert_eq!(found.len(), 1, "{found:?}");
    let proof = &found["write-packfile"];
    assert_eq!(proof.observed, Durability::ProcessCrash);
    assert_eq!(
        (proof.process.made, proof.process.broken, proof.power.made),
        (2, 0, 0)
    );
    assert_eq!(proof.configuration, "packfile none");

    let words = ["report", "after.run", "--format", "json"];
    let value: serde_json::Value =
        serde_json::from_slice(&sqlitmus(place.path(), &words).stdout).expect("JSON");
    let arms = value["arms"].as_array().expect("arms");
    let claim = |name: &str| {
        let arm = arms.iter().find(|arm| arm["name"] == name).expect(name);
        arm["proved"]["claim"].clone()
    };
    assert_eq!(claim("write-packfile"), "kept");
    assert_eq!(claim("write-files"), "claimed-only");
}

#[test]
fn a_run_that_can_prove_nothing_is_refused() {
    let place = tempfile::tempdir().expect("temporary directory");
    std::fs::write(place.path().join("suite.toml"), SUITE).expect("suite");
    let gallery = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/gallery/");
    for (file, expected) in [
        ("article.run", "is no run of `sqlitmus durability`"),
        ("durability-btrfs.run", "says nothing about"),
    ] {
        let run = format!("{gallery}{file}");
        let words = ["measure", "suite.toml", "--quiet", "--durability-run", &run];
        let done = sqlitmus(place.path(), &words);
        let told = text(&done.stderr);
        if file.contains("btrfs") && done.status.code() == Some(0) {
            // This machine's temporary directory is on btrfs.
            continue;
        }
        assert_eq!(done.status.code(), Some(2), "{told}");
        assert!(told.contains(expected) && told.contains("hint: "), "{told}");
    }
}
