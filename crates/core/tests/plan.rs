//! Plans from a small suite and a catalogue of two engines that do not exist: what is resolved, and
//! what is refused with which hint. Each refusal is one change to a suite that is good.

use sqlitmus_core::case::{CacheState, Durability, Workload};
use sqlitmus_core::dataset::SizeDistribution;
use sqlitmus_core::keys::KeyOrder;
use sqlitmus_core::plan::{Arm, Catalogue, Group, Plan};
use sqlitmus_core::settings::{SettingKind, SettingSpecification, Settings, SettingsError};
use sqlitmus_core::suite::{Suite, SuiteError};

const GOOD: &str = include_str!("plan/good.toml");

const ALPHA: &[SettingSpecification] = &[
    SettingSpecification {
        name: "api",
        kind: SettingKind::Choice(&["plain", "fast"]),
        default: "plain",
        stored: false,
        about: "how it is read",
    },
    SettingSpecification {
        name: "cache_bytes",
        kind: SettingKind::Bytes {
            minimum: 1,
            maximum: u64::MAX,
            words: &["none"],
        },
        default: "2MiB",
        stored: false,
        about: "its cache",
    },
    SettingSpecification {
        name: "sync",
        kind: SettingKind::Choice(&["off", "full"]),
        default: "off",
        stored: false,
        about: "when it syncs",
    },
];

/// Engine `alpha` has settings and survives what its `sync` says; `beta` has none and survives
/// nothing.
struct TwoEngines;

impl Catalogue for TwoEngines {
    fn names(&self) -> Vec<&'static str> {
        vec!["alpha", "beta"]
    }

    fn specifications(&self, engine: &str) -> Option<&'static [SettingSpecification]> {
        match engine {
            "alpha" => Some(ALPHA),
            "beta" => Some(&[]),
            _ => None,
        }
    }

    fn check(&self, engine: &str, settings: &Settings) -> Result<(), SettingsError> {
        if settings.get("api") == Some("fast") && settings.get("cache_bytes") == Some("none") {
            return Err(SettingsError::Contradiction {
                engine: engine.to_owned(),
                reason: "fast needs a cache".to_owned(),
                hint: "give it one".to_owned(),
            });
        }
        Ok(())
    }

    fn durability(&self, engine: &str, settings: &Settings) -> Durability {
        match (engine, settings.get("sync")) {
            ("alpha", Some("full")) => Durability::PowerLoss,
            ("alpha", _) => Durability::ProcessCrash,
            _ => Durability::None,
        }
    }

    fn has_rows(&self, engine: &str) -> bool {
        engine == "alpha"
    }
}

fn resolve(text: &str, scale: &str, seed: u64) -> Result<Plan, SuiteError> {
    let suite = Suite::parse(text, "good.toml").expect("the text is a suite");
    Plan::resolve(&suite, scale, seed, &TwoEngines)
}

/// The good suite with one passage replaced, everywhere.
#[track_caller]
fn changed(from: &str, to: &str) -> String {
    assert!(GOOD.contains(from), "`{from}` is not in the good suite");
    GOOD.replace(from, to)
}

#[track_caller]
fn accepted(from: &str, to: &str) -> Plan {
    resolve(&changed(from, to), "default", 1).expect("a plan")
}

/// The problem and the hint of a suite that is refused for one change.
#[track_caller]
fn refused(from: &str, to: &str) -> (String, String) {
    let error = resolve(&changed(from, to), "default", 1).expect_err("not a plan");
    assert_eq!(error.suite, "good");
    (error.problem, error.hint)
}

fn good() -> Plan {
    resolve(GOOD, "default", 1).expect("a plan")
}

fn arm<'a>(plan: &'a Plan, name: &str) -> &'a Arm {
    plan.arm(name).expect("it is planned").1
}

fn names(group: &Group) -> Vec<&str> {
    group.arms.iter().map(|arm| arm.name.as_str()).collect()
}

fn batch(plan: &Plan, name: &str) -> u64 {
    match arm(plan, name).case.workload {
        Workload::Overwrite { operations, .. } => operations,
        _ => panic!("{name} has no batches of overwrites"),
    }
}

