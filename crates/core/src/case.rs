//! Cases: workload x dataset x engine x settings x durability x cache state, fully resolved, with
//! an identity that is the same on every machine and in every version.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::dataset::{Dataset, mix};
use crate::keys::KeyOrder;
use crate::settings::Settings;

/// What a committed write survives. Ordered: each tier includes the ones before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Durability {
    /// Nothing is promised: a crash of the process may lose or damage what was stored.
    None,
    /// A crash of the process, not of the machine.
    ProcessCrash,
    /// Loss of power.
    PowerLoss,
}

impl fmt::Display for Durability {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::None => "none",
            Self::ProcessCrash => "process-crash",
            Self::PowerLoss => "power-loss",
        })
    }
}

/// Where the data is when a timed operation begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CacheState {
    /// In memory: no timed operation reads from the device.
    Warm,
    /// No content is in memory: timed operations read it from the device. Where it lies (inodes,
    /// directory entries) is known.
    DataCold,
    /// Neither content nor the filesystem's knowledge of where it lies is in memory.
    FullyCold,
}

impl CacheState {
    /// Whether content has to come from the device.
    #[must_use]
    pub fn is_cold(self) -> bool {
        self != Self::Warm
    }
}

impl fmt::Display for CacheState {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Warm => "warm",
            Self::DataCold => "data-cold",
            Self::FullyCold => "fully-cold",
        })
    }
}

/// What is done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(
    tag = "kind",
    rename_all = "kebab-case",
    rename_all_fields = "kebab-case",
    deny_unknown_fields
)]
pub enum Workload {
    /// One blob after the other is read whole.
    Read {
        /// Order of the keys.
        order: KeyOrder,
    },
    /// Blobs are overwritten with other bytes of the same size; a slice is one batch.
    Overwrite {
        /// Order of the keys.
        order: KeyOrder,
        /// Operations in one batch.
        operations: u64,
    },
}

impl Workload {
    /// Whether it changes the store.
    #[must_use]
    pub fn writes(&self) -> bool {
        matches!(self, Self::Overwrite { .. })
    }

    /// Order in which keys are visited.
    #[must_use]
    pub fn order(&self) -> KeyOrder {
        match self {
            Self::Read { order } | Self::Overwrite { order, .. } => *order,
        }
    }

    /// One word: what is done to a blob.
    #[must_use]
    pub fn verb(&self) -> &'static str {
        match self {
            Self::Read { .. } => "read",
            Self::Overwrite { .. } => "overwrite",
        }
    }
}

/// One thing to measure, with nothing left open.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Case {
    /// What is done.
    pub workload: Workload,
    /// To which data.
    pub dataset: Dataset,
    /// By which engine.
    pub engine: String,
    /// Opened with what; resolved.
    pub settings: Settings,
    /// Those of the settings that are not the engine's defaults. They identify the case, so that
    /// a setting that a later version adds changes the identity of no earlier case. Hence the rule
    /// that a default, once published, never changes.
    pub chosen: Settings,
    /// What a committed write must survive at the least.
    pub durability: Durability,
    /// Where the data is at the start.
    pub cache: CacheState,
}

impl Case {
    /// Identity of the case: twelve hexadecimal digits that follow from all of its parts but the
    /// seed. Equal on all machines and in all versions, so that runs can be matched.
    #[must_use]
    pub fn id(&self) -> String {
        let dataset = &self.dataset;
        let canonical = format!(
            "{}|{}|{}|{}|{}|{}|{}|{}",
            as_text(&self.workload),
            dataset.count,
            as_text(&dataset.size),
            dataset.compressibility,
            self.engine,
            self.chosen,
            self.durability,
            self.cache
        );
        format!("{:012x}", fingerprint(&canonical) >> 16)
    }
}

/// Data structures as JSON: unlike `Debug`, spelled by our own serde attributes.
fn as_text(part: &impl Serialize) -> String {
    serde_json::to_string(part).unwrap_or_default()
}

/// A 64-bit fingerprint of a text: FNV-1a (Fowler, Noll, Vo) with a final mix. Stable for ever;
/// not for adversaries.
#[must_use]
pub fn fingerprint(text: &str) -> u64 {
    let folded = text.bytes().fold(0xCBF2_9CE4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3)
    });
    mix(folded)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::SizeDistribution;

    fn case() -> Case {
        Case {
            workload: Workload::Read {
                order: KeyOrder::Random,
            },
            dataset: Dataset {
                count: 10,
                size: SizeDistribution::Uniform(8000, 12000),
                compressibility: 0.0,
                seed: 1,
            },
            engine: "files".to_owned(),
            settings: Settings::from_pairs([("api", "stdio"), ("layout", "flat")]),
            chosen: Settings::from_pairs([("api", "stdio")]),
            durability: Durability::ProcessCrash,
            cache: CacheState::Warm,
        }
    }

    #[test]
    fn identity_ignores_the_seed_and_nothing_else() {
        let first = case();
        let mut other = case();
        other.dataset.seed = 2;
        assert_eq!(first.id(), other.id());
        other.chosen.set("api", "open");
        assert_ne!(first.id(), other.id());
        // A setting that has its default may come or go.
        let mut other = case();
        other.settings.set("new", "default");
        assert_eq!(first.id(), other.id());
        let mut other = case();
        other.dataset.count = 11;
        assert_ne!(first.id(), other.id());
    }

    #[test]
    fn identity_never_changes_between_versions() {
        // Run files of earlier versions are matched by it: change the code, not this value.
        assert_eq!(case().id(), "8399252f0142");
    }
}
