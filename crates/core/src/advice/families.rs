//! Which ways to store the files are tried. The files decide: where all are small nothing is gained by
//! leaving some outside, and where most are large there is little to be gained inside.
//!
//! What is known beforehand is used. A page of 64 KiB holds a blob of some 10 kB on the leaf of the tree
//! itself, where a mapped database hands it out without a copy; with 4 KiB it lies in a chain of overflow
//! pages, which have to be collected. Every page that changes is written whole, so large pages cost
//! writers. A file is found by its name, and so is a blob in most of the databases; where blobs have
//! numbers (`id`), the program has to keep the numbers itself, which saves a search.
//!
//! Every read is by itself (`read_transaction = each`), as it is in what is given to paste.

use super::candidate::{Candidate, Pairs, Store, TODAY};
use super::{SizeCount, TreeFacts};
use crate::case::Durability;

/// How much is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Breadth {
    /// The eight families that suit the files best.
    Eight,
    /// Everything that is known to make a difference somewhere.
    Wide,
}

/// A word of a database's name: the word, how the label has it, and the settings that it stands for.
type Word = (&'static str, &'static str, Pairs<'static>);

/// What the databases differ in beside the size of their pages.
const WORDS: &[Word] = &[
    ("mmap", "mmap", &[("mmap", "all")]),
    ("id", "id", &[("layout", "rowid")]),
    ("blob", "blob API", &[("api", "blob")]),
    ("held", "one long read", &[("read_transaction", "held")]),
    ("cached", "64 MiB cache", &[("cache", "64MiB")]),
    ("catalogue", "names in memory", &[("catalogue", "memory")]),
    ("sqlar", "archive (sqlar)", &[("layout", "sqlar")]),
    (
        "without-rowid",
        "WITHOUT ROWID",
        &[("layout", "without-rowid")],
    ),
    ("metadata", "with metadata", &[("layout", "with-metadata")]),
    ("separate", "two tables", &[("layout", "separate")]),
    ("chunked", "chunks", &[("layout", "chunked")]),
    (
        "rollback",
        "rollback journal",
        &[("journal_mode", "truncate"), ("checkpoint", "apart")],
    ),
];

/// The word of databases whose page cache is to hold everything: how large that is depends on the files. Pages in
/// it stay set up, while a mapped page is parsed again at each visit (pager.c, `pagerAcquireMapPage`).
const RESIDENT: &str = "resident";

/// A cache that holds everything is tried up to so many bytes; more, few programs will give away.
const MOST_RESIDENT_BYTES: u64 = 1 << 30;

/// A database: KiB of a page, and words of [`WORDS`].
type Database = (u32, &'static [&'static str]);

/// Three databases that are always tried: as it comes, and the large pages.
const ALWAYS: &[Database] = &[
    (4, &[]),
    (16, &["mmap"]),
    (64, &["mmap"]),
    (64, &["mmap", "id"]),
];

/// Beside them where files are small: pages that cost writers less.
const OF_SMALL: &[Database] = &[(8, &["mmap"]), (8, &["mmap", "id"])];

/// The wide search, beside all of the above.
const WIDE: &[Database] = &[
    (4, &["mmap"]),
    (32, &["mmap"]),
    (4, &["mmap", "id"]),
    (4, &["mmap", "id", "blob"]),
    (16, &["mmap", "id"]),
    (64, &["mmap", "id", "blob"]),
    (4, &["cached"]),
    (16, &["cached"]),
    (16, &[RESIDENT]),
    (16, &["id", RESIDENT]),
    (16, &["mmap", "catalogue"]),
    (64, &["mmap", "catalogue"]),
    (16, &["mmap", "sqlar"]),
    (16, &["mmap", "without-rowid"]),
    (16, &["mmap", "metadata"]),
    (16, &["mmap", "separate"]),
    (64, &["mmap", "chunked"]),
    (16, &["mmap", "rollback"]),
];

/// Inline limits of a hybrid that are considered, in KiB.
const INLINE_LIMITS_KIB: [u64; 9] = [4, 8, 16, 32, 64, 128, 256, 512, 1024];

