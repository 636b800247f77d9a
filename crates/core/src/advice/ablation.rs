//! What each setting is worth: from the best store, one thing is changed at a time and measured against it
//! on the same files. Settings are put back to what SQLite has where nobody chooses; besides, some are
//! moved on from where they are, which shows whether there is more to be had. What is worth nothing here
//! need not be pasted.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::AdviceRecord;
use super::candidate::{Candidate, EngineSettings, Store};
use super::score::{Composed, Part, compose};
use super::stage::{SAMPLE, arm_of, batch_operations, plan_of, read_as, suite_of};
use super::wish::Wish;
use crate::case::Durability;
use crate::dataset::Dataset;
use crate::measurements::{ArmStatus, Cost, Measurements};
use crate::plan::{Catalogue, Plan};
use crate::suite::SuiteError;

/// What was changed, of which store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ablation {
    /// Name of the candidate that is changed.
    pub best: String,
    /// The changes, one at a time.
    pub changes: Vec<Change>,
}

/// One thing that is different.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// Short name, unique.
    pub name: String,
    /// What the best has and what stands in its place: `page_size 65536 instead of 4096`.
    pub words: String,
    /// Whether it is what SQLite has where nobody chooses; else one step farther.
    pub is_put_back: bool,
    /// What is read with, if reading differs.
    pub reading: Option<EngineSettings>,
    /// What is written with.
    pub writing: EngineSettings,
}

/// What a setting is worth.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SettingWorth {
    /// What the best has, and what it was changed to.
    pub words: String,
    /// Whether that is what SQLite has where nobody chooses.
    pub is_put_back: bool,
    /// Time with the change divided by time of the best: above 1 the setting gains.
    pub composed: Option<Composed>,
    /// Space with the change divided by space of the best.
    pub space: Option<f64>,
    /// Why there are no figures.
    pub reason: Option<String>,
}

/// SQLite's page cache where nobody chooses, in bytes.
const DEFAULT_CACHE: &str = "2048000";

/// A cache that holds much of a sample.
const LARGE_CACHE: &str = "64MiB";

/// Bytes of a page that are considered.
const PAGE_BYTES: std::ops::RangeInclusive<u64> = 1024..=65_536;

/// Changes of a store with a database that can be measured as it is wished.
#[must_use]
pub fn changes(best: &Candidate, wish: &Wish) -> Vec<Change> {
    let mut changes = put_back(best, wish.durability);
    changes.extend(moved_on(best));
    let circumstances = &wish.circumstances;
    // Several writers commit every write by itself.
    let is_one_by_one = circumstances.writers > 1;
    changes.retain(|change| {
        let has_batches = change.writing.get("transaction") != best.writing.get("transaction");
        circumstances.has_room_for(&change.writing) && !(is_one_by_one && has_batches)
    });
    changes
}

/// A change of one setting, in reading and in writing.
fn change(best: &Candidate, setting: &str, value: &str, words: String) -> Change {
    Change {
        name: format!("{setting}-{}", value.to_lowercase()),
        words,
        is_put_back: true,
        reading: Some(best.reading.clone().with(setting, value)),
        writing: best.writing.clone().with(setting, value),
    }
}

fn put_back(best: &Candidate, durability: Durability) -> Vec<Change> {
    let has = |name: &str| best.writing.get(name);
    let mut changes = Vec::new();
    if let Some(page) = has("page_size").filter(|page| *page != "4096") {
        let words = format!("page_size {page} instead of 4096");
        changes.push(change(best, "page_size", "4096", words));
    }
    if has("mmap").is_some_and(|bytes| bytes != "0") {
        let words = "mmap instead of read".to_owned();
        changes.push(change(best, "mmap", "0", words));
    }
    if best.store == Store::Sqlite && has("api") == Some("blob") {
        let words = "blob API instead of SELECT".to_owned();
        changes.push(change(best, "api", "select", words));
    }
    if has("catalogue") == Some("memory") {
        let words = "names in memory instead of SQLite".to_owned();
        changes.push(change(best, "catalogue", "none", words));
    } else if best.store == Store::Sqlite && has("layout") == Some("rowid") {
        let words = "numbers instead of names".to_owned();
        changes.push(change(best, "layout", "name", words));
    }
    if let Some(cache) = has("cache").filter(|cache| *cache != DEFAULT_CACHE) {
        let words = format!("cache {cache} instead of 2 MB");
        changes.push(change(best, "cache", DEFAULT_CACHE, words));
    }
    if has("journal_mode") == Some("wal") {
        let words = "WAL instead of rollback journal".to_owned();
        changes.push(with_rollback_journal(best, durability, words));
    }
    if best.store == Store::Hybrid {
        changes.push(all_inside(best));
    }
    changes
}

