//! Two runs compared: has anything become slower from A to B? Cases are matched by their identity
//! (`matching`), conditions are held against each other (`conditions`), every cost is judged with
//! all others in mind (`statistics::simultaneous`). Which runs, and what a refusal looks like, is left to the
//! command line; words and tables to the reports.
//!
//! # What is compared
//!
//! B's speed as a multiple of A's: above 1, B is faster. With y_i the value of round i,
//!
//! - of **times** ([`Quantity::Time`]): y_i = -ln(nanoseconds of one operation), the median over the
//!   slices of the round;
//! - of **ratios** ([`Quantity::Ratio`], the default): y_i = median over the slices of
//!   ln(baseline's time / arm's time), paired by turn as within a run. A machine that is slower as a
//!   whole on the second day moves both times and drops out.
//!
//! Estimate: exp(mean of B's y - mean of A's y); interval: Welch's
//! ([`difference_of_means`](crate::statistics::difference_of_means)), as rounds of different runs have no pairs.
//!
//! # Verdicts
//!
//! As within a run ([`judge_interval`](crate::verdict::judge_interval)), with the larger noise floor of the two runs' groups as margin:
//! the luck that a store has for the whole of a run is not seen by rounds, and the twin, which has a
//! store and processes of its own, is all there is to gauge it with.
//!
//! - **Faster and slower** are claims among many, of which one may come true by chance: the interval
//!   is that of Holm's procedure over all costs of all cases. "There is a regression" is then wrong at
//!   most once in 20 times, however many cases there are.
//! - **No difference worth having** is judged by each case's own 95% interval. That nothing has become
//!   slower is a claim about every case at once and fails with any one of them, so it needs no
//!   correction (R. L. Berger, "Multiparameter hypothesis testing and acceptance sampling",
//!   Technometrics 24(4), 1982). For the same reason a regression is [`Regression::Excluded`] when the
//!   own interval ends above 1 / (1 + threshold) and the noise floor is within the threshold, even where it is
//!   not sure whether B is faster or alike.

mod conditions;
mod judgement;
mod matching;

use thiserror::Error;

use crate::measurements::{ArmStatus, Cost, Measurements};
use crate::run::{Run, RunHead};
use crate::statistics::{DEFAULT_CONFIDENCE, Interval};
use crate::verdict::{DEFAULT_THRESHOLD, Verdict};
use judgement::Both;
use matching::matched;

/// What of two runs is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantity {
    /// Times as they are: what moves the whole machine moves them.
    Time,
    /// Times as multiples of the baseline of the same group in the same run.
    Ratio,
}

/// How runs are compared.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// What is compared.
    pub of: Quantity,
    /// The smallest difference worth having, as a share: 0.03 is 3%.
    pub threshold: f64,
    /// Confidence of intervals, between 0 and 1.
    pub confidence: f64,
    /// Names of facts whose difference is what is to be compared, such as `sqlite_version`.
    pub expected: Vec<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            of: Quantity::Ratio,
            threshold: DEFAULT_THRESHOLD,
            confidence: DEFAULT_CONFIDENCE,
            expected: Vec::new(),
        }
    }
}

/// Why two runs cannot be compared at all.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum RunComparisonError {
    /// A run compared with itself is alike in every sample, which says nothing.
    #[error("A and B are the same run, {id}")]
    SameRun {
        /// Its identity.
        id: String,
    },
    /// No case is in both.
    #[error(
        "A and B have no case in common: A measured {} cases of suite {} at scale {}, \
         B {} cases of suite {} at scale {}", .a.0, .a.1, .a.2, .b.0, .b.1, .b.2
    )]
    NoCommonCase {
        /// Number of cases, suite and scale of A.
        a: (usize, String, String),
        /// The same of B.
        b: (usize, String, String),
    },
    /// No fact is called so.
    #[error("no fact is called `{name}`")]
    UnknownFact {
        /// Name given.
        name: String,
        /// The nearest that is one.
        nearest: Option<String>,
        /// All that are.
        known: Vec<String>,
    },
}

impl RunComparisonError {
    /// What the user can do about it.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::SameRun { .. } => {
                "measure again, then `sqlitmus compare previous latest`".to_owned()
            }
            Self::NoCommonCase { .. } => {
                "measure both with the same suite, --scale and --group".to_owned()
            }
            Self::UnknownFact {
                nearest: Some(near),
                ..
            } => format!("did you mean `{near}`?"),
            Self::UnknownFact { known, .. } => format!("known are {}", known.join(", ")),
        }
    }
}

