//! Explanations: where the time of an arm goes. A suite names parts that were measured by
//! themselves, as differences between arms that do only so much of the work; here they are added
//! up, and what they leave of the whole is the rest, which nothing explains.
//!
//! Every part is measured in the same rounds as the whole: a round gives one value for each arm
//! (the median of its slices), a part of a round is a sum and difference of such values, and the
//! interval of a part is the t-interval over its rounds. So the parts and the rest of every round
//! add up to the whole of that round exactly, and so do the estimates.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::measurements::{ArmStatus, Cost, Measurements};
use crate::statistics::{
    DEFAULT_CONFIDENCE, Interval, RatioOfMeans, mean, ratio_of_means, t_interval,
};

/// A rest beyond this share of the whole needs a word: the suite's suspicion is shown with it.
pub const LARGE_REST: f64 = 0.15;

/// What the parts of one arm's time are, as a suite has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Explanation {
    /// The arm whose time is explained: the whole.
    pub arm: String,
    /// Its parts, in the order in which they are shown.
    pub part: Vec<Part>,
    /// What the rest is suspected to be; said where the rest is large.
    #[serde(default)]
    pub suspected: String,
}

/// A part: the time of some arms, less the time of others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// What it is called; parts of several arms that have one name are the same thing.
    pub name: String,
    /// Arms whose times are added.
    pub plus: Vec<String>,
    /// Arms whose times are taken away.
    #[serde(default)]
    pub minus: Vec<String>,
}

/// A question whose answer is a share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Share {
    /// What the share is of what, as a sentence that ends where the figure goes.
    pub sentence: String,
    /// The share ...
    pub part: Difference,
    /// ... of this.
    pub of: Difference,
}

/// The time of some arms, less the time of others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Difference {
    /// Arms whose times are added.
    pub plus: Vec<String>,
    /// Arms whose times are taken away.
    #[serde(default)]
    pub minus: Vec<String>,
}

impl Explanation {
    /// All arms that it needs.
    pub fn arms(&self) -> impl Iterator<Item = &String> {
        let of_parts = self
            .part
            .iter()
            .flat_map(|part| part.plus.iter().chain(&part.minus));
        std::iter::once(&self.arm).chain(of_parts)
    }

    /// Whether the parts were measured apart from the whole: if all arms cancel out between them,
    /// they add up whatever was measured.
    fn can_leave_a_rest(&self) -> bool {
        let mut times: BTreeMap<&str, i64> = BTreeMap::new();
        *times.entry(&self.arm).or_default() += 1;
        for part in &self.part {
            for arm in &part.plus {
                *times.entry(arm).or_default() -= 1;
            }
            for arm in &part.minus {
                *times.entry(arm).or_default() += 1;
            }
        }
        times.values().any(|times| *times != 0)
    }
}

impl Share {
    /// All arms that it needs.
    pub fn arms(&self) -> impl Iterator<Item = &String> {
        [&self.part, &self.of]
            .into_iter()
            .flat_map(|difference| difference.plus.iter().chain(&difference.minus))
    }
}

/// An arm whose time was taken apart.
#[derive(Debug, Clone, PartialEq)]
pub struct Explained {
    /// Name of the arm.
    pub arm: String,
    /// What the report calls it.
    pub label: String,
    /// What came of it, or why nothing did.
    pub result: Result<Parts, String>,
}

/// The parts of an arm's time.
#[derive(Debug, Clone, PartialEq)]
pub struct Parts {
    /// Nanoseconds of one operation.
    pub whole: Amount,
    /// Its parts.
    pub parts: Vec<(String, Amount)>,
    /// What they leave of the whole; below zero if they come to more. `None` if nothing can be left,
    /// because the parts are differences that lead from one arm to the next up to the whole.
    pub rest: Option<Amount>,
    /// What the rest is suspected to be, if it is large and the suite says so.
    pub suspected: Option<String>,
    /// Rounds in which all of the arms were measured.
    pub rounds: usize,
}

/// A time of one operation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Amount {
    /// Nanoseconds: mean over the rounds.
    pub ns: f64,
    /// Its interval; `None` with fewer than two rounds.
    pub interval: Option<Interval>,
    /// As a share of the whole.
    pub share: f64,
}

impl Parts {
    /// Whether the parts leave more unexplained than they should.
    #[must_use]
    pub fn has_large_rest(&self) -> bool {
        self.rest.is_some_and(|rest| rest.share.abs() > LARGE_REST)
    }
}

/// The answer to a question about a share.
#[derive(Debug, Clone, PartialEq)]
pub struct ShareResult {
    /// The sentence.
    pub sentence: String,
    /// The share, or why there is none.
    pub result: Result<RatioOfMeans, String>,
}

/// The values of arms by round.
type RoundValues = BTreeMap<u32, f64>;

/// Takes apart what the suite asks for.
#[must_use]
pub fn explain(explanations: &[Explanation], measurements: &Measurements<'_>) -> Vec<Explained> {
    let explained = explanations.iter().map(|explanation| Explained {
        arm: explanation.arm.clone(),
        label: label(measurements, &explanation.arm),
        result: parts(explanation, measurements),
    });
    explained.collect()
}

