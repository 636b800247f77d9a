//! The folders that the database has already, for walkers to see at once whether one has changed.
//! About a hundred bytes of memory for each.

use std::collections::HashMap;

use rusqlite::Connection;
use xxhash_rust::xxh3::xxh3_128_with_seed;

use super::folder_block::FolderDigest;

/// Number that stands for the parent of the top.
const NO_FOLDER: i64 = 0;

/// Folders that memory is taken for in advance, at most: ids may be far apart.
const MOST_ROOM: usize = 1 << 20;

/// Ids and digests of folders by parent and name.
#[derive(Debug, Default)]
pub(super) struct KnownFolders {
    by_name: HashMap<u128, (i64, FolderDigest)>,
    largest_id: i64,
}

impl KnownFolders {
    pub(super) fn read(connection: &Connection) -> rusqlite::Result<Self> {
        let sql = "SELECT coalesce(max(id), 0) FROM folder";
        let largest_id: i64 = connection.query_row(sql, [], |row| row.get(0))?;
        // About as many as there are ids: growing step by step would move all of them again and again.
        let room = usize::try_from(largest_id).unwrap_or(0).min(MOST_ROOM);
        let mut known = Self {
            by_name: HashMap::with_capacity(room),
            largest_id,
        };
        let mut statement = connection.prepare("SELECT id, parent_id, name, digest FROM folder")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let id: i64 = row.get(0)?;
            let parent_id: Option<i64> = row.get(1)?;
            // Text or blob: the bytes are the name either way.
            let name = row.get_ref(2)?.as_bytes()?;
            let digest = FolderDigest::from_bytes(row.get(3)?);
            known.by_name.insert(key(parent_id, name), (id, digest));
        }
        Ok(known)
    }

    pub(super) fn find(&self, parent_id: Option<i64>, name: &[u8]) -> Option<(i64, FolderDigest)> {
        if self.by_name.is_empty() {
            return None;
        }
        self.by_name.get(&key(parent_id, name)).copied()
    }

    pub(super) fn largest_id(&self) -> i64 {
        self.largest_id
    }
}

fn key(parent_id: Option<i64>, name: &[u8]) -> u128 {
    xxh3_128_with_seed(name, parent_id.unwrap_or(NO_FOLDER).cast_unsigned())
}
