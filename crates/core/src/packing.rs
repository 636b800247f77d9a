//! Packing: how many bytes of disk a table of blobs takes for a byte of content, by SQLite's file
//! format ("Database File Format", sections 1.5 and 1.6), without making one.
//!
//! For `kv(k INTEGER PRIMARY KEY, v BLOB)`, filled in the order of its keys with blobs of one size,
//! without auto-vacuum: leaves are filled one after the other, each overflow chain has pages of its
//! own. What a table looks like after deletions and overwrites is for measurements to say.

/// Bytes of a b-tree page's header: of a leaf, and of an interior page.
const LEAF_HEADER_BYTES: u64 = 8;
const INTERIOR_HEADER_BYTES: u64 = 12;

/// Bytes of a cell's pointer in its page.
const CELL_POINTER_BYTES: u64 = 2;

/// Bytes of a page number, at the end of a cell that goes on elsewhere and at the head of each page
/// where it does.
const PAGE_NUMBER_BYTES: u64 = 4;

/// Bytes of a database of `count` blobs of `blob_bytes` bytes with pages of `page_bytes`.
#[must_use]
pub fn database_bytes(page_bytes: u64, blob_bytes: u64, count: u64) -> u64 {
    let cell = Cell::of(page_bytes, blob_bytes, count);
    let on_a_leaf =
        ((page_bytes - LEAF_HEADER_BYTES) / (cell.leaf_bytes + CELL_POINTER_BYTES)).max(1);
    let mut level = count.div_ceil(on_a_leaf).max(1);
    // The first page is the schema's, and belongs to no blob.
    let mut pages = 1 + level + count * cell.overflow_pages;
    let of_a_child = PAGE_NUMBER_BYTES + varint_bytes(count) + CELL_POINTER_BYTES;
    // The last child has no cell: its number is in the header.
    let children = (page_bytes - INTERIOR_HEADER_BYTES) / of_a_child + 1;
    while level > 1 {
        level = level.div_ceil(children);
        pages += level;
    }
    pages * page_bytes
}

/// Bytes of disk for a byte of content.
#[must_use]
pub fn overhead(page_bytes: u64, blob_bytes: u64, count: u64) -> f64 {
    let content = blob_bytes * count;
    database_bytes(page_bytes, blob_bytes, count) as f64 / content.max(1) as f64
}

/// A row as it lies in the tree.
struct Cell {
    /// Bytes of the leaf, without the cell's pointer.
    leaf_bytes: u64,
    /// Pages that the rest of it fills.
    overflow_pages: u64,
}

impl Cell {
    fn of(page_bytes: u64, blob_bytes: u64, count: u64) -> Self {
        // A record's header: its own length, the key (NULL, since it is the rowid), the blob's type.
        let blob_type = 2 * blob_bytes + 12;
        let header = 1 + 1 + varint_bytes(blob_type);
        let payload = header + blob_bytes;
        let usable = page_bytes;
        let most = usable - 35;
        let least = (usable - 12) * 32 / 255 - 23;
        let local = if payload <= most {
            payload
        } else {
            let rest = least + (payload - least) % (usable - PAGE_NUMBER_BYTES);
            if rest <= most { rest } else { least }
        };
        let overflow = payload - local;
        let link = if overflow > 0 { PAGE_NUMBER_BYTES } else { 0 };
        Self {
            leaf_bytes: varint_bytes(payload) + varint_bytes(count) + local + link,
            overflow_pages: overflow.div_ceil(usable - PAGE_NUMBER_BYTES),
        }
    }
}

/// Bytes of a number in SQLite's variable length: seven bits a byte.
fn varint_bytes(number: u64) -> u64 {
    let bits = 64 - u64::from(number.max(1).leading_zeros());
    bits.div_ceil(7).min(9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_seven_bits_a_byte() {
        for (number, bytes) in [(0, 1), (127, 1), (128, 2), (16_383, 2), (16_384, 3)] {
            assert_eq!(varint_bytes(number), bytes, "{number}");
        }
        assert_eq!(varint_bytes(u64::MAX), 9);
    }

    #[test]
    fn a_page_of_16_kib_holds_one_blob_of_10_kb_and_wastes_a_third() {
        let found = overhead(16_384, 10_000, 10_000);
        assert!((1.6..1.7).contains(&found), "{found}");
        // At 4 KiB: two overflow pages and something in a leaf.
        let found = overhead(4_096, 10_000, 10_000);
        assert!((1.0..1.1).contains(&found), "{found}");
        let found = overhead(65_536, 10_000, 10_000);
        assert!((1.05..1.12).contains(&found), "{found}");
    }
}
