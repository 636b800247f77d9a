//! Everything that reads an archive, run over bytes that anybody may have made: the target of the fuzzer
//! (`fuzz/`), of the driver `examples/fuzz_for.rs`, and of the test that replays the corpus. Nothing is written.
//!
//! Bytes that begin like a database are taken as one. All others are a recipe for the rows of a
//! sound database, so that a fuzzer reaches what lies behind SQLite's own checks.

use rusqlite::types::Value;
use rusqlite::{Connection, MAIN_DB, params_from_iter};

use crate::archive::Archive;
use crate::entry::Kind;
use crate::error::ArchiveError;
use crate::reader::{Place, Reader};
use crate::unpack::{UnpackSettings, check_plan};
use crate::verify::{VerifySettings, verify};
use crate::watch::Watch;

/// Rows of a recipe.
const MOST_ROWS: usize = 32;

/// Content of one entry that is read: what is larger is refused, and refusing is what is tried.
const MOST_BYTES: u64 = 4 * 1024 * 1024;

/// Reads an archive in every way there is.
///
/// # Panics
/// If what is read contradicts itself. That is a defect.
pub fn exercise(bytes: &[u8]) {
    if bytes.starts_with(b"SQLite format 3\0") {
        read_all(bytes);
    } else if let Ok(database) = database_of(bytes) {
        read_all(&database);
    }
}

fn read_all(bytes: &[u8]) {
    // Each failure is an answer; only a crash, a hang or a contradiction is a defect.
    let Ok(archive) = Archive::from_bytes(bytes.to_vec()) else {
        return;
    };
    let Ok(reader) = archive.reader() else { return };
    let _ = read_entries(&reader);
    let _ = reader.catalogue();
    let _ = check_plan(&reader, &UnpackSettings::default());
    let settings = VerifySettings {
        threads: 1,
        ..VerifySettings::default()
    };
    let small = reader
        .entries()
        .is_ok_and(|entries| entries.iter().all(|entry| entry.size <= MOST_BYTES));
    if small {
        let _ = verify(&archive, &settings, &Watch::new());
    }
}

fn read_entries(reader: &Reader) -> Result<(), ArchiveError> {
    // In a damaged tree of pages one row may be found in two ways, with two contents.
    let is_sound = reader.integrity_faults()?.is_empty();
    let mut lookup = reader.lookup()?;
    let mut entries = Vec::new();
    reader.for_each_entry(|entry| {
        if let Ok(entry) = entry {
            entries.push(entry);
        }
        Ok(())
    })?;
    for entry in entries.iter().filter(|entry| entry.size <= MOST_BYTES) {
        let mut poured = Vec::new();
        let result = lookup.pour(entry, &mut |piece| {
            poured.extend_from_slice(piece);
            assert!(poured.len() as u64 <= entry.size, "more than was claimed");
            Ok(())
        });
        if result.is_ok() {
            assert_eq!(poured.len() as u64, entry.size, "as much as was claimed");
        }
        if is_sound && entry.kind == Kind::File && entry.stored_bytes > 0 {
            let at_place = lookup.get_at(Place::of(entry)).map(<[u8]>::to_vec);
            assert_eq!(
                at_place.ok(),
                result.is_ok().then(|| poured.clone()),
                "both ways agree"
            );
            let middle = entry.size / 2;
            let mut part = Vec::new();
            let ranged = lookup.pour_range(entry, middle..entry.size, &mut |piece| {
                part.extend_from_slice(piece);
                Ok(())
            });
            if ranged.is_ok() {
                assert_eq!(part, poured[middle as usize..], "a part is a part");
            }
        }
        let _ = lookup.get(&entry.name);
        let _ = reader.entry(&entry.name);
        let _ = reader.name_after(&entry.name, "\u{10ffff}");
    }
    Ok(())
}

/// Makes a database of a recipe: for every row a few numbers, a name and data.
fn database_of(recipe: &[u8]) -> rusqlite::Result<Vec<u8>> {
    let mut recipe = Recipe(recipe);
    let mut connection = Connection::open_in_memory()?;
    let key = if recipe.byte() & 1 == 0 {
        "PRIMARY KEY"
    } else {
        ""
    };
    connection.execute_batch(&format!(
        "PRAGMA page_size = 512; CREATE TABLE sqlar(name TEXT {key}, mode INT, mtime INT, sz INT, data BLOB)"
    ))?;
    for _ in 0..MOST_ROWS {
        if recipe.0.is_empty() {
            break;
        }
        let row = recipe.row();
        // A name that is there already is refused, and that is well.
        let _ = connection.execute(
            "INSERT INTO sqlar VALUES(?1, ?2, ?3, ?4, ?5)",
            params_from_iter(row),
        );
    }
    Ok(connection.serialize(MAIN_DB)?.to_vec())
}

struct Recipe<'a>(&'a [u8]);

impl Recipe<'_> {
    fn byte(&mut self) -> u8 {
        match self.0.split_first() {
            Some((first, rest)) => {
                self.0 = rest;
                *first
            }
            None => 0,
        }
    }

    fn bytes(&mut self, length: usize) -> Vec<u8> {
        let (taken, rest) = self.0.split_at(length.min(self.0.len()));
        self.0 = rest;
        taken.to_vec()
    }

    fn row(&mut self) -> [Value; 5] {
        let shape = self.byte();
        let name_length = usize::from(self.byte() % 64);
        let name = self.bytes(name_length);
        let name = match String::from_utf8(name) {
            Ok(name) => Value::Text(name),
            Err(error) => Value::Blob(error.into_bytes()),
        };
        let kind = [
            0o100_000, 0o040_000, 0o120_000, 0, 0o060_000, -1, 0o100_000, 0o100_000,
        ];
        let mode = kind[usize::from(shape & 7)] | i64::from(self.byte());
        let data_length = usize::from(self.byte());
        let data = self.bytes(data_length);
        let length = data.len() as i64;
        let (size, stored) = match shape >> 3 & 7 {
            0 => (length, Value::Blob(data)),
            1 => (length, Value::Blob(deflated(&data))),
            2 => (
                length + i64::from(self.byte()) - 128,
                Value::Blob(deflated(&data)),
            ),
            3 => (i64::from(self.byte()) - 128, Value::Blob(data)),
            4 => (
                i64::from(self.byte()) << (self.byte() & 62),
                Value::Blob(data),
            ),
            5 => (0, Value::Null),
            6 => (
                length,
                Value::Text(String::from_utf8_lossy(&data).into_owned()),
            ),
            _ => (-1, Value::Blob(data)),
        };
        let mtime = if shape >> 6 == 3 {
            Value::Real(0.5)
        } else {
            Value::Integer(i64::MIN)
        };
        [
            name,
            Value::Integer(mode),
            mtime,
            Value::Integer(size),
            stored,
        ]
    }
}

/// Whether it becomes smaller or not.
fn deflated(data: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    // Writing to a vector cannot fail.
    let _ = encoder.write_all(data);
    encoder.finish().unwrap_or_default()
}
