//! What a worker says of recording a tree, held against what follows from the tree: how many entries there are,
//! and what their folders and names add up to.

use sqlitmus_core::case::{IndexWay, Workload};

use super::{LiveArm, Stop, lied};
use crate::orchestrator::expectation::TreeFacts;
use crate::protocol::Span;

impl LiveArm<'_> {
    fn index_way(&self) -> Option<IndexWay> {
        match self.arm.case.workload {
            Workload::Index { way, .. } => Some(way),
            _ => None,
        }
    }

    /// Checks a pass over the whole tree before the slices.
    pub(super) fn follow_pass(&self, facts: &TreeFacts, spans: &[Span]) -> Result<(), Stop> {
        match spans {
            [span] if span.operations == facts.entries => Ok(()),
            [span] => Err(other_number(span.operations, facts)),
            _ => Err(lied("the worker has another number of threads")),
        }
    }

    /// Checks one recording, and notes it.
    pub(super) fn follow_recording(
        &mut self,
        facts: &TreeFacts,
        spans: &[Span],
    ) -> Result<(), Stop> {
        let [span] = spans else {
            return Err(lied("the worker has another number of threads"));
        };
        if span.operations > facts.entries {
            return Err(other_number(span.operations, facts));
        }
        let way = self.index_way();
        let is_recorded = way != Some(IndexWay::Walk);
        let is_whole = span.operations == facts.entries;
        if is_whole && is_recorded && span.consumed != facts.consumed {
            return Err(lied("wrong content: other entries than those of the tree"));
        }
        if self.arm.case.workload.writes() {
            self.written.note_import(span.operations);
        }
        Ok(())
    }

    /// Checks what the database holds in the end: rows, their sum, and whether it is whole.
    pub(super) fn check_recorded(&self, facts: &TreeFacts, numbers: &[u64]) -> Result<(), Stop> {
        if self.index_way() == Some(IndexWay::Walk) {
            return Ok(());
        }
        let [rows, consumed, is_whole] = numbers else {
            return Err(lied("the worker did not verify what it has recorded"));
        };
        if *is_whole != 1 {
            return Err(lied("verification: the database is damaged"));
        }
        let expected = self.written.imported().unwrap_or(facts.entries);
        if *rows != expected {
            return Err(lied(format!(
                "verification: {rows} entries instead of {expected}"
            )));
        }
        if *rows == facts.entries && *consumed != facts.consumed {
            return Err(lied("verification: other entries than those of the tree"));
        }
        Ok(())
    }
}

fn other_number(entries: u64, facts: &TreeFacts) -> Stop {
    lied(format!(
        "{entries} entries instead of {}: the tree has changed, or not all of it was seen",
        facts.entries
    ))
}
