//! Which tables the blobs lie in, and the SQL that goes with each. Running it is
//! [`super::table`]'s business.
//!
//! - `rowid`: `kv(k, v)`, as kvtest has it.
//! - `without-rowid`: the same as one index: no blob handles, and smaller cells.
//! - `name`: looked up by a text such as `000001`, which costs a second tree.
//! - `with-metadata`: name, mode, time and size before the blob, in its row.
//! - `separate`: these in a table of their own, the blob in another, joined by a number.
//! - `chunked`: a blob is cut into rows of `chunk_bytes`.
//! - `sqlar`: the table of SQLite's archives ("SQLite Archive Files"), contents stored raw.

/// Bits of a chunk's row number that count the chunks of one blob; the others are its key. With
/// the smallest chunks, of 1 KiB, that is as much as SQLite's largest blob.
pub(super) const CHUNK_NUMBER_BITS: u32 = 20;

/// What the tables look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layout {
    Rowid,
    WithoutRowid,
    Name,
    WithMetadata,
    Separate,
    Chunked,
    Sqlar,
}

/// What a statement is bound to, from its first parameter on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Binds {
    Key,
    KeyAndValue,
    /// The value's size in bytes.
    KeyAndSize,
    Value,
}

/// One statement of a change, and what it is bound to.
pub(super) type Step = (&'static str, Binds);

impl Layout {
    /// All of them.
    pub(super) const ALL: [Self; 7] = [
        Self::Rowid,
        Self::WithoutRowid,
        Self::Name,
        Self::WithMetadata,
        Self::Separate,
        Self::Chunked,
        Self::Sqlar,
    ];

    /// Value of the setting.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Rowid => "rowid",
            Self::WithoutRowid => "without-rowid",
            Self::Name => "name",
            Self::WithMetadata => "with-metadata",
            Self::Separate => "separate",
            Self::Chunked => "chunked",
            Self::Sqlar => "sqlar",
        }
    }

    /// SQL that creates the tables. That of `Rowid` is kvtest's, that of `Sqlar` is the archive
    /// format's.
    pub(super) fn schema(self) -> &'static str {
        match self {
            Self::Rowid => "CREATE TABLE kv(k INTEGER PRIMARY KEY, v BLOB)",
            Self::WithoutRowid => "CREATE TABLE kv(k INTEGER PRIMARY KEY, v BLOB) WITHOUT ROWID",
            Self::Name => "CREATE TABLE kv(name TEXT PRIMARY KEY, v BLOB)",
            Self::WithMetadata => {
                "CREATE TABLE kv(k INTEGER PRIMARY KEY, name TEXT, mode INT, mtime INT, size INT, \
                 v BLOB)"
            }
            Self::Separate => {
                "CREATE TABLE entry(k INTEGER PRIMARY KEY, name TEXT, mode INT, mtime INT, \
                 size INT, content_id INTEGER); \
                 CREATE TABLE content(id INTEGER PRIMARY KEY, v BLOB)"
            }
            Self::Chunked => "CREATE TABLE chunk(id INTEGER PRIMARY KEY, v BLOB)",
            Self::Sqlar => {
                "CREATE TABLE sqlar(name TEXT PRIMARY KEY, mode INT, mtime INT, sz INT, data BLOB)"
            }
        }
    }

    /// The table by which a database of this layout is known, and its columns.
    pub(super) fn known_by(self) -> (&'static str, &'static str) {
        match self {
            Self::Rowid | Self::WithoutRowid => ("kv", "k,v"),
            Self::Name => ("kv", "name,v"),
            Self::WithMetadata => ("kv", "k,name,mode,mtime,size,v"),
            Self::Separate => ("entry", "k,name,mode,mtime,size,content_id"),
            Self::Chunked => ("chunk", "id,v"),
            Self::Sqlar => ("sqlar", "name,mode,mtime,sz,data"),
        }
    }

    /// Table and column of the blobs.
    pub(super) fn blob_column(self) -> (&'static std::ffi::CStr, &'static std::ffi::CStr) {
        match self {
            Self::Rowid | Self::WithoutRowid | Self::Name | Self::WithMetadata => (c"kv", c"v"),
            Self::Separate => (c"content", c"v"),
            Self::Chunked => (c"chunk", c"v"),
            Self::Sqlar => (c"sqlar", c"data"),
        }
    }

    /// Whether blobs are looked up by a name that is text.
    pub(super) fn is_named(self) -> bool {
        matches!(self, Self::Name | Self::Sqlar)
    }

    /// Whether one write takes several statements, which then need a transaction around them.
    pub(super) fn writes_in_steps(self) -> bool {
        matches!(self, Self::Separate | Self::Chunked)
    }

    /// The blob of a key. Of `Chunked`: its rows, between two row numbers.
    pub(super) fn select(self) -> &'static str {
        match self {
            Self::Rowid | Self::WithoutRowid | Self::WithMetadata => "SELECT v FROM kv WHERE k=?1",
            Self::Name => "SELECT v FROM kv WHERE name=?1",
            Self::Separate => {
                "SELECT content.v FROM entry JOIN content ON content.id=entry.content_id \
                 WHERE entry.k=?1"
            }
            Self::Chunked => "SELECT v FROM chunk WHERE id BETWEEN ?1 AND ?2 ORDER BY id",
            Self::Sqlar => "SELECT data FROM sqlar WHERE name=?1",
        }
    }

    /// From a key to the row that has the blob, where that is not the key itself.
    pub(super) fn select_rowid(self) -> Option<&'static str> {
        match self {
            Self::Rowid | Self::WithoutRowid | Self::WithMetadata | Self::Chunked => None,
            Self::Name => Some("SELECT rowid FROM kv WHERE name=?1"),
            Self::Separate => Some("SELECT content_id FROM entry WHERE k=?1"),
            Self::Sqlar => Some("SELECT rowid FROM sqlar WHERE name=?1"),
        }
    }

    /// The blob in a row.
    pub(super) fn select_by_rowid(self) -> String {
        let (table, column) = self.blob_column();
        let (table, column) = (table.to_string_lossy(), column.to_string_lossy());
        format!("SELECT {column} FROM {table} WHERE rowid=?1")
    }

    /// All names with their rows.
    pub(super) fn select_names(self) -> Option<&'static str> {
        match self {
            Self::Name => Some("SELECT name, rowid FROM kv"),
            Self::Sqlar => Some("SELECT name, rowid FROM sqlar"),
            _ => None,
        }
    }

    /// All keys, in ascending order.
    pub(super) fn select_keys(self) -> String {
        match self {
            Self::Rowid | Self::WithoutRowid | Self::WithMetadata => {
                "SELECT k FROM kv ORDER BY k".to_owned()
            }
            Self::Name => "SELECT CAST(name AS INTEGER) FROM kv ORDER BY 1".to_owned(),
            Self::Separate => "SELECT k FROM entry ORDER BY k".to_owned(),
            Self::Chunked => {
                let (bits, mask) = (CHUNK_NUMBER_BITS, (1 << CHUNK_NUMBER_BITS) - 1);
                format!("SELECT id>>{bits} FROM chunk WHERE id&{mask}=0 ORDER BY id")
            }
            Self::Sqlar => "SELECT CAST(name AS INTEGER) FROM sqlar ORDER BY 1".to_owned(),
        }
    }

    /// Puts another blob in the place of a key's; the first statement changes nothing if there is
    /// none. Times are left as they are, so that the same writes make the same database.
    pub(super) fn update(self) -> &'static [Step] {
        match self {
            Self::Rowid | Self::WithoutRowid => {
                &[("UPDATE kv SET v=?2 WHERE k=?1", Binds::KeyAndValue)]
            }
            Self::Name => &[("UPDATE kv SET v=?2 WHERE name=?1", Binds::KeyAndValue)],
            Self::WithMetadata => &[(
                "UPDATE kv SET size=length(?2), v=?2 WHERE k=?1",
                Binds::KeyAndValue,
            )],
            Self::Separate => &[
                ("UPDATE entry SET size=?2 WHERE k=?1", Binds::KeyAndSize),
                (
                    "UPDATE content SET v=?2 WHERE id=(SELECT content_id FROM entry WHERE k=?1)",
                    Binds::KeyAndValue,
                ),
            ],
            Self::Chunked => &[("UPDATE chunk SET v=?2 WHERE id=?1", Binds::KeyAndValue)],
            Self::Sqlar => &[(
                "UPDATE sqlar SET sz=length(?2), data=?2 WHERE name=?1",
                Binds::KeyAndValue,
            )],
        }
    }

    /// Adds a blob whose key has none.
    pub(super) fn insert(self) -> &'static [Step] {
        match self {
            Self::Rowid | Self::WithoutRowid => {
                &[("INSERT INTO kv(k, v) VALUES(?1, ?2)", Binds::KeyAndValue)]
            }
            Self::Name => &[("INSERT INTO kv(name, v) VALUES(?1, ?2)", Binds::KeyAndValue)],
            Self::WithMetadata => &[(
                "INSERT INTO kv(k, name, mode, mtime, size, v) \
                 VALUES(?1, printf('%06d', ?1), 33188, 0, length(?2), ?2)",
                Binds::KeyAndValue,
            )],
            Self::Separate => &[
                ("INSERT INTO content(v) VALUES(?1)", Binds::Value),
                (
                    "INSERT INTO entry(k, name, mode, mtime, size, content_id) \
                     VALUES(?1, printf('%06d', ?1), 33188, 0, ?2, last_insert_rowid())",
                    Binds::KeyAndSize,
                ),
            ],
            Self::Chunked => &[(
                "INSERT INTO chunk(id, v) VALUES(?1, ?2)",
                Binds::KeyAndValue,
            )],
            Self::Sqlar => &[(
                "INSERT INTO sqlar(name, mode, mtime, sz, data) \
                 VALUES(?1, 33188, 0, length(?2), ?2)",
                Binds::KeyAndValue,
            )],
        }
    }

    /// Removes a key's blob; the last statement changes nothing if there is none. Of `Chunked`:
    /// rows between two numbers.
    pub(super) fn delete(self) -> &'static [Step] {
        match self {
            Self::Rowid | Self::WithoutRowid | Self::WithMetadata => {
                &[("DELETE FROM kv WHERE k=?1", Binds::Key)]
            }
            Self::Name => &[("DELETE FROM kv WHERE name=?1", Binds::Key)],
            Self::Separate => &[
                (
                    "DELETE FROM content WHERE id=(SELECT content_id FROM entry WHERE k=?1)",
                    Binds::Key,
                ),
                ("DELETE FROM entry WHERE k=?1", Binds::Key),
            ],
            Self::Chunked => &[("DELETE FROM chunk WHERE id BETWEEN ?1 AND ?2", Binds::Key)],
            Self::Sqlar => &[("DELETE FROM sqlar WHERE name=?1", Binds::Key)],
        }
    }
}
