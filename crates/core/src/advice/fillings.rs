//! Fillings: which rounds of a group were measured on which stores, where these were removed and filled
//! anew in between. How a store comes to lie on the disk is chance too; rounds on the same one know nothing
//! of it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// For each group that was filled several times, the first round of every filling, ascending.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Fillings(BTreeMap<String, Vec<u32>>);

impl Fillings {
    /// Notes that the stores of a group are filled before a round. A filling that no round was measured
    /// on is none.
    pub fn note(&mut self, group: &str, first_round: u32) {
        let starts = self.0.entry(group.to_owned()).or_default();
        if starts.last().is_none_or(|last| *last < first_round) {
            starts.push(first_round);
        }
    }

    /// The number of the filling that a round was measured on; the same for all rounds of a group that
    /// nothing was noted of.
    #[must_use]
    pub fn of(&self, group: &str, round: u32) -> u32 {
        let starts = self.0.get(group).map_or(&[][..], Vec::as_slice);
        starts.partition_point(|start| *start <= round) as u32
    }

    /// Whether nothing was noted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_is_of_the_last_filling_before_it() {
        let mut fillings = Fillings::default();
        assert!(fillings.is_empty());
        for first_round in [0, 4, 4, 9] {
            fillings.note("read", first_round);
        }
        let of: Vec<u32> = (0..11).map(|round| fillings.of("read", round)).collect();
        assert_eq!(of, [1, 1, 1, 1, 2, 2, 2, 2, 2, 3, 3]);
        assert_eq!(fillings.of("other", 3), fillings.of("other", 7));
    }
}
