//! The examination of a machine: what about it makes numbers untrustworthy, why that matters, and
//! what to do. One module a subject; each keeps reading apart from judging, so that every judgement is
//! a function of given values.
//!
//! The order of the checks and what is printed of them is the verb's business. Limits in the judgements
//! are choices, not measurements; METHODOLOGY.md gives the reasons.

pub mod activity;
pub mod clock;
pub mod cores;
pub mod flush;
pub mod memory;
pub mod noise;
pub mod page_reclaim;
pub mod rights;
pub mod scanners;
pub mod sqlite_versions;
pub mod storage;

use serde::Serialize;

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Nothing to say.
    Ok,
    /// Worth knowing when numbers are read or passed on; nothing is wrong.
    Note,
    /// Numbers become noisier, or stand for something else than one may think.
    Warning,
    /// Numbers measured now are not to be trusted.
    Problem,
}

impl Level {
    /// The word for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Problem => "problem",
        }
    }
}

/// What is examined, and why.
#[derive(Clone, Copy, Debug)]
pub struct Check {
    /// Name, as in the output.
    pub name: &'static str,
    /// Why it matters to measurements.
    pub why: &'static str,
}

impl Check {
    /// The finding of this check.
    #[must_use]
    pub fn finding<R: Serialize>(self, reading: &R, judgement: Judgement) -> Finding {
        Finding {
            check: self.name,
            level: judgement.level,
            finding: judgement.finding,
            why: self.why,
            advice: judgement.advice,
            // Readings are plain structures of texts and numbers, which always can be written.
            reading: serde_json::to_value(reading).unwrap_or_default(),
        }
    }
}

/// What a check found.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// Name of the check.
    pub check: &'static str,
    /// How much it matters.
    pub level: Level,
    /// What was found.
    pub finding: String,
    /// Why it matters.
    pub why: &'static str,
    /// What to do; empty where there is nothing to do.
    pub advice: String,
    /// The values that were judged.
    pub reading: serde_json::Value,
}

/// What follows from a reading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// How much it matters.
    pub level: Level,
    /// In a sentence.
    pub finding: String,
    /// What to do; may be empty.
    pub advice: String,
}

impl Judgement {
    /// Nothing to say but what is the case.
    #[must_use]
    pub fn ok(finding: impl Into<String>) -> Self {
        Self::new(Level::Ok, finding, "")
    }

    /// A judgement.
    #[must_use]
    pub fn new(level: Level, finding: impl Into<String>, advice: impl Into<String>) -> Self {
        Self {
            level,
            finding: finding.into(),
            advice: advice.into(),
        }
    }

    /// The same with one more remark: the worse level counts, findings and advice are added up.
    #[must_use]
    pub fn and(mut self, level: Level, finding: &str, advice: &str) -> Self {
        self.level = self.level.max(level);
        for (text, more) in [(&mut self.finding, finding), (&mut self.advice, advice)] {
            if !text.is_empty() && !more.is_empty() {
                text.push_str("; ");
            }
            text.push_str(more);
        }
        self
    }
}

/// A whole examination.
#[derive(Clone, Debug, Serialize)]
pub struct Examination {
    /// Version of this structure; rises when a field changes its meaning or goes.
    pub format: u32,
    /// Version of the program that examined.
    pub sqlitmus_version: String,
    /// When, RFC 3339, UTC.
    pub examined_utc: String,
    /// The directory whose disk was examined.
    pub place: String,
    /// Whether parts were left out that take time (`--quick`).
    pub quick: bool,
    /// The worst level.
    pub level: Level,
    /// What was found, in the order of the checks.
    pub findings: Vec<Finding>,
}

/// Version of [`Examination`].
pub const FORMAT: u32 = 1;

impl Examination {
    /// The worst level of some findings.
    #[must_use]
    pub fn worst(findings: &[Finding]) -> Level {
        let levels = findings.iter().map(|finding| finding.level);
        levels.max().unwrap_or(Level::Ok)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remarks_add_up_to_the_worst() {
        let judgement = Judgement::ok("ext4")
            .and(Level::Warning, "mounted with sync", "mount it without")
            .and(Level::Note, "a virtual disk", "");
        assert_eq!(judgement.level, Level::Warning);
        assert_eq!(judgement.finding, "ext4; mounted with sync; a virtual disk");
        assert_eq!(judgement.advice, "mount it without");
    }
}
