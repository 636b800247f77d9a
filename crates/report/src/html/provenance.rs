//! What the figures rest on: how to read them, the machine, what each live engine said is in force,
//! and the command that repeats the run.

use std::collections::BTreeMap;

use maud::{Markup, html as markup};

use sqlitmus_core::analysis::Analysis;
use sqlitmus_core::case::Durability;
use sqlitmus_core::environment::is_about_machine;
use sqlitmus_core::run::Run;

use crate::builds;
use crate::figures::percent;
use crate::spending;
use crate::summary::{Summary, label, named};
use crate::text::clean;

/// Longer values (compile options) are shown once, however many arms have them.
const LONG_VALUE_LETTERS: usize = 60;

/// The words and figures of the page, explained.
pub(super) fn how_to_read(run: &Run, analysis: &Analysis, summary: &Summary) -> Markup {
    markup! {
        section aria-labelledby="heading-how" {
            h2 id="heading-how" { "How to read the figures" }
            p {
                "Arms take turns in short slices; in every round each has a fresh process. A ratio "
                "is the reference's time divided by the arm's, from slices of the same turn: above "
                "1 the arm is faster. Its interval says where the ratio of many such runs on this "
                "machine would lie, with 95% confidence."
            }
            p {
                "The noise floor is how far the reference can seem to be from itself, measured by "
                "running it twice. Faster and slower are said only if the ratio is beyond it and the "
                "whole interval beyond " (percent(run.plan.threshold)) ", the smallest difference "
                "worth having, from eight rounds at least. What stands side by side is judged "
                "together: where there are many comparisons, each needs a narrower interval (Holm's "
                "procedure). Not sure is no verdict: more rounds or a quieter machine may give one."
            }
            @for line in spending::scatter(analysis).into_iter().chain(spending::outliers(analysis)) {
                p { (line) }
            }
            @if let Some(harness) = &summary.harness { p { (harness) } }
        }
    }
}

/// Every SQLite that was measured, where some are not built in.
pub(super) fn libraries(run: &Run) -> Markup {
    let builds = builds::builds(run);
    let first = builds::first(&builds);
    markup! {
        @if !builds.is_empty() {
            section aria-labelledby="heading-libraries" {
                h2 id="heading-libraries" { (builds::TITLE) }
                div.scroll role="region" tabindex="0" aria-label=(builds::TITLE) { table {
                    thead { tr {
                        th scope="col" { "Library" }
                        th.text scope="col" { "Version" }
                        th.text scope="col" { "Compile options" }
                    } }
                    tbody { @for build in &builds { tr {
                        th scope="row" { (build.library) }
                        @match &build.said {
                            Ok(said) => {
                                td.text { (said.version) }
                                td.text { (said.words(first)) }
                            }
                            Err(reason) => { td.text colspan="2" { "not asked: " (reason) } }
                        }
                    } } }
                } }
            }
        }
    }
}

/// Every fact about the machine.
pub(super) fn environment(run: &Run) -> Markup {
    markup! {
        section aria-labelledby="heading-environment" {
            h2 id="heading-environment" { "Environment" }
            @if run.environment.is_empty() { p { "The run does not say." } }
            dl {
                @for (name, value) in run.environment.iter().filter(|(name, _)| is_about_machine(name)) {
                    dt { (clean(name)) }
                    dd { (named(value, "empty")) }
                }
            }
        }
    }
}

/// What each engine said is in force, and what it was opened with. Arms that were told the same share an
/// entry, so that a run of hundreds of cases does not repeat itself.
pub(super) fn read_back(run: &Run, analysis: &Analysis) -> Markup {
    let mut long = LongValues::default();
    let mut entries: Vec<(Entry<'_>, Vec<String>)> = Vec::new();
    let mut said: BTreeMap<&str, &BTreeMap<String, String>> = BTreeMap::new();
    for trial in run
        .trials
        .iter()
        .filter(|trial| !trial.read_back.is_empty())
    {
        said.insert(&trial.arm, &trial.read_back);
    }
    for arm in analysis.groups.iter().flat_map(|group| &group.arms) {
        let Some((_, planned)) = run
            .plan
            .arm(&arm.name)
            .filter(|(_, planned)| !planned.is_twin())
        else {
            continue;
        };
        let entry = Entry {
            engine: &planned.case.engine,
            settings: planned.case.settings.to_string(),
            durability: planned.case.durability,
            said: said.get(arm.name.as_str()).copied(),
        };
        match entries.iter_mut().find(|(known, _)| *known == entry) {
            Some((_, labels)) => labels.push(label(arm)),
            None => entries.push((entry, vec![label(arm)])),
        }
    }
    let shared = Shared::of(&entries);
    let shared_markup: Vec<Markup> = shared.0.iter().map(|(engine, pairs)| {
        markup! {
            @if !pairs.is_empty() {
                details {
                    summary { "Every arm of engine " (clean(engine)) }
                    dl { @for (name, value) in pairs { dt { (clean(name)) } dd { (long.shown(name, value)) } } }
                }
            }
        }
    }).collect();
    let entries: Vec<Markup> = entries
        .iter()
        .map(|(entry, labels)| entry.markup(labels, &shared, &mut long))
        .collect();
    markup! {
        section aria-labelledby="heading-read-back" {
            h2 id="heading-read-back" { "Settings in force" }
            p.conditions { "Asked of the live engines, not remembered." }
            @for entry in shared_markup.iter().chain(&entries) { (entry) }
            @for (index, (name, value)) in long.0.iter().enumerate() {
                details id=(LongValues::id(index)) {
                    summary { (LongValues::title(name, index)) }
                    pre { @for line in value.lines() { (clean(line)) "\n" } }
                }
            }
        }
    }
}

/// What arms were opened with and told; equal ones are shown once.
#[derive(PartialEq)]
struct Entry<'a> {
    engine: &'a str,
    settings: String,
    durability: Durability,
    said: Option<&'a BTreeMap<String, String>>,
}

