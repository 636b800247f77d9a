//! Help of `sqlitmus kvtest`: for each verb its options, which fit one screen (`-h`), and with
//! them what should be known and examples (`--help`).

use std::ffi::OsString;

/// Help on one subject.
struct Help {
    /// The verb; none for kvtest as a whole.
    verb: &'static str,
    /// What fits one screen.
    short: &'static str,
    /// What follows it in the full text.
    further: &'static str,
}

const SUBJECTS: [Help; 5] = [
    Help {
        verb: "",
        short: OVERVIEW,
        further: OVERVIEW_FURTHER,
    },
    Help {
        verb: "init",
        short: INIT,
        further: INIT_FURTHER,
    },
    Help {
        verb: "stat",
        short: STAT,
        further: STAT_FURTHER,
    },
    Help {
        verb: "export",
        short: EXPORT,
        further: EXPORT_FURTHER,
    },
    Help {
        verb: "run",
        short: RUN,
        further: RUN_FURTHER,
    },
];

/// The text to print, if these words ask for help.
pub(super) fn asked_for(verb: &str, words: &[OsString]) -> Option<String> {
    let words = words.iter().map(|word| word.to_string_lossy());
    let (subject, is_full) = match (is_help(verb), verb) {
        // `help VERB`
        (Some(_), "help") => (words.map(String::from).next().unwrap_or_default(), true),
        (Some(is_full), _) => (String::new(), is_full),
        (None, verb) => (
            verb.to_owned(),
            words
                .filter(|word| word != "help")
                .find_map(|word| is_help(&word))?,
        ),
    };
    let help = SUBJECTS.iter().find(|help| help.verb == subject)?;
    let further = if is_full { help.further } else { "" };
    Some(format!("{}{further}", help.short))
}

/// Whether a word asks for help, and if so, for all of it.
fn is_help(word: &str) -> Option<bool> {
    match word {
        "-h" => Some(false),
        "--help" | "-help" | "help" => Some(true),
        _ => None,
    }
}

const OVERVIEW: &str = "\
SQLite's kvtest: many small blobs in a database against the same blobs in files

Usage: sqlitmus kvtest <VERB> ...

  init DBFILE [--count N] [--size M] [--pagesize X] [--variance V]
          Make a database of N random blobs of M bytes, plus or minus V
  stat DBFILE [--vacuum]
          Say what a database holds, and whether it is sound
  export DBFILE DIRECTORY [--tree]
          Write every blob into a file of its own
  run DBFILE|DIRECTORY [options]
          Read or overwrite blobs and print how long one took

sqlitmus kvtest VERB -h      options of a verb
sqlitmus kvtest VERB --help  the same with explanations and examples
";

const OVERVIEW_FURTHER: &str = "
The words, the database, the defaults and the closing lines are those of the program kvtest in
SQLite's source tree, so scripts written for one work with the other, and each reads what the
other has made. Options take one dash or two. Numbers take the suffixes K M G KB MB GB (powers
of 1000) and KiB MiB GiB (powers of 1024) in any case, may be hexadecimal (0x1000), and negative
where that has a meaning.

What differs:
  init and export overwrite nothing, and leave nothing behind if they fail
  run and stat leave a database as it is, unless --update, --jmode or --vacuum asks for a change
  errors say what helps, on standard error, and end with an exit code that is not 0
  run measures with a clock of nanoseconds; what else it puts right is in: kvtest run --help

Examples, the published measurement:
  sqlitmus kvtest init test.db --count 100000 --size 10000 --variance 2000
  sqlitmus kvtest export test.db flat
  sqlitmus kvtest export test.db tree --tree
  sqlitmus kvtest run test.db --count 100000 --random
  sqlitmus kvtest run test.db --count 100000 --random --mmap 2GB --blob-api
  sqlitmus kvtest run flat --count 100000 --random

Exit codes: 0 done, 1 the integrity check found damage, 2 bad input or refused, 5 the
environment failed (disk full, I/O error), 130 stopped.

`sqlitmus measure` answers the same question with intervals, in one command.
";

const INIT: &str = "\
Make a database of random blobs

Usage: sqlitmus kvtest init DBFILE [options]

  --count N      blobs [default: 1000]
  --size M       bytes of a blob [default: 10000]
  --variance V   sizes from M-V to M+V, all equally likely; below M [default: 0]
  --pagesize X   bytes of a page, a power of two from 512 to 65536 [default: 4096]
";

const INIT_FURTHER: &str = "
The database has one table, kv(k INTEGER PRIMARY KEY, v BLOB), with the keys 1 to N, and no
write-ahead log. Its content is random to a compressor, but follows from a fixed seed: the same
options make the same blobs everywhere. It appears under its name when it is complete and on the
device. DBFILE must not exist, or be empty.

Examples:
  sqlitmus kvtest init test.db
  sqlitmus kvtest init test.db --count 100k --size 10k --variance 2k
  sqlitmus kvtest init large-pages.db -count 20000 -pagesize 64KiB
";

const STAT: &str = "\
Say what a database holds, and whether it is sound

Usage: sqlitmus kvtest stat DBFILE [--vacuum]

  --vacuum   run VACUUM first, which rewrites the database
";

const STAT_FURTHER: &str = "
Prints the number of blobs, their average, smallest and largest size, the pages of the database,
and up to ten findings of its integrity check. Exit code 1 if there are any.

