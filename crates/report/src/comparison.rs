//! Two runs compared, as text: [`terminal()`] for people, [`markdown()`] for comments of a CI,
//! [`json()`] for programs, and [`bencher()`] for the service that keeps figures over time.
//!
//! What is said, in which words and in which order, stands here and is the same in every format for
//! people; layout is the formats' business. What follows from the runs was decided in
//! [`sqlitmus_core::run_comparison`]. Pure, like all reports; every text is taken for hostile.

mod bencher;
mod json;
mod markdown;
mod terminal;

use sqlitmus_core::measurements::{ArmStatus, Cost};
use sqlitmus_core::run::RunState;
use sqlitmus_core::run_comparison::{
    Answer, ArmCost, Change, ComparedCase, ComparedGroup, Difference, Effect, NotJudged, Quantity,
    Regression, RunComparison, Side, Unmatched, WhyUnmatched,
};
use sqlitmus_core::units::format_ratio;
use sqlitmus_core::verdict::Verdict;

use crate::figures::{DASH, microseconds, percent, plus_minus};
use crate::summary::{named, plural, trouble};
use crate::text::clean;

pub use bencher::{bencher, without_figures};
pub use json::{FORMAT, json};
pub use markdown::{Flavour, markdown};
pub use terminal::terminal;

/// Values longer than this (options of a compilation) are shortened to what differs.
const LONG_VALUE_LETTERS: usize = 60;

/// A row of a table: one cost of one case that was judged.
struct Row<'a> {
    /// What it is called.
    label: String,
    /// Microseconds in A.
    a: String,
    /// Microseconds in B.
    b: String,
    /// B's speed as a multiple of A's, with its interval.
    change: String,
    /// In words.
    verdict: String,
    /// The judgement itself.
    judged: &'a Change,
}

/// A table: a group with its rows.
struct Table<'a> {
    /// Name of the group.
    group: String,
    /// What is to be known about it.
    notes: Vec<String>,
    /// Its rows.
    rows: Vec<Row<'a>>,
}

/// `A` and `B` with what identifies them.
fn side_words(name: &str, side: &Side) -> String {
    format!(
        "{name}: {} | suite {} | scale {} | {} | sqlitmus {}",
        named(&side.head.id, "without identity"),
        named(&side.suite, "without a name"),
        named(&side.scale, "without a name"),
        named(&side.head.started_utc, "at an unknown time"),
        named(&side.head.sqlitmus_version, "of unknown version"),
    )
}

/// What was compared, and how.
fn method_words(comparison: &RunComparison) -> String {
    let options = &comparison.options;
    let of = match options.of {
        Quantity::Time => "times",
        Quantity::Ratio => "ratios to the baseline of the same run",
    };
    let judged = plural(comparison.judged() as u64, "comparison", "comparisons");
    format!(
        "{of} | threshold {} | {} confidence, corrected for {judged} at once",
        percent(options.threshold),
        percent(options.confidence),
    )
}

/// What a reader must know before believing a figure: whole sentences.
fn warnings(comparison: &RunComparison) -> Vec<String> {
    let mut warnings = Vec::new();
    for (name, side) in [("A", &comparison.a), ("B", &comparison.b)] {
        match side.head.state {
            RunState::Complete => {}
            RunState::Interrupted => {
                warnings.push(format!("{name} was interrupted before its end."));
            }
            RunState::Started => {
                warnings.push(format!("{name} was killed, or is still being measured."));
            }
        }
    }
    let forbidding = comparison.forbidding().count() as u64;
    if forbidding > 0 {
        let (differences, forbid) = match forbidding {
            1 => ("difference", "forbids"),
            _ => ("differences", "forbid"),
        };
        warnings.push(format!(
            "Forced: {forbidding} {differences} between the conditions of A and B {forbid} this \
             comparison, and every verdict may be theirs."
        ));
    }
    for name in &comparison.not_different {
        warnings.push(format!(
            "{} was expected to differ and does not: are these the right runs?",
            clean(name)
        ));
    }
    warnings
}

/// A difference between the conditions, in one line: `cpu_model: X in A, Y in B (why it matters)`.
#[must_use]
pub fn difference_words(difference: &Difference) -> String {
    let (a, b) = shortened(difference);
    let mut words = format!("{}: {a} in A, {b} in B", clean(&difference.name));
    if !difference.arms.is_empty() {
        let arms = plural(difference.arms.len() as u64, "arm", "arms");
        words.push_str(&format!(", of {arms}"));
    }
    if difference.effect == Effect::Expected {
        words.push_str(" (expected)");
    } else if !difference.why.is_empty() {
        words.push_str(&format!(" ({})", clean(&difference.why)));
    }
    words
}

