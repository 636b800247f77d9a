//! A histogram of whole numbers with a logarithmic scale: exact counts and totals, and quantiles to
//! within a quarter of their value, in a few kilobytes however many numbers there are.

use serde::Serialize;

/// Buckets of each doubling.
const PER_OCTAVE: u32 = 4;
/// The first four numbers have buckets of their own, the 62 doublings from 4 to 2^64 four each.
const BUCKETS: usize = 4 + 62 * PER_OCTAVE as usize;

/// Where the classes of [`LogHistogram::classes`] begin, in bytes: 0, 1, 1 KiB, 4 KiB, 16 KiB, 64 KiB,
/// 256 KiB, 1 MiB, 16 MiB. Published borders between database and files lie between 2 KB and 1 MB.
pub const CLASS_STARTS: [u64; 9] = [
    0,
    1,
    1 << 10,
    4 << 10,
    16 << 10,
    64 << 10,
    256 << 10,
    1 << 20,
    16 << 20,
];

/// Counts and totals of numbers by their size.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(into = "Shown")]
pub struct LogHistogram {
    counts: Vec<u64>,
    totals: Vec<u64>,
    smallest: u64,
    largest: u64,
}

/// One bucket that is not empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Bucket {
    /// Smallest number that belongs here.
    pub low: u64,
    /// Largest number that belongs here.
    pub high: u64,
    /// How many there are.
    pub count: u64,
    /// Their sum.
    pub total: u64,
}

/// A class of sizes and its share of the whole.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ClassShare {
    /// Smallest number of the class.
    pub low: u64,
    /// Smallest number above the class; `None` for the last.
    pub below: Option<u64>,
    /// How many there are.
    pub count: u64,
    /// Their sum.
    pub total: u64,
    /// Part of all numbers, from 0 to 1.
    pub share_of_count: f64,
    /// Part of the sum of all, from 0 to 1.
    pub share_of_total: f64,
}

/// What is written of a histogram.
#[derive(Serialize)]
struct Shown {
    count: u64,
    total: u64,
    minimum: Option<u64>,
    median: Option<u64>,
    p90: Option<u64>,
    p99: Option<u64>,
    maximum: Option<u64>,
    mean: Option<f64>,
    buckets: Vec<Bucket>,
}

impl From<LogHistogram> for Shown {
    fn from(histogram: LogHistogram) -> Self {
        Self {
            count: histogram.count(),
            total: histogram.total(),
            minimum: histogram.minimum(),
            median: histogram.quantile(0.5),
            p90: histogram.quantile(0.9),
            p99: histogram.quantile(0.99),
            maximum: histogram.maximum(),
            mean: histogram.mean(),
            buckets: histogram.buckets().collect(),
        }
    }
}

impl Default for LogHistogram {
    fn default() -> Self {
        Self {
            counts: vec![0; BUCKETS],
            totals: vec![0; BUCKETS],
            smallest: u64::MAX,
            largest: 0,
        }
    }
}

/// Number of the bucket that a number belongs to: its two bits after the leading one decide.
fn bucket_of(number: u64) -> usize {
    if number < 4 {
        return number as usize;
    }
    let octave = number.ilog2();
    let quarter = (number >> (octave - 2)) & 3;
    (4 + (octave - 2) * PER_OCTAVE) as usize + quarter as usize
}

/// Smallest and largest number of a bucket.
fn bounds(bucket: usize) -> (u64, u64) {
    if bucket < 4 {
        return (bucket as u64, bucket as u64);
    }
    let (octave, quarter) = ((bucket as u32 - 4) / PER_OCTAVE, (bucket as u64 - 4) % 4);
    let low = (4 + quarter) << octave;
    (low, low + ((1u64 << octave) - 1))
}

impl LogHistogram {
    /// Counts a number.
    pub fn add(&mut self, number: u64) {
        let bucket = bucket_of(number);
        self.counts[bucket] += 1;
        self.totals[bucket] = self.totals[bucket].saturating_add(number);
        self.smallest = self.smallest.min(number);
        self.largest = self.largest.max(number);
    }

    /// Adds all numbers of another one.
    pub fn merge(&mut self, other: &Self) {
        for (ours, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *ours += theirs;
        }
        for (ours, theirs) in self.totals.iter_mut().zip(&other.totals) {
            *ours = ours.saturating_add(*theirs);
        }
        self.smallest = self.smallest.min(other.smallest);
        self.largest = self.largest.max(other.largest);
    }

