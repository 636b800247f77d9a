//! Crossovers: from ratios that were measured at several sizes of blobs, the size at which the
//! answer turns, with its interval.
//!
//! # Method
//! At each size there are round values x = ln(time outside / time inside), so that above 0 inside is
//! faster. Their mean has Student's t-interval. A size has a *sure side* if that interval is all on
//! one side of 0 and the mean is farther from 0 than the noise floor. Between two neighbouring sure
//! sizes of different sides lies a crossing; what is between them is not sure.
//!
//! A crossing is found on the straight lines between the means over ln(size), after they were made
//! monotone in the direction of the change (pool-adjacent-violators: Ayer and others, "An empirical
//! distribution function for sampling with incomplete information", 1955), so that noise around 0
//! makes no crossings of its own. Its interval is that of 4,000 draws: at each size a value from
//! mean + standard error * t with R - 1 degrees of freedom, the crossing found as before, and of the
//! draws the share that the confidence leaves cut off at either end. (A bootstrap over some eight
//! rounds would be too narrow: it knows nothing of t.) That the curve is straight between the sizes
//! that were measured is an assumption, and no part of the interval.
//!
//! By simulation a 95% interval holds a planted crossing 92 to 98 times in 100; the tests say how.
//!
//! Which arms are compared, and at which sizes, is left to the caller.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use serde::Serialize;

use crate::measurements::{Cost, Measurements};
use crate::statistics::{DEFAULT_CONFIDENCE, FEWEST_ROUNDS, Interval, t_interval};
use crate::units::format_bytes;

/// Draws for an interval.
const DRAWS: usize = 4_000;

/// The same curve has the same interval wherever it is reported.
const SEED: u64 = 0x0063_726f_7373_6f76;

/// What was measured at one size.
#[derive(Debug, Clone, PartialEq)]
pub struct SizePoint {
    /// Bytes of a blob.
    pub bytes: f64,
    /// For each round ln(time outside / time inside): above 0 inside is faster.
    pub round_values: Vec<f64>,
    /// Noise floor of the group it was measured in, as a share; 0 if there is none.
    pub noise_floor: f64,
}

/// Ratios at several sizes, in ascending order of the sizes.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    points: Vec<Point>,
}

/// A size with what its rounds say.
#[derive(Debug, Clone, PartialEq)]
struct Point {
    bytes: f64,
    mean: f64,
    standard_error: f64,
    freedom: usize,
    side: Side,
}

/// Where blobs of a size are read or written faster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// In the database.
    Inside,
    /// In files.
    Outside,
    /// It cannot be said.
    NotSure,
}

/// Where the answer turns.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Crossing {
    /// Bytes of a blob at which the ratio is 1.
    pub bytes: f64,
    /// Its interval, in bytes; it ends at the nearest sizes that are sure.
    pub interval: Interval,
    /// Which side is faster below it.
    pub below: Side,
}

/// What follows from a curve.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Crossover {
    /// The side of every size that was measured, in ascending order.
    pub sides: Vec<(f64, Side)>,
    /// All crossings, in ascending order; none if the sure sizes are all of one side.
    pub crossings: Vec<Crossing>,
}

impl Curve {
    /// A curve of the points that have at least two rounds and values that are numbers; `None` if
    /// fewer than two are left.
    #[must_use]
    pub fn new(points: &[SizePoint]) -> Option<Self> {
        let mut points: Vec<Point> = points.iter().filter_map(Point::of).collect();
        points.sort_by(|one, other| one.bytes.total_cmp(&other.bytes));
        points.dedup_by(|one, other| one.bytes == other.bytes);
        (points.len() > 1).then_some(Self { points })
    }

    /// The crossings of the curve, with 95% intervals.
    #[must_use]
    pub fn crossover(&self) -> Crossover {
        self.crossover_by(DRAWS)
    }

    fn crossover_by(&self, draws: usize) -> Crossover {
        let mut random = Random(Xoshiro256PlusPlus::seed_from_u64(SEED));
        let sure: Vec<usize> = (0..self.points.len())
            .filter(|index| self.points[*index].side != Side::NotSure)
            .collect();
        let crossings = sure
            .windows(2)
            .filter(|pair| self.points[pair[0]].side != self.points[pair[1]].side)
            .map(|pair| crossing(&self.points[pair[0]..=pair[1]], draws, &mut random))
            .collect();
        let sides = self.points.iter().map(|point| (point.bytes, point.side));
        Crossover {
            sides: sides.collect(),
            crossings,
        }
    }
}