#[test]
fn a_good_suite_becomes_a_plan_with_nothing_left_open() {
    let plan = good();
    assert_eq!(
        (plan.suite.as_str(), plan.question.as_str()),
        ("good", "Which?")
    );
    assert_eq!((plan.scale.as_str(), plan.seed), ("default", 1));
    let [read, write] = plan.groups.as_slice() else {
        panic!("{} groups", plan.groups.len());
    };
    assert_eq!((read.name.as_str(), write.name.as_str()), ("read", "write"));
    assert_eq!((read.rounds, read.slices, read.slice_ns), (8, 5, 4_000_000));
    // A group that names no length has slices of 10 ms.
    assert_eq!(
        (write.rounds, write.slices, write.slice_ns),
        (6, 7, 10_000_000)
    );
    assert!(!read.writes() && write.writes());
    assert_eq!(plan.arms().count(), 3 + 4);
    assert_eq!(
        (plan.charts.len(), plan.claims.len(), plan.conclusion.len()),
        (1, 1, 1)
    );

    let (group, found) = plan.arm("read-fast").expect("it is planned");
    assert_eq!(
        (group.name.as_str(), found.label.as_str()),
        ("read", "fast")
    );
    let case = &found.case;
    let order = KeyOrder::Ascending;
    assert_eq!(case.workload, Workload::Read { order });
    assert_eq!(case.engine, "alpha");
    assert_eq!(
        (case.durability, case.cache),
        (Durability::PowerLoss, CacheState::Warm)
    );
    assert_eq!(
        (case.dataset.count, case.dataset.compressibility),
        (100, 0.5)
    );
    assert_eq!(case.dataset.size, SizeDistribution::Fixed(64));
    assert_eq!(plan.arm("nobody"), None);
}

#[test]
fn the_baseline_stands_twice_and_its_twin_comes_last() {
    let plan = good();
    let read = &plan.groups[0];
    assert_eq!(names(read), ["read-plain", "read-fast", "read-plain~twin"]);
    assert_eq!(read.twin(), "read-plain~twin");
    let (baseline, twin) = (&read.arms[0], &read.arms[2]);
    assert!(twin.is_twin() && !baseline.is_twin());
    assert_eq!(twin.label, "plain, again");
    assert_eq!(twin.case, baseline.case);
}

#[test]
fn settings_are_complete_and_only_those_that_are_no_defaults_are_chosen() {
    let plan = good();
    let plain = &arm(&plan, "read-plain").case;
    let defaults = [
        ("api", "plain"),
        ("cache_bytes", "2097152"),
        ("sync", "off"),
    ];
    assert_eq!(plain.settings, Settings::from_pairs(defaults));
    assert_eq!(plain.chosen, Settings::default());
    // A default that is spelled out, in whatever way, is still a default.
    let fast = &arm(&plan, "read-fast").case;
    let resolved = [("api", "fast"), ("cache_bytes", "2097152"), ("sync", "off")];
    assert_eq!(fast.settings, Settings::from_pairs(resolved));
    assert_eq!(fast.chosen, Settings::from_pairs([("api", "fast")]));
    // A number in the file is as good as text.
    let off = &arm(&plan, "write-off").case;
    assert_eq!(off.chosen, Settings::from_pairs([("cache_bytes", "4096")]));
    assert_eq!(arm(&plan, "write-beta").case.settings, Settings::default());
}

#[test]
fn the_seed_decides_the_bytes_and_nothing_else() {
    let (one, other) = (good(), resolve(GOOD, "default", 2).expect("a plan"));
    let dataset = |plan: &Plan, name: &str| arm(plan, name).case.dataset.clone();
    assert_ne!(
        dataset(&one, "read-fast").seed,
        dataset(&other, "read-fast").seed
    );
    assert_eq!(dataset(&one, "read-fast"), dataset(&one, "write-off"));
    assert_eq!(
        arm(&one, "read-fast").case.id(),
        arm(&other, "read-fast").case.id()
    );
}

