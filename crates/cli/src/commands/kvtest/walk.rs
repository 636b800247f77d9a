//! The loop of `run`: one operation after the other, counted as kvtest counts. What an operation
//! is, and the clock, are left to the callers.

use super::key_sequence::KeySequence;
use crate::failure::Failure;

/// What a walk did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Tally {
    /// Operations, misses included.
    pub(super) cycles: u64,
    /// Operations that found no blob, or an empty one.
    pub(super) misses: u64,
    /// Bytes read or written.
    pub(super) bytes: u64,
}

impl Tally {
    /// Blobs that were found.
    pub(super) fn blobs(&self) -> u64 {
        self.cycles - self.misses
    }
}

/// Runs an operation on key after key until `count` blobs were found. An operation returns the
/// blob's bytes; none makes it a miss, after which one more operation is due. There must be a
/// blob to be found, or this never ends.
///
/// # Errors
/// The first error of an operation.
#[inline]
pub(super) fn walk(
    keys: &mut KeySequence,
    count: u64,
    mut operation: impl FnMut(i64) -> Result<u64, Failure>,
) -> Result<Tally, Failure> {
    let mut tally = Tally::default();
    while tally.cycles - tally.misses < count {
        let bytes = operation(keys.next_key())?;
        tally.cycles += 1;
        tally.bytes += bytes;
        tally.misses += u64::from(bytes == 0);
    }
    Ok(tally)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::kvtest::key_sequence::Order;

    #[test]
    fn misses_are_made_up_for() {
        let mut keys = KeySequence::new(Order::Ascending, 1, 4);
        let mut visited = Vec::new();
        let tally = walk(&mut keys, 3, |key| {
            visited.push(key);
            Ok(if key == 2 { 0 } else { 10 })
        });
        let expected = Tally {
            cycles: 4,
            misses: 1,
            bytes: 30,
        };
        assert_eq!(tally.expect("no error"), expected);
        assert_eq!(visited, [1, 2, 3, 4]);
        assert_eq!(expected.blobs(), 3);
    }

    #[test]
    fn the_first_error_ends_it() {
        let mut keys = KeySequence::new(Order::Ascending, 1, 4);
        let walked = walk(&mut keys, 3, |_| Err(Failure::bad_input("no", "")));
        assert_eq!(walked.expect_err("error").message, "no");
    }
}
