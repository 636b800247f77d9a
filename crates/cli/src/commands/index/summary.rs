//! What became of a recording, as text and as JSON.

use std::fmt::{self, Write};
use std::path::Path;

use serde_json::{Value, json};
use sqlitmus_core::tree_scan::display_path;
use sqlitmus_core::units::{format_count, format_duration};
use sqlitmus_trees::index::Indexed;

/// So many of a kind of oddity are named in the text.
const NAMED: usize = 3;

/// How it was recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    Best,
    Naive,
    WalkOnly,
}

/// What became of it.
pub(super) struct Summary<'a> {
    pub(super) tree: &'a Path,
    pub(super) database: Option<&'a Path>,
    pub(super) way: Way,
    pub(super) indexed: &'a Indexed,
}

impl Summary<'_> {
    pub(super) fn text(&self) -> Result<String, fmt::Error> {
        let indexed = self.indexed;
        let mut text = String::new();
        let tree = display_path(self.tree);
        let done = if indexed.stopped { "partly " } else { "" };
        match self.database {
            Some(path) => writeln!(text, "{tree} is {done}recorded in {}", display_path(path))?,
            None => writeln!(text, "{tree} was {done}walked")?,
        }
        let counts = &indexed.counts;
        writeln!(
            text,
            "  seen      {} entries: {} files, {} folders, {} symbolic links, {} special files{}",
            format_count(counts.total()),
            format_count(counts.files),
            format_count(counts.folders),
            format_count(counts.symbolic_links),
            format_count(counts.special_files),
            match counts.unknown {
                0 => String::new(),
                unknown => format!(", {} of unknown kind", format_count(unknown)),
            }
        )?;
        self.write_rows(&mut text)?;
        self.write_times(&mut text)?;
        self.write_oddities(&mut text)?;
        if indexed.stopped && self.way == Way::Best {
            writeln!(text, "  stopped   give the same command again to go on")?;
        }
        Ok(text)
    }

    fn write_rows(&self, text: &mut String) -> fmt::Result {
        if self.way == Way::WalkOnly {
            return Ok(());
        }
        let writes = &self.indexed.writes;
        if writes.total() == 0 {
            return writeln!(text, "  written   no row: nothing has changed");
        }
        let parts = [
            (writes.entries_added, "entries added"),
            (writes.entries_changed, "changed"),
            (writes.entries_removed, "removed"),
            (writes.folders(), "folders"),
        ];
        let parts: Vec<String> = parts
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{} {what}", format_count(count)))
            .collect();
        let rows = format_count(writes.entries() + writes.folders());
        writeln!(
            text,
            "  written   {rows} rows in {} transaction{}: {}",
            format_count(self.indexed.commits),
            if self.indexed.commits == 1 { "" } else { "s" },
            parts.join(", ")
        )
    }

    fn write_times(&self, text: &mut String) -> fmt::Result {
        let indexed = self.indexed;
        write!(
            text,
            "  time      {}; walkTime {} of {}",
            format_duration(indexed.elapsed_ns),
            format_duration(indexed.walk_ns),
            match indexed.threads {
                1 => "1 thread".to_owned(),
                threads => format!("{threads} threads"),
            }
        )?;
        if self.way != Way::WalkOnly {
            write!(text, ", sqlTime {}", format_duration(indexed.sql_ns))?;
            if indexed.writes.total() > 0 {
                let rate = indexed.rows_per_sql_second().round() as u64;
                write!(text, " ({} rows/s)", format_count(rate))?;
            }
        }
        writeln!(text)
    }

    fn write_oddities(&self, text: &mut String) -> fmt::Result {
        for (kind, counted) in self.indexed.oddities.kinds() {
            write!(
                text,
                "  {}   {} {}",
                if kind.is_trouble() {
                    "trouble"
                } else {
                    "odd    "
                },
                format_count(counted.count),
                kind.of(counted.count)
            )?;
            let named = counted.examples.iter().take(NAMED).map(|example| {
                let path = display_path(&example.path);
                let path = if path.is_empty() { "." } else { &path };
                match example.reason.as_str() {
                    "" => path.to_owned(),
                    reason => format!("{path} ({reason})"),
                }
            });
            let more = if counted.count > NAMED as u64 {
                ", ..."
            } else {
                ""
            };
            let named: Vec<String> = named.collect();
            writeln!(text, ": {}{more}", named.join(", "))?;
        }
        Ok(())
    }

    pub(super) fn json(&self) -> Result<String, serde_json::Error> {
        let indexed = self.indexed;
        let (counts, writes) = (&indexed.counts, &indexed.writes);
        let value: Value = json!({
            "tree": display_path(self.tree),
            "database": self.database.map(display_path),
            "way": match self.way {
                Way::Best => "best",
                Way::Naive => "naive",
                Way::WalkOnly => "walk-only",
            },
            "complete": !indexed.stopped,
            "seen": {
                "entries": counts.total(),
                "files": counts.files,
                "folders": counts.folders,
                "symbolic_links": counts.symbolic_links,
                "special_files": counts.special_files,
                "unknown": counts.unknown,
            },
            "written": {
                "rows": writes.total(),
                "entries_added": writes.entries_added,
                "entries_changed": writes.entries_changed,
                "entries_removed": writes.entries_removed,
                "folders_added": writes.folders_added,
                "folders_changed": writes.folders_changed,
                "folders_removed": writes.folders_removed,
                "tree": writes.tree,
                "transactions": indexed.commits,
            },
            "threads": indexed.threads,
            "elapsed_ns": indexed.elapsed_ns,
            "walk_ns": indexed.walk_ns,
            "sql_ns": indexed.sql_ns,
            "sql_cpu_ns": indexed.sql_cpu_ns,
            "rows_per_sql_second": indexed.rows_per_sql_second(),
            "oddities": indexed.oddities,
        });
        Ok(format!("{}\n", serde_json::to_string_pretty(&value)?))
    }
}
