//! What a packfile promises beyond the seam: what becomes of batches that were cut off or damaged,
//! compaction, and one writer at a time.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use sqlitmus_core::dataset::{Dataset, SizeDistribution};
use sqlitmus_core::settings::Settings;

use super::format::{FRAME_PAYLOAD_BYTES, RECORD_BYTES};
use super::{Packfile, compacted_path, verify};
use crate::engine::{Engine, EngineError, Session, Store};

fn settings(read: &str) -> Settings {
    Settings::from_pairs([("read", read)])
}

fn open(path: &Path) -> Result<Box<dyn Store>, EngineError> {
    Packfile.open(path, &Settings::default())
}

fn create(path: &Path) -> Box<dyn Store> {
    Packfile
        .create(path, &Settings::default())
        .expect("created")
}

fn session(store: &dyn Store) -> Box<dyn Session> {
    store.session().expect("a session")
}

/// Stores the keys 1 to `count`, each with `bytes` times the same byte, in one batch.
fn write(session: &mut dyn Session, count: u64, byte: u8, bytes: usize) {
    let writer = session.writer().expect("a writer");
    writer.begin().expect("begun");
    for key in 1..=count {
        writer.put(key, &vec![byte; bytes]).expect("put");
    }
    writer.commit().expect("committed");
}

/// First byte and length of a blob.
fn read(session: &mut dyn Session, key: u64) -> Option<(u8, usize)> {
    let mut found = None;
    let outcome = session.read(key, &mut |bytes| {
        assert!(bytes.iter().all(|byte| *byte == bytes[0]), "one blob");
        found = Some((bytes[0], bytes.len()));
    });
    match outcome {
        Ok(()) | Err(EngineError::Missing { .. }) => found,
        Err(error) => panic!("{error}"),
    }
}

/// A store with two batches; returns its path and the length it had after the first.
fn two_batches(place: &Path, second_bytes: usize) -> (PathBuf, u64) {
    let path = place.join("pack");
    let store = create(&path);
    let mut session = session(&*store);
    write(&mut *session, 3, b'1', 1000);
    let after_first = path.metadata().expect("there").len();
    write(&mut *session, 3, b'2', second_bytes);
    (path, after_first)
}

fn flip(path: &Path, position: u64) {
    let file = fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open(path)
        .expect("opened");
    let mut byte = [0];
    file.read_exact_at(&mut byte, position).expect("read");
    file.write_all_at(&[byte[0] ^ 1], position)
        .expect("written");
}

#[test]
fn a_batch_that_was_cut_off_is_as_if_it_had_never_been() {
    let place = tempfile::tempdir().expect("a scratch directory");
    let (path, after_first) = two_batches(place.path(), 1000);
    let whole = fs::read(&path).expect("read");
    for length in after_first..whole.len() as u64 {
        fs::write(&path, &whole[..length as usize]).expect("written");
        let store = open(&path).expect("a torn end is no damage");
        let mut session = session(&*store);
        assert_eq!(read(&mut *session, 3), Some((b'1', 1000)), "{length} bytes");
        if length % 97 == 0 {
            write(&mut *session, 1, b'3', 10);
            drop((session, store));
            let store = open(&path).expect("the torn end is gone");
            let mut session = self::session(&*store);
            assert_eq!(read(&mut *session, 1), Some((b'3', 10)));
            assert_eq!(read(&mut *session, 2), Some((b'1', 1000)));
            assert_eq!(verify(&path).expect("intact").ignored_bytes, 0);
        }
    }
}

#[test]
fn half_a_batch_of_whole_frames_is_not_applied() {
    let place = tempfile::tempdir().expect("a scratch directory");
    let (path, after_first) = two_batches(place.path(), FRAME_PAYLOAD_BYTES);
    let frame = 48 + RECORD_BYTES as u64 + FRAME_PAYLOAD_BYTES as u64;
    let whole = path.metadata().expect("there").len();
    assert_eq!(whole, after_first + 3 * frame, "three frames, one batch");
    for frames in [1, 2] {
        let file = fs::OpenOptions::new().write(true).open(&path);
        let length = after_first + (3 - frames) * frame;
        file.and_then(|file| file.set_len(length)).expect("cut");
        let store = open(&path).expect("a torn end is no damage");
        assert_eq!(read(&mut *session(&*store), 1), Some((b'1', 1000)));
        let seen = verify(&path).expect("intact");
        assert_eq!(seen.ignored_bytes, length - after_first);
        assert_eq!(seen.blobs, 3);
    }
}

