//! XXH64: a fast 64-bit checksum (Yann Collet, "xxHash fast digest algorithm", specification
//! 0.1.1, with seed 0). Finds torn writes and rot; does not resist an adversary.

const PRIMES: [u64; 5] = [
    0x9E37_79B1_85EB_CA87,
    0xC2B2_AE3D_27D4_EB4F,
    0x1656_67B1_9E37_79F9,
    0x85EB_CA77_C2B2_AE63,
    0x27D4_EB2F_1656_67C5,
];

/// The checksum of some bytes.
pub(super) fn checksum(bytes: &[u8]) -> u64 {
    let mut stripes = bytes.chunks_exact(32);
    let mut hash = if bytes.len() >= 32 {
        let mut lanes = [
            PRIMES[0].wrapping_add(PRIMES[1]),
            PRIMES[1],
            0,
            0u64.wrapping_sub(PRIMES[0]),
        ];
        for stripe in &mut stripes {
            for (lane, word) in lanes.iter_mut().zip(stripe.chunks_exact(8)) {
                *lane = round(*lane, word64(word));
            }
        }
        let rotations = [1, 7, 12, 18];
        let sum = lanes.iter().zip(rotations).fold(0u64, |sum, (lane, by)| {
            sum.wrapping_add(lane.rotate_left(by))
        });
        lanes.iter().fold(sum, |hash, lane| {
            (hash ^ round(0, *lane))
                .wrapping_mul(PRIMES[0])
                .wrapping_add(PRIMES[3])
        })
    } else {
        PRIMES[4]
    };
    hash = hash.wrapping_add(bytes.len() as u64);
    finish(hash, stripes.remainder())
}

fn finish(mut hash: u64, rest: &[u8]) -> u64 {
    let mut words = rest.chunks_exact(8);
    for word in &mut words {
        hash = (hash ^ round(0, word64(word)))
            .rotate_left(27)
            .wrapping_mul(PRIMES[0])
            .wrapping_add(PRIMES[3]);
    }
    let mut rest = words.remainder();
    if let Some((half, last)) = rest.split_first_chunk::<4>() {
        hash = (hash ^ u64::from(u32::from_le_bytes(*half)).wrapping_mul(PRIMES[0]))
            .rotate_left(23)
            .wrapping_mul(PRIMES[1])
            .wrapping_add(PRIMES[2]);
        rest = last;
    }
    for byte in rest {
        hash = (hash ^ u64::from(*byte).wrapping_mul(PRIMES[4]))
            .rotate_left(11)
            .wrapping_mul(PRIMES[0]);
    }
    hash = (hash ^ (hash >> 33)).wrapping_mul(PRIMES[1]);
    hash = (hash ^ (hash >> 29)).wrapping_mul(PRIMES[2]);
    hash ^ (hash >> 32)
}

fn round(lane: u64, word: u64) -> u64 {
    lane.wrapping_add(word.wrapping_mul(PRIMES[1]))
        .rotate_left(31)
        .wrapping_mul(PRIMES[0])
}

/// Eight bytes as a number; the callers cut them so.
fn word64(bytes: &[u8]) -> u64 {
    bytes
        .first_chunk()
        .map_or(0, |word| u64::from_le_bytes(*word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_the_published_values() {
        assert_eq!(checksum(b""), 0xEF46_DB37_51D8_E999);
        assert_eq!(checksum(b"a"), 0xD24E_C4F1_A98C_6E5B);
        assert_eq!(checksum(b"abc"), 0x44BC_2CF5_AD77_0999);
        assert_eq!(
            checksum(b"Nobody inspects the spammish repetition"),
            0xFBCE_A83C_8A37_8BF1
        );
    }

    #[test]
    fn every_byte_counts() {
        let mut bytes: Vec<u8> = (0..200u8).collect();
        let plain = checksum(&bytes);
        for position in 0..bytes.len() {
            bytes[position] ^= 0x10;
            assert_ne!(checksum(&bytes), plain, "byte {position}");
            bytes[position] ^= 0x10;
        }
        assert_ne!(checksum(&bytes[..199]), plain);
    }
}
