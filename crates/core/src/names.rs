//! The nearest valid name to one that is not valid, for the `hint:` line of an error.
//!
//! Which names are valid, and how the hint is worded, is left to the callers.

/// The candidate that was most likely meant by `wanted`, or `None` if none is near enough for the
/// suggestion to help.
///
/// Case, leading dashes, and the difference between `_` and `-` do not count. A candidate is near if
/// - its Damerau-Levenshtein distance from `wanted` (insertions, deletions, substitutions, and swaps
///   of neighbouring letters; F. J. Damerau, "A technique for computer detection and correction of
///   spelling errors", CACM 7(3), 1964) is at most a third of the longer name's letters: one slip in
///   a word of 3 to 5 letters, two in 6 to 8, none in shorter words, where any two names are alike; or
/// - one of the two begins with the other, and the shorter has at least two letters and at least a
///   third of the longer one's: `sqlit` for `sqlite` is a slip, `sq` an abbreviation.
///
/// The fewest slips win; an abbreviation counts as one. Equal ones: the one nearer in length, then the
/// one that comes first.
pub fn nearest<'a>(wanted: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = plain(wanted);
    candidates
        .into_iter()
        .filter_map(|candidate| Some((slips(&wanted, &plain(candidate))?, candidate)))
        .min_by_key(|(slips, _)| *slips)
        .map(|(_, candidate)| candidate)
}

/// The name with everything taken away that should not count as a difference.
fn plain(name: &str) -> String {
    name.trim()
        .trim_start_matches('-')
        .to_lowercase()
        .replace('_', "-")
}

/// How far two plain names are apart: (slips, difference in length); `None` if too far.
fn slips(wanted: &str, candidate: &str) -> Option<(usize, usize)> {
    let (wanted_letters, candidate_letters) = (wanted.chars().count(), candidate.chars().count());
    let longer = wanted_letters.max(candidate_letters);
    let shorter = wanted_letters.min(candidate_letters);
    let apart = longer - shorter;
    if shorter == 0 {
        return None;
    }

    let begins_alike = wanted.starts_with(candidate) || candidate.starts_with(wanted);
    let abbreviation = begins_alike && shorter >= 2 && shorter * 3 >= longer;
    // The difference in length is a lower bound of the distance: the long way round (quadratic in
    // the lengths) is spared for names that cannot be near, however long the input is.
    let most = longer / 3;
    let distance = (apart <= most)
        .then(|| strsim::damerau_levenshtein(wanted, candidate))
        .filter(|distance| *distance <= most);

    match (distance, abbreviation) {
        (Some(distance), true) => Some((distance.min(1), apart)),
        (Some(distance), false) => Some((distance, apart)),
        (None, true) => Some((1, apart)),
        (None, false) => None,
    }
}

/// Whether a name can stand in a path and in a conclusion's placeholder.
#[must_use]
pub fn is_plain(name: &str) -> bool {
    let may_stand =
        |character: char| character.is_ascii_alphanumeric() || "._-".contains(character);
    let begins = name.starts_with(|first: char| first.is_ascii_alphanumeric());
    begins && name.len() <= 64 && name.chars().all(may_stand)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ENGINES: [&str; 7] = [
        "sqlite", "files", "null", "memory", "packfile", "lmdb", "redb",
    ];
    const SETTINGS: [&str; 6] = [
        "api",
        "page-size",
        "cache-bytes",
        "mmap-bytes",
        "journal-mode",
        "synchronous",
    ];

    #[test]
    fn slips_of_the_pen_are_found() {
        assert_eq!(nearest("sqlit", ENGINES), Some("sqlite"));
        assert_eq!(nearest("sqlite3", ENGINES), Some("sqlite"));
        assert_eq!(nearest("slqite", ENGINES), Some("sqlite"));
        assert_eq!(nearest("file", ENGINES), Some("files"));
        assert_eq!(nearest("lmbd", ENGINES), Some("lmdb"));
        assert_eq!(nearest("rocksdb", ENGINES), None);
        assert_eq!(nearest("sinchronus", SETTINGS), Some("synchronous"));
    }

    #[test]
    fn case_dashes_and_underscores_do_not_count() {
        assert_eq!(nearest("SQLite", ENGINES), Some("sqlite"));
        assert_eq!(nearest("page_size", SETTINGS), Some("page-size"));
        assert_eq!(nearest("--Page_Size", SETTINGS), Some("page-size"));
        assert_eq!(nearest("journal_mod", SETTINGS), Some("journal-mode"));
    }

    #[test]
    fn abbreviations_are_found() {
        assert_eq!(nearest("sq", ENGINES), Some("sqlite"));
        assert_eq!(nearest("pack", ENGINES), Some("packfile"));
        assert_eq!(nearest("mmap", SETTINGS), Some("mmap-bytes"));
        assert_eq!(nearest("sync", SETTINGS), Some("synchronous"));
        assert_eq!(nearest("journal", SETTINGS), Some("journal-mode"));
    }

    #[test]
    fn nonsense_gives_nothing() {
        for wanted in ["", " ", "-", "x", "zebra", "42", "p", "the quick brown fox"] {
            assert_eq!(nearest(wanted, ENGINES), None, "{wanted:?}");
        }
        assert_eq!(nearest("sqlite", []), None);
        assert_eq!(nearest(&"q".repeat(1_000_000), ENGINES), None);
        assert_eq!(nearest("sqlite", ["", "-"]), None);
        assert_eq!(nearest("x", ["y", "z"]), None);
    }

    #[test]
    fn the_first_of_equals_wins() {
        assert_eq!(nearest("read", ["reads", "reader", "ready"]), Some("reads"));
        assert_eq!(nearest("bulk", ["bulb", "bull"]), Some("bulb"));
    }

    proptest! {
        #[test]
        fn never_panics_and_answers_with_a_candidate(
            wanted in ".{0,40}",
            candidates in proptest::collection::vec(".{0,20}", 0..8),
        ) {
            let answer = nearest(&wanted, candidates.iter().map(String::as_str));
            prop_assert!(answer.is_none_or(|name| candidates.iter().any(|one| one == name)));
        }

        #[test]
        fn a_valid_name_is_nearest_to_itself(index in 0..ENGINES.len()) {
            prop_assert_eq!(nearest(ENGINES[index], ENGINES), Some(ENGINES[index]));
        }

        #[test]
        fn one_wrong_letter_is_forgiven(index in 0..ENGINES.len(), at in 0usize..20, letter in "[a-z]") {
            let mut letters: Vec<char> = ENGINES[index].chars().collect();
            let at = at % letters.len();
            letters[at] = letter.chars().next().unwrap_or('x');
            let wanted: String = letters.into_iter().collect();
            prop_assert!(nearest(&wanted, ENGINES).is_some());
        }
    }
}
