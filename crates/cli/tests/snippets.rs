//! What `sqlitmus advise` gives to paste is run: every language with names and with numbers as keys.
//! Languages whose compiler or library is missing are skipped with the reason. The Rust of it is compiled
//! with these tests.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output};

use sqlitmus_report::advice::snippet::{Key, Language, Setup};

#[path = "snippets/by_id.rs"]
#[allow(dead_code, missing_docs)]
mod by_id;
#[path = "snippets/by_name.rs"]
#[allow(dead_code, missing_docs)]
mod by_name;

fn setup(key: Key) -> Setup {
    Setup {
        title: "SQLite 16 KiB, mmap | measured by sqlitmus advise /some/where".to_owned(),
        page_bytes: "16384".to_owned(),
        journal_mode: "wal".to_owned(),
        synchronous: "normal".to_owned(),
        mmap_bytes: "1099511627776".to_owned(),
        key,
    }
}

fn skipped(language: &str, reason: &str) {
    writeln!(std::io::stderr(), "skipped: {language}: {reason}").expect("stderr");
}

fn run(command: &mut Command) -> Output {
    let output = command.output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{command:?}: {said}");
    output
}

/// Whether a program is there and says that all is well.
fn is_there(program: &str, words: &[&str]) -> bool {
    let output = Command::new(program).args(words).output();
    output.is_ok_and(|output| output.status.success())
}

/// The database that a snippet has made is what was asked for, and holds what was written.
fn check(path: &Path, key: Key) {
    let database = rusqlite::Connection::open(path).expect("opens");
    let text = |sql: &str| -> String {
        let value = database.query_row(sql, [], |row| row.get::<_, rusqlite::types::Value>(0));
        match value.expect("a row") {
            rusqlite::types::Value::Integer(number) => number.to_string(),
            rusqlite::types::Value::Text(text) => text,
            other => format!("{other:?}"),
        }
    };
    assert_eq!(text("PRAGMA page_size"), "16384");
    assert_eq!(text("PRAGMA journal_mode"), "wal");
    let column = match key {
        Key::Name => "'one'",
        Key::Id => "1",
    };
    let name = if key == Key::Name { "name" } else { "id" };
    let sql = format!("SELECT hex(content) FROM file WHERE {name} = {column}");
    assert_eq!(
        text(&sql),
        "006E6577",
        "a zero byte, and what was written last"
    );
    assert_eq!(text("SELECT count(*) FROM file"), "1");
}

#[test]
fn python() {
    if !is_there("python3", &["-c", "import sqlite3"]) {
        return skipped("python", "there is no python3 with sqlite3");
    }
    for (key, one, none) in [(Key::Name, "'one'", "'none'"), (Key::Id, "1", "2")] {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir_all(folder.path().join("tree/deep")).expect("created");
        fs::write(folder.path().join("tree/deep/file"), "content").expect("written");
        let code = setup(key).code(Language::Python);
        let test = format!(
            "{code}\nstore = open_store('db')\n\
             assert store.execute('PRAGMA synchronous').fetchone()[0] == 1\n\
             assert read(store, {one}) is None\n\
             write(store, {one}, b'old')\nwrite(store, {one}, bytes([0]) + b'new')\n\
             assert read(store, {one}) == bytes([0]) + b'new'\nassert read(store, {none}) is None\n\
             store.close()\n\
             other = open_store('other')\nfound = import_directory(other, 'tree')\n\
             assert read(other, found['deep/file']) == b'content', found\n"
        );
        fs::write(folder.path().join("snippet.py"), test).expect("written");
        let mut command = Command::new("python3");
        run(command.arg("snippet.py").current_dir(folder.path()));
        check(&folder.path().join("db"), key);
    }
}

#[test]
fn c() {
    let probe = tempfile::tempdir().expect("a folder");
    fs::write(
        probe.path().join("probe.c"),
        "#include <sqlite3.h>\nint main(void) { return sqlite3_threadsafe() < 0; }\n",
    )
    .expect("written");
    let probe = probe.path().join("probe.c");
    let compiled = Command::new("cc")
        .arg(&probe)
        .args(["-lsqlite3", "-o", "/dev/null"])
        .output();
    if !compiled.is_ok_and(|output| output.status.success()) {
        return skipped("c", "there is no cc with sqlite3.h and -lsqlite3");
    }
    for (key, one, none) in [(Key::Name, "\"one\"", "\"none\""), (Key::Id, "1", "2")] {
        let folder = tempfile::tempdir().expect("a folder");
        let test = format!(
            "{}\n#include <assert.h>\n#include <string.h>\nint main(void) {{\n\
             struct store store;\nconst void *content;\nint bytes;\n\
             assert(store_open(&store, \"/no/such/folder/db\") != SQLITE_OK);\n\
             assert(store_open(&store, \"db\") == SQLITE_OK);\n\
             assert(store_read(&store, {one}, &content, &bytes) == SQLITE_DONE);\nstore_read_end(&store);\n\
             assert(store_write(&store, {one}, 0, 0) == SQLITE_OK);\n\
             assert(store_write(&store, {one}, \"\\0new\", 4) == SQLITE_OK);\n\
             assert(store_read(&store, {one}, &content, &bytes) == SQLITE_ROW);\n\
             assert(bytes == 4 && memcmp(content, \"\\0new\", 4) == 0);\nstore_read_end(&store);\n\
             assert(store_read(&store, {none}, &content, &bytes) == SQLITE_DONE);\nstore_read_end(&store);\n\
             store_close(&store);\nreturn 0;\n}}\n",
            setup(key).code(Language::C)
        );
        fs::write(folder.path().join("snippet.c"), test).expect("written");
        let words = [
            "-Wall",
            "-Wextra",
            "-Werror",
            "snippet.c",
            "-lsqlite3",
            "-o",
            "snippet",
        ];
        run(Command::new("cc").args(words).current_dir(folder.path()));
        run(Command::new("./snippet").current_dir(folder.path()));
        check(&folder.path().join("db"), key);
    }
}

