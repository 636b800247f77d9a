//! Stores of a run: where each arm's store is, how much space it needs, filling and verifying it.
//!
//! Readers whose datasets and stored settings are the same share a store; every writing arm owns
//! one. A store appears under its name only when it is complete, so that what a killed run leaves
//! behind is never mistaken for one; a store that was being written when a run was killed carries
//! a mark and is filled anew.

mod shapes;
mod trees;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use sqlitmus_core::case::{Case, Shape, fingerprint};
use sqlitmus_core::dataset::{Dataset, GENERATION_BYTES, SizeDistribution};
use sqlitmus_core::plan::{Arm, Group, Plan};
use sqlitmus_core::run::{Footprint, Outcome};
use sqlitmus_engines::ageing::AgedContent;
use sqlitmus_engines::own_files::{FileContent, FileList};
use sqlitmus_engines::{Content, Engine, EngineError};

use crate::failure::with_causes;
use crate::interruption;
use crate::machine::ownership::{self, OwnershipError};
use crate::machine::page_cache::{self, PageCacheError};
use crate::machine::path_suffix::with_suffix;
use crate::machine::processor;
use crate::orchestrator::cache_state::StoreFiles;
use crate::orchestrator::expectation::{ContentSums, RowFacts, TreeFacts, Written};
pub use trees::count_entries;

/// Block that a file's last bytes are rounded up to, for estimates.
const BLOCK_BYTES: u64 = 4096;

/// Part of a store's path: rises when the same dataset gets other bytes.
const CONTENT_VERSION: u32 = 1;

/// Stores are filled, read in and verified by this many threads at once, while nothing is
/// measured.
const THREADS: usize = 2;

/// The stores of a run, under one directory.
pub struct Stores {
    directory: PathBuf,
    /// Cores that filling and verifying may use.
    cores: Vec<usize>,
    sums: BTreeMap<String, ContentSums>,
    /// Files whose content datasets begin with, by the identity of their sizes.
    files: BTreeMap<String, FileContent>,
    rows: BTreeMap<String, Arc<RowFacts>>,
    trees: BTreeMap<String, Arc<TreeFacts>>,
}

/// What filling a store came to: the space it takes (`None` if it has none on disk), or why it
/// cannot be had, which all arms that share it share.
pub type StoreResult = Result<Option<Footprint>, Arc<StoreError>>;

