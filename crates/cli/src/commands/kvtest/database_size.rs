//! How large a database of blobs becomes, computed before it is made. Whether there is room for
//! it is left to the verbs.
//!
//! From "Database File Format", sections 1.5 to 1.6: a row that does not fit in a page leaves its
//! beginning there, and the rest in a chain of overflow pages of its own. Rows are appended in the
//! order of their keys, so a page takes rows until the next one does not fit.

/// Bytes of a database with one table of these blobs (key and length, in the order of the keys).
/// Exact for blobs appended as `init` does, to within a few pages above the leaves.
pub(super) fn database_bytes(page_bytes: u64, blobs: impl Iterator<Item = (u64, u64)>) -> u64 {
    let mut overflow_pages = 0;
    let mut leaves = 1;
    let mut used_bytes = LEAF_HEADER_BYTES;
    for (key, blob_bytes) in blobs {
        let row = Row::new(page_bytes, key, blob_bytes);
        overflow_pages += row.overflow_pages;
        if used_bytes + row.leaf_bytes > page_bytes {
            leaves += 1;
            used_bytes = LEAF_HEADER_BYTES;
        }
        used_bytes += row.leaf_bytes;
    }
    // The page with the schema, and one page over every so many children, level by level; the
    // topmost level is reached when one page is enough.
    let mut pages = 1 + overflow_pages + leaves;
    let fan_out = (page_bytes - INTERIOR_HEADER_BYTES) / INTERIOR_CELL_BYTES;
    let mut level = leaves;
    while level > 1 {
        level = level.div_ceil(fan_out);
        pages += level;
    }
    // A database beyond 1 GiB leaves out the page with the lock bytes.
    (pages + 1) * page_bytes
}

/// Page header.
const LEAF_HEADER_BYTES: u64 = 8;

/// Page header with the right-most child.
const INTERIOR_HEADER_BYTES: u64 = 12;

/// Child, key of up to five bytes (larger ones make it an estimate), and pointer to the cell.
const INTERIOR_CELL_BYTES: u64 = 4 + 5 + 2;

/// What one row takes.
struct Row {
    /// In its leaf, with the pointer to it.
    leaf_bytes: u64,
    overflow_pages: u64,
}

impl Row {
    fn new(page_bytes: u64, key: u64, blob_bytes: u64) -> Self {
        // The record's header: its own length, NULL for the key (it is the row's number), and the
        // type of a blob, which is twice its length plus 12.
        let payload_bytes = 2 + varint_bytes(2 * blob_bytes + 12) + blob_bytes;
        let most_local = page_bytes - 35;
        let least_local = (page_bytes - 12) * 32 / 255 - 23;
        let overflow_content = page_bytes - 4;
        let fixed_bytes = 2 + varint_bytes(payload_bytes) + varint_bytes(key);
        if payload_bytes <= most_local {
            return Self {
                leaf_bytes: fixed_bytes + payload_bytes,
                overflow_pages: 0,
            };
        }
        let fitted = least_local + (payload_bytes - least_local) % overflow_content;
        let local = if fitted <= most_local {
            fitted
        } else {
            least_local
        };
        Self {
            // With the number of the first overflow page.
            leaf_bytes: fixed_bytes + local + 4,
            overflow_pages: (payload_bytes - local).div_ceil(overflow_content),
        }
    }
}

/// Bytes of a number in SQLite's variable-length form.
fn varint_bytes(number: u64) -> u64 {
    let bits = u64::from(64 - number.leading_zeros()).max(1);
    bits.div_ceil(7).min(9)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What SQLite makes of the same blobs.
    fn made_by_sqlite(page_bytes: u64, sizes: &[u64]) -> u64 {
        let folder = tempfile::tempdir().expect("temporary directory");
        let path = folder.path().join("x.db");
        let database = rusqlite::Connection::open(&path).expect("open");
        let setup = format!(
            "PRAGMA page_size={page_bytes}; CREATE TABLE kv(k INTEGER PRIMARY KEY, v BLOB); BEGIN"
        );
        database.execute_batch(&setup).expect("table");
        {
            let mut insert = database
                .prepare("INSERT INTO kv VALUES(?1, randomblob(?2))")
                .expect("prepare");
            for (index, size) in sizes.iter().enumerate() {
                insert
                    .execute([index as i64 + 1, *size as i64])
                    .expect("insert");
            }
        }
        database.execute_batch("COMMIT").expect("commit");
        std::fs::metadata(&path).expect("file").len()
    }

    #[test]
    fn the_size_is_that_of_sqlite() {
        let varied: Vec<u64> = (0..3000).map(|index| 1 + index * 7919 % 12_000).collect();
        let cases = [
            (4096, vec![10_000; 2000]),
            (4096, varied.clone()),
            (512, varied.clone()),
            (65_536, varied),
            (1024, vec![1; 50_000]),
            (4096, vec![8_000_000; 3]),
            (4096, vec![1]),
        ];
        for (page_bytes, sizes) in cases {
            let blobs = (1..).zip(sizes.iter().copied());
            let computed = database_bytes(page_bytes, blobs);
            let made = made_by_sqlite(page_bytes, &sizes);
            let slack = made / 200 + 2 * page_bytes;
            assert!(
                computed >= made && computed <= made + slack,
                "page {page_bytes}: computed {computed}, made {made}"
            );
        }
    }

    #[test]
    fn variable_length_numbers_have_their_length() {
        for (number, bytes) in [
            (0, 1),
            (127, 1),
            (128, 2),
            (16_383, 2),
            (16_384, 3),
            (u64::MAX, 9),
        ] {
            assert_eq!(varint_bytes(number), bytes, "{number}");
        }
    }
}
