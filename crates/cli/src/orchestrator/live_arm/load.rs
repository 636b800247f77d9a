//! What is known of a thread that reads or overwrites blobs beside others: which keys, and what
//! they were to give.

use sqlitmus_core::keys::{KeyWalk, Span};

use super::{LiveArm, Stop, lied};

impl LiveArm<'_> {
    /// Checks what a thread has consumed, or notes what it has written. Returns the bytes of
    /// content.
    pub(super) fn follow_load(
        &mut self,
        walk: &KeyWalk,
        span: &Span,
        is_writer: bool,
        generation: u64,
    ) -> Result<u64, Stop> {
        let dataset = &self.arm.case.dataset;
        let keys = walk.span(span.position, span.operations);
        let bytes: u64 = keys.map(|key| dataset.value_bytes(key) as u64).sum();
        if is_writer {
            self.written.note(walk, span, generation);
            return Ok(bytes);
        }
        if self.first.is_none() {
            return Ok(bytes);
        }
        if !self.arm.case.workload.writes() {
            self.check_sum(walk, span)?;
        } else if span.consumed != bytes {
            // Of what is written meanwhile only the length is known.
            return Err(lied(format!(
                "wrong content: {} blobs do not have {bytes} bytes together",
                span.operations
            )));
        }
        Ok(bytes)
    }
}