impl SizePoint {
    /// What a run says of two arms of one group at one size: `outside` is the reference. `None` if
    /// they were not measured in turns.
    #[must_use]
    pub fn of(
        measurements: &Measurements<'_>,
        outside: &str,
        inside: &str,
        bytes: f64,
        cost: Cost,
    ) -> Option<Self> {
        let estimate = measurements.ratio(outside, inside, cost)?;
        let noise_floor = measurements.noise_floor_of(inside, cost);
        estimate.paired.then(|| Self {
            bytes,
            round_values: estimate.round_values,
            noise_floor: noise_floor.unwrap_or(0.0),
        })
    }
}

impl Point {
    fn of(point: &SizePoint) -> Option<Self> {
        if !point.bytes.is_finite() || point.bytes <= 0.0 {
            return None;
        }
        let mean = t_interval(&point.round_values, DEFAULT_CONFIDENCE)?;
        let is_beyond_noise = mean.mean.abs() > point.noise_floor.ln_1p();
        // As everywhere: with few rounds nothing is sure.
        let is_enough = point.round_values.len() >= FEWEST_ROUNDS as usize;
        let side = match (mean.interval.low > 0.0, mean.interval.high < 0.0) {
            (true, _) if is_beyond_noise && is_enough => Side::Inside,
            (_, true) if is_beyond_noise && is_enough => Side::Outside,
            _ => Side::NotSure,
        };
        Some(Self {
            bytes: point.bytes,
            mean: mean.mean,
            standard_error: mean.standard_error,
            freedom: point.round_values.len() - 1,
            side,
        })
    }
}

/// The crossing between two sure points of different sides; what is between them is not sure.
fn crossing(points: &[Point], draws: usize, random: &mut Random) -> Crossing {
    let below = points[0].side;
    // Turned so that values fall from above 0 to below it.
    let sign = if below == Side::Inside { 1.0 } else { -1.0 };
    let places: Vec<f64> = points.iter().map(|point| point.bytes.ln()).collect();
    let means: Vec<f64> = points.iter().map(|point| sign * point.mean).collect();
    let mut draws: Vec<f64> = (0..draws)
        .map(|_| {
            let draw = |point: &Point| {
                let luck = random.student(point.freedom);
                sign * (point.mean + point.standard_error * luck)
            };
            let values: Vec<f64> = points.iter().map(draw).collect();
            zero_of(&places, &falling(&values))
        })
        .collect();
    draws.sort_by(f64::total_cmp);
    let cut = ((1.0 - DEFAULT_CONFIDENCE) / 2.0 * draws.len() as f64) as usize;
    Crossing {
        bytes: zero_of(&places, &falling(&means)).exp(),
        interval: Interval {
            low: draws[cut].exp(),
            high: draws[draws.len() - 1 - cut].exp(),
        },
        below,
    }
}

/// The nearest values, by least squares, of which none is above the one before it.
fn falling(values: &[f64]) -> Vec<f64> {
    let mut blocks: Vec<(f64, usize)> = Vec::with_capacity(values.len());
    for value in values {
        let mut block = (*value, 1);
        while let Some((mean, count)) = blocks.last().copied() {
            if mean >= block.0 {
                break;
            }
            let (sum, together) = (
                mean * count as f64 + block.0 * block.1 as f64,
                count + block.1,
            );
            block = (sum / together as f64, together);
            blocks.pop();
        }
        blocks.push(block);
    }
    blocks
        .into_iter()
        .flat_map(|(mean, count)| std::iter::repeat_n(mean, count))
        .collect()
}

/// Where a falling curve through these points is 0; one that never is, at the end that is nearest.
fn zero_of(places: &[f64], values: &[f64]) -> f64 {
    let last = places.len() - 1;
    if values[0] <= 0.0 {
        return places[0];
    }
    let Some(after) = values.iter().position(|value| *value <= 0.0) else {
        return places[last];
    };
    let before = after - 1;
    let share = values[before] / (values[before] - values[after]);
    places[before] + share * (places[after] - places[before])
}

/// Random numbers for draws.
struct Random(Xoshiro256PlusPlus);

impl Random {
    /// Uniform in [0, 1): the upper 53 bits.
    fn uniform(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Normal with mean 0 and variance 1 (Box and Muller 1958).
    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }

