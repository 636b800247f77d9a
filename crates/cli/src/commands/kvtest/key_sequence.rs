//! The order in which `run` visits keys: ascending, descending, or kvtest's fixed "random"
//! sequence, in which keys repeat and others never come. What is done with a key is left to the
//! walks.

/// The order of visits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// From the first key up, and from 1 again after the highest.
    Ascending,
    /// From the first key down, and from the highest again after 1.
    Descending,
    /// The fixed sequence; only its first key is the one asked for.
    Random,
}

impl Order {
    /// The option that asks for it, as the closing lines name it.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Ascending => "asc",
            Self::Descending => "desc",
            Self::Random => "random",
        }
    }
}

/// Keys, one after the other, without end.
#[derive(Debug, Clone)]
pub(super) struct KeySequence {
    order: Order,
    key: i64,
    highest: i64,
    generator: Generator,
}

impl KeySequence {
    /// A sequence of keys from 1 to `highest`, which is at least 1. It begins with `start`, even
    /// where that lies above.
    pub(super) fn new(order: Order, start: i64, highest: i64) -> Self {
        Self {
            order,
            key: start,
            highest: highest.max(1),
            generator: Generator::new(),
        }
    }

    /// The next key.
    #[inline]
    pub(super) fn next_key(&mut self) -> i64 {
        let key = self.key;
        self.key = match self.order {
            Order::Ascending if key >= self.highest => 1,
            Order::Ascending => key + 1,
            Order::Descending if key <= 1 => self.highest,
            Order::Descending => key - 1,
            Order::Random => i64::from(self.generator.next_number()) % self.highest + 1,
        };
        key
    }
}

/// The sequence that kvtest draws keys from: a 32-bit shift register with feedback, mixed with a
/// linear congruential generator. Seeds and factors are those of SQLite's `test/kvtest.c`
/// (`randInt`), so that both programs visit the same keys.
#[derive(Debug, Clone)]
struct Generator {
    register: u32,
    congruential: u32,
}

impl Generator {
    fn new() -> Self {
        Self {
            register: 0x333a_13cd,
            congruential: 0xecb2_adea,
        }
    }

    #[inline]
    fn next_number(&mut self) -> u32 {
        const FEEDBACK: u32 = 0xd000_0001;
        let feedback = if self.register & 1 == 1 { FEEDBACK } else { 0 };
        self.register = (self.register >> 1) ^ feedback;
        self.congruential = self
            .congruential
            .wrapping_mul(1_103_515_245)
            .wrapping_add(12_345);
        self.register ^ self.congruential
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(order: Order, start: i64, highest: i64, count: usize) -> Vec<i64> {
        let mut sequence = KeySequence::new(order, start, highest);
        (0..count).map(|_| sequence.next_key()).collect()
    }

    #[test]
    fn ascending_and_descending_go_round() {
        assert_eq!(keys(Order::Ascending, 3, 4, 6), [3, 4, 1, 2, 3, 4]);
        assert_eq!(keys(Order::Descending, 1, 4, 6), [1, 4, 3, 2, 1, 4]);
        assert_eq!(keys(Order::Ascending, 9, 4, 3), [9, 1, 2]);
        assert_eq!(keys(Order::Descending, 9, 4, 3), [9, 8, 7]);
    }

    #[test]
    fn random_is_the_published_sequence() {
        // Read off kvtest with `strace -e trace=openat ./kvtest run DIR --random --max-id 100000`.
        let expected = [
            1, 24_893, 65_547, 48_745, 76_172, 54_665, 93_835, 10_731, 61_265, 48_827,
        ];
        assert_eq!(keys(Order::Random, 1, 100_000, expected.len()), expected);
    }

    #[test]
    fn keys_stay_in_their_range() {
        assert!(
            keys(Order::Random, 1, 7, 1000)
                .iter()
                .all(|key| (1..=7).contains(key))
        );
        assert_eq!(keys(Order::Random, 1, 1, 3), [1, 1, 1]);
    }
}
