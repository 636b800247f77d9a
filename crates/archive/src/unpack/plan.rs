//! What will be written where, checked as a whole before anything is: names and links that could lead
//! out, entries that get in each other's way, kinds that are not unpacked, sizes, and what is there already.

use std::collections::HashMap;
use std::io;
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, openat, statat, unlinkat};
use rustix::io::Errno;

use super::{Links, UnpackSettings};
use crate::directory::{Directory, is_no_directory, split};
use crate::entry::{Entry, Kind};
use crate::error::ArchiveError;
use crate::lookup::check_size;
use crate::name::{components, link_stays_inside};
use crate::reader::Reader;

/// Longest target of a link that any system takes.
const MOST_TARGET_BYTES: u64 = 4096;

/// An entry, and the path below the target that it gets.
pub(super) struct Planned {
    pub(super) path: Box<str>,
    pub(super) entry: Entry,
}

/// What will be written. Each list is sorted by path.
#[derive(Default)]
pub(super) struct Plan {
    pub(super) directories: Vec<Planned>,
    pub(super) files: Vec<Planned>,
    /// With what they point at.
    pub(super) links: Vec<(Planned, Vec<u8>)>,
    pub(super) links_skipped: u64,
    pub(super) content_bytes: u64,
}

impl Plan {
    pub(super) fn entries(&self) -> usize {
        self.directories.len() + self.files.len() + self.links.len()
    }

    fn paths(&self) -> impl Iterator<Item = &Planned> {
        let links = self.links.iter().map(|(planned, _)| planned);
        self.directories.iter().chain(&self.files).chain(links)
    }
}

/// Reads the names that are asked for, and checks them.
pub(super) fn plan(reader: &Reader, settings: &UnpackSettings) -> Result<Plan, ArchiveError> {
    let wanted = Wanted::new(&settings.names);
    let mut plan = Plan::default();
    let mut faults = Faults::default();
    let mut links = Vec::new();
    let mut found = vec![false; settings.names.len()];
    reader.for_each_entry(|entry| {
        let entry = entry?;
        if !wanted.takes(&entry.name, &mut found) {
            return Ok(());
        }
        let path = match components(&entry.name) {
            // The target itself.
            Ok(parts) if parts.is_empty() => return Ok(()),
            Ok(parts) => parts.join("/").into_boxed_str(),
            Err(reason) => {
                faults.note(&entry.name, reason);
                return Ok(());
            }
        };
        match entry.kind {
            Kind::Directory => plan.directories.push(Planned { path, entry }),
            Kind::File => {
                check_file(&entry, settings)?;
                plan.content_bytes = plan.content_bytes.saturating_add(entry.size);
                plan.files.push(Planned { path, entry });
            }
            Kind::Symlink if settings.links == Links::Skip => plan.links_skipped += 1,
            Kind::Symlink => links.push(Planned { path, entry }),
            Kind::Other => faults.note(&entry.name, "it is neither a file, a directory nor a link"),
        }
        Ok(())
    })?;
    if let Some(missing) = found.iter().position(|found| !found) {
        return Err(ArchiveError::NoEntry {
            name: settings.names[missing].clone(),
        });
    }
    plan.directories
        .sort_unstable_by(|one, other| one.path.cmp(&other.path));
    plan.files
        .sort_unstable_by(|one, other| one.path.cmp(&other.path));
    plan.links = read_links(reader, links, settings, &mut faults)?;
    check_paths(&plan, &mut faults);
    faults.into_result().map(|()| plan)
}

fn check_file(entry: &Entry, settings: &UnpackSettings) -> Result<(), ArchiveError> {
    if entry.size > settings.max_entry_bytes {
        return Err(ArchiveError::OverLimit {
            what: format!("entry `{}`", entry.name.escape_debug()),
            bytes: entry.size,
            limit_bytes: settings.max_entry_bytes,
        });
    }
    if entry.size == entry.stored_bytes {
        Ok(())
    } else {
        check_size(&entry.name, entry.size, entry.stored_bytes)
    }
}