/// Where published and own measurements have the border between inside and outside, roughly, in KiB.
const USUAL_LIMIT_KIB: f64 = 64.0;

/// Of the wide search a limit this many times smaller and larger is tried too.
const LIMIT_STEP: u64 = 4;

/// A limit that leaves less than this share of the files inside, or of the bytes outside, is a database
/// or a directory, and no hybrid.
const LEAST_SHARE: f64 = 0.05;

/// Files are large if half of them have so many bytes or more.
const LARGE_BYTES: u64 = 128 << 10;

/// KiB of a hybrid's and an external's page.
const HYBRID_PAGE_KIB: u32 = 16;

/// What is tried for files at a durability and another one that is worth knowing of. The first is today's;
/// names are unique.
#[must_use]
pub fn candidates(
    tree: &TreeFacts,
    (durability, otherwise): (Durability, Durability),
    breadth: Breadth,
) -> Vec<Candidate> {
    let tiers = (durability, otherwise);
    let limits = inline_limits(tree);
    let usual = usual_limit(&limits);
    let is_large = tree.median_bytes >= LARGE_BYTES;
    let mut all = vec![
        files(TODAY, "your files, as they are", "open", "truncate", tiers),
        files(
            "files-openat",
            "your files, openat",
            "openat",
            "in-place",
            tiers,
        ),
    ];
    all.extend(ALWAYS.iter().map(|one| sqlite(one, tiers)));
    let mapped = || {
        files(
            "files-mmap",
            "your files, mapped",
            "mmap",
            "in-place",
            tiers,
        )
    };
    let hybrid = |kib| hybrid(kib, HYBRID_PAGE_KIB, tiers);
    if breadth == Breadth::Eight {
        match (is_large, usual) {
            (true, Some(limit)) => all.extend([hybrid(limit), external(tiers)]),
            (true, None) => all.extend([mapped(), external(tiers)]),
            (false, Some(limit)) => all.extend([sqlite(&OF_SMALL[0], tiers), hybrid(limit)]),
            (false, None) => all.extend(OF_SMALL.iter().map(|one| sqlite(one, tiers))),
        }
        return all;
    }
    all.push(mapped());
    let wide = OF_SMALL.iter().chain(WIDE);
    all.extend(wide.filter_map(|one| match one.1.contains(&RESIDENT) {
        true => Some(resident(one, resident_bytes(tree)?, tiers)),
        false => Some(sqlite(one, tiers)),
    }));
    let wide = usual.map_or(Vec::new(), |usual| {
        vec![usual / LIMIT_STEP, usual, usual * LIMIT_STEP]
    });
    let wide = wide.into_iter().filter(|limit| limits.contains(limit));
    all.extend(wide.map(hybrid));
    all.push(external(tiers));
    all
}

type Tiers = (Durability, Durability);

fn files(name: &str, label: &str, read: &str, write: &str, tiers: Tiers) -> Candidate {
    // There is no writing through a map that would be as safe.
    let writer = if read == "mmap" { "openat" } else { read };
    let written = [("api", writer), ("write", write)];
    Candidate::files((name, label), &[("api", read)], &written, tiers)
}

fn sqlite((page_kib, words): &Database, tiers: Tiers) -> Candidate {
    let page_bytes = (u64::from(*page_kib) << 10).to_string();
    let mut name = format!("sqlite-{page_kib}k");
    let mut label = format!("SQLite {page_kib} KiB");
    let mut settings = vec![
        ("layout", "name"),
        ("page_size", page_bytes.as_str()),
        ("read_transaction", "each"),
    ];
    for (word, in_label, stands_for) in WORDS.iter().filter(|(word, ..)| words.contains(word)) {
        name.push_str(&format!("-{word}"));
        label.push_str(&format!(", {in_label}"));
        settings.extend(stands_for.iter());
    }
    if words.is_empty() {
        label = "SQLite as it comes".to_owned();
    }
    Candidate::database((&name, &label), Store::Sqlite, &settings, tiers)
}

