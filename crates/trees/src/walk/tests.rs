use super::*;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{FileType, mkdirat, mknodat};
use sqlitmus_core::tree_scan::OddityKind;

/// Keeps the paths of all entries, and how each folder ended.
#[derive(Default)]
struct Names {
    entries: BTreeSet<Vec<u8>>,
    folders: Vec<(Vec<u8>, FolderState)>,
}

impl Visitor for Names {
    /// Path of the folder is longer than its parent's: a mark is what `enter` returned.
    type Mark = usize;

    fn enter(&mut self, folder: &Folder<'_>, parent: Option<usize>) -> usize {
        assert_eq!(parent.is_none(), folder.depth == 0);
        assert!(parent.is_none_or(|length| length < folder.path.len()));
        folder.path.len()
    }

    fn entry(&mut self, folder: &Folder<'_>, entry: &Entry<'_>) {
        let mut path = folder.path.to_vec();
        path.push(b'/');
        path.extend_from_slice(entry.name);
        assert!(self.entries.insert(path), "each once");
    }

    fn leave(&mut self, folder: &Folder<'_>, state: FolderState, _: Option<FolderStamp>) {
        self.folders.push((folder.path.to_vec(), state));
    }
}

fn all_names(tree: &Path, threads: usize) -> Walked<Names> {
    let tree = Tree::open(tree).expect("opens");
    let visitors = (0..threads).map(|_| Names::default()).collect();
    let progress = WalkProgress::new(threads);
    let options = WalkOptions::default();
    let ((), walked) = walk(&tree, &options, visitors, &|| false, &progress, || {});
    assert!(progress.is_over() && !walked.stopped);
    assert_eq!(progress.entries(), walked.counts.total());
    walked
}

/// Folders by path, with what became of them.
type Folders = Vec<(Vec<u8>, FolderState)>;

fn merged(walked: Walked<Names>) -> (BTreeSet<Vec<u8>>, Folders) {
    let mut all = Names::default();
    for mut names in walked.visitors {
        all.entries.append(&mut names.entries);
        all.folders.append(&mut names.folders);
    }
    all.folders.sort_by(|one, other| one.0.cmp(&other.0));
    (all.entries, all.folders)
}

/// Paths of all entries, by the standard library.
fn expected(folder: &Path, prefix: &[u8], into: &mut BTreeSet<Vec<u8>>) {
    for entry in fs::read_dir(folder).expect("listed") {
        let entry = entry.expect("entry");
        let path = [prefix, b"/", entry.file_name().as_bytes()].concat();
        if entry.file_type().expect("type").is_dir() {
            let below = path.strip_prefix(b"/").unwrap_or(&path).to_vec();
            expected(&entry.path(), &below, into);
        }
        into.insert(path);
    }
}

#[test]
fn every_entry_is_seen_once_by_any_number_of_threads() {
    let folder = tempfile::tempdir().expect("folder");
    for number in 0..300 {
        let below = folder
            .path()
            .join(format!("{}/{}", number % 17, number % 5));
        fs::create_dir_all(&below).expect("folders");
        fs::write(below.join(format!("file {number}")), "x").expect("file");
    }
    let mut wanted = BTreeSet::new();
    expected(folder.path(), b"", &mut wanted);
    for threads in [1, 2, 7] {
        let walked = all_names(folder.path(), threads);
        assert_eq!(walked.counts.files, 300);
        assert_eq!(walked.counts.folders, 17 + 85);
        let (entries, folders) = merged(walked);
        assert_eq!(entries, wanted);
        assert_eq!(folders.len(), 1 + 17 + 85);
    }
}

#[test]
fn what_is_odd_is_counted_and_named_and_stops_nothing() {
    let folder = tempfile::tempdir().expect("folder");
    let top = folder.path();
    fs::write(top.join(OsStr::from_bytes(b"caf\xE9")), "x").expect("file");
    fs::create_dir(top.join("below")).expect("folder");
    symlink("..", top.join("below/up")).expect("link");
    symlink("nowhere", top.join("dangling")).expect("link");
    mknodat(
        rustix::fs::CWD,
        top.join("pipe"),
        FileType::Fifo,
        Mode::RUSR,
        0,
    )
    .expect("pipe");
    let _socket = std::os::unix::net::UnixListener::bind(top.join("socket")).expect("socket");
    let walked = all_names(top, 2);
    assert_eq!(walked.counts.total(), 6);
    assert_eq!(walked.counts.special_files, 2);
    let oddities = &walked.oddities;
    assert_eq!(oddities.count(OddityKind::NameNotUtf8), 1);
    assert_eq!(oddities.count(OddityKind::SymbolicLink), 2);
    assert_eq!(oddities.count(OddityKind::SpecialFile), 2);
    let links: Vec<_> = oddities
        .examples(OddityKind::SymbolicLink)
        .iter()
        .map(|example| example.path.clone())
        .collect();
    assert_eq!(links, [Path::new("below/up"), Path::new("dangling")]);
    // Neither link was followed.
    assert_eq!(merged(walked).1.len(), 2);
}