/// Answers the suite's questions about shares.
#[must_use]
pub fn shares(shares: &[Share], measurements: &Measurements<'_>) -> Vec<ShareResult> {
    let answered = shares.iter().map(|share| ShareResult {
        sentence: share.sentence.clone(),
        result: answer(share, measurements),
    });
    answered.collect()
}

fn label(measurements: &Measurements<'_>, arm: &str) -> String {
    let found = measurements.run().plan.arm(arm);
    found.map_or_else(|| arm.to_owned(), |(_, found)| found.label.clone())
}

/// The round values of all these arms, for the rounds in which each of them has one.
fn values<'a>(
    arms: impl Iterator<Item = &'a String>,
    measurements: &Measurements<'_>,
) -> Result<BTreeMap<&'a str, RoundValues>, String> {
    let mut values: BTreeMap<&str, RoundValues> = BTreeMap::new();
    for arm in arms {
        if values.contains_key(arm.as_str()) {
            continue;
        }
        if let Some(reason) = missing(measurements, arm) {
            return Err(reason);
        }
        let of_rounds = measurements.numbered_round_values(arm, Cost::Acknowledged);
        values.insert(arm, of_rounds.into_iter().collect());
    }
    let rounds: Vec<u32> = values
        .values()
        .flat_map(|of_arm| of_arm.keys().copied())
        .filter(|round| values.values().all(|of_arm| of_arm.contains_key(round)))
        .collect();
    if rounds.is_empty() {
        return Err("in no round all of its arms were measured".to_owned());
    }
    for of_arm in values.values_mut() {
        of_arm.retain(|round, _| rounds.contains(round));
    }
    Ok(values)
}

fn missing(measurements: &Measurements<'_>, arm: &str) -> Option<String> {
    let label = || label(measurements, arm);
    match measurements.status(arm) {
        ArmStatus::Measured => None,
        ArmStatus::Failed(reason) => Some(format!("{} failed: {reason}", label())),
        ArmStatus::Skipped(reason) => Some(format!("{} was skipped: {reason}", label())),
        ArmStatus::NotReached => Some(format!("{} was not measured", label())),
    }
}

/// What sums and differences of arms come to in each round.
fn combined(
    values: &BTreeMap<&str, RoundValues>,
    plus: &[String],
    minus: &[String],
) -> RoundValues {
    let mut sums = RoundValues::new();
    let signed = plus
        .iter()
        .map(|arm| (arm, 1.0))
        .chain(minus.iter().map(|arm| (arm, -1.0)));
    for (arm, sign) in signed {
        for (round, value) in values.get(arm.as_str()).into_iter().flatten() {
            *sums.entry(*round).or_default() += sign * value;
        }
    }
    sums
}

fn parts(explanation: &Explanation, measurements: &Measurements<'_>) -> Result<Parts, String> {
    let values = values(explanation.arms(), measurements)?;
    let whole = combined(&values, std::slice::from_ref(&explanation.arm), &[]);
    let mut rest = whole.clone();
    let whole_ns = mean_of(&whole).filter(|ns| *ns > 0.0);
    let whole_ns = whole_ns.ok_or("it took no time")?;
    let mut found = Vec::new();
    for part in &explanation.part {
        let sums = combined(&values, &part.plus, &part.minus);
        for (round, value) in &sums {
            *rest.entry(*round).or_default() -= value;
        }
        found.push((part.name.clone(), amount(&sums, whole_ns)));
    }
    let mut parts = Parts {
        whole: amount(&whole, whole_ns),
        parts: found,
        rest: explanation
            .can_leave_a_rest()
            .then(|| amount(&rest, whole_ns)),
        suspected: None,
        rounds: whole.len(),
    };
    let suspected = explanation.suspected.trim();
    if parts.has_large_rest() && !suspected.is_empty() {
        parts.suspected = Some(suspected.to_owned());
    }
    Ok(parts)
}

fn mean_of(values: &RoundValues) -> Option<f64> {
    mean(&values.values().copied().collect::<Vec<_>>()).filter(|mean| mean.is_finite())
}

fn amount(values: &RoundValues, whole_ns: f64) -> Amount {
    let rounds: Vec<f64> = values.values().copied().collect();
    let ns = mean_of(values).unwrap_or(0.0);
    Amount {
        ns,
        interval: t_interval(&rounds, DEFAULT_CONFIDENCE).map(|estimate| estimate.interval),
        share: ns / whole_ns,
    }
}

fn answer(share: &Share, measurements: &Measurements<'_>) -> Result<RatioOfMeans, String> {
    let values = values(share.arms(), measurements)?;
    let part = combined(&values, &share.part.plus, &share.part.minus);
    let of = combined(&values, &share.of.plus, &share.of.minus);
    let pairs: Vec<(f64, f64)> = part
        .iter()
        .filter_map(|(round, part)| Some((*part, *of.get(round)?)))
        .collect();
    ratio_of_means(&pairs, DEFAULT_CONFIDENCE).ok_or_else(|| match pairs.len() {
        0 | 1 => "it takes two rounds".to_owned(),
        _ => "what it is a share of is nothing".to_owned(),
    })
}