/// What all arms of an engine were told alike, where there are several.
struct Shared<'a>(BTreeMap<&'a str, BTreeMap<&'a str, &'a str>>);

impl<'a> Shared<'a> {
    fn of(entries: &[(Entry<'a>, Vec<String>)]) -> Self {
        let mut shared: BTreeMap<&str, (usize, BTreeMap<&str, &str>)> = BTreeMap::new();
        for (entry, _) in entries {
            let Some(said) = entry.said else { continue };
            let pairs = said
                .iter()
                .map(|(name, value)| (name.as_str(), value.as_str()));
            match shared.get_mut(entry.engine) {
                None => {
                    shared.insert(entry.engine, (1, pairs.collect()));
                }
                Some((count, known)) => {
                    *count += 1;
                    known.retain(|name, value| said.get(*name).is_some_and(|said| said == value));
                }
            }
        }
        let several = shared.into_iter().filter(|(_, (count, _))| *count > 1);
        Self(
            several
                .map(|(engine, (_, pairs))| (engine, pairs))
                .collect(),
        )
    }

    fn has(&self, engine: &str, name: &str) -> bool {
        self.0
            .get(engine)
            .is_some_and(|pairs| pairs.contains_key(name))
    }
}

impl Entry<'_> {
    fn markup(&self, labels: &[String], shared: &Shared<'_>, long: &mut LongValues) -> Markup {
        let mut names = labels.to_vec();
        names.sort();
        names.dedup();
        markup! {
            details {
                summary { (names.join("; ")) }
                dl {
                    dt { "engine" } dd { (clean(self.engine)) }
                    dt { "opened with" } dd { (named(&self.settings, "no settings")) }
                    dt { "must survive" } dd { (self.durability) }
                    @if let Some(said) = self.said {
                        @for (name, value) in said.iter().filter(|(name, _)| !shared.has(self.engine, name)) {
                            dt { (clean(name)) } dd { (long.shown(name, value)) }
                        }
                    } @else {
                        dt { "read back" }
                        dd { "nothing: the engine was not reached, or has nothing to say" }
                    }
                }
            }
        }
    }
}

/// Values that are too long to stand in every arm's list, each once.
#[derive(Default)]
struct LongValues(Vec<(String, String)>);

impl LongValues {
    fn shown(&mut self, name: &str, value: &str) -> Markup {
        if value.chars().count() <= LONG_VALUE_LETTERS {
            return markup! { (named(value, "empty")) };
        }
        let pair = (name.to_owned(), value.to_owned());
        let index = self
            .0
            .iter()
            .position(|known| *known == pair)
            .unwrap_or_else(|| {
                self.0.push(pair);
                self.0.len() - 1
            });
        markup! { a href={ "#" (Self::id(index)) } { (Self::title(name, index)) } }
    }

    fn id(index: usize) -> String {
        format!("long-{}", index + 1)
    }

    fn title(name: &str, index: usize) -> String {
        format!("{} ({})", named(name, "value"), index + 1)
    }
}

/// The command that repeats the run, and what identifies it.
pub(super) fn reproduce(run: &Run) -> Markup {
    let head = &run.head;
    let facts = BTreeMap::from([
        ("run", head.id.clone()),
        ("started (UTC)", head.started_utc.clone()),
        ("ended (UTC)", head.finished_utc.clone().unwrap_or_default()),
        ("place", head.place.clone()),
        ("seed", run.plan.seed.to_string()),
        ("suite", run.plan.suite.clone()),
        ("scale", run.plan.scale.clone()),
        ("sqlitmus", head.sqlitmus_version.clone()),
    ]);
    markup! {
        section aria-labelledby="heading-reproduce" {
            h2 id="heading-reproduce" { "Reproduce" }
            pre { code { (named(&head.command_line, "The run does not say with which command.")) } }
            dl {
                @for (name, value) in &facts { dt { (name) } dd { (named(value, "unknown")) } }
            }
        }
    }
}
