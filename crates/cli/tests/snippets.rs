//! What `sqlitmus advise` gives to paste is run: every language with names and with numbers as keys, and with
//! files for what is large.
//! Languages whose compiler or library is missing are skipped with the reason. The Rust of it is compiled
//! with these tests.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output};

use sqlitmus_report::advice::snippet::{Key, Language, Outside, Setup};

#[path = "snippets/by_id.rs"]
#[allow(dead_code, missing_docs)]
mod by_id;
#[path = "snippets/by_name.rs"]
#[allow(dead_code, missing_docs)]
mod by_name;
#[path = "snippets/with_files.rs"]
#[allow(dead_code, missing_docs)]
mod with_files;

fn setup(key: Key) -> Setup {
    Setup {
        title: "SQLite 16 KiB, mmap | measured by sqlitmus advise /some/where".to_owned(),
        page_bytes: "16384".to_owned(),
        journal_mode: "wal".to_owned(),
        synchronous: "normal".to_owned(),
        mmap_bytes: "1099511627776".to_owned(),
        cache_kib: "2000".to_owned(),
        key,
        outside: None,
    }
}

/// Contents of more than four bytes are files.
fn setup_with_files() -> Setup {
    let outside = Outside {
        inline_limit: "4".to_owned(),
        syncs: true,
    };
    Setup {
        outside: Some(outside),
        ..setup(Key::Id)
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
        Key::Id | Key::IdWithoutRowid => "1",
    };
    let name = if key == Key::Name { "name" } else { "id" };
    let sql = format!("SELECT hex(content) FROM file WHERE {name} = {column}");
    assert_eq!(
        text(&sql),
        "006E6577",
        "a zero byte, and what was written last"
    );
    assert_eq!(text("SELECT count(*) FROM file"), "1");
    let schema = text("SELECT sql FROM sqlite_schema WHERE name = 'file'");
    let is_without_rowid = schema.contains("WITHOUT ROWID");
    assert_eq!(is_without_rowid, key == Key::IdWithoutRowid, "{schema}");
}

/// What every language has written into a store with files: 1 was large and is `\0new`, 2 is
/// `large content` after it was small and after it was large, 3 is empty.
fn check_with_files(directory: &Path) {
    let database = rusqlite::Connection::open(directory.join("index.db")).expect("opens");
    let mut rows = database
        .prepare("SELECT id, hex(content), path FROM file ORDER BY id")
        .expect("prepared");
    let rows: Vec<(i64, String, Option<String>)> = rows
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .expect("queried")
        .map(|row| row.expect("a row"))
        .collect();
    assert_eq!(rows.len(), 3, "{rows:?}");
    assert_eq!(rows[0], (1, "006E6577".to_owned(), None));
    assert_eq!(rows[2], (3, String::new(), None));
    let path = rows[1].2.as_deref().expect("a file");
    let content = fs::read(directory.join("content").join(path)).expect("read");
    assert_eq!(content, b"large content");
    let mut files = Vec::new();
    for folder in fs::read_dir(directory.join("content")).expect("listed") {
        let folder = folder.expect("an entry").path();
        files.extend(fs::read_dir(folder).expect("listed"));
    }
    assert_eq!(files.len(), 1, "replaced files are gone: {files:?}");
}

