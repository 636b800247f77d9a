//! `SCHEMA.md` tells the truth: its queries run and give what they say, and it names every table
//! and column there is.

mod fixture;

use rusqlite::Connection;
use sqlitmus_runfile::decode_latencies;

const DOCUMENT: &str = include_str!("../SCHEMA.md");

fn opened() -> (tempfile::TempDir, Connection) {
    let directory = tempfile::tempdir().expect("directory");
    let path = fixture::run_file(directory.path());
    (directory, Connection::open(path).expect("opened"))
}

/// The rows of a documented query: texts and numbers as text.
fn rows(connection: &Connection, query: usize) -> Vec<Vec<String>> {
    let mut blocks = DOCUMENT.split("```sql\n").skip(1);
    let sql = blocks.nth(query).and_then(|rest| rest.split("```").next());
    let mut statement = connection.prepare(sql.expect("query")).expect("prepared");
    let columns = statement.column_count();
    let text = |row: &rusqlite::Row<'_>, column| {
        let value: rusqlite::types::Value = row.get(column)?;
        Ok(match value {
            rusqlite::types::Value::Text(text) => text,
            rusqlite::types::Value::Integer(number) => number.to_string(),
            rusqlite::types::Value::Real(number) => format!("{number:.3}"),
            other => format!("{other:?}"),
        })
    };
    statement
        .query_map([], |row| {
            (0..columns).map(|column| text(row, column)).collect()
        })
        .and_then(Iterator::collect)
        .expect("rows")
}

#[test]
fn nanoseconds_by_arm_and_round() {
    let (_directory, connection) = opened();
    // Invalid in round 1 is sqlite; of round 2 there is one slice of sqlite.
    let expected = [
        ["files", "0", "9015.000", "4"],
        ["files", "1", "9015.010", "4"],
        ["files~twin", "0", "9015.000", "4"],
        ["files~twin", "1", "9015.010", "4"],
        ["sqlite", "0", "4507.500", "4"],
        ["sqlite", "2", "4500.010", "1"],
    ];
    assert_eq!(rows(&connection, 0), expected);
}

#[test]
fn ratios_to_the_baseline_by_turn() {
    let (_directory, connection) = opened();
    let rows = rows(&connection, 1);
    // Twice four of the twin and four of sqlite: its round 2 has no baseline yet.
    assert_eq!(rows.len(), 12);
    assert_eq!(rows[3], ["files~twin", "0", "3", "1.000"]);
    assert_eq!(rows[8], ["sqlite", "0", "0", "2.000"]);
}

#[test]
fn slowest_slices_first() {
    let (_directory, connection) = opened();
    let rows = rows(&connection, 2);
    assert_eq!(rows.len(), 10);
    assert_eq!(rows[0][2], "3", "the last turn is made the slowest");
    assert_eq!(rows[0][5], "1.002");
}

#[test]
fn every_table_and_column_is_described() {
    let (_directory, connection) = opened();
    let mut statement = connection
        .prepare(
            "SELECT object.name, field.name FROM sqlite_schema AS object \
             JOIN pragma_table_info(object.name) AS field WHERE object.type IN ('table', 'view')",
        )
        .expect("prepared");
    let fields = statement
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
        .and_then(Iterator::collect::<Result<Vec<(String, String)>, _>>)
        .expect("fields");
    assert!(fields.len() > 60);
    for (object, field) in fields {
        assert!(DOCUMENT.contains(&format!("**{object}**")), "{object}");
        let is_of_view = object == "slice" && !field.ends_with("operation_ns");
        assert!(
            is_of_view || DOCUMENT.contains(&format!("`{field}`")),
            "{object}.{field}"
        );
    }
}

#[test]
fn latencies_decode() {
    let (_directory, connection) = opened();
    let bytes: Vec<u8> = connection
        .query_row(
            "SELECT latencies FROM trial WHERE trial_id = 1",
            [],
            |row| row.get(0),
        )
        .expect("bytes");
    let latencies = decode_latencies(&bytes).expect("whole pairs");
    assert_eq!(latencies, fixture::trial("files", 0, 4).latencies);
}