/// What can go wrong with a store.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The engine refused.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// A file operation outside any engine failed.
    #[error("cannot {doing} {}", path.display())]
    Io {
        /// The operation, as a verb.
        doing: &'static str,
        /// What it was done to.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// What is stored is not what was written.
    #[error("{} differs: {reason}", path.display())]
    Differs {
        /// The store.
        path: PathBuf,
        /// What was found.
        reason: String,
    },
    /// A store cannot be read into the page cache.
    #[error(transparent)]
    PageCache(#[from] PageCacheError),
    /// The directory for stores cannot be made ours.
    #[error(transparent)]
    Ownership(#[from] OwnershipError),
    /// The user interrupted.
    #[error("interrupted")]
    Interrupted,
}

impl StoreError {
    /// The outcome of an arm whose store cannot be had; an error of the place itself (disk full)
    /// ends the run instead.
    ///
    /// # Errors
    /// The place gave out.
    pub fn outcome(self: &Arc<Self>) -> anyhow::Result<Outcome> {
        match &**self {
            Self::Engine(EngineError::Unavailable(reason)) => Ok(Outcome::Skipped(reason.clone())),
            Self::Engine(error) if !error.is_environment() => {
                Ok(Outcome::Failed(with_causes(error)))
            }
            _ => Err(Arc::clone(self).into()),
        }
    }
}

/// Space that filling the stores of a plan will take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SpaceNeeded {
    /// Bytes.
    pub bytes: u64,
    /// Files and directories.
    pub inodes: u64,
}

impl Stores {
    /// Stores under a directory that exists and is ours. To be called before the process is
    /// pinned: filling and verifying use the cores that it may use now.
    #[must_use]
    pub fn new(directory: &Path) -> Self {
        Self {
            directory: directory.to_owned(),
            cores: processor::allowed_cores().unwrap_or_default(),
            sums: BTreeMap::new(),
            files: BTreeMap::new(),
            rows: BTreeMap::new(),
            trees: BTreeMap::new(),
        }
    }

    /// Says which files a dataset of files begins with. To be called before any of its stores is filled.
    pub fn provide_files(&mut self, dataset: &Dataset, list: FileList) {
        if let SizeDistribution::Files(sizes) = &dataset.size {
            let content = FileContent(Arc::new(list));
            self.files.insert(sizes.identity.clone(), content);
        }
    }

    /// What the stores of a dataset are filled with. Of files that nobody has named none can be read.
    #[must_use]
    pub fn first_content(&self, dataset: &Dataset) -> Arc<dyn Content + Send> {
        match &dataset.size {
            SizeDistribution::Files(_) => Arc::new(self.files_of(dataset).unwrap_or_default()),
            _ => Arc::new(dataset.clone()),
        }
    }

    /// What the store of a case holds when its group begins: what it was filled with, or what its last
    /// replacements have made of that.
    #[must_use]
    pub fn content(&self, case: &Case) -> Arc<dyn Content + Send> {
        match case.age {
            0 => self.first_content(&case.dataset),
            age => Arc::new(AgedContent {
                dataset: case.dataset.clone(),
                age,
            }),
        }
    }

    fn files_of(&self, dataset: &Dataset) -> Option<FileContent> {
        match &dataset.size {
            SizeDistribution::Files(sizes) => self.files.get(&sizes.identity).cloned(),
            _ => None,
        }
    }

    /// Where an arm's store is or will be.
    #[must_use]
    pub fn path(&self, group: &Group, arm: &Arm) -> PathBuf {
        let case = &arm.case;
        let dataset = &case.dataset;
        let data = fingerprint(&format!(
            "{CONTENT_VERSION} {} {:?} {} {}{}",
            dataset.count,
            dataset.size,
            dataset.compressibility,
            dataset.seed,
            shapes::mark(case.workload.shape())
        ));
        let aged = match case.age {
            0 => String::new(),
            age => format!("-age-{age}"),
        };
        let stored = engine(case).map(|engine| case.settings.stored(engine.settings()));
        let stored = fingerprint(&stored.unwrap_or_default().to_string());
        // A database that trees are recorded in is made anew by every trial.
        let is_made_anew = case.workload.shape() == Shape::Tree;
        let owner = if group.writes() || is_made_anew {
            format!("-{}", arm.name)
        } else {
            String::new()
        };
        self.directory
            .join(format!("{:08x}", data >> 32))
            .join(format!("{}-{:08x}{aged}{owner}", case.engine, stored >> 32))
    }

    /// The files of an arm's store that are there.
    #[must_use]
    pub fn files(&self, group: &Group, arm: &Arm) -> StoreFiles {
        let path = self.path(group, arm);
        let companions = engine(&arm.case).map(|engine| engine.companions(&path));
        let paths = companions
            .unwrap_or_default()
            .into_iter()
            .chain(foreign_files(&arm.case, &path).unwrap_or_default())
            .chain([path])
            .filter(|path| is_persistent(&arm.case) && path.exists())
            .collect();
        StoreFiles { paths }
    }

    /// Whether what an arm reads can be checked against what was stored.
    #[must_use]
    pub fn keeps_content(&self, arm: &Arm) -> bool {
        capabilities(&arm.case).is_some_and(|can| can.keeps_content)
    }

    /// Sums of what the store of a case holds, made by [`Stores::fill`].
    ///
    /// # Panics
    /// If no group with such a case has been filled.
    #[must_use]
    pub fn sums(&self, case: &Case) -> &ContentSums {
        &self.sums[&content_key(case)]
    }

    /// What is known of the rows of a dataset, made by [`Stores::fill`].
    ///
    /// # Panics
    /// If no group with rows of this dataset has been filled.
    #[must_use]
    pub fn row_facts(&self, dataset: &Dataset) -> Arc<RowFacts> {
        Arc::clone(&self.rows[&sums_key(dataset)])
    }

    /// Cores that this process may use while nothing is measured, and workers of several threads
    /// while something is.
    #[must_use]
    pub fn cores(&self) -> &[usize] {
        &self.cores
    }

    /// What an arm keeps in memory while it is measured: which store, and how many bytes.
    #[must_use]
    pub fn memory(&self, group: &Group, arm: &Arm) -> (PathBuf, u64) {
        let path = self.path(group, arm);
        match capabilities(&arm.case) {
            Some(can) if can.persistent => (path, shapes::disk_bytes(&arm.case)),
            // Memory of its own; shared with nobody.
            Some(can) if can.keeps_content => (
                path.with_extension(&arm.name),
                arm.case.dataset.total_bytes(),
            ),
            _ => (path, 0),
        }
    }

    /// Blobs that filling the stores of a plan takes.
    #[must_use]
    pub fn blobs_to_fill(&self, plan: &Plan) -> u64 {
        let of_group = |group| -> u64 {
            let stores = self.to_fill(group);
            stores.values().map(|arm| shapes::items(&arm.case)).sum()
        };
        plan.groups.iter().map(of_group).sum()
    }

    /// Space that filling all missing stores of a plan takes, an upper estimate.
    #[must_use]
    pub fn space_needed(&self, plan: &Plan) -> SpaceNeeded {
        let mut needed = SpaceNeeded::default();
        for group in &plan.groups {
            let (bytes, inodes) = self.space_for_trees(group);
            needed.bytes += bytes;
            needed.inodes += inodes;
            for arm in self.absent(group).into_values() {
                let dataset = &arm.case.dataset;
                needed.bytes += shapes::disk_bytes(&arm.case);
                if matches!(arm.case.engine.as_str(), "files" | "external" | "hybrid") {
                    needed.inodes += dataset.count + dataset.count / 100 + 2;
                }
            }
        }
        needed
    }

    /// Fills the missing stores of a group. Returns, for every arm, the footprint of its store
    /// (`None` if it has none on disk) or why it cannot be had.
    ///
    /// # Errors
    /// The directory cannot be made.
    pub fn fill(&mut self, group: &Group) -> Result<BTreeMap<String, StoreResult>, StoreError> {
        let missing: Vec<(PathBuf, &Arm)> = self.to_fill(group).into_iter().collect();
        let paths = group.arms.iter().map(|arm| self.path(group, arm));
        let parents: BTreeSet<PathBuf> = paths
            .filter_map(|path| Some(path.parent()?.to_owned()))
            .collect();
        for parent in &parents {
            // One directory a dataset; what is in it is ours as a whole. Workers work in it, those
            // too whose stores are in memory.
            if !ownership::is_ours(parent)? {
                ownership::create_directory(parent, "stores of one dataset")?;
            }
        }
        self.write_lists(group)?;
        let filled = side_by_side(&self.cores, &missing, |(path, arm)| {
            let content = self.first_content(&arm.case.dataset);
            fill_one(path, &arm.case, content.as_ref())
        });
        let failures: BTreeMap<&PathBuf, Arc<StoreError>> = missing
            .iter()
            .zip(filled)
            .filter_map(|((path, _), filled)| Some((path, Arc::new(filled.err()?))))
            .collect();
        sync(&self.directory)?;
        self.rows_of(group);
        self.trees_of(group)?;
        if !group.writes() {
            let blobs = |arm: &&Arm| arm.case.workload.shape() == Shape::Blobs;
            for arm in group.arms.iter().filter(blobs) {
                let key = content_key(&arm.case);
                if !self.sums.contains_key(&key) {
                    let content = self.content(&arm.case);
                    let sums = ContentSums::new(content.as_ref());
                    let sums = sums.map_err(|source| io("read", &self.directory, source))?;
                    self.sums.insert(key, sums);
                }
            }
        }
        let mut results = BTreeMap::new();
        for arm in &group.arms {
            let path = self.path(group, arm);
            // Arms that share a store share its failure.
            let result = match failures.get(&path) {
                Some(failure) => Err(Arc::clone(failure)),
                None => footprint(&path, &arm.case).map_err(Arc::new),
            };
            results.insert(arm.name.clone(), result);
        }
        Ok(results)
    }

    /// Writes the lists of files that workers need which fill their stores themselves, beside them.
    fn write_lists(&self, group: &Group) -> Result<(), StoreError> {
        for arm in &group.arms {
            let path = self.path(group, arm);
            let files = self.files_of(&arm.case.dataset);
            if let (Some(files), Some(list)) = (files, list_beside(&path)) {
                files.0.write(&list)?;
            }
        }
        Ok(())
    }

    /// Reads the folders of files of some arms into the page cache, in the order in which they lie:
    /// what is not there yet would otherwise come in one by one, in the random order of the
    /// lead-in. For writing arms the inodes too. Stores that are one file have just been written.
    ///
    /// # Errors
    /// A store cannot be read.
    pub fn warm(&self, group: &Group, arms: &[&Arm]) -> Result<(), StoreError> {
        let paths: BTreeSet<PathBuf> = arms
            .iter()
            .map(|arm| self.path(group, arm))
            .filter(|path| path.is_dir())
            .collect();
        let warmed = side_by_side(
            &self.cores,
            &paths.into_iter().collect::<Vec<_>>(),
            |path| {
                if interruption::requested() {
                    return Ok(());
                }
                page_cache::warm(path)?;
                if group.writes() {
                    page_cache::warm_inodes(path)?;
                }
                Ok(())
            },
        );
        warmed.into_iter().collect::<Result<(), _>>()
    }

    /// Marks the writing arms' stores as being written: if the mark is found by a later run,
    /// this one was killed, and the store is filled anew.
    ///
    /// # Errors
    /// A mark cannot be made.
    pub fn mark_in_use(&self, group: &Group) -> Result<(), StoreError> {
        for arm in &group.arms {
            let mark = mark(&self.path(group, arm));
            if is_persistent(&arm.case) {
                std::fs::write(&mark, b"").map_err(|source| io("create", &mark, source))?;
            }
        }
        // The marks outlive a loss of power, or they would mark nothing.
        sync(&self.directory)
    }

    /// Whether a store of a group carries the mark of being written: it was not verified yet.
    #[must_use]
    pub fn any_in_use(&self, group: &Group) -> bool {
        let mut paths = group.arms.iter().map(|arm| self.path(group, arm));
        paths.any(|path| mark(&path).exists())
    }

    /// Takes the mark of an arm's store away.
    ///
    /// # Errors
    /// It cannot be removed.
    pub fn mark_unused(&self, group: &Group, arm: &Arm) -> Result<(), StoreError> {
        let mark = mark(&self.path(group, arm));
        match std::fs::remove_file(&mark) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(io("remove", &mark, error))
            }
            _ => Ok(()),
        }
    }

    /// Reads every blob of the stores of some written arms and verifies it; one result for each.
    /// A blob must be of the generation that this run has written last, where it has and that is
    /// known, and otherwise of any.
    #[must_use]
    pub fn verify_all(
        &self,
        group: &Group,
        stores: &[(&Arm, Option<&Written>)],
    ) -> Vec<Result<(), StoreError>> {
        side_by_side(&self.cores, stores, |(arm, written)| {
            self.verify(group, arm, *written)
        })
    }

    /// Fails with the first blob that is not some generation of what was written, or a wrong
    /// number of them.
    fn verify(
        &self,
        group: &Group,
        arm: &Arm,
        written: Option<&Written>,
    ) -> Result<(), StoreError> {
        let case = &arm.case;
        // An arm that does only a part of the work has written nothing that could be verified.
        let can_be_verified = is_persistent(case) && self.keeps_content(arm);
        let (Some(engine), true) = (engine(case), can_be_verified) else {
            return Ok(());
        };
        let path = self.path(group, arm);
        match case.workload.shape() {
            Shape::Blobs => {}
            Shape::Rows | Shape::NoRows => return self.verify_rows(&path, case, written),
            Shape::NoBlobs => return shapes::verify_empty(&path, case),
            Shape::Tree => return trees::verify(&path, case, written),
        }
        let settings = shapes::settings_to_verify(case);
        let mut session = engine.open(&path, &settings)?.session()?;
        let first = self.first_content(&case.dataset);
        let (mut scratch, mut unwritten) = (Vec::new(), Vec::new());
        let mut wrong = None;
        for key in 1..=case.dataset.count {
            if interruption::requested() {
                return Err(StoreError::Interrupted);
            }
            session.read(key, &mut |bytes| {
                let found = case.dataset.verify(key, bytes, &mut scratch);
                let last = written.and_then(|written| written.generation(key));
                let is_right = match last {
                    Some(last) => found == Some(generation_told(last, bytes.len())),
                    None => found.is_some() || is_first(first.as_ref(), key, bytes, &mut unwritten),
                };
                if !is_right {
                    wrong.get_or_insert(key);
                }
            })?;
        }
        let mut keys = 0;
        session.keys(&mut |_| keys += 1)?;
        let reason = match wrong {
            Some(key) => format!("blob {key} has other content than was written"),
            None if keys != case.dataset.count => {
                format!("{keys} blobs instead of {}", case.dataset.count)
            }
            None => return Ok(()),
        };
        Err(StoreError::Differs { path, reason })
    }

    /// Paths of stores to be filled, each with an arm that needs it: those that are missing or
    /// marked, and those that are one file. Such a file is written anew by every run, so that the
    /// page cache holds it as writing has left it. Read in from the device it would be held in
    /// larger pieces, and overwriting these is slower (ext4, measured: two to three times): the
    /// first run would measure something else than all later ones.
    #[must_use]
    pub fn to_fill<'g>(&self, group: &'g Group) -> BTreeMap<PathBuf, &'g Arm> {
        let mut stores = self.by_path(group);
        stores.retain(|path, _| {
            let is_kept = path.is_dir() && !mark(path).exists();
            !is_kept || !path.parent().is_some_and(is_ours)
        });
        stores
    }

    /// Paths of the stores of a group that are not there yet, each with an arm that needs it.
    fn absent<'g>(&self, group: &'g Group) -> BTreeMap<PathBuf, &'g Arm> {
        let mut stores = self.by_path(group);
        stores.retain(|path, _| !path.exists());
        stores
    }

    fn by_path<'g>(&self, group: &'g Group) -> BTreeMap<PathBuf, &'g Arm> {
        let persistent = group.arms.iter().filter(|arm| is_persistent(&arm.case));
        let mut stores = BTreeMap::new();
        for arm in persistent {
            stores.entry(self.path(group, arm)).or_insert(arm);
        }
        stores
    }
}

