//! What commits of a run's arms survive: claimed by the engine, and proved by the durability experiment,
//! if the run holds proofs. The same words in every format; what a proof means for a claim is decided in
//! [`sqlitmus_core::durability::proof`].

use std::collections::BTreeMap;

use maud::{Markup, html as markup};
use serde_json::{Value, json};
use sqlitmus_core::analysis::Analysis;
use sqlitmus_core::case::Durability;
use sqlitmus_core::durability::{Cuts, Proof, Standing, proofs, standing};
use sqlitmus_core::plan::Arm;
use sqlitmus_core::run::Run;

use crate::figures::{DASH, percent};
use crate::json::rounded;
use crate::summary::label_of;
use crate::text::clean;

/// Stands where nothing was proved of any arm.
pub(crate) const NOTHING_PROVED: &str = "What commits survive is claimed by the engines and was not put to the test here: \
     `sqlitmus durability` does that, and later runs in the same place say what it proved.";

/// What is known of the arms of a run.
pub(crate) struct Proved<'a> {
    run: &'a Run,
    proofs: BTreeMap<&'a str, Proof>,
}

/// A claimed tier, and what is known of it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Tier {
    /// `power-loss, kept in 20 of 20 cuts`.
    pub(crate) text: String,
    /// `power 20/20`.
    pub(crate) short: String,
    /// How the claim stands.
    pub(crate) standing: Standing,
}

/// Arms whose tier is the same in words.
pub(crate) struct Line {
    /// The words, and what the arms are called.
    pub(crate) text: String,
    /// Whether a claim is broken.
    pub(crate) is_broken: bool,
}

impl<'a> Proved<'a> {
    /// Of a run.
    pub(crate) fn of(run: &'a Run) -> Self {
        Self {
            run,
            proofs: proofs(&run.environment),
        }
    }

    /// What is proved of an arm.
    fn proof(&self, arm: &Arm) -> Option<&Proof> {
        self.proofs.get(arm.name.as_str())
    }

    /// The tier of an arm; `None` if it writes nothing.
    pub(crate) fn tier(&self, arm: &Arm) -> Option<Tier> {
        let claimed = arm.case.durability;
        arm.case
            .workload
            .writes()
            .then(|| tier(claimed, standing(claimed, self.proof(arm))))
    }

