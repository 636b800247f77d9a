//! What one operation of an arm uses: processor time, faults, calls, bytes, system calls by name.
//! The counters are those of the trials that count; what they are called is the worker's business.

use std::collections::BTreeMap;

use crate::measurements::Measurements;
use crate::run::is_level;

/// Parts of `resources` that are found out once before the slices, and are no use of theirs.
const FOUND_BEFORE: [&str; 2] = ["store_checked_bytes", "store_cached_bytes"];

/// Resources of an arm's timed slices, and system calls of untimed ones after them.
#[derive(Debug, Clone, PartialEq)]
pub struct ResourceUse {
    /// Timed operations that the resources were used by.
    pub operations: u64,
    /// Bytes of content that they read or wrote.
    pub content_bytes: u64,
    /// Use of one operation, by the counter's name with unit: `user_cpu_ns`, `read_calls` ...
    pub per_operation: BTreeMap<String, f64>,
    /// Levels, the largest of all trials: `peak_memory_bytes` ...
    pub levels: BTreeMap<String, u64>,
    /// System calls of one operation by name; empty if they were not counted.
    pub system_calls: BTreeMap<String, f64>,
}

impl ResourceUse {
    /// Of an arm; `None` if none of its trials counts.
    #[must_use]
    pub fn of(measurements: &Measurements<'_>, arm: &str) -> Option<Self> {
        let mut operations = 0;
        let mut content_bytes = 0;
        let mut sums: BTreeMap<String, u64> = BTreeMap::new();
        let mut levels: BTreeMap<String, u64> = BTreeMap::new();
        let mut calls: BTreeMap<String, u64> = BTreeMap::new();
        let mut counted_operations = 0;
        for trial in measurements.valid(arm) {
            // All slices: the counters are of those too that were not in the right cache state.
            for sample in &trial.samples {
                operations += sample.operations;
                content_bytes += sample.content_bytes;
            }
            for (name, value) in &trial.resources {
                if FOUND_BEFORE.contains(&name.as_str()) {
                    continue;
                }
                if is_level(name) {
                    let level = levels.entry(name.clone()).or_default();
                    *level = (*level).max(*value);
                } else {
                    *sums.entry(name.clone()).or_default() += value;
                }
            }
            if let Some(counted) = &trial.system_calls {
                counted_operations += counted.operations;
                for (name, number) in &counted.calls {
                    *calls.entry(name.clone()).or_default() += number;
                }
            }
        }
        if operations == 0 {
            return None;
        }
        let share = |values: BTreeMap<String, u64>, operations: u64| {
            let shares = values.into_iter();
            shares
                .map(|(name, value)| (name, value as f64 / operations as f64))
                .collect()
        };
        Some(Self {
            operations,
            content_bytes,
            per_operation: share(sums, operations),
            levels,
            system_calls: share(calls, counted_operations.max(1)),
        })
    }

    /// Bytes that came from the device for each byte of content; `None` if that was not counted.
    #[must_use]
    pub fn device_bytes_per_content_byte(&self) -> Option<f64> {
        let bytes = self.per_operation.get("device_read_bytes")? * self.operations as f64;
        (self.content_bytes > 0).then(|| bytes / self.content_bytes as f64)
    }

    /// System calls of one operation, all names together; `None` if they were not counted.
    #[must_use]
    pub fn system_calls_per_operation(&self) -> Option<f64> {
        (!self.system_calls.is_empty()).then(|| self.system_calls.values().sum())
    }
}
