//! Latencies as bytes: the format of the column `trial.latencies`. Pairs of 64-bit numbers
//! without sign, least significant byte first: nanoseconds, then the count of operations that
//! took them; ascending by nanoseconds, 16 bytes a pair, nothing else. Plain on purpose: any
//! language unpacks it in a line.

use sqlitmus_core::latencies::Latencies;

const PAIR_BYTES: usize = 16;

/// The bytes that are stored.
#[must_use]
pub fn encode_latencies(latencies: &Latencies) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(latencies.0.len() * PAIR_BYTES);
    for (latency_ns, count) in &latencies.0 {
        bytes.extend_from_slice(&latency_ns.to_le_bytes());
        bytes.extend_from_slice(&count.to_le_bytes());
    }
    bytes
}

/// The latencies in bytes that were stored; `None` if they are no whole number of pairs.
#[must_use]
pub fn decode_latencies(bytes: &[u8]) -> Option<Latencies> {
    let (pairs, rest) = bytes.as_chunks::<PAIR_BYTES>();
    if !rest.is_empty() {
        return None;
    }
    let pair = |pair: &[u8; PAIR_BYTES]| {
        let both = u128::from_le_bytes(*pair);
        (both as u64, (both >> 64) as u64)
    };
    Some(Latencies(pairs.iter().map(pair).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_as_documented() {
        let latencies = Latencies(vec![(1, 2), (0x0102, u64::MAX)]);
        let bytes = encode_latencies(&latencies);
        assert_eq!(
            bytes[..16],
            [1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0]
        );
        assert_eq!(bytes[16..18], [2, 1]);
        assert_eq!(bytes[24..], [255; 8]);
        assert_eq!(decode_latencies(&bytes), Some(latencies));
    }

    #[test]
    fn half_a_pair_is_refused() {
        assert_eq!(decode_latencies(&[]), Some(Latencies::default()));
        assert_eq!(decode_latencies(&[0; 15]), None);
        assert_eq!(decode_latencies(&[0; 24]), None);
    }
}
