//! What a user without rights measures: system calls are counted all the same, by tracing, and alike; a cache that
//! may not be dropped is said not to be measured, and the rest is. Needs root, to give rights up.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use sqlitmus_core::run::{Outcome, Run};

const SUITE: &str = r#"
name = "rights"
about = "for tests"
question = "What may be measured?"

[[dataset]]
name = "few"
count = 60
size = { fixed = 500 }

[[group]]
name = "read"
dataset = "few"
workload = { kind = "read", order = "random" }
cache = "warm"
durability = "process-crash"
baseline = "files"
rounds = 1
slices = 2
slice_ms = 1

[[group.arm]]
name = "files"
label = "files"
engine = "files"

[[group.arm]]
name = "packfile"
label = "one packed file"
engine = "packfile"

[[group]]
name = "fully-cold"
dataset = "few"
workload = { kind = "read", order = "random" }
cache = "fully-cold"
durability = "process-crash"
baseline = "cold-files"
rounds = 1
slices = 1
slice_ms = 1

[[group.arm]]
name = "cold-files"
label = "files"
engine = "files"
"#;

/// The program, where everybody may run it.
struct Machine {
    folder: tempfile::TempDir,
    program: PathBuf,
}

impl Machine {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let open = |path: &Path, mode: u32| {
            let permissions = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(path, permissions).expect("permissions set");
        };
        open(folder.path(), 0o777);
        std::fs::write(folder.path().join("suite.toml"), SUITE).expect("suite written");
        let program = folder.path().join("sqlitmus");
        let built = env!("CARGO_BIN_EXE_sqlitmus");
        if std::fs::hard_link(built, &program).is_err() {
            std::fs::copy(built, &program).expect("copied");
        }
        Self { folder, program }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn measured(&self, name: &str, mut command: Command) -> Run {
        let place = self.path(name);
        std::fs::create_dir(&place).expect("a place");
        let permissions = std::fs::Permissions::from_mode(0o777);
        std::fs::set_permissions(&place, permissions).expect("permissions set");
        let file = place.join("rights.run");
        let output: Output = command
            .args(["measure", "--quiet", "--seed", "1", "--drop-caches"])
            .arg(self.path("suite.toml"))
            .arg("--place")
            .arg(&place)
            .arg("--output")
            .arg(&file)
            .env("HOME", &place)
            .output()
            .expect("sqlitmus runs");
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            matches!(output.status.code(), Some(0 | 4)),
            "{:?}: {stderr}",
            output.status
        );
        sqlitmus_runfile::read(&file).expect("a run file")
    }
}

/// System calls of one operation, by arm and name.
fn calls(run: &Run) -> BTreeMap<(String, String), f64> {
    let counted = run
        .trials
        .iter()
        .filter_map(|trial| Some((&trial.arm, trial.system_calls.as_ref()?)));
    counted
        .flat_map(|(arm, counted)| {
            let shares = counted.calls.iter();
            shares.map(move |(name, calls)| {
                let share = *calls as f64 / counted.operations as f64;
                ((arm.clone(), name.clone()), share)
            })
        })
        .collect()
}

fn fact<'a>(run: &'a Run, name: &str) -> &'a str {
    let mut facts = run.environment.iter();
    let found = facts.find(|(known, _)| known == name);
    found.map_or("", |(_, value)| value)
}

#[test]
#[expect(clippy::print_stderr, reason = "a test that skips says why")]
fn without_rights_system_calls_are_counted_by_tracing_and_alike() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can give rights up");
        return;
    }
    if Command::new("setpriv").arg("--version").output().is_err() {
        eprintln!("skipped: setpriv (util-linux) is not there");
        return;
    }
    let machine = Machine::new();
    let with_rights = machine.measured("root", Command::new(&machine.program));
    let mut nobody = Command::new("setpriv");
    nobody
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(&machine.program);
    let without = machine.measured("nobody", nobody);
    let traced = fact(&without, "system_calls");
    if !traced.contains("by tracing") {
        eprintln!("skipped: here everybody may count, or nobody may trace: {traced}");
        return;
    }
    let (all, own) = (calls(&with_rights), calls(&without));
    let of_files = |name: &str| own.get(&("files".to_owned(), name.to_owned())).copied();
    assert_eq!(of_files("openat"), Some(1.0), "{own:?}");
    assert_eq!(of_files("close"), Some(1.0), "{own:?}");
    if fact(&with_rights, "system_calls").contains("trace point") {
        assert_eq!(all, own);
    }
    // What may not be done is said, and the rest is measured.
    let outcome = |run: &Run, arm: &str| {
        let trial = run.trials.iter().find(|trial| trial.arm == arm);
        trial.map(|trial| trial.outcome.clone())
    };
    match outcome(&without, "cold-files") {
        Some(Outcome::Skipped(reason)) => {
            assert!(reason.contains("drop"), "{reason}");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(outcome(&without, "files"), Some(Outcome::Valid));
    assert_eq!(outcome(&without, "packfile"), Some(Outcome::Valid));
}
