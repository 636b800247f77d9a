//! Arms that are added to a plan: which arm is copied, what the copy is called, and where it stands.

use sqlitmus_core::case::Durability;
use sqlitmus_core::plan::{Catalogue, Plan};
use sqlitmus_core::settings::{SettingKind, SettingSpecification, Settings, SettingsError};
use sqlitmus_core::suite::Suite;
use sqlitmus_core::variants::Difference;

const SUITE: &str = r#"
name = "variants"
about = "a"
question = "q"
[[dataset]]
name = "few"
count = 10
size = { fixed = 10 }
[[group]]
name = "read"
dataset = "few"
workload = { kind = "read", order = "random" }
cache = "warm"
durability = "none"
baseline = "files"
rounds = 1
slices = 1
[[group.arm]]
name = "files"
label = "files"
engine = "files"
[[group.arm]]
name = "sql"
label = "SQL"
engine = "sqlite"
[[group.arm]]
name = "named"
label = "named"
engine = "sqlite"
settings = { library = "@os" }
[[chart]]
title = "Read"
arms = ["sql", "files"]
"#;

const LIBRARY: &[SettingSpecification] = &[SettingSpecification {
    name: "library",
    kind: SettingKind::ChoiceOrPath(&["bundled"]),
    default: "bundled",
    stored: false,
    about: "which SQLite",
}];

/// `sqlite` has a library, `files` has none.
struct Engines;

impl Catalogue for Engines {
    fn names(&self) -> Vec<&'static str> {
        vec!["files", "sqlite"]
    }

    fn specifications(&self, engine: &str) -> Option<&'static [SettingSpecification]> {
        Some(if engine == "sqlite" { LIBRARY } else { &[] })
    }

    fn check(&self, _engine: &str, _settings: &Settings) -> Result<(), SettingsError> {
        Ok(())
    }

    fn durability(&self, _engine: &str, _settings: &Settings) -> Durability {
        Durability::None
    }

    fn has_rows(&self, _engine: &str) -> bool {
        false
    }
}

fn plan() -> Plan {
    let suite = Suite::parse(SUITE, "variants.toml").expect("a suite");
    Plan::resolve(&suite, "default", 1, &Engines).expect("a plan")
}

fn names(plan: &Plan) -> Vec<&str> {
    plan.arms().map(|(_, arm)| arm.name.as_str()).collect()
}

#[test]
fn a_library_is_measured_by_a_copy_of_the_first_arm_that_has_one() {
    let mut plan = plan();
    assert!(plan.uses_library("os") && !plan.uses_library("mine"));
    assert_eq!(plan.add_variant("mine", Difference::Library), ["sql.mine"]);
    assert!(plan.uses_library("mine"));
    assert_eq!(
        names(&plan),
        ["files", "sql", "sql.mine", "named", "files~twin"]
    );
    assert_eq!(plan.charts[0].arms, ["sql", "sql.mine", "files"]);
    let (_, copy) = plan.arm("sql.mine").expect("added");
    assert_eq!(copy.label, "SQL, library mine");
    assert_eq!(copy.case.settings.get("library"), Some("@mine"));
    let (_, original) = plan.arm("sql").expect("there");
    assert_ne!(copy.case.id(), original.case.id(), "it is another case");
}

#[test]
fn another_program_measures_a_copy_of_the_baseline() {
    let mut plan = plan();
    assert_eq!(plan.add_variant("old", Difference::Program), ["files.old"]);
    let (_, copy) = plan.arm("files.old").expect("added");
    let (_, original) = plan.arm("files").expect("there");
    assert_eq!(copy.case, original.case, "only the program is another");
    assert!(!copy.is_twin());
}

#[test]
fn a_plan_without_sqlite_has_no_place_for_a_library() {
    let mut plan = plan();
    plan.groups[0].arms.retain(|arm| arm.case.engine == "files");
    assert!(plan.add_variant("mine", Difference::Library).is_empty());
}

#[test]
fn names_of_libraries_are_plain() {
    let with = |value: &str| {
        let settings = Settings::from_pairs([("library", value)]);
        settings.resolve("sqlite", LIBRARY)
    };
    assert!(with("@os").is_ok() && with("/lib/x.so").is_ok());
    for bad in ["@", "@a b", "@../x", "x.so"] {
        let error = with(bad).expect_err(bad);
        assert!(error.hint().contains("`@` and a name"), "{}", error.hint());
    }
}
