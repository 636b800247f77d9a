//! Random bytes to overwrite blobs with, made before the clock starts: a store of them, of which
//! each blob takes a piece.

use sqlitmus_core::dataset::{Dataset, SizeDistribution};

/// The longest piece that is ready beforehand. Longer blobs make the store grow.
pub(super) const LONGEST_READY_BYTES: usize = 16 << 20;

/// How far apart pieces begin: further than most blobs are long, and a prime, so that pieces begin
/// somewhere else in every round through the store.
const STEP_BYTES: usize = 65_537;

/// Bytes that no compressor shrinks, and where the next piece begins.
pub(super) struct RandomBytes {
    source: Dataset,
    bytes: Vec<u8>,
    next: usize,
    /// Times that fresh bytes were made.
    generation: u64,
}

impl RandomBytes {
    /// With enough ready for pieces of up to [`LONGEST_READY_BYTES`].
    pub(super) fn ready() -> Self {
        let mut random = Self::made_on_demand();
        random.bytes.resize(2 * LONGEST_READY_BYTES, 0);
        random.source.fill_slice(0, 0, &mut random.bytes);
        random
    }

    /// With nothing ready: for [`RandomBytes::fresh`] alone.
    pub(super) fn made_on_demand() -> Self {
        Self {
            source: Dataset {
                count: 1,
                size: SizeDistribution::Fixed(0),
                compressibility: 0.0,
                seed: std::process::id().into(),
            },
            bytes: Vec::new(),
            next: 0,
            generation: 0,
        }
    }

    /// A piece of this length that begins elsewhere than those before it.
    #[inline]
    pub(super) fn piece(&mut self, bytes: usize) -> &[u8] {
        if self.bytes.len() < 2 * bytes {
            // Only for blobs beyond the longest that is ready; the clock is running.
            self.generation += 1;
            self.bytes.resize(2 * bytes, 0);
            self.source.fill_slice(0, self.generation, &mut self.bytes);
        }
        let starts = self.bytes.len() - bytes;
        let start = self.next % starts.max(1);
        self.next = start + STEP_BYTES;
        &self.bytes[start..start + bytes]
    }

    /// This many bytes made now, as kvtest does while its clock is running.
    pub(super) fn fresh(&mut self, bytes: usize) -> &[u8] {
        if self.bytes.len() < bytes {
            self.bytes.resize(bytes, 0);
        }
        self.generation += 1;
        self.source
            .fill_slice(0, self.generation, &mut self.bytes[..bytes]);
        &self.bytes[..bytes]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_have_their_length_and_differ() {
        let mut random = RandomBytes::ready();
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..2000 {
            let piece = random.piece(10_000);
            assert_eq!(piece.len(), 10_000);
            assert!(seen.insert(piece[..32].to_vec()));
        }
        assert!(random.piece(0).is_empty());
        assert_eq!(random.piece(LONGEST_READY_BYTES).len(), LONGEST_READY_BYTES);
        assert_eq!(
            random.piece(LONGEST_READY_BYTES + 1).len(),
            LONGEST_READY_BYTES + 1
        );
    }

    #[test]
    fn fresh_bytes_are_new_every_time() {
        let mut random = RandomBytes::made_on_demand();
        let first = random.fresh(100).to_vec();
        let second = random.fresh(50).to_vec();
        assert_eq!((first.len(), second.len()), (100, 50));
        assert_ne!(first[..50], second[..]);
    }
}
