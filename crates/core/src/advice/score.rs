//! Scores: how fast a candidate is for a mixture of reads and writes, from figures of reading and of
//! writing that were measured apart. What readers and writers cost each other is not in it.

use serde::Serialize;

use super::candidate::{Store, TODAY};
use super::stage::{Purpose, Stage, arm_name};
use super::wish::Wish;
use crate::measurements::{Cost, Measurements};
use crate::statistics::{Interval, RatioEstimate, median};

/// How many times as fast as another a candidate is, for a mixture.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Composed {
    /// Time of the other divided by time of the candidate.
    pub ratio: f64,
    /// Where the ratio lies with 95% confidence or more; `None` with too few rounds.
    pub interval: Option<Interval>,
    /// The same of reading alone.
    pub read: Option<Part>,
    /// The same of writing alone.
    pub write: Option<Part>,
    /// The larger of the noise floors of both; `None` if one is not known.
    pub noise_floor: Option<f64>,
}

/// One half of a mixture.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Part {
    /// Time of the other divided by time of the candidate.
    pub ratio: f64,
    /// Where it lies with 95% confidence.
    pub interval: Option<Interval>,
    /// Nanoseconds of one operation of the candidate.
    pub operation_ns: f64,
    /// Nanoseconds of one operation of the other.
    pub reference_ns: f64,
}

impl Part {
    /// Of two arms of a group.
    #[must_use]
    pub fn of(measurements: &Measurements<'_>, reference: &str, arm: &str) -> Option<Self> {
        let ns = |arm: &str| median(&measurements.round_values(arm, Cost::Acknowledged));
        let operation_ns = ns(arm)?;
        if reference == arm {
            let ratio = 1.0;
            let interval = Some(Interval {
                low: 1.0,
                high: 1.0,
            });
            let reference_ns = operation_ns;
            return Some(Self {
                ratio,
                interval,
                operation_ns,
                reference_ns,
            });
        }
        let estimate: RatioEstimate = measurements.ratio(reference, arm, Cost::Acknowledged)?;
        Some(Self {
            ratio: estimate.ratio,
            interval: estimate.interval,
            operation_ns,
            reference_ns: ns(reference)?,
        })
    }
}

/// A candidate with its figures.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Standing {
    /// Name of the candidate.
    pub name: String,
    /// What the report calls it.
    pub label: String,
    /// What it is to the user.
    pub store: Store,
    /// Stage that the figures are from.
    #[serde(serialize_with = "stage_word")]
    pub stage: Stage,
    /// Against today's files; `None` if it could not be measured.
    pub composed: Option<Composed>,
    /// Space that today's files take divided by what this takes.
    pub space: Option<f64>,
    /// Why there are no figures.
    pub reason: Option<String>,
}

fn stage_word<S: serde::Serializer>(stage: &Stage, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&stage.word())
}

/// How many times as fast as `reference` a candidate is in a stage.
///
/// With shares r of reads and w of writes, a reference that takes Fr and Fw and a candidate that takes
/// Cr and Cw, it is (r Fr + w Fw) / (r Cr + w Cw) = 1 / (s / R + (1 - s) / W), where R = Fr / Cr and W =
/// Fw / Cw are measured as paired ratios and s = r Fr / (r Fr + w Fw) is the share of the reference's
/// time that goes into reading. It grows with R and with W, so the ends of its interval are those of
/// theirs: for errors that do not depend on each other that is wider than it need be, so the confidence
/// is 95% or more. That s is not known exactly is left out: an error of a tenth in Fr or Fw moves the
/// weights, and with R and W near each other hardly the result.
#[must_use]
pub fn composed(
    measurements: &Measurements<'_>,
    wish: &Wish,
    stage: Stage,
    reference: &str,
    candidate: &str,
) -> Option<Composed> {
    let part = |purpose: Purpose, wanted: bool| {
        let name = |candidate: &str| arm_name(stage, purpose, candidate);
        let found = Part::of(measurements, &name(reference), &name(candidate));
        match (wanted, found) {
            (true, None) => Err(()),
            (_, found) => Ok(found),
        }
    };
    let read = part(wish.reading(), wish.reads > 0).ok()?;
    let write = part(Purpose::Write, wish.writes > 0).ok()?;
    let floor = |purpose: Purpose, part: &Option<Part>| match part {
        None => Some(0.0),
        Some(_) => {
            measurements.noise_floor_of(&arm_name(stage, purpose, TODAY), Cost::Acknowledged)
        }
    };
    let floors = floor(wish.reading(), &read).zip(floor(Purpose::Write, &write));
    let noise_floor = floors.map(|(read, write)| f64::max(read, write));
    compose(wish, read, write, noise_floor)
}

