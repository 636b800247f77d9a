//! The tables of one layout through one connection: its statements, prepared, and what they do to
//! one blob. Blob handles and transactions are [`super::session`]'s business.
//!
//! # Chunks
//! With `layout = chunked` row `key << 20 | n` has piece `n` of a blob. A blob ends with its first
//! piece that is shorter than `chunk_bytes`, so one that fills its chunks exactly has an empty
//! piece more, and a reader knows without asking again when it is done.
//!
//! # Names in memory
//! With `catalogue = memory` all names are read when a session opens, and again when a session of
//! the same store has committed. What other processes add or remove meanwhile is not seen: it is
//! meant for archives that nobody changes.

use std::collections::HashMap;

use super::connection::Connection;
use super::error::SqliteError;
use super::layout::{Binds, CHUNK_NUMBER_BITS, Layout, Step};
use super::settings::{Catalogue, Plan, Prepare};
use super::statement::{Statement, StatementId};

/// Keys of `layout = chunked` are below this.
const CHUNKED_KEYS: u64 = 1 << (63 - CHUNK_NUMBER_BITS);

/// What a read or a change found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    Yes,
    No,
}

/// Statements, prepared once.
pub(super) struct Table {
    layout: Layout,
    /// Bytes of a full chunk.
    chunk_bytes: usize,
    prepare: Prepare,
    select: StatementId,
    select_rowid: Option<StatementId>,
    select_by_rowid: Option<StatementId>,
    select_names: Option<StatementId>,
    keys: StatementId,
    update: Vec<(StatementId, Binds)>,
    insert: Vec<(StatementId, Binds)>,
    delete: Vec<(StatementId, Binds)>,
    name: KeyName,
    /// Rows by name, if they are kept in memory.
    names: Option<HashMap<Box<[u8]>, i64>>,
}

impl Table {
    /// Prepares the statements of the plan's layout. Names are not read yet.
    pub(super) fn new(
        connection: &mut Connection,
        plan: &Plan,
        prepare: Prepare,
    ) -> Result<Self, SqliteError> {
        let layout = plan.layout;
        let mut optional = |sql: Option<&str>| sql.map(|sql| connection.prepare(sql)).transpose();
        let select_rowid = optional(layout.select_rowid())?;
        let has_rowids = layout != Layout::WithoutRowid;
        let select_by_rowid = optional(has_rowids.then(|| layout.select_by_rowid()).as_deref())?;
        let in_memory = plan.catalogue == Catalogue::Memory;
        let select_names = optional(layout.select_names().filter(|_| in_memory))?;
        let mut steps = |steps: &[Step]| {
            steps
                .iter()
                .map(|(sql, binds)| Ok((connection.prepare(sql)?, *binds)))
                .collect::<Result<Vec<_>, SqliteError>>()
        };
        Ok(Self {
            update: steps(layout.update())?,
            insert: steps(layout.insert())?,
            delete: steps(layout.delete())?,
            select: connection.prepare(layout.select())?,
            keys: connection.prepare(&layout.select_keys())?,
            select_rowid,
            select_by_rowid,
            select_names,
            layout,
            chunk_bytes: plan.chunk_bytes,
            prepare,
            name: KeyName::new(),
            names: None,
        })
    }

    /// Bytes of a full chunk, if blobs are cut into chunks.
    #[inline]
    pub(super) fn chunk_bytes(&self) -> Option<usize> {
        (self.layout == Layout::Chunked).then_some(self.chunk_bytes)
    }

    /// Whether names are kept in memory.
    #[inline]
    pub(super) fn keeps_names(&self) -> bool {
        self.select_names.is_some()
    }

    /// Whether names are in memory and, as far as this session knows, those of the database.
    #[inline]
    pub(super) fn has_names(&self) -> bool {
        self.names.is_some()
    }

    /// Forgets the names in memory, because they may have changed.
    #[inline]
    pub(super) fn forget_names(&mut self) {
        self.names = None;
    }