/// What a difference between the conditions of two runs means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// The runs are not to be compared.
    Forbids,
    /// It would forbid the comparison, but it is what is to be compared.
    Expected,
    /// It is told.
    Told,
}

/// A difference between the conditions of two runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Name of the fact, as it is given to be expected.
    pub name: String,
    /// Its text in A, if A knows it.
    pub a: Option<String>,
    /// Its text in B, if B knows it.
    pub b: Option<String>,
    /// What follows.
    pub effect: Effect,
    /// Why it matters; empty for what is only told.
    pub why: String,
    /// Names of the arms it is about, as B has them; empty for facts of the machine or the plan.
    pub arms: Vec<String>,
}

/// An arm that is in one run alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unmatched {
    /// Name.
    pub name: String,
    /// What reports call it.
    pub label: String,
    /// Name of its group.
    pub group: String,
    /// Identity of its case.
    pub case_id: String,
    /// Why it has no counterpart.
    pub why: WhyUnmatched,
}

/// Why an arm has no counterpart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WhyUnmatched {
    /// The other run has neither the case nor the name.
    Absent,
    /// The other run has another case of this name.
    OtherCase(Vec<PartDifference>),
    /// Several arms are the same case, and their names do not tell which is which.
    Ambiguous,
}

/// A part in which two cases differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartDifference {
    /// Name of the part: `settings`, `blobs`.
    pub part: &'static str,
    /// The part in the arm's own run.
    pub here: String,
    /// The part in the other run.
    pub there: String,
}

/// One of the two runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Side {
    /// Head of the run.
    pub head: RunHead,
    /// Name of its suite.
    pub suite: String,
    /// Name of its scale.
    pub scale: String,
}

/// Cost of one arm in one run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ArmCost {
    /// Nanoseconds of one operation: geometric mean over the rounds of the median over slices.
    pub operation_ns: f64,
    /// Student's interval of it; `None` for a single round.
    pub interval: Option<Interval>,
    /// Rounds it rests on.
    pub rounds: usize,
}

/// What can be said about a case having become slower.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Regression {
    /// It has.
    Found,
    /// It has not, by more than the threshold.
    Excluded,
    /// Not decided.
    Open,
}

/// B's speed as a multiple of A's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Change {
    /// Above 1, B is faster.
    pub ratio: f64,
    /// Its interval by itself; `None` with a single round in either run.
    pub interval: Option<Interval>,
    /// Its interval among all that is compared, by Holm's procedure.
    pub interval_among_all: Option<Interval>,
    /// The confidence of that interval.
    pub confidence_among_all: f64,
    /// The larger noise floor of the two runs; `None` if one is not known.
    pub noise_floor: Option<f64>,
    /// What follows.
    pub verdict: Verdict,
    /// What follows for the answer to "has anything become slower?"
    pub regression: Regression,
}

/// Why a case that is in both runs was not judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotJudged {
    /// No figures in one run, or in both.
    NoFigures {
        /// How it ended in A.
        a: ArmStatus,
        /// How it ended in B.
        b: ArmStatus,
    },
    /// It is what the others are divided by.
    IsBaseline,
    /// The baselines of its groups are different cases, so that ratios to them are too.
    OtherBaseline {
        /// A's baseline.
        a: String,
        /// B's baseline.
        b: String,
    },
    /// The baseline has no figures in one run, or was not measured in turns with it.
    NoRatio,
    /// A sample is no time.
    BadSamples,
}

/// One cost of a case that is in both runs.
#[derive(Debug, Clone, PartialEq)]
pub struct ComparedCase {
    /// Identity of the case.
    pub case_id: String,
    /// Name of the arm in A.
    pub name_a: String,
    /// Name of the arm in B.
    pub name: String,
    /// What reports call it, as B has it.
    pub label: String,
    /// Name of its group in B.
    pub group: String,
    /// Which part of the time.
    pub cost: Cost,
    /// Its cost in A, if it has figures.
    pub a: Option<ArmCost>,
    /// Its cost in B, if it has figures.
    pub b: Option<ArmCost>,
    /// Trials in A and in B that were kept and do not count.
    pub trials_left_out: (usize, usize),
    /// The judgement, or why there is none.
    pub change: Result<Change, NotJudged>,
}

impl ComparedCase {
    /// Whether the answer lacks something because of this case.
    #[must_use]
    pub fn is_open(&self) -> bool {
        match &self.change {
            Ok(change) => change.regression == Regression::Open,
            // What the machine lacks on both days has not become slower.
            Err(NotJudged::NoFigures {
                a: ArmStatus::Skipped(_),
                b: ArmStatus::Skipped(_),
            })
            | Err(NotJudged::IsBaseline) => false,
            Err(_) => true,
        }
    }
}