/// As [`composed`], from the parts.
#[must_use]
pub fn compose(
    wish: &Wish,
    read: Option<Part>,
    write: Option<Part>,
    noise_floor: Option<f64>,
) -> Option<Composed> {
    let share = wish.read_share();
    let (ratio, interval) = match (&read, &write) {
        (Some(read), Some(write)) => {
            let reading_ns = share * read.reference_ns;
            let weight = reading_ns / (reading_ns + (1.0 - share) * write.reference_ns);
            let mixed = |read: f64, write: f64| 1.0 / (weight / read + (1.0 - weight) / write);
            let interval = read.interval.zip(write.interval);
            (
                mixed(read.ratio, write.ratio),
                interval.map(|(read, write)| Interval {
                    low: mixed(read.low, write.low),
                    high: mixed(read.high, write.high),
                }),
            )
        }
        (Some(one), None) | (None, Some(one)) => (one.ratio, one.interval),
        (None, None) => return None,
    };
    Some(Composed {
        ratio,
        interval,
        read,
        write,
        noise_floor,
    })
}

/// The share of reads at which a candidate costs what the reference does, from 0 to 1; `None` if it is
/// faster, or slower, at every share.
#[must_use]
pub fn break_even_read_share(read: &Part, write: &Part) -> Option<f64> {
    let read_gain = read.reference_ns - read.operation_ns;
    let write_gain = write.reference_ns - write.operation_ns;
    if read_gain == 0.0 || read_gain.signum() == write_gain.signum() {
        return None;
    }
    Some(-write_gain / (read_gain - write_gain))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advice::wish::{CacheWish, Skew};
    use crate::case::Durability;

    fn part(reference_ns: f64, operation_ns: f64) -> Part {
        let ratio = reference_ns / operation_ns;
        Part {
            ratio,
            interval: Some(Interval {
                low: ratio * 0.9,
                high: ratio * 1.1,
            }),
            operation_ns,
            reference_ns,
        }
    }

    fn wish(reads: u32, writes: u32) -> Wish {
        Wish {
            reads,
            writes,
            skew: Skew::Uniform,
            cache: CacheWish::Warm,
            durability: Durability::ProcessCrash,
            worth: 0.1,
            circumstances: Default::default(),
        }
    }

    #[test]
    fn a_mixture_is_the_ratio_of_total_times() {
        // Files: 10 to read, 100 to write; the other: 5 and 200.
        let found = compose(
            &wish(90, 10),
            Some(part(10.0, 5.0)),
            Some(part(100.0, 200.0)),
            Some(0.01),
        );
        let found = found.expect("composed");
        let expected = (0.9 * 10.0 + 0.1 * 100.0) / (0.9 * 5.0 + 0.1 * 200.0);
        assert!((found.ratio - expected).abs() < 1e-12);
        let interval = found.interval.expect("an interval");
        assert!((interval.low - 0.9 * expected).abs() < 1e-12);
        assert!((interval.high - 1.1 * expected).abs() < 1e-12);
    }

    #[test]
    fn what_is_not_done_does_not_count() {
        let only_read = compose(&wish(1, 0), Some(part(10.0, 5.0)), None, None);
        assert!((only_read.expect("composed").ratio - 2.0).abs() < 1e-12);
        assert_eq!(compose(&wish(1, 1), None, None, None), None);
        // Both measured, one not wished for.
        let read = compose(
            &wish(1, 0),
            Some(part(10.0, 5.0)),
            Some(part(1.0, 100.0)),
            None,
        );
        assert!((read.expect("composed").ratio - 2.0).abs() < 1e-12);
    }

    #[test]
    fn the_share_where_it_turns_is_where_both_cost_the_same() {
        let (read, write) = (part(10.0, 5.0), part(100.0, 200.0));
        let share = break_even_read_share(&read, &write).expect("it turns");
        let files = share * 10.0 + (1.0 - share) * 100.0;
        let other = share * 5.0 + (1.0 - share) * 200.0;
        assert!((files - other).abs() < 1e-9, "{share}");
        assert_eq!(
            break_even_read_share(&part(2.0, 1.0), &part(4.0, 3.0)),
            None
        );
        assert_eq!(
            break_even_read_share(&part(1.0, 2.0), &part(3.0, 4.0)),
            None
        );
        let mirrored = break_even_read_share(&part(5.0, 10.0), &part(200.0, 100.0));
        assert!((mirrored.expect("it turns") - share).abs() < 1e-12);
    }
}