#[test]
fn a_plan_survives_being_written_down() {
    let plan = good();
    let written = serde_json::to_string(&plan).expect("written");
    assert_eq!(serde_json::from_str::<Plan>(&written).expect("read"), plan);
}

#[test]
fn numbers_are_those_of_the_scale_or_else_of_the_default() {
    let full = resolve(GOOD, "full", 1).expect("a plan");
    assert_eq!(full.scale, "full");
    assert_eq!((full.groups[0].rounds, full.groups[0].slices), (12, 5));
    assert_eq!((full.groups[1].rounds, full.groups[1].slices), (6, 9));
    assert_eq!(arm(&full, "read-plain").case.dataset.count, 1000);
    assert_eq!(
        (batch(&full, "write-off"), batch(&full, "write-full")),
        (500, 20)
    );
    // Only the rounds of one group know the smallest scale.
    let smoke = resolve(GOOD, "smoke", 1).expect("a plan");
    assert_eq!((smoke.groups[0].rounds, smoke.groups[1].rounds), (2, 6));
    assert_eq!(smoke.groups[1].slices, 7);
    assert_eq!(arm(&smoke, "read-plain").case.dataset.count, 100);
    assert_eq!(
        (batch(&smoke, "write-off"), batch(&smoke, "write-full")),
        (100, 10)
    );
}

#[test]
fn a_scale_that_the_suite_does_not_know_is_refused() {
    let refusal = |scale: &str| {
        let error = resolve(GOOD, scale, 1).expect_err("no such scale");
        (error.problem, error.hint)
    };
    let (problem, hint) = refusal("ful");
    assert_eq!(problem, "there is no scale `ful`");
    assert_eq!(hint, "did you mean `full`?");
    let (_, hint) = refusal("enormous");
    assert!(hint.starts_with("there are default, "), "{hint}");
    assert!(hint.contains("full") && hint.contains("smoke"), "{hint}");
}