    /// How many numbers there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Their sum, or `u64::MAX` if it is more.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.totals.iter().copied().fold(0, u64::saturating_add)
    }

    /// The smallest number, exactly.
    #[must_use]
    pub fn minimum(&self) -> Option<u64> {
        (self.count() > 0).then_some(self.smallest)
    }

    /// The largest number, exactly.
    #[must_use]
    pub fn maximum(&self) -> Option<u64> {
        (self.count() > 0).then_some(self.largest)
    }

    /// Arithmetic mean.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        let count = self.count();
        (count > 0).then(|| self.total() as f64 / count as f64)
    }

    /// The number below which `probability` (0 to 1) of the numbers lie: found by rank, and inside its
    /// bucket by the rank's share of it, so at most one width of a bucket away from the truth (a
    /// quarter of a power of two). `None` without numbers or for what is no probability.
    #[must_use]
    pub fn quantile(&self, probability: f64) -> Option<u64> {
        let count = self.count();
        if count == 0 || !(0.0..=1.0).contains(&probability) {
            return None;
        }
        let rank = ((count - 1) as f64 * probability).round() as u64;
        let mut before = 0;
        for bucket in self.buckets() {
            if rank < before + bucket.count {
                let low = bucket.low.max(self.smallest);
                let width = bucket.high.min(self.largest) - low;
                let share = (rank - before) as f64 / (bucket.count - 1).max(1) as f64;
                return Some(low + (width as f64 * share) as u64);
            }
            before += bucket.count;
        }
        Some(self.largest)
    }

    /// The buckets that are not empty, smallest first.
    pub fn buckets(&self) -> impl Iterator<Item = Bucket> + '_ {
        let filled = (0..BUCKETS).filter(|bucket| self.counts[*bucket] > 0);
        filled.map(|bucket| {
            let (low, high) = bounds(bucket);
            Bucket {
                low,
                high,
                count: self.counts[bucket],
                total: self.totals[bucket],
            }
        })
    }

    /// Counts and totals between powers of two, for a chart: class 0 holds the zeros, class n the
    /// numbers from 2^(n-1) to 2^n - 1. Ends with the last class that is not empty.
    #[must_use]
    pub fn octaves(&self) -> Vec<Bucket> {
        let mut octaves: Vec<Bucket> = Vec::new();
        for bucket in self.buckets() {
            let class = size_class(bucket.low) as usize;
            while octaves.len() <= class {
                let low = if octaves.is_empty() {
                    0
                } else {
                    1 << (octaves.len() - 1)
                };
                octaves.push(Bucket {
                    low,
                    high: if low == 0 { 0 } else { low + (low - 1) },
                    count: 0,
                    total: 0,
                });
            }
            octaves[class].count += bucket.count;
            octaves[class].total = octaves[class].total.saturating_add(bucket.total);
        }
        octaves
    }

    /// Shares of the classes that begin at [`CLASS_STARTS`], empty ones too. Exact: the classes begin
    /// where buckets begin.
    #[must_use]
    pub fn classes(&self) -> Vec<ClassShare> {
        let (count, total) = (self.count(), self.total());
        let mut classes: Vec<ClassShare> = (0..CLASS_STARTS.len())
            .map(|class| ClassShare {
                low: CLASS_STARTS[class],
                below: CLASS_STARTS.get(class + 1).copied(),
                count: 0,
                total: 0,
                share_of_count: 0.0,
                share_of_total: 0.0,
            })
            .collect();
        for bucket in self.buckets() {
            let class = CLASS_STARTS.partition_point(|start| *start <= bucket.low) - 1;
            classes[class].count += bucket.count;
            classes[class].total = classes[class].total.saturating_add(bucket.total);
        }
        for class in &mut classes {
            class.share_of_count = class.count as f64 / count.max(1) as f64;
            class.share_of_total = class.total as f64 / total.max(1) as f64;
        }
        classes
    }
}

/// Number of the doubling that a size belongs to: 0 for 0, n for 2^(n-1) to 2^n - 1.
#[must_use]
pub fn size_class(bytes: u64) -> u32 {
    u64::BITS - bytes.leading_zeros()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn buckets_follow_each_other_without_a_gap() {
        assert_eq!(bounds(0), (0, 0));
        for bucket in 1..BUCKETS {
            assert_eq!(bounds(bucket).0, bounds(bucket - 1).1 + 1, "{bucket}");
        }
        assert_eq!(bounds(BUCKETS - 1).1, u64::MAX);
        for start in CLASS_STARTS {
            assert_eq!(bounds(bucket_of(start)).0, start);
        }
    }

    #[test]
    fn worked_values() {
        let mut histogram = LogHistogram::default();
        assert_eq!(histogram.quantile(0.5), None);
        assert_eq!(histogram.octaves(), []);
        for number in [0, 1, 3, 900, 1024, 5000, 5000, 2_000_000] {
            histogram.add(number);
        }
        assert_eq!(histogram.count(), 8);
        assert_eq!(histogram.total(), 2_011_928);
        assert_eq!(histogram.minimum(), Some(0));
        assert_eq!(histogram.maximum(), Some(2_000_000));
        let classes = histogram.classes();
        let counts: Vec<u64> = classes.iter().map(|class| class.count).collect();
        assert_eq!(counts, [1, 3, 1, 2, 0, 0, 0, 1, 0]);
        assert_eq!(classes[1].total, 904);
        assert!((classes[3].share_of_count - 0.25).abs() < 1e-12);
        let octaves = histogram.octaves();
        assert_eq!(
            (octaves[0].count, octaves[1].count, octaves[2].count),
            (1, 1, 1)
        );
        assert_eq!((octaves[10].low, octaves[10].high), (512, 1023));
        assert_eq!(octaves.last().map(|last| last.count), Some(1));
    }

    proptest! {
        #[test]
        fn every_number_is_in_its_bucket(number: u64) {
            let (low, high) = bounds(bucket_of(number));
            prop_assert!(low <= number && number <= high);
            prop_assert!((high - low) as f64 <= number as f64 / 4.0);
        }

        #[test]
        fn quantiles_are_near_the_true_ones(
            mut numbers in proptest::collection::vec(0..1u64 << 40, 1..300),
            probability in 0.0..=1.0f64,
        ) {
            let mut histogram = LogHistogram::default();
            for number in &numbers {
                histogram.add(*number);
            }
            numbers.sort_unstable();
            let rank = ((numbers.len() - 1) as f64 * probability).round() as usize;
            let exact = numbers[rank] as f64;
            let found = histogram.quantile(probability).expect("numbers") as f64;
            prop_assert!((found - exact).abs() <= exact / 4.0 + 1.0, "{found} {exact}");
            let in_classes: u64 = histogram.classes().iter().map(|class| class.count).sum();
            let in_octaves: u64 = histogram.octaves().iter().map(|class| class.count).sum();
            prop_assert_eq!(in_classes, histogram.count());
            prop_assert_eq!(in_octaves, histogram.count());
        }
    }
}
