//! Somebody's directory: scanned, and sampled so that the distribution of sizes is kept. Nothing in it
//! is written, and every file of a sample has been read once before it is measured.

use std::io::{IsTerminal, Write};
use std::sync::Arc;

use sqlitmus_core::advice::{SampleFacts, SizeClass};
use sqlitmus_core::case::fingerprint;
use sqlitmus_core::dataset::{Dataset, FileSizes, MAXIMUM_BLOB_BYTES, SizeDistribution, mix};
use sqlitmus_core::tree_scan::{Candidates, FileAt, sample};
use sqlitmus_core::units::format_count;
use sqlitmus_engines::Content;
use sqlitmus_engines::own_files::{FileContent, FileList, ListedFile};
use sqlitmus_trees::scan::{ScanOptions, ScanProgress, Scanned, scan};
use sqlitmus_trees::walk::Tree;

use crate::failure::{ExitCode, Failure};
use crate::interruption;

/// Fewer files tell nothing about a store of many.
pub const FEWEST_FILES: u64 = 20;

/// A sample has at most so many files, for the selection and for the confirmation.
const MOST_SELECTION_FILES: usize = 5_000;
const MOST_CONFIRMATION_FILES: usize = 10_000;

/// A sample of fewer files than this gives up the largest sizes to have more.
const ENOUGH_FILES: usize = 1_000;

/// The sizes that are given up are at most this share of the files.
const MOST_LEFT_OUT: f64 = 0.1;

/// Where classes of sizes begin that are measured by themselves, in bytes.
const CLASS_STARTS: [u64; 6] = [0, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20];

/// Fewest files of such a class, and most that are measured.
const FEWEST_CLASS_FILES: usize = 20;
const MOST_CLASS_FILES: usize = 1_000;

/// Some of the files, with what stores of them are filled with.
pub struct Sampled {
    /// Their sizes.
    pub dataset: Dataset,
    /// Which they are.
    pub list: FileList,
}

impl Sampled {
    fn new(list: FileList, compressibility: f64, seed: u64) -> Self {
        let bytes = list.files().iter().map(|file| file.bytes).collect();
        let identity = String::from_utf8_lossy(&list.as_bytes()).into_owned();
        let identity = format!("{:016x}", fingerprint(&identity));
        Self {
            dataset: Dataset {
                count: list.len() as u64,
                size: SizeDistribution::Files(FileSizes { identity, bytes }),
                compressibility,
                seed: mix(seed),
            },
            list,
        }
    }

    /// In two numbers.
    pub fn facts(&self) -> SampleFacts {
        SampleFacts {
            files: self.dataset.count,
            bytes: self.dataset.total_bytes(),
        }
    }
}

/// The samples of a run.
pub struct Samples {
    /// For the selection.
    pub selection: Sampled,
    /// For the confirmation: other files, unless there are too few.
    pub confirmation: Sampled,
    /// Whether both are all of the files.
    pub is_whole: bool,
    /// Parts of the confirmation's, by size.
    pub classes: Vec<(SizeClass, Sampled)>,
    /// Files that could not be read as they were listed, and an example.
    pub left_out: Option<(u64, String)>,
}

/// Scans a tree, with a line that says how far it is.
///
/// # Errors
/// Interrupted.
pub fn scan_tree(tree: &Tree, seed: u64, quiet: bool) -> Result<Scanned, Failure> {
    let options = ScanOptions {
        seed,
        ..ScanOptions::default()
    };
    let shown = !quiet && std::io::stderr().is_terminal();
    let say = |line: &str| {
        if shown {
            // A service: the scan goes on without it.
            let _ = write!(std::io::stderr(), "\r\u{1b}[K{line}");
        }
    };
    let scanned = scan(
        tree,
        &options,
        &interruption::requested,
        &mut |progress| match progress {
            ScanProgress::Walking(entries) => {
                say(&format!("scanning: {} entries", format_count(entries)));
            }
            ScanProgress::Reading => say("scanning: what compresses, and what is there twice"),
        },
    );
    say("");
    if scanned.summary.stopped {
        return Err(Failure {
            code: ExitCode::Interrupted,
            message: "interrupted while scanning".to_owned(),
            hint: String::new(),
        });
    }
    Ok(scanned)
}

