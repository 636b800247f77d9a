//! A hash map with blob keys, for the engines that keep their index in memory.
//!
//! What is stored under a key is left to the engine.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use sqlitmus_core::dataset::mix;

/// A map from blob keys to `Value`.
pub(crate) type KeyMap<Value> = HashMap<u64, Value, BuildHasherDefault<KeyHasher>>;

/// Hashes a 64-bit key with one bijective mix: the standard library's hash resists an adversary
/// who chooses the keys, at 15 ns a look-up; the keys here are ours.
#[derive(Debug, Default)]
pub(crate) struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = mix(self.0 ^ u64::from(*byte));
        }
    }

    fn write_u64(&mut self, key: u64) {
        self.0 = mix(key);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