/// Does something to every item, some at once; results in the order of the items.
fn side_by_side<T: Sync, R: Send>(
    cores: &[usize],
    items: &[T],
    work: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let work_on = || {
        // A thread begins on the core that the orchestrator is pinned to. Staying there is slower,
        // not wrong.
        let _ = processor::use_cores(cores);
        let mut done = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            match items.get(index) {
                Some(item) => done.push((index, work(item))),
                None => return done,
            }
        }
    };
    let mut results: Vec<(usize, R)> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(work_on)).collect();
        let joined = threads.into_iter().map(|thread| match thread.join() {
            Ok(done) => done,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        joined.flatten().collect()
    });
    results.sort_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}

fn engine(case: &Case) -> Option<&'static dyn Engine> {
    sqlitmus_engines::find(&case.engine).ok()
}

fn capabilities(case: &Case) -> Option<sqlitmus_engines::Capabilities> {
    Some(engine(case)?.capabilities(&case.settings))
}

fn is_persistent(case: &Case) -> bool {
    capabilities(case).is_some_and(|can| can.persistent)
}

fn sums_key(dataset: &Dataset) -> String {
    format!("{dataset:?}")
}

fn content_key(case: &Case) -> String {
    format!("{} {}", case.age, sums_key(&case.dataset))
}

