//! What the newest run of the durability experiment proves about the writing arms of a plan: found,
//! matched by engine and decisive settings, and handed over as facts of the measurement's run.
//!
//! What a proof says about a claim is judged in [`sqlitmus_core::durability::proof`].

use std::path::Path;

use sqlitmus_core::durability::{Configuration, DurabilityRun, Proof, Table, judge, prove};
use sqlitmus_core::plan::{Arm, Plan};
use sqlitmus_core::run::RunState;
use sqlitmus_runfile::Kind;

use crate::failure::Failure;
use crate::machine::place::Place;
use crate::runs;

/// Mount options on which it depends what a commit survives, by how they begin. All others are about
/// speed, time stamps or rights.
const DECISIVE_OPTIONS: [&str; 14] = [
    "data=",
    "auto_da_alloc",
    "noauto_da_alloc",
    "barrier",
    "nobarrier",
    "delalloc",
    "nodelalloc",
    "journal_async_commit",
    "commit=",
    "sync",
    "dirsync",
    "nodatacow",
    "flushoncommit",
    "async",
];

/// What is the same as not being named, on every filesystem that has it.
const DEFAULT_OPTIONS: [&str; 6] = [
    "data=ordered",
    "auto_da_alloc",
    "barrier",
    "barrier=1",
    "delalloc",
    "async",
];

/// A run of the experiment and the filesystem in it that is like the place's.
struct Witness {
    run: DurabilityRun,
    file: String,
    filesystem: String,
}

/// The facts that say what is proved of a plan's writing arms; none if there is no run to ask.
///
/// `asked` is the run that the user names; else the newest in the place is asked that has cut off
/// the power on such a filesystem, or if there is none, the newest that has killed processes there.
///
/// # Errors
/// The run that the user names is of another kind, cannot be read, proves nothing, or knows no such
/// filesystem.
pub fn facts(
    plan: &Plan,
    place: &Place,
    asked: Option<&Path>,
) -> Result<Vec<(String, String)>, Failure> {
    let writes = plan.groups.iter().any(|group| group.writes());
    let witness = match asked {
        Some(path) => Some(named(path, place)?),
        None if writes => newest(place),
        None => None,
    };
    let Some(witness) = witness else {
        return Ok(Vec::new());
    };
    let table = judge(&witness.run);
    let arms = plan.groups.iter().flat_map(|group| &group.arms);
    arms.filter(|arm| arm.case.workload.writes())
        .filter_map(|arm| Some((arm, witness.proof(&table, arm)?)))
        .map(|(arm, proof)| {
            let fact = proof.fact(&arm.name);
            fact.map_err(|error| {
                Failure::environment(format!("cannot record what is proved: {error}"), "")
            })
        })
        .collect()
}

/// The run that the user names.
fn named(path: &Path, place: &Place) -> Result<Witness, Failure> {
    let shown = path.display();
    if sqlitmus_runfile::kind(path)? != Kind::Durability {
        return Err(Failure::bad_input(
            format!("{shown} is no run of `sqlitmus durability`"),
            "`sqlitmus list` shows the runs; those of the experiment have the suite `durability`",
        ));
    }
    let run = sqlitmus_runfile::read_durability(path)?;
    if !judge(&run).is_trustworthy() {
        return Err(Failure::bad_input(
            format!("{shown} proves nothing: it did not catch the configuration that lies"),
            "make another: sqlitmus durability",
        ));
    }
    let known = run.plan.filesystems.join(", ");
    let filesystem = like(&run, place).ok_or_else(|| {
        Failure::bad_input(
            format!(
                "{shown} says nothing about {} with the options of this place: it knows {known}",
                place.filesystem
            ),
            format!("sqlitmus durability --loopback {}", place.filesystem),
        )
    })?;
    Ok(Witness {
        file: path.display().to_string(),
        filesystem,
        run,
    })
}

/// The newest that has something to say. A run that cannot be read proves nothing, and is no reason
/// not to measure.
fn newest(place: &Place) -> Option<Witness> {
    let kept = runs::kept(&place.path).ok()?;
    let runs = kept.runs.into_iter().rev();
    let mut witnesses = runs
        .filter(|listed| listed.kind == Kind::Durability && listed.head.state == RunState::Complete)
        .filter_map(|listed| {
            let run = sqlitmus_runfile::read_durability(&listed.path).ok()?;
            let filesystem = like(&run, place)?;
            judge(&run).is_trustworthy().then(|| Witness {
                file: listed.path.display().to_string(),
                filesystem,
                run,
            })
        });
    let first = witnesses.next()?;
    if first.cut_power() {
        return Some(first);
    }
    Some(witnesses.find(Witness::cut_power).unwrap_or(first))
}

