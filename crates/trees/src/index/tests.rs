use super::naive::NaiveDatabase;
use super::*;

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};

use rusqlite::types::Value;

/// A tree, and a place beside it for the database.
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("folder");
        fs::create_dir_all(folder.path().join("tree/a/b/c")).expect("folders");
        fs::create_dir(folder.path().join("tree/empty")).expect("folder");
        let place = Self { folder };
        place.write("one", "1");
        place.write("a/two", "22");
        place.write("a/b/c/three", "333");
        symlink("one", place.tree().join("link")).expect("link");
        let odd = OsStr::from_bytes(b"caf\xE9");
        fs::write(place.tree().join("a").join(odd), "x").expect("file");
        place
    }

    fn tree(&self) -> PathBuf {
        self.folder.path().join("tree")
    }

    fn database(&self) -> PathBuf {
        self.folder.path().join("index.db")
    }

    fn write(&self, path: &str, content: &str) {
        fs::write(self.tree().join(path), content).expect("file");
    }

    fn record(&self) -> Indexed {
        self.record_into(&self.database())
    }

    fn record_into(&self, path: &Path) -> Indexed {
        let tree = Tree::open(&self.tree()).expect("tree");
        let mut database = IndexDatabase::open(path, &tree).expect("database");
        let options = IndexOptions::default();
        let recorded = record(&tree, &mut database, &options, &|| false, &mut |_| {});
        recorded.expect("recorded")
    }

    fn ask(&self, sql: &str) -> Vec<Vec<Value>> {
        ask(&self.database(), sql)
    }

    /// All that is recorded, but for digests and ids.
    fn contents(&self, path: &Path) -> Vec<Vec<Value>> {
        let sql = "SELECT path, state, entry.* FROM folder_path JOIN folder ON folder.id = folder_id \
                   LEFT JOIN entry USING (folder_id) ORDER BY path, entry.name";
        let mut rows = ask(path, sql);
        for row in &mut rows {
            // The id of the folder: which one it gets depends on which thread is faster.
            row.remove(2);
        }
        rows
    }

    /// What is recorded is what a new recording of the same tree has.
    fn check(&self) {
        let fresh = self.folder.path().join("fresh.db");
        self.record_into(&fresh);
        assert_eq!(self.contents(&self.database()), self.contents(&fresh));
        let orphans = "SELECT folder_id FROM entry WHERE folder_id NOT IN (SELECT id FROM folder)
                       UNION ALL SELECT id FROM folder WHERE parent_id NOT IN (SELECT id FROM folder)";
        assert!(self.ask(orphans).is_empty());
        assert_eq!(self.ask("PRAGMA integrity_check"), [[text("ok")]]);
        fs::remove_file(fresh).expect("removed");
    }
}

fn ask(path: &Path, sql: &str) -> Vec<Vec<Value>> {
    let connection = rusqlite::Connection::open(path).expect("opens");
    let mut statement = connection.prepare(sql).expect("prepared");
    let columns = statement.column_count();
    let rows = statement.query_map([], |row| {
        (0..columns).map(|column| row.get(column)).collect()
    });
    rows.expect("asked").map(|row| row.expect("row")).collect()
}

fn text(text: &str) -> Value {
    Value::Text(text.to_owned())
}

#[test]
fn every_entry_is_recorded_with_what_the_system_says_of_it() {
    let place = Place::new();
    let indexed = place.record();
    assert_eq!(indexed.counts.total(), 9);
    assert_eq!(indexed.writes.entries_added, 9);
    assert_eq!(indexed.writes.folders_added, 5);
    assert!(!indexed.stopped && indexed.sql_ns > 0 && indexed.walk_ns > 0);
    let sql = "SELECT kind, size_bytes, mtime_ns, inode, path FROM entry JOIN folder_path \
               USING (folder_id) WHERE name = 'three'";
    let three = place.tree().canonicalize().expect("path").join("a/b/c");
    let metadata = fs::metadata(three.join("three")).expect("metadata");
    let mtime_ns = metadata.mtime() * 1_000_000_000 + metadata.mtime_nsec();
    assert_eq!(
        place.ask(sql),
        [[
            text("f"),
            Value::Integer(3),
            Value::Integer(mtime_ns),
            Value::Integer(metadata.ino().cast_signed()),
            text(three.to_str().expect("UTF-8")),
        ]]
    );
    let kinds = "SELECT kind, count(*) FROM entry GROUP BY kind ORDER BY kind";
    let count = |kind, count| vec![text(kind), Value::Integer(count)];
    assert_eq!(
        place.ask(kinds),
        [count("d", 4), count("f", 4), count("l", 1)]
    );
    // A name that is not UTF-8 is a blob of its bytes.
    let sql = "SELECT name FROM entry WHERE typeof(name) = 'blob'";
    assert_eq!(place.ask(sql), [[Value::Blob(b"caf\xE9".to_vec())]]);
    place.check();
}

