//! Ratios of space: counted, not measured, so without intervals and verdicts.

use sqlitmus_core::run::{Footprint, Run};

/// How many times as small as the reference an arm's store is (allocated bytes of the reference
/// divided by those of the arm), in the direction of the ratios of time: above 1 is better. `None`
/// if one of them is not known or empty.
pub(crate) fn times_as_small(run: &Run, reference: &str, arm: &str) -> Option<f64> {
    let reference = run.footprints.get(reference)?;
    let arm = run.footprints.get(arm)?;
    share(reference.allocated_bytes, arm.allocated_bytes)
}

/// Allocated bytes beyond the content, as a share of the content: 0.02 for 2% more.
pub(crate) fn overhead(footprint: &Footprint) -> Option<f64> {
    share(footprint.allocated_bytes, footprint.content_bytes).map(|share| share - 1.0)
}

fn share(part: u64, whole: u64) -> Option<f64> {
    (part > 0 && whole > 0).then(|| part as f64 / whole as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_divided_by_nothing() {
        let mut footprint = Footprint {
            content_bytes: 1000,
            allocated_bytes: 1250,
            ..Footprint::default()
        };
        assert_eq!(overhead(&footprint), Some(0.25));
        footprint.content_bytes = 0;
        assert_eq!(overhead(&footprint), None);
    }
}