    /// Reads all names, if they are to be kept in memory.
    pub(super) fn read_names(&mut self, connection: &mut Connection) -> Result<(), SqliteError> {
        let Some(select) = self.select_names else {
            return Ok(());
        };
        let mut names = HashMap::new();
        let mut statement = connection.statement(select);
        while let Some(mut row) = statement.step()? {
            let rowid = row.i64(1);
            names.insert(row.blob(0)?.into(), rowid);
        }
        statement.reset()?;
        self.names = Some(names);
        Ok(())
    }

    /// Prepares a statement for its next run, if that is done each time.
    #[inline]
    fn prepare_if_each(
        &self,
        connection: &mut Connection,
        statement: StatementId,
    ) -> Result<(), SqliteError> {
        match self.prepare {
            Prepare::Once => Ok(()),
            Prepare::Each => connection.prepare_again(statement),
        }
    }

    /// Hands a key's blob to `consume`, through SQL. Pieces are joined in `buffer`.
    #[inline]
    pub(super) fn read(
        &mut self,
        connection: &mut Connection,
        key: u64,
        buffer: &mut Vec<u8>,
        consume: &mut dyn FnMut(&[u8]),
    ) -> Result<Found, SqliteError> {
        if self.layout == Layout::Chunked {
            return self.read_chunks(connection, key, buffer, consume);
        }
        let known = match (&self.names, self.select_by_rowid) {
            (Some(names), Some(select)) => match names.get(self.name.of(key).as_bytes()) {
                Some(rowid) => Some((select, *rowid)),
                None => return Ok(Found::No),
            },
            _ => None,
        };
        let select = known.map_or(self.select, |(select, _)| select);
        self.prepare_if_each(connection, select)?;
        let mut statement = connection.statement(select);
        match known {
            Some((_, rowid)) => statement.bind_i64(1, rowid)?,
            None => bind_key(&mut statement, self.layout, &mut self.name, key)?,
        }
        let Some(mut row) = statement.step()? else {
            return Ok(Found::No);
        };
        consume(row.blob(0)?);
        statement.reset()?;
        Ok(Found::Yes)
    }

    fn read_chunks(
        &mut self,
        connection: &mut Connection,
        key: u64,
        buffer: &mut Vec<u8>,
        consume: &mut dyn FnMut(&[u8]),
    ) -> Result<Found, SqliteError> {
        if key >= CHUNKED_KEYS {
            return Ok(Found::No);
        }
        self.prepare_if_each(connection, self.select)?;
        let mut statement = connection.statement(self.select);
        let (first, last) = chunks_of(key);
        statement.bind_i64(1, first)?;
        statement.bind_i64(2, last)?;
        buffer.clear();
        let mut is_first = true;
        while let Some(mut row) = statement.step()? {
            let piece = row.blob(0)?;
            if piece.len() < self.chunk_bytes {
                if is_first {
                    consume(piece);
                } else {
                    buffer.extend_from_slice(piece);
                    consume(buffer);
                }
                statement.reset()?;
                return Ok(Found::Yes);
            }
            buffer.extend_from_slice(piece);
            is_first = false;
        }
        if is_first {
            Ok(Found::No)
        } else {
            Err(endless(key))
        }
    }

    /// The row that has a key's blob; of chunks, the first.
    #[inline]
    pub(super) fn rowid(
        &mut self,
        connection: &mut Connection,
        key: u64,
    ) -> Result<Option<i64>, SqliteError> {
        if let Some(names) = &self.names {
            return Ok(names.get(self.name.of(key).as_bytes()).copied());
        }
        if self.layout == Layout::Chunked {
            return Ok((key < CHUNKED_KEYS).then(|| chunks_of(key).0));
        }
        let Some(select) = self.select_rowid else {
            return Ok(Some(key.cast_signed()));
        };
        let mut statement = connection.statement(select);
        bind_key(&mut statement, self.layout, &mut self.name, key)?;
        Ok(statement.step()?.map(|row| row.i64(0)))
    }

    /// Whether there is a row of that number.
    #[cold]
    pub(super) fn has_row(
        &self,
        connection: &mut Connection,
        rowid: i64,
    ) -> Result<bool, SqliteError> {
        let Some(select) = self.select_by_rowid else {
            return Ok(false);
        };
        let mut statement = connection.statement(select);
        statement.bind_i64(1, rowid)?;
        Ok(statement.step()?.is_some())
    }