    /// Arms that write and claim something, without repetitions of the baseline.
    fn claiming(&self) -> impl Iterator<Item = &'a Arm> {
        let arms = self.run.plan.groups.iter().flat_map(|group| &group.arms);
        arms.filter(|arm| {
            arm.case.workload.writes() && arm.case.durability > Durability::None && !arm.is_twin()
        })
    }

    /// All arms that claim something, those with the same tier on one line; and where that comes from.
    pub(crate) fn lines(&self) -> Vec<Line> {
        let plain = |text: String| Line {
            text,
            is_broken: false,
        };
        if self.claiming().next().is_none() {
            return Vec::new();
        }
        let Some(source) = self.source() else {
            return vec![plain(NOTHING_PROVED.to_owned())];
        };
        let mut found: Vec<(Tier, Vec<String>)> = Vec::new();
        for arm in self.claiming() {
            let Some(tier) = self.tier(arm) else { continue };
            let label = label_of(self.run, &arm.name);
            match found.iter_mut().find(|(known, _)| *known == tier) {
                Some((_, labels)) if labels.contains(&label) => {}
                Some((_, labels)) => labels.push(label),
                None => found.push((tier, vec![label])),
            }
        }
        let line = |(tier, labels): (Tier, Vec<String>)| Line {
            text: format!("{}: {}", tier.text, labels.join("; ")),
            is_broken: matches!(tier.standing, Standing::Broken(..)),
        };
        let mut lines: Vec<Line> = found.into_iter().map(line).collect();
        lines.push(plain(source));
        lines
    }

    /// Which runs of the experiment say so.
    fn source(&self) -> Option<String> {
        let mut files: Vec<String> = Vec::new();
        for arm in self.claiming() {
            let Some(proof) = self.proof(arm) else {
                continue;
            };
            let file = format!("{} ({})", clean(&proof.file), clean(&proof.filesystem));
            if !files.contains(&file) {
                files.push(file);
            }
        }
        (!files.is_empty()).then(|| {
            format!(
                "Cuts are those of `sqlitmus durability` in {}; `sqlitmus report` shows its whole table. \
                 Kept in 20 of 20 means that with 95% confidence fewer than {} would be lost.",
                files.join(", "),
                percent(TWENTY.broken_share_at_most()),
            )
        })
    }

    /// The section of the page, with the identity `proved`, which tiers link to.
    pub(crate) fn section(&self, analysis: &Analysis) -> Markup {
        if self.claiming().next().is_none() || analysis.groups.is_empty() {
            return markup! {};
        }
        markup! {
            section aria-labelledby="heading-proved" id="proved" {
                h2 id="heading-proved" { "What commits survive" }
                @match self.source() {
                    None => { p.conditions { (NOTHING_PROVED) } },
                    Some(source) => {
                        p.conditions { (source) }
                        (self.table())
                    }
                }
            }
        }
    }

    fn table(&self) -> Markup {
        markup! {
            div.scroll role="region" tabindex="0" aria-label="What commits survive" {
                table.numbers {
                    thead { tr {
                        th scope="col" class="text" { "Case" }
                        th scope="col" class="text" { "Survives" }
                        th scope="col" { "Killed: broken" }
                        th scope="col" { "No power: broken" }
                        th scope="col" class="text" { "Cut off as" }
                    } }
                    tbody { @for arm in self.claiming() { (self.row(arm)) } }
                }
            }
        }
    }

    fn row(&self, arm: &Arm) -> Markup {
        let proof = self.proof(arm);
        let broken = |cuts: Option<Cuts>| match cuts {
            Some(cuts) if cuts.made > 0 => format!(
                "{} of {} (≤{})",
                cuts.broken,
                cuts.made,
                percent(cuts.broken_share_at_most())
            ),
            _ => DASH.to_owned(),
        };
        markup! {
            tr {
                th scope="row" { (label_of(self.run, &arm.name)) }
                td.text { @if let Some(tier) = self.tier(arm) { (shown(&tier)) } }
                td { (broken(proof.map(|proof| proof.process))) }
                td { (broken(proof.map(|proof| proof.power))) }
                td.text {
                    @if let Some(proof) = proof {
                        (clean(&proof.configuration)) " on " (clean(&proof.filesystem))
                        small {
                            "run " (clean(&proof.run))
                            @if let Some(kind) = proof.power_kind { ", power by " (kind) }
                        }
                    } @else { (DASH) }
                }
            }
        }
    }

    /// What a cell of the page says about an arm's tier, linked to the table.
    pub(crate) fn cell(&self, arm: &Arm) -> Markup {
        match self.tier(arm) {
            None => markup! { (arm.case.durability) },
            Some(tier) if tier.standing == Standing::Nothing => shown(&tier),
            Some(tier) => markup! { a href="#proved" { (shown(&tier)) } },
        }
    }

    /// The same for programs; null for arms that write nothing.
    pub(crate) fn json(&self, arm: &Arm) -> Value {
        if !arm.case.workload.writes() {
            return Value::Null;
        }
        let proof = self.proof(arm);
        let claim = claim_word(standing(arm.case.durability, proof));
        let cuts = |cuts: Cuts| {
            json!({
                "cuts": cuts.made,
                "broken": cuts.broken,
                "broken_share_at_most": rounded(Some(cuts.broken_share_at_most())),
            })
        };
        json!({
            "claim": claim,
            "observed": proof.map(|proof| proof.observed),
            "process_killed": proof.map(|proof| cuts(proof.process)),
            "power_gone": proof.map(|proof| cuts(proof.power)),
            "power_kind": proof.and_then(|proof| proof.power_kind),
            "configuration": proof.map(|proof| &proof.configuration),
            "filesystem": proof.map(|proof| &proof.filesystem),
            "run": proof.map(|proof| &proof.run),
        })
    }
}

