//! What of the rules of measurement can be verified on this machine with this user's rights, as
//! facts of the environment: what cannot is said to be unverified, never assumed.

use super::page_cache;
use super::resources::ResourceSnapshot;
use super::system_calls::SystemCallCounter;

/// Name of the fact: how warm and cold are verified before slices.
pub const CACHE_BEFORE: &str = "cache_verified_before";
/// Name of the fact: how warm and cold are verified after slices.
pub const CACHE_AFTER: &str = "cache_verified_after";
/// Name of the fact: whether system calls are counted.
pub const SYSTEM_CALLS: &str = "system_calls";

/// All three.
#[must_use]
pub fn facts() -> Vec<(String, String)> {
    [
        (CACHE_BEFORE, cache_before()),
        (CACHE_AFTER, cache_after()),
        (SYSTEM_CALLS, system_calls()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .to_vec()
}

/// Asks for the pages of this program's own file; what is true of it is true of stores, which are
/// ours too.
fn cache_before() -> String {
    let found = std::env::current_exe()
        .ok()
        .map(|program| page_cache::residency(&program));
    match found {
        Some(Ok(residency)) => format!("by {}", residency.method),
        Some(Err(error)) if !matches!(error, page_cache::PageCacheError::NotOwner { .. }) => {
            format!("unverified: {error}")
        }
        _ => "by cachestat or mincore, where the files are ours".to_owned(),
    }
}

fn cache_after() -> String {
    let now = ResourceSnapshot::now();
    let used = now.since(&now);
    match (used.device_read_bytes, used.major_faults) {
        (Some(_), Some(_)) => "by device reads and major faults".to_owned(),
        (None, Some(_)) => "by major faults alone: the kernel counts no device reads".to_owned(),
        (Some(_), None) => "by device reads alone".to_owned(),
        (None, None) => "unverified: the kernel counts neither device reads nor faults".to_owned(),
    }
}

fn system_calls() -> String {
    match SystemCallCounter::of_this_thread() {
        Ok(counter) => format!("counted {}", counter.method()),
        Err(error) => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fact_says_something() {
        let facts = facts();
        assert_eq!(facts.len(), 3);
        assert!(
            facts.iter().all(|(_, value)| !value.is_empty()),
            "{facts:?}"
        );
    }
}
