//! `sqlitmus ls`: what is in an archive, in the order in which it was packed.

use std::fmt::Write;
use std::time::{Duration, UNIX_EPOCH};

use sqlitmus_archive::{Archive, ArchiveError, Entry, Kind};

use super::failed;
use crate::arguments::archive::LsArguments;
use crate::commands::print;
use crate::failure::ExitCode;

/// Text that is printed at a time.
const PIECE_BYTES: usize = 64 * 1024;

/// Lists.
///
/// # Errors
/// There is no such entry, an entry is none, or the archive cannot be read.
pub fn run(arguments: &LsArguments) -> anyhow::Result<ExitCode> {
    let archive = Archive::open(&arguments.archive).map_err(failed)?;
    let reader = archive.reader().map_err(failed)?;
    let mut found = vec![false; arguments.names.len()];
    let mut text = String::new();
    let mut printed = Ok(());
    let listed = reader.for_each_entry(|entry| {
        let entry = entry?;
        if !is_wanted(&entry.name, &arguments.names, &mut found) {
            return Ok(());
        }
        describe(&entry, arguments, &mut text);
        if text.len() >= PIECE_BYTES && printed.is_ok() {
            printed = print(&text);
            text.clear();
        }
        Ok(())
    });
    printed?;
    print(&text)?;
    listed.map_err(failed)?;
    match found.iter().position(|found| !found) {
        None => Ok(ExitCode::Done),
        Some(missing) => {
            let name = arguments.names[missing].clone();
            Err(failed(ArchiveError::NoEntry { name }))
        }
    }
}

fn is_wanted(name: &str, names: &[String], found: &mut [bool]) -> bool {
    let mut is_wanted = names.is_empty();
    for (wanted, found) in names.iter().zip(found) {
        let wanted = wanted.trim_end_matches('/');
        let rest = name.strip_prefix(wanted);
        if rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/')) {
            *found = true;
            is_wanted = true;
        }
    }
    is_wanted
}

fn describe(entry: &Entry, arguments: &LsArguments, text: &mut String) {
    if arguments.long {
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "{} {:>11} {:>11} {} ",
            mode(entry),
            entry.size,
            entry.stored_bytes,
            time(entry.mtime)
        );
    }
    if arguments.null {
        text.push_str(&entry.name);
        text.push('\0');
    } else {
        // A name with a line break must not look like two, nor one with an escape code do anything.
        for character in entry.name.chars() {
            if character.is_control() {
                text.extend(character.escape_default());
            } else {
                text.push(character);
            }
        }
        text.push('\n');
    }
}

fn mode(entry: &Entry) -> String {
    let kind = match entry.kind {
        Kind::File => '-',
        Kind::Directory => 'd',
        Kind::Symlink => 'l',
        Kind::Other => '?',
    };
    let bits = (0..9).rev().map(|bit| match entry.mode >> bit & 1 {
        0 => '-',
        _ => ['x', 'w', 'r'][bit % 3],
    });
    std::iter::once(kind).chain(bits).collect()
}

/// In UTC; as seconds, if no calendar has it.
fn time(mtime: i64) -> String {
    let since = u64::try_from(mtime)
        .ok()
        .filter(|seconds| *seconds < 253_402_300_800);
    match since {
        Some(seconds) => {
            humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_secs(seconds)).to_string()
        }
        None => mtime.to_string(),
    }
}