#[test]
fn the_first_frame_of_the_last_batch_may_be_what_is_missing() {
    // A device may write the end of a batch before its start, and lose power in between.
    let place = tempfile::tempdir().expect("a scratch directory");
    let (path, after_first) = two_batches(place.path(), FRAME_PAYLOAD_BYTES);
    flip(&path, after_first + 20);
    let store = open(&path).expect("a torn batch is no damage");
    let mut session = session(&*store);
    assert_eq!(read(&mut *session, 1), Some((b'1', 1000)));
    write(&mut *session, 1, b'3', 10);
    drop((session, store));
    let store = open(&path).expect("what was behind it is gone");
    assert_eq!(read(&mut *self::session(&*store), 1), Some((b'3', 10)));
}

#[test]
fn a_damaged_blob_undoes_the_last_batch() {
    let place = tempfile::tempdir().expect("a scratch directory");
    let (path, _) = two_batches(place.path(), 1000);
    flip(&path, path.metadata().expect("there").len() - 500);
    let store = open(&path).expect("a torn batch is no damage");
    assert_eq!(read(&mut *session(&*store), 3), Some((b'1', 1000)));
}

#[test]
fn damage_before_the_last_batch_is_not_passed_over() {
    let place = tempfile::tempdir().expect("a scratch directory");
    let (path, after_first) = two_batches(place.path(), 1000);
    flip(&path, 32 + 60);
    let refused = open(&path).map(|_| "a store").expect_err("refused");
    assert!(matches!(refused, EngineError::Damaged { .. }), "{refused}");
    flip(&path, 32 + 60);

    flip(&path, after_first - 500);
    drop(open(&path).expect("blobs are not checked by opening"));
    let found = verify(&path).expect_err("found");
    assert!(found.to_string().contains("blob 3"), "{found}");
}

#[test]
fn other_files_are_no_packfiles() {
    let place = tempfile::tempdir().expect("a scratch directory");
    let path = place.path().join("other");
    for content in [&b""[..], b"short", &[7; 1000]] {
        fs::write(&path, content).expect("written");
        let refused = open(&path).map(|_| "a store").expect_err("refused");
        assert!(matches!(refused, EngineError::Damaged { .. }), "{refused}");
    }
    let refused = open(place.path()).map(|_| "a store").expect_err("refused");
    assert!(matches!(refused, EngineError::NoStore(_)), "{refused}");
}

#[test]
fn settling_compacts_while_others_read() {
    for reading in ["pread", "mmap"] {
        let place = tempfile::tempdir().expect("a scratch directory");
        let path = place.path().join("pack");
        let store = Packfile.create(&path, &settings(reading)).expect("created");
        let (mut writing, mut reading) = (session(&*store), session(&*store));
        write(&mut *writing, 100, b'0', 10_000);
        let full = path.metadata().expect("there").len();
        for round in b'1'..=b'9' {
            write(&mut *writing, 100, round, 10_000);
            let settled = writing.writer().expect("a writer").settle();
            settled.expect("settled");
            for key in [1, 50, 100] {
                assert_eq!(read(&mut *reading, key), Some((round, 10_000)));
                assert_eq!(read(&mut *writing, key), Some((round, 10_000)));
            }
            let length = path.metadata().expect("there").len();
            assert!(length <= 3 * full, "round {round}: {length} of {full}");
            assert!(!compacted_path(&path).exists(), "nothing is left behind");
        }
        let back = writing.read_back().expect("figures");
        let dead: u64 = back["dead_bytes"].parse().expect("a number");
        assert!(dead <= full + FRAME_PAYLOAD_BYTES as u64, "{dead} dead");
        drop((writing, reading, store));
        assert_eq!(verify(&path).expect("intact").blobs, 100);
    }
}

#[test]
fn a_compaction_does_not_bless_a_damaged_blob() {
    let place = tempfile::tempdir().expect("a scratch directory");
    let path = place.path().join("pack");
    let store = create(&path);
    let mut session = session(&*store);
    write(&mut *session, 1, b'x', 100);
    let victim = path.metadata().expect("there").len() - 50;
    let writer = session.writer().expect("a writer");
    writer.begin().expect("begun");
    for _ in 0..3 {
        writer
            .put(2, &vec![b'y'; FRAME_PAYLOAD_BYTES])
            .expect("put");
    }
    writer.commit().expect("committed");
    flip(&path, victim);
    let before = fs::read(&path).expect("read");
    let refused = session.writer().expect("a writer").settle();
    let refused = refused.expect_err("refused");
    assert!(matches!(refused, EngineError::Damaged { .. }), "{refused}");
    assert!(fs::read(&path).expect("read") == before, "as it was");
    assert!(!compacted_path(&path).exists(), "nothing is left behind");
    write(&mut *session, 1, b'z', 100);
    assert_eq!(read(&mut *session, 1), Some((b'z', 100)));
}

