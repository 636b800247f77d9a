//! Whether an archive is sound: SQLite's own check of the file, every row, every size, every stream; and
//! whether a directory has the same in it. Nothing is changed.

use std::collections::HashMap;
use std::io::Read;
use std::path::Path;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::archive::Archive;
use crate::directory::Directory;
use crate::entry::{Entry, Kind, PERMISSION_BITS};
use crate::error::ArchiveError;
use crate::name;
use crate::pack::{PackSettings, default_threads, list_names};
use crate::selection::Selection;
use crate::watch::Watch;

/// Entries that a thread takes at a time.
const CHUNK_ENTRIES: usize = 64;

/// Bytes of a file that are in memory at a time.
const PIECE_BYTES: usize = 256 * 1024;

/// What is verified beside the archive itself.
#[derive(Debug, Clone)]
pub struct VerifySettings<'a> {
    /// A directory that should have the same in it.
    pub against: Option<&'a Path>,
    /// What of that directory is compared: as it was packed.
    pub selection: Selection,
    /// Threads that read.
    pub threads: usize,
}

impl Default for VerifySettings<'_> {
    fn default() -> Self {
        Self {
            against: None,
            selection: Selection::default(),
            threads: default_threads(),
        }
    }
}

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VerifyReport {
    /// Entries, sound or not.
    pub entries: u64,
    /// Bytes of content of those that are files or links.
    pub content_bytes: u64,
    /// What is wrong, by name.
    pub faults: Vec<String>,
}

/// Verifies an archive. What is wrong with it is in the report, and not an error.
///
/// # Errors
/// The archive or the directory cannot be read at all, or the job was stopped.
pub fn verify(
    archive: &Archive,
    settings: &VerifySettings<'_>,
    watch: &Watch,
) -> Result<VerifyReport, ArchiveError> {
    let reader = archive.reader()?;
    let mut report = VerifyReport::default();
    report.faults.extend(reader.integrity_faults()?);
    let mut entries = Vec::new();
    let listed = reader.for_each_entry(|entry| {
        report.entries += 1;
        match entry {
            Ok(entry) => entries.push(entry),
            Err(fault) => report.faults.push(fault.to_string()),
        }
        Ok(())
    });
    if let Err(error) = listed {
        match error {
            ArchiveError::Damaged { .. } => report.faults.push(error.to_string()),
            error => return Err(error),
        }
    }
    check_names(&entries, &mut report.faults);
    report.content_bytes = entries.iter().map(|entry| entry.size).sum();
    watch.begin(entries.len() as u64, report.content_bytes);
    let hashes = hash_all(archive, &entries, settings.threads, watch)?;
    for hash in &hashes {
        if let Err(fault) = hash {
            report.faults.push(fault.clone());
        }
    }
    if let Some(path) = settings.against {
        compare(path, &entries, &hashes, settings, watch, &mut report.faults)?;
    }
    Ok(report)
}

/// Compares an archive that has just been written with the hashes that were made when its sources were read.
pub(crate) fn read_back(
    archive: &Archive,
    expected: &[Option<blake3::Hash>],
    threads: usize,
    watch: &Watch,
) -> Result<(), ArchiveError> {
    let reader = archive.reader()?;
    let differs = |name: &str, reason: &str| ArchiveError::ReadBack {
        name: name.to_owned(),
        reason: reason.to_owned(),
    };
    if let Some(fault) = reader.integrity_faults()?.first() {
        return Err(differs("the archive", fault));
    }
    let entries = reader.entries()?;
    if entries.len() != expected.len() {
        return Err(differs("the archive", "it has another number of entries"));
    }
    watch.begin(
        entries.len() as u64,
        entries.iter().map(|entry| entry.size).sum(),
    );
    let hashes = hash_all(archive, &entries, threads, watch)?;
    for ((entry, hash), expected) in entries.iter().zip(hashes).zip(expected) {
        let hash = hash.map_err(|fault| differs(&entry.name, &fault))?;
        if hash != *expected {
            return Err(differs(&entry.name, "its content is different"));
        }
    }
    Ok(())
}

