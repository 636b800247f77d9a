//! What is written: batches of blobs that say of every sector which blob, which generation and
//! which place in it they belong to, so that whatever is found can be told apart: old, new, a mixture
//! of both, emptiness, zeros, or something else.

use serde::{Deserialize, Serialize};

use crate::dataset::{bounded, digest, mix};

/// The unit that devices write at once, bytes; every one can be recognised alone.
pub const SECTOR_BYTES: usize = 512;

/// Sectors of the smallest and of the largest blob: 1 to 24 KiB, so that blobs have one to six
/// pages, and pages that are not full.
const SECTORS: (u64, u64) = (2, 48);

/// How a sector begins.
const MAGIC: u64 = u64::from_le_bytes(*b"sqlitmus");

/// Where the head of a sector ends, and where the digest of all before it begins.
const HEAD_BYTES: usize = 32;
const DIGEST_AT: usize = SECTOR_BYTES - 8;

/// Which blobs are written when: all of it follows from the seed. Batch 0 is the filling, which has
/// all keys; a blob's generation is the number of the batch that wrote it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Batches {
    /// Number of keys; they are 1 to `keys`.
    pub keys: u64,
    /// Blobs in a batch, all different.
    pub blobs: u64,
    /// Everything random follows from it.
    pub seed: u64,
}

impl Batches {
    /// The keys that a batch writes, in the order of writing.
    #[must_use]
    pub fn keys_of(&self, batch: u64) -> Vec<u64> {
        if batch == 0 {
            return (1..=self.keys).collect();
        }
        let mut keys = Vec::new();
        let mut random = mix(self.seed ^ mix(batch));
        while (keys.len() as u64) < self.blobs.min(self.keys) {
            random = mix(random);
            let key = 1 + bounded(random, self.keys);
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        keys
    }

    /// Size of a blob in bytes: the same in every generation.
    #[must_use]
    pub fn value_bytes(&self, key: u64) -> usize {
        let (least, most) = SECTORS;
        let sectors = least + bounded(mix(self.seed ^ mix(key << 32)), most - least + 1);
        sectors as usize * SECTOR_BYTES
    }

    /// The content of a blob.
    #[must_use]
    pub fn value(&self, key: u64, batch: u64) -> Vec<u8> {
        let bytes = self.value_bytes(key);
        let sectors = (bytes / SECTOR_BYTES) as u64;
        let mut value = Vec::with_capacity(bytes);
        for index in 0..sectors {
            let start = value.len();
            for word in [MAGIC, key, batch, index | sectors << 32] {
                value.extend_from_slice(&word.to_le_bytes());
            }
            let mut filler = mix(key ^ mix(batch ^ mix(index)));
            while value.len() < start + DIGEST_AT {
                value.extend_from_slice(&filler.to_le_bytes());
                filler = mix(filler);
            }
            let digest = digest(&value[start..]);
            value.extend_from_slice(&digest.to_le_bytes());
        }
        value
    }
}

/// What was found under a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Found {
    /// All of a blob, as that batch wrote it.
    Whole(u64),
    /// No bytes.
    Empty,
    /// Only zeros.
    Zeros,
    /// Sectors of this blob from several batches.
    Mixed,
    /// Part of a blob: too short, or with sectors that are zero or nobody's.
    Broken,
    /// No blob.
    Missing,
    /// The store gave an error.
    Unreadable,
}

impl Found {
    /// The batch, if the blob is whole.
    #[must_use]
    pub fn batch(self) -> Option<u64> {
        match self {
            Self::Whole(batch) => Some(batch),
            _ => None,
        }
    }
}

/// What the bytes found under a key are.
#[must_use]
pub fn examine(key: u64, bytes: &[u8]) -> Found {
    if bytes.is_empty() {
        return Found::Empty;
    }
    if bytes.iter().all(|byte| *byte == 0) {
        return Found::Zeros;
    }
    let sectors: Vec<_> = bytes
        .chunks(SECTOR_BYTES)
        .map(|sector| read_sector(key, sector))
        .collect();
    let count = sectors.len() as u64;
    let is_in_place = |(index, sector): (usize, &Option<Sector>)| {
        sector.is_some_and(|sector| sector.index == index as u64 && sector.sectors == count)
    };
    if !sectors.iter().enumerate().all(is_in_place) {
        return Found::Broken;
    }
    let mut batches = sectors.iter().flatten().map(|sector| sector.batch);
    match batches.next() {
        Some(first) if batches.all(|batch| batch == first) => Found::Whole(first),
        _ => Found::Mixed,
    }
}

#[derive(Debug, Clone, Copy)]
struct Sector {
    batch: u64,
    index: u64,
    sectors: u64,
}

/// What a sector says, if it is one of this key's and undamaged.
fn read_sector(key: u64, sector: &[u8]) -> Option<Sector> {
    let word = |at: usize| {
        let bytes = sector.get(at..at + 8)?;
        Some(u64::from_le_bytes(bytes.try_into().ok()?))
    };
    let is_ours = word(0)? == MAGIC && word(8)? == key;
    let place = word(HEAD_BYTES - 8)?;
    (is_ours && word(DIGEST_AT)? == digest(&sector[..DIGEST_AT])).then_some(Sector {
        batch: word(16)?,
        index: place & 0xFFFF_FFFF,
        sectors: place >> 32,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const BATCHES: Batches = Batches {
        keys: 24,
        blobs: 3,
        seed: 7,
    };

    #[test]
    fn batches_have_different_keys_and_sizes_stay() {
        let mut seen = [false; 25];
        for batch in 1..200 {
            let mut keys = BATCHES.keys_of(batch);
            keys.iter().for_each(|key| seen[*key as usize] = true);
            keys.sort_unstable();
            keys.dedup();
            assert_eq!(keys.len(), 3);
        }
        assert!(seen[1..].iter().all(|seen| *seen));
        for key in 1..=BATCHES.keys {
            let bytes = BATCHES.value_bytes(key);
            assert!((1024..=24576).contains(&bytes));
            assert_eq!(BATCHES.value(key, 5).len(), bytes);
        }
    }

    #[test]
    fn everything_that_can_be_found_is_told_apart() {
        let (old, new) = (BATCHES.value(3, 4), BATCHES.value(3, 9));
        assert_eq!(examine(3, &old), Found::Whole(4));
        assert_eq!(examine(3, &new), Found::Whole(9));
        assert_eq!(examine(3, &[]), Found::Empty);
        assert_eq!(examine(3, &vec![0; new.len()]), Found::Zeros);
        let mut mixed = new.clone();
        mixed[SECTOR_BYTES..2 * SECTOR_BYTES].copy_from_slice(&old[SECTOR_BYTES..2 * SECTOR_BYTES]);
        assert_eq!(examine(3, &mixed), Found::Mixed);
        assert_eq!(examine(3, &new[..SECTOR_BYTES]), Found::Broken);
        assert_eq!(examine(3, &new[..100]), Found::Broken);
        let mut holed = new.clone();
        holed[..SECTOR_BYTES].fill(0);
        assert_eq!(examine(3, &holed), Found::Broken);
        // Another key's blob, whole as it is.
        assert_eq!(examine(2, &new), Found::Broken);
        let mut flipped = new.clone();
        flipped[SECTOR_BYTES + 300] ^= 1;
        assert_eq!(examine(3, &flipped), Found::Broken);
        // The right sectors in the wrong order.
        let mut swapped = new;
        swapped.rotate_left(SECTOR_BYTES);
        assert_eq!(examine(3, &swapped), Found::Broken);
    }
}