/// Draws both samples and reads them once.
///
/// # Errors
/// Too few of the files can be sampled.
pub fn draw(
    tree: &Tree,
    scanned: &Scanned,
    most_bytes: u64,
    seed: u64,
) -> Result<Samples, Failure> {
    let drawn = draw_enough(&scanned.candidates, most_bytes + most_bytes / 2, seed);
    let compressed = scanned.summary.compressibility.as_ref();
    // To a thousandth: more is not known, and it is the same number when it is read back.
    let compressibility = compressed.map_or(0.0, |found| {
        ((1.0 - found.ratio).clamp(0.0, 1.0) * 1000.0).round() / 1000.0
    });
    let mut left_out = None;
    let (files, is_whole) = (readable(tree, drawn.files, &mut left_out), drawn.is_whole);
    if (files.len() as u64) < FEWEST_FILES {
        return Err(Failure::bad_input(
            format!(
                "only {} of the files of {} can be sampled",
                files.len(),
                tree.path().display()
            ),
            format!(
                "advice needs {FEWEST_FILES} files that can be read and are below {most_bytes} bytes together; \
                 --sample SIZE allows more"
            ),
        ));
    }
    let bytes: u64 = files.iter().map(|file| u64::from(file.bytes)).sum();
    let both_are_all = is_whole && bytes <= most_bytes / 2 && files.len() <= MOST_SELECTION_FILES;
    let (first, second) = if both_are_all {
        (files.clone(), files)
    } else {
        split(files)
    };
    let sampled = |mut files: Vec<ListedFile>, most: usize| {
        files.truncate(most);
        let list = FileList::new(tree.path(), files);
        Sampled::new(list, compressibility, seed)
    };
    let selection = sampled(first, MOST_SELECTION_FILES);
    let confirmation = sampled(second, MOST_CONFIRMATION_FILES);
    let classes = classes_of(&confirmation.list)
        .into_iter()
        .map(|(class, files)| (class, sampled(files, MOST_CLASS_FILES)))
        .collect();
    Ok(Samples {
        classes,
        selection,
        confirmation,
        is_whole: both_are_all,
        left_out,
    })
}

/// A sample; if that is few files because some are very large, one without the largest sizes.
fn draw_enough(candidates: &Candidates, most_bytes: u64, seed: u64) -> sample::Sample {
    let all: u64 = candidates.classes().iter().map(|class| class.files).sum();
    let mut limit = u64::from(MAXIMUM_BLOB_BYTES) / 2;
    let mut best = sample::draw(&candidates.up_to(limit), most_bytes, seed);
    while best.files.len() < ENOUGH_FILES && !best.is_whole && limit > 1024 {
        limit /= 2;
        let fewer = candidates.up_to(limit);
        let kept: u64 = fewer.classes().iter().map(|class| class.files).sum();
        if (kept as f64) < all as f64 * (1.0 - MOST_LEFT_OUT) {
            break;
        }
        let drawn = sample::draw(&fewer, most_bytes, seed);
        if drawn.files.len() > best.files.len() {
            best = drawn;
            best.is_whole &= kept == all;
        }
    }
    best
}

/// A third of the bytes, and the rest: the order is random, so each has the distribution of the whole.
fn split(files: Vec<ListedFile>) -> (Vec<ListedFile>, Vec<ListedFile>) {
    let whole: u64 = files.iter().map(|file| u64::from(file.bytes)).sum();
    let least = (FEWEST_FILES as usize / 2).min(files.len() / 2);
    let mut first = files;
    let mut sum = 0;
    let mut count = 0;
    for (index, file) in first.iter().enumerate() {
        if index >= least && (sum >= whole / 3 || index >= first.len() * 2 / 3) {
            break;
        }
        sum += u64::from(file.bytes);
        count = index + 1;
    }
    let second = first.split_off(count);
    (first, second)
}