Examples:
  sqlitmus kvtest stat test.db
  sqlitmus kvtest stat test.db --vacuum
";

const EXPORT: &str = "\
Write every blob of a database into a file of its own

Usage: sqlitmus kvtest export DBFILE DIRECTORY [--tree]

  --tree   at most 100 entries a folder, 00/00/01, instead of one directory, 000001
";

const EXPORT_FURTHER: &str = "
DIRECTORY must not exist, or be empty. A new one appears under its name when it is complete.
Nothing is flushed to the device, as in kvtest. A tree is made only with --tree; kvtest also
makes one if DIRECTORY has a folder 00.

Examples:
  sqlitmus kvtest export test.db flat
  sqlitmus kvtest export test.db tree --tree
";

const RUN: &str = "\
Read or overwrite blobs of a database or of a directory, and print how long one took

Usage: sqlitmus kvtest run DBFILE|DIRECTORY [options]

  --count N          blobs [default: 1000]
  --asc              keys in ascending order, from 1 again after the highest [default]
  --desc             keys in descending order
  --random           keys in kvtest's fixed random sequence
  --start N          first key [default: 1]
  --max-id N         highest key [default: the highest there is]
  --update           overwrite blobs with random bytes instead of reading them
  --stats            print counters of SQLite and of the process
  --as-kvtest        keep kvtest's defects (--help names them)
Databases:
  --blob-api         use one blob handle instead of SQL
  --cache-size N     N pages of cache, or -N KiB [default: 4,096,000 bytes]
  --mmap N           map up to N bytes of the file [default: 0]
  --jmode MODE       journal mode: delete truncate persist memory wal off
  --multitrans       a transaction for each operation instead of one for all
  --nocheckpoint     leave the final checkpoint out of the time
  --nosync           PRAGMA synchronous=OFF
  --integrity-check  run PRAGMA integrity_check afterwards
Directories:
  --fsync            flush each file that was overwritten
";

const RUN_FURTHER: &str = "
A directory is a tree if it has a folder 00. For a database the clock runs from opening to
closing it, with its commit and, unless left out, its checkpoint; for a directory from the first
file to the last. Files are read and written as kvtest does: stat, fopen, fread or fwrite,
fclose. A key without a blob is a miss: it counts as an operation, and one more key is visited.
The last three lines are always

  Total elapsed time: SECONDS
  Microseconds per BLOB read: NUMBER          (or `write`)
  Content read rate: NUMBER MB/s              (or `write`)

--random visits the same keys as kvtest, of which some come twice and others not at all.
--max-id 0 and below mean the default. --mmap below zero is refused. --stats covers the timed
part with its commit; SQLite's counters of memory are not kept in this build. Options for the
other kind of object have no effect, and a line says so.

Without --update and --jmode nothing is changed. With --jmode wal a database stays in WAL mode
afterwards, as with kvtest.

What is put right, and what --as-kvtest keeps as it is in kvtest:
  a directory is read up to its highest key; kvtest reads keys 1 to 1000 of any directory
  random bytes are ready before the clock starts; kvtest makes them while it runs
  files are overwritten in place; kvtest empties each file first
  --fsync flushes whole files; kvtest flushes before the C library has written the end
  --mmap takes any size; kvtest computes in 32 bits, so that 10GB becomes 1,410,065,408 bytes
  the default cache has the same bytes with every page size; kvtest takes 1000 pages
  the time that --nocheckpoint leaves out is printed; kvtest is silent about it
  after a miss --blob-api opens a new handle; kvtest's reads nothing more, and counts on
  time is taken in nanoseconds; kvtest's clock has milliseconds
Where that changes a figure, a line that begins with `note:` says so. One defect is not kept:
a directory or table without blobs is an error, and not a loop without end.

Examples:
  sqlitmus kvtest run test.db --count 100k --random
  sqlitmus kvtest run test.db --count 100k --random --blob-api --mmap 10GB
  sqlitmus kvtest run flat --count 100k --random
  sqlitmus kvtest run test.db --count 10k --random --update --jmode wal --nocheckpoint
  sqlitmus kvtest run flat --count 10k --random --update --fsync
";

#[cfg(test)]
mod tests {
    use super::*;

    fn text(words: &[&str]) -> Option<String> {
        let following: Vec<OsString> = words[1..].iter().map(OsString::from).collect();
        asked_for(words[0], &following)
    }

    #[test]
    fn every_subject_has_a_short_and_a_full_text() {
        for verb in ["init", "stat", "export", "run"] {
            let short = text(&[verb, "-h"]).expect("short");
            let full = text(&[verb, "x.db", "--help"]).expect("full");
            assert!(full.starts_with(&short) && full.contains("Examples:"));
            assert!(short.lines().count() <= 30, "{verb}");
            assert_eq!(text(&["help", verb]), Some(full));
        }
        assert!(text(&["-h"]).expect("short").contains("export DBFILE"));
        assert!(text(&["--help"]).expect("full").contains("Exit codes"));
    }

    #[test]
    fn lines_fit_a_terminal() {
        for help in SUBJECTS {
            for line in help.short.lines().chain(help.further.lines()) {
                assert!(line.len() <= 97, "{line}");
            }
        }
    }

    #[test]
    fn other_words_are_no_call_for_help() {
        assert_eq!(text(&["run", "help"]), None);
        assert_eq!(text(&["run", "x.db"]), None);
        assert_eq!(text(&["rum", "--help"]), None);
    }
}
