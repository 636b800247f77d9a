//! Where the answer turns: files of one size, in a database and outside, from small sizes to large ones,
//! with everything else as it was for the best database. What is stored is made, since nobody has files
//! of every size; the disk, the settings and the mixture are the user's.
//!
//! At each size reading and writing are groups of their own, each round of which says how many times as
//! fast the database is. A round of the mixture is made of a round of either, weighed as
//! [`super::score::composed`] does; [`crate::crossover`] finds where that crosses 1.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::AdviceRecord;
use super::candidate::{Candidate, EngineSettings, Store, TODAY};
use super::score::mixed_logarithm;
use super::stage::{arm_of, batch_operations, plan_of, read_as, suite_of};
use crate::case::Durability;
use crate::crossover::{Crossover, Curve, SizePoint};
use crate::dataset::{Dataset, SizeDistribution};
use crate::measurements::{Cost, Measurements};
use crate::plan::{Catalogue, Plan};
use crate::statistics::{DEFAULT_CONFIDENCE, Interval, median, t_interval};
use crate::suite::SuiteError;

/// Sizes of the files, in bytes.
pub const SIZES: [u32; 10] = [
    1_000, 3_000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000, 1_000_000, 2_000_000,
];

/// Files of each size come to so many bytes, but are neither fewer nor more than these.
const DATASET_BYTES: u64 = 16_000_000;
const COUNTS: (u64, u64) = (16, 4_000);

/// Most writes of a batch that waits for the device at every write: ten sizes are many.
const MOST_SYNCED_OPERATIONS: u64 = 12;

/// What was swept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sweep {
    /// Name of the candidate whose settings the database had.
    pub inside: String,
    /// Sizes, in bytes.
    pub sizes: Vec<u32>,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SweepResult {
    /// What the report calls the database.
    pub inside: String,
    /// The mixture first, if both is done; then reading and writing.
    pub curves: Vec<SweptCurve>,
}

/// Ratios over sizes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SweptCurve {
    /// What is done.
    pub what: SweptWhat,
    /// By size, ascending.
    pub points: Vec<SweptPoint>,
    /// Where it crosses 1.
    pub crossover: Crossover,
    /// The same in words.
    pub words: String,
}

/// What a curve is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SweptWhat {
    /// Reads and writes as they were asked for.
    Mixture,
    /// Reading alone.
    Reading,
    /// Writing alone.
    Writing,
}

/// One size.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SweptPoint {
    /// Bytes of a file.
    pub bytes: f64,
    /// Time outside divided by time inside.
    pub ratio: f64,
    /// Where it lies with 95% confidence.
    pub interval: Option<Interval>,
}

/// The database that is swept: the best of those that are nothing but a database, of candidates in the
/// order of their speed.
#[must_use]
pub fn inside<'a>(ranked: &[&'a Candidate]) -> Option<&'a Candidate> {
    let mut ranked = ranked.iter().copied();
    ranked.find(|one| one.store == Store::Sqlite)
}

/// The plan of all sizes, of so many rounds each.
///
/// # Errors
/// A candidate that the catalogue does not know.
pub fn plan(
    record: &AdviceRecord,
    inside: &Candidate,
    compressibility: f64,
    (rounds, seed): (u32, u64),
    catalogue: &dyn Catalogue,
) -> Result<Plan, SuiteError> {
    let today = record.candidates.iter().find(|one| one.name == TODAY);
    let today = today.unwrap_or(inside);
    let (mut datasets, mut groups) = (Vec::new(), Vec::new());
    for bytes in SIZES {
        let (fewest, most) = COUNTS;
        let count = (DATASET_BYTES / u64::from(bytes)).clamp(fewest, most);
        let dataset = Dataset {
            count,
            size: SizeDistribution::Fixed(bytes),
            compressibility,
            seed,
        };
        if record.wish.reads > 0 {
            // Reading copies as the files are read today; own files of one size nobody has.
            let outside = EngineSettings::new("files", &[&[("api", "open"), ("layout", "tree")]]);
            let workload = json!({"kind": "read", "order": "random"});
            let mut group = group(Half::Read, bytes, workload, [&outside, &inside.reading]);
            group["rounds"] = json!(rounds);
            read_as(&mut group, record.wish.reading());
            groups.push(group);
        }
        if record.wish.writes > 0 {
            let durability = record.wish.durability;
            let mut operations = batch_operations(&dataset, durability);
            if durability == Durability::PowerLoss {
                operations = operations.min(MOST_SYNCED_OPERATIONS);
            }
            let workload =
                json!({"kind": "overwrite", "order": "random", "operations": operations});
            let arms = [&today.writing, &inside.writing];
            let mut group = group(Half::Write, bytes, workload, arms);
            group["rounds"] = json!(rounds);
            group["slices"] = json!(3);
            group["durability"] = json!(durability);
            groups.push(group);
        }
        datasets.push((dataset_name(bytes), dataset));
    }
    let datasets: Vec<(String, &Dataset)> = datasets
        .iter()
        .map(|(name, dataset)| (name.clone(), dataset))
        .collect();
    let suite = suite_of(record, &datasets, &groups, &[])?;
    let mut plan = plan_of(record, &suite, seed, catalogue)?;
    // It has a chart of its own.
    plan.charts.clear();
    Ok(plan)
}

/// What is done in one group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Half {
    Read,
    Write,
}

