//! Rows: the two tables of the published OLTP test of SQLite, `user` and `orders`, with content
//! that follows from a seed, and what reading or changing them must add up to.
//!
//! A row's texts are slices of one pool of random letters, at places that follow from seed, row
//! and column. So a row is made without work while the clock runs, and any row can be verified
//! without a copy. Storing rows is the engines' business.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::dataset::{Dataset, SizeDistribution, bounded, consume, mix};

/// Letters that texts are made of: none that SQL would have to quote.
const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Least size of the pool of letters, bytes: some thousand times a text of the published width.
const POOL_BYTES: usize = 4 << 20;

/// Values of `user.c1` before any update are below this.
const C1_SPAN: u64 = 1000;

/// The rows of a dataset: as many in `user` as in `orders`, with ids from 1. The dataset's `size`
/// is the length of every text column in bytes.
#[derive(Debug, Clone)]
pub struct Rows {
    dataset: Dataset,
    pool: String,
}

/// A row of `user(id, c1, c2, c3)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct User<'a> {
    /// Primary key, from 1.
    pub id: u64,
    /// The number that updates count up.
    pub c1: i64,
    /// First text.
    pub c2: &'a str,
    /// Second text.
    pub c3: &'a str,
}

/// A row of `orders(id, user_id, c1, c2)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Order<'a> {
    /// Primary key, from 1.
    pub id: u64,
    /// A row of `user`.
    pub user_id: u64,
    /// First text.
    pub c1: &'a str,
    /// Second text.
    pub c2: &'a str,
}

impl Rows {
    /// The rows of a dataset.
    #[must_use]
    pub fn new(dataset: &Dataset) -> Self {
        let widest = match &dataset.size {
            SizeDistribution::Fixed(bytes) => *bytes,
            SizeDistribution::Uniform(_, high) => *high,
            SizeDistribution::LogNormal { maximum, .. } => *maximum,
            SizeDistribution::Histogram(classes) => {
                classes.iter().map(|(bytes, _)| *bytes).max().unwrap_or(0)
            }
            SizeDistribution::Files(files) => files.bytes.iter().copied().max().unwrap_or(0),
        };
        let bytes = POOL_BYTES.max(2 * widest as usize);
        let mut stream = Xoshiro256PlusPlus::seed_from_u64(mix(dataset.seed ^ 0x726f_7773));
        let mut pool = String::with_capacity(bytes);
        while pool.len() < bytes {
            // Ten letters of six bits each.
            let mut bits = stream.next_u64();
            for _ in 0..10 {
                pool.push(char::from(LETTERS[(bits & 63) as usize]));
                bits >>= 6;
            }
        }
        Self {
            dataset: dataset.clone(),
            pool,
        }
    }

    /// Rows in each table.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.dataset.count
    }

    /// A row of `user`, as it is before any update.
    #[must_use]
    pub fn user(&self, id: u64) -> User<'_> {
        User {
            id,
            c1: bounded(self.bits(id, 0), C1_SPAN).cast_signed(),
            c2: self.text(id, 1),
            c3: self.text(id, 2),
        }
    }

    /// A row of `orders`.
    #[must_use]
    pub fn order(&self, id: u64) -> Order<'_> {
        Order {
            id,
            user_id: bounded(self.bits(id, 3), self.dataset.count) + 1,
            c1: self.text(id, 4),
            c2: self.text(id, 5),
        }
    }

    /// Sum of `user.c1` over all rows before any update.
    #[must_use]
    pub fn c1_sum(&self) -> i64 {
        (1..=self.count()).map(|id| self.user(id).c1).sum()
    }

    /// Content of one row of `user` in bytes: its texts and its two numbers, eight bytes each.
    #[must_use]
    pub fn user_bytes(&self, id: u64) -> u64 {
        let user = self.user(id);
        (user.c2.len() + user.c3.len() + 16) as u64
    }

    fn text(&self, id: u64, column: u64) -> &str {
        let length = self.dataset.value_bytes(id.wrapping_mul(8) + column);
        let places = (self.pool.len() - length + 1) as u64;
        let start = bounded(self.bits(id, column), places) as usize;
        &self.pool[start..start + length]
    }

    fn bits(&self, id: u64, column: u64) -> u64 {
        mix(self.dataset.seed ^ mix(id ^ mix(column)))
    }
}

/// What a workload makes of a row of `user`: every column is read, every cache line of a text is
/// touched, and a row in the place of another shows.
#[inline]
#[must_use]
pub fn consume_user(id: u64, c1: i64, c2: &[u8], c3: &[u8]) -> u64 {
    consume_columns(id, c1, consume(c2), consume(c3))
}

