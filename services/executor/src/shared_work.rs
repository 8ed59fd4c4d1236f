//! Work that the calling thread shares with further ones.

use std::{
    panic,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

/// Limit of the threads that share a work, the calling one included.
pub(crate) const MAX_THREADS: usize = 4;

/// List whose parts threads take one after the other.
///
/// Each thread takes the next part when it is ready: parts differ in size, and commands of other workspaces may delay
/// one thread.
pub(crate) struct SharedList<'a, T> {
    items: &'a [T],
    part: usize,
    next: AtomicUsize,
}

impl<'a, T> SharedList<'a, T> {
    /// Shares a list in parts of this number of items.
    pub(crate) fn new(items: &'a [T], part: usize) -> Self {
        Self {
            items,
            part,
            next: AtomicUsize::new(0),
        }
    }

    /// Returns the next part; `None` when all parts are taken.
    pub(crate) fn take_part(&self) -> Option<&'a [T]> {
        let start = self.next.fetch_add(self.part, Ordering::Relaxed);
        let rest = self.items.get(start..).filter(|rest| !rest.is_empty())?;
        Some(rest.get(..self.part).unwrap_or(rest))
    }
}

/// Performs a work on the calling thread and on further ones, at most `max_threads` in all. Returns their results.
///
/// `work` takes parts until none is left. So the results are complete also when the system starts no further thread.
pub(crate) fn share_work<R: Send>(max_threads: usize, work: impl Fn() -> R + Sync) -> Vec<R> {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    run_on_threads(max_threads.min(cores), thread::Builder::new, work)
}

fn run_on_threads<R: Send>(
    count: usize,
    prepare_thread: impl Fn() -> thread::Builder,
    work: impl Fn() -> R + Sync,
) -> Vec<R> {
    let work = &work;
    thread::scope(|scope| {
        // After an error no further thread is tried: the system is at its limit of threads or memory.
        let started: Vec<_> = (1..count)
            .map_while(|_| prepare_thread().spawn_scoped(scope, work).ok())
            .collect();
        let mut results = vec![work()];
        for thread in started {
            results.push(thread.join().unwrap_or_else(|panic| panic::resume_unwind(panic)));
        }
        results
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take_all(list: &SharedList<'_, usize>) -> Vec<usize> {
        let mut taken = Vec::new();
        while let Some(part) = list.take_part() {
            taken.extend(part);
        }
        taken
    }

    #[test]
    fn every_item_is_taken_once() {
        for count in [0, 1, 7, 8, 100] {
            let items: Vec<usize> = (0..count).collect();
            let list = SharedList::new(&items, 7);
            let mut taken = share_work(MAX_THREADS, || take_all(&list)).concat();
            taken.sort_unstable();
            assert_eq!(taken, items);
        }
    }

    #[test]
    fn calling_thread_completes_work_alone() {
        // No system has memory for such a stack.
        let prepare_thread = || thread::Builder::new().stack_size(usize::MAX / 8 + 1);
        assert!(prepare_thread().spawn(|| ()).is_err());
        let items: Vec<usize> = (0..100).collect();
        let list = SharedList::new(&items, 7);
        let results = run_on_threads(MAX_THREADS, prepare_thread, || take_all(&list));
        assert_eq!(results, [items]);
    }
}