/// The hash of every file and link, in several threads; of those that cannot be read, why.
fn hash_all(
    archive: &Archive,
    entries: &[Entry],
    threads: usize,
    watch: &Watch,
) -> Result<Vec<Result<Option<blake3::Hash>, String>>, ArchiveError> {
    let hashes = Mutex::new(vec![Ok(None); entries.len()]);
    in_chunks(entries.len(), threads, watch, || {
        let reader = archive.reader()?;
        let hashes = &hashes;
        Ok(move |range: std::ops::Range<usize>| {
            let mut lookup = reader.lookup()?;
            let mut made = Vec::with_capacity(range.len());
            for entry in &entries[range.clone()] {
                made.push(hash_one(&mut lookup, entry)?);
                watch.done(1, entry.size);
            }
            let mut hashes = hashes.lock().unwrap_or_else(PoisonError::into_inner);
            for (index, hash) in range.zip(made) {
                hashes[index] = hash;
            }
            Ok(())
        })
    })?;
    Ok(hashes.into_inner().unwrap_or_else(PoisonError::into_inner))
}

fn hash_one(
    lookup: &mut crate::lookup::Lookup<'_>,
    entry: &Entry,
) -> Result<Result<Option<blake3::Hash>, String>, ArchiveError> {
    if !matches!(entry.kind, Kind::File | Kind::Symlink) {
        return Ok(Ok(None));
    }
    let mut hasher = blake3::Hasher::new();
    let poured = lookup.pour(entry, &mut |piece| {
        hasher.update(piece);
        Ok(())
    });
    match poured {
        Ok(()) => Ok(Ok(Some(hasher.finalize()))),
        Err(error @ (ArchiveError::BadEntry { .. } | ArchiveError::Damaged { .. })) => {
            Ok(Err(error.to_string()))
        }
        Err(error) => Err(error),
    }
}

/// Runs one worker on each thread; each takes the next range of indices until none is left. The first
/// error ends all.
pub(crate) fn in_chunks<W>(
    count: usize,
    threads: usize,
    watch: &Watch,
    worker: impl Fn() -> Result<W, ArchiveError> + Sync,
) -> Result<(), ArchiveError>
where
    W: FnMut(std::ops::Range<usize>) -> Result<(), ArchiveError>,
{
    let next = AtomicUsize::new(0);
    let first_error = Mutex::new(None);
    let work = || -> Result<(), ArchiveError> {
        let mut worker = worker()?;
        loop {
            let begin = next.fetch_add(CHUNK_ENTRIES, Ordering::Relaxed);
            if begin >= count {
                return Ok(());
            }
            watch.check()?;
            worker(begin..count.min(begin + CHUNK_ENTRIES))?;
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..threads.clamp(1, count.div_ceil(CHUNK_ENTRIES).max(1)) {
            scope.spawn(|| {
                if let Err(error) = work() {
                    next.store(count, Ordering::Relaxed);
                    let mut first = first_error.lock().unwrap_or_else(PoisonError::into_inner);
                    first.get_or_insert(error);
                }
            });
        }
    });
    match first_error
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner)
    {
        Some(error) => Err(error),
        None => Ok(()),
    }
}

/// Names that could not be unpacked, or that are there twice where the table has no key.
fn check_names(entries: &[Entry], faults: &mut Vec<String>) {
    let mut seen = std::collections::HashSet::new();
    for entry in entries {
        let shown = entry.name.escape_debug();
        if let Err(reason) = name::components(&entry.name) {
            faults.push(format!("entry `{shown}`: {reason}"));
        }
        if entry.kind == Kind::Other {
            faults.push(format!(
                "entry `{shown}`: its mode {:o} is no file's",
                entry.mode
            ));
        }
        if !seen.insert(&*entry.name) {
            faults.push(format!("entry `{shown}`: its name is there twice"));
        }
    }
}

