//! What is wished for: how the files are used, and what a write must survive. Everything that is
//! measured and weighed follows from it.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Circumstances;
use super::stage::Purpose;
use crate::case::Durability;
use crate::keys::KeyOrder;

/// How the files are used.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Wish {
    /// Reads for every `writes` writes.
    pub reads: u32,
    /// Writes for every `reads` reads. Both are not 0.
    pub writes: u32,
    /// Which files are asked for.
    pub skew: Skew,
    /// Where what is read lies when it is asked for.
    pub cache: CacheWish,
    /// What a write must survive.
    pub durability: Durability,
    /// The smallest gain that is worth moving for, as a share.
    pub worth: f64,
    /// With how much memory, and by how many at once.
    #[serde(default, skip_serializing_if = "Circumstances::are_usual")]
    pub circumstances: Circumstances,
}

/// Where what is read lies when it is asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CacheWish {
    /// In memory.
    #[default]
    Warm,
    /// On the device.
    Cold,
    /// In memory; what it would be on the device is measured too, and does not decide.
    Both,
}

/// Which files are asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Skew {
    /// All alike.
    #[default]
    Uniform,
    /// Few of them most of the time: the n-th most popular in proportion to 1/n.
    Zipf,
}

impl fmt::Display for Skew {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::Uniform => "uniform",
            Self::Zipf => "zipf",
        })
    }
}

impl Skew {
    /// The order of keys that it stands for.
    #[must_use]
    pub fn order(self) -> KeyOrder {
        match self {
            Self::Uniform => KeyOrder::Random,
            Self::Zipf => KeyOrder::Zipf,
        }
    }
}

impl Wish {
    /// Share of the operations that are reads, from 0 to 1.
    #[must_use]
    pub fn read_share(&self) -> f64 {
        f64::from(self.reads) / (f64::from(self.reads) + f64::from(self.writes)).max(1.0)
    }

    /// The reading that decides.
    #[must_use]
    pub fn reading(&self) -> Purpose {
        match self.cache {
            CacheWish::Warm | CacheWish::Both => Purpose::Read,
            CacheWish::Cold => Purpose::ReadCold,
        }
    }

    /// Another durability that is worth knowing of: power-loss, or if that is what was asked for, what
    /// is promised without waiting for the device.
    #[must_use]
    pub fn other_durability(&self) -> Durability {
        match self.durability {
            Durability::PowerLoss => Durability::ProcessCrash,
            Durability::None | Durability::ProcessCrash => Durability::PowerLoss,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_of_all_operations() {
        let mut wish = Wish {
            reads: 90,
            writes: 10,
            skew: Skew::Uniform,
            cache: CacheWish::Warm,
            durability: Durability::ProcessCrash,
            worth: 0.1,
            circumstances: Circumstances::default(),
        };
        assert!((wish.read_share() - 0.9).abs() < 1e-12);
        (wish.reads, wish.writes) = (1, 0);
        assert!((wish.read_share() - 1.0).abs() < 1e-12);
        (wish.reads, wish.writes) = (0, 7);
        assert!(wish.read_share().abs() < 1e-12);
        assert_eq!(wish.other_durability(), Durability::PowerLoss);
        wish.durability = Durability::PowerLoss;
        assert_eq!(wish.other_durability(), Durability::ProcessCrash);
    }
}
