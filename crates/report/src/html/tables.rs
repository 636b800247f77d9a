//! Tables about the whole run: the published sentences, every arm with its latencies, and the
//! trials that do not count.

use maud::{Markup, html as markup};

use sqlitmus_core::analysis::{Analysis, ArmAnalysis};
use sqlitmus_core::claims::{ClaimResult, Judgement};
use sqlitmus_core::measurements::{Cost, Measurements};
use sqlitmus_core::plan::Group;
use sqlitmus_core::run::Run;
use sqlitmus_core::suite::ClaimQuantity;
use sqlitmus_core::units::{format_count, format_ratio};

use crate::figures::{DASH, megabytes_per_second, microseconds, plus_minus, quantile, range};
use crate::proved::Proved;
use crate::summary::{LeftOut, border, judgement, label, left_out_of, named, plural, trouble};
use crate::svg::datum;
use crate::text::clean;

use super::bars::trouble_class;

/// Latency quantiles of the table of arms.
const QUANTILES: [(&str, f64); 5] = [
    ("p50", 0.5),
    ("p90", 0.9),
    ("p99", 0.99),
    ("p99.9", 0.999),
    ("max", 1.0),
];

/// The published sentences with their verdicts.
pub(super) fn claims(analysis: &Analysis) -> Markup {
    if analysis.claims.is_empty() {
        return markup! {};
    }
    markup! {
        section aria-labelledby="heading-claims" {
            h2 id="heading-claims" { "What was published, judged by this run" }
            p.conditions {
                "A sentence holds only if the whole 95% interval is where it puts the ratio."
            }
            div.scroll role="region" tabindex="0" aria-label="Published sentences" {
                table.numbers {
                    thead { tr {
                        th scope="col" class="text" { "Sentence" }
                        th scope="col" class="text" { "Verdict" }
                        th scope="col" { "Measured" }
                        th scope="col" { "95% interval" }
                        th scope="col" class="text" { "Of what" }
                    } }
                    tbody { @for claim in &analysis.claims { (claim_row(claim)) } }
                }
            }
        }
    }
}

fn claim_row(result: &ClaimResult) -> Markup {
    let (verdict, reason) = judgement(&result.judgement);
    let class = match result.judgement {
        Judgement::Holds => "good",
        Judgement::DoesNotHold => "bad",
        Judgement::NotSure => "unsure",
        Judgement::NotMeasured(_) => "none",
    };
    let quantity = match result.claim.of {
        ClaimQuantity::Time => "time",
        ClaimQuantity::Space => "space",
    };
    markup! {
        tr {
            th scope="row" {
                (named(&result.claim.sentence, "A claim without a sentence"))
                @if let Some(border) = border(&result.claim) { small { (border) } }
            }
            td.text {
                span class={ "verdict " (class) } { (verdict) }
                @if let Some(reason) = reason { small { (reason) } }
            }
            td { (result.ratio.map_or_else(|| DASH.to_owned(), format_ratio)) }
            td { (range(result.interval)) }
            td.text {
                small {
                    (quantity) " of " (clean(&result.claim.numerator))
                    " / " (clean(&result.claim.denominator))
                }
            }
        }
    }
}

/// Every case of the run, twins included, with all that is known of it.
pub(super) fn cases(run: &Run, analysis: &Analysis, is_large: bool) -> Markup {
    let settles = analysis
        .groups
        .iter()
        .flat_map(|group| &group.arms)
        .any(|arm| arm.settled_operation_ns.is_some());
    let measurements = Measurements::new(run);
    let proved = Proved::of(run);
    markup! {
        section aria-labelledby="heading-cases" {
            h2 id="heading-cases" { "All cases" }
            p.conditions {
                "Microseconds. Percentiles are of single operations, over all rounds that count. "
                "Ratios are against the baseline of the case's own group, with their 95% intervals."
                @if is_large {
                    " A page of so many cases leaves out where the time goes and the numbers behind "
                    "latency curves; " code { "sqlitmus report --format csv" } " has every sample."
                }
            }
            div.scroll role="region" tabindex="0" aria-label="All cases" {
                table.numbers.sortable.filterable id="cases" {
                    thead { tr {
                        th scope="col" class="text" { "Case" }
                        th scope="col" class="text" { "Group" }
                        th scope="col" class="text" { "Engine" }
                        th scope="col" class="text" { "Survives" }
                        th scope="col" { "µs per operation" }
                        @if settles { th scope="col" { "incl. settling" } }
                        th scope="col" { "vs baseline" }
                        th scope="col" { "MB/s" }
                        @for (name, _) in QUANTILES { th scope="col" { (name) } }
                        th scope="col" { "Operations" }
                        th scope="col" { "Rounds" }
                    } }
                    tbody {
                        @for (planned, group) in run.plan.groups.iter().zip(&analysis.groups) {
                            @for arm in &group.arms { (case_row((&measurements, &proved), planned, arm, settles)) }
                        }
                    }
                }
            }
        }
    }
}

