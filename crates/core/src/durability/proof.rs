//! What the durability experiment proves about the arms of a measurement: the same engine with the
//! same decisive settings, cut off on the same kind of filesystem. A proof is kept as a fact of the
//! measurement's run, so that reports need nothing but the run.
//!
//! Which run of the experiment is asked, and which settings are decisive, is for the command line
//! and the engines.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::judgement::{Row, Table, Tally};
use super::plan::{Configuration, Cut, CutKind, DurabilityRun};
use crate::case::Durability;
use crate::environment::PROVED_DURABILITY;
use crate::statistics::{DEFAULT_CONFIDENCE, upper_bound};

/// What the experiment found out about an arm.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proof {
    /// Identity of the run of the experiment.
    pub run: String,
    /// Path of its file when the measurement was made.
    pub file: String,
    /// The filesystem, as that run names it.
    pub filesystem: String,
    /// The configuration there that is the arm's.
    pub configuration: String,
    /// The highest tier that no cut contradicts.
    pub observed: Durability,
    /// How the power went; `None` if it never did.
    pub power_kind: Option<CutKind>,
    /// Processes killed.
    pub process: Cuts,
    /// Losses of power.
    pub power: Cuts,
}

/// Cuts of one kind of event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cuts {
    /// How many were made and looked at.
    pub made: u32,
    /// After how many something acknowledged was lost or damaged.
    pub broken: u32,
}

impl Cuts {
    fn of(tally: &Tally) -> Self {
        Self {
            made: tally.cuts,
            broken: tally.broken,
        }
    }

    /// How many the store survived.
    #[must_use]
    pub fn kept(self) -> u32 {
        self.made.saturating_sub(self.broken)
    }

    /// The largest share of such events that may break it, with 95% confidence.
    #[must_use]
    pub fn broken_share_at_most(self) -> f64 {
        upper_bound(self.broken, self.made, DEFAULT_CONFIDENCE)
    }
}

/// How a claimed tier stands to what was observed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Nothing is claimed.
    Nothing,
    /// The event that it is claimed to survive was tried, and it did.
    Kept(Cuts),
    /// An event that it is claimed to survive, and after how many cuts it had not.
    Broken(Durability, Cuts),
    /// It was not put to the test.
    ClaimedOnly,
}

/// How a claim stands to what is proved, if anything is.
#[must_use]
pub fn standing(claimed: Durability, proof: Option<&Proof>) -> Standing {
    let Some(proof) = proof else {
        return match claimed {
            Durability::None => Standing::Nothing,
            _ => Standing::ClaimedOnly,
        };
    };
    let events = [
        (Durability::ProcessCrash, proof.process),
        (Durability::PowerLoss, proof.power),
    ];
    let mut claimed_events = events.into_iter().filter(|(tier, _)| *tier <= claimed);
    if let Some((tier, cuts)) = claimed_events.clone().find(|(_, cuts)| cuts.broken > 0) {
        return Standing::Broken(tier, cuts);
    }
    match claimed_events.next_back() {
        None => Standing::Nothing,
        Some((_, cuts)) if cuts.made > 0 => Standing::Kept(cuts),
        Some(_) => Standing::ClaimedOnly,
    }
}

/// What a run of the experiment proves about one configuration on one of its filesystems; `None` if
/// it has no such configuration, or no cut of it succeeded. The configuration that lies on purpose
/// proves nothing about others.
#[must_use]
pub fn prove(
    run: &DurabilityRun,
    table: &Table<'_>,
    file: &str,
    filesystem: &str,
    is_wanted: impl Fn(&Configuration) -> bool,
) -> Option<Proof> {
    let is_it = |row: &&Row<'_>| {
        let configuration = row.configuration;
        row.filesystem == filesystem && !configuration.is_control && is_wanted(configuration)
    };
    let row = table.rows.iter().find(is_it)?;
    let power = |cut: &&Cut| cut.filesystem == filesystem && cut.kind != CutKind::ProcessCrash;
    Some(Proof {
        run: run.head.id.clone(),
        file: file.to_owned(),
        filesystem: filesystem.to_owned(),
        configuration: row.configuration.name.clone(),
        observed: row.observed?,
        power_kind: run.cuts.iter().find(power).map(|cut| cut.kind),
        process: Cuts::of(&row.process),
        power: Cuts::of(&row.power),
    })
}