/// `journal_mode = delete`, as SQLite has it, with what it takes to survive the same.
fn with_rollback_journal(best: &Candidate, durability: Durability, words: String) -> Change {
    let mut found = change(best, "journal_mode", "delete", words);
    // Without a log there is nothing to copy.
    found.writing = found.writing.without("checkpoint");
    if durability == Durability::PowerLoss {
        // A journal that is deleted may be back after a loss of power, unless its folder is synced.
        found.writing = found.writing.with("synchronous", "extra");
    }
    found
}

/// A hybrid without its files.
fn all_inside(best: &Candidate) -> Change {
    let of_hybrid = ["inline_limit", "layout", "sync", "api"];
    let inside = |with: &EngineSettings| {
        let bare = of_hybrid
            .iter()
            .fold(with.clone(), |bare, name| bare.without(name));
        EngineSettings {
            engine: "sqlite".to_owned(),
            settings: bare.settings,
        }
    };
    Change {
        name: "all-inside".to_owned(),
        words: "large in files instead of all inside".to_owned(),
        is_put_back: true,
        reading: Some(inside(&best.reading)),
        writing: inside(&best.writing),
    }
}

/// One step on from where the best is.
fn moved_on(best: &Candidate) -> Vec<Change> {
    let has = |name: &str| best.writing.get(name);
    let mut changes = Vec::new();
    let mut add = |mut change: Change, only_writes: bool| {
        change.is_put_back = false;
        if only_writes {
            change.reading = None;
        }
        changes.push(change);
    };
    let page = has("page_size").and_then(|page| page.parse::<u64>().ok());
    for other in page.iter().flat_map(|page| [page / 2, page * 2]) {
        if other != 4096 && PAGE_BYTES.contains(&other) {
            let page = has("page_size").unwrap_or_default();
            let words = format!("page_size {page} instead of {other}");
            add(change(best, "page_size", &other.to_string(), words), false);
        }
    }
    if best.store == Store::Hybrid
        && let Some(limit) = has("inline_limit").and_then(|limit| limit.parse::<u64>().ok())
    {
        for other in [limit / 4, limit * 4] {
            let words = format!(
                "inline limit {} KiB instead of {}",
                limit >> 10,
                other >> 10
            );
            add(
                change(best, "inline_limit", &other.to_string(), words),
                false,
            );
        }
    }
    if has("cache").is_none() {
        let words = "cache 2 MB instead of 64 MiB".to_owned();
        add(change(best, "cache", LARGE_CACHE, words), false);
    }
    if has("read_transaction") == Some("each") {
        let words = "single reads instead of many at once".to_owned();
        let mut held = change(best, "read_transaction", "held", words);
        held.writing = best.writing.clone();
        add(held, false);
    }
    if has("checkpoint") == Some("included") {
        let words = "checkpoint a batch instead of 1000 pages".to_owned();
        add(change(best, "checkpoint", "automatic", words), true);
    }
    for batch in ["10", "100"] {
        let words = format!("single writes instead of {batch} at once");
        add(change(best, "transaction", batch, words), true);
    }
    changes
}

const BEST: &str = "best";

fn group_name(writes: bool) -> &'static str {
    if writes {
        "ablate-write"
    } else {
        "ablate-read"
    }
}

fn arm_name(writes: bool, change: &str) -> String {
    format!("{}.{change}", group_name(writes))
}

