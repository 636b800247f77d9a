//! What a trial's process and the device below its store do while the clock runs, read at both ends of what is
//! timed. Reading is not timed itself.

use std::collections::BTreeMap;

use sqlitmus_engines::workloads::Meter;

use crate::machine::device_reads::{DeviceReads, StoreDevice};
use crate::machine::resources::{ResourceSnapshot, Resources};

/// Reads the counters of a slice.
pub(super) struct TrialMeter<'a> {
    device: Option<&'a StoreDevice>,
    is_cold: bool,
    before: Option<(Option<DeviceReads>, ResourceSnapshot)>,
    used: BTreeMap<String, u64>,
}

impl<'a> TrialMeter<'a> {
    /// Of a trial that is to read from the device: what that one reads is told too, in requests and bytes.
    pub(super) fn of_cold_device(device: Option<&'a StoreDevice>) -> Self {
        Self {
            device,
            is_cold: true,
            before: None,
            used: BTreeMap::new(),
        }
    }

    /// Of a trial that is to read from memory: if it reads from the device for all that, how long that took.
    pub(super) fn of_warm_device(device: Option<&'a StoreDevice>) -> Self {
        Self {
            is_cold: false,
            ..Self::of_cold_device(device)
        }
    }

    /// What was used between the ends, by name with unit; what the kernel does not tell is not there.
    pub(super) fn into_used(self) -> BTreeMap<String, u64> {
        self.used
    }

    fn note_device(&mut self, device: DeviceReads, process: &Resources) {
        let mut note = |name: &str, value: u64| self.used.insert(name.to_owned(), value);
        if self.is_cold {
            note("device_read_requests", device.requests);
            note("whole_device_read_bytes", device.bytes);
            return;
        }
        // The process may have read from other devices: this one's time then says nothing.
        let own = process.device_read_bytes.unwrap_or(0);
        if own > 0 && device.bytes >= own {
            note("device_read_ns", device.time_ns);
        }
    }
}

impl Meter for TrialMeter<'_> {
    fn begin(&mut self) {
        // The device first: what asking takes is not to be counted as the slice's.
        let device = self.device.and_then(StoreDevice::reads);
        self.before = Some((device, ResourceSnapshot::now()));
    }

    fn end(&mut self) {
        let Some((device, process)) = self.before.take() else {
            return;
        };
        let process = ResourceSnapshot::now().since(&process);
        let named = process.named();
        self.used = named
            .map(|(name, value)| (name.to_owned(), value))
            .collect();
        let now = self.device.and_then(StoreDevice::reads);
        if let Some((now, earlier)) = now.zip(device) {
            self.note_device(now.since(earlier), &process);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(meter: &mut TrialMeter<'_>, device_bytes: u64, own_bytes: u64) {
        let device = DeviceReads {
            requests: 2,
            bytes: device_bytes,
            time_ns: 3_000_000,
        };
        let process = Resources {
            device_read_bytes: Some(own_bytes),
            ..Resources::default()
        };
        meter.note_device(device, &process);
    }

    #[test]
    fn a_warm_trial_tells_how_long_its_own_reads_took_at_the_most() {
        for (device_bytes, own_bytes, told) in [
            (8192, 8192, Some(3_000_000)),
            (65_536, 8192, Some(3_000_000)),
            (4096, 8192, None),
            (8192, 0, None),
        ] {
            let mut meter = TrialMeter::of_warm_device(None);
            read(&mut meter, device_bytes, own_bytes);
            let used = meter.into_used();
            assert_eq!(used.get("device_read_ns").copied(), told);
            assert!(!used.contains_key("device_read_requests"));
        }
    }

    #[test]
    fn a_cold_trial_tells_requests_and_bytes() {
        let mut meter = TrialMeter::of_cold_device(None);
        read(&mut meter, 8192, 4096);
        let used = meter.into_used();
        assert_eq!(used.get("device_read_requests"), Some(&2));
        assert_eq!(used.get("whole_device_read_bytes"), Some(&8192));
        assert!(!used.contains_key("device_read_ns"));
    }
}