/// The files beside this one are what is given to paste. `UPDATE_GOLDEN=1` writes them anew.
#[test]
fn rust() {
    for (key, name) in [(Key::Name, "by_name"), (Key::Id, "by_id")] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"));
        let path = path.join(format!("tests/snippets/{name}.rs"));
        let code = setup(key).code(Language::Rust);
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            fs::write(&path, &code).expect("written");
        }
        assert_eq!(fs::read_to_string(&path).expect("there"), code);
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("name");
    let store = by_name::open_store(path.to_str().expect("UTF-8")).expect("opened");
    assert_eq!(by_name::read(&store, "one").expect("read"), None);
    by_name::write(&store, "one", b"old").expect("written");
    by_name::write(&store, "one", b"\0new").expect("written");
    assert_eq!(
        by_name::read(&store, "one").expect("read"),
        Some(b"\0new".to_vec())
    );
    drop(store);
    check(&path, Key::Name);
    let path = folder.path().join("id");
    let store = by_id::open_store(path.to_str().expect("UTF-8")).expect("opened");
    by_id::write(&store, 1, b"\0new").expect("written");
    assert_eq!(
        by_id::read(&store, 1).expect("read"),
        Some(b"\0new".to_vec())
    );
    assert_eq!(by_id::read(&store, 2).expect("read"), None);
    drop(store);
    check(&path, Key::Id);
}

#[test]
fn node() {
    if !is_there("node", &["-e", "require('better-sqlite3')"]) {
        return skipped(
            "node",
            "node does not find better-sqlite3 (npm install better-sqlite3, NODE_PATH)",
        );
    }
    for (key, one, none) in [(Key::Name, "'one'", "'none'"), (Key::Id, "1", "2")] {
        let folder = tempfile::tempdir().expect("a folder");
        let test = format!(
            "{}\nconst assert = require('assert');\nconst store = openStore('db');\n\
             assert.strictEqual(store.read({one}), undefined);\n\
             store.write({one}, Buffer.from('old'));\nstore.write({one}, Buffer.from('\\0new'));\n\
             assert.deepStrictEqual(store.read({one}), Buffer.from('\\0new'));\n\
             assert.strictEqual(store.read({none}), undefined);\nstore.close();\n",
            setup(key).code(Language::Node)
        );
        fs::write(folder.path().join("snippet.js"), test).expect("written");
        run(Command::new("node")
            .arg("snippet.js")
            .current_dir(folder.path()));
        check(&folder.path().join("db"), key);
    }
}

#[test]
fn go() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("go.mod"), "module store\n\ngo 1.21\n").expect("written");
    // From the cache of modules, or not at all: a test downloads nothing.
    let cache = Command::new("go").args(["env", "GOMODCACHE"]).output();
    let cache = cache.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    let Ok(cache) = cache else {
        return skipped("go", "there is no go");
    };
    let go = |words: &[&str]| {
        let mut command = Command::new("go");
        command.args(words).current_dir(folder.path());
        command
            .env("GOFLAGS", "-mod=mod")
            .env("GOSUMDB", "off")
            .env("CGO_ENABLED", "1");
        command.env("GOPROXY", format!("file://{cache}/cache/download"));
        command
    };
    let cached = go(&["get", "github.com/mattn/go-sqlite3"]).output();
    if !cached.is_ok_and(|output| output.status.success()) {
        return skipped(
            "go",
            "mattn/go-sqlite3 is not in the cache of modules (go mod download github.com/mattn/go-sqlite3@latest)",
        );
    }
    for (key, one, none) in [(Key::Name, "\"one\"", "\"none\""), (Key::Id, "1", "2")] {
        let code = setup(key).code(Language::Go);
        fs::write(folder.path().join("store.go"), code).expect("written");
        let test = format!(
            "package store\n\nimport (\n\t\"bytes\"\n\t\"testing\"\n)\n\nfunc TestStore(t *testing.T) {{\n\
             \tstore, err := Open(\"db\")\n\tif err != nil {{\n\t\tt.Fatal(err)\n\t}}\n\
             \tfor _, content := range []string{{\"old\", \"\\x00new\"}} {{\n\
             \t\tif err := store.Write({one}, []byte(content)); err != nil {{\n\t\t\tt.Fatal(err)\n\t\t}}\n\t}}\n\
             \tcontent, err := store.Read({one})\n\
             \tif err != nil || !bytes.Equal(content, []byte(\"\\x00new\")) {{\n\t\tt.Fatal(content, err)\n\t}}\n\
             \tif content, err = store.Read({none}); err != nil || content != nil {{\n\t\tt.Fatal(content, err)\n\t}}\n\
             \tif err := store.Close(); err != nil {{\n\t\tt.Fatal(err)\n\t}}\n}}\n"
        );
        fs::write(folder.path().join("store_test.go"), test).expect("written");
        let _ = fs::remove_file(folder.path().join("db"));
        run(&mut go(&["test", "./..."]));
        check(&folder.path().join("db"), key);
    }
}