/// The two texts of a difference; of long lists of words only those that the other lacks.
fn shortened(difference: &Difference) -> (String, String) {
    let text = |value: &Option<String>| named(value.as_deref().unwrap_or(""), "not known");
    let (a, b) = (text(&difference.a), text(&difference.b));
    if a.chars().count().max(b.chars().count()) <= LONG_VALUE_LETTERS {
        return (a, b);
    }
    let without = |own: &str, other: &str| {
        let others: Vec<&str> = other.split([' ', ',']).collect();
        let words = own.split([' ', ',']).filter(|word| !others.contains(word));
        named(&words.collect::<Vec<_>>().join(" "), "nothing else")
    };
    (without(&a, &b), without(&b, &a))
}

fn tables(comparison: &RunComparison) -> Vec<Table<'_>> {
    let mut tables: Vec<Table<'_>> = Vec::new();
    for group in &comparison.groups {
        tables.push(Table {
            group: named(&group.name, "(without a name)"),
            notes: group_notes(group, comparison.options.of),
            rows: Vec::new(),
        });
    }
    for case in &comparison.cases {
        let Ok(change) = &case.change else { continue };
        let group = named(&case.group, "(without a name)");
        let row = row(case, change);
        match tables.iter_mut().find(|table| table.group == group) {
            Some(table) => table.rows.push(row),
            None => tables.push(Table {
                group,
                notes: Vec::new(),
                rows: vec![row],
            }),
        }
    }
    tables
}

/// Baseline, noise and effort of a group.
fn group_notes(group: &ComparedGroup, of: Quantity) -> Vec<String> {
    let noise = |floor: Option<f64>| floor.map_or_else(|| "unknown".to_owned(), percent);
    let rounds = |measured: usize, planned: u32| {
        if measured < planned as usize {
            format!("{measured} of {planned}")
        } else {
            measured.to_string()
        }
    };
    let baseline = match group.baseline_change {
        Some((ratio, interval)) => format!(
            "{} times as fast in B as in A ({})",
            format_ratio(ratio),
            plus_minus(interval)
        ),
        None => "not the same case in both, or without figures".to_owned(),
    };
    let judged = match of {
        Quantity::Ratio => "; not judged: it tells how the machine has moved",
        Quantity::Time => "",
    };
    vec![
        format!(
            "baseline {}: {baseline}{judged}",
            named(&group.baseline, "(without a name)")
        ),
        format!(
            "rounds {} and {}, noise floor {} and {}",
            rounds(group.measured.0, group.planned.0),
            rounds(group.measured.1, group.planned.1),
            noise(group.noise_floors.0),
            noise(group.noise_floors.1)
        ),
    ]
}

/// What a cost of a case is called.
fn case_label(case: &ComparedCase) -> String {
    let mut label = named(&case.label, &named(&case.name, "(without a name)"));
    if case.cost == Cost::Settled {
        label.push_str(", with settling");
    }
    if case.name_a != case.name {
        label.push_str(&format!(" (in A: {})", clean(&case.name_a)));
    }
    label
}

fn row<'a>(case: &ComparedCase, change: &'a Change) -> Row<'a> {
    let cost = |cost: &Option<ArmCost>| {
        cost.map_or_else(
            || DASH.to_owned(),
            |cost| microseconds(Some(cost.operation_ns)),
        )
    };
    let mut verdict = verdict_words(change);
    let (a, b) = case.trials_left_out;
    if a + b > 0 {
        verdict.push_str(&format!(" ({a} and {b} trials left out)"));
    }
    Row {
        label: case_label(case),
        a: cost(&case.a),
        b: cost(&case.b),
        change: format!(
            "{} {}",
            format_ratio(change.ratio),
            plus_minus(change.interval)
        ),
        verdict,
        judged: change,
    }
}

fn verdict_words(change: &Change) -> String {
    match (change.verdict, change.regression) {
        (Verdict::Faster, _) => "faster".to_owned(),
        (Verdict::Slower, _) => "slower".to_owned(),
        (Verdict::NoDifferenceWorthHaving, _) => "no difference worth having".to_owned(),
        (Verdict::NotSureYet, Regression::Excluded) => "not slower; not sure if faster".to_owned(),
        (Verdict::NotSureYet, _) if change.interval.is_none() => "not sure: one round".to_owned(),
        (Verdict::NotSureYet, _) => match change.noise_floor {
            None => "not sure: noise unknown".to_owned(),
            Some(_) => "not sure yet".to_owned(),
        },
    }
}

