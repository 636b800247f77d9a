//! The part of the suite about one session: what is stored comes back, changes, and goes.

use sqlitmus_core::dataset::mix;

use super::Trial;

/// The largest blob that every engine is tried with, in bytes.
const LARGE_BYTES: usize = 8 << 20;

/// Sizes around what engines and devices cut bytes into.
const SIZES: [usize; 14] = [
    0, 1, 7, 8, 100, 511, 4_095, 4_096, 4_097, 10_000, 65_535, 65_536, 65_537, 1_000_000,
];

/// Some bytes that follow from a seed.
pub(super) fn blob(seed: u64, bytes: usize) -> Vec<u8> {
    (0..bytes.div_ceil(8) as u64)
        .flat_map(|word| mix(seed << 32 | word).to_le_bytes())
        .take(bytes)
        .collect()
}

impl Trial<'_> {
    pub(super) fn blobs_come_back(&self) {
        let store = self.create("round-trip");
        let mut session = self.session(&*store);
        let mut blobs: Vec<(u64, Vec<u8>)> = (1..)
            .zip(SIZES)
            .map(|(key, bytes)| (key, blob(key, bytes)))
            .collect();
        let key_of_large = blobs.len() as u64 + 1;
        blobs.push((key_of_large, blob(key_of_large, LARGE_BYTES)));
        self.put(
            &mut *session,
            blobs.iter().map(|(key, value)| (*key, value)),
        );
        for (key, value) in &blobs {
            self.expect_blob(&mut *session, *key, value);
        }
        // Again, and backwards: a buffer that is used again must not show what was there before.
        for (key, value) in blobs.iter().rev() {
            self.expect_blob(&mut *session, *key, value);
        }
    }

    pub(super) fn missing_keys_are_missing(&self) {
        let store = self.create("missing-keys");
        let mut session = self.session(&*store);
        self.expect_missing(&mut *session, 1);
        self.expect_keys(&mut *session, &[]);
        let value = blob(1, 100);
        self.put(&mut *session, [(5, &value)]);
        for key in [0, 1, 4, 6, 105, 10_005, 1_000_005] {
            self.expect_missing(&mut *session, key);
        }
        self.expect_blob(&mut *session, 5, &value);
    }

    pub(super) fn blobs_are_overwritten(&self) {
        let store = self.create("overwritten");
        let mut session = self.session(&*store);
        let neighbour = blob(1, 9_000);
        self.put(&mut *session, [(1, &neighbour), (3, &neighbour)]);
        let sizes = [
            10_000, 10_000, 9_999, 10_001, 100, 0, 50_000, 50_000, 1, 300_000, 10,
        ];
        for (seed, bytes) in (100..).zip(sizes) {
            let value = blob(seed, bytes);
            self.put(&mut *session, [(2, &value)]);
            self.expect_blob(&mut *session, 2, &value);
            let writer = session.writer().expect("it wrote just now");
            self.done("settle", writer.settle());
            self.expect_blob(&mut *session, 2, &value);
        }
        self.expect_blob(&mut *session, 1, &neighbour);
        self.expect_blob(&mut *session, 3, &neighbour);
        self.expect_keys(&mut *session, &[1, 2, 3]);
    }

    pub(super) fn blobs_are_deleted(&self) {
        let store = self.create("deleted");
        let mut session = self.session(&*store);
        let value = blob(1, 10_000);
        self.put(&mut *session, [(1, &value), (2, &value)]);
        self.write(&mut *session, |writer| {
            assert!(self.done("delete", writer.delete(1)), "there was a blob");
            assert!(!self.done("delete", writer.delete(1)), "it is gone");
            assert!(!self.done("delete", writer.delete(7)), "there was none");
        });
        self.expect_missing(&mut *session, 1);
        self.expect_blob(&mut *session, 2, &value);
        self.expect_keys(&mut *session, &[2]);
        let other = blob(2, 5_000);
        self.put(&mut *session, [(1, &other)]);
        self.expect_blob(&mut *session, 1, &other);
    }

    pub(super) fn keys_are_in_order(&self) {
        let store = self.create("key-order");
        let mut session = self.session(&*store);
        // Beyond six digits, and each side of the borders between folders.
        let keys = [
            1_000_000,
            99,
            1,
            10_000,
            101,
            9_999,
            100,
            123_456_789,
            12_345,
            999_999,
            2,
        ];
        let values: Vec<(u64, Vec<u8>)> = keys.iter().map(|key| (*key, blob(*key, 50))).collect();
        self.put(
            &mut *session,
            values.iter().map(|(key, value)| (*key, value)),
        );
        let mut sorted = keys;
        sorted.sort_unstable();
        self.expect_keys(&mut *session, &sorted);
        for (key, value) in &values {
            self.expect_blob(&mut *session, *key, value);
        }
    }

    pub(super) fn batches_are_complete(&self) {
        let store = self.create("batches");
        let mut session = self.session(&*store);
        self.write(&mut *session, |_| ());
        self.expect_keys(&mut *session, &[]);
        // Together more than an engine will want to buffer in one piece.
        let values: Vec<(u64, Vec<u8>)> = (1..=40).map(|key| (key, blob(key, 100_000))).collect();
        self.put(
            &mut *session,
            values.iter().map(|(key, value)| (*key, value)),
        );
        for (key, value) in &values {
            self.expect_blob(&mut *session, *key, value);
        }
        let (first, last) = (blob(41, 700), blob(42, 800));
        self.write(&mut *session, |writer| {
            self.done("put", writer.put(1, &first));
            self.done("put", writer.put(1, &last));
            self.done("put", writer.put(2, &first));
            assert!(self.done("delete", writer.delete(2)), "just put");
            assert!(self.done("delete", writer.delete(3)), "put before");
            self.done("put", writer.put(3, &last));
        });
        self.expect_blob(&mut *session, 1, &last);
        self.expect_missing(&mut *session, 2);
        self.expect_blob(&mut *session, 3, &last);
        self.write(&mut *session, |_| ());
        self.expect_blob(&mut *session, 3, &last);
    }
}