    /// Student's t: a normal number over the root of a mean of squares of others.
    fn student(&mut self, freedom: usize) -> f64 {
        let squares: f64 = (0..freedom).map(|_| self.normal().powi(2)).sum();
        self.normal() / (squares / freedom.max(1) as f64).sqrt()
    }
}

impl Crossover {
    /// The answer in words: `inside below 61.0 kB (95% interval 48.0 kB to 79.0 kB), in files above`.
    #[must_use]
    pub fn in_words(&self) -> String {
        let at = |bytes: f64| format_bytes(bytes.round() as u64);
        let ends = self.sides.first().zip(self.sides.last());
        let Some(((smallest, _), (largest, _))) = ends else {
            return "nothing was measured".to_owned();
        };
        let range = format!("from {} to {}", at(*smallest), at(*largest));
        if let Some(first) = self.crossings.first() {
            let mut words = vec![format!("{} below", first.below.words())];
            for (index, crossing) in self.crossings.iter().enumerate() {
                let is_last = index + 1 == self.crossings.len();
                words.push(format!(
                    "{} (95% interval {} to {}),",
                    at(crossing.bytes),
                    at(crossing.interval.low),
                    at(crossing.interval.high)
                ));
                let above = crossing.below.opposite().words();
                words.push(match is_last {
                    true => format!("{above} above"),
                    false => format!("{above} up to"),
                });
            }
            return words.join(" ");
        }
        let sure = |side: Side| self.sides.iter().any(|(_, found)| *found == side);
        let side = match (sure(Side::Inside), sure(Side::Outside)) {
            (true, _) => Side::Inside,
            (_, true) => Side::Outside,
            _ => return format!("not sure at any size {range}"),
        };
        let unsure: Vec<String> = self
            .sides
            .iter()
            .filter(|(_, side)| *side == Side::NotSure)
            .map(|(bytes, _)| at(*bytes))
            .collect();
        match unsure.as_slice() {
            [] => format!("{} at all sizes {range}", side.words()),
            unsure => format!(
                "{} at the sizes {range} but not sure at {}",
                side.words(),
                unsure.join(", ")
            ),
        }
    }
}