fn resident(database: &Database, cache_bytes: u64, tiers: Tiers) -> Candidate {
    let mut found = sqlite(database, tiers);
    found.name.push_str(&format!("-{RESIDENT}"));
    found.label.push_str(", all in its cache");
    let cache = format!("{}MiB", cache_bytes >> 20);
    for with in [
        &mut found.reading,
        &mut found.writing,
        &mut found.writing_otherwise,
    ] {
        *with = with.clone().with("cache", &cache);
    }
    found
}

/// Bytes of a page cache for all files, with room for half empty pages; `None` if that would be too much.
fn resident_bytes(tree: &TreeFacts) -> Option<u64> {
    let bytes: u64 = tree.sizes.iter().map(|class| class.bytes).sum();
    let cache_bytes = (2 * bytes).max(1).next_multiple_of(64 << 20);
    (cache_bytes <= MOST_RESIDENT_BYTES).then_some(cache_bytes)
}

fn hybrid(limit_kib: u64, page_kib: u32, tiers: Tiers) -> Candidate {
    let page_bytes = (u64::from(page_kib) << 10).to_string();
    let limit_bytes = (limit_kib << 10).to_string();
    let settings = [
        ("inline_limit", limit_bytes.as_str()),
        ("page_size", &page_bytes),
        ("read_transaction", "each"),
        ("mmap", "all"),
    ];
    let name = format!("hybrid-{limit_kib}k");
    let label = format!("up to {limit_kib} KiB in SQLite, else files");
    Candidate::database((&name, &label), Store::Hybrid, &settings, tiers)
}

fn external(tiers: Tiers) -> Candidate {
    let settings = [("read_transaction", "each"), ("mmap", "all")];
    let names = ("external", "names in SQLite, contents in files");
    Candidate::database(names, Store::External, &settings, tiers)
}

/// Limits that divide the files, ascending, in KiB: some of them are inside, and some bytes outside.
fn inline_limits(tree: &TreeFacts) -> Vec<u64> {
    let sizes = &tree.sizes;
    let files: u64 = sizes.iter().map(|class| class.files).sum();
    let bytes: u64 = sizes.iter().map(|class| class.bytes).sum();
    let divides = |limit_kib: &u64| {
        let is_inside = |class: &&SizeCount| class.low < limit_kib << 10;
        let inside: u64 = sizes
            .iter()
            .filter(is_inside)
            .map(|class| class.files)
            .sum();
        let outside = sizes.iter().filter(|class| !is_inside(class));
        let outside: u64 = outside.map(|class| class.bytes).sum();
        inside as f64 >= files as f64 * LEAST_SHARE
            && outside as f64 >= (bytes as f64 * LEAST_SHARE).max(1.0)
    };
    INLINE_LIMITS_KIB.into_iter().filter(divides).collect()
}

