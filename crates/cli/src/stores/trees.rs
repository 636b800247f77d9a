//! Trees that are recorded: making a generated one beside the databases, and what recording it, or a directory
//! of the user's, must add up to. A directory of the user's is only read.

use std::collections::btree_map::Entry;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::{Connection, OpenFlags};
use sqlitmus_core::case::{Case, Workload};
use sqlitmus_core::generated_tree::{GeneratedTree, consume_entry};
use sqlitmus_core::plan::{Arm, Group};
use sqlitmus_trees::entry::Entry as TreeEntry;
use sqlitmus_trees::walk::{
    Folder, FolderStamp, FolderState, Tree, Visitor, WalkOptions, walk_here,
};

use super::{StoreError, Stores, io, remove, sums_key};
use crate::failure::with_causes;
use crate::interruption;
use crate::machine::path_suffix::with_suffix;
use crate::orchestrator::expectation::{TreeFacts, Written};
use crate::worker::GENERATED_TREE;

/// Bytes that a database and its journal take for an entry, generously.
pub(super) const BYTES_OF_AN_ENTRY: u64 = 400;

/// Bytes that an entry takes in a generated tree: its inode, its name, its part of its folder's block.
const BYTES_IN_THE_TREE: u64 = 1024;

impl Stores {
    /// Makes the generated trees of a group that are not there yet, and adds up what recording each tree
    /// must give.
    pub(super) fn trees_of(&mut self, group: &Group) -> Result<(), StoreError> {
        for arm in &group.arms {
            let Workload::Index { tree, .. } = &arm.case.workload else {
                continue;
            };
            let dataset = &arm.case.dataset;
            let path = self.tree_path(group, arm);
            let key = format!("{} {}", path.display(), sums_key(dataset));
            let Entry::Vacant(entry) = self.trees.entry(key) else {
                continue;
            };
            let facts = match tree {
                Some(tree) => facts_of(Path::new(tree))?,
                None => {
                    let generated = GeneratedTree::new(dataset);
                    if !path.exists() && !make(&generated, &path)? {
                        // Interrupted: there will be no round that asks.
                        return Ok(());
                    }
                    TreeFacts {
                        entries: dataset.count,
                        consumed: generated.consumed(),
                    }
                }
            };
            entry.insert(Arc::new(facts));
        }
        Ok(())
    }

    /// What is known of the tree that an arm records, made by [`Stores::fill`].
    ///
    /// # Panics
    /// If its group has not been filled.
    #[must_use]
    pub fn tree_facts(&self, group: &Group, arm: &Arm) -> Arc<TreeFacts> {
        let path = self.tree_path(group, arm);
        let key = format!("{} {}", path.display(), sums_key(&arm.case.dataset));
        Arc::clone(&self.trees[&key])
    }

    fn tree_path(&self, group: &Group, arm: &Arm) -> PathBuf {
        match &arm.case.workload {
            Workload::Index {
                tree: Some(tree), ..
            } => PathBuf::from(tree),
            _ => self.path(group, arm).with_file_name(GENERATED_TREE),
        }
    }

    /// Space that the generated trees of a group take which are not there yet: bytes and inodes.
    pub(super) fn space_for_trees(&self, group: &Group) -> (u64, u64) {
        let arms = group.arms.iter().filter(|arm| {
            matches!(&arm.case.workload, Workload::Index { tree: None, .. })
                && !self.tree_path(group, arm).exists()
        });
        // All arms of a group have one dataset.
        let count = arms.map(|arm| arm.case.dataset.count).max().unwrap_or(0);
        (count * BYTES_IN_THE_TREE, count + 2)
    }
}

/// Makes a tree under a provisional name, then gives it its own; `false` if the user has interrupted.
fn make(tree: &GeneratedTree, path: &Path) -> Result<bool, StoreError> {
    let partial = with_suffix(path, ".partial");
    remove(&partial)?;
    std::fs::create_dir(&partial).map_err(|source| io("create", &partial, source))?;
    for entry in tree.entries() {
        if interruption::requested() {
            remove(&partial)?;
            return Ok(false);
        }
        let path = partial.join(entry.path);
        let made = match entry.file_bytes {
            None => std::fs::create_dir(&path),
            // Only its size is recorded: it takes no blocks.
            Some(bytes) => File::create_new(&path).and_then(|file| file.set_len(bytes)),
        };
        made.map_err(|source| io("create", &path, source))?;
    }
    super::sync(&partial)?;
    std::fs::rename(&partial, path).map_err(|source| io("rename", &partial, source))?;
    Ok(true)
}

/// Adds up a directory of the user's.
fn facts_of(path: &Path) -> Result<TreeFacts, StoreError> {
    let failed =
        |error: &dyn std::error::Error| io("walk", path, std::io::Error::other(with_causes(error)));
    let tree = Tree::open(path).map_err(|error| failed(&error))?;
    let walked = walk_here(
        &tree,
        &WalkOptions::default(),
        Sum::default(),
        &interruption::requested,
    );
    Ok(TreeFacts {
        entries: walked.counts.total(),
        consumed: walked
            .visitors
            .iter()
            .fold(0, |sum, one| one.0.wrapping_add(sum)),
    })
}

/// Entries of a directory, for a plan.
///
/// # Errors
/// It is missing or cannot be read.
pub fn count_entries(tree: &Tree) -> u64 {
    let options = WalkOptions::default();
    walk_here(tree, &options, Sum::default(), &interruption::requested)
        .counts
        .total()
}

/// Sum of [`consume_entry`].
#[derive(Default)]
struct Sum(u64);

impl Visitor for Sum {
    type Mark = ();

    fn enter(&mut self, _: &Folder<'_>, _: Option<()>) {}

    fn entry(&mut self, folder: &Folder<'_>, entry: &TreeEntry<'_>) {
        self.0 = self.0.wrapping_add(consume_entry(folder.path, entry.name));
    }

    fn leave(&mut self, _: &Folder<'_>, _: FolderState, _: Option<FolderStamp>) {}
}

/// Fails unless the database of an index is whole and has as many entries as were recorded last.
pub(super) fn verify(
    path: &Path,
    case: &Case,
    written: Option<&Written>,
) -> Result<(), StoreError> {
    if !case.workload.writes() {
        return Ok(());
    }
    let differs = |reason: String| StoreError::Differs {
        path: path.to_owned(),
        reason,
    };
    let ask = || -> rusqlite::Result<(String, u64)> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let database = Connection::open_with_flags(path, flags)?;
        let check = database.query_row("PRAGMA integrity_check", [], |row| row.get(0))?;
        let sql = "SELECT count(*) FROM file_index";
        let entries: i64 = database.query_row(sql, [], |row| row.get(0))?;
        Ok((check, entries.unsigned_abs()))
    };
    let (check, entries) = ask().map_err(|error| differs(with_causes(&error)))?;
    if check != "ok" {
        return Err(differs(check));
    }
    match written.and_then(Written::imported) {
        Some(recorded) if recorded != entries => {
            Err(differs(format!("{entries} entries instead of {recorded}")))
        }
        _ => Ok(()),
    }
}