/// Compares a directory with the archive: names, kinds, permissions, links and hashes of content.
fn compare(
    path: &Path,
    entries: &[Entry],
    hashes: &[Result<Option<blake3::Hash>, String>],
    settings: &VerifySettings<'_>,
    watch: &Watch,
    faults: &mut Vec<String>,
) -> Result<(), ArchiveError> {
    let pack_settings = PackSettings {
        selection: settings.selection.clone(),
        skip_unreadable: true,
        ..PackSettings::default()
    };
    let (there, unreadable) = list_names(path, &pack_settings, watch)?;
    faults.extend(unreadable);
    let mut by_name: HashMap<String, (Kind, u32)> = there
        .into_iter()
        .map(|(name, kind, mode)| (name, (kind, mode)))
        .collect();
    let mut found = Vec::new();
    for (entry, hash) in entries.iter().zip(hashes) {
        // Archives of other programs may say `./a` for `a`; the directory itself may be an entry.
        let name = name::components(&entry.name).unwrap_or_default().join("/");
        if name.is_empty() {
            continue;
        }
        let shown = entry.name.escape_debug();
        match by_name.remove(&name) {
            None => faults.push(format!("entry `{shown}`: not in {}", path.display())),
            Some((kind, _)) if kind != entry.kind => {
                faults.push(format!(
                    "entry `{shown}`: of another kind in {}",
                    path.display()
                ));
            }
            Some((_, mode)) => {
                let differs = (mode ^ entry.mode) & PERMISSION_BITS != 0;
                if differs && entry.kind != Kind::Symlink {
                    faults.push(format!(
                        "entry `{shown}`: other permissions in {}",
                        path.display()
                    ));
                }
                if let Ok(Some(hash)) = hash {
                    found.push((name, entry, *hash));
                }
            }
        }
    }
    let mut missing: Vec<_> = by_name.into_keys().collect();
    missing.sort_unstable();
    faults.extend(
        missing
            .iter()
            .map(|name| format!("`{}`: not in the archive", name.escape_debug())),
    );
    compare_content(path, &found, settings.threads, watch, faults)
}

fn compare_content(
    path: &Path,
    found: &[(String, &Entry, blake3::Hash)],
    threads: usize,
    watch: &Watch,
    faults: &mut Vec<String>,
) -> Result<(), ArchiveError> {
    let top = Directory::open(path).map_err(ArchiveError::io("open", path))?;
    watch.begin(
        found.len() as u64,
        found.iter().map(|(_, entry, _)| entry.size).sum(),
    );
    let differences = Mutex::new(Vec::new());
    in_chunks(found.len(), threads, watch, || {
        let mut directory = top.again().map_err(ArchiveError::io("open", path))?;
        let differences = &differences;
        let mut piece = vec![0; PIECE_BYTES];
        Ok(move |range: std::ops::Range<usize>| {
            for (index, (name, entry, hash)) in range.clone().zip(&found[range]) {
                let fault = match hash_source(&mut directory, name, entry.kind, &mut piece) {
                    Ok(there) if there == *hash => None,
                    Ok(_) => Some(format!("other content in {}", path.display())),
                    Err(error) => Some(format!("cannot be read in {}: {error}", path.display())),
                };
                if let Some(fault) = fault {
                    let fault = format!("entry `{}`: {fault}", entry.name.escape_debug());
                    differences
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .push((index, fault));
                }
                watch.done(1, entry.size);
            }
            Ok(())
        })
    })?;
    let mut differences = differences
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner);
    differences.sort_unstable();
    faults.extend(differences.into_iter().map(|(_, fault)| fault));
    Ok(())
}

fn hash_source(
    directory: &mut Directory,
    name: &str,
    kind: Kind,
    piece: &mut [u8],
) -> std::io::Result<blake3::Hash> {
    if kind == Kind::Symlink {
        return Ok(blake3::hash(&directory.read_link(name)?));
    }
    let mut file = directory.open_file(name)?;
    let mut hasher = blake3::Hasher::new();
    loop {
        match file.read(piece)? {
            0 => return Ok(hasher.finalize()),
            read => hasher.update(&piece[..read]),
        };
    }
}
