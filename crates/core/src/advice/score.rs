//! Scores: how fast a candidate is for a mixture of reads and writes, from figures of reading and of
//! writing that were measured apart. What readers and writers cost each other is not in it.

use std::collections::BTreeSet;

use serde::Serialize;

use super::AdviceRecord;
use super::candidate::{Store, TODAY};
use super::fillings::Fillings;
use super::stage::{Purpose, Stage, arm_name};
use super::wish::Wish;
use crate::measurements::{Cost, Measurements};
use crate::statistics::{
    DEFAULT_CONFIDENCE, Interval, RatioEstimate, batched_t_interval, mean, median,
};

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
    /// Of two arms of a group. What differs from one filling of its stores to the next is in the interval, if
    /// there were three or more.
    #[must_use]
    pub fn of(
        measurements: &Measurements<'_>,
        fillings: &Fillings,
        reference: &str,
        arm: &str,
    ) -> Option<Self> {
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
        let rounds = rounds_of(measurements, fillings, reference, arm);
        let logarithms: Vec<(u32, f64)> = rounds
            .into_iter()
            .map(|round| (round.filling, round.logarithm))
            .collect();
        let paired = interval_of(&logarithms);
        Some(Self {
            ratio: estimate.ratio,
            interval: paired.or(estimate.interval),
            operation_ns,
            reference_ns: ns(reference)?,
        })
    }
}

/// Where the ratio lies whose logarithm had these values in the rounds, each with its filling.
fn interval_of(logarithms: &[(u32, f64)]) -> Option<Interval> {
    let found = batched_t_interval(logarithms, DEFAULT_CONFIDENCE)?;
    Some(found.interval.exp())
}

/// A round of two arms.
struct Round {
    /// On which filling of the stores.
    filling: u32,
    /// ln(time of the reference / time of the arm).
    logarithm: f64,
    /// Nanoseconds of one operation of the reference.
    reference_ns: f64,
}

fn rounds_of(
    measurements: &Measurements<'_>,
    fillings: &Fillings,
    reference: &str,
    arm: &str,
) -> Vec<Round> {
    let group = measurements.run().plan.arm(arm);
    let group = group.map_or("", |(group, _)| group.name.as_str());
    let logarithms = measurements.round_logarithms(reference, arm, Cost::Acknowledged);
    let reference = measurements.numbered_round_values(reference, Cost::Acknowledged);
    let rounds = reference.into_iter().filter_map(|(number, reference_ns)| {
        Some(Round {
            filling: fillings.of(group, number),
            logarithm: *logarithms.get(&number)?,
            reference_ns,
        })
    });
    rounds.collect()
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
/// With shares r of reads and w of writes, a reference that takes Fr and Fw in a round and a candidate that
/// takes Cr and Cw, a round's value is ln((r Fr + w Fw) / (r Cr + w Cw)) = -ln(s / R + (1 - s) / W), where R =
/// Fr / Cr and W = Fw / Cw are measured as paired ratios and s = r Fr / (r Fr + w Fw) is the share of the
/// reference's time that goes into reading. The first round of reading on a filling of the stores goes with the
/// first of writing, and so on. The ratio is exp of their mean; its interval has in it what differs from one
/// filling to the next, if there were three or more.
#[must_use]
pub fn composed(
    measurements: &Measurements<'_>,
    record: &AdviceRecord,
    stage: Stage,
    reference: &str,
    candidate: &str,
) -> Option<Composed> {
    let wish = &record.wish;
    let names = |purpose: Purpose| {
        [reference, candidate].map(|candidate| arm_name(stage, purpose, candidate))
    };
    let part = |purpose: Purpose, wanted: bool| {
        let [reference, candidate] = names(purpose);
        let found = Part::of(measurements, &record.fillings, &reference, &candidate);
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
    let found = compose(wish, read, write, noise_floor)?;
    if wish.reads == 0 || wish.writes == 0 {
        return Some(found);
    }
    let rounds = |purpose: Purpose| {
        let [reference, candidate] = names(purpose);
        rounds_of(measurements, &record.fillings, &reference, &candidate)
    };
    let logarithms = mixture(wish, &rounds(wish.reading()), &rounds(Purpose::Write));
    let bare: Vec<f64> = logarithms.iter().map(|(_, value)| *value).collect();
    // Without rounds in common there are the parts alone.
    let Some(middle) = mean(&bare) else {
        return Some(found);
    };
    Some(Composed {
        ratio: middle.exp(),
        interval: interval_of(&logarithms),
        ..found
    })
}

/// ln(1 / (s / R + (1 - s) / W)), of the logarithms of R and W and the share s of the reference's time that goes
/// into reading.
pub(super) fn mixed_logarithm(weight: f64, read: f64, write: f64) -> f64 {
    -(weight * (-read).exp() + (1.0 - weight) * (-write).exp()).ln()
}

/// Rounds of reading and of writing made one, each with its filling.
fn mixture(wish: &Wish, reading: &[Round], writing: &[Round]) -> Vec<(u32, f64)> {
    let share = wish.read_share();
    let fillings: BTreeSet<u32> = reading.iter().map(|round| round.filling).collect();
    let of = |rounds: &'_ [Round], filling: u32| -> Vec<(f64, f64)> {
        let own = rounds.iter().filter(|round| round.filling == filling);
        own.map(|round| (round.logarithm, round.reference_ns))
            .collect()
    };
    let mixed = |((read, read_ns), (write, write_ns)): ((f64, f64), (f64, f64))| {
        let reading_ns = share * read_ns;
        let weight = reading_ns / (reading_ns + (1.0 - share) * write_ns);
        mixed_logarithm(weight, read, write)
    };
    let rounds = fillings.into_iter().flat_map(|filling| {
        let both = of(reading, filling).into_iter().zip(of(writing, filling));
        both.map(mixed).map(move |value| (filling, value))
    });
    rounds.collect()
}

/// As [`composed`], from the parts alone: 1 / (s / R + (1 - s) / W), where R = Fr / Cr, W = Fw / Cw, and s =
/// r Fr / (r Fr + w Fw) is the share of the reference's time that goes into reading. It grows with R and with
/// W, so the ends of its interval are those of theirs: for errors that do not depend on each other that is
/// wider than it need be. That s is not known exactly is left out.
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
