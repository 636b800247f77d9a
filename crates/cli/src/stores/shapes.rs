//! What stores hold besides blobs: rows, and nothing yet. How such a store is filled, how large
//! it is, and what it must hold when its group has ended.

use std::collections::btree_map::Entry;
use std::path::Path;
use std::sync::Arc;

use sqlitmus_core::case::{Case, Shape, Workload};
use sqlitmus_core::plan::Group;
use sqlitmus_core::rows::Rows;
use sqlitmus_core::settings::Settings;
use sqlitmus_engines::{Content, Engine, EngineError, Store, ageing};

use super::{Interruptible, StoreError, Stores, engine, sums_key};
use crate::interruption;
use crate::orchestrator::expectation::{RowFacts, Written};

/// Texts in a row, in both tables.
const TEXTS_OF_A_ROW: u64 = 2;

/// What a store that grows old takes beside its content, as a multiple of it: holes, and its log until that is
/// emptied. A life has its copies too: one as it is, one by each way of copying a database, and one that is
/// cleaned up bit by bit.
const AGED_TIMES: u64 = 2;
const LIFE_TIMES: u64 = 5;

/// Bytes of a row besides its texts, generously: numbers, lengths, its place in the page.
const OTHER_BYTES_OF_A_ROW: u64 = 48;

/// Part of a store's path: nothing for blobs, whose stores were named before there were others.
pub(super) fn mark(shape: Shape) -> &'static str {
    match shape {
        Shape::Blobs => "",
        Shape::Rows => " rows",
        Shape::NoRows => " no rows",
        Shape::NoBlobs => " no blobs",
        Shape::Tree => " tree",
    }
}

/// Blobs or rows that a store is filled with.
pub(super) fn items(case: &Case) -> u64 {
    match case.workload.shape() {
        Shape::Blobs => case.dataset.count * (1 + u64::from(case.age)),
        Shape::Rows => 2 * case.dataset.count,
        Shape::NoRows | Shape::NoBlobs | Shape::Tree => 0,
    }
}

/// Bytes of content that a store is filled with.
pub(super) fn content_bytes(case: &Case) -> u64 {
    match case.workload.shape() {
        Shape::Blobs => case.dataset.total_bytes(),
        Shape::Rows => 2 * TEXTS_OF_A_ROW * case.dataset.total_bytes(),
        Shape::NoRows | Shape::NoBlobs | Shape::Tree => 0,
    }
}

/// Upper estimate of the space that a store takes at its largest, its log included.
pub(super) fn disk_bytes(case: &Case) -> u64 {
    let count = case.dataset.count;
    let row_bytes = TEXTS_OF_A_ROW * case.dataset.total_bytes() + count * OTHER_BYTES_OF_A_ROW;
    match case.workload {
        // The threads' copies beside the store.
        Workload::PointQuery {
            threads,
            databases: sqlitmus_core::case::Databases::Own,
            ..
        } => u64::from(threads) * (2 * row_bytes + row_bytes / 4),
        Workload::Lifecycle { .. } => LIFE_TIMES * super::disk_bytes(&case.dataset),
        _ => match case.workload.shape() {
            Shape::Blobs if case.age > 0 => AGED_TIMES * super::disk_bytes(&case.dataset),
            Shape::Blobs => super::disk_bytes(&case.dataset),
            Shape::Rows => 2 * row_bytes + row_bytes / 4,
            // The table and the log that it goes through.
            Shape::NoRows => 2 * row_bytes + row_bytes / 4,
            Shape::NoBlobs => 4 << 20,
            Shape::Tree => count * super::trees::BYTES_OF_AN_ENTRY + (1 << 20),
        },
    }
}

/// The settings that a store is opened with to be verified. Where a library is a name, only workers
/// know its path: the built-in one reads what it has written.
pub(super) fn settings_to_verify(case: &Case) -> Settings {
    let mut settings = case.settings.clone();
    let is_name = |value: &str| value.starts_with('@');
    if settings.get("library").is_some_and(is_name) {
        settings.set("library", "bundled");
    }
    settings
}