#[test]
fn a_tree_that_has_not_changed_causes_no_write() {
    let place = Place::new();
    place.record();
    let bytes = fs::read(place.database()).expect("read");
    let metadata = fs::metadata(place.database()).expect("metadata");
    let again = place.record();
    assert_eq!(again.writes, RowWrites::default());
    assert_eq!(again.commits, 0);
    assert_eq!(again.counts.total(), 9);
    assert!(fs::read(place.database()).expect("read") == bytes);
    let now = fs::metadata(place.database()).expect("metadata");
    assert_eq!(
        (metadata.mtime(), metadata.mtime_nsec()),
        (now.mtime(), now.mtime_nsec())
    );
}

#[test]
fn only_what_has_changed_is_written() {
    let place = Place::new();
    place.record();
    place.write("a/two", "twenty-two");
    place.write("a/b/new", "new");
    let changed = place.record();
    // `two` has another size, `b` another time, `new` is new.
    assert_eq!(changed.writes.entries_changed, 2);
    assert_eq!(changed.writes.entries_added, 1);
    assert_eq!(changed.writes.entries_removed, 0);
    assert_eq!(changed.writes.folders_changed, 2);
    assert_eq!(changed.writes.folders_added, 0);
    place.check();
}

#[test]
fn what_is_gone_renamed_or_something_else_now_is_so_in_the_index() {
    let place = Place::new();
    place.record();
    fs::rename(place.tree().join("a/b"), place.tree().join("renamed")).expect("renamed");
    let renamed = place.record();
    assert_eq!(renamed.writes.folders_removed, 2);
    assert_eq!(renamed.writes.folders_added, 2);
    place.check();
    fs::remove_dir_all(place.tree().join("renamed")).expect("removed");
    place.write("renamed", "a file of that name");
    fs::remove_file(place.tree().join("one")).expect("removed");
    fs::create_dir(place.tree().join("one")).expect("made");
    place.write("one/inside", "x");
    let odd = place.tree().join("a").join(OsStr::from_bytes(b"caf\xE9"));
    fs::remove_file(odd).expect("removed");
    let changed = place.record();
    assert_eq!(changed.writes.folders_removed, 2);
    assert!(changed.writes.entries_removed > 0);
    place.check();
    fs::remove_dir_all(place.tree()).expect("removed");
    fs::create_dir(place.tree()).expect("made");
    place.record();
    assert_eq!(
        place.ask("SELECT count(*) FROM entry"),
        [[Value::Integer(0)]]
    );
    assert_eq!(
        place.ask("SELECT count(*) FROM folder"),
        [[Value::Integer(1)]]
    );
}

#[test]
fn the_published_columns_are_a_view() {
    let place = Place::new();
    place.record();
    let naive = place.folder.path().join("naive.db");
    let tree = Tree::open(&place.tree()).expect("tree");
    let mut database = NaiveDatabase::create(&naive).expect("database");
    let options = IndexOptions {
        report_every: Duration::ZERO,
        ..IndexOptions::default()
    };
    let mut reports = Vec::new();
    let indexed = naive::record(&tree, &mut database, &options, &|| false, &mut |progress| {
        reports.push(*progress);
    });
    let indexed = indexed.expect("recorded");
    assert_eq!((indexed.writes.entries_added, indexed.commits), (9, 9));
    assert_eq!(reports.len(), 9);
    assert_eq!(reports[8].rows, 9);
    assert!(reports[8].sql_ns > 0 && reports[8].sql_ns <= indexed.sql_ns);
    let sql = "SELECT folder, filename FROM file_index ORDER BY 1, 2";
    assert_eq!(ask(&naive, sql), place.ask(sql));
    let refused = NaiveDatabase::create(&naive);
    assert!(
        matches!(refused, Err(TreeError::NotEmpty { .. })),
        "{refused:?}"
    );
}