fn dataset_name(bytes: u32) -> String {
    format!("of-{bytes}")
}

fn group_name(half: Half, bytes: u32) -> String {
    match half {
        Half::Read => format!("sweep-read-{bytes}"),
        Half::Write => format!("sweep-write-{bytes}"),
    }
}

fn arm_names(half: Half, bytes: u32) -> [String; 2] {
    let group = group_name(half, bytes);
    [format!("{group}.outside"), format!("{group}.inside")]
}

fn group(half: Half, bytes: u32, workload: Value, engines: [&EngineSettings; 2]) -> Value {
    let names = arm_names(half, bytes);
    let labels = ["files", "the database"];
    let arms: Vec<Value> = (0..2)
        .map(|arm| arm_of(&names[arm], labels[arm], engines[arm]))
        .collect();
    json!({
        "name": group_name(half, bytes),
        "dataset": dataset_name(bytes),
        "workload": workload,
        "cache": "warm",
        // Reading has none; groups that write set theirs.
        "durability": "none",
        "baseline": names[0],
        "rounds": 1,
        "slices": 1,
        "arm": arms,
    })
}

/// What a run says of it; `None` if nothing was swept, or at too few sizes.
#[must_use]
pub fn result(record: &AdviceRecord, measurements: &Measurements<'_>) -> Option<SweepResult> {
    let sweep = record.sweep.as_ref()?;
    let mut candidates = record.candidates.iter();
    let inside = candidates.find(|one| one.name == sweep.inside)?;
    let point = |half: Half, bytes: u32| {
        let [outside, inside] = arm_names(half, bytes);
        let bytes = f64::from(bytes);
        SizePoint::of(measurements, &outside, &inside, bytes, Cost::Acknowledged)
    };
    let of = |half: Half| -> Vec<SizePoint> {
        let sizes = sweep.sizes.iter();
        sizes.filter_map(|bytes| point(half, *bytes)).collect()
    };
    let (reading, writing) = (of(Half::Read), of(Half::Write));
    let mixed = |read: &SizePoint| {
        let write = writing.iter().find(|write| write.bytes == read.bytes)?;
        let weight = weight_of_reading(record, measurements, read.bytes as u32)?;
        Some(mixture(read, write, weight))
    };
    let mixture: Vec<SizePoint> = reading.iter().filter_map(mixed).collect();
    let curves = [
        (SweptWhat::Mixture, mixture),
        (SweptWhat::Reading, reading.clone()),
        (SweptWhat::Writing, writing.clone()),
    ];
    let curves: Vec<SweptCurve> = curves
        .into_iter()
        .filter_map(|(what, points)| curve(what, &points))
        .collect();
    (!curves.is_empty()).then(|| SweepResult {
        inside: inside.label.clone(),
        curves,
    })
}

/// Share of the time of files that goes into reading, at one size.
fn weight_of_reading(
    record: &AdviceRecord,
    measurements: &Measurements<'_>,
    bytes: u32,
) -> Option<f64> {
    let outside_ns = |half: Half| {
        let [outside, _] = arm_names(half, bytes);
        median(&measurements.round_values(&outside, Cost::Acknowledged))
    };
    let share = record.wish.read_share();
    let (read_ns, write_ns) = (outside_ns(Half::Read)?, outside_ns(Half::Write)?);
    let whole_ns = share * read_ns + (1.0 - share) * write_ns;
    (whole_ns > 0.0).then(|| share * read_ns / whole_ns)
}

/// Rounds of both made one: ln(1 / (s / R + (1 - s) / W)) of each pair of rounds.
fn mixture(read: &SizePoint, write: &SizePoint, weight: f64) -> SizePoint {
    let rounds = read.round_values.iter().zip(&write.round_values);
    let mixed = |(read, write): (&f64, &f64)| mixed_logarithm(weight, *read, *write);
    SizePoint {
        bytes: read.bytes,
        round_values: rounds.map(mixed).collect(),
        noise_floor: read.noise_floor.max(write.noise_floor),
    }
}

fn curve(what: SweptWhat, points: &[SizePoint]) -> Option<SweptCurve> {
    let crossover = Curve::new(points)?.crossover();
    let point = |point: &SizePoint| {
        let mean = t_interval(&point.round_values, DEFAULT_CONFIDENCE)?;
        let interval = Interval {
            low: mean.interval.low.exp(),
            high: mean.interval.high.exp(),
        };
        Some(SweptPoint {
            bytes: point.bytes,
            ratio: mean.mean.exp(),
            interval: Some(interval),
        })
    };
    Some(SweptCurve {
        what,
        points: points.iter().filter_map(point).collect(),
        words: crossover.in_words(),
        crossover,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_of_a_mixture_are_ratios_of_total_times() {
        let point = |ratio: f64, floor| SizePoint {
            bytes: 1e4,
            round_values: vec![ratio.ln(); 3],
            noise_floor: floor,
        };
        // Files: 9 of 10 time units into reading; 2 times and half as fast.
        let found = mixture(&point(2.0, 0.01), &point(0.5, 0.03), 0.9);
        assert_eq!(found.round_values.len(), 3);
        assert!((found.round_values[0].exp() - 10.0 / (4.5 + 2.0)).abs() < 1e-12);
        assert!((found.noise_floor - 0.03).abs() < 1e-12);
    }
}