/// The plan of all changes that `record` has, on a sample.
///
/// # Errors
/// A change that cannot be.
pub fn plan(
    record: &AdviceRecord,
    dataset: &Dataset,
    (rounds, seed): (u32, u64),
    catalogue: &dyn Catalogue,
) -> Result<Plan, SuiteError> {
    let mut groups = Vec::new();
    if let Some((ablation, best)) = of(record) {
        if record.wish.reads > 0 {
            groups.push(read_group(record, ablation, best));
        }
        if record.wish.writes > 0 {
            groups.push(write_group(record, ablation, best, dataset));
        }
    }
    for group in &mut groups {
        group["rounds"] = json!(rounds);
    }
    let suite = suite_of(record, &[(SAMPLE.to_owned(), dataset)], &groups, &[])?;
    let mut plan = plan_of(record, &suite, seed, catalogue)?;
    // It has a table of its own.
    plan.charts.clear();
    Ok(plan)
}

fn of(record: &AdviceRecord) -> Option<(&Ablation, &Candidate)> {
    let ablation = record.ablation.as_ref()?;
    let mut candidates = record.candidates.iter();
    let best = candidates.find(|one| one.name == ablation.best)?;
    Some((ablation, best))
}

fn read_group(record: &AdviceRecord, ablation: &Ablation, best: &Candidate) -> Value {
    let arms = ablation.changes.iter().filter_map(|change| {
        let name = arm_name(false, &change.name);
        Some(arm_of(&name, &change.words, change.reading.as_ref()?))
    });
    let best = arm_of(&arm_name(false, BEST), &best.label, &best.reading);
    let arms: Vec<Value> = std::iter::once(best).chain(arms).collect();
    let mut group = json!({
        "name": group_name(false),
        "dataset": SAMPLE,
        "workload": {"kind": "read", "order": record.wish.skew.order()},
        "cache": "warm",
        "durability": "none",
        "baseline": arm_name(false, BEST),
        "rounds": 1,
        "slices": 1,
        "arm": arms,
    });
    read_as(&mut group, record.wish.reading());
    group
}

fn write_group(
    record: &AdviceRecord,
    ablation: &Ablation,
    best: &Candidate,
    dataset: &Dataset,
) -> Value {
    let durability = record.wish.durability;
    let arms = ablation.changes.iter().map(|change| {
        let name = arm_name(true, &change.name);
        arm_of(&name, &change.words, &change.writing)
    });
    let best = arm_of(&arm_name(true, BEST), &best.label, &best.writing);
    let arms: Vec<Value> = std::iter::once(best).chain(arms).collect();
    let operations = batch_operations(dataset, durability);
    json!({
        "name": group_name(true),
        "dataset": SAMPLE,
        "workload": {
            "kind": "overwrite",
            "order": record.wish.skew.order(),
            "operations": operations,
        },
        "cache": "warm",
        "durability": durability,
        "baseline": arm_name(true, BEST),
        "rounds": 1,
        "slices": 3,
        "arm": arms,
    })
}

/// What a run says of it, in the order of the changes; nothing if nothing was changed.
#[must_use]
pub fn worths(record: &AdviceRecord, measurements: &Measurements<'_>) -> Vec<SettingWorth> {
    let Some((ablation, _)) = of(record) else {
        return Vec::new();
    };
    let changes = ablation.changes.iter();
    changes
        .map(|change| worth(record, measurements, change))
        .collect()
}

fn worth(record: &AdviceRecord, measurements: &Measurements<'_>, change: &Change) -> SettingWorth {
    let part = |writes: bool, is_changed: bool| {
        let best = arm_name(writes, BEST);
        let changed = match is_changed {
            true => arm_name(writes, &change.name),
            false => best.clone(),
        };
        Part::of(measurements, &record.fillings, &changed, &best)
    };
    let wish = &record.wish;
    let reads = (wish.reads > 0).then(|| part(false, change.reading.is_some()));
    let writes = (wish.writes > 0).then(|| part(true, true));
    let is_whole = reads != Some(None) && writes != Some(None);
    let floor = |writes: bool, part: &Option<Option<Part>>| match part {
        None => Some(0.0),
        Some(_) => measurements.noise_floor_of(&arm_name(writes, BEST), Cost::Acknowledged),
    };
    let floors = floor(false, &reads).zip(floor(true, &writes));
    let floor = floors.map(|(read, write)| f64::max(read, write));
    let composed = is_whole
        .then(|| compose(wish, reads.flatten(), writes.flatten(), floor))
        .flatten();
    let writes_alone = wish.reads == 0;
    SettingWorth {
        words: change.words.clone(),
        is_put_back: change.is_put_back,
        space: measurements.space_ratio(
            &arm_name(writes_alone, &change.name),
            &arm_name(writes_alone, BEST),
        ),
        reason: composed.is_none().then(|| reason(measurements, change)),
        composed,
    }
}