#[test]
fn a_database_inside_its_own_tree_settles() {
    let place = Place::new();
    let inside = place.tree().join("a/index.db");
    place.record_into(&inside);
    let again = place.record_into(&inside);
    assert_eq!(again.writes, RowWrites::default());
    let sql = "SELECT count(*) FROM entry WHERE name LIKE 'index.db%'";
    assert_eq!(ask(&inside, sql), [[Value::Integer(0)]]);
}

#[test]
fn a_stopped_recording_goes_on_where_it_was() {
    let place = Place::new();
    let tree = Tree::open(&place.tree()).expect("tree");
    let mut database = IndexDatabase::open(&place.database(), &tree).expect("database");
    let options = IndexOptions {
        time_limit: Some(Duration::ZERO),
        ..IndexOptions::default()
    };
    let stopped = record(&tree, &mut database, &options, &|| false, &mut |_| {});
    let stopped = stopped.expect("recorded");
    assert!(stopped.stopped);
    drop(database);
    let complete = "SELECT is_complete FROM tree";
    assert_eq!(place.ask(complete), [[Value::Integer(0)]]);
    let rest = place.record();
    assert_eq!(stopped.writes.entries_added + rest.writes.entries_added, 9);
    assert_eq!(place.ask(complete), [[Value::Integer(1)]]);
    place.check();
}

#[test]
fn what_is_not_an_index_of_this_tree_is_refused_and_stays_as_it_is() {
    let place = Place::new();
    let tree = Tree::open(&place.tree()).expect("tree");
    let path = place.folder.path().join("other");
    let refuse = |what: &str| {
        let before = fs::read(&path).expect("read");
        let error = IndexDatabase::open(&path, &tree).expect_err(what);
        assert!(
            !error.environment_failed() && !error.hint().is_empty(),
            "{error}"
        );
        assert!(error.to_string().contains(what), "{error}");
        assert!(
            fs::read(&path).expect("read") == before,
            "{what}: unchanged"
        );
        fs::remove_file(&path).expect("removed");
    };
    fs::write(&path, "hello, this is text").expect("written");
    refuse("not an SQLite database");
    let other = |sql: &str| {
        let connection = rusqlite::Connection::open(&path).expect("opens");
        connection.execute_batch(sql).expect("made");
    };
    other("CREATE TABLE mail (id); CREATE TABLE contact (id)");
    refuse("it has the tables mail, contact");
    other("PRAGMA application_id = 5; CREATE TABLE mail (id)");
    refuse("not an index");
    place.record_into(&path);
    other("PRAGMA user_version = 99");
    refuse("of format 99");
    place.record_into(&path);
    other("UPDATE tree SET path = '/somewhere/else'");
    refuse("is the index of /somewhere/else");
    fs::create_dir(&path).expect("made");
    let refused = IndexDatabase::open(&path, &tree);
    assert!(matches!(refused, Err(TreeError::NotAFile { .. })));
}

#[test]
fn an_empty_file_and_an_empty_database_are_taken() {
    let place = Place::new();
    fs::write(place.database(), "").expect("written");
    place.record();
    place.check();
    fs::remove_file(place.database()).expect("removed");
    let connection = rusqlite::Connection::open(place.database()).expect("opens");
    connection.execute_batch("VACUUM").expect("vacuumed");
    drop(connection);
    place.record();
    place.check();
}

#[test]
fn many_transactions_and_threads_give_the_same() {
    let place = Place::new();
    for number in 0..500 {
        let folder = format!("{}/{}", number % 7, number % 31);
        fs::create_dir_all(place.tree().join(&folder)).expect("folders");
        place.write(&format!("{folder}/{number}"), "x");
    }
    let tree = Tree::open(&place.tree()).expect("tree");
    let mut database = IndexDatabase::open(&place.database(), &tree).expect("database");
    let mut options = IndexOptions {
        rows_per_transaction: 1,
        report_every: Duration::ZERO,
        ..IndexOptions::default()
    };
    options.walk.threads = std::num::NonZeroUsize::new(5).expect("five");
    let mut rows = Vec::new();
    let indexed = record(&tree, &mut database, &options, &|| false, &mut |progress| {
        rows.push(progress.rows);
    });
    assert!(indexed.expect("recorded").commits > 1);
    assert!(rows.is_sorted());
    place.check();
}
