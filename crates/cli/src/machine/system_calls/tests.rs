//! Known sequences of calls, counted in either way.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;

use super::*;

/// Counters, or `None` with a printed reason where the kernel does not give any.
#[expect(clippy::print_stderr, reason = "a test that skips says why")]
fn counter() -> Option<SystemCallCounter> {
    match SystemCallCounter::of_this_thread() {
        Ok(counter) => Some(counter),
        Err(error) => {
            eprintln!("skipped: {error} ({:?})", std::error::Error::source(&error));
            None
        }
    }
}

#[test]
fn every_call_is_counted_once_and_under_its_name() {
    let folder = tempfile::tempdir().expect("temporary directory");
    let path = folder.path().join("file");
    std::fs::write(&path, [7; 4096]).expect("write");
    let Some(counter) = counter() else { return };
    let mut buffer = [0; 64];
    counter.start().expect("start");
    for _ in 0..100 {
        let mut file = File::open(&path).expect("open");
        file.read_exact(&mut buffer).expect("read");
        file.read_exact_at(&mut buffer, 128).expect("read at");
        file.seek(SeekFrom::Start(1)).expect("seek");
    }
    let writer = File::options().write(true).open(&path).expect("open");
    (&writer).write_all(&buffer).expect("write");
    writer.write_all_at(&buffer, 64).expect("write at");
    writer.sync_all().expect("fsync");
    writer.sync_data().expect("fdatasync");
    let moved = folder.path().join("moved");
    std::fs::rename(&path, &moved).expect("rename");
    std::fs::remove_file(&moved).expect("unlink");
    let _ = rustix::process::getppid();
    let calls = counter.stop().expect("stop");
    let mut expected = BTreeMap::from([
        ("openat", 101),
        ("read", 100),
        ("pread64", 100),
        ("lseek", 100),
        // The writer is still open.
        ("close", 100),
        ("write", 1),
        ("pwrite64", 1),
        ("fsync", 1),
        ("fdatasync", 1),
        ("rename", 1),
        ("unlink", 1),
        (OTHER, 1),
    ]);
    // In builds with debug assertions the standard library asks whether a descriptor is open
    // before it closes it.
    if calls.contains_key("fcntl") {
        expected.insert("fcntl", 100);
    }
    // Locks of the standard library and of the other tests' threads wait now and then.
    if let Some(waits) = calls.get("futex") {
        expected.insert("futex", *waits);
    }
    assert_eq!(calls, expected);
}

#[test]
fn nothing_done_is_nothing_counted() {
    let Some(counter) = counter() else { return };
    counter.start().expect("start");
    let calls = counter.stop().expect("stop");
    assert_eq!(calls, BTreeMap::new());
}

#[test]
fn threads_started_while_counting_are_counted() {
    let folder = tempfile::tempdir().expect("temporary directory");
    let path = folder.path().join("file");
    let file = File::create(&path).expect("create");
    let Some(counter) = counter() else { return };
    counter.start().expect("start");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..50 {
                file.write_all_at(b"x", 0).expect("write");
            }
        });
    });
    let calls = counter.stop().expect("stop");
    assert_eq!(calls.get("pwrite64"), Some(&50));
}

#[test]
fn threads_of_the_process_that_live_already_are_counted() {
    if counter().is_none() {
        return;
    }
    let folder = tempfile::tempdir().expect("temporary directory");
    let file = File::create(folder.path().join("file")).expect("create");
    let barrier = std::sync::Barrier::new(2);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            barrier.wait();
            barrier.wait();
            for _ in 0..50 {
                file.sync_data().expect("fdatasync");
            }
            barrier.wait();
        });
        barrier.wait();
        // Other tests run in this process too, so no exact number can be asked for.
        let counter = SystemCallCounter::of_this_process().expect("counters");
        counter.start().expect("start");
        barrier.wait();
        barrier.wait();
        let calls = counter.stop().expect("stop");
        assert!(calls.get("fdatasync") >= Some(&50), "{calls:?}");
    });
}

#[test]
fn what_is_missing_is_said() {
    let refused = SystemCallsError::NotPermitted { level: Some(2) };
    assert_eq!(
        refused.to_string(),
        "system calls are not counted: perf_event_open is not permitted \
         (kernel.perf_event_paranoid is 2)"
    );
    assert!(refused.hint().contains("cap_perfmon"));
}

