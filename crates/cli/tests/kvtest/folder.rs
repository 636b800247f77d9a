//! A folder to run `sqlitmus kvtest` in, and what a program has printed.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;

/// Exit code, standard output and standard error of a program.
pub struct Ended {
    pub code: i32,
    pub output: String,
    pub errors: String,
}

impl Ended {
    /// The value that follows a label at the beginning of a line.
    pub fn value(&self, label: &str) -> &str {
        let line = self.output.lines().find(|line| line.starts_with(label));
        line.unwrap_or_else(|| panic!("no {label:?} in {}", self.output))[label.len()..].trim()
    }

    pub fn number(&self, label: &str) -> f64 {
        let first = self
            .value(label)
            .split_whitespace()
            .next()
            .expect("a value");
        first.parse().expect("a number")
    }

    pub fn notes(&self) -> Vec<&str> {
        let lines = self.output.lines();
        lines.filter(|line| line.starts_with("note: ")).collect()
    }
}

pub fn ended(command: &mut Command) -> Ended {
    let ended = command.output().expect("the program starts");
    Ended {
        code: ended.status.code().expect("an exit code"),
        output: String::from_utf8(ended.stdout).expect("UTF-8"),
        errors: String::from_utf8(ended.stderr).expect("UTF-8"),
    }
}

pub fn program() -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("sqlitmus"));
    command.arg("kvtest");
    command
}

/// A folder to work in; paths of the words are relative to it.
pub struct Folder(pub TempDir);

impl Folder {
    pub fn new() -> Self {
        Self(TempDir::new().expect("temporary folder"))
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Runs `sqlitmus kvtest` with these words.
    pub fn kvtest(&self, words: &str) -> Ended {
        ended(
            program()
                .args(words.split_whitespace())
                .current_dir(self.0.path()),
        )
    }

    /// The same where all must go well.
    pub fn done(&self, words: &str) -> Ended {
        let ended = self.kvtest(words);
        assert_eq!(
            (ended.code, ended.errors.as_str()),
            (0, ""),
            "{words}: {}",
            ended.output
        );
        ended
    }

    /// The same where it must be refused: the message and the hint.
    pub fn refused(&self, words: &str) -> String {
        let before = self.contents();
        let ended = self.kvtest(words);
        assert_eq!(ended.code, 2, "{words}: {} {}", ended.output, ended.errors);
        assert_eq!(ended.output, "", "{words}");
        let lines: Vec<&str> = ended.errors.lines().collect();
        assert_eq!(lines.len(), 2, "{words}: {}", ended.errors);
        assert!(lines[0].starts_with("error: "), "{}", ended.errors);
        assert!(
            lines[1].starts_with("hint: ") && lines[1].len() > 8,
            "{}",
            ended.errors
        );
        assert_eq!(self.contents(), before, "{words} has changed something");
        ended.errors
    }

    /// Everything in the folder: files with their bytes, directories without.
    pub fn contents(&self) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
        let mut found = BTreeMap::new();
        let mut folders = vec![self.0.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in folder.read_dir().expect("listing") {
                let path = entry.expect("entry").path();
                if path.is_dir() {
                    folders.push(path.clone());
                    found.insert(path, None);
                } else {
                    found.insert(path.clone(), std::fs::read(&path).ok());
                }
            }
        }
        found
    }

    /// All blobs of a database, by key.
    pub fn blobs(&self, database: &str) -> BTreeMap<i64, Vec<u8>> {
        let connection = rusqlite::Connection::open(self.path(database)).expect("database");
        let mut query = connection.prepare("SELECT k, v FROM kv").expect("query");
        let rows = query.query_map([], |row| Ok((row.get(0)?, row.get(1)?)));
        rows.expect("rows").map(|row| row.expect("row")).collect()
    }

    /// A database as kvtest makes it, by somebody else's hand: keys and sizes.
    pub fn make(&self, database: &str, blobs: &[(i64, i64)]) -> rusqlite::Connection {
        let connection = rusqlite::Connection::open(self.path(database)).expect("database");
        connection
            .execute_batch("CREATE TABLE kv(k INTEGER PRIMARY KEY, v BLOB)")
            .expect("table");
        for (key, bytes) in blobs {
            connection
                .execute(
                    "INSERT INTO kv VALUES(?1, CASE ?2 WHEN 0 THEN x'' ELSE randomblob(?2) END)",
                    [key, bytes],
                )
                .expect("insert");
        }
        connection
    }
}

pub fn skipped(reason: &str) {
    writeln!(std::io::stderr(), "skipped: {reason}").expect("standard error");
}

pub fn query_text(connection: &rusqlite::Connection, sql: &str) -> String {
    connection.query_row(sql, [], |row| row.get(0)).expect(sql)
}