fn read_links(
    reader: &Reader,
    mut links: Vec<Planned>,
    settings: &UnpackSettings,
    faults: &mut Faults,
) -> Result<Vec<(Planned, Vec<u8>)>, ArchiveError> {
    links.sort_unstable_by(|one, other| one.path.cmp(&other.path));
    let mut lookup = reader.lookup()?;
    let mut read = Vec::with_capacity(links.len());
    for planned in links {
        let depth = planned.path.matches('/').count();
        let mut target = Vec::new();
        if planned.entry.size <= MOST_TARGET_BYTES {
            lookup.pour(&planned.entry, &mut |piece| {
                target.extend_from_slice(piece);
                Ok(())
            })?;
        }
        if target.is_empty() || target.contains(&0) {
            faults.note(&planned.entry.name, "it is a link to nothing that could be");
        } else if settings.links == Links::Inside && !link_stays_inside(depth, &target) {
            let shown = String::from_utf8_lossy(&target);
            faults.note(
                &planned.entry.name,
                &format!("it is a link that may lead out: {shown}"),
            );
        }
        read.push((planned, target));
    }
    Ok(read)
}

/// No path is there twice, and nothing lies below a file or a link.
fn check_paths(plan: &Plan, faults: &mut Faults) {
    let mut kinds: HashMap<&str, Kind> = HashMap::with_capacity(plan.entries());
    for planned in plan.paths() {
        let kind = planned.entry.kind;
        if let Some(other) = kinds.insert(&planned.path, kind)
            && !(other == Kind::Directory && kind == Kind::Directory)
        {
            faults.note(&planned.entry.name, "another entry has the same path");
        }
    }
    // Most entries share their parent with the one before.
    let mut sound_parent = "";
    for planned in plan.paths() {
        let (parent, _) = split(&planned.path);
        if parent == sound_parent {
            continue;
        }
        let mut above = parent;
        let mut is_sound = true;
        while !above.is_empty() {
            if kinds
                .get(above)
                .is_some_and(|kind| *kind != Kind::Directory)
            {
                is_sound = false;
                faults.note(
                    &planned.entry.name,
                    "it lies below an entry that is no directory",
                );
                break;
            }
            above = split(above).0;
        }
        if is_sound {
            sound_parent = parent;
        }
    }
}

/// Checks that nothing would be overwritten, and that no file or link stands where a directory has to be.
pub(super) fn check_target(
    plan: &Plan,
    directory: &mut Directory,
    target: &Path,
    force: bool,
) -> Result<(), ArchiveError> {
    let mut count = 0;
    let mut first = None;
    for planned in plan.paths() {
        let is_directory = planned.entry.kind == Kind::Directory;
        let Some(there) = kind_at(directory, &planned.path, target)? else {
            continue;
        };
        let stands_in_the_way = match (is_directory, there) {
            (_, FileType::Unknown) => true,
            (true, FileType::Directory) => false,
            (false, FileType::Directory) | (true, _) => true,
            (false, _) => !force,
        };
        if stands_in_the_way {
            count += 1;
            first.get_or_insert_with(|| planned.path.to_string());
        }
    }
    match first {
        None => Ok(()),
        Some(first) => Err(ArchiveError::WouldOverwrite {
            target: target.to_owned(),
            count,
            first,
        }),
    }
}

fn kind_at(
    directory: &mut Directory,
    path: &str,
    target: &Path,
) -> Result<Option<FileType>, ArchiveError> {
    let (parent, name) = split(path);
    let failed = |error: io::Error| ArchiveError::io("look at", &target.join(path))(error);
    let parent = match directory.at(parent) {
        Ok(parent) => parent,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        // A file, or a link that is not followed, stands above it.
        Err(error) if is_no_directory(&error) => return Ok(Some(FileType::Unknown)),
        Err(error) => return Err(failed(error)),
    };
    match statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(metadata) => Ok(Some(FileType::from_raw_mode(metadata.st_mode))),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(failed(error.into())),
    }
}