impl Side {
    fn opposite(self) -> Self {
        match self {
            Self::Inside => Self::Outside,
            Self::Outside => Self::Inside,
            Self::NotSure => Self::NotSure,
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Inside => "inside",
            Self::Outside => "in files",
            Self::NotSure => "not sure",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: [f64; 7] = [1e4, 2e4, 5e4, 1e5, 2e5, 5e5, 1e6];

    /// Rounds that are all alike but for a little, around a mean.
    fn point(bytes: f64, mean: f64) -> SizePoint {
        let round_values = (0..8).map(|round| mean + 0.001 * (f64::from(round) - 3.5));
        SizePoint {
            bytes,
            round_values: round_values.collect(),
            noise_floor: 0.01,
        }
    }

    fn of_means(means: &[f64]) -> Crossover {
        let points: Vec<SizePoint> = SIZES
            .iter()
            .zip(means)
            .map(|(bytes, mean)| point(*bytes, *mean))
            .collect();
        Curve::new(&points).expect("a curve").crossover()
    }

    #[test]
    fn one_crossing_is_found_between_its_sizes() {
        // The published table for pages of 4096 bytes: 1.173 at 50k, 0.890 at 100k.
        let published = [2.261f64, 1.886, 1.173, 0.890, 0.701, 0.526, 0.487];
        let found = of_means(&published.map(f64::ln));
        assert_eq!(found.crossings.len(), 1);
        let share = 1.173f64.ln() / (1.173f64.ln() - 0.890f64.ln());
        let expected = 5e4 * 2f64.powf(share);
        let crossing = found.crossings[0];
        assert!((crossing.bytes / expected - 1.0).abs() < 1e-9);
        assert!(crossing.interval.low < expected && expected < crossing.interval.high);
        assert!(crossing.interval.high / crossing.interval.low < 1.02);
        let words = found.in_words();
        assert!(
            words.starts_with("inside below 74.6 kB (95% interval"),
            "{words}"
        );
        assert!(words.ends_with("in files above"), "{words}");
    }

    #[test]
    fn none_always_and_several_are_answered() {
        let always = of_means(&[0.5; 7]);
        assert_eq!(
            always.in_words(),
            "inside at all sizes from 10.0 kB to 1.00 MB"
        );
        let never = of_means(&[-0.5; 7]);
        assert_eq!(
            never.in_words(),
            "in files at all sizes from 10.0 kB to 1.00 MB"
        );
        let nowhere = of_means(&[0.0; 7]);
        assert_eq!(
            nowhere.in_words(),
            "not sure at any size from 10.0 kB to 1.00 MB"
        );
        assert_eq!(nowhere.crossings, []);
        let partly = of_means(&[0.5, 0.4, 0.3, 0.0, 0.0, 0.2, 0.1]);
        assert!(partly.in_words().ends_with("not sure at 100 kB, 200 kB"));
        let twice = of_means(&[-0.2, 0.2, 0.2, 0.2, 0.2, -0.2, -0.2]);
        assert_eq!(twice.crossings.len(), 2);
        assert_eq!(twice.crossings[0].below, Side::Outside);
        let words = twice.in_words();
        assert!(words.starts_with("in files below 14.1 kB"), "{words}");
        assert!(words.contains("inside up to 316 kB"), "{words}");
        assert!(words.ends_with("in files above"), "{words}");
    }

    #[test]
    fn noise_between_sure_sizes_makes_one_crossing() {
        // Up and down around 0: one change of side is all that is sure.
        let found = of_means(&[0.5, 0.3, -0.005, 0.005, -0.004, -0.3, -0.5]);
        assert_eq!(found.crossings.len(), 1);
        let crossing = found.crossings[0];
        assert!(2e4 < crossing.bytes && crossing.bytes < 5e5);
    }

    #[test]
    fn what_is_within_the_noise_floor_is_not_sure() {
        let mut near = point(1e4, 0.05);
        near.noise_floor = 0.06;
        let curve = Curve::new(&[near, point(1e5, -0.05)]).expect("a curve");
        let sides = curve.crossover().sides;
        assert_eq!(sides, [(1e4, Side::NotSure), (1e5, Side::Outside)]);
        assert!(Curve::new(&[point(1e4, 0.1)]).is_none());
        let few = SizePoint {
            bytes: 1e4,
            round_values: vec![0.5, 0.5001, 0.5],
            noise_floor: 0.0,
        };
        let curve = Curve::new(&[few, point(1e5, -0.05)]).expect("a curve");
        assert_eq!(curve.crossover().sides[0].1, Side::NotSure);
    }

    #[test]
    fn falling_values_are_the_nearest() {
        assert_eq!(falling(&[3.0, 1.0, 2.0, 0.0]), [3.0, 1.5, 1.5, 0.0]);
        assert_eq!(falling(&[1.0, 2.0, 3.0]), [2.0, 2.0, 2.0]);
        assert_eq!(falling(&[3.0, 2.0, 1.0]), [3.0, 2.0, 1.0]);
    }

    /// Planted truth: ln ratio falls straight over ln size; eight rounds scatter around it.
    fn coverage(deviation: f64, slope: f64) -> (usize, usize) {
        let mut random = Random(Xoshiro256PlusPlus::seed_from_u64(7));
        let (mut found, mut held) = (0, 0);
        for _ in 0..300 {
            let truth = 3e4 * 8f64.powf(random.uniform());
            let points: Vec<SizePoint> = SIZES
                .iter()
                .map(|bytes| {
                    let mean = -slope * (bytes / truth).ln();
                    let rounds = (0..8).map(|_| mean + deviation * random.normal());
                    SizePoint {
                        bytes: *bytes,
                        round_values: rounds.collect(),
                        noise_floor: 0.0,
                    }
                })
                .collect();
            let curve = Curve::new(&points).expect("a curve");
            let crossover = curve.crossover_by(800);
            if let [crossing] = crossover.crossings.as_slice() {
                found += 1;
                let interval = crossing.interval;
                held += usize::from(interval.low <= truth && truth <= interval.high);
            }
        }
        (found, held)
    }

    #[test]
    fn intervals_hold_a_planted_crossing_as_often_as_they_say() {
        for (deviation, slope) in [(0.01, 0.3), (0.1, 0.3), (0.04, 0.1)] {
            let (found, held) = coverage(deviation, slope);
            assert!(found > 270, "{found} crossings at {deviation}, {slope}");
            let share = held as f64 / found as f64;
            assert!(
                (0.91..=0.99).contains(&share),
                "{share} at {deviation}, {slope}"
            );
        }
    }
}