#[test]
fn one_writes_at_a_time() {
    let place = tempfile::tempdir().expect("a scratch directory");
    let path = place.path().join("pack");
    let store = create(&path);
    let stale = open(&path).expect("opened before anything was written");
    let (mut first, mut second) = (session(&*store), session(&*store));
    first.writer().expect("a writer").begin().expect("begun");
    let refused = second.writer().expect("a writer").begin();
    assert!(refused.expect_err("refused").to_string().contains("write"));
    first.writer().expect("a writer").commit().expect("ended");
    write(&mut *second, 1, b'2', 10);
    // The store that has written keeps others from writing until it is closed.
    let other = open(&path).expect("to read");
    let mut reader = session(&*other);
    assert_eq!(read(&mut *reader, 1), Some((b'2', 10)));
    let refused = reader.writer().expect("a writer").begin();
    refused.expect_err("refused while the other store is open");
    drop((first, second, store));
    write(&mut *reader, 2, b'3', 10);
    drop((reader, other));
    // A store that has missed what others wrote must not write over it.
    let refused = session(&*stale).writer().expect("a writer").begin();
    refused.expect_err("refused after another store has written");
    assert_eq!(verify(&path).expect("intact").blobs, 2);
}

#[test]
fn a_batch_that_fails_or_is_abandoned_leaves_nothing() {
    let place = tempfile::tempdir().expect("a scratch directory");
    let path = place.path().join("pack");
    let store = create(&path);
    let mut session = session(&*store);
    write(&mut *session, 1, b'1', 10);
    let length = path.metadata().expect("there").len();
    let writer = session.writer().expect("a writer");
    writer.put(1, b"2").expect_err("no batch has begun");
    writer.commit().expect_err("no batch has begun");
    writer.begin().expect("begun");
    writer.begin().expect_err("begun already");
    writer.settle().expect_err("not in a batch");
    for key in 1..=4 {
        writer
            .put(key, &vec![b'2'; FRAME_PAYLOAD_BYTES])
            .expect("put");
    }
    assert!(path.metadata().expect("there").len() > length);
    drop(session);
    assert_eq!(path.metadata().expect("there").len(), length);
    assert_eq!(read(&mut *self::session(&*store), 1), Some((b'1', 10)));
}

#[test]
fn readers_see_whole_batches_while_one_writes_and_compacts() {
    let place = tempfile::tempdir().expect("a scratch directory");
    let path = place.path().join("pack");
    for reading in ["pread", "mmap"] {
        let path = path.with_extension(reading);
        let store = Packfile.create(&path, &settings(reading)).expect("created");
        let mut writing = session(&*store);
        write(&mut *writing, 50, 1, 5_000);
        std::thread::scope(|scope| {
            let mut reader = session(&*store);
            let reader = scope.spawn(move || {
                let mut newest = 1;
                while newest < 60 {
                    for key in 1..=50 {
                        let (byte, bytes) = read(&mut *reader, key).expect("there");
                        assert!(byte >= newest, "never back: {byte} after {newest}");
                        assert_eq!(bytes, 5_000);
                        newest = byte;
                    }
                }
            });
            for byte in 2..=60 {
                write(&mut *writing, 50, byte, 5_000);
                let settled = writing.writer().expect("a writer").settle();
                settled.expect("settled");
            }
            reader.join().expect("the reader saw whole batches only");
        });
    }
}

#[test]
fn a_load_can_be_reopened_and_verified() {
    let place = tempfile::tempdir().expect("a scratch directory");
    let path = place.path().join("pack");
    let dataset = Dataset {
        count: 2_000,
        size: SizeDistribution::Uniform(0, 3_000),
        compressibility: 0.0,
        seed: 3,
    };
    create(&path).load(&dataset, &mut |_| ()).expect("loaded");
    let seen = verify(&path).expect("intact");
    assert_eq!(seen.blobs, 2_000);
    assert_eq!(seen.checked_bytes, dataset.total_bytes());
    let store = open(&path).expect("opened");
    let mut count = 0;
    session(&*store).keys(&mut |_| count += 1).expect("keys");
    assert_eq!(count, 2_000);
}