impl Proved<'_> {
    /// The same for a line of figures: the word of a claim, how many processes were killed and after how many of
    /// these something was lost or damaged, and the same for losses of power. Empty for arms that write nothing,
    /// counts also for those that were not put to the test.
    pub(crate) fn csv_cells(&self, arm: &Arm) -> [String; 5] {
        if !arm.case.workload.writes() {
            return Default::default();
        }
        let proof = self.proof(arm);
        let claim = claim_word(standing(arm.case.durability, proof)).to_owned();
        let counts = |cuts: Option<Cuts>| {
            cuts.map_or_else(Default::default, |cuts| {
                [cuts.made.to_string(), cuts.broken.to_string()]
            })
        };
        let [kills, kills_broken] = counts(proof.map(|proof| proof.process));
        let [losses, losses_broken] = counts(proof.map(|proof| proof.power));
        [claim, kills, kills_broken, losses, losses_broken]
    }
}

/// How a claim stands, in a word for programs.
fn claim_word(standing: Standing) -> &'static str {
    match standing {
        Standing::Nothing => "nothing-claimed",
        Standing::Kept(_) => "kept",
        Standing::Broken(..) => "broken",
        Standing::ClaimedOnly => "claimed-only",
    }
}

/// What the legend's example is about.
const TWENTY: Cuts = Cuts {
    made: 20,
    broken: 0,
};

/// The words of a tier, in the colour of its standing.
pub(crate) fn shown(tier: &Tier) -> Markup {
    let class = match tier.standing {
        Standing::Nothing => "none",
        Standing::Kept(_) => "good",
        Standing::Broken(..) => "bad",
        Standing::ClaimedOnly => "unsure",
    };
    markup! { span class=(class) { (tier.text) } }
}

/// What is claimed of a write, in a word.
pub(crate) fn claimed_in_short(claimed: Durability) -> &'static str {
    match claimed {
        Durability::None => "nothing",
        Durability::ProcessCrash => "crash",
        Durability::PowerLoss => "power",
    }
}

fn tier(claimed: Durability, standing: Standing) -> Tier {
    let event = |tier: Durability| match tier {
        Durability::PowerLoss => "cuts",
        _ => "kills",
    };
    let short = claimed_in_short(claimed);
    let (text, short) = match standing {
        Standing::Nothing => (claimed.to_string(), short.to_owned()),
        Standing::ClaimedOnly => (format!("{claimed}, claimed only"), short.to_owned()),
        Standing::Kept(cuts) => {
            let (kept, made) = (cuts.kept(), cuts.made);
            (
                format!("{claimed}, kept in {kept} of {made} {}", event(claimed)),
                format!("{short} {kept}/{made}"),
            )
        }
        Standing::Broken(tier, cuts) => {
            let (broken, made) = (cuts.broken, cuts.made);
            (
                format!("{claimed}, NOT KEPT in {broken} of {made} {}", event(tier)),
                format!("{short}, NOT KEPT"),
            )
        }
    };
    Tier {
        text,
        short,
        standing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tier_says_what_is_claimed_and_what_is_known_of_it() {
        let cuts = |made, broken| Cuts { made, broken };
        let cases = [
            (
                Durability::PowerLoss,
                Standing::Kept(cuts(20, 0)),
                "power-loss, kept in 20 of 20 cuts",
                "power 20/20",
            ),
            (
                Durability::ProcessCrash,
                Standing::Kept(cuts(3, 0)),
                "process-crash, kept in 3 of 3 kills",
                "crash 3/3",
            ),
            (
                Durability::PowerLoss,
                Standing::Broken(Durability::PowerLoss, cuts(20, 13)),
                "power-loss, NOT KEPT in 13 of 20 cuts",
                "power, NOT KEPT",
            ),
            (
                Durability::PowerLoss,
                Standing::Broken(Durability::ProcessCrash, cuts(20, 1)),
                "power-loss, NOT KEPT in 1 of 20 kills",
                "power, NOT KEPT",
            ),
            (
                Durability::PowerLoss,
                Standing::ClaimedOnly,
                "power-loss, claimed only",
                "power",
            ),
            (Durability::None, Standing::Nothing, "none", "nothing"),
        ];
        for (claimed, standing, text, short) in cases {
            let tier = tier(claimed, standing);
            assert_eq!((tier.text.as_str(), tier.short.as_str()), (text, short));
        }
    }
}
