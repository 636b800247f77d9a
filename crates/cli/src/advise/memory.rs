//! `--memory`: whether it can be had, and what it means for a sample. The groups themselves are
//! [`crate::machine::memory_group`]'s business; each trial has one of its own.

use sqlitmus_core::units::format_bytes;

use crate::arguments::advise::{AdviseArguments, CacheWord};
use crate::failure::Failure;
use crate::machine::memory_group::{self, LEAST_BYTES, MemoryGroup};

/// Name of the fact in the run file.
const FACT: &str = "memory_limited_by";

/// Removes the groups that a killed run has left, and tries whether memory can be limited if it is to be.
/// Returns what is to be kept of it in the run file.
///
/// # Errors
/// It is too little, contradicts another wish, or cannot be limited here.
pub fn require(arguments: &AdviseArguments) -> Result<Option<(String, String)>, Failure> {
    memory_group::remove_leftovers();
    let Some(bytes) = arguments.memory else {
        return Ok(None);
    };
    if bytes < LEAST_BYTES {
        return Err(Failure::bad_input(
            format!(
                "{} of memory are too little to measure with",
                format_bytes(bytes)
            ),
            format!("--memory takes {} or more", format_bytes(LEAST_BYTES)),
        ));
    }
    if arguments.cache != CacheWord::Warm {
        return Err(Failure::bad_input(
            "with --memory, what is read is cached as far as the memory goes: it is neither warm nor cold",
            "leave --cache out, or --memory",
        ));
    }
    let group = MemoryGroup::create(bytes).map_err(|error| {
        Failure::bad_input(
            error.to_string(),
            "it takes root, or a delegated control group: systemd-run --user --scope -p Delegate=yes sqlitmus \
             advise ...; without --memory everything is measured with the memory that there is",
        )
    })?;
    let words = format!("control groups, version {}", group.version());
    Ok(Some((FACT.to_owned(), words)))
}

/// What is to be said of a sample that fits into memory that the files do not fit into.
#[must_use]
pub fn warning(memory_bytes: Option<u64>, all_bytes: u64, sample_bytes: u64) -> Option<String> {
    let memory = memory_bytes.filter(|memory| sample_bytes <= *memory && *memory < all_bytes)?;
    Some(format!(
        "warning: the sample ({}) fits into {} of memory, and all of your files ({}) do not: it is read as if they \
         did\nhint: --sample {} measures with more than there is memory\n",
        format_bytes(sample_bytes),
        format_bytes(memory),
        format_bytes(all_bytes),
        format_bytes((2 * memory).min(all_bytes)).replace(' ', ""),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_that_fits_says_nothing_of_files_that_do_not() {
        assert_eq!(warning(None, 900, 100), None);
        assert_eq!(warning(Some(50), 900, 100), None, "the sample does not fit");
        assert_eq!(warning(Some(1000), 900, 100), None, "all of them fit");
        let words = warning(Some(256_000_000), 10_000_000_000, 96_000_000).expect("warned");
        assert!(words.contains("--sample 512MB"), "{words}");
    }
}
