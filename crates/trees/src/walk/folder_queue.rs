//! The folders that are still to be read, shared by the walkers of a tree. Last in, first out: that
//! keeps the walk deep and the list short. What is done with a folder is left to the walker.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Work that begets work, until there is none.
pub(super) struct FolderQueue<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
}

struct State<T> {
    waiting: Vec<T>,
    /// Walkers that may still add work.
    at_work: usize,
    closed: bool,
}

impl<T> FolderQueue<T> {
    pub(super) fn new(first: T) -> Self {
        Self {
            state: Mutex::new(State {
                waiting: vec![first],
                at_work: 0,
                closed: false,
            }),
            changed: Condvar::new(),
        }
    }

    /// A panic of another walker leaves the list whole: nothing in here panics while it is locked.
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a folder if one is waiting. Whoever has taken one calls [`FolderQueue::finish`].
    pub(super) fn try_take(&self) -> Option<T> {
        let mut state = self.lock();
        if state.closed {
            return None;
        }
        let taken = state.waiting.pop();
        state.at_work += usize::from(taken.is_some());
        taken
    }

    /// Takes a folder, or waits for one; `None` when there will be none any more.
    pub(super) fn take(&self) -> Option<T> {
        let mut state = self.lock();
        loop {
            if state.closed {
                return None;
            }
            if let Some(taken) = state.waiting.pop() {
                state.at_work += 1;
                return Some(taken);
            }
            if state.at_work == 0 {
                return None;
            }
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// A folder is read; these were found in it.
    pub(super) fn finish(&self, found: &mut Vec<T>) {
        let mut state = self.lock();
        let is_news = !found.is_empty();
        state.waiting.append(found);
        state.at_work -= 1;
        let is_over = state.at_work == 0 && state.waiting.is_empty();
        drop(state);
        if is_news || is_over {
            self.changed.notify_all();
        }
    }

    /// No more work is given out.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[test]
    fn all_work_is_done_by_several_and_then_all_end() {
        let queue = FolderQueue::new(12u32);
        let done = AtomicU32::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    while let Some(number) = queue.take() {
                        done.fetch_add(1, Ordering::Relaxed);
                        let mut found = match number {
                            0 => Vec::new(),
                            number => vec![number - 1; 2],
                        };
                        queue.finish(&mut found);
                    }
                });
            }
        });
        assert_eq!(done.into_inner(), (1 << 13) - 1);
    }

    #[test]
    fn nothing_is_given_out_after_closing() {
        let queue = FolderQueue::new(1);
        queue.close();
        assert_eq!(queue.take(), None);
        assert_eq!(queue.try_take(), None);
    }
}