fn case_row(
    (measurements, proved): (&Measurements<'_>, &Proved<'_>),
    group: &Group,
    arm: &ArmAnalysis,
    settles: bool,
) -> Markup {
    let planned = group.arms.iter().find(|planned| planned.name == arm.name);
    markup! {
        tr {
            th scope="row" { (label(arm)) }
            td.text { (named(&group.name, "without a name")) }
            @if let Some(planned) = planned {
                td.text { (clean(&planned.case.engine)) }
                td.text { (proved.cell(planned)) }
            } @else { td {} td {} }
            @if let Some(text) = trouble(&arm.status) {
                td class={ "text " (trouble_class(&text)) } colspan=(10 + usize::from(settles)) { (text) }
            } @else {
                td data-v=(datum(arm.operation_ns)) { (microseconds(arm.operation_ns)) }
                @if settles { td data-v=(datum(arm.settled_operation_ns)) { (microseconds(arm.settled_operation_ns)) } }
                (versus_baseline(measurements, group, arm))
                td { (megabytes_per_second(arm.bytes_per_second)) }
                @for (_, share) in QUANTILES { td { (quantile(&arm.latencies, share)) } }
                td { (format_count(arm.latencies.count())) }
                td {
                    (arm.round_values_ns.len())
                    @if !arm.left_out.is_empty() { small { (arm.left_out.len()) " left out" } }
                    @if arm.slices_left_out > 0 {
                        small { (plural(u64::from(arm.slices_left_out), "slice", "slices")) " left out" }
                    }
                }
            }
        }
    }
}

fn versus_baseline(measurements: &Measurements<'_>, group: &Group, arm: &ArmAnalysis) -> Markup {
    if group.baseline == arm.name {
        return markup! { td data-v="1" { "1" } };
    }
    let Some(estimate) = measurements.ratio(&group.baseline, &arm.name, Cost::Acknowledged) else {
        return markup! { td { (DASH) } };
    };
    let ends = estimate.interval;
    markup! {
        td data-v=(datum(Some(estimate.ratio))) data-low=[ends.map(|ends| datum(Some(ends.low)))]
            data-high=[ends.map(|ends| datum(Some(ends.high)))] {
            (format_ratio(estimate.ratio)) " " span.none { (plus_minus(ends)) }
        }
    }
}

/// Trials that were kept but do not count.
pub(super) fn left_out(run: &Run, analysis: &Analysis) -> Markup {
    let arms = analysis.groups.iter().flat_map(|group| &group.arms);
    let of_arms: Vec<(&ArmAnalysis, LeftOut)> = arms
        .flat_map(|arm| {
            left_out_of(run, &arm.name)
                .into_iter()
                .map(move |found| (arm, found))
        })
        .collect();
    if of_arms.is_empty() {
        return markup! {};
    }
    markup! {
        section aria-labelledby="heading-left-out" {
            h2 id="heading-left-out" { "Left out" }
            p.conditions {
                "Trials that failed, were skipped, or were not in the state they are labelled "
                "with; slices of other trials that were not are counted in the table above. "
                "All are in the run file."
            }
            div.scroll role="region" tabindex="0" aria-label="Trials that are left out" {
                table {
                    thead { tr {
                        th scope="col" class="text" { "Arm" }
                        th scope="col" class="text" { "Rounds" }
                        th scope="col" class="text" { "Reason" }
                    } }
                    tbody {
                        @for (arm, left_out) in &of_arms {
                            tr {
                                th scope="row" { (label(arm)) }
                                td.text { (left_out.rounds) }
                                td.text { (left_out.reason) }
                            }
                        }
                    }
                }
            }
        }
    }
}
