//! Tables about the whole run: the published sentences, every arm with its latencies, and the
//! trials that do not count.

use maud::{Markup, html as markup};

use sqlitmus_core::analysis::{Analysis, ArmAnalysis};
use sqlitmus_core::claims::{ClaimResult, Judgement};
use sqlitmus_core::run::Run;
use sqlitmus_core::suite::ClaimQuantity;
use sqlitmus_core::units::{format_count, format_ratio};

use crate::figures::{DASH, megabytes_per_second, microseconds, quantile, range};
use crate::summary::{
    LeftOut, border, judgement, label, left_out_of, named, plural, trouble, workload_words,
};
use crate::text::clean;

use super::charts::trouble_class;

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

/// Every arm of the run, twins included, with its latencies.
pub(super) fn arms(run: &Run, analysis: &Analysis) -> Markup {
    markup! {
        section aria-labelledby="heading-arms" {
            h2 id="heading-arms" { "Every arm" }
            p.conditions {
                "Microseconds. Percentiles are of single operations, over all rounds. The line "
                "shows the rounds in order, from 20% below to 20% above their median."
            }
            @for group in &analysis.groups {
                @let planned = run.plan.groups.iter().find(|planned| planned.name == group.name);
                @let settles = group.arms.iter().any(|arm| arm.settled_operation_ns.is_some());
                h3 { "Group " (named(&group.name, "without a name")) }
                @if let Some(arm) = planned.and_then(|planned| planned.arms.first()) {
                    p.conditions {
                        (workload_words(&arm.case.workload)) ", " (arm.case.cache) " cache"
                    }
                }
                @let name = named(&group.name, "without a name");
                div.scroll role="region" tabindex="0" aria-label={ "Arms of group " (name) } {
                    table.numbers {
                        thead { tr {
                            th scope="col" class="text" { "Arm" }
                            th scope="col" { "Rounds" }
                            th scope="col" { "µs per blob" }
                            @if settles { th scope="col" { "incl. settling" } }
                            th scope="col" { "MB/s" }
                            @for (name, _) in QUANTILES { th scope="col" { (name) } }
                            th scope="col" { "Operations" }
                            th scope="col" { "Round by round" }
                        } }
                        tbody { @for arm in &group.arms { (arm_row(arm, settles)) } }
                    }
                }
            }
        }
    }
}

fn arm_row(arm: &ArmAnalysis, settles: bool) -> Markup {
    markup! {
            tr {
                th scope="row" { (label(arm)) small { code { (clean(&arm.name)) } } }
                @if let Some(text) = trouble(&arm.status) {
                    td class={ "text " (trouble_class(&text)) } colspan=(10 + usize::from(settles)) { (text) }
                } @else {
                    td {
                        (arm.round_values_ns.len())
    @if !arm.left_out.is_empty() { small { (arm.left_out.len()) " left out" } }
                        @if arm.slices_left_out > 0 {
                            @let slices = plural(u64::from(arm.slices_left_out), "slice", "slices");
                        small { (slices) " left out" }
                        }
                    }
                    td { (microseconds(arm.operation_ns)) }
                    @if settles { td { (microseconds(arm.settled_operation_ns)) } }
                    td { (megabytes_per_second(arm.bytes_per_second)) }
                    @for (_, share) in QUANTILES { td { (quantile(&arm.latencies, share)) } }
                    td { (format_count(arm.latencies.count())) }
                    td { (spark(arm)) }
                }
            }
        }
}

/// The values of the rounds as a line.
fn spark(arm: &ArmAnalysis) -> Markup {
    const WIDTH: f64 = 90.0;
    const HEIGHT: f64 = 18.0;
    const REACH: f64 = 0.2;
    let median = arm.operation_ns.filter(|ns| ns.is_finite() && *ns > 0.0);
    let (Some(median), true) = (median, arm.round_values_ns.len() > 1) else {
        return markup! { (DASH) };
    };
    let step = WIDTH / (arm.round_values_ns.len() - 1) as f64;
    let points = arm
        .round_values_ns
        .iter()
        .enumerate()
        .map(|(index, value)| {
            let share = ((value / median - 1.0) / REACH).clamp(-1.0, 1.0);
            let share = if share.is_finite() { share } else { 1.0 };
            format!(
                "{:.1},{:.1}",
                step * index as f64,
                HEIGHT / 2.0 * (1.0 - share)
            )
        });
    let points: Vec<String> = points.collect();
    let values: Vec<String> = arm
        .round_values_ns
        .iter()
        .map(|value| microseconds(Some(*value)))
        .collect();
    markup! {
        svg role="img" width="90" height="18" viewBox="0 -1 90 20" {
            title { "Rounds: " (values.join(", ")) }
            line.grid x1="0" x2="90" y1="9" y2="9" {}
            polyline.spark points=(points.join(" ")) {}
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
