//! What a sceptic asks first, answered from the run: against which way of reading files, whose SQLite, which
//! disk, was it in memory, what is left for later, and is it more than noise.

use maud::{Markup, html as markup};

use sqlitmus_core::analysis::{Analysis, ChartAnalysis};
use sqlitmus_core::case::CacheState;
use sqlitmus_core::run::{Outcome, Run, Sample};
use sqlitmus_core::units::{format_count, format_ratio};

use crate::figures::{judged, percent};
use crate::summary::{Summary, label, named, plural, stayed_warm};
use crate::views::is_strong;

/// The questions that this run has an answer to.
pub(super) fn section(run: &Run, analysis: &Analysis, summary: &Summary) -> Markup {
    let answers = [
        ("Is it more than noise?", noise(analysis)),
        (
            "Against the best rival, not only the usual one?",
            references(run, analysis),
        ),
        ("Whose SQLite is it?", builds(run, analysis)),
        ("Was everything in memory?", memory(run, analysis)),
        ("What do writes leave for later?", settling(run, analysis)),
        ("What does measuring itself cost?", summary.harness.clone()),
    ];
    let answers: Vec<(&str, String)> = answers
        .into_iter()
        .filter_map(|(question, answer)| Some((question, answer?)))
        .collect();
    if answers.is_empty() {
        return markup! {};
    }
    markup! {
        section aria-labelledby="heading-sceptic" {
            h2 id="heading-sceptic" { "What a sceptic asks first" }
            dl.sceptic {
                @for (question, answer) in &answers { div { dt { (question) } dd { (answer) } } }
            }
        }
    }
}

fn noise(analysis: &Analysis) -> Option<String> {
    let floors = analysis.groups.iter().filter_map(|group| group.noise_floor);
    let mut floors: Vec<f64> = floors.filter(|floor| floor.is_finite()).collect();
    floors.sort_by(f64::total_cmp);
    let (low, high) = (percent(*floors.first()?), percent(*floors.last()?));
    let range = if low == high {
        low
    } else {
        format!("{low} to {high}")
    };
    Some(format!(
        "Each group's baseline was measured twice, against itself. It seemed to differ by up to {range} \
         (the noise floor, by group), and no verdict is given inside that."
    ))
}

/// The chart's strongest statement against each of its references.
fn references(run: &Run, analysis: &Analysis) -> Option<String> {
    let chart = analysis
        .charts
        .iter()
        .find(|chart| chart.chart.versus.len() > 1)?;
    let row = chart
        .rows
        .iter()
        .find(|row| is_strong(run, &row.arm.name))?;
    let versus = chart.chart.versus.iter().zip(&row.versus);
    let ratios = versus.filter_map(|(versus, compared)| {
        let compared = compared.as_ref()?;
        let ratio = judged(&compared.estimate, compared.verdict);
        Some(format!(
            "{ratio} times as fast as {}",
            named(&versus.label, "an arm without a name")
        ))
    });
    let ratios: Vec<String> = ratios.collect();
    (ratios.len() > 1).then(|| format!("{}: {}.", label(&row.arm), ratios.join(", ")))
}

/// Ratios between arms that differ only in the library.
fn builds(run: &Run, analysis: &Analysis) -> Option<String> {
    let chart: &ChartAnalysis = analysis.charts.first()?;
    let case = |name: &str| run.plan.arm(name).map(|(_, arm)| &arm.case);
    let without_library = |name: &str| {
        let case = case(name)?;
        let rest = case.settings.iter().filter(|(name, _)| *name != "library");
        let rest: Vec<String> = rest
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        (case.engine == "sqlite").then_some(rest)
    };
    let ours = chart.rows.iter().find(|row| {
        case(&row.arm.name).is_some_and(|case| case.settings.get("library") == Some("bundled"))
    })?;
    let ours_ns = ours.arm.operation_ns.filter(|ns| *ns > 0.0)?;
    let others = chart.rows.iter().filter(|row| {
        row.arm.name != ours.arm.name
            && without_library(&row.arm.name) == without_library(&ours.arm.name)
    });
    let others: Vec<String> = others
        .filter_map(|row| {
            let ns = row.arm.operation_ns?;
            let library = case(&row.arm.name)?.settings.get("library")?;
            Some(format!(
                "{} times as long with the {} library",
                format_ratio(ns / ours_ns),
                named(library, "other")
            ))
        })
        .collect();
    (!others.is_empty()).then(|| {
        format!(
            "The same queries take {}, compared with the recommended options of {}.",
            others.join(" and "),
            label(&ours.arm)
        )
    })
}

fn memory(run: &Run, analysis: &Analysis) -> Option<String> {
    let warm = |cache: CacheState| cache == CacheState::Warm;
    if !stayed_warm(run) || !run.plan.arms().all(|(_, arm)| warm(arm.case.cache)) {
        return None;
    }
    let arms = analysis.groups.iter().flat_map(|group| &group.arms);
    let slices: u64 = arms.map(|arm| u64::from(arm.slices_left_out)).sum();
    let all: usize = run.trials.iter().map(|trial| trial.samples.len()).sum();
    let valid = run
        .trials
        .iter()
        .filter(|trial| trial.outcome == Outcome::Valid);
    let tolerated = valid
        .flat_map(|trial| &trial.samples)
        .filter_map(Sample::tolerated_share)
        .count();
    Some(format!(
        "Every slice says what the kernel had to read from a device for it. Of {} slices {} did not \
         stay in memory: kept, not counted.{}",
        format_count(all as u64),
        if slices == 0 {
            "none".to_owned()
        } else {
            format_count(slices)
        },
        match tolerated {
            0 => String::new(),
            some => format!(
                " {} counted though something was read, since that took less than a hundredth of the time.",
                format_count(some as u64)
            ),
        },
    ))
}

fn settling(run: &Run, analysis: &Analysis) -> Option<String> {
    let arms = || {
        let arms = analysis.groups.iter().flat_map(|group| &group.arms);
        arms.filter(|arm| is_strong(run, &arm.name))
    };
    let arm = arms().find(|arm| arm.settled_operation_ns.is_some())?;
    let share = arm.settled_operation_ns? / arm.operation_ns.filter(|ns| *ns > 0.0)?;
    let slices = plural(
        u64::from(run.plan.arm(&arm.name)?.0.slices),
        "batch",
        "batches",
    );
    share.is_finite().then(|| {
        format!(
            "Both times are shown: until a commit is acknowledged, and until all it left for later \
             (checkpoint, writing back) is done. {}: {} times as long with what is left, after each of {slices}.",
            label(arm),
            format_ratio(share)
        )
    })
}