/// The mark of a store that is being written.
fn mark(store: &Path) -> PathBuf {
    with_suffix(store, ".in-use")
}

/// Upper estimate of the space that a dataset takes in any engine: every blob in blocks of its
/// own, and a twentieth for structure.
fn disk_bytes(dataset: &Dataset) -> u64 {
    let blocks = |bytes: u64| bytes.div_ceil(BLOCK_BYTES) * BLOCK_BYTES;
    let content = match dataset.size {
        SizeDistribution::Fixed(bytes) => dataset.count * blocks(u64::from(bytes)),
        _ => (1..=dataset.count)
            .map(|key| blocks(dataset.value_bytes(key) as u64))
            .sum(),
    };
    content + content / 20
}

fn is_ours(directory: &Path) -> bool {
    ownership::is_ours(directory).unwrap_or(false)
}

/// What of a generation a blob of so many bytes can tell; see [`Dataset::verify`].
fn generation_told(generation: u64, bytes: usize) -> u64 {
    match bytes {
        0 => 0,
        1..GENERATION_BYTES => generation & ((1 << (8 * bytes)) - 1),
        _ => generation,
    }
}

/// Whether a blob is as its store was filled; `buffer` is working memory.
fn is_first(first: &dyn Content, key: u64, bytes: &[u8], buffer: &mut Vec<u8>) -> bool {
    first.fill(key, buffer).is_ok() && buffer.as_slice() == bytes
}

