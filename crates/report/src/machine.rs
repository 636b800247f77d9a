//! The machine in a few words, from the facts that a run file keeps about it. What a run does not
//! know is left out; all facts, word for word, are for the formats to list.

use std::collections::BTreeSet;

use sqlitmus_core::run::Run;

use crate::summary::plural;
use crate::text::clean;

/// The machine in short pieces: `AMD EPYC, 2 cores, 24 GB`, `ext4 on /dev/vda (virtual disk)`,
/// `Linux 6.18.44`, `SQLite 3.54.1`. What the run does not know is left out.
pub(crate) fn pieces(run: &Run) -> Vec<String> {
    let number = |name: &str| fact(run, name).and_then(|value| value.parse::<u64>().ok());
    let model = fact(run, "cpu_model")
        .map(|model| short_model(&model))
        .or_else(|| fact(run, "cpu_architecture").map(|name| format!("{name} processor")));
    let cores = number("cpu_logical_cores").map(|all| match number("cpu_allowed_cores") {
        Some(allowed) if allowed < all => format!("{allowed} of {all} cores"),
        _ => plural(all, "core", "cores"),
    });
    let memory = number("memory_total_bytes").map(|total| {
        match number("memory_limit_bytes").filter(|limit| *limit < total) {
            Some(limit) => format!("{} limited to {}", memory(total), memory(limit)),
            None => memory(total),
        }
    });
    let hardware: Vec<String> = [model, cores, memory].into_iter().flatten().collect();
    let versions: Vec<String> = sqlite_versions(run).into_iter().collect();
    let place = fact(run, "place_description").or_else(|| fact(run, "filesystem"));
    let pieces = [
        (!hardware.is_empty()).then(|| hardware.join(", ")),
        place,
        fact(run, "kernel").map(|kernel| short_kernel(&kernel)),
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
fn fact(run: &Run, name: &str) -> Option<String> {
    let (_, value) = run.environment.iter().find(|(found, _)| found == name)?;
    let value = clean(value);
    (!value.is_empty() && value != "unknown" && value != "none").then_some(value)
}

/// Versions of SQLite that the live engines reported.
fn sqlite_versions(run: &Run) -> BTreeSet<String> {
    let versions = run.trials.iter().filter_map(|trial| {
        let (_, arm) = run.plan.arm(&trial.arm)?;
        let mut names = [
            "sqlite_version",
            "sqlite-version",
            "library_version",
            "version",
        ]
        .iter();
        let version = names.find_map(|name| trial.read_back.get(*name))?;
        arm.case.engine.contains("sqlite").then(|| clean(version))
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
