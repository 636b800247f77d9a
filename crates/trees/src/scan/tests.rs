use super::*;

use std::fs;
use std::path::Path;

use sqlitmus_core::tree_scan::sample::draw;

fn scanned(folder: &Path) -> Scanned {
    let tree = Tree::open(folder).expect("opens");
    scan(&tree, &ScanOptions::default(), &|| false, &mut |_| {})
}

/// Bytes that no compressor shrinks, different for each number (SplitMix64).
fn noise(number: u64, bytes: usize) -> Vec<u8> {
    let mut state = number;
    let mut word = || {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)).to_le_bytes()
    };
    let words = bytes.div_ceil(8);
    let mut all: Vec<u8> = (0..words).flat_map(|_| word()).collect();
    all.truncate(bytes);
    all
}

#[test]
fn a_tree_is_summed_up() {
    let folder = tempfile::tempdir().expect("folder");
    fs::create_dir_all(folder.path().join("a/b")).expect("folders");
    for number in 0..20u64 {
        let name = format!("a/b/{number}.JPG");
        fs::write(folder.path().join(name), noise(number, 10_000)).expect("file");
        // Twenty of the same content, and ten of no content.
        fs::write(
            folder.path().join(format!("a/{number}.txt")),
            vec![b'x'; 5_000],
        )
        .expect("file");
    }
    for number in 0..10 {
        fs::write(folder.path().join(format!("empty{number}")), "").expect("file");
    }
    fs::hard_link(folder.path().join("empty0"), folder.path().join("empty10")).expect("link");
    let found = scanned(folder.path());
    let summary = &found.summary;
    assert_eq!((summary.files(), summary.folders()), (51, 3));
    assert_eq!(summary.total_bytes(), 20 * 15_000);
    assert_eq!(summary.file_bytes.maximum(), Some(10_000));
    assert_eq!(summary.hard_linked_files, 2);
    assert_eq!(summary.files_by_depth[..3], [11, 20, 20]);
    assert_eq!(summary.folder_entries.maximum(), Some(21));
    let names = summary.names.most_frequent(2);
    assert_eq!(
        names.iter().map(|name| name.0).collect::<Vec<_>>(),
        ["jpg", "txt"]
    );
    assert!(!summary.stopped && summary.oddities.kinds().next().is_none());

    let compressed = summary.compressibility.as_ref().expect("read");
    // 200 kB do not shrink, 100 kB shrink to next to nothing.
    assert!(
        (0.66..0.68).contains(&compressed.ratio),
        "{}",
        compressed.ratio
    );
    let duplicates = summary.duplicates.expect("compared");
    assert!(duplicates.is_whole && !duplicates.is_lower_bound);
    assert_eq!(duplicates.compared_files, 40);
    assert_eq!(
        (duplicates.duplicate_files, duplicates.duplicate_bytes),
        (19, 95_000)
    );

    let sample = draw(&found.candidates, u64::MAX, 1);
    assert!(sample.is_whole);
    for file in &sample.files {
        let metadata = fs::metadata(folder.path().join(&file.path)).expect("there");
        assert_eq!(metadata.len(), file.bytes);
    }
}

#[test]
fn large_files_are_read_in_part_and_told_apart_at_both_ends() {
    let folder = tempfile::tempdir().expect("folder");
    let mut content = noise(1, 1 << 20);
    for name in ["one", "same"] {
        fs::write(folder.path().join(name), &content).expect("file");
    }
    content[(1 << 20) - 1] ^= 1;
    fs::write(folder.path().join("other end"), &content).expect("file");
    content[0] ^= 1;
    fs::write(folder.path().join("other begin"), &content).expect("file");
    let summary = scanned(folder.path()).summary;
    let duplicates = summary.duplicates.expect("compared");
    assert_eq!(
        (duplicates.compared_files, duplicates.duplicate_files),
        (4, 1)
    );
    let compressed = summary.compressibility.expect("read");
    assert_eq!(
        compressed.classes[0].sampled_bytes,
        4 * compressed.most_bytes_per_file
    );
    assert!(compressed.ratio > 0.999, "{}", compressed.ratio);
}

#[test]
fn nothing_and_empty_files_are_no_trouble() {
    let folder = tempfile::tempdir().expect("folder");
    let nothing = scanned(folder.path());
    assert_eq!((nothing.summary.files(), nothing.summary.folders()), (0, 1));
    assert_eq!(nothing.summary.compressibility, None);
    for number in 0..1_000 {
        fs::write(folder.path().join(number.to_string()), "").expect("file");
    }
    let empty = scanned(folder.path()).summary;
    assert_eq!((empty.files(), empty.total_bytes()), (1_000, 0));
    assert_eq!((empty.compressibility, empty.duplicates), (None, None));
}

#[test]
fn the_sample_is_the_same_whatever_the_number_of_threads() {
    let folder = tempfile::tempdir().expect("folder");
    for number in 0..600usize {
        let below = folder.path().join((number % 13).to_string());
        fs::create_dir_all(&below).expect("folder");
        fs::write(below.join(number.to_string()), vec![0; number * 7]).expect("file");
    }
    let tree = Tree::open(folder.path()).expect("opens");
    let samples: Vec<_> = [1, 4]
        .into_iter()
        .map(|threads| {
            let options = ScanOptions {
                threads: NonZeroUsize::new(threads).expect("some"),
                most_candidates_per_class: 20,
                ..ScanOptions::default()
            };
            let found = scan(&tree, &options, &|| false, &mut |_| {});
            (draw(&found.candidates, 100_000, 1), found.summary)
        })
        .collect();
    assert!(!samples[0].0.files.is_empty());
    assert_eq!(samples[0], samples[1]);
}

#[test]
fn a_folder_and_a_file_that_change_meanwhile_are_reported() {
    let folder = tempfile::tempdir().expect("folder");
    fs::create_dir(folder.path().join("below")).expect("folder");
    for name in ["grows", "goes", "stays"] {
        fs::write(folder.path().join("below").join(name), noise(7, 3_000)).expect("file");
    }
    let tree = Tree::open(folder.path()).expect("opens");
    let found = scan(&tree, &ScanOptions::default(), &|| false, &mut |progress| {
        if progress == ScanProgress::Reading {
            fs::write(folder.path().join("below/grows"), "short now").expect("file");
            fs::remove_file(folder.path().join("below/goes")).expect("removed");
        }
    });
    let oddities = &found.summary.oddities;
    let folders = oddities.examples(OddityKind::ChangedFolder);
    assert_eq!(folders.len(), 1);
    assert_eq!(folders[0].path, Path::new("below"));
    // Each is met twice: when it is to be compressed, and when it is to be compared.
    assert_eq!(oddities.count(OddityKind::ChangedFile), 2);
    assert_eq!(oddities.count(OddityKind::Vanished), 2);
    assert_eq!(
        found
            .summary
            .duplicates
            .expect("one is left")
            .compared_files,
        1
    );
}

#[test]
fn it_stops_when_it_is_asked_to() {
    let folder = tempfile::tempdir().expect("folder");
    fs::write(folder.path().join("file"), "content").expect("file");
    let tree = Tree::open(folder.path()).expect("opens");
    let found = scan(&tree, &ScanOptions::default(), &|| true, &mut |_| {});
    assert!(found.summary.stopped);
    assert_eq!(found.summary.compressibility, None);
}