/// Where the list of files lies that a dataset of files begins with, for a store of it.
pub(crate) fn list_beside(store: &Path) -> Option<PathBuf> {
    Some(store.parent()?.join("files.list"))
}

/// Files of somebody else that an arm reads.
fn foreign_files(case: &Case, path: &Path) -> Result<Vec<PathBuf>, EngineError> {
    match engine(case) {
        Some(engine) if path.exists() => engine.foreign_files(path),
        _ => Ok(Vec::new()),
    }
}

/// Fills one store under a provisional name, then gives it its own.
fn fill_one(path: &Path, case: &Case, content: &dyn Content) -> Result<(), StoreError> {
    let Some(engine) = engine(case) else {
        return Ok(());
    };
    let partial = with_suffix(path, ".partial");
    for old in [&partial, path] {
        remove(old)?;
        for companion in engine.companions(old) {
            remove(&companion)?;
        }
    }
    // Only with what is stored: arms that share it may read it in their own ways.
    let filled = shapes::create(engine, &partial, case, content);
    if let Err(error) = filled {
        remove(&partial)?;
        for companion in engine.companions(&partial) {
            remove(&companion)?;
        }
        if interruption::requested() {
            return Err(StoreError::Interrupted);
        }
        return Err(error.into());
    }
    // On the device before it has its name, or a loss of power could leave a name without content.
    sync(&partial)?;
    std::fs::rename(&partial, path).map_err(|source| io("rename", &partial, source))?;
    remove(&mark(path))
}