/// Some of everything that stores do.
fn work(folder: &std::path::Path) {
    let path = folder.join("file");
    for number in 0..50 {
        let mut file = File::options()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(&path)
            .expect("open");
        file.write_all(&[7; 512]).expect("write");
        file.seek(SeekFrom::Start(number)).expect("seek");
        let mut buffer = [0; 64];
        file.read_exact(&mut buffer).expect("read");
        file.read_exact_at(&mut buffer, 128).expect("read at");
        file.sync_data().expect("fdatasync");
        let _ = file.metadata().expect("statx");
    }
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let file = File::open(&path).expect("open");
            for _ in 0..20 {
                file.read_exact_at(&mut [0; 64], 0).expect("read at");
            }
        });
    });
    std::fs::remove_file(&path).expect("unlink");
    let _ = rustix::process::getppid();
}

fn traced() -> SystemCallCounter {
    let tracer = tracer::Tracer::of_this_thread().expect("one may trace one's own processes");
    SystemCallCounter {
        way: Way::Tracer(tracer),
        bound: PhantomData,
    }
}

#[test]
fn the_kernel_and_the_tracer_count_the_same() {
    let folder = tempfile::tempdir().expect("temporary directory");
    let count = |counter: SystemCallCounter| {
        counter.start().expect("start");
        work(folder.path());
        counter.stop().expect("stop")
    };
    // What is done once in a thread's life is done before.
    work(folder.path());
    let by_tracer = count(traced());
    assert_eq!(by_tracer.get("pread64"), Some(&70), "{by_tracer:?}");
    assert_eq!(by_tracer.get("fdatasync"), Some(&50));
    assert_eq!(by_tracer.get("openat"), Some(&51));
    let Some(counter) = counter() else { return };
    if !matches!(counter.way, Way::TracePoint(_)) {
        return;
    }
    let mut by_kernel = count(counter);
    let mut by_tracer = by_tracer;
    // How a thread is started, waited for and given back its stack depends on which thread is sooner.
    for calls in [&mut by_kernel, &mut by_tracer] {
        for theirs in ["futex", "madvise", "mmap", "munmap", "mprotect", OTHER] {
            calls.remove(theirs);
        }
    }
    assert_eq!(by_kernel, by_tracer);
}

#[test]
fn a_tracer_that_is_not_used_leaves_nothing_behind() {
    let tracer = tracer::Tracer::of_this_thread().expect("one may trace one's own processes");
    drop(tracer);
    let counter = traced();
    counter.start().expect("start");
    drop(counter);
    // Nobody traces any more, or this one could not.
    let counter = traced();
    counter.start().expect("start");
    assert_eq!(counter.stop().expect("stop"), BTreeMap::new());
}

#[test]
fn who_is_traced_already_is_told_so() {
    let held = traced();
    let error = tracer::Tracer::of_this_thread().expect_err("there is one tracer at a time");
    assert_eq!(error.raw_os_error(), Some(libc::EPERM));
    drop(held);
    let both = SystemCallsError::NotTraceable {
        refusal: Box::new(SystemCallsError::NotPermitted { level: Some(2) }),
        source: error,
    };
    assert!(
        both.to_string().starts_with(
            "system calls are not counted: perf_event_open is not permitted \
             (kernel.perf_event_paranoid is 2); nor may a process of ours trace them (Operation not permitted"
        ),
        "{both}"
    );
}

#[test]
fn signals_reach_a_thread_that_is_traced() {
    use std::sync::atomic::{AtomicBool, Ordering};
    static ARRIVED: AtomicBool = AtomicBool::new(false);
    extern "C" fn note(_: libc::c_int) {
        ARRIVED.store(true, Ordering::SeqCst);
    }
    let counter = traced();
    counter.start().expect("start");
    // SAFETY: the handler only sets a flag, and no other test uses this signal.
    unsafe {
        let handler: extern "C" fn(libc::c_int) = note;
        libc::signal(libc::SIGUSR2, handler as libc::sighandler_t);
        libc::raise(libc::SIGUSR2);
    }
    let calls = counter.stop().expect("stop");
    assert!(ARRIVED.load(Ordering::SeqCst));
    assert!(calls.get(OTHER) >= Some(&2), "{calls:?}");
}
