//! Datasets: how many blobs, how large, and which bytes. Sizes and bytes follow from the seed and
//! the key alone, so that any byte that was read can be verified without keeping a copy.
//!
//! Every blob carries its *generation* (how often it was rewritten) in its first eight bytes, so
//! that a store that has been overwritten for hours can still be verified blob by blob.
//! Storing the bytes is the engines' business.

use rand_core::Rng;
use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::{Deserialize, Serialize};

/// A set of blobs with the keys 1 to `count`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dataset {
    /// Number of blobs; at least 1.
    pub count: u64,
    /// Sizes of the blobs.
    pub size: SizeDistribution,
    /// Share of every blob that a compressor can remove: 0 (random bytes) to 1.
    #[serde(default)]
    pub compressibility: f64,
    /// Everything random follows from it. Not part of a case's identity.
    #[serde(default)]
    pub seed: u64,
}

/// How the sizes of blobs are distributed, in bytes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum SizeDistribution {
    /// All the same.
    Fixed(u32),
    /// Every size from the first to the second, both included, equally likely.
    Uniform(u32, u32),
    /// The logarithm is normal: `median` bytes, `sigma` of the natural logarithm, none above
    /// `maximum`.
    LogNormal {
        /// Median size in bytes.
        median: u32,
        /// Standard deviation of the natural logarithm of the size.
        sigma: f64,
        /// Sizes above are cut to it.
        maximum: u32,
    },
    /// Sizes with weights.
    Histogram(Vec<(u32, u32)>),
    /// Those of files that are there. Generation 0 of a blob is the content of its file, which whoever
    /// reads files has to provide; later generations are made as for every dataset.
    Files(FileSizes),
}

/// Sizes of a sample of somebody's files: blob 1 is the first of them.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileSizes {
    /// Tells samples apart: a digest of where the files are, their names and their sizes, in
    /// hexadecimal digits.
    pub identity: String,
    /// Bytes of each file.
    pub bytes: Vec<u32>,
}

/// Without the sizes: the identity stands for them, and there may be many.
impl std::fmt::Debug for FileSizes {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            formatter,
            "FileSizes({}, {})",
            self.identity,
            self.bytes.len()
        )
    }
}

/// What is wrong with a dataset's description.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DatasetError {
    /// No blobs.
    #[error("a dataset needs at least one blob")]
    Empty,
    /// More keys than the schedule can permute.
    #[error("a dataset has at most {} blobs", u32::MAX)]
    TooMany,
    /// Sizes that cannot be.
    #[error("the sizes are impossible: {0}")]
    Sizes(&'static str),
    /// Compressibility outside 0 to 1.
    #[error("compressibility is a number from 0 to 1")]
    Compressibility,
}

/// SQLite's default limit for one blob is 1,000,000,000 bytes; every engine stores that much.
pub const MAXIMUM_BLOB_BYTES: u32 = 1_000_000_000;

/// Bytes at the start of a blob that carry its generation.
pub const GENERATION_BYTES: usize = 8;

impl Dataset {
    /// Checks the description.
    ///
    /// # Errors
    /// Says what is impossible.
    pub fn validate(&self) -> Result<(), DatasetError> {
        if self.count == 0 {
            return Err(DatasetError::Empty);
        }
        if self.count > u64::from(u32::MAX) {
            return Err(DatasetError::TooMany);
        }
        if !(0.0..=1.0).contains(&self.compressibility) {
            return Err(DatasetError::Compressibility);
        }
        let largest = match &self.size {
            SizeDistribution::Fixed(bytes) => *bytes,
            SizeDistribution::Uniform(low, high) if low > high => {
                return Err(DatasetError::Sizes("the smallest is above the largest"));
            }
            SizeDistribution::Uniform(_, high) => *high,
            SizeDistribution::LogNormal { sigma, .. } if !(0.0..=10.0).contains(sigma) => {
                return Err(DatasetError::Sizes("sigma is a number from 0 to 10"));
            }
            SizeDistribution::LogNormal { maximum, .. } => *maximum,
            SizeDistribution::Histogram(classes) => {
                if classes.iter().all(|(_, weight)| *weight == 0) {
                    return Err(DatasetError::Sizes("the histogram has no weight"));
                }
                classes.iter().map(|(bytes, _)| *bytes).max().unwrap_or(0)
            }
            SizeDistribution::Files(files) if files.bytes.len() as u64 != self.count => {
                return Err(DatasetError::Sizes("there is not one file for each blob"));
            }
            SizeDistribution::Files(files) => files.bytes.iter().copied().max().unwrap_or(0),
        };
        if largest > MAXIMUM_BLOB_BYTES {
            return Err(DatasetError::Sizes(
                "a blob has at most 1,000,000,000 bytes",
            ));
        }
        Ok(())
    }