#[test]
fn python() {
    if !is_there("python3", &["-c", "import sqlite3"]) {
        return skipped("python", "there is no python3 with sqlite3");
    }
    for (key, one, none) in [
        (Key::Name, "'one'", "'none'"),
        (Key::Id, "1", "2"),
        (Key::IdWithoutRowid, "1", "2"),
    ] {
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
    let folder = tempfile::tempdir().expect("a folder");
    fs::create_dir_all(folder.path().join("tree/deep")).expect("created");
    fs::write(folder.path().join("tree/deep/file"), "content").expect("written");
    let code = setup_with_files().code(Language::Python);
    let test = format!(
        "{code}\nstore = Store('store')\nassert store.read(1) is None\n\
         store.write(1, b'to be replaced')\nstore.write(1, bytes([0]) + b'new')\n\
         store.write(2, b'old')\nstore.write(2, b'large before')\nstore.write(2, b'large content')\n\
         store.write(3, b'')\n\
         assert store.read(1) == bytes([0]) + b'new' and store.read(2) == b'large content'\n\
         assert store.read(3) == b'' and store.read(4) is None\n\
         other = Store('other')\nfound = other.import_directory('tree')\n\
         assert other.read(found['deep/file']) == b'content', found\n\
         other.database.execute(\"UPDATE file SET path = 'gone'\")\n\
         try:\n    other.read(1)\nexcept FileNotFoundError:\n    pass\nelse:\n    raise SystemExit(1)\n"
    );
    fs::write(folder.path().join("snippet.py"), test).expect("written");
    let mut command = Command::new("python3");
    run(command.arg("snippet.py").current_dir(folder.path()));
    check_with_files(&folder.path().join("store"));
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
    for (key, one, none) in [
        (Key::Name, "\"one\"", "\"none\""),
        (Key::Id, "1", "2"),
        (Key::IdWithoutRowid, "1", "2"),
    ] {
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
        compile_and_run(folder.path());
        check(&folder.path().join("db"), key);
    }
    let folder = tempfile::tempdir().expect("a folder");
    fs::create_dir(folder.path().join("store")).expect("created");
    let test = format!(
        "{}\n#include <assert.h>\nint main(void) {{\n\
         struct store store;\nvoid *content;\nsize_t bytes;\n\
         assert(store_open(&store, \"/no/such/folder\") != SQLITE_OK);\n\
         assert(store_open(&store, \"store\") == SQLITE_OK);\n\
         assert(store_read(&store, 1, &content, &bytes) == SQLITE_DONE);\n\
         assert(store_write(&store, 1, \"to be replaced\", 14) == SQLITE_OK);\n\
         assert(store_write(&store, 1, \"\\0new\", 4) == SQLITE_OK);\n\
         assert(store_write(&store, 2, \"old\", 3) == SQLITE_OK);\n\
         assert(store_write(&store, 2, \"large before\", 12) == SQLITE_OK);\n\
         assert(store_write(&store, 2, \"large content\", 13) == SQLITE_OK);\n\
         assert(store_write(&store, 3, 0, 0) == SQLITE_OK);\n\
         assert(store_read(&store, 1, &content, &bytes) == SQLITE_ROW);\n\
         assert(bytes == 4 && memcmp(content, \"\\0new\", 4) == 0);\nfree(content);\n\
         assert(store_read(&store, 2, &content, &bytes) == SQLITE_ROW);\n\
         assert(bytes == 13 && memcmp(content, \"large content\", 13) == 0);\nfree(content);\n\
         assert(store_read(&store, 3, &content, &bytes) == SQLITE_ROW && bytes == 0);\nfree(content);\n\
         store_close(&store);\nreturn 0;\n}}\n",
        setup_with_files().code(Language::C)
    );
    fs::write(folder.path().join("snippet.c"), test).expect("written");
    compile_and_run(folder.path());
    check_with_files(&folder.path().join("store"));
}

fn compile_and_run(folder: &Path) {
    let words = [
        "-Wall",
        "-Wextra",
        "-Werror",
        "snippet.c",
        "-lsqlite3",
        "-o",
        "snippet",
    ];
    run(Command::new("cc").args(words).current_dir(folder));
    run(Command::new("./snippet").current_dir(folder));
}

/// The files beside this one are what is given to paste. `UPDATE_GOLDEN=1` writes them anew.
#[test]
fn rust() {
    for (setup, name) in [
        (setup(Key::Name), "by_name"),
        (setup(Key::Id), "by_id"),
        (setup_with_files(), "with_files"),
    ] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"));
        let path = path.join(format!("tests/snippets/{name}.rs"));
        let code = setup.code(Language::Rust);
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
    let path = folder.path().join("store");
    let mut store = with_files::Store::open(&path).expect("opened");
    assert_eq!(store.read(1).expect("read"), None);
    for (id, content) in [
        (1, &b"to be replaced"[..]),
        (1, b"\0new"),
        (2, b"old"),
        (2, b"large before"),
        (2, b"large content"),
        (3, b""),
    ] {
        store.write(id, content).expect("written");
        assert_eq!(store.read(id).expect("read").as_deref(), Some(content));
    }
    drop(store);
    check_with_files(&path);
}

#[test]
fn node() {
    if !is_there("node", &["-e", "require('better-sqlite3')"]) {
        return skipped(
            "node",
            "node does not find better-sqlite3 (npm install better-sqlite3, NODE_PATH)",
        );
    }
    for (key, one, none) in [
        (Key::Name, "'one'", "'none'"),
        (Key::Id, "1", "2"),
        (Key::IdWithoutRowid, "1", "2"),
    ] {
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
    let folder = tempfile::tempdir().expect("a folder");
    let test = format!(
        "{}\nconst assert = require('assert');\nconst store = openStore('store');\n\
         assert.strictEqual(store.read(1), undefined);\n\
         for (const [id, content] of [[1, 'to be replaced'], [1, '\\0new'], [2, 'old'], [2, 'large before'],\n\
         \x20 [2, 'large content'], [3, '']]) {{\n\
         \x20 store.write(id, Buffer.from(content));\n\
         \x20 assert.deepStrictEqual(store.read(id), Buffer.from(content));\n}}\nstore.close();\n",
        setup_with_files().code(Language::Node)
    );
    fs::write(folder.path().join("snippet.js"), test).expect("written");
    run(Command::new("node")
        .arg("snippet.js")
        .current_dir(folder.path()));
    check_with_files(&folder.path().join("store"));
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
    for (key, one, none) in [
        (Key::Name, "\"one\"", "\"none\""),
        (Key::Id, "1", "2"),
        (Key::IdWithoutRowid, "1", "2"),
    ] {
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
    let code = setup_with_files().code(Language::Go);
    fs::write(folder.path().join("store.go"), code).expect("written");
    let test = "package store\n\nimport (\n\t\"bytes\"\n\t\"testing\"\n)\n\nfunc TestStore(t *testing.T) {\n\
                \tstore, err := Open(\"store\")\n\tif err != nil {\n\t\tt.Fatal(err)\n\t}\n\
                \tif content, err := store.Read(1); err != nil || content != nil {\n\t\tt.Fatal(content, err)\n\t}\n\
                \tfor _, one := range []struct {\n\t\tid      int64\n\t\tcontent string\n\t}{\n\
                \t\t{1, \"to be replaced\"}, {1, \"\\x00new\"}, {2, \"old\"}, {2, \"large before\"}, {2, \"large content\"}, {3, \"\"},\n\t} {\n\
                \t\tif err := store.Write(one.id, []byte(one.content)); err != nil {\n\t\t\tt.Fatal(err)\n\t\t}\n\
                \t\tif content, err := store.Read(one.id); err != nil || !bytes.Equal(content, []byte(one.content)) {\n\t\t\tt.Fatal(content, err)\n\t\t}\n\t}\n\
                \tif err := store.Close(); err != nil {\n\t\tt.Fatal(err)\n\t}\n}\n";
    fs::write(folder.path().join("store_test.go"), test).expect("written");
    run(&mut go(&["test", "./..."]));
    check_with_files(&folder.path().join("store"));
}