/// The one that is nearest to where the border usually is.
fn usual_limit(limits: &[u64]) -> Option<u64> {
    let distance = |limit: &u64| (*limit as f64 / USUAL_LIMIT_KIB).ln().abs();
    let mut limits = limits.to_vec();
    limits.sort_by(|one, other| distance(one).total_cmp(&distance(other)));
    limits.first().copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    const TIERS: Tiers = (Durability::ProcessCrash, Durability::PowerLoss);

    /// Files of these sizes, each a power of two: KiB and how many.
    fn tree(sizes: &[(u64, u64)]) -> TreeFacts {
        let mut all: Vec<u64> = Vec::new();
        for (kib, files) in sizes {
            all.extend((0..*files).map(|_| kib << 10));
        }
        all.sort_unstable();
        TreeFacts {
            median_bytes: all[all.len() / 2],
            sizes: sizes
                .iter()
                .map(|(kib, files)| SizeCount {
                    low: kib << 10,
                    high: (kib << 11) - 1,
                    files: *files,
                    bytes: (kib << 10) * files,
                })
                .collect(),
            ..TreeFacts::default()
        }
    }

    fn names(tree: &TreeFacts, breadth: Breadth) -> Vec<String> {
        let all = candidates(tree, TIERS, breadth);
        all.into_iter().map(|one| one.name).collect()
    }

    #[test]
    fn there_are_eight_and_today_is_the_first() {
        for sizes in [
            &[(1, 100)][..],
            &[(1, 100), (512, 10)],
            &[(2, 20), (1024, 100)],
            &[(1024, 100)],
        ] {
            let tree = tree(sizes);
            for breadth in [Breadth::Eight, Breadth::Wide] {
                let names = names(&tree, breadth);
                assert_eq!(names[0], TODAY);
                assert!(breadth == Breadth::Wide || names.len() == 8, "{names:?}");
                assert!(breadth == Breadth::Eight || names.len() > 20, "{names:?}");
                let unique: BTreeSet<&String> = names.iter().collect();
                assert_eq!(unique.len(), names.len());
            }
        }
    }

    #[test]
    fn a_shared_cache_is_never_tried_and_so_never_recommended() {
        for one in candidates(&tree(&[(1, 100), (512, 10)]), TIERS, Breadth::Wide) {
            let settings = [&one.reading, &one.writing, &one.writing_otherwise];
            let shared = settings.iter().find_map(|each| each.get("cache_sharing"));
            assert_eq!(shared, None, "{}: private is the default", one.name);
        }
    }

    /// What reads 10 kB in little more than the time of a copy: the suite `checks/ten-kilobytes`.
    #[test]
    fn blobs_that_lie_whole_on_a_mapped_page_are_always_tried() {
        for tree in [
            tree(&[(1, 100)]),
            tree(&[(1, 100), (512, 10)]),
            tree(&[(1024, 9)]),
        ] {
            let all = candidates(&tree, TIERS, Breadth::Eight);
            let found = all.iter().any(|one| {
                let has = |name, value| one.reading.get(name) == Some(value);
                has("page_size", "65536") && has("mmap", "all") && has("layout", "rowid")
            });
            assert!(found);
        }
    }

    #[test]
    fn a_cache_for_everything_is_tried_if_it_is_not_too_large() {
        let caches = |tree: &TreeFacts| -> Vec<String> {
            let all = candidates(tree, TIERS, Breadth::Wide);
            let resident = all.iter().filter(|one| one.name.ends_with(RESIDENT));
            let caches =
                resident.map(|one| [&one.reading, &one.writing].map(|with| with.get("cache")));
            caches.flatten().flatten().map(str::to_owned).collect()
        };
        assert_eq!(caches(&TreeFacts::default()), ["64MiB"; 4]);
        assert_eq!(caches(&tree(&[(1, 100)])), ["64MiB"; 4]);
        assert_eq!(caches(&tree(&[(1024, 100)])), ["256MiB"; 4]);
        assert_eq!(caches(&tree(&[(1024, 600)])), [""; 0]);
    }

    #[test]
    fn what_is_tried_follows_from_the_sizes() {
        let has =
            |tree: &TreeFacts, name: &str| names(tree, Breadth::Eight).contains(&name.to_owned());
        let small = tree(&[(1, 100)]);
        assert!(!has(&small, "hybrid-64k") && !has(&small, "external"));
        let mixed = tree(&[(1, 100), (512, 10)]);
        assert!(has(&mixed, "hybrid-64k") && !has(&mixed, "external"));
        let large = tree(&[(2, 20), (1024, 100)]);
        assert!(has(&large, "hybrid-64k") && has(&large, "external"));
        let only_large = tree(&[(1024, 100)]);
        assert!(has(&only_large, "files-mmap") && has(&only_large, "external"));
    }

    #[test]
    fn a_limit_has_something_on_either_side() {
        assert_eq!(inline_limits(&tree(&[(1, 100)])), Vec::<u64>::new());
        assert_eq!(inline_limits(&tree(&[(1, 100), (16, 50)])), [4, 8, 16]);
        assert_eq!(usual_limit(&[4, 8, 16]), Some(16));
        assert_eq!(usual_limit(&[4, 64, 1024]), Some(64));
        assert_eq!(usual_limit(&[]), None);
        assert_eq!(inline_limits(&TreeFacts::default()), Vec::<u64>::new());
        let wide = names(&tree(&[(1, 100), (512, 10)]), Breadth::Wide);
        for limit in ["hybrid-16k", "hybrid-64k", "hybrid-256k"] {
            assert!(wide.contains(&limit.to_owned()), "{wide:?}");
        }
    }
}
