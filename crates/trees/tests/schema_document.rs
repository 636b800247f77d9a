//! SCHEMA.md says of the index what is true: its tables, columns and numbers, and queries that run.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use sqlitmus_trees::index::database::{APPLICATION_ID, FORMAT_VERSION};
use sqlitmus_trees::index::{IndexDatabase, IndexOptions, record};
use sqlitmus_trees::walk::Tree;

const DOCUMENT: &str = include_str!("../SCHEMA.md");

fn index(place: &Path) -> IndexDatabase {
    fs::create_dir_all(place.join("tree/below")).expect("folders");
    fs::write(place.join("tree/below/letter.ttf"), "x").expect("file");
    let tree = Tree::open(&place.join("tree")).expect("opens");
    let mut database = IndexDatabase::open(&place.join("index.db"), &tree).expect("opens");
    let options = IndexOptions::default();
    record(&tree, &mut database, &options, &|| false, &mut |_| {}).expect("recorded");
    database
}

/// The words in backquotes in the first column of the table under a heading.
fn documented_columns(table: &str) -> BTreeSet<String> {
    let section = DOCUMENT
        .split(&format!("**{table}**"))
        .nth(1)
        .expect("section");
    let section = section.split("\n**").next().expect("up to the next");
    let cells = section.lines().filter_map(|line| line.strip_prefix("| `"));
    cells
        .filter_map(|cell| cell.split('`').next())
        .map(str::to_owned)
        .collect()
}

#[test]
fn tables_and_columns_are_those_of_the_document() {
    let place = tempfile::tempdir().expect("folder");
    let database = index(place.path());
    let connection = database.connection();
    for table in ["tree", "folder", "entry"] {
        let mut statement = connection
            .prepare("SELECT name FROM pragma_table_info(?1)")
            .expect("prepared");
        let columns = statement
            .query_map([table], |row| row.get(0))
            .expect("asked");
        let columns: BTreeSet<String> = columns.map(|column| column.expect("name")).collect();
        assert_eq!(columns, documented_columns(table), "{table}");
    }
    assert!(DOCUMENT.contains(&format!("{APPLICATION_ID:#x}")));
    assert!(DOCUMENT.contains(&format!("version of this format: {FORMAT_VERSION}.")));
}

#[test]
fn its_queries_run_and_find_something() {
    let place = tempfile::tempdir().expect("folder");
    let database = index(place.path());
    let queries: Vec<&str> = DOCUMENT
        .split("```sql\n")
        .skip(1)
        .map(|rest| rest.split("```").next().expect("closed"))
        .collect();
    assert_eq!(queries.len(), 6);
    for query in queries {
        let mut statement = database.connection().prepare(query).expect(query);
        let columns = statement.column_count();
        let found = statement
            .query([])
            .expect(query)
            .next()
            .expect(query)
            .is_some();
        let finds_nothing_here = query.contains("'blob'") || columns == 0;
        assert_eq!(found, !finds_nothing_here, "{query}");
    }
}