/// Whether the filesystem takes names for the same that differ in case only: tried with a file of ours.
pub(super) fn ignores_case(directory: &Directory, target: &Path) -> Result<bool, ArchiveError> {
    let probe = format!(".sqlitmus-case-{}", std::process::id());
    let failed = |error: Errno| ArchiveError::io("write in", target)(error.into());
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    openat(directory.top(), &*probe, flags, Mode::RUSR | Mode::WUSR).map_err(failed)?;
    let found = statat(
        directory.top(),
        probe.to_uppercase(),
        AtFlags::SYMLINK_NOFOLLOW,
    );
    unlinkat(directory.top(), &*probe, AtFlags::empty()).map_err(failed)?;
    Ok(found.is_ok())
}

/// Where case is ignored, no two entries may differ in nothing else.
pub(super) fn check_case(plan: &Plan) -> Result<(), ArchiveError> {
    let mut faults = Faults::default();
    let mut seen: HashMap<String, &str> = HashMap::with_capacity(plan.entries());
    for planned in plan.paths() {
        if let Some(other) = seen.insert(planned.path.to_lowercase(), &planned.path)
            && other != &*planned.path
        {
            let reason = format!("only case tells it from `{}`", other.escape_debug());
            faults.note(&planned.entry.name, &reason);
        }
    }
    faults.into_result()
}

/// What is unsafe.
#[derive(Default)]
struct Faults {
    count: usize,
    first: Option<String>,
}

impl Faults {
    fn note(&mut self, name: &str, reason: &str) {
        self.count += 1;
        self.first
            .get_or_insert_with(|| format!("`{}`: {reason}", name.escape_debug()));
    }

    fn into_result(self) -> Result<(), ArchiveError> {
        match self.first {
            None => Ok(()),
            Some(first) => Err(ArchiveError::Unsafe {
                count: self.count,
                first,
            }),
        }
    }
}

/// The names that were asked for.
struct Wanted<'a> {
    names: HashMap<&'a str, usize>,
}

impl<'a> Wanted<'a> {
    fn new(names: &'a [String]) -> Self {
        let names = names.iter().enumerate();
        Self {
            names: names
                .map(|(index, name)| (name.trim_end_matches('/'), index))
                .collect(),
        }
    }

    /// Whether the name, or a directory that it is in, was asked for.
    fn takes(&self, name: &str, found: &mut [bool]) -> bool {
        if self.names.is_empty() {
            return true;
        }
        let mut above = name;
        loop {
            if let Some(index) = self.names.get(above) {
                found[*index] = true;
                return true;
            }
            match above.rsplit_once('/') {
                Some((parent, _)) if !parent.is_empty() => above = parent,
                _ => return false,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planned(path: &str) -> Planned {
        let entry = Entry {
            name: path.to_owned(),
            kind: Kind::File,
            mode: 0o100_644,
            mtime: 0,
            size: 0,
            stored_bytes: 0,
            row: 1,
        };
        Planned {
            path: path.into(),
            entry,
        }
    }

    #[test]
    fn names_that_differ_in_case_only_are_refused_where_case_is_ignored() {
        let mut plan = Plan {
            files: vec![planned("a/B"), planned("a/c")],
            ..Plan::default()
        };
        assert!(check_case(&plan).is_ok());
        plan.files.push(planned("A/b"));
        let error = check_case(&plan).expect_err("a collision").to_string();
        assert!(error.contains("only case"), "{error}");
    }

    #[test]
    fn a_name_stands_for_what_is_below_it() {
        let names = ["a/b".to_owned(), "c/".to_owned()];
        let wanted = Wanted::new(&names);
        let mut found = [false; 2];
        assert!(wanted.takes("a/b/x/y", &mut found) && wanted.takes("c", &mut found));
        assert!(!wanted.takes("a/bx", &mut found) && !wanted.takes("a", &mut found));
        assert_eq!(found, [true, true]);
    }
}
