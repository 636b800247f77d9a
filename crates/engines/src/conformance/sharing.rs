//! The part of the suite about several sessions on one store.

use super::content::blob;
use super::{Trial, small_dataset};
use crate::engine::Store;

impl Trial<'_> {
    pub(super) fn a_session_sees_what_another_has_committed(&self) {
        let store = self.create("two-sessions");
        let mut writer = self.session(&*store);
        let mut reader = self.session(&*store);
        self.expect_missing(&mut *reader, 1);
        for (seed, bytes) in (1..).zip([10_000, 10_000, 3_000, 30_000]) {
            let value = blob(seed, bytes);
            self.put(&mut *writer, (1..=5).map(|key| (key, &value)));
            for key in 1..=5 {
                self.expect_blob(&mut *reader, key, &value);
                self.expect_blob(&mut *writer, key, &value);
            }
            let settled = writer.writer().expect("it wrote just now").settle();
            self.done("settle", settled);
            self.expect_blob(&mut *reader, 5, &value);
        }
        self.write(&mut *writer, |writer| {
            assert!(self.done("delete", writer.delete(1)), "there was a blob");
        });
        self.expect_missing(&mut *reader, 1);
        // The other way round: neither session is for ever reader or writer.
        let value = blob(77, 500);
        self.put(&mut *reader, [(9, &value)]);
        self.expect_blob(&mut *writer, 9, &value);
        self.expect_keys(&mut *writer, &[2, 3, 4, 5, 9]);
    }

    pub(super) fn an_abandoned_batch_blocks_nobody(&self) {
        let store = self.create("abandoned");
        let value = blob(1, 10_000);
        let mut first = self.session(&*store);
        self.put(&mut *first, [(1, &value)]);
        let writer = first.writer().expect("it wrote just now");
        self.done("begin", writer.begin());
        self.done("put", writer.put(2, &value));
        drop(first);
        let mut second = self.session(&*store);
        self.put(&mut *second, [(3, &value)]);
        self.expect_blob(&mut *second, 1, &value);
        self.expect_blob(&mut *second, 3, &value);
    }

    pub(super) fn readers_in_threads_do_not_disturb_each_other(&self) {
        let dataset = small_dataset();
        let store = self.create("threads");
        self.done("load", store.load(&dataset, &mut |_| ()));
        let store: &dyn Store = &*store;
        let dataset = &dataset;
        std::thread::scope(|scope| {
            let readers: Vec<_> = [1, 2]
                .map(|reader| {
                    // The session is made here and moves: that must be allowed too.
                    let mut session = self.session(store);
                    scope.spawn(move || {
                        let mut scratch = Vec::new();
                        for step in 0..dataset.count * 4 {
                            let key = step * (reader * 2 + 1) % dataset.count + 1;
                            let mut generation = None;
                            let outcome = session.read(key, &mut |bytes| {
                                generation = dataset.verify(key, bytes, &mut scratch);
                            });
                            outcome.expect("blobs are read by two threads at once");
                            assert_eq!(generation, Some(0), "blob {key} in a thread");
                        }
                    })
                })
                .into_iter()
                .collect();
            for reader in readers {
                assert!(reader.join().is_ok(), "both threads read all ({self})");
            }
        });
    }
}