/// Creates a store with what is stored, and fills it.
pub(super) fn create(
    engine: &'static dyn Engine,
    path: &Path,
    case: &Case,
    content: &dyn Content,
) -> Result<(), EngineError> {
    // Only with what is stored: arms that share it may use it in their own ways.
    let settings = case.settings.stored(engine.settings());
    match case.workload.shape() {
        Shape::Blobs => {
            let store = engine.create(path, &settings)?;
            store.load(&Interruptible(content), &mut |_| {})?;
            match case.age {
                0 => Ok(()),
                _ => age(store.as_ref(), case),
            }
        }
        Shape::NoBlobs => engine.create(path, &settings).map(|_| ()),
        // Every recording makes its own database.
        Shape::Tree => std::fs::File::create_new(path)
            .map(|_| ())
            .map_err(EngineError::io("create", path)),
        shape => {
            let Some(rows) = engine.rows() else {
                let name = engine.name();
                return Err(EngineError::Unavailable(format!("`{name}` has no rows")));
            };
            let store = rows.create(path, &settings)?;
            if shape == Shape::NoRows {
                return Ok(());
            }
            store.load(&Rows::new(&case.dataset), &mut |_| {
                !interruption::requested()
            })
        }
    }
}

/// Brings a store that was just filled to the age of its case, and verifies all of it.
fn age(store: &dyn Store, case: &Case) -> Result<(), EngineError> {
    let mut session = store.session()?;
    let goes_on = || !interruption::requested();
    ageing::bring_to_age(session.as_mut(), &case.dataset, case.age, &goes_on)?;
    ageing::verify_age(session.as_mut(), &case.dataset, case.age, &|_| true).map(drop)
}

/// Fails unless a store without blobs at rest is empty.
pub(super) fn verify_empty(path: &Path, case: &Case) -> Result<(), StoreError> {
    let Some(engine) = engine(case) else {
        return Ok(());
    };
    let mut session = engine.open(path, &case.settings)?.session()?;
    let mut left = 0u64;
    session.keys(&mut |_| left += 1)?;
    match left {
        0 => Ok(()),
        _ => Err(StoreError::Differs {
            path: path.to_owned(),
            reason: format!("{left} records are left"),
        }),
    }
}

impl Stores {
    /// Makes what is known of the rows of a group's datasets.
    pub(super) fn rows_of(&mut self, group: &Group) {
        let about_rows = group
            .arms
            .iter()
            .filter(|arm| arm.case.workload.is_about_rows());
        for arm in about_rows {
            let dataset = &arm.case.dataset;
            if let Entry::Vacant(entry) = self.rows.entry(sums_key(dataset)) {
                entry.insert(Arc::new(RowFacts::new(dataset)));
            }
        }
    }

    /// Adds up all rows of a store: as many as were loaded or imported last, and counted up by as
    /// many updates as were acknowledged.
    pub(super) fn verify_rows(
        &self,
        path: &Path,
        case: &Case,
        written: Option<&Written>,
    ) -> Result<(), StoreError> {
        let Some(rows) = engine(case).and_then(|engine| engine.rows()) else {
            return Ok(());
        };
        let Some(written) = written else {
            // A trial failed somewhere in the middle: that the store can be read is all there is.
            let settings = settings_to_verify(case);
            rows.open(path, &settings)?.session()?.totals()?;
            return Ok(());
        };
        let facts = self.row_facts(&case.dataset);
        let mut settings = settings_to_verify(case);
        // What memory statistics cost is over: this process does not keep them.
        settings.set("memory_statistics", "as-compiled");
        let totals = rows.open(path, &settings)?.session()?.totals()?;
        let expected = written.imported().unwrap_or(facts.count);
        let reason = if totals.rows != expected {
            Some(format!("{} rows instead of {expected}", totals.rows))
        } else if written.imported().is_some() {
            let stored = facts.sums.of(1..=expected).consumed;
            (totals.consumed != stored).then(|| "other rows than were imported".to_owned())
        } else {
            facts.check_c1_sum(totals.c1_sum, written.updates()).err()
        };
        match reason {
            None => Ok(()),
            Some(reason) => Err(StoreError::Differs {
                path: path.to_owned(),
                reason,
            }),
        }
    }
}