    /// Size of a blob in bytes; the same for all its generations.
    #[must_use]
    pub fn value_bytes(&self, key: u64) -> usize {
        let mut stream = self.stream(key, u64::MAX);
        let bytes = match &self.size {
            SizeDistribution::Fixed(bytes) => *bytes,
            SizeDistribution::Files(files) => {
                let index = usize::try_from(key).ok().and_then(|key| key.checked_sub(1));
                let found = index.and_then(|index| files.bytes.get(index));
                found.copied().unwrap_or(0)
            }
            SizeDistribution::Uniform(low, high) => {
                let span = u64::from(high - low) + 1;
                low + bounded(stream.next_u64(), span) as u32
            }
            SizeDistribution::LogNormal {
                median,
                sigma,
                maximum,
            } => {
                let size = f64::from(*median) * (sigma * standard_normal(&mut stream)).exp();
                size.min(f64::from(*maximum)) as u32
            }
            SizeDistribution::Histogram(classes) => {
                let total = classes.iter().map(|(_, weight)| u64::from(*weight)).sum();
                let mut ticket = bounded(stream.next_u64(), total);
                let mut chosen = 0;
                for (bytes, weight) in classes {
                    chosen = *bytes;
                    if ticket < u64::from(*weight) {
                        break;
                    }
                    ticket -= u64::from(*weight);
                }
                chosen
            }
        };
        bytes as usize
    }

    /// Bytes of all blobs together.
    #[must_use]
    pub fn total_bytes(&self) -> u64 {
        match self.size {
            SizeDistribution::Fixed(bytes) => self.count * u64::from(bytes),
            _ => (1..=self.count)
                .map(|key| self.value_bytes(key) as u64)
                .sum(),
        }
    }

    /// Replaces the contents of `buffer` with one generation of a blob.
    pub fn fill(&self, key: u64, generation: u64, buffer: &mut Vec<u8>) {
        buffer.resize(self.value_bytes(key), 0);
        self.fill_slice(key, generation, buffer);
    }

    /// Writes one generation of a blob over `bytes`, which has the blob's size.
    pub fn fill_slice(&self, key: u64, generation: u64, bytes: &mut [u8]) {
        let mut stream = self.stream(key, generation);
        // Compressible bytes stand at the end: one run of zeros, which every compressor removes.
        let random = (bytes.len() as f64 * (1.0 - self.compressibility)).ceil() as usize;
        let random = random
            .max(GENERATION_BYTES.min(bytes.len()))
            .min(bytes.len());
        stream.fill_bytes(&mut bytes[..random]);
        bytes[random..].fill(0);
        let mark = (generation ^ self.mask(key)).to_le_bytes();
        let marked = GENERATION_BYTES.min(bytes.len());
        bytes[..marked].copy_from_slice(&mark[..marked]);
    }

    /// Which generation of the blob these bytes are; `None` if they are none of them.
    ///
    /// `scratch` is working memory. Blobs of fewer than eight bytes keep only the low bytes of
    /// their generation, which is then what is returned.
    #[must_use]
    pub fn verify(&self, key: u64, bytes: &[u8], scratch: &mut Vec<u8>) -> Option<u64> {
        let mut mark = self.mask(key).to_le_bytes();
        for (mark, byte) in mark.iter_mut().zip(bytes) {
            *mark ^= byte;
        }
        for unknown in mark.iter_mut().skip(bytes.len()) {
            *unknown = 0;
        }
        let generation = u64::from_le_bytes(mark);
        self.fill(key, generation, scratch);
        (scratch.as_slice() == bytes).then_some(generation)
    }