/// Those of some files that are as they were listed, each read once.
fn readable(
    tree: &Tree,
    files: Vec<FileAt>,
    left_out: &mut Option<(u64, String)>,
) -> Vec<ListedFile> {
    let listed: Vec<ListedFile> = files
        .into_iter()
        .map(|file| ListedFile {
            path: file.path,
            // None is larger than the sample.
            bytes: u32::try_from(file.bytes).unwrap_or(u32::MAX),
        })
        .collect();
    let content = FileContent(Arc::new(FileList::new(tree.path(), listed.clone())));
    let mut buffer = Vec::new();
    let mut kept = Vec::with_capacity(listed.len());
    for (key, file) in (1u64..).zip(listed) {
        if interruption::requested() {
            break;
        }
        match content.fill(key, &mut buffer) {
            Ok(()) => kept.push(file),
            Err(error) => {
                let (count, _) = left_out.get_or_insert_with(|| (0, error.to_string()));
                *count += 1;
            }
        }
    }
    kept
}

/// Classes of sizes with files enough, if there are at least two.
fn classes_of(list: &FileList) -> Vec<(SizeClass, Vec<ListedFile>)> {
    let ends = CLASS_STARTS.iter().skip(1).copied().map(Some).chain([None]);
    let classes: Vec<_> = CLASS_STARTS
        .iter()
        .zip(ends)
        .filter_map(|(from, below)| {
            let inside = |file: &&ListedFile| {
                let bytes = u64::from(file.bytes);
                bytes >= *from && below.is_none_or(|below| bytes < below)
            };
            let files: Vec<ListedFile> = list.files().iter().filter(inside).cloned().collect();
            let class = SizeClass {
                from: *from,
                below,
                files: files.len().min(MOST_CLASS_FILES) as u64,
            };
            (files.len() >= FEWEST_CLASS_FILES).then_some((class, files))
        })
        .collect();
    if classes.len() < 2 {
        return Vec::new();
    }
    classes
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn files(sizes: &[u32]) -> Vec<ListedFile> {
        let of = |(number, bytes): (usize, &u32)| ListedFile {
            path: PathBuf::from(number.to_string()),
            bytes: *bytes,
        };
        sizes.iter().enumerate().map(of).collect()
    }

    #[test]
    fn a_third_of_the_bytes_and_the_rest() {
        let (first, second) = split(files(&[10; 300]));
        assert_eq!((first.len(), second.len()), (100, 200));
        // One file has nearly all bytes; neither part is empty for that.
        let mut sizes = [1; 60];
        sizes[0] = 1_000_000;
        let (first, second) = split(files(&sizes));
        assert_eq!((first.len(), second.len()), (10, 50));
        let (first, second) = split(files(&[0; 90]));
        assert_eq!(first.len() + second.len(), 90);
        assert!(first.len() >= 10 && second.len() >= 30);
    }

    #[test]
    fn classes_have_files_enough_or_are_not_there() {
        let list = |sizes: &[u32]| FileList::new(std::path::Path::new("/"), files(sizes));
        let mut sizes = vec![100; 30];
        assert!(classes_of(&list(&sizes)).is_empty(), "one class is none");
        sizes.extend([5_000; 20]);
        sizes.extend([2_000_000; 19]);
        let classes = classes_of(&list(&sizes));
        let found: Vec<_> = classes
            .iter()
            .map(|(class, files)| (class.from, files.len()))
            .collect();
        assert_eq!(found, [(0, 30), (4096, 20)]);
    }

    #[test]
    fn a_few_large_files_do_not_crowd_out_the_small() {
        let mut candidates = Candidates::new(1, 100_000);
        let seed = candidates.folder_seed(b"");
        let mut add = |number: u32, bytes: u64| {
            let name = number.to_string();
            candidates.add(seed, name.as_bytes(), bytes, || PathBuf::from(&name));
        };
        (0..5_000).for_each(|number| add(number, 10_000));
        (5_000..5_005).for_each(|number| add(number, 400_000_000));
        let drawn = draw_enough(&candidates, 100_000_000, 1);
        assert!(drawn.files.len() > 4_900, "{}", drawn.files.len());
        assert!(!drawn.is_whole);
        assert!(drawn.files.iter().all(|file| file.bytes == 10_000));
    }
}