    /// Puts another blob in the place of a key's, if there is one.
    pub(super) fn update(
        &mut self,
        connection: &mut Connection,
        key: u64,
        value: &[u8],
    ) -> Result<Found, SqliteError> {
        if self.layout == Layout::Chunked {
            return self.update_chunks(connection, key, value);
        }
        for step in 0..self.update.len() {
            let changed = self.run(connection, self.update[step], key, value)?;
            if step == 0 && changed == Found::No {
                return Ok(Found::No);
            }
        }
        Ok(Found::Yes)
    }

    /// Adds a blob whose key has none.
    pub(super) fn insert(
        &mut self,
        connection: &mut Connection,
        key: u64,
        value: &[u8],
    ) -> Result<(), SqliteError> {
        self.forget_names();
        if self.layout == Layout::Chunked {
            for (id, piece) in self.pieces(key, value)? {
                self.run_on_row(connection, self.insert[0].0, id, piece)?;
            }
            return Ok(());
        }
        for step in 0..self.insert.len() {
            self.run(connection, self.insert[step], key, value)?;
        }
        Ok(())
    }

    /// Removes a key's blob.
    pub(super) fn delete(
        &mut self,
        connection: &mut Connection,
        key: u64,
    ) -> Result<Found, SqliteError> {
        self.forget_names();
        if self.layout == Layout::Chunked {
            if key >= CHUNKED_KEYS {
                return Ok(Found::No);
            }
            let (first, last) = chunks_of(key);
            return self.delete_rows(connection, first, last);
        }
        let mut found = Found::No;
        for step in 0..self.delete.len() {
            found = self.run(connection, self.delete[step], key, &[])?;
        }
        Ok(found)
    }

    /// All keys, in ascending order.
    pub(super) fn keys(
        &mut self,
        connection: &mut Connection,
        visit: &mut dyn FnMut(u64),
    ) -> Result<(), SqliteError> {
        let mut statement = connection.statement(self.keys);
        while let Some(row) = statement.step()? {
            visit(row.i64(0).cast_unsigned());
        }
        statement.reset()
    }

    /// Runs one statement of a change; says whether it changed a row.
    fn run(
        &mut self,
        connection: &mut Connection,
        (id, binds): (StatementId, Binds),
        key: u64,
        value: &[u8],
    ) -> Result<Found, SqliteError> {
        self.prepare_if_each(connection, id)?;
        let mut statement = connection.statement(id);
        if binds == Binds::Value {
            statement.bind_blob(1, value)?;
        } else {
            bind_key(&mut statement, self.layout, &mut self.name, key)?;
        }
        match binds {
            Binds::KeyAndValue => statement.bind_blob(2, value)?,
            // No blob reaches 2 GiB.
            Binds::KeyAndSize => statement.bind_i64(2, value.len() as i64)?,
            Binds::Key | Binds::Value => {}
        }
        statement.run()?;
        drop(statement);
        Ok(changed(connection))
    }