impl Proof {
    /// The proof as a fact of a run: name and value.
    ///
    /// # Errors
    /// None that is known: the value is an object of texts and numbers.
    pub fn fact(&self, arm: &str) -> Result<(String, String), serde_json::Error> {
        let value = serde_json::to_string(self)?;
        Ok((format!("{PROVED_DURABILITY}{arm}"), value))
    }
}

/// The proofs among the facts of a run, by arm. What cannot be read is as if it were not there.
#[must_use]
pub fn proofs(facts: &[(String, String)]) -> BTreeMap<&str, Proof> {
    let read = |(name, value): &'_ (String, String)| -> Option<Proof> {
        name.starts_with(PROVED_DURABILITY)
            .then(|| serde_json::from_str(value).ok())?
    };
    facts
        .iter()
        .filter_map(|fact| Some((fact.0.strip_prefix(PROVED_DURABILITY)?, read(fact)?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEPT: Cuts = Cuts {
        made: 20,
        broken: 0,
    };
    const LOST: Cuts = Cuts {
        made: 20,
        broken: 13,
    };
    const NEVER: Cuts = Cuts { made: 0, broken: 0 };

    fn proof(process: Cuts, power: Cuts) -> Proof {
        Proof {
            run: "run".to_owned(),
            file: "durability.run".to_owned(),
            filesystem: "ext4".to_owned(),
            configuration: "sqlite wal full".to_owned(),
            observed: Durability::ProcessCrash,
            power_kind: Some(CutKind::Shutdown),
            process,
            power,
        }
    }

    #[test]
    fn a_claim_is_held_against_the_events_that_it_speaks_of() {
        use Durability::{None as Nothing, PowerLoss, ProcessCrash};
        let cases = [
            (Nothing, None, Standing::Nothing),
            (PowerLoss, None, Standing::ClaimedOnly),
            (PowerLoss, Some(proof(KEPT, KEPT)), Standing::Kept(KEPT)),
            (
                PowerLoss,
                Some(proof(KEPT, LOST)),
                Standing::Broken(PowerLoss, LOST),
            ),
            (
                PowerLoss,
                Some(proof(LOST, KEPT)),
                Standing::Broken(ProcessCrash, LOST),
            ),
            (PowerLoss, Some(proof(KEPT, NEVER)), Standing::ClaimedOnly),
            (ProcessCrash, Some(proof(KEPT, LOST)), Standing::Kept(KEPT)),
            (
                ProcessCrash,
                Some(proof(NEVER, KEPT)),
                Standing::ClaimedOnly,
            ),
            (Nothing, Some(proof(LOST, LOST)), Standing::Nothing),
        ];
        for (claimed, proof, expected) in cases {
            assert_eq!(
                standing(claimed, proof.as_ref()),
                expected,
                "{claimed} {proof:?}"
            );
        }
        assert_eq!(LOST.kept(), 7);
        assert!((KEPT.broken_share_at_most() - 0.1391).abs() < 1e-3);
    }

    #[test]
    fn a_proof_comes_back_from_the_facts_and_rubbish_does_not() {
        let proof = proof(KEPT, LOST);
        let (name, value) = proof.fact("wal full").expect("a fact");
        let facts = vec![
            ("kernel".to_owned(), "Linux".to_owned()),
            (name, value),
            (format!("{PROVED_DURABILITY}other"), "rubbish".to_owned()),
        ];
        let found = proofs(&facts);
        assert_eq!(found.len(), 1);
        assert_eq!(found["wal full"], proof);
    }
}
