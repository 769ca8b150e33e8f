//! Divides work among the cores.

use parking_lot::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Runs `work` on each item with at most `threads` threads, and returns the results in no particular order.
pub(crate) fn run_parallel<T: Send, R: Send>(
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

/// Runs `work` for each number below `count`, several in parallel, and returns the results in order.
///
/// # Errors
///
/// The error of the first `work` that fails; no further one starts then.
pub(crate) fn try_parallel<T: Send, E: Send>(
    count: usize,
    work: impl Fn(usize) -> Result<T, E> + Sync,
) -> Result<Vec<T>, E> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(count);
    let next = AtomicUsize::new(0);
    let some = || -> Result<Vec<(usize, T)>, E> {
        let mut done = Vec::new();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                return Ok(done);
            }
            match work(number) {
                Ok(result) => done.push((number, result)),
                Err(error) => {
                    // No further work starts.
                    next.store(count, Ordering::Relaxed);
                    return Err(error);
                }
            }
        }
    };
    let mut all = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(some)).collect();
        let mut all = Vec::with_capacity(count);
        for worker in workers {
            match worker.join() {
                Ok(done) => all.extend(done?),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        Ok::<_, E>(all)
    })?;
    all.sort_unstable_by_key(|(number, _)| *number);
    Ok(all.into_iter().map(|(_, result)| result).collect())
}
