//! The truth table for programs: `"format": 1`, then `kind` ("durability"), `run`, `trustworthy`, and
//! `rows`, each with what was counted. Within a format fields are only ever added.

use serde_json::{Value, json as object};
use sqlitmus_core::durability::{Claim, DurabilityRun, Row, Table, Tally};

/// Renders the table as one JSON object, with a line break at its end.
#[must_use]
pub fn json(run: &DurabilityRun, table: &Table<'_>) -> String {
    let rows: Vec<Value> = table.rows.iter().map(row).collect();
    let environment: Vec<Value> = run
        .environment
        .iter()
        .map(|(name, value)| object!({"name": name, "value": value}))
        .collect();
    let value = object!({
        "format": 1,
        "kind": "durability",
        "run": run.head,
        "plan": run.plan,
        "trustworthy": table.is_trustworthy(),
        "rows": rows,
        "mount_options": run.mount_options,
        "environment": environment,
    });
    format!("{value:#}\n")
}

fn row(row: &Row<'_>) -> Value {
    let claim = match row.claim {
        Claim::Holds => "holds",
        Claim::Lost(_) => "lost",
        Claim::NotIntact(_) => "not-intact",
        Claim::Exceeded => "exceeded",
        Claim::Untested => "untested",
        Claim::Caught => "caught",
        Claim::NotCaught => "not-caught",
    };
    let next = row.next.as_ref().map(|next| {
        object!({
            "tier": next.tier,
            "configuration": next.configuration,
            "slowdown": next.slowdown,
        })
    });
    object!({
        "filesystem": row.filesystem,
        "configuration": row.configuration.name,
        "claimed": row.configuration.claimed,
        "observed": row.observed,
        "claim": claim,
        "process_killed": tally(&row.process),
        "power_gone": tally(&row.power),
        "commits_per_second": row.commits_per_second,
        "next_tier": next,
    })
}

fn tally(tally: &Tally) -> Value {
    let [torn, empty, missing, unreadable] = tally.kinds;
    object!({
        "cuts": tally.cuts,
        "failed": tally.failed,
        "acknowledged_commits": tally.acknowledged_commits,
        "cuts_that_lost": tally.lost,
        "lost_share_at_most": tally.lost_share_at_most(),
        "lost_share_at_least": tally.lost_share_at_least(),
        "worst_lost_commits": tally.worst_lost_commits,
        "worst_lost_age_ns": tally.worst_lost_age_ns,
        "worst_recover_ns": tally.worst_recover_ns,
        "unopened": tally.unopened,
        "inconsistent": tally.inconsistent,
        "torn": torn,
        "empty": empty,
        "missing": missing,
        "unreadable": unreadable,
        "half_applied": tally.half_applied,
        "destroyed_in_flight": tally.destroyed,
        "strays": tally.strays,
        "example": tally.example,
    })
}