/// Content that ends with an error when the user interrupts.
struct Interruptible<'a>(&'a dyn Content);

impl Content for Interruptible<'_> {
    fn count(&self) -> u64 {
        self.0.count()
    }

    fn fill(&self, key: u64, buffer: &mut Vec<u8>) -> std::io::Result<()> {
        if interruption::requested() {
            return Err(std::io::ErrorKind::Interrupted.into());
        }
        self.0.fill(key, buffer)
    }

    fn files(&self) -> Option<&FileList> {
        self.0.files()
    }
}

/// Removes a file or a directory tree, if it is there; a link is removed, not followed.
fn remove(path: &Path) -> Result<(), StoreError> {
    let removed = match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => Err(error),
        Ok(metadata) if metadata.is_dir() => std::fs::remove_dir_all(path),
        Ok(_) => std::fs::remove_file(path),
    };
    removed.map_err(|source| io("remove", path, source))
}

fn footprint(path: &Path, case: &Case) -> Result<Option<Footprint>, StoreError> {
    let Some(engine) = engine(case).filter(|_| is_persistent(case)) else {
        return Ok(None);
    };
    let companions = engine.companions(path);
    let content_bytes = shapes::content_bytes(case);
    let foreign = engine.foreign_files(path)?;
    if let Some((first, others)) = foreign.split_first() {
        // The list of them is ours and no part of what they take.
        let measured = sqlitmus_engines::footprint::measure(first, others, content_bytes)?;
        return Ok(Some(measured));
    }
    Ok(Some(sqlitmus_engines::footprint::measure(
        path,
        &companions,
        content_bytes,
    )?))
}

fn sync(directory: &Path) -> Result<(), StoreError> {
    std::fs::File::open(directory)
        .and_then(|directory| page_cache::sync_filesystem(&directory))
        .map_err(|source| io("sync", directory, source))
}

fn io(doing: &'static str, path: &Path, source: std::io::Error) -> StoreError {
    StoreError::Io {
        doing,
        path: path.to_owned(),
        source,
    }
}