/// A group that is in both runs: how far each came, how much it scatters, and what became of its
/// baseline, which tells how the machine itself has moved.
#[derive(Debug, Clone, PartialEq)]
pub struct ComparedGroup {
    /// Name.
    pub name: String,
    /// What B calls its baseline.
    pub baseline: String,
    /// Rounds planned in A and in B.
    pub planned: (u32, u32),
    /// Rounds of the baseline that count in A and in B.
    pub measured: (usize, usize),
    /// Noise floors in A and in B.
    pub noise_floors: (Option<f64>, Option<f64>),
    /// B's baseline as a multiple of the speed of A's, with its own interval; `None` if they are
    /// different cases or have no figures.
    pub baseline_change: Option<(f64, Option<Interval>)>,
}

/// The answer to "has anything become slower?"
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// Nothing has, by more than the threshold.
    NoRegression,
    /// Something has.
    Regression,
    /// Something is not decided, and nothing is known to have become slower.
    NotSure,
}

/// Two runs, compared.
#[derive(Debug, Clone, PartialEq)]
pub struct RunComparison {
    /// The earlier, or the reference.
    pub a: Side,
    /// The later, or what is to be judged.
    pub b: Side,
    /// How they were compared.
    pub options: Options,
    /// Differences between their conditions.
    pub differences: Vec<Difference>,
    /// Facts that were expected to differ and do not.
    pub not_different: Vec<String>,
    /// Groups that are in both.
    pub groups: Vec<ComparedGroup>,
    /// Costs of cases that are in both, in the order of A's plan.
    pub cases: Vec<ComparedCase>,
    /// Cases that are in A alone.
    pub only_a: Vec<Unmatched>,
    /// Cases that are in B alone.
    pub only_b: Vec<Unmatched>,
}

impl RunComparison {
    /// The differences that forbid the comparison.
    pub fn forbidding(&self) -> impl Iterator<Item = &Difference> {
        let all = self.differences.iter();
        all.filter(|difference| difference.effect == Effect::Forbids)
    }

    /// Costs that were judged.
    #[must_use]
    pub fn judged(&self) -> usize {
        self.cases.iter().filter(|case| case.change.is_ok()).count()
    }

    /// How many costs got a verdict.
    #[must_use]
    pub fn count(&self, verdict: Verdict) -> usize {
        let changes = self
            .cases
            .iter()
            .filter_map(|case| case.change.as_ref().ok());
        changes.filter(|change| change.verdict == verdict).count()
    }

    /// The answer. A case of A that B lacks leaves it open; one that only B has does not.
    #[must_use]
    pub fn answer(&self) -> Answer {
        if self.count(Verdict::Slower) > 0 {
            Answer::Regression
        } else if self.judged() == 0
            || !self.only_a.is_empty()
            || self.cases.iter().any(ComparedCase::is_open)
        {
            Answer::NotSure
        } else {
            Answer::NoRegression
        }
    }
}

/// Compares run B with run A. Whether differences between their conditions forbid it is for the
/// caller to ask ([`RunComparison::forbidding`]).
///
/// # Errors
/// The same run twice, no common case, or an expected fact that does not exist.
pub fn compare_runs(
    a: &Run,
    b: &Run,
    options: &Options,
) -> Result<RunComparison, RunComparisonError> {
    if a.head.id == b.head.id {
        return Err(RunComparisonError::SameRun {
            id: a.head.id.clone(),
        });
    }
    let matching = matched(a, b);
    let differences = conditions::differences(a, b, &matching.pairs, &options.expected)?;
    if matching.pairs.is_empty() {
        let of = |run: &Run, cases: usize| (cases, run.plan.suite.clone(), run.plan.scale.clone());
        return Err(RunComparisonError::NoCommonCase {
            a: of(a, matching.only_a.len()),
            b: of(b, matching.only_b.len()),
        });
    }
    let both = Both {
        a: Measurements::new(a),
        b: Measurements::new(b),
        options,
    };
    Ok(RunComparison {
        a: Side::of(a),
        b: Side::of(b),
        options: options.clone(),
        not_different: conditions::not_different(&options.expected, &differences),
        differences,
        groups: both.groups(),
        cases: both.cases(&matching.pairs),
        only_a: matching.only_a,
        only_b: matching.only_b,
    })
}

impl Side {
    fn of(run: &Run) -> Self {
        Self {
            head: run.head.clone(),
            suite: run.plan.suite.clone(),
            scale: run.plan.scale.clone(),
        }
    }
}