/// Cases that are in both runs and were not judged, but for baselines, each with its reason.
fn not_judged(comparison: &RunComparison) -> Vec<String> {
    let cases = comparison.cases.iter().filter_map(|case| {
        let reason = match case.change.as_ref().err()? {
            NotJudged::IsBaseline => return None,
            NotJudged::NoFigures { a, b } => no_figures(a, b),
            NotJudged::OtherBaseline { a, b } => format!(
                "its baseline is {} in A and {} in B; --of time compares times",
                clean(a),
                clean(b)
            ),
            NotJudged::NoRatio => {
                "the baseline has no figures beside it; --of time compares times".to_owned()
            }
            NotJudged::BadSamples => "its samples cannot be times".to_owned(),
        };
        Some(format!("{}: {reason}", case_label(case)))
    });
    cases.collect()
}

fn no_figures(a: &ArmStatus, b: &ArmStatus) -> String {
    let words = |name: &str, status: &ArmStatus| {
        trouble(status).map(|words| format!("{words} (in {name})"))
    };
    let words: Vec<String> = [words("A", a), words("B", b)]
        .into_iter()
        .flatten()
        .collect();
    words.join("; ")
}

/// Cases of one run alone, each with the reason.
fn unmatched_words(cases: &[Unmatched]) -> Vec<String> {
    let words = cases.iter().map(|case| {
        let label = named(&case.label, &named(&case.name, "(without a name)"));
        match &case.why {
            WhyUnmatched::Absent => label,
            WhyUnmatched::Ambiguous => {
                format!("{label}: several arms are this case, and names do not tell which is which")
            }
            WhyUnmatched::OtherCase(parts) => {
                let parts = parts.iter().map(|part| {
                    let there = named(&part.there, "none");
                    format!(
                        "{} {} here, {there} there",
                        part.part,
                        named(&part.here, "none")
                    )
                });
                let parts = parts.collect::<Vec<_>>().join("; ");
                format!("{label}: another case of this name in the other run ({parts})")
            }
        }
    });
    words.collect()
}

/// The answer as one word for programs.
fn answer_word(answer: Answer) -> &'static str {
    match answer {
        Answer::NoRegression => "no-regression",
        Answer::Regression => "regression",
        Answer::NotSure => "not-sure",
    }
}

/// The answer in one sentence.
fn answer_words(comparison: &RunComparison) -> String {
    let judged = comparison.judged();
    let threshold = percent(comparison.options.threshold);
    let slower = comparison.count(Verdict::Slower);
    let compared = plural(judged as u64, "comparison", "comparisons");
    match comparison.answer() {
        Answer::Regression => {
            let are = if slower == 1 { "is" } else { "are" };
            format!(
                "Regression: {slower} of {compared} {are} slower in B by more than {threshold}."
            )
        }
        Answer::NoRegression => {
            format!(
                "No regression: nothing is slower in B by more than {threshold}, in {compared}."
            )
        }
        Answer::NotSure if judged == 0 => "Not sure: nothing could be compared.".to_owned(),
        Answer::NotSure => {
            let is_question = |case: &&ComparedCase| case.change != Err(NotJudged::IsBaseline);
            let questions = || comparison.cases.iter().filter(is_question);
            let open = questions().filter(|case| case.is_open()).count();
            let mut what = Vec::new();
            if open > 0 {
                let decided = if open == 1 { "is" } else { "are" };
                what.push(format!(
                    "{open} of {} {decided} not decided",
                    questions().count()
                ));
            }
            if !comparison.only_a.is_empty() {
                let cases = plural(comparison.only_a.len() as u64, "case", "cases");
                what.push(format!("{cases} of A cannot be found in B"));
            }
            format!(
                "Not sure: no regression was found, but {}.",
                what.join(", and ")
            )
        }
    }
}

/// What to do where something is not decided; `None` if nothing would help.
fn advice(comparison: &RunComparison) -> Option<String> {
    let changes = || {
        comparison
            .cases
            .iter()
            .filter_map(|case| case.change.as_ref().ok())
    };
    let open = || changes().filter(|change| change.regression == Regression::Open);
    open().next()?;
    let threshold = comparison.options.threshold;
    let is_loud = |change: &Change| change.noise_floor.is_some_and(|floor| floor > threshold);
    Some(if open().any(is_loud) {
        "Where the noise floor is above the threshold nothing can be excluded: measure on a quieter \
         machine, with more rounds, or take a larger --threshold."
            .to_owned()
    } else {
        "More rounds narrow the intervals: sqlitmus measure --rounds N, for both runs.".to_owned()
    })
}