    /// The rows of a blob: number and piece of each, the last one shorter than a full chunk.
    fn pieces<'v>(
        &self,
        key: u64,
        value: &'v [u8],
    ) -> Result<impl Iterator<Item = (i64, &'v [u8])> + use<'v>, SqliteError> {
        if key >= CHUNKED_KEYS {
            let reason = format!("layout = chunked takes keys below {CHUNKED_KEYS}");
            return Err(SqliteError::misuse("write", &reason));
        }
        let full = value.chunks_exact(self.chunk_bytes);
        if full.len() >= 1 << CHUNK_NUMBER_BITS {
            let reason = "the blob has more chunks than a key has room for";
            return Err(SqliteError::misuse("write", reason));
        }
        let rest = std::iter::once(full.remainder());
        Ok((chunks_of(key).0..).zip(full.chain(rest)))
    }

    fn update_chunks(
        &mut self,
        connection: &mut Connection,
        key: u64,
        value: &[u8],
    ) -> Result<Found, SqliteError> {
        let (update, insert) = (self.update[0].0, self.insert[0].0);
        let (first, last) = chunks_of(key);
        let mut next = first;
        for (id, piece) in self.pieces(key, value)? {
            if self.run_on_row(connection, update, id, piece)? == Found::No {
                if id == first {
                    return Ok(Found::No);
                }
                self.run_on_row(connection, insert, id, piece)?;
            }
            next = id + 1;
        }
        if next <= last {
            self.delete_rows(connection, next, last)?;
        }
        Ok(Found::Yes)
    }

    fn run_on_row(
        &self,
        connection: &mut Connection,
        id: StatementId,
        rowid: i64,
        piece: &[u8],
    ) -> Result<Found, SqliteError> {
        self.prepare_if_each(connection, id)?;
        let mut statement = connection.statement(id);
        statement.bind_i64(1, rowid)?;
        statement.bind_blob(2, piece)?;
        statement.run()?;
        drop(statement);
        Ok(changed(connection))
    }

    fn delete_rows(
        &self,
        connection: &mut Connection,
        first: i64,
        last: i64,
    ) -> Result<Found, SqliteError> {
        let delete = self.delete[0].0;
        self.prepare_if_each(connection, delete)?;
        let mut statement = connection.statement(delete);
        statement.bind_i64(1, first)?;
        statement.bind_i64(2, last)?;
        statement.run()?;
        drop(statement);
        Ok(changed(connection))
    }
}

/// Whether the last statement changed a row.
fn changed(connection: &Connection) -> Found {
    match connection.changes() {
        0 => Found::No,
        _ => Found::Yes,
    }
}

/// First and last number of the rows that a key's chunks may have.
#[inline]
fn chunks_of(key: u64) -> (i64, i64) {
    let first = (key << CHUNK_NUMBER_BITS).cast_signed();
    (first, first | ((1 << CHUNK_NUMBER_BITS) - 1))
}

/// A blob whose last piece is as long as all others.
#[cold]
pub(super) fn endless(key: u64) -> SqliteError {
    SqliteError::misuse("read", &format!("the last chunk of blob {key} is missing"))
}

/// Binds a key to the first parameter.
#[inline]
fn bind_key<'c>(
    statement: &mut Statement<'c>,
    layout: Layout,
    name: &'c mut KeyName,
    key: u64,
) -> Result<(), SqliteError> {
    if layout.is_named() {
        statement.bind_text(1, name.of(key))
    } else {
        // Keys above i64::MAX become negative, and again themselves when they are read.
        statement.bind_i64(1, key.cast_signed())
    }
}

/// A key as a name: decimal, at least six digits (`000001`), as kvtest names files. Made in
/// place, without an allocation.
struct KeyName {
    digits: [u8; Self::MOST_DIGITS],
}

impl KeyName {
    const LEAST_DIGITS: usize = 6;
    const MOST_DIGITS: usize = 20;

    fn new() -> Self {
        Self {
            digits: [b'0'; Self::MOST_DIGITS],
        }
    }

    /// The name of a key.
    fn of(&mut self, key: u64) -> &str {
        let mut rest = key;
        let mut start = Self::MOST_DIGITS;
        while rest > 0 || start > Self::MOST_DIGITS - Self::LEAST_DIGITS {
            start -= 1;
            self.digits[start] = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        // Digits are ASCII, so the default is never taken.
        std::str::from_utf8(&self.digits[start..]).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_kvtest() {
        let mut name = KeyName::new();
        assert_eq!(name.of(1), "000001");
        assert_eq!(name.of(999_999), "999999");
        assert_eq!(name.of(1_000_000), "1000000");
        assert_eq!(name.of(u64::MAX), u64::MAX.to_string());
        assert_eq!(name.of(0), "000000");
    }

    #[test]
    fn chunks_of_neighbouring_keys_do_not_overlap() {
        for key in [0, 1, 1000, CHUNKED_KEYS - 2] {
            let ((first, last), (next, _)) = (chunks_of(key), chunks_of(key + 1));
            assert_eq!(last - first, (1 << CHUNK_NUMBER_BITS) - 1);
            assert_eq!(next, last + 1);
        }
        assert_eq!(chunks_of(CHUNKED_KEYS - 1).1, i64::MAX);
    }
}
