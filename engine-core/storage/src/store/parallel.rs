//! Divides work among the cores.

use parking_lot::Mutex;

/// Runs `work` on each item with at most `threads` threads, and returns the results in no particular order.
pub(super) fn run_parallel<T: Send, R: Send>(
    threads: usize,
    works: Vec<T>,
    work: impl Fn(T) -> R + Sync,
) -> Vec<R> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = threads.min(cores).min(works.len());
    if threads < 2 {
        return works.into_iter().map(work).collect();
    }
    let count = works.len();
    let (works, done) = (Mutex::new(works), Mutex::new(Vec::with_capacity(count)));
    let run = || {
        loop {
            // The lock is not held during the work.
            let next = works.lock().pop();
            let Some(next) = next else { break };
            let result = work(next);
            done.lock().push(result);
        }
    };
    std::thread::scope(|scope| {
        (1..threads).for_each(|_| _ = scope.spawn(run));
        run();
    });
    done.into_inner()
}