/// The filesystem of a run that is like the place's: of the same kind, with the same decisive options.
fn like(run: &DurabilityRun, place: &Place) -> Option<String> {
    let of_place = decisive(place.mount_options.iter().map(String::as_str));
    let is_like = |name: &&String| {
        let (kind, asked) = name.split_once(':').unwrap_or((name, ""));
        let Some(options) = run.mount_options.get(*name) else {
            return false;
        };
        let in_force = || options.split(',');
        // What was asked of mkfs and not of mount (`nojournal`) is not seen in the place's options either.
        let is_visible = |asked: &str| in_force().any(|option| option == asked);
        kind == place.filesystem
            && asked
                .split('+')
                .filter(|asked| !asked.is_empty())
                .all(is_visible)
            && decisive(in_force()) == of_place
    };
    run.plan.filesystems.iter().find(is_like).cloned()
}

fn decisive<'a>(options: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let is_decisive = |option: &&str| {
        let name = option.split('=').next().unwrap_or(option);
        DECISIVE_OPTIONS
            .iter()
            .any(|known| name == *known || (known.ends_with('=') && option.starts_with(known)))
    };
    let mut found: Vec<&str> = options
        .filter(is_decisive)
        .filter(|option| !DEFAULT_OPTIONS.contains(option))
        .collect();
    found.sort_unstable();
    found.dedup();
    found
}

impl Witness {
    fn cut_power(&self) -> bool {
        let mut cuts = self.run.cuts.iter();
        cuts.any(|cut| {
            cut.filesystem == self.filesystem
                && cut.kind.tier() == sqlitmus_core::case::Durability::PowerLoss
        })
    }

    fn proof(&self, table: &Table<'_>, arm: &Arm) -> Option<Proof> {
        prove(
            &self.run,
            table,
            &self.file,
            &self.filesystem,
            |configuration| is_the_same(configuration, arm),
        )
    }
}

/// Whether a configuration writes as an arm does, in all that decides what a commit survives.
fn is_the_same(configuration: &Configuration, arm: &Arm) -> bool {
    if configuration.engine != arm.case.engine {
        return false;
    }
    let Ok(engine) = sqlitmus_engines::find(&configuration.engine) else {
        return false;
    };
    let resolved = configuration
        .settings
        .resolve(engine.name(), engine.settings());
    resolved.is_ok_and(|settings| {
        let mut names = engine.durability_settings().into_iter();
        names.all(|name| settings.get(name) == arm.case.settings.get(name))
    })
}

#[cfg(test)]
mod tests {
    use sqlitmus_core::plan::Plan;

    use super::*;
    use crate::catalogue::BuiltInEngines;
    use crate::durability::configurations;
    use crate::suites;

    #[test]
    fn options_that_decide_are_told_from_those_that_do_not() {
        let of = |text: &'static str| decisive(text.split(','));
        assert_eq!(of("rw,relatime,data=ordered"), Vec::<&str>::new());
        assert_eq!(of("rw,data=journal,discard"), ["data=journal"]);
        assert_eq!(of("noauto_da_alloc,rw"), ["noauto_da_alloc"]);
        assert_eq!(of("rw,lazytime,commit=30"), ["commit=30"]);
    }

    #[test]
    fn writing_arms_of_the_article_find_their_configurations() {
        let suite = suites::find(suites::CANONICAL).expect("a suite");
        let plan = Plan::resolve(&suite, "default", 1, &BuiltInEngines).expect("a plan");
        let all = configurations::all();
        let arms = plan.groups.iter().flat_map(|group| &group.arms);
        let mut matched = 0;
        for arm in arms.filter(|arm| arm.case.workload.writes()) {
            let found = all
                .iter()
                .find(|one| !one.is_control && is_the_same(one, arm));
            let engine = arm.case.engine.as_str();
            match found {
                Some(found) => {
                    matched += 1;
                    assert!(
                        found.claimed >= arm.case.durability,
                        "{}: {}",
                        arm.name,
                        found.name
                    );
                }
                None => {
                    let is_bundled = arm.case.settings.get("library") == Some("bundled");
                    assert!(
                        !is_bundled && !["files", "packfile"].contains(&engine),
                        "{}",
                        arm.name
                    );
                }
            }
        }
        assert!(matched >= 5, "{matched}");
    }
}
