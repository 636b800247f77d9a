//! Variants: arms that are added to a plan beside those of its suite, each a copy of one of them
//! that differs in what the command line names: a library, or the program that measures.
//! Where such things are is for the command line to know.

use crate::plan::{Arm, Group, Plan};

/// Name of the setting that says which SQLite an arm uses.
const LIBRARY: &str = "library";

/// What a copy differs in from its original.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Difference {
    /// It uses the SQLite library of this name.
    Library,
    /// It is measured by another program.
    Program,
}

impl Plan {
    /// Whether an arm uses the library `@name`.
    #[must_use]
    pub fn uses_library(&self, name: &str) -> bool {
        let setting = format!("@{name}");
        self.arms()
            .any(|(_, arm)| arm.case.settings.get(LIBRARY) == Some(setting.as_str()))
    }

    /// Adds a copy of one arm to every group: of its baseline, and for a library of the first arm
    /// that uses SQLite where the baseline does not. The copy is named after both, stands behind
    /// its original and in every chart that has the original. Returns the names of the copies;
    /// none if there is nothing to copy.
    pub fn add_variant(&mut self, name: &str, difference: Difference) -> Vec<String> {
        let mut added = Vec::new();
        for group in &mut self.groups {
            let Some(index) = original(group, difference) else {
                continue;
            };
            let copy = copy(&group.arms[index], name, difference);
            let original = group.arms[index].name.clone();
            for chart in &mut self.charts {
                if let Some(place) = chart.arms.iter().position(|arm| *arm == original) {
                    chart.arms.insert(place + 1, copy.name.clone());
                }
            }
            added.push(copy.name.clone());
            group.arms.insert(index + 1, copy);
        }
        added
    }
}

/// Index of the arm to copy.
fn original(group: &Group, difference: Difference) -> Option<usize> {
    let is_baseline = |arm: &&Arm| arm.name == group.baseline;
    let is_copied = |arm: &&Arm| match difference {
        Difference::Program => true,
        Difference::Library => arm.case.settings.get(LIBRARY).is_some(),
    };
    let baseline = group.arms.iter().find(is_baseline).filter(is_copied);
    let name = &baseline.or_else(|| group.arms.iter().find(is_copied))?.name;
    group.arms.iter().position(|arm| arm.name == *name)
}

fn copy(original: &Arm, name: &str, difference: Difference) -> Arm {
    let mut copy = original.clone();
    copy.name = format!("{}.{name}", original.name);
    copy.published_rate = None;
    copy.further_published_rates.clear();
    copy.label = match difference {
        Difference::Library => format!("{}, library {name}", original.label),
        Difference::Program => format!("{}, worker {name}", original.label),
    };
    if difference == Difference::Library {
        let value = format!("@{name}");
        copy.case.settings.set(LIBRARY, &value);
        copy.case.chosen.set(LIBRARY, &value);
    }
    copy
}