fn reason(measurements: &Measurements<'_>, change: &Change) -> String {
    let status = [false, true].map(|writes| measurements.status(&arm_name(writes, &change.name)));
    let reason = status.into_iter().find_map(|status| match status {
        ArmStatus::Failed(reason) | ArmStatus::Skipped(reason) => Some(reason),
        ArmStatus::Measured | ArmStatus::NotReached => None,
    });
    reason.unwrap_or_else(|| "there was no time for it".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advice::families::{Breadth, candidates};
    use crate::advice::{CacheWish, Circumstances, SizeCount, Skew, TreeFacts};
    use std::collections::BTreeSet;

    /// Of all stores with a database that are ever tried, some files being large.
    fn all() -> Vec<Candidate> {
        let class = |low: u64, files| SizeCount {
            low,
            high: 2 * low - 1,
            files,
            bytes: low * files,
        };
        let tree = TreeFacts {
            sizes: vec![class(1024, 100), class(1 << 20, 10)],
            ..TreeFacts::default()
        };
        let tiers = (Durability::ProcessCrash, Durability::PowerLoss);
        let mut all = candidates(&tree, tiers, Breadth::Wide);
        all.retain(|one| one.store.has_database());
        all
    }

    #[test]
    fn every_change_changes_something_and_has_a_name_of_its_own() {
        for best in all() {
            let changes = changes(&best, &wish());
            assert!(changes.iter().any(|change| change.is_put_back), "{best:?}");
            assert!(changes.iter().any(|change| !change.is_put_back));
            let names: BTreeSet<&str> = changes.iter().map(|one| one.name.as_str()).collect();
            assert_eq!(names.len(), changes.len(), "{names:?}");
            for change in &changes {
                let reads_differ = change.reading.as_ref() != Some(&best.reading);
                assert!(reads_differ && change.name != BEST, "{change:?}");
                assert!(change.reading.is_some() || change.writing != best.writing);
            }
        }
    }

    fn wish() -> Wish {
        Wish {
            reads: 90,
            writes: 10,
            skew: Skew::Uniform,
            cache: CacheWish::Warm,
            durability: Durability::ProcessCrash,
            worth: 0.1,
            circumstances: Circumstances::default(),
        }
    }

    #[test]
    fn what_several_writers_or_little_memory_leave_no_room_for_is_not_tried() {
        let all = all();
        let best = all.iter().find(|one| one.name == "sqlite-16k-mmap");
        let best = best.expect("a candidate");
        let names = |circumstances| -> Vec<String> {
            let wish = Wish {
                circumstances,
                ..wish()
            };
            let changes = changes(best, &wish).into_iter();
            changes.map(|change| change.name).collect()
        };
        let has = |names: &[String], name: &str| names.iter().any(|one| one == name);
        let usual = names(Circumstances::default());
        let writers = names(Circumstances {
            writers: 2,
            ..Circumstances::default()
        });
        let little = names(Circumstances {
            memory_bytes: Some(64 << 20),
            ..Circumstances::default()
        });
        for (name, is_there) in [
            ("transaction-10", [true, false, true]),
            ("cache-64mib", [true, true, false]),
            ("page_size-4096", [true, true, true]),
        ] {
            let found = [&usual, &writers, &little].map(|names| has(names, name));
            assert_eq!(found, is_there, "{name} of {usual:?}");
        }
    }

    #[test]
    fn a_deleted_journal_takes_more_to_survive_the_same() {
        let best = &all()[0];
        let sync = |durability| {
            let found = with_rollback_journal(best, durability, String::new());
            found.writing.get("synchronous").map(ToOwned::to_owned)
        };
        assert_eq!(sync(Durability::PowerLoss).as_deref(), Some("extra"));
        assert_eq!(sync(Durability::ProcessCrash).as_deref(), Some("normal"));
    }
}