#[test]
fn names_that_do_not_exist_are_refused_with_the_nearest_that_does() {
    let engine = r#"engine = "beta""#;
    for (from, to, what, hint) in [
        (engine, r#"engine = "alpah""#, "engine `alpah`", "`alpha`"),
        (
            engine,
            r#"engine = "quux""#,
            "engine `quux`",
            "there are alpha, beta",
        ),
        (
            r#"dataset = "blobs""#,
            r#"dataset = "blob""#,
            "dataset `blob`",
            "`blobs`",
        ),
        (
            r#"dataset = "blobs""#,
            r#"dataset = "ston""#,
            "dataset `ston`",
            "`stones`",
        ),
        (
            r#"baseline = "write-off""#,
            r#"baseline = "write-of""#,
            "arm `write-of`",
            "`write-off`",
        ),
        (
            r#""read-fast"]"#,
            r#""read-fats"]"#,
            "arm `read-fats`",
            "`read-fast`",
        ),
        (
            r#"versus = [{ arm = "read-plain""#,
            r#"versus = [{ arm = "read-plan""#,
            "arm `read-plan`",
            "`read-plain`",
        ),
        (
            r#"published = [{ arm = "read-fast""#,
            r#"published = [{ arm = "read-fst""#,
            "arm `read-fst`",
            "`read-fast`",
        ),
        (
            r#"numerator = "read-plain""#,
            r#"numerator = "read-plane""#,
            "arm `read-plane`",
            "`read-plain`",
        ),
        (
            r#"denominator = "read-fast""#,
            r#"denominator = "red-fast""#,
            "arm `red-fast`",
            "`read-fast`",
        ),
    ] {
        let (problem, found) = refused(from, to);
        assert_eq!(problem, format!("there is no {what}"), "{to}");
        let wanted = match hint.starts_with('`') {
            true => format!("did you mean {hint}?"),
            false => hint.to_owned(),
        };
        assert_eq!(found, wanted, "{to}");
    }
}

#[test]
fn the_baseline_is_an_arm_of_its_own_group() {
    let (problem, hint) = refused(r#"baseline = "write-off""#, r#"baseline = "read-fast""#);
    assert_eq!(problem, "there is no arm `read-fast`");
    assert!(
        hint.contains("write-off") && !hint.contains("read-"),
        "{hint}"
    );
}

#[test]
fn settings_that_an_engine_does_not_know_are_refused_with_the_arm() {
    let (problem, hint) = refused("cache_bytes = 4096", "cache_byts = 4096");
    assert_eq!(
        problem,
        "arm `write-off`: engine `alpha` has no setting `cache_byts`"
    );
    assert_eq!(hint, "did you mean `cache_bytes`?");

    let (problem, hint) = refused(r#"sync = "full""#, r#"sync = "ful""#);
    assert_eq!(
        problem,
        "arm `write-full`: setting `sync` of engine `alpha` cannot be `ful`"
    );
    assert!(hint.contains("`full`"), "{hint}");

    let (problem, _) = refused("cache_bytes = 4096", "cache_bytes = true");
    assert!(
        problem.contains("`cache_bytes`") && problem.contains("`true`"),
        "{problem}"
    );

    let (problem, hint) = refused(
        r#"engine = "beta""#,
        "engine = \"beta\"\nsettings = { sync = \"off\" }",
    );
    assert_eq!(
        problem,
        "arm `write-beta`: engine `beta` has no setting `sync`"
    );
    assert_eq!(hint, "this engine takes no settings");
}

#[test]
fn settings_that_do_not_go_together_are_refused_with_the_arm() {
    let (problem, hint) = refused("2 MiB", "none");
    assert_eq!(
        problem,
        "arm `read-fast`: engine `alpha`: fast needs a cache"
    );
    assert_eq!(hint, "give it one");
}

#[test]
fn writers_promise_the_durability_that_is_asked_for() {
    // Of the arm.
    let (problem, hint) = refused(r#"sync = "full""#, r#"sync = "off""#);
    assert_eq!(
        problem,
        "arm `write-full` is to survive power-loss, but its settings promise process-crash"
    );
    assert_eq!(hint, "set `durability` of the arm");
    // Of the group, where the arm says nothing.
    let (problem, _) = refused("durability = \"none\"\n", "");
    assert_eq!(
        problem,
        "arm `write-beta` is to survive process-crash, but its settings promise none"
    );
    // More than is asked for is welcome; the case keeps what was asked for.
    let plan = accepted("durability = \"power-loss\"\noperations", "operations");
    assert_eq!(
        arm(&plan, "write-full").case.durability,
        Durability::ProcessCrash
    );
    // The readers of the good suite are asked for more than their settings promise.
    assert_eq!(
        arm(&good(), "read-plain").case.durability,
        Durability::PowerLoss
    );
    assert_eq!(arm(&good(), "write-beta").case.durability, Durability::None);
}

#[test]
fn two_arms_of_one_name_are_refused_in_whichever_groups() {
    for name in ["write-full", "write-off", "read-fast"] {
        let (problem, hint) = refused(r#"name = "write-beta""#, &format!("name = \"{name}\""));
        assert_eq!(problem, format!("two arms are called `{name}`"));
        assert_eq!(hint, "names are unique in a suite");
    }
}

#[test]
fn names_that_cannot_stand_in_a_path_or_a_placeholder_are_refused() {
    let named = |name: &str| format!("name = \"{name}\"");
    let longest = "a".repeat(64);
    for name in ["7", "a.b_c-D9", longest.as_str()] {
        let plan = accepted(r#"name = "write-beta""#, &named(name));
        assert_eq!(arm(&plan, name).name, name);
    }
    let too_long = "a".repeat(65);
    for name in [
        "",
        "-a",
        ".a",
        "_a",
        "..",
        "a b",
        "a/b",
        "a|b",
        "a}b",
        "a~b",
        "~twin",
        "\u{e9}t\u{e9}",
        "caf\u{e9}",
        &too_long,
    ] {
        let (problem, hint) = refused(r#"name = "write-beta""#, &named(name));
        assert_eq!(problem, format!("an arm cannot be called `{name}`"));
        assert!(hint.contains("at most 64"), "{hint}");
    }
}

#[test]
fn a_claim_that_can_only_hold_is_refused() {
    let (problem, hint) = refused("at_least = 1.1", "");
    assert_eq!(problem, "the claim \"Fast is faster.\" can only hold");
    assert_eq!(hint, "give it `at_least` or `at_most`");
    let plan = accepted("at_least = 1.1", "at_most = 0.9");
    assert_eq!(
        (plan.claims[0].at_least, plan.claims[0].at_most),
        (None, Some(0.9))
    );
}

#[test]
fn placeholders_that_cannot_be_filled_in_are_refused() {
    let good = "{fast:read-fast|read-plain}";
    for kind in ["fast", "fast-settled", "space", "factor"] {
        accepted(good, &format!("{{{kind}:read-fast|read-plain~twin}}"));
    }
    for (bad, problem) in [
        (
            "{faster:read-fast|read-plain}",
            "there is no placeholder `faster`",
        ),
        ("{fast:nobody|read-plain}", "there is no arm `nobody`"),
        ("{fast:read-fast|nobody}", "there is no arm `nobody`"),
        ("{fast:read-fast}", "is no placeholder"),
        ("{read-fast|read-plain}", "is no placeholder"),
        ("{fast:read-fast|read-plain", "is no placeholder"),
    ] {
        let (found, _) = refused(good, bad);
        assert!(
            found.starts_with("conclusion: ") && found.contains(problem),
            "{bad}: {found}"
        );
    }
}

#[test]
fn a_batch_overwrites_every_blob_once_at_the_most() {
    // The good suite's batch of 100 of 100 blobs is the largest.
    assert_eq!(batch(&good(), "write-off"), 100);
    for operations in [0, 101] {
        let (problem, hint) = refused("{ default = 100, full = 500 }", &operations.to_string());
        assert_eq!(
            problem,
            format!("arm `write-off`: a batch of {operations} overwrites of 100 blobs")
        );
        assert!(hint.contains("once at the most"), "{hint}");
    }
    // An arm's own number is looked at likewise, and so is every scale.
    let (problem, _) = refused(
        "operations = { default = 10,",
        "operations = { default = 101,",
    );
    assert_eq!(
        problem,
        "arm `write-full`: a batch of 101 overwrites of 100 blobs"
    );
    let text = changed("default = 10, full = 20", "default = 10, full = 1001");
    assert!(resolve(&text, "default", 1).is_ok());
    let error = resolve(&text, "full", 1).expect_err("too many at this scale");
    assert_eq!(
        error.problem,
        "arm `write-full`: a batch of 1001 overwrites of 1000 blobs"
    );
}

#[test]
fn numbers_that_are_missing_at_the_scale_or_out_of_range_are_refused() {
    for (from, to, problem) in [
        (
            "rounds = 6",
            "rounds = 0",
            "group `write`: rounds is missing or 0",
        ),
        (
            "rounds = 6",
            "rounds = { full = 6 }",
            "group `write`: rounds is missing or 0",
        ),
        (
            "slices = 5",
            "slices = { full = 5 }",
            "group `read`: slices is missing or 0",
        ),
        (
            "{ default = 100, full = 500 }",
            "{ full = 500 }",
            "arm `write-off`: operations are missing",
        ),
        (
            "{ default = 10, full = 20 }",
            "{ full = 20 }",
            "arm `write-full`: operations are missing",
        ),
    ] {
        assert_eq!(refused(from, to).0, problem);
    }
    let (_, hint) = refused("rounds = 6", "rounds = 100001");
    assert_eq!(hint, "it is a number from 1 to 100000");
    assert_eq!(
        accepted("rounds = 6", "rounds = 100000").groups[1].rounds,
        100_000
    );
}

#[test]
fn a_dataset_that_cannot_be_is_refused_where_it_is_used() {
    let (problem, _) = refused("{ default = 100, full = 1000 }", "{ full = 1000 }");
    assert_eq!(
        problem,
        "dataset `blobs`: a dataset needs at least one blob"
    );
    let (problem, _) = refused("compressibility = 0.5", "compressibility = 1.5");
    assert_eq!(
        problem,
        "dataset `blobs`: compressibility is a number from 0 to 1"
    );
}

/// The plan without all groups but these: how many charts, claims and sentences it has left.
fn left_of(plan: &Plan, groups: &[&str]) -> (usize, usize, usize) {
    let names: Vec<String> = groups.iter().map(|name| (*name).to_owned()).collect();
    let plan = plan.clone().only(&names).expect("they are groups");
    let left: Vec<&str> = plan
        .groups
        .iter()
        .map(|group| group.name.as_str())
        .collect();
    assert_eq!(left, groups);
    (plan.charts.len(), plan.claims.len(), plan.conclusion.len())
}

#[test]
fn a_plan_of_some_groups_keeps_only_what_they_can_answer() {
    let plan = good();
    assert_eq!(left_of(&plan, &["read"]), (1, 1, 1));
    assert_eq!(left_of(&plan, &["write"]), (0, 0, 0));
    // What needs both groups goes with either.
    for (from, to, left) in [
        (
            r#"denominator = "read-fast""#,
            r#"denominator = "write-off""#,
            (1, 0, 1),
        ),
        (
            r#"numerator = "read-plain""#,
            r#"numerator = "write-off""#,
            (1, 0, 1),
        ),
        (
            r#"versus = [{ arm = "read-plain""#,
            r#"versus = [{ arm = "write-off""#,
            (0, 1, 1),
        ),
        (
            r#"arms = ["read-plain", "#,
            r#"arms = ["write-off", "#,
            (0, 1, 1),
        ),
        (
            "{fast:read-fast|read-plain}",
            "{fast:read-fast|write-off}",
            (1, 1, 0),
        ),
    ] {
        let plan = accepted(from, to);
        assert_eq!(left_of(&plan, &["read"]), left, "{to}");
        assert_eq!(left_of(&plan, &["write"]), (0, 0, 0), "{to}");
        assert_eq!(left_of(&plan, &["read", "write"]), (1, 1, 1), "{to}");
    }
    let plan = accepted("Fast is {fast:read-fast|read-plain} plain.", "It is so.");
    assert_eq!(left_of(&plan, &["write"]), (0, 0, 1));

    for (name, hint) in [
        ("wirte", "did you mean `write`?"),
        ("all", "there are read, write"),
    ] {
        let names = ["read".to_owned(), name.to_owned()];
        let error = good().only(&names).expect_err("no such group");
        assert_eq!(error.suite, "good");
        assert_eq!(
            (error.problem, error.hint),
            (format!("there is no group `{name}`"), hint.to_owned())
        );
    }
}

#[test]
fn an_arm_cannot_pose_as_a_twin() {
    let (problem, _) = refused(r#"name = "write-beta""#, r#"name = "write-beta~twin""#);
    assert!(problem.contains("cannot be called"), "{problem}");
}

#[test]
fn a_scale_of_arm_operations_is_known() {
    let text = changed("{ default = 10, full = 20 }", "{ default = 10, tiny = 1 }");
    let plan = resolve(&text, "tiny", 1).expect("a scale of the suite");
    assert_eq!(batch(&plan, "write-full"), 1);
}

#[test]
fn groups_of_one_name_are_refused() {
    refused("[[group]]\nname = \"write\"", "[[group]]\nname = \"read\"");
}
#[test]
fn datasets_of_one_name_are_refused() {
    refused(r#"name = "stones""#, r#"name = "blobs""#);
}

/// The good suite with its reading group cold.
fn cold(more: &str) -> String {
    changed(
        "order = \"ascending\" }\ncache = \"warm\"",
        &format!("order = \"ascending\" }}\ncache = \"data-cold\"{more}"),
    )
}

#[test]
fn arms_take_turns_unless_their_group_says_otherwise() {
    use sqlitmus_core::plan::Turns;
    assert_eq!(good().groups[0].turns, Turns::Interleaved);
    let plan = accepted("cache = \"warm\"", "turns = \"alone\"\ncache = \"warm\"");
    assert_eq!(plan.groups[0].turns, Turns::Alone);
}

#[test]
fn arms_of_a_cold_group_are_alone_for_one_slice() {
    use sqlitmus_core::plan::Turns;
    let plan = resolve(&cold("").replace("slices = 5", "slices = 1"), "default", 1);
    let plan = plan.expect("a plan");
    assert_eq!(plan.groups[0].turns, Turns::Alone);
    assert_eq!(arm(&plan, "read-plain").case.cache, CacheState::DataCold);
}

#[test]
fn a_cold_group_of_several_slices_or_writes_is_refused() {
    let error = resolve(&cold(""), "default", 1).expect_err("several slices");
    assert!(error.problem.contains("no longer cold"), "{error}");
    assert!(error.hint.contains("slices = 1"), "{}", error.hint);
    let error = resolve(&cold("\nturns = \"interleaved\""), "default", 1).expect_err("turns");
    assert!(error.problem.contains("cannot take turns"), "{error}");
    let text = GOOD
        .replace("slices = 5", "slices = 1")
        .replace("slices = { default = 7, full = 9 }", "slices = 1")
        .replace("cache = \"warm\"", "cache = \"fully-cold\"");
    let error = resolve(&text, "default", 1).expect_err("a writing group");
    assert!(error.problem.contains("only reading"), "{error}");
}

#[test]
fn an_arm_with_several_numbers_of_threads_is_several_arms() {
    let group = |arms: &str| {
        format!(
            "{GOOD}\n[[group]]\nname = 'query'\ndataset = 'blobs'\n\
             workload = {{ kind = 'point-query', hit_percent = 10 }}\ncache = 'warm'\n\
             durability = 'none'\nbaseline = 'rows-1'\nrounds = 2\nslices = 2\n{arms}"
        )
    };
    let arms = "[[group.arm]]\nname = 'rows'\nlabel = 'rows'\nengine = 'alpha'\n\
                threads = [1, 4]\n\
                published_rate = [{ threads = 4, operations = 10, elapsed_ms = 5, machine = 'm' }]\n";
    let plan = resolve(&group(arms), "default", 1).expect("a plan");
    let four = arm(&plan, "rows-4");
    assert_eq!(four.label, "rows, 4 threads");
    assert_eq!(arm(&plan, "rows-1").label, "rows, 1 thread");
    let count = four.case.dataset.count;
    assert_eq!(four.case.workload.key_range(count), count * 10);
    assert_eq!(four.case.workload.threads(), 4);
    assert_eq!(
        four.published_rate.as_ref().map(|rate| rate.operations),
        Some(10)
    );
    assert_eq!(arm(&plan, "rows-1").published_rate, None);

    let problem = |arms: &str| {
        resolve(&group(arms), "default", 1)
            .expect_err("refused")
            .problem
    };
    assert!(problem(&arms.replace("[1, 4]", "[1, 0]")).contains("0 threads"));
    assert!(problem(&arms.replace("'alpha'", "'beta'")).contains("no rows"));
    assert!(problem(&format!("{arms}workload = {{ limit_ms = 5 }}")).contains("`limit_ms`"));
    assert!(problem(&format!("{arms}workload = {{ hit_percent = 0 }}")).contains("1 to 100"));
}

#[test]
fn a_suite_without_charts_has_one_for_each_group_about_blobs() {
    let (start, end) = (GOOD.find("[[chart]]"), GOOD.find("[[claim]]"));
    let (start, end) = (start.expect("a chart"), end.expect("a claim"));
    let text = format!("{}{}", &GOOD[..start], &GOOD[end..]);
    let plan = resolve(&text, "default", 1).expect("a plan");
    let [read, write] = plan.charts.as_slice() else {
        panic!("{} charts", plan.charts.len());
    };
    assert_eq!(
        (read.title.as_str(), write.title.as_str()),
        ("read", "write")
    );
    assert_eq!(read.arms, ["read-plain", "read-fast"]);
    assert_eq!(read.versus.len(), 1);
    assert_eq!(read.versus[0].arm, "read-plain");
    assert_eq!(write.arms, ["write-off", "write-full", "write-beta"]);
}
