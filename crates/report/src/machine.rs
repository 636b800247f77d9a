//! The machine in a few words, from the facts that a run file keeps about it. What a run does not
//! know is left out; all facts, word for word, are for the formats to list.

use std::collections::BTreeSet;

use sqlitmus_core::environment::{UNKNOWN, fact, said};
use sqlitmus_core::run::Run;

use crate::summary::plural;
use crate::text::clean;

/// The machine in short pieces: `AMD EPYC, 2 cores, 24 GB`, `ext4 on /dev/vda (virtual disk)`,
/// `Linux 6.18.44`, `SQLite 3.54.1`. What the run does not know is left out.
pub(crate) fn pieces(run: &Run) -> Vec<String> {
    let number = |name: &str| known(run, name).and_then(|value| value.parse::<u64>().ok());
    let model = known(run, fact::CPU_MODEL)
        .map(|model| short_model(&model))
        .or_else(|| known(run, fact::CPU_ARCHITECTURE).map(|name| format!("{name} processor")));
    let cores = number(fact::CPU_LOGICAL_CORES).map(|all| match number(fact::CPU_ALLOWED_CORES) {
        Some(allowed) if allowed < all => format!("{allowed} of {all} cores"),
        _ => plural(all, "core", "cores"),
    });
    let memory = number(fact::MEMORY_TOTAL_BYTES).map(|total| {
        match number(fact::MEMORY_LIMIT_BYTES).filter(|limit| *limit < total) {
            Some(limit) => format!("{} limited to {}", memory(total), memory(limit)),
            None => memory(total),
        }
    });
    let hardware: Vec<String> = [model, cores, memory].into_iter().flatten().collect();
    let versions: Vec<String> = sqlite_versions(run).into_iter().collect();
    let place = known(run, fact::PLACE_DESCRIPTION).or_else(|| known(run, fact::FILESYSTEM));
    let pieces = [
        (!hardware.is_empty()).then(|| hardware.join(", ")),
        place,
        known(run, fact::KERNEL).map(|kernel| short_kernel(&kernel)),
        (!versions.is_empty()).then(|| format!("SQLite {}", versions.join(" and "))),
    ];
    let pieces: Vec<String> = pieces.into_iter().flatten().collect();
    if pieces.is_empty() {
        return vec!["the run does not say on which machine it was measured".to_owned()];
    }
    pieces
}

/// A processor's name without trade marks and without the frequency, which the model implies.
fn short_model(model: &str) -> String {
    let model = model.replace("(R)", "").replace("(TM)", "");
    let model = model.split(" @ ").next().unwrap_or(&model);
    let words = model
        .split_whitespace()
        .filter(|word| !["CPU", "Processor"].contains(word));
    words.collect::<Vec<_>>().join(" ")
}

/// `Linux 6.18.44-distribution-7` without what follows the version.
fn short_kernel(kernel: &str) -> String {
    let Some((name, release)) = kernel.split_once(' ') else {
        return kernel.to_owned();
    };
    let is_version = |letter: char| letter.is_ascii_digit() || letter == '.';
    let end = release
        .find(|letter| !is_version(letter))
        .unwrap_or(release.len());
    format!("{name} {}", release[..end].trim_end_matches('.'))
        .trim_end()
        .to_owned()
}

/// Memory as it is sold: in units of 2^30 bytes that are called GB.
fn memory(bytes: u64) -> String {
    const GIBIBYTE: u64 = 1 << 30;
    const MEBIBYTE: u64 = 1 << 20;
    if bytes >= GIBIBYTE {
        format!("{} GB", bytes.saturating_add(GIBIBYTE / 2) / GIBIBYTE)
    } else {
        format!("{} MB", (bytes + MEBIBYTE / 2) / MEBIBYTE)
    }
}

/// A fact about the machine; `None` if it is not known.
fn known(run: &Run, name: &str) -> Option<String> {
    let (_, value) = run.environment.iter().find(|(found, _)| found == name)?;
    let value = clean(value);
    (!value.is_empty() && value != UNKNOWN && value != "none").then_some(value)
}

/// Versions of SQLite that the live engines reported.
pub(crate) fn sqlite_versions(run: &Run) -> BTreeSet<String> {
    let arms = run
        .plan
        .arms()
        .filter(|(_, arm)| arm.case.engine.contains("sqlite"));
    let arms: BTreeSet<&str> = arms.map(|(_, arm)| arm.name.as_str()).collect();
    let trials = run
        .trials
        .iter()
        .filter(|trial| arms.contains(trial.arm.as_str()));
    let versions = trials.filter_map(|trial| {
        let version = trial.read_back.get(said::SQLITE_VERSION)?;
        Some(clean(version))
    });
    versions.filter(|version| !version.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_machines_are_shortened() {
        assert_eq!(
            short_model("Intel(R) Core(TM) i7-4770K CPU @ 3.50GHz"),
            "Intel Core i7-4770K"
        );
        assert_eq!(short_kernel("Linux 6.18.44-fc-7"), "Linux 6.18.44");
        assert_eq!(short_kernel("Linux"), "Linux");
        assert_eq!(memory(24_684_092 * 1024), "24 GB");
        assert_eq!(memory(u64::MAX), "17179869183 GB");
        assert_eq!(memory(512 << 20), "512 MB");
    }
}