#[test]
fn a_tree_deeper_than_any_path_is_walked() {
    const DEPTH: u32 = 3_000;
    let folder = tempfile::tempdir().expect("folder");
    let mut current = OwnedFd::from(fs::File::open(folder.path()).expect("opens"));
    for _ in 0..DEPTH {
        mkdirat(&current, "folder", Mode::RWXU).expect("made");
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        current = openat(&current, "folder", flags, Mode::empty()).expect("opens");
    }
    let walked = all_names(folder.path(), 2);
    assert_eq!(walked.counts.folders, u64::from(DEPTH));
    assert!(walked.oddities.kinds().next().is_none());
}

#[test]
fn more_folders_than_files_may_be_open_are_walked() {
    // Each level keeps its folder open until the last of its siblings has been read.
    let folder = tempfile::tempdir().expect("folder");
    let mut current = folder.path().to_owned();
    let allowed = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let allowed = allowed.current.unwrap_or(u64::MAX);
    // By paths of two bytes a level that the system still takes.
    const LEVELS: u64 = 1_500;
    for _ in 0..LEVELS {
        fs::create_dir(current.join("b")).expect("made");
        current.push("a");
        fs::create_dir(&current).expect("made");
    }
    let walked = all_names(folder.path(), 1);
    assert_eq!(walked.counts.folders, 2 * LEVELS, "{allowed} may be open");
    assert!(walked.oddities.kinds().next().is_none());
}

#[test]
fn it_stops_when_it_is_asked_to() {
    let folder = tempfile::tempdir().expect("folder");
    for number in 0..50 {
        fs::create_dir(folder.path().join(number.to_string())).expect("made");
    }
    let tree = Tree::open(folder.path()).expect("opens");
    let asked = AtomicU64::new(0);
    let should_stop = || asked.fetch_add(1, Ordering::Relaxed) >= 9;
    let walked = walk_here(
        &tree,
        &WalkOptions::default(),
        Names::default(),
        &should_stop,
    );
    assert!(walked.stopped);
    assert_eq!(walked.visitors[0].folders.len(), 10);
}

#[test]
fn what_is_no_readable_directory_is_refused() {
    let folder = tempfile::tempdir().expect("folder");
    let file = folder.path().join("file");
    fs::write(&file, "x").expect("file");
    assert!(matches!(
        Tree::open(&file),
        Err(TreeError::NotADirectory { .. })
    ));
    let missing = folder.path().join("missing");
    assert!(matches!(Tree::open(&missing), Err(TreeError::Top { .. })));
    // The top itself may be reached by a link.
    symlink(folder.path(), folder.path().join("link")).expect("link");
    let tree = Tree::open(&folder.path().join("link")).expect("opens");
    assert_eq!(tree.path(), folder.path().canonicalize().expect("path"));
}

/// Takes the folder away while the walk knows of it already.
struct Remover<'a> {
    top: &'a Path,
    ended: Vec<FolderState>,
}

impl Visitor for Remover<'_> {
    type Mark = ();
    fn enter(&mut self, _: &Folder<'_>, _: Option<()>) {}
    fn entry(&mut self, _: &Folder<'_>, _: &Entry<'_>) {}
    fn leave(&mut self, folder: &Folder<'_>, state: FolderState, _: Option<FolderStamp>) {
        if folder.depth == 0 {
            fs::remove_dir(self.top.join("gone")).expect("removed");
            fs::remove_dir(self.top.join("replaced")).expect("removed");
            symlink("/", self.top.join("replaced")).expect("link");
        }
        self.ended.push(state);
    }
}

#[test]
fn a_folder_that_vanishes_or_becomes_a_link_is_counted_and_not_followed() {
    let folder = tempfile::tempdir().expect("folder");
    for name in ["gone", "replaced", "stays"] {
        fs::create_dir(folder.path().join(name)).expect("made");
    }
    let tree = Tree::open(folder.path()).expect("opens");
    let remover = Remover {
        top: folder.path(),
        ended: Vec::new(),
    };
    let walked = walk_here(&tree, &WalkOptions::default(), remover, &|| false);
    assert_eq!(walked.oddities.count(OddityKind::Vanished), 2);
    let ended = &walked.visitors[0].ended;
    let vanished = ended
        .iter()
        .filter(|state| **state == FolderState::Vanished);
    assert_eq!((ended.len(), vanished.count()), (4, 2));
}

#[test]
fn a_panic_of_a_visitor_ends_all_threads() {
    struct Panics;
    impl Visitor for Panics {
        type Mark = ();
        fn enter(&mut self, folder: &Folder<'_>, _: Option<()>) {
            assert!(folder.depth == 0, "as the test wants it");
        }
        fn entry(&mut self, _: &Folder<'_>, _: &Entry<'_>) {}
        fn leave(&mut self, _: &Folder<'_>, _: FolderState, _: Option<FolderStamp>) {}
    }
    let folder = tempfile::tempdir().expect("folder");
    fs::create_dir(folder.path().join("below")).expect("made");
    let tree = Tree::open(folder.path()).expect("opens");
    let result = std::panic::catch_unwind(|| {
        let progress = WalkProgress::new(3);
        let visitors = vec![Panics, Panics, Panics];
        walk(
            &tree,
            &WalkOptions::default(),
            visitors,
            &|| false,
            &progress,
            || {},
        )
    });
    assert!(result.is_err());
}