    fn stream(&self, key: u64, generation: u64) -> Xoshiro256PlusPlus {
        Xoshiro256PlusPlus::seed_from_u64(mix(self.seed ^ mix(key ^ mix(generation))))
    }

    fn mask(&self, key: u64) -> u64 {
        mix(self.seed.rotate_left(32) ^ mix(!key))
    }
}

/// The finaliser of SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number
/// generators", 2014): a bijection that spreads every input bit over all output bits.
#[must_use]
pub fn mix(value: u64) -> u64 {
    let mut mixed = value.wrapping_add(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

/// Maps 64 random bits to `0..span` by multiplication (Lemire: "Fast random integer generation in
/// an interval", 2019, without the rejection step: the bias is below span / 2^64).
#[must_use]
pub fn bounded(random: u64, span: u64) -> u64 {
    ((u128::from(random) * u128::from(span)) >> 64) as u64
}

/// One standard normal number (Box and Muller, 1958).
fn standard_normal(stream: &mut Xoshiro256PlusPlus) -> f64 {
    let unit = |bits: u64| ((bits >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
    let radius = (-2.0 * unit(stream.next_u64()).ln()).sqrt();
    radius * (2.0 * std::f64::consts::PI * unit(stream.next_u64())).cos()
}

/// What the workload makes of the bytes it is given: one 8-byte load for every 64-byte line,
/// added up. Touches every cache line, costs the same for every engine, and can be compared with
/// a sum made beforehand.
#[inline]
#[must_use]
pub fn consume(bytes: &[u8]) -> u64 {
    let mut sum = bytes.len() as u64;
    let mut lines = bytes.chunks_exact(64);
    for line in &mut lines {
        let (word, _) = line.split_at(8);
        sum = sum.wrapping_add(u64::from_le_bytes([
            word[0], word[1], word[2], word[3], word[4], word[5], word[6], word[7],
        ]));
    }
    for (position, byte) in lines.remainder().iter().take(8).enumerate() {
        sum = sum.wrapping_add(u64::from(*byte) << (8 * position));
    }
    sum
}

/// A 64-bit digest of all bytes: every 8-byte word is mixed in by a bijection of the state, so
/// that any single difference changes it. For finding mistakes, not for adversaries.
#[must_use]
pub fn digest(bytes: &[u8]) -> u64 {
    const ODD: u64 = 0x9FB2_1C65_1E98_DF25;
    let mut words = bytes.chunks_exact(8);
    let mut state = mix(bytes.len() as u64);
    for word in &mut words {
        let word = u64::from_le_bytes([
            word[0], word[1], word[2], word[3], word[4], word[5], word[6], word[7],
        ]);
        state = (state ^ word).wrapping_mul(ODD).rotate_left(29);
    }
    for byte in words.remainder() {
        state = (state ^ u64::from(*byte)).wrapping_mul(ODD).rotate_left(29);
    }
    mix(state)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digest_sees_every_byte() {
        let mut bytes = vec![7u8; 29];
        let plain = digest(&bytes);
        for index in 0..bytes.len() {
            bytes[index] ^= 0x40;
            assert_ne!(digest(&bytes), plain);
            bytes[index] ^= 0x40;
        }
        assert_ne!(digest(&bytes[..28]), plain);
    }

    fn dataset(size: SizeDistribution) -> Dataset {
        Dataset {
            count: 1000,
            size,
            compressibility: 0.0,
            seed: 7,
        }
    }

    #[test]
    fn sizes_stay_in_their_range_and_reach_both_ends() {
        let data = dataset(SizeDistribution::Uniform(10, 14));
        let sizes: std::collections::BTreeSet<_> =
            (1..=1000).map(|key| data.value_bytes(key)).collect();
        assert_eq!(sizes, (10..=14).collect());
    }

    #[test]
    fn lognormal_has_its_median() {
        let data = dataset(SizeDistribution::LogNormal {
            median: 5000,
            sigma: 1.0,
            maximum: 1_000_000,
        });
        let below = (1..=1000)
            .filter(|key| data.value_bytes(*key) < 5000)
            .count();
        assert!((440..560).contains(&below), "{below}");
    }

    #[test]
    fn histogram_follows_its_weights() {
        let data = dataset(SizeDistribution::Histogram(vec![
            (100, 9),
            (200, 1),
            (300, 0),
        ]));
        let small = (1..=1000)
            .filter(|key| data.value_bytes(*key) == 100)
            .count();
        assert!((860..940).contains(&small), "{small}");
        assert!((1..=1000).all(|key| data.value_bytes(key) != 300));
    }

    #[test]
    fn content_is_verified_with_its_generation() {
        let mut scratch = Vec::new();
        let mut bytes = Vec::new();
        for size in [0, 1, 7, 8, 9, 63, 64, 65, 4096] {
            let data = dataset(SizeDistribution::Fixed(size));
            for generation in [0, 1, 200] {
                data.fill(3, generation, &mut bytes);
                let found = data.verify(3, &bytes, &mut scratch);
                let expected = if size == 0 { 0 } else { generation };
                assert_eq!(found, Some(expected), "size {size}");
            }
            if size > 8 {
                let last = bytes.len() - 1;
                bytes[last] ^= 1;
                assert_eq!(data.verify(3, &bytes, &mut scratch), None);
                bytes[last] ^= 1;
                assert_eq!(data.verify(4, &bytes, &mut scratch), None);
                assert_eq!(data.verify(3, &bytes[..last], &mut scratch), None);
            }
        }
    }

    #[test]
    fn sizes_of_files_are_theirs_and_one_a_blob() {
        let files = FileSizes {
            identity: "1f".to_owned(),
            bytes: vec![0, 5, 70_000],
        };
        let mut data = dataset(SizeDistribution::Files(files));
        assert!(data.validate().is_err(), "three sizes for 1000 blobs");
        data.count = 3;
        assert_eq!(data.validate(), Ok(()));
        assert_eq!(data.total_bytes(), 70_005);
        assert_eq!([1, 2, 3].map(|key| data.value_bytes(key)), [0, 5, 70_000]);
        let (mut bytes, mut scratch) = (Vec::new(), Vec::new());
        data.fill(3, 9, &mut bytes);
        assert_eq!(data.verify(3, &bytes, &mut scratch), Some(9));
        // What it is called in messages and paths does not grow with the number of files.
        assert_eq!(format!("{:?}", data.size), "Files(FileSizes(1f, 3))");
    }

    #[test]
    fn compressible_share_is_zeros() {
        let mut data = dataset(SizeDistribution::Fixed(10_000));
        data.compressibility = 0.75;
        let mut bytes = Vec::new();
        data.fill(1, 0, &mut bytes);
        let zeros = bytes.iter().filter(|byte| **byte == 0).count();
        assert!((7500..7560).contains(&zeros), "{zeros}");
    }

    #[test]
    fn consume_sees_every_line_and_the_length() {
        let mut bytes = vec![0u8; 200];
        let plain = consume(&bytes);
        for line in 0..4 {
            bytes[line * 64] ^= 1;
            assert_ne!(consume(&bytes), plain);
            bytes[line * 64] ^= 1;
        }
        assert_ne!(consume(&bytes[..199]), plain);
    }

    #[test]
    fn impossible_descriptions_are_refused() {
        let mut data = dataset(SizeDistribution::Uniform(5, 4));
        assert!(data.validate().is_err());
        data.size = SizeDistribution::Fixed(1);
        assert_eq!(data.validate(), Ok(()));
        data.count = 0;
        assert_eq!(data.validate(), Err(DatasetError::Empty));
    }
}