/// [`consume_user`] where the texts have been consumed one by one ([`consume`]).
#[inline]
#[must_use]
pub fn consume_columns(id: u64, c1: i64, c2_sum: u64, c3_sum: u64) -> u64 {
    const ODD: u64 = 0x9FB2_1C65_1E98_DF25;
    let texts = c2_sum ^ c3_sum.rotate_left(32);
    id.wrapping_mul(ODD) ^ texts.wrapping_add(c1.cast_unsigned())
}

impl User<'_> {
    /// [`consume_user`] of this row.
    #[must_use]
    pub fn consumed(&self) -> u64 {
        consume_user(self.id, self.c1, self.c2.as_bytes(), self.c3.as_bytes())
    }
}

/// What reading rows of `user` that were never updated must add up to.
#[derive(Debug, Clone)]
pub struct UserSums {
    sums: Vec<u64>,
    bytes: Vec<u32>,
}

impl UserSums {
    /// Makes every row once.
    #[must_use]
    pub fn new(rows: &Rows) -> Self {
        let (sums, bytes) = (1..=rows.count())
            .map(|id| (rows.user(id).consumed(), rows.user_bytes(id) as u32))
            .unzip();
        Self { sums, bytes }
    }

    /// Sum over these ids; an id beyond the table is not found and adds nothing.
    #[must_use]
    pub fn of(&self, ids: impl Iterator<Item = u64>) -> FoundRows {
        let mut found = FoundRows::default();
        for id in ids {
            let Some(index) = usize::try_from(id).ok().and_then(|id| id.checked_sub(1)) else {
                continue;
            };
            if let Some(sum) = self.sums.get(index) {
                found.rows += 1;
                found.consumed = found.consumed.wrapping_add(*sum);
                found.bytes += u64::from(self.bytes[index]);
            }
        }
        found
    }
}

/// What a number of queries must have found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FoundRows {
    /// Rows found.
    pub rows: u64,
    /// Sum of [`consume_user`] over them, wrapping.
    pub consumed: u64,
    /// Their content in bytes.
    pub bytes: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(count: u64, size: SizeDistribution) -> Rows {
        Rows::new(&Dataset {
            count,
            size,
            compressibility: 0.0,
            seed: 7,
        })
    }

    #[test]
    fn content_follows_from_seed_and_id() {
        let first = rows(100, SizeDistribution::Fixed(1000));
        let again = rows(100, SizeDistribution::Fixed(1000));
        assert_eq!(first.user(3), again.user(3));
        assert_ne!(first.user(3).c2, first.user(3).c3);
        assert_ne!(first.user(3).c2, first.user(4).c2);
        assert_eq!(first.user(100).c3.len(), 1000);
        assert!(
            first
                .user(5)
                .c2
                .bytes()
                .all(|letter| LETTERS.contains(&letter))
        );
        let orders = (1..=100).map(|id| first.order(id));
        assert!(
            orders
                .clone()
                .all(|order| (1..=100).contains(&order.user_id))
        );
        assert!(orders.clone().any(|order| order.user_id != order.id));
    }

    #[test]
    fn texts_have_the_sizes_of_the_dataset() {
        let rows = rows(1000, SizeDistribution::Uniform(0, 3));
        let lengths: std::collections::BTreeSet<usize> =
            (1..=1000).map(|id| rows.user(id).c2.len()).collect();
        assert_eq!(lengths, (0..=3).collect());
        // Wider than the pool would be by itself.
        let wide = Rows::new(&Dataset {
            count: 2,
            size: SizeDistribution::Fixed(5 << 20),
            compressibility: 0.0,
            seed: 7,
        });
        assert_eq!(wide.user(2).c2.len(), 5 << 20);
    }

    #[test]
    fn every_column_of_a_row_counts() {
        let plain = consume_user(1, 2, b"abc", b"def");
        for other in [
            consume_user(2, 2, b"abc", b"def"),
            consume_user(1, 3, b"abc", b"def"),
            consume_user(1, 2, b"abd", b"def"),
            consume_user(1, 2, b"abc", b"deg"),
            consume_user(1, 2, b"def", b"abc"),
        ] {
            assert_ne!(plain, other);
        }
    }

    #[test]
    fn ids_beyond_the_table_add_nothing() {
        let rows = rows(10, SizeDistribution::Fixed(20));
        let sums = UserSums::new(&rows);
        let found = sums.of([0, 3, 11, 3, u64::MAX].into_iter());
        assert_eq!(found.rows, 2);
        assert_eq!(found.consumed, rows.user(3).consumed().wrapping_mul(2));
        assert_eq!(found.bytes, 2 * (20 + 20 + 16));
    }

    #[test]
    fn the_sum_of_c1_is_that_of_its_values() {
        let rows = rows(1000, SizeDistribution::Fixed(1));
        let mean = rows.c1_sum() as f64 / 1000.0;
        assert!((450.0..550.0).contains(&mean), "{mean}");
    }
}
